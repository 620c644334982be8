// SPDX-License-Identifier: Apache-2.0
/* prefetch.c: what a thread prefetches while it multiplies (adapter.h).
 *
 * With few rows all of memory's time is taken, and A and B are best read in one go, before and behind a product:
 * kernels of VPDPBUSD ask, as their panels come to their end, for what is read next. With many rows A and B hardly
 * count. In between, multiplying takes most of the time and leaves memory half idle, while each row may have an adapter
 * of its own. So the kernel prefetches, a line at a time, for the B of the outputs at hand, and for a share of the A
 * that the thread reads when it is done. Kernels of pairs of panels do so, which full tiles of 16 rows or more have. */
#include "backend/cpu/adapter/adapter.h"

/* The next product, or NULL. */
static const weft__cpu_step *next_linear(const weft_program *p, const weft__cpu_step *s)
{
    const weft__cpu_step *end = p->steps + p->n_steps;
    for (s++; s < end; s++)
        if (s->node && s->node->op == WEFT_OP_LINEAR) return s;
    return NULL;
}

/* The A of every adapter that has a row among [first, last). */
static void list_a(const weft_program *p, const weft__cpu_step *s, int64_t first, int64_t last, weft__cpu_prefetch *a)
{
    const weft__cpu_linear *l = s->data;
    const weft__cpu_groups *groups = weft__cpu_groups_of(p, weft__cpu_row_kind(p, s));
    for (int32_t g = 0; g < groups->n; g++) {
        const weft__cpu_group *group = &groups->list[g];
        const int32_t *row = groups->rows + group->first; /* they rise */
        int32_t i = 0;
        while (i < group->n && row[i] < first) i++;
        if (i == group->n || row[i] >= last) continue;
        for (int j = 0; j < l->n_mat && a->n < WEFT__CPU_PREFETCH; j++) {
            const weft__cpu_pair *pair = &group->adapter->pair[l->m[j].id];
            if (pair->rank == 0) continue;
            a->a[a->n++] = (weft__range){pair->a, pair->a_expert};
            a->n_bytes += pair->a_expert;
        }
    }
}

weft__cpu_prefetch *weft__cpu_prefetch_begin(weft_program *p, const weft__cpu_step *s, int thread)
{
    weft__cpu_prefetch *a = &p->state->threads[thread].ahead;
    int64_t n = weft__cpu_rows(p, s), first, last;
    if (n > WEFT__CPU_PREFETCH_ROWS || weft__cpu_groups_of(p, weft__cpu_row_kind(p, s))->n == 0) return NULL;
    a->n = a->next = a->n_products = 0;
    a->n_bytes = 0;
    const weft__cpu_step *next = next_linear(p, s);
    const weft__cpu_linear *l = next ? next->data : NULL;
    if (!l || weft__cpu_row_kind(p, next) != weft__cpu_row_kind(p, s) || n <= l->input.tile)
        return a; /* rows of one tile: A's are divided otherwise */
    weft__cpu_prepares(p, l, n, thread, &first, &last);
    list_a(p, next, first, last, a);
    return a;
}

/* An even share of what is left of the A's to *to. Returns how many ranges that are. */
static int share_of_a(weft__cpu_prefetch *a, weft__range *to)
{
    int n = 0;
    if (a->n_products == 0) return 0;
    size_t share = a->n_bytes / (size_t)a->n_products--;
    a->n_bytes -= share;
    while (share > 0) {
        weft__range *r = &a->a[a->next];
        const size_t take = r->n < share ? r->n : share;
        to[n++] = (weft__range){r->at, take};
        r->at += take;
        r->n -= take;
        share -= take;
        if (r->n == 0) a->next++;
    }
    return n;
}

weft__kernel_prefetch *weft__cpu_prefetch_of(const weft__cpu_delta *d, const weft__cpu_matrix *m, int64_t first,
                                             int64_t last, const uint8_t *next)
{
    weft__cpu_prefetch *a = d->ahead;
    int n = 0;
    if (!a || !m->mm->prefetches) return NULL;
    if (next) a->range[n++] = (weft__range){next, 1};
    for (int32_t g = 0; g < d->n_groups && n <= WEFT__CPU_PREFETCH; g++) {
        const weft_adapter *adapter = d->group[g].adapter;
        const weft__cpu_pair *pair = &adapter->pair[m->id];
        if (pair->rank == 0) continue;
        const size_t n_panels = (size_t)((last - first + WEFT__EXPAND_ROWS - 1) / WEFT__EXPAND_ROWS);
        a->range[n++] = (weft__range){weft__cpu_b(adapter, pair, d->expert, first),
                                      n_panels * adapter->expand->panel_bytes(pair->rank)};
    }
    n += share_of_a(a, a->range + n);
    a->list = (weft__kernel_prefetch){.range = a->range, .n = n};
    return n ? &a->list : NULL;
}
