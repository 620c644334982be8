// SPDX-License-Identifier: Apache-2.0
/* kv_recall.c: see kv_recall.h. Both types read the same tokens; what is drawn comes from the seed alone. */
#include "kv_recall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "generate.h"
#include "prompt.h"

/* Copied tokens that are scored, and those before them from which the model sees what comes; the most tokens of an
 * answer; digits of a pass key. */
enum { SCORED = 64, CUE = 8, ANSWER = 12, DIGITS = 5 };

struct recall {
    const kv_recall *r;
    weft__rng rng;
    weft_sampler *sampler; /* the likeliest */
    int32_t *ids;          /* [n_ctx] */
    int32_t n;
    float *logits; /* [SCORED, V] */
    weft_progress_fn progress;
    void *arg;
    double done, all; /* tokens of the test that runs */
};

/* ---- tokens ---- */

static int put(struct recall *t, const int32_t *ids, size_t n)
{
    if (n > (size_t)(t->r->n_ctx - t->n)) return 0;
    if (n) memcpy(t->ids + t->n, ids, n * sizeof *ids);
    t->n += (int32_t)n;
    return 1;
}

/* 1: it is there; 0: it does not fit any more. */
static weft_status put_words(struct recall *t, const char *words, int *fits, weft_error *err)
{
    int32_t *ids = NULL;
    size_t n = 0;
    weft_status st = tokenize_text(weft_model_tokenizer(t->r->model), words, strlen(words), 0, &ids, &n, err);
    if (!st) *fits = put(t, ids, n);
    free(ids);
    return st;
}

/* n tokens of the text, from anywhere in it on, and from its beginning again. */
static int put_filler(struct recall *t, int32_t n)
{
    size_t at = (size_t)weft__rng_below(&t->rng, t->r->n_text);
    for (int32_t i = 0; i < n; i++, at = (at + 1) % t->r->n_text)
        if (!put(t, &t->r->text[at], 1)) return 0;
    return 1;
}

static void begin(struct recall *t)
{
    t->n = 0;
    if (t->r->bos >= 0) put(t, &t->r->bos, 1);
}

static weft_status told(struct recall *t, const char *what, int32_t n, weft_error *err)
{
    t->done += n;
    if (!t->progress || !t->progress(t->arg, what, t->done < t->all ? t->done / t->all : 1)) return WEFT_OK;
    return weft_fail(err, WEFT_CANCELLED, "cancelled");
}

/* ---- a pass key ---- */

static weft_status write_passkey(struct recall *t, int32_t depth, const char *key, int *fits, weft_error *err)
{
    char words[160];
    snprintf(words, sizeof words, "The pass key is %s. Remember it: %s is the pass key.\n", key, key);
    begin(t);
    weft_status st = put_words(t, words, fits, err);
    if (!st && *fits) *fits = put_filler(t, depth);
    if (!st && *fits) st = put_words(t, "\nWhat is the pass key? The pass key is", fits, err);
    *fits = *fits && t->n + ANSWER <= t->r->n_ctx;
    return st;
}

/* Whether the likeliest answer begins with the key. */
static weft_status ask(struct recall *t, int which, const char *key, int32_t *hits, weft_error *err)
{
    generate_result g = {0};
    const generate_request q = {.model = t->r->model,
                                .session = t->r->sessions[which],
                                .sampler = t->sampler,
                                .prompt = t->ids,
                                .n_prompt = t->n,
                                .continues = 1,
                                .n_max = ANSWER};
    weft_session_trim(q.session, 0);
    weft_status st = generate(&q, &g, err);
    if (!st) *hits += !strncmp(g.text + strspn(g.text, " \n\t\"'`*:"), key, DIGITS);
    generate_result_free(&g);
    return st;
}

/* *fits 0: the context is shorter than that. */
static weft_status passkey_at(struct recall *t, kv_rate *rate, int *fits, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < t->r->n_tries && !st; i++) {
        char key[16];
        snprintf(key, sizeof key, "%d", 10000 + (int)weft__rng_below(&t->rng, 90000));
        st = write_passkey(t, rate->depth, key, fits, err);
        if (st || !*fits) return st;
        for (int which = 0; which < KV_BOTH && !st; which++) {
            st = ask(t, which, key, &rate->hits[which], err);
            if (!st) st = told(t, "pass keys", t->n, err);
        }
        rate->n++;
    }
    return st;
}

/* ---- a copy ---- */

/* BOS, `depth` tokens drawn from the text, and the first of them again. Returns those of the copy. */
static int32_t write_copy(struct recall *t, int32_t depth)
{
    begin(t);
    const int32_t first = t->n, room = t->r->n_ctx - t->n - depth, most = depth < CUE + SCORED ? depth : CUE + SCORED;
    const int32_t n = most < room ? most : room;
    for (int32_t i = 0; i < depth; i++) {
        const int32_t id = t->r->text[weft__rng_below(&t->rng, t->r->n_text)];
        if (!put(t, &id, 1)) return 0;
    }
    if (n > CUE) put(t, t->ids + first, (size_t)n);
    return n;
}

/* How many tokens of the copy behind its cue are the likeliest. */
static weft_status count_copied(struct recall *t, int which, int32_t n_copy, kv_rate *rate, weft_error *err)
{
    weft_session *s = t->r->sessions[which];
    const int32_t n_scored = n_copy - CUE, read = t->n - 1 - n_scored;
    const size_t n_vocab = (size_t)t->r->n_vocab;
    weft_session_trim(s, 0);
    weft_status st = weft_session_eval(s, t->ids, read, 0, NULL, err);
    if (!st) st = weft_session_eval(s, t->ids + read, n_scored, 1, t->logits, err);
    for (int32_t i = 0; i < n_scored && !st; i++) {
        const float *row = t->logits + (size_t)i * n_vocab;
        size_t best = 0;
        for (size_t v = 1; v < n_vocab; v++)
            if (row[v] > row[best]) best = v;
        rate->hits[which] += (int32_t)best == t->ids[read + i + 1];
    }
    return st;
}

static weft_status copy_at(struct recall *t, kv_rate *rate, int *fits, weft_error *err)
{
    weft_status st = WEFT_OK;
    const int32_t n = write_copy(t, rate->depth);
    *fits = n > CUE;
    rate->n = n - CUE;
    for (int which = 0; which < KV_BOTH && !st && *fits; which++) {
        st = count_copied(t, which, n, rate, err);
        if (!st) st = told(t, "copies", t->n, err);
    }
    return st;
}

/* ---- both by depth ---- */

typedef weft_status test_at(struct recall *t, kv_rate *rate, int *fits, weft_error *err);

/* At depths that double, while they fit. times: how often a depth's tokens are read. */
static weft_status run_test(struct recall *t, test_at *at, int times, kv_rate *rates, int *n, weft_error *err)
{
    weft_status st = WEFT_OK;
    t->done = t->all = 0;
    for (int64_t depth = KV_FIRST_DEPTH; depth < t->r->n_ctx; depth *= 2) t->all += (double)depth * times;
    for (int64_t depth = KV_FIRST_DEPTH; depth < t->r->n_ctx && *n < KV_DEPTHS && !st; depth *= 2) {
        int fits = 1;
        rates[*n] = (kv_rate){.depth = (int32_t)depth};
        st = at(t, &rates[*n], &fits, err);
        if (st || !fits) break;
        ++*n;
    }
    return st;
}

weft_status kv_recall_run(const kv_recall *r, kv_quality *q, weft_progress_fn progress, void *arg, weft_error *err)
{
    struct recall t = {.r = r, .progress = progress, .arg = arg};
    weft_sampler_params sp;
    weft__rng_seed(&t.rng, r->seed);
    weft_sampler_params_default(&sp);
    sp.temperature = 0;
    sp.repeat_penalty = 1;
    t.ids = malloc((size_t)r->n_ctx * sizeof *t.ids);
    t.logits = malloc((size_t)SCORED * (size_t)r->n_vocab * sizeof *t.logits);
    weft_status st = t.ids && t.logits ? weft_sampler_for(r->model, &sp, &t.sampler, err)
                                       : weft_fail(err, WEFT_NO_MEMORY, "no memory for a context of %d", r->n_ctx);
    if (!st && r->n_tries) st = run_test(&t, passkey_at, KV_BOTH * r->n_tries, q->passkey, &q->n_passkey, err);
    if (!st && r->n_tries) st = run_test(&t, copy_at, KV_BOTH, q->copy, &q->n_copy, err);
    weft_sampler_free(&t.sampler);
    free(t.logits);
    free(t.ids);
    return st;
}
