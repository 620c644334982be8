// SPDX-License-Identifier: Apache-2.0
/* witness.h: a log that shows when it was changed: of every answer, feedback, version and deletion an entry, over
 * all of them a hash tree (merkle.h), over that signed checkpoints (note.h). Entries hold numbers, ids and salted
 * hashes, no texts and no names of tenants.
 *
 * A folder `log` holds: entries.jsonl, an entry per line; hashes, the row of merkle.h; checkpoints, one signed note
 * behind the other; key, which signs (mode 0600); public, by which others check. What no checkpoint covers is no
 * part of the log: opening drops it, and who appends keeps entries until that has succeeded.
 *
 * What it proves: who changes, drops, adds or reorders entries under a checkpoint is found out, by place. What not:
 * who owns the key can make a new log; and a log that was cut back to an earlier checkpoint is found out by those
 * alone who kept a later one elsewhere.
 *
 * Threads: an open log has one owner. The functions that look read files, from any thread and process. */
#ifndef WEFT_LEARN_WITNESS_H
#define WEFT_LEARN_WITNESS_H

#include "learn/note.h"

/* When what is written is on the disk: never asked for; after each batch; after each record, which is a batch then. */
typedef enum weft__learn_sync { WEFT__LEARN_SYNC_BATCH, WEFT__LEARN_SYNC_NONE, WEFT__LEARN_SYNC_EACH } weft__learn_sync;

typedef struct weft__learn_witness weft__learn_witness;

/* Of the folder `dir`, which is there; makes the log, with a key of its own, where there is none. WEFT_FORMAT: it is
 * not whole, as the message says; WEFT_IO, WEFT_NO_MEMORY, WEFT_INTERNAL. */
weft_status weft__learn_witness_open(const char *dir, weft__learn_sync sync, weft__learn_witness **out,
                                     weft_error *err);
/* Would it be opened? Likewise, but nothing is made or cut; where there is none as yet, WEFT_OK. */
weft_status weft__learn_witness_check(const char *dir, weft_error *err);
void weft__learn_witness_close(weft__learn_witness **w);
/* Entries under the last checkpoint. */
uint64_t weft__learn_witness_size(const weft__learn_witness *w);

typedef struct weft__learn_entry {
    const char *bytes; /* [n], without a line break, at most WEFT__LEARN_ENTRY_MOST */
    size_t n;
} weft__learn_entry;

/* Appends entries[0..n) and a checkpoint over all; on the disk as `sync` says. On failure the log is as it was:
 * WEFT_IO, WEFT_NO_MEMORY, WEFT_INTERNAL, WEFT_ARGUMENT (an entry is too long, or has a line break). */
weft_status weft__learn_witness_append(weft__learn_witness *w, const weft__learn_entry *entries, size_t n,
                                       weft_error *err);

/* ---- looking (witness_look.c) ---- */

/* The public key that stands in the log's folder. WEFT_NOT_FOUND, WEFT_IO, WEFT_FORMAT. */
weft_status weft__learn_witness_key(const char *dir, weft__learn_vkey *out, weft_error *err);

typedef struct weft__learn_findings {
    uint64_t n_entries; /* lines that are whole */
    uint64_t n_signed;  /* under the last checkpoint; those beyond are unsigned as yet */
    uint64_t n_checkpoints;
    int64_t first_bad; /* the first entry that is not what was signed; -1: none is known */
    int64_t last_bad;  /* it is one of first_bad..last_bad; -1: as first_bad */
    weft__learn_checkpoint last;
} weft__learn_findings;

/* Reads all of the log and holds every entry and checkpoint against its hashes. key: NULL: the one in the folder.
 * kept[0..n_kept): a checkpoint that somebody kept, which must be one of this log; NULL: none. WEFT_OK: all of it
 * holds; WEFT_FORMAT: what does not, and out->first_bad; WEFT_NOT_FOUND, WEFT_IO, WEFT_NO_MEMORY. */
weft_status weft__learn_witness_verify(const char *dir, const weft__learn_vkey *key, const char *kept, size_t n_kept,
                                       weft__learn_findings *out, weft_error *err);

/* Appends a proof of the entry under the last checkpoint: of this number, or where id is not NULL of the last entry
 * that has it as its "id". WEFT_NOT_FOUND, WEFT_FORMAT, WEFT_IO, WEFT_NO_MEMORY. */
weft_status weft__learn_witness_prove(const char *dir, uint64_t index, const char *id, weft__strbuf *out,
                                      weft_error *err);
/* Appends the last checkpoint, as it is signed. */
weft_status weft__learn_witness_checkpoint(const char *dir, weft__strbuf *out, weft_error *err);

#endif
