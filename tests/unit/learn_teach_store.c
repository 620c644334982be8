// SPDX-License-Identifier: Apache-2.0
/* learn_teach_store.c: what a server keeps becomes versions (learn/teach_store.h): of the tenant's own corrections
 * alone, known again by the next process, and never another's. */
#include <ftw.h>

#include "learn_room.h"

#include "base/json.h"
#include "learn/teach_offline.h"
#include "learn/teach_store_parts.h"

static lesson *the_lesson;

static void room_begin(room *r)
{
    weft_error err = {0};
    if (room_open(r, the_lesson, WEFT__LEARN_SYNC_BATCH, &err)) fail_msg("%s", err.message);
}

/* The next process. */
static void room_anew(room *r)
{
    room_close(r);
    room_begin(r);
}

/* What the next process has: the same, nothing learned twice, and what was gone back to, by it or without a server. */
static void next_process(room *r, const char *name)
{
    char again[WEFT__VERSION_FULL_NAME];
    int64_t now;
    room_anew(r);
    weft__teach_store_wait(r->t);
    assert_int_equal(r->told.n, 3);
    assert_int_equal(weft__teach_store_current(r->t, "ann", again), 1);
    assert_string_equal(name, again);
    assert_int_equal(weft__teach_store_roll_back(r->t, "ann", -1, &now, NULL), WEFT_OK);
    assert_int_equal(now, 1);
    assert_int_equal(weft__teach_store_roll_back(r->t, "eve", -1, &now, NULL), WEFT_NOT_FOUND);
    room_anew(r);
    assert_int_equal(weft__teach_store_current(r->t, "ann", again), 1);
    assert_string_equal(again + strlen(again) - 2, "@1"); /* and what was gone back to */
    assert_int_equal(weft__teach_offline_roll_back(r->folder, "ann", 2, &now, NULL), WEFT_BUSY);
    room_close(r);
    /* Without a server. */
    assert_int_equal(weft__teach_offline_roll_back(r->folder, "ann", 2, &now, NULL), WEFT_OK);
    assert_int_equal(weft__teach_offline_roll_back(r->folder, "ann", 7, &now, NULL), WEFT_NOT_FOUND);
    assert_int_equal(weft__teach_offline_roll_back(r->folder, "eve", -1, &now, NULL), WEFT_NOT_FOUND);
    assert_int_equal(weft__teach_offline_roll_back("/tmp/weft-is-not-there", "ann", -1, &now, NULL), WEFT_NOT_FOUND);
    room_begin(r);
    assert_int_equal(weft__teach_store_current(r->t, "ann", again), 1);
    assert_string_equal(again, name);
}

/* A row says when it was, and how far its version is from the base. */
static int has_its_figures(void *arg, const weft__learn_version *v)
{
    weft__json *report = NULL;
    double kl = -1;
    assert_true(v->time_ms > 1700000000000);
    assert_int_equal(weft__json_parse(v->report, strlen(v->report), &report, NULL), WEFT_OK);
    assert_true(weft__json_double(weft__json_get(report, "kl"), &kl) && kl > 0 && kl < 1);
    weft__json_free(&report);
    ++*(int *)arg;
    return 0;
}

/* To and fro, but not for ever. */
static void going_back_has_a_bound(room *r)
{
    int64_t now;
    weft_error err = {0};
    int n = 2; /* the next process's, and one without a server */
    for (; n < WEFT__TEACH_ROLL_BACKS; n++)
        assert_int_equal(weft__teach_store_roll_back(r->t, "ann", n % 2 ? 2 : 1, &now, &err), WEFT_OK);
    assert_int_equal(weft__teach_store_roll_back(r->t, "ann", 1, &now, &err), WEFT_BUSY);
    assert_int_equal(weft__teach_store_roll_back(r->t, "bob", 0, &now, &err), WEFT_OK);
    assert_int_equal(weft__teach_store_roll_back(r->t, "bob", 1, &now, &err), WEFT_OK);
}

static void what_is_kept_becomes_versions(void **state)
{
    room *r = *state;
    char name[WEFT__VERSION_FULL_NAME], other[WEFT__VERSION_FULL_NAME];
    weft__teach_loop_stats stats;
    answer(r, "ann", "a1", 1);
    answer(r, "ann", "a2", 2);
    answer(r, "bob", "b1", 3);
    tell(r, "ann", "a2", WEFT__LEARN_THUMB, NULL);
    weft__teach_store_wait(r->t);
    assert_int_equal(weft__teach_store_current(r->t, "ann", name), 0); /* polarity moves nothing */
    tell(r, "ann", "a1", WEFT__LEARN_CORRECTION, RIGHT);
    weft__teach_store_wait(r->t);
    weft__teach_store_get_stats(r->t, &stats);
    if (!weft__teach_store_current(r->t, "ann", name))
        fail_msg("%s; %lld not learned", stats.fault, (long long)stats.by_reason[WEFT__GATE_NOT_LEARNED]);
    assert_string_equal(name + strlen(name) - 2, "@1");
    assert_null(strstr(name, "ann"));
    assert_int_equal(weft__teach_store_current(r->t, "bob", other), 0);
    assert_int_equal(weft__teach_store_may(r->t, "ann", name), 1);
    assert_int_equal(weft__teach_store_may(r->t, "bob", name), 0);
    assert_int_equal(weft__teach_store_may(r->t, "ann", "pirate"), -1);
    tell(r, "bob", "b1", WEFT__LEARN_EDIT, OTHER);
    tell(r, "ann", "a2", WEFT__LEARN_EDIT, OTHER);
    weft__teach_store_wait(r->t);
    assert_int_equal(weft__teach_store_current(r->t, "ann", name), 1);
    assert_int_equal(weft__teach_store_current(r->t, "bob", other), 1);
    assert_string_equal(name + strlen(name) - 2, "@2");
    assert_string_not_equal(name, other);
    assert_int_equal(r->told.n, 3);
    int n_rows = 0;
    assert_int_equal(weft__learn_versions(r->store, "ann", NULL, has_its_figures, &n_rows, NULL), WEFT_OK);
    assert_int_equal(n_rows, 2);
    next_process(r, name);
    going_back_has_a_bound(r);
}

typedef struct reported {
    int n;
    char by[WEFT__VERSION_BY], why[WEFT__VERSION_WHY], content[WEFT__VERSION_CONTENT];
} reported;

/* Of the last row. */
static int take_report(void *arg, const weft__learn_version *v)
{
    reported *out = arg;
    weft__json *report = NULL;
    const char *by = "", *why = "";
    size_t n;
    assert_int_equal(weft__json_parse(v->report, strlen(v->report), &report, NULL), WEFT_OK);
    weft__json_string(weft__json_get(report, "by"), &by, &n);
    weft__json_string(weft__json_get(report, "why"), &why, &n);
    snprintf(out->by, sizeof out->by, "%s", by);
    snprintf(out->why, sizeof out->why, "%s", why);
    snprintf(out->content, sizeof out->content, "%s", v->content);
    out->n++;
    weft__json_free(&report);
    return 0;
}

/* Which one won, and why; also the next process knows each correction once. */
static void what_is_consolidated_is_told(void **state)
{
    room *r = *state;
    reported first = {0}, second = {0};
    answer(r, "ann", "a1", 1);
    answer(r, "ann", "a2", 2);
    tell(r, "ann", "a1", WEFT__LEARN_CORRECTION, RIGHT);
    tell(r, "ann", "a2", WEFT__LEARN_EDIT, OTHER);
    weft__teach_store_wait(r->t);
    assert_int_equal(weft__learn_versions(r->store, "ann", NULL, take_report, &first, NULL), WEFT_OK);
    assert_true(first.n == 2 && !*first.by && !*first.why); /* a lesson is no contest */
    assert_int_equal(weft__teach_store_consolidate(r->t, "ann", NULL), WEFT_OK);
    weft__teach_store_wait(r->t);
    assert_int_equal(weft__learn_versions(r->store, "ann", NULL, take_report, &first, NULL), WEFT_OK);
    assert_true(!strcmp(first.by, "retrained") || !strcmp(first.by, "compressed"));
    assert_true(strstr(first.why, "current: 2 of 2, KL ") && strstr(first.why, "by ") == first.why);
    room_anew(r);
    weft__teach_store_wait(r->t);
    assert_int_equal(weft__teach_store_consolidate(r->t, "ann", NULL), WEFT_OK);
    weft__teach_store_wait(r->t);
    assert_int_equal(weft__learn_versions(r->store, "ann", NULL, take_report, &second, NULL), WEFT_OK);
    assert_true(second.n == 4 && strstr(second.why, "current: 2 of 2, KL "));
}

/* What another model answered is left, and counted, and so are tokens that there are not. */
static void other_models_teach_nothing(void **state)
{
    room *r = *state;
    char name[WEFT__VERSION_FULL_NAME];
    r->base = "another";
    answer(r, "ann", "a1", 1);
    r->base = NULL;
    const int32_t beyond = weft__tok_n(the_lesson->tok);
    const weft__learn_record strange = {.tenant = "ann",
                                        .id = "a2",
                                        .model = "tiny",
                                        .base = OWN,
                                        .adapter = "",
                                        .content = "",
                                        .finish = "stop",
                                        .time_ms = 1000,
                                        .prompt = &beyond,
                                        .n_prompt = 1,
                                        .answer = &beyond,
                                        .n_answer = 1,
                                        .text = "said",
                                        .n_text = 4};
    assert_int_equal(weft__learn_put(r->store, &strange), 1);
    weft__learn_flush(r->store);
    tell(r, "ann", "a1", WEFT__LEARN_CORRECTION, RIGHT);
    tell(r, "ann", "a1", WEFT__LEARN_THUMB, NULL);
    tell(r, "ann", "a2", WEFT__LEARN_EDIT, OTHER);
    weft__teach_store_wait(r->t);
    weft__teach_store_wait(r->t);
    assert_int_equal(weft__teach_store_current(r->t, "ann", name), 0);
    assert_int_equal(weft__teach_store_n_others(r->t), 2);
    answer(r, "ann", "a3", 3);
    tell(r, "ann", "a3", WEFT__LEARN_CORRECTION, RIGHT);
    weft__teach_store_wait(r->t);
    assert_int_equal(weft__teach_store_current(r->t, "ann", name), 1);
    assert_int_equal(weft__teach_store_n_others(r->t), 2);
}

/* What was learned of a tenant goes with what is kept of it; a later correction begins anew, under another name. */
static void forgetting_takes_what_was_learned(void **state)
{
    room *r = *state;
    char name[WEFT__VERSION_FULL_NAME], again[WEFT__VERSION_FULL_NAME], path_of[4096];
    weft__learn_totals had;
    answer(r, "ann", "a1", 1);
    tell(r, "ann", "a1", WEFT__LEARN_CORRECTION, RIGHT);
    weft__teach_store_wait(r->t);
    assert_int_equal(weft__teach_store_current(r->t, "ann", name), 1);
    assert_int_equal(weft__teach_store_path(r->t, "ann", name, path_of, NULL), WEFT_OK);
    assert_int_equal(access(path_of, F_OK), 0);
    assert_int_equal(weft__teach_store_forget(r->t, "bob", &had, NULL), WEFT_NOT_FOUND);
    assert_int_equal(weft__teach_store_forget(r->t, "ann", &had, NULL), WEFT_OK);
    assert_int_equal(had.n_versions, 1);
    assert_int_equal(weft__teach_store_current(r->t, "ann", again), 0);
    assert_int_equal(weft__teach_store_may(r->t, "ann", name), 0);
    assert_int_not_equal(access(path_of, F_OK), 0);
    weft__teach_store_wait(r->t);
    const struct timespec moment = {0, 2000000}; /* answers that began before are lost with the rest */
    nanosleep(&moment, NULL);
    r->later = 1;
    answer(r, "ann", "a1", 1);
    tell(r, "ann", "a1", WEFT__LEARN_CORRECTION, RIGHT);
    weft__teach_store_wait(r->t);
    assert_int_equal(weft__teach_store_current(r->t, "ann", again), 1);
    assert_string_equal(again + strlen(again) - 2, "@1");
    assert_string_not_equal(name, again);
}

/* So many corrections of one tenant that not all of them may wait keep nobody else's from being read. */
static void who_has_many_waits_alone(void **state)
{
    room *r = *state;
    char id[16];
    atomic_store(&r->told.busy, 1);
    answer(r, "ann", "kept", 999);
    for (int i = 0; i < WEFT__TEACH_WAITING_OF_ONE + 4; i++) {
        snprintf(id, sizeof id, "a%d", i);
        answer(r, "ann", id, (uint64_t)i);
        tell(r, "ann", id, WEFT__LEARN_CORRECTION, RIGHT);
    }
    while (weft__teach_store_waiting(r->t, "ann") < WEFT__TEACH_WAITING_OF_ONE)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    answer(r, "bob", "b1", 3);
    tell(r, "bob", "b1", WEFT__LEARN_EDIT, OTHER);
    const int asked = atomic_load(&r->told.n_asked); /* by the thread that learns, again and again while it waits */
    while (!weft__teach_store_waiting(r->t, "bob") && atomic_load(&r->told.n_asked) - asked < 4000)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    assert_int_equal(weft__teach_store_waiting(r->t, "bob"), 1);
    assert_int_equal(weft__teach_store_waiting(r->t, "ann"), WEFT__TEACH_WAITING_OF_ONE);
    weft__teach_loop_stats before, after; /* her answers that stay are not read again and again meanwhile */
    weft__teach_store_get_stats(r->t, &before);
    const int since = atomic_load(&r->told.n_asked);
    while (atomic_load(&r->told.n_asked) - since < 400) nanosleep(&(struct timespec){0, 1000000}, NULL);
    weft__teach_store_get_stats(r->t, &after);
    assert_int_equal(after.n_queued, before.n_queued);
}

static int64_t in_two_days(void)
{
    return weft__clock_unix_ms() + 2 * 24 * 3600 * 1000;
}

/* Of whom nothing more may wait at night, is asked again at the next look; nobody else is meanwhile. */
static void the_night_asks_each_once(void **state)
{
    room *r = *state;
    weft__teach_night night;
    char id[16];
    answer(r, "ann", "first", 999);
    answer(r, "bob", "b1", 3);
    tell(r, "ann", "first", WEFT__LEARN_CORRECTION, RIGHT);
    tell(r, "bob", "b1", WEFT__LEARN_EDIT, OTHER);
    weft__teach_store_wait(r->t);
    atomic_store(&r->told.busy, 1);
    for (int i = 0; i < WEFT__TEACH_WAITING_OF_ONE + 4; i++) {
        snprintf(id, sizeof id, "a%d", i);
        answer(r, "ann", id, (uint64_t)i);
        tell(r, "ann", id, WEFT__LEARN_CORRECTION, RIGHT);
    }
    while (weft__teach_store_waiting(r->t, "ann") < WEFT__TEACH_WAITING_OF_ONE)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    pthread_mutex_lock(&r->t->lock);
    const int64_t before = r->t->night.done_ms;
    r->t->now_ms = in_two_days;
    r->t->look_ms = 20;
    pthread_cond_broadcast(&r->t->changed);
    pthread_mutex_unlock(&r->t->lock);
    while (!weft__teach_store_waiting(r->t, "bob")) nanosleep(&(struct timespec){0, 1000000}, NULL);
    nanosleep(&(struct timespec){0, 900000000}, NULL); /* some looks, each of ann alone */
    weft__teach_store_night(r->t, &night);
    assert_int_equal(night.n_asked, 1);
    assert_true(night.done_ms == before); /* it is not done */
    assert_int_equal(weft__teach_store_waiting(r->t, "bob"), 1);
}

static int begin(void **state)
{
    static lesson l;
    (void)state;
    if (folder_make("adapter.gguf")) return -1;
    lesson_open(the_lesson = &l);
    return 0;
}

static int end(void **state)
{
    lesson_close(the_lesson);
    return remove_folder(state); /* nothing else is left there */
}

static int set_up_with(void **state, room given)
{
    static char store[80];
    static room r;
    snprintf(store, sizeof store, "%s/store", folder);
    r = given;
    r.folder = store;
    *state = &r;
    room_begin(&r);
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, (room){0});
}

static int set_up_with_nights(void **state)
{
    return set_up_with(state, (room){.has_nights = 1});
}

static int remove_one(const char *name, const struct stat *s, int kind, struct FTW *where)
{
    (void)s, (void)kind, (void)where;
    return remove(name);
}

static int tear_down(void **state)
{
    room *r = *state;
    room_close(r);
    return nftw(r->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#define IN_A_ROOM(claim) cmocka_unit_test_setup_teardown(claim, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_ROOM(what_is_kept_becomes_versions),
        IN_A_ROOM(what_is_consolidated_is_told),
        IN_A_ROOM(other_models_teach_nothing),
        IN_A_ROOM(who_has_many_waits_alone),
        cmocka_unit_test_setup_teardown(the_night_asks_each_once, set_up_with_nights, tear_down),
        IN_A_ROOM(forgetting_takes_what_was_learned)};
    return cmocka_run_group_tests(tests, begin, end);
}
