// SPDX-License-Identifier: Apache-2.0
/* counters.h: what the threads of a team count while they work: cycles, instructions and misses by the processor's
 * counters (perf_event_open of Linux, user space alone), and what the system counts of every thread: its processor
 * time, page faults and switches.
 *
 * Each thread opens its counters itself, when it first marks: they count that thread wherever it runs. What was
 * counted between two marks of a thread belongs to the event that the second one names. A thread marks for itself
 * alone, beside the others; all else is called by the owner while nobody marks. Counters that cannot be had are absent,
 * with a reason, never 0. The processor has few: groups of them may take turns, and then a count is what was seen in a
 * part of the time (running of enabled), of sums of which weft__counters_scaled makes an estimate. */
#ifndef WEFT_BASE_COUNTERS_H
#define WEFT_BASE_COUNTERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "weft/error.h"

enum weft__counter {
    WEFT__COUNTER_CYCLES,
    WEFT__COUNTER_INSTRUCTIONS,
    WEFT__COUNTER_BRANCH_MISSES,
    WEFT__COUNTER_LLC_MISSES, /* of the last level of cache */
    WEFT__COUNTER_L1D_MISSES, /* of reads in the first level */
    WEFT__COUNTER_DTLB_MISSES,
    WEFT__COUNTERS_HARDWARE, /* those before it are the processor's, in groups; the others are the system's */
    WEFT__COUNTER_TASK_NS = WEFT__COUNTERS_HARDWARE,
    WEFT__COUNTER_PAGE_FAULTS,
    WEFT__COUNTER_SWITCHES,
    WEFT__COUNTERS
};

enum { WEFT__COUNTER_GROUPS = 2, WEFT__COUNTER_THREADS = 1024 };

/* What was counted, by all threads together; times of a group are those of the threads, added. */
typedef struct weft__counts {
    uint64_t n[WEFT__COUNTERS];
    uint64_t enabled_ns[WEFT__COUNTER_GROUPS], running_ns[WEFT__COUNTER_GROUPS];
} weft__counts;

/* How the system is asked, so that a test can answer. */
struct perf_event_attr;
typedef struct weft__counter_system {
    int (*open)(const struct perf_event_attr *attr, int group_fd); /* of the calling thread; -1 and errno */
    ssize_t (*read)(int fd, void *out, size_t n);
    int (*close)(int fd);
    void (*own)(uint64_t out[WEFT__COUNTERS - WEFT__COUNTERS_HARDWARE]); /* the system's counts of the thread so far */
} weft__counter_system;

typedef struct weft__counters weft__counters;

/* For events 0 .. n_events - 1. system: NULL is the running one; outlives the counters. WEFT_NO_MEMORY. */
weft_status weft__counters_new(const weft__counter_system *system, int32_t n_events, weft__counters **out,
                               weft_error *err);
void weft__counters_free(weft__counters **counters);
/* Of the calling thread, number `thread` of its team: what it counted since its last mark is added to the event; to
 * none where there is no such event. Numbers begin at 0 and have no gaps. One may pass to another thread, whose first
 * mark adds nothing. */
void weft__counters_mark(weft__counters *counters, int32_t thread, int32_t event);
/* Moves what all threads counted for an event into *out. */
void weft__counters_take(weft__counters *counters, int32_t event, weft__counts *out);
/* "cycles"; NULL for those that are none. */
const char *weft__counter_name(int counter);
/* The group whose times hold for the counter; -1: it always counts. */
int weft__counter_group(int counter);
/* Why the counter is absent, and what helps; NULL where every thread that marked has it. The text is static. */
const char *weft__counters_absent(const weft__counters *counters, int counter);
/* An estimate of the whole, from a count of a part of the time; NAN where it never ran. */
double weft__counters_scaled(double n, double enabled_ns, double running_ns);

#endif
