// SPDX-License-Identifier: Apache-2.0
/* template.h: a conversation into the text a model was trained on, by the model's own template.
 *
 * The template gets the variables Hugging Face gives it: messages, tools, documents (none unless a kwarg sets it),
 * add_generation_prompt, the special tokens by name, strftime_now and raise_exception, and every kwarg under its own
 * name. Invariant: in the output, what came from messages, tools and kwargs is marked as the user's, with one
 * exception: the role of a message is ours when it is one of the well-known words, since templates build special tokens
 * out of roles. A compiled template may be used by several threads at once. */
#ifndef WEFT_TEXT_CHAT_TEMPLATE_H
#define WEFT_TEXT_CHAT_TEMPLATE_H

#include "text/jinja/jinja.h"

typedef struct weft__chat_template weft__chat_template;

/* A special token as the template knows it: {"bos_token", "<s>"}. */
typedef struct weft__chat_token {
    const char *name, *text;
} weft__chat_token;

typedef struct weft__chat_request {
    const weft__json *messages; /* an array of objects */
    const weft__json *tools;    /* an array, or NULL */
    const weft__json *kwargs;   /* an object, or NULL; may replace special tokens, but none of the other variables */
    int add_generation_prompt;
    /* with add_generation_prompt: the last message, the assistant's, is what the answer begins with */
    int continue_last;
    const weft__chat_token *tokens;
    size_t n_tokens;
    int64_t now;                      /* Unix seconds for strftime_now */
    int allow_mutation;               /* see weft__jinja_allow_mutation */
    const weft__jinja_limits *limits; /* NULL: the defaults */
} weft__chat_request;

/* As weft__jinja_compile. */
weft_status weft__chat_template_create(const char *source, size_t n, weft__chat_template **out, weft_error *err);
void weft__chat_template_destroy(weft__chat_template **t);

/* As weft__jinja_reads. */
int weft__chat_template_reads(const weft__chat_template *t, const char *variable);

/* What it calls enable_thinking, or NULL (thinking.h). */
const struct weft__chat_thinking_name *weft__chat_template_thinking(const weft__chat_template *t);

/* thinking.c: variables as weft__chat_kwargs_normal has them, and where they name enable_thinking, what the template
 * calls that, unless they name it too. Fails likewise. */
weft_status weft__chat_template_kwargs(const weft__chat_template *t, const weft__json *kwargs, weft__json **out,
                                       weft_error *err);

/* A variable that these kwargs would set and must not, or NULL. */
const char *weft__chat_template_taken(const weft__json *kwargs);

/* As weft__jinja_render; WEFT_ARGUMENT also for messages, tools or kwargs that are not of the shape above. On success
 * the caller frees *out with weft__jinja_output_free. */
weft_status weft__chat_template_render(const weft__chat_template *t, const weft__chat_request *request,
                                       weft__jinja_output *out, weft_error *err);

#endif
