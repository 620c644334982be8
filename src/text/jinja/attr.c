// SPDX-License-Identifier: Apache-2.0
/* attr.c: attributes, items and slices, in the order in which jinja2 tries them (value.h).
 * A dot looks for a method first and an item second, brackets the other way round; what is not there is undefined, and
 * only asking something of an undefined value fails. */
#include <string.h>

#include "text/jinja/loop.h"
#include "text/jinja/value.h"

static const weft__jinja_function *method_of(weft__jinja_val v, const weft__jinja_str *name)
{
    switch (v.type) {
    case WEFT__JINJA_STRING: return weft__jinja_str_method(name);
    case WEFT__JINJA_LIST:
    case WEFT__JINJA_TUPLE:
    case WEFT__JINJA_DICT: return weft__jinja_container_method((weft__jinja_type)v.type, name);
    case WEFT__JINJA_OBJECT: return weft__jinja_object_method(name);
    default: return NULL;
    }
}

/* Methods that change their container; the sandbox hides them. list.pop is missing from jinja2's own list. */
static int is_mutator(weft__jinja_type type, const weft__jinja_str *name)
{
    static const char *const of_list[] = {"append", "reverse", "insert", "sort", "extend", "remove", NULL};
    static const char *const of_dict[] = {"clear", "pop", "popitem", "setdefault", "update", NULL};
    const char *const *names = type == WEFT__JINJA_LIST ? of_list : type == WEFT__JINJA_DICT ? of_dict : of_list + 6;
    for (; *names; names++) {
        if (weft__jinja_str_is(name, *names)) return 1;
    }
    return 0;
}

/* The attribute `name` of v itself; *found says whether it has one. */
static weft_status own_attribute(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_str *name, int *found,
                                 weft__jinja_val *out)
{
    *found = 1;
    if (v.type == WEFT__JINJA_LOOP) return weft__jinja_loop_attribute(c, v.u.loop, name, found, out);
    if (v.type == WEFT__JINJA_NAMESPACE) {
        weft__jinja_entry *e;
        WEFT__JINJA_TRY(weft__jinja_dict_find(c, v.u.dict, weft__jinja_of_str(name), &e));
        *found = e != NULL;
        if (e) *out = name->len && name->data[0] == '_' ? weft__jinja_undefined(v, name) : e->value;
        return WEFT_OK;
    }
    if (v.type == WEFT__JINJA_TUPLE && v.aux &&
        (weft__jinja_str_is(name, "grouper") || weft__jinja_str_is(name, "list"))) {
        *out = v.u.list->items[name->data[0] == 'l'];
        return WEFT_OK;
    }
    const weft__jinja_function *f = method_of(v, name);
    *found = f != NULL;
    if (!f) return WEFT_OK;
    if (!c->allow_mutation && is_mutator((weft__jinja_type)v.type, name)) {
        *out = weft__jinja_undefined(v, name);
        return WEFT_OK;
    }
    weft__jinja_method *method = weft__jinja_alloc(c, sizeof *method);
    if (!method) return WEFT__JINJA_NO_ROOM(c);
    *method = (weft__jinja_method){.self = v, .function = f};
    *out = weft__jinja_of(WEFT__JINJA_METHOD);
    out->u.method = method;
    return WEFT_OK;
}

/* v[key] without a fallback. */
static weft_status own_item(weft__jinja_ctx *c, weft__jinja_val v, weft__jinja_val key, int *found,
                            weft__jinja_val *out)
{
    *found = 0;
    if (v.type == WEFT__JINJA_DICT) {
        if (!weft__jinja_hashable(key)) return WEFT_OK;
        weft__jinja_entry *e;
        WEFT__JINJA_TRY(weft__jinja_dict_find(c, v.u.dict, key, &e));
        *found = e != NULL;
        if (e) *out = e->value;
        return WEFT_OK;
    }
    if (!weft__jinja_is_int(key)) return WEFT_OK;
    if (v.type != WEFT__JINJA_STRING && v.type != WEFT__JINJA_LIST && v.type != WEFT__JINJA_TUPLE &&
        v.type != WEFT__JINJA_RANGE)
        return WEFT_OK;
    size_t n = weft__jinja_len(v);
    int64_t i = key.u.i < 0 ? key.u.i + (int64_t)n : key.u.i;
    if (i < 0 || (uint64_t)i >= n) return WEFT_OK;
    *found = 1;
    if (v.type == WEFT__JINJA_STRING) {
        WEFT__JINJA_TRY(weft__jinja_spend(c, v.u.s->n_chars == v.u.s->len ? 1 : (uint64_t)i / 16));
        size_t from = weft__jinja_str_offset(v.u.s, (size_t)i), to = from + 1;
        while (to < v.u.s->len && ((unsigned char)v.u.s->data[to] & 0xC0) == 0x80) to++;
        return weft__jinja_slice(c, v.u.s, from, to, out);
    }
    *out = v.type == WEFT__JINJA_RANGE ? weft__jinja_int(v.u.range->start + v.u.range->step * i) : v.u.list->items[i];
    return WEFT_OK;
}

weft_status weft__jinja_getattr(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_str *name,
                                weft__jinja_val *out)
{
    int found;
    if (v.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, v);
    WEFT__JINJA_TRY(own_attribute(c, v, name, &found, out));
    if (!found) WEFT__JINJA_TRY(own_item(c, v, weft__jinja_of_str(name), &found, out));
    if (!found) *out = weft__jinja_undefined(v, name);
    return WEFT_OK;
}

weft_status weft__jinja_getitem(weft__jinja_ctx *c, weft__jinja_val v, weft__jinja_val key, weft__jinja_val *out)
{
    int found;
    if (v.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, v);
    WEFT__JINJA_TRY(own_item(c, v, key, &found, out));
    if (!found && key.type == WEFT__JINJA_STRING) WEFT__JINJA_TRY(own_attribute(c, v, key.u.s, &found, out));
    if (!found) *out = weft__jinja_undefined(v, key.type == WEFT__JINJA_STRING ? key.u.s : NULL);
    return WEFT_OK;
}

/* Python's slice.indices: the first index, the one to stop before, and the step. */
static void slice_bounds(int64_t n, weft__jinja_val start, weft__jinja_val stop, int64_t step, int64_t *from,
                         int64_t *to)
{
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    *from = step < 0 ? high : low;
    *to = step < 0 ? low : high;
    const weft__jinja_val given[2] = {start, stop};
    int64_t *bounds[2] = {from, to};
    for (int i = 0; i < 2; i++) {
        if (given[i].type == WEFT__JINJA_NONE) continue;
        int64_t at = given[i].u.i;
        if (at < 0) at = at < -n ? low : at + n;
        *bounds[i] = at < low ? low : at > high ? high : at;
    }
}

static weft_status slice_string(weft__jinja_ctx *c, const weft__jinja_str *s, int64_t from, int64_t to, int64_t step,
                                weft__jinja_val *out)
{
    if (step == 1) {
        if (to < from) to = from;
        WEFT__JINJA_TRY(weft__jinja_spend(c, s->len / 16));
        return weft__jinja_slice(c, s, weft__jinja_str_offset(s, (size_t)from), weft__jinja_str_offset(s, (size_t)to),
                                 out);
    }
    /* Offsets of all characters, since a step may walk them in any order. */
    size_t *offsets = weft__jinja_alloc_array(c, s->n_chars + 1, sizeof *offsets), n = 0;
    if (!offsets) return WEFT__JINJA_NO_ROOM(c);
    WEFT__JINJA_TRY(weft__jinja_spend(c, s->len / 4));
    for (size_t i = 0; i < s->len; i++) {
        if (((unsigned char)s->data[i] & 0xC0) != 0x80) offsets[n++] = i;
    }
    offsets[n] = s->len;
    weft__jinja_buf b = {0};
    weft__jinja_val text;
    for (int64_t i = from; step > 0 ? i < to : i > to;) {
        WEFT__JINJA_TRY(weft__jinja_put_slice(c, &b, s, offsets[i], offsets[i + 1]));
        if (__builtin_add_overflow(i, step, &i)) break;
    }
    WEFT__JINJA_TRY(weft__jinja_buf_finish(c, &b, &text));
    return weft__jinja_markup(c, text.u.s, s->markup, out);
}

static weft_status slice_range(weft__jinja_ctx *c, const weft__jinja_range *r, int64_t from, int64_t to, int64_t step,
                               weft__jinja_val *out)
{
    int64_t first, last, stride;
    if (__builtin_mul_overflow(r->step, from, &first) || __builtin_add_overflow(first, r->start, &first) ||
        __builtin_mul_overflow(r->step, to, &last) || __builtin_add_overflow(last, r->start, &last) ||
        __builtin_mul_overflow(r->step, step, &stride)) {
        return weft__jinja_fail(c, WEFT_LIMIT, "an integer exceeds 64 bits");
    }
    return weft__jinja_new_range(c, first, last, stride, out);
}

weft_status weft__jinja_getslice(weft__jinja_ctx *c, weft__jinja_val v, weft__jinja_val start, weft__jinja_val stop,
                                 weft__jinja_val step, weft__jinja_val *out)
{
    if (v.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, v);
    const weft__jinja_val parts[3] = {start, stop, step};
    int usable = v.type == WEFT__JINJA_STRING || v.type == WEFT__JINJA_LIST || v.type == WEFT__JINJA_TUPLE ||
                 v.type == WEFT__JINJA_RANGE;
    for (int i = 0; i < 3; i++) usable &= parts[i].type == WEFT__JINJA_NONE || weft__jinja_is_int(parts[i]);
    if (!usable) return weft__jinja_fail(c, WEFT_ARGUMENT, "'%s' cannot be sliced so", weft__jinja_type_name(v));
    int64_t stride = step.type == WEFT__JINJA_NONE ? 1 : step.u.i, from, to;
    if (!stride) return weft__jinja_fail(c, WEFT_ARGUMENT, "a slice's step cannot be zero");
    slice_bounds((int64_t)weft__jinja_len(v), start, stop, stride, &from, &to);
    if (v.type == WEFT__JINJA_STRING) return slice_string(c, v.u.s, from, to, stride, out);
    if (v.type == WEFT__JINJA_RANGE) return slice_range(c, v.u.range, from, to, stride, out);
    weft__jinja_val list;
    WEFT__JINJA_TRY(
        weft__jinja_new_list(c, v.type == WEFT__JINJA_TUPLE ? WEFT__JINJA_TUPLE : WEFT__JINJA_LIST, 0, &list));
    for (int64_t i = from; stride > 0 ? i < to : i > to;) {
        weft__jinja_val item;
        int found;
        WEFT__JINJA_TRY(own_item(c, v, weft__jinja_int(i), &found, &item));
        WEFT__JINJA_TRY(weft__jinja_append(c, list.u.list, item));
        if (__builtin_add_overflow(i, stride, &i)) break;
    }
    *out = list;
    return WEFT_OK;
}

weft_status weft__jinja_getpath(weft__jinja_ctx *c, weft__jinja_val v, weft__jinja_val path, weft__jinja_val *out)
{
    if (path.type != WEFT__JINJA_STRING) {
        if (path.type == WEFT__JINJA_NONE || path.type == WEFT__JINJA_MISSING) {
            *out = v;
            return WEFT_OK;
        }
        return weft__jinja_getitem(c, v, path, out);
    }
    const weft__jinja_str *s = path.u.s;
    for (size_t from = 0; from <= s->len;) {
        size_t to = weft__jinja_find(s->data, from, s->len, ".", 1);
        if (to == SIZE_MAX) to = s->len;
        weft__jinja_val part;
        WEFT__JINJA_TRY(weft__jinja_slice(c, s, from, to, &part));
        int64_t number = 0;
        int digits = to > from && to - from < 18;
        for (size_t i = from; i < to && digits; i++) {
            digits = s->data[i] >= '0' && s->data[i] <= '9';
            if (digits) number = number * 10 + (s->data[i] - '0');
        }
        WEFT__JINJA_TRY(weft__jinja_getitem(c, v, digits ? weft__jinja_int(number) : part, &v));
        from = to + 1;
    }
    *out = v;
    return WEFT_OK;
}
