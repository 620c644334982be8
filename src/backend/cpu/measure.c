/* measure.c: the limits of this machine with the provider's threads: what memory can be read, what the units can multiply.
 * Each figure is the median of several rounds, or one brief one; a round is timed from the common start to the last thread's end. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/cpu.h"
#include "base/clock.h"
#include "mem/mem.h"

enum { ROUNDS = 7, SPIN_MS = 20, BRIEF_SPIN_MS = 4 };
#define READ_BYTES (512ull << 20)         /* beyond every cache */
#define READ_BLOCK_LINES ((1 << 20) / 64) /* what a thread takes at a time */

typedef struct job {
    weft_backend *b;
    int n_rounds, spin_ms;
    double (*spin)(int ms);
    uint64_t (*read)(const void *p, size_t n_bytes);
    const uint8_t *data;
    double rate[WEFT__MAX_THREADS];               /* per thread */
    atomic_int_least64_t next[WEFT__MAX_THREADS]; /* line of each thread's part that nobody has taken yet */
    atomic_uint_fast64_t sum;                     /* so that the reads have a use */
} job;

static void spin_job(void *arg, int thread, int n_threads)
{
    job *j = arg;
    (void)n_threads;
    j->rate[thread] = j->spin(j->spin_ms);
}

/* A thread whose part is read helps others with theirs: cores that share a memory seldom get even parts of it, and to wait for the last one
 * understates what they read together (Zen 4 at 55 to 60 GB/s: by 2 to 6 %; at 33 GB/s by nothing). */
static void read_job(void *arg, int thread, int n_threads)
{
    job *j = arg;
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
    uint8_t *data = (uint8_t *)((job *)arg)->data;
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

static double measure_spin(job *j, double (*spin)(int ms))
{
    double rounds[ROUNDS];
    if (!spin) return 0;
    j->spin = spin;
    for (int r = 0; r < j->n_rounds; r++) {
        weft__pool_run(j->b->pool, spin_job, j);
        rounds[r] = 0;
        for (int t = 0; t < j->b->n_threads; t++) rounds[r] += j->rate[t];
    }
    return median(rounds, j->n_rounds);
}

/* What is read stays with the provider: to fill it takes ten times as long as to read it. */
static weft_status read_buffer(job *j, weft_error *err)
{
    weft_buffer_spec spec = {.size = sizeof spec, .domain = WEFT_DOMAIN_HOST, .n_bytes = READ_BYTES, .flags = WEFT_BUFFER_HUGE};
    const int fresh = !j->b->to_read;
    weft_status st = fresh ? weft__mem_create(&spec, &j->b->to_read, err) : WEFT_OK;
    if (st) return st;
    j->data = j->b->to_read->data;
    if (fresh) weft__pool_run(j->b->pool, fill_job, j);
    return WEFT_OK;
}

static weft_status measure_read(job *j, double *gb_s, weft_error *err)
{
    double rounds[ROUNDS];
    *gb_s = 0;
    if (!j->read) return WEFT_OK;
    weft_status st = read_buffer(j, err);
    if (st) return st;
    for (int r = 0; r < j->n_rounds; r++) {
        for (int t = 0; t < j->b->n_threads; t++) j->next[t] = weft__cpu_share(READ_BYTES / WEFT__CPU_LINE, t, j->b->n_threads);
        uint64_t start = weft__clock_ns();
        weft__pool_run(j->b->pool, read_job, j);
        rounds[r] = (double)READ_BYTES / (double)(weft__clock_ns() - start);
    }
    *gb_s = median(rounds, j->n_rounds);
    return WEFT_OK;
}

weft_status weft__cpu_measure(weft_backend *b, weft_peaks *out, weft_error *err)
{
    if (out->size < sizeof *out)
        return weft_fail(err, WEFT_ABI, "weft_peaks has %u bytes; this provider fills %zu", out->size, sizeof *out);
    weft__peak_kernels peaks;
    weft__peak_kernels_get(b->tiers, &peaks);
    job j = {.b = b, .n_rounds = out->brief ? 1 : ROUNDS, .spin_ms = out->brief ? BRIEF_SPIN_MS : SPIN_MS, .read = peaks.read};
    weft_peaks p = {.size = out->size, .brief = out->brief};
    weft_status st = measure_read(&j, &p.read_gb_s, err);
    if (st) return st;
    p.int8_dot_gops = measure_spin(&j, peaks.int8_dot);
    p.bf16_dot_gflops = measure_spin(&j, peaks.bf16_dot);
    p.f32_fma_gflops = measure_spin(&j, peaks.f32_fma);
    *out = p;
    return WEFT_OK;
}
