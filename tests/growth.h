// SPDX-License-Identifier: Apache-2.0
/* growth.h: claims about how cost grows. No clock is the same on two machines, nor on one that others use; what two
 * sizes of the same work take in one run is, when it is the thread's own time and the least of several. Thread-safe. */
#ifndef WEFT_TESTS_GROWTH_H
#define WEFT_TESTS_GROWTH_H

#include <stddef.h>
#include <time.h>

/* This thread's own time in seconds: what others take of the machine does not count. */
static inline double own_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What eight times the work may take, in times: linear work takes 8 and n log n some 10, more where the caches no
 * longer hold it; squares take 64. */
enum { GROWTH_SIZES = 8, GROWTH_MOST = 24, GROWTH_TRIES = 6 };

/* Seconds of own time that work of size n took. */
typedef double growth_work(void *arg, size_t n);

/* How many times as long n takes as n / GROWTH_SIZES: the least of each, of a few tries until that is no more than
 * GROWTH_MOST; two where it is much more. */
static inline double growth_of(growth_work *work, void *arg, size_t n)
{
    double few = 1e9, all = 1e9, times = 1e9;
    for (int i = 0; i < GROWTH_TRIES && times > GROWTH_MOST && (i < 2 || times < 2 * GROWTH_MOST); i++) {
        double a = work(arg, n / GROWTH_SIZES), b = work(arg, n);
        few = a < few ? a : few;
        all = b < all ? b : all;
        times = all / few;
    }
    return times;
}

#endif
