// SPDX-License-Identifier: Apache-2.0
/* check.c: what a grammar must be before it is compiled: all rules defined, each fulfilled by some finite text, none
 * left-recursive. Each question takes time linear in the size of the grammar. */
#include <string.h>

#include "base/alloc.h"
#include "text/grammar/parts.h"

static weft_status check_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
}

static weft_status check_defined(const weft__gram *g, weft_error *err)
{
    char subject[WEFT__GRAM_LABEL];
    for (size_t i = 0; i < g->n_rules; i++)
        if (g->rules[i].body < 0)
            return weft_fail(err, WEFT_ARGUMENT, "%s is used but not defined",
                             weft__gram_subject(weft__gram_name_of(g, (int32_t)i), subject));
    return WEFT_OK;
}

/* Which nodes have a property that spreads from parts to wholes: a sequence has it when all its parts do, a choice when
 * one does, a reference when the rule does. Beginning with the leaves that have it, each node is visited once and each
 * part counted once (the unit propagation of Dowling and Gallier 1984). */
typedef struct spread {
    const weft__gram *g;
    uint8_t *has;      /* [n_nodes] */
    uint32_t *missing; /* [n_nodes] parts of a sequence that do not have it yet */
    int32_t *todo;
    size_t n_todo;
} spread;

static void mark(spread *s, int32_t node)
{
    if (s->has[node]) return;
    s->has[node] = 1;
    s->todo[s->n_todo++] = node;
}

/* Leaves: the empty text always has it, others when `leaves`. */
static void mark_first(spread *s, int leaves)
{
    const weft__gram *g = s->g;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const weft__gram_node *x = &g->nodes[i];
        s->missing[i] = x->kind == WEFT__GRAM_SEQ ? x->b : 1;
        if ((x->kind == WEFT__GRAM_TEXT && (leaves || x->b == 0)) || (x->kind == WEFT__GRAM_CLASS && leaves) ||
            (x->kind == WEFT__GRAM_SEQ && x->b == 0) || (x->kind == WEFT__GRAM_REPEAT && x->a == 0) ||
            (x->kind == WEFT__GRAM_MACHINE && (leaves || g->machine_states[x->a].accept)) ||
            x->kind == WEFT__GRAM_WITHOUT)
            mark(s, (int32_t)i);
    }
}

static weft_status spread_from(const weft__gram *g, int leaves, uint8_t *has, weft_error *err)
{
    spread s = {g, has, weft__alloc_array(g->n_nodes, sizeof *s.missing), weft__alloc_array(g->n_nodes, sizeof *s.todo),
                0};
    weft_status st = s.missing && s.todo ? WEFT_OK : check_no_memory(err);
    memset(has, 0, g->n_nodes);
    if (!st) mark_first(&s, leaves);
    while (!st && s.n_todo) {
        int32_t parent = g->nodes[s.todo[--s.n_todo]].parent;
        if (parent >= 0 && --s.missing[parent] == 0) mark(&s, parent);
        for (uint32_t r = parent <= -2 ? g->rules[-2 - parent].refs : WEFT__GRAM_NONE; r != WEFT__GRAM_NONE;
             r = g->nodes[r].b)
            mark(&s, (int32_t)r);
    }
    weft__free(s.todo);
    weft__free(s.missing);
    return st;
}

/* Of rules that lack what `has` says, and so each need another such rule, the first that needs itself in the end, from
 * `rule` on. */
static int32_t needs_itself(const weft__gram *g, const uint8_t *has, int32_t rule)
{
    int32_t *needs = weft__alloc_array(g->n_rules, sizeof *needs);
    if (!needs) return rule;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const int32_t around =
            g->nodes[i].kind == WEFT__GRAM_REF && !has[i] ? weft__gram_rule_around(g, (int32_t)i) : -1;
        if (around >= 0) needs[around] = (int32_t)g->nodes[i].a;
    }
    for (size_t i = 0; i < g->n_rules; i++) rule = needs[rule]; /* in a circle by now */
    int32_t first = rule;
    for (int32_t at = needs[rule]; at != rule; at = needs[at]) first = at < first ? at : first;
    weft__free(needs);
    return first;
}

static weft_status no_finite_text(const weft__gram *g, int32_t rule, weft_error *err)
{
    char subject[WEFT__GRAM_LABEL];
    const weft__gram_rule_name name = weft__gram_name_of(g, rule);
    weft__gram_subject(name, subject);
    if (weft__gram_is_of_schema(name))
        return weft_fail(err, WEFT_ARGUMENT, "%s no finite value fits: each has to hold another one for this", subject);
    return weft_fail(err, WEFT_ARGUMENT, "%s matches no finite text: each way through it needs the rule again",
                     subject);
}

static weft_status check_productive(const weft__gram *g, uint8_t *has, weft_error *err)
{
    weft_status st = spread_from(g, 1, has, err);
    for (size_t i = 0; !st && i < g->n_rules; i++)
        if (!has[g->rules[i].body]) st = no_finite_text(g, needs_itself(g, has, (int32_t)i), err);
    return st;
}

/* ---- left recursion ---- */

/* The rules that may come first in a rule before any byte, one after the other. */
typedef struct left {
    const weft__gram *g;
    uint32_t *items;
    size_t n, capacity;
    int failed;
} left;

static void first_rules(left *l, int32_t node)
{
    const weft__gram_node *x = &l->g->nodes[node];
    if (x->kind == WEFT__GRAM_REF) {
        if (weft__grow(&l->items, &l->capacity, l->n + 1, sizeof *l->items)) l->items[l->n++] = x->a;
        else l->failed = 1;
    } else if (x->kind == WEFT__GRAM_REPEAT || x->kind == WEFT__GRAM_MARK) {
        if (x->b > 0) first_rules(l, x->item);
    } else if (x->kind == WEFT__GRAM_SEQ || x->kind == WEFT__GRAM_ALT) {
        for (uint32_t i = 0; i < x->b; i++) {
            int32_t item = l->g->items[x->a + i];
            first_rules(l, item);
            if (x->kind == WEFT__GRAM_SEQ && !l->g->nodes[item].nullable) break;
        }
    }
}

/* A step of the depth-first search: rule, and how many of its first rules were followed. */
typedef struct step {
    uint32_t rule, followed;
} step;

static weft_status left_recursive(const weft__gram *g, const step *path, size_t n, uint32_t again, weft_error *err)
{
    char subject[WEFT__GRAM_LABEL], other[WEFT__GRAM_LABEL];
    const weft__gram_rule_name name = weft__gram_name_of(g, (int32_t)again);
    weft__gram_subject(name, subject);
    weft__gram_label(weft__gram_name_of(g, (int32_t)path[n - 1].rule), other);
    if (weft__gram_is_of_schema(name))
        return weft_fail(err, WEFT_ARGUMENT, "%s it refers to itself before anything is written", subject);
    if (path[n - 1].rule == again)
        return weft_fail(err, WEFT_ARGUMENT,
                         "%s is left-recursive: it may begin with itself; put the recursion last, or use '*'", subject);
    return weft_fail(err, WEFT_ARGUMENT, "%s is left-recursive through %s: it may begin with itself", subject, other);
}

/* Looks for a cycle among the rules that may come first. at[r] is where the first rules of r begin in l. */
static weft_status find_cycle(const weft__gram *g, const left *l, const uint32_t *at, uint8_t *seen, step *path,
                              weft_error *err)
{
    enum { OPEN = 1, DONE = 2 };
    for (uint32_t r = 0; r < g->n_rules; r++) {
        size_t n = 0;
        if (seen[r]) continue;
        seen[r] = OPEN;
        path[n++] = (step){r, 0};
        while (n) {
            step *top = &path[n - 1];
            if (at[top->rule] + top->followed == at[top->rule + 1]) {
                seen[top->rule] = DONE;
                n--;
                continue;
            }
            uint32_t next = l->items[at[top->rule] + top->followed++];
            if (seen[next] == OPEN) return left_recursive(g, path, n, next, err);
            if (seen[next]) continue;
            seen[next] = OPEN;
            path[n++] = (step){next, 0};
        }
    }
    return WEFT_OK;
}

static weft_status check_left_recursion(const weft__gram *g, weft_error *err)
{
    left l = {.g = g};
    uint32_t *at = weft__alloc_array(g->n_rules + 1, sizeof *at);
    uint8_t *seen = weft__alloc_zero(g->n_rules + 1, 1);
    step *path = weft__alloc_array(g->n_rules + 1, sizeof *path);
    weft_status st = at && seen && path ? WEFT_OK : check_no_memory(err);
    for (size_t i = 0; !st && i < g->n_rules; i++) {
        at[i] = (uint32_t)l.n;
        first_rules(&l, g->rules[i].body);
        if (l.failed) st = check_no_memory(err);
    }
    if (!st) {
        at[g->n_rules] = (uint32_t)l.n;
        st = find_cycle(g, &l, at, seen, path, err);
    }
    weft__free(path);
    weft__free(seen);
    weft__free(at);
    weft__free(l.items);
    return st;
}

weft_status weft__gram_check(weft__gram *g, weft_error *err)
{
    uint8_t *has = weft__alloc(g->n_nodes);
    if (!has) return check_no_memory(err);
    weft_status st = check_defined(g, err);
    if (!st) st = check_productive(g, has, err);
    if (!st) st = spread_from(g, 0, has, err);
    for (size_t i = 0; !st && i < g->n_nodes; i++) g->nodes[i].nullable = has[i];
    if (!st) st = check_left_recursion(g, err);
    weft__free(has);
    return st;
}
