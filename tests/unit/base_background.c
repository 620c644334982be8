// SPDX-License-Identifier: Apache-2.0
/* base_background.c: work with a thread that gives way, and without one; threads that it starts do not. */
#include "unit/fixture.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/background.h"
#include "base/cpu.h"
#include "base/pool.h"
#include "base/thread.h"
#include "unit/own_nice.h"

static int refuse;

int __real_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    return refuse ? EAGAIN : __real_pthread_create(t, attr, fn, arg);
}

typedef struct seen {
    int n, nice, policy, takes_signals;
    pthread_t thread;
} seen;

static void look(void *arg)
{
    seen *s = arg;
    sigset_t mask;
    s->n++;
    s->nice = own_nice();
    s->policy = sched_getscheduler(0);
    s->thread = pthread_self();
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    s->takes_signals = !sigismember(&mask, SIGTERM);
}

static void it_gives_way_and_the_caller_does_not(void **state)
{
    (void)state;
    int before = own_nice();
    for (int i = 0; i < 3; i++) {
        seen s = {0};
        weft__background_run(look, &s);
        assert_int_equal(s.n, 1);
        assert_false(pthread_equal(s.thread, pthread_self()));
        assert_false(s.takes_signals);
#ifdef __linux__
        assert_int_equal(s.nice, before + WEFT__BACKGROUND_NICE < 19 ? before + WEFT__BACKGROUND_NICE : 19);
        assert_int_equal(s.policy, sched_getscheduler(0));
#endif
        assert_int_equal(own_nice(), before);
    }
}

static weft__background_idler idler;

static void look_idle(void *arg)
{
    weft__background_idle(&idler);
    look(arg);
}

/* What may wait has no time slice to end: whoever wakes takes the core. What comes after it has one again. */
static void what_may_wait_has_no_precedence_at_all(void **state)
{
    (void)state;
    const int before = sched_getscheduler(0);
    seen s = {0}, next = {0};
    weft__background_run(look_idle, &s);
    weft__background_run(look, &next);
    look_idle(&(seen){0});
#ifdef __linux__
    assert_int_equal(s.policy, SCHED_IDLE);
#endif
    assert_int_equal(next.policy, before);
    assert_int_equal(sched_getscheduler(0), before);
}

#ifdef __linux__
static void look_once_lifted(void *arg)
{
    seen *s = arg;
    weft__background_idle(&idler);
    look(arg);
    weft__background_lift(&idler); /* as anybody does who waits for it */
    s->n = sched_getscheduler(0);
    weft__background_idle(&idler); /* from then on for good */
    if (s->n != sched_getscheduler(0)) s->n = -1;
}

static void leave_idle(void *arg)
{
    weft__background_idle(&idler);
    *(int *)arg = !sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
}
#endif

/* Where the system allows it; whoever has ended is nobody's any more, whatever his number is by then. */
static void whom_one_waits_for_may_be_lifted(void **state)
{
    (void)state;
#ifdef __linux__
    seen s = {0};
    int may = 0;
    weft__background_run(leave_idle, &may);
    assert_int_equal(idler.tid, 0);
    weft__background_run(look_once_lifted, &s);
    assert_int_equal(s.policy, SCHED_IDLE);
    assert_int_equal(s.n, may ? SCHED_OTHER : SCHED_IDLE);
    assert_int_equal(idler.tid, 0);
    weft__background_lift(&idler);
#else
    skip();
#endif
}

static void without_threads_the_caller_does_it(void **state)
{
    (void)state;
    seen s = {0};
    sigset_t mask;
    refuse = 1;
    weft__background_run(look, &s);
    refuse = 0;
    assert_int_equal(s.n, 1);
    assert_true(pthread_equal(s.thread, pthread_self()));
    assert_true(s.takes_signals);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM));
}

static void *look_there(void *arg)
{
    look(arg);
    return NULL;
}

static void start_one(void *arg)
{
    pthread_t thread;
    assert_int_equal(weft__thread_start(&thread, look_there, arg), 0);
    pthread_join(thread, NULL);
    refuse = 1;
    assert_int_equal(weft__thread_start(&thread, look_there, arg), EAGAIN);
    refuse = 0;
}

/* What is begun there serves others later, and cannot raise its own precedence. */
static void threads_that_it_starts_do_not_give_way(void **state)
{
    (void)state;
    seen s = {0};
    weft__background_run(start_one, &s);
    assert_int_equal(s.n, 1);
    assert_int_equal(s.nice, own_nice());
    assert_false(s.takes_signals);
}

static void run_another(void *arg)
{
    seen *s = arg;
    weft__background_run(look, s);
    assert_true(pthread_equal(s->thread, pthread_self()));
}

static void one_within_another_is_the_same(void **state)
{
    (void)state;
    seen s = {0};
    weft__background_run(run_another, &s);
    assert_int_equal(s.n, 1);
#ifdef __linux__
    assert_true(s.nice == own_nice() + WEFT__BACKGROUND_NICE || s.nice == 19);
#endif
}

enum {
    WORK_MS = 10, /* of the thread's own time: some twenty rests */
    MANY = 6,
    FEW = 3 /* the system may let a thread wait for a page, or a lock of its own */
};

typedef struct effort {
    int in_steps; /* says how far it is */
    int in_background;
    long n_rests;
} effort;

static long own_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void toil(void *arg)
{
    effort *e = arg;
    struct rusage before, after;
    getrusage(RUSAGE_THREAD, &before);
    for (long end = own_ms() + WORK_MS; own_ms() < end;)
        if (e->in_steps) weft__background_did(1 << 20);
    getrusage(RUSAGE_THREAD, &after);
    e->n_rests = after.ru_nvcsw - before.ru_nvcsw;
}

static void toil_as_the_first(void *arg, int thread, int n_threads)
{
    effort *e = arg;
    (void)n_threads;
    if (thread == 0 && e->in_background) weft__background_run(toil, e);
    else if (thread == 0) toil(e);
}

/* How often it rests beside a job of n threads; none: without one. */
static long rests_beside(int n, effort e)
{
    weft__pool *pool;
    weft_error err = {0};
    if (n == 0) {
        weft__background_run(toil, &e);
        return e.n_rests;
    }
    assert_int_equal(weft__pool_create(n, &pool, &err), WEFT_OK);
    weft__pool_run(pool, toil_as_the_first, &e);
    assert_int_equal(weft__pool_at_work(), 0);
    weft__pool_destroy(&pool);
    return e.n_rests;
}

static void it_rests_where_cores_are_taken_and_only_there(void **state)
{
    const effort told = {1, 1, 0}, untold = {0, 1, 0}, of_the_pool = {1, 0, 0};
    const int n = weft__machine_cores();
    (void)state;
    if (n > WEFT__POOL_MAX_THREADS) skip();
    assert_true(rests_beside(n, told) >= MANY);
    assert_true(rests_beside(0, told) <= FEW);
    if (n > 1) assert_true(rests_beside(n - 1, told) <= FEW); /* one core is free */
    assert_true(rests_beside(n, untold) <= FEW);
    assert_true(rests_beside(n, of_the_pool) <= FEW); /* who is not in the background never rests */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_gives_way_and_the_caller_does_not),
        cmocka_unit_test(what_may_wait_has_no_precedence_at_all),
        cmocka_unit_test(whom_one_waits_for_may_be_lifted),
        cmocka_unit_test(without_threads_the_caller_does_it),
        cmocka_unit_test(threads_that_it_starts_do_not_give_way),
        cmocka_unit_test(one_within_another_is_the_same),
        cmocka_unit_test(it_rests_where_cores_are_taken_and_only_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
