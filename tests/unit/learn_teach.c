// SPDX-License-Identifier: Apache-2.0
/* learn_teach.c: corrections become an adapter (learn/teach.h) behind a gate (learn/gate.h), on tiny models: it says
 * what it was taught and as little else as can be, the same events give the same content, and each reason of the gate
 * refuses. */
#include "learn_lesson.h"
#include "learn/teach_trainer.h"
#include "train_steps.h"

#include "train/answers.h"

static weft__teach_report taught(lesson *l)
{
    weft__teach_report r;
    if (weft__teach(&l->task, &l->o, &r, &l->err)) fail_msg("%s", l->err.message);
    return r;
}

/* A trainer that has what was written. */
static weft__trainer *learned(lesson *l)
{
    weft__train_options o = tiny_options();
    weft__adapt *a = NULL;
    weft__trainer *t = NULL;
    float scale;
    char *targets;
    assert_int_equal(weft__adapt_open(path, NULL, UINT64_MAX, &a, NULL), WEFT_OK);
    assert_int_equal(weft__train_adapter_options(a, &o.lora_rank, &scale, &targets, NULL), WEFT_OK);
    o.lora_targets = targets;
    o.lora_alpha = scale * (float)o.lora_rank;
    assert_int_equal(weft__trainer_create(&l->m->src, &o, &t, NULL), WEFT_OK);
    assert_int_equal(weft__trainer_start_adapter(t, a, NULL), WEFT_OK);
    weft__free(targets);
    weft__adapt_close(&a);
    return t;
}

/* ---- what is taught ---- */

static void a_correction_comes_out_and_no_further_than_needed(void **state)
{
    (void)state;
    lesson l;
    uint8_t right;
    float least;
    lesson_open(&l);
    const weft__teach_report r = taught(&l);
    if (!r.came_out || !r.n_steps || !r.gate.passed || r.gate.corrections != 1)
        fail_msg("%s after %d steps, at %g", weft__gate_reason_name(r.gate.reason), r.n_steps, (double)r.scale);
    assert_true(r.scale < 1 && r.gate.kl > 0 && r.gate.norm > 0 && r.gate.norm < 10);
    weft__trainer *t = learned(&l);
    assert_int_equal(weft__teach_check(t, &l.event.correction, 1, &right, &least, NULL), WEFT_OK);
    if (!right || least < -1.61f) fail_msg("log p %g", (double)least);
    if (least > -1.2f) fail_msg("log p %g: it was not taken back", (double)least);
    weft__trainer_destroy(&t);
    lesson_close(&l);
}

/* KL to the base on others that begin alike and are in no step, after learning beside so many neighbours a step. */
static double moved(lesson *l, int32_t per_step)
{
    int32_t n = 0;
    for (size_t i = 0; i < l->others.n; i++)
        for (int32_t k = 0; k < l->others.text[i].n; k++) l->probe[n++] = l->others.text[i].ids[k];
    l->judge.n_probe = n;
    l->o.per_step = per_step;
    l->o.neighbour = 0;
    l->o.anchor = 1; /* noise has no right answers, only what the base thinks of them */
    const weft__teach_report r = taught(l);
    assert_true(r.came_out && r.gate.corrections == 1);
    return r.gate.kl;
}

/* What holds less is learned for comparison alone, which the address sanitizer does without. */
static double moved_without(lesson *l, int32_t per_step)
{
    return CLAIMS_REPEATED(1, claims_sweeps(), 1) ? moved(l, per_step) : INFINITY;
}

static void neighbours_hold_others(void **state)
{
    (void)state;
    lesson l;
    lesson_open(&l);
    const double without = moved_without(&l, 0), with = moved(&l, N_NEIGHBOURS);
    if (!(with < 0.9 * without)) fail_msg("KL %g, %g without neighbours", with, without);
    lesson_close(&l);
}

/* Beside so many other answers that a turn seldom comes, those to the questions most alike hold all the same. */
static void the_nearest_hold_beside_many_others(void **state)
{
    (void)state;
    enum { FAR = 90 };
    lesson l;
    weft__teach_texts all = {0};
    lesson_open(&l);
    for (uint64_t i = 0; i < FAR; i++) {
        add_text(&all, 400 + i, 0);
        for (int32_t k = 0; k < 4; k++) ((int32_t *)(uintptr_t)all.text[i].ids)[k] = 30 + k;
    }
    for (int32_t i = 0; i < N_NEIGHBOURS; i++) {
        const weft__teach_text *x = &l.neighbours.text[i];
        assert_true(weft__teach_texts_add(&all, x->ids, x->n, NULL, 0, -1));
        all.text[all.n - 1].n_prompt = x->n;
    }
    l.task.neighbours = all.text;
    l.task.n_neighbours = (int32_t)all.n;
    l.o.nearest = FAR + N_NEIGHBOURS;
    l.o.far_per_step = 0;
    const double in_one = moved_without(&l, 2);
    l.o.nearest = N_NEIGHBOURS;
    const double apart = moved(&l, 2);
    if (!(apart < 0.9 * in_one)) fail_msg("KL %g, %g where all have turns alike", apart, in_one);
    weft__teach_texts_free(&all);
    lesson_close(&l);
}

/* Likewise what is replayed, which has turns of its own: it holds, however many other answers there are. */
static void what_is_replayed_holds_beside_many_others(void **state)
{
    (void)state;
    enum { FAR = 90 };
    lesson l;
    weft__teach_texts all = {0};
    lesson_open(&l);
    weft__teach_texts_free(&l.others);
    for (uint64_t i = 0; i < FAR; i++) add_text(&all, 400 + i, 0);
    for (uint64_t i = 0; i < N_NEIGHBOURS; i++) add_text(&l.others, 200 + i, 3); /* the probe, too */
    l.task.neighbours = all.text;
    l.task.n_neighbours = (int32_t)all.n;
    l.task.replay = l.others.text;
    l.task.n_replay = (int32_t)l.others.n;
    l.o.nearest = 2;
    l.o.far_per_step = 2;
    l.o.replay = 0;
    l.o.replay_per_step = 0;
    const double in_one = moved_without(&l, 2);
    l.o.replay_per_step = 6;
    const double apart = moved(&l, 2);
    if (!(apart < 0.8 * in_one)) fail_msg("KL %g, %g where all have turns alike", apart, in_one);
    weft__teach_texts_free(&all);
    lesson_close(&l);
}

/* log p of the least likely token of x's answer, by what was written. */
static float least_of(lesson *l, const weft__teach_text *x)
{
    weft__adapt *a = NULL;
    weft__trainer *t = NULL;
    uint8_t right;
    float least;
    assert_int_equal(weft__adapt_open(path, NULL, UINT64_MAX, &a, NULL), WEFT_OK);
    const weft__teach_lora lora = {.like = a, .lr = l->o.lr, .max_rows = 64};
    assert_int_equal(weft__teach_trainer_open(&l->m->src, &l->o, &lora, &t, NULL), WEFT_OK);
    assert_int_equal(weft__trainer_start_adapter(t, a, NULL), WEFT_OK);
    assert_int_equal(weft__teach_check(t, x, 1, &right, &least, NULL), WEFT_OK);
    weft__trainer_destroy(&t);
    weft__adapt_close(&a);
    return least;
}

/* By what its answers hang on, what was learned before stays where nothing else holds it. */
static void what_was_learned_before_is_held(void **state)
{
    (void)state;
    lesson l;
    weft__adapt *parent = NULL;
    weft__teach_texts next = {0};
    float least[2];
    lesson_open(&l);
    taught(&l);
    weft__teach_text before = l.event.correction;
    const float first = least_of(&l, &before);
    assert_int_equal(weft__adapt_open(path, NULL, UINT64_MAX, &parent, NULL), WEFT_OK);
    add_text(&next, 7, 3);
    l.event = (weft__teach_event){.correction = next.text[0]};
    l.task.replay = &before;
    l.task.n_replay = 1;
    l.task.parent = parent;
    l.o.replay = l.o.neighbour = l.o.anchor = 0;
    l.o.replay_per_step = 0;
    for (int i = 0; i < 2; i++) {
        l.o.ewc = i ? 10 : 0;
        taught(&l);
        least[i] = least_of(&l, &before);
        assert_true(least_of(&l, &next.text[0]) >= l.o.hold_at - 1e-3f); /* and the next one is learned */
    }
    if (!(first - least[1] < 0.5f * (first - least[0])))
        fail_msg("log p %g, then %g, and %g where it is held", (double)first, (double)least[0], (double)least[1]);
    weft__teach_texts_free(&next);
    weft__adapt_close(&parent);
    lesson_close(&l);
}

/* Nothing but the task, the options and the seed decides the content; going on from it is another. */
static void the_same_events_give_the_same_content(void **state)
{
    (void)state;
    lesson l;
    weft__adapt *parent = NULL;
    lesson_open(&l);
    const weft__teach_report first = taught(&l);
    l.o.n_threads = 3;
    const weft__teach_report again = taught(&l);
    assert_memory_equal(&first.id, &again.id, sizeof first.id);
    assert_int_equal(weft__adapt_open(path, NULL, UINT64_MAX, &parent, NULL), WEFT_OK);
    l.o.seed = 2;
    if (CLAIMS_REPEATED(1, claims_sweeps(), 1)) { /* the same way through memory */
        const weft__teach_report other = taught(&l);
        assert_memory_not_equal(&first.id, &other.id, sizeof first.id);
    }
    /* The next correction goes on: the one before is replayed, and both come out. */
    weft__teach_texts next = {0};
    add_text(&next, 7, 3);
    weft__teach_text before = l.event.correction;
    l.event = (weft__teach_event){.correction = next.text[0]};
    l.task.replay = &before;
    l.task.n_replay = 1;
    l.task.parent = parent;
    l.judge.held_out = &before;
    l.judge.n_held_out = 1;
    const weft__teach_report second = taught(&l);
    const weft__teach_report second_again = CLAIMS_REPEATED(1, claims_sweeps(), 1) ? taught(&l) : second;
    assert_memory_not_equal(&first.id, &second.id, sizeof first.id);
    assert_memory_equal(&second.id, &second_again.id, sizeof first.id);
    assert_int_equal(second.gate.n_held_out, 1);
    assert_int_equal(second.gate.lost, 0);
    weft__teach_texts_free(&next);
    weft__adapt_close(&parent);
    lesson_close(&l);
}

/* A text of one token, with a weight and with the opposite one: the first step is the opposite one. */
static void a_reward_and_its_opposite_turn_the_first_step(void **state)
{
    (void)state;
    tiny *m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40);
    weft__train_options o = lora_options();
    weft__trainer *t[2] = {tiny_trainer(m, &o), tiny_trainer(m, &o)};
    weft__teach_texts text = {0};
    int64_t n = 0;
    assert_true(weft__teach_texts_add(&text, (const int32_t[]){7, 9, 11}, 3, (const int32_t[]){21}, 1, -1));
    for (int i = 0; i < 2; i++) {
        weft__teach_rows rows = {0};
        const float weight = i ? -0.8f : 0.8f;
        assert_true(weft__teach_rows_put(&rows, &text.text[0], &weight));
        const weft__train_batch b = weft__teach_rows_batch(&rows);
        assert_int_equal(weft__trainer_add(t[i], &b, NULL, NULL), WEFT_OK);
        assert_int_equal(weft__trainer_step(t[i], NULL, NULL), WEFT_OK);
        weft__teach_rows_free(&rows);
    }
    for (size_t i = 0; i < weft__trainer_n_params(t[0]); i++) {
        const weft__train_param p = weft__trainer_param(t[0], i), q = weft__trainer_param(t[1], i);
        if (!strstr(p.name, ".lora_b")) continue; /* B began at 0, so that it is the step; A did not move */
        for (uint64_t k = 0; k < p.d[0] * p.d[1]; k++) {
            if (fabsf(p.data[k]) < 1e-3f) continue; /* gradients that are nothing */
            if (!(fabsf(p.data[k] + q.data[k]) <= 0.1f * fabsf(p.data[k])))
                fail_msg("%s %llu: %g and %g", p.name, (unsigned long long)k, (double)p.data[k], (double)q.data[k]);
            n++;
        }
    }
    assert_true(n > 100);
    weft__teach_texts_free(&text);
    weft__trainer_destroy(&t[1]);
    weft__trainer_destroy(&t[0]);
    tiny_free(m);
}

/* ---- texts ---- */

/* The answer is what one token at a time gives, whatever was guessed. */
static void answers_are_those_of_one_at_a_time(void **state)
{
    (void)state;
    lesson l;
    lesson_open(&l);
    weft__train_options o = lora_options();
    weft__trainer *t = tiny_trainer(l.m, &o);
    weft__teach_texts said = {0}, asked = {0};
    for (uint64_t i = 0; i < 6; i++) add_text(&asked, 300 + i, i % 2 ? 0 : 5);
    assert_int_equal(weft__teach_answer(t, l.tok, asked.text, asked.n, 9, &said, NULL), WEFT_OK);
    for (size_t i = 0; i < asked.n; i++) {
        const weft__teach_text *x = &said.text[i];
        weft__tok_ids ids = {0};
        for (int32_t k = 0; k < 8; k++) {
            assert_true(weft__grow(&ids.data, &ids.capacity, ids.n + 1, sizeof *ids.data));
            ids.data[ids.n++] = x->ids[k];
        }
        assert_int_equal(weft__train_go_on(t, l.tok, &ids, 9, NULL), WEFT_OK);
        assert_int_equal(x->n_prompt, 8);
        const int32_t ended = weft__tok_is_end(l.tok, x->ids[x->n - 1]);
        assert_int_equal(x->n - ended, ids.n);
        assert_memory_equal(x->ids, ids.data, ids.n * sizeof *ids.data);
        weft__tok_ids_free(&ids);
    }
    weft__teach_texts_free(&asked);
    weft__teach_texts_free(&said);
    weft__trainer_destroy(&t);
    lesson_close(&l);
}

static void what_differs_is_found(void **state)
{
    static const struct {
        int32_t a[5], n, b[5], m, from, to;
    } cases[] = {{{1, 2, 3}, 3, {1, 9, 3}, 3, 1, 2},
                 {{1, 2, 2, 3}, 4, {1, 3}, 2, 1, 3},
                 {{1, 2, 3}, 3, {1, 2, 3}, 3, 2, 3},
                 {{1, 3}, 2, {1, 2, 3}, 3, 1, 2},
                 {{4, 5}, 2, {6}, 1, 0, 2},
                 {{7}, 1, {0}, 0, 0, 1},
                 {{1, 1, 1}, 3, {1, 1, 1, 1, 1}, 5, 2, 3},
                 {{0}, 0, {1}, 1, 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const weft__teach_span s = weft__teach_differ(cases[i].a, cases[i].n, cases[i].b, cases[i].m);
        if (s.from != cases[i].from || s.to != cases[i].to) fail_msg("case %zu: [%d, %d)", i, s.from, s.to);
    }
    static const int32_t ids[] = {1, 2, 1, 2, 3};
    assert_true(weft__teach_holds(ids, 5, (const int32_t[]){1, 2, 3}, 3));
    assert_false(weft__teach_holds(ids, 4, (const int32_t[]){1, 2, 3}, 3));
    assert_false(weft__teach_holds(ids, 5, ids, 0));
}

/* ---- the gate ---- */

static void each_reason_refuses_by_its_name(void **state)
{
    (void)state;
    weft__gate_bounds b;
    weft__gate_bounds_default(&b);
    const weft__gate_report good = {.n_corrections = 1,
                                    .corrections = 1,
                                    .n_paraphrases = 3,
                                    .paraphrases = 2,
                                    .n_held_out = 9,
                                    .lost = 2,
                                    .gained = 1,
                                    .p = weft__gate_mcnemar(2, 1),
                                    .n_neighbours = 100,
                                    .neighbours = 98,
                                    .n_facts = 50,
                                    .facts = 49,
                                    .kl = 0.02,
                                    .norm = 0.25};
    weft__gate_report r[] = {good, good, good, good, good, good, good, good, good, good};
    const char *const names[] = {"passed", "not_learned", "paraphrases", "held_out",   "neighbours", "neighbours",
                                 "facts",  "kl",          "norm",        "not_finite", "not_better"};
    r[1].corrections = 0;
    r[2].paraphrases = 1;
    r[3].lost = 5, r[3].gained = 0, r[3].p = weft__gate_mcnemar(5, 0);
    r[4].neighbours = 97;
    r[5].bled = 1;
    r[6].facts = 48;
    r[7].kl = 0.021;
    r[8].norm = 0.26;
    r[9].kl = NAN;
    b.kl = 0.0201f, b.norm = 0.2501f;
    for (size_t i = 0; i < sizeof r / sizeof *r; i++) {
        const char *name = weft__gate_reason_name(weft__gate_judge(&r[i], &b, 0));
        if (strcmp(name, names[i])) fail_msg("report %zu: '%s', not '%s'", i, name, names[i]);
    }
    assert_int_equal(weft__gate_judge(&r[7], &b, 1), WEFT__GATE_PASSED); /* one that goes on may be further off */
    assert_true(fabs(weft__gate_mcnemar(0, 0) - 1) < 1e-12 && fabs(weft__gate_mcnemar(5, 0) - 1.0 / 32) < 1e-12);
    assert_true(fabs(weft__gate_mcnemar(3, 1) - 5.0 / 16) < 1e-12 && fabs(weft__gate_mcnemar(0, 4) - 1) < 1e-12);
    assert_true(fabs(weft__gate_mcnemar(1000, 900) - 0.011554423) < 1e-7); /* one of so many is no number by itself */
}

/* More than a batch holds; the prompts are nearly as long as a text may be. */
static void many_at_once(lesson *l)
{
    enum { N = 20, LONG = TINY_CTX - 10 };
    weft__teach_texts long_ones = {0};
    weft__teach_event events[N];
    int32_t prompt[LONG];
    for (int32_t i = 0; i < N; i++) {
        for (int32_t k = 0; k < LONG; k++) prompt[k] = 4 + (i * 31 + k * 7) % (TINY_VOCAB - 4);
        assert_true(weft__teach_texts_add(&long_ones, prompt, LONG, (const int32_t[]){9, 8, 7}, 3, END));
    }
    for (int32_t i = 0; i < N; i++) events[i] = (weft__teach_event){.correction = long_ones.text[i]};
    l->task.events = events;
    l->task.n_events = N;
    l->o.most_steps = 1;
    l->o.attempts = 1;
    assert_int_equal(taught(l).gate.n_corrections, N);
    weft__teach_texts_free(&long_ones);
}

/* What is measured decides, and what is refused is not written. */
static void what_is_refused_is_not_written(void **state)
{
    (void)state;
    static const struct {
        float kl, norm, facts;
        int32_t steps;
        weft__gate_reason reason;
    } cases[] = {{0, 10, 0, 60, WEFT__GATE_KL},
                 {10, 1e-6f, 0, 60, WEFT__GATE_NORM},
                 {10, 10, 0, 1, WEFT__GATE_NOT_LEARNED},
                 {10, 10, 1.1f, 60, WEFT__GATE_FACTS}};
    lesson l;
    lesson_open(&l);
    l.judge.facts = l.others.text;
    l.judge.n_facts = 2;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        l.judge.bounds.kl = cases[i].kl;
        l.judge.bounds.norm = cases[i].norm;
        l.judge.bounds.facts = cases[i].facts;
        l.o.most_steps = cases[i].steps;
        const weft__teach_report r = taught(&l);
        if (r.gate.passed || r.gate.reason != cases[i].reason)
            fail_msg("case %zu: %s", i, weft__gate_reason_name(r.gate.reason));
        assert_true(access(path, F_OK) != 0 && files_in_folder() == 0);
        assert_true(!r.id.word[0] && !r.id.word[1]);
    }
    /* A second attempt goes on for longer where too little came of the first. */
    l.judge.bounds = (weft__gate_bounds){.p = 0.1f, .least = -2.3f, .kl = 10, .kl_later = 10, .norm = 10};
    l.o.most_steps = 3;
    assert_int_equal(taught(&l).gate.reason, WEFT__GATE_NOT_LEARNED);
    l.o.attempts = 6;
    const weft__teach_report tried = taught(&l);
    assert_true(tried.gate.passed && tried.n_attempts > 1 && tried.n_attempts <= 6 && tried.n_steps > 3);
    many_at_once(&l);
    l.task.n_events = 0;
    weft__teach_report r;
    assert_int_equal(weft__teach(&l.task, &l.o, &r, NULL), WEFT_ARGUMENT);
    lesson_close(&l);
}

static int begin(void **state)
{
    (void)state;
    return folder_make("adapter.gguf");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_correction_comes_out_and_no_further_than_needed),
        cmocka_unit_test(neighbours_hold_others),
        cmocka_unit_test(the_nearest_hold_beside_many_others),
        cmocka_unit_test(what_is_replayed_holds_beside_many_others),
        cmocka_unit_test(what_was_learned_before_is_held),
        cmocka_unit_test(the_same_events_give_the_same_content),
        cmocka_unit_test(a_reward_and_its_opposite_turn_the_first_step),
        cmocka_unit_test(answers_are_those_of_one_at_a_time),
        cmocka_unit_test(what_differs_is_found),
        cmocka_unit_test(each_reason_refuses_by_its_name),
        cmocka_unit_test(what_is_refused_is_not_written),
    };
    return cmocka_run_group_tests(tests, begin, remove_folder);
}
