// SPDX-License-Identifier: Apache-2.0
/* schema_count.c: objects whose members are counted: a rule for each member of the schema and for how many of those
 * before it are there. Names of other members may be the same, which is one member for who reads them: where more than
 * one of them must be there, they are of classes that have no name in common. One thread. */
#include "base/alloc.h"
#include "text/grammar/build.h"
#include "text/grammar/schema_object.h"

enum {
    MAX_COUNTED_MEMBERS = 63, /* in properties */
    MAX_DISTINCT = 6          /* other members that must be there */
};

typedef struct counted {
    weft__gram_schema_members *o;
    weft__gram *g;
    uint32_t low, high;
    size_t n; /* members that may be there, by o->members[order[i]] */
    size_t *order;
    uint8_t *works;      /* [(n + 1) * (n + 1)]: from member i on, with k before it, some object is complete */
    int32_t *rules;      /* of the same; -1: none yet */
    uint32_t n_distinct; /* classes of other members; 0: one is all that is counted on */
    int32_t distinct[MAX_DISTINCT];
    int32_t *by_used; /* [(n + 1) << n_distinct] rules behind k members and classes that were used; -1: none yet */
} counted;

static size_t cell(const counted *x, size_t i, size_t k)
{
    return i * (x->n + 1) + k;
}

static void find_what_works(counted *x)
{
    for (size_t k = 0; k <= x->n; k++) {
        const size_t others = x->o->others < 0 ? 0 : x->n_distinct ? x->n_distinct : 1;
        x->works[cell(x, x->n, k)] = k <= x->high && k + others >= x->low;
    }
    for (size_t i = x->n; i-- > 0;)
        for (size_t k = 0; k <= i; k++)
            x->works[cell(x, i, k)] = (k < x->high && x->works[cell(x, i + 1, k + 1)]) ||
                                      (!x->o->members[x->order[i]].required && x->works[cell(x, i + 1, k)]);
}

/* The rule from member i on; it is named now and defined later. */
static int32_t rule_at(counted *x, size_t i, size_t k)
{
    size_t at = cell(x, i, k);
    if (x->rules[at] < 0) x->rules[at] = weft__gram_schema_part(x->o, "counted", at);
    return x->rules[at];
}

static int32_t distinct_others(counted *x, size_t k, uint32_t used, uint32_t need);

static int32_t distinct_rule(counted *x, size_t k, uint32_t used, uint32_t need)
{
    const size_t at = (k << x->n_distinct) + used;
    if (x->by_used[at] < 0 && !weft__gram_schema_failed(x->o->c)) {
        x->by_used[at] = weft__gram_schema_part(x->o, "distinct behind", at);
        int32_t body = distinct_others(x, k, used, need);
        weft__gram_define(x->g, x->by_used[at], body);
    }
    return weft__gram_ref(x->g, x->by_used[at]);
}

/* Behind k members of the schema `need` others, of classes that are not in `used`; then what else there may be. */
static int32_t distinct_others(counted *x, size_t k, uint32_t used, uint32_t need)
{
    weft__gram *g = x->g;
    int32_t items[MAX_DISTINCT];
    size_t n = 0;
    const uint32_t most = x->high == UINT32_MAX ? x->high : x->high - x->low;
    if (!need) {
        int32_t more = weft__gram_schema_more_others(x->o, 0, most), blank = GRAM_REF(GRAM_RULE("ws"));
        return GRAM_SEQ(more, blank);
    }
    for (uint32_t i = 0; i < x->n_distinct; i++) {
        if (used >> i & 1) continue;
        int32_t sign = k || used ? weft__gram_schema_comma(g) : GRAM_TEXT(""), one = GRAM_REF(x->distinct[i]);
        items[n++] = GRAM_SEQ(sign, one, distinct_rule(x, k, used | 1u << i, need - 1));
    }
    return weft__gram_alt(g, items, n);
}

/* Behind k members of the schema: others, the white space, nothing more. */
static int32_t others_behind(counted *x, size_t k)
{
    weft__gram *g = x->g;
    if (k + 1 < x->low) return distinct_others(x, k, 0, x->low - (uint32_t)k);
    uint32_t least = k < x->low, most = x->high == UINT32_MAX ? x->high : x->high - (uint32_t)k;
    if (k > 0) {
        int32_t more = weft__gram_schema_more_others(x->o, least, most), blank = GRAM_REF(GRAM_RULE("ws"));
        return GRAM_SEQ(more, blank);
    }
    if (x->o->others < 0 || !most) return GRAM_TEXT("");
    int32_t first = GRAM_REF(x->o->others);
    int32_t more = weft__gram_schema_more_others(x->o, 0, most == UINT32_MAX ? most : most - 1);
    int32_t all = GRAM_SEQ(first, more, GRAM_REF(GRAM_RULE("ws")));
    return least ? all : GRAM_OPTIONAL(all);
}

static void define_at(counted *x, size_t i, size_t k)
{
    weft__gram *g = x->g;
    int32_t items[2];
    size_t n = 0;
    if (x->rules[cell(x, i, k)] < 0) return; /* nothing leads there */
    if (i == x->n) {
        weft__gram_define(g, x->rules[cell(x, i, k)], others_behind(x, k));
        return;
    }
    const weft__gram_schema_member *m = &x->o->members[x->order[i]];
    if (k < x->high && x->works[cell(x, i + 1, k + 1)]) {
        int32_t sign = k ? weft__gram_schema_comma(g) : GRAM_TEXT("");
        int32_t member = weft__gram_schema_member_node(x->o, m);
        items[n++] = GRAM_SEQ(sign, member, GRAM_REF(rule_at(x, i + 1, k + 1)));
    }
    if (!m->required && x->works[cell(x, i + 1, k)]) items[n++] = GRAM_REF(rule_at(x, i + 1, k));
    weft__gram_define(g, x->rules[cell(x, i, k)], weft__gram_alt(g, items, n));
}

/* Where more than one other member must be there, of those that are told apart. */
static void make_distinct(counted *x)
{
    size_t required = 0;
    for (size_t i = 0; i < x->n; i++) required += x->o->members[x->order[i]].required != 0;
    if (x->o->others < 0 || x->low <= required + 1) return;
    uint32_t n = x->low - (uint32_t)required;
    if (n > MAX_DISTINCT) n = MAX_DISTINCT;
    for (int by_length = 0; by_length < 2 && !x->n_distinct && !weft__gram_schema_failed(x->o->c); by_length++)
        if (weft__gram_schema_define_distinct(x->o, n, by_length, x->distinct)) x->n_distinct = n;
    const size_t n_rules = (x->n + 1) << x->n_distinct;
    x->by_used = weft__alloc_array(n_rules, sizeof *x->by_used);
    if (!x->by_used) weft__gram_fail(x->g, WEFT_NO_MEMORY, "no memory for a grammar");
    for (size_t i = 0; x->by_used && i < n_rules; i++) x->by_used[i] = -1;
}

static int32_t define_all(counted *x)
{
    make_distinct(x);
    if (weft__gram_schema_failed(x->o->c)) return -1;
    find_what_works(x);
    if (!x->works[0])
        return weft__gram_schema_fail(
            x->o->c, WEFT_UNSUPPORTED, x->o->at, x->low > x->n ? "minProperties" : "maxProperties",
            "no object has so many members, of those that properties name and %u others; name "
            "more of them there",
            x->o->others < 0 ? 0u
            : x->n_distinct  ? x->n_distinct
                             : 1u);
    for (size_t i = 0; i < (x->n + 1) * (x->n + 1); i++) x->rules[i] = -1;
    int32_t start = rule_at(x, 0, 0);
    for (size_t i = 0; i <= x->n; i++)
        for (size_t k = 0; k <= i && !weft__gram_schema_failed(x->o->c); k++) define_at(x, i, k);
    return weft__gram_schema_failed(x->o->c) ? -1 : weft__gram_ref(x->g, start);
}

int32_t weft__gram_schema_counted(weft__gram_schema_members *o, uint32_t low, uint32_t high)
{
    counted x = {.o = o, .g = o->g, .low = low, .high = high};
    int32_t node = -1;
    for (size_t i = 0; i < o->n; i++) x.n += !o->members[i].forbidden;
    if (x.n > MAX_COUNTED_MEMBERS)
        return weft__gram_schema_fail(o->c, WEFT_LIMIT, o->at, low ? "minProperties" : "maxProperties",
                                      "objects with counted members have at most %d in their properties",
                                      MAX_COUNTED_MEMBERS);
    x.order = weft__alloc_array(x.n, sizeof *x.order);
    x.works = weft__alloc_zero((x.n + 1) * (x.n + 1), 1);
    x.rules = weft__alloc_array((x.n + 1) * (x.n + 1), sizeof *x.rules);
    if (x.order && x.works && x.rules) {
        for (size_t i = 0, n = 0; i < o->n; i++)
            if (!o->members[i].forbidden) x.order[n++] = i;
        node = define_all(&x);
    } else {
        weft__gram_fail(o->g, WEFT_NO_MEMORY, "no memory for a grammar");
    }
    weft__free(x.by_used);
    weft__free(x.rules);
    weft__free(x.works);
    weft__free(x.order);
    return node;
}
