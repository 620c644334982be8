// SPDX-License-Identifier: Apache-2.0
/* hf_load.c: the tensors that do not stand in the files as the engine needs them, computed in memory (hf.h). */
#include <string.h>

#include "base/alloc.h"
#include "base/background.h"
#include "mem/mem.h"
#include "mem/owners.h"
#include "model/hf_parts.h"
#include "quant/quant.h"

/* 1 when the engine can use the bytes in the file: a matrix in one piece at an address that fits its type, a vector in
 * F32. */
static int usable(const weft__tensor_desc *t, const weft__hf_tensor *how)
{
    if (how->n_parts != 1 || how->plus_one) return 0;
    const weft__tensor_desc *part = how->parts[0];
    return part->dtype == t->dtype &&
           (uintptr_t)weft__tensor_data(part) % weft_dtype_describe(t->dtype).block_bytes == 0;
}

/* A vector in F32. */
static void fill_vector(const weft__tensor_desc *t, const weft__hf_tensor *how, float *dst)
{
    if (how->values) {
        memcpy(dst, how->values, (size_t)t->n_bytes);
        return;
    }
    weft__quant_decode_row(how->parts[0]->dtype, weft__tensor_data(how->parts[0]), dst, (int64_t)t->n_elems);
    for (uint64_t i = 0; how->plus_one && i < t->n_elems; i++) dst[i] += 1;
}

enum { PIECE = 1 << 16 };

/* The parts one behind another; their pages may go when they have been read. */
static void fill_parts(const weft__hf_tensor *how, uint8_t *dst)
{
    for (size_t i = 0; i < how->n_parts; i++) {
        const weft__tensor_desc *part = how->parts[i];
        const uint8_t *src = weft__tensor_data(part);
        for (uint64_t at = 0, n; at < part->n_bytes; at += n) { /* in pieces, so that it may rest in between */
            n = part->n_bytes - at < PIECE ? part->n_bytes - at : PIECE;
            memcpy(dst + at, src + at, (size_t)n);
            weft__background_did(n);
        }
        dst += part->n_bytes;
        if (part->buffer->domain == WEFT_DOMAIN_MAPPED)
            weft__mem_advise(part->buffer, part->offset, part->n_bytes, WEFT__MEM_ADVICE_DONTNEED, NULL);
    }
}

static weft_status make(weft__hf *hf, weft__tensor_desc *t, const weft__hf_tensor *how, int bare, weft_error *err)
{
    weft_buffer_spec spec = {sizeof spec, WEFT_DOMAIN_HOST, t->n_bytes, 64, WEFT_BUFFER_HUGE};
    if (!weft__grow(&hf->made, &hf->made_capacity, hf->n_made + 1, sizeof *hf->made))
        return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for %s", hf->folder, t->name);
    bare &= t->n_dims > 1;
    weft_status status = bare ? weft__mem_reserve(t->n_bytes, &hf->made[hf->n_made], err)
                              : weft__mem_create(&spec, &hf->made[hf->n_made], err);
    if (status) return weft_fail_within(err, status, "%s: %s", hf->folder, t->name);
    t->buffer = hf->made[hf->n_made++];
    weft__mem_set_owner(t->buffer, WEFT__MEM_WEIGHTS);
    t->offset = 0;
    if (t->n_dims == 1) fill_vector(t, how, t->buffer->data);
    else if (!bare) fill_parts(how, t->buffer->data);
    return WEFT_OK;
}

static weft_status load(weft__hf *hf, int bare, weft_progress_fn progress, void *arg, weft_error *err)
{
    for (size_t i = 0; i < hf->tensors.n; i++) {
        weft__tensor_desc *t = &hf->tensors.items[i];
        const weft__hf_tensor *how = &hf->how[i];
        if (usable(t, how)) {
            t->buffer = how->parts[0]->buffer;
            t->offset = how->parts[0]->offset;
            continue;
        }
        weft_status status = make(hf, t, how, bare, err);
        if (status) return status;
        if (progress && progress(arg, "merging experts", (double)(i + 1) / (double)hf->tensors.n))
            return weft_fail(err, WEFT_CANCELLED, "cancelled");
    }
    return WEFT_OK;
}

weft_status weft__hf_load(weft__hf *hf, weft_progress_fn progress, void *arg, weft_error *err)
{
    return load(hf, 0, progress, arg, err);
}

weft_status weft__hf_outline(weft__hf *hf, weft_error *err)
{
    return load(hf, 1, NULL, NULL, err);
}
