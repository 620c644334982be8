// SPDX-License-Identifier: Apache-2.0
/* plan.c: which rules are inlined where they are mentioned, and which are called with a stack.
 *
 * A rule is called when a cycle of mentions comes back to it in a depth-first search from the root, or when copies of
 * it would be too large. The more is inlined, the more a mask knows without looking at the stack; so the bound on
 * copies is lowered only as far as the whole stays small. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "text/grammar/parts.h"

enum {
    COMFORTABLE = 3 << 15, /* states of the whole that inlining may lead to */
    MOST = 1 << 18,        /* the same, before even characters are called: there are fewer when it is deterministic */
    MAX_NESTING = 1024     /* expressions within expressions, inlined ones counted */
};

/* About how many states a class needs: bytes of characters beyond ASCII. */
static uint64_t class_size(const weft__gram *g, const weft__gram_node *x)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < x->b; i++) n += g->ranges[x->a + i].hi >= 0x80 ? 4 : 0;
    return n;
}

typedef struct measure {
    const weft__gram *g;
    const weft__gram_plan *plan;
    int32_t large;    /* a repetition that is too large, or -1 */
    uint16_t nesting; /* of rules that were inlined, at most */
} measure;

/* States of an expression, with rules that are not called inlined; stops growing beyond the limit. */
static uint64_t measure_node(measure *m, int32_t node)
{
    const weft__gram_node *x = &m->g->nodes[node];
    uint64_t n = 0;
    switch ((weft__gram_kind)x->kind) {
    case WEFT__GRAM_TEXT: return x->b;
    case WEFT__GRAM_MACHINE: return x->b;
    case WEFT__GRAM_CLASS: return class_size(m->g, x);
    case WEFT__GRAM_MARK: return measure_node(m, x->item);
    case WEFT__GRAM_WITHOUT: return (uint64_t)x->b * 2 + class_size(m->g, &m->g->nodes[x->item]);
    case WEFT__GRAM_SEQ:
    case WEFT__GRAM_ALT:
        for (uint32_t i = 0; i < x->b; i++) n += measure_node(m, m->g->items[x->a + i]);
        n++;
        break;
    case WEFT__GRAM_REPEAT:
        n = measure_node(m, x->item);
        n = (n + 1) * (x->b != UINT32_MAX ? (uint64_t)x->b : x->a ? (uint64_t)x->a : 1) + 1;
        if (n > WEFT__GRAM_MAX_STATES && m->large < 0) m->large = node;
        break;
    case WEFT__GRAM_REF:
        if (m->plan->called[x->a]) return 1;
        if (m->plan->nesting[x->a] > m->nesting) m->nesting = m->plan->nesting[x->a];
        return m->plan->size[x->a];
    }
    return n < WEFT__GRAM_MAX_STATES + 1 ? n : WEFT__GRAM_MAX_STATES + 1;
}

/* ---- the order of rules ---- */

typedef struct order {
    uint32_t *refs, *at; /* rules mentioned by rule r: refs[at[r]..at[r+1]) */
    uint8_t *recursive;  /* [n_rules] */
    uint32_t *done;      /* [n_done] rules that can be reached, those mentioned first unless a cycle prevents it */
    size_t n_done;
} order;

static void order_free(order *o)
{
    weft__free(o->done);
    weft__free(o->recursive);
    weft__free(o->at);
    weft__free(o->refs);
}

int32_t weft__gram_rule_around(const weft__gram *g, int32_t node)
{
    while (node >= 0) node = g->nodes[node].parent;
    return -2 - node;
}

/* Sorts all references by the rule that they stand in. */
static int collect_refs(const weft__gram *g, order *o)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++) n += g->nodes[i].kind == WEFT__GRAM_REF;
    if (!(o->refs = weft__alloc_array(n, sizeof *o->refs)) ||
        !(o->at = weft__alloc_zero(g->n_rules + 2, sizeof *o->at)))
        return 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < g->n_nodes; i++) {
            int32_t rule = g->nodes[i].kind == WEFT__GRAM_REF ? weft__gram_rule_around(g, (int32_t)i) : -1;
            if (rule < 0) continue;
            if (pass) o->refs[o->at[rule + 1]++] = g->nodes[i].a;
            else o->at[rule + 2]++;
        }
        for (size_t r = 0; !pass && r < g->n_rules; r++) o->at[r + 2] += o->at[r + 1];
    }
    return 1;
}

enum { OPEN = 1, DONE = 2 };
typedef struct plan_frame {
    uint32_t rule, next;
} plan_frame;

/* Depth first from one rule; rules that are called in any case are left alone. */
static void visit_from(const weft__gram *g, uint32_t from, order *o, uint8_t *seen, plan_frame *path)
{
    size_t n = 0;
    if (seen[from]) return;
    path[n++] = (plan_frame){from, o->at[from]};
    seen[from] = OPEN;
    while (n) {
        plan_frame *top = &path[n - 1];
        if (top->next == o->at[top->rule + 1]) {
            seen[top->rule] = DONE;
            o->done[o->n_done++] = top->rule;
            n--;
            continue;
        }
        uint32_t rule = o->refs[top->next++];
        if (g->rules[rule].call) continue;
        if (seen[rule] == OPEN) o->recursive[rule] = 1;
        if (seen[rule]) continue;
        seen[rule] = OPEN;
        path[n++] = (plan_frame){rule, o->at[rule]};
    }
}

static int visit_rules(const weft__gram *g, int32_t root, order *o)
{
    uint8_t *seen = weft__alloc_zero(g->n_rules, 1);
    plan_frame *path = weft__alloc_array(g->n_rules, sizeof *path);
    o->recursive = weft__alloc_zero(g->n_rules, 1);
    o->done = weft__alloc_array(g->n_rules, sizeof *o->done);
    int ok = seen && path && o->recursive && o->done;
    for (uint32_t r = 0; ok && r < g->n_rules; r++)
        if (g->rules[r].call) visit_from(g, r, o, seen, path);
    if (ok) visit_from(g, (uint32_t)root, o, seen, path);
    weft__free(path);
    weft__free(seen);
    return ok;
}

/* ---- the choice ---- */

/* Inlines rules of up to `most` states; returns the states of all rules that are called. */
static uint64_t choose(const weft__gram *g, int32_t root, const order *o, uint32_t most, weft__gram_plan *plan,
                       int32_t *large)
{
    uint64_t total = 0;
    measure m = {g, plan, -1, 0};
    memset(plan->called, 1, g->n_rules);
    for (size_t i = 0; i < o->n_done; i++) {
        uint32_t r = o->done[i];
        m.nesting = 0;
        uint64_t size = measure_node(&m, g->rules[r].body);
        unsigned nesting = m.nesting + g->nodes[g->rules[r].body].nesting;
        plan->size[r] = (uint32_t)size;
        plan->nesting[r] = (uint16_t)nesting;
        plan->called[r] = (int32_t)r == root || g->rules[r].call || o->recursive[r] ||
                          (size > most && !(g->rules[r].copied && most)) || nesting > MAX_NESTING;
        if (plan->called[r]) total += size;
    }
    *large = m.large;
    return total;
}

weft_status weft__gram_plan_make(const weft__gram *g, int32_t root, weft__gram_plan *plan, weft_error *err)
{
    static const uint32_t sizes[] = {4096, 512, 128, 64, 32, 8, 0};
    order o = {0};
    weft_status st = WEFT_OK;
    int32_t large = -1;
    plan->called = weft__alloc(g->n_rules);
    plan->size = weft__alloc_zero(g->n_rules, sizeof *plan->size);
    plan->nesting = weft__alloc_zero(g->n_rules, sizeof *plan->nesting);
    if (!plan->called || !plan->size || !plan->nesting || !collect_refs(g, &o) || !visit_rules(g, root, &o)) {
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
        goto done;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (choose(g, root, &o, sizes[i], plan, &large) <= (sizes[i] > 32 ? COMFORTABLE : MOST) && large < 0) break;
    if (large >= 0) {
        char subject[WEFT__GRAM_LABEL], line[32] = "";
        const weft__gram_node *x = &g->nodes[large];
        int32_t rule = weft__gram_rule_around(g, large);
        if (x->line) snprintf(line, sizeof line, " on line %d", (int)x->line);
        st = weft_fail(err, WEFT_LIMIT,
                       "%s has a repetition%s that, written out, has more than %d states; lower its bounds",
                       weft__gram_subject(weft__gram_name_of(g, rule), subject), line, WEFT__GRAM_MAX_STATES);
    }
done:
    order_free(&o);
    return st;
}

void weft__gram_plan_free(weft__gram_plan *plan)
{
    weft__free(plan->nesting);
    weft__free(plan->size);
    weft__free(plan->called);
}
