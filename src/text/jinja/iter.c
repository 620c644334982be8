// SPDX-License-Identifier: Apache-2.0
/* iter.c: walking over values (value.h). A walk looks at a container's present size at every step, so that one that
 * changes meanwhile does no harm. */
#include <string.h>

#include "base/text.h"
#include "text/jinja/value.h"

size_t weft__jinja_len(weft__jinja_val v)
{
    switch (v.type) {
    case WEFT__JINJA_UNDEFINED: return 0;
    case WEFT__JINJA_STRING: return v.u.s->n_chars;
    case WEFT__JINJA_LIST:
    case WEFT__JINJA_TUPLE: return v.u.list->n;
    case WEFT__JINJA_DICT:
    case WEFT__JINJA_VIEW: return v.u.dict->n;
    case WEFT__JINJA_RANGE: return v.u.range->n;
    default: return SIZE_MAX;
    }
}

int weft__jinja_iterable(weft__jinja_val v)
{
    return v.type == WEFT__JINJA_ITER || weft__jinja_len(v) != SIZE_MAX;
}

static weft_status next_item(weft__jinja_ctx *c, weft__jinja_iter *it, weft__jinja_val *out, int *got)
{
    (void)c;
    const weft__jinja_list *list = it->source.u.list;
    *got = it->at < list->n;
    if (*got) *out = list->items[it->at++];
    return WEFT_OK;
}

static weft_status next_entry(weft__jinja_ctx *c, weft__jinja_iter *it, weft__jinja_val *out, int *got)
{
    const weft__jinja_dict *d = it->source.u.dict;
    *got = it->at < d->n;
    if (!*got) return WEFT_OK;
    const weft__jinja_entry *e = &d->entries[it->at++];
    weft__jinja_view view = it->source.type == WEFT__JINJA_VIEW ? (weft__jinja_view)it->source.aux : WEFT__JINJA_KEYS;
    if (view == WEFT__JINJA_ITEMS) return weft__jinja_pair(c, e->key, e->value, out);
    *out = view == WEFT__JINJA_KEYS ? e->key : e->value;
    return WEFT_OK;
}

static weft_status next_char(weft__jinja_ctx *c, weft__jinja_iter *it, weft__jinja_val *out, int *got)
{
    const weft__jinja_str *s = it->source.u.s;
    *got = it->at < s->len;
    if (!*got) return WEFT_OK;
    size_t from = it->at;
    it->at += (size_t)weft__utf8_length((unsigned char)s->data[from]);
    WEFT__JINJA_TRY(weft__jinja_slice(c, s, from, it->at, out));
    return weft__jinja_markup(c, out->u.s, 0, out); /* Python walks markup as plain characters */
}

static weft_status next_number(weft__jinja_ctx *c, weft__jinja_iter *it, weft__jinja_val *out, int *got)
{
    (void)c;
    const weft__jinja_range *r = it->source.u.range;
    *got = it->at < r->n;
    if (*got) *out = weft__jinja_int((int64_t)((uint64_t)r->start + (uint64_t)r->step * it->at++));
    return WEFT_OK;
}

static weft_status next_nothing(weft__jinja_ctx *c, weft__jinja_iter *it, weft__jinja_val *out, int *got)
{
    (void)c, (void)it, (void)out;
    *got = 0;
    return WEFT_OK;
}

weft_status weft__jinja_iterate(weft__jinja_ctx *c, weft__jinja_val v, weft__jinja_iter **out)
{
    if (v.type == WEFT__JINJA_ITER) {
        *out = v.u.iter;
        return WEFT_OK;
    }
    weft__jinja_iter *it = weft__jinja_alloc(c, sizeof *it);
    if (!it) return WEFT__JINJA_NO_ROOM(c);
    memset(it, 0, sizeof *it);
    it->source = v;
    switch (v.type) {
    case WEFT__JINJA_UNDEFINED:
        if (c->plain) return weft__jinja_fail_undefined(c, v);
        it->next = next_nothing;
        break;
    case WEFT__JINJA_STRING: it->next = next_char; break;
    case WEFT__JINJA_LIST:
    case WEFT__JINJA_TUPLE: it->next = next_item; break;
    case WEFT__JINJA_DICT:
    case WEFT__JINJA_VIEW: it->next = next_entry; break;
    case WEFT__JINJA_RANGE: it->next = next_number; break;
    default: return weft__jinja_fail(c, WEFT_ARGUMENT, "'%s' cannot be looped over", weft__jinja_type_name(v));
    }
    *out = it;
    return WEFT_OK;
}

weft_status weft__jinja_next(weft__jinja_ctx *c, weft__jinja_iter *it, weft__jinja_val *out, int *got)
{
    WEFT__JINJA_TRY(weft__jinja_spend(c, 1));
    WEFT__JINJA_TRY(weft__jinja_enter(c)); /* generators over generators nest */
    weft_status status = it->next(c, it, out, got);
    weft__jinja_leave(c);
    return status;
}

weft_status weft__jinja_of_iter(weft__jinja_ctx *c, weft__jinja_iter *it, weft__jinja_val *out)
{
    (void)c;
    *out = weft__jinja_of(WEFT__JINJA_ITER);
    out->u.iter = it;
    return WEFT_OK;
}

weft_status weft__jinja_to_list(weft__jinja_ctx *c, weft__jinja_val v, weft__jinja_type type, weft__jinja_val *out)
{
    weft__jinja_iter *it;
    weft__jinja_val list;
    size_t n = weft__jinja_len(v);
    WEFT__JINJA_TRY(weft__jinja_iterate(c, v, &it));
    WEFT__JINJA_TRY(weft__jinja_new_list(c, type, n == SIZE_MAX ? 0 : n, &list));
    for (;;) {
        weft__jinja_val item;
        int got;
        WEFT__JINJA_TRY(weft__jinja_next(c, it, &item, &got));
        if (!got) break;
        WEFT__JINJA_TRY(weft__jinja_append(c, list.u.list, item));
    }
    *out = list;
    return WEFT_OK;
}
