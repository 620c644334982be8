// SPDX-License-Identifier: Apache-2.0
/* batcher.h: the inside of an engine (weft.h), for the files of this room.
 *
 *   engine.c    parameters, life, drain
 *   submit.c    a request into the queue; its end from outside
 *   thread.c    the engine's thread: its loop, commands, and when events are told
 *   pages.c     pages, prefix tree and keys: what the scheduler knows as its store
 *   fetch.c     prefixes that come back from the disk store
 *   persist.c   prefixes that go there
 *   slots.c     sequences that are saved and restored by name
 *   swap.c      pages of requests that gave way, kept until they go on
 *   snapshots.c pages of the prefix tree from and to snapshots, a piece between two steps
 *   drafts.c    tokens that are guessed ahead of a step
 *   pace.c      how many rows of prompts a step has beside others
 *   step.c      a plan of the scheduler as steps of the model
 *   shift.c     what a request goes on with where its context is full
 *   sample.c    from logits and hidden states to tokens, log-probabilities, embeddings
 *   adapters.c  adapters by name, and what requests lease of them
 *   inbox.c     events that are kept until they are taken
 *   stats.c     counters;  trace.c  the Chrome trace
 *
 * Threads. `lock` guards what stands under it below, and is held for moments only: never while the model computes, the
 * disk works or an event function runs. All else belongs to the engine's thread from the moment a request is accepted:
 * pool, prefix tree, sequences, samplers. The scheduler's calls into the store come from that thread, under the lock,
 * but for `capacity` and `pages`, which read what never changes. A record stands for a request from submit to its last
 * event; there are n_slots + max_queue of them, and an id names record and generation, so that an old id finds
 * none. */
#ifndef WEFT_BATCHER_BATCHER_H
#define WEFT_BATCHER_BATCHER_H

#include <pthread.h>
#include <stdio.h>

#include "adapt/store.h"
#include "draft/draft.h"
#include "engine/drafter.h"
#include "engine/forced.h"
#include "engine/handles.h"
#include "kv/prefix.h"
#include "kv/store.h"
#include "kv/swap.h"
#include "sched/sched.h"

enum {
    BATCHER_MAX_TOP = 20,
    WEFT__BATCHER_CHUNK = 128, /* rows of prompts beside others, where nothing else is said */
    BATCHER_FETCHES = 4 /* reads of the disk at once */,
    BATCHER_PERSISTS = 64 /* prefixes that wait to be written */
};

/* Pages of one type of keys and values, and what is known of them. Those of all types of an engine share memory. */
typedef struct batcher_cache {
    uint32_t dtype;
    weft__kv_pool *pool;
    weft__kv_prefix *prefix;
    weft__kv_key root;      /* of the model with such pages */
    weft__kv_layout layout; /* the first one's leads to the others */
} batcher_cache;

typedef enum batcher_state {
    BATCHER_FREE,
    BATCHER_ASKING,   /* the disk may have its prefix: it was not looked at yet */
    BATCHER_FETCHING, /* the disk is being read */
    BATCHER_FETCHED,  /* it was read: to be handed to the scheduler */
    BATCHER_SCHEDULED
} batcher_state;

/* What a request is in, from BEGAN to FINISHED. */
typedef enum batcher_stage {
    BATCHER_WAITING,
    BATCHER_COMPUTING,
    BATCHER_MASKING,
    BATCHER_SAMPLING,
    BATCHER_TELLING,
    BATCHER_STAGES
} batcher_stage;

typedef struct batcher_request {
    weft_engine *engine;
    /* Under the lock. */
    batcher_state state;
    uint32_t generation;
    int32_t next;                /* free record, or pending request */
    int cancelled;               /* while it is pending */
    uint64_t sched_id;           /* SCHEDULED */
    weft__kv_snapshot *found;    /* FETCHED: what the disk had, or NULL */
    struct batcher_fetch *fetch; /* FETCHING */

    /* What was asked for. */
    uint64_t id, tenant;
    batcher_cache *cache;
    weft__kv_key root;
    weft_sampler_params sampling; /* bias: a copy */
    weft_logit_bias *bias;
    weft_grammar *grammar;
    weft__adapt_lease *lease; /* its adapters, or NULL */
    int32_t n_prompt, max_new, n_top, priority;
    int32_t *insert;             /* [n_insert] */
    int32_t n_insert, at_insert; /* tokens of it that were written; n_insert: all, or it was not asked for */
    int can_insert;              /* it was not asked for yet */
    int ignore_end, prompt_logprobs, no_cache, read_events;
    int embedding; /* WEFT_POOLING_NONE, _MEAN or _LAST */
    uint64_t deadline_ms;
    weft_event_fn event;
    void *arg;

    /* The engine's thread. */
    int32_t *tokens; /* [n_most], of which n_known are known */
    int32_t n_known, n_cached;
    int32_t n_most;              /* tokens at a time: n_prompt + max_new, or fewer where it shifts */
    int32_t shift, n_keep;       /* shift: where these are full it goes on with the first n_keep and the last ones */
    int32_t n_shifts, n_dropped; /* so far */
    /* The end token that ended it, -1: none, with its log-probabilities. */
    int32_t end_token, n_end_top;
    float end_logprob;
    weft_token_prob end_top[BATCHER_MAX_TOP];
    int32_t n_kept; /* of a finished one: what the prefix tree has of it */
    weft__kv_seq *seq;
    weft__kv_parked *parked;  /* it gave way, and this is kept of it */
    int32_t n_swaps, n_found; /* so often; what the tree had of it when it came back */
    uint64_t swap_began_ns, swap_ns, swap_bytes;
    weft_sampler *sampler; /* from BEGAN on */
    weft_matcher *matcher;
    double *sum; /* [D] of the hidden states that an embedding is made of, of the first n_summed tokens */
    int32_t n_summed;
    int32_t n_told;     /* PROMPT_TOKEN events so far */
    int32_t n_read;     /* of the prompt; a preemption takes nothing from it */
    uint64_t n_scratch; /* bytes of its tokens and sampler, while they count */
    struct {
        weft__draft_history *own;        /* of its prompt and answer; NULL: nothing is drafted */
        weft__draft_expected *expected;  /* NULL: it expects nothing */
        weft__engine_drafter_text *text; /* what a draft model has of it; NULL: it is not asked */
        int32_t ask;                     /* 1 + the place of its question in this step; 0: none */
        uint64_t key[2];                 /* of the finished answers that it may see */
        weft__draft_trust trust;
        int32_t most, least; /* tokens; what the request allows */
        float p_least;
        int64_t n_known; /* tokens of its text, those left out included, that `own` has */
        weft__engine_forced forced;
        weft__draft now;                                    /* of this step: n rows; n 0: none */
        int32_t n_right;                                    /* of it, so far */
        int32_t tried[WEFT_DRAFTERS], right[WEFT_DRAFTERS]; /* of all steps */
    } draft;
    int computed, ended; /* it had rows; it ends with this step: no more tokens */
    int32_t put_off;     /* how many steps, to the last, left no time for its mask */
    weft_finish finish;  /* if it ends by itself, unless: */
    weft_status status;
    char message[256];
    uint64_t submitted_ns, began_ns, first_ns, deadline_ns;
    uint64_t spent_ns[BATCHER_STAGES], since_ns; /* until then it is counted */
    batcher_stage stage;
} batcher_request;

/* A read of the disk. The request that asked for it may be gone when it ends: what was read is dropped then. */
typedef struct batcher_fetch {
    struct weft_engine *engine;
    batcher_request *r; /* NULL: gone */
    int busy;
} batcher_fetch;

/* Save, restore or erase, for a thread that waits for it, and that may have given up waiting: then it is freed by what
 * is done with it, or at the engine's end. */
typedef struct batcher_command {
    struct batcher_command *next, *next_abandoned;
    int save, abandoned;
    char name[WEFT__KV_STORE_NAME + 1];
    int32_t *tokens, capacity; /* save: what is asked for; restore: where they go */
    int32_t n;
    weft__kv_key root[WEFT_KV_TYPES_MAX]; /* save: of each type */
    batcher_cache *cache;                 /* save: the type that is saved; NULL: not known yet */
    weft__kv_snapshot *snapshot;          /* restore: what was read; save: what was copied so far */
    uint64_t at;                          /* save: bytes of it */
    uint64_t n_bytes;
    weft_engine *engine;
    uint64_t n_turns; /* of it, or of those before it in the line: while they come, no thread gives up waiting */
    weft_status status;
    weft_error err;
    int done;
} batcher_command;

/* A prefix that the disk store should have. */
typedef struct batcher_prefix {
    batcher_cache *cache;
    weft__kv_key root;
    int32_t *tokens;
    int32_t n;
} batcher_prefix;

/* Rows of one request in one run of the model. */
typedef struct batcher_part {
    batcher_request *r;
    int32_t first, n;         /* positions */
    int32_t row;              /* its first row */
    int32_t wanted, n_wanted; /* its first logits, and how many */
    int sample;               /* the logits of the last row before its draft give the next token */
    int32_t n_draft;          /* its last rows are guesses */
    int known;                /* its next token was sampled, or it has ended */
} batcher_part;

/* Tokens that may follow tokens[0, n), at most `most`, of which n_prompt are a prompt, into out[]; how many. */
typedef int32_t (*batcher_guess)(void *arg, const int32_t *tokens, int32_t n_prompt, int32_t n, int32_t most,
                                 int32_t *out);

typedef struct batcher_trace batcher_trace;

struct weft_engine {
    weft_model *model;
    weft_engine_params params; /* complete: no defaults left */
    uint32_t kv_types[WEFT_KV_TYPES_MAX];

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* the engine's thread: there is something to do */
    pthread_cond_t done; /* a request or a command has ended */

    /* Under the lock. */
    weft__sched *sched;
    struct {
        batcher_request *all; /* [n] */
        int32_t n;
        int32_t first_free, n_live;
        int32_t n_finishing; /* of the live ones: counted as finished, their last event not sent yet */
        int32_t first_pending, last_pending;
    } records;
    batcher_fetch fetches[BATCHER_FETCHES];
    struct {
        batcher_command *first, *last;
        batcher_command *abandoned; /* wherever they are: in the line, or with the store */
    } commands;
    uint64_t kv_bytes;        /* that pages may take, as it was asked for last */
    int draining, stop, work; /* work: something was asked for since the loop looked last */
    weft_engine_stats stats;  /* gauges of the scheduler are filled when asked */

    /* Never changed after the start. */
    batcher_cache caches[WEFT_KV_TYPES_MAX]; /* [n_caches], params.kv_dtype first */
    int32_t n_caches;
    weft_kv_binding *pools; /* [n_caches][groups of the model], which one step may have; NULL: one type in a step */
    weft__kv_store *store;  /* NULL: none */
    weft__engine_base_names names;
    weft__adapt_store *adapters; /* has a lock of its own */
    int32_t block;               /* tokens of the largest page */
    struct {
        int32_t *ends; /* [n_ends] end tokens */
        int32_t n_ends;
        int32_t *nameless;    /* [n_nameless] ids that stand for no text */
        uint8_t *is_nameless; /* [V] */
        int32_t n_nameless;
    } vocab;
    int32_t max_wanted;

    /* The engine's thread. */
    struct {
        int32_t *began, *ended; /* [records.n] records whose event is to be sent */
        int32_t n_began, n_ended;
    } events;
    weft__engine_steps steps;
    batcher_part *parts; /* [n_slots] */
    int32_t n_parts;
    uint64_t model_ns; /* of this step: in which the model computed */
    struct {
        uint64_t prompt, cached, generated; /* tokens */
        uint64_t draft_ns;                  /* in which a draft model computed */
        weft_draft_stats drafts[WEFT_DRAFTERS];
    } step; /* of this step, until weft__batcher_count_step */
    struct {
        weft__draft_pool *pool; /* of finished answers; NULL: nothing is drafted */
        weft__draft_cost cost;
        weft__engine_drafter *model;    /* NULL: none */
        weft__engine_drafter_ask *asks; /* [n_slots] of a step */
        weft__draft *guessed;           /* [n_slots] their answers */
        uint64_t *bits;                 /* [(tokens of the tokenizer + 63) / 64] a mask */
        /* For tests, which set them before the first request: drafts are tried whatever they cost; and this is asked
         * instead of all drafters. 0, NULL: not */
        int always;
        batcher_guess guess;
        void *guess_arg;
    } draft;
    struct {
        double rows;         /* of prompts in the next step beside requests that decode */
        int32_t least, most; /* of them */
        int is_auto;         /* they follow the time of steps */
        int has_seen;        /* such a step */
    } pace;
    uint64_t n_scratch; /* bytes of all n_scratch of requests */
    /* of this step: in which grammars made masks; when that is enough, the others are put off */
    uint64_t mask_ns, mask_most_ns;
    float *logits; /* [max_wanted, V] */
    float *raw;    /* [V] logits as the model gave them */
    float *vector; /* [D] */
    struct {
        batcher_prefix waiting[BATCHER_PERSISTS]; /* a ring of n, from first on */
        int32_t n, first;
        batcher_prefix now;        /* the one that is being copied; tokens NULL: none */
        weft__kv_snapshot *copied; /* what was copied of it, up to byte at */
        uint64_t at;
        uint64_t last_ns; /* when the last one was written */
    } persist;
    struct {
        const weft__kv_snapshot *from; /* its owner's; NULL: none */
        batcher_cache *cache;          /* where its pages go */
        weft__kv_seq *seq;             /* NULL: it gave its pages up */
        int32_t n;
        uint64_t at;
    } restore;
    struct {
        weft__kv_swap *pages; /* NULL: nothing is swapped */
        double rows, rows_ns; /* of late, of steps that read prompts */
        uint64_t tokens;      /* that were not computed again */
    } swap;
    uint64_t copy_left; /* bytes of pages that may be copied before the next step */
    batcher_trace *trace;
    int has_told; /* events since `told` was called */

    struct {
        pthread_mutex_t lock; /* held while it is called */
        void (*call)(void *arg);
        void *arg;
    } told;
};

/* ---- engine.c ---- */
/* Its deadline has passed: the status and message that it ends with. */
void weft__batcher_expire(batcher_request *r);

/* ---- submit.c ---- */
/* Hands a request to the scheduler; with the lock. */
weft_status weft__batcher_schedule(batcher_request *r, double *retry_after_s, weft_error *err);

/* ---- thread.c ---- */
void *weft__batcher_thread(void *engine);
/* Ends the request with this step, as finish says, or as FAILED when there is a status. For the engine's thread,
 * without the lock. */
void weft__batcher_end(batcher_request *r, weft_finish finish);
void weft__batcher_fail(batcher_request *r, weft_status status, const char *message);
/* Tells the request's event function; ends the request when it says so. */
void weft__batcher_notify(batcher_request *r, weft_event *event);
/* From `now` on it is in that stage; returns the one before. */
batcher_stage weft__batcher_stage(batcher_request *r, batcher_stage next, uint64_t now);
weft_event weft__batcher_event(const batcher_request *r, uint32_t kind);
/* Puts a record that is in no list back; with the lock. */
void weft__batcher_recycle(weft_engine *e, batcher_request *r);
/* Frees what a record holds. Its sequence must be empty unless the caller is the engine's thread. */
void weft__batcher_clear(batcher_request *r);

/* ---- engine.c ---- */
/* Is that an end token? */
int weft__batcher_is_end(const weft_engine *e, int32_t token);
/* Puts numbers where zeros stand, and checks them; n_kv_tokens is left to the pages. */
weft_status weft__batcher_complete_params(const weft_model *m, weft_engine_params *p, weft_error *err);
/* Rows with logits of one run of the model at most. */
int32_t weft__batcher_max_wanted(const weft_model *m, int32_t n_slots);

/* ---- pages.c ---- */
/* The types of an engine with these parameters, each once and kv_dtype first; how many. */
int32_t weft__batcher_kv_types(const weft_engine_params *p, uint32_t out[WEFT_KV_TYPES_MAX]);
/* Puts the number of tokens where none was given, and the pages of each group, of kv_dtype, into
 * n_pages[WEFT__KV_SNAPSHOT_GROUPS]. */
weft_status weft__batcher_plan_pages(const weft_model *m, weft_engine_params *p, int32_t *n_pages, weft_error *err);
/* Pool, prefix tree, layout and key of each type. Complete or nothing but what weft__batcher_close_pages frees. */
weft_status weft__batcher_open_pages(weft_engine *e, weft_error *err);
void weft__batcher_close_pages(weft_engine *e);
/* Gives one page memory ahead of need, while fewer have it than a prompt and what follows it take in every slot; 0:
 * they do. Done at the start, and while there is nothing else to do. Engine's thread. */
int weft__batcher_warm_page(weft_engine *e);
/* Holds the pages to e->kv_bytes, as far as those in use allow. Returns 1 where some were evicted. With the lock. */
int weft__batcher_limit_pages(weft_engine *e);
/* Of n_pages of a group, those whose memory one request of n_ctx tokens needs, of any type. The parameters are
 * complete. */
int32_t weft__batcher_least_pages(const weft_model *m, const weft_engine_params *p, int32_t group, int32_t n_pages);
weft__sched_store weft__batcher_store(weft_engine *e);
/* What a prefix is found again by: the model with pages of a type, with isolation the tenant, and what the adapters
 * compute (NULL: none). */
weft_status weft__batcher_root(const weft_engine *e, const batcher_cache *cache, const char *tenant,
                               const weft__adapt_lease *lease, weft__kv_key *out, weft_error *err);
/* What finished answers are found again by: as above, whatever the type, and always of one tenant. */
weft_status weft__batcher_answers_key(const weft_engine *e, const char *tenant, const weft__adapt_lease *lease,
                                      uint64_t out[2], weft_error *err);
/* The pages of that type; NULL: the engine has none. WEFT_KV_OF_ENGINE: its own. */
batcher_cache *weft__batcher_cache(weft_engine *e, uint32_t dtype);
/* A number of pages as the scheduler counts them: themselves, or, where several types share memory, their bytes. */
int64_t weft__batcher_units(const weft_engine *e, const weft__kv_pool *pool, int32_t group, int64_t n_pages);
/* May the request read from and feed the prefix tree? */
int weft__batcher_reads_cache(const batcher_request *r);
int weft__batcher_feeds_cache(const batcher_request *r);
/* What the scheduler asks of its store: the longest cached prefix of at most n_max tokens, attached. */
int32_t weft__batcher_match(batcher_request *r, int32_t n_max);
/* Makes known what the request has read of its prompt, in whole pages. */
void weft__batcher_publish(batcher_request *r);

/* ---- adapters.c ---- */
weft_status weft__batcher_open_adapters(weft_engine *e, weft_error *err);
/* Fills r->lease, which weft__batcher_clear gives back. Reads files: any thread but the engine's. */
weft_status weft__batcher_lease(weft_engine *e, const weft_request_params *p, batcher_request *r, weft_error *err);

/* ---- fetch.c ---- */
weft_status weft__batcher_open_store(weft_engine *e, weft_error *err);
/* Is the disk worth asking for this request? Any thread. */
int weft__batcher_worth_fetching(const batcher_request *r);
/* Moves pending requests on, as far as they can go; called and returns with the lock, which it lets go meanwhile. */
void weft__batcher_pending(weft_engine *e);
/* When the deadline of the first of them passes, ns; 0: never. With the lock. */
uint64_t weft__batcher_pending_deadline(const weft_engine *e);

/* ---- slots.c ---- */
/* Does what commands ask for, as far as they can go; called and returns with the lock, which it lets go meanwhile. */
void weft__batcher_commands(weft_engine *e);
/* Frees all commands that were abandoned; no thread of the engine or of the store works on any of them. */
void weft__batcher_commands_free(weft_engine *e);
/* What the store's thread calls when it has read a slot for command `arg`. */
void weft__batcher_slot_read(void *arg, weft_status status, const char *message, weft__kv_snapshot *snapshot);

/* ---- persist.c ---- */
/* The first n tokens are worth a place on the disk: takes r->tokens, and sets it to NULL, or does nothing. */
void weft__batcher_persist(batcher_request *r, int32_t n);
/* Copies a piece of a prefix that waits; after the last one the store has it. stopping: it is worth waiting for the
 * disk. */
void weft__batcher_persist_some(weft_engine *e, int stopping);
/* How many wait? Is one due though the engine is busy? */
int weft__batcher_n_persisting(const weft_engine *e);
int weft__batcher_persist_due(const weft_engine *e);
/* Forgets all of them. */
void weft__batcher_persist_end(weft_engine *e);

/* ---- swap.c ---- */
/* Behind the store; where params.swap is not off. */
weft_status weft__batcher_open_swap(weft_engine *e, weft_error *err);
/* After a step: what prompts cost. And tokens per second of them, of late; 0: not known yet. */
void weft__batcher_swap_measure(weft_engine *e, const weft__sched_plan *plan);
double weft__batcher_prefill_rate(const weft_engine *e);
/* The request gives way: keeps what it has, where that pays. Its pages are still there. */
void weft__batcher_swap_out(batcher_request *r);
/* As weft__sched_store.restore, for a request that is parked. */
int32_t weft__batcher_swap_in(batcher_request *r, int32_t n_max);
/* It gives way again before it was back; it is over. */
void weft__batcher_swap_stop(batcher_request *r);
void weft__batcher_swap_forget(batcher_request *r);
/* Until when the thread waits at most for what comes back; 0: for ever. */
uint64_t weft__batcher_swap_deadline(const weft_engine *e);
/* Its part of the stats; with the lock. */
void weft__batcher_count_swap(weft_engine *e);
/* Moves what comes back on, after a step of so many ns (0: none). 1: there is something to look at. */
int weft__batcher_swap_some(weft_engine *e, uint64_t step_ns);

/* ---- snapshots.c ---- */
/* Copies more of the first n tokens of a snapshot, until the tree has them: 1, and *known is how many it has then (0:
 * there were no pages); 0: more is to be done after a step. One is restored at a time. */
int weft__batcher_restore(weft_engine *e, const weft__kv_snapshot *s, int32_t n, int32_t *known);
/* Drops what was copied of it; before a snapshot is freed that is not restored to the end. */
void weft__batcher_restore_stop(weft_engine *e, const weft__kv_snapshot *s);
/* Pages that the one being restored holds, as the scheduler counts; and gives them up: 0 when there are none. */
int64_t weft__batcher_restore_pages(const weft_engine *e, int32_t group);
int weft__batcher_restore_yields(weft_engine *e);
/* A piece of a snapshot of what the tree has of tokens[0, *n), which becomes how many those are. Nothing of the tree is
 * held between pieces: what was evicted meanwhile, and is not there again, ends it with WEFT_NOT_FOUND. *complete: it
 * is whole. */
weft_status weft__batcher_copy_piece(weft_engine *e, batcher_cache *cache, weft__kv_key root, const int32_t *tokens,
                                     int32_t *n, weft__kv_snapshot **s, uint64_t *at, int *complete, weft_error *err);

/* ---- drafts.c ---- */
weft_status weft__batcher_open_drafts(weft_engine *e, weft_error *err);
void weft__batcher_close_drafts(weft_engine *e);
/* Is there a draft model that is asked? And what its pages and tables are made for; the parameters are complete. */
int weft__batcher_asks_model(const weft_engine_params *p);
weft__engine_drafter_params weft__batcher_drafter_params(const weft_engine_params *p);
/* Bytes that a request of n_tokens tokens holds for drafts at most, beside what it expects. */
uint64_t weft__batcher_draft_bytes(int32_t n_tokens);
/* Of finished answers, which all requests share, at most. */
uint64_t weft__batcher_answers_bytes(int32_t n_slots);
/* What a request asks for about drafts, copied; any thread. r->lease is there. */
weft_status weft__batcher_draft_ask(weft_engine *e, const weft_request_params *p, batcher_request *r, weft_error *err);
/* Before the thread starts: what rows cost here. */
void weft__batcher_draft_costs(weft_engine *e);
/* When a request leaves the queue. Without memory it goes without drafts. */
void weft__batcher_draft_begin(batcher_request *r);
/* Adds rows of drafts to a plan, for the requests that decode. */
void weft__batcher_draft(weft_engine *e, const weft__sched_plan *plan);
/* What became of r->draft.now, of which the first n_tried tokens were held against the sampler's. */
void weft__batcher_drafted(batcher_request *r, int32_t n_tried);
/* A request has ended: its answer becomes what others of its tenant are drafted from. */
void weft__batcher_draft_end(batcher_request *r);
void weft__batcher_draft_clear(batcher_request *r);
/* A request gives its pages up for others, and so does its draft model's part. */
void weft__batcher_draft_preempt(batcher_request *r);

/* ---- pace.c ---- */
void weft__batcher_pace_begin(weft_engine *e);
/* A step took so long. */
void weft__batcher_pace_saw(weft_engine *e, int32_t n_rows, int32_t n_prompt_rows, uint64_t ns);

/* ---- step.c ---- */
void weft__batcher_step(weft_engine *e, const weft__sched_plan *plan);

/* ---- shift.c ---- */
/* How many tokens the request holds at a time, and whether it will shift, from r->max_new as it is without; which
 * becomes what was asked for. Fills r->n_most, r->shift, r->n_keep. WEFT_ARGUMENT: n_keep. */
weft_status weft__batcher_shift_plan(const weft_engine *e, const weft_request_params *p, batcher_request *r,
                                     weft_error *err);
/* Behind its rows of a step: where its tokens are full and more are to come, those that stay begin anew. */
void weft__batcher_shift(batcher_request *r);

/* ---- sample.c ---- */
/* Tokens that it has generated. */
int32_t weft__batcher_generated(const batcher_request *r);
/* What a request needs when it leaves the queue. */
void weft__batcher_prepare(batcher_request *r);
/* 0: this step has no time left for its mask. Of those with a grammar at least one gets its token in each step. */
int weft__batcher_has_time(const batcher_request *r);
/* The token after the last known one, from its logits, which are overwritten. guessed: what a draft has there; -1:
 * nothing. */
void weft__batcher_sample(batcher_request *r, float *logits, int32_t guessed);
/* Tells of prompt token `at` from the logits of the one before it (NULL for the first). */
void weft__batcher_prompt_token(batcher_request *r, int32_t at, const float *logits);
/* Does an embedding need that position's hidden state? */
int weft__batcher_embeds(const batcher_request *r, int32_t position);
/* Adds those of the positions first .. first + n - 1 that it needs. */
void weft__batcher_embed(batcher_request *r, int32_t first, int32_t n, const float *hidden);

/* ---- stats.c ---- */
void weft__batcher_stats_begin(weft_engine *e);
/* With the lock, by the engine's thread. */
void weft__batcher_count_step(weft_engine *e, const weft__sched_plan *plan, uint64_t ns);
/* Bytes that are there for every step, however few rows it has. */
uint64_t weft__batcher_scratch(const weft_model *m, int32_t max_wanted);
/* Pages, and the bytes of all owners. */
void weft__batcher_count_pages(weft_engine *e);
void weft__batcher_count_persisting(weft_engine *e);
void weft__batcher_count_finished(weft_engine *e, weft_finish finish);

/* ---- trace.c ---- */
weft_status weft__batcher_trace_open(weft_engine *e, const char *path, weft_error *err);
void weft__batcher_trace_close(weft_engine *e);
/* Around one run of the model. NULL trace: nothing. */
void weft__batcher_trace_begin(weft_engine *e);
void weft__batcher_trace_step(weft_engine *e, int32_t n_rows, int32_t n_wanted, uint64_t begin_ns, uint64_t end_ns);
void weft__batcher_trace_request(weft_engine *e, const batcher_request *r, uint64_t end_ns);

#endif
