// SPDX-License-Identifier: Apache-2.0
/* batch.c: a step's rows, put together (batch.h). */
#include "graph/batch.h"

#include "base/alloc.h"

weft_status weft__graph_batch_init(weft__graph_batch *b, int32_t max_rows, int64_t width, weft_error *err)
{
    const size_t n = (size_t)max_rows;
    size_t n_bytes;
    *b = (weft__graph_batch){.max_rows = max_rows};
    b->token = weft__alloc_array(n, sizeof *b->token);
    b->pos = weft__alloc_array(n, sizeof *b->pos);
    b->seq = weft__alloc_array(n, sizeof *b->seq);
    b->adapter = weft__alloc_array(n, sizeof *b->adapter);
    b->want = weft__alloc_array(n, sizeof *b->want);
    b->views = weft__alloc_array(n, sizeof *b->views);
    b->pool = weft__alloc_array(n, sizeof *b->pool);
    b->adapter_of = weft__alloc_array(n, sizeof *b->adapter_of);
    b->adapters = weft__alloc_array(n, sizeof(weft_adapter *));
    if (!__builtin_mul_overflow(n * sizeof *b->hidden, (size_t)width, &n_bytes) && n_bytes)
        b->hidden = weft__alloc_aligned(64, n_bytes);
    if (!b->token || !b->pos || !b->seq || !b->adapter || !b->want || !b->views || !b->pool || !b->adapter_of ||
        !b->adapters || (width > 0 && !b->hidden)) {
        weft__graph_batch_free(b);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for steps of %d rows", max_rows);
    }
    weft__graph_batch_clear(b);
    return WEFT_OK;
}

uint64_t weft__graph_batch_bytes(int32_t max_rows, int64_t width)
{
    const weft__graph_batch *b = NULL;
    return (uint64_t)max_rows * (sizeof *b->token + sizeof *b->pos + sizeof *b->seq + sizeof *b->adapter +
                                 sizeof *b->want + sizeof *b->views + sizeof *b->pool + sizeof *b->adapter_of +
                                 sizeof *b->adapters + sizeof *b->hidden * (uint64_t)width);
}

void weft__graph_batch_free(weft__graph_batch *b)
{
    weft__free(b->hidden);
    weft__free(b->adapters);
    weft__free(b->adapter_of);
    weft__free(b->pool);
    weft__free(b->views);
    weft__free(b->want);
    weft__free(b->adapter);
    weft__free(b->seq);
    weft__free(b->pos);
    weft__free(b->token);
    *b = (weft__graph_batch){0};
}

void weft__graph_batch_clear(weft__graph_batch *b)
{
    b->rows = (weft_rows){
        .size = sizeof b->rows, .token = b->token, .pos = b->pos, .seq = b->seq, .want = b->want, .seqs = b->views};
}

/* The index of an adapter among those of the step, which has it once. */
static int32_t add_adapter(weft__graph_batch *b, weft_adapter *adapter)
{
    int32_t i = 0;
    while (i < b->rows.n_adapters && b->adapters[i] != adapter) i++;
    if (i < b->rows.n_adapters) return i;
    b->adapters[i] = adapter;
    b->rows.adapter = b->adapter;
    b->rows.adapters = b->adapters;
    return b->rows.n_adapters++;
}

int32_t weft__graph_batch_add_sequence(weft__graph_batch *b, weft_seq_view view, weft_adapter *adapter)
{
    const int32_t s = b->rows.n_seqs++;
    b->views[s] = view;
    b->adapter_of[s] = adapter ? add_adapter(b, adapter) : WEFT_NONE;
    return s;
}

void weft__graph_batch_set_pool(weft__graph_batch *b, int32_t pool, int32_t n_pools)
{
    b->pool[b->rows.n_seqs - 1] = pool;
    b->rows.pool = b->pool;
    b->rows.n_pools = n_pools;
}

void weft__graph_batch_add_row(weft__graph_batch *b, int32_t token, int32_t pos, unsigned want)
{
    const int32_t r = b->rows.n_rows++, s = b->rows.n_seqs - 1;
    b->token[r] = token;
    b->pos[r] = pos;
    b->seq[r] = s;
    b->adapter[r] = b->adapter_of[s];
    b->want[r] = (uint8_t)want;
    b->rows.n_wanted += (want & WEFT_WANT_LOGITS) != 0;
}
