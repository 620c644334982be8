// SPDX-License-Identifier: Apache-2.0
/* adapt_peft.c: claims about PEFT folders: what they mean, and what must be refused by name; and about writing them. */
#include "unit/adapt_open.h"

#include <errno.h>
#include <math.h>

#include "quant/encode.h"

static void rows_of_heads_are_paired(void **state)
{
    (void)state;
    weft__adapt *a = open_peft(CONFIG "}", PEFT_Q, 2);
    const weft__adapt_pair *p = &a->pairs[0];
    assert_true(p->rank == 4 && p->scale == 2);
    for (size_t r = 0; r < N; r++) {
        size_t head = r / (N / HEADS), i = r % (N / HEADS), from = head * (N / HEADS) + i % 2 * (N / HEADS / 2) + i / 2;
        for (size_t j = 0; j < 4; j++)
            assert_true(p->b[r * 4 + j] == made_value(made_seed(PEFT_Q[1].name), from * 4 + j));
    }
    weft__adapt_close(&a);
}

static void scales_follow_the_patterns(void **state)
{
    (void)state;
    weft__adapt *a = open_peft(CONFIG ",\"use_rslora\":true}", PEFT_Q, 2);
    assert_true(a->pairs[0].scale == 4); /* 8 / sqrt(4) */
    weft__adapt_close(&a);
    a = open_peft(CONFIG ",\"alpha_pattern\":{\"k_proj\":1,\"layers.0.*.q_proj\":3,\"q_proj\":5}}", PEFT_Q, 2);
    assert_true(a->pairs[0].scale == 0.75f); /* the first that matches */
    weft__adapt_close(&a);
    a = open_peft(CONFIG ",\"alpha_pattern\":{\"layers.(?P<n>[01]).*.(?P<name>q)_proj\":3}}", PEFT_Q, 2);
    assert_true(a->pairs[0].scale == 0.75f); /* Python's names of groups */
    weft__adapt_close(&a);
    a = open_peft("{\"peft_type\":\"LORA\",\"r\":16,\"lora_alpha\":8,\"rank_pattern\":{\"q_proj\":4}}", PEFT_Q, 2);
    assert_true(a->pairs[0].scale == 2);
    weft__adapt_close(&a);
    refuse_peft("{\"peft_type\":\"LORA\",\"r\":16,\"lora_alpha\":8,\"rank_pattern\":{\"_proj\":4}}", PEFT_Q, 2,
                WEFT_FORMAT, "rank 4, adapter_config.json says 16");
}

/* model.layers.0.self_attn.q_proj, as PEFT selects it. */
/* What is refused because it is a pickle says how to make of it what is read. */
static void pickled_weights_are_refused_with_the_remedy(void **state)
{
    (void)state;
    char weights[128], pickle[128];
    weft__adapt *a = NULL;
    weft_error err = {0};
    assert_true(made_peft(peft, CONFIG "}", PEFT_Q, 2));
    snprintf(weights, sizeof weights, "%s/adapter_model.safetensors", peft);
    snprintf(pickle, sizeof pickle, "%s/adapter_model.bin", peft);
    FILE *f = fopen(pickle, "w");
    assert_true(f && fputs("PK", f) > 0 && !fclose(f));
    assert_int_equal(weft__adapt_open(peft, &made_names, UINT64_MAX, &a, &err),
                     WEFT_OK); /* beside what is read it does not matter */
    weft__adapt_close(&a);
    assert_int_equal(unlink(weights), 0);
    assert_int_equal(weft__adapt_open(peft, &made_names, UINT64_MAX, &a, &err), WEFT_UNSUPPORTED);
    if (!strstr(err.message, peft) || !strstr(err.message, "adapter_model.bin, a Python pickle") ||
        !strstr(err.message, "safe_serialization=True"))
        fail_msg("%s", err.message);
    assert_int_equal(unlink(pickle), 0);
    assert_int_equal(weft__adapt_open(peft, &made_names, UINT64_MAX, &a, &err), WEFT_NOT_FOUND);
    if (!strstr(err.message, "adapter_model.safetensors")) fail_msg("%s", err.message);
}

static void modules_are_selected_as_by_peft(void **state)
{
    static const char *const taken[] = {
        "\"target_modules\":[\"v_proj\",\"q_proj\"]",
        "\"target_modules\":[\"self_attn.q_proj\"]",
        "\"target_modules\":null,\"exclude_modules\":[]",
        "\"target_modules\":\"all-linear\"",
        "\"target_modules\":\".*\\\\.(?P<which>q|v)_proj\",\"layers_to_transform\":[5]", /* not for patterns */
        "\"target_modules\":[\"q_proj\"],\"layers_to_transform\":0",
        "\"target_modules\":[\"q_proj\"],\"layers_to_transform\":[3,0],\"layers_pattern\":\"layers\"",
        "\"target_modules\":[\"q_proj\"],\"layers_to_transform\":[0],\"layers_pattern\":[\"h\",\"lay.*\"]",
        /* nor for whole names */
        "\"target_modules\":[\"model.layers.0.self_attn.q_proj\"],\"layers_to_transform\":[5]",
        "\"target_modules\":[\"q_proj\"],\"exclude_modules\":[\"layers.1.self_attn.q_proj\",\"proj\"]",
    };
    static const struct {
        const char *config, *by;
    } left_out[] = {
        {"\"target_modules\":[\"v_proj\"]", "target_modules"},
        {"\"target_modules\":[\"_proj\",\"attn.q_pro\"]", "target_modules"},
        {"\"target_modules\":\"q_proj\"", "target_modules"}, /* of the whole name */
        {"\"target_modules\":[\"q_proj\"],\"exclude_modules\":[\"self_attn.q_proj\"]", "exclude_modules"},
        {"\"exclude_modules\":\".*q_proj\"", "exclude_modules"},
        {"\"target_modules\":[\"q_proj\"],\"layers_to_transform\":[1,2]", "layers_to_transform"},
        {"\"target_modules\":[\"q_proj\"],\"layers_to_transform\":[0],\"layers_pattern\":\"h\"", "layers_to_transform"},
    };
    char config[512];
    (void)state;
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        snprintf(config, sizeof config, CONFIG ",%s}", taken[i]);
        weft__adapt *a = open_peft(config, PEFT_Q, 2);
        weft__adapt_close(&a);
    }
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) {
        char says[64];
        snprintf(config, sizeof config, CONFIG ",%s}", left_out[i].config);
        snprintf(says, sizeof says, "q_proj is left out by %s of", left_out[i].by);
        refuse_peft(config, PEFT_Q, 2, WEFT_FORMAT, says);
    }
    refuse_peft(CONFIG ",\"target_modules\":[1]}", PEFT_Q, 2, WEFT_FORMAT, "target_modules must be a list of names");
    refuse_peft(CONFIG ",\"target_modules\":\"(q\"}", PEFT_Q, 2, WEFT_FORMAT, "target_modules '(q'");
    refuse_peft(CONFIG ",\"layers_to_transform\":[\"0\"]}", PEFT_Q, 2, WEFT_FORMAT, "layers_to_transform must be");
}

#define EXPERT MODULE "block_sparse_moe.experts."
static void experts_come_together(void **state)
{
    (void)state;
    const made t[] = {{EXPERT "2.w3.lora_A.weight", 2, {K, 2}},
                      {EXPERT "2.w3.lora_B.weight", 2, {2, N}},
                      {EXPERT "0.w3.lora_A.weight", 2, {K, 4}},
                      {EXPERT "0.w3.lora_B.weight", 2, {4, N}}};
    weft__adapt *a = open_peft(CONFIG ",\"rank_pattern\":{\"2.w3\":2}}", t, 4);
    const weft__adapt_pair *p = &a->pairs[0];
    assert_true(a->n_pairs == 1 && p->n_experts == EXPERTS && p->rank == 4 &&
                p->scale == 2); /* expert 0's; 2 has twice that */
    for (size_t i = 0; i < 4 * K; i++) {
        assert_true(p->a[i] == made_value(made_seed(t[2].name), i));
        assert_true(p->a[4 * K + i] == 0);
        assert_true(p->a[8 * K + i] == (i < 2 * K ? made_value(made_seed(t[0].name), i) : 0));
    }
    for (size_t r = 0; r < N; r++)
        for (size_t j = 0; j < 4; j++)
            assert_true(p->b[(2 * N + r) * 4 + j] == (j < 2 ? 2 * made_value(made_seed(t[1].name), r * 2 + j) : 0));
    weft__adapt_close(&a);
}

/* One expert of a layer needs the room of all. */
static void room_is_counted_before_it_is_taken(void **state)
{
    (void)state;
    const made t[] = {
        {EXPERT "0.w3.lora_A.weight", 2, {K, 4}}, {EXPERT "0.w3.lora_B.weight", 2, {4, N}}, PEFT_Q[0], PEFT_Q[1]};
    enum { ONE = 4 * (K + N) * sizeof(float) };
    weft__adapt *a;
    weft_error err = {0};
    assert_true(made_peft(peft, CONFIG "}", t, 4));
    assert_int_equal(weft__adapt_open(peft, &made_names, (EXPERTS + 1) * ONE - 1, &a, &err), WEFT_LIMIT);
    assert_non_null(strstr(err.message, "blk.0.ffn_up_exps.weight: its matrices"));
    assert_null(a);
    assert_int_equal(weft__adapt_open(peft, &made_names, (EXPERTS + 1) * ONE, &a, &err), WEFT_OK);
    assert_int_equal(a->n_bytes, (EXPERTS + 1) * ONE);
    weft__adapt_close(&a);
}

static void experts_scales_stay_finite(void **state)
{
    (void)state;
    const made t[] = {{EXPERT "2.w3.lora_A.weight", 2, {K, 4}},
                      {EXPERT "2.w3.lora_B.weight", 2, {4, N}},
                      {EXPERT "0.w3.lora_A.weight", 2, {K, 4}},
                      {EXPERT "0.w3.lora_B.weight", 2, {4, N}}};
    refuse_peft(CONFIG ",\"alpha_pattern\":{\"0.w3\":1e-30,\"2.w3\":1e30}}", t, 4, WEFT_FORMAT,
                "experts.2.w3: its scale is 2.5e+29");
}

/* In a folder that holds an adapter, weights never come to lie beside another adapter's configuration: where that
 * cannot be taken away, here because it is a folder, the old weights stay. */
static int q_module(const void *arg, const char *tensor, int32_t expert, char *out, size_t size,
                    weft__adapt_place *place)
{
    (void)tensor, (void)expert;
    snprintf(out, size, "model.layers.0.self_attn.q_proj");
    return made_place(arg, out, place);
}

static void a_folder_is_never_half_of_two_adapters(void **state)
{
    (void)state;
    const weft__adapt_names names = {.arch = "llama", .place = made_place, .module = q_module};
    weft__adapt *a = open_peft(CONFIG "}", PEFT_Q, 2), *old;
    weft_error err = {0};
    char config[256];
    snprintf(config, sizeof config, "%s/adapter_config.json", peft);
    assert_int_equal(weft__adapt_write_peft(a, &names, peft, &err), WEFT_OK);
    assert_int_equal(weft__adapt_open(peft, &names, UINT64_MAX, &old, &err), WEFT_OK);
    assert_memory_equal(&old->id, &a->id, sizeof a->id);
    weft__adapt_close(&old);
    assert_true(!unlink(config) && !mkdir(config, 0777));
    struct stat before, after;
    char weights[256];
    snprintf(weights, sizeof weights, "%s/adapter_model.safetensors", peft);
    assert_int_equal(stat(weights, &before), 0);
    assert_int_equal(weft__adapt_write_peft(a, &names, peft, &err), WEFT_IO);
    assert_non_null(strstr(err.message, "adapter_config.json"));
    assert_true(!stat(weights, &after) && before.st_ino == after.st_ino);
    assert_int_equal(rmdir(config), 0);
    weft__adapt_close(&a);
}

/* Somebody begins to write over the folder while it is read. */
static int place_and_remove(const void *config, const char *module, weft__adapt_place *out)
{
    return (unlink(config) == 0 || errno == ENOENT) && made_place(NULL, module, out);
}

static void what_is_replaced_meanwhile_is_refused(void **state)
{
    (void)state;
    char config[256];
    weft__adapt *a = open_peft(CONFIG "}", PEFT_Q, 2);
    weft_error err = {0};
    weft__adapt_close(&a);
    snprintf(config, sizeof config, "%s/adapter_config.json", peft);
    const weft__adapt_names names = {.arg = config, .arch = "llama", .place = place_and_remove};
    assert_int_equal(weft__adapt_open(peft, &names, UINT64_MAX, &a, &err), WEFT_IO);
    assert_non_null(strstr(err.message, "adapter_config.json: the adapter was replaced while it was read"));
}

static void peft_embeddings_are_turned(void **state)
{
    (void)state;
    const made t[] = {{"base_model.model.model.embed_tokens.lora_embedding_A", 2, {VOCAB, 4}},
                      {"base_model.model.model.embed_tokens.lora_embedding_B", 2, {4, K}}};
    weft__adapt *a = open_peft(CONFIG "}", t, 2);
    const weft__adapt_pair *p = &a->pairs[0];
    assert_true(p->k == K && p->n == VOCAB && p->rank == 4);
    for (size_t j = 0; j < 4; j++) {
        for (size_t v = 0; v < VOCAB; v++)
            assert_true(p->b[v * 4 + j] == made_value(made_seed(t[0].name), j * VOCAB + v));
        for (size_t d = 0; d < K; d++) assert_true(p->a[j * K + d] == made_value(made_seed(t[1].name), d * 4 + j));
    }
    weft__adapt_close(&a);
}

static void magnitudes_are_read(void **state)
{
    (void)state;
    const made t[] = {PEFT_Q[0], PEFT_Q[1], {MODULE "self_attn.q_proj.lora_magnitude_vector", 1, {N}}};
    weft__adapt *a = open_peft(CONFIG ",\"use_dora\":true}", t, 3);
    assert_non_null(a->pairs[0].magnitude);
    assert_true(a->pairs[0].magnitude[1] == made_value(made_seed(t[2].name), N / HEADS / 2)); /* paired, too */
    weft__adapt_close(&a);
    refuse_peft(CONFIG ",\"use_dora\":true}", PEFT_Q, 2, WEFT_FORMAT, "lora_magnitude_vector is missing");
    refuse_peft(CONFIG "}", t, 3, WEFT_FORMAT, "use_dora is not true");
}

/* An embedding has them of its columns, as PEFT does, in either kind of file. */
static void magnitudes_of_an_embedding_are_of_columns(void **state)
{
    (void)state;
    const made g[] = {{"token_embd.weight.lora_a", 2, {2, VOCAB}},
                      {"token_embd.weight.lora_b", 2, {2, K}},
                      {"token_embd.weight.lora_magnitude", 1, {K}}};
    recipe r = {"adapter", "lora", "llama", 2, g, 3};
    weft__adapt *a = open_made(&r), *again;
    weft_error err = {0};
    for (size_t i = 0; i < K; i++) assert_true(a->pairs[0].magnitude[i] == made_value(made_seed(g[2].name), i));
    if (weft__adapt_write_gguf(a, "llama", file, &err) || weft__adapt_open(file, NULL, UINT64_MAX, &again, &err))
        fail_msg("%s", err.message);
    assert_memory_equal(&a->id, &again->id, sizeof a->id);
    weft__adapt_close(&again);
    weft__adapt_close(&a);
    const made rows[] = {g[0], g[1], {g[2].name, 1, {VOCAB}}};
    r.tensors = rows;
    refuse_gguf(&r, WEFT_FORMAT, "10 magnitudes for 8 columns");
    const made t[] = {{"base_model.model.model.embed_tokens.lora_embedding_A", 2, {VOCAB, 4}},
                      {"base_model.model.model.embed_tokens.lora_embedding_B", 2, {4, K}},
                      {"base_model.model.model.embed_tokens.lora_magnitude_vector", 1, {K}}};
    a = open_peft(CONFIG ",\"use_dora\":true}", t, 3);
    for (size_t i = 0; i < K; i++) assert_true(a->pairs[0].magnitude[i] == made_value(made_seed(t[2].name), i));
    weft__adapt_close(&a);
}

/* Experts have magnitudes of their own. Those that no module of a folder names have zeros, and stay as they are; zeros
 * of a module, or beside what changes an expert, are refused. */
static void magnitudes_of_experts(void **state)
{
    (void)state;
    float zeros[N] = {0}, some[EXPERTS * N], halves[EXPERTS * 4 * N];
    const made t[] = {{EXPERT "2.w3.lora_A.weight", 2, {K, 4}},      {EXPERT "2.w3.lora_B.weight", 2, {4, N}},
                      {EXPERT "2.w3.lora_magnitude_vector", 1, {N}}, {EXPERT "0.w3.lora_A.weight", 2, {K, 4}},
                      {EXPERT "0.w3.lora_B.weight", 2, {4, N}},      {EXPERT "0.w3.lora_magnitude_vector", 1, {N}}};
    weft__adapt *a = open_peft(CONFIG ",\"use_dora\":true}", t, 6), *again;
    weft_error err = {0};
    for (size_t i = 0; i < N; i++) {
        assert_true(a->pairs[0].magnitude[i] == made_value(made_seed(t[5].name), i));
        assert_true(a->pairs[0].magnitude[N + i] == 0);
        assert_true(a->pairs[0].magnitude[2 * N + i] == made_value(made_seed(t[2].name), i));
    }
    if (weft__adapt_write_gguf(a, "llama", file, &err) || weft__adapt_open(file, NULL, UINT64_MAX, &again, &err))
        fail_msg("%s", err.message);
    assert_memory_equal(&a->id, &again->id, sizeof a->id);
    weft__adapt_close(&again);
    assert_true(a->n_bytes == sizeof(float) * EXPERTS * (4 * (K + N) + N));
    weft__adapt_close(&a);
    made bad[6];
    memcpy(bad, t, sizeof bad);
    bad[5].values = zeros;
    refuse_peft(CONFIG ",\"use_dora\":true}", bad, 6, WEFT_FORMAT, "experts.0.w3: its magnitudes are all 0");
    for (size_t i = 0; i < EXPERTS * 4 * N; i++) halves[i] = 1;
    for (size_t i = 0; i < EXPERTS * N; i++) some[i] = i / N == 1 ? 0 : 2;
    const made g[] = {{"blk.0.ffn_up_exps.weight.lora_a", 3, {K, 4, EXPERTS}, halves},
                      {"blk.0.ffn_up_exps.weight.lora_b", 3, {4, N, EXPERTS}, halves},
                      {"blk.0.ffn_up_exps.weight.lora_magnitude", 2, {N, EXPERTS}, some}};
    recipe r = {"adapter", "lora", "llama", 8, g, 3};
    refuse_gguf(&r, WEFT_FORMAT, "blk.0.ffn_up_exps.weight: expert 1 is changed, but its magnitudes are all 0");
    const made one[] = {g[0], g[1], {g[2].name, 1, {N}}};
    r.tensors = one;
    refuse_gguf(&r, WEFT_FORMAT, "12 magnitudes for 36 rows");
}

/* No module of these architectures keeps its weights transposed: PEFT warns and goes on, with the same numbers. */
static void fan_in_fan_out_changes_nothing(void **state)
{
    (void)state;
    weft__adapt *a = open_peft(CONFIG "}", PEFT_Q, 2), *b = open_peft(CONFIG ",\"fan_in_fan_out\":true}", PEFT_Q, 2);
    assert_memory_equal(&a->id, &b->id, sizeof a->id);
    weft__adapt_close(&a);
    weft__adapt_close(&b);
}

/* PEFT saves an embedding's own weights with its change: they may be there, in any precision that the base is kept in,
 * but no others. */
static void the_base_beside_a_change_is_the_base(void **state)
{
    enum { ROWS = 200, WIDE = 256 };
    static const uint32_t types[] = {WEFT_F32,  WEFT_F16,  WEFT_BF16,   WEFT_Q8_0, WEFT_Q6_K, WEFT_Q5_0,
                                     WEFT_Q4_0, WEFT_Q4_K, WEFT_IQ4_NL, WEFT_Q3_K, WEFT_Q2_K};
    (void)state;
    float *table = malloc(ROWS * WIDE * sizeof *table);
    uint8_t *kept = malloc(ROWS * WIDE * sizeof *table);
    weft__rng rng;
    weft__rng_seed(&rng, 4);
    for (int i = 0; i < ROWS * WIDE; i++) table[i] = (float)weft__rng_normal(&rng);
    const made t[] = {{"base_model.model.model.embed_tokens.lora_embedding_A", 2, {ROWS, 4}},
                      {"base_model.model.model.embed_tokens.lora_embedding_B", 2, {4, WIDE}},
                      {"base_model.model.model.embed_tokens.base_layer.weight", 2, {WIDE, ROWS}, table}};
    weft__adapt *a = open_peft(CONFIG "}", t, 3), *bare = open_peft(CONFIG "}", t, 2);
    weft__adapt_base base = made_base();
    weft__adapt_target *target = &base.targets[3];
    weft_error err = {0};
    assert_memory_equal(&a->id, &bare->id, sizeof a->id);
    assert_int_equal(a->n_pairs, 1);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        made_target(target, "token_embd.weight", WIDE, ROWS, 1);
        assert_int_equal(weft__quant_encode_rows(types[i], table, kept, ROWS, WIDE, NULL, NULL), WEFT_OK);
        target->dtype = types[i];
        target->row_bytes = weft__quant_row_bytes(types[i], WIDE);
        target->data = kept;
        if (weft__adapt_check(a, &base, &err)) fail_msg("%s: %s", weft_dtype_describe(types[i]).name, err.message);
        memmove(kept, kept + target->row_bytes, (ROWS - 1) * (size_t)target->row_bytes); /* each row is its neighbour */
        assert_int_equal(weft__adapt_check(a, &base, &err), WEFT_ARGUMENT);
        assert_non_null(
            strstr(err.message, "the token_embd.weight beside its change is not that of base (an NMSE of "));
        assert_int_equal(weft__adapt_check(bare, &base, &err), WEFT_OK);
    }
    target->data = NULL; /* a compiled plan's: shapes are all that is known */
    assert_int_equal(weft__adapt_check(a, &base, &err), WEFT_OK);
    weft__adapt_close(&a);
    /* A table that was trained, by 2 % of its size, and one of another vocabulary. */
    made_target(target, "token_embd.weight", WIDE, ROWS, 1);
    target->data = memcpy(kept, table, ROWS * WIDE * sizeof *table);
    for (int i = 0; i < ROWS * WIDE; i++) table[i] += 0.02f * (float)weft__rng_normal(&rng);
    a = open_peft(CONFIG "}", t, 3);
    assert_int_equal(weft__adapt_check(a, &base, &err), WEFT_ARGUMENT);
    weft__adapt_close(&a);
    const made resized[] = {t[0], t[1], {t[2].name, 2, {WIDE, ROWS - 1}, table}};
    a = open_peft(CONFIG "}", resized, 3);
    assert_int_equal(weft__adapt_check(a, &base, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "is of 256 x 199, that of base of 256 x 200"));
    weft__adapt_close(&a);
    table[3] = NAN;
    refuse_peft(CONFIG "}", t, 3, WEFT_FORMAT, "base_layer.weight holds NaN");
    const made flat[] = {t[0], t[1], {t[2].name, 3, {WIDE, ROWS / 2, 2}, NULL}};
    refuse_peft(CONFIG "}", flat, 3, WEFT_FORMAT, "is no matrix of floats");
    weft__adapt_close(&bare);
    free(kept);
    free(table);
}

static void configurations_are_refused_by_name(void **state)
{
    static const struct {
        const char *config, *says;
        weft_status status;
    } bad[] = {
        {"[]", "no object", WEFT_FORMAT},
        {"{", "adapter_config.json", WEFT_FORMAT},
        {"{\"peft_type\":\"IA3\",\"r\":4,\"lora_alpha\":8}", "IA3", WEFT_UNSUPPORTED},
        {"{\"peft_type\":\"LORA\",\"lora_alpha\":8}", "r must be", WEFT_FORMAT},
        {"{\"peft_type\":\"LORA\",\"r\":0,\"lora_alpha\":8}", "r must be", WEFT_FORMAT},
        {"{\"peft_type\":\"LORA\",\"r\":1e300,\"lora_alpha\":8}", "r must be", WEFT_FORMAT},
        {"{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":1e39}", "lora_alpha", WEFT_FORMAT},
        {"{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":\"8\"}", "lora_alpha", WEFT_FORMAT},
        {CONFIG ",\"modules_to_save\":[\"lm_head\",\"embed_tokens\"]}",
         "modules_to_save has lm_head, embed_tokens, trained whole", WEFT_UNSUPPORTED},
        {CONFIG ",\"modules_to_save\":[\"lm_head\"]}", "target_modules instead, or merge the adapter",
         WEFT_UNSUPPORTED},
        {CONFIG ",\"lora_bias\":true}", "lora_bias", WEFT_UNSUPPORTED},
        {CONFIG ",\"layer_replication\":[[0,4]]}", "layer_replication", WEFT_UNSUPPORTED},
        {CONFIG ",\"init_lora_weights\":\"pissa_niter_16\"}", "pissa", WEFT_UNSUPPORTED},
        {CONFIG ",\"init_lora_weights\":\"OLoRA\"}", "olora", WEFT_UNSUPPORTED},
        {"{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":8,\"bias\":\"all\"}", "bias is \"all\"", WEFT_UNSUPPORTED},
        {CONFIG ",\"rank_pattern\":{\"q_proj\":1.5}}", "1.5", WEFT_FORMAT},
        {CONFIG ",\"alpha_pattern\":{\"(q\":1}}", "pattern '(q'", WEFT_FORMAT},
        {CONFIG ",\"alpha_pattern\":[1]}", "alpha_pattern", WEFT_FORMAT},
        {CONFIG ",\"alpha_pattern\":{\"(?:[a-z0-9._]+)+[!?]\":1}}",
         "adapter_config.json: alpha_pattern '(?:[a-z0-9._]+)+[!?]': a pattern gave up", WEFT_LIMIT},
    };
    (void)state;
    /* The last takes all the steps that a pattern may take: many seconds where each is emulated, and the message is the
     * same. */
    const size_t n = sizeof bad / sizeof *bad - CLAIMS_REPEATED(0, 0, 1);
    for (size_t i = 0; i < n; i++) refuse_peft(bad[i].config, PEFT_Q, 2, bad[i].status, bad[i].says);
    const made other[] = {{"base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight", 2, {K, 4}}};
    refuse_peft(CONFIG "}", other, 1, WEFT_ARGUMENT, "layers.7");
    const made saved[] = {PEFT_Q[0], PEFT_Q[1], {"base_model.model.lm_head.weight", 2, {K, N}}};
    refuse_peft(CONFIG "}", saved, 3, WEFT_UNSUPPORTED, "lm_head.weight");
    const made whole[] = {PEFT_Q[0], PEFT_Q[1], {MODULE "self_attn.q_proj.base_layer.weight", 2, {K, N}}};
    refuse_peft(CONFIG "}", whole, 3, WEFT_UNSUPPORTED, "q_proj.base_layer.weight is no part of a LoRA");
    const made traversal[] = {{"base_model.model.../../../etc/passwd.lora_A.weight", 2, {K, 4}}};
    refuse_peft(CONFIG "}", traversal, 1, WEFT_ARGUMENT, "etc/passwd");
}

/* Many patterns times many modules would take hours. */
static void patterns_are_tried_so_often(void **state)
{
    (void)state;
    enum { PATTERNS = 4096, ROOM = 64 * PATTERNS };
    char *text = malloc(ROOM);
    weft__adapt_peft_config *c;
    weft_error err = {0};
    int64_t rank, n = 0;
    float scale;
    int at = snprintf(text, ROOM, CONFIG ",\"rank_pattern\":{");
    for (int i = 0; i < PATTERNS; i++) at += snprintf(text + at, (size_t)(ROOM - at), "%s\"m%d\":1", i ? "," : "", i);
    at += snprintf(text + at, (size_t)(ROOM - at), "}}");
    assert_int_equal(weft__adapt_peft_config_read(text, (size_t)at, &c, &err), WEFT_OK);
    weft_status st;
    while (!(st = weft__adapt_peft_config_of(c, "q", &rank, &scale, &err)) && n < 2048) n++;
    assert_int_equal(st, WEFT_LIMIT);
    assert_non_null(strstr(err.message, "patterns are too many"));
    assert_true(n >= 500);
    weft__adapt_peft_config_free(&c);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_heads_are_paired),
        cmocka_unit_test(scales_follow_the_patterns),
        cmocka_unit_test(pickled_weights_are_refused_with_the_remedy),
        cmocka_unit_test(modules_are_selected_as_by_peft),
        cmocka_unit_test(experts_come_together),
        cmocka_unit_test(room_is_counted_before_it_is_taken),
        cmocka_unit_test(experts_scales_stay_finite),
        cmocka_unit_test(a_folder_is_never_half_of_two_adapters),
        cmocka_unit_test(what_is_replaced_meanwhile_is_refused),
        cmocka_unit_test(peft_embeddings_are_turned),
        cmocka_unit_test(the_base_beside_a_change_is_the_base),
        cmocka_unit_test(magnitudes_are_read),
        cmocka_unit_test(magnitudes_of_an_embedding_are_of_columns),
        cmocka_unit_test(magnitudes_of_experts),
        cmocka_unit_test(fan_in_fan_out_changes_nothing),
        cmocka_unit_test(configurations_are_refused_by_name),
        cmocka_unit_test(patterns_are_tried_so_often),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
