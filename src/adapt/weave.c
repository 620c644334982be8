// SPDX-License-Identifier: Apache-2.0
/* weave.c: adapters against a base: which matrices they may change, whether they fit, and a weighted stack of them as
 * one change per matrix (adapt.h). Owner: the thread that weaves. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "adapt/parts.h"
#include "base/alloc.h"
#include "base/background.h"
#include "base/hash.h"
#include "format/names.h"
#include "quant/half.h"
#include "quant/quant.h"

/* ---- the base ---- */

#define LAST_NORM "output_norm.weight"

static int ends(const char *name, const char *tail)
{
    size_t n = strlen(name), t = strlen(tail);
    return n > t && !strcmp(name + n - t, tail);
}

uint64_t weft__adapt_fingerprint(const void *data, uint32_t dtype, int64_t n)
{
    enum { AT_ONCE = 256 };
    weft_dtype_info info = weft_dtype_describe(dtype);
    uint64_t state[2] = {0}; /* the checksum so far, and of the next values */
    if (!data || n < 1 || (dtype != WEFT_F32 && dtype != WEFT_F16 && dtype != WEFT_BF16)) return 0;
    for (int64_t i = 0; i < n; i += AT_ONCE) {
        int64_t some = n - i < AT_ONCE ? n - i : AT_ONCE;
        float x[AT_ONCE];
        uint16_t rounded[AT_ONCE];
        weft__quant_decoder(dtype)((const uint8_t *)data + (size_t)i * info.block_bytes, x, some);
        for (int64_t j = 0; j < some; j++) rounded[j] = weft__bf16_from_f32(x[j]);
        state[1] = weft__hash(rounded, (size_t)some * sizeof *rounded);
        state[0] = weft__hash(state, sizeof state);
    }
    return state[0] ? state[0] : 1;
}

uint64_t weft__adapt_fingerprint_of_tensors(const weft__tensor_set *set)
{
    const weft__tensor_desc *norm = weft__tensor_find(set, LAST_NORM);
    return norm ? weft__adapt_fingerprint(weft__tensor_data(norm), norm->dtype, (int64_t)norm->n_elems) : 0;
}

uint64_t weft__adapt_fingerprint_of_graph(const weft_graph *g)
{
    for (int32_t i = 0; i < g->n_weights; i++) {
        const weft_weight *w = &g->weights[i];
        if (!strcmp(w->name, LAST_NORM) && w->buffer && w->buffer->data)
            return weft__adapt_fingerprint((const uint8_t *)w->buffer->data + w->offset, w->dtype, w->shape.d[0]);
    }
    return 0;
}

/* Fills the target of weight w as the op uses it. */
static void set_target(const weft_graph *g, weft_weight_id w, int is_table, int32_t q_heads, int32_t k_heads,
                       weft__adapt_base *base)
{
    if (w < 0 || g->weights[w].shape.n_dims < 2) return;
    const weft_weight *x = &g->weights[w];
    weft__adapt_target *t = &base->targets[w];
    int tied = !is_table && !strcmp(x->name, "token_embd.weight");
    snprintf(t->name, sizeof t->name, "%s", tied ? "output.weight" : x->name);
    t->k = x->shape.d[0];
    t->n = x->shape.d[1];
    t->n_experts = x->shape.d[2];
    t->dtype = x->dtype;
    t->row_bytes = x->row_bytes;
    t->data = x->buffer && x->buffer->data ? (const uint8_t *)x->buffer->data + x->offset : NULL;
    t->heads = ends(t->name, ".attn_q.weight") ? q_heads : ends(t->name, ".attn_k.weight") ? k_heads : 0;
}

/* Weights that are row ranges of one tensor: where each begins. */
static void set_ranges(const weft_graph *g, weft__adapt_base *base)
{
    for (int32_t i = 0; i < base->n; i++) {
        weft__adapt_target *t = &base->targets[i];
        uint64_t begin = g->weights[i].offset;
        if (!t->name[0]) continue;
        for (int32_t j = 0; j < base->n; j++) {
            const weft_weight *other = &g->weights[j];
            if (strcmp(base->targets[j].name, t->name) || other->buffer != g->weights[i].buffer) continue;
            if (other->offset < begin) begin = other->offset;
            if (i == j || other->offset != g->weights[i].offset) t->n_total += other->shape.d[1];
        }
        t->first = (int64_t)((g->weights[i].offset - begin) / t->row_bytes);
    }
}

weft_status weft__adapt_base_of_graph(const weft_graph *graph, const char *arch, const char *label, int32_t q_heads,
                                      int32_t k_heads, weft__adapt_base *out, weft_error *err)
{
    *out = (weft__adapt_base){
        .arch = arch, .label = label, .fingerprint = weft__adapt_fingerprint_of_graph(graph), .n = graph->n_weights};
    out->targets = weft__alloc_zero((size_t)graph->n_weights, sizeof *out->targets);
    if (!out->targets) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the list of matrices");
    for (int32_t i = 0; i < graph->n_nodes; i++) {
        const weft_node *node = &graph->nodes[i];
        if (node->op != WEFT_OP_LINEAR && node->op != WEFT_OP_MOE_FFN && node->op != WEFT_OP_EMBED) continue;
        for (int32_t w = 0; w < node->n_w; w++)
            set_target(graph, node->w[w], node->op == WEFT_OP_EMBED, q_heads, k_heads, out);
    }
    set_ranges(graph, out);
    return WEFT_OK;
}

void weft__adapt_base_free(weft__adapt_base *base)
{
    weft__free(base->targets);
    base->targets = NULL;
}

/* ---- does it fit? ---- */

const weft__adapt_target *weft__adapt_target_of(const weft__adapt_base *base, const char *name)
{
    for (int32_t i = 0; i < base->n; i++)
        if (!strcmp(base->targets[i].name, name)) return &base->targets[i];
    return NULL;
}

static weft_status check_pair(const weft__adapt *a, const weft__adapt_pair *p, const weft__adapt_base *base,
                              weft_error *err)
{
    char shown[WEFT__NAME_SHOW], path[WEFT__NAME_SHOW * 2];
    const weft__adapt_target *t = weft__adapt_target_of(base, p->name);
    weft__name_show(shown, p->name, strlen(p->name));
    weft__name_show_path(path, a->label);
    if (!t)
        return weft_fail(err, WEFT_ARGUMENT,
                         "adapter %s changes %s, which is no matrix of %s: it was made for another base", path, shown,
                         base->label);
    if (p->k == t->k && p->n == t->n_total && p->n_experts == t->n_experts) return WEFT_OK;
    return weft_fail(err, WEFT_ARGUMENT,
                     "adapter %s: %s is for a matrix of %lld x %lld x %lld; that of %s is %lld x %lld x %lld: it was "
                     "made for another base",
                     path, shown, (long long)p->k, (long long)p->n, (long long)p->n_experts, base->label,
                     (long long)t->k, (long long)t->n_total, (long long)t->n_experts);
}

weft_status weft__adapt_check(const weft__adapt *a, const weft__adapt_base *base, weft_error *err)
{
    char shown[WEFT__NAME_SHOW], path[WEFT__NAME_SHOW * 2];
    if (a->arch[0] && strcmp(a->arch, base->arch))
        return weft_fail(err, WEFT_ARGUMENT, "adapter %s is for architecture '%s'; %s is of '%s'",
                         weft__name_show_path(path, a->label), weft__name_show(shown, a->arch, strlen(a->arch)),
                         base->label, base->arch);
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < a->n_pairs && !st; i++) st = check_pair(a, &a->pairs[i], base, err);
    if (!st && a->base_fingerprint && base->fingerprint && a->base_fingerprint != base->fingerprint)
        return weft_fail(
            err, WEFT_ARGUMENT,
            "adapter %s was trained on another model than %s: the shapes agree, the weights do not; give that model, "
            "or "
            "train on this one (to try it all the same, convert it to a PEFT folder, which does not say its base)",
            weft__name_show_path(path, a->label), base->label);
    return st ? st : weft__adapt_run_base_checks(a, base, err);
}

/* ---- weaving ---- */

/* What one use brings to a target. */
typedef struct term {
    const weft__adapt_pair *pair;
    float weight;
    float *g; /* [E, n] DoRA's factors of the target's rows ([k] of the embedding's columns), or NULL */
} term;

typedef struct weaving {
    const weft__adapt_use *uses;
    int32_t n_uses;
    term *terms; /* [n_uses] */
    weft__adapt_woven *out;
    weft_error *err;
} weaving;

static const weft__adapt_pair *pair_of(const weft__adapt *a, const char *name)
{
    int32_t low = 0, high = a->n_pairs;
    while (low < high) {
        int32_t mid = low + (high - low) / 2;
        int order = strcmp(a->pairs[mid].name, name);
        if (order == 0) return &a->pairs[mid];
        if (order < 0) low = mid + 1;
        else high = mid;
    }
    return NULL;
}

/* The row of a pair that changes row r of a target. */
static int64_t pair_row(const weft__adapt_target *t, int64_t r)
{
    int64_t per_head, head, i;
    if (t->heads <= 0) return t->first + r;
    per_head = t->n_total / t->heads; /* halves: row j of the first half is pair j's first */
    head = r / per_head;
    i = r % per_head;
    return head * per_head + (i < per_head / 2 ? 2 * i : 2 * (i - per_head / 2) + 1);
}

/* Row r of expert e of the target as the pair changes it, W + scale * B A, in the row's order of addition. */
static void changed_row(const weft__adapt_target *t, const weft__adapt_pair *p, int64_t e, int64_t r, float *w)
{
    const float *b = p->b + (e * p->n + pair_row(t, r)) * p->rank;
    weft__quant_decode_row(t->dtype, (const uint8_t *)t->data + (uint64_t)(e * t->n + r) * t->row_bytes, w, t->k);
    for (int32_t j = 0; j < p->rank; j++) {
        const float f = p->scale * b[j], *a = p->a + (e * p->rank + j) * p->k;
        for (int64_t i = 0; i < p->k; i++) w[i] += f * a[i];
        weft__background_did((uint64_t)p->k * sizeof *w);
    }
}

static weft_status no_factor(weaving *v, const char *what, int64_t i, const weft__adapt_target *t)
{
    return weft_fail(v->err, WEFT_FORMAT, "%s %lld of %s becomes zero, so that DoRA's factor is not finite", what,
                     (long long)i, t->name);
}

/* g = m / ||W + scale * B A|| of rows, or 1 where an expert is not changed; row [k]. */
static weft_status factors_of_rows(weaving *v, term *s, const weft__adapt_target *t, float *row)
{
    const weft__adapt_pair *p = s->pair;
    float *g = s->g;
    for (int64_t e = 0; e < t->n_experts; e++, g += t->n) {
        const int unchanged = weft__adapt_is_identity(p, e);
        for (int64_t r = 0; r < t->n; r++) {
            double sum = 0;
            g[r] = 1;
            if (unchanged) continue;
            changed_row(t, p, e, r, row);
            for (int64_t c = 0; c < t->k; c++) sum += (double)row[c] * (double)row[c];
            g[r] = (float)((double)p->magnitude[e * p->n + pair_row(t, r)] / sqrt(sum));
            if (!isfinite(g[r])) return no_factor(v, "row", e * t->n + r, t);
        }
    }
    return WEFT_OK;
}

/* The same of columns, for the embedding; they run over its whole vocabulary. */
static weft_status factors_of_columns(weaving *v, term *s, const weft__adapt_target *t, float *row)
{
    weft_status st = WEFT_OK;
    double *sums = weft__alloc_zero((size_t)t->k, sizeof *sums);
    if (!sums) return weft_fail(v->err, WEFT_NO_MEMORY, "no memory for the factors of %s", t->name);
    for (int64_t r = 0; r < t->n; r++) {
        changed_row(t, s->pair, 0, r, row);
        for (int64_t i = 0; i < t->k; i++) sums[i] += (double)row[i] * (double)row[i];
    }
    for (int64_t i = 0; i < t->k && !st; i++) {
        s->g[i] = (float)((double)s->pair->magnitude[i] / sqrt(sums[i]));
        if (!isfinite(s->g[i])) st = no_factor(v, "column", i, t);
    }
    weft__free(sums);
    return st;
}

/* DoRA's factors of a target: so many. */
static int64_t n_factors(const weft__adapt_target *t)
{
    return weft__adapt_is_table(t->name) ? t->k : t->n_experts * t->n;
}

static weft_status find_factors(weaving *v, term *s, const weft__adapt_target *t)
{
    const weft__adapt_pair *p = s->pair;
    s->g = NULL;
    if (!p || !p->magnitude) return WEFT_OK;
    if (!t->data || !weft__quant_decoder(t->dtype))
        return weft_fail(v->err, WEFT_UNSUPPORTED,
                         "the adapter has DoRA's magnitudes for %s, whose weights this compiled plan has only packed; "
                         "compile it with --keep-weights, or open the model itself",
                         t->name);
    float *row = weft__alloc_array((size_t)t->k, sizeof *row);
    s->g = weft__arena_array(&v->out->arena, (size_t)n_factors(t), sizeof *s->g);
    weft_status st =
        row && s->g ? WEFT_OK : weft_fail(v->err, WEFT_NO_MEMORY, "no memory for the factors of %s", t->name);
    if (!st) st = weft__adapt_is_table(t->name) ? factors_of_columns(v, s, t, row) : factors_of_rows(v, s, t, row);
    weft__free(row);
    return st;
}

/* A of one term behind those before it, and its columns of B, with all factors; those of columns belong to A. */
static void lay_term(const term *s, const weft__adapt_target *t, float *a, float *b, int64_t rank, int64_t at)
{
    const weft__adapt_pair *p = s->pair;
    const float scale = s->weight * p->scale, *of_rows = weft__adapt_is_table(t->name) ? NULL : s->g,
                *of_columns = of_rows ? NULL : s->g;
    for (int64_t e = 0; e < t->n_experts; e++) {
        for (int32_t j = 0; j < p->rank; j++) {
            float *to = a + (e * rank + at + j) * t->k;
            memcpy(to, p->a + (e * p->rank + j) * t->k, (size_t)t->k * sizeof *a);
            for (int64_t i = 0; of_columns && i < t->k; i++) to[i] *= of_columns[i];
            weft__background_did((uint64_t)t->k * sizeof *a);
        }
        for (int64_t r = 0; r < t->n; r++) {
            const float *from = p->b + (e * p->n + pair_row(t, r)) * p->rank;
            float *to = b + (e * t->n + r) * rank + at, f = of_rows ? scale * of_rows[e * t->n + r] : scale;
            for (int32_t j = 0; j < p->rank; j++) to[j] = f * from[j];
            weft__background_did((uint64_t)p->rank * sizeof *b);
        }
    }
}

static weft_status add_gain(weaving *v, int32_t i, const weft__adapt_target *t)
{
    const int64_t n = n_factors(t);
    float *gain = weft__arena_array(&v->out->arena, (size_t)n, sizeof *gain);
    if (!gain) return weft_fail(v->err, WEFT_NO_MEMORY, "no memory for the factors of %s", t->name);
    for (int64_t r = 0; r < n; r++) {
        gain[r] = 1;
        for (int32_t u = 0; u < v->n_uses; u++)
            if (v->terms[u].pair && v->terms[u].g) gain[r] += v->terms[u].weight * (v->terms[u].g[r] - 1);
    }
    v->out->lora[i].gain = gain;
    return WEFT_OK;
}

/* A single pair, whole and without factors, is taken as it is. */
static int borrow(const term *s, const weft__adapt_target *t, weft_lora *out)
{
    if (s->g || t->heads > 0 || t->n != t->n_total) return 0;
    *out = (weft_lora){.a = s->pair->a,
                       .b = s->pair->b,
                       .rank = s->pair->rank,
                       .dtype = WEFT_F32,
                       .scale = s->weight * s->pair->scale};
    return 1;
}

static weft_status weave_target(weaving *v, int32_t i, const weft__adapt_target *t)
{
    int64_t rank = 0, at = 0;
    int32_t n = 0, last = 0, gains = 0;
    weft_status st;
    for (int32_t u = 0; u < v->n_uses; u++) {
        term *s = &v->terms[u];
        *s = (term){.pair = v->uses[u].scale != 0 ? pair_of(v->uses[u].adapter, t->name) : NULL,
                    .weight = v->uses[u].scale};
        if ((st = find_factors(v, s, t))) return st;
        if (!s->pair) continue;
        rank += s->pair->rank;
        gains += s->g != NULL;
        last = u;
        n++;
    }
    if (n == 0) return WEFT_OK;
    if (rank > WEFT_ADAPTER_RANK_MAX)
        return weft_fail(v->err, WEFT_LIMIT, "the adapters of %s have ranks of %lld together; at most %d", t->name,
                         (long long)rank, WEFT_ADAPTER_RANK_MAX);
    if (gains && (st = add_gain(v, i, t))) return st;
    if (n == 1 && borrow(&v->terms[last], t, &v->out->lora[i])) return WEFT_OK;
    size_t e = (size_t)t->n_experts, bytes = (size_t)rank * sizeof(float); /* ranks are at most 1024, dimensions 2^31 */
    float *a = weft__arena_array(&v->out->arena, bytes * (size_t)t->k, e),
          *b = weft__arena_array(&v->out->arena, bytes * (size_t)t->n, e);
    if (!a || !b) return weft_fail(v->err, WEFT_NO_MEMORY, "no memory for the adapters of %s", t->name);
    for (int32_t u = 0; u < v->n_uses; u++) {
        if (!v->terms[u].pair) continue;
        lay_term(&v->terms[u], t, a, b, rank, at);
        at += v->terms[u].pair->rank;
    }
    v->out->lora[i] =
        (weft_lora){.a = a, .b = b, .rank = (int32_t)rank, .dtype = WEFT_F32, .scale = 1, .gain = v->out->lora[i].gain};
    return WEFT_OK;
}

weft_status weft__adapt_weave(const weft__adapt_use *uses, int32_t n, const weft__adapt_base *base,
                              weft__adapt_woven *out, weft_error *err)
{
    weaving v = {.uses = uses, .n_uses = n, .out = out, .err = err};
    weft_status st = WEFT_OK;
    *out = (weft__adapt_woven){.n = base->n};
    out->lora = weft__alloc_zero((size_t)base->n, sizeof *out->lora);
    v.terms = weft__alloc_zero((size_t)n, sizeof *v.terms);
    if (!out->lora || !v.terms) st = weft_fail(err, WEFT_NO_MEMORY, "no memory to weave adapters");
    for (int32_t i = 0; i < base->n && !st; i++)
        if (base->targets[i].name[0]) st = weave_target(&v, i, &base->targets[i]);
    weft__free(v.terms);
    if (st) weft__adapt_woven_free(out);
    return st;
}

void weft__adapt_woven_free(weft__adapt_woven *w)
{
    weft__arena_free(&w->arena);
    weft__free(w->lora);
    *w = (weft__adapt_woven){0};
}
