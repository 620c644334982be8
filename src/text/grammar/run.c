// SPDX-License-Identifier: Apache-2.0
/* run.c: steps of an automaton over sets of ways (run.h). */
#include "text/grammar/run.h"

#include <string.h>

#include "base/alloc.h"

enum { FEW = 12, SLOTS = 4 * WEFT__GRAM_RUN_MAX_WAYS };

int weft__gram_run_init(weft__gram_run *r, const weft__gram_automaton *a)
{
    *r = (weft__gram_run){.a = a, .work = SIZE_MAX};
    r->called = weft__alloc_array(a->n_rules, sizeof *r->called);
    r->stamp = weft__alloc_zero(a->n_rules, sizeof *r->stamp);
    if (!r->called || !r->stamp || !weft__grow(&r->frames, &r->frames_capacity, 1, sizeof *r->frames)) return 0;
    r->frames[r->n_frames++] = (weft__gram_frame){-1, 0};
    return 1;
}

void weft__gram_run_free(weft__gram_run *r)
{
    weft__free(r->slot_round);
    weft__free(r->slots);
    weft__free(r->stamp);
    weft__free(r->called);
    weft__free(r->ways);
    weft__free(r->links);
    weft__free(r->frames);
    *r = (weft__gram_run){0};
}

static void run_fail(weft__gram_run *r, weft_status status)
{
    if (!r->status) r->status = status;
}

static void spend(weft__gram_run *r, size_t work)
{
    if (work > r->work) run_fail(r, WEFT_LIMIT);
    else r->work -= work;
}

/* ---- sets ---- */

static uint32_t *slot_of(weft__gram_run *r, size_t begin, weft__gram_way way)
{
    size_t h = ((size_t)(uint32_t)way.state * 0x9E3779B97F4A7C15u) ^ ((size_t)way.frame * 0xC2B2AE3D27D4EB4Fu);
    for (h ^= h >> 29;; h++) {
        size_t i = h & (SLOTS - 1);
        if (r->slot_round[i] != r->round) return &r->slots[i];
        const weft__gram_way *other = &r->ways[begin + r->slots[i]];
        if (other->state == way.state && other->frame == way.frame) return NULL;
    }
}

static int put_slot(weft__gram_run *r, size_t begin, weft__gram_way way, size_t index)
{
    uint32_t *slot = slot_of(r, begin, way);
    if (!slot) return 0;
    *slot = (uint32_t)index;
    r->slot_round[slot - r->slots] = r->round;
    return 1;
}

static int make_slots(weft__gram_run *r, size_t begin)
{
    if (!r->slots) {
        r->slots = weft__alloc_array(SLOTS, sizeof *r->slots);
        r->slot_round = weft__alloc_zero(SLOTS, sizeof *r->slot_round);
        if (!r->slots || !r->slot_round) {
            weft__free(r->slots);
            weft__free(r->slot_round);
            r->slots = r->slot_round = NULL;
            run_fail(r, WEFT_NO_MEMORY);
            return 0;
        }
    }
    for (size_t i = begin; i < r->n_ways; i++) put_slot(r, begin, r->ways[i], i - begin);
    return 1;
}

/* Adds a way to the set that begins at `begin`, unless it is there. */
static void run_add(weft__gram_run *r, size_t begin, int32_t state, uint32_t frame)
{
    weft__gram_way way = {state, frame};
    size_t n = r->n_ways - begin;
    if (r->status) return;
    if (n < FEW) {
        for (size_t i = begin; i < r->n_ways; i++)
            if (r->ways[i].state == state && r->ways[i].frame == frame) return;
    } else {
        if (n == FEW && !make_slots(r, begin)) return;
        if (!put_slot(r, begin, way, n)) return;
    }
    if (n >= WEFT__GRAM_RUN_MAX_WAYS) {
        run_fail(r, WEFT_LIMIT);
        return;
    }
    if (!weft__grow(&r->ways, &r->ways_capacity, r->n_ways + 1, sizeof way)) {
        run_fail(r, WEFT_NO_MEMORY);
        return;
    }
    r->ways[r->n_ways++] = way;
}

/* A new round: nothing was called yet, and the hash table is empty. */
static void next_round(weft__gram_run *r)
{
    if (++r->round) return;
    memset(r->stamp, 0, r->a->n_rules * sizeof *r->stamp);
    if (r->slot_round) memset(r->slot_round, 0, SLOTS * sizeof *r->slot_round);
    r->round = 1;
}

/* ---- frames ---- */

/* The frame of the calls of a rule here, made by the first of them; 0 when there can be none. */
static uint32_t frame_of(weft__gram_run *r, int32_t rule, uint32_t depth)
{
    if (r->stamp[rule] == r->round) return (uint32_t)r->called[rule];
    if (depth > r->a->depth) {
        r->too_deep = 1;
        return 0;
    }
    if (r->n_frames >= WEFT__GRAM_RUN_MAX_FRAMES) {
        run_fail(r, WEFT_LIMIT);
        return 0;
    }
    if (!weft__grow(&r->frames, &r->frames_capacity, r->n_frames + 1, sizeof *r->frames)) {
        run_fail(r, WEFT_NO_MEMORY);
        return 0;
    }
    r->frames[r->n_frames] = (weft__gram_frame){-1, depth};
    if (depth > r->deepest) r->deepest = depth;
    r->stamp[rule] = r->round;
    r->called[rule] = (int32_t)r->n_frames;
    return (uint32_t)r->n_frames++;
}

static void add_link(weft__gram_run *r, uint32_t frame, int32_t state, uint32_t to)
{
    if (r->n_links >= 4 * (size_t)WEFT__GRAM_RUN_MAX_FRAMES) {
        run_fail(r, WEFT_LIMIT);
        return;
    }
    if (!weft__grow(&r->links, &r->links_capacity, r->n_links + 1, sizeof *r->links)) {
        run_fail(r, WEFT_NO_MEMORY);
        return;
    }
    r->links[r->n_links] = (weft__gram_link){state, to, r->frames[frame].link};
    r->frames[frame].link = (int32_t)r->n_links++;
}

static void follow_calls(weft__gram_run *r, size_t begin, weft__gram_way way)
{
    const weft__gram_state *s = &r->a->states[way.state];
    for (uint32_t c = s[0].call; c < s[1].call && !r->status; c++) {
        weft__gram_call_edge call = r->a->calls[c];
        if (r->a->states[call.to].flags & WEFT__GRAM_STATE_LAST) {
            run_add(r, begin, r->a->starts[call.rule], way.frame);
            continue;
        }
        uint32_t frame = frame_of(r, call.rule, r->frames[way.frame].depth + 1);
        if (!frame) continue;
        add_link(r, frame, call.to, way.frame);
        run_add(r, begin, r->a->starts[call.rule], frame);
    }
}

/* Adds what the ways from `begin` on lead to without a byte, then keeps only those that can take one. A rule that ends
 * where it began adds nothing: its callers have an edge around it (nfa.c), so frames made here need not be complete
 * yet. */
static weft__gram_set close_set(weft__gram_run *r, size_t begin, size_t old_frames)
{
    int done = 0;
    size_t kept = begin;
    for (size_t i = begin; i < r->n_ways && !r->status; i++) {
        weft__gram_way way = r->ways[i];
        const weft__gram_state *s = &r->a->states[way.state];
        spend(r, 1 + s[1].call - s[0].call);
        if (s->flags & WEFT__GRAM_STATE_ACCEPT) {
            if (way.frame == 0) done = 1;
            for (int32_t l = way.frame < old_frames ? r->frames[way.frame].link : -1; l >= 0 && !r->status;
                 l = r->links[l].next) {
                spend(r, 1);
                run_add(r, begin, r->links[l].state, r->links[l].frame);
            }
        }
        follow_calls(r, begin, way);
    }
    for (size_t i = begin; i < r->n_ways; i++) {
        const weft__gram_state *s = &r->a->states[r->ways[i].state];
        if (s[0].edge != s[1].edge) r->ways[kept++] = r->ways[i];
    }
    r->n_ways = kept;
    return (weft__gram_set){begin, kept, done};
}

weft__gram_set weft__gram_run_start(weft__gram_run *r)
{
    size_t begin = r->n_ways;
    next_round(r);
    run_add(r, begin, r->a->starts[r->a->root], 0);
    return close_set(r, begin, r->n_frames);
}

weft__gram_set weft__gram_run_step(weft__gram_run *r, weft__gram_set set, unsigned char byte)
{
    size_t begin = r->n_ways, work = 0;
    int plain = WEFT__GRAM_STATE_PLAIN;
    next_round(r);
    for (size_t i = set.begin; i < set.end; i++) {
        weft__gram_way way = r->ways[i];
        const weft__gram_state *s = &r->a->states[way.state];
        for (uint32_t e = s[0].edge; e < s[1].edge; e++) {
            weft__gram_edge edge = r->a->edges[e];
            work++;
            if (edge.lo > byte) break;
            if (edge.hi < byte) continue;
            plain &= r->a->states[edge.to].flags;
            run_add(r, begin, edge.to, way.frame);
        }
    }
    spend(r, work);
    if (plain) return (weft__gram_set){begin, r->n_ways, 0};
    return close_set(r, begin, r->n_frames);
}

weft__gram_set weft__gram_run_return(weft__gram_run *r, const weft__gram_way *ways, size_t n)
{
    size_t begin = r->n_ways, old_frames = r->n_frames;
    next_round(r);
    for (size_t i = 0; i < n; i++) {
        for (int32_t l = r->frames[ways[i].frame].link; l >= 0 && !r->status; l = r->links[l].next) {
            spend(r, 1);
            run_add(r, begin, r->links[l].state, r->links[l].frame);
        }
    }
    return close_set(r, begin, old_frames);
}

/* ---- compaction ---- */

typedef struct compaction {
    weft__gram_frame *frames;
    weft__gram_link *links;
    uint32_t *renamed; /* [n_frames] new number, 0: not needed (the bottom keeps its own) */
    uint32_t *order;   /* frames in the order of their new numbers */
    size_t n_frames, n_links;
} compaction;

static uint32_t rename_frame(compaction *c, uint32_t frame)
{
    if (frame && !c->renamed[frame]) {
        c->order[c->n_frames] = frame;
        c->renamed[frame] = (uint32_t)c->n_frames++;
    }
    return c->renamed[frame];
}

int weft__gram_run_compact(weft__gram_run *r)
{
    compaction c = {weft__alloc_array(r->frames_capacity, sizeof *c.frames),
                    weft__alloc_array(r->links_capacity, sizeof *c.links),
                    weft__alloc_zero(r->n_frames, sizeof *c.renamed),
                    weft__alloc_array(r->n_frames, sizeof *c.order),
                    1,
                    0};
    int ok = c.frames && c.links && c.renamed && c.order;
    if (ok) {
        for (size_t i = 0; i < r->n_ways; i++) r->ways[i].frame = rename_frame(&c, r->ways[i].frame);
        c.order[0] = 0;
        for (size_t i = 0; i < c.n_frames; i++) { /* grows while it is walked */
            weft__gram_frame old = r->frames[c.order[i]];
            c.frames[i] = (weft__gram_frame){-1, old.depth};
            for (int32_t l = old.link; l >= 0; l = r->links[l].next) {
                c.links[c.n_links] =
                    (weft__gram_link){r->links[l].state, rename_frame(&c, r->links[l].frame), c.frames[i].link};
                c.frames[i].link = (int32_t)c.n_links++;
            }
        }
        weft__free(r->frames);
        weft__free(r->links);
        r->frames = c.frames;
        r->links = c.links;
        r->n_frames = c.n_frames;
        r->n_links = c.n_links;
    } else {
        weft__free(c.frames);
        weft__free(c.links);
    }
    weft__free(c.renamed);
    weft__free(c.order);
    return ok;
}
