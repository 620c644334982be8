// SPDX-License-Identifier: Apache-2.0
/* walk_grammar.h: a text of a compiled grammar, for fuzz targets: byte by byte, those first that end something. */
#ifndef WEFT_TESTS_WALK_GRAMMAR_H
#define WEFT_TESTS_WALK_GRAMMAR_H

#include <stdlib.h>

#include "text/grammar/run.h"

/* Writes at most `room` bytes; *done: the text is complete. `first`: bytes to try before the others. */
static inline size_t walk_grammar(const weft__gram_automaton *a, const char *first, char *text, size_t room, int *done)
{
    weft__gram_run r;
    size_t n = 0, n_first = strlen(first);
    if (!weft__gram_run_init(&r, a)) abort();
    r.work = (size_t)1 << 20;
    weft__gram_set at = weft__gram_run_start(&r);
    while (!at.done && n < room && !r.status) {
        weft__gram_set next = {0, 0, 0};
        int found = -1;
        for (size_t i = 0; i < n_first + 256 && found < 0 && !r.status; i++) {
            int byte = i < n_first ? first[i] : (int)(i - n_first);
            next = weft__gram_run_step(&r, at, (unsigned char)byte);
            if (next.begin < next.end || next.done) found = byte;
        }
        if (found < 0 || r.status) break;
        text[n++] = (char)found;
        at = next;
    }
    *done = at.done && !r.status;
    weft__gram_run_free(&r);
    return n;
}

/* 1 when the automaton takes the text as a whole, or too much work would say so. */
static inline int takes_text(const weft__gram_automaton *a, const char *text, size_t n)
{
    weft__gram_run r;
    if (!weft__gram_run_init(&r, a)) abort();
    r.work = (size_t)1 << 20;
    weft__gram_set at = weft__gram_run_start(&r);
    for (size_t i = 0; i < n && !r.status; i++) at = weft__gram_run_step(&r, at, (unsigned char)text[i]);
    int taken = at.done || r.status;
    weft__gram_run_free(&r);
    return taken;
}

#endif
