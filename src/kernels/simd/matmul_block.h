// SPDX-License-Identifier: Apache-2.0
/* matmul_block.h: a block of a matrix, which functions that take two panels at once work on, and what they prefetch
 * meanwhile for their callers (words: matmul_quant.h). */
#ifndef WEFT_KERNELS_SIMD_MATMUL_BLOCK_H
#define WEFT_KERNELS_SIMD_MATMUL_BLOCK_H

#include "kernels/kernels.h"
#include "kernels/simd/matmul_layout.h"

enum {
    MM_CHUNK_ROWS = 256, /* rows at most that share the fetching of a panel */
    MM_BLOCK_STEPS = 32  /* steps of a block: 2048 inputs */
};

/* Products are taken MM_BLOCK_STEPS steps at a time, so that the activations of many rows stay in the second-level
 * cache while the panels pass by, however many inputs there are. A block of a matrix, for functions that take pairs of
 * panels: */
typedef struct mm_block {
    const uint8_t *w;     /* of the first panel */
    const uint8_t *after; /* what comes behind the last pair, to fetch it */
    size_t stride;        /* between panels */
    int64_t n_spans;
    const uint8_t *act; /* of the first row; tiles are row_bytes * MM_TILE apart */
    int64_t row_bytes;
    int more;                     /* sums go on from what is in out */
    weft__kernel_prefetch *ahead; /* or NULL */
} mm_block;

static inline void mm_next_range(weft__kernel_prefetch *ahead)
{
    if (ahead->n == 0) {
        ahead->lines = 0;
        return;
    }
    ahead->at = (uintptr_t)ahead->range->at & ~(uintptr_t)63;
    ahead->end = (uintptr_t)ahead->range->at + ahead->range->n;
    ahead->range++;
    ahead->n--;
}

/* A step's lines. (More of them after every few steps cost more.) */
MM_INLINE void mm_fetch_ahead(weft__kernel_prefetch *ahead)
{
    const uintptr_t end = ahead->at + 64 * (uintptr_t)ahead->lines;
    for (; ahead->at < end; ahead->at += 64) _mm_prefetch((const char *)ahead->at, _MM_HINT_T1);
    if (end >= ahead->end) mm_next_range(ahead);
}

/* Spreads what is left to be asked for over n_steps, each with lines of one range; where there are hardly more steps
 * than ranges, all of it comes at once. */
static inline void mm_spread(weft__kernel_prefetch *ahead, int64_t n_steps)
{
    const int64_t even = n_steps - ahead->n - 1; /* the last lines of a range are fewer */
    size_t lines = ahead->end > ahead->at ? (ahead->end - ahead->at + 63) / 64 : 0;
    if (n_steps <= 0) return;
    for (int i = 0; i < ahead->n; i++) lines += (ahead->range[i].n + 63) / 64 + 1; /* it may begin within a line */
    ahead->lines = (int)(even > 0 ? (lines + (size_t)even - 1) / (size_t)even : lines);
    if (ahead->at >= ahead->end) mm_next_range(ahead);
    while (even <= 0 && ahead->lines > 0) mm_fetch_ahead(ahead);
}

#endif
