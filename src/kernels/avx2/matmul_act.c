/* matmul_act.c: 8-bit activations for VPMADDUBSW. Reentrant. */
#include "kernels/simd/matmul_act.h"
#include "kernels/avx2/matmul.h"

static void put(const float *x, int64_t ldx, const weft__act_part *part, void *act)
{
    mm_act8_put(x, ldx, part, act);
}

const weft__act weft__act_q8_avx2 = {"q8_avx2", MM_TILE, mm_act8_bytes, put, mm_act8_take};
