// SPDX-License-Identifier: Apache-2.0
/* scope.c: which names a scope owns (ast.h).
 *
 * jinja2 decides while compiling where a name is looked up, and that shows: in a scope that assigns a name without
 * reading it first, the name is undefined until then, even when a variable of that name exists outside. A branch of an
 * if that assigns a name leaves it as it was outside when the branch is not taken. This file repeats that decision:
 * each body gets the names that start undefined (`unset`); all others are looked up outwards when the template runs.
 * Runs once per template, in the thread that compiles. */
#include <string.h>

#include "text/jinja/ast.h"

/* What a frame knows of a name. */
enum { REF = 1, UNSET = 2, STORED = 4, DECLARED = 8 };

typedef struct scope_frame {
    const struct scope_frame *parent;
    uint8_t *names; /* by the number of the name */
    int soft;       /* inside of an if: unknown filters are an error only once they are reached */
    int in_for;
} scope_frame;

typedef struct resolver {
    weft__jinja_compiler *p;
    weft__jinja_ctx *c;
    weft__jinja *t;
    size_t n_names;
    uint8_t *reads;
} resolver;

static weft_status visit_body(resolver *r, scope_frame *f, const weft__jinja_body *body);
static weft_status visit_nested(resolver *r, const scope_frame *f, const weft__jinja_body *body);

static weft_status number_of(resolver *r, const weft__jinja_str *name, size_t *out)
{
    weft__jinja_entry *e;
    WEFT__JINJA_TRY(weft__jinja_dict_find(r->c, r->p->names, weft__jinja_of_str(name), &e));
    *out = (size_t)e->value.u.i;
    return WEFT_OK;
}

static weft_status new_names(resolver *r, const uint8_t *like, uint8_t **out)
{
    *out = weft__jinja_alloc(r->c, r->n_names);
    if (!*out) return WEFT__JINJA_NO_ROOM(r->c);
    WEFT__JINJA_TRY(weft__jinja_spend(r->c, r->n_names / 64 + 1));
    if (like) {
        memcpy(*out, like, r->n_names);
    } else {
        memset(*out, 0, r->n_names);
    }
    return WEFT_OK;
}

static weft_status new_frame(resolver *r, const scope_frame *parent, scope_frame *out)
{
    *out = (scope_frame){.parent = parent, .in_for = parent->in_for};
    return new_names(r, NULL, &out->names);
}

static int known_outside(const scope_frame *f, size_t name)
{
    for (f = f->parent; f; f = f->parent) {
        if (f->names[name] & REF) return 1;
    }
    return 0;
}

static weft_status scope_load(resolver *r, scope_frame *f, const weft__jinja_str *name)
{
    size_t i;
    WEFT__JINJA_TRY(number_of(r, name, &i));
    if (!known_outside(f, i)) f->names[i] |= REF;
    return WEFT_OK;
}

static weft_status store(resolver *r, scope_frame *f, const weft__jinja_node *node)
{
    size_t i;
    if (f->in_for && node->name == r->t->name_loop) {
        r->c->line = node->line;
        return weft__jinja_fail(r->c, WEFT_FORMAT, "'loop' cannot be assigned to inside of a loop");
    }
    WEFT__JINJA_TRY(number_of(r, node->name, &i));
    if (!(f->names[i] & REF)) f->names[i] |= known_outside(f, i) ? REF : REF | UNSET;
    f->names[i] |= STORED;
    return WEFT_OK;
}

static weft_status declare(resolver *r, scope_frame *f, const weft__jinja_str *name)
{
    size_t i;
    WEFT__JINJA_TRY(number_of(r, name, &i));
    f->names[i] = REF | STORED | DECLARED;
    return WEFT_OK;
}

static weft_status check_known(resolver *r, const scope_frame *f, const weft__jinja_node *node)
{
    const char *what = node->kind == WEFT__JINJA_NODE_FILTER ? "filter" : "test";
    int n = (int)node->name->len;
    if (f->soft || (node->function && node->function->call)) return WEFT_OK;
    r->c->line = node->line;
    if (node->function)
        return weft__jinja_fail(r->c, WEFT_UNSUPPORTED, "the %s '%.*s' is not supported", what, n, node->name->data);
    return weft__jinja_fail(r->c, WEFT_FORMAT, "there is no %s named '%.*s'", what, n, node->name->data);
}

static weft_status visit_expr(resolver *r, scope_frame *f, const weft__jinja_node *node);

static weft_status visit_args(resolver *r, scope_frame *f, const weft__jinja_call_args *args)
{
    if (!args) return WEFT_OK;
    for (size_t i = 0; i < args->n_pos; i++) WEFT__JINJA_TRY(visit_expr(r, f, args->pos[i]));
    for (size_t i = 0; i < args->n_named; i++) WEFT__JINJA_TRY(visit_expr(r, f, args->named[i]));
    WEFT__JINJA_TRY(visit_expr(r, f, args->star));
    return visit_expr(r, f, args->star_star);
}

static weft_status visit_expr(resolver *r, scope_frame *f, const weft__jinja_node *node)
{
    if (!node) return WEFT_OK;
    WEFT__JINJA_TRY(weft__jinja_spend(r->c, 1));
    if (node->kind == WEFT__JINJA_NODE_NAME) return scope_load(r, f, node->name);
    if (node->kind == WEFT__JINJA_NODE_FILTER || node->kind == WEFT__JINJA_NODE_TEST)
        WEFT__JINJA_TRY(check_known(r, f, node));
    int soft = f->soft;
    if (node->kind == WEFT__JINJA_NODE_COND) f->soft = 1;
    WEFT__JINJA_TRY(visit_expr(r, f, node->a));
    WEFT__JINJA_TRY(visit_expr(r, f, node->b));
    WEFT__JINJA_TRY(visit_expr(r, f, node->c));
    for (size_t i = 0; i < node->n_items; i++) WEFT__JINJA_TRY(visit_expr(r, f, node->items[i]));
    f->soft = soft;
    return visit_args(r, f, node->args);
}

static weft_status visit_target(resolver *r, scope_frame *f, const weft__jinja_node *target, int is_param)
{
    if (target->kind == WEFT__JINJA_NODE_NSREF) return scope_load(r, f, target->name);
    if (target->kind == WEFT__JINJA_NODE_NAME) {
        if (!is_param) return store(r, f, target);
        if (target->name != r->t->name_loop) return declare(r, f, target->name);
        r->c->line = target->line;
        return weft__jinja_fail(r->c, WEFT_FORMAT, "'loop' cannot be assigned to inside of a loop");
    }
    for (size_t i = 0; i < target->n_items; i++) WEFT__JINJA_TRY(visit_target(r, f, target->items[i], is_param));
    return WEFT_OK;
}

/* Puts what three alternatives learnt into f: what only some of them assign keeps its value from outside. */
static weft_status merge_branches(resolver *r, scope_frame *f, uint8_t *const branches[3])
{
    WEFT__JINJA_TRY(weft__jinja_spend(r->c, r->n_names / 16 + 1));
    for (size_t i = 0; i < r->n_names; i++) {
        int before = f->names[i], merged = before, n_stores = 0;
        for (int b = 0; b < 3; b++) {
            int now = branches[b][i];
            n_stores += (now & STORED) && !(before & STORED);
            if (now & REF) merged = (merged & ~UNSET) | now;
        }
        if (n_stores && n_stores < 3) merged &= ~UNSET;
        f->names[i] = (uint8_t)merged;
    }
    return WEFT_OK;
}

/* Alternative `from` of an if and, for elif, those after it: jinja2 sees the conditions and bodies of all elifs as one
 * branch. */
static weft_status visit_elifs(resolver *r, scope_frame *f, const weft__jinja_node *node)
{
    for (size_t i = 1; i < node->n_items; i++) {
        uint8_t *branches[3];
        WEFT__JINJA_TRY(visit_expr(r, f, node->items[i]));
        for (int b = 0; b < 3; b++) WEFT__JINJA_TRY(new_names(r, f->names, &branches[b]));
        scope_frame branch = *f;
        branch.names = branches[0];
        WEFT__JINJA_TRY(visit_body(r, &branch, &node->bodies[i]));
        WEFT__JINJA_TRY(merge_branches(r, f, branches));
    }
    return WEFT_OK;
}

static weft_status visit_if(resolver *r, scope_frame *f, const weft__jinja_node *node)
{
    uint8_t *branches[3];
    scope_frame branch = *f;
    int soft = f->soft;
    f->soft = 1;
    WEFT__JINJA_TRY(visit_expr(r, f, node->items[0]));
    branch.soft = 1;
    for (int b = 0; b < 3; b++) WEFT__JINJA_TRY(new_names(r, f->names, &branches[b]));
    branch.names = branches[0];
    WEFT__JINJA_TRY(visit_body(r, &branch, &node->bodies[0]));
    branch.names = branches[1];
    WEFT__JINJA_TRY(visit_elifs(r, &branch, node));
    branch.names = branches[2];
    if (node->n_bodies > node->n_items) WEFT__JINJA_TRY(visit_body(r, &branch, &node->bodies[node->n_items]));
    f->soft = soft;
    return merge_branches(r, f, branches);
}

/* What a statement does to the frame it stands in, without what is inside of it if that is a scope of its own. */
static weft_status visit_statement(resolver *r, scope_frame *f, const weft__jinja_node *node)
{
    WEFT__JINJA_TRY(weft__jinja_spend(r->c, 1));
    switch (node->kind) {
    case WEFT__JINJA_NODE_OUTPUT: return visit_expr(r, f, node->a);
    case WEFT__JINJA_NODE_IF: return visit_if(r, f, node);
    case WEFT__JINJA_NODE_FOR: return visit_expr(r, f, node->b);
    case WEFT__JINJA_NODE_SET: WEFT__JINJA_TRY(visit_expr(r, f, node->b)); return visit_target(r, f, node->a, 0);
    case WEFT__JINJA_NODE_SET_BLOCK: return visit_target(r, f, node->a, 0);
    case WEFT__JINJA_NODE_MACRO: return store(r, f, node);
    case WEFT__JINJA_NODE_CALL_BLOCK: return visit_expr(r, f, node->a);
    case WEFT__JINJA_NODE_FILTER_BLOCK: return visit_expr(r, f, node->b);
    case WEFT__JINJA_NODE_WITH:
        for (size_t i = 1; i < node->n_items; i += 2) WEFT__JINJA_TRY(visit_expr(r, f, node->items[i]));
        return WEFT_OK;
    default: return WEFT_OK;
    }
}

static weft_status visit_body(resolver *r, scope_frame *f, const weft__jinja_body *body)
{
    for (size_t i = 0; i < body->n; i++) WEFT__JINJA_TRY(visit_statement(r, f, body->items[i]));
    return WEFT_OK;
}

/* Which names of a frame, all visited, have their value from outside of the template. */
static void note_reads(resolver *r, const scope_frame *f)
{
    for (size_t i = 0; i < r->n_names; i++)
        if ((f->names[i] & (REF | UNSET | DECLARED)) == REF && !known_outside(f, i)) r->reads[i] = 1;
}

/* A scope: its own statements first, then the scopes inside of it. */
static weft_status resolve_body(resolver *r, scope_frame *f, weft__jinja_body *body)
{
    WEFT__JINJA_TRY(visit_body(r, f, body));
    note_reads(r, f);
    for (size_t i = 0; i < r->n_names; i++) {
        if (!(f->names[i] & UNSET)) continue;
        WEFT__JINJA_TRY(
            weft__jinja_grow(r->c, &body->unset, &body->unset_capacity, body->n_unset + 1, sizeof *body->unset));
        body->unset[body->n_unset++] = r->p->names->entries[i].key.u.s;
    }
    WEFT__JINJA_TRY(weft__jinja_spend(r->c, r->n_names / 16 + 1));
    return visit_nested(r, f, body);
}

static weft_status resolve_for(resolver *r, const scope_frame *f, const weft__jinja_node *node)
{
    scope_frame inner;
    WEFT__JINJA_TRY(new_frame(r, f, &inner));
    inner.in_for = 1;
    WEFT__JINJA_TRY(visit_target(r, &inner, node->a, 1));
    if (node->c) {
        scope_frame test;
        WEFT__JINJA_TRY(new_frame(r, f, &test));
        WEFT__JINJA_TRY(visit_target(r, &test, node->a, 1));
        WEFT__JINJA_TRY(visit_expr(r, &test, node->c));
        note_reads(r, &test);
    }
    WEFT__JINJA_TRY(declare(r, &inner, r->t->name_loop));
    WEFT__JINJA_TRY(resolve_body(r, &inner, &node->bodies[0]));
    if (node->n_bodies < 2) return WEFT_OK;
    WEFT__JINJA_TRY(new_frame(r, f, &inner));
    inner.in_for = 1;
    return resolve_body(r, &inner, &node->bodies[1]);
}

/* ---- what macros take ---- */

static weft_status mentioned(resolver *r, const weft__jinja_node *node, const weft__jinja_str *name, int *out);

static weft_status mentioned_in(resolver *r, weft__jinja_node *const *nodes, size_t n, const weft__jinja_str *name,
                                int *out)
{
    for (size_t i = 0; i < n && !*out; i++) WEFT__JINJA_TRY(mentioned(r, nodes[i], name, out));
    return WEFT_OK;
}

/* Whether name is read (1) or assigned (2) first within node, scopes inside included. */
static weft_status mentioned(resolver *r, const weft__jinja_node *node, const weft__jinja_str *name, int *out)
{
    if (!node || *out) return WEFT_OK;
    WEFT__JINJA_TRY(weft__jinja_spend(r->c, 1));
    if (node->name == name && (node->kind == WEFT__JINJA_NODE_NAME || node->kind == WEFT__JINJA_NODE_NSREF)) {
        *out = 1;
        return WEFT_OK;
    }
    int assigns = node->kind == WEFT__JINJA_NODE_SET || node->kind == WEFT__JINJA_NODE_SET_BLOCK ||
                  node->kind == WEFT__JINJA_NODE_FOR;
    WEFT__JINJA_TRY(mentioned(r, node->a, name, out));
    if (*out && assigns && node->a->kind != WEFT__JINJA_NODE_NSREF) *out = 2;
    WEFT__JINJA_TRY(mentioned(r, node->b, name, out));
    WEFT__JINJA_TRY(mentioned(r, node->c, name, out));
    WEFT__JINJA_TRY(mentioned_in(r, node->items, node->n_items, name, out));
    if (node->args) {
        WEFT__JINJA_TRY(mentioned_in(r, node->args->pos, node->args->n_pos, name, out));
        WEFT__JINJA_TRY(mentioned_in(r, node->args->named, node->args->n_named, name, out));
        WEFT__JINJA_TRY(mentioned(r, node->args->star, name, out));
        WEFT__JINJA_TRY(mentioned(r, node->args->star_star, name, out));
    }
    if (node->params) WEFT__JINJA_TRY(mentioned_in(r, node->params->defaults, node->params->n, name, out));
    for (size_t i = 0; i < node->n_bodies; i++) {
        WEFT__JINJA_TRY(mentioned_in(r, node->bodies[i].items, node->bodies[i].n, name, out));
    }
    return WEFT_OK;
}

/* Whether a macro gets the special variable `name`: its body reads it and no parameter has that name. */
static weft_status takes(resolver *r, scope_frame *f, const weft__jinja_node *node, const weft__jinja_str *name,
                         int *out)
{
    int how = 0;
    for (size_t i = 0; i < node->params->n; i++) {
        if (node->params->names[i] == name) return WEFT_OK;
    }
    WEFT__JINJA_TRY(mentioned_in(r, node->bodies[0].items, node->bodies[0].n, name, &how));
    *out = how == 1;
    return *out ? declare(r, f, name) : WEFT_OK;
}

static weft_status resolve_function(resolver *r, const scope_frame *f, const weft__jinja_node *node)
{
    scope_frame inner;
    weft__jinja_params *params = node->params;
    WEFT__JINJA_TRY(new_frame(r, f, &inner));
    for (size_t i = 0; params && i < params->n; i++) WEFT__JINJA_TRY(declare(r, &inner, params->names[i]));
    if (params) {
        WEFT__JINJA_TRY(takes(r, &inner, node, r->t->name_caller, &params->takes_caller));
        WEFT__JINJA_TRY(takes(r, &inner, node, r->t->name_kwargs, &params->takes_kwargs));
        WEFT__JINJA_TRY(takes(r, &inner, node, r->t->name_varargs, &params->takes_varargs));
        for (size_t i = 0; i < params->n; i++) WEFT__JINJA_TRY(visit_expr(r, &inner, params->defaults[i]));
    }
    return resolve_body(r, &inner, &node->bodies[0]);
}

static weft_status resolve_nested(resolver *r, const scope_frame *f, const weft__jinja_node *node)
{
    scope_frame inner;
    switch (node->kind) {
    case WEFT__JINJA_NODE_IF:
        for (size_t i = 0; i < node->n_bodies; i++) WEFT__JINJA_TRY(visit_nested(r, f, &node->bodies[i]));
        return WEFT_OK;
    case WEFT__JINJA_NODE_FOR: return resolve_for(r, f, node);
    case WEFT__JINJA_NODE_MACRO:
    case WEFT__JINJA_NODE_CALL_BLOCK:
    case WEFT__JINJA_NODE_GENERATION: return resolve_function(r, f, node);
    case WEFT__JINJA_NODE_SET_BLOCK:
    case WEFT__JINJA_NODE_FILTER_BLOCK:
    case WEFT__JINJA_NODE_WITH: break;
    default: return WEFT_OK;
    }
    WEFT__JINJA_TRY(new_frame(r, f, &inner));
    for (size_t i = 0; node->kind == WEFT__JINJA_NODE_WITH && i < node->n_items; i += 2) {
        WEFT__JINJA_TRY(visit_target(r, &inner, node->items[i], 1));
    }
    if (node->kind == WEFT__JINJA_NODE_SET_BLOCK) WEFT__JINJA_TRY(visit_expr(r, &inner, node->b));
    return resolve_body(r, &inner, &node->bodies[0]);
}

static weft_status visit_nested(resolver *r, const scope_frame *f, const weft__jinja_body *body)
{
    for (size_t i = 0; i < body->n; i++) WEFT__JINJA_TRY(resolve_nested(r, f, body->items[i]));
    return WEFT_OK;
}

weft_status weft__jinja_resolve(weft__jinja_compiler *p, weft__jinja *t)
{
    resolver r = {.p = p, .c = p->ctx, .t = t};
    WEFT__JINJA_TRY(weft__jinja_intern(p, "loop", 4, &t->name_loop));
    WEFT__JINJA_TRY(weft__jinja_intern(p, "caller", 6, &t->name_caller));
    WEFT__JINJA_TRY(weft__jinja_intern(p, "varargs", 7, &t->name_varargs));
    WEFT__JINJA_TRY(weft__jinja_intern(p, "kwargs", 6, &t->name_kwargs));
    r.n_names = p->names->n;
    WEFT__JINJA_TRY(new_names(&r, NULL, &r.reads));
    t->names = p->names;
    t->reads = r.reads;
    scope_frame root = {0};
    WEFT__JINJA_TRY(new_names(&r, NULL, &root.names));
    return resolve_body(&r, &root, &t->body);
}
