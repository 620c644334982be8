// SPDX-License-Identifier: Apache-2.0
/* search.h: finding texts by their words (BM25) and by vectors, for one tenant: an index of words, one of vectors,
 * and the fusion of what both find.
 *
 * Letters: N entries, D dimensions. An entry has the caller's id. Invariants: what a search finds depends on the
 * entries and the query alone, not on the order in which they came (but for codes, weft__search_vectors_tune); of
 * equal scores the lesser id comes first. An index belongs to one thread at a time. */
#ifndef WEFT_SEARCH_SEARCH_H
#define WEFT_SEARCH_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#include "weft/error.h"

enum {
    WEFT__SEARCH_MOST = 1 << 20, /* entries of an index */
    WEFT__SEARCH_HITS = 1024     /* that are asked for at once */
};

typedef struct weft__search_hit {
    uint64_t id;
    double score; /* more is better */
} weft__search_hit;

/* 1: this entry may be found. Called for those alone that are good enough. */
typedef int weft__search_filter(void *arg, uint64_t id);

/* The best that were offered so far, in hits[0..n), best first. Zero-initialise but for hits and most. */
typedef struct weft__search_top {
    weft__search_hit *hits; /* [most] */
    size_t most, n;
    weft__search_filter *filter; /* NULL: all */
    void *arg;
} weft__search_top;

void weft__search_offer(weft__search_top *top, uint64_t id, double score);

/* ---- words (words.c) ---- */

/* BM25 (Robertson, Walker and others 1994): for each word of the query idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b *
 * length / mean length)). Its idf, with floor 0: ln(1 + (N - df + 0.5) / (df + 0.5)), above 0 for any word (Lucene's);
 * with a floor above 0: ln(N - df + 0.5) - ln(df + 0.5), and where that is negative floor times its mean over all words
 * (Okapi's, as rank_bm25 has it). Words are runs of ASCII letters and digits, case folded, and of any bytes from 0x80
 * on. */
typedef struct weft__search_words_params {
    double k1, b, floor; /* 0 in all: 1.5, 0.75, 0 */
} weft__search_words_params;

typedef struct weft__search_words weft__search_words;

/* WEFT_NO_MEMORY. */
weft_status weft__search_words_new(const weft__search_words_params *p, weft__search_words **out, weft_error *err);
void weft__search_words_free(weft__search_words **w);
/* WEFT_ARGUMENT: it has such an id; WEFT_LIMIT; WEFT_NO_MEMORY: nothing has changed. */
weft_status weft__search_words_add(weft__search_words *w, uint64_t id, const char *text, size_t n, weft_error *err);
/* 1: it was there. Its place is used again when as many have gone as are left. */
int weft__search_words_remove(weft__search_words *w, uint64_t id);
size_t weft__search_words_count(const weft__search_words *w);
/* Offers each entry that has a word of the query. WEFT_NO_MEMORY. */
weft_status weft__search_words_find(weft__search_words *w, const char *text, size_t n, weft__search_top *top,
                                    weft_error *err);

/* ---- vectors (vectors.c) ---- */

/* Vectors of length 1 in 8 bits (Q8_0), multiplied by the engine's own kernel: all of them, so that what is found is
 * what is nearest, but for what 8 bits round. 1.07 bytes for each of D rounded up to 32. */
typedef struct weft__search_vectors weft__search_vectors;

enum { WEFT__SEARCH_DIMS = 8192, WEFT__SEARCH_CENTER = 256 /* entries by which codes are centred */ };

/* dims: 1 to WEFT__SEARCH_DIMS; tiers: weft__tier_mask(). WEFT_ARGUMENT, WEFT_NO_MEMORY. */
weft_status weft__search_vectors_new(int dims, uint32_t tiers, weft__search_vectors **out, weft_error *err);
void weft__search_vectors_free(weft__search_vectors **v);
/* x[dims], of any length but 0. WEFT_ARGUMENT: it has such an id, or x has no length or is not finite; WEFT_LIMIT;
 * WEFT_NO_MEMORY: nothing has changed. */
weft_status weft__search_vectors_add(weft__search_vectors *v, uint64_t id, const float *x, weft_error *err);
/* 1: it was there. Its bytes stay until the index is made anew. */
int weft__search_vectors_remove(weft__search_vectors *v, uint64_t id);
size_t weft__search_vectors_count(const weft__search_vectors *v);
/* Bytes of heap. */
uint64_t weft__search_vectors_bytes(const weft__search_vectors *v);
/* Offers entries by their cosine with x[dims]. exact 0: as weft__search_vectors_tune has settled; 1: all of them.
 * WEFT_ARGUMENT, WEFT_NO_MEMORY. */
weft_status weft__search_vectors_find(weft__search_vectors *v, const float *x, int exact, weft__search_top *top,
                                      weft_error *err);
/* Whether searches for k entries look at codes of a bit per dimension first, and at how many in 8 bits then: the fewest
 * with which, of queries like 64 of the entries (which do not find themselves), the share of the right ones is `recall`
 * at least, and which are less than a quarter of all; else 0, and searches stay exact. *candidates: that number. Again
 * after many were added. A code is the signs of a vector less the mean of the first WEFT__SEARCH_CENTER.
 * WEFT_NO_MEMORY. */
weft_status weft__search_vectors_tune(weft__search_vectors *v, size_t k, double recall, size_t *candidates,
                                      weft_error *err);
/* That number, as it was found before or to measure what others find; 0: exact. */
void weft__search_vectors_settle(weft__search_vectors *v, size_t candidates);

/* ---- both (fuse.c) ---- */

/* Reciprocal rank fusion (Cormack, Clarke, Buettcher 2009): the score of an id is the sum of 1 / (60 + rank) over the
 * lists that have it, ranks from 1. Offers each. At most 4 lists of WEFT__SEARCH_HITS. WEFT_NO_MEMORY. */
weft_status weft__search_fuse(const weft__search_hit *const *lists, const size_t *n, int n_lists, weft__search_top *top,
                              weft_error *err);
/* By scores, which in a list that has not the id are 0: the sum of weights[l] times those. The same otherwise. */
weft_status weft__search_sum(const weft__search_hit *const *lists, const size_t *n, const double *weights, int n_lists,
                             weft__search_top *top, weft_error *err);

#endif
