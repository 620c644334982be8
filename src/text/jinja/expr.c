// SPDX-License-Identifier: Apache-2.0
/* expr.c: the value of an expression (eval.h), by walking its tree. */
#include <string.h>

#include "text/jinja/eval.h"

weft_status weft__jinja_scope_create(weft__jinja_ctx *c, weft__jinja_scope *parent, const weft__jinja_body *body,
                                     weft__jinja_scope **out)
{
    weft__jinja_scope *scope = weft__jinja_alloc(c, sizeof *scope);
    if (!scope) return WEFT__JINJA_NO_ROOM(c);
    memset(scope, 0, sizeof *scope);
    scope->parent = parent;
    for (size_t i = 0; body && i < body->n_unset; i++) {
        WEFT__JINJA_TRY(weft__jinja_scope_set(c, scope, body->unset[i], weft__jinja_of(WEFT__JINJA_MISSING)));
    }
    *out = scope;
    return WEFT_OK;
}

weft_status weft__jinja_scope_set(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_str *name,
                                  weft__jinja_val value)
{
    for (size_t i = 0; i < scope->n; i++) {
        if (scope->vars[i].name != name) continue;
        scope->vars[i].value = value;
        return WEFT_OK;
    }
    WEFT__JINJA_TRY(weft__jinja_grow(c, &scope->vars, &scope->capacity, scope->n + 1, sizeof *scope->vars));
    scope->vars[scope->n++] = (weft__jinja_var){name, value};
    return WEFT_OK;
}

const weft__jinja_val *weft__jinja_scope_find(const weft__jinja_scope *scope, const weft__jinja_str *name)
{
    for (; scope; scope = scope->parent) {
        for (size_t i = 0; i < scope->n; i++) {
            if (scope->vars[i].name == name) return &scope->vars[i].value;
        }
    }
    return NULL;
}

void weft__jinja_scope_keep(weft__jinja_scope *scope)
{
    for (; scope && !scope->kept; scope = scope->parent) scope->kept = 1;
}

static weft_status eval_name(weft__jinja_ctx *c, const weft__jinja_scope *scope, const weft__jinja_str *name,
                             weft__jinja_val *out)
{
    const weft__jinja_val *found = weft__jinja_scope_find(scope, name);
    if (found) {
        *out = found->type == WEFT__JINJA_MISSING ? weft__jinja_undefined(weft__jinja_of(WEFT__JINJA_MISSING), name)
                                                  : *found;
        return WEFT_OK;
    }
    const weft__jinja_entry *e = weft__jinja_dict_find_str(c->globals, name);
    if (e) {
        *out = e->value;
        return WEFT_OK;
    }
    const weft__jinja_function *f = weft__jinja_global(name);
    if (!f || (!c->has_now && weft__jinja_str_is(name, "strftime_now"))) {
        *out = weft__jinja_undefined(weft__jinja_of(WEFT__JINJA_MISSING), name);
        return WEFT_OK;
    }
    *out = weft__jinja_of(WEFT__JINJA_FUNCTION);
    out->u.function = f;
    return WEFT_OK;
}

static weft_status eval_items(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                              weft__jinja_type type, weft__jinja_val *out)
{
    weft__jinja_val list, item;
    WEFT__JINJA_TRY(weft__jinja_new_list(c, type, node->n_items, &list));
    for (size_t i = 0; i < node->n_items; i++) {
        WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->items[i], &item));
        WEFT__JINJA_TRY(weft__jinja_append(c, list.u.list, item));
    }
    *out = list;
    return WEFT_OK;
}

static weft_status eval_dict(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                             weft__jinja_val *out)
{
    weft__jinja_val dict, key, value;
    WEFT__JINJA_TRY(weft__jinja_new_dict(c, &dict));
    for (size_t i = 0; i < node->n_items; i += 2) {
        WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->items[i], &key));
        WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->items[i + 1], &value));
        WEFT__JINJA_TRY(weft__jinja_dict_set(c, dict.u.dict, key, value));
    }
    *out = dict;
    return WEFT_OK;
}

static weft_status eval_concat(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                               weft__jinja_val *out)
{
    weft__jinja_buf b = {0};
    for (size_t i = 0; i < node->n_items; i++) {
        weft__jinja_val item;
        WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->items[i], &item));
        WEFT__JINJA_TRY(weft__jinja_put_value(c, &b, item));
    }
    return weft__jinja_buf_finish(c, &b, out);
}

static weft_status eval_slice(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                              weft__jinja_val *out)
{
    weft__jinja_val v, bounds[3] = {weft__jinja_none(), weft__jinja_none(), weft__jinja_none()};
    WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->a, &v));
    for (int i = 0; i < 3; i++) {
        if (node->items[i]) WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->items[i], &bounds[i]));
    }
    c->line = node->line;
    return weft__jinja_getslice(c, v, bounds[0], bounds[1], bounds[2], out);
}

static weft_status eval_sign(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                             weft__jinja_val *out)
{
    weft__jinja_val v;
    WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->a, &v));
    if (v.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, v);
    if (!weft__jinja_is_number(v))
        return weft__jinja_fail(c, WEFT_ARGUMENT, "'%s' has no sign", weft__jinja_type_name(v));
    if (node->kind == WEFT__JINJA_NODE_NEG && v.type == WEFT__JINJA_FLOAT) {
        *out = weft__jinja_float(-v.u.f);
        return WEFT_OK;
    }
    weft__jinja_op op = node->kind == WEFT__JINJA_NODE_NEG ? WEFT__JINJA_SUB : WEFT__JINJA_ADD;
    return weft__jinja_arithmetic(c, op, weft__jinja_int(0), v, out);
}

static weft_status eval_logic(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                              weft__jinja_val *out)
{
    WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->a, out));
    if (weft__jinja_truthy(*out) == (node->kind == WEFT__JINJA_NODE_OR)) return WEFT_OK;
    return weft__jinja_eval(c, scope, node->b, out);
}

static weft_status eval_compare(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                                weft__jinja_val *out)
{
    weft__jinja_val left, right;
    int holds = 1;
    WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->a, &left));
    for (size_t i = 0; i < node->n_items && holds; i++) {
        WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->items[i], &right));
        c->line = node->line;
        WEFT__JINJA_TRY(weft__jinja_compare(c, node->ops[i], left, right, &holds));
        left = right;
    }
    *out = weft__jinja_bool(holds);
    return WEFT_OK;
}

static weft_status eval_cond(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                             weft__jinja_val *out)
{
    weft__jinja_val condition;
    WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->a, &condition));
    if (weft__jinja_truthy(condition)) return weft__jinja_eval(c, scope, node->b, out);
    if (node->c) return weft__jinja_eval(c, scope, node->c, out);
    *out = weft__jinja_undefined(weft__jinja_of(WEFT__JINJA_MISSING), NULL);
    return WEFT_OK;
}

/* ---- calls ---- */

typedef struct arguments {
    weft__jinja_val *pos, *named;
    const weft__jinja_str **names;
    size_t n_pos, n_named, pos_capacity, named_capacity, names_capacity;
} arguments;

static weft_status add_pos(weft__jinja_ctx *c, arguments *a, weft__jinja_val v)
{
    WEFT__JINJA_TRY(weft__jinja_grow(c, &a->pos, &a->pos_capacity, a->n_pos + 1, sizeof *a->pos));
    a->pos[a->n_pos++] = v;
    return WEFT_OK;
}

static weft_status add_named(weft__jinja_ctx *c, arguments *a, const weft__jinja_str *name, weft__jinja_val v)
{
    for (size_t i = 0; i < a->n_named; i++) {
        if (!weft__jinja_str_eq(a->names[i], name)) continue;
        return weft__jinja_fail(c, WEFT_ARGUMENT, "argument '%.*s' is given twice", (int)name->len, name->data);
    }
    WEFT__JINJA_TRY(weft__jinja_grow(c, &a->named, &a->named_capacity, a->n_named + 1, sizeof *a->named));
    WEFT__JINJA_TRY(weft__jinja_grow(c, &a->names, &a->names_capacity, a->n_named + 1, sizeof *a->names));
    a->names[a->n_named] = name;
    a->named[a->n_named++] = v;
    return WEFT_OK;
}

static weft_status add_starred(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_call_args *from,
                               arguments *a)
{
    weft__jinja_val v;
    if (from->star) {
        WEFT__JINJA_TRY(weft__jinja_eval(c, scope, from->star, &v));
        WEFT__JINJA_TRY(weft__jinja_to_list(c, v, WEFT__JINJA_LIST, &v));
        for (size_t i = 0; i < v.u.list->n; i++) WEFT__JINJA_TRY(add_pos(c, a, v.u.list->items[i]));
    }
    if (!from->star_star) return WEFT_OK;
    WEFT__JINJA_TRY(weft__jinja_eval(c, scope, from->star_star, &v));
    if (v.type != WEFT__JINJA_DICT)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "'**' needs a dict, not '%s'", weft__jinja_type_name(v));
    for (size_t i = 0; i < v.u.dict->n; i++) {
        const weft__jinja_entry *e = &v.u.dict->entries[i];
        if (e->key.type != WEFT__JINJA_STRING) return weft__jinja_fail(c, WEFT_ARGUMENT, "'**' needs strings as keys");
        WEFT__JINJA_TRY(weft__jinja_spend(c, a->n_named));
        WEFT__JINJA_TRY(add_named(c, a, e->key.u.s, e->value));
    }
    return WEFT_OK;
}

static weft_status eval_args(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_call_args *from,
                             arguments *a)
{
    if (!from) return WEFT_OK;
    for (size_t i = 0; i < from->n_pos; i++) {
        weft__jinja_val v;
        WEFT__JINJA_TRY(weft__jinja_eval(c, scope, from->pos[i], &v));
        WEFT__JINJA_TRY(add_pos(c, a, v));
    }
    for (size_t i = 0; i < from->n_named; i++) {
        weft__jinja_val v;
        WEFT__JINJA_TRY(weft__jinja_eval(c, scope, from->named[i], &v));
        WEFT__JINJA_TRY(add_named(c, a, from->names[i], v));
    }
    return add_starred(c, scope, from, a);
}

static weft__jinja_args as_args(const arguments *a)
{
    return (weft__jinja_args){
        .pos = a->pos, .n_pos = a->n_pos, .names = a->names, .named = a->named, .n_named = a->n_named};
}

weft_status weft__jinja_call_function(weft__jinja_ctx *c, const weft__jinja_function *f, weft__jinja_val self,
                                      const weft__jinja_args *args, weft__jinja_val *out)
{
    if (!f->call) return weft__jinja_fail(c, WEFT_UNSUPPORTED, "'%s' is not supported", f->name);
    return f->call(c, self, args, out);
}

static weft_status call_value(weft__jinja_ctx *c, weft__jinja_val f, const weft__jinja_args *args, weft__jinja_val *out)
{
    switch (f.type) {
    case WEFT__JINJA_FUNCTION: return weft__jinja_call_function(c, f.u.function, weft__jinja_none(), args, out);
    case WEFT__JINJA_METHOD: return weft__jinja_call_function(c, f.u.method->function, f.u.method->self, args, out);
    case WEFT__JINJA_MACRO: return weft__jinja_call_macro(c, f.u.macro, args, out);
    case WEFT__JINJA_LOOP: return weft__jinja_call_loop(c, f.u.loop, args, out);
    case WEFT__JINJA_UNDEFINED: return weft__jinja_fail_undefined(c, f);
    case WEFT__JINJA_OBJECT:
        if (f.u.object->is_joiner) {
            *out = f.u.object->items;
            if (!f.u.object->at++) return weft__jinja_literal(c, "", out);
            return WEFT_OK;
        }
        /* fall through */
    default: return weft__jinja_fail(c, WEFT_ARGUMENT, "'%s' cannot be called", weft__jinja_type_name(f));
    }
}

weft_status weft__jinja_eval_call(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                                  const weft__jinja_val *caller, const weft__jinja_str *caller_name,
                                  weft__jinja_val *out)
{
    weft__jinja_val f;
    arguments a = {0};
    WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->a, &f));
    WEFT__JINJA_TRY(eval_args(c, scope, node->args, &a));
    if (caller) WEFT__JINJA_TRY(add_named(c, &a, caller_name, *caller));
    c->line = node->line;
    weft__jinja_args args = as_args(&a);
    return call_value(c, f, &args, out);
}

static weft_status apply(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node, weft__jinja_val v,
                         weft__jinja_val *out)
{
    arguments a = {0};
    WEFT__JINJA_TRY(eval_args(c, scope, node->args, &a));
    c->line = node->line;
    if (!node->function) {
        return weft__jinja_fail(c, WEFT_FORMAT, "there is no %s named '%.*s'",
                                node->kind == WEFT__JINJA_NODE_FILTER ? "filter" : "test", (int)node->name->len,
                                node->name->data);
    }
    weft__jinja_args args = as_args(&a);
    return weft__jinja_call_function(c, node->function, v, &args, out);
}

weft_status weft__jinja_eval_filters(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                                     const weft__jinja_val *captured, weft__jinja_val *out)
{
    weft__jinja_val v;
    if (!node) {
        *out = *captured;
        return WEFT_OK;
    }
    /* Filters apply from the inside out; the chain is as deep as the parser allows. */
    WEFT__JINJA_TRY(weft__jinja_enter(c));
    if (node->a && !captured) {
        WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->a, &v));
    } else {
        WEFT__JINJA_TRY(weft__jinja_eval_filters(c, scope, node->a, captured, &v));
    }
    weft__jinja_leave(c);
    return apply(c, scope, node, v, out);
}

static weft_status eval_test(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                             weft__jinja_val *out)
{
    weft__jinja_val v;
    WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->a, &v));
    return apply(c, scope, node, v, out);
}

static weft_status eval_two(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                            weft__jinja_val *out)
{
    weft__jinja_val a, b;
    WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->a, &a));
    WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->b, &b));
    c->line = node->line;
    if (node->kind == WEFT__JINJA_NODE_ITEM) return weft__jinja_getitem(c, a, b, out);
    return weft__jinja_arithmetic(c, node->op, a, b, out);
}

static weft_status eval_one(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                            weft__jinja_val *out)
{
    weft__jinja_val v;
    WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->a, &v));
    c->line = node->line;
    if (node->kind == WEFT__JINJA_NODE_ATTR) return weft__jinja_getattr(c, v, node->name, out);
    *out = weft__jinja_bool(!weft__jinja_truthy(v));
    return WEFT_OK;
}

static weft_status eval_inner(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                              weft__jinja_val *out)
{
    switch (node->kind) {
    case WEFT__JINJA_NODE_LIST: return eval_items(c, scope, node, WEFT__JINJA_LIST, out);
    case WEFT__JINJA_NODE_TUPLE: return eval_items(c, scope, node, WEFT__JINJA_TUPLE, out);
    case WEFT__JINJA_NODE_DICT: return eval_dict(c, scope, node, out);
    case WEFT__JINJA_NODE_CONCAT: return eval_concat(c, scope, node, out);
    case WEFT__JINJA_NODE_ATTR:
    case WEFT__JINJA_NODE_NOT: return eval_one(c, scope, node, out);
    case WEFT__JINJA_NODE_ITEM:
    case WEFT__JINJA_NODE_BINARY: return eval_two(c, scope, node, out);
    case WEFT__JINJA_NODE_SLICE: return eval_slice(c, scope, node, out);
    case WEFT__JINJA_NODE_CALL: return weft__jinja_eval_call(c, scope, node, NULL, NULL, out);
    case WEFT__JINJA_NODE_FILTER: return weft__jinja_eval_filters(c, scope, node, NULL, out);
    case WEFT__JINJA_NODE_TEST: return eval_test(c, scope, node, out);
    case WEFT__JINJA_NODE_COND: return eval_cond(c, scope, node, out);
    case WEFT__JINJA_NODE_NEG:
    case WEFT__JINJA_NODE_POS: return eval_sign(c, scope, node, out);
    case WEFT__JINJA_NODE_AND:
    case WEFT__JINJA_NODE_OR: return eval_logic(c, scope, node, out);
    case WEFT__JINJA_NODE_COMPARE: return eval_compare(c, scope, node, out);
    default: return weft__jinja_fail(c, WEFT_INTERNAL, "a statement stands where an expression should");
    }
}

weft_status weft__jinja_eval(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                             weft__jinja_val *out)
{
    c->line = node->line;
    WEFT__JINJA_TRY(weft__jinja_spend(c, 1));
    if (node->kind == WEFT__JINJA_NODE_CONST) {
        *out = node->value;
        return WEFT_OK;
    }
    if (node->kind == WEFT__JINJA_NODE_NAME) return eval_name(c, scope, node->name, out);
    WEFT__JINJA_TRY(weft__jinja_enter(c));
    weft_status status = eval_inner(c, scope, node, out);
    weft__jinja_leave(c);
    return status;
}
