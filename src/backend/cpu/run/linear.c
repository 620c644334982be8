// SPDX-License-Identifier: Apache-2.0
/* linear.c: products with the weights: norm in front, up to three matrices of one input, gate and residual behind.
 *
 * Rows of at most one tile are prepared by every thread for itself: it costs one thread's time in either case, and
 * saves a barrier, which is what a decode step has most of; where adapters act on the product there is one, so that
 * each A is read by one thread. More rows are prepared together, then multiplied chunk by chunk. Rows that come
 * prepared (direct.c) have that barrier only where adapters act on the product. */
#include "backend/cpu/adapter/adapter.h"
#include "backend/cpu/run/steal.h"

enum {
    BLOCK = 128, /* outputs that are claimed together: a multiple of WEFT__CPU_UNIT and of every panel; */
    LARGE = 512, /* with few rows up to so many, half of what is left of a column; */
    BLOCK_ROWS =
        64,     /* where B's are prefetched, as many more as rows are fewer than this: B's are then read in long runs */
    OWNERS = 8, /* threads whose shares one works at, with few rows: looking at each takes time */
    AHEAD = 4,  /* rows for which residuals are fetched in advance */
    PREFETCHED = 256 /* rows at most whose residuals are prefetched while their outputs are computed */
};

_Static_assert(LARGE % BLOCK == 0, "sizes of blocks are multiples of the least");
_Static_assert((int)BLOCK_ROWS >= (int)WEFT__CPU_PREFETCH_ROWS, "a block has outputs");

const float *weft__cpu_linear_row(const weft_run *run, const weft__cpu_linear *l, weft__cpu_thread *th, int64_t row)
{
    const float *x = run->data[l->x] + row * l->input.k;
    if (!l->norm) return x;
    run->k->norm_rms(x, l->norm, l->eps, l->input.k, th->row);
    return th->row;
}

/* Rows [first, last) of n, a tile at a time. */
static void prepare_rows(weft_run *run, const weft__cpu_linear *l, weft__cpu_thread *th, int64_t first, int64_t last,
                         int64_t n, uint8_t *acts)
{
    const int64_t k = l->input.k;
    for (int64_t r = first, rows; r < last; r += rows) {
        const float *x = run->data[l->x] + r * k;
        rows = last - r < l->input.tile ? last - r : l->input.tile;
        for (int64_t i = 0; l->norm && i < rows; i++) run->k->norm_rms(x + i * k, l->norm, l->eps, k, th->row + i * k);
        weft__cpu_prepare(&l->input, l->norm ? th->row : x, k, (weft__act_part){k, n, 0, k, r, rows}, acts);
    }
}

static const float *residual_of(const weft_run *run, const weft__cpu_linear *l, int i)
{
    return i == 0 && l->residual != WEFT_NONE ? run->data[l->residual] : NULL;
}

/* What stands behind matrix i, for outputs [first, last) of n rows from `row` on. */
static void epilogue(weft_run *run, const weft__cpu_linear *l, int i, int64_t first, int64_t last, int64_t row,
                     int64_t n)
{
    const weft__cpu_matrix *m = &l->m[i];
    const float *residual = residual_of(run, l, i);
    if (!m->bias && !residual) return;
    for (int64_t r = row; r < row + n; r++) {
        float *y = run->data[l->out[i]] + r * m->n + first;
        /* Rows lie too far apart for the processor to foresee the next. */
        for (int64_t j = first; residual && r + AHEAD < row + n && j < last; j += 16)
            __builtin_prefetch(residual + (r + AHEAD) * m->n + j);
        if (m->bias) run->k->add(y, m->bias + first, last - first, y);
        if (residual) run->k->add(y, residual + r * m->n + first, last - first, y);
    }
}

/* n rows from `row` on, whose prepared forms are at acts. */
typedef struct rows_at {
    const uint8_t *acts;
    const size_t *offset;
    int64_t row, n;
    weft__cpu_delta delta;
} rows_at;

/* What is prefetched while outputs of rows are computed that are so many that memory has time to spare: their
 * residuals, which others have driven out of the caches since. (Of a prompt of 512 on a Zen 5 0.5 %.) */
typedef struct residual_prefetch {
    weft__range row[PREFETCHED];
    weft__kernel_prefetch ahead;
} residual_prefetch;

static weft__kernel_prefetch *prefetch_residuals(const weft_run *run, const weft__cpu_linear *l, weft__cpu_outputs o,
                                                 const rows_at *r, residual_prefetch *prefetch)
{
    const weft__cpu_matrix *m = &l->m[o.i];
    const float *residual = residual_of(run, l, o.i);
    const int n = r->n < PREFETCHED ? (int)r->n : PREFETCHED;
    if (!residual || n <= WEFT__CPU_PREFETCH_ROWS || !m->mm->prefetches) return NULL;
    for (int i = 0; i < n; i++)
        prefetch->row[i] = (weft__range){(const uint8_t *)(residual + (r->row + i) * m->n + o.first),
                                         (size_t)(o.last - o.first) * sizeof *residual};
    prefetch->ahead = (weft__kernel_prefetch){.range = prefetch->row, .n = n};
    return &prefetch->ahead;
}

/* next: what the thread reads then, or NULL. */
static void multiply(weft_run *run, const weft__cpu_linear *l, int thread, weft__cpu_outputs o, rows_at r,
                     const uint8_t *next)
{
    int64_t width = l->m[o.i].n;
    float *y = run->data[l->out[o.i]] + r.row * width + o.first;
    const weft__cpu_prepared at = {r.acts, r.offset, r.row, r.n};
    if (l->activation != WEFT_ACT_NONE) {
        const weft__cpu_glu g = {&l->m[0], &l->m[1], l->activation, l->to};
        weft__cpu_gated(run, &run->threads[thread], &g, &at, &r.delta, o.first, o.last, y, width);
        return;
    }
    const weft__cpu_matrix *m = &l->m[o.i];
    residual_prefetch prefetch;
    weft__kernel_prefetch *ahead =
        weft__cpu_prefetch_of(&r.delta, m, o.first, o.last, weft__cpu_first_b(&r.delta, 0, m, o.first, next));
    if (!ahead) ahead = prefetch_residuals(run, l, o, &r, &prefetch);
    weft__cpu_multiply(m, 0, o.first, o.last, &at, y, width, ahead);
    weft__cpu_expand(run, &r.delta, m, o.i, o.first, o.last, y, width, next);
    epilogue(run, l, o.i, o.first, o.last, r.row, r.n);
}

static weft__cpu_shares shares_of(const weft_run *run, const weft__cpu_linear *l)
{
    return (weft__cpu_shares){run->split + l->split_at, l->n_columns};
}

/* Where the weights of a thread's share begin, from column i on; NULL where there are none. */
static const uint8_t *share_begins(const weft_run *run, const weft__cpu_linear *l, int thread, int i)
{
    for (; i < l->n_columns; i++) {
        weft__cpu_outputs o = weft__cpu_share_of(shares_of(run, l), thread, i);
        if (o.first < o.last) return weft__cpu_panels(&l->m[i], 0, o.first);
    }
    return NULL;
}

static void multiply_share(weft_run *run, const weft__cpu_linear *l, int thread, rows_at r)
{
    for (int i = 0; i < l->n_columns; i++) {
        weft__cpu_outputs o = weft__cpu_share_of(shares_of(run, l), thread, i);
        if (o.first < o.last) multiply(run, l, thread, o, r, share_begins(run, l, thread, i + 1));
    }
}

/* This thread's blocks, then what others have not begun yet: a neighbour that was given this thread's core, a slower
 * core, or memory that serves one core better than another for a while, holds up one block instead of a share. (Two
 * threads decoding Q4_K on a Zen 4 whose memory others use, too, waited 1.4 to 4.0 ms of 20 for each other; with blocks
 * 0.3 to 0.5.) With few rows reading takes the time: only what lies in this thread's NUMA node is taken over. */
static void multiply_blocks(weft_run *run, const weft__cpu_linear *l, int thread, weft__cpu_claim *claims,
                            weft__cpu_block_size size, int few_rows, rows_at r)
{
    const int node = weft__pool_node(run->program->backend->pool, thread);
    int n_owners = few_rows ? OWNERS : run->n_threads;
    weft__cpu_outputs o;
    for (int k = 0; k < run->n_threads && n_owners > 0; k++) {
        const int owner = (thread + k) % run->n_threads;
        if (few_rows && weft__pool_node(run->program->backend->pool, owner) != node) continue;
        n_owners--;
        while (weft__cpu_take_block(shares_of(run, l), owner, &claims[owner], size, &o))
            multiply(run, l, thread, o, r, NULL);
    }
}

/* Rows of one tile. */
static void run_few(weft_run *run, const weft__cpu_step *s, int thread, int64_t n)
{
    const weft__cpu_linear *l = s->data;
    weft__cpu_thread *th = &run->threads[thread];
    const size_t *offset = l->input.tile_offset;
    const int direct = weft__cpu_is_direct(run, l->from), adapted = weft__cpu_has_delta(run, s, l->m, l->n_mat);
    const uint8_t *share = share_begins(run, l, thread, 0), *acts = direct ? (uint8_t *)run->data[l->x] : th->act;
    weft__cpu_fetch_linear(run, s, thread, share);
    if (!direct) prepare_rows(run, l, th, 0, n, n, th->act);
    weft__cpu_delta delta = weft__cpu_delta_of(run, weft__cpu_row_kind(run, s), 0, n);
    if (adapted) {
        weft__cpu_shrink_linear(run, s, thread, (weft__cpu_prepared){acts, offset, 0, n}, 0, n, 1, share);
        delta.after = weft__cpu_arrive(run, thread);
        delta.ahead = weft__cpu_prefetch_begin(run, s, thread);
    }
    const rows_at r = {acts, offset, 0, n, delta};
    /* With adapters each thread knows what it reads next; a single one has no other to steal from. */
    if (adapted || run->n_threads == 1) multiply_share(run, l, thread, r);
    else
        multiply_blocks(run, l, thread, weft__cpu_claims_of(run, thread, 1), (weft__cpu_block_size){BLOCK, LARGE}, 1,
                        r);
}

static void run_linear(weft_run *run, const weft__cpu_step *s, int thread)
{
    const weft__cpu_linear *l = s->data;
    const weft__cpu_input *in = &l->input;
    weft__cpu_thread *th = &run->threads[thread];
    int64_t n = weft__cpu_rows(run, s);
    if (n <= in->tile) {
        run_few(run, s, thread, n);
        return;
    }
    const int direct = weft__cpu_is_direct(run, l->from), delta = weft__cpu_has_delta(run, s, l->m, l->n_mat);
    uint8_t *acts = direct ? (uint8_t *)run->data[l->x] : run->shared->data;
    int64_t first, last;
    weft__cpu_prepares(run, l, n, thread, &first, &last);
    for (int64_t r = first, end; r < last && (delta || !direct); r = end) { /* this thread's rows of one chunk */
        int64_t c = r / in->chunk, begin = c * in->chunk, rows = n - begin < in->chunk ? n - begin : in->chunk;
        end = begin + rows < last ? begin + rows : last;
        if (!direct) prepare_rows(run, l, th, r, end, n, acts);
        if (delta)
            weft__cpu_shrink_linear(
                run, s, thread, (weft__cpu_prepared){acts + (size_t)c * in->chunk_bytes, in->chunk_offset, begin, rows},
                r, end, 0, NULL);
    }
    const int64_t n_chunks = (n + in->chunk - 1) / in->chunk;
    weft__cpu_claim *claims = weft__cpu_claims_of(run, thread, (size_t)n_chunks);
    weft__cpu_prefetch *ahead = weft__cpu_prefetch_begin(run, s, thread);
    const int64_t block = ahead ? BLOCK_ROWS / n * BLOCK : BLOCK; /* the same for every thread */
    const weft__cpu_block_size size = {block, block};
    const int per_block = l->activation == WEFT_ACT_NONE ? 1 : 2; /* products */
    if (ahead) ahead->n_products = per_block * weft__cpu_n_blocks(shares_of(run, l), thread, size) * (int)n_chunks;
    if (delta || !direct) weft__pool_barrier(run->program->backend->pool, thread);
    for (int64_t begin = 0; begin < n; begin += in->chunk, acts += in->chunk_bytes, claims += run->n_threads) {
        int64_t rows = n - begin < in->chunk ? n - begin : in->chunk;
        weft__cpu_delta d = weft__cpu_delta_of(run, weft__cpu_row_kind(run, s), begin, rows);
        d.ahead = ahead;
        multiply_blocks(run, l, thread, claims, size, 0, (rows_at){acts, in->chunk_offset, begin, rows, d});
    }
}

void weft__cpu_split_linear(const weft__cpu_linear *l, int n_threads, int64_t *split)
{
    const weft__cpu_matrix *m[WEFT_LINEAR_MAX];
    for (int i = 0; i < l->n_mat; i++) m[i] = &l->m[i];
    weft__cpu_split_outputs(m, l->n_mat, l->activation != WEFT_ACT_NONE, l->to ? WEFT__ACT_PART : WEFT__CPU_UNIT,
                            n_threads, split);
}

weft_status weft__cpu_build_linear(weft_program *p, weft__cpu_step *s, weft_error *err)
{
    const weft_node *node = s->node;
    const weft_attr_linear *a = &node->attr.linear;
    weft__cpu_linear *l = weft__cpu_own(&p->owned, 1, sizeof *l);
    weft__cpu_matrix *m[WEFT_LINEAR_MAX];
    int failed = 0;
    if (!l) goto no_memory;
    l->n_mat = a->n_mat;
    l->activation = a->activation;
    l->n_columns = a->activation == WEFT_ACT_NONE ? a->n_mat : 1;
    l->x = node->in[0];
    l->residual = a->residual == WEFT_NONE ? WEFT_NONE : node->in[a->residual];
    l->norm = weft__cpu_vector(p, a->norm_weight, &failed);
    l->eps = a->norm_eps;
    for (int i = 0; i < a->n_mat; i++) {
        weft_status st = weft__cpu_matrix_init(p, &l->m[i], node->w[i], err);
        if (st) return st;
        if (BLOCK % l->m[i].mm->panel_rows)
            return weft_fail(err, WEFT_INTERNAL, "panels of %d rows do not divide a block of %d",
                             l->m[i].mm->panel_rows, BLOCK);
        l->m[i].bias = weft__cpu_vector(p, a->bias[i], &failed);
        l->out[i] = node->out[i < node->n_out ? i : 0];
        m[i] = &l->m[i];
    }
    int64_t max_rows = s->rows == WEFT_WANTED ? p->segment->max_wanted : p->segment->max_rows;
    weft__cpu_input_init(&l->input, m, a->n_mat, max_rows);
    const size_t n_split = ((size_t)p->backend->n_threads + 1) * (size_t)l->n_columns;
    int64_t *split = weft__cpu_own(&p->owned, n_split, sizeof *split);
    if (!split || failed) goto no_memory;
    weft__cpu_split_linear(l, p->backend->n_threads, split);
    l->split = split;
    l->split_at = p->needs.split;
    p->needs.split += n_split;
    weft__cpu_need(&p->needs.act, l->input.tile_bytes);
    weft__cpu_need_gathered(p, l->input.k);
    weft__cpu_need(&p->needs.row, (size_t)l->input.tile * (size_t)l->input.k * sizeof(float));
    if (a->activation != WEFT_ACT_NONE) weft__cpu_need(&p->needs.glu, WEFT__CPU_GLU_FLOATS * sizeof(float));
    size_t n_chunks = (size_t)((max_rows + l->input.chunk - 1) / l->input.chunk);
    weft__cpu_need(&p->needs.shared, n_chunks * l->input.chunk_bytes);
    weft__cpu_need(&p->needs.chunks, n_chunks);
    s->run = run_linear;
    s->data = l;
    return WEFT_OK;
no_memory:
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for %s", p->graph->tensors[node->out[0]].name);
}
