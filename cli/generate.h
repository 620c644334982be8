// SPDX-License-Identifier: Apache-2.0
/* generate.h: tokens from a session, as text, until something ends it. Used by every command that writes text. */
#ifndef WEFT_CLI_GENERATE_H
#define WEFT_CLI_GENERATE_H

#include <stddef.h>

#include "options.h"
#include "sample/defaults.h"
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
    int32_t spec;   /* weft_spec */
    int shift;      /* 1: go on where the context is full, with the first n_keep tokens (0: 4) and the last ones */
    int32_t n_keep;
    const struct text_list *stop;
    generate_sink sink; /* may be NULL */
    void *sink_arg;
    /* 1: this special token is part of the text, as it is spelled. May be NULL: none is. Not beside stop strings. */
    int (*shows)(const void *sink_arg, int32_t token);
} generate_request;

typedef struct generate_result {
    int32_t *tokens; /* [n_tokens] generated, an end token included; free() */
    int32_t n_tokens;
    char *text; /* NUL-terminated, without the stop string; free() */
    size_t n_text;
    const char *finish_reason; /* "stop" (end token, end of the grammar or stop string), "length", "cancelled" */
    int broken_off;            /* the grammar wants more: the text is none of its texts */
    double prefill_ms, decode_ms;
    int32_t n_drafted, n_accepted; /* tokens that were guessed; and rightly */
    int32_t n_dropped;             /* tokens that were left out as the context was full */
} generate_result;

/* On failure the result holds what there was until then; free it in any case. */
weft_status generate(const generate_request *request, generate_result *result, weft_error *err);
void generate_result_free(generate_result *result);

/* From now on SIGINT cancels `session`, unless it was ignored; a second one ends the process where SIGINT would have
 * before, and is nothing where the program had a handler of its own. NULL gives SIGINT back. */
void generate_cancel_on_interrupt(weft_session *session);

/* What becomes of a text whose context is full: options of weft run and weft chat. */
typedef struct overflow_options {
    const char *how; /* "stop", "shift"; NULL: stop */
    int32_t n_keep;
} overflow_options;

/* o: overflow_options * */
/* clang-format off */
#define OVERFLOW_OPTIONS(o)                                                                                            \
    {"overflow", 0, OPT_TEXT, &(o)->how, "HOW",                                                                        \
     "where the context is full: stop, or shift: go on with the first tokens and the last, half a context (stop)",     \
     0, 0, NULL, "stop shift"},                                                                                        \
    {"keep", 0, OPT_INT, &(o)->n_keep, "N", "first tokens that stay then (4)", 1, 1 << 24, NULL}
/* clang-format on */
int overflow_shifts(const overflow_options *o);

/* How text is sampled: options of weft run and weft chat; s: weft_sampler_params *. */
/* clang-format off */
#define SAMPLER_DEFAULT(name) " (" WEFT__SAMPLE_TEXT(name) ")"
#define SAMPLER_OPTIONS(s)                                                                                             \
    {"temp", 0, OPT_FLOAT, &(s)->temperature, "T",                                                                    \
     "temperature, 0: always the likeliest token" SAMPLER_DEFAULT(TEMPERATURE),                                       \
     0, 100, NULL},                                                                                                    \
    {"top-k", 0, OPT_INT, &(s)->top_k, "K", "only the K likeliest, 0: off" SAMPLER_DEFAULT(TOP_K), 0, 1 << 30, NULL},  \
    {"top-p", 0, OPT_FLOAT, &(s)->top_p, "P", "only the likeliest that sum to P, 1: off" SAMPLER_DEFAULT(TOP_P),       \
     OPTION_ABOVE_0, 1, NULL},                                                                                         \
    {"min-p", 0, OPT_FLOAT, &(s)->min_p, "P",                                                                          \
     "only those with P times the largest probability, 0: off" SAMPLER_DEFAULT(MIN_P), 0, 1, NULL},                    \
    {"repeat-penalty", 0, OPT_FLOAT, &(s)->repeat_penalty, "R",                                                        \
     "divides the logits of tokens seen, 1: off" SAMPLER_DEFAULT(REPEAT_PENALTY), OPTION_ABOVE_0, OPTION_FINITE, NULL},\
    {"presence-penalty", 0, OPT_FLOAT, &(s)->presence_penalty, "P",                                                    \
     "subtracted from tokens seen" SAMPLER_DEFAULT(PRESENCE_PENALTY), -OPTION_FINITE, OPTION_FINITE, NULL},            \
    {"frequency-penalty", 0, OPT_FLOAT, &(s)->frequency_penalty, "F",                                                  \
     "subtracted per occurrence" SAMPLER_DEFAULT(FREQUENCY_PENALTY), -OPTION_FINITE, OPTION_FINITE, NULL},             \
    {"penalty-last-n", 0, OPT_INT, &(s)->penalty_last_n, "N",                                                          \
     "tokens the penalties look back, -1: all" SAMPLER_DEFAULT(PENALTY_LAST_N), -1, 1 << 30, NULL},                    \
    {"seed", 0, OPT_SEED, &(s)->seed, "S", "makes the result repeatable (random)", 0, 0, &(s)->seed_given}
/* clang-format on */

#endif
