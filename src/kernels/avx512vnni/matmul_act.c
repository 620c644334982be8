/* matmul_act.c: 8-bit activations for VPDPBUSD. Reentrant. */
#include "kernels/avx512vnni/matmul.h"
#include "kernels/simd/matmul_act.h"

const weft__act weft__act_q8_avx512vnni = {"q8_avx512vnni", MM_TILE, mm_act8_bytes, mm_act8_put};
