// SPDX-License-Identifier: Apache-2.0
/* random.c: xoshiro256** 1.0 seeded through SplitMix64 (random.h). A generator belongs to one thread. */
#include "base/random.h"

#include <math.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"

/* One step of SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void weft__rng_seed(weft__rng *rng, uint64_t seed)
{
    for (int i = 0; i < 4; i++) rng->s[i] = splitmix(&seed);
}

uint64_t weft__rng_u64(weft__rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

double weft__rng_double(weft__rng *rng)
{
    return (double)(weft__rng_u64(rng) >> 11) * 0x1p-53;
}

uint64_t weft__rng_below(weft__rng *rng, uint64_t n)
{
    /* The lowest 2^64 mod n values are refused, so that what remains divides evenly. */
    uint64_t refuse = (0 - n) % n, x;
    do x = weft__rng_u64(rng);
    while (x < refuse);
    return x % n;
}

double weft__rng_normal(weft__rng *rng)
{
    double u = 1.0 - weft__rng_double(rng); /* in (0, 1]: its logarithm is finite */
    double v = weft__rng_double(rng);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586476925 * v);
}

uint64_t weft__rng_entropy(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) == (ssize_t)sizeof seed) return seed;
    seed = weft__clock_ns() ^ ((uint64_t)getpid() << 40);
    return splitmix(&seed);
}
