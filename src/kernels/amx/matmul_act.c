// SPDX-License-Identifier: Apache-2.0
/* matmul_act.c: 8-bit activations for AMX: those of VPDPBUSD, in tiles of 16 rows (simd/matmul_layout.h). Reentrant. */
#include "kernels/amx/matmul.h"
#include "kernels/avx512vnni/matmul_act.h"

const weft__act weft__act_q8_amx = {"q8_amx",     MM_TILE_SMALL, mm_act8_bytes,
                                    mm_put_steps, mm_act8_take,  MM_BLOCK_STEPS *MM_STEP};
