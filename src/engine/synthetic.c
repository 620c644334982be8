// SPDX-License-Identifier: Apache-2.0
/* synthetic.c: weft_synthetic_write: a model of random weights as a file. */
#include "engine/handles.h"

weft_status weft_synthetic_write(const char *shape, uint32_t dtype, const char *path, weft_progress_fn progress,
                                 void *arg, weft_error *err)
{
    weft__synthetic *s;
    weft_status st = weft__synthetic_create(shape, dtype, progress, arg, &s, err);
    if (st) return st;
    st = weft__synthetic_write(s, path, progress, arg, err);
    weft__synthetic_destroy(&s);
    return st;
}
