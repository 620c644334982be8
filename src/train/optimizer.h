// SPDX-License-Identifier: Apache-2.0
/* optimizer.h: from gradients to parameters. A step has the gradients multiplied by one number (divided by the weights
 * of its rows, and clipped), moves every parameter, draws it back to 0 (decay, matrices alone) and to where it began
 * (L2-SP, Li et al. 2018), both decoupled from the gradient as AdamW has it, and clears the gradients. Called by the
 * thread that uses the trainer, between batches; which of the pool's threads moves what does not show. */
#ifndef WEFT_TRAIN_OPTIMIZER_H
#define WEFT_TRAIN_OPTIMIZER_H

#include "train/parts.h"

/* What an optimizer keeps of each parameter beside its value: m, or m and v. By weft__train_optimizer. */
int weft__train_optimizer_kept(int32_t optimizer);
/* Muon's memory, and what it multiplies by; of other optimizers nothing. *left grows to what the multiplier must hold
 * (weft__train_multiplier_create). */
weft_status weft__train_optimizer_open(weft__trainer *t, int64_t *left, weft_error *err);
/* by: what gradients are multiplied by; lr of this step, t->step, which is counted already. */
void weft__train_optimizer_move(weft__trainer *t, double by, double lr);

/* norm_cap.c: ||scale B A|| of a pair at most norm_cap times ||W|| (Frobenius): opens by measuring W, then scales B of
 * pairs that have grown beyond it. Nothing where norm_cap is 0. */
weft_status weft__train_cap_open(weft__trainer *t, weft_error *err);
void weft__train_cap(weft__trainer *t);

#endif
