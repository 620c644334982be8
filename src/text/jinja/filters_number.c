/* filters_number.c: filters that make or change numbers (value.h): abs, int, float, round. Owned by the rendering. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja/value.h"

#define PARAMS(...) static const char *const names[] = {__VA_ARGS__}
#define N_PARAMS (sizeof names / sizeof *names)

static weft_status filter_abs(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "abs", args));
    if (!weft__jinja_is_number(v))
        return weft__jinja_fail(c, WEFT_ARGUMENT, "abs needs a number, not '%s'", weft__jinja_type_name(v));
    if (v.type == WEFT__JINJA_FLOAT) {
        *out = weft__jinja_float(fabs(v.u.f));
        return WEFT_OK;
    }
    return weft__jinja_arithmetic(c, v.u.i < 0 ? WEFT__JINJA_SUB : WEFT__JINJA_ADD, weft__jinja_int(0), v, out);
}

/* s without white space around it and with underscores between digits dropped, as Python reads numbers. 0 when too long or
 * when an underscore stands elsewhere. */
static int number_text(const weft__jinja_str *s, char out[400])
{
    size_t from = 0, to = s->len, n = 0;
    weft__jinja_strip(s, NULL, 1, 1, &from, &to);
    if (to - from >= 400 || from == to) return 0;
    for (size_t i = from; i < to; i++) {
        char ch = s->data[i];
        if (ch == '_') {
            if (i == from || i + 1 == to || s->data[i - 1] == '_' || s->data[i + 1] == '_') return 0;
            continue;
        }
        if (!ch) return 0;
        out[n++] = ch;
    }
    out[n] = 0;
    return 1;
}

static int parse_float(const weft__jinja_str *s, double *out)
{
    char text[400], *end;
    if (!number_text(s, text) || strpbrk(text, "xX()pP")) return 0; /* strtod takes more than Python */
    *out = strtod(text, &end);
    return end != text && !*end;
}

/* 1 parsed, 0 malformed, -1 beyond 64 bits. */
static int parse_int(const weft__jinja_str *s, int64_t base, int64_t *out)
{
    char text[400];
    if (!number_text(s, text)) return 0;
    const char *p = text;
    int negative = *p == '-';
    if (*p == '-' || *p == '+') p++;
    int prefix = *p != '0' ? 0 : (p[1] | 0x20) == 'x' ? 16 : (p[1] | 0x20) == 'o' ? 8 : (p[1] | 0x20) == 'b' ? 2 : 0;
    if (prefix && (base == 0 || base == prefix)) {
        base = prefix;
        p += 2;
    } else if (base == 0) {
        base = 10;
    }
    if (!*p) return 0;
    int64_t n = 0;
    int big = 0;
    for (; *p; p++) {
        int digit = *p >= '0' && *p <= '9' ? *p - '0' : (*p | 0x20) >= 'a' && (*p | 0x20) <= 'z' ? (*p | 0x20) - 'a' + 10 : 99;
        if (digit >= base) return 0;
        big |= __builtin_mul_overflow(n, base, &n) || __builtin_sub_overflow(n, (int64_t)digit, &n); /* downwards: INT64_MIN */
    }
    if (big || (!negative && n == INT64_MIN)) return -1;
    *out = negative ? n : -n;
    return 1;
}

static weft_status int_of_double(weft__jinja_ctx *c, double d, weft__jinja_val otherwise, weft__jinja_val *out)
{
    *out = otherwise;
    if (isnan(d)) return WEFT_OK;
    if (isinf(d)) return weft__jinja_fail(c, WEFT_LIMIT, "infinity is no int");
    if (!(d >= -9223372036854775808.0 && d < 9223372036854775808.0))
        return weft__jinja_fail(c, WEFT_LIMIT, "an integer exceeds 64 bits");
    *out = weft__jinja_int((int64_t)d);
    return WEFT_OK;
}

static weft_status filter_int(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    PARAMS("default", "base");
    weft__jinja_val bound[N_PARAMS];
    int64_t base, n = 0;
    double d;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "int", args, names, N_PARAMS, 0, bound));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "int", bound[1], 10, &base));
    weft__jinja_val otherwise = bound[0].type == WEFT__JINJA_MISSING ? weft__jinja_int(0) : bound[0];
    if (v.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, v);
    if (weft__jinja_is_int(v)) {
        *out = weft__jinja_int(v.u.i);
        return WEFT_OK;
    }
    if (v.type == WEFT__JINJA_FLOAT) return int_of_double(c, v.u.f, otherwise, out);
    *out = otherwise;
    if (v.type != WEFT__JINJA_STRING) return WEFT_OK;
    int parsed = base == 0 || (base >= 2 && base <= 36) ? parse_int(v.u.s, base, &n) : 0;
    if (parsed < 0) return weft__jinja_fail(c, WEFT_LIMIT, "an integer exceeds 64 bits");
    if (parsed) {
        *out = weft__jinja_int(n);
        return WEFT_OK;
    }
    return parse_float(v.u.s, &d) ? int_of_double(c, d, otherwise, out) : WEFT_OK;
}

static weft_status filter_float(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    PARAMS("default");
    weft__jinja_val otherwise;
    double d;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "float", args, names, N_PARAMS, 0, &otherwise));
    if (v.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, v);
    *out = otherwise.type == WEFT__JINJA_MISSING ? weft__jinja_float(0) : otherwise;
    if (weft__jinja_is_number(v)) *out = weft__jinja_float(weft__jinja_number(v));
    if (v.type == WEFT__JINJA_STRING && parse_float(v.u.s, &d)) *out = weft__jinja_float(d);
    return WEFT_OK;
}

/* Half to even, exactly on the decimal digits of the double, as Python's round does. */
static double round_to(double d, int64_t precision)
{
    if (!isfinite(d) || precision > 320) return d;
    if (precision >= 0) {
        char text[700];
        snprintf(text, sizeof text, "%.*f", (int)precision, d);
        return strtod(text, NULL);
    }
    if (precision < -308) return copysign(0.0, d);
    double unit = pow(10, (double)-precision);
    return nearbyint(d / unit) * unit;
}

static weft_status round_int(weft__jinja_ctx *c, int64_t n, int64_t precision, weft__jinja_val *out)
{
    int64_t unit = 1;
    *out = weft__jinja_int(n);
    for (; precision < 0; precision++) {
        if (!__builtin_mul_overflow(unit, (int64_t)10, &unit)) continue;
        *out = weft__jinja_int(0);
        return WEFT_OK;
    }
    if (unit == 1) return WEFT_OK;
    int64_t rest = n % unit, result = n - rest, magnitude = rest < 0 ? -rest : rest;
    int away = magnitude > unit / 2 || (magnitude == unit / 2 && (result / unit) % 2 != 0);
    if (away && __builtin_add_overflow(result, n < 0 ? -unit : unit, &result)) {
        return weft__jinja_fail(c, WEFT_LIMIT, "an integer exceeds 64 bits");
    }
    *out = weft__jinja_int(result);
    return WEFT_OK;
}

static weft_status filter_round(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    PARAMS("precision", "method");
    weft__jinja_val bound[N_PARAMS];
    int64_t precision;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "round", args, names, N_PARAMS, 0, bound));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "round", bound[0], 0, &precision));
    if (!weft__jinja_is_number(v))
        return weft__jinja_fail(c, WEFT_ARGUMENT, "round needs a number, not '%s'", weft__jinja_type_name(v));
    if (bound[1].type == WEFT__JINJA_MISSING ||
        (bound[1].type == WEFT__JINJA_STRING && weft__jinja_str_is(bound[1].u.s, "common"))) {
        if (weft__jinja_is_int(v)) return round_int(c, v.u.i, precision, out);
        *out = weft__jinja_float(round_to(v.u.f, precision));
        return WEFT_OK;
    }
    int up = bound[1].type == WEFT__JINJA_STRING && weft__jinja_str_is(bound[1].u.s, "ceil");
    if (!up && !(bound[1].type == WEFT__JINJA_STRING && weft__jinja_str_is(bound[1].u.s, "floor"))) {
        return weft__jinja_fail(c, WEFT_ARGUMENT, "round's method is 'common', 'ceil' or 'floor'");
    }
    double unit = pow(10, (double)precision), scaled = weft__jinja_number(v) * unit;
    if (!isfinite(scaled) || unit == 0) return weft__jinja_fail(c, WEFT_ARGUMENT, "a number is too large to round");
    *out = weft__jinja_float((up ? ceil(scaled) : floor(scaled)) / unit);
    return WEFT_OK;
}

const weft__jinja_function *weft__jinja_number_filter(const weft__jinja_str *name)
{
    static const weft__jinja_function table[] = {
        {"int", filter_int}, {"float", filter_float}, {"round", filter_round}, {"abs", filter_abs}, {NULL, NULL},
    };
    return weft__jinja_lookup(table, name);
}
