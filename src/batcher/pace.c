// SPDX-License-Identifier: Apache-2.0
/* pace.c: how many rows of prompts a step has beside requests that decode, so that it takes about as long as was asked
 * for (weft_engine_params.steady_ms). A step's time is about a + b * rows, of which neither is known, and both change
 * with depths, requests and the machine: the rows are multiplied by what the last such step was short of, or beyond,
 * the time, which comes to rest where it takes just that. How many there are changes no answer. Owner: the engine's
 * thread. */
#include "batcher/batcher.h"

enum { PACE_LEAST = 8 /* rows: prompts are read, however long a step takes */ };

static const double MOST_GROWTH = 2, MOST_FALL = 0.5; /* of one step: what disturbed it is no rule */

void weft__batcher_pace_begin(weft_engine *e)
{
    const weft_engine_params *p = &e->params;
    const int32_t most = p->chunk > 0 ? p->chunk : p->step_rows;
    e->pace.most = most;
    e->pace.least = most < PACE_LEAST ? most : PACE_LEAST;
    e->pace.rows = most < WEFT__BATCHER_CHUNK ? most : WEFT__BATCHER_CHUNK;
    e->pace.is_auto = p->steady_ms > 0;
    if (!e->pace.is_auto) e->pace.rows = most;
}

static double bounded(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

void weft__batcher_pace_saw(weft_engine *e, int32_t n_rows, int32_t n_prompt_rows, uint64_t ns)
{
    const double wanted = (double)e->params.steady_ms * 1e6;
    double rows = e->pace.rows;
    if (!e->pace.is_auto || !n_prompt_rows || !ns) return;
    const double factor = wanted / (double)ns;
    if (n_prompt_rows == n_rows) { /* nobody decodes: what the first rows beside others may be */
        if (!e->pace.has_seen) rows = n_rows * factor;
    } else {
        /* A step that was not full says nothing of a full one, but that it took too long. */
        if (n_prompt_rows < (int32_t)rows && factor > 1) return;
        rows = n_prompt_rows * bounded(factor, MOST_FALL, MOST_GROWTH);
        e->pace.has_seen = 1;
    }
    e->pace.rows = bounded(rows, e->pace.least, e->pace.most);
}
