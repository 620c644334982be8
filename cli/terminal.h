// SPDX-License-Identifier: Apache-2.0
/* terminal.h: what people see while they wait, on stderr (nothing of it when stderr is no terminal), and text from
 * files that is shown to them. */
#ifndef WEFT_CLI_TERMINAL_H
#define WEFT_CLI_TERMINAL_H

#include <signal.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "weft/weft.h"

/* A bar for work that turns out to take long. Zero-initialise. */
typedef struct progress {
    uint64_t started_ns, drawn_ns;
    double fraction;
    int shown;
    char what[64];
} progress;

/* A weft_progress_fn; arg is a progress *. Draws half a second after a job's beginning, then ten times a second;
 * another job begins where the fraction falls. */
int progress_update(void *arg, const char *what, double fraction);
/* From now on a signal that ends the program (SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE) takes away first what was
 * begun to be written (format/out_file.h). What was ignored before, as by nohup or a shell's background, stays so. */
void signals_clean_up(void);
/* Does that end the program, as where the signal has no handler? */
int signal_ends(const struct sigaction *action);
/* `handler` for the next SIGINT, SIGTERM or SIGHUP; the one after that ends the program as above. What was ignored
 * stays so. */
void signals_once(void (*handler)(int));
/* From now on SIGINT, SIGTERM and SIGHUP end the job at its next progress; a second one ends the program at once. */
void progress_stops_on_signals(void);
/* Wipes the bar. */
void progress_end(progress *p);
/* weft_model_open with a bar; threads, n_ctx and rope as in weft_model_params. */
weft_status open_shown(const char *path, int32_t threads, int32_t n_ctx, const weft_rope_params *rope,
                       weft_model **model, weft_error *err);
/* The same with all of them. */
weft_status open_shown_with(const char *path, const weft_model_params *params, weft_model **model, weft_error *err);

uint64_t now_ns(void);

/* What stands for a character that could steer a terminal: \xNN for C0, DEL and C1, \uNNNN for what turns the direction
 * of text around or ends lines. Returns the bytes in `out`; 0 for all others, which can be shown. */
size_t clean_form(uint32_t cp, char out[16]);
/* Prints text[0..n), which comes from a file or a server, and fills up with spaces to `width` bytes: what could steer a
 * terminal has its clean_form, bytes that are no UTF-8 are \xNN. */
void print_clean(FILE *f, const char *text, size_t n, int width);

/* Prints t on stdout, and frees it. WEFT_NO_MEMORY when it has not got all that was put into it: nothing is printed
 * then. */
weft_status print_whole(weft__strbuf *t, weft_error *err);

/* "weft run: MESSAGE" on stderr, clean; returns EXIT_FAILED. */
int report(const char *command, const weft_error *err);

#endif
