// SPDX-License-Identifier: Apache-2.0
/* apply.c: what adapters add to the rows of a step (adapter.h). */
#include <sched.h>
#include <string.h>

#include "backend/cpu/adapter/adapter.h"

/* ---- rows by adapter ---- */

const weft_adapter *weft__cpu_adapter_of(const weft_run *run, int64_t rows, int64_t r)
{
    if (run->groups[0].n == 0) return NULL;
    int32_t i = run->rows->adapter[rows == WEFT_WANTED ? run->wanted[r] : r];
    return i < 0 ? NULL : run->rows->adapters[i];
}

/* Counting sort of n rows by adapter into *g. of: the step's row of each, or NULL: itself. start [n_adapters + 1]. */
static void group(const weft_rows *rows, const int32_t *of, int32_t n, int32_t *start, weft__cpu_groups *g)
{
    g->n = 0;
    memset(start, 0, ((size_t)rows->n_adapters + 1) * sizeof *start);
    for (int32_t r = 0; r < n; r++) {
        int32_t a = rows->adapter[of ? of[r] : r];
        if (a >= 0) start[a + 1]++;
    }
    for (int32_t a = 0; a < rows->n_adapters; a++) {
        int32_t count = start[a + 1];
        start[a + 1] += start[a];
        if (count && rows->adapters[a]) g->list[g->n++] = (weft__cpu_group){rows->adapters[a], start[a], count};
    }
    for (int32_t r = 0; r < n; r++) {
        int32_t a = rows->adapter[of ? of[r] : r];
        if (a >= 0) g->rows[start[a]++] = r;
    }
}

weft_status weft__cpu_group_rows(weft_run *run, const weft_rows *rows, weft_error *err)
{
    run->groups[0].n = run->groups[1].n = 0;
    if (!rows->adapter) return WEFT_OK;
    if (rows->n_adapters < 0 || rows->n_adapters > run->program->segment->max_rows ||
        (rows->n_adapters && !rows->adapters))
        return weft_fail(err, WEFT_ARGUMENT, "a step with %d adapters; the plan is for %d rows", rows->n_adapters,
                         run->program->segment->max_rows);
    for (int32_t i = 0; i < rows->n_adapters; i++)
        if (rows->adapters[i] && rows->adapters[i]->program != run->program)
            return weft_fail(err, WEFT_ARGUMENT, "adapter %d of the step was made for another program", i);
    for (int32_t r = 0; r < rows->n_rows; r++)
        if (rows->adapter[r] < -1 || rows->adapter[r] >= rows->n_adapters)
            return weft_fail(err, WEFT_ARGUMENT, "row %d asks for adapter %d; the step has %d", r, rows->adapter[r],
                             rows->n_adapters);
    atomic_store_explicit(&run->n_shrunk, 0, memory_order_relaxed);
    for (int t = 0; t < run->n_threads; t++) run->threads[t].n_shrunk = 0;
    group(rows, NULL, rows->n_rows, run->group_start, &run->groups[0]);
    group(rows, run->wanted, rows->n_wanted, run->group_start, &run->groups[1]);
    return WEFT_OK;
}

int weft__cpu_has_delta(const weft_run *run, const weft__cpu_step *s, const weft__cpu_matrix *m, int n_mat)
{
    const weft__cpu_groups *g = weft__cpu_groups_of(run, weft__cpu_row_kind(run, s));
    for (int32_t i = 0; i < g->n; i++)
        for (int j = 0; j < n_mat; j++)
            if (g->list[i].adapter->pair[m[j].id].rank) return 1;
    return 0;
}

/* ---- memory ---- */

void weft__cpu_need_gathered(weft_program *p, int64_t k)
{
    static const uint32_t types[] = {WEFT_F32, WEFT_BF16, WEFT_Q8_0, WEFT_Q4_0};
    for (int i = 0; i < 4; i++)
        weft__cpu_need(&p->needs.gathered,
                       weft__matmul_find(types[i], p->backend->tiers)->act->bytes(k, WEFT__CPU_FEW));
    weft__cpu_need(&p->needs.h, (size_t)WEFT__CPU_FEW * WEFT_ADAPTER_RANK_MAX * sizeof(float));
}

/* ---- asking early: a stream from memory takes long to begin ---- */

static void fetch(const uint8_t *p)
{
    enum { BYTES = 4096 };
    for (int i = 0; p && i < BYTES; i += 64) __builtin_prefetch(p + i, 0, 2);
}

/* The first A of items [item, end) of a node, which are its matrices for one group after the other; `then` where there
 * is none. */
static const uint8_t *first_a(const weft__cpu_linear *l, const weft__cpu_groups *groups, int64_t item, int64_t end,
                              const uint8_t *then)
{
    for (; item < end; item++) {
        const weft__cpu_pair *pair = &groups->list[item / l->n_mat].adapter->pair[l->m[item % l->n_mat].id];
        if (pair->rank) return pair->a;
    }
    return then;
}

const uint8_t *weft__cpu_first_b(const weft__cpu_delta *d, int32_t g, const weft__cpu_matrix *m, int64_t first,
                                 const uint8_t *then)
{
    for (; g < d->n_groups; g++) {
        const weft_adapter *a = d->group[g].adapter;
        if (a->pair[m->id].rank) return weft__cpu_b(a, &a->pair[m->id], d->expert, first);
    }
    return then;
}

/* ---- A ---- */

/* h of n prepared rows of one adapter, from its A's product with them in th->h; h_rows: whose. */
static void put_h(weft_run *run, weft__cpu_thread *th, const weft_adapter *a, const weft__cpu_pair *pair, int64_t n,
                  const int32_t *h_rows, int mat)
{
    for (int64_t i = 0; i < n; i++)
        a->expand->h_put(th->h + i * pair->rank, pair->rank, weft__cpu_h(run, h_rows[i], mat));
}

enum { ALL = -1 }; /* as a row: all of them */

/* A of an expert times n prepared rows, or row `row` of them alone, into th->h. next: what is read then, or NULL. */
static void multiply(weft__cpu_thread *th, const weft__cpu_pair *pair, int64_t k, int32_t expert, const void *acts,
                     int64_t n, int64_t row, const uint8_t *next)
{
    const weft__product p = {.panels = pair->a + (size_t)expert * pair->a_expert,
                             .stride = pair->a_stride,
                             .n_out = pair->rank,
                             .k = k,
                             .act = acts,
                             .m = n,
                             .out = th->h,
                             .ldo = pair->rank};
    const weft__range range = {next, 1};
    weft__kernel_prefetch list = {.range = &range, .n = 1}, *ahead = next ? &list : NULL;
    if (!pair->mm->prefetches) fetch(next);
    if (row == ALL) weft__matmul_run(pair->mm, &p, ahead);
    else weft__matmul_run_row(pair->mm, &p, row, ahead);
}

/* The rows at `at` in the form that an A reads, where they are prepared so; else NULL. */
static const uint8_t *prepared_as(const weft__cpu_linear *l, const weft__act *form, const weft__cpu_prepared *at)
{
    for (int a = 0; a < l->input.n_acts; a++)
        if (l->input.act[a] == form) return at->acts + at->offset[a];
    return NULL;
}

/* n rows, `rows` of the step, in the form that an A reads: those that are prepared already, copies of them, or made
 * here. */
static const void *take_rows(weft_run *run, const weft__cpu_linear *l, weft__cpu_thread *th, const weft__act *form,
                             const weft__cpu_prepared *at, const int32_t *rows, int64_t n)
{
    const uint8_t *prepared = prepared_as(l, form, at);
    if (prepared && n == at->n) return prepared;
    for (int64_t i = 0; i < n; i++) {
        if (prepared) form->take(prepared, l->input.k, rows[i] - at->row, at->n, th->gathered, i, n);
        else weft__act_put_row(form, weft__cpu_linear_row(run, l, th, rows[i]), l->input.k, i, n, th->gathered);
    }
    return th->gathered;
}

/* The items of a node (first_a) that a thread reads, and what it reads behind them. split: they are a part, for few
 * rows, and read one after the other; else all of them, group by group, and a group's as often as it has rows for. */
typedef struct items {
    int split;
    int64_t begin, end;
    const uint8_t *then;
} items;

static items items_of(const weft_run *run, const weft__cpu_linear *l, const weft__cpu_groups *groups, int thread,
                      int split, const uint8_t *then)
{
    const int64_t n = (int64_t)groups->n * l->n_mat;
    if (!split) return (items){0, 0, n, then};
    return (items){1, weft__cpu_share(n, thread, run->n_threads), weft__cpu_share(n, thread + 1, run->n_threads), then};
}

/* What a thread makes h of: rows of a linear node's groups, which are prepared at `at`. */
typedef struct shrink {
    const weft__cpu_linear *l;
    const weft__cpu_groups *groups;
    weft__cpu_prepared at;
    items part;
} shrink;

/* Matrices [from, to) for n rows of group g. */
static void shrink_rows(weft_run *run, weft__cpu_thread *th, const shrink *s, int32_t g, int from, int to,
                        const int32_t *rows, int64_t n)
{
    const weft__cpu_linear *l = s->l;
    const weft__cpu_prepared *at = &s->at;
    const weft_adapter *a = s->groups->list[g].adapter;
    const weft__act *form = NULL;
    const void *acts = NULL;
    for (int i = from; i < to; i++) {
        const weft__cpu_pair *pair = &a->pair[l->m[i].id];
        if (pair->rank == 0) continue;
        const uint8_t *next =
            s->part.split ? first_a(l, s->groups, (int64_t)g * l->n_mat + i + 1, s->part.end, s->part.then) : NULL;
        const uint8_t *among = n == 1 && at->n > 1 && pair->mm->run_row ? prepared_as(l, pair->mm->act, at) : NULL;
        if (among) {
            multiply(th, pair, l->input.k, 0, among, at->n, rows[0] - at->row, next);
        } else {
            if (pair->mm->act != form) acts = take_rows(run, l, th, pair->mm->act, at, rows, n);
            form = pair->mm->act;
            multiply(th, pair, l->input.k, 0, acts, n, ALL, next);
        }
        put_h(run, th, a, pair, n, rows, i);
    }
}

void weft__cpu_fetch_linear(const weft_run *run, const weft__cpu_step *s, int thread, const uint8_t *then)
{
    const weft__cpu_linear *l = s->data;
    const weft__cpu_groups *groups = weft__cpu_groups_of(run, weft__cpu_row_kind(run, s));
    const items part = items_of(run, l, groups, thread, 1, then);
    if (groups->n) fetch(first_a(l, groups, part.begin, part.end, part.then));
}

void weft__cpu_shrink_linear(weft_run *run, const weft__cpu_step *s, int thread, weft__cpu_prepared at, int64_t first,
                             int64_t last, int split, const uint8_t *then)
{
    const weft__cpu_linear *l = s->data;
    const weft__cpu_groups *groups = weft__cpu_groups_of(run, weft__cpu_row_kind(run, s));
    const shrink all = {l, groups, at, items_of(run, l, groups, thread, split, then)};
    for (int32_t g = 0; g < groups->n; g++) {
        int64_t item = (int64_t)g * l->n_mat;
        int from = all.part.begin > item ? (int)(all.part.begin - item) : 0;
        int to = all.part.end < item + l->n_mat ? (int)(all.part.end - item) : l->n_mat;
        if (from >= to) continue;
        const weft__cpu_group *group = &groups->list[g];
        const int32_t *rows = groups->rows + group->first;
        int32_t i = 0, n = group->n;
        if (!split) fetch(first_a(l, groups, item + l->n_mat, all.part.end, NULL));
        while (i < n && rows[i] < first) i++;
        while (n > i && rows[n - 1] >= last) n--;
        for (int32_t few; i < n; i += few) {
            few = n - i < WEFT__CPU_FEW ? n - i : WEFT__CPU_FEW;
            shrink_rows(run, &run->threads[thread], &all, g, from, to, rows + i, few);
        }
    }
}

void weft__cpu_shrink_row(weft_run *run, int thread, const weft_adapter *a, const weft__cpu_matrix *m, int32_t expert,
                          const float *x, int64_t h_row, int mat)
{
    weft__cpu_thread *th = &run->threads[thread];
    const weft__cpu_pair *pair = &a->pair[m->id];
    int32_t row = (int32_t)h_row;
    if (pair->rank == 0) return;
    weft__act_put_row(pair->mm->act, x, m->k, 0, 1, th->gathered);
    multiply(th, pair, m->k, expert, th->gathered, 1, ALL, NULL);
    put_h(run, th, a, pair, 1, &row, mat);
}

/* ---- B ---- */

uint32_t weft__cpu_arrive(weft_run *run, int thread)
{
    atomic_fetch_add_explicit(&run->n_shrunk, 1, memory_order_release);
    return run->threads[thread].n_shrunk += (uint32_t)run->n_threads;
}

/* Until every thread has arrived; they did so before they began to multiply, so there is hardly ever anything to wait
 * for. */
static void await(const weft_run *run, uint32_t after)
{
    for (int i = 0; atomic_load_explicit(&run->n_shrunk, memory_order_acquire) < after; i++)
        if (i > 1000) sched_yield();
}

weft__cpu_delta weft__cpu_delta_of(const weft_run *run, int64_t rows, int64_t row, int64_t n)
{
    const weft__cpu_groups *g = weft__cpu_groups_of(run, rows);
    return (weft__cpu_delta){.group = g->list, .n_groups = g->n, .rows = g->rows, .row = row, .n = n};
}

/* Outputs [first, last) of matrix m, number `mat` of its node. */
typedef struct expanded {
    const weft__cpu_matrix *m;
    int mat;
    int32_t expert;
    int64_t first, last;
} expanded;

/* n rows of one adapter, whose outputs are at y. next: what is read then, or NULL. */
static void expand_rows(const weft_run *run, const weft_adapter *a, const expanded *o, const int64_t *rows, int n,
                        float *const *y, const uint8_t *next)
{
    const weft__cpu_pair *pair = &a->pair[o->m->id];
    const float *gain = pair->gain ? pair->gain + o->expert * o->m->n + o->first : NULL;
    const void *h[WEFT__CPU_FEW];
    for (int i = 0; gain && i < n; i++) run->k->glu(WEFT_ACT_NONE, y[i], gain, o->last - o->first, y[i]);
    if (pair->rank == 0) return;
    for (int i = 0; i < n; i++) h[i] = weft__cpu_h(run, rows[i], o->mat);
    a->expand->run(weft__cpu_b(a, pair, o->expert, o->first), o->last - o->first, pair->rank, h, n, y, next);
}

void weft__cpu_expand(const weft_run *run, const weft__cpu_delta *d, const weft__cpu_matrix *m, int mat, int64_t first,
                      int64_t last, float *out, int64_t ldo, const uint8_t *then)
{
    const expanded o = {m, mat, d->expert, first, last};
    if (d->n_groups) await(run, d->after);
    for (int32_t g = 0; g < d->n_groups; g++) {
        const weft__cpu_group *group = &d->group[g];
        const weft__cpu_pair *pair = &group->adapter->pair[m->id];
        int64_t rows[WEFT__CPU_FEW];
        float *y[WEFT__CPU_FEW];
        const uint8_t *next = weft__cpu_first_b(d, g + 1, m, first, then);
        int n = 0;
        if (pair->rank == 0 && !pair->gain) continue;
        for (int32_t i = 0; i < group->n; i++) {
            int64_t r = d->rows ? d->rows[group->first + i] : group->first + i;
            if (r < d->row || r >= d->row + d->n) continue;
            rows[n] = r;
            y[n++] = out + (r - d->row) * ldo;
            if (n < WEFT__CPU_FEW) continue;
            expand_rows(run, group->adapter, &o, rows, n, y, NULL);
            n = 0;
        }
        if (n) expand_rows(run, group->adapter, &o, rows, n, y, next);
    }
}

void weft__cpu_expand_embedding(weft_run *run, int thread, const weft_adapter *a, weft_weight_id w, int64_t token,
                                int64_t d, float *y)
{
    const weft__cpu_pair *pair = &a->pair[w];
    weft__cpu_thread *th = &run->threads[thread];
    if (pair->gain) run->k->glu(WEFT_ACT_NONE, y, pair->gain, d, y);
    if (!pair->rows) return;
    run->k->decode_row(a->row_dtype, pair->rows + (size_t)token * pair->row_bytes, pair->rank, th->h);
    a->expand->h_put(th->h, pair->rank, th->gathered);
    const void *h = th->gathered;
    a->expand->run(pair->columns, d, pair->rank, &h, 1, &y, NULL);
}
