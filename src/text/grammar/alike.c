// SPDX-License-Identifier: Apache-2.0
/* alike.c: compares states with those that they lead to (alike.h), as one that counts is followed by one that counts one
 * less. Two states of the same shape differ where what they lead to does: so how many bytes it takes to tell them apart
 * is the length of the shortest way to a pair that differs, which is found from there backwards. */
#include "text/grammar/alike.h"

#include <string.h>

#include "base/alloc.h"

enum { NONE = -1 };
#define NEVER UINT32_MAX

typedef struct alike {
    const weft__gram_automaton *a;
    int32_t *other; /* [n_states] what it is compared with, or NONE */
    uint32_t *told; /* [n_states] bytes that tell it from that one, at least one; NEVER */
    int32_t *list;  /* [n_states] states that are compared */
    size_t n;
    uint32_t *at;  /* [n_states + 2] from[at[i]..at[i + 1]): compared states that lead to i where the others do to
                    * another one */
    int32_t *from; /* NULL until it is known how many there are */
} alike;

static int same_shape(const weft__gram_automaton *a, int32_t x, int32_t y)
{
    const weft__gram_state *s = &a->states[x], *t = &a->states[y];
    const uint32_t n = s[1].edge - s[0].edge, n_calls = s[1].call - s[0].call;
    if (s->rule != t->rule || s->flags != t->flags || t[1].edge - t[0].edge != n || t[1].call - t[0].call != n_calls)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        if (a->edges[s->edge + i].lo != a->edges[t->edge + i].lo ||
            a->edges[s->edge + i].hi != a->edges[t->edge + i].hi)
            return 0;
    for (uint32_t i = 0; i < n_calls; i++)
        if (a->calls[s->call + i].rule != a->calls[t->call + i].rule) return 0;
    return 1;
}

/* Ways on: edges, then calls, which take at least a byte before they go on. */
static uint32_t n_ways(const weft__gram_automaton *a, int32_t state)
{
    const weft__gram_state *s = &a->states[state];
    return s[1].edge - s[0].edge + s[1].call - s[0].call;
}

static int32_t way(const weft__gram_automaton *a, int32_t state, uint32_t i)
{
    const weft__gram_state *s = &a->states[state];
    const uint32_t n_edges = s[1].edge - s[0].edge;
    return i < n_edges ? a->edges[s->edge + i].to : a->calls[s->call + i - n_edges].to;
}

static void compare_with(alike *x, int32_t state, int32_t other)
{
    if (!same_shape(x->a, state, other)) return;
    x->other[state] = other;
    x->list[x->n++] = state;
}

/* What is compared leads to what is compared, or to the same; or the next byte tells. done: of the list. */
static void spread(alike *x, size_t *done)
{
    const weft__gram_automaton *a = x->a;
    for (; *done < x->n; ++*done) {
        const int32_t state = x->list[*done];
        for (uint32_t i = 0; i < n_ways(a, state); i++) {
            const int32_t to = way(a, state, i), other = way(a, x->other[state], i);
            if (to == other) continue;
            if (x->other[to] == NONE) compare_with(x, to, other);
            if (x->other[to] != other) x->told[state] = 1;
        }
    }
}

/* The first state of the same shape to which a character of ASCII leads, and how many do; 0: none. */
static int find_next(const weft__gram_automaton *a, int32_t state, int32_t *next)
{
    int n = 0;
    for (uint32_t e = a->states[state].edge; e < a->states[state + 1].edge && a->edges[e].lo < 128; e++) {
        const weft__gram_edge *edge = &a->edges[e];
        if (!n && (edge->to == state || !same_shape(a, state, edge->to))) continue;
        if (n && edge->to != *next) continue;
        *next = edge->to;
        n += (edge->hi < 128 ? edge->hi : 127) - edge->lo + 1;
    }
    return n;
}

/* Compares each state with the next one, beginning with those that most characters go on from: where a text has digits
 * of an escape behind each other, those are compared with the ones of the next character. */
static int compare_all(alike *x)
{
    const size_t n = x->a->n_states;
    int32_t *next = weft__alloc_array(n, sizeof *next), *order = weft__alloc_array(n, sizeof *order);
    uint8_t *width = weft__alloc_array(n, 1);
    size_t at[130] = {0}, done = 0;
    const int ok = next && order && width;
    for (size_t i = 0; ok && i < n; i++) {
        width[i] = (uint8_t)(128 - find_next(x->a, (int32_t)i, &next[i]));
        at[width[i] + 1]++;
    }
    for (size_t i = 0; i < 129; i++) at[i + 1] += at[i];
    for (size_t i = 0; ok && i < n; i++) order[at[width[i]]++] = (int32_t)i;
    for (size_t i = 0; ok && i < n && width[order[i]] < 128; i++) {
        if (x->other[order[i]] == NONE) compare_with(x, order[i], next[order[i]]);
        spread(x, &done);
    }
    weft__free(width);
    weft__free(order);
    weft__free(next);
    return ok;
}

/* Counts the states to list, then lists them. */
static void list_sources(alike *x)
{
    const weft__gram_automaton *a = x->a;
    for (size_t k = 0; k < x->n; k++) {
        const int32_t state = x->list[k];
        for (uint32_t i = 0; i < n_ways(a, state); i++) {
            const int32_t to = way(a, state, i);
            if (to == way(a, x->other[state], i)) continue;
            if (x->from) x->from[x->at[to + 1]++] = state;
            else x->at[to + 2]++;
        }
    }
}

/* From the pairs that the next byte tells apart backwards. 0 when there is no memory. */
static int count_bytes(alike *x)
{
    const size_t n_states = x->a->n_states;
    size_t n = 0;
    list_sources(x);
    for (size_t i = 0; i < n_states; i++) x->at[i + 2] += x->at[i + 1];
    x->from = weft__alloc_array(x->at[n_states + 1], sizeof *x->from);
    int32_t *todo = weft__alloc_array(x->n, sizeof *todo);
    if (x->from && todo) {
        list_sources(x);
        for (size_t i = 0; i < x->n; i++)
            if (x->told[x->list[i]] == 1) todo[n++] = x->list[i];
        for (size_t i = 0; i < n; i++) {
            for (uint32_t k = x->at[todo[i]]; k < x->at[todo[i] + 1]; k++) {
                if (x->told[x->from[k]] != NEVER) continue;
                x->told[x->from[k]] = x->told[todo[i]] + 1;
                todo[n++] = x->from[k];
            }
        }
    }
    weft__free(todo);
    return x->from && n <= x->n;
}

/* Follows what a state is alike, until one is alike no other or was met before. list: room for the way. */
static void choose_one(alike *x, int32_t *out, int32_t state, uint32_t depth)
{
    size_t n = 0;
    int32_t one = state;
    while (out[one] == NONE && x->other[one] != NONE && x->told[one] > depth) {
        out[one] = one; /* as long as it is on the way */
        x->list[n++] = one;
        one = x->other[one];
    }
    if (out[one] == NONE) out[one] = one;
    one = out[one];
    while (n) out[x->list[--n]] = one;
}

int32_t *weft__gram_alike_make(const weft__gram_automaton *a, uint32_t depth)
{
    const size_t n = a->n_states;
    alike x = {.a = a};
    int32_t *out = weft__alloc_array(n, sizeof *out);
    x.other = weft__alloc_array(n, sizeof *x.other);
    x.told = weft__alloc_array(n, sizeof *x.told);
    x.list = weft__alloc_array(n, sizeof *x.list);
    x.at = weft__alloc_zero(n + 2, sizeof *x.at);
    int ok = out && x.other && x.told && x.list && x.at;
    if (ok) {
        memset(x.other, 0xFF, n * sizeof *x.other);
        memset(x.told, 0xFF, n * sizeof *x.told);
        memset(out, 0xFF, n * sizeof *out);
        ok = compare_all(&x) && count_bytes(&x);
    }
    for (size_t i = 0; ok && i < n; i++) choose_one(&x, out, (int32_t)i, depth);
    if (!ok) weft__free(out);
    weft__free(x.from);
    weft__free(x.at);
    weft__free(x.list);
    weft__free(x.told);
    weft__free(x.other);
    return ok ? out : NULL;
}
