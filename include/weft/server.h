// SPDX-License-Identifier: Apache-2.0
/* server.h: one engine behind HTTP, with the endpoints of OpenAI and of llama.cpp.
 *
 * A server begins to answer when weft_server_new returns, on threads of its own. The model and the engine outlive
 * it. So that a process that serves for weeks gives freed memory back, weft_server_new sets two bounds of the C
 * library's heap where that is glibc (mallopt: M_MMAP_THRESHOLD and M_TRIM_THRESHOLD, 128 KB each), for the whole
 * process. In a library that was configured without this (-DWEFT_SERVER=OFF) weft_server_new answers
 * WEFT_UNSUPPORTED. */
#ifndef WEFT_SERVER_H
#define WEFT_SERVER_H

#include "weft/engine.h"
#include "weft/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_server weft_server;

/* An adapter that comes and goes with its model. */
typedef struct weft_server_adapter {
    const char *name, *path;
    float scale;
    int32_t reserved;
} weft_server_adapter;

/* A model that is loaded when a request asks for it. */
typedef struct weft_server_source {
    const char *name, *path; /* path: or the name of a pulled model */
    int32_t is_pinned;       /* 1: it is loaded at the start, and stays */
    int32_t idle_unload_s;   /* 0: idle_unload_s of the server */
    /* of its own, instead of those of weft_server_params; NULL: those */
    const weft_model_params *model_params;
    const weft_engine_params *engine_params;
    const char *chat_template, *adapter_dir; /* "": none, whatever the server has */
    const weft_server_adapter *adapters;     /* [n_adapters]; one that cannot be read is a fault of its model */
    int32_t n_adapters;
    int32_t reserved;
    /* a model that guesses for it (weft_engine_params.draft), which comes and goes with it: a path, or the name of a
     * pulled one; NULL: none */
    const char *draft;
} weft_server_source;

/* Strings and lists (NULL-terminated, or NULL) are copied. 0 where a number stands: the default that is named. */
typedef struct weft_server_params {
    uint32_t size;
    int32_t port;                             /* 8080; -1: any that is free */
    const char *host;                         /* NULL: 127.0.0.1 */
    const char *unix_path;                    /* a socket's path instead of host and port */
    const char *tls_cert_file, *tls_key_file; /* PEM; both, or NULL for plain HTTP */
    const char *const *api_keys;              /* none here and none in the file: all clients may call */
    /* a line each: a key, or sha256:HEX of one, and behind it "admin", "name=NAME", "# comment" */
    const char *api_key_file;
    /* origins whose pages may call, "*": any; none: no page of another origin */
    const char *const *cors_origins;
    /* names that the Host header may have beside those of this machine, "*": any */
    const char *const *allow_hosts;
    /* names that requests may give for the model, "*": any; the first is the one shown */
    const char *const *aliases;
    const char *chat_template; /* Jinja source instead of the model's own; NULL: that */
    /* folder from which clients may load adapters (/v1/load_lora_adapter); NULL: none */
    const char *adapter_dir;
    const char *log_file; /* JSON, a line per request; "-": stderr; NULL: none */
    int32_t n_threads;    /* that move bytes: 2 */
    /* that read requests: 4; all but one may wait for the disk or for embeddings (route_embed,
     * memory_embed), none for adapters */
    int32_t n_workers;
    int32_t max_connections; /* 512 */
    int32_t max_per_ip;      /* of them: a quarter; on a unix socket none */
    int32_t max_headers;     /* 100 */
    int32_t idle_s;          /* 60: how long a connection may bring nothing */
    int32_t slow_s;          /* 30: how long bytes may wait for a reader */
    int32_t ping_s;          /* 15: between comments on a stream that has nothing to say */
    int32_t drain_s;         /* 30: how long requests may take after weft_server_stop */
    uint64_t max_body;       /* bytes: 8 MiB */
    uint64_t max_head;       /* bytes: 32 KiB */
    uint64_t max_buffer;     /* bytes that wait for one reader: 1 MiB */
    /* those of adapter_dir are added by their names, and read when asked for; no: 0 */
    int32_t add_adapters;
    /* as api_keys; they may also change what all others get, and see what they do. Without any keys, clients
     * on this machine may */
    const char *const *admin_keys;
    /* addresses in digits that many call from: what one address may hold is no limit for them */
    const char *const *proxies;
    /* [n_sources]: further models, by name; the least recently used go where there is no memory for all */
    const weft_server_source *sources;
    int32_t n_sources;
    int32_t idle_unload_s; /* they go when they were not used for so long; 0: never for that */
    /* bytes that models, pages and adapters may take together, as weft_engine_stats.memory counts them; 0: no limit */
    uint64_t memory;
    /* with which they are opened, and with which the engine that is given was made; NULL: the defaults */
    const weft_model_params *model_params;
    const weft_engine_params *engine_params;
    int32_t no_page; /* not 0: / has no web page */
    /* a listening stream socket, TCP's or unix, that a service manager or a parent opened, instead of host, port and
     * unix_path; copied, and the caller's to close. 0: none */
    int32_t listen_fd;
    /* weft.yaml: its presets, organisations and keys count, and weft_server_reload reads it again; what stands under
     * `server` and `models` is for the program */
    const char *config_file;
    /* what the program knows of an entry under `server`, or (of_model) of a model's options, whenever that file is
     * read: 1, or 0 with what is wrong in why[0..room). NULL: they are not looked at */
    int32_t (*config_setting)(void *arg, const char *name, const char *const *values, int32_t n_values,
                              int32_t of_model, char *why, size_t room);
    void *config_arg;
    /* http or https URL of an OpenTelemetry collector (OTLP in JSON), which gets a span for each request that asks for
     * an answer; without a path, /v1/traces there; NULL: none */
    const char *otlp_url;
    const char *metrics_file; /* CSV, a row of numbers every metrics_every_s, behind what is there; NULL: none */
    int32_t metrics_every_s;  /* 10 */
    /* 1: answers go on where the context is full (weft_request_params.shift), unless a request says 'overflow' */
    int32_t shift;
    /* told of each of `sources` whenever it was loaded, before a request is in it, on a thread that loads: the model,
     * and with which parameters its engine was made; borrowed for the call. NULL: nobody is told */
    void (*model_loaded)(void *arg, const char *name, const weft_model *model, const weft_engine_params *engine);
    void *loaded_arg;
    /* folder in which answers, feedback, and a witness log of both are kept, for the callers' own corrections to enter
     * their prompts, and to be exported; made where it is not there. NULL: nothing is kept */
    const char *learn_dir;
    uint64_t learn_bytes;      /* of what is kept of one caller: the oldest go beyond it; 0: no limit */
    int32_t learn_days;        /* older records go; 0: none for that */
    int32_t feedback_per_hour; /* of one caller, and memories that it puts: 600 */
    int32_t log_sync;          /* what is kept is on the disk after each batch: 0; when the system likes: 1; each: 2 */
    int32_t memories; /* 1: what is said of answers becomes memories for chats that ask for them; with learn_dir */
    /* arms of the model `auto`: names of models, adapters or presets, with =COST (0 to 1) behind them where they have
     * one; the first answers until there is feedback. NULL: there is no model `auto` */
    const char *const *route;
    const char *route_by; /* linucb, thompson, beta, uniform, first; NULL: linucb */
    double route_cost;    /* what a cost of 1 takes from a reward, 0 to 1: 0 */
    /* with learn_dir: callers' corrections become versions of adapters of their own, behind a gate, over the model that
     * weft_server_new is given; how much of its time the thread that learns takes while requests run, 0 (it waits until
     * none does) to 1 (it competes with them; below 1 it has a core while nobody else wants it); below 0, the default:
     * nothing is learned */
    double learn_share;
    /* 1: requests for `auto` are seen by an embedding as well, which the model of the first arm makes of each: a step
     * of it before the answer's */
    int32_t route_embed;
    /* 1: memories are found by their embeddings, too, which the served model makes of those that have none yet and of
     * the question; with memories, and one model that stays loaded */
    int32_t memory_embed;
    /* with learn_share: "HH:MM", local time, at which once a day all that a caller's current version knows is learned
     * anew, where the caller has taught something since the last time; NULL: when it is asked for */
    const char *learn_consolidate;
} weft_server_params;

/* Fills in the defaults. The macro tells the library how large the program's struct is. */
WEFT_API void weft_server_params_default(weft_server_params *params);
WEFT_API void weft_server_params_init(weft_server_params *params, uint32_t size);
#define weft_server_params_default(params) weft_server_params_init(params, sizeof *(params))
/* model and engine: what requests mean that name no model; it stays. NULL, both: each request names one of sources.
 * Fails with WEFT_IO (address, files), WEFT_ARGUMENT (parameters, by name; an adapter of the engine that is called
 * as the model is), what weft_chat_open says of a chat_template, WEFT_UNSUPPORTED (TLS; a model without tokenizer),
 * WEFT_LIMIT, WEFT_NO_MEMORY; of learn_dir: WEFT_BUSY (another process has it), WEFT_FORMAT (it is not whole); of
 * learn_share: WEFT_UNSUPPORTED (a compiled plan, a mixture of experts). */
WEFT_API weft_status weft_server_new(weft_model *model, weft_engine *engine, const weft_server_params *params,
                                     weft_server **out, weft_error *err);
/* "http://127.0.0.1:8080"; lives with the server. */
WEFT_API const char *weft_server_address(const weft_server *server);
/* Waits for weft_server_stop; then refuses what is new, lets requests end for drain_s, and cancels what is left.
 * Returns how many that were. */
WEFT_API int32_t weft_server_run(weft_server *server);
/* Callable from a signal handler or any thread; a second call ends the draining. */
WEFT_API void weft_server_stop(weft_server *server);
/* Opens the log file anew by its name, soon, as after it was renamed; nothing where there is none. Callable from a
 * signal handler or any thread. */
WEFT_API void weft_server_reopen_log(weft_server *server);
/* The same, and reads the key file and weft.yaml again: a client whose key is gone is refused from then on, its
 * requests that run go on, and its own adapters are unloaded. A file that cannot be read, or has no key or anything
 * wrong in it, changes nothing, and the log of the program says so. Callable as above. */
WEFT_API void weft_server_reload(weft_server *server);
/* Closes its connections and ends its threads; weft_server_run has returned, or was never called. */
WEFT_API void weft_server_free(weft_server **server);

#ifdef __cplusplus
}
#endif
#endif
