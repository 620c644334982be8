// SPDX-License-Identifier: Apache-2.0
/* stop.c: see stop.h. */
#include "text/stop.h"

#include <string.h>

#include "base/alloc.h"

struct weft__stop_string {
    char *text;
    uint16_t *fail; /* [n + 1]: after k bytes, the longest proper suffix that is a prefix too */
    size_t n, at;   /* at: bytes of the text's end that begin it */
};

static void stop_build(struct weft__stop_string *s)
{
    size_t k = 0;
    s->fail[0] = s->fail[1] = 0;
    for (size_t i = 1; i < s->n; i++) {
        while (k && s->text[k] != s->text[i]) k = s->fail[k];
        k += s->text[k] == s->text[i];
        s->fail[i + 1] = (uint16_t)k;
    }
}

weft_status weft__stop_begin(weft__stop *s, const char *const *strings, const size_t *lengths, int n, weft_error *err)
{
    *s = (weft__stop){.found = -1};
    s->strings = weft__alloc_zero((size_t)n, sizeof *s->strings);
    if (!s->strings) goto no_memory;
    for (; s->n < n; s->n++) {
        struct weft__stop_string *one = &s->strings[s->n];
        one->n = lengths[s->n];
        one->text = weft__strndup(strings[s->n], one->n);
        one->fail = weft__alloc_array(one->n + 1, sizeof *one->fail);
        if (!one->text || !one->fail) {
            s->n++;
            goto no_memory;
        }
        stop_build(one);
    }
    return WEFT_OK;
no_memory:
    weft__stop_free(s);
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for %d stop strings", n);
}

void weft__stop_free(weft__stop *s)
{
    for (int i = 0; i < s->n; i++) {
        weft__free(s->strings[i].text);
        weft__free(s->strings[i].fail);
    }
    weft__free(s->strings);
    weft__strbuf_free(&s->held);
    *s = (weft__stop){.found = -1};
}

static void step(struct weft__stop_string *s, char c)
{
    if (s->at == s->n) s->at = s->fail[s->at];
    while (s->at && s->text[s->at] != c) s->at = s->fail[s->at];
    s->at += s->text[s->at] == c;
}

/* Moves the held bytes but the last `keep` to out. */
static void let_go(weft__stop *s, size_t keep, weft__strbuf *out)
{
    size_t n = s->held.len - keep;
    if (!n) return;
    weft__strbuf_put(out, s->held.data, n);
    memmove(s->held.data, s->held.data + n, keep);
    s->held.len = keep;
    s->cut += n;
}

int weft__stop_push(weft__stop *s, const char *bytes, size_t n, weft__strbuf *out)
{
    if (!s->n) {
        weft__strbuf_put(out, bytes, n);
        s->cut += n;
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        size_t keep = 0;
        weft__strbuf_putc(&s->held, bytes[i]);
        for (int k = 0; k < s->n; k++) {
            struct weft__stop_string *one = &s->strings[k];
            step(one, bytes[i]);
            if (one->at == one->n && (s->found < 0 || one->n > s->strings[s->found].n)) s->found = k;
            if (one->at > keep) keep = one->at;
        }
        if (s->held.failed) out->failed = 1;
        if (out->failed) return 0;
        if (s->found >= 0) {
            let_go(s, s->strings[s->found].n, out);
            return 1;
        }
        if (i + 1 == n || s->held.len > keep + 4096) let_go(s, keep, out);
    }
    return 0;
}

void weft__stop_flush(weft__stop *s, weft__strbuf *out)
{
    let_go(s, 0, out);
}

const char *weft__stop_found(const weft__stop *s, size_t *n)
{
    *n = s->found < 0 ? 0 : s->strings[s->found].n;
    return s->found < 0 ? "" : s->strings[s->found].text;
}
