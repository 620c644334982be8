// SPDX-License-Identifier: Apache-2.0
/* extras_table.c: the filters and methods that no chat template we know uses (builtins.h), as jinja2 and Python have
 * them; tests/unit/jinja_extras.py holds that. What a template begins to use moves to the file of its kind. Names
 * without a function are known to Python, not to this interpreter. Owned by the rendering. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/text.h"
#include "text/jinja/builtins.h"
#include "text/jinja/text.h"

/* A function that is one call. */
#define EXTRA(name, call)                                                                                              \
    static weft_status name(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,                    \
                            weft__jinja_val *out)                                                                      \
    {                                                                                                                  \
        return call;                                                                                                   \
    }

/* ---- filters of text and single values ---- */

static weft_status filter_attr(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("name");
    weft__jinja_val name;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "attr", args, names, WEFT__JINJA_N_PARAMS, 1, &name));
    if (name.type != WEFT__JINJA_STRING) return weft__jinja_fail(c, WEFT_ARGUMENT, "attr needs a name");
    int has_items = v.type == WEFT__JINJA_DICT && !weft__jinja_container_method(WEFT__JINJA_DICT, name.u.s);
    *out = weft__jinja_undefined(v, name.u.s);
    return has_items ? WEFT_OK : weft__jinja_getattr(c, v, name.u.s, out);
}

/* The part [from, to) of s with its first character in upper and the others in lower case. */
static weft_status put_title_word(weft__jinja_ctx *c, weft__jinja_buf *b, const weft__jinja_str *s, size_t from,
                                  size_t to)
{
    if (from == to) return WEFT_OK;
    size_t second = from + (size_t)weft__utf8_length((unsigned char)s->data[from]);
    weft__jinja_val part;
    WEFT__JINJA_TRY(weft__jinja_slice(c, s, from, second, &part));
    WEFT__JINJA_TRY(weft__jinja_to_case(c, part.u.s, WEFT__JINJA_UPPER, &part));
    WEFT__JINJA_TRY(weft__jinja_put_str(c, b, part.u.s));
    WEFT__JINJA_TRY(weft__jinja_slice(c, s, second, to, &part));
    WEFT__JINJA_TRY(weft__jinja_to_case(c, part.u.s, WEFT__JINJA_LOWER, &part));
    return weft__jinja_put_str(c, b, part.u.s);
}

static weft_status filter_title(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                weft__jinja_val *out)
{
    const weft__jinja_str *s;
    weft__jinja_buf b = {0};
    size_t from = 0;
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "title", args));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    for (size_t at = 0, n; at < s->len; at += n) {
        uint32_t cp;
        n = weft__utf8_decode(s->data + at, s->len - at, &cp, NULL);
        if (!weft__jinja_is_space(cp) && !(cp < 0x80 && strchr("-({[<", (int)cp))) continue;
        WEFT__JINJA_TRY(put_title_word(c, &b, s, from, at));
        WEFT__JINJA_TRY(weft__jinja_put_slice(c, &b, s, at, at + n));
        from = at + n;
    }
    WEFT__JINJA_TRY(put_title_word(c, &b, s, from, s->len));
    return weft__jinja_buf_finish(c, &b, out);
}

static weft_status filter_center(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                 weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("width");
    weft__jinja_val width;
    const weft__jinja_str *s;
    int64_t n;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "center", args, names, WEFT__JINJA_N_PARAMS, 0, &width));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "center", width, 80, &n));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    return weft__jinja_pad(c, s, n, NULL, WEFT__JINJA_PAD_BOTH, out);
}

static weft_status filter_escape(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                 weft__jinja_val *out)
{
    const weft__jinja_str *s;
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "escape", args));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    return weft__jinja_escape(c, s, out);
}

static weft_status filter_forceescape(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                      weft__jinja_val *out)
{
    const weft__jinja_str *s;
    weft__jinja_val plain;
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "forceescape", args));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    WEFT__JINJA_TRY(weft__jinja_markup(c, s, 0, &plain));
    return weft__jinja_escape(c, plain.u.s, out);
}

static weft_status filter_format(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                 weft__jinja_val *out)
{
    const weft__jinja_str *s;
    weft__jinja_val values;
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    if (args->n_pos && args->n_named)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "format takes positional or named values, not both");
    if (args->n_named) {
        WEFT__JINJA_TRY(weft__jinja_new_dict(c, &values));
        for (size_t i = 0; i < args->n_named; i++) {
            WEFT__JINJA_TRY(weft__jinja_dict_set(c, values.u.dict, weft__jinja_of_str(args->names[i]), args->named[i]));
        }
        return weft__jinja_percent(c, s, values, out);
    }
    WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_TUPLE, args->n_pos, &values));
    for (size_t i = 0; i < args->n_pos; i++) WEFT__JINJA_TRY(weft__jinja_append(c, values.u.list, args->pos[i]));
    return weft__jinja_percent(c, s, values, out);
}

static weft_status filter_wordcount(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                    weft__jinja_val *out)
{
    const weft__jinja_str *s;
    int64_t count = 0;
    int inside = 0;
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "wordcount", args));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    WEFT__JINJA_TRY(weft__jinja_spend(c, s->len / 16));
    for (size_t at = 0; at < s->len;) {
        uint32_t cp;
        at += weft__utf8_decode(s->data + at, s->len - at, &cp, NULL);
        int word = cp == '_' || weft__jinja_is_alnum(cp);
        count += word && !inside;
        inside = word;
    }
    *out = weft__jinja_int(count);
    return WEFT_OK;
}

static weft_status put_quoted(weft__jinja_ctx *c, weft__jinja_buf *b, weft__jinja_val v, int in_query)
{
    const weft__jinja_str *s;
    uint32_t hint = 0;
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    WEFT__JINJA_TRY(weft__jinja_spend(c, s->len / 8));
    for (size_t i = 0; i < s->len; i++) {
        unsigned char ch = (unsigned char)s->data[i];
        char text[4] = {(char)ch};
        int plain = (ch >= '0' && ch <= '9') || ((ch | 0x20) >= 'a' && (ch | 0x20) <= 'z') ||
                    (ch && strchr("_.-~", ch)) || (!in_query && ch == '/');
        if (in_query && ch == ' ') {
            text[0] = '+';
        } else if (!plain) {
            snprintf(text, sizeof text, "%%%02X", ch);
        }
        WEFT__JINJA_TRY(weft__jinja_put(c, b, text, strlen(text), weft__jinja_user_at(s, i, &hint)));
    }
    return WEFT_OK;
}

static weft_status filter_urlencode(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                    weft__jinja_val *out)
{
    weft__jinja_buf b = {0};
    weft__jinja_val pairs, pair;
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "urlencode", args));
    if (v.type == WEFT__JINJA_STRING || !weft__jinja_iterable(v)) {
        WEFT__JINJA_TRY(put_quoted(c, &b, v, 0));
        return weft__jinja_buf_finish(c, &b, out);
    }
    if (v.type == WEFT__JINJA_DICT) {
        v.type = WEFT__JINJA_VIEW;
        v.aux = WEFT__JINJA_ITEMS;
    }
    WEFT__JINJA_TRY(weft__jinja_to_list(c, v, WEFT__JINJA_LIST, &pairs));
    for (size_t i = 0; i < pairs.u.list->n; i++) {
        WEFT__JINJA_TRY(weft__jinja_to_list(c, pairs.u.list->items[i], WEFT__JINJA_LIST, &pair));
        if (pair.u.list->n != 2) return weft__jinja_fail(c, WEFT_ARGUMENT, "urlencode needs pairs");
        if (i) WEFT__JINJA_TRY(weft__jinja_puts(c, &b, "&"));
        WEFT__JINJA_TRY(put_quoted(c, &b, pair.u.list->items[0], 1));
        WEFT__JINJA_TRY(weft__jinja_puts(c, &b, "="));
        WEFT__JINJA_TRY(put_quoted(c, &b, pair.u.list->items[1], 1));
    }
    return weft__jinja_buf_finish(c, &b, out);
}

/* ---- filters of numbers ---- */

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

static weft_status filter_float(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("default");
    weft__jinja_val otherwise;
    double d;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "float", args, names, WEFT__JINJA_N_PARAMS, 0, &otherwise));
    if (v.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, v);
    *out = otherwise.type == WEFT__JINJA_MISSING ? weft__jinja_float(0) : otherwise;
    if (weft__jinja_is_number(v)) *out = weft__jinja_float(weft__jinja_number(v));
    if (v.type == WEFT__JINJA_STRING && weft__jinja_parse_float(v.u.s, &d)) *out = weft__jinja_float(d);
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

static weft_status filter_round(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("precision", "method");
    weft__jinja_val bound[WEFT__JINJA_N_PARAMS];
    int64_t precision;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "round", args, names, WEFT__JINJA_N_PARAMS, 0, bound));
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

/* ---- filters of sequences ---- */

static weft_status filter_first(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                weft__jinja_val *out)
{
    weft__jinja_iter *it;
    int got;
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "first", args));
    WEFT__JINJA_TRY(weft__jinja_iterate(c, v, &it));
    WEFT__JINJA_TRY(weft__jinja_next(c, it, out, &got));
    if (!got) *out = weft__jinja_undefined(v, NULL);
    return WEFT_OK;
}

static weft_status filter_last(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    weft__jinja_list *list;
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "last", args));
    if (v.type == WEFT__JINJA_ITER)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "last cannot reverse a generator; use list first");
    WEFT__JINJA_TRY(weft__jinja_list_of(c, v, &list));
    *out = list->n ? list->items[list->n - 1] : weft__jinja_undefined(v, NULL);
    return WEFT_OK;
}

static void reverse_items(weft__jinja_list *list)
{
    for (size_t i = 0; i < list->n / 2; i++) {
        weft__jinja_val swap = list->items[i];
        list->items[i] = list->items[list->n - 1 - i];
        list->items[list->n - 1 - i] = swap;
    }
}

static weft_status filter_reverse(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                  weft__jinja_val *out)
{
    weft__jinja_val list;
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "reverse", args));
    if (v.type == WEFT__JINJA_STRING)
        return weft__jinja_getslice(c, v, weft__jinja_none(), weft__jinja_none(), weft__jinja_int(-1), out);
    WEFT__JINJA_TRY(weft__jinja_to_list(c, v, WEFT__JINJA_LIST, &list));
    reverse_items(list.u.list);
    if (v.type != WEFT__JINJA_ITER) return weft__jinja_generate(c, list, out);
    *out = list;
    return WEFT_OK;
}

static weft_status filter_batch(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("linecount", "fill_with");
    weft__jinja_val bound[WEFT__JINJA_N_PARAMS], rows, row = {0};
    weft__jinja_list *list;
    int64_t n;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "batch", args, names, WEFT__JINJA_N_PARAMS, 1, bound));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "batch", bound[0], 0, &n));
    WEFT__JINJA_TRY(weft__jinja_list_of(c, v, &list));
    WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_LIST, 0, &rows));
    for (size_t i = 0; i < list->n; i++) {
        if (row.type == WEFT__JINJA_MISSING || (int64_t)row.u.list->n == n) {
            /* jinja2 begins with an empty row, and yields it when rows are to have no items */
            if (row.type == WEFT__JINJA_MISSING && n == 0) {
                WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_LIST, 0, &row));
                WEFT__JINJA_TRY(weft__jinja_append(c, rows.u.list, row));
            }
            WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_LIST, 0, &row));
            WEFT__JINJA_TRY(weft__jinja_append(c, rows.u.list, row));
        }
        WEFT__JINJA_TRY(weft__jinja_append(c, row.u.list, list->items[i]));
    }
    int fill =
        bound[1].type != WEFT__JINJA_MISSING && bound[1].type != WEFT__JINJA_NONE && row.type != WEFT__JINJA_MISSING;
    while (fill && (int64_t)row.u.list->n < n) WEFT__JINJA_TRY(weft__jinja_append(c, row.u.list, bound[1]));
    return weft__jinja_generate(c, rows, out);
}

static weft_status filter_slice(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("slices", "fill_with");
    weft__jinja_val bound[WEFT__JINJA_N_PARAMS], columns, column;
    weft__jinja_list *list;
    int64_t n;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "slice", args, names, WEFT__JINJA_N_PARAMS, 1, bound));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "slice", bound[0], 0, &n));
    WEFT__JINJA_TRY(weft__jinja_list_of(c, v, &list));
    if (!n) return weft__jinja_fail(c, WEFT_ARGUMENT, "division by zero");
    WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_LIST, 0, &columns));
    size_t at = 0;
    for (int64_t k = 0; k < n; k++) {
        int more = k < (int64_t)list->n % n;
        size_t end = at + (size_t)((int64_t)list->n / n) + (size_t)more;
        WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_LIST, 0, &column));
        for (; at < end; at++) WEFT__JINJA_TRY(weft__jinja_append(c, column.u.list, list->items[at]));
        int fill = !more && bound[1].type != WEFT__JINJA_MISSING && bound[1].type != WEFT__JINJA_NONE;
        if (fill) WEFT__JINJA_TRY(weft__jinja_append(c, column.u.list, bound[1]));
        WEFT__JINJA_TRY(weft__jinja_append(c, columns.u.list, column));
    }
    return weft__jinja_generate(c, columns, out);
}

EXTRA(filter_max, weft__jinja_extreme(c, "max", self, args, WEFT__JINJA_GT, out))

static weft_status filter_groupby(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                  weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("attribute", "default", "case_sensitive");
    weft__jinja_val bound[WEFT__JINJA_N_PARAMS], list, groups, group = {0}, members, real;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "groupby", args, names, WEFT__JINJA_N_PARAMS, 1, bound));
    WEFT__JINJA_TRY(weft__jinja_to_list(c, v, WEFT__JINJA_LIST, &list));
    WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_LIST, 0, &groups));
    weft__jinja_list *items = list.u.list;
    weft__jinja_val *keys = weft__jinja_alloc_array(c, items->n, sizeof *keys);
    if (!keys) return WEFT__JINJA_NO_ROOM(c);
    for (size_t i = 0; i < items->n; i++) {
        WEFT__JINJA_TRY(weft__jinja_path_or(c, items->items[i], bound[0], bound[1], &real));
        WEFT__JINJA_TRY(weft__jinja_lowered(c, real, weft__jinja_given_true(bound[2]), &keys[i]));
    }
    WEFT__JINJA_TRY(weft__jinja_sort(c, keys, items->items, items->n, 0));
    for (size_t i = 0; i < items->n; i++) {
        int same = 0;
        if (i) WEFT__JINJA_TRY(weft__jinja_eq(c, keys[i], keys[i - 1], &same));
        if (!same) {
            WEFT__JINJA_TRY(weft__jinja_path_or(c, items->items[i], bound[0], bound[1], &real));
            WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_LIST, 0, &members));
            WEFT__JINJA_TRY(weft__jinja_pair(c, real, members, &group));
            group.aux = 1;
            WEFT__JINJA_TRY(weft__jinja_append(c, groups.u.list, group));
        }
        WEFT__JINJA_TRY(weft__jinja_append(c, group.u.list->items[1].u.list, items->items[i]));
    }
    *out = groups;
    return WEFT_OK;
}

EXTRA(filter_select, weft__jinja_choose(c, self, args, 0, 0, out))

/* ---- methods of str ---- */

#define CASE_METHOD(name, how)                                                                                         \
    static weft_status name(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,                    \
                            weft__jinja_val *out)                                                                      \
    {                                                                                                                  \
        WEFT__JINJA_TRY(weft__jinja_no_args(c, "the method", args));                                                   \
        return weft__jinja_to_case(c, self.u.s, how, out);                                                             \
    }

CASE_METHOD(str_upper, WEFT__JINJA_UPPER)
CASE_METHOD(str_lower, WEFT__JINJA_LOWER)
CASE_METHOD(str_capitalize, WEFT__JINJA_CAPITALIZE)
CASE_METHOD(str_title, WEFT__JINJA_TITLE)
CASE_METHOD(str_swapcase, WEFT__JINJA_SWAP)
CASE_METHOD(str_casefold, WEFT__JINJA_FOLD)

static weft_status pad(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                       weft__jinja_pad_side side, weft__jinja_val *out)
{
    static const char *const names[] = {"", ""};
    weft__jinja_val bound[2];
    const weft__jinja_str *fill = NULL;
    int64_t width;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "padding", args, names, 2, 1, bound));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "padding", bound[0], 0, &width));
    if (bound[1].type != WEFT__JINJA_MISSING) WEFT__JINJA_TRY(weft__jinja_want_str(c, "padding", bound[1], &fill));
    if (fill && fill->n_chars != 1) return weft__jinja_fail(c, WEFT_ARGUMENT, "the fill must be one character");
    return weft__jinja_pad(c, self.u.s, width, fill, side, out);
}

EXTRA(str_center, pad(c, self, args, WEFT__JINJA_PAD_BOTH, out))
EXTRA(str_ljust, pad(c, self, args, WEFT__JINJA_PAD_RIGHT, out))
EXTRA(str_rjust, pad(c, self, args, WEFT__JINJA_PAD_LEFT, out))

static weft_status str_zfill(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                             weft__jinja_val *out)
{
    static const char *const names[] = {""};
    weft__jinja_val bound;
    int64_t width;
    const weft__jinja_str *s = self.u.s;
    weft__jinja_buf b = {0};
    WEFT__JINJA_TRY(weft__jinja_bind(c, "zfill", args, names, 1, 1, &bound));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "zfill", bound, 0, &width));
    size_t sign = s->len && (s->data[0] == '-' || s->data[0] == '+');
    WEFT__JINJA_TRY(weft__jinja_put_slice(c, &b, s, 0, sign));
    if (width > 0 && (uint64_t)width > s->n_chars)
        WEFT__JINJA_TRY(weft__jinja_put_fill(c, &b, '0', (size_t)width - s->n_chars));
    WEFT__JINJA_TRY(weft__jinja_put_slice(c, &b, s, sign, s->len));
    return weft__jinja_buf_finish(c, &b, out);
}

static weft_status extras_table_find(weft__jinja_ctx *c, const char *what, weft__jinja_val self,
                                     const weft__jinja_args *args, int last, int must, weft__jinja_val *out)
{
    const weft__jinja_str *s = self.u.s, *needle;
    weft__jinja_val v;
    size_t from, to, hit = SIZE_MAX;
    int outside;
    WEFT__JINJA_TRY(weft__jinja_find_args(c, what, s, args, &v, &from, &to, &outside));
    WEFT__JINJA_TRY(weft__jinja_want_str(c, what, v, &needle));
    if (!outside && last) WEFT__JINJA_TRY(weft__jinja_rfind(c, s->data, from, to, needle->data, needle->len, &hit));
    if (!outside && !last) hit = weft__jinja_find(s->data, from, to, needle->data, needle->len);
    if (hit == SIZE_MAX && must) return weft__jinja_fail(c, WEFT_ARGUMENT, "%s: the substring is not there", what);
    *out = weft__jinja_int(hit == SIZE_MAX ? -1 : (int64_t)weft__jinja_count_chars(s->data, hit));
    return WEFT_OK;
}

EXTRA(str_find, extras_table_find(c, "find", self, args, 0, 0, out))
EXTRA(str_rfind, extras_table_find(c, "rfind", self, args, 1, 0, out))
EXTRA(str_index, extras_table_find(c, "index", self, args, 0, 1, out))
EXTRA(str_rindex, extras_table_find(c, "rindex", self, args, 1, 1, out))

static weft_status str_count(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                             weft__jinja_val *out)
{
    const weft__jinja_str *s = self.u.s, *needle;
    weft__jinja_val v;
    size_t from, to;
    int outside;
    int64_t n = 0;
    WEFT__JINJA_TRY(weft__jinja_find_args(c, "count", s, args, &v, &from, &to, &outside));
    WEFT__JINJA_TRY(weft__jinja_want_str(c, "count", v, &needle));
    if (!outside && !needle->len) n = (int64_t)weft__jinja_count_chars(s->data + from, to - from) + 1;
    while (!outside && needle->len) {
        size_t hit = weft__jinja_find(s->data, from, to, needle->data, needle->len);
        if (hit == SIZE_MAX) break;
        n++;
        from = hit + needle->len;
    }
    *out = weft__jinja_int(n);
    return WEFT_OK;
}

static weft_status remove_affix(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, int at_end,
                                weft__jinja_val *out)
{
    static const char *const names[] = {""};
    const weft__jinja_str *s = self.u.s, *text;
    weft__jinja_val v;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "removing an affix", args, names, 1, 1, &v));
    WEFT__JINJA_TRY(weft__jinja_want_str(c, "removing an affix", v, &text));
    *out = self;
    if (text->len > s->len) return WEFT_OK;
    size_t rest = s->len - text->len;
    if (memcmp(s->data + (at_end ? rest : 0), text->data, text->len)) return WEFT_OK;
    return at_end ? weft__jinja_slice(c, s, 0, rest, out) : weft__jinja_slice(c, s, text->len, s->len, out);
}

EXTRA(str_removeprefix, remove_affix(c, self, args, 0, out))
EXTRA(str_removesuffix, remove_affix(c, self, args, 1, out))
EXTRA(str_rsplit, weft__jinja_split_by(c, self, args, 1, out))

static weft_status str_splitlines(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                                  weft__jinja_val *out)
{
    static const char *const names[] = {"keepends"};
    weft__jinja_val bound;
    int64_t keep;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "splitlines", args, names, 1, 0, &bound));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "splitlines", bound, 0, &keep));
    return weft__jinja_splitlines(c, self.u.s, keep != 0, 0, out);
}

static weft_status partition(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, int last,
                             weft__jinja_val *out)
{
    static const char *const names[] = {""};
    const weft__jinja_str *s = self.u.s, *separator;
    weft__jinja_val v, parts[3], tuple;
    size_t hit;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "partition", args, names, 1, 1, &v));
    WEFT__JINJA_TRY(weft__jinja_want_str(c, "partition", v, &separator));
    if (!separator->len) return weft__jinja_fail(c, WEFT_ARGUMENT, "partition needs a separator that is not empty");
    WEFT__JINJA_TRY(weft__jinja_spend(c, s->len / 64));
    hit = weft__jinja_find(s->data, 0, s->len, separator->data, separator->len);
    if (last) WEFT__JINJA_TRY(weft__jinja_rfind(c, s->data, 0, s->len, separator->data, separator->len, &hit));
    int found = hit != SIZE_MAX;
    size_t end = found ? hit : last ? 0 : s->len, next = found ? hit + separator->len : end;
    WEFT__JINJA_TRY(weft__jinja_slice(c, s, 0, end, &parts[0]));
    WEFT__JINJA_TRY(weft__jinja_slice(c, s, end, next, &parts[1]));
    WEFT__JINJA_TRY(weft__jinja_slice(c, s, next, s->len, &parts[2]));
    WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_TUPLE, 3, &tuple));
    for (int i = 0; i < 3; i++) WEFT__JINJA_TRY(weft__jinja_append(c, tuple.u.list, parts[i]));
    *out = tuple;
    return WEFT_OK;
}

EXTRA(str_partition, partition(c, self, args, 0, out))
EXTRA(str_rpartition, partition(c, self, args, 1, out))

static weft_status str_join(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                            weft__jinja_val *out)
{
    static const char *const names[] = {""};
    weft__jinja_val items;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "join", args, names, 1, 1, &items));
    return weft__jinja_join(c, self.u.s, items, 0, out);
}

static weft_status str_format_map(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                                  weft__jinja_val *out)
{
    if (args->n_pos != 1 || args->n_named || args->pos[0].type != WEFT__JINJA_DICT) {
        return weft__jinja_fail(c, WEFT_ARGUMENT, "format_map takes one dict");
    }
    const weft__jinja_dict *d = args->pos[0].u.dict;
    weft__jinja_args named = {0};
    const weft__jinja_str **names = weft__jinja_alloc_array(c, d->n, sizeof *names);
    weft__jinja_val *values = weft__jinja_alloc_array(c, d->n, sizeof *values);
    if (!names || !values) return WEFT__JINJA_NO_ROOM(c);
    for (size_t i = 0; i < d->n; i++) {
        if (d->entries[i].key.type != WEFT__JINJA_STRING) continue;
        names[named.n_named] = d->entries[i].key.u.s;
        values[named.n_named++] = d->entries[i].value;
    }
    named.names = names;
    named.named = values;
    return weft__jinja_format(c, self.u.s, &named, out);
}

static int is_decimal(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp) == UTF8PROC_CATEGORY_ND;
}

static int is_numeric(uint32_t cp)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);
    return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

/* Superscripts and circled digits count as digits in Python. */
static int is_digit(uint32_t cp)
{
    return is_decimal(cp) || cp == 0xB2 || cp == 0xB3 || cp == 0xB9 || cp == 0x2070 || (cp >= 0x2074 && cp <= 0x2079) ||
           (cp >= 0x2080 && cp <= 0x2089) || (cp >= 0x2460 && cp <= 0x2468);
}

static int is_ascii(uint32_t cp)
{
    return cp < 0x80;
}

static weft_status all(weft__jinja_ctx *c, const weft__jinja_str *s, const weft__jinja_args *args, int (*is)(uint32_t),
                       int empty, weft__jinja_val *out)
{
    int holds = s->len ? 1 : empty;
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "the method", args));
    WEFT__JINJA_TRY(weft__jinja_spend(c, s->len / 16));
    for (size_t at = 0; at < s->len && holds;) {
        uint32_t cp;
        at += weft__utf8_decode(s->data + at, s->len - at, &cp, NULL);
        holds = is(cp);
    }
    *out = weft__jinja_bool(holds);
    return WEFT_OK;
}

#define KIND_METHOD(name, is, empty)                                                                                   \
    static weft_status name(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,                    \
                            weft__jinja_val *out)                                                                      \
    {                                                                                                                  \
        return all(c, self.u.s, args, is, empty, out);                                                                 \
    }

KIND_METHOD(str_isalpha, weft__jinja_is_alpha, 0)
KIND_METHOD(str_isalnum, weft__jinja_is_alnum, 0)
KIND_METHOD(str_isdigit, is_digit, 0)
KIND_METHOD(str_isdecimal, is_decimal, 0)
KIND_METHOD(str_isnumeric, is_numeric, 0)
KIND_METHOD(str_isspace, weft__jinja_is_space, 0)
KIND_METHOD(str_isascii, is_ascii, 1)

static weft_status str_islower(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "the method", args));
    return weft__jinja_is_case(c, self.u.s, 0, out);
}

static weft_status str_isupper(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "the method", args));
    return weft__jinja_is_case(c, self.u.s, 1, out);
}

/* ---- methods of dict, list and tuple ---- */

EXTRA(dict_keys, weft__jinja_dict_view(c, self, args, WEFT__JINJA_KEYS, out))
EXTRA(dict_values, weft__jinja_dict_view(c, self, args, WEFT__JINJA_VALUES, out))

static weft_status merge(weft__jinja_ctx *c, weft__jinja_dict *into, const weft__jinja_dict *from)
{
    for (size_t i = 0; i < from->n; i++)
        WEFT__JINJA_TRY(weft__jinja_dict_set(c, into, from->entries[i].key, from->entries[i].value));
    return WEFT_OK;
}

static weft_status dict_copy(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                             weft__jinja_val *out)
{
    weft__jinja_val copy;
    WEFT__JINJA_TRY(weft__jinja_bind_positional(c, "copy", args, 0, 0, NULL));
    WEFT__JINJA_TRY(weft__jinja_new_dict(c, &copy));
    WEFT__JINJA_TRY(merge(c, copy.u.dict, self.u.dict));
    *out = copy;
    return WEFT_OK;
}

static weft_status dict_update(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    if (args->n_pos > 1) return weft__jinja_fail(c, WEFT_ARGUMENT, "update takes at most one positional argument");
    if (args->n_pos && args->pos[0].type != WEFT__JINJA_DICT)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "update needs a dict");
    if (args->n_pos) WEFT__JINJA_TRY(merge(c, self.u.dict, args->pos[0].u.dict));
    for (size_t i = 0; i < args->n_named; i++) {
        WEFT__JINJA_TRY(weft__jinja_dict_set(c, self.u.dict, weft__jinja_of_str(args->names[i]), args->named[i]));
    }
    *out = weft__jinja_none();
    return WEFT_OK;
}

static weft_status dict_setdefault(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                                   weft__jinja_val *out)
{
    weft__jinja_val bound[2];
    weft__jinja_entry *e;
    WEFT__JINJA_TRY(weft__jinja_bind_positional(c, "setdefault", args, 2, 1, bound));
    if (bound[1].type == WEFT__JINJA_MISSING) bound[1] = weft__jinja_none();
    WEFT__JINJA_TRY(weft__jinja_dict_find(c, self.u.dict, bound[0], &e));
    *out = e ? e->value : bound[1];
    return e ? WEFT_OK : weft__jinja_dict_set(c, self.u.dict, bound[0], bound[1]);
}

static weft_status dict_clear(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                              weft__jinja_val *out)
{
    WEFT__JINJA_TRY(weft__jinja_bind_positional(c, "clear", args, 0, 0, NULL));
    self.u.dict->n = 0;
    self.u.dict->index = NULL;
    self.u.dict->n_index = 0;
    *out = weft__jinja_none();
    return WEFT_OK;
}

static weft_status list_index(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                              weft__jinja_val *out)
{
    weft__jinja_val v;
    WEFT__JINJA_TRY(weft__jinja_bind_positional(c, "index", args, 1, 1, &v));
    for (size_t i = 0; i < self.u.list->n; i++) {
        int same;
        WEFT__JINJA_TRY(weft__jinja_eq(c, self.u.list->items[i], v, &same));
        if (!same) continue;
        *out = weft__jinja_int((int64_t)i);
        return WEFT_OK;
    }
    return weft__jinja_fail(c, WEFT_ARGUMENT, "index: the value is not in the list");
}

static weft_status list_count(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                              weft__jinja_val *out)
{
    weft__jinja_val v;
    int64_t n = 0;
    WEFT__JINJA_TRY(weft__jinja_bind_positional(c, "count", args, 1, 1, &v));
    for (size_t i = 0; i < self.u.list->n; i++) {
        int same;
        WEFT__JINJA_TRY(weft__jinja_eq(c, self.u.list->items[i], v, &same));
        n += same;
    }
    *out = weft__jinja_int(n);
    return WEFT_OK;
}

static weft_status list_copy(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                             weft__jinja_val *out)
{
    WEFT__JINJA_TRY(weft__jinja_bind_positional(c, "copy", args, 0, 0, NULL));
    return weft__jinja_to_list(c, self, WEFT__JINJA_LIST, out);
}

static weft_status list_extend(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    weft__jinja_val v;
    WEFT__JINJA_TRY(weft__jinja_bind_positional(c, "extend", args, 1, 1, &v));
    WEFT__JINJA_TRY(weft__jinja_to_list(c, v, WEFT__JINJA_LIST, &v));
    for (size_t i = 0; i < v.u.list->n; i++) WEFT__JINJA_TRY(weft__jinja_append(c, self.u.list, v.u.list->items[i]));
    *out = weft__jinja_none();
    return WEFT_OK;
}

static weft_status list_insert(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    weft__jinja_val bound[2];
    weft__jinja_list *list = self.u.list;
    int64_t i;
    WEFT__JINJA_TRY(weft__jinja_bind_positional(c, "insert", args, 2, 2, bound));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "insert", bound[0], 0, &i));
    int64_t n = (int64_t)list->n;
    i = i < -n ? 0 : i < 0 ? i + n : i > n ? n : i;
    WEFT__JINJA_TRY(weft__jinja_spend(c, list->n / 16));
    WEFT__JINJA_TRY(weft__jinja_append(c, list, bound[1]));
    memmove(&list->items[i + 1], &list->items[i], (size_t)(n - i) * sizeof *list->items);
    list->items[i] = bound[1];
    *out = weft__jinja_none();
    return WEFT_OK;
}

static weft_status list_remove(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    weft__jinja_val at, gone;
    WEFT__JINJA_TRY(list_index(c, self, args, &at));
    weft__jinja_list_take(self.u.list, (size_t)at.u.i, &gone);
    *out = weft__jinja_none();
    return WEFT_OK;
}

static weft_status list_reverse(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                                weft__jinja_val *out)
{
    weft__jinja_list *list = self.u.list;
    WEFT__JINJA_TRY(weft__jinja_bind_positional(c, "reverse", args, 0, 0, NULL));
    WEFT__JINJA_TRY(weft__jinja_spend(c, list->n));
    for (size_t i = 0; i < list->n / 2; i++) {
        weft__jinja_val swap = list->items[i];
        list->items[i] = list->items[list->n - 1 - i];
        list->items[list->n - 1 - i] = swap;
    }
    *out = weft__jinja_none();
    return WEFT_OK;
}

static weft_status list_clear(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                              weft__jinja_val *out)
{
    WEFT__JINJA_TRY(weft__jinja_bind_positional(c, "clear", args, 0, 0, NULL));
    self.u.list->n = 0;
    *out = weft__jinja_none();
    return WEFT_OK;
}

static const weft__jinja_function filters[] = {
    {"attr", filter_attr},
    {"center", filter_center},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"forceescape", filter_forceescape},
    {"format", filter_format},
    {"title", filter_title},
    {"urlencode", filter_urlencode},
    {"wordcount", filter_wordcount},
    {"abs", filter_abs},
    {"float", filter_float},
    {"round", filter_round},
    {"batch", filter_batch},
    {"first", filter_first},
    {"groupby", filter_groupby},
    {"last", filter_last},
    {"max", filter_max},
    {"reverse", filter_reverse},
    {"select", filter_select},
    {"slice", filter_slice},
    {"filesizeformat", NULL},
    {"pprint", NULL},
    {"random", NULL},
    {"striptags", NULL},
    {"urlize", NULL},
    {"wordwrap", NULL},
    {"xmlattr", NULL},
    {NULL, NULL},
};
static const weft__jinja_function of_str[] = {
    {"upper", str_upper},
    {"lower", str_lower},
    {"capitalize", str_capitalize},
    {"casefold", str_casefold},
    {"center", str_center},
    {"count", str_count},
    {"find", str_find},
    {"format_map", str_format_map},
    {"index", str_index},
    {"isalnum", str_isalnum},
    {"isalpha", str_isalpha},
    {"isascii", str_isascii},
    {"isdecimal", str_isdecimal},
    {"isdigit", str_isdigit},
    {"islower", str_islower},
    {"isnumeric", str_isnumeric},
    {"isspace", str_isspace},
    {"isupper", str_isupper},
    {"join", str_join},
    {"ljust", str_ljust},
    {"partition", str_partition},
    {"removeprefix", str_removeprefix},
    {"removesuffix", str_removesuffix},
    {"rfind", str_rfind},
    {"rindex", str_rindex},
    {"rjust", str_rjust},
    {"rpartition", str_rpartition},
    {"rsplit", str_rsplit},
    {"splitlines", str_splitlines},
    {"swapcase", str_swapcase},
    {"title", str_title},
    {"zfill", str_zfill},
    {"encode", NULL},
    {"expandtabs", NULL},
    {"isidentifier", NULL},
    {"isprintable", NULL},
    {"istitle", NULL},
    {"maketrans", NULL},
    {"translate", NULL},
    {NULL, NULL},
};
static const weft__jinja_function of_list[] = {
    {"clear", list_clear},   {"copy", list_copy},
    {"count", list_count},   {"extend", list_extend},
    {"index", list_index},   {"insert", list_insert},
    {"remove", list_remove}, {"reverse", list_reverse},
    {"sort", NULL},          {NULL, NULL},
};
static const weft__jinja_function of_tuple[] = {
    {"count", list_count},
    {"index", list_index},
    {NULL, NULL},
};
static const weft__jinja_function of_dict[] = {
    {"keys", dict_keys},
    {"values", dict_values},
    {"copy", dict_copy},
    {"clear", dict_clear},
    {"setdefault", dict_setdefault},
    {"update", dict_update},
    {"fromkeys", NULL},
    {"popitem", NULL},
    {NULL, NULL},
};
static const weft__jinja_function *const tables[] = {
    [WEFT__JINJA_OF_FILTERS] = filters, [WEFT__JINJA_OF_STR] = of_str,   [WEFT__JINJA_OF_LIST] = of_list,
    [WEFT__JINJA_OF_TUPLE] = of_tuple,  [WEFT__JINJA_OF_DICT] = of_dict,
};

const weft__jinja_function *weft__jinja_extra(weft__jinja_owner owner, const weft__jinja_str *name)
{
    return weft__jinja_lookup(tables[owner], name);
}
