// SPDX-License-Identifier: Apache-2.0
/* learn_loop.c: learning beside serving (learn/teach_loop.h) on a tiny model: what comes in becomes versions, the same
 * again gives the same contents, nobody's events are another's, and going back goes on from there. */
#include "learn_loop_room.h"

#include "base/clock.h"

static void keep(room *r, const char *tenant, uint64_t seed)
{
    weft__teach_texts t = {0};
    add_text(&t, seed, 3);
    assert_int_equal(weft__teach_loop_keep(r->loop, tenant, "mine", &t.text[0], NULL), WEFT_OK);
    weft__teach_texts_free(&t);
}

static void same_rows(const room *a, const room *b, const char *tenant)
{
    int i = 0, k = 0, n = 0;
    for (;; i++, k++, n++) {
        while (i < a->s.n && strcmp(a->s.row[i].tenant, tenant)) i++;
        while (k < b->s.n && strcmp(b->s.row[k].tenant, tenant)) k++;
        if (i == a->s.n || k == b->s.n) break;
        assert_memory_equal(&a->s.row[i], &b->s.row[k], sizeof a->s.row[i]);
    }
    assert_true(i == a->s.n && k == b->s.n && n > 0);
}

/* Two tenants' corrections, in turns and beside requests; and one after the other. */
static void the_same_log_gives_the_same_contents(void **state)
{
    (void)state;
    lesson l;
    room a, b;
    char content[4][WEFT__VERSION_CONTENT];
    lesson_open(&l);
    room_open(&a, &l, 0.5f);
    atomic_store(&a.s.busy, 1);
    keep(&a, "ann", 50);
    put(&a, "ann", 1, 1);
    put(&a, "bob", 2, 2);
    put(&a, "ann", 3, 3);
    weft__teach_loop_wait(a.loop);
    assert_int_equal(now(&a, "ann", content[0]), 2);
    assert_int_equal(now(&a, "bob", content[1]), 1);
    assert_int_equal(now(&a, "eve", NULL), 0);
    assert_string_not_equal(content[0], content[1]);
    room_open(&b, &l, 0.5f);
    put(&b, "bob", 2, 2);
    keep(&b, "ann", 50);
    put(&b, "ann", 1, 1);
    put(&b, "ann", 3, 3);
    weft__teach_loop_wait(b.loop);
    now(&b, "ann", content[2]);
    now(&b, "bob", content[3]);
    assert_string_equal(content[0], content[2]);
    assert_string_equal(content[1], content[3]);
    same_rows(&a, &b, "ann");
    same_rows(&a, &b, "bob");
    assert_int_equal(a.s.n_published, 3);
    room_close(&b);
    room_close(&a);
    lesson_close(&l);
}

/* Anew from the base it learned these events; compressed it is the version before, and learned none. */
static void is_consolidated(const weft__version_row *row, int64_t version, int64_t before, int64_t first, int64_t last)
{
    const int is_same = !strcmp(row->by, "compressed");
    assert_true(is_same || !strcmp(row->by, "retrained"));
    assert_true(row->version == version && row->parent == (is_same ? before : 0));
    assert_true(row->first_event == (is_same ? 0 : first) && row->last_event == (is_same ? 0 : last));
    assert_true(row->what == WEFT__VERSION_PUBLISHED || !strcmp(row->reason, "kl"));
    assert_int_equal(row->what == WEFT__VERSION_PUBLISHED, !strstr(row->why, ": current: "));
}

static int32_t rank_of(room *r, const char *tenant, int64_t version)
{
    char full[WEFT__VERSION_FULL_NAME], file[4096];
    weft__adapt *a = NULL;
    weft__version_write_name("mine", version, full);
    assert_int_equal(place(&r->s, tenant, full, file, NULL), WEFT_OK);
    assert_int_equal(weft__adapt_open(file, NULL, UINT64_MAX, &a, NULL), WEFT_OK);
    const int32_t rank = a->pairs[0].rank;
    weft__adapt_close(&a);
    return rank;
}

/* From a version that was gone back to, another way leads on; consolidation learns all that the version knows. */
static void going_back_goes_on_from_there(void **state)
{
    (void)state;
    lesson l;
    room r;
    int64_t at;
    char first[WEFT__VERSION_CONTENT], again[WEFT__VERSION_CONTENT];
    weft__teach_loop_stats stats;
    lesson_open(&l);
    room_open(&r, &l, 1);
    weft__versions *v = weft__teach_loop_versions(r.loop);
    put(&r, "ann", 1, 1);
    weft__teach_loop_wait(r.loop);
    assert_int_equal(now(&r, "ann", first), 1);
    assert_int_equal(weft__versions_roll_back(v, "ann", "mine", -1, &at, NULL), WEFT_OK);
    put(&r, "ann", 1, 2); /* the same, from the same base */
    weft__teach_loop_wait(r.loop);
    assert_int_equal(now(&r, "ann", again), 2);
    assert_string_equal(first, again);
    assert_int_equal(r.s.row[r.s.n - 1].parent, 0);
    put(&r, "ann", 3, 3);
    assert_int_equal(weft__teach_loop_consolidate(r.loop, "ann", "mine", NULL), WEFT_OK);
    assert_int_equal(weft__teach_loop_consolidate(r.loop, "bob", "mine", NULL), WEFT_OK); /* who has nothing */
    weft__teach_loop_wait(r.loop);
    const weft__version_row *last = &r.s.row[r.s.n - 1];
    const int64_t now_was = now(&r, "ann", NULL);
    is_consolidated(last, 4, 3, 2, 3);
    assert_true(strstr(last->why, "of 2, KL"));
    put(&r, "ann", 5, 4); /* from there it goes on, and each correction is known once */
    assert_int_equal(weft__teach_loop_consolidate(r.loop, "ann", "mine", NULL), WEFT_OK);
    weft__teach_loop_wait(r.loop);
    last = &r.s.row[r.s.n - 1];
    assert_true(last[-1].what == WEFT__VERSION_PUBLISHED && last[-1].version == 5 && last[-1].parent == now_was);
    assert_int_equal(rank_of(&r, "ann", 5), 8);
    is_consolidated(last, 6, 5, 2, 4);
    assert_true(strstr(last->why, "of 3, KL"));
    weft__teach_loop_get_stats(r.loop, &stats);
    assert_int_equal(stats.n_failed, 0);
    assert_int_equal(stats.by_reason[WEFT__GATE_PASSED] + stats.by_reason[WEFT__GATE_KL], 6);
    room_close(&r);
    lesson_close(&l);
}

/* What is refused, or cannot be published, leaves the version that there was. */
static void what_is_refused_changes_nothing(void **state)
{
    (void)state;
    lesson l;
    room r;
    weft__teach_loop_stats stats;
    lesson_open(&l);
    l.judge.bounds.kl = 0;
    room_open(&r, &l, 1);
    put(&r, "ann", 1, 1);
    weft__teach_loop_wait(r.loop);
    assert_int_equal(now(&r, "ann", NULL), 0);
    assert_string_equal(r.s.row[0].reason, "kl");
    weft__teach_loop_get_stats(r.loop, &stats);
    assert_int_equal(stats.by_reason[WEFT__GATE_KL], 1);
    room_close(&r);
    l.judge.bounds.kl = 10;
    room_open(&r, &l, 1);
    r.s.fails = 1;
    put(&r, "ann", 1, 1);
    weft__teach_loop_wait(r.loop);
    weft__teach_loop_get_stats(r.loop, &stats);
    assert_true(now(&r, "ann", NULL) == 0 && r.s.n == 0 && stats.n_failed == 1 && strstr(stats.fault, "no room"));
    room_close(&r);
    lesson_close(&l);
}

/* What the gate refuses by itself is learned in a consolidation, beside what is known, where the gate lets that pass;
 * the row says so, and again after going back, with the same content. One to a question whose answer is known is not
 * tried. */
static void what_was_refused_comes_in_with_others(void **state)
{
    (void)state;
    lesson l;
    room r;
    int64_t at;
    char first[WEFT__VERSION_CONTENT], again[WEFT__VERSION_CONTENT];
    lesson_open(&l);
    l.judge.bounds.kl_later = 0; /* nothing may go on from another */
    room_open(&r, &l, 1);
    put(&r, "ann", 1, 1);
    put(&r, "ann", 3, 2);
    put(&r, "ann", 1, 3); /* what is known already in the same words: no candidate */
    weft__teach_loop_wait(r.loop);
    assert_true(r.s.n == 3 && now(&r, "ann", NULL) == 1);
    assert_string_equal(r.s.row[1].reason, "kl");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weft__teach_loop_consolidate(r.loop, "ann", "mine", NULL), WEFT_OK);
        weft__teach_loop_wait(r.loop);
        const weft__version_row *last = &r.s.row[r.s.n - 1];
        assert_true(last->what == WEFT__VERSION_PUBLISHED && last->parent == 0);
        assert_string_equal(last->by, "retried");
        assert_true(strstr(last->why, "by corrections: retried: 2 of 2") == last->why);
        assert_true(last->n_came_in == 1 && last->came_in[0] == 2 && last->first_event == 1 && last->last_event == 2);
        now(&r, "ann", i ? again : first);
        if (i) break;
        assert_int_equal(weft__teach_loop_consolidate(r.loop, "ann", "mine", NULL), WEFT_OK); /* it is in already */
        weft__teach_loop_wait(r.loop);
        assert_null(strstr(r.s.row[r.s.n - 1].why, "retried"));
        assert_true(strstr(r.s.row[r.s.n - 1].why, "of 2, KL") != NULL);
        assert_int_equal(weft__versions_roll_back(weft__teach_loop_versions(r.loop), "ann", "mine", 1, &at, NULL),
                         WEFT_OK);
    }
    assert_string_equal(first, again);
    room_close(&r);
    lesson_close(&l);
}

/* Asked for while one is in work, a consolidation would find the same; behind a correction it finds more. */
static void one_consolidation_is_in_work(void **state)
{
    (void)state;
    lesson l;
    room r;
    lesson_open(&l);
    room_open(&r, &l, 0);
    put(&r, "ann", 1, 1);
    weft__teach_loop_wait(r.loop);
    atomic_store(&r.s.busy, 1);
    const int n_asked = atomic_load(&r.s.n_asked);
    assert_int_equal(weft__teach_loop_consolidate(r.loop, "ann", "mine", NULL), WEFT_OK);
    while (atomic_load(&r.s.n_asked) == n_asked) nanosleep(&(struct timespec){0, 100000}, NULL);
    assert_int_equal(weft__teach_loop_consolidate(r.loop, "ann", "mine", NULL), WEFT_OK);
    assert_int_equal(weft__teach_loop_waiting(r.loop, "ann"), 1);
    put(&r, "ann", 3, 2);
    assert_int_equal(weft__teach_loop_consolidate(r.loop, "ann", "mine", NULL), WEFT_OK);
    assert_int_equal(weft__teach_loop_waiting(r.loop, "ann"), 3);
    atomic_store(&r.s.busy, 0);
    weft__teach_loop_wait(r.loop);
    room_close(&r);
    lesson_close(&l);
}

/* Of whom is forgotten nothing is left, and what is being learned for it is given up; others' stays. */
static void who_is_forgotten_begins_anew(void **state)
{
    (void)state;
    lesson l;
    room r;
    char first[WEFT__VERSION_CONTENT], again[WEFT__VERSION_CONTENT];
    weft__teach_loop_stats stats;
    lesson_open(&l);
    room_open(&r, &l, 0);
    put(&r, "ann", 1, 1);
    put(&r, "bob", 2, 2);
    weft__teach_loop_wait(r.loop);
    assert_int_equal(now(&r, "ann", NULL), 1);
    atomic_store(&r.s.busy, 1);
    const int n_asked = atomic_load(&r.s.n_asked);
    atomic_store(&r.s.patience, n_asked + 2000);
    put(&r, "ann", 3, 3);
    while (atomic_load(&r.s.n_asked) == n_asked) nanosleep(&(struct timespec){0, 100000}, NULL);
    put(&r, "bob", 4, 4);
    put(&r, "ann", 5, 5);
    assert_int_equal(weft__teach_loop_waiting(r.loop, "ann"), 2);
    assert_int_equal(weft__teach_loop_waiting(r.loop, "bob"), 1);
    weft__teach_loop_forget(r.loop, "ann");                   /* while it waits for an idle moment */
    assert_true(atomic_load(&r.s.n_asked) <= n_asked + 2000); /* which it was not given */
    assert_int_equal(weft__teach_loop_waiting(r.loop, "ann"), 0);
    assert_int_equal(weft__teach_loop_waiting(r.loop, "bob"), 1);
    assert_int_equal(now(&r, "ann", NULL), 0);
    assert_int_equal(weft__versions_next(weft__teach_loop_versions(r.loop), "ann", "mine"), 1);
    atomic_store(&r.s.busy, 0);
    put(&r, "ann", 1, 6);
    put(&r, "ann", 3, 7);
    put(&r, "eve", 1, 8); /* who was not there before */
    put(&r, "eve", 3, 9);
    weft__teach_loop_wait(r.loop);
    assert_int_equal(now(&r, "ann", first), 2);
    assert_int_equal(now(&r, "eve", again), 2);
    assert_string_equal(first, again); /* nothing of before is replayed */
    assert_int_equal(now(&r, "bob", NULL), 2);
    weft__teach_loop_get_stats(r.loop, &stats);
    assert_true(stats.n_failed == 0 && stats.n_waiting == 0);
    room_close(&r);
    lesson_close(&l);
}

/* Who goes back while a version is made is not overruled by it: it goes on from where that led. */
static void going_back_meanwhile_holds(void **state)
{
    (void)state;
    lesson l;
    room r;
    int64_t at;
    lesson_open(&l);
    room_open(&r, &l, 0);
    put(&r, "ann", 1, 1);
    weft__teach_loop_wait(r.loop);
    assert_int_equal(now(&r, "ann", NULL), 1);
    atomic_store(&r.s.busy, 1);
    const int n_asked = atomic_load(&r.s.n_asked);
    put(&r, "ann", 3, 2);
    while (atomic_load(&r.s.n_asked) == n_asked) nanosleep(&(struct timespec){0, 100000}, NULL);
    put(&r, "bob", 4, 3);
    assert_int_equal(weft__versions_roll_back(weft__teach_loop_versions(r.loop), "ann", "mine", 0, &at, NULL), WEFT_OK);
    atomic_store(&r.s.busy, 0);
    weft__teach_loop_wait(r.loop);
    const weft__version_row *last = &r.s.row[r.s.n - 1];
    assert_true(last->what == WEFT__VERSION_PUBLISHED && last->version == 2 && last->parent == 0);
    assert_string_equal(last[0].tenant, "ann");
    assert_string_equal(last[-1].tenant, "bob"); /* nobody waits for who goes to and fro */
    assert_int_equal(now(&r, "ann", NULL), 2);
    room_close(&r);
    lesson_close(&l);
}

/* What the gate let pass, and then refuses as people went to another version meanwhile, leaves no file. */
static void what_is_refused_after_all_leaves_no_file(void **state)
{
    (void)state;
    lesson l;
    room r;
    int64_t at;
    char file[4096];
    lesson_open(&l);
    l.judge.bounds.kl_later = 0; /* nothing may go on from another */
    room_open(&r, &l, 0);
    weft__versions *versions = weft__teach_loop_versions(r.loop);
    put(&r, "ann", 1, 1);
    weft__teach_loop_wait(r.loop);
    assert_int_equal(weft__versions_roll_back(versions, "ann", "mine", 0, &at, NULL), WEFT_OK);
    r.s.goes_back_in = versions;
    put(&r, "ann", 3, 2);
    weft__teach_loop_wait(r.loop);
    assert_true(r.s.row[r.s.n - 1].what == WEFT__VERSION_REJECTED && r.s.row[r.s.n - 1].version == 2);
    assert_int_equal(r.s.n_published, 2); /* it was there */
    place(&r.s, "ann", "mine@2", file, NULL);
    assert_int_not_equal(access(file, F_OK), 0);
    room_close(&r);
    lesson_close(&l);
}

/* Answers that stay take no room from corrections. */
static void answers_that_stay_fill_no_queue(void **state)
{
    (void)state;
    lesson l;
    room r;
    weft__teach_texts t = {0};
    lesson_open(&l);
    room_open(&r, &l, 0);
    atomic_store(&r.s.busy, 1);
    add_text(&t, 1, 3);
    const weft__teach_event e = {.correction = t.text[0]};
    for (int i = 0; i < 2 * WEFT__TEACH_WAITING; i++) keep(&r, "ann", 50 + (uint64_t)i);
    for (int i = 1; i <= WEFT__TEACH_WAITING_OF_ONE; i++)
        assert_int_equal(weft__teach_loop_put(r.loop, "ann", "mine", i, &e, NULL), WEFT_OK);
    assert_int_equal(weft__teach_loop_put(r.loop, "ann", "mine", 9999, &e, NULL), WEFT_BUSY);
    for (int i = WEFT__TEACH_WAITING_OF_ONE; i < WEFT__TEACH_WAITING; i++) { /* nor does she take the others' */
        char tenant[16];
        snprintf(tenant, sizeof tenant, "t%d", i / WEFT__TEACH_WAITING_OF_ONE);
        assert_int_equal(weft__teach_loop_put(r.loop, tenant, "mine", i, &e, NULL), WEFT_OK);
    }
    assert_int_equal(weft__teach_loop_put(r.loop, "bob", "mine", 9998, &e, NULL), WEFT_OK); /* each may have one */
    assert_int_equal(weft__teach_loop_put(r.loop, "bob", "mine", 9999, &e, NULL), WEFT_BUSY);
    weft__teach_loop_forget(r.loop, "t1");
    assert_int_equal(weft__teach_loop_waiting(r.loop, "t1"), 0);
    assert_int_equal(weft__teach_loop_put(r.loop, "bob", "mine", 9999, &e, NULL), WEFT_OK);
    weft__teach_texts_free(&t);
    room_close(&r);
    lesson_close(&l);
}

/* Who has much to be learned keeps nobody from theirs. */
static void each_tenant_has_its_turn(void **state)
{
    static const char *const order[] = {"ann", "bob", "ann", "ann"};
    (void)state;
    lesson l;
    room r;
    lesson_open(&l);
    room_open(&r, &l, 0);
    atomic_store(&r.s.busy, 1);
    for (int i = 1; i <= 3; i++) put(&r, "ann", (uint64_t)i, i);
    keep(&r, "eve", 50);
    put(&r, "bob", 4, 4);
    assert_int_equal(weft__teach_loop_waiting(r.loop, "ann"), 3);
    assert_int_equal(weft__teach_loop_waiting(r.loop, "bob"), 1);
    atomic_store(&r.s.busy, 0);
    weft__teach_loop_wait(r.loop);
    assert_int_equal(r.s.n, 4);
    for (int i = 0; i < 4; i++) assert_string_equal(r.s.row[i].tenant, order[i]);
    assert_int_equal(weft__teach_loop_waiting(r.loop, "ann"), 0);
    room_close(&r);
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
        cmocka_unit_test(the_same_log_gives_the_same_contents),
        cmocka_unit_test(each_tenant_has_its_turn),
        cmocka_unit_test(going_back_goes_on_from_there),
        cmocka_unit_test(what_is_refused_changes_nothing),
        cmocka_unit_test(what_was_refused_comes_in_with_others),
        cmocka_unit_test(one_consolidation_is_in_work),
        cmocka_unit_test(who_is_forgotten_begins_anew),
        cmocka_unit_test(going_back_meanwhile_holds),
        cmocka_unit_test(what_is_refused_after_all_leaves_no_file),
        cmocka_unit_test(answers_that_stay_fill_no_queue),
    };
    return cmocka_run_group_tests(tests, begin, remove_folder);
}
