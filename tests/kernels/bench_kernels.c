// SPDX-License-Identifier: Apache-2.0
/* bench_kernels.c: how fast every kernel of kernels.def is, against the limits of this machine (make bench-kernels).
 *
 * bench_kernels [-t THREADS] [TEXT]: only functions whose name contains TEXT. Each number is the median of several
 * runs. The share of a limit is taken run by run, against a pure read of the same bytes and a spin of the dot-product
 * unit just before: what a machine gives wanders with its neighbours. Preparing activations and packing weights are not
 * part of the time; the threads' start and end are. Beside each row stands what others took of its time; above 3 % it
 * is measured again while that helps, and else marked: no figure to judge by. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/random.h"
#include "kernels/bench_kernels.h"
#include "quant/quant.h"
#include "weft/graph.h"

enum { HUGE_PAGE = 2 << 20 };

void *bench_need(void *p)
{
    if (p) return p;
    fprintf(stderr, "bench_kernels: out of memory\n");
    exit(1);
}

static void *big_alloc(size_t n_bytes)
{
    n_bytes = (n_bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *p = bench_need(weft__alloc_aligned(HUGE_PAGE, n_bytes));
    madvise(p, n_bytes, MADV_HUGEPAGE);
    memset(p, 0, n_bytes);
    return p;
}

static int compare_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double bench_median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, compare_double);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static double seconds(bench *b, weft__pool_fn fn, void *arg)
{
    uint64_t begin = weft__clock_ns();
    weft__pool_run(b->pool, fn, arg);
    return (double)(weft__clock_ns() - begin) * 1e-9;
}

/* ---- limits ---- */

struct spin_job {
    double (*fn)(int ms);
    int ms;
    double result[1024];
};

static void spin_run(void *arg, int thread, int n_threads)
{
    struct spin_job *job = arg;
    (void)n_threads;
    job->result[thread] = job->fn(job->ms);
}

/* GOPS of all threads together; 0 where there is no such unit. */
static double spin(bench *b, double (*fn)(int ms), int ms)
{
    if (!fn) return 0;
    struct spin_job job = {fn, ms};
    weft__pool_run(b->pool, spin_run, &job);
    double sum = 0;
    for (int t = 0; t < b->n_threads; t++) sum += job.result[t];
    return sum;
}

struct read_job {
    bench *b;
    const uint8_t *p;
    size_t n_bytes;
    volatile uint64_t sink[1024];
};

static void read_run(void *arg, int thread, int n_threads)
{
    struct read_job *job = arg;
    size_t share = job->n_bytes / (size_t)n_threads / 64 * 64;
    job->sink[thread] = job->b->peak.read(job->p + share * (size_t)thread, share);
}

static double read_seconds(bench *b, const void *p, size_t n_bytes)
{
    struct read_job job = {b, p, n_bytes};
    return seconds(b, read_run, &job);
}

/* ---- what others take ---- */

void bench_row_begins(bench *b, int again)
{
    enum { AGAIN = 2 };
    if (!again) b->taken.again = (weft__taken_again){.left = AGAIN};
    weft__taken_now(&b->taken.begun);
}

int bench_row_disturbed(bench *b, int n_threads)
{
    weft__taken_mark now;
    weft__taken_now(&now);
    b->taken.row = weft__taken_between(&b->taken.begun, &now, n_threads);
    return weft__taken_again_wanted(&b->taken.again, &b->taken.row);
}

/* ---- the table ---- */

static void print_head(void)
{
    printf("%-12s %-7s %-6s %-10s %-22s %9s %7s %6s %8s %6s %s\n", "op", "format", "tile", "tier", "case", "time",
           "GB/s", "read", "GOPS", "peak", "taken");
}

void bench_print_line(bench *b, const char *what, const struct result *r)
{
    const weft__kernel_entry *e = b->entry;
    const double s = r->seconds;
    const int marked = weft__taken_above(&b->taken.row);
    char taken[WEFT__TAKEN_ROOM];
    b->taken.n_rows++, b->taken.n_marked += marked;
    const char *unit = s < 1e-6 ? "ns" : s < 1e-3 ? "us" : "ms";
    double scale = s < 1e-6 ? 1e9 : s < 1e-3 ? 1e6 : 1e3;
    printf("%-12s %-7s %-6s %-10s %-22s %6.1f %s", e->op, e->format, e->tile, weft__tier_name(e->tier), what, s * scale,
           unit);
    printf(r->bytes > 0 ? " %7.1f" : "        ", r->bytes / s * 1e-9);
    printf(r->read_share > 0 ? " %5.0f%%" : "       ", 100 * r->read_share);
    printf(r->ops > 0 ? " %8.1f" : "         ", r->ops / s * 1e-9);
    printf(r->peak_share > 0 ? " %5.0f%%" : "       ", 100 * r->peak_share);
    printf(" %s\n", weft__taken_text(&b->taken.row, marked, taken));
    fflush(stdout);
}

/* Runs a job that does `ops` operations and reads n_bytes at p (0: nothing to compare a read with) on the unit that
 * `peak` spins (NULL: none). */
static struct result timed(bench *b, weft__pool_fn fn, void *arg, double ops, double (*peak)(int ms), const void *p,
                           size_t n_bytes)
{
    double runs[RUNS], reads[RUNS], peaks[RUNS];
    int again = 0;
    seconds(b, fn, arg);
    do {
        bench_row_begins(b, again++);
        for (int i = 0; i < RUNS; i++) {
            double limit = spin(b, peak, 3), read = n_bytes ? read_seconds(b, p, n_bytes) : 0;
            runs[i] = seconds(b, fn, arg);
            reads[i] = read / runs[i];
            peaks[i] = limit > 0 ? ops / runs[i] * 1e-9 / limit : 0;
        }
    } while (bench_row_disturbed(b, b->n_threads));
    return (struct result){bench_median(runs, RUNS), (double)n_bytes, ops, bench_median(reads, RUNS),
                           bench_median(peaks, RUNS)};
}

/* ---- matrix products ---- */

struct matmul_job {
    const weft__matmul *mm;
    const uint8_t *panels;
    size_t stride;
    int64_t n, k, m;
    const void *act;
    float *out;
};

static void matmul_run(void *arg, int thread, int n_threads)
{
    const struct matmul_job *j = arg;
    int64_t n_panels = j->n / j->mm->panel_rows, from = n_panels * thread / n_threads,
            to = n_panels * (thread + 1) / n_threads;
    if (from == to) return;
    const weft__product p = {.panels = j->panels + (size_t)from * j->stride,
                             .stride = j->stride,
                             .n_out = (to - from) * j->mm->panel_rows,
                             .k = j->k,
                             .act = j->act,
                             .m = j->m,
                             .out = j->out + from * j->mm->panel_rows,
                             .ldo = j->n};
    j->mm->run(&p, NULL);
}

/* Packs the same few random rows again and again: their values do not matter, that they are numbers does. */
static uint8_t *matmul_weights(const struct matmul_job *j)
{
    const int rows = j->mm->panel_rows;
    const weft_dtype_info info = weft_dtype_describe(j->mm->dtype);
    const size_t row_bytes = (size_t)j->k / info.block_elems * info.block_bytes;
    uint8_t *source = bench_need(weft__alloc((size_t)rows * row_bytes)),
            *panels = big_alloc((size_t)(j->n / rows) * j->stride);
    weft__rng rng;
    weft__rng_seed(&rng, 1);
    for (int r = 0; r < rows; r++) weft__quant_random_row(j->mm->dtype, &rng, source + (size_t)r * row_bytes, j->k);
    for (int64_t i = 0; i < j->n / rows; i++) {
        if (j->mm->pack) {
            j->mm->pack(source, row_bytes, rows, j->k, panels + (size_t)i * j->stride);
        } else {
            memcpy(panels + (size_t)i * j->stride, source, row_bytes);
        }
    }
    weft__free(source);
    return panels;
}

static void *matmul_activations(const struct matmul_job *j)
{
    void *act = big_alloc(j->mm->act->bytes(j->k, j->m));
    float *x = bench_need(weft__alloc_array((size_t)j->k, sizeof *x));
    weft__rng rng;
    weft__rng_seed(&rng, 2);
    for (int64_t r = 0; r < j->m; r++) {
        for (int64_t i = 0; i < j->k; i++) x[i] = (float)weft__rng_normal(&rng);
        weft__act_put_row(j->mm->act, x, j->k, r, j->m, act);
    }
    weft__free(x);
    return act;
}

static double (*matmul_peak(const bench *b, const weft__matmul *mm))(int ms)
{
    if (!strncmp(mm->act->name, "f32", 3)) return b->peak.f32_fma;
    return strstr(mm->act->name, "bf16") ? b->peak.bf16_dot : b->peak.int8_dot;
}

static void bench_matmul(bench *b)
{
    static const int64_t row_counts[] = {1, 2, 4, 8, 16, 512};
    const weft__matmul *mm = b->entry->matmul;
    const weft_dtype_info info = weft_dtype_describe(mm->dtype);
    struct matmul_job j = {mm, .k = 2048};
    j.stride = mm->panel_bytes ? mm->panel_bytes(j.k) : (size_t)j.k / info.block_elems * info.block_bytes;
    const size_t per_row = j.stride / (size_t)mm->panel_rows;
    int64_t most = (int64_t)((size_t)(mm->tier == WEFT__TIER_REF ? 16 : 96) << 20) / (int64_t)per_row / 64 * 64;
    j.n = most;
    uint8_t *panels = matmul_weights(&j);
    j.panels = panels;
    for (size_t i = 0; i < sizeof row_counts / sizeof row_counts[0]; i++) {
        j.m = row_counts[i];
        if (mm->tier == WEFT__TIER_REF && j.m > 4) break;
        j.n = j.m > 16 && most > 8192 ? 8192 : most;
        void *act = matmul_activations(&j);
        j.act = act;
        j.out = big_alloc((size_t)(j.n * j.m) * sizeof(float));
        const size_t bytes = (size_t)(j.n / mm->panel_rows) * j.stride;
        struct result r = timed(b, matmul_run, &j, 2.0 * (double)(j.n * j.k * j.m), matmul_peak(b, mm), panels, bytes);
        char what[40];
        snprintf(what, sizeof what, "M %lld", (long long)j.m);
        if (j.m > 16) r.bytes = r.read_share = 0;
        bench_print_line(b, what, &r);
        weft__free(act);
        weft__free(j.out);
    }
    weft__free(panels);
}

/* ---- adapters ---- */

struct expand_job {
    const weft__expand *e;
    const uint8_t *panels;
    int64_t n, rank;
    int m;
    const void *h[4];
    float *y; /* [threads][4][BLOCK] */
};

enum { BLOCK = 2048 };

/* Blocks of B one after the other, as a thread's shares of matrices are: into outputs that are in the cache. */
static void expand_run(void *arg, int thread, int n_threads)
{
    const struct expand_job *j = arg;
    int64_t n_blocks = j->n / BLOCK, from = n_blocks * thread / n_threads, to = n_blocks * (thread + 1) / n_threads;
    float *y[4];
    for (int i = 0; i < j->m; i++) y[i] = j->y + (thread * 4 + i) * BLOCK;
    for (int64_t n = from; n < to; n++)
        j->e->run(j->panels + (size_t)(n * BLOCK / WEFT__EXPAND_ROWS) * j->e->panel_bytes(j->rank), BLOCK, j->rank,
                  j->h, j->m, y, NULL);
}

static void bench_expand(bench *b)
{
    enum { RANK = 16, MOST = 4 };
    struct expand_job j = {.e = b->entry->expand, .rank = RANK};
    const size_t bytes = j.e->panel_bytes(RANK);
    float source[WEFT__EXPAND_ROWS * RANK], h[RANK];
    for (int i = 0; i < WEFT__EXPAND_ROWS * RANK; i++) source[i] = sinf((float)i);
    for (int i = 0; i < RANK; i++) h[i] = cosf((float)i);
    j.n = (int64_t)(((size_t)(j.e->tier == WEFT__TIER_REF ? 4 : 64) << 20) / bytes) * WEFT__EXPAND_ROWS / BLOCK * BLOCK;
    uint8_t *panels = big_alloc((size_t)(j.n / WEFT__EXPAND_ROWS) * bytes), *put = big_alloc(MOST * 1024);
    for (int64_t i = 0; i < j.n / WEFT__EXPAND_ROWS; i++)
        j.e->pack(source, RANK, 1, WEFT__EXPAND_ROWS, RANK, panels + (size_t)i * bytes);
    for (int i = 0; i < MOST; i++) j.e->h_put(h, RANK, put + i * 1024), j.h[i] = put + i * 1024;
    j.panels = panels;
    j.y = big_alloc((size_t)(b->n_threads * MOST * BLOCK) * sizeof(float));
    for (j.m = 1; j.m <= MOST; j.m *= 4) {
        char what[40];
        snprintf(what, sizeof what, "rank %d, M %d", RANK, j.m);
        struct result r = timed(b, expand_run, &j, 2.0 * (double)(j.n * RANK * j.m), NULL, panels,
                                (size_t)(j.n / WEFT__EXPAND_ROWS) * bytes);
        bench_print_line(b, what, &r);
    }
    weft__free(j.y);
    weft__free(put);
    weft__free(panels);
}

/* ---- attention ---- */

struct attn_job {
    const weft__kernels *k;
    uint32_t dtype;
    int n_q, head_dim, page_tokens, n_seqs, depth, causal;
    uint8_t *data; /* [n_seqs] of a sequence's keys, then values, page by page */
    size_t page_bytes, v_offset;
    const float *q;
    float *scratch[64], *state[64], *out[64];
};

/* Every thread takes its share of the sequences, one key/value head each. */
static void attn_run(void *arg, int thread, int n_threads)
{
    const struct attn_job *j = arg;
    const int n_pages = j->depth / j->page_tokens, row = 2 + j->head_dim;
    int32_t begin[512] = {0}, end[512], pages[WEFT__ATTN_SPLIT_TOKENS];
    for (int i = 0; i < j->n_q; i++) end[i] = j->causal ? j->depth - j->n_q + i + 1 : j->depth;
    for (int s = j->n_seqs * thread / n_threads; s < j->n_seqs * (thread + 1) / n_threads; s++) {
        for (int p = 0; p < n_pages; p++) pages[p] = s * n_pages + p;
        weft__attn a = {.q = j->q,
                        .head_stride = j->head_dim,
                        .n_q = j->n_q,
                        .row_heads = j->n_q,
                        .head_dim_k = j->head_dim,
                        .head_dim_v = j->head_dim,
                        .begin = begin,
                        .end = end,
                        .data = j->data,
                        .pages = pages,
                        .page_bytes = j->page_bytes,
                        .v_offset = j->v_offset,
                        .page_tokens = j->page_tokens,
                        .scale = 0.125f};
        const int coded = weft_kv_is_coded(j->dtype);
        if (coded) j->k->attn_coded(&a, j->dtype, j->dtype, 0, j->scratch[thread], j->state[thread]);
        else j->k->attn_split(&a, j->dtype, 0, j->scratch[thread], j->state[thread]);
        for (int i = 0; i < j->n_q; i++) {
            float *out = j->out[thread] + i * j->head_dim;
            j->k->attn_combine(j->state[thread] + i * row, 0, 1, j->head_dim, out);
            if (coded) j->k->kv_rotate(out, j->head_dim, out);
        }
    }
}

static void attn_fill(struct attn_job *j)
{
    weft__rng rng;
    weft__rng_seed(&rng, 3);
    float row[256];
    const size_t n_pages = (size_t)(j->n_seqs * j->depth / j->page_tokens);
    for (int slot = 0; slot < j->page_tokens; slot++) {
        for (int d = 0; d < j->head_dim; d++) row[d] = (float)weft__rng_normal(&rng);
        const int coded = weft_kv_is_coded(j->dtype);
        (coded ? j->k->kv_code_k : j->k->kv_put_k)(row, j->head_dim, slot, j->page_tokens, j->dtype, j->data);
        (coded ? j->k->kv_code_v : j->k->kv_put_v)(row, j->head_dim, slot, j->page_tokens, j->dtype,
                                                   j->data + j->v_offset);
    }
    for (size_t p = 1; p < n_pages; p++) memcpy(j->data + p * j->page_bytes, j->data, j->page_bytes);
}

static void bench_attn_case(bench *b, uint32_t dtype, int n_q, int head_dim, int page_tokens, int causal)
{
    struct attn_job j = {
        weft__kernels_get(1u << b->entry->tier), dtype, n_q, head_dim, page_tokens, .depth = 1024, .causal = causal};
    const int ref = b->entry->tier == WEFT__TIER_REF;
    const weft_kv_group g = {.page_tokens = page_tokens, .head_dim_k = head_dim, .head_dim_v = head_dim};
    j.v_offset = weft_kv_part_bytes(dtype, &g, 0);
    j.page_bytes = j.v_offset + weft_kv_part_bytes(dtype, &g, 1);
    const size_t seq_bytes = j.page_bytes * (size_t)(j.depth / page_tokens);
    j.n_seqs = causal ? 8 * b->n_threads : (int)((size_t)(ref ? 8 : 96) << 20 >> 10) / (int)(seq_bytes >> 10);
    if (ref && causal) j.n_seqs = b->n_threads;
    j.data = big_alloc(seq_bytes * (size_t)j.n_seqs);
    attn_fill(&j);
    float *q = bench_need(weft__alloc_zero((size_t)(n_q * head_dim), sizeof *q));
    for (int i = 0; i < n_q * head_dim; i++) q[i] = sinf((float)i);
    j.q = q;
    for (int t = 0; t < b->n_threads; t++) {
        j.scratch[t] =
            bench_need(weft__alloc_aligned(64, 4 * weft__attn_scratch(n_q, page_tokens, head_dim, head_dim)));
        j.state[t] = bench_need(weft__alloc_aligned(64, 4 * (size_t)(n_q * (2 + head_dim))));
        j.out[t] = bench_need(weft__alloc_aligned(64, 4 * (size_t)(n_q * head_dim)));
    }
    double seen = 0;
    for (int i = 0; i < n_q; i++) seen += causal ? j.depth - n_q + i + 1 : j.depth;
    const double ops = 4 * seen * head_dim * j.n_seqs;
    struct result r = timed(b, attn_run, &j, ops, b->peak.f32_fma, j.data, causal ? 0 : seq_bytes * (size_t)j.n_seqs);
    char what[60], type[WEFT_KV_NAME_MAX];
    snprintf(what, sizeof what, "%s %dq K%d p%d %s", weft_kv_type_name(dtype, type), n_q, head_dim, page_tokens,
             causal ? "prefill" : "decode");
    bench_print_line(b, what, &r);
    for (int t = 0; t < b->n_threads; t++) {
        weft__free(j.scratch[t]);
        weft__free(j.state[t]);
        weft__free(j.out[t]);
    }
    weft__free(q);
    weft__free(j.data);
}

static void bench_attn(bench *b)
{
    bench_attn_case(b, WEFT_F16, 8, 64, 64, 0);
    bench_attn_case(b, WEFT_F16, 8, 64, 16, 0);
    bench_attn_case(b, WEFT_F16, 4, 128, 64, 0);
    bench_attn_case(b, WEFT_F16, 1, 128, 64, 0);
    bench_attn_case(b, WEFT_F32, 8, 64, 64, 0);
    bench_attn_case(b, WEFT_F16, 512, 64, 64, 1);
    bench_attn_case(b, WEFT_F16, 512, 128, 64, 1);
    bench_attn_case(b, WEFT_F32, 512, 64, 64, 1);
}

static void bench_coded(bench *b)
{
    static const uint32_t formats[] = {WEFT_KV_Q8, WEFT_KV_Q4, WEFT_KV_F8, WEFT_BF16};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        bench_attn_case(b, formats[i], 8, 64, 64, 0);
        bench_attn_case(b, formats[i], 4, 128, 64, 0);
        bench_attn_case(b, formats[i], 1, 128, 64, 0);
        bench_attn_case(b, formats[i], 512, 64, 64, 1);
        bench_attn_case(b, formats[i], 512, 128, 64, 1);
    }
}

/* ---- products of f32 matrices ---- */

struct gemm_job {
    const weft__gemm *g;
    float *a[64], *b[64], *c[64];
    int turn; /* rows to columns instead of multiplying */
};

enum { GEMM_K = 256, GEMM_TURNS = 2000, GEMM_LD = GEMM_K + 16 };

/* Strips that stay in the first level, again and again. */
static void gemm_run(void *arg, int thread, int n_threads)
{
    const struct gemm_job *j = arg;
    (void)n_threads;
    for (int i = 0; i < GEMM_TURNS; i++) {
        if (j->turn) j->g->turn(j->c[thread], GEMM_LD, j->g->nr, GEMM_K, j->b[thread], j->g->nr);
        else j->g->tile(GEMM_K, j->a[thread], j->b[thread], j->c[thread], j->g->nr, 1);
    }
}

static void bench_gemm(bench *b)
{
    struct gemm_job j = {b->entry->gemm};
    size_t n_a = (size_t)GEMM_K * (size_t)j.g->mr, n_b = (size_t)GEMM_K * (size_t)j.g->nr,
           n_c = (size_t)GEMM_LD * (size_t)j.g->nr;
    for (int t = 0; t < b->n_threads; t++) {
        j.a[t] = bench_need(weft__alloc_aligned(64, (n_a + n_b + n_c) * sizeof(float)));
        j.b[t] = j.a[t] + n_a, j.c[t] = j.b[t] + n_b;
        for (size_t i = 0; i < n_a + n_b + n_c; i++) j.a[t][i] = sinf((float)i);
    }
    const int pairs = j.g->dtype == WEFT_BF16;
    struct result r = timed(b, gemm_run, &j, (2.0 + 2 * pairs) * (double)n_a * j.g->nr * GEMM_TURNS * b->n_threads,
                            pairs && b->peak.bf16_dot ? b->peak.bf16_dot : b->peak.f32_fma, NULL, 0);
    r.seconds /= GEMM_TURNS, r.ops /= GEMM_TURNS;
    bench_print_line(b, pairs ? "k 512" : "k 256", &r);
    j.turn = 1;
    r = timed(b, gemm_run, &j, 0, NULL, NULL, 0);
    r.seconds /= GEMM_TURNS, r.bytes = 8 * (double)n_b * b->n_threads;
    bench_print_line(b, "turn of 256 columns", &r);
    for (int t = 0; t < b->n_threads; t++) weft__free(j.a[t]);
}

static void bench_limits(bench *b)
{
    size_t n_bytes = (size_t)192 << 20;
    void *p = big_alloc(n_bytes);
    double runs[RUNS], units[3];
    char taken[WEFT__TAKEN_ROOM];
    int again = 0;
    do {
        bench_row_begins(b, again++);
        for (int i = 0; i < RUNS; i++) runs[i] = (double)n_bytes * 1e-9 / read_seconds(b, p, n_bytes);
        units[0] = spin(b, b->peak.int8_dot, 200);
        units[1] = spin(b, b->peak.bf16_dot, 200);
        units[2] = spin(b, b->peak.f32_fma, 200);
    } while (bench_row_disturbed(b, b->n_threads));
    weft__free(p);
    printf("%s, %d threads\n", weft__machine_processor(), b->n_threads);
    printf("limits: read %.1f GB/s, int8 dot %.0f GOPS, bf16 dot %.0f GOPS, f32 fma %.0f GOPS; taken %s\n\n",
           bench_median(runs, RUNS), units[0], units[1], units[2],
           weft__taken_text(&b->taken.row, weft__taken_above(&b->taken.row), taken));
}

int main(int argc, char **argv)
{
    bench b = {.n_threads = 0};
    int option;
    while ((option = getopt(argc, argv, "t:")) == 't') b.n_threads = atoi(optarg);
    if (option == '?' || b.n_threads < 0 || b.n_threads > 64) {
        fprintf(stderr, "usage: bench_kernels [-t THREADS (1..64)] [TEXT]\n");
        return 2;
    }
    if (!b.n_threads) b.n_threads = weft__machine_default_threads() > 64 ? 64 : weft__machine_default_threads();
    const char *text = optind < argc ? argv[optind] : "";
    weft_error err;
    if (weft__pool_create(b.n_threads, &b.pool, &err) != WEFT_OK) {
        fprintf(stderr, "bench_kernels: %s\n", err.message);
        return 1;
    }
    const uint32_t tiers = weft__tier_mask();
    weft__peak_kernels_get(tiers, &b.peak);
    bench_limits(&b);
    print_head();
    int n;
    const weft__kernel_entry *entries = weft__kernel_list(&n);
    for (int i = 0; i < n; i++) {
        b.entry = &entries[i];
        if (!(tiers >> entries[i].tier & 1) || !strstr(entries[i].function, text)) continue;
        if (entries[i].matmul) {
            bench_matmul(&b);
        } else if (entries[i].gemm) {
            bench_gemm(&b);
        } else if (entries[i].expand) {
            bench_expand(&b);
        } else if (!strcmp(entries[i].op, "attn_split")) {
            bench_attn(&b);
        } else if (!strcmp(entries[i].op, "attn_coded")) {
            bench_coded(&b);
        } else {
            bench_rows(&b);
        }
    }
    if (b.taken.n_marked)
        fprintf(stderr,
                "* of so much of the time of %d of %d rows others took more than %g %%: not figures to judge by\n",
                b.taken.n_marked, b.taken.n_rows, 100 * WEFT__TAKEN_MOST);
    weft__pool_destroy(&b.pool);
    return 0;
}
