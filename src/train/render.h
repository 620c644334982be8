// SPDX-License-Identifier: Apache-2.0
/* render.h: a record to the tokens that a model sees, and which of them it learns.
 *
 * Conversations go through the model's own chat template, as they do when the model is served: tools are shown as
 * weft_chat_open_for_tools shows them; a record with thoughts of the assistant's (reasoning_content, reasoning or
 * thinking of a message, or text before the template's mark of their end) is one with thinking, any other one with
 * enable_thinking false. Turn by turn, what the assistant says is tokenized apart from the prompt before it, as it is
 * when the model answers, and is what is learned, up to and with the token that ends it. Prompts and answers that are
 * strings are a turn of the user and one of the assistant; where there is no template, a text that goes on, and lists
 * of messages go through the one that stands in for it (text/chat/stand_in.h). Invariant:
 * the same record gives the same tokens everywhere and at all times (templates that ask for the date are told
 * 2026-01-01). A renderer may be shared by threads. */
#ifndef WEFT_TRAIN_RENDER_H
#define WEFT_TRAIN_RENDER_H

#include "text/answer/format.h"
#include "text/chat/messages.h"
#include "text/chat/tokens.h"
#include "train/record.h"

typedef struct weft__train_template {
    weft__chat_template *t;
    weft__chat_arguments_form arguments; /* of calls, as it wants them */
    int functions;                       /* it knows "function_call" */
} weft__train_template;

typedef struct weft__train_renderer {
    const weft__tok *tok;
    weft__train_template own;
    int stands_in;                           /* for one that the model lacks */
    weft__train_template tools;              /* for records with tools; t NULL: as `own` */
    weft_error no_tools;                     /* with a status: why there is none for them */
    weft__tok_slice source;                  /* of the template */
    const weft__answer_reasoning *reasoning; /* of its answers, or NULL */
    weft__chat_token names[WEFT__CHAT_TOKENS];
    size_t n_names;
} weft__train_renderer;

/* `source`[0..n): a chat template instead of the tokenizer's own, or NULL. It and the
 * tokenizer are borrowed. */
weft_status weft__train_renderer_init(weft__train_renderer *r, const weft__tok *tok, const char *source, size_t n,
                                      weft_error *err);
void weft__train_renderer_free(weft__train_renderer *r);

/* Tokens, and for each whether it is learned. Zero-initialise. */
typedef struct weft__train_rendered {
    weft__tok_ids ids;
    uint8_t *learn; /* [ids.n] */
    size_t learn_capacity;
    int stood_in; /* some went through the template that stands in for the model's */
} weft__train_rendered;
void weft__train_rendered_free(weft__train_rendered *out);

/* Appends a text as it is embedded: as the server reads the input of /v1/embeddings, BOS where the vocabulary has one,
 * and nothing that is spelled in it is a special token. */
weft_status weft__train_render_embedded(const weft__train_renderer *r, const char *text, size_t n,
                                        weft__train_rendered *out, weft_error *err);
/* Appends the record's tokens; of a pair those with the chosen answer, or with `rejected` the others. Once a
 * conversation has more than `most` tokens its later turns are left out, unread: each answer renders all that stands
 * before it, so a long one would take the square of its turns. Roles are those that weft serve takes, and those that
 * the template spells as strings. Text begins with BOS and ends with EOS where the vocabulary has them, and is learned
 * as a whole. Fails with WEFT_ARGUMENT (the template refuses the record), WEFT_FORMAT (a role), WEFT_UNSUPPORTED (a
 * template that rewrites earlier turns), WEFT_NO_MEMORY, and as encoding does; *out keeps what it had before then. */
weft_status weft__train_render(const weft__train_renderer *r, const weft__train_record *record, int rejected,
                               size_t most, weft__train_rendered *out, weft_error *err);
/* The same for text[0..n), in which control tokens are parsed: training files are trusted. */
weft_status weft__train_render_text(const weft__train_renderer *r, const char *text, size_t n,
                                    weft__train_rendered *out, weft_error *err);

#endif
