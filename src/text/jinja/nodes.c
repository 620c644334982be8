// SPDX-License-Identifier: Apache-2.0
/* nodes.c: what both halves of the parser stand on: looking at tokens, and making nodes (ast.h).
 * Runs once per template, in the thread that compiles. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/jinja/ast.h"

/* ---- tokens ---- */

int weft__jinja_at_op(const weft__jinja_compiler *p, uint32_t op)
{
    const weft__jinja_token *t = weft__jinja_current(p);
    return t->type == WEFT__JINJA_TOKEN_OP && t->op == op;
}

int weft__jinja_is_name(const weft__jinja_token *t, const char *name)
{
    return t->type == WEFT__JINJA_TOKEN_NAME && t->len == strlen(name) && !memcmp(t->text, name, t->len);
}

int weft__jinja_at_name(const weft__jinja_compiler *p, const char *name)
{
    return weft__jinja_is_name(weft__jinja_current(p), name);
}

int weft__jinja_skip_op(weft__jinja_compiler *p, uint32_t op)
{
    int there = weft__jinja_at_op(p, op);
    p->at += (size_t)there;
    return there;
}

int weft__jinja_skip_name(weft__jinja_compiler *p, const char *name)
{
    int there = weft__jinja_at_name(p, name);
    p->at += (size_t)there;
    return there;
}

const char *weft__jinja_describe(const weft__jinja_token *t, char room[64])
{
    int n = t->len < 40 ? (int)t->len : 40;
    switch (t->type) {
    case WEFT__JINJA_TOKEN_EOF: return "the end of the template";
    case WEFT__JINJA_TOKEN_DATA: return "text";
    case WEFT__JINJA_TOKEN_VARIABLE_BEGIN: return "'{{'";
    case WEFT__JINJA_TOKEN_VARIABLE_END: return "'}}'";
    case WEFT__JINJA_TOKEN_BLOCK_BEGIN: return "'{%'";
    case WEFT__JINJA_TOKEN_BLOCK_END: return "'%}'";
    case WEFT__JINJA_TOKEN_STRING: return "a string";
    case WEFT__JINJA_TOKEN_INT:
    case WEFT__JINJA_TOKEN_FLOAT: return "a number";
    case WEFT__JINJA_TOKEN_NAME:
        if (!t->text) return "a name";
        snprintf(room, 64, "'%.*s'", n, t->text);
        return room;
    case WEFT__JINJA_TOKEN_OP: break;
    }
    char second = (char)(t->op >> 8);
    snprintf(room, 64, second ? "'%c%c'" : "'%c'", (char)t->op, second);
    return room;
}

weft_status weft__jinja_syntax(weft__jinja_compiler *p, weft_status status, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    p->ctx->line = weft__jinja_current(p)->line;
    return weft__jinja_fail(p->ctx, status, "%s", text);
}

weft_status weft__jinja_unexpected(weft__jinja_compiler *p, const char *wanted)
{
    char room[64];
    return weft__jinja_syntax(p, WEFT_FORMAT, "expected %s, found %s", wanted,
                              weft__jinja_describe(weft__jinja_current(p), room));
}

weft_status weft__jinja_expect_op(weft__jinja_compiler *p, uint32_t op)
{
    if (weft__jinja_skip_op(p, op)) return WEFT_OK;
    char room[64];
    weft__jinja_token wanted = {.type = WEFT__JINJA_TOKEN_OP, .op = op};
    return weft__jinja_unexpected(p, weft__jinja_describe(&wanted, room));
}

weft_status weft__jinja_expect_type(weft__jinja_compiler *p, weft__jinja_token_type type)
{
    char room[64];
    weft__jinja_token wanted = {.type = type};
    if (weft__jinja_current(p)->type != type) return weft__jinja_unexpected(p, weft__jinja_describe(&wanted, room));
    p->at++;
    return WEFT_OK;
}

weft_status weft__jinja_expect_ident(weft__jinja_compiler *p, const weft__jinja_str **out)
{
    const weft__jinja_token *t = weft__jinja_current(p);
    if (t->type != WEFT__JINJA_TOKEN_NAME) return weft__jinja_unexpected(p, "a name");
    p->at++;
    return weft__jinja_intern(p, t->text, t->len, out);
}

/* ---- nodes ---- */

weft_status weft__jinja_intern(weft__jinja_compiler *p, const char *s, size_t n, const weft__jinja_str **out)
{
    weft__jinja_val name;
    weft__jinja_entry *e;
    WEFT__JINJA_TRY(weft__jinja_string(p->ctx, s, n, 0, &name));
    WEFT__JINJA_TRY(weft__jinja_dict_find(p->ctx, p->names, name, &e));
    if (!e) WEFT__JINJA_TRY(weft__jinja_dict_set(p->ctx, p->names, name, weft__jinja_int((int64_t)p->names->n)));
    *out = e ? e->key.u.s : name.u.s;
    return WEFT_OK;
}

weft_status weft__jinja_new_node(weft__jinja_compiler *p, weft__jinja_node_kind kind, uint32_t line,
                                 weft__jinja_node **out)
{
    weft__jinja_node *node = weft__jinja_alloc(p->ctx, sizeof *node);
    if (!node) return WEFT__JINJA_NO_ROOM(p->ctx);
    memset(node, 0, sizeof *node);
    node->kind = kind;
    node->line = line;
    node->depth = 1;
    *out = node;
    return WEFT_OK;
}

static uint32_t deepest(uint32_t depth, const weft__jinja_node *child)
{
    return child && child->depth > depth ? child->depth : depth;
}

weft_status weft__jinja_finish_node(weft__jinja_compiler *p, weft__jinja_node *node)
{
    uint32_t depth = deepest(deepest(deepest(0, node->a), node->b), node->c);
    for (size_t i = 0; i < node->n_items; i++) depth = deepest(depth, node->items[i]);
    if (node->args) {
        for (size_t i = 0; i < node->args->n_pos; i++) depth = deepest(depth, node->args->pos[i]);
        for (size_t i = 0; i < node->args->n_named; i++) depth = deepest(depth, node->args->named[i]);
        depth = deepest(deepest(depth, node->args->star), node->args->star_star);
    }
    node->depth = depth + 1;
    if (node->depth > WEFT__JINJA_MAX_NODE_DEPTH) return weft__jinja_syntax(p, WEFT_LIMIT, "an expression is too deep");
    return WEFT_OK;
}

weft_status weft__jinja_add_node(weft__jinja_compiler *p, weft__jinja_node ***items, size_t *n, size_t *capacity,
                                 weft__jinja_node *node)
{
    WEFT__JINJA_TRY(weft__jinja_grow(p->ctx, items, capacity, *n + 1, sizeof **items));
    (*items)[(*n)++] = node;
    return WEFT_OK;
}

weft_status weft__jinja_nest(weft__jinja_compiler *p)
{
    if (p->nesting >= WEFT__JINJA_MAX_NESTING)
        return weft__jinja_syntax(p, WEFT_LIMIT, "nested more than %d levels deep", WEFT__JINJA_MAX_NESTING);
    p->nesting++;
    return WEFT_OK;
}

weft_status weft__jinja_add_item(weft__jinja_compiler *p, weft__jinja_node *node, weft__jinja_node *item)
{
    return weft__jinja_add_node(p, &node->items, &node->n_items, &node->items_capacity, item);
}

weft_status weft__jinja_new_unary(weft__jinja_compiler *p, weft__jinja_node_kind kind, uint32_t line,
                                  weft__jinja_node *a, weft__jinja_node **out)
{
    WEFT__JINJA_TRY(weft__jinja_new_node(p, kind, line, out));
    (*out)->a = a;
    return weft__jinja_finish_node(p, *out);
}
