// SPDX-License-Identifier: Apache-2.0
/* schema_string.c: strings and arrays of a JSON Schema as rules: patterns, formats, lengths, counts. */
#include <stdio.h>
#include <string.h>

#include "text/grammar/build.h"
#include "text/grammar/schema_parts.h"

enum { WRITTEN_OUT = 512 }; /* characters of a bounded string that are not calls */

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

/* The inside of a string that follows `pattern`, or the one of `format`. */
static int32_t by_pattern(weft__gram_schema *c, const weft__json *schema, const char *at, uint32_t low, uint32_t high,
                          int plain)
{
    weft__gram *g = weft__gram_schema_rules(c);
    const weft__json *pattern = weft__json_get(schema, "pattern"), *format = weft__json_get(schema, "format");
    const char *s = NULL, *why = NULL, *key = pattern ? "pattern" : "format";
    size_t n = 0;
    uint32_t min, max;
    if (pattern && format)
        return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "format", "is not supported beside pattern");
    if (!weft__json_string(pattern ? pattern : format, &s, &n))
        return weft__gram_schema_fail(c, WEFT_ARGUMENT, at, key, "must be a string");
    for (size_t i = 0; format && i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(s, formats[i].name)) {
            s = formats[i].pattern;
            n = strlen(s);
            break;
        } else if (i + 1 == sizeof formats / sizeof *formats) {
            return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, key,
                                          "there are date, time, date-time, email, uuid, ipv4, ipv6, uri");
        }
    int32_t node = weft__gram_regex(g, s, n, plain, &min, &max, &why);
    if (why) return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, key, "%s", why);
    if (min < low || max > high)
        return weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, min < low ? "minLength" : "maxLength",
                                      "beside %s, which allows other lengths, it is not supported; write the lengths "
                                      "as repetitions of an anchored pattern",
                                      key);
    return node;
}

static int32_t quoted(weft__gram *g, int32_t inside)
{
    int32_t open = GRAM_TEXT("\"");
    return GRAM_SEQ(open, inside, GRAM_TEXT("\""));
}

/* minLength and maxLength; 0: neither, or a failure. */
static int read_lengths(weft__gram_schema *c, const weft__json *schema, const char *at, uint32_t *min, uint32_t *max)
{
    int bounded = weft__gram_schema_count(c, schema, at, "minLength", min);
    bounded |= weft__gram_schema_count(c, schema, at, "maxLength", max);
    if (*min > *max) weft__gram_schema_fail(c, WEFT_ARGUMENT, at, "minLength", "is above maxLength");
    return bounded && !weft__gram_schema_failed(c);
}

int32_t weft__gram_schema_text(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *g = weft__gram_schema_rules(c);
    uint32_t min = 0, max = UINT32_MAX;
    int bounded = read_lengths(c, schema, at, &min, &max);
    if (weft__gram_schema_failed(c)) return -1;
    if (weft__json_get(schema, "pattern") || weft__json_get(schema, "format"))
        return by_pattern(c, schema, at, min, max, 1);
    return bounded ? GRAM_REPEAT(min, max, GRAM_CLASS({0, 0x10FFFF})) : -2;
}

int32_t weft__gram_schema_string(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *g = weft__gram_schema_rules(c);
    uint32_t min = 0, max = UINT32_MAX;
    int bounded = read_lengths(c, schema, at, &min, &max);
    if (weft__gram_schema_failed(c)) return -1;
    if (weft__json_get(schema, "pattern") || weft__json_get(schema, "format"))
        return quoted(g, by_pattern(c, schema, at, min, max, 0));
    if (!bounded) return GRAM_REF(GRAM_RULE("string"));
    int32_t item;
    if ((max == UINT32_MAX ? min : max) > WRITTEN_OUT) {
        int32_t one = GRAM_RULE("one char");
        if (!weft__gram_defined(g, one)) weft__gram_define(g, one, GRAM_REF(GRAM_RULE("char")));
        weft__gram_call(g, one);
        item = GRAM_REF(one);
    } else {
        item = GRAM_REF(GRAM_RULE("char"));
    }
    return quoted(g, GRAM_REPEAT(min, max, item));
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
