// SPDX-License-Identifier: Apache-2.0
/* pattern.h: regular expressions that are looked for in a text, byte by byte, with where their groups begin.
 *
 * States are places in the expressions behind a byte (Glushkov 1961), with the ways on in the order in which they are
 * preferred; a text has a thread for each state that it may be in, the preferred one of several (Pike's simulation), so
 * that a byte costs as much as there are states, whatever the expressions. A control token is the text of its spelling,
 * within which nothing begins or is complete. The states are immutable; threads belong to one thread of the
 * machine. */
#ifndef WEFT_TEXT_PATTERN_H
#define WEFT_TEXT_PATTERN_H

#include "text/grammar/parts.h"

enum {
    WEFT__GRAM_PATTERN_STATES = 4096, /* of all expressions together; what takes more is refused */
    WEFT__GRAM_PATTERN_EDGES = 1 << 16,
    WEFT__GRAM_PATTERN_FIRST = 0, /* the state at the beginning of the text */
    WEFT__GRAM_PATTERN_LATER = 1  /* and in all other places where an expression may begin */
};

typedef struct weft__gram_patterns {
    weft__gram_automaton *a; /* states and edges only; WEFT__GRAM_STATE_ACCEPT: one is complete */
    uint8_t *groups;         /* [n_edges] the group that begins with the byte; 0: none */
    uint8_t *ends;           /* [n_states] 1: one is complete where the text ends here */
    size_t groups_capacity, ends_capacity;
} weft__gram_patterns;

/* Of a grammar, the rule that says what is looked for: expressions that were read with WEFT__GRAM_REGEX_MARKED. Fails
 * with WEFT_ARGUMENT where the empty text is one; WEFT_LIMIT; WEFT_NO_MEMORY; or with what failed in g before. */
weft_status weft__gram_patterns_create(weft__gram *g, int32_t rule, weft__gram_patterns **out, weft_error *err);
void weft__gram_patterns_destroy(weft__gram_patterns **patterns);

typedef struct weft__gram_thread {
    int32_t state;
    uint32_t group;     /* the first by number that has text so far; 0: none */
    uint64_t begin, at; /* the bytes where the expression and that group begin */
} weft__gram_thread;

typedef struct weft__gram_threads {
    weft__gram_thread *items, *spare; /* those that are preferred come first */
    size_t n, capacity, spare_capacity;
    uint32_t *stamp; /* [n_states] the round in which a thread came there */
    uint32_t round;
    size_t work; /* edges that were looked at */
} weft__gram_threads;

/* Zero-initialise. */
void weft__gram_threads_free(weft__gram_threads *t);
/* 0 when there is no memory. */
int weft__gram_threads_copy(const weft__gram_threads *from, weft__gram_threads *to);
/* Goes on by the byte at `at`, with which one of `start` may begin, too; -1: none may. `before`: bytes before it that
 * belong to what begins here. 0 when there is no memory. */
int weft__gram_threads_step(const weft__gram_patterns *p, weft__gram_threads *t, unsigned char byte, uint64_t at,
                            uint64_t before, int32_t start);
/* The thread that is preferred of those where an expression is complete, if the text ends here when `end`; or NULL. */
const weft__gram_thread *weft__gram_threads_found(const weft__gram_patterns *p, const weft__gram_threads *t, int end);

/* Where begins what a thread has found: the group, or all of it. */
static inline uint64_t weft__gram_thread_from(const weft__gram_thread *x)
{
    return x->group ? x->at : x->begin;
}

#endif
