// SPDX-License-Identifier: Apache-2.0
/* bench_trace.c: profiled steps in Chrome's trace event format (chrome://tracing, ui.perfetto.dev): every test is a
 * process with two rows, its steps and the ops of the thread that leads them; the time that this thread waits for the
 * others lies inside its ops. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "bench.h"
#include "format/out_file.h"

struct bench_trace {
    FILE *file;
    char *path;
    int n_events;
};

enum { ROW_STEPS = 1, ROW_OPS = 2, WAIT_SHOWN_NS = 1000 };

weft_status bench_trace_open(const char *path, bench_trace **out, weft_error *err)
{
    bench_trace *t = calloc(1, sizeof *t);
    *out = NULL;
    if (!t || !(t->path = strdup(path))) {
        free(t);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a trace");
    }
    if (!(t->file = weft__out_file_grow(path, 0, err))) {
        free(t->path);
        free(t);
        return (weft_status)err->status;
    }
    fprintf(t->file, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    *out = t;
    return WEFT_OK;
}

weft_status bench_trace_close(bench_trace **trace, weft_error *err)
{
    bench_trace *t = trace ? *trace : NULL;
    if (!t) return WEFT_OK;
    *trace = NULL;
    fprintf(t->file, "\n]}\n");
    int failed = ferror(t->file);
    failed |= fclose(t->file) != 0;
    weft_status st =
        failed ? weft_fail(err, WEFT_IO, "%s could not be written in full: is the disk full?", t->path) : WEFT_OK;
    free(t->path);
    free(t);
    return st;
}

/* Begins an event; the caller adds its "args" and the closing brace. */
static void put_event(bench_trace *t, const char *phase, int pid, int row, const char *name)
{
    weft__strbuf text = {0};
    weft__json_write_string(&text, name, strlen(name));
    fprintf(t->file, "%s{\"ph\": \"%s\", \"pid\": %d, \"tid\": %d, \"name\": %s", t->n_events++ ? ",\n" : "", phase,
            pid, row, text.failed ? "\"\"" : text.data);
    weft__strbuf_free(&text);
}

static void put_name(bench_trace *t, const char *what, int pid, int row, const char *name)
{
    weft__strbuf text = {0};
    weft__json_write_string(&text, name, strlen(name));
    put_event(t, "M", pid, row, what);
    fprintf(t->file, ", \"args\": {\"name\": %s}}", text.failed ? "\"\"" : text.data);
    weft__strbuf_free(&text);
}

/* Microseconds since `zero`. */
static void put_times(bench_trace *t, uint64_t zero, uint64_t begin, uint64_t end)
{
    fprintf(t->file, ", \"ts\": %.3f, \"dur\": %.3f", (double)(begin - zero) / 1e3, (double)(end - begin) / 1e3);
}

static void put_op(bench_trace *t, int pid, uint64_t zero, const weft_profile_op *op)
{
    double ns = (double)(op->end_ns - op->begin_ns);
    char name[160];
    snprintf(name, sizeof name, "%s%s%s", op->op, strcmp(op->op, op->name) ? " " : "",
             strcmp(op->op, op->name) ? op->name : "");
    put_event(t, "X", pid, ROW_OPS, name);
    put_times(t, zero, op->begin_ns, op->end_ns);
    fprintf(t->file, ", \"cat\": \"%s\", \"args\": {\"layer\": %d, \"type\": \"%s\", \"bytes\": %.0f, \"ops\": %.0f",
            op->op, op->layer, op->type, op->bytes, op->ops);
    if (ns > 0) fprintf(t->file, ", \"GB/s\": %.3f, \"GOPS\": %.3f", op->bytes / ns, op->ops / ns);
    fprintf(t->file, "}}");
    if (op->end_ns - op->done_ns < WAIT_SHOWN_NS) return;
    put_event(t, "X", pid, ROW_OPS, "wait");
    put_times(t, zero, op->done_ns, op->end_ns);
    fprintf(t->file, ", \"cat\": \"wait\", \"args\": {}}");
}

weft_status bench_trace_add(bench_trace *t, weft_model *model, int pid, const char *name, weft_error *err)
{
    weft_status st;
    uint64_t zero = 0;
    put_name(t, "process_name", pid, ROW_STEPS, name);
    put_name(t, "thread_name", pid, ROW_STEPS, "steps");
    put_name(t, "thread_name", pid, ROW_OPS, "ops");
    for (int32_t i = 0; i < weft_model_profile_n_steps(model); i++) {
        weft_profile_step s = {.size = sizeof s};
        if ((st = weft_model_profile_step(model, i, &s, err))) return st;
        if (i == 0) zero = s.begin_ns;
        put_event(t, "X", pid, ROW_STEPS, "step");
        put_times(t, zero, s.begin_ns, s.end_ns);
        fprintf(t->file, ", \"cat\": \"step\", \"args\": {\"rows\": %d, \"wanted\": %d}}", s.n_rows, s.n_wanted);
        for (int32_t k = s.first_op; k < s.first_op + s.n_ops; k++) {
            weft_profile_op op = {.size = sizeof op};
            if ((st = weft_model_profile_op(model, k, &op, err))) return st;
            put_op(t, pid, zero, &op);
        }
    }
    return WEFT_OK;
}
