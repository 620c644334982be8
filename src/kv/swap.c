// SPDX-License-Identifier: Apache-2.0
/* swap.c: parked sequences (swap.h): what becomes of their pages, when it pays, and how they go on.
 * Owner: the engine's thread. */
#include "kv/swap.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/random.h"
#include "kv/swap_parts.h"

/* ---- rates and the rule ---- */

static double per_second(const weft__kv_swap_rate *r)
{
    return r->ns > 0 ? r->bytes / r->ns * 1e9 : 0;
}

/* That bytes come back with, as far as is known. */
static double measured(const weft__kv_swap *w)
{
    return per_second(w->in.ns > 0 ? &w->in : &w->out);
}

int weft__kv_swap_pays(double bytes_per_token, double bytes_per_second, double tokens_per_second)
{
    return bytes_per_second <= 0 || tokens_per_second <= 0 || bytes_per_token * tokens_per_second < bytes_per_second;
}

static double bytes_per_token(const weft__kv_seq *seq)
{
    uint64_t bytes = 0;
    for (int g = 0; g < seq->pool->n_groups; g++)
        bytes += (uint64_t)(seq->n_pages[g] - seq->n_gone[g]) * seq->pool->bindings[g].page_bytes;
    return (double)bytes / seq->length;
}

int weft__kv_swap_wants(weft__kv_swap *w, const weft__kv_seq *seq, double tokens_per_second)
{
    if (!w->n_slots || seq->length < 1) return 0;
    return weft__kv_swap_pays(bytes_per_token(seq), measured(w), tokens_per_second) ||
           ++w->n_declined % WEFT__KV_SWAP_PROBE == 0;
}

/* The tree lets a page go: those that are parked with it go on without. */
static void on_leaving(void *arg, const weft__kv_pool *pool, int group, int32_t page)
{
    weft__kv_swap *w = arg;
    weft__kv_swap_page *out = NULL;
    int tried = 0;
    for (weft__kv_parked *k = w->parked; k; k = k->next)
        for (int32_t i = 0; k->pool == pool && i < k->end[group] - k->first[group]; i++) {
            weft__kv_swap_entry *e = &k->entry[group][i];
            if (e->page != page) continue;
            if (!tried) out = weft__kv_swap_copy_out(w, pool, group, page), tried = 1;
            else if (out) out->n_holders++;
            e->page = -1;
            e->out = out;
            break;
        }
}

/* ---- parking ---- */

static int make_entries(weft__kv_parked *k, const weft__kv_seq *seq)
{
    k->n = seq->length;
    k->pool = seq->pool;
    for (int g = 0; g < k->pool->n_groups; g++) {
        const weft_kv_group *spec = &k->pool->groups[g].spec;
        k->first[g] = weft__kv_first_entry(spec, k->n);
        k->end[g] = weft__kv_entries(spec, k->n);
        k->entry[g] = weft__alloc_zero((size_t)(k->end[g] - k->first[g]), sizeof *k->entry[g]);
        if (!k->entry[g]) return 0;
    }
    return 1;
}

static void free_parked(weft__kv_swap *w, weft__kv_parked *k)
{
    for (int g = 0; g < w->pool->n_groups; g++) {
        for (int32_t i = 0; k->entry[g] && i < k->end[g] - k->first[g]; i++)
            weft__kv_swap_let_go(w, k->entry[g][i].out);
        weft__free(k->entry[g]);
    }
    weft__free(k);
}

weft__kv_parked *weft__kv_swap_park(weft__kv_swap *w, const weft__kv_seq *seq)
{
    if (seq->length < 1 || !weft__kv_seq_continues(seq, seq->length)) return NULL;
    weft__kv_parked *k = weft__alloc_zero(1, sizeof *k);
    if (!k) return NULL;
    if (!make_entries(k, seq)) {
        free_parked(w, k);
        return NULL;
    }
    for (int g = 0; g < w->pool->n_groups; g++)
        for (int32_t i = k->first[g]; i < k->end[g]; i++) {
            weft__kv_swap_entry *e = &k->entry[g][i - k->first[g]];
            e->page = seq->pages[g][i];
            if (k->pool->groups[g].owner[e->page]) continue;
            e->out = weft__kv_swap_copy_out(w, k->pool, g, e->page);
            e->page = -1;
        }
    k->next = w->parked;
    if (k->next) k->next->prev = k;
    w->parked = k;
    w->stats.n_parked++;
    return k;
}

void weft__kv_swap_forget(weft__kv_swap *w, weft__kv_parked **parked)
{
    weft__kv_parked *k = *parked;
    if (!k) return;
    weft__kv_swap_stop(w, k);
    *(k->prev ? &k->prev->next : &w->parked) = k->next;
    if (k->next) k->next->prev = k->prev;
    free_parked(w, k);
    *parked = NULL;
}

/* ---- going on ---- */

static int is_there(const weft__kv_swap_entry *e)
{
    return e->page >= 0 || (e->out && (e->out->written || e->out->io));
}

/* The first entry of a group that n tokens need and that is lost; -1: none. */
static int32_t first_lost(const weft__kv_parked *k, int g, const weft_kv_group *spec, int32_t n)
{
    const int32_t end = weft__kv_entries(spec, n);
    for (int32_t i = weft__kv_first_entry(spec, n); i < end; i++)
        if (i < k->first[g] || !is_there(&k->entry[g][i - k->first[g]])) return i;
    return -1;
}

int32_t weft__kv_swap_has(const weft__kv_swap *w, const weft__kv_parked *k, int32_t n_max)
{
    int32_t n = k->n < n_max ? k->n : n_max;
    for (int g = 0; n > 0 && g < w->pool->n_groups; g++) {
        const weft_kv_group *spec = &w->pool->groups[g].spec;
        const int32_t lost = first_lost(k, g, spec, n);
        if (lost < 0) continue;
        n = lost * spec->page_tokens < n ? lost * spec->page_tokens : 0;
        g = -1; /* windows end elsewhere now */
    }
    return n;
}

/* What stands in the tree is shared, but for a page that the sequence will write on: that is copied. 0: no page. */
static int fill_from_tree(weft__kv_seq *seq, int g, int32_t i, int32_t from)
{
    const uint64_t n_bytes = seq->pool->bindings[g].page_bytes;
    const int32_t page = weft__kv_page_take(seq->pool, g);
    if (page >= 0)
        memcpy(weft__kv_page_data(seq->pool, g, page), weft__kv_page_data(seq->pool, g, from), (size_t)n_bytes);
    weft__kv_page_release(seq->pool, g, from);
    seq->pages[g][i] = page;
    return page >= 0;
}

/* Holds what the tree has, before pages are taken: taking may evict. */
static void hold_from_tree(weft__kv_parked *k, weft__kv_seq *seq, int32_t n)
{
    for (int g = 0; g < seq->pool->n_groups; g++) {
        const weft_kv_group *spec = &seq->pool->groups[g].spec;
        const int32_t first = weft__kv_first_entry(spec, n), end = weft__kv_entries(spec, n);
        seq->n_gone[g] = first;
        seq->n_pages[g] = end;
        for (int32_t i = 0; i < first; i++) seq->pages[g][i] = -1;
        for (int32_t i = first; i < end; i++) {
            weft__kv_swap_entry *e = &k->entry[g][i - k->first[g]];
            e->asked = 0;
            e->filled = e->page >= 0;
            seq->pages[g][i] = e->page;
            if (e->filled) weft__kv_page_retain(seq->pool, g, e->page);
        }
    }
}

static int take_pages(weft__kv_parked *k, weft__kv_seq *seq, int32_t n)
{
    weft__kv_pool *pool = seq->pool;
    int ok = 1;
    for (int g = 0; g < pool->n_groups && ok; g++) {
        const weft_kv_group *spec = &pool->groups[g].spec;
        const int32_t end = seq->n_pages[g];
        for (int32_t i = seq->n_gone[g]; i < end && ok; i++) {
            const weft__kv_swap_entry *e = &k->entry[g][i - k->first[g]];
            const int whole = (i + 1) * spec->page_tokens <= n;
            if (e->filled && !whole) ok = fill_from_tree(seq, g, i, seq->pages[g][i]);
            else if (!e->filled) ok = (seq->pages[g][i] = weft__kv_page_take(pool, g)) >= 0;
            k->n_missing += !e->filled;
            k->n_bytes += e->filled ? 0 : pool->bindings[g].page_bytes;
        }
    }
    return ok;
}

int weft__kv_swap_begin(weft__kv_swap *w, weft__kv_parked *k, weft__kv_seq *seq, int32_t n)
{
    if (n < 1 || n > seq->n_ctx) return 0;
    k->n_missing = k->lost = 0;
    k->n_bytes = 0;
    k->begun_ns = k->came_ns = weft__clock_ns();
    hold_from_tree(k, seq, n);
    if (!take_pages(k, seq, n)) {
        weft__kv_seq_trim(seq, 0);
        return 0;
    }
    k->seq = seq;
    w->n_begun++;
    k->n_wanted = n;
    return 1;
}

int weft__kv_swap_is_begun(const weft__kv_parked *k)
{
    return k->seq != NULL;
}

uint64_t weft__kv_swap_idle_ns(const weft__kv_parked *k)
{
    return weft__clock_ns() - k->came_ns;
}

int32_t weft__kv_swap_n_begun(const weft__kv_swap *w)
{
    return w->n_begun;
}

uint64_t weft__kv_swap_bytes(const weft__kv_parked *k)
{
    return k->n_bytes;
}

void weft__kv_swap_stop(weft__kv_swap *w, weft__kv_parked *k)
{
    if (!k->seq) return;
    for (weft__kv_swap_move *m = w->moving; m; m = m->next_moving)
        if (m->parked == k) m->parked = NULL;
    for (weft__kv_swap_move *m = w->arrived; m; m = m->next)
        if (m->parked == k) m->parked = NULL;
    weft__kv_seq_trim(k->seq, 0);
    k->seq = NULL;
    w->n_begun--;
}

int weft__kv_swap_end(weft__kv_swap *w, weft__kv_parked *k)
{
    if (k->lost) {
        weft__kv_swap_stop(w, k);
        return -1;
    }
    if (k->n_missing) return 0;
    const uint64_t ns = weft__clock_ns() - k->begun_ns;
    if (k->n_bytes) weft__kv_swap_rate_add(&w->in, k->n_bytes, ns);
    w->stats.n_restored++;
    w->stats.in_ns += ns;
    k->seq->length = k->n_wanted;
    k->seq = NULL;
    w->n_begun--;
    return 1;
}

/* ---- the whole ---- */

weft_status weft__kv_swap_create(weft__kv_pool *pool, weft__kv_store *store, uint64_t limit, void (*news)(void *arg),
                                 void *arg, weft__kv_swap **out, weft_error *err)
{
    *out = NULL;
    weft__kv_swap *w = weft__alloc_zero(1, sizeof *w);
    if (!w) return weft_fail(err, WEFT_NO_MEMORY, "no memory to swap pages");
    pthread_mutex_init(&w->lock, NULL);
    w->pool = pool;
    w->store = store;
    w->news = news;
    w->arg = arg;
    w->seed = weft__rng_entropy();
    for (const weft__kv_pool *p = pool; p; p = p->next)
        for (int g = 0; g < p->n_groups; g++)
            if (p->bindings[g].page_bytes > w->slot_bytes) w->slot_bytes = p->bindings[g].page_bytes;
    w->slot_bytes = (w->slot_bytes + 4095) & ~(uint64_t)4095;
    w->n_slots = (int64_t)(limit / w->slot_bytes);
    w->stats.limit_bytes = (uint64_t)w->n_slots * w->slot_bytes;
    weft_status st = weft__kv_store_swap_open(store, limit, weft__kv_swap_done_with, w, err);
    if (st) {
        weft__kv_swap_destroy(&w);
        return st;
    }
    for (weft__kv_pool *p = pool; p; p = p->next) {
        p->leaving = on_leaving;
        p->leaving_arg = w;
    }
    *out = w;
    return WEFT_OK;
}

void weft__kv_swap_destroy(weft__kv_swap **swap)
{
    weft__kv_swap *w = *swap;
    if (!w) return;
    for (weft__kv_pool *p = w->pool; p; p = p->next) p->leaving = NULL;
    weft__kv_swap_close(w);
    weft__free(w->free);
    pthread_mutex_destroy(&w->lock);
    weft__free(w);
    *swap = NULL;
}

void weft__kv_swap_get_stats(const weft__kv_swap *w, weft__kv_swap_stats *out)
{
    *out = w->stats;
    out->used_bytes = (uint64_t)w->n_used * w->slot_bytes;
    out->bytes_per_second = measured(w);
}
