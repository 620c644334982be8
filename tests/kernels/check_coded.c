// SPDX-License-Identifier: Apache-2.0
/* check_coded.c: rows as whole numbers, and attention over them, against definitions of its own (check.h): codes bit
 * for bit against plain C, attention against double arithmetic over what the bytes of the pages decode to. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { MOST = WEFT_KV_CODED_MAX };

/* ---- the definition ---- */

static int block_of(int n)
{
    int b = 1;
    while (n % (2 * b) == 0) b *= 2;
    return b;
}

/* The transform of n = 2^i values, halves first. */
static void halves(float *x, int n)
{
    if (n == 1) return;
    halves(x, n / 2);
    halves(x + n / 2, n / 2);
    for (int i = 0; i < n / 2; i++) {
        float a = x[i], b = x[i + n / 2];
        x[i] = a + b;
        x[i + n / 2] = a - b;
    }
}

static void rotated(const float *x, int n, float *y)
{
    const int b = block_of(n);
    memcpy(y, x, (size_t)n * sizeof *y);
    for (int i = 0; i < n; i += b) halves(y + i, b);
    for (int i = 0; i < n; i++) y[i] *= 1.0f / sqrtf((float)b);
}

/* The scale and the codes of a row. */
static float coded(const float *x, int n, int *codes)
{
    float y[MOST], most = 0;
    int strange = 0;
    rotated(x, n, y);
    for (int i = 0; i < n; i++) {
        strange |= !isfinite(y[i]);
        most = fmaxf(most, fabsf(y[i]));
        codes[i] = 0;
    }
    if (strange) return NAN;
    if (most < 0x1p-100f) return 0;
    for (int i = 0; i < n; i++) codes[i] = (int)rintf(y[i] * (127 / most));
    return most / 127;
}

/* ---- codes ---- */

static void put_floats(const char *what, check *c, const float *got, const float *want, int n, pattern p)
{
    char text[100];
    snprintf(text, sizeof text, "%s of %d, %s", what, n, check_pattern_name(p));
    check_error(c, check_same_answer(got, want, n) ? 0 : 1, text);
}

void check_kv_rotate(check *c)
{
    for (int n = 1; n <= MOST; n += n < 132 ? EVERY_SIZE : n == 1008 ? 16 : 4) {
        for (int p = 0; p < P_COUNT; p++) {
            float x[MOST], want[MOST];
            guarded got = guarded_new((size_t)n * 4, 4);
            check_values(c, (pattern)p, x, n);
            rotated(x, n, want);
            c->k->kv_rotate(x, n, (float *)got.p);
            put_floats("rotated", c, (float *)got.p, want, n, (pattern)p);
            if (p == P_NORMAL) { /* twice is once back */
                c->k->kv_rotate((float *)got.p, n, (float *)got.p);
                if (check_difference((float *)got.p, x, n, 1) > 2e-6) check_fail(c, "%d elements do not come back", n);
            }
            guarded_free(c, &got, "the row");
        }
    }
}

/* Where the code of element d of a slot stands in a part, and where the slot's scale does. */
static int64_t code_at(int keys, int n, int slot, int d)
{
    if (!keys) return (int64_t)slot * n + d;
    return ((int64_t)(slot / 16) * ((n + 3) / 4) + d / 4) * 64 + slot % 16 * 4 + d % 4;
}

static int64_t scale_at(int keys, int n, int page_tokens, int slot)
{
    return (int64_t)page_tokens * (keys ? (n + 3) / 4 * 4 : n) + (int64_t)slot * 4;
}

/* All slots of a page, in any order, twice; every byte that belongs to none keeps its value. */
static void code_case(check *c, int keys, int n, int page_tokens, pattern p)
{
    const weft_kv_group g = {.page_tokens = page_tokens, .head_dim_k = n, .head_dim_v = n};
    const size_t n_bytes = weft_kv_part_bytes(WEFT_KV_Q8, &g, !keys);
    guarded got = guarded_new(n_bytes, 4);
    uint8_t *want = weft__alloc_zero(n_bytes, 1);
    memset(got.p, 0, n_bytes);
    for (int i = 0; i < page_tokens + 3; i++) {
        const int slot = (i * 5 + 3) % page_tokens;
        float x[MOST];
        int codes[MOST + 3] = {0};
        check_values(c, p, x, n);
        if (p == P_NORMAL && i % 3 == 0) x[i % n] *= 1000; /* one channel far from the others */
        const float scale = coded(x, n, codes);
        for (int d = 0; d < (keys ? (n + 3) / 4 * 4 : n); d++)
            want[code_at(keys, n, slot, d)] = (uint8_t)(keys ? codes[d] + 128 : codes[d]);
        memcpy(want + scale_at(keys, n, page_tokens, slot), &scale, 4);
        (keys ? c->k->kv_code_k : c->k->kv_code_v)(x, n, slot, page_tokens, WEFT_KV_Q8, got.p);
    }
    char what[100];
    snprintf(what, sizeof what, "page %d, head %d, %s", page_tokens, n, check_pattern_name(p));
    check_error(c, memcmp(got.p, want, n_bytes) ? 1 : 0, what);
    weft__free(want);
    guarded_free(c, &got, "the part");
}

void check_kv_code(check *c)
{
    const int keys = !strcmp(c->entry->op, "kv_code_k");
    for (int n = 1; n <= 130; n += n < 35 ? EVERY_SIZE : 19)
        for (int p = 0; p < P_COUNT; p++) code_case(c, keys, n, 16 << (n + p) % 3, (pattern)p);
    static const int heads[] = {64, 80, 96, 112, 128, 192, 256, 512, 1024};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) code_case(c, keys, heads[i], 16, P_NORMAL);
}

/* ---- attention over decoded values ---- */

typedef struct decoded {
    int hk, hv, n;
    double *k, *v; /* [n][hk], [n][hv]: as the pages' bytes say, turned back */
    uint8_t *data; /* pages of 64, keys, then values */
    size_t page_bytes, v_offset;
    int32_t *pages;
} decoded;

/* In double, and so a little apart from what was rounded in F32. */
static void turned_back(const double *x, int n, double *y)
{
    const int b = block_of(n);
    for (int i = 0; i < n; i++) {
        double sum = 0;
        for (int j = 0; j < b; j++) sum += (__builtin_popcount((unsigned)(i % b & j)) % 2 ? -1 : 1) * x[i / b * b + j];
        y[i] = sum / sqrt(b);
    }
}

static void decoded_open(check *c, decoded *s, int hk, int hv, int n)
{
    enum { PAGE = 64 };
    const weft_kv_group g = {.page_tokens = PAGE, .head_dim_k = hk, .head_dim_v = hv};
    const int n_pages = (n + PAGE - 1) / PAGE;
    *s = (decoded){hk, hv, n};
    s->v_offset = weft_kv_part_bytes(WEFT_KV_Q8, &g, 0);
    s->page_bytes = s->v_offset + weft_kv_part_bytes(WEFT_KV_Q8, &g, 1);
    s->data = weft__alloc_aligned(64, (size_t)n_pages * s->page_bytes);
    s->pages = weft__alloc_array((size_t)n_pages, sizeof *s->pages);
    s->k = weft__alloc_array((size_t)n * (size_t)hk, sizeof *s->k);
    s->v = weft__alloc_array((size_t)n * (size_t)hv, sizeof *s->v);
    memset(s->data, 0xFF, (size_t)n_pages * s->page_bytes);
    for (int i = 0; i < n_pages; i++) s->pages[i] = n_pages - 1 - i;
    for (int t = 0; t < n; t++) {
        for (int values = 0; values < 2; values++) {
            const int dim = values ? hv : hk, slot = t % PAGE;
            uint8_t *part = s->data + (size_t)s->pages[t / PAGE] * s->page_bytes + (values ? s->v_offset : 0);
            float x[MOST], scale;
            double y[MOST];
            check_many_values(c, t % 7 ? P_NORMAL : P_OUTLIERS, x, dim);
            (values ? c->k->kv_code_v : c->k->kv_code_k)(x, dim, slot, PAGE, WEFT_KV_Q8, part);
            memcpy(&scale, part + scale_at(!values, dim, PAGE, slot), 4);
            for (int d = 0; d < dim; d++) {
                const uint8_t byte = part[code_at(!values, dim, slot, d)];
                y[d] = (double)scale * (values ? (int8_t)byte : byte - 128);
            }
            turned_back(y, dim, (values ? s->v + (size_t)t * (size_t)hv : s->k + (size_t)t * (size_t)hk));
        }
    }
}

static void decoded_close(decoded *s)
{
    weft__free(s->v);
    weft__free(s->k);
    weft__free(s->pages);
    weft__free(s->data);
}

/* softmax(q . k) . v over positions [begin, end), all in double; q is what its codes say. */
static void exactly(const decoded *s, const float *query, int begin, int end, double *out)
{
    int codes[MOST];
    double q[MOST], y[MOST], most = -INFINITY, sum = 0, *p = weft__alloc_array((size_t)(end - begin), sizeof *p);
    const double scale = coded(query, s->hk, codes);
    for (int d = 0; d < s->hk; d++) y[d] = codes[d] * scale;
    turned_back(y, s->hk, q);
    for (int t = begin; t < end; t++) {
        double dot = 0;
        for (int d = 0; d < s->hk; d++) dot += q[d] * s->k[(size_t)t * (size_t)s->hk + (size_t)d];
        p[t - begin] = dot / sqrt(s->hk);
        most = fmax(most, p[t - begin]);
    }
    memset(out, 0, (size_t)s->hv * sizeof *out);
    for (int t = begin; t < end; t++) {
        const double weight = exp(p[t - begin] - most);
        sum += weight;
        for (int e = 0; e < s->hv; e++) out[e] += weight * s->v[(size_t)t * (size_t)s->hv + (size_t)e];
    }
    for (int e = 0; e < s->hv; e++) out[e] /= sum;
    weft__free(p);
}

static void decoded_case(check *c, const decoded *s, int n_q, int window)
{
    enum { MAX_Q = 12 };
    const int row = 2 + s->hv, n_splits = (s->n + WEFT__ATTN_SPLIT_TOKENS - 1) / WEFT__ATTN_SPLIT_TOKENS;
    int32_t begin[MAX_Q], end[MAX_Q];
    float *q = weft__alloc_array((size_t)(n_q * s->hk), sizeof *q), out[MOST];
    float *state = weft__alloc_array((size_t)(n_splits * n_q * row), sizeof *state);
    float *scratch = weft__alloc_aligned(64, 4 * weft__attn_scratch(n_q, 64, s->hk, s->hv));
    check_values(c, P_NORMAL, q, n_q * s->hk);
    for (int i = 0; i < n_q; i++) {
        end[i] = s->n - n_q + i + 1 > 0 ? s->n - n_q + i + 1 : 1;
        begin[i] = window && end[i] > window ? end[i] - window : 0;
    }
    weft__attn a = {.q = q,
                    .head_stride = s->hk,
                    .n_q = n_q,
                    .row_heads = n_q,
                    .head_dim_k = s->hk,
                    .head_dim_v = s->hv,
                    .begin = begin,
                    .end = end,
                    .data = s->data,
                    .pages = s->pages,
                    .page_bytes = s->page_bytes,
                    .v_offset = s->v_offset,
                    .page_tokens = 64,
                    .scale = 1 / sqrtf((float)s->hk)};
    for (int i = 0; i < n_splits; i++)
        c->k->attn_coded(&a, WEFT_KV_Q8, WEFT_KV_Q8, i, scratch, state + (int64_t)i * n_q * row);
    for (int i = 0; i < n_q; i++) {
        double want[MOST], worst = 0, most = 0;
        c->k->attn_combine(state + (int64_t)i * row, (int64_t)n_q * row, n_splits, s->hv, out);
        c->k->kv_rotate(out, s->hv, out);
        exactly(s, q + i * s->hk, begin[i], end[i], want);
        int off = 0; /* also what is no number */
        for (int e = 0; e < s->hv; e++) most = fmax(most, fabs(want[e]));
        for (int e = 0; e < s->hv; e++) {
            const double apart = fabs(out[e] - want[e]);
            off += !(apart <= 1e-5 * most);
            if (apart > worst) worst = apart;
        }
        c->cases++;
        if (off)
            check_fail(c, "%g of %g beside the decoded values: head %d/%d, positions %d..%d", worst, most, s->hk, s->hv,
                       begin[i], end[i]);
    }
    weft__free(scratch);
    weft__free(state);
    weft__free(q);
}

void check_attn_decoded(check *c)
{
    static const int sizes[][3] = {{64, 64, 1},    {80, 80, 77},   {96, 96, 130},  {112, 112, 65}, {128, 128, 1100},
                                   {192, 128, 70}, {256, 256, 40}, {512, 512, 20}, {20, 31, 50},   {64, 64, 32768}};
    const size_t n = sizeof sizes / sizeof *sizes - CLAIMS_SWEPT(1, 0); /* the last in make test-all */
    for (size_t i = 0; i < n; i++) {
        decoded s;
        decoded_open(c, &s, sizes[i][0], sizes[i][1], sizes[i][2]);
        decoded_case(c, &s, 1, 0);
        decoded_case(c, &s, 4, sizes[i][2] / 2);
        decoded_case(c, &s, 9, 0);
        decoded_close(&s);
    }
}
