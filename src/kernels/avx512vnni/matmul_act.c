// SPDX-License-Identifier: Apache-2.0
/* matmul_act.c: 8-bit activations for VPDPBUSD (simd/matmul_layout.h). Reentrant. */
#include "kernels/avx512vnni/matmul_act.h"
#include "kernels/avx512vnni/matmul.h"

const weft__act weft__act_q8_avx512vnni = {"q8_avx512vnni", MM_TILE,      mm_act8_bytes,
                                           mm_put_steps,    mm_act8_take, MM_BLOCK_STEPS *MM_STEP};
