// SPDX-License-Identifier: Apache-2.0
/* bench_counters.c: weft bench --counters: what the threads counted while they did their shares of an op.
 * Invariant: what was not counted is n/a, or null, with a reason; it is never 0. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/counters.h"
#include "bench.h"

static const char *const no_turn = "other counters were in its place all the time";

weft_status bench_counters_add(bench_counters *c, bench_counts *to, const weft_model *model, int32_t op,
                               weft_error *err)
{
    for (int i = 0; i < BENCH_COUNTERS; i++) {
        weft_profile_count count = {.size = sizeof count};
        weft_status st = weft_model_profile_count(model, op, i, &count, err);
        if (st == WEFT_NOT_FOUND && i > 0) break;
        if (st) return st;
        c->n = i + 1;
        c->name[i] = count.name;
        if (count.absent) c->absent[i] = count.absent;
        to->n[i] += (double)count.n;
        to->enabled_ns[i] += (double)count.enabled_ns;
        to->running_ns[i] += (double)count.running_ns;
    }
    return WEFT_OK;
}

void bench_counts_sum(bench_counts *to, const bench_counts *from)
{
    for (int i = 0; i < BENCH_COUNTERS; i++) {
        to->n[i] += from->n[i];
        to->enabled_ns[i] += from->enabled_ns[i];
        to->running_ns[i] += from->running_ns[i];
    }
}

/* NAN: n/a. */
static double value(const bench_counters *c, const bench_counts *counts, int i)
{
    return c->absent[i] ? NAN : weft__counters_scaled(counts->n[i], counts->enabled_ns[i], counts->running_ns[i]);
}

void bench_counters_look(bench_counters *c, const bench_counts *counts)
{
    for (int i = 0; i < c->n; i++) c->missed[i] |= !c->absent[i] && isnan(value(c, counts, i));
}

/* Why some of its cells are n/a; NULL where none is. */
static const char *why(const bench_counters *c, int i)
{
    return c->absent[i] ? c->absent[i] : c->missed[i] ? no_turn : NULL;
}

void bench_counters_head(const bench_counters *c)
{
    printf("| %-36s | type  ", "counted per step");
    for (int i = 0; i < c->n; i++) printf(" | %16s", c->name[i]);
    printf(" |\n| ------------------------------------ | ------");
    for (int i = 0; i < c->n; i++) printf(" | ---------------:");
    printf(" |\n");
}

void bench_counters_line(const bench_counters *c, const char *what, const char *type, const bench_counts *counts,
                         double n_steps)
{
    printf("| %-36s | %-6s", what, type);
    for (int i = 0; i < c->n; i++) {
        const double v = value(c, counts, i);
        if (isnan(v)) printf(" | %16s", "n/a");
        else printf(" | %16.*f", v / n_steps < 100 ? 2 : 0, v / n_steps);
    }
    printf(" |\n");
}

void bench_counters_foot(const bench_counters *c)
{
    int any = 0;
    for (int i = 0; i < c->n; i++) {
        const char *reason = why(c, i);
        int told = !reason;
        for (int k = 0; k < i; k++) told |= why(c, k) == reason;
        if (told) continue;
        printf("%sn/a: ", any++ ? "" : "\n");
        for (int k = i; k < c->n; k++)
            if (why(c, k) == reason) printf("%s%s", k > i ? ", " : "", c->name[k]);
        printf(": %s\n", reason);
    }
}

void bench_counters_json(weft__strbuf *out, const bench_counters *c, const bench_counts *counts)
{
    if (c->n == 0) return;
    weft__strbuf_puts(out, ", \"counters\": {");
    for (int i = 0; i < c->n; i++) {
        const double v = value(c, counts, i);
        weft__strbuf_printf(out, "%s\"%s\": ", i ? ", " : "", c->name[i]);
        if (isnan(v)) weft__strbuf_puts(out, "null");
        else weft__strbuf_printf(out, "%.0f", v);
    }
    weft__strbuf_puts(out, "}");
}

void bench_counters_absent_json(weft__strbuf *out, const bench_counters *c)
{
    int first = 1;
    weft__strbuf_puts(out, ", \"counters_absent\": {");
    for (int i = 0; i < c->n; i++) {
        const char *reason = why(c, i);
        if (!reason) continue;
        weft__strbuf_printf(out, "%s\"%s\": ", first ? "" : ", ", c->name[i]);
        weft__json_write_string(out, reason, strlen(reason));
        first = 0;
    }
    weft__strbuf_puts(out, "}");
}
