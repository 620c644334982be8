// SPDX-License-Identifier: Apache-2.0
/* ast.h: a template between its text and its rendering: tokens, syntax tree, scopes.
 *
 * Invariant: everything here lies in the arena of its template and does not change after compiling; names are interned,
 * so that two names are equal when their pointers are. */
#ifndef WEFT_TEXT_JINJA_AST_H
#define WEFT_TEXT_JINJA_AST_H

#include "text/jinja/value.h"

typedef enum weft__jinja_token_type {
    WEFT__JINJA_TOKEN_EOF,
    WEFT__JINJA_TOKEN_DATA,
    WEFT__JINJA_TOKEN_VARIABLE_BEGIN,
    WEFT__JINJA_TOKEN_VARIABLE_END,
    WEFT__JINJA_TOKEN_BLOCK_BEGIN,
    WEFT__JINJA_TOKEN_BLOCK_END,
    WEFT__JINJA_TOKEN_NAME,
    WEFT__JINJA_TOKEN_STRING,
    WEFT__JINJA_TOKEN_INT,
    WEFT__JINJA_TOKEN_FLOAT,
    WEFT__JINJA_TOKEN_OP
} weft__jinja_token_type;

/* `op` of operator tokens: their characters, first one lowest ("**" is '*' | '*' << 8). */
#define WEFT__JINJA_OP1(a) ((uint32_t)(a))
#define WEFT__JINJA_OP2(a, b) ((uint32_t)(a) | (uint32_t)(b) << 8)

typedef struct weft__jinja_token {
    weft__jinja_token_type type;
    uint32_t op, line;
    const char *text; /* DATA, NAME, STRING (unescaped) */
    size_t len;
    int64_t i;
    double f;
} weft__jinja_token;

typedef struct weft__jinja_tokens {
    weft__jinja_token *items; /* the last one is EOF */
    size_t n, capacity;
} weft__jinja_tokens;

typedef enum weft__jinja_node_kind {
    /* expressions */
    WEFT__JINJA_NODE_CONST,  /* value */
    WEFT__JINJA_NODE_NAME,   /* name */
    WEFT__JINJA_NODE_LIST,   /* items */
    WEFT__JINJA_NODE_TUPLE,  /* items */
    WEFT__JINJA_NODE_DICT,   /* items: key, value, key, value ... */
    WEFT__JINJA_NODE_CONCAT, /* items */
    WEFT__JINJA_NODE_ATTR,   /* a.name */
    WEFT__JINJA_NODE_ITEM,   /* a[b] */
    WEFT__JINJA_NODE_SLICE,  /* a[items[0]:items[1]:items[2]], each may be NULL */
    WEFT__JINJA_NODE_CALL,   /* a(args) */
    WEFT__JINJA_NODE_FILTER, /* a | function(args); a NULL: what a block captured */
    WEFT__JINJA_NODE_TEST,   /* a is function(args) */
    WEFT__JINJA_NODE_COND,   /* b if a else c; c may be NULL */
    WEFT__JINJA_NODE_NOT,
    WEFT__JINJA_NODE_NEG,
    WEFT__JINJA_NODE_POS,
    WEFT__JINJA_NODE_AND,
    WEFT__JINJA_NODE_OR,
    WEFT__JINJA_NODE_BINARY,  /* a op b */
    WEFT__JINJA_NODE_COMPARE, /* a, then ops[i] items[i] */
    WEFT__JINJA_NODE_NSREF,   /* target of set: name.attr */
    /* statements */
    WEFT__JINJA_NODE_DATA,         /* value */
    WEFT__JINJA_NODE_OUTPUT,       /* a */
    WEFT__JINJA_NODE_IF,           /* items[i]: condition of bodies[i]; the last body without a condition is else */
    WEFT__JINJA_NODE_FOR,          /* for a in b if c: bodies[0] else bodies[1]; flag: recursive */
    WEFT__JINJA_NODE_SET,          /* a = b */
    WEFT__JINJA_NODE_SET_BLOCK,    /* a = bodies[0] | b; b may be NULL */
    WEFT__JINJA_NODE_MACRO,        /* name(params): bodies[0] */
    WEFT__JINJA_NODE_CALL_BLOCK,   /* call(params) a: bodies[0] */
    WEFT__JINJA_NODE_FILTER_BLOCK, /* filter b: bodies[0] */
    WEFT__JINJA_NODE_WITH,         /* with items[2i] = items[2i+1]: bodies[0] */
    WEFT__JINJA_NODE_GENERATION,   /* bodies[0] */
    WEFT__JINJA_NODE_BREAK,
    WEFT__JINJA_NODE_CONTINUE
} weft__jinja_node_kind;

typedef struct weft__jinja_node weft__jinja_node;

/* Statements in order, and the names that belong to their scope and have no value when it is entered. */
typedef struct weft__jinja_body {
    weft__jinja_node **items;
    size_t n, capacity;
    const weft__jinja_str **unset;
    size_t n_unset, unset_capacity;
} weft__jinja_body;

typedef struct weft__jinja_call_args {
    weft__jinja_node **pos;
    size_t n_pos, pos_capacity;
    const weft__jinja_str **names;
    weft__jinja_node **named;
    size_t n_named, names_capacity, named_capacity;
    weft__jinja_node *star, *star_star; /* *a, **b or NULL */
} weft__jinja_call_args;

typedef struct weft__jinja_params {
    const weft__jinja_str **names;
    weft__jinja_node **defaults; /* NULL where there is none */
    size_t n, names_capacity, defaults_capacity;
    int takes_varargs, takes_kwargs, takes_caller; /* the body mentions these names */
} weft__jinja_params;

struct weft__jinja_node {
    weft__jinja_node_kind kind;
    uint32_t line, depth; /* depth: nodes on the longest way down, itself included */
    weft__jinja_op op;
    int flag;
    weft__jinja_val value;
    const weft__jinja_str *name, *attr;
    const weft__jinja_function *function; /* FILTER, TEST; NULL when unknown: an error once it is reached */
    weft__jinja_node *a, *b, *c;
    weft__jinja_node **items;
    size_t n_items, items_capacity;
    weft__jinja_op *ops;
    size_t ops_capacity;
    weft__jinja_call_args *args;
    weft__jinja_params *params;
    weft__jinja_body *bodies;
    size_t n_bodies, bodies_capacity;
};

/* Compiling. `ctx` lends its arena, line and error to the helpers of value.h; it has no other life. */
typedef struct weft__jinja_compiler {
    weft__jinja_ctx *ctx;
    weft__jinja_tokens tokens;
    size_t at;               /* the current token */
    uint32_t nesting;        /* of expressions and statements */
    uint32_t n_loops;        /* around, up to the next macro */
    weft__jinja_dict *names; /* interned; each one's value is its number */
} weft__jinja_compiler;

struct weft__jinja {
    weft__jinja_arena arena;
    weft__jinja_body body;
    const weft__jinja_str *name_loop, *name_caller, *name_varargs, *name_kwargs; /* interned */
    const weft__jinja_dict *names;                                               /* as the compiler had them */
    const uint8_t *reads; /* by the number of the name: 1 where its value may come from outside */
    int plain;            /* weft__jinja_compile_plain made it */
};

/* Expressions nest so deep at most, and statements. */
#define WEFT__JINJA_MAX_NESTING 200
/* and no way through the tree is longer than this (a + b + c ... nests to the left) */
#define WEFT__JINJA_MAX_NODE_DEPTH 500

weft_status weft__jinja_lex(weft__jinja_ctx *c, const char *source, size_t n, weft__jinja_tokens *out);

weft_status weft__jinja_parse_template(weft__jinja_compiler *p, weft__jinja_body *out); /* statement.c */
/* The parts of the parser that its files share. */
weft_status weft__jinja_parse_expression(weft__jinja_compiler *p, weft__jinja_node **out);
/* Values with what follows them; filters and tests come behind operators of one operand (postfix.c). */
weft_status weft__jinja_parse_postfix(weft__jinja_compiler *p, weft__jinja_node **node);
weft_status weft__jinja_parse_filter_expr(weft__jinja_compiler *p, weft__jinja_node **node);
weft_status weft__jinja_parse_primary(weft__jinja_compiler *p, weft__jinja_node **out);

typedef enum weft__jinja_tuple_mode {
    WEFT__JINJA_TUPLE_FULL,       /* any expressions */
    WEFT__JINJA_TUPLE_NO_COND,    /* without conditional ones */
    WEFT__JINJA_TUPLE_TARGETS,    /* names and literals */
    WEFT__JINJA_TUPLE_PARENTHESES /* any expressions, or none */
} weft__jinja_tuple_mode;
/* One expression, or several separated by commas as a tuple, up to the name `end` (NULL: none) or the end of the
 * tag. */
weft_status weft__jinja_parse_tuple(weft__jinja_compiler *p, weft__jinja_tuple_mode mode, const char *end,
                                    weft__jinja_node **out);
/* name(args)|name...; `node` is what is filtered, NULL in blocks. With `bare`, the first has no bar before it. */
weft_status weft__jinja_parse_filters(weft__jinja_compiler *p, weft__jinja_node *node, int bare,
                                      weft__jinja_node **out);
weft_status weft__jinja_new_node(weft__jinja_compiler *p, weft__jinja_node_kind kind, uint32_t line,
                                 weft__jinja_node **out);
/* To be called once the children of node are in place. */
weft_status weft__jinja_finish_node(weft__jinja_compiler *p, weft__jinja_node *node);
weft_status weft__jinja_add_node(weft__jinja_compiler *p, weft__jinja_node ***items, size_t *n, size_t *capacity,
                                 weft__jinja_node *node);
weft_status weft__jinja_add_item(weft__jinja_compiler *p, weft__jinja_node *node, weft__jinja_node *item);
/* A node with one child, finished. */
weft_status weft__jinja_new_unary(weft__jinja_compiler *p, weft__jinja_node_kind kind, uint32_t line,
                                  weft__jinja_node *a, weft__jinja_node **out);
weft_status weft__jinja_intern(weft__jinja_compiler *p, const char *s, size_t n, const weft__jinja_str **out);

static inline const weft__jinja_token *weft__jinja_current(const weft__jinja_compiler *p)
{
    return &p->tokens.items[p->at];
}
int weft__jinja_at_op(const weft__jinja_compiler *p, uint32_t op);
int weft__jinja_at_name(const weft__jinja_compiler *p, const char *name);
/* Steps over the operator or name if it is the current token. */
int weft__jinja_skip_op(weft__jinja_compiler *p, uint32_t op);
int weft__jinja_skip_name(weft__jinja_compiler *p, const char *name);
weft_status weft__jinja_expect_op(weft__jinja_compiler *p, uint32_t op);
weft_status weft__jinja_expect_type(weft__jinja_compiler *p, weft__jinja_token_type type);
weft_status weft__jinja_expect_ident(weft__jinja_compiler *p, const weft__jinja_str **out);
int weft__jinja_is_name(const weft__jinja_token *t, const char *name);
/* "expected WANTED, found ..." */
weft_status weft__jinja_unexpected(weft__jinja_compiler *p, const char *wanted);
/* Fails at the current token. */
weft_status weft__jinja_syntax(weft__jinja_compiler *p, weft_status status, const char *format, ...) WEFT_PRINTF(3, 4);
/* "'x'" or "the end of the tag". */
const char *weft__jinja_describe(const weft__jinja_token *t, char room[64]);
/* Deeper by one; every success is followed by p->nesting--. */
weft_status weft__jinja_nest(weft__jinja_compiler *p);

/* Fills in the `unset` names of every body, what macros take and what the template reads, and refuses unknown filters
 * and tests (scope.c). */
weft_status weft__jinja_resolve(weft__jinja_compiler *p, weft__jinja *t);

#endif
