// SPDX-License-Identifier: Apache-2.0
/* rows.c: what steps of several rows of a model cost on this machine (draft/draft.h): timed once, on runs of its own
 * layers with this process's threads and scratch pages. Nothing that a step computes depends on it. Experts are left
 * out: which of them rows share depends on texts. State: the model's `rows`, under its lock. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/pool.h"
#include "engine/handles.h"
#include "kv/kv.h"

enum { PARTS = 256, ROWS = 16 };
/* Whole layers, so that to begin a step takes little of a part's time; of large ones a piece; together beyond every
 * cache. */
static const double LEAST_BYTES = 8 << 20, PIECE_BYTES = 64 << 20, ALL_BYTES = 512 << 20;

typedef struct rows_trial {
    weft_model *m;
    weft__engine_steps *s;
    weft__kv_pool *pool;
    weft__kv_seq *seq;
    float *logits; /* [ROWS, V] */
    struct {
        int32_t first, n; /* nodes */
    } part[PARTS];
    double bytes[PARTS];
    int32_t n_parts;
} rows_trial;

static uint64_t time_part(void *arg, int32_t part, int32_t n_rows)
{
    rows_trial *t = arg;
    weft__graph_batch *b = &t->s->batch;
    float *outputs[] = {t->logits, b->hidden};
    weft__graph_batch_clear(b);
    weft__graph_batch_add_sequence(b, weft__kv_seq_view(t->seq), NULL);
    for (int32_t i = 0; i < n_rows; i++)
        weft__graph_batch_add_row(b, (i * 7919 + part) % t->m->hp.n_vocab, i, WEFT_WANT_LOGITS);
    if (weft__pool_at_work()) return 0; /* another model's step, whose end would be waited for */
    const uint64_t begin = weft__clock_ns();
    if (weft__plan_run_nodes(t->s->state, &b->rows, weft__kv_pool_bindings(t->pool), outputs, t->part[part].first,
                             t->part[part].n, NULL))
        return 0;
    return weft__clock_ns() - begin + 1;
}

/* Does a part end behind node i? */
static int ends_part(const weft_graph *g, int32_t i, double bytes)
{
    if (i + 1 == g->n_nodes || g->nodes[i + 1].op == WEFT_OP_MOE_FFN || bytes >= PIECE_BYTES) return 1;
    return bytes >= LEAST_BYTES && g->nodes[i].layer != g->nodes[i + 1].layer;
}

/* Runs of nodes, between which experts stand, if there are any. */
static void find_parts(rows_trial *t)
{
    const weft_graph *g = weft__plan_graph(t->m->plan);
    const weft__graph_seq_rows seq = {0, 1, 1};
    const weft__graph_load load = {.n_rows = 1, .n_wanted = 1, .n_seqs = 1, .seqs = &seq, .kv_dtype = WEFT_F16};
    double bytes = 0, all = 0;
    for (int32_t i = 0, first = 0; i < g->n_nodes && t->n_parts < PARTS && all < ALL_BYTES; i++) {
        if (g->nodes[i].op == WEFT_OP_MOE_FFN) {
            first = i + 1;
            continue;
        }
        bytes += weft__graph_node_cost(g, i, &load).weight_bytes;
        if (!ends_part(g, i, bytes)) continue;
        if (bytes > 0) {
            t->part[t->n_parts].first = first;
            t->part[t->n_parts].n = i + 1 - first;
            t->bytes[t->n_parts++] = bytes;
        }
        all += bytes;
        bytes = 0;
        first = i + 1;
    }
}

static weft_status open_trial(rows_trial *t)
{
    const weft_graph *g = t->m->graph;
    int32_t *n_pages = weft__alloc_array((size_t)g->n_kv_groups, sizeof *n_pages);
    t->logits = weft__alloc_aligned(64, (size_t)ROWS * (size_t)t->m->hp.n_vocab * sizeof *t->logits);
    weft_status st = n_pages && t->logits ? WEFT_OK : WEFT_NO_MEMORY;
    for (int32_t i = 0; i < g->n_kv_groups && !st; i++)
        n_pages[i] = weft__kv_pages_needed(&g->kv_groups[i], ROWS, ROWS);
    if (!st) st = weft__kv_pool_create(g->kv_groups, g->n_kv_groups, n_pages, WEFT_F16, &t->pool, NULL);
    if (!st) st = weft__kv_seq_create(t->pool, ROWS, &t->seq, NULL);
    if (!st) st = weft__kv_seq_reserve(t->seq, ROWS, NULL);
    weft__free(n_pages);
    return st;
}

/* 1: shape has it. */
static int measure_rows(weft_model *m, weft__engine_steps *s, double *shape)
{
    const uint64_t begin = weft__clock_ns();
    rows_trial t = {.m = m, .s = s};
    const int32_t most = m->max_rows < m->max_wanted ? m->max_rows : m->max_wanted;
    int done = 0;
    if (!open_trial(&t)) {
        find_parts(&t);
        done = weft__draft_measure(&(weft__draft_trial){time_part, &t, t.bytes, t.n_parts, most < ROWS ? most : ROWS},
                                   shape);
    }
    if (done)
        weft__log(
            WEFT__LOG_INFO,
            "steps of 2, 4, 8 and 16 rows take %.2f, %.2f, %.2f and %.2f times as long as those of one row (by %d "
            "parts of the model, in %.1f ms)",
            shape[2], shape[4], shape[8], shape[16], t.n_parts, (double)(weft__clock_ns() - begin) / 1e6);
    else
        weft__log(WEFT__LOG_INFO,
                  "rows could not be timed, or not well: what steps of several usually take is assumed");
    weft__graph_batch_clear(&s->batch);
    weft__kv_seq_destroy(&t.seq);
    weft__kv_pool_destroy(&t.pool);
    weft__free(t.logits);
    return done;
}

void weft__engine_cost_begin(weft__draft_cost *c, weft_model *m, weft__engine_steps *s)
{
    const double part = weft__graph_expert_part(m->graph);
    pthread_mutex_lock(&m->rows.lock);
    if (s && !m->rows.is_tried) {
        m->rows.is_tried = 1;
        m->rows.known = measure_rows(m, s, m->rows.shape);
    }
    weft__draft_cost_begin(c, m->rows.known ? m->rows.shape : NULL, m->hp.n_experts, m->hp.n_experts_used, part);
    pthread_mutex_unlock(&m->rows.lock);
}
