/* tests.c: what may follow `is` (value.h), as in jinja2. Owned by the rendering. */
#include <string.h>

#include "text/jinja/text.h"
#include "text/jinja/value.h"

static weft_status yes_no(weft__jctx *c, const weft__jargs *args, int holds, weft__jval *out)
{
    if (args->n_pos || args->n_named) return weft__j_fail(c, WEFT_ARGUMENT, "the test takes no arguments");
    *out = weft__j_bool(holds);
    return WEFT_OK;
}

#define PLAIN_TEST(name, condition)                                                                                              \
    static weft_status name(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)                               \
    {                                                                                                                            \
        return yes_no(c, args, condition, out);                                                                                  \
    }

PLAIN_TEST(is_defined, v.type != WEFT__J_UNDEFINED)
PLAIN_TEST(is_undefined, v.type == WEFT__J_UNDEFINED)
PLAIN_TEST(is_none, v.type == WEFT__J_NONE)
PLAIN_TEST(is_boolean, v.type == WEFT__J_BOOL)
PLAIN_TEST(is_true, v.type == WEFT__J_BOOL && v.u.i)
PLAIN_TEST(is_false, v.type == WEFT__J_BOOL && !v.u.i)
PLAIN_TEST(is_integer, v.type == WEFT__J_INT)
PLAIN_TEST(is_float, v.type == WEFT__J_FLOAT)
PLAIN_TEST(is_number, weft__j_is_number(v))
PLAIN_TEST(is_string, v.type == WEFT__J_STRING)
PLAIN_TEST(is_mapping, v.type == WEFT__J_DICT)
PLAIN_TEST(is_iterable, weft__j_iterable(v) || v.type == WEFT__J_LOOP)
PLAIN_TEST(is_escaped, v.type == WEFT__J_STRING && v.u.s->markup)
PLAIN_TEST(is_callable, v.type == WEFT__J_MACRO || v.type == WEFT__J_FUNCTION || v.type == WEFT__J_METHOD ||
                            v.type == WEFT__J_LOOP || v.type == WEFT__J_UNDEFINED ||
                            (v.type == WEFT__J_OBJECT && v.u.object->is_joiner))
/* Whatever has a length and can be indexed, which Python's Undefined pretends to. */
PLAIN_TEST(is_sequence, v.type == WEFT__J_STRING || v.type == WEFT__J_LIST || v.type == WEFT__J_TUPLE || v.type == WEFT__J_DICT ||
                            v.type == WEFT__J_RANGE || v.type == WEFT__J_UNDEFINED)

static weft_status is_case(weft__jctx *c, weft__jval v, const weft__jargs *args, int upper, weft__jval *out)
{
    const weft__jstr *s;
    WEFT__J_TRY(yes_no(c, args, 0, out));
    WEFT__J_TRY(weft__j_to_str(c, v, &s));
    return weft__j_is_case(c, s, upper, out);
}

static weft_status is_lower(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    return is_case(c, v, args, 0, out);
}

static weft_status is_upper(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    return is_case(c, v, args, 1, out);
}

static weft_status one_arg(weft__jctx *c, const weft__jargs *args, weft__jval *out)
{
    if (args->n_pos != 1 || args->n_named) return weft__j_fail(c, WEFT_ARGUMENT, "the test takes one argument");
    *out = args->pos[0];
    return WEFT_OK;
}

static weft_status remainder_is(weft__jctx *c, weft__jval v, weft__jval by, int64_t wanted, weft__jval *out)
{
    weft__jval rest;
    int same;
    WEFT__J_TRY(weft__j_arithmetic(c, WEFT__J_MOD, v, by, &rest));
    WEFT__J_TRY(weft__j_eq(c, rest, weft__j_int(wanted), &same));
    *out = weft__j_bool(same);
    return WEFT_OK;
}

static weft_status is_odd(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    WEFT__J_TRY(yes_no(c, args, 0, out));
    return remainder_is(c, v, weft__j_int(2), 1, out);
}

static weft_status is_even(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    WEFT__J_TRY(yes_no(c, args, 0, out));
    return remainder_is(c, v, weft__j_int(2), 0, out);
}

static weft_status is_divisible(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    weft__jval by;
    WEFT__J_TRY(one_arg(c, args, &by));
    return remainder_is(c, v, by, 0, out);
}

static weft_status is_same(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    weft__jval other;
    int same;
    WEFT__J_TRY(one_arg(c, args, &other));
    same = v.type == other.type;
    if (v.type == WEFT__J_INT || v.type == WEFT__J_BOOL) {
        same = same && v.u.i == other.u.i;
    } else if (v.type == WEFT__J_STRING) {
        same = same && weft__j_str_eq(v.u.s, other.u.s); /* Python shares equal short strings more often than not */
    } else if (v.type != WEFT__J_NONE) {
        same = same && v.u.p == other.u.p;
    }
    *out = weft__j_bool(same);
    return WEFT_OK;
}

static weft_status is_in(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    weft__jval container;
    int holds;
    WEFT__J_TRY(one_arg(c, args, &container));
    WEFT__J_TRY(weft__j_contains(c, container, v, &holds));
    *out = weft__j_bool(holds);
    return WEFT_OK;
}

static weft_status names_something(weft__jctx *c, weft__jval v, const weft__jargs *args,
                                   const weft__jfunction *(*find)(const weft__jstr *), weft__jval *out)
{
    return yes_no(c, args, v.type == WEFT__J_STRING && find(v.u.s) != NULL, out);
}

static weft_status is_filter(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    return names_something(c, v, args, weft__j_filter, out);
}

static weft_status is_test(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    return names_something(c, v, args, weft__j_test, out);
}

#define COMPARE_TEST(name, op)                                                                                                   \
    static weft_status name(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)                               \
    {                                                                                                                            \
        weft__jval other;                                                                                                        \
        int holds;                                                                                                               \
        WEFT__J_TRY(one_arg(c, args, &other));                                                                                   \
        WEFT__J_TRY(weft__j_compare(c, op, v, other, &holds));                                                                   \
        *out = weft__j_bool(holds);                                                                                              \
        return WEFT_OK;                                                                                                          \
    }

COMPARE_TEST(is_eq, WEFT__J_EQ)
COMPARE_TEST(is_ne, WEFT__J_NE)
COMPARE_TEST(is_lt, WEFT__J_LT)
COMPARE_TEST(is_le, WEFT__J_LE)
COMPARE_TEST(is_gt, WEFT__J_GT)
COMPARE_TEST(is_ge, WEFT__J_GE)

const weft__jfunction *weft__j_test(const weft__jstr *name)
{
    static const weft__jfunction table[] = {
        {"defined", is_defined},
        {"string", is_string},
        {"none", is_none},
        {"mapping", is_mapping},
        {"iterable", is_iterable},
        {"sequence", is_sequence},
        {"true", is_true},
        {"false", is_false},
        {"boolean", is_boolean},
        {"undefined", is_undefined},
        {"number", is_number},
        {"integer", is_integer},
        {"float", is_float},
        {"odd", is_odd},
        {"even", is_even},
        {"divisibleby", is_divisible},
        {"lower", is_lower},
        {"upper", is_upper},
        {"callable", is_callable},
        {"sameas", is_same},
        {"escaped", is_escaped},
        {"in", is_in},
        {"filter", is_filter},
        {"test", is_test},
        {"eq", is_eq},
        {"equalto", is_eq},
        {"==", is_eq},
        {"ne", is_ne},
        {"!=", is_ne},
        {"lt", is_lt},
        {"lessthan", is_lt},
        {"<", is_lt},
        {"le", is_le},
        {"<=", is_le},
        {"gt", is_gt},
        {"greaterthan", is_gt},
        {">", is_gt},
        {"ge", is_ge},
        {">=", is_ge},
        {NULL, NULL},
    };
    return weft__j_lookup(table, name);
}
