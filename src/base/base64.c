// SPDX-License-Identifier: Apache-2.0
/* base64.c: see base64.h. */
#include "base/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void weft__base64_put(weft__strbuf *out, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t v =
            (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0);
        weft__strbuf_putc(out, digits[v >> 18]);
        weft__strbuf_putc(out, digits[v >> 12 & 63]);
        weft__strbuf_putc(out, i + 1 < n ? digits[v >> 6 & 63] : '=');
        weft__strbuf_putc(out, i + 2 < n ? digits[v & 63] : '=');
    }
}

int weft__base64_read(const char *text, size_t n, void *out, size_t room, size_t *n_out)
{
    unsigned char *bytes = out;
    const size_t pads = n && text[n - 1] == '=' ? n > 1 && text[n - 2] == '=' ? 2 : 1 : 0;
    *n_out = 0;
    if (n % 4) return 0;
    uint32_t bits = 0;
    for (size_t i = 0; i < n - pads; i++) {
        const char *at = text[i] ? strchr(digits, text[i]) : NULL;
        if (!at) return 0;
        bits = bits << 6 | (uint32_t)(at - digits);
        if (!(i % 4)) continue;
        if (*n_out == room) return 0;
        bytes[(*n_out)++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
    }
    return !(bits & ((1u << 2 * pads) - 1));
}
