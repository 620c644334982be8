// SPDX-License-Identifier: Apache-2.0
/* teach_rewrite.h: how most corrections of a style rewrite an answer: how they begin it, what they say for a token of
 * it, and how they end it.
 *
 * Of each correction the tokens are told that it puts in place of others, in the order of what stays (their longest
 * common subsequence). What two corrections do alike is a rule; of rules for the same tokens what most of them do. Of
 * several tokens that are replaced at once, those at both sides that others have a rule for are left out; where one is
 * left, it has what is left.
 * Tokens are as weft__teach_style_space has them. One thread. */
#ifndef WEFT_LEARN_TEACH_REWRITE_H
#define WEFT_LEARN_TEACH_REWRITE_H

#include "learn/teach_texts.h"

/* Rules: the prompt of each is taken out, its answer is put in; either may be empty. Settled, each stands once, and
 * what most corrections do comes first. Zero-initialise. */
typedef struct weft__teach_rewrite {
    weft__teach_texts begin, within, end; /* within: of one token, behind something that stays and before something */
    weft__teach_texts runs;               /* of several, until they are settled */
} weft__teach_rewrite;

/* Takes note of one correction, from wrong[m] to right[n]. 0: no memory. */
int weft__teach_rewrite_see(weft__teach_rewrite *r, const int32_t *wrong, int32_t m, const int32_t *right, int32_t n);
/* Behind the last of them, and before the first answer. WEFT_NO_MEMORY. */
weft_status weft__teach_rewrite_settle(weft__teach_rewrite *r, weft_error *err);
/* Does a rule take this token out? */
int weft__teach_rewrite_takes(const weft__teach_rewrite *r, int32_t id);
void weft__teach_rewrite_free(weft__teach_rewrite *r);

/* Appends a plain answer, which ends with the token that ends it, rewritten: within it, the tokens of which
 * replaces(arg, id) holds. Where no rule says how it begins, or ends, it does as it did. WEFT_NO_MEMORY. */
weft_status weft__teach_rewrite_apply(const weft__teach_rewrite *r, int (*replaces)(const void *arg, int32_t id),
                                      const void *arg, const weft__teach_text *plain, weft__teach_texts *out,
                                      weft_error *err);

#endif
