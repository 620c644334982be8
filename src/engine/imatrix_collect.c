// SPDX-License-Identifier: Apache-2.0
/* imatrix_collect.c: weft_imatrix_collect: the model's graph, unfused, with the inputs of its matrices as outputs, run
 * over a text; squares are summed in double. One thread steps; the model's own plan is not touched. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "engine/handles.h"
#include "format/gguf_write.h"
#include "format/out_file.h"

enum { ROWS = 64, DEFAULT_CHUNK = 512 };

/* One matrix, or one set of experts, and what flows into it. */
struct watched {
    const weft_weight *w;
    int32_t input, route; /* indices of outputs; route -1: not routed */
    int32_t n_used, n_experts;
    int per_rank;   /* each chosen expert has an input of its own: n_used of them side by side */
    double *sums;   /* [experts][k] */
    double *counts; /* [experts] */
};

struct collector {
    weft_model *model;
    weft_graph graph; /* the model's, with other outputs; these three are its own */
    weft_node *nodes;
    weft_tensor *tensors;
    weft_tensor_id *outputs;
    float **data; /* [n_outputs] [ROWS, width] */
    struct watched *watched;
    int32_t n_watched;
    weft__plan *plan;
    weft__plan_state *state;
    weft__kv_pool *pool;
    weft__kv_seq *seq;
    weft__graph_batch batch;
    int32_t bos; /* what every chunk begins with; -1: its own first token */
};

void(weft_imatrix_params_default)(weft_imatrix_params *p)
{
    *p = (weft_imatrix_params){.size = sizeof *p};
}

void weft_imatrix_params_init(weft_imatrix_params *params, uint32_t size)
{
    weft_imatrix_params own;
    (weft_imatrix_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_imatrix_params), params, size, &own);
}

static void collector_free(struct collector *c)
{
    weft__graph_batch_free(&c->batch);
    weft__kv_seq_destroy(&c->seq);
    weft__kv_pool_destroy(&c->pool);
    weft__plan_state_free(&c->state);
    weft__plan_destroy(&c->plan);
    for (int32_t i = 0; i < c->n_watched; i++) {
        weft__free(c->watched[i].sums);
        weft__free(c->watched[i].counts);
    }
    for (int32_t i = 0; c->data && i < c->graph.n_outputs; i++) weft__free(c->data[i]);
    weft__free(c->watched);
    weft__free(c->data);
    weft__free(c->outputs);
    weft__free(c->tensors);
    weft__free(c->nodes);
}

/* The output index of tensor t, added if need be. */
static int32_t watch_tensor(struct collector *c, weft_tensor_id t)
{
    for (int32_t i = 0; i < c->graph.n_outputs; i++)
        if (c->outputs[i] == t) return i;
    c->outputs[c->graph.n_outputs] = t;
    return c->graph.n_outputs++;
}

/* Watches the matrices of weight `id`; `like` says how its input is found. */
static weft_status watch(struct collector *c, weft_weight_id id, struct watched like, weft_error *err)
{
    const weft_weight *w = &c->graph.weights[id];
    for (int32_t i = 0; i < c->n_watched; i++)
        if (!strcmp(c->watched[i].w->name, w->name)) return WEFT_OK; /* another range of the same matrix's rows */
    struct watched *x = &c->watched[c->n_watched];
    *x = like;
    x->w = w;
    x->sums = weft__alloc_zero((size_t)x->n_experts * (size_t)w->shape.d[0], sizeof *x->sums);
    x->counts = weft__alloc_zero((size_t)x->n_experts, sizeof *x->counts);
    c->n_watched++;
    return x->sums && x->counts ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for the sums of %s", w->name);
}

/* Gate and up see the row itself, down what they make of it: a second output of the node, which is added here. */
static weft_status watch_experts(struct collector *c, weft_node *n, weft_error *err)
{
    const weft_attr_moe *moe = &n->attr.moe;
    weft_tensor *hidden = &c->tensors[c->graph.n_tensors];
    *hidden = c->tensors[n->out[0]];
    snprintf(hidden->name, sizeof hidden->name, "blk.%d.ffn_experts", n->layer);
    hidden->shape.d[0] = moe->n_used * c->graph.weights[n->w[2]].shape.d[0];
    n->n_out = 2;
    n->out[1] = c->graph.n_tensors++;
    struct watched x = {.input = watch_tensor(c, n->in[0]),
                        .route = watch_tensor(c, n->in[1]),
                        .n_used = moe->n_used,
                        .n_experts = moe->n_experts};
    weft_status st;
    if ((st = watch(c, n->w[0], x, err)) || (st = watch(c, n->w[1], x, err))) return st;
    x.input = watch_tensor(c, n->out[1]);
    x.per_rank = 1;
    return watch(c, n->w[2], x, err);
}

/* Finds the matrices, except the output's: only rows whose logits are wanted reach it. */
static weft_status watch_all(struct collector *c, weft_error *err)
{
    const weft_graph *g = c->model->graph;
    size_t n_nodes = (size_t)g->n_nodes, most = 3 * n_nodes + 1;
    weft_status st = WEFT_OK;
    c->graph = *g;
    c->graph.n_outputs = 0;
    c->outputs = weft__alloc_array(most, sizeof *c->outputs);
    c->watched = weft__alloc_zero(most, sizeof *c->watched);
    c->nodes = weft__alloc_array(n_nodes, sizeof *c->nodes);
    c->tensors = weft__alloc_array((size_t)g->n_tensors + n_nodes, sizeof *c->tensors);
    if (!c->outputs || !c->watched || !c->nodes || !c->tensors)
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for an importance matrix");
    memcpy(c->nodes, g->nodes, n_nodes * sizeof *c->nodes);
    memcpy(c->tensors, g->tensors, (size_t)g->n_tensors * sizeof *c->tensors);
    c->graph.nodes = c->nodes;
    c->graph.tensors = c->tensors;
    c->graph.outputs = c->outputs;
    for (int32_t i = 0; i < g->n_nodes && !st; i++) {
        weft_node *n = &c->nodes[i];
        if (n->op == WEFT_OP_LINEAR && g->tensors[n->in[0]].shape.d[1] == WEFT_ROWS)
            st = watch(c, n->w[0], (struct watched){.input = watch_tensor(c, n->in[0]), .route = -1, .n_experts = 1},
                       err);
        if (n->op == WEFT_OP_MOE_FFN) st = watch_experts(c, n, err);
    }
    return st;
}

static weft_status imatrix_collect_prepare(struct collector *c, int32_t chunk, const weft_imatrix_params *p,
                                           weft_error *err)
{
    weft_status st = watch_all(c, err);
    if (st) return st;
    weft__plan_options options = {.max_rows = ROWS,
                                  .max_wanted = 1,
                                  .no_fusion = 1,
                                  .providers = &c->model->provider,
                                  .n_providers = 1,
                                  .progress = p->progress,
                                  .progress_arg = p->progress_arg,
                                  .image = weft__engine_model_image(c->model)};
    if ((st = weft__plan_create(&c->graph, &options, &c->plan, err)) ||
        (st = weft__plan_state_new(c->plan, &c->state, err)) || (st = weft__graph_batch_init(&c->batch, ROWS, 0, err)))
        return st;
    c->data = weft__alloc_zero((size_t)c->graph.n_outputs, sizeof *c->data);
    if (!c->data) return weft_fail(err, WEFT_NO_MEMORY, "no memory for activations");
    for (int32_t i = 0; i < c->graph.n_outputs; i++) {
        size_t width = (size_t)c->graph.tensors[c->outputs[i]].shape.d[0];
        if (!(c->data[i] = weft__alloc_array(width * ROWS, sizeof **c->data)))
            return weft_fail(err, WEFT_NO_MEMORY, "no memory for activations");
    }
    int32_t n_pages[16];
    if (c->graph.n_kv_groups > 16) return weft_fail(err, WEFT_UNSUPPORTED, "%d KV groups", c->graph.n_kv_groups);
    for (int32_t i = 0; i < c->graph.n_kv_groups; i++)
        n_pages[i] = weft__kv_pages_needed(&c->graph.kv_groups[i], chunk, ROWS);
    if ((st = weft__kv_pool_create(c->graph.kv_groups, c->graph.n_kv_groups, n_pages, WEFT_F16, &c->pool, err)))
        return st;
    return weft__kv_seq_create(c->pool, chunk, &c->seq, err);
}

static void add_row(struct watched *x, int32_t matrix, const float *row)
{
    int64_t k = x->w->shape.d[0];
    double *sums = x->sums + (size_t)matrix * (size_t)k;
    for (int64_t i = 0; i < k; i++) sums[i] += (double)row[i] * (double)row[i];
    x->counts[matrix]++;
}

static void accumulate(struct collector *c, int32_t n_rows)
{
    for (int32_t i = 0; i < c->n_watched; i++) {
        struct watched *x = &c->watched[i];
        const float *in = c->data[x->input];
        int64_t k = x->w->shape.d[0];
        for (int32_t r = 0; r < n_rows; r++) {
            if (x->route < 0) {
                add_row(x, 0, in + r * k);
                continue;
            }
            const float *route = c->data[x->route] + (int64_t)r * 2 * x->n_used;
            for (int32_t u = 0; u < x->n_used; u++)
                add_row(x, (int32_t)route[u], x->per_rank ? in + (r * x->n_used + u) * k : in + r * k);
        }
    }
}

static weft_status run_chunk(struct collector *c, const int32_t *tokens, int32_t n, weft_error *err)
{
    weft_status st = WEFT_OK;
    weft__kv_seq_trim(c->seq, 0);
    for (int32_t at = 0, k; at < n && !st; at += k) {
        k = n - at < ROWS ? n - at : ROWS;
        if ((st = weft__kv_seq_reserve(c->seq, k, err))) break;
        weft__graph_batch_clear(&c->batch);
        weft__graph_batch_add_sequence(&c->batch, weft__kv_seq_view(c->seq), NULL);
        for (int32_t i = at; i < at + k; i++)
            weft__graph_batch_add_row(&c->batch, i == 0 && c->bos >= 0 ? c->bos : tokens[i], i, WEFT_WANT_OUTPUTS);
        if ((st = weft__plan_run(c->state, &c->batch.rows, weft__kv_pool_bindings(c->pool), c->data, err))) break;
        weft__kv_seq_advance(c->seq, k);
        accumulate(c, k);
    }
    return st;
}

/* What the vocabulary puts before an empty text. */
static weft_status find_bos(struct collector *c, weft_error *err)
{
    weft__tok_ids ids = {0};
    c->bos = -1;
    if (!c->model->tokenizer) return WEFT_OK;
    weft_status st = weft__tok_encode(c->model->tokenizer->t, "", 0, WEFT__TOK_ENCODE_SPECIAL, &ids, err);
    if (!st && ids.n > 0 && ids.data[0] == weft__tok_id_of_role(c->model->tokenizer->t, WEFT__TOK_ROLE_BOS))
        c->bos = ids.data[0];
    weft__tok_ids_free(&ids);
    return st;
}

/* As floats, both: what the file holds. */
static weft_status write_sums(weft__gguf_writer *w, const struct watched *x, int counts, weft_error *err)
{
    size_t n = counts ? (size_t)x->n_experts : (size_t)x->n_experts * (size_t)x->w->shape.d[0];
    const double *from = counts ? x->counts : x->sums;
    weft_status st = WEFT_OK;
    for (size_t i = 0; i < n && !st; i++) {
        float value = (float)from[i];
        st = weft__gguf_write(w, &value, sizeof value, err);
    }
    return st;
}

static weft_status write_file(const struct collector *c, const weft_imatrix_params *p, int32_t chunk, int32_t n_chunks,
                              const char *out, weft_error *err)
{
    weft__gguf_writer *w = NULL;
    weft__gguf_str dataset = {p->dataset ? p->dataset : "", p->dataset ? strlen(p->dataset) : 0};
    char name[WEFT_NAME_MAX + 16];
    weft_status st;
    if ((st = weft__gguf_writer_create(out, 0, &w, err)) ||
        (st = weft__gguf_put_string(w, "general.type", "imatrix", 7, err)) ||
        (st = weft__gguf_put_strings(w, "imatrix.datasets", &dataset, 1, err)) ||
        (st = weft__gguf_put_u32(w, "imatrix.chunk_count", (uint32_t)n_chunks, err)) ||
        (st = weft__gguf_put_u32(w, "imatrix.chunk_size", (uint32_t)chunk, err)))
        goto done;
    for (int32_t i = 0; i < c->n_watched; i++) {
        const struct watched *x = &c->watched[i];
        uint64_t d[2] = {(uint64_t)x->w->shape.d[0], (uint64_t)x->n_experts}, one[2] = {1, (uint64_t)x->n_experts};
        snprintf(name, sizeof name, "%s.in_sum2", x->w->name);
        if ((st = weft__gguf_declare(w, name, WEFT_F32, 2, d, err))) goto done;
        snprintf(name, sizeof name, "%s.counts", x->w->name);
        if ((st = weft__gguf_declare(w, name, WEFT_F32, 2, one, err))) goto done;
    }
    if ((st = weft__gguf_begin(w, err))) goto done;
    for (int32_t i = 0; i < c->n_watched && !st; i++) {
        st = write_sums(w, &c->watched[i], 0, err);
        if (!st) st = write_sums(w, &c->watched[i], 1, err);
    }
    if (!st) st = weft__gguf_finish(w, err);
done:
    weft__gguf_writer_destroy(&w);
    return st;
}

/* What is no number in the file is of no use to its readers. */
static weft_status check_sums(const struct collector *c, weft_error *err)
{
    for (int32_t i = 0; i < c->n_watched; i++) {
        const struct watched *x = &c->watched[i];
        const int64_t k = x->w->shape.d[0];
        for (int64_t j = 0; j < k * x->n_experts; j++)
            if (!isfinite((float)x->sums[j]))
                return weft_fail(
                    err, WEFT_FORMAT,
                    "what flows into %s is not finite in column %lld, so that it has no importance: are the model's "
                    "weights damaged (NaN)?",
                    x->w->name, (long long)(j % k));
    }
    return WEFT_OK;
}

weft_status weft_imatrix_collect(weft_model *model, const int32_t *tokens, int64_t n, const weft_imatrix_params *params,
                                 const char *out, int32_t *n_chunks, weft_error *err)
{
    weft_imatrix_params own, *p = &own;
    struct collector c = {.model = model};
    const int32_t most = model->hp.n_ctx_max;
    *n_chunks = 0;
    weft_imatrix_params_default(p);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_imatrix_params), p, params, err);
    if (st) return st;
    int32_t chunk = p->chunk > 0 ? p->chunk : DEFAULT_CHUNK < most ? DEFAULT_CHUNK : most;
    if (chunk > most) return weft__engine_model_context(model, chunk, err);
    int64_t total = n / chunk;
    if (p->max_chunks > 0 && total > p->max_chunks) total = p->max_chunks;
    if (total < 1)
        return weft_fail(err, WEFT_ARGUMENT, "%lld tokens are less than one chunk of %d; use a longer text",
                         (long long)n, chunk);
    for (int64_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= model->hp.n_vocab)
            return weft_fail(err, WEFT_ARGUMENT, "token %d is not in the vocabulary", tokens[i]);
    st = weft__out_file_check(out, err); /* before the work */
    if (!st) st = find_bos(&c, err);
    if (!st) st = imatrix_collect_prepare(&c, chunk, p, err);
    for (int64_t i = 0; i < total && !st; i++) {
        st = run_chunk(&c, tokens + i * chunk, chunk, err);
        if (!st && p->progress && p->progress(p->progress_arg, "importance matrix", (double)(i + 1) / (double)total))
            st = weft_fail(err, WEFT_CANCELLED, "cancelled");
        if (!st) *n_chunks = (int32_t)(i + 1);
    }
    if (!st) st = check_sums(&c, err);
    if (!st) st = write_file(&c, p, chunk, *n_chunks, out, err);
    collector_free(&c);
    return st;
}
