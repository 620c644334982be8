// SPDX-License-Identifier: Apache-2.0
/* adapt_compress.c: adapters at a smaller rank (adapt/svd.c, adapt/compress.c) are the nearest that there are of that
 * rank, what they lost is told, and what has no more rank than it is given comes back. */
#include "unit/fixture.h"

#include <float.h>
#include <math.h>

#include "adapt/adapt.h"
#include "adapt/svd.h"
#include "base/random.h"

enum { MOST = 24 };

/* An adapter of one matrix in memory. */
typedef struct one {
    weft__adapt a;
    weft__adapt_pair pair;
    float at[4 * MOST * MOST], b[4 * MOST * MOST];
} one;

static void one_make(one *o, int64_t n, int64_t k, int32_t rank, int64_t n_experts)
{
    *o = (one){.a = {.arch = "llama", .label = "one", .n_pairs = 1, .base_fingerprint = 7}};
    o->pair = (weft__adapt_pair){
        .name = "blk.0.ffn_up.weight", .k = k, .n = n, .n_experts = n_experts, .rank = rank, .scale = 1};
}

/* Where it stands now. */
static const weft__adapt *of(one *o)
{
    o->pair.a = o->at;
    o->pair.b = o->b;
    o->a.pairs = &o->pair;
    return &o->a;
}

static void fill(one *o, uint64_t seed)
{
    weft__rng rng;
    weft__rng_seed(&rng, seed);
    for (int64_t i = 0; i < o->pair.n_experts * o->pair.rank * o->pair.k; i++)
        o->at[i] = (float)(weft__rng_double(&rng) - 0.5);
    for (int64_t i = 0; i < o->pair.n_experts * o->pair.rank * o->pair.n; i++)
        o->b[i] = (float)(weft__rng_double(&rng) - 0.5);
}

static double element(const weft__adapt_pair *p, int64_t e, int64_t r, int64_t c)
{
    double sum = 0;
    for (int32_t j = 0; j < p->rank; j++)
        sum += (double)p->b[(e * p->n + r) * p->rank + j] * (double)p->a[(e * p->rank + j) * p->k + c];
    return (double)p->scale * sum;
}

/* ||x - y|| / ||x|| of all experts. */
static double apart(const weft__adapt_pair *x, const weft__adapt_pair *y)
{
    double all = 0, off = 0;
    for (int64_t e = 0; e < x->n_experts; e++)
        for (int64_t r = 0; r < x->n; r++)
            for (int64_t c = 0; c < x->k; c++) {
                const double v = element(x, e, r, c), d = v - element(y, e, r, c);
                all += v * v;
                off += d * d;
            }
    return all > 0 ? sqrt(off / all) : sqrt(off);
}

static weft__adapt *compressed(one *o, int32_t rank, double keep, weft__adapt_lost *lost)
{
    const weft__adapt_cut cut = {rank, keep};
    weft__adapt *out;
    weft_error err = {0};
    if (weft__adapt_compress(of(o), &cut, &out, lost, &err)) fail_msg("%s", err.message);
    return out;
}

/* ---- singular values ---- */

static double product(const double *x, const double *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* Vectors of length 1 at right angles; values that fall; and together they are the matrix. */
static void check_svd(const one *o, const weft__adapt_svd *s)
{
    const weft__adapt_pair *p = &o->pair;
    for (int32_t i = 0; i < s->rank; i++) {
        assert_true(i == 0 || s->s[i] <= s->s[i - 1]);
        for (int32_t j = 0; j <= i; j++) {
            assert_true(fabs(product(s->u + i * p->n, s->u + j * p->n, p->n) - (i == j)) < 1e-13);
            assert_true(fabs(product(s->v + i * p->k, s->v + j * p->k, p->k) - (i == j)) < 1e-13);
        }
    }
    for (int64_t r = 0; r < p->n; r++)
        for (int64_t c = 0; c < p->k; c++) {
            double sum = 0;
            for (int32_t i = 0; i < s->rank; i++) sum += s->s[i] * s->u[i * p->n + r] * s->v[i * p->k + c];
            assert_true(fabs(sum - element(p, 0, r, c)) < 1e-13 * (s->rank ? s->s[0] : 1));
        }
}

static void any_shape_has_its_singular_values(void **state)
{
    (void)state;
    static const int32_t shapes[][4] = {/* n, k, R, rank of the product */
                                        {20, 12, 6, 6}, {12, 20, 6, 6}, {5, 20, 9, 5}, {20, 5, 9, 5},
                                        {7, 7, 7, 7},   {3, 4, 12, 3},  {1, 9, 4, 1},  {9, 1, 1, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        one o;
        weft__adapt_svd s;
        one_make(&o, shapes[i][0], shapes[i][1], shapes[i][2], 1);
        fill(&o, i + 1);
        of(&o);
        assert_int_equal(weft__adapt_svd_of(o.b, o.at, o.pair.n, o.pair.k, o.pair.rank, 1, &s, NULL), WEFT_OK);
        assert_int_equal(s.rank, shapes[i][3]);
        check_svd(&o, &s);
        weft__adapt_svd_free(&s);
    }
}

/* Columns of far different sizes, and such as are the same but for little. */
static void hard_columns_are_told_apart(void **state)
{
    (void)state;
    one o;
    weft__adapt_svd s;
    one_make(&o, 16, 16, 8, 1);
    fill(&o, 3);
    for (int r = 0; r < 16; r++)
        for (int j = 0; j < 8; j++) o.b[r * 8 + j] = j ? o.b[r * 8] + o.b[r * 8 + j] * powf(10, (float)-j) : o.b[r * 8];
    of(&o);
    assert_int_equal(weft__adapt_svd_of(o.b, o.at, 16, 16, 8, 1e30, &s, NULL), WEFT_OK);
    o.pair.scale = 1e30f;
    assert_true(s.rank == 8 && s.s[7] < 1e-6 * s.s[0]);
    weft__adapt_svd_free(&s);
    assert_int_equal(weft__adapt_svd_of(o.b, o.at, 16, 16, 8, (double)o.pair.scale, &s, NULL), WEFT_OK);
    check_svd(&o, &s);
    weft__adapt_svd_free(&s);
}

/* ---- compressing ---- */

/* Orthogonal columns of 1 and -1, exact in float32: C = sum of s_i h_i g_i with s = 8, 4, 2, 1. */
static void hadamard(one *o)
{
    one_make(o, 8, 16, 4, 1);
    for (int i = 0; i < 4; i++) {
        for (int r = 0; r < 8; r++) o->b[r * 4 + i] = __builtin_popcount((unsigned)(r & (i + 1))) % 2 ? -1 : 1;
        for (int c = 0; c < 16; c++)
            o->at[i * 16 + c] = (float)(8 >> i) * (__builtin_popcount((unsigned)(c & (i + 3))) % 2 ? -1 : 1);
    }
}

static void the_smallest_terms_are_left_out(void **state)
{
    (void)state;
    static const double squares[] = {64, 16, 4, 1};
    one o;
    hadamard(&o);
    for (int32_t rank = 1; rank <= 4; rank++) {
        weft__adapt_lost lost;
        weft__adapt *a = compressed(&o, rank, 1, &lost);
        double want = 0;
        for (int i = rank; i < 4; i++) want += squares[i] / 85;
        assert_true(lost.rank_before == 4 && lost.rank == rank && a->pairs[0].rank == rank);
        assert_true(fabs(lost.error - sqrt(want)) < 1e-14);
        assert_true(fabs(apart(&o.pair, &a->pairs[0]) - sqrt(want)) < 1e-6);
        for (int r = 0; r < 8; r++) { /* the terms themselves */
            double sum = 0;
            for (int i = 0; i < rank; i++) sum += (double)(o.b[r * 4 + i] * o.at[i * 16 + 5]);
            assert_true(fabs(sum - element(&a->pairs[0], 0, r, 5)) < 1e-5);
        }
        weft__adapt_close(&a);
    }
}

static void a_share_decides_the_rank(void **state)
{
    (void)state;
    static const struct {
        double keep;
        int32_t rank;
    } cases[] = {{0.7, 1}, {64.0 / 85 + 1e-9, 2}, {0.95, 3}, {0.999, 4}, {1, 4}, {1e-9, 1}};
    one o;
    hadamard(&o);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__adapt_lost lost;
        weft__adapt *a = compressed(&o, 0, cases[i].keep, &lost);
        assert_int_equal(a->pairs[0].rank, cases[i].rank);
        assert_true(1 - lost.error * lost.error >= cases[i].keep - 1e-12);
        weft__adapt_close(&a);
    }
    weft__adapt *a = compressed(&o, 2, 0.999, NULL); /* the rank goes before */
    assert_int_equal(a->pairs[0].rank, 2);
    weft__adapt_close(&a);
}

/* Rank 3, written as 8: doubled columns, and sums of others. */
static void what_has_the_rank_comes_back(void **state)
{
    (void)state;
    one o;
    weft__adapt_lost lost;
    one_make(&o, 20, 11, 8, 1);
    fill(&o, 5);
    for (int r = 0; r < 20; r++)
        for (int j = 3; j < 8; j++) o.b[r * 8 + j] = o.b[r * 8 + j % 3] * (j % 2 ? 2 : -1);
    o.pair.scale = 0.5f;
    for (int32_t rank = 0; rank <= 8; rank += rank ? 1 : 3) {
        weft__adapt *a = compressed(&o, rank, 1, &lost);
        assert_true(lost.rank == 3 && lost.error < 1e-12);
        assert_true(apart(&o.pair, &a->pairs[0]) < 2e-7); /* float32's rounding */
        assert_true(a->pairs[0].scale == 1 && a->base_fingerprint == 7 && !strcmp(a->arch, "llama"));
        weft__adapt_close(&a);
    }
}

static void what_changes_nothing_changes_nothing(void **state)
{
    (void)state;
    one o;
    weft__adapt_lost lost;
    one_make(&o, 6, 9, 4, 1);
    for (int half = 0; half < 2; half++) { /* B of zeros; then a sum that is none */
        if (half) {
            fill(&o, 8);
            for (int r = 0; r < 6; r++) o.b[r * 4 + 1] = -o.b[r * 4], o.b[r * 4 + 3] = -o.b[r * 4 + 2];
            memcpy(o.at + 9, o.at, 9 * sizeof *o.at);
            memcpy(o.at + 27, o.at + 18, 9 * sizeof *o.at);
        }
        weft__adapt *a = compressed(&o, 2, 0.5, &lost);
        assert_true(lost.rank == 1 && lost.error == 0 && a->pairs[0].rank == 1);
        assert_true(weft__adapt_all_zero(a->pairs[0].a, 9) && weft__adapt_all_zero(a->pairs[0].b, 6));
        weft__adapt_close(&a);
    }
}

/* One expert of rank 1, one of 3, one that is as it was. */
static void experts_have_the_rank_of_the_neediest(void **state)
{
    (void)state;
    one o;
    weft__adapt_lost lost;
    one_make(&o, 7, 10, 4, 3);
    fill(&o, 13);
    for (int r = 0; r < 7; r++)
        for (int j = 0; j < 4; j++) {
            if (j) o.b[r * 4 + j] = o.b[r * 4]; /* of expert 0 */
            if (j == 3) o.b[(7 + r) * 4 + j] = o.b[(7 + r) * 4];
            o.b[(14 + r) * 4 + j] = 0;
        }
    weft__adapt *a = compressed(&o, 0, 1, &lost);
    assert_true(a->pairs[0].rank == 3 && a->pairs[0].n_experts == 3 && lost.error < 1e-12);
    assert_true(apart(&o.pair, &a->pairs[0]) < 2e-7);
    weft__adapt_close(&a);
    a = compressed(&o, 1, 1, &lost);
    assert_true(lost.error > 0.01 && fabs(apart(&o.pair, &a->pairs[0]) - lost.error) < 1e-6);
    weft__adapt_close(&a);
}

/* No other of that rank is nearer: not the first columns, nor those that a few steps in any direction give. */
static void nothing_of_the_rank_is_nearer(void **state)
{
    (void)state;
    one o;
    weft__adapt_lost lost;
    weft__rng rng;
    one_make(&o, 9, 8, 6, 1);
    fill(&o, 21);
    weft__adapt *a = compressed(&o, 2, 1, &lost);
    weft__adapt_pair near = a->pairs[0];
    float moved_a[16], moved_b[18];
    weft__rng_seed(&rng, 1);
    for (int i = 0; i < 200; i++) {
        const double step = pow(10, -1 - i % 3);
        for (int v = 0; v < 16; v++)
            moved_a[v] = (float)((double)a->pairs[0].a[v] + step * (weft__rng_double(&rng) - 0.5));
        for (int v = 0; v < 18; v++)
            moved_b[v] = (float)((double)a->pairs[0].b[v] + step * (weft__rng_double(&rng) - 0.5));
        near.a = moved_a;
        near.b = moved_b;
        assert_true(apart(&o.pair, &near) > lost.error - 1e-9);
    }
    weft__adapt_close(&a);
}

/* The ranks side by side, then the nearest: as their sum has it; and the same again has the same id. */
static void several_are_compressed_as_their_sum(void **state)
{
    (void)state;
    one x, y;
    weft__adapt *sum, *a, *again;
    weft__adapt_lost lost;
    const weft__adapt_mix mix = {.method = WEFT__ADAPT_CAT, .density = 1};
    const weft__adapt_cut cut = {5, 1};
    one_make(&x, 12, 15, 4, 1);
    one_make(&y, 12, 15, 2, 1);
    fill(&x, 1);
    fill(&y, 2);
    y.pair.scale = 3;
    const weft__adapt_use uses[] = {{of(&x), 0.5f}, {of(&y), -2}};
    assert_int_equal(weft__adapt_merge(uses, 2, &mix, &sum, NULL), WEFT_OK);
    assert_int_equal(weft__adapt_compress(sum, &cut, &a, &lost, NULL), WEFT_OK);
    assert_int_equal(weft__adapt_compress(sum, &cut, &again, NULL, NULL), WEFT_OK);
    assert_memory_equal(&a->id, &again->id, sizeof a->id);
    assert_memory_not_equal(&a->id, &sum->id, sizeof a->id);
    assert_true(lost.rank_before == 6 && lost.rank == 5 && lost.error > 0);
    double off = 0, all = 0;
    for (int r = 0; r < 12; r++)
        for (int c = 0; c < 15; c++) {
            const double v = 0.5 * element(&x.pair, 0, r, c) - 2 * element(&y.pair, 0, r, c),
                         d = v - element(&a->pairs[0], 0, r, c);
            off += d * d;
            all += v * v;
        }
    assert_true(fabs(sqrt(off / all) - lost.error) < 1e-6);
    weft__adapt_close(&again);
    weft__adapt_close(&a);
    weft__adapt_close(&sum);
}

/* ---- what is refused ---- */

static void refuses(one *o, int32_t rank, double keep, weft_status status, const char *word)
{
    const weft__adapt_cut cut = {rank, keep};
    weft__adapt *out = (weft__adapt *)(uintptr_t)o;
    weft_error err = {0};
    assert_int_equal(weft__adapt_compress(of(o), &cut, &out, NULL, &err), status);
    if (!strstr(err.message, word)) fail_msg("'%s' says nothing of '%s'", err.message, word);
    assert_null(out);
}

static void what_cannot_be_compressed_is_refused(void **state)
{
    (void)state;
    static const float m[6] = {1, 1, 1, 1, 1, 1};
    one o;
    one_make(&o, 6, 9, 4, 1);
    fill(&o, 3);
    refuses(&o, -1, 1, WEFT_ARGUMENT, "a rank of -1");
    refuses(&o, WEFT__ADAPT_RANK_MAX + 1, 1, WEFT_ARGUMENT, "must be 1 to");
    refuses(&o, 2, 0, WEFT_ARGUMENT, "a share of 0");
    refuses(&o, 2, 1.5, WEFT_ARGUMENT, "at most 1");
    refuses(&o, 2, NAN, WEFT_ARGUMENT, "a share");
    o.at[7] = NAN;
    refuses(&o, 2, 1, WEFT_ARGUMENT, "blk.0.ffn_up.weight: it holds NaN");
    o.at[7] = 1;
    o.b[5] = INFINITY;
    refuses(&o, 2, 1, WEFT_ARGUMENT, "infinity");
    o.b[5] = 3e38f;
    o.at[9] = 3e38f;
    o.pair.scale = 3e38f;
    refuses(&o, 2, 1, WEFT_ARGUMENT, "too large");
    o.pair.scale = 1;
    o.b[5] = o.at[9] = 1;
    o.pair.magnitude = m;
    refuses(&o, 2, 1, WEFT_UNSUPPORTED, "DoRA");
}

static int compress_some(void *arg)
{
    const weft__adapt_cut cut = {2, 0.9};
    weft__adapt *out;
    weft_status st = weft__adapt_compress(arg, &cut, &out, NULL, NULL);
    assert_true(st == WEFT_OK || (st == WEFT_NO_MEMORY && !out));
    weft__adapt_close(&out);
    return st == WEFT_OK;
}

static void refused_allocations_leave_nothing(void **state)
{
    (void)state;
    one o;
    one_make(&o, 6, 9, 4, 2);
    fill(&o, 3);
    assert_true(fail_each(compress_some, (void *)(uintptr_t)of(&o)) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_shape_has_its_singular_values),     cmocka_unit_test(hard_columns_are_told_apart),
        cmocka_unit_test(the_smallest_terms_are_left_out),       cmocka_unit_test(a_share_decides_the_rank),
        cmocka_unit_test(what_has_the_rank_comes_back),          cmocka_unit_test(what_changes_nothing_changes_nothing),
        cmocka_unit_test(experts_have_the_rank_of_the_neediest), cmocka_unit_test(nothing_of_the_rank_is_nearer),
        cmocka_unit_test(several_are_compressed_as_their_sum),   cmocka_unit_test(what_cannot_be_compressed_is_refused),
        cmocka_unit_test(refused_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
