// SPDX-License-Identifier: Apache-2.0
/* bench_batched.c: weft bench --batched: several sequences, first their prompts, then generation together; columns and
 * fields of llama-batched-bench. The prompts are read one after the other, nothing of them is shared. Times are
 * medians. */
#include <stdio.h>

#include "bench.h"
#include "terminal.h"

typedef struct batched_row {
    int32_t n_prompt, n_gen, n_seqs;
    double t_prompt, t_gen; /* seconds */
    bench_taken taken;
} batched_row;

static weft_status measure(const bench_options *o, weft_model *model, int32_t n_threads, batched_row *r,
                           weft_error *err)
{
    bench_case c;
    double prompt[BENCH_REPS_MAX], gen[BENCH_REPS_MAX];
    weft_status st = bench_case_open(&c, model, o, r->n_seqs, r->n_prompt + r->n_gen, err);
    bench_taken_start(&r->taken, o, n_threads);
    for (int i = o->no_warmup ? 0 : -1; i < o->reps && !st;) {
        if ((st = bench_case_depth(&c, 0, err))) break;
        bench_taken_begin(&r->taken);
        uint64_t start = now_ns();
        if ((st = bench_case_prompt(&c, r->n_prompt, err))) break;
        uint64_t middle = now_ns();
        st = bench_case_generate(&c, r->n_gen, err);
        uint64_t end = now_ns();
        if (i >= 0) prompt[i] = (double)(middle - start) / 1e9, gen[i] = (double)(end - middle) / 1e9;
        i += i < 0 || !bench_taken_again(&r->taken, NULL);
    }
    bench_case_close(&c);
    if (st) return st;
    r->t_prompt = bench_median(prompt, o->reps);
    r->t_gen = bench_median(gen, o->reps);
    return WEFT_OK;
}

static void print(const bench_options *o, const weft_model_info *m, const batched_row *r, int first)
{
    int64_t n_prompt = (int64_t)r->n_prompt * r->n_seqs, n_gen = (int64_t)r->n_gen * r->n_seqs, n_kv = n_prompt + n_gen;
    double t = r->t_prompt + r->t_gen, s_prompt = n_prompt > 0 && r->t_prompt > 0 ? (double)n_prompt / r->t_prompt : 0,
           s_gen = n_gen > 0 && r->t_gen > 0 ? (double)n_gen / r->t_gen : 0;
    if (o->format == BENCH_MD) {
        char taken[WEFT__TAKEN_ROOM];
        printf("|%6d | %6d | %4d | %6lld | %8.3f | %8.2f | %8.3f | %8.2f | %8.3f | %8.2f | %18s |\n", r->n_prompt,
               r->n_gen, r->n_seqs, (long long)n_kv, r->t_prompt, s_prompt, r->t_gen, s_gen, t,
               t > 0 ? (double)n_kv / t : 0, bench_taken_cell(&r->taken, o->reps, taken));
        fflush(stdout);
        return;
    }
    weft__strbuf text = {0};
    bench_taken_json(&text, &r->taken, o->reps);
    printf("%s{\"n_kv_max\": %lld, \"n_batch\": %d, \"n_ubatch\": %d, \"is_pp_shared\": 0, \"n_threads\": %d, "
           "\"n_threads_batch\": %d, "
           "%s\"pp\": %d, \"tg\": %d, \"pl\": %d, \"n_kv\": %lld, \"t_pp\": %.6f, \"speed_pp\": %.6f, \"t_tg\": %.6f, "
           "\"speed_tg\": %.6f, "
           "\"t\": %.6f, \"speed\": %.6f}%s",
           o->format == BENCH_JSON && !first ? ",\n" : "", (long long)n_kv, BENCH_BATCH, BENCH_BATCH, m->n_threads,
           m->n_threads, text.failed ? "" : text.data, r->n_prompt, r->n_gen, r->n_seqs, (long long)n_kv, r->t_prompt,
           s_prompt, r->t_gen, s_gen, t, t > 0 ? (double)n_kv / t : 0, o->format == BENCH_JSONL ? "\n" : "");
    weft__strbuf_free(&text);
    fflush(stdout);
}

void bench_batched_begin(enum bench_format format)
{
    if (format == BENCH_JSON) printf("[\n");
    if (format != BENCH_MD) return;
    printf("|%6s | %6s | %4s | %6s | %8s | %8s | %8s | %8s | %8s | %8s | %18s |\n", "PP", "TG", "B", "N_KV", "T_PP s",
           "S_PP t/s", "T_TG s", "S_TG t/s", "T s", "S t/s", "taken");
    printf("|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|-------"
           "-------------|\n");
}

/* The order of llama-batched-bench: for every prompt size, for every generation length, every number of sequences. */
weft_status bench_batched(const bench_options *o, weft_model *model, bench_tally *tally, weft_error *err)
{
    weft_model_info info = {.size = sizeof info};
    weft_status st = weft_model_describe(model, &info, err);
    for (int p = 0; p < o->n_prompt.n && !st; p++)
        for (int n = 0; n < o->n_gen.n && !st; n++)
            for (int b = 0; b < o->parallel.n && !st; b++) {
                batched_row r = {
                    .n_prompt = o->n_prompt.items[p], .n_gen = o->n_gen.items[n], .n_seqs = o->parallel.items[b]};
                if (r.n_prompt + r.n_gen == 0) continue;
                if ((st = measure(o, model, info.n_threads, &r, err))) break;
                print(o, &info, &r, tally->n_rows++ == 0);
                tally->n_marked += bench_taken_disturbed(&r.taken, o->reps) > 0;
            }
    return st;
}
