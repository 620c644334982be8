// SPDX-License-Identifier: Apache-2.0
/* train_losses.c: every loss of training: its slopes against finite differences of its value; the gradients of a whole
 * model that it gives against finite differences in double (train_oracle.h); the values that TRL gives
 * (train_losses.py); and that neither the loss nor the gradients show how a step was cut into batches. */
#include "train_model.h"
#include "train_losses_values.h"
#include "train_oracle.h"

/* ---- the functions alone ---- */

static const double H = 1e-6;

static void same(double got, double want, const char *what)
{
    if (!(fabs(got - want) <= 1e-6 * fmax(1, fabs(want)))) fail_msg("%s: %.10g, wanted %.10g", what, got, want);
}

static weft__loss_seen seen_at(double logp, double weight, double advantage, double old_logp, double base_logp)
{
    return (weft__loss_seen){logp, log(-expm1(logp)), weight, advantage, old_logp, base_logp};
}

/* d value / d (-log p), all else held. */
static void rows_against_differences(void **state)
{
    (void)state;
    static const double logps[] = {-1e-3, -0.2, -1.1, -3, -9}, weights[] = {1, 0.25, 0, -1, -2.5},
                        ratios[] = {-0.5, -0.1, 0.05, 0.4}, advantages[] = {-1.5, 0, 0.7};
    weft__train_objective o = {.kind = WEFT__LOSS_POLICY, .beta = 0.3f, .clip_low = 0.2f, .clip_high = 0.28f};
    for (size_t i = 0; i < 5; i++) {
        for (size_t w = 0; w < 5; w++) {
            const double x = logps[i], at = weights[w];
            const weft__loss_seen s = seen_at(x, at, 0, NAN, NAN), up = seen_at(x + H, at, 0, NAN, NAN),
                                  down = seen_at(x - H, at, 0, NAN, NAN);
            same(weft__loss_likelihood(&o, &s).slope,
                 (weft__loss_likelihood(&o, &down).value - weft__loss_likelihood(&o, &up).value) / (2 * H),
                 "likelihood");
        }
        for (size_t k = 0; k < 12; k++) {
            const double x = logps[i], old = x - ratios[k % 4], a = advantages[k / 4], base = x + 0.3;
            const weft__loss_seen s = seen_at(x, 0.5, a, old, base), up = seen_at(x + H, 0.5, a, old, base),
                                  down = seen_at(x - H, 0.5, a, old, base);
            same(weft__loss_policy(&o, &s).slope,
                 (weft__loss_policy(&o, &down).value - weft__loss_policy(&o, &up).value) / (2 * H), "policy");
        }
    }
}

static void pairs_against_differences(void **state)
{
    (void)state;
    static const weft__train_objective os[] = {{.kind = WEFT__LOSS_PREFERENCE, .beta = 0.1f},
                                               {.kind = WEFT__LOSS_PREFERENCE, .beta = 2, .smoothing = 0.1f},
                                               {.kind = WEFT__LOSS_PREFERENCE, .beta = 0.5f, .chosen = 0.7f}};
    for (size_t i = 0; i < 3; i++) {
        for (double gap = -60; gap <= 60; gap += 7.5) {
            const weft__loss_pair p = {-12 + gap, -15, -14, -13.5, 9};
            weft__loss_pair cu = p, cd = p, ru = p, rd = p;
            cu.chosen += H, cd.chosen -= H, ru.rejected += H, rd.rejected -= H;
            const weft__loss_pair_told told = weft__loss_preference(&os[i], &p);
            same(told.margin, gap + 2 + 1.5, "margin");
            same(told.slope_chosen,
                 (weft__loss_preference(&os[i], &cd).value - weft__loss_preference(&os[i], &cu).value) / (2 * H),
                 "chosen");
            same(told.slope_rejected,
                 (weft__loss_preference(&os[i], &rd).value - weft__loss_preference(&os[i], &ru).value) / (2 * H),
                 "rejected");
        }
    }
}

/* What is known of the losses without computing: where they begin, and which way they go. */
static void where_losses_begin(void **state)
{
    (void)state;
    const weft__train_objective o = {.kind = WEFT__LOSS_PREFERENCE, .beta = 0.4f};
    const weft__loss_pair p = {-3, -4, -3, -4, 2};
    const weft__loss_pair_told told = weft__loss_preference(&o, &p);
    same(told.slope_chosen, 0.2, "half of beta"); /* B = 0 */
    same(told.value, log(2), "log 2");
    const weft__train_objective policy = {.kind = WEFT__LOSS_POLICY, .clip_low = 0.2f, .clip_high = 0.28f};
    for (int sign = -1; sign <= 1; sign += 2) { /* on fresh samples: REINFORCE, so r and -r are mirrored */
        const weft__loss_seen s = seen_at(-1, 1, sign * 0.6, NAN, NAN);
        same(weft__loss_policy(&policy, &s).slope, sign * 0.6, "fresh");
    }
}

/* ---- against TRL ---- */

static void values_of_trl(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof TRL_PAIRS / sizeof *TRL_PAIRS; i++) {
        const trl_pair *x = &TRL_PAIRS[i];
        const weft__train_objective o = {.kind = WEFT__LOSS_PREFERENCE,
                                         .beta = (float)x->beta,
                                         .smoothing = (float)x->smoothing,
                                         .chosen = (float)x->chosen_weight};
        const weft__loss_pair p = {x->chosen, x->rejected, x->base_chosen, x->base_rejected, x->n_chosen};
        same(weft__loss_preference(&o, &p).value, x->loss, "DPO");
    }
    for (size_t i = 0; i < sizeof TRL_ROWS / sizeof *TRL_ROWS; i++) {
        const trl_row *x = &TRL_ROWS[i];
        const weft__train_objective o = {
            .kind = WEFT__LOSS_POLICY, .beta = (float)x->beta, .clip_low = (float)x->low, .clip_high = (float)x->high};
        const weft__loss_seen s = seen_at(x->logp, 1, x->advantage, x->old_logp, x->base_logp);
        same(weft__loss_policy(&o, &s).value, x->loss, "GRPO");
    }
    for (size_t i = 0; i < sizeof TRL_GROUPS / sizeof *TRL_GROUPS; i++) {
        const trl_group *x = &TRL_GROUPS[i];
        const double rewards[] = {x->r0, x->r1, x->r2, x->r3};
        const double want[2][4] = {{x->plain0, x->plain1, x->plain2, x->plain3},
                                   {x->scaled0, x->scaled1, x->scaled2, x->scaled3}};
        for (int scaled = 0; scaled < 2; scaled++) {
            double got[4];
            assert_int_equal(weft__loss_advantages(rewards, 4, scaled, got), x->plain0 != 0 || x->plain1 != 0);
            for (int k = 0; k < 4; k++) same(got[k], want[scaled][k], "advantage");
        }
    }
}

/* ---- whole models ---- */

typedef struct loss_case {
    const char *what;
    weft__train_objective o;
    int signs, tops, old, pairs; /* rows of negative weight; distributions; log p of when they were sampled */
} loss_case;

static const loss_case CASES[] = {
    {"unlikelihood", {.kind = WEFT__LOSS_LIKELIHOOD}, 1, 0, 0, 0},
    {"anchor", {.kind = WEFT__LOSS_LIKELIHOOD, .anchor = 0.7f}, 1, 0, 0, 0},
    {"distillation", {.kind = WEFT__LOSS_LIKELIHOOD}, 0, 1, 0, 0},
    {"anchor and distillation", {.kind = WEFT__LOSS_LIKELIHOOD, .anchor = 0.3f}, 1, 1, 0, 0},
    {"policy", {.kind = WEFT__LOSS_POLICY, .beta = 0.2f, .clip_low = 0.2f, .clip_high = 0.28f}, 0, 0, 1, 0},
    {"fresh policy", {.kind = WEFT__LOSS_POLICY, .clip_low = 0.2f, .clip_high = 0.28f}, 0, 0, 0, 0},
    {"smoothed preference", {.kind = WEFT__LOSS_PREFERENCE, .beta = 0.3f, .smoothing = 0.15f}, 0, 0, 0, 1},
    {"preference and likelihood",
     {.kind = WEFT__LOSS_PREFERENCE, .beta = 0.3f, .chosen = 0.6f, .anchor = 0.2f},
     0,
     0,
     0,
     1},
};
enum { N_CASES = sizeof CASES / sizeof *CASES, N_TOP = 3 };

typedef struct loss_batch {
    tiny_batch b;
    weft__train_top top[TINY_ROWS];
    int32_t top_token[TINY_ROWS][N_TOP];
    float top_p[TINY_ROWS][N_TOP], advantage[TINY_ROWS], old_logp[TINY_ROWS];
} loss_batch;

static void fill_case(loss_batch *b, const loss_case *c, uint64_t seed)
{
    weft__rng rng;
    weft__rng_seed(&rng, seed);
    tiny_fill(&b->b, seed);
    for (int32_t r = 0; r < TINY_ROWS; r++) {
        float sum = 0;
        if (c->signs && r % 3 == 0) b->b.weight[r] = -b->b.weight[r];
        for (int i = 0; i < N_TOP; i++) {
            b->top_token[r][i] = (r + 7 * i) % TINY_VOCAB;
            sum += b->top_p[r][i] = 0.1f + (float)weft__rng_double(&rng);
        }
        for (int i = 0; i < N_TOP; i++) b->top_p[r][i] /= sum;
        b->top[r] = (weft__train_top){b->top_token[r], b->top_p[r], r % 4 ? N_TOP : 0, r % 2 ? 0.5f : 1};
        b->advantage[r] = (float)weft__rng_normal(&rng);
        b->old_logp[r] = -3 - 2 * (float)weft__rng_double(&rng);
    }
    if (c->tops) b->b.b.top = b->top;
    b->b.b.advantage = b->advantage;
    if (c->old) b->b.b.old_logp = b->old_logp;
}

static const loss_case *of_case;
static double *slopes_fixed; /* of fresh policies, whose ratio is 1 where it is looked at: their log p there */

static double oracle_lse(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += exp(x[i]);
    return log(sum);
}

/* The loss of of_case in double, from the oracle's logits with and without the adapter. */
static double case_loss(oracle *o)
{
    const loss_case *c = of_case;
    const weft__train_batch *b = o->b;
    const int64_t width = weft__train_width(o->t, o->t->graph->outputs[0]);
    double *base = oracle_floats((size_t)(o->n_wanted * width) + 1), loss = 0;
    weft__loss_pair pair[TINY_ROWS] = {0};
    o->adapter_on = 0;
    (void)oracle_loss(o);
    memcpy(base, o->value[o->t->graph->outputs[0]], (size_t)(o->n_wanted * width) * sizeof *base);
    o->adapter_on = 1;
    (void)oracle_loss(o);
    for (int64_t i = 0; i < o->n_wanted; i++) {
        const int64_t r = o->wanted[i];
        const double *x = o->value[o->t->graph->outputs[0]] + i * width, *y = base + i * width;
        const double lx = oracle_lse(x, width), ly = oracle_lse(y, width), w = (double)b->weight[r];
        const double logp = x[b->target[r]] - lx, logb = y[b->target[r]] - ly;
        for (int64_t k = 0; c->o.anchor > 0 && k < width; k++)
            loss += (double)c->o.anchor * exp(y[k] - ly) * ((y[k] - ly) - (x[k] - lx));
        for (int32_t k = 0; b->top && k < b->top[r].n; k++)
            loss += (double)b->top[r].weight * (double)b->top[r].p[k] *
                    (log((double)b->top[r].p[k]) - (x[b->top[r].token[k]] - lx));
        if (c->o.kind == WEFT__LOSS_LIKELIHOOD) loss += w >= 0 ? -w * logp : w * log(1 - exp(logp));
        if (c->o.kind == WEFT__LOSS_POLICY) {
            const double old = b->old_logp ? (double)b->old_logp[r] : slopes_fixed ? slopes_fixed[i] : logp;
            const double ratio = exp(logp - old), a = (double)b->advantage[r], d = logb - logp;
            const double cut = fmin(fmax(ratio, 1 - (double)c->o.clip_low), 1 + (double)c->o.clip_high);
            loss += w * (-fmin(ratio * a, cut * a) + (double)c->o.beta * (exp(d) - d - 1));
        }
        weft__loss_pair *p = &pair[b->segment[r] / 2];
        *(b->segment[r] % 2 ? &p->rejected : &p->chosen) += w * (logp - logb);
        if (b->segment[r] % 2 == 0) p->base_chosen += w * logp, p->n_chosen += w;
    }
    for (int i = 0; c->pairs && i < 2; i++) {
        const double m = (double)c->o.beta * (pair[i].chosen - pair[i].rejected), s = (double)c->o.smoothing;
        loss += (1 - s) * log(1 + exp(-m)) + s * log(1 + exp(m));
        loss -= (double)c->o.chosen * pair[i].base_chosen / pair[i].n_chosen;
    }
    weft__free(base);
    return loss;
}

static weft__trainer *case_trainer(const tiny *m, int32_t head_rows)
{
    weft__train_options o = tiny_options();
    weft__rng rng;
    o.lora_rank = 5;
    o.lora_alpha = 7;
    o.head_rows = head_rows;
    weft__trainer *t = tiny_trainer(m, &o);
    weft__rng_seed(&rng, 4);
    tiny_draw(t, &rng);
    return t;
}

static double loss_at(oracle *o, const void *arg)
{
    (void)arg;
    return case_loss(o);
}

static void models_against_differences(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    for (int i = 0; i < N_CASES; i++) {
        loss_batch b;
        oracle exact;
        weft__train_loss l;
        weft__trainer *t = case_trainer(m, 0);
        of_case = &CASES[i];
        fill_case(&b, of_case, 6);
        oracle_init(&exact, t, &b.b.b);
        assert_int_equal(weft__trainer_learn(t, &of_case->o, &b.b.b, &l, NULL), WEFT_OK);
        const double want = case_loss(&exact);
        if (!(fabs(l.loss - want) <= 2e-5 * fmax(1, fabs(want))))
            fail_msg("%s: loss %.9g, in double %.9g", of_case->what, l.loss, want);
        double fixed[TINY_ROWS];
        for (int64_t k = 0; k < exact.n_wanted; k++) fixed[k] = exact.logp[exact.wanted[k]];
        slopes_fixed = fixed;
        /* The oracle has no threads: where they are looked for, all it takes is what was learned. */
        if (i % CLAIMS_REPEATED(1, 1, N_CASES) == 0 || claims_sweeps())
            oracle_differences(t, &exact, loss_at, NULL, of_case->what);
        slopes_fixed = NULL;
        weft__train_loss alone;
        assert_int_equal(weft__trainer_measure(t, &of_case->o, &b.b.b, &alone, NULL), WEFT_OK);
        assert_true(alone.loss == l.loss && alone.weight == l.weight && alone.anchor == l.anchor);
        oracle_free(&exact);
        weft__trainer_destroy(&t);
    }
    tiny_free(m);
}

/* ---- how a step is cut ---- */

/* Segments [first, last) of the batch as one of their own. */
static weft__train_batch part_of(const weft__train_batch *b, int32_t *segment, int32_t first, int32_t last)
{
    int32_t from = 0, n = 0;
    while (b->segment[from] < first) from++;
    for (; from + n < b->n_rows && b->segment[from + n] < last; n++) segment[n] = b->segment[from + n] - first;
    return (weft__train_batch){n,
                               b->token + from,
                               segment,
                               b->target + from,
                               b->weight + from,
                               b->top ? b->top + from : NULL,
                               b->advantage + from,
                               b->old_logp ? b->old_logp + from : NULL,
                               0,
                               NULL};
}

/* One batch, two of them, and one whose head passes in other chunks: the same loss and gradients but for rounding, and
 * the same divisor. */
static void cut_into_batches(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[3], WEFT_F32, 24, 40);
    for (int i = 0; i < N_CASES; i++) {
        loss_batch b;
        weft__train_loss whole, part[2] = {0}, chunked;
        weft__trainer *t[3];
        const weft__train_objective *o = &CASES[i].o;
        for (int k = 0; k < 3; k++) t[k] = case_trainer(m, k == 2 ? 7 : 0);
        fill_case(&b, &CASES[i], 8);
        assert_int_equal(weft__trainer_learn(t[0], o, &b.b.b, &whole, NULL), WEFT_OK);
        assert_int_equal(weft__trainer_learn(t[2], o, &b.b.b, &chunked, NULL), WEFT_OK);
        for (int k = 0; k < 2; k++) {
            int32_t segment[TINY_ROWS];
            const weft__train_batch half = part_of(&b.b.b, segment, 2 * k, 2 * k + 2);
            assert_int_equal(weft__trainer_learn(t[1], o, &half, &part[k], NULL), WEFT_OK);
        }
        same(part[0].loss + part[1].loss, whole.loss, CASES[i].what);
        same(chunked.loss, whole.loss, CASES[i].what);
        assert_true(part[0].weight + part[1].weight == whole.weight && chunked.weight == whole.weight);
        for (int32_t p = 0; p < t[0]->n_params; p++) {
            double off = 0, most = 0;
            for (int64_t j = 0; j < t[0]->params[p].n; j++) {
                const double g = (double)t[0]->params[p].grad[j];
                const double apart =
                    fmax(fabs(g - (double)t[1]->params[p].grad[j]), fabs(g - (double)t[2]->params[p].grad[j]));
                if (fabs(g) > most) most = fabs(g);
                if (!(apart <= off)) off = isfinite(apart) ? apart : INFINITY;
            }
            if (!(off <= 2e-5 * most + 1e-7))
                fail_msg("%s, %s: off by %g of %g", CASES[i].what, t[0]->params[p].name, off, most);
        }
        for (int k = 0; k < 3; k++) {
            weft__train_step step;
            static double norm;
            assert_int_equal(weft__trainer_step(t[k], &step, NULL), WEFT_OK);
            if (k) same(step.grad_norm, norm, "the norm of the gradients");
            else norm = step.grad_norm;
            weft__trainer_destroy(&t[k]);
        }
    }
    tiny_free(m);
}

/* ---- what is known ---- */

/* Where B is 0 the adapter is the base: KL and its gradient are 0, to the bit. */
static void anchored_at_the_base(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_Q8_0, 32, 64);
    weft__train_options options = tiny_options();
    options.lora_rank = 4;
    weft__trainer *t = tiny_trainer(m, &options);
    const weft__train_objective o = {.kind = WEFT__LOSS_LIKELIHOOD, .anchor = 1};
    tiny_batch b;
    weft__train_loss l;
    tiny_fill(&b, 3);
    for (int r = 0; r < TINY_ROWS; r++) b.weight[r] = 0;
    assert_int_equal(weft__trainer_learn(t, &o, &b.b, &l, NULL), WEFT_OK);
    assert_true(l.loss == 0 && l.anchor == 0 && l.weight == (double)l.n_targets); /* held rows count */
    for (int64_t i = 0; i < t->n_floats; i++) assert_true(t->grad[i] == 0);
    weft__trainer_destroy(&t);
    tiny_free(m);
}

/* Learned until it is certain, then unlearned: what is unlikely has next to no gradient left, and nothing overflows
 * where it is certain. */
static void unlearning(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    weft__train_options o = tiny_options();
    o.lr = 1e-2f;
    weft__trainer *t = tiny_trainer(m, &o);
    tiny_batch b;
    weft__train_loss l = {0}, last = {0};
    tiny_fill(&b, 3);
    for (int r = 0; r < TINY_ROWS; r++) b.weight[r] = 1;
    const int n_steps = CLAIMS_REPEATED(60, CLAIMS_SWEPT(6, 60), CLAIMS_SWEPT(6, 60)), in_full = n_steps == 60;
    for (int s = 0; s < n_steps; s++) {
        assert_int_equal(weft__trainer_add(t, &b.b, &l, NULL), WEFT_OK);
        assert_int_equal(weft__trainer_step(t, NULL, NULL), WEFT_OK);
    }
    if (in_full) assert_true(l.loss / l.weight < 0.01);
    for (int r = 0; r < TINY_ROWS; r++) b.weight[r] = -1;
    weft__train_step step;
    for (int s = 0; s < n_steps; s++) {
        assert_int_equal(weft__trainer_add(t, &b.b, s ? &last : &l, NULL), WEFT_OK);
        assert_int_equal(weft__trainer_step(t, &step, NULL), WEFT_OK);
    }
    if (in_full) assert_true(l.loss / l.weight > 4); /* -log(1 - 0.99) and more */
    if (in_full) assert_true(last.loss / last.weight < 0.1);
    assert_true(isfinite(step.grad_norm));
    weft__trainer_destroy(&t);
    tiny_free(m);
}

static void refused_objectives(void **state)
{
    (void)state;
    static const weft__train_objective bad[] = {{.kind = 9},
                                                {.kind = -1},
                                                {.kind = WEFT__LOSS_PREFERENCE},
                                                {.kind = WEFT__LOSS_PREFERENCE, .beta = NAN},
                                                {.kind = WEFT__LOSS_PREFERENCE, .beta = 1, .smoothing = 0.6f},
                                                {.kind = WEFT__LOSS_LIKELIHOOD, .anchor = -1},
                                                {.kind = WEFT__LOSS_POLICY}};
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    weft__trainer *t = case_trainer(m, 0);
    loss_batch b;
    fill_case(&b, &CASES[2], 1);
    b.b.b.advantage = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(weft__trainer_learn(t, &bad[i], &b.b.b, NULL, NULL), WEFT_ARGUMENT);
    b.top_p[0][0] = b.top_p[1][0] = 3; /* rows 0 and 1: no distribution */
    assert_int_equal(weft__trainer_add(t, &b.b.b, NULL, NULL), WEFT_ARGUMENT);
    fill_case(&b, &CASES[4], 1);
    b.b.weight[3] = -1;
    assert_int_equal(weft__trainer_learn(t, &CASES[4].o, &b.b.b, NULL, NULL), WEFT_ARGUMENT);
    weft__trainer_destroy(&t);
    tiny_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_against_differences),   cmocka_unit_test(pairs_against_differences),
        cmocka_unit_test(where_losses_begin),         cmocka_unit_test(values_of_trl),
        cmocka_unit_test(models_against_differences), cmocka_unit_test(cut_into_batches),
        cmocka_unit_test(anchored_at_the_base),       cmocka_unit_test(unlearning),
        cmocka_unit_test(refused_objectives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
