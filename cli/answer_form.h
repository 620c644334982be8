// SPDX-License-Identifier: Apache-2.0
/* answer_form.h: what answers are held to, for the commands that hold them: the options, and the grammar they make. */
#ifndef WEFT_CLI_ANSWER_FORM_H
#define WEFT_CLI_ANSWER_FORM_H

#include "options.h"
#include "weft/text.h"

/* One of these at most is set. */
typedef struct answer_form {
    const char *grammar, *schema; /* files */
    const char *regex, *choices;
    int json_object;
} answer_form;

/* `what` is held: "the text is", "answers are". */
#define ANSWER_FORM_OPTIONS(form, what)                                                                                \
    {"grammar", 0,                                                                                                     \
     OPT_TEXT,  &(form)->grammar,                                                                                      \
     "FILE",    what " held to the grammar in FILE: EBNF as Lark has it where its name ends in .lark, else GBNF",      \
     0,         0,                                                                                                     \
     NULL},                                                                                                            \
        {"schema", 0, OPT_TEXT, &(form)->schema, "FILE", what " JSON that is valid under the JSON Schema in FILE",     \
         0,        0, NULL},                                                                                           \
        {"regex", 0, OPT_TEXT, &(form)->regex, "RE", what " what matches RE, all of it", 0, 0, NULL},                  \
        {"choices", 0,                                                                                                 \
         OPT_TEXT,  &(form)->choices,                                                                                  \
         "LIST",    what " one of LIST: words with commas between them, or a JSON array of strings",                   \
         0,         0,                                                                                                 \
         NULL},                                                                                                        \
    {                                                                                                                  \
        "json-object", 0, OPT_FLAG, &(form)->json_object, NULL, what " one JSON object", 0, 0, NULL                    \
    }

/* 0 after a message: two of them exclude each other, an expression or a word of a list is empty. */
int answer_form_check(const char *command, const answer_form *form);
/* What is complete when an answer ends by itself: "the JSON object"; NULL: there is no form. */
const char *answer_form_text(const answer_form *form);
/* The grammar; NULL without a form. Messages name the file or the option. */
weft_status answer_form_grammar(const answer_form *form, const weft_tokenizer *tokenizer, weft_grammar **out,
                                weft_error *err);

#endif
