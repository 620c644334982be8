/* eval.h: what the two halves of the evaluator share: expressions (expr.c) and statements (exec.c).
 * Owned by the rendering. */
#ifndef WEFT_TEXT_JINJA_EVAL_H
#define WEFT_TEXT_JINJA_EVAL_H

#include "text/jinja/ast.h"
#include "text/jinja/loop.h"
#include "text/jinja/value.h"

typedef struct weft__jvar {
    const weft__jstr *name; /* interned */
    weft__jval value;       /* MISSING: has no value yet, and hides what is outside */
} weft__jvar;

typedef struct weft__jscope {
    struct weft__jscope *parent; /* as the template is written, not as it calls */
    weft__jvar *vars;
    size_t n, capacity;
    int kept; /* a macro or a generator may still look into it */
} weft__jscope;

struct weft__jmacro {
    const weft__jnode *node; /* MACRO or CALL_BLOCK */
    weft__jscope *scope;     /* where it was defined */
    const weft__jinja *t;
};

weft_status weft__j_scope_create(weft__jctx *c, weft__jscope *parent, const weft__jbody *body, weft__jscope **out);
weft_status weft__j_scope_set(weft__jctx *c, weft__jscope *scope, const weft__jstr *name, weft__jval value);
/* NULL when no scope has the name. */
const weft__jval *weft__j_scope_find(const weft__jscope *scope, const weft__jstr *name);
void weft__j_scope_keep(weft__jscope *scope);

weft_status weft__j_eval(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, weft__jval *out);
/* A chain of filters over what a block captured. */
weft_status weft__j_eval_filters(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, const weft__jval *captured,
                                 weft__jval *out);
/* A call to which {% call %} adds its body; caller NULL otherwise. */
weft_status weft__j_eval_call(weft__jctx *c, weft__jscope *scope, const weft__jnode *node, const weft__jval *caller,
                              const weft__jstr *caller_name, weft__jval *out);

weft_status weft__j_exec(weft__jctx *c, const weft__jinja *t, weft__jscope *scope, const weft__jbody *body);
weft_status weft__j_call_macro(weft__jctx *c, weft__jmacro *macro, const weft__jargs *args, weft__jval *out);
/* loop(items) within a recursive loop. */
weft_status weft__j_call_loop(weft__jctx *c, weft__jloop *loop, const weft__jargs *args, weft__jval *out);

#endif
