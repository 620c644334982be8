// SPDX-License-Identifier: Apache-2.0
/* quality.h: which of several answers to one request is the best, and whether one is asked for again.
 *
 * Scores rank answers to one prompt; between prompts they say nothing. What outside the model says of an answer (a
 * verifier, a form that it is held to) goes before what the model says of itself. Any thread. */
#ifndef WEFT_QUALITY_QUALITY_H
#define WEFT_QUALITY_QUALITY_H

#include <stddef.h>

#include "base/text.h"

enum { WEFT__QUALITY_WINDOW = 16 /* tokens */, WEFT__QUALITY_MESSAGE = 2000 /* bytes of a verifier's message */ };

/* What a verifier says; NONE: none was asked. */
typedef enum weft__quality_verdict {
    WEFT__QUALITY_FAILED,
    WEFT__QUALITY_NONE,
    WEFT__QUALITY_PASSED
} weft__quality_verdict;

typedef struct weft__quality_candidate {
    const char *text; /* [n_text] */
    size_t n_text;
    weft__quality_verdict verdict;
    int is_valid;          /* it is whole: it ended by itself, in the form that it is held to */
    const float *logprobs; /* [n_logprobs], of its tokens; NULL: not known. Those that are not finite are left out */
    size_t n_logprobs;
    /* filled by weft__quality_judge: */
    int votes; /* candidates with the same text, itself included: case, space and last point apart */
    double mean,
        lowest; /* log-probability; of the WEFT__QUALITY_WINDOW tokens together with the lowest mean. 0: none */
} weft__quality_candidate;

/* Fills in what is to be filled. O(n * n * length of texts). */
void weft__quality_judge(weft__quality_candidate *all, int n);
/* The best that was judged: by verdict, validity, votes (self-consistency, Wang and others 2022), the lowest window,
 * mean; of equals the first. n >= 1. */
int weft__quality_best(const weft__quality_candidate *all, int n);

/* 1: an answer is to be asked for again: a verifier has failed it, and that was done fewer than `most` times. What
 * passed, and what nobody looked at, is never touched. */
int weft__quality_retries(weft__quality_verdict verdict, int n_done, int most);
/* Appends what the user says then: that the answer failed, with the verifier's message between two lines that no
 * message can spell, cut at WEFT__QUALITY_MESSAGE. */
void weft__quality_retry_message(const char *message, size_t n, weft__strbuf *out);

#endif
