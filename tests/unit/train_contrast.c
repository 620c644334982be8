// SPDX-License-Identifier: Apache-2.0
/* train_contrast.c: InfoNCE: its value and its gradients against another way to say them, in double, for embeddings and
 * for whole models; what is no wrong answer; batches that are none; and how records of texts become batches. */
#include "train_model.h"
#include "train_oracle.h"
#include "train_world.h"

static void near_to(double got, double want, double by, const char *what)
{
    if (!(fabs(got - want) <= by * fmax(1, fabs(want)))) fail_msg("%s: %.10g, wanted %.10g", what, got, want);
}

/* ---- embeddings alone ---- */

enum { TEXTS = 9, WIDTH = 3 };
/* Three records: of two, one and no hard negatives. */
static const int32_t GROUPS[TEXTS] = {0, 0, 0, 0, 1, 1, 1, 2, 2};

static int begins(const int32_t *group, int32_t i)
{
    return i == 0 || group[i] != group[i - 1];
}

/* The definition, one sum after the other. */
static double by_definition(const double *e, const int32_t *group, const int32_t *same, int32_t n, int64_t width,
                            double beta)
{
    double loss = 0;
    for (int32_t q = 0; q < n; q++) {
        double sum = 0, right = 0;
        if (!begins(group, q)) continue;
        for (int32_t d = 0; d < n; d++) {
            double cosine = 0;
            if (begins(group, d) || (d != q + 1 && same[d] == same[q + 1])) continue;
            for (int64_t k = 0; k < width; k++) cosine += e[q * width + k] * e[d * width + k];
            sum += exp(cosine / beta);
            if (d == q + 1) right = cosine / beta;
        }
        loss += log(sum) - right;
    }
    return loss;
}

static void values_and_slopes(void **state)
{
    (void)state;
    static const int32_t each[TEXTS] = {0, 1, 2, 3, 4, 5, 6, 7, 8},
                         twice[TEXTS] = {0, 1, 2, 3, 4, 5, 6, 7, 1}; /* the last says what the first record's does */
    for (int k = 0; k < 4; k++) {
        const int32_t *same = k % 2 ? twice : each;
        const weft__train_objective o = {.kind = WEFT__LOSS_CONTRAST, .beta = k < 2 ? 0.5f : 0.05f};
        double e[TEXTS * WIDTH], g[TEXTS * WIDTH], score[TEXTS];
        weft__rng rng;
        weft__rng_seed(&rng, 5);
        for (int i = 0; i < TEXTS * WIDTH; i++) e[i] = weft__rng_normal(&rng) / 2;
        const weft__loss_contrast_texts x = {TEXTS, WIDTH, e, GROUPS, same, score};
        weft__loss_contrast_told told;
        weft__loss_contrast(&o, &x, g, &told);
        const double beta = (double)o.beta;
        near_to(told.value, by_definition(e, GROUPS, same, TEXTS, WIDTH, beta), 1e-9, "value");
        assert_int_equal(told.n, 3);
        for (int i = 0; i < TEXTS * WIDTH; i++) {
            const double h = 1e-6, was = e[i];
            e[i] = was + h;
            const double up = by_definition(e, GROUPS, same, TEXTS, WIDTH, beta);
            e[i] = was - h;
            const double down = by_definition(e, GROUPS, same, TEXTS, WIDTH, beta);
            e[i] = was;
            near_to(g[i], (up - down) / (2 * h), 1e-6, "slope");
        }
    }
}

/* What MultipleNegativesRankingLoss of sentence-transformers is by its formula (cross-entropy of scale * cosines over
 * all positives, then all negatives) for unit vectors at these angles. */
static void values_of_others(void **state)
{
    (void)state;
    static const double angle[] = {0.1, 0.3, -0.4, 1.2, 1.0, 1.9, 2.5, 2.9, 2.2}, want[] = {1.2778769768, 3.0777702235};
    static const int32_t group[] = {0, 0, 0, 1, 1, 1, 2, 2, 2}, same[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    double e[18], score[9];
    for (int i = 0; i < 9; i++) e[2 * i] = cos(angle[i]), e[2 * i + 1] = sin(angle[i]);
    for (int k = 0; k < 2; k++) {
        const weft__train_objective o = {.kind = WEFT__LOSS_CONTRAST, .beta = k ? 0.5f : 0.05f};
        const weft__loss_contrast_texts x = {9, 2, e, group, same, score};
        weft__loss_contrast_told told;
        weft__loss_contrast(&o, &x, NULL, &told);
        near_to(told.value, want[k], 1e-6, "value"); /* beta is a float */
        assert_int_equal(told.n_better, 2);          /* the third's negative is nearer */
    }
}

/* Where all texts are alike each candidate has the same share; where there is nothing else there is nothing to learn.
 */
static void what_is_known(void **state)
{
    (void)state;
    static const double e[] = {1, 1, 1, 1, 1};
    static const int32_t group[] = {0, 0, 0, 1, 1}, same[] = {0, 1, 2, 3, 4};
    double score[5], g[5];
    const weft__train_objective o = {.kind = WEFT__LOSS_CONTRAST, .beta = 0.05f};
    weft__loss_contrast_texts x = {5, 1, e, group, same, score};
    weft__loss_contrast_told told;
    weft__loss_contrast(&o, &x, g, &told);
    near_to(told.value, 2 * log(3), 1e-12, "two records of three candidates");
    assert_int_equal(told.n_better, 0);
    x.n = 2;
    weft__loss_contrast(&o, &x, g, &told);
    assert_true(told.value == 0 && told.n == 1 && told.n_better == 0 && told.margin == 0 && g[0] == 0 && g[1] == 0);
}

/* ---- whole models ---- */

/* tiny_fill's four texts as two records. */
static const int32_t PAIRS[] = {0, 0, 1, 1}, ONE[] = {0, 0, 0, 0};

static weft__trainer *contrast_trainer(const tiny *m, int32_t rank, int32_t head_rows, int recompute)
{
    weft__train_options o = tiny_options();
    weft__rng rng;
    o.lora_rank = rank;
    o.lora_alpha = 7;
    o.head_rows = head_rows;
    o.recompute = recompute;
    weft__trainer *t = tiny_trainer(m, &o);
    weft__rng_seed(&rng, 4);
    if (rank) tiny_draw(t, &rng);
    return t;
}

static void fill_texts(tiny_batch *b, const int32_t *group)
{
    tiny_fill(b, 6);
    for (int r = 0; r < TINY_ROWS; r++) b->target[r] = 0; /* for the oracle, which looks at all rows then */
    b->b.group = group;
}

/* The loss in double, from the oracle's states behind the final norm. */
static double oracle_contrast(oracle *o, double beta)
{
    const weft_graph *g = o->t->graph;
    weft_tensor_id normed = WEFT_NONE;
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].op == WEFT_OP_NORM) normed = g->nodes[i].out[0];
    const int64_t width = weft__train_width(o->t, normed);
    static const int32_t same[] = {0, 1, 2, 3};
    double *e = oracle_floats((size_t)(4 * width));
    (void)oracle_loss(o);
    for (int32_t r = 0; r < TINY_ROWS; r++)
        for (int64_t k = 0; k < width; k++) e[o->b->segment[r] * width + k] += o->value[normed][r * width + k];
    for (int i = 0; i < 4; i++) {
        double squares = 0;
        for (int64_t k = 0; k < width; k++) squares += e[i * width + k] * e[i * width + k];
        for (int64_t k = 0; k < width; k++) e[i * width + k] /= sqrt(squares);
    }
    const double loss = by_definition(e, o->b->group, same, 4, width, beta);
    weft__free(e);
    return loss;
}

static double contrast_at(oracle *o, const void *beta)
{
    return oracle_contrast(o, *(const double *)beta);
}

static void models_against_differences(void **state)
{
    (void)state;
    static const struct {
        int kind;
        const int32_t *group;
        int32_t rank, head_rows;
        int recompute;
    } cases[] = {{0, PAIRS, 5, 0, 0}, {5, ONE, 5, 7, 1}, {3, PAIRS, 0, 7, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const weft__train_objective o = {.kind = WEFT__LOSS_CONTRAST, .beta = 0.4f};
        const double beta = (double)o.beta;
        tiny *m = tiny_new(&TINY_KINDS[cases[i].kind], WEFT_F32, 24, 40);
        weft__trainer *t = contrast_trainer(m, cases[i].rank, cases[i].head_rows, cases[i].recompute);
        tiny_batch b;
        oracle exact;
        weft__train_loss l, alone;
        fill_texts(&b, cases[i].group);
        oracle_init(&exact, t, &b.b);
        assert_int_equal(weft__trainer_learn(t, &o, &b.b, &l, NULL), WEFT_OK);
        near_to(l.loss, oracle_contrast(&exact, beta), 2e-5, "a model's loss");
        assert_true(l.n_pairs == (cases[i].group == PAIRS ? 2 : 1) && l.weight == (double)l.n_pairs);
        oracle_differences(t, &exact, contrast_at, &beta, TINY_KINDS[cases[i].kind].arch);
        assert_int_equal(weft__trainer_measure(t, &o, &b.b, &alone, NULL), WEFT_OK);
        assert_true(alone.loss == l.loss && alone.n_better == l.n_better && alone.margin == l.margin);
        oracle_free(&exact);
        weft__trainer_destroy(&t);
        tiny_free(m);
    }
}

/* A few steps bring queries to what belongs to them. */
static void it_learns(void **state)
{
    (void)state;
    const weft__train_objective o = {.kind = WEFT__LOSS_CONTRAST, .beta = 0.05f};
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    weft__trainer *t = contrast_trainer(m, 4, 0, 0);
    tiny_batch b;
    weft__train_loss first, last;
    fill_texts(&b, ONE);
    assert_int_equal(weft__trainer_measure(t, &o, &b.b, &first, NULL), WEFT_OK);
    for (int i = 0; i < 60; i++) {
        assert_int_equal(weft__trainer_learn(t, &o, &b.b, NULL, NULL), WEFT_OK);
        assert_int_equal(weft__trainer_step(t, NULL, NULL), WEFT_OK);
    }
    assert_int_equal(weft__trainer_measure(t, &o, &b.b, &last, NULL), WEFT_OK);
    assert_true(last.loss < first.loss / 4 && last.n_better == 1 && last.margin > 0);
    weft__trainer_destroy(&t);
    tiny_free(m);
}

static void refused(void **state)
{
    (void)state;
    static const int32_t none[][4] = {{0, 0, 0, 1}, {0, 1, 1, 1}, {1, 1, 1, 1}, {0, 0, 2, 2}, {0, 0, 1, 0}};
    const weft__train_objective o = {.kind = WEFT__LOSS_CONTRAST, .beta = 0.05f},
                                bad[] = {{.kind = WEFT__LOSS_CONTRAST},
                                         {.kind = WEFT__LOSS_CONTRAST, .beta = NAN},
                                         {.kind = WEFT__LOSS_CONTRAST, .beta = 0.1f, .anchor = 1}};
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    weft__trainer *t = contrast_trainer(m, 4, 0, 0);
    tiny_batch b;
    fill_texts(&b, NULL);
    assert_int_equal(weft__trainer_learn(t, &o, &b.b, NULL, NULL), WEFT_ARGUMENT);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        b.b.group = none[i];
        assert_int_equal(weft__trainer_learn(t, &o, &b.b, NULL, NULL), WEFT_ARGUMENT);
    }
    b.b.group = PAIRS;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(weft__trainer_learn(t, &bad[i], &b.b, NULL, NULL), WEFT_ARGUMENT);
    assert_int_equal(weft__trainer_add(t, &b.b, NULL, NULL), WEFT_OK);
    assert_int_equal(weft__trainer_learn(t, &o, &b.b, NULL, NULL), WEFT_STATE); /* rows, then texts */
    weft__trainer_destroy(&t);
    weft__train_options options = tiny_options();
    options.lora_rank = 4;
    options.lora_targets = "output";
    t = tiny_trainer(m, &options);
    assert_int_equal(weft__trainer_measure(t, &o, &b.b, NULL, NULL), WEFT_OK);
    assert_int_equal(weft__trainer_learn(t, &o, &b.b, NULL, NULL), WEFT_ARGUMENT); /* it has no part in them */
    weft__trainer_destroy(&t);
    tiny_free(m);
}

/* ---- records to batches ---- */

/* A record's texts stand together, each whole, as they are embedded: BOS, no end, nothing learned. */
static void records_to_tell_apart_stay_whole(void **state)
{
    (void)state;
    world w;
    const weft__dataset_options o = {.n_ctx = 12, .max_rows = 40, .in_order = 1, .contrasts = 1};
    open_world(&w, NULL, o);
    add(&w, WEFT__DATASET_JSONL,
        "{\"query\": \"the fox\", \"positive\": \"sat.\", \"negatives\": [\"the owl\", \"<|stop|>\"]}\n"
        "{\"anchor\": \"the owl\", \"positive\": \"sat.\"}\n"
        "{\"query\": \"the fox\", \"positive\": \"the the the the the the the the the the the the the the\", "
        "\"negative\": \"sat.\"}");
    static const int32_t groups[] = {0, 0, 0, 0, 1, 1};
    static const char *const texts[] = {"the fox", "sat.", "the owl", NULL, "the owl", "sat."};
    weft__train_batch b = next(&w);
    assert_int_equal(b.segment[b.n_rows - 1], 5); /* the third record is for the next batch */
    for (int32_t r = 0; r < b.n_rows; r++) assert_int_equal(b.target[r], -1);
    for (int number = 0; number < 6; number++) {
        int32_t ids[64];
        size_t n = 0;
        for (int32_t r = 0; r < b.n_rows; r++)
            if (b.segment[r] == number) ids[n++] = b.token[r];
        assert_int_equal(b.group[number], groups[number]);
        assert_int_equal(ids[0], START);
        for (size_t i = 1; i < n; i++) assert_int_not_equal(ids[i], STOP); /* as it is spelled it is text */
        if (texts[number]) expect_text(&w, ids + 1, n - 1, texts[number]);
    }
    b = next(&w);
    int32_t rows[3] = {0};
    for (int32_t r = 0; r < b.n_rows; r++) rows[b.segment[r]]++;
    weft__dataset_totals c;
    weft__dataset_counts(w.d, &c);
    assert_true(rows[1] == 12 && c.n_cut == 1 && c.n_documents == 3 && weft__dataset_n_groups(w.d) == 3);
    assert_int_equal(weft__dataset_set_rows(w.d, (int32_t)c.n_largest - 1, NULL), WEFT_ARGUMENT);
    assert_int_equal(weft__dataset_set_rows(w.d, (int32_t)c.n_largest, NULL), WEFT_OK);
    b = next(&w);
    assert_true(b.group[b.segment[b.n_rows - 1]] == 0); /* one record at a time */
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_and_slopes),
        cmocka_unit_test(values_of_others),
        cmocka_unit_test(what_is_known),
        cmocka_unit_test(models_against_differences),
        cmocka_unit_test(records_to_tell_apart_stay_whole),
        cmocka_unit_test(it_learns),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
