// SPDX-License-Identifier: Apache-2.0
/* alike.c: compares states with others that seem to do the same (alike.h), as those do that count characters or items.
 * Two states of the same shape differ where what they lead to does: so how many bytes it takes to tell them apart
 * is the length of the shortest way to a pair that differs, which is found from there backwards. */
#include "text/grammar/alike.h"

#include <string.h>

#include "base/alloc.h"

enum { NONE = -1, ROUNDS = 6 /* bytes within which states that are compared read the same */ };
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

/* ---- which are compared ---- */

static uint64_t mix(uint64_t x, uint64_t y)
{
    x = (x ^ y) * 0x9E3779B97F4A7C15u;
    return x ^ x >> 29;
}

static uint64_t shape_of(const weft__gram_automaton *a, int32_t state)
{
    const weft__gram_state *s = &a->states[state];
    uint64_t x = mix((uint64_t)(uint32_t)s->rule << 8 | s->flags, n_ways(a, state));
    for (uint32_t e = s[0].edge; e < s[1].edge; e++) x = mix(x, (uint64_t)a->edges[e].lo << 8 | a->edges[e].hi);
    for (uint32_t c = s[0].call; c < s[1].call; c++) x = mix(x, (uint64_t)(uint32_t)a->calls[c].rule);
    return x;
}

/* Of each state what is read within a few bytes, as a number: those[ROUNDS & 1]. */
static void look_ahead(const weft__gram_automaton *a, uint64_t *those[2])
{
    for (size_t i = 0; i < a->n_states; i++) those[0][i] = shape_of(a, (int32_t)i);
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t *from = those[round & 1];
        for (size_t i = 0; i < a->n_states; i++) {
            uint64_t x = from[i];
            for (uint32_t k = 0; k < n_ways(a, (int32_t)i); k++) x = mix(x, from[way(a, (int32_t)i, k)]);
            those[~round & 1][i] = x;
        }
    }
}

/* Compares each state with the next one, in the order of their numbers, that reads the same within a few bytes: they
 * are numbered as texts go, and one that counts comes before one that counts one less. Where the two lead to what is
 * compared with something else, it was the wrong one. 0 when there is no memory. */
static int compare_all(alike *x)
{
    const size_t n = x->a->n_states;
    size_t slots = 64, done = 0;
    while (slots < 2 * n) slots *= 2;
    uint64_t *those[2] = {weft__alloc_array(n, sizeof **those), weft__alloc_array(n, sizeof **those)};
    int32_t *next = weft__alloc_array(n, sizeof *next), *last = weft__alloc_array(slots, sizeof *last);
    const int ok = those[0] && those[1] && next && last;
    if (ok) {
        look_ahead(x->a, those);
        memset(last, 0xFF, slots * sizeof *last);
    }
    const uint64_t *sign = those[ROUNDS & 1];
    for (size_t i = n; ok && i-- > 0;) {
        size_t slot = (size_t)sign[i] & (slots - 1);
        while (last[slot] != NONE && sign[last[slot]] != sign[i]) slot = (slot + 1) & (slots - 1);
        next[i] = last[slot];
        last[slot] = (int32_t)i;
    }
    for (size_t i = 0; ok && i < n; i++) {
        if (x->other[i] == NONE && next[i] != NONE) compare_with(x, (int32_t)i, next[i]);
        spread(x, &done);
    }
    weft__free(last);
    weft__free(next);
    weft__free(those[1]);
    weft__free(those[0]);
    return ok;
}

/* ---- what tells them apart ---- */

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
