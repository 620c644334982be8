// SPDX-License-Identifier: Apache-2.0
/* cmd_doctor.c: weft doctor: what this machine has for running models, measured now, what helps and what is missing. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "commands.h"
#include "doctor.h"
#include "options.h"
#include "terminal.h"
#include "threads.h"

#define GIB (1024.0 * 1024 * 1024)

typedef struct doctor {
    doctor_facts facts;
    doctor_finding findings[DOCTOR_FINDINGS];
    int n_findings;
    weft__strbuf plugins; /* names of those that can be used, ", " between */
} doctor;

/* ---- finding out ---- */

static void try_plugin(doctor *d, const char *name)
{
    weft_backend_info info = {.size = sizeof info};
    weft_error err = {0};
    d->facts.n_plugins++;
    if (!weft_provider_describe(name, &info, &err)) {
        weft__strbuf_printf(&d->plugins, "%s%s", d->plugins.len ? ", " : "", name);
    } else if (d->facts.n_broken++ == 0) {
        snprintf(d->facts.broken, sizeof d->facts.broken, "%.*s", (int)sizeof d->facts.broken - 1, err.message);
    }
}

static void look_into(doctor *d, const char *folder)
{
    DIR *dir = opendir(folder);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        const size_t n = strlen(e->d_name);
        char name[256];
        if (n <= 3 || n >= sizeof name || strcmp(e->d_name + n - 3, ".so")) continue;
        snprintf(name, sizeof name, "%.*s", (int)n - 3, e->d_name);
        try_plugin(d, name);
    }
    if (dir) closedir(dir);
}

static void find_plugins(doctor *d)
{
    const char *folders = getenv("WEFT_PLUGIN_PATH");
    for (const char *f = folders ? folders : ""; *f;) {
        char folder[4096];
        const size_t n = strcspn(f, ":");
        if (n && n < sizeof folder) {
            snprintf(folder, sizeof folder, "%.*s", (int)n, f);
            look_into(d, folder);
        }
        f += n + (f[n] == ':');
    }
}

static weft_status measure_on(int n_threads, doctor_measured *out, weft_error *err)
{
    weft_peaks rounds[DOCTOR_ROUNDS];
    weft_status st = weft_machine_measure(n_threads, DOCTOR_ROUNDS, rounds, err);
    if (!st) doctor_summarize(rounds, DOCTOR_ROUNDS, n_threads, out);
    return st;
}

static weft_status find_out(doctor *d, int measured, weft_error *err)
{
    doctor_facts *f = &d->facts;
    f->machine.size = sizeof f->machine;
    f->cpu_wish = getenv("WEFT_CPU");
    weft_status st = weft_machine_describe(&f->machine, err);
    if (st) return st;
    find_plugins(d);
    const weft_machine *m = &f->machine;
    if (measured) st = measure_on(m->n_threads, &f->one, err);
    if (measured && !st && m->n_threads_smt) st = measure_on(m->n_threads_smt, &f->two, err);
    if (measured && !st) st = weft_machine_describe(&f->machine, err); /* whether AMX is used is known now */
    if (!st && f->two.n_threads) {
        f->threads_per_core = doctor_choose_threads(&f->one, &f->two);
        if (!threads_keep(m, f->threads_per_core))
            fprintf(stderr, "weft doctor: what was found about threads cannot be kept (WEFT_CACHE)\n");
    }
    d->n_findings = doctor_advise(f, d->findings);
    return st;
}

/* ---- for people ---- */

static void print_size(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double n = (double)bytes;
    int unit = 0;
    while (n >= 1024 && unit < 4) n /= 1024, unit++;
    printf(n >= 10 || n == (double)(int)n ? "%.0f %s" : "%.1f %s", n, units[unit]);
}

static void print_caches(const weft_machine *m)
{
    printf("caches       ");
    for (int i = 0; i < m->n_caches; i++) {
        const weft_cache *c = &m->caches[i];
        printf("%sL%d%s ", i ? ", " : "", c->level, c->type[0] == 'D' ? "d" : c->type[0] == 'I' ? "i" : "");
        print_size(c->bytes);
        if (c->n_cpus > 1) printf(" for %d processors", c->n_cpus);
    }
    puts(m->n_caches ? "" : "not told");
}

static void print_memory(const weft_machine *m)
{
    printf("memory       %.1f GiB, %.1f GiB of them free; control group: ", (double)m->memory_bytes / GIB,
           (double)m->available_bytes / GIB);
    if (m->group_bytes) printf("%.1f GiB", (double)m->group_bytes / GIB);
    else printf("no limit");
    if (m->swap_bytes) printf("; swap %.1f GiB\n", (double)m->swap_bytes / GIB);
    else puts("; no swap");
    printf("NUMA         %d node%s\n", m->n_nodes, m->n_nodes == 1 ? "" : "s");
    printf("huge pages   %s\n", m->huge_pages[0] ? m->huge_pages : "not told");
    printf("locked       ");
    if (m->memlock_bytes == UINT64_MAX) puts("no limit");
    else {
        print_size(m->memlock_bytes);
        puts(" at most (RLIMIT_MEMLOCK)");
    }
}

static void print_range(const char *name, const doctor_range *r, const char *unit)
{
    if (r->median > 0) printf("  %-26s %8.1f %s  (%.1f to %.1f)\n", name, r->median, unit, r->least, r->most);
}

static void print_measured(const doctor_measured *m)
{
    if (!m->n_threads) return;
    printf("measured     on %d thread%s, %d rounds\n", m->n_threads, m->n_threads == 1 ? "" : "s", DOCTOR_ROUNDS);
    print_range("reading memory", &m->read_gb_s, "GB/s");
    print_range("8-bit dot products", &m->int8_gops, "GOPS");
    print_range("a product in the L2 cache", &m->l2_int8_gops, "GOPS");
    print_range("BF16 dot products", &m->bf16_gflops, "GFLOPS");
    print_range("float32", &m->f32_gflops, "GFLOPS");
}

static void print_text(const doctor *d)
{
    static const char *const states[] = {"helps  ", "missing", "note   "};
    const weft_machine *m = &d->facts.machine;
    printf("processor    ");
    print_clean(stdout, m->processor, strlen(m->processor), 0);
    printf("\ncores        %d, %d logical processors, %d threads to compute", m->n_cores, m->n_cpus, m->n_threads);
    if (m->quota_cpus > 0) printf("; the control group grants the time of %.2f", m->quota_cpus);
    printf("\nkernels      %s", m->tiers_used);
    if (strcmp(m->tiers_used, m->tiers_found)) printf(" (of %s)", m->tiers_found);
    printf("; tuned for %s\n", m->tuned_for);
    print_caches(m);
    print_memory(m);
    printf("plugins      %s\n", d->plugins.len ? d->plugins.data : "none in WEFT_PLUGIN_PATH");
    print_measured(&d->facts.one);
    print_measured(&d->facts.two);
    putchar('\n');
    for (int i = 0; i < d->n_findings; i++) {
        const doctor_finding *f = &d->findings[i];
        printf("%s  %-12s ", states[f->state], f->name);
        print_clean(stdout, f->text, strlen(f->text), 0);
        if (f->command[0]) printf("\n                        $ %s", f->command);
        putchar('\n');
    }
}

/* ---- JSON ---- */

static void put_string_of(weft__strbuf *t, const char *name, const char *value)
{
    weft__strbuf_printf(t, ", \"%s\": ", name);
    weft__json_write_string(t, value, strlen(value));
}

static void put_size_of(weft__strbuf *t, const char *name, uint64_t value)
{
    if (value == UINT64_MAX) weft__strbuf_printf(t, ", \"%s\": null", name);
    else weft__strbuf_printf(t, ", \"%s\": %llu", name, (unsigned long long)value);
}

/* "a, b" as a list of strings. */
static void put_words(weft__strbuf *t, const char *name, const char *words)
{
    weft__strbuf_printf(t, ", \"%s\": [", name);
    for (const char *w = words; *w;) {
        const size_t n = strcspn(w, ",");
        weft__json_write_string(t, w, n);
        w += n;
        w += strspn(w, ", ");
        if (*w) weft__strbuf_puts(t, ", ");
    }
    weft__strbuf_puts(t, "]");
}

static void put_range(weft__strbuf *t, const char *name, const doctor_range *r)
{
    weft__strbuf_printf(t, ", \"%s\": ", name);
    if (r->median > 0)
        weft__strbuf_printf(t, "{\"median\": %.3f, \"least\": %.3f, \"most\": %.3f}", r->median, r->least, r->most);
    else weft__strbuf_puts(t, "null");
}

static void put_measured(weft__strbuf *t, const doctor_facts *f)
{
    const doctor_measured *all[] = {&f->one, &f->two};
    int n = 0;
    weft__strbuf_puts(t, ", \"measured\": [");
    for (int i = 0; i < 2; i++) {
        if (!all[i]->n_threads) continue;
        weft__strbuf_printf(t, "%s{\"threads\": %d, \"rounds\": %d", n++ ? ", " : "", all[i]->n_threads, DOCTOR_ROUNDS);
        put_range(t, "read_gb_s", &all[i]->read_gb_s);
        put_range(t, "int8_dot_gops", &all[i]->int8_gops);
        put_range(t, "l2_int8_gops", &all[i]->l2_int8_gops);
        put_range(t, "bf16_dot_gflops", &all[i]->bf16_gflops);
        put_range(t, "f32_fma_gflops", &all[i]->f32_gflops);
        weft__strbuf_puts(t, "}");
    }
    weft__strbuf_puts(t, "]");
}

static void put_amx(weft__strbuf *t, const weft_machine *m)
{
    weft__strbuf_puts(t, ", \"amx\": ");
    if (m->amx_gops > 0) {
        weft__strbuf_printf(t, "{\"used\": %s, \"gops\": %.3f, \"below_gops\": %.3f",
                            doctor_amx_used(m) ? "true" : "false", m->amx_gops, m->below_amx_gops);
        put_string_of(t, "below", m->below_amx);
        weft__strbuf_puts(t, "}");
    } else {
        weft__strbuf_puts(t, "null");
    }
}

static void put_machine(weft__strbuf *t, const weft_machine *m)
{
    weft__strbuf_puts(t, "{\"processor\": ");
    weft__json_write_string(t, m->processor, strlen(m->processor));
    weft__strbuf_printf(t,
                        ", \"processors\": %d, \"cores\": %d, \"fast_cores\": %d, \"numa_nodes\": %d, \"threads\": %d",
                        m->n_cpus, m->n_cores, m->n_fast_cores, m->n_nodes, m->n_threads);
    weft__strbuf_printf(t, ", \"threads_smt\": %d, \"quota_cpus\": ", m->n_threads_smt);
    if (m->quota_cpus > 0) weft__strbuf_printf(t, "%.3f", m->quota_cpus);
    else weft__strbuf_puts(t, "null");
    put_words(t, "tiers_found", m->tiers_found);
    put_words(t, "tiers_used", m->tiers_used);
    put_string_of(t, "tuned_for", m->tuned_for);
    put_amx(t, m);
    weft__strbuf_puts(t, ", \"caches\": [");
    for (int i = 0; i < m->n_caches; i++) {
        const weft_cache *c = &m->caches[i];
        weft__strbuf_printf(t, "%s{\"level\": %d, \"bytes\": %llu, \"processors\": %d", i ? ", " : "", c->level,
                            (unsigned long long)c->bytes, c->n_cpus);
        put_string_of(t, "type", c->type);
        weft__strbuf_puts(t, "}");
    }
    weft__strbuf_puts(t, "]");
    put_size_of(t, "memory_bytes", m->memory_bytes);
    put_size_of(t, "available_bytes", m->available_bytes);
    put_size_of(t, "group_bytes", m->group_bytes ? m->group_bytes : UINT64_MAX);
    put_size_of(t, "swap_bytes", m->swap_bytes);
    put_size_of(t, "memlock_bytes", m->memlock_bytes);
    put_string_of(t, "huge_pages", m->huge_pages);
}

static weft_status print_json(const doctor *d, weft_error *err)
{
    static const char *const states[] = {"helps", "missing", "note"};
    weft__strbuf t = {0};
    put_machine(&t, &d->facts.machine);
    put_measured(&t, &d->facts);
    if (d->facts.threads_per_core) weft__strbuf_printf(&t, ", \"threads_per_core\": %d", d->facts.threads_per_core);
    else weft__strbuf_puts(&t, ", \"threads_per_core\": null");
    put_words(&t, "plugins", d->plugins.len ? d->plugins.data : "");
    weft__strbuf_puts(&t, ", \"findings\": [");
    for (int i = 0; i < d->n_findings; i++) {
        const doctor_finding *f = &d->findings[i];
        weft__strbuf_printf(&t, "%s{\"name\": \"%s\", \"state\": \"%s\"", i ? ", " : "", f->name, states[f->state]);
        put_string_of(&t, "text", f->text);
        if (f->command[0]) put_string_of(&t, "command", f->command);
        else weft__strbuf_puts(&t, ", \"command\": null");
        weft__strbuf_puts(&t, "}");
    }
    weft__strbuf_puts(&t, "]}\n");
    return print_whole(&t, err);
}

int cmd_doctor(int argc, char **argv)
{
    int json = 0, quick = 0, first;
    const option_spec options[] = {
        {"json", 0, OPT_FLAG, &json, NULL, "a JSON object", 0, 0, NULL},
        {"no-measure", 0, OPT_FLAG, &quick, NULL, "measure nothing: what can be read alone", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {
        "doctor",
        "[options]",
        "Shows what this machine has for running models, measures what it reads and multiplies (about a second, and\n"
        "0.5 GB of memory), and tells what helps, what is missing, and the command that changes it. Where cores have\n"
        "two threads, one and two are measured; run, chat and serve then use what was faster.",
        "  weft doctor\n  weft doctor --json --no-measure\n",
        options,
        0,
        0};
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    doctor *d = calloc(1, sizeof *d);
    weft_error err = {0};
    weft_status st = d ? find_out(d, !quick, &err) : weft_fail(&err, WEFT_NO_MEMORY, "no memory");
    if (!st && json) st = print_json(d, &err);
    else if (!st) print_text(d);
    if (d) weft__strbuf_free(&d->plugins);
    free(d);
    return st ? report("doctor", &err) : EXIT_DONE;
}
