// SPDX-License-Identifier: Apache-2.0
/* team.h: how many threads a job is worth.
 *
 * Threads that share their work evenly are as fast as the slowest. When another process takes a core away, the thread
 * that had it runs half of the time, and all others wait for it: n threads may then be slower than n - 1, which leave
 * that core alone. So the time is measured during which all others wait for one last thread, and a thread is left out
 * when that costs more than it brings; after a while it gets another chance. No clock in here: times are told. Not
 * thread-safe; its owner is the pool's thread 0. */
#ifndef WEFT_BASE_TEAM_H
#define WEFT_BASE_TEAM_H

#include <stdint.h>

typedef struct weft__team {
    int size, n;                       /* threads there are; threads to use now, 1 <= n <= size */
    int trial;                         /* n is on probation: it was n - 1 before */
    int proven;                        /* n was measured to be faster than n - 1, whatever the waiting says */
    int64_t kind;                      /* of the jobs of this window */
    uint64_t wall_ns, lost_ns, n_jobs; /* this window; n_jobs 0: jobs of several kinds */
    uint64_t settled_ns;               /* time since the last change */
    uint64_t patience_ns;              /* time until a thread that was left out is tried again */
    int64_t small_kind;                /* of the jobs of the last window before the trial */
    double small_job_ns;               /* and how long one took; 0: not known */
} weft__team;

void weft__team_init(weft__team *t, int size);
/* Tells of a job that took wall_ns with t->n threads, of which the last thread to arrive at its barriers made the
 * others wait for lost_ns. Jobs of one `kind` take about as long. May change t->n. */
void weft__team_job(weft__team *t, int64_t kind, uint64_t wall_ns, uint64_t lost_ns);
/* No thread lost time to others lately: each may stay bound to its core. */
static inline int weft__team_calm(const weft__team *t)
{
    return t->n == t->size && !t->trial;
}

#endif
