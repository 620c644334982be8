// SPDX-License-Identifier: Apache-2.0
/* witness_look.c: reading a witness log that others may write: is it what was signed, and proofs (witness.h). Any
 * thread and process. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "learn/witness_parts.h"

weft_status weft__learn_witness_key(const char *dir, weft__learn_vkey *out, weft_error *err)
{
    char text[512];
    const int fd = weft__learn_log_open(dir, WEFT__LEARN_LOG_PUBLIC, err);
    weft_error own = {0};
    if (fd < 0) return err ? (weft_status)err->status : WEFT_IO;
    const ssize_t n = read(fd, text, sizeof text);
    close(fd);
    if (n < 0) return weft_fail(err, WEFT_IO, "%s/log/%s cannot be read", dir, WEFT__LEARN_LOG_PUBLIC);
    weft_status st = weft__learn_vkey_read(text, (size_t)n, out, &own);
    return st ? weft_fail(err, st, "%s/log/%s: %s", dir, WEFT__LEARN_LOG_PUBLIC, own.message) : st;
}

/* ---- is all of it what was signed? ---- */

/* What is read side by side: entries, and the checkpoints over them. */
struct look {
    weft__learn_findings *found;
    const weft__learn_vkey *key;
    weft__learn_lines lines;
    int hashes_fd;
    char *notes; /* [n_notes], all checkpoints */
    size_t n_notes, at;
    uint64_t n_signed;           /* of the last checkpoint that holds */
    weft__learn_checkpoint next; /* that is to be held against the hashes when there are as many */
    int has_next;
    weft__learn_checkpoint kept;
    int has_kept;
};

/* The row of hashes made anew from the entries, as far as roots need it: those of the complete subtrees. */
struct peaks {
    weft__learn_hash items[64]; /* [level], where the bit of n is set */
    uint64_t n;
};

static weft_status read_peak(void *arg, uint64_t place, weft__learn_hash *out, weft_error *err)
{
    struct peaks *p = arg;
    for (int level = 0; level < 63; level++)
        if (p->n >> level & 1 && weft__learn_row_place(level, (p->n >> level) - 1) == place) {
            *out = p->items[level];
            return WEFT_OK;
        }
    return weft_fail(err, WEFT_INTERNAL, "a hash that no root needs");
}

static weft_status bad(struct look *k, int64_t first, int64_t last, const char *what, weft_error *err)
{
    k->found->first_bad = first;
    k->found->last_bad = last;
    if (first == last) return weft_fail(err, WEFT_FORMAT, "entry %" PRId64 " %s", first, what);
    return weft_fail(err, WEFT_FORMAT, "one of the entries %" PRId64 " to %" PRId64 " %s", first, last, what);
}

/* The next checkpoint of the file. */
static weft_status take_checkpoint(struct look *k, weft_error *err)
{
    const size_t n = weft__learn_note_length(k->notes + k->at, k->n_notes - k->at);
    weft_error own = {0};
    k->has_next = 0;
    if (!n) return WEFT_OK;
    weft_status st = weft__learn_checkpoint_read(k->notes + k->at, n, k->key, &k->next, &own);
    if (!st && k->found->n_checkpoints && k->next.size < k->found->last.size)
        st = weft_fail(&own, WEFT_FORMAT, "it has fewer entries than the one before");
    if (st) return weft_fail(err, st, "checkpoint %" PRIu64 " of the file: %s", k->found->n_checkpoints, own.message);
    k->at += n;
    k->has_next = 1;
    k->found->n_checkpoints++;
    k->found->last = k->next;
    return WEFT_OK;
}

/* Holds all checkpoints over the n entries that were read against their root. */
static weft_status check_roots(struct look *k, struct peaks *peaks, weft_error *err)
{
    const weft__learn_row row = {read_peak, peaks};
    weft__learn_hash root;
    weft_status st = WEFT_OK;
    if (!(k->has_next && k->next.size == peaks->n) && !(k->has_kept && k->kept.size == peaks->n)) return WEFT_OK;
    st = weft__learn_root(&row, peaks->n, &root, err);
    while (!st && k->has_next && k->next.size == peaks->n) {
        if (memcmp(root.bytes, k->next.root.bytes, sizeof root.bytes))
            return bad(k, (int64_t)k->n_signed, (int64_t)peaks->n - 1,
                       "is not what was signed, and the hashes were changed with it", err);
        k->n_signed = peaks->n;
        st = take_checkpoint(k, err);
    }
    if (!st && k->has_kept && k->kept.size == peaks->n && memcmp(root.bytes, k->kept.root.bytes, sizeof root.bytes))
        st = weft_fail(err, WEFT_FORMAT,
                       "the log is another one than that of the checkpoint that was kept: its first %" PRIu64
                       " entries differ",
                       peaks->n);
    return st;
}

/* One more entry: its hash, and those of the subtrees that it completes, must stand in the row. */
static weft_status take_entry(struct look *k, struct peaks *peaks, weft_error *err)
{
    weft__learn_hash at, stored, left;
    weft_status st = weft__learn_hash_leaf(k->lines.line, k->lines.n_line, &at, err);
    const uint64_t i = peaks->n;
    int level = 0;
    for (; !st; level++) {
        st = weft__learn_row_of_file(&k->hashes_fd, weft__learn_row_place(level, i >> level), &stored, NULL);
        if (st == WEFT_FORMAT) return WEFT_OK; /* the row ends: it is under no checkpoint yet, or that is seen */
        if (st) return weft_fail(err, st, "the log's hashes cannot be read");
        if (k->lines.is_long || memcmp(stored.bytes, at.bytes, sizeof at.bytes))
            return bad(k, (int64_t)i, (int64_t)i,
                       level ? "has a hash above it that is not its own" : "is not the one that was logged there", err);
        if (!(i >> level & 1)) break;
        left = peaks->items[level];
        weft__learn_hash right = at;
        st = weft__learn_hash_node(&left, &right, &at, err);
    }
    peaks->items[level] = at;
    peaks->n++;
    return st;
}

static weft_status walk(struct look *k, weft_error *err)
{
    struct peaks peaks = {.n = 0};
    weft_status st = take_checkpoint(k, err), read = WEFT_OK;
    if (!st) st = check_roots(k, &peaks, err);
    while (!st && weft__learn_lines_next(&k->lines, &read, err)) {
        k->found->n_entries++;
        /* what no checkpoint covers may be half-written */
        if (k->has_next && peaks.n + 1 == k->found->n_entries) st = take_entry(k, &peaks, err);
        if (!st && k->has_next) st = check_roots(k, &peaks, err);
    }
    if (!st) st = read;
    if (st) return st;
    if (k->has_next)
        return bad(k, (int64_t)peaks.n, (int64_t)k->next.size - 1,
                   k->found->n_entries > peaks.n ? "has no hash" : "is missing: the log ends before it", err);
    if (k->at < k->n_notes && k->n_notes - k->at > WEFT__LEARN_NOTE_MOST)
        return weft_fail(err, WEFT_FORMAT, "what stands behind checkpoint %" PRIu64 " is none",
                         k->found->n_checkpoints);
    k->found->n_signed = k->n_signed;
    if (k->has_kept && k->kept.size > k->n_signed)
        return weft_fail(err, WEFT_FORMAT,
                         "the log was cut: the checkpoint that was kept is over %" PRIu64 " entries, its last one over "
                         "%" PRIu64,
                         k->kept.size, k->n_signed);
    return WEFT_OK;
}

static weft_status read_notes(const char *dir, struct look *k, weft_error *err)
{
    const int fd = weft__learn_log_open(dir, WEFT__LEARN_LOG_CHECKPOINTS, err);
    struct stat s;
    weft_status st = WEFT_OK;
    if (fd < 0) return err ? (weft_status)err->status : WEFT_IO;
    if (fstat(fd, &s)) st = weft_fail(err, WEFT_IO, "the log's checkpoints cannot be read");
    if (!st && !(k->notes = weft__alloc((size_t)s.st_size + 1)))
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory for the log's checkpoints");
    while (!st && k->n_notes < (size_t)s.st_size) {
        const ssize_t got = pread(fd, k->notes + k->n_notes, (size_t)s.st_size - k->n_notes, (off_t)k->n_notes);
        if (got <= 0) break; /* it became shorter */
        k->n_notes += (size_t)got;
    }
    close(fd);
    return st;
}

weft_status weft__learn_witness_verify(const char *dir, const weft__learn_vkey *key, const char *kept, size_t n_kept,
                                       weft__learn_findings *out, weft_error *err)
{
    weft_error own = {0};
    weft__learn_vkey in_folder;
    struct look k = {.found = out, .key = key ? key : &in_folder, .lines.fd = -1, .hashes_fd = -1};
    *out = (weft__learn_findings){.first_bad = -1, .last_bad = -1};
    weft_status st = key ? WEFT_OK : weft__learn_witness_key(dir, &in_folder, &own);
    if (!st && kept) {
        st = weft__learn_checkpoint_read(kept, n_kept, k.key, &k.kept, &own);
        k.has_kept = !st;
    }
    if (!st) st = read_notes(dir, &k, &own); /* first: what comes meanwhile is beyond it */
    if (!st && (k.hashes_fd = weft__learn_log_open(dir, WEFT__LEARN_LOG_HASHES, &own)) < 0)
        st = (weft_status)own.status;
    if (!st && (k.lines.fd = weft__learn_log_open(dir, WEFT__LEARN_LOG_ENTRIES, &own)) < 0)
        st = (weft_status)own.status;
    if (!st) st = walk(&k, &own);
    if (k.hashes_fd >= 0) close(k.hashes_fd);
    if (k.lines.fd >= 0) close(k.lines.fd);
    weft__learn_lines_end(&k.lines);
    weft__free(k.notes);
    return st ? weft_fail(err, st, "%s", own.message) : WEFT_OK;
}

/* ---- proofs ---- */

weft_status weft__learn_witness_checkpoint(const char *dir, weft__strbuf *out, weft_error *err)
{
    uint64_t end;
    weft_error own = {0};
    const int fd = weft__learn_log_open(dir, WEFT__LEARN_LOG_CHECKPOINTS, &own);
    weft_status st = fd < 0 ? (weft_status)own.status : WEFT_OK;
    if (fd >= 0 && !weft__learn_last_checkpoint(fd, out, &end, &st, &own) && !st)
        st = weft_fail(&own, WEFT_NOT_FOUND, "the log of %s has no checkpoint yet", dir);
    if (fd >= 0) close(fd);
    return st ? weft_fail(err, st, "%s", own.message) : WEFT_OK;
}

/* 1: the entry has this id. */
static int has_id(const char *line, size_t n, const char *id)
{
    weft__json *v;
    if (!memmem(line, n, id, strlen(id)) || weft__json_parse(line, n, &v, NULL)) return 0;
    const int is = weft__json_is(weft__json_get(v, "id"), id);
    weft__json_free(&v);
    return is;
}

/* The entry that is meant, among the first `size`. */
static weft_status find_entry(const char *dir, uint64_t size, uint64_t *index, const char *id, weft__strbuf *out,
                              weft_error *err)
{
    weft__learn_lines lines = {.fd = weft__learn_log_open(dir, WEFT__LEARN_LOG_ENTRIES, err)};
    weft_status st = WEFT_OK;
    int is_found = 0;
    if (lines.fd < 0) return err ? (weft_status)err->status : WEFT_IO;
    for (uint64_t i = 0; i < size && weft__learn_lines_next(&lines, &st, err); i++) {
        if (lines.is_long || (id ? !has_id(lines.line, lines.n_line, id) : i != *index)) continue;
        is_found = 1;
        *index = i;
        out->len = 0;
        weft__strbuf_put(out, lines.line, lines.n_line);
        if (!id) break;
    }
    weft__learn_lines_end(&lines);
    close(lines.fd);
    if (!st && out->failed) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a proof");
    if (st || is_found) return st;
    if (id) return weft_fail(err, WEFT_NOT_FOUND, "no entry under the last checkpoint has the id '%s'", id);
    return weft_fail(err, WEFT_NOT_FOUND, "the last checkpoint is over %" PRIu64 " entries: there is no %" PRIu64, size,
                     *index);
}

weft_status weft__learn_witness_prove(const char *dir, uint64_t index, const char *id, weft__strbuf *out,
                                      weft_error *err)
{
    weft_error own = {0};
    weft__learn_vkey key;
    weft__learn_checkpoint c;
    weft__learn_proof proof;
    weft__learn_proven proven = {0};
    weft__strbuf note = {0}, entry = {0};
    int fd = -1;
    weft__learn_row row = {weft__learn_row_of_file, &fd};
    const size_t from = out->len;
    weft_status st = weft__learn_witness_key(dir, &key, &own);
    if (!st) st = weft__learn_witness_checkpoint(dir, &note, &own);
    if (!st) st = weft__learn_checkpoint_read(note.data, note.len, &key, &c, &own);
    if (!st) st = find_entry(dir, c.size, &index, id, &entry, &own);
    if (!st && (fd = weft__learn_log_open(dir, WEFT__LEARN_LOG_HASHES, &own)) < 0) st = (weft_status)own.status;
    if (!st) st = weft__learn_prove_inclusion(&row, index, c.size, &proof, &own);
    if (!st) weft__learn_proof_write(index, &proof, entry.data, entry.len, note.data, note.len, out);
    if (!st && out->failed) st = weft_fail(&own, WEFT_NO_MEMORY, "no memory for a proof");
    /* nothing is handed out that does not hold */
    if (!st) st = weft__learn_proof_check(out->data + from, out->len - from, &key, &proven, &own);
    weft__strbuf_free(&proven.entry);
    if (fd >= 0) close(fd);
    weft__strbuf_free(&note);
    weft__strbuf_free(&entry);
    return st ? weft_fail(err, st, "%s", own.message) : WEFT_OK;
}
