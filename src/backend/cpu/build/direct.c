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
    for (int t = 0; t < p->state->n_threads; t++)
        if (l->split[t + 1] - l->split[t] > most) most = l->split[t + 1] - l->split[t];
    return most;
}

/* Lets the outputs of l go to h: they are then split at whole parts. 0: not l, as its shares would be less even. What
 * is saved is a hundredth of the time, and all threads wait for the largest share. */
static int pack_outputs(weft_program *p, weft__cpu_linear *l, const weft__cpu_direct *h)
{
    enum { MUCH = 64 };
    const int64_t most = largest_share(p, l);
    l->to = h;
    weft__cpu_split_linear(p, l);
    if (largest_share(p, l) - most <= most / MUCH) return 1;
    l->to = NULL;
    weft__cpu_split_linear(p, l);
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

weft_status weft__cpu_find_direct(weft_program *p, weft_error *err)
{
    p->direct = weft__cpu_own(p, (size_t)p->n_steps, sizeof *p->direct);
    if (!p->direct) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a program of %d steps", p->n_steps);
    for (int32_t i = 0; i + 1 < p->n_steps; i++) {
        weft__cpu_step *by = &p->steps[i], *at = by + 1;
        const int moves = at == p->gather && i + 2 < p->n_steps;
        if (moves) at++;
        if (!can_hand(p, by, at)) continue;
        weft__cpu_linear *l = at->data;
        weft__cpu_direct *h = &p->direct[p->n_direct];
        *h = (weft__cpu_direct){.by = by, .at = at, .to = l, .moves = moves};
        if (by->node->op == WEFT_OP_ATTENTION) {
            ((weft__cpu_attention *)by->data)->to = h;
        } else {
            if (!pack_outputs(p, by->data, h)) continue;
            weft__cpu_need(&p->needs.gate, WEFT__CPU_GLU_FLOATS * sizeof(float));
        }
        l->from = h;
        p->n_direct++;
    }
    return WEFT_OK;
}

/* ---- in a step ---- */

/* Does an adapter of this step want the input of l in another form? */
static int other_form(const weft_program *p, const weft__cpu_linear *l)
{
    const weft__cpu_groups *groups = weft__cpu_groups_of(p, WEFT_ROWS);
    for (int32_t g = 0; g < groups->n; g++) {
        for (int i = 0; i < l->n_mat; i++) {
            const weft__cpu_pair *pair = &groups->list[g].adapter->pair[l->m[i].id];
            if (pair->rank && pair->mm->act != l->input.act[0]) return 1;
        }
    }
    return 0;
}

void weft__cpu_choose_direct(weft_program *p)
{
    for (int32_t i = 0; i < p->n_direct; i++) {
        weft__cpu_direct *h = &p->direct[i];
        const int not_now = (h->moves && p->state->moved) ||
                            weft__cpu_row_kind(p, h->by) != weft__cpu_row_kind(p, h->at) || other_form(p, h->to);
        h->n_rows = not_now ? 0 : weft__cpu_rows(p, h->at);
    }
}

void weft__cpu_direct_pack(const weft_program *p, const weft__cpu_direct *h, const float *x, int64_t ldx, int64_t row,
                           int64_t n, int64_t from, int64_t to)
{
    weft__cpu_prepare(&h->to->input, x, ldx, (weft__act_part){h->to->input.k, h->n_rows, from, to, row, n},
                      (uint8_t *)p->state->data[h->to->x]);
}
