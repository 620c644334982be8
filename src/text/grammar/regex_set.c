// SPDX-License-Identifier: Apache-2.0
/* regex_set.c: one character of a set, as rules (regex_set.h). Stateless. */
#include "text/grammar/regex_set.h"

#include <string.h>

#include "text/grammar/build.h"
#include "text/grammar/parts.h"

static int set_has(const weft__gram_regex_set *x, uint32_t c)
{
    for (size_t i = 0; i < x->n; i++)
        if (c >= x->r[i].lo && c <= x->r[i].hi) return 1;
    return 0;
}

static int32_t refused(const char *what, const char **why)
{
    *why = what;
    return -1;
}

/* What JSON escapes, of the set: \X, or \u00HH where there is no such letter. -1: nothing is. */
static int32_t emit_escapes(weft__gram *g, const weft__gram_regex_set *x)
{
    static const char controls[] = "\b\t\n\f\r\"\\", letters[] = "btnfr\"\\";
    weft__gram_range named[7], digits[2][16];
    size_t n_named = 0, n_digits[2] = {0}, n = 0;
    int32_t items[3];
    for (uint32_t c = 0; c <= '\\'; c = c == 0x1F ? '"' : c == '"' ? '\\' : c + 1) {
        if (!set_has(x, c)) continue;
        const char *at = c ? strchr(controls, (int)c) : NULL;
        const uint32_t letter = (unsigned char)"0123456789abcdef"[c & 15];
        if (at) named[n_named++] = (weft__gram_range){(unsigned char)letters[at - controls], 0};
        else digits[c >> 4][n_digits[c >> 4]++] = (weft__gram_range){letter, letter};
    }
    for (size_t i = 0; i < n_named; i++) named[i].hi = named[i].lo;
    if (n_named) items[n++] = weft__gram_class(g, named, n_named, 0);
    for (size_t i = 0; i < 2; i++) {
        if (!n_digits[i]) continue;
        int32_t start = weft__gram_text(g, i ? "u001" : "u000", 4);
        items[n++] = GRAM_SEQ(start, weft__gram_class(g, digits[i], n_digits[i], 0));
    }
    if (!n) return -1;
    int32_t mark = GRAM_TEXT("\\");
    return GRAM_SEQ(mark, weft__gram_alt(g, items, n));
}

/* One character of the set, as JSON spells it. */
static int32_t emit_quoted(weft__gram *g, const weft__gram_regex_set *x, const char **why)
{
    weft__gram_range plain[2 * WEFT__GRAM_REGEX_RANGES + 4];
    size_t n = 0;
    for (size_t i = 0; i < x->n; i++) {
        static const weft__gram_range allowed[] = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0xD7FF}, {0xE000, 0x10FFFF}};
        for (size_t k = 0; k < 4 && n < sizeof plain / sizeof *plain; k++) {
            uint32_t lo = x->r[i].lo > allowed[k].lo ? x->r[i].lo : allowed[k].lo;
            uint32_t hi = x->r[i].hi < allowed[k].hi ? x->r[i].hi : allowed[k].hi;
            if (lo <= hi) plain[n++] = (weft__gram_range){lo, hi};
        }
    }
    if (n == sizeof plain / sizeof *plain) return refused("a class of too many ranges", why);
    int32_t escapes = emit_escapes(g, x);
    if (!n && escapes < 0 && !weft__gram_failed(g)) return refused("a class that matches no character", why);
    if (!n) return escapes;
    int32_t node = weft__gram_class(g, plain, n, 0);
    return escapes < 0 ? node : GRAM_ALT(node, escapes);
}

uint32_t weft__gram_regex_set_size(unsigned flags, const weft__gram_regex_set *x)
{
    enum { BEYOND_ASCII = 12, ESCAPED = 12 };
    uint32_t size = 1, beyond = 0, escaped = set_has(x, '"') || set_has(x, '\\');
    for (size_t i = 0; i < x->n; i++) {
        escaped |= x->r[i].lo < ' ';
        beyond |= x->r[i].hi >= 0x80;
    }
    if (beyond) size += BEYOND_ASCII;
    return escaped && flags & WEFT__GRAM_REGEX_QUOTED ? size + ESCAPED : size;
}

int32_t weft__gram_regex_set_emit(weft__gram *g, const weft__gram_regex_set *x, unsigned flags, const char **why)
{
    if (flags & WEFT__GRAM_REGEX_QUOTED) return emit_quoted(g, x, why);
    for (size_t i = 0; i < x->n; i++)
        if (x->r[i].lo < 0xD800 || x->r[i].hi >= 0xE000) return weft__gram_class(g, x->r, x->n, 0);
    return refused("a class that matches no character", why);
}
