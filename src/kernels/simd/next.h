// SPDX-License-Identifier: Apache-2.0
/* next.h: asking for memory before it is used. Panels are read a unit at a time; with each unit, the one `distance`
 * farther on is asked for. Behind the end of the panels, what is read next is asked for instead, from its beginning. */
#ifndef WEFT_KERNELS_SIMD_NEXT_H
#define WEFT_KERNELS_SIMD_NEXT_H

#include <stddef.h>
#include <stdint.h>

typedef struct simd_next {
    size_t distance;
    uintptr_t end, jump; /* what lies at `end` or behind it is not asked for, but what lies `jump` farther on */
} simd_next;

/* Of n_bytes from `begin` on. The distance, rounded to whole units, is no more than all of them, so that no unit of
 * what is read next is left out. next: NULL where nothing is known of it: there, nothing but the unit at hand is asked
 * for. */
static inline simd_next simd_next_of(const void *begin, size_t n_bytes, size_t unit, size_t distance, const void *next)
{
    const size_t whole = (distance + unit - 1) / unit * unit;
    simd_next n = {.distance = whole < n_bytes ? whole : n_bytes, .end = (uintptr_t)begin + n_bytes};
    n.jump = next ? (uintptr_t)next - n.end : (uintptr_t)0 - n.distance;
    return n;
}

/* What is asked for while the unit at `at` is read. */
static inline uintptr_t simd_ask(const simd_next *n, uintptr_t at)
{
    const uintptr_t ask = at + n->distance;
    return ask >= n->end ? ask + n->jump : ask;
}

/* The compiler moves no load and no request across this. */
static inline void simd_fence(void)
{
    __asm__ volatile("" : : : "memory");
}

/* The line at `at` is soon written. (On x86 what the compiler offers needs a flag that tiers do not set; processors
 * without the instruction do nothing.) */
static inline void simd_own(const void *at)
{
#ifdef __x86_64__
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
    __builtin_prefetch(at, 1, 3);
#endif
}

#endif
