// SPDX-License-Identifier: Apache-2.0
/* persist.c: prefixes that the disk store should have. The tokens of a finished request wait until there is a quiet
 * moment, or a second has gone by; then the pages that the tree still has of them are copied for the store, a piece
 * after each step, and the store writes them in the background. Owner: the engine's thread. */
#include "base/alloc.h"
#include "base/clock.h"
#include "batcher/batcher.h"

static const uint64_t PERSIST_EVERY_NS = 1000000000; /* between two of them, while the engine is busy */

/* A file holds all pages of its tokens: one that shares most of them with another is not worth its bytes. */
static int worth_keeping(weft_engine *e, weft__kv_key root, const int32_t *tokens, int32_t n)
{
    return weft__kv_store_wants(e->store, root, tokens, n) &&
           n - weft__kv_store_find(e->store, root, tokens, n) >= n / 4;
}

void weft__batcher_persist(batcher_request *r, int32_t n)
{
    weft_engine *e = r->engine;
    if (!e->store || n < e->block || !worth_keeping(e, r->root, r->tokens, n)) return;
    if (e->persist.n == BATCHER_PERSISTS) { /* the oldest is the likeliest to have lost its pages */
        weft__free(e->persist.waiting[e->persist.first].tokens);
        e->persist.first = (e->persist.first + 1) % BATCHER_PERSISTS;
        e->persist.n--;
    }
    e->persist.waiting[(e->persist.first + e->persist.n++) % BATCHER_PERSISTS] =
        (batcher_prefix){r->cache, r->root, r->tokens, n};
    r->tokens = NULL;
}

int weft__batcher_n_persisting(const weft_engine *e)
{
    return e->persist.n + (e->persist.now.tokens != NULL);
}

int weft__batcher_persist_due(const weft_engine *e)
{
    return e->persist.now.tokens || (e->persist.n > 0 && weft__clock_ns() - e->persist.last_ns > PERSIST_EVERY_NS);
}

static void forget_waiting(weft_engine *e)
{
    for (; e->persist.n > 0; e->persist.n--) {
        weft__free(e->persist.waiting[e->persist.first].tokens);
        e->persist.first = (e->persist.first + 1) % BATCHER_PERSISTS;
    }
}

/* Takes the next one that is still worth it; 0: it is not. */
static int next_to_keep(weft_engine *e, int stopping)
{
    batcher_prefix *k = &e->persist.now;
    *k = e->persist.waiting[e->persist.first];
    e->persist.first = (e->persist.first + 1) % BATCHER_PERSISTS;
    e->persist.n--;
    if (stopping && !weft__kv_store_flush(e->store, e->params.disk_wait_ms))
        forget_waiting(e); /* else there is time, and room in its queue then */
    k->n = weft__kv_prefix_peek(k->cache->prefix, k->root, k->tokens, k->n);
    return k->n > 0 && worth_keeping(e, k->root, k->tokens, k->n);
}

static void forget_now(weft_engine *e)
{
    weft__kv_snapshot_free(&e->persist.copied);
    weft__free(e->persist.now.tokens);
    e->persist.now.tokens = NULL;
}

void weft__batcher_persist_some(weft_engine *e, int stopping)
{
    batcher_prefix *k = &e->persist.now;
    int complete = 0;
    if (!weft__batcher_n_persisting(e)) return;
    if (k->tokens || next_to_keep(e, stopping)) {
        weft_status st = weft__batcher_copy_piece(e, k->cache, k->root, k->tokens, &k->n, &e->persist.copied,
                                                  &e->persist.at, &complete, NULL);
        if (!st && !complete) return;
        if (!st)
            weft__kv_store_put(e->store, &e->persist.copied, NULL, NULL, NULL,
                               NULL); /* a cache may forget: the store tells of failures in its log */
    }
    forget_now(e);
    e->persist.last_ns = weft__clock_ns();
}

void weft__batcher_persist_end(weft_engine *e)
{
    forget_waiting(e);
    forget_now(e);
}
