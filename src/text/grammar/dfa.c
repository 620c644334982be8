// SPDX-License-Identifier: Apache-2.0
/* dfa.c: one rule's automaton without empty edges: deterministic where that stays small (subset construction, Rabin and
 * Scott 1959), else with alternatives side by side.
 *
 * A state of the result stands for a set of states of the given automaton; equal sets are one state. Sets hold only
 * states with edges that are not empty, and the end. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "text/grammar/parts.h"

/* Work for each state and edge of a rule that costs the shared budget nothing: so that what is large, and no more
 * ambiguous than data is, is made deterministic whatever came before it. */
enum { OWN_WORK = 32 };

typedef struct subsets {
    weft__gram_automaton *a;
    const weft__gram_nfa *nfa;
    int32_t rule;
    size_t base;   /* the first state of this rule */
    int32_t *pool; /* the sets, one after the other, each sorted */
    size_t n_pool, pool_capacity;
    size_t *at; /* where set i begins; the end is at[i + 1] */
    size_t at_capacity;
    int32_t *slots; /* hash table of sets; -1: free */
    size_t n_slots;
    uint32_t *seen; /* [nfa->n] the round in which a state was met */
    uint32_t round;
    int32_t *todo;   /* [nfa->n] */
    int32_t *single; /* [nfa->n] the state for the set that grows from one state alone; -1: none yet */
    int32_t *seeds;  /* [nfa->n] */
    int32_t *open;   /* [nfa->n_edges] those that contain the byte at hand */
    int32_t *later;  /* [nfa->n_edges] the next that begins with the same byte; -1: none */
    size_t n_seeds;
    size_t *budget;
    weft_status status;
} subsets;

static int dfa_fail(subsets *s, weft_status status)
{
    s->status = status;
    return 0;
}

static int spend(subsets *s, size_t work)
{
    if (work > *s->budget) return dfa_fail(s, WEFT_LIMIT);
    *s->budget -= work;
    return 1;
}

static int by_value(const void *x, const void *y)
{
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    return (a > b) - (a < b);
}

/* Appends to the pool, sorted, the states that the seeds reach through empty edges. */
static int close_seeds(subsets *s)
{
    size_t n = 0, visited = 0;
    s->round++;
    for (size_t i = 0; i < s->n_seeds; i++) {
        if (s->seen[s->seeds[i]] == s->round) continue;
        s->seen[s->seeds[i]] = s->round;
        s->todo[n++] = s->seeds[i];
    }
    while (n) {
        int32_t state = s->todo[--n];
        int keep = state == s->nfa->end;
        for (int32_t e = s->nfa->first[state]; e >= 0; e = s->nfa->edges[e].next) {
            const weft__gram_nfa_edge *edge = &s->nfa->edges[e];
            visited++;
            keep |= edge->kind != WEFT__GRAM_NFA_EMPTY;
            if (edge->kind != WEFT__GRAM_NFA_EMPTY || s->seen[edge->to] == s->round) continue;
            s->seen[edge->to] = s->round;
            s->todo[n++] = edge->to;
        }
        if (!keep) continue;
        if (!weft__grow(&s->pool, &s->pool_capacity, s->n_pool + 1, sizeof *s->pool))
            return dfa_fail(s, WEFT_NO_MEMORY);
        s->pool[s->n_pool++] = state;
    }
    size_t begin = s->at[s->a->n_states - s->base];
    qsort(s->pool + begin, s->n_pool - begin, sizeof *s->pool, by_value);
    return spend(s, visited + 1);
}

/* Doubles the hash table when it is half full. */
static int make_room(subsets *s, size_t n_sets)
{
    if (2 * (n_sets + 1) <= s->n_slots) return 1;
    size_t n = s->n_slots ? 2 * s->n_slots : 256;
    int32_t *slots = weft__alloc_array(n, sizeof *slots);
    if (!slots) return dfa_fail(s, WEFT_NO_MEMORY);
    memset(slots, 0xFF, n * sizeof *slots);
    for (size_t i = 0; i < n_sets; i++) {
        size_t h = (size_t)weft__strings_hash((const char *)(s->pool + s->at[i]),
                                              (s->at[i + 1] - s->at[i]) * sizeof *s->pool, 0);
        while (slots[h & (n - 1)] >= 0) h++;
        slots[h & (n - 1)] = (int32_t)i;
    }
    weft__free(s->slots);
    s->slots = slots;
    s->n_slots = n;
    return 1;
}

/* The state that stands for what the seeds reach, made when it is new; -1 on failure. */
static int32_t intern(subsets *s)
{
    size_t n = s->a->n_states - s->base;
    if (!close_seeds(s) || !make_room(s, n)) return -1;
    size_t begin = s->at[n], bytes = (s->n_pool - begin) * sizeof *s->pool;
    size_t h = (size_t)weft__strings_hash((const char *)(s->pool + begin), bytes, 0);
    for (; s->slots[h & (s->n_slots - 1)] >= 0; h++) {
        size_t i = (size_t)s->slots[h & (s->n_slots - 1)];
        if ((s->at[i + 1] - s->at[i]) * sizeof *s->pool != bytes || memcmp(s->pool + s->at[i], s->pool + begin, bytes))
            continue;
        s->n_pool = begin;
        return (int32_t)(s->base + i);
    }
    if (s->a->n_states >= WEFT__GRAM_MAX_STATES) {
        dfa_fail(s, WEFT_LIMIT);
        return -1;
    }
    if (!weft__grow(&s->at, &s->at_capacity, n + 2, sizeof *s->at) ||
        !weft__grow(&s->a->states, &s->a->states_capacity, s->a->n_states + 1, sizeof *s->a->states)) {
        dfa_fail(s, WEFT_NO_MEMORY);
        return -1;
    }
    s->at[n + 1] = s->n_pool;
    s->slots[h & (s->n_slots - 1)] = (int32_t)n;
    s->a->states[s->a->n_states] = (weft__gram_state){.rule = s->rule};
    return (int32_t)s->a->n_states++;
}

static int put_edge(subsets *s, size_t first, int lo, int hi, int32_t to)
{
    weft__gram_automaton *a = s->a;
    if (a->n_edges > first && a->edges[a->n_edges - 1].to == to && a->edges[a->n_edges - 1].hi == lo - 1) {
        a->edges[a->n_edges - 1].hi = (uint8_t)hi;
        return 1;
    }
    if (a->n_edges >= WEFT__GRAM_MAX_EDGES) return dfa_fail(s, WEFT_LIMIT);
    if (!weft__grow(&a->edges, &a->edges_capacity, a->n_edges + 1, sizeof *a->edges))
        return dfa_fail(s, WEFT_NO_MEMORY);
    a->edges[a->n_edges++] = (weft__gram_edge){to, (uint8_t)lo, (uint8_t)hi};
    return 1;
}

static int put_call(subsets *s, size_t first, int32_t rule, int32_t to)
{
    weft__gram_automaton *a = s->a;
    for (size_t i = first; i < a->n_calls; i++)
        if (a->calls[i].rule == rule && a->calls[i].to == to) return 1;
    if (a->n_calls >= WEFT__GRAM_MAX_EDGES) return dfa_fail(s, WEFT_LIMIT);
    if (!weft__grow(&a->calls, &a->calls_capacity, a->n_calls + 1, sizeof *a->calls))
        return dfa_fail(s, WEFT_NO_MEMORY);
    a->calls[a->n_calls++] = (weft__gram_call_edge){rule, to};
    return spend(s, a->n_calls - first);
}

static void add_seed(subsets *s, int32_t state)
{
    if (s->seen[state] == s->round) return;
    s->seen[state] = s->round;
    s->seeds[s->n_seeds++] = state;
}

/* Where the edges of set i that call the rule lead become seeds. */
static int seed_calls(subsets *s, size_t i, int32_t rule)
{
    size_t work = 0;
    s->n_seeds = 0;
    s->round++;
    for (size_t k = s->at[i]; k < s->at[i + 1]; k++) {
        for (int32_t e = s->nfa->first[s->pool[k]]; e >= 0; e = s->nfa->edges[e].next) {
            const weft__gram_nfa_edge *edge = &s->nfa->edges[e];
            work++;
            if (edge->kind == WEFT__GRAM_NFA_CALL && edge->rule == rule) add_seed(s, edge->to);
        }
    }
    return spend(s, work);
}

/* Sorts the edges of set i for bytes by the first one, and marks where the runs of bytes begin that the same edges
 * contain. */
static int sort_bytes(subsets *s, size_t i, int32_t begins[256], uint8_t cut[257])
{
    size_t work = 0;
    memset(begins, 0xFF, 256 * sizeof *begins);
    memset(cut, 0, 257);
    for (size_t k = s->at[i]; k < s->at[i + 1]; k++) {
        for (int32_t e = s->nfa->first[s->pool[k]]; e >= 0; e = s->nfa->edges[e].next) {
            const weft__gram_nfa_edge *edge = &s->nfa->edges[e];
            work++;
            if (edge->kind != WEFT__GRAM_NFA_BYTE) continue;
            cut[edge->lo] = cut[edge->hi + 1] = 1;
            s->later[e] = begins[edge->lo];
            begins[edge->lo] = e;
        }
    }
    return spend(s, work);
}

/* One edge for each run of bytes that the same edges contain. Each run looks at those edges only, so that thousands of
 * words cost as much as they have letters. */
static int expand_bytes(subsets *s, size_t i)
{
    int32_t begins[256];
    uint8_t cut[257];
    size_t first_edge = s->a->n_edges, n = 0;
    if (!sort_bytes(s, i, begins, cut)) return 0;
    for (int lo = 0, hi; lo < 256; lo = hi) {
        size_t kept = 0, work = n;
        for (hi = lo + 1; hi < 256 && !cut[hi];) hi++;
        for (size_t k = 0; k < n; k++)
            if (s->nfa->edges[s->open[k]].hi >= lo) s->open[kept++] = s->open[k];
        for (int32_t e = begins[lo]; e >= 0; e = s->later[e]) s->open[kept++] = e;
        n = kept;
        if (!spend(s, work + n)) return 0;
        if (!n) continue;
        s->n_seeds = 0;
        s->round++;
        for (size_t k = 0; k < n; k++) add_seed(s, s->nfa->edges[s->open[k]].to);
        int32_t to = intern(s);
        if (to < 0 || !put_edge(s, first_edge, lo, hi - 1, to)) return 0;
    }
    return 1;
}

/* One edge for each run of bytes, one call for each rule. */
static int expand(subsets *s, size_t i)
{
    size_t first_call = s->a->n_calls;
    for (size_t k = s->at[i]; k < s->at[i + 1]; k++) {
        for (int32_t e = s->nfa->first[s->pool[k]]; e >= 0; e = s->nfa->edges[e].next) {
            const weft__gram_nfa_edge edge = s->nfa->edges[e];
            if (edge.kind != WEFT__GRAM_NFA_CALL) continue;
            int known = 0;
            if (!spend(s, s->a->n_calls - first_call)) return 0;
            for (size_t c = first_call; c < s->a->n_calls && !known; c++) known = s->a->calls[c].rule == edge.rule;
            if (known) continue;
            if (!seed_calls(s, i, edge.rule)) return 0;
            int32_t to = intern(s);
            if (to < 0 || !put_call(s, first_call, edge.rule, to)) return 0;
        }
    }
    return expand_bytes(s, i);
}

static int by_bytes(const void *x, const void *y)
{
    const weft__gram_edge *a = x, *b = y;
    if (a->lo != b->lo) return a->lo < b->lo ? -1 : 1;
    return (a->to > b->to) - (a->to < b->to);
}

/* Every edge on its own. */
static int copy_edges(subsets *s, size_t i)
{
    size_t first_edge = s->a->n_edges, first_call = s->a->n_calls;
    for (size_t k = s->at[i]; k < s->at[i + 1]; k++) {
        for (int32_t e = s->nfa->first[s->pool[k]]; e >= 0; e = s->nfa->edges[e].next) {
            const weft__gram_nfa_edge edge = s->nfa->edges[e];
            if (edge.kind == WEFT__GRAM_NFA_EMPTY) continue;
            if (s->single[edge.to] < 0) {
                s->n_seeds = 1;
                s->seeds[0] = edge.to;
                if ((s->single[edge.to] = intern(s)) < 0) return 0;
            }
            int32_t to = s->single[edge.to];
            if (edge.kind == WEFT__GRAM_NFA_BYTE ? !put_edge(s, s->a->n_edges, edge.lo, edge.hi, to)
                                                 : !put_call(s, first_call, edge.rule, to))
                return 0;
        }
    }
    qsort(s->a->edges + first_edge, s->a->n_edges - first_edge, sizeof *s->a->edges, by_bytes);
    return spend(s, s->a->n_edges - first_edge);
}

static int construct(subsets *s, int (*each)(subsets *s, size_t i))
{
    s->n_pool = s->at[0] = 0;
    s->n_seeds = 1;
    s->seeds[0] = 0;
    if (intern(s) < 0) return 0;
    for (size_t i = 0; s->base + i < s->a->n_states; i++) {
        weft__gram_state *state = &s->a->states[s->base + i];
        state->edge = (uint32_t)s->a->n_edges;
        state->call = (uint32_t)s->a->n_calls;
        for (size_t k = s->at[i]; k < s->at[i + 1]; k++)
            if (s->pool[k] == s->nfa->end) state->flags = WEFT__GRAM_STATE_ACCEPT;
        if (!each(s, i)) return 0;
    }
    return 1;
}

weft_status weft__gram_automaton_add(weft__gram_automaton *a, const weft__gram_nfa *nfa, int32_t rule, size_t budget[2],
                                     weft_error *err)
{
    const size_t own = OWN_WORK * (nfa->n + nfa->n_edges), all = own + budget[0];
    size_t left = all;
    subsets s = {.a = a, .nfa = nfa, .rule = rule, .base = a->n_states, .budget = &left};
    size_t n_edges = a->n_edges, n_calls = a->n_calls;
    s.seen = weft__alloc_zero(nfa->n, sizeof *s.seen);
    s.todo = weft__alloc_array(nfa->n, sizeof *s.todo);
    s.single = weft__alloc_array(nfa->n, sizeof *s.single);
    s.seeds = weft__alloc_array(nfa->n, sizeof *s.seeds);
    s.open = weft__alloc_array(nfa->n_edges, sizeof *s.open);
    s.later = weft__alloc_array(nfa->n_edges, sizeof *s.later);
    if (!s.seen || !s.todo || !s.single || !s.seeds || !s.open || !s.later ||
        !weft__grow(&s.at, &s.at_capacity, 2, sizeof *s.at)) {
        dfa_fail(&s, WEFT_NO_MEMORY);
        goto done;
    }
    for (size_t i = 0; i < nfa->n; i++) s.single[i] = -1;
    construct(&s, expand);
    if (all - left > own) budget[0] -= all - left - own;
    if (s.status == WEFT_LIMIT) {
        a->n_states = s.base;
        a->n_edges = n_edges;
        a->n_calls = n_calls;
        s.status = WEFT_OK;
        s.budget = &budget[1];
        if (s.n_slots) memset(s.slots, 0xFF, s.n_slots * sizeof *s.slots);
        construct(&s, copy_edges);
    }
done:
    weft__free(s.slots);
    weft__free(s.at);
    weft__free(s.pool);
    weft__free(s.later);
    weft__free(s.open);
    weft__free(s.seeds);
    weft__free(s.single);
    weft__free(s.todo);
    weft__free(s.seen);
    if (s.status == WEFT_NO_MEMORY) return weft_fail(err, s.status, "no memory for a grammar");
    if (s.status) return weft_fail(err, s.status, "too ambiguous, or more than %d states", WEFT__GRAM_MAX_STATES);
    return WEFT_OK;
}
