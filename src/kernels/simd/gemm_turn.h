/* gemm_turn.h: rows to columns (kernels.h, weft__gemm.turn), out of blocks of VF_N by VF_N, which the including file turns with
 * transpose_block; what is left over at the edges goes one by one. */

static void gemm_turn(const float *src, int64_t ld, int n_rows, int64_t k, float *dst, int64_t width)
{
    int j = 0;
    for (; j + VF_N <= n_rows; j += VF_N) {
        int64_t p = 0;
        for (; p + VF_N <= k; p += VF_N) transpose_block(src + j * ld + p, ld, dst + p * width + j, width);
        for (; p < k; p++) {
            for (int i = j; i < j + VF_N; i++) dst[p * width + i] = src[i * ld + p];
        }
    }
    for (; j < n_rows; j++) {
        for (int64_t p = 0; p < k; p++) dst[p * width + j] = src[j * ld + p];
    }
}
