// SPDX-License-Identifier: Apache-2.0
/* schema_string.c: strings and arrays of a JSON Schema as rules: patterns, formats, lengths, counts. */
#include <stdio.h>
#include <string.h>

#include "text/grammar/build.h"
#include "text/grammar/schema_parts.h"

#define YEAR "([1-9]\\d{3}|0[1-9]\\d\\d|00[1-9]\\d|000[1-9])"
#define LEAP "(\\d\\d(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)"
#define DATE                                                                                                           \
    "(" YEAR                                                                                                           \
    "-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2[0-8]))|" LEAP         \
    "-02-29)"
#define TIME "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
#define LABEL "[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
#define OCTET "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define H "[0-9A-Fa-f]{1,4}"
#define URI_CHAR "([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"

/* Each as strict as its RFC where a reader may be (3339, 4122, 4291, 3986), in common forms where it is wide. */
static const struct {
    const char *name, *pattern;
} formats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"email", "^[A-Za-z0-9_+-]{1,32}(\\.[A-Za-z0-9_+-]{1,32}){0,2}@" LABEL "(\\." LABEL "){1,3}$"},
    {"uuid", "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"},
    {"ipv4", "^" OCTET "(\\." OCTET "){3}$"},
    {"ipv6",
     "^((" H ":){7}" H "|::|(" H ":){1,7}:|(" H ":){1,6}(:" H "){1}|(" H ":){1,5}(:" H "){1,2}|(" H ":){1,4}(:" H
     "){1,3}|(" H ":){1,3}(:" H "){1,4}|(" H ":){1,2}(:" H "){1,5}|" H ":(:" H "){1,6}|:(:" H "){1,7})$"},
    {"uri", "^[A-Za-z][A-Za-z0-9+.-]*:(//" LABEL "(\\." LABEL ")*(:\\d{1,5})?(/" URI_CHAR "*)*|" URI_CHAR "+(/" URI_CHAR
            "*)*)(\\?(" URI_CHAR "|[/?])*)?(#(" URI_CHAR "|[/?])*)?$"},
};

int weft__gram_schema_expression(weft__gram_schema *c, const char *at, const char *key, const weft__json *value,
                                 const char **s, size_t *n)
{
    if (!weft__json_string(value, s, n)) {
        weft__gram_schema_fail(c, WEFT_ARGUMENT, at, key, "must be a string");
        return 0;
    }
    if (strcmp(key, "format") != 0) return 1;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(*s, formats[i].name) != 0) continue;
        *s = formats[i].pattern;
        *n = strlen(*s);
        return 1;
    }
    weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, key,
                           "there are date, time, date-time, email, uuid, ipv4, ipv6, uri");
    return 0;
}

enum { MAX_HELD = 8 };

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

/* What all of them match, of `low` to `high` characters where that is not so anyway. */
static int32_t all_held(weft__gram_schema *c, const held_list *h, const char *at, uint32_t low, uint32_t high,
                        int counted)
{
    weft__gram_part parts[MAX_HELD + 1];
    weft__gram_automaton *lengths = counted ? weft__gram_schema_lengths(c, at, low, high) : NULL;
    size_t n = 0;
    int32_t node = -1;
    for (size_t i = 0; i < h->n && !weft__gram_schema_failed(c); i++)
        parts[n++] = (weft__gram_part){weft__gram_schema_pattern(c, at, h->key[i], h->s[i], h->length[i], 0), 0};
    if (counted) parts[n++] = (weft__gram_part){lengths, 0};
    if (!weft__gram_schema_failed(c)) {
        node = weft__gram_schema_common(c, at, h->key[0], parts, n);
        if (node < 0) weft__gram_schema_fail(c, WEFT_ARGUMENT, at, h->key[0], "no string fits all that is asked of it");
    }
    weft__gram_automaton_destroy(&lengths);
    return node;
}

/* Of each pattern and format what it matches with these flags; the last one's expression. Narrows min and max, in
 * characters. */
static int32_t each_held(weft__gram_schema *c, const held_list *h, const char *at, unsigned flags, uint32_t *min,
                         uint32_t *max)
{
    weft__gram *g = weft__gram_schema_rules(c);
    int32_t inside = -1;
    *min = 0;
    *max = UINT32_MAX;
    for (size_t i = 0; i < h->n && !weft__gram_schema_failed(c); i++) {
        weft__gram_regex_facts facts;
        inside = weft__gram_regex(g, h->s[i], h->length[i], flags, &facts);
        if (facts.why) return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, h->key[i], "%s", facts.why);
        if (facts.min > *min) *min = facts.min;
        if (facts.max < *max) *max = facts.max;
    }
    return inside;
}

/* A string that follows `pattern` and `format`. */
static int32_t by_pattern(weft__gram_schema *c, const weft__json *schema, const char *at, uint32_t low, uint32_t high)
{
    weft__gram *g = weft__gram_schema_rules(c);
    held_list h = {.n = 0};
    uint32_t min, max;
    add_held(c, schema, at, "pattern", &h);
    add_held(c, schema, at, "format", &h);
    int32_t inside = each_held(c, &h, at, WEFT__GRAM_REGEX_QUOTED, &min, &max);
    if (weft__gram_schema_failed(c)) return -1;
    int counted = min < low || max > high;
    if (h.n > 1 || counted || c->mark) return all_held(c, &h, at, low, high, counted);
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

int32_t weft__gram_schema_text(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *g = weft__gram_schema_rules(c);
    held_list h = {.n = 0};
    uint32_t low = 0, high = UINT32_MAX, min, max;
    int bounded = read_lengths(c, schema, at, &low, &high);
    add_held(c, schema, at, "pattern", &h);
    add_held(c, schema, at, "format", &h);
    if (weft__gram_schema_failed(c)) return -1;
    if (!h.n) return bounded ? GRAM_REPEAT(low, high, GRAM_CLASS({0, 0x10FFFF})) : -2;
    int32_t node = each_held(c, &h, at, 0, &min, &max);
    if (weft__gram_schema_failed(c)) return -1;
    if (h.n == 1 && min >= low && max <= high)
        return may_spell(c, h.s[0], h.length[0]) ? weft__gram_schema_unmarked(c, at, h.key[0], h.s[0], h.length[0])
                                                 : node;
    return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, h.key[h.n - 1],
                                  "beside other limits of a string it is not supported for a parameter that is plain "
                                  "text; write an anchored pattern with the lengths as repetitions");
}

int32_t weft__gram_schema_string(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *g = weft__gram_schema_rules(c);
    uint32_t min = 0, max = UINT32_MAX;
    int bounded = read_lengths(c, schema, at, &min, &max);
    if (weft__gram_schema_failed(c)) return -1;
    if (weft__json_get(schema, "pattern") || weft__json_get(schema, "format"))
        return by_pattern(c, schema, at, min, max);
    if (!bounded) return GRAM_REF(GRAM_RULE("string"));
    int32_t open = GRAM_TEXT("\""), inside = weft__gram_schema_length(g, min, max);
    return GRAM_SEQ(open, inside, GRAM_TEXT("\""));
}

/* ---- arrays ---- */

typedef struct array_parts {
    weft__gram_schema *c;
    weft__gram *g;
    const char *at;
    const weft__json *prefix, *items;
    size_t n_prefix;
} array_parts;

static int32_t element(const array_parts *a, size_t i)
{
    weft__gram *g = a->g;
    char number[24];
    snprintf(number, sizeof number, "%zu", i);
    if (i < a->n_prefix) return weft__gram_schema_use(a->c, weft__json_at(a->prefix, i), a->at, "prefixItems", number);
    return a->items ? weft__gram_schema_use(a->c, a->items, a->at, "items", NULL) : GRAM_REF(GRAM_RULE("value"));
}

static int32_t separated(const array_parts *a, size_t i)
{
    weft__gram *g = a->g;
    int32_t sign = GRAM_TEXT(","), blank = GRAM_REF(GRAM_RULE("ws"));
    return GRAM_SEQ(sign, blank, element(a, i));
}

/* Elements from i on, all of them behind others. */
static int32_t elements_from(const array_parts *a, size_t i, uint32_t min, uint32_t max)
{
    weft__gram *g = a->g;
    if (weft__gram_schema_failed(a->c)) return -1;
    if (i >= max) return GRAM_TEXT("");
    if (i >= a->n_prefix)
        return GRAM_REPEAT(min > i ? min - (uint32_t)i : 0, max == UINT32_MAX ? max : max - (uint32_t)i,
                           separated(a, i));
    int32_t first = separated(a, i), rest = elements_from(a, i + 1, min, max);
    return i < min ? GRAM_SEQ(first, rest) : GRAM_OPTIONAL(GRAM_SEQ(first, rest));
}

int32_t weft__gram_schema_array(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *g = weft__gram_schema_rules(c);
    array_parts a = {c, g, at, weft__json_get(schema, "prefixItems"), weft__json_get(schema, "items"), 0};
    uint32_t min = 0, max = UINT32_MAX;
    int open = 1;
    weft__gram_schema_count(c, schema, at, "minItems", &min);
    weft__gram_schema_count(c, schema, at, "maxItems", &max);
    if (weft__gram_schema_failed(c)) return -1;
    if (a.prefix && weft__json_kind_of(a.prefix) != WEFT__JSON_ARRAY)
        return weft__gram_schema_fail(c, WEFT_ARGUMENT, at, "prefixItems", "must be a list of schemas");
    if (a.items && weft__json_kind_of(a.items) == WEFT__JSON_ARRAY)
        return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "items", "must be one schema; lists are prefixItems");
    a.n_prefix = weft__json_size(a.prefix);
    if (a.n_prefix > 24) return weft__gram_schema_fail(c, WEFT_LIMIT, at, "prefixItems", "at most 24");
    if (weft__json_bool(a.items, &open) && !open && max > a.n_prefix) max = (uint32_t)a.n_prefix;
    if (min > max) return weft__gram_schema_fail(c, WEFT_ARGUMENT, at, "minItems", "is above what there may be");
    if (weft__json_get(schema, "uniqueItems") && weft__json_bool(weft__json_get(schema, "uniqueItems"), &open) &&
        open && max > 1)
        return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "uniqueItems", "true is not supported");
    int32_t begin = GRAM_TEXT("["), blank = GRAM_REF(GRAM_RULE("ws")), end = GRAM_TEXT("]");
    if (max == 0) return GRAM_SEQ(begin, blank, end);
    int32_t first = element(&a, 0), rest = elements_from(&a, 1, min, max), last = GRAM_REF(GRAM_RULE("ws"));
    int32_t inside = GRAM_SEQ(first, rest, last);
    return GRAM_SEQ(begin, blank, min ? inside : GRAM_OPTIONAL(inside), end);
}
