// SPDX-License-Identifier: Apache-2.0
/* filters.c: filters of text and single values (value.h), as jinja2 and Hugging Face define them. Those of numbers
 * are in filters_number.c, those of sequences in filters_seq.c. Owned by the rendering. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "text/jinja/builtins.h"
#include "text/jinja/text.h"

static weft_status cased(weft__jinja_ctx *c, const char *what, weft__jinja_val v, const weft__jinja_args *args,
                         weft__jinja_case how, weft__jinja_val *out)
{
    const weft__jinja_str *s;
    WEFT__JINJA_TRY(weft__jinja_no_args(c, what, args));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    return weft__jinja_to_case(c, s, how, out);
}

static weft_status filter_upper(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                weft__jinja_val *out)
{
    return cased(c, "upper", v, args, WEFT__JINJA_UPPER, out);
}

static weft_status filter_lower(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                weft__jinja_val *out)
{
    return cased(c, "lower", v, args, WEFT__JINJA_LOWER, out);
}

static weft_status filter_capitalize(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                     weft__jinja_val *out)
{
    return cased(c, "capitalize", v, args, WEFT__JINJA_CAPITALIZE, out);
}

static weft_status filter_default(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                  weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("default_value", "boolean");
    weft__jinja_val bound[WEFT__JINJA_N_PARAMS];
    WEFT__JINJA_TRY(weft__jinja_bind(c, "default", args, names, WEFT__JINJA_N_PARAMS, 0, bound));
    int use = v.type == WEFT__JINJA_UNDEFINED ||
              (bound[1].type != WEFT__JINJA_MISSING && weft__jinja_truthy(bound[1]) && !weft__jinja_truthy(v));
    *out = use ? bound[0] : v;
    return use && bound[0].type == WEFT__JINJA_MISSING ? weft__jinja_literal(c, "", out) : WEFT_OK;
}

static weft_status filter_safe(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    const weft__jinja_str *s;
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "safe", args));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    return weft__jinja_markup(c, s, 1, out);
}

static weft_status filter_string(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                 weft__jinja_val *out)
{
    const weft__jinja_str *s;
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "string", args));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    *out = weft__jinja_of_str(s);
    return WEFT_OK;
}

static weft_status filter_length(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                 weft__jinja_val *out)
{
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "length", args));
    size_t n = weft__jinja_len(v);
    if (n == SIZE_MAX) return weft__jinja_fail(c, WEFT_ARGUMENT, "'%s' has no length", weft__jinja_type_name(v));
    *out = weft__jinja_int((int64_t)n);
    return WEFT_OK;
}

/* ---- text ---- */

static weft_status filter_trim(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("chars");
    weft__jinja_val chars;
    const weft__jinja_str *s;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "trim", args, names, WEFT__JINJA_N_PARAMS, 0, &chars));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    return weft__jinja_stripped(c, "trim", s, chars, 1, 1, out);
}

static weft_status filter_replace(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                  weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("old", "new", "count");
    weft__jinja_val bound[WEFT__JINJA_N_PARAMS];
    const weft__jinja_str *s, *old, *new;
    int64_t count;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "replace", args, names, WEFT__JINJA_N_PARAMS, 2, bound));
    if (bound[2].type == WEFT__JINJA_NONE) bound[2] = weft__jinja_of(WEFT__JINJA_MISSING);
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "replace", bound[2], -1, &count));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, bound[0], &old));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, bound[1], &new));
    return weft__jinja_replace(c, s, old, new, count, out);
}

static weft_status filter_indent(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                 weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("width", "first", "blank");
    weft__jinja_val bound[WEFT__JINJA_N_PARAMS], lines, text;
    weft__jinja_buf indent = {0}, b = {0};
    int64_t width;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "indent", args, names, WEFT__JINJA_N_PARAMS, 0, bound));
    if (v.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, v);
    if (v.type != WEFT__JINJA_STRING)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "indent needs a str, not '%s'", weft__jinja_type_name(v));
    if (bound[0].type == WEFT__JINJA_STRING) {
        WEFT__JINJA_TRY(weft__jinja_put_str(c, &indent, bound[0].u.s));
    } else {
        WEFT__JINJA_TRY(weft__jinja_want_int(c, "indent", bound[0], 4, &width));
        WEFT__JINJA_TRY(weft__jinja_put_fill(c, &indent, ' ', width > 0 ? (size_t)width : 0));
    }
    WEFT__JINJA_TRY(weft__jinja_buf_finish(c, &indent, &bound[0]));
    int first = bound[1].type != WEFT__JINJA_MISSING && weft__jinja_truthy(bound[1]);
    int blank = bound[2].type != WEFT__JINJA_MISSING && weft__jinja_truthy(bound[2]);
    WEFT__JINJA_TRY(weft__jinja_splitlines(c, v.u.s, 0, 1, &lines));
    for (size_t i = 0; i < lines.u.list->n; i++) {
        const weft__jinja_str *line = lines.u.list->items[i].u.s;
        if (i) WEFT__JINJA_TRY(weft__jinja_puts(c, &b, "\n"));
        if (i ? blank || line->len : first) WEFT__JINJA_TRY(weft__jinja_put_str(c, &b, bound[0].u.s));
        WEFT__JINJA_TRY(weft__jinja_put_str(c, &b, line));
    }
    WEFT__JINJA_TRY(weft__jinja_buf_finish(c, &b, &text));
    return weft__jinja_markup(c, text.u.s, v.u.s->markup, out);
}

static weft_status filter_truncate(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                   weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("length", "killwords", "end", "leeway");
    weft__jinja_val bound[WEFT__JINJA_N_PARAMS];
    int64_t length, leeway;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "truncate", args, names, WEFT__JINJA_N_PARAMS, 0, bound));
    if (bound[3].type == WEFT__JINJA_NONE) bound[3] = weft__jinja_of(WEFT__JINJA_MISSING);
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "truncate", bound[0], 255, &length));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "truncate", bound[3], 5, &leeway));
    if (bound[2].type == WEFT__JINJA_MISSING) WEFT__JINJA_TRY(weft__jinja_literal(c, "...", &bound[2]));
    size_t n = weft__jinja_len(v);
    if (n == SIZE_MAX || bound[2].type != WEFT__JINJA_STRING)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "truncate needs a str");
    const weft__jinja_str *s = v.u.s, *end = bound[2].u.s;
    if (length < (int64_t)end->n_chars || leeway < 0)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "truncate: length or leeway too small");
    *out = v;
    if (leeway > INT64_MAX - length || (int64_t)n <= length + leeway) return WEFT_OK;
    if (v.type != WEFT__JINJA_STRING)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "truncate needs a str, not '%s'", weft__jinja_type_name(v));
    size_t to = weft__jinja_str_offset(s, (size_t)length - end->n_chars), space;
    if (bound[1].type == WEFT__JINJA_MISSING || !weft__jinja_truthy(bound[1])) {
        WEFT__JINJA_TRY(weft__jinja_rfind(c, s->data, 0, to, " ", 1, &space));
        if (space != SIZE_MAX) to = space;
    }
    weft__jinja_val head;
    WEFT__JINJA_TRY(weft__jinja_slice(c, s, 0, to, &head));
    return weft__jinja_arithmetic(c, WEFT__JINJA_ADD, head, bound[2], out);
}

/* ---- URLs and JSON ---- */

static weft_status read_indent(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_str **out)
{
    weft__jinja_buf b = {0};
    int64_t n;
    *out = NULL;
    if (v.type == WEFT__JINJA_MISSING || v.type == WEFT__JINJA_NONE) return WEFT_OK;
    if (v.type != WEFT__JINJA_STRING) {
        WEFT__JINJA_TRY(weft__jinja_want_int(c, "tojson's indent", v, 0, &n));
        WEFT__JINJA_TRY(weft__jinja_put_fill(c, &b, ' ', n > 0 ? (size_t)n : 0));
        WEFT__JINJA_TRY(weft__jinja_buf_finish(c, &b, &v));
    }
    *out = v.u.s;
    return WEFT_OK;
}

static weft_status read_separators(weft__jinja_ctx *c, weft__jinja_val v, weft__jinja_dump *how)
{
    if (v.type == WEFT__JINJA_MISSING || v.type == WEFT__JINJA_NONE) return WEFT_OK;
    int pair = (v.type == WEFT__JINJA_LIST || v.type == WEFT__JINJA_TUPLE) && v.u.list->n == 2;
    if (!pair || v.u.list->items[0].type != WEFT__JINJA_STRING || v.u.list->items[1].type != WEFT__JINJA_STRING) {
        return weft__jinja_fail(c, WEFT_ARGUMENT, "tojson's separators are two strings");
    }
    how->item_sep = v.u.list->items[0].u.s;
    how->key_sep = v.u.list->items[1].u.s;
    return WEFT_OK;
}

static weft_status filter_tojson(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                 weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("ensure_ascii", "indent", "separators", "sort_keys");
    weft__jinja_val bound[WEFT__JINJA_N_PARAMS];
    weft__jinja_dump how = {0};
    WEFT__JINJA_TRY(weft__jinja_bind(c, "tojson", args, names, WEFT__JINJA_N_PARAMS, 0, bound));
    how.ascii = weft__jinja_truthy(bound[0]);
    how.sort_keys = weft__jinja_truthy(bound[3]);
    WEFT__JINJA_TRY(read_indent(c, bound[1], &how.indent));
    WEFT__JINJA_TRY(read_separators(c, bound[2], &how));
    return weft__jinja_dump_json(c, v, &how, out);
}

static weft_status filter_from_json(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                    weft__jinja_val *out)
{
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "from_json", args));
    if (v.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, v);
    if (v.type != WEFT__JINJA_STRING)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "from_json needs a str, not '%s'", weft__jinja_type_name(v));
    return weft__jinja_parse_json(c, v.u.s, out);
}

const weft__jinja_function *weft__jinja_filter(const weft__jinja_str *name)
{
    static const weft__jinja_function table[] = {
        {"capitalize", filter_capitalize},
        {"count", filter_length},
        {"d", filter_default},
        {"default", filter_default},
        {"from_json", filter_from_json},
        {"indent", filter_indent},
        {"length", filter_length},
        {"lower", filter_lower},
        {"replace", filter_replace},
        {"safe", filter_safe},
        {"string", filter_string},
        {"tojson", filter_tojson},
        {"trim", filter_trim},
        {"truncate", filter_truncate},
        {"upper", filter_upper},
        {NULL, NULL},
    };
    const weft__jinja_function *f = weft__jinja_lookup(table, name);
    if (!f) f = weft__jinja_number_filter(name);
    if (!f) f = weft__jinja_seq_filter(name);
    return f ? f : weft__jinja_extra(WEFT__JINJA_OF_FILTERS, name);
}
