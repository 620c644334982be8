// SPDX-License-Identifier: Apache-2.0
/* ops.c: Python's operators on values (value.h). Integers have 64 bits here; where Python's would go on growing,
 * the rendering fails. */
#include <math.h>
#include <string.h>

#include "text/jinja/value.h"

static const char *const op_names[] = {
    "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};

static weft_status fail_types(weft__jinja_ctx *c, weft__jinja_op op, weft__jinja_val a, weft__jinja_val b)
{
    if (a.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, a);
    if (b.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, b);
    return weft__jinja_fail(c, WEFT_ARGUMENT, "'%s' does not work on '%s' and '%s'", op_names[op],
                            weft__jinja_type_name(a), weft__jinja_type_name(b));
}

static weft_status fail_big(weft__jinja_ctx *c)
{
    return weft__jinja_fail(c, WEFT_LIMIT, "an integer exceeds 64 bits");
}

static weft_status fail_zero(weft__jinja_ctx *c)
{
    return weft__jinja_fail(c, WEFT_ARGUMENT, "division by zero");
}

static weft_status power_int(weft__jinja_ctx *c, int64_t base, int64_t exponent, weft__jinja_val *out)
{
    int64_t result = 1;
    while (exponent) {
        if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) return fail_big(c);
        exponent >>= 1;
        if (exponent && __builtin_mul_overflow(base, base, &base)) return fail_big(c);
    }
    *out = weft__jinja_int(result);
    return WEFT_OK;
}

static weft_status arithmetic_int(weft__jinja_ctx *c, weft__jinja_op op, int64_t a, int64_t b, weft__jinja_val *out)
{
    int64_t r = 0;
    int big = 0;
    switch (op) {
    case WEFT__JINJA_ADD: big = __builtin_add_overflow(a, b, &r); break;
    case WEFT__JINJA_SUB: big = __builtin_sub_overflow(a, b, &r); break;
    case WEFT__JINJA_MUL: big = __builtin_mul_overflow(a, b, &r); break;
    case WEFT__JINJA_POW: return power_int(c, a, b, out);
    default:
        if (!b) return fail_zero(c);
        if (b == -1) { /* INT64_MIN has no counterpart */
            if (op == WEFT__JINJA_FLOORDIV) big = __builtin_sub_overflow((int64_t)0, a, &r);
        } else if (op == WEFT__JINJA_FLOORDIV) {
            r = a / b - (a % b != 0 && (a % b < 0) != (b < 0));
        } else {
            r = a % b;
            if (r && (r < 0) != (b < 0)) r += b;
        }
        break;
    }
    if (big) return fail_big(c);
    *out = weft__jinja_int(r);
    return WEFT_OK;
}

static weft_status arithmetic_float(weft__jinja_ctx *c, weft__jinja_op op, double a, double b, weft__jinja_val *out)
{
    double r, rest;
    switch (op) {
    case WEFT__JINJA_ADD: r = a + b; break;
    case WEFT__JINJA_SUB: r = a - b; break;
    case WEFT__JINJA_MUL: r = a * b; break;
    case WEFT__JINJA_POW:
        if (a == 0 && b < 0) return fail_zero(c);
        if (a < 0 && b != floor(b)) return weft__jinja_fail(c, WEFT_ARGUMENT, "'**' gives a complex number");
        r = pow(a, b);
        if (isinf(r) && !isinf(a) && !isinf(b))
            return weft__jinja_fail(c, WEFT_ARGUMENT, "'**' gives too large a number");
        break;
    default:
        if (b == 0) return fail_zero(c);
        if (op == WEFT__JINJA_DIV) {
            r = a / b;
            break;
        }
        rest = fmod(a, b);
        if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
        r = op == WEFT__JINJA_MOD ? (rest != 0 ? rest : copysign(0.0, b)) : nearbyint((a - rest) / b);
        break;
    }
    *out = weft__jinja_float(r);
    return WEFT_OK;
}

static weft_status add_strings(weft__jinja_ctx *c, const weft__jinja_str *a, const weft__jinja_str *b,
                               weft__jinja_val *out)
{
    int markup = a->markup || b->markup;
    weft__jinja_val left = weft__jinja_of_str(a), right = weft__jinja_of_str(b), sum;
    if (markup) {
        WEFT__JINJA_TRY(weft__jinja_escape(c, a, &left));
        WEFT__JINJA_TRY(weft__jinja_escape(c, b, &right));
    }
    weft__jinja_buf buf = {0};
    WEFT__JINJA_TRY(weft__jinja_grow(c, &buf.data, &buf.capacity, left.u.s->len + right.u.s->len, 1));
    WEFT__JINJA_TRY(weft__jinja_put_str(c, &buf, left.u.s));
    WEFT__JINJA_TRY(weft__jinja_put_str(c, &buf, right.u.s));
    WEFT__JINJA_TRY(weft__jinja_buf_finish(c, &buf, &sum));
    return weft__jinja_markup(c, sum.u.s, markup, out);
}

static weft_status add_lists(weft__jinja_ctx *c, weft__jinja_val a, weft__jinja_val b, weft__jinja_val *out)
{
    const weft__jinja_list *x = a.u.list, *y = b.u.list;
    WEFT__JINJA_TRY(weft__jinja_spend(c, x->n + y->n));
    WEFT__JINJA_TRY(weft__jinja_new_list(c, (weft__jinja_type)a.type, x->n + y->n, out));
    weft__jinja_list *sum = out->u.list;
    if (x->n) memcpy(sum->items, x->items, x->n * sizeof *sum->items);
    if (y->n) memcpy(sum->items + x->n, y->items, y->n * sizeof *sum->items);
    sum->n = x->n + y->n;
    return WEFT_OK;
}

static weft_status repeat(weft__jinja_ctx *c, weft__jinja_val v, int64_t times, weft__jinja_val *out)
{
    if (times < 0) times = 0;
    if (v.type != WEFT__JINJA_STRING) {
        weft__jinja_val list;
        WEFT__JINJA_TRY(weft__jinja_new_list(c, (weft__jinja_type)v.type, 0, &list));
        for (int64_t i = 0; v.u.list->n && i < times; i++) {
            for (size_t k = 0; k < v.u.list->n; k++)
                WEFT__JINJA_TRY(weft__jinja_append(c, list.u.list, v.u.list->items[k]));
        }
        *out = list;
        return WEFT_OK;
    }
    weft__jinja_buf b = {0};
    weft__jinja_val text;
    for (int64_t i = 0; v.u.s->len && i < times; i++) {
        WEFT__JINJA_TRY(weft__jinja_spend(c, 1));
        WEFT__JINJA_TRY(weft__jinja_put_str(c, &b, v.u.s));
    }
    WEFT__JINJA_TRY(weft__jinja_buf_finish(c, &b, &text));
    return weft__jinja_markup(c, text.u.s, v.u.s->markup, out);
}

static int repeatable(weft__jinja_val v)
{
    return v.type == WEFT__JINJA_STRING || v.type == WEFT__JINJA_LIST || v.type == WEFT__JINJA_TUPLE;
}

weft_status weft__jinja_arithmetic(weft__jinja_ctx *c, weft__jinja_op op, weft__jinja_val a, weft__jinja_val b,
                                   weft__jinja_val *out)
{
    if (weft__jinja_is_number(a) && weft__jinja_is_number(b)) {
        int ints = weft__jinja_is_int(a) && weft__jinja_is_int(b);
        if (ints && op != WEFT__JINJA_DIV && !(op == WEFT__JINJA_POW && b.u.i < 0))
            return arithmetic_int(c, op, a.u.i, b.u.i, out);
        if (ints && op == WEFT__JINJA_DIV && b.u.i) { /* long double holds 64-bit integers exactly */
            *out = weft__jinja_float((double)((long double)a.u.i / (long double)b.u.i));
            return WEFT_OK;
        }
        return arithmetic_float(c, op, weft__jinja_number(a), weft__jinja_number(b), out);
    }
    if (a.type == WEFT__JINJA_STRING && op == WEFT__JINJA_MOD) return weft__jinja_percent(c, a.u.s, b, out);
    if (op == WEFT__JINJA_ADD && a.type == b.type) {
        if (a.type == WEFT__JINJA_STRING) return add_strings(c, a.u.s, b.u.s, out);
        if (a.type == WEFT__JINJA_LIST || a.type == WEFT__JINJA_TUPLE) return add_lists(c, a, b, out);
    }
    if (op == WEFT__JINJA_MUL && repeatable(a) && weft__jinja_is_int(b)) return repeat(c, a, b.u.i, out);
    if (op == WEFT__JINJA_MUL && weft__jinja_is_int(a) && repeatable(b)) return repeat(c, b, a.u.i, out);
    return fail_types(c, op, a, b);
}

weft_status weft__jinja_compare(weft__jinja_ctx *c, weft__jinja_op op, weft__jinja_val a, weft__jinja_val b, int *out)
{
    int order;
    switch (op) {
    case WEFT__JINJA_EQ: return weft__jinja_eq(c, a, b, out);
    case WEFT__JINJA_NE:
        WEFT__JINJA_TRY(weft__jinja_eq(c, a, b, out));
        *out = !*out;
        return WEFT_OK;
    case WEFT__JINJA_IN: return weft__jinja_contains(c, b, a, out);
    case WEFT__JINJA_NOT_IN:
        WEFT__JINJA_TRY(weft__jinja_contains(c, b, a, out));
        *out = !*out;
        return WEFT_OK;
    default: break;
    }
    WEFT__JINJA_TRY(weft__jinja_order(c, a, b, &order));
    *out = op == WEFT__JINJA_LT   ? order == -1
           : op == WEFT__JINJA_LE ? order == -1 || order == 0
           : op == WEFT__JINJA_GT ? order == 1
                                  : order == 1 || order == 0;
    return WEFT_OK;
}
