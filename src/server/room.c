// SPDX-License-Identifier: Apache-2.0
/* room.c: how much memory the models of a server take together, and who gives way (server.h).
 *
 * A model counts with what it will hold at most: its weights, what steps and requests write, and what its adapters and
 * the pages of its engine may take, two limits that are moved while it runs. The sum is never above the server's limit,
 * so what is held is not either. What is in use never goes: pages and adapters of running requests, models that a
 * request holds. Room comes first from adapters and pages that are not in use, then from models that none uses, the
 * least recently used first; then the one that was loaded longest ago takes no more requests until it could go. All
 * with the lock of models. */
#include <string.h>

#include "base/clock.h"
#include "server/models.h"

static const uint64_t MS = 1000000, SHRINKS_NS = 5000000, IDLE_NS = 10000000000ull, GRANT_LEAST = 1 << 20;
enum { SHRINKS = 40 /* looks after which pages, or who still holds a model, are not waited for any more */ };
static const double HIGH = 0.85, LOW = 0.70; /* of the limit: what is idle goes above the one until the other */

static weft_engine_stats stats_of(const weft__server_model *m)
{
    weft_engine_stats e = {.size = sizeof e};
    weft_engine_get_stats(m->engine, &e);
    return e;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What its two limits allow, or what is held where that is more: pages, and adapters beyond what is reserved. */
static uint64_t moved_of(const weft__server_model *m)
{
    if (m->state != WEFT__SERVER_LOADED) return m->kv_allowed + m->adapters_more;
    const weft_engine_stats e = stats_of(m);
    const uint64_t beyond = e.adapter_bytes > m->adapters_least ? e.adapter_bytes - m->adapters_least : 0;
    return most(m->kv_allowed, e.kv_limit_bytes) + most(m->adapters_more, beyond);
}

uint64_t weft__server_room_used(weft_server *s, const weft__server_model *but)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->models.n && s->models.memory; i++) {
        const weft__server_model *m = s->models.items[i];
        if (m != but &&
            (m->state == WEFT__SERVER_LOADED || m->state == WEFT__SERVER_LOADING || m->state == WEFT__SERVER_UNLOADING))
            sum += m->reserved + moved_of(m);
    }
    return sum;
}

static int is_free(const weft__server_model *m)
{
    return m->state == WEFT__SERVER_LOADED && m->path && !m->is_pinned && !m->n_held;
}

static weft__server_model *least_used(weft_server *s, const weft__server_model *but)
{
    weft__server_model *found = NULL;
    for (size_t i = 0; i < s->models.n; i++) {
        weft__server_model *m = s->models.items[i];
        if (m != but && is_free(m) && (!found || m->used_ns < found->used_ns)) found = m;
    }
    return found;
}

/* One that was used before that one, and whose requests have all ended: who holds it still is about to let go. */
static int leaves_soon(weft_server *s, const weft__server_model *but, const weft__server_model *than)
{
    for (size_t i = 0; i < s->models.n; i++) {
        const weft__server_model *m = s->models.items[i];
        if (m == but || m->state != WEFT__SERVER_LOADED || !m->path || m->is_pinned || !m->n_held) continue;
        if (m->used_ns >= than->used_ns) continue;
        const weft_engine_stats e = stats_of(m);
        if (!e.n_running && !e.n_waiting) return 1;
    }
    return 0;
}

static void allow(weft__server_model *m, uint64_t bytes)
{
    m->kv_allowed = bytes;
    weft_engine_limit_pages(m->engine, bytes);
}

static void allow_adapters(weft__server_model *m, uint64_t more)
{
    m->adapters_more = more;
    weft_engine_limit_adapters(m->engine, m->adapters_least + more);
    m->n_adapters_gone = stats_of(m).adapter_evictions; /* those that went for this were not missed yet */
}

/* Takes adapters and pages back that no request uses. Returns 1 where some will be free soon. */
static int shrink(weft_server *s, const weft__server_model *but)
{
    int soon = 0;
    for (size_t i = 0; i < s->models.n; i++) {
        weft__server_model *m = s->models.items[i];
        if (m == but || m->state != WEFT__SERVER_LOADED) continue;
        if (m->adapters_more) {
            allow_adapters(m, 0);
            soon = 1;
        }
        weft_engine_stats e = stats_of(m);
        const int32_t held = e.kv_pages_used + e.kv_pages_cached;
        const uint64_t used = held ? e.memory.pages.bytes / (uint64_t)held * (uint64_t)e.kv_pages_used : 0;
        const uint64_t wanted = e.n_running ? most(used + used / 4, m->kv_least) : m->kv_least;
        if (wanted < m->kv_allowed) {
            allow(m, wanted);
            soon = 1;
        }
        soon |= e.kv_limit_bytes > m->kv_allowed && !e.n_running;
    }
    return soon;
}

/* The one that was loaded longest ago is to go when it can, unless one is already. */
static void close_one(weft_server *s, const weft__server_model *but)
{
    weft__server_model *found = NULL;
    for (size_t i = 0; i < s->models.n; i++) {
        weft__server_model *m = s->models.items[i];
        if (m == but || m->state != WEFT__SERVER_LOADED || !m->path || m->is_pinned) continue;
        if (m->closing) return;
        if (!found || m->loaded_ns < found->loaded_ns) found = m;
    }
    if (found) found->closing = 1;
}

/* Those that were to go for room, and are still there, stay. */
static void close_none(weft_server *s)
{
    for (size_t i = 0; i < s->models.n; i++) {
        weft__server_model *m = s->models.items[i];
        if (m->closing != 1) continue;
        m->closing = 0;
        if (m->state == WEFT__SERVER_LOADED) weft__server_models_send(s, m);
    }
}

/* Of the models that stay whatever happens. */
static uint64_t pinned(const weft_server *s, const weft__server_model *but)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->models.n; i++) {
        const weft__server_model *m = s->models.items[i];
        if (m != but && m->state == WEFT__SERVER_LOADED && (m->is_pinned || !m->path)) sum += m->reserved + m->kv_least;
    }
    return sum;
}

weft_status weft__server_room_make(weft_server *s, weft__server_model *m, uint64_t bytes, uint64_t pages,
                                   weft_error *err)
{
    weft__server_models *all = &s->models;
    weft_status st = WEFT_OK;
    int n_shrinks = 0, n_leaves = 0;
    while (!st && all->memory) {
        const uint64_t stays = pinned(s, m);
        if (all->stop || m->is_cancelled) {
            st = weft_fail(err, WEFT_CANCELLED, "it was unloaded before it was there");
        } else if (bytes + pages > all->memory || stays > all->memory - bytes - pages) {
            st = weft_fail(err, WEFT_NO_MEMORY, "%s takes %.1f MB, and --memory %s %.1f MB%s", m->name,
                           (double)(bytes + pages) / 1e6, stays ? "leaves" : "is",
                           stays < all->memory ? (double)(all->memory - stays) / 1e6 : 0.0,
                           stays ? " beside what is pinned" : "");
        } else if (weft__server_room_used(s, m) + bytes + pages <= all->memory) {
            break;
        } else if (n_shrinks < SHRINKS && shrink(s, m)) {
            n_shrinks++;
            weft__clock_wait(&all->work, &all->lock, weft__clock_ns() + SHRINKS_NS);
        } else {
            weft__server_model *idle = least_used(s, m);
            if (idle && n_leaves < SHRINKS && leaves_soon(s, m, idle)) {
                n_leaves++;
                weft__clock_wait(&all->work, &all->lock, weft__clock_ns() + SHRINKS_NS);
                continue;
            }
            if (idle) {
                weft__server_loader_unload(s, idle);
                continue;
            }
            close_one(s, m);
            weft__clock_wait(&all->work, &all->lock, weft__clock_ns() + 100 * MS);
        }
    }
    if (!st) {
        m->reserved = bytes;
        m->kv_allowed = pages;
    }
    close_none(s);
    return st;
}

/* ---- now and then ---- */

/* Room for adapters where some went for others since it was last looked at, from what is below the higher mark. */
static void grow_adapters(weft__server_model *m, const weft_engine_stats *e, uint64_t *used, uint64_t high)
{
    const int wants = e->adapter_evictions > m->n_adapters_gone;
    m->n_adapters_gone = e->adapter_evictions;
    if (!wants || *used >= high) return;
    uint64_t more = most((m->adapters_least + m->adapters_more) / 2, GRANT_LEAST);
    if (more > high - *used) more = high - *used;
    allow_adapters(m, m->adapters_more + more);
    *used += more;
}

/* Pages for one that wants them, from what is below the higher mark. */
static void grow(weft__server_model *m, const weft_engine_stats *e, uint64_t *used, uint64_t high)
{
    const int wants = e->n_waiting > 0 || e->memory.pages.bytes > m->kv_allowed - m->kv_allowed / 8;
    if (!wants || m->kv_allowed >= m->kv_most || *used >= high) return;
    uint64_t more = most(m->kv_allowed / 2, GRANT_LEAST);
    if (more > high - *used) more = high - *used;
    if (more > m->kv_most - m->kv_allowed) more = m->kv_most - m->kv_allowed;
    allow(m, m->kv_allowed + more);
    *used += more;
}

void weft__server_room_tend(weft_server *s, uint64_t now)
{
    weft__server_models *all = &s->models;
    const uint64_t high = (uint64_t)((double)all->memory * HIGH), low = (uint64_t)((double)all->memory * LOW);
    uint64_t used = weft__server_room_used(s, NULL);
    if (used > high) {
        (void)shrink(s, NULL);
        used = weft__server_room_used(s, NULL);
        for (weft__server_model *m; used > low && (m = least_used(s, NULL)) && now - m->used_ns > IDLE_NS;) {
            if (m->closing) return; /* one after the other */
            weft__server_loader_close(s, m);
            used -= m->reserved < used ? m->reserved : used;
        }
        return;
    }
    for (size_t i = 0; i < all->n; i++) {
        weft__server_model *m = all->items[i];
        if (m->state != WEFT__SERVER_LOADED || m->closing) continue;
        weft_engine_stats e = stats_of(m);
        grow(m, &e, &used, high);
        grow_adapters(m, &e, &used, high);
    }
}
