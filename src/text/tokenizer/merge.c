// SPDX-License-Identifier: Apache-2.0
/* merge.c: best-first merging over a linked list with a binary heap (merge.h). No state of its own. */
#include "text/tokenizer/merge.h"

#include <string.h>

#include "base/alloc.h"

int weft__tok_merger_add(weft__tok_merger *m, uint32_t start, uint32_t len, int32_t id)
{
    if (!weft__grow(&m->symbols, &m->symbols_capacity, m->n_symbols + 1, sizeof *m->symbols)) return 0;
    int32_t i = (int32_t)m->n_symbols++;
    m->symbols[i] = (weft__tok_symbol){start, len, i - 1, -1, id};
    if (i > 0) m->symbols[i - 1].next = i;
    return 1;
}

void weft__tok_merger_clear(weft__tok_merger *m)
{
    m->n_symbols = m->n_heap = 0;
}

void weft__tok_merger_free(weft__tok_merger *m)
{
    weft__free(m->symbols);
    weft__free(m->heap);
    memset(m, 0, sizeof *m);
}

static int heap_push(weft__tok_merger *m, weft__tok_candidate entry)
{
    if (!weft__grow(&m->heap, &m->heap_capacity, m->n_heap + 1, sizeof *m->heap)) return 0;
    size_t i = m->n_heap++;
    for (; i > 0; i = (i - 1) / 2) {
        weft__tok_candidate *parent = &m->heap[(i - 1) / 2];
        if (parent->order <= entry.order) break;
        m->heap[i] = *parent;
    }
    m->heap[i] = entry;
    return 1;
}

static weft__tok_candidate heap_pop(weft__tok_merger *m)
{
    weft__tok_candidate top = m->heap[0], moved = m->heap[--m->n_heap];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < m->n_heap; i = child) {
        if (child + 1 < m->n_heap && m->heap[child + 1].order < m->heap[child].order) child++;
        if (m->heap[child].order >= moved.order) break;
        m->heap[i] = m->heap[child];
    }
    m->heap[i] = moved;
    return top;
}

static int consider(weft__tok_merger *m, int32_t left, int32_t right, weft__tok_pair_fn pair, const void *arg)
{
    if (left < 0 || right < 0) return 1;
    uint32_t rank;
    int32_t id;
    const weft__tok_symbol *l = &m->symbols[left], *r = &m->symbols[right];
    if (!pair(arg, l, r, &rank, &id)) return 1;
    return heap_push(m, (weft__tok_candidate){(uint64_t)rank << 32 | (uint32_t)left, right, id, l->len + r->len});
}

int weft__tok_merger_run(weft__tok_merger *m, weft__tok_pair_fn pair, const void *arg)
{
    for (size_t i = 1; i < m->n_symbols; i++) {
        if (!consider(m, (int32_t)i - 1, (int32_t)i, pair, arg)) return 0;
    }
    while (m->n_heap) {
        weft__tok_candidate top = heap_pop(m);
        int32_t left = (int32_t)(uint32_t)top.order;
        weft__tok_symbol *l = &m->symbols[left], *r = &m->symbols[top.right];
        if (!l->len || !r->len || l->len + r->len != top.len) continue;
        l->len = top.len;
        l->id = top.id;
        l->next = r->next;
        r->len = 0;
        if (l->next >= 0) m->symbols[l->next].prev = left;
        if (!consider(m, l->prev, left, pair, arg) || !consider(m, left, l->next, pair, arg)) return 0;
    }
    return 1;
}
