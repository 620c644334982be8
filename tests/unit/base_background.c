/* base_background.c: work with a thread that gives way, and without one. */
#include "unit/fixture.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "base/background.h"
#include "unit/own_nice.h"

static int refuse;

int __real_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    return refuse ? EAGAIN : __real_pthread_create(t, attr, fn, arg);
}

typedef struct seen {
    int n, nice, takes_signals;
    pthread_t thread;
} seen;

static void look(void *arg)
{
    seen *s = arg;
    sigset_t mask;
    s->n++;
    s->nice = own_nice();
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
#endif
        assert_int_equal(own_nice(), before);
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_gives_way_and_the_caller_does_not),
        cmocka_unit_test(without_threads_the_caller_does_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
