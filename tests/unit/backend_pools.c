// SPDX-License-Identifier: Apache-2.0
/* backend_pools.c: a step whose sequences have keys and values of several types, each in a pool of its own, brings each
 * row the bits of a step of its type alone, and reads the weights once. WEFT_TEST_PROVIDER names a plugin that is tried
 * beside the CPU; one that takes one type alone is given no other step. */
#include <stddef.h>

#include "waist.h"

#include "claims.h"

enum { D = 128, V = 40, HEADS = 4, KV_HEADS = 2, DIM = 32, WINDOW = 24, N_CTX = 1100, ROWS = 3 * 64, GROUPS = 2 };
enum { OUT = STAGE_SEQS * N_CTX * V };

static const uint32_t types[STAGE_SEQS] = {WEFT_KV_Q8, WEFT_F16, WEFT_KV_TYPE(WEFT_KV_Q8, WEFT_KV_Q4, 1, 0)};
static const int32_t lengths[STAGE_SEQS] = {1060, 70, 33}; /* the first is of two splits */

static weft_tensor_id layer(stage *s, weft_tensor_id x, weft_attr_kv kv, int window)
{
    weft_attr_attention a = {.kv = kv,
                             .n_heads = HEADS,
                             .n_kv_heads = KV_HEADS,
                             .head_dim_k = DIM,
                             .head_dim_v = DIM,
                             .scale = 0.2f,
                             .window = window};
    weft_attr_rope rope = {
        .n_heads = HEADS, .head_dim = DIM, .n_rot = DIM, .base = 10000, .freq_scale = 1, .attn_factor = 1};
    weft_tensor_id h = weft__op_norm(s->b, 0, x, stage_vector(s, D, "norm"), 1e-5f, 0);
    weft_tensor_id q = weft__op_linear(s->b, 0, h, stage_weight(s, WEFT_Q4_0, D, HEADS * DIM, 0, "q"), WEFT_NONE);
    weft_tensor_id k = weft__op_linear(s->b, 0, h, stage_weight(s, WEFT_Q4_0, D, KV_HEADS * DIM, 0, "k"), WEFT_NONE);
    weft_tensor_id v = weft__op_linear(s->b, 0, h, stage_weight(s, WEFT_Q8_0, D, KV_HEADS * DIM, 0, "v"), WEFT_NONE);
    q = weft__op_rope(s->b, 0, q, &rope, WEFT_NONE);
    rope.n_heads = KV_HEADS;
    k = weft__op_rope(s->b, 0, k, &rope, WEFT_NONE);
    weft_tensor_id y = weft__op_attention(s->b, 0, q, weft__op_kv_write(s->b, 0, k, v, kv), &a);
    return weft__op_add(s->b, 0, x, weft__op_linear(s->b, 0, y, stage_weight(s, WEFT_Q4_0, D, D, 0, "o"), WEFT_NONE));
}

/* Two layers that see everything, of which types may have one in F16, and one with a window. */
static void model(stage *s)
{
    stage_open(s, 324);
    weft_kv_group full = {WEFT_KV_FULL, 0, 2, KV_HEADS, DIM, DIM, 16, 0}, some = full;
    some.kind = WEFT_KV_WINDOW;
    some.window = WINDOW;
    some.n_layers = 1;
    const int32_t g[GROUPS] = {weft__builder_kv_group(s->b, &full), weft__builder_kv_group(s->b, &some)};
    weft_tensor_id x = weft__op_embed(s->b, stage_weight(s, WEFT_F32, D, V, 0, "token_embd"), 3);
    x = layer(s, x, (weft_attr_kv){g[0], 0}, 0);
    x = layer(s, x, (weft_attr_kv){g[1], 0}, WINDOW);
    x = layer(s, x, (weft_attr_kv){g[0], 1}, 0);
    x = weft__op_norm(s->b, -1, weft__op_pick_rows(s->b, x), stage_vector(s, D, "output_norm"), 1e-5f, 0);
    weft__builder_output(s->b, weft__op_linear(s->b, -1, x, stage_weight(s, WEFT_Q8_0, D, V, 0, "head"), WEFT_NONE));
    stage_finish(s);
}

/* Sequence `only`, or all of them (-1), which then end with the same step; the last rows come one by one. */
static void run(store *t, int only, float *out)
{
    int32_t left[STAGE_SEQS], most = 0;
    for (int s = 0; s < STAGE_SEQS; s++) {
        left[s] = only < 0 || s == only ? lengths[s] : 0;
        if (left[s] > most) most = left[s];
    }
    while (most > 0) {
        span spans[STAGE_SEQS];
        int n = 0;
        const int32_t then = most <= 8 ? most - 1 : most > 48 ? most - 40 : 8; /* of each at most */
        for (int s = 0; s < STAGE_SEQS; s++) {
            if (left[s] <= then) continue;
            spans[n++] = (span){s, lengths[s] - left[s], left[s] - then};
            left[s] = then;
        }
        store_step(t, spans, n, V, N_CTX, out);
        most = then;
    }
}

/* Stores of each type, whose pages are pools of steps of the first one. */
typedef struct scene {
    stage s;
    store t[STAGE_SEQS];
    int32_t pool[STAGE_SEQS];
    weft_kv_binding pools[STAGE_SEQS * GROUPS];
} scene;

static void open_scene(scene *c, const char *options, int fused)
{
    const char *provider = getenv("WEFT_TEST_PROVIDER");
    model(&c->s);
    for (int p = 0; p < STAGE_SEQS; p++) {
        store_open(&c->t[p], c->s.g, provider ? provider : "cpu", options, fused, types[p], N_CTX, ROWS);
        c->pool[p] = p;
        memcpy(c->pools + (size_t)p * GROUPS, c->t[p].kv, GROUPS * sizeof *c->pools);
    }
}

static void close_scene(scene *c)
{
    for (int p = 0; p < STAGE_SEQS; p++) store_close(&c->t[p]);
    stage_close(&c->s);
}

/* Steps of the first store have all pools, and nothing is in them. */
static store *mix(scene *c)
{
    for (int i = 0; i < STAGE_SEQS * GROUPS; i++)
        memset(c->pools[i].data, 0x3c, (size_t)c->pools[i].n_pages * c->pools[i].page_bytes);
    c->t[0].pools = c->pools;
    c->t[0].pool = c->pool;
    c->t[0].n_pools = STAGE_SEQS;
    return &c->t[0];
}

static void compare(const float *alone, const float *mixed, const char *options, const char *what)
{
    for (int s = 0; s < STAGE_SEQS; s++)
        for (int32_t i = 0; i < lengths[s]; i++)
            if (memcmp(alone + (s * N_CTX + i) * V, mixed + (s * N_CTX + i) * V, V * sizeof *alone))
                fail_msg("%s, %s: sequence %d, position %d has other bits", options, what, s, i);
}

static void check_mixed(const char *options, int fused)
{
    scene c;
    float *alone = weft__alloc_zero(OUT, sizeof *alone), *mixed = weft__alloc_zero(OUT, sizeof *mixed);
    open_scene(&c, options, fused);
    for (int p = 0; p < STAGE_SEQS; p++) run(&c.t[p], p, alone);
    store *t = mix(&c);
    if (weft__plan_takes_pools(t->plan)) {
        run(t, -1, mixed);
        compare(alone, mixed, options, "all rows wanted");
        memcpy(mixed, alone, OUT * sizeof *mixed);
        for (int s = 0; s < STAGE_SEQS; s++)
            for (int32_t i = 0; i < lengths[s]; i++)
                if (wanted_at(s, i)) memset(mixed + (s * N_CTX + i) * V, 0, V * sizeof *mixed);
        mix(&c)->wants_some = 1;
        run(t, -1, mixed);
        compare(alone, mixed, options, "some rows wanted");
    }
    close_scene(&c);
    weft__free(alone);
    weft__free(mixed);
}

static void rows_have_the_bits_of_their_type_alone(void **state)
{
    (void)state;
    check_mixed("threads=3", 1);
    if (!CLAIMS_REPEATED(1, 0, 0)) return;
    check_mixed("threads=1", 0);
    check_mixed("threads=2,cpu=ref", 1);
}

/* Bytes of the ops of one kind in the last recorded step, and how many there are. */
static double op_bytes(const weft__profile *f, uint32_t op, int *n)
{
    const weft__profile_step *s = &f->steps[f->n_steps - 1];
    double bytes = 0;
    *n = 0;
    for (int32_t i = s->first; i < s->first + s->n; i++) {
        if (f->ops[i].node == WEFT_NONE || weft__plan_graph(f->plan)->nodes[f->ops[i].node].op != op) continue;
        bytes += f->ops[i].bytes;
        ++*n;
    }
    return bytes;
}

/* As many products as in a step of one type, of as many bytes; and attention reads what each type has. */
static void products_are_computed_once(void **state)
{
    scene c;
    float *out = weft__alloc_zero(OUT, sizeof *out);
    double seen = 0, products = 0;
    int n = 0, n_products = 0;
    (void)state;
    open_scene(&c, "threads=1", 1);
    for (int p = 0; p < STAGE_SEQS; p++) {
        const span all[] = {{0, 0, 20}, {1, 0, 20}, {2, 0, 20}};
        assert_ok(weft__profile_new(c.t[p].plan, &c.t[p].profile, err));
        store_step(&c.t[p], &all[p], 1, V, N_CTX, out);
        seen += op_bytes(c.t[p].profile, WEFT_OP_ATTENTION, &n);
        store_step(&c.t[p], all, STAGE_SEQS, V, N_CTX, out);
        products = op_bytes(c.t[p].profile, WEFT_OP_LINEAR, &n_products);
    }
    store *t = mix(&c);
    store_step(t, (span[]){{0, 0, 20}, {1, 0, 20}, {2, 0, 20}}, STAGE_SEQS, V, N_CTX, out);
    assert_true(products > 0 && op_bytes(t->profile, WEFT_OP_LINEAR, &n) == products);
    assert_int_equal(n, n_products);
    assert_true(op_bytes(t->profile, WEFT_OP_ATTENTION, &n) == seen);
    assert_int_equal(n, 3);
    close_scene(&c);
    weft__free(out);
}

/* ---- what is refused ---- */

static weft_status (*real_run)(weft_run *run, const weft_step *step, weft_error *err);
static int n_missing; /* groups that are not bound; -1: it is a step of ABI 2.2 */

static weft_status other_run(weft_run *r, const weft_step *step, weft_error *err)
{
    static const int32_t no_pools[STAGE_SEQS] = {99, 99, 99};
    weft_rows rows = *step->rows;
    weft_bindings bindings = *step->bindings;
    weft_step other = *step;
    other.rows = &rows;
    other.bindings = &bindings;
    if (n_missing < 0) {
        rows.size = offsetof(weft_rows, pool);
        rows.pool = no_pools;
    } else {
        bindings.n_kv -= n_missing;
    }
    return real_run(r, &other, err);
}

static weft_status one_row(store *t, int32_t seq, float *out, weft_error *err)
{
    t->token[0] = t->pos[0] = 0;
    t->seq[0] = seq;
    t->want[0] = WEFT_WANT_LOGITS;
    weft_rows rows = {.size = sizeof rows,
                      .n_rows = 1,
                      .n_wanted = 1,
                      .n_seqs = STAGE_SEQS,
                      .token = t->token,
                      .pos = t->pos,
                      .seq = t->seq,
                      .want = t->want,
                      .seqs = t->views,
                      .pool = t->pool,
                      .n_pools = t->n_pools};
    return weft__plan_run(t->state, &rows, t->pools ? t->pools : t->kv, &out, err);
}

static void what_names_no_pool_is_refused(void **state)
{
    scene c;
    float y[V], before[V];
    (void)state;
    open_scene(&c, "threads=1", 1);
    assert_ok(one_row(&c.t[0], 0, before, err));
    store *t = mix(&c);
    c.pool[2] = STAGE_SEQS;
    assert_refused(WEFT_ARGUMENT, "sequence 2 has pages in pool 3; the step has 3", one_row(t, 0, y, err));
    c.pool[2] = -1;
    assert_refused(WEFT_ARGUMENT, "sequence 2 has pages in pool -1", one_row(t, 0, y, err));
    c.pool[2] = 2;
    t->n_pools = 0;
    assert_refused(WEFT_ARGUMENT, "0 pools", one_row(t, 0, y, err));
    t->n_pools = STAGE_SEQS;
    real_run = t->providers[0]->table.run;
    t->providers[0]->table.run = other_run;
    n_missing = 1;
    assert_refused(WEFT_ARGUMENT, "5 KV groups are bound; the graph has 2, the step 3 pools", one_row(t, 2, y, err));
    n_missing = -1; /* the first pool is the only one that is known */
    assert_ok(one_row(t, 0, y, err));
    assert_memory_equal(y, before, sizeof y);
    n_missing = 0;
    c.pools[2 * GROUPS + 1].dtype = WEFT_KV_F8 + 1;
    assert_refused(WEFT_ARGUMENT, "KV group 1 is of type 131", one_row(t, 0, y, err));
    close_scene(&c);
}

static void a_provider_of_one_type_gets_no_other_step(void **state)
{
    scene c;
    float y[V];
    (void)state;
    open_scene(&c, "threads=1", 1);
    store *t = mix(&c);
    t->providers[0]->table.features &= ~(uint32_t)WEFT_FEATURE_POOLS;
    assert_false(weft__plan_takes_pools(t->plan));
    assert_refused(WEFT_UNSUPPORTED, "provider cpu takes keys and values of one type in a step", one_row(t, 0, y, err));
    t->pools = NULL;
    t->pool = NULL;
    assert_ok(one_row(t, 0, y, err));
    close_scene(&c);
}

int main(void)
{
    const struct CMUnitTest of_any[] = {cmocka_unit_test(rows_have_the_bits_of_their_type_alone)};
    const struct CMUnitTest of_cpu[] = {
        cmocka_unit_test(products_are_computed_once),
        cmocka_unit_test(what_names_no_pool_is_refused),
        cmocka_unit_test(a_provider_of_one_type_gets_no_other_step),
    };
    const int failed = cmocka_run_group_tests(of_any, NULL, NULL);
    return getenv("WEFT_TEST_PROVIDER") ? failed : failed + cmocka_run_group_tests(of_cpu, NULL, NULL);
}
