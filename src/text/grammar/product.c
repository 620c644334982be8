// SPDX-License-Identifier: Apache-2.0
/* product.c: what languages have in common, and what they lack: the product of deterministic automata (Rabin and Scott
 * 1959), as an expression of a grammar. A state of the product is a state of each part; one that is to be lacked may be
 * dead. States from which no text ends are left out. */
#include <string.h>

#include "base/alloc.h"
#include "text/grammar/parts.h"
#include "text/grammar/product.h"

enum { MAX_PARTS = 2 * WEFT__GRAM_MAX_PATTERNS + 4, DEAD = -1 };

weft_status weft__gram_language(weft__gram *rules, int32_t root, size_t *work, weft__gram_automaton **out,
                                weft_error *err)
{
    size_t budget[2] = {*work, 0};
    for (size_t i = 0; i < rules->n_rules; i++) rules->rules[i].call = 0; /* there is no stack to call with */
    weft_status st = weft__gram_compile_within(rules, root, 0, budget, out, err);
    *work = budget[0];
    weft__gram_automaton *a = *out;
    if (st) return st;
    int deterministic = !a->n_calls;
    for (size_t s = 0; s < a->n_states && deterministic; s++)
        for (uint32_t e = a->states[s].edge; e + 1 < a->states[s + 1].edge; e++)
            deterministic &= a->edges[e].hi < a->edges[e + 1].lo;
    if (deterministic) return WEFT_OK;
    weft__gram_automaton_destroy(out);
    return weft_fail(err, WEFT_LIMIT, "it is too large to be held together with others");
}

int weft__gram_language_has(const weft__gram_automaton *a, const char *s, size_t n)
{
    int32_t state = a->starts[a->root];
    for (size_t i = 0; i < n && state != DEAD; i++) {
        const weft__gram_state *x = &a->states[state];
        unsigned char byte = (unsigned char)s[i];
        state = DEAD;
        for (uint32_t e = x[0].edge; e < x[1].edge && state == DEAD; e++)
            if (byte >= a->edges[e].lo && byte <= a->edges[e].hi) state = a->edges[e].to;
    }
    return state != DEAD && a->states[state].flags & WEFT__GRAM_STATE_ACCEPT;
}

typedef struct language_product {
    weft__gram *g;
    const weft__gram_part *parts;
    size_t n_parts;
    int32_t most;         /* times that the last part may be complete behind its start; -1: any number */
    weft__strings tuples; /* one state of each part, and how often so far; its number is that of the product's state */
    weft__gram_edge *edges; /* in the order of the states that they leave */
    size_t n_edges, edges_capacity;
    uint32_t *first; /* [n_states + 1] */
    size_t first_capacity;
    int too_many; /* states */
} language_product;

static int product_fail(language_product *p, weft_status status)
{
    if (status == WEFT_NO_MEMORY) weft__gram_fail(p->g, status, "no memory for a grammar");
    else p->too_many = 1;
    return 0;
}

/* The number of a tuple, which is made when it is new; -1 after a failure. */
static int32_t number_of(language_product *p, const int32_t *tuple)
{
    size_t n = (p->n_parts + 1) * sizeof *tuple, count = p->tuples.n;
    int32_t known = weft__strings_find(&p->tuples, (const char *)tuple, n);
    if (known >= 0) return known;
    if (count >= WEFT__GRAM_MAX_PRODUCT || ++p->g->n_product > WEFT__GRAM_ALL_PRODUCTS)
        return product_fail(p, WEFT_LIMIT) - 1;
    if (!weft__strings_add(&p->tuples, (const char *)tuple, n, 1)) return product_fail(p, WEFT_NO_MEMORY) - 1;
    return (int32_t)count;
}

/* Where `state` leads by `byte`; *last becomes the last byte from there on of which the same holds, if that is less. */
static int32_t step_part(const weft__gram_automaton *a, int32_t state, int byte, int *last)
{
    if (state == DEAD) return DEAD;
    const weft__gram_state *x = &a->states[state];
    uint32_t e = x[0].edge;
    while (e < x[1].edge && a->edges[e].hi < byte) e++;
    if (e == x[1].edge) return DEAD;
    if (a->edges[e].lo > byte) {
        if (a->edges[e].lo - 1 < *last) *last = a->edges[e].lo - 1;
        return DEAD;
    }
    if (a->edges[e].hi < *last) *last = a->edges[e].hi;
    return a->edges[e].to;
}

static int is_complete(const weft__gram_part *part, int32_t state)
{
    return state != DEAD && (part->language->states[state].flags & WEFT__GRAM_STATE_ACCEPT) != 0;
}

static int expand_tuple(language_product *p, size_t state)
{
    int32_t from[MAX_PARTS + 1], to[MAX_PARTS + 1];
    memcpy(from, weft__strings_data(&p->tuples, state), (p->n_parts + 1) * sizeof *from);
    for (int lo = 0, last; lo < 256; lo = last + 1) {
        int alive = 1;
        last = 255;
        for (size_t i = 0; i < p->n_parts; i++) {
            to[i] = step_part(p->parts[i].language, from[i], lo, &last);
            alive &= to[i] != DEAD || p->parts[i].lacked;
        }
        if (!alive) continue;
        to[p->n_parts] =
            p->most < 0 ? 0 : from[p->n_parts] + is_complete(&p->parts[p->n_parts - 1], to[p->n_parts - 1]);
        if (p->most >= 0 && to[p->n_parts] > p->most) continue;
        int32_t next = number_of(p, to);
        if (next < 0) return 0;
        if (!weft__grow(&p->edges, &p->edges_capacity, p->n_edges + 1, sizeof *p->edges))
            return product_fail(p, WEFT_NO_MEMORY);
        p->edges[p->n_edges++] = (weft__gram_edge){next, (uint8_t)lo, (uint8_t)last};
    }
    return 1;
}

static int expand_all(language_product *p)
{
    int32_t start[MAX_PARTS + 1];
    start[p->n_parts] = 0;
    for (size_t i = 0; i < p->n_parts; i++) start[i] = p->parts[i].language->starts[p->parts[i].language->root];
    if (number_of(p, start) < 0) return 0;
    for (size_t s = 0; s <= p->tuples.n; s++) {
        if (!weft__grow(&p->first, &p->first_capacity, s + 1, sizeof *p->first)) return product_fail(p, WEFT_NO_MEMORY);
        p->first[s] = (uint32_t)p->n_edges;
        if (s < p->tuples.n && !expand_tuple(p, s)) return 0;
    }
    return 1;
}

static int accepts(const language_product *p, size_t state)
{
    int32_t tuple[MAX_PARTS];
    memcpy(tuple, weft__strings_data(&p->tuples, state), p->n_parts * sizeof *tuple);
    for (size_t i = 0; i < p->n_parts; i++) {
        if (is_complete(&p->parts[i], tuple[i]) == p->parts[i].lacked) return 0;
    }
    return 1;
}

/* Marks the states from which some text ends: backwards from those that accept. */
static int mark_live(language_product *p, uint8_t *live)
{
    size_t n = p->tuples.n, n_todo = 0;
    uint32_t *at = weft__alloc_zero(n + 2, sizeof *at), *before = weft__alloc_array(p->n_edges, sizeof *before),
             *todo = weft__alloc_array(n, sizeof *todo);
    int ok = at && before && todo;
    for (size_t e = 0; ok && e < p->n_edges; e++) at[p->edges[e].to + 2]++;
    for (size_t s = 0; ok && s < n; s++) at[s + 2] += at[s + 1];
    for (uint32_t s = 0; ok && s < n; s++) {
        for (uint32_t e = p->first[s]; e < p->first[s + 1]; e++) before[at[p->edges[e].to + 1]++] = s;
        if ((live[s] = (uint8_t)accepts(p, s))) todo[n_todo++] = s;
    }
    while (n_todo) {
        uint32_t state = todo[--n_todo];
        for (uint32_t i = at[state]; i < at[state + 1]; i++) {
            if (live[before[i]]) continue;
            live[before[i]] = 1;
            todo[n_todo++] = before[i];
        }
    }
    weft__free(todo);
    weft__free(before);
    weft__free(at);
    return ok || product_fail(p, WEFT_NO_MEMORY);
}

/* The live states as an expression; -1 when the first is none, or after a failure. */
static int32_t emit_machine(language_product *p)
{
    size_t n = p->tuples.n;
    uint8_t *live = weft__alloc_zero(n, 1);
    int32_t node = -1;
    if (!live) return product_fail(p, WEFT_NO_MEMORY) - 1;
    if (mark_live(p, live) && live[0]) {
        for (size_t s = 0, kept; s < n; s++) {
            kept = p->first[s];
            for (uint32_t e = p->first[s]; e < p->first[s + 1]; e++)
                if (live[s] && live[p->edges[e].to]) p->edges[kept++] = p->edges[e];
            weft__gram_machine_state(p->g, live[s] && accepts(p, s), p->edges + p->first[s], kept - p->first[s]);
        }
        node = weft__gram_machine(p->g, n);
    }
    weft__free(live);
    return node;
}

static int32_t product_of(weft__gram *g, const weft__gram_part *parts, size_t n, int32_t most)
{
    language_product p = {.g = g, .parts = parts, .n_parts = n, .most = most};
    int32_t node = -1;
    if (weft__gram_failed(g)) return -1;
    if (n > MAX_PARTS) product_fail(&p, WEFT_LIMIT);
    else if (expand_all(&p)) node = emit_machine(&p);
    weft__free(p.first);
    weft__free(p.edges);
    weft__strings_free(&p.tuples);
    return p.too_many ? WEFT__GRAM_TOO_MANY : node;
}

int32_t weft__gram_common(weft__gram *g, const weft__gram_part *parts, size_t n)
{
    return product_of(g, parts, n, -1);
}

int32_t weft__gram_counted(weft__gram *g, const weft__gram_part *parts, size_t n,
                           const weft__gram_automaton *characters, uint32_t most)
{
    weft__gram_part all[MAX_PARTS];
    if (n >= MAX_PARTS || most > WEFT__GRAM_MAX_PRODUCT) return WEFT__GRAM_TOO_MANY;
    memcpy(all, parts, n * sizeof *all);
    all[n++] = (weft__gram_part){.language = characters};
    return product_of(g, all, n, (int32_t)most);
}
