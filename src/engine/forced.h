// SPDX-License-Identifier: Apache-2.0
/* forced.h: the drafter of what a grammar forces, and what bounds the guesses of all drafters (draft/draft.h), for the
 * loops of weft_generate and of the batcher. Belongs to the thread of the text. */
#ifndef WEFT_ENGINE_FORCED_H
#define WEFT_ENGINE_FORCED_H

#include "draft/draft.h"
#include "engine/handles.h"

/* Where no byte is forced, a token that is alone is looked for less and less often: that takes a mask. */
typedef struct weft__engine_forced {
    const weft_tokenizer *tokenizer;
    weft_matcher *matcher;  /* at the end of the text; stays there */
    uint64_t *bits;         /* [(tokens of the tokenizer + 63) / 64] room for a mask */
    int32_t n_idle, n_wait; /* times that nothing was forced; until it is looked again. 0 at first */
} weft__engine_forced;

/* As propose of weft__drafter; self: a weft__engine_forced. */
void weft__engine_forced_propose(void *self, const weft__draft_text *text, int32_t most, weft__draft *out);

/* What a text may go on with. */
typedef struct weft__engine_bounds {
    const weft_tokenizer *tokenizer; /* NULL: there is none */
    weft_matcher *matcher;           /* at the end of the text; NULL: none */
    float p_least;
    int takes_ends; /* an end token is one like others */
} weft__engine_bounds;

/* As weft__draft_cut: a draft ends before an end token, which brings nothing, before what is less probable than is
 * wanted, and before what the grammar does not allow. */
void weft__engine_keep_within(void *bounds, weft__draft *d);

#endif
