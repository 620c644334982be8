// SPDX-License-Identifier: Apache-2.0
/* thread.c: see thread.h. Stateless. */
#include "base/thread.h"

#include <signal.h>
#include <stddef.h>

#include "base/background.h"

int weft__thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t others, before;
    if (weft__background_is()) return weft__background_start(thread, fn, arg);
    sigfillset(&others);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&others, faults[i]);
    pthread_sigmask(SIG_SETMASK, &others, &before);
    const int why = pthread_create(thread, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return why;
}
