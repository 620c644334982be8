// SPDX-License-Identifier: Apache-2.0
/* str.c: strings that know which of their bytes are the user's, and the buffers that build them (value.h).
 * Owned by the rendering. Text is UTF-8 throughout and cut only between characters. */
#include <string.h>

#include "base/text.h"
#include "text/jinja/value.h"

size_t weft__jinja_count_chars(const char *data, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += ((unsigned char)data[i] & 0xC0) != 0x80;
    return count;
}

static weft_status new_str(weft__jinja_ctx *c, const char *data, size_t n, weft__jinja_str **out)
{
    WEFT__JINJA_TRY(weft__jinja_spend(c, n / 64));
    weft__jinja_str *s = weft__jinja_alloc(c, sizeof *s);
    if (!s) return WEFT__JINJA_NO_ROOM(c);
    memset(s, 0, sizeof *s);
    s->data = data;
    s->len = n;
    s->n_chars = weft__jinja_count_chars(data, n);
    *out = s;
    return WEFT_OK;
}

weft_status weft__jinja_string(weft__jinja_ctx *c, const char *data, size_t n, int from_user, weft__jinja_val *out)
{
    weft__jinja_str *s;
    WEFT__JINJA_TRY(new_str(c, data, n, &s));
    s->from_user = from_user && n;
    *out = weft__jinja_of_str(s);
    return WEFT_OK;
}

weft_status weft__jinja_string_copy(weft__jinja_ctx *c, const char *data, size_t n, int from_user, weft__jinja_val *out)
{
    char *copy = weft__jinja_alloc(c, n);
    if (!copy) return WEFT__JINJA_NO_ROOM(c);
    if (n) memcpy(copy, data, n);
    return weft__jinja_string(c, copy, n, from_user, out);
}

weft_status weft__jinja_literal(weft__jinja_ctx *c, const char *s, weft__jinja_val *out)
{
    return weft__jinja_string(c, s, strlen(s), 0, out);
}

/* The first run that ends after `at`. */
static uint32_t run_at(const weft__jinja_str *s, size_t at)
{
    uint32_t low = 0, high = s->n_runs;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (s->runs[mid].end > at) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }
    return low;
}

weft_status weft__jinja_slice(weft__jinja_ctx *c, const weft__jinja_str *s, size_t from, size_t to,
                              weft__jinja_val *out)
{
    if (from == 0 && to == s->len) {
        *out = weft__jinja_of_str(s);
        return WEFT_OK;
    }
    weft__jinja_str *piece;
    WEFT__JINJA_TRY(new_str(c, s->data + from, to - from, &piece));
    piece->markup = s->markup;
    if (!s->runs) {
        piece->from_user = s->from_user && to > from;
    } else if (to > from) {
        uint32_t first = run_at(s, from), last = run_at(s, to - 1), n = last - first + 1;
        if (n == 1) {
            piece->from_user = s->runs[first].from_user != 0;
        } else {
            weft__jinja_run *runs = weft__jinja_alloc_array(c, n, sizeof *runs);
            if (!runs) return WEFT__JINJA_NO_ROOM(c);
            for (uint32_t i = 0; i < n; i++) {
                runs[i] = s->runs[first + i];
                runs[i].end = (runs[i].end < to ? runs[i].end : to) - from;
            }
            piece->runs = runs;
            piece->n_runs = n;
        }
    }
    *out = weft__jinja_of_str(piece);
    return WEFT_OK;
}

int weft__jinja_str_any_user(const weft__jinja_str *s)
{
    return s->runs != NULL || s->from_user;
}

int weft__jinja_str_eq(const weft__jinja_str *a, const weft__jinja_str *b)
{
    return a == b || (a->len == b->len && !memcmp(a->data, b->data, a->len));
}

int weft__jinja_str_is(const weft__jinja_str *s, const char *text)
{
    size_t n = strlen(text);
    return s->len == n && !memcmp(s->data, text, n);
}

size_t weft__jinja_str_offset(const weft__jinja_str *s, size_t i)
{
    if (s->n_chars == s->len) return i;
    if (i >= s->n_chars) return s->len;
    size_t at = 0;
    while (i--) at += (size_t)weft__utf8_length((unsigned char)s->data[at]);
    return at;
}

size_t weft__jinja_find(const char *s, size_t from, size_t to, const char *needle, size_t n)
{
    if (from > to || n > to - from) return SIZE_MAX;
    if (!n) return from;
    const char *hit = memmem(s + from, to - from, needle, n);
    return hit ? (size_t)(hit - s) : SIZE_MAX;
}

weft_status weft__jinja_rfind(weft__jinja_ctx *c, const char *s, size_t from, size_t to, const char *needle, size_t n,
                              size_t *out)
{
    *out = SIZE_MAX;
    if (from > to || n > to - from) return WEFT_OK;
    WEFT__JINJA_TRY(weft__jinja_spend(c, (to - from) / 64));
    for (size_t at = to - n + 1; at-- > from;) {
        if (n && s[at] != needle[0]) continue;
        WEFT__JINJA_TRY(weft__jinja_spend(c, n / 64));
        if (!n || !memcmp(s + at, needle, n)) {
            *out = at;
            return WEFT_OK;
        }
    }
    return WEFT_OK;
}

int weft__jinja_is_space(uint32_t cp)
{
    if (cp <= 0x20) return (cp >= 9 && cp <= 13) || cp >= 28;
    if (cp < 0x2000) return cp == 0x85 || cp == 0xA0 || cp == 0x1680;
    return cp <= 0x200A || cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

/* Whether the character data[0..n) is among chars, or white space when chars is NULL. */
static int is_among(const char *data, size_t n, const weft__jinja_str *chars)
{
    if (chars) return weft__jinja_find(chars->data, 0, chars->len, data, n) != SIZE_MAX;
    uint32_t cp;
    weft__utf8_decode(data, n, &cp, NULL);
    return weft__jinja_is_space(cp);
}

void weft__jinja_strip(const weft__jinja_str *s, const weft__jinja_str *chars, int left, int right, size_t *from,
                       size_t *to)
{
    while (left && *from < *to) {
        size_t n = (size_t)weft__utf8_length((unsigned char)s->data[*from]);
        if (!is_among(s->data + *from, n, chars)) break;
        *from += n;
    }
    while (right && *from < *to) {
        size_t at = *to - 1;
        while (at > *from && ((unsigned char)s->data[at] & 0xC0) == 0x80) at--;
        if (!is_among(s->data + at, *to - at, chars)) break;
        *to = at;
    }
}

weft_status weft__jinja_put(weft__jinja_ctx *c, weft__jinja_buf *b, const char *data, size_t n, int from_user)
{
    if (!n) return WEFT_OK;
    WEFT__JINJA_TRY(weft__jinja_spend(c, n / 64));
    if (b == c->root_out && n > c->limits.max_output - b->len) {
        return weft__jinja_fail(c, WEFT_LIMIT, "the output exceeds %zu bytes", c->limits.max_output);
    }
    if (n > SIZE_MAX / 4 - b->len) return weft__jinja_fail(c, WEFT_LIMIT, "a string is too long");
    WEFT__JINJA_TRY(weft__jinja_grow(c, &b->data, &b->capacity, b->len + n, 1));
    from_user = from_user != 0;
    if (!b->n_runs || b->runs[b->n_runs - 1].from_user != from_user) {
        WEFT__JINJA_TRY(weft__jinja_grow(c, &b->runs, &b->runs_capacity, b->n_runs + 1, sizeof *b->runs));
        b->runs[b->n_runs++] = (weft__jinja_run){.from_user = from_user};
    }
    memcpy(b->data + b->len, data, n);
    b->len += n;
    b->runs[b->n_runs - 1].end = b->len;
    return WEFT_OK;
}

weft_status weft__jinja_puts(weft__jinja_ctx *c, weft__jinja_buf *b, const char *s)
{
    return weft__jinja_put(c, b, s, strlen(s), 0);
}

weft_status weft__jinja_put_slice(weft__jinja_ctx *c, weft__jinja_buf *b, const weft__jinja_str *s, size_t from,
                                  size_t to)
{
    if (!s->runs) return weft__jinja_put(c, b, s->data + from, to - from, s->from_user);
    for (uint32_t i = run_at(s, from); from < to; i++) {
        size_t end = s->runs[i].end < to ? s->runs[i].end : to;
        WEFT__JINJA_TRY(weft__jinja_put(c, b, s->data + from, end - from, s->runs[i].from_user));
        from = end;
    }
    return WEFT_OK;
}

weft_status weft__jinja_put_str(weft__jinja_ctx *c, weft__jinja_buf *b, const weft__jinja_str *s)
{
    return weft__jinja_put_slice(c, b, s, 0, s->len);
}

weft_status weft__jinja_put_char(weft__jinja_ctx *c, weft__jinja_buf *b, uint32_t cp, int from_user)
{
    char bytes[4];
    return weft__jinja_put(c, b, bytes, weft__utf8_encode(cp, bytes), from_user);
}

weft_status weft__jinja_put_fill(weft__jinja_ctx *c, weft__jinja_buf *b, char ch, size_t n)
{
    char piece[64];
    memset(piece, ch, sizeof piece);
    for (; n > sizeof piece; n -= sizeof piece) WEFT__JINJA_TRY(weft__jinja_put(c, b, piece, sizeof piece, 0));
    return weft__jinja_put(c, b, piece, n, 0);
}

weft_status weft__jinja_buf_finish(weft__jinja_ctx *c, weft__jinja_buf *b, weft__jinja_val *out)
{
    if (!b->len) return weft__jinja_string(c, "", 0, 0, out);
    weft__jinja_str *s;
    WEFT__JINJA_TRY(new_str(c, b->data, b->len, &s));
    if (b->n_runs == 1) {
        s->from_user = b->runs[0].from_user != 0;
    } else {
        s->runs = b->runs;
        s->n_runs = (uint32_t)b->n_runs;
    }
    *out = weft__jinja_of_str(s);
    return WEFT_OK;
}

int weft__jinja_user_at(const weft__jinja_str *s, size_t at, uint32_t *hint)
{
    if (!s->runs) return s->from_user;
    while (*hint + 1 < s->n_runs && s->runs[*hint].end <= at) ++*hint;
    return s->runs[*hint].from_user;
}

weft_status weft__jinja_markup(weft__jinja_ctx *c, const weft__jinja_str *s, int markup, weft__jinja_val *out)
{
    *out = weft__jinja_of_str(s);
    if (s->markup == (markup != 0)) return WEFT_OK;
    weft__jinja_str *copy = weft__jinja_alloc(c, sizeof *copy);
    if (!copy) return WEFT__JINJA_NO_ROOM(c);
    *copy = *s;
    copy->markup = markup != 0;
    *out = weft__jinja_of_str(copy);
    return WEFT_OK;
}

weft_status weft__jinja_escape(weft__jinja_ctx *c, const weft__jinja_str *s, weft__jinja_val *out)
{
    if (s->markup) {
        *out = weft__jinja_of_str(s);
        return WEFT_OK;
    }
    weft__jinja_buf b = {0};
    uint32_t hint = 0;
    size_t from = 0;
    for (size_t i = 0; i < s->len; i++) {
        char ch = s->data[i];
        const char *entity = ch == '&'    ? "&amp;"
                             : ch == '<'  ? "&lt;"
                             : ch == '>'  ? "&gt;"
                             : ch == '"'  ? "&#34;"
                             : ch == '\'' ? "&#39;"
                                          : NULL;
        if (!entity) continue;
        WEFT__JINJA_TRY(weft__jinja_put_slice(c, &b, s, from, i));
        WEFT__JINJA_TRY(weft__jinja_put(c, &b, entity, strlen(entity), weft__jinja_user_at(s, i, &hint)));
        from = i + 1;
    }
    WEFT__JINJA_TRY(weft__jinja_put_slice(c, &b, s, from, s->len));
    weft__jinja_val v;
    WEFT__JINJA_TRY(weft__jinja_buf_finish(c, &b, &v));
    return weft__jinja_markup(c, v.u.s, 1, out);
}
