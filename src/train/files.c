// SPDX-License-Identifier: Apache-2.0
/* files.c: checkpoints, adapters and models as GGUF files, each complete or absent (train.h).
 *
 * A checkpoint holds every parameter under its name, with .m and .v behind it what the optimizer keeps, and in its
 * metadata what it belongs to, the step, the caller's state, and a checksum of the numbers: it is refused as a whole,
 * before anything changes. */
#include <stdio.h>
#include <string.h>

#include "adapt/adapt.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "format/gguf_write.h"
#include "train/optimizer.h"
#include "train/params.h"

static weft_status declare(weft__gguf_writer *w, const struct weft__trainer_weight *p, const char *suffix,
                           weft_error *err)
{
    char name[sizeof p->name + 8];
    uint64_t d[2] = {(uint64_t)p->d[0], (uint64_t)p->d[1]};
    snprintf(name, sizeof name, "%s%s", p->name, suffix);
    return weft__gguf_declare(w, name, WEFT_F32, p->n_dims, d, err);
}

/* Closes a writer: finished when all went well, without a trace otherwise. */
static weft_status finish(weft__gguf_writer **w, weft_status st, weft_error *err)
{
    if (!st) st = weft__gguf_finish(*w, err);
    weft__gguf_writer_destroy(w);
    return st;
}

/* ---- checkpoints ---- */

enum { ASIDE = 3, KEPT_MOST };
static const char *const SUFFIXES[] = {"", ".m", ".v", ".aside"};

/* Which of them are kept, a bit each. */
static unsigned kept_of(const weft__trainer *t, int aside)
{
    return (weft__train_optimizer_kept(t->o.optimizer) == 1 ? 3u : 7u) | (aside ? 1u << ASIDE : 0);
}

static float *kept(const weft__trainer *t, const struct weft__trainer_weight *p, int i)
{
    return i == 0 ? p->data : i == 1 ? p->m : i == 2 ? p->v : t->aside + (p->data - t->data);
}

static uint64_t checksum(const weft__trainer *t)
{
    const unsigned which = kept_of(t, t->has_aside);
    weft__hash_state h;
    weft__hash_begin(&h);
    for (int i = 0; i < KEPT_MOST; i++)
        for (int32_t j = 0; which >> i & 1 && j < t->n_params; j++)
            weft__hash_add(&h, kept(t, &t->params[j], i), (size_t)t->params[j].n * sizeof(float));
    return weft__hash_end(&h);
}

static weft_status put_head(weft__trainer *t, weft__gguf_writer *w, const void *state, size_t n_state, weft_error *err)
{
    weft_status st;
    if ((st = weft__gguf_put_string(w, "general.type", "checkpoint", 10, err)) ||
        (st = weft__gguf_put_string(w, "general.architecture", t->hp.arch, strlen(t->hp.arch), err)) ||
        (st = weft__gguf_put_u32(w, "weft.train.optimizer", (uint32_t)t->o.optimizer, err)) ||
        (st = weft__gguf_put_u32(w, "weft.train.lora_rank", (uint32_t)t->o.lora_rank, err)) ||
        (st = weft__gguf_put_f32(w, "weft.train.lora_scale", t->lora_scale, err)) ||
        (st = weft__gguf_put_u64(w, "weft.train.step", (uint64_t)t->step, err)) ||
        (st = weft__gguf_put_u64(w, "weft.train.checksum", checksum(t), err)) ||
        (st = weft__gguf_put_u64(w, "weft.train.state_checksum", weft__hash(state, n_state), err)))
        return st;
    return weft__gguf_put_array(w, "weft.train.state", WEFT__GGUF_U8, state, n_state, err);
}

weft_status weft__trainer_save(weft__trainer *t, const char *path, const void *state, size_t n_state, weft_error *err)
{
    weft__gguf_writer *w;
    if (t->kind != 0)
        return weft_fail(err, WEFT_STATE, "%s: a checkpoint is written between steps; call weft__trainer_step first",
                         path);
    const unsigned which = kept_of(t, t->has_aside);
    weft_status st = weft__gguf_writer_create(path, 64, &w, err);
    if (st) return st;
    st = put_head(t, w, state, n_state, err);
    for (int i = 0; i < KEPT_MOST; i++)
        for (int32_t j = 0; which >> i & 1 && !st && j < t->n_params; j++)
            st = declare(w, &t->params[j], SUFFIXES[i], err);
    if (!st) st = weft__gguf_begin(w, err);
    for (int i = 0; i < KEPT_MOST; i++)
        for (int32_t j = 0; which >> i & 1 && !st && j < t->n_params; j++)
            st = weft__gguf_write(w, kept(t, &t->params[j], i), (size_t)t->params[j].n * sizeof(float), err);
    return finish(&w, st, err);
}

static weft_status check_head(const weft__trainer *t, const weft__gguf *g, const char *path, uint64_t *step,
                              weft_error *err)
{
    weft__gguf_str type = {0}, arch = {0};
    uint32_t optimizer, rank;
    float scale;
    weft_status st;
    if ((st = weft__gguf_string(g, "general.type", &type, err)) ||
        (st = weft__gguf_string(g, "general.architecture", &arch, err)) ||
        (st = weft__gguf_u32(g, "weft.train.optimizer", &optimizer, err)) ||
        (st = weft__gguf_u32(g, "weft.train.lora_rank", &rank, err)) ||
        (st = weft__gguf_f32(g, "weft.train.lora_scale", &scale, err)) ||
        (st = weft__gguf_u64(g, "weft.train.step", step, err)))
        return st;
    if (type.len != 10 || memcmp(type.data, "checkpoint", 10))
        return weft_fail(err, WEFT_FORMAT, "%s is no checkpoint", path);
    if (arch.len != strlen(t->hp.arch) || memcmp(arch.data, t->hp.arch, arch.len))
        return weft_fail(err, WEFT_ARGUMENT, "%s: a checkpoint of architecture '%.*s', the model is '%s'", path,
                         (int)(arch.len < 64 ? arch.len : 64), arch.data, t->hp.arch);
    if (optimizer != (uint32_t)t->o.optimizer)
        return weft_fail(err, WEFT_ARGUMENT, "%s was made with another optimizer", path);
    if (rank != (uint32_t)t->o.lora_rank || scale != t->lora_scale)
        return weft_fail(err, WEFT_ARGUMENT, "%s was made with LoRA rank %u and scale %g; here they are %d and %g",
                         path, rank, (double)scale, t->o.lora_rank, (double)t->lora_scale);
    if (*step > (uint64_t)INT64_MAX)
        return weft_fail(err, WEFT_FORMAT, "%s: step %llu", path, (unsigned long long)*step);
    return WEFT_OK;
}

/* The numbers of parameter j and of what the optimizer keeps for it, in the file's map; aligned, since the file is. */
static weft_status find_kept(const weft__trainer *t, const weft__gguf *g, const char *path, int32_t j, int i,
                             const float **out, weft_error *err)
{
    const struct weft__trainer_weight *p = &t->params[j];
    const weft__tensor_desc *d;
    char name[sizeof p->name + 8];
    snprintf(name, sizeof name, "%s%s", p->name, SUFFIXES[i]);
    weft_status st = weft__gguf_tensor(g, name, &d, err);
    if (st) return st;
    *out = weft__tensor_data(d);
    if (d->dtype == WEFT_F32 && d->d[0] == (uint64_t)p->d[0] && d->d[1] == (uint64_t)p->d[1] &&
        d->n_elems == (uint64_t)p->n)
        return WEFT_OK;
    return weft_fail(err, WEFT_ARGUMENT, "%s: tensor %s has another shape than here", path, name);
}

static weft_status check_numbers(const weft__trainer *t, const weft__gguf *g, const char *path, unsigned which,
                                 weft_error *err)
{
    const size_t n = (size_t)__builtin_popcount(which) * (size_t)t->n_params;
    uint64_t sum;
    const float *x;
    weft__hash_state h;
    weft_status st = weft__gguf_u64(g, "weft.train.checksum", &sum, err);
    if (!st && weft__gguf_tensors(g)->n != n)
        st = weft_fail(err, WEFT_ARGUMENT,
                       "%s holds %zu tensors, not the %zu of this training: were the LoRA targets others?", path,
                       weft__gguf_tensors(g)->n, n);
    weft__hash_begin(&h);
    for (int i = 0; i < KEPT_MOST; i++) {
        for (int32_t j = 0; which >> i & 1 && !st && j < t->n_params; j++) {
            if (!(st = find_kept(t, g, path, j, i, &x, err))) weft__hash_add(&h, x, (size_t)t->params[j].n * sizeof *x);
        }
    }
    if (!st && weft__hash_end(&h) != sum)
        st = weft_fail(err, WEFT_FORMAT, "%s is damaged: its numbers do not have the checksum that it states", path);
    return st;
}

static weft_status copy_state(const weft__gguf *g, const char *path, void **state, size_t *n_state, weft_error *err)
{
    const weft__gguf_list *list;
    uint64_t sum;
    weft_status st;
    if ((st = weft__gguf_u64(g, "weft.train.state_checksum", &sum, err)) ||
        (st = weft__gguf_array(g, "weft.train.state", &list, err)))
        return st;
    if (list->type != WEFT__GGUF_U8 || weft__hash(list->data, (size_t)list->n) != sum)
        return weft_fail(err, WEFT_FORMAT,
                         "%s is damaged: the state of its data does not have the checksum that it states", path);
    *n_state = (size_t)list->n;
    *state = weft__alloc(*n_state);
    if (!*state) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for the state of its data", path);
    if (*n_state) memcpy(*state, list->data, *n_state);
    return WEFT_OK;
}

/* Were parameters put aside when it was written? */
static int has_aside(const weft__trainer *t, const weft__gguf *g)
{
    char name[sizeof t->params->name + 8];
    snprintf(name, sizeof name, "%s%s", t->params[0].name, SUFFIXES[ASIDE]);
    return weft__tensor_find(weft__gguf_tensors(g), name) != NULL;
}

weft_status weft__trainer_load(weft__trainer *t, const char *path, void **state, size_t *n_state, weft_error *err)
{
    weft__gguf *g;
    uint64_t step;
    *state = NULL;
    *n_state = 0;
    if (t->kind != 0) return weft_fail(err, WEFT_STATE, "%s: a checkpoint is read between steps", path);
    weft_status st = weft__gguf_open(path, &g, err);
    if (st) return st;
    const int aside = has_aside(t, g);
    const unsigned which = kept_of(t, aside);
    if (!(st = check_head(t, g, path, &step, err)) && !(st = check_numbers(t, g, path, which, err)) &&
        (!aside || !(st = weft__train_aside_room(t, err))))
        st = copy_state(g, path, state, n_state, err);
    for (int i = 0; !st && i < KEPT_MOST; i++) {
        for (int32_t j = 0; which >> i & 1 && j < t->n_params; j++) {
            const float *x = NULL;
            (void)find_kept(t, g, path, j, i, &x, NULL); /* found before */
            memcpy(kept(t, &t->params[j], i), x, (size_t)t->params[j].n * sizeof *x);
        }
    }
    if (!st) {
        t->step = (int64_t)step;
        t->has_aside = aside;
    }
    weft__gguf_close(&g);
    return st;
}

/* ---- adapters ---- */

/* Readers divide alpha by the rank, in double: 1 where that is not the scale that was trained with, so that each pair
 * states it (NAME.lora_scale, as src/adapt reads it). Alpha 0 means a scale of 1 to them. */
static int own_scale(const weft__trainer *t, float alpha)
{
    return alpha == 0 || (float)((double)alpha / t->o.lora_rank) != t->lora_scale;
}

/* The scale of the pair whose A is `a`: NAME.lora_a. */
static weft_status declare_scale(weft__gguf_writer *w, const struct weft__trainer_weight *a, weft_error *err)
{
    char name[sizeof a->name + 8];
    snprintf(name, sizeof name, "%.*s.lora_scale", (int)(strlen(a->name) - strlen(".lora_a")), a->name);
    return weft__gguf_declare(w, name, WEFT_F32, 1, (uint64_t[]){1}, err);
}

int32_t weft__train_heads_in_halves(const weft__trainer *t, const struct weft__trainer_weight *p)
{
    char style[16] = "";
    if (weft__source_string(&t->src, NULL, "weft.rope_style", 0, style, sizeof style, NULL) || strcmp(style, "halves"))
        return 0;
    return strstr(p->name, ".attn_q.weight.lora_b")   ? t->hp.n_heads
           : strstr(p->name, ".attn_k.weight.lora_b") ? t->hp.n_kv_heads
                                                      : 0;
}

/* Rows in GGUF's order. */
static weft_status write_half(const weft__trainer *t, weft__gguf_writer *w, const struct weft__trainer_weight *p,
                              weft_error *err)
{
    const int32_t heads = weft__train_heads_in_halves(t, p);
    const int64_t width = p->d[0], n = heads ? p->d[1] : 1;
    weft_status st = WEFT_OK;
    if (!heads) return weft__gguf_write(w, p->data, (size_t)p->n * sizeof(float), err);
    for (int64_t r = 0; r < n && !st; r++)
        st = weft__gguf_write(w, p->data + weft__adapt_folder_row(r, n / heads) * width, (size_t)width * sizeof(float),
                              err);
    return st;
}

weft_status weft__trainer_write_adapter(weft__trainer *t, const char *path, const char *name, weft_error *err)
{
    weft__gguf_writer *w;
    if (t->o.lora_rank == 0)
        return weft_fail(err, WEFT_STATE, "%s: all weights were trained; there is no adapter, write the model", path);
    weft_status st = weft__gguf_writer_create(path, 0, &w, err);
    if (st) return st;
    const float alpha = t->lora_scale * (float)t->o.lora_rank;
    const int own = own_scale(t, alpha);
    if (!(st = weft__gguf_put_string(w, "general.architecture", t->hp.arch, strlen(t->hp.arch), err)) &&
        !(st = weft__gguf_put_string(w, "general.type", "adapter", 7, err)) &&
        !(st = weft__gguf_put_string(w, "adapter.type", "lora", 4, err)) &&
        !(st = weft__gguf_put_f32(w, "adapter.lora.alpha", alpha, err)) &&
        !(st = weft__adapt_put_fingerprint(w, weft__adapt_fingerprint_of_graph(t->graph), err)))
        st = weft__gguf_put_string(w, "general.name", name, strlen(name), err);
    for (int32_t j = 0; !st && j < t->n_params; j++) st = declare(w, &t->params[j], "", err);
    for (int32_t j = 0; !st && own && j < t->n_pairs; j++) st = declare_scale(w, &t->params[t->pairs[j].a], err);
    if (!st) st = weft__gguf_begin(w, err);
    for (int32_t j = 0; !st && j < t->n_params; j++) st = write_half(t, w, &t->params[j], err);
    for (int32_t j = 0; !st && own && j < t->n_pairs; j++)
        st = weft__gguf_write(w, &t->lora_scale, sizeof t->lora_scale, err);
    return finish(&w, st, err);
}

/* ---- models ---- */

/* A tensor that did not learn (frequencies of rope), as it is. */
static weft_status write_frozen(weft__gguf_writer *w, const weft__tensor_desc *d, weft_error *err)
{
    return weft__gguf_write(w, weft__tensor_data(d), (size_t)d->n_bytes, err);
}

weft_status weft__trainer_write_model(weft__trainer *t, const weft__gguf *meta, const char *path, weft_error *err)
{
    weft__gguf_writer *w;
    const weft__tensor_set *set = t->src.tensors;
    if (t->o.lora_rank > 0)
        return weft_fail(err, WEFT_STATE, "%s: the base is frozen; write the adapter, and merge it if need be", path);
    if (!set) return weft_fail(err, WEFT_UNSUPPORTED, "%s: the tensors of %s cannot be listed", path, t->src.label);
    weft_status st = weft__gguf_writer_create(path, 0, &w, err);
    if (st) return st;
    for (size_t i = 0; !st && i < weft__gguf_n_meta(meta); i++) {
        const weft__gguf_entry *e = weft__gguf_meta(meta, i);
        if (strcmp(e->key, "general.alignment") && strcmp(e->key, "general.file_type") && strncmp(e->key, "split.", 6))
            st = weft__gguf_put_raw(w, e->key, e->type, e->raw, (size_t)e->raw_bytes, err);
    }
    if (!st) st = weft__gguf_put_u32(w, "general.file_type", 0 /* all F32 */, err);
    for (size_t i = 0; !st && i < set->n; i++) {
        const weft__tensor_desc *d = &set->items[i];
        int32_t p = weft__train_param_find(t, d->name);
        st = p >= 0 ? declare(w, &t->params[p], "", err)
                    : weft__gguf_declare(w, d->name, d->dtype, d->n_dims, d->d, err);
    }
    if (!st) st = weft__gguf_begin(w, err);
    for (size_t i = 0; !st && i < set->n; i++) {
        int32_t p = weft__train_param_find(t, set->items[i].name);
        if (p < 0) st = write_frozen(w, &set->items[i], err);
        else st = weft__gguf_write(w, t->params[p].data, (size_t)t->params[p].n * sizeof(float), err);
    }
    return finish(&w, st, err);
}
