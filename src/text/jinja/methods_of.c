/* methods_of.c: the methods of lists, tuples and dicts (value.h). Those that change their container are reached only
 * where mutation is allowed (attr.c). Owned by the rendering. */
#include <string.h>

#include "text/jinja/value.h"

static weft_status bind(weft__jinja_ctx *c, const char *what, const weft__jinja_args *args, size_t n, size_t n_required,
                        weft__jinja_val *out)
{
    static const char *const positional[] = {"", "", ""};
    return weft__jinja_bind(c, what, args, positional, n, n_required, out);
}

/* ---- dict ---- */

static weft_status dict_get(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    weft__jinja_val bound[2];
    weft__jinja_entry *e;
    WEFT__JINJA_TRY(bind(c, "get", args, 2, 1, bound));
    WEFT__JINJA_TRY(weft__jinja_dict_find(c, self.u.dict, bound[0], &e));
    *out = e ? e->value : bound[1].type == WEFT__JINJA_MISSING ? weft__jinja_none() : bound[1];
    return WEFT_OK;
}

static weft_status view(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_view which,
                        weft__jinja_val *out)
{
    WEFT__JINJA_TRY(bind(c, "the method", args, 0, 0, NULL));
    *out = self;
    out->type = WEFT__JINJA_VIEW;
    out->aux = which;
    return WEFT_OK;
}

static weft_status dict_keys(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return view(c, self, args, WEFT__JINJA_KEYS, out);
}

static weft_status dict_values(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return view(c, self, args, WEFT__JINJA_VALUES, out);
}

static weft_status dict_items(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    return view(c, self, args, WEFT__JINJA_ITEMS, out);
}

static weft_status merge(weft__jinja_ctx *c, weft__jinja_dict *into, const weft__jinja_dict *from)
{
    for (size_t i = 0; i < from->n; i++)
        WEFT__JINJA_TRY(weft__jinja_dict_set(c, into, from->entries[i].key, from->entries[i].value));
    return WEFT_OK;
}

static weft_status dict_copy(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    weft__jinja_val copy;
    WEFT__JINJA_TRY(bind(c, "copy", args, 0, 0, NULL));
    WEFT__JINJA_TRY(weft__jinja_new_dict(c, &copy));
    WEFT__JINJA_TRY(merge(c, copy.u.dict, self.u.dict));
    *out = copy;
    return WEFT_OK;
}

static weft_status dict_update(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    if (args->n_pos > 1) return weft__jinja_fail(c, WEFT_ARGUMENT, "update takes at most one positional argument");
    if (args->n_pos && args->pos[0].type != WEFT__JINJA_DICT) return weft__jinja_fail(c, WEFT_ARGUMENT, "update needs a dict");
    if (args->n_pos) WEFT__JINJA_TRY(merge(c, self.u.dict, args->pos[0].u.dict));
    for (size_t i = 0; i < args->n_named; i++) {
        WEFT__JINJA_TRY(weft__jinja_dict_set(c, self.u.dict, weft__jinja_of_str(args->names[i]), args->named[i]));
    }
    *out = weft__jinja_none();
    return WEFT_OK;
}

static weft_status dict_pop(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    weft__jinja_val bound[2];
    weft__jinja_entry *e;
    WEFT__JINJA_TRY(bind(c, "pop", args, 2, 1, bound));
    WEFT__JINJA_TRY(weft__jinja_dict_find(c, self.u.dict, bound[0], &e));
    if (!e && bound[1].type == WEFT__JINJA_MISSING) return weft__jinja_fail(c, WEFT_ARGUMENT, "pop: the key is not there");
    *out = e ? e->value : bound[1];
    return e ? weft__jinja_dict_remove(c, self.u.dict, e) : WEFT_OK;
}

static weft_status dict_setdefault(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    weft__jinja_val bound[2];
    weft__jinja_entry *e;
    WEFT__JINJA_TRY(bind(c, "setdefault", args, 2, 1, bound));
    if (bound[1].type == WEFT__JINJA_MISSING) bound[1] = weft__jinja_none();
    WEFT__JINJA_TRY(weft__jinja_dict_find(c, self.u.dict, bound[0], &e));
    *out = e ? e->value : bound[1];
    return e ? WEFT_OK : weft__jinja_dict_set(c, self.u.dict, bound[0], bound[1]);
}

static weft_status dict_clear(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    WEFT__JINJA_TRY(bind(c, "clear", args, 0, 0, NULL));
    self.u.dict->n = 0;
    self.u.dict->index = NULL;
    self.u.dict->n_index = 0;
    *out = weft__jinja_none();
    return WEFT_OK;
}

/* ---- list and tuple ---- */

static weft_status list_index(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    weft__jinja_val v;
    WEFT__JINJA_TRY(bind(c, "index", args, 1, 1, &v));
    for (size_t i = 0; i < self.u.list->n; i++) {
        int same;
        WEFT__JINJA_TRY(weft__jinja_eq(c, self.u.list->items[i], v, &same));
        if (!same) continue;
        *out = weft__jinja_int((int64_t)i);
        return WEFT_OK;
    }
    return weft__jinja_fail(c, WEFT_ARGUMENT, "index: the value is not in the list");
}

static weft_status list_count(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    weft__jinja_val v;
    int64_t n = 0;
    WEFT__JINJA_TRY(bind(c, "count", args, 1, 1, &v));
    for (size_t i = 0; i < self.u.list->n; i++) {
        int same;
        WEFT__JINJA_TRY(weft__jinja_eq(c, self.u.list->items[i], v, &same));
        n += same;
    }
    *out = weft__jinja_int(n);
    return WEFT_OK;
}

static weft_status list_copy(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    WEFT__JINJA_TRY(bind(c, "copy", args, 0, 0, NULL));
    return weft__jinja_to_list(c, self, WEFT__JINJA_LIST, out);
}

/* Takes entry i out. */
static void take(weft__jinja_list *list, size_t i, weft__jinja_val *out)
{
    *out = list->items[i];
    memmove(&list->items[i], &list->items[i + 1], (list->n - i - 1) * sizeof *list->items);
    list->n--;
}

static weft_status list_pop(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    weft__jinja_val v;
    weft__jinja_list *list = self.u.list;
    int64_t i;
    WEFT__JINJA_TRY(bind(c, "pop", args, 1, 0, &v));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "pop", v, -1, &i));
    if (i < 0) i += (int64_t)list->n;
    if (i < 0 || (uint64_t)i >= list->n) return weft__jinja_fail(c, WEFT_ARGUMENT, "pop: the list has no such item");
    WEFT__JINJA_TRY(weft__jinja_spend(c, list->n / 16));
    take(list, (size_t)i, out);
    return WEFT_OK;
}

static weft_status list_append(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    weft__jinja_val v;
    WEFT__JINJA_TRY(bind(c, "append", args, 1, 1, &v));
    *out = weft__jinja_none();
    return weft__jinja_append(c, self.u.list, v);
}

static weft_status list_extend(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    weft__jinja_val v;
    WEFT__JINJA_TRY(bind(c, "extend", args, 1, 1, &v));
    WEFT__JINJA_TRY(weft__jinja_to_list(c, v, WEFT__JINJA_LIST, &v));
    for (size_t i = 0; i < v.u.list->n; i++) WEFT__JINJA_TRY(weft__jinja_append(c, self.u.list, v.u.list->items[i]));
    *out = weft__jinja_none();
    return WEFT_OK;
}

static weft_status list_insert(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    weft__jinja_val bound[2];
    weft__jinja_list *list = self.u.list;
    int64_t i;
    WEFT__JINJA_TRY(bind(c, "insert", args, 2, 2, bound));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "insert", bound[0], 0, &i));
    int64_t n = (int64_t)list->n;
    i = i < -n ? 0 : i < 0 ? i + n : i > n ? n : i;
    WEFT__JINJA_TRY(weft__jinja_spend(c, list->n / 16));
    WEFT__JINJA_TRY(weft__jinja_append(c, list, bound[1]));
    memmove(&list->items[i + 1], &list->items[i], (size_t)(n - i) * sizeof *list->items);
    list->items[i] = bound[1];
    *out = weft__jinja_none();
    return WEFT_OK;
}

static weft_status list_remove(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    weft__jinja_val at, gone;
    WEFT__JINJA_TRY(list_index(c, self, args, &at));
    take(self.u.list, (size_t)at.u.i, &gone);
    *out = weft__jinja_none();
    return WEFT_OK;
}

static weft_status list_reverse(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    weft__jinja_list *list = self.u.list;
    WEFT__JINJA_TRY(bind(c, "reverse", args, 0, 0, NULL));
    WEFT__JINJA_TRY(weft__jinja_spend(c, list->n));
    for (size_t i = 0; i < list->n / 2; i++) {
        weft__jinja_val swap = list->items[i];
        list->items[i] = list->items[list->n - 1 - i];
        list->items[list->n - 1 - i] = swap;
    }
    *out = weft__jinja_none();
    return WEFT_OK;
}

static weft_status list_clear(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args, weft__jinja_val *out)
{
    WEFT__JINJA_TRY(bind(c, "clear", args, 0, 0, NULL));
    self.u.list->n = 0;
    *out = weft__jinja_none();
    return WEFT_OK;
}

const weft__jinja_function *weft__jinja_container_method(weft__jinja_type type, const weft__jinja_str *name)
{
    static const weft__jinja_function of_tuple[] = {{"count", list_count}, {"index", list_index}, {NULL, NULL}};
    static const weft__jinja_function of_list[] = {
        {"append", list_append}, {"clear", list_clear},     {"copy", list_copy},     {"count", list_count},
        {"extend", list_extend}, {"index", list_index},     {"insert", list_insert}, {"pop", list_pop},
        {"remove", list_remove}, {"reverse", list_reverse}, {"sort", NULL},          {NULL, NULL},
    };
    static const weft__jinja_function of_dict[] = {
        {"get", dict_get},       {"items", dict_items}, {"keys", dict_keys}, {"values", dict_values},
        {"copy", dict_copy},     {"clear", dict_clear}, {"pop", dict_pop},   {"setdefault", dict_setdefault},
        {"update", dict_update}, {"fromkeys", NULL},    {"popitem", NULL},   {NULL, NULL},
    };
    return weft__jinja_lookup(type == WEFT__JINJA_DICT ? of_dict : type == WEFT__JINJA_LIST ? of_list : of_tuple, name);
}
