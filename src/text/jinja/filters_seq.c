/* filters_seq.c: filters of sequences (value.h). map, select and their kin yield generators, which work item by
 * item as they are walked. Owned by the rendering. */
#include <string.h>

#include "text/jinja/text.h"
#include "text/jinja/value.h"

#define PARAMS(...) static const char *const names[] = {__VA_ARGS__}
#define N_PARAMS (sizeof names / sizeof *names)

static int given_true(weft__jval v)
{
    return v.type != WEFT__J_MISSING && weft__j_truthy(v);
}

static weft_status list_of(weft__jctx *c, weft__jval v, weft__jlist **out)
{
    weft__jval list;
    WEFT__J_TRY(weft__j_to_list(c, v, WEFT__J_LIST, &list));
    *out = list.u.list;
    return WEFT_OK;
}

/* A generator over what is already in a list. */
static weft_status generate(weft__jctx *c, weft__jval list, weft__jval *out)
{
    weft__jiter *it;
    WEFT__J_TRY(weft__j_iter(c, list, &it));
    return weft__j_of_iter(c, it, out);
}

/* ---- taking apart ---- */

static weft_status filter_list(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    WEFT__J_TRY(weft__j_no_args(c, "list", args));
    return weft__j_to_list(c, v, WEFT__J_LIST, out);
}

static weft_status filter_first(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    weft__jiter *it;
    int got;
    WEFT__J_TRY(weft__j_no_args(c, "first", args));
    WEFT__J_TRY(weft__j_iter(c, v, &it));
    WEFT__J_TRY(weft__j_next(c, it, out, &got));
    if (!got) *out = weft__j_undefined(v, NULL);
    return WEFT_OK;
}

static weft_status filter_last(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    weft__jlist *list;
    WEFT__J_TRY(weft__j_no_args(c, "last", args));
    if (v.type == WEFT__J_ITER) return weft__j_fail(c, WEFT_ARGUMENT, "last cannot reverse a generator; use list first");
    WEFT__J_TRY(list_of(c, v, &list));
    *out = list->n ? list->items[list->n - 1] : weft__j_undefined(v, NULL);
    return WEFT_OK;
}

static void reverse_items(weft__jlist *list)
{
    for (size_t i = 0; i < list->n / 2; i++) {
        weft__jval swap = list->items[i];
        list->items[i] = list->items[list->n - 1 - i];
        list->items[list->n - 1 - i] = swap;
    }
}

static weft_status filter_reverse(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    weft__jval list;
    WEFT__J_TRY(weft__j_no_args(c, "reverse", args));
    if (v.type == WEFT__J_STRING) return weft__j_getslice(c, v, weft__j_none(), weft__j_none(), weft__j_int(-1), out);
    WEFT__J_TRY(weft__j_to_list(c, v, WEFT__J_LIST, &list));
    reverse_items(list.u.list);
    if (v.type != WEFT__J_ITER) return generate(c, list, out);
    *out = list;
    return WEFT_OK;
}

static weft_status filter_items(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    WEFT__J_TRY(weft__j_no_args(c, "items", args));
    if (v.type == WEFT__J_DICT) {
        v.type = WEFT__J_VIEW;
        v.aux = WEFT__J_ITEMS;
    } else if (v.type != WEFT__J_UNDEFINED) {
        return weft__j_fail(c, WEFT_ARGUMENT, "items needs a dict, not '%s'", weft__j_type_name(v));
    }
    return generate(c, v, out);
}

static weft_status filter_join(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    PARAMS("d", "attribute");
    weft__jval bound[N_PARAMS];
    const weft__jstr *separator;
    WEFT__J_TRY(weft__j_bind(c, "join", args, names, N_PARAMS, 0, bound));
    if (bound[0].type == WEFT__J_MISSING) WEFT__J_TRY(weft__j_literal(c, "", &bound[0]));
    WEFT__J_TRY(weft__j_to_str(c, bound[0], &separator));
    if (bound[1].type != WEFT__J_MISSING && bound[1].type != WEFT__J_NONE) {
        WEFT__J_TRY(weft__j_to_list(c, v, WEFT__J_LIST, &v));
        for (size_t i = 0; i < v.u.list->n; i++) {
            WEFT__J_TRY(weft__j_getpath(c, v.u.list->items[i], bound[1], &v.u.list->items[i]));
        }
    }
    return weft__j_join(c, separator, v, 1, out);
}

static weft_status filter_sum(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    PARAMS("attribute", "start");
    weft__jval bound[N_PARAMS], total, item;
    weft__jlist *list;
    WEFT__J_TRY(weft__j_bind(c, "sum", args, names, N_PARAMS, 0, bound));
    total = bound[1].type == WEFT__J_MISSING ? weft__j_int(0) : bound[1];
    if (total.type == WEFT__J_STRING) return weft__j_fail(c, WEFT_ARGUMENT, "sum does not add strings; use join");
    WEFT__J_TRY(list_of(c, v, &list));
    for (size_t i = 0; i < list->n; i++) {
        WEFT__J_TRY(weft__j_getpath(c, list->items[i], bound[0], &item));
        WEFT__J_TRY(weft__j_arithmetic(c, WEFT__J_ADD, total, item, &total));
    }
    *out = total;
    return WEFT_OK;
}

/* ---- in pieces ---- */

static weft_status filter_batch(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    PARAMS("linecount", "fill_with");
    weft__jval bound[N_PARAMS], rows, row = {0};
    weft__jlist *list;
    int64_t n;
    WEFT__J_TRY(weft__j_bind(c, "batch", args, names, N_PARAMS, 1, bound));
    WEFT__J_TRY(weft__j_want_int(c, "batch", bound[0], 0, &n));
    WEFT__J_TRY(list_of(c, v, &list));
    WEFT__J_TRY(weft__j_new_list(c, WEFT__J_LIST, 0, &rows));
    for (size_t i = 0; i < list->n; i++) {
        if (row.type == WEFT__J_MISSING || (int64_t)row.u.list->n == n) {
            /* jinja2 begins with an empty row, and yields it when rows are to have no items */
            if (row.type == WEFT__J_MISSING && n == 0) {
                WEFT__J_TRY(weft__j_new_list(c, WEFT__J_LIST, 0, &row));
                WEFT__J_TRY(weft__j_append(c, rows.u.list, row));
            }
            WEFT__J_TRY(weft__j_new_list(c, WEFT__J_LIST, 0, &row));
            WEFT__J_TRY(weft__j_append(c, rows.u.list, row));
        }
        WEFT__J_TRY(weft__j_append(c, row.u.list, list->items[i]));
    }
    int fill = bound[1].type != WEFT__J_MISSING && bound[1].type != WEFT__J_NONE && row.type != WEFT__J_MISSING;
    while (fill && (int64_t)row.u.list->n < n) WEFT__J_TRY(weft__j_append(c, row.u.list, bound[1]));
    return generate(c, rows, out);
}

static weft_status filter_slice(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    PARAMS("slices", "fill_with");
    weft__jval bound[N_PARAMS], columns, column;
    weft__jlist *list;
    int64_t n;
    WEFT__J_TRY(weft__j_bind(c, "slice", args, names, N_PARAMS, 1, bound));
    WEFT__J_TRY(weft__j_want_int(c, "slice", bound[0], 0, &n));
    WEFT__J_TRY(list_of(c, v, &list));
    if (!n) return weft__j_fail(c, WEFT_ARGUMENT, "division by zero");
    WEFT__J_TRY(weft__j_new_list(c, WEFT__J_LIST, 0, &columns));
    size_t at = 0;
    for (int64_t k = 0; k < n; k++) {
        int more = k < (int64_t)list->n % n;
        size_t end = at + (size_t)((int64_t)list->n / n) + (size_t)more;
        WEFT__J_TRY(weft__j_new_list(c, WEFT__J_LIST, 0, &column));
        for (; at < end; at++) WEFT__J_TRY(weft__j_append(c, column.u.list, list->items[at]));
        int fill = !more && bound[1].type != WEFT__J_MISSING && bound[1].type != WEFT__J_NONE;
        if (fill) WEFT__J_TRY(weft__j_append(c, column.u.list, bound[1]));
        WEFT__J_TRY(weft__j_append(c, columns.u.list, column));
    }
    return generate(c, columns, out);
}

/* ---- ordering ---- */

static weft_status lowered(weft__jctx *c, weft__jval v, int case_sensitive, weft__jval *out)
{
    *out = v;
    return case_sensitive || v.type != WEFT__J_STRING ? WEFT_OK : weft__j_case(c, v.u.s, WEFT__J_LOWER, out);
}

/* What an item is compared by: the attribute, without regard to case unless asked for. */
static weft_status key_of(weft__jctx *c, weft__jval item, weft__jval attribute, int case_sensitive, weft__jval *out)
{
    weft__jval v;
    WEFT__J_TRY(weft__j_getpath(c, item, attribute, &v));
    return lowered(c, v, case_sensitive, out);
}

/* sort takes several attributes, separated by commas, and compares lists of them. */
static weft_status keys_of(weft__jctx *c, weft__jval item, weft__jval attribute, int case_sensitive, weft__jval *out)
{
    weft__jval list, parts, key;
    WEFT__J_TRY(weft__j_new_list(c, WEFT__J_LIST, 1, &list));
    *out = list;
    if (attribute.type != WEFT__J_STRING) {
        WEFT__J_TRY(key_of(c, item, attribute, case_sensitive, &key));
        return weft__j_append(c, list.u.list, key);
    }
    weft__jval comma;
    WEFT__J_TRY(weft__j_literal(c, ",", &comma));
    WEFT__J_TRY(weft__j_split(c, attribute.u.s, comma.u.s, -1, &parts));
    for (size_t i = 0; i < parts.u.list->n; i++) {
        WEFT__J_TRY(key_of(c, item, parts.u.list->items[i], case_sensitive, &key));
        WEFT__J_TRY(weft__j_append(c, list.u.list, key));
    }
    return WEFT_OK;
}

static weft_status filter_sort(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    PARAMS("reverse", "case_sensitive", "attribute");
    weft__jval bound[N_PARAMS], list;
    int64_t reverse;
    WEFT__J_TRY(weft__j_bind(c, "sort", args, names, N_PARAMS, 0, bound));
    WEFT__J_TRY(weft__j_want_int(c, "sort's reverse", bound[0], 0, &reverse));
    WEFT__J_TRY(weft__j_to_list(c, v, WEFT__J_LIST, &list));
    weft__jlist *items = list.u.list;
    weft__jval *keys = weft__j_alloc_array(c, items->n, sizeof *keys);
    if (!keys) return WEFT__J_NO_ROOM(c);
    for (size_t i = 0; i < items->n; i++) WEFT__J_TRY(keys_of(c, items->items[i], bound[2], given_true(bound[1]), &keys[i]));
    WEFT__J_TRY(weft__j_sort(c, keys, items->items, items->n, reverse != 0));
    *out = list;
    return WEFT_OK;
}

static weft_status filter_dictsort(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    PARAMS("case_sensitive", "by", "reverse");
    weft__jval bound[N_PARAMS], list;
    int64_t reverse;
    WEFT__J_TRY(weft__j_bind(c, "dictsort", args, names, N_PARAMS, 0, bound));
    WEFT__J_TRY(weft__j_want_int(c, "dictsort's reverse", bound[2], 0, &reverse));
    if (v.type == WEFT__J_UNDEFINED) return weft__j_fail_undefined(c, v);
    if (v.type != WEFT__J_DICT) return weft__j_fail(c, WEFT_ARGUMENT, "dictsort needs a dict, not '%s'", weft__j_type_name(v));
    int by_value = bound[1].type == WEFT__J_STRING && weft__j_str_is(bound[1].u.s, "value");
    if (bound[1].type != WEFT__J_MISSING && !by_value &&
        !(bound[1].type == WEFT__J_STRING && weft__j_str_is(bound[1].u.s, "key"))) {
        return weft__j_fail(c, WEFT_ARGUMENT, "dictsort sorts by 'key' or 'value'");
    }
    v.type = WEFT__J_VIEW;
    v.aux = WEFT__J_ITEMS;
    WEFT__J_TRY(weft__j_to_list(c, v, WEFT__J_LIST, &list));
    weft__jlist *items = list.u.list;
    weft__jval *keys = weft__j_alloc_array(c, items->n, sizeof *keys);
    if (!keys) return WEFT__J_NO_ROOM(c);
    for (size_t i = 0; i < items->n; i++) {
        WEFT__J_TRY(lowered(c, items->items[i].u.list->items[by_value], given_true(bound[0]), &keys[i]));
    }
    WEFT__J_TRY(weft__j_sort(c, keys, items->items, items->n, reverse != 0));
    *out = list;
    return WEFT_OK;
}

static weft_status filter_unique(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    PARAMS("case_sensitive", "attribute");
    weft__jval bound[N_PARAMS], seen, kept, key;
    weft__jlist *list;
    WEFT__J_TRY(weft__j_bind(c, "unique", args, names, N_PARAMS, 0, bound));
    WEFT__J_TRY(list_of(c, v, &list));
    WEFT__J_TRY(weft__j_new_dict(c, &seen));
    WEFT__J_TRY(weft__j_new_list(c, WEFT__J_LIST, 0, &kept));
    for (size_t i = 0; i < list->n; i++) {
        weft__jentry *e;
        WEFT__J_TRY(key_of(c, list->items[i], bound[1], given_true(bound[0]), &key));
        WEFT__J_TRY(weft__j_dict_find(c, seen.u.dict, key, &e));
        if (e) continue;
        WEFT__J_TRY(weft__j_dict_set(c, seen.u.dict, key, weft__j_none()));
        WEFT__J_TRY(weft__j_append(c, kept.u.list, list->items[i]));
    }
    return generate(c, kept, out);
}

static weft_status extreme(weft__jctx *c, const char *what, weft__jval v, const weft__jargs *args, weft__jop better,
                           weft__jval *out)
{
    PARAMS("case_sensitive", "attribute");
    weft__jval bound[N_PARAMS], best = {0}, key;
    weft__jlist *list;
    WEFT__J_TRY(weft__j_bind(c, what, args, names, N_PARAMS, 0, bound));
    WEFT__J_TRY(list_of(c, v, &list));
    *out = weft__j_undefined(v, NULL);
    for (size_t i = 0; i < list->n; i++) {
        int take = 1;
        WEFT__J_TRY(key_of(c, list->items[i], bound[1], given_true(bound[0]), &key));
        if (i) WEFT__J_TRY(weft__j_compare(c, better, key, best, &take));
        if (!take) continue;
        best = key;
        *out = list->items[i];
    }
    return WEFT_OK;
}

static weft_status filter_min(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    return extreme(c, "min", v, args, WEFT__J_LT, out);
}

static weft_status filter_max(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    return extreme(c, "max", v, args, WEFT__J_GT, out);
}

static weft_status path_or(weft__jctx *c, weft__jval item, weft__jval path, weft__jval otherwise, weft__jval *out)
{
    WEFT__J_TRY(weft__j_getpath(c, item, path, out));
    int use = out->type == WEFT__J_UNDEFINED && otherwise.type != WEFT__J_MISSING && otherwise.type != WEFT__J_NONE;
    if (use) *out = otherwise;
    return WEFT_OK;
}

static weft_status filter_groupby(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    PARAMS("attribute", "default", "case_sensitive");
    weft__jval bound[N_PARAMS], list, groups, group = {0}, members, real;
    WEFT__J_TRY(weft__j_bind(c, "groupby", args, names, N_PARAMS, 1, bound));
    WEFT__J_TRY(weft__j_to_list(c, v, WEFT__J_LIST, &list));
    WEFT__J_TRY(weft__j_new_list(c, WEFT__J_LIST, 0, &groups));
    weft__jlist *items = list.u.list;
    weft__jval *keys = weft__j_alloc_array(c, items->n, sizeof *keys);
    if (!keys) return WEFT__J_NO_ROOM(c);
    for (size_t i = 0; i < items->n; i++) {
        WEFT__J_TRY(path_or(c, items->items[i], bound[0], bound[1], &real));
        WEFT__J_TRY(lowered(c, real, given_true(bound[2]), &keys[i]));
    }
    WEFT__J_TRY(weft__j_sort(c, keys, items->items, items->n, 0));
    for (size_t i = 0; i < items->n; i++) {
        int same = 0;
        if (i) WEFT__J_TRY(weft__j_eq(c, keys[i], keys[i - 1], &same));
        if (!same) {
            WEFT__J_TRY(path_or(c, items->items[i], bound[0], bound[1], &real));
            WEFT__J_TRY(weft__j_new_list(c, WEFT__J_LIST, 0, &members));
            WEFT__J_TRY(weft__j_pair(c, real, members, &group));
            group.aux = 1;
            WEFT__J_TRY(weft__j_append(c, groups.u.list, group));
        }
        WEFT__J_TRY(weft__j_append(c, group.u.list->items[1].u.list, items->items[i]));
    }
    *out = groups;
    return WEFT_OK;
}

/* ---- item by item ---- */

/* What map, select and their kin do with each item. */
typedef struct work {
    const weft__jfunction *function; /* filter or test; NULL: the item itself, or whether it is true */
    weft__jargs args;
    weft__jval path, otherwise; /* the attribute to look at, MISSING for the item; and what stands in for an undefined one */
    int select, negate;
} work;

static weft_status next_worked(weft__jctx *c, weft__jiter *it, weft__jval *out, int *got)
{
    const work *w = it->state;
    for (;;) {
        weft__jval item, v;
        WEFT__J_TRY(weft__j_next(c, it->inner, &item, got));
        if (!*got) return WEFT_OK;
        WEFT__J_TRY(path_or(c, item, w->path, w->otherwise, &v));
        if (w->function) WEFT__J_TRY(weft__j_call_function(c, w->function, v, &w->args, &v));
        if (!w->select) {
            *out = v;
            return WEFT_OK;
        }
        if (weft__j_truthy(v) == w->negate) continue;
        *out = item;
        return WEFT_OK;
    }
}

static weft_status start_work(weft__jctx *c, weft__jval v, const work *w, weft__jval *out)
{
    weft__jiter *it = weft__j_alloc(c, sizeof *it);
    work *copy = weft__j_alloc(c, sizeof *copy);
    if (!it || !copy) return WEFT__J_NO_ROOM(c);
    *copy = *w;
    memset(it, 0, sizeof *it);
    it->next = next_worked;
    it->state = copy;
    WEFT__J_TRY(weft__j_iter(c, v, &it->inner));
    return weft__j_of_iter(c, it, out);
}

/* Of nothing these filters make nothing, and never look at their arguments. */
static weft_status yield_nothing(weft__jctx *c, weft__jval *out)
{
    return generate(c, weft__j_undefined(weft__j_of(WEFT__J_MISSING), NULL), out);
}

/* The function that a positional argument names, with the arguments after it. */
static weft_status find_function(weft__jctx *c, const char *what, const weft__jargs *args, size_t at,
                                 const weft__jfunction *(*find)(const weft__jstr *), work *w)
{
    weft__jval name = args->pos[at];
    w->args = *args;
    w->args.pos += at + 1;
    w->args.n_pos -= at + 1;
    w->function = name.type == WEFT__J_STRING ? find(name.u.s) : NULL;
    if (w->function) return WEFT_OK;
    int n = name.type == WEFT__J_STRING && name.u.s->len < 60 ? (int)name.u.s->len : 0;
    return weft__j_fail(c, WEFT_ARGUMENT, "there is no %s named '%.*s'", what, n, n ? name.u.s->data : "");
}

static weft_status filter_map(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    PARAMS("attribute", "default");
    work w = {0};
    weft__jval bound[N_PARAMS];
    if (!weft__j_truthy(v)) return yield_nothing(c, out);
    if (args->n_pos) {
        WEFT__J_TRY(find_function(c, "filter", args, 0, weft__j_filter, &w));
        return start_work(c, v, &w, out);
    }
    WEFT__J_TRY(weft__j_bind(c, "map", args, names, N_PARAMS, 1, bound));
    w.path = bound[0];
    w.otherwise = bound[1];
    return start_work(c, v, &w, out);
}

static weft_status choose(weft__jctx *c, weft__jval v, const weft__jargs *args, int by_attribute, int negate, weft__jval *out)
{
    work w = {.select = 1, .negate = negate};
    size_t at = by_attribute != 0;
    if (!weft__j_truthy(v)) return yield_nothing(c, out);
    if (args->n_pos < at) return weft__j_fail(c, WEFT_ARGUMENT, "the filter needs the name of an attribute");
    if (by_attribute) w.path = args->pos[0];
    if (args->n_pos > at) WEFT__J_TRY(find_function(c, "test", args, at, weft__j_test, &w));
    return start_work(c, v, &w, out);
}

static weft_status filter_select(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    return choose(c, v, args, 0, 0, out);
}

static weft_status filter_reject(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    return choose(c, v, args, 0, 1, out);
}

static weft_status filter_selectattr(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    return choose(c, v, args, 1, 0, out);
}

static weft_status filter_rejectattr(weft__jctx *c, weft__jval v, const weft__jargs *args, weft__jval *out)
{
    return choose(c, v, args, 1, 1, out);
}

const weft__jfunction *weft__j_seq_filter(const weft__jstr *name)
{
    static const weft__jfunction table[] = {
        {"batch", filter_batch},
        {"dictsort", filter_dictsort},
        {"first", filter_first},
        {"groupby", filter_groupby},
        {"items", filter_items},
        {"join", filter_join},
        {"last", filter_last},
        {"list", filter_list},
        {"map", filter_map},
        {"max", filter_max},
        {"min", filter_min},
        {"reject", filter_reject},
        {"rejectattr", filter_rejectattr},
        {"reverse", filter_reverse},
        {"select", filter_select},
        {"selectattr", filter_selectattr},
        {"slice", filter_slice},
        {"sort", filter_sort},
        {"sum", filter_sum},
        {"unique", filter_unique},
        {NULL, NULL},
    };
    return weft__j_lookup(table, name);
}
