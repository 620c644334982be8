// SPDX-License-Identifier: Apache-2.0
/* provider.c: the CPU provider's table: opening, what it is, what it can run, and its buffers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/choice.h"
#include "backend/cpu/adapter/adapter.h"
#include "backend/linked.h"
#include "base/alloc.h"
#include "kernels/tune.h"
#include "mem/mem.h"

enum { RANK = 100, PAGE_BLOCK = 16 };

typedef struct settings {
    int n_threads;
    char cpu[64]; /* as WEFT_CPU; "": the environment decides */
    int shared;   /* its threads are those of all that say so */
    int exact;    /* products in f32 from activations as they are; -1: the environment decides */
} settings;

/* One "key=value" of the options. */
static weft_status set_option(settings *s, const char *text, size_t n, weft_error *err)
{
    char option[64];
    if (n >= sizeof option) return weft_fail(err, WEFT_ARGUMENT, "option '%.20s...' is too long", text);
    memcpy(option, text, n);
    option[n] = 0;
    if (!strncmp(option, "threads=", 8)) {
        char *end;
        long threads = strtol(option + 8, &end, 10);
        if (end == option + 8 || *end || threads < 0 || threads > WEFT__POOL_MAX_THREADS)
            return weft_fail(err, WEFT_ARGUMENT,
                             "option %s: give a number of threads from 1 to %d, or 0 to have it chosen", option,
                             WEFT__POOL_MAX_THREADS);
        s->n_threads = (int)threads;
        return WEFT_OK;
    }
    if (!strncmp(option, "cpu=", 4)) {
        memcpy(s->cpu, option + 4, n - 3);
        return WEFT_OK;
    }
    if (!strcmp(option, "shared=0") || !strcmp(option, "shared=1")) {
        s->shared = option[7] - '0';
        return WEFT_OK;
    }
    if (!strcmp(option, "exact=0") || !strcmp(option, "exact=1")) {
        s->exact = option[6] - '0';
        return WEFT_OK;
    }
    return weft_fail(err, WEFT_ARGUMENT,
                     "option '%s' is unknown; there are threads=N, shared=0|1, cpu=TIER and exact=0|1", option);
}

static weft_status read_options(const char *options, settings *s, weft_error *err)
{
    *s = (settings){.exact = -1};
    for (const char *o = options ? options : ""; *o;) {
        size_t n = strcspn(o, ",");
        weft_status st = n ? set_option(s, o, n, err) : WEFT_OK;
        if (st) return st;
        o += n + (o[n] == ',');
    }
    return WEFT_OK;
}

static weft_status cpu_open(const weft_host_api *host, const char *options, weft_backend **out, weft_error *err)
{
    (void)host; /* linked in: it uses base and mem directly */
    settings s;
    uint32_t tiers;
    *out = NULL;
    weft_status st = read_options(options, &s, err);
    if (st) return st;
    const char *wish = s.cpu[0] ? s.cpu : getenv("WEFT_CPU");
    if ((st = weft__tier_mask_for(wish, &tiers, err))) return st;
    if ((st = weft__kernel_tune_init(err))) return st;
    if (s.exact < 0) {
        const char *exact = getenv("WEFT_EXACT");
        s.exact = exact && *exact && strcmp(exact, "0");
    }
    /* Products that round activations to BF16; those of AVX-512 do not. */
    if (s.exact) tiers &= ~(1u << WEFT__TIER_AVX512BF16 | 1u << WEFT__TIER_AMXBF16);
    weft_backend *b = weft__alloc_zero(1, sizeof *b);
    if (!b) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a backend");
    if ((st = (s.shared ? weft__pool_share : weft__pool_create)(s.n_threads, &b->pool, err))) {
        weft__free(b);
        return st;
    }
    b->n_threads = weft__pool_size(b->pool);
    b->tiers = wish && *wish ? tiers : weft__cpu_choose(tiers);
    b->named = tiers;
    b->k = weft__kernels_get(tiers);
    b->exact = s.exact;
    *out = b;
    return WEFT_OK;
}

static void cpu_close(weft_backend **pb)
{
    weft_backend *b = *pb;
    if (!b) return;
    *pb = NULL;
    weft__pool_destroy(&b->pool);
    weft_buffer_release(&b->to_read);
    weft__free(b->product);
    weft__free(b);
}

static weft_status cpu_describe(weft_backend *b, weft_backend_info *out, weft_error *err)
{
    if (out->size < sizeof *out)
        return weft_fail(err, WEFT_ABI, "weft_backend_info has %u bytes; this provider fills %zu", out->size,
                         sizeof *out);
    weft_backend_info info = {
        .size = out->size, .n_units = b->n_threads, .name = "cpu", .memory_bytes = weft__machine_memory_bytes()};
    /* Results that are kept, of adapters' products too, are told apart by this: it does not change with what is
     * faster. */
    size_t n =
        (size_t)snprintf(info.device, sizeof info.device, "%s%s", weft__machine_processor(), b->exact ? ", exact" : "");
    for (int t = WEFT__TIER_COUNT - 1; t >= 0 && n < sizeof info.device; t--) {
        if (b->named >> t & 1)
            n += (size_t)snprintf(info.device + n, sizeof info.device - n, ", %s", weft__tier_name((weft__tier)t));
    }
    info.domains = 1u << WEFT_DOMAIN_HOST | 1u << WEFT_DOMAIN_MAPPED | 1u << WEFT_DOMAIN_PINNED |
                   1u << WEFT_DOMAIN_SHARED | 1u << WEFT_DOMAIN_IMPORTED;
    *out = info;
    return WEFT_OK;
}

/* There is a kernel for the weight's type, and the weight can be read here or may come packed; absent ones are fine. */
static int can_multiply(const weft_backend *b, const weft_graph *g, weft_weight_id id)
{
    if (id == WEFT_NONE) return 1;
    const weft_weight *w = &g->weights[id];
    return (w->buffer->data || w->buffer->domain == WEFT_DOMAIN_MAPPED) &&
           weft__matmul_find(w->dtype, b->tiers) != NULL;
}

/* The same for one whose own bytes are needed. */
static int can_read(const weft_backend *b, const weft_graph *g, weft_weight_id id)
{
    if (id == WEFT_NONE) return 1;
    return g->weights[id].buffer->data && can_multiply(b, g, id);
}

/* The KV group that a node writes or reads, or NULL. */
static const weft_kv_group *group_of(const weft_graph *g, const weft_node *n)
{
    if (n->op == WEFT_OP_KV_WRITE) return &g->kv_groups[n->attr.kv.group];
    if (n->op == WEFT_OP_ROPE_KV) return &g->kv_groups[n->attr.rope_kv.kv.group];
    if (n->op == WEFT_OP_ATTENTION) return &g->kv_groups[n->attr.attention.kv.group];
    return NULL;
}

int weft__cpu_supports(weft_backend *b, const weft_graph *g, const weft_node *n)
{
    if (n->op >= WEFT_OP_COUNT) return 0;
    const weft_kv_group *group = group_of(g, n);
    if (group && group->page_tokens % PAGE_BLOCK) return 0; /* kernels store keys in blocks of tokens */
    int multiplies = n->op == WEFT_OP_LINEAR || n->op == WEFT_OP_MOE_FFN;
    for (int i = 0; i < n->n_w; i++)
        if (!(multiplies ? can_multiply : can_read)(b, g, n->w[i])) return 0;
    if (n->op == WEFT_OP_LINEAR) {
        const weft_attr_linear *a = &n->attr.linear;
        for (int i = 0; i < a->n_mat; i++)
            if (!can_read(b, g, a->bias[i])) return 0;
        if (!can_read(b, g, a->norm_weight)) return 0;
    }
    return RANK;
}

static weft_status cpu_buffer_new(weft_backend *b, const weft_buffer_spec *spec, weft_buffer **out, weft_error *err)
{
    (void)b;
    return weft__mem_create(spec, out, err);
}

static weft_status cpu_buffer_import(weft_backend *b, const weft_external *ext, weft_buffer **out, weft_error *err)
{
    (void)b;
    *out = NULL;
    if (ext->size < sizeof *ext)
        return weft_fail(err, WEFT_ABI, "weft_external has %u bytes; this provider reads %zu", ext->size, sizeof *ext);
    if (!ext->data)
        return weft_fail(err, WEFT_UNSUPPORTED, "memory without a host address cannot be imported by the CPU");
    return weft__mem_borrow(ext->data, ext->n_bytes, ext->domain == WEFT_DOMAIN_MAPPED ? WEFT_BUFFER_READONLY : 0, out,
                            err);
}

const weft_backend_api *weft__cpu_entry(uint32_t host_abi)
{
    static const weft_backend_api api = {
        .size = sizeof api,
        .abi_version = WEFT_ABI_VERSION,
        .name = "cpu",
        .features =
            WEFT_FEATURE_PROFILE | WEFT_FEATURE_OUTLINE | WEFT_FEATURE_COUNT | WEFT_FEATURE_POOLS | WEFT_FEATURE_NODES,
        .open = cpu_open,
        .close = cpu_close,
        .describe = cpu_describe,
        .supports = weft__cpu_supports,
        .buffer_new = cpu_buffer_new,
        .buffer_import = cpu_buffer_import,
        .compile = weft__cpu_compile,
        .program_free = weft__cpu_program_free,
        .run_new = weft__cpu_run_new,
        .run_free = weft__cpu_run_free,
        .run = weft__cpu_run,
        .measure = weft__cpu_measure,
        .program_describe = weft__cpu_program_describe,
        .image = weft__cpu_image,
        .adapter_new = weft__cpu_adapter_new,
        .adapter_free = weft__cpu_adapter_free,
        .adapter_bytes = weft__cpu_adapter_bytes,
        .program_bytes = weft__cpu_program_bytes,
    };
    return host_abi >> 16 == WEFT_ABI_VERSION >> 16 ? &api : NULL;
}
