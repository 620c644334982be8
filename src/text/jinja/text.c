// SPDX-License-Identifier: Apache-2.0
/* text.c: padding, replacing, splitting and joining strings (text.h); every piece keeps its origin. */
#include "text/jinja/text.h"

#include <string.h>
#include <utf8proc.h>

#include "base/text.h"

int weft__jinja_is_alpha(uint32_t cp)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

int weft__jinja_is_alnum(uint32_t cp)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);
    return weft__jinja_is_alpha(cp) || (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

weft_status weft__jinja_is_case(weft__jinja_ctx *c, const weft__jinja_str *s, int upper, weft__jinja_val *out)
{
    int some = 0, other = 0;
    WEFT__JINJA_TRY(weft__jinja_spend(c, s->len / 16));
    for (size_t at = 0; at < s->len && !other;) {
        uint32_t cp;
        at += weft__utf8_decode(s->data + at, s->len - at, &cp, NULL);
        utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);
        int is_upper = category == UTF8PROC_CATEGORY_LU, is_lower = category == UTF8PROC_CATEGORY_LL;
        some |= upper ? is_upper : is_lower;
        other |= category == UTF8PROC_CATEGORY_LT || (upper ? is_lower : is_upper);
    }
    *out = weft__jinja_bool(some && !other);
    return WEFT_OK;
}

static weft_status put_fills(weft__jinja_ctx *c, weft__jinja_buf *b, const weft__jinja_str *fill, size_t n)
{
    if (!fill) return weft__jinja_put_fill(c, b, ' ', n);
    for (; n; n--) {
        WEFT__JINJA_TRY(weft__jinja_spend(c, 1));
        WEFT__JINJA_TRY(weft__jinja_put_str(c, b, fill));
    }
    return WEFT_OK;
}

weft_status weft__jinja_pad(weft__jinja_ctx *c, const weft__jinja_str *s, int64_t width, const weft__jinja_str *fill,
                            weft__jinja_pad_side side, weft__jinja_val *out)
{
    *out = weft__jinja_of_str(s);
    if (width <= 0 || (uint64_t)width <= s->n_chars) return WEFT_OK;
    size_t total = (size_t)width - s->n_chars;
    /* Python puts the odd one to the left when the width is odd. */
    size_t left = side == WEFT__JINJA_PAD_LEFT    ? total
                  : side == WEFT__JINJA_PAD_RIGHT ? 0
                                                  : total / 2 + (total & (size_t)width & 1);
    weft__jinja_buf b = {0};
    weft__jinja_val text;
    WEFT__JINJA_TRY(put_fills(c, &b, fill, left));
    WEFT__JINJA_TRY(weft__jinja_put_str(c, &b, s));
    WEFT__JINJA_TRY(put_fills(c, &b, fill, total - left));
    WEFT__JINJA_TRY(weft__jinja_buf_finish(c, &b, &text));
    return weft__jinja_markup(c, text.u.s, s->markup, out);
}

/* An empty needle lies before each character and at the end. */
static weft_status replace_nothing(weft__jinja_ctx *c, weft__jinja_buf *b, const weft__jinja_str *s,
                                   const weft__jinja_str *new, uint64_t count)
{
    size_t at = 0;
    for (; count; count--) {
        WEFT__JINJA_TRY(weft__jinja_spend(c, 1));
        WEFT__JINJA_TRY(weft__jinja_put_str(c, b, new));
        if (at == s->len) return WEFT_OK;
        size_t n = (size_t)weft__utf8_length((unsigned char)s->data[at]);
        WEFT__JINJA_TRY(weft__jinja_put_slice(c, b, s, at, at + n));
        at += n;
    }
    return weft__jinja_put_slice(c, b, s, at, s->len);
}

weft_status weft__jinja_replace(weft__jinja_ctx *c, const weft__jinja_str *s, const weft__jinja_str *old,
                                const weft__jinja_str *new, int64_t count, weft__jinja_val *out)
{
    weft__jinja_buf b = {0};
    size_t from = 0;
    uint64_t left = count < 0 ? UINT64_MAX : (uint64_t)count;
    WEFT__JINJA_TRY(weft__jinja_spend(c, s->len / 64));
    if (!old->len) {
        WEFT__JINJA_TRY(replace_nothing(c, &b, s, new, left));
        return weft__jinja_buf_finish(c, &b, out);
    }
    for (; left; left--) {
        size_t hit = weft__jinja_find(s->data, from, s->len, old->data, old->len);
        if (hit == SIZE_MAX) break;
        WEFT__JINJA_TRY(weft__jinja_spend(c, 1));
        WEFT__JINJA_TRY(weft__jinja_put_slice(c, &b, s, from, hit));
        WEFT__JINJA_TRY(weft__jinja_put_str(c, &b, new));
        from = hit + old->len;
    }
    WEFT__JINJA_TRY(weft__jinja_put_slice(c, &b, s, from, s->len));
    return weft__jinja_buf_finish(c, &b, out);
}

/* Bytes of the line end at s[at], 0 when there is none. */
static size_t line_end(const weft__jinja_str *s, size_t at)
{
    unsigned char ch = (unsigned char)s->data[at];
    if (ch == '\r') return at + 1 < s->len && s->data[at + 1] == '\n' ? 2 : 1;
    if ((ch >= 0x0A && ch <= 0x0C) || (ch >= 0x1C && ch <= 0x1E)) return 1;
    if (ch < 0xC2) return 0;
    uint32_t cp;
    size_t n = weft__utf8_decode(s->data + at, s->len - at, &cp, NULL);
    return cp == 0x85 || cp == 0x2028 || cp == 0x2029 ? n : 0;
}

static weft_status append_slice(weft__jinja_ctx *c, weft__jinja_list *list, const weft__jinja_str *s, size_t from,
                                size_t to)
{
    weft__jinja_val piece;
    WEFT__JINJA_TRY(weft__jinja_slice(c, s, from, to, &piece));
    return weft__jinja_append(c, list, piece);
}

weft_status weft__jinja_splitlines(weft__jinja_ctx *c, const weft__jinja_str *s, int keep_ends, int always_last,
                                   weft__jinja_val *out)
{
    weft__jinja_val list;
    size_t from = 0;
    WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_LIST, 0, &list));
    WEFT__JINJA_TRY(weft__jinja_spend(c, s->len / 16));
    for (size_t at = 0; at < s->len;) {
        size_t n = line_end(s, at);
        if (!n) {
            at++;
            continue;
        }
        WEFT__JINJA_TRY(append_slice(c, list.u.list, s, from, keep_ends ? at + n : at));
        from = at += n;
    }
    /* always_last stands for a \n added to s: it would complete a \r before it. */
    if (always_last && s->len && s->data[s->len - 1] == '\r') always_last = 0;
    if (from < s->len || always_last) WEFT__JINJA_TRY(append_slice(c, list.u.list, s, from, s->len));
    *out = list;
    return WEFT_OK;
}

weft_status weft__jinja_stripped(weft__jinja_ctx *c, const char *what, const weft__jinja_str *s, weft__jinja_val chars,
                                 int left, int right, weft__jinja_val *out)
{
    size_t from = 0, to = s->len;
    int given = chars.type != WEFT__JINJA_MISSING && chars.type != WEFT__JINJA_NONE;
    if (given && chars.type != WEFT__JINJA_STRING)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "%s needs characters as a str", what);
    if (given) WEFT__JINJA_TRY(weft__jinja_spend(c, chars.u.s->len / 16));
    weft__jinja_strip(s, given ? chars.u.s : NULL, left, right, &from, &to);
    WEFT__JINJA_TRY(weft__jinja_spend(c, (s->len - (to - from)) * (given ? 1 + chars.u.s->len / 64 : 1) / 16));
    return weft__jinja_slice(c, s, from, to, out);
}

/* ---- splitting ---- */

/* Skips white space (or, with `inverse`, everything else) from at; forwards. */
static size_t skip_space(const weft__jinja_str *s, size_t at, int inverse)
{
    while (at < s->len) {
        uint32_t cp;
        size_t n = weft__utf8_decode(s->data + at, s->len - at, &cp, NULL);
        if (weft__jinja_is_space(cp) == inverse) break;
        at += n;
    }
    return at;
}

/* The same backwards from `at`. */
static size_t skip_space_back(const weft__jinja_str *s, size_t at, int inverse)
{
    while (at > 0) {
        size_t from = at - 1;
        while (from > 0 && ((unsigned char)s->data[from] & 0xC0) == 0x80) from--;
        uint32_t cp;
        weft__utf8_decode(s->data + from, at - from, &cp, NULL);
        if (weft__jinja_is_space(cp) == inverse) break;
        at = from;
    }
    return at;
}

weft_status weft__jinja_split(weft__jinja_ctx *c, const weft__jinja_str *s, const weft__jinja_str *separator,
                              int64_t max, weft__jinja_val *out)
{
    weft__jinja_val list;
    uint64_t left = max < 0 ? UINT64_MAX : (uint64_t)max;
    size_t at = 0;
    WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_LIST, 0, &list));
    WEFT__JINJA_TRY(weft__jinja_spend(c, s->len / 32));
    if (!separator) {
        for (at = skip_space(s, 0, 0); at < s->len && left; left--) {
            size_t end = skip_space(s, at, 1);
            WEFT__JINJA_TRY(append_slice(c, list.u.list, s, at, end));
            at = skip_space(s, end, 0);
        }
        *out = list;
        return at < s->len ? append_slice(c, list.u.list, s, at, s->len) : WEFT_OK;
    }
    if (!separator->len) return weft__jinja_fail(c, WEFT_ARGUMENT, "split needs a separator that is not empty");
    for (; left; left--) {
        size_t hit = weft__jinja_find(s->data, at, s->len, separator->data, separator->len);
        if (hit == SIZE_MAX) break;
        WEFT__JINJA_TRY(append_slice(c, list.u.list, s, at, hit));
        at = hit + separator->len;
    }
    *out = list;
    return append_slice(c, list.u.list, s, at, s->len);
}

weft_status weft__jinja_rsplit(weft__jinja_ctx *c, const weft__jinja_str *s, const weft__jinja_str *separator,
                               int64_t max, weft__jinja_val *out)
{
    weft__jinja_val list;
    uint64_t left = max < 0 ? UINT64_MAX : (uint64_t)max;
    size_t at = s->len;
    WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_LIST, 0, &list));
    WEFT__JINJA_TRY(weft__jinja_spend(c, s->len / 32));
    if (!separator) {
        for (at = skip_space_back(s, at, 0); at > 0 && left; left--) {
            size_t begin = skip_space_back(s, at, 1);
            WEFT__JINJA_TRY(append_slice(c, list.u.list, s, begin, at));
            at = skip_space_back(s, begin, 0);
        }
        if (at > 0) WEFT__JINJA_TRY(append_slice(c, list.u.list, s, 0, at));
    } else {
        if (!separator->len) return weft__jinja_fail(c, WEFT_ARGUMENT, "rsplit needs a separator that is not empty");
        for (; left; left--) {
            size_t hit;
            WEFT__JINJA_TRY(weft__jinja_rfind(c, s->data, 0, at, separator->data, separator->len, &hit));
            if (hit == SIZE_MAX) break;
            WEFT__JINJA_TRY(append_slice(c, list.u.list, s, hit + separator->len, at));
            at = hit;
        }
        WEFT__JINJA_TRY(append_slice(c, list.u.list, s, 0, at));
    }
    weft__jinja_list *l = list.u.list;
    for (size_t i = 0; i < l->n / 2; i++) {
        weft__jinja_val swap = l->items[i];
        l->items[i] = l->items[l->n - 1 - i];
        l->items[l->n - 1 - i] = swap;
    }
    *out = list;
    return WEFT_OK;
}

weft_status weft__jinja_join(weft__jinja_ctx *c, const weft__jinja_str *separator, weft__jinja_val items, int convert,
                             weft__jinja_val *out)
{
    weft__jinja_buf b = {0};
    weft__jinja_iter *it;
    WEFT__JINJA_TRY(weft__jinja_iterate(c, items, &it));
    for (int first = 1;; first = 0) {
        weft__jinja_val item;
        int got;
        WEFT__JINJA_TRY(weft__jinja_next(c, it, &item, &got));
        if (!got) return weft__jinja_buf_finish(c, &b, out);
        if (!convert && item.type != WEFT__JINJA_STRING) {
            return weft__jinja_fail(c, WEFT_ARGUMENT, "join needs strings, not '%s'", weft__jinja_type_name(item));
        }
        if (!first) WEFT__JINJA_TRY(weft__jinja_put_str(c, &b, separator));
        WEFT__JINJA_TRY(weft__jinja_put_value(c, &b, item));
    }
}
