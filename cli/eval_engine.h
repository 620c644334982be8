// SPDX-License-Identifier: Apache-2.0
/* eval_engine.h: the model and the engine of weft eval task and weft eval retrieval: the options that both have, once,
 * and what is opened with them. */
#ifndef WEFT_CLI_EVAL_ENGINE_H
#define WEFT_CLI_EVAL_ENGINE_H

#include "adapters.h"
#include "kv_type.h"
#include "options.h"
#include "provider.h"
#include "rope.h"

/* Zero but for kv_type ("f16"), usual_slots, usual_ctx and queue. */
typedef struct eval_engine_options {
    const char *kv_type;
    struct text_list adapters;
    struct adapter_option adapter[LIST_MAX];
    int32_t threads, n_ctx, slots;
    int32_t usual_slots, usual_ctx; /* where nothing else is said; of the model's context at most */
    int32_t queue, spec;            /* spec: weft_spec */
    rope_options rope;
} eval_engine_options;

/* e: eval_engine_options *; ctx_help, least: of --ctx; slots_help: of --slots */
/* clang-format off */
#define EVAL_ENGINE_OPTIONS(e, ctx_help, least, slots_help)                                                           \
    {"adapter", 0, OPT_LIST, &(e)->adapters, "A", "[NAME=]PATH[:SCALE], a GGUF file or PEFT folder; may be repeated", \
     0, 0, NULL},                                                                                                      \
    {"ctx", 'c', OPT_INT, &(e)->n_ctx, "N", ctx_help, least, WEFT_CTX_MAX, NULL},                                      \
    {"slots", 0, OPT_INT, &(e)->slots, "N", slots_help, 1, WEFT_SLOTS_MAX, NULL},                                      \
    KV_TYPE_OPTION(&(e)->kv_type, "f16"),                                                                              \
    ROPE_OPTIONS(&(e)->rope),                                                                                          \
    PROVIDER_OPTION,                                                                                                   \
    {"threads", 't', OPT_INT, &(e)->threads, "THREADS", "threads (one per core)", 1, WEFT_THREADS_MAX, NULL}
/* clang-format on */

/* What was opened; zero-initialise, and free on failure, too. */
typedef struct eval_engine {
    weft_model *model;
    weft_engine *engine;
    weft_model_info info;
    int32_t n_ctx;
    weft_request_adapter adapters[LIST_MAX]; /* as many as were given */
} eval_engine;

/* Completes what was given; 0 after a message (EXIT_USAGE). */
int eval_engine_check(const char *command, eval_engine_options *o);
/* With a bar. */
weft_status eval_engine_open(eval_engine *e, const eval_engine_options *o, const char *path, weft_error *err);
void eval_engine_free(eval_engine *e);

#endif
