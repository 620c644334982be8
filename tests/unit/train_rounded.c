// SPDX-License-Identifier: Apache-2.0
/* train_rounded.c: gradients of adapters when products with the frozen model are rounded (train.h, exact): near those
 * that are not, of every dense architecture and format; the same bits on any number of threads; and the same whether a
 * batch comes whole or in parts. */
#include "train_model.h"

#include <math.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEFT_EMULATED)
enum { EVERY = 3, ROWS = 24 };
#else
enum { EVERY = 1, ROWS = TINY_ROWS };
#endif

/* What of a model is compared: loss, and gradients one after another. */
typedef struct outcome {
    double loss;
    float *gradient;
    size_t n;
} outcome;

static weft__trainer *trainer_of(const tiny *m, int exact, int32_t n_threads)
{
    weft__train_options o = tiny_options();
    weft__rng rng;
    o.lora_rank = 5;
    o.lora_alpha = 7;
    o.n_threads = n_threads;
    o.exact = exact;
    weft__trainer *t = tiny_trainer(m, &o);
    weft__rng_seed(&rng, 4);
    tiny_draw(t, &rng);
    return t;
}

/* The batch in `parts` calls, cut behind whole segments. */
static outcome run(const tiny *m, int exact, int32_t n_threads, int parts)
{
    static const int32_t cuts[] = {0, 14, TINY_ROWS}; /* tiny_fill's segments */
    weft__trainer *t = trainer_of(m, exact, n_threads);
    outcome out = {0};
    tiny_batch b;
    tiny_fill(&b, 5);
    for (int i = 0; i < parts; i++) {
        const int32_t from = parts > 1 ? cuts[i] : 0, to = parts > 1 ? cuts[i + 1] : TINY_ROWS, first = b.segment[from];
        for (int32_t r = from; r < to; r++) b.segment[r] -= first;
        const weft__train_batch part = {to - from, b.token + from, b.segment + from, b.target + from, b.weight + from};
        weft__train_loss l;
        assert_int_equal(weft__trainer_add(t, &part, &l, NULL), WEFT_OK);
        out.loss += l.loss;
    }
    for (size_t i = 0; i < weft__trainer_n_params(t); i++) {
        const weft__train_param p = weft__trainer_param(t, i);
        out.n += (size_t)(p.d[0] * p.d[1]);
    }
    out.gradient = weft__alloc_array(out.n, sizeof *out.gradient);
    assert_non_null(out.gradient);
    size_t at = 0;
    for (size_t i = 0; i < weft__trainer_n_params(t); i++) {
        const weft__train_param p = weft__trainer_param(t, i);
        memcpy(out.gradient + at, p.gradient, (size_t)(p.d[0] * p.d[1]) * sizeof *out.gradient);
        at += (size_t)(p.d[0] * p.d[1]);
    }
    weft__trainer_destroy(&t);
    return out;
}

/* Sum of squared differences, as a share of `b`'s squares. */
static double apart(const outcome *a, const outcome *b)
{
    double error = 0, size = 0;
    for (size_t i = 0; i < a->n; i++) {
        const double d = (double)a->gradient[i] - (double)b->gradient[i];
        error += d * d;
        size += (double)b->gradient[i] * (double)b->gradient[i];
    }
    return error / size;
}

/* BF16 has 8 bits of a number, activations that are served have 8 of the largest of 32: in three layers of random
 * weights, more than gradients of a trained model are apart. */
static void rounded_case(const tiny_kind *kind, uint32_t dtype, int32_t width, int32_t ff)
{
    const double bound = weft_dtype_describe(dtype).block_elems > 1 ? 1e-2 : 2e-3;
    tiny *m = tiny_new(kind, dtype, width, ff);
    outcome exact = run(m, 1, 2, 1), rounded = run(m, 0, 2, 1), alone = run(m, 0, 1, 1), parts = run(m, 0, 3, 2);
    const char *format = weft_dtype_describe(dtype).name;
    const double error = apart(&rounded, &exact), of_parts = apart(&parts, &rounded);
    if (!(error <= bound)) fail_msg("%s over %s: gradients are apart by %g", kind->arch, format, error);
    if (!(fabs(rounded.loss - exact.loss) <= 1e-2 * exact.loss))
        fail_msg("%s over %s: loss %.9g, exact %.9g", kind->arch, format, rounded.loss, exact.loss);
    assert_true(rounded.loss == alone.loss);
    assert_memory_equal(rounded.gradient, alone.gradient, rounded.n * sizeof *rounded.gradient);
    if (!(of_parts <= 1e-9)) fail_msg("%s over %s: in parts, gradients are apart by %g", kind->arch, format, of_parts);
    assert_true(fabs(parts.loss - rounded.loss) <= 1e-5 * rounded.loss);
    weft__free(parts.gradient);
    weft__free(alone.gradient);
    weft__free(rounded.gradient);
    weft__free(exact.gradient);
    tiny_free(m);
}

static void architectures(void **state)
{
    (void)state;
    for (int i = 0; i < N_TINY_KINDS; i += EVERY) rounded_case(&TINY_KINDS[i], WEFT_F32, 24, 40);
    for (int i = 0; i < N_TINY_KINDS; i += EVERY) rounded_case(&TINY_KINDS[i], WEFT_Q8_0, 64, 96);
}

static void formats(void **state)
{
    static const uint32_t all[] = {WEFT_F16,  WEFT_BF16, WEFT_Q4_0, WEFT_Q4_1, WEFT_Q5_0, WEFT_Q5_1,   WEFT_Q8_0,
                                   WEFT_Q2_K, WEFT_Q3_K, WEFT_Q4_K, WEFT_Q5_K, WEFT_Q6_K, WEFT_IQ4_NL, WEFT_IQ4_XS};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i += EVERY) {
        const int large = weft_dtype_describe(all[i]).block_elems > 32;
        rounded_case(&TINY_KINDS[0], all[i], large ? 256 : 64, large ? 256 : 96);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(architectures), cmocka_unit_test(formats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
