// SPDX-License-Identifier: Apache-2.0
/* eval.h: what the two halves of the evaluator share: expressions (expr.c) and statements (exec.c).
 * Owned by the rendering. */
#ifndef WEFT_TEXT_JINJA_EVAL_H
#define WEFT_TEXT_JINJA_EVAL_H

#include "text/jinja/ast.h"
#include "text/jinja/loop.h"
#include "text/jinja/value.h"

typedef struct weft__jinja_var {
    const weft__jinja_str *name; /* interned */
    weft__jinja_val value;       /* MISSING: has no value yet, and hides what is outside */
} weft__jinja_var;

typedef struct weft__jinja_scope {
    struct weft__jinja_scope *parent; /* as the template is written, not as it calls */
    weft__jinja_var *vars;
    size_t n, capacity;
    int kept; /* a macro or a generator may still look into it */
} weft__jinja_scope;

struct weft__jinja_macro {
    const weft__jinja_node *node; /* MACRO or CALL_BLOCK */
    weft__jinja_scope *scope;     /* where it was defined */
    const weft__jinja *t;
};

weft_status weft__jinja_scope_create(weft__jinja_ctx *c, weft__jinja_scope *parent, const weft__jinja_body *body,
                                     weft__jinja_scope **out);
weft_status weft__jinja_scope_set(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_str *name,
                                  weft__jinja_val value);
/* NULL when no scope has the name. */
const weft__jinja_val *weft__jinja_scope_find(const weft__jinja_scope *scope, const weft__jinja_str *name);
void weft__jinja_scope_keep(weft__jinja_scope *scope);

weft_status weft__jinja_eval(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                             weft__jinja_val *out);
/* A chain of filters over what a block captured. */
weft_status weft__jinja_eval_filters(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                                     const weft__jinja_val *captured, weft__jinja_val *out);
/* A call to which {% call %} adds its body; caller NULL otherwise. */
weft_status weft__jinja_eval_call(weft__jinja_ctx *c, weft__jinja_scope *scope, const weft__jinja_node *node,
                                  const weft__jinja_val *caller, const weft__jinja_str *caller_name,
                                  weft__jinja_val *out);

weft_status weft__jinja_exec(weft__jinja_ctx *c, const weft__jinja *t, weft__jinja_scope *scope,
                             const weft__jinja_body *body);
weft_status weft__jinja_call_macro(weft__jinja_ctx *c, weft__jinja_macro *macro, const weft__jinja_args *args,
                                   weft__jinja_val *out);
/* loop(items) within a recursive loop. */
weft_status weft__jinja_call_loop(weft__jinja_ctx *c, weft__jinja_loop *loop, const weft__jinja_args *args,
                                  weft__jinja_val *out);

#endif
