/* filters.c: filters of text and single values (value.h), as jinja2 and Hugging Face define them. Those of numbers
 * are in filters_number.c, those of sequences in filters_seq.c. Owned by the rendering. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "text/jinja/text.h"
#include "text/jinja/value.h"

#define PARAMS(...) static const char *const names[] = {__VA_ARGS__}
#define N_PARAMS (sizeof names / sizeof *names)

static weft_status filter_attr(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    PARAMS("name");
    weft__jinja_val name;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "attr", args, names, N_PARAMS, 1, &name));
    if (name.type != WEFT__JINJA_STRING) return weft__jinja_fail(c, WEFT_ARGUMENT, "attr needs a name");
    int has_items = v.type == WEFT__JINJA_DICT && !weft__jinja_container_method(WEFT__JINJA_DICT, name.u.s);
    *out = weft__jinja_undefined(v, name.u.s);
    return has_items ? WEFT_OK : weft__jinja_getattr(c, v, name.u.s, out);
}

static weft_status cased(weft__jinja_ctx *c, const char *what, weft__jinja_val v, const weft__jinja_args *args,
                         weft__jinja_case how, weft__jinja_val *out)
{
    const weft__jinja_str *s;
    WEFT__JINJA_TRY(weft__jinja_no_args(c, what, args));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    return weft__jinja_to_case(c, s, how, out);
}

static weft_status filter_upper(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    return cased(c, "upper", v, args, WEFT__JINJA_UPPER, out);
}

static weft_status filter_lower(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    return cased(c, "lower", v, args, WEFT__JINJA_LOWER, out);
}

static weft_status filter_capitalize(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    return cased(c, "capitalize", v, args, WEFT__JINJA_CAPITALIZE, out);
}

/* The part [from, to) of s with its first character in upper and the others in lower case. */
static weft_status put_title_word(weft__jinja_ctx *c, weft__jinja_buf *b, const weft__jinja_str *s, size_t from, size_t to)
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

static weft_status filter_title(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
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

static weft_status filter_center(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    PARAMS("width");
    weft__jinja_val width;
    const weft__jinja_str *s;
    int64_t n;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "center", args, names, N_PARAMS, 0, &width));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "center", width, 80, &n));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    return weft__jinja_pad(c, s, n, NULL, WEFT__JINJA_PAD_BOTH, out);
}

static weft_status filter_default(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    PARAMS("default_value", "boolean");
    weft__jinja_val bound[N_PARAMS];
    WEFT__JINJA_TRY(weft__jinja_bind(c, "default", args, names, N_PARAMS, 0, bound));
    int use = v.type == WEFT__JINJA_UNDEFINED ||
              (bound[1].type != WEFT__JINJA_MISSING && weft__jinja_truthy(bound[1]) && !weft__jinja_truthy(v));
    *out = use ? bound[0] : v;
    return use && bound[0].type == WEFT__JINJA_MISSING ? weft__jinja_literal(c, "", out) : WEFT_OK;
}

static weft_status filter_escape(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    const weft__jinja_str *s;
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "escape", args));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    return weft__jinja_escape(c, s, out);
}

static weft_status filter_forceescape(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    const weft__jinja_str *s;
    weft__jinja_val plain;
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "forceescape", args));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    WEFT__JINJA_TRY(weft__jinja_markup(c, s, 0, &plain));
    return weft__jinja_escape(c, plain.u.s, out);
}

static weft_status filter_safe(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    const weft__jinja_str *s;
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "safe", args));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    return weft__jinja_markup(c, s, 1, out);
}

static weft_status filter_string(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    const weft__jinja_str *s;
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "string", args));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    *out = weft__jinja_of_str(s);
    return WEFT_OK;
}

static weft_status filter_length(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "length", args));
    size_t n = weft__jinja_len(v);
    if (n == SIZE_MAX) return weft__jinja_fail(c, WEFT_ARGUMENT, "'%s' has no length", weft__jinja_type_name(v));
    *out = weft__jinja_int((int64_t)n);
    return WEFT_OK;
}

/* ---- text ---- */

static weft_status filter_format(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
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

static weft_status filter_trim(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    PARAMS("chars");
    weft__jinja_val chars;
    const weft__jinja_str *s;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "trim", args, names, N_PARAMS, 0, &chars));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    return weft__jinja_stripped(c, "trim", s, chars, 1, 1, out);
}

static weft_status filter_replace(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    PARAMS("old", "new", "count");
    weft__jinja_val bound[N_PARAMS];
    const weft__jinja_str *s, *old, *new;
    int64_t count;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "replace", args, names, N_PARAMS, 2, bound));
    if (bound[2].type == WEFT__JINJA_NONE) bound[2] = weft__jinja_of(WEFT__JINJA_MISSING);
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "replace", bound[2], -1, &count));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, bound[0], &old));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, bound[1], &new));
    return weft__jinja_replace(c, s, old, new, count, out);
}

static weft_status filter_indent(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    PARAMS("width", "first", "blank");
    weft__jinja_val bound[N_PARAMS], lines, text;
    weft__jinja_buf indent = {0}, b = {0};
    int64_t width;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "indent", args, names, N_PARAMS, 0, bound));
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

static weft_status filter_truncate(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    PARAMS("length", "killwords", "end", "leeway");
    weft__jinja_val bound[N_PARAMS];
    int64_t length, leeway;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "truncate", args, names, N_PARAMS, 0, bound));
    if (bound[3].type == WEFT__JINJA_NONE) bound[3] = weft__jinja_of(WEFT__JINJA_MISSING);
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "truncate", bound[0], 255, &length));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "truncate", bound[3], 5, &leeway));
    if (bound[2].type == WEFT__JINJA_MISSING) WEFT__JINJA_TRY(weft__jinja_literal(c, "...", &bound[2]));
    size_t n = weft__jinja_len(v);
    if (n == SIZE_MAX || bound[2].type != WEFT__JINJA_STRING) return weft__jinja_fail(c, WEFT_ARGUMENT, "truncate needs a str");
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

static weft_status filter_wordcount(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
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

/* ---- URLs and JSON ---- */

static weft_status put_quoted(weft__jinja_ctx *c, weft__jinja_buf *b, weft__jinja_val v, int in_query)
{
    const weft__jinja_str *s;
    uint32_t hint = 0;
    WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
    WEFT__JINJA_TRY(weft__jinja_spend(c, s->len / 8));
    for (size_t i = 0; i < s->len; i++) {
        unsigned char ch = (unsigned char)s->data[i];
        char text[4] = {(char)ch};
        int plain = (ch >= '0' && ch <= '9') || ((ch | 0x20) >= 'a' && (ch | 0x20) <= 'z') || (ch && strchr("_.-~", ch)) ||
                    (!in_query && ch == '/');
        if (in_query && ch == ' ') {
            text[0] = '+';
        } else if (!plain) {
            snprintf(text, sizeof text, "%%%02X", ch);
        }
        WEFT__JINJA_TRY(weft__jinja_put(c, b, text, strlen(text), weft__jinja_user_at(s, i, &hint)));
    }
    return WEFT_OK;
}

static weft_status filter_urlencode(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
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

static weft_status filter_tojson(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    PARAMS("ensure_ascii", "indent", "separators", "sort_keys");
    weft__jinja_val bound[N_PARAMS];
    weft__jinja_dump how = {0};
    WEFT__JINJA_TRY(weft__jinja_bind(c, "tojson", args, names, N_PARAMS, 0, bound));
    how.ascii = weft__jinja_truthy(bound[0]);
    how.sort_keys = weft__jinja_truthy(bound[3]);
    WEFT__JINJA_TRY(read_indent(c, bound[1], &how.indent));
    WEFT__JINJA_TRY(read_separators(c, bound[2], &how));
    return weft__jinja_dump_json(c, v, &how, out);
}

static weft_status filter_from_json(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
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
        {"attr", filter_attr},
        {"capitalize", filter_capitalize},
        {"center", filter_center},
        {"count", filter_length},
        {"d", filter_default},
        {"default", filter_default},
        {"e", filter_escape},
        {"escape", filter_escape},
        {"forceescape", filter_forceescape},
        {"format", filter_format},
        {"from_json", filter_from_json},
        {"indent", filter_indent},
        {"length", filter_length},
        {"lower", filter_lower},
        {"replace", filter_replace},
        {"safe", filter_safe},
        {"string", filter_string},
        {"title", filter_title},
        {"tojson", filter_tojson},
        {"trim", filter_trim},
        {"truncate", filter_truncate},
        {"upper", filter_upper},
        {"urlencode", filter_urlencode},
        {"wordcount", filter_wordcount},
        {"filesizeformat", NULL},
        {"pprint", NULL},
        {"random", NULL},
        {"striptags", NULL},
        {"urlize", NULL},
        {"wordwrap", NULL},
        {"xmlattr", NULL},
        {NULL, NULL},
    };
    const weft__jinja_function *f = weft__jinja_lookup(table, name);
    if (!f) f = weft__jinja_number_filter(name);
    return f ? f : weft__jinja_seq_filter(name);
}
