// SPDX-License-Identifier: Apache-2.0
/* background.c: see background.h. */
#include "base/background.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/pool.h"
#include "base/thread.h"

#define WORK_NS 400000   /* between rests, of the thread's own time */
#define REST_NS 2000000  /* also where there was no chance to rest for longer: what that did is done */
#define LOOK_BYTES 65536 /* some ten microseconds of most work */

/* Of a thread in the background. */
static _Thread_local struct {
    int is_one, n_cores;
    uint64_t n_bytes; /* worked on since it looked at the clock */
    uint64_t next_ns; /* when it has worked long enough, at the earliest */
    uint64_t own_ns;  /* its own time at the end of its last rest */
} self;

static uint64_t own_ns(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) ? 0 : (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Work goes on for WORK_NS from now, of which `did` are over. */
static void background_go_on(uint64_t did)
{
    self.next_ns = weft__clock_ns() + (WORK_NS - did);
}

static void rest(void)
{
    if (weft__clock_ns() < self.next_ns) return;
    uint64_t own = own_ns(), did = own - self.own_ns;
    if (did < WORK_NS) { /* the time was others' */
        background_go_on(did);
        return;
    }
    if (weft__pool_at_work() >= self.n_cores) nanosleep(&(struct timespec){0, REST_NS}, NULL);
    self.own_ns = own;
    background_go_on(0);
}

int weft__background_is(void)
{
    return self.is_one;
}

void weft__background_did(uint64_t n_bytes)
{
    if (!self.is_one || (self.n_bytes += n_bytes) < LOOK_BYTES) return;
    self.n_bytes = 0;
    rest();
}

typedef struct background_job {
    void (*fn)(void *arg);
    void *arg;
} background_job;

/* Linux has a nice value for each thread, against POSIX; elsewhere it would be the whole process's. */
static void give_way(void)
{
#ifdef __linux__
    pthread_setname_np(pthread_self(), "weft-behind");
    errno = 0;
    int now = getpriority(PRIO_PROCESS, (id_t)gettid());
    if (errno == 0)
        setpriority(PRIO_PROCESS, (id_t)gettid(), now + WEFT__BACKGROUND_NICE); /* 19 is the most; more means that */
#endif
}

static void *background_run(void *arg)
{
    const background_job *j = arg;
    give_way();
    self.is_one = 1;
    self.n_cores = weft__machine_cores();
    self.own_ns = own_ns();
    background_go_on(0);
    j->fn(j->arg);
    return NULL;
}

void weft__background_run(void (*fn)(void *arg), void *arg)
{
    background_job j = {fn, arg};
    pthread_t thread;
    if (weft__thread_start(&thread, background_run, &j)) fn(arg);
    else pthread_join(thread, NULL);
}
