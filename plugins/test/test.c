// SPDX-License-Identifier: Apache-2.0
/* test.c: the smallest provider: add and multiply on the host, one thread. It is an example of the ABI, and what the
 * tests of plugin loading load. Compiled with one of FAULT_MAJOR, FAULT_ABI1, FAULT_SIZE, FAULT_NULL, FAULT_MISSING,
 * FAULT_SYMBOL it is wrong in that way.
 *
 * Its table has what is required and ends there. A program is constant, a run belongs to one caller at a time. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "weft/backend.h"

enum { RANK = 200 }; /* above the CPU's, so that the plan comes here */

struct weft_backend {
    const weft_host_api *host;
    atomic_long n_run; /* nodes, told when it is closed */
};

struct weft_program {
    const weft_host_api *host;
    weft_backend *backend;
    const weft_graph *graph;
    const weft_segment *segment;
};

struct weft_run {
    const weft_program *program;
    float *arena;
    float *data[]; /* [n_tensors] */
};

static weft_status failed(weft_error *err, weft_status status, const char *message)
{
    if (err) {
        err->status = status;
        snprintf(err->message, sizeof err->message, "test plugin: %s", message);
    }
    return status;
}

static weft_status test_open(const weft_host_api *host, const char *options, weft_backend **out, weft_error *err)
{
    if (options && !strcmp(options, "refuse")) return failed(err, WEFT_STATE, "was asked to refuse");
    weft_backend *b = host->alloc(sizeof *b);
    *out = b;
    if (!b) return failed(err, WEFT_NO_MEMORY, "no memory");
    b->host = host;
    atomic_init(&b->n_run, 0);
    host->log(3, "test plugin opened");
    return WEFT_OK;
}

static void test_close(weft_backend **backend)
{
    weft_backend *b = *backend;
    char text[64];
    *backend = NULL;
    if (!b) return;
    snprintf(text, sizeof text, "test plugin ran %ld nodes", atomic_load(&b->n_run));
    b->host->log(3, text);
    b->host->free(b);
}

static weft_status test_describe(weft_backend *b, weft_backend_info *out, weft_error *err)
{
    (void)b;
    (void)err;
    *out = (weft_backend_info){.size = out->size, .n_units = 1, .name = "test", .device = "add and multiply"};
    return WEFT_OK;
}

static int test_supports(weft_backend *b, const weft_graph *graph, const weft_node *node)
{
    (void)b;
    (void)graph;
    int multiplies = node->op == WEFT_OP_GLU && node->attr.glu.activation == WEFT_ACT_NONE;
    return node->op == WEFT_OP_ADD || multiplies ? RANK : 0;
}

static void test_program_free(weft_program **program)
{
    weft_program *p = *program;
    *program = NULL;
    if (p) p->host->free(p);
}

static weft_status test_compile(weft_backend *b, const weft_graph *graph, const weft_segment *segment,
                                const weft_compile_options *options, weft_program **out, weft_error *err)
{
    (void)options;
    weft_program *p = b->host->alloc(sizeof *p);
    *out = p;
    if (!p) return failed(err, WEFT_NO_MEMORY, "no memory");
    *p = (weft_program){b->host, b, graph, segment};
    return WEFT_OK;
}

static void test_run_free(weft_run **run)
{
    weft_run *r = *run;
    *run = NULL;
    if (!r) return;
    const weft_host_api *host = r->program->host;
    host->free(r->arena);
    host->free(r);
}

static weft_status test_run_new(const weft_program *p, weft_run **out, weft_error *err)
{
    const weft_graph *graph = p->graph;
    *out = NULL;
    weft_run *r = p->host->alloc(sizeof *r + (size_t)graph->n_tensors * sizeof r->data[0]);
    if (!r) return failed(err, WEFT_NO_MEMORY, "no memory");
    r->program = p;
    r->arena = p->host->alloc(p->segment->arena_bytes);
    if (!r->arena) {
        test_run_free(&r);
        return failed(err, WEFT_NO_MEMORY, "no memory");
    }
    for (int32_t t = 0; t < graph->n_tensors; t++) {
        uint64_t offset = p->segment->arena_offset[t];
        r->data[t] = offset == UINT64_MAX ? NULL : r->arena + offset / sizeof(float);
    }
    *out = r;
    return WEFT_OK;
}

static weft_status test_run(weft_run *r, const weft_step *step, weft_error *err)
{
    const weft_program *p = r->program;
    const weft_bindings *bindings = step->bindings;
    if (step->after || step->done) return failed(err, WEFT_UNSUPPORTED, "it knows no events");
    for (int32_t i = 0; i < bindings->n_tensors; i++) {
        if (bindings->tensors[i].buffer) return failed(err, WEFT_UNSUPPORTED, "it reads the host's memory only");
        r->data[bindings->tensors[i].tensor] = bindings->tensors[i].data;
    }
    atomic_fetch_add(&p->backend->n_run, p->segment->n_nodes);
    for (int32_t i = 0; i < p->segment->n_nodes; i++) {
        const weft_node *n = &p->graph->nodes[p->segment->nodes[i]];
        const weft_shape *s = &p->graph->tensors[n->out[0]].shape;
        int64_t count = s->d[0] * (s->d[1] == WEFT_WANTED ? step->rows->n_wanted : step->rows->n_rows);
        const float *a = r->data[n->in[0]], *b = r->data[n->in[1]];
        float *y = r->data[n->out[0]];
        for (int64_t j = 0; j < count; j++) y[j] = n->op == WEFT_OP_ADD ? a[j] + b[j] : a[j] * b[j];
    }
    return WEFT_OK;
}

static const weft_backend_api table = {
#if defined(FAULT_SIZE)
    .size = offsetof(weft_backend_api, run),
#else
    .size = offsetof(weft_backend_api, buffer_new),
#endif
#if defined(FAULT_MAJOR)
    .abi_version = WEFT_ABI_VERSION + 0x00020003u,
#elif defined(FAULT_ABI1)
    .abi_version = 0x00010006u,
#else
    .abi_version = WEFT_ABI_VERSION,
#endif
    .name = "test",
    .open = test_open,
    .close = test_close,
    .describe = test_describe,
#if !defined(FAULT_MISSING)
    .supports = test_supports,
#endif
    .compile = test_compile,
    .program_free = test_program_free,
    .run_new = test_run_new,
    .run_free = test_run_free,
    .run = test_run,
};

#if defined(FAULT_SYMBOL)
#define weft_backend_entry weft_other_entry
#endif
WEFT_API const weft_backend_api *weft_backend_entry(uint32_t host_abi);

const weft_backend_api *weft_backend_entry(uint32_t host_abi)
{
    (void)test_supports;
#if defined(FAULT_NULL)
    (void)table;
    return host_abi == 0 ? &table : NULL;
#else
    return host_abi >> 16 == 0 ? NULL : &table;
#endif
}
