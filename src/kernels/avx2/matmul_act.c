/* matmul_act.c: 8-bit activations for VPMADDUBSW. Reentrant. */
#include "kernels/avx2/matmul.h"
#include "kernels/simd/matmul_act.h"

const weft__act weft__act_q8_avx2 = {"q8_avx2", MM_TILE, mm_act8_bytes, mm_act8_put};
