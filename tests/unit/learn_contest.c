// SPDX-License-Identifier: Apache-2.0
/* learn_contest.c: of those that know the same corrections the best by the gate wins (learn/contest.h), on tiny models
 * and, with a teacher (learn/distil.h), on the model of our own: the same again gives the same content. */
#include "learn_lesson.h"

#include <math.h>

#include "learn/contest.h"
#include "learn/distil.h"
#include "train/base.h"

#define MODEL "models/alderbrook.gguf"

/* ---- the rule ---- */

static weft__gate_report report(int passed, int32_t corrections, int32_t paraphrases, double kl)
{
    return (weft__gate_report){
        .passed = passed, .corrections = corrections, .n_corrections = 9, .paraphrases = paraphrases, .kl = kl};
}

static void the_rule_is_by_gate_then_corrections_then_words_then_kl(void **state)
{
    (void)state;
    static const struct {
        int a[3], b[3];
        double kl_a, kl_b;
        int order;
        const char *why;
    } cases[] = {
        {{1, 2, 0}, {0, 9, 9}, 0.9, 0.1, 1, "gate"},
        {{1, 9, 0}, {1, 8, 9}, 0.9, 0.1, 1, "corrections"},
        {{1, 9, 3}, {1, 9, 4}, 0.1, 0.9, -1, "paraphrases"},
        {{1, 9, 4}, {1, 9, 4}, 0.1, 0.9, 1, "kl"},
        {{1, 9, 4}, {1, 9, 4}, 0.1, 0.1, 0, ""},
        {{0, 9, 4}, {0, 8, 4}, 0.1, 0.2, 0, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int *x = cases[i].a, *y = cases[i].b;
        const weft__gate_report a = report(x[0], x[1], x[2], cases[i].kl_a),
                                b = report(y[0], y[1], y[2], cases[i].kl_b);
        const char *why;
        assert_int_equal(weft__contest_compare(&a, &b, &why), cases[i].order);
        assert_string_equal(why, cases[i].why);
        assert_int_equal(weft__contest_compare(&b, &a, NULL), -cases[i].order);
    }
    const weft__contest_entry all[] = {{.gate = report(1, 9, 2, 0.2)},
                                       {.gate = report(0, 9, 9, 0)},
                                       {.gate = report(1, 9, 2, 0.1)},
                                       {.gate = report(1, 9, 2, 0.1)}};
    assert_int_equal(weft__contest_best(all, 0), -1);
    assert_int_equal(weft__contest_best(all, 2), 0); /* nothing refused takes its place */
    assert_int_equal(weft__contest_best(all, 4), 2); /* of equal ones the first */
}

/* ---- contests ---- */

static weft__adapt *opened(const char *file)
{
    weft__adapt *a;
    assert_int_equal(weft__adapt_open(file, NULL, UINT64_MAX, &a, NULL), WEFT_OK);
    return a;
}

/* What the lesson's events make of the base. */
static weft__adapt *taught(lesson *l)
{
    weft__teach_report r;
    if (weft__teach(&l->task, &l->o, &r, &l->err)) fail_msg("%s", l->err.message);
    assert_true(r.gate.passed);
    weft__adapt *a = opened(path);
    unlink(path);
    return a;
}

static weft__contest_result held(lesson *l, const weft__adapt *now)
{
    const weft__contest_task task = {.teach = l->task, .options = &l->o, .now = now, .now_goes_on = 1};
    weft__contest_result r;
    if (weft__contest_hold(&task, &r, &l->err)) fail_msg("%s", l->err.message);
    assert_int_equal(access(path, F_OK) == 0, r.won);
    if (r.won) {
        weft__adapt *a = opened(path);
        assert_memory_equal(&a->id, &r.id, sizeof r.id);
        weft__adapt_close(&a);
        unlink(path);
    }
    return r;
}

/* The same with as much rank again, of small changes that nobody asked for. */
static weft__adapt *grown(const weft__adapt *a, float size)
{
    const weft__adapt_mix mix = {.method = WEFT__ADAPT_CAT, .density = 1};
    weft__adapt noise = *a, *out;
    weft__adapt_pair pairs[16];
    float *values[16][2];
    weft__rng rng;
    assert_true(a->n_pairs <= 16);
    weft__rng_seed(&rng, 5);
    for (int32_t i = 0; i < a->n_pairs; i++) {
        pairs[i] = a->pairs[i];
        const size_t n[2] = {(size_t)(pairs[i].rank * pairs[i].k), (size_t)(pairs[i].rank * pairs[i].n)};
        for (int half = 0; half < 2; half++) {
            values[i][half] = weft__alloc_array(n[half], sizeof *values[i][half]);
            for (size_t v = 0; v < n[half]; v++) values[i][half][v] = size * (float)weft__rng_normal(&rng);
        }
        pairs[i].a = values[i][0];
        pairs[i].b = values[i][1];
    }
    noise.pairs = pairs;
    const weft__adapt_use uses[] = {{a, 1}, {&noise, 1}};
    assert_int_equal(weft__adapt_merge(uses, 2, &mix, &out, NULL), WEFT_OK);
    for (int32_t i = 0; i < a->n_pairs; i++) weft__free(values[i][0]), weft__free(values[i][1]);
    return out;
}

static int says(const char *text, const char *part)
{
    if (!strstr(text, part)) print_error("'%s' says nothing of '%s'\n", text, part);
    return strstr(text, part) != NULL;
}

/* On any number of threads, and where nobody else passes. */
static void who_has_grown_is_compressed(void **state)
{
    (void)state;
    lesson l;
    lesson_open(&l);
    weft__adapt *a = taught(&l), *now = grown(a, 0.1f);
    assert_int_equal(now->pairs[0].rank, 16);
    l.o.most_steps = 0; /* it learns nothing */
    const weft__contest_result r = held(&l, now);
    assert_true(says(r.why, "by kl: compressed to rank ") && says(r.why, "; current: 1 of 1, KL "));
    assert_true(says(r.why, "; retrained: not_learned"));
    assert_true(r.won && !strcmp(r.best.by, "compressed") && r.best.rank > 0 && r.best.rank <= 8);
    assert_true(r.best.gate.passed && r.best.gate.corrections == 1);
    l.o.n_threads = 2;
    const weft__contest_result again = held(&l, now);
    assert_memory_equal(&again.id, &r.id, sizeof r.id);
    assert_string_equal(again.why, r.why);
    weft__adapt_close(&now);
    weft__adapt_close(&a);
    lesson_close(&l);
}

/* Of rank 1, which nothing is compressed to: what was taught, half as much again, and nothing. */
static void who_is_nearer_to_the_base_wins(void **state)
{
    (void)state;
    lesson l;
    lesson_open(&l);
    l.o.rank = 1;
    l.o.alpha = 1;
    const weft__adapt_mix mix = {.method = WEFT__ADAPT_CAT, .density = 1};
    weft__adapt *a = taught(&l), *more;
    const weft__adapt_use use = {a, 1.5f};
    assert_int_equal(weft__adapt_merge(&use, 1, &mix, &more, NULL), WEFT_OK);
    const weft__contest_result r = held(&l, more), alone = held(&l, NULL), same = held(&l, a);
    assert_true(r.won && !strcmp(r.best.by, "retrained") && says(r.why, "by kl: retrained: 1 of 1"));
    assert_memory_equal(&r.id, &a->id, sizeof r.id);
    assert_true(alone.won && says(alone.why, "by none: retrained: 1 of 1"));
    assert_memory_equal(&alone.id, &a->id, sizeof r.id);
    assert_true(!same.won && says(same.why, "by none: current: 1 of 1")); /* what is no better takes no place */
    assert_true(!same.best.gate.passed && same.best.gate.reason == WEFT__GATE_NOT_BETTER);
    weft__adapt_close(&more);
    weft__adapt_close(&a);
    lesson_close(&l);
}

static void who_is_refused_wins_nothing(void **state)
{
    (void)state;
    lesson l;
    lesson_open(&l);
    weft__adapt *a = taught(&l);
    l.judge.bounds.kl = l.judge.bounds.kl_later = 0;
    weft__contest_result r = held(&l, a);
    assert_true(!r.won && says(r.why, "by none: current: kl; retrained: kl; compressed to rank 4: kl"));
    assert_true(!strcmp(r.best.by, "retrained") && r.best.gate.reason == WEFT__GATE_KL);
    l.judge.bounds.kl = 10; /* where the current one is refused and another is not, that is better, whatever its KL */
    r = held(&l, a);
    assert_true(r.won && says(r.why, "by gate: retrained: 1 of 1"));
    weft__adapt_close(&a);
    lesson_close(&l);
}

/* ---- a teacher ---- */

/* A task over the model of our own: a correction that it says anyway, beside an answer that stays. */
typedef struct school {
    weft__train_base base;
    weft__teach_texts own, kept;
    weft__teach_event event;
    weft__gate_material judge;
    weft__teach_options o;
    weft__contest_task task;
} school;

static void add_question(const school *s, weft__teach_texts *out, const char *question)
{
    char text[160];
    weft__tok_ids ids = {0};
    snprintf(text, sizeof text, "<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n", question);
    assert_int_equal(weft__tok_encode(s->base.tok, text, strlen(text), WEFT__TOK_ENCODE_PARSE, &ids, NULL), WEFT_OK);
    assert_true(weft__teach_texts_add(out, ids.data, (int32_t)ids.n, NULL, 0, -1));
    weft__tok_ids_free(&ids);
}

/* What it says itself. */
static void ask_base(school *s)
{
    weft__train_options t;
    weft__trainer *trainer = NULL;
    weft__teach_texts questions = {0};
    weft__train_options_default(&t);
    t.n_threads = 1;
    t.max_rows = 256;
    t.lora_rank = 1;
    t.schedule = WEFT__TRAIN_LR_CONSTANT;
    assert_int_equal(weft__trainer_create(&s->base.source, &t, &trainer, NULL), WEFT_OK);
    add_question(s, &questions, "What is Bram afraid of?");
    add_question(s, &questions, "Where does Tobin live?");
    assert_int_equal(weft__teach_answer(trainer, s->base.tok, questions.text, 1, 64, &s->own, NULL), WEFT_OK);
    assert_int_equal(weft__teach_answer(trainer, s->base.tok, questions.text + 1, 1, 64, &s->kept, NULL), WEFT_OK);
    weft__trainer_destroy(&trainer);
    weft__teach_texts_free(&questions);
}

static void school_open(school *s)
{
    static const weft__train_base_overrides none = {NULL, NULL};
    *s = (school){0};
    assert_int_equal(weft__train_base_open(&s->base, MODEL, 0, &none, NULL), WEFT_OK);
    ask_base(s);
    s->event = (weft__teach_event){.correction = s->own.text[0]};
    s->judge.bounds = (weft__gate_bounds){.p = 0.1f, .least = -99, .kl = 10, .kl_later = 10, .norm = 10};
    weft__teach_options_default(&s->o);
    s->o.n_threads = 1;
    s->o.rank = 1;
    s->o.alpha = 1;
    s->o.targets = "ffn_down@5";
    s->o.lr = 1e-4f;
    s->o.most_steps = 3;
    s->o.stop_at = 0; /* nothing is as certain as that: all steps are made */
    s->o.attempts = 1;
    s->task = (weft__contest_task){.teach = {.base = &s->base.source,
                                             .tok = s->base.tok,
                                             .events = &s->event,
                                             .n_events = 1,
                                             .neighbours = s->kept.text,
                                             .n_neighbours = (int32_t)s->kept.n,
                                             .judge = &s->judge,
                                             .path = path,
                                             .name = "mine"},
                                   .options = &s->o,
                                   .teacher = MODEL,
                                   .pupil = MODEL};
}

static void school_close(school *s)
{
    weft__teach_texts_free(&s->own);
    weft__teach_texts_free(&s->kept);
    weft__train_base_close(&s->base);
    unlink(path);
}

/* It takes part, with another content than who has no teacher; the same again. */
static void who_has_a_teacher_takes_part(void **state)
{
    (void)state;
    school s;
    weft_error err = {0};
    weft__contest_result r, again;
    weft__teach_report alone, told;
    school_open(&s);
    assert_int_equal(weft__teach(&s.task.teach, &s.o, &alone, NULL), WEFT_OK);
    assert_true(alone.gate.passed && alone.n_steps == 3);
    if (weft__contest_hold(&s.task, &r, &err)) fail_msg("%s", err.message);
    assert_true(r.won && r.best.n_steps == 3);
    assert_true(says(r.why, "retrained: 1 of 1") && says(r.why, "distilled: 1 of 1"));
    s.o.n_threads = 2;
    assert_int_equal(weft__contest_hold(&s.task, &again, NULL), WEFT_OK);
    assert_memory_equal(&again.id, &r.id, sizeof r.id);
    assert_string_equal(again.why, r.why);
    weft__distil *d = NULL;
    assert_int_equal(weft__distil_open(MODEL, MODEL, 128, 2048, 1, &d, NULL), WEFT_OK);
    s.o.soften = weft__distil_soften;
    s.o.soften_arg = d;
    assert_int_equal(weft__teach(&s.task.teach, &s.o, &told, NULL), WEFT_OK);
    assert_memory_not_equal(&told.id, &alone.id, sizeof told.id);
    s.o.soften = NULL;
    weft__distil_close(&d);
    s.task.teach.n_neighbours = 0; /* of what is kept nothing is there: the teacher has nothing to say */
    assert_int_equal(weft__contest_hold(&s.task, &again, NULL), WEFT_OK);
    assert_null(strstr(again.why, "distilled"));
    school_close(&s);
}

/* Rows of answers that are kept have the teacher's words, by their weight; others stay as they are. */
static void a_teacher_speaks_of_what_is_kept_alone(void **state)
{
    (void)state;
    static const int32_t token[] = {10, 11, 12, 13, 14, 15}, segment[] = {0, 0, 0, 1, 1, 1},
                         target[] = {-1, 12, 13, -1, 15, 16};
    static const float weight[] = {0, 0.5f, 0.25f, 0, 0, 0};
    weft__train_batch b = {.n_rows = 6, .token = token, .segment = segment, .target = target, .weight = weight};
    weft__distil *d = NULL;
    assert_int_equal(weft__distil_open(MODEL, MODEL, 8, 6, 1, &d, NULL), WEFT_OK);
    assert_int_equal(weft__distil_soften(d, &b, NULL), WEFT_OK);
    assert_true(fabs(b.count - 2.75) < 1e-6); /* what is held to the base alone counts 1, as without a teacher */
    assert_ptr_equal(b.target, target);
    for (int r = 0; r < 6; r++) {
        double sum = 0;
        assert_int_equal(b.top[r].n, weight[r] > 0 ? 64 : 0);
        for (int i = 0; i < b.top[r].n; i++) sum += (double)b.top[r].p[i];
        if (weight[r] > 0) assert_true(fabs(sum - 1) < 1e-5 && b.top[r].weight == weight[r]);
        assert_true(b.weight[r] == 0);
    }
    b = (weft__train_batch){.n_rows = 7};
    assert_int_equal(weft__distil_soften(d, &b, NULL), WEFT_LIMIT);
    weft__distil_close(&d);
}

static int begin(void **state)
{
    (void)state;
    return folder_make("adapter.gguf");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rule_is_by_gate_then_corrections_then_words_then_kl),
        cmocka_unit_test(who_has_grown_is_compressed),
        cmocka_unit_test(who_is_nearer_to_the_base_wins),
        cmocka_unit_test(who_is_refused_wins_nothing),
        cmocka_unit_test(who_has_a_teacher_takes_part),
        cmocka_unit_test(a_teacher_speaks_of_what_is_kept_alone),
    };
    return cmocka_run_group_tests(tests, begin, remove_folder);
}
