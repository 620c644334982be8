// SPDX-License-Identifier: Apache-2.0
/* calls.h: answers that are calls of functions, as a model's format writes them (text/answer/format.h), as rules:
 * what the parser of answers takes as calls, with arguments that are valid under the functions' schemas. Members
 * that a schema neither names nor speaks of are left out. */
#ifndef WEFT_TEXT_GRAMMAR_CALLS_H
#define WEFT_TEXT_GRAMMAR_CALLS_H

#include "base/json.h"
#include "text/grammar/thoughts.h"

typedef struct weft__gram_calls_spec {
    weft__answer_style style;
    const weft__json *tools; /* an array, as OpenAI has it */
    const char *name;        /* of the only function, or NULL: any */
    int parallel;            /* several calls may follow each other */
    int lenient;             /* 1: functions that are not `strict` take any object */
    weft__gram_thinking thinking;
    /* 1 and the rule of g that an answer without calls follows, behind which g was told apart (weft__gram_apart); 0:
     * there are no such answers. */
    int32_t form;
} weft__gram_calls_spec;

enum { WEFT__GRAM_MAX_TOOLS = 4096 };

/* Adds the rules to g, which has its vocabulary, and returns the root. Failures stay in g and name the tool:
 * WEFT_ARGUMENT for what is no tool, or a name that is none of theirs; WEFT_UNSUPPORTED for what the format cannot
 * write or a schema that cannot be held to. */
int32_t weft__gram_calls(weft__gram *g, const weft__gram_calls_spec *spec);
/* Whether such calls have a beginning that tells them from texts: 0 where they are only JSON, and no function is
 * strict. */
int weft__gram_calls_tell(const weft__gram_calls_spec *spec);
/* The rule, in a grammar of its own, of what such calls begin with, those that are told from texts. */
int32_t weft__gram_calls_begin(weft__gram *g, const weft__gram_calls_spec *spec);

#endif
