// SPDX-License-Identifier: Apache-2.0
/* cmd_pull.c: weft pull: fetches a model, with a bar, speed and time left. Ctrl-C stops; what was fetched stays. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "commands.h"
#include "fit.h"
#include "known.h"
#include "options.h"
#include "pull.h"
#include "terminal.h"

enum { BAR = 24 };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    interrupted = 1;
    signal(signal_number, SIG_DFL); /* a second one ends at once */
}

/* What is shown. The speed is that of the last seconds: each new measurement, a fifth of a second long, counts a
 * tenth. */
struct display {
    uint64_t drawn_ns, measured_ns, measured_bytes;
    double bytes_per_s;
    int shown, announced; /* where stderr is no terminal: 1 + index of the file that was named, -1: that it waits */
    int32_t index;
    char what[16];
};

static void print_bytes(char out[16], double n)
{
    static const char units[] = "kMGTPE";
    int unit = -1;
    while (n >= 1000 && unit < 5) n /= 1000, unit++;
    if (unit < 0) snprintf(out, 16, "%.0f B", n);
    else snprintf(out, 16, n < 10 ? "%.2f %cB" : "%.1f %cB", n, units[unit]);
}

static void measure(struct display *d, const weft_pull_state *s, uint64_t now)
{
    if (strcmp(d->what, s->what) || s->done < d->measured_bytes || !d->measured_ns) {
        snprintf(d->what, sizeof d->what, "%s", s->what);
        d->bytes_per_s = 0;
    } else if (s->index != d->index) {
        /* Files that were there are passed over: no measure of the network. */
    } else if (now - d->measured_ns < 200000000u) {
        return;
    } else {
        double speed = (double)(s->done - d->measured_bytes) / ((double)(now - d->measured_ns) / 1e9);
        d->bytes_per_s = d->bytes_per_s > 0 ? 0.9 * d->bytes_per_s + 0.1 * speed : speed;
    }
    d->index = s->index;
    d->measured_ns = now;
    d->measured_bytes = s->done;
}

static const char waiting[] = "another process is pulling this model: waiting";

static int waits(const weft_pull_state *s)
{
    return !strcmp(s->what, "waiting");
}

static void draw(struct display *d, const weft_pull_state *s)
{
    char done[16], bytes[16], speed[16];
    if (!s->bytes || s->done == 0) {
        fprintf(stderr, "\r%s ...\x1b[K", waits(s) ? waiting : s->what);
        return;
    }
    double fraction = s->done < s->bytes ? (double)s->done / (double)s->bytes : 1;
    int full = (int)(fraction * BAR);
    print_bytes(done, (double)s->done);
    print_bytes(bytes, (double)s->bytes);
    print_bytes(speed, d->bytes_per_s);
    fprintf(stderr, "\r%s %d/%d [%.*s%*s] %3.0f %%  %s of %s", s->what, s->index + 1, s->n_files, full,
            "########################", BAR - full, "", 100 * fraction, done, bytes);
    if (d->bytes_per_s > 0) {
        double left = (double)(s->bytes - (s->done < s->bytes ? s->done : s->bytes)) / d->bytes_per_s;
        fprintf(stderr, "  %s/s", speed);
        if (left < 360000)
            fprintf(stderr, "  %d:%02d:%02d left", (int)left / 3600, (int)left / 60 % 60, (int)left % 60);
    }
    fprintf(stderr, "\x1b[K");
}

/* A weft_pull_fn; arg is a struct display. */
static int show(void *arg, const weft_pull_state *s)
{
    struct display *d = arg;
    uint64_t now = now_ns();
    if (!isatty(STDERR_FILENO)) {
        char bytes[16];
        print_bytes(bytes, (double)s->bytes);
        if (waits(s) && !d->announced) {
            fprintf(stderr, "%s\n", waiting);
            d->announced = -1;
        }
        if (s->file && d->announced != s->index + 1)
            fprintf(stderr, "fetching file %d of %d (%s in all)\n", s->index + 1, s->n_files, bytes);
        if (s->file) d->announced = s->index + 1;
        return interrupted;
    }
    measure(d, s, now);
    if (now - d->drawn_ns < 100000000u) return interrupted;
    d->drawn_ns = now;
    d->shown = 1;
    draw(d, s);
    fflush(stderr);
    return interrupted;
}

static void finish(const char *name, const weft_pull_result *r)
{
    char bytes[16];
    print_bytes(bytes, (double)r->n_bytes);
    fprintf(stderr, "%s: %d file%s, %s, %s\n", name, r->n_files, r->n_files == 1 ? "" : "s", bytes,
            r->n_fetched ? "complete" : "was complete");
    if (r->n_unverified)
        fprintf(stderr, "%d of them: the server gives no SHA-256 to check against (small files have none)\n",
                r->n_unverified);
}

/* ---- which file ---- */

/* A model of the repository that was pulled, whole or not; the one that is opened by the repository's name where there
 * are several. */
struct pulled_before {
    const char *name, *path; /* OWNER/NAME; where it leads now, or "" */
    char full[1400];
};

static void compare_pulled(void *arg, const weft_pulled *m)
{
    struct pulled_before *b = arg;
    const size_t n = strlen(b->name);
    if (strncmp(m->name, b->name, n) || (m->name[n] && m->name[n] != ':')) return;
    if (b->full[0] && strcmp(m->path, b->path)) return;
    snprintf(b->full, sizeof b->full, "%s", m->name);
}

/* The whole name of what is to be pulled: what was chosen before, or what fits. */
static weft_status complete_name(const char *name, const weft_pull_params *params, char *full, size_t room,
                                 weft_error *err)
{
    char path[4096] = "", what[1100], why[FIT_WHY];
    const fit_options o = {.kv_dtype = WEFT_F16, .depth = 128};
    snprintf(full, room, "%s", name);
    if (strchr(name, ':')) return WEFT_OK;
    if (weft_resolve_model(name, path, sizeof path, NULL)) path[0] = 0;
    struct pulled_before before = {.name = name, .path = path};
    weft_pulled_each(compare_pulled, &before, NULL);
    if (before.full[0]) {
        snprintf(full, room, "%s", before.full);
        return WEFT_OK;
    }
    weft_status st = fit_choose_of_hub(name, &o, params, what, sizeof what, why, err);
    if (st || !what[0]) return st;
    snprintf(full, room, "%s:%s", name, what);
    fprintf(stderr, "%s%s\n", isatty(STDERR_FILENO) ? "\r\x1b[K" : "", why);
    return WEFT_OK;
}

int pull_given;

weft_status pull_shown(const char *name, weft_pull_result *result, weft_error *err)
{
    struct display d = {0};
    weft_pull_params params;
    char full[1400];
    weft_pull_params_default(&params);
    params.progress = show;
    params.progress_arg = &d;
    interrupted = 0;
    struct sigaction action = {0}, before_int, before_term;
    action.sa_handler = on_interrupt;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &before_int);
    sigaction(SIGTERM, &action, &before_term);
    weft_status st = complete_name(name, &params, full, sizeof full, err);
    if (!st) st = weft_pull(full, &params, result, err);
    if (d.shown) fprintf(stderr, "\r\x1b[K");
    sigaction(SIGINT, &before_int, NULL);
    sigaction(SIGTERM, &before_term, NULL);
    if (!st) finish(full, result);
    if (!st) pull_tell_adapter(result->path);
    return st;
}

/* ---- known models ---- */

struct known_list {
    int json, n;
    weft__strbuf text;
    const known_model *m; /* whose size is looked for */
    uint64_t n_bytes;
};

/* What is here of a repository. */
static void add_pulled(void *arg, const weft_pulled *p)
{
    struct known_list *l = arg;
    const size_t n = strlen(l->m->repository);
    if (!strncmp(p->name, l->m->repository, n) && (!p->name[n] || p->name[n] == ':')) l->n_bytes += p->n_bytes;
}

static void add_known_json(struct known_list *l, const known_model *m)
{
    weft__strbuf *t = &l->text;
    const char *const members[][2] = {{"name", m->name},       {"repository", m->repository},
                                      {"files", m->files},     {"parameters", m->parameters},
                                      {"licence", m->licence}, {"source", m->source}};
    weft__strbuf_puts(t, l->n ? ", {" : "{");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        weft__strbuf_printf(t, "\"%s\": ", members[i][0]);
        if (members[i][1][0]) weft__json_write_string(t, members[i][1], strlen(members[i][1]));
        else weft__strbuf_puts(t, "null");
        weft__strbuf_puts(t, ", ");
    }
    weft__strbuf_printf(t, "\"bytes_here\": %llu, \"own\": %s}", (unsigned long long)l->n_bytes,
                        m->is_own ? "true" : "false");
}

static void add_known(void *arg, const known_model *m)
{
    struct known_list *l = arg;
    char here[16] = "";
    l->m = m;
    l->n_bytes = 0;
    weft_pulled_each(add_pulled, l, NULL);
    if (l->n_bytes) print_bytes(here, (double)l->n_bytes);
    if (l->json) add_known_json(l, m);
    else
        weft__strbuf_printf(&l->text, "%-28s %5s  %-16s %8s  %s\n", m->name, m->parameters,
                            m->licence[0] ? m->licence : "licence not read", here, m->repository);
    l->n++;
}

static int list_known(int json)
{
    struct known_list l = {.json = json};
    weft_error err = {0};
    if (json) weft__strbuf_puts(&l.text, "[");
    weft_status st = known_each(add_known, &l, &err);
    if (json) weft__strbuf_puts(&l.text, "]\n");
    if (!st) st = print_whole(&l.text, &err);
    else weft__strbuf_free(&l.text);
    return st ? report("pull", &err) : EXIT_DONE;
}

static int no_name(void)
{
    fprintf(stderr, "weft pull: give OWNER/NAME or --known, one of them\n");
    return EXIT_USAGE;
}

int cmd_pull(int argc, char **argv)
{
    int known = 0, json = 0;
    const option_spec options[] = {
        {"known", 0, OPT_FLAG, &known, NULL, "lists well-known models by short names, which NAME may be", 0, 0, NULL},
        {"json", 0, OPT_FLAG, &json, NULL, "that list as a JSON array", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {
        "pull",
        "OWNER/NAME[:FILE-OR-QUANTIZATION]|NAME|--known",
        "Fetches a model from Hugging Face into the cache and prints its path. Every command "
        "takes the same name as its MODEL\n"
        "afterwards. Without a file or quantization: the largest that fits into this machine and "
        "is fast enough to read along\n"
        "('weft fit OWNER/NAME' shows them all), which is told; where the heads of the files do "
        "not say how large they will be,\n"
        "Q4_K_M or what comes next to it; of a repository without GGUF files the configuration, "
        "tokenizer and safetensors. Files\n"
        "that were begun are continued; sizes and SHA-256 are checked. An adapter is tried on the models that were "
        "pulled.\n"
        "A NAME without owner is one of --known, or of known.json in weft of $XDG_CONFIG_HOME or ~/.config: a list of\n"
        "{\"name\": ..., \"repository\": \"OWNER/NAME\"}.\n\n"
        "Environment: HF_TOKEN (for private and gated models), HF_ENDPOINT (another server), "
        "WEFT_CACHE (where models are kept;\n"
        "by default weft in $XDG_CACHE_HOME or ~/.cache), WEFT_PULL_TIMEOUT (seconds without "
        "data, 30), WEFT_PULL_RETRIES (5),\n"
        "TMPDIR (where the heads of files are looked at), https_proxy, no_proxy, SSL_CERT_FILE.",
        "  weft pull Qwen/Qwen2.5-0.5B-Instruct-GGUF\n"
        "  weft pull Qwen/Qwen2.5-0.5B-Instruct-GGUF:q8_0\n"
        "  weft run Qwen/Qwen2.5-0.5B-Instruct-GGUF:q8_0 \"Hello\"\n",
        options,
        0,
        1};
    int first, rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    weft_error err = {0};
    weft_pull_result result;
    if (known || argc == first) return known && argc == first ? list_known(json) : no_name();
    char found[1400];
    const char *name = known_find(argv[first], found, sizeof found) ? found : argv[first];
    weft_status st = pull_shown(name, &result, &err);
    if (st == WEFT_CANCELLED) fprintf(stderr, "weft pull: stopped; the same command continues where it was\n");
    else if (st) report("pull", &err);
    else printf("%s\n", result.path);
    return st ? EXIT_FAILED : EXIT_DONE;
}
