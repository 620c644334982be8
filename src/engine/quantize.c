// SPDX-License-Identifier: Apache-2.0
/* quantize.c: weft_quantize: a GGUF file to another with its matrices in fewer bits, and weft_adapter_apply, which
 * changes them on the way. Streams: what is held at a time is a few megabytes of rows, whatever the tensor. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "engine/handles.h"
#include "engine/imatrix.h"
#include "format/gguf_write.h"
#include "format/plan_file.h"
#include "mem/mem.h"
#include "model/beyond.h"
#include "model/quant_mix.h"
#include "quant/encode.h"
#include "quant/finite.h"
#include "quant/quant.h"

enum { CHUNK_ELEMS = 1 << 20, COPY_BYTES = 16 << 20 };

struct plan_item {
    const weft__tensor_desc *from;
    const char *name; /* of what is written: its own, but for an output head that was tied */
    uint32_t to;
    const weft_lora *change; /* merged into it, or NULL */
};

struct quantize_job {
    weft__gguf *in;
    weft__gguf_writer *out;
    weft__imatrix *imatrix;
    weft__pool *pool;
    struct plan_item *items;
    size_t n_items;
    const weft__adapt_use *uses; /* [n_uses] adapters to be merged into the matrices */
    int32_t n_uses;
    weft__adapt_base base; /* its targets are the items */
    weft__adapt_woven woven;
    uint64_t done, total;      /* bytes of the source */
    weft__model_beyond beyond; /* values that their types cannot hold */
    int32_t n_important;       /* matrices that are encoded by their importance */
    const weft_quantize_params *params;
};

/* One chunk of rows, shared by the threads of the pool. */
struct chunk {
    const uint8_t *src;
    uint8_t *dst;
    float *floats; /* [n_threads][k] */
    uint64_t src_row, dst_row;
    int64_t k, n_rows;
    uint32_t from, to;
    const weft_lora *change; /* NULL: none */
    int64_t first;           /* row of the tensor, over all experts */
    int64_t rows_per_expert;
    int is_table; /* the embedding */
    const float *importance;
    weft__quant_beyond of_tensor;
    weft__quant_beyond *beyond; /* [n_threads] */
    weft_status *status;        /* [n_threads] */
    weft_error *errors;         /* [n_threads] */
};

void(weft_quantize_params_default)(weft_quantize_params *p)
{
    *p = (weft_quantize_params){.size = sizeof *p};
}

void weft_quantize_params_init(weft_quantize_params *params, uint32_t size)
{
    weft_quantize_params own;
    (weft_quantize_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_quantize_params), params, size, &own);
}

const char *weft_quantize_types(void)
{
    return weft__mix_names();
}

/* gain * w + scale * B A, of one row; gains of columns are the embedding's. */
static void change_row(const weft_lora *x, int64_t k, int64_t rows_per_expert, int of_columns, int64_t row, float *w)
{
    int64_t expert = row / rows_per_expert;
    const float *a = (const float *)x->a + expert * x->rank * k, *b = (const float *)x->b + row * x->rank;
    if (x->gain)
        for (int64_t i = 0; i < k; i++) w[i] *= x->gain[of_columns ? i : row];
    for (int32_t j = 0; j < x->rank; j++) {
        const float f = x->scale * b[j];
        for (int64_t i = 0; i < k; i++) w[i] += f * a[j * k + i];
    }
}

static void encode_slice(void *arg, int thread, int n_threads)
{
    struct chunk *c = arg;
    float *row = c->floats + (size_t)thread * (size_t)c->k;
    int64_t first = c->n_rows * thread / n_threads, end = c->n_rows * (thread + 1) / n_threads;
    c->status[thread] = WEFT_OK;
    for (int64_t r = first; r < end && !c->status[thread]; r++) {
        weft__quant_decode_row(c->from, c->src + (uint64_t)r * c->src_row, row, c->k);
        if (c->change) change_row(c->change, c->k, c->rows_per_expert, c->is_table, c->first + r, row);
        c->status[thread] = weft__quant_encode_row(c->to, row, c->dst + (uint64_t)r * c->dst_row, c->first + r, c->k,
                                                   c->importance, &c->beyond[thread], &c->errors[thread]);
    }
}

static weft_status report_progress(struct quantize_job *j, const char *name, weft_error *err)
{
    if (!j->params->progress) return WEFT_OK;
    return j->params->progress(j->params->progress_arg, name, (double)j->done / (double)j->total)
               ? weft_fail(err, WEFT_CANCELLED, "cancelled")
               : WEFT_OK;
}

static weft_status encode_chunk(struct quantize_job *j, struct chunk *c, weft_error *err)
{
    const int n_threads = weft__pool_size(j->pool);
    memset(c->beyond, 0, (size_t)n_threads * sizeof *c->beyond);
    weft__pool_run(j->pool, encode_slice, c);
    for (int t = 0; t < n_threads; t++) {
        if (c->status[t]) return weft_fail(err, c->status[t], "%s", c->errors[t].message);
        weft__quant_beyond_add(&c->of_tensor, &c->beyond[t]);
    }
    return weft__gguf_write(j->out, c->dst, (size_t)((uint64_t)c->n_rows * c->dst_row), err);
}

/* Rows [first, first + n_rows) of one matrix (of one expert), which share an importance vector. */
static weft_status convert_rows(struct quantize_job *j, struct chunk *c, const weft__tensor_desc *t, int64_t first,
                                int64_t n_rows, weft_error *err)
{
    int64_t step = CHUNK_ELEMS / c->k > 0 ? CHUNK_ELEMS / c->k : 1;
    weft_status st = WEFT_OK;
    for (int64_t r = 0; r < n_rows && !st; r += step) {
        c->n_rows = n_rows - r < step ? n_rows - r : step;
        c->src = (const uint8_t *)weft__tensor_data(t) + (uint64_t)(first + r) * c->src_row;
        c->first = first + r;
        if ((st = encode_chunk(j, c, err))) break;
        j->done += (uint64_t)c->n_rows * c->src_row;
        st = report_progress(j, t->name, err);
    }
    return st;
}

static weft_status convert_tensor(struct quantize_job *j, const struct plan_item *item, weft_error *err)
{
    const weft__tensor_desc *t = item->from;
    uint32_t to = item->to;
    int n_threads = weft__pool_size(j->pool);
    struct chunk c = {.from = t->dtype,
                      .to = to,
                      .k = (int64_t)t->d[0],
                      .src_row = weft__quant_row_bytes(t->dtype, (int64_t)t->d[0]),
                      .dst_row = weft__quant_row_bytes(to, (int64_t)t->d[0]),
                      .change = item->change,
                      .rows_per_expert = (int64_t)t->d[1],
                      .is_table = weft__adapt_is_table(item->name)};
    int64_t step = CHUNK_ELEMS / c.k > 0 ? CHUNK_ELEMS / c.k : 1;
    uint64_t n_experts = t->d[2] * t->d[3];
    weft_status st = WEFT_OK;
    if (!weft__quant_decoder(t->dtype))
        return weft_fail(err, WEFT_UNSUPPORTED, "tensor %s: type %s cannot be converted", t->name,
                         weft_dtype_describe(t->dtype).name);
    c.dst = weft__alloc_array((size_t)step, (size_t)c.dst_row);
    c.floats = weft__alloc_array((size_t)n_threads * (size_t)c.k, sizeof *c.floats);
    c.status = weft__alloc_zero((size_t)n_threads, sizeof *c.status);
    c.errors = weft__alloc_zero((size_t)n_threads, sizeof *c.errors);
    c.beyond = weft__alloc_zero((size_t)n_threads, sizeof *c.beyond);
    if (!c.dst || !c.floats || !c.status || !c.errors || !c.beyond)
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory to convert %s", t->name);
    for (uint64_t e = 0; e < n_experts && !st; e++) {
        st = weft__imatrix_get(j->imatrix, t->name, e, n_experts, c.k, &c.importance, err);
        if (!st) st = convert_rows(j, &c, t, (int64_t)(e * t->d[1]), (int64_t)t->d[1], err);
    }
    if (!st) weft__model_beyond_note(&j->beyond, t->name, to, &c.of_tensor);
    weft__free(c.beyond);
    weft__free(c.errors);
    weft__free(c.status);
    weft__free(c.floats);
    weft__free(c.dst);
    return st ? weft_fail_within(err, st, "tensor %s", t->name) : WEFT_OK;
}

/* A weight that is none makes a model that says nothing; what is not copied is looked at where it is encoded. */
static weft_status check_piece(const weft__tensor_desc *t, const uint8_t *data, uint64_t at, uint64_t n,
                               weft_error *err)
{
    const uint64_t bytes = weft_dtype_describe(t->dtype).block_bytes;
    weft_status st = weft__quant_check_finite(t->dtype, data + at, at / bytes, n / bytes, t->d[0], t->n_dims == 1, err);
    return st ? weft_fail_within(err, st, "tensor %s", t->name) : WEFT_OK;
}

/* In pieces, between which it can be cancelled: one tensor may be gigabytes. */
static weft_status copy_tensor(struct quantize_job *j, const weft__tensor_desc *t, weft_error *err)
{
    const uint8_t *data = weft__tensor_data(t);
    weft_status st = WEFT_OK;
    for (uint64_t at = 0, n; !st && at < t->n_bytes; at += n) {
        n = t->n_bytes - at < COPY_BYTES ? t->n_bytes - at : COPY_BYTES;
        if ((st = check_piece(t, data, at, n, err))) break;
        st = weft__gguf_write(j->out, data + at, (size_t)n, err);
        j->done += n;
        if (!st) st = report_progress(j, t->name, err);
    }
    return st;
}

/* Everything of the source but what describes its types. */
static weft_status put_metadata(struct quantize_job *j, const weft__mix *mix, weft_error *err)
{
    weft_status st = WEFT_OK;
    if (!mix) return weft__gguf_put_all(j->out, j->in, err);
    for (size_t i = 0; i < weft__gguf_n_meta(j->in) && !st; i++) {
        const weft__gguf_entry *e = weft__gguf_meta(j->in, i);
        if (!strcmp(e->key, "general.alignment") || !strcmp(e->key, "general.file_type") ||
            !strcmp(e->key, "general.quantization_version") || !strncmp(e->key, "split.", 6))
            continue;
        st = weft__gguf_put_raw(j->out, e->key, e->type, e->raw, (size_t)e->raw_bytes, err);
    }
    if (!st) st = weft__gguf_put_u32(j->out, "general.quantization_version", 2, err);
    return st ? st : weft__gguf_put_u32(j->out, "general.file_type", weft__mix_file_type(mix), err);
}

/* Do the adapters change the embedding or the output head? */
static int changes_table(const struct quantize_job *j)
{
    for (int32_t u = 0; u < j->n_uses; u++)
        for (int32_t i = 0; i < j->uses[u].adapter->n_pairs; i++) {
            const char *name = j->uses[u].adapter->pairs[i].name;
            if (weft__adapt_is_table(name) || !strcmp(name, "output.weight")) return 1;
        }
    return 0;
}

/* A mix means at most six types for a model, each with two that stand in for it. */
static void count_fallback(weft_quantize_result *r, uint32_t wanted, uint32_t taken)
{
    weft_quantize_fallback *f = r->fallbacks, *end = f + sizeof r->fallbacks / sizeof *f;
    while (f < end && f->n_tensors > 0 && (f->wanted != wanted || f->taken != taken)) f++;
    assert(f < end);
    *f = (weft_quantize_fallback){wanted, taken, f->n_tensors + 1};
    r->n_fallback++;
}

static weft_status plan_item(struct quantize_job *j, const weft__mix *mix, const weft__mix_model *m,
                             const weft__tensor_desc *t, const char *name, weft_quantize_result *result,
                             weft_error *err)
{
    uint32_t wanted = t->dtype;
    uint32_t to = mix ? weft__mix_type(mix, m, name, (int)t->n_dims, (int64_t)t->d[0], t->dtype, &wanted) : t->dtype;
    j->items[j->n_items++] = (struct plan_item){.from = t, .name = name, .to = to};
    j->total += t->n_bytes;
    const int by_importance = j->imatrix && to != t->dtype && weft_dtype_describe(to).block_elems > 1;
    j->n_important += by_importance && weft__imatrix_has(j->imatrix, t->name);
    result->n_tensors++;
    result->n_quantized += to != t->dtype;
    if (wanted != to) count_fallback(result, wanted, to);
    result->bytes_before += t->n_bytes;
    result->bytes_after += weft__quant_row_bytes(to, (int64_t)t->d[0]) * (t->n_elems / t->d[0]);
    return weft__gguf_declare(j->out, name, to, t->n_dims, t->d, err);
}

static weft_status plan_types(struct quantize_job *j, const weft__mix *mix, const char *label,
                              weft_quantize_result *result, weft_error *err)
{
    const weft__tensor_set *set = weft__gguf_tensors(j->in);
    weft__source src;
    char arch[64];
    weft__mix_model m = {.pure = j->params->pure, .has_imatrix = j->imatrix != NULL};
    weft_status st;
    weft__source_gguf(j->in, label, &src);
    if ((st = weft__source_string(&src, NULL, "general.architecture", 1, arch, sizeof arch, err))) return st;
    /* Absent keys leave zeros, and the rules that need them do not apply. */
    if ((st = weft__source_i32(&src, arch, ".block_count", 0, 0, INT32_MAX, &m.n_layers, err)) ||
        (st = weft__source_i32(&src, arch, ".attention.head_count", 0, 0, INT32_MAX, &m.n_heads, err)) ||
        (st = weft__source_i32(&src, arch, ".attention.head_count_kv", 0, 0, INT32_MAX, &m.n_kv_heads, err)) ||
        (st = weft__source_i32(&src, arch, ".expert_count", 0, 0, INT32_MAX, &m.n_experts, err)))
        return st;
    m.tied = !weft__tensor_find(set, "output.weight");
    if (!(j->items = weft__alloc_array(set->n + 1, sizeof *j->items)))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a list of %zu tensors", set->n);
    for (size_t i = 0; i < set->n && !st; i++)
        st = plan_item(j, mix, &m, &set->items[i], set->items[i].name, result, err);
    const weft__tensor_desc *table = weft__tensor_find(set, "token_embd.weight");
    if (!st && m.tied && table && changes_table(j)) st = plan_item(j, mix, &m, table, "output.weight", result, err);
    return st;
}

/* An importance matrix that changes nothing is that of another model, or given in vain. */
static weft_status check_importance(const struct quantize_job *j, const weft__mix *mix, weft_error *err)
{
    const weft__tensor_set *set = weft__gguf_tensors(j->in);
    char shown[WEFT__NAME_SHOW];
    if (!j->imatrix || j->n_important) return WEFT_OK;
    for (size_t i = 0; i < weft__imatrix_size(j->imatrix); i++)
        if (weft__tensor_find(set, weft__imatrix_name(j->imatrix, i)))
            return weft_fail(
                err, WEFT_ARGUMENT,
                "%s: no matrix that it knows is encoded in blocks here%s; leave it out, or choose another type",
                j->params->imatrix, mix ? "" : " anew");
    const char *name = weft__imatrix_name(j->imatrix, 0);
    return weft_fail(err, WEFT_ARGUMENT, "%s: none of its %zu tensors (%s, ...) is in the model: it is of another one",
                     j->params->imatrix, weft__imatrix_size(j->imatrix), weft__name_show(shown, name, strlen(name)));
}

/* What the adapters change about each item. */
static weft_status plan_changes(struct quantize_job *j, const char *label, weft_error *err)
{
    weft_status st = WEFT_OK;
    char arch[64];
    weft__source src;
    if (j->n_uses == 0) return WEFT_OK;
    weft__source_gguf(j->in, label, &src);
    if ((st = weft__source_string(&src, NULL, "general.architecture", 1, arch, sizeof arch, err))) return st;
    j->base = (weft__adapt_base){.arch = arch,
                                 .label = label,
                                 .fingerprint = weft__adapt_fingerprint_of_tensors(weft__gguf_tensors(j->in)),
                                 .n = (int32_t)j->n_items};
    j->base.targets = weft__alloc_zero(j->n_items, sizeof *j->base.targets);
    if (!j->base.targets) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a list of %zu tensors", j->n_items);
    for (size_t i = 0; i < j->n_items; i++) {
        const weft__tensor_desc *t = j->items[i].from;
        weft__adapt_target *target = &j->base.targets[i];
        if (t->n_dims < 2 || strlen(j->items[i].name) >= sizeof target->name) continue;
        *target = (weft__adapt_target){.k = (int64_t)t->d[0],
                                       .n = (int64_t)t->d[1],
                                       .n_experts = (int64_t)t->d[2],
                                       .n_total = (int64_t)t->d[1],
                                       .dtype = t->dtype,
                                       .data = weft__tensor_data(t),
                                       .row_bytes = weft__quant_row_bytes(t->dtype, (int64_t)t->d[0])};
        snprintf(target->name, sizeof target->name, "%s", j->items[i].name);
    }
    for (int32_t i = 0; i < j->n_uses && !st; i++) st = weft__adapt_check(j->uses[i].adapter, &j->base, err);
    if (!st) st = weft__adapt_weave(j->uses, j->n_uses, &j->base, &j->woven, err);
    for (size_t i = 0; i < j->n_items && !st; i++)
        if (j->woven.lora[i].rank > 0 || j->woven.lora[i].gain) j->items[i].change = &j->woven.lora[i];
    return st;
}

static weft_status run_job(struct quantize_job *j, const weft__mix *mix, const char *label,
                           weft_quantize_result *result, weft_error *err)
{
    weft_status st;
    if ((st = put_metadata(j, mix, err)) || (st = plan_types(j, mix, label, result, err)) ||
        (st = check_importance(j, mix, err)) || (st = plan_changes(j, label, err)) ||
        (st = weft__gguf_begin(j->out, err)))
        return st;
    for (size_t i = 0; i < j->n_items; i++) {
        const struct plan_item *item = &j->items[i];
        st = item->to == item->from->dtype && !item->change ? copy_tensor(j, item->from, err)
                                                            : convert_tensor(j, item, err);
        if (st) return st;
        /* What has been read is not needed again. */
        weft__mem_advise(item->from->buffer, item->from->offset, item->from->n_bytes, WEFT__MEM_ADVICE_DONTNEED, NULL);
    }
    result->n_important = j->n_important;
    result->n_beyond = (uint64_t)j->beyond.first.n;
    if ((st = weft__model_beyond_check(&j->beyond, j->params->saturate, err))) return st;
    return weft__gguf_finish(j->out, err);
}

static weft_status quantize_run(const char *in, const char *out, const weft__mix *mix, struct quantize_job *j,
                                weft_quantize_result *result, weft_error *err)
{
    char place[4096];
    weft_status st;
    if ((st = weft_resolve_model(in, place, sizeof place, err))) return st;
    if (weft__plan_file_is(place))
        return weft_fail(err, WEFT_ARGUMENT,
                         "%s: is a compiled plan, whose matrices are packed; quantize the model that it was made of",
                         place);
    st = weft__gguf_open(place, &j->in, err);
    if (!st && j->params->imatrix) st = weft__imatrix_open(j->params->imatrix, &j->imatrix, err);
    if (!st) st = weft__pool_create(j->params->n_threads, &j->pool, err);
    if (!st) st = weft__gguf_writer_create(out, 0, &j->out, err);
    if (!st) st = run_job(j, mix, place, result, err);
    weft__adapt_woven_free(&j->woven);
    weft__adapt_base_free(&j->base);
    weft__gguf_writer_destroy(&j->out);
    weft__pool_destroy(&j->pool);
    weft__imatrix_close(&j->imatrix);
    weft__free(j->items);
    weft__gguf_close(&j->in);
    return st;
}

weft_status weft_quantize(const char *in, const char *out, const char *type, const weft_quantize_params *params,
                          weft_quantize_result *result, weft_error *err)
{
    weft_quantize_params own;
    struct quantize_job j = {.params = &own};
    const weft__mix *mix = weft__mix_find(type);
    memset(result, 0, sizeof *result);
    weft_quantize_params_default(&own);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_quantize_params), &own, params, err);
    if (st) return st;
    if (!mix) return weft_fail(err, WEFT_ARGUMENT, "there is no type '%s'; known: %s", type, weft__mix_names());
    return quantize_run(in, out, mix, &j, result, err);
}

weft_status weft_adapter_apply(const char *in, const char *out, const weft_adapter_use *uses, int32_t n,
                               const char *type, const weft_quantize_params *params, weft_quantize_result *result,
                               weft_error *err)
{
    enum { MOST = 64 };
    weft__adapt_use stack[MOST];
    weft_quantize_params own;
    struct quantize_job j = {.params = &own, .uses = stack, .n_uses = n};
    const weft__mix *mix = type ? weft__mix_find(type) : NULL;
    memset(result, 0, sizeof *result);
    weft_quantize_params_default(&own);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_quantize_params), &own, params, err);
    if (st) return st;
    if (type && !mix) return weft_fail(err, WEFT_ARGUMENT, "there is no type '%s'; known: %s", type, weft__mix_names());
    if (n < 1 || n > MOST) return weft_fail(err, WEFT_ARGUMENT, "%d adapters to merge; it must be 1 to %d", n, MOST);
    for (int32_t i = 0; i < n; i++) {
        if (!isfinite(uses[i].scale)) return weft_fail(err, WEFT_ARGUMENT, "adapter %d: its weight must be finite", i);
        stack[i] = (weft__adapt_use){uses[i].file->a, uses[i].scale};
    }
    return quantize_run(in, out, mix, &j, result, err);
}
