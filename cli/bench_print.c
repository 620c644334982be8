// SPDX-License-Identifier: Apache-2.0
/* bench_print.c: rows of weft bench as llama-bench prints them: a table, JSON, JSON lines, CSV. Fields have
 * llama-bench's names; n_parallel, limit_* and share are Weft's own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bench.h"
#include "terminal.h"

double bench_tokens(const bench_row *r)
{
    return ((double)r->n_prompt + r->n_gen) * r->n_parallel;
}

void bench_name(const bench_row *r, char *out)
{
    size_t at = 0, size = 64;
    if (r->n_prompt > 0) at += (size_t)snprintf(out + at, size - at, "pp%d", r->n_prompt);
    if (r->n_gen > 0) at += (size_t)snprintf(out + at, size - at, "%stg%d", at ? "+" : "", r->n_gen);
    if (r->n_depth > 0) at += (size_t)snprintf(out + at, size - at, " @ d%d%s", r->n_depth, r->filled ? " filled" : "");
    if (r->n_parallel > 1) snprintf(out + at, size - at, " x%d", r->n_parallel);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

void bench_summarize(bench_row *r)
{
    double tokens = bench_tokens(r), n = r->n_reps, sum = 0, sum_ts = 0, var = 0, var_ts = 0;
    double ns[BENCH_REPS_MAX];
    for (int i = 0; i < r->n_reps; i++) {
        ns[i] = (double)r->samples_ns[i];
        sum += ns[i];
        sum_ts += tokens * 1e9 / ns[i];
    }
    r->avg_ns = sum / n;
    r->avg_ts = sum_ts / n;
    for (int i = 0; i < r->n_reps; i++) {
        var += pow(ns[i] - r->avg_ns, 2);
        var_ts += pow(tokens * 1e9 / ns[i] - r->avg_ts, 2);
    }
    r->stddev_ns = n > 1 ? sqrt(var / (n - 1)) : 0;
    r->stddev_ts = n > 1 ? sqrt(var_ts / (n - 1)) : 0;
    r->median_ts = tokens * 1e9 / bench_median(ns, r->n_reps);
}

static void put_string(weft__strbuf *t, const char *key, const char *value)
{
    weft__strbuf_printf(t, "\"%s\": ", key);
    weft__json_write_string(t, value, strlen(value));
    weft__strbuf_puts(t, ", ");
}

static void put_json(weft__strbuf *t, const bench_row *r)
{
    const weft_model_info *m = &r->info;
    weft__strbuf_putc(t, '{');
    put_string(t, "weft_version", weft_version());
    put_string(t, "backends", m->provider);
    put_string(t, "cpu_info", m->device);
    put_string(t, "model_filename", r->model_file);
    weft__strbuf_printf(t, "\"model_type\": \"%s %s\", \"model_size\": %llu, \"model_n_params\": %llu, ", m->arch,
                        m->type, (unsigned long long)m->n_bytes, (unsigned long long)m->n_params);
    weft__strbuf_printf(
        t, "\"n_batch\": %d, \"n_ubatch\": %d, \"n_threads\": %d, \"type_k\": \"%s\", \"type_v\": \"%s\", ", r->n_batch,
        r->n_batch, m->n_threads, r->kv_type, r->kv_type);
    weft__strbuf_printf(t, "\"n_prompt\": %d, \"n_gen\": %d, \"n_depth\": %d, \"n_parallel\": %d, ", r->n_prompt,
                        r->n_gen, r->n_depth, r->n_parallel);
    if (r->filled) weft__strbuf_puts(t, "\"depth_filled\": true, ");
    weft__strbuf_printf(t,
                        "\"test_time\": \"%s\", \"avg_ns\": %.0f, \"stddev_ns\": %.0f, \"avg_ts\": %.6f, "
                        "\"stddev_ts\": %.6f, \"median_ts\": %.6f, ",
                        r->test_time, r->avg_ns, r->stddev_ns, r->avg_ts, r->stddev_ts, r->median_ts);
    if (r->limit_name)
        weft__strbuf_printf(t,
                            "\"limit\": \"%s\", \"limit_ts\": %.6f, \"share\": %.6f, \"limit_read_ts\": %.6f, "
                            "\"limit_compute_ts\": %.6f, \"read_bytes\": %.0f, ",
                            r->limit_name, r->limit_ts, r->share, r->limit_read_ts, r->limit_compute_ts, r->read_bytes);
    if (r->limit_name)
        weft__strbuf_printf(t, "\"int8_dot_gops\": %.3f, \"l2_int8_gops\": %.3f, ", r->int8_gops, r->l2_int8_gops);
    bench_taken_json(t, &r->taken, r->n_reps);
    weft__strbuf_puts(t, "\"samples_ns\": [");
    for (int i = 0; i < r->n_reps; i++)
        weft__strbuf_printf(t, "%s%llu", i ? ", " : "", (unsigned long long)r->samples_ns[i]);
    if (r->limit_name) {
        weft__strbuf_puts(t, "], \"samples_limit_ts\": [");
        for (int i = 0; i < r->n_reps; i++) weft__strbuf_printf(t, "%s%.6f", i ? ", " : "", r->samples_limit_ts[i]);
    }
    weft__strbuf_puts(t, "], \"samples_taken\": [");
    for (int i = 0; i < r->n_reps; i++)
        if (isnan(r->samples_taken[i])) weft__strbuf_printf(t, "%snull", i ? ", " : "");
        else weft__strbuf_printf(t, "%s%.6f", i ? ", " : "", r->samples_taken[i]);
    weft__strbuf_puts(t, "], \"samples_ts\": [");
    for (int i = 0; i < r->n_reps; i++)
        weft__strbuf_printf(t, "%s%.6f", i ? ", " : "", bench_tokens(r) * 1e9 / (double)r->samples_ns[i]);
    weft__strbuf_puts(t, "]}");
}

static void print_md(const bench_row *r)
{
    char name[64], model[200], share[48] = "", taken[WEFT__TAKEN_ROOM];
    const weft_model_info *m = &r->info;
    bench_name(r, name);
    snprintf(model, sizeof model, "%s %s", m->name, m->type);
    if (r->limit_name) snprintf(share, sizeof share, " %5.1f %% of %-10s |", 100 * r->share, r->limit_name);
    printf("| ");
    print_clean(stdout, model, strlen(model), 30);
    printf(" | %10.2f MiB | %10.2f M | %-8s | %7d | %15s | %10.2f ± %.2f |%s %18s |\n", (double)m->n_bytes / 1048576,
           (double)m->n_params / 1e6, m->provider, m->n_threads, name, r->avg_ts, r->stddev_ts, share,
           bench_taken_cell(&r->taken, r->n_reps, taken));
}

/* A field of CSV (RFC 4180), whatever the text holds. */
static void print_field(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"') putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static void print_csv(const bench_row *r)
{
    const weft_model_info *m = &r->info;
    print_field(m->provider);
    putchar(',');
    print_field(r->model_file);
    printf(",\"%s %s\",%llu,%llu,%d,%d,%d,\"%s\",\"%s\",%d,%d,%d,%d,\"%s\",%.0f,%.0f,%.6f,%.6f", m->arch, m->type,
           (unsigned long long)m->n_bytes, (unsigned long long)m->n_params, r->n_batch, r->n_batch, m->n_threads,
           r->kv_type, r->kv_type, r->n_prompt, r->n_gen, r->n_depth, r->n_parallel, r->test_time, r->avg_ns,
           r->stddev_ns, r->avg_ts, r->stddev_ts);
    if (r->limit_name)
        printf(",%.6f,\"%s\",%.6f,%.6f,%.6f,%.6f", r->median_ts, r->limit_name, r->limit_ts, r->share, r->limit_read_ts,
               r->limit_compute_ts);
    bench_taken_csv(&r->taken, r->n_reps);
    printf("\n");
}

void bench_print_begin(enum bench_format format, int roofline)
{
    if (format == BENCH_JSON) printf("[\n");
    if (format == BENCH_CSV)
        printf("backends,model_filename,model_type,model_size,model_n_params,n_batch,n_ubatch,n_threads,type_k,type_v,"
               "n_prompt,n_gen,n_depth,"
               "n_parallel,test_time,avg_ns,stddev_ns,avg_ts,stddev_ts%s%s\n",
               roofline ? ",median_ts,limit,limit_ts,share,limit_read_ts,limit_compute_ts" : "", BENCH_TAKEN_CSV);
    if (format != BENCH_MD) return;
    printf("| %-30s | %14s | %12s | %-8s | %7s | %15s | %17s |%s %18s |\n", "model", "size", "params", "backend",
           "threads", "test", "t/s", roofline ? " median, share of limit |" : "", "taken");
    printf("| %.30s | -------------: | -----------: | :------- | ------: | --------------: | ----------------: |%s "
           "-----------------: |\n",
           "------------------------------", roofline ? " ---------------------: |" : "");
}

void bench_print_row(enum bench_format format, const bench_row *r, int first)
{
    if (format == BENCH_MD) print_md(r);
    else if (format == BENCH_CSV) print_csv(r);
    else {
        weft__strbuf t = {0};
        put_json(&t, r);
        if (!t.failed)
            printf("%s%s%s", format == BENCH_JSON && !first ? ",\n" : "", t.data, format == BENCH_JSONL ? "\n" : "");
        weft__strbuf_free(&t);
    }
    fflush(stdout);
}

void bench_print_end(enum bench_format format)
{
    if (format == BENCH_JSON) printf("\n]\n");
}

void bench_print_peaks(const weft_peaks *before, const weft_peaks *after, const weft__taken *of_before,
                       const weft__taken *of_after)
{
    char a[WEFT__TAKEN_ROOM], b[WEFT__TAKEN_ROOM];
    const struct {
        const char *name, *unit;
        double a, b;
    } rows[] = {
        {"memory read", "GB/s", before->read_gb_s, after->read_gb_s},
        {"int8 dot product", "GOPS", before->int8_dot_gops, after->int8_dot_gops},
        {"... from L2 cache", "GOPS", before->l2_int8_gops, after->l2_int8_gops},
        {"bf16 dot product", "GFLOPS", before->bf16_dot_gflops, after->bf16_dot_gflops},
        {"f32 FMA", "GFLOPS", before->f32_fma_gflops, after->f32_fma_gflops},
    };
    fprintf(stderr, "\nlimits of this machine, first and last:\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].a > 0)
            fprintf(stderr, "  %-18s %8.1f  %8.1f %s\n", rows[i].name, rows[i].a, rows[i].b, rows[i].unit);
    fprintf(stderr, "  taken meanwhile    %s, %s\n", weft__taken_text(of_before, weft__taken_above(of_before), a),
            weft__taken_text(of_after, weft__taken_above(of_after), b));
}
