// SPDX-License-Identifier: Apache-2.0
/* alloc.c: the one door to the heap (alloc.h). Owns the count of live blocks and the gate that tests install. */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

static atomic_size_t live;
static weft__alloc_gate gate_fn;
static void *gate_arg;

static int allowed(size_t n_bytes)
{
    return !gate_fn || gate_fn(gate_arg, n_bytes);
}

/* Counts p when it is a block. */
static void *counted(void *p)
{
    if (p) atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    return p;
}

void *weft__alloc(size_t n_bytes)
{
    if (!allowed(n_bytes)) return NULL;
    return counted(malloc(n_bytes ? n_bytes : 1));
}

void *weft__alloc_zero(size_t n, size_t size)
{
    size_t n_bytes;
    if (__builtin_mul_overflow(n, size, &n_bytes) || !allowed(n_bytes)) return NULL;
    return counted(calloc(n_bytes ? n_bytes : 1, 1));
}

void *weft__alloc_array(size_t n, size_t size)
{
    size_t n_bytes;
    if (__builtin_mul_overflow(n, size, &n_bytes)) return NULL;
    return weft__alloc(n_bytes);
}

void *weft__realloc_array(void *p, size_t n, size_t size)
{
    size_t n_bytes;
    if (__builtin_mul_overflow(n, size, &n_bytes)) return NULL;
    if (!p) return weft__alloc(n_bytes);
    if (!allowed(n_bytes)) return NULL;
    return realloc(p, n_bytes ? n_bytes : 1);
}

void *weft__alloc_aligned(size_t align, size_t n_bytes)
{
    if (!allowed(n_bytes)) return NULL;
    if (align < sizeof(void *)) align = sizeof(void *);
    void *p = NULL;
    if (posix_memalign(&p, align, n_bytes ? n_bytes : 1)) return NULL;
    return counted(p);
}

void weft__free(void *p)
{
    if (!p) return;
    atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    free(p);
}

char *weft__strndup(const char *s, size_t n)
{
    if (n == SIZE_MAX) return NULL;
    char *copy = weft__alloc(n + 1);
    if (!copy) return NULL;
    if (n) memcpy(copy, s, n);
    copy[n] = 0;
    return copy;
}

char *weft__strdup(const char *s)
{
    return weft__strndup(s, strlen(s));
}

int weft__grow(void *items_pp, size_t *capacity, size_t need, size_t size)
{
    if (need <= *capacity) return 1;
    size_t target = *capacity < 8 ? 8 : *capacity;
    while (target < need) {
        if (target > SIZE_MAX / 2) {
            target = need;
            break;
        }
        target *= 2;
    }
    /* The caller's pointer has a type of its own; memcpy reads and writes it without aliasing it as void *. */
    void *old;
    memcpy(&old, items_pp, sizeof old);
    void *grown = weft__realloc_array(old, target, size);
    if (!grown) return 0;
    memcpy(items_pp, &grown, sizeof grown);
    *capacity = target;
    return 1;
}

void weft__alloc_set_gate(weft__alloc_gate gate, void *arg)
{
    gate_fn = gate;
    gate_arg = arg;
}

void weft__alloc_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

void weft__alloc_keep_little(void)
{
#ifdef __GLIBC__
    const int little = 128 * 1024; /* what both are before the first large block is freed */
    mallopt(M_MMAP_THRESHOLD, little);
    mallopt(M_TRIM_THRESHOLD, little);
#endif
}

size_t weft__alloc_live(void)
{
    return atomic_load_explicit(&live, memory_order_relaxed);
}
