// SPDX-License-Identifier: Apache-2.0
/* kl_base.h: reading base files: the recorded probabilities that a divergence is measured from. The format stands in
 * quality.h; either weft eval perplexity --kl-base or llama-perplexity writes them.
 *
 * Invariant: what comes from the file is checked before it is used: its size against what its head announces, every
 * token against the vocabulary, every record for being probabilities. One thread. */
#ifndef WEFT_CLI_KL_BASE_H
#define WEFT_CLI_KL_BASE_H

#include <stdint.h>
#include <stdio.h>

#include "weft/error.h"

typedef struct kl_base {
    FILE *f;          /* NULL: not open */
    const char *path; /* for messages; the caller's */
    int32_t n_ctx, n_vocab, n_chunks;
    int32_t *tokens; /* [n_chunks * n_ctx] */
    int64_t n_read;  /* records so far */
} kl_base;

extern const char KL_BASE_MAGIC[8];

/* Opens a file made with a vocabulary of n_vocab tokens and reads its head and tokens. `b` is zeroed or was closed; on
 * failure it can be closed like one that is open. */
weft_status kl_base_open(kl_base *b, const char *path, int32_t n_vocab, weft_error *err);
/* The same from an open stream that can seek; it is b's from now on, also on failure. */
weft_status kl_base_read(kl_base *b, FILE *f, const char *path, int32_t n_vocab, weft_error *err);
/* The record of the next scored token: quality_record(n_vocab) u16. Failure: there is none, or it holds no
 * probabilities. */
weft_status kl_base_next(kl_base *b, uint16_t *record, weft_error *err);
/* Nothing on one that is zeroed. */
void kl_base_close(kl_base *b);

#endif
