// SPDX-License-Identifier: Apache-2.0
/* filters_seq.c: filters of sequences (value.h). map, select and their kin yield generators, which work item by
 * item as they are walked. Owned by the rendering. */
#include <string.h>

#include "text/jinja/builtins.h"
#include "text/jinja/text.h"

int weft__jinja_given_true(weft__jinja_val v)
{
    return v.type != WEFT__JINJA_MISSING && weft__jinja_truthy(v);
}

weft_status weft__jinja_list_of(weft__jinja_ctx *c, weft__jinja_val v, weft__jinja_list **out)
{
    weft__jinja_val list;
    WEFT__JINJA_TRY(weft__jinja_to_list(c, v, WEFT__JINJA_LIST, &list));
    *out = list.u.list;
    return WEFT_OK;
}

/* A generator over what is already in a list. */
weft_status weft__jinja_generate(weft__jinja_ctx *c, weft__jinja_val list, weft__jinja_val *out)
{
    weft__jinja_iter *it;
    WEFT__JINJA_TRY(weft__jinja_iterate(c, list, &it));
    return weft__jinja_of_iter(c, it, out);
}

/* ---- taking apart ---- */

static weft_status filter_list(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "list", args));
    return weft__jinja_to_list(c, v, WEFT__JINJA_LIST, out);
}

static weft_status filter_items(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                weft__jinja_val *out)
{
    WEFT__JINJA_TRY(weft__jinja_no_args(c, "items", args));
    if (v.type == WEFT__JINJA_DICT) {
        v.type = WEFT__JINJA_VIEW;
        v.aux = WEFT__JINJA_ITEMS;
    } else if (v.type != WEFT__JINJA_UNDEFINED) {
        return weft__jinja_fail(c, WEFT_ARGUMENT, "items needs a dict, not '%s'", weft__jinja_type_name(v));
    }
    return weft__jinja_generate(c, v, out);
}

static weft_status filter_join(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("d", "attribute");
    weft__jinja_val bound[WEFT__JINJA_N_PARAMS];
    const weft__jinja_str *separator;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "join", args, names, WEFT__JINJA_N_PARAMS, 0, bound));
    if (bound[0].type == WEFT__JINJA_MISSING) WEFT__JINJA_TRY(weft__jinja_literal(c, "", &bound[0]));
    WEFT__JINJA_TRY(weft__jinja_to_str(c, bound[0], &separator));
    if (bound[1].type != WEFT__JINJA_MISSING && bound[1].type != WEFT__JINJA_NONE) {
        WEFT__JINJA_TRY(weft__jinja_to_list(c, v, WEFT__JINJA_LIST, &v));
        for (size_t i = 0; i < v.u.list->n; i++) {
            WEFT__JINJA_TRY(weft__jinja_getpath(c, v.u.list->items[i], bound[1], &v.u.list->items[i]));
        }
    }
    return weft__jinja_join(c, separator, v, 1, out);
}

static weft_status filter_sum(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("attribute", "start");
    weft__jinja_val bound[WEFT__JINJA_N_PARAMS], total, item;
    weft__jinja_list *list;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "sum", args, names, WEFT__JINJA_N_PARAMS, 0, bound));
    total = bound[1].type == WEFT__JINJA_MISSING ? weft__jinja_int(0) : bound[1];
    if (total.type == WEFT__JINJA_STRING)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "sum does not add strings; use join");
    WEFT__JINJA_TRY(weft__jinja_list_of(c, v, &list));
    for (size_t i = 0; i < list->n; i++) {
        WEFT__JINJA_TRY(weft__jinja_getpath(c, list->items[i], bound[0], &item));
        WEFT__JINJA_TRY(weft__jinja_arithmetic(c, WEFT__JINJA_ADD, total, item, &total));
    }
    *out = total;
    return WEFT_OK;
}

/* ---- ordering ---- */

weft_status weft__jinja_lowered(weft__jinja_ctx *c, weft__jinja_val v, int case_sensitive, weft__jinja_val *out)
{
    *out = v;
    return case_sensitive || v.type != WEFT__JINJA_STRING ? WEFT_OK
                                                          : weft__jinja_to_case(c, v.u.s, WEFT__JINJA_LOWER, out);
}

/* What an item is compared by: the attribute, without regard to case unless asked for. */
static weft_status key_of(weft__jinja_ctx *c, weft__jinja_val item, weft__jinja_val attribute, int case_sensitive,
                          weft__jinja_val *out)
{
    weft__jinja_val v;
    WEFT__JINJA_TRY(weft__jinja_getpath(c, item, attribute, &v));
    return weft__jinja_lowered(c, v, case_sensitive, out);
}

/* sort takes several attributes, separated by commas, and compares lists of them. */
static weft_status keys_of(weft__jinja_ctx *c, weft__jinja_val item, weft__jinja_val attribute, int case_sensitive,
                           weft__jinja_val *out)
{
    weft__jinja_val list, parts, key;
    WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_LIST, 1, &list));
    *out = list;
    if (attribute.type != WEFT__JINJA_STRING) {
        WEFT__JINJA_TRY(key_of(c, item, attribute, case_sensitive, &key));
        return weft__jinja_append(c, list.u.list, key);
    }
    weft__jinja_val comma;
    WEFT__JINJA_TRY(weft__jinja_literal(c, ",", &comma));
    WEFT__JINJA_TRY(weft__jinja_split(c, attribute.u.s, comma.u.s, -1, &parts));
    for (size_t i = 0; i < parts.u.list->n; i++) {
        WEFT__JINJA_TRY(key_of(c, item, parts.u.list->items[i], case_sensitive, &key));
        WEFT__JINJA_TRY(weft__jinja_append(c, list.u.list, key));
    }
    return WEFT_OK;
}

static weft_status filter_sort(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                               weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("reverse", "case_sensitive", "attribute");
    weft__jinja_val bound[WEFT__JINJA_N_PARAMS], list;
    int64_t reverse;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "sort", args, names, WEFT__JINJA_N_PARAMS, 0, bound));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "sort's reverse", bound[0], 0, &reverse));
    WEFT__JINJA_TRY(weft__jinja_to_list(c, v, WEFT__JINJA_LIST, &list));
    weft__jinja_list *items = list.u.list;
    weft__jinja_val *keys = weft__jinja_alloc_array(c, items->n, sizeof *keys);
    if (!keys) return WEFT__JINJA_NO_ROOM(c);
    for (size_t i = 0; i < items->n; i++)
        WEFT__JINJA_TRY(keys_of(c, items->items[i], bound[2], weft__jinja_given_true(bound[1]), &keys[i]));
    WEFT__JINJA_TRY(weft__jinja_sort(c, keys, items->items, items->n, reverse != 0));
    *out = list;
    return WEFT_OK;
}

static weft_status filter_dictsort(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                   weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("case_sensitive", "by", "reverse");
    weft__jinja_val bound[WEFT__JINJA_N_PARAMS], list;
    int64_t reverse;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "dictsort", args, names, WEFT__JINJA_N_PARAMS, 0, bound));
    WEFT__JINJA_TRY(weft__jinja_want_int(c, "dictsort's reverse", bound[2], 0, &reverse));
    if (v.type == WEFT__JINJA_UNDEFINED) return weft__jinja_fail_undefined(c, v);
    if (v.type != WEFT__JINJA_DICT)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "dictsort needs a dict, not '%s'", weft__jinja_type_name(v));
    int by_value = bound[1].type == WEFT__JINJA_STRING && weft__jinja_str_is(bound[1].u.s, "value");
    if (bound[1].type != WEFT__JINJA_MISSING && !by_value &&
        !(bound[1].type == WEFT__JINJA_STRING && weft__jinja_str_is(bound[1].u.s, "key"))) {
        return weft__jinja_fail(c, WEFT_ARGUMENT, "dictsort sorts by 'key' or 'value'");
    }
    v.type = WEFT__JINJA_VIEW;
    v.aux = WEFT__JINJA_ITEMS;
    WEFT__JINJA_TRY(weft__jinja_to_list(c, v, WEFT__JINJA_LIST, &list));
    weft__jinja_list *items = list.u.list;
    weft__jinja_val *keys = weft__jinja_alloc_array(c, items->n, sizeof *keys);
    if (!keys) return WEFT__JINJA_NO_ROOM(c);
    for (size_t i = 0; i < items->n; i++) {
        WEFT__JINJA_TRY(weft__jinja_lowered(c, items->items[i].u.list->items[by_value],
                                            weft__jinja_given_true(bound[0]), &keys[i]));
    }
    WEFT__JINJA_TRY(weft__jinja_sort(c, keys, items->items, items->n, reverse != 0));
    *out = list;
    return WEFT_OK;
}

static weft_status filter_unique(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                 weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("case_sensitive", "attribute");
    weft__jinja_val bound[WEFT__JINJA_N_PARAMS], seen, kept, key;
    weft__jinja_list *list;
    WEFT__JINJA_TRY(weft__jinja_bind(c, "unique", args, names, WEFT__JINJA_N_PARAMS, 0, bound));
    WEFT__JINJA_TRY(weft__jinja_list_of(c, v, &list));
    WEFT__JINJA_TRY(weft__jinja_new_dict(c, &seen));
    WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_LIST, 0, &kept));
    for (size_t i = 0; i < list->n; i++) {
        weft__jinja_entry *e;
        WEFT__JINJA_TRY(key_of(c, list->items[i], bound[1], weft__jinja_given_true(bound[0]), &key));
        WEFT__JINJA_TRY(weft__jinja_dict_find(c, seen.u.dict, key, &e));
        if (e) continue;
        WEFT__JINJA_TRY(weft__jinja_dict_set(c, seen.u.dict, key, weft__jinja_none()));
        WEFT__JINJA_TRY(weft__jinja_append(c, kept.u.list, list->items[i]));
    }
    return weft__jinja_generate(c, kept, out);
}

weft_status weft__jinja_extreme(weft__jinja_ctx *c, const char *what, weft__jinja_val v, const weft__jinja_args *args,
                                weft__jinja_op better, weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("case_sensitive", "attribute");
    weft__jinja_val bound[WEFT__JINJA_N_PARAMS], best = {0}, key;
    weft__jinja_list *list;
    WEFT__JINJA_TRY(weft__jinja_bind(c, what, args, names, WEFT__JINJA_N_PARAMS, 0, bound));
    WEFT__JINJA_TRY(weft__jinja_list_of(c, v, &list));
    *out = weft__jinja_undefined(v, NULL);
    for (size_t i = 0; i < list->n; i++) {
        int take = 1;
        WEFT__JINJA_TRY(key_of(c, list->items[i], bound[1], weft__jinja_given_true(bound[0]), &key));
        if (i) WEFT__JINJA_TRY(weft__jinja_compare(c, better, key, best, &take));
        if (!take) continue;
        best = key;
        *out = list->items[i];
    }
    return WEFT_OK;
}

static weft_status filter_min(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    return weft__jinja_extreme(c, "min", v, args, WEFT__JINJA_LT, out);
}

weft_status weft__jinja_path_or(weft__jinja_ctx *c, weft__jinja_val item, weft__jinja_val path,
                                weft__jinja_val otherwise, weft__jinja_val *out)
{
    WEFT__JINJA_TRY(weft__jinja_getpath(c, item, path, out));
    int use = out->type == WEFT__JINJA_UNDEFINED && otherwise.type != WEFT__JINJA_MISSING &&
              otherwise.type != WEFT__JINJA_NONE;
    if (use) *out = otherwise;
    return WEFT_OK;
}

/* ---- item by item ---- */

/* What map, select and their kin do with each item. */
typedef struct filters_seq_work {
    const weft__jinja_function *function; /* filter or test; NULL: the item itself, or whether it is true */
    weft__jinja_args args;
    /* the attribute to look at, MISSING for the item; and what stands in for an undefined one */
    weft__jinja_val path, otherwise;
    int select, negate;
} filters_seq_work;

static weft_status next_worked(weft__jinja_ctx *c, weft__jinja_iter *it, weft__jinja_val *out, int *got)
{
    const filters_seq_work *w = it->state;
    for (;;) {
        weft__jinja_val item, v;
        WEFT__JINJA_TRY(weft__jinja_next(c, it->inner, &item, got));
        if (!*got) return WEFT_OK;
        WEFT__JINJA_TRY(weft__jinja_path_or(c, item, w->path, w->otherwise, &v));
        if (w->function) WEFT__JINJA_TRY(weft__jinja_call_function(c, w->function, v, &w->args, &v));
        if (!w->select) {
            *out = v;
            return WEFT_OK;
        }
        if (weft__jinja_truthy(v) == w->negate) continue;
        *out = item;
        return WEFT_OK;
    }
}

static weft_status start_work(weft__jinja_ctx *c, weft__jinja_val v, const filters_seq_work *w, weft__jinja_val *out)
{
    weft__jinja_iter *it = weft__jinja_alloc(c, sizeof *it);
    filters_seq_work *copy = weft__jinja_alloc(c, sizeof *copy);
    if (!it || !copy) return WEFT__JINJA_NO_ROOM(c);
    *copy = *w;
    memset(it, 0, sizeof *it);
    it->next = next_worked;
    it->state = copy;
    WEFT__JINJA_TRY(weft__jinja_iterate(c, v, &it->inner));
    return weft__jinja_of_iter(c, it, out);
}

/* Of nothing these filters make nothing, and never look at their arguments. */
static weft_status yield_nothing(weft__jinja_ctx *c, weft__jinja_val *out)
{
    return weft__jinja_generate(c, weft__jinja_undefined(weft__jinja_of(WEFT__JINJA_MISSING), NULL), out);
}

/* The function that a positional argument names, with the arguments after it. */
static weft_status find_function(weft__jinja_ctx *c, const char *what, const weft__jinja_args *args, size_t at,
                                 const weft__jinja_function *(*find)(const weft__jinja_str *), filters_seq_work *w)
{
    weft__jinja_val name = args->pos[at];
    w->args = *args;
    w->args.pos += at + 1;
    w->args.n_pos -= at + 1;
    w->function = name.type == WEFT__JINJA_STRING ? find(name.u.s) : NULL;
    if (w->function) return WEFT_OK;
    int n = name.type == WEFT__JINJA_STRING && name.u.s->len < 60 ? (int)name.u.s->len : 0;
    return weft__jinja_fail(c, WEFT_ARGUMENT, "there is no %s named '%.*s'", what, n, n ? name.u.s->data : "");
}

static weft_status filter_map(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, weft__jinja_val *out)
{
    WEFT__JINJA_PARAMS("attribute", "default");
    filters_seq_work w = {0};
    weft__jinja_val bound[WEFT__JINJA_N_PARAMS];
    if (!weft__jinja_truthy(v)) return yield_nothing(c, out);
    if (args->n_pos) {
        WEFT__JINJA_TRY(find_function(c, "filter", args, 0, weft__jinja_filter, &w));
        return start_work(c, v, &w, out);
    }
    WEFT__JINJA_TRY(weft__jinja_bind(c, "map", args, names, WEFT__JINJA_N_PARAMS, 1, bound));
    w.path = bound[0];
    w.otherwise = bound[1];
    return start_work(c, v, &w, out);
}

weft_status weft__jinja_choose(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args, int by_attribute,
                               int negate, weft__jinja_val *out)
{
    filters_seq_work w = {.select = 1, .negate = negate};
    size_t at = by_attribute != 0;
    if (!weft__jinja_truthy(v)) return yield_nothing(c, out);
    if (args->n_pos < at) return weft__jinja_fail(c, WEFT_ARGUMENT, "the filter needs the name of an attribute");
    if (by_attribute) w.path = args->pos[0];
    if (args->n_pos > at) WEFT__JINJA_TRY(find_function(c, "test", args, at, weft__jinja_test, &w));
    return start_work(c, v, &w, out);
}

static weft_status filter_reject(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                 weft__jinja_val *out)
{
    return weft__jinja_choose(c, v, args, 0, 1, out);
}

static weft_status filter_selectattr(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                     weft__jinja_val *out)
{
    return weft__jinja_choose(c, v, args, 1, 0, out);
}

static weft_status filter_rejectattr(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_args *args,
                                     weft__jinja_val *out)
{
    return weft__jinja_choose(c, v, args, 1, 1, out);
}

const weft__jinja_function *weft__jinja_seq_filter(const weft__jinja_str *name)
{
    static const weft__jinja_function table[] = {
        {"dictsort", filter_dictsort},
        {"items", filter_items},
        {"join", filter_join},
        {"list", filter_list},
        {"map", filter_map},
        {"min", filter_min},
        {"reject", filter_reject},
        {"rejectattr", filter_rejectattr},
        {"selectattr", filter_selectattr},
        {"sort", filter_sort},
        {"sum", filter_sum},
        {"unique", filter_unique},
        {NULL, NULL},
    };
    return weft__jinja_lookup(table, name);
}
