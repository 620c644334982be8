// SPDX-License-Identifier: Apache-2.0
/* cmd_adapter.c: weft adapter: what adapters hold, other formats, merging, learning; finds the subcommand. */
#include "adapters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "adapter_train.h"
#include "base/json.h"
#include "commands.h"
#include "kinds.h"
#include "outputs.h"
#include "terminal.h"
#include "weft/graph.h"

/* ---- info ---- */

static void print_info(const weft_adapter_file *f, const weft_adapter_info *info, const char *path)
{
    printf("%s: a %s, %d matrices, ranks %d to %d, %.2f M parameters", path,
           info->is_folder ? "PEFT folder" : "GGUF adapter", info->n_matrices, info->min_rank, info->max_rank,
           (double)info->n_params / 1e6);
    if (info->n_dora) printf(", DoRA on %d", info->n_dora);
    printf("\nbase architecture ");
    print_clean(stdout, info->arch[0] ? info->arch : "not named", strlen(info->arch[0] ? info->arch : "not named"), 0);
    printf(", id %s\n\n%-40s %6s %10s  %s\n", info->id, "matrix", "rank", "scale", "shape");
    for (int32_t i = 0; i < info->n_matrices; i++) {
        weft_adapter_matrix m = {.size = sizeof m};
        if (weft_adapter_file_matrix(f, i, &m, NULL)) continue;
        print_clean(stdout, m.name, strlen(m.name), 40);
        printf(" %6d %10.6g  %lld x %lld", m.rank, (double)m.scale, (long long)m.k, (long long)m.n);
        if (m.n_experts > 1) printf(" x %lld", (long long)m.n_experts);
        puts(m.dora ? ", DoRA" : "");
    }
}

static weft_status print_json(const weft_adapter_file *f, const weft_adapter_info *info, weft_error *err)
{
    weft__strbuf t = {0};
    weft__strbuf_puts(&t, "{\"arch\": ");
    weft__json_write_string(&t, info->arch, strlen(info->arch));
    weft__strbuf_printf(&t, ", \"format\": \"%s\", \"id\": \"%s\", \"parameters\": %llu, \"matrices\": [",
                        info->is_folder ? "peft" : "gguf", info->id, (unsigned long long)info->n_params);
    for (int32_t i = 0; i < info->n_matrices; i++) {
        weft_adapter_matrix m = {.size = sizeof m};
        if (weft_adapter_file_matrix(f, i, &m, NULL)) continue;
        weft__strbuf_printf(&t, "%s\n{\"name\": ", i ? "," : "");
        weft__json_write_string(&t, m.name, strlen(m.name));
        weft__strbuf_printf(
            &t, ", \"rank\": %d, \"scale\": %.9g, \"k\": %lld, \"n\": %lld, \"experts\": %lld, \"dora\": %s}", m.rank,
            (double)m.scale, (long long)m.k, (long long)m.n, (long long)m.n_experts, m.dora ? "true" : "false");
    }
    weft__strbuf_puts(&t, "]}\n");
    return print_whole(&t, err);
}

/* The base's file where one is given, and an adapter over it. */
static weft_status open_both(const char *path, const char *base, weft_file **file, weft_adapter_file **adapter,
                             weft_error *err)
{
    weft_status st = WEFT_OK;
    if (base && !*file) st = weft_file_open(base, file, err);
    return st ? st : weft_adapter_file_open(path, *file, adapter, err);
}

static int info_command(int argc, char **argv)
{
    const char *base = NULL;
    int json = 0, first;
    const option_spec options[] = {
        {"base", 0, OPT_TEXT, &base, "MODEL",
         "the base model: needed for PEFT folders, and the adapter is checked against it", 0, 0, NULL},
        {"json", 0, OPT_FLAG, &json, NULL, "one JSON object", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {
        "adapter info",
        "ADAPTER [options]",
        "What an adapter changes: matrices, ranks, scales. The id is the same for the same content in any format.",
        "  weft adapter info style.gguf\n  weft adapter info peft-folder --base model.gguf\n",
        options,
        1,
        1};
    weft_file *file = NULL;
    weft_adapter_file *adapter = NULL;
    weft_adapter_info info = {.size = sizeof info};
    weft_error err = {0};
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    weft_status st = open_both(argv[first], base, &file, &adapter, &err);
    if (!st) st = weft_adapter_file_describe(adapter, &info, &err);
    if (!st && json) st = print_json(adapter, &info, &err);
    else if (!st) print_info(adapter, &info, argv[first]);
    weft_adapter_file_close(&adapter);
    weft_file_close(&file);
    return st ? report("adapter info", &err) : EXIT_DONE;
}

/* ---- what was written ---- */

#define ADAPTER_PIPES                                                                                                  \
    "\nAn adapter's OUT is a GGUF file where its name ends in .gguf, a FIFO too, and a PEFT folder else: so "          \
    "/dev/stdout takes none."

/* For people, when an adapter was written; `more` stands behind it. */
static weft_status print_written(const weft_adapter_file *f, const char *out, const char *more, weft_error *err)
{
    weft_adapter_info info = {.size = sizeof info};
    const weft_status st = weft_adapter_file_describe(f, &info, err);
    if (st) return st;
    fprintf(stderr, "%s: %d matrices, rank %d", out, info.n_matrices, info.min_rank);
    if (info.max_rank > info.min_rank) fprintf(stderr, " to %d", info.max_rank);
    fprintf(stderr, ", %.2f MB%s\n", (double)info.n_params * sizeof(float) / 1e6, more);
    return WEFT_OK;
}

/* ---- convert ---- */

static int convert_command(int argc, char **argv)
{
    const char *base = NULL;
    int first;
    const option_spec options[] = {
        {"base", 0, OPT_TEXT, &base, "MODEL", "the base model, for its names and heads", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {"adapter convert",
                               "IN OUT --base MODEL",
                               "A PEFT folder to a GGUF adapter (OUT ends in .gguf), or a GGUF adapter to a PEFT "
                               "folder. What is read back has the\n"
                               "same id; only a folder has no place for the mark of the base that an adapter was "
                               "trained on, and fits every model of the\n"
                               "same shapes. llama.cpp reads the files too, but for DoRA and scales of single "
                               "matrices. OUT may be an older adapter, never\n"
                               "IN, MODEL or another GGUF file.\n" OUTPUT_RULE("An OUT that is a file") ADAPTER_PIPES,
                               "  weft adapter convert peft-folder style.gguf --base model.gguf\n",
                               options,
                               2,
                               2};
    weft_file *file = NULL;
    weft_adapter_file *adapter = NULL;
    weft_error err = {0};
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!base) {
        fprintf(stderr, "weft adapter convert: --base is missing\n");
        return EXIT_USAGE;
    }
    const char *out = argv[first + 1];
    if (output_adapter_refused("adapter convert", out) || output_is_input("adapter convert", out, argv[first]) ||
        output_is_input("adapter convert", out, base) || output_is_another("adapter convert", out, 1))
        return EXIT_FAILED;
    weft_status st = open_both(argv[first], base, &file, &adapter, &err);
    if (!st) st = weft_adapter_file_save(adapter, file, out, &err);
    if (!st) st = print_written(adapter, out, "", &err);
    weft_adapter_file_close(&adapter);
    weft_file_close(&file);
    return st ? report("adapter convert", &err) : EXIT_DONE;
}

/* ---- merge ---- */

struct merge_options {
    struct text_list adapters;
    struct adapter_option adapter[LIST_MAX];
    const char *method, *type;
    double density, keep;
    int saturate, compress, json; /* compress: rank or keep was given */
    uint64_t seed;
    int32_t threads, rank;
};

static const char *const METHODS[] = {"cat", "linear", "slerp", "ties", "dare"};
enum { N_METHODS = sizeof METHODS / sizeof *METHODS };

static int method_of(const char *name)
{
    int i = 0;
    while (i < N_METHODS && strcmp(METHODS[i], name)) i++;
    return i;
}

/* What each matrix lost. */
static weft_status print_lost(const weft_adapter_file *f, int json, weft_error *err)
{
    weft_adapter_info info = {.size = sizeof info};
    weft__strbuf t = {0};
    weft_status st = weft_adapter_file_describe(f, &info, err);
    if (json) weft__strbuf_printf(&t, "{\"id\": \"%s\", \"matrices\": [", info.id);
    else weft__strbuf_printf(&t, "%-40s %6s %6s  %s\n", "matrix", "before", "rank", "relative error");
    for (int32_t i = 0; !st && i < info.n_matrices; i++) {
        weft_adapter_matrix m = {.size = sizeof m};
        if ((st = weft_adapter_file_matrix(f, i, &m, err))) break;
        if (!json) {
            weft__strbuf_printf(&t, "%-40s %6d %6d  %.3g\n", m.name, m.rank_before, m.rank, m.error);
            continue;
        }
        weft__strbuf_printf(&t, "%s\n{\"name\": ", i ? "," : "");
        weft__json_write_string(&t, m.name, strlen(m.name));
        weft__strbuf_printf(&t, ", \"rank_before\": %d, \"rank\": %d, \"error\": %.17g}", m.rank_before, m.rank,
                            m.error);
    }
    if (json) weft__strbuf_puts(&t, "]}\n");
    if (!st) return print_whole(&t, err);
    weft__strbuf_free(&t);
    return st;
}

/* *merged becomes what is left of it at the rank that was asked for. */
static weft_status compress(const struct merge_options *o, weft_adapter_file **merged, weft_error *err)
{
    weft_adapter_file *smaller = NULL;
    if (!o->compress) return WEFT_OK;
    weft_status st = weft_adapter_file_compress(*merged, o->rank, o->keep, &smaller, err);
    weft_adapter_file_close(merged);
    *merged = smaller;
    return st;
}

static weft_status merge_together(const struct merge_options *o, const weft_file *base, const weft_adapter_use *uses,
                                  const char *out, weft_error *err)
{
    weft_merge_params params;
    weft_adapter_file *merged = NULL;
    char more[40];
    weft_merge_params_default(&params);
    params.method = (uint32_t)method_of(o->method);
    params.density = o->density;
    params.seed = o->seed;
    weft_status st = weft_adapter_file_merge(uses, o->adapters.n, &params, &merged, err);
    if (!st) st = compress(o, &merged, err);
    if (!st) st = weft_adapter_file_save(merged, base, out, err);
    if (!st && o->compress) st = print_lost(merged, o->json, err);
    snprintf(more, sizeof more, ", %d adapter%s merged", o->adapters.n, o->adapters.n == 1 ? "" : "s");
    if (!st && !o->json) st = print_written(merged, out, more, err);
    weft_adapter_file_close(&merged);
    return st;
}

static weft_status merge_into(const struct merge_options *o, const char *base, const weft_adapter_use *uses,
                              const char *out, weft_error *err)
{
    weft_quantize_params params;
    weft_quantize_result r;
    progress bar = {0};
    weft_quantize_params_default(&params);
    params.n_threads = o->threads;
    params.progress = progress_update;
    params.progress_arg = &bar;
    params.saturate = o->saturate;
    progress_stops_on_signals();
    weft_status st = weft_adapter_apply(base, out, uses, o->adapters.n, o->type, &params, &r, err);
    progress_end(&bar);
    if (!st)
        fprintf(stderr, "%s: %.2f MB, %d adapter%s merged\n", out, (double)r.bytes_after / 1e6, o->adapters.n,
                o->adapters.n == 1 ? "" : "s");
    if (!st) output_saturated("adapter merge", r.n_beyond);
    return st;
}

static weft_status merge(const struct merge_options *o, const char *base, const char *out, weft_error *err)
{
    weft_file *file = NULL;
    weft_adapter_file *files[LIST_MAX] = {0};
    weft_adapter_use uses[LIST_MAX];
    weft_status st = WEFT_OK;
    for (int i = 0; i < o->adapters.n && !st; i++) {
        st = open_both(o->adapter[i].path, base, &file, &files[i], err);
        uses[i] = (weft_adapter_use){files[i], o->adapter[i].scale};
    }
    if (!st) st = o->method ? merge_together(o, file, uses, out, err) : merge_into(o, base, uses, out, err);
    for (int i = 0; i < o->adapters.n; i++) weft_adapter_file_close(&files[i]);
    weft_file_close(&file);
    return st;
}

static int merge_spares(const struct merge_options *o, const char *base, const char *out)
{
    if (output_is_input("adapter merge", out, base)) return 0;
    for (int i = 0; i < o->adapters.n; i++)
        if (output_is_input("adapter merge", out, o->adapter[i].path)) return 0;
    return !output_is_another("adapter merge", out, o->method != NULL);
}

static int merge_usage(const char *message)
{
    fprintf(stderr, "weft adapter merge: %s\n", message);
    return EXIT_USAGE;
}

/* What the options may not say together; NULL: nothing. density, seed: they were given. */
static const char *merge_wrong(const struct merge_options *o, int density, int seed)
{
    if (o->adapters.n == 0) return "--adapter is missing";
    if (o->method && method_of(o->method) == N_METHODS) return "--method must be cat, linear, slerp, ties or dare";
    if (o->method && o->type) return "--type is for a merged model; an adapter keeps 32 bits";
    int dare = o->method && !strcmp(o->method, "dare"), ties = o->method && !strcmp(o->method, "ties");
    if (density && !dare && !ties) return "--density is for --method ties and dare; leave it out";
    if (o->compress && !o->method) return "--rank and --keep are for --method; give one, or leave them out";
    if (o->json && !o->compress) return "--json is for --rank and --keep; leave it out";
    if (seed && !dare) return "--seed is for --method dare; leave it out";
    return NULL;
}

static int merge_command(int argc, char **argv)
{
    static struct merge_options o = {.density = 1, .keep = 1};
    int first, density = 0, seed = 0, rank = 0, keep = 0; /* given */
    const option_spec options[] = {
        {"adapter", 0, OPT_LIST, &o.adapters, "A", "NAME=PATH[:WEIGHT]; may be repeated", 0, 0, NULL},
        {"type", 0, OPT_TEXT, &o.type, "TYPE", "of the merged model, as of weft quantize (each tensor's own)", 0, 0,
         NULL},
        {"method", 0, OPT_TEXT, &o.method, "M", "merge the adapters with each other: cat, linear, slerp, ties, dare", 0,
         0, NULL},
        {"density", 0, OPT_DOUBLE, &o.density, "D", "share of the values that ties and dare keep (1)", OPTION_ABOVE_0,
         1, &density},
        {"saturate", 0, OPT_FLAG, &o.saturate, NULL, SATURATE_HELP, 0, 0, NULL},
        {"seed", 0, OPT_SEED, &o.seed, "S", "of dare's choice (0)", 0, 0, &seed},
        {"rank", 0, OPT_INT, &o.rank, "R", "compress what --method makes: rank of a matrix at most", 1,
         WEFT_ADAPTER_RANK_MAX, &rank},
        {"keep", 0, OPT_DOUBLE, &o.keep, "SHARE",
         "compress: share of a change's squared norm that is kept at least (1)", OPTION_ABOVE_0, 1, &keep},
        {"json", 0, OPT_FLAG, &o.json, NULL, "what compressing cost, as one JSON object", 0, 0, NULL},
        {"threads", 't', OPT_INT, &o.threads, "THREADS", "threads (one per core)", 1, WEFT_THREADS_MAX, NULL},
        {0},
    };
    const command_spec spec = {
        "adapter merge",
        "BASE OUT --adapter NAME=PATH[:WEIGHT] ... [options]",
        "Merges adapters into the GGUF model BASE and writes the model OUT; with --method, "
        "merges them with each other and\n"
        "writes the adapter OUT (a .gguf file, or a PEFT folder). cat is the exact weighted "
        "sum; linear, slerp, ties and dare\n"
        "mix the matrices A and B by themselves, as PEFT does, smaller ranks filled up with "
        "zeros to the largest. With --rank or\n"
        "--keep the result is compressed: each matrix's change becomes the nearest to it of a "
        "smaller rank, and what that cost is\n"
        "told (relative, in Frobenius's norm). Adapters with DoRA's magnitudes are merged into a "
        "model only. OUT is never what\n"
        "is read, an adapter never takes a model's place, nor a model an adapter's.\n" OUTPUT_RULE(
            "An OUT that is a file") ADAPTER_PIPES,
        "  weft adapter merge model.gguf styled.gguf --adapter s=style.gguf:0.8 --type Q4_K_M\n"
        "  weft adapter merge model.gguf both.gguf --adapter a=a.gguf:0.5 --adapter "
        "b=b.gguf:0.5 --method ties --density 0.5\n"
        "  weft adapter merge model.gguf small.gguf --adapter a=a.gguf --adapter b=b.gguf "
        "--method cat --rank 8\n",
        options,
        2,
        2};
    weft_error err = {0};
    struct stat base;
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    o.compress = rank || keep;
    if (merge_wrong(&o, density, seed)) return merge_usage(merge_wrong(&o, density, seed));
    if (!adapter_options_parse("adapter merge", &o.adapters, o.adapter)) return EXIT_USAGE;
    if (!o.method && !stat(argv[first], &base) && S_ISDIR(base.st_mode))
        return merge_usage("BASE is a folder; make a GGUF file of it first: weft convert FOLDER FILE.gguf");
    if (o.method ? output_adapter_refused("adapter merge", argv[first + 1])
                 : output_refused("adapter merge", argv[first + 1]))
        return EXIT_FAILED;
    if (!merge_spares(&o, argv[first], argv[first + 1])) return EXIT_FAILED;
    return merge(&o, argv[first], argv[first + 1], &err) ? report("adapter merge", &err) : EXIT_DONE;
}

/* ---- the subcommands ---- */

static const command_kind KINDS[] = {
    {"info", "what an adapter changes", info_command, NULL, 0},
    {"train", "an adapter from conversations, or from pairs of answers", adapter_train, NULL, 0},
    {"convert", "a PEFT folder to a GGUF adapter, and back", convert_command, NULL, 0},
    {"merge", "adapters into a model, or with each other", merge_command, NULL, 0},
};
const kind_list ADAPTER_KINDS = {"adapter", "KIND ... [options]", "Adapters: low-rank changes of a model (LoRA, DoRA).",
                                 KINDS, sizeof KINDS / sizeof *KINDS};

int cmd_adapter(int argc, char **argv)
{
    return kinds_run(&ADAPTER_KINDS, argc, argv);
}
