/* cmd_bench.c: weft bench: prompt reading and generation over grids of sizes, against the limits measured in the same run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "bench.h"
#include "commands.h"
#include "options.h"
#include "terminal.h"

struct bench_options {
    struct int_list n_prompt, n_gen, n_depth, parallel, threads;
    int32_t reps;
    int roofline, no_warmup;
    const char *format_name, *synthetic, *type, *kv_type;
    enum bench_format format;
};

/* What one row runs on. */
struct bench_case {
    weft_model *model;
    weft_session *sessions[LIST_MAX];
    int32_t *tokens; /* [largest prompt or depth] */
    int32_t next[LIST_MAX];
};

static weft_status prefill(struct bench_case *c, int i, int32_t n, weft_error *err)
{
    float *none = NULL;
    return n > 0 ? weft_session_eval(c->sessions[i], c->tokens, n, 0, none, err) : WEFT_OK;
}

/* One repetition: depth is prepared outside the clock. */
static weft_status repeat(struct bench_case *c, const bench_row *r, float *logits, uint64_t *ns, weft_error *err)
{
    weft_status st;
    for (int i = 0; i < r->n_parallel; i++)
        if (weft_session_trim(c->sessions[i], r->n_depth) < r->n_depth) {
            weft_session_trim(c->sessions[i], 0);
            if ((st = prefill(c, i, r->n_depth, err))) return st;
        }
    uint64_t start = now_ns();
    for (int i = 0; i < r->n_parallel; i++)
        if (r->n_prompt > 0 && (st = weft_session_eval(c->sessions[i], c->tokens, r->n_prompt, 0, logits, err))) return st;
    for (int g = 0; g < r->n_gen; g++) {
        st = r->n_parallel == 1 ? weft_session_eval(c->sessions[0], c->next, 1, 0, logits, err)
                                : weft_session_eval_group(c->sessions, c->next, r->n_parallel, logits, err);
        if (st) return st;
        for (int i = 0; i < r->n_parallel; i++) c->next[i] = (c->next[i] * 31 + 7) % r->info.n_vocab;
    }
    *ns = now_ns() - start;
    return WEFT_OK;
}

static weft_status run_case(const struct bench_options *o, struct bench_case *c, bench_row *r, weft_error *err)
{
    weft_session_params sp;
    int32_t n_ctx = r->n_depth + r->n_prompt + r->n_gen;
    size_t n_logits = (size_t)r->n_parallel * (size_t)r->info.n_vocab;
    uint64_t ignored;
    weft_session_params_default(&sp);
    sp.kv_dtype = (uint32_t)weft_dtype_from_name(o->kv_type);
    sp.n_ctx = n_ctx;
    c->tokens = malloc((size_t)n_ctx * sizeof *c->tokens);
    float *logits = malloc(n_logits * sizeof *logits);
    weft_status st = c->tokens && logits ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for %d tokens", n_ctx);
    for (int i = 0; !st && i < n_ctx; i++) c->tokens[i] = (int32_t)((int64_t)i * 7919 % r->info.n_vocab);
    for (int i = 0; i < LIST_MAX; i++) c->next[i] = i % r->info.n_vocab;
    if (!st) st = weft_session_new_group(c->model, &sp, r->n_parallel, c->sessions, err);
    for (int i = 0; !st && i < r->n_parallel; i++) st = prefill(c, i, r->n_depth, err);
    if (!st && !o->no_warmup) st = repeat(c, r, logits, &ignored, err);
    for (int i = 0; !st && i < r->n_reps; i++) st = repeat(c, r, logits, &r->samples_ns[i], err);
    for (int i = 0; i < r->n_parallel; i++) weft_session_free(&c->sessions[i]);
    free(logits);
    free(c->tokens);
    return st;
}

/* The lower of what memory and multipliers allow: decoding n rows together reads the weights once; a prompt once per step. */
static void find_limit(bench_row *r, const weft_model *model, const weft_peaks *p)
{
    double bytes, ops, peak = p->int8_dot_gops;
    const char *name = "int8 dot";
    weft_model_cost(model, &bytes, &ops);
    if (!strcmp(r->info.type, "BF16") && p->bf16_dot_gflops > 0) peak = p->bf16_dot_gflops, name = "bf16 dot";
    else if (r->info.type[0] == 'F' || r->info.type[0] == 'B' || peak <= 0) peak = p->f32_fma_gflops, name = "f32 FMA";
    double steps = (double)((r->n_prompt + r->n_batch - 1) / r->n_batch) * r->n_parallel + r->n_gen;
    double tokens = bench_tokens(r);
    double memory = p->read_gb_s > 0 ? steps * bytes / (p->read_gb_s * 1e9) : 0;
    double compute = peak > 0 ? tokens * ops / (peak * 1e9) : 0;
    double seconds = memory > compute ? memory : compute;
    if (seconds <= 0) return;
    r->limit_ts = tokens / seconds;
    r->limit_name = memory > compute ? "read" : name;
}

static weft_status open_model(const struct bench_options *o, const char *path, int32_t threads, weft_model **out, weft_error *err)
{
    weft_model_params params;
    progress bar = {0};
    weft_model_params_default(&params);
    params.n_threads = threads;
    params.progress = progress_update;
    params.progress_arg = &bar;
    weft_status st = o->synthetic ? weft_model_synthetic(o->synthetic, (uint32_t)weft_dtype_from_name(o->type), &params, out, err)
                                  : weft_model_open(path, &params, out, err);
    progress_end(&bar);
    return st;
}

struct grid {
    const struct bench_options *o;
    weft_model *model;
    const char *path;
    weft_peaks first, last; /* measured before the first row, and after the latest */
    int n_rows;
};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Measures again after a row: its limit is the better of the two measurements around it. */
static weft_status bracket(struct grid *g, weft_peaks *around, weft_error *err)
{
    weft_peaks after = {.size = sizeof after};
    weft_status st = weft_model_measure(g->model, &after, err);
    *around = after;
    around->read_gb_s = larger(g->last.read_gb_s, after.read_gb_s);
    around->int8_dot_gops = larger(g->last.int8_dot_gops, after.int8_dot_gops);
    around->bf16_dot_gflops = larger(g->last.bf16_dot_gflops, after.bf16_dot_gflops);
    around->f32_fma_gflops = larger(g->last.f32_fma_gflops, after.f32_fma_gflops);
    g->last = after;
    return st;
}

static weft_status bench_one(struct grid *g, int32_t n_prompt, int32_t n_gen, int32_t depth, int32_t parallel, weft_error *err)
{
    bench_row *r = calloc(1, sizeof *r);
    struct bench_case c = {.model = g->model};
    if (!r) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a row");
    *r = (bench_row){.model_file = g->path, .n_prompt = n_prompt, .n_gen = n_gen, .n_depth = depth, .n_parallel = parallel,
                     .n_reps = g->o->reps, .n_batch = 512, .kv_type = g->o->kv_type, .info.size = sizeof r->info};
    time_t now = time(NULL);
    struct tm tm;
    strftime(r->test_time, sizeof r->test_time, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    weft_status st = weft_model_describe(g->model, &r->info, err);
    if (!st) st = run_case(g->o, &c, r, err);
    weft_peaks around;
    if (!st && g->o->roofline) st = bracket(g, &around, err);
    if (!st) {
        bench_summarize(r);
        if (g->o->roofline) find_limit(r, g->model, &around);
        bench_print_row(g->o->format, r, g->n_rows++ == 0);
    }
    free(r);
    return st;
}

/* llama-bench's order: every prompt size, then every generation length, for each depth. */
static weft_status bench_grid(struct grid *g, weft_error *err)
{
    const struct bench_options *o = g->o;
    weft_status st = WEFT_OK;
    for (int d = 0; d < o->n_depth.n && !st; d++) {
        for (int p = 0; p < o->n_prompt.n && !st; p++)
            if (o->n_prompt.items[p] > 0) st = bench_one(g, o->n_prompt.items[p], 0, o->n_depth.items[d], 1, err);
        for (int n = 0; n < o->n_gen.n && !st; n++)
            for (int b = 0; b < o->parallel.n && !st; b++)
                if (o->n_gen.items[n] > 0) st = bench_one(g, 0, o->n_gen.items[n], o->n_depth.items[d], o->parallel.items[b], err);
    }
    return st;
}

static weft_status bench_threads(const struct bench_options *o, const char *path, int32_t threads, int *n_rows, weft_error *err)
{
    struct grid g = {.o = o, .path = o->synthetic ? o->synthetic : path, .n_rows = *n_rows};
    g.first.size = sizeof g.first;
    weft_status st = open_model(o, path, threads, &g.model, err);
    if (!st && o->roofline) st = weft_model_measure(g.model, &g.first, err);
    g.last = g.first;
    if (!st) st = bench_grid(&g, err);
    if (!st && o->roofline) bench_print_peaks(&g.first, &g.last);
    weft_model_close(&g.model);
    *n_rows = g.n_rows;
    return st;
}

static int parse_format(struct bench_options *o)
{
    static const char *const names[] = {"md", "json", "jsonl", "csv"};
    for (int i = 0; i < 4; i++)
        if (!strcmp(o->format_name, names[i])) {
            o->format = (enum bench_format)i;
            return 1;
        }
    return 0;
}

int cmd_bench(int argc, char **argv)
{
    struct bench_options o = {.n_prompt = {1, {512}}, .n_gen = {1, {128}}, .n_depth = {1, {0}}, .parallel = {1, {1}}, .threads = {1, {0}},
                              .reps = 5, .format_name = "md", .type = "q4_0", .kv_type = "f16"};
    const option_spec options[] = {
        {"n-prompt", 'p', OPT_INT_LIST, &o.n_prompt, "N,..", "prompt sizes to read, 0: none (512)", 0, 1 << 20, NULL},
        {"n-gen", 'n', OPT_INT_LIST, &o.n_gen, "N,..", "tokens to generate, 0: none (128)", 0, 1 << 20, NULL},
        {"n-depth", 'd', OPT_INT_LIST, &o.n_depth, "N,..", "tokens already in the context (0)", 0, 1 << 20, NULL},
        {"parallel", 'b', OPT_INT_LIST, &o.parallel, "N,..", "sequences generated together (1)", 1, LIST_MAX, NULL},
        {"threads", 't', OPT_INT_LIST, &o.threads, "N,..", "threads (one per core)", 1, 4096, NULL},
        {"repetitions", 'r', OPT_INT, &o.reps, "N", "repetitions of each row (5)", 1, BENCH_REPS_MAX, NULL},
        {"kv-type", 0, OPT_TEXT, &o.kv_type, "TYPE", "keys and values as f16 or f32 (f16)", 0, 0, NULL},
        {"synthetic", 0, OPT_TEXT, &o.synthetic, "SHAPE", "random weights in the shape of a known model, in memory", 0, 0, NULL},
        {"type", 0, OPT_TEXT, &o.type, "TYPE", "their type (q4_0)", 0, 0, NULL},
        {"roofline", 0, OPT_FLAG, &o.roofline, NULL, "measure the machine's limits and each row's share of them", 0, 0, NULL},
        {"no-warmup", 0, OPT_FLAG, &o.no_warmup, NULL, "no unmeasured repetition first", 0, 0, NULL},
        {"output", 'o', OPT_TEXT, &o.format_name, "FORMAT", "md, json, jsonl or csv (md)", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {"bench", "MODEL|--synthetic SHAPE [options]",
                               "Measures prompt reading (ppN) and generation (tgN) in tokens per second; lists give a grid.\n"
                               "Rows and fields are those of llama-bench, so that results can be laid side by side.",
                               "  weft bench model.gguf -p 512 -n 128 -r 5\n"
                               "  weft bench --synthetic tinyllama-1.1b --type q4_0 --roofline\n"
                               "  weft bench model.gguf -p 0 -n 64 -d 0,1024 -b 1,4,16 -o json\n",
                               options, 0, 1};
    int first, n_rows = 0;
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    const char *wrong = (argc - first == 1) == (o.synthetic != NULL) ? "give a MODEL or --synthetic SHAPE"
                        : weft_dtype_from_name(o.type) < 0            ? "--type: no such type"
                        : strcmp(o.kv_type, "f16") && strcmp(o.kv_type, "f32") ? "--kv-type must be f16 or f32"
                        : !parse_format(&o)                                    ? "-o must be md, json, jsonl or csv"
                                                                               : NULL;
    if (wrong) {
        fprintf(stderr, "weft bench: %s\n", wrong);
        return EXIT_USAGE;
    }
    weft_error err = {0};
    weft_status st = WEFT_OK;
    bench_print_begin(o.format, o.roofline);
    for (int t = 0; t < o.threads.n && !st; t++) st = bench_threads(&o, argv[first], o.threads.items[t], &n_rows, &err);
    bench_print_end(o.format);
    return st ? report("bench", &err) : EXIT_DONE;
}
