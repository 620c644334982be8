// SPDX-License-Identifier: Apache-2.0
/* calls_members.c: arguments that a format writes one by one (calls_parts.h), in the order of the schema's
 * properties. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "text/grammar/build.h"
#include "text/grammar/calls_parts.h"

#define QUOTE "<|\"|>" /* Gemma's */
enum { LONG_MARK = 16, MAX_MEMBERS = 512, MAX_KEY = 256, MAX_FOLLOWED = 16, PLACE = 400 };

typedef struct call_member {
    const char *key; /* NULL: any */
    size_t n;
    const weft__json *schema; /* NULL: any value */
    int required;
} call_member;

typedef struct call_members {
    weft__gram_function *f;
    weft__answer_op op;
    const char *space;
    call_member *items; /* [MAX_MEMBERS] */
    size_t n;
} call_members;

/* ---- which there are ---- */

static int refuse(call_members *m, const char *key, const char *what)
{
    weft__gram_schema_fail(m->f->schema, WEFT_UNSUPPORTED, "#", key, "%s where a model writes arguments one by one",
                           what);
    return 0;
}

static int is_key(call_members *m, const char *key, size_t n)
{
    int tags = m->op == WEFT__ANSWER_ELEMENTS, ok = n > 0 && n <= MAX_KEY && !memchr(key, '\n', n);
    if (tags) ok = ok && !memchr(key, '>', n) && *key != '/';
    for (const weft__answer_step *s = m->f->format->parameter; s && s->op; s++)
        if (s->op == WEFT__ANSWER_KEY) ok = ok && !memmem(key, n, s[1].text, strlen(s[1].text));
    return ok || refuse(m, "properties", "a name that cannot be written is not supported");
}

static int put_member(call_members *m, const char *key, size_t n, const weft__json *schema)
{
    if (weft__gram_schema_is_false(schema)) return 1;
    if (!is_key(m, key, n)) return 0;
    if (m->n == MAX_MEMBERS) return refuse(m, "properties", "more than 512 properties are not supported");
    m->items[m->n++] = (call_member){key, n, schema, 0};
    return 1;
}

static int put_required(call_members *m, const weft__json *name)
{
    const char *key;
    size_t n;
    if (!weft__json_string(name, &key, &n)) return refuse(m, "required", "what is no list of names is not supported");
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < m->n; i++) {
            if (m->items[i].n != n || memcmp(m->items[i].key, key, n)) continue;
            m->items[i].required = 1;
            return 1;
        }
        if (!again && !put_member(m, key, n, NULL)) return 0;
    }
    return refuse(m, "required", "a property that is false is not supported");
}

/* The object's schema, behind its references. */
static const weft__json *object_schema(call_members *m)
{
    static const char *const known[] = {"type", "properties", "required", "additionalProperties", "nullable"};
    const weft__json *schema = m->f->parameters, *ref;
    size_t n = 0;
    for (int i = 0; schema && i < MAX_FOLLOWED && (ref = weft__json_get(schema, "$ref")); i++)
        schema = weft__gram_schema_follow(m->f->schema, ref, "#");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) n += weft__json_get(schema, known[i]) != NULL;
    if (schema && weft__gram_schema_n_limits(schema) == n) return schema;
    if (schema) refuse(m, NULL, "keywords beside properties, required and additionalProperties are not supported");
    return NULL;
}

static int collect_members(call_members *m)
{
    const weft__json *schema = object_schema(m), *required = weft__json_get(schema, "required"),
                     *properties = weft__json_get(schema, "properties");
    weft__json_member x = {0};
    if (!schema) return 0;
    if (properties && weft__json_kind_of(properties) != WEFT__JSON_OBJECT)
        return refuse(m, "properties", "what is no object is not supported");
    while (properties && weft__json_next(properties, &x))
        if (!put_member(m, x.key, x.key_len, x.value)) return 0;
    for (size_t i = 0; i < weft__json_size(required); i++)
        if (!put_required(m, weft__json_at(required, i))) return 0;
    return 1;
}

/* ---- one of them ---- */

static int32_t key_node(const call_members *m, const call_member *x)
{
    weft__gram *g = m->f->g;
    weft__strbuf quoted = {0};
    int word = 1;
    if (!x->key)
        return GRAM_REPEAT(1, 64, GRAM_CLASS({'A', 'Z'}, {'a', 'z'}, {'0', '9'}, {'_', '_'}, {'-', '-'}, {'.', '.'}));
    for (size_t i = 0; i < x->n; i++)
        word &=
            x->key[i] == '_' || (unsigned char)(x->key[i] - '0') < 10 || (unsigned char)((x->key[i] | 32) - 'a') < 26;
    if (word || m->op == WEFT__ANSWER_PARAMETERS || m->op == WEFT__ANSWER_ELEMENTS)
        return weft__gram_text(g, x->key, x->n);
    weft__json_write_string(&quoted, x->key, x->n);
    if (quoted.failed) weft__gram_fail(g, WEFT_NO_MEMORY, "no memory for a grammar");
    int32_t node = weft__gram_text(g, quoted.data ? quoted.data : "", quoted.len);
    weft__strbuf_free(&quoted);
    return node;
}

/* What the format says of a value's type. */
static int32_t type_node(const call_members *m, const weft__answer_step *before, int string)
{
    static const char asked[] = "string=\"";
    weft__gram *g = m->f->g;
    size_t n = strlen(before->text), k = sizeof asked - 1;
    if (n >= k && !memcmp(before->text + n - k, asked, k)) return string ? GRAM_TEXT("true") : GRAM_TEXT("false");
    if (string) return GRAM_TEXT("string");
    return GRAM_ALT(GRAM_TEXT("number"), GRAM_TEXT("integer"), GRAM_TEXT("boolean"), GRAM_TEXT("object"),
                    GRAM_TEXT("array"), GRAM_TEXT("null"));
}

/* What parameters begin with: a long one stands once in the grammar, for large sets of functions. */
static int32_t first_mark(weft__gram *g, const char *text)
{
    size_t n = strlen(text);
    if (n < LONG_MARK) return weft__gram_marker(g, text, n);
    int32_t rule = GRAM_RULE("parameter");
    if (!weft__gram_defined(g, rule)) weft__gram_define(g, rule, weft__gram_marker(g, text, n));
    weft__gram_call(g, rule);
    return GRAM_REF(rule);
}

static int32_t parameter_with(const call_members *m, const call_member *x, int32_t value, int string)
{
    weft__gram *g = m->f->g;
    int32_t items[40];
    size_t n = 0;
    for (const weft__answer_step *s = m->f->format->parameter; s->op && n < 36; s++) {
        if (s->op == WEFT__ANSWER_KEY) items[n++] = key_node(m, x);
        else if (s->op == WEFT__ANSWER_TYPE) items[n++] = type_node(m, s - 1, string);
        else if (s->op != WEFT__ANSWER_VALUE)
            items[n++] =
                s == m->f->format->parameter ? first_mark(g, s->text) : weft__gram_marker(g, s->text, strlen(s->text));
        else items[n++] = value;
    }
    items[n++] = weft__gram_text(g, m->space, strlen(m->space));
    return weft__gram_seq(g, items, n);
}

/* What ends a value. */
static const char *mark_of(const call_members *m, int *typed)
{
    const char *mark = m->op == WEFT__ANSWER_PAIRS ? QUOTE : m->f->format->tag;
    *typed = m->op == WEFT__ANSWER_PAIRS;
    if (m->op != WEFT__ANSWER_PARAMETERS) return mark;
    for (const weft__answer_step *s = m->f->format->parameter; s->op; s++) {
        if (s->op == WEFT__ANSWER_TYPE) *typed = 1;
        if (s->op == WEFT__ANSWER_VALUE) mark = s[1].text;
    }
    return mark;
}

static int32_t member_element(const call_members *m, const call_member *x, int32_t value)
{
    weft__gram *g = m->f->g;
    const char *tag = m->f->format->tag;
    int32_t begin = weft__gram_marker(g, tag, strlen(tag)), end = weft__gram_marker(g, tag, strlen(tag));
    int32_t name = key_node(m, x), again = key_node(m, x), open = GRAM_TEXT("<"), opened = GRAM_TEXT(">");
    int32_t close = GRAM_TEXT("</");
    return GRAM_SEQ(begin, open, name, opened, value, end, close, again, GRAM_TEXT(">"));
}

static int32_t either(weft__gram *g, int32_t a, int32_t b)
{
    return a < 0 ? b : b < 0 ? a : GRAM_ALT(a, b);
}

/* On lines of their own; any string may end without one, for the parser takes one away if it is there. */
static void put_on_lines(weft__gram *g, weft__gram_value *v)
{
    int32_t begin = GRAM_TEXT("\n"), end = v->any_text ? GRAM_TEXT("") : GRAM_TEXT("\n");
    if (v->text >= 0) v->text = GRAM_SEQ(begin, v->text, end);
    if (v->json < 0) return;
    int32_t before = GRAM_TEXT("\n");
    v->json = GRAM_SEQ(before, v->json, GRAM_TEXT("\n"));
}

static int32_t member_node(call_members *m, const call_member *x)
{
    weft__gram *g = m->f->g;
    char place[PLACE];
    int typed;
    snprintf(place, sizeof place, "#/properties/%.*s", (int)x->n, x->key ? x->key : "");
    if (m->op == WEFT__ANSWER_KEYWORDS) {
        int32_t key = key_node(m, x), sign = GRAM_TEXT("=");
        int32_t value = x->schema ? weft__gram_schema_use(m->f->schema, x->schema, place, NULL, NULL)
                                  : GRAM_REF(GRAM_RULE("value"));
        return GRAM_SEQ(key, sign, value);
    }
    const char *mark = mark_of(m, &typed);
    weft__gram_value v = weft__gram_value_of(m->f, x->schema, place, mark, typed);
    if (weft__gram_failed(g)) return -1;
    if (m->op == WEFT__ANSWER_PARAMETERS && m->f->format->values & WEFT__ANSWER_LINES) put_on_lines(g, &v);
    if (m->op == WEFT__ANSWER_ELEMENTS) return member_element(m, x, either(g, v.text, v.json));
    if (m->op == WEFT__ANSWER_PARAMETERS) {
        if (!typed) return parameter_with(m, x, either(g, v.text, v.json), 0);
        return either(g, v.text < 0 ? -1 : parameter_with(m, x, v.text, 1),
                      v.json < 0 ? -1 : parameter_with(m, x, v.json, 0));
    }
    if (v.text >= 0) {
        int32_t open = weft__gram_marker(g, QUOTE, sizeof QUOTE - 1),
                close = weft__gram_marker(g, QUOTE, sizeof QUOTE - 1);
        v.text = GRAM_SEQ(open, v.text, close);
    }
    int32_t key = key_node(m, x), sign = GRAM_TEXT(":");
    return GRAM_SEQ(key, sign, either(g, v.text, v.json));
}

/* ---- all of them ---- */

static int32_t part(const call_members *m, const char *what, size_t i)
{
    char name[64];
    snprintf(name, sizeof name, "function %zu %s %zu %d", m->f->number, what, i, (int)m->op);
    return weft__gram_rule(m->f->g, name, strlen(name));
}

/* Between brackets, with commas: from the member i on, when none or when one was written. */
static int32_t listed(call_members *m, const char *comma)
{
    weft__gram *g = m->f->g;
    for (size_t i = 0; i <= m->n; i++) {
        int32_t first = part(m, "first", i), more = part(m, "more", i);
        if (i == m->n) {
            weft__gram_define(g, first, GRAM_TEXT(""));
            weft__gram_define(g, more, GRAM_TEXT(""));
            break;
        }
        int32_t next = part(m, "more", i + 1), value = part(m, "member", i);
        weft__gram_define(g, value, member_node(m, &m->items[i]));
        int32_t begun = GRAM_SEQ(GRAM_REF(value), GRAM_REF(next));
        if (!m->items[i].required) begun = GRAM_ALT(begun, GRAM_REF(part(m, "first", i + 1)));
        weft__gram_define(g, first, begun);
        int32_t sign = weft__gram_text(g, comma, strlen(comma)), written = GRAM_SEQ(sign, GRAM_REF(value));
        if (!m->items[i].required) written = GRAM_OPTIONAL(written);
        weft__gram_define(g, more, GRAM_SEQ(written, GRAM_REF(next)));
    }
    return GRAM_REF(part(m, "first", 0));
}

/* Any names, where nothing is known of them. */
static int32_t any_members(call_members *m, const char *comma)
{
    weft__gram *g = m->f->g;
    int32_t value = part(m, "any", 0);
    weft__gram_define(g, value, member_node(m, &(call_member){0}));
    if (m->op == WEFT__ANSWER_PARAMETERS) return GRAM_ANY_NUMBER(GRAM_REF(value));
    int32_t first = GRAM_REF(value), sign = weft__gram_text(g, comma, strlen(comma));
    return GRAM_OPTIONAL(GRAM_SEQ(first, GRAM_ANY_NUMBER(GRAM_SEQ(sign, GRAM_REF(value)))));
}

static int32_t members_node(call_members *m)
{
    weft__gram *g = m->f->g;
    int keywords = m->op == WEFT__ANSWER_KEYWORDS, pairs = m->op == WEFT__ANSWER_PAIRS, any = !m->f->parameters;
    const char *comma = keywords ? ", " : ",";
    if (any && m->op == WEFT__ANSWER_ELEMENTS) return GRAM_TEXT("");
    if (!any && !collect_members(m)) return -1;
    if (keywords || pairs) {
        int32_t open = keywords ? GRAM_TEXT("(") : GRAM_TEXT("{");
        int32_t inside = any ? any_members(m, comma) : listed(m, comma);
        return GRAM_SEQ(open, inside, keywords ? GRAM_TEXT(")") : GRAM_TEXT("}"));
    }
    if (any) return any_members(m, comma);
    int32_t *nodes = weft__alloc_array(m->n + 1, sizeof *nodes), node;
    if (!nodes) weft__gram_fail(g, WEFT_NO_MEMORY, "no memory for a grammar");
    for (size_t i = 0; nodes && i < m->n; i++) {
        nodes[i] = member_node(m, &m->items[i]);
        if (!m->items[i].required) nodes[i] = GRAM_OPTIONAL(nodes[i]);
    }
    node = weft__gram_failed(g) ? -1 : m->n ? weft__gram_seq(g, nodes, m->n) : GRAM_TEXT("");
    weft__free(nodes);
    return node;
}

int32_t weft__gram_members(weft__gram_function *f, weft__answer_op op, const char *space)
{
    call_members m = {.f = f, .op = op, .space = space};
    int32_t all = part(&m, space, 0);
    if (weft__gram_failed(f->g)) return -1;
    if (weft__gram_defined(f->g, all)) return weft__gram_ref(f->g, all);
    if (!(m.items = weft__alloc_array(MAX_MEMBERS, sizeof *m.items)))
        weft__gram_fail(f->g, WEFT_NO_MEMORY, "no memory for a grammar");
    weft__gram_define(f->g, all, m.items ? members_node(&m) : -1);
    weft__free(m.items);
    return weft__gram_ref(f->g, all);
}
