/* background.c: see background.h. */
#include "base/background.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

typedef struct job {
    void (*fn)(void *arg);
    void *arg;
} job;

/* Linux has a nice value for each thread, against POSIX; elsewhere it would be the whole process's. */
static void give_way(void)
{
#ifdef __linux__
    pthread_setname_np(pthread_self(), "weft-behind");
    errno = 0;
    int now = getpriority(PRIO_PROCESS, (id_t)gettid());
    if (errno == 0) setpriority(PRIO_PROCESS, (id_t)gettid(), now + WEFT__BACKGROUND_NICE); /* 19 is the most; more means that */
#endif
}

static void *run(void *arg)
{
    const job *j = arg;
    give_way();
    j->fn(j->arg);
    return NULL;
}

void weft__background_run(void (*fn)(void *arg), void *arg)
{
    job j = {fn, arg};
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all); /* signals are for other threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int refused = pthread_create(&thread, NULL, run, &j);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (refused) fn(arg);
    else pthread_join(thread, NULL);
}
