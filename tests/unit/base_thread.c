// SPDX-License-Identifier: Apache-2.0
/* base_thread.c: a thread of ours takes no signal but those of its own faults, whose handler is called, and the
 * caller's mask is as before. */
#include "unit/fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/thread.h"

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

static int is_fault(int number)
{
    int is = 0;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) is |= faults[i] == number;
    return is;
}

static void *see_mask(void *arg)
{
    pthread_sigmask(SIG_SETMASK, NULL, arg);
    return NULL;
}

static void it_takes_the_signals_of_its_faults_alone(void **state)
{
    (void)state;
    sigset_t mask, none, before, after;
    pthread_t thread;
    sigemptyset(&none);
    sigaddset(&none, SIGUSR1); /* a mask of the caller's own stays */
    pthread_sigmask(SIG_SETMASK, &none, &before);
    assert_int_equal(weft__thread_start(&thread, see_mask, &mask), 0);
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, &after);
    for (int i = 1; i < 32; i++) {
        if (i != SIGKILL && i != SIGSTOP && sigismember(&mask, i) == is_fault(i)) fail_msg("signal %d", i);
        assert_int_equal(sigismember(&after, i), i == SIGUSR1);
    }
}

#ifdef __linux__
static atomic_int n_faults;
static void *mapped;

/* What is read is made readable: it goes on. */
static void on_fault(int number)
{
    (void)number;
    n_faults++;
    mmap(mapped, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

static void *read_mapped(void *arg)
{
    *(volatile int *)arg = *(volatile char *)mapped;
    return NULL;
}

static void a_file_that_ends_too_early_is_told(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = on_fault}, before;
    pthread_t thread;
    int read_there = -1, fd = memfd_create("short", 0);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 4096), 0);
    mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(mapped != MAP_FAILED);
    assert_int_equal(ftruncate(fd, 0), 0);
    sigaction(SIGBUS, &action, &before);
    assert_int_equal(weft__thread_start(&thread, read_mapped, &read_there), 0);
    pthread_join(thread, NULL);
    sigaction(SIGBUS, &before, NULL);
    assert_int_equal(atomic_load(&n_faults), 1);
    assert_int_equal(read_there, 0);
    munmap(mapped, 4096);
    close(fd);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_takes_the_signals_of_its_faults_alone),
#ifdef __linux__
        cmocka_unit_test(a_file_that_ends_too_early_is_told),
#endif
    };
    return cmocka_run_group_tests_name("base_thread", tests, NULL, NULL);
}
