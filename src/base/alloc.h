// SPDX-License-Identifier: Apache-2.0
/* alloc.h: every heap byte of the core comes from here.
 *
 * Invariant: memory from weft__alloc* goes back through weft__free, and nothing else allocates (libraries that take
 * allocator callbacks are given these). One hook replaces the underlying allocator; tests use it to count and to fail
 * on purpose. Thread safety: all functions are thread-safe; the hook is installed before any other thread exists. */
#ifndef WEFT_BASE_ALLOC_H
#define WEFT_BASE_ALLOC_H

#include <stddef.h>

/* All return NULL on failure or when n * size overflows. A request of 0 bytes returns a unique pointer. */
void *weft__alloc(size_t n_bytes);
void *weft__alloc_zero(size_t n, size_t size);
void *weft__alloc_array(size_t n, size_t size);
/* As realloc for n * size bytes; on failure the old block stays valid. */
void *weft__realloc_array(void *p, size_t n, size_t size);
/* `align` a power of two, bytes. Also freed with weft__free; not to be given to weft__realloc_array, which keeps no
 * alignment. */
void *weft__alloc_aligned(size_t align, size_t n_bytes);
/* NULL is fine. */
void weft__free(void *p);
/* Copies n bytes and appends a NUL. */
char *weft__strndup(const char *s, size_t n);
char *weft__strdup(const char *s);

/* `items_pp` is the address of the caller's pointer to elements of `size` bytes, NULL at first with *capacity 0. Grows
 * it so that it holds at least `need` elements; doubles; returns 1, or 0 and leaves everything as it was when memory
 * runs out. */
int weft__grow(void *items_pp, size_t *capacity, size_t need, size_t size);

/* Asked before each allocation or growth; returning 0 makes that allocation fail. NULL removes the hook. */
typedef int (*weft__alloc_gate)(void *arg, size_t n_bytes);
void weft__alloc_set_gate(weft__alloc_gate gate, void *arg);

/* Gives the system the freed pages between blocks that live on, which the C library keeps, where it can be asked to.
 * Takes up to milliseconds, in which other threads may wait for memory; for a thread with time, after much was
 * freed. */
void weft__alloc_trim(void);

/* For a process that runs for weeks: from now on a block of 128 KB or more goes back to the system when it is freed,
 * and so does that much at the end of a thread's heap. Left alone glibc raises both bounds with the largest block that
 * it has seen freed, to 32 and 64 MB, and weft__alloc_trim does not reach the ends of other threads' heaps. For the
 * whole process; once is enough. */
void weft__alloc_keep_little(void);

/* Blocks handed out and not yet freed; for leak tests. */
size_t weft__alloc_live(void);

#endif
