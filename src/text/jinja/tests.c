// SPDX-License-Identifier: Apache-2.0
/* tests.c: what may follow `is` (value.h), as in jinja2. Owned by the rendering. */
#include <string.h>

#include "text/jinja/text.h"
#include "text/jinja/value.h"

static weft_status yes_no(weft__jinja_ctx *c, const weft__jinja_args *args, int holds, weft__jinja_val *out)
{
    if (args->n_pos || args->n_named) return weft__jinja_fail(c, WEFT_ARGUMENT, "the test takes no arguments");
    *out = weft__jinja_bool(holds);
    return WEFT_OK;
}

#define PLAIN_TEST(name, condition)                                                                                    \
    static weft_status name(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out) \
    {                                                                                                                  \
        return yes_no(c, args, condition, out);                                                                        \
    }

PLAIN_TEST(is_defined, v.type != WEFT__JINJA_UNDEFINED)
PLAIN_TEST(is_undefined, v.type == WEFT__JINJA_UNDEFINED)
PLAIN_TEST(is_none, v.type == WEFT__JINJA_NONE)
PLAIN_TEST(is_boolean, v.type == WEFT__JINJA_BOOL)
PLAIN_TEST(is_true, v.type == WEFT__JINJA_BOOL && v.u.i)
PLAIN_TEST(is_false, v.type == WEFT__JINJA_BOOL && !v.u.i)
PLAIN_TEST(is_integer, v.type == WEFT__JINJA_INT)
PLAIN_TEST(is_float, v.type == WEFT__JINJA_FLOAT)
PLAIN_TEST(is_number, weft__jinja_is_number(v))
PLAIN_TEST(is_string, v.type == WEFT__JINJA_STRING)
PLAIN_TEST(is_mapping, v.type == WEFT__JINJA_DICT)
PLAIN_TEST(is_iterable, weft__jinja_iterable(v) || v.type == WEFT__JINJA_LOOP)
PLAIN_TEST(is_escaped, v.type == WEFT__JINJA_STRING && v.u.s->markup)
PLAIN_TEST(is_callable, v.type == WEFT__JINJA_MACRO || v.type == WEFT__JINJA_FUNCTION || v.type == WEFT__JINJA_METHOD ||
                            v.type == WEFT__JINJA_LOOP || v.type == WEFT__JINJA_UNDEFINED ||
                            (v.type == WEFT__JINJA_OBJECT && v.u.object->is_joiner))
/* Whatever has a length and can be indexed, which Python's Undefined pretends to. */
PLAIN_TEST(is_sequence, v.type == WEFT__JINJA_STRING || v.type == WEFT__JINJA_LIST || v.type == WEFT__JINJA_TUPLE ||
                            v.type == WEFT__JINJA_DICT || v.type == WEFT__JINJA_RANGE ||
                            v.type == WEFT__JINJA_UNDEFINED)

static weft_status is_case(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, int upper,
                           weft__jinja_val *out)
{
    const weft__jinja_str *s;
    WEFT__JINJA_TRY(yes_no(c, args, 0, out));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    return weft__jinja_is_case(c, s, upper, out);
}

static weft_status is_lower(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    return is_case(c, v, args, 0, out);
}

static weft_status is_upper(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    return is_case(c, v, args, 1, out);
}

static weft_status one_arg(weft__jinja_ctx *c, const weft__jinja_args *args, weft__jinja_val *out)
{
    if (args->n_pos != 1 || args->n_named) return weft__jinja_fail(c, WEFT_ARGUMENT, "the test takes one argument");
    *out = args->pos[0];
    return WEFT_OK;
}

static weft_status remainder_is(weft__jinja_ctx *c, weft__jinja_val v, weft__jinja_val by, int64_t wanted,
                                weft__jinja_val *out)
{
    weft__jinja_val rest;
    int same;
    WEFT__JINJA_TRY(weft__jinja_arithmetic(c, WEFT__JINJA_MOD, v, by, &rest));
    WEFT__JINJA_TRY(weft__jinja_eq(c, rest, weft__jinja_int(wanted), &same));
    *out = weft__jinja_bool(same);
    return WEFT_OK;
}

static weft_status is_odd(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    WEFT__JINJA_TRY(yes_no(c, args, 0, out));
    return remainder_is(c, v, weft__jinja_int(2), 1, out);
}

static weft_status is_even(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    WEFT__JINJA_TRY(yes_no(c, args, 0, out));
    return remainder_is(c, v, weft__jinja_int(2), 0, out);
}

static weft_status is_divisible(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                weft__jinja_val *out)
{
    weft__jinja_val by;
    WEFT__JINJA_TRY(one_arg(c, args, &by));
    return remainder_is(c, v, by, 0, out);
}

static weft_status is_same(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    weft__jinja_val other;
    int same;
    WEFT__JINJA_TRY(one_arg(c, args, &other));
    same = v.type == other.type;
    if (v.type == WEFT__JINJA_INT || v.type == WEFT__JINJA_BOOL) {
        same = same && v.u.i == other.u.i;
    } else if (v.type == WEFT__JINJA_STRING) {
        same = same && weft__jinja_str_eq(v.u.s, other.u.s); /* Python shares equal short strings more often than not */
    } else if (v.type != WEFT__JINJA_NONE) {
        same = same && v.u.p == other.u.p;
    }
    *out = weft__jinja_bool(same);
    return WEFT_OK;
}

static weft_status is_in(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    weft__jinja_val container;
    int holds;
    WEFT__JINJA_TRY(one_arg(c, args, &container));
    WEFT__JINJA_TRY(weft__jinja_contains(c, container, v, &holds));
    *out = weft__jinja_bool(holds);
    return WEFT_OK;
}

static weft_status names_something(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                   const weft__jinja_function *(*find)(const weft__jinja_str *), weft__jinja_val *out)
{
    return yes_no(c, args, v.type == WEFT__JINJA_STRING && find(v.u.s) != NULL, out);
}

static weft_status is_filter(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    return names_something(c, v, args, weft__jinja_filter, out);
}

static weft_status is_test(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    return names_something(c, v, args, weft__jinja_test, out);
}

#define COMPARE_TEST(name, op)                                                                                         \
    static weft_status name(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out) \
    {                                                                                                                  \
        weft__jinja_val other;                                                                                         \
        int holds;                                                                                                     \
        WEFT__JINJA_TRY(one_arg(c, args, &other));                                                                     \
        WEFT__JINJA_TRY(weft__jinja_compare(c, op, v, other, &holds));                                                 \
        *out = weft__jinja_bool(holds);                                                                                \
        return WEFT_OK;                                                                                                \
    }

COMPARE_TEST(is_eq, WEFT__JINJA_EQ)
COMPARE_TEST(is_ne, WEFT__JINJA_NE)
COMPARE_TEST(is_lt, WEFT__JINJA_LT)
COMPARE_TEST(is_le, WEFT__JINJA_LE)
COMPARE_TEST(is_gt, WEFT__JINJA_GT)
COMPARE_TEST(is_ge, WEFT__JINJA_GE)

const weft__jinja_function *weft__jinja_test(const weft__jinja_str *name)
{
    static const weft__jinja_function table[] = {
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
    return weft__jinja_lookup(table, name);
}
