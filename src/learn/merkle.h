// SPDX-License-Identifier: Apache-2.0
/* merkle.h: the hash tree of a log that only grows (RFC 6962, section 2.1; SHA-256), its proofs, and their checks.
 *
 * The hashes of a log stand in one row, in the order in which they become known: behind that of a leaf those of the
 * subtrees which it completes. So a row only grows, too, and a root or a proof reads O(log n) of it. Pure but for the
 * reader that is handed down. All but the checks fail with what that fails with, or WEFT_NO_MEMORY, WEFT_INTERNAL
 * (SHA-256). Any thread. */
#ifndef WEFT_LEARN_MERKLE_H
#define WEFT_LEARN_MERKLE_H

#include <stddef.h>
#include <stdint.h>

#include "weft/error.h"

enum { WEFT__LEARN_PROOF_MOST = 64 }; /* hashes of a proof */

typedef struct weft__learn_hash {
    unsigned char bytes[32];
} weft__learn_hash;

/* Reads the hash at a place of the row. */
typedef struct weft__learn_row {
    weft_status (*read)(void *arg, uint64_t place, weft__learn_hash *out, weft_error *err);
    void *arg;
} weft__learn_row;

typedef struct weft__learn_proof {
    weft__learn_hash items[WEFT__LEARN_PROOF_MOST]; /* [n], as RFC 6962 orders them: from the leaf up */
    int n;
} weft__learn_proof;

/* SHA-256 of 0x00 and the bytes. */
weft_status weft__learn_hash_leaf(const void *bytes, size_t n, weft__learn_hash *out, weft_error *err);
/* SHA-256 of 0x01 and both. */
weft_status weft__learn_hash_node(const weft__learn_hash *left, const weft__learn_hash *right, weft__learn_hash *out,
                                  weft_error *err);

/* Hashes in the row of a log of n leaves. */
uint64_t weft__learn_row_length(uint64_t n);
/* The place of the hash of the index-th subtree of 2^level leaves. */
uint64_t weft__learn_row_place(int level, uint64_t index);
/* What a leaf appends to the row of n others: out[0..*n_out), at most 64. */
weft_status weft__learn_row_grow(const weft__learn_row *row, uint64_t n, const weft__learn_hash *leaf,
                                 weft__learn_hash out[64], int *n_out, weft_error *err);
/* The root over the first n leaves; of none: SHA-256 of nothing. */
weft_status weft__learn_root(const weft__learn_row *row, uint64_t n, weft__learn_hash *out, weft_error *err);

/* That leaf `index` is among the first n; index < n. */
weft_status weft__learn_prove_inclusion(const weft__learn_row *row, uint64_t index, uint64_t n, weft__learn_proof *out,
                                        weft_error *err);
/* That the first m leaves begin the first n; m <= n. */
weft_status weft__learn_prove_consistency(const weft__learn_row *row, uint64_t m, uint64_t n, weft__learn_proof *out,
                                          weft_error *err);

/* The checks know no row, and follow RFC 9162, sections 2.1.3.2 and 2.1.4.2, not what makes the proofs.
 * 1: it holds. */
int weft__learn_check_inclusion(const weft__learn_hash *leaf, uint64_t index, uint64_t n,
                                const weft__learn_proof *proof, const weft__learn_hash *root);
int weft__learn_check_consistency(uint64_t m, uint64_t n, const weft__learn_hash *root_m,
                                  const weft__learn_hash *root_n, const weft__learn_proof *proof);

#endif
