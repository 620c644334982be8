// SPDX-License-Identifier: Apache-2.0
/* hf_convert.c: a folder to a GGUF file, a few rows at a time (hf.h).
 *
 * Invariant: memory beyond the mapped files is bounded by a chunk of rows; pages that were read may be dropped at
 * once. */
#include <string.h>

#include "base/alloc.h"
#include "mem/mem.h"
#include "model/beyond.h"
#include "model/hf_parts.h"
#include "model/vocab.h"
#include "quant/encode.h"
#include "quant/finite.h"

enum { CHUNK_FLOATS = 1 << 20 };

typedef struct conversion {
    const weft__hf *hf;
    const weft__hf_convert_options *options;
    weft__gguf_writer *w;
    weft_error *err;
    float *floats; /* a chunk of rows, decoded */
    uint8_t *rows; /* and as they are written */
    weft__model_beyond beyond;
    uint64_t done, total; /* elements */
} conversion;

/* ---- types ---- */

/* general.file_type, as llama.cpp numbers the types of whole files. */
static int file_type(uint32_t dtype)
{
    static const struct {
        uint32_t dtype;
        int type;
    } types[] = {{WEFT_F32, 0},   {WEFT_F16, 1},   {WEFT_Q4_0, 2},    {WEFT_Q4_1, 3},    {WEFT_Q8_0, 7},
                 {WEFT_Q5_0, 8},  {WEFT_Q5_1, 9},  {WEFT_Q2_K, 10},   {WEFT_Q3_K, 11},   {WEFT_Q4_K, 14},
                 {WEFT_Q5_K, 16}, {WEFT_Q6_K, 18}, {WEFT_IQ4_NL, 25}, {WEFT_IQ4_XS, 30}, {WEFT_BF16, 32}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].dtype == dtype) return types[i].type;
    return -1;
}

static uint32_t type_of(const conversion *c, const weft__tensor_desc *t)
{
    static const char router[] = ".ffn_gate_inp.weight";
    size_t n = strlen(t->name), tail = sizeof router - 1;
    if (t->n_dims == 1 || (n > tail && !strcmp(t->name + n - tail, router))) return WEFT_F32;
    if (c->options->dtype < 0) return t->dtype;
    uint32_t block = weft_dtype_describe((uint32_t)c->options->dtype).block_elems;
    return t->d[0] % block ? t->dtype : (uint32_t)c->options->dtype;
}

/* ---- metadata ---- */

static weft_status put_general(const conversion *c)
{
    uint32_t dtype = c->options->dtype < 0 ? weft__tensor_find(&c->hf->tensors, "token_embd.weight")->dtype
                                           : (uint32_t)c->options->dtype;
    weft_status status = weft__gguf_put_u32(c->w, "general.file_type", (uint32_t)file_type(dtype), c->err);
    /* The version of the block formats, which readers ask for where there are blocks. */
    return status ? status : weft__gguf_put_u32(c->w, "general.quantization_version", 2, c->err);
}

static weft_status put_meta(const conversion *c)
{
    const weft__gguf *meta = c->hf->meta;
    weft_status status = WEFT_OK;
    for (size_t i = 0; !status && i < weft__gguf_n_meta(meta); i++) {
        const weft__gguf_entry *e = weft__gguf_meta(meta, i);
        if (!strncmp(e->key, "weft.", 5)) continue; /* about the folder's rows, which are paired here */
        status = weft__gguf_put_raw(c->w, e->key, e->type, e->raw, (size_t)e->raw_bytes, c->err);
    }
    return status ? status : put_general(c);
}

static weft_status put_vocab(const conversion *c)
{
    weft__hf_vocab *v;
    weft_error why = {0};
    weft_status status = weft__hf_vocab_read(c->hf, &v, &why);
    if (status == WEFT_NOT_FOUND) return WEFT_OK; /* a file without a tokenizer is one, too */
    if (status && c->err) *c->err = why;
    if (status) return status;
    status = weft__vocab_put(weft__hf_vocab_spec(v), (size_t)c->hf->size.n_vocab, c->options->pre, c->w, c->err);
    weft__hf_vocab_free(&v);
    return status;
}

static weft_status declare_tensors(const conversion *c)
{
    weft_status status = WEFT_OK;
    for (size_t i = 0; !status && i < c->hf->tensors.n; i++) {
        const weft__tensor_desc *t = &c->hf->tensors.items[i];
        status = weft__gguf_declare(c->w, t->name, type_of(c, t), t->n_dims, t->d, c->err);
    }
    return status;
}

/* ---- data ---- */

/* Where row r of a matrix whose heads' rows are in halves stands, when r counts them in pairs: of a head of n rows,
 * rows 2j and 2j + 1 are rows j and n/2 + j of the folder. */
static uint64_t source_row(uint64_t r, uint64_t rows_per_head)
{
    uint64_t head = r / rows_per_head, i = r % rows_per_head;
    return head * rows_per_head + i % 2 * (rows_per_head / 2) + i / 2;
}

static weft_status check_heads(const conversion *c, const weft__tensor_desc *t, int32_t heads, uint64_t rows)
{
    if (heads == 0 || rows % (2 * (uint64_t)heads) == 0) return WEFT_OK;
    return weft_fail(c->err, WEFT_FORMAT, "%s: the %llu rows of %d heads are not in pairs", t->name,
                     (unsigned long long)rows, heads);
}

/* n rows of a part from row `first`, in GGUF's order, as they are written; rows_per_head 0: in the folder's order. */
static weft_status write_rows(conversion *c, const weft__tensor_desc *t, const weft__tensor_desc *part, uint32_t dtype,
                              uint64_t first, uint64_t n, uint64_t rows_per_head, weft__quant_beyond *of_tensor)
{
    uint64_t k = t->d[0], in_bytes = weft__quant_row_bytes(part->dtype, (int64_t)k),
             out_bytes = weft__quant_row_bytes(dtype, (int64_t)k);
    const uint8_t *data = weft__tensor_data(part);
    int copy = part->dtype == dtype;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t row = rows_per_head ? source_row(first + i, rows_per_head) : first + i;
        if (copy) {
            weft_status st = weft__quant_check_finite(dtype, data + row * in_bytes, row * k, k, k, 0, c->err);
            if (st) return weft_fail_within(c->err, st, "tensor %s", t->name);
            memcpy(c->rows + i * out_bytes, data + row * in_bytes, (size_t)in_bytes);
        } else weft__quant_decode_row(part->dtype, data + row * in_bytes, c->floats + i * k, (int64_t)k);
    }
    weft_status status = WEFT_OK;
    for (uint64_t i = 0; !copy && !status && i < n; i++)
        status = weft__quant_encode_row(dtype, c->floats + i * k, c->rows + i * out_bytes,
                                        (int64_t)(rows_per_head ? source_row(first + i, rows_per_head) : first + i),
                                        (int64_t)k, NULL, of_tensor, c->err);
    if (status) return weft_fail_within(c->err, status, "tensor %s", t->name);
    if ((status = weft__gguf_write(c->w, c->rows, (size_t)(n * out_bytes), c->err))) return status;
    c->done += n * k;
    if (c->options->progress && c->options->progress(c->options->arg, "converting", (double)c->done / (double)c->total))
        return weft_fail(c->err, WEFT_CANCELLED, "cancelled");
    return WEFT_OK;
}

/* Room for as many rows as a chunk has, at least one. Returns their number, or 0 without memory. */
static uint64_t make_room(conversion *c, uint64_t k, uint32_t dtype)
{
    uint64_t n = k < CHUNK_FLOATS ? CHUNK_FLOATS / k : 1, out_bytes = weft__quant_row_bytes(dtype, (int64_t)k);
    weft__free(c->rows);
    weft__free(c->floats);
    c->floats = weft__alloc_array((size_t)(n * k), sizeof *c->floats);
    c->rows = weft__alloc_array((size_t)n, (size_t)out_bytes);
    return c->floats && c->rows ? n : 0;
}

static weft_status write_matrix(conversion *c, const weft__tensor_desc *t, const weft__hf_tensor *how)
{
    uint32_t dtype = type_of(c, t);
    uint64_t chunk = make_room(c, t->d[0], dtype), rows = t->d[1];
    weft__quant_beyond of_tensor = {0};
    weft_status status = check_heads(c, t, how->heads, rows);
    if (!chunk) return weft_fail(c->err, WEFT_NO_MEMORY, "no memory to convert %s", t->name);
    for (size_t p = 0; !status && p < how->n_parts; p++) {
        const weft__tensor_desc *part = how->parts[p];
        for (uint64_t r = 0, n; !status && r < rows; r += n) {
            n = rows - r < chunk ? rows - r : chunk;
            status = write_rows(c, t, part, dtype, r, n, how->heads ? rows / (uint64_t)how->heads : 0, &of_tensor);
        }
        if (part->buffer->domain == WEFT_DOMAIN_MAPPED)
            weft__mem_advise(part->buffer, part->offset, part->n_bytes, WEFT__MEM_ADVICE_DONTNEED, NULL);
    }
    if (!status) weft__model_beyond_note(&c->beyond, t->name, dtype, &of_tensor);
    return status;
}

static weft_status write_vector(conversion *c, const weft__tensor_desc *t, const weft__hf_tensor *how)
{
    uint64_t n = t->n_elems;
    weft_status status = check_heads(c, t, how->heads, n);
    if (status) return status;
    if (how->values) return weft__gguf_write(c->w, how->values, (size_t)t->n_bytes, c->err);
    float *in = weft__alloc_array((size_t)n, sizeof *in), *out = weft__alloc_array((size_t)n, sizeof *out);
    if (in && out) {
        weft__quant_decode_row(how->parts[0]->dtype, weft__tensor_data(how->parts[0]), in, (int64_t)n);
        status = weft__quant_check_finite(WEFT_F32, in, 0, n, n, 1, c->err);
        if (status) weft_fail_within(c->err, status, "tensor %s", t->name);
        for (uint64_t i = 0; i < n; i++)
            out[i] = in[how->heads ? source_row(i, n / (uint64_t)how->heads) : i] + (float)how->plus_one;
        if (!status) status = weft__gguf_write(c->w, out, (size_t)t->n_bytes, c->err);
    } else {
        status = weft_fail(c->err, WEFT_NO_MEMORY, "no memory to convert %s", t->name);
    }
    weft__free(out);
    weft__free(in);
    return status;
}

static weft_status write_all(conversion *c)
{
    const weft__tensor_set *set = &c->hf->tensors;
    weft_status status = weft__gguf_begin(c->w, c->err);
    for (size_t i = 0; i < set->n; i++) c->total += set->items[i].n_elems;
    for (size_t i = 0; !status && i < set->n; i++) {
        const weft__tensor_desc *t = &set->items[i];
        status = t->n_dims == 1 ? write_vector(c, t, &c->hf->how[i]) : write_matrix(c, t, &c->hf->how[i]);
    }
    if (!status) status = weft__model_beyond_check(&c->beyond, c->options->saturate, c->err);
    return status ? status : weft__gguf_finish(c->w, c->err);
}

weft_status weft__hf_put_all(const weft__hf *hf, const char *pre, weft__gguf_writer *w, weft_error *err)
{
    weft__hf_convert_options options = {.dtype = -1, .pre = pre};
    conversion c = {.hf = hf, .options = &options, .w = w, .err = err};
    weft_status status = weft__gguf_put_all(w, hf->meta, err);
    if (!status) status = put_vocab(&c);
    return status ? weft_fail_within(err, status, "%s", hf->folder) : WEFT_OK;
}

weft_status weft__hf_convert(const weft__hf *hf, const char *out, const weft__hf_convert_options *options,
                             weft_error *err)
{
    conversion c = {.hf = hf, .options = options, .err = err};
    if (options->dtype >= 0 && file_type((uint32_t)options->dtype) < 0) {
        weft_dtype_info info = weft_dtype_describe((uint32_t)options->dtype);
        return weft_fail(err, WEFT_UNSUPPORTED, "models in type %s are not supported",
                         info.name ? info.name : "unknown");
    }
    weft_status status = weft__gguf_writer_create(out, 0, &c.w, err);
    if (status) return status;
    if ((status = put_meta(&c)) || (status = put_vocab(&c)) || (status = declare_tensors(&c)) ||
        (status = write_all(&c)))
        weft_fail_within(err, status, "%s", hf->folder);
    weft__gguf_writer_destroy(&c.w);
    weft__free(c.rows);
    weft__free(c.floats);
    return status;
}
