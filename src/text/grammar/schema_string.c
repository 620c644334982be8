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
    const char *key[MAX_HELD], *s[MAX_HELD];
    size_t length[MAX_HELD], n;
} held_list;

static void add_held(weft__gram_schema *c, const weft__json *schema, const char *at, const char *key, held_list *h)
{
    const weft__json *v = weft__json_get(schema, key);
    const int list = weft__json_kind_of(v) == WEFT__JSON_ARRAY;
    size_t count = list ? weft__json_size(v) : v != NULL;
    for (size_t i = 0; i < count && !weft__gram_schema_failed(c); i++) {
        const weft__json *one = list ? weft__json_at(v, i) : v;
        if (h->n == MAX_HELD) weft__gram_schema_fail(c, WEFT_LIMIT, at, key, "at most %d together", MAX_HELD);
        else if (weft__gram_schema_expression(c, at, key, one, &h->s[h->n], &h->length[h->n])) h->key[h->n++] = key;
    }
}

/* What all of them match, of at least `low` characters. The first is bounded to `bound` of them, as its expression can
 * be; or all of it is counted to `high`: -2 where that takes too many states. */
static int32_t all_held(weft__gram_schema *c, const held_list *h, const char *at, uint32_t low, uint32_t high,
                        uint32_t bound)
{
    weft__gram_part parts[MAX_HELD + 1];
    weft__gram_automaton *lengths = low ? weft__gram_schema_lengths(c, at, low, UINT32_MAX) : NULL;
    size_t n = 0;
    int32_t node = -1;
    for (size_t i = 0; i < h->n && !weft__gram_schema_failed(c); i++)
        parts[n++] = (weft__gram_part){
            weft__gram_schema_pattern(c, at, h->key[i], h->s[i], h->length[i], i ? UINT32_MAX : bound, 0), 0};
    for (size_t i = 0; i < n && high != UINT32_MAX && parts[i].language; i++)
        if (parts[i].language->n_states > HOPELESS / ((size_t)high + 1)) node = WEFT__GRAM_TOO_MANY;
    if (low) parts[n++] = (weft__gram_part){lengths, 0};
    if (node == -1 && !weft__gram_schema_failed(c)) {
        node = high == UINT32_MAX ? weft__gram_schema_common(c, at, h->key[0], parts, n)
                                  : weft__gram_schema_counted_to(c, at, h->key[0], parts, n, high);
        if (node == -1)
            weft__gram_schema_fail(c, WEFT_ARGUMENT, at, h->key[0], "no string fits all that is asked of it");
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
        weft__gram_regex_facts facts;
        int32_t node = i || bound == UINT32_MAX
                           ? weft__gram_regex(g, h->s[i], h->length[i], flags, &facts)
                           : weft__gram_regex_bounded(g, h->s[i], h->length[i], flags, bound, &facts);
        if (facts.why) return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, h->key[i], "%s", facts.why);
        if (!i) first = node;
        if (facts.min > *min) *min = facts.min;
        if (facts.max < *max) *max = facts.max;
    }
    return first;
}

/* A string that follows patterns and formats. Its characters are counted, or where that takes too many states, the
 * first expression has an end. */
static int32_t by_pattern(weft__gram_schema *c, const held_list *h, const char *at, uint32_t low, uint32_t high)
{
    weft__gram *g = weft__gram_schema_rules(c);
    uint32_t min, max, bound = UINT32_MAX;
    int32_t inside = each_held(c, h, at, WEFT__GRAM_REGEX_QUOTED, bound, &min, &max), node;
    if (weft__gram_schema_failed(c)) return -1;
    if (min >= low) low = 0;
    if (max > high) {
        if ((node = all_held(c, h, at, low, high, bound)) != WEFT__GRAM_TOO_MANY) return node;
        bound = high;
        inside = each_held(c, h, at, WEFT__GRAM_REGEX_QUOTED, bound, &min, &max);
        if (max > high && !weft__gram_schema_failed(c))
            return weft__gram_schema_fail(c, WEFT_LIMIT, at, h->key[0], WEFT__GRAM_TOO_MUCH);
    }
    if (weft__gram_schema_failed(c)) return -1;
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
        return may_spell(c, h.s[0], h.length[0])
                   ? weft__gram_schema_unmarked(c, at, h.key[0], h.s[0], h.length[0], high)
                   : node;
    return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, h.key[h.n - 1],
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
