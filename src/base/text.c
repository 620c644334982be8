// SPDX-License-Identifier: Apache-2.0
/* text.c: growing byte strings and UTF-8 (text.h). No shared state. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

/* Makes room for n more bytes and a NUL; 0 when that failed, now or earlier. */
static int reserve(weft__strbuf *t, size_t n)
{
    if (t->failed) return 0;
    size_t need;
    if (__builtin_add_overflow(t->len, n, &need) || __builtin_add_overflow(need, 1, &need) ||
        !weft__grow(&t->data, &t->capacity, need, 1)) {
        t->failed = 1;
        return 0;
    }
    return 1;
}

void weft__strbuf_free(weft__strbuf *t)
{
    weft__free(t->data);
    memset(t, 0, sizeof *t);
}

void weft__strbuf_put(weft__strbuf *t, const void *bytes, size_t n)
{
    if (!reserve(t, n)) return;
    if (n) memcpy(t->data + t->len, bytes, n);
    t->len += n;
    t->data[t->len] = 0;
}

void weft__strbuf_puts(weft__strbuf *t, const char *s)
{
    weft__strbuf_put(t, s, strlen(s));
}

void weft__strbuf_putc(weft__strbuf *t, char c)
{
    weft__strbuf_put(t, &c, 1);
}

void weft__strbuf_printf(weft__strbuf *t, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n < 0) {
        t->failed = 1;
    } else if (reserve(t, (size_t)n)) {
        vsnprintf(t->data + t->len, (size_t)n + 1, format, again);
        t->len += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

void weft__strbuf_put_utf8(weft__strbuf *t, uint32_t cp)
{
    char bytes[4];
    weft__strbuf_put(t, bytes, weft__utf8_encode(cp, bytes));
}

int weft__utf8_length(unsigned char c)
{
    if (c < 0x80) return 1;
    if (c < 0xC2) return 0; /* continuation bytes, and leads of overlong pairs */
    if (c < 0xE0) return 2;
    if (c < 0xF0) return 3;
    if (c < 0xF5) return 4;
    return 0;
}

size_t weft__utf8_decode(const char *s, size_t n, uint32_t *cp, int *bad)
{
    const unsigned char *u = (const unsigned char *)s;
    static const unsigned char lead_mask[5] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    int length = weft__utf8_length(u[0]);
    if (length == 0 || (size_t)length > n) goto malformed;
    uint32_t value = u[0] & lead_mask[length];
    for (int i = 1; i < length; i++) {
        if ((u[i] & 0xC0) != 0x80) goto malformed;
        value = value << 6 | (u[i] & 0x3F);
    }
    if (value < least[length] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) goto malformed;
    *cp = value;
    return (size_t)length;
malformed:
    *cp = 0xFFFD;
    if (bad) *bad = 1;
    return 1;
}

size_t weft__utf8_encode(uint32_t cp, char out[4])
{
    if (cp > 0x10FFFF || (cp >= 0xD800 && cp < 0xE000)) cp = 0xFFFD;
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    if (cp < 0x800) {
        out[0] = (char)(0xC0 | cp >> 6);
        out[1] = (char)(0x80 | (cp & 0x3F));
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = (char)(0xE0 | cp >> 12);
        out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
        out[2] = (char)(0x80 | (cp & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | cp >> 18);
    out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
    out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
    out[3] = (char)(0x80 | (cp & 0x3F));
    return 4;
}

int weft__utf8_valid(const char *s, size_t n)
{
    int bad = 0;
    for (size_t i = 0; i < n && !bad;) {
        uint32_t cp;
        i += weft__utf8_decode(s + i, n - i, &cp, &bad);
    }
    return !bad;
}

const char *weft__utf8_show(char *out, size_t room, const char *s, size_t n)
{
    size_t used = 0;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        int bad = 0;
        size_t length = weft__utf8_decode(s + i, n - i, &cp, &bad);
        if (used + length + 4 > room) {
            memcpy(out + used, "...", 3);
            used += 3;
            break;
        }
        if (bad || cp < 0x20 || (cp >= 0x7f && cp < 0xa0)) out[used++] = '?';
        else memcpy(out + used, s + i, length), used += length;
        i += length;
    }
    out[used] = 0;
    return out;
}

const char *weft__path_last(const char *path, size_t *n)
{
    size_t end = strlen(path), begin;
    while (end > 0 && path[end - 1] == '/') end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/';) begin--;
    *n = end - begin;
    return path + begin;
}

int weft__path_is_plain_name(const char *name, size_t most)
{
    size_t n = strlen(name);
    if (n < 1 || n > most || !strcmp(name, ".") || !strcmp(name, "..")) return 0;
    return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}
