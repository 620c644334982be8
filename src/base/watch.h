// SPDX-License-Identifier: Apache-2.0
/* watch.h: tells the thread sanitizer what code reads and writes that was compiled without it. Empty in other
 * builds. */
#ifndef WEFT_BASE_WATCH_H
#define WEFT_BASE_WATCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __SANITIZE_THREAD__
/* As the compiler knows them. */
void __tsan_read_range(void *at, intptr_t n);
void __tsan_write_range(void *at, intptr_t n);
#endif

/* n bytes are read by this thread. */
static inline void weft__watch_read(const void *at, size_t n)
{
#ifdef __SANITIZE_THREAD__
    __tsan_read_range((void *)(uintptr_t)at, (intptr_t)n);
#else
    (void)at, (void)n;
#endif
}

/* n bytes are written by this thread. */
static inline void weft__watch_written(void *at, size_t n)
{
#ifdef __SANITIZE_THREAD__
    __tsan_write_range(at, (intptr_t)n);
#else
    (void)at, (void)n;
#endif
}

#endif
