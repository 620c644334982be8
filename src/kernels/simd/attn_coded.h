// SPDX-License-Identifier: Apache-2.0
/* attn_coded.h: attention over pages whose keys or values are coded, or of different formats, for the vectors of the
 * file that includes it. The order inside a coded part, the rotation and the codes are the same in every tier
 * (kernels.h); only sums of floats are taken as each tier does.
 *
 * Words of the tier besides those of vec.h: vi, a vector of whole numbers; coded_key and coded_load: the keys' codes of
 * four channels for VF_N tokens; coded_load_halves: of eight, whose codes of 4 bits share bytes; coded_dot: adds their
 * products with a query's words; narrow_load: the values that 8 bytes of 16 codes of 4 bits stand for; where
 * WIDE_VALUES is 1, wide_load: those of 16 bytes and 32 codes, in an order that wide_order makes of the natural one,
 * and back. */
#include "kernels/simd/attn_coded_keys.h"
#include "kernels/simd/attn_coded_values.h"

/* Of what formats keys and values are. */
struct formats {
    uint32_t k, v;
};

/* Adds the values of positions [from, to) for queries i .. i + n - 1 of a group, all of which see them. A weight is
 * taken once, so it may be changed. */
static void add_values(const weft__attn *a, struct formats f, int base, int from, int to, int i, int n, float *s,
                       float *state)
{
    const int64_t stride = 2 + a->head_dim_v;
    while (from < to) {
        struct run r = run_at(a, a->v_offset, base, from, to, a->next_v);
        if (r.at) values(f.v, n, a, s + (int64_t)i * SCORES + (r.from - base), &r, state + i * stride + 2, stride);
        from = r.to;
    }
}

/* Of a part's elements, without scales, those of `slots` slots. */
static int64_t bytes_of(const weft__attn *a, uint32_t format, int is_values, int slots)
{
    const weft_kv_group g = {.head_dim_k = a->head_dim_k, .head_dim_v = a->head_dim_v, .page_tokens = slots};
    return (int64_t)weft_kv_part_bytes(format, &g, is_values);
}

/* Queries first .. first + n - 1 of the call; none is blind in this split, and ranges do not decrease. scratch: scores
 * [GROUP][SCORES], then the queries. */
static void group(const weft__attn *a, struct formats f, int base, int first, int n, float *scratch, float *state)
{
    const int64_t stride = 2 + a->head_dim_v;
    float *s = scratch;
    struct queries q = {.words = (int32_t *)(scratch + GROUP * SCORES), .floats = scratch + GROUP * SCORES};
    int from[GROUP], to[GROUP];
    for (int i = 0; i < n; i++) range(a, first + i, base, &from[i], &to[i]);
    take_queries(a, f.k, first, n, &q);
    for (int t = from[0]; t < to[n - 1];) {
        struct run r = run_at(a, a->k_offset, base, t, to[n - 1], a->next_k);
        if (r.at) scores(f.k, n, a, &q, &r, s);
        t = r.to;
    }
    const int is_last = first + n == a->n_q, end_slot = to[n - 1] % a->page_tokens;
    if (is_last)
        fetch_rest(a->next_k, bytes_of(a, f.k, 0, blocks_of(end_slot)), bytes_of(a, f.k, 0, blocks_of(a->next_slots)));
    softmax(a, base, from, to, n, s, state, stride);
    int all_from = from[n - 1], all_to = to[0];
    if (all_from >= all_to) all_from = all_to = to[n - 1];
    for (int i = 0; i < n; i++) add_values(a, f, base, from[i], to[i] < all_from ? to[i] : all_from, i, 1, s, state);
    add_values(a, f, base, all_from, all_to, 0, n, s, state);
    for (int i = 0; i < n; i++) add_values(a, f, base, all_to, to[i], i, 1, s, state);
    if (is_last) fetch_rest(a->next_v, bytes_of(a, f.v, 1, end_slot), bytes_of(a, f.v, 1, a->next_slots));
}

void TIER(weft__attn_coded)(const weft__attn *a, uint32_t format_k, uint32_t format_v, int split, float *scratch,
                            float *state)
{
    const int64_t stride = 2 + a->head_dim_v;
    const int base = split * SPLIT;
    for (int i = 0; i < a->n_q; i++) {
        memset(state + i * stride, 0, (size_t)stride * sizeof *state);
        state[i * stride] = -INFINITY;
    }
    for (int i = 0; i < a->n_q;) {
        int n = 0, from, to;
        while (n < GROUP && i + n < a->n_q && (range(a, i + n, base, &from, &to), from < to)) n++;
        if (n) group(a, (struct formats){format_k, format_v}, base, i, n, scratch, state + i * stride);
        i += n ? n : 1;
    }
}
