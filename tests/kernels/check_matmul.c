// SPDX-License-Identifier: Apache-2.0
/* check_matmul.c: matrix products against ref (check.h): every number of outputs up to a panel and one, 1 to 17 rows,
 * unaligned weights, random and extreme blocks, strange activations; each row has the same bits whatever comes with it.
 *
 * The error is normalized by |w|² |x|² / k summed over outputs, what the squares of the results come to on average: the
 * results of one case may be few and cancel. ref itself is held against double arithmetic. */
#include "check.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "quant/quant.h"

/* What is left when quantizing the activations costs nothing: rounding of floats. */
#define WHOLE_BOUND 1e-11

enum { MAX_ROWS = 17, GAP = 3 /* floats between output rows that nobody may touch */ };

struct product {
    const weft__matmul *mm;
    int64_t n, k, m, n_panels;
    size_t row_bytes, row_stride, stride; /* of a weight row, from row to row, from panel to panel */
    guarded rows, packed;
    const uint8_t *panels;
    float *w, *x;           /* [n][k] decoded, [m][k] */
    float *out, *ref;       /* [m][n] */
    double *w_squares, sum; /* |w|² of each output's weights, [n], and of all */
};

static double squares(const float *x, int64_t n)
{
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += (double)x[i] * x[i];
    return s;
}

/* Random bytes are valid blocks, except that a scale may be infinite or NaN: such blocks are drawn again. */
static void wild_row(check *c, uint32_t dtype, uint8_t *row, int64_t k)
{
    const weft_dtype_info info = weft_dtype_describe(dtype);
    float x[256];
    for (int64_t i = 0; i < k; i += info.block_elems, row += info.block_bytes) {
        int finite;
        do {
            for (uint32_t j = 0; j < info.block_bytes; j++) row[j] = (uint8_t)weft__rng_u64(&c->rng);
            weft__quant_decode_row(dtype, row, x, info.block_elems);
            finite = 1;
            /* up to 1e10: floats of 1e38 would only show that sums overflow */
            for (uint32_t j = 0; j < info.block_elems; j++) finite = finite && fabsf(x[j]) < 1e10f;
        } while (!finite);
    }
}

static void pack(struct product *p)
{
    p->panels = p->rows.p;
    p->stride = p->row_stride;
    if (!p->mm->panel_bytes) return;
    p->stride = p->mm->panel_bytes(p->k);
    p->packed = guarded_new((size_t)p->n_panels * p->stride, 0);
    for (int64_t i = p->n_panels - 1; i >= 0; i--) { /* backwards: one that runs into the next is found out */
        int64_t first = i * p->mm->panel_rows, left = p->n - first;
        p->mm->pack(p->rows.p + (size_t)first * p->row_stride, p->row_stride,
                    (int)(left < p->mm->panel_rows ? left : p->mm->panel_rows), p->k,
                    p->packed.p + (size_t)i * p->stride);
    }
    p->panels = p->packed.p;
}

static struct product product_new(check *c, const weft__matmul *mm, int64_t n, int64_t k, int64_t m, int wild)
{
    struct product p = {.mm = mm, .n = n, .k = k, .m = m, .n_panels = (n + mm->panel_rows - 1) / mm->panel_rows};
    p.row_bytes = weft__quant_row_bytes(mm->dtype, k);
    p.row_stride = p.row_bytes + (k / 32 % 2 ? 0 : 5);
    p.rows = guarded_new((size_t)(n - 1) * p.row_stride + p.row_bytes, 1 + weft__rng_below(&c->rng, 63));
    p.w = weft__alloc_array((size_t)(n * k), sizeof *p.w);
    p.x = weft__alloc_array((size_t)(m * k), sizeof *p.x);
    p.out = weft__alloc_array((size_t)(m * n), sizeof *p.out);
    p.ref = weft__alloc_array((size_t)(m * n), sizeof *p.ref);
    p.w_squares = weft__alloc_array((size_t)n, sizeof *p.w_squares);
    for (int64_t j = 0; j < n; j++) {
        uint8_t *row = p.rows.p + (size_t)j * p.row_stride;
        if (wild) {
            wild_row(c, mm->dtype, row, k);
        } else {
            weft__quant_random_row(mm->dtype, &c->rng, row, k);
        }
        weft__quant_decode_row(mm->dtype, row, p.w + j * k, k);
        p.w_squares[j] = squares(p.w + j * k, k);
    }
    p.sum = squares(p.w, n * k);
    pack(&p);
    return p;
}

static void product_free(check *c, struct product *p)
{
    guarded_free(c, &p->rows, "the weights");
    if (p->packed.block) guarded_free(c, &p->packed, "the packed panels");
    weft__free(p->w);
    weft__free(p->x);
    weft__free(p->out);
    weft__free(p->ref);
    weft__free(p->w_squares);
}

/* What is asked for meanwhile changes nothing of the result, [m][ldo], and all of it is asked for: by the kernels of
 * pairs of panels, from two or three tiles of rows on. */
static void check_ahead(check *c, const struct product *p, const weft__matmul *mm, weft__product call)
{
    const int64_t n = call.n_out, m = call.m;
    const float *result = call.out;
    const uint8_t *soon = p->rows.p;
    const weft__range ranges[] = {
        {soon, p->rows.n_bytes}, {soon, 1}, {soon + 1, 1}, {soon, 65 < p->rows.n_bytes ? 65 : 1}};
    weft__kernel_prefetch ahead = {.range = ranges, .n = 4};
    const size_t n_bytes = (size_t)(m * call.ldo) * 4;
    guarded again = guarded_new(n_bytes, 4);
    memset(again.p, 0xFF, n_bytes);
    call.out = (float *)again.p;
    mm->run(&call, &ahead);
    if (memcmp(again.p, result, n_bytes)) check_fail(c, "not the same bits where something is asked for ahead");
    if (!mm->prefetches && ahead.n < 4) check_fail(c, "asks for what is read next, and says that it does not");
    if (ahead.range != ranges + 4 - ahead.n)
        check_fail(c, "%d of 4 ranges are left to ask for, and it stands elsewhere", ahead.n);
    const int few_do =
        mm->dtype == WEFT_Q4_0 || mm->dtype == WEFT_Q8_0; /* of others, formats without minimums or scales by 16 */
    if (mm->prefetches && m >= (few_do ? 16 : 24) && n >= 2 * mm->panel_rows && (ahead.n || ahead.at < ahead.end))
        check_fail(c, "%d of 4 ranges were not asked for", ahead.n);
    guarded_free(c, &again, "the output");
}

/* Runs m rows from x against n outputs, from panel `panel` on; out [m][n]. */
static void multiply(check *c, const struct product *p, const weft__matmul *mm, const uint8_t *panels, size_t stride,
                     int64_t n, const float *x, int64_t m, float *out)
{
    guarded act = guarded_new(mm->act->bytes(p->k, m), 0), result = guarded_new((size_t)(m * (n + GAP)) * 4, 4);
    memset(act.p, 0xFF, act.n_bytes); /* what stands in for rows beyond m must not matter: NaN */
    memset(result.p, 0xFF, result.n_bytes);
    for (int64_t i = 0; i < m; i++) {
        int64_t row = m % 2 ? i : m - 1 - i;
        weft__act_put_row(mm->act, x + row * p->k, p->k, row, m, act.p);
    }
    const weft__product call = {panels, stride, n, p->k, act.p, m, (float *)result.p, n + GAP};
    mm->run(&call, NULL);
    if (mm->prefetches || m % 16 == 1) check_ahead(c, p, mm, call);
    for (int64_t i = 0; i < m; i++) {
        const float *row = (float *)result.p + i * (n + GAP);
        memcpy(out + i * n, row, (size_t)n * 4);
        for (int j = 0; j < GAP; j++) {
            if (memcmp(row + n + j, "\377\377\377\377", 4)) check_fail(c, "wrote between output rows");
        }
    }
    guarded_free(c, &act, "the activations");
    guarded_free(c, &result, "the output");
}

/* What the kernel is held against: the exact product for ref, ref's for the others. */
static void reference(check *c, struct product *p)
{
    if (p->mm->tier != WEFT__TIER_REF) {
        const weft__matmul *ref = weft__matmul_find(p->mm->dtype, 0);
        multiply(c, p, ref, p->rows.p, p->row_stride, p->n, p->x, p->m, p->ref);
        return;
    }
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < p->k; l++) sum += (double)p->w[j * p->k + l] * p->x[i * p->k + l];
            p->ref[i * p->n + j] = (float)sum;
        }
    }
}

/* |x|² of rows of k; a unit may take denormals for zero, so there the smallest normal numbers count as the size of
 * x. */
static double size_of(const float *x, int64_t n)
{
    return squares(x, n) + (double)n * 1e-74;
}

/* No single output may be further off than 8 times what the bound allows on average. */
static void check_outputs(check *c, const struct product *p, const char *what)
{
    const double bound = c->entry->tier == WEFT__TIER_REF ? 1e-8 : c->entry->tolerance;
    for (int64_t i = 0; i < p->m; i++) {
        const double x = size_of(p->x + i * p->k, p->k);
        for (int64_t j = 0; j < p->n; j++) {
            double d = (double)p->out[i * p->n + j] - p->ref[i * p->n + j];
            double allowed = 64 * bound * x * p->w_squares[j] / (double)p->k;
            if (!(d * d <= allowed + 1e-60))
                check_fail(c, "output %d of row %d is %g off: %s", (int)j, (int)i, d, what);
        }
    }
}

static double product_error(const struct product *p)
{
    double error = 0;
    for (int64_t i = 0; i < p->m * p->n; i++)
        error += ((double)p->out[i] - p->ref[i]) * ((double)p->out[i] - p->ref[i]);
    if (error <= 1e-60) return 0;
    return error / (p->sum * size_of(p->x, p->m * p->k) / (double)p->k);
}

/* A row that is taken from among m prepared ones and put among other ones has the bytes that it would have there. */
static void check_take(check *c, const struct product *p, const char *what)
{
    const weft__act *act = p->mm->act;
    const int64_t m = p->m, few = (m + 1) / 2;
    guarded all = guarded_new(act->bytes(p->k, m), 0), want = guarded_new(act->bytes(p->k, few), 0),
            got = guarded_new(act->bytes(p->k, few), 0);
    memset(want.p, 0, want.n_bytes);
    memset(got.p, 0, got.n_bytes);
    for (int64_t i = 0; i < m; i++) weft__act_put_row(act, p->x + i * p->k, p->k, i, m, all.p);
    for (int64_t i = 0; i < few; i++) {
        weft__act_put_row(act, p->x + (m - 1 - i) * p->k, p->k, i, few, want.p);
        act->take(all.p, p->k, m - 1 - i, m, got.p, i, few);
    }
    if (memcmp(want.p, got.p, want.n_bytes)) check_fail(c, "rows that were taken differ: %s", what);
    guarded_free(c, &all, "the activations");
    guarded_free(c, &want, "the activations of some rows");
    guarded_free(c, &got, "the rows that were taken");
}

/* Rows that are prepared together, and parts of rows and inputs in any order, have the bytes of rows put one by one. */
static void check_parts(check *c, const struct product *p, const char *what)
{
    const weft__act *act = p->mm->act;
    const int64_t m = p->m, k = p->k, parts = (k + WEFT__ACT_PART - 1) / WEFT__ACT_PART;
    guarded want = guarded_new(act->bytes(k, m), 0), got = guarded_new(act->bytes(k, m), 0);
    memset(want.p, 0, want.n_bytes);
    for (int64_t i = 0; i < m; i++) weft__act_put_row(act, p->x + i * k, k, i, m, want.p);
    memset(got.p, 0, got.n_bytes);
    act->put(p->x, k, &(weft__act_part){.k = k, .m = m, .to = k, .n = m}, got.p);
    if (memcmp(want.p, got.p, want.n_bytes)) check_fail(c, "rows put together differ: %s", what);
    memset(got.p, 0, got.n_bytes);
    for (int64_t part = parts - 1, n; part >= 0; part -= n) {
        n = 1 + weft__rng_below(&c->rng, (uint32_t)part + 1);
        const int64_t from = (part + 1 - n) * WEFT__ACT_PART, end = (part + 1) * WEFT__ACT_PART;
        for (int64_t row = m, rows; row > 0; row -= rows) {
            rows = 1 + weft__rng_below(&c->rng, (uint32_t)row);
            const weft__act_part one = {k, m, from, end < k ? end : k, row - rows, rows};
            act->put(p->x + (row - rows) * k + from, k, &one, got.p);
        }
    }
    if (memcmp(want.p, got.p, want.n_bytes)) check_fail(c, "rows put part by part differ: %s", what);
    guarded_free(c, &want, "the activations");
    guarded_free(c, &got, "the activations put in parts");
}

/* No byte is written by two parts: threads put theirs side by side. */
static void check_parts_apart(check *c, const struct product *p, const char *what)
{
    enum { FEW_BYTES = 1 << 14, POISON = 0x5A };
    const weft__act *act = p->mm->act;
    const size_t n_bytes = act->bytes(p->k, p->m);
    if (n_bytes > FEW_BYTES || c->cases % EVERY_ROW) return;
    uint8_t *put[2] = {weft__alloc(n_bytes), weft__alloc(n_bytes)}, *taken = weft__alloc_zero(n_bytes, 1);
    for (int64_t from = 0, end; from < p->k; from = end) {
        end = from + WEFT__ACT_PART < p->k ? from + WEFT__ACT_PART : p->k;
        for (int64_t row = 0; row < p->m; row++) {
            const weft__act_part one = {p->k, p->m, from, end, row, 1};
            for (int i = 0; i < 2; i++) {
                memset(put[i], i ? POISON ^ 0xFF : POISON, n_bytes);
                act->put(p->x + row * p->k + from, p->k, &one, put[i]);
            }
            for (size_t at = 0; at < n_bytes; at++) {
                if (put[0][at] != put[1][at]) continue; /* not written */
                if (taken[at])
                    check_fail(c, "byte %d is written by two parts, one of them of row %d: %s", (int)at, (int)row,
                               what);
                taken[at] = 1;
            }
        }
    }
    weft__free(put[0]);
    weft__free(put[1]);
    weft__free(taken);
}

/* Codes of 8 bits are those of the same numbers times any power of two, also where a half is so small that 127 / its
 * largest is no float (errors of products would not show: what such rows come to is nearly nothing). Layout:
 * simd/matmul_layout.h. */
static void check_tiny(check *c)
{
    enum { K = 576, M = 9, STEPS = K / 64 };
    const weft__act *act = c->entry->matmul->act;
    if (strncmp(act->name, "q8", 2)) return;
    const size_t row_step = act->bytes(64, 1);
    guarded usual = guarded_new(act->bytes(K, M), 0), tiny = guarded_new(act->bytes(K, M), 0);
    float x[M * K];
    check_many_values(c, P_WHOLE, x, M * K);
    act->put(x, K, &(weft__act_part){.k = K, .m = M, .to = K, .n = M}, usual.p);
    for (int half = 0; half < M * K / 32; half++)
        for (int i = 0; half % 5 == 0 && i < 32; i++) x[half * 32 + i] *= 0x1p-130f;
    act->put(x, K, &(weft__act_part){.k = K, .m = M, .to = K, .n = M}, tiny.p);
    for (int row = 0; row < M; row++) {
        for (int step = 0; step < STEPS; step++) {
            const size_t at =
                row < 8 ? (size_t)step * 8 * row_step + (size_t)row * 64 : (8 * STEPS + (size_t)step) * row_step;
            if (memcmp(usual.p + at, tiny.p + at, 64))
                check_fail(c, "tiny inputs have other codes: row %d, step %d", row, step);
        }
    }
    guarded_free(c, &usual, "the activations");
    guarded_free(c, &tiny, "the tiny activations");
}

/* A row that is multiplied where it lies among m prepared ones has the bits that all together have, and what is written
 * is its own. */
static void check_rows_among(check *c, const struct product *p, int every, const char *what)
{
    const weft__act *act = p->mm->act;
    if (!p->mm->run_row) return;
    guarded all = guarded_new(act->bytes(p->k, p->m), 0), out = guarded_new((size_t)p->n * sizeof(float), 0);
    act->put(p->x, p->k, &(weft__act_part){.k = p->k, .m = p->m, .to = p->k, .n = p->m}, all.p);
    for (int64_t i = every - 1; i < p->m; i += every) {
        const weft__product call = {p->panels, p->stride, p->n, p->k, all.p, p->m, (float *)out.p, p->n};
        const weft__range next = {p->panels, 1};
        weft__kernel_prefetch ahead = {.range = &next, .n = i % 2};
        p->mm->run_row(&call, i, i % 4 < 2 ? &ahead : NULL);
        if (!check_same_answer((const float *)out.p, p->out + i * p->n, p->n))
            check_fail(c, "row %d has other bits where it lies: %s", (int)i, what);
    }
    guarded_free(c, &all, "the activations");
    guarded_free(c, &out, "the outputs of one row");
}

/* Each row alone (or every third, from row 2 on), also where it lies among all, and the outputs of all panels but the
 * first, must come out with the same bits. */
static void check_rows_alone(check *c, const struct product *p, int every, const char *what)
{
    float *row = weft__alloc_array((size_t)p->n, sizeof *row);
    for (int64_t i = every - 1; i < p->m; i += every) {
        multiply(c, p, p->mm, p->panels, p->stride, p->n, p->x + i * p->k, 1, row);
        if (!check_same_answer(row, p->out + i * p->n, p->n))
            check_fail(c, "row %d has other bits alone: %s", (int)i, what);
    }
    weft__free(row);
    check_rows_among(c, p, every, what);
    if (p->n_panels < 2) return;
    int64_t skip = p->mm->panel_rows, n = p->n - skip;
    float *rest = weft__alloc_array((size_t)(p->m * n), sizeof *rest);
    multiply(c, p, p->mm, p->panels + p->stride, p->stride, n, p->x, p->m, rest);
    for (int64_t i = 0; i < p->m; i++) {
        if (!check_same_answer(rest + i * n, p->out + i * p->n + skip, n))
            check_fail(c, "a range of panels differs: %s", what);
    }
    weft__free(rest);
}

/* Where the address sanitizer looks, one of some where they are many. */
static void check_alone(check *c, const struct product *p, const char *what)
{
    check_rows_alone(c, p, CLAIMS_REPEATED(1, CLAIMS_SWEPT(p->m > 8 ? 5 : 1, 1), 1), what);
}

/* One row of the rows holds a NaN or an infinity: its outputs say so, and the others are as if it were not there. */
static void check_poison(check *c, struct product *p, pattern strange, const char *what)
{
    int64_t bad = p->m / 2;
    float *before = weft__alloc_array((size_t)(p->m * p->n), sizeof *before);
    memcpy(before, p->out, (size_t)(p->m * p->n) * 4);
    check_many_values(c, strange, p->x + bad * p->k, p->k);
    check_parts(c, p, what);
    multiply(c, p, p->mm, p->panels, p->stride, p->n, p->x, p->m, p->out);
    for (int64_t i = 0; i < p->m; i++) {
        const float *row = p->out + i * p->n;
        if (i != bad && !check_same_bits(row, before + i * p->n, p->n)) {
            check_fail(c, "%s in row %d changed row %d: %s", check_pattern_name(strange), (int)bad, (int)i, what);
        }
        for (int64_t j = 0; i == bad && j < p->n; j++) {
            if (isfinite(row[j])) check_fail(c, "%s in, finite out: %s", check_pattern_name(strange), what);
        }
    }
    weft__free(before);
}

static void matmul_case(check *c, int64_t n, int64_t k, int64_t m, pattern values, int wild)
{
    struct product p = product_new(c, c->entry->matmul, n, k, m, wild);
    char what[120];
    snprintf(what, sizeof what, "M %d, N %d, k %d, %s, %s blocks", (int)m, (int)n, (int)k, check_pattern_name(values),
             wild ? "wild" : "usual");
    for (int64_t i = 0; i < m; i++) check_many_values(c, values, p.x + i * k, k);
    reference(c, &p);
    multiply(c, &p, p.mm, p.panels, p.stride, n, p.x, m, p.out);
    check_error(c, product_error(&p), what);
    check_outputs(c, &p, what);
    if (values == P_WHOLE && product_error(&p) > WHOLE_BOUND) {
        check_fail(c, "error %.2g where 8 bits are exact: %s", product_error(&p), what);
    }
    check_alone(c, &p, what);
    check_take(c, &p, what);
    check_parts(c, &p, what);
    check_parts_apart(c, &p, what);
    check_poison(c, &p, P_NAN, what);
    if (CLAIMS_REPEATED(1, CLAIMS_SWEPT(0, 1), 1)) { /* the same way through memory */
        check_many_values(c, values, p.x + m / 2 * k, k);
        multiply(c, &p, p.mm, p.panels, p.stride, n, p.x, m, p.out);
        check_poison(c, &p, P_INFINITE, what);
    }
    product_free(c, &p);
}

static int has_scale_first(uint32_t dtype)
{
    return weft_dtype_describe(dtype).block_elems == 32 || dtype == WEFT_Q4_K || dtype == WEFT_Q5_K ||
           dtype == WEFT_IQ4_XS;
}

/* Scales at the ends of their range and beyond, of weights and of activations, beside usual ones: kernels that multiply
 * scales in another way where they are usual give the same bits. For formats whose blocks begin with their scale, f16;
 * those of 256 elements have small integers with it, of which some are zero. */
static void check_far_scales(check *c, int64_t k)
{
    enum { M = 32, PAIRS = 8 };
    static const uint16_t weights[PAIRS] = {0x3C00, 0x0000, 0x8000, 0x0001, 0x7C00, 0xFE00, 0x7BFF, 0xBC00};
    static const float acts[] = {1, 0x1p-70f, 0x1p-110f, 0x1p-140f, 0x1p-147f, 0x1p70f, 0x1p110f, 0, INFINITY, NAN};
    const weft_dtype_info info = weft_dtype_describe(c->entry->matmul->dtype);
    struct product p = product_new(c, c->entry->matmul, 2 * PAIRS * c->entry->matmul->panel_rows, k, M, 0);
    for (int64_t j = 0; j < p.n; j++) {
        uint8_t *row = p.rows.p + (size_t)j * p.row_stride;
        const uint16_t scale = weights[j / (2 * p.mm->panel_rows)];
        for (int64_t i = j % 5; scale != 0x3C00 && i < k / info.block_elems; i += 3)
            memcpy(row + i * info.block_bytes, &scale, sizeof scale);
    }
    if (p.packed.block) guarded_free(c, &p.packed, "the packed panels");
    pack(&p);
    /* where the address sanitizer looks: usual ones, the smallest and one that is no number */
    for (size_t a = 0; a < sizeof acts / sizeof *acts; a += CLAIMS_REPEATED(1, CLAIMS_SWEPT(4, 1), 1)) {
        char what[40];
        snprintf(what, sizeof what, "far scales, row times %g", acts[a]);
        for (int64_t i = 0; i < M; i++) check_many_values(c, P_NORMAL, p.x + i * k, k);
        for (int64_t i = 0; a > 0 && i < k; i++) p.x[5 * k + i] *= i % 96 < 64 ? acts[a] : 1;
        multiply(c, &p, p.mm, p.panels, p.stride, p.n, p.x, M, p.out);
        check_rows_alone(c, &p, CLAIMS_SWEPT(3, 1), what); /* row 5, and of each tile of 8 or 16 rows what lies by it */
    }
    product_free(c, &p);
}

/* Units that know one way of rounding only stand beside others that ask the thread's: rows have the same bits whatever
 * that is. */
static void rounding(check *c, int64_t k)
{
    const int before = fegetround();
    struct product p = product_new(c, c->entry->matmul, c->entry->matmul->panel_rows + 1, k, 37, 0);
    fesetround(FE_UPWARD);
    for (int64_t m = 3; m <= 37; m += 34) {
        p.m = m;
        for (int64_t i = 0; i < m; i++) check_many_values(c, P_NORMAL, p.x + i * k, k);
        multiply(c, &p, p.mm, p.panels, p.stride, p.n, p.x, m, p.out);
        check_alone(c, &p, "rounding upward");
    }
    fesetround(before);
    product_free(c, &p);
}

void check_matmul(check *c)
{
    static const int64_t elements[] = {1, 2, 3, 15, 16, 17, 31, 32, 33, 64, 100, 257},
                         blocks[] = {1, 2, 3, 4, 5, 7, 8, 9};
    const weft__matmul *mm = c->entry->matmul;
    const int64_t block = weft_dtype_describe(mm->dtype).block_elems;
    const int n_sizes = block == 1 ? 12 : 8;
    int64_t i = 0;
    for (int s = 0; s < n_sizes; s += EVERY_SIZE) {
        int64_t k = block == 1 ? elements[s] : block * blocks[s];
        for (int64_t n = 1 + s % EVERY_ROW; n <= mm->panel_rows + 1; n += EVERY_ROW, i++)
            matmul_case(c, n, k, 1 + i % MAX_ROWS, i % 3 ? P_NORMAL : P_WHOLE, i % 2 == 0);
        for (int64_t m = 1 + s % EVERY_ROW; m <= MAX_ROWS; m += EVERY_ROW, i++)
            matmul_case(c, 1 + i % (2 * mm->panel_rows + 2), k, m, i % 3 ? P_NORMAL : P_WHOLE, i % 2 == 0);
    }
    for (int p = 0; p < P_FINITE; p += EVERY_SIZE) {
        for (int wild = 0; wild < 2; wild++) {
            matmul_case(c, 2 * mm->panel_rows + 3, 3 * (block < 32 ? 33 : block), 5, (pattern)p, wild);
            matmul_case(c, mm->panel_rows, 2 * (block < 32 ? 32 : block), 17, (pattern)p, wild);
            matmul_case(c, mm->panel_rows + 1, 3 * (block < 32 ? 33 : block), 37, (pattern)p, wild);
        }
    }
    /* Rows for which kernels take several panels at once, or large tiles. */
    static const int64_t many[] = {23, 24, 29, 32, 47, 64};
    for (int r = 0; r < 6; r += EVERY_SIZE) {
        matmul_case(c, 2 * mm->panel_rows, 4 * (block < 32 ? 33 : block), many[r], r % 2 ? P_NORMAL : P_WHOLE, 0);
        matmul_case(c, 5 * mm->panel_rows + 3, 2 * (block < 32 ? 33 : block), many[r], r % 2 ? P_OUTLIERS : P_NORMAL,
                    1);
    }
    matmul_case(c, 3 * mm->panel_rows, 4096, 9, P_NORMAL, 0);
    /* So many inputs are taken in blocks, so many rows of floats in chunks. */
    matmul_case(c, 4 * mm->panel_rows + 1, 4352, 67, P_NORMAL, 0);
    /* More inputs than a block has, for one tile of 16 rows (by AMX in one go) and for several (in blocks): at their
     * end a lone step of 64 inputs, or one behind others. */
    const int64_t first = block == 256 ? 2304 : 2048;
    const int blocks_of_32 = block == 32;
    matmul_case(c, 2 * mm->panel_rows + 3, first + 32 * blocks_of_32, 17, P_NORMAL, 0);
    matmul_case(c, 2 * mm->panel_rows + 3, first + 160 * blocks_of_32, 16, P_NORMAL, 1);
    matmul_case(c, 3 * mm->panel_rows + 1, first + 32 * blocks_of_32, 33, P_NORMAL, 0);
    matmul_case(c, 3 * mm->panel_rows + 1, first + 960 * blocks_of_32, 80, P_NORMAL, 0);
    matmul_case(c, 5 * mm->panel_rows + 3, 2 * (block < 32 ? 33 : block), 2, P_NORMAL,
                0); /* four panels side by side */
    check_tiny(c);
    if (has_scale_first(mm->dtype)) check_far_scales(c, 6 * block), check_far_scales(c, 2048 + 3 * block);
    rounding(c, 3 * (block < 32 ? 33 : block));
    if (CLAIMS_REPEATED(0, 0, 1)) return;
    matmul_case(c, 3 * mm->panel_rows, 4096, 9, P_OUTLIERS, 0);
    matmul_case(c, mm->panel_rows - mm->panel_rows / 2, 3 * (block < 32 ? 33 : block), 32, P_NORMAL, 0);
    /* Whole chunks that take pairs of panels; one chunk and a part of another. */
    matmul_case(c, 2 * mm->panel_rows + 3, 2 * (block < 32 ? 33 : block), 512, P_NORMAL, 0);
    matmul_case(c, mm->panel_rows + 1, 2 * (block < 32 ? 33 : block), 301, P_NORMAL, 0);
    /* One tile of 16 rows and one row behind a chunk of 128. */
    matmul_case(c, mm->panel_rows + 1, first, 145, P_NORMAL, 0);
}

void check_decode_row(check *c)
{
#define TYPE(name, value, block, bytes, text) value,
    static const uint32_t types[] = {WEFT_DTYPE_LIST(TYPE)};
#undef TYPE
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (!weft__quant_decoder(types[i])) continue;
        const int64_t block = weft_dtype_describe(types[i]).block_elems;
        for (int64_t n = block; n <= (block == 1 ? 70 : 9 * block); n += block) {
            guarded row = guarded_new(weft__quant_row_bytes(types[i], n), 1), got = guarded_new((size_t)n * 4, 4);
            float want[9 * 256];
            weft__quant_random_row(types[i], &c->rng, row.p, n);
            c->k->decode_row(types[i], row.p, n, (float *)got.p);
            weft__quant_decode_row(types[i], row.p, want, n);
            check_error(c, check_same_bits((float *)got.p, want, n) ? 0 : 1, weft_dtype_describe(types[i]).name);
            guarded_free(c, &row, "the row");
            guarded_free(c, &got, "the output");
        }
    }
}
