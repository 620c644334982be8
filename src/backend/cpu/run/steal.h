// SPDX-License-Identifier: Apache-2.0
/* steal.h: a thread's share of a product in blocks, which other threads take when they are done with their own.
 *
 * The shares are a split of the outputs; a block belongs to a share, and a count for each share and chunk of rows says
 * how many of its blocks were taken. Which thread computes a block changes nothing but time. Thread safety: any thread
 * of the team takes blocks; the lists of counts are emptied a product ahead, between two barriers. */
#ifndef WEFT_BACKEND_CPU_STEAL_H
#define WEFT_BACKEND_CPU_STEAL_H

#include <stdatomic.h>

#include "backend/cpu/step.h"

/* How many blocks of a thread's outputs, for one chunk of rows, have been taken, by itself or by others. */
typedef struct weft__cpu_claim {
    _Alignas(WEFT__CPU_LINE) atomic_int next;
} weft__cpu_claim;

/* Outputs that are computed together: of column i, [first, last). */
typedef struct weft__cpu_outputs {
    int i;
    int64_t first, last;
} weft__cpu_outputs;

/* The first output of every thread in each of n_columns columns: split [n_threads + 1][n_columns]. */
typedef struct weft__cpu_shares {
    const int64_t *split;
    int n_columns;
} weft__cpu_shares;

/* Outputs of a block: half of what is left of a column, within these bounds, which are multiples of the least block.
 * Each block costs some time of its own, and the last ones decide how long threads wait for each other. */
typedef struct weft__cpu_block_size {
    int64_t min, max;
} weft__cpu_block_size;

static inline weft__cpu_outputs weft__cpu_share_of(weft__cpu_shares s, int thread, int i)
{
    const int64_t *split = s.split + thread * s.n_columns + i;
    return (weft__cpu_outputs){i, split[0], split[s.n_columns]};
}

/* Block number b of a thread's share; 0 when it has fewer. */
int weft__cpu_block_of(weft__cpu_shares s, int owner, int64_t b, weft__cpu_block_size size, weft__cpu_outputs *o);
/* How many there are. */
int weft__cpu_n_blocks(weft__cpu_shares s, int owner, weft__cpu_block_size size);
/* The next block of an owner's share that no thread has taken; 0: there is none. */
int weft__cpu_take_block(weft__cpu_shares s, int owner, weft__cpu_claim *claim, weft__cpu_block_size size,
                         weft__cpu_outputs *o);

/* The counts of a product: for each of n_chunks chunks one for every thread, none taken yet. Each thread of the team
 * calls it once for each product that is computed in blocks, before a barrier. */
weft__cpu_claim *weft__cpu_claims_of(weft_run *run, int thread, size_t n_chunks);
/* No block is taken; between steps, when the number of threads changes. */
void weft__cpu_forget_claims(weft_run *run);

#endif
