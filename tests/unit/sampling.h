// SPDX-License-Identifier: Apache-2.0
/* sampling.h: logits as models have them, and the ways of sampling that cost the most, for whoever measures a pick: a
 * test how it grows (sample.c), a benchmark how long it takes (bench_text.c). One thread. */
#ifndef WEFT_TESTS_SAMPLING_H
#define WEFT_TESTS_SAMPLING_H

#include "unit/fixture.h"

#include "base/random.h"
#include "growth.h"
#include "weft/weft.h"

enum { SAMPLING_VOCAB = 128256, SAMPLING_KINDS = 4 };

/* [SAMPLING_VOCAB]: a wide bulk, and a few dozen that stand out. */
static inline void sampling_logits(float *logits)
{
    weft__rng rng;
    weft__rng_seed(&rng, 3);
    for (int i = 0; i < SAMPLING_VOCAB; i++)
        logits[i] = (float)(2.5 * weft__rng_normal(&rng) + (weft__rng_below(&rng, 4000) == 0 ? 14 : 0));
}

/* Sets the options of a kind, below SAMPLING_KINDS, and returns its name. */
static inline const char *sampling_kind(int kind, weft_sampler_params *p)
{
    static const char *const names[SAMPLING_KINDS] = {"greedy", "top-k 40, top-p, min-p, penalties", "top-p",
                                                      "nothing"};
    weft_sampler_params_default(p);
    p->temperature = kind != 0;
    p->top_k = kind == 1 ? 40 : 0;
    p->top_p = kind == 1 || kind == 2 ? 0.95f : 1;
    p->min_p = kind == 1 ? 0.05f : 0;
    if (kind == 1) p->repeat_penalty = 1.1f;
    p->seed = 1;
    p->seed_given = 1;
    return names[kind];
}

typedef struct sampling_job {
    const float *logits;
    float *copy;
    const weft_sampler_params *p;
} sampling_job;

/* A pick of the first n, a growth_work. */
static inline double sampling_pick(void *arg, size_t n)
{
    const sampling_job *j = arg;
    weft_sampler *s;
    int32_t token;
    assert_int_equal(weft_sampler_new((int32_t)n, j->p, &s, NULL), WEFT_OK);
    for (int32_t i = 0; i < 30; i++) assert_int_equal(weft_sampler_accept(s, i, NULL), WEFT_OK); /* for the penalties */
    memcpy(j->copy, j->logits, n * sizeof *j->copy);
    double before = own_seconds();
    assert_int_equal(weft_sampler_pick(s, j->copy, &token, NULL), WEFT_OK);
    double took = own_seconds() - before;
    weft_sampler_free(&s);
    return took;
}

#endif
