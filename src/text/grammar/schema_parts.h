// SPDX-License-Identifier: Apache-2.0
/* schema_parts.h: what the files that turn JSON Schema into rules share. */
#ifndef WEFT_TEXT_GRAMMAR_SCHEMA_PARTS_H
#define WEFT_TEXT_GRAMMAR_SCHEMA_PARTS_H

#include "base/json.h"
#include "text/grammar/grammar.h"

typedef struct weft__gram_schema weft__gram_schema;

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

/* Records a failure at a keyword of the schema at `at`, a JSON pointer; key NULL: of the schema itself. Returns -1. */
int32_t weft__gram_schema_fail(weft__gram_schema *c, weft_status status, const char *at, const char *key,
                               const char *format, ...) WEFT_PRINTF(5, 6);
int weft__gram_schema_failed(const weft__gram_schema *c);
weft__gram *weft__gram_schema_rules(const weft__gram_schema *c);
/* A use of the rule of what the keyword `key` of the schema at `at` holds (or its member `name`), which is compiled
 * later; so that schemas may nest and recurse. */
int32_t weft__gram_schema_use(weft__gram_schema *c, const weft__json *schema, const char *at, const char *key,
                              const char *name);
/* A count: 0 when the keyword is absent. Otherwise 1, or a failure. */
int weft__gram_schema_count(weft__gram_schema *c, const weft__json *schema, const char *at, const char *key,
                            uint32_t *out);
/* Where a local reference leads, or NULL after a failure. */
const weft__json *weft__gram_schema_follow(weft__gram_schema *c, const weft__json *ref, const char *at);
/* The types of `type` and `nullable`; all where there are none; 0 after a failure. */
unsigned weft__gram_schema_types(weft__gram_schema *c, const weft__json *schema, const char *at);

/* One value. */
int32_t weft__gram_schema_constant(weft__gram_schema *c, const weft__json *v);
/* 1: an object that names properties and says nothing of others has none. */
int weft__gram_schema_is_closed(const weft__gram_schema *c);

/* Languages of one type each, with the keywords of that type. */
int32_t weft__gram_schema_integer(weft__gram_schema *c, const weft__json *schema, const char *at);
int32_t weft__gram_schema_number(weft__gram_schema *c, const weft__json *schema, const char *at);
int32_t weft__gram_schema_string(weft__gram_schema *c, const weft__json *schema, const char *at);
int32_t weft__gram_schema_array(weft__gram_schema *c, const weft__json *schema, const char *at);
int32_t weft__gram_schema_object(weft__gram_schema *c, const weft__json *schema, const char *at);

/* 1 when no value fits both, as far as types, constants, and required members tell. */
int weft__gram_schema_disjoint(weft__gram_schema *c, const weft__json *a, const weft__json *b, const char *at,
                               int depth);
/* A new schema of what the objects of allOf and its neighbours ask together; NULL after a failure. */
weft__json *weft__gram_schema_merge(weft__gram_schema *c, const weft__json *schema, const char *at);

/* A regular expression of ECMA-262 as the inside of a JSON string, or with `plain` as the text itself: a search, as
 * JSON Schema has it. Stores how many characters match at least and at most. -1 with *why, what is not taken, or
 * after a failure of g. */
int32_t weft__gram_regex(weft__gram *g, const char *s, size_t n, int plain, uint32_t *min, uint32_t *max,
                         const char **why);

/* ---- for builders of which schemas are parts ---- */

/* Defines the rules that schemas use; once, before the first of a grammar. */
void weft__gram_schema_base(weft__gram *g);
/* Schemas within `root`, which is borrowed and where `$ref` leads; closed: as weft__gram_schema_is_closed. NULL after a
 * failure of g. Between opening and closing weft__gram_schema_use makes rules of them. */
weft__gram_schema *weft__gram_schema_open(weft__gram *g, const weft__json *root, int closed);
/* Takes over v, which lives until the schemas are closed. NULL after a failure; v NULL is one. */
const weft__json *weft__gram_schema_own(weft__gram_schema *c, weft__json *v);
/* Compiles what was used. */
void weft__gram_schema_close(weft__gram_schema **c);
/* How many keywords of a schema say something. */
size_t weft__gram_schema_n_limits(const weft__json *schema);
/* The text of a string, without its quotes and escapes; -2: any. */
int32_t weft__gram_schema_text(weft__gram_schema *c, const weft__json *schema, const char *at);

#endif
