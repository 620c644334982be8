// SPDX-License-Identifier: Apache-2.0
/* attention.c: attention over paged keys and values.
 *
 * Rows of one sequence are taken in tiles; a tile and a key/value head make one set of queries (rows × the heads that
 * share it). A query's context is cut into splits at fixed positions (WEFT__ATTN_SPLIT_TOKENS); each split yields a
 * partial softmax, and they are combined in order. Which thread computes a split never matters, so threads may divide
 * tiles, heads and splits as they like:
 *  - normally a thread computes all splits of its (head, tile) units and combines them itself: no barrier;
 *  - when there are too few such units, splits are divided too, their states are shared, and combined behind a
 * barrier. */
#include "backend/cpu/program.h"

enum { TILE_QUERIES = 32 };

static int32_t max32(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static int32_t min32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* First position that the row at `pos` sees. */
static int32_t begin_of(int32_t window, int32_t pos)
{
    return window > 0 ? max32(0, pos - window + 1) : 0;
}

/* ---- tiling ---- */

static weft_status add_tile(const weft_run *run, const weft__cpu_tiling *t, weft__cpu_tiles *to, int32_t row, int32_t n,
                            weft_error *err)
{
    const int32_t *pos = run->rows->pos + row;
    weft__cpu_tile *tile = &to->list[to->n];
    int32_t first = begin_of(t->window, pos[0]) / WEFT__ATTN_SPLIT_TOKENS, last = pos[n - 1] / WEFT__ATTN_SPLIT_TOKENS;
    uint64_t cost = 0;
    tile->row = row;
    tile->n = n;
    tile->seq = run->rows->seq[row];
    tile->first_split = first;
    tile->n_splits = last - first + 1;
    if (tile->n_splits > WEFT__CPU_MAX_SPLITS)
        return weft_fail(err, WEFT_LIMIT, "row %d attends to more than %d positions", row,
                         WEFT__CPU_MAX_SPLITS * WEFT__ATTN_SPLIT_TOKENS);
    for (int32_t i = 0; i < n; i++) cost += (uint64_t)(pos[i] + 1 - begin_of(t->window, pos[i]));
    tile[1].pair = tile->pair + tile->n_splits;
    tile[1].state = tile->state + (int64_t)tile->n_splits * n * t->heads;
    tile[1].cost = tile->cost + cost;
    to->n++;
    return WEFT_OK;
}

static int is_left_out(const weft_run *run, const weft__cpu_tiling *t, int32_t r)
{
    return t->if_wanted && run->moved && !weft_row_wants(run->rows, r, WEFT_WANT_LOGITS);
}

static weft_status tile_rows(weft_run *run, const weft__cpu_tiling *t, weft_error *err)
{
    const weft_rows *rows = run->rows;
    weft__cpu_tiles *to = &run->tiles[t->index];
    to->n = 0;
    to->list[0] = (weft__cpu_tile){0};
    for (int32_t r = 0, n; r < rows->n_rows; r += n) {
        const int left_out = is_left_out(run, t, r);
        for (n = 1; r + n < rows->n_rows && n < t->tile_rows && rows->seq[r + n] == rows->seq[r]; n++)
            if (is_left_out(run, t, r + n) != left_out) break;
        weft_status st = left_out ? WEFT_OK : add_tile(run, t, to, r, n, err);
        if (st) return st;
    }
    const weft__cpu_tile *sum = &to->list[to->n];
    to->n_pairs = sum->pair;
    int64_t units = (int64_t)to->n * t->n_kv_heads;
    int even = to->n == 1 && t->n_kv_heads % run->n_threads == 0;
    to->shared = run->n_threads > 1 && to->n_pairs > to->n && units < 4 * run->n_threads && !even &&
                 sum->state * t->n_kv_heads <= WEFT__CPU_SHARED_STATES;
    return WEFT_OK;
}

weft_status weft__cpu_tile_rows(weft_run *run, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < run->program->n_tilings && !st; i++) st = tile_rows(run, &run->program->tilings[i], err);
    return st;
}

/* ---- one tile and key/value head ---- */

static void describe_queries(weft_run *run, const weft__cpu_attention *a, const weft__cpu_tile *tile, int64_t head,
                             weft__cpu_thread *th, weft__attn *q)
{
    int32_t heads = a->tiling->heads, dim = a->attr.head_dim_k;
    int64_t row_width = (int64_t)a->attr.n_heads * dim, group_width = (int64_t)heads * dim;
    q->q = run->data[a->q] + tile->row * row_width + head * group_width;
    q->head_stride = dim;
    q->row_stride = row_width;
    q->n_q = tile->n * heads;
    q->row_heads = heads;
    q->begin = th->range;
    q->end = th->range + q->n_q;
    for (int32_t i = 0; i < q->n_q; i++) {
        int32_t pos = run->rows->pos[tile->row + i / heads];
        th->range[i] = begin_of(a->attr.window, pos);
        th->range[q->n_q + i] = pos + 1;
    }
}

/* Of this layer's keys (values: 0) or values (1) in the tile's pages. */
static uint32_t format_of(const weft_run *run, const weft__cpu_attention *a, const weft__cpu_tile *tile, int values)
{
    return weft_kv_format_of(weft__cpu_pages(run, a->attr.kv.group, tile->seq)->dtype, a->group, a->attr.kv.layer,
                             values);
}

static void describe_pages(weft_run *run, const weft__cpu_attention *a, const weft__cpu_tile *tile, int64_t head,
                           weft__attn *q)
{
    const weft_kv_group *g = a->group;
    const weft_kv_binding *b = weft__cpu_pages(run, a->attr.kv.group, tile->seq);
    const uint64_t k_bytes = weft_kv_part_bytes(format_of(run, a, tile, 0), g, 0),
                   v_bytes = weft_kv_part_bytes(format_of(run, a, tile, 1), g, 1),
                   layer = weft_kv_layer_at(b->dtype, g, a->attr.kv.layer);
    q->head_dim_k = g->head_dim_k;
    q->head_dim_v = g->head_dim_v;
    q->data = b->data;
    q->pages = run->rows->seqs[tile->seq].pages[a->attr.kv.group];
    q->page_bytes = b->page_bytes;
    q->k_offset = layer + (uint64_t)head * k_bytes;
    q->v_offset = layer + (uint64_t)g->n_kv_heads * k_bytes + (uint64_t)head * v_bytes;
    q->page_tokens = g->page_tokens;
    q->scale = a->attr.scale;
    q->softcap = a->attr.softcap;
    q->next_k = q->next_v = NULL;
    q->next_slots = 0;
}

/* Says that split `split` of a tile and head is read after q; where its pages are of another type, as many bytes of it
 * are asked for as if they were of q's. Measured: a context of a few pages is over before the processor's own
 * prefetching knows where it goes; 16 rows of 64 positions each took 1.8 times as long without this. */
static void read_next(weft_run *run, const weft__cpu_attention *a, const weft__cpu_tile *tile, int64_t head,
                      int32_t split, weft__attn *q)
{
    weft__attn next;
    describe_pages(run, a, tile, head, &next);
    const int32_t first = max32(split * WEFT__ATTN_SPLIT_TOKENS, begin_of(a->attr.window, run->rows->pos[tile->row]));
    const int32_t at = first / next.page_tokens, page = next.pages[at];
    if (page < 0) return;
    q->next_slots = min32(next.page_tokens, run->rows->pos[tile->row + tile->n - 1] + 1 - at * next.page_tokens);
    q->next_k = next.data + (uint64_t)page * next.page_bytes + next.k_offset;
    q->next_v = next.data + (uint64_t)page * next.page_bytes + next.v_offset;
}

/* One split of the tile's queries, which q describes. */
static void attend(const weft_run *run, const weft__cpu_attention *a, const weft__cpu_tile *tile, const weft__attn *q,
                   int32_t split, float *scratch, float *state)
{
    const uint32_t format_k = format_of(run, a, tile, 0), format_v = format_of(run, a, tile, 1);
    if (format_k != format_v || weft_kv_is_coded(format_k))
        run->k->attn_coded(q, format_k, format_v, split, scratch, state);
    else run->k->attn_split(q, format_k, split, scratch, state);
}

/* Combines each query's own splits; state [n_splits][n_q][2 + V]. */
static void combine(weft_run *run, const weft__cpu_attention *a, const weft__cpu_tile *tile, int64_t head,
                    const float *state, weft__cpu_thread *th)
{
    int32_t heads = a->tiling->heads, n_q = tile->n * heads, dim = a->attr.head_dim_v;
    int64_t one = 2 + (int64_t)dim, stride = n_q * one, width = (int64_t)heads * dim,
            ldo = (int64_t)a->attr.n_heads * dim;
    const int direct = weft__cpu_is_direct(run, a->to), rotated = weft_kv_is_rotated(format_of(run, a, tile, 1));
    for (int32_t i = 0; i < n_q; i++) {
        int32_t row = tile->row + i / heads, pos = run->rows->pos[row];
        int32_t first = begin_of(a->attr.window, pos) / WEFT__ATTN_SPLIT_TOKENS, last = pos / WEFT__ATTN_SPLIT_TOKENS;
        float *y = direct ? th->row + i / heads * width : run->data[a->out] + row * ldo + head * width;
        y += (int64_t)(i % heads) * dim;
        run->k->attn_combine(state + (first - tile->first_split) * stride + i * one, stride, last - first + 1, dim, y);
        if (rotated) run->k->kv_rotate(y, (int)dim, y);
    }
    if (direct) weft__cpu_direct_pack(run, a->to, th->row, width, tile->row, tile->n, head * width, (head + 1) * width);
}

/* ---- the step ---- */

/* The first tile whose cost (of one head) is not below `cost`; n_tiles when there is none. */
static int32_t tile_at_cost(const weft__cpu_tiles *t, uint64_t cost)
{
    int32_t low = 0, high = t->n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (t->list[middle].cost < cost) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* All splits of the (head, tile) units that begin in this thread's share of the cost; heads outside, so that a head's
 * pages stay in the cache. */
static void run_whole(weft_run *run, const weft__cpu_attention *a, int thread)
{
    const weft__cpu_tiles *t = &run->tiles[a->tiling->index];
    const uint64_t n_heads = (uint64_t)a->tiling->n_kv_heads;
    weft__cpu_thread *th = &run->threads[thread];
    uint64_t per_head = t->list[t->n].cost, total = per_head * n_heads;
    uint64_t from = (uint64_t)weft__cpu_share((int64_t)total, thread, run->n_threads);
    uint64_t to = (uint64_t)weft__cpu_share((int64_t)total, thread + 1, run->n_threads);
    for (uint64_t head = from / per_head; head < n_heads && head * per_head < to; head++) {
        uint64_t base = head * per_head;
        for (int32_t i = from > base ? tile_at_cost(t, from - base) : 0; i < t->n && base + t->list[i].cost < to; i++) {
            const weft__cpu_tile *tile = &t->list[i];
            weft__attn q;
            describe_queries(run, a, tile, (int64_t)head, th, &q);
            describe_pages(run, a, tile, (int64_t)head, &q);
            int64_t stride = q.n_q * (2 + (int64_t)q.head_dim_v);
            for (int32_t s = 0; s < tile->n_splits; s++) {
                if (s + 1 < tile->n_splits) read_next(run, a, tile, (int64_t)head, tile->first_split + s + 1, &q);
                else if (i + 1 < t->n) read_next(run, a, tile + 1, (int64_t)head, tile[1].first_split, &q);
                else if (head + 1 < n_heads) read_next(run, a, t->list, (int64_t)head + 1, t->list->first_split, &q);
                attend(run, a, tile, &q, tile->first_split + s, th->attn, th->state + s * stride);
            }
            combine(run, a, tile, (int64_t)head, th->state, th);
        }
    }
}

/* The tile that holds pair `pair`. */
static const weft__cpu_tile *tile_of_pair(const weft__cpu_tiles *t, int32_t pair)
{
    int32_t low = 0, high = t->n - 1;
    while (low < high) {
        int32_t middle = low + (high - low + 1) / 2;
        if (t->list[middle].pair <= pair) low = middle;
        else high = middle - 1;
    }
    return &t->list[low];
}

/* Where the states of a tile and head begin in the shared scratch. */
static float *shared_state(weft_run *run, const weft__cpu_attention *a, const weft__cpu_tile *tile, int64_t head)
{
    const weft__cpu_tiling *t = a->tiling;
    int64_t at = tile->state * t->n_kv_heads + head * tile->n_splits * tile->n * t->heads;
    return (float *)run->shared->data + at * (2 + (int64_t)a->attr.head_dim_v);
}

static void run_shared(weft_run *run, const weft__cpu_attention *a, int thread)
{
    const weft__cpu_tiles *t = &run->tiles[a->tiling->index];
    const int64_t n_heads = a->tiling->n_kv_heads;
    weft__cpu_thread *th = &run->threads[thread];
    int64_t n = n_heads * t->n_pairs, last = weft__cpu_share(n, thread + 1, run->n_threads);
    for (int64_t u = weft__cpu_share(n, thread, run->n_threads); u < last; u++) {
        int64_t head = u / t->n_pairs;
        int32_t pair = (int32_t)(u % t->n_pairs);
        const weft__cpu_tile *tile = tile_of_pair(t, pair);
        weft__attn q;
        describe_queries(run, a, tile, head, th, &q);
        describe_pages(run, a, tile, head, &q);
        int32_t s = pair - tile->pair;
        float *state = shared_state(run, a, tile, head) + s * q.n_q * (2 + (int64_t)q.head_dim_v);
        attend(run, a, tile, &q, tile->first_split + s, th->attn, state);
    }
    weft__pool_barrier(run->program->backend->pool, thread);
    n = n_heads * t->n;
    last = weft__cpu_share(n, thread + 1, run->n_threads);
    for (int64_t u = weft__cpu_share(n, thread, run->n_threads); u < last; u++) {
        const weft__cpu_tile *tile = &t->list[u % t->n];
        combine(run, a, tile, u / t->n, shared_state(run, a, tile, u / t->n), th);
    }
}

static void run_attention(weft_run *run, const weft__cpu_step *s, int thread)
{
    const weft__cpu_attention *a = s->data;
    if (run->tiles[a->tiling->index].shared) run_shared(run, a, thread);
    else run_whole(run, a, thread);
}

/* ---- building ---- */

/* The program's tiling for this window and these heads, and for all rows or those that are wanted. */
static const weft__cpu_tiling *tiling_of(weft_program *p, const weft_attr_attention *a, int if_wanted)
{
    int32_t heads = a->n_heads / a->n_kv_heads;
    for (int32_t i = 0; i < p->n_tilings; i++) {
        weft__cpu_tiling *t = &p->tilings[i];
        if (t->window == a->window && t->heads == heads && t->n_kv_heads == a->n_kv_heads && t->if_wanted == if_wanted)
            return t;
    }
    weft__cpu_tiling *t = &p->tilings[p->n_tilings];
    *t = (weft__cpu_tiling){.window = a->window,
                            .tile_rows = max32(1, TILE_QUERIES / heads),
                            .heads = heads,
                            .n_kv_heads = a->n_kv_heads,
                            .if_wanted = if_wanted,
                            .index = p->n_tilings++};
    return t;
}

weft_status weft__cpu_build_attention(weft_program *p, weft__cpu_step *s, weft_error *err)
{
    const weft_attr_attention *attr = &s->node->attr.attention;
    weft__cpu_attention *a = weft__cpu_own(&p->owned, 1, sizeof *a);
    if (!a) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %s", p->graph->tensors[s->node->out[0]].name);
    const weft__cpu_tiling *t = tiling_of(p, attr, s->if_wanted);
    int32_t group = attr->kv.group;
    *a = (weft__cpu_attention){*attr, &p->graph->kv_groups[group], t, s->node->in[0], s->node->out[0], NULL};
    size_t n_q = (size_t)t->tile_rows * (size_t)t->heads, one = 2 + (size_t)attr->head_dim_v;
    weft__cpu_need(&p->needs.attn,
                   weft__attn_scratch((int)n_q, a->group->page_tokens, attr->head_dim_k, attr->head_dim_v) *
                       sizeof(float));
    weft__cpu_need(&p->needs.state, WEFT__CPU_MAX_SPLITS * n_q * one * sizeof(float));
    weft__cpu_need(&p->needs.row, n_q * (size_t)attr->head_dim_v * sizeof(float));
    weft__cpu_need(&p->needs.range, 2 * n_q * sizeof(int32_t));
    weft__cpu_need(&p->needs.shared, WEFT__CPU_SHARED_STATES * one * sizeof(float));
    /* The widest window that a layer of the group reads decides which pages must be there. */
    if (!(p->uses_group[group] & 2) ||
        (p->group_window[group] > 0 && (attr->window == 0 || attr->window > p->group_window[group])))
        p->group_window[group] = attr->window;
    p->uses_group[group] |= 2;
    s->run = run_attention;
    s->data = a;
    return WEFT_OK;
}
