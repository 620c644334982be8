// SPDX-License-Identifier: Apache-2.0
/* backend_image.c: claims about packed weights that leave a program: another program takes them and gives the same
 * bits, on every tier and for every format, without the weights' own bytes; what does not fit is refused by name. */
#include "waist.h"

enum { D = 256, V = 50, F = 256, EXPERTS = 3, ROWS = 5, N_CTX = 16 };

static const uint32_t types[] = {WEFT_F32,  WEFT_F16,  WEFT_BF16, WEFT_Q4_0,   WEFT_Q4_1,
                                 WEFT_Q5_0, WEFT_Q5_1, WEFT_Q8_0, WEFT_Q2_K,   WEFT_Q3_K,
                                 WEFT_Q4_K, WEFT_Q5_K, WEFT_Q6_K, WEFT_IQ4_NL, WEFT_IQ4_XS};
enum { N_TYPES = sizeof types / sizeof *types };

static weft_tensor_id experts(stage *s, weft_tensor_id x)
{
    weft_attr_moe a = {.n_experts = EXPERTS, .n_used = 2, .normalize = 1, .scale = 1, .activation = WEFT_ACT_SILU};
    weft_weight_id gate = stage_weight(s, WEFT_Q4_0, D, F, EXPERTS, "gates"),
                   up = stage_weight(s, WEFT_Q6_K, D, F, EXPERTS, "ups");
    weft_weight_id down = stage_weight(s, WEFT_Q8_0, F, D, EXPERTS, "downs");
    weft_tensor_id logits = weft__op_linear(s->b, 0, x, stage_weight(s, WEFT_F32, D, EXPERTS, 0, "router"), WEFT_NONE);
    return weft__op_moe_ffn(s->b, 0, x, weft__op_moe_route(s->b, 0, logits, &a), gate, up, down, &a);
}

/* A layer per format, experts, and a table that is looked up as well as multiplied by. */
static void model(stage *s)
{
    stage_open(s, 77);
    weft_weight_id table = stage_weight(s, WEFT_Q8_0, D, V, 0, "token_embd");
    weft_tensor_id x = weft__op_embed(s->b, table, 1);
    for (int i = 0; i < N_TYPES; i++) {
        char name[32];
        snprintf(name, sizeof name, "blk.%d.w", i);
        weft_tensor_id h = weft__op_norm(s->b, i, x, stage_vector(s, D, "norm"), 1e-5f, 0);
        h = weft__op_linear(s->b, i, h, stage_weight(s, types[i], D, D, 0, name),
                            i % 2 ? stage_vector(s, D, "bias") : WEFT_NONE);
        x = weft__op_add(s->b, i, x, h);
    }
    x = weft__op_add(s->b, 0, x, experts(s, weft__op_norm(s->b, 0, x, stage_vector(s, D, "norm"), 1e-5f, 0)));
    weft__builder_output(s->b, weft__op_linear(s->b, -1, weft__op_pick_rows(s->b, x), table, WEFT_NONE));
    stage_finish(s);
}

typedef struct job {
    stage s;
    weft__provider *p;
    weft__plan *plan;
    weft_image image; /* as a file would hold it: data, offset and layout are copies */
    uint64_t *offset;
    uint8_t *own;
    char layout[4096];
    void *data;
    weft_buffer nowhere;
    const weft_buffer *were[STAGE_BUFFERS];
} job;

static weft_status plan(job *j, const weft_image *image, int fused, weft_error *err)
{
    weft__plan_options o = {.max_rows = ROWS,
                            .max_wanted = ROWS,
                            .no_fusion = !fused,
                            .providers = &j->p,
                            .n_providers = 1,
                            .image = image};
    weft__plan_destroy(&j->plan);
    return weft__plan_create(j->s.g, &o, &j->plan, err);
}

static void run(job *j, float *out)
{
    static const int32_t token[ROWS] = {3, 9, 27, 31, 43}, pos[ROWS] = {0, 1, 2, 3, 4}, seq[ROWS];
    uint8_t want[ROWS];
    weft_seq_view view = {NULL, NULL, NULL};
    memset(want, WEFT_WANT_LOGITS | WEFT_WANT_OUTPUTS, sizeof want);
    weft_rows rows = {.size = sizeof rows,
                      .n_rows = ROWS,
                      .n_wanted = ROWS,
                      .n_seqs = 1,
                      .token = token,
                      .pos = pos,
                      .seq = seq,
                      .want = want,
                      .seqs = &view};
    weft__plan_state *state;
    assert_ok(weft__plan_state_new(j->plan, &state, err));
    assert_ok(weft__plan_run(state, &rows, NULL, &out, err));
    weft__plan_state_free(&state);
}

static void copy_image(job *j)
{
    const char *provider;
    assert_ok(weft__plan_image(j->plan, &j->image, &provider, err));
    assert_string_equal(provider, "cpu");
    assert_int_equal(j->image.n_weights, j->s.g->n_weights);
    size_t n = (size_t)j->image.n_weights;
    j->offset = weft__alloc_array(n, sizeof *j->offset);
    j->own = weft__alloc(n);
    j->data = weft__alloc_aligned(64, (size_t)j->image.n_bytes + 64);
    memcpy(j->offset, j->image.offset, n * sizeof *j->offset);
    memcpy(j->own, j->image.own, n);
    memcpy(j->data, j->image.data, (size_t)j->image.n_bytes);
    snprintf(j->layout, sizeof j->layout, "%s", j->image.layout);
    j->image.offset = j->offset;
    j->image.own = NULL;
    j->image.data = j->data;
    j->image.layout = j->layout;
}

/* Takes the bytes away from all weights that are only packed; returns how many. */
static int strip(job *j)
{
    int n = 0;
    j->nowhere = (weft_buffer){.size = sizeof j->nowhere, .domain = WEFT_DOMAIN_MAPPED, .n_bytes = INT64_MAX};
    for (int32_t i = 0; i < j->s.g->n_weights; i++) {
        weft_weight *w = (weft_weight *)&j->s.g->weights[i];
        j->were[i] = w->buffer;
        if (j->own[i]) continue;
        w->buffer = &j->nowhere;
        n++;
    }
    return n;
}

static void open_job(job *j, const char *options)
{
    memset(j, 0, sizeof *j);
    model(&j->s);
    assert_ok(weft__provider_open("cpu", options, &j->p, err));
    assert_ok(plan(j, NULL, 1, err));
}

static void close_job(job *j)
{
    weft__plan_destroy(&j->plan);
    weft__provider_close(&j->p);
    stage_close(&j->s);
    weft__free(j->data);
    weft__free(j->own);
    weft__free(j->offset);
}

static void same_bits_on(const char *tier)
{
    static float packed[ROWS][V], taken[ROWS][V];
    char options[64];
    job j;
    snprintf(options, sizeof options, "threads=2,cpu=%s", tier);
    open_job(&j, options);
    run(&j, packed[0]);
    copy_image(&j);
    int n = strip(&j);
    print_message("  %s: %d of %d weights are only packed\n", tier, n, j.image.n_weights);
    assert_true(!strcmp(tier, "ref") ? n == 0 : n >= N_TYPES);
    for (int fused = 0; fused < 2; fused++) {
        memset(taken, 0, sizeof taken);
        assert_ok(plan(&j, &j.image, fused, err));
        run(&j, taken[0]);
        assert_memory_equal(packed, taken, sizeof packed);
    }
    /* What was taken can be handed out again. */
    weft_image again;
    const char *provider;
    assert_ok(weft__plan_image(j.plan, &again, &provider, err));
    assert_string_equal(again.layout, j.layout);
    assert_memory_equal(again.offset, j.offset, (size_t)again.n_weights * sizeof *again.offset);
    assert_memory_equal(again.own, j.own, (size_t)again.n_weights);
    assert_ptr_equal(again.data, j.data);
    if (n > 0) assert_refused(WEFT_ARGUMENT, "has no bytes", plan(&j, NULL, 1, err));
    close_job(&j);
}

static void test_same_bits(void **state)
{
    (void)state;
    for (int t = 0; t < WEFT__TIER_COUNT; t++)
        if (weft__tier_mask() >> t & 1) same_bits_on(weft__tier_name((weft__tier)t));
}

/* How many different checksums a layout holds: words of 16 digits. */
static int distinct_sums(const char *layout)
{
    uint64_t seen[N_TYPES];
    int n = 0;
    for (const char *at = layout; (at = strchr(at, ' ')); at++) {
        char *end;
        uint64_t sum = strtoull(at + 1, &end, 16);
        int old = end != at + 17;
        for (int i = 0; i < n && !old; i++) old = seen[i] == sum;
        if (!old) seen[n++] = sum;
    }
    return n;
}

static void test_layouts(void **state)
{
    (void)state;
    static char seen[WEFT__TIER_COUNT][4096];
    job j;
    for (int t = 0; t < WEFT__TIER_COUNT; t++) {
        char options[64];
        if (!(weft__tier_mask() >> t & 1)) continue;
        snprintf(options, sizeof options, "threads=1,cpu=%s", weft__tier_name((weft__tier)t));
        open_job(&j, options);
        copy_image(&j);
        memcpy(seen[t], j.layout, sizeof seen[t]);
        for (int i = 0; i < N_TYPES; i++) assert_non_null(strstr(seen[t], weft_dtype_describe(types[i]).name));
        if (t > WEFT__TIER_NEON)
            assert_true(distinct_sums(seen[t]) >= N_TYPES - 2); /* formats of four plain bits may lie alike */
        assert_ok(plan(&j, &j.image, 1, err));
        for (int o = 0; o < t; o++) { /* those of other tiers */
            if (!seen[o][0]) continue;
            /* AMX has the panels of VPDPBUSD, and there is no other BF16 yet. */
            if (t == WEFT__TIER_AMX && o == WEFT__TIER_AVX512BF16) {
                assert_string_equal(seen[o], seen[t]);
                continue;
            }
            assert_string_not_equal(seen[o], seen[t]);
            j.image.layout = seen[o];
            assert_refused(WEFT_UNSUPPORTED, "another tier or version", plan(&j, &j.image, 1, err));
        }
        close_job(&j);
    }
}

/* The image spoiled by `change` is refused; j.image is whole again afterwards. */
#define SPOILED(status, text, change)                                                                                  \
    do {                                                                                                               \
        weft_image whole = j.image;                                                                                    \
        change;                                                                                                        \
        assert_refused(status, text, plan(&j, &j.image, 1, err));                                                      \
        j.image = whole;                                                                                               \
    } while (0)

static void test_refused(void **state)
{
    (void)state;
    job j;
    open_job(&j, "threads=1");
    copy_image(&j);
    int32_t at = -1;
    for (int32_t i = 0; i < j.image.n_weights && at < 0; i++)
        if (j.offset[i] != UINT64_MAX) at = i;
    char digit = j.layout[strlen(j.layout) - 1];
    SPOILED(WEFT_ARGUMENT, "the graph has", j.image.n_weights--);
    SPOILED(WEFT_ARGUMENT, "packed weights", j.image.size = 8);
    SPOILED(WEFT_ARGUMENT, "packed weights", j.image.offset = NULL);
    SPOILED(WEFT_ARGUMENT, "aligned", j.image.data = (char *)j.data + 32);
    if (at >= 0) { /* readable C packs nothing */
        uint64_t was = j.offset[at];
        SPOILED(WEFT_FORMAT, "do not hold", j.image.n_bytes -= 64);
        SPOILED(WEFT_FORMAT, "do not hold", j.image.n_bytes = 0);
        SPOILED(WEFT_FORMAT, "do not hold", j.offset[at] = UINT64_MAX);
        SPOILED(WEFT_FORMAT, "do not hold", j.offset[at] = UINT64_MAX - 63);
        SPOILED(WEFT_FORMAT, "do not hold", j.offset[at] = j.image.n_bytes);
        SPOILED(WEFT_FORMAT, "do not hold", j.offset[at] = was + 8);
        j.offset[at] = was;
    }
    SPOILED(WEFT_UNSUPPORTED, "another tier or version", j.layout[strlen(j.layout) - 1] = digit == '0' ? '1' : '0');
    SPOILED(WEFT_UNSUPPORTED, "another tier or version", j.image.layout = "");
    j.layout[strlen(j.layout) - 1] = digit;
    assert_ok(plan(&j, &j.image, 1, err));
    close_job(&j);
}

static void test_provider_without(void **state)
{
    (void)state;
    job j;
    weft_image image;
    const char *name;
    open_job(&j, "threads=1");
    copy_image(&j);
    j.p->table.image = NULL;
    assert_refused(WEFT_UNSUPPORTED, "provider cpu knows no packed weights",
                   weft__plan_image(j.plan, &image, &name, err));
    assert_refused(WEFT_UNSUPPORTED, "provider cpu knows no packed weights", plan(&j, &j.image, 1, err));
    close_job(&j);
}

static int take_and_give(void *arg)
{
    job *j = arg;
    weft_image image;
    const char *name;
    weft_status st = plan(j, &j->image, 1, NULL);
    if (!st) st = weft__plan_image(j->plan, &image, &name, NULL);
    weft__plan_destroy(&j->plan);
    return !st;
}

static void test_failing_allocator(void **state)
{
    (void)state;
    job j;
    open_job(&j, "threads=1");
    copy_image(&j);
    strip(&j);
    weft__plan_destroy(&j.plan);
    size_t n = fail_each(take_and_give, &j);
    print_message("  %zu allocations refused in turn\n", n);
    assert_true(n > 50);
    close_job(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_layouts),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_provider_without),
                                       cmocka_unit_test(test_failing_allocator)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
