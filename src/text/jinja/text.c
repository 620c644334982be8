/* text.c: padding, replacing, splitting and joining strings (text.h); every piece keeps its origin. */
#include "text/jinja/text.h"

#include <string.h>
#include <utf8proc.h>

#include "base/text.h"

int weft__j_is_alpha(uint32_t cp)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

int weft__j_is_alnum(uint32_t cp)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);
    return weft__j_is_alpha(cp) || (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO);
}

weft_status weft__j_is_case(weft__jctx *c, const weft__jstr *s, int upper, weft__jval *out)
{
    int some = 0, other = 0;
    WEFT__J_TRY(weft__j_spend(c, s->len / 16));
    for (size_t at = 0; at < s->len && !other;) {
        uint32_t cp;
        at += weft__utf8_decode(s->data + at, s->len - at, &cp, NULL);
        utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);
        int is_upper = category == UTF8PROC_CATEGORY_LU, is_lower = category == UTF8PROC_CATEGORY_LL;
        some |= upper ? is_upper : is_lower;
        other |= category == UTF8PROC_CATEGORY_LT || (upper ? is_lower : is_upper);
    }
    *out = weft__j_bool(some && !other);
    return WEFT_OK;
}

static weft_status put_fills(weft__jctx *c, weft__jbuf *b, const weft__jstr *fill, size_t n)
{
    if (!fill) return weft__j_put_fill(c, b, ' ', n);
    for (; n; n--) {
        WEFT__J_TRY(weft__j_spend(c, 1));
        WEFT__J_TRY(weft__j_put_str(c, b, fill));
    }
    return WEFT_OK;
}

weft_status weft__j_pad(weft__jctx *c, const weft__jstr *s, int64_t width, const weft__jstr *fill, weft__jpad side,
                        weft__jval *out)
{
    *out = weft__j_of_str(s);
    if (width <= 0 || (uint64_t)width <= s->n_chars) return WEFT_OK;
    size_t total = (size_t)width - s->n_chars;
    /* Python puts the odd one to the left when the width is odd. */
    size_t left = side == WEFT__J_PAD_LEFT ? total : side == WEFT__J_PAD_RIGHT ? 0 : total / 2 + (total & (size_t)width & 1);
    weft__jbuf b = {0};
    weft__jval text;
    WEFT__J_TRY(put_fills(c, &b, fill, left));
    WEFT__J_TRY(weft__j_put_str(c, &b, s));
    WEFT__J_TRY(put_fills(c, &b, fill, total - left));
    WEFT__J_TRY(weft__j_buf_finish(c, &b, &text));
    return weft__j_markup(c, text.u.s, s->markup, out);
}

/* An empty needle lies before each character and at the end. */
static weft_status replace_nothing(weft__jctx *c, weft__jbuf *b, const weft__jstr *s, const weft__jstr *new, uint64_t count)
{
    size_t at = 0;
    for (; count; count--) {
        WEFT__J_TRY(weft__j_spend(c, 1));
        WEFT__J_TRY(weft__j_put_str(c, b, new));
        if (at == s->len) return WEFT_OK;
        size_t n = (size_t)weft__utf8_length((unsigned char)s->data[at]);
        WEFT__J_TRY(weft__j_put_slice(c, b, s, at, at + n));
        at += n;
    }
    return weft__j_put_slice(c, b, s, at, s->len);
}

weft_status weft__j_replace(weft__jctx *c, const weft__jstr *s, const weft__jstr *old, const weft__jstr *new, int64_t count,
                            weft__jval *out)
{
    weft__jbuf b = {0};
    size_t from = 0;
    uint64_t left = count < 0 ? UINT64_MAX : (uint64_t)count;
    WEFT__J_TRY(weft__j_spend(c, s->len / 64));
    if (!old->len) {
        WEFT__J_TRY(replace_nothing(c, &b, s, new, left));
        return weft__j_buf_finish(c, &b, out);
    }
    for (; left; left--) {
        size_t hit = weft__j_find(s->data, from, s->len, old->data, old->len);
        if (hit == SIZE_MAX) break;
        WEFT__J_TRY(weft__j_spend(c, 1));
        WEFT__J_TRY(weft__j_put_slice(c, &b, s, from, hit));
        WEFT__J_TRY(weft__j_put_str(c, &b, new));
        from = hit + old->len;
    }
    WEFT__J_TRY(weft__j_put_slice(c, &b, s, from, s->len));
    return weft__j_buf_finish(c, &b, out);
}

/* Bytes of the line end at s[at], 0 when there is none. */
static size_t line_end(const weft__jstr *s, size_t at)
{
    unsigned char ch = (unsigned char)s->data[at];
    if (ch == '\r') return at + 1 < s->len && s->data[at + 1] == '\n' ? 2 : 1;
    if ((ch >= 0x0A && ch <= 0x0C) || (ch >= 0x1C && ch <= 0x1E)) return 1;
    if (ch < 0xC2) return 0;
    uint32_t cp;
    size_t n = weft__utf8_decode(s->data + at, s->len - at, &cp, NULL);
    return cp == 0x85 || cp == 0x2028 || cp == 0x2029 ? n : 0;
}

static weft_status append_slice(weft__jctx *c, weft__jlist *list, const weft__jstr *s, size_t from, size_t to)
{
    weft__jval piece;
    WEFT__J_TRY(weft__j_slice(c, s, from, to, &piece));
    return weft__j_append(c, list, piece);
}

weft_status weft__j_splitlines(weft__jctx *c, const weft__jstr *s, int keep_ends, int always_last, weft__jval *out)
{
    weft__jval list;
    size_t from = 0;
    WEFT__J_TRY(weft__j_new_list(c, WEFT__J_LIST, 0, &list));
    WEFT__J_TRY(weft__j_spend(c, s->len / 16));
    for (size_t at = 0; at < s->len;) {
        size_t n = line_end(s, at);
        if (!n) {
            at++;
            continue;
        }
        WEFT__J_TRY(append_slice(c, list.u.list, s, from, keep_ends ? at + n : at));
        from = at += n;
    }
    /* always_last stands for a \n added to s: it would complete a \r before it. */
    if (always_last && s->len && s->data[s->len - 1] == '\r') always_last = 0;
    if (from < s->len || always_last) WEFT__J_TRY(append_slice(c, list.u.list, s, from, s->len));
    *out = list;
    return WEFT_OK;
}

weft_status weft__j_stripped(weft__jctx *c, const char *what, const weft__jstr *s, weft__jval chars, int left, int right,
                             weft__jval *out)
{
    size_t from = 0, to = s->len;
    int given = chars.type != WEFT__J_MISSING && chars.type != WEFT__J_NONE;
    if (given && chars.type != WEFT__J_STRING) return weft__j_fail(c, WEFT_ARGUMENT, "%s needs characters as a str", what);
    if (given) WEFT__J_TRY(weft__j_spend(c, chars.u.s->len / 16));
    weft__j_strip(s, given ? chars.u.s : NULL, left, right, &from, &to);
    WEFT__J_TRY(weft__j_spend(c, (s->len - (to - from)) * (given ? 1 + chars.u.s->len / 64 : 1) / 16));
    return weft__j_slice(c, s, from, to, out);
}

/* ---- splitting ---- */

/* Skips white space (or, with `inverse`, everything else) from at; forwards. */
static size_t skip_space(const weft__jstr *s, size_t at, int inverse)
{
    while (at < s->len) {
        uint32_t cp;
        size_t n = weft__utf8_decode(s->data + at, s->len - at, &cp, NULL);
        if (weft__j_is_space(cp) == inverse) break;
        at += n;
    }
    return at;
}

/* The same backwards from `at`. */
static size_t skip_space_back(const weft__jstr *s, size_t at, int inverse)
{
    while (at > 0) {
        size_t from = at - 1;
        while (from > 0 && ((unsigned char)s->data[from] & 0xC0) == 0x80) from--;
        uint32_t cp;
        weft__utf8_decode(s->data + from, at - from, &cp, NULL);
        if (weft__j_is_space(cp) == inverse) break;
        at = from;
    }
    return at;
}

weft_status weft__j_split(weft__jctx *c, const weft__jstr *s, const weft__jstr *separator, int64_t max, weft__jval *out)
{
    weft__jval list;
    uint64_t left = max < 0 ? UINT64_MAX : (uint64_t)max;
    size_t at = 0;
    WEFT__J_TRY(weft__j_new_list(c, WEFT__J_LIST, 0, &list));
    WEFT__J_TRY(weft__j_spend(c, s->len / 32));
    if (!separator) {
        for (at = skip_space(s, 0, 0); at < s->len && left; left--) {
            size_t end = skip_space(s, at, 1);
            WEFT__J_TRY(append_slice(c, list.u.list, s, at, end));
            at = skip_space(s, end, 0);
        }
        *out = list;
        return at < s->len ? append_slice(c, list.u.list, s, at, s->len) : WEFT_OK;
    }
    if (!separator->len) return weft__j_fail(c, WEFT_ARGUMENT, "split needs a separator that is not empty");
    for (; left; left--) {
        size_t hit = weft__j_find(s->data, at, s->len, separator->data, separator->len);
        if (hit == SIZE_MAX) break;
        WEFT__J_TRY(append_slice(c, list.u.list, s, at, hit));
        at = hit + separator->len;
    }
    *out = list;
    return append_slice(c, list.u.list, s, at, s->len);
}

weft_status weft__j_rsplit(weft__jctx *c, const weft__jstr *s, const weft__jstr *separator, int64_t max, weft__jval *out)
{
    weft__jval list;
    uint64_t left = max < 0 ? UINT64_MAX : (uint64_t)max;
    size_t at = s->len;
    WEFT__J_TRY(weft__j_new_list(c, WEFT__J_LIST, 0, &list));
    WEFT__J_TRY(weft__j_spend(c, s->len / 32));
    if (!separator) {
        for (at = skip_space_back(s, at, 0); at > 0 && left; left--) {
            size_t begin = skip_space_back(s, at, 1);
            WEFT__J_TRY(append_slice(c, list.u.list, s, begin, at));
            at = skip_space_back(s, begin, 0);
        }
        if (at > 0) WEFT__J_TRY(append_slice(c, list.u.list, s, 0, at));
    } else {
        if (!separator->len) return weft__j_fail(c, WEFT_ARGUMENT, "rsplit needs a separator that is not empty");
        for (; left; left--) {
            size_t hit;
            WEFT__J_TRY(weft__j_rfind(c, s->data, 0, at, separator->data, separator->len, &hit));
            if (hit == SIZE_MAX) break;
            WEFT__J_TRY(append_slice(c, list.u.list, s, hit + separator->len, at));
            at = hit;
        }
        WEFT__J_TRY(append_slice(c, list.u.list, s, 0, at));
    }
    weft__jlist *l = list.u.list;
    for (size_t i = 0; i < l->n / 2; i++) {
        weft__jval swap = l->items[i];
        l->items[i] = l->items[l->n - 1 - i];
        l->items[l->n - 1 - i] = swap;
    }
    *out = list;
    return WEFT_OK;
}

weft_status weft__j_join(weft__jctx *c, const weft__jstr *separator, weft__jval items, int convert, weft__jval *out)
{
    weft__jbuf b = {0};
    weft__jiter *it;
    WEFT__J_TRY(weft__j_iter(c, items, &it));
    for (int first = 1;; first = 0) {
        weft__jval item;
        int got;
        WEFT__J_TRY(weft__j_next(c, it, &item, &got));
        if (!got) return weft__j_buf_finish(c, &b, out);
        if (!convert && item.type != WEFT__J_STRING) {
            return weft__j_fail(c, WEFT_ARGUMENT, "join needs strings, not '%s'", weft__j_type_name(item));
        }
        if (!first) WEFT__J_TRY(weft__j_put_str(c, &b, separator));
        WEFT__J_TRY(weft__j_put_value(c, &b, item));
    }
}
