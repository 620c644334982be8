// SPDX-License-Identifier: Apache-2.0
/* compile.c: from a segment of the graph to a program: steps, packed weights, and what its runs will need. */
#include <string.h>

#include "backend/cpu/adapter/adapter.h"
#include "base/alloc.h"
#include "base/background.h"
#include "base/check.h"
#include "base/text.h"
#include "kernels/tune.h"
#include "mem/mem.h"
#include "mem/owners.h"

/* ---- what programs and runs own ---- */

void *weft__cpu_own(void **owned, size_t n, size_t size)
{
    size_t n_bytes;
    if (__builtin_mul_overflow(n, size, &n_bytes) || __builtin_add_overflow(n_bytes, WEFT__CPU_LINE, &n_bytes))
        return NULL;
    uint8_t *block = weft__alloc_aligned(WEFT__CPU_LINE, n_bytes);
    if (!block) return NULL;
    memset(block, 0, n_bytes);
    memcpy(block, owned, sizeof *owned);
    *owned = block;
    return block + WEFT__CPU_LINE;
}

void weft__cpu_free_owned(void **owned)
{
    while (*owned) {
        void *next;
        memcpy(&next, *owned, sizeof next);
        weft__free(*owned);
        *owned = next;
    }
}

weft_status weft__cpu_buffer(uint64_t n_bytes, uint32_t flags, weft_buffer **out, weft_error *err)
{
    weft_buffer_spec spec = {.size = sizeof spec, .domain = WEFT_DOMAIN_HOST, .n_bytes = n_bytes, .flags = flags};
    return weft__mem_create(&spec, out, err);
}

const float *weft__cpu_vector(weft_program *p, weft_weight_id id, int *failed)
{
    if (id == WEFT_NONE) return NULL;
    const weft_weight *w = &p->graph->weights[id];
    if (!p->vector[id]) {
        float *values = weft__cpu_own(&p->owned, (size_t)w->shape.d[0], sizeof *values);
        if (values) p->k->decode_row(w->dtype, (const uint8_t *)w->buffer->data + w->offset, w->shape.d[0], values);
        else *failed = 1;
        p->vector[id] = values;
    }
    return p->vector[id];
}

void weft__cpu_program_free(weft_program **pp)
{
    weft_program *p = *pp;
    if (!p) return;
    *pp = NULL;
    weft__free(p->text);
    weft_buffer_release(&p->packed);
    weft__cpu_free_owned(&p->owned);
    weft__free(p);
}

/* ---- tables and memory that do not depend on the steps ---- */

static weft_status make_tables(weft_program *p, weft_error *err)
{
    const weft_graph *g = p->graph;
    size_t nodes = (size_t)p->segment->n_nodes, weights = (size_t)g->n_weights, groups = (size_t)g->n_kv_groups;
    p->weight_panels = weft__cpu_own(&p->owned, weights, sizeof *p->weight_panels);
    p->vector = weft__cpu_own(&p->owned, weights, sizeof(const float *));
    p->ropes = weft__cpu_own(&p->owned, nodes, sizeof *p->ropes);
    p->tilings = weft__cpu_own(&p->owned, nodes, sizeof *p->tilings);
    p->uses_group = weft__cpu_own(&p->owned, groups, sizeof *p->uses_group);
    p->group_window = weft__cpu_own(&p->owned, groups, sizeof *p->group_window);
    if (p->weight_panels && p->vector && p->ropes && p->tilings && p->uses_group && p->group_window) return WEFT_OK;
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for a program of %zu nodes", nodes);
}

/* Memory for packed weights, or the image that has them; of an outline addresses alone. */
static weft_status make_packed(weft_program *p, const weft_compile_options *o, weft_error *err)
{
    uint64_t n, limit = weft__machine_memory_bytes();
    const weft_image *image = o->image;
    weft_status st;
    if (image) {
        if ((st = weft__cpu_take_image(p, image, err))) return st;
        return weft__mem_borrow(image->data, image->n_bytes, WEFT_BUFFER_READONLY, &p->packed, err);
    }
    if ((st = weft__cpu_packed_bytes(p, &n, err))) return st;
    if (o->flags & WEFT_COMPILE_OUTLINE) return weft__mem_reserve(n, &p->packed, err);
    if (limit && n > limit)
        return weft_fail(err, WEFT_NO_MEMORY,
                         "the packed weights need %.1f GB and this machine has %.1f GB; use a smaller model or format",
                         (double)n / 1e9, (double)limit / 1e9);
    if ((st = weft__cpu_buffer(n, WEFT_BUFFER_HUGE, &p->packed, err)))
        return weft_fail_within(err, st, "packed weights");
    weft__mem_set_owner(p->packed, WEFT__MEM_WEIGHTS);
    return WEFT_OK;
}

/* ---- steps ---- */

static weft_status build_step(weft_program *p, weft__cpu_step *s, weft_error *err)
{
    switch ((weft_opcode)s->node->op) {
    case WEFT_OP_LINEAR: return weft__cpu_build_linear(p, s, err);
    case WEFT_OP_ROPE:
    case WEFT_OP_KV_WRITE:
    case WEFT_OP_ROPE_KV: return weft__cpu_build_positions(p, s, err);
    case WEFT_OP_ATTENTION: return weft__cpu_build_attention(p, s, err);
    case WEFT_OP_MOE_ROUTE:
    case WEFT_OP_MOE_FFN: return weft__cpu_build_moe(p, s, err);
    case WEFT_OP_EMBED:
    case WEFT_OP_NORM:
    case WEFT_OP_GLU:
    case WEFT_OP_ADD:
    case WEFT_OP_SOFTCAP:
    case WEFT_OP_PICK_ROWS: return weft__cpu_build_rows(p, s, err);
    case WEFT_OP_COUNT: break;
    }
    return weft_fail(err, WEFT_UNSUPPORTED, "op %u is unknown to the CPU provider", s->node->op);
}

static int rotates(uint32_t op)
{
    return op == WEFT_OP_ROPE || op == WEFT_OP_ROPE_KV;
}

/* The angles come first. They need no barrier of their own when another step, which has one, stands between them and
 * their use. */
static weft_status build_steps(weft_program *p, weft_error *err)
{
    const weft_node *nodes = p->graph->nodes;
    const weft_segment *segment = p->segment;
    const int32_t end = weft__cpu_end_begins(p);
    weft_status st = WEFT_OK;
    int any = 0;
    weft__cpu_step *steps = weft__cpu_own(&p->owned, (size_t)segment->n_nodes + 2, sizeof *steps); /* angles, gather */
    if (!steps) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a program of %d nodes", segment->n_nodes);
    p->steps = steps;
    for (int32_t i = 0; i < segment->n_nodes; i++) any |= rotates(nodes[segment->nodes[i]].op);
    if (any)
        steps[p->n_steps++] = (weft__cpu_step){
            .run = weft__cpu_rope_tables, .rows = WEFT_ROWS, .barrier = rotates(nodes[segment->nodes[0]].op)};
    for (int32_t i = 0; i < segment->n_nodes && !st; i++) {
        if (i == end) {
            p->gather = &steps[p->n_steps];
            if ((st = weft__cpu_build_gather(p, &steps[p->n_steps++], i, err))) break;
        }
        weft__cpu_step *s = &steps[p->n_steps++];
        s->node = &nodes[segment->nodes[i]];
        s->rows = p->graph->tensors[s->node->out[0]].shape.d[1];
        s->if_wanted = weft__cpu_is_if_wanted(p, i, end);
        s->barrier = i + 1 < segment->n_nodes; /* the end of the job is the last one's */
        st = build_step(p, s, err);
    }
    for (int32_t i = p->n_steps - 1; i > 0; i--) {
        const weft_node *node = steps[i].node;
        steps[i - 1].next = node && node->op == WEFT_OP_LINEAR ? &steps[i] : steps[i].next;
    }
    return st ? st : weft__cpu_find_direct(p, steps, p->n_steps, err);
}

/* ---- packing ---- */

typedef struct pack_job {
    const weft__cpu_matrix *m[WEFT_LINEAR_MAX];
    const int64_t *split[WEFT_LINEAR_MAX]; /* of each matrix, first output of thread 0 */
    int stride[WEFT_LINEAR_MAX];           /* from thread to thread */
    int n;
} pack_job;

/* Each thread packs its share, so that pages lie near the thread that reads them: it, or another of its NUMA node. */
static void pack(void *arg, int thread, int n_threads)
{
    const pack_job *j = arg;
    (void)n_threads;
    for (int i = 0; i < j->n; i++) {
        const int64_t *split = j->split[i] + (ptrdiff_t)thread * j->stride[i];
        weft__cpu_pack(j->m[i], split[0], split[j->stride[i]]);
    }
}

static void add_job(pack_job *j, const weft__cpu_matrix *m, const int64_t *split, int stride)
{
    if (!m->pack_here) return;
    j->m[j->n] = m;
    j->split[j->n] = split;
    j->stride[j->n++] = stride;
}

static pack_job job_of(const weft__cpu_step *s, int n_threads)
{
    pack_job j = {.n = 0};
    if (s->node && s->node->op == WEFT_OP_LINEAR) {
        const weft__cpu_linear *l = s->data;
        for (int i = 0; i < l->n_mat; i++) add_job(&j, &l->m[i], l->split + i % l->n_columns, l->n_columns);
    } else if (s->node && s->node->op == WEFT_OP_MOE_FFN) {
        const weft__cpu_moe *m = s->data;
        add_job(&j, &m->gate, m->split, 1);
        add_job(&j, &m->up, m->split, 1);
        add_job(&j, &m->down, m->split + n_threads + 1, 1);
    }
    return j;
}

/* The same on this thread alone, in bounded pieces, so that others get on with their steps. */
static void pack_behind(const weft__pool *pool, const pack_job *j, int n_threads)
{
    for (int t = 0; t < n_threads; t++) {
        weft__pool_stand_beside(pool, t);
        for (int i = 0; i < j->n; i++) {
            const weft__cpu_matrix *m = j->m[i];
            const int64_t *split = j->split[i] + (ptrdiff_t)t * j->stride[i], rows = m->mm->panel_rows;
            for (int64_t first = split[0], last = split[j->stride[i]]; first < last; first += rows) {
                weft__cpu_pack(m, first, first + rows < last ? first + rows : last);
                weft__background_did((uint64_t)m->stride * (uint64_t)m->w->shape.d[2]);
            }
        }
    }
}

/* The file's pages of a packed weight are not needed any more. */
static void drop_source(const weft_weight *w)
{
    if (w->buffer->domain != WEFT_DOMAIN_MAPPED) return;
    uint64_t n = w->row_bytes * (uint64_t)(w->shape.d[1] * w->shape.d[2]);
    if (n > w->buffer->n_bytes - w->offset) n = w->buffer->n_bytes - w->offset;
    (void)weft__mem_advise(w->buffer, w->offset, n, WEFT__MEM_ADVICE_DONTNEED, NULL); /* a wish */
}

/* ---- memory near the threads ---- */

enum { HUGE_PAGE = 2 << 20, LARGE_SHARE = 8 << 20 };

/* Asks for small pages in the huge page around `at`, or in n_bytes from there on. */
static void small_pages(weft_program *p, const uint8_t *at, uint64_t n_bytes)
{
    uint64_t first = (uint64_t)(at - (uint8_t *)p->packed->data), last = first + n_bytes;
    first &= ~(uint64_t)(HUGE_PAGE - 1); /* the buffer begins at one */
    last = (last + HUGE_PAGE - 1) & ~(uint64_t)(HUGE_PAGE - 1);
    if (last > p->packed->n_bytes) last = p->packed->n_bytes;
    (void)weft__mem_advise(p->packed, first, last - first, WEFT__MEM_ADVICE_SMALL, NULL); /* a wish */
}

/* A page lies on the NUMA node of the thread that packs into it first. Where the shares of two nodes meet, a huge page
 * would be far from one of them; so there are small ones, and everywhere if shares are so small that most huge pages
 * would be shared. */
static void part_nodes(weft_program *p, const pack_job *j)
{
    const weft__pool *pool = p->backend->pool;
    int n = p->backend->n_threads, nodes = 1;
    for (int t = 1; t < n; t++) nodes += weft__pool_node(pool, t) != weft__pool_node(pool, t - 1);
    if (nodes == 1) return;
    for (int i = 0; i < j->n; i++) {
        const weft__cpu_matrix *m = j->m[i];
        int64_t n_experts = m->w->shape.d[2];
        if (m->expert_stride / (size_t)nodes < LARGE_SHARE) {
            small_pages(p, m->panels, (uint64_t)n_experts * m->expert_stride);
            continue;
        }
        for (int64_t e = 0; e < n_experts; e++) {
            for (int t = 0; t < n; t++) { /* before thread 0 lies what the last one packed */
                if (weft__pool_node(pool, t) == weft__pool_node(pool, t ? t - 1 : n - 1)) continue;
                size_t panel = (size_t)(j->split[i][(ptrdiff_t)t * j->stride[i]] / m->mm->panel_rows);
                small_pages(p, m->panels + (size_t)e * m->expert_stride + panel * m->stride, 1);
            }
        }
    }
}

static weft_status pack_weights(weft_program *p, const weft_compile_options *o, weft_error *err)
{
    uint64_t done = 0, total = p->packed->n_bytes;
    for (int32_t i = 0; i < p->n_steps; i++) {
        pack_job j = job_of(&p->steps[i], p->backend->n_threads);
        if (j.n == 0) continue;
        if (o->progress && o->progress(o->progress_arg, j.m[0]->w->name, (double)done / (double)total))
            return weft_fail(err, WEFT_CANCELLED, "cancelled while packing %s", j.m[0]->w->name);
        part_nodes(p, &j);
        if (weft__background_is()) pack_behind(p->backend->pool, &j, p->backend->n_threads);
        else weft__pool_run(p->backend->pool, pack, &j);
        for (int k = 0; k < j.n; k++) {
            done += (uint64_t)j.m[k]->expert_stride * (uint64_t)j.m[k]->w->shape.d[2];
            drop_source(j.m[k]->w);
        }
    }
    if (o->progress && o->progress(o->progress_arg, "packed", 1)) return weft_fail(err, WEFT_CANCELLED, "cancelled");
    return WEFT_OK;
}

/* ---- in words ---- */

/* One line per kernel that multiplies: how many weights of which type, how many bytes. */
static void describe_matrices(const weft_program *p, weft__strbuf *t)
{
    int n;
    const weft__kernel_entry *list = weft__kernel_list(&n);
    for (int e = 0; e < n; e++) {
        if (!list[e].matmul) continue;
        int count = 0;
        uint64_t bytes = 0;
        for (int32_t i = 0; i < p->segment->n_nodes; i++) {
            const weft_node *node = &p->graph->nodes[p->segment->nodes[i]];
            if (node->op != WEFT_OP_LINEAR && node->op != WEFT_OP_MOE_FFN) continue;
            for (int j = 0; j < node->n_w; j++) {
                const weft_weight *w = &p->graph->weights[node->w[j]];
                if (weft__matmul_find(w->dtype, p->backend->tiers) != list[e].matmul) continue;
                count++;
                bytes += w->row_bytes * (uint64_t)(w->shape.d[1] * w->shape.d[2]);
            }
        }
        if (!count) continue;
        weft__strbuf_printf(t, "linear %s: %s, input %s, %d matrices, %.1f MB\n", list[e].format, list[e].matmul->name,
                            list[e].matmul->act->name, count, (double)bytes / 1e6);
        const weft__kernel_tune *tune =
            weft__kernel_tune_of((weft__uarch)weft__kernel_uarch, list[e].matmul->tier, list[e].matmul->dtype);
        if (!tune) continue;
        char words[200];
        weft__kernel_tune_describe(tune, words, sizeof words);
        weft__strbuf_printf(t, "  tuned for %s: %s\n", weft__uarch_name((weft__uarch)weft__kernel_uarch), words);
    }
}

static weft_status describe(weft_program *p, weft_error *err)
{
    weft__strbuf t = {0};
    describe_matrices(p, &t);
    weft__strbuf_printf(&t, "rows: %s; %d threads, %d steps, %d rope tables, %d inputs handed on prepared\n",
                        weft__tier_name(p->k->tier), p->backend->n_threads, p->n_steps, p->n_ropes, p->n_direct);
    weft__strbuf_printf(&t, "packed weights %.1f MB, shared scratch %.1f MB", (double)p->packed->n_bytes / 1e6,
                        (double)p->needs.shared / 1e6);
    if (t.failed) {
        weft__strbuf_free(&t);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory to describe a program");
    }
    p->text = t.data;
    return WEFT_OK;
}

weft_status weft__cpu_program_bytes(const weft_program *p, weft_program_bytes *out, weft_error *err)
{
    const weft_graph *g = p->graph;
    if (out->size < sizeof *out)
        return weft_fail(err, WEFT_ABI, "weft_program_bytes has %u bytes; this provider fills %zu", out->size,
                         sizeof *out);
    *out = (weft_program_bytes){.size = out->size, .packed = p->packed->n_bytes, .run = weft__cpu_run_bytes(p)};
    for (int32_t i = 0; p->described.own && i < g->n_weights; i++)
        if (p->described.own[i])
            out->own += g->weights[i].row_bytes * (uint64_t)(g->weights[i].shape.d[1] * g->weights[i].shape.d[2]);
    return WEFT_OK;
}

const char *weft__cpu_program_describe(const weft_program *p)
{
    return p->text;
}

weft_status weft__cpu_compile(weft_backend *b, const weft_graph *g, const weft_segment *s,
                              const weft_compile_options *o, weft_program **out, weft_error *err)
{
    weft_status st;
    *out = NULL;
    if (g->size < sizeof *g || s->size < sizeof *s || o->size < sizeof *o)
        return weft_fail(err, WEFT_ABI, "graph, segment and options of %u, %u and %u bytes are of an older version",
                         g->size, s->size, o->size);
    weft_program *p = weft__alloc_zero(1, sizeof *p);
    if (!p) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a program");
    p->backend = b;
    p->k = b->k;
    p->graph = g;
    p->segment = s;
    const int outline = (o->flags & WEFT_COMPILE_OUTLINE) != 0;
    if ((st = make_tables(p, err)) || (st = make_packed(p, o, err)) || (st = build_steps(p, err)) ||
        (!outline && (st = pack_weights(p, o, err))) || (st = describe(p, err)) ||
        (st = weft__cpu_describe_image(p, err))) {
        weft__cpu_program_free(&p);
        return st;
    }
    p->image = NULL; /* the caller's */
    *out = p;
    return WEFT_OK;
}
