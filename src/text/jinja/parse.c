// SPDX-License-Identifier: Apache-2.0
/* parse.c: expressions (ast.h), by recursive descent with jinja2's precedences: conditional, or, and, not,
 * comparison, + and -, ~, * and its kin, **, sign, then what follows a value (postfix.c).
 * Runs once per template, in the thread that compiles. */
#include "text/jinja/ast.h"

/* Without the conditional form, where `if` means something else. */
static weft_status parse_or(weft__jinja_compiler *p, weft__jinja_node **out);

static weft_status binary(weft__jinja_compiler *p, weft__jinja_node_kind kind, weft__jinja_op op, uint32_t line,
                          weft__jinja_node **left, weft__jinja_node *right)
{
    weft__jinja_node *node;
    WEFT__JINJA_TRY(weft__jinja_new_node(p, kind, line, &node));
    node->a = *left;
    node->b = right;
    node->op = op;
    *left = node;
    return weft__jinja_finish_node(p, node);
}

/* ---- values ---- */

static weft_status parse_strings(weft__jinja_compiler *p, weft__jinja_node *node)
{
    weft__jinja_buf b = {0};
    for (; weft__jinja_current(p)->type == WEFT__JINJA_TOKEN_STRING; p->at++) {
        WEFT__JINJA_TRY(weft__jinja_put(p->ctx, &b, weft__jinja_current(p)->text, weft__jinja_current(p)->len, 0));
    }
    return weft__jinja_buf_finish(p->ctx, &b, &node->value);
}

static weft_status parse_list(weft__jinja_compiler *p, weft__jinja_node *node)
{
    WEFT__JINJA_TRY(weft__jinja_expect_op(p, '['));
    while (!weft__jinja_at_op(p, ']')) {
        weft__jinja_node *item;
        if (node->n_items) WEFT__JINJA_TRY(weft__jinja_expect_op(p, ','));
        if (weft__jinja_at_op(p, ']')) break;
        WEFT__JINJA_TRY(weft__jinja_parse_expression(p, &item));
        WEFT__JINJA_TRY(weft__jinja_add_item(p, node, item));
    }
    return weft__jinja_expect_op(p, ']');
}

static weft_status parse_dict(weft__jinja_compiler *p, weft__jinja_node *node)
{
    WEFT__JINJA_TRY(weft__jinja_expect_op(p, '{'));
    while (!weft__jinja_at_op(p, '}')) {
        weft__jinja_node *key, *value;
        if (node->n_items) WEFT__JINJA_TRY(weft__jinja_expect_op(p, ','));
        if (weft__jinja_at_op(p, '}')) break;
        WEFT__JINJA_TRY(weft__jinja_parse_expression(p, &key));
        WEFT__JINJA_TRY(weft__jinja_expect_op(p, ':'));
        WEFT__JINJA_TRY(weft__jinja_parse_expression(p, &value));
        WEFT__JINJA_TRY(weft__jinja_add_item(p, node, key));
        WEFT__JINJA_TRY(weft__jinja_add_item(p, node, value));
    }
    return weft__jinja_expect_op(p, '}');
}

static weft_status parse_name(weft__jinja_compiler *p, weft__jinja_node *node)
{
    static const struct {
        const char *name;
        int value; /* -1: none */
    } constants[] = {{"true", 1}, {"True", 1}, {"false", 0}, {"False", 0}, {"none", -1}, {"None", -1}};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        if (!weft__jinja_skip_name(p, constants[i].name)) continue;
        node->value = constants[i].value < 0 ? weft__jinja_none() : weft__jinja_bool(constants[i].value);
        return WEFT_OK;
    }
    node->kind = WEFT__JINJA_NODE_NAME;
    return weft__jinja_expect_ident(p, &node->name);
}

weft_status weft__jinja_parse_primary(weft__jinja_compiler *p, weft__jinja_node **out)
{
    const weft__jinja_token *t = weft__jinja_current(p);
    weft__jinja_node *node;
    if (weft__jinja_skip_op(p, '(')) {
        WEFT__JINJA_TRY(weft__jinja_parse_tuple(p, WEFT__JINJA_TUPLE_PARENTHESES, NULL, out));
        return weft__jinja_expect_op(p, ')');
    }
    WEFT__JINJA_TRY(weft__jinja_new_node(p, WEFT__JINJA_NODE_CONST, t->line, &node));
    *out = node;
    switch (t->type) {
    case WEFT__JINJA_TOKEN_NAME: return parse_name(p, node);
    case WEFT__JINJA_TOKEN_STRING: return parse_strings(p, node);
    case WEFT__JINJA_TOKEN_INT: node->value = weft__jinja_int(t->i); break;
    case WEFT__JINJA_TOKEN_FLOAT: node->value = weft__jinja_float(t->f); break;
    default:
        if (weft__jinja_at_op(p, '[')) {
            node->kind = WEFT__JINJA_NODE_LIST;
            WEFT__JINJA_TRY(parse_list(p, node));
        } else if (weft__jinja_at_op(p, '{')) {
            node->kind = WEFT__JINJA_NODE_DICT;
            WEFT__JINJA_TRY(parse_dict(p, node));
        } else {
            return weft__jinja_unexpected(p, "an expression");
        }
        return weft__jinja_finish_node(p, node);
    }
    p->at++;
    return WEFT_OK;
}

static int at_tuple_end(const weft__jinja_compiler *p, const char *end)
{
    weft__jinja_token_type type = weft__jinja_current(p)->type;
    return type == WEFT__JINJA_TOKEN_VARIABLE_END || type == WEFT__JINJA_TOKEN_BLOCK_END || weft__jinja_at_op(p, ')') ||
           (end && weft__jinja_at_name(p, end));
}

weft_status weft__jinja_parse_tuple(weft__jinja_compiler *p, weft__jinja_tuple_mode mode, const char *end,
                                    weft__jinja_node **out)
{
    weft__jinja_node *tuple = NULL, *item = NULL;
    uint32_t line = weft__jinja_current(p)->line;
    int is_tuple = 0;
    WEFT__JINJA_TRY(weft__jinja_nest(p));
    WEFT__JINJA_TRY(weft__jinja_new_node(p, WEFT__JINJA_NODE_TUPLE, line, &tuple));
    for (;;) {
        if (tuple->n_items) WEFT__JINJA_TRY(weft__jinja_expect_op(p, ','));
        if (at_tuple_end(p, end)) break;
        WEFT__JINJA_TRY(mode == WEFT__JINJA_TUPLE_TARGETS   ? weft__jinja_parse_primary(p, &item)
                        : mode == WEFT__JINJA_TUPLE_NO_COND ? parse_or(p, &item)
                                                            : weft__jinja_parse_expression(p, &item));
        WEFT__JINJA_TRY(weft__jinja_add_item(p, tuple, item));
        if (!weft__jinja_at_op(p, ',')) break;
        is_tuple = 1;
    }
    p->nesting--;
    *out = tuple;
    if (is_tuple) return weft__jinja_finish_node(p, tuple);
    if (!tuple->n_items)
        return mode == WEFT__JINJA_TUPLE_PARENTHESES ? WEFT_OK : weft__jinja_unexpected(p, "an expression");
    *out = tuple->items[0];
    return WEFT_OK;
}

/* ---- operators ---- */

static weft_status parse_unary(weft__jinja_compiler *p, int with_filters, weft__jinja_node **out)
{
    uint32_t line = weft__jinja_current(p)->line;
    WEFT__JINJA_TRY(weft__jinja_nest(p));
    if (weft__jinja_at_op(p, '-') || weft__jinja_at_op(p, '+')) {
        weft__jinja_node_kind kind = weft__jinja_at_op(p, '-') ? WEFT__JINJA_NODE_NEG : WEFT__JINJA_NODE_POS;
        weft__jinja_node *operand;
        p->at++;
        WEFT__JINJA_TRY(parse_unary(p, 0, &operand));
        WEFT__JINJA_TRY(weft__jinja_new_unary(p, kind, line, operand, out));
    } else {
        WEFT__JINJA_TRY(weft__jinja_parse_primary(p, out));
    }
    WEFT__JINJA_TRY(weft__jinja_parse_postfix(p, out));
    if (with_filters) WEFT__JINJA_TRY(weft__jinja_parse_filter_expr(p, out));
    p->nesting--;
    return WEFT_OK;
}

/* One level of operators that group to the left. `ops` ends with a 0. */
typedef struct parse_level {
    uint32_t ops[5];
    weft__jinja_op meaning[5];
} parse_level;

static const parse_level level_sum = {{'+', '-'}, {WEFT__JINJA_ADD, WEFT__JINJA_SUB}};
static const parse_level level_product = {{'*', '/', WEFT__JINJA_OP2('/', '/'), '%'},
                                          {WEFT__JINJA_MUL, WEFT__JINJA_DIV, WEFT__JINJA_FLOORDIV, WEFT__JINJA_MOD}};
static const parse_level level_power = {{WEFT__JINJA_OP2('*', '*')}, {WEFT__JINJA_POW}};

static int at_level(const weft__jinja_compiler *p, const parse_level *l)
{
    for (int i = 0; l->ops[i]; i++) {
        if (weft__jinja_at_op(p, l->ops[i])) return i;
    }
    return -1;
}

static weft_status parse_power(weft__jinja_compiler *p, weft__jinja_node **out)
{
    uint32_t line = weft__jinja_current(p)->line;
    WEFT__JINJA_TRY(parse_unary(p, 1, out));
    while (at_level(p, &level_power) >= 0) {
        weft__jinja_node *right;
        p->at++;
        WEFT__JINJA_TRY(parse_unary(p, 1, &right));
        WEFT__JINJA_TRY(binary(p, WEFT__JINJA_NODE_BINARY, WEFT__JINJA_POW, line, out, right));
    }
    return WEFT_OK;
}

static weft_status parse_product(weft__jinja_compiler *p, weft__jinja_node **out)
{
    uint32_t line = weft__jinja_current(p)->line;
    WEFT__JINJA_TRY(parse_power(p, out));
    for (int i; (i = at_level(p, &level_product)) >= 0;) {
        weft__jinja_node *right;
        p->at++;
        WEFT__JINJA_TRY(parse_power(p, &right));
        WEFT__JINJA_TRY(binary(p, WEFT__JINJA_NODE_BINARY, level_product.meaning[i], line, out, right));
    }
    return WEFT_OK;
}

static weft_status parse_concat(weft__jinja_compiler *p, weft__jinja_node **out)
{
    weft__jinja_node *first, *concat, *item;
    uint32_t line = weft__jinja_current(p)->line;
    WEFT__JINJA_TRY(parse_product(p, &first));
    *out = first;
    if (!weft__jinja_at_op(p, '~')) return WEFT_OK;
    WEFT__JINJA_TRY(weft__jinja_new_node(p, WEFT__JINJA_NODE_CONCAT, line, &concat));
    WEFT__JINJA_TRY(weft__jinja_add_item(p, concat, first));
    while (weft__jinja_skip_op(p, '~')) {
        WEFT__JINJA_TRY(parse_product(p, &item));
        WEFT__JINJA_TRY(weft__jinja_add_item(p, concat, item));
    }
    *out = concat;
    return weft__jinja_finish_node(p, concat);
}

static weft_status parse_sum(weft__jinja_compiler *p, weft__jinja_node **out)
{
    uint32_t line = weft__jinja_current(p)->line;
    WEFT__JINJA_TRY(parse_concat(p, out));
    for (int i; (i = at_level(p, &level_sum)) >= 0;) {
        weft__jinja_node *right;
        p->at++;
        WEFT__JINJA_TRY(parse_concat(p, &right));
        WEFT__JINJA_TRY(binary(p, WEFT__JINJA_NODE_BINARY, level_sum.meaning[i], line, out, right));
    }
    return WEFT_OK;
}

/* Steps over a comparison operator if there is one. */
static int skip_comparison(weft__jinja_compiler *p, weft__jinja_op *op)
{
    static const struct {
        uint32_t token;
        weft__jinja_op op;
    } table[] = {
        {WEFT__JINJA_OP2('=', '='), WEFT__JINJA_EQ},
        {WEFT__JINJA_OP2('!', '='), WEFT__JINJA_NE},
        {'<', WEFT__JINJA_LT},
        {WEFT__JINJA_OP2('<', '='), WEFT__JINJA_LE},
        {'>', WEFT__JINJA_GT},
        {WEFT__JINJA_OP2('>', '='), WEFT__JINJA_GE},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        *op = table[i].op;
        if (weft__jinja_skip_op(p, table[i].token)) return 1;
    }
    *op = WEFT__JINJA_IN;
    if (weft__jinja_skip_name(p, "in")) return 1;
    *op = WEFT__JINJA_NOT_IN;
    if (!weft__jinja_at_name(p, "not") || !weft__jinja_is_name(&p->tokens.items[p->at + 1], "in")) return 0;
    p->at += 2;
    return 1;
}

static weft_status parse_comparison(weft__jinja_compiler *p, weft__jinja_node **out)
{
    weft__jinja_node *node = NULL, *operand;
    weft__jinja_op op;
    uint32_t line = weft__jinja_current(p)->line;
    WEFT__JINJA_TRY(parse_sum(p, out));
    while (skip_comparison(p, &op)) {
        if (!node) {
            WEFT__JINJA_TRY(weft__jinja_new_node(p, WEFT__JINJA_NODE_COMPARE, line, &node));
            node->a = *out;
            *out = node;
        }
        WEFT__JINJA_TRY(
            weft__jinja_grow(p->ctx, &node->ops, &node->ops_capacity, node->n_items + 1, sizeof *node->ops));
        node->ops[node->n_items] = op;
        WEFT__JINJA_TRY(parse_sum(p, &operand));
        WEFT__JINJA_TRY(weft__jinja_add_item(p, node, operand));
    }
    return node ? weft__jinja_finish_node(p, node) : WEFT_OK;
}

static weft_status parse_not(weft__jinja_compiler *p, weft__jinja_node **out)
{
    uint32_t line = weft__jinja_current(p)->line;
    if (!weft__jinja_skip_name(p, "not")) return parse_comparison(p, out);
    weft__jinja_node *operand;
    WEFT__JINJA_TRY(weft__jinja_nest(p));
    WEFT__JINJA_TRY(parse_not(p, &operand));
    p->nesting--;
    return weft__jinja_new_unary(p, WEFT__JINJA_NODE_NOT, line, operand, out);
}

static weft_status parse_and(weft__jinja_compiler *p, weft__jinja_node **out)
{
    uint32_t line = weft__jinja_current(p)->line;
    WEFT__JINJA_TRY(parse_not(p, out));
    while (weft__jinja_skip_name(p, "and")) {
        weft__jinja_node *right;
        WEFT__JINJA_TRY(parse_not(p, &right));
        WEFT__JINJA_TRY(binary(p, WEFT__JINJA_NODE_AND, WEFT__JINJA_ADD, line, out, right));
    }
    return WEFT_OK;
}

static weft_status parse_or(weft__jinja_compiler *p, weft__jinja_node **out)
{
    uint32_t line = weft__jinja_current(p)->line;
    WEFT__JINJA_TRY(parse_and(p, out));
    while (weft__jinja_skip_name(p, "or")) {
        weft__jinja_node *right;
        WEFT__JINJA_TRY(parse_and(p, &right));
        WEFT__JINJA_TRY(binary(p, WEFT__JINJA_NODE_OR, WEFT__JINJA_ADD, line, out, right));
    }
    return WEFT_OK;
}

weft_status weft__jinja_parse_expression(weft__jinja_compiler *p, weft__jinja_node **out)
{
    WEFT__JINJA_TRY(weft__jinja_nest(p));
    uint32_t line = weft__jinja_current(p)->line;
    WEFT__JINJA_TRY(parse_or(p, out));
    while (weft__jinja_skip_name(p, "if")) {
        weft__jinja_node *node;
        WEFT__JINJA_TRY(weft__jinja_new_node(p, WEFT__JINJA_NODE_COND, line, &node));
        node->b = *out;
        WEFT__JINJA_TRY(parse_or(p, &node->a));
        if (weft__jinja_skip_name(p, "else")) WEFT__JINJA_TRY(weft__jinja_parse_expression(p, &node->c));
        WEFT__JINJA_TRY(weft__jinja_finish_node(p, node));
        *out = node;
    }
    p->nesting--;
    return WEFT_OK;
}
