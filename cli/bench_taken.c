// SPDX-License-Identifier: Apache-2.0
/* bench_taken.c: what others took of the time of a row's repetitions (bench.h). Invariant: what is unknown is null, or
 * an empty field, or said; it is never 0. */
#include <math.h>
#include <stdio.h>

#include "bench.h"

void bench_taken_start(bench_taken *t, const bench_options *o, int32_t n_threads)
{
    *t = (bench_taken){.n_threads = n_threads, .more.left = o->again < 0 ? o->reps : o->again};
}

void bench_taken_begin(bench_taken *t)
{
    weft__taken_now(&t->begun);
}

int bench_taken_again(bench_taken *t, weft__taken *one)
{
    weft__taken_mark now;
    weft__taken_now(&now);
    const weft__taken taken = weft__taken_between(&t->begun, &now, t->n_threads);
    if (one) *one = taken;
    if (weft__taken_again_wanted(&t->more, &taken)) {
        t->n_left_out++;
        return 1;
    }
    t->n_above += weft__taken_above(&taken);
    weft__taken_add(&t->all, &taken);
    return 0;
}

int32_t bench_taken_disturbed(const bench_taken *t, int32_t n_reps)
{
    return t->n_above ? t->n_above : weft__taken_above(&t->all) ? n_reps : 0;
}

const char *bench_taken_cell(const bench_taken *t, int32_t n_reps, char out[WEFT__TAKEN_ROOM])
{
    return weft__taken_text(&t->all, bench_taken_disturbed(t, n_reps) > 0, out);
}

void bench_taken_json(weft__strbuf *out, const bench_taken *t, int32_t n_reps)
{
    char shares[WEFT__TAKEN_ROOM];
    weft__strbuf_printf(out, "%s, \"disturbed\": %d, \"left_out\": %d, ", weft__taken_json(&t->all, shares),
                        bench_taken_disturbed(t, n_reps), t->n_left_out);
}

void bench_taken_csv(const bench_taken *t, int32_t n_reps)
{
    const double seconds[] = {t->all.stolen_s, t->all.others_s, t->all.throttled_s};
    for (int i = 0; i < 3; i++)
        if (isnan(seconds[i]) || !(t->all.time_s > 0)) printf(",");
        else printf(",%.6f", seconds[i] / t->all.time_s);
    printf(",%d,%d", bench_taken_disturbed(t, n_reps), t->n_left_out);
}
