// SPDX-License-Identifier: Apache-2.0
/* cli_fit.c: what weft fit chooses: the largest that fits and is fast; where none is, one that is good for its size;
 * more memory never gives a smaller one. */
#include "unit/fixture.h"

#include <stdio.h>

#include "cli/fit.h"

enum { N = 7 };
#define GB ((uint64_t)1000000000)
#define MB ((uint64_t)1000000)

/* Sizes of a repository; what fits into `room`, at `speed` GB per second. */
static void make(fit_case cases[N], fit_machine *m, uint64_t room, double speed)
{
    static const struct {
        const char *label;
        double gb;
    } files[N] = {{"Q2_K", 2.6}, {"Q3_K_M", 3.8}, {"Q4_K_S", 4.7}, {"Q4_K_M", 4.9},
                  {"Q6_K", 6.6}, {"Q8_0", 8.5},   {"F16", 16}};
    *m = (fit_machine){.room = room, .measured.n_threads = 2};
    for (int i = 0; i < N; i++) {
        fit_case *c = &cases[i];
        *c = (fit_case){.file_bytes = (uint64_t)(files[i].gb * 1e9), .looked = 1, .n_ctx = 4096};
        snprintf(c->label, sizeof c->label, "%s", files[i].label);
        c->needed = c->file_bytes + GB;
        c->fits = c->needed <= room;
        c->generation = (fit_rate){0.8 * speed / files[i].gb, 1.2 * speed / files[i].gb};
    }
}

static const char *chosen(uint64_t room, double speed)
{
    static fit_case cases[N];
    fit_machine m;
    char why[FIT_WHY];
    make(cases, &m, room, speed);
    const int i = fit_choose(cases, N, &m, why);
    assert_true(why[0]);
    if (i >= 0) assert_true(cases[i].fits && strstr(why, cases[i].label) == why);
    return i < 0 ? NULL : cases[i].label;
}

static void the_largest_that_fits_and_is_fast(void **state)
{
    (void)state;
    assert_string_equal(chosen(64 * GB, 200), "Q8_0"); /* 23 tokens/s; floats bring nothing */
    assert_string_equal(chosen(64 * GB, 110), "Q6_K");
    assert_string_equal(chosen(64 * GB, 40), "Q2_K");   /* 15.4 tokens/s: the only one that is fast */
    assert_string_equal(chosen(64 * GB, 20), "Q4_K_M"); /* none is: as good as such a size can be */
    assert_string_equal(chosen(5 * GB, 20), "Q3_K_M");
    assert_string_equal(chosen(5 * GB, 1000), "Q3_K_M");
    assert_null(chosen(3 * GB, 1000));
}

static void more_memory_never_gives_a_smaller_one(void **state)
{
    (void)state;
    for (double speed = 5; speed < 400; speed *= 1.3) {
        fit_case cases[N];
        fit_machine m;
        uint64_t before = 0;
        for (uint64_t room = 2 * GB; room < 20 * GB; room += GB / 8) {
            char why[FIT_WHY];
            make(cases, &m, room, speed);
            const int i = fit_choose(cases, N, &m, why);
            const uint64_t now = i < 0 ? 0 : cases[i].file_bytes;
            if (now < before)
                fail_msg("%.1f GB/s: %.1f GB chosen, %.1f before", speed, (double)now / 1e9, (double)before / 1e9);
            before = now;
        }
        assert_true(before > 0);
    }
}

/* Looking from the largest down, those that are passed over would not have been chosen. */
static void what_is_passed_over_would_not_be_chosen(void **state)
{
    (void)state;
    for (double speed = 5; speed < 400; speed *= 1.3)
        for (uint64_t room = 3 * GB; room < 20 * GB; room += GB) {
            fit_case all[N], some[N];
            fit_machine m;
            char why[FIT_WHY];
            make(all, &m, room, speed);
            memcpy(some, all, sizeof some);
            for (int i = 0; i < N; i++) some[i].looked = 0;
            for (int i = N - 1; i >= 0; i--) some[i].looked = fit_may_be_chosen(some, N, i, &m);
            assert_int_equal(fit_choose(some, N, &m, why), fit_choose(all, N, &m, why));
        }
}

static void floats_are_taken_where_there_is_nothing_else(void **state)
{
    (void)state;
    fit_case c[2] = {{.label = "BF16", .file_bytes = GB, .needed = GB, .looked = 1, .fits = 1}, {.label = "F32"}};
    fit_machine m = {.room = 2 * GB};
    char why[FIT_WHY];
    assert_int_equal(fit_choose(c, 2, &m, why), 0);
    c[0].looked = c[0].fits = 0;
    snprintf(c[0].why, sizeof c[0].why, "no such architecture");
    snprintf(c[1].why, sizeof c[1].why, "no such architecture");
    assert_int_equal(fit_choose(c, 2, &m, why), -1);
    assert_non_null(strstr(why, "architecture"));
}

static void sizes_have_binary_units(void **state)
{
    (void)state;
    assert_int_equal(fit_size("8589934592"), (uint64_t)8 << 30);
    assert_int_equal(fit_size("8G"), (uint64_t)8 << 30);
    assert_int_equal(fit_size("1.5GiB"), (uint64_t)3 << 29);
    assert_int_equal(fit_size("512m"), 512 << 20);
    static const char *const wrong[] = {"", "G", "0", "-1G", "8X", "8GG", "1e300", "nan"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (fit_size(wrong[i])) fail_msg("%s", wrong[i]);
}

static void sizes_have_the_unit_that_shows_them(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } known[] = {{0, "0.00 KB"},          {1500, "1.50 KB"},         {99949, "99.9 KB"},         {999499, "999 KB"},
                 {999500, "1.00 MB"},     {48123456, "48.1 MB"},     {2260 * MB, "2.26 GB"},     {9995 * MB, "10.0 GB"},
                 {21860 * MB, "21.9 GB"}, {4000000 * MB, "4.00 TB"}, {UINT64_MAX, "18446744 TB"}};
    char text[FIT_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        assert_string_equal(fit_bytes(known[i].bytes, text), known[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_that_fits_and_is_fast),
        cmocka_unit_test(more_memory_never_gives_a_smaller_one),
        cmocka_unit_test(what_is_passed_over_would_not_be_chosen),
        cmocka_unit_test(floats_are_taken_where_there_is_nothing_else),
        cmocka_unit_test(sizes_have_binary_units),
        cmocka_unit_test(sizes_have_the_unit_that_shows_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
