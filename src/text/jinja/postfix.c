// SPDX-License-Identifier: Apache-2.0
/* postfix.c: what follows a value in an expression (ast.h): .a [b] (c) |filter is test.
 * Runs once per template, in the thread that compiles. */
#include <stdio.h>
#include <string.h>

#include "text/jinja/ast.h"

static weft_status parse_subscript(weft__jinja_compiler *p, weft__jinja_node *part, int *is_slice)
{
    weft__jinja_node *bounds[3] = {0};
    int n = 0;
    *is_slice = 0;
    for (;;) {
        if (!weft__jinja_at_op(p, ':') && !weft__jinja_at_op(p, ']') && !weft__jinja_at_op(p, ',')) {
            WEFT__JINJA_TRY(weft__jinja_parse_expression(p, &bounds[n]));
        } else if (!n && !weft__jinja_at_op(p, ':')) {
            return weft__jinja_unexpected(p, "an expression");
        }
        if (n == 2 || !weft__jinja_skip_op(p, ':')) break;
        *is_slice = 1;
        n++;
    }
    for (int i = 0; i < 3; i++) WEFT__JINJA_TRY(weft__jinja_add_item(p, part, bounds[i]));
    return WEFT_OK;
}

static weft_status parse_item(weft__jinja_compiler *p, weft__jinja_node **node)
{
    uint32_t line = weft__jinja_current(p)->line;
    weft__jinja_node *result, *tuple = NULL, *index = NULL;
    int is_slice = 0;
    WEFT__JINJA_TRY(weft__jinja_expect_op(p, '['));
    if (weft__jinja_at_op(p, ']')) { /* x[] is x[()] */
        WEFT__JINJA_TRY(weft__jinja_new_node(p, WEFT__JINJA_NODE_TUPLE, line, &tuple));
    }
    while (!weft__jinja_at_op(p, ']')) {
        if (index) {
            WEFT__JINJA_TRY(weft__jinja_expect_op(p, ','));
            if (is_slice)
                return weft__jinja_syntax(p, WEFT_UNSUPPORTED, "slices in several dimensions are not supported");
            if (!tuple) {
                WEFT__JINJA_TRY(weft__jinja_new_node(p, WEFT__JINJA_NODE_TUPLE, line, &tuple));
                WEFT__JINJA_TRY(weft__jinja_add_item(p, tuple, index->items[0]));
            }
        }
        WEFT__JINJA_TRY(weft__jinja_new_node(p, WEFT__JINJA_NODE_SLICE, line, &index));
        WEFT__JINJA_TRY(parse_subscript(p, index, &is_slice));
        if (tuple && is_slice)
            return weft__jinja_syntax(p, WEFT_UNSUPPORTED, "slices in several dimensions are not supported");
        if (tuple) WEFT__JINJA_TRY(weft__jinja_add_item(p, tuple, index->items[0]));
    }
    WEFT__JINJA_TRY(weft__jinja_expect_op(p, ']'));
    if (tuple) WEFT__JINJA_TRY(weft__jinja_finish_node(p, tuple));
    if (is_slice) {
        result = index;
    } else {
        WEFT__JINJA_TRY(weft__jinja_new_node(p, WEFT__JINJA_NODE_ITEM, line, &result));
        result->b = tuple ? tuple : index->items[0];
    }
    result->a = *node;
    *node = result;
    return weft__jinja_finish_node(p, result);
}

static weft_status parse_dot(weft__jinja_compiler *p, weft__jinja_node **node)
{
    weft__jinja_node *result;
    const weft__jinja_token *t = &p->tokens.items[p->at + 1];
    WEFT__JINJA_TRY(weft__jinja_expect_op(p, '.'));
    WEFT__JINJA_TRY(weft__jinja_new_node(
        p, t->type == WEFT__JINJA_TOKEN_INT ? WEFT__JINJA_NODE_ITEM : WEFT__JINJA_NODE_ATTR, t->line, &result));
    result->a = *node;
    if (t->type == WEFT__JINJA_TOKEN_INT) {
        WEFT__JINJA_TRY(weft__jinja_new_node(p, WEFT__JINJA_NODE_CONST, t->line, &result->b));
        result->b->value = weft__jinja_int(t->i);
        p->at++;
    } else {
        if (t->type != WEFT__JINJA_TOKEN_NAME) return weft__jinja_unexpected(p, "a name or number after '.'");
        WEFT__JINJA_TRY(weft__jinja_expect_ident(p, &result->name));
    }
    *node = result;
    return weft__jinja_finish_node(p, result);
}

static weft_status parse_keyword(weft__jinja_compiler *p, weft__jinja_call_args *a)
{
    const weft__jinja_str *name;
    weft__jinja_node *value;
    WEFT__JINJA_TRY(weft__jinja_expect_ident(p, &name));
    WEFT__JINJA_TRY(weft__jinja_expect_op(p, '='));
    WEFT__JINJA_TRY(weft__jinja_parse_expression(p, &value));
    for (size_t i = 0; i < a->n_named; i++) {
        if (a->names[i] == name) {
            return weft__jinja_syntax(p, WEFT_FORMAT, "argument '%.*s' is given twice", (int)name->len, name->data);
        }
    }
    WEFT__JINJA_TRY(weft__jinja_grow(p->ctx, &a->names, &a->names_capacity, a->n_named + 1, sizeof *a->names));
    a->names[a->n_named] = name;
    return weft__jinja_add_node(p, &a->named, &a->n_named, &a->named_capacity, value);
}

static weft_status parse_argument(weft__jinja_compiler *p, weft__jinja_call_args *a)
{
    static const char order[] = "a positional argument cannot follow named or starred ones";
    const weft__jinja_token *next = &p->tokens.items[p->at + (weft__jinja_current(p)->type != WEFT__JINJA_TOKEN_EOF)];
    if (weft__jinja_skip_op(p, '*')) {
        if (a->star || a->star_star) return weft__jinja_syntax(p, WEFT_FORMAT, "%s", order);
        return weft__jinja_parse_expression(p, &a->star);
    }
    if (weft__jinja_skip_op(p, WEFT__JINJA_OP2('*', '*'))) {
        if (a->star_star) return weft__jinja_syntax(p, WEFT_FORMAT, "%s", order);
        return weft__jinja_parse_expression(p, &a->star_star);
    }
    if (weft__jinja_current(p)->type == WEFT__JINJA_TOKEN_NAME && next->type == WEFT__JINJA_TOKEN_OP &&
        next->op == '=') {
        if (a->star_star) return weft__jinja_syntax(p, WEFT_FORMAT, "%s", order);
        return parse_keyword(p, a);
    }
    weft__jinja_node *value;
    if (a->star || a->star_star || a->n_named) return weft__jinja_syntax(p, WEFT_FORMAT, "%s", order);
    WEFT__JINJA_TRY(weft__jinja_parse_expression(p, &value));
    return weft__jinja_add_node(p, &a->pos, &a->n_pos, &a->pos_capacity, value);
}

static weft_status parse_args(weft__jinja_compiler *p, weft__jinja_node *node)
{
    weft__jinja_call_args *a = weft__jinja_alloc(p->ctx, sizeof *a);
    if (!a) return WEFT__JINJA_NO_ROOM(p->ctx);
    memset(a, 0, sizeof *a);
    node->args = a;
    WEFT__JINJA_TRY(weft__jinja_expect_op(p, '('));
    for (int first = 1; !weft__jinja_at_op(p, ')'); first = 0) {
        if (!first) WEFT__JINJA_TRY(weft__jinja_expect_op(p, ','));
        if (!first && weft__jinja_at_op(p, ')')) break;
        WEFT__JINJA_TRY(parse_argument(p, a));
    }
    return weft__jinja_expect_op(p, ')');
}

static weft_status parse_call(weft__jinja_compiler *p, weft__jinja_node **node)
{
    weft__jinja_node *result;
    WEFT__JINJA_TRY(weft__jinja_new_node(p, WEFT__JINJA_NODE_CALL, weft__jinja_current(p)->line, &result));
    result->a = *node;
    WEFT__JINJA_TRY(parse_args(p, result));
    *node = result;
    return weft__jinja_finish_node(p, result);
}

weft_status weft__jinja_parse_postfix(weft__jinja_compiler *p, weft__jinja_node **node)
{
    for (;;) {
        if (weft__jinja_at_op(p, '.')) {
            WEFT__JINJA_TRY(parse_dot(p, node));
        } else if (weft__jinja_at_op(p, '[')) {
            WEFT__JINJA_TRY(parse_item(p, node));
        } else if (weft__jinja_at_op(p, '(')) {
            WEFT__JINJA_TRY(parse_call(p, node));
        } else {
            return WEFT_OK;
        }
    }
}

/* The name of a filter or test, possibly dotted, into node->name. */
static weft_status parse_function_name(weft__jinja_compiler *p, weft__jinja_node *node)
{
    const weft__jinja_str *part;
    WEFT__JINJA_TRY(weft__jinja_expect_ident(p, &node->name));
    while (weft__jinja_skip_op(p, '.')) {
        char text[128];
        WEFT__JINJA_TRY(weft__jinja_expect_ident(p, &part));
        int n = snprintf(text, sizeof text, "%.*s.%.*s", (int)node->name->len, node->name->data, (int)part->len,
                         part->data);
        if (n < 0 || (size_t)n >= sizeof text) return weft__jinja_syntax(p, WEFT_FORMAT, "a name is too long");
        char *copy = weft__jinja_alloc(p->ctx, (size_t)n);
        if (!copy) return WEFT__JINJA_NO_ROOM(p->ctx);
        memcpy(copy, text, (size_t)n);
        WEFT__JINJA_TRY(weft__jinja_intern(p, copy, (size_t)n, &node->name));
    }
    return WEFT_OK;
}

weft_status weft__jinja_parse_filters(weft__jinja_compiler *p, weft__jinja_node *node, int bare, weft__jinja_node **out)
{
    for (; bare || weft__jinja_at_op(p, '|'); bare = 0) {
        weft__jinja_node *filter;
        if (!bare) WEFT__JINJA_TRY(weft__jinja_expect_op(p, '|'));
        WEFT__JINJA_TRY(weft__jinja_new_node(p, WEFT__JINJA_NODE_FILTER, weft__jinja_current(p)->line, &filter));
        WEFT__JINJA_TRY(parse_function_name(p, filter));
        filter->a = node;
        filter->function = weft__jinja_filter(filter->name);
        if (weft__jinja_at_op(p, '(')) WEFT__JINJA_TRY(parse_args(p, filter));
        WEFT__JINJA_TRY(weft__jinja_finish_node(p, filter));
        node = filter;
    }
    *out = node;
    return WEFT_OK;
}

/* Whether a test's argument may follow without parentheses. */
static int at_bare_argument(const weft__jinja_compiler *p)
{
    switch (weft__jinja_current(p)->type) {
    case WEFT__JINJA_TOKEN_STRING:
    case WEFT__JINJA_TOKEN_INT:
    case WEFT__JINJA_TOKEN_FLOAT: return 1;
    case WEFT__JINJA_TOKEN_NAME:
        return !weft__jinja_at_name(p, "else") && !weft__jinja_at_name(p, "or") && !weft__jinja_at_name(p, "and");
    default: return weft__jinja_at_op(p, '[') || weft__jinja_at_op(p, '{');
    }
}

static weft_status parse_bare_argument(weft__jinja_compiler *p, weft__jinja_node *test)
{
    weft__jinja_call_args *a = weft__jinja_alloc(p->ctx, sizeof *a);
    weft__jinja_node *value;
    if (!a) return WEFT__JINJA_NO_ROOM(p->ctx);
    memset(a, 0, sizeof *a);
    test->args = a;
    if (weft__jinja_at_name(p, "is")) return weft__jinja_syntax(p, WEFT_FORMAT, "tests cannot be chained with 'is'");
    WEFT__JINJA_TRY(weft__jinja_parse_primary(p, &value));
    WEFT__JINJA_TRY(weft__jinja_parse_postfix(p, &value));
    return weft__jinja_add_node(p, &a->pos, &a->n_pos, &a->pos_capacity, value);
}

static weft_status parse_test(weft__jinja_compiler *p, weft__jinja_node **node)
{
    weft__jinja_node *test;
    uint32_t line = weft__jinja_current(p)->line;
    p->at++;
    int negated = weft__jinja_skip_name(p, "not");
    WEFT__JINJA_TRY(weft__jinja_new_node(p, WEFT__JINJA_NODE_TEST, line, &test));
    WEFT__JINJA_TRY(parse_function_name(p, test));
    test->a = *node;
    test->function = weft__jinja_test(test->name);
    if (weft__jinja_at_op(p, '(')) {
        WEFT__JINJA_TRY(parse_args(p, test));
    } else if (at_bare_argument(p)) {
        WEFT__JINJA_TRY(parse_bare_argument(p, test));
    }
    WEFT__JINJA_TRY(weft__jinja_finish_node(p, test));
    *node = test;
    return negated ? weft__jinja_new_unary(p, WEFT__JINJA_NODE_NOT, line, test, node) : WEFT_OK;
}

weft_status weft__jinja_parse_filter_expr(weft__jinja_compiler *p, weft__jinja_node **node)
{
    for (;;) {
        if (weft__jinja_at_op(p, '|')) {
            WEFT__JINJA_TRY(weft__jinja_parse_filters(p, *node, 0, node));
        } else if (weft__jinja_at_name(p, "is")) {
            WEFT__JINJA_TRY(parse_test(p, node));
        } else if (weft__jinja_at_op(p, '(')) {
            WEFT__JINJA_TRY(parse_call(p, node));
        } else {
            return WEFT_OK;
        }
    }
}
