// SPDX-License-Identifier: Apache-2.0
/* cmd_bench.c: weft bench: prompt reading and generation over grids of sizes, against the limits measured in the same
 * run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "draft.h"
#include "commands.h"
#include "kv_type.h"
#include "options.h"
#include "outputs.h"
#include "provider.h"
#include "rope.h"
#include "terminal.h"

static weft_status open_model(const bench_options *o, const char *path, int32_t threads, weft_model **out,
                              weft_error *err)
{
    weft_model_params params;
    progress bar = {0};
    weft_model_params_default(&params);
    params.n_threads = threads;
    params.provider = provider_given;
    params.rope = o->rope.params;
    params.progress = progress_update;
    params.progress_arg = &bar;
    params.renew_plan = 1;
    params.share_threads = o->draft != NULL;
    weft_status st =
        o->synthetic ? weft_model_synthetic(o->synthetic, (uint32_t)weft_dtype_from_name(o->type), &params, out, err)
                     : weft_model_open(path, &params, out, err);
    progress_end(&bar);
    return st;
}

struct grid {
    const bench_options *o;
    bench_trace *trace; /* NULL without */
    weft_model *model;
    const char *path;
    int32_t n_threads;
    weft_peaks first, last; /* measured first, and latest */
    weft__taken of_first, of_last;
    bench_tally tally;
};

/* Measures the limits; again, where others took too much of that time. */
static weft_status measure_limits(struct grid *g, weft_peaks *out, weft__taken *taken, weft_error *err)
{
    bench_taken t;
    weft_status st;
    bench_taken_start(&t, g->o, g->n_threads);
    do {
        bench_taken_begin(&t);
        *out = (weft_peaks){.size = sizeof *out};
        st = weft_model_measure(g->model, out, err);
    } while (!st && bench_taken_again(&t, taken));
    return st;
}

/* Measures again: the limit of what was done since the latest measurement is the better of the two. */
static weft_status bracket(struct grid *g, weft_peaks *around, weft_error *err)
{
    weft_peaks after = {.size = sizeof after};
    weft_status st = weft_model_measure(g->model, &after, err);
    for (int i = 0; i < BENCH_PEAKS; i++) {
        const double before = *bench_peak(&g->last, i), now = *bench_peak(&after, i);
        *bench_peak(around, i) = before > now ? before : now;
    }
    g->last = after;
    return st;
}

/* Limits that are measured in turns with steps. */
struct bench_turns {
    uint64_t since_ns;             /* steps took this long since the latest */
    double inverse_s[BENCH_PEAKS]; /* sums of 1 / figure */
    int n;
};

static weft_status probe(struct grid *g, struct bench_turns *t, weft_error *err)
{
    weft_peaks now = {.size = sizeof now, .brief = 1};
    weft_status st = weft_model_measure(g->model, &now, err);
    for (int i = 0; i < BENCH_PEAKS && !st; i++)
        t->inverse_s[i] += *bench_peak(&now, i) > 0 ? 1 / *bench_peak(&now, i) : 0;
    t->n++;
    t->since_ns = 0;
    g->last = now;
    return st;
}

/* n steps, added to *ns. What a machine gives can double within a tenth of a second, so limits (turns: NULL without)
 * are measured before the first step, after the last and between them, at most as often as steps take PROBE_NS. */
static weft_status generate(struct grid *g, bench_case *c, int32_t n, struct bench_turns *t, uint64_t *ns,
                            weft_error *err)
{
    enum { PROBE_NS = 5000000 };
    weft_status st = t ? probe(g, t, err) : WEFT_OK;
    for (int32_t i = 0; i < n && !st; i++) {
        const uint64_t start = now_ns();
        st = bench_case_generate(c, 1, err);
        const uint64_t took = now_ns() - start;
        *ns += took;
        if (!t || st) continue;
        t->since_ns += took;
        if (t->since_ns >= PROBE_NS || i == n - 1) st = probe(g, t, err);
    }
    return st;
}

/* One repetition; what is already in the context is prepared outside the clock. limits: of this repetition; NULL: not
 * wanted. */
static weft_status repeat(struct grid *g, bench_case *c, const bench_row *r, uint64_t *ns, weft_peaks *limits,
                          weft_error *err)
{
    struct bench_turns turns = {0};
    weft_status st = bench_case_depth(c, r->n_depth, err);
    const uint64_t start = now_ns();
    if (!st) st = bench_case_prompt(c, r->n_prompt, err);
    *ns = now_ns() - start;
    if (!st && r->n_gen) st = generate(g, c, r->n_gen, limits ? &turns : NULL, ns, err);
    if (!*ns) *ns = 1; /* the rate of no time at all is no number */
    if (st || !limits) return st;
    if (!turns.n) return bracket(g, limits, err);
    for (int i = 0; i < BENCH_PEAKS; i++)
        *bench_peak(limits, i) = turns.inverse_s[i] > 0 ? turns.n / turns.inverse_s[i] : 0;
    return WEFT_OK;
}

static weft_status run_case(struct grid *g, bench_row *r, weft_error *err)
{
    const bench_options *o = g->o;
    bench_case c;
    uint64_t ignored;
    weft_status st = bench_case_open(&c, g->model, o, r->n_parallel, r->n_depth + r->n_prompt + r->n_gen, err);
    if (!st && !o->no_warmup) st = repeat(g, &c, r, &ignored, NULL, err);
    if (!st && !o->no_warmup && o->roofline)
        st = measure_limits(g, &g->last, &g->of_last, err); /* the latest was long ago */
    bench_taken_start(&r->taken, o, g->n_threads);
    for (int i = 0; i < r->n_reps && !st;) { /* what is taken counts for the limits of a repetition, too */
        weft__taken one;
        bench_taken_begin(&r->taken);
        st = repeat(g, &c, r, &r->samples_ns[i], o->roofline ? &r->peaks[i] : NULL, err);
        if (st || bench_taken_again(&r->taken, &one)) continue;
        r->samples_taken[i++] = weft__taken_share(&one);
        if (o->roofline) g->of_last = one;
    }
    bench_case_close(&c);
    return st;
}

static weft_status measure_row(struct grid *g, bench_row *r, weft_error *err)
{
    weft_status st = run_case(g, r, err);
    if (st) return st;
    bench_summarize(r);
    if (g->o->roofline && (st = bench_find_share(r, g->model, err))) return st;
    bench_print_row(g->o->format, r, g->tally.n_rows++ == 0);
    g->tally.n_marked += bench_taken_disturbed(&r->taken, r->n_reps) > 0;
    return WEFT_OK;
}

static weft_status bench_one(struct grid *g, int32_t n_prompt, int32_t n_gen, int32_t depth, int32_t parallel,
                             weft_error *err)
{
    bench_row *r = calloc(1, sizeof *r);
    if (!r) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a row");
    *r = (bench_row){.model_file = g->path,
                     .n_prompt = n_prompt,
                     .n_gen = n_gen,
                     .n_depth = depth,
                     .filled = g->o->fill && depth > BENCH_FILL,
                     .n_parallel = parallel,
                     .n_reps = g->o->reps,
                     .n_batch = BENCH_BATCH,
                     .kv_type = g->o->kv_type,
                     .info.size = sizeof r->info};
    time_t now = time(NULL);
    struct tm tm;
    strftime(r->test_time, sizeof r->test_time, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    weft_status st = weft_model_describe(g->model, &r->info, err);
    if (!st) st = g->o->profile ? bench_profile(g->o, g->model, r, g->trace, &g->tally, err) : measure_row(g, r, err);
    free(r);
    return st;
}

/* llama-bench's order: every prompt size, then every generation length, for each depth. */
static weft_status bench_grid(struct grid *g, weft_error *err)
{
    const bench_options *o = g->o;
    weft_status st = WEFT_OK;
    for (int d = 0; d < o->n_depth.n && !st; d++) {
        for (int p = 0; p < o->n_prompt.n && !st; p++)
            if (o->n_prompt.items[p] > 0) st = bench_one(g, o->n_prompt.items[p], 0, o->n_depth.items[d], 1, err);
        for (int n = 0; n < o->n_gen.n && !st; n++)
            for (int b = 0; b < o->parallel.n && !st; b++)
                if (o->n_gen.items[n] > 0)
                    st = bench_one(g, 0, o->n_gen.items[n], o->n_depth.items[d], o->parallel.items[b], err);
    }
    return st;
}

static void bench_begin(const bench_options *o)
{
    if (o->batched) bench_batched_begin(o->format);
    else if (bench_spec_asked(o)) bench_spec_begin(o->format);
    else if (!o->profile || o->format == BENCH_JSON) bench_print_begin(o->format, o->roofline);
}

static int32_t largest(const struct int_list *list)
{
    int32_t most = 0;
    for (int i = 0; i < list->n; i++) most = list->items[i] > most ? list->items[i] : most;
    return most;
}

/* Sizes that were not given become such as fit into a context of `most` tokens; the others are refused where they do
 * not. */
static void fit(bench_options *o, int32_t most)
{
    const int32_t room = most - largest(&o->n_depth), n_prompt = largest(&o->n_prompt), n_gen = largest(&o->n_gen);
    int32_t for_prompt = room, for_gen = room;
    if ((o->batched || bench_spec_asked(o)) &&
        n_prompt + n_gen > room) { /* one context holds both: what was given, and as usual a fifth is generated */
        for_gen = o->prompt_given ? room - n_prompt : room / 5 + 1;
        for_prompt = room - (o->gen_given ? n_gen : for_gen);
    }
    if (!o->gen_given && for_gen > 0 && for_gen < n_gen) o->n_gen.items[0] = for_gen;
    if (!o->prompt_given && for_prompt > 0 && for_prompt < n_prompt) o->n_prompt.items[0] = for_prompt;
}

/* The output begins when there is something to measure: *begun. */
static weft_status bench_threads(const bench_options *asked, const char *path, int32_t threads, bench_trace *trace,
                                 int *begun, bench_tally *tally, weft_error *err)
{
    bench_options fitted = *asked, *o = &fitted;
    struct grid g = {.o = o, .trace = trace, .path = o->synthetic ? o->synthetic : path, .tally = *tally};
    weft_model_info info = {.size = sizeof info};
    weft_status st = open_model(o, path, threads, &g.model, err);
    if (!st) st = weft_model_describe(g.model, &info, err);
    g.n_threads = info.n_threads;
    fit(&fitted, info.n_ctx_max);
    if (!st && o->roofline) st = measure_limits(&g, &g.first, &g.of_first, err);
    g.last = g.first;
    g.of_last = g.of_first;
    if (!st && !*begun) bench_begin(o);
    *begun |= !st;
    if (!st)
        st = o->batched            ? bench_batched(o, g.model, &g.tally, err)
             : bench_spec_asked(o) ? bench_spec(o, g.model, &g.tally, err)
                                   : bench_grid(&g, err);
    if (!st && o->roofline) bench_print_peaks(&g.first, &g.last, &g.of_first, &g.of_last);
    weft_model_close(&g.model);
    *tally = g.tally;
    return st;
}

static weft_status bench_all(const bench_options *o, const char *path, weft_error *err)
{
    bench_trace *trace = NULL;
    bench_tally tally = {0};
    int begun = 0;
    weft_status st = o->trace ? bench_trace_open(o->trace, &trace, err) : WEFT_OK;
    if (st) return st;
    for (int t = 0; t < o->threads.n && !st; t++)
        st = bench_threads(o, path, o->threads.items[t], trace, &begun, &tally, err);
    if (begun) bench_print_end(o->format);
    if (tally.n_marked)
        fprintf(stderr,
                "\n* the host of this machine (stolen), other processes (others) or a quota (throttled) took more than "
                "%g %% of the time "
                "of %d of %d rows: not figures to judge by\n",
                100 * WEFT__TAKEN_MOST, tally.n_marked, tally.n_rows);
    weft_error ignored;
    weft_status closed = bench_trace_close(&trace, st ? &ignored : err);
    return st ? st : closed;
}

/* --write: the synthetic model as a file, for other programs. */
static weft_status write_model(const bench_options *o, weft_error *err)
{
    progress bar = {0};
    uint32_t dtype = (uint32_t)weft_dtype_from_name(o->type);
    progress_stops_on_signals();
    weft_status st = weft_synthetic_write(o->synthetic, dtype, o->write, progress_update, &bar, err);
    progress_end(&bar);
    return st;
}

static int parse_format(bench_options *o)
{
    static const char *const names[] = {"md", "json", "jsonl", "csv"};
    for (int i = 0; i < 4; i++)
        if (!strcmp(o->format_name, names[i])) {
            o->format = (enum bench_format)i;
            return 1;
        }
    return 0;
}

static int all_zero(const struct int_list *list)
{
    for (int i = 0; i < list->n; i++)
        if (list->items[i] > 0) return 0;
    return 1;
}

/* What is wrong with the options, or NULL. */
static const char *check_options(bench_options *o, int n_models)
{
    if ((n_models == 1) == (o->synthetic != NULL)) return "give a MODEL or --synthetic SHAPE";
    if (weft_dtype_from_name(o->type) < 0) return "--type: no such type";
    if (o->json && o->format_name) return "give one of -o and --json";
    if (!o->format_name) o->format_name = o->json ? "json" : "md";
    if (!parse_format(o)) return "-o must be md, json, jsonl or csv";
    if (o->trace || o->counters) o->profile = 1;
    if (o->roofline + o->batched + o->profile + bench_spec_asked(o) > 1)
        return "give one of --roofline, --batched, --profile, and --spec with --text and --draft";
    if ((o->batched || o->profile || bench_spec_asked(o)) && o->format == BENCH_CSV)
        return "--batched, --spec and --profile print md, json or jsonl";
    if (bench_spec_asked(o) && !bench_spec_parse(o)) return "--spec: parts from 0 to 1, as 0,0.7,0.9";
    int deep = o->n_depth.n > 1 || o->n_depth.items[0] > 0;
    if ((o->batched || bench_spec_asked(o)) && deep)
        return "--batched and --spec begin with an empty context: leave out -d";
    if (o->fill && !deep) return "--fill is for a depth: give -d";
    if (all_zero(&o->n_prompt) && all_zero(&o->n_gen)) return "nothing to measure: give -p or -n a size above 0";
    if (o->write && !o->synthetic) return "--write needs --synthetic SHAPE";
    return NULL;
}

/* What the options ask for, once they are known to go together. `model`: n_models of them are given, one or none. */
static int bench_as_told(bench_options *o, const char *model, int n_models)
{
    const char *wrong = check_options(o, n_models);
    if (wrong) {
        fprintf(stderr, "weft bench: %s\n", wrong);
        return EXIT_USAGE;
    }
    if (!rope_options_check("bench", &o->rope)) return EXIT_USAGE;
    if (output_refused("bench", o->trace) || output_refused("bench", o->write)) return EXIT_FAILED;
    if (o->trace && output_is_input("bench", o->trace, model)) return EXIT_FAILED;
    weft_error err = {0};
    return (o->write ? write_model(o, &err) : bench_all(o, model, &err)) ? report("bench", &err) : EXIT_DONE;
}

int cmd_bench(int argc, char **argv)
{
    bench_options o = {.n_prompt = {1, {512}},
                       .n_gen = {1, {128}},
                       .n_depth = {1, {0}},
                       .parallel = {1, {1}},
                       .threads = {1, {0}},
                       .reps = 5,
                       .again = -1,
                       .type = "q4_0",
                       .kv_type = "f16"};
    const option_spec options[] = {
        {"n-prompt", 'p', OPT_INT_LIST, &o.n_prompt, "N,..",
         "prompt sizes to read, 0: none (512, or the model's context)", 0, 1 << 20, &o.prompt_given},
        {"n-gen", 'n', OPT_INT_LIST, &o.n_gen, "N,..", "tokens to generate, 0: none (128)", 0, 1 << 20, &o.gen_given},
        BENCH_DEPTH_OPTIONS(&o),
        {"parallel", 'b', OPT_INT_LIST, &o.parallel, "N,..", "sequences generated together (1)", 1, LIST_MAX, NULL},
        PROVIDER_OPTION,
        {"threads", 't', OPT_INT_LIST, &o.threads, "N,..", "threads (one per core)", 1, WEFT_THREADS_MAX, NULL},
        {"repetitions", 'r', OPT_INT, &o.reps, "N", "repetitions of each row (5)", 1, BENCH_REPS_MAX, NULL},
        {"again", 0, OPT_INT, &o.again, "N", "repetitions more where others take over 3 % of the time (as -r)", 0,
         BENCH_REPS_MAX, NULL},
        ROPE_OPTIONS(&o.rope),
        KV_TYPE_OPTION(&o.kv_type, "f16"),
        {"synthetic", 0, OPT_TEXT, &o.synthetic, "SHAPE", "random weights in the shape of a known model, in memory", 0,
         0, NULL},
        {"type", 0, OPT_TEXT, &o.type, "TYPE", "their type (q4_0)", 0, 0, NULL},
        {"write", 0, OPT_TEXT, &o.write, "FILE", "write the synthetic model as a GGUF file; measure nothing", 0, 0,
         NULL},
        {"roofline", 0, OPT_FLAG, &o.roofline, NULL, "measure the machine's limits and each row's share of them", 0, 0,
         NULL},
        {"batched", 0, OPT_FLAG, &o.batched, NULL, "-b sequences read their prompts, then generate together", 0, 0,
         NULL},
        BENCH_SPEC_OPTIONS(&o),
        {"profile", 0, OPT_FLAG, &o.profile, NULL, "time, GB/s and GOPS of every op and layer", 0, 0, NULL},
        {"counters", 0, OPT_FLAG, &o.counters, NULL, "a profile with cycles, cache misses, ...", 0, 0, NULL},
        {"trace", 0, OPT_TEXT, &o.trace, "FILE", "a profile's last repetition as a Chrome trace", 0, 0, NULL},
        {"no-warmup", 0, OPT_FLAG, &o.no_warmup, NULL, "no unmeasured repetition first", 0, 0, NULL},
        {"output", 'o', OPT_TEXT, &o.format_name, "FORMAT", "md, json, jsonl or csv (md)", 0, 0, NULL},
        {"json", 0, OPT_FLAG, &o.json, NULL, "the same as -o json", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {
        "bench",
        "MODEL|--synthetic SHAPE [options]",
        "Measures prompt reading (ppN) and generation (tgN) in tokens per second; lists give a grid.\n"
        "Rows and fields are those of llama-bench (with --batched of llama-batched-bench), so that results can\n"
        "be laid side by side.\n" OUTPUT_RULE("The FILE of --write"),
        "  weft bench model.gguf -p 512 -n 128 -r 5\n"
        "  weft bench --synthetic tinyllama-1.1b --type q4_0 --roofline\n"
        "  weft bench model.gguf -p 0 -n 64 -d 0,1024 -b 1,4,16 -o json\n"
        "  weft bench model.gguf --batched -p 128 -n 64 -b 1,2,4,8\n"
        "  weft bench model.gguf --profile -p 512 -n 32 --trace trace.json\n",
        options,
        0,
        1};
    int first, rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    return bench_as_told(&o, argv[first], argc - first);
}
