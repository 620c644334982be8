// SPDX-License-Identifier: Apache-2.0
/* loop.c: the variable `loop` (loop.h). Items are read ahead only when asked whether there is a next one. */
#include "text/jinja/loop.h"

#include <string.h>

weft_status weft__jinja_loop_create(weft__jinja_ctx *c, weft__jinja_val source, weft__jinja_iter *it,
                                    weft__jinja_loop **out)
{
    weft__jinja_loop *loop = weft__jinja_alloc(c, sizeof *loop);
    if (!loop) return WEFT__JINJA_NO_ROOM(c);
    memset(loop, 0, sizeof *loop);
    loop->source = source;
    loop->it = it;
    loop->index0 = -1;
    loop->length = SIZE_MAX;
    *out = loop;
    return WEFT_OK;
}

/* Fills loop->after unless the walk is over. */
static weft_status peek(weft__jinja_ctx *c, weft__jinja_loop *loop)
{
    if (loop->after.type != WEFT__JINJA_MISSING || loop->ended) return WEFT_OK;
    int got;
    WEFT__JINJA_TRY(weft__jinja_next(c, loop->it, &loop->after, &got));
    if (!got) {
        loop->after = weft__jinja_of(WEFT__JINJA_MISSING);
        loop->ended = 1;
    }
    return WEFT_OK;
}

weft_status weft__jinja_loop_next(weft__jinja_ctx *c, weft__jinja_loop *loop, int *got)
{
    WEFT__JINJA_TRY(peek(c, loop));
    *got = loop->after.type != WEFT__JINJA_MISSING;
    if (!*got) return WEFT_OK;
    loop->index0++;
    loop->before = loop->current;
    loop->current = loop->after;
    loop->after = weft__jinja_of(WEFT__JINJA_MISSING);
    return WEFT_OK;
}

static weft_status find_length(weft__jinja_ctx *c, weft__jinja_loop *loop)
{
    if (loop->length != SIZE_MAX) return WEFT_OK;
    loop->length = weft__jinja_len(loop->source);
    if (loop->length != SIZE_MAX) return WEFT_OK;
    /* A generator: what is left becomes a list, which the loop goes on with. */
    weft__jinja_val rest = weft__jinja_of(WEFT__JINJA_ITER);
    rest.u.iter = loop->it;
    WEFT__JINJA_TRY(weft__jinja_to_list(c, rest, WEFT__JINJA_LIST, &rest));
    WEFT__JINJA_TRY(weft__jinja_iterate(c, rest, &loop->it));
    loop->length = rest.u.list->n + (size_t)(loop->index0 + 1) + (loop->after.type != WEFT__JINJA_MISSING);
    return WEFT_OK;
}

static weft_status call_cycle(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                              weft__jinja_val *out)
{
    if (!args->n_pos || args->n_named)
        return weft__jinja_fail(c, WEFT_ARGUMENT, "loop.cycle needs the items to cycle through");
    int64_t at = self.u.loop->index0 < 0 ? 0 : self.u.loop->index0;
    *out = args->pos[(size_t)at % args->n_pos];
    return WEFT_OK;
}

static weft_status call_changed(weft__jinja_ctx *c, weft__jinja_val self, const weft__jinja_args *args,
                                weft__jinja_val *out)
{
    weft__jinja_val now;
    int same = 0;
    WEFT__JINJA_TRY(weft__jinja_new_list(c, WEFT__JINJA_TUPLE, args->n_pos, &now));
    for (size_t i = 0; i < args->n_pos; i++) WEFT__JINJA_TRY(weft__jinja_append(c, now.u.list, args->pos[i]));
    weft__jinja_loop *loop = self.u.loop;
    if (loop->changed.type != WEFT__JINJA_MISSING) WEFT__JINJA_TRY(weft__jinja_eq(c, loop->changed, now, &same));
    if (!same) loop->changed = now;
    *out = weft__jinja_bool(!same);
    return WEFT_OK;
}

static const weft__jinja_function methods[] = {{"cycle", call_cycle}, {"changed", call_changed}, {NULL, NULL}};

static weft_status neighbour(weft__jinja_val item, const weft__jinja_str *name, weft__jinja_val *out)
{
    *out = item.type == WEFT__JINJA_MISSING ? weft__jinja_undefined(weft__jinja_of(WEFT__JINJA_LOOP), name) : item;
    return WEFT_OK;
}

static weft_status from_end(weft__jinja_ctx *c, weft__jinja_loop *loop, int64_t index, weft__jinja_val *out)
{
    WEFT__JINJA_TRY(find_length(c, loop));
    *out = weft__jinja_int((int64_t)loop->length - index);
    return WEFT_OK;
}

weft_status weft__jinja_loop_attribute(weft__jinja_ctx *c, weft__jinja_loop *loop, const weft__jinja_str *name,
                                       int *found, weft__jinja_val *out)
{
    *found = 1;
    if (weft__jinja_str_is(name, "index0")) return *out = weft__jinja_int(loop->index0), WEFT_OK;
    if (weft__jinja_str_is(name, "index")) return *out = weft__jinja_int(loop->index0 + 1), WEFT_OK;
    if (weft__jinja_str_is(name, "first")) return *out = weft__jinja_bool(loop->index0 == 0), WEFT_OK;
    if (weft__jinja_str_is(name, "depth0")) return *out = weft__jinja_int(loop->depth0), WEFT_OK;
    if (weft__jinja_str_is(name, "depth")) return *out = weft__jinja_int(loop->depth0 + 1), WEFT_OK;
    if (weft__jinja_str_is(name, "length")) return from_end(c, loop, 0, out);
    if (weft__jinja_str_is(name, "revindex")) return from_end(c, loop, loop->index0, out);
    if (weft__jinja_str_is(name, "revindex0")) return from_end(c, loop, loop->index0 + 1, out);
    if (weft__jinja_str_is(name, "previtem")) return neighbour(loop->before, name, out);
    int last = weft__jinja_str_is(name, "last");
    if (last || weft__jinja_str_is(name, "nextitem")) {
        WEFT__JINJA_TRY(peek(c, loop));
        if (!last) return neighbour(loop->after, name, out);
        *out = weft__jinja_bool(loop->after.type == WEFT__JINJA_MISSING);
        return WEFT_OK;
    }
    const weft__jinja_function *f = weft__jinja_lookup(methods, name);
    *found = f != NULL;
    if (!f) return WEFT_OK;
    weft__jinja_method *method = weft__jinja_alloc(c, sizeof *method);
    if (!method) return WEFT__JINJA_NO_ROOM(c);
    method->self = weft__jinja_of(WEFT__JINJA_LOOP);
    method->self.u.loop = loop;
    method->function = f;
    *out = weft__jinja_of(WEFT__JINJA_METHOD);
    out->u.method = method;
    return WEFT_OK;
}
