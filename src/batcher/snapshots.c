// SPDX-License-Identifier: Apache-2.0
/* snapshots.c: pages between the prefix tree and the snapshots that the disk store reads and writes, a piece between
 * two steps, so that no token waits for them. What comes from a snapshot is held by a sequence of its own until all of
 * it is there, which gives its pages up as soon as a request needs them: to the scheduler they are as good as free.
 * Owner: the engine's thread. */
#include "batcher/batcher.h"

/* A sequence of its own for a moment, to move pages between the tree and a snapshot. NULL: no memory. */
static weft__kv_seq *borrow_seq(batcher_cache *cache, int32_t n)
{
    weft__kv_seq *seq = NULL;
    return n > 0 && weft__kv_seq_create(cache->pool, n, &seq, NULL) == WEFT_OK ? seq : NULL;
}

static void forget(weft_engine *e)
{
    weft__kv_seq_destroy(&e->restore.seq);
    e->restore.from = NULL;
}

/* Of which type its pages are: one that the engine has, as it was checked against that. */
static batcher_cache *cache_of(weft_engine *e, const weft__kv_snapshot *s)
{
    batcher_cache *c = e->caches;
    while (c->layout.next && !weft__kv_layout_is_of(&c->layout, weft__kv_snapshot_head_of(s))) c++;
    return c;
}

static void snapshots_begin(weft_engine *e, const weft__kv_snapshot *s, int32_t n)
{
    e->restore.from = s;
    e->restore.cache = cache_of(e, s);
    e->restore.n = n;
    e->restore.at = 0;
    e->restore.seq = borrow_seq(e->restore.cache, n);
    if (e->restore.seq && weft__kv_snapshot_load_begin(s, &e->restore.cache->layout, n, e->restore.seq, NULL))
        weft__kv_seq_destroy(&e->restore.seq);
}

int weft__batcher_restore(weft_engine *e, const weft__kv_snapshot *s, int32_t n, int32_t *known)
{
    uint64_t before;
    int complete = 0;
    *known = 0;
    if (!e->restore.from) snapshots_begin(e, s, n);
    if (e->restore.from != s) return 0; /* its turn comes */
    if (e->restore.seq) {
        before = e->restore.at;
        weft_status st = weft__kv_snapshot_load_some(s, &e->restore.cache->layout, e->restore.n, e->restore.seq,
                                                     &e->restore.at, e->copy_left, &complete, NULL);
        e->copy_left -= e->restore.at - before;
        if (!st && !complete) return 0;
        if (!st)
            *known = weft__kv_prefix_insert(e->restore.cache->prefix, weft__kv_snapshot_head_of(s)->root,
                                            weft__kv_snapshot_tokens(s), e->restore.n, e->restore.seq);
    }
    forget(e);
    return 1;
}

void weft__batcher_restore_stop(weft_engine *e, const weft__kv_snapshot *s)
{
    if (s && e->restore.from == s) forget(e);
}

int64_t weft__batcher_restore_pages(const weft_engine *e, int32_t group)
{
    int64_t n = 0;
    if (!e->restore.seq) return 0;
    weft_seq_view view = weft__kv_seq_view(e->restore.seq);
    for (int32_t i = view.n_pages[group]; i > 0 && view.pages[group][i - 1] >= 0; i--) n++;
    return weft__batcher_units(e, e->restore.cache->pool, group, n);
}

int weft__batcher_restore_yields(weft_engine *e)
{
    if (!e->restore.seq) return 0;
    weft__kv_seq_destroy(&e->restore.seq);
    return 1;
}

weft_status weft__batcher_copy_piece(weft_engine *e, batcher_cache *cache, weft__kv_key root, const int32_t *tokens,
                                     int32_t *n, weft__kv_snapshot **s, uint64_t *at, int *complete, weft_error *err)
{
    weft_status st = WEFT_OK;
    int32_t wanted = *n, found;
    *complete = 0;
    weft__kv_seq *seq = borrow_seq(cache, wanted);
    if (!seq) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %d tokens", wanted);
    found = weft__kv_prefix_match(cache->prefix, root, tokens, wanted, seq, NULL);
    if (found == 0 || (*s && found < wanted))
        st = weft_fail(err, WEFT_NOT_FOUND, "nothing of these tokens is cached any more");
    if (!st && !*s) {
        *n = found;
        *at = 0;
        st = weft__kv_snapshot_begin(&cache->layout, root, tokens, found, seq, s, err);
    }
    uint64_t before = *at;
    if (!st) *complete = weft__kv_snapshot_copy(*s, &cache->layout, seq, at, e->copy_left);
    if (!st) e->copy_left -= *at - before;
    weft__kv_seq_destroy(&seq);
    return st;
}
