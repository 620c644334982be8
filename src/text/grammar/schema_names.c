// SPDX-License-Identifier: Apache-2.0
/* schema_names.c: names of the members of objects: those that the schema does not name, which patterns and
 * propertyNames sort by the schema of their value, and what these ask of members that it does name. One thread. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "text/grammar/build.h"
#include "text/grammar/schema_object.h"

/* ---- without patterns: any name but those of the schema ---- */

static int by_name(const void *a, const void *b)
{
    const weft__gram_schema_member *x = a, *y = b;
    int order = memcmp(x->name, y->name, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

/* `prefix` in quotes without the closing one, as JSON spells it. */
static int32_t quoted_start(weft__gram_schema_members *o, const char *prefix, size_t n)
{
    weft__strbuf text = {0};
    weft__json_write_string(&text, prefix, n);
    if (text.failed) weft__gram_fail(o->g, WEFT_NO_MEMORY, "no memory for a grammar");
    int32_t node = text.failed ? -1 : weft__gram_text(o->g, text.data, text.len - 1);
    weft__strbuf_free(&text);
    return node;
}

/* Names that begin with the first n bytes of m[from] and leave the names there. */
static void put_leaving(weft__gram_schema_members *o, const weft__gram_schema_member *m, size_t from, size_t n)
{
    weft__gram *g = o->g;
    const char *prefix = m[from].name;
    weft__gram_range *taken = weft__alloc_array(o->n - from + 4, sizeof *taken);
    size_t n_taken = 0, end = m[from].n == n;
    if (!taken) {
        weft__gram_fail(g, WEFT_NO_MEMORY, "no memory for a grammar");
        return;
    }
    for (size_t i = from; i < o->n && m[i].n >= n && !memcmp(m[i].name, prefix, n); i++) {
        uint32_t cp;
        int bad = 0;
        if (m[i].n == n) continue;
        weft__utf8_decode(m[i].name + n, m[i].n - n, &cp, &bad);
        if (!n_taken || taken[n_taken - 1].lo != cp) taken[n_taken++] = (weft__gram_range){cp, cp};
    }
    taken[n_taken++] = (weft__gram_range){0, 0x1F};
    taken[n_taken++] = (weft__gram_range){'"', '"'};
    taken[n_taken++] = (weft__gram_range){'\\', '\\'};
    int32_t start = quoted_start(o, prefix, n), other = weft__gram_class(g, taken, n_taken, 1);
    weft__gram_push(o->g, &o->items, GRAM_SEQ(start, other, GRAM_ANY_NUMBER(GRAM_REF(GRAM_RULE("char")))));
    if (!end) weft__gram_push(o->g, &o->items, quoted_start(o, prefix, n));
    weft__free(taken);
}

/* Any name but those of the schema. */
static int32_t other_name(weft__gram_schema_members *o)
{
    weft__gram *g = o->g;
    if (!o->n) return GRAM_REF(GRAM_RULE("string"));
    size_t first = o->items.n;
    weft__gram_schema_member *m = weft__alloc_array(o->n, sizeof *m);
    if (!m) {
        weft__gram_fail(g, WEFT_NO_MEMORY, "no memory for a grammar");
        return -1;
    }
    memcpy(m, o->members, o->n * sizeof *m);
    qsort(m, o->n, sizeof *m, by_name);
    for (size_t i = 0; i < o->n && !weft__gram_schema_failed(o->c); i++) {
        size_t same = 0;
        if (i)
            while (same < m[i].n && same < m[i - 1].n && m[i].name[same] == m[i - 1].name[same]) same++;
        for (size_t k = i ? same + 1 : 0; k <= m[i].n; k++)
            if (k == m[i].n || ((unsigned char)m[i].name[k] & 0xC0) != 0x80) put_leaving(o, m, i, k);
    }
    weft__free(m);
    int32_t name = weft__gram_alt_from(g, &o->items, first);
    return GRAM_SEQ(name, GRAM_TEXT("\""));
}

/* ---- with patterns ---- */

static const weft__json *patterns_of(const weft__gram_schema_members *o)
{
    return weft__json_get(o->schema, "patternProperties");
}

/* What each schema of a list asks; NULL where it is empty. Takes the list. */
static const weft__json *together(weft__gram_schema_members *o, weft__json *list)
{
    weft__json *all = weft__json_new_object();
    if (!weft__json_set(all, "allOf", list)) weft__json_free(&all);
    return weft__gram_schema_keep(o->c, all);
}

static void put_schema(weft__gram_schema_members *o, weft__json *list, const weft__json *schema)
{
    if (!weft__json_append(list, weft__json_copy(schema)))
        weft__gram_fail(o->g, WEFT_NO_MEMORY, "no memory for a grammar");
}

/* 1: the name matches the pattern, 0: it does not, for all readers. */
static int matches(weft__gram_schema_members *o, const weft__json_member *pattern, const weft__gram_schema_member *m)
{
    static const char key[] = "patternProperties";
    weft__json *s = weft__json_new_string(pattern->key, pattern->key_len);
    if (!s) weft__gram_fail(o->g, WEFT_NO_MEMORY, "no memory for a grammar");
    int surely = s && weft__gram_schema_matches(o->c, o->at, key, s, m->name, m->n, 0),
        perhaps = s && weft__gram_schema_matches(o->c, o->at, key, s, m->name, m->n, 1);
    if (surely != perhaps)
        weft__gram_schema_fail(o->c, WEFT_UNSUPPORTED, o->at, key,
                               "readers differ about whether '%.64s' matches '%.64s'", m->name, pattern->key);
    weft__json_free(&s);
    return surely;
}

void weft__gram_schema_name_member(weft__gram_schema_members *o, weft__gram_schema_member *m)
{
    const weft__json *names = weft__json_get(o->schema, "propertyNames");
    weft__json_member p = {0};
    if (names) {
        weft__json *name = weft__json_new_string(m->name, m->n);
        m->forbidden |= !weft__gram_schema_fits(o->c, names, name, o->at);
        weft__json_free(&name);
    }
    if (!weft__json_size(patterns_of(o)) || weft__gram_schema_failed(o->c)) return;
    weft__json *list = weft__json_new_array();
    if (m->schema) put_schema(o, list, m->schema);
    while (weft__json_next(patterns_of(o), &p) && !weft__gram_schema_failed(o->c)) {
        if (!matches(o, &p, m)) continue;
        put_schema(o, list, p.value);
        m->forbidden |= weft__gram_schema_is_false(p.value);
    }
    if (!weft__json_size(list)) m->forbidden |= o->closed; /* what is required, and nothing names */
    if (weft__json_size(list)) m->schema = together(o, list);
    else weft__json_free(&list);
}

typedef struct other_names {
    weft__gram_schema_members *o;
    weft__gram_automaton *any, *named, *asked; /* of all, those of the schema, those of propertyNames; NULL: none */
    weft__gram_automaton *of_class;            /* those that are wanted; NULL: all */
    weft__json_member patterns[WEFT__GRAM_MAX_PATTERNS];
    size_t n;
} other_names;

/* The value of names that match the patterns of `mask` and no others; NULL: there are no such members. */
static int32_t value_of(const other_names *x, unsigned mask)
{
    weft__gram_schema_members *o = x->o;
    weft__gram *g = o->g;
    weft__json *list = NULL;
    size_t first = 0;
    if (!mask)
        return o->more ? weft__gram_schema_use(o->c, o->more, o->at, "additionalProperties", NULL)
                       : GRAM_REF(GRAM_RULE("value"));
    while (!(mask >> first & 1)) first++;
    if (mask >> first == 1)
        return weft__gram_schema_use(o->c, x->patterns[first].value, o->at, "patternProperties",
                                     x->patterns[first].key);
    list = weft__json_new_array();
    for (size_t i = 0; i < x->n; i++)
        if (mask >> i & 1) put_schema(o, list, x->patterns[i].value);
    const weft__json *all = together(o, list);
    return all ? weft__gram_schema_use(o->c, all, o->at, "patternProperties", NULL) : -1;
}

/* Members with names that match the patterns of `mask` and no others. */
static void put_matching(const other_names *x, unsigned mask)
{
    weft__gram_schema_members *o = x->o;
    weft__gram *g = o->g;
    weft__gram_part parts[WEFT__GRAM_MAX_PATTERNS + 4];
    size_t n = 0;
    if (!mask && o->closed) return;
    parts[n++] = (weft__gram_part){x->any, 0};
    if (x->named) parts[n++] = (weft__gram_part){x->named, 1};
    if (x->asked) parts[n++] = (weft__gram_part){x->asked, 0};
    if (x->of_class) parts[n++] = (weft__gram_part){x->of_class, 0};
    for (size_t i = 0; i < x->n; i++) {
        int wanted = (int)(mask >> i & 1);
        const weft__json_member *p = &x->patterns[i];
        if (wanted && weft__gram_schema_is_false(p->value)) return;
        const weft__gram_automaton *a =
            weft__gram_schema_pattern(o->c, o->at, "patternProperties", p->key, p->key_len, UINT32_MAX, !wanted);
        if (!a) return;
        parts[n++] = (weft__gram_part){a, !wanted};
    }
    int32_t name = weft__gram_schema_common(o->c, o->at, x->n ? "patternProperties" : "propertyNames", parts, n);
    if (name < 0) return;
    int32_t sign = GRAM_TEXT(":"), blank = GRAM_REF(GRAM_RULE("gap"));
    weft__gram_push(o->g, &o->items, GRAM_SEQ(name, sign, blank, value_of(x, mask)));
}

/* The names that the schema asks for. */
static weft__gram_automaton *asked_names(weft__gram_schema_members *o, const weft__json *names)
{
    weft__json *schema = weft__json_new_object(), *list = weft__json_new_array();
    put_schema(o, list, names);
    int ok = weft__json_set(schema, "allOf", list) & weft__json_set(schema, "type", weft__json_new_string("string", 6));
    weft__json *flat = ok ? weft__gram_schema_flatten(o->c, schema, o->at) : NULL;
    if (!ok) weft__gram_fail(o->g, WEFT_NO_MEMORY, "no memory for a grammar");
    weft__gram_automaton *a = flat ? weft__gram_schema_strings(o->c, flat, o->at) : NULL;
    weft__json_free(&flat);
    weft__json_free(&schema);
    return a;
}

static weft__gram_automaton *names_of_schema(weft__gram_schema_members *o)
{
    const char **names = weft__alloc_array(o->n, sizeof *names);
    size_t *lengths = weft__alloc_array(o->n, sizeof *lengths);
    weft__gram_automaton *a = NULL;
    if (!names || !lengths) weft__gram_fail(o->g, WEFT_NO_MEMORY, "no memory for a grammar");
    for (size_t i = 0; i < o->n && names && lengths; i++) {
        names[i] = o->members[i].name;
        lengths[i] = o->members[i].n;
    }
    if (names && lengths) a = weft__gram_schema_texts(o->c, o->at, names, lengths, o->n);
    weft__free(lengths);
    weft__free(names);
    return a;
}

/* The expression of another member, with a name of a class (which it takes) or NULL: with any; -1: there is none. */
static int32_t matching_members(weft__gram_schema_members *o, const weft__json *names, weft__gram_automaton *of_class)
{
    other_names x = {.o = o, .of_class = of_class};
    size_t first = o->items.n;
    weft__json_member m = {0};
    while (weft__json_next(patterns_of(o), &m) && x.n < WEFT__GRAM_MAX_PATTERNS) x.patterns[x.n++] = m;
    if (weft__json_size(patterns_of(o)) > x.n)
        weft__gram_schema_fail(o->c, WEFT_LIMIT, o->at, "patternProperties", "at most %d", WEFT__GRAM_MAX_PATTERNS);
    x.any = weft__gram_schema_any_name(o->c, o->at);
    if (o->n) x.named = names_of_schema(o);
    if (names) x.asked = asked_names(o, names);
    for (unsigned mask = 0; mask < 1u << x.n && !weft__gram_schema_failed(o->c); mask++) put_matching(&x, mask);
    weft__gram_automaton_destroy(&x.of_class);
    weft__gram_automaton_destroy(&x.asked);
    weft__gram_automaton_destroy(&x.named);
    weft__gram_automaton_destroy(&x.any);
    return o->items.n > first ? weft__gram_alt_from(o->g, &o->items, first) : -1;
}

void weft__gram_schema_define_others(weft__gram_schema_members *o)
{
    weft__gram *g = o->g;
    const weft__json *names = weft__json_get(o->schema, "propertyNames");
    int32_t member;
    if (weft__json_get(o->schema, "patternProperties") && weft__json_kind_of(patterns_of(o)) != WEFT__JSON_OBJECT) {
        weft__gram_schema_fail(o->c, WEFT_ARGUMENT, o->at, "patternProperties", "must be an object");
        return;
    }
    if (weft__gram_schema_is_false(names) || (o->closed && !weft__json_size(patterns_of(o)))) return;
    if (names || weft__json_size(patterns_of(o))) {
        member = matching_members(o, names, NULL);
    } else {
        int32_t name = other_name(o), value = value_of(&(other_names){.o = o}, 0);
        int32_t sign = GRAM_TEXT(":");
        member = GRAM_SEQ(name, sign, GRAM_REF(GRAM_RULE("gap")), value);
    }
    if (weft__gram_schema_failed(o->c) || member < 0) return;
    o->others = weft__gram_schema_part(o, "other", o->n);
    weft__gram_define(g, o->others, member);
}

int weft__gram_schema_define_distinct(weft__gram_schema_members *o, uint32_t n, int by_length, int32_t *rules)
{
    const weft__json *names = weft__json_get(o->schema, "propertyNames");
    for (uint32_t i = 0; i < n; i++) {
        weft__gram_automaton *of_class = weft__gram_schema_name_class(o->c, o->at, i, n, by_length);
        int32_t member = of_class ? matching_members(o, names, of_class) : -1;
        if (weft__gram_schema_failed(o->c) || member < 0) return 0;
        rules[i] = weft__gram_schema_part(o, "distinct", i);
        weft__gram_define(o->g, rules[i], member);
    }
    return 1;
}
