// SPDX-License-Identifier: Apache-2.0
/* server.c: weft/server.h: puts the parts together and takes them apart. The thread that calls weft_server_run waits
 * there. */
#include "weft/server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/params.h"
#include "server/learned.h"
#include "server/memories.h"
#include "server/models.h"
#include "server/response.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/rules.h"

void(weft_server_params_default)(weft_server_params *p)
{
    *p = (weft_server_params){.size = sizeof *p, .learn_share = -1};
}

void weft_server_params_init(weft_server_params *params, uint32_t size)
{
    weft_server_params own;
    (weft_server_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_server_params), params, size, &own);
}

/* ---- files ---- */

enum { PEM_MAX = 1 << 20 };

static weft_status read_pem(const char *path, char **out, weft_error *err)
{
    *out = NULL;
    if (!path) return WEFT_OK;
    FILE *f = fopen(path, "r");
    if (!f) return weft_fail(err, WEFT_IO, "%s: %s", path, strerror(errno));
    char *text = weft__alloc(PEM_MAX + 1);
    size_t n = text ? fread(text, 1, PEM_MAX, f) : 0;
    weft_status st = !text       ? weft_fail(err, WEFT_NO_MEMORY, "no memory for %s", path)
                     : ferror(f) ? weft_fail(err, WEFT_IO, "%s: %s", path, strerror(errno))
                                 : WEFT_OK;
    fclose(f);
    if (st) {
        weft__free(text);
        return st;
    }
    text[n] = 0;
    *out = text;
    return WEFT_OK;
}

/* ---- HTTP ---- */

static char *refusal(void *arg, const weft__http_refusal *r, size_t *n)
{
    weft__api_error error = {0};
    (void)arg;
    weft__api_error_set(&error, r->status, NULL, "%s", r->message);
    return weft__api_error_body(weft__api_dialect_of(r->path), &error, n);
}

/* Scrapes and looks at the health are no traces. */
static void trace(weft_server *s, const weft__http_record *r, const weft__server_log_entry *entry)
{
    weft__server_span span = {.status = r->status, .complete = r->complete, .was_run = entry != NULL};
    const int goes_on = weft__server_trace_parent_read(r->traceparent, &span.parent);
    if (!s->traces || strcmp(r->method, "POST") || (goes_on && !span.parent.is_sampled)) return;
    span.ended_ns = weft__clock_ns();
    span.stages.came_ns = span.ended_ns - (uint64_t)(r->ms * 1e6);
    if (entry) {
        span.stages = entry->stages;
        span.ended_ns = span.stages.came_ns + (uint64_t)(r->ms * 1e6);
        span.n_prompt = entry->n_prompt;
        span.n_cached = entry->n_cached;
        span.n_generated = entry->n_generated;
        memcpy(span.model, entry->model, sizeof span.model);
        memcpy(span.finish, entry->finish, sizeof span.finish);
    }
    snprintf(span.method, sizeof span.method, "%s", r->method);
    snprintf(span.path, sizeof span.path, "%s", weft__server_route_at(weft__server_route_index(r->path)));
    snprintf(span.id, sizeof span.id, "%s", r->id);
    weft__server_traces_add(s->traces, &span);
}

static void record(void *arg, const weft__http_record *r, void *note)
{
    weft_server *s = arg;
    weft__server_log_entry *entry = note;
    if (entry) {
        weft__server_stages_end(&entry->stages, r->ms);
        weft__server_metrics_stages(&entry->served->metrics, &entry->stages);
    }
    trace(s, r, entry);
    weft__server_metrics_response(&s->answered, r->path, r->status);
    weft__server_log_request(s, r, note);
    weft__free(note);
}

static int or_default(int value, int fallback)
{
    return value ? value : fallback;
}

static int n_workers(const weft_server_params *p)
{
    return or_default(p->n_workers, 4);
}

static weft_status check_params(const weft_server_params *p, weft_error *err)
{
    const struct {
        const char *name;
        int32_t value, max;
    } limits[] = {{"n_threads", p->n_threads, 64},
                  {"n_workers", p->n_workers, 64},
                  {"max_connections", p->max_connections, 65536},
                  {"max_per_ip", p->max_per_ip, 65536},
                  {"max_headers", p->max_headers, 10000},
                  {"idle_s", p->idle_s, 86400},
                  {"slow_s", p->slow_s, 86400},
                  {"ping_s", p->ping_s, 86400},
                  {"drain_s", p->drain_s, 86400},
                  {"metrics_every_s", p->metrics_every_s, 86400},
                  {"learn_days", p->learn_days, 36500},
                  {"feedback_per_hour", p->feedback_per_hour, 1000000},
                  {"log_sync", p->log_sync, WEFT__LEARN_SYNC_EACH},
                  {"n_sources", p->n_sources, 65536},
                  {"idle_unload_s", p->idle_unload_s, 31536000}};
    if (p->port < -1 || p->port > 65535)
        return weft_fail(err, WEFT_ARGUMENT, "port %d: must be from 1 to 65535, or -1 for any", p->port);
    if (!p->tls_cert_file != !p->tls_key_file)
        return weft_fail(err, WEFT_ARGUMENT, "TLS wants both a certificate and a key");
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].value < 0 || limits[i].value > limits[i].max)
            return weft_fail(err, WEFT_ARGUMENT, "%s %d: must be from 0 (the default) to %d", limits[i].name,
                             limits[i].value, limits[i].max);
    if (p->max_body > 1u << 30 || p->max_head > 1u << 24 || p->max_buffer > 1u << 30)
        return weft_fail(err, WEFT_ARGUMENT, "max_body and max_buffer are at most 1 GiB, max_head 16 MiB");
    return WEFT_OK;
}

enum { BODIES_MIN = 64 << 20 };

static weft_status start_http(weft_server *s, const weft_server_params *p, weft_error *err)
{
    char *cert = NULL, *key = NULL;
    weft_status st = read_pem(p->tls_cert_file, &cert, err);
    if (!st) st = read_pem(p->tls_key_file, &key, err);
    weft__http_config c = {
        .host = p->host ? p->host : "127.0.0.1",
        .port = p->port == -1 ? 0 : or_default(p->port, 8080),
        .unix_path = p->unix_path,
        .listen_fd = p->listen_fd,
        .tls_cert = cert,
        .tls_key = key,
        .n_threads = or_default(p->n_threads, 2),
        .n_workers = n_workers(p),
        .max_body = p->max_body ? p->max_body : 8 << 20,
        .max_head = p->max_head ? p->max_head : 32 << 10,
        .max_headers = or_default(p->max_headers, 100),
        .max_connections = or_default(p->max_connections, 512),
        .max_per_ip = p->max_per_ip ? p->max_per_ip : (or_default(p->max_connections, 512) + 3) / 4,
        .max_buffer = p->max_buffer ? p->max_buffer : 1 << 20,
        .idle_s = or_default(p->idle_s, 60),
        .slow_s = or_default(p->slow_s, 30),
        .ping_s = or_default(p->ping_s, 15),
        .allow_hosts = (const char *const *)s->hosts.items,
        .origins = (const char *const *)s->origins.items,
        .proxies = p->proxies,
        .admit = weft__server_admit,
        .handle = weft__server_route,
        .refusal = refusal,
        .record = record,
        .arg = s,
    };
    c.max_bodies = c.max_body > BODIES_MIN / 4 ? 4 * c.max_body : BODIES_MIN;
    c.max_answers = 4 * c.max_bodies;
    if (!st) st = weft__http_start(&c, &s->http, err);
    weft__free(cert);
    weft__free(key);
    return st;
}

/* ---- public ---- */

static weft_status read_keys(weft_server *s, const weft_server_params *p, weft_error *err)
{
    weft__server_rules *next = NULL;
    weft__config_faults faults = {0};
    weft_status st = WEFT_OK;
    for (const char *const *k = p->api_keys; !st && k && *k; k++)
        st = weft__server_keys_add(&s->given_keys, *k, 0, err);
    for (const char *const *k = p->admin_keys; !st && k && *k; k++)
        st = weft__server_keys_add(&s->given_keys, *k, 1, err);
    if (!st && ((p->api_key_file && !(s->key_file = weft__strdup(p->api_key_file))) ||
                (p->config_file && !(s->config_file = weft__strdup(p->config_file)))))
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
    s->config_setting = p->config_setting;
    s->config_arg = p->config_arg;
    s->model_loaded = p->model_loaded;
    s->loaded_arg = p->loaded_arg;
    if (!st) st = weft__server_rules_new(s, NULL, &next, &faults, err);
    weft__config_faults_free(&faults);
    if (st) return st;
    s->wants_keys = next->keys.n != 0;
    weft__server_rules_put(s, &next);
    return WEFT_OK;
}

enum { GRAMMARS = 64 /* of some 30 ms at most, on the machines we measured */, GRAMMARS_OF_ONE = 48 };

static weft_status begin_lines(weft_server *s, weft_error *err)
{
    const int32_t max = s->models.max_waiting, max_of_one = s->models.max_of_one; /* as the engine's queue has it */
    s->grammars = (weft__server_wait_queue){.what = "its grammar",
                                            .max = GRAMMARS,
                                            .max_of_one = GRAMMARS_OF_ONE,
                                            .work = weft__server_response_compile,
                                            .go_on = weft__server_response_compiled};
    s->adapters = (weft__server_wait_queue){.what = "its adapter",
                                            .max = max,
                                            .max_of_one = max_of_one,
                                            .work = weft__server_response_lease,
                                            .ahead = weft__server_response_ahead,
                                            .go_on = weft__server_response_leased};
    weft_status st = weft__server_wait_queue_begin(&s->grammars, err);
    return st ? st : weft__server_wait_queue_begin(&s->adapters, err);
}

int weft__server_disk_enter(weft_server *s, const weft__http_request *r, const char *field, weft__api_error *error)
{
    const void *client = weft__http_client_of(r);
    const int most =
        client && s->max_at_disk > 1 ? s->max_at_disk - 1 : s->max_at_disk; /* a client leaves room for another */
    int n = 0;
    pthread_mutex_lock(&s->disk_lock);
    for (int i = 0; i < s->n_at_disk; i++) n += s->at_disk[i] == client;
    int full = s->n_at_disk >= s->max_at_disk, room = !full && n < most;
    if (room) s->at_disk[s->n_at_disk++] = client;
    pthread_mutex_unlock(&s->disk_lock);
    if (room) return 1;
    return full
               ? weft__api_error_set(error, 503, field, "%d requests wait for the disk or the router; try again in 1 s",
                                     s->max_at_disk)
               : weft__api_error_set(error, 429, field,
                                     "%d requests of this client wait for the disk or the router; try again in 1 s", n);
}

void weft__server_disk_leave(weft_server *s, const weft__http_request *r)
{
    const void *client = weft__http_client_of(r);
    pthread_mutex_lock(&s->disk_lock);
    int i = 0;
    while (s->at_disk[i] != client) i++;
    s->at_disk[i] = s->at_disk[--s->n_at_disk];
    pthread_mutex_unlock(&s->disk_lock);
}

/* ---- models ---- */

/* The caller's model, which is there and stays. */
static weft_status open_first(weft_server *s, weft_model *model, weft_engine *engine, weft_error *err)
{
    weft__server_model *m = s->models.first;
    weft_engine_bytes need = {.size = sizeof need};
    weft_engine_stats e = {.size = sizeof e};
    weft_status st = weft__server_model_open(m, model, engine, s->wants_keys, err);
    if (st) return st;
    m->state = WEFT__SERVER_LOADED;
    m->n_loads = 1;
    s->models.max_waiting = m->max_requests;
    st = weft__server_adapters_check_names(m, err);
    if (!st && s->add_adapters && m->settings.adapter_dir) st = weft__server_adapters_of_folder(m, err);
    if (st || !s->models.memory) return st;
    st = weft_engine_count_bytes(model, &m->settings.engine, &need, err);
    if (st) return st;
    m->kv_least = m->kv_allowed = need.pages_least;
    m->kv_most = need.pages;
    weft_engine_get_stats(engine, &e);
    m->reserved = need.weights + need.scratch_most;
    if (m->settings.adapter_dir || e.n_adapters) m->adapters_least = m->settings.engine.adapter_bytes;
    m->reserved += m->adapters_least;
    weft_engine_limit_pages(engine, need.pages_least);
    if (m->reserved + m->kv_least <= s->models.memory) return WEFT_OK;
    return weft_fail(err, WEFT_NO_MEMORY, "%s takes %.1f MB, more than the %.1f MB of --memory", m->name,
                     (double)(m->reserved + m->kv_least) / 1e6, (double)s->models.memory / 1e6);
}

/* source NULL: the caller's own. */
static weft_status add_model(weft_server *s, const weft_server_params *p, const weft_server_source *source,
                             weft_error *err)
{
    weft__server_model *m;
    if (source && source->name && weft__server_models_find(s, source->name))
        return weft_fail(err, WEFT_ARGUMENT, "two models have the name '%s'; give one another", source->name);
    weft_status st = weft__server_model_new(s, source ? source->name : NULL, source ? source->path : NULL,
                                            source ? NULL : p->aliases, &m, err);
    if (m) s->models.items[s->models.n++] = m;
    return st ? st : weft__server_settings_read(m, p, source, err);
}

static weft_status copy_settings(weft_server *s, const weft_server_params *p, weft_error *err)
{
    weft__server_models *all = &s->models;
    weft_engine_params engine;
    weft_engine_params_default(&engine);
    weft_status st = p->engine_params
                         ? weft__params_read(WEFT__PARAMS_TYPE(weft_engine_params), &engine, p->engine_params, err)
                         : WEFT_OK;
    if (st) return st;
    if (engine.store_dir && !(all->store_dir = weft__strdup(engine.store_dir)))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for the server's settings");
    all->memory = p->memory;
    all->max_waiting = or_default(engine.n_slots, 16) + or_default(engine.max_queue, 256);
    s->add_adapters = p->add_adapters;
    return WEFT_OK;
}

/* The caller's first, then those that are loaded when they are asked for. */
static weft_status begin_models(weft_server *s, weft_model *model, weft_engine *engine, const weft_server_params *p,
                                weft_error *err)
{
    weft__server_models *all = &s->models;
    if (!model && !p->n_sources) return weft_fail(err, WEFT_ARGUMENT, "a server without a model");
    weft_status st = copy_settings(s, p, err);
    all->are_several = p->n_sources > 0 || p->memory;
    all->items = weft__alloc_zero((size_t)p->n_sources + 1, sizeof *all->items);
    if (!st && !all->items) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
    if (!st && model) {
        st = add_model(s, p, NULL, err);
        all->first = all->items[0];
        if (!st) st = open_first(s, model, engine, err);
    }
    for (int32_t i = 0; i < p->n_sources && !st; i++) {
        st = add_model(s, p, &p->sources[i], err);
        if (st || !p->sources[i].is_pinned) continue;
        all->items[all->n - 1]->is_pinned = 1;
        weft__server_loader_want(s, all->items[all->n - 1]);
    }
    all->max_of_one = all->max_waiting - all->max_waiting / 9;
    return st;
}

static void make_locks(weft_server *s)
{
    pthread_mutex_init(&s->models.lock, NULL);
    weft__clock_cond_init(&s->models.work);
    weft__clock_cond_init(&s->models.tick);
    pthread_cond_init(&s->models.send, NULL);
    pthread_mutex_init(&s->disk_lock, NULL);
    pthread_rwlock_init(&s->rules_lock, NULL);
}

weft_status weft_server_new(weft_model *model, weft_engine *engine, const weft_server_params *params, weft_server **out,
                            weft_error *err)
{
    weft_server_params own, *p = &own;
    *out = NULL;
    weft_server_params_default(p);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_server_params), p, params, err);
    if (!st) st = check_params(p, err);
    if (st) return st;
    weft_server *s = weft__alloc_zero(1, sizeof *s);
    if (!s) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
    s->began = time(NULL);
    s->drain_s = or_default(p->drain_s, 30);
    s->no_page = p->no_page != 0;
    s->shift = p->shift != 0;
    make_locks(s);
    weft__server_limits_begin(&s->limits);
    pthread_mutex_init(&s->resident.lock, NULL);
    weft__server_usage_begin(&s->usage);
    s->stop_fd = eventfd(0, EFD_CLOEXEC);
    s->reload_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->stop_fd < 0 || s->reload_fd < 0) st = weft_fail(err, WEFT_IO, "eventfd: %s", strerror(errno));
    if (!st) st = read_keys(s, p, err);
    if (!st && p->learn_dir)
        st = weft__learn_open(&(weft__learn_options){.dir = p->learn_dir,
                                                     .max_age_s = (int64_t)p->learn_days * 86400,
                                                     .max_bytes = p->learn_bytes,
                                                     .events_per_hour = p->feedback_per_hour,
                                                     .sync = (weft__learn_sync)p->log_sync},
                              &s->learn, err);
    s->memories_per_hour = p->feedback_per_hour ? p->feedback_per_hour : 600;
    if (!st) st = weft__server_memories_begin(s, p, err);
    if (!st) st = begin_models(s, model, engine, p, err);
    if (!st) st = weft__server_learned_begin(s, p, err);
    if (!st) st = weft__server_strings_copy(p->cors_origins, &s->origins, err);
    if (!st) st = weft__server_strings_copy(p->allow_hosts, &s->hosts, err);
    if (!st) st = weft__server_presets_check(s->rules, s, err);
    if (!st) st = weft__server_router_begin(s, p, err);
    if (!st) st = weft__server_log_begin(s, p->log_file, err);
    if (!st && p->metrics_file)
        st = weft__server_metrics_file_begin(s, p->metrics_file, or_default(p->metrics_every_s, 10), err);
    if (!st && p->otlp_url) st = weft__server_traces_new(p->otlp_url, &s->traces, err);
    s->max_at_disk = n_workers(p) > 2 ? n_workers(p) - 1 : 1;
    if (!st) st = begin_lines(s, err);
    if (!st) st = weft__server_answers_begin(&s->answers, err);
    if (!st) st = weft__server_loader_begin(s, err);
    if (!st) st = start_http(s, p, err);
    if (st) weft_server_free(&s);
    *out = s;
    return st;
}

const char *weft_server_address(const weft_server *s)
{
    return weft__http_address(s->http);
}

void weft_server_stop(weft_server *s)
{
    uint64_t one = 1;
    int why = errno;
    if (write(s->stop_fd, &one, sizeof one) < 0) errno = why; /* the counter is full: it was told often enough */
    errno = why;
}

void weft_server_reload(weft_server *s)
{
    uint64_t one = 1;
    int why = errno;
    if (write(s->reload_fd, &one, sizeof one) < 0) errno = why; /* the counter is full: it was told often enough */
    errno = why;
    weft_server_reopen_log(s);
}

/* 1 when weft_server_stop was called since. */
static int asked_again(weft_server *s)
{
    uint64_t n;
    fcntl(s->stop_fd, F_SETFL, O_NONBLOCK);
    return read(s->stop_fd, &n, sizeof n) == sizeof n;
}

int32_t weft_server_run(weft_server *s)
{
    uint64_t n;
    struct pollfd asked[] = {{s->stop_fd, POLLIN, 0}, {s->reload_fd, POLLIN, 0}};
    for (;;) {
        if (poll(asked, 2, -1) < 0) continue;
        if (asked[1].revents && read(s->reload_fd, &n, sizeof n) == sizeof n) weft__server_rules_reload(s);
        if (asked[0].revents && read(s->stop_fd, &n, sizeof n) == sizeof n) break;
    }
    s->draining = n > 1 ? 2 : 1;
    weft__http_quiesce(s->http);
    uint64_t until = weft__clock_ns() + (uint64_t)s->drain_s * 1000000000u;
    int left = weft__http_wait_idle(s->http, 0);
    while (left && s->draining == 1 && weft__clock_ns() < until && !asked_again(s))
        left = weft__http_wait_idle(s->http, 100);
    if (left) weft__server_loader_stop(s);
    for (size_t i = 0; i < s->models.n && left; i++) /* those are told that they were cancelled */
        if (s->models.items[i]->engine) weft_engine_drain(s->models.items[i]->engine, 0);
    if (left) weft__http_wait_idle(s->http, 2000);
    return left;
}

void weft_server_free(weft_server **p)
{
    weft_server *s = p ? *p : NULL;
    if (!s) return;
    *p = NULL;
    weft__http_stop(&s->http);
    weft__server_wait_queue_end(&s->adapters);
    weft__server_wait_queue_end(&s->grammars);
    weft__server_loader_stop(s);
    weft__server_answers_end(&s->answers);
    weft__server_metrics_file_end(s);
    weft__server_traces_free(&s->traces);
    weft__server_memories_end(s);
    weft__server_learned_end(s);
    weft__learn_close(&s->learn);
    weft__server_log_end(s);
    weft__server_loader_end(s);
    weft__server_router_end(s);
    weft__free(s->models.store_dir);
    weft__server_rules_release(&s->rules);
    weft__server_limits_end(&s->limits);
    weft__server_keys_free(&s->given_keys);
    weft__free(s->key_file);
    weft__free(s->config_file);
    weft__server_usage_free(&s->usage);
    weft__server_strings_free(&s->origins);
    weft__server_strings_free(&s->hosts);
    if (s->stop_fd >= 0) close(s->stop_fd);
    if (s->reload_fd >= 0) close(s->reload_fd);
    pthread_cond_destroy(&s->models.send);
    pthread_cond_destroy(&s->models.tick);
    pthread_cond_destroy(&s->models.work);
    pthread_mutex_destroy(&s->models.lock);
    pthread_mutex_destroy(&s->disk_lock);
    pthread_rwlock_destroy(&s->rules_lock);
    pthread_mutex_destroy(&s->resident.lock);
    weft__free(s);
}
