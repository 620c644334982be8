// SPDX-License-Identifier: Apache-2.0
/* methods_of.c: the methods of lists, tuples and dicts (value.h). Those that change their container are reached only
 * where mutation is allowed (attr.c). Owned by the rendering. */
#include <string.h>

#include "text/jinja/builtins.h"

weft_status weft__jinja_bind_positional(weft__jinja_ctx *c, const char *what, const weft__jinja_args *args, size_t n,
                                        size_t n_required, weft__jinja_val *out)
{
    static const char *const positional[] = {"", "", ""};
    return weft__jinja_bind(c, what, args, positional, n, n_required, out);
}

/* ---- dict ---- */

static weft_status dict_get(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                            weft__jinja_val *out)
{
    weft__jinja_val bound[2];
    weft__jinja_entry *e;
    WEFT__JINJA_TRY(weft__jinja_bind_positional(c, "get", args, 2, 1, bound));
    WEFT__JINJA_TRY(weft__jinja_dict_find(c, self.u.dict, bound[0], &e));
    *out = e ? e->value : bound[1].type == WEFT__JINJA_MISSING ? weft__jinja_none() : bound[1];
    return WEFT_OK;
}

weft_status weft__jinja_dict_view(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                                  weft__jinja_view which, weft__jinja_val *out)
{
    WEFT__JINJA_TRY(weft__jinja_bind_positional(c, "the method", args, 0, 0, NULL));
    *out = self;
    out->type = WEFT__JINJA_VIEW;
    out->aux = which;
    return WEFT_OK;
}

static weft_status dict_items(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                              weft__jinja_val *out)
{
    return weft__jinja_dict_view(c, self, args, WEFT__JINJA_ITEMS, out);
}

static weft_status dict_pop(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                            weft__jinja_val *out)
{
    weft__jinja_val bound[2];
    weft__jinja_entry *e;
    WEFT__JINJA_TRY(weft__jinja_bind_positional(c, "pop", args, 2, 1, bound));
    WEFT__JINJA_TRY(weft__jinja_dict_find(c, self.u.dict, bound[0], &e));
    if (!e && bound[1].type == WEFT__JINJA_MISSING)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "pop: the key is not there");
    *out = e ? e->value : bound[1];
    return e ? weft__jinja_dict_remove(c, self.u.dict, e) : WEFT_OK;
}

/* ---- list and tuple ---- */

/* Takes entry i out. */
void weft__jinja_list_take(weft__jinja_list *list, size_t i, weft__jinja_val *out)
{
    *out = list->items[i];
    memmove(&list->items[i], &list->items[i + 1], (list->n - i - 1) * sizeof *list->items);
    list->n--;
}

static weft_status list_pop(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                            weft__jinja_val *out)
{
    weft__jinja_val v;
    weft__jinja_list *list = self.u.list;
    int64_t i;
    WEFT__JINJA_TRY(weft__jinja_bind_positional(c, "pop", args, 1, 0, &v));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "pop", v, -1, &i));
    if (i < 0) i += (int64_t)list->n;
    if (i < 0 || (uint64_t)i >= list->n) return weft__jinja_fail(c, WEFT_ARGUMENT, "pop: the list has no such item");
    WEFT__JINJA_TRY(weft__jinja_spend(c, list->n / 16));
    weft__jinja_list_take(list, (size_t)i, out);
    return WEFT_OK;
}

static weft_status list_append(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    weft__jinja_val v;
    WEFT__JINJA_TRY(weft__jinja_bind_positional(c, "append", args, 1, 1, &v));
    *out = weft__jinja_none();
    return weft__jinja_append(c, self.u.list, v);
}

const weft__jinja_function *weft__jinja_container_method(weft__jinja_type type, const weft__jinja_str *name)
{
    static const weft__jinja_function of_list[] = {{"append", list_append}, {"pop", list_pop}, {NULL, NULL}};
    static const weft__jinja_function of_dict[] = {
        {"get", dict_get},
        {"items", dict_items},
        {"pop", dict_pop},
        {NULL, NULL},
    };
    if (type == WEFT__JINJA_TUPLE) return weft__jinja_extra(WEFT__JINJA_OF_TUPLE, name);
    const weft__jinja_function *f = weft__jinja_lookup(type == WEFT__JINJA_DICT ? of_dict : of_list, name);
    return f ? f : weft__jinja_extra(type == WEFT__JINJA_DICT ? WEFT__JINJA_OF_DICT : WEFT__JINJA_OF_LIST, name);
}
