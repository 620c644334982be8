// SPDX-License-Identifier: Apache-2.0
/* clock.h: monotonic time, and that of the calendar. Thread-safe. */
#ifndef WEFT_BASE_CLOCK_H
#define WEFT_BASE_CLOCK_H

#include <pthread.h>
#include <stdint.h>

/* Nanoseconds since an arbitrary point; never goes back. */
uint64_t weft__clock_ns(void);
/* Nanoseconds for which the calling thread has had a core; 0: the system does not say. */
uint64_t weft__clock_thread_ns(void);
/* Milliseconds since 1970 (UTC), as whoever keeps records writes them; somebody may set it back. */
int64_t weft__clock_unix_ms(void);
/* A condition whose timed waits go by this clock: one that is set must not end or stretch a wait. */
void weft__clock_cond_init(pthread_cond_t *cond);
/* Waits on such a condition, with its lock: 0 when it was signalled, or for no reason; nonzero when the clock has come
 * to until_ns (0: it never does). */
int weft__clock_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns);

#endif
