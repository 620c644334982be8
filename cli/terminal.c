/* terminal.c: a progress bar with time left, and error lines. */
#include "terminal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "options.h"

enum { BAR = 30 };

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int progress_update(void *arg, const char *what, double fraction)
{
    progress *p = arg;
    uint64_t now = now_ns();
    if (!isatty(STDERR_FILENO)) return 0;
    if (strncmp(p->what, what, sizeof p->what - 1)) {
        snprintf(p->what, sizeof p->what, "%s", what);
        p->started_ns = now;
    }
    if (now - p->started_ns < 500000000u || now - p->drawn_ns < 100000000u) return 0;
    p->drawn_ns = now;
    p->shown = 1;
    if (fraction < 0) fraction = 0;
    if (fraction > 1) fraction = 1;
    int full = (int)(fraction * BAR);
    double elapsed = (double)(now - p->started_ns) / 1e9;
    fprintf(stderr, "\r%-20.20s [%.*s%*s] %3.0f %%", p->what, full, "##############################", BAR - full, "", 100 * fraction);
    if (fraction > 0.01) fprintf(stderr, "  %.0f s left ", elapsed / fraction * (1 - fraction));
    fprintf(stderr, "\x1b[K");
    fflush(stderr);
    return 0;
}

void progress_end(progress *p)
{
    if (p->shown) fprintf(stderr, "\r\x1b[K");
    *p = (progress){0};
}

int report(const char *command, const weft_error *err)
{
    fprintf(stderr, "weft %s: %s\n", command, err->message[0] ? err->message : weft_status_text((weft_status)err->status));
    return EXIT_FAILED;
}
