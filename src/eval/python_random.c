// SPDX-License-Identifier: Apache-2.0
/* python_random.c: Python's random numbers (python_random.h). */
#include "eval/python_random.h"

#include "base/alloc.h"

enum { N = 624, M = 397 };

static void seed_one(weft__eval_random *r, uint32_t seed)
{
    r->state[0] = seed;
    for (uint32_t i = 1; i < N; i++) r->state[i] = 1812433253u * (r->state[i - 1] ^ r->state[i - 1] >> 30) + i;
    r->at = N;
}

/* By the seed's 32-bit words, the lowest first. */
void weft__eval_random_seed(weft__eval_random *r, uint64_t seed)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const int n_key = key[1] ? 2 : 1;
    int i = 1, j = 0;
    uint32_t *s = r->state;
    seed_one(r, 19650218u);
    for (int k = 0; k < N; k++) {
        s[i] = (s[i] ^ (s[i - 1] ^ s[i - 1] >> 30) * 1664525u) + key[j] + (uint32_t)j;
        if (++i == N) s[0] = s[N - 1], i = 1;
        if (++j == n_key) j = 0;
    }
    for (int k = 0; k < N - 1; k++) {
        s[i] = (s[i] ^ (s[i - 1] ^ s[i - 1] >> 30) * 1566083941u) - (uint32_t)i;
        if (++i == N) s[0] = s[N - 1], i = 1;
    }
    s[0] = 0x80000000u;
}

uint32_t weft__eval_random_u32(weft__eval_random *r)
{
    uint32_t *s = r->state;
    if (r->at >= N) {
        for (int i = 0; i < N; i++) {
            const uint32_t y = (s[i] & 0x80000000u) | (s[(i + 1) % N] & 0x7fffffffu);
            s[i] = s[(i + M) % N] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
        }
        r->at = 0;
    }
    uint32_t y = s[r->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* In [0, n), 1 <= n < 2^32: as many bits as n has, drawn until they are below it. */
static size_t below(weft__eval_random *r, size_t n)
{
    const int bits = 64 - __builtin_clzll((unsigned long long)n);
    size_t v;
    do v = weft__eval_random_u32(r) >> (32 - bits);
    while (v >= n);
    return v;
}

static int was_drawn(const size_t *items, size_t n, size_t v)
{
    for (size_t i = 0; i < n; i++)
        if (items[i] == v) return 1;
    return 0;
}

weft_status weft__eval_random_sample(weft__eval_random *r, size_t n, size_t k, size_t *out, weft_error *err)
{
    size_t most = 21; /* of a list that is rather copied than looked through */
    for (size_t four = 1; k > 5;) {
        four *= 4;
        if (four < k * 3) continue;
        most += four;
        break;
    }
    if (n >> 32) return weft_fail(err, WEFT_LIMIT, "%zu documents to draw from are too many", n);
    if (n > most) {
        for (size_t i = 0; i < k; i++) {
            do out[i] = below(r, n);
            while (was_drawn(out, i, out[i]));
        }
        return WEFT_OK;
    }
    size_t *pool = weft__alloc_array(n ? n : 1, sizeof *pool);
    if (!pool) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %zu documents to draw from", n);
    for (size_t i = 0; i < n; i++) pool[i] = i;
    for (size_t i = 0; i < k; i++) {
        const size_t j = below(r, n - i);
        out[i] = pool[j];
        pool[j] = pool[n - i - 1];
    }
    weft__free(pool);
    return WEFT_OK;
}
