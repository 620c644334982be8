// SPDX-License-Identifier: Apache-2.0
/* kv_report.c: the figures of weft eval kv, for people and as JSON (kv_quality.h). */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "kv_quality.h"
#include "terminal.h"

void kv_quality_free(kv_quality *q)
{
    weft__eval_totals_free(&q->all);
    weft__eval_totals_free(&q->floor);
    for (int i = 0; i < KV_DEPTHS; i++) weft__eval_totals_free(&q->by_depth[i]);
}

int32_t kv_depth_begin(int depth)
{
    return depth ? KV_FIRST_DEPTH << (depth - 1) : 0;
}

int kv_depth_of(int32_t position)
{
    int depth = 0;
    while (depth + 1 < KV_DEPTHS && kv_depth_begin(depth + 1) <= position) depth++;
    return depth;
}

kv_figures kv_figures_of(weft__eval_totals *s)
{
    weft__eval_totals_sort(s);
    return (kv_figures){.kld = s->kld / (double)s->n,
                        .p999 = weft__eval_quantile(s->klds, s->n, 0.999),
                        .most = (double)s->klds[s->n - 1],
                        .same_top = (double)s->same_top / (double)s->n};
}

int kv_gate_kept(kv_quality *q)
{
    const kv_figures f = kv_figures_of(&q->all);
    return f.kld <= q->max_kld && f.same_top >= q->min_top;
}

static void print_rates(const char *name, const kv_rate *rates, int n, const char *type)
{
    if (n) printf("\n%8s  %16s  %16s\n", "depth", name, "");
    if (n) printf("%8s  %16s  %16s\n", "", "f16", type);
    for (int i = 0; i < n; i++)
        printf("%8d  %8d of %4d  %8d of %4d\n", rates[i].depth, rates[i].hits[KV_BASE], rates[i].n,
               rates[i].hits[KV_TYPE], rates[i].n);
}

void kv_print(kv_quality *q)
{
    const kv_figures f = kv_figures_of(&q->all);
    printf("%s against f16: %lld tokens in %d context%s of at most %d\n\n", q->type, (long long)q->all.n, q->n_texts,
           q->n_texts == 1 ? "" : "s", q->n_ctx);
    printf("Mean    KLD: %10.6f   (gate: at most %g)\n", f.kld, q->max_kld);
    printf("99.9%%   KLD: %10.6f\n", f.p999);
    printf("Maximum KLD: %10.6f\n", f.most);
    printf("Same top p : %9.3f%%   (gate: at least %g%%)\n", 100 * f.same_top, 100 * q->min_top);
    if (q->floor.n) {
        const kv_figures r = kv_figures_of(&q->floor);
        printf("f32, for comparison: mean KLD %.6f, 99.9%% KLD %.6f, same top p %.3f%%\n", r.kld, r.p999,
               100 * r.same_top);
    }
    printf("\n%18s  %8s  %10s  %10s  %10s\n", "depth", "tokens", "mean KLD", "99.9% KLD", "same top p");
    for (int i = 0; i < KV_DEPTHS; i++) {
        weft__eval_totals *s = &q->by_depth[i];
        if (!s->n) continue;
        const kv_figures d = kv_figures_of(s);
        printf("%8d .. %6d  %8lld  %10.6f  %10.6f  %9.3f%%\n", kv_depth_begin(i), kv_depth_begin(i + 1) - 1,
               (long long)s->n, d.kld, d.p999, 100 * d.same_top);
    }
    print_rates("pass keys found", q->passkey, q->n_passkey, q->type);
    print_rates("tokens copied", q->copy, q->n_copy, q->type);
    printf("\n%s\n", kv_gate_kept(q) ? "The gate is kept." : "The gate is exceeded.");
}

static void put_rates(weft__strbuf *t, const char *name, const kv_rate *rates, int n)
{
    weft__strbuf_printf(t, ", \"%s\": [", name);
    for (int i = 0; i < n; i++)
        weft__strbuf_printf(t, "%s{\"depth\": %d, \"n\": %d, \"base\": %d, \"type\": %d}", i ? ", " : "",
                            rates[i].depth, rates[i].n, rates[i].hits[KV_BASE], rates[i].hits[KV_TYPE]);
    weft__strbuf_puts(t, "]");
}

static void put_figures(weft__strbuf *t, weft__eval_totals *s)
{
    const kv_figures f = kv_figures_of(s);
    weft__strbuf_printf(t, "\"tokens\": %lld, \"kld_mean\": %.9f, \"kld_p999\": %.9f, \"kld_max\": %.9f",
                        (long long)s->n, f.kld, f.p999, f.most);
    weft__strbuf_printf(t, ", \"same_top\": %.6f", f.same_top);
}

weft_status kv_print_json(kv_quality *q, weft_error *err)
{
    weft__strbuf t = {0};
    weft__strbuf_puts(&t, "{\"model\": ");
    weft__json_write_string(&t, q->model, strlen(q->model));
    weft__strbuf_printf(&t, ", \"fingerprint\": \"%s\", \"kv_type\": ", q->fingerprint);
    weft__json_write_string(&t, q->type, strlen(q->type));
    weft__strbuf_printf(&t, ", \"base\": \"f16\", \"n_ctx\": %d, \"n_texts\": %d, ", q->n_ctx, q->n_texts);
    put_figures(&t, &q->all);
    weft__strbuf_printf(&t, ", \"max_kld\": %g, \"min_top\": %g, \"passed\": %s, \"by_depth\": [", q->max_kld,
                        q->min_top, kv_gate_kept(q) ? "true" : "false");
    for (int i = 0, n = 0; i < KV_DEPTHS; i++) {
        if (!q->by_depth[i].n) continue;
        weft__strbuf_printf(&t, "%s{\"from\": %d, ", n++ ? ", " : "", kv_depth_begin(i));
        put_figures(&t, &q->by_depth[i]);
        weft__strbuf_puts(&t, "}");
    }
    weft__strbuf_puts(&t, "]");
    if (q->floor.n) {
        weft__strbuf_puts(&t, ", \"f32\": {");
        put_figures(&t, &q->floor);
        weft__strbuf_puts(&t, "}");
    }
    put_rates(&t, "passkey", q->passkey, q->n_passkey);
    put_rates(&t, "copy", q->copy, q->n_copy);
    weft__strbuf_puts(&t, "}\n");
    return print_whole(&t, err);
}
