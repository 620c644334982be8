// SPDX-License-Identifier: Apache-2.0
/* teach_near.h: which questions are most like those that are taught: where the same words stand, what is learned is
 * said first by mistake, so they are asked most often beside it. One thread. */
#ifndef WEFT_LEARN_TEACH_NEAR_H
#define WEFT_LEARN_TEACH_NEAR_H

#include "learn/teach_texts.h"

/* Marks `most` of texts[n] in near[n] (zeroed): those whose prompt has most tokens in common with a prompt of
 * taught[m], out of those of both (Dice 1945), in whatever order they stand; of equal ones the first. Time: n log n in
 * the tokens, and m times those of texts. WEFT_NO_MEMORY. */
weft_status weft__teach_nearest(const weft__teach_text *taught, size_t m, const weft__teach_text *texts, size_t n,
                                size_t most, uint8_t *near, weft_error *err);

#endif
