/* nodes.c: what both halves of the parser stand on: looking at tokens, and making nodes (ast.h).
 * Runs once per template, in the thread that compiles. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/jinja/ast.h"

/* ---- tokens ---- */

int weft__j_at_op(const weft__jcompiler *p, uint32_t op)
{
    const weft__jtoken *t = weft__j_token(p);
    return t->type == WEFT__JT_OP && t->op == op;
}

int weft__j_is_name(const weft__jtoken *t, const char *name)
{
    return t->type == WEFT__JT_NAME && t->len == strlen(name) && !memcmp(t->text, name, t->len);
}

int weft__j_at_name(const weft__jcompiler *p, const char *name)
{
    return weft__j_is_name(weft__j_token(p), name);
}

int weft__j_skip_op(weft__jcompiler *p, uint32_t op)
{
    int there = weft__j_at_op(p, op);
    p->at += (size_t)there;
    return there;
}

int weft__j_skip_name(weft__jcompiler *p, const char *name)
{
    int there = weft__j_at_name(p, name);
    p->at += (size_t)there;
    return there;
}

const char *weft__j_describe(const weft__jtoken *t, char room[64])
{
    int n = t->len < 40 ? (int)t->len : 40;
    switch (t->type) {
    case WEFT__JT_EOF: return "the end of the template";
    case WEFT__JT_DATA: return "text";
    case WEFT__JT_VARIABLE_BEGIN: return "'{{'";
    case WEFT__JT_VARIABLE_END: return "'}}'";
    case WEFT__JT_BLOCK_BEGIN: return "'{%'";
    case WEFT__JT_BLOCK_END: return "'%}'";
    case WEFT__JT_STRING: return "a string";
    case WEFT__JT_INT:
    case WEFT__JT_FLOAT: return "a number";
    case WEFT__JT_NAME:
        if (!t->text) return "a name";
        snprintf(room, 64, "'%.*s'", n, t->text);
        return room;
    case WEFT__JT_OP: break;
    }
    char second = (char)(t->op >> 8);
    snprintf(room, 64, second ? "'%c%c'" : "'%c'", (char)t->op, second);
    return room;
}

weft_status weft__j_syntax(weft__jcompiler *p, weft_status status, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    p->ctx->line = weft__j_token(p)->line;
    return weft__j_fail(p->ctx, status, "%s", text);
}

weft_status weft__j_unexpected(weft__jcompiler *p, const char *wanted)
{
    char room[64];
    return weft__j_syntax(p, WEFT_FORMAT, "expected %s, found %s", wanted, weft__j_describe(weft__j_token(p), room));
}

weft_status weft__j_expect_op(weft__jcompiler *p, uint32_t op)
{
    if (weft__j_skip_op(p, op)) return WEFT_OK;
    char room[64];
    weft__jtoken wanted = {.type = WEFT__JT_OP, .op = op};
    return weft__j_unexpected(p, weft__j_describe(&wanted, room));
}

weft_status weft__j_expect_type(weft__jcompiler *p, weft__jtoken_type type)
{
    char room[64];
    weft__jtoken wanted = {.type = type};
    if (weft__j_token(p)->type != type) return weft__j_unexpected(p, weft__j_describe(&wanted, room));
    p->at++;
    return WEFT_OK;
}

weft_status weft__j_expect_ident(weft__jcompiler *p, const weft__jstr **out)
{
    const weft__jtoken *t = weft__j_token(p);
    if (t->type != WEFT__JT_NAME) return weft__j_unexpected(p, "a name");
    p->at++;
    return weft__j_intern(p, t->text, t->len, out);
}

/* ---- nodes ---- */

weft_status weft__j_intern(weft__jcompiler *p, const char *s, size_t n, const weft__jstr **out)
{
    weft__jval name;
    weft__jentry *e;
    WEFT__J_TRY(weft__j_string(p->ctx, s, n, 0, &name));
    WEFT__J_TRY(weft__j_dict_find(p->ctx, p->names, name, &e));
    if (!e) WEFT__J_TRY(weft__j_dict_set(p->ctx, p->names, name, weft__j_int((int64_t)p->names->n)));
    *out = e ? e->key.u.s : name.u.s;
    return WEFT_OK;
}

weft_status weft__j_new_node(weft__jcompiler *p, weft__jkind kind, uint32_t line, weft__jnode **out)
{
    weft__jnode *node = weft__j_alloc(p->ctx, sizeof *node);
    if (!node) return WEFT__J_NO_ROOM(p->ctx);
    memset(node, 0, sizeof *node);
    node->kind = kind;
    node->line = line;
    node->depth = 1;
    *out = node;
    return WEFT_OK;
}

static uint32_t deepest(uint32_t depth, const weft__jnode *child)
{
    return child && child->depth > depth ? child->depth : depth;
}

weft_status weft__j_finish_node(weft__jcompiler *p, weft__jnode *node)
{
    uint32_t depth = deepest(deepest(deepest(0, node->a), node->b), node->c);
    for (size_t i = 0; i < node->n_items; i++) depth = deepest(depth, node->items[i]);
    if (node->args) {
        for (size_t i = 0; i < node->args->n_pos; i++) depth = deepest(depth, node->args->pos[i]);
        for (size_t i = 0; i < node->args->n_named; i++) depth = deepest(depth, node->args->named[i]);
        depth = deepest(deepest(depth, node->args->star), node->args->star_star);
    }
    node->depth = depth + 1;
    if (node->depth > WEFT__J_MAX_NODE_DEPTH) return weft__j_syntax(p, WEFT_LIMIT, "an expression is too deep");
    return WEFT_OK;
}

weft_status weft__j_add_node(weft__jcompiler *p, weft__jnode ***items, size_t *n, size_t *capacity, weft__jnode *node)
{
    WEFT__J_TRY(weft__j_grow(p->ctx, items, capacity, *n + 1, sizeof **items));
    (*items)[(*n)++] = node;
    return WEFT_OK;
}

weft_status weft__j_nest(weft__jcompiler *p)
{
    if (p->nesting >= WEFT__J_MAX_NESTING)
        return weft__j_syntax(p, WEFT_LIMIT, "nested more than %d levels deep", WEFT__J_MAX_NESTING);
    p->nesting++;
    return WEFT_OK;
}
