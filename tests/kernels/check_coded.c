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

/* The scale and the codes of a row that was rotated, of at most `limit`. */
static float coded(const float *y, int n, int limit, int *codes)
{
    float most = 0;
    int strange = 0;
    for (int i = 0; i < n; i++) {
        strange |= !isfinite(y[i]);
        most = fmaxf(most, fabsf(y[i]));
        codes[i] = 0;
    }
    if (strange) return NAN;
    if (most < 0x1p-100f) return 0;
    for (int i = 0; i < n; i++) codes[i] = (int)rintf(y[i] * ((float)limit / most));
    return most / (float)limit;
}

static const int values_of_4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/* Of the sixteen values the nearest, the first of two. */
static int nearest(float x)
{
    int best = 0;
    for (int i = 1; i < 16; i++)
        if (fabs((double)values_of_4[i] - x) < fabs((double)values_of_4[best] - x)) best = i;
    return best;
}

static float in_halves(const float *x, int n)
{
    float y[16];
    if (n == 1) return x[0];
    for (int i = 0; i < n / 2; i++) y[i] = x[i] + x[i + n / 2];
    return in_halves(y, n / 2);
}

static float bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits += 0x7FFF + (bits >> 16 & 1);
    bits &= 0xFFFF0000u;
    memcpy(&x, &bits, 4);
    return x;
}

/* The scale of a block of up to 32 finite elements, and their codes. */
static float coded_4(const float *y, int n, int *codes)
{
    static const float places[] = {130, 120, 110, 100, -130, -120, -110, -100};
    float most = 0, best = 0, scale = 0;
    for (int i = 0; i < n; i++) most = fmaxf(most, fabsf(y[i]));
    memset(codes, 0, (size_t)n * sizeof *codes);
    if (most < 0x1p-100f) return 0;
    for (int p = 0; p < 8; p++) {
        float products[32] = {0}, squares[32] = {0};
        for (int i = 0; i < n; i++) {
            const float z = y[i] * (places[p] / most), value = (float)values_of_4[nearest(z)];
            products[i] = z * value;
            squares[i] = value * value;
        }
        const float a = in_halves(products, 32) * (1 / places[p]), s = a / in_halves(squares, 32);
        if (a * s > best) {
            best = a * s;
            scale = s;
        }
    }
    scale = bf16(scale * most);
    for (int i = 0; i < n; i++) codes[i] = nearest(y[i] * (1 / scale));
    return scale;
}

/* E4M3 by its values: the nearest of them, of two the one whose last bit is 0. */
static double value_of_f8(int code)
{
    const int exponent = code >> 3 & 15, fraction = code & 7;
    const double size = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
    return code & 0x80 ? -size : size;
}

static int coded_f8(float x)
{
    static double values[0x7F]; /* this program has one thread */
    int best = 0;
    if (!values[0x7E])
        for (int i = 0; i < 0x7F; i++) values[i] = value_of_f8(i);
    for (int i = 1; i < 0x7F; i++) {
        const double apart = fabs(fabs((double)x) - values[i]), before = fabs(fabs((double)x) - values[best]);
        if (apart < before || (apart == before && i % 2 == 0)) best = i;
    }
    return best | (signbit(x) ? 0x80 : 0);
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
            check_many_values(c, (pattern)p, x, n);
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

/* A part, as kernels.h says where its bytes are. */
typedef struct layout {
    uint32_t format;
    int keys, n, page_tokens;
} layout;

/* Bytes of a slot's codes, and where element d of it begins. */
static int64_t slot_bytes(const layout *l)
{
    if (l->format == WEFT_KV_Q4) return l->keys ? (l->n + 7) / 8 * 4 : (l->n + 15) / 16 * 8;
    if (l->format == WEFT_KV_Q8) return l->keys ? (l->n + 3) / 4 * 4 : l->n;
    return l->format == WEFT_BF16 ? 2 * l->n : l->n;
}

static int64_t code_at(const layout *l, int slot, int d)
{
    const int64_t block = slot / 16, bytes = slot_bytes(l);
    switch (l->format) {
    case WEFT_KV_Q4:
        return l->keys ? block * 16 * bytes + d / 8 * 64 + slot % 16 * 4 + d % 4 : slot * bytes + d / 16 * 8 + d % 8;
    case WEFT_KV_Q8: return l->keys ? block * 16 * bytes + d / 4 * 64 + slot % 16 * 4 + d % 4 : slot * bytes + d;
    case WEFT_BF16: return l->keys ? block * 16 * bytes + d * 32 + slot % 16 * 2 : slot * bytes + 2 * d;
    default: return l->keys ? block * 16 * bytes + d * 16 + slot % 16 : slot * bytes + d;
    }
}

static int64_t scale_at(const layout *l, int slot, int d)
{
    const int64_t codes = l->page_tokens * slot_bytes(l);
    return l->format == WEFT_KV_Q4 ? codes + ((int64_t)(d / 32) * l->page_tokens + slot) * 2 : codes + slot * 4;
}

static void put_scale(const layout *l, int slot, int d, float scale, uint8_t *part)
{
    uint16_t high;
    memcpy(&high, (uint8_t *)&scale + 2, 2);
    if (l->format == WEFT_KV_Q4) memcpy(part + scale_at(l, slot, d), &high, 2);
    else memcpy(part + scale_at(l, slot, d), &scale, 4);
}

static void put_4(const layout *l, int slot, int d, int code, uint8_t *part)
{
    uint8_t *at = part + code_at(l, slot, d);
    const int upper = d / (l->keys ? 4 : 8) % 2;
    *at = (uint8_t)(upper ? (*at & 15) | code << 4 : (*at & 0xF0) | code);
}

/* A row as the format has it. */
static void put_row(const layout *l, const float *x, int slot, uint8_t *part)
{
    float y[MOST];
    int codes[MOST + 31] = {0}, finite = 1;
    rotated(x, l->n, y);
    for (int d = 0; d < l->n; d++) finite &= isfinite(weft_kv_is_rotated(l->format) ? y[d] : x[d]) != 0;
    if (l->format == WEFT_KV_Q8) {
        put_scale(l, slot, 0, coded(y, l->n, 127, codes), part);
        for (int d = 0; d < slot_bytes(l); d++)
            part[code_at(l, slot, d)] = (uint8_t)(l->keys ? codes[d] + 128 : codes[d]);
    } else if (l->format == WEFT_KV_Q4) {
        for (int d = 0; d < l->n; d += 32)
            put_scale(l, slot, d, finite ? coded_4(y + d, l->n - d < 32 ? l->n - d : 32, codes + d) : NAN, part);
        for (int d = 0; d < 2 * slot_bytes(l); d++) put_4(l, slot, d, codes[d], part);
    } else {
        for (int d = 0; d < l->n; d++) {
            const float near = isfinite(x[d]) ? bf16(x[d]) : isnan(x[d]) ? NAN : x[d];
            if (l->format == WEFT_BF16) memcpy(part + code_at(l, slot, d), (const uint8_t *)&near + 2, 2);
            else part[code_at(l, slot, d)] = (uint8_t)(finite ? coded_f8(x[d]) : 0x7F);
        }
    }
}

/* What element d of a slot says. */
static double decoded_at(const layout *l, int slot, int d, const uint8_t *part)
{
    const uint8_t *at = part + code_at(l, slot, d);
    float x = 0;
    switch (l->format) {
    case WEFT_KV_Q8: memcpy(&x, part + scale_at(l, slot, d), 4); return (double)x * (l->keys ? *at - 128 : (int8_t)*at);
    case WEFT_KV_Q4:
        memcpy((uint8_t *)&x + 2, part + scale_at(l, slot, d), 2);
        return (double)x * values_of_4[*at >> d / (l->keys ? 4 : 8) % 2 * 4 & 15];
    case WEFT_BF16: memcpy((uint8_t *)&x + 2, at, 2); return x;
    default: return value_of_f8(*at);
    }
}

/* Are two parts of one slot alike? A NaN's bits are not promised in BF16. */
static int alike(const layout *l, const uint8_t *a, const uint8_t *b, size_t n_bytes)
{
    for (size_t i = 0; l->format == WEFT_BF16 && i + 1 < n_bytes; i += 2) {
        uint16_t x, y;
        memcpy(&x, a + i, 2);
        memcpy(&y, b + i, 2);
        if (x != y && !((x & 0x7FFF) > 0x7F80 && (y & 0x7FFF) > 0x7F80)) return 0;
    }
    return l->format == WEFT_BF16 || !memcmp(a, b, n_bytes);
}

/* All slots of a page, in any order, twice; every byte that belongs to none keeps its value. */
static void code_case(check *c, const layout *l, pattern p)
{
    const weft_kv_group g = {.page_tokens = l->page_tokens, .head_dim_k = l->n, .head_dim_v = l->n};
    const size_t n_bytes = weft_kv_part_bytes(l->format, &g, !l->keys);
    guarded got = guarded_new(n_bytes, 4);
    uint8_t *want = weft__alloc_zero(n_bytes, 1);
    memset(got.p, 0, n_bytes);
    for (int i = 0; i < l->page_tokens + 3; i++) {
        const int slot = (i * 5 + 3) % l->page_tokens;
        float x[MOST];
        check_many_values(c, p, x, l->n);
        if (p == P_NORMAL && i % 3 == 0) x[i % l->n] *= 1000; /* one channel far from the others */
        put_row(l, x, slot, want);
        (l->keys ? c->k->kv_code_k : c->k->kv_code_v)(x, l->n, slot, l->page_tokens, l->format, got.p);
    }
    char what[100], name[WEFT_KV_NAME_MAX];
    snprintf(what, sizeof what, "%s, page %d, head %d, %s", weft_kv_type_name(l->format, name), l->page_tokens, l->n,
             check_pattern_name(p));
    check_error(c, alike(l, got.p, want, n_bytes) ? 0 : 1, what);
    weft__free(want);
    guarded_free(c, &got, "the part");
}

static const uint32_t formats[] = {WEFT_KV_Q8, WEFT_KV_Q4, WEFT_KV_F8, WEFT_BF16};
enum { N_FORMATS = sizeof formats / sizeof *formats };

void check_kv_code(check *c)
{
    static const int heads[] = {64, 80, 96, 112, 128, 192, 256, 512, 1024};
    const int keys = !strcmp(c->entry->op, "kv_code_k");
    for (int f = 0; f < N_FORMATS; f++) {
        for (int n = 1 + f % 2; n <= 130; n += n < 35 ? EVERY_SIZE : 19)
            for (int p = 0; p < P_COUNT; p++)
                code_case(c, &(layout){formats[f], keys, n, 16 << (n + p) % 3}, (pattern)p);
        for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
            code_case(c, &(layout){formats[f], keys, heads[i], 16}, P_NORMAL);
    }
}

/* ---- attention over decoded values ---- */

typedef struct decoded {
    uint32_t format[2]; /* of keys, of values */
    int hk, hv, n;
    double *k, *v; /* [n][hk], [n][hv]: as the pages' bytes say, turned back */
    uint8_t *data; /* pages of 64, keys, then values */
    size_t page_bytes, v_offset;
    int32_t *pages;
} decoded;

/* In double, and so a little apart from what was rounded in F32; neighbours first. */
static void turned_back(const double *x, int n, double *y)
{
    const int b = block_of(n);
    memcpy(y, x, (size_t)n * sizeof *y);
    for (int apart = 1; apart < b; apart *= 2) {
        for (int i = 0; i < n; i++) {
            if (i & apart) continue;
            const double sum = y[i] + y[i + apart], difference = y[i] - y[i + apart];
            y[i] = sum;
            y[i + apart] = difference;
        }
    }
    for (int i = 0; i < n; i++) y[i] /= sqrt(b);
}

/* In some positions one channel of the values is a thousand times as large, and one of the keys k_gain times. */
static void decoded_open(check *c, decoded *s, const uint32_t format[2], int hk, int hv, int n, float k_gain)
{
    enum { PAGE = 64 };
    const weft_kv_group g = {.page_tokens = PAGE, .head_dim_k = hk, .head_dim_v = hv};
    const int n_pages = (n + PAGE - 1) / PAGE;
    *s = (decoded){{format[0], format[1]}, hk, hv, n};
    s->v_offset = weft_kv_part_bytes(format[0], &g, 0);
    s->page_bytes = s->v_offset + weft_kv_part_bytes(format[1], &g, 1);
    s->data = weft__alloc_aligned(64, (size_t)n_pages * s->page_bytes);
    s->pages = weft__alloc_array((size_t)n_pages, sizeof *s->pages);
    s->k = weft__alloc_array((size_t)n * (size_t)hk, sizeof *s->k);
    s->v = weft__alloc_array((size_t)n * (size_t)hv, sizeof *s->v);
    memset(s->data, 0xFF, (size_t)n_pages * s->page_bytes);
    for (int i = 0; i < n_pages; i++) s->pages[i] = n_pages - 1 - i;
    for (int t = 0; t < n; t++) {
        for (int values = 0; values < 2; values++) {
            const layout l = {format[values], !values, values ? hv : hk, PAGE};
            uint8_t *part = s->data + (size_t)s->pages[t / PAGE] * s->page_bytes + (values ? s->v_offset : 0);
            double *to = values ? s->v + (size_t)t * (size_t)hv : s->k + (size_t)t * (size_t)hk, y[MOST];
            float x[MOST];
            check_many_values(c, t % 7 ? P_NORMAL : P_OUTLIERS, x, l.n);
            if (t % 11 == 0) x[t % l.n] *= values ? 1000 : k_gain;
            (values ? c->k->kv_code_v : c->k->kv_code_k)(x, l.n, t % PAGE, PAGE, l.format, part);
            for (int d = 0; d < l.n; d++) y[d] = decoded_at(&l, t % PAGE, d, part);
            if (weft_kv_is_rotated(l.format)) turned_back(y, l.n, to);
            else memcpy(to, y, (size_t)l.n * sizeof *y);
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

static double decoded_size(const decoded *s, const float *q, int begin, int end)
{
    double most = 0, q_square = 0;
    for (int d = 0; d < s->hk; d++) q_square += (double)q[d] * q[d];
    for (int t = begin; t < end; t++) {
        double square = 0;
        for (int d = 0; d < s->hk; d++) square += pow(s->k[(size_t)t * (size_t)s->hk + (size_t)d], 2);
        most = fmax(most, square);
    }
    return check_score_size(q_square, most, s->hk);
}

/* softmax(q . k) . v over positions [begin, end), all in double; q is what its codes say. */
static void exactly(const decoded *s, const float *query, int begin, int end, double *out)
{
    int codes[MOST];
    double q[MOST], y[MOST], most = -INFINITY, sum = 0, *p = weft__alloc_array((size_t)(end - begin), sizeof *p);
    float turned[MOST];
    rotated(query, s->hk, turned);
    const double scale = coded(turned, s->hk, 8191, codes);
    for (int d = 0; d < s->hk; d++) y[d] = codes[d] * scale;
    turned_back(y, s->hk, q);
    for (int d = 0; d < s->hk && !weft_kv_is_rotated(s->format[0]); d++) q[d] = query[d];
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
    check_many_values(c, P_NORMAL, q, n_q * s->hk);
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
        c->k->attn_coded(&a, s->format[0], s->format[1], i, scratch, state + (int64_t)i * n_q * row);
    for (int i = 0; i < n_q; i++) {
        double want[MOST], worst = 0, most = 0;
        c->k->attn_combine(state + (int64_t)i * row, (int64_t)n_q * row, n_splits, s->hv, out);
        if (weft_kv_is_rotated(s->format[1])) c->k->kv_rotate(out, s->hv, out);
        exactly(s, q + i * s->hk, begin[i], end[i], want);
        const double allowed = 1e-5 * decoded_size(s, q + i * s->hk, begin[i], end[i]);
        int off = 0; /* also what is no number */
        for (int e = 0; e < s->hv; e++) most = fmax(most, fabs(want[e]));
        for (int e = 0; e < s->hv; e++) {
            const double apart = fabs(out[e] - want[e]);
            off += !(apart <= allowed * most);
            if (apart > worst) worst = apart;
        }
        c->cases++;
        if (off)
            check_fail(c, "%g of %g beside the decoded values: formats %u and %u, head %d/%d, positions %d..%d", worst,
                       most, s->format[0], s->format[1], s->hk, s->hv, begin[i], end[i]);
    }
    weft__free(scratch);
    weft__free(state);
    weft__free(q);
}

void check_attn_decoded(check *c)
{
    /* what has more than a split of positions is long for the readable kernel: so long once where it repeats */
    static const int sizes[][3] = {{64, 64, 1},
                                   {80, 80, 77},
                                   {96, 96, 130},
                                   {112, 112, 65},
                                   {128, 128, CLAIMS_REPEATED(2, 1, 1) * WEFT__ATTN_SPLIT_TOKENS + 76},
                                   {192, 128, 70},
                                   {256, 256, 40},
                                   {512, 512, 20},
                                   {20, 31, 50},
                                   {64, 64, 32768}};
    const size_t n = sizeof sizes / sizeof *sizes - CLAIMS_SWEPT(1, 0); /* the last in make test-all */
    for (int f = 0; f < 2 * N_FORMATS; f++) {                           /* each with itself, then with the next */
        const uint32_t pair[2] = {formats[f % N_FORMATS], formats[(f + f / N_FORMATS) % N_FORMATS]};
        for (size_t i = 0; i < n; i++) {
            decoded s;
            if (f >= N_FORMATS && (i + (size_t)f) % 3) continue;
            /* A thousand times leaves one position most of the weight: by turns with keys among which many count. Not
             * over 32768, where the weights of F8 keys beside BF16 values err by more than is allowed. */
            const float k_gain = (i + (size_t)f) % 2 && sizes[i][2] < 32768 ? 1000 : 8;
            decoded_open(c, &s, pair, sizes[i][0], sizes[i][1], sizes[i][2], k_gain);
            decoded_case(c, &s, 1, 0);
            decoded_case(c, &s, 4, sizes[i][2] / 2);
            decoded_case(c, &s, 9, 0);
            decoded_close(&s);
        }
    }
}
