// SPDX-License-Identifier: Apache-2.0
/* train_tail.c: one step of the last layer's ffn_down from what a pass kept (train/tail.h): its gradient against finite
 * differences in double, the low rank against the best there is, how far it goes, the same bits on any number of
 * threads, and that every key and value stays as it was. */
#include "train_model.h"
#include "train_oracle.h"
#include "waist.h"

#include "train/tail.h"

enum { RANK = 2, LAST = TINY_LAYERS - 1 };

static weft__train_options tail_options(void)
{
    weft__train_options o = tiny_options();
    static char last[32];
    weft__train_tail_target(TINY_LAYERS, last);
    o.lora_rank = RANK;
    o.lora_alpha = 3;
    o.lora_targets = last;
    return o;
}

typedef struct tail_case {
    tiny *m;
    weft__trainer *t;
    tiny_batch b;
    float weight[TINY_ROWS];
    weft__train_tail s;
} tail_case;

/* A batch of which the first n targets are learned, with weights of two sizes. */
static void case_open(tail_case *c, const tiny_kind *kind, const weft__train_options *o, int n)
{
    *c = (tail_case){.m = tiny_new(kind, WEFT_F32, 24, 40)};
    c->t = tiny_trainer(c->m, o);
    tiny_fill(&c->b, 5);
    for (int32_t r = 0, k = 0; r < TINY_ROWS; r++) {
        c->weight[r] = k % 2 ? 0.2f : 1;
        if (c->b.target[r] >= 0 && k++ >= n) c->b.target[r] = -1;
    }
    c->b.b.weight = c->weight;
    weft_error err = {0};
    if (weft__train_tail_keep(c->t, &c->b.b, &c->s, &err)) fail_msg("%s: %s", kind->arch, err.message);
    assert_int_equal(c->s.n, n);
}

static void case_close(tail_case *c)
{
    weft__train_tail_free(&c->s);
    weft__trainer_destroy(&c->t);
    tiny_free(c->m);
}

static weft__train_tail_step moved(tail_case *c, float hold_at)
{
    const weft__train_tail_options o = {.rank = RANK, .hold_at = hold_at};
    weft__train_tail_step step;
    weft_error err = {0};
    if (weft__train_tail_move(c->t, &c->s, &o, &step, &err)) fail_msg("%s", err.message);
    return step;
}

static double loss_at_scale(tail_case *c, float share)
{
    weft__train_loss l;
    weft__trainer_set_scale(c->t, share);
    assert_int_equal(weft__trainer_loss(c->t, &c->b.b, 1, NULL, &l, NULL), WEFT_OK);
    weft__trainer_set_scale(c->t, 1);
    return l.loss;
}

/* ---- the gradient ---- */

/* Along a random direction of B, with A as it was drawn: what g and x say, and (loss(+h) - loss(-h)) / 2h. */
static void compare_gradient(tail_case *c, const float *g)
{
    const struct weft__trainer_weight *a = &c->t->params[0], *b = &c->t->params[1];
    const double step = 1e-5;
    double along = 0, norm = 0, at[2];
    oracle exact;
    weft__rng rng;
    weft__rng_seed(&rng, 9);
    oracle_init(&exact, c->t, &c->b.b);
    double *d = oracle_floats((size_t)b->n);
    for (int64_t i = 0; i < b->n; i++) d[i] = (weft__rng_below(&rng, 2) ? 1 : -1) / sqrt((double)b->n);
    for (int64_t i = 0; i < c->s.d; i++) {
        for (int r = 0; r < RANK; r++) {
            double sum = 0;
            for (int32_t t = 0; t < c->s.n; t++) {
                double ax = 0;
                for (int64_t k = 0; k < c->s.k; k++)
                    ax += (double)a->data[r * c->s.k + k] * (double)c->s.x[t * c->s.k + k];
                sum += (double)c->t->lora_scale * ax * (double)g[t * c->s.d + i];
            }
            along += sum * d[i * RANK + r];
            norm += sum * sum;
        }
    }
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < b->n; i++) exact.param[1][i] = (side ? -step : step) * d[i];
        at[side] = oracle_loss(&exact);
    }
    const double want = (at[0] - at[1]) / (2 * step);
    if (!(norm > 1e-4 && fabs(along - want) <= 3e-5 * sqrt(norm) + 1e-7))
        fail_msg("%s: %.9g, finite differences give %.9g (length %.3g)", c->m->kind->arch, along, want, sqrt(norm));
    weft__free(d);
    oracle_free(&exact);
}

static void the_gradient_is_that_of_finite_differences(void **state)
{
    (void)state;
    const weft__train_options o = tail_options();
    for (int i = 0; i < N_TINY_KINDS; i++) {
        tail_case c;
        double loss;
        if (TINY_KINDS[i].post_norms) continue;
        case_open(&c, &TINY_KINDS[i], &o, 7);
        float *g = weft__alloc_array((size_t)(c.s.n * c.s.d), sizeof *g);
        assert_int_equal(weft__train_tail_gradient(c.t, &c.s, g, &loss, NULL), WEFT_OK);
        assert_true(fabs(loss - loss_at_scale(&c, 1)) <= 1e-5 * loss);
        compare_gradient(&c, g);
        weft__free(g);
        case_close(&c);
    }
}

/* ---- the low rank ---- */

enum { N = 6, D = 11, K = 17 };

/* The largest singular value of m [D, K]. */
static double largest(const double *m)
{
    double v[K], u[D], size = 0;
    for (int k = 0; k < K; k++) v[k] = 1 + 0.1 * k;
    for (int round = 0; round < 200; round++) {
        for (int d = 0; d < D; d++) {
            u[d] = 0;
            for (int k = 0; k < K; k++) u[d] += m[d * K + k] * v[k];
        }
        size = 0;
        for (int k = 0; k < K; k++) {
            v[k] = 0;
            for (int d = 0; d < D; d++) v[k] += m[d * K + k] * u[d];
            size += v[k] * v[k];
        }
        size = sqrt(size);
        for (int k = 0; k < K; k++) v[k] /= size > 0 ? size : 1;
    }
    return sqrt(size);
}

/* What is left over of the sum has no singular value above the least of those that are kept (Eckart and Young 1936);
 * with no more rows than the rank nothing is left over. */
static void no_low_rank_is_nearer(void **state)
{
    (void)state;
    float g[N * D], x[N * K], b[D * RANK], a[RANK * K];
    double left[D * K];
    weft__rng rng;
    weft__rng_seed(&rng, 21);
    for (int i = 0; i < N * D; i++) g[i] = (float)weft__rng_normal(&rng);
    for (int i = 0; i < N * K; i++) x[i] = (float)weft__rng_normal(&rng);
    for (int n = 1; n <= N; n++) {
        double aa[3] = {0};
        assert_true(weft__train_low_rank(g, x, n, D, K, RANK, b, a));
        for (int i = 0; i < D * K; i++) {
            left[i] = 0;
            for (int t = 0; t < n; t++) left[i] += (double)g[t * D + i / K] * (double)x[t * K + i % K];
            for (int r = 0; r < RANK; r++) left[i] -= (double)b[i / K * RANK + r] * (double)a[r * K + i % K];
        }
        for (int k = 0; k < K; k++) {
            aa[0] += (double)a[k] * (double)a[k];
            aa[1] += (double)a[k] * (double)a[K + k];
            aa[2] += (double)a[K + k] * (double)a[K + k];
        }
        const double half = (aa[0] + aa[2]) / 2, apart = hypot((aa[0] - aa[2]) / 2, aa[1]),
                     kept = sqrt(fmax(half - apart, 0)), rest = largest(left);
        if (n <= RANK ? !(rest < 1e-5) : !(rest > 0.1 && rest <= kept * 1.001))
            fail_msg("%d rows: %g is left over, %g is the least that is kept", n, rest, kept);
    }
}

/* ---- how far ---- */

static void the_least_loss_along_the_line_is_found(void **state)
{
    (void)state;
    const weft__train_options o = tail_options();
    tail_case c;
    case_open(&c, &TINY_KINDS[0], &o, 7);
    const weft__train_tail_step step = moved(&c, 0);
    const double here = loss_at_scale(&c, 1);
    assert_true(step.length > 0 && !step.holds && step.after < 0.9 * step.before);
    if (!(fabs(here - step.after) <= 1e-4 * here && fabs(loss_at_scale(&c, 0) - step.before) <= 1e-4 * step.before))
        fail_msg("%g after it, %g by a whole pass", step.after, here);
    if (!(loss_at_scale(&c, 0.9f) > here && loss_at_scale(&c, 1.1f) > here)) fail_msg("%g is not the least", here);
    assert_true(loss_at_scale(&c, -0.02f) > step.before); /* the opposite makes the targets less likely */
    assert_true(loss_at_scale(&c, 0.02f) < step.before);
    case_close(&c);
}

/* Does every target come out at this share of the step? */
static int holds(tail_case *c, float share, float at)
{
    int32_t likeliest[TINY_ROWS];
    float logp[TINY_ROWS];
    (void)loss_at_scale(c, share);
    weft__trainer_likeliest(c->t, likeliest);
    weft__trainer_logp(c->t, logp);
    for (int r = 0; r < TINY_ROWS; r++)
        if (c->b.target[r] >= 0 && (likeliest[r] != c->b.target[r] || logp[r] < at)) return 0;
    return 1;
}

static void it_goes_no_further_than_targets_need(void **state)
{
    (void)state;
    const weft__train_options o = tail_options();
    tail_case c;
    case_open(&c, &TINY_KINDS[0], &o, 2);
    const weft__train_tail_step step = moved(&c, -1.2f);
    if (!step.holds) fail_msg("the targets do not hold, loss %g", step.after);
    assert_true(holds(&c, 1.001f, -1.2f));
    assert_false(holds(&c, 0.96f, -1.2f));
    case_close(&c);
}

static void the_norm_stays_within_its_cap(void **state)
{
    (void)state;
    weft__train_options o = tail_options();
    tail_case c;
    o.norm_cap = 1e-3f;
    case_open(&c, &TINY_KINDS[0], &o, 7);
    const weft__train_tail_step step = moved(&c, 0);
    const double norm = weft__trainer_norm(c.t);
    if (!(step.after < step.before && fabs(norm - 1e-3) < 1e-6)) fail_msg("norm %g", norm);
    case_close(&c);
}

static void the_number_of_threads_does_not_show(void **state)
{
    (void)state;
    tail_case c[2];
    for (int i = 0; i < 2; i++) {
        weft__train_options o = tail_options();
        o.n_threads = i ? 3 : 1;
        case_open(&c[i], &TINY_KINDS[1], &o, 9);
        (void)moved(&c[i], -1.2f);
    }
    for (size_t i = 0; i < weft__trainer_n_params(c[0].t); i++) {
        const weft__train_param p = weft__trainer_param(c[0].t, i), q = weft__trainer_param(c[1].t, i);
        assert_memory_equal(p.data, q.data, (size_t)(p.d[0] * p.d[1]) * sizeof *p.data);
    }
    case_close(&c[1]);
    case_close(&c[0]);
}

/* ---- keys and values ---- */

enum { N_PROMPT = 11, N_ALL = 14 };

/* The next n tokens of sequences 0 and 1, the same of both, into logits [2, N_ALL, V]. */
static void read_step(store *at, int32_t from, int32_t n, float *logits)
{
    float *y = weft__alloc_array((size_t)(2 * n * TINY_VOCAB), sizeof *y);
    float *hidden = weft__alloc_array((size_t)(2 * n * 24), sizeof *hidden);
    for (int32_t i = 0; i < 2 * n; i++) {
        at->token[i] = token_at(0, from + i % n, TINY_VOCAB);
        at->pos[i] = from + i % n;
        at->seq[i] = i / n;
        at->adapter[i] = at->adapter_of[i / n];
        at->want[i] = WEFT_WANT_LOGITS;
    }
    store_run(at, 2 * n, 2 * n, (float *const[]){y, hidden});
    for (int32_t i = 0; i < 2; i++)
        memcpy(logits + (i * N_ALL + from) * TINY_VOCAB, y + i * n * TINY_VOCAB, (size_t)(n * TINY_VOCAB) * sizeof *y);
    weft__free(hidden);
    weft__free(y);
}

/* Sequence 0 reads its prompt by the base and the rest with the step, sequence 1 all of it with the step. */
static void read_both(store *at, float *logits)
{
    at->adapter_of[0] = -1;
    at->adapter_of[1] = 0;
    read_step(at, 0, N_PROMPT, logits);
    at->adapter_of[0] = 0;
    for (int i = N_PROMPT; i < N_ALL; i++) read_step(at, i, 1, logits);
}

static void keys_and_values_of_the_base_stay_valid(void **state)
{
    (void)state;
    const weft__train_options o = tail_options();
    tail_case c;
    store at;
    float logits[2 * N_ALL * TINY_VOCAB];
    case_open(&c, &TINY_KINDS[1], &o, 7);
    assert_true(moved(&c, 0).length > 0);
    const weft_graph *g = c.t->graph;
    weft_lora *lora = weft__alloc_zero((size_t)g->n_weights, sizeof *lora);
    lora[c.t->ops[c.t->n_body - 2].node->w[0]] = (weft_lora){
        .a = c.t->params[0].data, .b = c.t->params[1].data, .rank = RANK, .dtype = WEFT_F32, .scale = c.t->lora_scale};
    store_open(&at, g, "cpu", "threads=2", 1, WEFT_F32, N_ALL, 2 * N_ALL);
    store_adapter(&at, lora, WEFT_F32);
    read_both(&at, logits);
    for (int32_t k = 0; k < g->n_kv_groups; k++)
        for (int32_t p = 0; p < at.n_pages[k]; p++)
            assert_memory_equal((uint8_t *)at.kv[k].data + (uint64_t)at.pages[0][k][p] * at.kv[k].page_bytes,
                                (uint8_t *)at.kv[k].data + (uint64_t)at.pages[1][k][p] * at.kv[k].page_bytes,
                                at.kv[k].page_bytes);
    const size_t prompt = N_PROMPT * TINY_VOCAB, rest = (N_ALL - N_PROMPT) * TINY_VOCAB;
    const float *of[] = {logits, logits + N_ALL * TINY_VOCAB};
    assert_memory_not_equal(of[0], of[1], prompt * sizeof(float)); /* the step shows */
    assert_memory_equal(of[0] + prompt, of[1] + prompt, rest * sizeof(float));
    store_close(&at);
    weft__free(lora);
    case_close(&c);
}

/* ---- refused ---- */

static void other_ends_of_a_model_are_refused(void **state)
{
    static const struct {
        int kind, recompute, head_rows;
        const char *targets;
        weft_status status;
        const char *words;
    } cases[] = {{5, 0, 0, "ffn_down@1", WEFT_UNSUPPORTED, "ends otherwise"},
                 {0, 1, 0, "ffn_down@1", WEFT_UNSUPPORTED, "ends otherwise"},
                 {0, 0, 0, "ffn_down@0", WEFT_STATE, "must learn"},
                 {0, 0, 0, "ffn_down@1,output", WEFT_STATE, "must not"},
                 {0, 0, 3, "ffn_down@1", WEFT_LIMIT, "one step takes 1 to 3"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tiny *m = tiny_new(&TINY_KINDS[cases[i].kind], WEFT_F32, 24, 40);
        weft__train_options o = tail_options();
        tiny_batch b;
        weft__train_tail s;
        weft_error err = {0};
        o.recompute = cases[i].recompute;
        o.head_rows = cases[i].head_rows;
        o.lora_targets = cases[i].targets;
        weft__trainer *t = tiny_trainer(m, &o);
        tiny_fill(&b, 5);
        assert_int_equal(weft__train_tail_keep(t, &b.b, &s, &err), cases[i].status);
        if (!strstr(err.message, cases[i].words)) fail_msg("case %zu: %s", i, err.message);
        weft__trainer_destroy(&t);
        tiny_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_is_that_of_finite_differences),
        cmocka_unit_test(no_low_rank_is_nearer),
        cmocka_unit_test(the_least_loss_along_the_line_is_found),
        cmocka_unit_test(it_goes_no_further_than_targets_need),
        cmocka_unit_test(the_norm_stays_within_its_cap),
        cmocka_unit_test(the_number_of_threads_does_not_show),
        cmocka_unit_test(keys_and_values_of_the_base_stay_valid),
        cmocka_unit_test(other_ends_of_a_model_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
