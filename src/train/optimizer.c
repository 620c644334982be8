// SPDX-License-Identifier: Apache-2.0
/* optimizer.c: see optimizer.h: AdamW, SGD and Muon. */
#include "train/optimizer.h"

#include <math.h>
#include <string.h>

/* One step's numbers. bias: 1 - beta^step. */
struct move {
    weft__trainer *t;
    float by, lr, bias1, bias2;
};

typedef void (*move_fn)(const struct move *mv, const struct weft__trainer_weight *p, int64_t from, int64_t to);

/* What draws a number back: to 0, and to where it began. */
static inline float drawn(const weft__trainer *t, const struct weft__trainer_weight *p, int64_t i)
{
    float back = p->decay ? t->o.weight_decay * p->data[i] : 0;
    if (t->o.l2_sp > 0) back += t->o.l2_sp * (p->data[i] - t->start[p->data - t->data + i]);
    return back;
}

/* m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g²; p -= lr (m / bias1 / (sqrt(v / bias2) + eps) + what draws it back)
 * (Loshchilov and Hutter 2019). */
static void adamw(const struct move *mv, const struct weft__trainer_weight *p, int64_t from, int64_t to)
{
    const weft__train_options *o = &mv->t->o;
    const float one1 = 1 / mv->bias1, one2 = 1 / mv->bias2, b1 = o->beta1, b2 = o->beta2;
    for (int64_t i = from; i < to; i++) {
        float g = p->grad[i] * mv->by, m = b1 * p->m[i] + (1 - b1) * g, v = b2 * p->v[i] + (1 - b2) * g * g;
        p->m[i] = m;
        p->v[i] = v;
        p->data[i] -= mv->lr * (m * one1 / (sqrtf(v * one2) + o->eps) + drawn(mv->t, p, i));
        p->grad[i] = 0;
    }
}

/* m = momentum m + g; p -= lr (m + what draws it back). */
static void sgd(const struct move *mv, const struct weft__trainer_weight *p, int64_t from, int64_t to)
{
    const weft__train_options *o = &mv->t->o;
    for (int64_t i = from; i < to; i++) {
        p->m[i] = o->momentum * p->m[i] + p->grad[i] * mv->by;
        p->data[i] -= mv->lr * (p->m[i] + drawn(mv->t, p, i));
        p->grad[i] = 0;
    }
}

/* ---- Muon ----
 * The momentum of a matrix, made nearly orthogonal, is its step (Jordan et al. 2024); times 0.2 sqrt(max(rows,
 * columns)) it is as long as AdamW's usually is (Liu et al. 2025), so that rates and decay are AdamW's. Embeddings, the
 * output matrix and vectors have AdamW itself. */

enum { MUON_STEPS = 5 };

static int is_muons(const weft__trainer *t, const struct weft__trainer_weight *p)
{
    return t->o.optimizer == WEFT__TRAIN_MUON && p->n_dims == 2 && strcmp(p->name, "token_embd.weight") != 0 &&
           strcmp(p->name, "output.weight") != 0;
}

/* m = momentum m + g, and Nesterov's look ahead, momentum m + g, in the gradient's place. */
static void muon_momentum(const struct move *mv, const struct weft__trainer_weight *p, int64_t from, int64_t to)
{
    const float momentum = mv->t->o.momentum;
    for (int64_t i = from; i < to; i++) {
        const float g = p->grad[i] * mv->by;
        p->m[i] = momentum * p->m[i] + g;
        p->grad[i] = momentum * p->m[i] + g;
    }
}

/* The gradient's place holds the orthogonal matrix. */
static void muon_move(const struct move *mv, const struct weft__trainer_weight *p, int64_t from, int64_t to)
{
    const float size = 0.2f * sqrtf((float)(p->d[0] > p->d[1] ? p->d[0] : p->d[1]));
    for (int64_t i = from; i < to; i++) {
        p->data[i] -= mv->lr * (size * p->grad[i] + drawn(mv->t, p, i));
        p->grad[i] = 0;
    }
}

/* y = a y + b x, over n. */
struct mix_job {
    float *y, a, b;
    const float *x;
    int64_t n;
};

static void run_mix(void *arg, int thread, int n_threads)
{
    const struct mix_job *j = arg;
    const int64_t last = weft__train_share(j->n, thread + 1, n_threads);
    for (int64_t i = weft__train_share(j->n, thread, n_threads); i < last; i++)
        j->y[i] = j->a * j->y[i] + j->b * j->x[i];
}

static void mix(weft__trainer *t, float *y, float a, const float *x, float b, int64_t n)
{
    weft__pool_run(t->pool, run_mix, &(struct mix_job){y, a, b, x, n});
}

/* x [rows, columns], rows <= columns, or its transpose; *rows and *columns of the former. */
static void shape_of(const struct weft__trainer_weight *p, int64_t *rows, int64_t *columns)
{
    const int tall = p->d[1] > p->d[0];
    *rows = tall ? p->d[0] : p->d[1];
    *columns = tall ? p->d[1] : p->d[0];
}

/* Between the matrix of a parameter and its place with few rows; `back` writes the parameter's. */
static void turn(const struct weft__trainer_weight *p, float *x, int back)
{
    const int64_t width = p->d[0], height = p->d[1];
    for (int64_t r = 0; r < height; r++) {
        for (int64_t c = 0; c < width; c++) {
            float *at = height > width ? &x[c * height + r] : &x[r * width + c];
            if (back) p->grad[r * width + c] = *at;
            else *at = p->grad[r * width + c];
        }
    }
}

/* x / ||x||, 0 where that is 0. */
static void normalise(float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    const float by = sum > 0 ? (float)(1 / sqrt(sum)) : 0;
    for (int64_t i = 0; i < n; i++) x[i] *= by;
}

/* Five rounds of x = a x + (b S + c S²) x with S = x x^T: Newton and Schulz's, whose numbers drive singular values to
 * about 1 from wherever they are. */
static void orthogonalise(weft__trainer *t, const struct weft__trainer_weight *p)
{
    static const float a = 3.4445f, b = -4.7750f, c = 2.0315f;
    int64_t m, n;
    shape_of(p, &m, &n);
    float *x = t->muon, *next = x + t->muon_matrix, *s = next + t->muon_matrix, *square = s + t->muon_square;
    turn(p, x, 0);
    normalise(x, m * n);
    for (int round = 0; round < MUON_STEPS; round++) {
        weft__train_product q = {.m = m, .n = m, .k = n, .a = x, .lda = n, .c = s, .ldc = m};
        q.b = weft__train_rows_of_floats(x, n);
        weft__train_multiplier_run(t->x, &q);
        q = (weft__train_product){.m = m, .n = m, .k = m, .a = s, .lda = m, .b_across = 1, .c = square, .ldc = m};
        q.b = weft__train_rows_of_floats(s, m);
        weft__train_multiplier_run(t->x, &q);
        mix(t, square, c, s, b, m * m);
        q = (weft__train_product){.m = m, .n = n, .k = m, .a = square, .lda = m, .b_across = 1, .c = next, .ldc = n};
        q.b = weft__train_rows_of_floats(x, n);
        weft__train_multiplier_run(t->x, &q);
        mix(t, x, a, next, 1, m * n);
    }
    turn(p, x, 1);
}

weft_status weft__train_optimizer_open(weft__trainer *t, int64_t *left, weft_error *err)
{
    if (t->o.optimizer != WEFT__TRAIN_MUON) return WEFT_OK;
    for (int32_t i = 0; i < t->n_params; i++) {
        int64_t m, n;
        if (!is_muons(t, &t->params[i])) continue;
        shape_of(&t->params[i], &m, &n);
        if ((m + WEFT__GEMM_MAX_MR) * n > *left) *left = (m + WEFT__GEMM_MAX_MR) * n;
        if (m * n > t->muon_matrix) t->muon_matrix = m * n;
        if (m * m > t->muon_square) t->muon_square = m * m;
    }
    t->muon = weft__train_own(t, 2 * (size_t)(t->muon_matrix + t->muon_square), sizeof *t->muon);
    return t->muon ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to train it", t->src.label);
}

/* ---- all of them ---- */

int weft__train_optimizer_kept(int32_t optimizer)
{
    return optimizer == WEFT__TRAIN_SGD ? 1 : 2;
}

struct move_job {
    const struct move *mv;
    const struct weft__trainer_weight *p; /* or NULL: all that are not Muon's */
    move_fn fn;
};

static void run_move(void *arg, int thread, int n_threads)
{
    const struct move_job *j = arg;
    const weft__trainer *t = j->mv->t;
    for (int32_t i = 0; i < t->n_params; i++) {
        const struct weft__trainer_weight *p = &t->params[i];
        if (j->p ? j->p != p : is_muons(t, p)) continue;
        j->fn(j->mv, p, weft__train_share(p->n, thread, n_threads), weft__train_share(p->n, thread + 1, n_threads));
    }
}

void weft__train_optimizer_move(weft__trainer *t, double by, double lr)
{
    const struct move mv = {t, (float)by, (float)lr, (float)(1 - pow((double)t->o.beta1, (double)t->step)),
                            (float)(1 - pow((double)t->o.beta2, (double)t->step))};
    weft__pool_run(t->pool, run_move, &(struct move_job){&mv, NULL, t->o.optimizer == WEFT__TRAIN_SGD ? sgd : adamw});
    for (int32_t i = 0; i < t->n_params; i++) {
        const struct weft__trainer_weight *p = &t->params[i];
        if (!is_muons(t, p)) continue;
        weft__pool_run(t->pool, run_move, &(struct move_job){&mv, p, muon_momentum});
        orthogonalise(t, p);
        weft__pool_run(t->pool, run_move, &(struct move_job){&mv, p, muon_move});
    }
}
