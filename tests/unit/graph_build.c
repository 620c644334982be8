// SPDX-License-Identifier: Apache-2.0
/* graph_build.c: the builder's checks, each with the fault it must find and the names it must give; the order; copies
 * that fail. */
#include "waist.h"

#include "graph/internal.h"

enum { D = 32, V = 40 };

/* A stage with an embedding: x [D, rows]. */
static weft_tensor_id begin(stage *s)
{
    stage_open(s, 1);
    return weft__op_embed(s->b, stage_weight(s, WEFT_F32, D, V, 0, "token_embd"), 1);
}

/* finish must fail with a message that contains both texts. */
static void refused(stage *s, const char *a, const char *b)
{
    weft_error err = {0};
    assert_int_equal(weft__builder_finish(&s->b, &s->g, &err), WEFT_ARGUMENT);
    if (!strstr(err.message, a) || !strstr(err.message, b)) fail_msg("'%s' lacks '%s' or '%s'", err.message, a, b);
    assert_null(s->g);
    assert_null(s->b);
    stage_close(s);
}

static weft_weight_id matrix(stage *s, int64_t k, int64_t n)
{
    return stage_weight(s, WEFT_F32, k, n, 0, "blk.0.w");
}

/* ---- faults ---- */

static void test_undefined(void **state)
{
    (void)state;
    stage s;
    begin(&s);
    weft_tensor_id ghost = weft__builder_tensor(s.b, D, WEFT_ROWS, "ghost");
    weft__builder_output(s.b, weft__op_softcap(s.b, 0, ghost, 2));
    refused(&s, "softcap blk.0.softcap", "input ghost is made by no node");

    begin(&s);
    weft__builder_output(s.b, weft__builder_tensor(s.b, D, WEFT_ROWS, "nowhere"));
    refused(&s, "output 0", "nowhere");

    begin(&s);
    weft__op_linear(s.b, 3, 17, matrix(&s, D, D), WEFT_NONE);
    refused(&s, "layer 3, linear", "input does not exist");

    weft_tensor_id x = begin(&s);
    weft__op_linear(s.b, 3, x, WEFT_NONE, WEFT_NONE);
    refused(&s, "layer 3, linear", "weight does not exist");
}

static void test_made_twice(void **state)
{
    (void)state;
    stage s;
    weft_tensor_id x = begin(&s), y = weft__op_softcap(s.b, 0, x, 2);
    weft_node n = {
        .op = WEFT_OP_SOFTCAP, .n_in = 1, .n_out = 1, .in = {x}, .out = {y}, .layer = 1, .attr.softcap = {3}};
    weft__builder_node(s.b, &n);
    refused(&s, "tensor blk.0.softcap is made twice", "node 2");

    x = begin(&s);
    weft_kv_group g = {WEFT_KV_FULL, 0, 1, 1, D, D, 16, 0};
    weft_attr_kv kv = {weft__builder_kv_group(s.b, &g), 0};
    weft__op_kv_write(s.b, 0, x, x, kv);
    weft__op_kv_write(s.b, 1, x, x, kv);
    refused(&s, "layer 0 of KV group 0 is written twice", "kv_write");
}

static void test_cycle(void **state)
{
    (void)state;
    stage s;
    weft_tensor_id x = begin(&s), back = weft__builder_tensor(s.b, D, WEFT_ROWS, "back");
    weft_tensor_id a = weft__op_add(s.b, 0, x, back), b = weft__op_softcap(s.b, 1, a, 2);
    weft_node n = {
        .op = WEFT_OP_SOFTCAP, .n_in = 1, .n_out = 1, .in = {b}, .out = {back}, .layer = 2, .attr.softcap = {3}};
    weft__builder_node(s.b, &n);
    weft__builder_output(s.b, weft__op_softcap(s.b, 3, b, 2));
    refused(&s, "is part of a cycle", "node");
}

static void test_shapes(void **state)
{
    (void)state;
    stage s;
    weft_tensor_id x = begin(&s);
    weft__op_linear(s.b, 0, x, matrix(&s, 2 * D, D), WEFT_NONE);
    refused(&s, "linear blk.0.w", "weight blk.0.w.weight has rows of 64; they must be 32");

    x = begin(&s);
    weft__op_linear(s.b, 0, x, matrix(&s, D, D), stage_vector(&s, D + 1, "bias"));
    refused(&s, "linear blk.0.w", "bias.weight has rows of 33");

    x = begin(&s);
    weft__op_add(s.b, 0, weft__op_linear(s.b, 0, x, matrix(&s, D, 48), WEFT_NONE), x);
    refused(&s, "add blk.0.add", "tensor token_embd is 32 wide; it must be 48");

    x = begin(&s);
    weft__op_add(s.b, 0, x, weft__op_pick_rows(s.b, x));
    refused(&s, "add blk.0.add", "have different rows");

    x = begin(&s);
    weft__op_norm(s.b, 0, x, stage_vector(&s, 12, "n"), 1e-5f, 12);
    refused(&s, "norm n", "groups of 12 do not divide the 32");

    x = begin(&s);
    weft_attr_rope rope = {.n_heads = 2, .head_dim = 16, .n_rot = 18, .base = 10000, .freq_scale = 1, .attn_factor = 1};
    weft__op_rope(s.b, 0, x, &rope, WEFT_NONE);
    refused(&s, "rope", "cannot rotate 18 of 16");

    x = begin(&s);
    rope.n_rot = 16;
    weft__op_rope(s.b, 0, weft__op_pick_rows(s.b, x), &rope, WEFT_NONE);
    refused(&s, "rope", "this op needs all rows");

    x = begin(&s);
    weft__builder_output(s.b, x);
    weft__builder_output(s.b, x);
    refused(&s, "token_embd", "output twice");
}

static void test_pages(void **state)
{
    (void)state;
    stage s;
    weft_tensor_id x = begin(&s);
    weft_kv_group g = {WEFT_KV_WINDOW, 8, 1, 1, 16, 16, 16, 0};
    weft_attr_kv kv = {weft__builder_kv_group(s.b, &g), 0};
    weft__op_kv_write(s.b, 0, x, x, kv);
    refused(&s, "kv_write", "32 wide; it must be 16");

    x = begin(&s);
    kv.group = weft__builder_kv_group(s.b, &g);
    weft_tensor_id k = weft__op_linear(s.b, 0, x, matrix(&s, D, 16), WEFT_NONE);
    weft_attr_attention a = {
        .kv = kv, .n_heads = 2, .n_kv_heads = 1, .head_dim_k = 16, .head_dim_v = 16, .scale = 1, .window = 9};
    weft__op_attention(s.b, 0, x, weft__op_kv_write(s.b, 0, k, k, kv), &a);
    refused(&s, "attention", "window 9 is more than the 8");

    x = begin(&s);
    kv.group = weft__builder_kv_group(s.b, &g);
    k = weft__op_linear(s.b, 0, x, matrix(&s, D, 16), WEFT_NONE);
    a = (weft_attr_attention){.kv = kv, .n_heads = 2, .n_kv_heads = 1, .head_dim_k = 16, .head_dim_v = 16, .scale = -1};
    weft__op_attention(s.b, 0, x, weft__op_kv_write(s.b, 0, k, k, kv), &a);
    refused(&s, "attention", "a scale of -1");

    x = begin(&s);
    kv.layer = 1;
    kv.group = weft__builder_kv_group(s.b, &g);
    k = weft__op_linear(s.b, 0, x, matrix(&s, D, 16), WEFT_NONE);
    weft__op_kv_write(s.b, 0, k, k, kv);
    refused(&s, "kv_write", "KV group 0 has 1 layers, not layer 1");

    begin(&s);
    g.page_tokens = 24;
    weft__builder_kv_group(s.b, &g);
    refused(&s, "KV group 0", "power of two");
}

static void test_weights(void **state)
{
    (void)state;
    stage s;
    uint8_t bytes[64] = {0};
    weft_buffer small = {.size = sizeof small, .n_bytes = sizeof bytes, .data = bytes};
    weft_weight w = {.name = "w",
                     .dtype = WEFT_F32,
                     .shape = {.n_dims = 2, .d = {4, 4, 1, 1}},
                     .buffer = &small,
                     .offset = 4,
                     .row_bytes = 16};
    begin(&s);
    weft__builder_weight(s.b, &w);
    refused(&s, "weight w", "do not lie inside");
    begin(&s);
    w.offset = UINT64_MAX - 8;
    weft__builder_weight(s.b, &w);
    refused(&s, "weight w", "do not lie inside");
    begin(&s);
    w.offset = 0;
    w.dtype = 999;
    weft__builder_weight(s.b, &w);
    refused(&s, "weight w", "unknown type 999");
    begin(&s);
    w.dtype = WEFT_Q4_0; /* blocks of 32 */
    weft__builder_weight(s.b, &w);
    refused(&s, "weight w", "is no shape for Q4_0");
}

static void test_bad_nodes(void **state)
{
    (void)state;
    stage s;
    weft_tensor_id x = begin(&s);
    weft_node n = {.op = 77, .n_in = 1, .n_out = 1, .in = {x}, .out = {x}};
    weft__builder_node(s.b, &n);
    refused(&s, "node 1", "unknown op 77");
    x = begin(&s);
    n.op = 8; /* reserved */
    weft__builder_node(s.b, &n);
    refused(&s, "node 1", "unknown op 8");
    x = begin(&s);
    n = (weft_node){.op = WEFT_OP_ADD, .n_in = 9, .n_out = 1, .in = {x}, .out = {x}};
    weft__builder_node(s.b, &n);
    refused(&s, "node 1", "9 inputs; at most 4");
    x = begin(&s);
    n = (weft_node){.op = WEFT_OP_SOFTCAP, .n_in = 1, .n_out = 1, .in = {x}, .out = {-5}};
    weft__builder_node(s.b, &n);
    refused(&s, "node 1", "tensor id -5 does not exist");
}

/* ---- order ---- */

static void test_order(void **state)
{
    (void)state;
    stage s;
    weft_tensor_id x = begin(&s), late = weft__builder_tensor(s.b, D, WEFT_ROWS, "late");
    weft_tensor_id y = weft__op_add(s.b, 0, x, late); /* declared before its input is made */
    weft_tensor_id a = weft__op_softcap(s.b, 1, x, 2), b = weft__op_softcap(s.b, 2, x, 3);
    weft_node n = {.op = WEFT_OP_ADD, .n_in = 2, .n_out = 1, .in = {a, b}, .out = {late}, .layer = 3};
    weft__builder_node(s.b, &n);
    weft__builder_output(s.b, y);
    stage_finish(&s);
    /* Stable: the ones that were executable keep their order. */
    const int32_t expected[] = {-1, 1, 2, 3, 0};
    assert_int_equal(s.g->n_nodes, 5);
    for (int i = 0; i < 5; i++) assert_int_equal(s.g->nodes[i].layer, expected[i]);
    /* With places, runs of one place are as long as they can be: 0 is made, then both of place 1, then the rest of
     * 0. */
    const int32_t place[] = {0, 1, 0, 1, 0};
    int32_t order[5];
    assert_ok(weft__graph_order(s.g, place, order, err));
    const int32_t placed[] = {0, 2, 1, 3, 4};
    assert_memory_equal(order, placed, sizeof order);
    stage_close(&s);
}

static void test_op_names(void **state)
{
    (void)state;
    assert_string_equal(weft_op_name(WEFT_OP_EMBED), "embed");
    assert_string_equal(weft_op_name(WEFT_OP_MOE_FFN), "moe_ffn");
    assert_string_equal(weft_op_name(8), "?"); /* reserved */
    assert_string_equal(weft_op_name(14), "?");
    assert_string_equal(weft_op_name(UINT32_MAX), "?");
}

/* ---- memory that runs out ---- */

static int build_small(void *arg)
{
    const weft_weight *w = arg;
    weft__builder *b = NULL;
    weft_graph *g = NULL, *fused = NULL;
    if (weft__builder_create(&b, NULL)) return 0;
    weft_tensor_id x = weft__op_embed(b, weft__builder_weight(b, w), 1), y = x;
    for (int i = 0; i < 12; i++) y = weft__op_add(b, i, x, weft__op_linear(b, i, y, 0, WEFT_NONE));
    weft__builder_output(b, y);
    weft_status st = weft__builder_finish(&b, &g, NULL);
    if (!st) {
        fused = weft__graph_copy(g);
        if (!fused) st = WEFT_NO_MEMORY;
    }
    weft__graph_destroy(&fused);
    weft__graph_destroy(&g);
    return !st;
}

static void test_failing_allocator(void **state)
{
    (void)state;
    static float table[D * D];
    weft_buffer buffer = {.size = sizeof buffer, .n_bytes = sizeof table, .data = table};
    weft_weight w = {.name = "token_embd.weight",
                     .dtype = WEFT_F32,
                     .shape = {.n_dims = 2, .d = {D, D, 1, 1}},
                     .buffer = &buffer,
                     .row_bytes = D * 4};
    size_t n = fail_each(build_small, &w);
    print_message("  %zu allocations refused in turn\n", n);
    assert_true(n > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_undefined), cmocka_unit_test(test_made_twice),
        cmocka_unit_test(test_cycle),     cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_pages),     cmocka_unit_test(test_weights),
        cmocka_unit_test(test_bad_nodes), cmocka_unit_test(test_order),
        cmocka_unit_test(test_op_names),  cmocka_unit_test(test_failing_allocator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
