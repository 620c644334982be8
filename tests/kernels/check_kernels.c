// SPDX-License-Identifier: Apache-2.0
/* check_kernels.c: every line of kernels.def against ref, under the bound that the line declares (make check-kernels).
 *
 * check_kernels [TEXT]: only functions whose name contains TEXT. A line of products is run once with each row of
 * tune.def that changes it, or with that of WEFT_TUNE. Exits 1 when any line fails. Lines of tiers that this machine
 * lacks are listed as such, not as passed. */
#include "check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kernels/tune.h"

static const struct {
    const char *op;
    void (*run)(check *c);
} checks[] = {
    {"matmul", check_matmul},
    {"expand", check_expand},
    {"norm_rms", check_norm_rms},
    {"add", check_add},
    {"scale", check_scale},
    {"glu", check_glu},
    {"softcap", check_softcap},
    {"rope", check_rope},
    {"argmax", check_argmax},
    {"decode_row", check_decode_row},
    {"kv_put_k", check_kv_put},
    {"kv_put_v", check_kv_put},
    {"attn_split", check_attn_split},
    {"kv_rotate", check_kv_rotate},
    {"kv_code_k", check_kv_code},
    {"kv_code_v", check_kv_code},
    {"attn_coded", check_attn_coded},
    {"attn_combine", check_attn_combine},
    {"gemm", check_gemm},
    {"norm_back", check_norm_back},
    {"glu_back", check_glu_back},
    {"exp_sum", check_exp_sum},
};

void check_fail(check *c, const char *format, ...)
{
    if (c->fault[0]) return;
    va_list args;
    va_start(args, format);
    vsnprintf(c->fault, sizeof c->fault, format, args);
    va_end(args);
}

void check_error(check *c, double error, const char *what)
{
    c->cases++;
    if (isnan(error)) error = INFINITY;
    if (error > c->worst) c->worst = error;
    /* The ref lines declare 0 because they are what others are measured against; against exact arithmetic they get
     * 1e-8. */
    double bound = c->entry->tier == WEFT__TIER_REF ? 1e-8 : c->entry->tolerance;
    if (error > bound) check_fail(c, "error %.2g above %.2g: %s", error, bound, what);
}

const char *check_pattern_name(pattern p)
{
    static const char *const names[P_COUNT] = {"normal", "outliers", "tiny", "huge",    "denormal",
                                               "zero",   "whole",    "nan",  "infinite"};
    return names[p];
}

/* Near enough to standard normal: four uniform numbers of 16 bits in the place of one. */
static double near_normal(weft__rng *rng)
{
    uint64_t u = weft__rng_u64(rng);
    int64_t sum =
        (int64_t)(u & 0xffff) + (int64_t)(u >> 16 & 0xffff) + (int64_t)(u >> 32 & 0xffff) + (int64_t)(u >> 48);
    return (double)(sum - 2 * 0xffff) * (1.7320508 / 0x10000); /* each has a variance of 2^32 / 12 */
}

static void draw_values(check *c, pattern p, float *x, int64_t n, double (*normal)(weft__rng *rng))
{
    for (int64_t i = 0; i < n; i++) {
        double v = normal(&c->rng);
        if (p == P_OUTLIERS && weft__rng_below(&c->rng, 16) == 0) v *= 50;
        if (p == P_TINY) v *= 1e-30;
        if (p == P_HUGE) v *= 1e15;
        if (p == P_DENORMAL) v *= 1e-40;
        if (p == P_ZERO) v = 0;
        if (p == P_WHOLE) v = (double)weft__rng_below(&c->rng, 255) - 127;
        if (p == P_WHOLE && i % 32 == n % 32) v = 127;
        x[i] = (float)v;
    }
    if (n == 0) return;
    if (p == P_NAN) x[weft__rng_below(&c->rng, (uint64_t)n)] = NAN;
    if (p == P_INFINITE) x[weft__rng_below(&c->rng, (uint64_t)n)] = weft__rng_below(&c->rng, 2) ? INFINITY : -INFINITY;
}

void check_values(check *c, pattern p, float *x, int64_t n)
{
    draw_values(c, p, x, n, weft__rng_normal);
}

void check_many_values(check *c, pattern p, float *x, int64_t n)
{
    draw_values(c, p, x, n, near_normal);
}

double check_score_size(double q_square, double k_square, int head_dim)
{
    return fmax(1, sqrt(q_square * k_square / head_dim) / 100);
}

enum { GUARD = 256, GUARD_BYTE = 0xA5 };

guarded guarded_new(size_t n_bytes, size_t shift)
{
    guarded g = {NULL, NULL, n_bytes, GUARD + shift};
    g.block = weft__alloc_aligned(64, n_bytes + shift + 2 * (size_t)GUARD);
    if (!g.block) {
        fprintf(stderr, "check_kernels: out of memory\n");
        exit(1);
    }
    memset(g.block, GUARD_BYTE, n_bytes + shift + 2 * (size_t)GUARD);
    g.p = g.block + g.offset;
    return g;
}

void guarded_free(check *c, guarded *g, const char *what)
{
    for (size_t i = 0; i < g->offset; i++) {
        if (g->block[i] != GUARD_BYTE) check_fail(c, "wrote before %s", what);
    }
    for (size_t i = 0; i < GUARD; i++) {
        if (g->p[g->n_bytes + i] != GUARD_BYTE) check_fail(c, "wrote behind %s", what);
    }
    weft__free(g->block);
    *g = (guarded){0};
}

double check_difference(const float *a, const float *b, int64_t n, double floor)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        if ((isnan(a[i]) && isnan(b[i])) || a[i] == b[i]) continue;
        if (!isfinite(a[i]) || !isfinite(b[i])) return INFINITY;
        double size = fabs(b[i]) > floor ? fabs(b[i]) : floor;
        double d = fabs((double)a[i] - b[i]) / size;
        if (d > worst) worst = d;
    }
    return worst;
}

double check_nmse(const float *a, const float *b, int64_t n)
{
    double error = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)a[i] - b[i];
        error += d * d;
        size += (double)b[i] * b[i];
    }
    return error <= 1e-60 ? 0 : error / size;
}

int check_same_bits(const float *a, const float *b, int64_t n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

int check_same_answer(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (memcmp(a + i, b + i, sizeof *a) && !(isnan(a[i]) && isnan(b[i]))) return 0;
    }
    return 1;
}

/* Where the address sanitizer runs it looks into the kernels of ref and AVX2, and in `make test-all` into all: of the
 * others the release claims as much. */
static int is_looked_into(weft__tier tier)
{
    return CLAIMS_REPEATED(1, 0, 1) || claims_sweeps() || tier <= WEFT__TIER_AVX2;
}

/* Runs one line with the rows of tune.def that are in force, `tuned` in words; returns whether it passed. */
static int run_line(const weft__kernel_entry *e, uint32_t tiers, const char *tuned, int colour)
{
    const char *red = colour ? "\033[31m" : "", *green = colour ? "\033[32m" : "", *dim = colour ? "\033[2m" : "";
    const char *off = colour ? "\033[0m" : "";
    printf("%-12s %-8s %-6s %-11s %-34s %-8s ", e->op, e->format, e->tile, weft__tier_name(e->tier), e->function,
           tuned);
    if (!(tiers >> e->tier & 1)) {
        printf("%snot checked: no %s here (machine or WEFT_CPU)%s\n", dim, weft__tier_name(e->tier), off);
        return 1;
    }
    if (!is_looked_into(e->tier)) {
        printf("%snot checked: no sanitizer looks into it here%s\n", dim, off);
        return 1;
    }
    check c = {e, weft__kernels_get((2u << e->tier) - 1), weft__kernels_get(0)};
    weft__rng_seed(&c.rng, 1);
    uint64_t begin = weft__clock_ns();
    size_t i = 0;
    while (i < sizeof checks / sizeof checks[0] && strcmp(checks[i].op, e->op)) i++;
    if (i < sizeof checks / sizeof checks[0]) {
        checks[i].run(&c);
    } else {
        check_fail(&c, "no check for op %s: write one and list it in check_kernels.c", e->op);
    }
    printf("%7d %8.1e %8.1e %5.2fs  ", c.cases, c.worst, e->tolerance, (double)(weft__clock_ns() - begin) * 1e-9);
    if (c.fault[0]) {
        printf("%sFAIL %s%s\n", red, c.fault, off);
    } else {
        printf("%sok%s\n", green, off);
    }
    fflush(stdout);
    return !c.fault[0];
}

/* The line with each row of tune.def that it may be given; WEFT_TUNE: with that one alone. Returns how many did not
 * pass. */
static int run_rows(const weft__kernel_entry *e, uint32_t tiers, int colour)
{
    const char *only = getenv("WEFT_TUNE");
    int failed = 0;
    if (!e->matmul || (only && *only)) return !run_line(e, tiers, only && e->matmul ? only : "", colour);
    for (int u = 0; u < WEFT__UARCH_COUNT; u++) {
        const char *name = weft__uarch_name((weft__uarch)u);
        weft_error err;
        if (u && !weft__kernel_tune_differs((weft__uarch)u, e->tier, e->matmul->dtype)) continue;
        if (weft__kernel_tune_set(name, &err)) {
            printf("%s\n", err.message);
            return failed + 1;
        }
        failed +=
            !run_line(e, tiers, weft__kernel_tune_of((weft__uarch)u, e->tier, e->matmul->dtype) ? name : "", colour);
    }
    return failed;
}

int main(int argc, char **argv)
{
    weft_error err;
    if (weft__kernel_tune_init(&err)) {
        fprintf(stderr, "check_kernels: %s\n", err.message);
        return 1;
    }
    uint32_t tiers = weft__tier_mask();
    int n, failed = 0, colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    const weft__kernel_entry *entries = weft__kernel_list(&n);
    printf("%-12s %-8s %-6s %-11s %-34s %-8s %7s %8s %8s %6s\n", "op", "format", "tile", "tier", "function", "tuned",
           "cases", "error", "bound", "time");
    for (int i = 0; i < n; i++) {
        if (argc > 1 && !strstr(entries[i].function, argv[1])) continue;
        failed += run_rows(&entries[i], tiers, colour);
    }
    if (weft__alloc_live()) {
        printf("%zu blocks were not freed\n", weft__alloc_live());
        failed++;
    }
    if (failed) {
        printf("%d lines failed\n", failed);
    } else {
        printf("all lines hold\n");
    }
    return failed ? 1 : 0;
}
