// SPDX-License-Identifier: Apache-2.0
/* samples.h: the file of samples of a run, and that of predictions. Lines are appended as documents are done, each
 * flushed; a file that holds the beginning of the same run is gone on with behind its last whole line. One thread. */
#ifndef WEFT_EVAL_SAMPLES_H
#define WEFT_EVAL_SAMPLES_H

#include <stdio.h>

#include "eval/eval.h"

/* Zero-initialise. */
typedef struct weft__eval_samples {
    FILE *lines;              /* NULL: no file */
    weft__strbuf predictions; /* written whole, at the end */
    const weft__eval_task *task;
    const weft__eval_params *params;
} weft__eval_samples;

/* head: the first line. Adds what the file holds already to the report. */
weft_status weft__eval_samples_open(weft__eval_samples *s, const weft__eval_params *params, const weft__eval_task *task,
                                    const char *head, weft__eval_report *report, weft_error *err);
/* The line of the next document, without its newline: into the file, the report and the predictions. */
weft_status weft__eval_samples_put(weft__eval_samples *s, weft__strbuf *line, weft__eval_report *report,
                                   weft_error *err);
/* complete: the predictions are written. */
weft_status weft__eval_samples_close(weft__eval_samples *s, int complete, weft_error *err);
/* What an answer says is to be changed: what stands between <patch> and </patch>, or in a block of ```diff or ```patch;
 * else all of it. Part of s[0..n). */
const char *weft__eval_patch_of(const char *s, size_t n, size_t *n_patch);

#endif
