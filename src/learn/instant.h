// SPDX-License-Identifier: Apache-2.0
/* instant.h: an experiment, off unless it is asked for: an adapter from a correction in one step, without a loop.
 *
 * One pass over the corrections gives what the last layer's ffn_down and the norm behind it read at their tokens; from
 * that follow the matrix's exact gradient, a change of low rank along it, and how far it goes (train/tail.h). Nothing
 * holds neighbours meanwhile. Keys and values are those of what it goes on from, bit for bit, so that the cache of a
 * prompt would stay valid. The gate (gate.h) judges it as it does everything that is learned, and nothing is written
 * that it refuses. One thread calls; the trainer has its own. */
#ifndef WEFT_LEARN_INSTANT_H
#define WEFT_LEARN_INSTANT_H

#include "learn/teach.h"

/* Where nobody says others: the step's rank, and log p of every token that is taught, at which it is enough. */
enum { WEFT__TEACH_INSTANT_RANK = 2 };
#define WEFT__TEACH_INSTANT_HOLD (-0.5f)

/* As weft__teach, in one attempt: of the options it looks at instant, hold_at (0: the least loss along the line),
 * norm_cap, n_threads, seed and stop. Learned are the tokens that differ from the wrong answer. out->pass_s, step_s:
 * what the pass over the corrections took, and the step from what it kept; out->scale is the step's length.
 * WEFT_UNSUPPORTED: the model has something else behind its last ffn_down; WEFT_LIMIT: answers of more tokens than one
 * step takes; and as weft__teach. */
weft_status weft__teach_instant(const weft__teach_task *task, const weft__teach_options *o, weft__teach_report *out,
                                weft_error *err);

#endif
