// SPDX-License-Identifier: Apache-2.0
/* sweep.h: the claim that wherever an allocation fails there is an error with a message, no crash and no leak. For a
 * body that uses threads, so the gate counts atomically; bodies of one thread have fail_each (unit/fixture.h). */
#ifndef WEFT_TESTS_SWEEP_H
#define WEFT_TESTS_SWEEP_H

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "weft/error.h"

static inline int sweep_refuse_nth(void *arg, size_t n_bytes)
{
    (void)n_bytes;
    return atomic_fetch_sub((atomic_int *)arg, 1) != 0;
}

/* Runs `body` with its first, then its second ... allocation refused. */
static inline void sweep(weft_status (*body)(const void *arg, weft_error *err), const void *arg)
{
    weft_error err = {0};
    if (body(arg, &err)) fail_msg("%s", err.message); /* what is made once per process is made now */
    size_t live = weft__alloc_live();
    int n, done = 0;
    for (n = 0; !done; n++) {
        atomic_int left = n;
        memset(&err, 0, sizeof err);
        weft__alloc_set_gate(sweep_refuse_nth, &left);
        weft_status st = body(arg, &err);
        weft__alloc_set_gate(NULL, NULL);
        done = atomic_load(&left) >= 0; /* none failed this time */
        if (!done && st == WEFT_OK) fail_msg("allocation %d failed and nobody noticed", n);
        if (!done && !err.message[0]) fail_msg("allocation %d failed without a message", n);
        if (done && st) fail_msg("%s", err.message);
        if (weft__alloc_live() != live) fail_msg("allocation %d failed: %zu blocks leak", n, weft__alloc_live() - live);
        if (n > 100000) fail_msg("endless");
    }
    printf("           %d allocations failed, one at a time\n", n - 1);
    assert_true(n > 50);
}

#endif
