// SPDX-License-Identifier: Apache-2.0
/* contest.h: consolidation: of several adapters that know the same corrections, the best by the gate.
 *
 * Who takes part, in this order: the current version as it is; one that learned all of it anew from the base; with a
 * teacher one that learned anew beside what the teacher says of the answers that are kept (distil.h); one that learned
 * beside all this what the gate had refused by itself; and the current one compressed to smaller ranks
 * (adapt/compress.c). All are asked the same things by the same gate, and what was refused beside it. Invariant: the
 * winner is a function of what takes part, not of the time or of threads. One thread. */
#ifndef WEFT_LEARN_CONTEST_H
#define WEFT_LEARN_CONTEST_H

#include "learn/teach.h"

enum { WEFT__CONTEST_MOST = 16, WEFT__CONTEST_WHY = 256 };

typedef struct weft__contest_entry {
    const char *by; /* "current", "retrained", "distilled", "retried", "compressed" */
    int32_t rank;   /* compressed: to which; else 0 */
    weft__gate_report gate;
    weft__adapt *adapter; /* its own; NULL: of the current one, and of what the gate refused */
    float scale;
    int32_t n_steps; /* it was learned in */
    int32_t retry;   /* retried: which task; else -1 */
} weft__contest_entry;

/* Which of two is better, above 0: a. The rule, in this order: who passes the gate; more corrections said; more of the
 * same in other words; less KL to the base. 0: neither, as of two that the gate refuses. *why (or NULL): what decided,
 * "gate", "corrections", "paraphrases", "kl"; "" of 0. */
int weft__contest_compare(const weft__gate_report *a, const weft__gate_report *b, const char **why);
/* The best of n entries: of equal ones the first, so that nothing takes the current one's place without being better.
 * -1: n is 0. */
int32_t weft__contest_best(const weft__contest_entry *entry, int32_t n);

typedef struct weft__contest_task {
    /* parent NULL; events: all that the current version knows (none: there is none); path: where the winner is written
     */
    weft__teach_task teach;
    /* [n_retry] likewise, with events that the gate refused by themselves behind these: the first, and where the gate
     * refuses it the others */
    const weft__teach_task *retry;
    int32_t n_retry;
    const weft__teach_options *options;
    const weft__adapt *now; /* the current version; NULL: it cannot be read, and takes no part */
    int now_goes_on;        /* from another version */
    /* NULL, or a model that teaches, and the one that learns, as paths (train/teacher.h) */
    const char *teacher, *pupil;
} weft__contest_task;

typedef struct weft__contest_result {
    int won;                  /* by another than the current one, which was written */
    weft__contest_entry best; /* that one; else the best of the others, with the reason why it is refused */
    weft__adapt_id id;        /* of what was written */
    char why[WEFT__CONTEST_WHY];
} weft__contest_result;

/* Holds it. Where nothing wins nothing is at the path. Fails as weft__teach and the teacher do, with nothing there. */
weft_status weft__contest_hold(const weft__contest_task *task, weft__contest_result *out, weft_error *err);

#endif
