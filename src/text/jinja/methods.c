// SPDX-License-Identifier: Apache-2.0
/* methods.c: the methods of Python's str (value.h). Those of lists and dicts are in methods_of.c.
 * Owned by the rendering. Parameters named "" can be given by position only, as in Python. */
#include <string.h>

#include "text/jinja/builtins.h"
#include "text/jinja/text.h"

weft_status weft__jinja_want_str(weft__jinja_ctx *c, const char *what, weft__jinja_val v, const weft__jinja_str **out)
{
    if (v.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, v);
    if (v.type != WEFT__JINJA_STRING)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "%s needs a str, not '%s'", what, weft__jinja_type_name(v));
    *out = v.u.s;
    return WEFT_OK;
}

/* ---- stripping ---- */

static weft_status strip(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, int left, int right,
                         weft__jinja_val *out)
{
    static const char *const names[] = {""};
    weft__jinja_val chars;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "strip", args, names, 1, 0, &chars));
    if (chars.type == WEFT__JINJA_UNDEFINED)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "strip needs characters as a str");
    return weft__jinja_stripped(c, "strip", self.u.s, chars, left, right, out);
}

static weft_status str_strip(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                             weft__jinja_val *out)
{
    return strip(c, self, args, 1, 1, out);
}

static weft_status str_lstrip(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                              weft__jinja_val *out)
{
    return strip(c, self, args, 1, 0, out);
}

static weft_status str_rstrip(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                              weft__jinja_val *out)
{
    return strip(c, self, args, 0, 1, out);
}

/* ---- finding ---- */

/* (needle, start, end): the part of self between start and end, in bytes; *outside when start lies beyond the end. */
weft_status weft__jinja_find_args(weft__jinja_ctx *c, const char *what, const weft__jinja_str *s,
                                  const weft__jinja_args *args, weft__jinja_val *needle, size_t *from, size_t *to,
                                  int *outside)
{
    static const char *const names[] = {"", "", ""};
    weft__jinja_val bound[3];
    WEFT__JINJA_TRY(weft__jinja_bind(c, what, args, names, 3, 1, bound));
    int64_t n = (int64_t)s->n_chars, limits[2] = {0, n};
    for (int i = 0; i < 2; i++) {
        if (bound[i + 1].type == WEFT__JINJA_NONE) continue;
        WEFT__JINJA_TRY(weft__jinja_want_int(c, what, bound[i + 1], limits[i], &limits[i]));
        if (limits[i] < 0) limits[i] = limits[i] < -n ? 0 : limits[i] + n;
    }
    *outside = limits[0] > n;
    if (limits[1] > n) limits[1] = n;
    WEFT__JINJA_TRY(weft__jinja_spend(c, s->len / 64));
    *outside |= limits[0] > limits[1];
    *from = weft__jinja_str_offset(s, (size_t)(*outside ? 0 : limits[0]));
    *to = weft__jinja_str_offset(s, (size_t)limits[1]);
    *needle = bound[0];
    return WEFT_OK;
}

static weft_status affix(weft__jinja_ctx *c, const char *what, weft__jinja_val self, const weft__jinja_args *args,
                         int at_end, weft__jinja_val *out)
{
    const weft__jinja_str *s = self.u.s, *text;
    weft__jinja_val v;
    size_t from, to;
    int outside, found = 0;
    WEFT__JINJA_TRY(weft__jinja_find_args(c, what, s, args, &v, &from, &to, &outside));
    size_t n = v.type == WEFT__JINJA_TUPLE ? v.u.list->n : 1;
    for (size_t i = 0; i < n && !found; i++) {
        WEFT__JINJA_TRY(weft__jinja_want_str(c, what, v.type == WEFT__JINJA_TUPLE ? v.u.list->items[i] : v, &text));
        if (outside || text->len > to - from) continue;
        found = !memcmp(s->data + (at_end ? to - text->len : from), text->data, text->len);
    }
    *out = weft__jinja_bool(found);
    return WEFT_OK;
}

static weft_status str_startswith(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                                  weft__jinja_val *out)
{
    return affix(c, "startswith", self, args, 0, out);
}

static weft_status str_endswith(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                                weft__jinja_val *out)
{
    return affix(c, "endswith", self, args, 1, out);
}

/* ---- splitting, replacing ---- */

weft_status weft__jinja_split_by(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, int from_right,
                                 weft__jinja_val *out)
{
    static const char *const names[] = {"sep", "maxsplit"};
    weft__jinja_val bound[2];
    const weft__jinja_str *separator = NULL;
    int64_t max;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "split", args, names, 2, 0, bound));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "split", bound[1], -1, &max));
    if (bound[0].type != WEFT__JINJA_MISSING && bound[0].type != WEFT__JINJA_NONE)
        WEFT__JINJA_TRY(weft__jinja_want_str(c, "split", bound[0], &separator));
    return from_right ? weft__jinja_rsplit(c, self.u.s, separator, max, out)
                      : weft__jinja_split(c, self.u.s, separator, max, out);
}

static weft_status str_split(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                             weft__jinja_val *out)
{
    return weft__jinja_split_by(c, self, args, 0, out);
}

static weft_status str_replace(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    static const char *const names[] = {"", "", ""};
    weft__jinja_val bound[3], text;
    const weft__jinja_str *old, *new;
    int64_t count;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "replace", args, names, 3, 2, bound));
    WEFT__JINJA_TRY(weft__jinja_want_str(c, "replace", bound[0], &old));
    WEFT__JINJA_TRY(weft__jinja_want_str(c, "replace", bound[1], &new));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "replace", bound[2], -1, &count));
    if (self.u.s->markup) { /* Markup escapes what it is given */
        WEFT__JINJA_TRY(weft__jinja_escape(c, old, &bound[0]));
        WEFT__JINJA_TRY(weft__jinja_escape(c, new, &bound[1]));
    }
    WEFT__JINJA_TRY(weft__jinja_replace(c, self.u.s, bound[0].u.s, bound[1].u.s, count, &text));
    return weft__jinja_markup(c, text.u.s, self.u.s->markup, out);
}

static weft_status str_format(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                              weft__jinja_val *out)
{
    return weft__jinja_format(c, self.u.s, args, out);
}

const weft__jinja_function *weft__jinja_str_method(const weft__jinja_str *name)
{
    static const weft__jinja_function table[] = {
        {"split", str_split},       {"strip", str_strip},     {"startswith", str_startswith},
        {"endswith", str_endswith}, {"lstrip", str_lstrip},   {"rstrip", str_rstrip},
        {"format", str_format},     {"replace", str_replace}, {NULL, NULL},
    };
    const weft__jinja_function *f = weft__jinja_lookup(table, name);
    return f ? f : weft__jinja_extra(WEFT__JINJA_OF_STR, name);
}
