// SPDX-License-Identifier: Apache-2.0
/* norm_cap.c: see optimizer.h. ||B A||² is the sum over B's rows b of b (A A^T) b^T, with A A^T [r, r], so the product
 * is never made. A pair is one thread's, whichever it is. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "train/optimizer.h"

static const double BELOW = 1e-5; /* rounding of what is scaled, and mixed later, stays within the cap */

/* The squared norm of rows [first, first + n) of pair i's tensor. */
static double tensor_norm(const weft__trainer *t, int32_t i, float *row)
{
    const struct weft__trainer_weight *a = &t->params[t->pairs[i].a];
    char name[sizeof a->name];
    const size_t n = strlen(a->name) - strlen(".lora_a");
    memcpy(name, a->name, n);
    name[n] = 0;
    const weft__tensor_desc *d = t->src.tensor(&t->src, name);
    const uint64_t row_bytes = weft__quant_row_bytes(d->dtype, (int64_t)d->d[0]);
    double sum = 0;
    for (uint64_t r = 0; r < d->d[1]; r++) {
        weft__quant_decode_row(d->dtype, (const uint8_t *)weft__tensor_data(d) + r * row_bytes, row, (int64_t)d->d[0]);
        for (uint64_t k = 0; k < d->d[0]; k++) sum += (double)row[k] * (double)row[k];
    }
    return sqrt(sum);
}

struct cap_job {
    weft__trainer *t;
    float *rows; /* [threads, widest] */
    int64_t widest;
};

static void run_measure(void *arg, int thread, int n_threads)
{
    const struct cap_job *j = arg;
    for (int32_t i = thread; i < j->t->n_pairs; i += n_threads)
        j->t->cap[i] = (double)j->t->o.norm_cap * tensor_norm(j->t, i, j->rows + thread * j->widest);
}

weft_status weft__train_cap_open(weft__trainer *t, weft_error *err)
{
    if (!(t->o.norm_cap > 0) || !t->n_pairs) return WEFT_OK;
    struct cap_job j = {.t = t};
    for (int32_t i = 0; i < t->n_pairs; i++)
        if (t->params[t->pairs[i].a].d[0] > j.widest) j.widest = t->params[t->pairs[i].a].d[0];
    t->cap = weft__train_own(t, (size_t)t->n_pairs, sizeof *t->cap);
    t->cap_squares =
        weft__train_own(t, (size_t)t->n_threads * (size_t)t->o.lora_rank * (size_t)t->o.lora_rank, sizeof(double));
    j.rows = weft__alloc_array((size_t)t->n_threads * (size_t)j.widest, sizeof *j.rows);
    const int ok = t->cap && t->cap_squares && j.rows;
    if (ok) weft__pool_run(t->pool, run_measure, &j);
    weft__free(j.rows);
    return ok ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to train it", t->src.label);
}

/* ||B A||, by A A^T in g [r, r] and then B's rows. */
static double pair_norm(const weft__trainer *t, int32_t i, double *g)
{
    const struct weft__trainer_weight *a = &t->params[t->pairs[i].a], *b = &t->params[t->pairs[i].b];
    const int64_t rank = t->o.lora_rank, k = a->d[0];
    double sum = 0;
    for (int64_t p = 0; p < rank; p++) {
        for (int64_t q = 0; q <= p; q++) {
            double dot = 0;
            for (int64_t c = 0; c < k; c++) dot += (double)a->data[p * k + c] * (double)a->data[q * k + c];
            g[p * rank + q] = g[q * rank + p] = dot;
        }
    }
    for (int64_t r = 0; r < b->d[1]; r++) { /* b_r G b_r^T is the squared norm of a row of B A */
        const float *row = b->data + r * rank;
        for (int64_t p = 0; p < rank; p++) {
            double dot = 0;
            for (int64_t q = 0; q < rank; q++) dot += g[p * rank + q] * (double)row[q];
            sum += (double)row[p] * dot;
        }
    }
    return sqrt(fmax(sum, 0));
}

static void run_cap(void *arg, int thread, int n_threads)
{
    weft__trainer *t = arg;
    const int64_t rank = t->o.lora_rank;
    for (int32_t i = thread; i < t->n_pairs; i += n_threads) {
        const double norm = fabs((double)t->lora_scale) * pair_norm(t, i, t->cap_squares + thread * rank * rank);
        const struct weft__trainer_weight *b = &t->params[t->pairs[i].b];
        const double most = t->cap[i] * (1 - BELOW);
        if (!(norm > most)) continue;
        const float by = (float)(most / norm);
        for (int64_t k = 0; k < b->n; k++) b->data[k] *= by;
    }
}

void weft__train_cap(weft__trainer *t)
{
    if (t->cap) weft__pool_run(t->pool, run_cap, t);
}

double weft__trainer_norm(weft__trainer *t)
{
    double most = 0;
    for (int32_t i = 0; t->cap && i < t->n_pairs; i++) {
        const double norm = fabs((double)t->lora_scale) * pair_norm(t, i, t->cap_squares);
        if (!(norm * (double)t->o.norm_cap <= most * t->cap[i])) most = norm * (double)t->o.norm_cap / t->cap[i];
    }
    return most;
}
