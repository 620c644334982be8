// SPDX-License-Identifier: Apache-2.0
/* test.c: the smallest provider: add and multiply on the host, one thread. It is an example of the ABI, and what the
 * tests of plugin loading load. Compiled with one of FAULT_MAJOR, FAULT_SIZE, FAULT_NULL, FAULT_MISSING, FAULT_SYMBOL
 * it is wrong in that way.
 *
 * It is of the first minor version: its table ends before `measure`. Owner: one thread per backend, as backend.h
 * says. */
#include <stdio.h>
#include <string.h>

#include "weft/backend.h"

enum { RANK = 200 }; /* above the CPU's, so that the plan comes here */

struct weft_backend {
    const weft_host_api *host;
    long n_run; /* nodes, told when it is closed */
};

struct weft_program {
    const weft_host_api *host;
    weft_backend *backend;
    const weft_graph *graph;
    const weft_segment *segment;
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
    b->n_run = 0;
    host->log(3, "test plugin opened");
    return WEFT_OK;
}

static void test_close(weft_backend **backend)
{
    weft_backend *b = *backend;
    char text[64];
    *backend = NULL;
    if (!b) return;
    snprintf(text, sizeof text, "test plugin ran %ld nodes", b->n_run);
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
    if (!p) return;
    p->host->free(p->arena);
    p->host->free(p);
}

static weft_status test_compile(weft_backend *b, const weft_graph *graph, const weft_segment *segment,
                                const weft_compile_options *options, weft_program **out, weft_error *err)
{
    (void)options;
    *out = NULL;
    weft_program *p = b->host->alloc(sizeof *p + (size_t)graph->n_tensors * sizeof(float *));
    if (!p) return failed(err, WEFT_NO_MEMORY, "no memory");
    p->host = b->host;
    p->backend = b;
    p->graph = graph;
    p->segment = segment;
    p->arena = b->host->alloc(segment->arena_bytes);
    if (!p->arena) {
        test_program_free(&p);
        return failed(err, WEFT_NO_MEMORY, "no memory");
    }
    for (int32_t t = 0; t < graph->n_tensors; t++) {
        uint64_t offset = segment->arena_offset[t];
        p->data[t] = offset == UINT64_MAX ? NULL : p->arena + offset / sizeof(float);
    }
    *out = p;
    return WEFT_OK;
}

static weft_status test_run(weft_program *p, const weft_rows *rows, const weft_bindings *bindings, weft_error *err)
{
    (void)err;
    for (int32_t i = 0; i < bindings->n_tensors; i++) p->data[bindings->tensors[i].tensor] = bindings->tensors[i].data;
    p->backend->n_run += p->segment->n_nodes;
    for (int32_t i = 0; i < p->segment->n_nodes; i++) {
        const weft_node *n = &p->graph->nodes[p->segment->nodes[i]];
        const weft_shape *s = &p->graph->tensors[n->out[0]].shape;
        int64_t count = s->d[0] * (s->d[1] == WEFT_WANTED ? rows->n_wanted : rows->n_rows);
        const float *a = p->data[n->in[0]], *b = p->data[n->in[1]];
        float *y = p->data[n->out[0]];
        for (int64_t j = 0; j < count; j++) y[j] = n->op == WEFT_OP_ADD ? a[j] + b[j] : a[j] * b[j];
    }
    return WEFT_OK;
}

static const weft_backend_api table = {
#if defined(FAULT_SIZE)
    .size = offsetof(weft_backend_api, run),
#else
    .size = offsetof(weft_backend_api, measure),
#endif
#if defined(FAULT_MAJOR)
    .abi_version = WEFT_ABI_VERSION + 0x00020003u,
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
