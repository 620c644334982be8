// SPDX-License-Identifier: Apache-2.0
/* spans.c: finds the text that states take whatever it is (spans.h). Each state has one successor to which most of its
 * characters lead; so the automaton becomes a graph in which every state has one way on, and how far it goes is counted
 * from its end. */
#include "text/grammar/spans.h"

#include <string.h>

#include "base/alloc.h"

typedef struct spans {
    const weft__gram_automaton *a;
    weft__gram_span *out;
    int32_t *next;                   /* [n_states] where the classes lead; -1: nowhere */
    uint64_t starts[128], ends[128]; /* classes whose first, whose last byte is at most this one */
    int free_end;                    /* no rule calls the root: its end ends the text */
} spans;

int weft__gram_is_called(const weft__gram_automaton *a, int32_t rule)
{
    for (size_t i = 0; i < a->n_calls; i++)
        if (a->calls[i].rule == rule) return 1;
    return 0;
}

static void fill_classes(spans *s)
{
    unsigned char first, last;
    for (int byte = 0; byte < 128; byte++) {
        s->ends[byte] = s->starts[byte] = 0;
        for (int i = 0; weft__gram_class_bytes(i, &first, &last); i++) {
            if (last <= byte) s->ends[byte] |= (uint64_t)1 << i;
            if (first <= byte) s->starts[byte] |= (uint64_t)1 << i;
        }
    }
}

/* The classes that lie within lo..hi. */
static uint64_t classes_within(const spans *s, unsigned lo, unsigned hi)
{
    return lo > 127 ? 0 : s->ends[hi > 127 ? 127 : hi] & ~(lo ? s->starts[lo - 1] : 0);
}

/* May a span go through this state? */
static int is_open(const spans *s, int32_t state)
{
    const weft__gram_state *x = &s->a->states[state];
    return (x->flags & WEFT__GRAM_STATE_PLAIN) ||
           (s->free_end && x->rule == s->a->root && x[0].call == x[1].call && x[0].edge < x[1].edge);
}

static int is_deterministic(const weft__gram_automaton *a, int32_t state)
{
    for (uint32_t e = a->states[state].edge + 1; e < a->states[state + 1].edge; e++)
        if (a->edges[e].lo <= a->edges[e - 1].hi) return 0;
    return 1;
}

/* Where all bytes lo..hi lead; -1: not to one state, or through one that ends or calls. */
static int32_t lead(const spans *s, int32_t state, unsigned lo, unsigned hi, int last)
{
    const weft__gram_automaton *a = s->a;
    if (state < 0) return -1;
    for (uint32_t e = a->states[state].edge; e < a->states[state + 1].edge; e++) {
        const weft__gram_edge *edge = &a->edges[e];
        if (edge->lo > lo || edge->hi < hi) continue;
        return last || (is_deterministic(a, edge->to) && (a->states[edge->to].flags & WEFT__GRAM_STATE_PLAIN))
                   ? edge->to
                   : -1;
    }
    return -1;
}

/* Where every character beyond ASCII leads; -1: not to one state. */
static int32_t wide_target(const spans *s, int32_t state)
{
    static const struct {
        unsigned char lo, hi, from, to, left; /* first bytes, second bytes, bytes behind the first */
    } shapes[] = {{0xC2, 0xDF, 0x80, 0xBF, 1}, {0xE0, 0xE0, 0xA0, 0xBF, 2}, {0xE1, 0xEC, 0x80, 0xBF, 2},
                  {0xED, 0xED, 0x80, 0x9F, 2}, {0xEE, 0xEF, 0x80, 0xBF, 2}, {0xF0, 0xF0, 0x90, 0xBF, 3},
                  {0xF1, 0xF3, 0x80, 0xBF, 3}, {0xF4, 0xF4, 0x80, 0x8F, 3}};
    int32_t found = -1;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int32_t at = lead(s, state, shapes[i].lo, shapes[i].hi, 0);
        for (int left = shapes[i].left; left > 0; left--) {
            const int second = left == shapes[i].left;
            at = lead(s, at, second ? shapes[i].from : 0x80, second ? shapes[i].to : 0xBF, left == 1);
        }
        if (at < 0 || (i && at != found)) return -1;
        found = at;
    }
    return found;
}

/* The successor to which most classes lead, itself before others. */
static void choose(spans *s, int32_t state)
{
    enum { TARGETS = 6 };
    const weft__gram_automaton *a = s->a;
    uint64_t classes[TARGETS];
    int32_t targets[TARGETS];
    int n = 0, best = -1;
    if (!is_open(s, state) || !is_deterministic(a, state)) return;
    for (uint32_t e = a->states[state].edge; e < a->states[state + 1].edge; e++) {
        const weft__gram_edge *edge = &a->edges[e];
        const uint64_t more = classes_within(s, edge->lo, edge->hi);
        int k = 0;
        while (k < n && targets[k] != edge->to) k++;
        if (!more || k == TARGETS) continue;
        if (k == n) classes[n] = 0, targets[n++] = edge->to;
        classes[k] |= more;
    }
    for (int k = 0; k < n; k++)
        if (best < 0 || targets[k] == state ||
            (targets[best] != state && __builtin_popcountll(classes[k]) > __builtin_popcountll(classes[best])))
            best = k;
    if (best < 0) return;
    s->next[state] = targets[best];
    s->out[state].classes = classes[best];
    if (wide_target(s, state) == targets[best]) s->out[state].classes |= (uint64_t)1 << WEFT__GRAM_WIDE_CLASS;
}

/* The classes of which some character can be read, or begun. */
static uint64_t read_by(const spans *s, int32_t state)
{
    const weft__gram_automaton *a = s->a;
    uint64_t all = 0;
    for (uint32_t e = a->states[state].edge; e < a->states[state + 1].edge; e++) {
        const unsigned lo = a->edges[e].lo, hi = a->edges[e].hi;
        if (hi > 127) all |= (uint64_t)1 << WEFT__GRAM_WIDE_CLASS;
        if (lo < 128) all |= s->starts[hi > 127 ? 127 : hi] & ~(lo ? s->ends[lo - 1] : 0);
    }
    return all | (uint64_t)1 << WEFT__GRAM_BROKEN_CLASS;
}

/* How far it goes from `state`, when that is known of the one behind it. */
static void extend(spans *s, int32_t state)
{
    const int32_t next = s->next[state];
    weft__gram_span *x = &s->out[state];
    if (next < 0 || !is_open(s, next)) return;
    const weft__gram_span *y = &s->out[next];
    x->n = 1;
    if (next == state) {
        x->n = WEFT__GRAM_ANY_LENGTH;
    } else if (y->n && !(x->classes & ~y->classes)) {
        x->n = y->n >= WEFT__GRAM_ANY_LENGTH - 2 ? y->n : (uint8_t)(y->n + 1);
        x->ends = x->n > y->n && y->ends;
    } else {
        x->ends = s->a->states[next].call == s->a->states[next + 1].call && !(x->classes & y->reads);
    }
}

enum { NEW, ON_PATH, DONE };

/* A path that comes back to itself counts once around: less than there is. path, seen: [n_states]. */
static void measure_spans(spans *s, int32_t *path, uint8_t *seen)
{
    for (size_t i = 0; i < s->a->n_states; i++) {
        size_t n = 0;
        for (int32_t at = (int32_t)i; at >= 0 && seen[at] == NEW; at = s->next[at]) {
            seen[at] = ON_PATH;
            path[n++] = at;
        }
        while (n) {
            int32_t state = path[--n];
            extend(s, state);
            seen[state] = DONE;
        }
    }
}

weft__gram_span *weft__gram_spans_make(const weft__gram_automaton *a)
{
    spans s = {.a = a, .free_end = !weft__gram_is_called(a, a->root)};
    s.out = weft__alloc_zero(a->n_states, sizeof *s.out);
    s.next = weft__alloc_array(a->n_states, sizeof *s.next);
    int32_t *path = weft__alloc_array(a->n_states, sizeof *path);
    uint8_t *seen = weft__alloc_zero(a->n_states, 1);
    if (s.out && s.next && path && seen) {
        memset(s.next, 0xFF, a->n_states * sizeof *s.next);
        fill_classes(&s);
        for (size_t i = 0; i < a->n_states; i++) {
            s.out[i].reads = read_by(&s, (int32_t)i);
            choose(&s, (int32_t)i);
        }
        measure_spans(&s, path, seen);
    } else {
        weft__free(s.out);
        s.out = NULL;
    }
    weft__free(seen);
    weft__free(path);
    weft__free(s.next);
    return s.out;
}
