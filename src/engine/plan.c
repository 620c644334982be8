// SPDX-License-Identifier: Apache-2.0
/* plan.c: compiled plans: writing one (weft_plan_write), and a plan as the source of a model's numbers. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "engine/handles.h"
#include "format/out_file.h"
#include "quant/finite.h"

void(weft_plan_params_default)(weft_plan_params *p)
{
    *p = (weft_plan_params){.size = sizeof *p};
}

void weft_plan_params_init(weft_plan_params *params, uint32_t size)
{
    weft_plan_params own;
    (weft_plan_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_plan_params), params, size, &own);
}

/* ---- a plan as a source ---- */

static int plan_meta(const weft__source *src, const char *key, weft__source_value *out)
{
    weft__source meta;
    weft__source_gguf(weft__plan_file_meta(src->impl), src->label, &meta);
    return meta.meta(&meta, key, out);
}

static double plan_meta_at(const weft__source *src, const char *key, uint64_t i)
{
    weft__source meta;
    weft__source_gguf(weft__plan_file_meta(src->impl), src->label, &meta);
    return meta.meta_at(&meta, key, i);
}

static const weft__tensor_desc *plan_tensor(const weft__source *src, const char *name)
{
    return weft__tensor_find(weft__plan_file_tensors(src->impl), name);
}

void weft__engine_plan_source(const weft__plan_file *plan, const char *label, weft__source *out)
{
    *out = (weft__source){label, plan_meta, plan_meta_at, plan_tensor, plan};
}

/* ---- which weights a plan is of ---- */

/* Of the two tables of LongRoPE the context chooses one, when the plan is used. */
static const char *hashed_name(const char *name)
{
    return strncmp(name, "rope_factors_", 13) ? name : "rope_factors";
}

uint64_t weft__engine_weights_hash(const weft_graph *g, const weft__source *src)
{
    weft__hash_state h;
    weft__hash_begin(&h);
    for (int32_t i = 0; i < g->n_weights; i++) {
        const weft_weight *w = &g->weights[i];
        const weft__tensor_desc *t = src->tensor(src, w->name);
        /* Where it begins in its tensor: several weights may be rows of one. */
        uint64_t numbers[] = {w->dtype, (uint64_t)w->shape.d[0], (uint64_t)w->shape.d[1], (uint64_t)w->shape.d[2],
                              t ? w->offset - t->offset : 0};
        const char *name = hashed_name(w->name);
        weft__hash_add(&h, name, strlen(name) + 1);
        weft__hash_add(&h, numbers, sizeof numbers);
    }
    return weft__hash_end(&h);
}

weft_status weft__engine_plan_for(const weft__plan_file *plan, const weft_graph *g, const weft__source *src,
                                  const char *provider, weft_error *err)
{
    const weft__plan_file_summary *info = weft__plan_file_info(plan);
    if (strcmp(info->provider, provider))
        return weft_fail(err, WEFT_UNSUPPORTED,
                         "%s: the plan is for provider %s, not for %s; compile the model again (weft compile)",
                         src->label, info->provider, provider);
    if (info->image.n_weights != g->n_weights || info->weights != weft__engine_weights_hash(g, src))
        return weft_fail(err, WEFT_UNSUPPORTED,
                         "%s: the plan was made by another version (%s), which divided the weights otherwise; compile "
                         "the model again "
                         "(weft compile)",
                         src->label, info->made_by);
    return WEFT_OK;
}

/* ---- writing ---- */

/* Which tensors keep their bytes: all but those of which nothing but packed weights is used. */
static void list_kept(const weft_graph *g, const weft__tensor_set *set, const weft_image *image, uint8_t *kept)
{
    memset(kept, 1, set->n);
    for (int pass = 0; pass < 2;
         pass++) { /* the packed ones go, then those come back of which some other use reads the bytes */
        for (int32_t i = 0; i < g->n_weights; i++) {
            const weft__tensor_desc *t = weft__tensor_find(set, g->weights[i].name);
            if (!t) continue;
            if (pass == 0 && image->offset[i] != UINT64_MAX) kept[t - set->items] = 0;
            if (pass == 1 && image->own[i]) kept[t - set->items] = 1;
        }
    }
}

static weft_status put_model(const weft_file *f, const weft_plan_params *p, weft__gguf_writer *w, weft_error *err)
{
    return f->hf ? weft__hf_put_all(f->hf, p->pre_tokenizer, w, err) : weft__gguf_put_all(w, f->gguf, err);
}

/* The weights are looked at once more when all of them stand there as they are used. In pieces, between which it can be
 * cancelled. */
static weft_status check_weights(const weft__tensor_set *set, const weft_plan_params *p, weft_error *err)
{
    enum { PIECE = 16 << 20 };
    for (size_t i = 0; i < set->n; i++) {
        const weft__tensor_desc *t = &set->items[i];
        if (!t->buffer || (t->dtype != WEFT_F32 && t->dtype != WEFT_F16 && t->dtype != WEFT_BF16)) continue;
        const uint8_t *data = weft__tensor_data(t);
        for (uint64_t at = 0, n; at < t->n_elems; at += n) {
            n = t->n_elems - at < PIECE ? t->n_elems - at : PIECE;
            weft_status st = weft__quant_check_finite(t->dtype, data + at * weft_dtype_describe(t->dtype).block_bytes,
                                                      at, n, t->d[0], t->n_dims == 1, err);
            if (st) return weft_fail_within(err, st, "tensor %s", t->name);
            if (p->progress && p->progress(p->progress_arg, "checking weights", (double)(i + 1) / (double)set->n))
                return weft_fail(err, WEFT_CANCELLED, "cancelled");
        }
    }
    return WEFT_OK;
}

static weft_status write_plan(const weft_model *m, const char *out, const weft_plan_params *p, uint64_t *n_bytes,
                              weft_error *err)
{
    weft__plan_file_contents c = {.tensors = weft__engine_file_tensors(m->file)};
    weft__gguf_writer *meta = NULL;
    char made_by[64], source[PATH_MAX];
    if (weft__engine_plan_origin(m->file->path, source, sizeof source, &c.info.origin)) {
        c.info.origin.pre_tokenizer = p->pre_tokenizer;
        c.info.origin.keep_weights = p->keep_weights != 0;
    }
    weft_status st = check_weights(c.tensors, p, err);
    if (!st) st = weft__plan_image(m->plan, &c.info.image, &c.info.provider, err);
    if (st) return st;
    snprintf(made_by, sizeof made_by, "weft %s", weft_version());
    c.info.made_by = made_by;
    c.info.weights = weft__engine_weights_hash(m->graph, &m->source);
    uint8_t *kept = weft__alloc(c.tensors->n);
    if (!kept) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to write it", out);
    if (p->keep_weights) memset(kept, 1, c.tensors->n);
    else list_kept(m->graph, c.tensors, &c.info.image, kept);
    c.kept = kept;
    if ((st = weft__gguf_writer_memory(out, &meta, err)) || (st = put_model(m->file, p, meta, err))) goto done;
    st = weft__plan_file_write(out, meta, &c, p->progress, p->progress_arg, n_bytes, err);
done:
    weft__gguf_writer_destroy(&meta);
    weft__free(kept);
    return st;
}

/* Before minutes are spent on packing: is this a model, and is there room for it? */
static weft_status check_job(const char *in, const char *out, weft_error *err)
{
    weft_file *f;
    weft_status st = weft_file_open(in, &f, err);
    if (st) return st;
    st = f->plan ? weft_fail(err, WEFT_ARGUMENT,
                             "%s: is a compiled plan already; compile the model that it was made of", f->path)
                 : weft__out_file_room(out, weft__engine_file_bytes(f), err);
    weft_file_close(&f);
    return st;
}

weft_status weft_plan_write(const char *in, const char *out, const weft_plan_params *params, weft_plan_result *result,
                            weft_error *err)
{
    weft_model *m;
    weft_plan_params own, *p = &own;
    weft_model_params open;
    weft_plan_params_default(p);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_plan_params), p, params, err);
    if (!st) st = check_job(in, out, err);
    if (st) return st;
    weft_model_params_default(&open);
    open.n_threads = p->n_threads;
    open.max_rows = 1; /* scratch for steps that never run */
    open.provider = p->provider;
    open.progress = p->progress;
    open.progress_arg = p->progress_arg;
    if ((st = weft_model_open(in, &open, &m, err))) return st;
    result->bytes_before = m->info.n_bytes;
    st = write_plan(m, out, p, &result->bytes_after, err);
    weft_model_close(&m);
    return st;
}
