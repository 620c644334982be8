/* attr.c: attributes, items and slices, in the order in which jinja2 tries them (value.h).
 * A dot looks for a method first and an item second, brackets the other way round; what is not there is undefined, and only
 * asking something of an undefined value fails. */
#include <string.h>

#include "text/jinja/loop.h"
#include "text/jinja/value.h"

static const weft__jfunction *method_of(weft__jval v, const weft__jstr *name)
{
    switch (v.type) {
    case WEFT__J_STRING: return weft__j_str_method(name);
    case WEFT__J_LIST:
    case WEFT__J_TUPLE:
    case WEFT__J_DICT: return weft__j_container_method((weft__jtype)v.type, name);
    case WEFT__J_OBJECT: return weft__j_object_method(name);
    default: return NULL;
    }
}

/* Methods that change their container; the sandbox hides them. list.pop is missing from jinja2's own list. */
static int is_mutator(weft__jtype type, const weft__jstr *name)
{
    static const char *const of_list[] = {"append", "reverse", "insert", "sort", "extend", "remove", NULL};
    static const char *const of_dict[] = {"clear", "pop", "popitem", "setdefault", "update", NULL};
    const char *const *names = type == WEFT__J_LIST ? of_list : type == WEFT__J_DICT ? of_dict : of_list + 6;
    for (; *names; names++) {
        if (weft__j_str_is(name, *names)) return 1;
    }
    return 0;
}

/* The attribute `name` of v itself; *found says whether it has one. */
static weft_status own_attribute(weft__jctx *c, weft__jval v, const weft__jstr *name, int *found, weft__jval *out)
{
    *found = 1;
    if (v.type == WEFT__J_LOOP) return weft__j_loop_attribute(c, v.u.loop, name, found, out);
    if (v.type == WEFT__J_NAMESPACE) {
        weft__jentry *e;
        WEFT__J_TRY(weft__j_dict_find(c, v.u.dict, weft__j_of_str(name), &e));
        *found = e != NULL;
        if (e) *out = name->len && name->data[0] == '_' ? weft__j_undefined(v, name) : e->value;
        return WEFT_OK;
    }
    if (v.type == WEFT__J_TUPLE && v.aux && (weft__j_str_is(name, "grouper") || weft__j_str_is(name, "list"))) {
        *out = v.u.list->items[name->data[0] == 'l'];
        return WEFT_OK;
    }
    const weft__jfunction *f = method_of(v, name);
    *found = f != NULL;
    if (!f) return WEFT_OK;
    if (!c->allow_mutation && is_mutator((weft__jtype)v.type, name)) {
        *out = weft__j_undefined(v, name);
        return WEFT_OK;
    }
    weft__jmethod *method = weft__j_alloc(c, sizeof *method);
    if (!method) return WEFT__J_NO_ROOM(c);
    *method = (weft__jmethod){.self = v, .function = f};
    *out = weft__j_of(WEFT__J_METHOD);
    out->u.method = method;
    return WEFT_OK;
}

/* v[key] without a fallback. */
static weft_status own_item(weft__jctx *c, weft__jval v, weft__jval key, int *found, weft__jval *out)
{
    *found = 0;
    if (v.type == WEFT__J_DICT) {
        if (!weft__j_hashable(key)) return WEFT_OK;
        weft__jentry *e;
        WEFT__J_TRY(weft__j_dict_find(c, v.u.dict, key, &e));
        *found = e != NULL;
        if (e) *out = e->value;
        return WEFT_OK;
    }
    if (!weft__j_is_int(key)) return WEFT_OK;
    if (v.type != WEFT__J_STRING && v.type != WEFT__J_LIST && v.type != WEFT__J_TUPLE && v.type != WEFT__J_RANGE) return WEFT_OK;
    size_t n = weft__j_len(v);
    int64_t i = key.u.i < 0 ? key.u.i + (int64_t)n : key.u.i;
    if (i < 0 || (uint64_t)i >= n) return WEFT_OK;
    *found = 1;
    if (v.type == WEFT__J_STRING) {
        WEFT__J_TRY(weft__j_spend(c, v.u.s->n_chars == v.u.s->len ? 1 : (uint64_t)i / 16));
        size_t from = weft__j_str_offset(v.u.s, (size_t)i), to = from + 1;
        while (to < v.u.s->len && ((unsigned char)v.u.s->data[to] & 0xC0) == 0x80) to++;
        return weft__j_slice(c, v.u.s, from, to, out);
    }
    *out = v.type == WEFT__J_RANGE ? weft__j_int(v.u.range->start + v.u.range->step * i) : v.u.list->items[i];
    return WEFT_OK;
}

weft_status weft__j_getattr(weft__jctx *c, weft__jval v, const weft__jstr *name, weft__jval *out)
{
    int found;
    if (v.type == WEFT__J_UNDEFINED) return weft__j_fail_undefined(c, v);
    WEFT__J_TRY(own_attribute(c, v, name, &found, out));
    if (!found) WEFT__J_TRY(own_item(c, v, weft__j_of_str(name), &found, out));
    if (!found) *out = weft__j_undefined(v, name);
    return WEFT_OK;
}

weft_status weft__j_getitem(weft__jctx *c, weft__jval v, weft__jval key, weft__jval *out)
{
    int found;
    if (v.type == WEFT__J_UNDEFINED) return weft__j_fail_undefined(c, v);
    WEFT__J_TRY(own_item(c, v, key, &found, out));
    if (!found && key.type == WEFT__J_STRING) WEFT__J_TRY(own_attribute(c, v, key.u.s, &found, out));
    if (!found) *out = weft__j_undefined(v, key.type == WEFT__J_STRING ? key.u.s : NULL);
    return WEFT_OK;
}

/* Python's slice.indices: the first index, the one to stop before, and the step. */
static void slice_bounds(int64_t n, weft__jval start, weft__jval stop, int64_t step, int64_t *from, int64_t *to)
{
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    *from = step < 0 ? high : low;
    *to = step < 0 ? low : high;
    const weft__jval given[2] = {start, stop};
    int64_t *bounds[2] = {from, to};
    for (int i = 0; i < 2; i++) {
        if (given[i].type == WEFT__J_NONE) continue;
        int64_t at = given[i].u.i;
        if (at < 0) at = at < -n ? low : at + n;
        *bounds[i] = at < low ? low : at > high ? high : at;
    }
}

static weft_status slice_string(weft__jctx *c, const weft__jstr *s, int64_t from, int64_t to, int64_t step, weft__jval *out)
{
    if (step == 1) {
        if (to < from) to = from;
        WEFT__J_TRY(weft__j_spend(c, s->len / 16));
        return weft__j_slice(c, s, weft__j_str_offset(s, (size_t)from), weft__j_str_offset(s, (size_t)to), out);
    }
    /* Offsets of all characters, since a step may walk them in any order. */
    size_t *offsets = weft__j_alloc_array(c, s->n_chars + 1, sizeof *offsets), n = 0;
    if (!offsets) return WEFT__J_NO_ROOM(c);
    WEFT__J_TRY(weft__j_spend(c, s->len / 4));
    for (size_t i = 0; i < s->len; i++) {
        if (((unsigned char)s->data[i] & 0xC0) != 0x80) offsets[n++] = i;
    }
    offsets[n] = s->len;
    weft__jbuf b = {0};
    weft__jval text;
    for (int64_t i = from; step > 0 ? i < to : i > to;) {
        WEFT__J_TRY(weft__j_put_slice(c, &b, s, offsets[i], offsets[i + 1]));
        if (__builtin_add_overflow(i, step, &i)) break;
    }
    WEFT__J_TRY(weft__j_buf_finish(c, &b, &text));
    return weft__j_markup(c, text.u.s, s->markup, out);
}

static weft_status slice_range(weft__jctx *c, const weft__jrange *r, int64_t from, int64_t to, int64_t step, weft__jval *out)
{
    int64_t first, last, stride;
    if (__builtin_mul_overflow(r->step, from, &first) || __builtin_add_overflow(first, r->start, &first) ||
        __builtin_mul_overflow(r->step, to, &last) || __builtin_add_overflow(last, r->start, &last) ||
        __builtin_mul_overflow(r->step, step, &stride)) {
        return weft__j_fail(c, WEFT_LIMIT, "an integer exceeds 64 bits");
    }
    return weft__j_range(c, first, last, stride, out);
}

weft_status weft__j_getslice(weft__jctx *c, weft__jval v, weft__jval start, weft__jval stop, weft__jval step, weft__jval *out)
{
    if (v.type == WEFT__J_UNDEFINED) return weft__j_fail_undefined(c, v);
    const weft__jval parts[3] = {start, stop, step};
    int usable = v.type == WEFT__J_STRING || v.type == WEFT__J_LIST || v.type == WEFT__J_TUPLE || v.type == WEFT__J_RANGE;
    for (int i = 0; i < 3; i++) usable &= parts[i].type == WEFT__J_NONE || weft__j_is_int(parts[i]);
    if (!usable) return weft__j_fail(c, WEFT_ARGUMENT, "'%s' cannot be sliced so", weft__j_type_name(v));
    int64_t stride = step.type == WEFT__J_NONE ? 1 : step.u.i, from, to;
    if (!stride) return weft__j_fail(c, WEFT_ARGUMENT, "a slice's step cannot be zero");
    slice_bounds((int64_t)weft__j_len(v), start, stop, stride, &from, &to);
    if (v.type == WEFT__J_STRING) return slice_string(c, v.u.s, from, to, stride, out);
    if (v.type == WEFT__J_RANGE) return slice_range(c, v.u.range, from, to, stride, out);
    weft__jval list;
    WEFT__J_TRY(weft__j_new_list(c, v.type == WEFT__J_TUPLE ? WEFT__J_TUPLE : WEFT__J_LIST, 0, &list));
    for (int64_t i = from; stride > 0 ? i < to : i > to;) {
        weft__jval item;
        int found;
        WEFT__J_TRY(own_item(c, v, weft__j_int(i), &found, &item));
        WEFT__J_TRY(weft__j_append(c, list.u.list, item));
        if (__builtin_add_overflow(i, stride, &i)) break;
    }
    *out = list;
    return WEFT_OK;
}

weft_status weft__j_getpath(weft__jctx *c, weft__jval v, weft__jval path, weft__jval *out)
{
    if (path.type != WEFT__J_STRING) {
        if (path.type == WEFT__J_NONE || path.type == WEFT__J_MISSING) {
            *out = v;
            return WEFT_OK;
        }
        return weft__j_getitem(c, v, path, out);
    }
    const weft__jstr *s = path.u.s;
    for (size_t from = 0; from <= s->len;) {
        size_t to = weft__j_find(s->data, from, s->len, ".", 1);
        if (to == SIZE_MAX) to = s->len;
        weft__jval part;
        WEFT__J_TRY(weft__j_slice(c, s, from, to, &part));
        int64_t number = 0;
        int digits = to > from && to - from < 18;
        for (size_t i = from; i < to && digits; i++) {
            digits = s->data[i] >= '0' && s->data[i] <= '9';
            if (digits) number = number * 10 + (s->data[i] - '0');
        }
        WEFT__J_TRY(weft__j_getitem(c, v, digits ? weft__j_int(number) : part, &v));
        from = to + 1;
    }
    *out = v;
    return WEFT_OK;
}
