/* matmul_float.c: products with BF16 weights by VDPBF16PS: activations are rounded to bf16, sums of products are f32, and
 * subnormal numbers count as zero (simd/matmul_float.h). WEFT_CPU=avx512vnni keeps f32 activations instead. Reentrant. */
#define MM_BF16_DOT 1
#include "kernels/avx512/matmul_vec.h"
#include "kernels/list.h"

MM_INLINE vf mm_dot_bf16(vf acc, vf w, vf a)
{
    return _mm512_dpbf16_ps(acc, (__m512bh)w, (__m512bh)a);
}

MM_INLINE void mm_store_bf16(void *to, vf x)
{
    _mm256_storeu_si256((__m256i *)to, (__m256i)_mm512_cvtneps_pbh(x));
}

#include "kernels/simd/matmul_float.h"

static const weft__act act_form = {"bf16_tiles", MM_FLOAT_TILE, mm_float_act_bytes, mm_float_act_put, mm_float_act_take};

MM_FLOAT_KERNEL(BF16, bf16, avx512bf16, AVX512BF16, act_form)
