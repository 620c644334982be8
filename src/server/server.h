/* server.h: what the files of this room share: the server, a request's answer, slots, counters.
 *
 * Lifetime: a weft_server outlives every request of its HTTP façade, since freeing it stops that first. */
#ifndef WEFT_SERVER_INTERNAL_H
#define WEFT_SERVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/text.h"
#include "api/fields.h"
#include "http/http.h"
#include "http/turns.h"
#include "weft/server.h"

/* ---- keys (auth.c) ---- */

/* Its SHA-256; the key itself is not kept. */
typedef struct weft__key {
    unsigned char hash[32];
    int is_admin;
    char name[32]; /* for people; "": none */
} weft__key;

typedef struct weft__keys {
    weft__key *items;
    size_t n, capacity;
} weft__keys;

/* Who asks. */
typedef struct weft__who {
    char tenant[32]; /* of a key: "key-" and twelve digits of its hash; "": no keys are wanted here */
    char label[32];  /* in /metrics: the key's name, or its tenant */
    int is_admin;    /* may change what all others get, and see what they do */
} weft__who;

weft_status weft__keys_add(weft__keys *keys, const char *key, int is_admin, weft_error *err);
/* Adds those of a file: in each line a key, and behind it "admin" and "name=NAME" where it has them. */
weft_status weft__keys_read(weft__keys *keys, const char *path, weft_error *err);
void weft__keys_free(weft__keys *keys);
/* 1 when `key` is one of them, in a time that does not tell how nearly; *who is its owner then. */
int weft__keys_check(const weft__keys *keys, const char *key, weft__who *who);
/* Is one of them this tenant's? */
int weft__keys_have(const weft__keys *keys, const char *tenant);
/* The name of a tenant that a request without a key gives itself. Long ones by their hash, since two may begin alike. */
weft_status weft__tenant_of_user(const char *user, char tenant[64], weft_error *err);

/* ---- slots (slots.c): what runs, and the tokens of what ran there last ---- */

typedef struct weft__slot {
    int busy;
    uint64_t used; /* when it was filled or given back last, by the slots' count; 0: it holds nothing */
    uint64_t task; /* request of the engine */
    char tenant[64];
    int32_t *tokens; /* [n_ctx] of the prompt and the answer */
    int32_t n_tokens, n_prompt, n_decoded, max_tokens;
    int with_adapters; /* what is cached of the tokens is kept for these alone */
} weft__slot;

typedef struct weft__slots {
    pthread_mutex_t lock;
    weft__slot *all;
    int32_t n, n_ctx;
    uint64_t n_uses;
    int have_owners; /* there are keys: what a slot holds is its key's */
} weft__slots;

/* The lock is there already. */
weft_status weft__slots_begin(weft__slots *slots, int32_t n, int32_t n_ctx, weft_error *err);
void weft__slots_free(weft__slots *slots);
/* Takes a free one: `wanted` if that is free, else the one used least recently, so that what somebody is about to save stays; -1 when none is. */
int32_t weft__slots_take(weft__slots *slots, int32_t wanted, uint64_t task, const char *tenant, const int32_t *prompt,
                         int32_t n_prompt, int32_t max_tokens, int with_adapters);
void weft__slots_token(weft__slots *slots, int32_t slot, int32_t token);
void weft__slots_give(weft__slots *slots, int32_t slot);

/* ---- counters (metrics.c) ---- */

enum { WEFT__BOUNDS = 16 };
typedef struct weft__histogram {
    const double *bounds; /* [n] */
    int n;
    _Atomic uint64_t counts[WEFT__BOUNDS + 1];
    _Atomic uint64_t sum_us;
} weft__histogram;

/* Seconds. */
void weft__histogram_add(weft__histogram *h, double seconds);

enum { WEFT__ROUTES_MAX = 32, WEFT__STATUSES_MAX = 24 };
typedef struct weft__metrics {
    _Atomic uint64_t responses[WEFT__ROUTES_MAX][WEFT__STATUSES_MAX];
    _Atomic uint64_t prompt_tokens, cached_tokens, generated_tokens; /* these move with every step, and so do the next four */
    _Atomic uint64_t prompt_us, generate_us;
    _Atomic uint64_t fresh_tokens; /* of prompts, less the cached: a difference of two counters may fall while they grow */
    _Atomic uint64_t most_tokens;  /* of a prompt and its answer */
    _Atomic uint64_t embedded, finished[5] /* by weft_finish */, log_lines_lost;
    weft__histogram first_token, between_tokens, queue, duration;
} weft__metrics;

/* By key and adapters (usage.c). */
typedef struct weft__used {
    uint64_t requests, prompt_tokens, cached_tokens, generated_tokens;
} weft__used;

typedef struct weft__usage {
    pthread_mutex_t lock;
    struct weft__usage_row *rows; /* [n] */
    size_t n, capacity;
    int n_keys; /* that the rows are of */
} weft__usage;

void weft__usage_begin(weft__usage *usage);
/* The rows of a key, or of all: "". */
void weft__usage_write(weft__usage *usage, const char *key, weft__text *out);
void weft__metrics_begin(weft__metrics *m);
void weft__metrics_response(weft__metrics *m, const char *path, int status);
/* Adds what a request of a key used with these adapters. *place: 0 for its first time, then as it was left. Any thread. */
void weft__usage_add(weft__usage *usage, size_t *place, const char *key, const char *adapters, const weft__used *used);
void weft__usage_free(weft__usage *usage);
/* usage by key and adapters: of who asks, of all where it is an admin. */
void weft__metrics_write(weft_server *s, const weft__who *who, weft__text *out);

/* ---- the server ---- */

typedef struct weft__server_strings {
    char **items; /* NULL-terminated */
} weft__server_strings;

typedef struct weft__gen weft__gen;

/* Requests that wait for one thing (line.c). */
typedef struct weft__line {
    const char *what;    /* they wait for: "its grammar" */
    int max, max_of_one; /* that wait, in all and of a tenant; of an address, whose users are many tenants, half as many more */
    /* What they wait for: 1; 0 with the fault filled; -1: not yet, and others may come first. */
    int (*work)(weft__gen *g, weft__fault *fault);
    void (*go_on)(weft__gen *g, const weft__fault *fault); /* takes the line's share of it; NULL: it was done */
    pthread_t thread, clock;                               /* that works; that tells those whose time is over */
    pthread_mutex_t lock;                                  /* all below */
    pthread_cond_t wake, tick;
    weft__turns waiting;
    weft__gen *now; /* whose turn it is */
    int stop, has_thread, has_clock;
} weft__line;

/* Whole answers that wait to be written (answers.c). */
typedef struct weft__answers {
    pthread_t thread;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake;
    weft__turns waiting;
    int stop, has_thread;
} weft__answers;

/* The request log (log.c). */
typedef struct weft__request_log {
    pthread_t thread;
    pthread_mutex_t lock; /* waiting, stop, ended */
    pthread_cond_t end;
    weft__text waiting, taken; /* whole lines: that wait for the thread; the thread's */
    char *path;                /* where it is opened again; NULL: nowhere */
    int fd, wake_fd;           /* -1: none */
    size_t n_rest;             /* the thread's, as rest: of a line that was begun */
    int stop, ended, has_thread;
    atomic_int reopen, told; /* told: that lines are lost */
    char rest[8192];         /* more than a line has */
} weft__request_log;

enum { WEFT__WORKERS_MAX = 64 };

struct weft_server {
    weft_model *model;
    weft_engine *engine;
    const weft_tokenizer *tokenizer;
    weft_chat *chat; /* NULL: the model has no template */
    char *chat_source, *chat_fault;
    int32_t n_vocab, n_ctx, n_slots, max_requests;
    int64_t longest_token; /* bytes */
    char name[128], bos[64], eos[64];
    time_t began;
    weft_model_info info;
    weft__server_strings origins, hosts, aliases;
    weft__keys keys, given_keys; /* those that count; of them those that are in no file */
    pthread_rwlock_t keys_lock;  /* keys */
    char *key_file;
    int wants_keys; /* from its start on */
    weft__slots slots;
    weft__metrics metrics;
    weft__usage usage;
    weft__line grammars, adapters;
    weft_grammar *json[2]; /* of objects and of any value: the thread of grammars makes them when first asked for */
    pthread_mutex_t
        disk_lock; /* workers that wait for the disk, and whose requests: some stay for the others, whatever it does */
    int n_at_disk, max_at_disk;
    const void *at_disk[WEFT__WORKERS_MAX];
    weft__answers answers;
    char *adapter_dir; /* links followed; NULL: none are loaded while it runs */
    pthread_mutex_t loras_lock;
    weft__lora loras[WEFT__MAX_LORAS]; /* of requests that name none */
    int n_loras;
    weft__request_log log;
    int stop_fd, reload_fd;
    atomic_int draining;
    int32_t drain_s;
    weft__http *http;
};

/* ---- one request (gen.c): from submit to the last byte ---- */

typedef enum weft__dialect { WEFT__OPENAI, WEFT__LLAMA } weft__dialect;
weft__dialect weft__dialect_of(const char *path);

/* An error's JSON in the dialect of the path; NULL when memory runs out. */
char *weft__fault_body(weft__dialect dialect, const weft__fault *fault, size_t *n);
/* Takes the tenants out of what stands in a message by a name of the engine's: "key-0123456789ab.mine" is "mine" to whose it is, and
 * "?" to any other. tenant: who reads it, NULL: whose it is. */
void weft__hide_tenants(char *message, const char *tenant);
void weft__reply_fault(weft__http_request *r, const weft__fault *fault);
/* Takes the text's bytes. */
void weft__reply_json(weft__http_request *r, int status, weft__text *body);
/* The fault of a failed call of the engine. */
void weft__fault_of(weft__fault *fault, weft_status status, const char *message);

typedef struct weft__prompt {
    int32_t *ids;
    int32_t n;
    char *text; /* as it was given, or as its tokens read; only where an answer needs it */
    size_t n_text;
} weft__prompt;

typedef struct weft__prompts {
    weft__prompt *items;
    size_t n;
} weft__prompts;

void weft__prompts_free(weft__prompts *prompts);
/* Tokens of a "prompt": string, ids, a mix, or an array of those. special: BOS and the like are added; parse: special tokens
 * spelled in it become those. with_text: fills text. 1, or 0 with the fault filled. */
int weft__prompts_read(const weft_server *s, const char *field, const weft__json *v, int special, int parse, int with_text,
                       weft__prompts *out, weft__fault *fault);
/* The same of what no request will run: only the body's limit bounds it. */
int weft__texts_read(const weft_server *s, const char *field, const weft__json *v, int special, int parse, int with_text,
                     weft__prompts *out, weft__fault *fault);
/* The one prompt that messages become. */
int weft__prompts_chat(const weft_server *s, const weft__ask *ask, weft__prompts *out, weft__fault *fault);
/* Text of messages; weft__free. */
int weft__chat_text(const weft_server *s, const weft__ask *ask, weft_chat_prompt **out, weft__fault *fault);

/* A token of the answer (or of an echoed prompt), kept for log-probabilities and ids. */
typedef struct weft__entry {
    int32_t token;
    float logprob; /* NAN: none */
    int32_t n_top;
    size_t first_top;  /* in the choice's tops */
    size_t begin, end; /* bytes of the answer's text before and with it */
} weft__entry;

typedef struct weft__server_choice {
    weft__gen *gen;
    int32_t index, slot;
    const weft__prompt *prompt;
    uint64_t request;
    int submitted, began, finished;
    int with_adapters;
    weft_detok *detok;
    struct weft__stop *stop;
    weft__text text; /* all that is certain */
    size_t raw;      /* bytes that came from the detokenizer */
    size_t shown;    /* bytes of text, and entries, that were given to the dialect */
    weft__entry *entries, *prompt_entries;
    size_t n_entries, cap_entries, n_shown, n_prompt_entries, cap_prompt_entries;
    weft_token_prob *tops;
    size_t n_tops, cap_tops;
    float *embedding;
    int32_t n_embedding;
    weft_status failed; /* what went wrong on our side of the engine; `message` says what */
    uint64_t last_ns;
    int32_t n_read;                  /* of the prompt, and counted */
    uint64_t counted_ns;             /* until then its time is counted */
    uint64_t prompt_us, generate_us; /* that are counted */
    weft_finish finish;
    weft_status status;
    char message[256];
    int32_t n_prompt, n_cached, n_generated;
    double queue_ms, prompt_ms, generate_ms;
    uint64_t seed;
} weft__server_choice;

/* ---- count.c: what a choice adds to the counters, as it goes; the engine's thread ---- */
/* `n` answers of a prompt count its tokens once, as `usage` does. */
int weft__first_of_prompt(const weft__server_choice *c);
void weft__count_began(weft__server_choice *c, double queue_ms);
/* n_read tokens of its prompt are there, of which n_cached were before it began. Again for the same: nothing. */
void weft__count_read(weft__server_choice *c, int32_t n_read, int32_t n_cached);
void weft__count_token(weft__server_choice *c, uint64_t now_ns);
/* It has ended; its finish and times are filled. */
void weft__count_end(weft__server_choice *c);

/* Its entries that the answer shows: without those of the stop string. */
size_t weft__entries_shown(const weft__server_choice *c);
/* Of a stream: why the choice failed. */
void weft__put_error_event(weft__dialect dialect, const weft__server_choice *c, weft__text *out);

/* How a dialect answers; called by the engine's thread, `whole` by that of answers. */
typedef struct weft__writer {
    /* New text and entries of a stream: choice->text from choice->shown on, entries from n_shown up to n_entries_now. */
    void (*delta)(weft__server_choice *c, size_t n_text, size_t n_entries, weft__text *out);
    void (*choice_end)(weft__server_choice *c, weft__text *out);   /* of a stream */
    void (*stream_begin)(weft__server_choice *c, weft__text *out); /* before a choice's first delta */
    void (*stream_end)(weft__gen *g, weft__text *out);
    void (*whole)(weft__gen *g, weft__text *out);
} weft__writer;

struct weft__gen {
    weft_server *server;
    weft__http_request *r;
    const weft__writer *writer;
    atomic_int refs;
    pthread_mutex_t lock; /* n_left, failed, gone and the choices' `submitted` */
    int n_left, refused, gone;
    weft__ask ask;
    weft__prompts prompts;
    weft__server_choice *choices;
    int n_choices;
    int n_at_once, n_asked, n_done; /* of them; of inputs that are embedded the engine's thread asks for more as some are done */
    int retry_s;                    /* where the queue had no place for one of them */
    weft_grammar *grammar;
    weft__turn turn;          /* in a line, later in the queue of answers */
    int too_late;             /* the line's: its deadline passed, and it has its answer */
    int has_lease;            /* 0: its adapters must be read first */
    weft_engine_lease *lease; /* its adapters, until everything is submitted */
    char id[48], model[160], tenant[64];
    char label[32], adapters[WEFT__ADAPTERS_SHOWN]; /* for /metrics */
    size_t usage_place;                             /* of these; of the engine's thread */
    int64_t created;
    int keep_entries, several; /* several: prompts were given as an array */
    int embedding;
    weft__text scratch; /* of the engine's thread, and when all have finished of whoever answers */
};

/* Submits everything asked for and lets the answer come; takes ask and prompts. tenant: who shares the engine's time, the key's or, without keys,
 * who the request says it is from. Frees itself after the last event. */
void weft__gen_start(weft_server *s, weft__http_request *r, const weft__writer *writer, const weft__who *who, const char *tenant,
                     const char *id_prefix, weft__ask *ask, weft__prompts *prompts, int embedding);

/* Answers what has finished and was no stream, and takes over the last choice's share of it. */
void weft__gen_answer(weft__gen *g);

/* ---- answers.c: whole answers, on a thread of their own ---- */
weft_status weft__answers_begin(weft__answers *a, weft_error *err);
/* After the last request was released; nothing when it has not begun. */
void weft__answers_end(weft__answers *a);
/* weft__gen_answer, soon. */
void weft__answers_put(weft__answers *a, weft__gen *g);

/* ---- line.c: what takes long, on a thread of its own ---- */
/* what, max, max_of_one, work and go_on are set. */
weft_status weft__line_begin(weft__line *line, weft_error *err);
/* After the last request was released; nothing when it has not begun. */
void weft__line_end(weft__line *line);
/* Hands a gen over until it goes on or is answered, at its deadline if it has one; 0: too many wait, and it stays the caller's. */
int weft__line_put(weft__line *line, weft__gen *g);
/* gen.c: takes its adapters, compiles its grammar. 0: it has none, and what is wrong stands in the fault. */
int weft__gen_lend(weft__gen *g, weft__fault *fault);
int weft__gen_compile(weft__gen *g, weft__fault *fault);
/* When its deadline passes, ns; 0: never. */
uint64_t weft__gen_deadline(const weft__gen *g);
/* Answers that it has passed before there was what it waited for; the gen stays. */
void weft__gen_late(weft__gen *g, const char *what);
/* Goes on with it; answers with the fault if that is not NULL. All take over the line's share of it, and so does weft__gen_drop, which
 * does nothing more. */
void weft__gen_lent(weft__gen *g, const weft__fault *fault);
void weft__gen_compiled(weft__gen *g, const weft__fault *fault);
void weft__gen_drop(weft__gen *g);

/* A worker asks before it waits for the disk, and tells when it no longer does; 0: too many do already, in all or for this client, and the
 * fault, of this field, is set. */
int weft__disk_take(weft_server *s, const weft__http_request *r, const char *field, weft__fault *fault);
void weft__disk_give(weft_server *s, const weft__http_request *r);

/* A JSON array of them. */
void weft__put_floats(weft__text *out, const float *v, int32_t n);

extern const weft__writer weft__write_chat, weft__write_completions, weft__write_completion, weft__write_openai_embeddings,
    weft__write_embedding;

/* What the log takes of a request; as weft__http_set_note. */
typedef struct weft__note {
    char tenant[64], finish[16], model[64];
    int32_t n_prompt, n_cached, n_generated, n_choices;
    double queue_ms;
} weft__note;

/* ---- adapters (adapters.c) ---- */
/* 1: the model is shown under that name, or it is one of its aliases ("*" is no name). */
int weft__is_model_name(const weft_server *s, const char *name);
/* WEFT_ARGUMENT when an adapter that is there already has such a name. */
weft_status weft__adapters_check_names(const weft_server *s, weft_error *err);
/* Adds the adapters of the folder to the engine, in alphabetical order, by their names without .gguf; none is read before it is asked for. What
 * may not be one is left out, which stderr says. WEFT_IO, WEFT_NO_MEMORY. */
weft_status weft__adapters_of_folder(const weft_server *s, weft_error *err);
/* The adapter that a model's name stands for, for who asks: the engine's name of it; "": none. */
void weft__adapter_of_model(const weft_server *s, const char *tenant, const char *model, char out[WEFT__ADAPTER_NAME]);
/* Those of a request, taken: what their names and numbers stand for now. NULL: none. 1, or 0 with the fault filled. ready: NULL, or nothing is
 * read, and *ready is 0 where it must be. shown: their names as the tenant knows them, with "+" between. */
int weft__adapters_take(weft_server *s, const weft__ask *ask, const char *tenant, int *ready, weft_engine_lease **out,
                        char shown[WEFT__ADAPTERS_SHOWN], weft__fault *fault);
void weft__adapter_put_model(const weft_server *s, const weft__who *who, const weft_engine_adapter *a, weft__text *out);
/* All that are there for who asks, as models, each with a comma in front. */
void weft__adapters_put_models(const weft_server *s, const weft__who *who, weft__text *out);
/* Unloads those of keys that are none any more. */
void weft__adapters_forget(weft_server *s);
/* /lora-adapters, /v1/load_lora_adapter, /v1/unload_lora_adapter */
void weft__adapters_endpoint(weft_server *s, weft__http_request *r, const weft__who *who);
void weft__adapter_load(weft_server *s, weft__http_request *r, const weft__who *who);
void weft__adapter_unload(weft_server *s, weft__http_request *r, const weft__who *who);

/* ---- routes (routes.c) ---- */
void weft__route(void *server, weft__http_request *r);
/* 0: whoever sent this head will be refused for want of a key, whatever the body. Any thread. */
int weft__admit(void *server, const weft__http_request *r, char client[WEFT__HTTP_CLIENT]);
/* docs/openapi.json, as it was when this was built (cmake/embed.cmake). */
extern const char weft__openapi[];
extern const size_t weft__openapi_n;
/* For counters: an index in [0, WEFT__ROUTES_MAX), and the path as the table spells it ("/slots/{id_slot}"); the last is "other",
 * and NULL stands behind it. */
int weft__route_index(const char *path);
const char *weft__route_at(int index);

/* ---- the request log (log.c) ---- */
/* NULL: there is none; "-": stderr. WEFT_IO, WEFT_LIMIT, WEFT_NO_MEMORY. */
weft_status weft__log_begin(weft_server *s, const char *path, weft_error *err);
/* After the last request was released; nothing when it has not begun. What a log does not take within a second is lost. */
void weft__log_end(weft_server *s);
/* Never blocks. */
void weft__log_request(weft_server *s, const weft__http_record *record, const weft__note *note);

/* r: whose disk it is for a while. */
weft_status weft__slot_action(weft_server *s, const weft__http_request *r, int32_t id, const char *tenant, const char *action,
                              const char *filename, weft__text *out, weft__fault *fault);
/* Of the slots of others who asks is told only that they are there, and whether something runs in them. Returns how many are idle. */
int32_t weft__slots_write(weft_server *s, const weft__who *who, weft__text *out);

#endif
