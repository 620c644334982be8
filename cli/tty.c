// SPDX-License-Identifier: Apache-2.0
/* tty.c: see tty.h. A pipe to itself wakes the program that waits when a signal comes just before. */
#include "tty.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "format/out_file.h"

static struct {
    int in, out;
    const char *enter, *leave;
    struct termios given;
    volatile sig_atomic_t mode;
    int is_terminal, pipe[2];
} tty = {.in = -1, .out = -1, .pipe = {-1, -1}};

static volatile sig_atomic_t resized, went_on, signalled;

void tty_write(int fd, const char *text, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(fd, text, n);
        if (done < 0 && (errno == EINTR || errno == EAGAIN)) {
            struct pollfd p = {.fd = fd, .events = POLLOUT};
            poll(&p, 1, 1000);
            continue;
        }
        if (done <= 0) return;
        text += done;
        n -= (size_t)done;
    }
}

/* The terminal's mode now is `mode`. What was typed before stays. */
static void apply(tty_mode mode)
{
    struct termios t = tty.given;
    if (!tty.is_terminal) return;
    if (mode != TTY_GIVEN) {
        t.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ECHONL | IEXTEN);
        t.c_iflag &= ~(tcflag_t)(ICRNL | INLCR | IGNCR | IXON | ISTRIP | BRKINT);
        t.c_cc[VMIN] = 1;
        t.c_cc[VTIME] = 0;
    }
    if (mode == TTY_KEYS) t.c_lflag &= ~(tcflag_t)ISIG;
    while (tcsetattr(tty.in, TCSANOW, &t) && errno == EINTR) {
    }
}

void tty_set(tty_mode mode)
{
    const tty_mode before = (tty_mode)tty.mode;
    if (mode == before || tty.out < 0) return;
    tty.mode = mode;
    if (mode == TTY_GIVEN) tty_write(tty.out, tty.leave, strlen(tty.leave));
    apply(mode);
    if (before == TTY_GIVEN) tty_write(tty.out, tty.enter, strlen(tty.enter));
}

void tty_give_back(void)
{
    const int before = errno;
    tty_set(TTY_GIVEN);
    errno = before;
}

static void wake(void)
{
    if (tty.pipe[1] >= 0 && write(tty.pipe[1], "", 1) < 0) return; /* full: it will wake anyway */
}

/* As if the signal had its usual meaning, for once. */
static void raise_default(int number)
{
    struct sigaction usual = {.sa_handler = SIG_DFL}, own;
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    sigaction(number, &usual, &own);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL); /* it is blocked in its own handler; now it takes effect */
    sigaction(number, &own, NULL);
}

static void on_end(int number)
{
    weft__out_file_abandon_all();
    tty_give_back();
    raise_default(number);
}

static void on_stop(int number)
{
    const int saved = errno;
    const tty_mode mode = (tty_mode)tty.mode;
    tty_set(TTY_GIVEN);
    raise_default(number);
    tty_set(mode);
    went_on = 1;
    wake();
    errno = saved;
}

static void on_resize(int number)
{
    const int saved = errno;
    (void)number;
    resized = 1;
    wake();
    errno = saved;
}

static void on_interrupt(int number)
{
    const int saved = errno;
    (void)number;
    signalled = 1;
    wake();
    errno = saved;
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, before;
    sigemptyset(&action.sa_mask);
    if (!sigaction(number, NULL, &before) && before.sa_handler != SIG_IGN) sigaction(number, &action, NULL);
}

int tty_take(int in, int out, const char *enter, const char *leave)
{
    static const int ends[] = {SIGTERM, SIGHUP, SIGQUIT};
    tty.in = in;
    tty.out = out;
    tty.enter = enter;
    tty.leave = leave;
    tty.is_terminal = in >= 0 && !tcgetattr(in, &tty.given);
    if (pipe2(tty.pipe, O_NONBLOCK | O_CLOEXEC)) tty.pipe[0] = tty.pipe[1] = -1;
    atexit(tty_give_back);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) handle(ends[i], on_end);
    handle(SIGINT, on_interrupt);
    handle(SIGTSTP, on_stop);
    handle(SIGWINCH, on_resize);
    return tty.is_terminal;
}

void tty_stop(void)
{
    kill(0, SIGTSTP); /* all of a pipeline, as the key does */
}

int tty_wait(int ms)
{
    struct pollfd p[] = {{.fd = tty.pipe[0], .events = POLLIN}, {.fd = tty.in, .events = POLLIN}};
    char waste[64];
    int events = 0;
    if (!resized && !went_on && !signalled) poll(p, 2, ms);
    else poll(p, 2, 0);
    if (p[0].revents)
        while (read(tty.pipe[0], waste, sizeof waste) > 0) {
        }
    if (resized) events |= TTY_RESIZED;
    if (went_on) events |= TTY_WENT_ON;
    if (signalled) events |= TTY_SIGNALLED;
    resized = went_on = signalled = 0;
    return events | (p[1].revents ? TTY_INPUT : 0);
}

static int from_environment(const char *name, int otherwise)
{
    const char *text = getenv(name);
    const long value = text ? strtol(text, NULL, 10) : 0;
    return value > 0 && value < 10000 ? (int)value : otherwise;
}

void tty_size(int fd, int *columns, int *rows)
{
    struct winsize w = {0};
    if (ioctl(fd, TIOCGWINSZ, &w)) w = (struct winsize){0};
    *columns = w.ws_col ? w.ws_col : from_environment("COLUMNS", 80);
    *rows = w.ws_row ? w.ws_row : from_environment("LINES", 24);
}

int tty_draws(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) && !(term && !strcmp(term, "dumb"));
}

int tty_colours(int fd)
{
    const char *none = getenv("NO_COLOR");
    return tty_draws(fd) && !(none && none[0]);
}
