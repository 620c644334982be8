// SPDX-License-Identifier: Apache-2.0
/* map.c: files mapped read-only, and advice about ranges of any mapping.
 *
 * Invariant: the descriptor is closed before weft__mem_map returns; the mapping keeps the file alive. Any thread. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/background.h"
#include "mem/mem.h"
#include "mem/owners.h"

#ifdef MADV_NOHUGEPAGE
#define HUGE_PAGES MADV_HUGEPAGE
#define NO_HUGE_PAGES MADV_NOHUGEPAGE
#else
#define HUGE_PAGES MADV_NORMAL /* this system has none */
#define NO_HUGE_PAGES MADV_NORMAL
#endif

typedef struct mapped_buffer {
    weft_buffer b; /* first */
    weft__mem_range range;
} mapped_buffer;

void weft__mem_unmap(void *base, size_t n_bytes)
{
    enum { PIECE = 4 << 20 }; /* whole huge pages */
    char *at = base;
    for (; weft__background_is() && n_bytes > PIECE; at += PIECE, n_bytes -= PIECE) {
        munmap(at, PIECE);
        weft__background_did(PIECE);
    }
    munmap(at, n_bytes);
}

static void map_release(weft_buffer *b)
{
    mapped_buffer *m = (mapped_buffer *)b;
    weft__mem_range_remove(&m->range);
    weft__mem_unmap(b->data, (size_t)b->n_bytes);
    weft__free(m);
}

/* Fills in the mapping of an open file; the caller closes fd and frees b on failure. */
static weft_status map_fd(int fd, const char *path, weft_buffer *b, weft_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return weft_fail(err, WEFT_IO, "%s: cannot be examined: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return weft_fail(err, WEFT_UNSUPPORTED, "%s: is %s, not a regular file", path,
                         S_ISDIR(st.st_mode) ? "a directory" : "a pipe or device");
    if (st.st_size <= 0) return weft_fail(err, WEFT_FORMAT, "%s: the file is empty", path);
    if ((uint64_t)st.st_size > SIZE_MAX / 2)
        return weft_fail(err, WEFT_LIMIT, "%s: %lld bytes exceed the address space", path, (long long)st.st_size);
    void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return weft_fail(err, errno == ENOMEM ? WEFT_NO_MEMORY : WEFT_IO, "%s: cannot map %lld bytes: %s", path,
                         (long long)st.st_size, strerror(errno));
    *b = (weft_buffer){sizeof *b, WEFT_DOMAIN_MAPPED, WEFT_BUFFER_READONLY, 0, (uint64_t)st.st_size, p,
                       NULL,      map_release};
    return WEFT_OK;
}

weft_status weft__mem_map(const char *path, weft_buffer **out, weft_error *err)
{
    *out = NULL;
    mapped_buffer *m = weft__alloc_zero(1, sizeof *m);
    if (!m) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to describe its mapping", path);
    weft_buffer *b = &m->b;
    /* O_NONBLOCK: opening a pipe must be refused, not waited for. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    weft_status status;
    if (fd < 0) {
        status = weft_fail(err, errno == ENOENT || errno == ENOTDIR ? WEFT_NOT_FOUND : WEFT_IO,
                           "%s: cannot be opened: %s", path, strerror(errno));
    } else {
        status = map_fd(fd, path, b, err);
        close(fd);
    }
    if (status) {
        weft__free(m);
        return status;
    }
    m->range =
        (weft__mem_range){.buffer = b, .base = b->data, .n_bytes = (size_t)b->n_bytes, .owner = WEFT__MEM_WEIGHTS};
    weft__mem_range_add(&m->range);
    *out = b;
    return WEFT_OK;
}

weft_status weft__mem_advise(const weft_buffer *b, uint64_t offset, uint64_t n_bytes, weft__mem_advice advice,
                             weft_error *err)
{
    static const int to_system[] = {MADV_NORMAL,   MADV_SEQUENTIAL, MADV_RANDOM,   MADV_WILLNEED,
                                    MADV_DONTNEED, HUGE_PAGES,      NO_HUGE_PAGES, MADV_DONTNEED};
    const int inwards = advice == WEFT__MEM_ADVICE_DONTNEED || advice == WEFT__MEM_ADVICE_LOSE;
    unsigned long long from = offset, n = n_bytes;
    if ((unsigned)advice >= sizeof to_system / sizeof *to_system)
        return weft_fail(err, WEFT_ARGUMENT, "unknown advice %d", (int)advice);
    if (!b->data || offset > b->n_bytes || n_bytes > b->n_bytes - offset)
        return weft_fail(err, WEFT_ARGUMENT, "bytes %llu to %llu + %llu are not in a host-visible buffer of %llu bytes",
                         from, from, n, (unsigned long long)b->n_bytes);
    if (advice == WEFT__MEM_ADVICE_DONTNEED && b->domain != WEFT_DOMAIN_MAPPED)
        return weft_fail(err, WEFT_ARGUMENT, "dropping pages of memory domain %u would lose their contents", b->domain);
    if (advice == WEFT__MEM_ADVICE_LOSE && b->domain != WEFT_DOMAIN_HOST)
        return weft_fail(err, WEFT_ARGUMENT, "the contents of memory domain %u are not to be lost", b->domain);
    uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    uintptr_t first = (uintptr_t)b->data + offset, last = first + n_bytes;
    if (inwards) {
        /* The page that holds the end of the file belongs to no other. */
        if (advice == WEFT__MEM_ADVICE_DONTNEED && offset + n_bytes == b->n_bytes) last = (last + mask) & ~mask;
        first = (first + mask) & ~mask;
        last &= ~mask;
    } else {
        first &= ~mask;
        last = (last + mask) & ~mask;
    }
    if (first >= last) return WEFT_OK;
    if (madvise((void *)first, last - first, to_system[advice]) != 0)
        return weft_fail(err, WEFT_IO, "advice on %llu bytes at offset %llu was refused: %s", n, from, strerror(errno));
    return WEFT_OK;
}
