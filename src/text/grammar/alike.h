// SPDX-License-Identifier: Apache-2.0
/* alike.h: states that allow the same tokens: those that count the characters of a string, or the items of a list,
 * while more of them are left than the longest token has. So masks need one table for all of them. */
#ifndef WEFT_TEXT_ALIKE_H
#define WEFT_TEXT_ALIKE_H

#include "text/grammar/parts.h"

/* [n_states], for weft__free: a state that reads every text of at most `depth` bytes as this one does, with the same
 * calls and ends in it; of states that do so one. NULL when there is no memory. Time grows as states and edges do. */
int32_t *weft__gram_alike_make(const weft__gram_automaton *a, uint32_t depth);

#endif
