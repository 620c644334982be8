// SPDX-License-Identifier: Apache-2.0
/* steal.c: shares of a product in blocks (steal.h). */
#include "backend/cpu/run/steal.h"

#include "backend/cpu/program.h"

int weft__cpu_block_of(weft__cpu_shares s, int owner, int64_t b, weft__cpu_block_size size, weft__cpu_outputs *o)
{
    for (int i = 0; i < s.n_columns; i++) {
        const weft__cpu_outputs share = weft__cpu_share_of(s, owner, i);
        /* So many of the largest have as much again behind them; they are not gone through, as a vocabulary may have
         * hundreds. */
        const int64_t largest = (share.last - share.first) / size.max - 1;
        const int64_t skipped = b < largest ? b : largest > 0 ? largest : 0;
        b -= skipped;
        for (int64_t first = share.first + skipped * size.max, n; first < share.last; first += n) {
            n = (share.last - first) / 2 / size.min * size.min;
            if (n < size.min) n = size.min;
            if (n > size.max) n = size.max;
            *o = (weft__cpu_outputs){i, first, first + n < share.last ? first + n : share.last};
            if (b-- == 0) return 1;
        }
    }
    return 0;
}

int weft__cpu_n_blocks(weft__cpu_shares s, int owner, weft__cpu_block_size size)
{
    int n = 0;
    weft__cpu_outputs o;
    while (weft__cpu_block_of(s, owner, n, size, &o)) n++;
    return n;
}

/* Two products in a row use two lists: each thread empties its part of the next one's, which all have left behind at
 * the barrier before this. */
weft__cpu_claim *weft__cpu_claims_of(weft_run *run, int thread, size_t n_chunks)
{
    const size_t half = run->program->needs.chunks * (size_t)run->n_threads;
    weft__cpu_thread *th = &run->threads[thread];
    const int now = th->claims;
    weft__cpu_claim *next = run->claims + (now ? 0 : half);
    for (size_t c = 0; c < th->n_claimed[!now]; c++)
        atomic_store_explicit(&next[c * (size_t)run->n_threads + (size_t)thread].next, 0, memory_order_relaxed);
    th->n_claimed[now] = n_chunks;
    th->claims = !now;
    return run->claims + (now ? half : 0);
}

void weft__cpu_forget_claims(weft_run *run)
{
    for (size_t c = 0; c < 2 * run->program->needs.chunks * (size_t)run->program->backend->n_threads; c++)
        atomic_store_explicit(&run->claims[c].next, 0, memory_order_relaxed);
    for (int t = 0; t < run->program->backend->n_threads; t++) {
        run->threads[t].claims = 0;
        run->threads[t].n_claimed[0] = run->threads[t].n_claimed[1] = 0;
    }
}

int weft__cpu_take_block(weft__cpu_shares s, int owner, weft__cpu_claim *claim, weft__cpu_block_size size,
                         weft__cpu_outputs *o)
{
    /* To look costs less than to count, where others look, too. */
    return weft__cpu_block_of(s, owner, atomic_load_explicit(&claim->next, memory_order_relaxed), size, o) &&
           weft__cpu_block_of(s, owner, atomic_fetch_add_explicit(&claim->next, 1, memory_order_relaxed), size, o);
}
