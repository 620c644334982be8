// SPDX-License-Identifier: Apache-2.0
/* train_gradient.c: gradients of whole models of every dense architecture against finite differences in double
 * (train_oracle.h): so every op's way back, on every path that leads through it; for all weights, for LoRA over
 * quantized bases, and for preferences. */
#include "train_model.h"
#include "train_oracle.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEFT_EMULATED)
enum { ELEMENTS = 0, N_FORMATS = 2 };
#else
enum { ELEMENTS = 2 /* of each parameter that are tried alone */, N_FORMATS = 8 };
#endif
enum { EVERY = CLAIMS_REPEATED(1, 1, 3) /* of the architectures */ };
/* Of a model's parameters every so many is tried, in turns from model to model: the oracle is slow, and in double on
 * every processor. */
enum { EVERY_PARAM = CLAIMS_REPEATED(1, 3, 3) };
static const double STEP = 1e-5;

static double plain_loss(oracle *o)
{
    return oracle_loss(o);
}

/* -log sigmoid(beta margin) of all pairs, the reference being the frozen base. */
static const double BETA = 0.3;
static double pair_loss(oracle *o)
{
    double margin[TINY_ROWS] = {0}, loss = 0;
    int32_t n_pairs = (o->b->segment[o->b->n_rows - 1] + 1) / 2;
    for (o->adapter_on = 0; o->adapter_on < 2; o->adapter_on++) {
        (void)oracle_loss(o);
        for (int64_t i = 0; i < o->n_wanted; i++) {
            int64_t r = o->wanted[i];
            double sign = (o->adapter_on ? 1 : -1) * (o->b->segment[r] % 2 ? -1 : 1);
            margin[o->b->segment[r] / 2] += sign * (double)o->b->weight[r] * o->logp[r];
        }
    }
    for (int32_t p = 0; p < n_pairs; p++) loss += log1p(exp(-BETA * margin[p]));
    o->adapter_on = 1;
    return loss;
}

/* (loss at p + h d - loss at p - h d) / 2h. */
static double slope(oracle *o, double (*loss)(oracle *), int32_t p, const double *d)
{
    double at[2];
    int64_t n = o->t->params[p].n;
    for (int side = 0; side < 2; side++) {
        double h = side ? -STEP : STEP;
        for (int64_t i = 0; i < n; i++) o->param[p][i] += h * d[i];
        at[side] = loss(o);
        for (int64_t i = 0; i < n; i++) o->param[p][i] -= h * d[i];
    }
    return (at[0] - at[1]) / (2 * STEP);
}

/* Parameters along a random direction, and a few of their elements alone. */
static void compare(const weft__trainer *t, oracle *o, double (*loss)(oracle *), weft__rng *rng)
{
    static int32_t turn;
    for (int32_t p = turn++ % EVERY_PARAM; p < t->n_params; p += EVERY_PARAM) {
        const struct weft__trainer_weight *param = &t->params[p];
        double *d = oracle_floats((size_t)param->n), norm = 0, largest = 0;
        for (int64_t i = 0; i < param->n; i++) {
            norm += (double)param->grad[i] * (double)param->grad[i];
            largest = fmax(largest, fabs((double)param->grad[i]));
        }
        norm = sqrt(norm);
        for (int e = -1; e < ELEMENTS; e++) {
            double along = 0;
            int64_t one = (int64_t)weft__rng_below(rng, (uint64_t)param->n);
            for (int64_t i = 0; i < param->n; i++) {
                d[i] = e >= 0                    ? i == one
                       : weft__rng_below(rng, 2) ? 1 / sqrt((double)param->n)
                                                 : -1 / sqrt((double)param->n);
                along += d[i] * (double)param->grad[i];
            }
            double want = slope(o, loss, p, d), bound = 2e-5 * (e >= 0 ? largest : norm) + 1e-7;
            if (!(fabs(along - want) <= bound))
                fail_msg("%s, %s, %s %lld: %.9g, finite differences give %.9g (gradient of length %.3g)", t->hp.arch,
                         param->name, e >= 0 ? "element" : "direction", (long long)one, along, want, norm);
        }
        weft__free(d);
    }
}

static void all_weights(void **state)
{
    (void)state;
    for (int i = 0; i < N_TINY_KINDS; i += EVERY) {
        tiny *m = tiny_new(&TINY_KINDS[i], WEFT_F32, 24, 40);
        weft__train_options o = tiny_options();
        weft__trainer *t = tiny_trainer(m, &o);
        tiny_batch b;
        oracle exact;
        weft__train_loss l;
        weft__rng rng;
        weft__rng_seed(&rng, 3);
        tiny_fill(&b, 5);
        oracle_init(&exact, t, &b.b);
        assert_int_equal(weft__trainer_add(t, &b.b, &l, NULL), WEFT_OK);
        double want = oracle_loss(&exact);
        if (!(fabs(l.loss - want) <= 1e-5 * want))
            fail_msg("%s: loss %.9g, in double %.9g", m->kind->arch, l.loss, want);
        compare(t, &exact, plain_loss, &rng);
        oracle_free(&exact);
        weft__trainer_destroy(&t);
        tiny_free(m);
    }
}

/* One model, LoRA on `targets`, by rows or by pairs. */
static void lora_case(const tiny_kind *kind, uint32_t dtype, int32_t width, int32_t ff, const char *targets, int pairs)
{
    tiny *m = tiny_new(kind, dtype, width, ff);
    weft__train_options o = tiny_options();
    o.lora_rank = 5;
    o.lora_alpha = 7;
    o.lora_targets = targets;
    weft__trainer *t = tiny_trainer(m, &o);
    tiny_batch b;
    oracle exact;
    weft__rng rng;
    weft__rng_seed(&rng, 4);
    tiny_draw(t, &rng);
    tiny_fill(&b, 6);
    oracle_init(&exact, t, &b.b);
    const weft__train_objective preference = {.kind = WEFT__LOSS_PREFERENCE, .beta = (float)BETA};
    weft__train_loss l;
    if (pairs) assert_int_equal(weft__trainer_learn(t, &preference, &b.b, &l, NULL), WEFT_OK);
    else assert_int_equal(weft__trainer_add(t, &b.b, &l, NULL), WEFT_OK);
    double want = pairs ? pair_loss(&exact) : oracle_loss(&exact), got = l.loss;
    if (!(fabs(got - want) <= 2e-5 * fabs(want)))
        fail_msg("%s over %s: loss %.9g, in double %.9g", kind->arch, weft_dtype_describe(dtype).name, got, want);
    compare(t, &exact, pairs ? pair_loss : plain_loss, &rng);
    oracle_free(&exact);
    weft__trainer_destroy(&t);
    tiny_free(m);
}

static void lora_of_architectures(void **state)
{
    (void)state;
    for (int i = 0; i < N_TINY_KINDS; i += EVERY) lora_case(&TINY_KINDS[i], WEFT_F32, 24, 40, NULL, 0);
    lora_case(&TINY_KINDS[0], WEFT_F32, 24, 40, "attn_q,attn_v,output", 0);
    lora_case(&TINY_KINDS[4], WEFT_F32, 24, 40, "attn_qkv ffn_down", 0);
}

/* Rows of a weight below 0 are unlearned: -log(1 - p); the mean divides by weights without signs. */
static void signed_rows(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    weft__train_options o = tiny_options();
    weft__trainer *t = tiny_trainer(m, &o);
    tiny_batch b;
    oracle exact;
    weft__train_loss l;
    weft__rng rng;
    double weight = 0;
    weft__rng_seed(&rng, 3);
    tiny_fill(&b, 5);
    for (int32_t r = 0; r < TINY_ROWS; r++) {
        if (r % 3 == 0) b.weight[r] = -b.weight[r];
        if (b.target[r] >= 0) weight += fabs((double)b.weight[r]);
    }
    oracle_init(&exact, t, &b.b);
    assert_int_equal(weft__trainer_add(t, &b.b, &l, NULL), WEFT_OK);
    double want = oracle_loss(&exact);
    if (!(fabs(l.loss - want) <= 1e-4 * weight)) fail_msg("loss %.9g, in double %.9g", l.loss, want);
    assert_true(l.weight == weight);
    compare(t, &exact, plain_loss, &rng);
    b.weight[0] = NAN;
    assert_int_equal(weft__trainer_add(t, &b.b, &l, NULL), WEFT_ARGUMENT);
    oracle_free(&exact);
    weft__trainer_destroy(&t);
    tiny_free(m);
}

static void lora_over_formats(void **state)
{
    static const uint32_t small[] = {WEFT_Q4_0, WEFT_F16,  WEFT_BF16, WEFT_Q4_1,
                                     WEFT_Q5_0, WEFT_Q5_1, WEFT_Q8_0, WEFT_IQ4_NL};
    (void)state;
    for (int i = 0; i < N_FORMATS; i++) lora_case(&TINY_KINDS[0], small[i], 32, 64, "attn_k,ffn_gate", 0);
}

static void preferences(void **state)
{
    (void)state;
    lora_case(&TINY_KINDS[0], WEFT_F32, 24, 40, NULL, 1);
    lora_case(&TINY_KINDS[5], WEFT_F32, 24, 40, "attn_q,ffn_up", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_weights),       cmocka_unit_test(lora_of_architectures), cmocka_unit_test(signed_rows),
        cmocka_unit_test(lora_over_formats), cmocka_unit_test(preferences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
