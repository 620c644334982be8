// SPDX-License-Identifier: Apache-2.0
/* bench_rows.c: kernels that work on rows alone, by one thread, in the first level of cache. */
#include "kernels/bench_kernels.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "weft/graph.h"

enum { N_ROW = 4096, N_VOCABULARY = 32000 };

struct row_job {
    const weft__kernels *k;
    float *x, *y, *out, *cs;
    int64_t sink;
};

static void row_norm(struct row_job *j)
{
    j->k->norm_rms(j->x, j->y, 1e-5f, N_ROW, j->out);
}
static void row_add(struct row_job *j)
{
    j->k->add(j->x, j->y, N_ROW, j->out);
}
static void row_scale(struct row_job *j)
{
    j->k->scale(j->x, 0.5f, N_ROW, j->out);
}
static void row_silu(struct row_job *j)
{
    j->k->glu(WEFT_ACT_SILU, j->x, j->y, N_ROW, j->out);
}
static void row_gelu_tanh(struct row_job *j)
{
    j->k->glu(WEFT_ACT_GELU_TANH, j->x, j->y, N_ROW, j->out);
}
static void row_gelu_erf(struct row_job *j)
{
    j->k->glu(WEFT_ACT_GELU_ERF, j->x, j->y, N_ROW, j->out);
}
static void row_softcap(struct row_job *j)
{
    j->k->softcap(j->x, 30, N_ROW, j->out);
}
static void row_rope(struct row_job *j)
{
    j->k->rope(j->x, N_ROW / 128, 128, 128, WEFT_ROPE_ADJACENT, j->cs);
}
static void row_rope_halves(struct row_job *j)
{
    j->k->rope(j->x, N_ROW / 128, 128, 128, WEFT_ROPE_HALVES, j->cs);
}
static void row_argmax(struct row_job *j)
{
    j->sink += j->k->argmax(j->x, N_VOCABULARY);
}
static void row_put_k(struct row_job *j)
{
    for (int h = 0; h < N_ROW / 128; h++) j->k->kv_put_k(j->x + 128 * h, 128, h, 64, WEFT_F16, j->out);
}
static void row_put_v(struct row_job *j)
{
    for (int h = 0; h < N_ROW / 128; h++) j->k->kv_put_v(j->x + 128 * h, 128, h, 64, WEFT_F16, j->out);
}
static void row_rotate(struct row_job *j)
{
    for (int h = 0; h < 32; h++) j->k->kv_rotate(j->x + 128 * h, 128, j->out + 128 * h);
}

static void row_code_k(struct row_job *j)
{
    for (int h = 0; h < 32; h++) j->k->kv_code_k(j->x + 128 * h, 128, h % 16, 16, WEFT_KV_Q8, j->out);
}

static void row_code_v(struct row_job *j)
{
    for (int h = 0; h < 32; h++) j->k->kv_code_v(j->x + 128 * h, 128, h % 16, 16, WEFT_KV_Q8, j->out);
}

static void row_combine(struct row_job *j)
{
    j->k->attn_combine(j->x, 130, 4, 128, j->out);
}
static void row_decode(struct row_job *j)
{
    j->k->decode_row(WEFT_F16, j->x, N_ROW, j->out);
}
static void row_decode_q4_0(struct row_job *j)
{
    j->k->decode_row(WEFT_Q4_0, j->x, N_ROW, j->out);
}
static void row_decode_q8_0(struct row_job *j)
{
    j->k->decode_row(WEFT_Q8_0, j->x, N_ROW, j->out);
}
static void row_decode_q4_k(struct row_job *j)
{
    j->k->decode_row(WEFT_Q4_K, j->x, N_ROW, j->out);
}
static void row_norm_back(struct row_job *j)
{
    j->k->norm_back(j->x, j->y, j->x + N_ROW, 0.7, N_ROW, j->out);
}
static void row_silu_back(struct row_job *j)
{
    j->k->glu_back(WEFT_ACT_SILU, j->x, j->x + N_ROW, j->x + 2 * N_ROW, N_ROW, j->out, j->y);
}
static void row_exp_sum(struct row_job *j)
{
    j->sink += j->k->exp_sum(j->x, 1, N_ROW, j->out) > 0;
}

static const struct {
    const char *op, *what;
    void (*run)(struct row_job *j);
    int bytes; /* read and written */
} row_cases[] = {
    {"norm_rms", "4096", row_norm, 3 * 4 * N_ROW},
    {"add", "4096", row_add, 3 * 4 * N_ROW},
    {"scale", "4096", row_scale, 2 * 4 * N_ROW},
    {"glu", "4096 silu", row_silu, 3 * 4 * N_ROW},
    {"glu", "4096 gelu tanh", row_gelu_tanh, 3 * 4 * N_ROW},
    {"glu", "4096 gelu erf", row_gelu_erf, 3 * 4 * N_ROW},
    {"softcap", "4096", row_softcap, 2 * 4 * N_ROW},
    {"rope", "32 x 128 adjacent", row_rope, 2 * 4 * N_ROW},
    {"rope", "32 x 128 halves", row_rope_halves, 2 * 4 * N_ROW},
    {"argmax", "32000", row_argmax, 4 * N_VOCABULARY},
    {"kv_put_k", "32 x 128 f16", row_put_k, 6 * N_ROW},
    {"kv_put_v", "32 x 128 f16", row_put_v, 6 * N_ROW},
    {"kv_rotate", "32 x 128", row_rotate, 8 * N_ROW},
    {"kv_code_k", "32 x 128 q8", row_code_k, 5 * N_ROW},
    {"kv_code_v", "32 x 128 q8", row_code_v, 5 * N_ROW},
    {"attn_combine", "4 splits of 128", row_combine, 5 * 4 * 128},
    {"decode_row", "4096 F16", row_decode, 6 * N_ROW},
    {"decode_row", "4096 Q4_0", row_decode_q4_0, 4 * N_ROW + N_ROW / 32 * 18},
    {"decode_row", "4096 Q8_0", row_decode_q8_0, 4 * N_ROW + N_ROW / 32 * 34},
    {"decode_row", "4096 Q4_K", row_decode_q4_k, 4 * N_ROW + N_ROW / 256 * 144},
    {"norm_back", "4096", row_norm_back, 4 * 4 * N_ROW},
    {"glu_back", "4096 silu", row_silu_back, 5 * 4 * N_ROW},
    {"exp_sum", "4096", row_exp_sum, 2 * 4 * N_ROW},
};

/* Of one row, of as many as fit into some ticks of the counters that say what others took. */
static double row_seconds(void (*run)(struct row_job *j), struct row_job *j)
{
    enum { RUN_NS = 10000000 };
    int n = 0;
    uint64_t begin = weft__clock_ns(), ns;
    do {
        run(j);
        n++;
        ns = weft__clock_ns() - begin;
    } while (ns < RUN_NS);
    return (double)ns * 1e-9 / n;
}

void bench_rows(bench *b)
{
    struct row_job j = {weft__kernels_get(1u << b->entry->tier)};
    float *block = bench_need(weft__alloc_aligned(64, 4 * (size_t)(N_VOCABULARY + 3 * N_ROW)));
    j.x = block, j.y = block + N_VOCABULARY, j.out = j.y + N_ROW, j.cs = j.out + N_ROW;
    for (size_t c = 0; c < sizeof row_cases / sizeof row_cases[0]; c++) {
        if (strcmp(row_cases[c].op, b->entry->op)) continue;
        for (int i = 0; i < N_VOCABULARY + 3 * N_ROW; i++) block[i] = sinf((float)i);
        for (int i = 0; i < N_ROW; i++) j.cs[i] = i % 2 ? 0.0f : 1.0f; /* a rotation by nothing: values stay in range */
        double runs[RUNS];
        int again = 0;
        do {
            bench_row_begins(b, again++);
            for (int i = 0; i < RUNS; i++) runs[i] = row_seconds(row_cases[c].run, &j);
        } while (bench_row_disturbed(b, 1));
        struct result r = {bench_median(runs, RUNS), row_cases[c].bytes};
        bench_print_line(b, row_cases[c].what, &r);
    }
    weft__free(block);
}
