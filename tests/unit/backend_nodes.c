// SPDX-License-Identifier: Apache-2.0
/* backend_nodes.c: some of a step's nodes, as they are run to be timed: each of them runs, and no other one does; what
 * cannot run alone is refused. */
#include "waist.h"

enum { D = 128, F = 256, V = 40, EXPERTS = 3, HEADS = 2, DIM = 64, N_CTX = 64, ROWS = 20 };

static weft_tensor_id attention_block(stage *s, weft_tensor_id x, int window)
{
    weft_kv_group g = {window ? WEFT_KV_WINDOW : WEFT_KV_FULL, window, 1, HEADS, DIM, DIM, 16};
    weft_attr_kv kv = {weft__builder_kv_group(s->b, &g), 0};
    weft_attr_attention a = {.kv = kv,
                             .n_heads = HEADS,
                             .n_kv_heads = HEADS,
                             .head_dim_k = DIM,
                             .head_dim_v = DIM,
                             .scale = 0.1f,
                             .window = window};
    weft_attr_rope rope = {
        .n_heads = HEADS, .head_dim = DIM, .n_rot = DIM, .base = 10000, .freq_scale = 1, .attn_factor = 1};
    weft_tensor_id h = weft__op_norm(s->b, 0, x, stage_vector(s, D, "attn_norm"), 1e-5f, 0);
    weft_tensor_id q = weft__op_linear(s->b, 0, h, stage_weight(s, WEFT_Q4_0, D, D, 0, "q"), WEFT_NONE);
    weft_tensor_id k = weft__op_linear(s->b, 0, h, stage_weight(s, WEFT_Q4_0, D, D, 0, "k"), WEFT_NONE);
    weft_tensor_id v = weft__op_linear(s->b, 0, h, stage_weight(s, WEFT_Q8_0, D, D, 0, "v"), WEFT_NONE);
    q = weft__op_rope(s->b, 0, q, &rope, WEFT_NONE);
    k = weft__op_rope(s->b, 0, k, &rope, WEFT_NONE);
    weft_tensor_id y = weft__op_attention(s->b, 0, q, weft__op_kv_write(s->b, 0, k, v, kv), &a);
    return weft__op_add(s->b, 0, x, weft__op_linear(s->b, 0, y, stage_weight(s, WEFT_Q4_0, D, D, 0, "o"), WEFT_NONE));
}

static weft_tensor_id ffn_block(stage *s, weft_tensor_id x)
{
    weft_tensor_id h = weft__op_norm(s->b, 0, x, stage_vector(s, D, "ffn_norm"), 1e-5f, 0);
    weft_tensor_id g = weft__op_linear(s->b, 0, h, stage_weight(s, WEFT_Q4_0, D, F, 0, "gate"), WEFT_NONE);
    weft_tensor_id u = weft__op_linear(s->b, 0, h, stage_weight(s, WEFT_Q4_0, D, F, 0, "up"), WEFT_NONE);
    weft_tensor_id y = weft__op_glu(s->b, 0, g, u, WEFT_ACT_SILU);
    return weft__op_add(s->b, 0, x,
                        weft__op_linear(s->b, 0, y, stage_weight(s, WEFT_Q4_0, F, D, 0, "down"), WEFT_NONE));
}

static weft_tensor_id moe_block(stage *s, weft_tensor_id x)
{
    weft_attr_moe moe = {
        .n_experts = EXPERTS, .n_used = 2, .gate = WEFT_MOE_SOFTMAX, .scale = 1, .activation = WEFT_ACT_SILU};
    weft_weight_id router = stage_weight(s, WEFT_F32, D, EXPERTS, 0, "router");
    weft_tensor_id route = weft__op_moe_route(s->b, 1, weft__op_linear(s->b, 1, x, router, WEFT_NONE), &moe);
    weft_weight_id gates = stage_weight(s, WEFT_Q4_0, D, F, EXPERTS, "gates"),
                   ups = stage_weight(s, WEFT_Q4_0, D, F, EXPERTS, "ups"),
                   downs = stage_weight(s, WEFT_Q8_0, F, D, EXPERTS, "downs");
    return weft__op_add(s->b, 1, x, weft__op_moe_ffn(s->b, 1, x, route, gates, ups, downs, &moe));
}

static void model(stage *s, int with_experts)
{
    stage_open(s, 45);
    weft_tensor_id x = weft__op_embed(s->b, stage_weight(s, WEFT_F32, D, V, 0, "token_embd"), 3);
    x = ffn_block(s, attention_block(s, x, 24));
    if (with_experts) x = moe_block(s, x);
    x = ffn_block(s, attention_block(s, x, 0));
    x = weft__op_norm(s->b, -1, weft__op_pick_rows(s->b, x), stage_vector(s, D, "output_norm"), 1e-5f, 0);
    weft__builder_output(s->b, weft__op_linear(s->b, -1, x, stage_weight(s, WEFT_Q8_0, D, V, 0, "head"), WEFT_NONE));
    stage_finish(s);
}

/* A step of n rows of one sequence, all wanted. */
static weft_rows rows_of(store *t, int32_t n, int32_t token)
{
    for (int32_t i = 0; i < n; i++) {
        t->token[i] = (token + i) % V;
        t->pos[i] = i;
        t->seq[i] = 0;
        t->want[i] = WEFT_WANT_LOGITS;
    }
    return (weft_rows){.size = sizeof(weft_rows),
                       .n_rows = n,
                       .n_wanted = n,
                       .n_seqs = 1,
                       .token = t->token,
                       .pos = t->pos,
                       .seq = t->seq,
                       .want = t->want,
                       .seqs = t->views};
}

/* The whole step in pieces of so many nodes: its result appears with the last one, and is that of the whole step. */
static void in_pieces(store *t, int32_t n_rows, int32_t piece)
{
    static float whole[ROWS * V], out[ROWS * V];
    float *outputs[] = {out};
    const int32_t n_nodes = weft__plan_graph(t->plan)->n_nodes;
    const size_t n_bytes = (size_t)n_rows * V * sizeof *out;
    weft_rows rows = rows_of(t, n_rows, 3);
    assert_ok(weft__plan_run(t->state, &rows, t->kv, outputs, err));
    memcpy(whole, out, n_bytes);
    rows = rows_of(t, n_rows, 11); /* what another step left */
    assert_ok(weft__plan_run(t->state, &rows, t->kv, outputs, err));
    rows = rows_of(t, n_rows, 3);
    for (int32_t at = 0; at < n_nodes; at += piece) {
        assert_true(memcmp(whole, out, n_bytes) != 0);
        assert_ok(weft__plan_run_nodes(t->state, &rows, t->kv, outputs, at, n_nodes - at < piece ? n_nodes - at : piece,
                                       err));
    }
    assert_memory_equal(whole, out, n_bytes);
}

static void nodes_in_turns_are_the_step(void **state)
{
    static store t;
    stage s;
    (void)state;
    model(&s, 0);
    store_open(&t, s.g, "cpu", "threads=2", 1, WEFT_F16, N_CTX, ROWS);
    const int32_t n_nodes = weft__plan_graph(t.plan)->n_nodes, n_rows[] = {1, 3, ROWS};
    for (int i = 0; i < 3; i++)
        for (int32_t piece = 1; piece <= n_nodes; piece++) in_pieces(&t, n_rows[i], piece);
    store_close(&t);
    stage_close(&s);
}

static void what_is_no_piece_is_refused(void **state)
{
    static store t;
    static float out[ROWS * V];
    float *outputs[] = {out};
    stage s;
    (void)state;
    model(&s, 1);
    store_open(&t, s.g, "cpu", "threads=2", 1, WEFT_F16, N_CTX, ROWS);
    const weft_graph *g = weft__plan_graph(t.plan);
    int32_t experts = 0;
    while (g->nodes[experts].op != WEFT_OP_MOE_FFN) experts++;
    const weft_rows rows = rows_of(&t, 4, 3);
#define NODES(first, n) weft__plan_run_nodes(t.state, &rows, t.kv, outputs, first, n, err)
    assert_ok(NODES(0, experts));
    assert_ok(NODES(experts + 1, g->n_nodes - experts - 1));
    assert_refused(WEFT_ARGUMENT, "experts", NODES(0, experts + 1));
    assert_refused(WEFT_ARGUMENT, "experts", NODES(experts, 1));
    assert_refused(WEFT_ARGUMENT, "the graph has", NODES(g->n_nodes - 1, 2));
    assert_refused(WEFT_ARGUMENT, "the graph has", NODES(-1, 2));
    t.providers[0]->table.features &= ~(uint32_t)WEFT_FEATURE_NODES;
    assert_refused(WEFT_UNSUPPORTED, "cpu runs whole steps", NODES(0, 1));
#undef NODES
    store_close(&t);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_in_turns_are_the_step),
        cmocka_unit_test(what_is_no_piece_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
