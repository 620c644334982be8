// SPDX-License-Identifier: Apache-2.0
/* filters_number.c: filters that make or change numbers (value.h): int (others: extras_table.c). Owned by the
 * rendering. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja/builtins.h"

/* s without white space around it and with underscores between digits dropped, as Python reads numbers. 0 when too long
 * or when an underscore stands elsewhere. */
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

int weft__jinja_parse_float(const weft__jinja_str *s, double *out)
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
        int digit = *p >= '0' && *p <= '9'                     ? *p - '0'
                    : (*p | 0x20) >= 'a' && (*p | 0x20) <= 'z' ? (*p | 0x20) - 'a' + 10
                                                               : 99;
        if (digit >= base) return 0;
        big |= __builtin_mul_overflow(n, base, &n) ||
               __builtin_sub_overflow(n, (int64_t)digit, &n); /* downwards: INT64_MIN */
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
    WEFT__JINJA_PARAMS("default", "base");
    weft__jinja_val bound[WEFT__JINJA_N_PARAMS];
    int64_t base, n = 0;
    double d;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "int", args, names, WEFT__JINJA_N_PARAMS, 0, bound));
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
    return weft__jinja_parse_float(v.u.s, &d) ? int_of_double(c, d, otherwise, out) : WEFT_OK;
}

const weft__jinja_function *weft__jinja_number_filter(const weft__jinja_str *name)
{
    static const weft__jinja_function table[] = {
        {"int", filter_int},
        {NULL, NULL},
    };
    return weft__jinja_lookup(table, name);
}
