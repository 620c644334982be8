// SPDX-License-Identifier: Apache-2.0
/* schema_object.c: objects of a JSON Schema as rules: members in the schema's order, then others, whose names are not
 * those of the schema; what several objects ask together; and which schemas exclude each other. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "text/grammar/build.h"
#include "text/grammar/schema_parts.h"

enum { MAX_MEMBERS = 4096, MAX_FOLLOWED = 8 };

typedef struct object_member {
    const char *name;
    size_t n;
    const weft__json *schema; /* NULL: what additionalProperties says */
    int required, forbidden;
} object_member;

typedef struct object_parts {
    weft__gram_schema *c;
    weft__gram *g;
    const char *at;
    const weft__json *schema, *more; /* what other members hold; NULL: anything */
    int closed;                      /* there are none */
    object_member *members;
    size_t n, capacity;
    int32_t others; /* the rule of another member, -1: none */
    int32_t *items;
    size_t n_items, items_capacity;
} object_parts;

static int holds_false(const weft__json *v)
{
    int value = 1;
    return weft__json_bool(v, &value) && !value;
}

static int add_member(object_parts *o, const char *name, size_t n, const weft__json *schema)
{
    if (o->n >= MAX_MEMBERS) {
        weft__gram_schema_fail(o->c, WEFT_LIMIT, o->at, "properties", "at most %d", MAX_MEMBERS);
        return 0;
    }
    if (!weft__grow(&o->members, &o->capacity, o->n + 1, sizeof *o->members)) {
        weft__gram_fail(o->g, WEFT_NO_MEMORY, "no memory for a grammar");
        return 0;
    }
    o->members[o->n++] = (object_member){name, n, schema, 0, holds_false(schema)};
    return 1;
}

static object_member *find_member(object_parts *o, const char *name, size_t n)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->members[i].n == n && !memcmp(o->members[i].name, name, n)) return &o->members[i];
    return NULL;
}

/* properties and required. */
static int collect_members(object_parts *o)
{
    const weft__json *properties = weft__json_get(o->schema, "properties"),
                     *required = weft__json_get(o->schema, "required");
    weft__json_member m = {0};
    if (properties && weft__json_kind_of(properties) != WEFT__JSON_OBJECT) {
        weft__gram_schema_fail(o->c, WEFT_ARGUMENT, o->at, "properties", "must be an object");
        return 0;
    }
    if (required && weft__json_kind_of(required) != WEFT__JSON_ARRAY) {
        weft__gram_schema_fail(o->c, WEFT_ARGUMENT, o->at, "required", "must be a list of names");
        return 0;
    }
    while (weft__json_next(properties, &m))
        if (!add_member(o, m.key, m.key_len, m.value)) return 0;
    if (weft__json_size(required) > MAX_MEMBERS) {
        weft__gram_schema_fail(o->c, WEFT_LIMIT, o->at, "required", "at most %d", MAX_MEMBERS);
        return 0;
    }
    for (size_t i = 0; i < weft__json_size(required); i++) {
        const char *name;
        size_t n;
        if (!weft__json_string(weft__json_at(required, i), &name, &n) || strlen(name) != n) {
            weft__gram_schema_fail(o->c, WEFT_ARGUMENT, o->at, "required", "must be a list of names");
            return 0;
        }
        object_member *member = find_member(o, name, n);
        if (!member && !o->closed) {
            if (!add_member(o, name, n, NULL)) return 0;
            member = &o->members[o->n - 1];
        }
        if (!member || member->forbidden) {
            weft__gram_schema_fail(o->c, WEFT_ARGUMENT, o->at, "required", "no object can have the member '%.64s'",
                                   name);
            return 0;
        }
        member->required = 1;
    }
    return 1;
}

static int push_item(object_parts *o, int32_t node)
{
    if (weft__gram_schema_failed(o->c)) return 0;
    if (!weft__grow(&o->items, &o->items_capacity, o->n_items + 1, sizeof *o->items)) {
        weft__gram_fail(o->g, WEFT_NO_MEMORY, "no memory for a grammar");
        return 0;
    }
    o->items[o->n_items++] = node;
    return 1;
}

/* A rule of this object, for a part of it that is used more than once. */
static int32_t part_rule(object_parts *o, const char *what, size_t number)
{
    weft__strbuf name = {0};
    size_t n = strlen(o->at);
    weft__strbuf_put(&name, o->at, n < 180 ? n : 180);
    weft__strbuf_printf(&name, " (%s %zu of %zu)", what, number, (size_t)weft__gram_n_rules(o->g));
    int32_t rule = name.failed ? -1 : weft__gram_rule(o->g, name.data, name.len);
    if (name.failed) weft__gram_fail(o->g, WEFT_NO_MEMORY, "no memory for a grammar");
    weft__strbuf_free(&name);
    return rule;
}

/* ---- names of other members ---- */

static int by_name(const void *a, const void *b)
{
    const object_member *x = a, *y = b;
    int order = memcmp(x->name, y->name, x->n < y->n ? x->n : y->n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

/* `prefix` in quotes without the closing one, as JSON spells it. */
static int32_t quoted_start(object_parts *o, const char *prefix, size_t n)
{
    weft__strbuf text = {0};
    weft__json_write_string(&text, prefix, n);
    if (text.failed) weft__gram_fail(o->g, WEFT_NO_MEMORY, "no memory for a grammar");
    int32_t node = text.failed ? -1 : weft__gram_text(o->g, text.data, text.len - 1);
    weft__strbuf_free(&text);
    return node;
}

/* Names that begin with the first n bytes of m[from] and leave the names there. */
static void put_leaving(object_parts *o, const object_member *m, size_t from, size_t n)
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
    push_item(o, GRAM_SEQ(start, other, GRAM_ANY_NUMBER(GRAM_REF(GRAM_RULE("char")))));
    if (!end) push_item(o, quoted_start(o, prefix, n));
    weft__free(taken);
}

/* Any name but those of the schema. */
static int32_t other_name(object_parts *o)
{
    weft__gram *g = o->g;
    if (!o->n) return GRAM_REF(GRAM_RULE("string"));
    size_t first = o->n_items;
    object_member *m = weft__alloc_array(o->n, sizeof *m);
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
    int32_t name = -1;
    if (!weft__gram_schema_failed(o->c)) name = weft__gram_alt(g, o->items + first, o->n_items - first);
    o->n_items = first;
    return GRAM_SEQ(name, GRAM_TEXT("\""));
}

/* The one pattern of patternProperties as a name. */
static int32_t pattern_name(object_parts *o, const char *pattern, size_t n)
{
    weft__gram *g = o->g;
    uint32_t min, max;
    const char *why = NULL;
    int32_t open = GRAM_TEXT("\""), node = weft__gram_regex(g, pattern, n, 0, &min, &max, &why);
    if (why) return weft__gram_schema_fail(o->c, WEFT_UNSUPPORTED, o->at, "patternProperties", "%s", why);
    return GRAM_SEQ(open, node, GRAM_TEXT("\""));
}

/* The rule of a member that the schema does not name. */
static void define_others(object_parts *o)
{
    weft__gram *g = o->g;
    const weft__json *patterns = weft__json_get(o->schema, "patternProperties"),
                     *names = weft__json_get(o->schema, "propertyNames");
    weft__json_member m = {0};
    int32_t name = -1, value = -1;
    if (weft__json_size(patterns)) {
        if (!o->closed || o->n || weft__json_size(patterns) != 1 || names) {
            weft__gram_schema_fail(o->c, WEFT_UNSUPPORTED, o->at, "patternProperties",
                                   "supported is one pattern, with additionalProperties false and no properties");
            return;
        }
        weft__json_next(patterns, &m);
        name = pattern_name(o, m.key, m.key_len);
        if (holds_false(m.value)) return;
        value = weft__gram_schema_use(o->c, m.value, o->at, "patternProperties", m.key);
    } else if (o->closed) {
        return;
    } else {
        if (names && o->n) {
            weft__gram_schema_fail(o->c, WEFT_UNSUPPORTED, o->at, "propertyNames",
                                   "is not supported beside properties or required");
            return;
        }
        if (names && weft__gram_schema_types(o->c, names, o->at) != WEFT__GRAM_STRING_TYPE) {
            weft__gram_schema_fail(o->c, WEFT_UNSUPPORTED, o->at, "propertyNames", "must say \"type\": \"string\"");
            return;
        }
        name = names ? weft__gram_schema_use(o->c, names, o->at, "propertyNames", NULL) : other_name(o);
        value = o->more ? weft__gram_schema_use(o->c, o->more, o->at, "additionalProperties", NULL)
                        : GRAM_REF(GRAM_RULE("value"));
    }
    o->others = part_rule(o, "other", o->n);
    weft__gram_define(g, o->others, GRAM_SEQ(name, GRAM_TEXT(":"), GRAM_REF(GRAM_RULE("ws")), value));
}

/* ---- members ---- */

static int32_t member_node(object_parts *o, const object_member *m)
{
    weft__gram *g = o->g;
    weft__strbuf text = {0};
    weft__json_write_string(&text, m->name, m->n);
    weft__strbuf_putc(&text, ':');
    if (text.failed) weft__gram_fail(g, WEFT_NO_MEMORY, "no memory for a grammar");
    int32_t name = text.failed ? -1 : weft__gram_text(g, text.data, text.len);
    weft__strbuf_free(&text);
    int32_t value = m->schema ? weft__gram_schema_use(o->c, m->schema, o->at, "properties", m->name)
                    : o->more ? weft__gram_schema_use(o->c, o->more, o->at, "additionalProperties", NULL)
                              : GRAM_REF(GRAM_RULE("value"));
    return GRAM_SEQ(name, GRAM_REF(GRAM_RULE("ws")), value);
}

static int32_t comma(weft__gram *g)
{
    return GRAM_SEQ(GRAM_TEXT(","), GRAM_REF(GRAM_RULE("ws")));
}

/* Other members behind at least one. */
static int32_t more_others(object_parts *o)
{
    weft__gram *g = o->g;
    if (o->others < 0) return GRAM_TEXT("");
    int32_t before = comma(g);
    return GRAM_ANY_NUMBER(GRAM_SEQ(before, GRAM_REF(o->others)));
}

/* Members where one is required: those before it bring their comma behind, those after it in front. */
static int32_t members_around(object_parts *o, size_t pivot)
{
    weft__gram *g = o->g;
    for (size_t i = 0; i < o->n; i++) {
        if (o->members[i].forbidden) continue;
        int32_t node = member_node(o, &o->members[i]), sign = i == pivot ? -1 : comma(g);
        if (i < pivot) node = GRAM_OPTIONAL(GRAM_SEQ(node, sign));
        if (i > pivot) node = GRAM_SEQ(sign, node);
        if (i > pivot && !o->members[i].required) node = GRAM_OPTIONAL(node);
        if (!push_item(o, node)) return -1;
    }
    push_item(o, more_others(o));
    return weft__gram_schema_failed(o->c) ? -1 : weft__gram_seq(g, o->items, o->n_items);
}

/* Members of which each may be absent: one that is the first, then what may follow it. */
static int32_t members_from_any(object_parts *o)
{
    weft__gram *g = o->g;
    int32_t rest = part_rule(o, "rest", o->n);
    weft__gram_define(g, rest, more_others(o));
    if (o->others >= 0) push_item(o, GRAM_SEQ(GRAM_REF(o->others), GRAM_REF(rest)));
    for (size_t i = o->n; i-- > 0 && !weft__gram_schema_failed(o->c);) {
        if (o->members[i].forbidden) continue;
        int32_t first = member_node(o, &o->members[i]);
        push_item(o, GRAM_SEQ(first, GRAM_REF(rest)));
        if (i == 0) break;
        int32_t sign = comma(g), again = member_node(o, &o->members[i]), next = part_rule(o, "rest", i);
        int32_t maybe = GRAM_OPTIONAL(GRAM_SEQ(sign, again));
        weft__gram_define(g, next, GRAM_SEQ(maybe, GRAM_REF(rest)));
        rest = next;
    }
    return weft__gram_schema_failed(o->c) || !o->n_items ? -1 : weft__gram_alt(g, o->items, o->n_items);
}

static int names_properties(const weft__json *schema)
{
    return weft__json_size(weft__json_get(schema, "properties")) > 0 && !weft__json_get(schema, "patternProperties") &&
           !weft__json_get(schema, "propertyNames");
}

int32_t weft__gram_schema_object(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *g = weft__gram_schema_rules(c);
    object_parts o = {.c = c, .g = g, .at = at, .schema = schema, .others = -1};
    int32_t node = -1, members = -1;
    size_t pivot = 0;
    o.more = weft__json_get(schema, "additionalProperties");
    o.closed = holds_false(o.more) || (!o.more && weft__gram_schema_is_closed(c) && names_properties(schema));
    if (!collect_members(&o)) goto done;
    define_others(&o);
    while (pivot < o.n && !o.members[pivot].required) pivot++;
    if (weft__gram_schema_failed(c)) goto done;
    members = pivot < o.n ? members_around(&o, pivot) : members_from_any(&o);
    if (weft__gram_schema_failed(c)) goto done;
    if (members < 0) {
        node = GRAM_SEQ(GRAM_TEXT("{"), GRAM_REF(GRAM_RULE("ws")), GRAM_TEXT("}"));
    } else {
        int32_t inside = GRAM_SEQ(members, GRAM_REF(GRAM_RULE("ws")));
        if (pivot == o.n) inside = GRAM_OPTIONAL(inside);
        node = GRAM_SEQ(GRAM_TEXT("{"), GRAM_REF(GRAM_RULE("ws")), inside, GRAM_TEXT("}"));
    }
done:
    weft__free(o.items);
    weft__free(o.members);
    return weft__gram_schema_failed(c) ? -1 : node;
}

/* ---- several schemas ---- */

/* Adds to `into` what an object schema asks; only what can be put together. */
static int merge_into(weft__gram_schema *c, weft__json *properties, weft__json *required, int *closed,
                      const weft__json *schema, const char *at)
{
    weft__json_member m = {0};
    int types = (int)weft__gram_schema_types(c, schema, at);
    for (int i = 0; weft__json_get(schema, "$ref") && i < MAX_FOLLOWED; i++) {
        if (weft__json_size(schema) != 1) break;
        schema = weft__gram_schema_follow(c, weft__json_get(schema, "$ref"), at);
        if (!schema) return 0;
        types = (int)weft__gram_schema_types(c, schema, at);
    }
    if (!(types & WEFT__GRAM_OBJECT_TYPE)) {
        weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "allOf", "only schemas of objects are put together");
        return 0;
    }
    *closed |= types == WEFT__GRAM_OBJECT_TYPE ? 2 : 0;
    while (weft__json_next(schema, &m)) {
        static const char *const silent[] = {"title",    "description", "default",     "examples", "$schema", "$id",
                                             "$comment", "$defs",       "definitions", "type",     "allOf"};
        size_t k = 0;
        weft__json_member p = {0};
        int open = 0;
        while (k < sizeof silent / sizeof *silent && strcmp(m.key, silent[k])) k++;
        if (k < sizeof silent / sizeof *silent - 1 ||
            (weft__json_bool(m.value, &open) && open && !strcmp(m.key, "additionalProperties")))
            continue;
        if (!strcmp(m.key, "required")) {
            for (size_t i = 0; i < weft__json_size(m.value); i++)
                weft__json_append(required, weft__json_copy(weft__json_at(m.value, i)));
        } else if (!strcmp(m.key, "properties")) {
            while (weft__json_next(m.value, &p)) {
                const weft__json *known = weft__json_get(properties, p.key);
                if (known && !weft__json_equal(known, p.value)) {
                    weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "allOf",
                                           "the property '%.64s' stands in two of them and differs", p.key);
                    return 0;
                }
                if (!known && !weft__json_set(properties, p.key, weft__json_copy(p.value)))
                    weft__gram_fail(weft__gram_schema_rules(c), WEFT_NO_MEMORY, "no memory for a grammar");
            }
        } else if (strcmp(m.key, "allOf")) {
            weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "allOf", "'%.64s' is not put together with others", m.key);
            return 0;
        }
    }
    return !weft__gram_schema_failed(c);
}

weft__json *weft__gram_schema_merge(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    const weft__json *all = weft__json_get(schema, "allOf");
    weft__json *merged = weft__json_new_object(), *properties = weft__json_new_object(),
               *required = weft__json_new_array();
    int types = 0, ok = merged && properties && required;
    if (!ok) weft__gram_fail(weft__gram_schema_rules(c), WEFT_NO_MEMORY, "no memory for a grammar");
    for (size_t i = 0; ok && i < weft__json_size(all); i++) {
        ok = !weft__json_get(weft__json_at(all, i), "allOf");
        if (!ok) weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "allOf", "allOf within allOf is not supported");
        else ok = merge_into(c, properties, required, &types, weft__json_at(all, i), at);
    }
    if (ok) ok = merge_into(c, properties, required, &types, schema, at);
    if (ok && !(types & 2)) {
        weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, "allOf", "one of the schemas must say \"type\": \"object\"");
        ok = 0;
    }
    ok = weft__json_set(merged, "properties", properties) & weft__json_set(merged, "required", required) & ok;
    if (!ok) weft__json_free(&merged);
    return merged;
}

/* The values that a schema names; NULL: it does not. */
static const weft__json *named_values(const weft__json *s, size_t *n)
{
    const weft__json *one = weft__json_get(s, "const"), *list = weft__json_get(s, "enum");
    *n = one ? 1 : weft__json_size(list);
    return one ? one : list;
}

static int values_apart(const weft__json *a, const weft__json *b)
{
    size_t n, m;
    const weft__json *x = named_values(a, &n), *y = named_values(b, &m);
    if (!x || !y || n > 256 || m > 256) return 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m; k++) {
            const weft__json *p = weft__json_get(a, "const") ? x : weft__json_at(x, i),
                             *q = weft__json_get(b, "const") ? y : weft__json_at(y, k);
            int strings = weft__json_kind_of(p) == WEFT__JSON_STRING || weft__json_kind_of(q) == WEFT__JSON_STRING;
            if (!strings || weft__json_equal(p, q))
                return 0; /* 1 and 1.0 are one number: only strings are told apart */
        }
    return n && m;
}

/* A member that both require, whose schemas exclude each other. */
static int members_apart(weft__gram_schema *c, const weft__json *a, const weft__json *b, const char *at, int depth)
{
    const weft__json *required = weft__json_get(a, "required"), *also = weft__json_get(b, "required");
    const weft__json *p = weft__json_get(a, "properties"), *q = weft__json_get(b, "properties");
    for (size_t i = 0; i < weft__json_size(required) && i < 64; i++) {
        const char *name;
        size_t n;
        int both = 0;
        if (!weft__json_string(weft__json_at(required, i), &name, &n)) continue;
        for (size_t k = 0; k < weft__json_size(also) && k < 64; k++)
            both |= weft__json_is(weft__json_at(also, k), name);
        const weft__json *x = weft__json_get(p, name), *y = weft__json_get(q, name);
        if (both && x && y && weft__gram_schema_disjoint(c, x, y, at, depth + 1)) return 1;
    }
    return 0;
}

int weft__gram_schema_disjoint(weft__gram_schema *c, const weft__json *a, const weft__json *b, const char *at,
                               int depth)
{
    if (depth > 2 || weft__gram_schema_failed(c)) return 0;
    for (int i = 0; a && i < MAX_FOLLOWED && weft__json_get(a, "$ref"); i++)
        a = weft__gram_schema_follow(c, weft__json_get(a, "$ref"), at);
    for (int i = 0; b && i < MAX_FOLLOWED && weft__json_get(b, "$ref"); i++)
        b = weft__gram_schema_follow(c, weft__json_get(b, "$ref"), at);
    if (!a || !b) return 0;
    unsigned x = weft__gram_schema_types(c, a, at), y = weft__gram_schema_types(c, b, at);
    if (x & WEFT__GRAM_NUMBER_TYPE) x |= WEFT__GRAM_INTEGER_TYPE;
    if (y & WEFT__GRAM_NUMBER_TYPE) y |= WEFT__GRAM_INTEGER_TYPE;
    if (!(x & y) || values_apart(a, b)) return 1;
    return (x & y) == WEFT__GRAM_OBJECT_TYPE && members_apart(c, a, b, at, depth);
}
