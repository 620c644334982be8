// SPDX-License-Identifier: Apache-2.0
/* product.h: what a kernel of products is called with: one struct, which says what is read, what is written and the
 * shapes of both, and one cursor over what will be read next.
 *
 * A part of a product, fewer rows or fewer outputs, is a product, too: the loops of simd/ hand parts on in the same
 * struct. Owner of all memory: the caller. No kernel writes a product; a cursor belongs to one thread. */
#ifndef WEFT_KERNELS_PRODUCT_H
#define WEFT_KERNELS_PRODUCT_H

#include <stddef.h>
#include <stdint.h>

/* out[m][n] = sum over k of act[m][k] * W[n][k] for M rows, N outputs and K inputs. */
typedef struct weft__product {
    /* Read: W, ceil(n_out / panel_rows) consecutive panels, from one to the next `stride` bytes: those of packed panels
     * (64-byte aligned), or of a row where weights are used where they lie (any alignment). */
    const void *panels;
    size_t stride;
    int64_t n_out; /* N, at least 1 */
    int64_t k;     /* K, a multiple of the format's block */
    /* Read: the prepared rows (weft__act), 64-byte aligned, of which tiles are read whole. */
    const void *act;
    int64_t m; /* M, at least 1 */
    /* Written: out[i * ldo + j] for i < m and j < n_out, exactly these floats; any alignment of a float. */
    float *out;
    int64_t ldo; /* floats from row to row, at least n_out where there are two */
} weft__product;

/* The product of rows [first, first + n) alone, whole tiles or the last ones; row_bytes: of a prepared row. */
static inline weft__product weft__product_rows(const weft__product *p, int64_t row_bytes, int64_t first, int64_t n)
{
    weft__product part = *p;
    part.act = (const uint8_t *)p->act + first * row_bytes;
    part.m = n;
    part.out = p->out + first * p->ldo;
    return part;
}

/* What is read soon after a product. Where multiplying leaves memory time to spare, a kernel asks for a line of these
 * bytes now and then (many asked for at once hold each other up). Nothing depends on it, and nothing may be asked
 * for. */
typedef struct weft__range {
    const uint8_t *at;
    size_t n; /* bytes, not 0 */
} weft__range;

typedef struct weft__kernel_prefetch {
    const weft__range *range; /* n of them are left, and of one that was begun the lines at [at, end) */
    int n;
    int lines; /* the kernel's own: lines per step of its inner loop */
    uintptr_t at, end;
} weft__kernel_prefetch;

/* Where what is read next begins; NULL: nothing is known of it. */
static inline const uint8_t *weft__prefetch_first(const weft__kernel_prefetch *ahead)
{
    return ahead && ahead->n ? ahead->range->at : NULL;
}

#endif
