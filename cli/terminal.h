/* terminal.h: what people see while they wait, on stderr; nothing of it when stderr is no terminal. */
#ifndef WEFT_CLI_TERMINAL_H
#define WEFT_CLI_TERMINAL_H

#include <stdint.h>

#include "weft/weft.h"

/* A bar for work that turns out to take long. Zero-initialise. */
typedef struct progress {
    uint64_t started_ns, drawn_ns;
    int shown;
    char what[64];
} progress;

/* A weft_progress_fn; arg is a progress *. Draws after half a second, then ten times a second. */
int progress_update(void *arg, const char *what, double fraction);
/* Wipes the bar. */
void progress_end(progress *p);

uint64_t now_ns(void);

/* "weft run: MESSAGE" on stderr; returns EXIT_FAILED. */
int report(const char *command, const weft_error *err);

#endif
