// SPDX-License-Identifier: Apache-2.0
/* verify.h: how good an answer is, said by a rule or by a program.
 *
 *   exact      1 where the answer is the record's, but for blanks at its ends
 *   contains   1 where the record's stands in it
 *   number     1 where the last number of both is the same ("1,200." is 1200)
 *   json       1 where it is one JSON value, equal to the record's where that is one, too
 *   command C  `sh -c C` runs once, for all answers: it reads a line {"prompt", "answer", "reference"} for each and
 *              writes a line for each, a number or {"reward": number}. Its stderr is ours.
 *
 * Invariant: a rule is a pure function of the two texts. A run is repeatable as far as the command is. One thread. */
#ifndef WEFT_TRAIN_VERIFY_H
#define WEFT_TRAIN_VERIFY_H

#include <stddef.h>

#include "weft/error.h"

typedef struct weft__train_verifier weft__train_verifier;

/* rule: one of the names above, or NULL where `command` is given. Fails with WEFT_ARGUMENT (another name, both, none),
 * WEFT_IO (the program cannot be started), WEFT_NO_MEMORY. */
weft_status weft__train_verifier_open(const char *rule, const char *command, weft__train_verifier **out,
                                      weft_error *err);
/* Ends the program: its input is closed, and it is killed where it does not end by itself within a second. */
void weft__train_verifier_close(weft__train_verifier **v);

/* Texts as bytes. Fails with WEFT_FORMAT (the program's line is no number, or not finite), WEFT_IO (it ended),
 * WEFT_TIMEOUT (no line within a minute), WEFT_NO_MEMORY; the message shows the line. */
weft_status weft__train_verify(weft__train_verifier *v, const char *prompt, size_t n_prompt, const char *answer,
                               size_t n_answer, const char *reference, size_t n_reference, double *reward,
                               weft_error *err);

#endif
