// SPDX-License-Identifier: Apache-2.0
/* matrix.c: weights as kernels read them, the forms of their input, and the split of their outputs over threads. */
#include <string.h>

#include "backend/cpu/adapter/adapter.h"
#include "base/check.h"

enum { MIN_CHUNK = 32, MAX_CHUNK = 256 };
_Static_assert(2 * MAX_CHUNK * WEFT__ACT_PART <= WEFT__CPU_GLU_FLOATS,
               "a part of the gates of a chunk, whole tiles, fits");

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t lcm(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

/* ---- packing ---- */

/* Bytes of weight w, all experts, in panels of kernel mm; 0 where it is used in place. */
static int panel_total(const weft_weight *w, const weft__matmul *mm, uint64_t *n)
{
    *n = 0;
    if (!mm->panel_bytes) return 1;
    return weft__checked_mul((uint64_t)ceil_div(w->shape.d[1], mm->panel_rows), mm->panel_bytes(w->shape.d[0]), n) &&
           weft__checked_mul(*n, (uint64_t)w->shape.d[2], n);
}

weft_status weft__cpu_packed_bytes(weft_program *p, uint64_t *n, weft_error *err)
{
    *n = 0;
    for (int32_t i = 0; i < p->segment->n_nodes; i++) {
        const weft_node *node = &p->graph->nodes[p->segment->nodes[i]];
        if (node->op != WEFT_OP_LINEAR && node->op != WEFT_OP_MOE_FFN) continue;
        for (int j = 0; j < node->n_w; j++) {
            weft_weight_id id = node->w[j];
            const weft_weight *w = &p->graph->weights[id];
            uint64_t bytes;
            if (p->weight_panels[id]) continue;
            if (!panel_total(w, weft__matmul_find(w->dtype, p->backend->tiers), &bytes) ||
                !weft__checked_add(*n, bytes, n))
                return weft_fail(err, WEFT_LIMIT, "weight %s is larger than can be counted", w->name);
            p->weight_panels[id] = (uint8_t *)p; /* counted */
        }
    }
    memset(p->weight_panels, 0, (size_t)p->graph->n_weights * sizeof *p->weight_panels);
    return WEFT_OK;
}

weft_status weft__cpu_matrix_init(weft_program *p, weft__cpu_matrix *m, weft_weight_id id, weft_error *err)
{
    const weft_weight *w = &p->graph->weights[id];
    const weft__matmul *mm = weft__matmul_find(w->dtype, p->backend->tiers);
    uint64_t total;
    *m = (weft__cpu_matrix){.mm = mm, .w = w, .id = id, .k = w->shape.d[0], .n = w->shape.d[1]};
    if (!w->buffer->data && !(mm->panel_bytes && p->image))
        return weft_fail(err, WEFT_ARGUMENT, "weight %s has no bytes, and none that are packed", w->name);
    if (!mm->panel_bytes) {
        m->panels = (const uint8_t *)w->buffer->data + w->offset;
        m->stride = w->row_bytes;
        m->expert_stride = (size_t)m->n * m->stride;
        return WEFT_OK;
    }
    m->stride = mm->panel_bytes(m->k);
    m->expert_stride = (size_t)ceil_div(m->n, mm->panel_rows) * m->stride;
    if (!p->weight_panels[id] && p->image) {
        if (!panel_total(w, mm, &total))
            return weft_fail(err, WEFT_LIMIT, "weight %s is larger than can be counted", w->name);
        weft_status st = weft__cpu_panels_of_image(p, id, total, &p->weight_panels[id], err);
        if (st) return st;
    } else if (!p->weight_panels[id]) {
        if (!panel_total(w, mm, &total) || total > p->packed->n_bytes - p->n_packed)
            return weft_fail(err, WEFT_INTERNAL, "weight %s does not fit the memory counted for it", w->name);
        p->weight_panels[id] = (uint8_t *)p->packed->data + p->n_packed;
        p->n_packed += total;
        m->pack_here = 1;
    }
    m->panels = p->weight_panels[id];
    return WEFT_OK;
}

void weft__cpu_pack(const weft__cpu_matrix *m, int64_t first, int64_t last)
{
    int64_t rows = m->mm->panel_rows;
    for (int64_t e = 0; e < m->w->shape.d[2]; e++) {
        const uint8_t *source =
            (const uint8_t *)m->w->buffer->data + m->w->offset + (uint64_t)(e * m->n) * m->w->row_bytes;
        uint8_t *panels = (uint8_t *)m->panels + (size_t)e * m->expert_stride;
        /* A range begins with a panel, or behind the last one of a matrix that is smaller than a panel. */
        for (int64_t panel = (first + rows - 1) / rows; panel * rows < last; panel++) {
            int64_t row = panel * rows, n = m->n - row < rows ? m->n - row : rows;
            weft__matmul_pack(m->mm, source + (uint64_t)row * m->w->row_bytes, m->w->row_bytes, (int)n, m->k,
                              panels + (size_t)panel * m->stride);
        }
    }
}

/* ---- inputs ---- */

void weft__cpu_input_init(weft__cpu_input *in, weft__cpu_matrix **m, int n_mat, int64_t max_rows)
{
    *in = (weft__cpu_input){.k = m[0]->k, .tile = 1};
    for (int i = 0; i < n_mat; i++) {
        int a = 0;
        while (a < in->n_acts && in->act[a] != m[i]->mm->act) a++;
        if (a == in->n_acts) {
            in->act[in->n_acts++] = m[i]->mm->act;
            in->tile = (int)lcm(in->tile, m[i]->mm->act->tile);
        }
        m[i]->act = a;
    }
    for (int a = 0; a < in->n_acts; a++) {
        in->tile_offset[a] = in->tile_bytes;
        in->tile_bytes += weft__cpu_round(in->act[a]->bytes(in->k, in->tile));
    }
    size_t at_once = 0; /* bytes of a tile that are read together */
    size_t limit = WEFT__ACT_CHUNK_BYTES;
    for (int a = 0; a < in->n_acts; a++) {
        const weft__act *act = in->act[a];
        at_once += weft__cpu_round(act->bytes(act->k_block && act->k_block < in->k ? act->k_block : in->k, in->tile));
        if (act->chunk_bytes && act->chunk_bytes < limit) limit = act->chunk_bytes;
    }
    int64_t fits = (int64_t)(limit / (at_once / (size_t)in->tile + 1));
    if (fits < MIN_CHUNK) fits = MIN_CHUNK;
    if (fits > MAX_CHUNK) fits = MAX_CHUNK;
    if (fits > max_rows) fits = max_rows > 0 ? max_rows : 1; /* 0: no row will ever be wanted */
    in->chunk = ceil_div(fits, in->tile) * in->tile;
    for (int a = 0; a < in->n_acts; a++) {
        in->chunk_offset[a] = in->chunk_bytes;
        in->chunk_bytes += weft__cpu_round(in->act[a]->bytes(in->k, in->chunk));
    }
}

void weft__cpu_prepare(const weft__cpu_input *in, const float *x, int64_t ldx, weft__act_part part, uint8_t *acts)
{
    const int64_t n_rows = part.m, end = part.row + part.n;
    if (n_rows <= in->tile) {
        weft__cpu_put(in, in->tile_offset, x, ldx, part, acts);
        return;
    }
    for (int64_t r = part.row, n; r < end; r += n, x += n * ldx) {
        const int64_t c = r / in->chunk, begin = c * in->chunk;
        part.m = n_rows - begin < in->chunk ? n_rows - begin : in->chunk;
        n = end - r < begin + part.m - r ? end - r : begin + part.m - r;
        part.row = r - begin;
        part.n = n;
        weft__cpu_put(in, in->chunk_offset, x, ldx, part, acts + (size_t)c * in->chunk_bytes);
    }
}

/* ---- outputs ---- */

void weft__cpu_split_outputs(const weft__cpu_matrix *const *m, int n_mat, int together, int64_t unit, int n_threads,
                             int64_t *split)
{
    /* Columns of the split: every matrix by itself, or all as one. */
    int n_cols = together ? 1 : n_mat;
    int64_t units[WEFT_LINEAR_MAX];
    uint64_t unit_bytes[WEFT_LINEAR_MAX] = {0}, total = 0;
    for (int i = 0; i < n_mat; i++) {
        int c = together ? 0 : i;
        units[c] = c == i ? lcm(unit, m[i]->mm->panel_rows) : lcm(units[c], m[i]->mm->panel_rows);
    }
    for (int i = 0; i < n_mat; i++) {
        int c = together ? 0 : i;
        unit_bytes[c] += (uint64_t)(units[c] / m[i]->mm->panel_rows) * m[i]->stride;
        total += (uint64_t)ceil_div(m[i]->n, units[c]) * ((uint64_t)(units[c] / m[i]->mm->panel_rows) * m[i]->stride);
    }
    for (int t = 0; t <= n_threads; t++) {
        uint64_t target = (uint64_t)weft__cpu_share((int64_t)total, t, n_threads);
        for (int c = 0; c < n_cols; c++) {
            uint64_t n_units = (uint64_t)ceil_div(m[c]->n, units[c]),
                     take = (target + unit_bytes[c] / 2) / unit_bytes[c];
            if (take > n_units || t == n_threads) take = n_units;
            int64_t first = (int64_t)take * units[c];
            split[t * n_cols + c] = first < m[c]->n ? first : m[c]->n;
            /* Later columns get their part only when this one is full, so that no boundary ever moves back. */
            target = take == n_units && target > take * unit_bytes[c] ? target - take * unit_bytes[c] : 0;
        }
    }
}

void weft__cpu_gated(weft_program *p, weft__cpu_thread *th, const weft__cpu_glu *g, const weft__cpu_prepared *at,
                     const weft__cpu_delta *delta, int64_t first, int64_t last, float *out, int64_t ldo)
{
    const weft__cpu_matrix *const gate = g->gate, *const up = g->up;
    const int direct = weft__cpu_is_direct(g->to);
    const int32_t expert = delta->expert;
    int64_t unit = lcm(lcm(gate->mm->panel_rows, up->mm->panel_rows), direct ? WEFT__ACT_PART : WEFT__EXPAND_ROWS),
            block = WEFT__CPU_GLU_FLOATS / at->n / unit * unit;
    if (block < unit) block = unit;
    for (int64_t o = first, end; o < last; o = end) {
        end = o + block < last ? o + block : last;
        const int64_t width = end - o, ldg = direct ? width : ldo;
        float *const y = direct ? th->gate : out + (o - first), *const u = th->glu;
        const uint8_t *then = end < last ? weft__cpu_panels(gate, expert, end) : NULL,
                      *b_up = weft__cpu_first_b(delta, 0, up, o, then);
        weft__cpu_multiply(gate, expert, o, end, at, y, ldg,
                           weft__cpu_prefetch_of(delta, gate, o, end, weft__cpu_panels(up, expert, o)));
        weft__cpu_multiply(up, expert, o, end, at, u, width,
                           weft__cpu_prefetch_of(delta, up, o, end, weft__cpu_first_b(delta, 0, gate, o, b_up)));
        weft__cpu_expand(p, delta, gate, 0, o, end, y, ldg, b_up);
        weft__cpu_expand(p, delta, up, 1, o, end, u, width, then);
        for (int64_t i = 0; i < at->n; i++) {
            float *yi = y + i * ldg, *ui = u + i * width;
            if (gate->bias) p->k->add(yi, gate->bias + o, width, yi);
            if (up->bias) p->k->add(ui, up->bias + o, width, ui);
            p->k->glu(g->activation, yi, ui, width, yi);
        }
        if (direct) weft__cpu_direct_pack(p, g->to, y, ldg, delta->row, at->n, o, end);
    }
}
