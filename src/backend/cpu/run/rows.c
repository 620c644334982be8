// SPDX-License-Identifier: Apache-2.0
/* rows.c: steps whose rows have nothing to do with each other: embedding, norms, elementwise ops, picking rows. */
#include <math.h>
#include <string.h>

#include "backend/cpu/adapter/adapter.h"

enum { BLOCK = 256 }; /* elements: rows are split between threads at multiples of it */

static const float *in(const weft_run *run, const weft__cpu_step *s, int i)
{
    return run->data[s->node->in[i]];
}

static float *out(const weft_run *run, const weft__cpu_step *s)
{
    return run->data[s->node->out[0]];
}

static int64_t width_of(const weft_program *p, const weft__cpu_step *s)
{
    return p->graph->tensors[s->node->out[0]].shape.d[0];
}

/* ---- embedding, picking ---- */

static void run_embed(weft_run *run, const weft__cpu_step *s, int thread)
{
    const weft_weight *w = &run->program->graph->weights[s->node->w[0]];
    const weft_rows *rows = run->rows;
    float scale = s->node->attr.embed.scale;
    int64_t d = width_of(run->program, s), last = weft__cpu_share(rows->n_rows, thread + 1, run->n_threads);
    for (int64_t r = weft__cpu_share(rows->n_rows, thread, run->n_threads); r < last; r++) {
        float *y = out(run, s) + r * d;
        if (rows->token && rows->token[r] != WEFT_NONE) {
            const weft_adapter *a = weft__cpu_adapter_of(run, WEFT_ROWS, r);
            run->k->decode_row(
                w->dtype, (const uint8_t *)w->buffer->data + w->offset + (uint64_t)rows->token[r] * w->row_bytes, d, y);
            if (a) weft__cpu_expand_embedding(run, thread, a, s->node->w[0], rows->token[r], d, y);
        } else {
            memcpy(y, rows->embd + r * d, (size_t)d * sizeof *y);
        }
        if (scale != 1.0f) run->k->scale(y, scale, d, y);
    }
}

static void run_pick_rows(weft_run *run, const weft__cpu_step *s, int thread)
{
    int64_t d = width_of(run->program, s), n = run->rows->n_wanted,
            last = weft__cpu_share(n, thread + 1, run->n_threads);
    const int moved = run->moved && s > run->program->gather;
    for (int64_t i = weft__cpu_share(n, thread, run->n_threads); i < last; i++)
        memcpy(out(run, s) + i * d, in(run, s, 0) + (moved ? i : run->wanted[i]) * d, (size_t)d * sizeof(float));
}

/* ---- norms ---- */

/* Layer normalisation (Ba et al. 2016); sums in double. */
static void norm_layer(const float *x, const weft__cpu_norm *w, float eps, int64_t n, float *y)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    double inverse = 1 / sqrt(squares / (double)n + eps);
    for (int64_t i = 0; i < n; i++)
        y[i] = (float)((x[i] - mean) * inverse) * (w->w ? w->w[i] : 1.0f) + (w->b ? w->b[i] : 0.0f);
}

static void run_norm(weft_run *run, const weft__cpu_step *s, int thread)
{
    const weft__cpu_norm *w = s->data;
    const weft_attr_norm *a = &s->node->attr.norm;
    int64_t n = weft__cpu_rows(run, s) * (width_of(run->program, s) / w->group),
            last = weft__cpu_share(n, thread + 1, run->n_threads);
    for (int64_t i = weft__cpu_share(n, thread, run->n_threads); i < last; i++) {
        const float *x = in(run, s, 0) + i * w->group;
        float *y = out(run, s) + i * w->group;
        if (a->kind == WEFT_NORM_LAYER) norm_layer(x, w, a->eps, w->group, y);
        else run->k->norm_rms(x, w->w, a->eps, w->group, y);
    }
}

static weft_status build_norm(weft_program *p, weft__cpu_step *s, weft_error *err)
{
    int failed = 0;
    weft__cpu_norm *w = weft__cpu_own(&p->owned, 1, sizeof *w);
    if (w) {
        w->group = s->node->attr.norm.group > 0 ? s->node->attr.norm.group : width_of(p, s);
        w->w = weft__cpu_vector(p, s->node->w[0], &failed);
        if (s->node->n_w > 1) w->b = weft__cpu_vector(p, s->node->w[1], &failed);
    }
    if (!w || failed)
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for %s", p->graph->tensors[s->node->out[0]].name);
    s->run = run_norm;
    s->data = w;
    return WEFT_OK;
}

/* ---- elementwise ---- */

typedef void (*element_fn)(const weft_run *run, const weft_node *n, const float *a, const float *b, int64_t count,
                           float *y);

static void do_glu(const weft_run *run, const weft_node *n, const float *a, const float *b, int64_t count, float *y)
{
    run->k->glu(n->attr.glu.activation, a, b, count, y);
}

static void do_add(const weft_run *run, const weft_node *n, const float *a, const float *b, int64_t count, float *y)
{
    (void)n;
    run->k->add(a, b, count, y);
}

static void do_softcap(const weft_run *run, const weft_node *n, const float *a, const float *b, int64_t count, float *y)
{
    (void)b;
    run->k->softcap(a, n->attr.softcap.cap, count, y);
}

static element_fn element_of(uint32_t op)
{
    switch (op) {
    case WEFT_OP_GLU: return do_glu;
    case WEFT_OP_ADD: return do_add;
    default: return do_softcap;
    }
}

/* Rows in blocks of columns, so that a single row also keeps all threads busy. */
static void run_elementwise(weft_run *run, const weft__cpu_step *s, int thread)
{
    element_fn f = element_of(s->node->op);
    int64_t width = width_of(run->program, s), per_row = (width + BLOCK - 1) / BLOCK,
            n = weft__cpu_rows(run, s) * per_row;
    int64_t u = weft__cpu_share(n, thread, run->n_threads), last = weft__cpu_share(n, thread + 1, run->n_threads);
    while (u < last) {
        int64_t row = u / per_row, first_block = u % per_row, n_blocks = per_row - first_block;
        if (n_blocks > last - u) n_blocks = last - u;
        int64_t from = first_block * BLOCK, to = (first_block + n_blocks) * BLOCK;
        if (to > width) to = width;
        int64_t at = row * width + from;
        f(run, s->node, in(run, s, 0) + at, s->node->n_in > 1 ? in(run, s, 1) + at : NULL, to - from, out(run, s) + at);
        u += n_blocks;
    }
}

weft_status weft__cpu_build_rows(weft_program *p, weft__cpu_step *s, weft_error *err)
{
    switch (s->node->op) {
    case WEFT_OP_EMBED: {
        int64_t vocab = p->graph->weights[s->node->w[0]].shape.d[1];
        if (p->vocab == 0 || vocab < p->vocab) p->vocab = vocab;
        weft__cpu_need_gathered(p, WEFT_ADAPTER_RANK_MAX);
        s->run = run_embed;
        return WEFT_OK;
    }
    case WEFT_OP_NORM: return build_norm(p, s, err);
    case WEFT_OP_PICK_ROWS: s->run = run_pick_rows; return WEFT_OK;
    default: s->run = run_elementwise; return WEFT_OK;
    }
}
