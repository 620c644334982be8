// SPDX-License-Identifier: Apache-2.0
/* schema_order.c: objects whose members stand in any order, each at most once: a rule for each set of those that are
 * there already, which says what may follow and whether the required ones are among them. One thread. */
#include "base/alloc.h"
#include "text/grammar/build.h"
#include "text/grammar/schema_object.h"

typedef struct ordered {
    weft__gram_schema_members *o;
    weft__gram *g;
    size_t n; /* members that may be there, by o->members[order[i]] */
    size_t order[WEFT__GRAM_SCHEMA_MAX_ANY];
    int32_t members[WEFT__GRAM_SCHEMA_MAX_ANY]; /* their rules */
    uint32_t required;                          /* a bit each */
    int32_t end;                                /* the rule of what stands behind the last of them */
    int32_t *next, *behind; /* [1 << n] rules: another member; what follows a member. -1: none yet */
} ordered;

/* A rule for a set, used from many places: it stays one. */
static int32_t rule_of_set(ordered *x, int32_t *rules, const char *what, uint32_t set)
{
    if (rules[set] < 0) {
        rules[set] = weft__gram_schema_part(x->o, what, set);
        if (!weft__gram_schema_failed(x->o->c)) weft__gram_call(x->g, rules[set]);
    }
    return rules[set];
}

/* One of the members that are not in the set, and what follows it. -1: there is none. */
static int32_t one_more(ordered *x, uint32_t set)
{
    weft__gram *g = x->g;
    int32_t ways[WEFT__GRAM_SCHEMA_MAX_ANY];
    size_t n = 0;
    for (size_t i = 0; i < x->n; i++) {
        if (set >> i & 1) continue;
        int32_t member = GRAM_REF(x->members[i]);
        ways[n++] = GRAM_SEQ(member, GRAM_REF(rule_of_set(x, x->behind, "behind", set | 1u << i)));
    }
    return n ? weft__gram_alt(g, ways, n) : -1;
}

static void define_set(ordered *x, uint32_t set)
{
    weft__gram *g = x->g;
    const int is_all = set + 1 == 1u << x->n;
    int32_t ways[2];
    size_t n = 0;
    if (x->behind[set] < 0) return; /* nothing leads there */
    if (!is_all) {
        int32_t sign = weft__gram_schema_comma(g);
        ways[n++] = GRAM_SEQ(sign, GRAM_REF(rule_of_set(x, x->next, "next", set)));
    }
    if ((x->required & ~set) == 0) ways[n++] = GRAM_REF(x->end);
    weft__gram_define(g, x->behind[set], weft__gram_alt(g, ways, n));
    if (!is_all) weft__gram_define(g, x->next[set], one_more(x, set));
}

/* Behind members of the schema: others, and the white space. */
static int32_t end_rule(ordered *x)
{
    weft__gram *g = x->g;
    int32_t rule = weft__gram_schema_part(x->o, "end", x->n);
    int32_t others = weft__gram_schema_more_others(x->o, 0, UINT32_MAX), blank = GRAM_REF(GRAM_RULE("ws"));
    weft__gram_define(g, rule, GRAM_SEQ(others, blank));
    return rule;
}

static int32_t define_all(ordered *x)
{
    weft__gram *g = x->g;
    int32_t ways[2];
    size_t n = 0;
    for (uint32_t set = 0; set < 1u << x->n; set++) x->next[set] = x->behind[set] = -1;
    x->end = end_rule(x);
    for (size_t i = 0; i < x->n && !weft__gram_schema_failed(x->o->c); i++) {
        int32_t member = weft__gram_schema_member_node(x->o, &x->o->members[x->order[i]]);
        x->members[i] = weft__gram_schema_part(x->o, "member", i);
        weft__gram_define(g, x->members[i], member);
        if (!weft__gram_schema_failed(x->o->c)) weft__gram_call(g, x->members[i]);
    }
    if (weft__gram_schema_failed(x->o->c)) return -1;
    if (x->n) ways[n++] = one_more(x, 0);
    for (uint32_t set = 1; set < 1u << x->n && !weft__gram_schema_failed(x->o->c); set++) define_set(x, set);
    if (!x->required && x->o->others >= 0) {
        int32_t other = GRAM_REF(x->o->others);
        ways[n++] = GRAM_SEQ(other, GRAM_REF(x->end));
    }
    if (weft__gram_schema_failed(x->o->c)) return -1;
    if (!n) return GRAM_TEXT("");
    int32_t all = weft__gram_alt(g, ways, n);
    return x->required ? all : GRAM_OPTIONAL(all);
}

int32_t weft__gram_schema_any_order(weft__gram_schema_members *o)
{
    ordered x = {.o = o, .g = o->g};
    int32_t node = -1;
    for (size_t i = 0; i < o->n; i++) {
        if (o->members[i].forbidden) continue;
        if (x.n == WEFT__GRAM_SCHEMA_MAX_ANY)
            return weft__gram_schema_fail(o->c, WEFT_LIMIT, o->at, "properties",
                                          "at most %d in an object whose members stand in any order",
                                          WEFT__GRAM_SCHEMA_MAX_ANY);
        if (o->members[i].required) x.required |= 1u << x.n;
        x.order[x.n++] = i;
    }
    x.next = weft__alloc_array((size_t)1 << x.n, sizeof *x.next);
    x.behind = weft__alloc_array((size_t)1 << x.n, sizeof *x.behind);
    if (x.next && x.behind) node = define_all(&x);
    else weft__gram_fail(o->g, WEFT_NO_MEMORY, "no memory for a grammar");
    weft__free(x.behind);
    weft__free(x.next);
    return node;
}
