// SPDX-License-Identifier: Apache-2.0
/* peak.c: what plain C reaches on registers (kernels.h): the limit that the ref tier is measured against. Reentrant. */
#include "kernels/list.h"

#include <string.h>

#include "base/clock.h"

enum { LANES = 32, STEPS = 1000 };

/* Keeps the compiler from knowing what a value is. */
#define HIDE(x) __asm__ volatile("" : "+m"(x))

double weft__peak_f32_fma_ref(int ms)
{
    float sum[LANES] = {0}, a[LANES], b[LANES];
    for (int i = 0; i < LANES; i++) a[i] = b[i] = 1.0f / (float)(i + 1);
    HIDE(a);
    HIDE(b);
    uint64_t begin = weft__clock_ns(), ns;
    int64_t n = 0;
    do {
        for (int s = 0; s < STEPS; s++) {
            for (int i = 0; i < LANES; i++) sum[i] += a[i] * b[i];
        }
        HIDE(sum);
        n += STEPS;
        ns = weft__clock_ns() - begin;
    } while (ns < (uint64_t)ms * 1000000);
    return 2.0 * LANES * (double)n / (double)ns;
}

double weft__peak_int8_dot_ref(int ms)
{
    int32_t sum[LANES] = {0};
    int8_t a[LANES], b[LANES];
    for (int i = 0; i < LANES; i++) a[i] = b[i] = (int8_t)(i + 1);
    uint64_t begin = weft__clock_ns(), ns;
    int64_t n = 0;
    do {
        for (int s = 0; s < STEPS; s++) {
            HIDE(a);
            for (int i = 0; i < LANES; i++) sum[i] += a[i] * b[i];
        }
        for (int i = 0; i < LANES; i++) sum[i] &= 0xFFFF;
        HIDE(sum);
        n += STEPS;
        ns = weft__clock_ns() - begin;
    } while (ns < (uint64_t)ms * 1000000);
    return 2.0 * LANES * (double)n / (double)ns;
}

uint64_t weft__peak_read_ref(const void *p, size_t n_bytes)
{
    const unsigned char *at = p;
    uint64_t x[8] = {0}, word[8];
    for (; n_bytes >= sizeof word; n_bytes -= sizeof word, at += sizeof word) {
        memcpy(word, at, sizeof word);
        for (int i = 0; i < 8; i++) x[i] ^= word[i];
    }
    for (; n_bytes; n_bytes--) x[0] ^= *at++;
    return x[0] ^ x[1] ^ x[2] ^ x[3] ^ x[4] ^ x[5] ^ x[6] ^ x[7];
}
