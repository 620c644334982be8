/* terminal.h: what people see while they wait, on stderr (nothing of it when stderr is no terminal), and text from files that is shown
 * to them. */
#ifndef WEFT_CLI_TERMINAL_H
#define WEFT_CLI_TERMINAL_H

#include <stdint.h>
#include <stdio.h>

#include "weft/weft.h"

/* A bar for work that turns out to take long. Zero-initialise. */
typedef struct progress {
    uint64_t started_ns, drawn_ns;
    double fraction;
    int shown;
    char what[64];
} progress;

/* A weft_progress_fn; arg is a progress *. Draws half a second after a job's beginning, then ten times a second; another job begins where
 * the fraction falls. */
int progress_update(void *arg, const char *what, double fraction);
/* From now on Ctrl-C and SIGTERM end the job at its next progress, which takes away what it has begun to write; a second one ends the
 * program at once. What was ignored before, as by a shell's background, stays so. */
void progress_stops_on_signals(void);
/* Wipes the bar. */
void progress_end(progress *p);
/* weft_model_open with a bar; threads and n_ctx as in weft_model_params. */
weft_status open_shown(const char *path, int32_t threads, int32_t n_ctx, weft_model **model, weft_error *err);

uint64_t now_ns(void);

/* What stands for a character that could steer a terminal: \xNN for C0, DEL and C1, \uNNNN for what turns the direction of text around or
 * ends lines. Returns the bytes in `out`; 0 for all others, which can be shown. */
size_t clean_form(uint32_t cp, char out[16]);
/* Prints text[0..n), which comes from a file or a server, and fills up with spaces to `width` bytes: what could steer a terminal has
 * its clean_form, bytes that are no UTF-8 are \xNN. */
void print_clean(FILE *f, const char *text, size_t n, int width);

/* "weft run: MESSAGE" on stderr, clean; returns EXIT_FAILED. */
int report(const char *command, const weft_error *err);

#endif
