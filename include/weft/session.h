// SPDX-License-Identifier: Apache-2.0
/* session.h: one sequence of tokens, and how tokens are sampled. */
#ifndef WEFT_SESSION_H
#define WEFT_SESSION_H

#include "weft/adapter.h"
#include "weft/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sessions: one sequence of tokens and its keys and values ---- */

typedef struct weft_session weft_session;
typedef struct weft_sampler weft_sampler;

typedef struct weft_session_params {
    uint32_t size;
    uint32_t kv_dtype; /* of which type keys and values are; WEFT_F16 (default): weft_kv_type_parse */
    int32_t n_ctx;     /* tokens; 0: the model's own, at most 4096 */
    int32_t chunk;     /* rows per step while a prompt is read; 0: the model's max_rows */
    /* A smaller model of the same vocabulary (weft_draft_fits) that guesses tokens for weft_generate, with pages of its
     * own. It outlives the session. NULL: none */
    weft_model *draft;
} weft_session_params;

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_session_params_default(weft_session_params *params);
WEFT_API void weft_session_params_init(weft_session_params *params, uint32_t size);
#define weft_session_params_default(params) weft_session_params_init(params, sizeof *(params))
/* With pages, and memory for steps of its own, of which steps touch as much as their rows need. Fails with WEFT_LIMIT,
 * which names the number, when n_ctx is above weft_model_info.n_ctx_max; WEFT_ARGUMENT, WEFT_NO_MEMORY. */
WEFT_API weft_status weft_session_new(weft_model *model, const weft_session_params *params, weft_session **out,
                                      weft_error *err);
/* With its pages and its memory for steps; those of a group go with the last session of it. */
WEFT_API void weft_session_free(weft_session **session);
/* Tokens that it holds now. */
WEFT_API int32_t weft_session_n_tokens(const weft_session *session);
/* Tokens that it can hold. */
WEFT_API int32_t weft_session_n_ctx(const weft_session *session);

/* Appends n tokens, n >= 1. logits: room for [n, V] floats with all_logits, else [V] for the last token; NULL: none
 * wanted. Fails with WEFT_LIMIT when the context is full, WEFT_CANCELLED after weft_session_cancel; the session then
 * holds the tokens of the steps that were completed. */
WEFT_API weft_status weft_session_eval(weft_session *session, const int32_t *tokens, int32_t n, int all_logits,
                                       float *logits, weft_error *err);
/* Forgets all but the first n tokens, as far as their state is still there; returns how many are kept (<= n). */
WEFT_API int32_t weft_session_trim(weft_session *session, int32_t n);
/* n sessions over one pool of pages and one memory for steps, so that they can be stepped together. Each is freed on
 * its own. */
WEFT_API weft_status weft_session_new_group(weft_model *model, const weft_session_params *params, int32_t n,
                                            weft_session **out, weft_error *err);
/* One step for n different sessions of one group: appends tokens[i] to sessions[i]; logits: [n, V] or NULL. The
 * result of each is bit for bit that of weft_session_eval. On failure no session has changed. Fails with
 * WEFT_ARGUMENT when a session is there twice or of another group. */
WEFT_API weft_status weft_session_eval_group(weft_session *const *sessions, const int32_t *tokens, int32_t n,
                                             float *logits, weft_error *err);
/* From now on the session's tokens are computed with a weighted stack of adapters (adapter.h), which may be closed
 * afterwards; n 0: with none. Only while the session holds no tokens: WEFT_STATE. Fails with WEFT_ARGUMENT (an
 * adapter fits no matrix of the model, or a weight is not finite), WEFT_LIMIT (ranks together), WEFT_UNSUPPORTED
 * (provider; DoRA over a compiled plan without the weights), WEFT_NO_MEMORY; the session is then as before. */
WEFT_API weft_status weft_session_set_adapters(weft_session *session, const weft_adapter_use *uses, int32_t n,
                                               weft_error *err);
/* After weft_sampler_pick failed, as *err says, on logits [V] of the session: tells in *err of the session's
 * adapters, by their paths, where a logit is NaN, as a scale far too large leaves it; without adapters the model's
 * file is to blame, WEFT_INTERNAL. Returns err->status. */
WEFT_API weft_status weft_session_blame(const weft_session *session, const float *logits, weft_error *err);
/* Makes a running or the next weft_session_eval stop before its next step. Callable from a signal handler or any
 * thread. */
WEFT_API void weft_session_cancel(weft_session *session);

/* ---- sampling ----
 * Order: nameless ids are left out, then logit bias, then penalties (repeat, presence, frequency) over the last
 * penalty_last_n tokens; temperature 0 picks the largest logit (the lowest id of equals); otherwise top-k, top-p,
 * min-p on the untempered distribution, then temperature, and one uniform draw. The same seed and logits give the
 * same token on every machine with the same kernels. */
typedef struct weft_logit_bias {
    int32_t token;
    float bias; /* added; -INFINITY forbids */
} weft_logit_bias;

typedef struct weft_sampler_params {
    uint32_t size;
    float temperature; /* >= 0; 0 greedy; default 0.8 */
    int32_t top_k;     /* 0: off; default 40 */
    float top_p;       /* 1: off; default 0.95 */
    float min_p;       /* 0: off; default 0.05 */
    /* 1: off. Divides positive, multiplies negative logits of tokens seen (Keskar et al. 2019) */
    float repeat_penalty;
    float presence_penalty;  /* 0: off. Subtracted once from tokens seen */
    float frequency_penalty; /* 0: off. Subtracted per occurrence */
    int32_t penalty_last_n;  /* 0: off, -1: all; default 64 */
    int32_t n_bias;
    const weft_logit_bias *bias; /* copied */
    uint64_t seed;
    int32_t seed_given; /* 0: take one from the system's entropy */
    int32_t n_nameless;
    /* [n_nameless] ids that only a bias above 0 lets be picked (weft_tokenizer_nameless); copied. Engines know those
     * of their model */
    const int32_t *nameless;
} weft_sampler_params;

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_sampler_params_default(weft_sampler_params *params);
WEFT_API void weft_sampler_params_init(weft_sampler_params *params, uint32_t size);
#define weft_sampler_params_default(params) weft_sampler_params_init(params, sizeof *(params))
/* Parameters out of range are refused by name. */
WEFT_API weft_status weft_sampler_new(int32_t n_vocab, const weft_sampler_params *params, weft_sampler **out,
                                      weft_error *err);
/* The same for a model: of its vocabulary, and with its ids that have no text as `nameless`, whatever params say of
 * these. */
WEFT_API weft_status weft_sampler_for(const weft_model *model, const weft_sampler_params *params, weft_sampler **out,
                                      weft_error *err);
/* It is of no session, and may outlive them. */
WEFT_API void weft_sampler_free(weft_sampler **sampler);
WEFT_API uint64_t weft_sampler_seed(const weft_sampler *sampler); /* the seed in use */
/* Tells the sampler of a token that is part of the text (the prompt's too), for penalties. */
WEFT_API weft_status weft_sampler_accept(weft_sampler *sampler, int32_t token, weft_error *err);
/* Picks a token from logits [V], which it may change. Does not accept it. Fails with WEFT_ARGUMENT when no token has
 * a finite or +infinite logit (NaN everywhere, or all forbidden). */
WEFT_API weft_status weft_sampler_pick(weft_sampler *sampler, float *logits, int32_t *token, weft_error *err);

/* ---- generating: tokens from a session, as text ---- */

typedef enum weft_finish {
    WEFT_FINISH_END = 0,    /* an end token, which is no event of its own, or a complete grammar */
    WEFT_FINISH_LENGTH = 1, /* max_tokens, or a prompt without an answer */
    WEFT_FINISH_STOP = 2,   /* a stop string, or the function of the program said so */
    WEFT_FINISH_CANCELLED = 3,
    WEFT_FINISH_FAILED = 4
} weft_finish;

/* What guesses tokens ahead, so that one step may bring several. A guess becomes a row of the next step, and the
 * sampler runs at each as it would have without: so the tokens, and their log-probabilities, are those without guesses,
 * bit for bit, at every temperature. How many are tried is decided by how often they were right and by what rows
 * cost. */
enum weft_spec {
    WEFT_SPEC_OFF = 0,    /* none (default) */
    WEFT_SPEC_AUTO = 1,   /* all drafters that there are */
    WEFT_SPEC_SUFFIX = 2, /* what followed where a text ended alike, and what the caller predicts */
    WEFT_SPEC_DRAFT = 3   /* a draft model alone */
};
/* May a draft model guess for the model? WEFT_ARGUMENT tells by name why not: their vocabularies differ. *gain (or
 * NULL): times as many tokens in the same time as it should bring, by what their steps read; it is not worth it where
 * that is not above 1. Outlines will do. */
WEFT_API weft_status weft_draft_fits(const weft_model *model, const weft_model *draft, double *gain, weft_error *err);
/* Tokens of one draft at most. */
#define WEFT_DRAFT_MAX 16

/* A token, and the text that became certain with it. What it points to lives for the call. */
typedef struct weft_generated {
    uint32_t size;
    int32_t token; /* -1: no further token, but text that was held back */
    /* [length] whole characters of UTF-8, NUL-terminated; nothing while a character is incomplete, or what is there may
     * become a stop string; nothing of an end token */
    const char *text;
    size_t length;
} weft_generated;

/* Non-zero: stop (WEFT_FINISH_STOP). */
typedef int (*weft_generate_fn)(void *arg, const weft_generated *piece);

typedef struct weft_generate_params {
    uint32_t size;
    int32_t n_tokens;
    /* [n_tokens] evaluated first, behind what the session holds, and told to the sampler; one at least */
    const int32_t *tokens;
    int32_t max_tokens;        /* to generate, an end token included; -1: until the context is full (default) */
    int32_t ignore_end;        /* 1: go on after an end token, unless a matcher ends with it */
    weft_matcher *matcher;     /* the grammar that the text follows, at its place; it moves on. NULL: none */
    const char *const *stops;  /* the text ends before the first of these; NULL-terminated, none is empty; NULL: none */
    uint32_t detok_flags;      /* weft_detok_flags */
    int32_t spec;              /* weft_spec: guesses from what the session's calls have read and written, and below */
    weft_generate_fn callback; /* for each token, on the thread of the call; NULL: none */
    void *arg;
    /* 1: where the context is full, of the prompt already, the text goes on, with max_tokens -1 too: the first n_keep
     * tokens that the session holds (0: 4) and the last ones, half a context together, are read anew, at their new
     * places, and all between them is left out. 0: it ends */
    int32_t shift;
    int32_t n_keep; /* at most half of the context */
    /* [n_predicted] what the text will be for the most part, which is guessed where spec is auto or suffix; borrowed
     * for the call. NULL: nothing is predicted */
    const int32_t *predicted;
    int32_t n_predicted;
} weft_generate_params;

typedef struct weft_generate_result {
    uint32_t size;
    weft_finish finish;
    int32_t n_generated; /* tokens, an end token included */
    int32_t stop;        /* index of the stop string that ended the text; -1: none */
    double prompt_ms, generate_ms;
    int32_t n_shifts, n_dropped;   /* how often the context was full, and the tokens that were left out since */
    int32_t n_drafted, n_accepted; /* tokens that were guessed and tried; those of them that were right */
} weft_generate_result;

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_generate_params_default(weft_generate_params *params);
WEFT_API void weft_generate_params_init(weft_generate_params *params, uint32_t size);
#define weft_generate_params_default(params) weft_generate_params_init(params, sizeof *(params))
/* Evaluates the tokens, then picks, accepts (penalties and the grammar advance) and evaluates token after token until
 * one ends the text, a stop string is complete, max_tokens are there, the context is full, or the callback says so. The
 * last token is not evaluated. *result, size set by the caller, or NULL, is filled on failure, too. After
 * weft_session_cancel it succeeds with WEFT_FINISH_CANCELLED. Fails with WEFT_ARGUMENT (parameters), WEFT_UNSUPPORTED
 * (a model without tokenizer), WEFT_LIMIT (the tokens do not fit), and as weft_sampler_pick and weft_matcher_apply do.
 * For the session's thread. */
WEFT_API weft_status weft_generate(weft_session *session, weft_sampler *sampler, const weft_generate_params *params,
                                   weft_generate_result *result, weft_error *err);

#ifdef __cplusplus
}
#endif
#endif
