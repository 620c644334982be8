// SPDX-License-Identifier: Apache-2.0
/* backend_adapter.c: claims about adapters at the waist: what is refused and by which words, one weight that is looked
 * up and multiplied by, plans made of packed weights, and a failing allocator. That they compute the right thing is
 * backend_conformance's. */
#include "waist.h"

#include "kernels/kernels.h"

enum { D = 64, V = 40, F = 96, EXPERTS = 3, RANK = 5, N_CTX = 16, ROWS = 12 };

/* The weights of the model, in order of declaration. */
enum { TABLE, NORM, UP, BIAS, ROUTER, GATES, UPS, DOWNS, N_WEIGHTS };

static void model(stage *s)
{
    stage_open(s, 5);
    weft_weight_id table = stage_weight(s, WEFT_Q8_0, D, V, 0, "token_embd"), norm = stage_vector(s, D, "norm");
    weft_weight_id up = stage_weight(s, WEFT_Q4_0, D, D, 0, "up"), bias = stage_vector(s, D, "bias");
    weft_weight_id router = stage_weight(s, WEFT_F32, D, EXPERTS, 0, "router"),
                   gates = stage_weight(s, WEFT_Q4_0, D, F, EXPERTS, "gates");
    weft_weight_id ups = stage_weight(s, WEFT_Q8_0, D, F, EXPERTS, "ups"),
                   downs = stage_weight(s, WEFT_Q4_0, F, D, EXPERTS, "downs");
    weft_tensor_id x = weft__op_embed(s->b, table, 2);
    weft_tensor_id h = weft__op_norm(s->b, 0, x, norm, 1e-5f, 0);
    x = weft__op_add(s->b, 0, x, weft__op_linear(s->b, 0, h, up, bias));
    weft_attr_moe a = {.n_experts = EXPERTS, .n_used = 2, .normalize = 1, .scale = 1, .activation = WEFT_ACT_SILU};
    weft_tensor_id route = weft__op_moe_route(s->b, 0, weft__op_linear(s->b, 0, x, router, WEFT_NONE), &a);
    x = weft__op_add(s->b, 0, x, weft__op_moe_ffn(s->b, 0, x, route, gates, ups, downs, &a));
    weft__builder_output(s->b, weft__op_linear(s->b, -1, weft__op_pick_rows(s->b, x), table, WEFT_NONE));
    stage_finish(s);
    assert_int_equal(s->g->n_weights, N_WEIGHTS);
}

/* Values for every entry that an adapter may have; entries in use are set by the tests. */
typedef struct values {
    float a[EXPERTS * RANK * F], b[EXPERTS * F * RANK], gain[EXPERTS * F];
    weft_lora lora[N_WEIGHTS];
} values;

static values *values_new(uint64_t seed)
{
    values *v = weft__alloc_zero(1, sizeof *v);
    weft__rng rng;
    weft__rng_seed(&rng, seed);
    for (int i = 0; i < EXPERTS * RANK * F; i++) {
        v->a[i] = (float)(0.1 * weft__rng_normal(&rng));
        v->b[i] = (float)(0.02 * weft__rng_normal(&rng));
    }
    for (int i = 0; i < EXPERTS * F; i++) v->gain[i] = (float)(1 + 0.1 * weft__rng_normal(&rng));
    return v;
}

static weft_lora entry(const values *v)
{
    return (weft_lora){.a = v->a, .b = v->b, .rank = RANK, .dtype = WEFT_F32, .scale = 1};
}

static values *values_all(uint64_t seed)
{
    static const int which[] = {TABLE, UP, GATES, UPS, DOWNS};
    values *v = values_new(seed);
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) v->lora[which[i]] = entry(v);
    v->lora[UP].gain = v->lora[GATES].gain = v->lora[DOWNS].gain = v->gain;
    return v;
}

/* Sequences of 7 and 5 rows in one step. */
static const span spans[] = {{0, 0, 7}, {1, 0, 5}};

static void run_both(store *t, float *out)
{
    memset(out, 0, STAGE_SEQS * N_CTX * V * sizeof *out);
    store_step(t, spans, 2, V, N_CTX, out);
}

/* ---- refusals ---- */

static weft_adapter_spec spec_of(const weft_lora *lora)
{
    return (weft_adapter_spec){
        .size = sizeof(weft_adapter_spec), .n_weights = N_WEIGHTS, .lora = lora, .dtype = WEFT_ADAPTER_AUTO};
}

static void test_refusals(void **state)
{
    (void)state;
    stage s;
    store t;
    weft_adapter *a;
    values *v = values_new(1);
    model(&s);
    store_open(&t, s.g, "cpu", "threads=2", 1, WEFT_F32, N_CTX, ROWS);
    weft_adapter_spec spec = spec_of(v->lora);
    v->lora[UP] = entry(v);
    v->lora[UP].rank = WEFT_ADAPTER_RANK_MAX + 1;
    assert_refused(WEFT_ARGUMENT, "rank 1025 for up.weight; 1 to 1024", weft__plan_adapter_new(t.plan, &spec, &a, err));
    v->lora[UP].rank = -1;
    assert_refused(WEFT_ARGUMENT, "rank -1 for up.weight", weft__plan_adapter_new(t.plan, &spec, &a, err));
    v->lora[UP] = entry(v);
    v->lora[UP].scale = INFINITY;
    assert_refused(WEFT_ARGUMENT, "up.weight whose A or B", weft__plan_adapter_new(t.plan, &spec, &a, err));
    v->lora[UP] = entry(v);
    v->lora[UP].b = NULL;
    assert_refused(WEFT_ARGUMENT, "up.weight whose A or B", weft__plan_adapter_new(t.plan, &spec, &a, err));
    v->lora[UP] = (weft_lora){0};
    v->lora[NORM] = entry(v);
    assert_refused(WEFT_ARGUMENT, "norm.weight, which is neither multiplied by",
                   weft__plan_adapter_new(t.plan, &spec, &a, err));
    v->lora[NORM] = (weft_lora){0};
    v->lora[TABLE].gain = v->gain; /* of rows for the one, of columns for the other */
    assert_refused(WEFT_ARGUMENT, "magnitudes for token_embd.weight, which is an embedding and multiplied by, too",
                   weft__plan_adapter_new(t.plan, &spec, &a, err));
    v->lora[TABLE].gain = NULL;
    v->lora[DOWNS] = entry(v);
    spec.dtype = WEFT_Q6_K;
    assert_refused(WEFT_ARGUMENT, "F32, BF16, Q8_0 or Q4_0, not as Q6_K",
                   weft__plan_adapter_new(t.plan, &spec, &a, err));
    spec = spec_of(v->lora);
    spec.n_weights--;
    assert_refused(WEFT_ARGUMENT, "an adapter for 7 weights; the graph has 8",
                   weft__plan_adapter_new(t.plan, &spec, &a, err));
    spec = spec_of(v->lora);
    v->b[3] = NAN;
    assert_refused(WEFT_ARGUMENT, "downs.weight holds values that are no finite",
                   weft__plan_adapter_new(t.plan, &spec, &a, err));
    v->b[3] = 0;
    v->a[EXPERTS * RANK * F - 1] = INFINITY;
    assert_refused(WEFT_ARGUMENT, "downs.weight holds values that are no finite",
                   weft__plan_adapter_new(t.plan, &spec, &a, err));
    store_close(&t);
    weft__free(v);
    stage_close(&s);
}

/* Finite values whose products, or whose packed type, have no finite number for them. */
static void test_products_are_finite(void **state)
{
    (void)state;
    static const uint32_t types[] = {WEFT_Q4_0, WEFT_Q8_0, WEFT_BF16, WEFT_F32};
    static const int which[] = {TABLE, UP, GATES};
    stage s;
    store t;
    weft_adapter *a;
    values *v = values_new(8);
    model(&s);
    store_open(&t, s.g, "cpu", "threads=1", 1, WEFT_F32, N_CTX, ROWS);
    for (int i = 0; i < 12; i++) {
        weft_adapter_spec spec = spec_of(v->lora);
        weft_lora *l = &v->lora[which[i / 4]];
        char says[2][2 * WEFT_NAME_MAX];
        const float b = v->b[2], a_was = v->a[3];
        spec.dtype = types[i % 4];
        snprintf(says[0], sizeof says[0], "%s, times its scale of 1e+30", s.g->weights[which[i / 4]].name);
        snprintf(says[1], sizeof says[1], "A of the adapter for %s holds", s.g->weights[which[i / 4]].name);
        *l = entry(v);
        v->b[2] = 1e30f;
        l->scale = 1e30f;
        assert_refused(WEFT_ARGUMENT, says[0], weft__plan_adapter_new(t.plan, &spec, &a, err));
        assert_null(a);
        l->scale = 1e-30f;
        assert_ok(weft__plan_adapter_new(t.plan, &spec, &a, err));
        weft__plan_adapter_free(&a);
        v->b[2] = b;
        l->scale = 1;
        v->a[3] = 3.4e38f; /* rounds to infinity in 16 bits; blocks have no scale for it */
        if (spec.dtype != WEFT_F32)
            assert_refused(WEFT_ARGUMENT, says[1], weft__plan_adapter_new(t.plan, &spec, &a, err));
        v->a[3] = a_was;
        *l = (weft_lora){0};
    }
    store_close(&t);
    weft__free(v);
    stage_close(&s);
}

/* A step whose numbers do not fit its adapters. */
static void test_bad_steps(void **state)
{
    (void)state;
    stage s;
    store t, other;
    float out[STAGE_SEQS * N_CTX * V];
    values *v = values_all(2);
    model(&s);
    store_open(&t, s.g, "cpu", "threads=1", 1, WEFT_F32, N_CTX, ROWS);
    store_open(&other, s.g, "cpu", "threads=1", 1, WEFT_F32, N_CTX, ROWS);
    store_adapter(&t, v->lora, WEFT_ADAPTER_AUTO);
    const int32_t token[2] = {1, 2}, pos[2] = {0, 1}, seq[2] = {0, 0};
    int32_t adapter[2] = {0, 1};
    const uint8_t want[2] = {WEFT_WANT_LOGITS, WEFT_WANT_LOGITS};
    float *y = out;
    weft_rows rows = {.size = sizeof rows,
                      .n_rows = 2,
                      .n_wanted = 2,
                      .n_seqs = 1,
                      .n_adapters = 1,
                      .token = token,
                      .pos = pos,
                      .seq = seq,
                      .adapter = adapter,
                      .want = want,
                      .seqs = t.views,
                      .adapters = t.adapters};
    assert_refused(WEFT_ARGUMENT, "row 1 asks for adapter 1; the step has 1",
                   weft__plan_run(t.state, &rows, t.kv, &y, err));
    adapter[1] = -2;
    assert_refused(WEFT_ARGUMENT, "row 1 asks for adapter -2", weft__plan_run(t.state, &rows, t.kv, &y, err));
    adapter[1] = -1;
    assert_ok(weft__plan_run(t.state, &rows, t.kv, &y, err));
    assert_refused(WEFT_ARGUMENT, "adapter 0 of the step was made for another plan",
                   weft__plan_run(other.state, &rows, other.kv, &y, err));
    rows.n_adapters = ROWS + 1;
    assert_refused(WEFT_ARGUMENT, "13 adapters; the plan is for 12 rows",
                   weft__plan_run(t.state, &rows, t.kv, &y, err));
    weft_adapter *none = NULL; /* it changes nothing */
    rows.n_adapters = 1;
    rows.adapters = &none;
    float with[2 * V];
    assert_ok(weft__plan_run(t.state, &rows, t.kv, &y, err));
    memcpy(with, out, sizeof with);
    rows.adapter = NULL;
    assert_ok(weft__plan_run(t.state, &rows, t.kv, &y, err));
    assert_memory_equal(with, out, sizeof with);
    store_close(&other);
    store_close(&t);
    weft__free(v);
    stage_close(&s);
}

/* ---- a provider that runs none ---- */

static weft_backend_api no_adapters;

/* The CPU's table without the functions for adapters: its weights may not be changed, and it is never shown an
 * adapter. */
static void test_provider_without(void **state)
{
    (void)state;
    stage s;
    weft__provider *p;
    weft__plan *plan;
    weft_adapter *a;
    values *v = values_new(3);
    model(&s);
    assert_ok(weft__provider_open("cpu", "threads=1", &p, err));
    no_adapters = *p->api;
    no_adapters.name = "plain";
    no_adapters.adapter_new = NULL;
    weft__provider plain = {.api = &no_adapters, .backend = p->backend};
    weft__provider *list[] = {&plain};
    weft__plan_options o = {.max_rows = ROWS, .max_wanted = ROWS, .providers = list, .n_providers = 1};
    assert_ok(weft__plan_create(s.g, &o, &plan, err));
    weft_adapter_spec spec = spec_of(v->lora);
    v->lora[UP] = entry(v);
    assert_refused(WEFT_UNSUPPORTED, "provider plain runs no adapters", weft__plan_adapter_new(plan, &spec, &a, err));
    assert_null(a);
    v->lora[UP] = (weft_lora){0};
    assert_ok(weft__plan_adapter_new(plan, &spec, &a, err)); /* nothing to run */
    weft__plan_adapter_free(&a);
    weft__plan_destroy(&plan);
    weft__provider_close(&p);
    weft__free(v);
    stage_close(&s);
}

/* ---- numbers ---- */

/* A small A with a large scale is the same adapter: with 2^-40 of the one and 2^40 of the other not a bit differs. */
static void test_small_a(void **state)
{
    (void)state;
    static const uint32_t types[] = {WEFT_Q4_0, WEFT_Q8_0, WEFT_BF16, WEFT_F32};
    static float out[2][STAGE_SEQS * N_CTX * V];
    stage s;
    model(&s);
    for (int i = 0; i < 8; i++) {
        const int small = i % 2;
        store t;
        values *v = values_all(3);
        for (int j = 0; j < EXPERTS * RANK * F; j++) v->a[j] = ldexpf(v->a[j], small ? -40 : 0);
        for (int j = 0; j < N_WEIGHTS; j++) v->lora[j].scale = small ? 0x1p40f : 1;
        store_open(&t, s.g, "cpu", "threads=1", 1, WEFT_F32, N_CTX, ROWS);
        store_adapter(&t, v->lora, types[i / 2]);
        run_both(&t, out[small]);
        if (small) assert_memory_equal(out[0], out[1], sizeof out[0]);
        store_close(&t);
        weft__free(v);
    }
    stage_close(&s);
}

/* Which type an adapter gets follows from the kernels for adapters, whatever others there are: where those are
 * readable C alone it stays in F32, bit by bit. */
static void test_type_that_is_chosen(void **state)
{
    (void)state;
    static const char *const options[] = {"threads=1", "threads=1,cpu=ref"};
    static float out[2][STAGE_SEQS * N_CTX * V];
    stage s;
    model(&s);
    for (int i = 0; i < 4; i++) {
        const uint32_t tiers = i / 2 ? 1u << WEFT__TIER_REF : weft__tier_mask();
        const int is_plain = weft__expand_find(WEFT_Q8_0, tiers)->tier == WEFT__TIER_REF;
        store t;
        values *v = values_all(9);
        store_open(&t, s.g, "cpu", options[i / 2], 1, WEFT_F32, N_CTX, ROWS);
        store_adapter(&t, v->lora, i % 2 == 0 ? WEFT_ADAPTER_AUTO : is_plain ? WEFT_F32 : WEFT_Q8_0);
        run_both(&t, out[i % 2]);
        if (i % 2) assert_memory_equal(out[0], out[1], sizeof out[0]);
        store_close(&t);
        weft__free(v);
    }
    stage_close(&s);
}

/* ---- packed weights ---- */

/* A plan made of an image gives the bits of the plan that the image is from, adapters and all. */
static void test_image(void **state)
{
    (void)state;
    static float out[2][STAGE_SEQS * N_CTX * V], none[STAGE_SEQS * N_CTX * V];
    stage s;
    store t, taken;
    const char *provider;
    weft_image image = {.size = sizeof image};
    values *v = values_all(4);
    model(&s);
    store_open(&t, s.g, "cpu", "threads=2", 1, WEFT_F32, N_CTX, ROWS);
    run_both(&t, none);
    store_adapter(&t, v->lora, WEFT_ADAPTER_AUTO);
    t.adapter_of[1] = -1;
    run_both(&t, out[0]);
    assert_memory_not_equal(none, out[0], N_CTX * V * sizeof **out);
    assert_memory_equal(none + N_CTX * V, out[0] + N_CTX * V,
                        N_CTX * V * sizeof **out); /* the other sequence has none */
    assert_ok(weft__plan_image(t.plan, &image, &provider, err));
    store_open(&taken, s.g, "cpu", "threads=2", 1, WEFT_F32, N_CTX, ROWS);
    weft__plan_state_free(&taken.state);
    weft__plan_destroy(&taken.plan);
    weft__plan_options o = {
        .max_rows = ROWS, .max_wanted = ROWS, .providers = taken.providers, .n_providers = 1, .image = &image};
    assert_ok(weft__plan_create(s.g, &o, &taken.plan, err));
    assert_ok(weft__plan_state_new(taken.plan, &taken.state, err));
    store_adapter(&taken, v->lora, WEFT_ADAPTER_AUTO);
    taken.adapter_of[1] = -1;
    run_both(&taken, out[1]);
    assert_memory_equal(out[0], out[1], sizeof out[0]);
    store_close(&taken);
    store_close(&t);
    weft__free(v);
    stage_close(&s);
}

/* ---- memory ---- */

static void test_bytes(void **state)
{
    (void)state;
    stage s;
    store t;
    values *v = values_all(6);
    uint64_t before = 0;
    static const uint32_t types[] = {WEFT_Q4_0, WEFT_Q8_0, WEFT_BF16, WEFT_F32};
    model(&s);
    store_open(&t, s.g, "cpu", "threads=1", 1, WEFT_F32, N_CTX, ROWS);
    for (int i = 0; i < 4; i++) {
        weft_adapter_spec spec = spec_of(v->lora);
        weft_adapter *a;
        spec.dtype = types[i];
        assert_ok(weft__plan_adapter_new(t.plan, &spec, &a, err));
        assert_true(weft__plan_adapter_bytes(a) > before);
        before = weft__plan_adapter_bytes(a);
        weft__plan_adapter_free(&a);
        assert_null(a);
    }
    store_close(&t);
    weft__free(v);
    stage_close(&s);
}

typedef struct job {
    store *t;
    const weft_lora *lora;
} job;

static int make_one(void *arg)
{
    job *j = arg;
    weft_adapter *a;
    weft_adapter_spec spec = spec_of(j->lora);
    weft_error err;
    weft_status st = weft__plan_adapter_new(j->t->plan, &spec, &a, &err);
    if (st) assert_null(a);
    else weft__plan_adapter_free(&a);
    return st == WEFT_OK;
}

static void test_failing_allocator(void **state)
{
    (void)state;
    stage s;
    store t;
    values *v = values_all(7);
    model(&s);
    store_open(&t, s.g, "cpu", "threads=1", 1, WEFT_F32, N_CTX, ROWS);
    job j = {&t, v->lora};
    assert_true(fail_each(make_one, &j) >= 4);
    store_close(&t);
    weft__free(v);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_products_are_finite),
        cmocka_unit_test(test_bad_steps),
        cmocka_unit_test(test_provider_without),
        cmocka_unit_test(test_small_a),
        cmocka_unit_test(test_image),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_failing_allocator),
        cmocka_unit_test(test_type_that_is_chosen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
