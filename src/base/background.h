// SPDX-License-Identifier: Apache-2.0
/* background.h: work that others are not to notice: it has a thread of its own, which gives way to every other one.
 *
 * A thread of the pool that loses its core for a moment holds up all the others, and with them every request that is
 * served. A thread may give up its own precedence, but not take it back: so the work gets a thread that ends with it.
 * And what the system takes away for work of low precedence, it takes in whole time slices of several milliseconds; so
 * such work rests by itself, too: where pools have as many threads at work as there are cores, it works for 0.4 ms and
 * sleeps for 2. It has to say how far it has come. What runs there must hold no lock that others wait for: while cores
 * are scarce, it may stand still for long. Threads that it starts (thread.h) are started by the caller meanwhile: they
 * have the caller's precedence, and its cores. Thread-safe. */
#ifndef WEFT_BASE_BACKGROUND_H
#define WEFT_BASE_BACKGROUND_H

#include <pthread.h>
#include <stdint.h>

/* Its nice value over the caller's, for the stretches of work in which it cannot rest. */
enum { WEFT__BACKGROUND_NICE = 10 };

/* Calls fn(arg) and returns after it: on a thread of low precedence, or here: where the system refuses one, and where
 * the calling thread is one already. */
void weft__background_run(void (*fn)(void *arg), void *arg);
/* Where who waits for such a thread finds it; zero-initialise; it outlives what is run. */
typedef struct weft__background_idler {
    _Atomic int tid; /* 0: none; below 0: it is being lifted, and does not end meanwhile */
} weft__background_idler;
/* From now on, and until what it does has ended, the calling thread has a core only while nobody else wants it: whoever
 * wakes takes it at once, not when a time slice ends (SCHED_IDLE; nothing but on Linux, and in any other thread). While
 * no core is free its work hardly goes on: so it is for work that may wait. */
void weft__background_idle(weft__background_idler *who);
/* Somebody waits for it: where weft__background_idle has returned there, it gives way as any thread in the background
 * from now on. The system allows that to root (CAP_SYS_NICE), and where RLIMIT_NICE reaches its nice value; else it
 * stays as it is. Waits for nobody. */
void weft__background_lift(weft__background_idler *who);
/* Is the calling thread one? */
int weft__background_is(void);
/* Says that n_bytes were worked on since the last call, and may rest; nothing in any other thread. Costs an addition
 * for most calls. */
void weft__background_did(uint64_t n_bytes);
/* For thread.c, and threads in the background: weft__thread_start by who runs them. */
int weft__background_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);

#endif
