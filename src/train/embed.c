// SPDX-License-Identifier: Apache-2.0
/* embed.c: a batch's texts as embeddings, as the engine makes them (batcher/sample.c): the sum of the hidden states of
 * all tokens behind the final norm, divided by its length; the loss of loss.h on them; and the way back to the hidden
 * states. The head's rows pass in chunks, as they do for logits, up to the norm and no further. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "train/loss_parts.h"

/* Of the batch in work: parts of t->embedded. */
struct embedded {
    weft__loss_contrast_texts x;
    double *e, *gradient; /* [texts, width] */
    double *length;       /* [texts] of the sum */
    int32_t *same;        /* [texts] */
    int32_t norm;         /* the op */
};

/* The norm between the last layer and the output matrix: behind it stand the states that are summed. */
static int32_t final_norm(const weft__trainer *t)
{
    for (int32_t i = t->n_ops - 1; i >= t->n_body; i--)
        if (t->ops[i].node->op == WEFT_OP_NORM) return i;
    return -1;
}

static weft_status check_groups(const weft__trainer *t, weft_error *err)
{
    const int32_t *group = t->batch->group;
    if (!group) return weft_fail(err, WEFT_ARGUMENT, "a batch of texts does not say which belong together");
    for (int32_t i = 0; i < t->n_segs; i++) {
        const int32_t before = i ? group[i - 1] : -1;
        if (group[i] != before && group[i] != before + 1)
            return weft_fail(err, WEFT_ARGUMENT, "text %d: record %d behind %d; records rise from 0 in steps of 1", i,
                             group[i], before);
        if (group[i] != before && (i + 1 == t->n_segs || group[i + 1] != group[i]))
            return weft_fail(err, WEFT_ARGUMENT, "text %d is alone: a query needs a text that belongs to it", i);
    }
    return WEFT_OK;
}

static weft_status embed_room(weft__trainer *t, struct embedded *m, weft_error *err)
{
    const size_t n = (size_t)t->n_segs, width = (size_t)weft__train_width(t, t->ops[m->norm].out);
    uint64_t floats, bytes;
    if (__builtin_mul_overflow(n, 2 * width + 3, &floats) || __builtin_mul_overflow(floats, sizeof(double), &bytes) ||
        bytes > SIZE_MAX / 2 || !weft__grow(&t->embedded, &t->embedded_room, (size_t)bytes, 1))
        return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for embeddings", t->src.label);
    m->e = t->embedded;
    m->gradient = m->e + n * width;
    m->length = m->gradient + n * width;
    double *score = m->length + n;
    m->same = (int32_t *)(void *)(score + n);
    memset(m->e, 0, n * width * sizeof *m->e);
    m->x = (weft__loss_contrast_texts){
        .n = t->n_segs, .width = (int64_t)width, .e = m->e, .group = t->batch->group, .same = m->same, .score = score};
    return WEFT_OK;
}

static int same_texts(const weft__trainer *t, int32_t a, int32_t b)
{
    const int32_t n = t->begin[a + 1] - t->begin[a];
    return n == t->begin[b + 1] - t->begin[b] &&
           !memcmp(t->batch->token + t->begin[a], t->batch->token + t->begin[b], (size_t)n * sizeof *t->batch->token);
}

static void find_same(const weft__trainer *t, int32_t *same)
{
    for (int32_t i = 0; i < t->n_segs; i++)
        for (same[i] = 0; !same_texts(t, same[i], i);) same[i]++;
}

/* Rows of the next chunk, normed; 0: there are none left. */
static int next_chunk(weft__trainer *t, const struct embedded *m, int32_t first)
{
    const int32_t left = t->n_wanted - first;
    if (left <= 0) return 0;
    t->first_wanted = first;
    t->n_chunk = left < t->chunk ? left : t->chunk;
    weft__train_forward(t, t->n_body, m->norm + 1);
    return !t->stopped;
}

static void sum_rows(weft__trainer *t, const struct embedded *m)
{
    const int64_t width = m->x.width;
    for (int32_t first = 0; next_chunk(t, m, first); first += t->n_chunk) {
        for (int32_t i = 0; i < t->n_chunk; i++) {
            const float *y = t->value[t->ops[m->norm].out] + i * width;
            double *e = m->e + t->batch->segment[first + i] * width;
            for (int64_t k = 0; k < width; k++) e[k] += (double)y[k];
        }
    }
    for (int32_t i = 0; i < t->n_segs; i++) {
        double squares = 0, *e = m->e + i * width;
        for (int64_t k = 0; k < width; k++) squares += e[k] * e[k];
        m->length[i] = sqrt(squares);
        for (int64_t k = 0; k < width; k++) e[k] /= m->length[i];
    }
}

/* From the embeddings' gradient to that of the sums: d (s / |s|) = (1 - e e^T) ds / |s|; every row has that of its
 * text. */
static void give_back(weft__trainer *t, const struct embedded *m)
{
    const int64_t width = m->x.width;
    for (int32_t i = 0; i < t->n_segs; i++) {
        double along = 0, *g = m->gradient + i * width;
        const double *e = m->e + i * width;
        for (int64_t k = 0; k < width; k++) along += g[k] * e[k];
        for (int64_t k = 0; k < width; k++) g[k] = (g[k] - along * e[k]) / m->length[i];
    }
    t->counting = 0; /* the way forth was counted */
    for (int32_t first = 0; next_chunk(t, m, first); first += t->n_chunk) {
        for (int32_t i = 0; i < t->n_chunk; i++) {
            float *to = t->gradient[t->ops[m->norm].out] + i * width;
            const double *g = m->gradient + t->batch->segment[first + i] * width;
            for (int64_t k = 0; k < width; k++) to[k] = (float)g[k];
        }
        weft__train_backward(t, t->n_body, m->norm + 1);
    }
    t->counting = 1;
}

weft_status weft__train_embed(weft__trainer *t, int back, weft__train_loss *l, weft_error *err)
{
    struct embedded m = {.norm = final_norm(t)};
    weft__loss_contrast_told told;
    if (m.norm < 0)
        return weft_fail(err, WEFT_UNSUPPORTED, "%s: this model has no final norm to take embeddings from",
                         t->src.label);
    if (back && (!t->gradient[t->hidden] || !t->gradient[t->ops[m.norm].out]))
        return weft_fail(err, WEFT_ARGUMENT,
                         "%s: nothing that learns has a part in embeddings; the output matrix has none (targets)",
                         t->src.label);
    weft_status st = check_groups(t, err);
    if (!st) st = embed_room(t, &m, err);
    if (st) return st;
    find_same(t, m.same);
    sum_rows(t, &m);
    if (t->stopped) return WEFT_OK;
    weft__loss_contrast(t->objective, &m.x, back ? m.gradient : NULL, &told);
    l->loss = told.value;
    l->weight = t->batch->count > 0 ? t->batch->count : (double)told.n;
    l->n_targets = t->n_wanted;
    l->n_pairs = told.n;
    l->n_better = told.n_better;
    l->margin = told.margin;
    if (back && isfinite(l->loss)) give_back(t, &m);
    return WEFT_OK;
}
