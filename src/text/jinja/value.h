// SPDX-License-Identifier: Apache-2.0
/* value.h: what the parts of the Jinja interpreter share while rendering: values with Python's behaviour, strings that
 * know which of their bytes are the user's, and the state of one rendering.
 *
 * Invariant: values live in the arena of their rendering (constants in that of their template) and are never freed one
 * by one. Strings are immutable; lists and dicts change only while they are built and through the methods that mutation
 * allows. Everything here belongs to the one thread that renders. Functions that can fail return a weft_status and have
 * then filled the error of the rendering through weft__jinja_fail; they leave *out alone. */
#ifndef WEFT_TEXT_JINJA_VALUE_H
#define WEFT_TEXT_JINJA_VALUE_H

#include <stddef.h>
#include <stdint.h>

#include "text/jinja/jinja.h"
#include "text/jinja/arena.h"

typedef enum weft__jinja_type {
    WEFT__JINJA_MISSING, /* no value: an argument not given, a name not yet set; never seen by a template */
    WEFT__JINJA_UNDEFINED,
    WEFT__JINJA_NONE,
    WEFT__JINJA_BOOL,
    WEFT__JINJA_INT,
    WEFT__JINJA_FLOAT,
    WEFT__JINJA_STRING,
    WEFT__JINJA_LIST,
    WEFT__JINJA_TUPLE,
    WEFT__JINJA_DICT,
    WEFT__JINJA_VIEW,  /* dict.keys(), .values(), .items() */
    WEFT__JINJA_RANGE, /* as Python's */
    WEFT__JINJA_ITER,  /* a generator: can be walked once */
    WEFT__JINJA_NAMESPACE,
    WEFT__JINJA_MACRO,
    WEFT__JINJA_FUNCTION,
    WEFT__JINJA_METHOD,
    WEFT__JINJA_LOOP,  /* the variable `loop` */
    WEFT__JINJA_OBJECT /* cycler, joiner */
} weft__jinja_type;

/* Where the bytes of a string up to `end` come from; the next run begins there. */
typedef struct weft__jinja_run {
    size_t end;
    int from_user;
} weft__jinja_run;

typedef struct weft__jinja_str {
    const char *data;            /* UTF-8, well formed */
    size_t len;                  /* bytes */
    size_t n_chars;              /* code points */
    const weft__jinja_run *runs; /* NULL: all bytes are alike, as from_user says */
    uint32_t n_runs;
    uint8_t from_user;
    uint8_t markup; /* jinja2's Markup: `+` escapes what is added to it */
} weft__jinja_str;

typedef struct weft__jinja_ctx weft__jinja_ctx;
typedef struct weft__jinja_val weft__jinja_val;
typedef struct weft__jinja_list weft__jinja_list;
typedef struct weft__jinja_dict weft__jinja_dict;
typedef struct weft__jinja_range weft__jinja_range;
typedef struct weft__jinja_iter weft__jinja_iter;
typedef struct weft__jinja_macro weft__jinja_macro;
typedef struct weft__jinja_function weft__jinja_function;
typedef struct weft__jinja_method weft__jinja_method;
typedef struct weft__jinja_loop weft__jinja_loop;
typedef struct weft__jinja_object weft__jinja_object;

typedef enum weft__jinja_view { WEFT__JINJA_KEYS, WEFT__JINJA_VALUES, WEFT__JINJA_ITEMS } weft__jinja_view;

struct weft__jinja_val {
    uint8_t type; /* weft__jinja_type */
    /* VIEW: a weft__jinja_view. TUPLE: 1 for what groupby yields. UNDEFINED: the weft__jinja_type of the owner, 0
     * none */
    uint8_t aux;
    union {
        int64_t i; /* INT, BOOL */
        double f;
        const weft__jinja_str *s; /* STRING; UNDEFINED: its name, or NULL */
        weft__jinja_list *list;   /* LIST, TUPLE */
        weft__jinja_dict *dict;   /* DICT, VIEW, NAMESPACE */
        weft__jinja_range *range;
        weft__jinja_iter *iter;
        weft__jinja_macro *macro;
        const weft__jinja_function *function;
        weft__jinja_method *method;
        weft__jinja_loop *loop;
        weft__jinja_object *object;
        const void *p;
    } u;
};

struct weft__jinja_list {
    weft__jinja_val *items;
    size_t n, capacity;
};

typedef struct weft__jinja_entry {
    weft__jinja_val key, value;
    uint64_t hash;
} weft__jinja_entry;

/* In order of insertion. `index` is an open-addressing table of entry numbers + 1, kept once there are more than a
 * few. */
struct weft__jinja_dict {
    weft__jinja_entry *entries;
    size_t n, capacity;
    uint32_t *index;
    size_t n_index;
};

struct weft__jinja_range {
    int64_t start, stop, step;
    size_t n;
};

/* Arguments of a call as written: positional ones, then named ones. */
typedef struct weft__jinja_args {
    const weft__jinja_val *pos;
    size_t n_pos;
    const weft__jinja_str *const *names;
    const weft__jinja_val *named;
    size_t n_named;
} weft__jinja_args;

/* Functions, filters, tests and methods: `self` is the value filtered, tested or owning the method. */
typedef weft_status (*weft__jinja_fn)(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                                      weft__jinja_val *out);

struct weft__jinja_function {
    const char *name;
    weft__jinja_fn call; /* NULL: known to Python, not to this interpreter */
};

struct weft__jinja_method {
    weft__jinja_val self;
    const weft__jinja_function *function;
};

/* One step of a walk: *got becomes 1 with *out filled, or 0 at the end. The state stands in the union. */
struct weft__jinja_iter {
    weft_status (*next)(weft__jinja_ctx *c, weft__jinja_iter *it, weft__jinja_val *out, int *got);
    weft__jinja_val source;
    size_t at;
    weft__jinja_iter *inner;
    void *state;
};

/* cycler and joiner */
struct weft__jinja_object {
    int is_joiner;
    weft__jinja_val items; /* cycler: tuple; joiner: its separator */
    size_t at;
};

/* A string under construction; weft__jinja_buf_finish turns it into a value. Zero-initialise. */
typedef struct weft__jinja_buf {
    char *data;
    size_t len, capacity;
    weft__jinja_run *runs; /* the last one always ends at len */
    size_t n_runs, runs_capacity;
} weft__jinja_buf;

typedef enum weft__jinja_flow {
    WEFT__JINJA_FLOW_ON,
    WEFT__JINJA_FLOW_BREAK,
    WEFT__JINJA_FLOW_CONTINUE
} weft__jinja_flow;

/* One rendering. */
struct weft__jinja_ctx {
    weft__jinja_arena arena;
    weft__jinja_limits limits;
    uint64_t steps;
    uint32_t depth;
    uint32_t line; /* of the node being evaluated */
    weft_error *err;
    weft__jinja_dict *globals;
    weft__jinja_buf *out;
    weft__jinja_buf *root_out; /* counted against max_output */
    weft__jinja_flow flow;
    int allow_mutation, has_now, rendered;
    int plain; /* of weft__jinja_compile_plain: white space stays, and undefined values are refused */
    int64_t now;
};

/* ---- failing and spending (ctx.c) ---- */

/* "line N: ..."; the value is `status`, which the compiler can see not to be 0. */
void weft__jinja_fail_with(weft__jinja_ctx *c, weft_status status, const char *format, ...) WEFT_PRINTF(3, 4);
#define weft__jinja_fail(c, status, ...) (weft__jinja_fail_with(c, status, __VA_ARGS__), (status))
/* NULL after failing. */
void *weft__jinja_alloc(weft__jinja_ctx *c, size_t n_bytes);
void *weft__jinja_alloc_array(weft__jinja_ctx *c, size_t n, size_t size);
/* Makes room in an arena array; *items_pp is a pointer to it. */
weft_status weft__jinja_grow(weft__jinja_ctx *c, void *items_pp, size_t *capacity, size_t need, size_t size);
weft_status weft__jinja_spend(weft__jinja_ctx *c, uint64_t steps);
/* Counts a level of nesting; every success is followed by one weft__jinja_leave. */
weft_status weft__jinja_enter(weft__jinja_ctx *c);
static inline void weft__jinja_leave(weft__jinja_ctx *c)
{
    c->depth--;
}

#define WEFT__JINJA_TRY(expression)                                                                                    \
    do {                                                                                                               \
        weft_status try_status_ = (expression);                                                                        \
        if (try_status_) return try_status_;                                                                           \
    } while (0)

/* The status of a failed weft__jinja_alloc. */
#define WEFT__JINJA_NO_ROOM(c) ((c)->arena.over ? WEFT_LIMIT : WEFT_NO_MEMORY)

/* ---- strings (str.c) ---- */

/* A string value over bytes that live long enough; text must be UTF-8. */
weft_status weft__jinja_string(weft__jinja_ctx *c, const char *data, size_t n, int from_user, weft__jinja_val *out);
/* The same with the bytes copied. */
weft_status weft__jinja_string_copy(weft__jinja_ctx *c, const char *data, size_t n, int from_user,
                                    weft__jinja_val *out);
/* A trusted constant of the interpreter. */
weft_status weft__jinja_literal(weft__jinja_ctx *c, const char *s, weft__jinja_val *out);
/* The bytes [from, to) of s, with their origins. */
weft_status weft__jinja_slice(weft__jinja_ctx *c, const weft__jinja_str *s, size_t from, size_t to,
                              weft__jinja_val *out);
int weft__jinja_str_any_user(const weft__jinja_str *s);
int weft__jinja_str_eq(const weft__jinja_str *a, const weft__jinja_str *b);
int weft__jinja_str_is(const weft__jinja_str *s, const char *text);
/* The offset of code point i of s; i <= n_chars. */
size_t weft__jinja_str_offset(const weft__jinja_str *s, size_t i);
size_t weft__jinja_count_chars(const char *data, size_t n);
/* The first or last position of needle in s[from..to), or SIZE_MAX. */
size_t weft__jinja_find(const char *s, size_t from, size_t to, const char *needle, size_t n);
weft_status weft__jinja_rfind(weft__jinja_ctx *c, const char *s, size_t from, size_t to, const char *needle, size_t n,
                              size_t *out);
/* Python's str.isspace for one character. */
int weft__jinja_is_space(uint32_t cp);
/* Moves *from forward and *to back over white space (chars NULL) or over the characters in chars. */
void weft__jinja_strip(const weft__jinja_str *s, const weft__jinja_str *chars, int left, int right, size_t *from,
                       size_t *to);

weft_status weft__jinja_put(weft__jinja_ctx *c, weft__jinja_buf *b, const char *data, size_t n, int from_user);
weft_status weft__jinja_puts(weft__jinja_ctx *c, weft__jinja_buf *b, const char *s);
weft_status weft__jinja_put_slice(weft__jinja_ctx *c, weft__jinja_buf *b, const weft__jinja_str *s, size_t from,
                                  size_t to);
weft_status weft__jinja_put_str(weft__jinja_ctx *c, weft__jinja_buf *b, const weft__jinja_str *s);
weft_status weft__jinja_put_char(weft__jinja_ctx *c, weft__jinja_buf *b, uint32_t cp, int from_user);
/* n times the trusted character ch */
weft_status weft__jinja_put_fill(weft__jinja_ctx *c, weft__jinja_buf *b, char ch, size_t n);
weft_status weft__jinja_buf_finish(weft__jinja_ctx *c, weft__jinja_buf *b, weft__jinja_val *out);
/* Whether the byte at `at` is the user's; *hint walks along the runs and starts at 0. */
int weft__jinja_user_at(const weft__jinja_str *s, size_t at, uint32_t *hint);
/* & < > " ' as HTML entities, unless s is markup. */
weft_status weft__jinja_escape(weft__jinja_ctx *c, const weft__jinja_str *s, weft__jinja_val *out);
weft_status weft__jinja_markup(weft__jinja_ctx *c, const weft__jinja_str *s, int markup, weft__jinja_val *out);

typedef enum weft__jinja_case {
    WEFT__JINJA_LOWER,
    WEFT__JINJA_UPPER,
    WEFT__JINJA_CAPITALIZE,
    WEFT__JINJA_TITLE,
    WEFT__JINJA_SWAP,
    WEFT__JINJA_FOLD
} weft__jinja_case;
weft_status weft__jinja_to_case(weft__jinja_ctx *c, const weft__jinja_str *s, weft__jinja_case how,
                                weft__jinja_val *out);

/* ---- values (value.c) ---- */

static inline weft__jinja_val weft__jinja_of(weft__jinja_type type)
{
    weft__jinja_val v = {.type = (uint8_t)type};
    return v;
}
static inline weft__jinja_val weft__jinja_none(void)
{
    return weft__jinja_of(WEFT__JINJA_NONE);
}
static inline weft__jinja_val weft__jinja_bool(int value)
{
    weft__jinja_val v = {.type = WEFT__JINJA_BOOL, .u.i = value != 0};
    return v;
}
static inline weft__jinja_val weft__jinja_int(int64_t value)
{
    weft__jinja_val v = {.type = WEFT__JINJA_INT, .u.i = value};
    return v;
}
static inline weft__jinja_val weft__jinja_float(double value)
{
    weft__jinja_val v = {.type = WEFT__JINJA_FLOAT, .u.f = value};
    return v;
}
static inline weft__jinja_val weft__jinja_of_str(const weft__jinja_str *s)
{
    weft__jinja_val v = {.type = WEFT__JINJA_STRING, .u.s = s};
    return v;
}
static inline int weft__jinja_is_number(weft__jinja_val v)
{
    return v.type == WEFT__JINJA_INT || v.type == WEFT__JINJA_FLOAT || v.type == WEFT__JINJA_BOOL;
}
/* BOOL counts as an integer, as in Python. */
static inline int weft__jinja_is_int(weft__jinja_val v)
{
    return v.type == WEFT__JINJA_INT || v.type == WEFT__JINJA_BOOL;
}
static inline double weft__jinja_number(weft__jinja_val v)
{
    return v.type == WEFT__JINJA_FLOAT ? v.u.f : (double)v.u.i;
}

/* Python's name of the type of v, for messages. */
const char *weft__jinja_type_name(weft__jinja_val v);
/* An undefined value; name may be NULL. `owner` is what lacks the name, or a MISSING value for a variable. */
weft__jinja_val weft__jinja_undefined(weft__jinja_val owner, const weft__jinja_str *name);
/* Fails with what is undefined; the value is WEFT_ARGUMENT. */
void weft__jinja_tell_undefined(weft__jinja_ctx *c, weft__jinja_val v);
#define weft__jinja_fail_undefined(c, v) (weft__jinja_tell_undefined(c, v), WEFT_ARGUMENT)

weft_status weft__jinja_new_list(weft__jinja_ctx *c, weft__jinja_type type, size_t capacity, weft__jinja_val *out);
weft_status weft__jinja_append(weft__jinja_ctx *c, weft__jinja_list *list, weft__jinja_val v);
weft_status weft__jinja_pair(weft__jinja_ctx *c, weft__jinja_val a, weft__jinja_val b, weft__jinja_val *out);
weft_status weft__jinja_new_dict(weft__jinja_ctx *c, weft__jinja_val *out);
/* Fails for keys that cannot be hashed. */
weft_status weft__jinja_dict_set(weft__jinja_ctx *c, weft__jinja_dict *d, weft__jinja_val key, weft__jinja_val value);
/* *out becomes the entry, or NULL. */
weft_status weft__jinja_dict_find(weft__jinja_ctx *c, const weft__jinja_dict *d, weft__jinja_val key,
                                  weft__jinja_entry **out);
weft__jinja_entry *weft__jinja_dict_find_str(const weft__jinja_dict *d, const weft__jinja_str *key);
weft_status weft__jinja_dict_remove(weft__jinja_ctx *c, weft__jinja_dict *d, weft__jinja_entry *entry);
int weft__jinja_hashable(weft__jinja_val v);
weft_status weft__jinja_new_range(weft__jinja_ctx *c, int64_t start, int64_t stop, int64_t step, weft__jinja_val *out);

int weft__jinja_truthy(weft__jinja_val v);
weft_status weft__jinja_eq(weft__jinja_ctx *c, weft__jinja_val a, weft__jinja_val b, int *out);
/* -1, 0, 1, or 2 when a NaN is involved; fails for types without an order. */
weft_status weft__jinja_order(weft__jinja_ctx *c, weft__jinja_val a, weft__jinja_val b, int *out);
weft_status weft__jinja_contains(weft__jinja_ctx *c, weft__jinja_val container, weft__jinja_val v, int *out);
/* Stable; ascending, or descending with equal elements still in their order. keys[i] belongs to items[i]. */
weft_status weft__jinja_sort(weft__jinja_ctx *c, weft__jinja_val *keys, weft__jinja_val *items, size_t n, int reverse);

/* Python's len(); *out SIZE_MAX when the type has none. */
size_t weft__jinja_len(weft__jinja_val v);
int weft__jinja_iterable(weft__jinja_val v);
weft_status weft__jinja_iterate(weft__jinja_ctx *c, weft__jinja_val v, weft__jinja_iter **out);
weft_status weft__jinja_next(weft__jinja_ctx *c, weft__jinja_iter *it, weft__jinja_val *out, int *got);
weft_status weft__jinja_of_iter(weft__jinja_ctx *c, weft__jinja_iter *it, weft__jinja_val *out);
/* Everything v yields, in a new list. */
weft_status weft__jinja_to_list(weft__jinja_ctx *c, weft__jinja_val v, weft__jinja_type type, weft__jinja_val *out);

/* ---- attributes and items (attr.c) ---- */

/* v.name as jinja2 has it: the attribute, else the item, else undefined. */
weft_status weft__jinja_getattr(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_str *name,
                                weft__jinja_val *out);
/* v[key]: the item, else the attribute. */
weft_status weft__jinja_getitem(weft__jinja_ctx *c, weft__jinja_val v, weft__jinja_val key, weft__jinja_val *out);
/* v[start:stop:step]; each an int or none. */
weft_status weft__jinja_getslice(weft__jinja_ctx *c, weft__jinja_val v, weft__jinja_val start, weft__jinja_val stop,
                                 weft__jinja_val step, weft__jinja_val *out);
/* The dotted path of filters such as map(attribute='a.b.0'). */
weft_status weft__jinja_getpath(weft__jinja_ctx *c, weft__jinja_val v, weft__jinja_val path, weft__jinja_val *out);

/* ---- operators (ops.c) ---- */

typedef enum weft__jinja_op {
    WEFT__JINJA_ADD,
    WEFT__JINJA_SUB,
    WEFT__JINJA_MUL,
    WEFT__JINJA_DIV,
    WEFT__JINJA_FLOORDIV,
    WEFT__JINJA_MOD,
    WEFT__JINJA_POW,
    WEFT__JINJA_EQ,
    WEFT__JINJA_NE,
    WEFT__JINJA_LT,
    WEFT__JINJA_LE,
    WEFT__JINJA_GT,
    WEFT__JINJA_GE,
    WEFT__JINJA_IN,
    WEFT__JINJA_NOT_IN
} weft__jinja_op;

weft_status weft__jinja_arithmetic(weft__jinja_ctx *c, weft__jinja_op op, weft__jinja_val a, weft__jinja_val b,
                                   weft__jinja_val *out);
weft_status weft__jinja_compare(weft__jinja_ctx *c, weft__jinja_op op, weft__jinja_val a, weft__jinja_val b, int *out);

/* ---- printing (print.c) ---- */

/* Python's str(v) and repr(v). */
weft_status weft__jinja_put_value(weft__jinja_ctx *c, weft__jinja_buf *b, weft__jinja_val v);
weft_status weft__jinja_put_repr(weft__jinja_ctx *c, weft__jinja_buf *b, weft__jinja_val v);
weft_status weft__jinja_to_str(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_str **out);
/* Python's repr of a double; at most 32 bytes. */
size_t weft__jinja_print_double(double value, char out[32]);

typedef struct weft__jinja_dump {
    int ascii, sort_keys;
    const weft__jinja_str *indent;             /* NULL: on one line */
    const weft__jinja_str *item_sep, *key_sep; /* NULL: Python's defaults */
} weft__jinja_dump;
/* As Python's json.dumps. The result is the user's as a whole when any string in it is. */
weft_status weft__jinja_dump_json(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_dump *how,
                                  weft__jinja_val *out);

/* ---- formatting (format.c) ---- */

/* format % args, and format.format(args). */
weft_status weft__jinja_percent(weft__jinja_ctx *c, const weft__jinja_str *format, weft__jinja_val args,
                                weft__jinja_val *out);
weft_status weft__jinja_format(weft__jinja_ctx *c, const weft__jinja_str *format, const weft__jinja_args *args,
                               weft__jinja_val *out);

/* ---- what can be called ---- */

/* Assigns arguments to parameters: names[i] for out[i]; the first n_required must be there, the others become
 * MISSING. */
weft_status weft__jinja_bind(weft__jinja_ctx *c, const char *what, const weft__jinja_args *args,
                             const char *const *names, size_t n, size_t n_required, weft__jinja_val *out);
weft_status weft__jinja_no_args(weft__jinja_ctx *c, const char *what, const weft__jinja_args *args);
/* A bound value as an int, or `otherwise` when missing. */
weft_status weft__jinja_want_int(weft__jinja_ctx *c, const char *what, weft__jinja_val v, int64_t otherwise,
                                 int64_t *out);

/* NULL when there is none of that name. */
const weft__jinja_function *weft__jinja_filter(const weft__jinja_str *name);
const weft__jinja_function *weft__jinja_test(const weft__jinja_str *name);
const weft__jinja_function *weft__jinja_global(const weft__jinja_str *name);
/* The attribute of a value of this type, if Python's type has one of this name. */
const weft__jinja_function *weft__jinja_str_method(const weft__jinja_str *name);
const weft__jinja_function *weft__jinja_container_method(weft__jinja_type type, const weft__jinja_str *name);
const weft__jinja_function *weft__jinja_object_method(const weft__jinja_str *name);
/* Looks a table up that ends with a NULL name. */
const weft__jinja_function *weft__jinja_lookup(const weft__jinja_function *table, const weft__jinja_str *name);

weft_status weft__jinja_call_function(weft__jinja_ctx *c, const weft__jinja_function *f, weft__jinja_val self,
                                      const weft__jinja_args *args, weft__jinja_val *out);
/* The filters of numbers and of sequences, which weft__jinja_filter knows too. */
const weft__jinja_function *weft__jinja_number_filter(const weft__jinja_str *name);
const weft__jinja_function *weft__jinja_seq_filter(const weft__jinja_str *name);

/* JSON into values (json.c). */
weft_status weft__jinja_from_json(weft__jinja_ctx *c, const weft__json *json, weft__jinja_trust trust, void *arg,
                                  weft__jinja_val *out);
weft_status weft__jinja_parse_json(weft__jinja_ctx *c, const weft__jinja_str *text, weft__jinja_val *out);

#endif
