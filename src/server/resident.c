// SPDX-License-Identifier: Apache-2.0
/* resident.c: whose the memory is that the process really has: the system tells what is resident of each mapping
 * (/proc/self/smaps, proc(5)), the core what lies where (mem/owners.h). Of a mapping that several share the system is
 * asked page by page. Invariant: the owners' bytes are all that is resident, each byte once. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "mem/owners.h"
#include "server/resident.h"

_Static_assert((int)WEFT__SERVER_RESIDENT_SCRATCH == (int)WEFT__MEM_SCRATCH &&
                   (int)WEFT__SERVER_RESIDENT_WEIGHTS == (int)WEFT__MEM_WEIGHTS &&
                   (int)WEFT__SERVER_RESIDENT_PAGES == (int)WEFT__MEM_PAGES &&
                   (int)WEFT__SERVER_RESIDENT_ADAPTERS == (int)WEFT__MEM_ADAPTERS,
               "the core's owners come first");

enum { LOOK_NS = 1000000000, PAGES_AT_ONCE = 1 << 14 };

struct resident_look {
    uint64_t bytes[WEFT__SERVER_RESIDENT_OWNERS];
    weft__mem_range *ranges; /* [n] */
    size_t n;
    uintptr_t page;
};

const char *weft__server_resident_name(int owner)
{
    static const char *const names[] = {"scratch", "weights", "pages", "adapters", "buffers", "program", "rest"};
    return names[owner];
}

/* Pages of [from, to) that are resident, bytes. What is gone meanwhile has none. */
static uint64_t count_pages(const struct resident_look *l, uintptr_t from, uintptr_t to)
{
    unsigned char in[PAGES_AT_ONCE];
    uint64_t n = 0;
    for (uintptr_t at = from; at < to; at += PAGES_AT_ONCE * l->page) {
        const size_t left = to - at, some = left < PAGES_AT_ONCE * l->page ? left : PAGES_AT_ONCE * l->page;
        if (mincore((void *)at, some, in)) return n;
        for (size_t i = 0; i * l->page < some; i++) n += (in[i] & 1u) * l->page;
    }
    return n;
}

/* A mapping of which so many bytes are resident. The parts of it that the core knows are their owners'. */
static void divide(struct resident_look *l, uintptr_t from, uintptr_t to, int is_file, uint64_t resident)
{
    for (size_t i = 0; i < l->n && resident; i++) {
        const weft__mem_range *r = &l->ranges[i];
        const uintptr_t base = (uintptr_t)r->base, end = base + ((r->n_bytes + l->page - 1) & ~(l->page - 1));
        const uintptr_t begin = base > from ? base : from, stop = end < to ? end : to;
        if (r->is_heap || begin >= stop) continue;
        uint64_t part = is_file || (begin == from && stop == to) ? resident : count_pages(l, begin, stop);
        if (part > resident) part = resident;
        l->bytes[r->owner] += part;
        resident -= part;
    }
    l->bytes[is_file ? WEFT__SERVER_RESIDENT_PROGRAM : WEFT__SERVER_RESIDENT_REST] += resident;
}

/* Every mapping with what is resident of it. 0: the system does not tell. */
static int read_mappings(struct resident_look *l)
{
    char line[512];
    unsigned long long from = 0, to = 0, inode = 0, kb;
    int n = 0;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "Rss: %llu", &kb) == 1) {
            divide(l, (uintptr_t)from, (uintptr_t)to, inode != 0, kb * 1024);
            n++;
        } else if (sscanf(line, "%llx-%llx %*s %*s %*s %llu", &from, &to, &inode) != 3) continue;
    }
    if (f) fclose(f);
    return n > 0;
}

/* What is known to lie in the heap is taken from its rest. */
static void take_from_rest(struct resident_look *l, int owner, uint64_t n)
{
    uint64_t *rest = &l->bytes[WEFT__SERVER_RESIDENT_REST];
    if (n > *rest) n = *rest;
    l->bytes[owner] += n;
    *rest -= n;
}

static int look(struct resident_look *l, uint64_t buffers)
{
    const size_t capacity = weft__mem_ranges(NULL, 0) + 16;
    l->ranges = weft__alloc_array(capacity, sizeof *l->ranges);
    if (!l->ranges) return 0;
    l->n = weft__mem_ranges(l->ranges, capacity);
    if (l->n > capacity) l->n = capacity;
    l->page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const int ok = read_mappings(l);
    for (size_t i = 0; i < l->n && ok; i++)
        if (l->ranges[i].is_heap) take_from_rest(l, (int)l->ranges[i].owner, l->ranges[i].n_bytes);
    take_from_rest(l, WEFT__SERVER_RESIDENT_BUFFERS, buffers);
    weft__free(l->ranges);
    return ok;
}

int weft__server_resident_look(weft__server_resident *r, uint64_t buffers, uint64_t bytes[WEFT__SERVER_RESIDENT_OWNERS])
{
    struct resident_look l = {.n = 0};
    pthread_mutex_lock(&r->lock);
    const uint64_t now = weft__clock_ns();
    if ((!r->looked_ns || now - r->looked_ns >= LOOK_NS) && look(&l, buffers)) {
        memcpy(r->bytes, l.bytes, sizeof r->bytes);
        r->looked_ns = now;
    }
    memcpy(bytes, r->bytes, sizeof r->bytes);
    const int known = r->looked_ns != 0;
    pthread_mutex_unlock(&r->lock);
    return known;
}
