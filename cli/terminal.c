// SPDX-License-Identifier: Apache-2.0
/* terminal.c: a progress bar with time left, and error lines. One thread; signals only raise a flag. */
#include "terminal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "format/out_file.h"
#include "options.h"
#include "provider.h"

enum { BAR = 30 };

const char *provider_given;

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static volatile sig_atomic_t stopped;

static int is_ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) || now.sa_handler == SIG_IGN;
}

static void on_end(int number)
{
    weft__out_file_abandon_all();
    signal(number, SIG_DFL);
    raise(number); /* waits until this returns */
}

static void signal_cleans_up(int number)
{
    struct sigaction action = {.sa_handler = on_end};
    sigfillset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

int signal_ends(const struct sigaction *action)
{
    return action->sa_handler == SIG_DFL || action->sa_handler == on_end;
}

void signals_clean_up(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!is_ignored(numbers[i])) signal_cleans_up(numbers[i]);
}

static const int STOPS[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_STOPS = sizeof STOPS / sizeof *STOPS };
static void (*once)(int);

/* Whichever comes next, it ends the program. */
static void on_first(int number)
{
    for (int i = 0; i < N_STOPS; i++)
        if (!is_ignored(STOPS[i])) signal_cleans_up(STOPS[i]);
    once(number);
}

void signals_once(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = on_first, .sa_flags = SA_RESTART};
    once = handler;
    for (int i = 0; i < N_STOPS; i++)
        if (!is_ignored(STOPS[i])) sigaction(STOPS[i], &action, NULL);
}

static void on_stop(int number)
{
    (void)number;
    stopped = 1;
    weft__out_file_interrupt();
}

void progress_stops_on_signals(void)
{
    signals_once(on_stop);
}

/* Does the terminal understand how a line is wiped? */
static int wipes(void)
{
    const char *term = getenv("TERM");
    return !term || strcmp(term, "dumb");
}

int progress_update(void *arg, const char *what, double fraction)
{
    progress *p = arg;
    uint64_t now = now_ns();
    if (stopped) return 1;
    if (!isatty(STDERR_FILENO)) return 0;
    weft__utf8_show(p->what, 24, what, strlen(what)); /* names of a file's tensors, maybe */
    if (!p->started_ns || fraction < p->fraction)
        p->started_ns = now; /* the text says what is at hand; a job goes on with another */
    p->fraction = fraction;
    if (now - p->started_ns < 500000000u || now - p->drawn_ns < 100000000u) return 0;
    p->drawn_ns = now;
    p->shown = 1;
    if (fraction < 0) fraction = 0;
    if (fraction > 1) fraction = 1;
    int full = (int)(fraction * BAR);
    double elapsed = (double)(now - p->started_ns) / 1e9;
    fprintf(stderr, "\r%-20s [%.*s%*s] %3.0f %%", p->what, full, "##############################", BAR - full, "",
            100 * fraction);
    if (fraction > 0.01) fprintf(stderr, "  %.0f s left ", elapsed / fraction * (1 - fraction));
    fputs(wipes() ? "\x1b[K" : "   ", stderr);
    fflush(stderr);
    return 0;
}

void progress_end(progress *p)
{
    if (p->shown) fputs(wipes() ? "\r\x1b[K" : "\n", stderr);
    *p = (progress){0};
}

weft_status open_shown(const char *path, int32_t threads, int32_t n_ctx, const weft_rope_params *rope,
                       weft_model **model, weft_error *err)
{
    weft_model_params params;
    weft_model_params_default(&params);
    params.n_threads = threads;
    params.n_ctx = n_ctx;
    params.provider = provider_given;
    params.rope = *rope;
    return open_shown_with(path, &params, model, err);
}

weft_status open_shown_with(const char *path, const weft_model_params *params, weft_model **model, weft_error *err)
{
    weft_model_params with_bar = *params;
    progress bar = {0};
    with_bar.progress = progress_update;
    with_bar.progress_arg = &bar;
    with_bar.renew_plan = 1;
    weft_status st = weft_model_open(path, &with_bar, model, err);
    progress_end(&bar);
    return st;
}

size_t clean_form(uint32_t cp, char out[16])
{
    if (cp < 0x20 || (cp >= 0x7F && cp < 0xA0)) return (size_t)snprintf(out, 16, "\\x%02x", (unsigned)cp);
    if ((cp >= 0x2028 && cp <= 0x202E) || (cp >= 0x2066 && cp <= 0x2069))
        return (size_t)snprintf(out, 16, "\\u%04x", (unsigned)cp);
    return 0;
}

void print_clean(FILE *f, const char *text, size_t n, int width)
{
    int left = width;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        int bad = 0;
        char form[16];
        const size_t length = weft__utf8_decode(text + i, n - i, &cp, &bad);
        if (bad) left -= fprintf(f, "\\x%02x", (unsigned char)text[i]);
        else if (clean_form(cp, form)) left -= fprintf(f, "%s", form);
        else left -= (int)fwrite(text + i, 1, length, f);
        i += length;
    }
    if (left > 0) fprintf(f, "%*s", left, "");
}

weft_status print_whole(weft__strbuf *t, weft_error *err)
{
    const int failed = t->failed;
    if (!failed && t->len) fwrite(t->data, 1, t->len, stdout);
    weft__strbuf_free(t);
    return failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for what is to be printed") : WEFT_OK;
}

int report(const char *command, const weft_error *err)
{
    const char *text = err->message[0] ? err->message : weft_status_text((weft_status)err->status);
    fprintf(stderr, "weft %s: ", command);
    print_clean(stderr, text, strlen(text), 0);
    putc('\n', stderr);
    return EXIT_FAILED;
}
