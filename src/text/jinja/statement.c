/* statement.c: tags and the text between them into statements (ast.h).
 * Runs once per template, in the thread that compiles. */
#include <string.h>

#include "text/jinja/ast.h"

/* What may end a body: up to three names, then NULL. */
typedef const char *const *ends;

static weft_status parse_body(weft__jcompiler *p, ends until, const char *what, uint32_t line, weft__jbody *body);

static weft_status add_statement(weft__jcompiler *p, weft__jbody *body, weft__jnode *node)
{
    return weft__j_add_node(p, &body->items, &body->n, &body->capacity, node);
}

/* Adds a body to node and parses into it: from the end of the present tag up to one of the names, which becomes current. */
static weft_status parse_block(weft__jcompiler *p, weft__jnode *node, ends until, const char *what)
{
    weft__j_skip_op(p, ':');
    WEFT__J_TRY(weft__j_expect_type(p, WEFT__JT_BLOCK_END));
    weft__jbody body = {0};
    WEFT__J_TRY(weft__j_nest(p));
    WEFT__J_TRY(parse_body(p, until, what, node->line, &body));
    p->nesting--;
    WEFT__J_TRY(weft__j_grow(p->ctx, &node->bodies, &node->bodies_capacity, node->n_bodies + 1, sizeof *node->bodies));
    node->bodies[node->n_bodies++] = body;
    return WEFT_OK;
}

/* The same up to one name, which is stepped over. */
static weft_status parse_closed_block(weft__jcompiler *p, weft__jnode *node, const char *end, const char *what)
{
    const char *const until[] = {end, NULL};
    WEFT__J_TRY(parse_block(p, node, until, what));
    p->at++;
    return WEFT_OK;
}

static int is_reserved(const weft__jstr *name)
{
    static const char *const words[] = {"true", "false", "none", "True", "False", "None"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (weft__j_str_is(name, words[i])) return 1;
    }
    return 0;
}

/* A name that can be assigned to. */
static weft_status parse_target_name(weft__jcompiler *p, const weft__jstr **out)
{
    WEFT__J_TRY(weft__j_expect_ident(p, out));
    if (!is_reserved(*out)) return WEFT_OK;
    return weft__j_syntax(p, WEFT_FORMAT, "'%.*s' cannot be assigned to", (int)(*out)->len, (*out)->data);
}

static weft_status check_target(weft__jcompiler *p, const weft__jnode *target)
{
    if (target->kind == WEFT__JN_NAME) return WEFT_OK;
    if (target->kind != WEFT__JN_TUPLE) return weft__j_syntax(p, WEFT_FORMAT, "only names can be assigned to");
    for (size_t i = 0; i < target->n_items; i++) WEFT__J_TRY(check_target(p, target->items[i]));
    return WEFT_OK;
}

/* name, or a, b; `end` as in weft__j_parse_tuple. */
static weft_status parse_target(weft__jcompiler *p, const char *end, weft__jnode **out)
{
    WEFT__J_TRY(weft__j_parse_tuple(p, WEFT__J_TUPLE_TARGETS, end, out));
    return check_target(p, *out);
}

static weft_status parse_if(weft__jcompiler *p, weft__jnode *node)
{
    static const char *const until[] = {"elif", "else", "endif", NULL}, *const last[] = {"endif", NULL};
    node->kind = WEFT__JN_IF;
    do {
        weft__jnode *condition;
        WEFT__J_TRY(weft__j_parse_tuple(p, WEFT__J_TUPLE_NO_COND, NULL, &condition));
        WEFT__J_TRY(weft__j_add_node(p, &node->items, &node->n_items, &node->items_capacity, condition));
        WEFT__J_TRY(parse_block(p, node, until, "if"));
    } while (weft__j_skip_name(p, "elif"));
    if (weft__j_skip_name(p, "else")) WEFT__J_TRY(parse_block(p, node, last, "if"));
    p->at++;
    return WEFT_OK;
}

static weft_status parse_for(weft__jcompiler *p, weft__jnode *node)
{
    static const char *const until[] = {"endfor", "else", NULL};
    node->kind = WEFT__JN_FOR;
    WEFT__J_TRY(parse_target(p, "in", &node->a));
    if (!weft__j_skip_name(p, "in")) return weft__j_syntax(p, WEFT_FORMAT, "expected 'in' after the names of 'for'");
    WEFT__J_TRY(weft__j_parse_tuple(p, WEFT__J_TUPLE_NO_COND, "recursive", &node->b));
    if (weft__j_skip_name(p, "if")) WEFT__J_TRY(weft__j_parse_expression(p, &node->c));
    node->flag = weft__j_skip_name(p, "recursive");
    uint32_t outer = p->n_loops;
    p->n_loops = node->flag ? 1 : outer + 1;
    WEFT__J_TRY(parse_block(p, node, until, "for"));
    p->n_loops = node->flag ? 0 : outer;
    if (weft__j_skip_name(p, "else")) {
        WEFT__J_TRY(parse_closed_block(p, node, "endfor", "for"));
    } else {
        p->at++;
    }
    p->n_loops = outer;
    return WEFT_OK;
}

static weft_status parse_set(weft__jcompiler *p, weft__jnode *node)
{
    const weft__jtoken *t = weft__j_token(p);
    if (t->type == WEFT__JT_NAME && t[1].type == WEFT__JT_OP && t[1].op == '.') {
        WEFT__J_TRY(weft__j_new_node(p, WEFT__JN_NSREF, t->line, &node->a));
        WEFT__J_TRY(weft__j_expect_ident(p, &node->a->name));
        p->at++;
        WEFT__J_TRY(weft__j_expect_ident(p, &node->a->attr));
    } else {
        WEFT__J_TRY(parse_target(p, NULL, &node->a));
    }
    if (weft__j_skip_op(p, '=')) {
        node->kind = WEFT__JN_SET;
        return weft__j_parse_tuple(p, WEFT__J_TUPLE_FULL, NULL, &node->b);
    }
    node->kind = WEFT__JN_SET_BLOCK;
    WEFT__J_TRY(weft__j_parse_filters(p, NULL, 0, &node->b));
    return parse_closed_block(p, node, "endset", "set");
}

static weft_status parse_signature(weft__jcompiler *p, weft__jparams *params)
{
    WEFT__J_TRY(weft__j_expect_op(p, '('));
    while (!weft__j_at_op(p, ')')) {
        const weft__jstr *name;
        weft__jnode *value = NULL;
        if (params->n) WEFT__J_TRY(weft__j_expect_op(p, ','));
        WEFT__J_TRY(parse_target_name(p, &name));
        for (size_t i = 0; i < params->n; i++) {
            if (params->names[i] != name) continue;
            return weft__j_syntax(p, WEFT_FORMAT, "parameter '%.*s' is named twice", (int)name->len, name->data);
        }
        if (weft__j_skip_op(p, '=')) {
            WEFT__J_TRY(weft__j_parse_expression(p, &value));
        } else if (params->n && params->defaults[params->n - 1]) {
            return weft__j_syntax(p, WEFT_FORMAT, "a parameter without a default follows one that has one");
        }
        WEFT__J_TRY(weft__j_grow(p->ctx, &params->names, &params->names_capacity, params->n + 1, sizeof *params->names));
        params->names[params->n] = name;
        WEFT__J_TRY(weft__j_add_node(p, &params->defaults, &params->n, &params->defaults_capacity, value));
    }
    return weft__j_expect_op(p, ')');
}

static weft_status add_params(weft__jcompiler *p, weft__jnode *node)
{
    node->params = weft__j_alloc(p->ctx, sizeof *node->params);
    if (!node->params) return WEFT__J_NO_ROOM(p->ctx);
    memset(node->params, 0, sizeof *node->params);
    return WEFT_OK;
}

/* The body of a macro, a call block or a generation block: a function, which loops outside cannot be left from. */
static weft_status parse_function_body(weft__jcompiler *p, weft__jnode *node, const char *end, const char *what)
{
    uint32_t outer = p->n_loops;
    p->n_loops = 0;
    WEFT__J_TRY(parse_closed_block(p, node, end, what));
    p->n_loops = outer;
    return WEFT_OK;
}

static weft_status parse_macro(weft__jcompiler *p, weft__jnode *node)
{
    node->kind = WEFT__JN_MACRO;
    WEFT__J_TRY(add_params(p, node));
    WEFT__J_TRY(parse_target_name(p, &node->name));
    WEFT__J_TRY(parse_signature(p, node->params));
    return parse_function_body(p, node, "endmacro", "macro");
}

static weft_status parse_call_block(weft__jcompiler *p, weft__jnode *node)
{
    node->kind = WEFT__JN_CALL_BLOCK;
    WEFT__J_TRY(add_params(p, node));
    if (weft__j_at_op(p, '(')) WEFT__J_TRY(parse_signature(p, node->params));
    WEFT__J_TRY(weft__j_parse_expression(p, &node->a));
    if (node->a->kind != WEFT__JN_CALL) return weft__j_syntax(p, WEFT_FORMAT, "'call' needs a call, such as {%% call f() %%}");
    return parse_function_body(p, node, "endcall", "call");
}

static weft_status parse_generation(weft__jcompiler *p, weft__jnode *node)
{
    node->kind = WEFT__JN_GENERATION;
    return parse_function_body(p, node, "endgeneration", "generation");
}

static weft_status parse_filter_block(weft__jcompiler *p, weft__jnode *node)
{
    node->kind = WEFT__JN_FILTER_BLOCK;
    WEFT__J_TRY(weft__j_parse_filters(p, NULL, 1, &node->b));
    return parse_closed_block(p, node, "endfilter", "filter");
}

static weft_status parse_with(weft__jcompiler *p, weft__jnode *node)
{
    node->kind = WEFT__JN_WITH;
    while (weft__j_token(p)->type != WEFT__JT_BLOCK_END) {
        weft__jnode *target, *value;
        if (node->n_items) WEFT__J_TRY(weft__j_expect_op(p, ','));
        /* A tuple would swallow the comma before the next name. */
        WEFT__J_TRY(weft__j_parse_primary(p, &target));
        WEFT__J_TRY(check_target(p, target));
        WEFT__J_TRY(weft__j_expect_op(p, '='));
        WEFT__J_TRY(weft__j_parse_expression(p, &value));
        WEFT__J_TRY(weft__j_add_node(p, &node->items, &node->n_items, &node->items_capacity, target));
        WEFT__J_TRY(weft__j_add_node(p, &node->items, &node->n_items, &node->items_capacity, value));
    }
    return parse_closed_block(p, node, "endwith", "with");
}

static weft_status parse_jump(weft__jcompiler *p, weft__jnode *node)
{
    if (p->n_loops) return WEFT_OK;
    p->at--;
    return weft__j_syntax(p, WEFT_FORMAT, "'%s' outside of a loop", node->kind == WEFT__JN_BREAK ? "break" : "continue");
}

static weft_status parse_break(weft__jcompiler *p, weft__jnode *node)
{
    node->kind = WEFT__JN_BREAK;
    return parse_jump(p, node);
}

static weft_status parse_continue(weft__jcompiler *p, weft__jnode *node)
{
    node->kind = WEFT__JN_CONTINUE;
    return parse_jump(p, node);
}

/* {% print a, b %} */
static weft_status parse_print(weft__jcompiler *p, weft__jnode *node)
{
    node->kind = WEFT__JN_CONCAT;
    while (weft__j_token(p)->type != WEFT__JT_BLOCK_END) {
        weft__jnode *value;
        if (node->n_items) WEFT__J_TRY(weft__j_expect_op(p, ','));
        WEFT__J_TRY(weft__j_parse_expression(p, &value));
        WEFT__J_TRY(weft__j_add_node(p, &node->items, &node->n_items, &node->items_capacity, value));
    }
    WEFT__J_TRY(weft__j_finish_node(p, node));
    weft__jnode *inner = weft__j_alloc(p->ctx, sizeof *inner);
    if (!inner) return WEFT__J_NO_ROOM(p->ctx);
    *inner = *node;
    memset(node, 0, sizeof *node);
    *node = (weft__jnode){.kind = WEFT__JN_OUTPUT, .line = inner->line, .depth = inner->depth, .a = inner};
    return WEFT_OK;
}

static const struct {
    const char *tag;
    weft_status (*parse)(weft__jcompiler *p, weft__jnode *node); /* after the tag's name; NULL: jinja2 knows it, we do not */
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

static weft_status parse_statement(weft__jcompiler *p, weft__jbody *body)
{
    const weft__jtoken *t = weft__j_token(p);
    char room[64];
    if (t->type != WEFT__JT_NAME) return weft__j_syntax(p, WEFT_FORMAT, "expected a tag, found %s", weft__j_describe(t, room));
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        if (!weft__j_at_name(p, statements[i].tag)) continue;
        if (!statements[i].parse) return weft__j_syntax(p, WEFT_UNSUPPORTED, "'%s' is not supported", statements[i].tag);
        weft__jnode *node;
        WEFT__J_TRY(weft__j_new_node(p, WEFT__JN_DATA, t->line, &node));
        p->at++;
        WEFT__J_TRY(statements[i].parse(p, node));
        return add_statement(p, body, node);
    }
    return weft__j_syntax(p, WEFT_FORMAT, "unknown tag %s", weft__j_describe(t, room));
}

static weft_status fail_unclosed(weft__jcompiler *p, const char *what, uint32_t line)
{
    return weft__j_syntax(p, WEFT_FORMAT, "'%s' of line %u is never closed", what, line);
}

/* A tag that closes something else than what is open gets a better message than "unknown tag". */
static weft_status check_closing(weft__jcompiler *p, const char *what, uint32_t line)
{
    const weft__jtoken *t = weft__j_token(p);
    char room[64];
    int closes = t->type == WEFT__JT_NAME &&
                 ((t->len > 3 && !memcmp(t->text, "end", 3)) || weft__j_at_name(p, "else") || weft__j_at_name(p, "elif"));
    if (!closes) return WEFT_OK;
    const char *name = weft__j_describe(t, room);
    if (!what) return weft__j_syntax(p, WEFT_FORMAT, "%s, but nothing is open", name);
    return weft__j_syntax(p, WEFT_FORMAT, "%s, but '%s' of line %u is open", name, what, line);
}

static weft_status parse_tag(weft__jcompiler *p, ends until, const char *what, uint32_t line, weft__jbody *body, int *ended)
{
    p->at++;
    for (ends end = until; end && *end; end++) {
        if (!weft__j_at_name(p, *end)) continue;
        *ended = 1;
        return WEFT_OK;
    }
    WEFT__J_TRY(check_closing(p, what, line));
    WEFT__J_TRY(parse_statement(p, body));
    return weft__j_expect_type(p, WEFT__JT_BLOCK_END);
}

static weft_status parse_output(weft__jcompiler *p, weft__jbody *body)
{
    weft__jnode *node;
    uint32_t line = weft__j_token(p)->line;
    p->at++;
    WEFT__J_TRY(weft__j_new_node(p, WEFT__JN_OUTPUT, line, &node));
    WEFT__J_TRY(weft__j_parse_tuple(p, WEFT__J_TUPLE_FULL, NULL, &node->a));
    WEFT__J_TRY(weft__j_expect_type(p, WEFT__JT_VARIABLE_END));
    return add_statement(p, body, node);
}

static weft_status parse_data(weft__jcompiler *p, weft__jbody *body)
{
    weft__jnode *node;
    const weft__jtoken *t = weft__j_token(p);
    WEFT__J_TRY(weft__j_new_node(p, WEFT__JN_DATA, t->line, &node));
    WEFT__J_TRY(weft__j_string(p->ctx, t->text, t->len, 0, &node->value));
    p->at++;
    return add_statement(p, body, node);
}

static weft_status parse_body(weft__jcompiler *p, ends until, const char *what, uint32_t line, weft__jbody *body)
{
    for (int ended = 0; !ended;) {
        switch (weft__j_token(p)->type) {
        case WEFT__JT_EOF: return until ? fail_unclosed(p, what, line) : WEFT_OK;
        case WEFT__JT_DATA: WEFT__J_TRY(parse_data(p, body)); break;
        case WEFT__JT_VARIABLE_BEGIN: WEFT__J_TRY(parse_output(p, body)); break;
        default: WEFT__J_TRY(parse_tag(p, until, what, line, body, &ended)); break;
        }
    }
    return WEFT_OK;
}

weft_status weft__j_parse_template(weft__jcompiler *p, weft__jbody *out)
{
    return parse_body(p, NULL, NULL, 0, out);
}
