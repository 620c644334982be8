// SPDX-License-Identifier: Apache-2.0
/* cmd_fit.c: weft fit: which quantization, context and slots of a model fit into this machine, and how fast it is. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/json.h"
#include "commands.h"
#include "fit.h"
#include "known.h"
#include "kv_type.h"
#include "options.h"
#include "terminal.h"
#include "threads.h"

/* Types that a shape is looked at in. */
static const char *const TYPES[] = {"q2_k", "q3_k", "q4_0", "q4_k", "q5_k", "q6_k", "q8_0", "bf16", "f16", "f32"};
enum { N_TYPES = sizeof TYPES / sizeof *TYPES };

enum { KNOWN_BYTES = 1400 };

typedef struct fit_command {
    fit_options o;
    fit_machine m;
    const char *name, *kv_type, *memory;
    char known[KNOWN_BYTES]; /* what the name stands for; "": itself */
    int json;
    fit_case *cases;
    int n, chosen;
    char why[FIT_WHY];
    progress bar;
} fit_command;

/* ---- looking ---- */

static weft_status look_at_shape(fit_command *f, weft_error *err)
{
    f->n = N_TYPES;
    f->cases = calloc(N_TYPES, sizeof *f->cases);
    if (!f->cases) return weft_fail(err, WEFT_NO_MEMORY, "no memory");
    for (int i = 0; i < N_TYPES; i++) {
        fit_case *c = &f->cases[i];
        weft_model *outline;
        weft_model_params p;
        const uint32_t dtype = (uint32_t)weft_dtype_from_name(TYPES[i]);
        weft_model_params_default(&p);
        p.n_threads = f->o.threads;
        p.outline = 1;
        weft_status st = weft_model_synthetic(f->name, dtype, &p, &outline, err);
        if (st) return st;
        snprintf(c->label, sizeof c->label, "%s", weft_dtype_describe(dtype).name);
        st = fit_look(outline, &f->o, &f->m, c, err);
        c->file_bytes = c->info.n_bytes;
        weft_model_close(&outline);
        if (st) return st;
    }
    return WEFT_OK;
}

static weft_status look_at_file(fit_command *f, const char *path, weft_error *err)
{
    f->n = 1;
    f->cases = calloc(1, sizeof *f->cases);
    if (!f->cases) return weft_fail(err, WEFT_NO_MEMORY, "no memory");
    weft_status st = fit_look_at(path, &f->o, &f->m, f->cases, err);
    if (st) return st;
    if (!f->cases->looked) return weft_fail(err, WEFT_UNSUPPORTED, "%s", f->cases->why);
    snprintf(f->cases->label, sizeof f->cases->label, "%s", f->cases->info.type);
    f->cases->file_bytes = f->cases->info.n_bytes;
    return WEFT_OK;
}

static int show_pull(void *arg, const weft_pull_state *s)
{
    return s->file ? progress_update(arg, "looking at the files", 0) : 0;
}

static weft_status look_at_hub(fit_command *f, weft_error *err)
{
    weft_hub_repo *repo;
    weft_pull_params params;
    weft_pull_params_default(&params);
    params.progress = show_pull;
    params.progress_arg = &f->bar;
    weft_status st = weft_hub_open(f->name, &params, &repo, err);
    if (st) return st;
    st = fit_hub_cases(repo, &f->cases, &f->n, err);
    for (int i = 0; i < f->n && !st; i++) {
        fit_case *c = &f->cases[i];
        char path[4096];
        weft_error own = {0};
        if (c->file_bytes > f->m.room) continue;
        progress_update(&f->bar, "looking at the files", (double)i / f->n);
        st = weft_hub_outline(repo, i, path, sizeof path, &own);
        if (!st) st = fit_look_at(path, &f->o, &f->m, c, err);
        else if (st == WEFT_NO_MEMORY || st == WEFT_CANCELLED || st == WEFT_IO) *err = own;
        else {
            snprintf(c->why, sizeof c->why, "%.*s", FIT_WHY - 1, own.message);
            st = WEFT_OK;
        }
    }
    progress_end(&f->bar);
    weft_hub_close(&repo);
    return st;
}

/* A shape that has the name of a known model, too, was looked at. */
static weft_status tell_other(const char *name, weft_status st)
{
    char known[KNOWN_BYTES];
    if (!st && known_find(name, known, sizeof known))
        fprintf(stderr, "weft fit: %s is taken as the synthetic shape; the known model of that name is %s\n", name,
                known);
    return st;
}

/* A file or folder that is there; a shape, which asks no network; a known model; a name of a hub, or what was pulled of
 * it where that cannot be reached. */
static weft_status look(fit_command *f, weft_error *err)
{
    struct stat s;
    char path[4096];
    if (!stat(f->name, &s)) return look_at_file(f, f->name, err);
    const size_t n = strlen(f->name);
    if (n > 5 && !strcasecmp(f->name + n - 5, ".gguf") && !strchr(f->name, '/'))
        return weft_fail(err, WEFT_NOT_FOUND, "%s: %s", f->name, strerror(ENOENT));
    weft_status st = strchr(f->name, '/') ? WEFT_NOT_FOUND : look_at_shape(f, err);
    if (st != WEFT_NOT_FOUND) return tell_other(f->name, st);
    if (!strchr(f->name, '/') && !known_find(f->name, f->known, sizeof f->known)) return st;
    if (f->known[0]) f->name = f->known;
    free(f->cases);
    f->cases = NULL;
    f->n = 0;
    st = look_at_hub(f, err);
    if (st != WEFT_IO || weft_resolve_model(f->name, path, sizeof path, NULL)) return st;
    fprintf(stderr, "weft fit: %s; what was pulled of it is looked at\n", err->message);
    return look_at_file(f, path, err);
}

/* ---- for people ---- */

static void print_rate(const fit_rate *r)
{
    char text[32];
    if (r->least <= 0) snprintf(text, sizeof text, "not measured");
    else if (r->most > 0)
        snprintf(text, sizeof text, r->most < 10 ? "%.1f to %.1f" : "%.0f to %.0f", r->least, r->most);
    else snprintf(text, sizeof text, r->least < 10 ? "%.1f or more" : "%.0f or more", r->least);
    printf("  %15s", text);
}

static void print_case(const fit_command *f, int i)
{
    const fit_case *c = &f->cases[i];
    char bytes[FIT_BYTES];
    printf("%c ", i == f->chosen ? '*' : ' ');
    print_clean(stdout, c->label, strlen(c->label), 14);
    printf(" %8s", fit_bytes(c->file_bytes, bytes));
    if (!c->looked) {
        printf("  ");
        if (c->why[0]) print_clean(stdout, c->why, strlen(c->why), 0);
        else printf("larger than the memory");
        putchar('\n');
        return;
    }
    printf(" %8s", fit_bytes(c->needed, bytes));
    if (c->ctx_most) printf("  %12d  %8d", c->ctx_most, c->slots_most);
    else printf("  %22s", "does not fit");
    print_rate(&c->generation);
    print_rate(&c->prompt);
    putchar('\n');
}

static void print_text(const fit_command *f)
{
    const doctor_measured *m = &f->m.measured;
    char room[FIT_BYTES];
    int32_t n_ctx = 0;
    for (int i = 0; i < f->n; i++)
        if (f->cases[i].looked) n_ctx = f->cases[i].n_ctx;
    print_clean(stdout, f->name, strlen(f->name), 0);
    printf(": %s for it (%s)", fit_bytes(f->m.room, room), f->o.memory ? "--memory" : "of what is free now");
    if (m->n_threads)
        printf("; %d threads read %.1f GB/s (%.1f to %.1f)", m->n_threads, m->read_gb_s.median, m->read_gb_s.least,
               m->read_gb_s.most);
    printf("\n\n");
    printf("  %-14s %8s %8s  %12s  %8s  %15s  %15s\n", "", "file", "memory", "most context", "requests",
           "generation t/s", "prompt t/s");
    for (int i = 0; i < f->n; i++) print_case(f, i);
    printf("\nmemory: with one request of %d tokens. requests: of so many tokens each, at once.\n%s\n", n_ctx, f->why);
}

/* ---- JSON ---- */

static void put_rate(weft__strbuf *t, const char *name, const fit_rate *r)
{
    if (r->least <= 0) {
        weft__strbuf_printf(t, ", \"%s\": null", name);
        return;
    }
    weft__strbuf_printf(t, ", \"%s\": {\"least\": %.4f, \"most\": ", name, r->least);
    if (r->most > 0) weft__strbuf_printf(t, "%.4f}", r->most);
    else weft__strbuf_puts(t, "null}");
}

static void put_case(weft__strbuf *t, const fit_case *c)
{
    weft__strbuf_puts(t, "{\"quantization\": ");
    weft__json_write_string(t, c->label, strlen(c->label));
    weft__strbuf_puts(t, ", \"file\": ");
    weft__json_write_string(t, c->what, strlen(c->what));
    weft__strbuf_printf(t, ", \"file_bytes\": %llu, \"fits\": %s", (unsigned long long)c->file_bytes,
                        c->fits ? "true" : "false");
    if (!c->looked) {
        weft__strbuf_puts(t, ", \"why\": ");
        const char *why = c->why[0] ? c->why : "larger than the memory";
        weft__json_write_string(t, why, strlen(why));
        weft__strbuf_puts(t, "}");
        return;
    }
    weft__strbuf_printf(t, ", \"packed_bytes\": %llu, \"own_bytes\": %llu, \"steps_bytes\": %llu",
                        (unsigned long long)c->bytes.packed, (unsigned long long)c->bytes.own,
                        (unsigned long long)c->bytes.steps);
    weft__strbuf_printf(t, ", \"pages_bytes\": %llu, \"scratch_bytes\": %llu, \"kv_pages\": %d, \"needed_bytes\": %llu",
                        (unsigned long long)c->engine.pages, (unsigned long long)c->engine.scratch, c->engine.kv_pages,
                        (unsigned long long)c->needed);
    weft__strbuf_printf(t, ", \"context\": %d, \"context_most\": %d, \"slots_most\": %d", c->n_ctx, c->ctx_most,
                        c->slots_most);
    put_rate(t, "generation", &c->generation);
    put_rate(t, "prompt", &c->prompt);
    weft__strbuf_puts(t, "}");
}

static weft_status print_fit_json(const fit_command *f, weft_error *err)
{
    weft__strbuf t = {0};
    const doctor_range *r = &f->m.measured.read_gb_s;
    weft__strbuf_puts(&t, "{\"model\": ");
    weft__json_write_string(&t, f->name, strlen(f->name));
    weft__strbuf_printf(&t, ", \"room_bytes\": %llu, \"available_bytes\": %llu", (unsigned long long)f->m.room,
                        (unsigned long long)f->m.machine.available_bytes);
    if (f->m.measured.n_threads)
        weft__strbuf_printf(&t, ", \"threads\": %d, \"read_gb_s\": {\"median\": %.3f, \"least\": %.3f, \"most\": %.3f}",
                            f->m.measured.n_threads, r->median, r->least, r->most);
    else weft__strbuf_puts(&t, ", \"threads\": null, \"read_gb_s\": null"); /* --no-measure */
    weft__strbuf_puts(&t, ", \"cases\": [");
    for (int i = 0; i < f->n; i++) {
        if (i) weft__strbuf_puts(&t, ", ");
        put_case(&t, &f->cases[i]);
    }
    weft__strbuf_puts(&t, "], \"choice\": ");
    if (f->chosen >= 0) weft__json_write_string(&t, f->cases[f->chosen].label, strlen(f->cases[f->chosen].label));
    else weft__strbuf_puts(&t, "null");
    weft__strbuf_puts(&t, ", \"why\": ");
    weft__json_write_string(&t, f->why, strlen(f->why));
    weft__strbuf_puts(&t, "}\n");
    return print_whole(&t, err);
}

static int fit_told(fit_command *f)
{
    weft_error err = {0};
    f->o.threads = threads_to_use(f->o.threads);
    weft_status st = fit_look_around(&f->o, &f->m, &err);
    if (!st) st = look(f, &err);
    if (!st) f->chosen = fit_choose(f->cases, f->n, &f->m, f->why);
    if (!st && f->json) st = print_fit_json(f, &err);
    else if (!st) print_text(f);
    free(f->cases);
    if (st) return report("fit", &err);
    return f->chosen >= 0 ? EXIT_DONE : EXIT_FAILED;
}

int cmd_fit(int argc, char **argv)
{
    fit_command f = {.o = {.depth = 128}, .kv_type = "f16", .chosen = -1};
    const option_spec options[] = {
        {"ctx", 'c', OPT_INT, &f.o.n_ctx, "TOKENS", "context of a request (4096, or the model's)", 1, WEFT_CTX_MAX,
         NULL},
        {"depth", 'd', OPT_INT, &f.o.depth, "TOKENS", "in the context while it generates (128)", 0, WEFT_CTX_MAX, NULL},
        KV_TYPE_OPTION(&f.kv_type, "f16"),
        {"memory", 0, OPT_TEXT, &f.memory, "SIZE", "of so much memory (8G, 512M) instead of what is free", 0, 0, NULL},
        {"threads", 't', OPT_INT, &f.o.threads, "THREADS", "threads that compute (one per core)", 1, WEFT_THREADS_MAX,
         NULL},
        {"no-measure", 0, OPT_FLAG, &f.o.no_measure, NULL, "sizes alone, no rates", 0, 0, NULL},
        {"json", 0, OPT_FLAG, &f.json, NULL, "a JSON object", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {
        "fit",
        "OWNER/NAME|NAME|FILE|SHAPE [options]",
        "Tells which quantization of a model fits into the memory that is free now (and that the control group may\n"
        "have), with which context, with how many requests at once, and how many tokens per second to expect of what\n"
        "this machine reads and multiplies now: from its slowest round to its fastest. Of a repository only the heads\n"
        "of its files are fetched. SHAPE is one that 'weft bench --synthetic' knows, and goes before a NAME of\n"
        "'weft pull --known'.",
        "  weft fit Qwen/Qwen2.5-7B-Instruct-GGUF\n  weft fit model.gguf -c 16384\n  weft fit llama-3.1-8b --memory "
        "8G\n",
        options,
        1,
        1};
    int first, rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    f.name = argv[first];
    f.o.kv_dtype = kv_type_of(f.kv_type);
    if (f.memory && !(f.o.memory = fit_size(f.memory))) {
        fprintf(stderr, "weft fit: --memory is no size: 8G, 512M, or bytes\n");
        return EXIT_USAGE;
    }
    return fit_told(&f);
}
