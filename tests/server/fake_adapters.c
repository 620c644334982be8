// SPDX-License-Identifier: Apache-2.0
/* fake_adapters.c: the adapters of the engine's double, and leases on them; what a file's name makes of them stands in
 * fake_engine.c. */
#include "fake_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

/* With the lock. */
static weft_engine_adapter *adapter_named(weft_engine *e, const char *name)
{
    for (int32_t i = 0; i < e->n_adapters; i++)
        if (!strcmp(e->adapters[i].name, name)) return &e->adapters[i];
    return NULL;
}

/* One after the other, as in the engine; until nothing called "hold" lies beside the file, nor one of its own name with
 * ".hold" behind, two minutes at most. */
static void load_slowly(weft_engine *e, const char *path)
{
    char hold[1100], own[1100];
    const char *slash = strrchr(path, '/');
    snprintf(hold, sizeof hold, "%.*shold", slash ? (int)(slash - path) + 1 : 0, path);
    snprintf(own, sizeof own, "%s.hold", path);
    pthread_mutex_lock(&e->loading);
    for (int i = 0; i < 12000 && (access(hold, F_OK) == 0 || access(own, F_OK) == 0); i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    pthread_mutex_unlock(&e->loading);
}

weft_status weft_engine_adapter_check_name(const char *name, weft_error *err)
{
    return !*name || strpbrk(name, "/: ") ? weft_fail(err, WEFT_ARGUMENT, "'%s' is no name for an adapter", name)
                                          : WEFT_OK;
}

weft_status weft_engine_adapter_add(weft_engine *e, const char *name, const char *path, float scale, uint32_t flags,
                                    weft_error *err)
{
    weft_status st = weft_engine_adapter_check_name(name, err);
    if (st) return st;
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    if (!strncmp(file, "slow", 4)) load_slowly(e, path);
    FILE *f = fopen(path, "rb");
    const char *told = flags & WEFT_ADAPTER_DISCREET ? name : path;
    if (!f) return weft_fail(err, WEFT_NOT_FOUND, "%s: there is no such file", told);
    if (fgetc(f) != EOF) st = weft_fail(err, WEFT_FORMAT, "adapter %s: it is malformed", told);
    else if (!strncmp(file, "other", 5))
        st = weft_fail(err, WEFT_ARGUMENT, "adapter %s: it was made for another base", told);
    fclose(f);
    if (st) return st;
    pthread_mutex_lock(&e->lock);
    weft_engine_adapter *a = adapter_named(e, name);
    if (a && !(flags & WEFT_ADAPTER_REPLACE))
        st = weft_fail(err, WEFT_EXISTS, "there is an adapter '%s' already", name);
    else if (a) a->version++;
    else if (e->n_adapters == MAX_ADAPTERS) st = weft_fail(err, WEFT_STATE, "there are %d adapters", MAX_ADAPTERS);
    else {
        a = &e->adapters[e->n_adapters++];
        *a = (weft_engine_adapter){.size = sizeof *a,
                                   .index = e->next_adapter++,
                                   .version = 1,
                                   .scale = scale,
                                   .known = strncmp(name, "slow", 4) && strncmp(name, "full", 4)};
        snprintf(a->name, sizeof a->name, "%s", name);
        snprintf(a->path, sizeof a->path, "%s", path);
    }
    pthread_mutex_unlock(&e->lock);
    return st;
}

void fake_adapter_use(weft_engine *e, int32_t index, int more)
{
    for (int32_t i = 0; i < e->n_adapters; i++)
        if (e->adapters[i].index == index) e->adapters[i].n_requests += more;
}

weft_status weft_engine_adapter_remove(weft_engine *e, const char *name, weft_error *err)
{
    pthread_mutex_lock(&e->lock);
    weft_engine_adapter *a = adapter_named(e, name);
    if (a) memmove(a, a + 1, (size_t)(e->adapters + e->n_adapters-- - (a + 1)) * sizeof *a);
    pthread_mutex_unlock(&e->lock);
    return a ? WEFT_OK : weft_fail(err, WEFT_NOT_FOUND, "there is no adapter '%s'", name);
}

/* With the lock. */
static weft_engine_adapter *adapter_wanted(weft_engine *e, const weft_request_adapter *want)
{
    if (want->name) return adapter_named(e, want->name);
    for (int32_t i = 0; i < e->n_adapters; i++)
        if (e->adapters[i].index == want->index) return &e->adapters[i];
    return NULL;
}

weft_status weft_engine_lease_ready(weft_engine *e, const weft_request_adapter *adapters, int32_t n, int32_t *ready,
                                    weft_engine_lease **out, weft_error *err)
{
    *ready = 1;
    *out = NULL;
    pthread_mutex_lock(&e->lock);
    for (int32_t i = 0; i < n; i++) {
        const weft_engine_adapter *a = adapter_wanted(e, &adapters[i]);
        *ready &= !a || a->known;
    }
    pthread_mutex_unlock(&e->lock);
    return *ready ? weft_engine_lease_new(e, adapters, n, out, err) : WEFT_OK;
}

/* Files are not read here: it is counted for how many that are not ready it was asked. */
void weft_engine_adapters_ahead(weft_engine *e, const weft_request_adapter *adapters, int32_t n)
{
    pthread_mutex_lock(&e->lock);
    for (int32_t i = 0; i < n; i++) {
        const weft_engine_adapter *a = adapter_wanted(e, &adapters[i]);
        e->stats.adapter_asked_ahead += a && !a->known;
    }
    pthread_mutex_unlock(&e->lock);
}

/* With the lock; a slow one is ready when it returns. */
static weft_status use(weft_engine *e, const weft_request_adapter *want, weft_engine_adapter *out, weft_error *err)
{
    weft_engine_adapter *a = adapter_wanted(e, want);
    if (a && !a->known && !strncmp(a->name, "slow", 4)) {
        char path[sizeof a->path];
        memcpy(path, a->path, sizeof path);
        pthread_mutex_unlock(&e->lock);
        load_slowly(e, path);
        pthread_mutex_lock(&e->lock);
        if ((a = adapter_wanted(e, want))) a->known = 1;
    }
    if (a && !strncmp(a->name, "full", 4) && e->n_requests > 0) return weft_fail(err, WEFT_BUSY, "there is no room");
    if (a && !strncmp(a->name, "changed", 7)) return weft_fail(err, WEFT_STATE, "its file has changed");
    if (!a)
        return weft_fail(err, WEFT_NOT_FOUND, "there is no adapter %d '%s'", want->index, want->name ? want->name : "");
    *out = *a;
    out->scale = want->scale;
    return WEFT_OK;
}

weft_status weft_engine_lease_new(weft_engine *e, const weft_request_adapter *adapters, int32_t n,
                                  weft_engine_lease **out, weft_error *err)
{
    weft_status st = WEFT_OK;
    *out = NULL;
    if (n == 0) return WEFT_OK;
    weft_engine_lease *l = weft__alloc_zero(1, sizeof *l);
    if (!l) abort();
    pthread_mutex_lock(&e->lock);
    for (; l->n < n && !st; l->n++) st = use(e, &adapters[l->n], &l->adapters[l->n], err);
    e->n_leases += !st;
    for (int i = 0; i < n && !st; i++) fake_adapter_use(e, l->adapters[i].index, 1);
    pthread_mutex_unlock(&e->lock);
    if (st) weft__free(l);
    else *out = l;
    return st;
}

int weft_engine_lease_wait(weft_engine *e, uint32_t timeout_ms)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) t.tv_sec++, t.tv_nsec -= 1000000000;
    pthread_mutex_lock(&e->lock);
    if (e->n_requests) pthread_cond_timedwait(&e->idle, &e->lock, &t);
    int is_idle = !e->n_requests;
    pthread_mutex_unlock(&e->lock);
    return is_idle;
}

void weft_engine_lease_free(weft_engine *e, weft_engine_lease **lease)
{
    if (!*lease) return;
    pthread_mutex_lock(&e->lock);
    e->n_leases--;
    for (int i = 0; i < (*lease)->n; i++) fake_adapter_use(e, (*lease)->adapters[i].index, -1);
    pthread_mutex_unlock(&e->lock);
    weft__free(*lease);
    *lease = NULL;
}

void weft_model_fingerprint(const weft_model *model, char out[33])
{
    const char *other = getenv("WEFT_FAKE_BASE");
    (void)model;
    snprintf(out, 33, "%s", other ? other : "00112233445566778899aabbccddeeff");
}

weft_status weft_engine_adapter_find(const weft_engine *engine, const char *name, weft_engine_adapter *out,
                                     weft_error *err)
{
    weft_engine *e = (weft_engine *)(uintptr_t)engine;
    pthread_mutex_lock(&e->lock);
    const weft_engine_adapter *a = adapter_named(e, name);
    if (a) *out = *a;
    pthread_mutex_unlock(&e->lock);
    return a ? WEFT_OK : weft_fail(err, WEFT_NOT_FOUND, "there is no adapter '%s'", name);
}

int32_t weft_engine_adapters(const weft_engine *engine, int32_t first, weft_engine_adapter *out, int32_t capacity)
{
    weft_engine *e = (weft_engine *)(uintptr_t)engine;
    int32_t n = 0;
    pthread_mutex_lock(&e->lock);
    for (int32_t i = 0; i < e->n_adapters; i++)
        if (e->adapters[i].index >= first && n++ < capacity) out[n - 1] = e->adapters[i];
    pthread_mutex_unlock(&e->lock);
    return n;
}
