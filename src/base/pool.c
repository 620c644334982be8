/* pool.c: the thread team (pool.h).
 *
 * Invariant: `job` counts jobs; a worker runs once for each value it sees, and the caller leaves weft__pool_run only after
 * `pending` came down to 0, so no worker can ever miss one. fn and arg are written before `job` is raised (release) and read
 * after it was seen (acquire). Whoever is about to sleep announces it in a counter and then looks again; whoever changes the
 * word looks at the counter afterwards; both sequentially consistent, so one of the two always notices the other.
 * Owner: the thread that calls weft__pool_run is thread 0. */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

#include "base/alloc.h"
#include "base/cpu.h"

#define LINE 64            /* words that different threads write stand on cache lines of their own */
#define MAX_THREADS 1024
#define SPIN_ROUNDS 4000   /* pauses before a thread goes to sleep: 40 to 150 microseconds */
#define YIELD_ROUNDS 8     /* and then it offers its CPU this often */

/* A word that some threads wait for and others change. */
typedef struct event {
    _Alignas(LINE) atomic_uint word;
    atomic_uint sleepers;
} event;

typedef struct worker {
    weft__pool *pool;
    pthread_t thread;
    int index;
} worker;

struct weft__pool {
    event job;             /* number of jobs begun; also raised to stop */
    event pending;         /* workers still inside the job */
    event phase;           /* barriers completed */
    _Alignas(LINE) atomic_uint arrived; /* threads at the barrier */
    _Alignas(LINE) weft__pool_fn fn;
    void *arg;
    int stop;
    int n_threads, n_started;
    unsigned spin_rounds;
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

/* Waits until e->word differs from `seen` and returns its value: spins, yields, then sleeps. */
static unsigned wait_change(event *e, unsigned seen, unsigned spin_rounds)
{
    unsigned now;
    for (unsigned i = 0; i < spin_rounds; i++) {
        now = atomic_load_explicit(&e->word, memory_order_acquire);
        if (now != seen) return now;
        relax();
    }
    for (unsigned i = 0; i < YIELD_ROUNDS; i++) {
        now = atomic_load_explicit(&e->word, memory_order_acquire);
        if (now != seen) return now;
        sched_yield();
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
        seen = wait_change(&pool->job, seen, pool->spin_rounds);
        if (pool->stop) return NULL;
        pool->fn(pool->arg, self->index, pool->n_threads);
        if (atomic_fetch_sub(&pool->pending.word, 1) == 1) wake_sleepers(&pool->pending);
    }
}

/* Starts the workers with all signals blocked, so that signals reach the threads of the program that embeds us. */
static weft_status start_workers(weft__pool *pool, weft_error *err)
{
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    int code = 0;
    while (pool->n_started < pool->n_threads - 1) {
        worker *w = &pool->workers[pool->n_started];
        w->pool = pool;
        w->index = pool->n_started + 1;
        code = pthread_create(&w->thread, NULL, worker_main, w);
        if (code) break;
#ifdef __linux__
        char name[16];
        snprintf(name, sizeof name, "weft-%d", w->index);
        pthread_setname_np(w->thread, name);
#endif
        pool->n_started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!code) return WEFT_OK;
    return weft_fail(err, WEFT_LIMIT, "thread %d of %d could not be started (%s); ask for fewer threads (-t or WEFT_THREADS)",
                     pool->n_started + 1, pool->n_threads, strerror(code));
}

weft_status weft__pool_create(int n_threads, weft__pool **out, weft_error *err)
{
    weft_status status;
    *out = NULL;
    if (n_threads == 0) n_threads = weft__cpu_default_threads();
    if (n_threads < 1 || n_threads > MAX_THREADS) {
        return weft_fail(err, WEFT_ARGUMENT, "%d threads: give a number from 1 to %d", n_threads, MAX_THREADS);
    }
    weft__pool *pool = weft__alloc_aligned(LINE, sizeof *pool);
    if (!pool) return weft_fail(err, WEFT_NO_MEMORY, "thread pool of %d threads: out of memory", n_threads);
    memset(pool, 0, sizeof *pool);
    pool->n_threads = n_threads;
    /* Spinning for a thread that has no CPU to run on only keeps it from running. */
    pool->spin_rounds = n_threads <= weft__cpu_usable() ? SPIN_ROUNDS : 0;
    pool->workers = weft__alloc_zero((size_t)n_threads, sizeof *pool->workers);
    if (!pool->workers) {
        status = weft_fail(err, WEFT_NO_MEMORY, "thread pool of %d threads: out of memory", n_threads);
        goto failed;
    }
    status = start_workers(pool, err);
    if (status) goto failed;
    *out = pool;
    return WEFT_OK;
failed:
    weft__pool_destroy(&pool);
    return status;
}

void weft__pool_destroy(weft__pool **pp)
{
    weft__pool *pool = *pp;
    if (!pool) return;
    *pp = NULL;
    pool->stop = 1;
    atomic_fetch_add(&pool->job.word, 1);
    wake_sleepers(&pool->job);
    for (int i = 0; i < pool->n_started; i++) pthread_join(pool->workers[i].thread, NULL);
    weft__free(pool->workers);
    weft__free(pool);
}

int weft__pool_size(const weft__pool *pool)
{
    return pool->n_threads;
}

void weft__pool_run(weft__pool *pool, weft__pool_fn fn, void *arg)
{
    if (pool->n_threads == 1) {
        fn(arg, 0, 1);
        return;
    }
    pool->fn = fn;
    pool->arg = arg;
    atomic_store_explicit(&pool->pending.word, (unsigned)pool->n_threads - 1, memory_order_relaxed);
    atomic_fetch_add(&pool->job.word, 1);
    wake_sleepers(&pool->job);
    fn(arg, 0, pool->n_threads);
    unsigned left = atomic_load_explicit(&pool->pending.word, memory_order_acquire);
    while (left) left = wait_change(&pool->pending, left, pool->spin_rounds);
}

void weft__pool_barrier(weft__pool *pool, int thread)
{
    (void)thread; /* one counter for all; a tree of counters would use it */
    if (pool->n_threads == 1) return;
    /* Cannot change before we have arrived, so a late look is impossible. */
    unsigned phase = atomic_load_explicit(&pool->phase.word, memory_order_relaxed);
    unsigned before = atomic_fetch_add_explicit(&pool->arrived, 1, memory_order_acq_rel);
    if (before + 1 == (unsigned)pool->n_threads) {
        /* Reset before the phase moves: nobody can arrive again until then. */
        atomic_store_explicit(&pool->arrived, 0, memory_order_relaxed);
        atomic_fetch_add(&pool->phase.word, 1);
        wake_sleepers(&pool->phase);
    } else {
        wait_change(&pool->phase, phase, pool->spin_rounds);
    }
}
