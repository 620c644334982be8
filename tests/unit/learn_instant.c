// SPDX-License-Identifier: Apache-2.0
/* learn_instant.c: a correction in one step (learn/instant.h) behind the gate: what it passes is written, the same
 * again gives the same content and goes on from a version, and what it refuses is never there. */
#include "learn_lesson.h"

#include "learn/instant.h"

static void lesson_instant(lesson *l)
{
    lesson_open(l);
    l->event.n_paraphrases = 0;
    l->o.instant = 2;
    l->o.hold_at = -1.6f;
}

static weft__teach_report taught(lesson *l)
{
    weft__teach_report r;
    if (weft__teach(&l->task, &l->o, &r, &l->err)) fail_msg("%s", l->err.message);
    return r;
}

static weft__adapt *written(void)
{
    weft__adapt *a = NULL;
    assert_int_equal(weft__adapt_open(path, NULL, UINT64_MAX, &a, NULL), WEFT_OK);
    return a;
}

/* One matrix, and the token that differs comes out of it. */
static void a_passed_step_changes_one_matrix(void **state)
{
    (void)state;
    lesson l;
    lesson_instant(&l);
    const weft__teach_report r = taught(&l);
    if (!r.gate.passed || !r.came_out || r.n_steps != 1 || r.n_attempts != 1 || !(r.scale > 0))
        fail_msg("%s, at %g", weft__gate_reason_name(r.gate.reason), (double)r.scale);
    assert_true(r.pass_s > 0 && r.step_s > 0 && r.gate.kl > 0 && r.gate.norm > 0);
    weft__adapt *a = written();
    assert_int_equal(a->n_pairs, 1);
    assert_string_equal(a->pairs[0].name, "blk.1.ffn_down.weight");
    assert_int_equal(a->pairs[0].rank, 2);
    weft__adapt_close(&a);
    lesson_close(&l);
}

static void the_same_correction_gives_the_same_content(void **state)
{
    (void)state;
    lesson l;
    lesson_instant(&l);
    const weft__teach_report first = taught(&l);
    l.o.n_threads = 3;
    const weft__teach_report again = taught(&l);
    assert_true(first.gate.passed && (first.id.word[0] || first.id.word[1]));
    assert_memory_equal(&first.id, &again.id, sizeof first.id);
    lesson_close(&l);
}

/* The parent's pair stands first in the matrix's pair, as it was. */
static void it_goes_on_from_a_version(void **state)
{
    (void)state;
    lesson l;
    weft__teach_texts next = {0};
    lesson_instant(&l);
    assert_true(taught(&l).gate.passed);
    weft__adapt *parent = written();
    add_text(&next, 7, 3);
    l.event.correction = next.text[0];
    for (int i = 0; i < 3; i++) l.wrong[i] = next.text[0].ids[8 + i] ^ (i == 0); /* it is said at once */
    l.task.parent = parent;
    l.judge.goes_on = 1;
    const weft__teach_report r = taught(&l);
    if (!r.gate.passed) fail_msg("%s", weft__gate_reason_name(r.gate.reason));
    weft__adapt *a = written();
    assert_int_equal(a->n_pairs, 1);
    assert_int_equal(a->pairs[0].rank, 4);
    assert_memory_equal(a->pairs[0].a, parent->pairs[0].a, (size_t)(2 * a->pairs[0].k) * sizeof(float));
    for (int64_t i = 0; i < a->pairs[0].n; i++)
        for (int k = 0; k < 2; k++)
            assert_true(fabsf(a->pairs[0].scale * a->pairs[0].b[i * 4 + k] -
                              parent->pairs[0].scale * parent->pairs[0].b[i * 2 + k]) <= 1e-7f);
    weft__adapt_close(&a);
    weft__adapt_close(&parent);
    weft__teach_texts_free(&next);
    lesson_close(&l);
}

static void what_is_refused_is_not_written(void **state)
{
    (void)state;
    lesson l;
    lesson_instant(&l);
    l.judge.bounds.kl = 0;
    const weft__teach_report r = taught(&l);
    assert_int_equal(r.gate.reason, WEFT__GATE_KL);
    assert_true(!r.gate.passed && access(path, F_OK) != 0 && files_in_folder() == 0);
    l.task.n_events = 0;
    weft__teach_report none;
    assert_int_equal(weft__teach(&l.task, &l.o, &none, NULL), WEFT_ARGUMENT);
    lesson_close(&l);
}

/* Off by default. */
static void nobody_gets_it_unasked(void **state)
{
    (void)state;
    weft__teach_options o;
    weft__teach_options_default(&o);
    assert_int_equal(o.instant, 0);
}

static int begin(void **state)
{
    (void)state;
    return folder_make("adapter.gguf");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_passed_step_changes_one_matrix),
        cmocka_unit_test(the_same_correction_gives_the_same_content),
        cmocka_unit_test(it_goes_on_from_a_version),
        cmocka_unit_test(what_is_refused_is_not_written),
        cmocka_unit_test(nobody_gets_it_unasked),
    };
    return cmocka_run_group_tests(tests, begin, remove_folder);
}
