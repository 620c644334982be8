// SPDX-License-Identifier: Apache-2.0
/* matmul_act.c: 8-bit activations for VPMADDUBSW. Reentrant. */
#include "kernels/simd/matmul_act.h"
#include "kernels/avx2/matmul.h"

static void matmul_act_put(const float *x, int64_t ldx, const weft__act_part *part, void *act)
{
    mm_act8_put(x, ldx, part, act);
}

const weft__act weft__act_q8_avx2 = {.name = "q8_avx2",
                                     .tile = MM_TILE,
                                     .bytes = mm_act8_bytes,
                                     .put = matmul_act_put,
                                     .take = mm_act8_take,
                                     .k_block = MM_BLOCK_STEPS * MM_STEP,
                                     .chunk_bytes = MM_CHUNK_BYTES};
