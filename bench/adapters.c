// SPDX-License-Identifier: Apache-2.0
/* adapters.c: what adapters cost: steps with and without them, in turn, on a model of random weights.
 *
 * bench_adapters [--shape S] [--type T] [-t THREADS] [-r ROUNDS] [-d DEPTH] [--check] [TEXT]: only cases whose name
 * contains TEXT. Steps without adapters and with them alternate; what is printed are medians, and the median and the
 * quarters of how much longer a step with them takes than the mean of its two neighbours without: what a machine gives
 * wanders, from step to step. Beside it: the bound, and by how much more bytes are read, which is the least that a step
 * can cost where memory is the limit. At the end, how far the outputs of 8- and 4-bit adapters are from those in BF16
 * (8 bits: NMSE 1e-4 at most). One line of JSON per case with --json. A case of which others took more than 3 % of the
 * time is measured again while that helps, and then marked and not judged. --check: exit status 1 where a bound was
 * missed; 75 where none was, but one could not be judged. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/registry.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/taken.h"
#include "graph/batch.h"
#include "graph/graph.h"
#include "model/build.h"
#include "model/synthetic.h"
#include "median.h"
#include "random_adapter.h"

enum { MAX_STREAMS = 16, PREFILL = 512, PAGE_ROOM = PREFILL + 256, AGAIN = 3, NOT_JUDGED = 75 /* EX_TEMPFAIL */ };

typedef struct bench {
    weft__synthetic *model;
    weft_graph *graph;
    weft__provider *provider;
    weft__plan *plan;
    weft__plan_state *state;
    weft_kv_binding kv;
    int32_t n_pages;
    int32_t *pages; /* [MAX_STREAMS][n_pages] */
    weft__graph_batch batch;
    float *logits;
    int32_t depth, rounds, json, missed, not_judged, threads;
    int64_t n_vocab;
} bench;

typedef struct bench_case {
    const char *name;
    int streams, adapters, rank, all; /* all: seven linears of a layer, else q and v */
    uint32_t dtype;
    double limit; /* per cent, 0: none */
} bench_case;

static const bench_case cases[] = {
    {"4 streams, 4 adapters, rank 16, 8 bits", 4, 4, 16, 1, WEFT_Q8_0, 10},
    {"4 streams, 4 adapters, rank 16, 4 bits", 4, 4, 16, 1, WEFT_Q4_0, 6},
    {"4 streams, 4 adapters, rank 16, bf16", 4, 4, 16, 1, WEFT_BF16, 0},
    {"4 streams, 4 adapters, rank 32 on q and v, 8 bits", 4, 4, 32, 0, WEFT_Q8_0, 4},
    {"4 streams, 1 adapter, rank 16, 8 bits", 4, 1, 16, 1, WEFT_Q8_0, 4},
    {"1 stream, 1 adapter, rank 16, 8 bits", 1, 1, 16, 1, WEFT_Q8_0, 0},
    {"16 streams, 16 adapters, rank 16, 8 bits", 16, 16, 16, 1, WEFT_Q8_0, 15},
    {"16 streams, 16 adapters, rank 16, 4 bits", 16, 16, 16, 1, WEFT_Q4_0, 0},
    {"16 streams, 5 adapters, rank 16, 8 bits", 16, 5, 16, 1, WEFT_Q8_0, 0},
    {"prompt of 512, 1 adapter, rank 16, 8 bits", 0, 1, 16, 1, WEFT_Q8_0, 0},
};

static void die(const char *what, const weft_error *err)
{
    fprintf(stderr, "bench_adapters: %s%s%s\n", what, err ? ": " : "", err ? err->message : "");
    exit(1);
}

static void *need(void *p)
{
    if (!p) die("out of memory", NULL);
    return p;
}

/* ---- the model ---- */

static void bench_open(bench *b, const char *shape, uint32_t dtype, const char *options)
{
    weft_error err = {0};
    weft__source src;
    weft__hparams hp;
    weft__build build = {0};
    if (weft__synthetic_create(shape, dtype, NULL, NULL, &b->model, &err)) die("model", &err);
    weft__synthetic_source(b->model, &src);
    if (weft__model_build(&src, 0, NULL, &hp, &build, &b->graph, &err)) die("graph", &err);
    b->n_vocab = hp.n_vocab;
    weft_backend_info info = {.size = sizeof info};
    if (weft__provider_open("cpu", options, &b->provider, &err)) die("provider", &err);
    if (b->provider->api->describe(b->provider->backend, &info, &err)) die("provider", &err);
    b->threads = info.n_units;
    weft__plan_options o = {
        .max_rows = PREFILL, .max_wanted = MAX_STREAMS, .providers = &b->provider, .n_providers = 1};
    if (weft__plan_create(b->graph, &o, &b->plan, &err)) die("plan", &err);
    if (weft__plan_state_new(b->plan, &b->state, &err)) die("plan", &err);
    const weft_kv_group *g = &b->graph->kv_groups[0];
    if (b->graph->n_kv_groups != 1) die("a shape with one kind of attention is needed", NULL);
    b->n_pages = (PAGE_ROOM + b->depth) / g->page_tokens + 1;
    uint64_t page_bytes = weft_kv_page_elems(g) * 2;
    size_t n = (size_t)b->n_pages * MAX_STREAMS;
    b->kv = (weft_kv_binding){need(weft__alloc_zero(n, page_bytes)), page_bytes, WEFT_F16, (int32_t)n};
    b->pages = need(weft__alloc_array(n, sizeof *b->pages));
    for (size_t i = 0; i < n; i++) b->pages[i] = (int32_t)i;
    b->logits = need(weft__alloc_array((size_t)(MAX_STREAMS * b->n_vocab), sizeof *b->logits));
    if (weft__graph_batch_init(&b->batch, PREFILL, hp.d_model, &err)) die("rows", &err);
}

static void bench_close(bench *b)
{
    weft__plan_state_free(&b->state);
    weft__plan_destroy(&b->plan);
    weft__provider_close(&b->provider);
    weft__graph_destroy(&b->graph);
    weft__synthetic_destroy(&b->model);
    weft__free(b->kv.data);
    weft__free(b->pages);
    weft__free(b->logits);
    weft__graph_batch_free(&b->batch);
}

/* One row of each stream, or a prompt (streams 0), at the depth; adapters are given out in turn. Returns seconds. */
static double step(bench *b, int streams, weft_adapter *const *adapters, int n_adapters)
{
    const int32_t *tables[MAX_STREAMS];
    weft__graph_batch_clear(&b->batch);
    for (int32_t s = 0, row = 0; s < (streams ? streams : 1); s++) {
        tables[s] = b->pages + (ptrdiff_t)s * b->n_pages;
        weft__graph_batch_add_sequence(&b->batch, (weft_seq_view){&tables[s], &b->n_pages, NULL},
                                       n_adapters ? adapters[s % n_adapters] : NULL);
        for (int32_t i = 0, n = streams ? 1 : PREFILL; i < n; i++, row++)
            weft__graph_batch_add_row(&b->batch, (row * 37 + 5) % (int32_t)b->n_vocab, b->depth + i,
                                      i == n - 1 ? WEFT_WANT_LOGITS : 0);
    }
    weft_error err = {0};
    float *out[2] = {b->logits, b->batch.hidden};
    uint64_t begin = weft__clock_ns();
    if (weft__plan_run(b->state, &b->batch.rows, &b->kv, out, &err)) die("step", &err);
    return (double)(weft__clock_ns() - begin) * 1e-9;
}

/* ---- adapters ---- */

static int is_target(const char *name, int all)
{
    static const char *const seven[] = {"attn_q.",   "attn_v.", "attn_k.",  "attn_output.",
                                        "ffn_gate.", "ffn_up.", "ffn_down."};
    for (int i = 0; i < (all ? 7 : 2); i++)
        if (strstr(name, seven[i])) return 1;
    return 0;
}

/* Random values, the same for every adapter of a scale; each is packed for itself. */
static weft_adapter *adapter_new(bench *b, int rank, int all, uint32_t dtype, float scale, double *seconds)
{
    const weft_graph *g = weft__plan_graph(b->plan);
    weft_lora *lora = need(weft__alloc_zero((size_t)g->n_weights, sizeof *lora));
    weft_adapter *a;
    weft_error err = {0};
    for (int32_t i = 0; i < g->n_weights; i++) {
        const weft_weight *w = &g->weights[i];
        if (!is_target(w->name, all)) continue;
        int64_t k = w->shape.d[0], n = w->shape.d[1];
        float *x = need(random_adapter(k, n, rank, (uint64_t)i));
        lora[i] = (weft_lora){.a = x, .b = x + k * rank, .rank = rank, .dtype = WEFT_F32, .scale = scale};
    }
    weft_adapter_spec spec = {.size = sizeof spec, .n_weights = g->n_weights, .lora = lora, .dtype = dtype};
    uint64_t begin = weft__clock_ns();
    if (weft__plan_adapter_new(b->plan, &spec, &a, &err)) die("adapter", &err);
    *seconds = (double)(weft__clock_ns() - begin) * 1e-9;
    for (int32_t i = 0; i < g->n_weights; i++) weft__free((void *)lora[i].a);
    weft__free(lora);
    return a;
}

/* Bytes of the matrices that a step of the base multiplies by. */
static double base_bytes(const bench *b)
{
    const weft_graph *g = weft__plan_graph(b->plan);
    double n = 0;
    for (int32_t i = 0; i < g->n_nodes; i++)
        for (int32_t j = 0; g->nodes[i].op == WEFT_OP_LINEAR && j < g->nodes[i].n_w; j++) {
            const weft_weight *w = &g->weights[g->nodes[i].w[j]];
            n += (double)w->row_bytes * (double)w->shape.d[1];
        }
    return n;
}

/* Steps without and with adapters in turn, a last one without; the first two rounds warm up. t, with, more: [rounds],
 * more: in per cent. */
static void alternate(bench *b, const bench_case *c, weft_adapter *const *a, int rounds, double *t, double *with,
                      double *more)
{
    double before = 0, after;
    for (int i = -2; i < rounds; i++, before = after) {
        if (i == -2) before = step(b, c->streams, NULL, 0);
        double one = step(b, c->streams, a, c->adapters);
        after = step(b, c->streams, NULL, 0);
        if (i < 0) continue;
        t[i] = (before + after) / 2;
        with[i] = one;
        more[i] = 100 * (one / t[i] - 1);
    }
}

/* alternate, again while that helps; what was taken of the time that counts. */
static weft__taken alternate_undisturbed(bench *b, const bench_case *c, weft_adapter *const *a, int rounds, double *t,
                                         double *with, double *more)
{
    weft__taken_again again = {.left = AGAIN};
    weft__taken taken;
    do {
        weft__taken_mark from, to;
        weft__taken_now(&from);
        alternate(b, c, a, rounds, t, with, more);
        weft__taken_now(&to);
        taken = weft__taken_between(&from, &to, b->threads);
    } while (weft__taken_again_wanted(&again, &taken));
    return taken;
}

/* Holds the cost against the case's limit, unless too much was taken of the time. */
static void judge(bench *b, const bench_case *c, double cost, const weft__taken *taken)
{
    char text[WEFT__TAKEN_ROOM];
    if (c->limit <= 0) return;
    if (weft__taken_above(taken)) {
        fprintf(stderr, "bench_adapters: %s: not judged: taken %s\n", c->name, weft__taken_text(taken, 0, text));
        b->not_judged++;
    } else if (cost > c->limit) {
        fprintf(stderr, "bench_adapters: %s: %.2f %%, at most %.0f are wanted\n", c->name, cost, c->limit);
        b->missed++;
    }
}

static void run_case(bench *b, const bench_case *c)
{
    weft_adapter *a[MAX_STREAMS];
    char limit[32] = "", text[WEFT__TAKEN_ROOM];
    double *t = need(weft__alloc_array(3 * (size_t)b->rounds + 6, sizeof *t)), *with = t + b->rounds + 2,
           *more = with + b->rounds + 2, pack = 0;
    int rounds = c->streams ? b->rounds : b->rounds / 10 + 2;
    for (int i = 0; i < c->adapters; i++) a[i] = adapter_new(b, c->rank, c->all, c->dtype, 2, &pack);
    const weft__taken taken = alternate_undisturbed(b, c, a, rounds, t, with, more);
    double mb = (double)weft__plan_adapter_bytes(a[0]) * 1e-6, bytes = 100 * c->adapters * mb * 1e6 / base_bytes(b),
           cost = median(more, rounds);
    double without_ms = 1e3 * median(t, rounds), with_ms = 1e3 * median(with, rounds), low = more[rounds / 4],
           high = more[rounds - 1 - rounds / 4];
    judge(b, c, cost, &taken);
    if (c->limit > 0) snprintf(limit, sizeof limit, ", at most %.0f", c->limit);
    if (b->json)
        printf("{\"case\":\"%s\",\"without_ms\":%.4f,\"with_ms\":%.4f,\"cost_percent\":%.2f,\"quarters_percent\":[%.2f,"
               "%.2f],\"limit_percent\":%.0f,"
               "\"bytes_percent\":%.2f,\"adapter_mb\":%.2f,\"pack_ms\":%.1f,%s,\"disturbed\":%d}\n",
               c->name, without_ms, with_ms, cost, low, high, c->limit, bytes, mb, 1e3 * pack,
               weft__taken_json(&taken, text), weft__taken_above(&taken));
    else
        printf("%-50s %7.2f ms %7.2f ms %+5.1f %% (%+.1f to %+.1f)%s; bytes %+.1f %%; %.1f MB each, packed in %.0f ms; "
               "taken %s\n",
               c->name, without_ms, with_ms, cost, low, high, limit, bytes, mb, 1e3 * pack,
               weft__taken_text(&taken, weft__taken_above(&taken), text));
    fflush(stdout);
    for (int i = 0; i < c->adapters; i++) weft__plan_adapter_free(&a[i]);
    weft__free(t);
}

/* Sum of squared differences over the sum of squares of b. */
static double nmse(const float *a, const float *b, size_t n)
{
    double error = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        error += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        size += (double)b[i] * b[i];
    }
    return error / size;
}

/* Logits of four streams with an adapter in 8 and 4 bits, and with none, against BF16. The adapter is strong enough
 * that to have none, or another, is more than 8 bits may cost; twenty times as strong as those above, as random weights
 * are hardly moved by less. */
static void quality(bench *b)
{
    static const uint32_t types[] = {WEFT_BF16, WEFT_Q8_0, WEFT_Q4_0};
    const double most = 1e-4;
    size_t n = (size_t)(4 * b->n_vocab);
    float *bf16 = need(weft__alloc_array(n, sizeof *bf16));
    for (int i = 0; i < 3; i++) {
        double seconds;
        weft_adapter *a = adapter_new(b, 16, 1, types[i], 40, &seconds);
        step(b, 4, &a, 1);
        weft__plan_adapter_free(&a);
        if (i == 0) memcpy(bf16, b->logits, n * sizeof *bf16);
        double error = nmse(b->logits, bf16, n);
        b->missed += types[i] == WEFT_Q8_0 && !(error <= most);
        if (i)
            printf(b->json ? "{\"case\":\"NMSE of %s\",\"nmse\":%.3g}\n" : "NMSE of logits, %s against BF16: %.2g\n",
                   weft_dtype_describe(types[i]).name, error);
    }
    step(b, 4, NULL, 0);
    double effect = nmse(b->logits, bf16, n);
    b->missed += !(effect > 2 * most);
    printf(b->json ? "{\"case\":\"NMSE of none\",\"nmse\":%.3g}\n" : "NMSE of logits, no adapter against BF16: %.2g\n",
           effect);
    weft__free(bf16);
}

int main(int argc, char **argv)
{
    const char *shape = "tinyllama-1.1b", *only = "", *threads = "0";
    char options[64];
    int check = 0;
    uint32_t dtype = WEFT_Q4_0;
    bench b = {.depth = 64, .rounds = 100};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--json")) b.json = 1;
        else if (!strcmp(argv[i], "--check")) check = 1;
        else if (!strcmp(argv[i], "--shape")) shape = value, i++;
        else if (!strcmp(argv[i], "--type"))
            dtype = !strcmp(value, "q8_0") ? WEFT_Q8_0 : !strcmp(value, "q4_k") ? WEFT_Q4_K : WEFT_Q4_0, i++;
        else if (!strcmp(argv[i], "-t")) threads = value, i++;
        else if (!strcmp(argv[i], "-r")) b.rounds = atoi(value) > 0 ? atoi(value) : 1, i++;
        else if (!strcmp(argv[i], "-d")) b.depth = atoi(value) > 0 ? atoi(value) : 0, i++;
        else only = argv[i];
    }
    snprintf(options, sizeof options, "threads=%.20s", threads);
    bench_open(&b, shape, dtype, options);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strstr(cases[i].name, only)) run_case(&b, &cases[i]);
    if (strstr("NMSE", only)) quality(&b);
    bench_close(&b);
    return !check ? 0 : b.missed ? 1 : b.not_judged ? NOT_JUDGED : 0;
}
