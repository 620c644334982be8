// SPDX-License-Identifier: Apache-2.0
/* route_book.c: each tenant's router learns from its own answers alone; its log makes it again, bit for bit, also one
 * that a crash has torn; what is forgotten is gone; a disk that takes nothing costs lines and no choice. */
#include "unit/fixture.h"

#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "route/book.h"

static char folder[] = "/tmp/weft-route-XXXXXX";
static const char *const arms[] = {"base", "pirate", "poem"};

static int path_in(void *arg, const char *tenant, int makes, char *out, size_t room)
{
    (void)makes;
    return snprintf(out, room, "%s/%s", (const char *)arg, tenant) < (int)room;
}

static weft__route_book *open_book(weft__route_path *path, const void *where)
{
    weft__route_params p;
    weft__route_book *b;
    weft__route_params_default(&p);
    p.n_arms = 3;
    p.explore = 0.3;
    assert_int_equal(weft__route_book_new(&p, arms, path, (void *)where, &b, NULL), WEFT_OK);
    return b;
}

/* One request and, every other time, its reward: 1 where `good` answered. Returns the arm. */
static int ask(weft__route_book *b, const char *tenant, int i, int good)
{
    char id[32], text[64];
    float x[WEFT__ROUTE_DIMS];
    weft__route_choice c;
    snprintf(id, sizeof id, "chatcmpl-%d", i);
    snprintf(text, sizeof text, "Where is number %d of the %s?", i % 9, i % 2 ? "foxes" : "badgers");
    weft__route_features(text, strlen(text), NULL, 0, x);
    weft__route_book_choose(b, tenant, id, x, ~0u, &c);
    if (i % 2 == 0) assert_true(weft__route_book_reward(b, tenant, id, c.arm == good));
    return c.arm;
}

static void tenants_are_apart(void **state)
{
    (void)state;
    weft__route_book *b = open_book(NULL, NULL), *alone = open_book(NULL, NULL);
    int of_arm = 0;
    for (int i = 0; i < 200; i++) {
        const int arm = ask(b, "anna", i, 2);
        ask(b, "ben", i, 1);
        assert_int_equal(ask(alone, "anna", i, 2), arm);
        of_arm += i >= 100 && arm == 2;
    }
    assert_true(of_arm > 60);
    assert_true(weft__route_book_mark(b, "anna") == weft__route_book_mark(alone, "anna"));
    assert_true(weft__route_book_mark(b, "anna") != weft__route_book_mark(b, "ben"));
    /* another's answer, though of that name, is not rewarded for this tenant */
    assert_false(weft__route_book_reward(b, "carl", "chatcmpl-199", 1));
    assert_int_equal(ask(b, "carl", 1, 1), 0);
    weft__route_book_free(&b);
    weft__route_book_free(&alone);
}

static void once_for_an_answer(void **state)
{
    (void)state;
    weft__route_book *b = open_book(NULL, NULL);
    weft__route_book_stats stats;
    ask(b, "anna", 0, 0);
    const uint64_t mark = weft__route_book_mark(b, "anna");
    assert_true(weft__route_book_reward(b, "anna", "chatcmpl-0", 0));
    assert_true(weft__route_book_mark(b, "anna") == mark);
    assert_false(weft__route_book_reward(b, "anna", "chatcmpl-1", 0));
    for (int i = 1; i <= WEFT__ROUTE_PENDING; i++) ask(b, "anna", 2 * i + 1, 0); /* the oldest is let go */
    assert_false(weft__route_book_reward(b, "anna", "chatcmpl-0", 0));
    assert_true(weft__route_book_reward(b, "anna", "chatcmpl-5", 1));
    weft__route_book_stats_get(b, &stats);
    assert_int_equal(stats.choices, 1 + WEFT__ROUTE_PENDING);
    assert_int_equal(stats.rewards, 2);
    assert_int_equal(stats.unknown_rewards, 2);
    assert_int_equal(stats.of_arm[0] + stats.of_arm[1] + stats.of_arm[2], stats.choices);
    weft__route_book_free(&b);
}

static uint64_t mark_after_reading(int *next, int n)
{
    weft__route_book *b = open_book(path_in, folder);
    float x[WEFT__ROUTE_DIMS] = {1};
    weft__route_choice c;
    assert_int_equal(weft__route_book_mark(b, "anna"), 0);
    assert_false(weft__route_book_reward(b, "anna", "none", 1)); /* brings it in */
    const uint64_t mark = weft__route_book_mark(b, "anna");
    weft__route_book_choose(b, "anna", "chatcmpl-next", x, ~0u, &c);
    assert_int_equal(c.n, n);
    *next = c.arm;
    weft__route_book_free(&b);
    return mark;
}

/* Reads FOLDER/anna. */
static size_t read_log(char *out, size_t room)
{
    char path[128];
    path_in(folder, "anna", 1, path, sizeof path);
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    const size_t n = fread(out, 1, room, f);
    fclose(f);
    return n;
}

static void put_log(const char *bytes, size_t n)
{
    char path[128];
    path_in(folder, "anna", 1, path, sizeof path);
    FILE *f = fopen(path, "w");
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void a_log_makes_it_again(void **state)
{
    static char log[1 << 20];
    float x[WEFT__ROUTE_DIMS] = {1};
    weft__route_choice c;
    int next;
    (void)state;
    put_log("", 0);
    weft__route_book *b = open_book(path_in, folder);
    for (int i = 0; i < 60; i++) ask(b, "anna", i, 1);
    const uint64_t mark = weft__route_book_mark(b, "anna");
    const size_t n = read_log(log, sizeof log);
    weft__route_book_choose(b, "anna", "chatcmpl-next", x, ~0u, &c);
    weft__route_book_free(&b);
    put_log(log, n);
    assert_true(mark_after_reading(&next, 60) == mark);
    assert_int_equal(next, c.arm);
    /* torn at any byte of the last line: what was whole counts, and what is written then is whole */
    for (size_t cut = n - 40; cut < n; cut++) {
        put_log(log, cut);
        const uint64_t one = mark_after_reading(&next, cut == n - 1 ? 60 : 59);
        put_log(log, cut);
        b = open_book(path_in, folder);
        ask(b, "anna", 100, 1);
        const uint64_t after = weft__route_book_mark(b, "anna");
        weft__route_book_free(&b);
        b = open_book(path_in, folder);
        weft__route_book_reward(b, "anna", "none", 1);
        assert_true(weft__route_book_mark(b, "anna") == after && after != one);
        weft__route_book_free(&b);
    }
}

static int path_where_made(void *arg, const char *tenant, int makes, char *out, size_t room)
{
    *(int *)arg += makes;
    return makes && path_in(folder, tenant, makes, out, room);
}

static void a_reward_makes_no_log(void **state)
{
    int n_made = 0;
    (void)state;
    put_log("", 0);
    weft__route_book *b = open_book(path_where_made, &n_made);
    assert_false(weft__route_book_reward(b, "anna", "chatcmpl-1", 1));
    assert_int_equal(n_made, 0);
    ask(b, "anna", 0, 1); /* and takes none from the choices that come */
    assert_int_equal(n_made, 1);
    weft__route_book_free(&b);
}

static void forgets(void **state)
{
    char log[4096];
    (void)state;
    put_log("", 0);
    weft__route_book *b = open_book(path_in, folder);
    for (int i = 0; i < 6; i++) ask(b, "anna", i, 1);
    assert_true(read_log(log, sizeof log) > 0);
    weft__route_book_forget(b, "anna");
    assert_int_equal(weft__route_book_mark(b, "anna"), 0);
    put_log("", 0);
    assert_false(weft__route_book_reward(b, "anna", "chatcmpl-1", 1));
    assert_int_equal(read_log(log, sizeof log), 0);
    weft__route_book_free(&b);
}

static void a_log_is_bounded(void **state)
{
    char path[128];
    (void)state;
    path_in(folder, "anna", 1, path, sizeof path);
    FILE *f = fopen(path, "w");
    for (long at = 0; at < WEFT__ROUTE_LOG_MOST; at += 40) fprintf(f, "{\"id\":\"%022ld\",\"reward\":1}\n", at);
    fclose(f);
    weft__route_book *b = open_book(path_in, folder);
    ask(b, "anna", 1, 1);
    weft__route_book_free(&b);
    f = fopen(path, "r");
    fseek(f, 0, SEEK_END);
    assert_true(ftell(f) < WEFT__ROUTE_LOG_MOST * 3 / 4);
    fclose(f);
}

/* A log that cannot be written anew stays as it is: nothing is cut in place. */
static void a_log_is_not_cut_in_place(void **state)
{
    char path[128], blocker[160];
    (void)state;
    path_in(folder, "anna", 1, path, sizeof path);
    snprintf(blocker, sizeof blocker, "%s.new", path);
    FILE *f = fopen(path, "w");
    for (long at = 0; at < WEFT__ROUTE_LOG_MOST; at += 40) fprintf(f, "{\"id\":\"%022ld\",\"reward\":1}\n", at);
    fclose(f);
    assert_int_equal(mkdir(blocker, 0700), 0);
    weft__route_book *b = open_book(path_in, folder);
    ask(b, "anna", 1, 1);
    weft__route_book_free(&b);
    assert_int_equal(rmdir(blocker), 0);
    f = fopen(path, "r");
    fseek(f, 0, SEEK_END);
    assert_true(ftell(f) > WEFT__ROUTE_LOG_MOST);
    fclose(f);
}

/* Fails the first three times. */
static int path_in_time(void *arg, const char *tenant, int makes, char *out, size_t room)
{
    int *n = arg;
    return (*n)++ >= 3 && path_in(folder, tenant, makes, out, room);
}

static void a_path_is_asked_for_again(void **state)
{
    static char log[1 << 16];
    weft__route_book_stats stats;
    int n_asked = 0;
    (void)state;
    put_log("", 0);
    weft__route_book *b = open_book(path_in, folder);
    for (int i = 0; i < 8; i++) ask(b, "anna", i, 1);
    const uint64_t mark = weft__route_book_mark(b, "anna");
    weft__route_book_free(&b);
    b = open_book(path_in_time, &n_asked);
    for (int i = 0; i < 2; i++) ask(b, "anna", 100 + i, 1); /* three uses: lost */
    assert_false(weft__route_book_reward(b, "anna", "none", 1));
    assert_true(weft__route_book_mark(b, "anna") == mark);
    weft__route_book_stats_get(b, &stats);
    assert_int_equal(stats.lost_lines, 3);
    assert_int_equal(stats.tenants, 1);
    ask(b, "anna", 200, 1);
    assert_int_equal(n_asked, 4);
    weft__route_book_free(&b);
    log[read_log(log, sizeof log - 1)] = 0;
    assert_non_null(strstr(log, "chatcmpl-200"));
}

static void full_disk(void **state)
{
    weft__route_book_stats stats;
    (void)state;
    weft__route_book *b = open_book(path_in, "/dev/full/none"), *free_of_it = open_book(NULL, NULL);
    for (int i = 0; i < 20; i++) assert_int_equal(ask(b, "anna", i, 1), ask(free_of_it, "anna", i, 1));
    weft__route_book_stats_get(b, &stats);
    assert_int_equal(stats.lost_lines, 30);
    weft__route_book_free(&b);
    weft__route_book_free(&free_of_it);
}

/* A disk that takes a line's beginning and is full then, for a while: that line is lost, and no later one with it. */
static void a_disk_takes_part_of_a_line(void **state)
{
    static char log[1 << 16];
    weft__route_book_stats stats;
    struct rlimit was;
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
    for (int taken = 0; taken < 60; taken += 7) {
        put_log("", 0);
        weft__route_book *b = open_book(path_in, folder);
        ask(b, "anna", 1, 1);
        const struct rlimit full = {(rlim_t)read_log(log, sizeof log) + (rlim_t)taken, was.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
        ask(b, "anna", 3, 1);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
        ask(b, "anna", 5, 1);
        ask(b, "anna", 7, 1);
        weft__route_book_stats_get(b, &stats);
        assert_int_equal(stats.lost_lines, 1);
        weft__route_book_free(&b);
        b = open_book(path_in, folder);
        for (int i = 1; i <= 7; i += 2) {
            char id[32];
            snprintf(id, sizeof id, "chatcmpl-%d", i);
            if (weft__route_book_reward(b, "anna", id, 1) != (i != 3)) fail_msg("%d of %d bytes: %s", i, taken, id);
        }
        weft__route_book_free(&b);
    }
}

static void many_tenants(void **state)
{
    weft__route_book_stats stats;
    char name[32];
    (void)state;
    weft__route_book *b = open_book(NULL, NULL);
    for (int i = 0; i < WEFT__ROUTE_TENANTS + 5; i++) {
        snprintf(name, sizeof name, "tenant-%d", i);
        ask(b, i % 3 ? name : "steady", 1, 1);
    }
    weft__route_book_stats_get(b, &stats);
    assert_true(stats.tenants <= WEFT__ROUTE_TENANTS);
    assert_true(weft__route_book_mark(b, "steady") != 0);
    weft__route_book_free(&b);
}

static int one_life(void *arg)
{
    weft__route_params p;
    weft__route_book *b;
    weft__route_choice c;
    float x[WEFT__ROUTE_DIMS] = {1};
    (void)arg;
    weft__route_params_default(&p);
    p.n_arms = 3;
    if (weft__route_book_new(&p, arms, NULL, NULL, &b, NULL)) return 0;
    weft__route_book_choose(b, "anna", "1", x, 6, &c);
    assert_int_equal(c.arm, 1);
    const int ok = weft__route_book_reward(b, "anna", "1", 1);
    weft__route_book_free(&b);
    return ok;
}

static void without_memory(void **state)
{
    (void)state;
    assert_true(fail_each(one_life, NULL) > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tenants_are_apart),
        cmocka_unit_test(once_for_an_answer),
        cmocka_unit_test(a_log_makes_it_again),
        cmocka_unit_test(a_reward_makes_no_log),
        cmocka_unit_test(forgets),
        cmocka_unit_test(a_log_is_bounded),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(a_disk_takes_part_of_a_line),
        cmocka_unit_test(a_log_is_not_cut_in_place),
        cmocka_unit_test(a_path_is_asked_for_again),
        cmocka_unit_test(many_tenants),
        cmocka_unit_test(without_memory),
    };
    char path[128];
    if (!mkdtemp(folder)) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    path_in(folder, "anna", 1, path, sizeof path);
    unlink(path);
    rmdir(folder);
    return failed;
}
