/* loop.c: the variable `loop` (loop.h). Items are read ahead only when asked whether there is a next one. */
#include "text/jinja/loop.h"

#include <string.h>

weft_status weft__j_loop_create(weft__jctx *c, weft__jval source, weft__jiter *it, weft__jloop **out)
{
    weft__jloop *loop = weft__j_alloc(c, sizeof *loop);
    if (!loop) return WEFT__J_NO_ROOM(c);
    memset(loop, 0, sizeof *loop);
    loop->source = source;
    loop->it = it;
    loop->index0 = -1;
    loop->length = SIZE_MAX;
    *out = loop;
    return WEFT_OK;
}

/* Fills loop->after unless the walk is over. */
static weft_status peek(weft__jctx *c, weft__jloop *loop)
{
    if (loop->after.type != WEFT__J_MISSING || loop->ended) return WEFT_OK;
    int got;
    WEFT__J_TRY(weft__j_next(c, loop->it, &loop->after, &got));
    if (!got) {
        loop->after = weft__j_of(WEFT__J_MISSING);
        loop->ended = 1;
    }
    return WEFT_OK;
}

weft_status weft__j_loop_next(weft__jctx *c, weft__jloop *loop, int *got)
{
    WEFT__J_TRY(peek(c, loop));
    *got = loop->after.type != WEFT__J_MISSING;
    if (!*got) return WEFT_OK;
    loop->index0++;
    loop->before = loop->current;
    loop->current = loop->after;
    loop->after = weft__j_of(WEFT__J_MISSING);
    return WEFT_OK;
}

static weft_status find_length(weft__jctx *c, weft__jloop *loop)
{
    if (loop->length != SIZE_MAX) return WEFT_OK;
    loop->length = weft__j_len(loop->source);
    if (loop->length != SIZE_MAX) return WEFT_OK;
    /* A generator: what is left becomes a list, which the loop goes on with. */
    weft__jval rest = weft__j_of(WEFT__J_ITER);
    rest.u.iter = loop->it;
    WEFT__J_TRY(weft__j_to_list(c, rest, WEFT__J_LIST, &rest));
    WEFT__J_TRY(weft__j_iter(c, rest, &loop->it));
    loop->length = rest.u.list->n + (size_t)(loop->index0 + 1) + (loop->after.type != WEFT__J_MISSING);
    return WEFT_OK;
}

static weft_status call_cycle(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    if (!args->n_pos || args->n_named) return weft__j_fail(c, WEFT_ARGUMENT, "loop.cycle needs the items to cycle through");
    int64_t at = self.u.loop->index0 < 0 ? 0 : self.u.loop->index0;
    *out = args->pos[(size_t)at % args->n_pos];
    return WEFT_OK;
}

static weft_status call_changed(weft__jctx *c, weft__jval self, const weft__jargs *args, weft__jval *out)
{
    weft__jval now;
    int same = 0;
    WEFT__J_TRY(weft__j_new_list(c, WEFT__J_TUPLE, args->n_pos, &now));
    for (size_t i = 0; i < args->n_pos; i++) WEFT__J_TRY(weft__j_append(c, now.u.list, args->pos[i]));
    weft__jloop *loop = self.u.loop;
    if (loop->changed.type != WEFT__J_MISSING) WEFT__J_TRY(weft__j_eq(c, loop->changed, now, &same));
    if (!same) loop->changed = now;
    *out = weft__j_bool(!same);
    return WEFT_OK;
}

static const weft__jfunction methods[] = {{"cycle", call_cycle}, {"changed", call_changed}, {NULL, NULL}};

static weft_status neighbour(weft__jval item, const weft__jstr *name, weft__jval *out)
{
    *out = item.type == WEFT__J_MISSING ? weft__j_undefined(weft__j_of(WEFT__J_LOOP), name) : item;
    return WEFT_OK;
}

static weft_status from_end(weft__jctx *c, weft__jloop *loop, int64_t index, weft__jval *out)
{
    WEFT__J_TRY(find_length(c, loop));
    *out = weft__j_int((int64_t)loop->length - index);
    return WEFT_OK;
}

weft_status weft__j_loop_attribute(weft__jctx *c, weft__jloop *loop, const weft__jstr *name, int *found, weft__jval *out)
{
    *found = 1;
    if (weft__j_str_is(name, "index0")) return *out = weft__j_int(loop->index0), WEFT_OK;
    if (weft__j_str_is(name, "index")) return *out = weft__j_int(loop->index0 + 1), WEFT_OK;
    if (weft__j_str_is(name, "first")) return *out = weft__j_bool(loop->index0 == 0), WEFT_OK;
    if (weft__j_str_is(name, "depth0")) return *out = weft__j_int(loop->depth0), WEFT_OK;
    if (weft__j_str_is(name, "depth")) return *out = weft__j_int(loop->depth0 + 1), WEFT_OK;
    if (weft__j_str_is(name, "length")) return from_end(c, loop, 0, out);
    if (weft__j_str_is(name, "revindex")) return from_end(c, loop, loop->index0, out);
    if (weft__j_str_is(name, "revindex0")) return from_end(c, loop, loop->index0 + 1, out);
    if (weft__j_str_is(name, "previtem")) return neighbour(loop->before, name, out);
    int last = weft__j_str_is(name, "last");
    if (last || weft__j_str_is(name, "nextitem")) {
        WEFT__J_TRY(peek(c, loop));
        if (!last) return neighbour(loop->after, name, out);
        *out = weft__j_bool(loop->after.type == WEFT__J_MISSING);
        return WEFT_OK;
    }
    const weft__jfunction *f = weft__j_lookup(methods, name);
    *found = f != NULL;
    if (!f) return WEFT_OK;
    weft__jmethod *method = weft__j_alloc(c, sizeof *method);
    if (!method) return WEFT__J_NO_ROOM(c);
    method->self = weft__j_of(WEFT__J_LOOP);
    method->self.u.loop = loop;
    method->function = f;
    *out = weft__j_of(WEFT__J_METHOD);
    out->u.method = method;
    return WEFT_OK;
}
