// SPDX-License-Identifier: Apache-2.0
/* night.h: a time of the day, by the local calendar: when it was last, and will be next. Any thread. */
#ifndef WEFT_LEARN_NIGHT_H
#define WEFT_LEARN_NIGHT_H

#include <stdint.h>

/* "03:00", from "00:00" to "23:59": minutes of the day; -1: it is no such time. */
int weft__night_read(const char *text);
/* The last moment of that minute's beginning that is not after now, and the first one after it: of each day one, also
 * where clocks are put on or back (a minute that a day leaves out is as much later; of one that comes twice, one). Unix
 * time, milliseconds. */
int64_t weft__night_last(int minute, int64_t now_ms);
int64_t weft__night_next(int minute, int64_t now_ms);

#endif
