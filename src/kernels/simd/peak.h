// SPDX-License-Identifier: Apache-2.0
/* peak.h: a loop of independent dot products on registers, for any vector tier (kernels.h, weft__peak_kernels).
 *
 * The file that includes it defines PEAK_VEC, the accumulator; PEAK_STEP(acc), one operation on it; and PEAK_ZERO, its
 * start; the caller gives multiplications and additions per step. Twelve chains cover the latency of every known
 * unit. */
#include "base/clock.h"
#include "kernels/simd/unroll.h"

static inline double peak_spin(int ms, double ops_per_step)
{
    enum { CHAINS = 12, STEPS = 4096 };
    PEAK_VEC acc[CHAINS];
    UNROLL
    for (int i = 0; i < CHAINS; i++) acc[i] = PEAK_ZERO;
    uint64_t begin = weft__clock_ns(), ns;
    double n = 0;
    do {
        for (int s = 0; s < STEPS; s++) {
            UNROLL
            for (int i = 0; i < CHAINS; i++) {
                PEAK_VEC next = PEAK_STEP(acc[i]);
                __asm__ volatile("" : SIMD_REGISTER(next)); /* neither merged nor removed */
                acc[i] = next;
            }
        }
        n += (double)STEPS * CHAINS;
        ns = weft__clock_ns() - begin;
    } while (ns < (uint64_t)ms * 1000000);
    return n * ops_per_step / (double)ns;
}
