// SPDX-License-Identifier: Apache-2.0
/* loss_parts.h: what loss.c and loss_head.c share: the head's passes over the rows that have a target. */
#ifndef WEFT_TRAIN_LOSS_PARTS_H
#define WEFT_TRAIN_LOSS_PARTS_H

#include "train/loss.h"
#include "train/parts.h"

enum weft__loss_pass {
    WEFT__LOSS_PASS_LOGP,      /* logp alone */
    WEFT__LOSS_PASS_VALUE,     /* told and anchored, too */
    WEFT__LOSS_PASS_BACK,      /* and the gradient of the head's input */
    WEFT__LOSS_PASS_BACK_AGAIN /* the same with slopes that are given; flops of the way forth were counted already */
};
/* Fills [W] logp, told and anchored as the pass says. Afterwards the gradient of t->hidden is there, of every row. */
void weft__train_head(weft__trainer *t, enum weft__loss_pass pass);

/* embed.c: the loss of a batch of texts as embeddings, into *l, and with `back` the gradient of t->hidden.
 * WEFT_ARGUMENT: groups that are none; WEFT_UNSUPPORTED, WEFT_NO_MEMORY. The body was run. */
weft_status weft__train_embed(weft__trainer *t, int back, weft__train_loss *l, weft_error *err);

#endif
