// SPDX-License-Identifier: Apache-2.0
/* traces.h: what happened to requests, as spans for a collector: OTLP over HTTP, in JSON (opentelemetry-proto 1.x,
 * trace/v1 and collector/trace/v1). A span for a request, of which one is a child for each phase, in the trace that its
 * traceparent names (W3C Trace Context, level 1), else in a new one.
 *
 * Threads: any thread hands over what it knows of a request, which never waits: beyond what there is room for, it is
 * dropped and counted. A thread of its own sends. */
#ifndef WEFT_SERVER_TRACES_H
#define WEFT_SERVER_TRACES_H

#include "server/stages.h"
#include "weft/error.h"

typedef struct weft__server_traces weft__server_traces;

/* The trace that a request is part of. */
typedef struct weft__server_trace_parent {
    char trace[33], span[17]; /* hexadecimal; "": none */
    int is_sampled;           /* whoever began it wants spans of it */
} weft__server_trace_parent;

/* Reads a traceparent header: 1; 0: it is none, and *out is empty. */
int weft__server_trace_parent_read(const char *text, weft__server_trace_parent *out);

/* Of a request that has ended. */
typedef struct weft__server_span {
    weft__server_trace_parent parent;
    char method[16], path[64], id[40], model[64], finish[16];
    int status, complete; /* of the answer */
    int was_run;          /* the engine took it: what stands below is filled */
    int32_t n_prompt, n_cached, n_generated;
    weft__server_stages stages; /* came_ns: always */
    uint64_t ended_ns;
} weft__server_span;

/* url: of a collector; without a path, /v1/traces. WEFT_ARGUMENT (the URL), WEFT_UNSUPPORTED (a build without libcurl),
 * WEFT_NO_MEMORY, WEFT_LIMIT. */
weft_status weft__server_traces_new(const char *url, weft__server_traces **out, weft_error *err);
/* Sends what there is, for two seconds at most, and ends. */
void weft__server_traces_free(weft__server_traces **t);
void weft__server_traces_add(weft__server_traces *t, const weft__server_span *span);
/* Of requests, since the start; NULL: 0. */
void weft__server_traces_count(weft__server_traces *t, uint64_t *n_sent, uint64_t *n_dropped);

/* traces_json.c: one body for `n` requests. unix_ns: what is added to our clock for the time of day. */
void weft__server_traces_write(const weft__server_span *spans, int n, uint64_t unix_ns, weft__strbuf *out);

#endif
