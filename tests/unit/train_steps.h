// SPDX-License-Identifier: Apache-2.0
/* train_steps.h: what tests of whole runs share: options of a low-rank adapter, steps over random batches, and equality
 * of all numbers. */
#ifndef WEFT_TESTS_TRAIN_STEPS_H
#define WEFT_TESTS_TRAIN_STEPS_H

#include "train_model.h"

static inline weft__train_options lora_options(void)
{
    weft__train_options o = tiny_options();
    o.lora_rank = 4;
    o.lora_alpha = 8;
    o.lr = 2e-2f;
    return o;
}

/* `n` steps of two batches each, from batch `first` on. */
static inline void steps(weft__trainer *t, int first, int n)
{
    for (int i = first; i < first + n; i++) {
        for (int half = 0; half < 2; half++) {
            tiny_batch b;
            tiny_fill(&b, 100 + 2 * (uint64_t)i + (uint64_t)half);
            assert_int_equal(weft__trainer_add(t, &b.b, NULL, NULL), WEFT_OK);
        }
        assert_int_equal(weft__trainer_step(t, NULL, NULL), WEFT_OK);
    }
}

static inline void assert_same_params(const weft__trainer *a, const weft__trainer *b, const char *what)
{
    for (size_t i = 0; i < weft__trainer_n_params(a); i++) {
        weft__train_param p = weft__trainer_param(a, i), q = weft__trainer_param(b, i);
        if (memcmp(p.data, q.data, (size_t)(p.d[0] * p.d[1]) * sizeof *p.data))
            fail_msg("%s: %s has other bits", what, p.name);
    }
}

#endif
