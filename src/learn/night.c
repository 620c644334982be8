// SPDX-License-Identifier: Apache-2.0
/* night.c: see night.h. */
#include "learn/night.h"

#include <string.h>
#include <time.h>

int weft__night_read(const char *text)
{
    static const char form[] = "dd:dd";
    if (strlen(text) != sizeof form - 1) return -1;
    for (int i = 0; form[i]; i++)
        if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i]) return -1;
    const int hour = 10 * (text[0] - '0') + text[1] - '0', minute = 10 * (text[3] - '0') + text[4] - '0';
    return hour < 24 && minute < 60 ? 60 * hour + minute : -1;
}

/* As summer time has it, or not; *is_it: the clocks of that day show it then. mktime alone, left to choose, makes
 * another moment of a minute that is left out from one call to the next. */
static time_t night_as(const struct tm *day, int is_summer, int *is_it)
{
    struct tm tm = *day, shown = {0};
    tm.tm_isdst = is_summer;
    const time_t t = mktime(&tm);
    *is_it = localtime_r(&t, &shown) && shown.tm_hour == day->tm_hour && shown.tm_min == day->tm_min;
    return t;
}

/* On the day that is so many after that of now. */
static int64_t night_of(int minute, int64_t now_ms, int days)
{
    const time_t now = (time_t)(now_ms / 1000);
    struct tm tm = {0};
    int is_first = 0, is_second = 0;
    if (!localtime_r(&now, &tm)) return 0;
    tm.tm_mday += days;
    tm.tm_hour = minute / 60;
    tm.tm_min = minute % 60;
    tm.tm_sec = 0;
    const time_t first = night_as(&tm, 1, &is_first), second = night_as(&tm, 0, &is_second);
    return (int64_t)(is_first && (!is_second || first < second) ? first : second) * 1000;
}

int64_t weft__night_last(int minute, int64_t now_ms)
{
    const int64_t today = night_of(minute, now_ms, 0);
    return today <= now_ms ? today : night_of(minute, now_ms, -1);
}

int64_t weft__night_next(int minute, int64_t now_ms)
{
    const int64_t today = night_of(minute, now_ms, 0);
    return today > now_ms ? today : night_of(minute, now_ms, 1);
}
