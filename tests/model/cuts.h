// SPDX-License-Identifier: Apache-2.0
/* cuts.h: the claim that a text's logits have the same bits however it is cut into steps and shared among threads. */
#ifndef WEFT_TESTS_CUTS_H
#define WEFT_TESTS_CUTS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "model/tier.h"
#include "weft/weft.h"

enum { CUT_VOCAB = 512 }; /* of every model that is tested so */

struct cut {
    int threads, chunk; /* chunk 0: the largest steps there are */
};

/* Opens the model that `which` stands for; fails the test when it cannot. */
typedef weft_model *(*cut_open)(const void *which, int threads);

static inline weft_session *open_session(weft_model *model, int n_ctx, int chunk, uint32_t kv)
{
    weft_session *session = NULL;
    weft_session_params params;
    weft_error err = {0};
    weft_session_params_default(&params);
    params.kv_dtype = kv;
    params.n_ctx = n_ctx;
    params.chunk = chunk;
    if (weft_session_new(model, &params, &session, &err)) fail_msg("%s", err.message);
    return session;
}

static inline void eval(weft_session *session, const int32_t *tokens, int n, int all, float *logits)
{
    weft_error err = {0};
    if (weft_session_eval(session, tokens, n, all, logits, &err)) fail_msg("%s", err.message);
}

/* The logits of all n tokens, as cut `c` gives them; with the largest steps then those of the last one alone, as steps
 * may be larger where only those are wanted. */
static inline void run_cut(weft_model *model, const struct cut *c, uint32_t kv, const int32_t *tokens, int n,
                           float *logits)
{
    float *last = logits + (size_t)(n - 1) * CUT_VOCAB, *alone = logits + (size_t)n * CUT_VOCAB;
    for (int all = 1; all >= (c->chunk > 0); all--) {
        weft_session *session = open_session(model, n, c->chunk, kv);
        eval(session, tokens, n, all, all ? logits : alone);
        weft_session_free(&session);
    }
    if (c->chunk == 0) assert_memory_equal(last, alone, CUT_VOCAB * sizeof *last);
}

enum { EVERY_KIND = -1 };

/* Every cut gives the bits of the first one, in pages of every type, or of the nth alone: a claim about many types of
 * weights, whose products do not know pages, takes each with another one. `make test-all` takes all with all. */
static inline void same_bits(const char *name, cut_open open, const void *which, int nth, const int32_t *tokens, int n,
                             const struct cut *cuts, int n_cuts)
{
    /* Every format as keys and as values. */
    static const uint32_t kinds[] = {WEFT_F32,
                                     WEFT_F16,
                                     WEFT_KV_TYPE(WEFT_KV_Q8, WEFT_KV_Q4, 1, 0),
                                     WEFT_KV_TYPE(WEFT_KV_Q4, WEFT_KV_F8, 0, 0),
                                     WEFT_KV_TYPE(WEFT_KV_F8, WEFT_BF16, 0, 0),
                                     WEFT_KV_TYPE(WEFT_BF16, WEFT_KV_Q8, 0, 0)};
    enum { N_KINDS = sizeof kinds / sizeof *kinds };
    char type[WEFT_KV_NAME_MAX];
    size_t size = (size_t)(n + 1) * CUT_VOCAB * sizeof(float);
    float *first = malloc(N_KINDS * size), *logits = malloc(size);
    weft_model *model = NULL;
    for (int i = 0; i < n_cuts; i++) {
        if (i == 0 || cuts[i].threads != cuts[i - 1].threads) {
            weft_model_close(&model);
            model = open(which, cuts[i].threads);
        }
        for (int kind = 0; kind < N_KINDS; kind++) {
            if (nth != EVERY_KIND && kind != nth % N_KINDS && !claims_sweeps()) continue;
            float *base = first + (size_t)kind * (size / sizeof *first);
            run_cut(model, &cuts[i], kinds[kind], tokens, n, i ? logits : base);
            if (i && memcmp(base, logits, (size_t)n * CUT_VOCAB * sizeof *base))
                fail_msg("%s: chunks of %d with %d threads and %s pages change bits", name, cuts[i].chunk,
                         cuts[i].threads, weft_kv_type_name(kinds[kind], type));
        }
    }
    weft_model_close(&model);
    free(first);
    free(logits);
}

/* Over several pages of 64 tokens: steps that end before, at and behind the end of a page, and one token at a time. */
static const struct cut LONG_CUTS[] = {{1, 0},   {3, 65}, {1, 16}, {1, 65},  {2, 1}, {2, 63},
                                       {2, 100}, {3, 5},  {3, 64}, {2, 512}, {3, 0}};
enum { N_LONG_CUTS = CLAIMS_REPEATED(sizeof LONG_CUTS / sizeof *LONG_CUTS, sizeof LONG_CUTS / sizeof *LONG_CUTS, 2) };

static inline void same_bits_of_a_long_text(const char *name, cut_open open, const void *which, int nth)
{
    enum { MOST = CLAIMS_REPEATED(532, 260, 260) }; /* in full, the largest steps and twenty tokens more */
    int32_t tokens[MOST];
    int n = tier_is_slow() ? 140 : MOST;
    for (int i = 0; i < n; i++) tokens[i] = (i * i * 31 + i * 17 + 1) % CUT_VOCAB;
    same_bits(name, open, which, nth, tokens, n, LONG_CUTS, N_LONG_CUTS);
}

#endif
