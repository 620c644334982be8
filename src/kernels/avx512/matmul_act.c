// SPDX-License-Identifier: Apache-2.0
/* matmul_act.c: 8-bit activations for VPMADDUBSW on registers of 64 bytes. Reentrant. */
#include "kernels/simd/matmul_act.h"
#include "kernels/avx512/matmul.h"

static void matmul_act_put(const float *x, int64_t ldx, const weft__act_part *part, void *act)
{
    mm_act8_put(x, ldx, part, act);
}

const weft__act weft__act_q8_avx512 = {"q8_avx512", MM_TILE, mm_act8_bytes, matmul_act_put, mm_act8_take};
