// SPDX-License-Identifier: Apache-2.0
/* schema_parts.h: what the files that turn JSON Schema into rules share. */
#ifndef WEFT_TEXT_GRAMMAR_SCHEMA_PARTS_H
#define WEFT_TEXT_GRAMMAR_SCHEMA_PARTS_H

#include "base/json.h"
#include "text/grammar/grammar.h"
#include "text/grammar/product.h"
#include "text/strings.h"

typedef struct weft__gram_schema_task {
    int32_t rule;
    const weft__json *schema;
    char *at;
} weft__gram_schema_task;

/* What all schemas of a grammar may still take. */
typedef struct weft__gram_schema_budget {
    size_t language_work; /* on languages */
    size_t n_steps;       /* of comparing schemas, and values with them */
} weft__gram_schema_budget;
#define WEFT__GRAM_SCHEMA_BUDGET                                                                                       \
    {                                                                                                                  \
        WEFT__GRAM_LANGUAGE_WORK, 1 << 20                                                                              \
    }

typedef struct weft__gram_schema {
    weft__gram *g;
    const weft__json *root;
    weft__strings contents; /* of schemas that have a rule */
    int32_t *rules;         /* [n_rules] of contents */
    size_t n_rules, rules_capacity, n_bytes;
    weft__gram_schema_task *tasks;
    size_t n_tasks, tasks_capacity;
    weft__json **owned; /* schemas that were put together */
    size_t n_owned, owned_capacity;
    weft__strings looked_for; /* references that are no places, and what they mean; NULL: nothing */
    const weft__json **found;
    size_t found_capacity;
    weft__strings annotations;    /* words that are no keywords, and none is meant by them */
    weft__strings language_names; /* of patterns */
    weft__gram_automaton **languages;
    size_t languages_capacity;
    weft__gram_schema_budget *budget; /* borrowed */
    int closed;                       /* objects that name properties and say nothing of others have none */
    int any_order;                    /* members stand in any, not in the schema's */
    int unsigned_too; /* whole numbers beyond int64 may be written, which who reads calls does not take */
    int conditional;  /* conditions were put together: some alternatives may have no value */
    int probing;      /* whether some have one, so deep in members */
    int superset;     /* schemas are put together to be compared: rather too much fits them than too little */
    const char *mark; /* which no string may have in it, or NULL */
    weft__gram_automaton *marked;     /* strings with it; made when first needed */
    weft__gram_automaton *characters; /* any number of them and of quotes; likewise */
} weft__gram_schema;

/* Types of JSON, as bits. A number may be whole; an integer is. */
enum {
    WEFT__GRAM_NULL_TYPE = 1,
    WEFT__GRAM_BOOLEAN_TYPE = 2,
    WEFT__GRAM_INTEGER_TYPE = 4,
    WEFT__GRAM_NUMBER_TYPE = 8,
    WEFT__GRAM_STRING_TYPE = 16,
    WEFT__GRAM_ARRAY_TYPE = 32,
    WEFT__GRAM_OBJECT_TYPE = 64,
    WEFT__GRAM_ALL_TYPES = 127
};

/* ---- schema_place.c ---- */

/* Records a failure at a keyword of the schema at `at`, a JSON pointer; key NULL: of the schema itself. Returns -1. */
int32_t weft__gram_schema_fail(weft__gram_schema *c, weft_status status, const char *at, const char *key,
                               const char *format, ...) WEFT_PRINTF(5, 6);
/* Where a local reference leads, or NULL after a failure. */
const weft__json *weft__gram_schema_follow(weft__gram_schema *c, const weft__json *ref, const char *at);
/* Appends '/' and the name of a member to a JSON pointer. */
void weft__gram_schema_put_key(weft__strbuf *t, const char *key);

/* ---- schema.c ---- */

/* Alternatives a and b of oneOf may both fit a value. */
void weft__gram_schema_overlap(weft__gram_schema *c, const char *at, size_t a, size_t b);
int weft__gram_schema_failed(const weft__gram_schema *c);
weft__gram *weft__gram_schema_rules(const weft__gram_schema *c);
/* A use of the rule of what the keyword `key` of the schema at `at` holds (or its member `name`), which is compiled
 * later; so that schemas may nest and recurse. */
int32_t weft__gram_schema_use(weft__gram_schema *c, const weft__json *schema, const char *at, const char *key,
                              const char *name);
/* A count: 0 when the keyword is absent. Otherwise 1, or a failure. */
int weft__gram_schema_count(weft__gram_schema *c, const weft__json *schema, const char *at, const char *key,
                            uint32_t *out);
/* The types of `type`, and with the first function of `nullable`; all where there are none; 0 after a failure. */
unsigned weft__gram_schema_types(weft__gram_schema *c, const weft__json *schema, const char *at);
unsigned weft__gram_schema_own_types(weft__gram_schema *c, const weft__json *schema, const char *at);
const char *weft__gram_schema_type_name(unsigned bit);
/* Counts the bytes of a schema that is put together; fails when all of them are too many. */
void weft__gram_schema_account(weft__gram_schema *c, const weft__json *schema, const char *at);
/* Counts a step of comparing. 0 after a failure: there were too many. */
int weft__gram_schema_step(weft__gram_schema *c, const char *at);
int weft__gram_schema_steps(weft__gram_schema *c, size_t n, const char *at);
/* Keeps a schema that was put together as long as c lives; takes it. NULL after a failure. */
const weft__json *weft__gram_schema_keep(weft__gram_schema *c, weft__json *schema);
int weft__gram_schema_is_nullable(const weft__json *schema);
/* The expression of a schema without combinations. */
int32_t weft__gram_schema_flat(weft__gram_schema *c, const weft__json *flat, const char *at);

/* ---- schema_keywords.c ---- */

/* Reads our own switch, at the root. 0 after a failure. */
int weft__gram_schema_read_order(weft__gram_schema *c);
/* How many keywords there are of each kind: that say nothing, combine, choose, limit. Refuses those that cannot be held
 * to, and what is nearly spelled as one; other unknown ones say nothing. */
enum { WEFT__GRAM_SAYS_NOTHING, WEFT__GRAM_COMBINES, WEFT__GRAM_CHOOSES, WEFT__GRAM_LIMITS };
int weft__gram_schema_count_keywords(weft__gram_schema *c, const weft__json *schema, const char *at, int n[4]);
/* The same, and what only schemas that were put together may have is refused, too. */
int weft__gram_schema_check_keywords(weft__gram_schema *c, const weft__json *schema, const char *at, int n[4]);
/* 1 when the keyword chooses or limits; and when it says nothing of the value, itself or beside another. */
int weft__gram_schema_limits(const weft__json_member *m);
int weft__gram_schema_says_nothing(const weft__json_member *m);
/* 1 for a schema that no value fits: false, or as some write it, {"not": {}}. */
int weft__gram_schema_is_false(const weft__json *v);
/* How many keywords of a schema say something. */
size_t weft__gram_schema_n_limits(const weft__json *schema);

/* ---- schema_constant.c ---- */

/* enum and const: those of the values that are valid under what stands beside them. */
int32_t weft__gram_schema_constants(weft__gram_schema *c, const weft__json *schema, const char *at);
/* Appends a string as JSON, without the mark in it: its first character is escaped. */
void weft__gram_schema_write(const weft__gram_schema *c, weft__strbuf *out, const char *s, size_t n);

/* ---- a language of each type, with the keywords of that type ---- */

int32_t weft__gram_schema_integer(weft__gram_schema *c, const weft__json *schema, const char *at);
int32_t weft__gram_schema_number(weft__gram_schema *c, const weft__json *schema, const char *at);
/* What a number is bounded by, from below where `up`, itself left out where `exclusive`; NULL: nothing. Draft 4 says
 * with true or false whether `minimum` is exclusive. */
const weft__json *weft__gram_schema_bound(const weft__json *schema, int up, int exclusive);
int32_t weft__gram_schema_string(weft__gram_schema *c, const weft__json *schema, const char *at);
int32_t weft__gram_schema_array(weft__gram_schema *c, const weft__json *schema, const char *at);
int32_t weft__gram_schema_object(weft__gram_schema *c, const weft__json *schema, const char *at);
/* The elements that come first, each with its schema, and what others hold: prefixItems and items, or in older drafts a
 * list of items and additionalItems. NULL: none, and anything. */
typedef struct weft__gram_schema_elements {
    const weft__json *first, *others;
    const char *first_key, *others_key;
} weft__gram_schema_elements;
weft__gram_schema_elements weft__gram_schema_elements_of(const weft__json *schema);
/* The text of a string, without its quotes and escapes; -2: any. */
int32_t weft__gram_schema_text(weft__gram_schema *c, const weft__json *schema, const char *at);
/* schema_formats.c: the expression of a `pattern`, or with the key "format" of that format. 0: there is none, any
 * string is one; or a failure. */
int weft__gram_schema_expression(weft__gram_schema *c, const char *at, const char *key, const weft__json *value,
                                 const char **s, size_t *n);

/* Of a format's expression, as that function stores it, one that matches some of the same strings and takes fewer
 * states; NULL: there is none. */
const char *weft__gram_schema_fewer(const char *expression);

/* An expression that a string follows, or lacks; `key`: where it stands. */
typedef struct weft__gram_held {
    const char *key, *s;
    size_t n;
    int lacked;
} weft__gram_held;
/* schema_lookahead.c: what a pattern asks: itself, or behind look-ahead at its beginning the rest and each of that. How
 * many they are, at least 1 and at most `most`; 0 after a failure. */
size_t weft__gram_schema_lookaheads(weft__gram_schema *c, const char *s, size_t n, weft__gram_held *out, size_t most);

/* So many characters of a string, max UINT32_MAX: no limit (schema_length.c). */
int32_t weft__gram_schema_length(weft__gram *g, uint32_t min, uint32_t max);

/* ---- schema_merge.c, schema_fits.c, schema_apart.c ---- */

/* A new array of schemas without combinations, of which one fits each value that the schema fits; NULL after a failure.
 * The words `type`, `pattern` and `format` may have lists. */
weft__json *weft__gram_schema_flatten(weft__gram_schema *c, const weft__json *schema, const char *at);
/* 1 when the value is valid under the schema, for all readers of patterns; with the second function, one of its enum.
 * 0 also after a failure. */
int weft__gram_schema_fits(weft__gram_schema *c, const weft__json *schema, const weft__json *v, const char *at);
int weft__gram_schema_allows(weft__gram_schema *c, const weft__json *schema, const weft__json *v, const char *at);
/* 1 when some reader of patterns may find the value valid. 0 also after a failure. */
int weft__gram_schema_may_fit(weft__gram_schema *c, const weft__json *schema, const weft__json *v, const char *at);
/* Reads a number exactly, also where 64 bits do not fit into a double. 0: it is none. */
int weft__gram_schema_exactly(const weft__json *v, long double *out);
/* 1 when both are the same value; 1 and 1.0 are. */
int weft__gram_schema_same(const weft__json *a, const weft__json *b);
/* 1 when no value fits both, as far as types, constants, bounds, patterns, lengths and required members tell. */
int weft__gram_schema_disjoint(weft__gram_schema *c, const weft__json *a, const weft__json *b, const char *at,
                               int depth);

/* Put a new value into an object or an array, which take it; a failure of c when it is NULL, as without memory. */
void weft__gram_schema_set(weft__gram_schema *c, weft__json *object, const char *key, weft__json *value);
void weft__gram_schema_append(weft__gram_schema *c, weft__json *array, weft__json *value);
/* Each of `list` put together with each of `more`; takes both. */
weft__json *weft__gram_schema_each(weft__gram_schema *c, weft__json *list, weft__json *more, const char *at);
void weft__gram_schema_set_types(weft__gram_schema *c, weft__json *flat, unsigned types);
/* schema_possible.c: leaves out types of which no value fits. 0: there is none left. */
int weft__gram_schema_keep_possible(weft__gram_schema *c, weft__json *flat, const char *at);
/* schema_conditions.c: what each of `list`, which is taken, asks together with the schema's `not`, `if` and what
 * depends on members. */
weft__json *weft__gram_schema_conditions(weft__gram_schema *c, weft__json *list, const weft__json *schema,
                                         const char *at, int depth);
/* What each schema of `list` (NULL: nothing) asks together with another one, as that function has it. */
weft__json *weft__gram_schema_beside(weft__gram_schema *c, const weft__json *list, const weft__json *schema,
                                     const char *at, int depth);
/* schema_negate.c: new schemas of which one fits each value that the schema does not fit. NULL after a failure at
 * `key`; key NULL: also where it cannot be said, which is none. */
weft__json *weft__gram_schema_negated(weft__gram_schema *c, const weft__json *schema, const char *at, const char *key);
/* schema_one_of.c: alternatives of the schema's oneOf as those of an anyOf: each is valid, for no value that is written
 * of one fits another. `beside`: what else is asked, without combinations, or NULL. They live as long as c and the
 * schema. NULL after a failure. */
const weft__json *weft__gram_schema_exclusive(weft__gram_schema *c, const weft__json *schema, const char *at,
                                              const weft__json *beside, int depth);

#define WEFT__GRAM_TOO_MUCH "it takes too much to be held together with what stands beside it"

/* ---- schema_language.c: languages of JSON strings, quotes included; NULL after a failure ---- */

/* weft__gram_common, with a failure at `key` where it needs too many states. */
int32_t weft__gram_schema_common(weft__gram_schema *c, const char *at, const char *key, const weft__gram_part *parts,
                                 size_t n);
/* The same of at most so many characters, quotes aside; WEFT__GRAM_TOO_MANY without a failure. */
int32_t weft__gram_schema_counted_to(weft__gram_schema *c, const char *at, const char *key,
                                     const weft__gram_part *parts, size_t n, uint32_t most);
/* 1 when no text is of both. */
int weft__gram_schema_nothing_common(weft__gram_schema *c, const char *at, const weft__gram_automaton *a,
                                     const weft__gram_automaton *b);
/* Of a regular expression, which stands at `key`, with at most `most` characters where weft__gram_regex_bounded can;
 * lives as long as c. */
const weft__gram_automaton *weft__gram_schema_pattern(weft__gram_schema *c, const char *at, const char *key,
                                                      const char *s, size_t n, uint32_t most, int wide);
/* The texts of an expression, bounded likewise, as plain text, that do not have the mark in them. */
int32_t weft__gram_schema_unmarked(weft__gram_schema *c, const char *at, const char *key, const char *s, size_t n,
                                   uint32_t most);
/* 1 when s[0..n) matches a pattern, or a format; 0 also after a failure. */
int weft__gram_schema_matches(weft__gram_schema *c, const char *at, const char *key, const weft__json *pattern,
                              const char *s, size_t n, int wide);
/* The caller destroys the others. Of strings of so many characters, of all strings as JSON's writers spell them, of
 * some (at least one), and of the strings among schemas without combinations. */
weft__gram_automaton *weft__gram_schema_lengths(weft__gram_schema *c, const char *at, uint32_t min, uint32_t max);
weft__gram_automaton *weft__gram_schema_any_name(weft__gram_schema *c, const char *at);
/* Names of class `number` of n: by the character that they begin with, or by their length. */
weft__gram_automaton *weft__gram_schema_name_class(weft__gram_schema *c, const char *at, uint32_t number, uint32_t n,
                                                   int by_length);
weft__gram_automaton *weft__gram_schema_texts(weft__gram_schema *c, const char *at, const char *const *names,
                                              const size_t *lengths, size_t n);
weft__gram_automaton *weft__gram_schema_strings(weft__gram_schema *c, const weft__json *schema, const char *at);

/* ---- for builders of which schemas are parts ---- */

/* Schemas within `root`, where `$ref` leads, in a grammar that has the rules of JSON; root and budget are borrowed.
 * closed, mark: as the members of these names. The mark is kept out of strings that follow patterns, and of names; what
 * it begins with the caller takes out of the rule `plain`. NULL after a failure of g. Between opening and closing
 * weft__gram_schema_use makes rules of them. */
weft__gram_schema *weft__gram_schema_open(weft__gram *g, const weft__json *root, int closed, const char *mark,
                                          weft__gram_schema_budget *budget);
/* Compiles what was used. */
void weft__gram_schema_close(weft__gram_schema **c);

#endif
