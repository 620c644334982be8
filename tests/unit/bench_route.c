// SPDX-License-Identifier: Apache-2.0
/* bench_route.c: regret of routers over recorded answers of the shipped model and its adapters (make bench-route).
 *
 * Usage: bench_route [--seeds N] [--rounds T] [--alpha A] [--ridge R] [--explore E] [--change C] [--embeddings FILE]
 *
 * A table for rules that stay and one for rules that change in the middle: by policy the median over the seeds, and the
 * worst in brackets, of the regret after 100, 300, half of and all rounds, of what was earned in the last tenth as a
 * share of what there was, and microseconds for a choice with its reward. `best single` is the one arm that was best
 * until then, known before. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "route_replay.h"

enum { SEEDS = 64 };

static replay_set set;
static replay_result results[SEEDS];

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void put(const double *values, int n, int up, const char *form)
{
    double sorted[SEEDS];
    memcpy(sorted, values, (size_t)n * sizeof *values);
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    printf(form, (sorted[(n - 1) / 2] + sorted[n / 2]) / 2, sorted[up ? n - 1 : 0]);
}

static void row(const char *name, int seeds, int rounds, int single, double us)
{
    const int at[] = {100, 300, rounds / 2, rounds};
    double values[SEEDS];
    printf("| %s |", name);
    for (int k = 0; k < 4; k++) {
        const int t = at[k] < rounds ? at[k] : rounds;
        for (int s = 0; s < seeds; s++) values[s] = single ? results[s].single[t] : results[s].regret[t];
        put(values, seeds, 1, " %.0f (%.0f) |");
    }
    if (single) {
        printf(" | |\n");
        return;
    }
    for (int s = 0; s < seeds; s++) values[s] = 100 * results[s].last_earned / results[s].last_best;
    put(values, seeds, 0, " %.0f %% (%.0f) |");
    printf(" %.1f |\n", us);
}

static int table(const weft__route_params *given, int seeds, int rounds, int changes)
{
    printf("\n%s\n\n| policy | 100 | 300 | %d | %d | earned at the end | us |\n| --- | ---: | ---: | ---: | ---: | "
           "---: | ---: |\n",
           changes ? "Rules that change in the middle" : "Rules that stay", rounds / 2, rounds);
    for (int m = WEFT__ROUTE_LINUCB; m <= WEFT__ROUTE_FIRST; m++) {
        weft__route_params p = *given;
        p.method = (weft__route_method)m;
        const uint64_t from = weft__clock_ns();
        for (int s = 0; s < seeds; s++)
            if (!replay_run(&set, &p, (uint64_t)s + 1, rounds, changes, &results[s])) return 0;
        const double us = (double)(weft__clock_ns() - from) / 1e3 / seeds / rounds;
        row(weft__route_method_name(p.method), seeds, rounds, 0, us);
    }
    row("best single", seeds, rounds, 1, 0);
    return 1;
}

int main(int argc, char **argv)
{
    weft__route_params p;
    int seeds = 20, rounds = 2000;
    const char *embeddings = NULL;
    weft__route_params_default(&p);
    for (int i = 1; i + 1 < argc; i += 2) {
        const double v = atof(argv[i + 1]);
        if (!strcmp(argv[i], "--embeddings")) embeddings = argv[i + 1];
        else if (!strcmp(argv[i], "--seeds")) seeds = (int)v;
        else if (!strcmp(argv[i], "--rounds")) rounds = (int)v;
        else if (!strcmp(argv[i], "--alpha")) p.alpha = v;
        else if (!strcmp(argv[i], "--ridge")) p.ridge = v;
        else if (!strcmp(argv[i], "--explore")) p.explore = v;
        else if (!strcmp(argv[i], "--change")) p.change = v;
        else return fprintf(stderr, "bench_route: there is no %s\n", argv[i]), 2;
    }
    if (seeds < 1 || seeds > SEEDS || rounds < 20 || rounds > REPLAY_ROUNDS)
        return fprintf(stderr, "bench_route: 1 to %d seeds, 20 to %d rounds\n", SEEDS, REPLAY_ROUNDS), 2;
    if (!replay_read("tests/unit/route_answers.txt", &set))
        return fprintf(stderr, "bench_route: tests/unit/route_answers.txt cannot be read; run it from the root\n"), 1;
    if (embeddings && !replay_read_embeddings(embeddings, &set))
        return fprintf(stderr, "bench_route: %s has no line of numbers for each question\n", embeddings), 1;
    printf("%d questions of %d kinds, %d arms, %d seeds; alpha %g, ridge %g, explore %g, change %g\n", set.n,
           set.n_kinds, REPLAY_ARMS, seeds, p.alpha, p.ridge, p.explore, p.change);
    return !(table(&p, seeds, rounds, 0) && table(&p, seeds, rounds, 1));
}
