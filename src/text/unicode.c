// SPDX-License-Identifier: Apache-2.0
/* unicode.c: characters and normal forms (unicode.h) from utf8proc's tables. Reordering is our own: utf8proc's takes
 * time in the square of the length of a run of combining marks. */
#include "text/unicode.h"

#include <string.h>
#include <utf8proc.h>

#include "base/alloc.h"

int weft__unicode_is_space(uint32_t cp)
{
    return (cp >= 9 && cp <= 13) || cp == 32 || cp == 0x85 || cp == 0xA0 || cp == 0x1680 ||
           (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F ||
           cp == 0x3000;
}

int weft__unicode_is_mark(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_MN;
}

int weft__unicode_is_word(uint32_t cp)
{
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return 1;
    default: /* the joiners, and the letters in circles and squares, which are alphabetic symbols */
        return cp == 0x200C || cp == 0x200D || (cp >= 0x24B6 && cp <= 0x24E9) || (cp >= 0x1F130 && cp <= 0x1F149) ||
               (cp >= 0x1F150 && cp <= 0x1F169) || (cp >= 0x1F170 && cp <= 0x1F189);
    }
}

int weft__unicode_is_other(uint32_t cp)
{
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS: return 1;
    default: return 0;
    }
}

void weft__unicode_put_lower(weft__strbuf *out, uint32_t cp)
{
    if (cp == 0x130) { /* the one character whose lower-case form is two (SpecialCasing.txt) */
        weft__strbuf_puts(out, "i\xCC\x87");
        return;
    }
    weft__strbuf_put_utf8(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp));
}

void weft__unicode_put_upper(weft__strbuf *out, uint32_t cp)
{
    if (cp == 0xdf) weft__strbuf_puts(out, "SS");
    else weft__strbuf_put_utf8(out, (uint32_t)utf8proc_toupper((utf8proc_int32_t)cp));
}

static unsigned combining_class(int32_t cp)
{
    return (unsigned)utf8proc_get_property(cp)->combining_class & 255u;
}

/* Sorts a run of combining marks by class, stably, in linear time. `from` is scratch of the same length. */
static void reorder(int32_t *run, size_t n, int32_t *from)
{
    size_t at[257] = {0};
    memcpy(from, run, n * sizeof *run);
    for (size_t i = 0; i < n; i++) at[combining_class(from[i]) + 1]++;
    for (size_t c = 1; c < 257; c++) at[c] += at[c - 1];
    for (size_t i = 0; i < n; i++) run[at[combining_class(from[i])]++] = from[i];
}

static void reorder_all(int32_t *cps, size_t n, int32_t *scratch)
{
    for (size_t i = 0; i < n;) {
        size_t begin = i;
        int sorted = 1;
        unsigned last = 0, class;
        for (; i < n && (class = combining_class(cps[i])) != 0; i++) {
            if (class < last) sorted = 0;
            last = class;
        }
        if (!sorted) reorder(cps + begin, i - begin, scratch);
        if (i == begin) i++;
    }
}

/* The decomposition of s[0..n) as code points; NULL when memory runs out. */
static int32_t *decompose(const char *s, size_t n, int compat, size_t *count)
{
    int32_t *cps = NULL;
    size_t capacity = 0, used = 0;
    int boundary = 0;
    utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compat ? UTF8PROC_COMPAT : 0);
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        i += weft__utf8_decode(s + i, n - i, &cp, NULL);
        if (!weft__grow(&cps, &capacity, used + 32, sizeof *cps)) {
            weft__free(cps);
            return NULL;
        }
        utf8proc_ssize_t got = utf8proc_decompose_char((int32_t)cp, cps + used, 32, options, &boundary);
        if (got < 0 || got > 32) {
            cps[used] = (int32_t)cp;
            got = 1;
        }
        used += (size_t)got;
    }
    *count = used;
    return cps;
}

static int is_ascii(const char *s, size_t n)
{
    unsigned char any = 0;
    for (size_t i = 0; i < n; i++) any |= (unsigned char)s[i];
    return any < 0x80;
}

void weft__unicode_normalize(weft__strbuf *out, const char *s, size_t n, weft__unicode_form form)
{
    if (is_ascii(s, n)) {
        weft__strbuf_put(out, s, n);
        return;
    }
    size_t count = 0;
    int32_t *cps = decompose(s, n, form == WEFT__UNICODE_NFKC || form == WEFT__UNICODE_NFKD, &count);
    int32_t *scratch = cps ? weft__alloc_array(count, sizeof *scratch) : NULL;
    if (!scratch) {
        out->failed = 1;
        goto done;
    }
    reorder_all(cps, count, scratch);
    if (form == WEFT__UNICODE_NFC || form == WEFT__UNICODE_NFKC) {
        utf8proc_ssize_t got =
            utf8proc_normalize_utf32(cps, (utf8proc_ssize_t)count, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
        if (got >= 0) count = (size_t)got;
    }
    for (size_t i = 0; i < count; i++) weft__strbuf_put_utf8(out, (uint32_t)cps[i]);
done:
    weft__free(scratch);
    weft__free(cps);
}
