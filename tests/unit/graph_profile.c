// SPDX-License-Identifier: Apache-2.0
/* graph_profile.c: what ops cost, by hand; and the record of profiled steps on the CPU provider. */
#include "waist.h"

#include <errno.h>
#include <stdlib.h>

enum {
    D = 64,
    V = 40,
    HEADS = 4,
    KV_HEADS = 2,
    DIM = 16,
    EXPERTS = 8,
    USED = 2,
    F = 32,
    WINDOW = 4,
    N_CTX = 64,
    MAX_ROWS = 32
};

/* Embedding, attention over everything, attention through a window, experts, head. */
static void build(stage *s)
{
    stage_open(s, 3);
    weft_kv_group group = {.kind = WEFT_KV_FULL,
                           .n_layers = 2,
                           .n_kv_heads = KV_HEADS,
                           .head_dim_k = DIM,
                           .head_dim_v = DIM,
                           .page_tokens = 16};
    int32_t g = weft__builder_kv_group(s->b, &group);
    weft_tensor_id x = weft__op_embed(s->b, stage_weight(s, WEFT_F16, D, V, 0, "embd"), 1);
    for (int l = 0; l < 2; l++) {
        weft_attr_kv kv = {g, l};
        weft_attr_attention a = {.kv = kv,
                                 .n_heads = HEADS,
                                 .n_kv_heads = KV_HEADS,
                                 .head_dim_k = DIM,
                                 .head_dim_v = DIM,
                                 .scale = 1,
                                 .window = l ? WINDOW : 0};
        weft_tensor_id q = weft__op_linear(s->b, l, x, stage_weight(s, WEFT_Q8_0, D, HEADS * DIM, 0, "q"), WEFT_NONE);
        weft_tensor_id k =
            weft__op_linear(s->b, l, x, stage_weight(s, WEFT_BF16, D, KV_HEADS * DIM, 0, "k"), WEFT_NONE);
        weft_tensor_id v = weft__op_linear(s->b, l, x, stage_weight(s, WEFT_F32, D, KV_HEADS * DIM, 0, "v"), WEFT_NONE);
        x = weft__op_attention(s->b, l, q, weft__op_kv_write(s->b, l, k, v, kv), &a);
    }
    weft_attr_moe moe = {.n_experts = EXPERTS, .n_used = USED, .scale = 1, .activation = WEFT_ACT_SILU};
    weft_tensor_id logits = weft__op_linear(s->b, 1, x, stage_weight(s, WEFT_F32, D, EXPERTS, 0, "router"), WEFT_NONE);
    weft_tensor_id route = weft__op_moe_route(s->b, 1, logits, &moe);
    weft_weight_id gate = stage_weight(s, WEFT_Q8_0, D, F, EXPERTS, "gate"),
                   up = stage_weight(s, WEFT_Q8_0, D, F, EXPERTS, "up");
    x = weft__op_moe_ffn(s->b, 1, x, route, gate, up, stage_weight(s, WEFT_Q8_0, F, D, EXPERTS, "down"), &moe);
    x = weft__op_linear(s->b, -1, weft__op_pick_rows(s->b, x), stage_weight(s, WEFT_Q8_0, D, V, 0, "head"), WEFT_NONE);
    weft__builder_output(s->b, x);
    stage_finish(s);
}

/* Cost of the n-th node of that op. */
static weft__graph_cost cost_of(const weft_graph *g, uint32_t op, int nth, const weft__graph_load *load)
{
    for (int32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].op == op && nth-- == 0) return weft__graph_node_cost(g, i, load);
    fail_msg("no such node");
    return (weft__graph_cost){0};
}

static double row_bytes(uint32_t dtype, int64_t k)
{
    return (double)weft__quant_row_bytes(dtype, k) + 3; /* as waist.h lays rows out */
}

static void test_costs(void **state)
{
    stage s;
    (void)state;
    build(&s);
    /* One row behind 10 tokens, and five at the beginning of another sequence. */
    const weft__graph_seq_rows seqs[] = {{10, 1, 1}, {0, 5, 0}};
    const weft__graph_load load = {6, 1, 2, seqs, WEFT_F16, 0}, silent = {6, 0, 2, seqs, WEFT_F32, 0};
    weft__graph_cost q = cost_of(s.g, WEFT_OP_LINEAR, 0, &load), k = cost_of(s.g, WEFT_OP_LINEAR, 1, &load),
                     v = cost_of(s.g, WEFT_OP_LINEAR, 2, &load);
    assert_true(q.int8_ops == 2.0 * 6 * D * HEADS * DIM && k.bf16_ops == 2.0 * 6 * D * KV_HEADS * DIM &&
                v.f32_ops == k.bf16_ops);
    assert_true(q.bf16_ops + q.f32_ops + k.int8_ops + k.f32_ops + v.int8_ops + v.bf16_ops == 0);
    assert_true(q.weight_bytes == HEADS * DIM * row_bytes(WEFT_Q8_0, D));
    assert_true(q.bytes == q.weight_bytes + 4.0 * 6 * (D + HEADS * DIM));
    weft__graph_cost all = cost_of(s.g, WEFT_OP_ATTENTION, 0, &load),
                     window = cost_of(s.g, WEFT_OP_ATTENTION, 1, &load);
    const double token = 2.0 * KV_HEADS * (DIM + DIM), pair = 2.0 * HEADS * (DIM + DIM);
    assert_true(all.kv_bytes == (11 + 5) * token && all.attention_ops == (11 + 15) * pair);
    assert_true(window.kv_bytes == (4 + 5) * token && window.attention_ops == (4 + 1 + 2 + 3 + 4 + 4) * pair);
    assert_true(cost_of(s.g, WEFT_OP_ATTENTION, 0, &silent).kv_bytes == 2 * all.kv_bytes);
    const weft__graph_load coded = {6, 1, 2, seqs, WEFT_KV_Q8, 0};
    assert_true(cost_of(s.g, WEFT_OP_ATTENTION, 0, &coded).kv_bytes ==
                (11 + 5) * KV_HEADS * ((DIM + 3) / 4 * 4 + 4 + DIM + 4.0));
    const uint32_t types[] = {WEFT_F16, WEFT_F32}; /* of each sequence its own */
    const weft__graph_load several = {6, 1, 2, seqs, WEFT_F16, 0, types};
    assert_true(cost_of(s.g, WEFT_OP_ATTENTION, 0, &several).kv_bytes == (11 + 2 * 5) * token);
    assert_true(cost_of(s.g, WEFT_OP_KV_WRITE, 0, &several).bytes ==
                cost_of(s.g, WEFT_OP_KV_WRITE, 0, &load).bytes + 5 * token);
    const double expert = 2 * F * row_bytes(WEFT_Q8_0, D) + D * row_bytes(WEFT_Q8_0, F);
    weft__graph_cost moe = cost_of(s.g, WEFT_OP_MOE_FFN, 0, &load);
    assert_true(moe.weight_bytes == EXPERTS * expert && moe.int8_ops == 2.0 * 6 * USED * 3 * D * F);
    const weft__graph_load one = {1, 1, 1, seqs, WEFT_F16, 0};
    assert_true(cost_of(s.g, WEFT_OP_MOE_FFN, 0, &one).weight_bytes == USED * expert);
    int head = 7; /* after q, k, v of two layers and the router */
    assert_true(cost_of(s.g, WEFT_OP_LINEAR, head, &load).int8_ops == 2.0 * D * V);
    assert_true(cost_of(s.g, WEFT_OP_LINEAR, head, &silent).bytes == 0);
    stage_close(&s);
}

/* What is there for wanted rows alone: the last attention and what comes behind it, and queries that nothing
 * rotates. */
static void test_costs_of_rows_that_are_wanted(void **state)
{
    stage s;
    store t;
    (void)state;
    build(&s);
    store_open(&t, s.g, "cpu", "threads=1", 0, WEFT_F16, N_CTX, MAX_ROWS);
    const weft_graph *g = weft__plan_graph(t.plan);
    int n_flags = 0;
    for (int32_t i = 0; i < g->n_nodes; i++) n_flags += (g->nodes[i].flags & WEFT_NODE_IF_WANTED) != 0;
    assert_int_equal(n_flags, 5); /* q, attention, router, route, experts */
    const weft__graph_seq_rows seqs[] = {{10, 1, 0}, {0, 5, 2}}, none_of_them[] = {{10, 1, 0}, {0, 5, 0}};
    weft__graph_load two = {6, 2, 2, seqs, WEFT_F16, 0}, none = {6, 0, 2, none_of_them, WEFT_F16, 0};
    const double token = 2.0 * KV_HEADS * (DIM + DIM), pair = 2.0 * HEADS * (DIM + DIM);
    assert_true(cost_of(g, WEFT_OP_ATTENTION, 0, &two).attention_ops == (11 + 15) * pair);
    weft__graph_cost last = cost_of(g, WEFT_OP_ATTENTION, 1, &two); /* the last two rows of the second sequence */
    assert_true(last.attention_ops == (4 + 4) * pair && last.kv_bytes == 5 * token);
    assert_true(cost_of(g, WEFT_OP_MOE_FFN, 0, &two).int8_ops == 2.0 * 2 * USED * 3 * D * F);
    assert_true(cost_of(g, WEFT_OP_ATTENTION, 1, &none).bytes == 0 && cost_of(g, WEFT_OP_MOE_FFN, 0, &none).bytes == 0);
    two.wants_outputs = 1;
    assert_true(cost_of(g, WEFT_OP_ATTENTION, 1, &two).attention_ops == (4 + 1 + 2 + 3 + 4 + 4) * pair);
    assert_true(cost_of(g, WEFT_OP_MOE_FFN, 0, &two).int8_ops == 2.0 * 6 * USED * 3 * D * F);
    store_close(&t);
    stage_close(&s);
}

static void check_record(const weft__profile *f, int n_steps)
{
    const weft_graph *g = weft__plan_graph(f->plan);
    assert_int_equal(f->n_steps, n_steps);
    int32_t at = 0;
    for (int i = 0; i < n_steps; i++) {
        const weft__profile_step *s = &f->steps[i];
        assert_int_equal(s->first, at);
        assert_true(s->n >= g->n_nodes);
        uint64_t last = s->begin_ns, n_nodes = 0;
        for (int32_t k = s->first; k < s->first + s->n; k++) {
            const weft__profile_op *op = &f->ops[k];
            assert_int_equal(op->step, i);
            assert_true(last <= op->begin_ns && op->begin_ns <= op->done_ns && op->done_ns <= op->end_ns);
            last = op->end_ns;
            if (op->node == WEFT_NONE) continue;
            assert_int_equal(op->node, n_nodes++); /* every node, in order */
            assert_true(op->bytes > 0);
            assert_true((op->ops > 0) ==
                        (g->nodes[op->node].op == WEFT_OP_LINEAR || g->nodes[op->node].op == WEFT_OP_ATTENTION ||
                         g->nodes[op->node].op == WEFT_OP_MOE_FFN));
        }
        assert_true(last <= s->end_ns);
        assert_int_equal(n_nodes, g->n_nodes);
        at += s->n;
    }
    assert_int_equal(f->n_ops, at);
}

static void test_record(void **state)
{
    stage s;
    store t;
    float plain[STAGE_SEQS * N_CTX * V] = {0}, timed[STAGE_SEQS * N_CTX * V] = {0};
    const span prompt = {0, 0, 20}, mixed[] = {{0, 20, 1}, {2, 0, 7}};
    (void)state;
    build(&s);
    store_open(&t, s.g, "cpu", "threads=2", 1, WEFT_F16, N_CTX, MAX_ROWS);
    store_step(&t, &prompt, 1, V, N_CTX, plain);
    store_step(&t, mixed, 2, V, N_CTX, plain);
    weft__profile *record;
    assert_ok(weft__profile_new(t.plan, &record, err));
    for (int again = 0; again < 2; again++) {
        t.profile = record;
        weft__profile_clear(record);
        check_record(record, 0);
        store_step(&t, &prompt, 1, V, N_CTX, timed);
        store_step(&t, mixed, 2, V, N_CTX, timed);
        check_record(record, 2);
        assert_int_equal(record->steps[1].n_rows, 8);
    }
    t.profile = NULL;
    store_step(&t, mixed, 2, V, N_CTX, timed);
    check_record(record, 2);
    weft__profile_free(&record);
    assert_memory_equal(plain, timed, sizeof plain);
    store_close(&t);
    stage_close(&s);
}

/* Every thread of the team counts every op once, its own share alone: what is counted while it waits is no op's. */
static _Thread_local uint64_t read_so_far;

static void one_more_each_time(uint64_t out[WEFT__COUNTERS - WEFT__COUNTERS_HARDWARE])
{
    out[0] = out[1] = out[2] = ++read_so_far;
}

static int none(const struct perf_event_attr *attr, int group_fd)
{
    (void)attr, (void)group_fd;
    errno = ENOENT;
    return -1;
}

static void test_counts(void **state)
{
    static const weft__counter_system system = {.open = none, .own = one_more_each_time};
    stage s;
    store t;
    float out[STAGE_SEQS * N_CTX * V];
    const span prompt = {0, 0, 20}, mixed[] = {{0, 20, 1}, {2, 0, 7}};
    (void)state;
    build(&s);
    setenv("WEFT_TEAM", "fixed", 1);
    for (int n_threads = 1; n_threads <= 2; n_threads++) {
        char options[64];
        snprintf(options, sizeof options, "threads=%d", n_threads);
        store_open(&t, s.g, "cpu", options, 1, WEFT_F16, N_CTX, MAX_ROWS);
        assert_ok(weft__profile_new(t.plan, &t.profile, err));
        assert_ok(weft__profile_count(t.profile, 1, &system, err));
        const uint64_t before = read_so_far;
        store_step(&t, &prompt, 1, V, N_CTX, out);
        store_step(&t, mixed, 2, V, N_CTX, out);
        check_record(t.profile, 2);
        uint64_t sum = 0;
        for (int32_t i = 0; i < t.profile->n_ops; i++) {
            assert_int_equal(t.profile->counts[i].n[WEFT__COUNTER_TASK_NS], n_threads);
            sum += t.profile->counts[i].n[WEFT__COUNTER_TASK_NS] / (uint64_t)n_threads;
        }
        assert_true(read_so_far - before > sum + 6); /* of this thread: once at the beginning, and behind each wait */
        assert_non_null(weft__counters_absent(t.profile->counters, WEFT__COUNTER_CYCLES));
        assert_int_equal(t.profile->counts[0].n[WEFT__COUNTER_SWITCHES], t.profile->counts[0].n[WEFT__COUNTER_TASK_NS]);
        assert_ok(weft__profile_count(t.profile, 0, NULL, err));
        store_step(&t, &prompt, 1, V, N_CTX, out);
        check_record(t.profile, 1);
        assert_null(t.profile->counters);
        store_close(&t);
    }
    unsetenv("WEFT_TEAM");
    stage_close(&s);
}

static void test_a_failed_step_leaves_no_trace(void **state)
{
    stage s;
    store t;
    float out[STAGE_SEQS * N_CTX * V];
    const span prompt = {0, 0, 3};
    (void)state;
    build(&s);
    store_open(&t, s.g, "cpu", "threads=1", 1, WEFT_F16, N_CTX, MAX_ROWS);
    assert_ok(weft__profile_new(t.plan, &t.profile, err));
    store_step(&t, &prompt, 1, V, N_CTX, out);
    t.token[0] = V;
    weft_rows rows = {.size = sizeof rows,
                      .n_rows = 1,
                      .n_seqs = STAGE_SEQS,
                      .token = t.token,
                      .pos = t.pos,
                      .seq = t.seq,
                      .want = t.want,
                      .seqs = t.views};
    t.want[0] = 0;
    float *none = NULL;
    assert_int_not_equal(weft__profile_run(t.profile, t.state, &rows, t.kv, &none, NULL), WEFT_OK);
    store_step(&t, &prompt, 1, V, N_CTX, out);
    check_record(t.profile, 2);
    store_close(&t);
    stage_close(&s);
}

static void test_a_provider_that_cannot(void **state)
{
    stage s;
    store t;
    (void)state;
    build(&s);
    store_open(&t, s.g, "cpu", "threads=1", 1, WEFT_F16, N_CTX, MAX_ROWS);
    t.providers[0]->table.features = 0;
    assert_refused(WEFT_UNSUPPORTED, "cpu", weft__profile_new(t.plan, &t.profile, err));
    assert_null(t.profile);
    t.providers[0]->table.features = WEFT_FEATURE_PROFILE;
    assert_ok(weft__profile_new(t.plan, &t.profile, err));
    assert_refused(WEFT_UNSUPPORTED, "counts nothing", weft__profile_count(t.profile, 1, NULL, err));
    assert_null(t.profile->counters);
    store_close(&t);
    stage_close(&s);
}

static int start_and_step(void *arg)
{
    store *t = arg;
    weft__plan *plan;
    weft__plan_state *runs = NULL;
    weft__profile *record = NULL;
    weft_error err = {0};
    weft__plan_options o = {.max_rows = MAX_ROWS, .max_wanted = 0, .providers = t->providers, .n_providers = 1};
    if (weft__plan_create(t->g, &o, &plan, &err)) return 0;
    weft_rows rows = {.size = sizeof rows,
                      .n_rows = 1,
                      .n_seqs = STAGE_SEQS,
                      .token = t->token,
                      .pos = t->pos,
                      .seq = t->seq,
                      .want = t->want,
                      .seqs = t->views};
    float *none = NULL;
    int ok = !weft__plan_state_new(plan, &runs, &err) && !weft__profile_new(plan, &record, &err) &&
             !weft__profile_count(record, 1, NULL, &err) && !weft__profile_run(record, runs, &rows, t->kv, &none, &err);
    weft__profile_free(&record);
    weft__plan_state_free(&runs);
    weft__plan_destroy(&plan);
    return ok;
}

static void test_no_memory(void **state)
{
    stage s;
    store t;
    (void)state;
    build(&s);
    store_open(&t, s.g, "cpu", "threads=1", 1, WEFT_F16, N_CTX, MAX_ROWS);
    t.token[0] = t.pos[0] = t.seq[0] = t.want[0] = 0;
    assert_true(fail_each(start_and_step, &t) > 5);
    store_close(&t);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_costs_of_rows_that_are_wanted),
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_a_failed_step_leaves_no_trace),
        cmocka_unit_test(test_a_provider_that_cannot),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
