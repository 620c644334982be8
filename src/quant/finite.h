// SPDX-License-Identifier: Apache-2.0
/* finite.h: weights that are copied as they are must be numbers; those that are encoded are looked at by their encoders
 * (encode.h). */
#ifndef WEFT_QUANT_FINITE_H
#define WEFT_QUANT_FINITE_H

#include "weft/buffer.h"

/* Looks at n elements of F32, F16 or BF16 at `src` (any alignment), which are those of a tensor from element `first`,
 * in rows of k; `is_vector`: it has but one row. WEFT_ARGUMENT names row and column of the first NaN or infinity. Other
 * types pass. Reentrant. */
weft_status weft__quant_check_finite(uint32_t dtype, const void *src, uint64_t first, uint64_t n, uint64_t k,
                                     int is_vector, weft_error *err);

#endif
