// SPDX-License-Identifier: Apache-2.0
/* fake_server.c: the server over fake_engine.c, as a program for the tests beside it. Prints its address, and serves
 * until SIGTERM; a second one ends the draining. usage: fake_server [--NAME VALUE]... with the names of
 * weft_server_params; lists by repetition; --fail-every N refuses each N-th allocation. --fields: prints the tables of
 * fields; --routes: the paths. */
#include "fake_model.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "learn/teach_store_parts.h"
#include "api/fields.h"
#include "server/server.h"
#include "weft/server.h"
#include "server/routes.h"

static weft_server *server;

static void on_signal(int number)
{
    (void)number;
    weft_server_stop(server);
}

static void on_hangup(int number)
{
    (void)number;
    weft_server_reload(server);
}

enum { LIST_MAX = 16 };

/* Counts what the engine's thread allocates. --fail-every N: once it serves, each N-th allocation is refused. */
static atomic_ulong n_asked;
static atomic_int serving;

static int count_and_refuse_some(void *arg, size_t n_bytes)
{
    fake_engine_allocated(n_bytes);
    return !arg || !atomic_load(&serving) || (atomic_fetch_add(&n_asked, 1) + 1) % (unsigned long)(uintptr_t)arg != 0;
}

static int32_t fail_every, max_queue, n_ctx, without_model;

static int set_number(weft_server_params *p, const char *name, const char *value)
{
    const struct {
        const char *name;
        int32_t *to;
    } all[] = {{"port", &p->port},
               {"threads", &p->n_threads},
               {"workers", &p->n_workers},
               {"connections", &p->max_connections},
               {"per-ip", &p->max_per_ip},
               {"headers", &p->max_headers},
               {"idle", &p->idle_s},
               {"slow", &p->slow_s},
               {"ping", &p->ping_s},
               {"drain", &p->drain_s},
               {"idle-unload", &p->idle_unload_s},
               {"fail-every", &fail_every},
               {"queue", &max_queue},
               {"without-model", &without_model},
               {"ctx", &n_ctx},
               {"no-page", &p->no_page},
               {"feedback-per-hour", &p->feedback_per_hour},
               {"log-sync", &p->log_sync},
               {"memories", &p->memories},
               {"memory-embed", &p->memory_embed},
               {"route-embed", &p->route_embed}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(name, all[i].name)) return *all[i].to = atoi(value), 1;
    return 0;
}

static int set_size(weft_server_params *p, const char *name, const char *value)
{
    uint64_t *to = !strcmp(name, "body")          ? &p->max_body
                   : !strcmp(name, "head")        ? &p->max_head
                   : !strcmp(name, "buffer")      ? &p->max_buffer
                   : !strcmp(name, "memory")      ? &p->memory
                   : !strcmp(name, "learn-bytes") ? &p->learn_bytes
                                                  : NULL;
    if (to) *to = strtoull(value, NULL, 10);
    if (!strcmp(name, "learn-share")) return p->learn_share = atof(value), 1;
    return to != NULL;
}

static const char *adapter; /* the operator's, by the name "mine" */

static int set_text(weft_server_params *p, const char *name, const char *value)
{
    const struct {
        const char *name;
        const char **to;
    } all[] = {{"host", &p->host},
               {"unix", &p->unix_path},
               {"cert", &p->tls_cert_file},
               {"key", &p->tls_key_file},
               {"api-key-file", &p->api_key_file},
               {"log", &p->log_file},
               {"template", &p->chat_template},
               {"adapter-dir", &p->adapter_dir},
               {"config", &p->config_file},
               {"metrics-file", &p->metrics_file},
               {"learn", &p->learn_dir},
               {"learn-consolidate", &p->learn_consolidate},
               {"route-by", &p->route_by},
               {"adapter", &adapter}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(name, all[i].name)) return *all[i].to = value, 1;
    return 0;
}

void fake_count_render(void)
{
    const char *path = getenv("WEFT_FAKE_RENDERS");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f) return;
    fputc('.', f);
    fclose(f);
}

/* The limits' clock: stands at the milliseconds that the file of WEFT_FAKE_CLOCK has. */
static uint64_t clock_of_file(void)
{
    unsigned long long ms = 0;
    FILE *f = fopen(getenv("WEFT_FAKE_CLOCK"), "r");
    if (f && fscanf(f, "%llu", &ms) != 1) ms = 0;
    if (f) fclose(f);
    return ms;
}

/* The calendar of who learns, likewise, of WEFT_FAKE_NIGHT: Unix time. */
static int64_t night_of_file(void)
{
    long long ms = 0;
    FILE *f = fopen(getenv("WEFT_FAKE_NIGHT"), "r");
    if (f && fscanf(f, "%lld", &ms) != 1) ms = 0;
    if (f) fclose(f);
    return ms;
}

static void look_at_night(weft__teach_store *t)
{
    pthread_mutex_lock(&t->lock);
    t->now_ms = night_of_file;
    t->look_ms = 5;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

/* What the server prints of itself instead of serving; 0 where that is not asked for. */
static int shown(const char *what)
{
    if (!strcmp(what, "--fields")) {
        weft__strbuf out = {0};
        weft__api_tables_write(&out);
        fwrite(out.data, 1, out.len, stdout);
        weft__strbuf_free(&out);
        return 1;
    }
    if (!strcmp(what, "--routes")) {
        for (int i = 0; strcmp(weft__server_route_at(i), "other"); i++) puts(weft__server_route_at(i));
        return 1;
    }
    return 0;
}

static const char *keys[LIST_MAX], *origins[LIST_MAX], *route[LIST_MAX], *hosts[LIST_MAX], *aliases[LIST_MAX],
    *admins[LIST_MAX], *proxies[LIST_MAX], *models[LIST_MAX], *pins[LIST_MAX];
static const struct {
    const char *name;
    const char **list;
} lists[] = {{"api-key", keys},     {"origin", origins}, {"allow-host", hosts}, {"alias", aliases}, {"route", route},
             {"admin-key", admins}, {"proxy", proxies},  {"model", models},     {"pin", pins}};

/* NAME=PATH */
static weft_server_source sources[LIST_MAX];
static char names[LIST_MAX][64];

static void take_models(weft_server_params *p)
{
    for (int i = 0; models[i]; i++) {
        const char *equals = strchr(models[i], '=');
        snprintf(names[i], sizeof names[i], "%.*s", (int)(equals - models[i]), models[i]);
        sources[i] = (weft_server_source){.name = names[i], .path = equals + 1};
        for (int k = 0; pins[k]; k++) sources[i].is_pinned |= !strcmp(pins[k], names[i]);
        p->n_sources = i + 1;
    }
    p->sources = sources;
}

/* Takes the options; 0 where one is not known. */
static int take_options(weft_server_params *p, int argc, char **argv)
{
    p->api_keys = keys;
    p->cors_origins = origins;
    p->allow_hosts = hosts;
    p->aliases = aliases;
    p->route = route;
    p->admin_keys = admins;
    p->proxies = proxies;
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i] + 2, *value = argv[i + 1];
        int done = set_number(p, name, value) || set_size(p, name, value) || set_text(p, name, value);
        for (size_t k = 0; !done && k < sizeof lists / sizeof *lists; k++) {
            if (strcmp(name, lists[k].name)) continue;
            const char **at = lists[k].list;
            while (*at) at++;
            *at = value;
            done = 1;
        }
        if (!done) {
            fprintf(stderr, "fake_server: no option %s\n", argv[i]);
            return 0;
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    weft_server_params p;
    weft_error err = {0};
    weft_engine *engine = NULL;
    weft_server_params_default(&p);
    p.port = -1;
    if (argc == 2 && shown(argv[1])) return 0;
    if (!take_options(&p, argc, argv)) return 2;
    weft_engine_params ep;
    weft_engine_params_default(&ep);
    ep.max_queue = max_queue;
    ep.n_ctx = n_ctx;
    weft__alloc_set_gate(count_and_refuse_some,
                         fail_every > 0 ? (void *)(uintptr_t)fail_every : NULL); /* before there are threads */
    weft_model *model = without_model ? NULL : fake_model_new();
    weft_status st = model ? weft_engine_new(model, &ep, &engine, &err) : WEFT_OK;
    take_models(&p);
    p.engine_params = &ep;
    if (!st && adapter) st = weft_engine_adapter_add(engine, "mine", adapter, 1, 0, &err);
    if (!st) st = weft_server_new(model, engine, &p, &server, &err);
    if (st) return fprintf(stderr, "fake_server: %s\n", err.message), 1;
    pthread_mutex_lock(&server->limits.lock);
    if (getenv("WEFT_FAKE_CLOCK")) server->limits.now_ms = clock_of_file;
    pthread_mutex_unlock(&server->limits.lock);
    if (getenv("WEFT_FAKE_NIGHT")) look_at_night(server->teacher);
    signal(SIGTERM, on_signal);
    signal(SIGHUP, on_hangup);
    printf("%s\n", weft_server_address(server));
    fflush(stdout);
    atomic_store(&serving, 1);
    int32_t left = weft_server_run(server);
    atomic_store(&serving, 0);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    weft_server_free(&server);
    weft_engine_free(&engine);
    weft_model_close(&model);
    if (weft__alloc_live()) return fprintf(stderr, "fake_server: %zu blocks were not freed\n", weft__alloc_live()), 3;
    fprintf(stderr, "cancelled %d\n", left);
    return 0;
}
