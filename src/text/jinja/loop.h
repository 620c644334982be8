// SPDX-License-Identifier: Apache-2.0
/* loop.h: the state of a for loop, which templates see as `loop`. Owned by the rendering. */
#ifndef WEFT_TEXT_JINJA_LOOP_H
#define WEFT_TEXT_JINJA_LOOP_H

#include "text/jinja/value.h"

struct weft__jinja_node;
struct weft__jinja_scope;

struct weft__jinja_loop {
    weft__jinja_val source; /* what is looped over */
    weft__jinja_iter *it;
    int64_t index0;                         /* -1 before the first item */
    weft__jinja_val before, current, after; /* MISSING where there is none (yet); `after` has been read ahead */
    int ended;                              /* the walk has reached its end */
    size_t length;                          /* SIZE_MAX until asked for */
    weft__jinja_val changed;                /* what loop.changed saw last */
    int64_t depth0;
    const struct weft__jinja_node *node; /* of a recursive loop, for loop(children); NULL otherwise */
    struct weft__jinja_scope *scope;     /* around the loop */
    const struct weft__jinja *t;
};

weft_status weft__jinja_loop_create(weft__jinja_ctx *c, weft__jinja_val source, weft__jinja_iter *it,
                                    weft__jinja_loop **out);
/* Moves to the next item; *got 0 at the end. */
weft_status weft__jinja_loop_next(weft__jinja_ctx *c, weft__jinja_loop *loop, int *got);
/* loop.index, loop.last ...; *found 0 when there is no such attribute. */
weft_status weft__jinja_loop_attribute(weft__jinja_ctx *c, weft__jinja_loop *loop, const weft__jinja_str *name,
                                       int *found, weft__jinja_val *out);

#endif
