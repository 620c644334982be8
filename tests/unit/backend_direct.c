// SPDX-License-Identifier: Apache-2.0
/* backend_direct.c: rows that a step packs for the next product (src/backend/cpu/build/direct.c) come to the same bits
 * as floats that are prepared later: in every number of rows, with adapters of the same form and of another, of many
 * rows and of one, and where rows that nobody wants are left out. The same model with its inner tensors as outputs
 * hands nothing on. Nor do gated rows where whole parts (64 outputs) would be less even shares: F is as many as two and
 * three threads share evenly. */
#include "base/cpu.h"
#include "kernels/kernels.h"
#include "waist.h"

enum { D = 128, F = 384, V = 40, HEADS = 2, DIM = 64, RANK = 4, ROWS = 300, N_CTX = 304 };

/* The weights of the model, in order of declaration. */
enum { TABLE, OUT, NORM, GATE, UP, DOWN, N_WEIGHTS };

static void model(stage *s, uint32_t dtype, int watched)
{
    stage_open(s, 77);
    weft_kv_group g = {WEFT_KV_FULL, 0, 1, HEADS, DIM, DIM, 16, 0};
    weft_attr_kv kv = {weft__builder_kv_group(s->b, &g), 0};
    weft_attr_attention a = {
        .kv = kv, .n_heads = HEADS, .n_kv_heads = HEADS, .head_dim_k = DIM, .head_dim_v = DIM, .scale = 0.1f};
    weft_weight_id table = stage_weight(s, WEFT_F32, D, V, 0, "token_embd"),
                   out = stage_weight(s, dtype, D, D, 0, "out"), norm = stage_vector(s, D, "norm"),
                   gate = stage_weight(s, dtype, D, F, 0, "gate"), up = stage_weight(s, dtype, D, F, 0, "up"),
                   down = stage_weight(s, dtype, F, D, 0, "down");
    weft_tensor_id x = weft__op_embed(s->b, table, 3);
    weft_tensor_id y = weft__op_attention(s->b, 0, x, weft__op_kv_write(s->b, 0, x, x, kv), &a);
    x = weft__op_add(s->b, 0, x, weft__op_linear(s->b, 0, y, out, WEFT_NONE));
    weft_tensor_id h = weft__op_norm(s->b, 0, x, norm, 1e-5f, 0);
    h = weft__op_glu(s->b, 0, weft__op_linear(s->b, 0, h, gate, WEFT_NONE), weft__op_linear(s->b, 0, h, up, WEFT_NONE),
                     WEFT_ACT_SILU);
    x = weft__op_add(s->b, 0, x, weft__op_linear(s->b, 0, h, down, WEFT_NONE));
    weft__builder_output(s->b, weft__op_pick_rows(s->b, x));
    if (watched) {
        weft__builder_output(s->b, y);
        weft__builder_output(s->b, h);
    }
    stage_finish(s);
    assert_int_equal(s->g->n_weights, N_WEIGHTS);
}

/* Two plans of one model: one hands on, the other is watched. */
typedef struct pair {
    stage s[2];
    store t[2];
    float *out[2], *y, *h;
    float a[RANK * F], b[F * RANK];
} pair;

static void pair_open(pair *p, uint32_t dtype, uint32_t kv_type, const char *options, int n_handed)
{
    for (int w = 0; w < 2; w++) {
        model(&p->s[w], dtype, w);
        store_open(&p->t[w], p->s[w].g, "cpu", options, 1, kv_type, N_CTX, ROWS);
        char *text = weft__plan_describe(p->t[w].plan), wanted[40];
        snprintf(wanted, sizeof wanted, ", %d inputs handed on prepared", w ? 0 : n_handed);
        if (!strstr(text, wanted)) fail_msg("not%s: %s", wanted, text);
        weft__free(text);
        p->out[w] = weft__alloc_array(ROWS * D, sizeof(float));
    }
    p->y = weft__alloc_array(ROWS * HEADS * DIM, sizeof(float));
    p->h = weft__alloc_array(ROWS * F, sizeof(float));
}

static void pair_close(pair *p)
{
    for (int w = 0; w < 2; w++) {
        store_close(&p->t[w]);
        stage_close(&p->s[w]);
        weft__free(p->out[w]);
    }
    weft__free(p->y);
    weft__free(p->h);
}

/* An adapter of two weights, kept as dtype, for the first sequence of steps to come. */
static void pair_adapter(pair *p, uint32_t dtype)
{
    weft_lora lora[N_WEIGHTS] = {0};
    weft__rng rng;
    weft__rng_seed(&rng, 3);
    for (int i = 0; i < RANK * F; i++) p->a[i] = (float)weft__rng_normal(&rng);
    for (int i = 0; i < F * RANK; i++) p->b[i] = (float)(0.1 * weft__rng_normal(&rng));
    lora[OUT] = lora[DOWN] = (weft_lora){.a = p->a, .b = p->b, .rank = RANK, .dtype = WEFT_F32, .scale = 1};
    for (int w = 0; w < 2; w++) {
        store_adapter(&p->t[w], lora, dtype);
        p->t[w].adapter_of[0] = p->t[w].n_adapters - 1;
    }
}

/* Rows of two sequences from position 0 on; n_wanted of them, the last, are wanted. */
static void rows_of(store *t, int32_t n, int32_t n_wanted)
{
    const int32_t first = n - n / 3;
    for (int32_t i = 0; i < n; i++) {
        t->seq[i] = i >= first;
        t->pos[i] = i < first ? i : i - first;
        t->token[i] = token_at(t->seq[i], t->pos[i], V);
        t->want[i] = i >= n - n_wanted ? WEFT_WANT_LOGITS : 0;
        t->adapter[i] = t->n_adapters && t->seq[i] == 0 ? t->adapter_of[0] : -1;
    }
}

static void run(pair *p, int w, int32_t n, int32_t n_wanted)
{
    float *outputs[] = {p->out[w], p->y, p->h};
    rows_of(&p->t[w], n, n_wanted);
    store_run(&p->t[w], n, n_wanted, outputs);
}

static void compare(pair *p)
{
    static const int32_t rows[] = {1, 2, 7, 8, 9, 16, 37, ROWS, 8};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int some = 0; some < 2; some++) {
            const int32_t n = rows[i], n_wanted = some ? (n + 1) / 2 : n;
            for (int w = 0; w < 2; w++) run(p, w, n, n_wanted);
            assert_true(isfinite(p->out[1][0]) && p->out[1][0] != 0);
            if (memcmp(p->out[0], p->out[1], (size_t)(n_wanted * D) * sizeof(float)))
                fail_msg("%d rows, %d of them wanted, have other bits than those that are watched", n, n_wanted);
        }
    }
}

/* The first and the last row, which is in another chunk than the first, have copies of the adapter for themselves:
 * multiplied where they lie, they have the bits of rows that share it. */
static void alone(pair *p)
{
    for (int i = 0; i < 3; i++) pair_adapter(p, WEFT_ADAPTER_AUTO);
    for (int w = 0; w < 2; w++) {
        store *t = &p->t[w];
        float *outputs[] = {p->out[w], p->y, p->h};
        rows_of(t, ROWS, ROWS);
        for (int32_t i = 0; i < ROWS; i++) t->adapter[i] = 0;
        if (w == 0) t->adapter[0] = 1, t->adapter[ROWS - 1] = 2;
        store_run(t, ROWS, ROWS, outputs);
    }
    if (memcmp(p->out[0], p->out[1], (size_t)ROWS * D * sizeof(float)))
        fail_msg("rows with adapters of their own have other bits");
}

static void compare_types(int threads, const char *more, int n_handed)
{
    static const uint32_t types[] = {WEFT_Q4_0, WEFT_Q8_0, WEFT_BF16, WEFT_F16, WEFT_F32};
    for (size_t i = 0; i < sizeof types / sizeof *types;
         i += CLAIMS_REPEATED(1, CLAIMS_SWEPT(4, 2), 2)) { /* some of each form */
        char options[48];
        pair p = {0};
        snprintf(options, sizeof options, "threads=%d%s", threads, more);
        pair_open(&p, types[i], WEFT_F16, options, n_handed);
        compare(&p);
        pair_adapter(&p, WEFT_ADAPTER_AUTO);
        compare(&p);
        pair_adapter(&p, WEFT_BF16);
        compare(&p);
        pair_close(&p);
        p = (pair){0};
        pair_open(&p, types[i], WEFT_F16, options, n_handed);
        alone(&p);
        pair_close(&p);
    }
}

static void test_same_bits(void **state)
{
    (void)state;
    for (int threads = CLAIMS_REPEATED(1, 1, 3); threads <= 3; threads++) compare_types(threads, "", 2);
}

/* The tiers that this build has kernels of: others are what the next lower one is. */
static uint32_t with_kernels(void)
{
    uint32_t tiers = 0;
    int n;
    const weft__kernel_entry *entries = weft__kernel_list(&n);
    for (int i = 0; i < n; i++) tiers |= 1u << entries[i].tier;
    return tiers;
}

/* Whose tiles and forms are others; what is left of this processor by several names, once. */
static void test_same_bits_of_lower_tiers(void **state)
{
    static const char *const tiers[] = {"ref", "avx2", "avx512", "avx512vnni"};
    enum {
        FIRST = CLAIMS_REPEATED(0, 0, 1),
        END = CLAIMS_REPEATED(4, 4, 2) /* threads share the work of all alike: one of them */
    };
    const uint32_t own = weft__tier_mask() & with_kernels();
    uint32_t found, before = 0;
    (void)state;
    for (int i = FIRST; i < END; i++, before = found) {
        char option[32];
        snprintf(option, sizeof option, ",cpu=%s", tiers[i]);
        assert_int_equal(weft__tier_mask_for(tiers[i], &found, NULL), WEFT_OK);
        found &= with_kernels();
        if (found != before && found != own) compare_types(2, option, 2);
    }
}

static void test_uneven_shares(void **state)
{
    (void)state;
    compare_types(4, "", 1);
}

/* What attention makes of rotated values is turned back before it is handed on. */
static void test_same_bits_of_coded_pages(void **state)
{
    static const uint32_t types[] = {WEFT_KV_Q8, WEFT_KV_TYPE(WEFT_KV_Q8, WEFT_KV_Q4, 0, 0)};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        pair p = {0};
        pair_open(&p, WEFT_Q4_0, types[i], "threads=2", 2);
        compare(&p);
        pair_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits), cmocka_unit_test(test_same_bits_of_lower_tiers),
        cmocka_unit_test(test_uneven_shares), cmocka_unit_test(test_same_bits_of_coded_pages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
