/* loop.h: the state of a for loop, which templates see as `loop`. Owned by the rendering. */
#ifndef WEFT_TEXT_JINJA_LOOP_H
#define WEFT_TEXT_JINJA_LOOP_H

#include "text/jinja/value.h"

struct weft__jnode;
struct weft__jscope;

struct weft__jloop {
    weft__jval source; /* what is looped over */
    weft__jiter *it;
    int64_t index0;                    /* -1 before the first item */
    weft__jval before, current, after; /* MISSING where there is none (yet); `after` has been read ahead */
    int ended;                         /* the walk has reached its end */
    size_t length;                     /* SIZE_MAX until asked for */
    weft__jval changed;                /* what loop.changed saw last */
    int64_t depth0;
    const struct weft__jnode *node; /* of a recursive loop, for loop(children); NULL otherwise */
    struct weft__jscope *scope;     /* around the loop */
    const struct weft__jinja *t;
};

weft_status weft__j_loop_create(weft__jctx *c, weft__jval source, weft__jiter *it, weft__jloop **out);
/* Moves to the next item; *got 0 at the end. */
weft_status weft__j_loop_next(weft__jctx *c, weft__jloop *loop, int *got);
/* loop.index, loop.last ...; *found 0 when there is no such attribute. */
weft_status weft__j_loop_attribute(weft__jctx *c, weft__jloop *loop, const weft__jstr *name, int *found, weft__jval *out);

#endif
