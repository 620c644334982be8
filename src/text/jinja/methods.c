/* methods.c: the methods of Python's str (value.h). Those of lists and dicts are in methods_of.c.
 * Owned by the rendering. Parameters named "" can be given by position only, as in Python. */
#include <string.h>
#include <utf8proc.h>

#include "base/text.h"
#include "text/jinja/text.h"
#include "text/jinja/value.h"

static weft_status want_str(weft__jinja_ctx *c, const char *what, weft__jinja_val v, const weft__jinja_str **out)
{
    if (v.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, v);
    if (v.type != WEFT__JINJA_STRING)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "%s needs a str, not '%s'", what, weft__jinja_type_name(v));
    *out = v.u.s;
    return WEFT_OK;
}

/* ---- case ---- */

#define CASE_METHOD(name, how)                                                                                                   \
    static weft_status name(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)        \
    {                                                                                                                            \
        WEFT__JINJA_TRY(weft__jinja_no_args(c, "the method", args));                                                             \
        return weft__jinja_to_case(c, self.u.s, how, out);                                                                       \
    }

CASE_METHOD(str_upper, WEFT__JINJA_UPPER)
CASE_METHOD(str_lower, WEFT__JINJA_LOWER)
CASE_METHOD(str_capitalize, WEFT__JINJA_CAPITALIZE)
CASE_METHOD(str_title, WEFT__JINJA_TITLE)
CASE_METHOD(str_swapcase, WEFT__JINJA_SWAP)
CASE_METHOD(str_casefold, WEFT__JINJA_FOLD)

/* ---- stripping and padding ---- */

static weft_status strip(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, int left, int right,
                         weft__jinja_val *out)
{
    static const char *const names[] = {""};
    weft__jinja_val chars;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "strip", args, names, 1, 0, &chars));
    if (chars.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail(c, WEFT_ARGUMENT, "strip needs characters as a str");
    return weft__jinja_stripped(c, "strip", self.u.s, chars, left, right, out);
}

static weft_status str_strip(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return strip(c, self, args, 1, 1, out);
}

static weft_status str_lstrip(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return strip(c, self, args, 1, 0, out);
}

static weft_status str_rstrip(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return strip(c, self, args, 0, 1, out);
}

static weft_status pad(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_pad_side side,
                       weft__jinja_val *out)
{
    static const char *const names[] = {"", ""};
    weft__jinja_val bound[2];
    const weft__jinja_str *fill = NULL;
    int64_t width;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "padding", args, names, 2, 1, bound));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "padding", bound[0], 0, &width));
    if (bound[1].type != WEFT__JINJA_MISSING) WEFT__JINJA_TRY(want_str(c, "padding", bound[1], &fill));
    if (fill && fill->n_chars != 1) return weft__jinja_fail(c, WEFT_ARGUMENT, "the fill must be one character");
    return weft__jinja_pad(c, self.u.s, width, fill, side, out);
}

static weft_status str_center(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return pad(c, self, args, WEFT__JINJA_PAD_BOTH, out);
}

static weft_status str_ljust(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return pad(c, self, args, WEFT__JINJA_PAD_RIGHT, out);
}

static weft_status str_rjust(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return pad(c, self, args, WEFT__JINJA_PAD_LEFT, out);
}

static weft_status str_zfill(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
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
    if (width > 0 && (uint64_t)width > s->n_chars) WEFT__JINJA_TRY(weft__jinja_put_fill(c, &b, '0', (size_t)width - s->n_chars));
    WEFT__JINJA_TRY(weft__jinja_put_slice(c, &b, s, sign, s->len));
    return weft__jinja_buf_finish(c, &b, out);
}

/* ---- finding ---- */

/* (needle, start, end): the part of self between start and end, in bytes; *outside when start lies beyond the end. */
static weft_status find_args(weft__jinja_ctx *c, const char *what, const weft__jinja_str *s, const weft__jinja_args *args,
                             weft__jinja_val *needle, size_t *from, size_t *to, int *outside)
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

static weft_status find(weft__jinja_ctx *c, const char *what, weft__jinja_val self, const weft__jinja_args *args, int last,
                        int must, weft__jinja_val *out)
{
    const weft__jinja_str *s = self.u.s, *needle;
    weft__jinja_val v;
    size_t from, to, hit = SIZE_MAX;
    int outside;
    WEFT__JINJA_TRY(find_args(c, what, s, args, &v, &from, &to, &outside));
    WEFT__JINJA_TRY(want_str(c, what, v, &needle));
    if (!outside && last) WEFT__JINJA_TRY(weft__jinja_rfind(c, s->data, from, to, needle->data, needle->len, &hit));
    if (!outside && !last) hit = weft__jinja_find(s->data, from, to, needle->data, needle->len);
    if (hit == SIZE_MAX && must) return weft__jinja_fail(c, WEFT_ARGUMENT, "%s: the substring is not there", what);
    *out = weft__jinja_int(hit == SIZE_MAX ? -1 : (int64_t)weft__jinja_count_chars(s->data, hit));
    return WEFT_OK;
}

static weft_status str_find(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return find(c, "find", self, args, 0, 0, out);
}

static weft_status str_rfind(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return find(c, "rfind", self, args, 1, 0, out);
}

static weft_status str_index(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return find(c, "index", self, args, 0, 1, out);
}

static weft_status str_rindex(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return find(c, "rindex", self, args, 1, 1, out);
}

static weft_status str_count(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    const weft__jinja_str *s = self.u.s, *needle;
    weft__jinja_val v;
    size_t from, to;
    int outside;
    int64_t n = 0;
    WEFT__JINJA_TRY(find_args(c, "count", s, args, &v, &from, &to, &outside));
    WEFT__JINJA_TRY(want_str(c, "count", v, &needle));
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

static weft_status affix(weft__jinja_ctx *c, const char *what, weft__jinja_val self, const weft__jinja_args *args, int at_end,
                         weft__jinja_val *out)
{
    const weft__jinja_str *s = self.u.s, *text;
    weft__jinja_val v;
    size_t from, to;
    int outside, found = 0;
    WEFT__JINJA_TRY(find_args(c, what, s, args, &v, &from, &to, &outside));
    size_t n = v.type == WEFT__JINJA_TUPLE ? v.u.list->n : 1;
    for (size_t i = 0; i < n && !found; i++) {
        WEFT__JINJA_TRY(want_str(c, what, v.type == WEFT__JINJA_TUPLE ? v.u.list->items[i] : v, &text));
        if (outside || text->len > to - from) continue;
        found = !memcmp(s->data + (at_end ? to - text->len : from), text->data, text->len);
    }
    *out = weft__jinja_bool(found);
    return WEFT_OK;
}

static weft_status str_startswith(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return affix(c, "startswith", self, args, 0, out);
}

static weft_status str_endswith(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return affix(c, "endswith", self, args, 1, out);
}

static weft_status remove_affix(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, int at_end,
                                weft__jinja_val *out)
{
    static const char *const names[] = {""};
    const weft__jinja_str *s = self.u.s, *text;
    weft__jinja_val v;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "removing an affix", args, names, 1, 1, &v));
    WEFT__JINJA_TRY(want_str(c, "removing an affix", v, &text));
    *out = self;
    if (text->len > s->len) return WEFT_OK;
    size_t rest = s->len - text->len;
    if (memcmp(s->data + (at_end ? rest : 0), text->data, text->len)) return WEFT_OK;
    return at_end ? weft__jinja_slice(c, s, 0, rest, out) : weft__jinja_slice(c, s, text->len, s->len, out);
}

static weft_status str_removeprefix(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return remove_affix(c, self, args, 0, out);
}

static weft_status str_removesuffix(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return remove_affix(c, self, args, 1, out);
}

/* ---- splitting, joining, replacing ---- */

static weft_status split(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, int from_right,
                         weft__jinja_val *out)
{
    static const char *const names[] = {"sep", "maxsplit"};
    weft__jinja_val bound[2];
    const weft__jinja_str *separator = NULL;
    int64_t max;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "split", args, names, 2, 0, bound));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "split", bound[1], -1, &max));
    if (bound[0].type != WEFT__JINJA_MISSING && bound[0].type != WEFT__JINJA_NONE)
        WEFT__JINJA_TRY(want_str(c, "split", bound[0], &separator));
    return from_right ? weft__jinja_rsplit(c, self.u.s, separator, max, out)
                      : weft__jinja_split(c, self.u.s, separator, max, out);
}

static weft_status str_split(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return split(c, self, args, 0, out);
}

static weft_status str_rsplit(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return split(c, self, args, 1, out);
}

static weft_status str_splitlines(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
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
    WEFT__JINJA_TRY(want_str(c, "partition", v, &separator));
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

static weft_status str_partition(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return partition(c, self, args, 0, out);
}

static weft_status str_rpartition(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return partition(c, self, args, 1, out);
}

static weft_status str_join(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    static const char *const names[] = {""};
    weft__jinja_val items;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "join", args, names, 1, 1, &items));
    return weft__jinja_join(c, self.u.s, items, 0, out);
}

static weft_status str_replace(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    static const char *const names[] = {"", "", ""};
    weft__jinja_val bound[3], text;
    const weft__jinja_str *old, *new;
    int64_t count;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "replace", args, names, 3, 2, bound));
    WEFT__JINJA_TRY(want_str(c, "replace", bound[0], &old));
    WEFT__JINJA_TRY(want_str(c, "replace", bound[1], &new));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "replace", bound[2], -1, &count));
    if (self.u.s->markup) { /* Markup escapes what it is given */
        WEFT__JINJA_TRY(weft__jinja_escape(c, old, &bound[0]));
        WEFT__JINJA_TRY(weft__jinja_escape(c, new, &bound[1]));
    }
    WEFT__JINJA_TRY(weft__jinja_replace(c, self.u.s, bound[0].u.s, bound[1].u.s, count, &text));
    return weft__jinja_markup(c, text.u.s, self.u.s->markup, out);
}

static weft_status str_format(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return weft__jinja_format(c, self.u.s, args, out);
}

static weft_status str_format_map(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
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

/* ---- asking what kind of characters there are ---- */

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

static weft_status all(weft__jinja_ctx *c, const weft__jinja_str *s, const weft__jinja_args *args, int (*is)(uint32_t), int empty,
                       weft__jinja_val *out)
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

#define KIND_METHOD(name, is, empty)                                                                                             \
    static weft_status name(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)        \
    {                                                                                                                            \
        return all(c, self.u.s, args, is, empty, out);                                                                           \
    }

KIND_METHOD(str_isalpha, weft__jinja_is_alpha, 0)
KIND_METHOD(str_isalnum, weft__jinja_is_alnum, 0)
KIND_METHOD(str_isdigit, is_digit, 0)
KIND_METHOD(str_isdecimal, is_decimal, 0)
KIND_METHOD(str_isnumeric, is_numeric, 0)
KIND_METHOD(str_isspace, weft__jinja_is_space, 0)
KIND_METHOD(str_isascii, is_ascii, 1)

static weft_status str_islower(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "the method", args));
    return weft__jinja_is_case(c, self.u.s, 0, out);
}

static weft_status str_isupper(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "the method", args));
    return weft__jinja_is_case(c, self.u.s, 1, out);
}

const weft__jinja_function *weft__jinja_str_method(const weft__jinja_str *name)
{
    static const weft__jinja_function table[] = {
        {"split", str_split},
        {"strip", str_strip},
        {"startswith", str_startswith},
        {"endswith", str_endswith},
        {"lstrip", str_lstrip},
        {"rstrip", str_rstrip},
        {"format", str_format},
        {"replace", str_replace},
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
    return weft__jinja_lookup(table, name);
}
