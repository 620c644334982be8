// SPDX-License-Identifier: Apache-2.0
/* train_product.c: products of matrices against double, for shapes at and around the edges of tiles and panels, every
 * format of the right factor; and the same bits whatever the number of threads and rows. */
#include <math.h>

#include "base/random.h"
#include "fixture.h"
#include "train/product.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEFT_EMULATED)
enum { EVERY = 5 };
#else
enum { EVERY = 1 };
#endif

enum { MOST = 530 };

struct fix {
    weft__train_multiplier *x[3]; /* of 1, 2 and 3 threads */
    weft__pool *pool[3];
    float *a, *c[3], *row;
    double *b;
    uint8_t *bytes;
    weft__rng rng;
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
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weft__pool_create(i + 1, &f->pool[i], NULL), WEFT_OK);
        assert_int_equal(weft__train_multiplier_create(f->pool[i], weft__tier_mask(), (MOST + WEFT__GEMM_MAX_MR) * MOST,
                                                       (MOST + WEFT__GEMM_MAX_MR) * MOST, &f->x[i], NULL),
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
static double error_of(const struct fix *f, const weft__train_product *p, const float *before)
{
    double error = 0, size = 1e-60;
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            double sum = p->add ? (double)before[i * p->ldc + j] : 0;
            for (int64_t q = 0; q < p->k; q++)
                sum += (double)(p->a_across ? p->a[q * p->lda + i] : p->a[i * p->lda + q]) *
                       (p->b_across ? f->b[q * p->n + j] : f->b[j * p->k + q]);
            double d = (double)p->c[i * p->ldc + j] - sum;
            error += d * d;
            size += sum * sum;
        }
    }
    return error / size;
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
    p.same_a = 1; /* the left factor is still there */
    weft__train_multiplier_run(f->x[0], &p);
    assert_memory_equal(f->c[1], f->c[0], (size_t)n_c * sizeof *before);
    if (m > 1 && !a_across) { /* a row alone */
        p.c = memcpy(f->c[1], before, (size_t)n_c * sizeof *before);
        p.m = 1;
        p.same_a = 0;
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
    static const uint32_t all[] = {WEFT_F16,  WEFT_BF16, WEFT_Q4_0, WEFT_Q4_1, WEFT_Q5_0, WEFT_Q5_1,   WEFT_Q8_0,
                                   WEFT_Q2_K, WEFT_Q3_K, WEFT_Q4_K, WEFT_Q5_K, WEFT_Q6_K, WEFT_IQ4_NL, WEFT_IQ4_XS};
    struct fix *f = *state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int64_t block = weft_dtype_describe(all[i]).block_elems, wide = block > 32 ? 512 : block > 1 ? 320 : 77;
        product_case(f, 17, 40, wide, all[i], 0, 0, 0);
        product_case(f, 17, wide, 40, all[i], 0, 1, 1);
        product_case(f, 3, wide, 300, all[i], 1, 1, 0);
    }
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
    weft_status st = weft__train_multiplier_create(pool, weft__tier_mask(), 1000, 1000, &x, NULL);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes), cmocka_unit_test(formats),
                                       cmocka_unit_test(allocations)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
