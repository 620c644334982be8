// SPDX-License-Identifier: Apache-2.0
/* train_fisher.c: what holds an adapter to where it began (weft__trainer_show): that what is shown is measured as the
 * squared gradients and inputs of tokens that the model draws, and that the force is the penalty's gradient, both made
 * again from gradients of A and B, and from B A whole. */
#include "train_steps.h"

#include "train/parts.h"

/* Adapters that change something before the first step. */
static void begin_somewhere(weft__trainer *t)
{
    weft__rng rng;
    weft__rng_seed(&rng, 11);
    for (size_t i = 0; i < weft__trainer_n_params(t); i++) {
        const weft__train_param p = weft__trainer_param(t, i);
        const size_t n = (size_t)(p.d[0] * p.d[1]);
        float *x = weft__alloc_array(n, sizeof *x);
        assert_non_null(x);
        for (size_t k = 0; k < n; k++) x[k] = (float)(0.2 * weft__rng_normal(&rng));
        weft__trainer_set_param(t, i, x);
        weft__free(x);
    }
}

static int near(double x, double y, double size)
{
    return fabs(x - y) <= 1e-4 * size;
}

static double most(const double *x, int64_t n)
{
    double m = 0;
    for (int64_t i = 0; i < n; i++) m = fmax(m, fabs(x[i]));
    return m;
}

/* Of one row B's gradient is g (scale A x)^T, and A's (scale B^T g) x^T. Are the squares of that g and x what was shown
 * of every pair? */
static int are_squares(const weft__trainer *t, const weft__trainer *shown)
{
    const int64_t r = t->o.lora_rank;
    int same = 1;
    for (int32_t i = 0; same && i < t->n_pairs; i++) {
        const struct weft__trainer_weight *a = &t->params[t->pairs[i].a], *b = &t->params[t->pairs[i].b];
        const double *out = shown->fisher->out + shown->fisher->at[i][0],
                     *in = shown->fisher->in + shown->fisher->at[i][1];
        const int64_t k = a->d[0], n = b->d[1];
        double ax = 0, size = 0;
        int64_t big = 0;
        for (int64_t c = 0; c < k; c++) { /* x up to its sign, by that of A's gradient */
            ax += (double)a->data[c] * sqrt(in[c]) * (a->grad[c] < 0 ? -1 : 1);
            if (in[c] > in[big]) big = c;
        }
        ax *= (double)t->lora_scale;
        for (int64_t c = 0; c < n; c++) size = fmax(size, fabs((double)b->grad[c * r]));
        for (int64_t c = 0; same && c < n; c++)
            same = near(sqrt(out[c]) * fabs(ax), fabs((double)b->grad[c * r]), size);
        const double of_big = fabs((double)a->grad[big]);
        for (int64_t c = 0; same && c < k; c++)
            same = near(sqrt(in[c]) * of_big, fabs((double)a->grad[c]) * sqrt(in[big]), sqrt(most(in, k)) * of_big);
    }
    return same;
}

static void what_is_shown_is_measured(void **state)
{
    static const int32_t token[] = {3}, segment[] = {0}, target[] = {0};
    (void)state;
    /* threads and memory are alike in all */
    const int step = CLAIMS_REPEATED(1, CLAIMS_SWEPT(3, 1), CLAIMS_SWEPT(N_TINY_KINDS, 1));
    for (int kind = 0; kind < N_TINY_KINDS; kind += step) {
        tiny *m = tiny_new(&TINY_KINDS[kind], WEFT_F32, 32, 64);
        weft__train_options o = lora_options();
        weft__train_batch b = {.n_rows = 1, .token = token, .segment = segment, .target = target};
        int n_same = 0;
        weft__trainer *t = tiny_trainer(m, &o);
        begin_somewhere(t);
        assert_int_equal(weft__trainer_show(t, &b, NULL), WEFT_OK);
        assert_true(t->fisher->n_targets == 1);
        for (int32_t v = 0; v < TINY_VOCAB; v++) { /* whichever token it drew */
            weft__trainer *u = tiny_trainer(m, &o);
            begin_somewhere(u);
            b.target = &v;
            assert_int_equal(weft__trainer_add(u, &b, NULL, NULL), WEFT_OK);
            n_same += are_squares(u, t);
            weft__trainer_destroy(&u);
        }
        if (n_same != 1) fail_msg("%s %d: %d tokens give what was shown", TINY_KINDS[kind].arch, kind, n_same);
        weft__trainer_destroy(&t);
        tiny_free(m);
    }
}

/* Its tokens are drawn by what the model gives them: shown often, likely ones come more often than one alone. */
static void tokens_are_drawn(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 32, 64);
    weft__train_options o = lora_options();
    weft__trainer *t = tiny_trainer(m, &o), *other = tiny_trainer(m, &o);
    tiny_batch b, c;
    tiny_fill(&b, 5);
    tiny_fill(&c, 5);
    int32_t target[sizeof c.target / sizeof *c.target];
    for (int32_t r = 0; r < c.b.n_rows; r++) target[r] = c.b.target[r] < 0 ? -1 : (c.b.target[r] + 1) % TINY_VOCAB;
    c.b.target = target; /* other tokens behind the same rows */
    assert_int_equal(weft__trainer_show(t, &b.b, NULL), WEFT_OK);
    assert_int_equal(weft__trainer_show(other, &c.b, NULL), WEFT_OK);
    const struct weft__train_fisher *f = t->fisher, *g = other->fisher;
    assert_true(f->n_targets > 1 && f->n_targets == g->n_targets);
    assert_memory_equal(f->out, g->out, sizeof *f->out);
    const double first = f->out[0];
    assert_int_equal(weft__trainer_show(t, &b.b, NULL), WEFT_OK);
    assert_true(f->n_targets == 2 * g->n_targets && f->out[0] > first);
    assert_true(f->out[0] != 2 * first); /* others are drawn the second time */
    weft__trainer_destroy(&other);
    weft__trainer_destroy(&t);
    tiny_free(m);
}

/* The penalty's gradient in double, from the change whole: into b_force [n, r] and a_force [r, k]. */
static void force_of(const weft__trainer *t, int32_t i, double n_rows, double *a_force, double *b_force)
{
    const struct weft__trainer_weight *a = &t->params[t->pairs[i].a], *b = &t->params[t->pairs[i].b];
    const float *a0 = t->start + (a->data - t->data), *b0 = t->start + (b->data - t->data);
    const double *out = t->fisher->out + t->fisher->at[i][0], *in = t->fisher->in + t->fisher->at[i][1];
    const double scale = (double)t->lora_scale, n_targets = t->fisher->n_targets;
    const int64_t r = t->o.lora_rank, k = a->d[0], n = b->d[1];
    memset(a_force, 0, (size_t)(r * k) * sizeof *a_force);
    memset(b_force, 0, (size_t)(n * r) * sizeof *b_force);
    for (int64_t y = 0; y < n; y++)
        for (int64_t x = 0; x < k; x++) {
            double change = 0;
            for (int64_t j = 0; j < r; j++)
                change += (double)b->data[y * r + j] * (double)a->data[j * k + x] -
                          (double)b0[y * r + j] * (double)a0[j * k + x];
            const double slope = (double)t->o.ewc * out[y] / n_targets * in[x] / n_rows * scale * change;
            for (int64_t j = 0; j < r; j++) {
                b_force[y * r + j] += slope * scale * (double)a->data[j * k + x];
                a_force[j * k + x] += slope * scale * (double)b->data[y * r + j];
            }
        }
}

static void plain_steps(weft__trainer *t)
{
    tiny_batch b;
    tiny_fill(&b, 9);
    assert_int_equal(weft__trainer_add(t, &b.b, NULL, NULL), WEFT_OK);
    assert_int_equal(weft__trainer_step(t, NULL, NULL), WEFT_OK);
}

/* Of two trainers that have moved alike, the one that is held stays behind by the penalty's gradient. */
static void it_is_held_by_the_gradient_of_the_penalty(void **state)
{
    (void)state;
    for (int kind = 0; kind < N_TINY_KINDS; kind += 4) { /* one whose matrices are apart, and one whose are not */
        tiny *m = tiny_new(&TINY_KINDS[kind], WEFT_F32, 32, 64);
        weft__train_options o = lora_options();
        o.optimizer = WEFT__TRAIN_SGD;
        o.momentum = o.weight_decay = o.clip_norm = 0;
        o.lr = 0.05f;
        weft__trainer *loose = tiny_trainer(m, &o);
        o.ewc = 50;
        weft__trainer *held = tiny_trainer(m, &o);
        tiny_batch b;
        tiny_fill(&b, 5);
        begin_somewhere(loose);
        begin_somewhere(held);
        assert_int_equal(weft__trainer_show(loose, &b.b, NULL), WEFT_OK);
        assert_int_equal(weft__trainer_show(held, &b.b, NULL), WEFT_OK);
        plain_steps(loose);
        plain_steps(held);
        assert_same_params(loose, held, "where it began nothing holds it");
        double *a_force[64], *b_force[64];
        assert_true(held->n_pairs <= 64);
        for (int32_t i = 0; i < held->n_pairs; i++) {
            a_force[i] = weft__alloc_array((size_t)held->params[held->pairs[i].a].n, sizeof **a_force);
            b_force[i] = weft__alloc_array((size_t)held->params[held->pairs[i].b].n, sizeof **b_force);
            assert_true(a_force[i] && b_force[i]);
            force_of(held, i, b.b.n_rows, a_force[i], b_force[i]);
        }
        plain_steps(loose);
        plain_steps(held);
        for (int32_t i = 0; i < held->n_pairs; i++) {
            for (int of_b = 0; of_b < 2; of_b++) {
                const int32_t at = of_b ? held->pairs[i].b : held->pairs[i].a;
                const struct weft__trainer_weight *p = &held->params[at], *q = &loose->params[at];
                const double *force = of_b ? b_force[i] : a_force[i], size = most(force, p->n);
                assert_true(size > 0);
                for (int64_t k = 0; k < p->n; k++) {
                    const double moved = ((double)q->data[k] - (double)p->data[k]) / (double)o.lr;
                    if (!(fabs(moved - force[k]) <= 1e-3 * size + 1e-5))
                        fail_msg("%s, element %lld: %g, the penalty's gradient is %g", p->name, (long long)k, moved,
                                 force[k]);
                }
            }
            weft__free(a_force[i]);
            weft__free(b_force[i]);
        }
        weft__trainer_destroy(&held);
        weft__trainer_destroy(&loose);
        tiny_free(m);
    }
}

static void threads_do_not_show_and_it_is_shown_before(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[4], WEFT_F32, 32, 64);
    weft__train_options o = lora_options();
    tiny_batch b;
    tiny_fill(&b, 5);
    o.ewc = 10;
    o.n_threads = 1;
    weft__trainer *one = tiny_trainer(m, &o), *three;
    o.n_threads = 3;
    three = tiny_trainer(m, &o);
    begin_somewhere(one);
    begin_somewhere(three);
    assert_int_equal(weft__trainer_show(one, &b.b, NULL), WEFT_OK);
    assert_int_equal(weft__trainer_show(three, &b.b, NULL), WEFT_OK);
    steps(one, 0, 3);
    steps(three, 0, 3);
    assert_same_params(one, three, "three threads");
    assert_int_equal(weft__trainer_show(one, &b.b, NULL), WEFT_STATE);
    weft__trainer_destroy(&three);
    weft__trainer_destroy(&one);
    o = tiny_options();
    one = tiny_trainer(m, &o);
    assert_int_equal(weft__trainer_show(one, &b.b, NULL), WEFT_STATE); /* all weights learn */
    weft__trainer_destroy(&one);
    tiny_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_shown_is_measured),
        cmocka_unit_test(tokens_are_drawn),
        cmocka_unit_test(it_is_held_by_the_gradient_of_the_penalty),
        cmocka_unit_test(threads_do_not_show_and_it_is_shown_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
