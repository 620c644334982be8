// SPDX-License-Identifier: Apache-2.0
/* bench_limit.c: what the machine allows for a row of weft bench (bench.h). */
#include "bench.h"
#include "kv_type.h"

/* Bytes that one repetition reads at least, and seconds that it needs. */
struct least {
    double bytes, read, int8, bf16, f32;
};

static double over(double amount, double giga_per_second)
{
    return giga_per_second > 0 ? amount / (giga_per_second * 1e9) : 0;
}

/* One step; where a unit is absent, the next one does its work. */
static weft_status add_step(struct least *t, const weft_model *model, const weft_peaks *p, int32_t n_seqs, int32_t past,
                            int32_t n_rows, int32_t n_wanted, uint32_t kv_dtype, weft_error *err)
{
    weft_step_cost c = {.size = sizeof c};
    weft_status st = weft_model_step_cost(model, n_seqs, past, n_rows, n_wanted, kv_dtype, &c, err);
    if (st) return st;
    t->bytes += c.weight_bytes + c.kv_bytes;
    t->read += over(c.weight_bytes + c.kv_bytes, p->read_gb_s);
    t->f32 += over(c.f32_ops, p->f32_fma_gflops);
    *(p->int8_dot_gops > 0 ? &t->int8 : &t->f32) +=
        over(c.int8_ops, p->int8_dot_gops > 0 ? p->int8_dot_gops : p->f32_fma_gflops);
    *(p->bf16_dot_gflops > 0 ? &t->bf16 : &t->f32) +=
        over(c.bf16_ops, p->bf16_dot_gflops > 0 ? p->bf16_dot_gflops : p->f32_fma_gflops);
    return WEFT_OK;
}

static weft_status find_limit(bench_row *r, const weft_model *model, const weft_peaks *p, weft_error *err)
{
    struct least t = {0};
    weft_status st = WEFT_OK;
    uint32_t kv = kv_type_of(r->kv_type);
    for (int32_t s = 0; s < r->n_parallel; s++)
        for (int32_t at = 0, n; at < r->n_prompt && !st; at += n) {
            n = r->n_prompt - at < r->n_batch ? r->n_prompt - at : r->n_batch;
            st = add_step(&t, model, p, 1, r->n_depth + at, n, at + n == r->n_prompt, kv, err);
        }
    for (int32_t g = 0; g < r->n_gen && !st; g++)
        st = add_step(&t, model, p, r->n_parallel, r->n_depth + r->n_prompt + g, 1, r->n_parallel, kv, err);
    double compute = t.int8 + t.bf16 + t.f32, tokens = bench_tokens(r);
    if (st || (t.read <= 0 && compute <= 0)) return st;
    r->read_bytes = t.bytes / tokens;
    r->limit_read_ts = t.read > 0 ? tokens / t.read : 0;
    r->limit_compute_ts = compute > 0 ? tokens / compute : 0;
    r->limit_ts = t.read > compute ? r->limit_read_ts : r->limit_compute_ts;
    r->limit_name = t.read > compute                      ? "read"
                    : t.int8 >= t.bf16 && t.int8 >= t.f32 ? "int8 dot"
                    : t.bf16 >= t.f32                     ? "bf16 dot"
                                                          : "f32 FMA";
    return WEFT_OK;
}

double *bench_peak(weft_peaks *p, int i)
{
    double *const figures[BENCH_PEAKS] = {&p->read_gb_s, &p->int8_dot_gops, &p->bf16_dot_gflops, &p->f32_fma_gflops,
                                          &p->l2_int8_gops};
    return figures[i];
}

weft_status bench_find_share(bench_row *r, const weft_model *model, weft_error *err)
{
    double shares[BENCH_REPS_MAX], all[BENCH_REPS_MAX];
    weft_status st;
    for (int i = 0; i < r->n_reps; i++) {
        if ((st = find_limit(r, model, &r->peaks[i], err)) || !r->limit_name) return st;
        r->samples_limit_ts[i] = r->limit_ts;
        shares[i] = bench_tokens(r) * 1e9 / (double)r->samples_ns[i] / r->limit_ts;
    }
    r->share = bench_median(shares, r->n_reps);
    weft_peaks medians = {.size = sizeof medians};
    for (int f = 0; f < BENCH_PEAKS; f++) {
        for (int i = 0; i < r->n_reps; i++) all[i] = *bench_peak(&r->peaks[i], f);
        *bench_peak(&medians, f) = bench_median(all, r->n_reps);
    }
    r->int8_gops = medians.int8_dot_gops;
    r->l2_int8_gops = medians.l2_int8_gops;
    return find_limit(r, model, &medians, err);
}
