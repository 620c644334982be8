// SPDX-License-Identifier: Apache-2.0
/* calls_parts.h: what the files that turn calls into rules share. */
#ifndef WEFT_TEXT_GRAMMAR_CALLS_PARTS_H
#define WEFT_TEXT_GRAMMAR_CALLS_PARTS_H

#include "text/grammar/calls.h"
#include "text/grammar/schema_parts.h"

/* The function at hand. */
typedef struct weft__gram_function {
    weft__gram *g;
    const weft__answer_format *format;
    const char *name;
    size_t n_name, number;
    const weft__json *parameters; /* its schema, which says that it is an object's; NULL: any object */
    weft__gram_schema *schema;    /* open */
} weft__gram_function;

/* The node of the arguments as members one by one, in the way of the step `op`: PARAMETERS, ELEMENTS, KEYWORDS or
 * PAIRS. `space`: what stands between parameters. */
int32_t weft__gram_members(weft__gram_function *f, weft__answer_op op, const char *space);

/* A value in a text that ends at `mark` (NULL: that the format quotes in its own way). */
typedef struct weft__gram_value {
    int32_t text, json; /* as the text of a string; as JSON of another type, or of any where `mark` is NULL. -1: none */
    int any_text;       /* text is any string */
} weft__gram_value;
/* typed: the format says beside a value whether it is a string. */
weft__gram_value weft__gram_value_of(weft__gram_function *f, const weft__json *schema, const char *at, const char *mark,
                                     int typed);

#endif
