// SPDX-License-Identifier: Apache-2.0
/* kernels.h: contracts of the numeric kernels, and how one is chosen.
 *
 * Kernels see raw pointers, shapes and strides. Letters: M rows (tokens), N outputs (rows of the weight matrix), k
 * inputs. Invariants:
 *  - a row's result depends on that row's input only: a kernel sees how many rows there are in order to loop over them,
 *    and the sequence of float operations on one row is the same for every M ("same answer, always"; of a NaN, which
 *    one is not promised);
 *  - no kernel allocates, locks or fails; every pointer is valid for the stated bytes and no byte outside is written;
 *  - kernels.def lists every kernel; each tier is an object library with its own instruction flags.
 * All functions are reentrant. */
#ifndef WEFT_KERNELS_H
#define WEFT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"
#include "base/watch.h"
#include "kernels/product.h"
#include "weft/graph.h"

/* ---- matrix products ---- */

/* out[m][n] = sum over k of act[m][k] * W[n][k]. W is stored in panels of `panel_rows` weight rows × all of k, each
 * panel contiguous, panels in order of n; the last one is padded. Activations are first put into the form that the
 * kernel reads ("prepared"): float rows, 8-bit blocks with scales, bf16. Kernels that name the same weft__act read
 * the same prepared bytes, so q, k and v of mixed formats share one. */

/* Inputs [from, to) of rows [row, row + n), of rows of k inputs and m of them. Both ends are multiples of
 * WEFT__ACT_PART; `to` may be k. */
typedef struct weft__act_part {
    int64_t k, m, from, to, row, n;
} weft__act_part;

#define WEFT__ACT_PART 64

/* Prepared rows of so many bytes, read over and over while panels pass by, stay in half of a second-level cache of 1
 * MB, or hardly more; and of 512 KB, which processors without AVX-512 have. Callers that cut rows into chunks, and
 * kernels that cut what they are given, cut alike. */
#define WEFT__ACT_CHUNK_BYTES (576 << 10)
#define WEFT__ACT_CHUNK_BYTES_AVX2 (256 << 10)

typedef struct weft__act {
    const char *name;
    /* prepared rows [i*tile, (i+1)*tile) share lines of a cache: they are best put by one thread, and together */
    int tile;
    /* Bytes of m prepared rows of k elements (64-byte aligned by the caller), whole tiles. */
    size_t (*bytes)(int64_t k, int64_t m);
    /* Prepares a part; x: its floats, rows ldx apart. Which parts are put together, in which order and by which threads
     * changes no byte, and only the part's own bytes are written. Non-finite input gives non-finite output, never a
     * crash. */
    void (*put)(const float *x, int64_t ldx, const weft__act_part *part, void *act);
    /* Copies row `row` of m from `act` to row `to_row` of to_m in `to`: the same bytes as if it had been put there. */
    void (*take)(const void *act, int64_t k, int64_t row, int64_t m, void *to, int64_t to_row, int64_t to_m);
    int64_t k_block;    /* inputs that products take at a time, for which alone rows need to stay in a cache; 0: all */
    size_t chunk_bytes; /* of the rows that do; 0: WEFT__ACT_CHUNK_BYTES */
} weft__act;

/* Prepares row `row` of m, all of it. */
static inline void weft__act_put_row(const weft__act *form, const float *x, int64_t k, int64_t row, int64_t m,
                                     void *act)
{
    form->put(x, k, &(weft__act_part){.k = k, .m = m, .to = k, .row = row, .n = 1}, act);
}

typedef struct weft__matmul {
    const char *name; /* "matmul_q4_0_avx512vnni" */
    uint32_t dtype;   /* weft_dtype of W */
    weft__tier tier;
    int panel_rows;
    const weft__act *act;
    /* Bytes of a packed panel, a multiple of 64; or NULL: weights are used where they lie (panel_rows is 1, row_bytes
     * apart). */
    size_t (*panel_bytes)(int64_t k);
    const char *panels; /* the name of the kernel whose panels these are; NULL: of their own kind */
    /* Packs n_rows <= panel_rows rows, row_bytes apart, any alignment; missing rows are packed as zeros. k is a
     * multiple of the format's block, of no more. */
    void (*pack)(const uint8_t *rows, size_t row_bytes, int n_rows, int64_t k, void *panel);
    /* All of the product (product.h). ahead: what is read next, as far as the kernel gets; with too few rows to leave
     * memory idle (fewer than 16), only what the first range begins with, as the panels come to their end: a few KB,
     * whatever its size is. NULL: nothing is known of it. */
    void (*run)(const weft__product *p, weft__kernel_prefetch *ahead);
    /* Of one of p's m prepared rows: p->out[j] for j < n_out, the bits that run gives it. NULL: a row has to be taken
     * out first (weft__act.take). */
    void (*run_row)(const weft__product *p, int64_t row, weft__kernel_prefetch *ahead);
    int prefetches; /* 0: the kernel asks for nothing of `ahead` */
} weft__matmul;

/* Calls of these kernels, for callers with other threads: builds with the thread sanitizer compile them without it, as
 * it takes many times as long as they do to note each load, and are told here what a whole call reads and writes; of
 * weights, each panel's beginning. */
static inline void weft__matmul_watch(const weft__matmul *mm, const weft__product *p, int64_t m)
{
    for (int64_t i = 0; i * mm->panel_rows < p->n_out; i++)
        weft__watch_read((const uint8_t *)p->panels + (size_t)i * p->stride, 8);
    for (int64_t i = 0; i < m; i++) weft__watch_written(p->out + i * p->ldo, (size_t)p->n_out * sizeof *p->out);
}

static inline void weft__matmul_run(const weft__matmul *mm, const weft__product *p, weft__kernel_prefetch *ahead)
{
    weft__watch_read(p->act, mm->act->bytes(p->k, p->m));
    weft__matmul_watch(mm, p, p->m);
    mm->run(p, ahead);
}

/* The row is not watched: others, which another thread may be preparing, lie between its bytes. */
static inline void weft__matmul_run_row(const weft__matmul *mm, const weft__product *p, int64_t row,
                                        weft__kernel_prefetch *ahead)
{
    weft__matmul_watch(mm, p, 1);
    mm->run_row(p, row, ahead);
}

static inline void weft__matmul_pack(const weft__matmul *mm, const uint8_t *rows, size_t row_bytes, int n_rows,
                                     int64_t k, void *panel)
{
    weft__watch_written(panel, mm->panel_bytes(k));
    mm->pack(rows, row_bytes, n_rows, k, panel);
}

/* The kernel for a weight format: the highest tier of `tiers` (weft__tier_mask) that kernels.def lists. Never NULL for
 * the formats of weft_dtype that hold weights; NULL for integers. */
const weft__matmul *weft__matmul_find(uint32_t dtype, uint32_t tiers);

/* ---- adapters ---- */

/* An adapter's A is a matrix as above; its B [N][rank] has so few inputs that it gets kernels of its own: y[m][n] +=
 * sum over rank of B[n][rank] * h[m][rank]. B is stored in panels of WEFT__EXPAND_ROWS outputs, in order of n. */

#define WEFT__EXPAND_ROWS 16
#define WEFT__EXPAND_RANK_MAX 1024 /* 1 <= rank <= this */

typedef struct weft__expand {
    const char *name;
    uint32_t dtype; /* WEFT_F32, WEFT_BF16; WEFT_Q8_0 and WEFT_Q4_0 stand for 8 and 4 bits with a scale per output */
    weft__tier tier;
    size_t (*panel_bytes)(int64_t rank); /* any alignment */
    /* Packs n_rows <= WEFT__EXPAND_ROWS rows of `rank` finite floats, ldb apart, times factor; missing rows are packed
     * as zeros. */
    void (*pack)(const float *b, int64_t ldb, float factor, int n_rows, int64_t rank, void *panel);
    /* h in the form that run reads; 4-byte aligned, at most 16 + 4 * rank bytes. Non-finite input gives non-finite
     * output. */
    size_t (*h_bytes)(int64_t rank);
    void (*h_put)(const float *h, int64_t rank, void *to);
    /* y[i][j] += ... for j < n_out of m rows, from consecutive panels. next: what is read after them, to be asked for
     * early; or NULL. */
    void (*run)(const void *panels, int64_t n_out, int64_t rank, const void *const *h, int m, float *const *y,
                const void *next);
} weft__expand;

/* The kernel of the highest tier for one of the four types; NULL for another. */
const weft__expand *weft__expand_find(uint32_t dtype, uint32_t tiers);

/* ---- operations on rows ---- */

typedef struct weft__attn {
    /* Queries [head_dim_k]: n_q of them share one key/value head, row_heads of each row (weft__attn_query). */
    const float *q;
    int64_t head_stride, row_stride;
    int32_t n_q, row_heads;
    int32_t head_dim_k, head_dim_v;
    /* Query i sees positions [begin[i], end[i]) of its sequence; begin and end do not decrease with i. */
    const int32_t *begin, *end;
    /* Pages of the sequence: page j holds positions [j * page_tokens, ...). Keys of this head and layer begin at
     * data + pages[j] * page_bytes + k_offset, values at ... + v_offset. -1: dropped, never visible. */
    const uint8_t *data;
    const int32_t *pages;
    uint64_t page_bytes, k_offset, v_offset;
    int32_t page_tokens;
    float scale, softcap;
    /* Keys and values that are read after these, and how many slots of their page: fetched meanwhile. NULL: not
     * known. */
    const uint8_t *next_k, *next_v;
    int32_t next_slots;
} weft__attn;

static inline const float *weft__attn_query(const weft__attn *a, int i)
{
    return a->q + i / a->row_heads * a->row_stride + i % a->row_heads * a->head_stride;
}

/* What lies further than this below a maximum weighs nothing in attn_split and exp_sum. It would be a denormal number,
 * and where attention is sharp nearly all would: some processors take 150 cycles for a product with one. */
#define WEFT__SOFTMAX_FAR 87.0f

/* The least magnitude that codes of a row in a coded page are made for, and of a block of one. */
#define WEFT__ATTN_CODED_LEAST 0x1p-100f

/* The largest code of a query, of 14 bits: what rounding a query adds to that of 8-bit keys is lost in it. */
#define WEFT__ATTN_QUERY_MOST 8191

/* Of WEFT_KV_Q4: elements that share a scale, and where among the sixteen values (weft__block_iq4_values) the encoder
 * tries to put the block's largest magnitude. */
#define WEFT__ATTN_Q4_BLOCK 32
#define WEFT__ATTN_Q4_PLACES 130, 120, 110, 100, -130, -120, -110, -100

/* The bytes of a row in WEFT_KV_F8 that was not finite. */
#define WEFT__ATTN_F8_NAN 0x7f

/* A partial softmax: m maximum, l sum of exp(s - m), acc[head_dim_v] the weighted values. [2 + head_dim_v] floats. */
#define WEFT__ATTN_SPLIT_TOKENS                                                                                        \
    1024 /* positions [s * SPLIT, (s+1) * SPLIT) are one split, whatever the number of threads */

typedef struct weft__kernels {
    weft__tier tier; /* the highest tier used by any of them */
    /* y = x / sqrt(mean(x²) + eps) * w; w may be NULL (all ones); y may be x. */
    void (*norm_rms)(const float *x, const float *w, float eps, int64_t n, float *y);
    /* y = a + b; y may be either. */
    void (*add)(const float *a, const float *b, int64_t n, float *y);
    /* y = x * factor; y may be x. */
    void (*scale)(const float *x, float factor, int64_t n, float *y);
    /* y = act(gate) * up for weft_activation act; y may be either. */
    void (*glu)(int act, const float *gate, const float *up, int64_t n, float *y);
    /* y = cap * tanh(x / cap); y may be x. */
    void (*softcap)(const float *x, float cap, int64_t n, float *y);
    /* Rotates n_heads heads of head_dim in place; cs holds cos and sin, [n_rot/2][2]; elements beyond n_rot stay. */
    void (*rope)(float *x, int n_heads, int head_dim, int n_rot, int style, const float *cs);
    /* Stores one token's k [head_dim_k] (v [head_dim_v]) of one head at slot `slot` of a page's part, in the order that
     * the attention kernel of the same table reads; dtype WEFT_F32 or WEFT_F16. */
    void (*kv_put_k)(const float *k, int head_dim, int slot, int page_tokens, uint32_t dtype, void *part);
    void (*kv_put_v)(const float *v, int head_dim, int slot, int page_tokens, uint32_t dtype, void *part);
    /* Partial attention of every query over split `split`: state + i * (2 + head_dim_v), for queries that see nothing
     * there m = -inf, l = 0, acc = 0. dtype of the pages. scratch: weft__attn_scratch(a) floats. */
    void (*attn_split)(const weft__attn *a, uint32_t dtype, int split, float *scratch, float *state);
    /* out[i] from the states of n_splits splits of one query, `stride` floats apart, in order. */
    void (*attn_combine)(const float *state, int64_t stride, int n_splits, int head_dim_v, float *out);
    /* y = x rotated, which undoes itself: a fast Walsh-Hadamard transform of each block of head_dim's largest power of
     * two, times 1 / sqrt(block); butterflies of the nearest first, each sum rounded to F32. y may be x. */
    void (*kv_rotate)(const float *x, int head_dim, float *y);
    /* kv_put_k and kv_put_v for a coded format (weft_kv_is_coded); head_dim <= WEFT_KV_CODED_MAX. Part and bits are
     * the same in every tier.
     *  WEFT_KV_Q8  the row is rotated; with the largest magnitude m, the scale is m / 127, a code x * (127 / m) to the
     *              nearest, ties to even
     *    keys    per 16 slots, per 4 elements: [16][4] bytes, codes + 128 (elements behind the last: 128)
     *    values  [slot][head_dim] codes
     *    then [page_tokens] scales, F32
     *  WEFT_KV_Q4  the row is rotated; each WEFT__ATTN_Q4_BLOCK elements have a scale in BF16, and codes 0 to 15, each
     *              the nearest of weft__block_iq4_values, of two the lower. For each place p of WEFT__ATTN_Q4_PLACES
     *              x * (p / m) gets codes, whose values are c; with a = sum(x * (p / m) * c) * (1 / p) and b = sum(c *
     *              c), the sums taken in halves, the scale is a / b * m of the place whose a * (a / b) is the largest,
     *              the first of equals; the codes are those of x * (1 / scale)
     *    keys    per 16 slots, per 8 elements: [16][4] bytes, elements 0-3 in the lower halves, 4-7 in the upper ones
     *    values  [slot], per 16 elements: 8 bytes, elements 0-7 in the lower halves, 8-15 in the upper ones
     *    then [blocks][page_tokens] scales; what fills up the last eight or sixteen is 0
     *  WEFT_BF16, WEFT_KV_F8 (E4M3, beyond 448: 448)
     *    keys    per 16 slots, per element: [16]
     *    values  [slot][head_dim]
     * Below WEFT__ATTN_CODED_LEAST scale and codes are 0; where an element, rotated if the format is, is not finite,
     * scales are NaN, and codes 0; in WEFT_KV_F8 all are WEFT__ATTN_F8_NAN. */
    void (*kv_code_k)(const float *k, int head_dim, int slot, int page_tokens, uint32_t format, void *part);
    void (*kv_code_v)(const float *v, int head_dim, int slot, int page_tokens, uint32_t format, void *part);
    /* attn_split over pages in which keys and values have these formats: any two but WEFT_F16 or WEFT_F32 for both.
     * Over rotated keys queries are rotated and coded, each alone: whole numbers up to WEFT__ATTN_QUERY_MOST and a
     * scale; a score is the exact sum of their products, of each block, times the scales. Over rotated values acc
     * stays rotated. */
    void (*attn_coded)(const weft__attn *a, uint32_t format_k, uint32_t format_v, int split, float *scratch,
                       float *state);
    /* dst[n] = the row decoded (embedding lookup). */
    void (*decode_row)(uint32_t dtype, const void *row, int64_t n, float *dst);
    /* Index of the largest element, the first of equals; NaN counts as smallest. */
    int64_t (*argmax)(const float *x, int64_t n);

    /* Backward (training). What norm_rms did to x, `inverse` being its 1 / sqrt(mean(x²) + eps), undone for the
     * gradient dy of y: dx = inverse * dy * w - x * inverse³ / n * sum(dy * w * x); dx is no other argument. */
    void (*norm_back)(const float *x, const float *w, const float *dy, double inverse, int64_t n, float *dx);
    /* dgate = dy * up * act'(gate), dup = dy * act(gate); they may be gate and up. */
    void (*glu_back)(int act, const float *gate, const float *up, const float *dy, int64_t n, float *dgate, float *dup);
    /* y = e^(x - shift), 0 below -WEFT__SOFTMAX_FAR; returns the sum of y. shift: the maximum, or more. y may be x. */
    double (*exp_sum)(const float *x, float shift, int64_t n, float *y);
} weft__kernels;

/* Scratch floats that attn_split needs: scores of a group of queries against a split, and the group's queries. */
#define WEFT__ATTN_GROUP 8
#define WEFT__ATTN_SCORES (WEFT__ATTN_SPLIT_TOKENS + 16)
size_t weft__attn_scratch(int n_q, int page_tokens, int head_dim_k, int head_dim_v);

/* The table for a set of tiers: ref in every slot, then overwritten by each tier that may run. Immutable, one per set,
 * valid for ever. Thread-safe. */
const weft__kernels *weft__kernels_get(uint32_t tiers);

/* ---- products of f32 matrices, for training ---- */

/* Both factors are packed into strips, element after element of k: `mr` rows of the left one, `nr` columns of the right
 * one. An element of a strip is a float, 4 bytes: one input (F32), or two inputs rounded to BF16, the even one in the
 * lower half. A number of the product is one chain over the elements, in order. */
typedef struct weft__gemm {
    const char *name;
    uint32_t dtype; /* WEFT_F32, WEFT_BF16 */
    weft__tier tier;
    int mr, nr;
    /* c[i * ldc + j] = (add: what is there, else 0) + sum over p < k of a[p * mr + i] * b[p * nr + j], for i < mr, j <
     * nr; k: elements. */
    void (*tile)(int64_t k, const float *a, const float *b, float *c, int64_t ldc, int add);
    /* The same, bit for bit, of columns [0, nr / 2) alone, of strips that are as wide. */
    void (*half)(int64_t k, const float *a, const float *b, float *c, int64_t ldc, int add);
    /* dst[p * width + j] = src[j * ld + p] for j < n_rows, p < k: rows of elements become part of a strip of `width`.
     * Bits are moved as they are. */
    void (*turn)(const float *src, int64_t ld, int n_rows, int64_t k, float *dst, int64_t width);
    /* BF16 alone. The n inputs of a row as ceil(n / 2) elements, behind the last a zero. */
    void (*round)(const float *x, int64_t n, float *to);
    /* Element i is x[i] and y[i], i < n; y NULL: zeros. */
    void (*pair)(const float *x, const float *y, int64_t n, float *to);
} weft__gemm;

#define WEFT__GEMM_MAX_MR 12 /* of any tier */
#define WEFT__GEMM_MAX_NR 32

/* The one of the highest tier of `tiers` whose elements are of `dtype`, WEFT_F32 or WEFT_BF16. Subnormal numbers may
 * count as zero in BF16. */
const weft__gemm *weft__gemm_find(uint32_t dtype, uint32_t tiers);

/* Measured limits of one thread's share: each spins for about `ms` milliseconds on registers and returns 10^9 multiply
 * and add operations per second; NULL where the tier has no such unit. */
typedef struct weft__peak_kernels {
    double (*int8_dot)(int ms);
    double (*bf16_dot)(int ms);
    double (*f32_fma)(int ms);
    /* Reads n_bytes at p once (p 64-byte aligned) and returns a value that depends on them. */
    uint64_t (*read)(const void *p, size_t n_bytes);
} weft__peak_kernels;

void weft__peak_kernels_get(uint32_t tiers, weft__peak_kernels *out);

/* ---- the list ---- */

/* One line of kernels.def, for tests, benchmarks and the start-up log. */
typedef struct weft__kernel_entry {
    const char *op;     /* "matmul", "norm_rms", ... */
    const char *format; /* weight or page format, "-" where there is none */
    const char *tile;   /* "16x8" */
    weft__tier tier;
    const char *function;
    double tolerance;           /* bound against ref that check-kernels enforces (kernels.def says of what) */
    const weft__matmul *matmul; /* NULL for other ops */
    const weft__gemm *gemm;     /* NULL for other ops */
    const weft__expand *expand; /* NULL for other ops */
} weft__kernel_entry;

const weft__kernel_entry *weft__kernel_list(int *n);

#endif
