// SPDX-License-Identifier: Apache-2.0
/* teacher.h: what another model of the same vocabulary says would follow, as a target for each learned row of a batch:
 * its likeliest tokens with their probabilities, made to add up to 1 (distillation, Hinton et al. 2015). Invariant: a
 * target is a function of the teacher and the text before it. One thread. */
#ifndef WEFT_TRAIN_TEACHER_H
#define WEFT_TRAIN_TEACHER_H

#include "train/train.h"

typedef struct weft__train_teacher weft__train_teacher;

/* n_ctx: the longest text; max_rows: of a batch; pupil: the path of the model that learns. Fails as weft_model_open
 * does, and with WEFT_ARGUMENT where the vocabularies differ (weft__engine_drafter_words); tokens that one alone has
 * are no targets. */
weft_status weft__train_teacher_open(const char *path, const char *pupil, int32_t n_ctx, int32_t max_rows,
                                     int32_t n_top, int32_t n_threads, weft__train_teacher **out, weft_error *err);
void weft__train_teacher_close(weft__train_teacher **t);

/* b->top for every row with a target, of its weight (those below 0: none), which becomes 0; b->count is the sum of
 * weights. They live until the next call. */
weft_status weft__train_teacher_tell(weft__train_teacher *t, weft__train_batch *b, weft_error *err);

#endif
