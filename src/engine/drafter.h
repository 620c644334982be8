// SPDX-License-Identifier: Apache-2.0
/* drafter.h: a small model that guesses what a larger one will pick (draft/draft.h), for the loops of weft_generate and
 * of the batcher.
 *
 * It has pages of its own, in which it reads the texts that it guesses for; many at once, a step of it for all of them
 * together. What a request's sampler would pick from its logits is the guess: with the biases, penalties and grammar of
 * that request, and with the random numbers that the sampler will draw next, which it looks at without taking them
 * (weft__sample_ahead). So it is right at high temperatures, too, as far as the two distributions are alike.
 *
 * What it holds of a text is compared with the text each time, and what differs is read again: wrong guesses, a text
 * that was shifted or begun anew, all roll back in this one way. So nothing has to be told when rows are rejected.
 * Pages of prompts are found again through a prefix tree of its own, by the keys of the target's.
 *
 * One for an engine, or a session; of that one's thread. The model may be stepped by others meanwhile. */
#ifndef WEFT_ENGINE_DRAFTER_H
#define WEFT_ENGINE_DRAFTER_H

#include "engine/handles.h"
#include "kv/prefix.h"
#include "sample/sampler.h"

typedef struct weft__engine_drafter weft__engine_drafter;
typedef struct weft__engine_drafter_text weft__engine_drafter_text;

typedef struct weft__engine_drafter_params {
    int32_t n_texts;     /* at once at most; >= 1 */
    int32_t n_ctx;       /* tokens of one; where the model's context is shorter, it guesses up to that */
    int64_t n_kv_tokens; /* that all pages hold */
    uint32_t kv_dtype;
} weft__engine_drafter_params;

/* Have two vocabularies the same tokens under the same ids? Either may have some more behind those of the other, as
 * padding. small, large: names for the message, what a cannot do ("guess for"), and who a should be ("a draft
 * model"). WEFT_ARGUMENT: the first token that differs, or the sizes. */
weft_status weft__engine_drafter_words(const weft_tokenizer *a, const weft_tokenizer *b, const char *small,
                                       const char *large, const char *what, const char *who, weft_error *err);
/* May `model` guess for `target`? WEFT_ARGUMENT says why not: another vocabulary, with the first token that differs.
 * Outlines will do. */
weft_status weft__engine_drafter_fits(const weft_model *target, const weft_model *model, weft_error *err);
/* Tokens per time that it should bring, of what is known before any step was taken; 1: as many as without. */
double weft__engine_drafter_gain(const weft_model *target, const weft_model *model);
/* Both models outlive it. Fails as weft__engine_drafter_fits does; WEFT_NO_MEMORY, WEFT_STATE (an outline). */
weft_status weft__engine_drafter_new(const weft_model *target, weft_model *model, const weft__engine_drafter_params *p,
                                     weft__engine_drafter **out, weft_error *err);
void weft__engine_drafter_free(weft__engine_drafter **d);
/* Bytes of pages that are held, that may be held now (or are, where that is more), and of all else; NULL: 0. */
uint64_t weft__engine_drafter_page_bytes(const weft__engine_drafter *d);
uint64_t weft__engine_drafter_page_limit(const weft__engine_drafter *d);
uint64_t weft__engine_drafter_scratch(const weft__engine_drafter *d);
/* The most that its pages take, those of one text alone, and what a text of n_ctx tokens takes beside them. */
uint64_t weft__engine_drafter_page_bytes_most(const weft_model *model, const weft__engine_drafter_params *p);
uint64_t weft__engine_drafter_page_bytes_least(const weft_model *model, const weft__engine_drafter_params *p);
/* Of the pages beyond those of one text it has this part from now on, 0 to 1. 1: some were evicted. */
int weft__engine_drafter_limit(weft__engine_drafter *d, double part);
void weft__engine_drafter_give_back(weft__engine_drafter *d);
uint64_t weft__engine_drafter_text_bytes(int32_t n_ctx);

/* An empty text of at most n_ctx tokens. root: of the prefix tree, where it may read and feed it; NULL: it may not.
 * NULL: no memory. */
weft__engine_drafter_text *weft__engine_drafter_text_new(weft__engine_drafter *d, int32_t n_ctx,
                                                         const weft__kv_key *root);
void weft__engine_drafter_text_free(weft__engine_drafter_text **text);
/* Its pages are given back; it is read again when it is asked for. */
void weft__engine_drafter_text_forget(weft__engine_drafter_text *text);

/* What becomes of an end token that would be picked. */
enum weft__engine_drafter_ends { WEFT__ENGINE_DRAFTER_STOP, WEFT__ENGINE_DRAFTER_FORBID, WEFT__ENGINE_DRAFTER_TAKE };

typedef struct weft__engine_drafter_ask {
    weft__engine_drafter_text *text;
    const int32_t *tokens; /* [n] all that is known, n >= 1 */
    int32_t n;
    weft_sampler *sampler; /* of the text; afterwards as it was */
    weft_matcher *matcher; /* a copy, at the end of the text, which moves on; NULL: none */
    int32_t ends;          /* weft__engine_drafter_ends */
    int32_t most;          /* tokens, up to WEFT__DRAFT_MOST */
    float p_least;         /* it stops at a token of which it is less sure */
    /* What weft__draft_reach is asked with; cost NULL: as many as there may be, whatever they cost */
    const weft__draft_cost *cost;
    weft__draft_trust *trust;
    int32_t n_rows;
    double other;
    weft__draft *draft; /* filled: kind, n, token, p */
    /* The drafter's own. */
    weft__sample_ahead ahead;
    int32_t row, state, n_read;
} weft__engine_drafter_ask;

/* Guesses for each of n_asks different texts, n_asks <= n_texts. At most `budget` tokens are read first, of all texts
 * together: what does not fit is read with later calls, and nothing is guessed before. Fails silently: what cannot be
 * guessed has draft->n 0. */
void weft__engine_drafter_propose(weft__engine_drafter *d, weft__engine_drafter_ask *asks, int32_t n_asks,
                                  int32_t budget);

#endif
