// SPDX-License-Identifier: Apache-2.0
/* train_curve.c: a loss curve keeps the points of the steps that were made, across stops and lines that were cut short,
 * and its picture is well-formed whatever the numbers are. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "unit/fixture.h"

#include "train/curve.h"

static char folder[64], lines[96], picture[96];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/weft-curve-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(lines, sizeof lines, "%s/loss.jsonl", folder);
    snprintf(picture, sizeof picture, "%s/loss.svg", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(lines);
    unlink(picture);
    return rmdir(folder);
}

static weft__curve_point point(int64_t step)
{
    return (weft__curve_point){
        step, 10 * step, 5.0 / (double)step, step % 2 ? NAN : 4.5, NAN, NAN, 1e-3, 0.5, 0.25 * (double)step, NAN, NAN};
}

static weft__curve begin(int64_t step)
{
    weft__curve c = {0};
    weft_error err = {0};
    if (weft__curve_open(&c, lines, picture, "Loss <&>", step, &err)) fail_msg("%s", err.message);
    return c;
}

static void put(weft__curve *c, int64_t first, int64_t last)
{
    for (int64_t i = first; i <= last; i++) {
        weft__curve_point p = point(i);
        assert_int_equal(weft__curve_add(c, &p, NULL), WEFT_OK);
    }
}

static void read_file(const char *path, char *out, size_t room)
{
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(out, 1, room - 1, f);
    fclose(f);
    out[n] = 0;
}

static void a_resumed_curve_goes_on_where_it_was(void **state)
{
    (void)state;
    static char whole[8192], cut[8192];
    weft__curve c = begin(0);
    put(&c, 1, 7);
    weft__curve_close(&c);
    read_file(lines, whole, sizeof whole);
    c = begin(0); /* a new run begins anew */
    put(&c, 1, 5);
    weft__curve_close(&c);
    FILE *f = fopen(lines, "a");
    fputs("{\"step\": 6, \"tok", f); /* a crash */
    fclose(f);
    c = begin(4); /* the checkpoint was of step 4 */
    assert_int_equal(c.n, 4);
    assert_true(isnan(c.points[0].heldout) && c.points[1].heldout == 4.5 && c.points[3].loss == 1.25);
    put(&c, 5, 7);
    weft__curve_close(&c);
    read_file(lines, cut, sizeof cut);
    assert_string_equal(whole, cut);
}

static void a_picture_is_drawn_of_any_numbers(void **state)
{
    (void)state;
    static char svg[65536];
    const double losses[][3] = {{1, 2, 3},          {1, 1, 1},          {NAN, NAN, NAN},
                                {INFINITY, 1, NAN}, {1e300, -1e300, 0}, {1e-12, 2e-12, 0}};
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        weft__curve c = begin(0);
        for (int k = 0; k < (i ? 3 : 1); k++) {
            weft__curve_point p = point(k + 1);
            p.loss = losses[i][k];
            assert_int_equal(weft__curve_add(&c, &p, NULL), WEFT_OK);
        }
        assert_int_equal(weft__curve_draw(&c, NULL), WEFT_OK);
        weft__curve_close(&c);
        read_file(picture, svg, sizeof svg);
        assert_non_null(strstr(svg, "Loss &lt;&amp;&gt;"));
        assert_non_null(strstr(svg, "</svg>"));
        assert_null(strstr(svg, "nan"));
        assert_null(strstr(svg, "inf"));
    }
}

static int draw(void *arg)
{
    (void)arg;
    weft__curve c = {0};
    weft__curve_point p = point(2);
    weft_status st = weft__curve_open(&c, lines, picture, "Loss", 1, NULL);
    if (!st) st = weft__curve_add(&c, &p, NULL);
    if (!st) st = weft__curve_draw(&c, NULL);
    if (st && st != WEFT_NO_MEMORY) fail_msg("status %d", (int)st);
    weft__curve_close(&c);
    return !st;
}

static void every_failed_allocation_is_survived(void **state)
{
    (void)state;
    weft__curve c = begin(0);
    put(&c, 1, 1);
    weft__curve_close(&c);
    assert_true(fail_each(draw, NULL) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_resumed_curve_goes_on_where_it_was, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_picture_is_drawn_of_any_numbers, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(every_failed_allocation_is_survived, make_folder, remove_folder),
    };
    return cmocka_run_group_tests_name("train_curve", tests, NULL, NULL);
}
