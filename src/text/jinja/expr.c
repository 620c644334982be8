/* expr.c: the value of an expression (eval.h), by walking its tree. */
#include <string.h>

#include "text/jinja/eval.h"

weft_status weft__j_scope_create(weft__jctx *c, weft__jscope *parent, const weft__jbody *body, weft__jscope **out)
{
    weft__jscope *scope = weft__j_alloc(c, sizeof *scope);
    if (!scope) return WEFT__J_NO_ROOM(c);
    memset(scope, 0, sizeof *scope);
    scope->parent = parent;
    for (size_t i = 0; body && i < body->n_unset; i++) {
        WEFT__J_TRY(weft__j_scope_set(c, scope, body->unset[i], weft__j_of(WEFT__J_MISSING)));
    }
    *out = scope;
    return WEFT_OK;
}

weft_status weft__j_scope_set(weft__jctx *c, weft__jscope *scope, const weft__jstr *name, weft__jval value)
{
    for (size_t i = 0; i < scope->n; i++) {
        if (scope->vars[i].name != name) continue;
        scope->vars[i].value = value;
        return WEFT_OK;
    }
    WEFT__J_TRY(weft__j_grow(c, &scope->vars, &scope->capacity, scope->n + 1, sizeof *scope->vars));
    scope->vars[scope->n++] = (weft__jvar){name, value};
    return WEFT_OK;
}

const weft__jval *weft__j_scope_find(const weft__jscope *scope, const weft__jstr *name)
{
    for (; scope; scope = scope->parent) {
        for (size_t i = 0; i < scope->n; i++) {
            if (scope->vars[i].name == name) return &scope->vars[i].value;
        }
    }
    return NULL;
}

void weft__j_scope_keep(weft__jscope *scope)
{
    for (; scope && !scope->kept; scope = scope->parent) scope->kept = 1;
}

static weft_status eval_name(weft__jctx *c, const weft__jscope *scope, const weft__jstr *name, weft__jval *out)
{
    const weft__jval *found = weft__j_scope_find(scope, name);
    if (found) {
        *out = found->type == WEFT__J_MISSING ? weft__j_undefined(weft__j_of(WEFT__J_MISSING), name) : *found;
        return WEFT_OK;
    }
    const weft__jentry *e = weft__j_dict_find_str(c->globals, name);
    if (e) {
        *out = e->value;
        return WEFT_OK;
    }
    const weft__jfunction *f = weft__j_global(name);
    if (!f || (!c->has_now && weft__j_str_is(name, "strftime_now"))) {
        *out = weft__j_undefined(weft__j_of(WEFT__J_MISSING), name);
        return WEFT_OK;
    }
    *out = weft__j_of(WEFT__J_FUNCTION);
    out->u.function = f;
    return WEFT_OK;
}

static weft_status eval_items(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, weft__jtype type, weft__jval *out)
{
    weft__jval list, item;
    WEFT__J_TRY(weft__j_new_list(c, type, node->n_items, &list));
    for (size_t i = 0; i < node->n_items; i++) {
        WEFT__J_TRY(weft__j_eval(c, scope, node->items[i], &item));
        WEFT__J_TRY(weft__j_append(c, list.u.list, item));
    }
    *out = list;
    return WEFT_OK;
}

static weft_status eval_dict(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, weft__jval *out)
{
    weft__jval dict, key, value;
    WEFT__J_TRY(weft__j_new_dict(c, &dict));
    for (size_t i = 0; i < node->n_items; i += 2) {
        WEFT__J_TRY(weft__j_eval(c, scope, node->items[i], &key));
        WEFT__J_TRY(weft__j_eval(c, scope, node->items[i + 1], &value));
        WEFT__J_TRY(weft__j_dict_set(c, dict.u.dict, key, value));
    }
    *out = dict;
    return WEFT_OK;
}

static weft_status eval_concat(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, weft__jval *out)
{
    weft__jbuf b = {0};
    for (size_t i = 0; i < node->n_items; i++) {
        weft__jval item;
        WEFT__J_TRY(weft__j_eval(c, scope, node->items[i], &item));
        WEFT__J_TRY(weft__j_put_value(c, &b, item));
    }
    return weft__j_buf_finish(c, &b, out);
}

static weft_status eval_slice(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, weft__jval *out)
{
    weft__jval v, bounds[3] = {weft__j_none(), weft__j_none(), weft__j_none()};
    WEFT__J_TRY(weft__j_eval(c, scope, node->a, &v));
    for (int i = 0; i < 3; i++) {
        if (node->items[i]) WEFT__J_TRY(weft__j_eval(c, scope, node->items[i], &bounds[i]));
    }
    c->line = node->line;
    return weft__j_getslice(c, v, bounds[0], bounds[1], bounds[2], out);
}

static weft_status eval_sign(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, weft__jval *out)
{
    weft__jval v;
    WEFT__J_TRY(weft__j_eval(c, scope, node->a, &v));
    if (v.type == WEFT__J_UNDEFINED) return weft__j_fail_undefined(c, v);
    if (!weft__j_is_number(v)) return weft__j_fail(c, WEFT_ARGUMENT, "'%s' has no sign", weft__j_type_name(v));
    if (node->kind == WEFT__JN_NEG && v.type == WEFT__J_FLOAT) {
        *out = weft__j_float(-v.u.f);
        return WEFT_OK;
    }
    weft__jop op = node->kind == WEFT__JN_NEG ? WEFT__J_SUB : WEFT__J_ADD;
    return weft__j_arithmetic(c, op, weft__j_int(0), v, out);
}

static weft_status eval_logic(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, weft__jval *out)
{
    WEFT__J_TRY(weft__j_eval(c, scope, node->a, out));
    if (weft__j_truthy(*out) == (node->kind == WEFT__JN_OR)) return WEFT_OK;
    return weft__j_eval(c, scope, node->b, out);
}

static weft_status eval_compare(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, weft__jval *out)
{
    weft__jval left, right;
    int holds = 1;
    WEFT__J_TRY(weft__j_eval(c, scope, node->a, &left));
    for (size_t i = 0; i < node->n_items && holds; i++) {
        WEFT__J_TRY(weft__j_eval(c, scope, node->items[i], &right));
        c->line = node->line;
        WEFT__J_TRY(weft__j_compare(c, node->ops[i], left, right, &holds));
        left = right;
    }
    *out = weft__j_bool(holds);
    return WEFT_OK;
}

static weft_status eval_cond(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, weft__jval *out)
{
    weft__jval condition;
    WEFT__J_TRY(weft__j_eval(c, scope, node->a, &condition));
    if (weft__j_truthy(condition)) return weft__j_eval(c, scope, node->b, out);
    if (node->c) return weft__j_eval(c, scope, node->c, out);
    *out = weft__j_undefined(weft__j_of(WEFT__J_MISSING), NULL);
    return WEFT_OK;
}

/* ---- calls ---- */

typedef struct arguments {
    weft__jval *pos, *named;
    const weft__jstr **names;
    size_t n_pos, n_named, pos_capacity, named_capacity, names_capacity;
} arguments;

static weft_status add_pos(weft__jctx *c, arguments *a, weft__jval v)
{
    WEFT__J_TRY(weft__j_grow(c, &a->pos, &a->pos_capacity, a->n_pos + 1, sizeof *a->pos));
    a->pos[a->n_pos++] = v;
    return WEFT_OK;
}

static weft_status add_named(weft__jctx *c, arguments *a, const weft__jstr *name, weft__jval v)
{
    for (size_t i = 0; i < a->n_named; i++) {
        if (!weft__j_str_eq(a->names[i], name)) continue;
        return weft__j_fail(c, WEFT_ARGUMENT, "argument '%.*s' is given twice", (int)name->len, name->data);
    }
    WEFT__J_TRY(weft__j_grow(c, &a->named, &a->named_capacity, a->n_named + 1, sizeof *a->named));
    WEFT__J_TRY(weft__j_grow(c, &a->names, &a->names_capacity, a->n_named + 1, sizeof *a->names));
    a->names[a->n_named] = name;
    a->named[a->n_named++] = v;
    return WEFT_OK;
}

static weft_status add_starred(weft__jctx *c, weft__jscope *scope, const weft__jcall_args *from, arguments *a)
{
    weft__jval v;
    if (from->star) {
        WEFT__J_TRY(weft__j_eval(c, scope, from->star, &v));
        WEFT__J_TRY(weft__j_to_list(c, v, WEFT__J_LIST, &v));
        for (size_t i = 0; i < v.u.list->n; i++) WEFT__J_TRY(add_pos(c, a, v.u.list->items[i]));
    }
    if (!from->star_star) return WEFT_OK;
    WEFT__J_TRY(weft__j_eval(c, scope, from->star_star, &v));
    if (v.type != WEFT__J_DICT) return weft__j_fail(c, WEFT_ARGUMENT, "'**' needs a dict, not '%s'", weft__j_type_name(v));
    for (size_t i = 0; i < v.u.dict->n; i++) {
        const weft__jentry *e = &v.u.dict->entries[i];
        if (e->key.type != WEFT__J_STRING) return weft__j_fail(c, WEFT_ARGUMENT, "'**' needs strings as keys");
        WEFT__J_TRY(weft__j_spend(c, a->n_named));
        WEFT__J_TRY(add_named(c, a, e->key.u.s, e->value));
    }
    return WEFT_OK;
}

static weft_status eval_args(weft__jctx *c, weft__jscope *scope, const weft__jcall_args *from, arguments *a)
{
    if (!from) return WEFT_OK;
    for (size_t i = 0; i < from->n_pos; i++) {
        weft__jval v;
        WEFT__J_TRY(weft__j_eval(c, scope, from->pos[i], &v));
        WEFT__J_TRY(add_pos(c, a, v));
    }
    for (size_t i = 0; i < from->n_named; i++) {
        weft__jval v;
        WEFT__J_TRY(weft__j_eval(c, scope, from->named[i], &v));
        WEFT__J_TRY(add_named(c, a, from->names[i], v));
    }
    return add_starred(c, scope, from, a);
}

static weft__jargs as_args(const arguments *a)
{
    return (weft__jargs){.pos = a->pos, .n_pos = a->n_pos, .names = a->names, .named = a->named, .n_named = a->n_named};
}

weft_status weft__j_call_function(weft__jctx *c, const weft__jfunction *f, weft__jval self, const weft__jargs *args,
                                  weft__jval *out)
{
    if (!f->call) return weft__j_fail(c, WEFT_UNSUPPORTED, "'%s' is not supported", f->name);
    return f->call(c, self, args, out);
}

static weft_status call_value(weft__jctx *c, weft__jval f, const weft__jargs *args, weft__jval *out)
{
    switch (f.type) {
    case WEFT__J_FUNCTION: return weft__j_call_function(c, f.u.function, weft__j_none(), args, out);
    case WEFT__J_METHOD: return weft__j_call_function(c, f.u.method->function, f.u.method->self, args, out);
    case WEFT__J_MACRO: return weft__j_call_macro(c, f.u.macro, args, out);
    case WEFT__J_LOOP: return weft__j_call_loop(c, f.u.loop, args, out);
    case WEFT__J_UNDEFINED: return weft__j_fail_undefined(c, f);
    case WEFT__J_OBJECT:
        if (f.u.object->is_joiner) {
            *out = f.u.object->items;
            if (!f.u.object->at++) return weft__j_literal(c, "", out);
            return WEFT_OK;
        }
        /* fall through */
    default: return weft__j_fail(c, WEFT_ARGUMENT, "'%s' cannot be called", weft__j_type_name(f));
    }
}

weft_status weft__j_eval_call(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, const weft__jval *caller,
                              const weft__jstr *caller_name, weft__jval *out)
{
    weft__jval f;
    arguments a = {0};
    WEFT__J_TRY(weft__j_eval(c, scope, node->a, &f));
    WEFT__J_TRY(eval_args(c, scope, node->args, &a));
    if (caller) WEFT__J_TRY(add_named(c, &a, caller_name, *caller));
    c->line = node->line;
    weft__jargs args = as_args(&a);
    return call_value(c, f, &args, out);
}

static weft_status apply(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, weft__jval v, weft__jval *out)
{
    arguments a = {0};
    WEFT__J_TRY(eval_args(c, scope, node->args, &a));
    c->line = node->line;
    if (!node->function) {
        return weft__j_fail(c, WEFT_FORMAT, "there is no %s named '%.*s'", node->kind == WEFT__JN_FILTER ? "filter" : "test",
                            (int)node->name->len, node->name->data);
    }
    weft__jargs args = as_args(&a);
    return weft__j_call_function(c, node->function, v, &args, out);
}

weft_status weft__j_eval_filters(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, const weft__jval *captured,
                                 weft__jval *out)
{
    weft__jval v;
    if (!node) {
        *out = *captured;
        return WEFT_OK;
    }
    /* Filters apply from the inside out; the chain is as deep as the parser allows. */
    WEFT__J_TRY(weft__j_enter(c));
    if (node->a && !captured) {
        WEFT__J_TRY(weft__j_eval(c, scope, node->a, &v));
    } else {
        WEFT__J_TRY(weft__j_eval_filters(c, scope, node->a, captured, &v));
    }
    weft__j_leave(c);
    return apply(c, scope, node, v, out);
}

static weft_status eval_test(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, weft__jval *out)
{
    weft__jval v;
    WEFT__J_TRY(weft__j_eval(c, scope, node->a, &v));
    return apply(c, scope, node, v, out);
}

static weft_status eval_two(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, weft__jval *out)
{
    weft__jval a, b;
    WEFT__J_TRY(weft__j_eval(c, scope, node->a, &a));
    WEFT__J_TRY(weft__j_eval(c, scope, node->b, &b));
    c->line = node->line;
    if (node->kind == WEFT__JN_ITEM) return weft__j_getitem(c, a, b, out);
    return weft__j_arithmetic(c, node->op, a, b, out);
}

static weft_status eval_one(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, weft__jval *out)
{
    weft__jval v;
    WEFT__J_TRY(weft__j_eval(c, scope, node->a, &v));
    c->line = node->line;
    if (node->kind == WEFT__JN_ATTR) return weft__j_getattr(c, v, node->name, out);
    *out = weft__j_bool(!weft__j_truthy(v));
    return WEFT_OK;
}

static weft_status eval_inner(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, weft__jval *out)
{
    switch (node->kind) {
    case WEFT__JN_LIST: return eval_items(c, scope, node, WEFT__J_LIST, out);
    case WEFT__JN_TUPLE: return eval_items(c, scope, node, WEFT__J_TUPLE, out);
    case WEFT__JN_DICT: return eval_dict(c, scope, node, out);
    case WEFT__JN_CONCAT: return eval_concat(c, scope, node, out);
    case WEFT__JN_ATTR:
    case WEFT__JN_NOT: return eval_one(c, scope, node, out);
    case WEFT__JN_ITEM:
    case WEFT__JN_BINARY: return eval_two(c, scope, node, out);
    case WEFT__JN_SLICE: return eval_slice(c, scope, node, out);
    case WEFT__JN_CALL: return weft__j_eval_call(c, scope, node, NULL, NULL, out);
    case WEFT__JN_FILTER: return weft__j_eval_filters(c, scope, node, NULL, out);
    case WEFT__JN_TEST: return eval_test(c, scope, node, out);
    case WEFT__JN_COND: return eval_cond(c, scope, node, out);
    case WEFT__JN_NEG:
    case WEFT__JN_POS: return eval_sign(c, scope, node, out);
    case WEFT__JN_AND:
    case WEFT__JN_OR: return eval_logic(c, scope, node, out);
    case WEFT__JN_COMPARE: return eval_compare(c, scope, node, out);
    default: return weft__j_fail(c, WEFT_INTERNAL, "a statement stands where an expression should");
    }
}

weft_status weft__j_eval(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, weft__jval *out)
{
    c->line = node->line;
    WEFT__J_TRY(weft__j_spend(c, 1));
    if (node->kind == WEFT__JN_CONST) {
        *out = node->value;
        return WEFT_OK;
    }
    if (node->kind == WEFT__JN_NAME) return eval_name(c, scope, node->name, out);
    WEFT__J_TRY(weft__j_enter(c));
    weft_status status = eval_inner(c, scope, node, out);
    weft__j_leave(c);
    return status;
}
