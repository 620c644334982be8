// SPDX-License-Identifier: Apache-2.0
/* answers.h: what a trainer's model says when the likeliest token is taken each time: whether it is what records say,
 * and where a prompt goes on to.
 *
 * An answer comes out word for word when every token of it is the likeliest behind those before it, its end included:
 * one forward pass tells. What the same model says when it is served may differ where two tokens are nearly as likely,
 * since there activations have fewer bits. One thread. */
#ifndef WEFT_TRAIN_ANSWERS_H
#define WEFT_TRAIN_ANSWERS_H

#include "train/data.h"

/* right [weft__dataset_n_texts]: 1 where what is learned of the text comes out; *n of them. `d` is in order, and is at
 * its start afterwards. Fails as weft__trainer_loss does. */
weft_status weft__train_answers_of(weft__trainer *t, weft__dataset *d, uint8_t *right, int64_t *n, weft_error *err);

/* Appends to `ids` what the model goes on with, n_more tokens at most, up to and without one that ends; *ids holds the
 * prompt, 1 token at least. Ends earlier where a text of the trainer's does. Fails as weft__trainer_loss does, with
 * WEFT_NO_MEMORY, and WEFT_ARGUMENT: the prompt is longer than a text of the trainer's. */
weft_status weft__train_go_on(weft__trainer *t, const weft__tok *tok, weft__tok_ids *ids, int32_t n_more,
                              weft_error *err);

#endif
