// SPDX-License-Identifier: Apache-2.0
/* fingerprint.c: which model it is, in short: by what is known of it at once, so that no weight has to be read. Any
 * thread. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "engine/handles.h"

enum { SAMPLE = 256 }; /* bytes of each weight */

/* From the middle of each weight; nothing of one whose bytes are not there (a compiled plan). */
static void add_samples(weft__hash_state *h, const weft_graph *g)
{
    for (int32_t i = 0; i < g->n_weights; i++) {
        const weft_weight *w = &g->weights[i];
        const uint64_t n = w->row_bytes * (uint64_t)w->shape.d[1] * (uint64_t)w->shape.d[2];
        const uint64_t taken = n < SAMPLE ? n : SAMPLE;
        if (!w->buffer->data) continue;
        weft__hash_add(h, (const char *)w->buffer->data + w->offset + (n - taken) / 2, (size_t)taken);
    }
}

void weft_model_fingerprint(const weft_model *m, char out[33])
{
    const uint64_t known[] = {weft__engine_weights_hash(m->graph, &m->source), m->base.fingerprint};
    weft__hash_state h;
    weft__hash_begin(&h);
    weft__hash_add(&h, known, sizeof known);
    weft__hash_add(&h, m->hp.arch, strlen(m->hp.arch));
    const uint64_t shape = weft__hash_end(&h);
    add_samples(&h, m->graph);
    snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, shape, weft__hash_end(&h));
}
