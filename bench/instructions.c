// SPDX-License-Identifier: Apache-2.0
/* instructions.c: fixed work for bench/check, which counts its instructions under valgrind's callgrind.
 *
 * Every case runs once between two requests to callgrind, which writes the count of that stretch to a file of its own,
 * labelled with the case. Sizes and inputs never change. Without valgrind the program only says how many cases there
 * are. One thread. Counted are the kernels of the tiers that valgrind knows (ref, avx2), and whole steps of a small
 * model on the highest of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/callgrind.h>

#include "base/alloc.h"
#include "base/random.h"
#include "kernels/kernels.h"
#include "quant/quant.h"
#include "weft/graph.h"
#include "weft/weft.h"

enum { K = 512, N_OUT = 32, N_ROW = 1024, HEAD = 64, PAGE = 64, DEPTH = 256, N_Q = 4, STEP_PROMPT = 32 };

static int n_cases;

static void *need(void *p)
{
    if (p) return p;
    fprintf(stderr, "bench_instructions: out of memory\n");
    exit(1);
}

static void *zeros(size_t n_bytes)
{
    return memset(need(weft__alloc_aligned(64, n_bytes)), 0, n_bytes);
}

/* Counts what `statement` does. */
#define COUNT(name, statement)                                                                                         \
    do {                                                                                                               \
        CALLGRIND_START_INSTRUMENTATION;                                                                               \
        CALLGRIND_ZERO_STATS;                                                                                          \
        statement;                                                                                                     \
        CALLGRIND_DUMP_STATS_AT(name);                                                                                 \
        CALLGRIND_STOP_INSTRUMENTATION;                                                                                \
        n_cases++;                                                                                                     \
    } while (0)

/* ---- matrix products ---- */

static void prepare(const weft__act *act, const float *x, int64_t m, void *acts)
{
    act->put(x, 0, &(weft__act_part){.k = K, .m = m, .to = K, .n = m}, acts); /* the same row m times */
}

static void count_matmul(const weft__matmul *mm)
{
    static const int64_t row_counts[] = {1, 8};
    char name[96];
    weft__rng rng;
    weft_dtype_info info = weft_dtype_describe(mm->dtype);
    size_t row_bytes = (size_t)K / info.block_elems * info.block_bytes,
           stride = mm->panel_bytes ? mm->panel_bytes(K) : row_bytes;
    uint8_t *rows = zeros(row_bytes * N_OUT), *panels = zeros(stride * N_OUT);
    float *x = zeros(K * sizeof *x), *out = zeros(8 * N_OUT * sizeof *out);
    weft__rng_seed(&rng, 1);
    for (int r = 0; r < N_OUT; r++) weft__quant_random_row(mm->dtype, &rng, rows + (size_t)r * row_bytes, K);
    for (int i = 0; i < K; i++) x[i] = (float)weft__rng_normal(&rng);
    if (!mm->pack) memcpy(panels, rows, row_bytes * N_OUT);
    for (int n = 0; mm->pack && n < N_OUT; n += mm->panel_rows) {
        uint8_t *panel = panels + (size_t)(n / mm->panel_rows) * stride;
        const uint8_t *first = rows + (size_t)n * row_bytes;
        snprintf(name, sizeof name, "%s pack", mm->name);
        if (n == 0) COUNT(name, mm->pack(first, row_bytes, mm->panel_rows, K, panel));
        else mm->pack(first, row_bytes, mm->panel_rows, K, panel);
    }
    weft__product p = {.panels = panels, .stride = stride, .n_out = N_OUT, .k = K, .out = out, .ldo = N_OUT};
    for (size_t i = 0; i < sizeof row_counts / sizeof *row_counts; i++) {
        int64_t m = row_counts[i];
        void *acts = zeros(mm->act->bytes(K, m));
        snprintf(name, sizeof name, "%s input %s, %d rows", mm->name, mm->act->name, (int)m);
        COUNT(name, prepare(mm->act, x, m, acts));
        snprintf(name, sizeof name, "%s %d rows", mm->name, (int)m);
        p.act = acts;
        p.m = m;
        COUNT(name, mm->run(&p, NULL));
        weft__free(acts);
    }
    weft__free(out);
    weft__free(x);
    weft__free(panels);
    weft__free(rows);
}

/* ---- rows and attention ---- */

typedef struct row_data {
    float *x, *y, *out, *scratch;
    uint8_t *pages;
} row_data;

/* Keys, then values, of DEPTH positions of one head. */
static void fill_pages(const weft__kernels *k, const row_data *d, size_t page_bytes)
{
    for (int t = 0; t < DEPTH; t++) {
        uint8_t *page = d->pages + (size_t)(t / PAGE) * page_bytes;
        k->kv_put_k(d->x + t, HEAD, t % PAGE, PAGE, WEFT_F16, page);
        k->kv_put_v(d->y + t, HEAD, t % PAGE, PAGE, WEFT_F16, page + page_bytes / 2);
    }
}

static void count_attention(const weft__kernels *k, const char *tier, const row_data *d)
{
    char name[96];
    size_t page_bytes = 2 * PAGE * HEAD * 2;
    int32_t begin[N_Q] = {0}, end[N_Q], pages[DEPTH / PAGE];
    for (int i = 0; i < N_Q; i++) end[i] = DEPTH;
    for (int i = 0; i < DEPTH / PAGE; i++) pages[i] = i;
    weft__attn a = {.q = d->x,
                    .head_stride = HEAD,
                    .n_q = N_Q,
                    .row_heads = N_Q,
                    .head_dim_k = HEAD,
                    .head_dim_v = HEAD,
                    .begin = begin,
                    .end = end,
                    .data = d->pages,
                    .pages = pages,
                    .page_bytes = page_bytes,
                    .v_offset = page_bytes / 2,
                    .page_tokens = PAGE,
                    .scale = 0.125f};
    snprintf(name, sizeof name, "%s kv_put_k and kv_put_v", tier);
    COUNT(name, fill_pages(k, d, page_bytes));
    snprintf(name, sizeof name, "%s attn_split f16", tier);
    COUNT(name, k->attn_split(&a, WEFT_F16, 0, d->scratch, d->out));
    snprintf(name, sizeof name, "%s attn_combine", tier);
    COUNT(name, k->attn_combine(d->out, 2 + HEAD, 1, HEAD, d->y));
}

static void count_rows(weft__tier tier)
{
    const weft__kernels *k = weft__kernels_get(1u << tier);
    const char *t = weft__tier_name(tier);
    char name[96];
    int64_t best = 0;
    row_data d = {zeros(4 * N_ROW), zeros(4 * N_ROW), zeros(4 * N_ROW),
                  zeros(4 * weft__attn_scratch(N_Q, PAGE, HEAD, HEAD)), zeros(DEPTH / PAGE * 2 * PAGE * HEAD * 2)};
    for (int i = 0; i < N_ROW; i++) d.x[i] = (float)(i % 17 - 8) / 8, d.y[i] = (float)(i % 13 - 6) / 6;
#define ROW(what, statement)                                                                                           \
    do {                                                                                                               \
        snprintf(name, sizeof name, "%s " what, t);                                                                    \
        COUNT(name, statement);                                                                                        \
    } while (0)
    ROW("norm_rms", k->norm_rms(d.x, d.y, 1e-5f, N_ROW, d.out));
    ROW("add", k->add(d.x, d.y, N_ROW, d.out));
    ROW("scale", k->scale(d.x, 0.5f, N_ROW, d.out));
    ROW("glu silu", k->glu(WEFT_ACT_SILU, d.x, d.y, N_ROW, d.out));
    ROW("glu gelu tanh", k->glu(WEFT_ACT_GELU_TANH, d.x, d.y, N_ROW, d.out));
    ROW("softcap", k->softcap(d.x, 30, N_ROW, d.out));
    ROW("rope adjacent", k->rope(d.out, N_ROW / HEAD, HEAD, HEAD, WEFT_ROPE_ADJACENT, d.x));
    ROW("rope halves", k->rope(d.out, N_ROW / HEAD, HEAD, HEAD, WEFT_ROPE_HALVES, d.x));
    ROW("argmax", best = k->argmax(d.x, N_ROW));
    ROW("decode_row f16", k->decode_row(WEFT_F16, d.pages, N_ROW, d.out));
#undef ROW
    if (best < 0) exit(1);
    count_attention(k, t, &d);
    weft__free(d.pages);
    weft__free(d.scratch);
    weft__free(d.out);
    weft__free(d.y);
    weft__free(d.x);
}

/* ---- a whole step ---- */

static weft_status count_steps(weft_error *err)
{
    weft_model *model;
    weft_session *session = NULL;
    weft_model_params params;
    weft_session_params session_params;
    int32_t tokens[STEP_PROMPT];
    float *logits = zeros(512 * sizeof *logits);
    for (int i = 0; i < STEP_PROMPT; i++) tokens[i] = 3 + i;
    weft_model_params_default(&params);
    weft_session_params_default(&session_params);
    params.n_threads = 1;
    session_params.n_ctx = 2 * STEP_PROMPT;
    weft_status st = weft_model_synthetic("tiny", WEFT_Q4_0, &params, &model, err);
    if (!st) st = weft_session_new(model, &session_params, &session, err);
    if (!st)
        COUNT("step of 32 rows, shape tiny, Q4_0",
              st = weft_session_eval(session, tokens, STEP_PROMPT, 0, logits, err));
    if (!st) COUNT("step of 1 row, shape tiny, Q4_0", st = weft_session_eval(session, tokens, 1, 0, logits, err));
    weft_session_free(&session);
    weft_model_close(&model);
    weft__free(logits);
    return st;
}

int main(void)
{
    static const weft__tier tiers[] = {WEFT__TIER_REF, WEFT__TIER_AVX2};
    uint32_t here = weft__tier_mask();
    int n;
    const weft__kernel_entry *entries = weft__kernel_list(&n);
    if (!(here >> WEFT__TIER_AVX2 & 1)) {
        fprintf(stderr, "bench_instructions: this processor has no AVX2\n");
        return 77;
    }
    for (size_t t = 0; t < sizeof tiers / sizeof *tiers; t++) {
        for (int i = 0; i < n; i++)
            if (entries[i].matmul && entries[i].tier == tiers[t]) count_matmul(entries[i].matmul);
        count_rows(tiers[t]);
    }
    weft_error err = {0};
    if (count_steps(&err)) {
        fprintf(stderr, "bench_instructions: %s\n", err.message);
        return 1;
    }
    printf("compiler: %s\ncases: %d\n", __VERSION__, n_cases);
    return 0;
}
