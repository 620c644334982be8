// SPDX-License-Identifier: Apache-2.0
/* curve.h: how a training went: a line of JSON per step, appended as it happens, and a picture (SVG) of the loss.
 *
 * Invariant: the file of lines holds the points of the steps that were made, in order (step 0: before the first); a run
 * that resumes at step s drops what came after s, and a line that a crash cut short. One thread. */
#ifndef WEFT_TRAIN_CURVE_H
#define WEFT_TRAIN_CURVE_H

#include <stdint.h>
#include <stdio.h>

#include "weft/error.h"

/* NAN: not measured. */
typedef struct weft__curve_point {
    int64_t step, tokens;          /* tokens: rows of all steps so far */
    double loss;                   /* mean over the step */
    double heldout;                /* mean over the held-out data, after the step */
    double better;                 /* of preference pairs, the share with a margin above 0 */
    double heldout_better;         /* of the held-out ones */
    double chosen, rejected;       /* of preference pairs, the mean log p of an answer */
    double reward, heldout_reward; /* of answers that were sampled, the mean */
    double apart;                  /* of them, the mean |log p as trained - as served| of a token */
    double anchor;                 /* of `loss`, the part of the KL to the base */
    double lr, grad_norm, seconds; /* seconds: of all steps so far */
    double answers, keep;          /* those that come out, of the records that are asked */
} weft__curve_point;

/* Zero-initialise. */
typedef struct weft__curve {
    weft__curve_point *points;
    size_t n, capacity;
    FILE *lines;
    char *lines_path, *picture_path, *title;
} weft__curve;

/* lines_path and picture_path are in a folder that exists. Takes over the points up to `step` that lines_path holds
 * already, and none when step is 0. Fails with WEFT_IO or WEFT_NO_MEMORY; close it in any case. */
weft_status weft__curve_open(weft__curve *c, const char *lines_path, const char *picture_path, const char *title,
                             int64_t step, weft_error *err);
/* Appends a point and its line. */
weft_status weft__curve_add(weft__curve *c, const weft__curve_point *p, weft_error *err);
/* Writes the picture anew; it appears when it is complete. */
weft_status weft__curve_draw(const weft__curve *c, weft_error *err);
void weft__curve_close(weft__curve *c);

#endif
