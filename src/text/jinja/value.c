// SPDX-License-Identifier: Apache-2.0
/* value.c: Python's containers and their comparison (value.h). Owned by the rendering.
 * Anything that can nest counts its depth and anything that can be long spends steps, also where no template node is
 * visited. */
#include <math.h>
#include <string.h>

#include "text/jinja/value.h"

const char *weft__jinja_type_name(weft__jinja_val v)
{
    static const char *const names[] = {
        [WEFT__JINJA_MISSING] = "missing", [WEFT__JINJA_UNDEFINED] = "Undefined",
        [WEFT__JINJA_NONE] = "None",       [WEFT__JINJA_BOOL] = "bool",
        [WEFT__JINJA_INT] = "int",         [WEFT__JINJA_FLOAT] = "float",
        [WEFT__JINJA_STRING] = "str",      [WEFT__JINJA_LIST] = "list",
        [WEFT__JINJA_TUPLE] = "tuple",     [WEFT__JINJA_DICT] = "dict",
        [WEFT__JINJA_VIEW] = "dict view",  [WEFT__JINJA_RANGE] = "range",
        [WEFT__JINJA_ITER] = "generator",  [WEFT__JINJA_NAMESPACE] = "Namespace",
        [WEFT__JINJA_MACRO] = "Macro",     [WEFT__JINJA_FUNCTION] = "function",
        [WEFT__JINJA_METHOD] = "method",   [WEFT__JINJA_LOOP] = "LoopContext",
        [WEFT__JINJA_OBJECT] = "object",
    };
    return names[v.type];
}

weft__jinja_val weft__jinja_undefined(weft__jinja_val owner, const weft__jinja_str *name)
{
    weft__jinja_val v = {.type = WEFT__JINJA_UNDEFINED, .aux = owner.type, .u.s = name};
    return v;
}

void weft__jinja_tell_undefined(weft__jinja_ctx *c, weft__jinja_val v)
{
    const weft__jinja_str *name = v.u.s;
    weft__jinja_val owner = {.type = v.aux};
    int n = !name ? 0 : name->len < 100 ? (int)name->len : 100;
    if (!name) {
        weft__jinja_fail_with(c, WEFT_ARGUMENT, "the value is undefined");
    } else if (v.aux == WEFT__JINJA_MISSING) {
        weft__jinja_fail_with(c, WEFT_ARGUMENT, "'%.*s' is undefined", n, name->data);
    } else {
        weft__jinja_fail_with(c, WEFT_ARGUMENT, "'%s' has no attribute '%.*s'", weft__jinja_type_name(owner), n,
                              name->data);
    }
}

/* ---- lists ---- */

weft_status weft__jinja_new_list(weft__jinja_ctx *c, weft__jinja_type type, size_t capacity, weft__jinja_val *out)
{
    weft__jinja_list *list = weft__jinja_alloc(c, sizeof *list);
    if (!list) return WEFT__JINJA_NO_ROOM(c);
    memset(list, 0, sizeof *list);
    if (capacity) WEFT__JINJA_TRY(weft__jinja_grow(c, &list->items, &list->capacity, capacity, sizeof *list->items));
    *out = weft__jinja_of(type);
    out->u.list = list;
    return WEFT_OK;
}

weft_status weft__jinja_append(weft__jinja_ctx *c, weft__jinja_list *list, weft__jinja_val v)
{
    WEFT__JINJA_TRY(weft__jinja_spend(c, 1));
    WEFT__JINJA_TRY(weft__jinja_grow(c, &list->items, &list->capacity, list->n + 1, sizeof *list->items));
    list->items[list->n++] = v;
    return WEFT_OK;
}

weft_status weft__jinja_pair(weft__jinja_ctx *c, weft__jinja_val a, weft__jinja_val b, weft__jinja_val *out)
{
    WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_TUPLE, 2, out));
    out->u.list->items[0] = a;
    out->u.list->items[1] = b;
    out->u.list->n = 2;
    return WEFT_OK;
}

weft_status weft__jinja_new_range(weft__jinja_ctx *c, int64_t start, int64_t stop, int64_t step, weft__jinja_val *out)
{
    weft__jinja_range *range = weft__jinja_alloc(c, sizeof *range);
    if (!range) return WEFT__JINJA_NO_ROOM(c);
    uint64_t distance = 0, stride = step > 0 ? (uint64_t)step : -(uint64_t)step;
    if (step > 0 && start < stop) distance = (uint64_t)stop - (uint64_t)start;
    if (step < 0 && start > stop) distance = (uint64_t)start - (uint64_t)stop;
    range->start = start;
    range->stop = stop;
    range->step = step;
    range->n = (size_t)(distance / stride + (distance % stride != 0));
    *out = weft__jinja_of(WEFT__JINJA_RANGE);
    out->u.range = range;
    return WEFT_OK;
}

/* ---- dicts ---- */

static int hashable_within(weft__jinja_val v, int depth)
{
    if (v.type == WEFT__JINJA_LIST || v.type == WEFT__JINJA_DICT || v.type == WEFT__JINJA_VIEW) return 0;
    if (v.type != WEFT__JINJA_TUPLE || !depth) return 1; /* deeper ones are found out by hashing */
    for (size_t i = 0; i < v.u.list->n; i++) {
        if (!hashable_within(v.u.list->items[i], depth - 1)) return 0;
    }
    return 1;
}

int weft__jinja_hashable(weft__jinja_val v)
{
    return hashable_within(v, 4);
}

static uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= UINT64_C(0xd6e8feb86659fd93);
    h ^= h >> 32;
    return h;
}

static uint64_t hash_bytes(const char *data, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)data[i]) * UINT64_C(0x100000001b3);
    return mix(h);
}

/* Numbers that are equal have equal hashes whatever their type. */
static uint64_t hash_number(weft__jinja_val v)
{
    if (v.type != WEFT__JINJA_FLOAT) return mix((uint64_t)v.u.i);
    if (v.u.f >= -9e18 && v.u.f <= 9e18 && v.u.f == floor(v.u.f)) return mix((uint64_t)(int64_t)v.u.f);
    uint64_t bits;
    memcpy(&bits, &v.u.f, sizeof bits);
    return mix(bits);
}

static weft_status hash_value(weft__jinja_ctx *c, weft__jinja_val v, uint64_t *out)
{
    switch (v.type) {
    case WEFT__JINJA_STRING: *out = hash_bytes(v.u.s->data, v.u.s->len); return weft__jinja_spend(c, v.u.s->len / 64);
    case WEFT__JINJA_BOOL:
    case WEFT__JINJA_INT:
    case WEFT__JINJA_FLOAT: *out = hash_number(v); return WEFT_OK;
    case WEFT__JINJA_NONE:
    case WEFT__JINJA_UNDEFINED: *out = v.type; return WEFT_OK;
    case WEFT__JINJA_TUPLE: break;
    case WEFT__JINJA_LIST:
    case WEFT__JINJA_DICT:
    case WEFT__JINJA_VIEW: return weft__jinja_fail(c, WEFT_ARGUMENT, "a %s cannot be a key", weft__jinja_type_name(v));
    default: *out = mix((uint64_t)(uintptr_t)v.u.p); return WEFT_OK;
    }
    uint64_t h = v.u.list->n;
    WEFT__JINJA_TRY(weft__jinja_enter(c));
    for (size_t i = 0; i < v.u.list->n; i++) {
        uint64_t item;
        WEFT__JINJA_TRY(weft__jinja_spend(c, 1));
        WEFT__JINJA_TRY(hash_value(c, v.u.list->items[i], &item));
        h = mix(h * 31 + item);
    }
    weft__jinja_leave(c);
    *out = h;
    return WEFT_OK;
}

weft_status weft__jinja_new_dict(weft__jinja_ctx *c, weft__jinja_val *out)
{
    weft__jinja_dict *d = weft__jinja_alloc(c, sizeof *d);
    if (!d) return WEFT__JINJA_NO_ROOM(c);
    memset(d, 0, sizeof *d);
    *out = weft__jinja_of(WEFT__JINJA_DICT);
    out->u.dict = d;
    return WEFT_OK;
}

#define PLAIN_DICT 8 /* up to so many entries are searched without an index */

static void index_entry(weft__jinja_dict *d, size_t i)
{
    size_t at = d->entries[i].hash & (d->n_index - 1);
    while (d->index[at]) at = (at + 1) & (d->n_index - 1);
    d->index[at] = (uint32_t)i + 1;
}

static weft_status rebuild_index(weft__jinja_ctx *c, weft__jinja_dict *d)
{
    size_t n = 32;
    while (n < d->n * 3) n *= 2;
    uint32_t *index = weft__jinja_alloc_array(c, n, sizeof *index);
    if (!index) return WEFT__JINJA_NO_ROOM(c);
    memset(index, 0, n * sizeof *index);
    d->index = index;
    d->n_index = n;
    for (size_t i = 0; i < d->n; i++) index_entry(d, i);
    return WEFT_OK;
}

static weft_status entry_matches(weft__jinja_ctx *c, weft__jinja_entry *e, weft__jinja_val key, uint64_t hash, int *out)
{
    *out = 0;
    if (e->hash != hash) return weft__jinja_spend(c, 1);
    return weft__jinja_eq(c, e->key, key, out);
}

static weft_status find_hashed(weft__jinja_ctx *c, const weft__jinja_dict *d, weft__jinja_val key, uint64_t hash,
                               weft__jinja_entry **out)
{
    int same;
    *out = NULL;
    if (!d->index) {
        for (size_t i = 0; i < d->n; i++) {
            WEFT__JINJA_TRY(entry_matches(c, &d->entries[i], key, hash, &same));
            if (same) {
                *out = &d->entries[i];
                return WEFT_OK;
            }
        }
        return WEFT_OK;
    }
    for (size_t at = hash & (d->n_index - 1); d->index[at]; at = (at + 1) & (d->n_index - 1)) {
        weft__jinja_entry *e = &d->entries[d->index[at] - 1];
        WEFT__JINJA_TRY(entry_matches(c, e, key, hash, &same));
        if (same) {
            *out = e;
            return WEFT_OK;
        }
    }
    return WEFT_OK;
}

weft_status weft__jinja_dict_find(weft__jinja_ctx *c, const weft__jinja_dict *d, weft__jinja_val key,
                                  weft__jinja_entry **out)
{
    uint64_t hash;
    WEFT__JINJA_TRY(hash_value(c, key, &hash));
    return find_hashed(c, d, key, hash, out);
}

weft__jinja_entry *weft__jinja_dict_find_str(const weft__jinja_dict *d, const weft__jinja_str *key)
{
    for (size_t i = 0; i < d->n; i++) {
        weft__jinja_val k = d->entries[i].key;
        if (k.type == WEFT__JINJA_STRING && weft__jinja_str_eq(k.u.s, key)) return &d->entries[i];
    }
    return NULL;
}

weft_status weft__jinja_dict_set(weft__jinja_ctx *c, weft__jinja_dict *d, weft__jinja_val key, weft__jinja_val value)
{
    uint64_t hash;
    weft__jinja_entry *e;
    WEFT__JINJA_TRY(weft__jinja_spend(c, 1));
    WEFT__JINJA_TRY(hash_value(c, key, &hash));
    WEFT__JINJA_TRY(find_hashed(c, d, key, hash, &e));
    if (e) {
        e->value = value;
        return WEFT_OK;
    }
    if (d->n >= UINT32_MAX / 4) return weft__jinja_fail(c, WEFT_LIMIT, "a dict has too many entries");
    WEFT__JINJA_TRY(weft__jinja_grow(c, &d->entries, &d->capacity, d->n + 1, sizeof *d->entries));
    d->entries[d->n++] = (weft__jinja_entry){.key = key, .value = value, .hash = hash};
    if (d->n <= PLAIN_DICT) return WEFT_OK;
    if (!d->index || d->n * 2 > d->n_index) return rebuild_index(c, d);
    index_entry(d, d->n - 1);
    return WEFT_OK;
}

weft_status weft__jinja_dict_remove(weft__jinja_ctx *c, weft__jinja_dict *d, weft__jinja_entry *entry)
{
    size_t at = (size_t)(entry - d->entries);
    WEFT__JINJA_TRY(weft__jinja_spend(c, d->n));
    memmove(entry, entry + 1, (d->n - at - 1) * sizeof *entry);
    d->n--;
    if (!d->index) return WEFT_OK;
    memset(d->index, 0, d->n_index * sizeof *d->index);
    for (size_t i = 0; i < d->n; i++) index_entry(d, i);
    return WEFT_OK;
}

/* ---- comparing ---- */

int weft__jinja_truthy(weft__jinja_val v)
{
    switch (v.type) {
    case WEFT__JINJA_MISSING:
    case WEFT__JINJA_UNDEFINED:
    case WEFT__JINJA_NONE: return 0;
    case WEFT__JINJA_BOOL:
    case WEFT__JINJA_INT: return v.u.i != 0;
    case WEFT__JINJA_FLOAT: return v.u.f != 0;
    case WEFT__JINJA_STRING: return v.u.s->len != 0;
    case WEFT__JINJA_LIST:
    case WEFT__JINJA_TUPLE: return v.u.list->n != 0;
    case WEFT__JINJA_DICT:
    case WEFT__JINJA_VIEW: return v.u.dict->n != 0;
    case WEFT__JINJA_RANGE: return v.u.range->n != 0;
    default: return 1;
    }
}

/* -1, 0, 1, or 2 with a NaN. Exact also where a double cannot hold the integer. */
static int order_numbers(weft__jinja_val a, weft__jinja_val b)
{
    if (a.type != WEFT__JINJA_FLOAT && b.type != WEFT__JINJA_FLOAT) return (a.u.i > b.u.i) - (a.u.i < b.u.i);
    if (a.type == WEFT__JINJA_FLOAT && b.type == WEFT__JINJA_FLOAT) {
        if (isnan(a.u.f) || isnan(b.u.f)) return 2;
        return (a.u.f > b.u.f) - (a.u.f < b.u.f);
    }
    if (b.type != WEFT__JINJA_FLOAT) {
        int order = order_numbers(b, a);
        return order == 2 ? 2 : -order;
    }
    double d = b.u.f;
    if (isnan(d)) return 2;
    if (d >= 9223372036854775808.0) return -1;
    if (d < -9223372036854775808.0) return 1;
    int64_t whole = (int64_t)d;
    if (a.u.i != whole) return a.u.i > whole ? 1 : -1;
    double rest = d - (double)whole;
    return rest > 0 ? -1 : rest < 0 ? 1 : 0;
}

static weft_status eq_lists(weft__jinja_ctx *c, const weft__jinja_list *a, const weft__jinja_list *b, int *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; *out && i < a->n; i++) WEFT__JINJA_TRY(weft__jinja_eq(c, a->items[i], b->items[i], out));
    return WEFT_OK;
}

static weft_status eq_dicts(weft__jinja_ctx *c, const weft__jinja_dict *a, const weft__jinja_dict *b, int *out)
{
    *out = a->n == b->n;
    for (size_t i = 0; *out && i < a->n; i++) {
        weft__jinja_entry *e;
        WEFT__JINJA_TRY(find_hashed(c, b, a->entries[i].key, a->entries[i].hash, &e));
        *out = e != NULL;
        if (e) WEFT__JINJA_TRY(weft__jinja_eq(c, a->entries[i].value, e->value, out));
    }
    return WEFT_OK;
}

weft_status weft__jinja_eq(weft__jinja_ctx *c, weft__jinja_val a, weft__jinja_val b, int *out)
{
    WEFT__JINJA_TRY(weft__jinja_spend(c, 1));
    if (weft__jinja_is_number(a) && weft__jinja_is_number(b)) {
        *out = order_numbers(a, b) == 0;
        return WEFT_OK;
    }
    *out = 0;
    if (c->plain && a.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, a);
    if (c->plain && b.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, b);
    if (a.type != b.type) return WEFT_OK;
    weft_status status = WEFT_OK;
    switch (a.type) {
    case WEFT__JINJA_NONE:
    case WEFT__JINJA_UNDEFINED: *out = 1; return WEFT_OK;
    case WEFT__JINJA_STRING:
        *out = weft__jinja_str_eq(a.u.s, b.u.s);
        return *out ? weft__jinja_spend(c, a.u.s->len / 64) : WEFT_OK;
    case WEFT__JINJA_RANGE: {
        const weft__jinja_range *x = a.u.range, *y = b.u.range;
        *out = x->n == y->n && (!x->n || (x->start == y->start && (x->n == 1 || x->step == y->step)));
        return WEFT_OK;
    }
    case WEFT__JINJA_LIST:
    case WEFT__JINJA_TUPLE:
        WEFT__JINJA_TRY(weft__jinja_enter(c));
        status = eq_lists(c, a.u.list, b.u.list, out);
        weft__jinja_leave(c);
        return status;
    case WEFT__JINJA_DICT:
        WEFT__JINJA_TRY(weft__jinja_enter(c));
        status = eq_dicts(c, a.u.dict, b.u.dict, out);
        weft__jinja_leave(c);
        return status;
    default: *out = a.u.p == b.u.p && a.aux == b.aux; return WEFT_OK;
    }
}

static weft_status order_lists(weft__jinja_ctx *c, const weft__jinja_list *a, const weft__jinja_list *b, int *out)
{
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        int same;
        WEFT__JINJA_TRY(weft__jinja_eq(c, a->items[i], b->items[i], &same));
        if (!same) return weft__jinja_order(c, a->items[i], b->items[i], out);
    }
    *out = (a->n > b->n) - (a->n < b->n);
    return WEFT_OK;
}

weft_status weft__jinja_order(weft__jinja_ctx *c, weft__jinja_val a, weft__jinja_val b, int *out)
{
    WEFT__JINJA_TRY(weft__jinja_spend(c, 1));
    if (weft__jinja_is_number(a) && weft__jinja_is_number(b)) {
        *out = order_numbers(a, b);
        return WEFT_OK;
    }
    if (a.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, a);
    if (b.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, b);
    if (a.type == WEFT__JINJA_STRING && b.type == WEFT__JINJA_STRING) {
        /* The order of UTF-8 bytes is that of the code points. */
        const weft__jinja_str *x = a.u.s, *y = b.u.s;
        size_t n = x->len < y->len ? x->len : y->len;
        int order = memcmp(x->data, y->data, n);
        *out = order ? (order > 0) - (order < 0) : (x->len > y->len) - (x->len < y->len);
        return weft__jinja_spend(c, n / 64);
    }
    if (a.type == b.type && (a.type == WEFT__JINJA_LIST || a.type == WEFT__JINJA_TUPLE)) {
        WEFT__JINJA_TRY(weft__jinja_enter(c));
        weft_status status = order_lists(c, a.u.list, b.u.list, out);
        weft__jinja_leave(c);
        return status;
    }
    return weft__jinja_fail(c, WEFT_ARGUMENT, "cannot order '%s' and '%s'", weft__jinja_type_name(a),
                            weft__jinja_type_name(b));
}

static weft_status contains_walked(weft__jinja_ctx *c, weft__jinja_val container, weft__jinja_val v, int *out)
{
    weft__jinja_iter *it;
    WEFT__JINJA_TRY(weft__jinja_iterate(c, container, &it));
    *out = 0;
    for (;;) {
        weft__jinja_val item;
        int got;
        WEFT__JINJA_TRY(weft__jinja_next(c, it, &item, &got));
        if (!got) return WEFT_OK;
        WEFT__JINJA_TRY(weft__jinja_eq(c, item, v, out));
        if (*out) return WEFT_OK;
    }
}

weft_status weft__jinja_contains(weft__jinja_ctx *c, weft__jinja_val container, weft__jinja_val v, int *out)
{
    if (container.type == WEFT__JINJA_STRING) {
        if (v.type != WEFT__JINJA_STRING) {
            return weft__jinja_fail(c, WEFT_ARGUMENT, "'in' looks for a str in a str, not for '%s'",
                                    weft__jinja_type_name(v));
        }
        const weft__jinja_str *s = container.u.s;
        WEFT__JINJA_TRY(weft__jinja_spend(c, s->len / 64));
        *out = weft__jinja_find(s->data, 0, s->len, v.u.s->data, v.u.s->len) != SIZE_MAX;
        return WEFT_OK;
    }
    if (container.type == WEFT__JINJA_DICT ||
        (container.type == WEFT__JINJA_VIEW && container.aux == WEFT__JINJA_KEYS)) {
        weft__jinja_entry *e;
        WEFT__JINJA_TRY(weft__jinja_dict_find(c, container.u.dict, v, &e));
        *out = e != NULL;
        return WEFT_OK;
    }
    return contains_walked(c, container, v, out);
}

/* ---- sorting ---- */

typedef struct keyed {
    weft__jinja_val key, item;
} keyed;

static weft_status merge(weft__jinja_ctx *c, const keyed *from, keyed *to, size_t low, size_t mid, size_t high,
                         int reverse)
{
    size_t a = low, b = mid;
    for (size_t i = low; i < high; i++) {
        int take_right = a == mid;
        if (a < mid && b < high) {
            int order;
            WEFT__JINJA_TRY(reverse ? weft__jinja_order(c, from[a].key, from[b].key, &order)
                                    : weft__jinja_order(c, from[b].key, from[a].key, &order));
            take_right = order == -1;
        }
        to[i] = take_right ? from[b++] : from[a++];
    }
    return WEFT_OK;
}

weft_status weft__jinja_sort(weft__jinja_ctx *c, weft__jinja_val *keys, weft__jinja_val *items, size_t n, int reverse)
{
    keyed *a = weft__jinja_alloc_array(c, n, sizeof *a);
    if (!a) return WEFT__JINJA_NO_ROOM(c);
    keyed *b = weft__jinja_alloc_array(c, n, sizeof *b);
    if (!b) return WEFT__JINJA_NO_ROOM(c);
    for (size_t i = 0; i < n; i++) a[i] = (keyed){keys[i], items[i]};
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width) {
            size_t mid = low + width < n ? low + width : n, high = low + 2 * width < n ? low + 2 * width : n;
            WEFT__JINJA_TRY(merge(c, a, b, low, mid, high, reverse));
        }
        keyed *swap = a;
        a = b;
        b = swap;
    }
    for (size_t i = 0; i < n; i++) {
        keys[i] = a[i].key;
        items[i] = a[i].item;
    }
    return WEFT_OK;
}
