// SPDX-License-Identifier: Apache-2.0
/* measure.c: the limits of this machine with the provider's threads: what memory can be read, what the units can
 * multiply. Each figure is the median of several rounds, or one brief one; a round is timed from the common start to
 * the last thread's end. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/cpu/program.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "mem/mem.h"

enum { ROUNDS = 7, SPIN_MS = 20, BRIEF_SPIN_MS = 4 };
#define READ_BYTES (512ull << 20)         /* beyond every cache */
#define READ_BLOCK_LINES ((1 << 20) / 64) /* what a thread takes at a time */

/* Q8_0 matrix times prepared rows; each thread has its own. */
typedef struct product {
    const weft__matmul *mm;
    /* of a panel; of the rows; of the results; of all three, for one thread */
    size_t stride, act_bytes, out_bytes, bytes;
    int64_t n;
} product;

typedef struct measure_job {
    weft_backend *b;
    int n_rounds, spin_ms;
    double (*spin)(int ms);
    uint64_t (*read)(const void *p, size_t n_bytes);
    const uint8_t *data;
    product product;
    double rate[WEFT__POOL_MAX_THREADS];               /* per thread */
    atomic_int_least64_t next[WEFT__POOL_MAX_THREADS]; /* line of each thread's part that no thread has taken yet */
    atomic_uint_fast64_t sum;                          /* so that the reads have a use */
} measure_job;

static void spin_job(void *arg, int thread, int n_threads)
{
    measure_job *j = arg;
    (void)n_threads;
    j->rate[thread] = j->spin(j->spin_ms);
}

/* A thread whose part is read helps others with theirs: cores that share a memory seldom get even parts of it, and to
 * wait for the last one understates what they read together (Zen 4 at 55 to 60 GB/s: by 2 to 6 %; at 33 GB/s by
 * nothing). */
static void read_job(void *arg, int thread, int n_threads)
{
    measure_job *j = arg;
    const int64_t n_lines = READ_BYTES / WEFT__CPU_LINE;
    uint64_t value = 0;
    for (int i = 0; i < n_threads; i++) {
        const int part = (thread + i) % n_threads;
        const int64_t last = weft__cpu_share(n_lines, part + 1, n_threads);
        for (int64_t at; (at = atomic_fetch_add(&j->next[part], READ_BLOCK_LINES)) < last;) {
            const int64_t n = last - at < READ_BLOCK_LINES ? last - at : READ_BLOCK_LINES;
            value ^= j->read(j->data + at * WEFT__CPU_LINE, (size_t)n * WEFT__CPU_LINE);
        }
    }
    atomic_fetch_add(&j->sum, value);
}

static void fill_job(void *arg, int thread, int n_threads)
{
    uint8_t *data = (uint8_t *)((measure_job *)arg)->data;
    int64_t n_lines = READ_BYTES / WEFT__CPU_LINE;
    int64_t first = weft__cpu_share(n_lines, thread, n_threads), last = weft__cpu_share(n_lines, thread + 1, n_threads);
    memset(data + first * WEFT__CPU_LINE, thread + 1, (size_t)(last - first) * WEFT__CPU_LINE);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, compare);
    return x[n / 2];
}

/* The sum of the threads' rates, median of the rounds. */
static double measure_rate(measure_job *j, weft__pool_fn fn)
{
    double rounds[ROUNDS];
    for (int r = 0; r < j->n_rounds; r++) {
        weft__pool_run(j->b->pool, fn, j);
        rounds[r] = 0;
        for (int t = 0; t < j->b->n_threads; t++) rounds[r] += j->rate[t];
    }
    return median(rounds, j->n_rounds);
}

static double measure_spin(measure_job *j, double (*spin)(int ms))
{
    j->spin = spin;
    return spin ? measure_rate(j, spin_job) : 0;
}

/* ---- a product in the second-level cache ---- */

enum { PRODUCT_K = 1024, PRODUCT_ROWS = 32 };

static size_t whole_lines(size_t n)
{
    return (n + WEFT__CPU_LINE - 1) / WEFT__CPU_LINE * WEFT__CPU_LINE;
}

/* The matrix takes half of the cache, more than any first-level cache has, so each pass brings all of it from there.
 * AMX is another unit than the one whose limit stands beside. */
static product product_of(const weft_backend *b)
{
    const weft_dtype_info info = weft_dtype_describe(WEFT_Q8_0);
    const long told = sysconf(_SC_LEVEL2_CACHE_SIZE);
    const size_t l2 = told < 256 << 10 ? 256 << 10 : told > 2 << 20 ? 2 << 20 : (size_t)told;
    product p = {.mm = weft__matmul_find(WEFT_Q8_0, b->tiers & ~(1u << WEFT__TIER_AMX | 1u << WEFT__TIER_AMXBF16))};
    p.stride = p.mm->panel_bytes ? p.mm->panel_bytes(PRODUCT_K) : PRODUCT_K / info.block_elems * info.block_bytes;
    p.n = (int64_t)(l2 / 2 / p.stride) * p.mm->panel_rows;
    p.act_bytes = whole_lines(p.mm->act->bytes(PRODUCT_K, PRODUCT_ROWS));
    p.out_bytes = whole_lines((size_t)p.n * PRODUCT_ROWS * sizeof(float));
    p.bytes = whole_lines((size_t)(p.n / p.mm->panel_rows) * p.stride) + p.act_bytes + p.out_bytes;
    return p;
}

/* Rows of ones, and a matrix of zeros, which integers multiply as quickly as others. */
static void fill_product_job(void *arg, int thread, int n_threads)
{
    const product *p = &((measure_job *)arg)->product;
    uint8_t *at = ((measure_job *)arg)->b->product + (size_t)thread * p->bytes;
    float x[PRODUCT_K];
    (void)n_threads;
    memset(at, 0, p->bytes);
    for (int i = 0; i < PRODUCT_K; i++) x[i] = 1;
    for (int r = 0; r < PRODUCT_ROWS; r++) weft__act_put_row(p->mm->act, x, PRODUCT_K, r, PRODUCT_ROWS, at);
}

static void product_job(void *arg, int thread, int n_threads)
{
    measure_job *j = arg;
    const product *p = &j->product;
    uint8_t *act = j->b->product + (size_t)thread * p->bytes, *out = act + p->act_bytes, *panels = out + p->out_bytes;
    const uint64_t begin = weft__clock_ns();
    uint64_t ns;
    const weft__product call = {.panels = panels,
                                .stride = p->stride,
                                .n_out = p->n,
                                .k = PRODUCT_K,
                                .act = act,
                                .m = PRODUCT_ROWS,
                                .out = (float *)out,
                                .ldo = p->n};
    double n = 0;
    (void)n_threads;
    do {
        p->mm->run(&call, NULL);
        n++;
        ns = weft__clock_ns() - begin;
    } while (ns < (uint64_t)j->spin_ms * 1000000);
    j->rate[thread] = 2.0 * PRODUCT_K * PRODUCT_ROWS * (double)p->n * n / (double)ns;
}

/* Its bytes stay with the provider, as it is measured between steps. */
static weft_status measure_product(measure_job *j, double *gops, weft_error *err)
{
    j->product = product_of(j->b);
    const size_t bytes = j->product.bytes * (size_t)j->b->n_threads;
    if (!j->b->product) {
        if (!(j->b->product = weft__alloc_aligned(WEFT__CPU_LINE, bytes)))
            return weft_fail(err, WEFT_NO_MEMORY, "no memory for a product of %zu bytes", bytes);
        weft__pool_run(j->b->pool, fill_product_job, j);
    }
    *gops = measure_rate(j, product_job);
    return WEFT_OK;
}

/* ---- memory ---- */

/* What is read stays with the provider: to fill it takes ten times as long as to read it. */
static weft_status read_buffer(measure_job *j, weft_error *err)
{
    weft_buffer_spec spec = {
        .size = sizeof spec, .domain = WEFT_DOMAIN_HOST, .n_bytes = READ_BYTES, .flags = WEFT_BUFFER_HUGE};
    const int fresh = !j->b->to_read;
    weft_status st = fresh ? weft__mem_create(&spec, &j->b->to_read, err) : WEFT_OK;
    if (st) return st;
    j->data = j->b->to_read->data;
    if (fresh) weft__pool_run(j->b->pool, fill_job, j);
    return WEFT_OK;
}

static weft_status measure_read(measure_job *j, double *gb_s, weft_error *err)
{
    double rounds[ROUNDS];
    *gb_s = 0;
    if (!j->read) return WEFT_OK;
    weft_status st = read_buffer(j, err);
    if (st) return st;
    for (int r = 0; r < j->n_rounds; r++) {
        for (int t = 0; t < j->b->n_threads; t++)
            j->next[t] = weft__cpu_share(READ_BYTES / WEFT__CPU_LINE, t, j->b->n_threads);
        uint64_t start = weft__clock_ns();
        weft__pool_run(j->b->pool, read_job, j);
        rounds[r] = (double)READ_BYTES / (double)(weft__clock_ns() - start);
    }
    *gb_s = median(rounds, j->n_rounds);
    return WEFT_OK;
}

weft_status weft__cpu_measure(weft_backend *b, weft_peaks *out, weft_error *err)
{
    const size_t least = offsetof(weft_peaks, l2_int8_gops), n = out->size < sizeof *out ? out->size : sizeof *out;
    if (n < least)
        return weft_fail(err, WEFT_ABI, "weft_peaks has %u bytes; this provider fills %zu", out->size, least);
    weft__peak_kernels peaks;
    weft__peak_kernels_get(b->tiers, &peaks);
    measure_job j = {.b = b,
                     .n_rounds = out->brief ? 1 : ROUNDS,
                     .spin_ms = out->brief ? BRIEF_SPIN_MS : SPIN_MS,
                     .read = peaks.read};
    weft_peaks p = {.size = out->size, .brief = out->brief};
    weft_status st = measure_read(&j, &p.read_gb_s, err);
    if (st) return st;
    p.int8_dot_gops = measure_spin(&j, peaks.int8_dot);
    p.bf16_dot_gflops = measure_spin(&j, peaks.bf16_dot);
    p.f32_fma_gflops = measure_spin(&j, peaks.f32_fma);
    if (n > least && (st = measure_product(&j, &p.l2_int8_gops, err))) return st;
    memcpy(out, &p, n); /* a caller built against an earlier header has less room */
    return WEFT_OK;
}
