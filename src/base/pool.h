/* pool.h: a fixed team of threads that runs one function together.
 *
 * The caller is thread 0; the others spin briefly between jobs, then sleep. There is one job at a time: weft__pool_run is called
 * by one thread at a time (the engine thread) and returns when every thread has finished.
 * A pool of one thread owns no threads and calls the function directly. */
#ifndef WEFT_BASE_POOL_H
#define WEFT_BASE_POOL_H

#include "weft/error.h"

typedef struct weft__pool weft__pool;
typedef void (*weft__pool_fn)(void *arg, int thread, int n_threads);

/* n_threads >= 1; 0 means weft__cpu_default_threads(). Fails with WEFT_NO_MEMORY, or WEFT_LIMIT when the system refuses threads. */
weft_status weft__pool_create(int n_threads, weft__pool **out, weft_error *err);
void weft__pool_destroy(weft__pool **pool);
int weft__pool_size(const weft__pool *pool);
void weft__pool_run(weft__pool *pool, weft__pool_fn fn, void *arg);
/* Waits until every thread of the running job has arrived; to be called by all of them, inside the job, equally often. What
 * any thread wrote before it is visible to all after it. */
void weft__pool_barrier(weft__pool *pool, int thread);

#endif
