// SPDX-License-Identifier: Apache-2.0
/* top_print.h: what weft top shows, as lines. One thread. */
#ifndef WEFT_CLI_TOP_PRINT_H
#define WEFT_CLI_TOP_PRINT_H

#include "base/text.h"
#include "top_metrics.h"
#include "top_slots.h"

/* What was read last, and before. */
typedef struct top_view {
    char *metrics; /* free() */
    top_slots slots;
    top_sample now, before;
} top_view;

/* Appends lines, each ended by "\n"; rates only where there is a sample before. */
void top_print(const char *address, const top_view *v, weft__strbuf *out);
/* Appends what of these lines fits into a window; nothing of it steers a terminal. rows 0: all of it, as long as it
 * is. */
void top_fit(const weft__strbuf *lines, int columns, int rows, weft__strbuf *out);

#endif
