// SPDX-License-Identifier: Apache-2.0
/* statement.c: tags and the text between them into statements (ast.h).
 * Runs once per template, in the thread that compiles. */
#include <string.h>

#include "text/jinja/ast.h"

/* What may end a body: up to three names, then NULL. */
typedef const char *const *ends;

static weft_status parse_body(weft__jinja_compiler *p, ends until, const char *what, uint32_t line,
                              weft__jinja_body *body);

static weft_status add_statement(weft__jinja_compiler *p, weft__jinja_body *body, weft__jinja_node *node)
{
    return weft__jinja_add_node(p, &body->items, &body->n, &body->capacity, node);
}

/* Adds a body to node and parses into it: from the end of the present tag up to one of the names, which becomes
 * current. */
static weft_status parse_block(weft__jinja_compiler *p, weft__jinja_node *node, ends until, const char *what)
{
    weft__jinja_skip_op(p, ':');
    WEFT__JINJA_TRY(weft__jinja_expect_type(p, WEFT__JINJA_TOKEN_BLOCK_END));
    weft__jinja_body body = {0};
    WEFT__JINJA_TRY(weft__jinja_nest(p));
    WEFT__JINJA_TRY(parse_body(p, until, what, node->line, &body));
    p->nesting--;
    WEFT__JINJA_TRY(
        weft__jinja_grow(p->ctx, &node->bodies, &node->bodies_capacity, node->n_bodies + 1, sizeof *node->bodies));
    node->bodies[node->n_bodies++] = body;
    return WEFT_OK;
}

/* The same up to one name, which is stepped over. */
static weft_status parse_closed_block(weft__jinja_compiler *p, weft__jinja_node *node, const char *end,
                                      const char *what)
{
    const char *const until[] = {end, NULL};
    WEFT__JINJA_TRY(parse_block(p, node, until, what));
    p->at++;
    return WEFT_OK;
}

static int is_reserved(const weft__jinja_str *name)
{
    static const char *const words[] = {"true", "false", "none", "True", "False", "None"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (weft__jinja_str_is(name, words[i])) return 1;
    }
    return 0;
}

/* A name that can be assigned to. */
static weft_status parse_target_name(weft__jinja_compiler *p, const weft__jinja_str **out)
{
    WEFT__JINJA_TRY(weft__jinja_expect_ident(p, out));
    if (!is_reserved(*out)) return WEFT_OK;
    return weft__jinja_syntax(p, WEFT_FORMAT, "'%.*s' cannot be assigned to", (int)(*out)->len, (*out)->data);
}

static weft_status check_target(weft__jinja_compiler *p, const weft__jinja_node *target)
{
    if (target->kind == WEFT__JINJA_NODE_NAME) return WEFT_OK;
    if (target->kind != WEFT__JINJA_NODE_TUPLE)
        return weft__jinja_syntax(p, WEFT_FORMAT, "only names can be assigned to");
    for (size_t i = 0; i < target->n_items; i++) WEFT__JINJA_TRY(check_target(p, target->items[i]));
    return WEFT_OK;
}

/* name, or a, b; `end` as in weft__jinja_parse_tuple. */
static weft_status parse_target(weft__jinja_compiler *p, const char *end, weft__jinja_node **out)
{
    WEFT__JINJA_TRY(weft__jinja_parse_tuple(p, WEFT__JINJA_TUPLE_TARGETS, end, out));
    return check_target(p, *out);
}

static weft_status parse_if(weft__jinja_compiler *p, weft__jinja_node *node)
{
    static const char *const until[] = {"elif", "else", "endif", NULL}, *const last[] = {"endif", NULL};
    node->kind = WEFT__JINJA_NODE_IF;
    do {
        weft__jinja_node *condition;
        WEFT__JINJA_TRY(weft__jinja_parse_tuple(p, WEFT__JINJA_TUPLE_NO_COND, NULL, &condition));
        WEFT__JINJA_TRY(weft__jinja_add_node(p, &node->items, &node->n_items, &node->items_capacity, condition));
        WEFT__JINJA_TRY(parse_block(p, node, until, "if"));
    } while (weft__jinja_skip_name(p, "elif"));
    if (weft__jinja_skip_name(p, "else")) WEFT__JINJA_TRY(parse_block(p, node, last, "if"));
    p->at++;
    return WEFT_OK;
}

static weft_status parse_for(weft__jinja_compiler *p, weft__jinja_node *node)
{
    static const char *const until[] = {"endfor", "else", NULL};
    node->kind = WEFT__JINJA_NODE_FOR;
    WEFT__JINJA_TRY(parse_target(p, "in", &node->a));
    if (!weft__jinja_skip_name(p, "in"))
        return weft__jinja_syntax(p, WEFT_FORMAT, "expected 'in' after the names of 'for'");
    WEFT__JINJA_TRY(weft__jinja_parse_tuple(p, WEFT__JINJA_TUPLE_NO_COND, "recursive", &node->b));
    if (weft__jinja_skip_name(p, "if")) WEFT__JINJA_TRY(weft__jinja_parse_expression(p, &node->c));
    node->flag = weft__jinja_skip_name(p, "recursive");
    uint32_t outer = p->n_loops;
    p->n_loops = node->flag ? 1 : outer + 1;
    WEFT__JINJA_TRY(parse_block(p, node, until, "for"));
    p->n_loops = node->flag ? 0 : outer;
    if (weft__jinja_skip_name(p, "else")) {
        WEFT__JINJA_TRY(parse_closed_block(p, node, "endfor", "for"));
    } else {
        p->at++;
    }
    p->n_loops = outer;
    return WEFT_OK;
}

static weft_status parse_set(weft__jinja_compiler *p, weft__jinja_node *node)
{
    const weft__jinja_token *t = weft__jinja_current(p);
    if (t->type == WEFT__JINJA_TOKEN_NAME && t[1].type == WEFT__JINJA_TOKEN_OP && t[1].op == '.') {
        WEFT__JINJA_TRY(weft__jinja_new_node(p, WEFT__JINJA_NODE_NSREF, t->line, &node->a));
        WEFT__JINJA_TRY(weft__jinja_expect_ident(p, &node->a->name));
        p->at++;
        WEFT__JINJA_TRY(weft__jinja_expect_ident(p, &node->a->attr));
    } else {
        WEFT__JINJA_TRY(parse_target(p, NULL, &node->a));
    }
    if (weft__jinja_skip_op(p, '=')) {
        node->kind = WEFT__JINJA_NODE_SET;
        return weft__jinja_parse_tuple(p, WEFT__JINJA_TUPLE_FULL, NULL, &node->b);
    }
    node->kind = WEFT__JINJA_NODE_SET_BLOCK;
    WEFT__JINJA_TRY(weft__jinja_parse_filters(p, NULL, 0, &node->b));
    return parse_closed_block(p, node, "endset", "set");
}

static weft_status parse_signature(weft__jinja_compiler *p, weft__jinja_params *params)
{
    WEFT__JINJA_TRY(weft__jinja_expect_op(p, '('));
    while (!weft__jinja_at_op(p, ')')) {
        const weft__jinja_str *name;
        weft__jinja_node *value = NULL;
        if (params->n) WEFT__JINJA_TRY(weft__jinja_expect_op(p, ','));
        WEFT__JINJA_TRY(parse_target_name(p, &name));
        for (size_t i = 0; i < params->n; i++) {
            if (params->names[i] != name) continue;
            return weft__jinja_syntax(p, WEFT_FORMAT, "parameter '%.*s' is named twice", (int)name->len, name->data);
        }
        if (weft__jinja_skip_op(p, '=')) {
            WEFT__JINJA_TRY(weft__jinja_parse_expression(p, &value));
        } else if (params->n && params->defaults[params->n - 1]) {
            return weft__jinja_syntax(p, WEFT_FORMAT, "a parameter without a default follows one that has one");
        }
        WEFT__JINJA_TRY(
            weft__jinja_grow(p->ctx, &params->names, &params->names_capacity, params->n + 1, sizeof *params->names));
        params->names[params->n] = name;
        WEFT__JINJA_TRY(weft__jinja_add_node(p, &params->defaults, &params->n, &params->defaults_capacity, value));
    }
    return weft__jinja_expect_op(p, ')');
}

static weft_status add_params(weft__jinja_compiler *p, weft__jinja_node *node)
{
    node->params = weft__jinja_alloc(p->ctx, sizeof *node->params);
    if (!node->params) return WEFT__JINJA_NO_ROOM(p->ctx);
    memset(node->params, 0, sizeof *node->params);
    return WEFT_OK;
}

/* The body of a macro, a call block or a generation block: a function, which loops outside cannot be left from. */
static weft_status parse_function_body(weft__jinja_compiler *p, weft__jinja_node *node, const char *end,
                                       const char *what)
{
    uint32_t outer = p->n_loops;
    p->n_loops = 0;
    WEFT__JINJA_TRY(parse_closed_block(p, node, end, what));
    p->n_loops = outer;
    return WEFT_OK;
}

static weft_status parse_macro(weft__jinja_compiler *p, weft__jinja_node *node)
{
    node->kind = WEFT__JINJA_NODE_MACRO;
    WEFT__JINJA_TRY(add_params(p, node));
    WEFT__JINJA_TRY(parse_target_name(p, &node->name));
    WEFT__JINJA_TRY(parse_signature(p, node->params));
    return parse_function_body(p, node, "endmacro", "macro");
}

static weft_status parse_call_block(weft__jinja_compiler *p, weft__jinja_node *node)
{
    node->kind = WEFT__JINJA_NODE_CALL_BLOCK;
    WEFT__JINJA_TRY(add_params(p, node));
    if (weft__jinja_at_op(p, '(')) WEFT__JINJA_TRY(parse_signature(p, node->params));
    WEFT__JINJA_TRY(weft__jinja_parse_expression(p, &node->a));
    if (node->a->kind != WEFT__JINJA_NODE_CALL)
        return weft__jinja_syntax(p, WEFT_FORMAT, "'call' needs a call, such as {%% call f() %%}");
    return parse_function_body(p, node, "endcall", "call");
}

static weft_status parse_generation(weft__jinja_compiler *p, weft__jinja_node *node)
{
    node->kind = WEFT__JINJA_NODE_GENERATION;
    return parse_function_body(p, node, "endgeneration", "generation");
}

static weft_status parse_filter_block(weft__jinja_compiler *p, weft__jinja_node *node)
{
    node->kind = WEFT__JINJA_NODE_FILTER_BLOCK;
    WEFT__JINJA_TRY(weft__jinja_parse_filters(p, NULL, 1, &node->b));
    return parse_closed_block(p, node, "endfilter", "filter");
}

static weft_status parse_with(weft__jinja_compiler *p, weft__jinja_node *node)
{
    node->kind = WEFT__JINJA_NODE_WITH;
    while (weft__jinja_current(p)->type != WEFT__JINJA_TOKEN_BLOCK_END) {
        weft__jinja_node *target, *value;
        if (node->n_items) WEFT__JINJA_TRY(weft__jinja_expect_op(p, ','));
        /* A tuple would swallow the comma before the next name. */
        WEFT__JINJA_TRY(weft__jinja_parse_primary(p, &target));
        WEFT__JINJA_TRY(check_target(p, target));
        WEFT__JINJA_TRY(weft__jinja_expect_op(p, '='));
        WEFT__JINJA_TRY(weft__jinja_parse_expression(p, &value));
        WEFT__JINJA_TRY(weft__jinja_add_node(p, &node->items, &node->n_items, &node->items_capacity, target));
        WEFT__JINJA_TRY(weft__jinja_add_node(p, &node->items, &node->n_items, &node->items_capacity, value));
    }
    return parse_closed_block(p, node, "endwith", "with");
}

static weft_status parse_jump(weft__jinja_compiler *p, weft__jinja_node *node)
{
    if (p->n_loops) return WEFT_OK;
    p->at--;
    return weft__jinja_syntax(p, WEFT_FORMAT, "'%s' outside of a loop",
                              node->kind == WEFT__JINJA_NODE_BREAK ? "break" : "continue");
}

static weft_status parse_break(weft__jinja_compiler *p, weft__jinja_node *node)
{
    node->kind = WEFT__JINJA_NODE_BREAK;
    return parse_jump(p, node);
}

static weft_status parse_continue(weft__jinja_compiler *p, weft__jinja_node *node)
{
    node->kind = WEFT__JINJA_NODE_CONTINUE;
    return parse_jump(p, node);
}

/* {% print a, b %} */
static weft_status parse_print(weft__jinja_compiler *p, weft__jinja_node *node)
{
    node->kind = WEFT__JINJA_NODE_CONCAT;
    while (weft__jinja_current(p)->type != WEFT__JINJA_TOKEN_BLOCK_END) {
        weft__jinja_node *value;
        if (node->n_items) WEFT__JINJA_TRY(weft__jinja_expect_op(p, ','));
        WEFT__JINJA_TRY(weft__jinja_parse_expression(p, &value));
        WEFT__JINJA_TRY(weft__jinja_add_node(p, &node->items, &node->n_items, &node->items_capacity, value));
    }
    WEFT__JINJA_TRY(weft__jinja_finish_node(p, node));
    weft__jinja_node *inner = weft__jinja_alloc(p->ctx, sizeof *inner);
    if (!inner) return WEFT__JINJA_NO_ROOM(p->ctx);
    *inner = *node;
    memset(node, 0, sizeof *node);
    *node = (weft__jinja_node){.kind = WEFT__JINJA_NODE_OUTPUT, .line = inner->line, .depth = inner->depth, .a = inner};
    return WEFT_OK;
}

static const struct {
    const char *tag;
    weft_status (*parse)(weft__jinja_compiler *p,
                         weft__jinja_node *node); /* after the tag's name; NULL: jinja2 knows it, we do not */
} statements[] = {
    {"if", parse_if},
    {"for", parse_for},
    {"set", parse_set},
    {"macro", parse_macro},
    {"call", parse_call_block},
    {"filter", parse_filter_block},
    {"generation", parse_generation},
    {"break", parse_break},
    {"continue", parse_continue},
    {"with", parse_with},
    {"print", parse_print},
    {"include", NULL},
    {"import", NULL},
    {"from", NULL},
    {"extends", NULL},
    {"block", NULL},
    {"autoescape", NULL},
};

static weft_status parse_statement(weft__jinja_compiler *p, weft__jinja_body *body)
{
    const weft__jinja_token *t = weft__jinja_current(p);
    char room[64];
    if (t->type != WEFT__JINJA_TOKEN_NAME)
        return weft__jinja_syntax(p, WEFT_FORMAT, "expected a tag, found %s", weft__jinja_describe(t, room));
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        if (!weft__jinja_at_name(p, statements[i].tag)) continue;
        if (!statements[i].parse)
            return weft__jinja_syntax(p, WEFT_UNSUPPORTED, "'%s' is not supported", statements[i].tag);
        weft__jinja_node *node;
        WEFT__JINJA_TRY(weft__jinja_new_node(p, WEFT__JINJA_NODE_DATA, t->line, &node));
        p->at++;
        WEFT__JINJA_TRY(statements[i].parse(p, node));
        return add_statement(p, body, node);
    }
    return weft__jinja_syntax(p, WEFT_FORMAT, "unknown tag %s", weft__jinja_describe(t, room));
}

static weft_status fail_unclosed(weft__jinja_compiler *p, const char *what, uint32_t line)
{
    return weft__jinja_syntax(p, WEFT_FORMAT, "'%s' of line %u is never closed", what, line);
}

/* A tag that closes something else than what is open gets a better message than "unknown tag". */
static weft_status check_closing(weft__jinja_compiler *p, const char *what, uint32_t line)
{
    const weft__jinja_token *t = weft__jinja_current(p);
    char room[64];
    int closes =
        t->type == WEFT__JINJA_TOKEN_NAME && ((t->len > 3 && !memcmp(t->text, "end", 3)) ||
                                              weft__jinja_at_name(p, "else") || weft__jinja_at_name(p, "elif"));
    if (!closes) return WEFT_OK;
    const char *name = weft__jinja_describe(t, room);
    if (!what) return weft__jinja_syntax(p, WEFT_FORMAT, "%s, but nothing is open", name);
    return weft__jinja_syntax(p, WEFT_FORMAT, "%s, but '%s' of line %u is open", name, what, line);
}

static weft_status parse_tag(weft__jinja_compiler *p, ends until, const char *what, uint32_t line,
                             weft__jinja_body *body, int *ended)
{
    p->at++;
    for (ends end = until; end && *end; end++) {
        if (!weft__jinja_at_name(p, *end)) continue;
        *ended = 1;
        return WEFT_OK;
    }
    WEFT__JINJA_TRY(check_closing(p, what, line));
    WEFT__JINJA_TRY(parse_statement(p, body));
    return weft__jinja_expect_type(p, WEFT__JINJA_TOKEN_BLOCK_END);
}

static weft_status parse_output(weft__jinja_compiler *p, weft__jinja_body *body)
{
    weft__jinja_node *node;
    uint32_t line = weft__jinja_current(p)->line;
    p->at++;
    WEFT__JINJA_TRY(weft__jinja_new_node(p, WEFT__JINJA_NODE_OUTPUT, line, &node));
    WEFT__JINJA_TRY(weft__jinja_parse_tuple(p, WEFT__JINJA_TUPLE_FULL, NULL, &node->a));
    WEFT__JINJA_TRY(weft__jinja_expect_type(p, WEFT__JINJA_TOKEN_VARIABLE_END));
    return add_statement(p, body, node);
}

static weft_status parse_data(weft__jinja_compiler *p, weft__jinja_body *body)
{
    weft__jinja_node *node;
    const weft__jinja_token *t = weft__jinja_current(p);
    WEFT__JINJA_TRY(weft__jinja_new_node(p, WEFT__JINJA_NODE_DATA, t->line, &node));
    WEFT__JINJA_TRY(weft__jinja_string(p->ctx, t->text, t->len, 0, &node->value));
    p->at++;
    return add_statement(p, body, node);
}

static weft_status parse_body(weft__jinja_compiler *p, ends until, const char *what, uint32_t line,
                              weft__jinja_body *body)
{
    for (int ended = 0; !ended;) {
        switch (weft__jinja_current(p)->type) {
        case WEFT__JINJA_TOKEN_EOF: return until ? fail_unclosed(p, what, line) : WEFT_OK;
        case WEFT__JINJA_TOKEN_DATA: WEFT__JINJA_TRY(parse_data(p, body)); break;
        case WEFT__JINJA_TOKEN_VARIABLE_BEGIN: WEFT__JINJA_TRY(parse_output(p, body)); break;
        default: WEFT__JINJA_TRY(parse_tag(p, until, what, line, body, &ended)); break;
        }
    }
    return WEFT_OK;
}

weft_status weft__jinja_parse_template(weft__jinja_compiler *p, weft__jinja_body *out)
{
    return parse_body(p, NULL, NULL, 0, out);
}
