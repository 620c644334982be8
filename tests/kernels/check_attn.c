// SPDX-License-Identifier: Apache-2.0
/* check_attn.c: attention over pages against ref (check.h). Pages lie in random order, every byte that no token was
 * stored in is 0xFF (a NaN in all types), and every query must give the same bits alone as in company. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "quant/half.h"

enum { MAX_Q = 40, SPLIT = WEFT__ATTN_SPLIT_TOKENS, MAX_SPLITS = 4 };

/* A sequence stored twice: in the order of the tier under test and in that of ref. */
struct cache {
    uint32_t dtype;
    int hk, hv, page_tokens, n_tokens, n_pages;
    uint64_t page_bytes, k_offset, v_offset;
    guarded pages[2]; /* 0: under test, 1: ref */
    int32_t *table;
    double v_square; /* sum of squares of the finite values */
    double k_square; /* the most that a finite key's are together */
};

static int elem_bytes(uint32_t dtype)
{
    return dtype == WEFT_F16 ? 2 : 4;
}

static const char *type_name(uint32_t dtype)
{
    static char name[WEFT_KV_NAME_MAX];
    return weft_kv_type_name(dtype, name);
}

/* Of the keys (values: 0) or the values of a type. */
static uint32_t format_of(uint32_t type, int values)
{
    static const weft_kv_group one = {.n_layers = 1};
    return weft_kv_format_of(type, &one, 0, values);
}

/* Of one head in a page. */
static uint64_t part_bytes(uint32_t type, int page_tokens, int hk, int hv, int values)
{
    const weft_kv_group g = {.page_tokens = page_tokens, .head_dim_k = hk, .head_dim_v = hv};
    return weft_kv_part_bytes(format_of(type, values), &g, values);
}

static void cache_put(check *c, struct cache *s, int t, const float *k, const float *v)
{
    const uint32_t of_k = format_of(s->dtype, 0), of_v = format_of(s->dtype, 1);
    double k_square = 0;
    for (int i = 0; i < s->hv; i++) s->v_square += isfinite(v[i]) ? (double)v[i] * v[i] : 0;
    for (int i = 0; i < s->hk; i++) k_square += isfinite(k[i]) ? (double)k[i] * k[i] : 0;
    s->k_square = fmax(s->k_square, k_square);
    for (int which = 0; which < 2; which++) {
        const weft__kernels *table = which ? c->ref : c->k;
        uint8_t *page = s->pages[which].p + (uint64_t)s->table[t / s->page_tokens] * s->page_bytes;
        const int slot = t % s->page_tokens;
        (weft_kv_is_coded(of_k) ? table->kv_code_k : table->kv_put_k)(k, s->hk, slot, s->page_tokens, of_k,
                                                                      page + s->k_offset);
        (weft_kv_is_coded(of_v) ? table->kv_code_v : table->kv_put_v)(v, s->hv, slot, s->page_tokens, of_v,
                                                                      page + s->v_offset);
    }
}

static struct cache cache_new(check *c, uint32_t dtype, int hk, int hv, int page_tokens, int n_tokens, pattern p)
{
    struct cache s = {dtype, hk, hv, page_tokens, n_tokens, (n_tokens + page_tokens - 1) / page_tokens};
    uint64_t size = (uint64_t)elem_bytes(dtype);
    s.k_offset = 2 * size;
    s.v_offset = s.k_offset + part_bytes(dtype, page_tokens, hk, hv, 0) + 6 * size;
    s.page_bytes = s.v_offset + part_bytes(dtype, page_tokens, hk, hv, 1) + 4 * size;
    s.table = weft__alloc_array((size_t)s.n_pages + 1, sizeof *s.table);
    for (int i = 0; i < s.n_pages; i++) {
        int j = (int)weft__rng_below(&c->rng, (uint64_t)i + 1);
        s.table[i] = s.table[j];
        s.table[j] = i;
    }
    for (int which = 0; which < 2; which++) {
        s.pages[which] = guarded_new((size_t)s.n_pages * s.page_bytes, 0);
        memset(s.pages[which].p, 0xFF, s.pages[which].n_bytes);
    }
    float row[2][512];
    for (int t = 0; t < n_tokens; t++) {
        check_many_values(c, p, row[0], hk);
        check_many_values(c, p, row[1], hv);
        cache_put(c, &s, t, row[0], row[1]);
    }
    return s;
}

static void cache_free(check *c, struct cache *s)
{
    guarded_free(c, &s->pages[0], "the pages");
    guarded_free(c, &s->pages[1], "ref's pages");
    weft__free(s->table);
}

static weft__attn view(const struct cache *s, int which, const float *q, int64_t q_stride, int n_q,
                       const int32_t *begin, const int32_t *end, float softcap)
{
    return (weft__attn){.q = q,
                        .head_stride = q_stride,
                        .row_stride = 3 * q_stride,
                        .n_q = n_q,
                        .row_heads = 3,
                        .head_dim_k = s->hk,
                        .head_dim_v = s->hv,
                        .begin = begin,
                        .end = end,
                        .data = s->pages[which].p,
                        .pages = s->table,
                        .page_bytes = s->page_bytes,
                        .k_offset = s->k_offset,
                        .v_offset = s->v_offset,
                        .page_tokens = s->page_tokens,
                        .scale = 1 / sqrtf((float)s->hk),
                        .softcap = softcap};
}

/* All splits and their combination, turned back where it was rotated; out [n_q][hv], state [MAX_SPLITS][n_q][2 +
 * hv]. */
static void attend(check *c, const weft__kernels *k, const weft__attn *a, uint32_t dtype, int n_splits, float *state,
                   float *out)
{
    const uint32_t of_k = format_of(dtype, 0), of_v = format_of(dtype, 1);
    int64_t row = 2 + a->head_dim_v, split = row * a->n_q;
    guarded scratch = guarded_new(4 * weft__attn_scratch(a->n_q, a->page_tokens, a->head_dim_k, a->head_dim_v), 0);
    for (int i = 0; i < n_splits; i++) {
        if (of_k != of_v || weft_kv_is_coded(of_k))
            k->attn_coded(a, of_k, of_v, i, (float *)scratch.p, state + i * split);
        else k->attn_split(a, dtype, i, (float *)scratch.p, state + i * split);
    }
    for (int i = 0; i < a->n_q; i++) {
        float *to = out + i * a->head_dim_v;
        k->attn_combine(state + i * row, split, n_splits, a->head_dim_v, to);
        if (weft_kv_is_rotated(of_v)) k->kv_rotate(to, a->head_dim_v, to);
    }
    guarded_free(c, &scratch, "the scratch memory");
}

/* Error of one query's output, relative to its largest element, or to `floor` where that is larger. */
static double row_difference(const float *a, const float *b, int n, double floor)
{
    double most = floor, worst = 0;
    for (int i = 0; i < n; i++) {
        if (isfinite(b[i]) != isfinite(a[i])) return INFINITY;
        if (!isfinite(b[i])) continue;
        most = fmax(most, fabs(b[i]));
        worst = fmax(worst, fabs((double)a[i] - b[i]));
    }
    return worst == 0 ? 0 : worst / fmax(most, 1e-30);
}

/* How large the average of n values is in the root mean square: a single element may cancel to less. */
static double average_size(const struct cache *s, int n)
{
    return sqrt(s->v_square / ((double)s->n_tokens * s->hv) / (n > 1 ? n : 1));
}

static double score_size(const struct cache *s, const float *q)
{
    double q_square = 0;
    for (int i = 0; i < s->hk; i++) q_square += isfinite(q[i]) ? (double)q[i] * q[i] : 0;
    return check_score_size(q_square, s->k_square, s->hk);
}

struct queries {
    int n;
    int32_t begin[MAX_Q], end[MAX_Q];
    float softcap, gain; /* gain: of q, for small or large scores */
    pattern p;
};

static void attn_case(check *c, struct cache *s, const struct queries *r, const char *name)
{
    const int64_t stride = s->hk + 3, row = 2 + s->hv;
    const int n_splits = (s->n_tokens + SPLIT - 1) / SPLIT;
    const size_t n_state = (size_t)(n_splits * r->n * row), n_out = (size_t)(r->n * s->hv);
    guarded q = guarded_new((size_t)(r->n * stride) * 4, 4), alone = guarded_new((size_t)n_state * 4, 0);
    guarded state = guarded_new(n_state * 4, 4), out = guarded_new(n_out * 4, 4);
    guarded ref_state = guarded_new(n_state * 4, 0), ref_out = guarded_new(n_out * 4, 0);
    check_many_values(c, r->p, (float *)q.p, r->n * stride);
    for (int64_t i = 0; i < r->n * stride; i++) ((float *)q.p)[i] *= r->gain;
    weft__attn a = view(s, 0, (float *)q.p, stride, r->n, r->begin, r->end, r->softcap);
    weft__attn b = view(s, 1, (float *)q.p, stride, r->n, r->begin, r->end, r->softcap);
    attend(c, c->k, &a, s->dtype, n_splits, (float *)state.p, (float *)out.p);
    if (c->entry->tier == WEFT__TIER_REF) memcpy(ref_out.p, out.p, n_out * 4);
    else attend(c, c->ref, &b, s->dtype, n_splits, (float *)ref_state.p, (float *)ref_out.p);
    for (int i = 0; i < r->n; i++) {
        const float *got = (float *)out.p + i * s->hv, *want = (float *)ref_out.p + i * s->hv;
        char what[160];
        snprintf(what, sizeof what, "%s (%s), %s, page %d, head %d/%d, query %d of %d sees %d..%d", name,
                 check_pattern_name(r->p), type_name(s->dtype), s->page_tokens, s->hk, s->hv, i, r->n, r->begin[i],
                 r->end[i]);
        /* Scores of thousands carry rounding errors that no order of operations avoids: bits and finiteness only. So do
         * outliers times outliers in keys that are not rotated and whose kernel adds them up another way. */
        const int huge = r->p == P_OUTLIERS && !weft_kv_is_rotated(format_of(s->dtype, 0)) && s->dtype != WEFT_F16 &&
                         s->dtype != WEFT_F32;
        if (r->gain < 10 && !huge)
            check_error(c,
                        row_difference(got, want, s->hv, average_size(s, r->end[i] - r->begin[i])) /
                            (r->p == P_OUTLIERS ? score_size(s, (float *)q.p + i * stride) : 1),
                        what);
        if (r->begin[i] < r->end[i] && r->p != P_NAN && r->p != P_INFINITE && isfinite(want[0]) && !isfinite(got[0])) {
            check_fail(c, "not finite: %s", what);
        }
        float single[512];
        weft__attn one = view(s, 0, (float *)q.p + i * stride, stride, 1, r->begin + i, r->end + i, r->softcap);
        attend(c, c->k, &one, s->dtype, n_splits, (float *)alone.p, single);
        if (isfinite(want[0]) && !check_same_bits(single, got, s->hv)) check_fail(c, "other bits alone: %s", what);
        for (int j = 0; j < n_splits; j++) {
            const float *x = (float *)alone.p + j * row, *y = (float *)state.p + (j * r->n + i) * row;
            if (isfinite(want[0]) && !check_same_bits(x, y, row))
                check_fail(c, "other state alone, split %d: %s", j, what);
        }
    }
    guarded_free(c, &q, "the queries");
    guarded_free(c, &alone, "the state");
    guarded_free(c, &state, "the state");
    guarded_free(c, &out, "the output");
    guarded_free(c, &ref_state, "ref's state");
    guarded_free(c, &ref_out, "ref's output");
}

/* Ranges as a step makes them: n rows of `heads` heads each, the last row at position `last`, a window or none. */
static struct queries causal(int n, int heads, int last, int window)
{
    struct queries r = {.n = n, .gain = 1, .p = P_NORMAL};
    for (int i = 0; i < n; i++) {
        int pos = last - (n - 1) / heads + i / heads;
        r.end[i] = pos + 1 > 0 ? pos + 1 : 0;
        r.begin[i] = window && pos - window + 1 > 0 ? pos - window + 1 : 0;
    }
    return r;
}

static struct queries anything(check *c, int n, int n_tokens)
{
    struct queries r = {.n = n, .gain = 1, .p = P_NORMAL};
    int begin = 0, end = 0;
    for (int i = 0; i < n; i++) {
        if (weft__rng_below(&c->rng, 2)) begin += (int)weft__rng_below(&c->rng, (uint64_t)(n_tokens - begin) / 4 + 1);
        if (weft__rng_below(&c->rng, 2)) end += (int)weft__rng_below(&c->rng, (uint64_t)(n_tokens - end) / 2 + 1);
        r.begin[i] = begin;
        r.end[i] = end;
    }
    return r;
}

static void drop_unseen(struct cache *s, int first_seen)
{
    for (int j = 0; j < s->n_pages && (j + 1) * s->page_tokens <= first_seen; j++) s->table[j] = -1;
}

static void sizes(check *c, uint32_t dtype)
{
    static const int heads[][2] = {{1, 1},   {2, 3},   {7, 9},   {8, 8},   {15, 17},   {16, 16},   {20, 31},  {32, 33},
                                   {48, 40}, {64, 64}, {80, 80}, {96, 96}, {128, 128}, {192, 128}, {256, 256}};
    static const int pages[] = {16, 32, 64, 128};
    for (size_t h = 0; h < sizeof heads / sizeof heads[0]; h += EVERY_SIZE) {
        int page = pages[h % 4], n_tokens = 1 + (int)weft__rng_below(&c->rng, 300);
        struct cache s = cache_new(c, dtype, heads[h][0], heads[h][1], page, n_tokens, P_NORMAL);
        for (int n = 1 + (int)h % EVERY_ROW; n <= 17; n += EVERY_ROW) {
            struct queries r = causal(n, 1 + n % 8, n_tokens - 1, n % 3 ? 0 : 40);
            attn_case(c, &s, &r, "causal");
        }
        for (int n = 1 + (int)h % EVERY_ROW; n <= 10; n += EVERY_ROW) {
            struct queries r = anything(c, n * 4, n_tokens);
            r.softcap = n % 2 ? 30 : 0;
            attn_case(c, &s, &r, "any ranges");
        }
        cache_free(c, &s);
    }
}

/* Long ones in pages of one size, another for each type (the nth of some), and in make test-all in all. */
static void lengths(check *c, uint32_t dtype, size_t nth)
{
    for (int n_tokens = 1; n_tokens <= 70; n_tokens += EVERY_SIZE) {
        struct cache s = cache_new(c, dtype, 16, 24, n_tokens % 2 ? 16 : 32, n_tokens, P_NORMAL);
        struct queries r = causal(1 + n_tokens % 11, 2, n_tokens - 1, n_tokens % 5 ? 0 : 3);
        attn_case(c, &s, &r, "short");
        cache_free(c, &s);
    }
    static const int long_pages[] = {16, 64, 2048};
    for (size_t i = 0; i < 3; i++) {
        if (!claims_sweeps() && i != nth % 3) continue;
        struct cache s = cache_new(c, dtype, 32, 32, long_pages[i], 2 * SPLIT + 37, P_NORMAL);
        struct queries r = causal(20, 2, 2 * SPLIT + 36, 0);
        attn_case(c, &s, &r, "three splits");
        r = causal(20, 1, SPLIT + 9, 0);
        attn_case(c, &s, &r, "across a split");
        r = causal(20, 1, SPLIT + 9, 100);
        attn_case(c, &s, &r, "window across a split");
        for (int j = 0; j < CLAIMS_SWEPT(2, 6); j += EVERY_SIZE) {
            r = anything(c, 20, s.n_tokens);
            attn_case(c, &s, &r, "any ranges in three splits");
        }
        drop_unseen(&s, 2 * SPLIT + 37 - 20 - 100);
        r = causal(20, 1, 2 * SPLIT + 36, 100);
        attn_case(c, &s, &r, "dropped pages");
        cache_free(c, &s);
    }
}

/* softmax(q . k) . v over positions [0, n) in double; rows of keys, then values, as they are stored. */
static void in_double(const float *q, const float *rows, int n, int head_dim, double *out)
{
    double most = -INFINITY, sum = 0, *score = weft__alloc_array((size_t)n, sizeof *score);
    for (int t = 0; t < n; t++) {
        const float *k = rows + (size_t)t * 2 * (size_t)head_dim;
        score[t] = 0;
        for (int d = 0; d < head_dim; d++) score[t] += (double)q[d] * k[d];
        score[t] /= sqrt(head_dim);
        if (score[t] > most) most = score[t];
    }
    memset(out, 0, (size_t)head_dim * sizeof *out);
    for (int t = 0; t < n; t++) {
        const float *v = rows + ((size_t)t * 2 + 1) * (size_t)head_dim;
        const double weight = exp(score[t] - most);
        sum += weight;
        for (int e = 0; e < head_dim; e++) out[e] += weight * v[e];
    }
    for (int e = 0; e < head_dim; e++) out[e] /= sum;
    weft__free(score);
}

/* The last position's row, beside double arithmetic over what the pages hold: rounding that adds up over many splits
 * is no tier's alone, so ref is held to it, too. */
static void double_case(check *c, uint32_t dtype, int head_dim, int n, float gain)
{
    enum { MOST = 128 };
    struct cache s = cache_new(c, dtype, head_dim, head_dim, 64, n, P_ZERO);
    const int n_splits = (n + SPLIT - 1) / SPLIT;
    const int32_t begin = 0, end = n;
    float *rows = weft__alloc_array((size_t)n * 2 * (size_t)head_dim, sizeof *rows), q[MOST], out[MOST];
    float *state = weft__alloc_array((size_t)(n_splits * (2 + head_dim)), sizeof *state);
    double want[MOST], worst = 0, most = 0;
    check_many_values(c, P_NORMAL, rows, (int64_t)n * 2 * head_dim);
    check_many_values(c, P_NORMAL, q, head_dim);
    for (int d = 0; d < head_dim; d++) q[d] *= gain;
    for (int64_t i = 0; i < (int64_t)n * 2 * head_dim && dtype == WEFT_F16; i++)
        rows[i] = weft__f16_to_f32(weft__f16_from_f32(rows[i]));
    for (int t = 0; t < n; t++) {
        const float *k = rows + (size_t)t * 2 * (size_t)head_dim;
        cache_put(c, &s, t, k, k + head_dim);
    }
    weft__attn a = view(&s, 0, q, head_dim, 1, &begin, &end, 0);
    attend(c, c->k, &a, dtype, n_splits, state, out);
    in_double(q, rows, n, head_dim, want);
    for (int e = 0; e < head_dim; e++) {
        const double apart = fabs(out[e] - want[e]);
        if (fabs(want[e]) > most) most = fabs(want[e]);
        if (!(apart <= worst)) worst = isfinite(apart) ? apart : INFINITY;
    }
    c->cases++;
    if (!(worst <= 1e-5 * most))
        check_fail(c, "%g of %g beside double arithmetic: %s, head %d, %d positions", worst, most, type_name(dtype),
                   head_dim, n);
    weft__free(state);
    weft__free(rows);
    cache_free(c, &s);
}

/* More splits than the others have. */
static void far_positions(check *c, uint32_t dtype)
{
    static const int sizes[][2] = {{64, 4 * SPLIT + 104}, {128, 32768}, {64, 32768}, {128, 20011}};
    for (int i = 0; i < CLAIMS_SWEPT(1, 4); i++) {
        const int head_dim = sizes[i][0], n = sizes[i][1];
        struct cache s = cache_new(c, dtype, head_dim, head_dim, i % 2 ? 64 : 32, n, P_NORMAL);
        struct queries r = causal(4, 2, n - 1, 0);
        attn_case(c, &s, &r, "far positions");
        r = causal(4, 1, n - 1, n / 2);
        attn_case(c, &s, &r, "a window over splits");
        cache_free(c, &s);
        double_case(c, dtype, head_dim, n, 1);
        double_case(c, dtype, head_dim, n, 4); /* where few positions count */
    }
}

/* Strange numbers, and that what one query must not see never reaches it. */
static void values(check *c, uint32_t dtype)
{
    for (int p = 0; p < P_COUNT; p++) {
        if (p == P_HUGE && (format_of(dtype, 0) == WEFT_F16 || format_of(dtype, 1) == WEFT_F16))
            continue; /* beyond f16 */
        struct cache s = cache_new(c, dtype, 64, 64, 32, 100, p == P_HUGE ? P_NORMAL : (pattern)p);
        struct queries r = causal(9, 1, 99, 0);
        r.p = p == P_NAN || p == P_INFINITE || p == P_HUGE ? P_NORMAL : (pattern)p;
        r.gain = p == P_HUGE ? 1e15f : 1;
        if (p < P_FINITE) attn_case(c, &s, &r, check_pattern_name((pattern)p));
        r.gain = 300;
        attn_case(c, &s, &r, "large scores");
        r.gain = 1;
        r.p = (pattern)p;
        if (p != P_HUGE) attn_case(c, &s, &r, "strange queries");
        cache_free(c, &s);
    }
    struct cache s = cache_new(c, dtype, 64, 64, 32, 100, P_NORMAL);
    float poison[64];
    for (int i = 0; i < 64; i++) poison[i] = i % 2 ? NAN : INFINITY;
    for (int t = 90; t < 100; t++) cache_put(c, &s, t, poison, poison);
    struct queries r = causal(20, 1, 99, 0);
    attn_case(c, &s, &r, "poisoned positions");
    cache_free(c, &s);
}

/* A weight that lies WEFT__SOFTMAX_FAR below the largest is nothing: the zeros of position 0 remain, however large the
 * other values are. */
static void far_weights(check *c, uint32_t dtype)
{
    enum { HEAD = 16, N = 40 };
    const float far[] = {-87.5f, -90, -95, -102, -300};
    struct cache s = cache_new(c, dtype, HEAD, HEAD, 16, N, P_NORMAL);
    float q[HEAD] = {4}, k[HEAD] = {0}, v[HEAD], state[2 + HEAD], out[HEAD]; /* 4 / sqrt(16): a score is k[0] */
    for (int t = 0; t < N; t++) {
        k[0] = t ? far[t % 5] : 0;
        for (int e = 0; e < HEAD; e++) v[e] = t ? 60000 : (float)(e % 3 - 1);
        cache_put(c, &s, t, k, v);
    }
    const int32_t begin = 0, end = N;
    weft__attn a = view(&s, 0, q, HEAD, 1, &begin, &end, 0);
    attend(c, c->k, &a, dtype, 1, state, out);
    for (int e = 1; e < HEAD; e += 3)
        if (out[e] != 0) check_fail(c, "far weights make %g of element %d", out[e], e);
    cache_free(c, &s);
}

void check_attn_split(check *c)
{
    const uint32_t types[] = {WEFT_F16, WEFT_F32};
    for (size_t i = 0; i < 2; i++) {
        sizes(c, types[i]);
        lengths(c, types[i], i);
        far_positions(c, types[i]);
        values(c, types[i]);
    }
    for (int i = 0; i < 2; i++) far_weights(c, types[i]);
}

void check_attn_coded(check *c)
{
    static const uint32_t types[] = {WEFT_KV_Q8, WEFT_KV_Q4, WEFT_KV_F8, WEFT_BF16,
                                     WEFT_KV_TYPE(WEFT_KV_Q8, WEFT_KV_Q4, 0, 0)};
    static const uint32_t mixed[] = {WEFT_KV_TYPE(WEFT_F16, WEFT_KV_Q4, 0, 0), WEFT_KV_TYPE(WEFT_KV_Q4, WEFT_F32, 0, 0),
                                     WEFT_KV_TYPE(WEFT_F32, WEFT_F16, 0, 0),
                                     WEFT_KV_TYPE(WEFT_KV_F8, WEFT_KV_Q8, 0, 0)};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        sizes(c, types[i]);
        lengths(c, types[i], i);
        values(c, types[i]);
    }
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++) values(c, mixed[i]);
    check_attn_decoded(c);
}

void check_attn_combine(check *c)
{
    for (int hv = 1; hv <= 70; hv += EVERY_SIZE) {
        for (int n = 1; n <= 6; n++) {
            int64_t stride = hv + 2 + hv % 3;
            guarded state = guarded_new((size_t)(n * stride) * 4, 4), got = guarded_new((size_t)hv * 4, 4);
            float *x = (float *)state.p, want[128];
            check_many_values(c, P_NORMAL, x, n * stride);
            for (int i = 0; i < n; i++) {
                int blind = weft__rng_below(&c->rng, 3) == 0;
                x[i * stride] = blind ? -INFINITY : x[i * stride] * 20;
                x[i * stride + 1] = blind ? 0 : 1 + fabsf(x[i * stride + 1]);
                if (blind) memset(x + i * stride + 2, 0, (size_t)hv * 4);
            }
            c->ref->attn_combine(x, stride, n, hv, want);
            c->k->attn_combine(x, stride, n, hv, (float *)got.p);
            char what[60];
            snprintf(what, sizeof what, "%d splits, head %d", n, hv);
            check_error(c, row_difference((float *)got.p, want, hv, 0.1), what);
            guarded_free(c, &state, "the states");
            guarded_free(c, &got, "the output");
        }
    }
}

/* ---- storing ---- */

typedef void put_fn(const float *x, int head_dim, int slot, int page_tokens, uint32_t dtype, void *part);

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The elements of a part, as sorted bits (all NaN alike). */
static void sorted_bits(const void *part, uint32_t dtype, int n, uint32_t *bits)
{
    for (int i = 0; i < n; i++) {
        uint32_t infinity = dtype == WEFT_F16 ? 0x7C00 : 0x7F800000, sign = dtype == WEFT_F16 ? 0x8000 : 0x80000000u;
        bits[i] = dtype == WEFT_F16 ? ((const uint16_t *)part)[i] : ((const uint32_t *)part)[i];
        if ((bits[i] & ~sign) > infinity) bits[i] = 0xFFFFFFFF;
    }
    qsort(bits, (size_t)n, sizeof *bits, compare_u32);
}

/* Whatever the order of a part, its elements are those that ref stores: nothing lost, nothing twice, rounded alike. */
static void put_case(check *c, put_fn *put, put_fn *ref, int head_dim, int page_tokens, uint32_t dtype, pattern p)
{
    int n = head_dim * page_tokens, size = elem_bytes(dtype);
    guarded got = guarded_new((size_t)(n * size), (size_t)size), want = guarded_new((size_t)(n * size), 0);
    uint32_t *a = weft__alloc_array((size_t)n, 4), *b = weft__alloc_array((size_t)n, 4);
    float row[512];
    for (int round = 0; round < 2; round++) { /* the second overwrites */
        for (int i = 0; i < page_tokens; i++) {
            int slot = (i * 5 + 3) % page_tokens; /* page_tokens is a power of two: every slot once */
            check_many_values(c, p, row, head_dim);
            put(row, head_dim, slot, page_tokens, dtype, got.p);
            ref(row, head_dim, slot, page_tokens, dtype, want.p);
        }
    }
    sorted_bits(got.p, dtype, n, a);
    sorted_bits(want.p, dtype, n, b);
    char what[100];
    snprintf(what, sizeof what, "%s, page %d, head %d, %s", dtype == WEFT_F16 ? "f16" : "f32", page_tokens, head_dim,
             check_pattern_name(p));
    check_error(c, memcmp(a, b, (size_t)n * 4) ? 1 : 0, what);
    weft__free(a);
    weft__free(b);
    guarded_free(c, &got, "the page");
    guarded_free(c, &want, "ref's page");
}

void check_kv_put(check *c)
{
    int keys = !strcmp(c->entry->op, "kv_put_k");
    put_fn *put = keys ? c->k->kv_put_k : c->k->kv_put_v, *ref = keys ? c->ref->kv_put_k : c->ref->kv_put_v;
    for (int head_dim = 1; head_dim <= 130; head_dim += head_dim < 35 ? EVERY_SIZE : 19) {
        for (int page = 16; page <= 64; page *= 2) {
            for (int p = 0; p < P_COUNT; p++) {
                if (!claims_sweeps() && page != 16 << (head_dim + p) % 3) continue;
                put_case(c, put, ref, head_dim, page, WEFT_F16, (pattern)p);
                put_case(c, put, ref, head_dim, page, WEFT_F32, (pattern)p);
            }
        }
    }
}
