// SPDX-License-Identifier: Apache-2.0
/* thread.h: the one way to start a thread (`make check-layers` finds any other).
 *
 * A thread of ours takes no signals: they are for the program's own threads, whose handlers and masks are its business.
 * Writes to a reader that left, or past a limit on files, give errors and end nothing. Signals that a thread's own
 * fault raises (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS) are never blocked: a blocked one ends the process
 * without calling its handler, which may know what to say. One that work in the background starts has the precedence of
 * who has that work done (background.h). */
#ifndef WEFT_BASE_THREAD_H
#define WEFT_BASE_THREAD_H

#include <pthread.h>

/* Calls fn(arg) on a new thread, which is to be joined. 0, or why there is none (an errno). Thread-safe. */
int weft__thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);

#endif
