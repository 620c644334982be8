/* generate.h: tokens from a session, as text, until something ends it. Used by every command that writes text. */
#ifndef WEFT_CLI_GENERATE_H
#define WEFT_CLI_GENERATE_H

#include <stddef.h>

#include "options.h"
#include "weft/weft.h"

/* Called with each piece of text that is certain to belong to the answer. Returning non-zero stops the generation. */
typedef int (*generate_sink)(void *arg, const char *text, size_t n);

typedef struct generate_request {
    weft_model *model;
    weft_session *session;
    weft_sampler *sampler;
    weft_matcher *matcher; /* the grammar that the text follows, from its beginning; NULL: none */
    const int32_t *prompt; /* to be evaluated first */
    int32_t n_prompt;
    int continues;  /* the text goes on where the prompt's ended: a space that it begins with is part of it */
    int32_t n_max;  /* tokens; -1: until the context is full */
    int ignore_end; /* go on after an end token, unless the grammar ends with it */
    const struct text_list *stop;
    generate_sink sink; /* may be NULL */
    void *sink_arg;
} generate_request;

typedef struct generate_result {
    int32_t *tokens; /* [n_tokens] generated, an end token included; free() */
    int32_t n_tokens;
    char *text; /* NUL-terminated, without the stop string; free() */
    size_t n_text;
    const char *finish_reason; /* "stop" (end token, end of the grammar or stop string), "length", "cancelled" */
    double prefill_ms, decode_ms;
} generate_result;

/* On failure the result holds what there was until then; free it in any case. */
weft_status generate(const generate_request *request, generate_result *result, weft_error *err);
void generate_result_free(generate_result *result);

/* From now on SIGINT cancels `session` (once; a second one ends the process). NULL gives SIGINT back its usual meaning. */
void generate_cancel_on_interrupt(weft_session *session);

#endif
