// SPDX-License-Identifier: Apache-2.0
/* learn_kill_versions.c: claims on a consolidation and on going back, in a server and without one, that are killed or
 * find the disk full at each of their writes: the version that requests get is wholly the one before or the one after,
 * nothing half made stays, and the same asked again comes to the same content. A child does the work. */
#include "learn_room.h"

#include "each_write.h"
#include "learn/teach_offline.h"

static lesson the_lesson;
static char first[80]; /* a store as it is before: one correction is learned, one refused */

/* What is asked, and the version that is current behind each: a consolidation tries what was refused once more, the
 * next one compresses that, a third one finds nothing better; the last is without a server. */
enum { CONSOLIDATE, COMPRESS, REPEAT, BACK, FORTH, OFFLINE, N_STEPS };
static const int64_t CURRENT[] = {3, 4, 4, 1, 3, 1};

/* What they are without a fault; of version 2 and of the repeat, "". */
static char content[6][WEFT__VERSION_CONTENT];

/* What was acknowledged. */
struct acks {
    int n_begun, n_done, failed[N_STEPS];
    int64_t now[N_STEPS];
};

static int tries_again;

static int64_t current(room *r)
{
    char full[WEFT__VERSION_FULL_NAME], name[WEFT__VERSION_NAME];
    int64_t version = 0;
    if (weft__teach_store_current(r->t, "ann", full)) weft__version_read_name(full, name, &version);
    return version;
}

/* 1: it failed. */
static int consolidate(room *r)
{
    weft__teach_loop_stats before, after;
    weft__teach_store_get_stats(r->t, &before);
    const weft_status st = weft__teach_store_consolidate(r->t, "ann", NULL);
    weft__teach_store_wait(r->t);
    weft__teach_store_get_stats(r->t, &after);
    return st || (after.n_failed > before.n_failed && !r->tries_again);
}

static int work(void *said)
{
    struct acks *a = said;
    room r = {.folder = where, .tries_again = tries_again};
    int64_t now;
    if (room_open(&r, &the_lesson, WEFT__LEARN_SYNC_NONE, NULL)) return 0;
    weft__teach_store_wait(r.t);
    for (int i = 0; i < OFFLINE; i++) {
        a->n_begun = i + 1;
        a->failed[i] =
            i <= REPEAT ? consolidate(&r) : !!weft__teach_store_roll_back(r.t, "ann", CURRENT[i], &now, NULL);
        a->now[i] = current(&r);
        a->n_done = i + 1;
    }
    room_close(&r);
    a->n_begun = OFFLINE + 1;
    a->failed[OFFLINE] = !!weft__teach_offline_roll_back(where, "ann", CURRENT[OFFLINE], &now, NULL);
    a->now[OFFLINE] = a->failed[OFFLINE] ? a->now[FORTH] : now;
    a->n_done = OFFLINE + 1;
    return 1;
}

/* ---- what is there then ---- */

static const char *content_of(const rows *all, int64_t version)
{
    for (int i = 0; i < all->n; i++)
        if (all->version[i] == version && *all->content[i]) return all->content[i];
    return "";
}

/* They are those that come without a fault, and so are their files, and no others. */
static rows check_versions(room *r, int n)
{
    rows all = rows_of(r->store, r->t, "ann", n);
    const struct looking seen = look_for("");
    assert_in_range(all.n, 2, ROWS_MOST);
    for (int i = 1; i < all.n; i++)
        if (strcmp(all.content[i], content[1]) && strcmp(all.content[i], content[3]) &&
            strcmp(all.content[i], content[4]) && *all.content[i])
            fail_msg("write %d: version %d has a content of its own", n, (int)all.version[i]);
    if (seen.n_temporary || seen.n_adapters != all.n_published)
        fail_msg("write %d: %d files of %d versions, and %d half made", n, seen.n_adapters, all.n_published,
                 seen.n_temporary);
    return all;
}

/* Where nothing was killed, what failed changed nothing, and what did not was done; but that a process which does not
 * try again consolidates no more of a tenant for whom that failed. */
static void check_acks(const struct acks *a, int n)
{
    int64_t before = 1;
    for (int i = 0, is_over = 0; i < N_STEPS; i++) {
        const int64_t due = a->failed[i] || (is_over && i <= REPEAT) ? before : CURRENT[i];
        if (a->now[i] != due)
            fail_msg("write %d: step %d %s, and %d is current, not %d", n, i, a->failed[i] ? "failed" : "was done",
                     (int)a->now[i], (int)due);
        is_over |= a->failed[i];
        before = a->now[i];
    }
    if (tries_again && a->now[REPEAT] != CURRENT[REPEAT]) fail_msg("write %d: it was not tried again", n);
}

static void go_back(room *r, int64_t to, int n)
{
    int64_t now;
    weft_error err = {0};
    if (weft__teach_store_roll_back(r->t, "ann", to, &now, &err)) fail_msg("write %d: %s", n, err.message);
    if (now != to || current(r) != to) fail_msg("write %d: gone back to %d, not %d", n, (int)now, (int)to);
}

/* The same again: a consolidation, which comes to what follows the current version without a fault, and going back, in
 * a server and without one. */
static void ask_again(room *r, int n)
{
    int64_t now;
    weft_error err = {0};
    weft__learn_findings f;
    const rows before = check_versions(r, n);
    const char *was = content_of(&before, before.last);
    const int follows = !strcmp(was, content[1]) ? 3 : 4;
    if (consolidate(r)) fail_msg("write %d: it cannot be consolidated", n);
    const rows all = check_versions(r, n);
    if (all.n != before.n + 1 || strcmp(content_of(&all, all.last), content[follows]))
        fail_msg("write %d: from version %d it came to version %d, in row %d", n, (int)before.last, (int)all.last,
                 all.n);
    go_back(r, 1, n);
    go_back(r, all.last, n);
    room_close(r);
    if (weft__teach_offline_roll_back(where, "ann", 1, &now, &err)) fail_msg("write %d: %s", n, err.message);
    if (room_open(r, &the_lesson, WEFT__LEARN_SYNC_NONE, &err)) fail_msg("write %d: %s", n, err.message);
    assert_int_equal(check_versions(r, n).last, 1);
    room_close(r);
    if (weft__learn_witness_verify(where, NULL, NULL, 0, &f, &err)) fail_msg("write %d: %s", n, err.message);
}

static void check(const void *said, write_fault how, int n, int is_met)
{
    const struct acks *a = said;
    const int is_killed = is_met && how != DISK_FULL;
    room r = {.folder = where};
    weft_error err = {0};
    if (room_open(&r, &the_lesson, WEFT__LEARN_SYNC_NONE, &err)) fail_msg("write %d: %s", n, err.message);
    const int64_t now = check_versions(&r, n).last;
    const int64_t before = a->n_done ? a->now[a->n_done - 1] : 1, after = CURRENT[a->n_begun ? a->n_begun - 1 : 0];
    for (int i = 0; is_killed && i < a->n_done; i++)
        if (a->failed[i] || a->now[i] != CURRENT[i]) fail_msg("write %d: step %d before it failed", n, i);
    if (now != before && !(is_killed && now == after))
        fail_msg("write %d, step %d: version %d is current", n, a->n_done, (int)now);
    if (a->n_done == N_STEPS) check_acks(a, n);
    weft__teach_store_wait(r.t);
    ask_again(&r, n);
}

/* ---- at each write ---- */

static void copy_folder(const char *from, const char *to)
{
    char command[256];
    snprintf(command, sizeof command, "cp -R '%s/.' '%s'", from, to);
    assert_int_equal(system(command), 0);
}

static void prepare(void)
{
    where_anew();
    copy_folder(first, where);
}

static int walk(write_fault how)
{
    static const each_write of_versions = {prepare, work, check};
    return at_each_write(&of_versions, how, (int)how, CLAIMS_SWEPT(CLAIMS_REPEATED(17, 61, 97), 1));
}

static void killed_at_each_write(void **state)
{
    (void)state;
    assert_in_range(walk(KILLED), 40, 1000); /* or the writes were not seen */
}

static void killed_within_each_write(void **state)
{
    (void)state;
    assert_in_range(walk(KILLED_HALFWAY), 40, 1000);
}

static void no_room_at_each_write(void **state)
{
    (void)state;
    tries_again = 0;
    assert_in_range(walk(DISK_FULL), 40, 1000);
}

static void no_room_and_tried_again(void **state)
{
    (void)state;
    tries_again = 1;
    assert_in_range(walk(DISK_FULL), 40, 1000);
    tries_again = 0;
}

/* The first store, and what comes of it without a fault. */
static int set_up(void **state)
{
    struct acks a = {.n_begun = 0};
    room r = {.folder = where};
    if (each_write_begin(state)) return -1;
    lesson_open(&the_lesson);
    the_lesson.judge.bounds.kl_later = 0; /* nothing may go on from another */
    assert_int_equal(room_open(&r, &the_lesson, WEFT__LEARN_SYNC_NONE, NULL), WEFT_OK);
    answer(&r, "ann", "a1", 1);
    answer(&r, "ann", "a2", 2);
    tell(&r, "ann", "a1", WEFT__LEARN_CORRECTION, RIGHT);
    tell(&r, "ann", "a2", WEFT__LEARN_EDIT, OTHER);
    weft__teach_store_wait(r.t);
    assert_int_equal(current(&r), 1);
    room_close(&r);
    snprintf(first, sizeof first, "%s.first", where);
    if (mkdir(first, 0700)) return -1;
    copy_folder(where, first);
    assert_int_equal(work(&a), 1);
    for (int i = 0; i < N_STEPS; i++) assert_true(!a.failed[i] && a.now[i] == CURRENT[i]);
    assert_int_equal(room_open(&r, &the_lesson, WEFT__LEARN_SYNC_NONE, NULL), WEFT_OK);
    const rows all = rows_of(r.store, r.t, "ann", 0);
    room_close(&r);
    assert_int_equal(all.n, 8); /* five versions, and gone back three times */
    for (int i = 0; i < 5; i++) memcpy(content[1 + i], all.content[i], sizeof content[0]);
    assert_true(!*content[2] && !*content[5] && strcmp(content[3], content[1]) && strcmp(content[4], content[3]));
    return 0;
}

static int tear_down(void **state)
{
    nftw(first, each_write_remove, 8, FTW_DEPTH | FTW_PHYS);
    lesson_close(&the_lesson);
    return each_write_end(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_each_write), cmocka_unit_test(killed_within_each_write),
        cmocka_unit_test(no_room_at_each_write), cmocka_unit_test(no_room_and_tried_again)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
