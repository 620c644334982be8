// SPDX-License-Identifier: Apache-2.0
/* thinking.h: at most so many tokens of thinking in an answer, then the words that end it.
 *
 * Thinking is what stands between two markers of the model's format, the first of which the prompt may have written.
 * When its tokens are spent, those of the second marker are all that may follow, one after the other; behind it, and
 * where nothing is thought, nothing changes. */
#ifndef WEFT_TEXT_GRAMMAR_THINKING_H
#define WEFT_TEXT_GRAMMAR_THINKING_H

#include "text/grammar/token_trie.h"

/* Reference counted; threads may share it. */
typedef struct weft__gram_budget weft__gram_budget;

/* n_tokens: of thinking, 0 or more; begun: the answer begins within it. Fails with WEFT_UNSUPPORTED where the
 * vocabulary cannot spell `end`; WEFT_NO_MEMORY. tok outlives it. */
weft_status weft__gram_budget_create(const weft__tok *tok, const char *begin, const char *end, int begun,
                                     int32_t n_tokens, weft__gram_budget **out, weft_error *err);
weft__gram_budget *weft__gram_budget_retain(weft__gram_budget *b);
void weft__gram_budget_release(weft__gram_budget **b);

/* An answer; belongs to one thread. Keeps the budget alive. */
typedef struct weft__gram_thoughts weft__gram_thoughts;

weft_status weft__gram_thoughts_create(weft__gram_budget *b, weft__gram_thoughts **out, weft_error *err);
weft_status weft__gram_thoughts_copy(const weft__gram_thoughts *t, weft__gram_thoughts **out, weft_error *err);
void weft__gram_thoughts_destroy(weft__gram_thoughts **t);
/* The token that must come next, or -1: what may follow otherwise does. Not within a character. */
int32_t weft__gram_thoughts_next(const weft__gram_thoughts *t);
/* Goes on by a token. WEFT_NO_MEMORY. */
weft_status weft__gram_thoughts_accept(weft__gram_thoughts *t, int32_t token, weft_error *err);

#endif
