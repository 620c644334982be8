// SPDX-License-Identifier: Apache-2.0
/* backtrack.h: random regular expressions, and a search for them that tries one way after the other, as ECMA-262 tells
 * it: what tests hold searches against. It gives up after MAX_STEPS. One thread. */
#ifndef WEFT_TESTS_BACKTRACK_H
#define WEFT_TESTS_BACKTRACK_H

#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/text.h"

/* ---- expressions ---- */

enum { MAX_NODES = 64, MAX_TEXT = 4096, MAX_GROUP = 4 };
typedef enum node_kind { LETTER, ANY, PAIR, SEQ, ALT, REPEAT, GROUP } node_kind;

typedef struct node {
    node_kind kind;
    int items[3], n_items; /* of SEQ and ALT; one of REPEAT and GROUP */
    int letter, min, max, lazy, number;
    int nullable;
} node;

typedef struct expression {
    node nodes[MAX_NODES];
    int n, root, n_groups;
    int first, last; /* anchored there */
    char text[1024];
} expression;

static const char *const letters[] = {"a", "b", "c", "\xC3\xA9", "<"};

static inline int make_node(expression *x, weft__rng *rng, int depth);

static inline int add(expression *x, node made)
{
    x->nodes[x->n] = made;
    return x->n++;
}

static inline int make_list(expression *x, weft__rng *rng, int depth, node_kind kind)
{
    node made = {.kind = kind, .nullable = kind == SEQ, .n_items = 2 + (int)weft__rng_below(rng, 2)};
    for (int i = 0; i < made.n_items; i++) {
        made.items[i] = make_node(x, rng, depth - 1);
        if (kind == SEQ) made.nullable &= x->nodes[made.items[i]].nullable;
        else made.nullable |= x->nodes[made.items[i]].nullable;
    }
    return add(x, made);
}

static inline int make_repeat(expression *x, weft__rng *rng, int depth)
{
    static const int bounds[][2] = {{0, 1}, {0, 99}, {1, 99}, {2, 3}, {0, 2}};
    int item = make_node(x, rng, depth - 1);
    if (x->nodes[item].nullable) return item; /* readers differ about loops without text */
    const int *b = bounds[weft__rng_below(rng, 5)];
    return add(x, (node){.kind = REPEAT,
                         .items = {item},
                         .n_items = 1,
                         .min = b[0],
                         .max = b[1],
                         .lazy = (int)weft__rng_below(rng, 2),
                         .nullable = b[0] == 0});
}

static inline int make_node(expression *x, weft__rng *rng, int depth)
{
    uint64_t kind = x->n > MAX_NODES - 24 || depth == 0 ? 0 : weft__rng_below(rng, 8);
    if (kind <= 2) {
        node_kind leaf = weft__rng_below(rng, 6) ? LETTER : weft__rng_below(rng, 2) ? ANY : PAIR;
        return add(x, (node){.kind = leaf, .letter = (int)weft__rng_below(rng, 4)});
    }
    if (kind == 3) return make_list(x, rng, depth, ALT);
    if (kind <= 5) return make_list(x, rng, depth, SEQ);
    if (kind == 6) return make_repeat(x, rng, depth);
    if (x->n_groups == MAX_GROUP) return make_list(x, rng, depth, SEQ);
    int number = ++x->n_groups, item = make_node(x, rng, depth - 1); /* numbered by where they open */
    return add(
        x, (node){.kind = GROUP, .items = {item}, .n_items = 1, .number = number, .nullable = x->nodes[item].nullable});
}

/* In the spelling of expressions. Items of lists are made in order, so that groups open in the order of their
 * numbers. */
static inline void spell(const expression *x, int at, char *out)
{
    const node *n = &x->nodes[at];
    const char *more = n->lazy ? "?" : "";
    switch (n->kind) {
    case LETTER: strcat(out, letters[n->letter]); return;
    case ANY: strcat(out, "[\\s\\S]"); return;
    case PAIR: strcat(out, "[^b\xC3\xA9]"); return;
    case GROUP:
        strcat(out, "(");
        spell(x, n->items[0], out);
        strcat(out, ")");
        return;
    case REPEAT:
        strcat(out, "(?:");
        spell(x, n->items[0], out);
        if (n->max == 99) sprintf(out + strlen(out), ")%s%s", n->min ? "+" : "*", more);
        else sprintf(out + strlen(out), "){%d,%d}%s", n->min, n->max, more);
        return;
    default:
        strcat(out, "(?:");
        for (int i = 0; i < n->n_items; i++) {
            if (i && n->kind == ALT) strcat(out, "|");
            spell(x, n->items[i], out);
        }
        strcat(out, ")");
    }
}

static inline void make_expression(expression *x, weft__rng *rng)
{
    do {
        memset(x, 0, sizeof *x);
        x->root = make_node(x, rng, 4);
        x->first = weft__rng_below(rng, 4) == 0;
        x->last = weft__rng_below(rng, 4) == 0;
        if (x->first) strcat(x->text, "^");
        spell(x, x->root, x->text);
        if (x->last) strcat(x->text, "$");
    } while (x->nodes[x->root].nullable || strlen(x->text) > 300);
}

/* ---- a search that backtracks ---- */

/* A text as expressions see it: control tokens are their spelling. */
typedef struct seen {
    char s[MAX_TEXT];
    size_t n, raw[MAX_TEXT]; /* where each byte stands; that of a control token's first: where the token does */
    char inside[MAX_TEXT];   /* within a control token: nothing begins */
} seen;

static inline void see(seen *t, const char *s, size_t n)
{
    int within = 0, first = 0;
    t->n = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\xFF') {
            within = first = !within;
            continue;
        }
        t->s[t->n] = s[i];
        t->raw[t->n] = first ? i - 1 : i;
        t->inside[t->n++] = (char)(within && !first);
        first = 0;
    }
}

typedef struct attempt {
    const expression *x;
    const seen *t;
    size_t end;                   /* the match ends here */
    size_t groups[MAX_GROUP + 1]; /* where each begins that has text; SIZE_MAX: none */
} attempt;

enum { MAX_STEPS = 100000 };
static long steps; /* of the last search; MAX_STEPS: it gave up */

/* What remains to be matched, innermost first. */
typedef struct todo {
    int node, times; /* of REPEAT: how many were there; of a group's end: -1 */
    size_t from;
    const struct todo *then;
} todo;

static inline int match(attempt *a, const todo *what, size_t at);

static inline int match_class(const attempt *a, const node *n, size_t at, size_t *length)
{
    uint32_t cp;
    int bad = 0;
    if (at >= a->end) return 0;
    *length = weft__utf8_decode(a->t->s + at, a->end - at, &cp, &bad);
    if (bad) return 0;
    if (n->kind == LETTER)
        return *length == strlen(letters[n->letter]) && !memcmp(a->t->s + at, letters[n->letter], *length);
    return n->kind == ANY || (cp != 'b' && cp != 0xE9);
}

static inline int match_repeat(attempt *a, const node *n, const todo *what, size_t at)
{
    const todo again = {what->node, what->times + 1, 0, what->then}, item = {n->items[0], 0, 0, &again};
    int may_stop = what->times >= n->min, may_go_on = what->times < n->max;
    if (n->lazy && may_stop && match(a, what->then, at)) return 1;
    if (may_go_on && match(a, &item, at)) return 1;
    return !n->lazy && may_stop && match(a, what->then, at);
}

static inline int match(attempt *a, const todo *what, size_t at)
{
    if (!what) return at == a->end;
    const node *n = &a->x->nodes[what->node];
    size_t length;
    if (steps == MAX_STEPS) return 0;
    steps++;
    if (n->kind == GROUP) {
        const todo close = {what->node, -1, at, what->then}, item = {n->items[0], 0, 0, &close};
        if (what->times == 0) return match(a, &item, at);
        size_t before = a->groups[n->number];
        if (at > what->from) a->groups[n->number] = what->from;
        if (match(a, what->then, at)) return 1;
        a->groups[n->number] = before;
        return 0;
    }
    if (n->kind == REPEAT) return match_repeat(a, n, what, at);
    if (n->kind == ALT) {
        for (int i = 0; i < n->n_items; i++)
            if (match(a, &(todo){n->items[i], 0, 0, what->then}, at)) return 1;
        return 0;
    }
    if (n->kind == SEQ) {
        const todo third = {n->n_items > 2 ? n->items[2] : 0, 0, 0, what->then};
        const todo second = {n->items[1], 0, 0, n->n_items > 2 ? &third : what->then};
        return match(a, &(todo){n->items[0], 0, 0, &second}, at);
    }
    return match_class(a, n, at, &length) && match(a, what->then, at + length);
}

/* 1: the expression matches bytes [from, end) of the text; *group: where what it is about begins. */
static inline int matches(const expression *x, const seen *t, size_t from, size_t end, size_t *begin)
{
    attempt a = {.x = x, .t = t, .end = end};
    memset(a.groups, 0xFF, sizeof a.groups);
    if (steps < MAX_STEPS) steps = 0;
    *begin = t->raw[from];
    if (!match(&a, &(todo){x->root, 0, 0, NULL}, from)) return 0;
    for (int i = MAX_GROUP; i > 0; i--)
        if (a.groups[i] != SIZE_MAX) *begin = t->raw[a.groups[i]];
    return 1;
}

#endif
