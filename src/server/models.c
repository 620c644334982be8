// SPDX-License-Identifier: Apache-2.0
/* models.c: which model a request means, and requests whose model is not there (server.h).
 *
 * Invariant: a request that waits is in the line of its model or among those that are sent on, never in both, and
 * leaves them once; what its client does meanwhile is only noted, and the keeper's thread (loader.c) sees to it. When a
 * model is there, all that wait for it hold it before anything else may end it. The endpoints of those run on a thread
 * of their own, so that no worker waits for a model. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "server/learned.h"
#include "server/models.h"
#include "server/rules.h"

/* A request that waits. */
typedef struct models_waiter {
    weft__http_turn turn;
    atomic_int refs; /* the line's, and the listener's for a client that leaves */
    weft__server_model *model;
    weft__http_request *r;
    weft__server_caller who;
    char tenant[64];
    weft__server_of_model *answer;
    uint64_t deadline_ns; /* 0: none */
    int has_left;         /* under the lock */
} models_waiter;

static models_waiter *waiter_of(weft__http_turn *turn)
{
    return turn ? WEFT__HTTP_TURN_OF(models_waiter, turn, turn) : NULL;
}

static void models_refuse(weft__http_request *r, const weft__api_error *error)
{
    weft__server_reply_error(r, error);
    weft__http_release(r);
}

/* ---- holding ---- */

weft__server_model *weft__server_model_hold(weft__server_model *m)
{
    pthread_mutex_lock(&m->server->models.lock);
    m->n_held++;
    pthread_mutex_unlock(&m->server->models.lock);
    return m;
}

int weft__server_model_hold_loaded(weft__server_model *m)
{
    pthread_mutex_lock(&m->server->models.lock);
    int held = m->state == WEFT__SERVER_LOADED;
    m->n_held += held;
    pthread_mutex_unlock(&m->server->models.lock);
    return held;
}

/* used_ns: 0: it was not used. */
static void give_back(weft__server_model **p, uint64_t used_ns)
{
    weft__server_model *m = *p;
    if (!m) return;
    weft__server_models *all = &m->server->models;
    *p = NULL;
    pthread_mutex_lock(&all->lock);
    if (used_ns > m->used_ns) m->used_ns = used_ns;
    if (--m->n_held == 0 && all->are_several) {
        pthread_cond_signal(&all->work);
        pthread_cond_signal(&all->tick);
    }
    pthread_mutex_unlock(&all->lock);
}

void weft__server_model_release(weft__server_model **m, uint64_t used_ns)
{
    give_back(m, used_ns ? used_ns : weft__clock_ns());
}

void weft__server_model_look_away(weft__server_model **m)
{
    give_back(m, 0);
}

static const int64_t FOR_EVER_MS = 1000000000000; /* some thirty years */

void weft__server_model_keep(weft__server_model *m, int64_t ms)
{
    weft__server_models *all = &m->server->models;
    pthread_mutex_lock(&all->lock);
    m->keep_ns = ms > FOR_EVER_MS ? UINT64_MAX
                 : ms >= 0        ? (uint64_t)ms * 1000000
                 : m->idle_ns     ? m->idle_ns
                                  : UINT64_MAX;
    pthread_mutex_unlock(&all->lock);
}

/* ---- which one ---- */

weft__server_model *weft__server_models_find(weft_server *s, const char *name)
{
    for (size_t i = 0; i < s->models.n; i++)
        if (weft__server_is_model_name(s->models.items[i], name)) return s->models.items[i];
    return NULL;
}

/* The model that has such an adapter for this caller, among those that are there. */
static weft__server_model *find_by_adapter(weft_server *s, const weft__server_caller *who, const char *name)
{
    weft__server_model *found = NULL;
    char adapter[WEFT__API_ADAPTER_NAME];
    for (size_t i = 0; i < s->models.n && !found; i++) {
        weft__server_model *m = s->models.items[i];
        if (!weft__server_model_hold_loaded(m)) continue;
        weft__server_adapter_of_model(m, who, name, adapter);
        if (*adapter) found = m;
        weft__server_model_look_away(&m);
    }
    return found;
}

/* One that is not there, and has an adapter of that name by its settings. */
static weft__server_model *find_by_settings(weft_server *s, const char *name)
{
    for (size_t i = 0; i < s->models.n; i++)
        for (size_t k = 0; k < s->models.items[i]->settings.n_adapters; k++)
            if (!strcmp(s->models.items[i]->settings.adapters[k].name, name)) return s->models.items[i];
    return NULL;
}

/* "MODEL:ADAPTER" is the model's, there or not. */
static weft__server_model *find_base(weft_server *s, const char *name)
{
    char base[257];
    const char *colon = strrchr(name, ':');
    if (!colon || (size_t)(colon - name) >= sizeof base) return NULL;
    snprintf(base, sizeof base, "%.*s", (int)(colon - name), name);
    return weft__server_models_find(s, base);
}

int weft__server_takes_any_name(const weft__server_model *m)
{
    for (char **a = m->aliases.items; a && *a; a++)
        if (!strcmp(*a, "*")) return 1;
    return 0;
}

/* "'a', 'b' and 7 more", of those that the caller may use. */
static void name_all(const weft_server *s, const weft__server_caller *who, char *out, size_t room)
{
    size_t at = 0, n = 0, named = 0;
    snprintf(out, room, "none for this key");
    for (size_t i = 0; i < s->models.n; i++) {
        const char *name = s->models.items[i]->name;
        if (!weft__server_may_use_model(who, name)) continue;
        n++;
        if (named + 1 < n || at + strlen(name) + 32 >= room) continue;
        at += (size_t)snprintf(out + at, room - at, "%s'%s'", named++ ? ", " : "", name);
    }
    if (named < n) snprintf(out + at, room - at, " and %zu more", n - named);
}

void weft__server_models_absent(weft_server *s, const weft__server_caller *who, const char *name,
                                weft__api_error *error)
{
    weft__server_models *all = &s->models;
    weft__server_model *first = all->first;
    const int alone = all->n == 1 && first;
    char names[256];
    if (alone && weft__server_may_use_model(who, first->name)) {
        int n = snprintf(names, sizeof names, "this server has '%.100s'", first->name);
        weft__server_adapters_name(first, who, names + n, sizeof names - (size_t)n);
    } else if (alone) {
        snprintf(names, sizeof names, "/v1/models has those that do");
    } else {
        int n = snprintf(names, sizeof names, "this server has ");
        name_all(s, who, names + n, sizeof names - (size_t)n);
    }
    if (!*name && !first) {
        weft__api_error_set(error, 400, "model", "'model' is missing; %s", names);
        return;
    }
    weft__api_error_set(error, 404, "model", "the model '%.100s' does not exist; %s", *name ? name : first->name,
                        names);
    error->code = "model_not_found";
}

/* A preset is there for whom may use it by its own name, whatever its base is; a version of a model for whom may use
 * that by the name it is asked for by. */
static int may_use(const weft__server_model *m, const weft__server_caller *who, const char *name, int is_preset)
{
    if (*name && weft__server_may_use_model(who, name)) return 1;
    if (!is_preset && weft__server_learned_may_name(m, who, name)) return 1;
    return !is_preset && weft__server_may_use_model(who, m->name);
}

weft__server_model *weft__server_models_which(weft_server *s, const weft__server_caller *who, const char *name,
                                              weft__api_error *error)
{
    const weft__config_preset *preset = weft__server_preset_find(who->rules, name);
    const char *meant = preset ? preset->base ? preset->base : "" : name;
    weft__server_models *all = &s->models;
    weft__server_model *m = NULL, *first = all->first ? all->first : all->n == 1 ? all->items[0] : NULL;
    if (!*meant) m = first;
    else m = weft__server_models_find(s, meant);
    if (*meant && !m) m = find_base(s, meant);
    if (*meant && !m) m = weft__server_learned_model(s, meant);
    if (*meant && !m) m = find_by_adapter(s, who, meant);
    if (*meant && !m) m = find_by_settings(s, meant);
    if (*meant && !m) m = weft__server_learned_model_of_lineage(s, meant);
    if (*meant && !m && first && weft__server_takes_any_name(first)) m = first;
    if (m && may_use(m, who, name, preset != NULL)) return m;
    weft__server_models_absent(s, who, name, error);
    return NULL;
}

/* ---- waiting ---- */

static void waiter_unref(models_waiter *w)
{
    if (atomic_fetch_sub(&w->refs, 1) != 1) return;
    weft__server_rules_release(&w->who.rules);
    weft__free(w);
}

static void on_drop(void *arg)
{
    waiter_unref(arg);
}

static void on_gone(void *arg)
{
    models_waiter *w = arg;
    weft__server_models *all = &w->model->server->models;
    pthread_mutex_lock(&all->lock);
    w->has_left = all->has_left = 1;
    pthread_cond_signal(&all->tick);
    pthread_mutex_unlock(&all->lock);
}

/* Ends the wait of one that is in no line any more. error NULL: its client left. */
static void waiter_end(models_waiter *w, const weft__api_error *error)
{
    if (weft__http_off_gone(w->r)) waiter_unref(w);
    if (error) weft__server_reply_error(w->r, error);
    weft__http_release(w->r);
    waiter_unref(w);
}

/* With the lock. Those that give no name are one; and an address may give itself many names. */
static int has_room(const weft__server_models *all, const models_waiter *w)
{
    const void *client = weft__http_client_of(w->r);
    int n = 0, n_of_client = 0, most = all->max_of_one + (all->max_waiting - all->max_of_one) / 2;
    for (size_t i = 0; i < all->n; i++)
        for (weft__http_turn *t = all->items[i]->waiting.first; t; t = t->next) {
            n += !strcmp(waiter_of(t)->tenant, w->tenant);
            n_of_client += client && t->client == client;
        }
    return all->n_waiting < all->max_waiting && n < all->max_of_one && n_of_client < most;
}

static models_waiter *waiter_new(weft__server_model *m, weft__http_request *r, const weft__server_caller *who,
                                 const weft__api_meant *meant, weft__server_of_model *answer, weft__api_error *error)
{
    weft_error err = {0};
    models_waiter *w = weft__alloc_zero(1, sizeof *w);
    if (!w) {
        weft__api_error_set(error, 503, NULL, "no memory for the request");
        return NULL;
    }
    *w = (models_waiter){.model = m, .r = r, .who = *who, .answer = answer};
    w->who.rules = weft__server_rules_share(who->rules);
    atomic_init(&w->refs, 2);
    snprintf(w->tenant, sizeof w->tenant, "%s", who->tenant);
    if (!m->server->wants_keys && *meant->user && weft__server_tenant_of_user(meant->user, w->tenant, &err))
        w->tenant[0] = 0;
    if (meant->timeout_ms) w->deadline_ns = weft__http_began_ns(r) + (uint64_t)meant->timeout_ms * 1000000;
    return w;
}

/* Puts the request in its model's line, unless that came meanwhile: 1, and it is held. 0: it waits, or was refused. */
static int wait_for(weft__server_model *m, weft__http_request *r, const weft__server_caller *who,
                    const weft__api_meant *meant, weft__server_of_model *answer)
{
    weft__server_models *all = &m->server->models;
    weft__api_error error = {0};
    models_waiter *w = waiter_new(m, r, who, meant, answer, &error);
    if (!w) {
        models_refuse(r, &error);
        return 0;
    }
    weft__http_on_gone(r, on_gone, on_drop, w);
    pthread_mutex_lock(&all->lock);
    int is_there = m->state == WEFT__SERVER_LOADED && !m->closing, room = !is_there && !all->stop && has_room(all, w);
    m->n_held += is_there;
    if (room) {
        weft__http_turns_put(&m->waiting, &w->turn, weft__http_client_of(r));
        all->n_waiting++;
        weft__server_loader_want(m->server, m);
        pthread_cond_signal(&all->tick);
    }
    pthread_mutex_unlock(&all->lock);
    if (room) return 0;
    if (weft__http_off_gone(r)) waiter_unref(w);
    waiter_unref(w);
    if (is_there) return 1;
    weft__api_error_set(&error, 429, NULL, "too many requests wait for models to be loaded; try again in 5 s");
    error.retry_s = 5;
    models_refuse(r, &error);
    return 0;
}

void weft__server_models_send(weft_server *s, weft__server_model *m)
{
    for (weft__http_turn *t; (t = weft__http_turns_take(&m->waiting)); s->models.n_waiting--) {
        m->n_held++;
        weft__http_turns_put(&s->models.sending, t, t->client);
    }
    pthread_cond_signal(&s->models.send);
}

void *weft__server_models_sender(void *server)
{
    weft_server *s = server;
    weft__server_models *all = &s->models;
    pthread_mutex_lock(&all->lock);
    for (;;) {
        while (!all->sending.n && !all->stop) pthread_cond_wait(&all->send, &all->lock);
        models_waiter *w = waiter_of(weft__http_turns_take(&all->sending));
        if (!w) break;
        const int has_left = w->has_left;
        pthread_mutex_unlock(&all->lock);
        weft__server_model *m = w->model;
        const uint64_t from = weft__clock_ns();
        if (has_left) {
            waiter_end(w, NULL);
        } else {
            if (weft__http_off_gone(w->r)) waiter_unref(w);
            w->answer(m, w->r, &w->who);
            waiter_unref(w);
        }
        weft__server_model_release(&m, from);
        pthread_mutex_lock(&all->lock);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

void weft__server_models_refuse(weft_server *s, weft__server_model *m, const weft_error *why)
{
    weft__api_error error = {0};
    weft_status st = (weft_status)why->status;
    /* What is wrong with a file of the server's is no error of the request. */
    if (st != WEFT_NO_MEMORY && st != WEFT_CANCELLED) st = WEFT_IO;
    weft__api_error_of(&error, st, "");
    snprintf(error.message, sizeof error.message, "the model '%s' could not be loaded: %.300s", m->name, why->message);
    for (weft__http_turn *t; (t = weft__http_turns_take(&m->waiting)); s->models.n_waiting--)
        waiter_end(waiter_of(t), waiter_of(t)->has_left ? NULL : &error);
}

uint64_t weft__server_models_expire(weft_server *s)
{
    weft__api_error late = {0};
    uint64_t now = weft__clock_ns(), next = 0;
    weft__api_error_set(&late, 504, NULL, "the deadline passed before its model was loaded");
    s->models.has_left = 0;
    for (size_t i = 0; i < s->models.n; i++) {
        weft__server_model *m = s->models.items[i];
        for (weft__http_turn *t = m->waiting.first, *after; t; t = after) {
            models_waiter *w = waiter_of(t);
            const int is_late = w->deadline_ns && w->deadline_ns <= now;
            after = t->next;
            if (!is_late && !w->has_left) {
                if (w->deadline_ns && (!next || w->deadline_ns < next)) next = w->deadline_ns;
                continue;
            }
            weft__http_turns_remove(&m->waiting, t);
            s->models.n_waiting--;
            waiter_end(w, w->has_left ? NULL : &late);
        }
    }
    return next;
}

/* ---- the way of a request ---- */

/* May its model be loaded for it? As llama.cpp's router asks it. */
static int may_load(weft__http_request *r)
{
    const char *autoload = weft__http_query(r, "autoload");
    return !autoload || !*autoload || !strcmp(autoload, "true") || !strcmp(autoload, "1");
}

void weft__server_models_answer(weft_server *s, weft__http_request *r, const weft__server_caller *who, int waits,
                                weft__server_of_model *answer)
{
    weft__server_models *all = &s->models;
    weft__api_meant meant = {0};
    weft__api_error error = {0};
    weft__server_model *m = all->first;
    if (all->are_several) {
        const char *named = weft__http_query(r, "model");
        size_t n;
        const char *body = weft__http_body(r, &n);
        weft__api_meant_read(body, n, &meant);
        if (*who->routed.model) named = who->routed.model;
        if (!(m = weft__server_models_which(s, who, named && *named ? named : meant.model, &error))) {
            models_refuse(r, &error);
            return;
        }
    }
    waits = waits && may_load(r);
    pthread_mutex_lock(&all->lock);
    int is_there = m->state == WEFT__SERVER_LOADED && (!m->closing || !waits);
    m->n_held += is_there;
    pthread_mutex_unlock(&all->lock);
    if (!is_there && !waits) {
        weft__api_error_set(&error, 409, "model", "the model '%s' is not loaded; POST /models/load loads it", m->name);
        models_refuse(r, &error);
        return;
    }
    if (!is_there && !wait_for(m, r, who, &meant, answer)) return;
    answer(m, r, who);
    give_back(&m, waits);
}
