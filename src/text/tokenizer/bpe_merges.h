// SPDX-License-Identifier: Apache-2.0
/* bpe_merges.h: which pairs of symbols become one, learnt from words and how often each occurs; for bpe_train.c.
 *
 * A symbol is a byte (0 .. 255) or what a merge made. Invariant: symbol i is string i of `texts`, spelled in GPT-2's
 * alphabet; no two are spelled alike. One thread. */
#ifndef WEFT_TEXT_BPE_MERGES_H
#define WEFT_TEXT_BPE_MERGES_H

#include "text/strings.h"
#include "weft/backend.h"

typedef struct weft__tok_bpe_merge {
    uint32_t left, right;
} weft__tok_bpe_merge;

/* Zero-initialise; free with weft__tok_bpe_learnt_free, also after a failure. */
typedef struct weft__tok_bpe_learnt {
    weft__strings texts;
    uint32_t *bytes; /* [texts.n] that each symbol stands for */
    size_t bytes_capacity;
    weft__tok_bpe_merge *merges; /* in order; two may make the same symbol, in different ways */
    size_t n_merges, merges_capacity;
} weft__tok_bpe_learnt;

/* From what merges are learned, and until when; all of it is the caller's. */
typedef struct weft__tok_bpe_lesson {
    const weft__strings *words; /* any bytes */
    const uint64_t *counts;     /* [words->n] how often each occurs */
    const weft__strings *taken; /* no symbol is spelled like one of these */
    size_t n_symbols, max_bytes;
    uint64_t min_count;
    weft_progress_fn progress; /* or NULL; called with arg */
    void *arg;
} weft__tok_bpe_lesson;

/* Learns merges until there are n_symbols symbols or no pair occurs min_count times. A merge never makes what is
 * spelled like one of `taken`, nor more than max_bytes bytes. Fails with WEFT_NO_MEMORY, WEFT_LIMIT or WEFT_CANCELLED.
 * Time: proportional to the bytes of the words that a merge touches, with a logarithm for the heap. */
weft_status weft__tok_bpe_learn(const weft__tok_bpe_lesson *lesson, weft__tok_bpe_learnt *out, weft_error *err);
void weft__tok_bpe_learnt_free(weft__tok_bpe_learnt *learnt);

#endif
