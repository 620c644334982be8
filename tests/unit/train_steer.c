// SPDX-License-Identifier: Apache-2.0
/* train_steer.c: what is done to a trainer beside steps: an adapter that it goes on with, parameters put aside, how
 * much pairs count, and which tokens it finds likeliest. */
#include "adapt/adapt.h"
#include "folder.h"
#include "train_steps.h"

static double loss_of(weft__trainer *t)
{
    weft__train_loss l;
    tiny_batch b;
    tiny_fill(&b, 9);
    assert_int_equal(weft__trainer_loss(t, &b.b, 1, NULL, &l, NULL), WEFT_OK);
    return l.loss;
}

static weft__adapt *written(weft__trainer *t)
{
    weft__adapt *a = NULL;
    assert_int_equal(weft__trainer_write_adapter(t, path, "mine", NULL), WEFT_OK);
    assert_int_equal(weft__adapt_open(path, NULL, UINT64_MAX, &a, NULL), WEFT_OK);
    return a;
}

/* What is put aside comes back, from a checkpoint too; and a checkpoint without it has none. */
static void parameters_put_aside(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    weft__train_options o = lora_options();
    weft__trainer *t = tiny_trainer(m, &o), *best = tiny_trainer(m, &o), *other = tiny_trainer(m, &o),
                  *last = tiny_trainer(m, &o);
    void *back;
    size_t n;
    steps(best, 0, 2);
    steps(last, 0, 3);
    steps(t, 0, 2);
    assert_int_equal(weft__trainer_put_aside(t, NULL), WEFT_OK);
    steps(t, 2, 1);
    assert_same_params(t, last, "putting aside changes nothing");
    assert_int_equal(weft__trainer_save(t, path, NULL, 0, NULL), WEFT_OK);
    assert_int_equal(weft__trainer_load(other, path, &back, &n, NULL), WEFT_OK);
    weft__free(back);
    assert_same_params(other, last, "loaded");
    weft__trainer_take_aside(other);
    assert_same_params(other, best, "taken");
    assert_int_equal(weft__trainer_save(last, path, NULL, 0, NULL), WEFT_OK);
    assert_int_equal(weft__trainer_load(other, path, &back, &n, NULL), WEFT_OK);
    weft__free(back);
    weft__trainer_take_aside(other);
    assert_same_params(other, last, "none was there");
    weft__trainer_destroy(&last);
    weft__trainer_destroy(&other);
    weft__trainer_destroy(&best);
    weft__trainer_destroy(&t);
    tiny_free(m);
}

/* An adapter goes on where it was: bit for bit at its own rank and scale, and with the same losses at others. */
static void adapters_go_on(void **state)
{
    static const struct {
        int32_t rank;
        float alpha;
        int exact;
    } cases[] = {{4, 8, 1}, {4, 5, 0}, {9, 8, 0}, {9, 18, 0}};
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    weft__train_options o = lora_options();
    weft__trainer *first = tiny_trainer(m, &o);
    int32_t rank;
    float scale;
    char *targets;
    steps(first, 0, 3);
    weft__adapt *a = written(first);
    const double want = loss_of(first);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        o.lora_rank = cases[i].rank;
        o.lora_alpha = cases[i].alpha;
        weft__trainer *t = tiny_trainer(m, &o);
        assert_true(fabs(loss_of(t) - want) > 1e-3 * want);
        assert_int_equal(weft__trainer_start_adapter(t, a, NULL), WEFT_OK);
        if (cases[i].exact) assert_same_params(t, first, "an adapter to begin with");
        const double got = loss_of(t);
        if (!(fabs(got - want) <= 1e-5 * want)) fail_msg("rank %d: loss %.9g, not %.9g", o.lora_rank, got, want);
        weft__trainer_destroy(&t);
    }
    assert_int_equal(weft__train_adapter_options(a, &rank, &scale, &targets, NULL), WEFT_OK);
    assert_int_equal(rank, 4);
    assert_true(scale == 2);
    o = lora_options();
    o.lora_targets = targets;
    weft__trainer *again = tiny_trainer(m, &o);
    assert_int_equal(weft__trainer_start_adapter(again, a, NULL), WEFT_OK);
    assert_same_params(again, first, "its own targets");
    weft__trainer_destroy(&again);
    weft__free(targets);
    weft__adapt_close(&a);
    weft__trainer_destroy(&first);
    tiny_free(m);
}

/* What preferences and anchors are measured from is the adapter that it began with, not the base below it. */
static void it_is_held_to_what_it_began_with(void **state)
{
    (void)state;
    static const weft__train_objective prefers = {.kind = WEFT__LOSS_PREFERENCE, .beta = 0.5f},
                                       anchored = {.kind = WEFT__LOSS_LIKELIHOOD, .anchor = 2};
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    weft__train_options o = lora_options();
    o.lora_targets = "attn_q,ffn_down,output";
    weft__trainer *first = tiny_trainer(m, &o), *t = tiny_trainer(m, &o);
    weft__train_loss l;
    tiny_batch b;
    tiny_fill(&b, 9);
    steps(first, 0, 3);
    weft__adapt *a = written(first);
    assert_int_equal(weft__trainer_measure(first, &anchored, &b.b, &l, NULL), WEFT_OK);
    assert_true(l.anchor > 1e-3);
    assert_int_equal(weft__trainer_start_adapter(t, a, NULL), WEFT_OK);
    assert_int_equal(weft__trainer_measure(t, &anchored, &b.b, &l, NULL), WEFT_OK);
    assert_true(fabs(l.anchor) < 1e-4);
    assert_int_equal(weft__trainer_measure(t, &prefers, &b.b, &l, NULL), WEFT_OK);
    assert_true(fabs(l.loss - (double)l.n_pairs * log(2)) < 1e-5 && fabs(l.margin) < 1e-5);
    assert_same_params(t, first, "what it has learned is there again");
    steps(t, 3, 1);
    assert_int_equal(weft__trainer_measure(t, &prefers, &b.b, &l, NULL), WEFT_OK);
    assert_true(fabs(l.margin) > 1e-3);
    weft__adapt_close(&a);
    weft__trainer_destroy(&t);
    weft__trainer_destroy(&first);
    tiny_free(m);
}

static void adapters_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40), *wider = tiny_new(&TINY_KINDS[0], WEFT_F32, 32, 40),
         *qwen = tiny_new(&TINY_KINDS[3], WEFT_F32, 24, 40);
    weft__train_options o = lora_options();
    weft__trainer *first = tiny_trainer(m, &o);
    steps(first, 0, 1);
    weft__adapt *a = written(first);
    const struct {
        const tiny *m;
        int32_t rank;
        const char *targets, *words;
        weft_status status;
    } cases[] = {{m, 3, NULL, "rank", WEFT_ARGUMENT},
                 {m, 4, "attn_q", "which is no LoRA target", WEFT_ARGUMENT},
                 {m, 4, "@0", "which is no LoRA target", WEFT_ARGUMENT},
                 {wider, 4, NULL, "another model", WEFT_ARGUMENT},
                 {qwen, 4, NULL, "is for 'llama'", WEFT_ARGUMENT},
                 {m, 0, NULL, "all weights learn", WEFT_STATE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft_error err = {0};
        o.lora_rank = cases[i].rank;
        o.lora_targets = cases[i].targets;
        weft__trainer *t = tiny_trainer(cases[i].m, &o), *as_before = tiny_trainer(cases[i].m, &o);
        assert_int_equal(weft__trainer_start_adapter(t, a, &err), cases[i].status);
        if (!strstr(err.message, cases[i].words)) fail_msg("'%s' does not say '%s'", err.message, cases[i].words);
        assert_same_params(t, as_before, "refused");
        weft__trainer_destroy(&as_before);
        weft__trainer_destroy(&t);
    }
    weft__adapt_close(&a);
    weft__trainer_destroy(&first);
    tiny_free(qwen);
    tiny_free(wider);
    tiny_free(m);
}

/* At 0 the base speaks; at 1 nothing has changed; and the file says what counts. */
static void pairs_count_as_much_as_is_said(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    weft__train_options o = lora_options();
    weft__trainer *t = tiny_trainer(m, &o), *base = tiny_trainer(m, &o);
    steps(t, 0, 3);
    const double whole = loss_of(t);
    weft__trainer_set_scale(t, 0);
    assert_true(loss_of(t) == loss_of(base)); /* whose B is 0 */
    weft__trainer_set_scale(t, 0.5f);
    weft__adapt *a = written(t);
    for (int32_t i = 0; i < a->n_pairs; i++) assert_true(a->pairs[i].scale == 1);
    weft__adapt_close(&a);
    weft__trainer_set_scale(t, 1);
    assert_true(loss_of(t) == whole);
    weft__trainer_destroy(&base);
    weft__trainer_destroy(&t);
    tiny_free(m);
}

/* No token has a larger log p than the likeliest. */
static void the_likeliest_is_the_likeliest(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[5], WEFT_F32, 24, 40);
    weft__train_options o = tiny_options();
    o.head_rows = 16; /* several chunks */
    weft__trainer *t = tiny_trainer(m, &o);
    tiny_batch b;
    int32_t likeliest[TINY_ROWS], again[TINY_ROWS];
    float best[TINY_ROWS], logp[TINY_ROWS];
    tiny_fill(&b, 3);
    assert_int_equal(weft__trainer_loss(t, &b.b, 1, NULL, NULL, NULL), WEFT_OK);
    weft__trainer_likeliest(t, likeliest);
    for (int32_t r = 0; r < TINY_ROWS; r++) {
        assert_true((b.target[r] < 0) == (likeliest[r] < 0));
        if (b.target[r] >= 0) b.target[r] = likeliest[r];
    }
    assert_int_equal(weft__trainer_loss(t, &b.b, 1, best, NULL, NULL), WEFT_OK);
    for (int32_t token = 0; token < TINY_VOCAB; token++) {
        for (int32_t r = 0; r < TINY_ROWS; r++) b.target[r] = b.target[r] < 0 ? -1 : token;
        assert_int_equal(weft__trainer_loss(t, &b.b, 1, logp, NULL, NULL), WEFT_OK);
        weft__trainer_likeliest(t, again);
        assert_memory_equal(likeliest, again, sizeof again);
        for (int32_t r = 0; r < TINY_ROWS; r++) assert_true(logp[r] <= best[r]);
    }
    weft__trainer_destroy(&t);
    tiny_free(m);
}

static int make_folder(void **state)
{
    (void)state;
    return folder_make("adapter.gguf");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_put_aside),
        cmocka_unit_test(adapters_go_on),
        cmocka_unit_test(adapters_that_do_not_fit_are_refused),
        cmocka_unit_test(it_is_held_to_what_it_began_with),
        cmocka_unit_test(pairs_count_as_much_as_is_said),
        cmocka_unit_test(the_likeliest_is_the_likeliest),
    };
    return cmocka_run_group_tests_name("train_steer", tests, make_folder, remove_folder);
}
