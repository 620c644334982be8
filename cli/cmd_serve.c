// SPDX-License-Identifier: Apache-2.0
/* cmd_serve.c: weft serve: a model behind HTTP, for many at once, until SIGTERM or Ctrl-C; SIGHUP opens its log anew
 * and reads its keys again. */
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"
#include "commands.h"
#include "draft.h"
#include "fit.h"
#include "learn/store.h"
#include "learn/teach_offline.h"
#include "kv_quality.h"
#include "kv_type.h"
#include "options.h"
#include "outputs.h"
#include "pull.h"
#include "provider.h"
#include "serve_check.h"
#include "serve_config.h"
#include "serve_models.h"
#include "service.h"
#include "spec.h"
#include "terminal.h"
#include "weft/server.h"

/* Bytes of a piece of memory that is given back as soon as it is freed: bodies and answers leave no holes. */
enum { LARGE = 256 << 10 };

/* Signals are blocked in every thread, and one alone waits for them: no handler runs in the middle of anything. */
static struct {
    pthread_t thread;
    sigset_t set;
    weft_server *server;
    atomic_int ended;
} signals;

/* From here on they wait until somebody takes them, or for the end of the program. */
static void hold_signals(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    sigemptyset(&signals.set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) sigaddset(&signals.set, numbers[i]);
    pthread_sigmask(SIG_BLOCK, &signals.set, NULL);
    signal(SIGHUP, SIG_DFL);
}

static void *pass_signals_on(void *arg)
{
    int number = 0;
    (void)arg;
    while (!sigwait(&signals.set, &number) && !atomic_load(&signals.ended))
        if (number == SIGHUP) {
            weft_server_reload(signals.server);
        } else {
            service_stopping();
            weft_server_stop(signals.server);
        }
    return NULL;
}

static weft_status take_signals(weft_server *server, weft_error *err)
{
    signals.server = server;
    if (!weft__thread_start(&signals.thread, pass_signals_on, NULL)) return WEFT_OK;
    return weft_fail(err, WEFT_LIMIT, "the system refuses threads");
}

static void end_signals(void)
{
    atomic_store(&signals.ended, 1);
    pthread_kill(signals.thread, SIGHUP);
    pthread_join(signals.thread, NULL);
}

/* A line for people, unless stderr is a pipe or a terminal that takes nothing now: the server would never end then. */
static void tell(const char *format, ...)
{
    struct pollfd out = {STDERR_FILENO, POLLOUT, 0};
    va_list args;
    va_start(args, format);
    if (poll(&out, 1, 0) == 1 && out.revents & POLLOUT) vfprintf(stderr, format, args);
    va_end(args);
}

/* Those that were named; the folder's are the server's. */
static weft_status add_adapters(const struct serve_options *o, weft_engine *engine, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int i = 0; i < o->adapters.n && !st; i++)
        st = weft_engine_adapter_add(engine, o->adapter[i].name, o->adapter[i].path, o->adapter[i].scale, 0, err);
    return st;
}

/* What a server does before it answers, but for what others would see of it: nothing is learned, and the folder of what
 * is kept stays as it is, or is not made. */
static weft_status rehearse(struct serve_options *o, weft_model *model, weft_error *err)
{
    weft_engine *engine = NULL;
    weft_server *server = NULL;
    weft_server_params p = o->server;
    if (!p.host || p.unix_path) p.host = "127.0.0.1";
    p.port = -1;
    p.unix_path = p.log_file = p.metrics_file = NULL;
    p.listen_fd = 0;
    p.add_adapters = 1;
    p.learn_share = -1;
    p.learn_dir = p.learn_consolidate = NULL;
    p.memories = p.memory_embed = 0;
    weft_status st = o->server.learn_dir ? weft__learn_check(o->server.learn_dir, err) : WEFT_OK;
    if (!st && model && o->server.learn_share >= 0) st = weft__teach_offline_can(model, err);
    if (!st && model) st = weft_engine_new(model, &o->engine, &engine, err);
    if (!st) st = add_adapters(o, engine, err);
    if (!st) st = weft_server_new(model, engine, &p, &server, err);
    weft_server_free(&server);
    weft_engine_free(&engine);
    return st;
}

static weft_status serve(struct serve_options *o, weft_model *model, weft_error *err)
{
    weft_engine *engine = NULL;
    weft_server *server = NULL;
    weft_status st = model ? weft_engine_new(model, &o->engine, &engine, err) : WEFT_OK;
    if (!st) st = add_adapters(o, engine, err);
    o->server.add_adapters = 1;
    if (!st) { /* before it answers: a client that has an answer may send one */
        hold_signals();
        st = weft_server_new(model, engine, &o->server, &server, err);
        if (o->server.listen_fd) close(o->server.listen_fd); /* it has a copy */
    }
    if (!st) st = service_watch(weft_server_address(server), err);
    if (!st && !(st = take_signals(server, err))) {
        service_tell_status("serving %s at %s", o->path ? o->path : "models", weft_server_address(server));
        service_tell("READY=1");
        fprintf(stderr, "weft serve: %s (stop with Ctrl-C; twice: at once)\n", weft_server_address(server));
        if (o->keys.n == 0 && o->admins.n == 0 && !o->server.api_key_file && !(o->config && o->config->n_keys) &&
            o->server.host && strcmp(o->server.host, "localhost") && strncmp(o->server.host, "127.", 4) &&
            strcmp(o->server.host, "::1") && strncmp(o->server.host, "::ffff:127.", 11))
            fprintf(stderr, "weft serve: without --api-key, all that reach this address may call\n");
        int32_t left = weft_server_run(server);
        if (left) tell("weft serve: %d requests were cancelled\n", left);
        end_signals();
    }
    service_end();
    weft_server_free(&server);
    weft_engine_free(&engine);
    return st;
}

static const command_spec SPEC;

static void warn_of_types(const char *command, const weft_model *model, const weft_engine_params *engine)
{
    char type[WEFT_KV_NAME_MAX];
    kv_gate_warn(command, model, weft_kv_type_name(engine->kv_dtype, type));
    for (int32_t i = 0; i < engine->n_kv_types; i++)
        kv_gate_warn(command, model, weft_kv_type_name(engine->kv_types[i], type));
}

/* Of a model that was loaded while the server runs. */
static void warn_of_loaded(void *arg, const char *name, const weft_model *model, const weft_engine_params *engine)
{
    char command[200];
    (void)arg;
    snprintf(command, sizeof command, "serve: %.150s", name);
    warn_of_types(command, model, engine);
}

/* PATH NULL: none of its own. */
static weft_status serve_model(struct serve_options *o, const char *path, weft_error *err)
{
    weft_model *model = NULL, *draft = NULL;
    weft_status st = WEFT_OK;
    signal(SIGHUP, SIG_IGN); /* it is about the log and the keys, of which there are none yet */
    o->path = path;
    o->server.max_body = (uint64_t)o->max_mb << 20;
    o->server.shift = o->overflow && !strcmp(o->overflow, "shift");
    o->server.learn_bytes = (uint64_t)o->learn_mb << 20;
    o->server.log_sync = !strcmp(o->log_sync, "none") ? 1 : !strcmp(o->log_sync, "each") ? 2 : 0;
    o->server.api_keys = o->keys.items;
    o->server.admin_keys = o->admins.items;
    o->server.proxies = o->proxies.items;
    o->server.cors_origins = o->origins.items;
    o->server.allow_hosts = o->hosts.items;
    o->server.aliases = o->aliases.items;
    o->server.route = o->route.items;
    o->server.config_file = o->config_file;
    o->server.config_setting = serve_config_setting;
    o->server.config_arg = (void *)(uintptr_t)&SPEC;
    o->server.model_loaded = warn_of_loaded;
    if (path && !o->check) st = pull_if_missing(path, err);
    if (!st && path) st = open_shown_with(path, &o->opened, &model, err);
    if (!st && path && !o->check) warn_of_types("serve", model, &o->engine);
    const int is_search = o->check && o->draft && !strcmp(o->draft, "auto"); /* which goes on without, at the worst */
    if (!st && path && !is_search) st = draft_open("serve", o->draft, model, &o->opened, &draft, err);
    o->engine.draft = draft;
    o->engine.spec = draft_spec(o->engine.spec, draft);
    if (!st) st = o->check ? rehearse(o, model, err) : serve(o, model, err);
    weft_model_close(&draft);
    weft_model_close(&model);
    return st;
}

/* A list's items are followed by NULLs, up to its last place. */
static int full(const struct text_list *list, const char *name)
{
    if (list->n < LIST_MAX) return 0;
    fprintf(stderr, "weft serve: %s: at most %d\n", name, LIST_MAX - 1);
    return 1;
}

/* The log goes on behind what is there, the trace replaces it; neither may be what the server reads. */
static int writes_over_input(const struct serve_options *o, const char *model)
{
    const char *const written[] = {o->engine.trace, o->server.log_file, o->server.metrics_file};
    const char *const read[] = {model, o->template_file, o->server.api_key_file, o->server.tls_cert_file,
                                o->server.tls_key_file};
    for (size_t w = 0; w < sizeof written / sizeof *written; w++) {
        if (!written[w]) continue;
        for (size_t r = 0; r < sizeof read / sizeof *read; r++)
            if (output_is_input("serve", written[w], read[r])) return 1;
        for (int i = 0; i < o->adapters.n; i++)
            if (output_is_input("serve", written[w], o->adapter[i].path)) return 1;
    }
    return 0;
}

/* What the options fill in: its address is known to the table. */
static struct serve_options given = {.kv_type = "f16",
                                     .adapter_type = "auto",
                                     .spec = "auto",
                                     .swap = "auto",
                                     .log_sync = "batch"},
                            common;

static const option_spec OPTIONS[] = {
    {"config", 0, OPT_TEXT, &given.config_file, "FILE",
     "settings, models, presets and keys (weft.yaml); this line goes before it", 0, 0, NULL},
    {"check", 0, OPT_FLAG, &given.check, NULL, "only say what is wrong in that file (./weft.yaml) and with this line",
     0, 0, NULL},
    {"host", 0, OPT_TEXT, &given.server.host, "H", "address to listen on (127.0.0.1)", 0, 0, NULL},
    {"port", 'p', OPT_INT, &given.server.port, "P", "its port, 0 or -1: any (8080)", -1, 65535, NULL},
    {"unix", 0, OPT_TEXT, &given.server.unix_path, "PATH", "listen on a unix socket instead", 0, 0, NULL},
    {"api-key", 0, OPT_LIST, &given.keys, "K",
     "clients must send it, and are told apart by it alone: 'user' of a request is not read then; may be repeated", 0,
     0, NULL},
    {"admin-key", 0, OPT_LIST, &given.admins, "K",
     "the same; its clients may change what all get, and see what all do; may be repeated; without keys: clients "
     "on this machine, through no proxy",
     0, 0, NULL},
    {"api-key-file", 0, OPT_TEXT, &given.server.api_key_file, "FILE",
     "a line each: KEY or sha256:HEX of it, then [admin] [name=NAME]", 0, 0, NULL},
    {"tls-cert", 0, OPT_TEXT, &given.server.tls_cert_file, "FILE", "certificate, PEM", 0, 0, NULL},
    {"tls-key", 0, OPT_TEXT, &given.server.tls_key_file, "FILE", "its key, PEM", 0, 0, NULL},
    {"cors-origin", 0, OPT_LIST, &given.origins, "ORIGIN", "pages of this origin may call, '*': all; may be repeated",
     0, 0, NULL},
    {"allow-host", 0, OPT_LIST, &given.hosts, "NAME", "a name for this machine in Host headers; may be repeated", 0, 0,
     NULL},
    {"no-page", 0, OPT_FLAG, &given.server.no_page, NULL, "no web page at /", 0, 0, NULL},
    {"alias", 0, OPT_LIST, &given.aliases, "NAME", "a name for the model, '*': any; may be repeated", 0, 0, NULL},
    {"chat-template", 0, OPT_TEXT, &given.template_file, "FILE", "Jinja template instead of the model's own", 0, 0,
     NULL},
    PULL_OPTION,
    {"models", 0, OPT_LIST, &given.folders, "DIR",
     "serves the models in this folder, too, by name, loaded when they are asked for; may be repeated; without MODEL, "
     "--models and --model: all that were pulled",
     0, 0, NULL},
    {"model", 0, OPT_LIST, &given.models, "M", "NAME=PATH: the same of one model; may be repeated", 0, 0, NULL, NULL,
     serve_check_model},
    {"pin", 0, OPT_LIST, &given.pins, "NAME", "this one of them is loaded at the start, and stays; may be repeated", 0,
     0, NULL},
    {"memory", 0, OPT_TEXT, &given.memory, "BYTES",
     "(12G, 500M) of weights, contexts and adapters together; models that are not used go for others", 0, 0, NULL, NULL,
     serve_check_size},
    {"idle-unload", 0, OPT_INT, &given.server.idle_unload_s, "S", "seconds unused after which a model goes (never)", 1,
     31536000, NULL},
    PROVIDER_OPTION,
    {"threads", 't', OPT_INT, &given.threads, "THREADS", "threads that compute (one per core)", 1, WEFT_THREADS_MAX,
     NULL},
    {"ctx", 'c', OPT_INT, &given.engine.n_ctx, "CTX",
     "tokens of one request, prompt included (the model's, at most 4096)", 1, WEFT_CTX_MAX, NULL},
    ROPE_OPTIONS(&given.rope),
    /* As the engine has them, but told by the name of the option, and before the model is read. */
    {"slots", 0, OPT_INT, &given.engine.n_slots, "N", "requests that run at once (16)", 1, WEFT_SLOTS_MAX, NULL},
    {"queue", 0, OPT_INT, &given.engine.max_queue, "N", "requests that wait at most (256)", 1, WEFT_QUEUE_MAX, NULL},
    {"chunk", 0, OPT_INT, &given.engine.chunk, "ROWS",
     "tokens of prompts in a step while others decode, auto: as many as --steady allows (128)", 1, WEFT_ROWS_DEFAULT,
     NULL, "auto"},
    {"steady", 0, OPT_INT, &given.engine.steady_ms, "MS",
     "time of a step while others decode, which prompts keep to: up to --chunk tokens, or any (with --chunk auto 100)",
     1, 60000, NULL},
    {"kv-tokens", 0, OPT_INT, &given.kv_tokens, "N",
     "tokens that may be kept in all (slots times context, at most half the free memory)", 1, INT32_MAX, NULL},
    KV_TYPE_OPTION(&given.kv_type, "f16"),
    {"kv-types", 0, OPT_TEXT, &given.kv_types, "T,..",
     "other types that requests may choose (kv_type), as q8,q4; all share the memory of --kv-tokens", 0, 0, NULL, NULL,
     kv_types_check},
    SPEC_OPTION(&given.spec),
    DRAFT_OPTION(&given.draft),
    {"overflow", 0, OPT_TEXT, &given.overflow, "HOW",
     "where a context is full: stop, or shift: go on with its first tokens and its last; requests may say it (stop)", 0,
     0, NULL, "stop shift"},
    {"adapter", 0, OPT_LIST, &given.adapters, "A",
     "[NAME=]PATH[:SCALE]: requests name it as their model; may be repeated", 0, 0, NULL, NULL, serve_check_adapter},
    {"adapter-dir", 0, OPT_TEXT, &given.server.adapter_dir, "DIR",
     "its adapters by name, read when asked for; clients may load others from it", 0, 0, NULL},
    {"adapter-mb", 0, OPT_INT, &given.adapter_mb, "MB", "of adapters ready to be used (1024)", 1, 1 << 30, NULL},
    {"adapter-type", 0, OPT_TEXT, &given.adapter_type, "TYPE",
     "in which they are kept: auto, q8_0, q4_0, bf16, f32 (auto)", 0, 0, NULL, "auto q8_0 q4_0 bf16 f32"},
    {"route", 0, OPT_LIST, &given.route, "ARM",
     "NAME[=COST]: a model, adapter or preset between which the model 'auto' chooses, learning from feedback; may be "
     "repeated; the first answers until there is some",
     0, 0, NULL},
    {"route-by", 0, OPT_TEXT, &given.server.route_by, "HOW",
     "linucb, thompson; baselines: beta, uniform, first (linucb)", 0, 0, NULL, "linucb thompson beta uniform first"},
    {"route-cost", 0, OPT_DOUBLE, &given.server.route_cost, "W", "what a COST of 1 takes from a reward, 0 to 1 (0)", 0,
     1, NULL},
    {"route-embed", 0, OPT_FLAG, &given.server.route_embed, NULL,
     "requests are seen by an embedding as well, which the first arm's model makes: a step of it before each", 0, 0,
     NULL},
    {"memories", 0, OPT_FLAG, &given.server.memories, NULL,
     "with --learn: what is said of answers becomes memories, for chats that say \"memory\": true", 0, 0, NULL},
    {"memory-embed", 0, OPT_FLAG, &given.server.memory_embed, NULL,
     "with --memories, over one model: memories are found by the model's embeddings as well as by words; no gain for "
     "every model",
     0, 0, NULL},
    {"lock", 0, OPT_FLAG, &given.engine.lock_memory, NULL,
     "weights and pages stay in memory (mlock), as far as RLIMIT_MEMLOCK allows it", 0, 0, NULL},
    {"isolate-tenants", 0, OPT_FLAG, &given.engine.isolate_tenants, NULL, "prefixes are shared within one API key only",
     0, 0, NULL},
    {"store", 0, OPT_TEXT, &given.engine.store_dir, "DIR",
     "folder in which prefixes and saved slots outlive the server", 0, 0, NULL},
    {"store-mb", 0, OPT_INT, &given.store_mb, "MB", "its size at most (4096)", 1, 1 << 30, NULL},
    {"swap", 0, OPT_TEXT, &given.swap, "WHEN",
     "pages of requests that give way go to the store instead of being computed again: auto (where that is measured "
     "to be quicker), off, always (auto)",
     0, 0, NULL, "auto off always"},
    {"swap-mb", 0, OPT_INT, &given.swap_mb, "MB", "of the store for them at most (a quarter of it)", 1, 1 << 30, NULL},
    {"log-file", 0, OPT_TEXT, &given.server.log_file, "FILE", "a line of JSON per request; '-': stderr", 0, 0, NULL},
    {"metrics-file", 0, OPT_TEXT, &given.server.metrics_file, "F.csv",
     "a row of numbers per interval, behind what is there", 0, 0, NULL},
    {"metrics-every", 0, OPT_INT, &given.server.metrics_every_s, "S", "its interval, seconds (10)", 1, 86400, NULL},
    {"otlp", 0, OPT_TEXT, &given.server.otlp_url, "URL",
     "of an OpenTelemetry collector (JSON over HTTP): gets a span per request and one per phase", 0, 0, NULL, NULL,
     serve_check_url},
    {"learn", 0, OPT_TEXT, &given.server.learn_dir, "DIR",
     "keeps answers and feedback there, with a witness log of both; a caller's corrections enter its prompts "
     "(nothing is kept)",
     0, 0, NULL},
    {"learn-share", 0, OPT_DOUBLE, &given.server.learn_share, "S",
     "with --learn: corrections become versions of the caller's own adapter, behind a gate, while MODEL is served; how "
     "much of its time the thread that learns takes while requests run, 0 (it waits) to 1 (it competes with them; "
     "below 1 it has a core while nobody else wants it) (nothing is learned)",
     0, 1, NULL},
    {"learn-consolidate", 0, OPT_TEXT, &given.server.learn_consolidate, "HH:MM",
     "with --learn-share: at that local time (03:00), once a day, all that a caller's version knows is learned anew, "
     "where something was taught since (by POST /v1/learn/consolidate alone)",
     0, 0, NULL, NULL, serve_check_time},
    {"learn-days", 0, OPT_INT, &given.server.learn_days, "N", "how long they stay (for ever)", 1, 36500, NULL},
    {"learn-mb", 0, OPT_INT, &given.learn_mb, "MB", "of one caller at most, the oldest go (no limit)", 1, 1 << 30,
     NULL},
    {"feedback-per-hour", 0, OPT_INT, &given.server.feedback_per_hour, "N", "of one caller (600)", 1, 1000000, NULL},
    {"log-sync", 0, OPT_TEXT, &given.log_sync, "WHEN",
     "what is kept is on the disk: none: when the system likes, batch: after 100 records or a second, each (batch)", 0,
     0, NULL, "none batch each"},
    {"trace", 0, OPT_TEXT, &given.engine.trace, "FILE", "a Chrome trace of steps", 0, 0, NULL},
    {"max-connections", 0, OPT_INT, &given.server.max_connections, "N", "(512)", 1, 65536, NULL},
    {"max-per-ip", 0, OPT_INT, &given.server.max_per_ip, "N", "connections of one address (a quarter of them)", 1,
     65536, NULL},
    {"proxy", 0, OPT_LIST, &given.proxies, "ADDRESS",
     "many call from it: no limit of one address counts; may be repeated", 0, 0, NULL, NULL, serve_check_address},
    {"max-body", 0, OPT_INT, &given.max_mb, "MB", "of one request (8)", 1, 1024, NULL},
    {"idle", 0, OPT_INT, &given.server.idle_s, "S", "seconds that a connection may bring nothing (60)", 1, 86400, NULL},
    {"slow", 0, OPT_INT, &given.server.slow_s, "S", "seconds that bytes may wait for their reader (30)", 1, 86400,
     NULL},
    {"drain", 0, OPT_INT, &given.server.drain_s, "S", "seconds that requests may take after SIGTERM (30)", 1, 86400,
     NULL},
    {0},
};

static const command_spec SPEC = {
    "serve",
    "[MODEL] [options]",
    "Serves the model, or several, over HTTP: the endpoints of OpenAI (/v1/chat/completions, /v1/completions,\n"
    "/v1/embeddings, /v1/models) and of llama.cpp (/completion, /tokenize, /slots, /metrics, ...).\n"
    "SIGTERM or Ctrl-C lets requests end and refuses new ones; a second one cancels them. SIGHUP opens the log\n"
    "file anew and reads the files of keys and of settings again.\n"
    "Without any keys clients on this machine are admins, and no others. With keys only an admin's sets\n"
    "adapters for all, publishes and unloads those that all have, and sees others' slots and use; what another key\n"
    "loads is its own. One key, or without keys one address, gets a part of connections, bodies, unread answers,\n"
    "queue and disk, so that others find room; addresses behind --unix or --proxy are not told apart.\n"
    "Under a service manager: the socket that it passes (LISTEN_FDS, LISTEN_PID) is served instead of --host, --port\n"
    "and --unix, and it is told (NOTIFY_SOCKET) that the server is ready, stops, and answers (WATCHDOG_USEC,\n"
    "WATCHDOG_PID).",
    "  weft serve model.gguf --port 8080 --api-key-file keys.txt\n"
    "  curl localhost:8080/v1/chat/completions -d '{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]}'\n",
    OPTIONS,
    0,
    1};

static int lists_end(const struct serve_options *o)
{
    return !full(&o->keys, "--api-key") && !full(&o->admins, "--admin-key") && !full(&o->proxies, "--proxy") &&
           !full(&o->origins, "--cors-origin") && !full(&o->hosts, "--allow-host") && !full(&o->aliases, "--alias") &&
           !full(&o->folders, "--models") && !full(&o->models, "--model") && !full(&o->route, "--route") &&
           !full(&o->pins, "--pin");
}

/* What is about MODEL, where there is none: says so. */
static int is_about_model(const struct serve_options *o)
{
    const char *what = o->adapters.n || o->aliases.n ? "--adapter and --alias are about MODEL"
                       : o->server.learn_share >= 0  ? "--learn-share is about MODEL, over which it learns"
                       : o->draft                    ? "--draft is about MODEL, for which it guesses"
                       : !strcmp(o->spec, "draft")   ? "--spec draft is about MODEL, which has a --draft"
                                                     : NULL;
    if (what) fprintf(stderr, "weft serve: %s; name one\n", what);
    return what != NULL;
}

/* What the server would say of it, before a model is read: --check keeps nothing, so nothing is remembered there. */
static weft_status check_memories(const struct serve_options *o, weft_error *err)
{
    if (!o->server.memory_embed || (!o->sources.n && !o->server.memory)) return WEFT_OK;
    return weft_fail(err, WEFT_ARGUMENT, "--memory-embed is for one model that stays loaded, and %s",
                     o->sources.n ? "several are served" : "--memory may unload it");
}

/* The model that is the command's own, after what the file says, "": none; NULL after a message: *rc is the exit
 * status. */
static const char *settle_model(struct serve_options *o, const char *named, int *rc)
{
    if (named && !*named) named = NULL; /* of a unit whose environment names none */
    const int wants_file = o->check && (!named || !access("weft.yaml", F_OK)); /* else the line alone is looked at */
    const char *file = o->config_file ? o->config_file : wants_file ? "weft.yaml" : NULL;
    *rc = file ? serve_config_take(&SPEC, file, o->check, named != NULL, &o->config) : EXIT_DONE;
    if (*rc) return NULL;
    common = given; /* what the file says of its first model is that one's alone */
    const char *model = named ? named : o->config ? serve_config_model(&SPEC, o->config, file) : NULL;
    o->server.idle_unload_s = common.server.idle_unload_s; /* and that stays */
    return model ? model : "";
}

int cmd_serve(int argc, char **argv)
{
    weft_engine_params *e = &given.engine;
    weft_server_params *s = &given.server;
    weft_engine_params_default(e);
    weft_server_params_default(s);
    s->port = 8080;
    int first;
    int rc = options_parse(&SPEC, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    const char *model = settle_model(&given, first < argc ? argv[first] : NULL, &rc);
    if (!model) return rc;
    if (!serve_check_wants(&SPEC, given.config) || !lists_end(&given)) return EXIT_USAGE;
    if (!rope_options_check("serve", &given.rope)) return EXIT_USAGE;
    if (!draft_check("serve", given.draft, given.spec)) return EXIT_USAGE;
    if (given.memory) s->memory = fit_size(given.memory); /* the option's check let it through */
    const char *path = *model ? model : NULL;
    if (!path && is_about_model(&given)) return EXIT_USAGE;
    if (!adapter_options_parse("serve", &given.adapters, given.adapter)) return EXIT_USAGE;
    if (output_refused("serve", e->trace) || output_refused("serve", s->metrics_file)) return EXIT_FAILED;
    if (writes_over_input(&given, path)) return EXIT_FAILED;
    if (s->port == 0) s->port = -1; /* to the library it is the default; on a command line, any, as everywhere */
#ifdef M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD,
            LARGE); /* the C library itself keeps to a threshold only until the first large piece is freed */
#endif
    weft_error err = {0};
    common.server.memory = s->memory;
    weft_status st = serve_models_find(&SPEC, &given, &common, path, &err);
    if (!st && !path && !given.sources.n) {
        fprintf(
            stderr,
            "weft serve: an argument is missing: which model%s; --models DIR has several\nTry 'weft serve --help'.\n",
            given.config ? "; the file has none under 'models'" : "; none was pulled");
        return EXIT_USAGE;
    }
    if (!st && s->idle_unload_s && path && !given.sources.n)
        fprintf(stderr, "weft serve: --idle-unload is about models beside MODEL, which stays; there are none\n");
    if (!st) st = check_memories(&given, &err);
    const int is_found = st != WEFT_ARGUMENT && !given.check; /* else it was named wrongly */
    if (!st && !given.check) st = service_begin(&s->listen_fd, &err);
    if (!st && !given.check) service_tell_status("reading %s", path ? path : "models");
    if (!st) st = serve_model(&given, path, &err);
    if (!st && given.check) st = serve_models_rehearse(&given, &err);
    if (!st && given.check && !given.config) printf("nothing is wrong with this line\n");
    else if (!st && given.check) serve_config_say(given.config, given.config_file ? given.config_file : "weft.yaml");
    serve_models_free(&given, &common);
    if (st) report("serve", &err);
    return !st ? EXIT_DONE : is_found ? EXIT_FAILED : EXIT_USAGE;
}
