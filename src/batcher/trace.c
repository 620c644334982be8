// SPDX-License-Identifier: Apache-2.0
/* trace.c: steps, their ops, and requests, in Chrome's trace event format (chrome://tracing, ui.perfetto.dev). Row 1:
 * steps; row 2: ops of the thread that leads them; rows 16 and up: requests by record. A trace that cannot be written
 * ends; the engine goes on. Owner: the engine's thread. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "batcher/batcher.h"
#include "format/out_file.h"

struct batcher_trace {
    FILE *file;
    uint64_t zero_ns;
    int n_events, with_ops;
};

enum { ROW_STEPS = 1, ROW_OPS = 2, ROW_REQUESTS = 16 };

weft_status weft__batcher_trace_open(weft_engine *e, const char *path, weft_error *err)
{
    batcher_trace *t = weft__alloc_zero(1, sizeof *t);
    if (!t) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a trace");
    weft_error why = {0};
    if (!(t->file = weft__out_file_grow(path, 0, &why))) {
        weft__free(t);
        return weft_fail(err, (weft_status)why.status, "%s", why.message);
    }
    fprintf(t->file, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    t->zero_ns = weft__clock_ns();
    t->with_ops = weft_model_profile_start(e->model, NULL) == WEFT_OK;
    weft_model_profile_stop(e->model);
    e->trace = t;
    return WEFT_OK;
}

void weft__batcher_trace_close(weft_engine *e)
{
    batcher_trace *t = e->trace;
    if (!t) return;
    fprintf(t->file, "\n]}\n");
    int failed = ferror(t->file);
    failed |= fclose(t->file) != 0;
    if (failed) weft__log(WEFT__LOG_ERROR, "the trace could not be written in full, and has ended: is the disk full?");
    weft__free(t);
    e->trace = NULL;
}

/* Begins an event; the caller adds its "args" and the closing brace. Names here need no escapes. */
static void put_event(batcher_trace *t, int row, const char *category, const char *name, uint64_t begin_ns,
                      uint64_t end_ns)
{
    fprintf(t->file,
            "%s{\"ph\": \"X\", \"pid\": 1, \"tid\": %d, \"cat\": \"%s\", \"name\": \"%s\", \"ts\": %.3f, \"dur\": "
            "%.3f, \"args\": ",
            t->n_events++ ? ",\n" : "", row, category, name, (double)(begin_ns - t->zero_ns) / 1e3,
            (double)(end_ns - begin_ns) / 1e3);
}

void weft__batcher_trace_begin(weft_engine *e)
{
    if (e->trace && e->trace->with_ops) weft_model_profile_start(e->model, NULL); /* from an empty record */
}

static void put_ops(weft_engine *e)
{
    weft_profile_step s = {.size = sizeof s};
    if (weft_model_profile_n_steps(e->model) != 1 || weft_model_profile_step(e->model, 0, &s, NULL)) return;
    for (int32_t i = s.first_op; i < s.first_op + s.n_ops; i++) {
        weft_profile_op op = {.size = sizeof op};
        if (weft_model_profile_op(e->model, i, &op, NULL)) return;
        put_event(e->trace, ROW_OPS, "op", op.op, op.begin_ns, op.end_ns);
        fprintf(e->trace->file, "{\"layer\": %d, \"type\": \"%s\", \"wait_us\": %.3f}}", op.layer, op.type,
                (double)(op.end_ns - op.done_ns) / 1e3);
    }
}

void weft__batcher_trace_step(weft_engine *e, int32_t n_rows, int32_t n_wanted, uint64_t begin_ns, uint64_t end_ns)
{
    batcher_trace *t = e->trace;
    if (!t) return;
    weft_model_profile_stop(e->model);
    put_event(t, ROW_STEPS, "step", "step", begin_ns, end_ns);
    fprintf(t->file, "{\"rows\": %d, \"wanted\": %d, \"sequences\": %d}}", n_rows, n_wanted, e->n_parts);
    if (t->with_ops) put_ops(e);
    if (ferror(t->file)) weft__batcher_trace_close(e);
}

void weft__batcher_trace_request(weft_engine *e, const batcher_request *r, uint64_t end_ns)
{
    batcher_trace *t = e->trace;
    if (!t || !r->computed) return;
    put_event(t, ROW_REQUESTS + (int)(r - e->records.all), "request", "request", r->began_ns, end_ns);
    fprintf(t->file, "{\"id\": %llu, \"prompt\": %d, \"cached\": %d, \"generated\": %d}}", (unsigned long long)r->id,
            r->n_prompt, r->n_cached, weft__batcher_generated(r));
}
