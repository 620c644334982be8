// SPDX-License-Identifier: Apache-2.0
/* loader.c: models come and go (models.h). The loader's thread loads and ends them, one after the other, in the order
 * in which they were asked for; loading itself runs on a thread of low precedence. The keeper's thread is the clock:
 * deadlines of requests that wait, models that were not used for long, memory.
 *
 * Invariant: what stands in a model beyond its name is changed by the loader's thread alone, or for it in the
 * background (base/background.h), while no request holds it; no lock that requests wait for is held there. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/thread.h"
#include "server/models.h"

static const uint64_t TEND_NS = 100000000;

/* Will it have gone in a while, whatever else happens? */
static int is_going(const weft__server_model *m)
{
    return m->state == WEFT__SERVER_UNLOADING || (m->state == WEFT__SERVER_LOADED && m->closing == 2) ||
           (m->state == WEFT__SERVER_LOADING && m->is_cancelled);
}

int weft__server_loader_want(weft_server *s, weft__server_model *m)
{
    if (is_going(m)) return m->is_wanted_again = 1;
    if (m->state != WEFT__SERVER_UNLOADED && m->state != WEFT__SERVER_FAILED) return 0;
    m->state = WEFT__SERVER_WANTED;
    m->wanted_ns = weft__clock_ns();
    m->is_cancelled = m->is_wanted_again = 0;
    m->permille = 0;
    pthread_cond_signal(&s->models.work);
    return 1;
}

void weft__server_loader_close(weft_server *s, weft__server_model *m)
{
    m->closing = 2;
    m->is_wanted_again = 0;
    pthread_cond_signal(&s->models.work);
}

void weft__server_loader_cancel(weft_server *s, weft__server_model *m)
{
    m->is_wanted_again = 0;
    if (m->state == WEFT__SERVER_WANTED) m->state = WEFT__SERVER_UNLOADED;
    else m->is_cancelled = 1;
    pthread_cond_signal(&s->models.work);
}

/* It has gone: comes again where that was asked for meanwhile. */
static void is_gone(weft_server *s, weft__server_model *m)
{
    m->state = WEFT__SERVER_UNLOADED;
    m->reserved = m->kv_allowed = m->adapters_more = 0;
    m->closing = 0;
    if (m->waiting.n || m->is_wanted_again) weft__server_loader_want(s, m);
}

/* ---- loading ---- */

/* In the background: it takes no lock that requests wait for. */
static int on_progress(void *arg, const char *what, double fraction)
{
    weft__server_model *m = arg;
    (void)what;
    m->permille = (int)(fraction * 1000);
    return m->is_cancelled || m->server->models.stop;
}

static weft_status make_room(weft_server *s, weft__server_model *m, uint64_t bytes, uint64_t pages, weft_error *err)
{
    pthread_mutex_lock(&s->models.lock);
    weft_status st = weft__server_room_make(s, m, bytes, pages, err);
    pthread_mutex_unlock(&s->models.lock);
    return st;
}

/* Each model has a part of the store to itself. "": there is no store. */
static weft_status store_of(const weft__server_model *m, char *out, size_t room, weft_error *err)
{
    const char *dir = m->server->models.store_dir;
    weft__hash_state h;
    out[0] = 0;
    if (!dir) return WEFT_OK;
    weft__hash_begin(&h);
    weft__hash_add(&h, m->name, strlen(m->name));
    (void)mkdir(dir, 0777); /* or it is there */
    if ((size_t)snprintf(out, room, "%s/model-%016llx", dir, (unsigned long long)weft__hash_end(&h)) >= room)
        return weft_fail(err, WEFT_LIMIT, "%s: the name of the store is too long", dir);
    return WEFT_OK;
}

/* The model that guesses for m, if there is one: opened as `as` says, but for what is of the large model's context.
 * NULL: there is none. */
static weft_status open_draft(const weft__server_model *m, const weft_model_params *as, weft_model **out,
                              weft_error *err)
{
    char path[4096];
    weft_model_params p = *as;
    *out = NULL;
    if (!m->settings.draft) return WEFT_OK;
    p.rope = (weft_rope_params){0};
    p.n_ctx = 0;
    weft_status st = weft_resolve_model(m->settings.draft, path, sizeof path, err);
    if (!st) st = weft_model_open(path, &p, out, err);
    return st ? weft_fail_within(err, st, "its draft model") : WEFT_OK;
}

/* Makes room for all that it will take, which an outline of it tells. */
static weft_status prepare(weft_server *s, weft__server_model *m, const char *path, weft_error *err)
{
    weft_model *outline = NULL, *draft = NULL;
    weft_engine_params e = m->settings.engine;
    weft_engine_bytes need = {.size = sizeof need};
    weft_model_params p = m->settings.model;
    p.outline = p.in_background = 1;
    p.share_threads = 1;
    weft_status st = weft_model_open(path, &p, &outline, err);
    if (!st) st = open_draft(m, &p, &draft, err);
    e.draft = draft;
    if (!st) st = weft_engine_count_bytes(outline, &e, &need, err);
    weft_model_close(&draft);
    weft_model_close(&outline);
    if (st) return st;
    m->kv_least = need.pages_least;
    m->kv_most = need.pages;
    const int has_adapters = m->settings.adapter_dir || m->settings.n_adapters || m->n_kept;
    const uint64_t adapters = has_adapters ? m->settings.engine.adapter_bytes : 0;
    m->adapters_least = adapters;
    m->n_adapters_gone = 0;
    return make_room(s, m, need.weights + need.scratch_most + adapters, need.pages_least, err);
}

/* Its adapters: those that it had when it went, or those that the settings give it, and those of its folder. */
static weft_status add_adapters(const weft_server *s, weft__server_model *m, weft_error *err)
{
    if (m->kept) return weft__server_adapters_restore(m, err);
    weft_status st = weft__server_adapters_add(m, err);
    return !st && s->add_adapters && m->settings.adapter_dir ? weft__server_adapters_of_folder(m, err) : st;
}

/* An engine of the model, and what requests must know of both. */
static weft_status start(weft_server *s, weft__server_model *m, weft_model *model, weft_engine **engine,
                         weft_error *err)
{
    char store[4096];
    weft_engine_params p = m->settings.engine;
    weft_status st = store_of(m, store, sizeof store, err);
    p.store_dir = *store ? store : NULL;
    p.trace = NULL;
    p.draft = m->draft;
    if (s->models.memory) p.kv_bytes = m->kv_least;
    if (!st) st = weft_engine_new(model, &p, engine, err);
    if (!st) st = weft__server_model_open(m, model, *engine, s->wants_keys, err);
    if (!st) st = add_adapters(s, m, err);
    if (!st && s->model_loaded) s->model_loaded(s->loaded_arg, m->name, model, &p);
    return st;
}

typedef struct loader_job {
    weft_server *s;
    weft__server_model *m;
    const char *path;
    weft_error *err;
    weft_status status;
} loader_job;

/* In the background, all of it: what an engine and a template begin with takes its time, too. */
static void load_behind(void *arg)
{
    loader_job *j = arg;
    weft_model *model = NULL;
    weft_engine *engine = NULL;
    weft_model_params p = j->m->settings.model;
    p.progress = on_progress;
    p.progress_arg = j->m;
    p.share_threads = p.in_background = 1;
    j->status = weft_model_open(j->path, &p, &model, j->err);
    if (!j->status) j->status = open_draft(j->m, &p, &j->m->draft, j->err);
    if (!j->status) j->status = start(j->s, j->m, model, &engine, j->err);
    if (!j->status) return;
    weft__server_model_shut(j->m);
    weft_engine_free(&engine);
    weft_model_close(&j->m->draft);
    weft_model_close(&model);
}

/* Waiting for room is done here, with the lock. */
static weft_status load(weft_server *s, weft__server_model *m, weft_error *err)
{
    char path[4096];
    loader_job j = {s, m, path, err, WEFT_OK};
    weft_status st = weft_resolve_model(m->path, path, sizeof path, err);
    if (!st && s->models.memory) st = prepare(s, m, path, err);
    if (st) return st;
    weft__background_run(load_behind, &j);
    return j.status;
}

/* With the lock, which it gives up meanwhile. */
static void load_one(weft_server *s, weft__server_model *m)
{
    weft_error err = {0};
    const uint64_t began = weft__clock_ns();
    m->state = WEFT__SERVER_LOADING;
    m->closing = 0;
    pthread_mutex_unlock(&s->models.lock);
    weft_status st = load(s, m, &err);
    pthread_mutex_lock(&s->models.lock);
    if (!st) {
        m->state = WEFT__SERVER_LOADED;
        m->loaded_ns = m->used_ns = weft__clock_ns();
        m->load_ms = (m->loaded_ns - began) / 1000000;
        m->n_loads++;
        weft__server_models_send(s, m);
        if (m->is_cancelled && !m->is_wanted_again) weft__server_loader_close(s, m);
        pthread_cond_signal(&s->models.tick);
        return;
    }
    if (st == WEFT_CANCELLED) { /* who waited then was refused */
        is_gone(s, m);
        return;
    }
    m->state = WEFT__SERVER_FAILED;
    m->reserved = m->kv_allowed = m->adapters_more = 0;
    m->fault = err;
    weft__server_models_refuse(s, m, &err);
    weft__log(WEFT__LOG_WARN, "the model '%s' could not be loaded: %s", m->name, err.message);
}

/* ---- unloading ---- */

static void add_histogram(weft_histogram *to, const weft_histogram *more)
{
    to->n = more->n;
    to->sum += more->sum;
    memcpy(to->bounds, more->bounds, sizeof to->bounds);
    for (int i = 0; i <= WEFT_HISTOGRAM_MAX; i++) to->counts[i] += more->counts[i];
}

static void keep_swap(weft_swap_stats *to, const weft_swap_stats *s)
{
    to->pages_out += s->pages_out;
    to->bytes_out += s->bytes_out;
    to->out_ns += s->out_ns;
    to->pages_in += s->pages_in;
    to->bytes_in += s->bytes_in;
    to->in_ns += s->in_ns;
    to->pages_lost += s->pages_lost;
    to->n_swapped += s->n_swapped;
    to->n_restored += s->n_restored;
    to->tokens += s->tokens;
}

static void keep_drafts(weft_draft_stats *to, const weft_draft_stats *d)
{
    to->n_drafts += d->n_drafts;
    to->n_tokens += d->n_tokens;
    to->n_accepted += d->n_accepted;
    for (int k = 0; k < WEFT_DRAFT_MAX; k++) {
        to->tokens_at[k] += d->tokens_at[k];
        to->accepted_at[k] += d->accepted_at[k];
    }
}

static void keep_peak(weft_held *to, const weft_held *h)
{
    if (h->peak > to->peak) to->peak = h->peak;
}

/* Counters of an engine that ends go on where they are, and the most that it held remains the most. */
static void keep_counters(weft_engine_stats *to, const weft_engine_stats *e)
{
    to->n_steps += e->n_steps;
    to->model_ns += e->model_ns;
    to->n_rows_decode += e->n_rows_decode;
    to->n_rows_prompt += e->n_rows_prompt;
    to->n_submitted += e->n_submitted;
    to->n_finished += e->n_finished;
    to->n_cancelled += e->n_cancelled;
    to->n_failed += e->n_failed;
    to->n_generated += e->n_generated;
    to->draft_ns += e->draft_ns;
    for (int d = 0; d < WEFT_DRAFTERS; d++) keep_drafts(&to->drafts[d], &e->drafts[d]);
    to->n_refused += e->n_refused;
    to->n_preempted += e->n_preempted;
    to->n_put_off += e->n_put_off;
    to->prompt_tokens += e->prompt_tokens;
    to->cached_tokens += e->cached_tokens;
    to->prefix_evicted_pages += e->prefix_evicted_pages;
    to->adapter_loads += e->adapter_loads;
    to->adapter_evictions += e->adapter_evictions;
    to->adapter_hits += e->adapter_hits;
    to->adapter_disk_loads += e->adapter_disk_loads;
    to->adapter_asked_ahead += e->adapter_asked_ahead;
    to->adapter_ahead_hits += e->adapter_ahead_hits;
    to->store_written += e->store_written;
    to->store_write_failed += e->store_write_failed;
    to->store_read += e->store_read;
    to->store_read_tokens += e->store_read_tokens;
    to->store_damaged += e->store_damaged;
    to->store_removed += e->store_removed;
    keep_swap(&to->swap, &e->swap);
    keep_peak(&to->memory.weights, &e->memory.weights);
    keep_peak(&to->memory.pages, &e->memory.pages);
    keep_peak(&to->memory.adapters, &e->memory.adapters);
    keep_peak(&to->memory.scratch, &e->memory.scratch);
    add_histogram(&to->batch_rows, &e->batch_rows);
    add_histogram(&to->step_ms, &e->step_ms);
}

void weft__server_models_stats(const weft__server_model *m, weft_engine_stats *out)
{
    *out = m->past;
    out->size = sizeof *out;
    if (m->state != WEFT__SERVER_LOADED) return;
    weft_engine_stats now = {.size = sizeof now};
    weft_engine_get_stats(m->engine, &now);
    *out = now;
    keep_counters(out, &m->past);
    if (!m->past.batch_rows.n) {
        out->batch_rows = now.batch_rows;
        out->step_ms = now.step_ms;
    }
}

/* In the background: much memory goes back to the system. */
static void end_model(void *arg)
{
    weft__server_model *m = arg;
    weft_model *model = m->model;
    weft_engine *engine = m->engine;
    weft__server_model_shut(m);
    weft_engine_free(&engine);
    weft_model_close(&m->draft);
    weft_model_close(&model);
}

void weft__server_loader_unload(weft_server *s, weft__server_model *m)
{
    weft_error err = {0};
    weft_engine_stats e = {.size = sizeof e};
    weft_engine_get_stats(m->engine, &e);
    if (e.kv_limit_bytes > m->kv_allowed) m->kv_allowed = e.kv_limit_bytes;
    m->state = WEFT__SERVER_UNLOADING; /* of no use to anyone, and counted until it has gone */
    keep_counters(&m->past, &e);       /* from now on they are told */
    pthread_mutex_unlock(&s->models.lock);
    if (weft__server_adapters_keep(m, &err)) weft__log(WEFT__LOG_WARN, "%s", err.message);
    weft__background_run(end_model, m);
    pthread_mutex_lock(&s->models.lock);
    m->n_unloads++;
    is_gone(s, m);
}

/* ---- the threads ---- */

static weft__server_model *find_closing(const weft__server_models *all)
{
    for (size_t i = 0; i < all->n; i++) {
        weft__server_model *m = all->items[i];
        if (m->state == WEFT__SERVER_LOADED && m->closing == 2 && !m->n_held && m->path) return m;
    }
    return NULL;
}

/* The one that was asked for first. */
static weft__server_model *find_wanted(const weft__server_models *all)
{
    weft__server_model *found = NULL;
    for (size_t i = 0; i < all->n; i++) {
        weft__server_model *m = all->items[i];
        if (m->state == WEFT__SERVER_WANTED && (!found || m->wanted_ns < found->wanted_ns)) found = m;
    }
    return found;
}

static void *loader_main(void *arg)
{
    weft_server *s = arg;
    weft__server_models *all = &s->models;
    pthread_mutex_lock(&all->lock);
    while (!all->stop) {
        weft__server_model *closing = find_closing(all), *wanted = closing ? NULL : find_wanted(all);
        if (closing) weft__server_loader_unload(s, closing);
        else if (wanted) load_one(s, wanted);
        else pthread_cond_wait(&all->work, &all->lock);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* Has those go that were not used for as long as they are kept; returns when the next one may be, 0: never. */
static uint64_t close_unused(weft_server *s, uint64_t now)
{
    uint64_t next = 0;
    for (size_t i = 0; i < s->models.n; i++) {
        weft__server_model *m = s->models.items[i];
        if (m->state != WEFT__SERVER_LOADED || !m->path || m->is_pinned || m->n_held || m->closing ||
            m->keep_ns == UINT64_MAX)
            continue;
        const uint64_t until = m->used_ns + m->keep_ns;
        if (until <= now) weft__server_loader_close(s, m);
        else if (!next || until < next) next = until;
    }
    return next;
}

static void *keeper_main(void *arg)
{
    weft_server *s = arg;
    weft__server_models *all = &s->models;
    pthread_mutex_lock(&all->lock);
    while (!all->stop) {
        const uint64_t now = weft__clock_ns(), unused = close_unused(s, now);
        uint64_t next = weft__server_models_expire(s);
        if (unused && (!next || unused < next)) next = unused;
        if (all->memory) {
            weft__server_room_tend(s, now);
            if (!next || now + TEND_NS < next) next = now + TEND_NS;
        }
        if (!all->has_left) weft__clock_wait(&all->tick, &all->lock, next);
    }
    (void)weft__server_models_expire(s);
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

weft_status weft__server_loader_begin(weft_server *s, weft_error *err)
{
    weft__server_models *all = &s->models;
    if (!all->are_several) return WEFT_OK;
    all->has_loader = !weft__thread_start(&all->loader, loader_main, s);
    all->has_keeper = all->has_loader && !weft__thread_start(&all->keeper, keeper_main, s);
    all->has_sender = all->has_keeper && !weft__thread_start(&all->sender, weft__server_models_sender, s);
    return all->has_sender ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no thread that loads models");
}

void weft__server_loader_stop(weft_server *s)
{
    weft__server_models *all = &s->models;
    const weft_error why = {WEFT_CANCELLED, "the server is shutting down"};
    pthread_mutex_lock(&all->lock);
    all->stop = 1;
    pthread_cond_signal(&all->work);
    pthread_cond_signal(&all->tick);
    pthread_cond_signal(&all->send);
    for (size_t i = 0; i < all->n; i++) weft__server_models_refuse(s, all->items[i], &why);
    pthread_mutex_unlock(&all->lock);
    if (all->has_loader) pthread_join(all->loader, NULL);
    if (all->has_keeper) pthread_join(all->keeper, NULL);
    if (all->has_sender) pthread_join(all->sender, NULL);
    all->has_loader = all->has_keeper = all->has_sender = 0;
}

void weft__server_loader_end(weft_server *s)
{
    for (size_t i = 0; i < s->models.n; i++) {
        weft__server_model *m = s->models.items[i];
        weft_model *model = m->path ? m->model : NULL; /* else it is the caller's */
        weft_engine *engine = m->path ? m->engine : NULL;
        weft__server_model_shut(m);
        weft_engine_free(&engine);
        weft_model_close(&m->draft);
        weft_model_close(&model);
        weft__server_model_free(&m);
    }
    weft__free(s->models.items);
    s->models.n = 0;
}
