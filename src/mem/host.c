// SPDX-License-Identifier: Apache-2.0
/* host.c: buffers in this process's own memory, and borrowed ones.
 *
 * Invariant: `base` and `n_mapped` describe a mapping to be undone; n_mapped == 0 means that `base` came from the heap
 * (or is NULL for borrowed memory). Any thread; a buffer is released once. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "mem/mem.h"
#include "mem/owners.h"

#define MAP_FROM (1u << 20)  /* bytes from which a host buffer is mapped instead of taken from the heap */
#define HUGE_PAGE (2u << 20) /* bytes of a huge page on the machines we know */

typedef struct host_buffer {
    weft_buffer b;
    void *base;
    size_t n_mapped;
    weft__mem_range range; /* base NULL: borrowed, and in no list */
} host_buffer;

void weft_buffer_release(weft_buffer **b)
{
    if (!b || !*b) return;
    weft_buffer *old = *b;
    *b = NULL;
    old->release(old);
}

static void host_release(weft_buffer *b)
{
    host_buffer *h = (host_buffer *)b;
    if (h->range.base) weft__mem_range_remove(&h->range);
    if (h->n_mapped) weft__mem_unmap(h->base, h->n_mapped);
    else weft__free(h->base);
    weft__free(h);
}

/* Maps n bytes at a multiple of align: maps align more than needed and gives the ends back. Returns 0 with errno
 * set. */
static int map_aligned(host_buffer *h, size_t n, size_t align)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole, total;
    uint64_t rounded;
    errno = ENOMEM;
    if (!weft__checked_align(n, page, &rounded) || rounded > SIZE_MAX) return 0;
    whole = total = (size_t)rounded;
    if (align > page && __builtin_add_overflow(whole, align, &total)) return 0;
    char *p = mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return 0;
    if (align > page) {
        size_t head = (size_t)(-(uintptr_t)p & (align - 1)), tail = total - head - whole;
        if (head) munmap(p, head);
        if (tail) munmap(p + head + whole, tail);
        p += head;
    }
    h->base = p;
    h->n_mapped = whole;
    h->b.data = p;
    return 1;
}

static weft_status host_create(const weft_buffer_spec *spec, size_t align, weft_buffer **out, weft_error *err)
{
    unsigned long long n = spec->n_bytes;
    host_buffer *h = weft__alloc_zero(1, sizeof *h);
    if (!h) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the description of a host buffer of %llu bytes", n);
    h->b =
        (weft_buffer){sizeof(weft_buffer), WEFT_DOMAIN_HOST, spec->flags, 0, spec->n_bytes, NULL, NULL, host_release};
    if (n > SIZE_MAX / 2) {
        weft__free(h);
        return weft_fail(err, WEFT_NO_MEMORY, "a host buffer of %llu bytes exceeds the address space", n);
    }
    if (n >= MAP_FROM) {
        int huge = (spec->flags & WEFT_BUFFER_HUGE) && n >= HUGE_PAGE;
        if (huge && align < HUGE_PAGE) align = HUGE_PAGE;
        if (!map_aligned(h, (size_t)n, align)) {
            int why = errno;
            weft__free(h);
            return weft_fail(err, WEFT_NO_MEMORY, "cannot map %llu bytes of host memory: %s", n, strerror(why));
        }
#ifdef MADV_HUGEPAGE
        if (huge) (void)madvise(h->base, h->n_mapped, MADV_HUGEPAGE); /* a wish: kernels without huge pages refuse it */
#endif
    } else {
        h->base = h->b.data = weft__alloc_aligned(align, n ? (size_t)n : 1);
        if (!h->base) {
            weft__free(h);
            return weft_fail(err, WEFT_NO_MEMORY, "no memory for a host buffer of %llu bytes", n);
        }
        if (spec->flags & WEFT_BUFFER_ZERO) memset(h->base, 0, (size_t)n);
    }
    h->range = (weft__mem_range){
        .buffer = &h->b, .base = h->base, .n_bytes = h->n_mapped ? h->n_mapped : (size_t)n, .is_heap = !h->n_mapped};
    weft__mem_range_add(&h->range);
    *out = &h->b;
    return WEFT_OK;
}

weft_status weft__mem_create(const weft_buffer_spec *spec, weft_buffer **out, weft_error *err)
{
    *out = NULL;
    if (spec->size < sizeof *spec)
        return weft_fail(err, WEFT_ARGUMENT, "weft_buffer_spec.size is %u, expected %u", spec->size,
                         (unsigned)sizeof *spec);
    size_t align = spec->align ? spec->align : 64;
    if (align & (align - 1))
        return weft_fail(err, WEFT_ARGUMENT, "buffer alignment %u is not a power of two", spec->align);
    if (spec->flags & ~(uint32_t)(WEFT_BUFFER_HUGE | WEFT_BUFFER_ZERO))
        return weft_fail(err, WEFT_ARGUMENT, "buffer flags 0x%x cannot be asked of new memory", spec->flags);
    if (align < sizeof(void *)) align = sizeof(void *);
    if (spec->domain == WEFT_DOMAIN_HOST) return host_create(spec, align, out, err);
    return weft_fail(err, WEFT_ARGUMENT, "the core creates host memory, not memory of domain %u", spec->domain);
}

weft_status weft__mem_borrow(const void *data, uint64_t n_bytes, uint32_t flags, weft_buffer **out, weft_error *err)
{
    *out = NULL;
    if ((!data && n_bytes) || (flags & ~(uint32_t)WEFT_BUFFER_READONLY))
        return weft_fail(err, WEFT_ARGUMENT, "cannot borrow %llu bytes: no address, or flags 0x%x other than read-only",
                         (unsigned long long)n_bytes, flags);
    host_buffer *h = weft__alloc_zero(1, sizeof *h);
    if (!h) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the description of borrowed memory");
    h->b =
        (weft_buffer){sizeof(weft_buffer), WEFT_DOMAIN_IMPORTED, flags, 0, n_bytes, (void *)data, NULL, host_release};
    *out = &h->b;
    return WEFT_OK;
}

weft_status weft__mem_reserve(uint64_t n_bytes, weft_buffer **out, weft_error *err)
{
    weft_status st = weft__mem_borrow(NULL, 0, 0, out, err);
    if (st || !n_bytes) return st;
    host_buffer *h = (host_buffer *)*out;
    void *p = n_bytes <= SIZE_MAX / 2
                  ? mmap(NULL, (size_t)n_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                  : MAP_FAILED;
    if (p == MAP_FAILED) {
        weft_buffer_release(out);
        return weft_fail(err, WEFT_NO_MEMORY, "no addresses for %llu bytes", (unsigned long long)n_bytes);
    }
    h->base = h->b.data = p;
    h->n_mapped = (size_t)n_bytes;
    h->b.n_bytes = n_bytes;
    return WEFT_OK;
}
