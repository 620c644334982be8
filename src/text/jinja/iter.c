/* iter.c: walking over values (value.h). A walk looks at a container's present size at every step, so that one that
 * changes meanwhile does no harm. */
#include <string.h>

#include "base/text.h"
#include "text/jinja/value.h"

size_t weft__j_len(weft__jval v)
{
    switch (v.type) {
    case WEFT__J_UNDEFINED: return 0;
    case WEFT__J_STRING: return v.u.s->n_chars;
    case WEFT__J_LIST:
    case WEFT__J_TUPLE: return v.u.list->n;
    case WEFT__J_DICT:
    case WEFT__J_VIEW: return v.u.dict->n;
    case WEFT__J_RANGE: return v.u.range->n;
    default: return SIZE_MAX;
    }
}

int weft__j_iterable(weft__jval v)
{
    return v.type == WEFT__J_ITER || weft__j_len(v) != SIZE_MAX;
}

static weft_status next_item(weft__jctx *c, weft__jiter *it, weft__jval *out, int *got)
{
    (void)c;
    const weft__jlist *list = it->source.u.list;
    *got = it->at < list->n;
    if (*got) *out = list->items[it->at++];
    return WEFT_OK;
}

static weft_status next_entry(weft__jctx *c, weft__jiter *it, weft__jval *out, int *got)
{
    const weft__jdict *d = it->source.u.dict;
    *got = it->at < d->n;
    if (!*got) return WEFT_OK;
    const weft__jentry *e = &d->entries[it->at++];
    weft__jview view = it->source.type == WEFT__J_VIEW ? (weft__jview)it->source.aux : WEFT__J_KEYS;
    if (view == WEFT__J_ITEMS) return weft__j_pair(c, e->key, e->value, out);
    *out = view == WEFT__J_KEYS ? e->key : e->value;
    return WEFT_OK;
}

static weft_status next_char(weft__jctx *c, weft__jiter *it, weft__jval *out, int *got)
{
    const weft__jstr *s = it->source.u.s;
    *got = it->at < s->len;
    if (!*got) return WEFT_OK;
    size_t from = it->at;
    it->at += (size_t)weft__utf8_length((unsigned char)s->data[from]);
    WEFT__J_TRY(weft__j_slice(c, s, from, it->at, out));
    return weft__j_markup(c, out->u.s, 0, out); /* Python walks markup as plain characters */
}

static weft_status next_number(weft__jctx *c, weft__jiter *it, weft__jval *out, int *got)
{
    (void)c;
    const weft__jrange *r = it->source.u.range;
    *got = it->at < r->n;
    if (*got) *out = weft__j_int((int64_t)((uint64_t)r->start + (uint64_t)r->step * it->at++));
    return WEFT_OK;
}

static weft_status next_nothing(weft__jctx *c, weft__jiter *it, weft__jval *out, int *got)
{
    (void)c, (void)it, (void)out;
    *got = 0;
    return WEFT_OK;
}

weft_status weft__j_iter(weft__jctx *c, weft__jval v, weft__jiter **out)
{
    if (v.type == WEFT__J_ITER) {
        *out = v.u.iter;
        return WEFT_OK;
    }
    weft__jiter *it = weft__j_alloc(c, sizeof *it);
    if (!it) return WEFT__J_NO_ROOM(c);
    memset(it, 0, sizeof *it);
    it->source = v;
    switch (v.type) {
    case WEFT__J_UNDEFINED: it->next = next_nothing; break;
    case WEFT__J_STRING: it->next = next_char; break;
    case WEFT__J_LIST:
    case WEFT__J_TUPLE: it->next = next_item; break;
    case WEFT__J_DICT:
    case WEFT__J_VIEW: it->next = next_entry; break;
    case WEFT__J_RANGE: it->next = next_number; break;
    default: return weft__j_fail(c, WEFT_ARGUMENT, "'%s' cannot be looped over", weft__j_type_name(v));
    }
    *out = it;
    return WEFT_OK;
}

weft_status weft__j_next(weft__jctx *c, weft__jiter *it, weft__jval *out, int *got)
{
    WEFT__J_TRY(weft__j_spend(c, 1));
    WEFT__J_TRY(weft__j_enter(c)); /* generators over generators nest */
    weft_status status = it->next(c, it, out, got);
    weft__j_leave(c);
    return status;
}

weft_status weft__j_of_iter(weft__jctx *c, weft__jiter *it, weft__jval *out)
{
    (void)c;
    *out = weft__j_of(WEFT__J_ITER);
    out->u.iter = it;
    return WEFT_OK;
}

weft_status weft__j_to_list(weft__jctx *c, weft__jval v, weft__jtype type, weft__jval *out)
{
    weft__jiter *it;
    weft__jval list;
    size_t n = weft__j_len(v);
    WEFT__J_TRY(weft__j_iter(c, v, &it));
    WEFT__J_TRY(weft__j_new_list(c, type, n == SIZE_MAX ? 0 : n, &list));
    for (;;) {
        weft__jval item;
        int got;
        WEFT__J_TRY(weft__j_next(c, it, &item, &got));
        if (!got) break;
        WEFT__J_TRY(weft__j_append(c, list.u.list, item));
    }
    *out = list;
    return WEFT_OK;
}
