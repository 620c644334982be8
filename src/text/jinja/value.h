/* value.h: what the parts of the Jinja interpreter share while rendering: values with Python's behaviour, strings that know
 * which of their bytes are the user's, and the state of one rendering.
 *
 * Invariant: values live in the arena of their rendering (constants in that of their template) and are never freed one by one.
 * Strings are immutable; lists and dicts change only while they are built and through the methods that mutation allows.
 * Everything here belongs to the one thread that renders. Functions that can fail return a weft_status and have then filled
 * the error of the rendering through weft__j_fail; they leave *out alone. */
#ifndef WEFT_TEXT_JINJA_VALUE_H
#define WEFT_TEXT_JINJA_VALUE_H

#include <stddef.h>
#include <stdint.h>

#include "text/jinja/jinja.h"
#include "text/jinja/arena.h"

typedef enum weft__jtype {
    WEFT__J_MISSING, /* no value: an argument not given, a name not yet set; never seen by a template */
    WEFT__J_UNDEFINED,
    WEFT__J_NONE,
    WEFT__J_BOOL,
    WEFT__J_INT,
    WEFT__J_FLOAT,
    WEFT__J_STRING,
    WEFT__J_LIST,
    WEFT__J_TUPLE,
    WEFT__J_DICT,
    WEFT__J_VIEW,  /* dict.keys(), .values(), .items() */
    WEFT__J_RANGE, /* as Python's */
    WEFT__J_ITER,  /* a generator: can be walked once */
    WEFT__J_NAMESPACE,
    WEFT__J_MACRO,
    WEFT__J_FUNCTION,
    WEFT__J_METHOD,
    WEFT__J_LOOP,  /* the variable `loop` */
    WEFT__J_OBJECT /* cycler, joiner */
} weft__jtype;

/* Where the bytes of a string up to `end` come from; the next run begins there. */
typedef struct weft__jrun {
    size_t end;
    int from_user;
} weft__jrun;

typedef struct weft__jstr {
    const char *data;       /* UTF-8, well formed */
    size_t len;             /* bytes */
    size_t n_chars;         /* code points */
    const weft__jrun *runs; /* NULL: all bytes are alike, as from_user says */
    uint32_t n_runs;
    uint8_t from_user;
    uint8_t markup; /* jinja2's Markup: `+` escapes what is added to it */
} weft__jstr;

typedef struct weft__jctx weft__jctx;
typedef struct weft__jval weft__jval;
typedef struct weft__jlist weft__jlist;
typedef struct weft__jdict weft__jdict;
typedef struct weft__jrange weft__jrange;
typedef struct weft__jiter weft__jiter;
typedef struct weft__jmacro weft__jmacro;
typedef struct weft__jfunction weft__jfunction;
typedef struct weft__jmethod weft__jmethod;
typedef struct weft__jloop weft__jloop;
typedef struct weft__jobject weft__jobject;

typedef enum weft__jview { WEFT__J_KEYS, WEFT__J_VALUES, WEFT__J_ITEMS } weft__jview;

struct weft__jval {
    uint8_t type; /* weft__jtype */
    uint8_t aux;  /* VIEW: a weft__jview. TUPLE: 1 for what groupby yields. UNDEFINED: the weft__jtype of the owner, 0 none */
    union {
        int64_t i; /* INT, BOOL */
        double f;
        const weft__jstr *s; /* STRING; UNDEFINED: its name, or NULL */
        weft__jlist *list;   /* LIST, TUPLE */
        weft__jdict *dict;   /* DICT, VIEW, NAMESPACE */
        weft__jrange *range;
        weft__jiter *iter;
        weft__jmacro *macro;
        const weft__jfunction *function;
        weft__jmethod *method;
        weft__jloop *loop;
        weft__jobject *object;
        const void *p;
    } u;
};

struct weft__jlist {
    weft__jval *items;
    size_t n, capacity;
};

typedef struct weft__jentry {
    weft__jval key, value;
    uint64_t hash;
} weft__jentry;

/* In order of insertion. `index` is an open-addressing table of entry numbers + 1, kept once there are more than a few. */
struct weft__jdict {
    weft__jentry *entries;
    size_t n, capacity;
    uint32_t *index;
    size_t n_index;
};

struct weft__jrange {
    int64_t start, stop, step;
    size_t n;
};

/* Arguments of a call as written: positional ones, then named ones. */
typedef struct weft__jargs {
    const weft__jval *pos;
    size_t n_pos;
    const weft__jstr *const *names;
    const weft__jval *named;
    size_t n_named;
} weft__jargs;

/* Functions, filters, tests and methods: `self` is the value filtered, tested or owning the method. */
typedef weft_status (*weft__jcall)(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out);

struct weft__jfunction {
    const char *name;
    weft__jcall call; /* NULL: known to Python, not to this interpreter */
};

struct weft__jmethod {
    weft__jval self;
    const weft__jfunction *function;
};

/* One step of a walk: *got becomes 1 with *out filled, or 0 at the end. The state stands in the union. */
struct weft__jiter {
    weft_status (*next)(weft__jctx *c, weft__jiter *it, weft__jval *out, int *got);
    weft__jval source;
    size_t at;
    weft__jiter *inner;
    void *state;
};

/* cycler and joiner */
struct weft__jobject {
    int is_joiner;
    weft__jval items; /* cycler: tuple; joiner: its separator */
    size_t at;
};

/* A string under construction; weft__j_buf_finish turns it into a value. Zero-initialise. */
typedef struct weft__jbuf {
    char *data;
    size_t len, capacity;
    weft__jrun *runs; /* the last one always ends at len */
    size_t n_runs, runs_capacity;
} weft__jbuf;

typedef enum weft__jflow { WEFT__J_FLOW_ON, WEFT__J_FLOW_BREAK, WEFT__J_FLOW_CONTINUE } weft__jflow;

/* One rendering. */
struct weft__jctx {
    weft__jarena arena;
    weft__jinja_limits limits;
    uint64_t steps;
    uint32_t depth;
    uint32_t line; /* of the node being evaluated */
    weft_error *err;
    weft__jdict *globals;
    weft__jbuf *out;
    weft__jbuf *root_out; /* counted against max_output */
    weft__jflow flow;
    int allow_mutation, has_now, rendered;
    int64_t now;
};

/* ---- failing and spending (ctx.c) ---- */

/* "line N: ..."; the value is `status`, which the compiler can see not to be 0. */
void weft__j_fail_with(weft__jctx *c, weft_status status, const char *format, ...) WEFT_PRINTF(3, 4);
#define weft__j_fail(c, status, ...) (weft__j_fail_with(c, status, __VA_ARGS__), (status))
/* NULL after failing. */
void *weft__j_alloc(weft__jctx *c, size_t n_bytes);
void *weft__j_alloc_array(weft__jctx *c, size_t n, size_t size);
/* Makes room in an arena array; *items_pp is a pointer to it. */
weft_status weft__j_grow(weft__jctx *c, void *items_pp, size_t *capacity, size_t need, size_t size);
weft_status weft__j_spend(weft__jctx *c, uint64_t steps);
/* Counts a level of nesting; every success is followed by one weft__j_leave. */
weft_status weft__j_enter(weft__jctx *c);
static inline void weft__j_leave(weft__jctx *c)
{
    c->depth--;
}

#define WEFT__J_TRY(expression)                                                                                                  \
    do {                                                                                                                         \
        weft_status try_status_ = (expression);                                                                                  \
        if (try_status_) return try_status_;                                                                                     \
    } while (0)

/* The status of a failed weft__j_alloc. */
#define WEFT__J_NO_ROOM(c) ((c)->arena.over ? WEFT_LIMIT : WEFT_NO_MEMORY)

/* ---- strings (str.c) ---- */

/* A string value over bytes that live long enough; text must be UTF-8. */
weft_status weft__j_string(weft__jctx *c, const char *data, size_t n, int from_user, weft__jval *out);
/* The same with the bytes copied. */
weft_status weft__j_string_copy(weft__jctx *c, const char *data, size_t n, int from_user, weft__jval *out);
/* A trusted constant of the interpreter. */
weft_status weft__j_literal(weft__jctx *c, const char *s, weft__jval *out);
/* The bytes [from, to) of s, with their origins. */
weft_status weft__j_slice(weft__jctx *c, const weft__jstr *s, size_t from, size_t to, weft__jval *out);
int weft__j_str_any_user(const weft__jstr *s);
int weft__j_str_eq(const weft__jstr *a, const weft__jstr *b);
int weft__j_str_is(const weft__jstr *s, const char *text);
/* The offset of code point i of s; i <= n_chars. */
size_t weft__j_str_offset(const weft__jstr *s, size_t i);
size_t weft__j_count_chars(const char *data, size_t n);
/* The first or last position of needle in s[from..to), or SIZE_MAX. */
size_t weft__j_find(const char *s, size_t from, size_t to, const char *needle, size_t n);
weft_status weft__j_rfind(weft__jctx *c, const char *s, size_t from, size_t to, const char *needle, size_t n, size_t *out);
/* Python's str.isspace for one character. */
int weft__j_is_space(uint32_t cp);
/* Moves *from forward and *to back over white space (chars NULL) or over the characters in chars. */
void weft__j_strip(const weft__jstr *s, const weft__jstr *chars, int left, int right, size_t *from, size_t *to);

weft_status weft__j_put(weft__jctx *c, weft__jbuf *b, const char *data, size_t n, int from_user);
weft_status weft__j_puts(weft__jctx *c, weft__jbuf *b, const char *s);
weft_status weft__j_put_slice(weft__jctx *c, weft__jbuf *b, const weft__jstr *s, size_t from, size_t to);
weft_status weft__j_put_str(weft__jctx *c, weft__jbuf *b, const weft__jstr *s);
weft_status weft__j_put_char(weft__jctx *c, weft__jbuf *b, uint32_t cp, int from_user);
/* n times the trusted character ch */
weft_status weft__j_put_fill(weft__jctx *c, weft__jbuf *b, char ch, size_t n);
weft_status weft__j_buf_finish(weft__jctx *c, weft__jbuf *b, weft__jval *out);
/* Whether the byte at `at` is the user's; *hint walks along the runs and starts at 0. */
int weft__j_user_at(const weft__jstr *s, size_t at, uint32_t *hint);
/* & < > " ' as HTML entities, unless s is markup. */
weft_status weft__j_escape(weft__jctx *c, const weft__jstr *s, weft__jval *out);
weft_status weft__j_markup(weft__jctx *c, const weft__jstr *s, int markup, weft__jval *out);

typedef enum weft__jcase {
    WEFT__J_LOWER,
    WEFT__J_UPPER,
    WEFT__J_CAPITALIZE,
    WEFT__J_TITLE,
    WEFT__J_SWAP,
    WEFT__J_FOLD
} weft__jcase;
weft_status weft__j_case(weft__jctx *c, const weft__jstr *s, weft__jcase how, weft__jval *out);

/* ---- values (value.c) ---- */

static inline weft__jval weft__j_of(weft__jtype type)
{
    weft__jval v = {.type = (uint8_t)type};
    return v;
}
static inline weft__jval weft__j_none(void)
{
    return weft__j_of(WEFT__J_NONE);
}
static inline weft__jval weft__j_bool(int value)
{
    weft__jval v = {.type = WEFT__J_BOOL, .u.i = value != 0};
    return v;
}
static inline weft__jval weft__j_int(int64_t value)
{
    weft__jval v = {.type = WEFT__J_INT, .u.i = value};
    return v;
}
static inline weft__jval weft__j_float(double value)
{
    weft__jval v = {.type = WEFT__J_FLOAT, .u.f = value};
    return v;
}
static inline weft__jval weft__j_of_str(const weft__jstr *s)
{
    weft__jval v = {.type = WEFT__J_STRING, .u.s = s};
    return v;
}
static inline int weft__j_is_number(weft__jval v)
{
    return v.type == WEFT__J_INT || v.type == WEFT__J_FLOAT || v.type == WEFT__J_BOOL;
}
/* BOOL counts as an integer, as in Python. */
static inline int weft__j_is_int(weft__jval v)
{
    return v.type == WEFT__J_INT || v.type == WEFT__J_BOOL;
}
static inline double weft__j_number(weft__jval v)
{
    return v.type == WEFT__J_FLOAT ? v.u.f : (double)v.u.i;
}

/* Python's name of the type of v, for messages. */
const char *weft__j_type_name(weft__jval v);
/* An undefined value; name may be NULL. `owner` is what lacks the name, or a MISSING value for a variable. */
weft__jval weft__j_undefined(weft__jval owner, const weft__jstr *name);
/* Fails with what is undefined; the value is WEFT_ARGUMENT. */
void weft__j_tell_undefined(weft__jctx *c, weft__jval v);
#define weft__j_fail_undefined(c, v) (weft__j_tell_undefined(c, v), WEFT_ARGUMENT)

weft_status weft__j_new_list(weft__jctx *c, weft__jtype type, size_t capacity, weft__jval *out);
weft_status weft__j_append(weft__jctx *c, weft__jlist *list, weft__jval v);
weft_status weft__j_pair(weft__jctx *c, weft__jval a, weft__jval b, weft__jval *out);
weft_status weft__j_new_dict(weft__jctx *c, weft__jval *out);
/* Fails for keys that cannot be hashed. */
weft_status weft__j_dict_set(weft__jctx *c, weft__jdict *d, weft__jval key, weft__jval value);
/* *out becomes the entry, or NULL. */
weft_status weft__j_dict_find(weft__jctx *c, const weft__jdict *d, weft__jval key, weft__jentry **out);
weft__jentry *weft__j_dict_find_str(const weft__jdict *d, const weft__jstr *key);
weft_status weft__j_dict_remove(weft__jctx *c, weft__jdict *d, weft__jentry *entry);
int weft__j_hashable(weft__jval v);
weft_status weft__j_range(weft__jctx *c, int64_t start, int64_t stop, int64_t step, weft__jval *out);

int weft__j_truthy(weft__jval v);
weft_status weft__j_eq(weft__jctx *c, weft__jval a, weft__jval b, int *out);
/* -1, 0, 1, or 2 when a NaN is involved; fails for types without an order. */
weft_status weft__j_order(weft__jctx *c, weft__jval a, weft__jval b, int *out);
weft_status weft__j_contains(weft__jctx *c, weft__jval container, weft__jval v, int *out);
/* Stable; ascending, or descending with equal elements still in their order. keys[i] belongs to items[i]. */
weft_status weft__j_sort(weft__jctx *c, weft__jval *keys, weft__jval *items, size_t n, int reverse);

/* Python's len(); *out SIZE_MAX when the type has none. */
size_t weft__j_len(weft__jval v);
int weft__j_iterable(weft__jval v);
weft_status weft__j_iter(weft__jctx *c, weft__jval v, weft__jiter **out);
weft_status weft__j_next(weft__jctx *c, weft__jiter *it, weft__jval *out, int *got);
weft_status weft__j_of_iter(weft__jctx *c, weft__jiter *it, weft__jval *out);
/* Everything v yields, in a new list. */
weft_status weft__j_to_list(weft__jctx *c, weft__jval v, weft__jtype type, weft__jval *out);

/* ---- attributes and items (attr.c) ---- */

/* v.name as jinja2 has it: the attribute, else the item, else undefined. */
weft_status weft__j_getattr(weft__jctx *c, weft__jval v, const weft__jstr *name, weft__jval *out);
/* v[key]: the item, else the attribute. */
weft_status weft__j_getitem(weft__jctx *c, weft__jval v, weft__jval key, weft__jval *out);
/* v[start:stop:step]; each an int or none. */
weft_status weft__j_getslice(weft__jctx *c, weft__jval v, weft__jval start, weft__jval stop, weft__jval step, weft__jval *out);
/* The dotted path of filters such as map(attribute='a.b.0'). */
weft_status weft__j_getpath(weft__jctx *c, weft__jval v, weft__jval path, weft__jval *out);

/* ---- operators (ops.c) ---- */

typedef enum weft__jop {
    WEFT__J_ADD,
    WEFT__J_SUB,
    WEFT__J_MUL,
    WEFT__J_DIV,
    WEFT__J_FLOORDIV,
    WEFT__J_MOD,
    WEFT__J_POW,
    WEFT__J_EQ,
    WEFT__J_NE,
    WEFT__J_LT,
    WEFT__J_LE,
    WEFT__J_GT,
    WEFT__J_GE,
    WEFT__J_IN,
    WEFT__J_NOT_IN
} weft__jop;

weft_status weft__j_arithmetic(weft__jctx *c, weft__jop op, weft__jval a, weft__jval b, weft__jval *out);
weft_status weft__j_compare(weft__jctx *c, weft__jop op, weft__jval a, weft__jval b, int *out);

/* ---- printing (print.c) ---- */

/* Python's str(v) and repr(v). */
weft_status weft__j_put_value(weft__jctx *c, weft__jbuf *b, weft__jval v);
weft_status weft__j_put_repr(weft__jctx *c, weft__jbuf *b, weft__jval v);
weft_status weft__j_to_str(weft__jctx *c, weft__jval v, const weft__jstr **out);
/* Python's repr of a double; at most 32 bytes. */
size_t weft__j_print_double(double value, char out[32]);

typedef struct weft__jdump {
    int ascii, sort_keys;
    const weft__jstr *indent;             /* NULL: on one line */
    const weft__jstr *item_sep, *key_sep; /* NULL: Python's defaults */
} weft__jdump;
/* As Python's json.dumps. The result is the user's as a whole when any string in it is. */
weft_status weft__j_dump(weft__jctx *c, weft__jval v, const weft__jdump *how, weft__jval *out);

/* ---- formatting (format.c) ---- */

/* format % args, and format.format(args). */
weft_status weft__j_percent(weft__jctx *c, const weft__jstr *format, weft__jval args, weft__jval *out);
weft_status weft__j_format(weft__jctx *c, const weft__jstr *format, const weft__jargs *args, weft__jval *out);

/* ---- what can be called ---- */

/* Assigns arguments to parameters: names[i] for out[i]; the first n_required must be there, the others become MISSING. */
weft_status weft__j_bind(weft__jctx *c, const char *what, const weft__jargs *args, const char *const *names, size_t n,
                         size_t n_required, weft__jval *out);
weft_status weft__j_no_args(weft__jctx *c, const char *what, const weft__jargs *args);
/* A bound value as an int, or `otherwise` when missing. */
weft_status weft__j_want_int(weft__jctx *c, const char *what, weft__jval v, int64_t otherwise, int64_t *out);

/* NULL when there is none of that name. */
const weft__jfunction *weft__j_filter(const weft__jstr *name);
const weft__jfunction *weft__j_test(const weft__jstr *name);
const weft__jfunction *weft__j_global(const weft__jstr *name);
/* The attribute of a value of this type, if Python's type has one of this name. */
const weft__jfunction *weft__j_str_method(const weft__jstr *name);
const weft__jfunction *weft__j_container_method(weft__jtype type, const weft__jstr *name);
const weft__jfunction *weft__j_object_method(const weft__jstr *name);
/* Looks a table up that ends with a NULL name. */
const weft__jfunction *weft__j_lookup(const weft__jfunction *table, const weft__jstr *name);

weft_status weft__j_call_function(weft__jctx *c, const weft__jfunction *f, weft__jval self, const weft__jargs *args,
                                  weft__jval *out);
/* The filters of numbers and of sequences, which weft__j_filter knows too. */
const weft__jfunction *weft__j_number_filter(const weft__jstr *name);
const weft__jfunction *weft__j_seq_filter(const weft__jstr *name);

/* JSON into values (json.c). */
weft_status weft__j_from_json(weft__jctx *c, const weft__json *json, weft__jinja_trust trust, void *arg, weft__jval *out);
weft_status weft__j_parse_json(weft__jctx *c, const weft__jstr *text, weft__jval *out);

#endif
