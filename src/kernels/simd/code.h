// SPDX-License-Identifier: Apache-2.0
/* code.h: rows rotated, and as whole numbers (kernels.h: kv_rotate, kv_code_k), for the vectors of the file that
 * includes it. Every element is computed by the operations that ref has, so the bits are ref's. */
#ifndef WEFT_KERNELS_SIMD_CODE_H
#define WEFT_KERNELS_SIMD_CODE_H

#include <math.h>
#include <string.h>

#include "kernels/list.h"
#include "kernels/simd/vecmath.h"

/* ---- the rotation ---- */

/* x + its neighbour `distance` lanes away where that comes behind, the neighbour - x where it comes before: a
 * butterfly inside of a vector. A product with 1 or -1 is exact. */
static inline vf turn_lanes(vf x, vf neighbour, int distance)
{
    static const float signs[4][16] = {{1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1},
                                       {1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1},
                                       {1, 1, 1, 1, -1, -1, -1, -1, 1, 1, 1, 1, -1, -1, -1, -1},
                                       {1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1, -1}};
    return vf_fma(x, vf_load(signs[distance == 1 ? 0 : distance == 2 ? 1 : distance == 4 ? 2 : 3]), neighbour);
}

static inline vf turn_vector(vf x, int block)
{
    if (block > 1) x = turn_lanes(x, vf_swap_pairs(x), 1);
    if (block > 2) x = turn_lanes(x, vf_swap_fours(x), 2);
    if (block > 4) x = turn_lanes(x, vf_swap_eights(x), 4);
#if VF_N > 8
    if (block > 8) x = turn_lanes(x, vf_swap_halves(x), 8);
#endif
    return x;
}

/* y may be x. */
static inline void turn(const float *x, int n, float *y)
{
    const int block = n & -n;
    const float factor = 1.0f / sqrtf((float)block);
    for (int i = 0; i < n; i += VF_N) {
        vf v = turn_vector(vf_get(x + i, n - i), block);
        vf_put(y + i, block > VF_N ? v : vf_mul(v, vf_set(factor)), n - i);
    }
    for (int h = VF_N; h < block; h *= 2) {
        const vf f = vf_set(2 * h < block ? 1.0f : factor);
        for (int begin = 0; begin < n; begin += 2 * h)
            for (int i = begin; i < begin + h; i += VF_N) {
                const vf a = vf_load(y + i), b = vf_load(y + i + h);
                vf_store(y + i, vf_mul(vf_add(a, b), f));
                vf_store(y + i + h, vf_mul(vf_sub(a, b), f));
            }
    }
}

/* ---- whole numbers ---- */

/* The largest magnitude of n elements; *finite: whether all of them are. */
static inline float row_most(const float *x, int n, int *finite)
{
    vf most = vf_zero(), strange = vf_zero();
    for (int i = 0; i < n; i += VF_N) {
        const vf v = vf_get(x + i, n - i);
        most = vf_max(vf_abs(v), most);
        strange = vf_add(strange, vf_sub(v, v)); /* 0, but of an infinity or NaN */
    }
    *finite = vf_sum(strange) == 0;
    return vf_most(most);
}

/* codes[i] = x[i] / scale, to the nearest, ties to even, at most `most`; returns the scale: NaN, with codes of 0, where
 * x is not finite. */
static inline float coded_row(const float *x, int n, int most, int8_t *codes)
{
    int finite;
    const float largest = row_most(x, n, &finite);
    if (!finite || largest < WEFT__ATTN_CODED_LEAST) {
        memset(codes, 0, (size_t)n);
        return finite ? 0 : NAN;
    }
    const vf factor = vf_set((float)most / largest);
    for (int i = 0; i < n; i += VF_N) {
        int8_t whole[VF_N];
        vf_store_i8(n - i < VF_N ? whole : codes + i, vf_mul(vf_get(x + i, n - i), factor));
        if (n - i < VF_N) memcpy(codes + i, whole, (size_t)(n - i));
    }
    return largest / (float)most;
}

/* The same in 16 bits; codes has room for whole vectors, and those behind the last are 0. */
static inline float coded_row_wide(const float *x, int n, int most, int16_t *codes)
{
    int finite;
    const float largest = row_most(x, n, &finite);
    const int none = !finite || largest < WEFT__ATTN_CODED_LEAST;
    const vf factor = vf_set(none ? 0 : (float)most / largest);
    for (int i = 0; i < n; i += VF_N) vf_store_i16(codes + i, none ? vf_zero() : vf_mul(vf_get(x + i, n - i), factor));
    return none ? finite ? 0 : NAN : largest / (float)most;
}

#endif
