// SPDX-License-Identifier: Apache-2.0
/* learned_given.c: which learned versions the engine has (learned.h), so that those leave it which are not wanted any
 * more: an engine keeps what it was given until it is told otherwise, and corrections have no end.
 *
 * Of a tenant the engine has the current version, those that requests run with, and the earlier one that was asked for
 * last; of all tenants so many earlier ones at most. What has left is read from its file again when it is asked for.
 * Invariant: what is wanted (weft__server_learned_want) does not leave. `lock` has the table, and is held for moments:
 * files are read without it. Any thread. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "learn/teach_store.h"
#include "server/learned.h"

enum { EARLIER_MOST = 32 /* that no request runs with, of all tenants */ };

typedef struct given_version {
    char tenant[WEFT__VERSION_TENANT], name[WEFT__VERSION_FULL_NAME];
    int32_t n_wanted;
    int is_earlier; /* it is not the current one */
    int is_coming;  /* it is about to become it */
} given_version;

struct weft__server_given {
    pthread_mutex_t lock;
    given_version *one; /* [n], in the order in which they came */
    size_t n, room;
};

weft_status weft__server_given_begin(weft_server *s, weft_error *err)
{
    s->given = weft__alloc_zero(1, sizeof *s->given);
    if (!s->given) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
    pthread_mutex_init(&s->given->lock, NULL);
    return WEFT_OK;
}

void weft__server_given_end(weft_server *s)
{
    if (!s->given) return;
    pthread_mutex_destroy(&s->given->lock);
    weft__free(s->given->one);
    weft__free(s->given);
    s->given = NULL;
}

/* ---- the table; with the lock ---- */

static given_version *given_find(const struct weft__server_given *g, const char *name)
{
    for (size_t i = 0; i < g->n; i++)
        if (!strcmp(g->one[i].name, name)) return &g->one[i];
    return NULL;
}

/* NULL: no memory. */
static given_version *given_put(struct weft__server_given *g, const char *tenant, const char *name)
{
    given_version *one = given_find(g, name);
    if (one) return one;
    if (!weft__grow(&g->one, &g->room, g->n + 1, sizeof *g->one)) return NULL;
    one = &g->one[g->n++];
    *one = (given_version){.n_wanted = 0};
    snprintf(one->tenant, sizeof one->tenant, "%s", tenant);
    snprintf(one->name, sizeof one->name, "%s", name);
    return one;
}

/* The others stay in the order in which they came. */
static void given_drop(struct weft__server_given *g, given_version *one)
{
    memmove(one, one + 1, (size_t)(g->one + --g->n - one) * sizeof *one);
}

static int may_leave(const given_version *one)
{
    return one->is_earlier && !one->is_coming && !one->n_wanted;
}

/* 1: it has left. */
static int leave_engine(weft_engine *engine, struct weft__server_given *g, given_version *one)
{
    weft_engine_adapter a = {.size = sizeof a};
    const int is_there = !weft_engine_adapter_find(engine, one->name, &a, NULL);
    if (is_there && a.n_requests) return 0;
    if (is_there) weft_engine_adapter_remove(engine, one->name, NULL);
    given_drop(g, one);
    return 1;
}

/* Earlier versions of a tenant leave, and of others those that came first, as far as there are more than may stay. */
static void sweep(weft_engine *engine, struct weft__server_given *g, const char *tenant)
{
    size_t n_earlier = 0;
    for (size_t i = 0; i < g->n;) {
        given_version *one = &g->one[i];
        if (may_leave(one) && !strcmp(one->tenant, tenant) && leave_engine(engine, g, one)) continue;
        n_earlier += may_leave(one);
        i++;
    }
    for (size_t i = 0; i < g->n && n_earlier > EARLIER_MOST;) {
        if (may_leave(&g->one[i]) && leave_engine(engine, g, &g->one[i])) n_earlier--;
        else i++;
    }
}

/* ---- versions that come ---- */

/* Room for it is nobody's claim, so that it may be read at its first use, too. */
weft_status weft__server_learned_make_ready(void *server, const char *tenant, const char *name, const char *path,
                                            weft_error *err)
{
    weft_server *s = server;
    struct weft__server_given *g = s->given;
    weft_engine *engine = s->models.first->engine;
    const weft_request_adapter adapter = {name, NAN, 0};
    weft_engine_lease *lease = NULL;
    pthread_mutex_lock(&g->lock);
    for (size_t i = 0; i < g->n; i++) /* one that could not be published comes no more */
        if (!strcmp(g->one[i].tenant, tenant)) g->one[i].is_coming = 0;
    given_version *one = given_put(g, tenant, name);
    if (one) one->is_earlier = one->is_coming = 1;
    pthread_mutex_unlock(&g->lock);
    if (!one) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a version");
    weft_status st = weft_engine_adapter_add(engine, name, path, 1, WEFT_ADAPTER_REPLACE | WEFT_ADAPTER_DISCREET, err);
    if (!st && !weft_engine_lease_new(engine, &adapter, 1, &lease, NULL)) weft_engine_lease_free(engine, &lease);
    return st;
}

void weft__server_learned_follow(weft_server *s, const weft__version_row *row)
{
    char current[WEFT__VERSION_FULL_NAME];
    struct weft__server_given *g = s->given;
    if (row->what == WEFT__VERSION_REJECTED) return;
    weft__version_write_name(row->name, row->version, current);
    pthread_mutex_lock(&g->lock);
    for (size_t i = 0; i < g->n; i++) {
        if (strcmp(g->one[i].tenant, row->tenant)) continue;
        g->one[i].is_earlier = strcmp(g->one[i].name, current) != 0;
        if (!g->one[i].is_earlier) g->one[i].is_coming = 0;
    }
    sweep(s->models.first->engine, g, row->tenant);
    pthread_mutex_unlock(&g->lock);
}

/* ---- versions that are asked for ---- */

/* Counts it as wanted; *is_there: the engine has it. */
static weft_status begin_wanting(weft_server *s, const char *tenant, const char *name, int *is_there, weft_error *err)
{
    char current[WEFT__VERSION_FULL_NAME] = "";
    weft_engine_adapter a = {.size = sizeof a};
    struct weft__server_given *g = s->given;
    pthread_mutex_lock(&g->lock);
    given_version *one = given_put(g, tenant, name);
    if (one) {
        *is_there = !weft_engine_adapter_find(s->models.first->engine, name, &a, NULL);
        weft__teach_store_current(s->teacher, tenant, current);
        if (!one->is_coming) one->is_earlier = strcmp(name, current) != 0;
        one->n_wanted++;
    }
    pthread_mutex_unlock(&g->lock);
    return one ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for a version");
}

void weft__server_learned_leave(weft__server_model *m, const char *name)
{
    struct weft__server_given *g = m->server->given;
    pthread_mutex_lock(&g->lock);
    given_version *one = given_find(g, name);
    if (one && one->n_wanted) one->n_wanted--;
    pthread_mutex_unlock(&g->lock);
}

/* From its file. Another request may have been first; or it was forgotten meanwhile. */
static weft_status give(weft_server *s, const char *tenant, const char *name, weft_error *err)
{
    char path[4096];
    weft_engine *engine = s->models.first->engine;
    struct weft__server_given *g = s->given;
    weft_status st = weft__teach_store_path(s->teacher, tenant, name, path, err);
    if (!st) st = weft_engine_adapter_add(engine, name, path, 1, WEFT_ADAPTER_LAZY | WEFT_ADAPTER_DISCREET, err);
    if (st && st != WEFT_EXISTS) return st;
    const int may = weft__teach_store_may(s->teacher, tenant, name) > 0;
    if (!may) weft_engine_adapter_remove(engine, name, NULL);
    pthread_mutex_lock(&g->lock);
    sweep(engine, g, tenant);
    pthread_mutex_unlock(&g->lock);
    return may ? WEFT_OK : weft_fail(err, WEFT_NOT_FOUND, "there is no version '%s'", name);
}

weft_status weft__server_learned_want(weft__server_model *m, const char *tenant, const char *name, int *ready,
                                      weft_error *err)
{
    int is_there = 0;
    weft_server *s = m->server;
    if (m != s->models.first || !s->teacher) return weft_fail(err, WEFT_NOT_FOUND, "there is no version '%s'", name);
    weft_status st = begin_wanting(s, tenant, name, &is_there, err);
    if (st) return st;
    if (ready) *ready = is_there; /* else it may wait for the disk */
    if (!is_there && !ready) st = give(s, tenant, name, err);
    if (st || !(is_there || !ready)) weft__server_learned_leave(m, name);
    return st;
}

void weft__server_learned_unload(weft_server *s, const char *tenant)
{
    struct weft__server_given *g = s->given;
    pthread_mutex_lock(&g->lock);
    for (size_t i = g->n; i-- > 0;) {
        if (strcmp(g->one[i].tenant, tenant)) continue;
        weft_engine_adapter_remove(s->models.first->engine, g->one[i].name, NULL); /* requests that run keep theirs */
        given_drop(g, &g->one[i]);
    }
    pthread_mutex_unlock(&g->lock);
}
