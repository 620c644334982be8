// SPDX-License-Identifier: Apache-2.0
/* pool.c: pages of one kind per group, counted references, a free list per group as a stack.
 * Owner: the engine thread. */
#include "kv/pool.h"

#include <string.h>

#include "base/alloc.h"
#include "base/background.h"
#include "base/check.h"
#include "kv/kv.h"
#include "mem/mem.h"
#include "mem/owners.h"

int weft__kv_page_bytes(const weft_kv_group *group, uint32_t dtype, uint64_t *n)
{
    const uint64_t widest = 8; /* of any format, for an element of a head of one */
    if (!weft__checked_mul(weft_kv_page_elems(group), widest, n)) return 0;
    *n = weft_kv_layer_at(dtype, group, group->n_layers);
    return weft__checked_align(*n, 64, n);
}

static weft_status group_init(weft__kv_pool *pool, int g, int32_t n_pages, uint32_t dtype, weft_error *err)
{
    struct weft__kv_group_pool *gp = &pool->groups[g];
    uint64_t page_bytes, n_bytes;
    if (n_pages < 1) return weft_fail(err, WEFT_ARGUMENT, "KV group %d: %d pages; at least one is needed", g, n_pages);
    if (!weft__kv_page_bytes(&gp->spec, dtype, &page_bytes) ||
        !weft__checked_mul(page_bytes, (uint64_t)n_pages, &n_bytes))
        return weft_fail(err, WEFT_LIMIT, "KV group %d: the size of %d pages overflows; use a smaller context (-c)", g,
                         n_pages);
    gp->count = weft__alloc_zero((size_t)n_pages, sizeof *gp->count);
    gp->free = weft__alloc_array((size_t)n_pages, sizeof *gp->free);
    gp->owner = weft__alloc_zero((size_t)n_pages, sizeof *gp->owner);
    gp->next = weft__alloc_array((size_t)n_pages, sizeof *gp->next);
    gp->prev = weft__alloc_array((size_t)n_pages, sizeof *gp->prev);
    gp->in_memory = weft__alloc_zero((size_t)n_pages, sizeof *gp->in_memory);
    if (!gp->count || !gp->free || !gp->owner || !gp->next || !gp->prev || !gp->in_memory)
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for the tables of %d KV pages", n_pages);
    gp->idle_head = gp->idle_tail = -1;
    weft_buffer_spec spec = {sizeof spec, WEFT_DOMAIN_HOST, n_bytes, 64, WEFT_BUFFER_ZERO | WEFT_BUFFER_HUGE};
    weft_status st = weft__mem_create(&spec, &gp->buffer, err);
    if (st) return weft_fail_within(err, st, "KV cache of %.1f MB (use a smaller context, -c)", (double)n_bytes / 1e6);
    weft__mem_set_owner(gp->buffer, WEFT__MEM_PAGES);
    for (int32_t i = 0; i < n_pages; i++) gp->free[i] = n_pages - 1 - i; /* the lowest page is on top */
    gp->n_free = n_pages;
    gp->most_bytes = n_bytes;
    pool->bindings[g] = (weft_kv_binding){gp->buffer->data, page_bytes, dtype, n_pages};
    return WEFT_OK;
}

static weft_status check_type(const weft_kv_group *groups, int n_groups, uint32_t dtype, weft_error *err)
{
    char name[WEFT_KV_NAME_MAX];
    if (!weft_kv_is_type(dtype))
        return weft_fail(err, WEFT_UNSUPPORTED, "KV type %u is not supported; use f16, or what --kv-type names", dtype);
    for (int g = 0; g < n_groups; g++)
        if (!weft_kv_fits(dtype, &groups[g]))
            return weft_fail(err, WEFT_UNSUPPORTED,
                             "keys and values in %s: this model has heads of %d and %d elements, which takes at most "
                             "%d; use f16",
                             weft_kv_type_name(dtype, name), groups[g].head_dim_k, groups[g].head_dim_v,
                             WEFT_KV_CODED_MAX);
    return WEFT_OK;
}

weft_status weft__kv_pool_create(const weft_kv_group *groups, int n_groups, const int32_t *n_pages, uint32_t dtype,
                                 weft__kv_pool **out, weft_error *err)
{
    weft_status st = WEFT_OK;
    *out = NULL;
    if ((st = check_type(groups, n_groups, dtype, err))) return st;
    weft__kv_pool *pool = weft__alloc_zero(1, sizeof *pool);
    if (!pool) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a KV pool");
    pool->first = pool;
    pool->n_groups = n_groups;
    pool->groups = weft__alloc_zero((size_t)n_groups, sizeof *pool->groups);
    pool->bindings = weft__alloc_zero((size_t)n_groups, sizeof *pool->bindings);
    if (!pool->groups || !pool->bindings) {
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a KV pool");
        goto fail;
    }
    for (int g = 0; g < n_groups; g++) {
        pool->groups[g].spec = groups[g];
        if ((st = group_init(pool, g, n_pages[g], dtype, err))) goto fail;
    }
    *out = pool;
    return WEFT_OK;
fail:
    weft__kv_pool_destroy(&pool);
    return st;
}

void weft__kv_pool_destroy(weft__kv_pool **p)
{
    weft__kv_pool *pool = p ? *p : NULL;
    if (!pool) return;
    for (int g = 0; pool->groups && g < pool->n_groups; g++) {
        weft_buffer_release(&pool->groups[g].buffer);
        weft__free(pool->groups[g].in_memory);
        weft__free(pool->groups[g].prev);
        weft__free(pool->groups[g].next);
        weft__free(pool->groups[g].owner);
        weft__free(pool->groups[g].free);
        weft__free(pool->groups[g].count);
    }
    weft__free(pool->bindings);
    weft__free(pool->groups);
    weft__free(pool);
    *p = NULL;
}

const weft_kv_binding *weft__kv_pool_bindings(const weft__kv_pool *pool)
{
    return pool->bindings;
}

weft_status weft__kv_pool_join(weft__kv_pool *pool, weft__kv_pool *first, weft_error *err)
{
    weft__kv_pool *last = first;
    int same = pool->n_groups == first->n_groups;
    for (int g = 0; same && g < pool->n_groups; g++)
        same = !memcmp(&pool->groups[g].spec, &first->groups[g].spec, sizeof first->groups[g].spec);
    if (!same) return weft_fail(err, WEFT_ARGUMENT, "KV pools that share memory have different groups");
    while (last->next) last = last->next;
    last->next = pool;
    pool->first = first;
    return WEFT_OK;
}

/* ---- what there is ---- */

/* Bytes that pages of the group take, of all pools that share; without those that trees alone hold, or with them. */
static uint64_t bytes_held(const weft__kv_pool *pool, int group, int with_idle)
{
    uint64_t n = 0;
    for (const weft__kv_pool *p = pool->first; p; p = p->next) {
        const int32_t held = p->bindings[group].n_pages - p->groups[group].n_free;
        n += (uint64_t)(with_idle ? held : held - p->groups[group].n_idle) * p->bindings[group].page_bytes;
    }
    return n;
}

static uint64_t bytes_left(const weft__kv_pool *pool, int group, int with_idle)
{
    const uint64_t most = pool->first->groups[group].most_bytes, held = bytes_held(pool, group, with_idle);
    return most > held ? most - held : 0;
}

/* Of n pages of this pool those that bytes are left for. */
static int32_t pool_given(const weft__kv_pool *pool, int group, int32_t n, uint64_t left)
{
    const uint64_t most = left / pool->bindings[group].page_bytes;
    return most < (uint64_t)n ? (int32_t)most : n;
}

int32_t weft__kv_pool_free_pages(const weft__kv_pool *pool, int group)
{
    return pool_given(pool, group, pool->groups[group].n_free, bytes_left(pool, group, 1));
}

uint64_t weft__kv_pool_available_bytes(const weft__kv_pool *pool, int group)
{
    return bytes_left(pool, group, 0);
}

int32_t weft__kv_pool_available_pages(const weft__kv_pool *pool, int group)
{
    const struct weft__kv_group_pool *gp = &pool->groups[group];
    return pool_given(pool, group, gp->n_free + gp->n_idle, bytes_left(pool, group, 0));
}

uint64_t weft__kv_pool_most_bytes(const weft__kv_pool *pool, int group)
{
    return pool->first->groups[group].most_bytes;
}

int32_t weft__kv_pool_held_pages(const weft__kv_pool *pool, int group)
{
    return pool->bindings[group].n_pages - pool->groups[group].n_free;
}

int32_t weft__kv_pool_idle_pages(const weft__kv_pool *pool, int group)
{
    return pool->groups[group].n_idle;
}

/* Evicts where most bytes are idle, of those that share. 0: nothing is. */
static int reclaim(weft__kv_pool *pool, int group)
{
    weft__kv_pool *from = NULL;
    uint64_t most = 0;
    for (weft__kv_pool *p = pool->first; p; p = p->next) {
        const uint64_t n = (uint64_t)p->groups[group].n_idle * p->bindings[group].page_bytes;
        if (!p->reclaim || n < most || (n == most && p != pool)) continue;
        most = n;
        from = p;
    }
    return from && from->reclaim(from->reclaim_arg, group);
}

static int32_t count_free(const weft__kv_pool *pool, int group)
{
    int32_t n = 0;
    for (const weft__kv_pool *p = pool->first; p; p = p->next) n += p->groups[group].n_free;
    return n;
}

int32_t weft__kv_pool_limit(weft__kv_pool *pool, int group, int32_t n_pages)
{
    const int32_t before = count_free(pool, group);
    const uint64_t most = (uint64_t)n_pages * pool->bindings[group].page_bytes;
    pool->first->groups[group].most_bytes = most;
    while (bytes_held(pool, group, 1) > most && reclaim(pool, group)) continue;
    return count_free(pool, group) - before;
}

/* ---- memory ---- */

static uint64_t bytes_in_memory(const weft__kv_pool *pool, int group)
{
    uint64_t n = 0;
    for (const weft__kv_pool *p = pool->first; p; p = p->next)
        n += (uint64_t)p->groups[group].n_in_memory * p->bindings[group].page_bytes;
    return n;
}

static void page_warms(struct weft__kv_group_pool *gp, int32_t page)
{
    gp->n_in_memory += !gp->in_memory[page];
    gp->in_memory[page] = 1;
}

static void group_gives_back(weft__kv_pool *pool, int g)
{
    struct weft__kv_group_pool *gp = &pool->groups[g];
    const int32_t n_pages = pool->bindings[g].n_pages;
    const uint64_t page_bytes = pool->bindings[g].page_bytes;
    for (int32_t first = 0, end; first < n_pages; first = end) {
        end = first + 1;
        if (gp->count[first]) continue;
        while (end < n_pages && !gp->count[end]) end++;
        if (first >= gp->n_warm) break; /* they never had any */
        (void)weft__mem_advise(gp->buffer, (uint64_t)first * page_bytes, (uint64_t)(end - first) * page_bytes,
                               WEFT__MEM_ADVICE_LOSE, NULL); /* a wish */
        for (int32_t i = first; i < end; i++) gp->n_in_memory -= gp->in_memory[i];
        memset(gp->in_memory + first, 0, (size_t)(end - first));
    }
}

void weft__kv_pool_give_back(weft__kv_pool *pool)
{
    for (weft__kv_pool *p = pool->first; p; p = p->next)
        for (int g = 0; g < p->n_groups; g++) group_gives_back(p, g);
}

/* A page that is not in memory is about to be written: what the others have free, and still have memory for, gives way.
 * Alone a pool never has more than its own. */
static void others_give_way(weft__kv_pool *pool, int g)
{
    if (!pool->first->next ||
        bytes_in_memory(pool, g) + pool->bindings[g].page_bytes <= pool->first->groups[g].most_bytes)
        return;
    for (weft__kv_pool *p = pool->first; p; p = p->next) group_gives_back(p, g);
}

int32_t weft__kv_pages_needed(const weft_kv_group *group, int32_t n_ctx, int32_t max_rows)
{
    int64_t tokens = n_ctx;
    /* A window's oldest visible position and the newest row of a step are window + max_rows - 1 apart at most; neither
     * need be at a page's edge, hence two pages more. */
    int64_t kept = (int64_t)group->window + max_rows + 2 * (int64_t)group->page_tokens;
    if (group->window > 0 && kept < tokens) tokens = kept;
    return (int32_t)((tokens + group->page_tokens - 1) / group->page_tokens);
}

static void idle_enter(struct weft__kv_group_pool *gp, int32_t page)
{
    gp->next[page] = -1;
    gp->prev[page] = gp->idle_tail;
    *(gp->idle_tail < 0 ? &gp->idle_head : &gp->next[gp->idle_tail]) = page;
    gp->idle_tail = page;
    gp->n_idle++;
}

static void idle_leave(struct weft__kv_group_pool *gp, int32_t page)
{
    int32_t next = gp->next[page], prev = gp->prev[page];
    *(prev < 0 ? &gp->idle_head : &gp->next[prev]) = next;
    *(next < 0 ? &gp->idle_tail : &gp->prev[next]) = prev;
    gp->n_idle--;
}

int32_t weft__kv_page_take(weft__kv_pool *pool, int group)
{
    struct weft__kv_group_pool *gp = &pool->groups[group];
    while (!weft__kv_pool_free_pages(pool, group))
        if (!reclaim(pool, group)) return -1;
    if (!gp->in_memory[gp->free[gp->n_free - 1]]) others_give_way(pool, group);
    int32_t page = gp->free[--gp->n_free];
    page_warms(gp, page);
    if (page >= gp->n_used) gp->n_used = page + 1;
    if (page >= gp->n_warm) gp->n_warm = page + 1;
    gp->count[page] = 1;
    return page;
}

int weft__kv_pool_warm(weft__kv_pool *pool, int32_t n_ahead)
{
    for (int g = 0; g < pool->n_groups; g++) {
        struct weft__kv_group_pool *gp = &pool->groups[g];
        if (gp->n_warm >= pool->bindings[g].n_pages || gp->n_warm - gp->n_used >= n_ahead) continue;
        if (pool->first->next &&
            bytes_in_memory(pool, g) + pool->bindings[g].page_bytes > pool->first->groups[g].most_bytes)
            continue;
        page_warms(gp, gp->n_warm);
        memset(weft__kv_page_data(pool, g, gp->n_warm++), 0, pool->bindings[g].page_bytes); /* what it is already */
        weft__background_did(pool->bindings[g].page_bytes);
        return 1;
    }
    return 0;
}

void weft__kv_page_retain(weft__kv_pool *pool, int group, int32_t page)
{
    struct weft__kv_group_pool *gp = &pool->groups[group];
    if (gp->count[page]++ == 1 && gp->owner[page]) idle_leave(gp, page);
}

void weft__kv_page_release(weft__kv_pool *pool, int group, int32_t page)
{
    struct weft__kv_group_pool *gp = &pool->groups[group];
    if (--gp->count[page] == 0) gp->free[gp->n_free++] = page;
    else if (gp->count[page] == 1 && gp->owner[page]) idle_enter(gp, page);
}

int weft__kv_page_own(weft__kv_pool *pool, int group, int32_t page, void *node)
{
    struct weft__kv_group_pool *gp = &pool->groups[group];
    if (gp->owner[page]) return 0;
    gp->owner[page] = node;
    gp->count[page]++;
    return 1;
}

void weft__kv_page_disown(weft__kv_pool *pool, int group, int32_t page)
{
    struct weft__kv_group_pool *gp = &pool->groups[group];
    if (pool->leaving) pool->leaving(pool->leaving_arg, pool, group, page);
    if (gp->count[page] == 1) idle_leave(gp, page);
    gp->owner[page] = NULL;
    weft__kv_page_release(pool, group, page);
}
