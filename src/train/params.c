// SPDX-License-Identifier: Apache-2.0
/* params.c: what learns: all weights of a model, or LoRA pairs on some of its matrices. */
#include "train/params.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "mem/mem.h"
#include "train/optimizer.h"

int32_t weft__train_param_find(const weft__trainer *t, const char *name)
{
    for (int32_t i = 0; i < t->n_params; i++)
        if (!strcmp(t->params[i].name, name)) return i;
    return -1;
}

static void add_param(weft__trainer *t, const char *name, const char *suffix, uint32_t n_dims, int64_t d0, int64_t d1)
{
    struct weft__trainer_weight *p = &t->params[t->n_params++];
    snprintf(p->name, sizeof p->name, "%s%s", name, suffix);
    p->n_dims = n_dims;
    p->d[0] = d0;
    p->d[1] = d1;
    p->n = d0 * d1;
    p->decay = n_dims > 1;
    t->n_floats += p->n;
}

/* The file's tensor behind a weight, of which the weight may be some rows. */
static const weft__tensor_desc *tensor_of(const weft__trainer *t, weft_weight_id w)
{
    return t->src.tensor(&t->src, t->graph->weights[w].name);
}

int64_t weft__train_param_row(const weft__trainer *t, weft_weight_id w)
{
    const weft_weight *weight = &t->graph->weights[w];
    return (int64_t)((weight->offset - tensor_of(t, w)->offset) / weight->row_bytes);
}

static void add_weight(weft__trainer *t, weft_weight_id w)
{
    if (w == WEFT_NONE || weft__train_param_find(t, t->graph->weights[w].name) >= 0) return;
    const weft__tensor_desc *d = tensor_of(t, w);
    add_param(t, d->name, "", d->n_dims, (int64_t)d->d[0], (int64_t)d->d[1]);
}

/* Every weight of an op that multiplies by it; frequencies of rope stay. */
static void all_weights(weft__trainer *t)
{
    for (int32_t i = 0; i < t->graph->n_nodes; i++) {
        const weft_node *n = &t->graph->nodes[i];
        if (n->op != WEFT_OP_EMBED && n->op != WEFT_OP_NORM && n->op != WEFT_OP_LINEAR) continue;
        add_weight(t, n->w[0]);
        if (n->op == WEFT_OP_LINEAR) add_weight(t, n->attr.linear.bias[0]);
    }
}

/* ---- LoRA ---- */

/* "attn_q" of "blk.3.attn_q.weight"; "output" of the matrix behind the layers, whatever it is: [*n] bytes at the
 * result. */
static const char *middle(const weft_node *node, const char *name, size_t *n)
{
    size_t len = strlen(name), suffix = strlen(".weight");
    if (node->layer < 0) {
        *n = strlen("output");
        return "output";
    }
    if (len > suffix && !strcmp(name + len - suffix, ".weight")) len -= suffix;
    if (!strncmp(name, "blk.", 4)) {
        const char *dot = strchr(name + 4, '.');
        if (dot && (size_t)(dot - name) < len) {
            len -= (size_t)(dot + 1 - name);
            name = dot + 1;
        }
    }
    *n = len;
    return name;
}

/* One of the list: "attn_q", "ffn_down@20-29", "@7". */
struct lora_target {
    const char *name; /* [n_name]; none: every linear layer */
    size_t n_name;
    int32_t first, last; /* layers; last -1: wherever the name is */
};

/* The next target behind `at`, its length in *len; NULL: there is none. */
static const char *next_target(const char *at, size_t *len)
{
    while (at && (*at == ',' || *at == ' ')) at++;
    if (!at || !*at) return NULL;
    *len = strcspn(at, ", ");
    return at;
}

/* Digits of s[0..n) from *at on; -1: none, or too many. */
static int32_t layer_of(const char *s, size_t n, size_t *at)
{
    const size_t begin = *at;
    int32_t layer = 0;
    for (; *at < n && *at - begin < 6 && s[*at] >= '0' && s[*at] <= '9'; ++*at) layer = layer * 10 + (s[*at] - '0');
    return *at > begin ? layer : -1;
}

/* 0: behind the @ stands neither a layer nor a range of them. */
static int read_target(const char *s, size_t n, struct lora_target *out)
{
    const char *mark = memchr(s, '@', n);
    size_t at = mark ? (size_t)(mark - s) + 1 : n;
    *out = (struct lora_target){s, mark ? (size_t)(mark - s) : n, 0, -1};
    if (!mark) return 1;
    out->first = out->last = layer_of(s, n, &at);
    if (at < n && s[at] == '-') {
        at++;
        out->last = layer_of(s, n, &at);
    }
    return at == n && out->first >= 0 && out->last >= out->first;
}

static int fits(const weft__trainer *t, const struct lora_target *x, const weft_node *node)
{
    size_t n;
    const char *name = middle(node, t->graph->weights[node->w[0]].name, &n);
    if (x->last >= 0 && (node->layer < x->first || node->layer > x->last)) return 0;
    return x->n_name ? x->n_name == n && !memcmp(x->name, name, n) : node->layer >= 0;
}

static int is_target(const weft__trainer *t, const weft_node *node)
{
    size_t len;
    struct lora_target x;
    if (!t->targets) return node->layer >= 0;
    for (const char *at = next_target(t->targets, &len); at; at = next_target(at + len, &len))
        if (read_target(at, len, &x) && fits(t, &x, node)) return 1;
    return 0;
}

/* What no matrix of the model is meant by, and why. */
static weft_status check_target(const weft__trainer *t, const char *target, size_t len, weft_error *err)
{
    struct lora_target x;
    const int shown = (int)(len < 64 ? len : 64);
    if (!read_target(target, len, &x))
        return weft_fail(err, WEFT_ARGUMENT,
                         "LoRA target '%.*s': behind the @ stand a layer, or two with a - between them: ffn_down@20-29",
                         shown, target);
    if (x.last >= t->hp.n_layers)
        return weft_fail(err, WEFT_ARGUMENT, "%s: LoRA target '%.*s': its layers are 0 to %d", t->src.label, shown,
                         target, t->hp.n_layers - 1);
    for (int32_t i = 0; i < t->graph->n_nodes; i++) {
        const weft_node *node = &t->graph->nodes[i];
        if (node->op == WEFT_OP_LINEAR && fits(t, &x, node)) return WEFT_OK;
    }
    return weft_fail(err, WEFT_ARGUMENT,
                     "%s: LoRA target '%.*s' is no matrix of this model; `weft info` lists its tensors", t->src.label,
                     shown, target);
}

static weft_status add_pairs(weft__trainer *t, weft_error *err)
{
    size_t len;
    weft_status st;
    for (const char *at = next_target(t->targets, &len); at; at = next_target(at + len, &len))
        if ((st = check_target(t, at, len, err))) return st;
    for (int32_t i = 0; i < t->graph->n_nodes; i++) {
        const weft_node *node = &t->graph->nodes[i];
        if (node->op != WEFT_OP_LINEAR || !is_target(t, node)) continue;
        const weft__tensor_desc *d = tensor_of(t, node->w[0]);
        if (!strcmp(d->name, "token_embd.weight"))
            return weft_fail(err, WEFT_UNSUPPORTED,
                             "%s: its output matrix is its embedding; leave 'output' out of the LoRA targets",
                             t->src.label);
        if (weft__train_lora_find(t, d->name) >= 0) continue;
        t->pairs[t->n_pairs++] = (struct weft__train_lora){t->n_params, t->n_params + 1};
        add_param(t, d->name, ".lora_a", 2, (int64_t)d->d[0], t->o.lora_rank);
        add_param(t, d->name, ".lora_b", 2, t->o.lora_rank, (int64_t)d->d[1]);
    }
    return t->n_pairs ? WEFT_OK : weft_fail(err, WEFT_ARGUMENT, "%s: no matrix is a LoRA target", t->src.label);
}

int32_t weft__train_lora_find(const weft__trainer *t, const char *name)
{
    size_t n = strlen(name);
    for (int32_t i = 0; i < t->n_pairs; i++) {
        const char *a = t->params[t->pairs[i].a].name;
        if (!strncmp(a, name, n) && !strcmp(a + n, ".lora_a")) return i;
    }
    return -1;
}

int32_t weft__train_lora_of(const weft__trainer *t, const weft_node *node)
{
    if (t->o.lora_rank == 0 || node->op != WEFT_OP_LINEAR || !is_target(t, node)) return -1;
    return weft__train_lora_find(t, t->graph->weights[node->w[0]].name);
}

/* ---- values ---- */

static weft_status allocate(weft__trainer *t, weft_error *err)
{
    uint64_t n = ((uint64_t)t->n_floats + 15) & ~15ull;
    const int two = weft__train_optimizer_kept(t->o.optimizer) == 2, n_arrays = 3 + two;
    weft_buffer_spec spec = {sizeof spec, WEFT_DOMAIN_HOST, (uint64_t)n_arrays * n * sizeof(float), 64,
                             WEFT_BUFFER_HUGE | WEFT_BUFFER_ZERO};
    weft_status st = weft__mem_create(&spec, &t->values, err);
    if (st) return st;
    t->n_bytes += spec.n_bytes;
    t->data = t->values->data;
    t->grad = t->data + n;
    t->m = t->grad + n;
    t->v = two ? t->m + n : NULL;
    int64_t at = 0;
    for (int32_t i = 0; i < t->n_params; i++) {
        struct weft__trainer_weight *p = &t->params[i];
        p->data = t->data + at;
        p->grad = t->grad + at;
        p->m = t->m + at;
        p->v = t->v ? t->v + at : NULL;
        at += p->n;
    }
    return WEFT_OK;
}

static void decode(const weft__trainer *t, struct weft__trainer_weight *p)
{
    const weft__tensor_desc *d = t->src.tensor(&t->src, p->name);
    const uint8_t *data = weft__tensor_data(d);
    uint64_t row_bytes = weft__quant_row_bytes(d->dtype, p->d[0]);
    for (int64_t r = 0; r < p->n / p->d[0]; r++)
        weft__quant_decode_row(d->dtype, data + (uint64_t)r * row_bytes, p->data + r * p->d[0], p->d[0]);
}

/* A uniform in +-sqrt(3 / K): the deviation of each is 1 / sqrt(K) (He et al. 2015, with gain 1); B stays 0. */
static void draw(weft__trainer *t)
{
    weft__rng rng;
    weft__rng_seed(&rng, t->o.seed);
    for (int32_t i = 0; i < t->n_pairs; i++) {
        struct weft__trainer_weight *a = &t->params[t->pairs[i].a];
        double limit = sqrt(3.0 / (double)a->d[0]);
        for (int64_t j = 0; j < a->n; j++) a->data[j] = (float)(limit * (2 * weft__rng_double(&rng) - 1));
    }
}

weft_status weft__train_params(weft__trainer *t, weft_error *err)
{
    weft_status st = WEFT_OK;
    t->params = weft__train_own(t, 2 * (size_t)t->graph->n_weights, sizeof *t->params);
    t->pairs = weft__train_own(t, (size_t)t->graph->n_weights, sizeof *t->pairs);
    if (!t->params || !t->pairs) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to train it", t->src.label);
    if (t->o.lora_rank > 0) st = add_pairs(t, err);
    else all_weights(t);
    if (!st) st = allocate(t, err);
    if (st) return st;
    if (t->o.lora_rank > 0) draw(t);
    else
        for (int32_t i = 0; i < t->n_params; i++) decode(t, &t->params[i]);
    if (t->o.l2_sp > 0 && !(st = weft__train_start_room(t, err))) weft__train_keep_start(t);
    return st;
}

weft_status weft__train_start_room(weft__trainer *t, weft_error *err)
{
    if (!t->start) t->start = weft__train_own(t, (size_t)t->n_floats, sizeof *t->start);
    return t->start ? WEFT_OK
                    : weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to keep where training began", t->src.label);
}

void weft__train_keep_start(weft__trainer *t)
{
    memcpy(t->start, t->data, (size_t)t->n_floats * sizeof *t->start);
}
