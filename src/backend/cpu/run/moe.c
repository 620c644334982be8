// SPDX-License-Identifier: Apache-2.0
/* moe.c: routing to experts, and the experts.
 *
 * A slot is one (row, chosen expert) pair. Slots are put in order of expert (and of row within an expert), cut into
 * blocks that run together, and every block is a product like any other; the sum over a row's experts is taken in order
 * of their rank. So which other rows go to the same expert changes nothing for a row. */
#include <math.h>
#include <string.h>

#include "backend/cpu/adapter/adapter.h"

/* ---- routing ---- */

/* Greater, with NaN below everything. */
static int above(float a, float b)
{
    return a > b || (isnan(b) && !isnan(a));
}

/* ids and weights of the n_used largest logits, in falling order, equal ones in order of index. The weight of an expert
 * is its softmax over all experts, or the sigmoid of its logit. */
static void route_row(const weft_attr_moe *a, const float *logit, float *out)
{
    float *id = out, *weight = out + a->n_used;
    for (int32_t e = 0, n = 0; e < a->n_experts; e++) {
        int32_t i = n;
        while (i > 0 && above(logit[e], logit[(int32_t)id[i - 1]])) i--;
        if (i >= a->n_used) continue;
        if (n < a->n_used) n++;
        memmove(id + i + 1, id + i, (size_t)(n - 1 - i) * sizeof *id);
        id[i] = (float)e;
    }
    double top = logit[(int32_t)id[0]], denominator = 0, sum = 0;
    if (a->gate == WEFT_MOE_SOFTMAX)
        for (int32_t e = 0; e < a->n_experts; e++) denominator += exp(logit[e] - top);
    for (int32_t i = 0; i < a->n_used; i++) {
        double x = logit[(int32_t)id[i]];
        double w = a->gate == WEFT_MOE_SOFTMAX ? exp(x - top) / denominator : 1 / (1 + exp(-x));
        weight[i] = (float)w;
        sum += w;
    }
    for (int32_t i = 0; i < a->n_used; i++) weight[i] = (float)(weight[i] / (a->normalize ? sum : 1.0) * a->scale);
}

static void run_route(weft_run *run, const weft__cpu_step *s, int thread)
{
    const weft_attr_moe *a = &s->node->attr.moe;
    int64_t n = weft__cpu_rows(run, s), last = weft__cpu_share(n, thread + 1, run->n_threads);
    for (int64_t r = weft__cpu_share(n, thread, run->n_threads); r < last; r++)
        route_row(a, run->data[s->node->in[0]] + r * a->n_experts, run->data[s->node->out[0]] + r * 2 * a->n_used);
}

/* ---- grouping ---- */

/* Expert number `rank` of row r. A route that came from outside this program may hold anything: what is no expert
 * becomes expert 0 here, and its weight not a number (weight_of), so that the row's output shows it. */
static int32_t expert_of(const weft_attr_moe *a, const float *route, int64_t r, int32_t rank)
{
    float id = route[r * 2 * a->n_used + rank];
    return id >= 0 && id < (float)a->n_experts ? (int32_t)id : 0;
}

static float weight_of(const weft_attr_moe *a, const float *route, int64_t r, int32_t rank)
{
    float id = route[r * 2 * a->n_used + rank];
    return id >= 0 && id < (float)a->n_experts ? route[r * 2 * a->n_used + a->n_used + rank] : NAN;
}

/* Counting sort of the slots by expert into th->slot_row and th->slot_of, then blocks; returns their number. Every
 * thread does it for itself. */
static int32_t group_slots(const weft__cpu_moe *m, const float *route, int64_t n_rows, weft__cpu_thread *th)
{
    const weft_attr_moe *a = &m->attr;
    int32_t *start = th->expert_n, n_blocks = 0, tile_x = 0, tile_h = 0;
    int64_t chunk = m->in_x.chunk < m->in_h.chunk ? m->in_x.chunk : m->in_h.chunk;
    memset(start, 0, ((size_t)a->n_experts + 1) * sizeof *start);
    for (int64_t r = 0; r < n_rows; r++)
        for (int32_t i = 0; i < a->n_used; i++) start[expert_of(a, route, r, i) + 1]++;
    for (int32_t e = 0; e < a->n_experts; e++) {
        int32_t n = start[e + 1];
        start[e + 1] += start[e];
        for (int32_t done = 0; done < n; done += (int32_t)chunk) {
            int32_t rows = n - done < chunk ? n - done : (int32_t)chunk;
            th->blocks[n_blocks++] = (weft__cpu_block){e, start[e] + done, rows, tile_x, tile_h};
            tile_x += (rows + m->in_x.tile - 1) / m->in_x.tile;
            tile_h += (rows + m->in_h.tile - 1) / m->in_h.tile;
        }
    }
    for (int64_t r = 0; r < n_rows; r++) {
        for (int32_t i = 0; i < a->n_used; i++) {
            int32_t slot = start[expert_of(a, route, r, i)]++;
            th->slot_row[slot] = (int32_t)r;
            th->slot_of[r * a->n_used + i] = slot;
        }
    }
    return n_blocks;
}

/* ---- adapters: their rows are slots ---- */

/* h of this thread's share of the slots, for gate and up from x. */
static void shrink_x(weft_run *run, const weft__cpu_step *s, int64_t n_rows, int thread)
{
    const weft__cpu_moe *m = s->data;
    const float *route = run->data[m->route], *x = run->data[m->x];
    int64_t used = m->attr.n_used, last = weft__cpu_share(n_rows * used, thread + 1, run->n_threads);
    for (int64_t i = weft__cpu_share(n_rows * used, thread, run->n_threads); i < last; i++) {
        const weft_adapter *a = weft__cpu_adapter_of(run, weft__cpu_row_kind(run, s), i / used);
        int32_t expert = expert_of(&m->attr, route, i / used, (int32_t)(i % used)),
                slot = run->threads[thread].slot_of[i];
        if (!a) continue;
        weft__cpu_shrink_row(run, thread, a, &m->gate, expert, x + i / used * m->gate.k, slot, 0);
        weft__cpu_shrink_row(run, thread, a, &m->up, expert, x + i / used * m->up.k, slot, 1);
    }
}

/* The same for down from the hidden values. */
static void shrink_hidden(weft_run *run, const weft__cpu_step *s, int64_t n_rows, const float *hidden, int thread)
{
    const weft__cpu_moe *m = s->data;
    int64_t used = m->attr.n_used, last = weft__cpu_share(n_rows * used, thread + 1, run->n_threads);
    for (int64_t i = weft__cpu_share(n_rows * used, thread, run->n_threads); i < last; i++) {
        const weft_adapter *a = weft__cpu_adapter_of(run, weft__cpu_row_kind(run, s), i / used);
        int32_t expert = expert_of(&m->attr, run->data[m->route], i / used, (int32_t)(i % used)),
                slot = run->threads[thread].slot_of[i];
        if (a) weft__cpu_shrink_row(run, thread, a, &m->down, expert, hidden + slot * m->down.k, slot, 2);
    }
}

/* The groups of a block: runs of slots with one adapter. */
static weft__cpu_delta delta_of_block(const weft_run *run, const weft__cpu_step *s, const weft__cpu_block *k,
                                      weft__cpu_thread *th)
{
    weft__cpu_delta d = {.group = th->slot_groups, .row = k->slot, .n = k->n, .expert = k->expert};
    if (run->groups[0].n == 0) return d;
    const weft_adapter *before = NULL;
    for (int32_t i = k->slot; i < k->slot + k->n; i++) {
        const weft_adapter *a = weft__cpu_adapter_of(run, weft__cpu_row_kind(run, s), th->slot_row[i]);
        if (a && a == before) th->slot_groups[d.n_groups - 1].n++;
        else if (a) th->slot_groups[d.n_groups++] = (weft__cpu_group){a, i, 1};
        before = a;
    }
    return d;
}

/* ---- experts ---- */

/* Prepares this thread's share of the tiles of all blocks. Row i of a block is row `slot_row[slot + i]` of x; slot_row
 * NULL: row slot + i itself, and the tiles are those of h. */
static void moe_prepare(const weft_run *run, int thread, const weft__cpu_input *in, const size_t *offset,
                        size_t tile_bytes, int32_t n_blocks, const float *x, const int32_t *slot_row, uint8_t *acts)
{
    const weft__cpu_thread *th = &run->threads[thread];
    const weft__cpu_block *end = &th->blocks[n_blocks - 1];
    int32_t n_tiles = (slot_row ? end->tile_x : end->tile_h) + (end->n + in->tile - 1) / in->tile;
    int64_t first = weft__cpu_share(n_tiles, thread, run->n_threads);
    int64_t last = weft__cpu_share(n_tiles, thread + 1, run->n_threads);
    for (int32_t b = 0; b < n_blocks; b++) {
        const weft__cpu_block *block = &th->blocks[b];
        int64_t tile = slot_row ? block->tile_x : block->tile_h;
        for (int32_t i = 0; i < block->n; i++) {
            int64_t t = tile + i / in->tile;
            if (t < first || t >= last) continue;
            int64_t row = slot_row ? slot_row[block->slot + i] : block->slot + i;
            weft__cpu_put(in, offset, x + row * in->k, in->k, (weft__act_part){in->k, block->n, 0, in->k, i, 1},
                          acts + (size_t)tile * tile_bytes);
        }
    }
}

/* out[r] = sum over ranks of weight * y[slot], for outputs [first, last). */
static void sum_experts(weft_run *run, const weft__cpu_moe *m, const weft__cpu_thread *th, const float *y,
                        int64_t n_rows, int64_t first, int64_t last)
{
    const float *route = run->data[m->route];
    int64_t d = m->down.n;
    for (int64_t r = 0; r < n_rows; r++) {
        float *out = run->data[m->out] + r * d;
        for (int64_t j = first; j < last; j++) out[j] = 0;
        for (int32_t i = 0; i < m->attr.n_used; i++) {
            float w = weight_of(&m->attr, route, r, i);
            const float *from = y + (int64_t)th->slot_of[r * m->attr.n_used + i] * d;
            for (int64_t j = first; j < last; j++) out[j] += w * from[j];
        }
    }
}

/* hidden = act(gate x) * up x for this thread's hidden values of every block. */
static void run_gates(weft_run *run, const weft__cpu_step *s, int64_t n_rows, int32_t n_blocks, float *hidden,
                      int thread)
{
    const weft__cpu_moe *m = s->data;
    const int64_t *split = run->split + m->split_at;
    weft__cpu_thread *th = &run->threads[thread];
    const float *x = run->data[m->x];
    uint8_t *act_x = (uint8_t *)run->shared->data + m->act_x;
    int64_t first = split[thread], last = split[thread + 1], f = m->gate.n;
    const weft__cpu_glu glu = {&m->gate, &m->up, m->attr.activation, NULL};
    int alone = n_rows == 1; /* a single row enters all its experts in the same form */
    int delta = weft__cpu_has_delta(run, s, &m->gate, 1) || weft__cpu_has_delta(run, s, &m->up, 1);
    if (delta) shrink_x(run, s, n_rows, thread);
    if (alone) {
        weft__cpu_prepare(&m->in_x, x, m->in_x.k, (weft__act_part){m->in_x.k, 1, 0, m->in_x.k, 0, 1}, th->act);
        if (delta) weft__pool_barrier(run->program->backend->pool, thread);
    } else {
        moe_prepare(run, thread, &m->in_x, m->x_offset, m->tile_x, n_blocks, x, th->slot_row, act_x);
        weft__pool_barrier(run->program->backend->pool, thread);
    }
    for (int32_t b = 0; b < n_blocks && first < last; b++) {
        const weft__cpu_block *k = &th->blocks[b];
        weft__cpu_delta d = delta_of_block(run, s, k, th);
        const weft__cpu_prepared at = {alone ? th->act : act_x + (size_t)k->tile_x * m->tile_x,
                                       alone ? m->in_x.tile_offset : m->x_offset, k->slot, k->n};
        weft__cpu_gated(run, th, &glu, &at, &d, first, last, hidden + k->slot * f + first, f);
    }
}

/* The hidden values, where they are an output: this thread's share of the rows, each row's in order of rank. */
static void give_hidden(weft_run *run, const weft__cpu_moe *m, const weft__cpu_thread *th, const float *hidden,
                        int64_t n_rows, int thread)
{
    int64_t f = m->gate.n, used = m->attr.n_used, last = weft__cpu_share(n_rows, thread + 1, run->n_threads) * used;
    float *out = run->data[m->out_hidden];
    for (int64_t i = weft__cpu_share(n_rows, thread, run->n_threads) * used; i < last; i++)
        memcpy(out + i * f, hidden + th->slot_of[i] * f, (size_t)f * sizeof *out);
}

static void run_moe(weft_run *run, const weft__cpu_step *s, int thread)
{
    const weft__cpu_moe *m = s->data;
    weft__cpu_thread *th = &run->threads[thread];
    uint8_t *shared = run->shared->data, *act_h = shared + m->act_h;
    float *hidden = (float *)(shared + m->hidden), *y = (float *)(shared + m->y);
    const int64_t *split = run->split + m->split_at + run->n_threads + 1;
    int64_t n_rows = weft__cpu_rows(run, s), d = m->down.n, first = split[thread], last = split[thread + 1];
    int32_t n_blocks = group_slots(m, run->data[m->route], n_rows, th);
    run_gates(run, s, n_rows, n_blocks, hidden, thread);
    weft__pool_barrier(run->program->backend->pool, thread);
    if (m->out_hidden != WEFT_NONE) give_hidden(run, m, th, hidden, n_rows, thread);
    if (weft__cpu_has_delta(run, s, &m->down, 1)) shrink_hidden(run, s, n_rows, hidden, thread);
    moe_prepare(run, thread, &m->in_h, m->in_h.chunk_offset, m->tile_h, n_blocks, hidden, NULL, act_h);
    weft__pool_barrier(run->program->backend->pool, thread);
    if (first >= last) return;
    for (int32_t b = 0; b < n_blocks; b++) {
        const weft__cpu_block *k = &th->blocks[b];
        const weft__cpu_prepared at = {act_h + (size_t)k->tile_h * m->tile_h, m->in_h.chunk_offset, k->slot, k->n};
        weft__cpu_multiply(&m->down, k->expert, first, last, &at, y + k->slot * d + first, d, NULL);
        weft__cpu_delta delta = delta_of_block(run, s, k, th);
        weft__cpu_expand(run, &delta, &m->down, 2, first, last, y + k->slot * d + first, d, NULL);
    }
    sum_experts(run, m, th, y, n_rows, first, last);
}

/* ---- building ---- */

/* Bytes of a tile of the widest form; blocks are laid out in such tiles, so no form may need more for its whole
 * tiles. */
static weft_status tile_bytes(const weft__cpu_input *in, size_t *bytes, weft_error *err)
{
    *bytes = 0;
    for (int a = 0; a < in->n_acts; a++) weft__cpu_need(bytes, weft__cpu_round(in->act[a]->bytes(in->k, in->tile)));
    for (int a = 0; a < in->n_acts; a++)
        if (in->act[a]->bytes(in->k, in->chunk) > (size_t)(in->chunk / in->tile) * *bytes)
            return weft_fail(err, WEFT_INTERNAL, "form %s does not lie in whole tiles", in->act[a]->name);
    return WEFT_OK;
}

/* Places the areas of the shared scratch, and counts the thread's own. */
static weft_status plan_scratch(weft_program *p, weft__cpu_moe *m, int64_t max_rows, weft_error *err)
{
    size_t slots = (size_t)max_rows * (size_t)m->attr.n_used, experts = (size_t)m->attr.n_experts;
    size_t chunk = (size_t)(m->in_x.chunk < m->in_h.chunk ? m->in_x.chunk : m->in_h.chunk);
    size_t blocks = (experts < slots ? experts : slots) + slots / chunk + 1;
    weft_status st;
    if ((st = tile_bytes(&m->in_x, &m->tile_x, err)) || (st = tile_bytes(&m->in_h, &m->tile_h, err))) return st;
    size_t form_x = (slots / (size_t)m->in_x.tile + blocks) * m->tile_x,
           form_h = (slots / (size_t)m->in_h.tile + blocks) * m->tile_h;
    for (int a = 0; a < m->in_x.n_acts; a++) m->x_offset[a] = (size_t)a * form_x;
    m->hidden = m->act_x + (size_t)m->in_x.n_acts * form_x;
    m->act_h = m->hidden + weft__cpu_round(slots * (size_t)m->gate.n * sizeof(float));
    m->y = m->act_h + form_h;
    weft__cpu_need(&p->needs.shared, m->y + slots * (size_t)m->down.n * sizeof(float));
    weft__cpu_need(&p->needs.act, m->in_x.tile_bytes);
    weft__cpu_need(&p->needs.glu, WEFT__CPU_GLU_FLOATS * sizeof(float));
    weft__cpu_need(&p->needs.slot_groups, slots * sizeof(weft__cpu_group));
    weft__cpu_need_gathered(p, m->in_x.k);
    weft__cpu_need_gathered(p, m->in_h.k);
    weft__cpu_need(&p->needs.slots, slots * sizeof(int32_t));
    weft__cpu_need(&p->needs.experts, (experts + 1) * sizeof(int32_t));
    weft__cpu_need(&p->needs.blocks, blocks * sizeof(weft__cpu_block));
    return WEFT_OK;
}

void weft__cpu_split_moe(const weft__cpu_moe *m, int n_threads, int64_t *split)
{
    const weft__cpu_matrix *gate_up[] = {&m->gate, &m->up}, *down = &m->down;
    weft__cpu_split_outputs(gate_up, 2, 1, WEFT__CPU_UNIT, n_threads, split);
    weft__cpu_split_outputs(&down, 1, 1, WEFT__CPU_UNIT, n_threads, split + n_threads + 1);
}

static weft_status build_experts(weft_program *p, weft__cpu_step *s, weft__cpu_moe *m, weft_error *err)
{
    const weft_node *n = s->node;
    int64_t max_rows = s->rows == WEFT_WANTED ? p->segment->max_wanted : p->segment->max_rows;
    weft_status st;
    if ((st = weft__cpu_matrix_init(p, &m->gate, n->w[0], err)) ||
        (st = weft__cpu_matrix_init(p, &m->up, n->w[1], err)) ||
        (st = weft__cpu_matrix_init(p, &m->down, n->w[2], err)))
        return st;
    weft__cpu_matrix *gate_up[] = {&m->gate, &m->up}, *down = &m->down;
    weft__cpu_input_init(&m->in_x, gate_up, 2, max_rows * m->attr.n_used);
    weft__cpu_input_init(&m->in_h, &down, 1, max_rows * m->attr.n_used);
    const size_t n_split = 2 * ((size_t)p->backend->n_threads + 1);
    int64_t *split = weft__cpu_own(&p->owned, n_split, sizeof *split);
    if (!split) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %s", p->graph->tensors[n->out[0]].name);
    weft__cpu_split_moe(m, p->backend->n_threads, split);
    m->split = split;
    m->split_at = p->needs.split;
    p->needs.split += n_split;
    return plan_scratch(p, m, max_rows, err);
}

weft_status weft__cpu_build_moe(weft_program *p, weft__cpu_step *s, weft_error *err)
{
    if (s->node->op == WEFT_OP_MOE_ROUTE) {
        s->run = run_route;
        return WEFT_OK;
    }
    weft__cpu_moe *m = weft__cpu_own(&p->owned, 1, sizeof *m);
    if (!m) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %s", p->graph->tensors[s->node->out[0]].name);
    m->attr = s->node->attr.moe;
    m->x = s->node->in[0];
    m->route = s->node->in[1];
    m->out = s->node->out[0];
    m->out_hidden = s->node->n_out > 1 ? s->node->out[1] : WEFT_NONE;
    s->run = run_moe;
    s->data = m;
    return build_experts(p, s, m, err);
}
