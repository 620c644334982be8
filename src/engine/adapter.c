// SPDX-License-Identifier: Apache-2.0
/* adapter.c: weft.h's adapter files, and a model as adapters see it: its matrices, and its modules' names in a folder.
 * Immutable once made: any thread may read. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "engine/handles.h"

/* ---- names ---- */

static void fill_place(const weft__engine_base_names *b, const weft__hf_place *from, weft__adapt_place *out)
{
    *out = (weft__adapt_place){.expert = from->expert,
                               .n_experts = from->expert >= 0 ? b->hp.n_experts : 1,
                               .heads = from->rows == 'q'   ? b->hp.n_heads
                                        : from->rows == 'k' ? b->hp.n_kv_heads
                                                            : 0};
    snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, from->name);
}

static int place_of(const void *arg, const char *module, weft__adapt_place *out)
{
    const weft__engine_base_names *b = arg;
    weft__hf_place place;
    if (!weft__hf_place_of(b->hp.arch, module, &place) || place.layer >= b->hp.n_layers ||
        place.expert >= b->hp.n_experts)
        return 0;
    fill_place(b, &place, out);
    return 1;
}

static int module_of(const void *arg, const char *tensor, int32_t expert, char *out, size_t size, weft__adapt_place *at)
{
    const weft__engine_base_names *b = arg;
    weft__hf_place place;
    if (!weft__hf_module_of(b->hp.arch, tensor, expert, out, size, &place)) return 0;
    fill_place(b, &place, at);
    return 1;
}

weft_status weft__engine_base_names_read(const weft__source *src, weft__engine_base_names *out, weft_error *err)
{
    char arch[64];
    weft_status st = weft__source_is_model(src, err);
    if (!st) st = weft__source_string(src, NULL, "general.architecture", 1, arch, sizeof arch, err);
    if (!st) st = weft__hparams_read(src, arch, 0, &out->hp, err);
    out->names = (weft__adapt_names){.arg = out, .arch = out->hp.arch, .place = place_of, .module = module_of};
    return st;
}

/* ---- the matrices of a model ---- */

/* Folders keep the halves of rotated heads apart; a plan that was compiled from one, too. */
static int in_halves(const weft__source *src)
{
    char style[16] = "";
    return !weft__source_string(src, NULL, "weft.rope_style", 0, style, sizeof style, NULL) && !strcmp(style, "halves");
}

weft_status weft__engine_model_base(weft_model *m, weft_error *err)
{
    int halves = in_halves(&m->source);
    return weft__adapt_base_of_graph(m->graph, m->hp.arch, m->source.label, halves ? m->hp.n_heads : 0,
                                     halves ? m->hp.n_kv_heads : 0, &m->base, err);
}

/* ---- what they did to a step ---- */

static int any_nan(const float *x, int32_t n)
{
    int any = 0;
    for (int32_t i = 0; i < n; i++) any |= isnan(x[i]) != 0;
    return any;
}

weft_status weft__engine_explain_adapters(weft_status st, const char *names, const char *what, const float *logits,
                                          int32_t n_vocab, weft_error *err)
{
    if (logits && !any_nan(logits, n_vocab)) return weft_fail(err, st, "%s", what);
    if (!names[0])
        return weft_fail(
            err, WEFT_INTERNAL,
            "%s: the model's file is damaged, or was overwritten while it was in use; restore it and start again",
            what);
    return weft_fail(err, st, "%s: %s; it may be too strong: give a smaller scale, or another adapter", names, what);
}

weft_status weft_session_blame(const weft_session *s, const float *logits, weft_error *err)
{
    const weft_error why = *err;
    return weft__engine_explain_adapters(why.status, s->adapters, why.message, logits, s->model->hp.n_vocab, err);
}

/* ---- files ---- */

#define MAX_BYTES ((uint64_t)16 << 30) /* of values in float32 */

/* The base without its weights: shapes, and of a GGUF file its mark (a folder's norms are not always what a model
 * computes with). */
static weft_status check_shapes(const weft__adapt *a, const weft_file *file, const weft__source *src, const char *arch,
                                weft_error *err)
{
    weft__adapt_base base = {.arch = arch, .label = src->label, .n = a->n_pairs};
    if (file->gguf && !file->plan)
        base.fingerprint = weft__adapt_fingerprint_of_tensors(weft__gguf_tensors(file->gguf));
    base.targets = weft__alloc_zero((size_t)a->n_pairs, sizeof *base.targets);
    if (!base.targets) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the list of matrices");
    for (int32_t i = 0; i < a->n_pairs; i++) {
        const char *name = a->pairs[i].name;
        const weft__tensor_desc *t = src->tensor(src, name);
        if (!t && !strcmp(name, "output.weight")) t = src->tensor(src, "token_embd.weight"); /* tied */
        if (!t || t->n_dims < 2) continue;
        snprintf(base.targets[i].name, sizeof base.targets[i].name, "%s", name);
        base.targets[i].k = (int64_t)t->d[0];
        base.targets[i].n = base.targets[i].n_total = (int64_t)t->d[1];
        base.targets[i].n_experts = (int64_t)t->d[2];
    }
    weft_status st = weft__adapt_check(a, &base, err);
    weft__adapt_base_free(&base);
    return st;
}

weft_status weft_adapter_file_open(const char *path, const weft_file *base, weft_adapter_file **out, weft_error *err)
{
    weft__engine_base_names *names = NULL;
    weft__source src;
    weft_status st = WEFT_OK;
    weft_adapter_file *f = weft__alloc_zero(1, sizeof *f);
    *out = NULL;
    if (f && base) names = weft__alloc_zero(1, sizeof *names);
    if (!f || (base && !names)) {
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory to open an adapter");
        goto done;
    }
    if (base) {
        weft__engine_file_source(base, &src);
        if ((st = weft__engine_base_names_read(&src, names, err))) goto done;
    }
    st = weft__adapt_open(path, names ? &names->names : NULL, MAX_BYTES, &f->a, err);
    if (!st && base) st = check_shapes(f->a, base, &src, names->hp.arch, err);
done:
    weft__free(names);
    if (st) weft_adapter_file_close(&f);
    *out = f;
    return st;
}

void weft_adapter_file_close(weft_adapter_file **file)
{
    weft_adapter_file *f = file ? *file : NULL;
    if (!f) return;
    weft__adapt_close(&f->a);
    weft__free(f->lost);
    weft__free(f);
    *file = NULL;
}

weft_status weft_adapter_file_describe(const weft_adapter_file *f, weft_adapter_info *filled, weft_error *err)
{
    weft_adapter_info own, *out = &own;
    *out = (weft_adapter_info){.size = sizeof *out, .n_matrices = f->a->n_pairs, .is_folder = f->a->peft};
    for (int32_t i = 0; i < f->a->n_pairs; i++) {
        const weft__adapt_pair *p = &f->a->pairs[i];
        if (i == 0 || p->rank < out->min_rank) out->min_rank = p->rank;
        if (p->rank > out->max_rank) out->max_rank = p->rank;
        out->n_dora += p->magnitude != NULL;
        out->n_params += (uint64_t)(p->n_experts * p->rank * (p->k + p->n) + weft__adapt_n_magnitudes(p));
    }
    snprintf(out->arch, sizeof out->arch, "%s", f->a->arch);
    snprintf(out->id, sizeof out->id, "%016llx%016llx", (unsigned long long)f->a->id.word[0],
             (unsigned long long)f->a->id.word[1]);
    return weft__params_write(WEFT__PARAMS_TYPE(weft_adapter_info), filled, out, err);
}

weft_status weft_adapter_file_matrix(const weft_adapter_file *f, int32_t index, weft_adapter_matrix *out,
                                     weft_error *err)
{
    if (index < 0 || index >= f->a->n_pairs)
        return weft_fail(err, WEFT_ARGUMENT, "matrix %d of %d", index, f->a->n_pairs);
    const weft__adapt_pair *p = &f->a->pairs[index];
    const weft_adapter_matrix own = {.size = sizeof own,
                                     .rank = p->rank,
                                     .k = p->k,
                                     .n = p->n,
                                     .n_experts = p->n_experts,
                                     .scale = p->scale,
                                     .dora = p->magnitude != NULL,
                                     .name = p->name,
                                     .rank_before = f->lost ? f->lost[index].rank_before : p->rank,
                                     .error = f->lost ? f->lost[index].error : 0};
    return weft__params_write(WEFT__PARAMS_TYPE(weft_adapter_matrix), out, &own, err);
}

/* ---- writing and merging ---- */

static int ends_in_gguf(const char *path)
{
    size_t n = strlen(path);
    return n > 5 && !strcasecmp(path + n - 5, ".gguf");
}

weft_status weft_adapter_file_save(const weft_adapter_file *f, const weft_file *base, const char *path, weft_error *err)
{
    weft__engine_base_names *names = NULL;
    weft__source src;
    weft_status st = WEFT_OK;
    if (!base && (!ends_in_gguf(path) || !f->a->arch[0]))
        return weft_fail(err, WEFT_ARGUMENT, "%s: the base model is needed to write it, for its names", path);
    if (base) {
        if (!(names = weft__alloc_zero(1, sizeof *names)))
            return weft_fail(err, WEFT_NO_MEMORY, "no memory to write an adapter");
        weft__engine_file_source(base, &src);
        st = weft__engine_base_names_read(&src, names, err);
    }
    if (!st && ends_in_gguf(path)) st = weft__adapt_write_gguf(f->a, names ? names->hp.arch : f->a->arch, path, err);
    else if (!st) st = weft__adapt_write_peft(f->a, &names->names, path, err);
    weft__free(names);
    return st ? weft_fail_within(err, st, "%s", path) : WEFT_OK;
}

_Static_assert((int)WEFT_MERGE_CAT == WEFT__ADAPT_CAT && (int)WEFT_MERGE_LINEAR == WEFT__ADAPT_LINEAR &&
                   (int)WEFT_MERGE_SLERP == WEFT__ADAPT_SLERP && (int)WEFT_MERGE_TIES == WEFT__ADAPT_TIES &&
                   (int)WEFT_MERGE_DARE == WEFT__ADAPT_DARE,
               "weft.h has the room's methods");

void(weft_merge_params_default)(weft_merge_params *p)
{
    *p = (weft_merge_params){.size = sizeof *p, .method = WEFT_MERGE_CAT, .density = 1};
}

void weft_merge_params_init(weft_merge_params *params, uint32_t size)
{
    weft_merge_params own;
    (weft_merge_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_merge_params), params, size, &own);
}

weft_status weft_adapter_file_merge(const weft_adapter_use *uses, int32_t n, const weft_merge_params *params,
                                    weft_adapter_file **out, weft_error *err)
{
    enum { MOST = 64 };
    weft__adapt_use stack[MOST];
    weft_merge_params own, *p = &own;
    *out = NULL;
    weft_merge_params_default(p);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_merge_params), p, params, err);
    if (st) return st;
    weft__adapt_mix mix = {(weft__adapt_method)p->method, p->density, p->seed};
    if (p->method > WEFT_MERGE_DARE)
        return weft_fail(err, WEFT_ARGUMENT, "there is no method %u to merge adapters", p->method);
    if (n < 1 || n > MOST) return weft_fail(err, WEFT_ARGUMENT, "%d adapters to merge; it must be 1 to %d", n, MOST);
    for (int32_t i = 0; i < n; i++) stack[i] = (weft__adapt_use){uses[i].file->a, uses[i].scale};
    weft_adapter_file *f = weft__alloc_zero(1, sizeof *f);
    if (!f) return weft_fail(err, WEFT_NO_MEMORY, "no memory to merge adapters");
    st = weft__adapt_merge(stack, n, &mix, &f->a, err);
    if (st) weft_adapter_file_close(&f);
    *out = f;
    return st;
}

weft_status weft_adapter_file_compress(const weft_adapter_file *file, int32_t rank, double keep,
                                       weft_adapter_file **out, weft_error *err)
{
    const weft__adapt_cut cut = {.rank = rank, .keep = keep};
    weft_adapter_file *f = weft__alloc_zero(1, sizeof *f);
    *out = NULL;
    if (f) f->lost = weft__alloc_zero((size_t)file->a->n_pairs + 1, sizeof *f->lost);
    weft_status st = f && f->lost ? weft__adapt_compress(file->a, &cut, &f->a, f->lost, err)
                                  : weft_fail(err, WEFT_NO_MEMORY, "no memory to compress an adapter");
    if (st) weft_adapter_file_close(&f);
    *out = f;
    return st;
}
