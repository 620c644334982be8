// SPDX-License-Identifier: Apache-2.0
/* fields.c: reading a request by its table. */
#include "api/fields.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/near.h"

int weft__api_error_set(weft__api_error *error, int status, const char *field, const char *format, ...)
{
    va_list args;
    error->status = status;
    error->retry_s = 0;
    error->code = NULL;
    snprintf(error->field, sizeof error->field, "%s", field ? field : "");
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return 0;
}

void weft__api_params_free(weft__api_params *params)
{
    weft__json_free(&params->root);
    weft__json_free(&params->flat);
    weft__free(params->bias);
    weft__free(params->bias_texts);
    weft__strbuf_free(&params->constraint.text);
    weft__strbuf_free(&params->prediction);
    weft__strbuf_free(&params->tools.offered);
    weft__strbuf_free(&params->tools.called);
    *params = (weft__api_params){0};
}

static const weft__api_field *fields_find(const weft__api_table *form, const char *name)
{
    const weft__api_field *f = form->fields;
    while (f->name && strcmp(f->name, name)) f++;
    return f->name ? f : NULL;
}

static int is_known(const void *form, const char *key)
{
    return fields_find(form, key) != NULL;
}

/* Strings, and what stop, logit_bias and grammar_triggers borrow from. */
static int is_borrowed(const void *form, const char *key)
{
    const weft__api_field *f = fields_find(form, key);
    return f && (f->kind == WEFT__FIELD_STRING || !strcmp(key, "stop") || !strcmp(key, "logit_bias") ||
                 !strcmp(key, "grammar_triggers"));
}

void weft__api_params_settle(weft__api_params *params)
{
    params->prompt = params->messages = params->input = params->content = params->tokens = params->kwargs = NULL;
    params->tools.given = params->tools.functions = params->tools.choice = params->tools.old_choice = NULL;
    weft__json_free(&params->flat);
    if (params->root) weft__json_filter(params->root, is_borrowed, params->form);
}

static const char *kind_text(const weft__json *v)
{
    static const char *const texts[] = {"null",     "a boolean", "an integer", "a number",
                                        "a string", "an array",  "an object"};
    int kind = weft__json_kind_of(v);
    return kind < 0 ? "nothing" : texts[kind];
}

static const char *wanted_text(const weft__api_field *f)
{
    static const char *const texts[] = {"a boolean", "an integer", "a number", "a string"};
    return f->kind <= WEFT__FIELD_STRING ? texts[f->kind] : f->type;
}

static int wrong_type(const weft__api_field *f, const weft__json *v, weft__api_error *error)
{
    return weft__api_error_set(error, 400, f->name, "'%s' must be %s, not %s", f->name, wanted_text(f), kind_text(v));
}

static int has_range(const weft__api_field *f)
{
    return f->min != 0 || f->max != 0;
}

/* A bound of integers. 2^63 stands for the largest one, which a double cannot hold. */
static int64_t whole(double bound)
{
    return bound >= 0x1p63 ? INT64_MAX : (int64_t)bound;
}

static int int_in_range(const weft__api_field *f, int64_t value, weft__api_error *error)
{
    int64_t min = whole(f->min), max = whole(f->max);
    if (!has_range(f) || (value >= min && value <= max)) return 1;
    return weft__api_error_set(error, 400, f->name, "'%s' must be from %lld to %lld, not %lld", f->name, (long long)min,
                               (long long)max, (long long)value);
}

static int in_range(const weft__api_field *f, double value, weft__api_error *error)
{
    if (!has_range(f) || (value >= f->min && value <= f->max)) return 1;
    return weft__api_error_set(error, 400, f->name, "'%s' must be from %.12g to %.12g, not %.12g", f->name, f->min,
                               f->max, value);
}

static int read_string(weft__api_params *params, const weft__api_field *f, const weft__json *v, weft__api_error *error)
{
    const char *s;
    size_t n;
    if (!weft__json_string(v, &s, &n)) return wrong_type(f, v, error);
    if (strlen(s) != n) return weft__api_error_set(error, 400, f->name, "'%s' must not contain NUL", f->name);
    if (has_range(f) && (double)n > f->max)
        return weft__api_error_set(error, 400, f->name, "'%s' must have at most %.0f bytes, not %zu", f->name, f->max,
                                   n);
    memcpy((char *)params + f->offset, &s, sizeof s);
    return f->read ? f->read(params, f->name, v, error) : 1;
}

static int read_only(const weft__api_field *f, const weft__json *v, weft__api_error *error)
{
    double value;
    int flag;
    if (weft__json_bool(v, &flag)) value = flag;
    else if (!weft__json_double(v, &value))
        return weft__api_error_set(error, 400, f->name, "'%s' must be a number or a boolean, not %s", f->name,
                                   kind_text(v));
    if (value == f->fallback) return 1;
    return weft__api_error_set(error, 400, f->name, "'%s' other than %.12g is not supported", f->name, f->fallback);
}

static int read_empty(const weft__api_field *f, const weft__json *v, weft__api_error *error)
{
    const char *s;
    size_t n;
    int flag;
    if (weft__json_bool(v, &flag) && !flag) return 1;
    if (weft__json_string(v, &s, &n) && !n) return 1;
    if ((weft__json_kind_of(v) == WEFT__JSON_ARRAY || weft__json_kind_of(v) == WEFT__JSON_OBJECT) &&
        !weft__json_size(v))
        return 1;
    return weft__api_error_set(error, 400, f->name, "'%s' is not supported by this server", f->name);
}

static int read_field(weft__api_params *params, const weft__api_field *f, const weft__json *v, weft__api_error *error)
{
    char *to = (char *)params + f->offset;
    int64_t integer;
    double number;
    int flag;
    switch (f->kind) {
    case WEFT__FIELD_BOOL:
        if (!weft__json_bool(v, &flag)) return wrong_type(f, v, error);
        memcpy(to, &flag, sizeof flag);
        break;
    case WEFT__FIELD_INT:
        if (!weft__json_int(v, &integer)) return wrong_type(f, v, error);
        if (!int_in_range(f, integer, error)) return 0;
        memcpy(to, &integer, sizeof integer);
        break;
    case WEFT__FIELD_NUMBER:
        if (!weft__json_double(v, &number)) return wrong_type(f, v, error);
        if (!in_range(f, number, error)) return 0;
        memcpy(to, &number, sizeof number);
        break;
    case WEFT__FIELD_STRING: return read_string(params, f, v, error);
    case WEFT__FIELD_JSON: memcpy(to, &v, sizeof v); break;
    case WEFT__FIELD_READ: break;
    case WEFT__FIELD_ONLY: return read_only(f, v, error);
    case WEFT__FIELD_EMPTY: return read_empty(f, v, error);
    case WEFT__FIELD_NOTE: return 1;
    }
    return f->read ? f->read(params, f->name, v, error) : 1;
}

static void set_default(weft__api_params *params, const weft__api_field *f)
{
    char *to = (char *)params + f->offset;
    int64_t integer;
    int flag;
    if (isnan(f->fallback)) return;
    integer = (int64_t)f->fallback;
    flag = f->fallback != 0;
    if (f->kind == WEFT__FIELD_BOOL) memcpy(to, &flag, sizeof flag);
    else if (f->kind == WEFT__FIELD_INT) memcpy(to, &integer, sizeof integer);
    else if (f->kind == WEFT__FIELD_NUMBER) memcpy(to, &f->fallback, sizeof f->fallback);
}

/* A name from outside, short and printable. */
static void show_name(char out[64], const char *name)
{
    size_t n = strlen(name), kept = n < 48 ? n : 48;
    while (kept > 0 && kept < n && ((unsigned char)name[kept] & 0xc0) == 0x80) kept--;
    snprintf(out, 64, "%.*s%s", (int)kept, name, kept < n ? "..." : "");
}

static const char *exact_name(const void *exact, size_t i)
{
    return ((const char *const *)exact)[i];
}

/* What is in no table. 0: it is refused. */
static int pass_over(const weft__api_table *form, const char *key, weft__api_error *error)
{
    const char *near = form->strict || !form->exact ? NULL : weft__near_match(key, exact_name, form->exact);
    char name[64];
    show_name(name, key);
    if (near)
        return weft__api_error_set(error, 400, name, "Unrecognized request argument supplied: %s; write '%s'", name,
                                   near);
    return !form->strict || weft__api_error_set(error, 400, name, "Unrecognized request argument supplied: %s", name);
}

static int read_members(const weft__api_table *form, weft__api_params *params, weft__api_error *error)
{
    weft__json_member m = {0};
    while (weft__json_next(params->root, &m)) {
        if (weft__json_is_null(m.value)) continue; /* absence, of what is not known, too */
        const weft__api_field *f = fields_find(form, m.key);
        if (!(f ? read_field(params, f, m.value, error) : pass_over(form, m.key, error))) return 0;
    }
    for (const weft__api_field *f = form->fields; f->name; f++)
        if (f->required &&
            (!weft__json_get(params->root, f->name) || weft__json_is_null(weft__json_get(params->root, f->name))))
            return weft__api_error_set(error, 400, f->name, "'%s' is missing; it must be %s", f->name, wanted_text(f));
    weft__json_filter(params->root, is_known, form);
    return !form->check || form->check(params, error);
}

int weft__api_body_parse(const char *body, size_t n, weft__json **root, weft__api_error *error)
{
    weft_error err = {0};
    if (weft__json_tree_bytes(body, n) > WEFT__API_MAX_TREE + n)
        return weft__api_error_set(error, 413, NULL,
                                   "the body has too many values: together they would take more than %d MB",
                                   WEFT__API_MAX_TREE >> 20);
    weft_status st = weft__json_parse_bounds(body, n, root, &err);
    if (st == WEFT_NO_MEMORY) return weft__api_error_set(error, 503, NULL, "no memory for the request");
    return !st || weft__api_error_set(error, 400, NULL, "the body is not valid JSON: %s", err.message);
}

int weft__api_params_parse(const weft__api_table *form, int32_t n_vocab, const char *body, size_t n,
                           weft__api_params *params, weft__api_error *error)
{
    weft__json *root = NULL;
    *params = (weft__api_params){.form = form};
    *error = (weft__api_error){0};
    if (!n) return weft__api_error_set(error, 400, NULL, "the body is empty; it must be a JSON object");
    return weft__api_body_parse(body, n, &root, error) && weft__api_params_take(form, n_vocab, &root, params, error);
}

int weft__api_params_take(const weft__api_table *form, int32_t n_vocab, weft__json **root, weft__api_params *params,
                          weft__api_error *error)
{
    *params = (weft__api_params){.form = form, .n_vocab = n_vocab, .root = *root};
    *root = NULL;
    for (const weft__api_field *f = form->fields; f->name; f++) set_default(params, f);
    params->keep_alive_ms = -1;
    if (weft__json_kind_of(params->root) != WEFT__JSON_OBJECT)
        return weft__api_error_set(error, 400, NULL, "the body must be a JSON object, not %s", kind_text(params->root));
    return read_members(form, params, error);
}

/* ---- the tables as JSON ---- */

static void write_field(weft__strbuf *out, const weft__api_field *f)
{
    static const char *const types[] = {"boolean", "integer", "number", "string", "", "", "", "empty", "any"};
    weft__json_write_string(out, f->name, strlen(f->name));
    const char *type = f->kind == WEFT__FIELD_JSON || f->kind == WEFT__FIELD_READ ? f->type
                       : f->kind == WEFT__FIELD_ONLY                              ? "constant"
                                                                                  : types[f->kind];
    weft__strbuf_printf(out, ": {\"type\": \"%s\", \"required\": %s", type, f->required ? "true" : "false");
    int is_number = f->kind == WEFT__FIELD_INT || f->kind == WEFT__FIELD_NUMBER || f->kind == WEFT__FIELD_ONLY;
    if (f->kind == WEFT__FIELD_INT && has_range(f))
        weft__strbuf_printf(out, ", \"minimum\": %lld, \"maximum\": %lld", (long long)whole(f->min),
                            (long long)whole(f->max));
    else if (is_number && has_range(f))
        weft__strbuf_printf(out, ", \"minimum\": %.17g, \"maximum\": %.17g", f->min, f->max);
    if (f->kind == WEFT__FIELD_STRING && has_range(f)) weft__strbuf_printf(out, ", \"maxLength\": %.17g", f->max);
    if (!isnan(f->fallback) && f->kind == WEFT__FIELD_BOOL)
        weft__strbuf_printf(out, ", \"default\": %s", f->fallback != 0 ? "true" : "false");
    /* A fallback that no request can give stands for what happens without the field. */
    if (!isnan(f->fallback) && is_number && (!has_range(f) || (f->fallback >= f->min && f->fallback <= f->max)))
        weft__strbuf_printf(out, ", \"default\": %.17g", f->fallback);
    weft__strbuf_puts(out, "}");
}

void weft__api_tables_write(weft__strbuf *out)
{
    weft__strbuf_puts(out, "{");
    for (const weft__api_table *const *form = weft__api_tables; *form; form++) {
        weft__strbuf_printf(out, "%s\"%s\": {\"path\": \"%s\", \"strict\": %s, \"fields\": {",
                            form == weft__api_tables ? "" : ",\n", (*form)->name, (*form)->path,
                            (*form)->strict ? "true" : "false");
        for (const weft__api_field *f = (*form)->fields; f->name; f++) {
            if (f != (*form)->fields) weft__strbuf_puts(out, ",\n  ");
            write_field(out, f);
        }
        weft__strbuf_puts(out, "}}");
    }
    weft__strbuf_puts(out, "}\n");
}
