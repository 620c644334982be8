// SPDX-License-Identifier: Apache-2.0
/* bpe_train.h: a byte-level BPE vocabulary from text (Sennrich et al. 2016): the commonest pair of neighbours becomes a
 * token, again and again.
 *
 * Texts are cut by the pre-tokenizer that the tokenizer will use, so that what is learnt is what encoding does. Of
 * pairs that are equally common the one with the smaller symbols (bytes first, then merges in their order) wins: the
 * result hangs on the texts and the options alone, not on the order in which texts are added. Order of calls: begin;
 * add...; run; spec; end (always). A training belongs to one thread. */
#ifndef WEFT_TEXT_BPE_TRAIN_H
#define WEFT_TEXT_BPE_TRAIN_H

#include "text/tokenizer/tokenizer.h"
#include "weft/backend.h"

/* A token that is cut out of texts as a whole: WEFT__TOK_CONTROL or WEFT__TOK_USER_DEFINED. */
typedef struct weft__tok_bpe_special {
    weft__tok_slice text;
    weft__tok_type type;
} weft__tok_bpe_special;

typedef struct weft__tok_bpe_options {
    weft__tok_slice pre; /* name of the pre-tokenizer ("qwen2") */
    /* [n_specials]: ids 0 .. n_specials - 1; the 256 bytes follow, then the merges */
    const weft__tok_bpe_special *specials;
    size_t n_specials;
    size_t n_vocab;     /* tokens wanted; fewer when the texts have no more pairs */
    uint64_t min_count; /* a pair that is rarer is no token; at least 1 */
} weft__tok_bpe_options;

#define WEFT__TOK_BPE_TOKEN_BYTES 64 /* of a learnt token at most */
#define WEFT__TOK_BPE_VOCAB_MAX (1u << 20)

typedef struct weft__tok_bpe_training weft__tok_bpe_training;

/* Copies the options. Fails with WEFT_ARGUMENT (naming the option), WEFT_UNSUPPORTED (the pre-tokenizer),
 * WEFT_NO_MEMORY. */
weft_status weft__tok_bpe_train_begin(const weft__tok_bpe_options *options, weft__tok_bpe_training **out,
                                      weft_error *err);
/* Counts the words of text[0..n). Special tokens spelled in it are left out. Fails with WEFT_NO_MEMORY, or WEFT_LIMIT
 * when there are more than 2^31 different words or the pre-tokenizer's pattern runs away. */
weft_status weft__tok_bpe_train_add(weft__tok_bpe_training *t, const char *text, size_t n, weft_error *err);
/* Learns the merges. progress may be NULL. Fails with WEFT_NO_MEMORY or WEFT_CANCELLED. */
weft_status weft__tok_bpe_train_run(weft__tok_bpe_training *t, weft_progress_fn progress, void *arg, weft_error *err);
/* After run: model, pre-tokenizer, tokens, types and merges, for weft__tok_create; roles are the caller's to set on a
 * copy. Lives with the training. */
const weft__tok_spec *weft__tok_bpe_train_spec(const weft__tok_bpe_training *t);
void weft__tok_bpe_train_end(weft__tok_bpe_training **t);

#endif
