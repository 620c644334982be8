// SPDX-License-Identifier: Apache-2.0
/* bytes.c: what a model takes of memory (weft_model_count_bytes). Any thread. */
#include "engine/handles.h"
#include "mem/mem.h"

weft_status weft_model_count_bytes(const weft_model *m, weft_model_bytes *out, weft_error *err)
{
    weft_program_bytes p;
    weft_status st = weft__plan_bytes(m->plan, &p, err);
    if (st) return st;
    const weft_model_bytes own = {.size = sizeof own,
                                  .packed = p.packed,
                                  .own = p.own,
                                  .steps = p.run + weft__graph_batch_bytes(m->max_rows, m->hp.d_model)};
    return weft__params_write(WEFT__PARAMS_TYPE(weft_model_bytes), out, &own, err);
}

/* Tensors that were made, of a folder's parts or at random, stay beside what is packed of them. */
uint64_t weft__engine_weights_bytes(const weft_model *m)
{
    weft_image image;
    weft_program_bytes bytes;
    const char *provider;
    if (weft__plan_bytes(m->plan, &bytes, NULL) || weft__plan_image(m->plan, &image, &provider, NULL))
        return m->info.n_bytes;
    for (int32_t i = 0; i < m->graph->n_weights; i++) {
        const weft_weight *w = &m->graph->weights[i];
        if (w->buffer->domain != WEFT_DOMAIN_MAPPED && !image.own[i])
            bytes.own += w->row_bytes * (uint64_t)(w->shape.d[1] * w->shape.d[2]);
    }
    return bytes.packed + bytes.own;
}

void weft__engine_model_drop_file(const weft_model *m)
{
    const weft_buffer *last = NULL;
    if (m->outline || weft__engine_model_image(m)) return;
    for (int32_t i = 0; i < m->graph->n_weights; i++) {
        const weft_buffer *b = m->graph->weights[i].buffer;
        if (b != last && b->domain == WEFT_DOMAIN_MAPPED)
            (void)weft__mem_advise(b, 0, b->n_bytes, WEFT__MEM_ADVICE_DONTNEED, NULL); /* a wish */
        last = b;
    }
}
