// SPDX-License-Identifier: Apache-2.0
/* yaml.c: YAML's events made a tree (node.h); the only door to the library that reads them (libyaml).
 *
 * Plain scalars are what YAML 1.2's core schema says, but for infinities, NaN and numbers that are not decimal, which
 * are text. Tags, and more than one document, are refused. An alias is a copy, and counts as its nodes. */
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "config/node.h"

typedef struct anchor {
    const char *name;
    const weft__config_node *node;
} anchor;

typedef struct yaml_reader {
    yaml_parser_t parser;
    weft__arena *arena;
    weft__config_faults *faults;
    anchor anchors[WEFT__CONFIG_ANCHORS];
    size_t n_anchors, n_nodes;
    const char *text; /* [n_text] */
    size_t n_text;
    int stop; /* nothing more is read: what is wrong stands among the faults, or there was no memory */
    int no_memory;
} yaml_reader;

static void give_up(yaml_reader *r, const yaml_mark_t *at, const char *why)
{
    if (!r->stop) weft__config_fault_add(r->faults, (int)at->line + 1, (int)at->column + 1, "%s", why);
    r->stop = 1;
}

static void lacks_memory(yaml_reader *r)
{
    r->stop = r->no_memory = 1;
}

/* Where byte `at` of the text stands. */
static void place_of(const yaml_reader *r, size_t at, yaml_mark_t *mark)
{
    *mark = (yaml_mark_t){0};
    for (size_t i = 0; i < at && i < r->n_text; i++) {
        mark->column = r->text[i] == '\n' ? 0 : mark->column + 1;
        mark->line += r->text[i] == '\n';
    }
}

/* The next event, to be deleted; 0: there is none, and why was told. */
static int next(yaml_reader *r, yaml_event_t *e)
{
    char why[200];
    if (r->stop) return 0;
    if (yaml_parser_parse(&r->parser, e)) return 1;
    const yaml_parser_t *p = &r->parser;
    yaml_mark_t at = p->problem_mark;
    if (p->error == YAML_MEMORY_ERROR) {
        lacks_memory(r);
        return 0;
    }
    if (p->error == YAML_READER_ERROR) place_of(r, p->problem_offset, &at);
    snprintf(why, sizeof why, "not YAML: %s%s%s", p->problem ? p->problem : "malformed", p->context ? " " : "",
             p->context ? p->context : "");
    give_up(r, &at, why);
    return 0;
}

/* ---- scalars ---- */

static int is_one_of(const char *s, const char *const *words)
{
    while (*words && strcmp(s, *words)) words++;
    return *words != NULL;
}

static size_t digits(const char *s)
{
    return strspn(s, "0123456789");
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static weft__config_kind number_kind(const char *s)
{
    const int signed_plus = *s == '+';
    s += *s == '-' || *s == '+';
    const size_t whole = digits(s);
    s += whole;
    if (!*s && whole) return signed_plus ? WEFT__CONFIG_NUMBER : WEFT__CONFIG_INT;
    if (*s == '.') {
        const size_t part = digits(++s);
        if (!whole && !part) return WEFT__CONFIG_TEXT;
        s += part;
    } else if (!whole) {
        return WEFT__CONFIG_TEXT;
    }
    if (*s == 'e' || *s == 'E') {
        s += 1 + (s[1] == '-' || s[1] == '+');
        if (!digits(s)) return WEFT__CONFIG_TEXT;
        s += digits(s);
    }
    return *s ? WEFT__CONFIG_TEXT : WEFT__CONFIG_NUMBER;
}

static weft__config_kind scalar_kind(const char *s)
{
    static const char *const nothing[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const truths[] = {"true", "True", "TRUE", "false", "False", "FALSE", NULL};
    return is_one_of(s, nothing) ? WEFT__CONFIG_NONE : is_one_of(s, truths) ? WEFT__CONFIG_BOOL : number_kind(s);
}

/* ---- nodes ---- */

static weft__config_node *new_node(yaml_reader *r, const yaml_mark_t *at)
{
    if (++r->n_nodes > WEFT__CONFIG_NODES) {
        give_up(r, at, "too many values, those that aliases repeat included; write fewer");
        return NULL;
    }
    weft__config_node *v = weft__arena_take(r->arena, sizeof *v);
    if (!v) lacks_memory(r);
    else *v = (weft__config_node){.line = (int)at->line + 1, .column = (int)at->column + 1};
    return v;
}

static const char *keep_text(yaml_reader *r, const char *s, size_t n)
{
    const char *kept = weft__arena_string(r->arena, s, n);
    if (!kept) lacks_memory(r);
    return kept;
}

static void remember(yaml_reader *r, const yaml_char_t *name, const weft__config_node *v, const yaml_mark_t *at)
{
    if (!name || !v || r->stop) return;
    if (r->n_anchors == WEFT__CONFIG_ANCHORS) {
        give_up(r, at, "too many anchors; write fewer");
        return;
    }
    const char *kept = keep_text(r, (const char *)name, strlen((const char *)name));
    if (kept) r->anchors[r->n_anchors++] = (anchor){kept, v};
}

/* A copy of what an alias stands for, with the place of the alias for the outermost node. */
static weft__config_node *copy(yaml_reader *r, const weft__config_node *from, const yaml_mark_t *at, int depth)
{
    if (from->kind >= WEFT__CONFIG_LIST && depth == WEFT__CONFIG_DEPTH) give_up(r, at, "nested too deep");
    weft__config_node *v = r->stop ? NULL : new_node(r, at);
    if (!v) return NULL;
    v->kind = from->kind;
    v->text = from->text;
    v->n = from->n;
    weft__config_node **end = &v->first;
    for (const weft__config_node *m = from->first; m && !r->stop; m = m->next) {
        const yaml_mark_t there = {.line = (size_t)m->line - 1, .column = (size_t)m->column - 1};
        weft__config_node *c = copy(r, m, &there, depth + 1);
        if (!c) return NULL;
        c->key = m->key;
        c->key_line = m->key_line;
        c->key_column = m->key_column;
        *end = c;
        end = &c->next;
    }
    return v;
}

static weft__config_node *alias(yaml_reader *r, const yaml_event_t *e, int depth)
{
    const char *name = (const char *)e->data.alias.anchor;
    for (size_t i = r->n_anchors; i-- > 0;)
        if (!strcmp(r->anchors[i].name, name)) return copy(r, r->anchors[i].node, &e->start_mark, depth);
    give_up(r, &e->start_mark, "an alias of no anchor that ended before it");
    return NULL;
}

static weft__config_node *scalar(yaml_reader *r, const yaml_event_t *e)
{
    const char *s = (const char *)e->data.scalar.value;
    const size_t n = e->data.scalar.length;
    if (e->data.scalar.tag) give_up(r, &e->start_mark, "tags are not read; leave it out");
    if (strlen(s) != n) give_up(r, &e->start_mark, "a text with a NUL character in it");
    weft__config_node *v = r->stop ? NULL : new_node(r, &e->start_mark);
    if (!v || !(v->text = keep_text(r, s, n))) return NULL;
    v->kind = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? scalar_kind(v->text) : WEFT__CONFIG_TEXT;
    return v;
}

static weft__config_node *value(yaml_reader *r, yaml_event_t *e, int depth);

/* What follows the begin of a map or a list, up to its end, beneath v. */
static void members(yaml_reader *r, weft__config_node *v, yaml_event_type_t end, int depth)
{
    weft__config_node **last = &v->first;
    yaml_event_t e;
    while (next(r, &e)) {
        const yaml_event_type_t type = e.type;
        const yaml_mark_t at = e.start_mark;
        weft__config_node *key = NULL, *m = NULL;
        if (type == end) {
            yaml_event_delete(&e);
            return;
        }
        if (v->n == WEFT__CONFIG_MEMBERS) give_up(r, &at, "too many members here; write fewer");
        m = r->stop ? NULL : value(r, &e, depth + 1);
        yaml_event_delete(&e);
        if (m && v->kind == WEFT__CONFIG_MAP) {
            key = m;
            if (!key->text) give_up(r, &at, "a key must be a word");
            if (r->stop || !next(r, &e)) return;
            m = value(r, &e, depth + 1);
            yaml_event_delete(&e);
        }
        if (!m || r->stop) return;
        for (const weft__config_node *other = key ? v->first : NULL; other; other = other->next)
            if (!strcmp(other->key, key->text))
                weft__config_fault_add(r->faults, key->line, key->column, "'%.60s' stands here twice, first in line %d",
                                       key->text, other->key_line);
        if (key) m->key = key->text, m->key_line = key->line, m->key_column = key->column;
        *last = m;
        last = &m->next;
        v->n++;
    }
}

static weft__config_node *nested(yaml_reader *r, yaml_event_t *e, int depth)
{
    const int is_map = e->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *tag = is_map ? e->data.mapping_start.tag : e->data.sequence_start.tag;
    if (tag) give_up(r, &e->start_mark, "tags are not read; leave it out");
    if (depth == WEFT__CONFIG_DEPTH) give_up(r, &e->start_mark, "nested too deep");
    weft__config_node *v = r->stop ? NULL : new_node(r, &e->start_mark);
    if (!v) return NULL;
    v->kind = is_map ? WEFT__CONFIG_MAP : WEFT__CONFIG_LIST;
    members(r, v, is_map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT, depth);
    return r->stop ? NULL : v;
}

/* The value that an event begins. */
static weft__config_node *value(yaml_reader *r, yaml_event_t *e, int depth)
{
    weft__config_node *v = NULL;
    const yaml_char_t *name = NULL;
    switch (e->type) {
    case YAML_ALIAS_EVENT: return alias(r, e, depth);
    case YAML_SCALAR_EVENT:
        v = scalar(r, e);
        name = e->data.scalar.anchor;
        break;
    case YAML_SEQUENCE_START_EVENT:
        v = nested(r, e, depth);
        name = e->data.sequence_start.anchor;
        break;
    case YAML_MAPPING_START_EVENT:
        v = nested(r, e, depth);
        name = e->data.mapping_start.anchor;
        break;
    default: give_up(r, &e->start_mark, "a value is missing"); break;
    }
    remember(r, name, v, &e->start_mark);
    return r->stop ? NULL : v;
}

static weft__config_node *documents(yaml_reader *r)
{
    weft__config_node *root = NULL;
    int n_documents = 0, over = 0;
    yaml_event_t e;
    while (!over && next(r, &e)) {
        over = e.type == YAML_STREAM_END_EVENT;
        if (e.type == YAML_DOCUMENT_START_EVENT && n_documents++)
            give_up(r, &e.start_mark, "a second document; one file holds one");
        else if (e.type == YAML_SCALAR_EVENT || e.type == YAML_ALIAS_EVENT || e.type == YAML_SEQUENCE_START_EVENT ||
                 e.type == YAML_MAPPING_START_EVENT)
            root = value(r, &e, 0);
        yaml_event_delete(&e);
    }
    return r->stop ? NULL : root;
}

weft_status weft__config_yaml(const char *text, size_t n, weft__arena *arena, weft__config_faults *faults,
                              weft__config_node **root, weft_error *err)
{
    *root = NULL;
    if (n > WEFT__CONFIG_BYTES) {
        weft__config_fault_add(faults, 1, 1, "larger than %d bytes", WEFT__CONFIG_BYTES);
        return WEFT_OK;
    }
    yaml_reader *r = weft__arena_take(arena, sizeof *r);
    if (!r) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the settings");
    memset(r, 0, sizeof *r);
    r->arena = arena;
    r->faults = faults;
    r->text = text;
    r->n_text = n;
    if (!yaml_parser_initialize(&r->parser)) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the settings");
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, n);
    *root = documents(r);
    yaml_parser_delete(&r->parser);
    if (r->no_memory) *root = NULL;
    return r->no_memory ? weft_fail(err, WEFT_NO_MEMORY, "no memory for the settings") : WEFT_OK;
}
