// SPDX-License-Identifier: Apache-2.0
/* out_file.c: see out_file.h. Buffers small writes; large ones go straight to the file. One thread, but for the list of
 * temporary files, which threads share and signal handlers read: its places are claimed and given back by one atomic
 * each, and no memory is asked for. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/random.h"
#include "format/out_file.h"

#define BUFFER_BYTES ((size_t)256 << 10)
enum { NAME_TRIES = 16, LINKS_MOST = 40, NOTED_MOST = 32, WAIT_NS = 20000000 };

/* ---- temporary files, for the end of the program ---- */

enum { PLACE_FREE, PLACE_TAKEN, PLACE_NOTED };

static struct {
    atomic_int state;
    char path[PATH_MAX];
} noted[NOTED_MOST];

static atomic_int interrupted;

/* -1: no place is left; then a signal leaves the file. */
static int note(const char *path)
{
    if (strlen(path) >= PATH_MAX) return -1;
    for (int i = 0; i < NOTED_MOST; i++) {
        int is = PLACE_FREE;
        if (!atomic_compare_exchange_strong(&noted[i].state, &is, PLACE_TAKEN)) continue;
        strcpy(noted[i].path, path);
        atomic_store(&noted[i].state, PLACE_NOTED);
        return i;
    }
    return -1;
}

static void forget(int i)
{
    if (i >= 0) atomic_store(&noted[i].state, PLACE_FREE);
}

void weft__out_file_abandon_all(void)
{
    for (int i = 0; i < NOTED_MOST; i++)
        if (atomic_load(&noted[i].state) == PLACE_NOTED) unlink(noted[i].path);
}

void weft__out_file_interrupt(void)
{
    atomic_store(&interrupted, 1);
}

/* ---- what stands at a path ---- */

typedef enum kind { A_FILE, A_STREAM } kind;

static weft_status out_file_refuse(const char *path, const char *why, weft_error *err)
{
    char label[WEFT__NAME_SHOW * 2];
    return weft_fail(err, WEFT_IO, "%s: %s", weft__name_show_path(label, path), why);
}

static weft_status out_file_no_memory(const char *path, weft_error *err)
{
    char label[WEFT__NAME_SHOW * 2];
    return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to write it", weft__name_show_path(label, path));
}

char *weft__out_file_behind_links(const char *path)
{
    char *at = weft__strdup(path), target[PATH_MAX];
    struct stat s;
    for (int i = 0; at && !lstat(at, &s) && S_ISLNK(s.st_mode); i++) {
        ssize_t n = i < LINKS_MOST ? readlink(at, target, sizeof target - 1) : -1;
        if (n < 0) {
            if (i >= LINKS_MOST) errno = ELOOP;
            weft__free(at);
            return NULL;
        }
        target[n] = 0;
        const char *slash = target[0] == '/' ? NULL : strrchr(at, '/');
        size_t folder = slash ? (size_t)(slash - at) + 1 : 0, room = folder + (size_t)n + 1;
        char *next = weft__alloc(room);
        if (next) snprintf(next, room, "%.*s%s", (int)folder, at, target);
        weft__free(at);
        at = next;
    }
    if (!at) errno = ENOMEM;
    return at;
}

/* May a file appear in the folder of `path`? errno, or 0. */
static int folder_refuses(const char *path)
{
    char *folder = weft__strdup(path);
    if (!folder) return ENOMEM;
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0; /* keeps "/" itself */
    const int why = access(slash ? folder : ".", W_OK | X_OK) ? errno : 0;
    weft__free(folder);
    return why;
}

/* How `path` is written, and behind its links where; *out: weft__free(). */
static weft_status place_of(const char *path, kind *how, char **out, weft_error *err)
{
    struct stat s, same;
    *how = A_FILE;
    *out = NULL;
    if (!path[0]) return weft_fail(err, WEFT_IO, "the name of the file to write is empty");
    const int there = stat(path, &s) == 0;
    if (!there && errno != ENOENT) return out_file_refuse(path, strerror(errno), err);
    if (there && S_ISDIR(s.st_mode)) return out_file_refuse(path, "is a folder; give the name of a file in it", err);
    if (there && S_ISSOCK(s.st_mode)) return out_file_refuse(path, "is a socket; give the name of a file", err);
    if (there && S_ISBLK(s.st_mode)) return out_file_refuse(path, "is a disk; give the name of a file", err);
    if (there && access(path, W_OK)) return out_file_refuse(path, strerror(errno), err);
    if (there && !S_ISREG(s.st_mode)) *how = A_STREAM;
    if (*how == A_STREAM) return (*out = weft__strdup(path)) ? WEFT_OK : out_file_no_memory(path, err);
    if (!there && path[strlen(path) - 1] == '/')
        return out_file_refuse(path, "ends as a folder's name does; give that of a file", err);
    if (!(*out = weft__out_file_behind_links(path)))
        return errno == ENOMEM ? out_file_no_memory(path, err) : out_file_refuse(path, strerror(errno), err);
    int why = folder_refuses(*out);
    /* An open file that has lost its name, as /proc shows it, cannot be replaced. */
    if (!why && there && (stat(*out, &same) || same.st_dev != s.st_dev || same.st_ino != s.st_ino)) why = ENOENT;
    if (!why) return WEFT_OK;
    if (why == ENOMEM) {
        weft__free(*out);
        *out = NULL;
        return out_file_no_memory(path, err);
    }
    char label[WEFT__NAME_SHOW * 2];
    weft__name_show_path(label, path);
    weft__free(*out);
    *out = NULL;
    return weft_fail(err, WEFT_IO, "%s: nothing can be written into its folder: %s", label, strerror(why));
}

weft_status weft__out_file_check(const char *path, weft_error *err)
{
    char *place;
    kind how;
    weft_status st = place_of(path, &how, &place, err);
    weft__free(place);
    return st;
}

/* ---- writing ---- */

static weft_status io_failed(weft__out_file *o, const char *what, int why, weft_error *err)
{
    o->failed = 1;
    if (why == ENOSPC || why == EDQUOT || why == EFBIG)
        return weft_fail(
            err, WEFT_IO,
            "%s: the disk is full or the file too large for it (%s: %s); free space or choose another folder", o->label,
            what, strerror(why));
    if (why == EFAULT) /* of bytes that are mapped, where reading them would be a SIGBUS */
        return weft_fail(err, WEFT_IO,
                         "%s: %s failed: what it copies cannot be read any more: that file was made shorter while it "
                         "was in use, or its "
                         "disk failed; restore it and start again",
                         o->label, what);
    return weft_fail(err, WEFT_IO, "%s: %s failed: %s", o->label, what, strerror(why));
}

static weft_status usable(const weft__out_file *o, weft_error *err)
{
    if (o->failed || o->committed)
        return weft_fail(err, WEFT_STATE, "%s: %s", o->label,
                         o->failed ? "an earlier write failed" : "is already finished");
    return WEFT_OK;
}

/* What could not be read by others is not replaced by what they can read. Where the group cannot be kept, its members
 * are others. File systems that know neither owners nor permissions have nothing to give. */
static void take_permissions(int fd, const struct stat *old)
{
    mode_t mode = old->st_mode & 0777;
    struct stat now;
    if (fchown(fd, old->st_uid, old->st_gid)) (void)!fchown(fd, (uid_t)-1, old->st_gid);
    if (!fstat(fd, &now) && now.st_gid != old->st_gid) mode &= ~(mode_t)070 | (mode & 07) << 3;
    (void)!fchmod(fd, mode);
}

/* Creates path.tmp-RANDOM with the permissions of the file that it is to replace, or those that a new file gets
 * here. */
static weft_status create_temporary(weft__out_file *o, weft_error *err)
{
    size_t room = strlen(o->path) + 32;
    struct stat old;
    const int replaces = !stat(o->path, &old) && S_ISREG(old.st_mode);
    o->temporary = weft__alloc(room);
    if (!o->temporary) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to write it", o->label);
    for (int i = 0; i < NAME_TRIES && o->fd < 0; i++) {
        snprintf(o->temporary, room, "%s.tmp-%016llx", o->path, (unsigned long long)weft__rng_entropy());
        o->noted = note(o->temporary); /* before it is there: a signal may come at any time */
        o->fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, replaces ? 0600 : 0666);
        const int why = errno;
        if (o->fd >= 0 && replaces) take_permissions(o->fd, &old);
        if (o->fd >= 0) break;
        forget(o->noted);
        o->noted = -1;
        errno = why;
        if (why != EEXIST) break;
    }
    return o->fd < 0 ? io_failed(o, "creating a temporary file beside it", errno, err) : WEFT_OK;
}

/* A FIFO without a reader cannot be opened without waiting, and a thread that waits within open() hears no signal. */
static weft_status open_stream(weft__out_file *o, weft_error *err)
{
    const struct timespec wait = {0, WAIT_NS};
    while ((o->fd = open(o->path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) < 0) {
        if (errno != ENXIO && errno != EINTR) return io_failed(o, "opening it", errno, err);
        struct stat s;
        if (stat(o->path, &s) || !S_ISFIFO(s.st_mode)) return io_failed(o, "opening it", ENXIO, err);
        if (atomic_load(&interrupted))
            return weft_fail(err, WEFT_CANCELLED, "%s: cancelled before it had a reader", o->label);
        nanosleep(&wait, NULL);
    }
    int flags = fcntl(o->fd, F_GETFL);
    if (flags >= 0) (void)fcntl(o->fd, F_SETFL, flags & ~O_NONBLOCK);
    return WEFT_OK;
}

weft_status weft__out_file_open(weft__out_file *o, const char *path, weft_error *err)
{
    kind how;
    *o = (weft__out_file){.fd = -1, .noted = -1};
    weft__name_show_path(o->label, path);
    o->buffer = weft__alloc(BUFFER_BYTES);
    weft_status status = o->buffer ? place_of(path, &how, &o->path, err)
                                   : weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to write it", o->label);
    if (status == WEFT_OK) status = how == A_STREAM ? open_stream(o, err) : create_temporary(o, err);
    if (status != WEFT_OK) weft__out_file_close(o);
    return status;
}

FILE *weft__out_file_grow(const char *path, int append, weft_error *err)
{
    weft__out_file o = {.fd = -1, .noted = -1};
    FILE *f = NULL;
    kind how;
    weft__name_show_path(o.label, path);
    weft_status st = place_of(path, &how, &o.path, err);
    if (!st && how == A_STREAM) st = open_stream(&o, err);
    else if (!st && (o.fd = open(o.path, O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC), 0666)) < 0)
        st = io_failed(&o, "opening it", errno, err);
    if (!st && !(f = fdopen(o.fd, append ? "a" : "w"))) {
        weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to write it", o.label);
        close(o.fd);
    }
    weft__free(o.path);
    return f;
}

weft_status weft__out_file_reserve(weft__out_file *o, uint64_t n_bytes, weft_error *err)
{
    weft_status status = usable(o, err);
    if (status != WEFT_OK) return status;
    if (n_bytes > INT64_MAX) return io_failed(o, "reserving its space", EFBIG, err);
    if (!o->temporary) return WEFT_OK;
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

weft_status weft__out_file_room(const char *path, uint64_t n_bytes, weft_error *err)
{
    char label[WEFT__NAME_SHOW * 2], *folder;
    struct statvfs disk;
    kind how;
    weft_status st = place_of(path, &how, &folder, err);
    if (st) return st;
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0; /* keeps "/" itself */
    const int known = how == A_FILE && statvfs(slash ? folder : ".", &disk) == 0;
    weft__free(folder);
    if (!known || n_bytes / disk.f_frsize < disk.f_bavail)
        return WEFT_OK; /* what else is wrong, opening it will tell */
    return weft_fail(
        err, WEFT_LIMIT, "%s: needs %.2f GB, and %.2f GB are free there; free space or choose another folder",
        weft__name_show_path(label, path), (double)n_bytes / 1e9, (double)disk.f_bavail * (double)disk.f_frsize / 1e9);
}

static weft_status write_through(weft__out_file *o, const unsigned char *p, size_t n, weft_error *err)
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

static weft_status flush(weft__out_file *o, weft_error *err)
{
    size_t n = o->n_buffered;
    o->n_buffered = 0;
    return write_through(o, o->buffer, n, err);
}

weft_status weft__out_file_write(weft__out_file *o, const void *bytes, size_t n, weft_error *err)
{
    weft_status status = usable(o, err);
    if (status == WEFT_OK && n > BUFFER_BYTES - o->n_buffered) status = flush(o, err);
    if (status != WEFT_OK || n == 0) return status;
    if (n >= BUFFER_BYTES) return write_through(o, bytes, n, err);
    memcpy(o->buffer + o->n_buffered, bytes, n);
    o->n_buffered += n;
    return WEFT_OK;
}

weft_status weft__out_file_zeros(weft__out_file *o, uint64_t n, weft_error *err)
{
    static const unsigned char zeros[4096];
    weft_status status = WEFT_OK;
    while (n > 0 && status == WEFT_OK) {
        size_t piece = n < sizeof zeros ? (size_t)n : sizeof zeros;
        status = weft__out_file_write(o, zeros, piece, err);
        n -= piece;
    }
    return status;
}

/* Makes the rename itself last; a file system that cannot is let pass. */
static weft_status sync_folder(weft__out_file *o, weft_error *err)
{
    char *slash = strrchr(o->path, '/');
    if (slash) slash[slash == o->path] = 0; /* keeps "/" itself */
    int fd = open(slash ? o->path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int why = fd < 0 || fsync(fd) == 0 ? 0 : errno;
    if (fd >= 0) close(fd);
    return why && why != EINVAL && why != ENOTSUP ? io_failed(o, "flushing its folder to the disk", why, err) : WEFT_OK;
}

weft_status weft__out_file_sync(weft__out_file *o, weft_error *err)
{
    weft_status status = usable(o, err);
    if (status == WEFT_OK) status = flush(o, err);
    if (status != WEFT_OK) return status;
    return fsync(o->fd) == 0 || !o->temporary ? WEFT_OK : io_failed(o, "flushing to the disk", errno, err);
}

weft_status weft__out_file_commit(weft__out_file *o, weft_error *err)
{
    weft_status status = weft__out_file_sync(o, err);
    if (status != WEFT_OK) return status;
    int fd = o->fd;
    o->fd = -1;
    if (close(fd) != 0) return io_failed(o, "closing", errno, err);
    if (!o->temporary) {
        o->committed = 1;
        return WEFT_OK;
    }
    if (rename(o->temporary, o->path) != 0) return io_failed(o, "renaming the finished file", errno, err);
    o->committed = 1;
    forget(o->noted);
    o->noted = -1;
    return sync_folder(o, err);
}

void weft__out_file_close(weft__out_file *o)
{
    int created = o->temporary && (o->fd >= 0 || o->failed) && !o->committed;
    if (o->fd >= 0) close(o->fd);
    if (created) unlink(o->temporary);
    forget(o->noted);
    weft__free(o->temporary);
    weft__free(o->path);
    weft__free(o->buffer);
    *o = (weft__out_file){.fd = -1, .noted = -1};
}

weft_status weft__out_file_put(const char *path, const void *bytes, size_t n, weft_error *err)
{
    weft__out_file out;
    weft_status st = weft__out_file_open(&out, path, err);
    if (st) return st;
    st = weft__out_file_write(&out, bytes, n, err);
    if (!st) st = weft__out_file_commit(&out, err);
    weft__out_file_close(&out);
    return st;
}
