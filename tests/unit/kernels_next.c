// SPDX-License-Identifier: Apache-2.0
/* kernels_next.c: what kernels ask for early (kernels/simd/next.h): every unit once, in place of what lies behind the
 * panels. */
#include "unit/fixture.h"

#include "kernels/simd/next.h"

enum { BEGIN = 1 << 20, NEXT = 1 << 24, MOST = 40 };

/* n units of `unit` bytes, asked for `distance` ahead: those of the panels from some unit on, then as many of what is
 * next. */
static void check(size_t n, size_t unit, size_t distance)
{
    int own[MOST] = {0}, next[MOST] = {0};
    const simd_next a =
        simd_next_of((const void *)(uintptr_t)BEGIN, n * unit, unit, distance, (const void *)(uintptr_t)NEXT);
    size_t ahead = (distance + unit - 1) / unit;
    if (ahead > n) ahead = n;
    for (size_t i = 0; i < n; i++) {
        const uintptr_t ask = simd_ask(&a, BEGIN + i * unit);
        const int is_next = ask >= NEXT;
        const size_t offset = ask - (is_next ? NEXT : BEGIN);
        assert_int_equal(offset % unit, 0);
        assert_in_range(offset / unit, 0, n - 1);
        (is_next ? next : own)[offset / unit]++;
    }
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(own[i], i >= ahead);
        assert_int_equal(next[i], i < ahead);
    }
}

static void every_unit_once(void **state)
{
    (void)state;
    static const size_t units[] = {10, 64, 266, 576, 1088, 2368, 9000}, distances[] = {64, 2048, 3072, 4096, 8192};
    for (size_t u = 0; u < sizeof units / sizeof *units; u++)
        for (size_t d = 0; d < sizeof distances / sizeof *distances; d++)
            for (size_t n = 1; n <= MOST; n++) check(n, units[u], distances[d]);
}

/* Where nothing is known of what comes next, nothing behind the panels is asked for. */
static void nothing_is_next(void **state)
{
    (void)state;
    for (size_t n = 1; n <= MOST; n++) {
        const simd_next a = simd_next_of((const void *)(uintptr_t)BEGIN, n * 266, 266, 4096, NULL);
        for (size_t i = 0; i < n; i++) assert_in_range(simd_ask(&a, BEGIN + i * 266), BEGIN, BEGIN + n * 266 - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_unit_once), cmocka_unit_test(nothing_is_next)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
