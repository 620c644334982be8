// SPDX-License-Identifier: Apache-2.0
/* case.c: upper, lower and title case as Python's str has them (value.h). No state. */
#include <string.h>
#include <utf8proc.h>

#include "base/text.h"
#include "text/jinja/upper.h"
#include "text/jinja/value.h"

typedef struct long_case {
    uint32_t cp;
    const char *upper, *title;
} long_case;

static const long_case long_cases[] = {
#define ROW(cp, upper, title) {cp, upper, title},
    WEFT__JINJA_LONG_CASE(ROW)
#undef ROW
};

static const long_case *find_long(uint32_t cp)
{
    size_t low = 0, high = sizeof long_cases / sizeof *long_cases;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (long_cases[mid].cp == cp) return &long_cases[mid];
        if (long_cases[mid].cp < cp) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return NULL;
}

static int is_cased(uint32_t cp)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT;
}

/* Characters that do not end a word for the final sigma. */
static int is_ignorable(uint32_t cp)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_ME || category == UTF8PROC_CATEGORY_CF ||
           category == UTF8PROC_CATEGORY_LM || category == UTF8PROC_CATEGORY_SK || cp == '\'' || cp == '.' ||
           cp == ':' || cp == 0xB7 || cp == 0x2019;
}

/* A capital sigma at `at` becomes the final form when a cased letter precedes it and none follows. */
static int is_final_sigma(const weft__jinja_str *s, size_t at)
{
    int before = 0;
    uint32_t cp;
    for (size_t i = at; i > 0 && !before;) {
        size_t end = i--;
        while (i > 0 && ((unsigned char)s->data[i] & 0xC0) == 0x80) i--;
        weft__utf8_decode(s->data + i, end - i, &cp, NULL);
        if (is_cased(cp)) {
            before = 1;
        } else if (!is_ignorable(cp)) {
            break;
        }
    }
    if (!before) return 0;
    for (size_t i = at + 2; i < s->len;) {
        i += weft__utf8_decode(s->data + i, s->len - i, &cp, NULL);
        if (is_cased(cp)) return 0;
        if (!is_ignorable(cp)) return 1;
    }
    return 1;
}

static weft_status put_lower(weft__jinja_ctx *c, weft__jinja_buf *b, const weft__jinja_str *s, size_t at, uint32_t cp,
                             int user)
{
    if (cp == 0x130) return weft__jinja_put(c, b, "i\xCC\x87", 3, user);
    if (cp == 0x3A3) return weft__jinja_put_char(c, b, is_final_sigma(s, at) ? 0x3C2 : 0x3C3, user);
    return weft__jinja_put_char(c, b, (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp), user);
}

static weft_status put_upper(weft__jinja_ctx *c, weft__jinja_buf *b, uint32_t cp, int title, int user)
{
    const long_case *special = find_long(cp);
    if (special) {
        const char *text = title ? special->title : special->upper;
        return weft__jinja_put(c, b, text, strlen(text), user);
    }
    utf8proc_int32_t one = (utf8proc_int32_t)cp;
    return weft__jinja_put_char(c, b, (uint32_t)(title ? utf8proc_totitle(one) : utf8proc_toupper(one)), user);
}

static weft_status put_folded(weft__jinja_ctx *c, weft__jinja_buf *b, uint32_t cp, int user)
{
    utf8proc_int32_t parts[8];
    int boundary = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)cp, parts, 8, UTF8PROC_CASEFOLD, &boundary);
    if (n < 0 || n > 8) return weft__jinja_put_char(c, b, cp, user);
    for (utf8proc_ssize_t i = 0; i < n; i++) WEFT__JINJA_TRY(weft__jinja_put_char(c, b, (uint32_t)parts[i], user));
    return WEFT_OK;
}

weft_status weft__jinja_to_case(weft__jinja_ctx *c, const weft__jinja_str *s, weft__jinja_case how,
                                weft__jinja_val *out)
{
    weft__jinja_buf b = {0};
    uint32_t hint = 0;
    int in_word = 0;
    WEFT__JINJA_TRY(weft__jinja_spend(c, s->len / 16));
    for (size_t at = 0, n; at < s->len; at += n) {
        uint32_t cp;
        n = weft__utf8_decode(s->data + at, s->len - at, &cp, NULL);
        int user = weft__jinja_user_at(s, at, &hint);
        int upper = how == WEFT__JINJA_UPPER || (how == WEFT__JINJA_CAPITALIZE && at == 0) ||
                    (how == WEFT__JINJA_TITLE && !in_word);
        if (how == WEFT__JINJA_SWAP) {
            upper = utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_LL;
        }
        if (how == WEFT__JINJA_FOLD) {
            WEFT__JINJA_TRY(put_folded(c, &b, cp, user));
        } else if (upper) {
            WEFT__JINJA_TRY(put_upper(c, &b, cp, how == WEFT__JINJA_CAPITALIZE || how == WEFT__JINJA_TITLE, user));
        } else {
            WEFT__JINJA_TRY(put_lower(c, &b, s, at, cp, user));
        }
        in_word = is_cased(cp);
    }
    weft__jinja_val v;
    WEFT__JINJA_TRY(weft__jinja_buf_finish(c, &b, &v));
    return weft__jinja_markup(c, v.u.s, s->markup, out);
}
