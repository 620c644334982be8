// SPDX-License-Identifier: Apache-2.0
/* bench_profile.c: weft bench --profile: where the time of a row goes, per op and per layer.
 * Invariant: the times of all entries and the time between ops add up to the time of the steps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bench.h"
#include "terminal.h"

/* One op of one layer, or a sum of several, over all steps of all repetitions. */
typedef struct bench_profile_entry {
    int32_t layer;
    char op[32], name[96], type[16]; /* "linear", "attn_q", "Q4_0" */
    int64_t n;
    double ns, wait_ns, bytes, ops;
    bench_counts counts;
} bench_profile_entry;

typedef struct profile {
    char test[64];
    int32_t n_rows; /* of the largest step */
    int32_t n_reps;
    int64_t n_steps;
    double step_ns;
    bench_taken taken;
    int counted;
    bench_counters counters;
    bench_profile_entry *items;
    size_t n, capacity;
} profile;

/* ---- collecting ---- */

/* The entry of that layer and op, added when it is the first; NULL when memory runs out. */
static bench_profile_entry *find_entry(profile *p, int32_t layer, const char *op, const char *name, const char *type)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->items[i].layer == layer && !strcmp(p->items[i].op, op) && !strcmp(p->items[i].name, name))
            return &p->items[i];
    if (p->n == p->capacity) {
        size_t capacity = p->capacity ? 2 * p->capacity : 64;
        bench_profile_entry *grown = realloc(p->items, capacity * sizeof *grown);
        if (!grown) return NULL;
        p->items = grown;
        p->capacity = capacity;
    }
    bench_profile_entry *e = &p->items[p->n++];
    *e = (bench_profile_entry){.layer = layer};
    snprintf(e->op, sizeof e->op, "%s", op);
    snprintf(e->name, sizeof e->name, "%s", name);
    snprintf(e->type, sizeof e->type, "%s", type);
    return e;
}

static void bench_profile_add(bench_profile_entry *to, const bench_profile_entry *from)
{
    to->n += from->n;
    to->ns += from->ns;
    to->wait_ns += from->wait_ns;
    to->bytes += from->bytes;
    to->ops += from->ops;
    bench_counts_sum(&to->counts, &from->counts);
}

static weft_status collect(profile *p, weft_model *model, weft_error *err)
{
    weft_status st;
    for (int32_t i = 0; i < weft_model_profile_n_steps(model); i++) {
        weft_profile_step s = {.size = sizeof s};
        if ((st = weft_model_profile_step(model, i, &s, err))) return st;
        p->n_steps++;
        p->step_ns += (double)(s.end_ns - s.begin_ns);
        if (s.n_rows > p->n_rows) p->n_rows = s.n_rows;
        for (int32_t k = s.first_op; k < s.first_op + s.n_ops; k++) {
            weft_profile_op op = {.size = sizeof op};
            if ((st = weft_model_profile_op(model, k, &op, err))) return st;
            bench_profile_entry *e = find_entry(p, op.layer, op.op, op.name, op.type);
            if (!e) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a profile");
            bench_profile_add(e, &(bench_profile_entry){.n = 1,
                                                        .ns = (double)(op.end_ns - op.begin_ns),
                                                        .wait_ns = (double)(op.end_ns - op.done_ns),
                                                        .bytes = op.bytes,
                                                        .ops = op.ops});
            if (p->counted && (st = bench_counters_add(&p->counters, &e->counts, model, k, err))) return st;
        }
    }
    return WEFT_OK;
}

/* One line per op over all layers (by_layer 0), or per layer over all its ops. Entries keep the order of execution. */
static weft_status sum_up(const profile *p, int by_layer, profile *out, weft_error *err)
{
    *out = (profile){.n_steps = p->n_steps, .step_ns = p->step_ns, .n_reps = p->n_reps, .counters = p->counters};
    for (size_t i = 0; i < p->n; i++) {
        const bench_profile_entry *from = &p->items[i];
        bench_profile_entry *e =
            by_layer ? find_entry(out, from->layer, "", "", "") : find_entry(out, 0, from->op, from->name, from->type);
        if (!e) {
            free(out->items);
            out->items = NULL;
            return weft_fail(err, WEFT_NO_MEMORY, "no memory for a profile");
        }
        if (strcmp(e->type, from->type)) snprintf(e->type, sizeof e->type, "%s", by_layer ? "" : "mixed");
        bench_profile_add(e, from);
    }
    return WEFT_OK;
}

static double total_ns(const profile *p)
{
    double ns = 0;
    for (size_t i = 0; i < p->n; i++) ns += p->items[i].ns;
    return ns;
}

/* ---- printing ---- */

/* "12.34", or nothing where there is nothing to count. */
static const char *rate(char text[32], double amount, double ns)
{
    text[0] = 0;
    if (amount > 0 && ns > 0) snprintf(text, 32, "%.2f", amount / ns);
    return text;
}

static void print_line(const profile *p, const char *what, const char *type, const bench_profile_entry *e)
{
    char gb_s[32], gops[32];
    double steps = (double)p->n_steps;
    printf("| %-36s | %-6s | %5.4g | %9.4f | %5.1f %% | %13.4f | %8s | %8s |\n", what, type, (double)e->n / steps,
           e->ns / steps / 1e6, 100 * e->ns / p->step_ns, e->wait_ns / steps / 1e6, rate(gb_s, e->bytes, e->ns),
           rate(gops, e->ops, e->ns));
}

static void print_head(const char *what)
{
    printf("| %-36s | type   | calls | ms / step |   share | of it waiting |     GB/s |     GOPS |\n", what);
    printf("| ------------------------------------ | ------ | ----: | --------: | ------: | ------------: | -------: | "
           "-------: "
           "|\n");
}

static const char *op_name(const bench_profile_entry *e, char what[160])
{
    snprintf(what, 160, "%s%s%s", e->op, strcmp(e->op, e->name) ? " " : "", strcmp(e->op, e->name) ? e->name : "");
    return what;
}

static void print_counters(const profile *p, const profile *ops)
{
    char what[160];
    bench_counts all = {0};
    printf("\n");
    bench_counters_head(&p->counters);
    for (size_t i = 0; i < ops->n; i++) {
        const bench_profile_entry *e = &ops->items[i];
        bench_counters_line(&p->counters, op_name(e, what), e->type, &e->counts, (double)p->n_steps);
        bench_counts_sum(&all, &e->counts);
    }
    bench_counters_line(&p->counters, "all ops", "", &all, (double)p->n_steps);
    bench_counters_foot(&p->counters);
}

static void print_md(const profile *p, const profile *ops, const profile *layers)
{
    char what[160], taken[WEFT__TAKEN_ROOM];
    bench_profile_entry between = {.ns = p->step_ns - total_ns(p)};
    printf("\n%s: %lld steps of up to %d rows, %.4f ms each; taken: %s\n\n", p->test, (long long)p->n_steps, p->n_rows,
           p->step_ns / (double)p->n_steps / 1e6, bench_taken_cell(&p->taken, p->n_reps, taken));
    print_head("op");
    for (size_t i = 0; i < ops->n; i++) {
        const bench_profile_entry *e = &ops->items[i];
        print_line(p, op_name(e, what), e->type, e);
    }
    print_line(p, "between ops", "", &between);
    printf("\n");
    print_head("layer");
    for (size_t i = 0; i < layers->n; i++) {
        const bench_profile_entry *e = &layers->items[i];
        snprintf(what, sizeof what, "%d", e->layer);
        print_line(p, e->layer < 0 ? "outside" : what, "", e);
    }
    if (p->counted) print_counters(p, ops);
    fflush(stdout);
}

static void put_measures(weft__strbuf *t, const profile *p, const bench_profile_entry *e)
{
    weft__strbuf_printf(
        t,
        "\"n\": %lld, \"ns\": %.0f, \"wait_ns\": %.0f, \"share\": %.6f, \"bytes\": %.0f, \"ops\": %.0f, \"gb_s\": "
        "%.4f, \"gops\": %.4f",
        (long long)e->n, e->ns, e->wait_ns, e->ns / p->step_ns, e->bytes, e->ops, e->ns > 0 ? e->bytes / e->ns : 0,
        e->ns > 0 ? e->ops / e->ns : 0);
    bench_counters_json(t, &p->counters, &e->counts);
}

static void put_ops(weft__strbuf *t, const profile *p, const bench_profile_entry *items, size_t n, int32_t layer,
                    int any_layer)
{
    int first = 1;
    weft__strbuf_puts(t, "[");
    for (size_t i = 0; i < n; i++) {
        const bench_profile_entry *e = &items[i];
        if (!any_layer && e->layer != layer) continue;
        weft__strbuf_printf(t, "%s{\"op\": \"%s\", \"name\": ", first ? "" : ", ", e->op);
        weft__json_write_string(t, e->name, strlen(e->name));
        weft__strbuf_printf(t, ", \"type\": \"%s\", ", e->type);
        put_measures(t, p, e);
        weft__strbuf_puts(t, "}");
        first = 0;
    }
    weft__strbuf_puts(t, "]");
}

static void print_json(enum bench_format format, int is_first, const bench_row *r, const profile *p, const profile *ops,
                       const profile *layers)
{
    weft__strbuf t = {0};
    weft__strbuf_printf(&t, "%s{\"weft_version\": \"%s\", \"model_filename\": ",
                        format == BENCH_JSON && !is_first ? ",\n" : "", weft_version());
    weft__json_write_string(&t, r->model_file, strlen(r->model_file));
    weft__strbuf_printf(
        &t,
        ", \"test\": \"%s\", \"n_prompt\": %d, \"n_gen\": %d, \"n_depth\": %d, \"n_parallel\": %d, \"n_threads\": %d, ",
        p->test, r->n_prompt, r->n_gen, r->n_depth, r->n_parallel, r->info.n_threads);
    bench_taken_json(&t, &p->taken, p->n_reps);
    weft__strbuf_printf(&t,
                        "\"n_steps\": %lld, \"step_ns\": %.0f, \"between_ns\": %.0f, \"ops\": ", (long long)p->n_steps,
                        p->step_ns, p->step_ns - total_ns(p));
    put_ops(&t, p, ops->items, ops->n, 0, 1);
    weft__strbuf_puts(&t, ", \"layers\": [");
    for (size_t i = 0; i < layers->n; i++) {
        weft__strbuf_printf(&t, "%s{\"layer\": %d, ", i ? ", " : "", layers->items[i].layer);
        put_measures(&t, p, &layers->items[i]);
        weft__strbuf_puts(&t, ", \"ops\": ");
        put_ops(&t, p, p->items, p->n, layers->items[i].layer, 0);
        weft__strbuf_puts(&t, "}");
    }
    weft__strbuf_puts(&t, "]");
    if (p->counted) bench_counters_absent_json(&t, &p->counters);
    weft__strbuf_puts(&t, "}");
    if (!t.failed) printf("%s%s", t.data, format == BENCH_JSONL ? "\n" : "");
    weft__strbuf_free(&t);
    fflush(stdout);
}

/* ---- running ---- */

/* All repetitions; the model keeps the record of the last one. What was recorded of one that is measured again is
 * forgotten. */
static weft_status measure(const bench_options *o, weft_model *model, const bench_row *r, profile *p, weft_error *err)
{
    bench_case c;
    weft_status st = bench_case_open(&c, model, o, r->n_parallel, r->n_depth + r->n_prompt + r->n_gen, err);
    p->n_reps = o->reps;
    bench_taken_start(&p->taken, o, r->info.n_threads);
    for (int i = o->no_warmup ? 0 : -1; i < o->reps && !st;) {
        if ((st = bench_case_depth(&c, r->n_depth, err))) break;
        bench_taken_begin(&p->taken);
        if (i >= 0 &&
            (st = o->counters ? weft_model_profile_start_counting(model, err) : weft_model_profile_start(model, err)))
            break;
        st = bench_case_prompt(&c, r->n_prompt, err);
        if (!st) st = bench_case_generate(&c, r->n_gen, err);
        weft_model_profile_stop(model);
        if (st || (i >= 0 && bench_taken_again(&p->taken, NULL))) continue;
        if (i++ >= 0) st = collect(p, model, err);
    }
    bench_case_close(&c);
    return st;
}

weft_status bench_profile(const bench_options *o, weft_model *model, const bench_row *r, bench_trace *trace,
                          bench_tally *tally, weft_error *err)
{
    profile p = {.counted = o->counters}, ops = {0}, layers = {0};
    bench_name(r, p.test);
    weft_status st = measure(o, model, r, &p, err);
    if (!st && trace) st = bench_trace_add(trace, model, tally->n_rows + 1, p.test, err);
    for (size_t i = 0; i < p.n; i++) bench_counters_look(&p.counters, &p.items[i].counts);
    if (!st) st = sum_up(&p, 0, &ops, err);
    if (!st) st = sum_up(&p, 1, &layers, err);
    if (!st && o->format == BENCH_MD) print_md(&p, &ops, &layers);
    if (!st && o->format != BENCH_MD) print_json(o->format, tally->n_rows == 0, r, &p, &ops, &layers);
    if (!st) tally->n_rows++, tally->n_marked += bench_taken_disturbed(&p.taken, o->reps) > 0;
    free(layers.items);
    free(ops.items);
    free(p.items);
    return st;
}
