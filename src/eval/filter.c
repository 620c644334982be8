// SPDX-License-Identifier: Apache-2.0
/* filter.c: filters, step by step (score.h), each as lm-evaluation-harness has it. */
#include <string.h>

#include "base/alloc.h"
#include "eval/score.h"
#include "text/unicode.h"

void weft__eval_texts_free(weft__eval_texts *t)
{
    for (size_t i = 0; i < t->n; i++) weft__strbuf_free(&t->items[i]);
    weft__free(t->items);
    weft__free(t->is_none);
    *t = (weft__eval_texts){0};
}

static void keep_first(weft__eval_texts *t, size_t n)
{
    while (t->n > n) weft__strbuf_free(&t->items[--t->n]);
}

static void set(weft__strbuf *t, const char *s, size_t n)
{
    weft__strbuf v = {0};
    weft__strbuf_put(&v, s, n);
    weft__strbuf_put(&v, "", 0);
    weft__strbuf_free(t);
    *t = v;
}

static void strip(weft__strbuf *t)
{
    const char *s = t->data ? t->data : "";
    size_t n = weft__eval_without_blanks(s, t->len);
    while (n && weft__eval_begins_blank(s, n)) {
        const size_t step = (size_t)weft__utf8_length((unsigned char)*s);
        s += step ? step : 1, n -= step ? step : 1;
    }
    set(t, s, n);
}

/* ---- regex ---- */

/* Match number `wanted` of re.findall, from the end where it is negative; *at: it is there. */
static weft_status find_number(const weft__regex *regex, weft__regex_scratch *scratch, const weft__strbuf *t,
                               int64_t wanted, weft__regex_groups *out, int *is_there, weft_error *err)
{
    const char *s = t->data ? t->data : "";
    int64_t n = 0;
    *is_there = 0;
    for (int pass = 0; pass < (wanted < 0 ? 2 : 1); pass++) {
        int found = 1, was_empty = 0;
        int64_t i = 0;
        for (size_t from = 0; found; i++) {
            weft__regex_groups m;
            weft_status st = weft__regex_match(regex, scratch, s, t->len, from, was_empty, &found, &m, err);
            if (st) return st;
            if (!found) break;
            from = m.end[0];
            was_empty = m.end[0] == m.start[0];
            if ((wanted >= 0 && i == wanted) || (pass && i == n + wanted)) {
                *out = m;
                *is_there = 1;
                return WEFT_OK;
            }
        }
        n = i;
    }
    if (n)
        return weft_fail(err, WEFT_ARGUMENT, "group_select is %lld, and there are %lld matches", (long long)wanted,
                         (long long)n);
    return WEFT_OK;
}

static weft_status regex_one(const weft__eval_step *s, weft__regex_scratch *scratch, weft__strbuf *t, weft_error *err)
{
    weft__regex_groups m = {.n = 0};
    int is_there, from = 1, which = -1;
    weft_status st = find_number(s->regex, scratch, t, s->number, &m, &is_there, err);
    if (st) return st;
    if (is_there && m.n == 1) from = 0;
    /* The match, or its one group, whatever it has; of several groups the first that has something. */
    for (int g = from; is_there && g < m.n && which < 0; g++)
        if (m.n <= 2 || (m.start[g] != SIZE_MAX && m.end[g] > m.start[g])) which = g;
    if (which < 0) {
        set(t, s->fallback, strlen(s->fallback));
    } else if (m.start[which] == SIZE_MAX) {
        set(t, "", 0);
    } else {
        set(t, t->data + m.start[which], m.end[which] - m.start[which]);
    }
    if (which < 0 && !is_there) return WEFT_OK; /* the fallback of no match is not stripped */
    strip(t);
    return WEFT_OK;
}

/* ---- others ---- */

static void to_case(weft__strbuf *t, int upper)
{
    weft__strbuf v = {0};
    uint32_t cp;
    for (size_t i = 0; i < t->len;) {
        i += weft__utf8_decode(t->data + i, t->len - i, &cp, NULL);
        if (!upper) weft__unicode_put_lower(&v, cp);
        else weft__unicode_put_upper(&v, cp);
    }
    weft__strbuf_put(&v, "", 0);
    weft__strbuf_free(t);
    *t = v;
}

static void map_one(const weft__eval_step *s, weft__strbuf *t, int *is_none)
{
    const char *to = s->fallback;
    for (size_t i = 0; i < s->n_map && !*is_none; i++)
        if (strlen(s->from[i]) == t->len && !memcmp(s->from[i], t->data ? t->data : "", t->len)) to = s->to[i];
    *is_none = to == NULL;
    set(t, to ? to : "", to ? strlen(to) : 0);
}

/* The answer that most gave, of equals the one that came first. */
static void majority(weft__eval_texts *t)
{
    size_t best = 0, most = 0;
    for (size_t i = 0; i < t->n; i++) {
        size_t n = 0;
        for (size_t k = 0; k < t->n; k++)
            n += t->items[k].len == t->items[i].len && t->is_none[k] == t->is_none[i] &&
                 (!t->items[i].len || !memcmp(t->items[k].data, t->items[i].data, t->items[i].len));
        if (n > most) most = n, best = i;
    }
    const weft__strbuf first = t->items[0];
    const int none = t->is_none[0];
    t->items[0] = t->items[best], t->is_none[0] = t->is_none[best];
    t->items[best] = first, t->is_none[best] = none;
    keep_first(t, 1);
}

/* ---- the right answer, wherever it stands ---- */

static int is_word(const char *s, size_t n, size_t at)
{
    uint32_t cp;
    if (at >= n) return 0;
    weft__utf8_decode(s + at, n - at, &cp, NULL);
    return weft__unicode_is_word(cp);
}

/* The lower-case words of it stand in the text's. */
static int holds(const weft__strbuf *text, const char *s, size_t n)
{
    weft__strbuf a = {0}, b = {0};
    int found = 0;
    weft__strbuf_put(&a, text->data ? text->data : "", text->len);
    weft__strbuf_put(&b, s, n);
    to_case(&a, 0);
    to_case(&b, 0);
    for (size_t i = 0; !found && b.len && i + b.len <= a.len; i++)
        if (!memcmp(a.data + i, b.data, b.len)) {
            size_t before = i;
            while (before > 0 && ((unsigned char)a.data[--before] & 0xc0) == 0x80) {
            }
            found = (i == 0 || !is_word(a.data, a.len, before) || !is_word(b.data, b.len, 0)) &&
                    !is_word(a.data, a.len, i + b.len);
        }
    weft__strbuf_free(&a);
    weft__strbuf_free(&b);
    return found;
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The last number of a text, commas within it dropped; 0: there is none. */
static int last_number(const weft__strbuf *t, weft__strbuf *out)
{
    size_t end = t->len, begin;
    while (end > 0 && !is_digit(t->data[end - 1])) end--;
    if (!end) return 0;
    for (begin = end; begin > 0; begin--) {
        const char c = t->data[begin - 1];
        if (!is_digit(c) && !((c == '.' || c == ',') && begin > 1 && is_digit(t->data[begin - 2]))) break;
    }
    if (begin > 0 && t->data[begin - 1] == '-') begin--;
    for (size_t i = begin; i < end; i++)
        if (t->data[i] != ',') weft__strbuf_putc(out, t->data[i]);
    return 1;
}

static void flexible(const weft__json *golds, weft__strbuf *t)
{
    const char *s;
    size_t n;
    for (size_t i = 0; i < weft__json_size(golds); i++) {
        weft__strbuf number = {0};
        if (!weft__json_string(weft__json_at(golds, i), &s, &n) || !n) continue;
        const size_t digits = strspn(s, "-0123456789.");
        if (digits == n && last_number(t, &number)) {
            set(t, number.data, number.len);
            weft__strbuf_free(&number);
            return;
        }
        weft__strbuf_free(&number);
        if (digits == n || !holds(t, s, n)) continue;
        set(t, s, n);
        return;
    }
    strip(t);
}

static weft_status apply_one(const weft__eval_step *s, const weft__json *golds, weft__regex_scratch *scratch,
                             weft__strbuf *t, int *is_none, weft_error *err)
{
    weft_status st = WEFT_OK;
    if (s->kind == WEFT__EVAL_MAP) map_one(s, t, is_none);
    else if (s->kind == WEFT__EVAL_REGEX) *is_none = 0, st = regex_one(s, scratch, t, err);
    else if (s->kind == WEFT__EVAL_LOWER || s->kind == WEFT__EVAL_UPPER) to_case(t, s->kind == WEFT__EVAL_UPPER);
    else if (s->kind == WEFT__EVAL_STRIP) strip(t);
    else flexible(golds, t);
    return st ? st : t->failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for an answer") : WEFT_OK;
}

weft_status weft__eval_filter_apply(const weft__eval_filter *f, const weft__json *golds, weft__regex_scratch *scratch,
                                    weft__eval_texts *t, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (size_t k = 0; k < f->n_steps && t->n && !st; k++) {
        const weft__eval_step *s = &f->steps[k];
        if (s->kind == WEFT__EVAL_TAKE_FIRST) {
            keep_first(t, 1);
            t->is_one = 1;
        } else if (s->kind == WEFT__EVAL_TAKE_FIRST_K && (size_t)s->number > t->n) {
            st = weft_fail(err, WEFT_ARGUMENT, "take_first_k wants %lld answers of %zu; raise `repeats`",
                           (long long)s->number, t->n);
        } else if (s->kind == WEFT__EVAL_TAKE_FIRST_K) {
            keep_first(t, (size_t)s->number);
        } else if (s->kind == WEFT__EVAL_MAJORITY) {
            majority(t);
        } else {
            for (size_t i = 0; i < t->n && !st; i++)
                st = apply_one(s, golds, scratch, &t->items[i], &t->is_none[i], err);
        }
    }
    return st;
}
