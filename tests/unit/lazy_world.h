// SPDX-License-Identifier: Apache-2.0
/* lazy_world.h: what the tests of lazy grammars share: a place in a text, before its trigger or behind it. One
 * thread. */
#ifndef WEFT_TESTS_LAZY_WORLD_H
#define WEFT_TESTS_LAZY_WORLD_H

#include "unit/grammar_world.h"

#include "text/grammar/lazy.h"

typedef struct place {
    weft__gram_watch *watch;
    weft__gram_matcher *m;
} place;

static inline weft_status place_mask(place *p, uint64_t *bits)
{
    return p->m ? weft__gram_matcher_mask(p->m, bits, NULL) : weft__gram_watch_mask(p->watch, bits, NULL);
}

static inline weft_status place_accept(place *p, int32_t token)
{
    return p->m ? weft__gram_matcher_accept(p->m, token, NULL) : weft__gram_watch_accept(p->watch, token, &p->m, NULL);
}

static inline void place_copy(const place *p, place *to)
{
    *to = (place){0};
    assert_int_equal(p->m ? weft__gram_matcher_copy(p->m, &to->m, NULL)
                          : weft__gram_watch_copy(p->watch, &to->watch, NULL),
                     WEFT_OK);
}

static inline void place_close(place *p)
{
    weft__gram_watch_destroy(&p->watch);
    weft__gram_matcher_destroy(&p->m);
}

#endif
