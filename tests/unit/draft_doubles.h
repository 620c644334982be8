// SPDX-License-Identifier: Apache-2.0
/* draft_doubles.h: who guesses tokens in tests: random ones, recorded answers, such as are always or at times wrong;
 * and engines that ask them, or try whatever their own drafters find. Include it after serve_hall.h. */
#ifndef WEFT_TESTS_DRAFT_DOUBLES_H
#define WEFT_TESTS_DRAFT_DOUBLES_H

#include "batcher/batcher.h"
#include "model/random_adapters.h"

static const char *const names[] = {"one", "two"};

typedef struct guesses {
    const ask *all;
    const answer *first; /* what the answers are; NULL: nothing is known */
    int n, wrong_in;     /* one of so many tokens is wrong; 1: all; 0: none */
} guesses;

static inline uint32_t mix(uint32_t a, uint32_t b)
{
    uint32_t x = (a * 0x9e3779b9u) ^ (b + 0x7f4a7c15u);
    return x ^ x >> 15;
}

/* The recorded answer to that prompt that begins as this one; NULL, too, where several do: which one it is is not
 * known. */
static const answer *recorded(const guesses *g, const int32_t *tokens, int32_t n_prompt, int32_t n)
{
    const answer *found = NULL;
    for (int i = 0; i < g->n; i++) {
        const ask *q = &g->all[i];
        const answer *a = &g->first[i];
        if (q->p.n_tokens == n_prompt && n - n_prompt < a->n && !memcmp(q->tokens, tokens, (size_t)n_prompt * 4) &&
            !memcmp(a->token, tokens + n_prompt, (size_t)(n - n_prompt) * 4)) {
            if (found) return NULL;
            found = a;
        }
    }
    return found;
}

static inline int32_t guess(void *arg, const int32_t *tokens, int32_t n_prompt, int32_t n, int32_t most, int32_t *out)
{
    const guesses *g = arg;
    const answer *a = g->first ? recorded(g, tokens, n_prompt, n) : NULL;
    int32_t k = 0;
    const uint32_t at = mix((uint32_t)n, (uint32_t)tokens[n - 1]);
    if (!g->first) { /* any tokens, of any number */
        most = (int32_t)(at % (uint32_t)(most + 1));
        for (; k < most; k++) out[k] = 3 + (int32_t)(mix(at, (uint32_t)k) % 400);
        return most;
    }
    for (; a && k < most && n - n_prompt + k < a->n; k++) {
        out[k] = a->token[n - n_prompt + k];
        if (g->wrong_in && mix(at, (uint32_t)k) % (uint32_t)g->wrong_in == 0) out[k] = 3 + (out[k] + 1) % 400;
    }
    return k;
}

/* An engine that guesses so; g NULL: by its own drafters, whatever they cost. */
static inline weft_engine *guessing(weft_model *model, weft_engine_params *p, guesses *g, const char *const *adapters)
{
    weft_error err = {0};
    if (!p->spec) p->spec = WEFT_SPEC_AUTO;
    weft_engine *e = open_engine(model, p);
    pthread_mutex_lock(&e->lock);
    if (g) {
        e->draft.guess = guess;
        e->draft.guess_arg = g;
    }
    e->draft.always = 1;
    pthread_mutex_unlock(&e->lock);
    for (int i = 0; adapters && i < 2; i++)
        if (weft_engine_adapter_add(e, names[i], adapters[i], 1, 0, &err)) fail_msg("%s", err.message);
    return e;
}

static inline weft_draft_stats drafts_of(const weft_engine *e)
{
    weft_draft_stats sum = {0};
    const weft_engine_stats s = stats_of(e);
    for (int d = 0; d < WEFT_DRAFTERS; d++) {
        sum.n_drafts += s.drafts[d].n_drafts;
        sum.n_tokens += s.drafts[d].n_tokens;
        sum.n_accepted += s.drafts[d].n_accepted;
        for (int k = 1; k < WEFT_DRAFT_MAX; k++) {
            assert_true(s.drafts[d].tokens_at[k] <= s.drafts[d].tokens_at[k - 1]);
            assert_true(s.drafts[d].accepted_at[k] <= s.drafts[d].accepted_at[k - 1]);
        }
    }
    return sum;
}

static char folder[] = "/tmp/weft-drafts-XXXXXX";
static char adapter_files[2][64];

static inline void make_adapters(const weft_model *model)
{
    assert_non_null(mkdtemp(folder));
    weft_error err = {0};
    if (weft_model_describe(model, &info, &err)) fail_msg("%s", err.message);
    for (int i = 0; i < 2; i++) {
        snprintf(adapter_files[i], sizeof adapter_files[i], "%s/%d.gguf", folder, i);
        write_adapter(adapter_files[i], i);
    }
}

#endif
