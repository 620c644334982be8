// SPDX-License-Identifier: Apache-2.0
/* nfa.c: one rule as an automaton with empty edges (Thompson 1968), characters spelled in UTF-8.
 *
 * Each expression is built from a given state and returns the state behind it. Invariant: no expression adds an edge
 * into the state it is built from, so that alternatives may share it. */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "text/grammar/parts.h"

typedef struct build {
    const weft__gram *g;
    const weft__gram_plan *plan;
    weft__gram_nfa *nfa;
    int lazy; /* the repetition that comes next is */
    weft_status status;
    weft_error *err;
} build;

void weft__gram_nfa_free(weft__gram_nfa *nfa)
{
    weft__free(nfa->edges);
    weft__free(nfa->first);
    *nfa = (weft__gram_nfa){0};
}

static int32_t nfa_fail(build *b, int no_memory)
{
    if (b->status) return 0;
    b->status = no_memory ? weft_fail(b->err, WEFT_NO_MEMORY, "no memory for a grammar")
                          : weft_fail(b->err, WEFT_LIMIT, "more than %d states with repetitions written out",
                                      WEFT__GRAM_MAX_STATES);
    return 0;
}

/* After a failure state 0 is handed out, and nothing is added. */
static int32_t new_state(build *b)
{
    weft__gram_nfa *a = b->nfa;
    if (b->status) return 0;
    if (a->n >= WEFT__GRAM_MAX_STATES) return nfa_fail(b, 0);
    if (!weft__grow(&a->first, &a->capacity, a->n + 1, sizeof *a->first)) return nfa_fail(b, 1);
    a->first[a->n] = -1;
    return (int32_t)a->n++;
}

static void add_edge(build *b, int32_t from, weft__gram_nfa_edge edge)
{
    weft__gram_nfa *a = b->nfa;
    if (b->status) return;
    if (a->n_edges >= WEFT__GRAM_MAX_EDGES) {
        nfa_fail(b, 0);
        return;
    }
    if (!weft__grow(&a->edges, &a->edges_capacity, a->n_edges + 1, sizeof *a->edges)) {
        nfa_fail(b, 1);
        return;
    }
    edge.next = a->first[from];
    a->first[from] = (int32_t)a->n_edges;
    a->edges[a->n_edges++] = edge;
}

static void add_empty(build *b, int32_t from, int32_t to)
{
    add_edge(b, from, (weft__gram_nfa_edge){.to = to, .kind = WEFT__GRAM_NFA_EMPTY});
}

static void add_bytes(build *b, int32_t from, uint32_t lo, uint32_t hi, int32_t to)
{
    add_edge(b, from,
             (weft__gram_nfa_edge){.to = to, .kind = WEFT__GRAM_NFA_BYTE, .lo = (uint8_t)lo, .hi = (uint8_t)hi});
}

static int32_t build_text(build *b, const weft__gram_node *x, int32_t from)
{
    for (uint32_t i = 0; i < x->b; i++) {
        unsigned char c = (unsigned char)b->g->bytes[x->a + i];
        int32_t to = new_state(b);
        add_bytes(b, from, c, c, to);
        from = to;
    }
    return from;
}

/* ---- classes ---- */

/* tail[k]: the state from which any k continuation bytes lead to the end; made when first needed. */
typedef struct tails {
    int32_t at[4];
} tails;

static int32_t tail(build *b, tails *t, int k)
{
    for (int i = 1; i <= k; i++) {
        if (t->at[i] >= 0) continue;
        t->at[i] = new_state(b);
        add_bytes(b, t->at[i], 0x80, 0xBF, t->at[i - 1]);
    }
    return t->at[k];
}

/* Characters lo..hi, of which `left` bytes of 6 bits are to come behind this one, whose leading bits are `mark`. */
static void build_range(build *b, tails *t, int32_t from, uint32_t lo, uint32_t hi, int left, uint32_t mark)
{
    int shift = 6 * left;
    uint32_t rest = ((uint32_t)1 << shift) - 1, first = lo >> shift, last = hi >> shift;
    if (first == last && ((lo & rest) != 0 || (hi & rest) != rest)) {
        int32_t mid = new_state(b);
        add_bytes(b, from, mark | first, mark | first, mid);
        build_range(b, t, mid, lo & rest, hi & rest, left - 1, 0x80);
        return;
    }
    if (lo & rest) { /* the part up to the next whole byte */
        build_range(b, t, from, lo, lo | rest, left, mark);
        first++;
    }
    if ((hi & rest) != rest) {
        build_range(b, t, from, hi & ~rest, hi, left, mark);
        last--;
    }
    if (first <= last) add_bytes(b, from, mark | first, mark | last, tail(b, t, left));
}

static int32_t build_class(build *b, const weft__gram_node *x, int32_t from)
{
    static const struct {
        uint32_t lo, hi, mark;
    } lengths[4] = {{0, 0x7F, 0}, {0x80, 0x7FF, 0xC0}, {0x800, 0xFFFF, 0xE0}, {0x10000, 0x10FFFF, 0xF0}};
    int32_t end = new_state(b);
    tails t = {{end, -1, -1, -1}};
    for (uint32_t i = 0; i < x->b; i++) {
        weft__gram_range r = b->g->ranges[x->a + i];
        for (int n = 0; n < 4; n++) {
            uint32_t lo = r.lo > lengths[n].lo ? r.lo : lengths[n].lo, hi = r.hi < lengths[n].hi ? r.hi : lengths[n].hi;
            if (lo <= hi) build_range(b, &t, from, lo, hi, n, lengths[n].mark);
        }
    }
    return end;
}

/* ---- texts without a text ---- */

/* How many letters of the first of the word end the text that is `at` of them and then `letter` (Knuth, Morris and
 * Pratt 1977). */
static size_t go_back(const uint32_t *word, size_t at, uint32_t letter)
{
    for (size_t n = at + 1; n > 0; n--) {
        if (word[n - 1] != letter) continue;
        size_t i = 0;
        while (i + 1 < n && word[i] == word[at + 1 - n + i]) i++;
        if (i + 1 == n) return n;
    }
    return 0;
}

static int32_t build_without(build *b, const weft__gram_node *x, int32_t from)
{
    uint32_t word[64];
    int32_t states[64] = {0}, end = new_state(b);
    size_t n = 0;
    int bad = 0;
    for (size_t at = 0; at < x->b; n++) at += weft__utf8_decode(b->g->bytes + x->a + at, x->b - at, &word[n], &bad);
    for (size_t i = 0; i < n; i++) {
        states[i] = new_state(b);
        add_empty(b, states[i], end);
    }
    add_empty(b, from, states[0]);
    int32_t others = new_state(b); /* of which all states are part */
    add_empty(b, build_class(b, &b->g->nodes[x->item], others), states[0]);
    for (size_t i = 0; i < n && !b->status; i++) {
        add_empty(b, states[i], others);
        for (size_t k = 0; k < n; k++) {
            char spelled[4];
            size_t to = go_back(word, i, word[k]), known = 0;
            while (word[known] != word[k]) known++;
            if (known < k || to == n) continue; /* the same letter again; the word */
            int32_t at = states[i];
            size_t length = weft__utf8_encode(word[k], spelled);
            for (size_t p = 0; p < length; p++) {
                int32_t next = new_state(b);
                add_bytes(b, at, (unsigned char)spelled[p], (unsigned char)spelled[p], next);
                at = next;
            }
            add_empty(b, at, states[to]);
        }
    }
    return end;
}

/* ---- the others ---- */

static int32_t build_machine(build *b, const weft__gram_node *x, int32_t from)
{
    const weft__gram *g = b->g;
    int32_t end = new_state(b), first = new_state(b);
    for (uint32_t i = 1; i < x->b; i++) new_state(b);
    add_empty(b, from, first);
    for (uint32_t i = 0; i < x->b && !b->status; i++) {
        for (uint32_t e = g->machine_states[x->a + i].edge; e < weft__gram_machine_end(g, x->a + i); e++)
            add_bytes(b, first + (int32_t)i, g->machine_edges[e].lo, g->machine_edges[e].hi,
                      first + g->machine_edges[e].to);
        if (g->machine_states[x->a + i].accept) add_empty(b, first + (int32_t)i, end);
    }
    return end;
}

static int32_t build_node(build *b, int32_t node, int32_t from);

/* What may be repeated once more, or not: the way that is preferred comes first. */
static int32_t build_repeat(build *b, const weft__gram_node *x, int32_t from)
{
    const int lazy = b->lazy;
    b->lazy = 0;
    uint32_t copies = x->b == UINT32_MAX && x->a > 0 ? x->a - 1 : x->a;
    for (uint32_t i = 0; i < copies && !b->status; i++) from = build_node(b, x->item, from);
    if (x->b == UINT32_MAX) {
        int32_t loop = new_state(b), end = new_state(b);
        add_empty(b, from, loop);
        if (lazy && !x->a) add_empty(b, loop, end);
        int32_t last = build_node(b, x->item, loop);
        if (lazy && x->a) add_empty(b, last, end);
        add_empty(b, last, loop);
        if (!lazy) add_empty(b, x->a ? last : loop, end);
        return end;
    }
    if (x->b == x->a) return from;
    int32_t end = new_state(b);
    for (uint32_t i = x->a; i < x->b && !b->status; i++) {
        if (lazy) add_empty(b, from, end);
        int32_t next = build_node(b, x->item, from);
        if (!lazy) add_empty(b, from, end);
        from = next;
    }
    add_empty(b, from, end);
    return end;
}

static int32_t build_ref(build *b, const weft__gram_node *x, int32_t from)
{
    if (!b->plan->called[x->a]) return build_node(b, b->g->rules[x->a].body, from);
    int32_t to = new_state(b);
    add_edge(b, from, (weft__gram_nfa_edge){.to = to, .kind = WEFT__GRAM_NFA_CALL, .rule = (int32_t)x->a});
    if (x->nullable) add_empty(b, from, to); /* so that a call always consumes something */
    return to;
}

static int32_t add_mark(build *b, int32_t from, uint32_t mark, int ends)
{
    int32_t to = new_state(b);
    add_edge(b, from,
             (weft__gram_nfa_edge){.to = to, .kind = WEFT__GRAM_NFA_MARK, .rule = (int32_t)mark, .hi = ends != 0});
    return to;
}

static int32_t build_mark(build *b, const weft__gram_node *x, int32_t from)
{
    b->lazy = x->a == WEFT__GRAM_MARK_LAZY;
    if (b->lazy) return build_node(b, x->item, from);
    if (x->a != WEFT__GRAM_MARK_LAST) from = add_mark(b, from, x->a, 0);
    from = build_node(b, x->item, from);
    return x->a == WEFT__GRAM_MARK_FIRST ? from : add_mark(b, from, x->a, 1);
}

static int32_t build_node(build *b, int32_t node, int32_t from)
{
    const weft__gram_node *x = &b->g->nodes[node];
    int32_t end;
    if (b->status) return 0;
    switch ((weft__gram_kind)x->kind) {
    case WEFT__GRAM_TEXT: return build_text(b, x, from);
    case WEFT__GRAM_CLASS: return build_class(b, x, from);
    case WEFT__GRAM_WITHOUT: return build_without(b, x, from);
    case WEFT__GRAM_REPEAT: return build_repeat(b, x, from);
    case WEFT__GRAM_REF: return build_ref(b, x, from);
    case WEFT__GRAM_MACHINE: return build_machine(b, x, from);
    case WEFT__GRAM_MARK: return build_mark(b, x, from);
    case WEFT__GRAM_SEQ:
        for (uint32_t i = 0; i < x->b; i++) from = build_node(b, b->g->items[x->a + i], from);
        return from;
    case WEFT__GRAM_ALT:
        end = new_state(b);
        for (uint32_t i = 0; i < x->b; i++) add_empty(b, build_node(b, b->g->items[x->a + i], from), end);
        return end;
    }
    return from;
}

weft_status weft__gram_nfa_build(const weft__gram *g, const weft__gram_plan *plan, int32_t rule, weft__gram_nfa *nfa,
                                 weft_error *err)
{
    build b = {g, plan, nfa, 0, WEFT_OK, err};
    nfa->n = nfa->n_edges = 0;
    int32_t start = new_state(&b);
    nfa->end = build_node(&b, g->rules[rule].body, start);
    return b.status;
}
