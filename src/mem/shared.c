/* shared.c: memory that several processes map, behind an anonymous memory file (memfd).
 *
 * Invariant: the file's size is sealed before anybody else can see the descriptor, so a mapping of it never faults past the end.
 * `fd` is owned by the buffer. Any thread. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "mem/shared.h"

typedef struct shared_buffer {
    weft_buffer b;
    int fd;
} shared_buffer;

static void shared_release(weft_buffer *b)
{
    shared_buffer *s = (shared_buffer *)b;
    munmap(b->data, (size_t)b->n_bytes);
    close(s->fd);
    weft__free(s);
}

int weft__mem_fd(const weft_buffer *b)
{
    return b->release == shared_release ? ((const shared_buffer *)b)->fd : -1;
}

/* Maps all n bytes of fd; takes over fd on success only. */
static weft_status map_shared(int fd, uint64_t n, uint32_t flags, weft_buffer **out, weft_error *err)
{
    shared_buffer *s = weft__alloc_zero(1, sizeof *s);
    if (!s) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the description of shared memory");
    int protection = PROT_READ | (flags & WEFT_BUFFER_READONLY ? 0 : PROT_WRITE);
    void *p = mmap(NULL, (size_t)n, protection, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        int why = errno;
        weft__free(s);
        return weft_fail(err, why == ENOMEM ? WEFT_NO_MEMORY : WEFT_IO, "cannot map %llu bytes of shared memory: %s",
                         (unsigned long long)n, strerror(why));
    }
#ifdef MADV_HUGEPAGE
    if (flags & WEFT_BUFFER_HUGE) (void)madvise(p, (size_t)n, MADV_HUGEPAGE);
#endif
    s->b = (weft_buffer){sizeof(weft_buffer), WEFT_DOMAIN_SHARED, flags, 0, n, p, NULL, shared_release};
    s->fd = fd;
    *out = &s->b;
    return WEFT_OK;
}

weft_status weft__mem_shared_create(const weft_buffer_spec *spec, size_t align, weft_buffer **out, weft_error *err)
{
    unsigned long long n = spec->n_bytes;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (align > page) return weft_fail(err, WEFT_ARGUMENT, "shared memory is aligned to %zu bytes, not to %zu", page, align);
    if (n == 0 || n > INT64_MAX || n > SIZE_MAX / 2)
        return weft_fail(err, WEFT_ARGUMENT, "shared memory of %llu bytes cannot be made", n);
    int fd = memfd_create("weft", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return weft_fail(err, WEFT_IO, "cannot create shared memory (memfd): %s", strerror(errno));
    weft_status status;
    if (ftruncate(fd, (off_t)n) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        status = weft_fail(err, WEFT_IO, "cannot size shared memory (memfd) to %llu bytes: %s", n, strerror(errno));
    else status = map_shared(fd, n, spec->flags, out, err);
    if (status != WEFT_OK) close(fd);
    return status;
}

weft_status weft__mem_shared_open(int fd, uint32_t flags, weft_buffer **out, weft_error *err)
{
    *out = NULL;
    if (flags & ~(uint32_t)WEFT_BUFFER_READONLY)
        return weft_fail(err, WEFT_ARGUMENT, "buffer flags 0x%x cannot be asked of existing shared memory", flags);
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat st;
    if (seals < 0 || fstat(fd, &st) != 0)
        return weft_fail(err, WEFT_IO, "descriptor %d is not shared memory (memfd): %s", fd, strerror(errno));
    if (!(seals & F_SEAL_SHRINK))
        return weft_fail(err, WEFT_UNSUPPORTED, "the shared memory of descriptor %d is not sealed against shrinking", fd);
    if (st.st_size <= 0) return weft_fail(err, WEFT_FORMAT, "the shared memory of descriptor %d is empty", fd);
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) return weft_fail(err, WEFT_IO, "cannot duplicate descriptor %d of shared memory: %s", fd, strerror(errno));
    weft_status status = map_shared(own, (uint64_t)st.st_size, flags, out, err);
    if (status != WEFT_OK) close(own);
    return status;
}
