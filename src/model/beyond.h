// SPDX-License-Identifier: Apache-2.0
/* beyond.h: values that the types of a file cannot hold, over all its tensors. One thread. */
#ifndef WEFT_MODEL_BEYOND_H
#define WEFT_MODEL_BEYOND_H

#include "quant/encode.h"

/* Zero-initialise. */
typedef struct weft__model_beyond {
    weft__quant_beyond first; /* the first one, and the number of all */
    uint32_t dtype;           /* of its tensor, whose name follows */
    char name[128];
    int32_t n_tensors;
} weft__model_beyond;

void weft__model_beyond_note(weft__model_beyond *b, const char *name, uint32_t dtype,
                             const weft__quant_beyond *of_tensor);
/* WEFT_ARGUMENT, which tells count and first tensor, when there are any and they are not to be saturated. */
weft_status weft__model_beyond_check(const weft__model_beyond *b, int saturate, weft_error *err);

#endif
