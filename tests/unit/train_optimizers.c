// SPDX-License-Identifier: Apache-2.0
/* train_optimizers.c: AdamW, SGD and Muon followed in double, with decay to 0 and to where parameters began; the cap on
 * what an adapter changes; and that no number of threads shows. */
#include "train_steps.h"

/* ---- optimizers ---- */

/* One parameter of a run, followed in double: a matrix, or a vector, which does not decay. */
/* x [rows, width] by five rounds of Newton and Schulz's, in double. */
static void orthogonal(double *x, int64_t rows, int64_t width)
{
    double s[64][64], q[64][64], *y = weft__alloc_zero((size_t)(rows * width), sizeof *y), sum = 0;
    assert_true(y && rows <= 64 && rows <= width);
    for (int64_t i = 0; i < rows * width; i++) sum += x[i] * x[i];
    for (int64_t i = 0; i < rows * width; i++) x[i] /= sqrt(sum);
    for (int round = 0; round < 5; round++) {
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = 0; j < rows; j++) {
                s[i][j] = 0;
                for (int64_t k = 0; k < width; k++) s[i][j] += x[i * width + k] * x[j * width + k];
            }
        }
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = 0; j < rows; j++) {
                q[i][j] = -4.7750 * s[i][j];
                for (int64_t k = 0; k < rows; k++) q[i][j] += 2.0315 * s[i][k] * s[k][j];
            }
        }
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = 0; j < width; j++) {
                y[i * width + j] = 3.4445 * x[i * width + j];
                for (int64_t k = 0; k < rows; k++) y[i * width + j] += q[i][k] * x[k * width + j];
            }
        }
        memcpy(x, y, (size_t)(rows * width) * sizeof *x);
    }
    weft__free(y);
}

/* Muon's step of a parameter of d0 columns, from its momentum v and gradient g, into u. */
static void muon_step(const weft__train_param *p, double momentum, const double *v, const double *g, double *u)
{
    const int64_t width = (int64_t)p->d[0], rows = (int64_t)p->d[1], tall = rows > width;
    double *x = weft__alloc_zero((size_t)(width * rows), sizeof *x);
    assert_non_null(x);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c++)
            x[tall ? c * rows + r : r * width + c] = momentum * v[r * width + c] + g[r * width + c];
    orthogonal(x, tall ? width : rows, tall ? rows : width);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c++)
            u[r * width + c] = 0.2 * sqrt((double)(tall ? rows : width)) * x[tall ? c * rows + r : r * width + c];
    weft__free(x);
}

/* What was moved against the same in double. */
static void compare_params(const weft__train_param *p, const double *x, double bound, double lr, int kind, int step)
{
    for (uint64_t i = 0; i < p->d[0] * p->d[1]; i++)
        if (!(fabs((double)p->data[i] - x[i]) <= bound * (fabs(x[i]) + lr)))
            fail_msg("optimizer %d, step %d, element %llu: %.9g, in double %.9g", kind, step, (unsigned long long)i,
                     (double)p->data[i], x[i]);
}

/* kind, and whether parameters are drawn to where they began; the `nth` of those of n_dims inside the layers. */
static void optimizer_case(int kind, float clip, uint32_t n_dims, int nth, float l2_sp)
{
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    weft__train_options o = tiny_options();
    o.optimizer = kind;
    o.clip_norm = clip;
    o.lr = 3e-2f;
    o.weight_decay = 0.1f;
    o.l2_sp = l2_sp;
    weft__trainer *t = tiny_trainer(m, &o);
    size_t at = 1; /* inside a layer */
    while (weft__trainer_param(t, at).n_dims != n_dims || nth-- > 0) at++;
    const int muon = kind == WEFT__TRAIN_MUON && n_dims == 2;
    weft__train_param p = weft__trainer_param(t, at);
    size_t n = (size_t)(p.d[0] * p.d[1]);
    const double decay = n_dims > 1 ? (double)o.weight_decay : 0;
    double *x = weft__alloc_zero(6 * n, sizeof *x), *v = x + n, *s = v + n, *begun = s + n, *g1 = begun + n,
           *u = g1 + n;
    for (size_t i = 0; i < n; i++) begun[i] = x[i] = (double)p.data[i];
    for (int step = 1; step <= 5; step++) {
        tiny_batch b;
        weft__train_loss l[2];
        weft__train_step info;
        for (int half = 0; half < 2; half++) {
            tiny_fill(&b, 40 + 2 * (uint64_t)step + (uint64_t)half);
            assert_int_equal(weft__trainer_add(t, &b.b, &l[half], NULL), WEFT_OK);
        }
        double weight = l[0].weight + l[1].weight, sum = 0;
        for (size_t i = 0; i < weft__trainer_n_params(t); i++) {
            weft__train_param q = weft__trainer_param(t, i);
            for (uint64_t j = 0; j < q.d[0] * q.d[1]; j++) sum += (double)q.gradient[j] * (double)q.gradient[j];
        }
        double norm = sqrt(sum) / weight, by = (clip > 0 && norm > (double)clip ? (double)clip / norm : 1) / weight,
               lr = (double)o.lr;
        for (size_t i = 0; i < n; i++) {
            double g = g1[i] = (double)p.gradient[i] * by, back = decay * x[i] + (double)l2_sp * (x[i] - begun[i]);
            if (muon || kind == WEFT__TRAIN_SGD) v[i] = (double)o.momentum * v[i] + g;
            if (muon) {
                x[i] -= lr * back;
            } else if (kind == WEFT__TRAIN_SGD) {
                x[i] -= lr * (v[i] + back);
            } else {
                v[i] = (double)o.beta1 * v[i] + (1 - (double)o.beta1) * g;
                s[i] = (double)o.beta2 * s[i] + (1 - (double)o.beta2) * g * g;
                double a = v[i] / (1 - pow((double)o.beta1, step)), c = s[i] / (1 - pow((double)o.beta2, step));
                x[i] -= lr * (a / (sqrt(c) + (double)o.eps) + back);
            }
        }
        if (muon) muon_step(&p, (double)o.momentum, v, g1, u);
        for (size_t i = 0; muon && i < n; i++) x[i] -= lr * u[i];
        assert_int_equal(weft__trainer_step(t, &info, NULL), WEFT_OK);
        assert_int_equal(info.step, step);
        assert_true(fabs(info.grad_norm - norm) <= 1e-6 * norm && info.lr == lr);
        compare_params(&p, x, muon ? 1e-4 : 2e-6, lr, kind, step);
    }
    weft__free(x);
    weft__trainer_destroy(&t);
    tiny_free(m);
}

static void optimizers(void **state)
{
    (void)state;
    for (int kind = WEFT__TRAIN_ADAMW; kind <= WEFT__TRAIN_MUON; kind++) {
        optimizer_case(kind, 0, 2, 0, 0);
        optimizer_case(kind, 0.05f, 2, 4, 0); /* tall */
        optimizer_case(kind, 0, 1, 0, 0);
        optimizer_case(kind, 0, 2, 1, 0.3f); /* wide */
    }
}

/* ||scale B A|| of the pair whose A is parameter i, by its product. */
static double norm_of_pair(const weft__trainer *t, size_t i, double scale)
{
    const weft__train_param a = weft__trainer_param(t, i), b = weft__trainer_param(t, i + 1);
    double sum = 0;
    for (uint64_t r = 0; r < b.d[1]; r++) {
        for (uint64_t c = 0; c < a.d[0]; c++) {
            double dot = 0;
            for (uint64_t k = 0; k < a.d[1]; k++)
                dot += (double)b.data[r * b.d[0] + k] * (double)a.data[k * a.d[0] + c];
            sum += scale * dot * scale * dot;
        }
    }
    return sqrt(sum);
}

/* An adapter's change of each matrix stays within its share of that matrix, rounding included (a gate may ask for just
 * that share), and one that is within is let alone. */
static void norm_caps(void **state)
{
    static const double shares[] = {0.01, 1e5};
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_Q8_0, 32, 64);
    weft__train_options o = lora_options();
    weft__trainer *free_one = tiny_trainer(m, &o);
    steps(free_one, 0, 4);
    for (int s = 0; s < 2; s++) {
        o.norm_cap = (float)shares[s];
        weft__trainer *t = tiny_trainer(m, &o);
        steps(t, 0, 4);
        int n_at_cap = 0;
        for (size_t i = 0; s == 0 && i < weft__trainer_n_params(t); i += 2) {
            char name[WEFT_NAME_MAX];
            float row[64];
            double of_matrix = 0;
            const char *a = weft__trainer_param(t, i).name;
            snprintf(name, sizeof name, "%.*s", (int)(strlen(a) - strlen(".lora_a")), a);
            const weft__tensor_desc *d = weft__tensor_find(m->src.tensors, name);
            for (uint64_t r = 0; r < d->d[1]; r++) {
                const uint64_t row_bytes = weft__quant_row_bytes(d->dtype, (int64_t)d->d[0]);
                weft__quant_decode_row(d->dtype, (const uint8_t *)weft__tensor_data(d) + r * row_bytes, row,
                                       (int64_t)d->d[0]);
                for (uint64_t k = 0; k < d->d[0]; k++) of_matrix += (double)row[k] * (double)row[k];
            }
            const double norm = norm_of_pair(t, i, 2), most = shares[s] * sqrt(of_matrix);
            if (!(norm <= most * (1 - 1e-6))) fail_msg("%s: %.9g, less than %.9g", name, norm, most);
            n_at_cap += norm > most * (1 - 2e-5);
        }
        assert_true(s || n_at_cap > 0);
        if (s) assert_same_params(t, free_one, "a cap that nothing reaches");
        weft__trainer_destroy(&t);
    }
    weft__trainer_destroy(&free_one);
    tiny_free(m);
}

/* Also where matrices are multiplied for the step itself. */
static void same_bits(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[1], WEFT_F32, 24, 40);
    for (int lora = 0; lora < 2; lora++) {
        weft__train_options o = lora ? lora_options() : tiny_options();
        o.optimizer = WEFT__TRAIN_MUON;
        o.l2_sp = 0.1f;
        o.norm_cap = lora ? 0.05f : 0;
        o.n_threads = 1;
        weft__trainer *one = tiny_trainer(m, &o), *three;
        o.n_threads = 3;
        three = tiny_trainer(m, &o);
        steps(one, 0, 3);
        steps(three, 0, 3);
        assert_same_params(one, three, "three threads");
        weft__trainer_destroy(&three);
        weft__trainer_destroy(&one);
    }
    tiny_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(optimizers), cmocka_unit_test(norm_caps),
                                       cmocka_unit_test(same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
