// SPDX-License-Identifier: Apache-2.0
/* base_file.h: base files: the recorded probabilities that a divergence is measured from; weft_perplexity and
 * llama-perplexity write them, and read each other's.
 *
 * Little-endian: "_logits_", i32 n_ctx, i32 V, i32 n_chunks, i32 tokens[n_ctx * n_chunks], then for each token that is
 * scored, n_ctx - 1 - n_ctx/2 of a chunk, its record (divergence.h).
 *
 * Invariant: what comes from the file is checked before it is used: its size against what its head announces, every
 * token against the vocabulary, every record for being probabilities. One thread. */
#ifndef WEFT_EVAL_BASE_FILE_H
#define WEFT_EVAL_BASE_FILE_H

#include <stdint.h>
#include <stdio.h>

#include "format/out_file.h"
#include "weft/error.h"

typedef struct weft__eval_base {
    FILE *f;          /* NULL: not open */
    const char *path; /* for messages; the caller's */
    int32_t n_ctx, n_vocab, n_chunks;
    int32_t *tokens; /* [n_chunks * n_ctx] */
    int64_t n_read;  /* records so far */
} weft__eval_base;

/* Opens a file made with a vocabulary of n_vocab tokens and reads its head and tokens. `b` is zeroed or was closed; on
 * failure it can be closed like one that is open. */
weft_status weft__eval_base_open(weft__eval_base *b, const char *path, int32_t n_vocab, weft_error *err);
/* The same from an open stream that can seek; it is b's from now on, also on failure. */
weft_status weft__eval_base_read(weft__eval_base *b, FILE *f, const char *path, int32_t n_vocab, weft_error *err);
/* The record of the next scored token: weft__eval_record_size(n_vocab) u16. Failure: there is none, or it holds no
 * probabilities. */
weft_status weft__eval_base_next(weft__eval_base *b, uint16_t *record, weft_error *err);
/* Nothing on one that is zeroed. */
void weft__eval_base_close(weft__eval_base *b);

/* Opens `o` and writes the head and tokens[n_chunks * n_ctx]; records follow. */
weft_status weft__eval_base_begin(weft__out_file *o, const char *path, int32_t n_ctx, int32_t n_vocab, int32_t n_chunks,
                                  const int32_t *tokens, weft_error *err);

#endif
