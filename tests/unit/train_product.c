// SPDX-License-Identifier: Apache-2.0
/* train_product.c: products of matrices against double, for shapes at and around the edges of tiles and panels, every
 * format of the right factor; and the same bits whatever the number of threads and rows. Rounded ones against double
 * over what was rounded, or against the kernel that serves, to the bit. */
#include <math.h>

#include "base/random.h"
#include "fixture.h"
#include "quant/half.h"
#include "train/served.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEFT_EMULATED)
enum { EVERY = 5 };
#else
enum { EVERY = 1 };
#endif

enum { MOST = 530 };

static const uint32_t formats_of_all[] = {WEFT_F16,  WEFT_BF16, WEFT_Q4_0,   WEFT_Q4_1,  WEFT_Q5_0,
                                          WEFT_Q5_1, WEFT_Q8_0, WEFT_Q2_K,   WEFT_Q3_K,  WEFT_Q4_K,
                                          WEFT_Q5_K, WEFT_Q6_K, WEFT_IQ4_NL, WEFT_IQ4_XS};
#define N_FORMATS (sizeof formats_of_all / sizeof *formats_of_all)

struct fix {
    weft__train_multiplier *x[3]; /* of 1, 2 and 3 threads */
    weft__pool *pool[3];
    float *a, *c[3], *row;
    double *b;
    uint8_t *bytes;
    weft__rng rng;
    uint64_t mark;
};

static float *floats(size_t n)
{
    float *p = weft__alloc_zero(n, sizeof *p);
    assert_non_null(p);
    return p;
}

static struct fix *fix_new(void)
{
    struct fix *f = weft__alloc_zero(1, sizeof *f);
    assert_non_null(f);
    const int64_t most = (MOST + WEFT__GEMM_MAX_MR) * MOST;
    weft__train_room room = {.left = most, .alone = most};
    for (size_t i = 0; i < N_FORMATS; i++)
        weft__train_served_room(&room, formats_of_all[i], weft__tier_mask(), MOST, MOST);
    f->mark = 1;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weft__pool_create(i + 1, &f->pool[i], NULL), WEFT_OK);
        assert_int_equal(weft__train_multiplier_create(f->pool[i], weft__tier_mask(), 0, &room, &f->x[i], NULL),
                         WEFT_OK);
        f->c[i] = floats(MOST * MOST);
    }
    f->a = floats(MOST * MOST);
    f->row = floats(MOST);
    f->bytes = weft__alloc_zero(MOST * MOST, 4);
    f->b = weft__alloc_zero(MOST * MOST, sizeof *f->b);
    assert_non_null(f->bytes);
    assert_non_null(f->b);
    weft__rng_seed(&f->rng, 1);
    return f;
}

static void fix_free(struct fix *f)
{
    for (int i = 0; i < 3; i++) {
        weft__train_multiplier_destroy(&f->x[i]);
        weft__pool_destroy(&f->pool[i]);
        weft__free(f->c[i]);
    }
    weft__free(f->b);
    weft__free(f->bytes);
    weft__free(f->row);
    weft__free(f->a);
    weft__free(f);
}

/* Random rows of a format as bytes, and what they decode to. */
static weft__train_rows_of right(struct fix *f, uint32_t dtype, int64_t rows, int64_t width)
{
    uint64_t row_bytes = weft__quant_row_bytes(dtype, width);
    for (int64_t r = 0; r < rows; r++) {
        weft__quant_random_row(dtype, &f->rng, f->bytes + (uint64_t)r * row_bytes, width);
        weft__quant_decode_row(dtype, f->bytes + (uint64_t)r * row_bytes, f->row, width);
        for (int64_t i = 0; i < width; i++) f->b[r * width + i] = (double)f->row[i];
    }
    return (weft__train_rows_of){f->bytes, row_bytes, dtype};
}

/* NMSE of m rows of c, of width n, against double. */
/* The squared error of all sums over the squares of these, or of what their parts' magnitudes add up to: rounding in
 * float is small beside the latter, however much of a sum cancels. */
static double error_over(const struct fix *f, const weft__train_product *p, const float *before, int magnitudes)
{
    double error = 0, size = 1e-60;
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            double sum = p->add ? (double)before[i * p->ldc + j] : 0, parts = fabs(sum);
            for (int64_t q = 0; q < p->k; q++) {
                const double part = (double)(p->a_across ? p->a[q * p->lda + i] : p->a[i * p->lda + q]) *
                                    (p->b_across ? f->b[q * p->n + j] : f->b[j * p->k + q]);
                sum += part;
                parts += fabs(part);
            }
            double d = (double)p->c[i * p->ldc + j] - sum;
            error += d * d;
            size += magnitudes ? parts * parts : sum * sum;
        }
    }
    return error / size;
}

static double error_of(const struct fix *f, const weft__train_product *p, const float *before)
{
    return error_over(f, p, before, 0);
}

static void product_case(struct fix *f, int64_t m, int64_t n, int64_t k, uint32_t dtype, int a_across, int b_across,
                         int add)
{
    int64_t lda = (a_across ? m : k) + 3, ldc = n + 2, n_c = m * ldc;
    float *before = floats((size_t)n_c);
    for (int64_t i = 0; i < (a_across ? k : m) * lda; i++) f->a[i] = (float)weft__rng_normal(&f->rng);
    for (int64_t i = 0; i < n_c; i++) before[i] = (float)weft__rng_normal(&f->rng);
    weft__train_product p = {.m = m,
                             .n = n,
                             .k = k,
                             .a = f->a,
                             .lda = lda,
                             .a_across = a_across,
                             .b_across = b_across,
                             .ldc = ldc,
                             .add = add};
    p.b = right(f, dtype, b_across ? k : n, b_across ? n : k);
    for (int i = 0; i < 3; i++) {
        p.c = memcpy(f->c[i], before, (size_t)n_c * sizeof *before);
        weft__train_multiplier_run(f->x[i], &p);
        if (memcmp(f->c[i], f->c[0], (size_t)n_c * sizeof *before))
            fail_msg("%lld x %lld x %lld: other bits with %d threads", (long long)m, (long long)n, (long long)k, i + 1);
    }
    double error = error_of(f, &p, before);
    if (!(error <= 1e-11))
        fail_msg("%lld x %lld x %lld, %s, across %d %d, add %d: error %g", (long long)m, (long long)n, (long long)k,
                 weft_dtype_describe(dtype).name, a_across, b_across, add, error);
    for (int64_t i = 0; i < m; i++) /* between the rows is somebody else's */
        if (memcmp(f->c[0] + i * ldc + n, before + i * ldc + n, 2 * sizeof *before))
            fail_msg("wrote beyond column %lld", (long long)n);
    p.c = memcpy(f->c[1], before, (size_t)n_c * sizeof *before);
    for (int again = 0; again < 2; again++) { /* the left factor is still there */
        p.a_mark = f->mark;
        memcpy(f->c[1], before, (size_t)n_c * sizeof *before);
        weft__train_multiplier_run(f->x[0], &p);
    }
    f->mark++;
    assert_memory_equal(f->c[1], f->c[0], (size_t)n_c * sizeof *before);
    if (m > 1 && !a_across) { /* a row alone */
        p.c = memcpy(f->c[1], before, (size_t)n_c * sizeof *before);
        p.m = 1;
        p.a_mark = 0;
        weft__train_multiplier_run(f->x[1], &p);
        assert_memory_equal(f->c[1], f->c[0], (size_t)n * sizeof *before);
    }
    if (dtype == WEFT_F32) {
        p.c = memcpy(f->c[1], before, (size_t)n_c * sizeof *before);
        p.m = m;
        weft__train_multiplier_run_alone(f->x[2], 2, &p);
        assert_memory_equal(f->c[1], f->c[0], (size_t)n_c * sizeof *before);
    }
    weft__free(before);
}

static void shapes(void **state)
{
    static const int64_t sizes[] = {1, 2, 5, 12, 13, 16, 31, 32, 33, 100, 255, 256, 257, 512, 530};
    const int64_t n_sizes = sizeof sizes / sizeof *sizes;
    struct fix *f = *state;
    for (int64_t i = 0, n_cases = 600 / EVERY; i < n_cases; i++) {
        int64_t m = sizes[weft__rng_below(&f->rng, (uint64_t)n_sizes)],
                n = sizes[weft__rng_below(&f->rng, (uint64_t)n_sizes)];
        int64_t k = sizes[weft__rng_below(&f->rng, (uint64_t)n_sizes)], flags = (int64_t)weft__rng_below(&f->rng, 8);
        if (m * n * k > 4000000) continue;
        if (m + 3 > MOST || k + 3 > MOST || n + 2 > MOST) continue;
        product_case(f, m, n, k, WEFT_F32, flags & 1, flags >> 1 & 1, flags >> 2);
    }
}

static void formats(void **state)
{
    struct fix *f = *state;
    for (size_t i = 0; i < N_FORMATS; i++) {
        int64_t block = weft_dtype_describe(formats_of_all[i]).block_elems, wide = block > 32  ? 512
                                                                                   : block > 1 ? 320
                                                                                               : 77;
        product_case(f, 17, 40, wide, formats_of_all[i], 0, 0, 0);
        product_case(f, 17, wide, 40, formats_of_all[i], 0, 1, 1);
        product_case(f, 3, wide, 300, formats_of_all[i], 1, 1, 0);
    }
}

/* ---- rounded ---- */

/* What BF16 makes of n numbers; as they are where the multiplier has no such products. */
static void round_all(float *x, int64_t n)
{
    const uint32_t tiers = weft__tier_mask();
    if (weft__gemm_find(WEFT_BF16, tiers)->tier <= weft__gemm_find(WEFT_F32, tiers)->tier) return;
    for (int64_t i = 0; i < n; i++) x[i] = weft__bf16_to_f32(weft__bf16_from_f32(x[i]));
}

static void rounded_case(struct fix *f, int64_t m, int64_t n, int64_t k, uint32_t dtype, int b_across, int add)
{
    const int64_t lda = k + 3, ldc = n + 2, n_c = m * ldc, n_b = n * k;
    float *before = floats((size_t)n_c), *b = floats((size_t)n_b);
    for (int64_t i = 0; i < m * lda; i++) f->a[i] = (float)weft__rng_normal(&f->rng);
    for (int64_t i = 0; i < n_c; i++) before[i] = (float)weft__rng_normal(&f->rng);
    weft__train_product p = {.m = m,
                             .n = n,
                             .k = k,
                             .a = f->a,
                             .lda = lda,
                             .b_across = b_across,
                             .ldc = ldc,
                             .add = add,
                             .rounded = 1,
                             .a_mark = f->mark++};
    p.b = right(f, dtype, b_across ? k : n, b_across ? n : k);
    for (int i = 0; i < 6; i++) { /* twice: the second time the left factor is still there */
        p.c = memcpy(f->c[i % 3], before, (size_t)n_c * sizeof *before);
        weft__train_multiplier_run(f->x[i % 3], &p);
        if (memcmp(f->c[i % 3], f->c[0], (size_t)n_c * sizeof *before))
            fail_msg("%lld x %lld x %lld: other bits with %d threads", (long long)m, (long long)n, (long long)k,
                     i % 3 + 1);
    }
    const weft__matmul *mm = weft__train_served_by(&p, weft__tier_mask());
    if (mm) { /* the whole matrix packed, as a model that is served has it */
        const size_t stride = mm->panel_bytes(k), panels = (size_t)((n + mm->panel_rows - 1) / mm->panel_rows);
        uint8_t *packed = weft__alloc_aligned(64, panels * stride),
                *act = weft__alloc_aligned(64, mm->act->bytes(k, m));
        assert_non_null(packed);
        assert_non_null(act);
        for (size_t i = 0; i < panels; i++) {
            const int64_t first = (int64_t)i * mm->panel_rows, left = n - first;
            mm->pack(p.b.data + (uint64_t)first * p.b.row_bytes, p.b.row_bytes,
                     left < mm->panel_rows ? (int)left : mm->panel_rows, k, packed + i * stride);
        }
        for (int64_t i = 0; i < m; i++) weft__act_put_row(mm->act, f->a + i * lda, k, i, m, act);
        memcpy(f->c[1], before, (size_t)n_c * sizeof *before);
        const weft__product served = {packed, stride, n, k, act, m, f->c[1], ldc};
        mm->run(&served, NULL);
        assert_memory_equal(f->c[1], f->c[0], (size_t)n_c * sizeof *before);
        weft__free(act);
        weft__free(packed);
    } else {
        for (int64_t i = 0; i < n_b; i++) b[i] = (float)f->b[i];
        round_all(b, n_b);
        for (int64_t i = 0; i < n_b; i++) f->b[i] = (double)b[i];
        round_all(f->a, m * lda);
    }
    p.c = f->c[0];
    const double error = error_over(f, &p, before, !mm);
    if (!(error <= (mm ? 1e-3 : 1e-13))) /* kernels.def has the former */
        fail_msg("%lld x %lld x %lld, %s, across %d, add %d: error %g", (long long)m, (long long)n, (long long)k,
                 weft_dtype_describe(dtype).name, b_across, add, error);
    for (int64_t i = 0; i < m; i++)
        if (memcmp(f->c[0] + i * ldc + n, before + i * ldc + n, 2 * sizeof *before))
            fail_msg("wrote beyond column %lld", (long long)n);
    weft__free(b);
    weft__free(before);
}

static void rounded(void **state)
{
    static const int64_t sizes[] = {1, 2, 13, 32, 33, 100, 257, 511, 512, 513};
    const uint64_t n_sizes = sizeof sizes / sizeof *sizes;
    struct fix *f = *state;
    for (int i = 0; i < 200 / EVERY; i++) {
        const int64_t m = sizes[weft__rng_below(&f->rng, n_sizes)], n = sizes[weft__rng_below(&f->rng, n_sizes)],
                      k = sizes[weft__rng_below(&f->rng, n_sizes)];
        const uint64_t flags = weft__rng_below(&f->rng, 4);
        if (m * n * k < 4000000) rounded_case(f, m, n, k, WEFT_F32, (int)(flags & 1), (int)(flags >> 1));
    }
    for (size_t i = 0; i < N_FORMATS; i++) {
        const int64_t block = weft_dtype_describe(formats_of_all[i]).block_elems, wide = block > 32  ? 512
                                                                                         : block > 1 ? 320
                                                                                                     : 77;
        for (int64_t m = 1; m < 40; m += 16) rounded_case(f, m, 75, wide, formats_of_all[i], 0, 0);
        rounded_case(f, 17, wide, 41, formats_of_all[i], 1, 1);
    }
    rounded_case(f, 3, 520, 512, WEFT_Q8_0, 0, 0); /* more panels than are packed together */
}

/* Of an exact multiplier no product is rounded. */
static void nothing_is_rounded(void **state)
{
    struct fix *f = *state;
    weft__train_multiplier *x;
    enum { M = 20, N = 48, K = 320 };
    float *exact = f->c[0], *other = f->c[1];
    const weft__train_room room = {(M + WEFT__GEMM_MAX_MR) * K, (M + WEFT__GEMM_MAX_MR) * K, 0, 0};
    assert_int_equal(weft__train_multiplier_create(f->pool[1], weft__tier_mask(), 1, &room, &x, NULL), WEFT_OK);
    for (int i = 0; i < M * K; i++) f->a[i] = (float)weft__rng_normal(&f->rng);
    weft__train_product p = {.m = M, .n = N, .k = K, .a = f->a, .lda = K, .ldc = N, .c = other, .rounded = 1};
    p.b = right(f, WEFT_Q4_0, N, K);
    weft__train_multiplier_run(x, &p);
    p.rounded = 0;
    p.c = exact;
    weft__train_multiplier_run(f->x[1], &p);
    assert_memory_equal(exact, other, (size_t)(M * N) * sizeof *exact);
    weft__train_multiplier_destroy(&x);
}

static int setup(void **state)
{
    *state = fix_new();
    return 0;
}

static int teardown(void **state)
{
    fix_free(*state);
    return 0;
}

static int create(void *arg)
{
    weft__pool *pool = arg;
    weft__train_multiplier *x;
    weft_status st =
        weft__train_multiplier_create(pool, weft__tier_mask(), 0, &(weft__train_room){1000, 1000, 100, 100}, &x, NULL);
    assert_true(st == WEFT_OK || st == WEFT_NO_MEMORY);
    if (st) assert_null(x);
    weft__train_multiplier_destroy(&x);
    return st == WEFT_OK;
}

static void allocations(void **state)
{
    struct fix *f = *state;
    assert_true(fail_each(create, f->pool[1]) >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes), cmocka_unit_test(formats), cmocka_unit_test(rounded),
                                       cmocka_unit_test(nothing_is_rounded), cmocka_unit_test(allocations)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
