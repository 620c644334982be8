// SPDX-License-Identifier: Apache-2.0
/* profile.c: what a step costs, and the record of profiled steps, for programs that embed the engine. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "engine/handles.h"

weft_status weft_model_step_cost(const weft_model *m, int32_t n_seqs, int32_t n_past, int32_t n_rows, int32_t n_wanted,
                                 uint32_t kv_dtype, weft_step_cost *filled, weft_error *err)
{
    weft_step_cost own = {.size = sizeof own}, *out = &own;
    if (n_seqs < 1 || n_past < 0 || n_rows < 1 || n_wanted < 0 || (int64_t)n_seqs * n_rows > INT32_MAX ||
        n_wanted > n_seqs * n_rows || n_past > INT32_MAX - n_rows)
        return weft_fail(err, WEFT_ARGUMENT,
                         "a step of %d sequences, %d rows each behind %d tokens, %d of all rows wanted", n_seqs, n_rows,
                         n_past, n_wanted);
    const weft_graph *g = weft__plan_graph(m->plan);
    weft__graph_seq_rows *seqs = weft__alloc_array((size_t)n_seqs, sizeof *seqs);
    if (!seqs) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %d sequences", n_seqs);
    for (int32_t i = 0; i < n_seqs; i++)
        seqs[i] = (weft__graph_seq_rows){n_past, n_rows, n_wanted / n_seqs + (i < n_wanted % n_seqs)};
    weft__graph_load load = {n_seqs * n_rows, n_wanted, n_seqs, seqs, kv_dtype, 0};
    for (int32_t i = 0; i < g->n_nodes; i++) {
        weft__graph_cost c = weft__graph_node_cost(g, i, &load);
        out->weight_bytes += c.weight_bytes;
        out->kv_bytes += c.kv_bytes;
        out->int8_ops += c.int8_ops;
        out->bf16_ops += c.bf16_ops;
        out->f32_ops += c.f32_ops;
        out->attention_ops += c.attention_ops;
    }
    weft__free(seqs);
    return weft__params_write(WEFT__PARAMS_TYPE(weft_step_cost), filled, out, err);
}

static weft_status begin_profile(weft_model *m, int counts, weft_error *err)
{
    pthread_mutex_lock(&m->profiling);
    weft_status st = m->profile ? WEFT_OK : weft__profile_new(m->plan, &m->profile, err);
    if (!st) st = weft__profile_count(m->profile, counts, NULL, err);
    if (!st) atomic_store(&m->profiled, 1);
    pthread_mutex_unlock(&m->profiling);
    return st;
}

weft_status weft_model_profile_start(weft_model *m, weft_error *err)
{
    return begin_profile(m, 0, err);
}

weft_status weft_model_profile_start_counting(weft_model *m, weft_error *err)
{
    return begin_profile(m, 1, err);
}

void weft_model_profile_stop(weft_model *m)
{
    pthread_mutex_lock(&m->profiling);
    atomic_store(&m->profiled, 0);
    pthread_mutex_unlock(&m->profiling);
}

int32_t weft_model_profile_n_steps(const weft_model *m)
{
    const weft__profile *f = m->profile;
    return f ? f->n_steps : 0;
}

weft_status weft_model_profile_step(const weft_model *m, int32_t index, weft_profile_step *out, weft_error *err)
{
    const weft__profile *f = m->profile;
    if (!f || index < 0 || index >= f->n_steps)
        return weft_fail(err, WEFT_NOT_FOUND, "step %d of a profile of %d", index, f ? f->n_steps : 0);
    const weft__profile_step *s = &f->steps[index];
    const weft_profile_step own = {.size = sizeof own,
                                   .n_rows = s->n_rows,
                                   .n_wanted = s->n_wanted,
                                   .first_op = s->first,
                                   .n_ops = s->n,
                                   .begin_ns = s->begin_ns,
                                   .end_ns = s->end_ns};
    return weft__params_write(WEFT__PARAMS_TYPE(weft_profile_step), out, &own, err);
}

/* The type of a node's first matrix. */
static const char *type_of(const weft_graph *g, const weft_node *n)
{
    int has = (n->op == WEFT_OP_LINEAR || n->op == WEFT_OP_MOE_FFN || n->op == WEFT_OP_EMBED) && n->n_w > 0;
    return has ? weft_dtype_describe(g->weights[n->w[0]].dtype).name : "";
}

/* "blk.12.ffn_up.weight" is "ffn_up". */
static void short_name(const char *name, char out[WEFT_NAME_MAX])
{
    const char *dot = strncmp(name, "blk.", 4) ? NULL : strchr(name + 4, '.');
    snprintf(out, WEFT_NAME_MAX, "%s", dot ? dot + 1 : name);
    char *end = strrchr(out, '.');
    if (end && !strcmp(end, ".weight")) *end = 0;
}

static void name_node(const weft_graph *g, const weft_node *n, char *out, size_t size)
{
    char part[WEFT_NAME_MAX], before[WEFT_NAME_MAX] = "";
    size_t at = 0;
    for (int i = 0; i < n->n_w && at < size; i++) {
        if (n->w[i] == WEFT_NONE) continue;
        short_name(g->weights[n->w[i]].name, part);
        if (!strcmp(part, before)) continue; /* row ranges of one tensor */
        at += (size_t)snprintf(out + at, size - at, "%s%s", at ? "+" : "", part);
        memcpy(before, part, sizeof before);
    }
    if (at > 0) return;
    short_name(g->tensors[n->out[0]].name, part);
    snprintf(out, size, "%s", part);
}

weft_status weft_model_profile_op(const weft_model *m, int32_t index, weft_profile_op *out, weft_error *err)
{
    const weft__profile *f = m->profile;
    const weft_graph *g = weft__plan_graph(m->plan);
    if (!f || index < 0 || index >= f->n_ops)
        return weft_fail(err, WEFT_NOT_FOUND, "op %d of a profile of %d", index, f ? f->n_ops : 0);
    const weft__profile_op *o = &f->ops[index];
    weft_profile_op own = {.size = sizeof own,
                           .layer = -1,
                           .step = o->step,
                           .op = "positions",
                           .type = "",
                           .name = "positions",
                           .begin_ns = o->begin_ns,
                           .done_ns = o->done_ns,
                           .end_ns = o->end_ns,
                           .bytes = o->bytes,
                           .ops = o->ops};
    if (o->node != WEFT_NONE) {
        const weft_node *n = &g->nodes[o->node];
        own.layer = n->layer;
        own.op = weft_op_name(n->op);
        name_node(g, n, own.name, sizeof own.name);
        own.type = type_of(g, n);
    }
    return weft__params_write(WEFT__PARAMS_TYPE(weft_profile_op), out, &own, err);
}

weft_status weft_model_profile_count(const weft_model *m, int32_t op, int32_t index, weft_profile_count *out,
                                     weft_error *err)
{
    const weft__profile *f = m->profile;
    if (!f || !f->counters || op < 0 || op >= f->n_ops || !weft__counter_name(index))
        return weft_fail(err, WEFT_NOT_FOUND, "counter %d of op %d: %s", index, op,
                         f && f->counters ? "there is no such one" : "the profile was not counted");
    const weft__counts *c = &f->counts[op];
    weft_profile_count own = {
        .size = sizeof own, .name = weft__counter_name(index), .absent = weft__counters_absent(f->counters, index)};
    const int group = weft__counter_group(index);
    if (!own.absent) own.n = c->n[index];
    if (!own.absent && group >= 0) {
        own.enabled_ns = c->enabled_ns[group];
        own.running_ns = c->running_ns[group];
    }
    return weft__params_write(WEFT__PARAMS_TYPE(weft_profile_count), out, &own, err);
}
