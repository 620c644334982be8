// SPDX-License-Identifier: Apache-2.0
/* attention.c: attention alone, at depth, against what memory gives and what the units multiply in the same run (make
 * bench-attention).
 *
 * bench_attention [--synthetic SHAPE,..] [-d DEPTH,..] [--kv-type T,..] [-t THREADS] [-r ROUNDS] [--json] [--check]
 *     SHAPE  of the heads, layers and pages (qwen3-4b,llama-3.1-8b)
 *     DEPTH  positions before the rows of the step (128,4096,16384)
 *     T      of keys and values, measured in turns (f16)
 * A graph has the attentions of the shape and what they read, but no matrices; a provider runs it as it runs a model,
 * and the step's profile says what the attentions took, waiting for the last thread included. `generation` is one row
 * over all layers, held against a pure read of its keys and values; a step comes between two measurements of the
 * limits, whose reads leave nothing of the pages in a cache. `prompt` is a chunk of 512 rows over a few layers, held
 * against F32 multiply-adds. A row of which others took more than 3 % of the time is measured again while that helps,
 * and then marked and not judged. --check: exit status 1 where F16 is below the bounds (BOUNDS); 75 where nothing is,
 * but one could not be judged. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/registry.h"
#include "base/alloc.h"
#include "base/random.h"
#include "base/taken.h"
#include "graph/batch.h"
#include "graph/graph.h"
#include "mem/mem.h"
#include "median.h"
#include "model/build.h"
#include "model/synthetic.h"

enum { CHUNK = 512, PROMPT_LAYERS = 4, MOST = 8, MOST_ROUNDS = 200, N_TOKENS = 64, AGAIN = 1, NOT_JUDGED = 75 };

/* What --check wants of F16: of a pure read from this depth on, and of the multiply-adds of a prompt. */
static const struct {
    int32_t depth;
    double generation, prompt;
} BOUNDS = {4096, 0.85, 0.75};

/* A graph with its plan. */
typedef struct stage {
    weft_graph *graph;
    weft__plan *plan;
    weft__plan_state *state;
    weft__profile *profile;
} stage;

typedef struct bench {
    const char *shape;
    weft__synthetic *model;
    weft_graph *of; /* the model's */
    weft__provider *provider;
    int32_t threads, rounds, json, n_rows, check, missed, not_judged;
    weft_kv_group group;
    weft_buffer *table; /* rows of N_TOKENS tokens, of any width up to that of the queries */
    stage writing, generation, prompt;
    int32_t n_pages, *pages;
    weft__graph_batch batch;
    float *out; /* [CHUNK][width] */
} bench;

/* Keys and values of one type. */
typedef struct cache {
    uint32_t type;
    weft_buffer *buffer;
    weft_kv_binding kv;
} cache;

/* Of one type, round by round: seconds, and the share of the limit. */
typedef struct figures {
    double seconds[MOST_ROUNDS], share[MOST_ROUNDS], amount, limit[MOST_ROUNDS];
} figures;

static void die(const char *what, const weft_error *err)
{
    fprintf(stderr, "bench_attention: %s%s%s\n", what, err ? ": " : "", err ? err->message : "");
    exit(err ? 1 : 2);
}

static void *need(void *p)
{
    if (!p) die("out of memory", NULL);
    return p;
}

/* ---- graphs ---- */

static weft_tensor_id embedding(bench *b, weft__builder *builder, int64_t width, const char *name)
{
    weft_weight w = {.dtype = WEFT_F32,
                     .shape = {2, 0, {width, N_TOKENS}},
                     .buffer = b->table,
                     .row_bytes = (uint64_t)width * sizeof(float)};
    snprintf(w.name, sizeof w.name, "%s", name);
    return weft__op_embed(builder, weft__builder_weight(builder, &w), 1);
}

/* The first n_layers layers: keys and values are written; with `attend`, the queries attend, and the sum of what comes
 * of it is the output. */
static stage stage_open(bench *b, int32_t n_layers, int attend)
{
    stage s = {0};
    weft_error err = {0};
    weft__builder *builder;
    const weft_kv_group *g = &b->group;
    if (weft__builder_create(&builder, &err)) die("graph", &err);
    (void)weft__builder_kv_group(builder, g);
    weft_attr_attention at = {0};
    weft_tensor_id q = WEFT_NONE, k = embedding(b, builder, (int64_t)g->n_kv_heads * g->head_dim_k, "k"),
                   v = embedding(b, builder, (int64_t)g->n_kv_heads * g->head_dim_v, "v"), sum = WEFT_NONE;
    for (int32_t i = 0; i < b->of->n_nodes; i++) {
        if (b->of->nodes[i].op != WEFT_OP_ATTENTION) continue;
        at = b->of->nodes[i].attr.attention;
        if (at.kv.layer >= n_layers) continue;
        if (q == WEFT_NONE) q = embedding(b, builder, (int64_t)at.n_heads * at.head_dim_k, "q");
        weft_tensor_id order = weft__op_kv_write(builder, at.kv.layer, k, v, at.kv);
        if (!attend) continue;
        weft_tensor_id y = weft__op_attention(builder, at.kv.layer, q, order, &at);
        sum = sum == WEFT_NONE ? y : weft__op_add(builder, at.kv.layer, sum, y);
    }
    weft__builder_output(builder, attend ? sum : q);
    if (weft__builder_finish(&builder, &s.graph, &err)) die("graph", &err);
    weft__plan_options o = {.max_rows = CHUNK, .max_wanted = 1, .providers = &b->provider, .n_providers = 1};
    if (weft__plan_create(s.graph, &o, &s.plan, &err)) die("plan", &err);
    if (weft__plan_state_new(s.plan, &s.state, &err)) die("plan", &err);
    if (weft__profile_new(s.plan, &s.profile, &err)) die("profile", &err);
    return s;
}

static void stage_close(stage *s)
{
    weft__profile_free(&s->profile);
    weft__plan_state_free(&s->state);
    weft__plan_destroy(&s->plan);
    weft__graph_destroy(&s->graph);
}

static void bench_open(bench *b, const char *shape, int32_t deepest)
{
    weft_error err = {0};
    weft__source src;
    weft__hparams hp;
    weft__build build = {0};
    weft__rng rng;
    b->shape = shape;
    if (weft__synthetic_outline(shape, WEFT_F16, &b->model, &err)) die("model", &err);
    weft__synthetic_source(b->model, &src);
    if (weft__model_build(&src, 0, NULL, &hp, &build, &b->of, &err)) die("graph", &err);
    if (b->of->n_kv_groups != 1) die("a shape with one kind of attention is needed", NULL);
    b->group = b->of->kv_groups[0];
    const size_t width = (size_t)hp.n_heads * (size_t)b->group.head_dim_k;
    const weft_buffer_spec spec = {sizeof spec, WEFT_DOMAIN_HOST, N_TOKENS * width * sizeof(float), 64, 0};
    if (weft__mem_create(&spec, &b->table, &err)) die("queries", &err);
    weft__rng_seed(&rng, 1);
    for (size_t i = 0; i < N_TOKENS * width; i++) ((float *)b->table->data)[i] = (float)weft__rng_normal(&rng);
    b->out = need(weft__alloc_array(CHUNK * width, sizeof *b->out));
    b->n_pages = (deepest + CHUNK) / b->group.page_tokens + 1;
    b->pages = need(weft__alloc_array((size_t)b->n_pages, sizeof *b->pages));
    for (int32_t i = 0; i < b->n_pages; i++) b->pages[i] = i;
    if (weft__graph_batch_init(&b->batch, CHUNK, 0, &err)) die("rows", &err);
    b->writing = stage_open(b, b->group.n_layers, 0);
    b->generation = stage_open(b, b->group.n_layers, 1);
    b->prompt = stage_open(b, b->group.n_layers < PROMPT_LAYERS ? b->group.n_layers : PROMPT_LAYERS, 1);
}

static void bench_close(bench *b)
{
    stage_close(&b->writing);
    stage_close(&b->generation);
    stage_close(&b->prompt);
    weft__graph_destroy(&b->of);
    weft__synthetic_destroy(&b->model);
    weft__graph_batch_free(&b->batch);
    weft_buffer_release(&b->table);
    weft__free(b->out);
    weft__free(b->pages);
}

/* ---- steps ---- */

/* n rows from position `first` on, recorded in the stage's profile. */
static void step(bench *b, stage *s, const cache *c, int32_t first, int32_t n)
{
    weft_error err = {0};
    const int32_t *table = b->pages;
    float *out = b->out;
    weft__graph_batch_clear(&b->batch);
    weft__graph_batch_add_sequence(&b->batch, (weft_seq_view){&table, &b->n_pages, NULL, NULL}, NULL);
    for (int32_t i = first; i < first + n; i++)
        weft__graph_batch_add_row(&b->batch, (int32_t)((uint32_t)i * 2654435761u >> 26), i, WEFT_WANT_OUTPUTS);
    weft__profile_clear(s->profile);
    if (weft__profile_run(s->profile, s->state, &b->batch.rows, &c->kv, &out, &err)) die("step", &err);
}

/* What the attentions of the last step took, and what they must read and multiply. */
static double attention_seconds(const stage *s, uint32_t type, int32_t first, int32_t n, weft__graph_cost *cost)
{
    const weft_graph *g = weft__plan_graph(s->plan);
    const weft__graph_seq_rows rows = {first, n, 0};
    const weft__graph_load load = {.n_rows = n, .n_seqs = 1, .seqs = &rows, .kv_dtype = type, .wants_outputs = 1};
    double ns = 0;
    *cost = (weft__graph_cost){0};
    for (int32_t i = 0; i < s->profile->n_ops; i++) {
        const weft__profile_op *op = &s->profile->ops[i];
        if (op->node == WEFT_NONE || g->nodes[op->node].op != WEFT_OP_ATTENTION) continue;
        const weft__graph_cost one = weft__graph_node_cost(g, op->node, &load);
        ns += (double)(op->end_ns - op->begin_ns);
        cost->kv_bytes += one.kv_bytes;
        cost->attention_ops += one.attention_ops;
    }
    return ns * 1e-9;
}

static cache cache_open(bench *b, uint32_t type)
{
    weft_error err = {0};
    cache c = {.type = type};
    const uint64_t page_bytes = weft_kv_layer_at(type, &b->group, b->group.n_layers);
    const weft_buffer_spec spec = {sizeof spec, WEFT_DOMAIN_HOST, (uint64_t)b->n_pages * page_bytes, 64,
                                   WEFT_BUFFER_ZERO | WEFT_BUFFER_HUGE};
    if (weft__mem_create(&spec, &c.buffer, &err)) die("keys and values", &err);
    c.kv = (weft_kv_binding){c.buffer->data, page_bytes, type, b->n_pages};
    for (int32_t i = 0; i + CHUNK <= b->n_pages * b->group.page_tokens; i += CHUNK) step(b, &b->writing, &c, i, CHUNK);
    return c;
}

/* ---- what is printed ---- */

static void judge(bench *b, const char *what, double share, double bound, const weft__taken *taken)
{
    char text[WEFT__TAKEN_ROOM];
    if (!(share < bound)) return;
    if (weft__taken_above(taken)) {
        fprintf(stderr, "bench_attention: %s: not judged: taken %s\n", what, weft__taken_text(taken, 0, text));
        b->not_judged++;
    } else {
        fprintf(stderr, "bench_attention: %s: %.0f %% of its limit, at least %.0f are wanted\n", what, 100 * share,
                100 * bound);
        b->missed++;
    }
}

static void print_row(bench *b, const char *row, int32_t depth, const cache *c, figures *f, int n,
                      const weft__taken *taken)
{
    const int is_prompt = !strcmp(row, "prompt"), marked = weft__taken_above(taken);
    char type[WEFT_KV_NAME_MAX], text[WEFT__TAKEN_ROOM], what[128];
    weft_kv_type_name(c->type, type);
    const double seconds = median(f->seconds, n), limit = median(f->limit, n), rate = f->amount / seconds * 1e-9,
                 share = median(f->share, n), low = f->share[n / 4], high = f->share[n - 1 - n / 4];
    if (b->json)
        printf(
            "%s\n {\"shape\": \"%s\", \"row\": \"%s\", \"depth\": %d, \"kv_type\": \"%s\", \"ms\": %.4f, \"%s\": %.2f, "
            "\"limit\": %.2f, \"share\": %.4f, \"quarters\": [%.4f, %.4f], \"disturbed\": %s, %s}",
            b->n_rows++ ? "," : "[", b->shape, row, depth, type, 1e3 * seconds, is_prompt ? "gflops" : "gb_s", rate,
            limit, share, low, high, marked ? "true" : "false", weft__taken_json(taken, text));
    else
        printf("| %-12s | %-10s | %6d | %-5s | %9.3f | %7.1f %-6s | %7.1f | %5.1f %% | %.1f to %.1f | %s |\n", b->shape,
               row, depth, type, 1e3 * seconds, rate, is_prompt ? "GFLOPS" : "GB/s", limit, 100 * share, 100 * low,
               100 * high, weft__taken_text(taken, marked, text));
    fflush(stdout);
    snprintf(what, sizeof what, "%s, %s at depth %d", b->shape, row, depth);
    if (b->check && c->type == WEFT_F16 && (is_prompt || depth >= BOUNDS.depth))
        judge(b, what, share, is_prompt ? BOUNDS.prompt : BOUNDS.generation, taken);
}

/* ---- rows ---- */

static void limits(bench *b, weft_peaks *p)
{
    weft_error err = {0};
    *p = (weft_peaks){.size = sizeof *p, .brief = 1};
    if (b->provider->api->measure(b->provider->backend, p, &err)) die("limits", &err);
}

/* A round of one type: a step between two measurements; the second one is left in *p. What memory gives is held
 * against the mean of both, what units multiply against the better, as a prompt is one long step. */
static void measure(bench *b, int is_prompt, const cache *c, int32_t depth, weft_peaks *p, int i, figures *f)
{
    stage *s = is_prompt ? &b->prompt : &b->generation;
    const int32_t n = is_prompt ? CHUNK : 1;
    const weft_peaks before = *p;
    weft__graph_cost cost;
    step(b, s, c, depth, n);
    limits(b, p);
    f->seconds[i] = attention_seconds(s, c->type, depth, n, &cost);
    f->amount = is_prompt ? cost.attention_ops : cost.kv_bytes;
    f->limit[i] =
        is_prompt ? fmax(before.f32_fma_gflops, p->f32_fma_gflops) : 2 / (1 / before.read_gb_s + 1 / p->read_gb_s);
    f->share[i] = f->amount / f->seconds[i] * 1e-9 / f->limit[i];
}

static void run_rows(bench *b, int is_prompt, const cache *c, int n_types, int32_t depth)
{
    const int n = is_prompt ? b->rounds / 4 + 1 : b->rounds;
    figures *f = need(weft__alloc_zero((size_t)n_types, sizeof *f));
    weft__taken_again again = {.left = AGAIN};
    weft__taken taken;
    weft_peaks p;
    do {
        weft__taken_mark from, to;
        weft__taken_now(&from);
        limits(b, &p);
        for (int i = -1; i < n; i++) /* the first one warms up */
            for (int t = 0; t < n_types; t++) measure(b, is_prompt, &c[t], depth, &p, i < 0 ? 0 : i, &f[t]);
        weft__taken_now(&to);
        taken = weft__taken_between(&from, &to, b->threads);
    } while (weft__taken_again_wanted(&again, &taken));
    for (int t = 0; t < n_types; t++) print_row(b, is_prompt ? "prompt" : "generation", depth, &c[t], &f[t], n, &taken);
    weft__free(f);
}

static void run_shape(bench *b, const char *shape, const uint32_t *types, int n_types, const int32_t *depths,
                      int n_depths)
{
    cache c[MOST];
    int32_t deepest = 0;
    for (int i = 0; i < n_depths; i++) deepest = depths[i] > deepest ? depths[i] : deepest;
    bench_open(b, shape, deepest);
    for (int t = 0; t < n_types; t++) c[t] = cache_open(b, types[t]);
    for (int is_prompt = 0; is_prompt < 2; is_prompt++)
        for (int i = 0; i < n_depths; i++) run_rows(b, is_prompt, c, n_types, depths[i]);
    for (int t = 0; t < n_types; t++) weft_buffer_release(&c[t].buffer);
    bench_close(b);
}

static void print_head(bench *b)
{
    weft_backend_info info = {.size = sizeof info};
    weft_error err = {0};
    weft_peaks p = {.size = sizeof p};
    if (b->provider->api->describe(b->provider->backend, &info, &err)) die("provider", &err);
    b->threads = info.n_units;
    if (b->provider->api->measure(b->provider->backend, &p, &err)) die("limits", &err);
    if (b->json) return;
    printf("%s, %d threads: read %.1f GB/s, F32 multiply-adds %.0f GFLOPS, BF16 dot %.0f\n\n", info.device, b->threads,
           p.read_gb_s, p.f32_fma_gflops, p.bf16_dot_gflops);
    printf(
        "| shape        | row        |  depth | type  |        ms |           rate |   limit |   share | quarters     "
        "| taken |\n| --- | --- | ---: | --- | ---: | ---: | ---: | ---: | --- | --- |\n");
}

/* ---- options ---- */

/* Cuts `list` at its commas, in place. */
static int split(char *list, char **items)
{
    int n = 0;
    for (char *next, *at = list; at && n < MOST; at = next) {
        if ((next = strchr(at, ','))) *next++ = 0;
        items[n++] = at;
    }
    return n;
}

int main(int argc, char **argv)
{
    char shapes[] = "qwen3-4b,llama-3.1-8b", at[] = "128,4096,16384", kinds[] = "f16", options[64],
         *lists[3] = {shapes, at, kinds}, *items[3][MOST], *threads = "0";
    int n[3];
    int32_t depths[MOST];
    uint32_t types[MOST];
    weft_error err = {0};
    bench b = {.rounds = 15};
    for (int i = 1; i < argc; i++) {
        char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--json")) b.json = 1;
        else if (!strcmp(argv[i], "--check")) b.check = 1;
        else if (!strcmp(argv[i], "--synthetic")) lists[0] = value, i++;
        else if (!strcmp(argv[i], "-d")) lists[1] = value, i++;
        else if (!strcmp(argv[i], "--kv-type")) lists[2] = value, i++;
        else if (!strcmp(argv[i], "-t")) threads = value, i++;
        else if (!strcmp(argv[i], "-r")) b.rounds = atoi(value), i++;
        else die("an option that is none (the head of bench/attention.c has them)", NULL);
    }
    if (b.rounds < 1 || b.rounds > MOST_ROUNDS) die("-r: 1 to 200 rounds", NULL);
    for (int i = 0; i < 3; i++) n[i] = split(lists[i], items[i]);
    for (int i = 0; i < n[1]; i++)
        if ((depths[i] = atoi(items[1][i])) < 0 || depths[i] > 1 << 20) die("-d: 0 to 1048576", NULL);
    for (int i = 0; i < n[2]; i++)
        if (weft_kv_type_parse(items[2][i], &types[i], &err)) die("--kv-type", &err);
    snprintf(options, sizeof options, "threads=%.20s", threads);
    if (weft__provider_open("cpu", options, &b.provider, &err)) die("provider", &err);
    print_head(&b);
    for (int i = 0; i < n[0]; i++) run_shape(&b, items[0][i], types, n[2], depths, n[1]);
    if (b.json) printf("\n]\n");
    weft__provider_close(&b.provider);
    return b.missed ? 1 : b.not_judged ? NOT_JUDGED : 0;
}
