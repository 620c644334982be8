// SPDX-License-Identifier: Apache-2.0
/* background.c: see background.h. */
#include "base/background.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
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
    int is_one, is_idle, n_cores;
    struct background_job *job;
    weft__background_idler *idler;
    uint64_t n_bytes; /* worked on since it looked at the clock */
    uint64_t next_ns; /* when it has worked long enough, at the earliest */
    uint64_t own_ns;  /* its own time at the end of its last rest */
} self;

/* Work goes on for WORK_NS from now, of which `did` are over. */
static void background_go_on(uint64_t did)
{
    self.next_ns = weft__clock_ns() + (WORK_NS - did);
}

static void rest(void)
{
    if (weft__clock_ns() < self.next_ns) return;
    uint64_t own = weft__clock_thread_ns(), did = own - self.own_ns;
    if (did < WORK_NS) { /* the time was others' */
        background_go_on(did);
        return;
    }
    if (weft__pool_at_work() >= self.n_cores) nanosleep(&(struct timespec){0, REST_NS}, NULL);
    self.own_ns = own;
    background_go_on(0);
}

void weft__background_idle(weft__background_idler *who)
{
    if (!self.is_one || self.is_idle) return;
    self.is_idle = 1;
#ifdef __linux__
    self.idler = who;
    atomic_store(&who->tid, gettid());
    sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0}); /* of this thread; refused, it stays as it is */
#else
    (void)who;
#endif
}

void weft__background_lift(weft__background_idler *who)
{
#ifdef __linux__
    int tid = atomic_load(&who->tid);
    if (tid <= 0 || !atomic_compare_exchange_strong(&who->tid, &tid, -tid)) return;
    sched_setscheduler(tid, SCHED_OTHER, &(struct sched_param){0}); /* it cannot end, so the number is its own */
    atomic_store(&who->tid, tid);
#else
    (void)who;
#endif
}

/* No lock, which others would wait for as long as this thread has no core. */
static void idle_no_more(void)
{
#ifdef __linux__
    const int own = gettid();
    int tid = own;
    while (self.idler && !atomic_compare_exchange_strong(&self.idler->tid, &tid, 0)) {
        tid = own;
        sched_yield();
    }
#endif
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

/* The thread that has it done waits for its end, and starts threads for it. */
typedef struct background_job {
    void (*fn)(void *arg);
    void *arg;
    pthread_mutex_t lock; /* all below */
    pthread_cond_t changed;
    int has_ended, wants_thread;
    pthread_t *thread;
    void *(*thread_fn)(void *arg);
    void *thread_arg;
    int why; /* there is none */
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
    background_job *j = arg;
    give_way();
    self.is_one = 1;
    self.job = j;
    self.n_cores = weft__machine_cores();
    self.own_ns = weft__clock_thread_ns();
    background_go_on(0);
    j->fn(j->arg);
    idle_no_more();
    pthread_mutex_lock(&j->lock);
    j->has_ended = 1;
    pthread_cond_broadcast(&j->changed);
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

int weft__background_start(pthread_t *thread, void *(*fn)(void *arg), void *arg)
{
    background_job *j = self.job;
    pthread_mutex_lock(&j->lock);
    j->thread = thread;
    j->thread_fn = fn;
    j->thread_arg = arg;
    j->wants_thread = 1;
    pthread_cond_broadcast(&j->changed);
    while (j->wants_thread) pthread_cond_wait(&j->changed, &j->lock);
    const int why = j->why;
    pthread_mutex_unlock(&j->lock);
    return why;
}

/* Until the job has ended. */
static void background_serve(background_job *j)
{
    pthread_mutex_lock(&j->lock);
    while (!j->has_ended) {
        if (j->wants_thread) {
            j->why = weft__thread_start(j->thread, j->thread_fn, j->thread_arg);
            j->wants_thread = 0;
            pthread_cond_broadcast(&j->changed);
        } else {
            pthread_cond_wait(&j->changed, &j->lock);
        }
    }
    pthread_mutex_unlock(&j->lock);
}

void weft__background_run(void (*fn)(void *arg), void *arg)
{
    background_job j = {.fn = fn, .arg = arg};
    pthread_t thread;
    if (self.is_one) {
        fn(arg);
        return;
    }
    pthread_mutex_init(&j.lock, NULL);
    pthread_cond_init(&j.changed, NULL);
    if (weft__thread_start(&thread, background_run, &j)) {
        fn(arg);
    } else {
        background_serve(&j);
        pthread_join(thread, NULL);
    }
    pthread_cond_destroy(&j.changed);
    pthread_mutex_destroy(&j.lock);
}
