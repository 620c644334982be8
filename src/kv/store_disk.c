// SPDX-License-Identifier: Apache-2.0
/* store_disk.c: the files of the disk store: complete or absent (store_parts.h). State: the disk only.
 * Owner: the store's thread; weft__kv_store_open before that thread exists. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "kv/store_parts.h"

weft_status weft__kv_store_folder_open(weft__kv_store_folder *f, const char *path, weft_error *err)
{
    f->lock = f->fd = -1;
    snprintf(f->path, sizeof f->path, "%s", path);
    if (mkdir(path, 0700) && errno != EEXIST)
        return weft_fail(err, WEFT_IO, "%s: this folder cannot be made: %s", path, strerror(errno));
    f->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->fd < 0) return weft_fail(err, WEFT_IO, "%s: this folder cannot be opened: %s", path, strerror(errno));
    f->lock = openat(f->fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    weft_status st = WEFT_OK;
    if (f->lock < 0) st = weft_fail(err, WEFT_IO, "%s: its lock cannot be made: %s", path, strerror(errno));
    else if (flock(f->lock, LOCK_EX | LOCK_NB))
        st = errno == EWOULDBLOCK
                 ? weft_fail(err, WEFT_STATE, "%s: another process uses this store; choose another folder", path)
                 : weft_fail(err, WEFT_IO, "%s: it cannot be locked: %s", path, strerror(errno));
    if (st) weft__kv_store_folder_close(f);
    return st;
}

void weft__kv_store_folder_close(weft__kv_store_folder *f)
{
    if (f->lock >= 0) close(f->lock);
    if (f->fd >= 0) close(f->fd);
    f->lock = f->fd = -1;
}

void weft__kv_store_unlink(weft__kv_store_folder *f, const char *file)
{
    if (unlinkat(f->fd, file, 0) && errno != ENOENT)
        weft__log(WEFT__LOG_WARN, "%s/%s: cannot be removed: %s", f->path, file, strerror(errno));
}

void weft__kv_store_touch(weft__kv_store_folder *f, const char *file)
{
    utimensat(f->fd, file, NULL, AT_SYMLINK_NOFOLLOW); /* only an order of use: nothing depends on it */
}

/* ---- reading ---- */

weft_status weft__kv_store_read_at(int fd, uint64_t at, void *to, uint64_t n, weft_error *err)
{
    unsigned char *p = to;
    while (n > 0) {
        ssize_t got = pread(fd, p, n < 1u << 30 ? (size_t)n : 1u << 30, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return weft_fail(err, WEFT_IO, "cannot be read: %s", strerror(errno));
        if (got == 0) return weft_fail(err, WEFT_FORMAT, "shorter than it says: truncated");
        p += got;
        at += (uint64_t)got;
        n -= (uint64_t)got;
    }
    return WEFT_OK;
}

/* Opens a file of ours and reads its head, which is checked then. What is no regular file is damage. *foreign: it is of
 * another model or page layout, which is no failure then; NULL: it is one. */
static weft_status open_entry(weft__kv_store_folder *f, const char *file, const weft__kv_layout *layout, int *fd,
                              weft__kv_snapshot_head *head, struct stat *stat_out, int *foreign, weft_error *err)
{
    *fd = openat(f->fd, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (*fd < 0) {
        if (errno == ELOOP) return weft_fail(err, WEFT_FORMAT, "a symbolic link");
        return weft_fail(err, errno == ENOENT ? WEFT_NOT_FOUND : WEFT_IO, "cannot be opened: %s", strerror(errno));
    }
    weft_status st = WEFT_OK;
    if (fstat(*fd, stat_out)) st = weft_fail(err, WEFT_IO, "cannot be examined: %s", strerror(errno));
    else if (!S_ISREG(stat_out->st_mode)) st = weft_fail(err, WEFT_FORMAT, "not a regular file");
    else st = weft__kv_store_read_at(*fd, 0, head, sizeof *head, err);
    if (!st) {
        st = weft__kv_snapshot_check_head(head, (uint64_t)stat_out->st_size, layout, err);
        if (foreign && (*foreign = st == WEFT_STATE)) return WEFT_OK;
    }
    if (!st) return WEFT_OK;
    close(*fd);
    *fd = -1;
    return st;
}

weft_status weft__kv_store_read(weft__kv_store_folder *f, const char *file, const weft__kv_layout *layout,
                                weft__kv_snapshot **out, weft_error *err)
{
    weft__kv_snapshot_head head;
    struct stat st_file;
    int fd;
    *out = NULL;
    weft_status st = open_entry(f, file, layout, &fd, &head, &st_file, NULL, err);
    if (st) return st;
    weft__kv_snapshot *s = weft__kv_snapshot_alloc(head.n_bytes);
    if (!s) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for its %llu bytes", (unsigned long long)head.n_bytes);
    if (!st) st = weft__kv_store_read_at(fd, 0, s->bytes, s->n_bytes, err);
    if (!st) st = weft__kv_snapshot_check(s, layout, err);
    close(fd);
    if (st) weft__kv_snapshot_free(&s);
    else weft__kv_store_touch(f, file);
    *out = s;
    return st;
}

/* ---- writing ---- */

static weft_status write_failed(const char *what, int why, weft_error *err)
{
    int full = why == ENOSPC || why == EDQUOT;
    return weft_fail(err, full ? WEFT_LIMIT : WEFT_IO, "%s: %s%s", what, strerror(why),
                     full ? "; free space on its disk" : "");
}

weft_status weft__kv_store_write_at(int fd, uint64_t at, const void *from, uint64_t n, weft_error *err)
{
    for (const unsigned char *p = from; n > 0;) {
        ssize_t done = pwrite(fd, p, n < 1u << 30 ? (size_t)n : 1u << 30, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return write_failed("cannot be written", done < 0 ? errno : ENOSPC, err);
        p += done;
        at += (uint64_t)done;
        n -= (uint64_t)done;
    }
    return WEFT_OK;
}

int weft__kv_store_new_file(weft__kv_store_folder *f, char name[32])
{
    snprintf(name, 32, "t-%016llx", (unsigned long long)weft__rng_entropy());
    return openat(f->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

weft_status weft__kv_store_write(weft__kv_store_folder *f, const char *file, const weft__kv_snapshot *s, int *in_place,
                                 weft_error *err)
{
    char aside[32];
    *in_place = 0;
    int fd = weft__kv_store_new_file(f, aside);
    if (fd < 0) return write_failed("cannot be made", errno, err);
    weft_status st = weft__kv_store_write_at(fd, 0, s->bytes, s->n_bytes, err);
    if (!st && fsync(fd)) st = write_failed("cannot be flushed", errno, err);
    if (close(fd) && !st) st = write_failed("cannot be closed", errno, err);
    if (!st && renameat(f->fd, aside, f->fd, file)) st = write_failed("cannot be renamed", errno, err);
    if (st) {
        weft__kv_store_unlink(f, aside);
        return st;
    }
    *in_place = 1;
    if (fsync(f->fd) == 0 || errno == EINVAL || errno == ENOTSUP) return WEFT_OK;
    return weft_fail(err, WEFT_IO, "its folder cannot be flushed: %s; it may not outlast a crash of the machine",
                     strerror(errno));
}

/* ---- looking through the folder ---- */

/* 'p', 's' or 't' for names of our making, 0 for others. */
static char kind_of(const char *name)
{
    size_t n = strlen(name);
    if (n < 3 || n >= WEFT__KV_STORE_FILE || name[1] != '-') return 0;
    if (name[0] == 't') return n == 18 && strspn(name + 2, "0123456789abcdef") == 16 ? 't' : 0;
    if (n < 6 || strcmp(name + n - 3, ".kv")) return 0;
    if (name[0] == 'p') return n == 21 && strspn(name + 2, "0123456789abcdef") == 16 ? 'p' : 0;
    char slot[WEFT__KV_STORE_FILE];
    snprintf(slot, sizeof slot, "%.*s", (int)(n - 5), name + 2);
    return name[0] == 's' && weft__path_is_plain_name(slot, WEFT__KV_STORE_NAME) ? 's' : 0;
}

static weft_status scan_file(weft__kv_store_folder *f, const char *file, const weft__kv_layout *layout,
                             weft__kv_store_index *x, weft_error *err)
{
    weft__kv_snapshot_head head;
    struct stat st_file;
    int fd, foreign = 0, slot = file[0] == 's';
    weft_status st = open_entry(f, file, layout, &fd, &head, &st_file, slot ? &foreign : NULL, err);
    if (st) return st;
    uint64_t n = weft__kv_snapshot_body_at(head.n_tokens) - sizeof head;
    int32_t *tokens = weft__alloc((size_t)n);
    weft__kv_store_entry *e = NULL;
    if (!tokens || !weft__kv_store_index_reserve(x))
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory for its %d tokens", head.n_tokens);
    if (!st) st = weft__kv_store_read_at(fd, sizeof head, tokens, n, err);
    if (!st) st = weft__kv_snapshot_check_tokens(&head, tokens, err);
    if (!st && !(e = weft__kv_store_entry_new(head.root, tokens, foreign ? 0 : head.n_tokens)))
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory");
    if (!st) {
        e->n_bytes = head.n_bytes;
        e->slot = slot;
        e->foreign = foreign;
        e->used = (uint64_t)st_file.st_mtim.tv_sec * 1000000000u + (uint64_t)st_file.st_mtim.tv_nsec;
        snprintf(e->file, sizeof e->file, "%.*s", WEFT__KV_STORE_FILE - 1, file);
        weft__kv_store_index_add(x, e);
        if (foreign)
            weft__log(WEFT__LOG_WARN, "%s/%s: saved pages of another model or page layout; it is kept for that",
                      f->path, file);
    }
    weft__free(tokens);
    close(fd);
    return st;
}

weft_status weft__kv_store_scan(weft__kv_store_folder *f, const weft__kv_layout *layout, weft__kv_store_index *x,
                                uint64_t *n_damaged, weft_error *err)
{
    weft_status st = WEFT_OK;
    int fd = openat(f->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        if (fd >= 0) close(fd);
        return weft_fail(err, WEFT_IO, "%s: cannot be listed: %s", f->path, strerror(errno));
    }
    for (struct dirent *d; !st && (d = readdir(dir));) {
        weft_error why = {0};
        char kind = kind_of(d->d_name);
        if (kind == 't') weft__kv_store_unlink(f, d->d_name);
        if (kind != 'p' && kind != 's') continue;
        weft_status bad = scan_file(f, d->d_name, layout, x, &why);
        if (bad == WEFT_NO_MEMORY) st = weft_fail(err, bad, "%s/%s: %s", f->path, d->d_name, why.message);
        else if (bad) weft__log(WEFT__LOG_WARN, "%s/%s: %s; it is not used", f->path, d->d_name, why.message);
        if (!weft__kv_store_is_damage(bad)) continue;
        weft__kv_store_unlink(f, d->d_name);
        ++*n_damaged;
    }
    closedir(dir);
    return st;
}
