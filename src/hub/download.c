// SPDX-License-Identifier: Apache-2.0
/* download.c: see download.h. */
#include "hub/download.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/log.h"
#include "hub/cache.h"
#include "base/sha256.h"

#define DISK_MARGIN ((uint64_t)16 << 20) /* bytes left free */
#define RESTARTS_MAX 3                   /* times that the content may turn out to be another one */

/* A download that is under way. */
typedef struct download_job {
    const weft__download *d;
    char part[WEFT__HUB_SEGMENT_MAX + 16], record[WEFT__HUB_SEGMENT_MAX + 16], shown[WEFT__HUB_SHOW];
    int fd;
    weft__sha256 sha; /* of the first `have` bytes */
    uint64_t have, size;
    int has_size;
    char etag[WEFT__HUB_HTTP_ETAG]; /* of the content that the part belongs to; "" unknown */
    char linked[65];                /* SHA-256 that the server announced with the file */
    int inherited;                  /* some bytes are from an earlier run */
    /* of the current attempt: headers were checked; must begin anew; (count); bytes came */
    int begun, restart, restarts, gained;
} download_job;

weft_status weft__hub_disk_room(int dir, uint64_t n_bytes, weft_error *err)
{
    struct statvfs v;
    uint64_t room, need;
    if (fstatvfs(dir, &v)) return WEFT_OK; /* unknown: writing will tell */
    if (!weft__checked_mul(v.f_bavail, v.f_frsize, &room)) return WEFT_OK;
    if (n_bytes == 0 || (weft__checked_add(n_bytes, DISK_MARGIN, &need) && need <= room)) return WEFT_OK;
    return weft_fail(
        err, WEFT_LIMIT,
        "%.2f GB are needed and %.2f GB are free where pulled models lie: free space (weft rm), or set WEFT_CACHE",
        (double)n_bytes / 1e9, (double)room / 1e9);
}

static weft_status disk_failed(const download_job *j, const char *what, int why, weft_error *err)
{
    const char *remedy =
        why == ENOSPC || why == EDQUOT ? "; free space (weft rm) and run it again: what is there is kept" : "";
    return weft_fail(err, WEFT_IO, "%s: %s: %s%s", j->shown, what, strerror(why), remedy);
}

static int tick(download_job *j, const char *what)
{
    return j->d->progress && j->d->progress(j->d->arg, what, j->have);
}

/* ---- the part and its record ---- */

static int is_strong(const char *etag)
{
    return etag[0] == '"';
}

/* Whether the record says that the part is of the content that is listed now. */
static int record_fits(const weft__json *r, const weft__hub_file *f)
{
    const char *id = "";
    int64_t size = -1;
    size_t n;
    weft__json_string(weft__json_get(r, "id"), &id, &n);
    weft__json_int(weft__json_get(r, "size"), &size);
    return !strcmp(id, f->id) && (f->has_size ? size >= 0 && (uint64_t)size == f->n_bytes : size < 0);
}

/* The recorded ETag into etag. Returns whether the part may be used: something must be able to tell if the content
 * changed. */
static int read_record(int dir, const char *name, const weft__hub_file *f, char etag[WEFT__HUB_HTTP_ETAG])
{
    weft__json *r = NULL;
    const char *s = "";
    size_t n;
    etag[0] = 0;
    if (weft__hub_record_read(dir, name, &r, NULL)) return 0;
    int fits = record_fits(r, f);
    if (fits && weft__json_string(weft__json_get(r, "etag"), &s, &n) && n < WEFT__HUB_HTTP_ETAG) strcpy(etag, s);
    for (char *c = etag; *c; c++)
        if (*c < 0x20 || *c > 0x7e) etag[0] = 0; /* it goes into a request's header */
    weft__json_free(&r);
    return fits && (is_strong(etag) || f->sha256[0]);
}

static weft_status write_record(download_job *j, weft_error *err)
{
    const weft__hub_file *f = j->d->file;
    weft__json *r = weft__json_new_object();
    weft_status st = WEFT_OK;
    if (!weft__json_set(r, "id", weft__json_new_string(f->id, strlen(f->id))) ||
        !weft__json_set(r, "size", weft__json_new_int(f->has_size ? (int64_t)f->n_bytes : -1)) ||
        !weft__json_set(r, "etag", weft__json_new_string(j->etag, strlen(j->etag))))
        st = weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for its record", j->shown);
    else st = weft__hub_record_write(j->d->dir, j->record, r, err);
    weft__json_free(&r);
    return st;
}

static weft_status empty_part(download_job *j, weft_error *err)
{
    j->have = 0;
    j->inherited = 0;
    if (ftruncate(j->fd, 0) || lseek(j->fd, 0, SEEK_SET) < 0) return disk_failed(j, "emptying its part", errno, err);
    return weft__sha256_begin(&j->sha, err);
}

/* Hashes what an earlier run left. */
static weft_status read_part(download_job *j, uint64_t n, weft_error *err)
{
    enum { PIECE = 1 << 20 };
    weft_status st = WEFT_OK;
    void *piece = weft__alloc(PIECE);
    if (!piece) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to check its part", j->shown);
    while (!st && j->have < n) {
        ssize_t got = pread(j->fd, piece, PIECE, (off_t)j->have);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            st = disk_failed(j, "reading its part", got < 0 ? errno : EIO, err);
        } else if (!(st = weft__sha256_add(&j->sha, piece, (size_t)got, err))) {
            j->have += (uint64_t)got;
            if (tick(j, "checking")) st = weft_fail(err, WEFT_CANCELLED, "cancelled");
        }
    }
    weft__free(piece);
    if (!st && lseek(j->fd, (off_t)j->have, SEEK_SET) < 0) st = disk_failed(j, "reading its part", errno, err);
    return st;
}

static void name_files(const weft__download *d, download_job *j)
{
    *j = (download_job){.d = d, .fd = -1, .has_size = d->file->has_size, .size = d->file->n_bytes};
    snprintf(j->part, sizeof j->part, "%.*s" WEFT__HUB_PART_SUFFIX, WEFT__HUB_SEGMENT_MAX, d->leaf);
    snprintf(j->record, sizeof j->record, "%.*s" WEFT__HUB_PART_SUFFIX ".json", WEFT__HUB_SEGMENT_MAX, d->leaf);
    weft__hub_show(j->shown, d->file->path, strlen(d->file->path));
}

uint64_t weft__download_begun(const weft__download *d)
{
    struct stat s;
    download_job j;
    name_files(d, &j);
    if (fstatat(d->dir, j.part, &s, AT_SYMLINK_NOFOLLOW) || !S_ISREG(s.st_mode) ||
        !read_record(d->dir, j.record, d->file, j.etag))
        return 0;
    return j.has_size && (uint64_t)s.st_size > j.size ? 0 : (uint64_t)s.st_size;
}

static weft_status open_part(download_job *j, weft_error *err)
{
    uint64_t begun = weft__download_begun(j->d);
    j->fd = openat(j->d->dir, j->part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (j->fd < 0) return disk_failed(j, "creating its part", errno, err);
    weft_status st = weft__sha256_begin(&j->sha, err);
    if (st) return st;
    if (begun == 0) return empty_part(j, err);
    read_record(j->d->dir, j->record, j->d->file, j->etag);
    j->inherited = 1;
    return read_part(j, begun, err);
}

/* ---- one response ---- */

static weft_status start_over(download_job *j, const char *why, weft_error *err)
{
    j->restart = 1;
    return weft_fail(err, WEFT_IO, "%s: %s", j->shown, why);
}

static weft_status check_total(download_job *j, int64_t total, weft_error *err)
{
    if (total < 0)
        return j->has_size
                   ? WEFT_OK
                   : weft_fail(err, WEFT_FORMAT, "%s: the server does not say how long it is: refused", j->shown);
    if (j->has_size && (uint64_t)total != j->size)
        return weft_fail(err, WEFT_FORMAT, "%s: the server sends %lld bytes where %llu were announced: refused",
                         j->shown, (long long)total, (unsigned long long)j->size);
    if (j->has_size) return WEFT_OK;
    j->has_size = 1;
    j->size = (uint64_t)total;
    return weft__hub_disk_room(j->d->dir, j->size - (j->have < j->size ? j->have : j->size), err);
}

/* The announced SHA-256: the listing's and the response's must be the same one. */
static weft_status check_linked(download_job *j, const weft__hub_http_reply *r, weft_error *err)
{
    const char *listed = j->d->file->sha256;
    if (strlen(r->linked_etag) != 64 || strspn(r->linked_etag, "0123456789abcdef") != 64) return WEFT_OK;
    if ((listed[0] && strcmp(listed, r->linked_etag)) || (j->linked[0] && strcmp(j->linked, r->linked_etag)))
        return weft_fail(err, WEFT_STATE, "%s: it was changed on the server in this moment: run it again", j->shown);
    memcpy(j->linked, r->linked_etag, 65);
    return WEFT_OK;
}

/* Before the first byte of a response: is it of the right content, and from the right place on? */
static weft_status download_begin(download_job *j, const weft__hub_http_reply *r, weft_error *err)
{
    weft_status st = check_linked(j, r, err);
    j->begun = 1;
    if (st) return st;
    if (r->status == 206) {
        if (r->range_first < 0 || (uint64_t)r->range_first != j->have)
            return start_over(j, "the server answers with another range than it was asked for", err);
        if (is_strong(r->etag) && is_strong(j->etag) && strcmp(r->etag, j->etag))
            return start_over(j, "its content changed on the server", err);
        return check_total(j, r->range_total, err);
    }
    if (r->status != 200)
        return weft_fail(err, WEFT_FORMAT, "%s: the server answers with status %ld", j->shown, r->status);
    /* All of it, from the beginning: the server knows no ranges, or the content changed since. */
    if (j->have && (st = empty_part(j, err))) return st;
    if ((st = check_total(j, r->length, err))) return st;
    strcpy(j->etag, r->etag);
    return write_record(j, err);
}

static weft_status on_body(void *arg, const weft__hub_http_reply *r, const void *bytes, size_t n, weft_error *err)
{
    download_job *j = arg;
    const char *s = bytes;
    weft_status st = j->begun ? WEFT_OK : download_begin(j, r, err);
    if (st) return st;
    if (n > j->size - j->have)
        return weft_fail(err, WEFT_FORMAT, "%s: the server sends more than the %llu bytes that were announced: refused",
                         j->shown, (unsigned long long)j->size);
    for (size_t left = n; left > 0;) {
        ssize_t done = write(j->fd, s, left);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return disk_failed(j, "writing", done < 0 ? errno : ENOSPC, err);
        if ((st = weft__sha256_add(&j->sha, s, (size_t)done, err))) return st;
        s += done;
        left -= (size_t)done;
        j->have += (uint64_t)done;
    }
    j->gained |= n > 0;
    return tick(j, "fetching") ? weft_fail(err, WEFT_CANCELLED, "cancelled") : WEFT_OK;
}

static int on_poll(void *arg)
{
    return tick(arg, "fetching");
}

/* One request. WEFT_OK: nothing went wrong, though bytes may still be missing. *again: another try may help. */
static weft_status attempt(download_job *j, const char *url, int *again, weft_error *err)
{
    const weft__download *d = j->d;
    weft__hub_http_reply reply;
    weft__hub_http_call call = {.url = url,
                                .token = d->remote->token,
                                .from = j->have,
                                .if_range = is_strong(j->etag) ? j->etag : NULL,
                                .body = on_body,
                                .poll = on_poll,
                                .arg = j};
    j->begun = j->restart = j->gained = 0;
    weft_status st = weft__hub_http_get(d->remote->http, &call, &reply, err);
    *again = reply.transient;
    if (!st && reply.status == 416 && j->have)
        st = start_over(j, "the server does not have the range that is missing", err);
    else if (!st && (reply.status < 200 || reply.status > 299)) {
        st = weft__remote_refused(d->remote, d->name, &reply, err);
        *again = reply.transient;
        if (st == WEFT_NOT_FOUND) st = weft_fail_within(err, st, "%s", j->shown);
    } else if (!st && !j->begun) {
        st = download_begin(j, &reply, err); /* a body of no bytes */
    }
    if (!st && j->have < j->size) {
        *again = 1;
        st = weft_fail(err, WEFT_IO, "%s: the server ended after %llu of %llu bytes", j->shown,
                       (unsigned long long)j->have, (unsigned long long)j->size);
    }
    return st;
}

static weft_status fetch(download_job *j, const char *url, weft_error *err)
{
    weft_status st;
    int again;
    for (int tries = 0; !j->has_size || j->have < j->size;) {
        if (!(st = attempt(j, url, &again, err))) continue;
        if (j->restart && j->restarts++ < RESTARTS_MAX) {
            weft__log(WEFT__LOG_INFO, "%s: beginning anew", j->shown);
            j->etag[0] = 0;
            if ((st = empty_part(j, err))) return st;
            continue;
        }
        if (j->gained) tries = 0; /* it gets on */
        if (!again || tries++ >= j->d->remote->retries) return st;
        weft__log(WEFT__LOG_INFO, "%s: trying again: %s", j->shown, err ? err->message : "");
        if (weft__remote_pause(j->d->remote, tries, err)) return WEFT_CANCELLED;
    }
    return WEFT_OK;
}

/* ---- the end ---- */

static void drop_part(download_job *j)
{
    unlinkat(j->d->dir, j->part, 0);
    unlinkat(j->d->dir, j->record, 0);
}

/* WEFT_OK and *fits 0 when bytes of an earlier run may be to blame: then it is worth one more try from the start. */
static weft_status verify(download_job *j, char sha256[65], int *verified, int *fits, weft_error *err)
{
    const char *wanted = j->d->file->sha256[0] ? j->d->file->sha256 : j->linked;
    weft__sha256_end(&j->sha, sha256);
    *verified = wanted[0] != 0;
    *fits = !wanted[0] || !strcmp(wanted, sha256);
    if (*fits || j->inherited) return WEFT_OK;
    drop_part(j);
    return weft_fail(
        err, WEFT_FORMAT,
        "%s: its SHA-256 is %s and should be %s: damaged on the way, or not what it claims to be; not kept", j->shown,
        sha256, wanted);
}

static weft_status publish(download_job *j, weft_error *err)
{
    if (fsync(j->fd)) return disk_failed(j, "flushing to the disk", errno, err);
    if (renameat(j->d->dir, j->part, j->d->dir, j->d->leaf))
        return disk_failed(j, "renaming the finished file", errno, err);
    unlinkat(j->d->dir, j->record, 0);
    fsync(j->d->dir); /* some file systems cannot; the file itself is safe */
    return WEFT_OK;
}

weft_status weft__download_run(const weft__download *d, char sha256[65], uint64_t *n_bytes, int *verified,
                               weft_error *err)
{
    download_job j;
    int fits = 0;
    name_files(d, &j);
    char *url = weft__remote_file_url(d->remote, d->name, d->file->path);
    weft_status st =
        url ? open_part(&j, err) : weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for its address", j.shown);
    while (!st && !fits) {
        st = fetch(&j, url, err);
        if (!st) st = verify(&j, sha256, verified, &fits, err);
        if (!st && !fits) st = empty_part(&j, err);
    }
    if (!st) st = publish(&j, err);
    *n_bytes = j.have;
    if (j.fd >= 0) close(j.fd);
    weft__sha256_free(&j.sha);
    weft__free(url);
    return st;
}
