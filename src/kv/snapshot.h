// SPDX-License-Identifier: Apache-2.0
/* snapshot.h: a copy of the pages of a prefix, laid out byte for byte as the file in which the disk store keeps it.
 *
 *   head     88 bytes, struct weft__kv_snapshot_head; its sum covers what stands before it and the tokens
 *   tokens   n_tokens × int32, then zeros up to a multiple of 64
 *   body     per group its pages, in order: those that a sequence of n_tokens needs for continuing (pool.h,
 *            weft__kv_first_entry)
 * All little-endian. Every size follows from the layout and n_tokens, and must be what it is.
 * A snapshot is plain memory: it belongs to one owner, on any thread, and does not refer to the pool it came from. */
#ifndef WEFT_KV_SNAPSHOT_H
#define WEFT_KV_SNAPSHOT_H

#include "kv/prefix.h"

enum { WEFT__KV_SNAPSHOT_VERSION = 1, WEFT__KV_SNAPSHOT_GROUPS = 8, WEFT__KV_SNAPSHOT_TOKENS = 1 << 24 };

/* What pages mean: those of a file are used only where all of it is the same. `model` names whatever else decides a
 * page's bytes: the weights, the build of the model, the provider and its tier (they choose the order inside a page and
 * the last bits). */
typedef struct weft__kv_layout {
    weft__kv_key model;
    int32_t n_groups;
    weft_kv_group group[WEFT__KV_SNAPSHOT_GROUPS];
    uint64_t page_bytes[WEFT__KV_SNAPSHOT_GROUPS];
    uint64_t digest; /* of groups, page sizes and the KV type */
    /* Of pages of another type in the same groups, whose files are as good; NULL: there is none. Borrowed. */
    const struct weft__kv_layout *next;
} weft__kv_layout;

typedef struct weft__kv_snapshot_head {
    char magic[8]; /* "weft-kv\n" */
    uint32_t version;
    int32_t n_groups;
    weft__kv_key model, root;
    uint64_t layout;  /* weft__kv_layout.digest */
    uint64_t n_bytes; /* of the file */
    int32_t n_tokens;
    uint32_t reserved; /* 0 */
    uint64_t body_sum; /* weft__hash of the body */
    uint64_t head_sum; /* of the head before this field, and of the tokens with their padding */
} weft__kv_snapshot_head;

typedef struct weft__kv_snapshot {
    uint64_t n_bytes;
    unsigned char *bytes; /* [n_bytes], 64-byte aligned */
} weft__kv_snapshot;

/* Without others. WEFT_UNSUPPORTED: more than WEFT__KV_SNAPSHOT_GROUPS groups. */
weft_status weft__kv_layout_of(const weft__kv_pool *pool, weft__kv_key model, weft__kv_layout *out, weft_error *err);

/* Of the longest prefix of n_tokens tokens that a snapshot of them serves when only the first n count: n, or 0 when it
 * lacks a window before n. */
int32_t weft__kv_snapshot_usable(const weft__kv_layout *layout, int32_t n_tokens, int32_t n);

/* A snapshot of the first n tokens of what seq holds (engine thread); tokens[0, n) are those it evaluated. In pieces:
 * begin, then copy until it returns 1. WEFT_ARGUMENT (n), WEFT_STATE (a window before n is gone), WEFT_NO_MEMORY. */
weft_status weft__kv_snapshot_begin(const weft__kv_layout *layout, weft__kv_key root, const int32_t *tokens, int32_t n,
                                    const weft__kv_seq *seq, weft__kv_snapshot **out, weft_error *err);
/* Copies at most `budget` bytes of the pages, from byte *at of the body on, which begins at 0 and moves on. 1: that was
 * the last. Between calls seq may change for another one that holds the same tokens. */
int weft__kv_snapshot_copy(weft__kv_snapshot *s, const weft__kv_layout *layout, const weft__kv_seq *seq, uint64_t *at,
                           uint64_t budget);
/* Fills seq, empty, with the first n tokens (engine thread); n as weft__kv_snapshot_match or _usable said. WEFT_LIMIT:
 * no free page, or its context is too small; seq is empty then. The snapshot was checked against `layout`, which is the
 * pool's. In pieces: begin, then load until *complete. Each copies at most `budget` bytes, from byte *at of those
 * wanted on, which begins at 0 and moves on. Meanwhile seq holds the pages taken so far, and its length is 0; after an
 * error of load_some it is empty. */
weft_status weft__kv_snapshot_load_begin(const weft__kv_snapshot *s, const weft__kv_layout *layout, int32_t n,
                                         weft__kv_seq *seq, weft_error *err);
weft_status weft__kv_snapshot_load_some(const weft__kv_snapshot *s, const weft__kv_layout *layout, int32_t n,
                                        weft__kv_seq *seq, uint64_t *at, uint64_t budget, int *complete,
                                        weft_error *err);
/* How many of tokens[0, n) this snapshot serves under that root; token ids are compared. The snapshot was checked. */
int32_t weft__kv_snapshot_match(const weft__kv_snapshot *s, const weft__kv_layout *layout, weft__kv_key root,
                                const int32_t *tokens, int32_t n);

/* Has a file with this head pages of that layout, not of another one? */
int weft__kv_layout_is_of(const weft__kv_layout *layout, const weft__kv_snapshot_head *head);

const weft__kv_snapshot_head *weft__kv_snapshot_head_of(const weft__kv_snapshot *s);
const int32_t *weft__kv_snapshot_tokens(const weft__kv_snapshot *s);

/* Uninitialised bytes, to be read into and checked; NULL: no memory. */
weft__kv_snapshot *weft__kv_snapshot_alloc(uint64_t n_bytes);
void weft__kv_snapshot_free(weft__kv_snapshot **s);
/* Writes the sums; before it a snapshot is not a valid file. */
void weft__kv_snapshot_seal(weft__kv_snapshot *s);
/* Bytes of head, tokens and padding: where the body begins. */
uint64_t weft__kv_snapshot_body_at(int32_t n_tokens);
/* Checks a head of a file of n_bytes bytes, without tokens and sums: afterwards n_tokens can be trusted as a size. Any
 * bytes may be given. WEFT_FORMAT (damaged, truncated), WEFT_UNSUPPORTED (another version), WEFT_STATE (another model
 * or layout, and that of no `next`). */
weft_status weft__kv_snapshot_check_head(const weft__kv_snapshot_head *head, uint64_t n_bytes,
                                         const weft__kv_layout *layout, weft_error *err);
/* The sum over head and tokens; `tokens` with their padding, body_at - sizeof head bytes. WEFT_FORMAT. */
weft_status weft__kv_snapshot_check_tokens(const weft__kv_snapshot_head *head, const void *tokens, weft_error *err);
/* All of it. */
weft_status weft__kv_snapshot_check(const weft__kv_snapshot *s, const weft__kv_layout *layout, weft_error *err);

#endif
