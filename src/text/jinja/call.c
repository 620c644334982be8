// SPDX-License-Identifier: Apache-2.0
/* call.c: arguments to parameters, and the global functions (value.h). Owned by the rendering. */
#include <string.h>
#include <time.h>

#include "text/jinja/value.h"

const weft__jinja_function *weft__jinja_lookup(const weft__jinja_function *table, const weft__jinja_str *name)
{
    for (; table->name; table++) {
        if (weft__jinja_str_is(name, table->name)) return table;
    }
    return NULL;
}

weft_status weft__jinja_bind(weft__jinja_ctx *c, const char *what, const weft__jinja_args *args,
                             const char *const *names, size_t n, size_t n_required, weft__jinja_val *out)
{
    if (args->n_pos > n) return weft__jinja_fail(c, WEFT_ARGUMENT, "%s takes at most %zu arguments", what, n);
    for (size_t i = 0; i < n; i++) out[i] = i < args->n_pos ? args->pos[i] : weft__jinja_of(WEFT__JINJA_MISSING);
    for (size_t k = 0; k < args->n_named; k++) {
        const weft__jinja_str *name = args->names[k];
        size_t i = 0;
        while (i < n && !weft__jinja_str_is(name, names[i])) i++;
        int length = name->len < 60 ? (int)name->len : 60;
        if (i == n)
            return weft__jinja_fail(c, WEFT_ARGUMENT, "%s has no parameter named '%.*s'", what, length, name->data);
        if (i < args->n_pos) return weft__jinja_fail(c, WEFT_ARGUMENT, "%s is given '%s' twice", what, names[i]);
        out[i] = args->named[k];
    }
    for (size_t i = 0; i < n_required; i++) {
        if (out[i].type == WEFT__JINJA_MISSING)
            return weft__jinja_fail(c, WEFT_ARGUMENT, "%s needs '%s'", what, names[i]);
    }
    return WEFT_OK;
}

weft_status weft__jinja_no_args(weft__jinja_ctx *c, const char *what, const weft__jinja_args *args)
{
    if (args->n_pos || args->n_named) return weft__jinja_fail(c, WEFT_ARGUMENT, "%s takes no arguments", what);
    return WEFT_OK;
}

weft_status weft__jinja_want_int(weft__jinja_ctx *c, const char *what, weft__jinja_val v, int64_t otherwise,
                                 int64_t *out)
{
    if (v.type == WEFT__JINJA_MISSING) {
        *out = otherwise;
        return WEFT_OK;
    }
    if (v.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, v);
    if (!weft__jinja_is_int(v))
        return weft__jinja_fail(c, WEFT_ARGUMENT, "%s needs an int, not '%s'", what, weft__jinja_type_name(v));
    *out = v.u.i;
    return WEFT_OK;
}

/* What the sandbox lets a range have. */
#define MAX_RANGE 100000

static weft_status call_range(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                              weft__jinja_val *out)
{
    (void)self;
    int64_t n[3] = {0, 0, 1};
    if (!args->n_pos || args->n_pos > 3 || args->n_named) {
        return weft__jinja_fail(c, WEFT_ARGUMENT, "range takes one to three ints");
    }
    for (size_t i = 0; i < args->n_pos; i++) WEFT__JINJA_TRY(weft__jinja_want_int(c, "range", args->pos[i], 0, &n[i]));
    if (args->n_pos == 1) {
        n[1] = n[0];
        n[0] = 0;
    }
    if (!n[2]) return weft__jinja_fail(c, WEFT_ARGUMENT, "range's step cannot be zero");
    weft__jinja_val range;
    WEFT__JINJA_TRY(weft__jinja_new_range(c, n[0], n[1], n[2], &range));
    if (range.u.range->n > MAX_RANGE)
        return weft__jinja_fail(c, WEFT_LIMIT, "a range has more than %d items", MAX_RANGE);
    *out = range;
    return WEFT_OK;
}

/* dict(mapping or pairs, name=value ...), also what namespace() takes. */
static weft_status call_dict(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                             weft__jinja_val *out)
{
    (void)self;
    weft__jinja_val dict, pairs, pair;
    WEFT__JINJA_TRY(weft__jinja_new_dict(c, &dict));
    if (args->n_pos > 1) return weft__jinja_fail(c, WEFT_ARGUMENT, "dict takes at most one positional argument");
    if (args->n_pos) {
        pairs = args->pos[0];
        if (pairs.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, pairs);
        if (pairs.type == WEFT__JINJA_DICT) {
            pairs.type = WEFT__JINJA_VIEW;
            pairs.aux = WEFT__JINJA_ITEMS;
        }
        WEFT__JINJA_TRY(weft__jinja_to_list(c, pairs, WEFT__JINJA_LIST, &pairs));
        for (size_t i = 0; i < pairs.u.list->n; i++) {
            WEFT__JINJA_TRY(weft__jinja_to_list(c, pairs.u.list->items[i], WEFT__JINJA_LIST, &pair));
            if (pair.u.list->n != 2) return weft__jinja_fail(c, WEFT_ARGUMENT, "dict needs pairs");
            WEFT__JINJA_TRY(weft__jinja_dict_set(c, dict.u.dict, pair.u.list->items[0], pair.u.list->items[1]));
        }
    }
    for (size_t i = 0; i < args->n_named; i++) {
        WEFT__JINJA_TRY(weft__jinja_dict_set(c, dict.u.dict, weft__jinja_of_str(args->names[i]), args->named[i]));
    }
    *out = dict;
    return WEFT_OK;
}

static weft_status call_namespace(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                                  weft__jinja_val *out)
{
    WEFT__JINJA_TRY(call_dict(c, self, args, out));
    out->type = WEFT__JINJA_NAMESPACE;
    return WEFT_OK;
}

static weft_status new_object(weft__jinja_ctx *c, int is_joiner, weft__jinja_val items, weft__jinja_val *out)
{
    weft__jinja_object *object = weft__jinja_alloc(c, sizeof *object);
    if (!object) return WEFT__JINJA_NO_ROOM(c);
    *object = (weft__jinja_object){.is_joiner = is_joiner, .items = items};
    *out = weft__jinja_of(WEFT__JINJA_OBJECT);
    out->u.object = object;
    return WEFT_OK;
}

static weft_status call_cycler(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    (void)self;
    weft__jinja_val items;
    if (!args->n_pos || args->n_named)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "cycler needs the items to cycle through");
    WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_TUPLE, args->n_pos, &items));
    for (size_t i = 0; i < args->n_pos; i++) WEFT__JINJA_TRY(weft__jinja_append(c, items.u.list, args->pos[i]));
    return new_object(c, 0, items, out);
}

static weft_status call_joiner(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    (void)self;
    static const char *const names[] = {"sep"};
    weft__jinja_val separator;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "joiner", args, names, 1, 0, &separator));
    if (separator.type == WEFT__JINJA_MISSING) WEFT__JINJA_TRY(weft__jinja_literal(c, ", ", &separator));
    return new_object(c, 1, separator, out);
}

static weft_status cycler_next(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    weft__jinja_object *object = self.u.object;
    if (object->is_joiner || args->n_pos || args->n_named)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "next() takes no arguments");
    *out = object->items.u.list->items[object->at];
    object->at = (object->at + 1) % object->items.u.list->n;
    return WEFT_OK;
}

static weft_status cycler_reset(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                                weft__jinja_val *out)
{
    if (args->n_pos || args->n_named) return weft__jinja_fail(c, WEFT_ARGUMENT, "reset() takes no arguments");
    self.u.object->at = 0;
    *out = weft__jinja_none();
    return WEFT_OK;
}

const weft__jinja_function *weft__jinja_object_method(const weft__jinja_str *name)
{
    static const weft__jinja_function table[] = {{"next", cycler_next}, {"reset", cycler_reset}, {NULL, NULL}};
    return weft__jinja_lookup(table, name);
}

static weft_status call_raise(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                              weft__jinja_val *out)
{
    (void)self, (void)out;
    static const char *const names[] = {"message"};
    weft__jinja_val message;
    const weft__jinja_str *text;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "raise_exception", args, names, 1, 1, &message));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, message, &text));
    int n = text->len < WEFT_ERROR_TEXT ? (int)text->len : WEFT_ERROR_TEXT;
    return weft__jinja_fail(c, WEFT_ARGUMENT, "the template refuses: %.*s", n, text->data);
}

/* datetime writes %f itself, and nothing for %z and %Z since its time has no zone; the rest is the C library's. */
static weft_status expand_format(weft__jinja_ctx *c, const weft__jinja_str *s, weft__jinja_buf *b)
{
    for (size_t i = 0; i < s->len; i++) {
        char next = i + 1 < s->len ? s->data[i + 1] : 0;
        if (s->data[i] != '%' || !next) {
            WEFT__JINJA_TRY(weft__jinja_put(c, b, s->data + i, 1, 0));
            continue;
        }
        i++;
        if (next == 'f') WEFT__JINJA_TRY(weft__jinja_puts(c, b, "000000"));
        if (next != 'f' && next != 'z' && next != 'Z') WEFT__JINJA_TRY(weft__jinja_put(c, b, s->data + i - 1, 2, 0));
    }
    return weft__jinja_put(c, b, "\001", 2, 0); /* tells an empty result from one too long; and the NUL */
}

static weft_status call_strftime(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                                 weft__jinja_val *out)
{
    (void)self;
    static const char *const names[] = {"format"};
    weft__jinja_val format;
    weft__jinja_buf b = {0};
    char text[1024];
    struct tm tm;
    time_t now = (time_t)c->now;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "strftime_now", args, names, 1, 1, &format));
    if (format.type != WEFT__JINJA_STRING) return weft__jinja_fail(c, WEFT_ARGUMENT, "strftime_now needs a string");
    if (memchr(format.u.s->data, 0, format.u.s->len))
        return weft__jinja_fail(c, WEFT_ARGUMENT, "a time format holds a NUL");
    WEFT__JINJA_TRY(expand_format(c, format.u.s, &b));
    if (!localtime_r(&now, &tm)) return weft__jinja_fail(c, WEFT_ARGUMENT, "the time is out of range");
    size_t n = strftime(text, sizeof text, b.data, &tm);
    if (!n) return weft__jinja_fail(c, WEFT_LIMIT, "a formatted time is too long");
    return weft__jinja_string_copy(c, text, n - 1, weft__jinja_str_any_user(format.u.s), out);
}

const weft__jinja_function *weft__jinja_global(const weft__jinja_str *name)
{
    static const weft__jinja_function table[] = {
        {"namespace", call_namespace},
        {"raise_exception", call_raise},
        {"range", call_range},
        {"strftime_now", call_strftime},
        {"dict", call_dict},
        {"cycler", call_cycler},
        {"joiner", call_joiner},
        {"lipsum", NULL},
        {NULL, NULL},
    };
    return weft__jinja_lookup(table, name);
}
