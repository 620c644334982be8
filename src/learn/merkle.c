// SPDX-License-Identifier: Apache-2.0
/* merkle.c: see merkle.h. Any thread. */
#include <string.h>

#include "base/sha256.h"
#include "learn/merkle.h"

/* SHA-256 of a first byte and two parts; first < 0: of nothing. */
static weft_status digest(int first, const void *a, size_t n_a, const void *b, size_t n_b, weft__learn_hash *out,
                          weft_error *err)
{
    const unsigned char byte = (unsigned char)first;
    weft__sha256 h = {0};
    weft_status st = weft__sha256_begin(&h, err);
    if (!st && first >= 0) st = weft__sha256_add(&h, &byte, 1, err);
    if (!st) st = weft__sha256_add(&h, a, n_a, err);
    if (!st) st = weft__sha256_add(&h, b, n_b, err);
    if (!st) weft__sha256_end_bytes(&h, out->bytes);
    weft__sha256_free(&h);
    return st;
}

weft_status weft__learn_hash_leaf(const void *bytes, size_t n, weft__learn_hash *out, weft_error *err)
{
    return digest(0, bytes, n, NULL, 0, out, err);
}

weft_status weft__learn_hash_node(const weft__learn_hash *left, const weft__learn_hash *right, weft__learn_hash *out,
                                  weft_error *err)
{
    return digest(1, left->bytes, sizeof left->bytes, right->bytes, sizeof right->bytes, out, err);
}

/* ---- the row ---- */

uint64_t weft__learn_row_length(uint64_t n)
{
    uint64_t all = 0;
    for (; n; n >>= 1) all += n; /* subtrees of 1, 2, 4... leaves that are complete */
    return all;
}

/* A subtree is known with its last leaf, behind the smaller ones which that completes. */
uint64_t weft__learn_row_place(int level, uint64_t index)
{
    const uint64_t last = ((index + 1) << level) - 1;
    return weft__learn_row_length(last) + (uint64_t)level;
}

weft_status weft__learn_row_grow(const weft__learn_row *row, uint64_t n, const weft__learn_hash *leaf,
                                 weft__learn_hash out[64], int *n_out, weft_error *err)
{
    out[0] = *leaf;
    *n_out = 1;
    for (int level = 0; n >> level & 1; level++) {
        weft__learn_hash left;
        weft_status st = row->read(row->arg, weft__learn_row_place(level, (n >> level) - 1), &left, err);
        if (!st) st = weft__learn_hash_node(&left, &out[level], &out[level + 1], err);
        if (st) return st;
        *n_out = level + 2;
    }
    return WEFT_OK;
}

/* The largest power of two below n, n > 1, by its exponent. */
static int split_of(uint64_t n)
{
    int level = 0;
    while (level < 63 && (uint64_t)2 << level < n) level++;
    return level;
}

/* The root over the leaves [first, first + n), n > 0; first is a multiple of the power of two that n fits into. Goes
 * down on the right alone. */
static weft_status range_root(const weft__learn_row *row, uint64_t first, uint64_t n, weft__learn_hash *out,
                              weft_error *err)
{
    weft__learn_hash lefts[64], right;
    int n_lefts = 0;
    weft_status st = WEFT_OK;
    while (n & (n - 1) && !st) {
        const int level = split_of(n);
        st = row->read(row->arg, weft__learn_row_place(level, first >> level), &lefts[n_lefts++], err);
        first += (uint64_t)1 << level;
        n -= (uint64_t)1 << level;
    }
    int level = 0;
    while (n >> level > 1) level++;
    if (!st) st = row->read(row->arg, weft__learn_row_place(level, first >> level), out, err);
    while (n_lefts && !st) {
        right = *out;
        st = weft__learn_hash_node(&lefts[--n_lefts], &right, out, err);
    }
    return st;
}

weft_status weft__learn_root(const weft__learn_row *row, uint64_t n, weft__learn_hash *out, weft_error *err)
{
    return n ? range_root(row, 0, n, out, err) : digest(-1, NULL, 0, NULL, 0, out, err);
}

/* ---- proofs; they are gathered from the root down ---- */

static void turn(weft__learn_proof *p)
{
    for (int i = 0; i < p->n / 2; i++) {
        weft__learn_hash one = p->items[i];
        p->items[i] = p->items[p->n - 1 - i];
        p->items[p->n - 1 - i] = one;
    }
}

weft_status weft__learn_prove_inclusion(const weft__learn_row *row, uint64_t index, uint64_t n, weft__learn_proof *out,
                                        weft_error *err)
{
    uint64_t first = 0;
    weft_status st = WEFT_OK;
    out->n = 0;
    while (n > 1 && !st) {
        const uint64_t k = (uint64_t)1 << split_of(n);
        const int goes_left = index - first < k;
        st = goes_left ? range_root(row, first + k, n - k, &out->items[out->n++], err)
                       : range_root(row, first, k, &out->items[out->n++], err);
        if (!goes_left) first += k;
        n = goes_left ? k : n - k;
    }
    turn(out);
    return st;
}

weft_status weft__learn_prove_consistency(const weft__learn_row *row, uint64_t m, uint64_t n, weft__learn_proof *out,
                                          weft_error *err)
{
    uint64_t first = 0;
    weft_status st = WEFT_OK;
    out->n = 0;
    if (!m) return WEFT_OK;
    while (m != n && !st) {
        const uint64_t k = (uint64_t)1 << split_of(n);
        const int goes_left = m <= k;
        st = goes_left ? range_root(row, first + k, n - k, &out->items[out->n++], err)
                       : range_root(row, first, k, &out->items[out->n++], err);
        if (!goes_left) first += k, m -= k;
        n = goes_left ? k : n - k;
    }
    if (first && !st)
        st = range_root(row, first, n, &out->items[out->n++], err); /* else it is the old root, which is known */
    turn(out);
    return st;
}

/* ---- checks ---- */

static int is_same(const weft__learn_hash *a, const weft__learn_hash *b)
{
    return !memcmp(a->bytes, b->bytes, sizeof a->bytes);
}

int weft__learn_check_inclusion(const weft__learn_hash *leaf, uint64_t index, uint64_t n,
                                const weft__learn_proof *proof, const weft__learn_hash *root)
{
    weft__learn_hash at = *leaf, next;
    if (index >= n) return 0;
    uint64_t place = index, last = n - 1;
    for (int i = 0; i < proof->n; i++) {
        if (!last) return 0;
        const int is_right = (place & 1) || place == last;
        if (is_right ? weft__learn_hash_node(&proof->items[i], &at, &next, NULL)
                     : weft__learn_hash_node(&at, &proof->items[i], &next, NULL))
            return 0;
        at = next;
        for (; is_right && !(place & 1) && place; place >>= 1) last >>= 1;
        place >>= 1;
        last >>= 1;
    }
    return !last && is_same(&at, root);
}

int weft__learn_check_consistency(uint64_t m, uint64_t n, const weft__learn_hash *root_m,
                                  const weft__learn_hash *root_n, const weft__learn_proof *proof)
{
    if (m > n) return 0;
    if (m == n) return !proof->n && is_same(root_m, root_n);
    if (!m) return !proof->n; /* whatever grew from nothing */
    int used = 0;
    if (m & (m - 1) && !proof->n) return 0;
    weft__learn_hash old = m & (m - 1) ? proof->items[used++] : *root_m, now = old, next;
    uint64_t place = m - 1, last = n - 1;
    for (; place & 1; place >>= 1) last >>= 1;
    for (; used < proof->n; used++) {
        const weft__learn_hash *c = &proof->items[used];
        if (!last) return 0;
        if ((place & 1) || place == last) {
            if (weft__learn_hash_node(c, &old, &next, NULL)) return 0;
            old = next;
            if (weft__learn_hash_node(c, &now, &next, NULL)) return 0;
            now = next;
            for (; !(place & 1) && place; place >>= 1) last >>= 1;
        } else {
            if (weft__learn_hash_node(&now, c, &next, NULL)) return 0;
            now = next;
        }
        place >>= 1;
        last >>= 1;
    }
    return !last && is_same(&old, root_m) && is_same(&now, root_n);
}
