// SPDX-License-Identifier: Apache-2.0
/* schema_keywords.c: the keywords of a JSON Schema: which say nothing of the value, combine, choose or limit. Unknown
 * ones are annotations, as the standard has it; but not those of the standard (of any draft) that limit values and are
 * not held to, nor what is nearly spelled as one that is: both are refused by their place. Stateless. */
#include <string.h>

#include "base/near.h"
#include "text/grammar/schema_parts.h"

enum {
    SAYS_NOTHING = WEFT__GRAM_SAYS_NOTHING,
    COMBINES = WEFT__GRAM_COMBINES,
    CHOOSES = WEFT__GRAM_CHOOSES,
    LIMITS = WEFT__GRAM_LIMITS,
    REFUSED /* where it says something */
};
#define ORDER "x-weft-order"

static const struct {
    const char *name;
    int kind;
} keywords[] = {
    /* Known so that they are near to no other. */
    {"title", SAYS_NOTHING},
    {"description", SAYS_NOTHING},
    {"default", SAYS_NOTHING},
    {"examples", SAYS_NOTHING},
    {"$schema", SAYS_NOTHING},
    {"$id", SAYS_NOTHING},
    {"$comment", SAYS_NOTHING},
    {"$defs", SAYS_NOTHING},
    {"definitions", SAYS_NOTHING},
    {"$anchor", SAYS_NOTHING},
    {"deprecated", SAYS_NOTHING},
    {"readOnly", SAYS_NOTHING},
    {"writeOnly", SAYS_NOTHING},
    {"contentEncoding", SAYS_NOTHING},
    {"contentMediaType", SAYS_NOTHING},
    {"contentSchema", SAYS_NOTHING},
    {"example", SAYS_NOTHING},
    {ORDER, SAYS_NOTHING},           /* read when the schema is opened */
    {"discriminator", SAYS_NOTHING}, /* but how alternatives of oneOf are told apart */
    {"minContains", SAYS_NOTHING},   /* beside `contains`, which is refused */
    {"maxContains", SAYS_NOTHING},
    {"then", SAYS_NOTHING}, /* beside `if` */
    {"else", SAYS_NOTHING},
    {"$ref", COMBINES},
    {"anyOf", COMBINES},
    {"oneOf", COMBINES},
    {"allOf", COMBINES},
    {"dependentRequired", COMBINES},
    {"dependentSchemas", COMBINES},
    {"dependencies", COMBINES},
    {"enum", CHOOSES},
    {"const", CHOOSES},
    {"type", LIMITS},
    {"nullable", LIMITS},
    {"properties", LIMITS},
    {"required", LIMITS},
    {"additionalProperties", LIMITS},
    {"patternProperties", LIMITS},
    {"propertyNames", LIMITS},
    {"minProperties", LIMITS},
    {"maxProperties", LIMITS},
    {"pattern", LIMITS},
    {"format", LIMITS},
    {"minLength", LIMITS},
    {"maxLength", LIMITS},
    {"items", LIMITS},
    {"prefixItems", LIMITS},
    {"additionalItems", LIMITS}, /* of older drafts */
    {"minItems", LIMITS},
    {"maxItems", LIMITS},
    {"uniqueItems", LIMITS},
    {"minimum", LIMITS},
    {"maximum", LIMITS},
    {"exclusiveMinimum", LIMITS},
    {"exclusiveMaximum", LIMITS},
    {"multipleOf", LIMITS},
    {"contains", REFUSED},
    {"unevaluatedProperties", REFUSED},
    {"unevaluatedItems", REFUSED},
    {"$dynamicRef", REFUSED},
    {"$recursiveRef", REFUSED},
    {"extends", REFUSED},
    {"disallow", REFUSED},
    {"divisibleBy", REFUSED},
    {"not", COMBINES}, /* words that are near to these mean something else */
    {"if", COMBINES},
};
enum { N_KEYWORDS = sizeof keywords / sizeof *keywords };

/* Our own switch, at the root alone. */
int weft__gram_schema_read_order(weft__gram_schema *c)
{
    const weft__json *order = weft__json_get(c->root, ORDER);
    c->any_order = weft__json_is(order, "any");
    if (!order || c->any_order || weft__json_is(order, "schema")) return 1;
    weft__gram_schema_fail(c, WEFT_ARGUMENT, "#", ORDER, "must be \"schema\" or \"any\"");
    return 0;
}

/* N_KEYWORDS: it is none of them. */
static size_t find_keyword(const char *name)
{
    size_t i = 0;
    while (i < N_KEYWORDS && strcmp(name, keywords[i].name) != 0) i++;
    return i;
}

/* Schemas of which every value is valid, and what is refused only where it says something. */
static int asks_nothing(const char *key, const weft__json *v)
{
    int yes = 0;
    if (!strcmp(key, "uniqueItems")) return weft__json_bool(v, &yes) && !yes;
    if (!strncmp(key, "unevaluated", 11))
        return (weft__json_bool(v, &yes) && yes) || (weft__json_kind_of(v) == WEFT__JSON_OBJECT && !weft__json_size(v));
    return !strncmp(key, "depend", 6) && weft__json_kind_of(v) == WEFT__JSON_OBJECT && !weft__json_size(v);
}

static int kind_of_keyword(const weft__json_member *m)
{
    size_t i = find_keyword(m->key);
    return i == N_KEYWORDS || asks_nothing(m->key, m->value) ? SAYS_NOTHING : keywords[i].kind;
}

int weft__gram_schema_is_false(const weft__json *v)
{
    const weft__json *lacked = weft__json_get(v, "not");
    int yes = 1;
    if (weft__json_bool(v, &yes) && !yes) return 1;
    return (weft__json_bool(lacked, &yes) && yes) ||
           (weft__json_kind_of(lacked) == WEFT__JSON_OBJECT && !weft__json_size(lacked));
}

int weft__gram_schema_says_nothing(const weft__json_member *m)
{
    static const char *const others[] = {"then", "else", "discriminator"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(m->key, others[i])) return 0;
    return kind_of_keyword(m) == SAYS_NOTHING;
}

int weft__gram_schema_limits(const weft__json_member *m)
{
    int kind = kind_of_keyword(m);
    return kind == CHOOSES || kind == LIMITS;
}

static const char *name_of_keyword(const void *arg, size_t i)
{
    (void)arg;
    return i < N_KEYWORDS && keywords[i].kind != REFUSED ? keywords[i].name : NULL; /* and nothing behind those */
}

/* What a word that is no keyword was meant to be: one that holds values to something; NULL: nothing. Each word is asked
 * for once, and so many of them. */
static const char *meant(weft__gram_schema *c, const char *word)
{
    enum { MOST = 1000 };
    const size_t n = strlen(word);
    if (find_keyword(word) < N_KEYWORDS || !strncmp(word, "x-", 2) || c->annotations.n >= MOST) return NULL;
    if (weft__strings_find(&c->annotations, word, n) >= 0) return NULL;
    const char *near = weft__near_match(word, name_of_keyword, NULL);
    if (near && keywords[find_keyword(near)].kind != SAYS_NOTHING) return near;
    if (!weft__strings_add(&c->annotations, word, n, 1))
        weft__gram_fail(c->g, WEFT_NO_MEMORY, "no memory for a grammar");
    return NULL;
}

/* 0 after a failure. */
static int check_keyword(weft__gram_schema *c, const weft__json_member *m, const char *at)
{
    const char *near = meant(c, m->key);
    int yes;
    if (kind_of_keyword(m) == REFUSED)
        weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, m->key, "this keyword is not supported");
    else if (near)
        weft__gram_schema_fail(c, WEFT_ARGUMENT, at, m->key,
                               "there is no such keyword; write '%s', or begin it with 'x-'", near);
    else if (!strcmp(m->key, ORDER) && strcmp(at, "#") != 0)
        weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, m->key, "stands at the root of a schema alone");
    else if (!strcmp(m->key, "nullable") && !weft__json_bool(m->value, &yes))
        weft__gram_schema_fail(c, WEFT_ARGUMENT, at, m->key, "must be true or false");
    return !weft__gram_schema_failed(c);
}

int weft__gram_schema_count_keywords(weft__gram_schema *c, const weft__json *schema, const char *at, int n[4])
{
    weft__json_member m = {0};
    memset(n, 0, 4 * sizeof *n);
    while (weft__json_next(schema, &m)) {
        if (!check_keyword(c, &m, at)) return 0;
        n[kind_of_keyword(&m)]++;
    }
    return 1;
}

int weft__gram_schema_check_keywords(weft__gram_schema *c, const weft__json *schema, const char *at, int n[4])
{
    static const char *const strings[] = {"pattern", "format"};
    for (size_t i = 0; i < 2; i++) {
        const weft__json *v = weft__json_get(schema, strings[i]);
        if (!v || weft__json_kind_of(v) == WEFT__JSON_STRING) continue;
        weft__gram_schema_fail(c, WEFT_ARGUMENT, at, strings[i], "must be a string");
        return 0;
    }
    return weft__gram_schema_count_keywords(c, schema, at, n);
}

size_t weft__gram_schema_n_limits(const weft__json *schema)
{
    weft__json_member m = {0};
    size_t n = 0;
    while (weft__json_kind_of(schema) == WEFT__JSON_OBJECT && weft__json_next(schema, &m))
        n += kind_of_keyword(&m) != SAYS_NOTHING;
    return n;
}
