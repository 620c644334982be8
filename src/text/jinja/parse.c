/* parse.c: expressions (ast.h), by recursive descent with jinja2's precedences: conditional, or, and, not,
 * comparison, + and -, ~, * and its kin, **, sign, then what follows a value: .a [b] (c) |filter is test.
 * Runs once per template, in the thread that compiles. */
#include <stdio.h>
#include <string.h>

#include "text/jinja/ast.h"

static weft_status add_item(weft__jcompiler *p, weft__jnode *node, weft__jnode *item)
{
    return weft__j_add_node(p, &node->items, &node->n_items, &node->items_capacity, item);
}

static weft_status unary(weft__jcompiler *p, weft__jkind kind, uint32_t line, weft__jnode *a, weft__jnode **out)
{
    WEFT__J_TRY(weft__j_new_node(p, kind, line, out));
    (*out)->a = a;
    return weft__j_finish_node(p, *out);
}

static weft_status binary(weft__jcompiler *p, weft__jkind kind, weft__jop op, uint32_t line, weft__jnode **left,
                          weft__jnode *right)
{
    weft__jnode *node;
    WEFT__J_TRY(weft__j_new_node(p, kind, line, &node));
    node->a = *left;
    node->b = right;
    node->op = op;
    *left = node;
    return weft__j_finish_node(p, node);
}

/* ---- values ---- */

static weft_status parse_strings(weft__jcompiler *p, weft__jnode *node)
{
    weft__jbuf b = {0};
    for (; weft__j_token(p)->type == WEFT__JT_STRING; p->at++) {
        WEFT__J_TRY(weft__j_put(p->ctx, &b, weft__j_token(p)->text, weft__j_token(p)->len, 0));
    }
    return weft__j_buf_finish(p->ctx, &b, &node->value);
}

static weft_status parse_list(weft__jcompiler *p, weft__jnode *node)
{
    WEFT__J_TRY(weft__j_expect_op(p, '['));
    while (!weft__j_at_op(p, ']')) {
        weft__jnode *item;
        if (node->n_items) WEFT__J_TRY(weft__j_expect_op(p, ','));
        if (weft__j_at_op(p, ']')) break;
        WEFT__J_TRY(weft__j_parse_expression(p, &item));
        WEFT__J_TRY(add_item(p, node, item));
    }
    return weft__j_expect_op(p, ']');
}

static weft_status parse_dict(weft__jcompiler *p, weft__jnode *node)
{
    WEFT__J_TRY(weft__j_expect_op(p, '{'));
    while (!weft__j_at_op(p, '}')) {
        weft__jnode *key, *value;
        if (node->n_items) WEFT__J_TRY(weft__j_expect_op(p, ','));
        if (weft__j_at_op(p, '}')) break;
        WEFT__J_TRY(weft__j_parse_expression(p, &key));
        WEFT__J_TRY(weft__j_expect_op(p, ':'));
        WEFT__J_TRY(weft__j_parse_expression(p, &value));
        WEFT__J_TRY(add_item(p, node, key));
        WEFT__J_TRY(add_item(p, node, value));
    }
    return weft__j_expect_op(p, '}');
}

static weft_status parse_name(weft__jcompiler *p, weft__jnode *node)
{
    static const struct {
        const char *name;
        int value; /* -1: none */
    } constants[] = {{"true", 1}, {"True", 1}, {"false", 0}, {"False", 0}, {"none", -1}, {"None", -1}};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        if (!weft__j_skip_name(p, constants[i].name)) continue;
        node->value = constants[i].value < 0 ? weft__j_none() : weft__j_bool(constants[i].value);
        return WEFT_OK;
    }
    node->kind = WEFT__JN_NAME;
    return weft__j_expect_ident(p, &node->name);
}

weft_status weft__j_parse_primary(weft__jcompiler *p, weft__jnode **out)
{
    const weft__jtoken *t = weft__j_token(p);
    weft__jnode *node;
    if (weft__j_skip_op(p, '(')) {
        WEFT__J_TRY(weft__j_parse_tuple(p, WEFT__J_TUPLE_PARENTHESES, NULL, out));
        return weft__j_expect_op(p, ')');
    }
    WEFT__J_TRY(weft__j_new_node(p, WEFT__JN_CONST, t->line, &node));
    *out = node;
    switch (t->type) {
    case WEFT__JT_NAME: return parse_name(p, node);
    case WEFT__JT_STRING: return parse_strings(p, node);
    case WEFT__JT_INT: node->value = weft__j_int(t->i); break;
    case WEFT__JT_FLOAT: node->value = weft__j_float(t->f); break;
    default:
        if (weft__j_at_op(p, '[')) {
            node->kind = WEFT__JN_LIST;
            WEFT__J_TRY(parse_list(p, node));
        } else if (weft__j_at_op(p, '{')) {
            node->kind = WEFT__JN_DICT;
            WEFT__J_TRY(parse_dict(p, node));
        } else {
            return weft__j_unexpected(p, "an expression");
        }
        return weft__j_finish_node(p, node);
    }
    p->at++;
    return WEFT_OK;
}

static int at_tuple_end(const weft__jcompiler *p, const char *end)
{
    weft__jtoken_type type = weft__j_token(p)->type;
    return type == WEFT__JT_VARIABLE_END || type == WEFT__JT_BLOCK_END || weft__j_at_op(p, ')') ||
           (end && weft__j_at_name(p, end));
}

weft_status weft__j_parse_tuple(weft__jcompiler *p, weft__jtuple_mode mode, const char *end, weft__jnode **out)
{
    weft__jnode *tuple = NULL, *item = NULL;
    uint32_t line = weft__j_token(p)->line;
    int is_tuple = 0;
    WEFT__J_TRY(weft__j_nest(p));
    WEFT__J_TRY(weft__j_new_node(p, WEFT__JN_TUPLE, line, &tuple));
    for (;;) {
        if (tuple->n_items) WEFT__J_TRY(weft__j_expect_op(p, ','));
        if (at_tuple_end(p, end)) break;
        WEFT__J_TRY(mode == WEFT__J_TUPLE_TARGETS   ? weft__j_parse_primary(p, &item)
                    : mode == WEFT__J_TUPLE_NO_COND ? weft__j_parse_or(p, &item)
                                                    : weft__j_parse_expression(p, &item));
        WEFT__J_TRY(add_item(p, tuple, item));
        if (!weft__j_at_op(p, ',')) break;
        is_tuple = 1;
    }
    p->nesting--;
    *out = tuple;
    if (is_tuple) return weft__j_finish_node(p, tuple);
    if (!tuple->n_items) return mode == WEFT__J_TUPLE_PARENTHESES ? WEFT_OK : weft__j_unexpected(p, "an expression");
    *out = tuple->items[0];
    return WEFT_OK;
}

/* ---- what follows a value ---- */

static weft_status parse_subscript(weft__jcompiler *p, weft__jnode *part, int *is_slice)
{
    weft__jnode *bounds[3] = {0};
    int n = 0;
    *is_slice = 0;
    for (;;) {
        if (!weft__j_at_op(p, ':') && !weft__j_at_op(p, ']') && !weft__j_at_op(p, ',')) {
            WEFT__J_TRY(weft__j_parse_expression(p, &bounds[n]));
        } else if (!n && !weft__j_at_op(p, ':')) {
            return weft__j_unexpected(p, "an expression");
        }
        if (n == 2 || !weft__j_skip_op(p, ':')) break;
        *is_slice = 1;
        n++;
    }
    for (int i = 0; i < 3; i++) WEFT__J_TRY(add_item(p, part, bounds[i]));
    return WEFT_OK;
}

static weft_status parse_item(weft__jcompiler *p, weft__jnode **node)
{
    uint32_t line = weft__j_token(p)->line;
    weft__jnode *result, *tuple = NULL, *index = NULL;
    int is_slice = 0;
    WEFT__J_TRY(weft__j_expect_op(p, '['));
    if (weft__j_at_op(p, ']')) { /* x[] is x[()] */
        WEFT__J_TRY(weft__j_new_node(p, WEFT__JN_TUPLE, line, &tuple));
    }
    while (!weft__j_at_op(p, ']')) {
        if (index) {
            WEFT__J_TRY(weft__j_expect_op(p, ','));
            if (is_slice) return weft__j_syntax(p, WEFT_UNSUPPORTED, "slices in several dimensions are not supported");
            if (!tuple) {
                WEFT__J_TRY(weft__j_new_node(p, WEFT__JN_TUPLE, line, &tuple));
                WEFT__J_TRY(add_item(p, tuple, index->items[0]));
            }
        }
        WEFT__J_TRY(weft__j_new_node(p, WEFT__JN_SLICE, line, &index));
        WEFT__J_TRY(parse_subscript(p, index, &is_slice));
        if (tuple && is_slice) return weft__j_syntax(p, WEFT_UNSUPPORTED, "slices in several dimensions are not supported");
        if (tuple) WEFT__J_TRY(add_item(p, tuple, index->items[0]));
    }
    WEFT__J_TRY(weft__j_expect_op(p, ']'));
    if (tuple) WEFT__J_TRY(weft__j_finish_node(p, tuple));
    if (is_slice) {
        result = index;
    } else {
        WEFT__J_TRY(weft__j_new_node(p, WEFT__JN_ITEM, line, &result));
        result->b = tuple ? tuple : index->items[0];
    }
    result->a = *node;
    *node = result;
    return weft__j_finish_node(p, result);
}

static weft_status parse_dot(weft__jcompiler *p, weft__jnode **node)
{
    weft__jnode *result;
    const weft__jtoken *t = &p->tokens.items[p->at + 1];
    WEFT__J_TRY(weft__j_expect_op(p, '.'));
    WEFT__J_TRY(weft__j_new_node(p, t->type == WEFT__JT_INT ? WEFT__JN_ITEM : WEFT__JN_ATTR, t->line, &result));
    result->a = *node;
    if (t->type == WEFT__JT_INT) {
        WEFT__J_TRY(weft__j_new_node(p, WEFT__JN_CONST, t->line, &result->b));
        result->b->value = weft__j_int(t->i);
        p->at++;
    } else {
        if (t->type != WEFT__JT_NAME) return weft__j_unexpected(p, "a name or number after '.'");
        WEFT__J_TRY(weft__j_expect_ident(p, &result->name));
    }
    *node = result;
    return weft__j_finish_node(p, result);
}

static weft_status parse_keyword(weft__jcompiler *p, weft__jcall_args *a)
{
    const weft__jstr *name;
    weft__jnode *value;
    WEFT__J_TRY(weft__j_expect_ident(p, &name));
    WEFT__J_TRY(weft__j_expect_op(p, '='));
    WEFT__J_TRY(weft__j_parse_expression(p, &value));
    for (size_t i = 0; i < a->n_named; i++) {
        if (a->names[i] == name) {
            return weft__j_syntax(p, WEFT_FORMAT, "argument '%.*s' is given twice", (int)name->len, name->data);
        }
    }
    WEFT__J_TRY(weft__j_grow(p->ctx, &a->names, &a->names_capacity, a->n_named + 1, sizeof *a->names));
    a->names[a->n_named] = name;
    return weft__j_add_node(p, &a->named, &a->n_named, &a->named_capacity, value);
}

static weft_status parse_argument(weft__jcompiler *p, weft__jcall_args *a)
{
    static const char order[] = "a positional argument cannot follow named or starred ones";
    const weft__jtoken *next = &p->tokens.items[p->at + (weft__j_token(p)->type != WEFT__JT_EOF)];
    if (weft__j_skip_op(p, '*')) {
        if (a->star || a->star_star) return weft__j_syntax(p, WEFT_FORMAT, "%s", order);
        return weft__j_parse_expression(p, &a->star);
    }
    if (weft__j_skip_op(p, WEFT__J_OP2('*', '*'))) {
        if (a->star_star) return weft__j_syntax(p, WEFT_FORMAT, "%s", order);
        return weft__j_parse_expression(p, &a->star_star);
    }
    if (weft__j_token(p)->type == WEFT__JT_NAME && next->type == WEFT__JT_OP && next->op == '=') {
        if (a->star_star) return weft__j_syntax(p, WEFT_FORMAT, "%s", order);
        return parse_keyword(p, a);
    }
    weft__jnode *value;
    if (a->star || a->star_star || a->n_named) return weft__j_syntax(p, WEFT_FORMAT, "%s", order);
    WEFT__J_TRY(weft__j_parse_expression(p, &value));
    return weft__j_add_node(p, &a->pos, &a->n_pos, &a->pos_capacity, value);
}

static weft_status parse_args(weft__jcompiler *p, weft__jnode *node)
{
    weft__jcall_args *a = weft__j_alloc(p->ctx, sizeof *a);
    if (!a) return WEFT__J_NO_ROOM(p->ctx);
    memset(a, 0, sizeof *a);
    node->args = a;
    WEFT__J_TRY(weft__j_expect_op(p, '('));
    for (int first = 1; !weft__j_at_op(p, ')'); first = 0) {
        if (!first) WEFT__J_TRY(weft__j_expect_op(p, ','));
        if (!first && weft__j_at_op(p, ')')) break;
        WEFT__J_TRY(parse_argument(p, a));
    }
    return weft__j_expect_op(p, ')');
}

static weft_status parse_call(weft__jcompiler *p, weft__jnode **node)
{
    weft__jnode *result;
    WEFT__J_TRY(weft__j_new_node(p, WEFT__JN_CALL, weft__j_token(p)->line, &result));
    result->a = *node;
    WEFT__J_TRY(parse_args(p, result));
    *node = result;
    return weft__j_finish_node(p, result);
}

static weft_status parse_postfix(weft__jcompiler *p, weft__jnode **node)
{
    for (;;) {
        if (weft__j_at_op(p, '.')) {
            WEFT__J_TRY(parse_dot(p, node));
        } else if (weft__j_at_op(p, '[')) {
            WEFT__J_TRY(parse_item(p, node));
        } else if (weft__j_at_op(p, '(')) {
            WEFT__J_TRY(parse_call(p, node));
        } else {
            return WEFT_OK;
        }
    }
}

/* The name of a filter or test, possibly dotted, into node->name. */
static weft_status parse_function_name(weft__jcompiler *p, weft__jnode *node)
{
    const weft__jstr *part;
    WEFT__J_TRY(weft__j_expect_ident(p, &node->name));
    while (weft__j_skip_op(p, '.')) {
        char text[128];
        WEFT__J_TRY(weft__j_expect_ident(p, &part));
        int n = snprintf(text, sizeof text, "%.*s.%.*s", (int)node->name->len, node->name->data, (int)part->len, part->data);
        if (n < 0 || (size_t)n >= sizeof text) return weft__j_syntax(p, WEFT_FORMAT, "a name is too long");
        char *copy = weft__j_alloc(p->ctx, (size_t)n);
        if (!copy) return WEFT__J_NO_ROOM(p->ctx);
        memcpy(copy, text, (size_t)n);
        WEFT__J_TRY(weft__j_intern(p, copy, (size_t)n, &node->name));
    }
    return WEFT_OK;
}

weft_status weft__j_parse_filters(weft__jcompiler *p, weft__jnode *node, int bare, weft__jnode **out)
{
    for (; bare || weft__j_at_op(p, '|'); bare = 0) {
        weft__jnode *filter;
        if (!bare) WEFT__J_TRY(weft__j_expect_op(p, '|'));
        WEFT__J_TRY(weft__j_new_node(p, WEFT__JN_FILTER, weft__j_token(p)->line, &filter));
        WEFT__J_TRY(parse_function_name(p, filter));
        filter->a = node;
        filter->function = weft__j_filter(filter->name);
        if (weft__j_at_op(p, '(')) WEFT__J_TRY(parse_args(p, filter));
        WEFT__J_TRY(weft__j_finish_node(p, filter));
        node = filter;
    }
    *out = node;
    return WEFT_OK;
}

/* Whether a test's argument may follow without parentheses. */
static int at_bare_argument(const weft__jcompiler *p)
{
    switch (weft__j_token(p)->type) {
    case WEFT__JT_STRING:
    case WEFT__JT_INT:
    case WEFT__JT_FLOAT: return 1;
    case WEFT__JT_NAME: return !weft__j_at_name(p, "else") && !weft__j_at_name(p, "or") && !weft__j_at_name(p, "and");
    default: return weft__j_at_op(p, '[') || weft__j_at_op(p, '{');
    }
}

static weft_status parse_bare_argument(weft__jcompiler *p, weft__jnode *test)
{
    weft__jcall_args *a = weft__j_alloc(p->ctx, sizeof *a);
    weft__jnode *value;
    if (!a) return WEFT__J_NO_ROOM(p->ctx);
    memset(a, 0, sizeof *a);
    test->args = a;
    if (weft__j_at_name(p, "is")) return weft__j_syntax(p, WEFT_FORMAT, "tests cannot be chained with 'is'");
    WEFT__J_TRY(weft__j_parse_primary(p, &value));
    WEFT__J_TRY(parse_postfix(p, &value));
    return weft__j_add_node(p, &a->pos, &a->n_pos, &a->pos_capacity, value);
}

static weft_status parse_test(weft__jcompiler *p, weft__jnode **node)
{
    weft__jnode *test;
    uint32_t line = weft__j_token(p)->line;
    p->at++;
    int negated = weft__j_skip_name(p, "not");
    WEFT__J_TRY(weft__j_new_node(p, WEFT__JN_TEST, line, &test));
    WEFT__J_TRY(parse_function_name(p, test));
    test->a = *node;
    test->function = weft__j_test(test->name);
    if (weft__j_at_op(p, '(')) {
        WEFT__J_TRY(parse_args(p, test));
    } else if (at_bare_argument(p)) {
        WEFT__J_TRY(parse_bare_argument(p, test));
    }
    WEFT__J_TRY(weft__j_finish_node(p, test));
    *node = test;
    return negated ? unary(p, WEFT__JN_NOT, line, test, node) : WEFT_OK;
}

static weft_status parse_filter_expr(weft__jcompiler *p, weft__jnode **node)
{
    for (;;) {
        if (weft__j_at_op(p, '|')) {
            WEFT__J_TRY(weft__j_parse_filters(p, *node, 0, node));
        } else if (weft__j_at_name(p, "is")) {
            WEFT__J_TRY(parse_test(p, node));
        } else if (weft__j_at_op(p, '(')) {
            WEFT__J_TRY(parse_call(p, node));
        } else {
            return WEFT_OK;
        }
    }
}

/* ---- operators ---- */

static weft_status parse_unary(weft__jcompiler *p, int with_filters, weft__jnode **out)
{
    uint32_t line = weft__j_token(p)->line;
    WEFT__J_TRY(weft__j_nest(p));
    if (weft__j_at_op(p, '-') || weft__j_at_op(p, '+')) {
        weft__jkind kind = weft__j_at_op(p, '-') ? WEFT__JN_NEG : WEFT__JN_POS;
        weft__jnode *operand;
        p->at++;
        WEFT__J_TRY(parse_unary(p, 0, &operand));
        WEFT__J_TRY(unary(p, kind, line, operand, out));
    } else {
        WEFT__J_TRY(weft__j_parse_primary(p, out));
    }
    WEFT__J_TRY(parse_postfix(p, out));
    if (with_filters) WEFT__J_TRY(parse_filter_expr(p, out));
    p->nesting--;
    return WEFT_OK;
}

/* One level of operators that group to the left. `ops` ends with a 0. */
typedef struct level {
    uint32_t ops[5];
    weft__jop meaning[5];
} level;

static const level level_sum = {{'+', '-'}, {WEFT__J_ADD, WEFT__J_SUB}};
static const level level_product = {{'*', '/', WEFT__J_OP2('/', '/'), '%'},
                                    {WEFT__J_MUL, WEFT__J_DIV, WEFT__J_FLOORDIV, WEFT__J_MOD}};
static const level level_power = {{WEFT__J_OP2('*', '*')}, {WEFT__J_POW}};

static int at_level(const weft__jcompiler *p, const level *l)
{
    for (int i = 0; l->ops[i]; i++) {
        if (weft__j_at_op(p, l->ops[i])) return i;
    }
    return -1;
}

static weft_status parse_power(weft__jcompiler *p, weft__jnode **out)
{
    uint32_t line = weft__j_token(p)->line;
    WEFT__J_TRY(parse_unary(p, 1, out));
    while (at_level(p, &level_power) >= 0) {
        weft__jnode *right;
        p->at++;
        WEFT__J_TRY(parse_unary(p, 1, &right));
        WEFT__J_TRY(binary(p, WEFT__JN_BINARY, WEFT__J_POW, line, out, right));
    }
    return WEFT_OK;
}

static weft_status parse_product(weft__jcompiler *p, weft__jnode **out)
{
    uint32_t line = weft__j_token(p)->line;
    WEFT__J_TRY(parse_power(p, out));
    for (int i; (i = at_level(p, &level_product)) >= 0;) {
        weft__jnode *right;
        p->at++;
        WEFT__J_TRY(parse_power(p, &right));
        WEFT__J_TRY(binary(p, WEFT__JN_BINARY, level_product.meaning[i], line, out, right));
    }
    return WEFT_OK;
}

static weft_status parse_concat(weft__jcompiler *p, weft__jnode **out)
{
    weft__jnode *first, *concat, *item;
    uint32_t line = weft__j_token(p)->line;
    WEFT__J_TRY(parse_product(p, &first));
    *out = first;
    if (!weft__j_at_op(p, '~')) return WEFT_OK;
    WEFT__J_TRY(weft__j_new_node(p, WEFT__JN_CONCAT, line, &concat));
    WEFT__J_TRY(add_item(p, concat, first));
    while (weft__j_skip_op(p, '~')) {
        WEFT__J_TRY(parse_product(p, &item));
        WEFT__J_TRY(add_item(p, concat, item));
    }
    *out = concat;
    return weft__j_finish_node(p, concat);
}

static weft_status parse_sum(weft__jcompiler *p, weft__jnode **out)
{
    uint32_t line = weft__j_token(p)->line;
    WEFT__J_TRY(parse_concat(p, out));
    for (int i; (i = at_level(p, &level_sum)) >= 0;) {
        weft__jnode *right;
        p->at++;
        WEFT__J_TRY(parse_concat(p, &right));
        WEFT__J_TRY(binary(p, WEFT__JN_BINARY, level_sum.meaning[i], line, out, right));
    }
    return WEFT_OK;
}

/* Steps over a comparison operator if there is one. */
static int skip_comparison(weft__jcompiler *p, weft__jop *op)
{
    static const struct {
        uint32_t token;
        weft__jop op;
    } table[] = {
        {WEFT__J_OP2('=', '='), WEFT__J_EQ},
        {WEFT__J_OP2('!', '='), WEFT__J_NE},
        {'<', WEFT__J_LT},
        {WEFT__J_OP2('<', '='), WEFT__J_LE},
        {'>', WEFT__J_GT},
        {WEFT__J_OP2('>', '='), WEFT__J_GE},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        *op = table[i].op;
        if (weft__j_skip_op(p, table[i].token)) return 1;
    }
    *op = WEFT__J_IN;
    if (weft__j_skip_name(p, "in")) return 1;
    *op = WEFT__J_NOT_IN;
    if (!weft__j_at_name(p, "not") || !weft__j_is_name(&p->tokens.items[p->at + 1], "in")) return 0;
    p->at += 2;
    return 1;
}

static weft_status parse_comparison(weft__jcompiler *p, weft__jnode **out)
{
    weft__jnode *node = NULL, *operand;
    weft__jop op;
    uint32_t line = weft__j_token(p)->line;
    WEFT__J_TRY(parse_sum(p, out));
    while (skip_comparison(p, &op)) {
        if (!node) {
            WEFT__J_TRY(weft__j_new_node(p, WEFT__JN_COMPARE, line, &node));
            node->a = *out;
            *out = node;
        }
        WEFT__J_TRY(weft__j_grow(p->ctx, &node->ops, &node->ops_capacity, node->n_items + 1, sizeof *node->ops));
        node->ops[node->n_items] = op;
        WEFT__J_TRY(parse_sum(p, &operand));
        WEFT__J_TRY(add_item(p, node, operand));
    }
    return node ? weft__j_finish_node(p, node) : WEFT_OK;
}

static weft_status parse_not(weft__jcompiler *p, weft__jnode **out)
{
    uint32_t line = weft__j_token(p)->line;
    if (!weft__j_skip_name(p, "not")) return parse_comparison(p, out);
    weft__jnode *operand;
    WEFT__J_TRY(weft__j_nest(p));
    WEFT__J_TRY(parse_not(p, &operand));
    p->nesting--;
    return unary(p, WEFT__JN_NOT, line, operand, out);
}

static weft_status parse_and(weft__jcompiler *p, weft__jnode **out)
{
    uint32_t line = weft__j_token(p)->line;
    WEFT__J_TRY(parse_not(p, out));
    while (weft__j_skip_name(p, "and")) {
        weft__jnode *right;
        WEFT__J_TRY(parse_not(p, &right));
        WEFT__J_TRY(binary(p, WEFT__JN_AND, WEFT__J_ADD, line, out, right));
    }
    return WEFT_OK;
}

weft_status weft__j_parse_or(weft__jcompiler *p, weft__jnode **out)
{
    uint32_t line = weft__j_token(p)->line;
    WEFT__J_TRY(parse_and(p, out));
    while (weft__j_skip_name(p, "or")) {
        weft__jnode *right;
        WEFT__J_TRY(parse_and(p, &right));
        WEFT__J_TRY(binary(p, WEFT__JN_OR, WEFT__J_ADD, line, out, right));
    }
    return WEFT_OK;
}

weft_status weft__j_parse_expression(weft__jcompiler *p, weft__jnode **out)
{
    WEFT__J_TRY(weft__j_nest(p));
    uint32_t line = weft__j_token(p)->line;
    WEFT__J_TRY(weft__j_parse_or(p, out));
    while (weft__j_skip_name(p, "if")) {
        weft__jnode *node;
        WEFT__J_TRY(weft__j_new_node(p, WEFT__JN_COND, line, &node));
        node->b = *out;
        WEFT__J_TRY(weft__j_parse_or(p, &node->a));
        if (weft__j_skip_name(p, "else")) WEFT__J_TRY(weft__j_parse_expression(p, &node->c));
        WEFT__J_TRY(weft__j_finish_node(p, node));
        *out = node;
    }
    p->nesting--;
    return WEFT_OK;
}
