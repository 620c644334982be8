// SPDX-License-Identifier: Apache-2.0
/* server.h: what the files of this room share: the server, a request's answer, slots, counters.
 *
 * Lifetime: a weft_server outlives every request of its HTTP façade, since freeing it stops that first. */
#ifndef WEFT_SERVER_INTERNAL_H
#define WEFT_SERVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/text.h"
#include "api/answer.h"
#include "api/errors.h"
#include "api/fields.h"
#include "api/prompts.h"
#include "http/http.h"
#include "http/turns.h"
#include "learn/store.h"
#include "server/grammar_cache.h"
#include "server/limits.h"
#include "server/reply.h"
#include "server/resident.h"
#include "server/settings.h"
#include "server/stages.h"
#include "server/traces.h"
#include "weft/server.h"

/* ---- keys (auth.c) ---- */

/* Its SHA-256; the key itself is not kept. */
typedef struct weft__server_key {
    unsigned char hash[32];
    int is_admin;
    char name[32];                            /* for people; "": none */
    const struct weft__server_member *member; /* what weft.yaml says of it (rules.h); NULL: nothing */
} weft__server_key;

typedef struct weft__server_keys {
    weft__server_key *items;
    size_t n, capacity;
} weft__server_keys;

/* The caller, as its key says. */
typedef struct weft__server_caller {
    char tenant[32]; /* of a key: "key-" and twelve digits of its hash; "": no keys are wanted here */
    char label[32];  /* in /metrics: the key's name, or its tenant */
    int is_admin;    /* may change what all others get, and see what they do */
    const struct weft__server_member *member; /* of the key, in these rules; NULL: it has no limits */
    struct weft__server_rules *rules;         /* held; NULL where nobody was asked who calls */
    struct {
        char model[WEFT__API_ADAPTER_NAME]; /* that is meant instead of what the body names; "": that */
        char id[32];                        /* of the answer, behind its form's prefix; "": it gets one */
    } routed;                               /* by router.c */
    struct {
        const char *body; /* [n], instead of the request's own; NULL: that */
        size_t n;
        int n_done;         /* attempts before */
        int64_t n_spent;    /* their tokens */
        const char *source; /* of the first, as it is kept; NULL: none */
    } again;                /* by response_best.c */
} weft__server_caller;

weft_status weft__server_keys_add(weft__server_keys *keys, const char *key, int is_admin, weft_error *err);
/* hex: the 64 digits of its hash, which become one->hash. */
weft_status weft__server_keys_add_hash(weft__server_keys *keys, const char *hex, weft__server_key *one,
                                       weft_error *err);
/* Adds those of a file: in each line a key, and behind it "admin" and "name=NAME" where it has them. */
weft_status weft__server_keys_read(weft__server_keys *keys, const char *path, weft_error *err);
void weft__server_keys_free(weft__server_keys *keys);
/* 1 when `key` is one of them, in a time that does not tell how nearly; *who is its owner then. */
int weft__server_keys_check(const weft__server_keys *keys, const char *key, weft__server_caller *who);
/* Is one of them this tenant's? */
int weft__server_keys_have(const weft__server_keys *keys, const char *tenant);
/* The name of a tenant that a request without a key gives itself. Long ones by their hash, since two may begin
 * alike. */
weft_status weft__server_tenant_of_user(const char *user, char tenant[64], weft_error *err);

/* ---- slots (slots.c): what runs, and the tokens of what ran there last ---- */

typedef struct weft__server_slot {
    int busy;
    uint64_t used; /* when it was filled or given back last, by the slots' count; 0: it holds nothing */
    uint64_t task; /* request of the engine */
    char tenant[64];
    int32_t *tokens; /* [n_ctx] of the prompt and the answer */
    int32_t n_tokens, n_prompt, n_decoded, max_tokens;
    int with_adapters; /* what is cached of the tokens is kept for these alone */
    uint32_t kv_type;  /* of what ran there; WEFT_KV_OF_ENGINE: nothing did */
    int32_t n_swaps;   /* as weft_event has them */
    uint64_t swap_bytes;
    double swap_ms;
} weft__server_slot;

typedef struct weft__server_slots {
    pthread_mutex_t lock;
    weft__server_slot *all;
    int32_t n, n_ctx;
    uint64_t n_uses;
    int have_owners; /* there are keys: what a slot holds is its key's */
} weft__server_slots;

/* The lock is there already, and stays. */
weft_status weft__server_slots_begin(weft__server_slots *slots, int32_t n, int32_t n_ctx, weft_error *err);
void weft__server_slots_free(weft__server_slots *slots);
/* Takes a free one: `wanted` if that is free, else the one used least recently, so that what a client is about to save
 * stays; -1 when none is. */
int32_t weft__server_slots_take(weft__server_slots *slots, int32_t wanted, uint64_t task, const char *tenant,
                                const int32_t *prompt, int32_t n_prompt, int32_t max_tokens, int with_adapters,
                                uint32_t kv_type);
void weft__server_slots_token(weft__server_slots *slots, int32_t slot, const weft_event *e);
void weft__server_slots_give(weft__server_slots *slots, int32_t slot);

/* ---- counters (metrics.c) ---- */

enum { WEFT__SERVER_BOUNDS = 16 };
typedef struct weft__server_histogram {
    const double *bounds; /* [n] */
    int n;
    _Atomic uint64_t counts[WEFT__SERVER_BOUNDS + 1];
    _Atomic uint64_t sum_ns;
} weft__server_histogram;

/* Seconds. */
void weft__server_histogram_add(weft__server_histogram *h, double seconds);

enum { WEFT__SERVER_ROUTES_MAX = 64, WEFT__SERVER_STATUSES_MAX = 32 };
/* Of a model. */
typedef struct weft__server_metrics {
    /* these move with every step, and so do the next four */
    _Atomic uint64_t prompt_tokens, cached_tokens, generated_tokens;
    _Atomic uint64_t prompt_us, generate_us;
    /* of prompts, less the cached: a difference of two counters may fall while they grow */
    _Atomic uint64_t fresh_tokens;
    _Atomic uint64_t most_tokens; /* of a prompt and its answer */
    _Atomic uint64_t embedded, finished[5] /* by weft_finish */;
    weft__server_histogram first_token, between_tokens, queue, duration;
    weft__server_histogram stages[WEFT__SERVER_STAGES]; /* of requests that its engine took */
} weft__server_metrics;

/* Of the server, whatever models it serves. */
typedef struct weft__server_answered {
    _Atomic uint64_t responses[WEFT__SERVER_ROUTES_MAX][WEFT__SERVER_STATUSES_MAX];
} weft__server_answered;

/* By key and adapters (usage.c). */
typedef struct weft__server_used {
    uint64_t requests, prompt_tokens, cached_tokens, generated_tokens;
} weft__server_used;

typedef struct weft__server_usage {
    pthread_mutex_t lock;
    struct weft__server_usage_row *rows; /* [n] */
    size_t n, capacity;
    int n_keys; /* that the rows are of */
} weft__server_usage;

void weft__server_usage_begin(weft__server_usage *usage);
/* The rows of a key, or of all: "". */
void weft__server_usage_write(weft__server_usage *usage, const char *key, weft__strbuf *out);
void weft__server_metrics_begin(weft__server_metrics *m);
/* The stages of a request that has ended. */
void weft__server_metrics_stages(weft__server_metrics *m, const weft__server_stages *stages);
void weft__server_metrics_response(weft__server_answered *a, const char *path, int status);
/* Adds what a request of a key used with these adapters. *place: 0 for its first time, then as it was left. Any
 * thread. */
void weft__server_usage_add(weft__server_usage *usage, size_t *place, const char *key, const char *adapters,
                            const weft__server_used *used);
void weft__server_usage_free(weft__server_usage *usage);
/* usage by key and adapters: of the caller, of all where it is an admin. */
void weft__server_metrics_write(weft_server *s, const weft__server_caller *who, weft__strbuf *out);

/* ---- the server ---- */

typedef struct weft__server_strings {
    char **items; /* NULL-terminated */
} weft__server_strings;

/* Copies a list that ends with NULL, or is NULL. */
weft_status weft__server_strings_copy(const char *const *list, weft__server_strings *out, weft_error *err);
void weft__server_strings_free(weft__server_strings *s);

typedef struct weft__server_response weft__server_response;

/* Requests that wait for one thing (wait_queue.c). */
typedef struct weft__server_wait_queue {
    const char *what; /* they wait for: "its grammar" */
    /* that wait, in all and of a tenant; of an address, whose users are many tenants, half as many more */
    int max, max_of_one;
    /* What they wait for: 1; 0 with the error filled; -1: not yet, and others may come first. */
    int (*work)(weft__server_response *g, weft__api_error *error);
    void (*go_on)(weft__server_response *g,
                  const weft__api_error *error); /* takes the line's share of it; NULL: it was done */
    void (*ahead)(weft__server_response *g);     /* when its turn is near: begins what `work` will wait for; or NULL */
    pthread_t thread, clock, scout;              /* that works; that tells those whose time is over; that looks ahead */
    pthread_mutex_t lock;                        /* all below */
    pthread_cond_t wake, tick, moved;
    weft__http_turns waiting;
    weft__server_response *now; /* whose turn it is */
    int stop, has_thread, has_clock, has_scout;
} weft__server_wait_queue;

/* Whole answers that wait to be written (answers.c). */
typedef struct weft__server_answers {
    pthread_t thread;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake;
    weft__http_turns waiting;
    int stop, has_thread;
} weft__server_answers;

/* Numbers in a file (metrics_file.c). */
typedef struct weft__server_metrics_file {
    FILE *file; /* NULL: none is written */
    pthread_t thread;
    pthread_mutex_t lock; /* stop */
    pthread_cond_t end;
    int every_s, stop, has_thread;
    int told; /* that a row is lost; the thread's */
} weft__server_metrics_file;

/* WEFT_IO, WEFT_LIMIT, WEFT_NO_MEMORY. */
weft_status weft__server_metrics_file_begin(weft_server *s, const char *path, int every_s, weft_error *err);
/* Writes what there is at the end; nothing when it has not begun. The engine is there still. */
void weft__server_metrics_file_end(weft_server *s);

/* ---- what an engine tells, on its way to answers (events.c) ---- */

typedef struct weft__server_event weft__server_event;
typedef struct weft__server_events {
    weft_engine *engine;
    weft__server_event *gathered; /* [n_gathered]; of the engine's thread, as the next two */
    int n_gathered;
    weft__server_response *told_here; /* one of those of this step to which that thread told something itself */
    pthread_t thread;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake, told;
    weft__server_event *taken; /* [n_taken], of the thread that tells until n_taken is 0 */
    int n_taken, stop, has_thread;
} weft__server_events;

/* From now on the engine's events are handed over. WEFT_NO_MEMORY; weft__server_events_end in any case. */
weft_status weft__server_events_begin(weft__server_events *q, weft_engine *engine, weft_error *err);
/* After the last request was released; nothing when it has not begun. */
void weft__server_events_end(weft__server_events *q);
/* A choice's event function. */
int weft__server_events_on_event(void *choice, const weft_event *e);

/* ---- a model that is served (served.c) ---- */

enum weft__server_model_state {
    WEFT__SERVER_UNLOADED,
    WEFT__SERVER_WANTED, /* it waits for its turn to be loaded */
    WEFT__SERVER_LOADING,
    WEFT__SERVER_LOADED,
    WEFT__SERVER_UNLOADING,
    WEFT__SERVER_FAILED /* as fault says; the next request tries again */
};

/* An adapter that goes and comes with its model. */
typedef struct weft__server_kept_adapter {
    int32_t index; /* in the engine that ended */
    float scale;
    char name[WEFT__API_ADAPTER_NAME], path[1024];
} weft__server_kept_adapter;

typedef struct weft__server_model {
    weft_server *server;
    char name[128];
    char *path;                   /* it is loaded from; NULL: it is the caller's, and always there */
    weft__server_strings aliases; /* never NULL within */
    int is_pinned;                /* it stays once it is there */
    weft__server_settings settings;
    uint64_t idle_ns; /* how long it stays unused where no request says it; 0: for ever */

    /* Under the lock of models. */
    enum weft__server_model_state state;
    int n_held;              /* requests and endpoints that use it: it stays as it is meanwhile */
    int closing;             /* goes when none uses it: 1: for room, 2: whatever else happens; new requests wait */
    int is_wanted_again;     /* it is to be loaded as soon as it has gone */
    atomic_int is_cancelled; /* while it is loading; looked at without the lock, too, as stop is */
    uint64_t wanted_ns, loaded_ns, used_ns;
    uint64_t keep_ns;                                 /* how long it stays unused; UINT64_MAX: for ever */
    uint64_t reserved, kv_allowed, kv_least, kv_most; /* bytes: all but pages and what adapters have beyond; pages */
    uint64_t adapters_least, adapters_more;           /* of adapters: reserved; that they may take beyond */
    uint64_t n_adapters_gone;                         /* evictions when it was last looked at */
    weft_error fault;
    weft__http_turns waiting;        /* requests that wait for it */
    weft__server_kept_adapter *kept; /* [n_kept] */
    size_t n_kept;
    uint64_t n_loads, n_unloads, load_ms;
    atomic_int permille; /* of the loading */

    weft__server_metrics metrics;
    weft_engine_stats past; /* counters of engines that have ended */

    /* While it is loaded and held. */
    weft_model *model;
    weft_model *draft; /* that guesses for it, opened with it; NULL: none */
    weft_engine *engine;
    weft__api_prompt_model prompt_model; /* its chat and chat_fault are owned here */
    char *chat_source;
    int32_t n_vocab, n_slots, max_requests;
    char bos[64], eos[64];
    weft_model_info info;
    char fingerprint[33]; /* where answers are kept */
    weft__server_slots slots;
    weft__server_grammar_cache grammar_cache;
    weft__server_events events;
    pthread_mutex_t loras_lock;
    weft__api_adapter_scale loras[WEFT__API_MAX_LORAS]; /* of requests that name none */
    int n_loras;
    pthread_mutex_t templates_lock;
    struct weft__server_template *templates; /* of presets (presets.c) */
} weft__server_model;

/* presets.c: of this model. */
void weft__server_templates_end(weft__server_model *m);
/* 1: the model is shown under that name, or it is one of its aliases ("*" is no name). */
int weft__server_is_model_name(const weft__server_model *m, const char *name);

/* ---- all of them (models.c): which one a request means, and requests that wait for one ---- */

typedef struct weft__server_models {
    weft__server_model **items; /* [n], none comes or goes while the server runs */
    size_t n;
    weft__server_model *first; /* that is meant where a request names none; NULL: none */
    int are_several;           /* some are loaded when they are asked for */
    uint64_t memory;           /* 0: no limit */
    char *store_dir;
    int32_t max_waiting, max_of_one;

    pthread_t loader, keeper, sender;
    int has_loader, has_keeper, has_sender;
    pthread_mutex_t lock;            /* all below, and what models say of it */
    pthread_cond_t work, tick, send; /* of the three threads */
    weft__http_turns sending;        /* requests whose model is there, and held for them */
    int n_waiting, has_left;         /* has_left: a client whose request waits */
    atomic_int stop;
} weft__server_models;

/* One more hold on one that is held. Returns m. */
weft__server_model *weft__server_model_hold(weft__server_model *m);
/* 1: it is loaded, and held now. */
int weft__server_model_hold_loaded(weft__server_model *m);
/* used_ns: when it was last used, which may be long before; 0: now. */
void weft__server_model_release(weft__server_model **m, uint64_t used_ns);
/* The same by who only looked: that is no use of it. */
void weft__server_model_look_away(weft__server_model **m);

enum { WEFT__SERVER_WORKERS_MAX = 64 };

struct weft_server {
    weft__server_models models;
    time_t began;
    weft__server_strings origins, hosts;
    weft__server_keys given_keys; /* those that are in no file */
    pthread_rwlock_t rules_lock;  /* rules */
    struct weft__server_rules *rules;
    weft__server_limits limits;
    char *key_file, *config_file;
    int32_t (*config_setting)(void *arg, const char *name, const char *const *values, int32_t n, int32_t of_model,
                              char *why, size_t room);
    void *config_arg;
    void (*model_loaded)(void *arg, const char *name, const weft_model *model, const weft_engine_params *engine);
    void *loaded_arg;
    int wants_keys;     /* from its start on */
    int no_page, shift; /* shift: where requests do not say what becomes of a full context */
    weft__server_answered answered;
    weft__server_usage usage;
    weft__server_wait_queue grammars, adapters;
    /* workers that wait for the disk, or for an embedding, and whose requests: some stay for the others */
    pthread_mutex_t disk_lock;
    int n_at_disk, max_at_disk;
    const void *at_disk[WEFT__SERVER_WORKERS_MAX];
    weft__server_answers answers;
    int add_adapters;                  /* those of folders for adapters, by their names */
    struct weft__server_log *log;      /* NULL: none */
    weft__server_traces *traces;       /* NULL: none are sent */
    weft__learn_store *learn;          /* NULL: nothing is kept to learn from */
    struct weft__teach_store *teacher; /* NULL: nothing is learned (learned.h) */
    struct weft__server_given *given;  /* likewise: what of it the engine has */
    atomic_int n_running;              /* answers that engines have taken and not ended, of all models */
    weft__server_metrics_file metrics_file;
    weft__server_resident resident;
    struct weft__server_router *router;   /* NULL: none */
    struct weft__memory *memories;        /* NULL: none are kept */
    int64_t memories_per_hour;            /* that a caller may put */
    int memory_embed;                     /* they are found by embeddings, too */
    _Atomic uint64_t n_memory_vectors[2]; /* that were made: of memories, of questions */
    int stop_fd, reload_fd;
    atomic_int draining;
    int32_t drain_s;
    weft__http *http;
};

/* ---- one request (response.c): from submit to the last byte ---- */

/* One answer of a response as events.c makes it. */
typedef struct weft__server_choice {
    weft__server_response *gen;
    weft__api_choice *out; /* what its dialect's writer sees */
    uint64_t request;
    int submitted, began, finished;
    int has_ended;            /* by itself; the engine is told so, and may be a step ahead */
    char engine_message[256]; /* of its last event */
    int with_adapters;
    weft_detok *detok;
    weft_chat_parser *parser;                                 /* NULL: the text is the answer */
    weft__api_message message;                                /* that the parser tells; out's where there is one */
    size_t n_parsed;                                          /* bytes of out's text that the parser was given */
    int64_t n_thought;                                        /* tokens */
    int thinks;                                               /* after the last token */
    int n_silent;                                             /* the last tokens, which gave no text */
    int is_over;                                              /* the budget was used up, once and for all */
    int is_whole;                                             /* its one call is there: what follows is not said */
    size_t raw;                                               /* bytes that came from the detokenizer */
    size_t cap_entries, cap_prompt_entries, n_tops, cap_tops; /* of out's */
    weft_status failed; /* what went wrong on our side of the engine; out->message says what */
    uint64_t now_ns;    /* when the engine told what is being told */
    uint64_t last_ns;
    int32_t n_read;                  /* of the prompt, and counted */
    uint64_t counted_ns;             /* until then its time is counted */
    uint64_t prompt_us, generate_us; /* that are counted */
    int32_t n_prompt;
    int32_t drafted[WEFT_DRAFTERS], accepted[WEFT_DRAFTERS];
    double queue_ms;
    struct weft__server_kept_token *kept; /* [n_kept], where answers are kept to learn from (learn.c) */
    size_t n_kept, cap_kept;
    int kept_failed, is_kept; /* there was no memory for one; the answer was handed over */
} weft__server_choice;

/* ---- count.c: what a choice adds to the counters, as events are told; at its now_ns ---- */
/* `n` answers of a prompt count its tokens once, as `usage` does. */
int weft__server_first_of_prompt(const weft__server_choice *c);
void weft__server_count_began(weft__server_choice *c, double queue_ms);
/* n_read tokens of its prompt are there, of which n_cached were before it began. Again for the same: nothing. */
void weft__server_count_read(weft__server_choice *c, int32_t n_read, int32_t n_cached);
void weft__server_count_token(weft__server_choice *c);
/* It has ended; its finish and times are filled. */
void weft__server_count_end(weft__server_choice *c);

struct weft__server_response {
    weft_server *server;
    weft__server_model *model; /* held */
    weft__http_request *r;
    const weft__api_writer *writer;
    weft__api_answer answer; /* what the writer sees */
    atomic_int refs;
    pthread_mutex_t lock; /* what follows, as far as n_done, and the choices' `submitted` */
    int n_left, refused, gone, has_failed;
    int is_asking;       /* a thread submits some of its choices: the others leave that to it */
    int n_asked, n_done; /* of the choices: of inputs that are embedded more are asked for as some are done */
    weft__api_params params;
    weft__api_prompts prompts;
    weft__server_choice *choices; /* [answer.n_choices] */
    int n_at_once;                /* so many are asked for and not done */
    int retry_s;                  /* where the queue had no place for one of them */
    weft__server_stages stages;
    weft_grammar *grammar;
    int32_t lead;          /* weft_chat_form_lead; 0: the form, if there is one, is all of the answer */
    int32_t *thinking_end; /* [n_thinking_end], tokens: what ends thoughts beyond the budget */
    size_t n_thinking_end;
    int32_t *predicted; /* [n_predicted], tokens: what the request expects of the answers */
    size_t n_predicted;
    weft__http_turn turn;             /* in a line, later in the queue of answers */
    int too_late, looked_ahead;       /* the line's: it was answered at its deadline; what it needs was begun early */
    int has_lease;                    /* 0: its adapters must be read first */
    weft_engine_lease *lease;         /* its adapters, until everything is submitted */
    struct weft__server_rules *rules; /* held */
    const struct weft__server_member *member; /* of these; NULL: nothing is limited */
    int64_t n_entered;                        /* tokens of its prompts that were counted when it was let in */
    atomic_int has_run, is_in;                /* is_in: it counts as one that is answered now */
    char tenant[64];
    char label[32], adapters[WEFT__API_ADAPTERS_SHOWN]; /* for /metrics */
    size_t usage_place;                                 /* of these; of events.c */
    int keep_entries;
    int embedding;
    struct weft__server_learning {
        int on; /* its answers are kept */
        int64_t began_ms, version;
        char content[33]; /* of its adapter; "": none, several, or not known */
    } learn;
    struct weft__regex *verifier; /* that an answer must match; NULL: none */
    weft__server_caller *who;     /* [1], where it may be asked for again; its rules are the response's */
    weft__strbuf asked;           /* the body, likewise */
    weft__strbuf again;           /* what is asked when nobody holds it any more; empty: nothing */
    weft__strbuf scratch;         /* of events.c, and when all have finished of the thread that answers */
};

/* Submits everything asked for and lets the answer come; takes ask and prompts. tenant: whose share of the engine's
 * time it takes: the key's or, without keys, that of the request's `user`. Frees itself after the last event. */
void weft__server_response_start(weft__server_model *m, weft__http_request *r, const weft__api_writer *writer,
                                 const weft__server_caller *who, const char *tenant, const char *id_prefix,
                                 weft__api_params *params, weft__api_prompts *prompts, int embedding);

/* Answers what has finished and was no stream, and takes over the last choice's share of it. */
void weft__server_response_answer(weft__server_response *g);

/* ---- answers.c: whole answers, on a thread of their own ---- */
weft_status weft__server_answers_begin(weft__server_answers *a, weft_error *err);
/* After the last request was released; nothing when it has not begun. */
void weft__server_answers_end(weft__server_answers *a);
/* weft__server_response_answer, soon. */
void weft__server_answers_put(weft__server_answers *a, weft__server_response *g);

/* ---- wait_queue.c: what takes long, on a thread of its own ---- */
/* what, max, max_of_one, work, go_on and ahead are set. */
weft_status weft__server_wait_queue_begin(weft__server_wait_queue *line, weft_error *err);
/* After the last request was released; nothing when it has not begun. */
void weft__server_wait_queue_end(weft__server_wait_queue *line);
/* Hands a gen over until it goes on or is answered, at its deadline if it has one; 0: too many wait, and it stays the
 * caller's. */
int weft__server_wait_queue_put(weft__server_wait_queue *line, weft__server_response *g);
/* response.c: takes its adapters, compiles its grammar. 0: it has none, and what is wrong stands in the error. */
int weft__server_response_lease(weft__server_response *g, weft__api_error *error);
int weft__server_response_compile(weft__server_response *g, weft__api_error *error);
/* When its deadline passes, ns; 0: never. */
uint64_t weft__server_response_deadline(const weft__server_response *g);
/* Answers that it has passed before there was what it waited for; the gen stays. */
void weft__server_response_expired(weft__server_response *g, const char *what);
/* Goes on with it; answers with the error if that is not NULL. All take over the line's share of it, and so does
 * weft__server_response_drop, which does nothing more. */
void weft__server_response_leased(weft__server_response *g, const weft__api_error *error);
void weft__server_response_compiled(weft__server_response *g, const weft__api_error *error);
void weft__server_response_drop(weft__server_response *g);

/* A worker asks before it waits for the disk, or for an embedding (router_embed.c), and tells when it no longer does;
 * 0: too many do already, in all or for this client, and the error, of this field, is set. */
int weft__server_disk_enter(weft_server *s, const weft__http_request *r, const char *field, weft__api_error *error);
void weft__server_disk_leave(weft_server *s, const weft__http_request *r);

/* What the log takes of a request; as weft__http_set_note. */
typedef struct weft__server_log_entry {
    char tenant[64], finish[16], model[64];
    int32_t n_prompt, n_cached, n_generated, n_choices;
    int32_t drafted[WEFT_DRAFTERS], accepted[WEFT_DRAFTERS]; /* tokens that were guessed, by drafter; right ones */
    double queue_ms;
    weft__server_stages stages;
    weft__server_model *served; /* of whose engine it was; loaded or not by now */
} weft__server_log_entry;

/* ---- adapters (adapters.c) ---- */
/* WEFT_ARGUMENT when an adapter that is there already has such a name. */
weft_status weft__server_adapters_check_names(const weft__server_model *m, weft_error *err);
/* Adds the adapters of the folder to the engine, in alphabetical order, by their names without .gguf; none is read
 * before it is asked for. What may not be one is left out, which stderr says. WEFT_IO, WEFT_NO_MEMORY. */
weft_status weft__server_adapters_of_folder(const weft__server_model *m, weft_error *err);
/* Is that real path beneath the folder for clients? */
int weft__server_adapters_within(const weft__server_model *m, const char *real);
/* The files of a PEFT folder may be links as well; those that are not there are for the reader to miss. */
int weft__server_adapters_members_within(const weft__server_model *m, const char *folder);
/* The adapter that a model's name stands for, for that caller: the engine's name of it; "": none that it may use. */
void weft__server_adapter_of_model(const weft__server_model *m, const weft__server_caller *who, const char *model,
                                   char out[WEFT__API_ADAPTER_NAME]);
/* 1: the caller may use those that the request names, and its adapter; 0 with the error filled. */
int weft__server_adapters_allowed(const weft__server_model *m, const weft__server_caller *who,
                                  const weft__api_params *params, weft__api_error *error);
/* Those of a request, taken: what their names and numbers stand for now. NULL: none. 1, or 0 with the error filled.
 * ready: NULL, or nothing is read, and *ready is 0 where it must be. shown: their names as the tenant knows them, with
 * "+" between. out NULL: nothing is taken, and their files are asked for ahead. */
int weft__server_adapters_lease(weft__server_model *m, const weft__api_params *params, const char *tenant, int *ready,
                                weft_engine_lease **out, char shown[WEFT__API_ADAPTERS_SHOWN], weft__api_error *error);
void weft__server_adapter_put_model(const weft__server_model *m, const weft__server_caller *who,
                                    const weft_engine_adapter *a, weft__strbuf *out);
/* All that are there for the caller, as models, each with a comma in front. */
void weft__server_adapters_put_models(const weft__server_model *m, const weft__server_caller *who, weft__strbuf *out);
/* out[0..room): the same for a message: " and the adapters 'a', 'b' and 7 more", of which as many are named as are
 * short enough; "" where there are none. */
void weft__server_adapters_name(const weft__server_model *m, const weft__server_caller *who, char *out, size_t room);
/* Unloads those of keys that are none any more. */
void weft__server_adapters_forget(weft__server_model *m);
/* /lora-adapters, /v1/load_lora_adapter, /v1/unload_lora_adapter */
void weft__server_adapters_endpoint(weft__server_model *m, weft__http_request *r, const weft__server_caller *who);
void weft__server_adapter_load(weft__server_model *m, weft__http_request *r, const weft__server_caller *who);
void weft__server_adapter_unload(weft__server_model *m, weft__http_request *r, const weft__server_caller *who);

/* ---- the request log (log.c) ---- */
/* NULL: there is none; "-": stderr. WEFT_IO, WEFT_LIMIT, WEFT_NO_MEMORY. */
weft_status weft__server_log_begin(weft_server *s, const char *path, weft_error *err);
/* After the last request was released; nothing when it has not begun. What a log does not take within a second is
 * lost, and a thread that stands in a write until then may outlive the server. */
void weft__server_log_end(weft_server *s);
/* Lines that could not be written. */
uint64_t weft__server_log_lost(const weft_server *s);
/* Never blocks. */
void weft__server_log_request(weft_server *s, const weft__http_record *record, const weft__server_log_entry *note);

/* r: whose disk it is for a while. */
weft_status weft__server_slot_action(weft__server_model *m, const weft__http_request *r, int32_t id, const char *tenant,
                                     const char *action, const char *filename, weft__strbuf *out,
                                     weft__api_error *error);
/* Of the slots of others the caller is told only that they are there, and whether something runs in them. Returns how
 * many are idle. */
int32_t weft__server_slots_write(weft__server_model *m, const weft__server_caller *who, weft__strbuf *out);

#endif
