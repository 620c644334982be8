// SPDX-License-Identifier: Apache-2.0
/* format.c: `format % values` and str.format (value.h), the parts of Python's formatting that work on the values a
 * template can have. Text keeps its origin; what is made from numbers is ours. Owned by the rendering. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "text/jinja/text.h"
#include "text/jinja/value.h"

typedef struct spec {
    const weft__jinja_str *fill; /* NULL: a blank */
    char align;                  /* < > = ^ or 0 */
    char sign;                   /* + - blank, or 0 */
    char grouping;               /* , _ or 0 */
    char type;                   /* 0: the type's own */
    int alternate, zero;
    int64_t width, precision; /* -1: none */
} spec;

/* Beyond these, formatting is an attack and not a layout. */
#define MAX_WIDTH 100000
#define MAX_PRECISION 500

static weft_status format_fail(weft__jinja_ctx *c, const char *what)
{
    return weft__jinja_fail(c, WEFT_ARGUMENT, "format: %s", what);
}

/* Puts text, or a string with its origins, with padding on one side or both. */
static weft_status put_padded(weft__jinja_ctx *c, weft__jinja_buf *b, const weft__jinja_str *s, const spec *f,
                              char align)
{
    weft__jinja_pad_side side = align == '<'   ? WEFT__JINJA_PAD_RIGHT
                                : align == '^' ? WEFT__JINJA_PAD_BOTH
                                               : WEFT__JINJA_PAD_LEFT;
    weft__jinja_val padded;
    if (side == WEFT__JINJA_PAD_BOTH && f->width > (int64_t)s->n_chars) { /* the odd one goes to the right here */
        int64_t left = (int64_t)s->n_chars + (f->width - (int64_t)s->n_chars) / 2;
        WEFT__JINJA_TRY(weft__jinja_pad(c, s, left, f->fill, WEFT__JINJA_PAD_LEFT, &padded));
        s = padded.u.s;
        side = WEFT__JINJA_PAD_RIGHT;
    }
    WEFT__JINJA_TRY(weft__jinja_pad(c, s, f->width, f->fill, side, &padded));
    return weft__jinja_put_str(c, b, padded.u.s);
}

static weft_status put_string(weft__jinja_ctx *c, weft__jinja_buf *b, const weft__jinja_str *s, const spec *f)
{
    weft__jinja_val cut = weft__jinja_of_str(s);
    if (f->precision >= 0 && (uint64_t)f->precision < s->n_chars) {
        WEFT__JINJA_TRY(weft__jinja_slice(c, s, 0, weft__jinja_str_offset(s, (size_t)f->precision), &cut));
    }
    return put_padded(c, b, cut.u.s, f, f->align ? f->align : '<');
}

/* Sign, prefix and digits, padded between them where zeros or '=' ask for it. */
static weft_status put_number(weft__jinja_ctx *c, weft__jinja_buf *b, int negative, const char *prefix,
                              const char *digits, const spec *f)
{
    weft__jinja_buf whole = {0};
    weft__jinja_val text;
    const char *sign = negative ? "-" : f->sign == '+' ? "+" : f->sign == ' ' ? " " : "";
    size_t n = strlen(sign) + strlen(prefix) + strlen(digits);
    int inside = f->align == '=' || (!f->align && f->zero);
    WEFT__JINJA_TRY(weft__jinja_puts(c, &whole, sign));
    WEFT__JINJA_TRY(weft__jinja_puts(c, &whole, prefix));
    if (inside && f->width > (int64_t)n) {
        for (int64_t left = f->width - (int64_t)n; left; left--) {
            if (f->fill && !f->zero) {
                WEFT__JINJA_TRY(weft__jinja_put_str(c, &whole, f->fill));
            } else {
                WEFT__JINJA_TRY(weft__jinja_put_fill(c, &whole, f->zero ? '0' : ' ', 1));
            }
        }
    }
    WEFT__JINJA_TRY(weft__jinja_puts(c, &whole, digits));
    WEFT__JINJA_TRY(weft__jinja_buf_finish(c, &whole, &text));
    return put_padded(c, b, text.u.s, f, f->align && f->align != '=' ? f->align : '>');
}

/* Puts a separator between groups of digits before the point; out has room for it. */
static void group_digits(const char *digits, char separator, size_t size, char *out)
{
    size_t whole = strspn(digits, "0123456789abcdefABCDEF"), n = 0;
    for (size_t i = 0; i < whole; i++) {
        if (i && (whole - i) % size == 0) out[n++] = separator;
        out[n++] = digits[i];
    }
    strcpy(out + n, digits + whole);
}

static weft_status put_int(weft__jinja_ctx *c, weft__jinja_buf *b, int64_t value, const spec *f)
{
    char digits[72], grouped[160];
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
    char type = f->type == 'i' || f->type == 'u' || f->type == 'n' || !f->type ? 'd' : f->type;
    const char *prefix = "";
    size_t group = 4;
    if (type == 'x' || type == 'X') {
        snprintf(digits, sizeof digits, type == 'x' ? "%llx" : "%llX", (unsigned long long)magnitude);
        if (f->alternate) prefix = type == 'x' ? "0x" : "0X";
    } else if (type == 'o') {
        snprintf(digits, sizeof digits, "%llo", (unsigned long long)magnitude);
        if (f->alternate) prefix = "0o";
    } else if (type == 'b') {
        int n = 0;
        for (int bit = 63; bit >= 0; bit--) {
            if (n || bit == 0 || (magnitude >> bit & 1)) digits[n++] = (char)('0' + (magnitude >> bit & 1));
        }
        digits[n] = 0;
        if (f->alternate) prefix = "0b";
    } else {
        snprintf(digits, sizeof digits, "%llu", (unsigned long long)magnitude);
        group = 3;
    }
    if (f->grouping) group_digits(digits, f->grouping, group, grouped);
    return put_number(c, b, value < 0, prefix, f->grouping ? grouped : digits, f);
}

/* The digits of a finite positive double, as Python's format types write them. */
static void print_float(double value, const spec *f, int64_t precision, char *out, size_t n)
{
    static const char order[] = "eEfFgG";
    static const char *const plain[] = {"%.*e", "%.*E", "%.*f", "%.*F", "%.*g", "%.*G"};
    static const char *const alternate[] = {"%#.*e", "%#.*E", "%#.*f", "%#.*F", "%#.*g", "%#.*G"};
    char type = f->type == '%' ? 'f' : !f->type || f->type == 'n' ? 'g' : f->type;
    size_t i = 0;
    while (order[i] != type) i++;
    snprintf(out, n, f->alternate ? alternate[i] : plain[i], (int)precision, value);
}

static weft_status put_float(weft__jinja_ctx *c, weft__jinja_buf *b, double value, const spec *f)
{
    char digits[1000], grouped[1400];
    int negative = signbit(value) && !isnan(value);
    double magnitude = fabs(value);
    if (f->type == '%') magnitude *= 100;
    int64_t precision = f->precision < 0 ? 6 : f->precision;
    if (precision > MAX_PRECISION) return weft__jinja_fail(c, WEFT_LIMIT, "format: the precision is too large");
    if (!isfinite(magnitude)) {
        int upper = f->type && strchr("EFG", f->type);
        snprintf(digits, sizeof digits, "%s", isnan(value) ? (upper ? "NAN" : "nan") : upper ? "INF" : "inf");
    } else if (!f->type && f->precision < 0) {
        digits[weft__jinja_print_double(magnitude, digits)] = 0;
    } else {
        if ((!f->type || f->type == 'g' || f->type == 'G') && precision == 0) precision = 1;
        print_float(magnitude, f, precision, digits, sizeof digits - 3);
        /* Without a type, a float keeps a digit after its point. */
        if (!f->type && !strpbrk(digits, ".e")) strcat(digits, ".0");
    }
    if (f->type == '%') strcat(digits, "%");
    if (f->grouping) group_digits(digits, f->grouping, 3, grouped);
    return put_number(c, b, negative, "", f->grouping ? grouped : digits, f);
}

/* ---- format % values ---- */

/* What a percent format takes its values from. */
typedef struct format_source {
    weft__jinja_val values;
    size_t used;
} format_source;

static weft_status next_value(weft__jinja_ctx *c, format_source *from, weft__jinja_val *out)
{
    if (from->values.type == WEFT__JINJA_TUPLE) {
        if (from->used >= from->values.u.list->n) return format_fail(c, "not enough values");
        *out = from->values.u.list->items[from->used++];
        return WEFT_OK;
    }
    if (from->used++) return format_fail(c, "not enough values");
    *out = from->values;
    return WEFT_OK;
}

/* Digits, or * for the next value, at s[*at]; *out stays when there is neither. */
static weft_status read_number(weft__jinja_ctx *c, const weft__jinja_str *s, size_t *at, format_source *from,
                               int64_t *out)
{
    if (from && *at < s->len && s->data[*at] == '*') {
        weft__jinja_val v;
        ++*at;
        WEFT__JINJA_TRY(next_value(c, from, &v));
        WEFT__JINJA_TRY(weft__jinja_want_int(c, "format", v, 0, out));
    } else if (*at < s->len && s->data[*at] >= '0' && s->data[*at] <= '9') {
        *out = 0;
        while (*at < s->len && s->data[*at] >= '0' && s->data[*at] <= '9' && *out <= MAX_WIDTH)
            *out = *out * 10 + (s->data[(*at)++] - '0');
    }
    if (*out > MAX_WIDTH || *out < -MAX_WIDTH) return weft__jinja_fail(c, WEFT_LIMIT, "format: a width is too large");
    return WEFT_OK;
}

static weft_status put_percent(weft__jinja_ctx *c, weft__jinja_buf *b, weft__jinja_val v, spec *f)
{
    char type = f->type;
    const weft__jinja_str *s;
    weft__jinja_buf repr = {0};
    if (type == 's' || type == 'r' || type == 'a') {
        if (type != 's') {
            WEFT__JINJA_TRY(weft__jinja_put_repr(c, &repr, v));
            WEFT__JINJA_TRY(weft__jinja_buf_finish(c, &repr, &v));
        }
        WEFT__JINJA_TRY(weft__jinja_to_str(c, v, &s));
        f->align = f->align ? f->align : '>';
        f->zero = 0;
        return put_string(c, b, s, f);
    }
    if (type == 'c') {
        f->align = f->align ? f->align : '>';
        f->precision = -1;
        if (v.type == WEFT__JINJA_STRING && v.u.s->n_chars == 1) return put_string(c, b, v.u.s, f);
        if (!weft__jinja_is_int(v) || v.u.i < 0 || v.u.i > 0x10FFFF) return format_fail(c, "%c needs a character");
        WEFT__JINJA_TRY(weft__jinja_put_char(c, &repr, (uint32_t)v.u.i, 1));
        WEFT__JINJA_TRY(weft__jinja_buf_finish(c, &repr, &v));
        return put_string(c, b, v.u.s, f);
    }
    if (v.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, v);
    if (!weft__jinja_is_number(v))
        return weft__jinja_fail(c, WEFT_ARGUMENT, "format: %%%c needs a number, not '%s'", type,
                                weft__jinja_type_name(v));
    if (strchr("eEfFgG", type)) return put_float(c, b, weft__jinja_number(v), f);
    if (v.type == WEFT__JINJA_FLOAT) {
        if (strchr("oxX", type)) return format_fail(c, "%x and %o need an int");
        if (!(fabs(v.u.f) < 9.2e18)) return format_fail(c, "%d of a number too large");
        v = weft__jinja_int((int64_t)v.u.f);
    }
    if (f->precision > 0) return weft__jinja_fail(c, WEFT_UNSUPPORTED, "format: %%.Nd is not supported");
    return put_int(c, b, v.u.i, f);
}

/* One conversion after its %; *at behind it. */
static weft_status percent_one(weft__jinja_ctx *c, weft__jinja_buf *b, const weft__jinja_str *s, size_t *at,
                               format_source *from)
{
    spec f = {.precision = -1};
    weft__jinja_val v = {0};
    size_t i = *at;
    if (i < s->len && s->data[i] == '(') {
        size_t end = weft__jinja_find(s->data, i, s->len, ")", 1);
        weft__jinja_val key;
        if (end == SIZE_MAX) return format_fail(c, "a key is never closed");
        if (from->values.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, from->values);
        if (from->values.type != WEFT__JINJA_DICT) return format_fail(c, "a key needs a dict");
        WEFT__JINJA_TRY(weft__jinja_slice(c, s, i + 1, end, &key));
        weft__jinja_entry *e;
        WEFT__JINJA_TRY(weft__jinja_dict_find(c, from->values.u.dict, key, &e));
        if (!e) return format_fail(c, "a key is not in the dict");
        v = e->value;
        i = end + 1;
    }
    for (; i < s->len && s->data[i] && strchr("-+ #0", s->data[i]); i++) {
        if (s->data[i] == '-') f.align = '<';
        if (s->data[i] == '+' || (s->data[i] == ' ' && !f.sign)) f.sign = s->data[i];
        if (s->data[i] == '#') f.alternate = 1;
        if (s->data[i] == '0') f.zero = 1;
    }
    WEFT__JINJA_TRY(read_number(c, s, &i, from, &f.width));
    if (f.width < 0) {
        f.align = '<';
        f.width = -f.width;
    }
    if (i < s->len && s->data[i] == '.') {
        i++;
        f.precision = 0;
        WEFT__JINJA_TRY(read_number(c, s, &i, from, &f.precision));
        if (f.precision < 0) f.precision = 0;
    }
    while (i < s->len && s->data[i] && strchr("hlL", s->data[i])) i++;
    if (i >= s->len) return format_fail(c, "it ends within a conversion");
    f.type = s->data[i];
    *at = i + 1;
    if (f.type == '%') return weft__jinja_puts(c, b, "%");
    if (!f.type || !strchr("diouxXeEfFgGcrsa", f.type)) return format_fail(c, "an unknown conversion after %");
    if (v.type == WEFT__JINJA_MISSING) WEFT__JINJA_TRY(next_value(c, from, &v));
    return put_percent(c, b, v, &f);
}

weft_status weft__jinja_percent(weft__jinja_ctx *c, const weft__jinja_str *format, weft__jinja_val args,
                                weft__jinja_val *out)
{
    weft__jinja_buf b = {0};
    weft__jinja_val text;
    format_source from = {.values = args};
    size_t at = 0;
    while (at < format->len) {
        size_t hit = weft__jinja_find(format->data, at, format->len, "%", 1);
        if (hit == SIZE_MAX) hit = format->len;
        WEFT__JINJA_TRY(weft__jinja_put_slice(c, &b, format, at, hit));
        at = hit + 1;
        if (hit < format->len) WEFT__JINJA_TRY(percent_one(c, &b, format, &at, &from));
    }
    /* One value that could be indexed may go unused: Python takes it for a mapping. */
    int mapping = args.type == WEFT__JINJA_DICT || args.type == WEFT__JINJA_LIST || args.type == WEFT__JINJA_RANGE ||
                  args.type == WEFT__JINJA_UNDEFINED;
    int taken = args.type == WEFT__JINJA_TUPLE ? from.used == args.u.list->n : from.used || mapping;
    if (!taken) return format_fail(c, "not all values are used");
    WEFT__JINJA_TRY(weft__jinja_buf_finish(c, &b, &text));
    return weft__jinja_markup(c, text.u.s, format->markup, out);
}

/* ---- format.format(values) ---- */

typedef struct formatter {
    weft__jinja_ctx *c;
    const weft__jinja_args *args;
    size_t next; /* for {} */
    int manual, automatic;
} formatter;

static weft_status expand(formatter *x, const weft__jinja_str *s, size_t from, size_t to, int depth,
                          weft__jinja_buf *b);

/* `whole`: the field has nothing but this name. Only then Python counts it for or against automatic numbering. */
static weft_status argument(formatter *x, const weft__jinja_str *name, int whole, weft__jinja_val *out)
{
    int64_t number = 0;
    int digits = name->len < 10 && (name->len || whole);
    for (size_t i = 0; i < name->len && digits; i++) {
        digits = name->data[i] >= '0' && name->data[i] <= '9';
        number = number * 10 + (name->data[i] - '0');
    }
    if (digits && !name->len) {
        number = (int64_t)x->next++;
        x->automatic = 1;
    } else if (digits && whole) {
        x->manual = 1;
    }
    if (x->manual && x->automatic) return format_fail(x->c, "{} and {0} cannot be mixed");
    if (digits) {
        if ((uint64_t)number >= x->args->n_pos) return format_fail(x->c, "not enough values");
        *out = x->args->pos[number];
        return WEFT_OK;
    }
    for (size_t i = 0; i < x->args->n_named; i++) {
        if (!weft__jinja_str_eq(x->args->names[i], name)) continue;
        *out = x->args->named[i];
        return WEFT_OK;
    }
    return weft__jinja_fail(x->c, WEFT_ARGUMENT, "format: no value named '%.*s'", name->len < 60 ? (int)name->len : 60,
                            name->data);
}

/* name.attribute[item]... */
static weft_status field_value(formatter *x, const weft__jinja_str *s, size_t from, size_t to, weft__jinja_val *out)
{
    size_t at = from;
    weft__jinja_val part;
    while (at < to && s->data[at] != '.' && s->data[at] != '[') at++;
    WEFT__JINJA_TRY(weft__jinja_slice(x->c, s, from, at, &part));
    WEFT__JINJA_TRY(argument(x, part.u.s, at == to, out));
    while (at < to) {
        int is_item = s->data[at] == '[';
        size_t end = ++at;
        while (end < to && (is_item ? s->data[end] != ']' : s->data[end] != '.' && s->data[end] != '[')) end++;
        if (end == at || (is_item && end == to)) return format_fail(x->c, "a field's name is malformed");
        WEFT__JINJA_TRY(weft__jinja_slice(x->c, s, at, end, &part));
        if (is_item) {
            int digits = end - at < 10;
            int64_t number = 0;
            for (size_t i = at; i < end && digits; i++) {
                digits = s->data[i] >= '0' && s->data[i] <= '9';
                number = number * 10 + (s->data[i] - '0');
            }
            WEFT__JINJA_TRY(weft__jinja_getitem(x->c, *out, digits ? weft__jinja_int(number) : part, out));
        } else {
            WEFT__JINJA_TRY(weft__jinja_getattr(x->c, *out, part.u.s, out));
        }
        at = is_item ? end + 1 : end;
        if (is_item && at < to && s->data[at] != '.' && s->data[at] != '[')
            return format_fail(x->c, "a field's name is malformed");
    }
    return WEFT_OK;
}

static int is_align(const weft__jinja_str *s, size_t at)
{
    return at < s->len && s->data[at] && strchr("<>=^", s->data[at]) != NULL;
}

static weft_status read_spec(weft__jinja_ctx *c, const weft__jinja_str *s, spec *f)
{
    size_t at = 0, first = s->len ? (size_t)weft__utf8_length((unsigned char)s->data[0]) : 0;
    *f = (spec){.precision = -1};
    if (s->len && is_align(s, first)) {
        weft__jinja_val fill;
        WEFT__JINJA_TRY(weft__jinja_slice(c, s, 0, first, &fill));
        f->fill = fill.u.s;
        f->align = s->data[first];
        at = first + 1;
    } else if (is_align(s, 0)) {
        f->align = s->data[at++];
    }
    if (at < s->len && s->data[at] && strchr("+- ", s->data[at])) f->sign = s->data[at++];
    if (at < s->len && s->data[at] == '#') f->alternate = 1, at++;
    if (at < s->len && s->data[at] == '0') {
        f->zero = !f->fill;
        at++;
    }
    WEFT__JINJA_TRY(read_number(c, s, &at, NULL, &f->width));
    if (at < s->len && (s->data[at] == ',' || s->data[at] == '_')) f->grouping = s->data[at++];
    if (at < s->len && s->data[at] == '.') {
        size_t digits = ++at;
        f->precision = 0;
        WEFT__JINJA_TRY(read_number(c, s, &at, NULL, &f->precision));
        if (at == digits) return format_fail(c, "a precision has no digits");
    }
    if (at < s->len) f->type = s->data[at++];
    return at == s->len ? WEFT_OK : format_fail(c, "a format specification is malformed");
}

static weft_status put_formatted(weft__jinja_ctx *c, weft__jinja_buf *b, weft__jinja_val v, const weft__jinja_str *text)
{
    spec f;
    if (!text->len) return weft__jinja_put_value(c, b, v);
    WEFT__JINJA_TRY(read_spec(c, text, &f));
    if (v.type == WEFT__JINJA_STRING) {
        if ((f.type && f.type != 's') || f.sign || f.alternate || f.grouping || f.align == '=') {
            return format_fail(c, "the specification is not for a str");
        }
        weft__jinja_val zero;
        WEFT__JINJA_TRY(weft__jinja_literal(c, "0", &zero));
        if (f.zero) f.fill = zero.u.s;
        return put_string(c, b, v.u.s, &f);
    }
    if (!weft__jinja_is_number(v)) {
        return weft__jinja_fail(c, WEFT_ARGUMENT, "format: '%s' takes no specification", weft__jinja_type_name(v));
    }
    int as_float = v.type == WEFT__JINJA_FLOAT || (f.type && strchr("eEfFgG%", f.type));
    if (as_float && (!f.type || strchr("eEfFgG%n", f.type))) return put_float(c, b, weft__jinja_number(v), &f);
    if (as_float || f.precision >= 0) return format_fail(c, "the specification is not for this number");
    if (f.type == 'c') return weft__jinja_put_char(c, b, v.u.i < 0 || v.u.i > 0x10FFFF ? 0xFFFD : (uint32_t)v.u.i, 1);
    if (f.type && !strchr("dboxXn", f.type)) return format_fail(c, "the specification is not for an int");
    return put_int(c, b, v.u.i, &f);
}

/* {field!conversion:specification}; s[from..to) is what stands between the braces. */
static weft_status put_field(formatter *x, const weft__jinja_str *s, size_t from, size_t to, int depth,
                             weft__jinja_buf *b)
{
    size_t name_end = from;
    char conversion = 0;
    for (int item = 0; name_end < to && (item || (s->data[name_end] != '!' && s->data[name_end] != ':')); name_end++) {
        if (s->data[name_end] == '[') item = 1;
        if (s->data[name_end] == ']') item = 0;
    }
    weft__jinja_val v, text;
    WEFT__JINJA_TRY(field_value(x, s, from, name_end, &v));
    size_t at = name_end;
    if (at < to && s->data[at] == '!') {
        if (at + 1 >= to || (at + 2 < to && s->data[at + 2] != ':'))
            return format_fail(x->c, "a conversion is malformed");
        conversion = s->data[at + 1];
        at += 2;
    }
    weft__jinja_buf spec_text = {0};
    if (at < to) WEFT__JINJA_TRY(expand(x, s, at + 1, to, depth + 1, &spec_text));
    WEFT__JINJA_TRY(weft__jinja_buf_finish(x->c, &spec_text, &text));
    if (conversion && conversion != 's' && conversion != 'r')
        return format_fail(x->c, "an unknown conversion after '!'");
    if (conversion) {
        weft__jinja_buf converted = {0};
        WEFT__JINJA_TRY(conversion == 'r' ? weft__jinja_put_repr(x->c, &converted, v)
                                          : weft__jinja_put_value(x->c, &converted, v));
        WEFT__JINJA_TRY(weft__jinja_buf_finish(x->c, &converted, &v));
    }
    return put_formatted(x->c, b, v, text.u.s);
}

static weft_status expand(formatter *x, const weft__jinja_str *s, size_t from, size_t to, int depth, weft__jinja_buf *b)
{
    if (depth > 2) return format_fail(x->c, "fields nest too deeply");
    while (from < to) {
        size_t at = from;
        while (at < to && s->data[at] != '{' && s->data[at] != '}') at++;
        WEFT__JINJA_TRY(weft__jinja_put_slice(x->c, b, s, from, at));
        if (at == to) return WEFT_OK;
        if (at + 1 < to && s->data[at + 1] == s->data[at]) {
            WEFT__JINJA_TRY(weft__jinja_put_slice(x->c, b, s, at, at + 1));
            from = at + 2;
            continue;
        }
        if (s->data[at] == '}') return format_fail(x->c, "a single '}'");
        size_t end = at + 1;
        for (int open = 1; end < to; end++) {
            open += (s->data[end] == '{') - (s->data[end] == '}');
            if (!open) break;
        }
        if (end == to) return format_fail(x->c, "a '{' is never closed");
        WEFT__JINJA_TRY(weft__jinja_spend(x->c, 1 + (end - at) / 16));
        WEFT__JINJA_TRY(put_field(x, s, at + 1, end, depth, b));
        from = end + 1;
    }
    return WEFT_OK;
}

weft_status weft__jinja_format(weft__jinja_ctx *c, const weft__jinja_str *format, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    formatter x = {.c = c, .args = args};
    weft__jinja_buf b = {0};
    weft__jinja_val text;
    WEFT__JINJA_TRY(expand(&x, format, 0, format->len, 0, &b));
    WEFT__JINJA_TRY(weft__jinja_buf_finish(c, &b, &text));
    return weft__jinja_markup(c, text.u.s, format->markup, out);
}
