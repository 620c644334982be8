// SPDX-License-Identifier: Apache-2.0
/* steer.c: what is done to a trainer beside steps (train.h): an adapter that it begins with, parameters that are put
 * aside, how much pairs count, and which tokens it finds likeliest. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "train/params.h"

/* ---- an adapter to begin with ---- */

static const weft__adapt_pair *pair_of(const weft__adapt *a, const struct weft__trainer_weight *p)
{
    const size_t n = strlen(p->name) - strlen(".lora_a");
    for (int32_t i = 0; i < a->n_pairs; i++)
        if (strlen(a->pairs[i].name) == n && !memcmp(a->pairs[i].name, p->name, n)) return &a->pairs[i];
    return NULL;
}

static weft_status check_pair(const weft__trainer *t, const weft__adapt *a, const weft__adapt_pair *x, weft_error *err)
{
    if (weft__adapt_is_table(x->name) || x->n_experts > 1 || x->magnitude)
        return weft_fail(err, WEFT_UNSUPPORTED, "%s: it changes %s %s, which is not learned here", a->label, x->name,
                         x->magnitude       ? "by DoRA"
                         : x->n_experts > 1 ? "of experts"
                                            : "as a table");
    const int32_t i = weft__train_lora_find(t, x->name);
    if (i < 0)
        return weft_fail(err, WEFT_ARGUMENT,
                         "%s changes %s, which is no LoRA target here; leave the targets out, or name it among them",
                         a->label, x->name);
    const struct weft__trainer_weight *p = &t->params[t->pairs[i].a], *q = &t->params[t->pairs[i].b];
    if (x->k != p->d[0] || x->n != q->d[1])
        return weft_fail(err, WEFT_ARGUMENT, "%s: %s is [%lld, %lld] there, [%lld, %lld] in %s; it is of another model",
                         a->label, x->name, (long long)x->k, (long long)x->n, (long long)p->d[0], (long long)q->d[1],
                         t->src.label);
    if (x->rank > t->o.lora_rank)
        return weft_fail(err, WEFT_ARGUMENT, "%s has rank %d; to begin with it, the rank must be that or more, not %d",
                         a->label, x->rank, t->o.lora_rank);
    return WEFT_OK;
}

/* A's first rows, and B's first columns with what the scales differ by; the rest of B is 0. */
static void take_pair(weft__trainer *t, const struct weft__train_lora *pair, const weft__adapt_pair *x)
{
    struct weft__trainer_weight *a = &t->params[pair->a], *b = &t->params[pair->b];
    const int64_t rank = t->o.lora_rank;
    const int32_t heads = weft__train_heads_in_halves(t, b);
    const float by = x->scale == t->lora_scale ? 1 : (float)((double)x->scale / (double)t->lora_scale);
    memcpy(a->data, x->a, (size_t)(x->rank * x->k) * sizeof *x->a);
    for (int64_t r = 0; r < x->n; r++) {
        float *to = b->data + (heads ? weft__adapt_folder_row(r, x->n / heads) : r) * rank;
        for (int64_t i = 0; i < rank; i++) to[i] = i < x->rank ? by * x->b[r * x->rank + i] : 0;
    }
}

weft_status weft__trainer_start_adapter(weft__trainer *t, const weft__adapt *a, weft_error *err)
{
    const uint64_t base = weft__adapt_fingerprint_of_graph(t->graph);
    weft_status st = WEFT_OK;
    if (t->o.lora_rank == 0)
        return weft_fail(err, WEFT_STATE, "%s: all weights learn; an adapter goes on where one is trained", a->label);
    if (*a->arch && strcmp(a->arch, t->hp.arch))
        return weft_fail(err, WEFT_ARGUMENT, "%s is for '%.64s', the model is '%s'", a->label, a->arch, t->hp.arch);
    if (a->base_fingerprint && base && a->base_fingerprint != base)
        return weft_fail(err, WEFT_ARGUMENT, "%s was made for another model than %s", a->label, t->src.label);
    for (int32_t i = 0; !st && i < a->n_pairs; i++) st = check_pair(t, a, &a->pairs[i], err);
    if (!st && t->lora_scale == 0)
        st = weft_fail(err, WEFT_ARGUMENT, "%s cannot go on at a scale of 0: alpha must be another", a->label);
    if (st || (st = weft__train_start_room(t, err))) return st;
    for (int32_t i = 0; i < t->n_pairs; i++) {
        const weft__adapt_pair *x = pair_of(a, &t->params[t->pairs[i].a]);
        if (x) take_pair(t, &t->pairs[i], x);
    }
    weft__train_keep_start(t);
    t->goes_on = 1;
    return WEFT_OK;
}

/* "attn_q@3" of "blk.3.attn_q.weight", "output" of "output.weight". */
static void put_target(weft__strbuf *list, const char *name)
{
    int layer = 0, n = 0;
    const size_t len = strlen(name), suffix = strlen(".weight");
    const int cut = (int)(len > suffix && !strcmp(name + len - suffix, ".weight") ? len - suffix : len);
    if (list->len) weft__strbuf_putc(list, ',');
    if (sscanf(name, "blk.%6d.%n", &layer, &n) == 1 && n)
        weft__strbuf_printf(list, "%.*s@%d", cut - n, name + n, layer);
    else weft__strbuf_printf(list, "%.*s", cut, name);
}

weft_status weft__train_adapter_options(const weft__adapt *a, int32_t *rank, float *scale, char **targets,
                                        weft_error *err)
{
    weft__strbuf list = {0};
    *rank = 1;
    *scale = 1;
    for (int32_t i = 0; i < a->n_pairs; i++) {
        const weft__adapt_pair *x = &a->pairs[i];
        if (x->rank > *rank || !i) *rank = x->rank, *scale = x->scale;
        put_target(&list, x->name);
    }
    if (!list.failed && list.data) {
        *targets = list.data;
        return WEFT_OK;
    }
    weft__strbuf_free(&list);
    *targets = NULL;
    return list.failed ? weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to go on with it", a->label) : WEFT_OK;
}

void weft__train_as_it_began(weft__trainer *t, int on)
{
    float *data = on && t->goes_on ? t->start : t->data;
    t->adapter_on = !on || t->goes_on;
    for (int32_t i = 0; i < t->n_params; i++)
        t->params[i].data = data + (t->params[i].grad - t->grad); /* the arrays have the same places */
}

void weft__trainer_hold_to_base(weft__trainer *t)
{
    t->goes_on = 0;
}

/* ---- how much pairs count ---- */

void weft__trainer_set_scale(weft__trainer *t, float share)
{
    t->lora_scale = weft__train_lora_scale(&t->o) * share;
}

/* ---- aside ---- */

weft_status weft__train_aside_room(weft__trainer *t, weft_error *err)
{
    if (!t->aside) t->aside = weft__train_own(t, (size_t)t->n_floats, sizeof *t->aside);
    return t->aside ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to keep the best step", t->src.label);
}

weft_status weft__trainer_put_aside(weft__trainer *t, weft_error *err)
{
    weft_status st = weft__train_aside_room(t, err);
    if (st) return st;
    memcpy(t->aside, t->data, (size_t)t->n_floats * sizeof *t->aside);
    t->has_aside = 1;
    return WEFT_OK;
}

void weft__trainer_take_aside(weft__trainer *t)
{
    if (t->has_aside) memcpy(t->data, t->aside, (size_t)t->n_floats * sizeof *t->aside);
}

/* ---- the likeliest ---- */

void weft__trainer_likeliest(const weft__trainer *t, int32_t *out)
{
    for (int32_t r = 0, w = 0, n = t->begin[t->n_segs]; r < n; r++)
        out[r] = w < t->n_wanted && t->wanted[w] == r ? t->likeliest[w++] : -1;
}

void weft__trainer_logp(const weft__trainer *t, float *out)
{
    for (int32_t r = 0, w = 0, n = t->begin[t->n_segs]; r < n; r++)
        out[r] = w < t->n_wanted && t->wanted[w] == r ? t->logp[w++] : 0;
}
