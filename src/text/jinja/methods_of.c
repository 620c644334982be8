/* methods_of.c: the methods of lists, tuples and dicts (value.h). Those that change their container are reached only
 * where mutation is allowed (attr.c). Owned by the rendering. */
#include <string.h>

#include "text/jinja/value.h"

static weft_status bind(weft__jctx *c, const char *what, const weft__jargs *args, size_t n, size_t n_required, weft__jval *out)
{
    static const char *const positional[] = {"", "", ""};
    return weft__j_bind(c, what, args, positional, n, n_required, out);
}

/* ---- dict ---- */

static weft_status dict_get(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    weft__jval bound[2];
    weft__jentry *e;
    WEFT__J_TRY(bind(c, "get", args, 2, 1, bound));
    WEFT__J_TRY(weft__j_dict_find(c, self.u.dict, bound[0], &e));
    *out = e ? e->value : bound[1].type == WEFT__J_MISSING ? weft__j_none() : bound[1];
    return WEFT_OK;
}

static weft_status view(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jview which, weft__jval *out)
{
    WEFT__J_TRY(bind(c, "the method", args, 0, 0, NULL));
    *out = self;
    out->type = WEFT__J_VIEW;
    out->aux = which;
    return WEFT_OK;
}

static weft_status dict_keys(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    return view(c, self, args, WEFT__J_KEYS, out);
}

static weft_status dict_values(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    return view(c, self, args, WEFT__J_VALUES, out);
}

static weft_status dict_items(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    return view(c, self, args, WEFT__J_ITEMS, out);
}

static weft_status merge(weft__jctx *c, weft__jdict *into, const weft__jdict *from)
{
    for (size_t i = 0; i < from->n; i++) WEFT__J_TRY(weft__j_dict_set(c, into, from->entries[i].key, from->entries[i].value));
    return WEFT_OK;
}

static weft_status dict_copy(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    weft__jval copy;
    WEFT__J_TRY(bind(c, "copy", args, 0, 0, NULL));
    WEFT__J_TRY(weft__j_new_dict(c, &copy));
    WEFT__J_TRY(merge(c, copy.u.dict, self.u.dict));
    *out = copy;
    return WEFT_OK;
}

static weft_status dict_update(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    if (args->n_pos > 1) return weft__j_fail(c, WEFT_ARGUMENT, "update takes at most one positional argument");
    if (args->n_pos && args->pos[0].type != WEFT__J_DICT) return weft__j_fail(c, WEFT_ARGUMENT, "update needs a dict");
    if (args->n_pos) WEFT__J_TRY(merge(c, self.u.dict, args->pos[0].u.dict));
    for (size_t i = 0; i < args->n_named; i++) {
        WEFT__J_TRY(weft__j_dict_set(c, self.u.dict, weft__j_of_str(args->names[i]), args->named[i]));
    }
    *out = weft__j_none();
    return WEFT_OK;
}

static weft_status dict_pop(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    weft__jval bound[2];
    weft__jentry *e;
    WEFT__J_TRY(bind(c, "pop", args, 2, 1, bound));
    WEFT__J_TRY(weft__j_dict_find(c, self.u.dict, bound[0], &e));
    if (!e && bound[1].type == WEFT__J_MISSING) return weft__j_fail(c, WEFT_ARGUMENT, "pop: the key is not there");
    *out = e ? e->value : bound[1];
    return e ? weft__j_dict_remove(c, self.u.dict, e) : WEFT_OK;
}

static weft_status dict_setdefault(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    weft__jval bound[2];
    weft__jentry *e;
    WEFT__J_TRY(bind(c, "setdefault", args, 2, 1, bound));
    if (bound[1].type == WEFT__J_MISSING) bound[1] = weft__j_none();
    WEFT__J_TRY(weft__j_dict_find(c, self.u.dict, bound[0], &e));
    *out = e ? e->value : bound[1];
    return e ? WEFT_OK : weft__j_dict_set(c, self.u.dict, bound[0], bound[1]);
}

static weft_status dict_clear(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    WEFT__J_TRY(bind(c, "clear", args, 0, 0, NULL));
    self.u.dict->n = 0;
    self.u.dict->index = NULL;
    self.u.dict->n_index = 0;
    *out = weft__j_none();
    return WEFT_OK;
}

/* ---- list and tuple ---- */

static weft_status list_index(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    weft__jval v;
    WEFT__J_TRY(bind(c, "index", args, 1, 1, &v));
    for (size_t i = 0; i < self.u.list->n; i++) {
        int same;
        WEFT__J_TRY(weft__j_eq(c, self.u.list->items[i], v, &same));
        if (!same) continue;
        *out = weft__j_int((int64_t)i);
        return WEFT_OK;
    }
    return weft__j_fail(c, WEFT_ARGUMENT, "index: the value is not in the list");
}

static weft_status list_count(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    weft__jval v;
    int64_t n = 0;
    WEFT__J_TRY(bind(c, "count", args, 1, 1, &v));
    for (size_t i = 0; i < self.u.list->n; i++) {
        int same;
        WEFT__J_TRY(weft__j_eq(c, self.u.list->items[i], v, &same));
        n += same;
    }
    *out = weft__j_int(n);
    return WEFT_OK;
}

static weft_status list_copy(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    WEFT__J_TRY(bind(c, "copy", args, 0, 0, NULL));
    return weft__j_to_list(c, self, WEFT__J_LIST, out);
}

/* Takes entry i out. */
static void take(weft__jlist *list, size_t i, weft__jval *out)
{
    *out = list->items[i];
    memmove(&list->items[i], &list->items[i + 1], (list->n - i - 1) * sizeof *list->items);
    list->n--;
}

static weft_status list_pop(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    weft__jval v;
    weft__jlist *list = self.u.list;
    int64_t i;
    WEFT__J_TRY(bind(c, "pop", args, 1, 0, &v));
    WEFT__J_TRY(weft__j_want_int(c, "pop", v, -1, &i));
    if (i < 0) i += (int64_t)list->n;
    if (i < 0 || (uint64_t)i >= list->n) return weft__j_fail(c, WEFT_ARGUMENT, "pop: the list has no such item");
    WEFT__J_TRY(weft__j_spend(c, list->n / 16));
    take(list, (size_t)i, out);
    return WEFT_OK;
}

static weft_status list_append(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    weft__jval v;
    WEFT__J_TRY(bind(c, "append", args, 1, 1, &v));
    *out = weft__j_none();
    return weft__j_append(c, self.u.list, v);
}

static weft_status list_extend(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    weft__jval v;
    WEFT__J_TRY(bind(c, "extend", args, 1, 1, &v));
    WEFT__J_TRY(weft__j_to_list(c, v, WEFT__J_LIST, &v));
    for (size_t i = 0; i < v.u.list->n; i++) WEFT__J_TRY(weft__j_append(c, self.u.list, v.u.list->items[i]));
    *out = weft__j_none();
    return WEFT_OK;
}

static weft_status list_insert(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    weft__jval bound[2];
    weft__jlist *list = self.u.list;
    int64_t i;
    WEFT__J_TRY(bind(c, "insert", args, 2, 2, bound));
    WEFT__J_TRY(weft__j_want_int(c, "insert", bound[0], 0, &i));
    int64_t n = (int64_t)list->n;
    i = i < -n ? 0 : i < 0 ? i + n : i > n ? n : i;
    WEFT__J_TRY(weft__j_spend(c, list->n / 16));
    WEFT__J_TRY(weft__j_append(c, list, bound[1]));
    memmove(&list->items[i + 1], &list->items[i], (size_t)(n - i) * sizeof *list->items);
    list->items[i] = bound[1];
    *out = weft__j_none();
    return WEFT_OK;
}

static weft_status list_remove(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    weft__jval at, gone;
    WEFT__J_TRY(list_index(c, self, args, &at));
    take(self.u.list, (size_t)at.u.i, &gone);
    *out = weft__j_none();
    return WEFT_OK;
}

static weft_status list_reverse(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    weft__jlist *list = self.u.list;
    WEFT__J_TRY(bind(c, "reverse", args, 0, 0, NULL));
    WEFT__J_TRY(weft__j_spend(c, list->n));
    for (size_t i = 0; i < list->n / 2; i++) {
        weft__jval swap = list->items[i];
        list->items[i] = list->items[list->n - 1 - i];
        list->items[list->n - 1 - i] = swap;
    }
    *out = weft__j_none();
    return WEFT_OK;
}

static weft_status list_clear(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    WEFT__J_TRY(bind(c, "clear", args, 0, 0, NULL));
    self.u.list->n = 0;
    *out = weft__j_none();
    return WEFT_OK;
}

const weft__jfunction *weft__j_container_method(weft__jtype type, const weft__jstr *name)
{
    static const weft__jfunction of_tuple[] = {{"count", list_count}, {"index", list_index}, {NULL, NULL}};
    static const weft__jfunction of_list[] = {
        {"append", list_append}, {"clear", list_clear},     {"copy", list_copy},     {"count", list_count},
        {"extend", list_extend}, {"index", list_index},     {"insert", list_insert}, {"pop", list_pop},
        {"remove", list_remove}, {"reverse", list_reverse}, {"sort", NULL},          {NULL, NULL},
    };
    static const weft__jfunction of_dict[] = {
        {"get", dict_get},       {"items", dict_items}, {"keys", dict_keys}, {"values", dict_values},
        {"copy", dict_copy},     {"clear", dict_clear}, {"pop", dict_pop},   {"setdefault", dict_setdefault},
        {"update", dict_update}, {"fromkeys", NULL},    {"popitem", NULL},   {NULL, NULL},
    };
    return weft__j_lookup(type == WEFT__J_DICT ? of_dict : type == WEFT__J_LIST ? of_list : of_tuple, name);
}
