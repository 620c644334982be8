// SPDX-License-Identifier: Apache-2.0
/* accept.c: may this step run? Every number of a step that a later index is made of is checked here, before anything
 * runs. */
#include <stddef.h>

#include "backend/cpu/adapter/adapter.h"

#define BAD(...) weft_fail(err, WEFT_ARGUMENT, __VA_ARGS__)
#define DEVICE(what, i)                                                                                                \
    weft_fail(err, WEFT_UNSUPPORTED, "%s %d lies in a device's memory; this provider reads the host's", what, i)

static weft_status check_counts(const weft_run *run, const weft_rows *rows, weft_error *err)
{
    const size_t least = offsetof(weft_rows, pool); /* before 2.3 */
    if (rows->size < least)
        return weft_fail(err, WEFT_ABI, "weft_rows has %u bytes; this provider reads %zu", rows->size, least);
    if (rows->n_rows < 1 || rows->n_rows > run->program->segment->max_rows)
        return BAD("a step of %d rows; the plan is for 1 to %d", rows->n_rows, run->program->segment->max_rows);
    if (rows->n_wanted < 0 || rows->n_wanted > run->program->segment->max_wanted || rows->n_wanted > rows->n_rows)
        return BAD("%d of %d rows are wanted; the plan is for at most %d", rows->n_wanted, rows->n_rows,
                   run->program->segment->max_wanted);
    if (rows->n_seqs < 1 || rows->n_seqs > run->program->segment->max_rows)
        return BAD("a step of %d sequences; the plan is for 1 to %d", rows->n_seqs, run->program->segment->max_rows);
    if (!rows->pos || !rows->seq || !rows->seqs) return BAD("a step without positions or sequences");
    if (run->program->vocab > 0 && !rows->token && !rows->embd) return BAD("a step without tokens or embeddings");
    return WEFT_OK;
}

/* Rows of a sequence stand together, at rising positions. */
static weft_status check_sequences(weft_run *run, const weft_rows *rows, weft_error *err)
{
    run->step_number++;
    for (int32_t r = 0; r < rows->n_rows; r++) {
        int32_t s = rows->seq[r], pos = rows->pos[r];
        if (s < 0 || s >= rows->n_seqs) return BAD("row %d is of sequence %d; the step has %d", r, s, rows->n_seqs);
        if (pos < 0 || pos == INT32_MAX) return BAD("row %d is at position %d", r, pos);
        if (r > 0 && rows->seq[r - 1] == s) {
            if (pos <= rows->pos[r - 1])
                return BAD("row %d is at position %d, not after %d, the one before it", r, pos, rows->pos[r - 1]);
            continue;
        }
        if (run->seq_seen[s] == run->step_number)
            return BAD("row %d: the rows of sequence %d do not stand together", r, s);
        run->seq_seen[s] = run->step_number;
        if (rows->seqs[s].tree_mask || rows->seqs[s].tree_slots)
            return weft_fail(err, WEFT_UNSUPPORTED, "sequence %d is a tree; this provider runs none", s);
    }
    return WEFT_OK;
}

static weft_status check_tokens(const weft_run *run, const weft_rows *rows, weft_error *err)
{
    for (int32_t r = 0; run->program->vocab > 0 && rows->token && r < rows->n_rows; r++) {
        int32_t t = rows->token[r];
        if (t == WEFT_NONE && rows->embd) continue;
        if (t < 0 || t >= run->program->vocab)
            return BAD("row %d has token %d; the embedding has rows 0 to %lld", r, t,
                       (long long)run->program->vocab - 1);
    }
    return WEFT_OK;
}

/* Collects the rows that are wanted. */
static weft_status check_wanted(weft_run *run, const weft_rows *rows, weft_error *err)
{
    int32_t n = 0;
    for (int32_t r = 0; r < rows->n_rows; r++) {
        if (!weft_row_wants(rows, r, WEFT_WANT_LOGITS)) continue;
        if (n == rows->n_wanted) return BAD("more rows are wanted than the %d announced (row %d)", rows->n_wanted, r);
        run->wanted[n++] = r;
    }
    return n == rows->n_wanted ? WEFT_OK : BAD("%d rows are wanted, %d were announced", n, rows->n_wanted);
}

/* The pages of rows [row, row + n), all of sequence s, in group g. */
static weft_status check_pages(const weft_run *run, const weft_rows *rows, int32_t g, int32_t row, int32_t n,
                               weft_error *err)
{
    const weft_kv_group *group = &run->program->graph->kv_groups[g];
    const weft_kv_binding *b = weft__cpu_pages(run, g, rows->seq[row]);
    const weft_seq_view *view = &rows->seqs[rows->seq[row]];
    int32_t first = rows->pos[row], last = rows->pos[row + n - 1], window = run->program->group_window[g];
    if (run->program->uses_group[g] & 2) first = window > 0 && window <= first ? first - window + 1 : 0;
    if (!view->pages || !view->n_pages || !view->pages[g])
        return BAD("sequence %d has no pages of KV group %d", rows->seq[row], g);
    if (last / group->page_tokens >= view->n_pages[g])
        return BAD("sequence %d: position %d lies beyond its %d pages of %d tokens", rows->seq[row], last,
                   view->n_pages[g], group->page_tokens);
    for (int32_t i = first / group->page_tokens; i <= last / group->page_tokens; i++) {
        int32_t page = view->pages[g][i];
        if (page < 0 || page >= b->n_pages)
            return BAD("sequence %d: page %d of KV group %d is number %d; there are %d", rows->seq[row], i, g, page,
                       b->n_pages);
    }
    return WEFT_OK;
}

/* What group g is bound to in one pool. */
static weft_status check_binding(const weft_run *run, const weft_kv_binding *b, int32_t g, weft_error *err)
{
    const weft_kv_group *group = &run->program->graph->kv_groups[g];
    const uint32_t size = b->dtype == WEFT_F16 ? 2 : 4;
    if (b->buffer) return DEVICE("KV group", g);
    char name[WEFT_KV_NAME_MAX];
    if (!weft_kv_is_type(b->dtype))
        return BAD("KV group %d is of type %u; f16, and what --kv-type names, are possible", g, b->dtype);
    if (!weft_kv_fits(b->dtype, group))
        return BAD("KV group %d has heads of %d and %d elements; %s takes at most %d", g, group->head_dim_k,
                   group->head_dim_v, weft_kv_type_name(b->dtype, name), WEFT_KV_CODED_MAX);
    if (!b->data || b->page_bytes < weft_kv_layer_at(b->dtype, group, group->n_layers) || b->page_bytes % size ||
        (uintptr_t)b->data % size)
        return BAD("KV group %d: pages of %llu bytes do not hold its layers, or are not aligned", g,
                   (unsigned long long)b->page_bytes);
    return WEFT_OK;
}

static weft_status check_group(const weft_run *run, const weft_rows *rows, int32_t n_pools, int32_t g, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int32_t p = 0; p < n_pools && !st; p++)
        st = check_binding(run, &run->kv[p * run->program->graph->n_kv_groups + g], g, err);
    for (int32_t r = 0, n; r < rows->n_rows && !st; r += n) {
        for (n = 1; r + n < rows->n_rows && rows->seq[r + n] == rows->seq[r];) n++;
        st = check_pages(run, rows, g, r, n, err);
    }
    return st;
}

/* How many pools there are, and that every sequence is in one of them. */
static weft_status check_pools(weft_run *run, const weft_rows *rows, int32_t *n_pools, weft_error *err)
{
    run->pool = rows->size >= sizeof *rows ? rows->pool : NULL;
    *n_pools = run->pool ? rows->n_pools : 1;
    if (*n_pools < 1) return BAD("a step with %d pools of pages", *n_pools);
    for (int32_t s = 0; run->pool && s < rows->n_seqs; s++)
        if (run->pool[s] < 0 || run->pool[s] >= *n_pools)
            return BAD("sequence %d has pages in pool %d; the step has %d", s, run->pool[s], *n_pools);
    return WEFT_OK;
}

static weft_status check_kv(weft_run *run, const weft_rows *rows, const weft_bindings *b, weft_error *err)
{
    const int32_t n_groups = run->program->graph->n_kv_groups;
    int32_t n_pools;
    weft_status st = check_pools(run, rows, &n_pools, err);
    run->kv = b->kv;
    for (int32_t g = 0; g < n_groups && !st; g++) {
        if (!run->program->uses_group[g]) continue;
        if (!b->kv || b->n_kv / n_groups < n_pools)
            return BAD("%d KV groups are bound; the graph has %d, the step %d pools of them", b->n_kv, n_groups,
                       n_pools);
        st = check_group(run, rows, n_pools, g, err);
    }
    return st;
}

static weft_status bind(weft_run *run, const weft_rows *rows, const weft_bindings *b, weft_error *err)
{
    for (int32_t i = 0; i < run->program->segment->n_bound; i++) {
        weft_tensor_id t = run->program->segment->bound[i];
        const weft_tensor *tensor = &run->program->graph->tensors[t];
        run->data[t] = NULL;
        for (int32_t j = 0; j < b->n_tensors; j++) {
            if (b->tensors[j].tensor != t) continue;
            if (b->tensors[j].buffer) return DEVICE("tensor", t);
            run->data[t] = b->tensors[j].data;
        }
        if (!run->data[t] && (tensor->shape.d[1] == WEFT_ROWS || rows->n_wanted > 0))
            return BAD("tensor %s is bound to no memory", tensor->name);
    }
    return WEFT_OK;
}

/* Which nodes run. What routes wrote that did not run in this step is no list of experts. */
static weft_status check_nodes(weft_run *run, const weft_step *step, weft_error *err)
{
    const weft_graph *g = run->program->graph;
    run->first_node = run->n_nodes = 0;
    if (step->size < sizeof *step || !step->n_nodes) return WEFT_OK;
    if (step->first_node < 0 || step->n_nodes < 0 || step->n_nodes > g->n_nodes - step->first_node)
        return BAD("%d nodes from node %d on; the graph has %d", step->n_nodes, step->first_node, g->n_nodes);
    for (int32_t i = step->first_node; i < step->first_node + step->n_nodes; i++)
        if (g->nodes[i].op == WEFT_OP_MOE_FFN) return BAD("node %d is of experts, which run in whole steps only", i);
    run->first_node = step->first_node;
    run->n_nodes = step->n_nodes;
    return WEFT_OK;
}

weft_status weft__cpu_accept(weft_run *run, const weft_step *step, weft_error *err)
{
    weft_status st;
    const size_t least = offsetof(weft_step, first_node); /* before 2.4 */
    if (step->size < least)
        return weft_fail(err, WEFT_ABI, "weft_step has %u bytes; this provider reads %zu", step->size, least);
    const weft_rows *rows = step->rows;
    const weft_bindings *b = step->bindings;
    if (b->size < sizeof *b)
        return weft_fail(err, WEFT_ABI, "weft_bindings has %u bytes; this provider reads %zu", b->size, sizeof *b);
    if (step->after || step->done)
        return weft_fail(err, WEFT_UNSUPPORTED,
                         "a step that waits for events, or raises one; this provider knows none");
    if ((st = check_nodes(run, step, err)) || (st = check_counts(run, rows, err)) ||
        (st = check_sequences(run, rows, err)) || (st = check_tokens(run, rows, err)) ||
        (st = check_wanted(run, rows, err)) || (st = weft__cpu_group_rows(run, rows, err)) ||
        (st = check_kv(run, rows, b, err)) || (st = bind(run, rows, b, err)))
        return st;
    run->rows = rows;
    run->profile = step->profile;
    weft__cpu_choose_rows(run, rows);
    weft__cpu_choose_direct(run);
    return WEFT_OK;
}
