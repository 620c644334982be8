// SPDX-License-Identifier: Apache-2.0
/* served.c: see served.h. A group of panels stays in the second-level cache while rows pass by. */
#include "train/served.h"

enum { GROUP_BYTES = 192 << 10, PANELS_TOGETHER = 2 /* that kernels take at once */ };

static const weft__matmul *kernel_of(uint32_t dtype, uint32_t tiers)
{
    const weft__matmul *mm = weft__matmul_find(dtype, tiers);
    const int quantized = weft_dtype_describe(dtype).block_elems > 1;
    return mm && quantized && mm->panel_bytes && mm->tier != WEFT__TIER_REF ? mm : NULL;
}

const weft__matmul *weft__train_served_by(const weft__train_product *p, uint32_t tiers)
{
    return p->rounded && !p->a_across && !p->b_across && !p->add ? kernel_of(p->b.dtype, tiers) : NULL;
}

/* Panels that are packed at a time. */
static int64_t group_panels(const weft__matmul *mm, int64_t k)
{
    const int64_t n = (int64_t)GROUP_BYTES / (int64_t)mm->panel_bytes(k) / PANELS_TOGETHER * PANELS_TOGETHER;
    return n > 0 ? n : PANELS_TOGETHER;
}

void weft__train_served_room(weft__train_room *room, uint32_t dtype, uint32_t tiers, int64_t m, int64_t k)
{
    const weft__matmul *mm = kernel_of(dtype, tiers);
    if (!mm) return;
    const size_t rows = mm->act->bytes(k, m), group = (size_t)group_panels(mm, k) * mm->panel_bytes(k);
    if (rows > room->rows) room->rows = rows;
    if (group > room->n_group) room->n_group = group;
}

void weft__train_served_prepare(const weft__matmul *mm, const weft__train_product *p, int thread, int n_threads,
                                uint8_t *rows)
{
    const int64_t tile = mm->act->tile, n_tiles = (p->m + tile - 1) / tile,
                  last = weft__train_share(n_tiles, thread + 1, n_threads);
    for (int64_t i = weft__train_share(n_tiles, thread, n_threads); i < last; i++) {
        const int64_t row = i * tile, n = p->m - row < tile ? p->m - row : tile;
        const weft__act_part part = {.k = p->k, .m = p->m, .to = p->k, .row = row, .n = n};
        mm->act->put(p->a + row * p->lda, p->lda, &part, rows);
    }
}

void weft__train_served_run(const weft__matmul *mm, const weft__train_product *p, int thread, int n_threads,
                            const uint8_t *rows, uint8_t *group)
{
    const int64_t height = mm->panel_rows, n_panels = (p->n + height - 1) / height, together = group_panels(mm, p->k),
                  n_groups = (n_panels + PANELS_TOGETHER - 1) / PANELS_TOGETHER,
                  end = weft__train_share(n_groups, thread + 1, n_threads) * PANELS_TOGETHER,
                  last = end < n_panels ? end : n_panels;
    const size_t stride = mm->panel_bytes(p->k);
    for (int64_t i = weft__train_share(n_groups, thread, n_threads) * PANELS_TOGETHER; i < last; i += together) {
        const int64_t n = last - i < together ? last - i : together, first = i * height,
                      n_out = p->n - first < n * height ? p->n - first : n * height;
        for (int64_t j = 0; j < n; j++) {
            const int64_t row = first + j * height, here = p->n - row < height ? p->n - row : height;
            weft__matmul_pack(mm, p->b.data + (uint64_t)row * p->b.row_bytes, p->b.row_bytes, (int)here, p->k,
                              group + (size_t)j * stride);
        }
        const weft__product product = {.panels = group,
                                       .stride = stride,
                                       .n_out = n_out,
                                       .k = p->k,
                                       .act = rows,
                                       .m = p->m,
                                       .out = p->c + first,
                                       .ldo = p->ldc};
        weft__matmul_run(mm, &product, NULL);
    }
}
