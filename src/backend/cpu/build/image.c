// SPDX-License-Identifier: Apache-2.0
/* image.c: packed weights that leave a program, and ones that come from outside.
 *
 * Invariant: an image is taken only where its layout, a text, is the one that this program would have given. The text
 * names the kernel of every format and, where the kernel packs, a checksum of what it makes of fixed bytes; so it
 * changes with the tier and with the order of bytes in a panel, and no version has to be counted up. Owner: the thread
 * that compiles. */
#include <string.h>

#include "backend/cpu/program.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/text.h"

enum { SPECIMEN_BLOCKS = 3, SPECIMEN_K = 97 /* of formats without blocks */, SPECIMEN_SEED = 20250923 };

/* Checksum of a full panel and of one with a single row, of rows that do not end where a tile does. 1: done, 0: no
 * memory. */
static int specimen(const weft__matmul *mm, uint64_t *out)
{
    weft_dtype_info info = weft_dtype_describe(mm->dtype);
    int64_t k = info.block_elems > 1 ? SPECIMEN_BLOCKS * (int64_t)info.block_elems : SPECIMEN_K;
    size_t row_bytes = (size_t)k / info.block_elems * info.block_bytes, n = row_bytes * (size_t)mm->panel_rows;
    size_t panel_bytes = mm->panel_bytes(k);
    uint8_t *rows = weft__alloc(n), *panels = weft__alloc_aligned(WEFT__CPU_LINE, 2 * panel_bytes);
    if (rows && panels) {
        weft__rng rng;
        weft__rng_seed(&rng, SPECIMEN_SEED);
        for (size_t i = 0; i < n; i++) rows[i] = (uint8_t)(weft__rng_u64(&rng) & 0xbf); /* no infinities, no NaN */
        memset(panels, 0, 2 * panel_bytes);
        mm->pack(rows, row_bytes, mm->panel_rows, k, panels);
        mm->pack(rows, row_bytes, 1, k, panels + panel_bytes);
        *out = weft__hash(panels, 2 * panel_bytes);
    }
    int done = rows && panels;
    weft__free(panels);
    weft__free(rows);
    return done;
}

/* Marks the types of the matrices that the segment multiplies by. */
static void list_types(const weft_program *p, uint8_t *used, size_t n_types)
{
    for (int32_t i = 0; i < p->segment->n_nodes; i++) {
        const weft_node *node = &p->graph->nodes[p->segment->nodes[i]];
        if (node->op != WEFT_OP_LINEAR && node->op != WEFT_OP_MOE_FFN) continue;
        for (int j = 0; j < node->n_w; j++) {
            uint32_t dtype = p->graph->weights[node->w[j]].dtype;
            if (dtype < n_types) used[dtype] = 1;
        }
    }
}

/* "Q4_0: matmul_q4_0_avx2 1f0e...; Q6_K: ...". */
static weft_status put_layout(const weft_program *p, weft__strbuf *t, weft_error *err)
{
    uint8_t used[64] = {0};
    list_types(p, used, sizeof used);
    for (uint32_t dtype = 0; dtype < sizeof used; dtype++) {
        const weft__matmul *mm = used[dtype] ? weft__matmul_find(dtype, p->backend->tiers) : NULL;
        uint64_t sum = 0;
        if (!mm) continue;
        weft__strbuf_printf(t, "%s%s: %s ", t->len ? "; " : "", weft_dtype_describe(dtype).name,
                            mm->panels ? mm->panels : mm->name);
        if (!mm->panel_bytes) weft__strbuf_puts(t, "in place");
        else if (specimen(mm, &sum)) weft__strbuf_printf(t, "%016llx", (unsigned long long)sum);
        else t->failed = 1;
    }
    return t->failed || !t->len ? weft_fail(err, t->failed ? WEFT_NO_MEMORY : WEFT_UNSUPPORTED, "no %s",
                                            t->failed ? "memory to describe packed weights" : "matrices to pack")
                                : WEFT_OK;
}

/* Copies the entry of a layout in which byte `at` stands. */
static void entry_at(const char *layout, size_t at, char *out, size_t size)
{
    size_t first = at, last;
    while (first > 0 && layout[first - 1] != ';') first--;
    if (layout[first] == ' ') first++;
    last = first + strcspn(layout + first, ";");
    size_t n = last - first < size - 1 ? last - first : size - 1;
    memcpy(out, layout + first, n);
    out[n] = 0;
}

static weft_status other_layout(const char *theirs, const char *ours, weft_error *err)
{
    char a[96], b[96];
    size_t at = 0;
    while (theirs[at] && theirs[at] == ours[at]) at++;
    entry_at(theirs, at, a, sizeof a);
    entry_at(ours, at, b, sizeof b);
    return weft_fail(err, WEFT_UNSUPPORTED,
                     "its weights are packed for another tier or version: for (%s); here it is (%s)", a, b);
}

weft_status weft__cpu_take_image(weft_program *p, const weft_image *image, weft_error *err)
{
    weft__strbuf layout = {0};
    if (image->size < sizeof *image || image->n_weights != p->graph->n_weights || !image->offset || !image->layout)
        return weft_fail(err, WEFT_ARGUMENT, "packed weights of %d weights; the graph has %d", image->n_weights,
                         p->graph->n_weights);
    if ((uintptr_t)image->data % WEFT__CPU_LINE)
        return weft_fail(err, WEFT_ARGUMENT, "packed weights that are not aligned to %d bytes", WEFT__CPU_LINE);
    weft_status st = put_layout(p, &layout, err);
    if (!st && strcmp(layout.data, image->layout)) st = other_layout(image->layout, layout.data, err);
    weft__strbuf_free(&layout);
    if (!st) p->image = image;
    return st;
}

weft_status weft__cpu_panels_of_image(const weft_program *p, weft_weight_id id, uint64_t n_bytes, uint8_t **out,
                                      weft_error *err)
{
    uint64_t at = p->image->offset[id];
    if (at % WEFT__CPU_LINE || at > p->packed->n_bytes || n_bytes > p->packed->n_bytes - at)
        return weft_fail(err, WEFT_FORMAT, "the packed weights do not hold the %llu bytes of %s at offset %llu",
                         (unsigned long long)n_bytes, p->graph->weights[id].name, (unsigned long long)at);
    *out = (uint8_t *)p->packed->data + at;
    return WEFT_OK;
}

/* Which weights' own bytes does the segment read? */
static void list_own(const weft_program *p, uint8_t *own)
{
    for (int32_t i = 0; i < p->segment->n_nodes; i++) {
        const weft_node *node = &p->graph->nodes[p->segment->nodes[i]];
        int multiplies = node->op == WEFT_OP_LINEAR || node->op == WEFT_OP_MOE_FFN;
        for (int j = 0; j < node->n_w; j++)
            if (node->w[j] != WEFT_NONE && !(multiplies && p->weight_panels[node->w[j]])) own[node->w[j]] = 1;
        if (node->op != WEFT_OP_LINEAR) continue;
        const weft_attr_linear *a = &node->attr.linear;
        for (int j = 0; j < a->n_mat; j++)
            if (a->bias[j] != WEFT_NONE) own[a->bias[j]] = 1;
        if (a->norm_weight != WEFT_NONE) own[a->norm_weight] = 1;
    }
}

weft_status weft__cpu_describe_image(weft_program *p, weft_error *err)
{
    const size_t n = (size_t)p->graph->n_weights;
    weft__strbuf layout = {0};
    weft_status st = put_layout(p, &layout, NULL);
    if (!st) {
        p->described.layout = weft__cpu_own(&p->owned, layout.len + 1, 1);
        p->described.offset = weft__cpu_own(&p->owned, n, sizeof *p->described.offset);
        p->described.own = weft__cpu_own(&p->owned, n, 1);
        if (!p->described.layout || !p->described.offset || !p->described.own) st = WEFT_NO_MEMORY;
    }
    if (!st) {
        memcpy(p->described.layout, layout.data, layout.len + 1);
        for (size_t i = 0; i < n; i++)
            p->described.offset[i] =
                p->weight_panels[i] ? (uint64_t)(p->weight_panels[i] - (uint8_t *)p->packed->data) : UINT64_MAX;
        list_own(p, p->described.own);
    }
    weft__strbuf_free(&layout);
    if (st == WEFT_OK || st == WEFT_UNSUPPORTED) return WEFT_OK;
    return weft_fail(err, st, "no memory to describe %zu packed weights", n);
}

weft_status weft__cpu_image(const weft_program *p, weft_image *out, weft_error *err)
{
    if (out->size < sizeof *out)
        return weft_fail(err, WEFT_ABI, "weft_image has %u bytes; this provider fills %zu", out->size, sizeof *out);
    if (!p->described.layout) return weft_fail(err, WEFT_UNSUPPORTED, "no matrices to pack");
    *out = (weft_image){.size = out->size,
                        .n_weights = p->graph->n_weights,
                        .layout = p->described.layout,
                        .data = p->packed->data,
                        .n_bytes = p->packed->n_bytes,
                        .offset = p->described.offset,
                        .own = p->described.own};
    return WEFT_OK;
}
