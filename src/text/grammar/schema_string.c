// SPDX-License-Identifier: Apache-2.0
/* schema_string.c: strings of a JSON Schema as rules: patterns, formats, lengths. One thread. */
#include <stdio.h>
#include <string.h>

#include "text/grammar/build.h"
#include "text/grammar/parts.h"
#include "text/grammar/schema_parts.h"

enum {
    MAX_HELD = 8,
    HOPELESS = 4 * WEFT__GRAM_MAX_PRODUCT /* states of an expression for each character that is counted beside it */
};

/* Patterns and formats of a string: all of them hold. */
typedef struct held_list {
    weft__gram_held items[MAX_HELD];
    size_t n;
} held_list;

static void add_expression(weft__gram_schema *c, const char *at, const char *key, const weft__json *one, held_list *h)
{
    const char *s;
    size_t length, count = 0;
    if (h->n == MAX_HELD) weft__gram_schema_fail(c, WEFT_LIMIT, at, key, "at most %d together", MAX_HELD);
    else if (weft__gram_schema_expression(c, at, key, one, &s, &length))
        count = weft__gram_schema_lookaheads(c, s, length, h->items + h->n, MAX_HELD - h->n);
    for (; count; count--) h->items[h->n++].key = key;
}

static void add_held(weft__gram_schema *c, const weft__json *schema, const char *at, const char *key, held_list *h)
{
    const weft__json *v = weft__json_get(schema, key);
    const int list = weft__json_kind_of(v) == WEFT__JSON_ARRAY;
    size_t count = list ? weft__json_size(v) : v != NULL;
    for (size_t i = 0; i < count && !weft__gram_schema_failed(c); i++)
        add_expression(c, at, key, list ? weft__json_at(v, i) : v, h);
}

/* What all of them match, of at least `low` characters. The first is bounded to `bound` of them, as its expression can
 * be; or all of it is counted to `high`: WEFT__GRAM_TOO_MANY where that takes too many states. */
static int32_t all_held(weft__gram_schema *c, const held_list *h, const char *at, uint32_t low, uint32_t high,
                        uint32_t bound)
{
    weft__gram_part parts[MAX_HELD + 2];
    weft__gram_automaton *lengths = low ? weft__gram_schema_lengths(c, at, low, UINT32_MAX) : NULL;
    size_t n = 0;
    int32_t node = -1;
    int lacks = 0;
    for (size_t i = 0; i < h->n && !weft__gram_schema_failed(c); i++) {
        const weft__gram_held *x = &h->items[i]; /* what is lacked, no reader is to match */
        lacks |= x->lacked;
        parts[n++] = (weft__gram_part){
            weft__gram_schema_pattern(c, at, x->key, x->s, x->n, i ? UINT32_MAX : bound, x->lacked), x->lacked};
    }
    /* Expressions match characters as they are spelled without need of an escape: what is lacked is so, too. */
    if (lacks && !weft__gram_schema_failed(c))
        parts[n++] =
            (weft__gram_part){weft__gram_schema_pattern(c, at, h->items[0].key, "^[^]*$", 6, UINT32_MAX, 0), 0};
    for (size_t i = 0; i < n && high != UINT32_MAX && parts[i].language; i++)
        if (parts[i].language->n_states > HOPELESS / ((size_t)high + 1)) node = WEFT__GRAM_TOO_MANY;
    if (low) parts[n++] = (weft__gram_part){lengths, 0};
    if (node == -1 && !weft__gram_schema_failed(c)) {
        node = high == UINT32_MAX ? weft__gram_schema_common(c, at, h->items[0].key, parts, n)
                                  : weft__gram_schema_counted_to(c, at, h->items[0].key, parts, n, high);
        if (node == -1)
            weft__gram_schema_fail(c, WEFT_ARGUMENT, at, h->items[0].key, "no string fits all that is asked of it");
    }
    weft__gram_automaton_destroy(&lengths);
    return node;
}

/* What the first matches with these flags, of at most `bound` characters where it can be. Stores how many characters
 * what all of them match has. */
static int32_t each_held(weft__gram_schema *c, const held_list *h, const char *at, unsigned flags, uint32_t bound,
                         uint32_t *min, uint32_t *max)
{
    weft__gram *g = weft__gram_schema_rules(c);
    int32_t first = -1;
    *min = 0;
    *max = UINT32_MAX;
    for (size_t i = 0; i < h->n && !weft__gram_schema_failed(c); i++) {
        const weft__gram_held *x = &h->items[i];
        weft__gram_regex_facts facts;
        int32_t node = i || bound == UINT32_MAX ? weft__gram_regex(g, x->s, x->n, flags, &facts)
                                                : weft__gram_regex_bounded(g, x->s, x->n, flags, bound, &facts);
        if (facts.why) return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, x->key, "%s", facts.why);
        if (!i) first = node;
        if (x->lacked) continue;
        if (facts.min > *min) *min = facts.min;
        if (facts.max < *max) *max = facts.max;
    }
    return first;
}

/* Formats that can be had in fewer states are so. 0: none is. */
static int use_fewer(held_list *h)
{
    int some = 0;
    for (size_t i = 0; i < h->n; i++) {
        const char *fewer = weft__gram_schema_fewer(h->items[i].s);
        if (!fewer) continue;
        h->items[i].s = fewer;
        h->items[i].n = strlen(fewer);
        some = 1;
    }
    return some;
}

/* A string that follows patterns and formats. Its characters are counted; where that takes too many states, those of
 * fewer; or the first expression has an end. */
static int32_t by_pattern(weft__gram_schema *c, held_list *h, const char *at, uint32_t low, uint32_t high)
{
    weft__gram *g = weft__gram_schema_rules(c);
    uint32_t min, max, bound = UINT32_MAX;
    int32_t inside, node;
    for (;;) {
        inside = each_held(c, h, at, WEFT__GRAM_REGEX_QUOTED, bound, &min, &max);
        if (weft__gram_schema_failed(c)) return -1;
        if (max <= high) break;
        if (bound != UINT32_MAX) return weft__gram_schema_fail(c, WEFT_LIMIT, at, h->items[0].key, WEFT__GRAM_TOO_MUCH);
        if ((node = all_held(c, h, at, min < low ? low : 0, high, bound)) != WEFT__GRAM_TOO_MANY) return node;
        if (!use_fewer(h)) bound = high;
    }
    if (min >= low) low = 0;
    if (h->n > 1 || low || c->mark) return all_held(c, h, at, low, UINT32_MAX, bound);
    int32_t open = GRAM_TEXT("\"");
    return GRAM_SEQ(open, inside, GRAM_TEXT("\""));
}

/* minLength and maxLength; 0: neither, or a failure. */
static int read_lengths(weft__gram_schema *c, const weft__json *schema, const char *at, uint32_t *min, uint32_t *max)
{
    int bounded = weft__gram_schema_count(c, schema, at, "minLength", min);
    bounded |= weft__gram_schema_count(c, schema, at, "maxLength", max);
    if (weft__gram_schema_failed(c)) return 0;
    if (*min > *max) weft__gram_schema_fail(c, WEFT_ARGUMENT, at, "minLength", "is above maxLength");
    return bounded && !weft__gram_schema_failed(c);
}

/* An expression may have the mark in its texts: classes are to do without what it begins with (weft__gram_exclude), but
 * literal characters do not. */
static int may_spell(const weft__gram_schema *c, const char *s, size_t n)
{
    return c->mark && (memchr(s, *c->mark, n) || memmem(s, n, "\\x", 2) || memmem(s, n, "\\u", 2));
}

static void all_that_hold(weft__gram_schema *c, const weft__json *schema, const char *at, held_list *h)
{
    add_held(c, schema, at, "pattern", h);
    add_held(c, schema, at, "format", h);
}

int32_t weft__gram_schema_text(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *g = weft__gram_schema_rules(c);
    held_list h = {.n = 0};
    uint32_t low = 0, high = UINT32_MAX, min, max;
    int bounded = read_lengths(c, schema, at, &low, &high);
    all_that_hold(c, schema, at, &h);
    if (weft__gram_schema_failed(c)) return -1;
    if (!h.n) return bounded ? GRAM_REPEAT(low, high, GRAM_CLASS({0, 0x10FFFF})) : -2;
    int32_t node = each_held(c, &h, at, 0, high, &min, &max);
    if (weft__gram_schema_failed(c)) return -1;
    if (h.n == 1 && min >= low && max <= high)
        return may_spell(c, h.items[0].s, h.items[0].n)
                   ? weft__gram_schema_unmarked(c, at, h.items[0].key, h.items[0].s, h.items[0].n, high)
                   : node;
    return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, h.items[h.n - 1].key,
                                  "beside other limits of a string it is not supported for a parameter that is plain "
                                  "text; write an anchored pattern with the lengths as repetitions");
}

int32_t weft__gram_schema_string(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *g = weft__gram_schema_rules(c);
    held_list h = {.n = 0};
    uint32_t min = 0, max = UINT32_MAX;
    int bounded = read_lengths(c, schema, at, &min, &max);
    all_that_hold(c, schema, at, &h);
    if (weft__gram_schema_failed(c)) return -1;
    if (h.n) return by_pattern(c, &h, at, min, max);
    if (!bounded) return GRAM_REF(GRAM_RULE("string"));
    int32_t open = GRAM_TEXT("\""), inside = weft__gram_schema_length(g, min, max);
    return GRAM_SEQ(open, inside, GRAM_TEXT("\""));
}
