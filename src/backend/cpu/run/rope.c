// SPDX-License-Identifier: Apache-2.0
/* rope.c: rotary position embedding, and keys and values on their way into pages.
 *
 * Angles are computed in double, once per step for every distinct configuration: a layer only multiplies. */
#include <math.h>
#include <string.h>

#include "backend/cpu/program.h"
#include "graph/attr/rope.h"

/* ---- configurations ---- */

static int same_rope(const weft_attr_rope *a, const weft_attr_rope *b)
{
    return a->n_rot == b->n_rot && a->base == b->base && a->freq_scale == b->freq_scale &&
           a->ext_factor == b->ext_factor && a->attn_factor == b->attn_factor && a->beta_fast == b->beta_fast &&
           a->beta_slow == b->beta_slow && a->n_ctx_orig == b->n_ctx_orig;
}

/* The program's entry for a configuration; NULL when memory runs out. */
static const weft__cpu_rope *rope_of(weft_program *p, const weft_attr_rope *a, weft_weight_id factors)
{
    int failed = 0;
    for (int32_t i = 0; i < p->n_ropes; i++)
        if (p->ropes[i].factors == factors && same_rope(&p->ropes[i].attr, a)) return &p->ropes[i];
    const float *f = weft__cpu_vector(p, factors, &failed);
    size_t pairs = (size_t)a->n_rot / 2;
    double *freq = weft__cpu_own(&p->owned, pairs, sizeof *freq);
    if (failed || !freq) return NULL;
    weft__graph_rope_frequencies(a, f, freq);
    weft__cpu_rope *r = &p->ropes[p->n_ropes++];
    *r = (weft__cpu_rope){*a, factors, freq, p->needs.cs};
    p->needs.cs += (size_t)p->segment->max_rows * pairs * 2;
    return r;
}

void weft__cpu_rope_tables(weft_run *run, const weft__cpu_step *s, int thread)
{
    (void)s;
    int64_t n = run->rows->n_rows, last = weft__cpu_share(n, thread + 1, run->n_threads);
    for (int32_t i = 0; i < run->program->n_ropes; i++) {
        const weft__cpu_rope *rope = &run->program->ropes[i];
        int pairs = rope->attr.n_rot / 2;
        for (int64_t r = weft__cpu_share(n, thread, run->n_threads); r < last; r++) {
            float *cs = run->cs + rope->cs_at + r * pairs * 2;
            for (int j = 0; j < pairs; j++) {
                double angle = run->rows->pos[r] * rope->freq[j];
                cs[2 * j] = (float)(cos(angle) * rope->attr.attn_factor);
                cs[2 * j + 1] = (float)(sin(angle) * rope->attr.attn_factor);
            }
        }
    }
}

/* y = heads [first, last) of row r of x [R][n_heads * head_dim], rotated; y and x begin at those heads. */
static void rotate(const weft_run *run, const weft__cpu_rope *rope, const weft_attr_rope *a, int64_t r, int64_t first,
                   int64_t last, const float *x, float *y)
{
    memcpy(y, x, (size_t)((last - first) * a->head_dim) * sizeof *y);
    run->k->rope(y, (int)(last - first), a->head_dim, a->n_rot, a->style, run->cs + rope->cs_at + r * a->n_rot);
}

static void run_rope(weft_run *run, const weft__cpu_step *s, int thread)
{
    const weft_attr_rope *a = &s->node->attr.rope;
    int64_t heads = a->n_heads, n = (int64_t)run->rows->n_rows * heads;
    int64_t u = weft__cpu_share(n, thread, run->n_threads), last = weft__cpu_share(n, thread + 1, run->n_threads);
    while (u < last) {
        int64_t r = u / heads, first = u % heads, end = last - r * heads < heads ? last - r * heads : heads;
        rotate(run, s->data, a, r, first, end, run->data[s->node->in[0]] + u * a->head_dim,
               run->data[s->node->out[0]] + u * a->head_dim);
        u += end - first;
    }
}

/* ---- pages ---- */

/* Stores key and value of key/value head h of row r. */
static void put_head(weft_run *run, const weft__cpu_step *s, weft__cpu_thread *th, int64_t r, int64_t h)
{
    const weft__cpu_kv *kv = s->data;
    const weft_kv_group *g = kv->group;
    const int32_t seq = run->rows->seq[r], pos = run->rows->pos[r], slot = pos & (g->page_tokens - 1);
    const weft_kv_binding *b = weft__cpu_pages(run, kv->kv.group, seq);
    int32_t page = run->rows->seqs[seq].pages[kv->kv.group][pos / g->page_tokens];
    const uint32_t format_k = weft_kv_format_of(b->dtype, g, kv->kv.layer, 0),
                   format_v = weft_kv_format_of(b->dtype, g, kv->kv.layer, 1);
    const uint64_t k_bytes = weft_kv_part_bytes(format_k, g, 0), v_bytes = weft_kv_part_bytes(format_v, g, 1);
    uint8_t *base = (uint8_t *)b->data + (uint64_t)page * b->page_bytes + weft_kv_layer_at(b->dtype, g, kv->kv.layer);
    const float *k = run->data[kv->k] + (r * g->n_kv_heads + h) * g->head_dim_k;
    const float *v = run->data[kv->v] + (r * g->n_kv_heads + h) * g->head_dim_v;
    if (kv->rope) {
        rotate(run, kv->rope, &s->node->attr.rope_kv.k, r, h, h + 1, k, th->row);
        k = th->row;
    }
    void (*put_k)(const float *, int, int, int, uint32_t, void *) =
        weft_kv_is_coded(format_k) ? run->k->kv_code_k : run->k->kv_put_k;
    void (*put_v)(const float *, int, int, int, uint32_t, void *) =
        weft_kv_is_coded(format_v) ? run->k->kv_code_v : run->k->kv_put_v;
    put_k(k, g->head_dim_k, slot, g->page_tokens, format_k, base + (uint64_t)h * k_bytes);
    put_v(v, g->head_dim_v, slot, g->page_tokens, format_v,
          base + (uint64_t)g->n_kv_heads * k_bytes + (uint64_t)h * v_bytes);
}

/* Work units of a row: first the heads of q, then the key/value heads. */
static void run_kv(weft_run *run, const weft__cpu_step *s, int thread)
{
    const weft__cpu_kv *kv = s->data;
    weft__cpu_thread *th = &run->threads[thread];
    int64_t per_row = kv->n_heads + kv->group->n_kv_heads, n = (int64_t)run->rows->n_rows * per_row;
    int64_t u = weft__cpu_share(n, thread, run->n_threads), last = weft__cpu_share(n, thread + 1, run->n_threads);
    while (u < last) {
        int64_t r = u / per_row, first = u % per_row, end = last - r * per_row < per_row ? last - r * per_row : per_row;
        u += end - first;
        if (first < kv->n_heads) {
            const weft_attr_rope *a = &s->node->attr.rope_kv.q;
            int64_t q_end = end < kv->n_heads ? end : kv->n_heads, at = (r * kv->n_heads + first) * a->head_dim;
            rotate(run, kv->rope, a, r, first, q_end, run->data[kv->q] + at, run->data[kv->q_out] + at);
            first = q_end;
        }
        for (int64_t h = first; h < end; h++) put_head(run, s, th, r, h - kv->n_heads);
    }
}

/* ---- building ---- */

static weft_status build_kv(weft_program *p, weft__cpu_step *s, weft_error *err)
{
    const weft_node *n = s->node;
    int fused = n->op == WEFT_OP_ROPE_KV;
    weft__cpu_kv *kv = weft__cpu_own(&p->owned, 1, sizeof *kv);
    const weft__cpu_rope *rope = kv && fused ? rope_of(p, &n->attr.rope_kv.q, n->w[0]) : NULL;
    if (!kv || (fused && !rope))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for %s", p->graph->tensors[n->out[0]].name);
    *kv =
        (weft__cpu_kv){.rope = rope, .kv = fused ? n->attr.rope_kv.kv : n->attr.kv, .q = WEFT_NONE, .q_out = WEFT_NONE};
    kv->k = n->in[fused ? 1 : 0];
    kv->v = n->in[fused ? 2 : 1];
    if (fused) {
        kv->n_heads = n->attr.rope_kv.q.n_heads;
        kv->q = n->in[0];
        kv->q_out = n->out[0];
    }
    kv->group = &p->graph->kv_groups[kv->kv.group];
    p->uses_group[kv->kv.group] |= 1;
    weft__cpu_need(&p->needs.row, (size_t)kv->group->head_dim_k * sizeof(float));
    s->run = run_kv;
    s->data = kv;
    return WEFT_OK;
}

weft_status weft__cpu_build_positions(weft_program *p, weft__cpu_step *s, weft_error *err)
{
    if (s->node->op != WEFT_OP_ROPE) return build_kv(p, s, err);
    s->data = rope_of(p, &s->node->attr.rope, s->node->w[0]);
    s->run = run_rope;
    return s->data ? WEFT_OK
                   : weft_fail(err, WEFT_NO_MEMORY, "no memory for %s", p->graph->tensors[s->node->out[0]].name);
}
