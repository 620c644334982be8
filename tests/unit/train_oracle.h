// SPDX-License-Identifier: Apache-2.0
/* train_oracle.h: the loss of a batch in double precision, by walking the model's graph one number at a time: what
 * gradients are held against. It shares nothing with the trainer but the graph and the names of its parameters. */
#ifndef WEFT_TESTS_TRAIN_ORACLE_H
#define WEFT_TESTS_TRAIN_ORACLE_H

#include <math.h>

#include "train/params.h"

/* Of one thread, over values of its own: the thread sanitizer has nothing to see in these loops. */
#define ORACLE_ALONE __attribute__((no_sanitize("thread")))

typedef struct oracle {
    const weft__trainer *t;
    const weft__train_batch *b;
    double **param;  /* [n_params] values, which a test moves */
    double **frozen; /* [n_weights] of the graph: those that do not learn, else NULL */
    double **value;  /* [n_tensors] */
    int64_t *wanted, n_wanted;
    int64_t *pos;
    int adapter_on;
    double *logp; /* [R] */
} oracle;

static double *oracle_floats(size_t n)
{
    double *p = weft__alloc_zero(n, sizeof *p);
    assert_non_null(p);
    return p;
}

static void oracle_init(oracle *o, const weft__trainer *t, const weft__train_batch *b)
{
    const weft_graph *g = t->graph;
    *o = (oracle){.t = t, .b = b, .adapter_on = 1};
    o->param = weft__alloc_zero((size_t)t->n_params, sizeof *o->param);
    o->frozen = weft__alloc_zero((size_t)g->n_weights, sizeof *o->frozen);
    o->value = weft__alloc_zero((size_t)g->n_tensors, sizeof *o->value);
    o->wanted = weft__alloc_zero((size_t)b->n_rows, sizeof *o->wanted);
    o->pos = weft__alloc_zero((size_t)b->n_rows, sizeof *o->pos);
    o->logp = oracle_floats((size_t)b->n_rows);
    for (int32_t i = 0; i < t->n_params; i++) {
        o->param[i] = oracle_floats((size_t)t->params[i].n);
        for (int64_t j = 0; j < t->params[i].n; j++) o->param[i][j] = (double)t->params[i].data[j];
    }
    for (int32_t i = 0; i < g->n_weights; i++) {
        const weft_weight *w = &g->weights[i];
        if (weft__train_param_find(t, w->name) >= 0) continue;
        int64_t k = w->shape.d[0], n = w->shape.d[1];
        float row[1024];
        o->frozen[i] = oracle_floats((size_t)(k * n));
        for (int64_t r = 0; r < n; r++) {
            weft__quant_decode_row(w->dtype, (const uint8_t *)w->buffer->data + w->offset + (uint64_t)r * w->row_bytes,
                                   row, k);
            for (int64_t j = 0; j < k; j++) o->frozen[i][r * k + j] = (double)row[j];
        }
    }
    for (int32_t i = 0; i < g->n_tensors; i++)
        o->value[i] = oracle_floats((size_t)(g->tensors[i].shape.d[0] * b->n_rows) + 1);
    for (int32_t r = 0; r < b->n_rows; r++) {
        o->pos[r] = r && b->segment[r] == b->segment[r - 1] ? o->pos[r - 1] + 1 : 0;
        if (b->target[r] >= 0) o->wanted[o->n_wanted++] = r;
    }
}

static void oracle_free(oracle *o)
{
    for (int32_t i = 0; i < o->t->graph->n_tensors; i++) weft__free(o->value[i]);
    for (int32_t i = 0; i < o->t->graph->n_weights; i++) weft__free(o->frozen[i]);
    for (int32_t i = 0; i < o->t->n_params; i++) weft__free(o->param[i]);
    weft__free(o->logp);
    weft__free(o->pos);
    weft__free(o->wanted);
    weft__free(o->value);
    weft__free(o->frozen);
    weft__free(o->param);
}

static const double *oracle_weight(const oracle *o, weft_weight_id w)
{
    if (w == WEFT_NONE) return NULL;
    if (o->frozen[w]) return o->frozen[w];
    return o->param[weft__train_param_find(o->t, o->t->graph->weights[w].name)] +
           weft__train_param_row(o->t, w) * o->t->graph->weights[w].shape.d[0];
}

ORACLE_ALONE static void oracle_linear(const oracle *o, const weft_node *n, int64_t rows)
{
    const weft_weight *w = &o->t->graph->weights[n->w[0]];
    int64_t k = w->shape.d[0], out = w->shape.d[1], rank = o->t->o.lora_rank;
    int32_t pair = o->adapter_on ? weft__train_lora_of(o->t, n) : -1;
    const double *m = oracle_weight(o, n->w[0]), *bias = oracle_weight(o, n->attr.linear.bias[0]);
    const double *a = pair >= 0 ? o->param[o->t->pairs[pair].a] : NULL;
    const double *b = pair >= 0 ? o->param[o->t->pairs[pair].b] + weft__train_param_row(o->t, n->w[0]) * rank : NULL;
    for (int64_t r = 0; r < rows; r++) {
        const double *x = o->value[n->in[0]] + r * k;
        double shrunk[64], *y = o->value[n->out[0]] + r * out;
        for (int64_t i = 0; a && i < rank; i++) {
            shrunk[i] = 0;
            for (int64_t j = 0; j < k; j++) shrunk[i] += (double)o->t->lora_scale * a[i * k + j] * x[j];
        }
        for (int64_t i = 0; i < out; i++) {
            const double *row = m + i * k;
            double sum = bias ? bias[i] : 0;
            for (int64_t j = 0; j < k; j++) sum += row[j] * x[j];
            for (int64_t j = 0; a && j < rank; j++) sum += b[i * rank + j] * shrunk[j];
            y[i] = sum;
        }
    }
}

static void oracle_norm(const oracle *o, const weft_node *n, int64_t rows)
{
    int64_t width = weft__train_width(o->t, n->out[0]), group = n->attr.norm.group ? n->attr.norm.group : width;
    const double *w = oracle_weight(o, n->w[0]);
    for (int64_t i = 0; i < rows * width; i += group) {
        double sum = 0;
        for (int64_t j = 0; j < group; j++) sum += o->value[n->in[0]][i + j] * o->value[n->in[0]][i + j];
        double inverse = 1 / sqrt(sum / (double)group + (double)n->attr.norm.eps);
        for (int64_t j = 0; j < group; j++) o->value[n->out[0]][i + j] = o->value[n->in[0]][i + j] * inverse * w[j];
    }
}

static void oracle_rope(const oracle *o, const weft_node *n, int64_t rows)
{
    const weft_attr_rope *a = &n->attr.rope;
    int64_t width = weft__train_width(o->t, n->out[0]);
    memcpy(o->value[n->out[0]], o->value[n->in[0]], (size_t)(rows * width) * sizeof(double));
    for (int64_t r = 0; r < rows; r++) {
        for (int h = 0; h < a->n_heads; h++) {
            double *x = o->value[n->out[0]] + r * width + h * a->head_dim;
            for (int i = 0; i < a->n_rot / 2; i++) {
                int p = a->style == WEFT_ROPE_ADJACENT ? 2 * i : i,
                    q = a->style == WEFT_ROPE_ADJACENT ? 2 * i + 1 : i + a->n_rot / 2;
                double angle = (double)o->pos[r] * (double)a->freq_scale * pow((double)a->base, -2.0 * i / a->n_rot),
                       c = cos(angle), s = sin(angle);
                double u = x[p], v = x[q];
                x[p] = u * c - v * s;
                x[q] = u * s + v * c;
            }
        }
    }
}

ORACLE_ALONE static void oracle_attention(const oracle *o, const weft_node *n)
{
    const weft_attr_attention *a = &n->attr.attention;
    const weft_node *kv = NULL;
    for (int32_t i = 0; i < o->t->graph->n_nodes; i++)
        if (o->t->graph->nodes[i].op == WEFT_OP_KV_WRITE && o->t->graph->nodes[i].out[0] == n->in[1])
            kv = &o->t->graph->nodes[i];
    int64_t dim = a->head_dim_k, shared = a->n_heads / a->n_kv_heads;
    for (int64_t r = 0; r < o->b->n_rows; r++) {
        for (int64_t h = 0; h < a->n_heads; h++) {
            double s[TINY_ROWS], sum = 0, *y = o->value[n->out[0]] + (r * a->n_heads + h) * dim;
            int64_t first = r - o->pos[r];
            if (a->window > 0 && r - a->window + 1 > first) first = r - a->window + 1;
            memset(y, 0, (size_t)dim * sizeof *y);
            for (int64_t c = first; c <= r; c++) {
                const double *q = o->value[n->in[0]] + (r * a->n_heads + h) * dim,
                             *k = o->value[kv->in[0]] + (c * a->n_kv_heads + h / shared) * dim;
                double dot = 0;
                for (int64_t i = 0; i < dim; i++) dot += q[i] * k[i];
                dot *= (double)a->scale;
                if (a->softcap != 0) dot = (double)a->softcap * tanh(dot / (double)a->softcap);
                s[c - first] = exp(dot);
                sum += s[c - first];
            }
            for (int64_t c = first; c <= r; c++) {
                const double *v = o->value[kv->in[1]] + (c * a->n_kv_heads + h / shared) * dim, p = s[c - first] / sum;
                for (int64_t i = 0; i < dim; i++) y[i] += p * v[i];
            }
        }
    }
}

static double oracle_act(int act, double x)
{
    if (act == WEFT_ACT_SILU) return x / (1 + exp(-x));
    if (act == WEFT_ACT_GELU_TANH) return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    return act == WEFT_ACT_GELU_ERF ? 0.5 * x * erfc(-x / sqrt(2)) : x;
}

static void oracle_simple(const oracle *o, const weft_node *n, int64_t rows)
{
    int64_t width = weft__train_width(o->t, n->out[0]);
    const double *x = n->n_in > 0 ? o->value[n->in[0]] : NULL, *z = n->n_in > 1 ? o->value[n->in[1]] : NULL;
    for (int64_t i = 0; i < rows * width; i++) {
        double *y = &o->value[n->out[0]][i];
        if (n->op == WEFT_OP_EMBED)
            *y = oracle_weight(o, n->w[0])[o->b->token[i / width] * width + i % width] * (double)n->attr.embed.scale;
        if (n->op == WEFT_OP_GLU) *y = oracle_act(n->attr.glu.activation, x[i]) * z[i];
        if (n->op == WEFT_OP_ADD) *y = x[i] + z[i];
        if (n->op == WEFT_OP_SOFTCAP) *y = (double)n->attr.softcap.cap * tanh(x[i] / (double)n->attr.softcap.cap);
        if (n->op == WEFT_OP_PICK_ROWS) *y = x[o->wanted[i / width] * width + i % width];
    }
}

/* The sum of weight * -log p, or of |weight| * -log(1 - p) where it is below 0; logp receives each row's. */
static double oracle_loss(oracle *o)
{
    const weft_graph *g = o->t->graph;
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const weft_node *n = &g->nodes[i];
        int64_t rows = g->tensors[n->out[0]].shape.d[1] == WEFT_WANTED ? o->n_wanted : o->b->n_rows;
        if (n->op == WEFT_OP_LINEAR) oracle_linear(o, n, rows);
        else if (n->op == WEFT_OP_NORM) oracle_norm(o, n, rows);
        else if (n->op == WEFT_OP_ROPE) oracle_rope(o, n, rows);
        else if (n->op == WEFT_OP_ATTENTION) oracle_attention(o, n);
        else if (n->op != WEFT_OP_KV_WRITE) oracle_simple(o, n, rows);
    }
    double loss = 0;
    int64_t width = weft__train_width(o->t, g->outputs[0]);
    for (int64_t i = 0; i < o->n_wanted; i++) {
        const double *x = o->value[g->outputs[0]] + i * width;
        double sum = 0;
        for (int64_t j = 0; j < width; j++) sum += exp(x[j]);
        int64_t r = o->wanted[i];
        o->logp[r] = x[o->b->target[r]] - log(sum);
        const double w = o->b->weight ? (double)o->b->weight[r] : 1;
        loss += w >= 0 ? -w * o->logp[r] : w * log(1 - exp(o->logp[r]));
    }
    return loss;
}

/* (loss at p + h d - loss at p - h d) / 2h along a random direction of each parameter, against the trainer's
 * gradient. */
static inline void oracle_differences(const weft__trainer *t, oracle *o, double (*loss)(oracle *o, const void *arg),
                                      const void *arg, const char *what)
{
    static const double step = 1e-5;
    weft__rng rng;
    weft__rng_seed(&rng, 3);
    for (int32_t p = 0; p < t->n_params; p++) {
        const struct weft__trainer_weight *param = &t->params[p];
        double *d = oracle_floats((size_t)param->n), norm = 0, along = 0, at[2];
        for (int64_t i = 0; i < param->n; i++) {
            norm += (double)param->grad[i] * (double)param->grad[i];
            d[i] = (weft__rng_below(&rng, 2) ? 1 : -1) / sqrt((double)param->n);
            along += d[i] * (double)param->grad[i];
        }
        for (int side = 0; side < 2; side++) {
            const double h = side ? -step : step;
            for (int64_t i = 0; i < param->n; i++) o->param[p][i] += h * d[i];
            at[side] = loss(o, arg);
            for (int64_t i = 0; i < param->n; i++) o->param[p][i] -= h * d[i];
        }
        const double want = (at[0] - at[1]) / (2 * step);
        if (!(fabs(along - want) <= 3e-5 * sqrt(norm) + 1e-7))
            fail_msg("%s, %s: %.9g, finite differences give %.9g (length %.3g)", what, param->name, along, want,
                     sqrt(norm));
        weft__free(d);
    }
}

#endif
