// SPDX-License-Identifier: Apache-2.0
/* owners.c: see owners.h. The lock guards the list; a range in it lives, since it leaves before it is unmapped. */
#include "mem/owners.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static weft__mem_range *first;

void weft__mem_range_add(weft__mem_range *r)
{
    pthread_mutex_lock(&lock);
    r->prev = NULL;
    r->next = first;
    if (first) first->prev = r;
    first = r;
    pthread_mutex_unlock(&lock);
}

void weft__mem_range_remove(weft__mem_range *r)
{
    pthread_mutex_lock(&lock);
    if (r->next) r->next->prev = r->prev;
    *(r->prev ? &r->prev->next : &first) = r->next;
    pthread_mutex_unlock(&lock);
}

void weft__mem_set_owner(const weft_buffer *b, weft__mem_owner owner)
{
    pthread_mutex_lock(&lock);
    weft__mem_range *r = first;
    while (r && r->buffer != b) r = r->next;
    if (r) r->owner = owner;
    pthread_mutex_unlock(&lock);
}

size_t weft__mem_ranges(weft__mem_range *out, size_t capacity)
{
    size_t n = 0;
    pthread_mutex_lock(&lock);
    for (const weft__mem_range *r = first; r; r = r->next, n++)
        if (n < capacity) out[n] = *r;
    pthread_mutex_unlock(&lock);
    return n;
}

static weft_status refuse(const weft__mem_range *r, int why, weft_error *err)
{
    struct rlimit limit = {0, 0};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    return weft_fail(err, WEFT_LIMIT,
                     "cannot keep %.1f MB in memory: %s; RLIMIT_MEMLOCK is %llu KB: raise it (ulimit -l unlimited, "
                     "LimitMEMLOCK=infinity of systemd, --ulimit memlock=-1 of containers)",
                     (double)r->n_bytes / 1e6, strerror(why), (unsigned long long)limit.rlim_cur / 1024);
}

/* Pages are kept from their first use on: neither are pages of a file read that nobody needs any more, nor is memory
 * taken that no request has come to. */
weft_status weft__mem_lock(weft_error *err)
{
    weft_status st = WEFT_OK;
    pthread_mutex_lock(&lock);
    for (const weft__mem_range *r = first; r && !st; r = r->next)
        if ((r->owner == WEFT__MEM_WEIGHTS || r->owner == WEFT__MEM_PAGES) && !r->is_heap &&
            mlock2(r->base, r->n_bytes, MLOCK_ONFAULT))
            st = refuse(r, errno, err);
    pthread_mutex_unlock(&lock);
    return st;
}
