// SPDX-License-Identifier: Apache-2.0
/* objects.h: JSON of what a server has and says of itself, as the dialects spell it: models, adapters, settings, slots,
 * tokens.
 *
 * Each function appends one object to out, with a comma in front where an object stands there already, and only reads;
 * where memory runs out, it sets out->failed. Any thread. */
#ifndef WEFT_API_OBJECTS_H
#define WEFT_API_OBJECTS_H

#include "api/prompts.h"
#include "base/text.h"

/* ---- OpenAI's: /v1/models ---- */

/* The list is begun, filled by the next two, and ended. */
void weft__api_put_models_begin(weft__strbuf *out);
void weft__api_put_models_end(weft__strbuf *out);
/* created: seconds since 1970; n_ctx: tokens of a prompt and its answer. */
/* aliases: other names of it, ended by NULL, or NULL; id itself and "*" are left out. */
void weft__api_put_model(weft__strbuf *out, const char *id, const char *const *aliases, int64_t created,
                         int32_t n_vocab, int32_t n_ctx, const weft_model_info *info);
/* What llama.cpp's router tells of a model: where it stands. */
typedef struct weft__api_model_state {
    const char *value, *path; /* "loaded"; path: NULL: not told */
    double progress;          /* while it is loading */
    const char *fault;        /* why loading it failed the last time, or NULL */
    int is_pinned;
    uint64_t n_bytes; /* of the budget; 0: none */
} weft__api_model_state;
/* The same of one of several models; info NULL: it is not there. */
void weft__api_put_model_state(weft__strbuf *out, const char *id, const char *const *aliases, int64_t created,
                               int32_t n_vocab, int32_t n_ctx, const weft_model_info *info,
                               const weft__api_model_state *state);
/* id: the adapter's name as the caller knows it; parent: the model's. */
void weft__api_put_adapter_model(weft__strbuf *out, const char *id, const char *parent, int64_t created,
                                 const weft_engine_adapter *a);

/* id: "MODEL@7"; content: its id, "": not known. */
void weft__api_put_learned_model(weft__strbuf *out, const char *id, const char *parent, int64_t created,
                                 int64_t version, const char *content);

/* id: a preset's name; parent: its model's. */
void weft__api_put_preset_model(weft__strbuf *out, const char *id, const char *parent, int64_t created);

/* ---- llama.cpp's ---- */

/* /tokenize: the ids of all prompts; with_pieces: each with its text, or with its bytes where they are no UTF-8. */
void weft__api_put_tokens(weft__strbuf *out, const weft_tokenizer *tokenizer, const weft__api_prompts *prompts,
                          int with_pieces);
/* /detokenize: {"content": text[0..n), "prompt": the same}: llama.cpp's name, and vLLM's. */
void weft__api_put_detokenized(weft__strbuf *out, const char *text, size_t n);
/* /tokenizer_info: empty texts are null. */
void weft__api_put_tokenizer_info(weft__strbuf *out, const char *bos, const char *eos, const char *chat_template);
/* {"key": text[0..n)}: of /apply-template. */
void weft__api_put_text(weft__strbuf *out, const char *key, const char *text, size_t n);
/* {"status": "ok"} */
void weft__api_put_ok(weft__strbuf *out);
/* {"success": true} */
void weft__api_put_success(weft__strbuf *out);

/* What /props shows besides the defaults of sampling. */
typedef struct weft__api_props {
    int32_t n_ctx, n_slots;
    const char *alias, *path; /* of the model */
    const char *chat_template, *bos, *eos;
    int takes_feedback, has_memories; /* of the server: what a caller may tell it */
} weft__api_props;
void weft__api_put_props(weft__strbuf *out, const weft__api_props *props);

typedef struct weft__api_slot {
    int32_t id, n_ctx;
    int guesses; /* tokens are guessed ahead of what runs there */
    int busy;
    int hidden;                                      /* the caller is told no more than the above */
    uint64_t task;                                   /* request of the engine */
    int32_t n_tokens, n_prompt, n_decoded, n_remain; /* n_remain -1: without a limit */
    const char *kv_type; /* of which type its keys and values are; NULL: nothing has run there */
    int32_t n_swaps;     /* as weft_event has them */
    uint64_t swap_bytes;
    double swap_ms;
} weft__api_slot;
void weft__api_put_slot(weft__strbuf *out, const weft__api_slot *slot);

/* What was done with slot `id` and the file: n tokens were saved or restored, in n_bytes of the file and ms. */
void weft__api_put_slot_saved(weft__strbuf *out, int32_t id, const char *filename, int32_t n, uint64_t n_bytes,
                              double ms);
void weft__api_put_slot_restored(weft__strbuf *out, int32_t id, const char *filename, int32_t n, uint64_t n_bytes,
                                 double ms);
/* filename NULL: the slot itself was emptied of n tokens. */
void weft__api_put_slot_erased(weft__strbuf *out, int32_t id, const char *filename, int32_t n);

/* An entry of /lora-adapters. */
typedef struct weft__api_adapter {
    const weft_engine_adapter *adapter;
    const char *name, *path; /* as the caller knows them */
    float scale;             /* that is set for requests that name no adapter */
    int published;           /* it is there for all callers */
    int hides_requests;      /* the caller is not told how many requests use it */
} weft__api_adapter;
void weft__api_put_adapter(weft__strbuf *out, const weft__api_adapter *a);

/* ---- vLLM's: /v1/load_lora_adapter ---- */

/* a NULL: it was unloaded again meanwhile. */
void weft__api_put_adapter_loaded(weft__strbuf *out, const char *name, const weft_engine_adapter *a);

#endif
