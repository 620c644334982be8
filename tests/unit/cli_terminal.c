// SPDX-License-Identifier: Apache-2.0
/* cli_terminal.c: what people see while they wait, on a terminal of the test's own. */
#include "unit/fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/terminal.h"

/* The program's clock is the test's. In libc's place. */
static uint64_t now_ms = 1000000;

int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
    (void)id;
    *t = (struct timespec){(time_t)(now_ms / 1000), (long)(now_ms % 1000) * 1000000};
    return 0;
}

/* stderr is a terminal from begin_watching on; what was written to it is in `seen` from end_watching on. */
static int terminal, before;
static char seen[65536];

static void begin_watching(void)
{
    fflush(stderr);
    terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
    assert_true(terminal >= 0);
    assert_int_equal(grantpt(terminal), 0);
    assert_int_equal(unlockpt(terminal), 0);
    const int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(other >= 0);
    before = dup(STDERR_FILENO);
    dup2(other, STDERR_FILENO);
    close(other);
}

static void end_watching(void)
{
    static const char end[] = "<end>"; /* the system hands on what was written when it has time to */
    size_t n = 0;
    fputs(end, stderr);
    fflush(stderr);
    seen[0] = 0;
    for (char *at = NULL; !at; at = strstr(seen, end)) {
        assert_int_equal(poll(&(struct pollfd){.fd = terminal, .events = POLLIN}, 1, PATIENCE_MS), 1);
        ssize_t more = read(terminal, seen + n, sizeof seen - 1 - n);
        assert_true(more > 0);
        n += (size_t)more;
        seen[n] = 0;
    }
    seen[n - strlen(end)] = 0;
    dup2(before, STDERR_FILENO);
    close(before);
    close(terminal);
}

/* n calls, 50 ms apart, each with a text of its own. */
static void work(progress *bar, int n)
{
    for (int i = 0; i < n; i++, now_ms += 50) {
        char what[32];
        snprintf(what, sizeof what, "blk.%d.weight", i);
        assert_int_equal(progress_update(bar, what, (double)i / n), 0);
    }
}

static void a_job_of_many_parts_has_a_bar(void **state)
{
    (void)state;
    progress bar = {0};
    begin_watching();
    work(&bar, 20);
    progress_end(&bar);
    end_watching();
    assert_non_null(strstr(seen, "blk.1")); /* 10 and those behind it, from half a second on */
    assert_non_null(strstr(seen, "s left"));
    assert_null(strstr(seen, "blk.0.weight"));
}

/* Each of two jobs is over before half a second has gone by. */
static void short_jobs_have_none(void **state)
{
    (void)state;
    progress bar = {0};
    begin_watching();
    work(&bar, 6);
    work(&bar, 6);
    progress_end(&bar);
    end_watching();
    assert_string_equal(seen, "");
}

/* The last test: the job stays stopped. */
static void a_signal_ends_the_job(void **state)
{
    (void)state;
    progress bar = {0};
    int status = 0;
    signal(SIGINT, SIG_IGN); /* as a shell does for what it runs in the background */
    signal(SIGTERM, SIG_DFL);
    signal(SIGHUP, SIG_DFL); /* though nohup runs this */
    progress_stops_on_signals();
    raise(SIGINT);
    assert_int_equal(progress_update(&bar, "work", 0.1), 0);
    raise(SIGTERM);
    assert_int_equal(progress_update(&bar, "work", 0.2), 1);
    pid_t child = fork();
    if (!child) {
        raise(SIGHUP); /* a second one, of whichever kind, ends the program */
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_job_of_many_parts_has_a_bar),
                                       cmocka_unit_test(short_jobs_have_none), cmocka_unit_test(a_signal_ends_the_job)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
