// SPDX-License-Identifier: Apache-2.0
/* scan.c: what lies in a folder of the cache, and the small records beside the files (cache.h). State: the disk
 * only. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "hub/cache.h"

enum { DEPTH_MAX = 16, RECORD_BYTES_MAX = 16 << 20 };

/* One entry that is no folder: adds it when it is a file that a listing could name. */
static weft_status add_file(weft__listing *out, const char *path, const struct stat *s, weft_error *err)
{
    size_t n = strlen(path), k = strlen(WEFT__HUB_PART_SUFFIX);
    int partial = n > k && !strcmp(path + n - k, WEFT__HUB_PART_SUFFIX);
    if (!S_ISREG(s->st_mode) || weft__hub_path_fault(path, n) || (n > 10 && !strcmp(path + n - 10, ".part.json")))
        return WEFT_OK;
    if (out->n >= WEFT__HUB_FILES_MAX) return WEFT_OK;
    weft__hub_file *f = weft__listing_add(out, path, partial ? n - k : n);
    if (!f) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the list of pulled files");
    f->has_size = 1;
    f->n_bytes = (uint64_t)s->st_size;
    f->partial = partial;
    return WEFT_OK;
}

/* Adds what is below dir (closed here); paths get the first n_prefix bytes of path in front. */
static weft_status scan(int dir, char path[WEFT__HUB_PATH_MAX + 1], size_t n_prefix, int depth, weft__listing *out,
                        weft_error *err)
{
    weft_status st = WEFT_OK;
    DIR *d = fdopendir(dir);
    if (!d) {
        close(dir);
        return weft_fail(err, WEFT_IO, "reading a folder of the cache: %s", strerror(errno));
    }
    for (struct dirent *e; !st && (e = readdir(d));) {
        struct stat s;
        size_t n = strlen(e->d_name);
        if (e->d_name[0] == '.' || n_prefix + n + 1 > WEFT__HUB_PATH_MAX) continue;
        memcpy(path + n_prefix, e->d_name, n + 1);
        if (fstatat(dir, e->d_name, &s, AT_SYMLINK_NOFOLLOW)) continue;
        if (!S_ISDIR(s.st_mode)) {
            st = add_file(out, path, &s, err);
        } else if (depth < DEPTH_MAX) {
            int below = weft__hub_dir_open(dir, e->d_name, 0);
            memcpy(path + n_prefix + n, "/", 2);
            if (below >= 0) st = scan(below, path, n_prefix + n + 1, depth + 1, out, err);
        }
    }
    closedir(d);
    return st;
}

/* Where a file is there both complete and unfinished (a newer one is being fetched), the complete one is kept. */
static void drop_doubles(weft__listing *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const weft__hub_file *whole = NULL;
        for (size_t k = 0; l->files[i].partial && k < l->n && !whole; k++)
            if (!l->files[k].partial && !strcmp(l->files[k].path, l->files[i].path)) whole = &l->files[k];
        if (!whole) continue;
        weft__free(l->files[i].path);
        l->files[i--] = l->files[--l->n];
    }
}

weft_status weft__hub_cache_scan(int dir, weft__listing *out, weft_error *err)
{
    char path[WEFT__HUB_PATH_MAX + 1];
    int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* a position of its own */
    *out = (weft__listing){0};
    weft_status st = own < 0 ? weft_fail(err, WEFT_IO, "reading a folder of the cache: %s", strerror(errno))
                             : scan(own, path, 0, 0, out, err);
    if (!st) {
        drop_doubles(out);
        st = weft__listing_sort(out, err);
    }
    if (st) weft__listing_free(out);
    return st;
}

/* ---- records ---- */

static weft_status scan_read_all(int fd, weft__strbuf *t, weft_error *err)
{
    char piece[16 << 10];
    ssize_t n;
    while ((n = read(fd, piece, sizeof piece)) != 0) {
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 || t->len > RECORD_BYTES_MAX) break;
        weft__strbuf_put(t, piece, (size_t)n);
    }
    return t->failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for a record of the cache") : WEFT_OK;
}

weft_status weft__hub_record_read(int dir, const char *name, weft__json **out, weft_error *err)
{
    weft__strbuf t = {0};
    weft_status st = WEFT_OK;
    *out = NULL;
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        st = scan_read_all(fd, &t, err);
        close(fd);
    }
    if (!st && t.len && weft__json_parse(t.data, t.len, out, NULL) == WEFT_NO_MEMORY)
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a record of the cache");
    if (!st && weft__json_kind_of(*out) != WEFT__JSON_OBJECT) {
        weft__json_free(out);
        if (!(*out = weft__json_new_object()))
            st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a record of the cache");
    }
    weft__strbuf_free(&t);
    return st;
}

static int write_all(int fd, const char *s, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, s, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return 0;
        s += done;
        n -= (size_t)done;
    }
    return 1;
}

weft_status weft__hub_record_write(int dir, const char *name, const weft__json *record, weft_error *err)
{
    char aside[WEFT__HUB_SEGMENT_MAX + 32];
    weft__strbuf t = {0};
    weft_status st = WEFT_OK;
    snprintf(aside, sizeof aside, "%s.new", name);
    weft__json_write(&t, record, WEFT__JSON_INDENTED);
    if (t.failed) {
        weft__strbuf_free(&t);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a record of the cache");
    }
    int fd = openat(dir, aside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int ok = fd >= 0 && write_all(fd, t.data, t.len) && fsync(fd) == 0;
    if (fd >= 0 && close(fd)) ok = 0;
    if (!ok || renameat(dir, aside, dir, name)) {
        st = weft_fail(err, WEFT_IO, "writing %s in the cache: %s", name, strerror(errno));
        unlinkat(dir, aside, 0);
    }
    weft__strbuf_free(&t);
    return st;
}
