// SPDX-License-Identifier: Apache-2.0
/* compact.c: the end of a program, whose rows matter only where they are wanted (WEFT_NODE_IF_WANTED). A step that does
 * not want all of its rows moves those that it wants together, in the tensors that the end begins with; from there on
 * all is as if it had no others. The attention before it passes over the others' queries (attention.c). */
#include <string.h>

#include "backend/cpu/program.h"

enum { SHARE = 16 /* floats: columns are split between threads at multiples of it */ };

typedef struct gather {
    int32_t n;
    weft_tensor_id tensor[]; /* [n] */
} gather;

static const weft_node *node_at(const weft_program *p, int32_t i)
{
    return &p->graph->nodes[p->segment->nodes[i]];
}

/* Attention knows rows by number: their positions, their sequences. */
static int is_at_the_end(const weft_program *p, const weft_node *n)
{
    int if_wanted = n->flags & WEFT_NODE_IF_WANTED && n->op != WEFT_OP_ATTENTION;
    return if_wanted || p->graph->tensors[n->out[0]].shape.d[1] == WEFT_WANTED;
}

/* Does one of the segment's nodes in front of `first` read t? */
static int is_read_before(const weft_program *p, int32_t first, weft_tensor_id t)
{
    for (int32_t i = 0; i < first; i++)
        for (int32_t j = 0; j < node_at(p, i)->n_in; j++)
            if (node_at(p, i)->in[j] == t) return 1;
    return 0;
}

/* Is t made by one of the segment's nodes from `first` on? */
static int is_made_from(const weft_program *p, int32_t first, weft_tensor_id t)
{
    for (int32_t i = first; i < p->segment->n_nodes; i++)
        for (int32_t j = 0; j < node_at(p, i)->n_out; j++)
            if (node_at(p, i)->out[j] == t) return 1;
    return 0;
}

/* Has t all rows, and is it read by a node of another segment? */
static int leaves(const weft_program *p, weft_tensor_id t)
{
    int32_t readers = 0;
    if (p->graph->tensors[t].shape.d[1] == WEFT_WANTED) return 0;
    for (int32_t i = 0; i < p->graph->n_nodes; i++)
        for (int32_t j = 0; j < p->graph->nodes[i].n_in; j++) readers += p->graph->nodes[i].in[j] == t;
    for (int32_t i = 0; i < p->segment->n_nodes; i++)
        for (int32_t j = 0; j < node_at(p, i)->n_in; j++) readers -= node_at(p, i)->in[j] == t;
    return readers > 0;
}

int32_t weft__cpu_end_begins(const weft_program *p)
{
    const int32_t n = p->segment->n_nodes;
    int32_t first = n;
    int any = 0;
    while (first > 0 && is_at_the_end(p, node_at(p, first - 1))) first--;
    for (int32_t i = first; i < n; i++) {
        const weft_node *node = node_at(p, i);
        any |= node->flags & WEFT_NODE_IF_WANTED;
        /* What it reads is moved, and what it makes has moved: no other node may see that. */
        for (int j = 0; j < node->n_in + node->n_out; j++)
            if (leaves(p, j < node->n_in ? node->in[j] : node->out[j - node->n_in])) return n;
    }
    return any ? first : n;
}

int weft__cpu_is_if_wanted(const weft_program *p, int32_t i, int32_t first)
{
    const weft_node *n = node_at(p, i);
    if (!(n->flags & WEFT_NODE_IF_WANTED) || first == p->segment->n_nodes) return 0;
    if (i >= first) return 1;
    return n->op == WEFT_OP_ATTENTION && !is_read_before(p, first, n->out[0]) && !leaves(p, n->out[0]);
}

static void run_gather(weft_run *run, const weft__cpu_step *s, int thread)
{
    const gather *g = s->data;
    int64_t in_place = 0;
    while (in_place < run->rows->n_wanted && run->wanted[in_place] == in_place) in_place++;
    for (int32_t i = 0; i < g->n; i++) {
        const int64_t d = run->program->graph->tensors[g->tensor[i]].shape.d[0], shares = (d + SHARE - 1) / SHARE;
        const int64_t first = weft__cpu_share(shares, thread, run->n_threads) * SHARE;
        int64_t last = weft__cpu_share(shares, thread + 1, run->n_threads) * SHARE;
        if (last > d) last = d;
        float *x = run->data[g->tensor[i]];
        /* r < wanted[r], which rises: what is overwritten was read. */
        for (int64_t r = in_place; r < run->rows->n_wanted && first < last; r++)
            memcpy(x + r * d + first, x + run->wanted[r] * d + first, (size_t)(last - first) * sizeof *x);
    }
}

weft_status weft__cpu_build_gather(weft_program *p, weft__cpu_step *s, int32_t first, weft_error *err)
{
    const int32_t n = p->segment->n_nodes;
    gather *g = weft__cpu_own(&p->owned, 1, sizeof *g + (size_t)(n - first) * WEFT_NODE_IN * sizeof *g->tensor);
    if (!g) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a program of %d nodes", n);
    for (int32_t i = first; i < n; i++) {
        const weft_node *node = node_at(p, i);
        for (int32_t j = 0; j < node->n_in; j++) {
            int32_t k = 0;
            while (k < g->n && g->tensor[k] != node->in[j]) k++;
            if (k == g->n && p->graph->tensors[node->in[j]].shape.d[1] == WEFT_ROWS &&
                !is_made_from(p, first, node->in[j]))
                g->tensor[g->n++] = node->in[j];
        }
    }
    *s = (weft__cpu_step){.run = run_gather, .data = g, .rows = WEFT__CPU_NO_ROWS, .if_wanted = 1, .barrier = 1};
    return WEFT_OK;
}

void weft__cpu_choose_rows(weft_run *run, const weft_rows *rows)
{
    run->moved = run->program->gather && rows->n_wanted < rows->n_rows && !weft_rows_want_outputs(rows);
}
