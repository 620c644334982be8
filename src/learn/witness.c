// SPDX-License-Identifier: Apache-2.0
/* witness.c: the witness log as its owner has it: opened, and appended to (witness.h). One thread.
 *
 * The order of writing is entries, hashes, checkpoint; what was written before the checkpoint failed is written over by
 * the next append, or cut off when the log is opened again. */
#include "learn/witness.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/random.h"
#include "learn/witness_parts.h"

struct weft__learn_witness {
    weft__learn_sync sync;
    int entries_fd, hashes_fd, checkpoints_fd; /* -1: not open */
    uint64_t size;                             /* entries under the last checkpoint */
    uint64_t entries_end, checkpoints_end;     /* bytes of both files that count */
    weft__learn_pair pair;
    weft__learn_vkey key;
};

/* ---- the key ---- */

/* A new file, whole or not there. */
static weft_status write_new(const char *dir, const char *name, const weft__strbuf *text, mode_t mode, weft_error *err)
{
    char *path = weft__learn_log_path(dir, name), *aside = NULL;
    weft_status st = path && !text->failed ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for the log's key");
    if (!st && !(aside = weft__alloc(strlen(path) + 5))) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a path");
    if (!st) sprintf(aside, "%s.new", path);
    const int fd = st ? -1 : open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (!st && (fd < 0 || write(fd, text->data, text->len) != (ssize_t)text->len || fsync(fd) || rename(aside, path)))
        st = weft_fail(err, WEFT_IO, "%s: %s", path, errno ? strerror(errno) : "it could not be written");
    if (fd >= 0) close(fd);
    weft__free(aside);
    weft__free(path);
    return st;
}

static weft_status make_key(weft__learn_witness *w, const char *dir, weft_error *err)
{
    weft__strbuf secret = {0}, shown = {0};
    char name[WEFT__LEARN_ORIGIN];
    snprintf(name, sizeof name, "weft-log/%016" PRIx64, weft__rng_entropy());
    weft_status st = weft__learn_pair_new(&w->pair, err);
    if (!st) st = weft__learn_vkey_of(name, w->pair.public_key, &w->key, err);
    if (st) return st;
    weft__base64_put(&secret, w->pair.secret, sizeof w->pair.secret);
    weft__strbuf_putc(&secret, '\n');
    weft__learn_vkey_write(&w->key, &shown);
    weft__strbuf_putc(&shown, '\n');
    st = write_new(dir, WEFT__LEARN_LOG_PUBLIC, &shown, 0644, err);
    if (!st) st = write_new(dir, WEFT__LEARN_LOG_KEY, &secret, 0600, err); /* last: with it the key is there */
    weft__strbuf_free(&secret);
    weft__strbuf_free(&shown);
    return st;
}

static weft_status read_key(weft__learn_witness *w, const char *dir, int is_new, weft_error *err)
{
    char text[64];
    weft_error own = {0};
    const int fd = weft__learn_log_open(dir, WEFT__LEARN_LOG_KEY, &own);
    size_t n_secret = 0;
    if (fd < 0 && own.status == WEFT_NOT_FOUND && is_new) return make_key(w, dir, err);
    if (fd < 0) return weft_fail(err, (weft_status)own.status, "%s", own.message);
    const ssize_t n = read(fd, text, sizeof text);
    close(fd);
    if (n < 2 || text[n - 1] != '\n' ||
        !weft__base64_read(text, (size_t)n - 1, w->pair.secret, sizeof w->pair.secret, &n_secret) ||
        n_secret != sizeof w->pair.secret)
        return weft_fail(err, WEFT_FORMAT, "%s/log/%s is not the key of a log", dir, WEFT__LEARN_LOG_KEY);
    weft_status st = weft__learn_witness_key(dir, &w->key, err);
    memcpy(w->pair.public_key, w->key.public_key, sizeof w->pair.public_key);
    return st;
}

/* ---- opening ---- */

static weft_status open_file(const char *dir, const char *name, int *fd, weft_error *err)
{
    char *path = weft__learn_log_path(dir, name);
    weft_status st = WEFT_OK;
    if (!path) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a path");
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (*fd < 0) st = weft_fail(err, WEFT_IO, "%s: %s", path, strerror(errno));
    weft__free(path);
    return st;
}

/* Where the entry behind the first `size` begins. */
static weft_status find_end(weft__learn_witness *w, weft_error *err)
{
    weft__learn_lines lines = {.fd = w->entries_fd};
    weft_status st = WEFT_OK;
    uint64_t n = 0;
    while (n < w->size && weft__learn_lines_next(&lines, &st, err)) n++;
    w->entries_end = lines.offset;
    weft__learn_lines_end(&lines);
    if (st || n == w->size) return st;
    return weft_fail(err, WEFT_FORMAT,
                     "the witness log has %" PRIu64 " entries, its last checkpoint says %" PRIu64
                     ": entries are missing. Move the folder away to begin a new one",
                     n, w->size);
}

static weft_status check_last(weft__learn_witness *w, weft_error *err)
{
    const weft__learn_row row = {weft__learn_row_of_file, &w->hashes_fd};
    weft__strbuf note = {0};
    weft__learn_checkpoint last;
    weft__learn_hash root;
    weft_status st;
    if (weft__learn_last_checkpoint(w->checkpoints_fd, &note, &w->checkpoints_end, &st, err)) {
        st = weft__learn_checkpoint_read(note.data, note.len, &w->key, &last, err);
        w->size = st ? 0 : last.size;
        if (!st) st = weft__learn_root(&row, last.size, &root, err);
        if (!st && memcmp(root.bytes, last.root.bytes, sizeof root.bytes))
            st = weft_fail(err, WEFT_FORMAT, "the hashes are not those of its last checkpoint");
        if (!st) st = find_end(w, err);
    }
    weft__strbuf_free(&note);
    return st == WEFT_FORMAT ? weft_fail_within(err, st, "the witness log ('weft log verify' tells more)") : st;
}

static void close_files(const weft__learn_witness *w)
{
    if (w->entries_fd >= 0) close(w->entries_fd);
    if (w->hashes_fd >= 0) close(w->hashes_fd);
    if (w->checkpoints_fd >= 0) close(w->checkpoints_fd);
}

/* What is behind the end counts for nothing. */
static void cut(weft__learn_witness *w)
{
    if (ftruncate(w->entries_fd, (off_t)w->entries_end) ||
        ftruncate(w->hashes_fd, (off_t)(weft__learn_row_length(w->size) * sizeof(weft__learn_hash))) ||
        ftruncate(w->checkpoints_fd, (off_t)w->checkpoints_end))
        return; /* it is written over */
}

weft_status weft__learn_witness_open(const char *dir, weft__learn_sync sync, weft__learn_witness **out, weft_error *err)
{
    weft__learn_witness *w = weft__alloc_zero(1, sizeof *w);
    char *path = weft__learn_log_path(dir, "");
    struct stat s;
    *out = NULL;
    weft_status st = w && path ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for the witness log");
    if (w) w->sync = sync, w->entries_fd = w->hashes_fd = w->checkpoints_fd = -1;
    if (!st && mkdir(path, 0700) && errno != EEXIST) st = weft_fail(err, WEFT_IO, "%s: %s", path, strerror(errno));
    if (!st) st = open_file(dir, WEFT__LEARN_LOG_ENTRIES, &w->entries_fd, err);
    if (!st) st = open_file(dir, WEFT__LEARN_LOG_HASHES, &w->hashes_fd, err);
    if (!st) st = open_file(dir, WEFT__LEARN_LOG_CHECKPOINTS, &w->checkpoints_fd, err);
    if (!st && fstat(w->checkpoints_fd, &s)) st = weft_fail(err, WEFT_IO, "%s: %s", path, strerror(errno));
    if (!st) st = read_key(w, dir, !s.st_size, err);
    if (!st) st = check_last(w, err);
    weft__free(path);
    if (!st) cut(w);
    if (st) weft__learn_witness_close(&w);
    *out = w;
    return st;
}

weft_status weft__learn_witness_check(const char *dir, weft_error *err)
{
    weft__learn_witness w = {.hashes_fd = -1, .checkpoints_fd = -1};
    weft_error own = {0};
    struct stat s;
    w.entries_fd = weft__learn_log_open(dir, WEFT__LEARN_LOG_ENTRIES, &own);
    if (w.entries_fd >= 0) w.hashes_fd = weft__learn_log_open(dir, WEFT__LEARN_LOG_HASHES, &own);
    if (w.hashes_fd >= 0) w.checkpoints_fd = weft__learn_log_open(dir, WEFT__LEARN_LOG_CHECKPOINTS, &own);
    weft_status st = own.status == WEFT_NOT_FOUND ? WEFT_OK : (weft_status)own.status; /* opening makes it */
    if (st) weft_fail(err, st, "%s", own.message);
    if (w.checkpoints_fd >= 0 && !fstat(w.checkpoints_fd, &s) && s.st_size) {
        st = read_key(&w, dir, 0, err);
        if (!st) st = check_last(&w, err);
    }
    close_files(&w);
    return st;
}

void weft__learn_witness_close(weft__learn_witness **p)
{
    weft__learn_witness *w = p ? *p : NULL;
    if (!w) return;
    *p = NULL;
    close_files(w);
    weft__free(w);
}

uint64_t weft__learn_witness_size(const weft__learn_witness *w)
{
    return w->size;
}

/* ---- appending ---- */

/* The row as it is going to be: what is in the file, and behind it what is not yet. */
struct growing {
    weft__learn_witness *w;
    uint64_t first;          /* place of items[0] */
    weft__learn_hash *items; /* [n] */
    size_t n, capacity;
};

static weft_status read_growing(void *arg, uint64_t place, weft__learn_hash *out, weft_error *err)
{
    struct growing *g = arg;
    if (place < g->first) return weft__learn_row_of_file(&g->w->hashes_fd, place, out, err);
    *out = g->items[place - g->first];
    return WEFT_OK;
}

static weft_status grow_row(struct growing *g, const weft__learn_entry *entries, size_t n, weft__learn_hash *root,
                            weft_error *err)
{
    const weft__learn_row row = {read_growing, g};
    weft_status st = WEFT_OK;
    for (size_t i = 0; i < n && !st; i++) {
        weft__learn_hash leaf, more[64];
        int n_more = 0;
        st = weft__learn_hash_leaf(entries[i].bytes, entries[i].n, &leaf, err);
        if (!st) st = weft__learn_row_grow(&row, g->w->size + i, &leaf, more, &n_more, err);
        if (!st && !weft__grow(&g->items, &g->capacity, g->n + (size_t)n_more, sizeof *g->items))
            st = weft_fail(err, WEFT_NO_MEMORY, "no memory for the witness log");
        for (int k = 0; k < n_more && !st; k++) g->items[g->n++] = more[k];
    }
    return st ? st : weft__learn_root(&row, g->w->size + n, root, err);
}

static weft_status write_at(int fd, const void *bytes, size_t n, uint64_t at, int syncs, weft_error *err)
{
    size_t done = 0;
    while (done < n) {
        ssize_t got = pwrite(fd, (const char *)bytes + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return weft_fail(err, WEFT_IO, "the witness log: %s", got ? strerror(errno) : "the disk is full");
        done += (size_t)got;
    }
    if (syncs && fdatasync(fd)) return weft_fail(err, WEFT_IO, "the witness log: %s", strerror(errno));
    return WEFT_OK;
}

static weft_status gather(const weft__learn_entry *entries, size_t n, weft__strbuf *lines, weft_error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (entries[i].n > WEFT__LEARN_ENTRY_MOST || (entries[i].n && memchr(entries[i].bytes, '\n', entries[i].n)))
            return weft_fail(err, WEFT_ARGUMENT, "an entry of the witness log is too long, or has a line break");
        weft__strbuf_put(lines, entries[i].bytes, entries[i].n);
        weft__strbuf_putc(lines, '\n');
    }
    return lines->failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for the witness log") : WEFT_OK;
}

weft_status weft__learn_witness_append(weft__learn_witness *w, const weft__learn_entry *entries, size_t n,
                                       weft_error *err)
{
    const int syncs = w->sync != WEFT__LEARN_SYNC_NONE;
    struct growing g = {.w = w, .first = weft__learn_row_length(w->size)};
    weft__learn_checkpoint c = {.size = w->size + n};
    weft__strbuf lines = {0}, note = {0};
    if (!n) return WEFT_OK;
    snprintf(c.origin, sizeof c.origin, "%s", w->key.name);
    weft_status st = gather(entries, n, &lines, err);
    if (!st) st = grow_row(&g, entries, n, &c.root, err);
    if (!st) st = weft__learn_checkpoint_write(&c, &w->key, &w->pair, &note, err);
    if (!st) st = write_at(w->entries_fd, lines.data, lines.len, w->entries_end, syncs, err);
    if (!st) st = write_at(w->hashes_fd, g.items, g.n * sizeof *g.items, g.first * sizeof *g.items, syncs, err);
    if (!st) st = write_at(w->checkpoints_fd, note.data, note.len, w->checkpoints_end, syncs, err);
    if (!st) {
        w->size = c.size;
        w->entries_end += lines.len;
        w->checkpoints_end += note.len;
    } else cut(w);
    weft__strbuf_free(&lines);
    weft__strbuf_free(&note);
    weft__free(g.items);
    return st;
}
