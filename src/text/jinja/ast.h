/* ast.h: a template between its text and its rendering: tokens, syntax tree, scopes.
 *
 * Invariant: everything here lies in the arena of its template and does not change after compiling; names are interned, so that
 * two names are equal when their pointers are. */
#ifndef WEFT_TEXT_JINJA_AST_H
#define WEFT_TEXT_JINJA_AST_H

#include "text/jinja/value.h"

typedef enum weft__jtoken_type {
    WEFT__JT_EOF,
    WEFT__JT_DATA,
    WEFT__JT_VARIABLE_BEGIN,
    WEFT__JT_VARIABLE_END,
    WEFT__JT_BLOCK_BEGIN,
    WEFT__JT_BLOCK_END,
    WEFT__JT_NAME,
    WEFT__JT_STRING,
    WEFT__JT_INT,
    WEFT__JT_FLOAT,
    WEFT__JT_OP
} weft__jtoken_type;

/* `op` of operator tokens: their characters, first one lowest ("**" is '*' | '*' << 8). */
#define WEFT__J_OP1(a) ((uint32_t)(a))
#define WEFT__J_OP2(a, b) ((uint32_t)(a) | (uint32_t)(b) << 8)

typedef struct weft__jtoken {
    weft__jtoken_type type;
    uint32_t op, line;
    const char *text; /* DATA, NAME, STRING (unescaped) */
    size_t len;
    int64_t i;
    double f;
} weft__jtoken;

typedef struct weft__jtokens {
    weft__jtoken *items; /* the last one is EOF */
    size_t n, capacity;
} weft__jtokens;

typedef enum weft__jkind {
    /* expressions */
    WEFT__JN_CONST,  /* value */
    WEFT__JN_NAME,   /* name */
    WEFT__JN_LIST,   /* items */
    WEFT__JN_TUPLE,  /* items */
    WEFT__JN_DICT,   /* items: key, value, key, value ... */
    WEFT__JN_CONCAT, /* items */
    WEFT__JN_ATTR,   /* a.name */
    WEFT__JN_ITEM,   /* a[b] */
    WEFT__JN_SLICE,  /* a[items[0]:items[1]:items[2]], each may be NULL */
    WEFT__JN_CALL,   /* a(args) */
    WEFT__JN_FILTER, /* a | function(args); a NULL: what a block captured */
    WEFT__JN_TEST,   /* a is function(args) */
    WEFT__JN_COND,   /* b if a else c; c may be NULL */
    WEFT__JN_NOT,
    WEFT__JN_NEG,
    WEFT__JN_POS,
    WEFT__JN_AND,
    WEFT__JN_OR,
    WEFT__JN_BINARY,  /* a op b */
    WEFT__JN_COMPARE, /* a, then ops[i] items[i] */
    WEFT__JN_NSREF,   /* target of set: name.attr */
    /* statements */
    WEFT__JN_DATA,         /* value */
    WEFT__JN_OUTPUT,       /* a */
    WEFT__JN_IF,           /* items[i]: condition of bodies[i]; the last body without a condition is else */
    WEFT__JN_FOR,          /* for a in b if c: bodies[0] else bodies[1]; flag: recursive */
    WEFT__JN_SET,          /* a = b */
    WEFT__JN_SET_BLOCK,    /* a = bodies[0] | b; b may be NULL */
    WEFT__JN_MACRO,        /* name(params): bodies[0] */
    WEFT__JN_CALL_BLOCK,   /* call(params) a: bodies[0] */
    WEFT__JN_FILTER_BLOCK, /* filter b: bodies[0] */
    WEFT__JN_WITH,         /* with items[2i] = items[2i+1]: bodies[0] */
    WEFT__JN_GENERATION,   /* bodies[0] */
    WEFT__JN_BREAK,
    WEFT__JN_CONTINUE
} weft__jkind;

typedef struct weft__jnode weft__jnode;

/* Statements in order, and the names that belong to their scope and have no value when it is entered. */
typedef struct weft__jbody {
    weft__jnode **items;
    size_t n, capacity;
    const weft__jstr **unset;
    size_t n_unset, unset_capacity;
} weft__jbody;

typedef struct weft__jcall_args {
    weft__jnode **pos;
    size_t n_pos, pos_capacity;
    const weft__jstr **names;
    weft__jnode **named;
    size_t n_named, names_capacity, named_capacity;
    weft__jnode *star, *star_star; /* *a, **b or NULL */
} weft__jcall_args;

typedef struct weft__jparams {
    const weft__jstr **names;
    weft__jnode **defaults; /* NULL where there is none */
    size_t n, names_capacity, defaults_capacity;
    int takes_varargs, takes_kwargs, takes_caller; /* the body mentions these names */
} weft__jparams;

struct weft__jnode {
    weft__jkind kind;
    uint32_t line, depth; /* depth: nodes on the longest way down, itself included */
    weft__jop op;
    int flag;
    weft__jval value;
    const weft__jstr *name, *attr;
    const weft__jfunction *function; /* FILTER, TEST; NULL when unknown: an error once it is reached */
    weft__jnode *a, *b, *c;
    weft__jnode **items;
    size_t n_items, items_capacity;
    weft__jop *ops;
    size_t ops_capacity;
    weft__jcall_args *args;
    weft__jparams *params;
    weft__jbody *bodies;
    size_t n_bodies, bodies_capacity;
};

/* Compiling. `ctx` lends its arena, line and error to the helpers of value.h; it has no other life. */
typedef struct weft__jcompiler {
    weft__jctx *ctx;
    weft__jtokens tokens;
    size_t at;          /* the current token */
    uint32_t nesting;   /* of expressions and statements */
    uint32_t n_loops;   /* around, up to the next macro */
    weft__jdict *names; /* interned; each one's value is its number */
} weft__jcompiler;

struct weft__jinja {
    weft__jarena arena;
    weft__jbody body;
    const weft__jstr **globals; /* names that the template may take from outside */
    size_t n_globals, globals_capacity;
    const weft__jstr *name_loop, *name_caller, *name_varargs, *name_kwargs; /* interned */
};

/* Expressions nest so deep at most, and statements. */
#define WEFT__J_MAX_NESTING 200
/* and no way through the tree is longer than this (a + b + c ... nests to the left) */
#define WEFT__J_MAX_NODE_DEPTH 500

weft_status weft__j_lex(weft__jctx *c, const char *source, size_t n, weft__jtokens *out);

weft_status weft__j_parse_template(weft__jcompiler *p, weft__jbody *out); /* statement.c */
/* The parts of the parser that its two files share. */
weft_status weft__j_parse_expression(weft__jcompiler *p, weft__jnode **out);
/* Without the conditional form, where `if` means something else. */
weft_status weft__j_parse_or(weft__jcompiler *p, weft__jnode **out);
weft_status weft__j_parse_primary(weft__jcompiler *p, weft__jnode **out);

typedef enum weft__jtuple_mode {
    WEFT__J_TUPLE_FULL,       /* any expressions */
    WEFT__J_TUPLE_NO_COND,    /* without conditional ones */
    WEFT__J_TUPLE_TARGETS,    /* names and literals */
    WEFT__J_TUPLE_PARENTHESES /* any expressions, or none */
} weft__jtuple_mode;
/* One expression, or several separated by commas as a tuple, up to the name `end` (NULL: none) or the end of the tag. */
weft_status weft__j_parse_tuple(weft__jcompiler *p, weft__jtuple_mode mode, const char *end, weft__jnode **out);
/* name(args)|name...; `node` is what is filtered, NULL in blocks. With `bare`, the first has no bar before it. */
weft_status weft__j_parse_filters(weft__jcompiler *p, weft__jnode *node, int bare, weft__jnode **out);
weft_status weft__j_new_node(weft__jcompiler *p, weft__jkind kind, uint32_t line, weft__jnode **out);
/* To be called once the children of node are in place. */
weft_status weft__j_finish_node(weft__jcompiler *p, weft__jnode *node);
weft_status weft__j_add_node(weft__jcompiler *p, weft__jnode ***items, size_t *n, size_t *capacity, weft__jnode *node);
weft_status weft__j_intern(weft__jcompiler *p, const char *s, size_t n, const weft__jstr **out);

static inline const weft__jtoken *weft__j_token(const weft__jcompiler *p)
{
    return &p->tokens.items[p->at];
}
int weft__j_at_op(const weft__jcompiler *p, uint32_t op);
int weft__j_at_name(const weft__jcompiler *p, const char *name);
/* Steps over the operator or name if it is the current token. */
int weft__j_skip_op(weft__jcompiler *p, uint32_t op);
int weft__j_skip_name(weft__jcompiler *p, const char *name);
weft_status weft__j_expect_op(weft__jcompiler *p, uint32_t op);
weft_status weft__j_expect_type(weft__jcompiler *p, weft__jtoken_type type);
weft_status weft__j_expect_ident(weft__jcompiler *p, const weft__jstr **out);
int weft__j_is_name(const weft__jtoken *t, const char *name);
/* "expected WANTED, found ..." */
weft_status weft__j_unexpected(weft__jcompiler *p, const char *wanted);
/* Fails at the current token. */
weft_status weft__j_syntax(weft__jcompiler *p, weft_status status, const char *format, ...) WEFT_PRINTF(3, 4);
/* "'x'" or "the end of the tag". */
const char *weft__j_describe(const weft__jtoken *t, char room[64]);
/* Deeper by one; every success is followed by p->nesting--. */
weft_status weft__j_nest(weft__jcompiler *p);

/* Fills in the `unset` names of every body and what macros take, collects the template's globals, and refuses unknown filters
 * and tests (scope.c). */
weft_status weft__j_resolve(weft__jcompiler *p, weft__jinja *t);

#endif
