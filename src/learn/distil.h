// SPDX-License-Identifier: Apache-2.0
/* distil.h: a larger model of the same vocabulary says what should follow in the answers that are kept: its likeliest
 * tokens, instead of the one that stands there (Hinton et al. 2015). Corrections stay as they are: of what a user
 * corrects a teacher knows nothing. One thread. */
#ifndef WEFT_LEARN_DISTIL_H
#define WEFT_LEARN_DISTIL_H

#include "train/teacher.h"

typedef struct weft__distil weft__distil;

/* longest: tokens of a text; max_rows: of a batch. Fails as weft__train_teacher_open does. */
weft_status weft__distil_open(const char *teacher, const char *pupil, int32_t longest, int32_t max_rows,
                              int32_t n_threads, weft__distil **out, weft_error *err);
void weft__distil_close(weft__distil **d);
/* As weft__teach_options.soften: of rows with a weight above 0 the target becomes the teacher's distribution, by that
 * weight. WEFT_LIMIT: more rows than were said. */
weft_status weft__distil_soften(void *distil, weft__train_batch *b, weft_error *err);

#endif
