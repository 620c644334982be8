// SPDX-License-Identifier: Apache-2.0
/* fixture.h: what every unit test begins with: cmocka, and an allocator that fails on purpose.
 *
 * `fail_each(body)` runs body once per allocation it makes, with that allocation refused, until a run needs no more;
 * body must report failure cleanly and leave no block behind. Which error path is taken depends neither on the
 * processor nor on threads: with the thread sanitizer and under emulation only the first ones are all refused, then one
 * of a few (claims.h). */
#ifndef WEFT_TESTS_FIXTURE_H
#define WEFT_TESTS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "claims.h"

/* A gate that refuses the allocation numbered `refuse` (from 0), and only that one. */
typedef struct fail_at {
    size_t seen, refuse;
} fail_at;

static inline int fail_at_gate(void *arg, size_t n_bytes)
{
    fail_at *f = arg;
    (void)n_bytes;
    return f->seen++ != f->refuse;
}

enum { FIRST_REFUSED = 12 }; /* each of them, whatever is left out behind them */

/* How many allocations behind the one numbered i the next is refused. */
static inline size_t refuse_stride(size_t i)
{
    return i < FIRST_REFUSED ? 1 : CLAIMS_REPEATED(1, 1, 7);
}

/* As fail_each below, but behind the first allocations only one of `stride` is refused: for work of which hundreds are
 * alike. */
static inline size_t fail_some(int (*body)(void *arg), void *arg, size_t stride)
{
    for (size_t i = 0;; i += i < FIRST_REFUSED ? 1 : stride) {
        fail_at f = {0, i};
        size_t before = weft__alloc_live();
        weft__alloc_set_gate(fail_at_gate, &f);
        int ok = body(arg);
        weft__alloc_set_gate(NULL, NULL);
        assert_int_equal(weft__alloc_live(), before);
        if (f.seen <= i) {
            assert_true(ok); /* nothing was refused in this run */
            return f.seen;
        }
    }
}

/* Runs body(arg) with the first, then the second ... allocation refused. `body` returns 1 when it succeeded and 0 when
 * it reported a failure; it must do the former only when nothing was refused (or when it could do without). Returns how
 * many allocations there are. Fails the test when a block stays behind. */
static inline size_t fail_each(int (*body)(void *arg), void *arg)
{
    return fail_some(body, arg, CLAIMS_REPEATED(1, 1, 7));
}

#endif
