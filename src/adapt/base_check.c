// SPDX-License-Identifier: Apache-2.0
/* base_check.c: the base's own embedding or output head, which PEFT saves beside its change (save_embedding_layers, by
 * default where one of them is changed): is it the base's? Rows of it are kept for that, and nothing else comes of
 * them. One thread builds an adapter; a whole one is immutable. */
#include <math.h>
#include <string.h>

#include "adapt/parts.h"
#include "base/alloc.h"
#include "base/background.h"
#include "quant/quant.h"

/* The most that a type's rounding changes, in squares over squares, and as much again: what is further from the copy is
 * another matrix. (Rows of normal numbers: Q8_0 3e-5, Q4_0 9e-3, Q3_K 3e-2, Q2_K 1e-1.) A training that moved a matrix
 * less than its type rounds it is not seen. */
static double max_error(uint32_t dtype)
{
    switch (dtype) {
    case WEFT_F32:
    case WEFT_F16:
    case WEFT_BF16:
    case WEFT_Q8_0: return 1e-4;
    case WEFT_Q3_K: return 0.06;
    case WEFT_Q2_K: return 0.2;
    default: return 0.02;
    }
}

static int64_t row_at(const weft__adapt_base_check *c, int32_t i)
{
    return i * c->n / c->n_rows;
}

weft_status weft__adapt_base_check_add(weft__adapt *a, const char *name, const weft__tensor_desc *t, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    const int64_t k = (int64_t)t->d[0], n = (int64_t)t->d[1];
    const int32_t n_rows = n < WEFT__ADAPT_BASE_CHECK_ROWS ? (int32_t)n : WEFT__ADAPT_BASE_CHECK_ROWS;
    weft__name_show(shown, t->name, strlen(t->name));
    if (t->d[2] != 1 || t->d[3] != 1 || t->d[0] > INT32_MAX || t->d[1] > INT32_MAX || !weft__quant_decoder(t->dtype))
        return weft_fail(err, WEFT_FORMAT, "tensor %s is no matrix of floats, as it should be beside the change of one",
                         shown);
    for (int32_t i = 0; i < a->n_checks; i++)
        if (!strcmp(a->checks[i].name, name))
            return weft_fail(err, WEFT_FORMAT, "tensor %s: there are two of this matrix", shown);
    if (a->n_checks == WEFT__ADAPT_BASE_CHECKS)
        return weft_fail(err, WEFT_LIMIT, "tensor %s: one matrix of the base too many", shown);
    const uint64_t n_bytes = (uint64_t)n_rows * (uint64_t)k * sizeof(float);
    if (n_bytes > a->max_bytes)
        return weft_fail(err, WEFT_LIMIT, "tensor %s: its rows are too wide: %llu bytes at most are read of an adapter",
                         shown, (unsigned long long)a->max_bytes);
    float *rows = weft__arena_array(&a->arena, (size_t)n_rows * (size_t)k, sizeof *rows);
    if (!rows) return weft_fail(err, WEFT_NO_MEMORY, "no memory for rows of tensor %s", shown);
    weft__adapt_base_check *c = &a->checks[a->n_checks++];
    *c = (weft__adapt_base_check){.k = k, .n = n, .n_rows = n_rows, .rows = rows};
    memcpy(c->name, name, strlen(name) + 1);
    const uint64_t row_bytes = weft__quant_row_bytes(t->dtype, k);
    for (int32_t i = 0; i < n_rows; i++, rows += k) {
        weft__quant_decode_row(t->dtype, (const uint8_t *)weft__tensor_data(t) + (uint64_t)row_at(c, i) * row_bytes,
                               rows, k);
        for (int64_t j = 0; j < k; j++)
            if (!isfinite(rows[j]))
                return weft_fail(err, WEFT_FORMAT, "tensor %s holds %s", shown, isnan(rows[j]) ? "NaN" : "infinity");
        weft__background_did((uint64_t)k * sizeof *rows);
    }
    return WEFT_OK;
}

/* Squares of the differences over squares of the copy; a row of the base is decoded into `row`. Rows that the target
 * lacks do not count. */
static double error_of(const weft__adapt_base_check *c, const weft__adapt_target *t, float *row)
{
    double error = 0, size = 0;
    for (int32_t i = 0; i < c->n_rows; i++) {
        const int64_t r = row_at(c, i) - t->first;
        const float *own = c->rows + i * c->k;
        if (r < 0 || r >= t->n) continue;
        weft__quant_decode_row(t->dtype, (const uint8_t *)t->data + (uint64_t)r * t->row_bytes, row, c->k);
        for (int64_t j = 0; j < c->k; j++) {
            error += ((double)row[j] - own[j]) * ((double)row[j] - own[j]);
            size += (double)own[j] * own[j];
        }
    }
    return error == 0 ? 0 : error / size;
}

static weft_status check_copy(const weft__adapt *a, const weft__adapt_base_check *c, const weft__adapt_base *base,
                              weft_error *err)
{
    static const char remedy[] =
        "if it was trained or resized, merge the adapter where it was made and convert the model";
    char path[WEFT__NAME_SHOW * 2];
    const weft__adapt_target *t = weft__adapt_target_of(base, c->name);
    weft__name_show_path(path, a->label);
    if (!t) return WEFT_OK; /* nothing changes it: what did would have been refused */
    if (c->k != t->k || c->n != t->n_total)
        return weft_fail(err, WEFT_ARGUMENT,
                         "adapter %s: the %s beside its change is of %lld x %lld, that of %s of %lld x %lld; %s", path,
                         c->name, (long long)c->k, (long long)c->n, base->label, (long long)t->k, (long long)t->n_total,
                         remedy);
    if (!t->data || !weft__quant_decoder(t->dtype)) return WEFT_OK; /* a compiled plan: no more is known */
    float *row = weft__alloc_array((size_t)c->k, sizeof *row);
    if (!row) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a row of %s", c->name);
    const double error = error_of(c, t, row);
    weft__free(row);
    if (error <= max_error(t->dtype)) return WEFT_OK;
    return weft_fail(err, WEFT_ARGUMENT,
                     "adapter %s: the %s beside its change is not that of %s (an NMSE of %.2g; at most %g): it is "
                     "another base's; %s",
                     path, c->name, base->label, error, max_error(t->dtype), remedy);
}

weft_status weft__adapt_run_base_checks(const weft__adapt *a, const weft__adapt_base *base, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < a->n_checks && !st; i++) st = check_copy(a, &a->checks[i], base, err);
    return st;
}
