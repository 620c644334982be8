// SPDX-License-Identifier: Apache-2.0
/* exec.c: running statements (eval.h). Output goes to c->out, which blocks that capture swap for a while. */
#include <string.h>

#include "text/jinja/eval.h"

/* Runs body with its output going to a string. */
static weft_status capture(weft__jinja_ctx *c, const weft__jinja *t, weft__jinja_scope *scope,
                           const weft__jinja_body *body, weft__jinja_val *out)
{
    weft__jinja_buf b = {0}, *outer = c->out;
    c->out = &b;
    weft_status status = weft__jinja_exec(c, t, scope, body);
    c->out = outer;
    return status ? status : weft__jinja_buf_finish(c, &b, out);
}

static weft_status assign(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *target,
                          weft__jinja_val value)
{
    if (target->kind == WEFT__JINJA_NODE_NAME) return weft__jinja_scope_set(c, scope, target->name, value);
    if (target->kind == WEFT__JINJA_NODE_NSREF) {
        const weft__jinja_val *space = weft__jinja_scope_find(scope, target->name);
        if (!space || space->type != WEFT__JINJA_NAMESPACE) {
            return weft__jinja_fail(c, WEFT_ARGUMENT, "an attribute can be set on a namespace only, and '%.*s' is none",
                                    (int)target->name->len, target->name->data);
        }
        return weft__jinja_dict_set(c, space->u.dict, weft__jinja_of_str(target->attr), value);
    }
    weft__jinja_val list;
    if (value.type == WEFT__JINJA_UNDEFINED && target->n_items) return weft__jinja_fail_undefined(c, value);
    WEFT__JINJA_TRY(weft__jinja_to_list(c, value, WEFT__JINJA_LIST, &list));
    if (list.u.list->n != target->n_items) {
        return weft__jinja_fail(c, WEFT_ARGUMENT, "%zu names cannot take %zu values", target->n_items, list.u.list->n);
    }
    for (size_t i = 0; i < target->n_items; i++)
        WEFT__JINJA_TRY(assign(c, scope, target->items[i], list.u.list->items[i]));
    return WEFT_OK;
}

static weft_status exec_if(weft__jinja_ctx *c, const weft__jinja *t, weft__jinja_scope *scope,
                           const weft__jinja_node *node)
{
    for (size_t i = 0; i < node->n_items; i++) {
        weft__jinja_val condition;
        WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->items[i], &condition));
        if (weft__jinja_truthy(condition)) return weft__jinja_exec(c, t, scope, &node->bodies[i]);
    }
    return node->n_bodies > node->n_items ? weft__jinja_exec(c, t, scope, &node->bodies[node->n_items]) : WEFT_OK;
}

/* ---- for ---- */

/* for ... if: walks `inner` and passes on what the condition holds for. */
typedef struct condition {
    const weft__jinja_node *node;
    weft__jinja_scope *scope;
} condition;

static weft_status next_if(weft__jinja_ctx *c, weft__jinja_iter *it, weft__jinja_val *out, int *got)
{
    const condition *test = it->state;
    for (;;) {
        weft__jinja_scope *scope;
        weft__jinja_val holds;
        WEFT__JINJA_TRY(weft__jinja_next(c, it->inner, out, got));
        if (!*got) return WEFT_OK;
        WEFT__JINJA_TRY(weft__jinja_scope_create(c, test->scope, NULL, &scope));
        WEFT__JINJA_TRY(assign(c, scope, test->node->a, *out));
        WEFT__JINJA_TRY(weft__jinja_eval(c, scope, test->node->c, &holds));
        if (weft__jinja_truthy(holds)) return WEFT_OK;
    }
}

/* Puts the loop's condition, if it has one, between source and walk. */
static weft_status add_condition(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                                 weft__jinja_val *source, weft__jinja_iter **it)
{
    if (!node->c) return WEFT_OK;
    weft__jinja_iter *filter = weft__jinja_alloc(c, sizeof *filter);
    condition *test = weft__jinja_alloc(c, sizeof *test);
    if (!filter || !test) return WEFT__JINJA_NO_ROOM(c);
    *test = (condition){.node = node, .scope = scope};
    memset(filter, 0, sizeof *filter);
    filter->next = next_if;
    filter->inner = *it;
    filter->state = test;
    *it = filter;
    weft__jinja_scope_keep(scope);
    return weft__jinja_of_iter(c, filter, source);
}

/* One pass through the body. *complete becomes 1 when it ran to its end, *go 0 after a break. */
static weft_status exec_pass(weft__jinja_ctx *c, const weft__jinja *t, weft__jinja_scope *scope,
                             const weft__jinja_node *node, weft__jinja_loop *loop, int *complete, int *go)
{
    weft__jinja_val self = weft__jinja_of(WEFT__JINJA_LOOP);
    self.u.loop = loop;
    WEFT__JINJA_TRY(weft__jinja_scope_set(c, scope, t->name_loop, self));
    WEFT__JINJA_TRY(assign(c, scope, node->a, loop->current));
    WEFT__JINJA_TRY(weft__jinja_exec(c, t, scope, &node->bodies[0]));
    *go = c->flow != WEFT__JINJA_FLOW_BREAK;
    if (c->flow == WEFT__JINJA_FLOW_ON) *complete = 1;
    c->flow = WEFT__JINJA_FLOW_ON;
    return WEFT_OK;
}

static weft_status exec_loop(weft__jinja_ctx *c, const weft__jinja *t, weft__jinja_scope *outer,
                             const weft__jinja_node *node, weft__jinja_val source, int64_t depth0)
{
    weft__jinja_iter *it;
    weft__jinja_loop *loop;
    weft__jinja_scope *scope = NULL;
    WEFT__JINJA_TRY(weft__jinja_iterate(c, source, &it));
    WEFT__JINJA_TRY(add_condition(c, outer, node, &source, &it));
    WEFT__JINJA_TRY(weft__jinja_loop_create(c, source, it, &loop));
    loop->depth0 = depth0;
    loop->node = node->flag ? node : NULL;
    loop->scope = outer;
    loop->t = t;
    int complete = 0;
    for (int go = 1; go;) {
        int got;
        c->line = node->line;
        WEFT__JINJA_TRY(weft__jinja_loop_next(c, loop, &got));
        if (!got) break;
        if (!scope || scope->kept) {
            WEFT__JINJA_TRY(weft__jinja_scope_create(c, outer, &node->bodies[0], &scope));
        } else {
            scope->n = node->bodies[0].n_unset;
            for (size_t i = 0; i < scope->n; i++) scope->vars[i].value = weft__jinja_of(WEFT__JINJA_MISSING);
        }
        WEFT__JINJA_TRY(exec_pass(c, t, scope, node, loop, &complete, &go));
    }
    /* As in jinja2, what counts for else is whether some pass reached its end. */
    if (complete || node->n_bodies < 2) return WEFT_OK;
    WEFT__JINJA_TRY(weft__jinja_scope_create(c, outer, &node->bodies[1], &scope));
    return weft__jinja_exec(c, t, scope, &node->bodies[1]);
}

static weft_status exec_for(weft__jinja_ctx *c, const weft__jinja *t, weft__jinja_scope *scope,
                            const weft__jinja_node *node)
{
    weft__jinja_val source;
    WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->b, &source));
    c->line = node->line;
    return exec_loop(c, t, scope, node, source, 0);
}

weft_status weft__jinja_call_loop(weft__jinja_ctx *c, weft__jinja_loop *loop, const weft__jinja_args *args,
                                  weft__jinja_val *out)
{
    if (!loop->node) return weft__jinja_fail(c, WEFT_ARGUMENT, "only a loop marked 'recursive' can be called");
    if (args->n_pos != 1 || args->n_named) return weft__jinja_fail(c, WEFT_ARGUMENT, "loop() takes what to loop over");
    WEFT__JINJA_TRY(weft__jinja_enter(c));
    weft__jinja_buf b = {0}, *outer = c->out;
    c->out = &b;
    weft_status status = exec_loop(c, loop->t, loop->scope, loop->node, args->pos[0], loop->depth0 + 1);
    c->out = outer;
    weft__jinja_leave(c);
    return status ? status : weft__jinja_buf_finish(c, &b, out);
}

/* ---- macros ---- */

static weft_status make_macro(weft__jinja_ctx *c, const weft__jinja *t, weft__jinja_scope *scope,
                              const weft__jinja_node *node, weft__jinja_val *out)
{
    weft__jinja_macro *macro = weft__jinja_alloc(c, sizeof *macro);
    if (!macro) return WEFT__JINJA_NO_ROOM(c);
    *macro = (weft__jinja_macro){.node = node, .scope = scope, .t = t};
    weft__jinja_scope_keep(scope);
    *out = weft__jinja_of(WEFT__JINJA_MACRO);
    out->u.macro = macro;
    return WEFT_OK;
}

/* The named arguments that no parameter took: into `kwargs` if the macro wants them, with `caller` apart. */
static weft_status take_rest(weft__jinja_ctx *c, const weft__jinja_macro *macro, const weft__jinja_args *args,
                             weft__jinja_scope *scope)
{
    const weft__jinja_params *params = macro->node->params;
    weft__jinja_val kwargs, caller = weft__jinja_undefined(weft__jinja_of(WEFT__JINJA_MISSING), macro->t->name_caller);
    WEFT__JINJA_TRY(weft__jinja_new_dict(c, &kwargs));
    for (size_t i = 0; i < args->n_named; i++) {
        const weft__jinja_str *name = args->names[i];
        int taken = 0;
        for (size_t k = args->n_pos; k < params->n && !taken; k++) taken = weft__jinja_str_eq(params->names[k], name);
        if (taken) continue;
        if (params->takes_caller && weft__jinja_str_eq(name, macro->t->name_caller)) {
            caller = args->named[i];
        } else if (params->takes_kwargs) {
            WEFT__JINJA_TRY(weft__jinja_dict_set(c, kwargs.u.dict, weft__jinja_of_str(name), args->named[i]));
        } else {
            return weft__jinja_fail(c, WEFT_ARGUMENT, "the macro takes no argument named '%.*s'", (int)name->len,
                                    name->data);
        }
    }
    if (params->takes_caller) WEFT__JINJA_TRY(weft__jinja_scope_set(c, scope, macro->t->name_caller, caller));
    if (params->takes_kwargs) WEFT__JINJA_TRY(weft__jinja_scope_set(c, scope, macro->t->name_kwargs, kwargs));
    return WEFT_OK;
}

static weft_status take_varargs(weft__jinja_ctx *c, const weft__jinja_macro *macro, const weft__jinja_args *args,
                                weft__jinja_scope *scope)
{
    const weft__jinja_params *params = macro->node->params;
    if (!params->takes_varargs) {
        if (args->n_pos <= params->n) return WEFT_OK;
        return weft__jinja_fail(c, WEFT_ARGUMENT, "the macro takes at most %zu arguments, not %zu", params->n,
                                args->n_pos);
    }
    weft__jinja_val rest;
    WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_TUPLE, 0, &rest));
    for (size_t i = params->n; i < args->n_pos; i++) WEFT__JINJA_TRY(weft__jinja_append(c, rest.u.list, args->pos[i]));
    return weft__jinja_scope_set(c, scope, macro->t->name_varargs, rest);
}

static weft_status bind_params(weft__jinja_ctx *c, const weft__jinja_macro *macro, const weft__jinja_args *args,
                               weft__jinja_scope *scope)
{
    const weft__jinja_params *params = macro->node->params;
    WEFT__JINJA_TRY(take_rest(c, macro, args, scope));
    WEFT__JINJA_TRY(take_varargs(c, macro, args, scope));
    for (size_t i = 0; i < params->n; i++) {
        weft__jinja_val v = i < args->n_pos ? args->pos[i] : weft__jinja_of(WEFT__JINJA_MISSING);
        for (size_t k = 0; i >= args->n_pos && k < args->n_named; k++) {
            if (weft__jinja_str_eq(args->names[k], params->names[i])) v = args->named[k];
        }
        WEFT__JINJA_TRY(weft__jinja_scope_set(c, scope, params->names[i], v));
    }
    for (size_t i = 0; i < params->n; i++) {
        const weft__jinja_val *v = weft__jinja_scope_find(scope, params->names[i]);
        weft__jinja_val value;
        if (v->type != WEFT__JINJA_MISSING || !params->defaults[i]) continue;
        WEFT__JINJA_TRY(weft__jinja_eval(c, scope, params->defaults[i], &value));
        WEFT__JINJA_TRY(weft__jinja_scope_set(c, scope, params->names[i], value));
    }
    return WEFT_OK;
}

weft_status weft__jinja_call_macro(weft__jinja_ctx *c, weft__jinja_macro *macro, const weft__jinja_args *args,
                                   weft__jinja_val *out)
{
    weft__jinja_scope *scope;
    uint32_t line = c->line;
    WEFT__JINJA_TRY(weft__jinja_enter(c));
    WEFT__JINJA_TRY(weft__jinja_scope_create(c, macro->scope, &macro->node->bodies[0], &scope));
    WEFT__JINJA_TRY(bind_params(c, macro, args, scope));
    WEFT__JINJA_TRY(capture(c, macro->t, scope, &macro->node->bodies[0], out));
    weft__jinja_leave(c);
    c->line = line;
    return WEFT_OK;
}

/* ---- blocks ---- */

/* What the block writes, through its filters; nothing where it ended a loop. */
static weft_status filtered(weft__jinja_ctx *c, const weft__jinja *t, weft__jinja_scope *scope,
                            const weft__jinja_node *node, weft__jinja_val *text)
{
    weft__jinja_scope *inner;
    WEFT__JINJA_TRY(weft__jinja_scope_create(c, scope, &node->bodies[0], &inner));
    WEFT__JINJA_TRY(capture(c, t, inner, &node->bodies[0], text));
    return c->flow == WEFT__JINJA_FLOW_ON ? weft__jinja_eval_filters(c, inner, node->b, text, text) : WEFT_OK;
}

static weft_status exec_set_block(weft__jinja_ctx *c, const weft__jinja *t, weft__jinja_scope *scope,
                                  const weft__jinja_node *node)
{
    weft__jinja_val text;
    WEFT__JINJA_TRY(filtered(c, t, scope, node, &text));
    return c->flow == WEFT__JINJA_FLOW_ON ? assign(c, scope, node->a, text) : WEFT_OK;
}

static weft_status exec_filter_block(weft__jinja_ctx *c, const weft__jinja *t, weft__jinja_scope *scope,
                                     const weft__jinja_node *node)
{
    weft__jinja_val text;
    WEFT__JINJA_TRY(filtered(c, t, scope, node, &text));
    return c->flow == WEFT__JINJA_FLOW_ON ? weft__jinja_put_value(c, c->out, text) : WEFT_OK;
}

static weft_status exec_call_block(weft__jinja_ctx *c, const weft__jinja *t, weft__jinja_scope *scope,
                                   const weft__jinja_node *node)
{
    weft__jinja_val caller, result;
    WEFT__JINJA_TRY(make_macro(c, t, scope, node, &caller));
    WEFT__JINJA_TRY(weft__jinja_eval_call(c, scope, node->a, &caller, t->name_caller, &result));
    return weft__jinja_put_value(c, c->out, result);
}

static weft_status exec_with(weft__jinja_ctx *c, const weft__jinja *t, weft__jinja_scope *scope,
                             const weft__jinja_node *node)
{
    weft__jinja_scope *inner;
    WEFT__JINJA_TRY(weft__jinja_scope_create(c, scope, &node->bodies[0], &inner));
    for (size_t i = 0; i < node->n_items; i += 2) {
        weft__jinja_val value;
        WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->items[i + 1], &value));
        WEFT__JINJA_TRY(assign(c, inner, node->items[i], value));
    }
    return weft__jinja_exec(c, t, inner, &node->bodies[0]);
}

static weft_status exec_statement(weft__jinja_ctx *c, const weft__jinja *t, weft__jinja_scope *scope,
                                  const weft__jinja_node *node)
{
    weft__jinja_val v;
    weft__jinja_scope *inner;
    switch (node->kind) {
    case WEFT__JINJA_NODE_DATA: return weft__jinja_put_str(c, c->out, node->value.u.s);
    case WEFT__JINJA_NODE_OUTPUT:
        WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->a, &v));
        return weft__jinja_put_value(c, c->out, v);
    case WEFT__JINJA_NODE_IF: return exec_if(c, t, scope, node);
    case WEFT__JINJA_NODE_FOR: return exec_for(c, t, scope, node);
    case WEFT__JINJA_NODE_SET:
        WEFT__JINJA_TRY(weft__jinja_eval(c, scope, node->b, &v));
        c->line = node->line;
        return assign(c, scope, node->a, v);
    case WEFT__JINJA_NODE_SET_BLOCK: return exec_set_block(c, t, scope, node);
    case WEFT__JINJA_NODE_FILTER_BLOCK: return exec_filter_block(c, t, scope, node);
    case WEFT__JINJA_NODE_CALL_BLOCK: return exec_call_block(c, t, scope, node);
    case WEFT__JINJA_NODE_WITH: return exec_with(c, t, scope, node);
    case WEFT__JINJA_NODE_MACRO:
        WEFT__JINJA_TRY(make_macro(c, t, scope, node, &v));
        return weft__jinja_scope_set(c, scope, node->name, v);
    case WEFT__JINJA_NODE_GENERATION: /* only marks what an assistant wrote, for training */
        WEFT__JINJA_TRY(weft__jinja_scope_create(c, scope, &node->bodies[0], &inner));
        return weft__jinja_exec(c, t, inner, &node->bodies[0]);
    case WEFT__JINJA_NODE_BREAK: c->flow = WEFT__JINJA_FLOW_BREAK; return WEFT_OK;
    case WEFT__JINJA_NODE_CONTINUE: c->flow = WEFT__JINJA_FLOW_CONTINUE; return WEFT_OK;
    default: return weft__jinja_fail(c, WEFT_INTERNAL, "an expression stands where a statement should");
    }
}

weft_status weft__jinja_exec(weft__jinja_ctx *c, const weft__jinja *t, weft__jinja_scope *scope,
                             const weft__jinja_body *body)
{
    WEFT__JINJA_TRY(weft__jinja_enter(c));
    for (size_t i = 0; i < body->n && c->flow == WEFT__JINJA_FLOW_ON; i++) {
        c->line = body->items[i]->line;
        WEFT__JINJA_TRY(weft__jinja_spend(c, 1));
        WEFT__JINJA_TRY(exec_statement(c, t, scope, body->items[i]));
    }
    weft__jinja_leave(c);
    return WEFT_OK;
}
