// SPDX-License-Identifier: Apache-2.0
/* beyond.c: see beyond.h. */
#include "model/beyond.h"

#include <stdio.h>

void weft__model_beyond_note(weft__model_beyond *b, const char *name, uint32_t dtype,
                             const weft__quant_beyond *of_tensor)
{
    if (!of_tensor->n) return;
    if (!b->first.n) {
        b->dtype = dtype;
        snprintf(b->name, sizeof b->name, "%s", name);
    }
    b->n_tensors++;
    weft__quant_beyond_add(&b->first, of_tensor);
}

weft_status weft__model_beyond_check(const weft__model_beyond *b, int saturate, weft_error *err)
{
    const weft__quant_beyond *first = &b->first;
    if (!first->n || saturate) return WEFT_OK;
    return weft_fail(
        err, WEFT_ARGUMENT,
        "%lld %s beyond what %s can hold, in %d %s, first in %s (row %lld, column %lld: %g); choose BF16 or F32, or "
        "have the nearest written (--saturate)",
        (long long)first->n, first->n == 1 ? "value is" : "values are", weft_dtype_describe(b->dtype).name,
        b->n_tensors, b->n_tensors == 1 ? "tensor" : "tensors", b->name, (long long)first->row,
        (long long)first->column, (double)first->value);
}
