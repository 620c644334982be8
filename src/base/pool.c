// SPDX-License-Identifier: Apache-2.0
/* pool.c: the thread team (pool.h).
 *
 * Invariant: a worker runs a job once for each value of its `job` word; a job ends with a barrier of all that run it,
 * so the caller leaves weft__pool_run only after all are done, and no worker can ever miss one. fn, arg and n are
 * written before `job` is raised (release) and read after it was seen (acquire). A thread that is about to sleep
 * announces it in a counter and then looks again; one that changes the word looks at the counter afterwards; both
 * sequentially consistent, so one of the two always notices the other. Spinning and then sleeping, but never
 * sched_yield: beside a busy process that hands over a whole time slice, while a sleeper that is woken goes first.
 * Owner: the thread that calls weft__pool_run is thread 0; from the beginning of its job to the end it has the turn,
 * and what jobs are made of is its own. */
#include "base/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#include "base/alloc.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/log.h"
#include "base/team.h"
#include "base/thread.h"
#include "base/topology.h"

#define LINE 64        /* words that different threads write stand on cache lines of their own */
#define SPIN_NS 100000 /* before a thread goes to sleep; waking it costs up to half of that */

/* A word that some threads wait for and others change. */
typedef struct event {
    _Alignas(LINE) atomic_uint word;
    atomic_uint sleepers;
} event;

typedef struct worker {
    event job; /* number of jobs begun; also raised to stop */
    weft__pool *pool;
    pthread_t thread;
    int index;
} worker;

struct weft__pool {
    event phase;                        /* barriers completed */
    _Alignas(LINE) atomic_uint arrived; /* threads at the barrier */
    atomic_uint_fast64_t lost_ns;       /* spent at barriers, waiting for the last thread alone */
    _Alignas(LINE) weft__pool_fn fn;
    void *arg;
    int n;        /* threads of this job */
    int measured; /* what they wait counts for the team */
    int stop;
    int n_threads, n_started;
    unsigned spin_rounds;
    int n_shares;     /* who has it from weft__pool_share; 0: it is its creator's. Under `shared.lock` */
    weft__pool *next; /* of those that are shared */
    struct {
        pthread_mutex_t lock;
        pthread_cond_t next;
        uint64_t drawn, now; /* tickets: whoever has `now` may run a job */
    } turn;
    weft__team team;
    atomic_int n_team; /* team.n, for those who do not hold it */
    weft__placement *places;
    int may_bind, bound, fixed;
    worker *workers; /* [n_threads - 1] */
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* waits longer than `yield`, which is a no-op on most cores */
#endif
}

/* Sleeps while *word is `seen`; may also return for no reason. */
static void sleep_on(atomic_uint *word, unsigned seen)
{
#ifdef __linux__
    syscall(SYS_futex, (void *)word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
#else
    (void)word;
    (void)seen;
    nanosleep(&(struct timespec){0, 50000}, NULL);
#endif
}

static void wake_sleepers(event *e)
{
    if (!atomic_load(&e->sleepers)) return;
#ifdef __linux__
    syscall(SYS_futex, (void *)&e->word, FUTEX_WAKE_PRIVATE, 0x7fffffff, NULL, NULL, 0);
#endif
}

static atomic_int at_work; /* threads of all pools that have a job */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned spin_rounds;

/* A pause takes longer on some processors than on others. The shortest of some measurements: others may disturb. */
static void count_spin_rounds(void)
{
    enum { PAUSES = 200, TRIES = 8 };
    uint64_t best = SPIN_NS;
    for (int i = 0; i < TRIES; i++) {
        uint64_t start = weft__clock_ns();
        for (int k = 0; k < PAUSES; k++) relax();
        uint64_t took = weft__clock_ns() - start;
        if (took < best) best = took;
    }
    spin_rounds = (unsigned)((uint64_t)SPIN_NS * PAUSES / (best ? best : 1));
}

/* Waits until e->word differs from `seen` and returns its value: spins, then sleeps. */
static unsigned wait_change(event *e, unsigned seen, unsigned rounds)
{
    unsigned now;
    for (unsigned i = 0; i < rounds; i++) {
        now = atomic_load_explicit(&e->word, memory_order_acquire);
        if (now != seen) return now;
        relax();
    }
    atomic_fetch_add(&e->sleepers, 1);
    while ((now = atomic_load(&e->word)) == seen) sleep_on(&e->word, seen);
    atomic_fetch_sub(&e->sleepers, 1);
    return now;
}

static void *worker_main(void *arg)
{
    worker *self = arg;
    weft__pool *pool = self->pool;
    unsigned seen = 0;
    for (;;) {
        seen = wait_change(&self->job, seen, pool->spin_rounds);
        if (pool->stop) return NULL;
        pool->fn(pool->arg, self->index, pool->n);
        weft__pool_barrier(pool, self->index);
    }
}

static weft_status start_workers(weft__pool *pool, weft_error *err)
{
    int code = 0;
    while (pool->n_started < pool->n_threads - 1) {
        worker *w = &pool->workers[pool->n_started];
        w->pool = pool;
        w->index = pool->n_started + 1;
        code = weft__thread_start(&w->thread, worker_main, w);
        if (code) break;
#ifdef __linux__
        char name[16];
        snprintf(name, sizeof name, "weft-%d", w->index);
        pthread_setname_np(w->thread, name);
#endif
        pool->n_started++;
    }
    if (!code) return WEFT_OK;
    return weft_fail(err, WEFT_LIMIT,
                     "thread %d of %d could not be started (%s); ask for fewer threads (-t or WEFT_THREADS)",
                     pool->n_started + 1, pool->n_threads, strerror(code));
}

/* ---- cores ---- */

/* The environment variable `name` has this value. */
static int says(const char *name, const char *value)
{
    const char *s = getenv(name);
    return s && !strcmp(s, value);
}

static void bind_workers(weft__pool *pool, int tight)
{
    pool->bound = tight;
    for (int i = 0; i < pool->n_started; i++) {
        pthread_t id = pool->workers[i].thread;
        int ok =
            tight ? weft__placement_bind(pool->places, i + 1, id) : weft__placement_loosen(pool->places, i + 1, id);
        if (!ok) weft__log(WEFT__LOG_DEBUG, "thread %d could not be bound to its CPUs", i + 1);
    }
}

static void log_places(const weft__pool *pool)
{
    char list[128];
    for (int i = 0; i < pool->n_threads && weft__log_enabled(WEFT__LOG_DEBUG); i++) {
        weft__placement_list(pool->places, i, list, sizeof list);
        weft__log(WEFT__LOG_DEBUG, "thread %d: NUMA node %d, CPUs %s", i, weft__pool_node(pool, i),
                  *list ? list : "any");
    }
}

/* ---- the pool ---- */

weft_status weft__pool_create(int n_threads, weft__pool **out, weft_error *err)
{
    weft_status status;
    *out = NULL;
    if (n_threads == 0) n_threads = weft__machine_default_threads();
    if (n_threads < 1 || n_threads > WEFT__POOL_MAX_THREADS) {
        return weft_fail(err, WEFT_ARGUMENT, "%d threads: give a number from 1 to %d", n_threads,
                         WEFT__POOL_MAX_THREADS);
    }
    weft__pool *pool = weft__alloc_aligned(LINE, sizeof *pool);
    if (!pool) return weft_fail(err, WEFT_NO_MEMORY, "thread pool of %d threads: out of memory", n_threads);
    memset(pool, 0, sizeof *pool);
    pthread_once(&once, count_spin_rounds);
    pthread_mutex_init(&pool->turn.lock, NULL);
    pthread_cond_init(&pool->turn.next, NULL);
    pool->n_threads = pool->n = n_threads;
    /* Spinning for a thread that has no CPU to run on only keeps it from running. */
    pool->spin_rounds = n_threads <= weft__machine_cpus() ? spin_rounds : 0;
    pool->fixed = says("WEFT_TEAM", "fixed");
    weft__team_init(&pool->team, n_threads);
    atomic_init(&pool->n_team, n_threads);
    pool->workers = weft__alloc_aligned(LINE, (size_t)n_threads * sizeof *pool->workers);
    if (!pool->workers) {
        status = weft_fail(err, WEFT_NO_MEMORY, "thread pool of %d threads: out of memory", n_threads);
        goto failed;
    }
    memset(pool->workers, 0, (size_t)n_threads * sizeof *pool->workers);
    if ((status = weft__placement_create(weft__topology_machine(), n_threads, &pool->places, err))) goto failed;
    if ((status = start_workers(pool, err))) goto failed;
    pool->may_bind = n_threads > 1 && weft__placement_binds(pool->places) && !says("WEFT_PIN", "0");
    if (pool->may_bind) bind_workers(pool, 1);
    log_places(pool);
    *out = pool;
    return WEFT_OK;
failed:
    weft__pool_destroy(&pool);
    return status;
}

/* Pools that several use. */
static struct {
    pthread_mutex_t lock;
    weft__pool *first;
} shared = {PTHREAD_MUTEX_INITIALIZER, NULL};

weft_status weft__pool_share(int n_threads, weft__pool **out, weft_error *err)
{
    weft_status st = WEFT_OK;
    *out = NULL;
    if (n_threads == 0) n_threads = weft__machine_default_threads();
    pthread_mutex_lock(&shared.lock);
    for (weft__pool *p = shared.first; p; p = p->next)
        if (p->n_threads == n_threads) *out = p;
    if (!*out && !(st = weft__pool_create(n_threads, out, err))) {
        (*out)->next = shared.first;
        shared.first = *out;
    }
    if (*out) (*out)->n_shares++;
    pthread_mutex_unlock(&shared.lock);
    return st;
}

/* 1: others have it still. */
static int pool_is_shared(weft__pool *pool)
{
    int others = 0;
    pthread_mutex_lock(&shared.lock);
    if (pool->n_shares) {
        others = --pool->n_shares > 0;
        weft__pool **at = &shared.first;
        while (*at != pool) at = &(*at)->next;
        if (!others) *at = pool->next;
    }
    pthread_mutex_unlock(&shared.lock);
    return others;
}

void weft__pool_destroy(weft__pool **pp)
{
    weft__pool *pool = *pp;
    if (!pool) return;
    *pp = NULL;
    if (pool_is_shared(pool)) return;
    pool->stop = 1;
    for (int i = 0; i < pool->n_started; i++) {
        atomic_fetch_add(&pool->workers[i].job.word, 1);
        wake_sleepers(&pool->workers[i].job);
    }
    for (int i = 0; i < pool->n_started; i++) pthread_join(pool->workers[i].thread, NULL);
    weft__placement_destroy(&pool->places);
    weft__free(pool->workers);
    pthread_cond_destroy(&pool->turn.next);
    pthread_mutex_destroy(&pool->turn.lock);
    weft__free(pool);
}

int weft__pool_size(const weft__pool *pool)
{
    return pool->n_threads;
}

int weft__pool_node(const weft__pool *pool, int thread)
{
    return weft__placement_of(pool->places, thread)->node;
}

void weft__pool_stand_beside(const weft__pool *pool, int thread)
{
    if (pool->may_bind) (void)weft__placement_loosen(pool->places, thread, pthread_self());
}

/* In the order in which callers came: one that has much to do, job after job, keeps none of the others waiting for more
 * than one of its jobs. */
static void take_turn(weft__pool *pool)
{
    pthread_mutex_lock(&pool->turn.lock);
    const uint64_t mine = pool->turn.drawn++;
    while (pool->turn.now != mine) pthread_cond_wait(&pool->turn.next, &pool->turn.lock);
    pthread_mutex_unlock(&pool->turn.lock);
}

static void give_turn(weft__pool *pool)
{
    pthread_mutex_lock(&pool->turn.lock);
    const int others = ++pool->turn.now != pool->turn.drawn;
    pthread_mutex_unlock(&pool->turn.lock);
    if (others) pthread_cond_broadcast(&pool->turn.next);
}

/* One job on the first n threads; the caller has its turn. */
static void run_job(weft__pool *pool, int n, int measured, weft__pool_fn fn, void *arg)
{
    if (pool->bound) weft__placement_visit(pool->places, 0);
    pool->n = n;
    pool->measured = measured;
    if (n > 1) {
        pool->fn = fn;
        pool->arg = arg;
        for (int i = 0; i < n - 1; i++) {
            atomic_fetch_add(&pool->workers[i].job.word, 1);
            wake_sleepers(&pool->workers[i].job);
        }
    }
    atomic_fetch_add_explicit(&at_work, n, memory_order_relaxed);
    fn(arg, 0, n);
    weft__pool_barrier(pool, 0);
    atomic_fetch_sub_explicit(&at_work, n, memory_order_relaxed);
}

/* A job of a pool that has no threads of its own: it needs nothing of the pool. */
static void run_alone(weft__pool_fn fn, void *arg)
{
    atomic_fetch_add_explicit(&at_work, 1, memory_order_relaxed);
    fn(arg, 0, 1);
    atomic_fetch_sub_explicit(&at_work, 1, memory_order_relaxed);
}

int weft__pool_at_work(void)
{
    return atomic_load_explicit(&at_work, memory_order_relaxed);
}

void weft__pool_run(weft__pool *pool, weft__pool_fn fn, void *arg)
{
    if (pool->n_threads == 1) {
        run_alone(fn, arg);
        return;
    }
    take_turn(pool);
    run_job(pool, pool->n_threads, 0, fn, arg);
    give_turn(pool);
}

int weft__pool_team(const weft__pool *pool)
{
    return atomic_load_explicit(&pool->n_team, memory_order_relaxed);
}

/* Runs one, and learns from it how many threads the next ones are worth. */
static void run_team(weft__pool *pool, int n, int64_t kind, weft__pool_fn fn, void *arg)
{
    int measured = !pool->fixed && n == pool->team.n;
    uint64_t start = weft__clock_ns();
    run_job(pool, n, measured, fn, arg);
    if (!measured) return;
    /* What a worker adds after this, at the end of the job, counts for the next one. */
    uint64_t lost = atomic_exchange_explicit(&pool->lost_ns, 0, memory_order_relaxed);
    weft__team_job(&pool->team, kind, weft__clock_ns() - start, lost);
    atomic_store_explicit(&pool->n_team, pool->team.n, memory_order_relaxed);
    int calm = weft__team_calm(&pool->team);
    if (pool->may_bind && calm != pool->bound) bind_workers(pool, calm);
}

void weft__pool_run_team(weft__pool *pool, int n, int64_t kind, weft__pool_fn fn, void *arg)
{
    if (pool->n_threads == 1) {
        run_alone(fn, arg);
        return;
    }
    take_turn(pool);
    run_team(pool, n, kind, fn, arg);
    give_turn(pool);
}

/* The last but one to arrive waits for the last one only: what that costs is the team's loss. */
void weft__pool_barrier(weft__pool *pool, int thread)
{
    (void)thread; /* one counter for all; a tree of counters would use it */
    unsigned n = (unsigned)pool->n;
    int measured = pool->measured; /* of this job: behind its last barrier thread 0 may begin another */
    if (n == 1) return;
    /* Cannot change before we have arrived, so a late look is impossible. */
    unsigned phase = atomic_load_explicit(&pool->phase.word, memory_order_relaxed);
    unsigned before = atomic_fetch_add_explicit(&pool->arrived, 1, memory_order_acq_rel);
    if (before + 1 == n) {
        /* Reset before the phase moves: no thread can arrive again until then. */
        atomic_store_explicit(&pool->arrived, 0, memory_order_relaxed);
        atomic_fetch_add(&pool->phase.word, 1);
        wake_sleepers(&pool->phase);
    } else if (before + 2 == n) {
        uint64_t start = weft__clock_ns();
        wait_change(&pool->phase, phase, pool->spin_rounds);
        if (measured) atomic_fetch_add_explicit(&pool->lost_ns, weft__clock_ns() - start, memory_order_relaxed);
    } else {
        wait_change(&pool->phase, phase, pool->spin_rounds);
    }
}
