/* matmul_act.c: 8-bit activations for VPMADDUBSW on registers of 64 bytes. Reentrant. */
#include "kernels/avx512/matmul.h"
#include "kernels/simd/matmul_act.h"

const weft__act weft__act_q8_avx512 = {"q8_avx512", MM_TILE, mm_act8_bytes, mm_act8_put};
