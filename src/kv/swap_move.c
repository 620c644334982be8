// SPDX-License-Identifier: Apache-2.0
/* swap_move.c: pages outside of the pool, on their way to the disk, there, and on their way back (swap.h).
 * The store's thread appends to `done`, under the lock; all else is the engine's thread. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kv/swap_parts.h"

/* ---- slots of the file ---- */

static int64_t take_slot(weft__kv_swap *w)
{
    if (!w->n_free && w->n_begun_slots == w->n_slots) return -1;
    w->n_used++;
    return w->n_free ? w->free[--w->n_free] : w->n_begun_slots++;
}

static void give_slot(weft__kv_swap *w, int64_t slot)
{
    if (slot < 0) return;
    if (--w->n_used == 0) {
        w->n_begun_slots = 0;
        w->n_free = 0;
        if (w->store) weft__kv_store_swap_empty(w->store);
    } else if (weft__grow(&w->free, &w->free_capacity, w->n_free + 1, sizeof *w->free)) {
        w->free[w->n_free++] = slot;
    } /* else it is not used again until all are free */
}

/* ---- pages outside ---- */

void weft__kv_swap_let_go(weft__kv_swap *w, weft__kv_swap_page *p)
{
    if (!p || --p->n_holders > 0) return;
    give_slot(w, p->slot);
    weft__free(p);
}

static void give_up(weft__kv_swap *w, weft__kv_swap_page *p)
{
    p->written = 0;
    give_slot(w, p->slot);
    p->slot = -1;
    w->stats.pages_lost++;
}

/* A transfer of that page, which holds it; NULL: no memory, or too much is on its way. */
static weft__kv_swap_move *new_move(weft__kv_swap_page *p, uint64_t n_bytes, uint64_t on_the_way)
{
    if (on_the_way > 0 && on_the_way + n_bytes > WEFT__KV_SWAP_STAGING) return NULL;
    weft__kv_swap_move *m = weft__alloc_zero(1, sizeof *m);
    weft__kv_swap_io *io = m ? weft__kv_swap_io_new(n_bytes) : NULL;
    if (!io) {
        weft__free(m);
        return NULL;
    }
    *m = (weft__kv_swap_move){.page = p, .io = io};
    p->n_holders++;
    io->arg = m;
    return m;
}

/* The store has it from here on. */
static void sent(weft__kv_swap *w, weft__kv_swap_move *m)
{
    m->next_moving = w->moving;
    w->moving = m;
}

static void came_back(weft__kv_swap *w, weft__kv_swap_move *m)
{
    weft__kv_swap_move **at = &w->moving;
    while (*at != m) at = &(*at)->next_moving;
    *at = m->next_moving;
    m->next = NULL;
}

static void free_move(weft__kv_swap *w, weft__kv_swap_move *m)
{
    weft__kv_swap_io_free(&m->io);
    weft__kv_swap_let_go(w, m->page);
    weft__free(m);
}

weft__kv_swap_page *weft__kv_swap_copy_out(weft__kv_swap *w, const weft__kv_pool *pool, int group, int32_t page)
{
    const uint64_t n_bytes = pool->bindings[group].page_bytes;
    weft__kv_swap_page *p = weft__alloc_zero(1, sizeof *p);
    if (!p) return NULL;
    p->n_holders = 1;
    p->slot = -1;
    weft__kv_swap_move *m = new_move(p, n_bytes, w->stats.staged_bytes);
    if (m) p->slot = take_slot(w);
    if (m && p->slot >= 0) {
        m->io->at = (uint64_t)p->slot * w->slot_bytes;
        m->io->seed = p->seed = ++w->seed;
        memcpy(m->io->bytes, weft__kv_page_data(pool, group, page), (size_t)n_bytes);
        p->io = m->io;
        if (weft__kv_store_swap_out(w->store, m->io)) {
            w->stats.staged_bytes += n_bytes;
            sent(w, m);
            return p;
        }
    }
    if (m) free_move(w, m);
    weft__kv_swap_let_go(w, p);
    w->stats.pages_lost++;
    return NULL;
}

/* ---- what the store has done ---- */

void weft__kv_swap_done_with(void *arg, weft__kv_swap_io *io)
{
    weft__kv_swap *w = arg;
    weft__kv_swap_move *m = io->arg;
    pthread_mutex_lock(&w->lock);
    m->next = w->done;
    w->done = m;
    pthread_mutex_unlock(&w->lock);
    w->news(w->arg);
}

static void was_written(weft__kv_swap *w, weft__kv_swap_move *m)
{
    weft__kv_swap_page *p = m->page;
    p->io = NULL;
    p->sum = m->io->sum;
    p->written = !m->io->status;
    w->stats.staged_bytes -= m->io->n_bytes;
    if (p->written) {
        w->stats.pages_out++;
        w->stats.bytes_out += m->io->n_bytes;
        w->stats.out_ns += m->io->ns;
        weft__kv_swap_rate_add(&w->out, m->io->n_bytes, m->io->ns);
    } else {
        give_up(w, p);
    }
    free_move(w, m);
}

static void was_read(weft__kv_swap *w, weft__kv_swap_move *m)
{
    if (m->io->status && m->page->written) give_up(w, m->page);
    if (m->io->status && m->parked) m->parked->lost = 1, w->n_changes++;
    if (m->io->status || !m->parked) {
        w->read_bytes -= m->io->n_bytes;
        free_move(w, m);
        return;
    }
    *(w->arrived ? &w->arrived_last->next : &w->arrived) = m;
    w->arrived_last = m;
}

static void take_done(weft__kv_swap *w)
{
    pthread_mutex_lock(&w->lock);
    weft__kv_swap_move *m = w->done, *in_order = NULL, *next;
    w->done = NULL;
    pthread_mutex_unlock(&w->lock);
    for (; m; m = next) {
        next = m->next;
        m->next = in_order;
        in_order = m;
    }
    for (m = in_order; m; m = next) {
        next = m->next;
        came_back(w, m);
        if (m->reads) was_read(w, m);
        else was_written(w, m);
    }
}

/* Bytes of an entry into the sequence's page; returns how many. */
static uint64_t fill(weft__kv_swap *w, weft__kv_parked *k, int g, int32_t i, const unsigned char *bytes)
{
    const uint64_t n_bytes = k->pool->bindings[g].page_bytes;
    memcpy(weft__kv_page_data(k->pool, g, k->seq->pages[g][i]), bytes, (size_t)n_bytes);
    k->entry[g][i - k->first[g]].filled = 1;
    k->n_missing--;
    k->came_ns = weft__clock_ns();
    w->n_changes++;
    w->stats.pages_in++;
    w->stats.bytes_in += n_bytes;
    return n_bytes;
}

static void copy_arrived(weft__kv_swap *w, uint64_t *budget)
{
    while (w->arrived && *budget) {
        weft__kv_swap_move *m = w->arrived;
        w->arrived = m->next;
        w->read_bytes -= m->io->n_bytes;
        uint64_t n = m->parked ? fill(w, m->parked, m->group, m->entry, m->io->bytes) : 0;
        *budget -= n < *budget ? n : *budget;
        free_move(w, m);
    }
}

/* Has an entry read. 0: not now. */
static int read_in(weft__kv_swap *w, weft__kv_parked *k, int g, int32_t i)
{
    weft__kv_swap_entry *e = &k->entry[g][i - k->first[g]];
    weft__kv_swap_move *m = new_move(e->out, k->pool->bindings[g].page_bytes, w->read_bytes);
    if (!m) {
        k->lost |= !w->read_bytes; /* nothing will make room for it */
        return 0;
    }
    m->io->at = (uint64_t)e->out->slot * w->slot_bytes;
    m->io->seed = e->out->seed;
    m->io->sum = e->out->sum;
    m->reads = 1;
    m->parked = k;
    m->group = g;
    m->entry = i;
    if (!weft__kv_store_swap_in(w->store, m->io)) {
        k->lost = 1;
        free_move(w, m);
        return 0;
    }
    sent(w, m);
    w->read_bytes += m->io->n_bytes;
    e->asked = 1;
    return 1;
}

/* Moves what one sequence waits for on, as far as that can be done now. */
static void move_on(weft__kv_swap *w, weft__kv_parked *k, uint64_t *budget)
{
    for (int g = 0; g < w->pool->n_groups; g++)
        for (int32_t i = k->seq->n_gone[g]; i < k->seq->n_pages[g]; i++) {
            weft__kv_swap_entry *e = &k->entry[g][i - k->first[g]];
            if (e->filled || e->asked) continue;
            if (!e->out || (!e->out->io && !e->out->written)) k->lost = 1;
            if (k->lost || (e->out->io && !*budget) || (!e->out->io && !read_in(w, k, g, i))) return;
            if (!e->out->io) continue;
            const uint64_t n = fill(w, k, g, i, e->out->io->bytes);
            *budget -= n < *budget ? n : *budget;
        }
}

int weft__kv_swap_some(weft__kv_swap *w, uint64_t budget)
{
    const uint64_t before = w->n_changes;
    take_done(w);
    copy_arrived(w, &budget);
    for (weft__kv_parked *k = w->parked; k; k = k->next) {
        const int was_lost = k->lost;
        if (k->seq && !k->lost) move_on(w, k, &budget);
        w->n_changes += k->lost != was_lost;
    }
    return w->n_changes != before || w->arrived != NULL;
}

void weft__kv_swap_close(weft__kv_swap *w)
{
    uint64_t nothing = UINT64_MAX;
    w->store = NULL;
    take_done(w);
    copy_arrived(w, &nothing);
    for (weft__kv_swap_move *m; (m = w->moving);) {
        w->moving = m->next_moving;
        m->io = NULL;
        free_move(w, m);
    }
}
