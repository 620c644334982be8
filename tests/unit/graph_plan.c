// SPDX-License-Identifier: Apache-2.0
/* graph_plan.c: fusion, memory reuse, placement and segments, seen through providers that only write down what they are
 * given. */
#include "waist.h"

#include "graph/internal.h"

enum { D = 32, V = 40, F = 64 };

/* ---- a provider that records ---- */

typedef struct witness {
    uint32_t refuse;  /* bit per op that it does not support */
    int refuse_fused; /* no linear with anything fused in, no rope_kv */
    int rank;
    int n_compiled, n_run;
    weft_segment seen[8];
    const weft_graph *graph;
    const weft_tensor_binding *bindings[8];
} witness;

static int witness_supports(weft_backend *b, const weft_graph *g, const weft_node *n)
{
    const witness *w = (const witness *)b;
    (void)g;
    if (w->refuse >> n->op & 1) return 0;
    const weft_attr_linear *l = &n->attr.linear;
    int fused = n->op == WEFT_OP_ROPE_KV ||
                (n->op == WEFT_OP_LINEAR && (l->n_mat > 1 || l->norm_weight != WEFT_NONE || l->residual != WEFT_NONE));
    return fused && w->refuse_fused ? 0 : w->rank;
}

static weft_status witness_compile(weft_backend *b, const weft_graph *g, const weft_segment *s,
                                   const weft_compile_options *o, weft_program **out, weft_error *err)
{
    witness *w = (witness *)b;
    (void)o;
    (void)err;
    w->graph = g;
    w->seen[w->n_compiled++] = *s;
    *out = (weft_program *)w;
    return WEFT_OK;
}

static void witness_free(weft_program **p)
{
    *p = NULL;
}

static weft_status witness_run_new(const weft_program *p, weft_run **out, weft_error *err)
{
    (void)err;
    *out = (weft_run *)p;
    return WEFT_OK;
}

static void witness_run_free(weft_run **run)
{
    *run = NULL;
}

static weft_status witness_run(weft_run *run, const weft_step *step, weft_error *err)
{
    witness *w = (witness *)run;
    (void)err;
    w->bindings[w->n_run++] = step->bindings->tensors;
    return WEFT_OK;
}

static const weft_backend_api witness_api = {.size = sizeof witness_api,
                                             .abi_version = WEFT_ABI_VERSION,
                                             .name = "witness",
                                             .supports = witness_supports,
                                             .compile = witness_compile,
                                             .program_free = witness_free,
                                             .run_new = witness_run_new,
                                             .run_free = witness_run_free,
                                             .run = witness_run};

/* ---- a model in miniature ---- */

static weft_tensor_id attention_block(stage *s, int l, weft_tensor_id x, weft_attr_kv kv)
{
    weft_attr_rope rope = {.n_heads = 2, .head_dim = 16, .n_rot = 16, .base = 10000, .freq_scale = 1, .attn_factor = 1};
    weft_attr_attention a = {.kv = kv, .n_heads = 2, .n_kv_heads = 1, .head_dim_k = 16, .head_dim_v = 16, .scale = 1};
    weft_tensor_id h = weft__op_norm(s->b, l, x, stage_vector(s, D, "attn_norm"), 1e-5f, 0);
    weft_tensor_id q =
        weft__op_linear(s->b, l, h, stage_weight(s, WEFT_F32, D, D, 0, "q"), stage_vector(s, D, "q_bias"));
    weft_tensor_id k = weft__op_linear(s->b, l, h, stage_weight(s, WEFT_F32, D, 16, 0, "k"), WEFT_NONE);
    weft_tensor_id v = weft__op_linear(s->b, l, h, stage_weight(s, WEFT_F32, D, 16, 0, "v"), WEFT_NONE);
    q = weft__op_rope(s->b, l, q, &rope, WEFT_NONE);
    rope.n_heads = 1;
    k = weft__op_rope(s->b, l, k, &rope, WEFT_NONE);
    weft_tensor_id y = weft__op_attention(s->b, l, q, weft__op_kv_write(s->b, l, k, v, kv), &a);
    return weft__op_add(s->b, l, x, weft__op_linear(s->b, l, y, stage_weight(s, WEFT_F32, D, D, 0, "o"), WEFT_NONE));
}

static weft_tensor_id ffn_block(stage *s, int l, weft_tensor_id x)
{
    weft_tensor_id h = weft__op_norm(s->b, l, x, stage_vector(s, D, "ffn_norm"), 1e-5f, 0);
    weft_tensor_id g = weft__op_linear(s->b, l, h, stage_weight(s, WEFT_F32, D, F, 0, "gate"), WEFT_NONE);
    weft_tensor_id u = weft__op_linear(s->b, l, h, stage_weight(s, WEFT_F32, D, F, 0, "up"), WEFT_NONE);
    weft_tensor_id y = weft__op_glu(s->b, l, g, u, WEFT_ACT_SILU);
    return weft__op_add(s->b, l, x, weft__op_linear(s->b, l, y, stage_weight(s, WEFT_F32, F, D, 0, "down"), WEFT_NONE));
}

static void model(stage *s, int n_layers)
{
    stage_open(s, 5);
    weft_kv_group g = {WEFT_KV_FULL, 0, n_layers, 1, 16, 16, 16, 0};
    int32_t group = weft__builder_kv_group(s->b, &g);
    weft_tensor_id x = weft__op_embed(s->b, stage_weight(s, WEFT_F32, D, V, 0, "token_embd"), 1);
    for (int l = 0; l < n_layers; l++) x = ffn_block(s, l, attention_block(s, l, x, (weft_attr_kv){group, l}));
    x = weft__op_norm(s->b, -1, weft__op_pick_rows(s->b, x), stage_vector(s, D, "output_norm"), 1e-5f, 0);
    weft__builder_output(s->b, weft__op_linear(s->b, -1, x, stage_weight(s, WEFT_F32, D, V, 0, "output"), WEFT_NONE));
    stage_finish(s);
}

/* ---- fusion ---- */

static int yes(void *arg, const weft_graph *g, const weft_node *n)
{
    (void)arg;
    (void)g;
    (void)n;
    return 1;
}

static int not_this_op(void *arg, const weft_graph *g, const weft_node *n)
{
    (void)g;
    return n->op != *(uint32_t *)arg;
}

static int count(const weft_graph *g, uint32_t op)
{
    int n = 0;
    for (int32_t i = 0; i < g->n_nodes; i++) n += g->nodes[i].op == op;
    return n;
}

static weft_graph *fuse(const weft_graph *g, weft__graph_supports_fn supports, void *arg)
{
    weft_graph *out;
    int32_t *order = weft__alloc_array((size_t)g->n_nodes, sizeof *order);
    assert_ok(weft__graph_fuse(g, NULL, supports, arg, &out, err));
    assert_ok(weft__graph_check(out, err));
    assert_ok(weft__graph_order(out, NULL, order, err));
    for (int32_t i = 0; i < out->n_nodes; i++) assert_int_equal(order[i], i); /* it was executable as it stood */
    weft__free(order);
    return out;
}

static void test_fuse_model(void **state)
{
    (void)state;
    stage s;
    model(&s, 2);
    weft_graph *f = fuse(s.g, yes, NULL);
    /* embed, 2 x (qkv, rope_kv, attention, out, gate-up, down), pick_rows, output */
    assert_int_equal(f->n_nodes, 1 + 2 * 6 + 2);
    assert_int_equal(count(f, WEFT_OP_NORM) + count(f, WEFT_OP_ADD) + count(f, WEFT_OP_GLU) + count(f, WEFT_OP_ROPE),
                     0);
    const weft_node *qkv = &f->nodes[1], *out = &f->nodes[4], *gate_up = &f->nodes[5];
    assert_int_equal(qkv->attr.linear.n_mat, 3);
    assert_int_equal(qkv->n_out, 3);
    assert_true(qkv->attr.linear.norm_weight != WEFT_NONE && qkv->attr.linear.bias[0] != WEFT_NONE &&
                qkv->attr.linear.bias[1] == WEFT_NONE);
    assert_int_equal(f->nodes[2].op, WEFT_OP_ROPE_KV);
    assert_int_equal(f->nodes[2].attr.rope_kv.q.n_heads, 2);
    assert_int_equal(f->nodes[2].attr.rope_kv.k.n_heads, 1);
    assert_int_equal(out->attr.linear.residual, 1);
    assert_int_equal(out->in[1], qkv->in[0]);
    assert_int_equal(gate_up->attr.linear.activation, WEFT_ACT_SILU);
    assert_int_equal(gate_up->n_out, 1);
    assert_string_equal(f->tensors[gate_up->out[0]].name, "gate");
    assert_string_equal(f->tensors[out->out[0]].name, "o");
    weft__graph_destroy(&f);
    stage_close(&s);
}

static void test_fuse_refused(void **state)
{
    (void)state;
    stage s;
    uint32_t op = WEFT_OP_LINEAR;
    model(&s, 1);
    weft_graph *f = fuse(s.g, not_this_op, &op);
    assert_int_equal(f->n_nodes, s.g->n_nodes - 2); /* only rope_kv */
    weft__graph_destroy(&f);
    op = WEFT_OP_ROPE_KV;
    f = fuse(s.g, not_this_op, &op);
    assert_int_equal(count(f, WEFT_OP_ROPE), 2);
    assert_int_equal(count(f, WEFT_OP_NORM), 0);
    weft__graph_destroy(&f);
    /* Parts on different providers are never fused: here every node has a place of its own. */
    int32_t *place = weft__alloc_array((size_t)s.g->n_nodes, sizeof *place);
    for (int32_t i = 0; i < s.g->n_nodes; i++) place[i] = i;
    assert_ok(weft__graph_fuse(s.g, place, yes, NULL, &f, err));
    assert_int_equal(f->n_nodes, s.g->n_nodes);
    weft__graph_destroy(&f);
    weft__free(place);
    stage_close(&s);
}

/* Values that somebody else uses must not be fused away. */
static void test_fuse_keeps(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 6);
    weft_tensor_id x = weft__op_embed(s.b, stage_weight(&s, WEFT_F32, D, V, 0, "token_embd"), 1);
    weft_tensor_id h = weft__op_norm(s.b, 0, x, stage_vector(&s, D, "norm"), 1e-5f, 0);
    weft_tensor_id y = weft__op_linear(s.b, 0, h, stage_weight(&s, WEFT_F32, D, D, 0, "w"), WEFT_NONE);
    weft_tensor_id z = weft__op_add(s.b, 0, y, h); /* the norm has another user */
    weft_tensor_id g = weft__op_linear(s.b, 1, z, stage_weight(&s, WEFT_F32, D, D, 0, "g"), WEFT_NONE);
    weft_tensor_id u = weft__op_linear(s.b, 1, z, stage_weight(&s, WEFT_F32, D, D, 0, "u"), WEFT_NONE);
    weft__builder_output(s.b, weft__op_glu(s.b, 1, g, u, WEFT_ACT_SILU));
    weft__builder_output(s.b, g); /* the gate is an output too */
    weft_tensor_id t = weft__op_norm(s.b, 2, z, stage_vector(&s, 16, "heads"), 1e-5f, 16); /* per head: no prologue */
    weft__builder_output(s.b, weft__op_linear(s.b, 2, t, stage_weight(&s, WEFT_F32, D, D, 0, "t"), WEFT_NONE));
    weft_tensor_id e =
        weft__op_norm(s.b, 3, z, stage_vector(&s, D, "embedding"), 1e-5f, 0); /* used by one linear, and an output */
    weft__builder_output(s.b, e);
    weft__builder_output(s.b, weft__op_linear(s.b, 3, e, stage_weight(&s, WEFT_F32, D, D, 0, "e"), WEFT_NONE));
    weft__builder_output(s.b, weft__op_norm(s.b, 4, z, stage_vector(&s, D, "last"), 1e-5f, 0)); /* used by nobody */
    stage_finish(&s);
    weft_graph *f = fuse(s.g, yes, NULL);
    assert_int_equal(count(f, WEFT_OP_NORM), 4);
    assert_int_equal(count(f, WEFT_OP_GLU), 1);
    assert_int_equal(count(f, WEFT_OP_ADD), 0);    /* y is used once: z = w h + h */
    assert_int_equal(count(f, WEFT_OP_LINEAR), 4); /* w, g with u, t, e */
    weft__graph_destroy(&f);
    stage_close(&s);
}

/* ---- memory ---- */

static void test_memory_random(void **state)
{
    (void)state;
    weft__rng rng;
    weft__rng_seed(&rng, 11);
    for (int round = 0; round < 300; round++) {
        weft__graph_lifetime items[60];
        int n = 1 + (int)weft__rng_below(&rng, 60);
        uint64_t total, sum, peak = 0;
        for (int i = 0; i < n; i++) {
            int32_t begin = (int32_t)weft__rng_below(&rng, 40);
            items[i] = (weft__graph_lifetime){begin, begin + (int32_t)weft__rng_below(&rng, 8),
                                              weft__rng_below(&rng, 5000), 1};
        }
        assert_ok(weft__graph_plan_memory(items, n, &total, &sum, err));
        for (int i = 0; i < n; i++) {
            assert_int_equal(items[i].offset % 64, 0);
            assert_true(items[i].offset + items[i].n_bytes <= total);
            for (int j = 0; j < i; j++) {
                if (items[i].begin > items[j].end || items[j].begin > items[i].end) continue;
                assert_true(items[i].offset + items[i].n_bytes <= items[j].offset ||
                            items[j].offset + items[j].n_bytes <= items[i].offset || items[i].n_bytes == 0 ||
                            items[j].n_bytes == 0);
            }
        }
        for (int32_t time = 0; time < 48; time++) {
            uint64_t alive = 0;
            for (int i = 0; i < n; i++) alive += items[i].begin <= time && time <= items[i].end ? items[i].n_bytes : 0;
            if (alive > peak) peak = alive;
        }
        assert_true(total >= peak && total <= sum);
    }
}

static void test_memory_overflow(void **state)
{
    (void)state;
    weft__graph_lifetime items[2] = {{0, 1, UINT64_MAX - 100, 0}, {0, 1, 4096, 0}};
    uint64_t total, sum;
    assert_refused(WEFT_LIMIT, "more bytes", weft__graph_plan_memory(items, 2, &total, &sum, err));
}

/* Position of the first and last node of a segment that touches t, and whether any does. */
static int life_in(const weft_graph *g, const weft_segment *s, weft_tensor_id t, int32_t *begin, int32_t *end)
{
    *begin = -1;
    for (int32_t i = 0; i < s->n_nodes; i++) {
        const weft_node *n = &g->nodes[s->nodes[i]];
        int hit = 0;
        for (int j = 0; j < n->n_in; j++) hit |= n->in[j] == t;
        for (int j = 0; j < n->n_out; j++) hit |= n->out[j] == t;
        if (!hit) continue;
        if (*begin < 0) *begin = i;
        *end = i;
    }
    return *begin >= 0;
}

static uint64_t bytes_of(const weft_graph *g, const weft_segment *s, weft_tensor_id t)
{
    return (uint64_t)g->tensors[t].shape.d[0] * 4 *
           (uint64_t)(g->tensors[t].shape.d[1] == WEFT_ROWS ? s->max_rows : s->max_wanted);
}

/* Brute force: in a segment, every tensor with data is either bound or in the arena, and no two that live at once
 * overlap. */
static void check_segment(const weft_graph *g, const weft_segment *s)
{
    int32_t b[2] = {0}, e[2] = {0};
    for (weft_tensor_id t = 0; t < g->n_tensors; t++) {
        int bound = 0, inside = s->arena_offset[t] != UINT64_MAX;
        for (int32_t i = 0; i < s->n_bound; i++) bound += s->bound[i] == t;
        if (!life_in(g, s, t, &b[0], &e[0])) {
            assert_int_equal(bound, 0);
            continue;
        }
        assert_int_equal(bound + inside, bytes_of(g, s, t) > 0);
        if (!inside) continue;
        assert_true(s->arena_offset[t] % 64 == 0 && s->arena_offset[t] + bytes_of(g, s, t) <= s->arena_bytes);
        for (weft_tensor_id u = 0; u < t; u++) {
            if (s->arena_offset[u] == UINT64_MAX || !life_in(g, s, u, &b[1], &e[1]) || b[0] > e[1] || b[1] > e[0])
                continue;
            assert_true(s->arena_offset[t] + bytes_of(g, s, t) <= s->arena_offset[u] ||
                        s->arena_offset[u] + bytes_of(g, s, u) <= s->arena_offset[t]);
        }
    }
}

static weft__provider provider_of(witness *w)
{
    return (weft__provider){.api = &witness_api, .backend = (weft_backend *)w};
}

static void test_plan_one_provider(void **state)
{
    (void)state;
    stage s;
    model(&s, 6);
    for (int fused = 0; fused <= 1; fused++) {
        witness w = {.rank = 1};
        weft__provider p = provider_of(&w), *list[] = {&p};
        weft__plan_options o = {
            .max_rows = 24, .max_wanted = 7, .no_fusion = !fused, .providers = list, .n_providers = 1};
        weft__plan *plan;
        uint64_t sum = 0;
        assert_ok(weft__plan_create(s.g, &o, &plan, err));
        assert_int_equal(w.n_compiled, 1);
        assert_int_equal(w.seen[0].n_bound, 1);
        check_segment(w.graph, &w.seen[0]);
        for (weft_tensor_id t = 0; t < w.graph->n_tensors; t++)
            if (w.seen[0].arena_offset[t] != UINT64_MAX) sum += bytes_of(w.graph, &w.seen[0], t);
        print_message("  %s: arena %llu of %llu bytes\n", fused ? "fused" : "unfused",
                      (unsigned long long)w.seen[0].arena_bytes, (unsigned long long)sum);
        assert_true(w.seen[0].arena_bytes * 4 < sum);
        char *text = weft__plan_describe(plan);
        assert_non_null(strstr(text, "1 segment;"));
        assert_non_null(strstr(text, fused ? "norm in front, 3 matrices" : "norm ffn_norm"));
        weft__free(text);
        weft__plan_destroy(&plan);
    }
    stage_close(&s);
}

/* ---- placement ---- */

static void test_plan_two_providers(void **state)
{
    (void)state;
    stage s;
    model(&s, 2);
    witness a = {.rank = 10, .refuse = 1u << WEFT_OP_ATTENTION}, b = {.rank = 5};
    weft__provider pa = provider_of(&a), pb = provider_of(&b), *list[] = {&pa, &pb};
    weft__plan_options o = {.max_rows = 24, .max_wanted = 7, .providers = list, .n_providers = 2};
    weft__plan *plan;
    assert_ok(weft__plan_create(s.g, &o, &plan, err));
    /* b runs both attentions, alone in their segments */
    assert_int_equal(a.n_compiled, 3);
    assert_int_equal(b.n_compiled, 2);
    for (int i = 0; i < 3; i++) check_segment(a.graph, &a.seen[i]);
    for (int i = 0; i < 2; i++) {
        check_segment(b.graph, &b.seen[i]);
        assert_int_equal(b.seen[i].n_nodes, 1);
        assert_int_equal(b.seen[i].n_bound, 2); /* q and the output; the order token has no data */
        assert_int_equal(b.seen[i].arena_bytes, 0);
    }
    float logits[7 * V], *outputs[] = {logits};
    weft__plan_state *runs;
    assert_ok(weft__plan_state_new(plan, &runs, err));
    weft_rows rows = {.size = sizeof rows, .n_rows = 7, .n_wanted = 7};
    assert_ok(weft__plan_run(runs, &rows, NULL, outputs, err));
    assert_int_equal(a.n_run, 3);
    /* The same memory on both sides of a border, and the caller's for the output. */
    const weft_tensor_binding *q = a.bindings[0];
    int found = 0;
    for (int32_t i = 0; i < a.seen[0].n_bound; i++)
        for (int32_t j = 0; j < b.seen[0].n_bound; j++)
            if (q[i].tensor == b.bindings[0][j].tensor)
                found += q[i].data == b.bindings[0][j].data && q[i].data != NULL;
    assert_int_equal(found, 1);
    assert_ptr_equal(a.bindings[2][a.seen[2].n_bound - 1].data, logits);
    assert_refused(WEFT_ARGUMENT, "output", weft__plan_run(runs, &rows, NULL, NULL, err));
    weft__plan_state_free(&runs);
    weft__plan_destroy(&plan);
    stage_close(&s);
}

static void test_plan_places(void **state)
{
    (void)state;
    stage s;
    model(&s, 1);
    witness a = {.rank = 5}, b = {.rank = 5}, c = {.rank = 9, .refuse = ~(1u << WEFT_OP_ADD)};
    weft__provider pa = provider_of(&a), pb = provider_of(&b), pc = provider_of(&c), *list[] = {&pa, &pb, &pc};
    weft__plan_options o = {.max_rows = 4, .max_wanted = 4, .providers = list, .n_providers = 2};
    weft__plan *plan;
    assert_ok(weft__plan_create(s.g, &o, &plan, err)); /* equal rank: the first */
    assert_true(a.n_compiled == 1 && b.n_compiled == 0);
    weft__plan_destroy(&plan);
    a.n_compiled = 0;
    o.n_providers = 3;
    assert_ok(weft__plan_create(s.g, &o, &plan, err)); /* the adds go to c, and so do not become residuals */
    assert_int_equal(c.n_compiled, 2);
    assert_int_equal(count(a.graph, WEFT_OP_ADD), 2);
    weft__plan_destroy(&plan);
    a.refuse = b.refuse = 1u << WEFT_OP_ROPE;
    o.n_providers = 2;
    assert_refused(WEFT_UNSUPPORTED, "rope", weft__plan_create(s.g, &o, &plan, err));
    stage_close(&s);
}

/* A provider that runs only plain nodes gets plain nodes. */
static void test_plan_no_fused_forms(void **state)
{
    (void)state;
    stage s;
    model(&s, 1);
    witness w = {.rank = 1, .refuse_fused = 1};
    weft__provider p = provider_of(&w), *list[] = {&p};
    weft__plan_options o = {.max_rows = 4, .max_wanted = 4, .providers = list, .n_providers = 1};
    weft__plan *plan;
    assert_ok(weft__plan_create(s.g, &o, &plan, err));
    assert_int_equal(w.graph->n_nodes, s.g->n_nodes);
    weft__plan_destroy(&plan);
    stage_close(&s);
}

/* ---- memory that runs out ---- */

typedef struct attempt {
    const weft_graph *g;
    weft__provider **list;
    witness *w;
} attempt;

static int plan_once(void *arg)
{
    attempt *a = arg;
    weft__plan_options o = {.max_rows = 4, .max_wanted = 4, .providers = a->list, .n_providers = 2};
    weft__plan *plan;
    a->w[0].n_compiled = a->w[1].n_compiled = 0;
    weft_status st = weft__plan_create(a->g, &o, &plan, NULL);
    if (!st) {
        char *text = weft__plan_describe(plan);
        if (!text) st = WEFT_NO_MEMORY;
        weft__free(text);
    }
    weft__plan_destroy(&plan);
    return !st;
}

static void test_failing_allocator(void **state)
{
    (void)state;
    stage s;
    model(&s, 2);
    witness w[2] = {{.rank = 10, .refuse = 1u << WEFT_OP_ATTENTION}, {.rank = 5}};
    weft__provider p[2] = {provider_of(&w[0]), provider_of(&w[1])}, *list[] = {&p[0], &p[1]};
    attempt a = {s.g, list, w};
    size_t n = fail_each(plan_once, &a);
    print_message("  %zu allocations refused in turn\n", n);
    assert_true(n > 20);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fuse_model),          cmocka_unit_test(test_fuse_refused),
        cmocka_unit_test(test_fuse_keeps),          cmocka_unit_test(test_memory_random),
        cmocka_unit_test(test_memory_overflow),     cmocka_unit_test(test_plan_one_provider),
        cmocka_unit_test(test_plan_two_providers),  cmocka_unit_test(test_plan_places),
        cmocka_unit_test(test_plan_no_fused_forms), cmocka_unit_test(test_failing_allocator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
