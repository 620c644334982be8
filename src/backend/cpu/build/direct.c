// SPDX-License-Identifier: Apache-2.0
/* direct.c: rows that a step packs for the product right behind it, in the form that this reads: what attention makes,
 * and the hidden values of a feed-forward network. As floats they would be written and read again to be prepared, and
 * with more rows than a tile a barrier would stand behind that; so each part is prepared by the thread that has just
 * made it, in the memory that the floats would have had. The bytes are the same. Invariant: nothing but that product
 * reads the tensor, in this program or another. Every run of the program decides by itself whether it does so
 * (weft__cpu_choose_direct): an adapter may want another form, and wanted rows may be moved in between (compact.c). */
#include "backend/cpu/adapter/adapter.h"

/* ---- building ---- */

static int is_bound(const weft_program *p, weft_tensor_id t)
{
    for (int32_t i = 0; i < p->segment->n_bound; i++)
        if (p->segment->bound[i] == t) return 1;
    return 0;
}

static int n_readers(const weft_program *p, weft_tensor_id t)
{
    int n = 0;
    for (int32_t i = 0; i < p->graph->n_nodes; i++)
        for (int32_t j = 0; j < p->graph->nodes[i].n_in; j++) n += p->graph->nodes[i].in[j] == t;
    return n;
}

/* Do prepared rows, as many as there may be, take no more memory than the floats? */
static int fits(const weft_program *p, const weft__cpu_linear *l)
{
    const weft__cpu_input *in = &l->input;
    const int64_t n = p->graph->tensors[l->x].shape.d[1] == WEFT_WANTED ? p->segment->max_wanted : p->segment->max_rows;
    const size_t room = (size_t)n * (size_t)in->k * sizeof(float),
                 few = in->act[0]->bytes(in->k, n < in->tile ? n : in->tile);
    return few <= room && (size_t)(n / in->chunk) * in->chunk_bytes + in->act[0]->bytes(in->k, n % in->chunk) <= room;
}

/* Outputs of the largest share of a product whose outputs are split as one. */
static int64_t largest_share(const weft_program *p, const weft__cpu_linear *l)
{
    int64_t most = 0;
    for (int t = 0; t < p->backend->n_threads; t++)
        if (l->split[t + 1] - l->split[t] > most) most = l->split[t + 1] - l->split[t];
    return most;
}

/* Lets the outputs of l go to h: they are then split at whole parts. 0: not l, as its shares would be less even. What
 * is saved is a hundredth of the time, and all threads wait for the largest share. */
static int pack_outputs(const weft_program *p, weft__cpu_linear *l, const weft__cpu_direct *h)
{
    enum { MUCH = 64 };
    const int64_t most = largest_share(p, l);
    int64_t *split = (int64_t *)l->split; /* while compiling */
    l->to = h;
    weft__cpu_split_linear(l, p->backend->n_threads, split);
    if (largest_share(p, l) - most <= most / MUCH) return 1;
    l->to = NULL;
    weft__cpu_split_linear(l, p->backend->n_threads, split);
    return 0;
}

/* Can `by` make parts of rows that the kernels of l take? */
static int makes_parts(const weft__cpu_step *by)
{
    if (by->node->op == WEFT_OP_ATTENTION) {
        const weft_attr_attention *a = &by->node->attr.attention;
        return a->n_heads / a->n_kv_heads * a->head_dim_v % WEFT__ACT_PART == 0;
    }
    return by->node->op == WEFT_OP_LINEAR && by->node->attr.linear.activation != WEFT_ACT_NONE;
}

static int can_hand(const weft_program *p, const weft__cpu_step *by, const weft__cpu_step *at)
{
    if (!by->node || !at->node || at->node->op != WEFT_OP_LINEAR || !makes_parts(by)) return 0;
    const weft__cpu_linear *l = at->data;
    return l->x == by->node->out[0] && !l->norm && l->input.n_acts == 1 && l->input.k % WEFT__ACT_PART == 0 &&
           n_readers(p, l->x) == 1 && !is_bound(p, l->x) && fits(p, l);
}

weft_status weft__cpu_find_direct(weft_program *p, weft__cpu_step *steps, int32_t n, weft_error *err)
{
    weft__cpu_direct *direct = weft__cpu_own(&p->owned, (size_t)n, sizeof *direct);
    if (!direct) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a program of %d steps", n);
    p->direct = direct;
    for (int32_t i = 0; i + 1 < n; i++) {
        weft__cpu_step *by = &steps[i], *at = by + 1;
        const int moves = at == p->gather && i + 2 < n;
        if (moves) at++;
        if (!can_hand(p, by, at)) continue;
        weft__cpu_linear *l = (weft__cpu_linear *)at->data; /* while compiling, as below */
        weft__cpu_direct *h = &direct[p->n_direct];
        *h = (weft__cpu_direct){.by = by, .at = at, .to = l, .moves = moves, .index = p->n_direct};
        if (by->node->op == WEFT_OP_ATTENTION) {
            ((weft__cpu_attention *)by->data)->to = h;
        } else {
            if (!pack_outputs(p, (weft__cpu_linear *)by->data, h)) continue;
            weft__cpu_need(&p->needs.gate, WEFT__CPU_GLU_FLOATS * sizeof(float));
        }
        l->from = h;
        p->n_direct++;
    }
    return WEFT_OK;
}

/* ---- in a step ---- */

/* Does an adapter of this step want the input of l in another form? */
static int other_form(const weft_run *run, const weft__cpu_linear *l)
{
    const weft__cpu_groups *groups = weft__cpu_groups_of(run, WEFT_ROWS);
    for (int32_t g = 0; g < groups->n; g++) {
        for (int i = 0; i < l->n_mat; i++) {
            const weft__cpu_pair *pair = &groups->list[g].adapter->pair[l->m[i].id];
            if (pair->rank && pair->mm->act != l->input.act[0]) return 1;
        }
    }
    return 0;
}

void weft__cpu_choose_direct(weft_run *run)
{
    for (int32_t i = 0; i < run->program->n_direct; i++) {
        const weft__cpu_direct *h = &run->program->direct[i];
        const int not_now = (h->moves && run->moved) ||
                            weft__cpu_row_kind(run, h->by) != weft__cpu_row_kind(run, h->at) || other_form(run, h->to);
        run->direct_rows[i] = not_now ? 0 : weft__cpu_rows(run, h->at);
    }
}

void weft__cpu_direct_pack(const weft_run *run, const weft__cpu_direct *h, const float *x, int64_t ldx, int64_t row,
                           int64_t n, int64_t from, int64_t to)
{
    weft__cpu_prepare(&h->to->input, x, ldx,
                      (weft__act_part){h->to->input.k, run->direct_rows[h->index], from, to, row, n},
                      (uint8_t *)run->data[h->to->x]);
}
