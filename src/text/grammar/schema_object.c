// SPDX-License-Identifier: Apache-2.0
/* schema_object.c: objects of a JSON Schema as rules: members in the schema's order, then others, whose names are not
 * those of the schema. */
#include <string.h>

#include "base/alloc.h"
#include "text/grammar/build.h"
#include "text/grammar/parts.h"
#include "text/grammar/schema_object.h"

enum { MAX_MEMBERS = 4096 };

static int add_member(weft__gram_schema_members *o, const char *name, size_t n, const weft__json *schema)
{
    if (o->n >= MAX_MEMBERS) {
        weft__gram_schema_fail(o->c, WEFT_LIMIT, o->at, "properties", "at most %d", MAX_MEMBERS);
        return 0;
    }
    if (!weft__grow(&o->members, &o->capacity, o->n + 1, sizeof *o->members)) {
        weft__gram_fail(o->g, WEFT_NO_MEMORY, "no memory for a grammar");
        return 0;
    }
    o->members[o->n++] = (weft__gram_schema_member){name, n, schema, 0, weft__gram_schema_is_false(schema)};
    return 1;
}

static weft__gram_schema_member *find_member(weft__gram_schema_members *o, const char *name, size_t n)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->members[i].n == n && !memcmp(o->members[i].name, name, n)) return &o->members[i];
    return NULL;
}

/* properties and required. */
static int collect_members(weft__gram_schema_members *o)
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
    while (weft__json_next(properties, &m)) {
        if (!add_member(o, m.key, m.key_len, m.value)) return 0;
        weft__gram_schema_name_member(o, &o->members[o->n - 1]);
    }
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
        weft__gram_schema_member *member = find_member(o, name, n);
        if (!member && (!o->closed || weft__json_size(weft__json_get(o->schema, "patternProperties")))) {
            if (!add_member(o, name, n, NULL)) return 0;
            member = &o->members[o->n - 1];
        }
        if (member && !member->schema) weft__gram_schema_name_member(o, member);
        if (!member || member->forbidden) {
            weft__gram_schema_fail(o->c, WEFT_ARGUMENT, o->at, "required", "no object can have the member '%.64s'",
                                   name);
            return 0;
        }
        member->required = 1;
    }
    return 1;
}

int32_t weft__gram_schema_part(weft__gram_schema_members *o, const char *what, size_t number)
{
    weft__strbuf name = {0};
    size_t n = strlen(o->at);
    weft__strbuf_put(&name, o->at, n < 180 ? n : 180);
    weft__strbuf_printf(&name, "%c%s %zu of %zu", WEFT__GRAM_SAME_PLACE, what, number,
                        (size_t)weft__gram_n_rules(o->g));
    int32_t rule = name.failed ? -1 : weft__gram_rule(o->g, name.data, name.len);
    if (name.failed) weft__gram_fail(o->g, WEFT_NO_MEMORY, "no memory for a grammar");
    weft__strbuf_free(&name);
    return rule;
}

/* ---- members ---- */

int32_t weft__gram_schema_member_node(weft__gram_schema_members *o, const weft__gram_schema_member *m)
{
    weft__gram *g = o->g;
    weft__strbuf text = {0};
    weft__gram_schema_write(o->c, &text, m->name, m->n);
    weft__strbuf_putc(&text, ':');
    if (text.failed) weft__gram_fail(g, WEFT_NO_MEMORY, "no memory for a grammar");
    int32_t name = text.failed ? -1 : weft__gram_text(g, text.data, text.len);
    weft__strbuf_free(&text);
    int32_t value = m->schema ? weft__gram_schema_use(o->c, m->schema, o->at, "properties", m->name)
                    : o->more ? weft__gram_schema_use(o->c, o->more, o->at, "additionalProperties", NULL)
                              : GRAM_REF(GRAM_RULE("value"));
    return GRAM_SEQ(name, GRAM_REF(GRAM_RULE("gap")), value);
}

int32_t weft__gram_schema_comma(weft__gram *g)
{
    return GRAM_SEQ(GRAM_TEXT(","), GRAM_REF(GRAM_RULE("ws")));
}

int32_t weft__gram_schema_more_others(const weft__gram_schema_members *o, uint32_t min, uint32_t max)
{
    weft__gram *g = o->g;
    if (o->others < 0 || !max) return GRAM_TEXT("");
    int32_t before = weft__gram_schema_comma(g);
    return GRAM_REPEAT(min, max, GRAM_SEQ(before, GRAM_REF(o->others)));
}

/* Members where one is required: those before it bring their comma behind, those after it in front. */
static int32_t members_around(weft__gram_schema_members *o, size_t pivot)
{
    weft__gram *g = o->g;
    for (size_t i = 0; i < o->n; i++) {
        if (o->members[i].forbidden) continue;
        int32_t node = weft__gram_schema_member_node(o, &o->members[i]),
                sign = i == pivot ? -1 : weft__gram_schema_comma(g);
        if (i < pivot) node = GRAM_OPTIONAL(GRAM_SEQ(node, sign));
        if (i > pivot) node = GRAM_SEQ(sign, node);
        if (i > pivot && !o->members[i].required) node = GRAM_OPTIONAL(node);
        if (!weft__gram_push(g, &o->items, node)) return -1;
    }
    weft__gram_push(g, &o->items, weft__gram_schema_more_others(o, 0, UINT32_MAX));
    return weft__gram_seq_from(g, &o->items, 0);
}

/* Members of which each may be absent: one that is the first, then what may follow it. */
static int32_t members_from_any(weft__gram_schema_members *o)
{
    weft__gram *g = o->g;
    int32_t rest = weft__gram_schema_part(o, "rest", o->n);
    weft__gram_define(g, rest, weft__gram_schema_more_others(o, 0, UINT32_MAX));
    if (o->others >= 0) weft__gram_push(g, &o->items, GRAM_SEQ(GRAM_REF(o->others), GRAM_REF(rest)));
    for (size_t i = o->n; i-- > 0 && !weft__gram_schema_failed(o->c);) {
        if (o->members[i].forbidden) continue;
        int32_t first = weft__gram_schema_member_node(o, &o->members[i]);
        weft__gram_push(g, &o->items, GRAM_SEQ(first, GRAM_REF(rest)));
        if (i == 0) break;
        int32_t sign = weft__gram_schema_comma(g), again = weft__gram_schema_member_node(o, &o->members[i]),
                next = weft__gram_schema_part(o, "rest", i);
        int32_t maybe = GRAM_OPTIONAL(GRAM_SEQ(sign, again));
        weft__gram_define(g, next, GRAM_SEQ(maybe, GRAM_REF(rest)));
        rest = next;
    }
    return o->items.n ? weft__gram_alt_from(g, &o->items, 0) : -1;
}

/* How many members there may be. 0: as many as the schema's properties and others make, without counting. */
static int read_counts(weft__gram_schema_members *o, uint32_t *low, uint32_t *high)
{
    size_t required = 0, most = 0;
    weft__gram_schema_count(o->c, o->schema, o->at, "minProperties", low);
    weft__gram_schema_count(o->c, o->schema, o->at, "maxProperties", high);
    for (size_t i = 0; i < o->n; i++) {
        required += o->members[i].required != 0;
        most += !o->members[i].forbidden;
    }
    if (*low > *high) weft__gram_schema_fail(o->c, WEFT_ARGUMENT, o->at, "minProperties", "is above maxProperties");
    return *low > required || (*high != UINT32_MAX && (o->others >= 0 || most > *high));
}

/* What stands between the braces, where members need not be counted. */
static int32_t uncounted(weft__gram_schema_members *o)
{
    weft__gram *g = o->g;
    size_t pivot = 0;
    while (pivot < o->n && !o->members[pivot].required) pivot++;
    int32_t members = pivot < o->n ? members_around(o, pivot) : members_from_any(o);
    if (weft__gram_schema_failed(o->c)) return -1;
    if (members < 0) return GRAM_TEXT("");
    int32_t inside = GRAM_SEQ(members, GRAM_REF(GRAM_RULE("ws")));
    return pivot == o->n ? GRAM_OPTIONAL(inside) : inside;
}

static int names_properties(const weft__json *schema)
{
    return weft__json_size(weft__json_get(schema, "properties")) > 0 &&
           !weft__json_size(weft__json_get(schema, "patternProperties")) && !weft__json_get(schema, "propertyNames");
}

int32_t weft__gram_schema_object(weft__gram_schema *c, const weft__json *schema, const char *at)
{
    weft__gram *g = weft__gram_schema_rules(c);
    weft__gram_schema_members o = {.c = c, .g = g, .at = at, .schema = schema, .others = -1};
    uint32_t low = 0, high = UINT32_MAX;
    int32_t node = -1;
    o.more = weft__json_get(schema, "additionalProperties");
    o.closed = weft__gram_schema_is_false(o.more) || (!o.more && c->closed && names_properties(schema));
    if (!collect_members(&o)) goto done;
    weft__gram_schema_define_others(&o);
    if (weft__gram_schema_failed(c)) goto done;
    const int counted = read_counts(&o, &low, &high);
    if (counted && c->any_order)
        weft__gram_schema_fail(c, WEFT_UNSUPPORTED, at, low ? "minProperties" : "maxProperties",
                               "is not supported where members stand in any order");
    if (weft__gram_schema_failed(c)) goto done;
    int32_t inside = counted        ? weft__gram_schema_counted(&o, low, high)
                     : c->any_order ? weft__gram_schema_any_order(&o)
                                    : uncounted(&o);
    if (weft__gram_schema_failed(c)) goto done;
    int32_t open = GRAM_TEXT("{"), blank = GRAM_REF(GRAM_RULE("ws"));
    node = GRAM_SEQ(open, blank, inside, GRAM_TEXT("}"));
done:
    weft__free(o.items.items);
    weft__free(o.members);
    return weft__gram_schema_failed(c) ? -1 : node;
}
