// SPDX-License-Identifier: Apache-2.0
/* pattern.c: expressions as states without empty edges, and threads through them (pattern.h). */
#include "text/grammar/pattern.h"

#include <string.h>

#include "base/alloc.h"
#include "text/grammar/token_trie.h"

/* ---- making ---- */

/* An edge that is to be followed, with what lies before it: groups that began without a byte, and the text's end. */
typedef struct pending {
    int32_t edge;
    int ended;
    uint64_t open; /* bit k: group k */
} pending;

typedef struct pattern_build {
    const weft__gram_nfa *nfa;
    weft__gram_patterns *p;
    int32_t *states; /* [nfa->n] of those that a byte leads to; -1: none yet */
    int32_t origins[WEFT__GRAM_PATTERN_STATES];
    uint32_t *seen; /* [2 * nfa->n] the state that was expanded last from there, and its end, and one */
    pending *todo;
    size_t n_todo, todo_capacity;
    weft_status status;
} pattern_build;

static int pattern_fail(pattern_build *b, weft_status status)
{
    if (!b->status) b->status = status;
    return 0;
}

static int32_t add_state(pattern_build *b, int32_t origin)
{
    weft__gram_patterns *p = b->p;
    weft__gram_automaton *a = p->a;
    if (a->n_states >= WEFT__GRAM_PATTERN_STATES) return pattern_fail(b, WEFT_LIMIT);
    if (!weft__grow(&a->states, &a->states_capacity, a->n_states + 2, sizeof *a->states) ||
        !weft__grow(&p->ends, &p->ends_capacity, a->n_states + 1, 1))
        return pattern_fail(b, WEFT_NO_MEMORY);
    a->states[a->n_states] = (weft__gram_state){0};
    p->ends[a->n_states] = 0;
    b->origins[a->n_states] = origin;
    return (int32_t)a->n_states++;
}

static void add_way(pattern_build *b, const weft__gram_nfa_edge *e, uint64_t open)
{
    weft__gram_patterns *p = b->p;
    weft__gram_automaton *a = p->a;
    if (b->states[e->to] < 0) b->states[e->to] = add_state(b, e->to);
    if (a->n_edges >= WEFT__GRAM_PATTERN_EDGES) pattern_fail(b, WEFT_LIMIT);
    if (b->status) return;
    if (!weft__grow(&a->edges, &a->edges_capacity, a->n_edges + 1, sizeof *a->edges) ||
        !weft__grow(&p->groups, &p->groups_capacity, a->n_edges + 1, 1)) {
        pattern_fail(b, WEFT_NO_MEMORY);
        return;
    }
    a->edges[a->n_edges] = (weft__gram_edge){b->states[e->to], e->lo, e->hi};
    p->groups[a->n_edges++] = open ? (uint8_t)__builtin_ctzll(open) : 0;
}

/* Puts what leads on from a place on top, the preferred one last; notes that one is complete there. */
static void come_to(pattern_build *b, int32_t at, int ended, uint64_t open, size_t state)
{
    uint32_t *seen = &b->seen[2 * (size_t)at + (size_t)ended];
    if (*seen == state + 1) return;
    *seen = (uint32_t)state + 1;
    if (at == b->nfa->end && ended) b->p->ends[state] = 1;
    else if (at == b->nfa->end) b->p->a->states[state].flags = WEFT__GRAM_STATE_ACCEPT;
    for (int32_t e = b->nfa->first[at]; e >= 0; e = b->nfa->edges[e].next) {
        if (!weft__grow(&b->todo, &b->todo_capacity, b->n_todo + 1, sizeof *b->todo)) {
            pattern_fail(b, WEFT_NO_MEMORY);
            return;
        }
        b->todo[b->n_todo++] = (pending){e, ended, open};
    }
}

/* Finds the bytes that may come next in a state, in the order in which they are preferred. */
static void expand_state(pattern_build *b, size_t state)
{
    b->p->a->states[state].edge = (uint32_t)b->p->a->n_edges;
    come_to(b, b->origins[state], 0, 0, state);
    while (b->n_todo && !b->status) {
        pending x = b->todo[--b->n_todo];
        const weft__gram_nfa_edge *e = &b->nfa->edges[x.edge];
        if (e->kind == WEFT__GRAM_NFA_BYTE) {
            if (!x.ended) add_way(b, e, x.open);
            continue;
        }
        if (e->kind == WEFT__GRAM_NFA_MARK) {
            const uint64_t group =
                e->rule > WEFT__GRAM_MARK_GROUP ? (uint64_t)1 << (e->rule - WEFT__GRAM_MARK_GROUP) : 0;
            if (e->rule == WEFT__GRAM_MARK_FIRST && state != WEFT__GRAM_PATTERN_FIRST) continue;
            if (e->rule == WEFT__GRAM_MARK_LAST) x.ended = 1;
            x.open = e->hi ? x.open & ~group : x.open | group;
        }
        come_to(b, e->to, x.ended, x.open, state);
    }
}

static weft_status make_patterns(const weft__gram_nfa *nfa, weft__gram_patterns *p, weft_error *err)
{
    pattern_build *b = weft__alloc_zero(1, sizeof *b);
    weft_status st = WEFT_NO_MEMORY;
    if (!b) return weft_fail(err, st, "no memory for a grammar");
    b->nfa = nfa;
    b->p = p;
    b->states = weft__alloc_array(nfa->n, sizeof *b->states);
    b->seen = weft__alloc_zero(2 * nfa->n, sizeof *b->seen);
    if (b->states && b->seen) {
        memset(b->states, 0xFF, nfa->n * sizeof *b->states);
        add_state(b, 0);
        add_state(b, 0);
        for (size_t i = 0; i < p->a->n_states && !b->status; i++) expand_state(b, i);
        st = b->status;
    }
    if (!st) p->a->states[p->a->n_states] = (weft__gram_state){.edge = (uint32_t)p->a->n_edges};
    weft__free(b->todo);
    weft__free(b->seen);
    weft__free(b->states);
    weft__free(b);
    if (st == WEFT_NO_MEMORY) return weft_fail(err, st, "no memory for a grammar");
    if (st) return weft_fail(err, st, "grammar: patterns take more than %d states", WEFT__GRAM_PATTERN_STATES);
    if (p->ends[WEFT__GRAM_PATTERN_FIRST] || p->a->states[WEFT__GRAM_PATTERN_FIRST].flags)
        return weft_fail(err, WEFT_ARGUMENT, "grammar: what is to be found in a text must not be empty");
    return WEFT_OK;
}

weft_status weft__gram_patterns_create(weft__gram *g, int32_t rule, weft__gram_patterns **out, weft_error *err)
{
    weft__gram_nfa nfa = {0};
    *out = NULL;
    if (weft__gram_failed(g)) return weft_fail(err, g->err.status, "%s", g->err.message);
    weft__gram_patterns *p = weft__alloc_zero(1, sizeof *p);
    weft_status st = p && (p->a = weft__alloc_zero(1, sizeof *p->a)) ? WEFT_OK : WEFT_NO_MEMORY;
    if (st) weft_fail(err, st, "no memory for a grammar");
    else st = weft__gram_nfa_build(g, NULL, rule, &nfa, err);
    if (!st) st = make_patterns(&nfa, p, err);
    weft__gram_nfa_free(&nfa);
    if (st) weft__gram_patterns_destroy(&p);
    *out = p;
    return st;
}

void weft__gram_patterns_destroy(weft__gram_patterns **pp)
{
    weft__gram_patterns *p = pp ? *pp : NULL;
    if (!p) return;
    weft__free(p->ends);
    weft__free(p->groups);
    weft__gram_automaton_destroy(&p->a);
    weft__free(p);
    *pp = NULL;
}

/* ---- threads ---- */

void weft__gram_threads_free(weft__gram_threads *t)
{
    weft__free(t->stamp);
    weft__free(t->spare);
    weft__free(t->items);
    *t = (weft__gram_threads){0};
}

int weft__gram_threads_copy(const weft__gram_threads *from, weft__gram_threads *to)
{
    if (!weft__grow(&to->items, &to->capacity, from->n, sizeof *to->items)) return 0;
    if (from->n) memcpy(to->items, from->items, from->n * sizeof *to->items);
    to->n = from->n;
    return 1;
}

static int put_thread(weft__gram_threads *t, size_t *n, weft__gram_thread x)
{
    if (t->stamp[x.state] == t->round) return 1; /* another is there, which is preferred */
    t->stamp[x.state] = t->round;
    if (!weft__grow(&t->spare, &t->spare_capacity, *n + 1, sizeof *t->spare)) return 0;
    t->spare[(*n)++] = x;
    return 1;
}

int weft__gram_threads_step(const weft__gram_patterns *p, weft__gram_threads *t, unsigned char byte, uint64_t at,
                            uint64_t before, int32_t start)
{
    const weft__gram_automaton *a = p->a;
    size_t n = 0;
    if (!t->stamp && !(t->stamp = weft__alloc_zero(a->n_states, sizeof *t->stamp))) return 0;
    if (!++t->round) {
        memset(t->stamp, 0, a->n_states * sizeof *t->stamp);
        t->round = 1;
    }
    for (size_t i = 0; i < t->n + (start >= 0); i++) {
        const weft__gram_thread x = i < t->n ? t->items[i] : (weft__gram_thread){start, 0, at, 0};
        const weft__gram_state *state = &a->states[x.state];
        if (byte == WEFT__GRAM_TRIE_CONTROL && !put_thread(t, &n, x)) return 0;
        t->work += 1 + state[1].edge - state[0].edge;
        for (uint32_t e = state[0].edge; e < state[1].edge; e++) {
            weft__gram_thread next = x;
            if (a->edges[e].lo > byte || a->edges[e].hi < byte) continue;
            next.state = a->edges[e].to;
            if (p->groups[e] && (!x.group || p->groups[e] <= x.group)) {
                next.group = p->groups[e];
                next.at = at - before;
            }
            if (!put_thread(t, &n, next)) return 0;
        }
    }
    weft__gram_thread *items = t->items;
    size_t capacity = t->capacity;
    t->items = t->spare;
    t->capacity = t->spare_capacity;
    t->spare = items;
    t->spare_capacity = capacity;
    t->n = n;
    return 1;
}

const weft__gram_thread *weft__gram_threads_found(const weft__gram_patterns *p, const weft__gram_threads *t, int end)
{
    for (size_t i = 0; i < t->n; i++)
        if ((p->a->states[t->items[i].state].flags & WEFT__GRAM_STATE_ACCEPT) || (end && p->ends[t->items[i].state]))
            return &t->items[i];
    return NULL;
}
