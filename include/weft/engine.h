// SPDX-License-Identifier: Apache-2.0
/* engine.h: many requests at once over one model. */
#ifndef WEFT_ENGINE_H
#define WEFT_ENGINE_H

#include "weft/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- engine: many requests at once over one model ----
 * An engine owns a thread that steps the model: a row for each request that generates, and chunks of prompts beside
 * them. Requests come from any thread. Results arrive as events on the engine's thread: an event function must not
 * block and must not call the engine, except weft_engine_submit, weft_engine_cancel and weft_engine_finish. Its steps
 * take turns with those of others that step its model, unless this has one thread. Same answer, always: a request's
 * tokens do not depend on what runs beside it, on chunks, on what was cached or on preemption. */
typedef struct weft_engine weft_engine;

/* The most of each that an engine takes; a model whose steps have fewer rows takes fewer slots. */
#define WEFT_SLOTS_MAX 128
#define WEFT_CTX_MAX (1 << 24)
#define WEFT_QUEUE_MAX (1 << 15)

/* Types of keys and values of one engine at most; and in a request: that of the engine. */
#define WEFT_KV_TYPES_MAX 8
#define WEFT_KV_OF_ENGINE 0xFFFFFFFFu

/* As many rows of prompts beside others as keep steps to their time (steady_ms). */
#define WEFT_CHUNK_AUTO (-1)

typedef struct weft_engine_params {
    uint32_t size;
    uint32_t kv_dtype; /* of which type keys and values are; WEFT_F16 (default): weft_kv_type_parse */
    int32_t n_slots;   /* requests that run at once; 0: 16 */
    /* tokens of one request at most, prompt included; 0: the model's own, at most 4096 */
    int32_t n_ctx;
    /* tokens that all pages together hold; 0: n_slots * n_ctx, but at most half of the memory that is free;
     * WEFT_NO_MEMORY where they would take more than that memory */
    int64_t n_kv_tokens;
    int32_t step_rows;       /* rows of one step at most; 0: the model's max_rows */
    int32_t chunk;           /* rows of prompts in one step at most while others decode; 0: 128; WEFT_CHUNK_AUTO */
    int32_t max_queue;       /* requests that wait at most; 0: 256 */
    int32_t isolate_tenants; /* 1: prefixes are shared within a tenant only */
    const char *store_dir;   /* folder in which prefixes and saved slots outlive the process; NULL: none */
    uint64_t store_bytes;    /* its cap; 0: 4 GiB */
    const char *trace;       /* file for a Chrome trace of steps and ops; NULL: none */
    uint64_t adapter_bytes;  /* of adapters ready to be used, at most; 0: 1 GiB */
    /* in which they are kept: WEFT_ADAPTER_AUTO (default), WEFT_Q8_0, WEFT_Q4_0, WEFT_BF16, WEFT_F32 */
    uint32_t adapter_dtype;
    /* how long a slot, a request whose pages are swapped, and the engine's end wait for a disk that does not answer; 0:
     * 30,000 */
    uint32_t disk_wait_ms;
    /* 1: weights and pages stay in memory from their first use on; WEFT_LIMIT where RLIMIT_MEMLOCK does not allow it */
    int32_t lock_memory;
    uint64_t kv_bytes; /* as weft_engine_limit_pages, from the start on; 0: no limit */
    int32_t spec;      /* weft_spec (session.h) */
    int32_t swap;      /* weft_swap; without a store nothing is swapped */
    /* of the store's cap, for pages of requests that gave way; 0: a quarter of it, which is the most */
    uint64_t swap_bytes;
    /* how long a step should take while others decode, ms: rows of prompts become as many as fit into it, up to chunk
     * (0: all that a step has). 0: they are `chunk` whatever that takes; with WEFT_CHUNK_AUTO: 100 */
    int32_t steady_ms;
    /* 1: the model is an outline, and the engine shows whether one could be made so: it takes adapters and no requests
     * (WEFT_STATE), and opens no store and no trace; a server of it starts. 0: WEFT_STATE for an outline */
    int32_t rehearsal;
    /* A smaller model of the same vocabulary (weft_draft_fits) that guesses tokens, where spec is WEFT_SPEC_AUTO or
     * WEFT_SPEC_DRAFT; with pages of its own for n_kv_tokens. It outlives the engine. NULL: none */
    weft_model *draft;
    /* [n_kv_types] types that requests may have instead of kv_dtype (weft_request_params.kv_dtype); copied. All of them
     * share the memory that n_kv_tokens tokens of kv_dtype take. A step reads the weights once, of whatever types its
     * requests are; where a plugin computes attention that takes one type in a step, once for each of them */
    const uint32_t *kv_types;
    int32_t n_kv_types, reserved_kv;
} weft_engine_params;

/* Whether the pages of a request that gives its place up go to the store's folder, and come back from it, instead of
 * being computed again. AUTO: where reading them is measured to take less time. No answer depends on it. */
enum weft_swap { WEFT_SWAP_AUTO = 0, WEFT_SWAP_OFF = 1, WEFT_SWAP_ALWAYS = 2 };

/* Where a guess was found. SUFFIX: in the request's prompt and answer, and in finished answers of its tenant under its
 * adapters. PREDICTION: in what the request said the answer would be. FORCED: its `insert`, or text
 * that its grammar leaves no choice about, as the tokenizer spells it (the model may pick other tokens of the same
 * bytes). MODEL: what a draft model would have gone on with. */
enum weft_drafter {
    WEFT_DRAFTER_SUFFIX = 0,
    WEFT_DRAFTER_PREDICTION = 1,
    WEFT_DRAFTER_FORCED = 2,
    WEFT_DRAFTER_MODEL = 3
};
#define WEFT_DRAFTERS 4
/* "suffix", "prediction", "forced", "model"; "?" for another. */
WEFT_API const char *weft_drafter_name(int32_t drafter);

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_engine_params_default(weft_engine_params *params);
WEFT_API void weft_engine_params_init(weft_engine_params *params, uint32_t size);
#define weft_engine_params_default(params) weft_engine_params_init(params, sizeof *(params))
/* The model outlives the engine. Fails with WEFT_ARGUMENT (a parameter, by name), WEFT_NO_MEMORY, WEFT_LIMIT (n_ctx
 * above the model's n_ctx_max, pages), WEFT_IO (store, trace), WEFT_STATE (another process has the store). */
WEFT_API weft_status weft_engine_new(weft_model *model, const weft_engine_params *params, weft_engine **out,
                                     weft_error *err);

/* Bytes of memory that an engine takes beside its model, and what it makes of its parameters. */
typedef struct weft_engine_bytes {
    uint32_t size;
    int32_t n_slots, n_ctx;
    int32_t kv_pages;
    int64_t n_kv_tokens;
    uint64_t pages;        /* of keys and values, when all pages are used */
    uint64_t scratch;      /* activations and logits, as weft_engine_stats counts them before a request runs */
    uint64_t weights;      /* the model's, as weft_engine_stats counts them */
    uint64_t scratch_most; /* with as many requests as there are slots */
    uint64_t pages_least;  /* of one request that fills its context */
} weft_engine_bytes;
/* Of an engine that is not made: of an outline, too. Fails as weft_engine_new does for a parameter. out->size set by
 * the caller. */
WEFT_API weft_status weft_engine_count_bytes(const weft_model *model, const weft_engine_params *params,
                                             weft_engine_bytes *out, weft_error *err);
/* Pages take so many bytes at most from now on, but always as many as one request of n_ctx tokens needs. What goes
 * beyond is given back to the system as requests end, cached prefixes at once: stats.kv_limit_bytes tells what holds
 * now. From any thread; does not wait. */
WEFT_API void weft_engine_limit_pages(weft_engine *engine, uint64_t n_bytes);
/* Adapters that are ready take so many bytes at most from now on, but always as many as params.adapter_bytes, which is
 * what one may take. Those that no request uses go at once, those in use as requests end. From any thread. */
WEFT_API void weft_engine_limit_adapters(weft_engine *engine, uint64_t n_bytes);
/* The model that it is of. From any thread. */
WEFT_API weft_model *weft_engine_model(const weft_engine *engine);
/* The types that its requests may have, that of the engine first; how many. From any thread. */
WEFT_API int32_t weft_engine_kv_types(const weft_engine *engine, uint32_t out[WEFT_KV_TYPES_MAX]);
/* From what it guesses tokens: weft_spec (session.h). From any thread. */
WEFT_API int32_t weft_engine_spec(const weft_engine *engine);
/* Cancels what runs (each request gets its last event), waits for the thread, and for the store to write what it
 * has, as long as the disk does something: after disk_wait_ms without that, what is left is given up, and logged. */
WEFT_API void weft_engine_free(weft_engine **engine);

typedef struct weft_token_prob {
    int32_t token;
    float logprob;
} weft_token_prob;

enum weft_event_kind {
    WEFT_EVENT_BEGAN = 0,        /* left the queue */
    WEFT_EVENT_PROMPT_TOKEN = 1, /* in order, from the first token on, which has no log-probability (NAN) */
    WEFT_EVENT_TOKEN = 2,
    WEFT_EVENT_EMBEDDING = 3,
    WEFT_EVENT_FINISHED = 4, /* exactly once for each accepted request, the last */
    WEFT_EVENT_READ = 5      /* of a request that wants them: a step has read n_read tokens of the prompt, in all */
};

/* What it points to lives for the call. */
typedef struct weft_event {
    uint32_t size;
    uint32_t kind; /* weft_event_kind */
    uint64_t request;
    /* TOKEN, PROMPT_TOKEN; FINISHED where log-probabilities were asked for: the end token that ended it, with those, or
     * -1 where none did */
    int32_t token;
    /* natural, of the model's own distribution: before temperature, biases, penalties and grammar; NAN when none was
     * asked for */
    float logprob;
    const weft_token_prob *top; /* [n_top], the likeliest first of those that have a text */
    int32_t n_top;
    int32_t n_embedding;
    /* EMBEDDING: what weft_request_params.embedding makes of the prompt's hidden states; its Euclidean length is 1 */
    const float *embedding;
    int32_t n_prompt, n_cached, n_generated;
    weft_finish finish;                      /* FINISHED */
    weft_status status;                      /* FINISHED with FAILED */
    const char *message;                     /* FINISHED with FAILED */
    double queue_ms, prompt_ms, generate_ms; /* FINISHED; queue_ms from BEGAN on */
    /* tokens of the prompt whose keys and values are there, the cached ones included */
    int32_t n_read;
    /* FINISHED: where its time since BEGAN went: steps of the model that had rows of it; masks of its grammar; picking
     * tokens, with log-probabilities; its event function; waiting for its next step, and in one for others */
    double model_ms, mask_ms, sample_ms, event_ms, wait_ms;
    int32_t n_shifts, n_dropped; /* how often the context was full, and the tokens that were left out since */
    int32_t drafter;             /* TOKEN: 1 + the weft_drafter that had guessed it; 0: none */
    /* FINISHED: tokens that were guessed and tried, the right ones included; those of them from its prediction */
    int32_t n_drafted, n_predicted;
    /* how often it gave way and its pages were kept (weft_swap) */
    int32_t n_swaps;
    int32_t drafted[WEFT_DRAFTERS], accepted[WEFT_DRAFTERS]; /* FINISHED: by weft_drafter; those that were right */
    /* bytes of its pages that came back from the disk, or from their copies, since, and the time that it waited */
    uint64_t swap_bytes;
    double swap_ms;
} weft_event;

/* WEFT_EVENT_INSERT: the tokens of the request's `insert` are written next, once; any other but 0: finish now
 * (WEFT_FINISH_STOP), and so that is where there are none. */
enum { WEFT_EVENT_INSERT = 2 };
typedef int (*weft_event_fn)(void *arg, const weft_event *event);

/* Adapters by the names that weft_engine_adapter_add gave them, or by their numbers. */
typedef struct weft_request_adapter {
    const char *name; /* NULL: by index */
    float scale;      /* NAN: the name's own; 0: as if it were not there */
    int32_t index;    /* weft_engine_adapter.index, which never stands for another name's content */
} weft_request_adapter;

/* A stack of adapters as they were when it was made: requests that are given it compute with those contents,
 * whatever becomes of the names. */
typedef struct weft_engine_lease weft_engine_lease;

/* What an embedding is made of: of the hidden states after the final norm the mean, or the last token's. */
typedef enum weft_pooling {
    WEFT_POOLING_NONE,  /* there is no embedding */
    WEFT_POOLING_MODEL, /* as the file's key pooling_type says; where it says nothing, the mean */
    WEFT_POOLING_MEAN,
    WEFT_POOLING_LAST
} weft_pooling;

typedef struct weft_request_params {
    uint32_t size;
    int32_t n_tokens;
    const int32_t *tokens; /* the prompt; copied */
    int32_t max_tokens;    /* to generate; -1: until the context is full; 0: prompt only */
    int32_t ignore_end;    /* 1: end tokens are never picked (a grammar's end ends nevertheless) */
    weft_sampler_params sampler;
    const weft_grammar *grammar; /* compiled for this model's tokenizer; retained; NULL: none */
    /* log-probabilities of the n_top likeliest tokens with each token, 0..20; -1: none at all */
    int32_t n_top;
    /* 1: PROMPT_TOKEN events for the prompt (disables prefix reuse for this request) */
    int32_t prompt_logprobs;
    int32_t embedding;  /* weft_pooling; not 0: an EMBEDDING event, no tokens (disables prefix reuse, too) */
    int32_t priority;   /* -8..7, larger first; 0 default */
    int32_t no_cache;   /* 1: neither reads nor feeds the prefix tree */
    const char *tenant; /* for fairness and isolation; copied; NULL: "" */
    /* from now: fails with WEFT_TIMEOUT when it has not finished then; 0: none */
    uint64_t deadline_ms;
    weft_event_fn event;
    void *arg;
    const weft_request_adapter *adapters; /* [n_adapters], a stack; copied */
    int32_t n_adapters;                   /* 0: none, or those of the lease; at most 8 */
    weft_engine_lease *lease;             /* shared; NULL: none */
    /* 1: max_tokens that context or KV pages can never hold is lowered; 0: WEFT_LIMIT */
    int32_t cut_to_fit;
    int32_t read_events; /* 1: READ events, for callers that count while a prompt is read */
    /* What the request writes in the model's place when its event function says so, at BEGAN or TOKEN: tokens of the
     * answer like all others, which the grammar must allow. [n_insert], copied */
    int32_t n_insert;
    const int32_t *insert;
    /* 1: where the context is full the answer goes on, up to max_tokens (-1: an end token): the first n_keep tokens (0:
     * 4) and the last ones, half a context together, are computed anew at their new places, as a prompt is, and all
     * between them is left out. What follows is what a request with these tokens gives. 0: it ends
     * (WEFT_FINISH_LENGTH). A prompt must fit either way */
    int32_t shift;
    int32_t n_keep; /* at most half of the context */
    /* What its answer will be for the most part, as its caller expects. [n_predicted], copied */
    const int32_t *predicted;
    int32_t n_predicted;
    int32_t draft_max; /* tokens guessed for a step at most, 0..16: none; default 16 */
    int32_t draft_min; /* fewer are not tried; default 0 */
    float draft_p_min; /* those less probable are not, 0..1; default 0 */
    /* of which type its keys and values are, one that the engine has; WEFT_KV_OF_ENGINE (default): its kv_dtype */
    uint32_t kv_dtype;
} weft_request_params;

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_request_params_default(weft_request_params *params);
WEFT_API void weft_request_params_init(weft_request_params *params, uint32_t size);
#define weft_request_params_default(params) weft_request_params_init(params, sizeof *(params))
/* From any thread, event functions included. The last event may come before it returns. WEFT_BUSY: the queue is full
 * (the message has the seconds to wait; also *retry_after_s when not NULL), or the adapters in use fill their
 * budget. An adapter that is not ready is read here, while the caller waits: WEFT_NOT_FOUND (no such name, or file),
 * and as weft_engine_adapter_add; WEFT_STATE where its file has changed. WEFT_STATE: draining. Anything wrong with
 * the request is refused here, by name (WEFT_ARGUMENT, WEFT_LIMIT). */
WEFT_API weft_status weft_engine_submit(weft_engine *engine, const weft_request_params *params, uint64_t *request,
                                        double *retry_after_s, weft_error *err);
/* Finishes the request with the step that runs; unknown ids are ignored. From any thread. */
WEFT_API void weft_engine_cancel(weft_engine *engine, uint64_t request);
/* The same for a caller that looks at tokens after its event function has returned: the request ends as though that
 * had said so (WEFT_FINISH_STOP). Steps that began meanwhile have brought further tokens, which the caller drops. */
WEFT_API void weft_engine_finish(weft_engine *engine, uint64_t request);
/* told(arg) is called on the engine's thread behind the last event of a step, or of what happened between two steps:
 * what the event functions gathered can be handed on at once. It must not call the engine; the next step waits for it.
 * NULL: none; when this returns, none is being called. From any thread but the engine's. */
WEFT_API void weft_engine_on_told(weft_engine *engine, void (*told)(void *arg), void *arg);
/* No new requests (WEFT_STATE) from now on; returns when all have finished or after timeout_ms (then the rest is
 * cancelled). */
WEFT_API void weft_engine_drain(weft_engine *engine, uint64_t timeout_ms);

/* ---- inbox: events that wait until they are taken ----
 * For programs that an event function does not suit: what other languages bind, whose code should not run on the
 * engine's thread, and loops that wait for many things. Of requests that are submitted through an inbox the events are
 * kept, in order. Submitting and weft_engine_cancel are for any thread, all else for one at a time. */
typedef struct weft_inbox weft_inbox;

/* The engine outlives it. Fails with WEFT_NO_MEMORY, WEFT_IO (no descriptor is left). */
WEFT_API weft_status weft_inbox_new(weft_engine *engine, weft_inbox **out, weft_error *err);
/* Cancels those of its requests that have not finished, and returns when the step that runs has ended them. Not for
 * event functions. */
WEFT_API void weft_inbox_free(weft_inbox **inbox);
/* As weft_engine_submit; what params say of an event function is not looked at. embedding: room for the values of the
 * EMBEDDING event, written before that event is there; it lives until the request has finished, or the inbox is freed;
 * NULL: the event has a place of its own for them. A request for which memory runs out while it generates fails with
 * WEFT_NO_MEMORY. */
WEFT_API weft_status weft_inbox_submit(weft_inbox *inbox, const weft_request_params *params, float *embedding,
                                       uint64_t *request, double *retry_after_s, weft_error *err);
/* The oldest event, which lives, with all it points to, until the next call of this function, or of
 * weft_inbox_free. Waits for one for timeout_ms (0: not at all; -1: for good). NULL: none came, or a signal was
 * handled meanwhile. */
WEFT_API const weft_event *weft_inbox_take(weft_inbox *inbox, int32_t timeout_ms);
/* For poll, and what is made of it: a descriptor that can be read from while an event waits. It stays the inbox's:
 * nobody else reads or closes it. */
WEFT_API int weft_inbox_fd(const weft_inbox *inbox);

/* ---- adapters of an engine: by name, for each request its own ----
 * A name stands for what its file held when it was added. Added again, it stands for the new content from the next
 * request on; requests that run finish with what they began with, and so after removal. What is ready is kept while
 * it is used, then by last use within adapter_bytes, and read again when it is needed. Cached prefixes are found
 * again under the same contents and scales only. All functions from any thread but the engine's. */
enum weft_adapter_flags {
    WEFT_ADAPTER_LAZY = 1u << 0,    /* the file is first read when a request asks for it */
    WEFT_ADAPTER_REPLACE = 1u << 1, /* the name may be there already */
    /* errors speak of the name, not of the path, which only the log has; those of requests always do */
    WEFT_ADAPTER_DISCREET = 1u << 2
};
/* Is it a name that an adapter may have: 1 to 128 of A-Z a-z 0-9 . _ - @, not beginning with a point or an @?
 * WEFT_ARGUMENT. */
WEFT_API weft_status weft_engine_adapter_check_name(const char *name, weft_error *err);
/* name: as above. scale: finite; what a request means that gives none. Fails as weft_adapter_file_open does, with
 * WEFT_ARGUMENT where the adapter's values are too large at that scale, or of the name with WEFT_EXISTS, or
 * WEFT_STATE where no more names are taken; nothing has changed then. */
WEFT_API weft_status weft_engine_adapter_add(weft_engine *engine, const char *name, const char *path, float scale,
                                             uint32_t flags, weft_error *err);
/* WEFT_NOT_FOUND */
WEFT_API weft_status weft_engine_adapter_remove(weft_engine *engine, const char *name, weft_error *err);

/* Takes adapters before the request that will use them, so that what was chosen by name or number is what computes,
 * for each of several requests too. What is not ready is read here. Fails as weft_engine_submit does for its
 * adapters. *out NULL: they change nothing. Given back before the engine is freed. */
WEFT_API weft_status weft_engine_lease_new(weft_engine *engine, const weft_request_adapter *adapters, int32_t n,
                                           weft_engine_lease **out, weft_error *err);
/* The same for a caller that must not wait: where something must be read, *ready is 0, and there is no lease. */
WEFT_API weft_status weft_engine_lease_ready(weft_engine *engine, const weft_request_adapter *adapters, int32_t n,
                                             int32_t *ready, weft_engine_lease **out, weft_error *err);
/* For a caller whose requests wait for their turn: has the system read the files of what is not ready into its page
 * cache, and waits for none of them, though opening one may take a while. Nothing that is ready goes for that. */
WEFT_API void weft_engine_adapters_ahead(weft_engine *engine, const weft_request_adapter *adapters, int32_t n);
/* Gives the adapters back; requests that run with them have shares of their own. */
WEFT_API void weft_engine_lease_free(weft_engine *engine, weft_engine_lease **lease);

/* After WEFT_BUSY for want of room, for a caller that holds no lease of its own to give back: returns 1 when another
 * was given back since, or 0 after timeout_ms. */
WEFT_API int weft_engine_lease_wait(weft_engine *engine, uint32_t timeout_ms);

typedef struct weft_engine_adapter {
    uint32_t size;
    int32_t index;   /* from 0, as names were added; none is given twice */
    int32_t version; /* of the name, from 1 */
    float scale;
    int32_t n_requests; /* that use its content now */
    int32_t known;      /* 1: its file was read, and id is valid */
    uint64_t n_bytes;   /* ready, alone and in stacks */
    char id[33];        /* as weft_adapter_info.id */
    char name[129];
    char path[1024]; /* its end, where it is longer */
} weft_engine_adapter;
/* Copies at most `capacity` of them, in order of index, from index `first` on; returns how many there are from there
 * on. */
WEFT_API int32_t weft_engine_adapters(const weft_engine *engine, int32_t first, weft_engine_adapter *out,
                                      int32_t capacity);

/* The one of that name; WEFT_NOT_FOUND. out->size set by the caller. */
WEFT_API weft_status weft_engine_adapter_find(const weft_engine *engine, const char *name, weft_engine_adapter *out,
                                              weft_error *err);

enum { WEFT_HISTOGRAM_MAX = 16 };
typedef struct weft_histogram {
    int32_t n, reserved;
    double bounds[WEFT_HISTOGRAM_MAX];       /* upper, rising; n of them */
    uint64_t counts[WEFT_HISTOGRAM_MAX + 1]; /* within each, the last above all */
    double sum;
} weft_histogram;

/* Bytes that are held now, and the most that were held at a time since the engine began. */
typedef struct weft_held {
    uint64_t bytes, peak;
} weft_held;

typedef struct weft_memory {
    /* packed, made when it was opened, and of its file's own pages those that steps read, which the system may drop */
    weft_held weights;
    weft_held pages;    /* of keys and values: pages held by requests and by the prefix tree */
    weft_held adapters; /* ready to be used */
    /* activations, logits, and what running requests hold beside their pages: tokens, samplers */
    weft_held scratch;
} weft_memory;

/* Of a drafter: drafts that were tried, their tokens, and those that the answer went on with; by place in the draft. */
typedef struct weft_draft_stats {
    uint64_t n_drafts, n_tokens, n_accepted;
    uint64_t tokens_at[WEFT_DRAFT_MAX], accepted_at[WEFT_DRAFT_MAX];
} weft_draft_stats;

/* Pages of requests that gave way, kept until these go on; all 0 where nothing is swapped. */
typedef struct weft_swap_stats {
    uint64_t limit_bytes, used_bytes, file_bytes; /* on the disk: at most; by pages that may come back; of the file */
    uint64_t staged_bytes;                        /* of copies in memory, now */
    uint64_t pages_out, bytes_out, out_ns;        /* written, and the time that the disk took */
    uint64_t pages_in, bytes_in, in_ns; /* that came back, and the time from asking until requests could go on */
    uint64_t pages_lost;                /* for want of room, or by a disk that failed: computed again */
    uint64_t n_swapped, n_restored;     /* requests that were kept, and that went on from it */
    uint64_t tokens;                    /* that were not computed again */
    double bytes_per_second, prompt_tokens_per_second; /* what was measured for the choice; 0: not known yet */
} weft_swap_stats;

/* Counts and gauges are of the last step that ended; none waits for the end of a request but n_finished, n_cancelled
 * and n_failed. */
typedef struct weft_engine_stats {
    uint32_t size;
    int32_t n_slots, n_ctx, n_running, n_waiting;
    /* in all; held by requests; held by the prefix tree alone */
    int32_t kv_pages, kv_pages_used, kv_pages_cached;
    uint64_t n_steps, n_rows_decode, n_rows_prompt;
    uint64_t n_submitted, n_finished, n_cancelled, n_failed, n_refused, n_preempted;
    /* of prompts whose first rows were computed; those among them that the prefix tree had */
    uint64_t prompt_tokens, cached_tokens;
    weft_histogram batch_rows, step_ms;
    /* of the steps' time: in which the model computed; the rest is sampling, scheduling and telling */
    uint64_t model_ns;
    int32_t n_adapters, n_adapters_ready; /* names; stacks that are ready to be used */
    uint64_t adapter_bytes, adapter_loads, adapter_evictions;
    int32_t max_requests;                  /* of one tenant that an idle engine accepts together */
    int64_t store_prefixes, store_slots;   /* files on the disk now; without a store all of these are 0 */
    uint64_t store_bytes, store_cap_bytes; /* of them; of all that there may be */
    uint64_t store_written, store_write_failed, store_read, store_read_tokens, store_damaged,
        store_removed;                            /* files, and tokens of those that were read */
    uint64_t prefix_tokens, prefix_evicted_pages; /* that the prefix tree knows now; that it has given up */
    /* rows that were computed again, because a step had no time left for the masks of their grammars */
    uint64_t n_put_off;
    /* prefixes and slots that are yet to be written to the disk, and take memory until then */
    int64_t store_waiting;
    uint64_t n_generated;    /* tokens */
    weft_memory memory;      /* how much of it each part holds */
    uint64_t kv_limit_bytes; /* that pages may take now, or do where that is more */
    /* Adapters that were wanted, by where they were: ready (adapter_hits); as their file has them, in the system's page
     * cache (adapter_loads less these:) or on the disk, as far as the system tells */
    uint64_t adapter_hits, adapter_disk_loads;
    uint64_t adapter_asked_ahead, adapter_ahead_hits; /* by weft_engine_adapters_ahead; in the page cache when read */
    weft_draft_stats drafts[WEFT_DRAFTERS];           /* by weft_drafter */
    weft_swap_stats swap;
    uint64_t draft_ns; /* in which a draft model guessed */
    int32_t chunk;     /* rows of prompts that the next step may have beside others */
    int32_t reserved;
} weft_engine_stats;

/* out->size set by the caller. */
WEFT_API void weft_engine_get_stats(const weft_engine *engine, weft_engine_stats *out);

/* Slots in llama.cpp's sense: what is cached of tokens[0, n), the prompt and answer of a finished request of that
 * tenant (NULL: "") without adapters, goes to the store under a name ([A-Za-z0-9._-]{1,128}, not "." or ".."), and
 * comes back from it into the prefix tree: *n_tokens of them, of which the first `capacity` are told in tokens (NULL
 * with 0: none), so that they can be saved again. Both wait for the disk; not for event functions. WEFT_TIMEOUT:
 * nothing of it, nor of what the disk has to do before it, was done for disk_wait_ms; it may be done later.
 * WEFT_UNSUPPORTED: the engine has no store; WEFT_NOT_FOUND: nothing is cached, or no such slot; WEFT_ARGUMENT
 * (name), WEFT_LIMIT (the store's cap, pages), WEFT_IO, WEFT_FORMAT (it was damaged, and is dropped), WEFT_BUSY. */
WEFT_API weft_status weft_engine_save(weft_engine *engine, const char *tenant, const int32_t *tokens, int32_t n,
                                      const char *name, int32_t *n_saved, uint64_t *n_bytes, weft_error *err);
/* The way back, as said above. */
WEFT_API weft_status weft_engine_restore(weft_engine *engine, const char *name, int32_t *tokens, int32_t capacity,
                                         int32_t *n_tokens, uint64_t *n_bytes, weft_error *err);
/* Removes what was saved under a name; waits for the disk. WEFT_UNSUPPORTED, WEFT_ARGUMENT and WEFT_NOT_FOUND as
 * above. */
WEFT_API weft_status weft_engine_erase(weft_engine *engine, const char *name, weft_error *err);

#ifdef __cplusplus
}
#endif
#endif
