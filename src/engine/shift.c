// SPDX-License-Identifier: Apache-2.0
/* shift.c: how a text goes on where its context is full: its first tokens and its last ones are read anew, as a prompt
 * of their own; what stood between them is gone. So what follows is what a fresh run over the kept tokens gives, bit
 * for bit, whatever was cached and in whatever chunks they are read. Any thread. */
#include <string.h>

#include "engine/handles.h"

enum { SINKS = 4 }; /* the first tokens, on which attention rests (Xiao et al. 2023) */

int32_t weft__engine_shift(int32_t *tokens, int32_t n, int32_t n_most, int32_t n_keep)
{
    const int32_t half = (n_most - n_keep) / 2, tail = half > 0 ? half : 1;
    memmove(tokens + n_keep, tokens + n - tail, (size_t)tail * sizeof *tokens);
    return n_keep + tail;
}

weft_status weft__engine_shift_keep(int32_t asked, int32_t n_most, int32_t *n_keep, weft_error *err)
{
    const int32_t most = n_most > 2 ? n_most / 2 : 0; /* what stays is to be less than the context */
    if (asked < 0 || asked > most)
        return weft_fail(err, WEFT_ARGUMENT,
                         "the first %d tokens are to stay where a context of %d is full; at most half of it can", asked,
                         n_most);
    *n_keep = asked > 0 ? asked : SINKS < most ? SINKS : most;
    return WEFT_OK;
}
