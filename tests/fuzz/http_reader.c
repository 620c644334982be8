// SPDX-License-Identifier: Apache-2.0
/* http_reader.c: any bytes as requests: they are read the same in one piece and byte by byte, and what is taken has
 * lines that end in CR LF. The first byte says whether a body comes in chunks. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "http/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static size_t n_strings(const weft__strbuf *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->len; i++) n += !t->data[i];
    return n;
}

/* All that was read, and how it ended, as text. */
static void read_all(const char *bytes, size_t n, size_t step, int is_chunked, weft__strbuf *out)
{
    weft__http_reader r = {.max_head = 300, .max_headers = 8};
    size_t at = 0, end = step < n ? step : n;
    for (;;) {
        size_t n_used, n_piece;
        const char *piece;
        enum weft__http_read got = weft__http_reader_next(&r, bytes + at, end - at, &n_used, &piece, &n_piece);
        if (n_used > end - at || n_piece > n_used || r.n_lines > r.max_head + 4 || r.n_headers > r.max_headers) abort();
        if (r.text.len && !r.text.failed && n_strings(&r.text) < 1 + 2 * (r.n_query + r.n_headers)) abort();
        at += n_used;
        if (got == WEFT__HTTP_READ_BODY) weft__strbuf_put(out, piece, n_piece);
        if (got == WEFT__HTTP_READ_HEAD) {
            weft__strbuf_put(out, r.text.data, r.text.len);
            weft__http_reader_body(&r, is_chunked, 5);
        }
        if (got == WEFT__HTTP_READ_END) {
            weft__strbuf_puts(out, "|end|");
            weft__http_reader_reset(&r);
        }
        if (got == WEFT__HTTP_READ_REFUSED) weft__strbuf_printf(out, "|%d %s|", r.status, r.message);
        if (got == WEFT__HTTP_READ_REFUSED || (got == WEFT__HTTP_READ_MORE && end == n)) break;
        if (got == WEFT__HTTP_READ_MORE) end = n - end < step ? n : end + step;
    }
    weft__http_reader_reset(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const size_t before = weft__alloc_live();
    if (!n) return 0;
    weft__strbuf whole = {0}, parts = {0};
    const char *bytes = (const char *)data + 1;
    read_all(bytes, n - 1, n, data[0] & 1, &whole);
    read_all(bytes, n - 1, 1, data[0] & 1, &parts);
    if (whole.len != parts.len || (whole.len && memcmp(whole.data, parts.data, whole.len))) abort();
    weft__strbuf_free(&whole);
    weft__strbuf_free(&parts);
    if (weft__alloc_live() != before) abort();
    return 0;
}
