// SPDX-License-Identifier: Apache-2.0
/* parts.h: what the files of sched share: the records of requests, tenants and lines, and which file does what with
 * them.
 *
 * A *line* is what one tenant has waiting at one level of priority, first come first. Each level has a heap of its
 * lines, the least served tenant on top. Counters of tenants only fall when a prepaid prompt is paid back; a line's key
 * may lag behind its tenant's counter, and is made true when it comes to the top. Records stand in arrays and name each
 * other by index; -1 is none. */
#ifndef WEFT_SCHED_PARTS_H
#define WEFT_SCHED_PARTS_H

#include "sched/heap.h"
#include "sched/sched.h"

enum {
    SCHED_LEVELS = WEFT__SCHED_PRIORITY_MAX - WEFT__SCHED_PRIORITY_MIN + 1,
    SCHED_PREEMPTION_LIFT = 4,  /* levels that a preemption raises the rank of a request by */
    SCHED_PASSES_PER_LEVEL = 4, /* starts of higher levels that one level of difference is good for */
    SCHED_CREDIT_SHIFT = 10     /* counters of tenants are in 1/1024 of a prompt token */
};

typedef enum weft__sched_state {
    WEFT__SCHED_QUEUED,
    WEFT__SCHED_PREFILLING,
    WEFT__SCHED_DECODING,
    WEFT__SCHED_WAITING /* preempted */
} weft__sched_state;

typedef struct sched_request {
    void *user;
    uint64_t deadline_us;
    uint64_t seq;        /* in order of arrival */
    uint64_t start_seq;  /* in order of starting; keeps its value through preemptions */
    uint64_t start_step; /* the step before which it started or resumed */
    uint64_t served_us;  /* when it last had rows, or else started to wait for them */
    uint32_t generation; /* of the record: makes the id */
    int32_t live;
    weft__sched_state state;
    int32_t level, tenant, line;
    int32_t prev, next;                     /* in its line; next also in the list of free records */
    int32_t n_prompt, max_new, n_generated; /* since it was restarted, where it was */
    int32_t n_most;                         /* tokens at a time at most; 0: all */
    int32_t n_computed;                     /* tokens with keys and values */
    int32_t n_highest; /* the most that were computed or found so far: more is progress, less is done again */
    int32_t n_prepaid; /* prompt tokens its tenant was charged for and that are not computed yet */
    int32_t n_cached, n_preempted;
    int32_t rows;      /* in the step being planned or computed */
    int32_t fresh;     /* no rows since it started or resumed, and nothing restored */
    int32_t bare;      /* its prefix does not fit beside its own pages: it goes without one */
    int32_t swapped;   /* the store kept its contents, */
    int32_t restoring; /* and brings them back: it runs, without rows */
    int32_t ending;    /* it finishes at the next opportunity, as `why` */
    int32_t next_ending;
    weft__sched_why why;
} sched_request;

typedef struct sched_tenant {
    uint64_t key;
    int64_t charged; /* credit used, prepaid prompts included */
    int64_t prepaid;
    int32_t n_live, n_queued; /* requests */
    int32_t line[SCHED_LEVELS];
    int32_t next_in_bucket;
    int32_t prev, next; /* of the idle ones, those idle for longest first */
} sched_tenant;

typedef struct sched_line {
    int64_t charged; /* the key by which it stands in the heap: its tenant's counter and its first request's arrival, */
    uint64_t seq;    /* or what these were earlier */
    int32_t tenant, level;
    int32_t first, last;
} sched_line;

struct weft__sched {
    weft__sched_limits limits;
    weft__sched_store store;
    weft__sched_hooks hooks;
    uint64_t now_us, n_seq, n_starts, n_steps;
    int in_step;

    sched_request *requests; /* [n_requests] */
    int32_t n_requests, free_request, n_live, n_queued;
    int32_t first_ending, last_ending;
    weft__sched_heap deadlines; /* of requests that have one */

    int32_t *running; /* [n_running], in order of rank */
    int32_t n_running;
    int32_t *waiting; /* [n_waiting] preempted ones, in order of rank */
    int32_t n_waiting;
    weft__sched_heap readers; /* scratch of a step: requests with prompt rows to compute, */
    int32_t top_level;        /* and the highest level of rank among them */
    weft__sched_item *items;  /* [n_slots] */
    weft__sched_plan plan;

    sched_tenant *tenants; /* [n_tenants] */
    int32_t n_tenants, n_used_tenants, n_live_tenants, first_idle, last_idle;
    int32_t *buckets; /* [n_buckets], a power of two: hash table of tenants by key */
    uint32_t n_buckets;
    int64_t virtual_time, max_lag; /* of the counters */
    sched_line *lines;             /* [n_requests] */
    int32_t *free_lines, n_free_lines, *line_at;
    weft__sched_heap levels[SCHED_LEVELS];
    uint64_t level_since_us[SCHED_LEVELS]; /* when it last had a start, or else began to wait, */
    int64_t level_passed[SCHED_LEVELS];    /* and how many requests of higher levels started since */

    /* Whom memory kept from starting, and what there was then: until something is released, or a prompt that it may
     * share is read, asking again is idle. */
    uint64_t blocked_id, blocked_changes, n_changes;
    int64_t blocked_pages;

    /* When places in the queue became free. */
    uint64_t left_us; /* last time, or when the queue began to fill */
    double leave_interval_us;
    int leave_known;
    int64_t n_turned_away; /* and have not had their turn: less those that left since, none once the queue is empty */

    weft__sched_stats stats;
};

static inline int32_t weft__sched_known(const sched_request *r)
{
    return r->n_prompt + r->n_generated;
}

/* Tokens that it comes to hold, the last one sampled included. */
static inline int64_t weft__sched_total(const sched_request *r)
{
    const int64_t total = (int64_t)r->n_prompt + r->max_new;
    return r->n_most > 0 && r->n_most < total ? r->n_most : total;
}

static inline uint64_t weft__sched_id(const weft__sched *s, int32_t i)
{
    return (uint64_t)s->requests[i].generation << 32 | (uint32_t)(i + 1);
}

/* sched.c */
/* Marks a request to finish; only the first reason counts. */
void weft__sched_mark(weft__sched *s, int32_t i, weft__sched_why why);
/* Finishes one, whatever its state, and frees its record. err: FAILED only. */
void weft__sched_finish(weft__sched *s, int32_t i, weft__sched_why why, const weft_error *err);
void weft__sched_finish_marked(weft__sched *s);

/* queue.c: the requests that wait, and which is next */
/* The tenant of that key, made when it is new; never fails, as there are more records than requests. */
int32_t weft__sched_tenant_get(weft__sched *s, uint64_t key);
void weft__sched_tenant_enter(weft__sched *s, int32_t t); /* one more live request */
void weft__sched_tenant_leave(weft__sched *s, int32_t t);
void weft__sched_queue_push(weft__sched *s, int32_t i);
void weft__sched_queue_remove(weft__sched *s, int32_t i);
/* The request that starts next, still in the queue; -1 when none waits. */
int32_t weft__sched_queue_next(weft__sched *s);
/* Counts a start of that level. */
void weft__sched_queue_started(weft__sched *s, int32_t level);
/* Charges a request's tenant for prompt tokens ahead, or pays back what will not be computed: n_prepaid becomes n. */
void weft__sched_prepay(weft__sched *s, int32_t i, int32_t n);
/* Charges for a step's work on one request: prompt tokens, of which those prepaid are charged already, and generated
 * ones. */
void weft__sched_charge(weft__sched *s, int32_t i, int32_t n_prompt, int32_t n_generated);

/* step.c */
/* The order of s->readers. */
int weft__sched_reads_before(const void *sched, int32_t a, int32_t b);

/* memory.c: which requests start, which are preempted */
/* Starts and resumes requests while there are places and memory. */
void weft__sched_admit(weft__sched *s);
/* Takes memory for the rows of all running requests, preempting those that rank last when there is not enough. */
void weft__sched_reserve_rows(weft__sched *s);
/* Asks what became of those that the store brings back. */
void weft__sched_restore_some(weft__sched *s);
/* Is that all that runs, and does any? */
int weft__sched_only_restores(const weft__sched *s);
/* Out of the running or the preempted. */
void weft__sched_unlist(weft__sched *s, int32_t i);
/* Looks for a longer prefix: another request may have computed it meanwhile. */
void weft__sched_match_again(weft__sched *s, int32_t i);
/* Level with what preemptions lifted it by. */
int32_t weft__sched_rank_level(const sched_request *r);
/* The same with ageing since it last had rows: a request that waits for age_us counts as one level higher. */
int32_t weft__sched_aged_level(const weft__sched *s, const sched_request *r);

#endif
