// SPDX-License-Identifier: Apache-2.0
/* answer_form.h: what answers are held to, for the commands that hold them: the options, and the grammar they make. */
#ifndef WEFT_CLI_ANSWER_FORM_H
#define WEFT_CLI_ANSWER_FORM_H

#include "generate.h"
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
/* That the text or answer (`what`) ends before the form is complete, why, and what helps. */
weft_status answer_form_broken_off(const answer_form *form, const char *what, const generate_result *r,
                                   weft_error *err);

/* What a grammar is compiled of, and what it stands for; of an answer_form of zeros: nothing. */
typedef struct answer_form_source {
    const answer_form *form;
    uint32_t kind; /* weft_grammar_kind */
    char *text;    /* [n], or NULL; owned */
    size_t n;
} answer_form_source;

/* Zero-initialise. `form` outlives it. Messages name the file or the option, here and below. */
weft_status answer_form_read(const answer_form *form, answer_form_source *out, weft_error *err);
void answer_form_source_free(answer_form_source *source);
/* The number of what may stand before it in the answer to this prompt (weft_chat_form_lead); a grammar of --grammar is
 * on all of it. */
int32_t answer_form_lead(const answer_form_source *source, const weft_chat_prompt *prompt);
/* The grammar; NULL without a form. prompt: whose answer is held to it (weft_chat_form), or NULL. */
weft_status answer_form_compile(const answer_form_source *source, const weft_tokenizer *tokenizer,
                                const weft_chat_prompt *prompt, weft_grammar **out, weft_error *err);

#endif
