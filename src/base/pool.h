// SPDX-License-Identifier: Apache-2.0
/* pool.h: a team of threads that runs one function together.
 *
 * The caller is thread 0; the others spin for a tenth of a millisecond between jobs and at barriers, then sleep. There
 * is one job at a time: callers of weft__pool_run take turns, and it returns when every thread has finished the job. A
 * pool of one thread owns no threads and calls the function directly, for any number of callers at once.
 *
 * The pool's own threads are bound to their cores (topology.h); the caller's thread is only moved to its core at the
 * start of a job, since its affinity mask is not ours to change. WEFT_PIN=0: neither. When a core turns out to be taken
 * by another process (team.h), all are let loose within their NUMA node until it is quiet again. */
#ifndef WEFT_BASE_POOL_H
#define WEFT_BASE_POOL_H

#include <stdint.h>

#include "weft/error.h"

typedef struct weft__pool weft__pool;
typedef void (*weft__pool_fn)(void *arg, int thread, int n_threads);

/* n_threads >= 1; 0 means weft__machine_default_threads(). Fails with WEFT_NO_MEMORY, or with WEFT_LIMIT when the
 * system refuses threads. */
weft_status weft__pool_create(int n_threads, weft__pool **out, weft_error *err);
/* The pool of so many threads that the process has already, or a new one: those who share it take turns, in the order
 * in which they came. Each gives it back with weft__pool_destroy. */
weft_status weft__pool_share(int n_threads, weft__pool **out, weft_error *err);
void weft__pool_destroy(weft__pool **pool);
int weft__pool_size(const weft__pool *pool);
/* Binds the calling thread, not one of the pool's, to the NUMA node of thread i, as far as the pool binds at all. */
void weft__pool_stand_beside(const weft__pool *pool, int thread);
/* NUMA node beside thread i, 0 <= i < weft__pool_size; 0 where unknown. */
int weft__pool_node(const weft__pool *pool, int thread);
void weft__pool_run(weft__pool *pool, weft__pool_fn fn, void *arg);
/* How many threads a job is worth now: weft__pool_size, or fewer while others take cores away. WEFT_TEAM=fixed: always
 * all. */
int weft__pool_team(const weft__pool *pool);
/* Runs fn on threads 0 .. n - 1, and if n is weft__pool_team, measures what waiting for the last one cost. Jobs of one
 * `kind` take about the same time, otherwise it means nothing. */
void weft__pool_run_team(weft__pool *pool, int n, int64_t kind, weft__pool_fn fn, void *arg);
/* Waits until every thread of the running job has arrived; to be called by all of them, inside the job, equally often.
 * What any thread wrote before it is visible to all after it. */
void weft__pool_barrier(weft__pool *pool, int thread);
/* Threads of all pools of the process that have a job now. Any thread may ask; the answer may be old at once. */
int weft__pool_at_work(void);

#endif
