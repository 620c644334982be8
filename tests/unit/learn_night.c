// SPDX-License-Identifier: Apache-2.0
/* learn_night.c: claims on a time of the day: each day has it once, whatever is done to clocks; what is no such time is
 * told. */
#include "fixture.h"

#include <stdlib.h>
#include <time.h>

#include "learn/night.h"

static void times_are_read(void **state)
{
    static const char *const bad[] = {"",       "3:00",  "03:0",  "24:00", "03:60", "0300",
                                      "03:00 ", " 3:00", "-1:00", "03.00", "aa:bb"};
    (void)state;
    assert_int_equal(weft__night_read("00:00"), 0);
    assert_int_equal(weft__night_read("03:05"), 185);
    assert_int_equal(weft__night_read("23:59"), 1439);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (weft__night_read(bad[i]) != -1) fail_msg("'%s' was taken", bad[i]);
}

/* Days of 23, 24 and 25 hours: from noon to noon, minute by minute, the last time stands still but for once a day, and
 * the next one is what the last one becomes. */
static void each_day_has_it_once(void **state)
{
    static const char *const zones[] = {"UTC0", "CET-1CEST,M3.5.0,M10.5.0/3", "EST5EDT,M3.2.0,M11.1.0",
                                        "LHST-10:30LHDT-11,M10.1.0,M4.1.0"};
    static const int minutes[] = {0, 120, 150, 1439};
    const int64_t noon = 1774094400; /* 2026-03-21; two weeks have both changes of spring but that of New York */
    (void)state;
    for (size_t z = 0; z < sizeof zones / sizeof *zones; z++) {
        setenv("TZ", zones[z], 1);
        tzset();
        for (size_t m = 0; m < sizeof minutes / sizeof *minutes; m++)
            for (int turn = 0; turn < 3; turn++) {
                const int64_t from = (noon + (const int64_t[]){0, 218 * 86400, -15 * 86400}[turn]) * 1000;
                const int n_days = 16;
                int64_t last = weft__night_last(minutes[m], from), n = 0;
                for (int64_t now = from; now < from + n_days * 86400000ll; now += 1800000) {
                    const int64_t then = weft__night_last(minutes[m], now), next = weft__night_next(minutes[m], now);
                    if (then > now || now - then > 25 * 3600000 || next <= now || next - now > 25 * 3600000)
                        fail_msg("%s %d at %lld: %lld, %lld", zones[z], minutes[m], (long long)now, (long long)then,
                                 (long long)next);
                    n += then != last;
                    if (then < last || (then != last && then - last < 22 * 3600000ll))
                        fail_msg("%s %d: twice a day", zones[z], minutes[m]);
                    last = then;
                }
                assert_in_range(n, n_days - 1, n_days + 1);
            }
    }
    unsetenv("TZ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(times_are_read), cmocka_unit_test(each_day_has_it_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
