/* out_file.c: see out_file.h. Buffers small writes; large ones go straight to the file. One thread. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/random.h"
#include "format/out_file.h"

#define BUFFER_BYTES ((size_t)256 << 10)
#define NAME_TRIES 16

static weft_status io_failed(weft__out *o, const char *what, int why, weft_error *err)
{
    o->failed = 1;
    if (why == ENOSPC || why == EDQUOT || why == EFBIG)
        return weft_fail(err, WEFT_IO,
                         "%s: the disk is full or the file too large for it (%s: %s); free space or choose another folder",
                         o->label, what, strerror(why));
    if (why == EFAULT) /* of bytes that are mapped, where reading them would be a SIGBUS */
        return weft_fail(
            err, WEFT_IO,
            "%s: %s failed: what it copies cannot be read any more: that file was made shorter while it was in use, or its "
            "disk failed; restore it and start again",
            o->label, what);
    return weft_fail(err, WEFT_IO, "%s: %s failed: %s", o->label, what, strerror(why));
}

static weft_status usable(const weft__out *o, weft_error *err)
{
    if (o->failed || o->committed)
        return weft_fail(err, WEFT_STATE, "%s: %s", o->label, o->failed ? "an earlier write failed" : "is already finished");
    return WEFT_OK;
}

/* Creates path.tmp-RANDOM with the permissions a new file gets here. */
static weft_status create_temporary(weft__out *o, const char *path, weft_error *err)
{
    size_t room = strlen(path) + 32;
    o->temporary = weft__alloc(room);
    if (!o->temporary) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to write it", o->label);
    for (int i = 0; i < NAME_TRIES && o->fd < 0; i++) {
        snprintf(o->temporary, room, "%s.tmp-%016llx", path, (unsigned long long)weft__rng_entropy());
        o->fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (o->fd < 0 && errno != EEXIST) break;
    }
    return o->fd < 0 ? io_failed(o, "creating a temporary file beside it", errno, err) : WEFT_OK;
}

weft_status weft__out_open(weft__out *o, const char *path, weft_error *err)
{
    *o = (weft__out){.fd = -1};
    weft__show_path(o->label, path);
    o->path = weft__strdup(path);
    o->buffer = weft__alloc(BUFFER_BYTES);
    weft_status status = o->path && o->buffer ? create_temporary(o, path, err)
                                              : weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to write it", o->label);
    if (status != WEFT_OK) weft__out_close(o);
    return status;
}

weft_status weft__out_reserve(weft__out *o, uint64_t n_bytes, weft_error *err)
{
    weft_status status = usable(o, err);
    if (status != WEFT_OK) return status;
    if (n_bytes > INT64_MAX) return io_failed(o, "reserving its space", EFBIG, err);
#ifdef __linux__
    int answer;
    do {
        answer = n_bytes ? fallocate(o->fd, 0, 0, (off_t)n_bytes) : 0;
    } while (answer != 0 && errno == EINTR);
    if (answer != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        return io_failed(o, "reserving its space", errno, err);
#endif
    return WEFT_OK;
}

weft_status weft__out_room(const char *path, uint64_t n_bytes, weft_error *err)
{
    char label[WEFT__SHOW * 2];
    struct statvfs disk;
    struct stat there;
    weft__show_path(label, path);
    if (!stat(path, &there) && S_ISDIR(there.st_mode))
        return weft_fail(err, WEFT_IO, "%s: is a folder; give the name of a file in it", label);
    char *folder = weft__strdup(path);
    if (!folder) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to write it", label);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0; /* keeps "/" itself */
    const int refused = access(slash ? folder : ".", W_OK | X_OK) ? errno : 0;
    const int known = statvfs(slash ? folder : ".", &disk) == 0;
    weft__free(folder);
    if (refused) return weft_fail(err, WEFT_IO, "%s: nothing can be written into its folder: %s", label, strerror(refused));
    if (!known || n_bytes / disk.f_frsize < disk.f_bavail) return WEFT_OK; /* what else is wrong, opening it will tell */
    return weft_fail(err, WEFT_LIMIT, "%s: needs %.2f GB, and %.2f GB are free there; free space or choose another folder", label,
                     (double)n_bytes / 1e9, (double)disk.f_bavail * (double)disk.f_frsize / 1e9);
}

static weft_status write_through(weft__out *o, const unsigned char *p, size_t n, weft_error *err)
{
    while (n > 0) {
        ssize_t done = write(o->fd, p, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return io_failed(o, "writing", done < 0 ? errno : ENOSPC, err);
        p += done;
        n -= (size_t)done;
    }
    return WEFT_OK;
}

static weft_status flush(weft__out *o, weft_error *err)
{
    size_t n = o->n_buffered;
    o->n_buffered = 0;
    return write_through(o, o->buffer, n, err);
}

weft_status weft__out_write(weft__out *o, const void *bytes, size_t n, weft_error *err)
{
    weft_status status = usable(o, err);
    if (status == WEFT_OK && n > BUFFER_BYTES - o->n_buffered) status = flush(o, err);
    if (status != WEFT_OK || n == 0) return status;
    if (n >= BUFFER_BYTES) return write_through(o, bytes, n, err);
    memcpy(o->buffer + o->n_buffered, bytes, n);
    o->n_buffered += n;
    return WEFT_OK;
}

weft_status weft__out_zeros(weft__out *o, uint64_t n, weft_error *err)
{
    static const unsigned char zeros[4096];
    weft_status status = WEFT_OK;
    while (n > 0 && status == WEFT_OK) {
        size_t piece = n < sizeof zeros ? (size_t)n : sizeof zeros;
        status = weft__out_write(o, zeros, piece, err);
        n -= piece;
    }
    return status;
}

/* Makes the rename itself last; a file system that cannot is let pass. */
static weft_status sync_folder(weft__out *o, weft_error *err)
{
    char *slash = strrchr(o->path, '/');
    if (slash) slash[slash == o->path] = 0; /* keeps "/" itself */
    int fd = open(slash ? o->path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int why = fd < 0 || fsync(fd) == 0 ? 0 : errno;
    if (fd >= 0) close(fd);
    return why && why != EINVAL && why != ENOTSUP ? io_failed(o, "flushing its folder to the disk", why, err) : WEFT_OK;
}

weft_status weft__out_sync(weft__out *o, weft_error *err)
{
    weft_status status = usable(o, err);
    if (status == WEFT_OK) status = flush(o, err);
    if (status != WEFT_OK) return status;
    return fsync(o->fd) == 0 ? WEFT_OK : io_failed(o, "flushing to the disk", errno, err);
}

weft_status weft__out_commit(weft__out *o, weft_error *err)
{
    weft_status status = weft__out_sync(o, err);
    if (status != WEFT_OK) return status;
    int fd = o->fd;
    o->fd = -1;
    if (close(fd) != 0) return io_failed(o, "closing", errno, err);
    if (rename(o->temporary, o->path) != 0) return io_failed(o, "renaming the finished file", errno, err);
    o->committed = 1;
    return sync_folder(o, err);
}

void weft__out_close(weft__out *o)
{
    int created = o->temporary && (o->fd >= 0 || o->failed) && !o->committed;
    if (o->fd >= 0) close(o->fd);
    if (created) unlink(o->temporary);
    weft__free(o->temporary);
    weft__free(o->path);
    weft__free(o->buffer);
    *o = (weft__out){.fd = -1};
}
