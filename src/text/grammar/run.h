// SPDX-License-Identifier: Apache-2.0
/* run.h: an automaton at work: all ways in which the bytes so far fit the grammar, side by side.
 *
 * A way is a state and a frame: where to go on when the rule of that state ends. Frames are shared: all calls of a rule
 * at one place in the text have one frame, which links to every state that waits for it and that state's own frame, as
 * in a graph-structured stack (Tomita 1987; Scott and Johnstone, GLL, 2010). So ambiguity costs polynomial time and
 * space where stacks of their own would cost exponential. A call in last place reuses its caller's frame, so that right
 * recursion needs no stack. Invariant: a frame's links do not change once the byte that made it is done, and what the
 * sets name lies below the counts of frames and links; cutting the counts back undoes what came later. Belongs to one
 * thread. */
#ifndef WEFT_TEXT_GRAMMAR_RUN_H
#define WEFT_TEXT_GRAMMAR_RUN_H

#include "text/grammar/parts.h"

enum {
    WEFT__GRAM_RUN_MAX_WAYS = 4096,     /* side by side */
    WEFT__GRAM_RUN_MAX_FRAMES = 1 << 20 /* and four times as many links */
};

typedef struct weft__gram_way {
    int32_t state;
    uint32_t frame; /* 0: the bottom, nothing waits */
} weft__gram_way;

typedef struct weft__gram_frame {
    int32_t link; /* the first; -1: none */
    uint32_t depth;
} weft__gram_frame;

typedef struct weft__gram_link {
    int32_t state; /* to go on in */
    uint32_t frame;
    int32_t next;
} weft__gram_link;

typedef struct weft__gram_run {
    const weft__gram_automaton *a;
    weft__gram_frame *frames;
    size_t n_frames, frames_capacity;
    weft__gram_link *links;
    size_t n_links, links_capacity;
    weft__gram_way *ways; /* sets of ways, one after the other */
    size_t n_ways, ways_capacity;
    int32_t *called; /* [n_rules] the frame of the calls at this place */
    uint32_t *stamp; /* [n_rules] the round of called[rule] */
    uint32_t round;
    uint32_t *slots, *slot_round; /* hash table over the set that grows; NULL until one is large */
    size_t work;                  /* that may still be spent */
    uint32_t deepest;             /* frame that was made */
    int too_deep;                 /* a call was left out because of the depth */
    weft_status status;           /* WEFT_LIMIT or WEFT_NO_MEMORY: the run cannot go on */
} weft__gram_run;

/* With the bottom frame only. 0 when there is no memory; free in any case. */
int weft__gram_run_init(weft__gram_run *r, const weft__gram_automaton *a);
void weft__gram_run_free(weft__gram_run *r);

/* A set of ways: ways[begin..end), of which each can take bytes. */
typedef struct weft__gram_set {
    size_t begin, end;
    int done; /* the rule at the bottom may end here */
} weft__gram_set;

/* The places that nothing was read from yet, as a new set behind the others. */
weft__gram_set weft__gram_run_start(weft__gram_run *r);
/* Where `set` is after a byte, as a new set at the end of ways. Neither ways nor `done`: nowhere. Check r->status. */
weft__gram_set weft__gram_run_step(weft__gram_run *r, weft__gram_set set, unsigned char byte);
/* Where the callers of these n ways, which are not in r->ways, are when their rules end here. */
weft__gram_set weft__gram_run_return(weft__gram_run *r, const weft__gram_way *ways, size_t n);
/* Keeps only the frames that ways[0..n_ways) need, and renames them there. 0 when there is no memory; nothing has
 * changed then. */
int weft__gram_run_compact(weft__gram_run *r);

/* Refuses grammars of which reading a byte comes to cost more and more (probe.c): WEFT_LIMIT, by rule and line; or
 * WEFT_NO_MEMORY. What passes may still be such a grammar. */
weft_status weft__gram_probe(const weft__gram_automaton *a, weft_error *err);

#endif
