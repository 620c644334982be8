// SPDX-License-Identifier: Apache-2.0
/* teacher.c: see teacher.h. */
#include "train/teacher.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "engine/drafter.h"
#include "weft/model.h"
#include "weft/session.h"
#include "weft/text.h"

enum { LOGIT_ROWS = 32 /* at a time */ };

struct weft__train_teacher {
    weft_model *model;
    weft_session *session;
    int32_t n_vocab, n_top;
    int32_t n_shared; /* tokens that the pupil has, too */
    float *logits;    /* [LOGIT_ROWS, V] */
    /* [max_rows] or [max_rows, n_top] */
    weft__train_top *top;
    int32_t *token;
    float *p, *weight;
};

static weft_status teacher_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for what the teacher says");
}

/* Of the same words under the same ids, as draft models are? Those that both have are told. */
static weft_status check_vocabulary(weft__train_teacher *t, const char *pupil, const char *path, weft_error *err)
{
    weft_file *file = NULL;
    weft_tokenizer *own = NULL;
    const weft_tokenizer *his = weft_model_tokenizer(t->model);
    weft_status st = his ? weft_file_open(pupil, &file, err)
                         : weft_fail(err, WEFT_ARGUMENT, "%s cannot teach: it has no tokenizer to compare", path);
    if (!st) st = weft_tokenizer_open(file, &own, err);
    if (!st) st = weft__engine_drafter_words(his, own, path, pupil, "teach", "a teacher", err);
    if (!st) {
        const int32_t n = weft_tokenizer_n_vocab(own), m = weft_tokenizer_n_vocab(his), shared = n < m ? n : m;
        t->n_shared = shared < t->n_vocab ? shared : t->n_vocab;
    }
    weft_tokenizer_close(&own);
    weft_file_close(&file);
    return st;
}

weft_status weft__train_teacher_open(const char *path, const char *pupil, int32_t n_ctx, int32_t max_rows,
                                     int32_t n_top, int32_t n_threads, weft__train_teacher **out, weft_error *err)
{
    weft_model_params mp;
    weft_session_params sp;
    weft_model_info info = {.size = sizeof info};
    weft__train_teacher *t = weft__alloc_zero(1, sizeof *t);
    *out = t;
    if (!t) return teacher_no_memory(err);
    weft_model_params_default(&mp);
    weft_session_params_default(&sp);
    mp.n_threads = n_threads;
    sp.n_ctx = n_ctx;
    sp.kv_dtype = WEFT_F32;
    weft_status st = weft_model_open(path, &mp, &t->model, err);
    if (!st) st = weft_model_describe(t->model, &info, err);
    t->n_vocab = info.n_vocab;
    if (!st) st = check_vocabulary(t, pupil, path, err);
    if (!st) st = weft_session_new(t->model, &sp, &t->session, err);
    t->n_top = n_top < t->n_shared ? n_top : t->n_shared;
    const size_t rows = (size_t)max_rows, all = rows * (size_t)t->n_top;
    if (!st) {
        t->logits = weft__alloc_array((size_t)LOGIT_ROWS * (size_t)t->n_vocab, sizeof *t->logits);
        t->top = weft__alloc_array(rows, sizeof *t->top);
        t->token = weft__alloc_array(all, sizeof *t->token);
        t->p = weft__alloc_array(all, sizeof *t->p);
        t->weight = weft__alloc_zero(rows, sizeof *t->weight);
        if (!t->logits || !t->top || !t->token || !t->p || !t->weight) st = teacher_no_memory(err);
    }
    if (st) weft__train_teacher_close(out);
    return st;
}

void weft__train_teacher_close(weft__train_teacher **pt)
{
    weft__train_teacher *t = pt ? *pt : NULL;
    if (!t) return;
    if (t->session) weft_session_free(&t->session);
    if (t->model) weft_model_close(&t->model);
    weft__free(t->logits);
    weft__free(t->top);
    weft__free(t->token);
    weft__free(t->p);
    weft__free(t->weight);
    weft__free(t);
    *pt = NULL;
}

/* The n_top largest of x [n_shared], the largest first, of two equal ones the lower id. */
static void take_largest(const weft__train_teacher *t, const float *x, int32_t *token)
{
    int32_t n = 0;
    for (int32_t id = 0; id < t->n_shared; id++) {
        if (n == t->n_top && !(x[id] > x[token[n - 1]])) continue;
        int32_t at = n < t->n_top ? n++ : n - 1;
        for (; at > 0 && x[id] > x[token[at - 1]]; at--) token[at] = token[at - 1];
        token[at] = id;
    }
}

static weft_status take_row(weft__train_teacher *t, int32_t r, const float *x, float weight, weft_error *err)
{
    int32_t *token = t->token + (int64_t)r * t->n_top;
    float *p = t->p + (int64_t)r * t->n_top;
    double sum = 0;
    take_largest(t, x, token);
    for (int32_t i = 0; i < t->n_top; i++) sum += exp((double)x[token[i]] - (double)x[token[0]]);
    for (int32_t i = 0; i < t->n_top; i++) p[i] = (float)(exp((double)x[token[i]] - (double)x[token[0]]) / sum);
    t->top[r] = (weft__train_top){token, p, t->n_top, weight};
    return isfinite(sum) ? WEFT_OK : weft_fail(err, WEFT_LIMIT, "the teacher's logits are not finite");
}

/* Rows [first, last): one text. Logits are asked for where something is learned. */
static weft_status tell_text(weft__train_teacher *t, const weft__train_batch *b, int32_t first, int32_t last,
                             weft_error *err)
{
    weft_status st = WEFT_OK;
    weft_session_trim(t->session, 0);
    for (int32_t r = first, n; !st && r < last; r += n) {
        const int learned = b->target[r] >= 0;
        for (n = 1; r + n < last && (b->target[r + n] >= 0) == learned && (!learned || n < LOGIT_ROWS);) n++;
        st = weft_session_eval(t->session, b->token + r, n, learned, learned ? t->logits : NULL, err);
        for (int32_t i = 0; !st && learned && i < n; i++) {
            const float weight = b->weight ? b->weight[r + i] : 1;
            st = take_row(t, r + i, t->logits + (int64_t)i * t->n_vocab, weight > 0 ? weight : 0, err);
        }
    }
    return st;
}

weft_status weft__train_teacher_tell(weft__train_teacher *t, weft__train_batch *b, weft_error *err)
{
    weft_status st = WEFT_OK;
    double count = 0;
    memset(t->top, 0, (size_t)b->n_rows * sizeof *t->top);
    for (int32_t first = 0, last; !st && first < b->n_rows; first = last) {
        for (last = first; last < b->n_rows && b->segment[last] == b->segment[first];) last++;
        st = tell_text(t, b, first, last, err);
    }
    for (int32_t r = 0; r < b->n_rows; r++) count += (double)t->top[r].weight;
    b->top = t->top;
    b->weight = t->weight;
    b->count = count;
    return st;
}
