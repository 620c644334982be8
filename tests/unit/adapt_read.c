/* adapt_read.c: claims about reading adapters: what GGUF files and PEFT folders mean, and everything that must be refused by name. */
#include "unit/fixture.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "adapt/parts.h"
#include "quant/encode.h"
#include "unit/adapt_files.h"

static char folder[64], file[96], peft[96];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/weft-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(file, sizeof file, "%s/a.gguf", folder);
    snprintf(peft, sizeof peft, "%s/peft", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(file);
    unmake_peft(peft);
    return rmdir(folder);
}

#define Q_A "blk.0.attn_q.weight.lora_a"
#define Q_B "blk.0.attn_q.weight.lora_b"
static const made Q_PAIR[] = {{Q_A, 2, {K, 4}}, {Q_B, 2, {4, N}}};

static recipe q_recipe(void)
{
    return (recipe){"adapter", "lora", "llama", 8, Q_PAIR, 2};
}

static weft__adapt *open_made(const recipe *r)
{
    weft__adapt *a;
    weft_error err = {0};
    assert_true(made_gguf(file, r));
    if (weft__adapt_open(file, NULL, UINT64_MAX, &a, &err)) fail_msg("%s", err.message);
    return a;
}

static void refuse_gguf(const recipe *r, weft_status want, const char *says)
{
    weft__adapt *a;
    weft_error err = {0};
    assert_true(made_gguf(file, r));
    weft_status st = weft__adapt_open(file, NULL, UINT64_MAX, &a, &err);
    if (st != want || !strstr(err.message, says))
        fail_msg("status %d, \"%s\"; wanted %d with \"%s\"", st, err.message, want, says);
    assert_null(a);
    assert_non_null(strstr(err.message, "a.gguf"));
}

/* ---- GGUF ---- */

static void a_pair_has_its_scale(void **state)
{
    (void)state;
    recipe r = q_recipe();
    weft__adapt *a = open_made(&r);
    assert_int_equal(a->n_pairs, 1);
    const weft__adapt_pair *p = &a->pairs[0];
    assert_string_equal(p->name, "blk.0.attn_q.weight");
    assert_true(p->k == K && p->n == N && p->rank == 4 && p->n_experts == 1 && p->scale == 2 && !p->magnitude);
    for (size_t i = 0; i < K * 4; i++) assert_true(p->a[i] == made_value(made_seed(Q_A), i));
    for (size_t i = 0; i < N * 4; i++) assert_true(p->b[i] == made_value(made_seed(Q_B), i));
    weft__adapt_close(&a);
    r.alpha = 0; /* llama.cpp: none means 1 */
    a = open_made(&r);
    assert_true(a->pairs[0].scale == 1);
    weft__adapt_close(&a);
}

static void an_embedding_is_turned(void **state)
{
    (void)state;
    const made t[] = {{"token_embd.weight.lora_a", 2, {2, VOCAB}}, {"token_embd.weight.lora_b", 2, {2, K}}};
    recipe r = {"adapter", "lora", "llama", 2, t, 2};
    weft__adapt *a = open_made(&r);
    const weft__adapt_pair *p = &a->pairs[0];
    assert_true(p->k == K && p->n == VOCAB && p->rank == 2);
    for (size_t v = 0; v < VOCAB * 2; v++) assert_true(p->b[v] == made_value(made_seed(t[0].name), v));
    for (size_t d = 0; d < K; d++)
        for (size_t j = 0; j < 2; j++) assert_true(p->a[j * K + d] == made_value(made_seed(t[1].name), d * 2 + j));
    weft__adapt_close(&a);
}

static void the_id_is_of_the_content(void **state)
{
    (void)state;
    const made turned[] = {Q_PAIR[1], Q_PAIR[0]};
    float *other = made_values(made_seed(Q_B), 4 * N);
    recipe r = q_recipe(), order = q_recipe(), alpha = q_recipe(), value = q_recipe();
    made changed[] = {Q_PAIR[0], Q_PAIR[1]};
    order.tensors = turned;
    alpha.alpha = 9;
    other[5] += 0.001f;
    changed[1].values = other;
    value.tensors = changed;
    const recipe *all[] = {&r, &order, &alpha, &value};
    weft__adapt_id id[4];
    for (int i = 0; i < 4; i++) {
        weft__adapt *a = open_made(all[i]);
        id[i] = a->id;
        weft__adapt_close(&a);
    }
    free(other);
    assert_memory_equal(&id[0], &id[1], sizeof *id);
    assert_memory_not_equal(&id[0], &id[2], sizeof *id);
    assert_memory_not_equal(&id[0], &id[3], sizeof *id);
}

static void hostile_files_are_refused(void **state)
{
    (void)state;
    float bad[4 * N];
    recipe r = q_recipe();
    r.type = "model";
    refuse_gguf(&r, WEFT_UNSUPPORTED, "general.type");
    r = q_recipe();
    r.kind = NULL;
    refuse_gguf(&r, WEFT_FORMAT, "adapter.type");
    r = q_recipe();
    r.alpha = INFINITY;
    refuse_gguf(&r, WEFT_FORMAT, "alpha");
    r = q_recipe();
    r.n = 1;
    refuse_gguf(&r, WEFT_FORMAT, "half B is missing");
    const made only_b[] = {Q_PAIR[1]};
    r.tensors = only_b;
    refuse_gguf(&r, WEFT_FORMAT, "half A is missing");
    const made ranks[] = {Q_PAIR[0], {Q_B, 2, {5, N}}};
    r = (recipe){"adapter", "lora", "llama", 8, ranks, 2};
    refuse_gguf(&r, WEFT_FORMAT, "rank 4, half B rank 5");
    const made huge[] = {{Q_A, 2, {1, 1025}}, {Q_B, 2, {1025, 1}}};
    r.tensors = huge;
    refuse_gguf(&r, WEFT_LIMIT, "rank 1025");
    const made strange[] = {Q_PAIR[0], Q_PAIR[1], {"blk.0.attn_q.weight", 2, {K, N}}};
    r = (recipe){"adapter", "lora", "llama", 8, strange, 3};
    refuse_gguf(&r, WEFT_UNSUPPORTED, "is no part of a LoRA");
    const made magnitudes[] = {Q_PAIR[0], Q_PAIR[1], {"blk.0.attn_q.weight.lora_magnitude", 1, {N - 1}}};
    r.tensors = magnitudes;
    refuse_gguf(&r, WEFT_FORMAT, "11 magnitudes for 12 rows");
    r.n = 0;
    refuse_gguf(&r, WEFT_FORMAT, "no tensors");
    for (int kind = 0; kind < 2; kind++) {
        made t[] = {Q_PAIR[0], {Q_B, 2, {4, N}, bad}};
        for (size_t i = 0; i < 4 * N; i++) bad[i] = 1;
        bad[17] = kind ? INFINITY : NAN;
        r = (recipe){"adapter", "lora", "llama", 8, t, 2};
        refuse_gguf(&r, WEFT_FORMAT, kind ? "infinity at element 17" : "NaN at element 17");
    }
}

static void what_is_no_file_is_refused(void **state)
{
    weft__adapt *a;
    weft_error err = {0};
    (void)state;
    assert_int_equal(weft__adapt_open("/nowhere/a.gguf", NULL, UINT64_MAX, &a, &err), WEFT_NOT_FOUND);
    assert_int_equal(weft__adapt_open("/dev/zero", NULL, UINT64_MAX, &a, &err), WEFT_UNSUPPORTED);
    assert_int_equal(weft__adapt_open(folder, NULL, UINT64_MAX, &a, &err), WEFT_ARGUMENT); /* a folder's names need a base */
    assert_int_equal(weft__adapt_open(folder, &made_names, UINT64_MAX, &a, &err), WEFT_NOT_FOUND);
    FILE *f = fopen(file, "wb");
    assert_true(f && !fclose(f));
    assert_int_equal(weft__adapt_open(file, NULL, UINT64_MAX, &a, &err), WEFT_FORMAT);
}

static void another_base_is_told_apart(void **state)
{
    (void)state;
    weft__adapt_base base = made_base();
    weft_error err = {0};
    recipe r = q_recipe();
    weft__adapt *a = open_made(&r);
    assert_int_equal(weft__adapt_check(a, &base, &err), WEFT_OK);
    base.arch = "qwen2";
    assert_int_equal(weft__adapt_check(a, &base, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "architecture 'llama'"));
    base.arch = "llama";
    base.targets[0].n_total++;
    assert_int_equal(weft__adapt_check(a, &base, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "8 x 12 x 1"));
    base.targets[0].name[0] = 0;
    assert_int_equal(weft__adapt_check(a, &base, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "no matrix of base"));
    weft__adapt_close(&a);
}

/* A base is the same in every format; an adapter says which it was, keeps it when it is written, and is refused by another. */
static void fingerprints_are_of_the_weights(void **state)
{
    (void)state;
    enum { D = 300 };
    float x[D];
    uint16_t bf16[D], f16[D];
    for (int i = 0; i < D; i++) {
        x[i] = 0.5f + (float)(i % 128) / 128; /* all types hold it */
        assert_int_equal(weft__quant_encode_rows(WEFT_BF16, &x[i], (uint8_t *)&bf16[i], 1, 1, NULL, NULL), WEFT_OK);
        assert_int_equal(weft__quant_encode_rows(WEFT_F16, &x[i], (uint8_t *)&f16[i], 1, 1, NULL, NULL), WEFT_OK);
    }
    uint64_t print = weft__adapt_fingerprint(x, WEFT_F32, D);
    assert_true(print && weft__adapt_fingerprint(bf16, WEFT_BF16, D) == print &&
                weft__adapt_fingerprint(f16, WEFT_F16, D) == print);
    x[D - 1] += 1;
    assert_true(weft__adapt_fingerprint(x, WEFT_F32, D) != print && weft__adapt_fingerprint(x, WEFT_F32, D - 1) != print);
    assert_true(weft__adapt_fingerprint(NULL, WEFT_F32, D) == 0 && weft__adapt_fingerprint(x, WEFT_Q8_0, 32) == 0);

    weft__adapt_base base = made_base();
    weft_error err = {0};
    recipe r = q_recipe();
    weft__adapt *a = open_made(&r), *again;
    base.fingerprint = print;
    assert_true(a->base_fingerprint == 0 && weft__adapt_check(a, &base, &err) == WEFT_OK); /* it does not say */
    a->base_fingerprint = print;
    assert_int_equal(weft__adapt_write_gguf(a, "llama", file, &err), WEFT_OK);
    weft__gguf *g;
    assert_int_equal(weft__gguf_open(file, &g, &err), WEFT_OK);
    assert_true(weft__gguf_find(g, "weft.adapter.base_mark") >= 0); /* the key of all files so far */
    weft__gguf_close(&g);
    assert_int_equal(weft__adapt_open(file, NULL, UINT64_MAX, &again, &err), WEFT_OK);
    assert_true(again->base_fingerprint == print && weft__adapt_check(again, &base, &err) == WEFT_OK);
    base.fingerprint = 0;
    assert_int_equal(weft__adapt_check(again, &base, &err), WEFT_OK);
    base.fingerprint = print + 1;
    assert_int_equal(weft__adapt_check(again, &base, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "was trained on another model"));
    weft__adapt_close(&again);
    weft__adapt_close(&a);
}

/* ---- PEFT ---- */

#define MODULE "base_model.model.model.layers.0."
#define CONFIG "{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":8,\"bias\":\"none\""
static const made PEFT_Q[] = {{MODULE "self_attn.q_proj.lora_A.weight", 2, {K, 4}},
                              {MODULE "self_attn.q_proj.lora_B.weight", 2, {4, N}}};

static weft__adapt *open_peft(const char *config, const made *tensors, size_t n)
{
    weft__adapt *a;
    weft_error err = {0};
    assert_true(made_peft(peft, config, tensors, n));
    if (weft__adapt_open(peft, &made_names, UINT64_MAX, &a, &err)) fail_msg("%s", err.message);
    return a;
}

static void refuse_peft(const char *config, const made *tensors, size_t n, weft_status want, const char *says)
{
    weft__adapt *a;
    weft_error err = {0};
    assert_true(made_peft(peft, config, tensors, n));
    weft_status st = weft__adapt_open(peft, &made_names, UINT64_MAX, &a, &err);
    if (st != want || !strstr(err.message, says))
        fail_msg("%s: status %d, \"%s\"; wanted %d with \"%s\"", config, st, err.message, want, says);
    assert_null(a);
}

static void rows_of_heads_are_paired(void **state)
{
    (void)state;
    weft__adapt *a = open_peft(CONFIG "}", PEFT_Q, 2);
    const weft__adapt_pair *p = &a->pairs[0];
    assert_true(p->rank == 4 && p->scale == 2);
    for (size_t r = 0; r < N; r++) {
        size_t head = r / (N / HEADS), i = r % (N / HEADS), from = head * (N / HEADS) + i % 2 * (N / HEADS / 2) + i / 2;
        for (size_t j = 0; j < 4; j++) assert_true(p->b[r * 4 + j] == made_value(made_seed(PEFT_Q[1].name), from * 4 + j));
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
    refuse_peft("{\"peft_type\":\"LORA\",\"r\":16,\"lora_alpha\":8,\"rank_pattern\":{\"_proj\":4}}", PEFT_Q, 2, WEFT_FORMAT,
                "rank 4, adapter_config.json says 16");
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
        "\"target_modules\":[\"model.layers.0.self_attn.q_proj\"],\"layers_to_transform\":[5]", /* nor for whole names */
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
    assert_true(a->n_pairs == 1 && p->n_experts == EXPERTS && p->rank == 4 && p->scale == 2); /* expert 0's; 2 has twice that */
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
    const made t[] = {{EXPERT "0.w3.lora_A.weight", 2, {K, 4}}, {EXPERT "0.w3.lora_B.weight", 2, {4, N}}, PEFT_Q[0], PEFT_Q[1]};
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

/* ---- finite files, whose combination is not ---- */

/* Bytes that this process has read; 0: nobody says. */
static unsigned long long bytes_read(void)
{
    unsigned long long n = 0;
    FILE *f = fopen("/proc/self/io", "r");
    if (f && fscanf(f, "rchar: %llu", &n) != 1) n = 0;
    if (f) fclose(f);
    return n;
}

static void refused_early(const char *path, uint64_t max_bytes, weft_status want, const char *says)
{
    enum { LOOK = 1 << 20 };
    weft__adapt *a;
    weft_error err = {0};
    unsigned long long before = bytes_read();
    weft_status st = weft__adapt_open(path, &made_names, max_bytes, &a, &err);
    unsigned long long n = bytes_read() - before;
    if (st != want || !strstr(err.message, says))
        fail_msg("status %d, \"%s\"; wanted %d with \"%s\"", st, err.message, want, says);
    if (n > LOOK) fail_msg("\"%s\" was found after %llu bytes", err.message, n);
}

static void what_is_no_adapter_is_not_read_whole(void **state)
{
    (void)state;
    enum { BIG = 1 << 28, BUDGET = 1 << 27 };
    char weights[128];
    recipe r = q_recipe();
    assert_true(made_gguf(file, &r));
    assert_int_equal(truncate(file, BIG), 0);
    refused_early(file, BUDGET, WEFT_LIMIT, "268435456 bytes; at most 201326592");
    r.type = "model";
    assert_true(made_gguf(file, &r));
    assert_int_equal(truncate(file, BIG), 0);
    refused_early(file, UINT64_MAX, WEFT_UNSUPPORTED, "general.type");
    FILE *f = fopen(file, "w");
    assert_true(f && fputs("no GGUF", f) > 0 && !fclose(f));
    assert_int_equal(truncate(file, BIG), 0);
    refused_early(file, UINT64_MAX, WEFT_FORMAT, "is not a GGUF file");

    assert_true(made_peft(peft, CONFIG "}", PEFT_Q, 2));
    snprintf(weights, sizeof weights, "%s/adapter_model.safetensors", peft);
    assert_int_equal(truncate(weights, BIG), 0);
    refused_early(peft, BUDGET, WEFT_LIMIT, "at most 201326592");
    refused_early(peft, UINT64_MAX, WEFT_FORMAT, "adapter_model.safetensors");
    assert_true(made_peft(peft, "{}", PEFT_Q, 2));
    assert_int_equal(truncate(weights, BIG), 0);
    refused_early(peft, UINT64_MAX, WEFT_FORMAT, "adapter_config.json");
    assert_true(made_peft(peft, CONFIG "}", PEFT_Q, 2));
    for (int n = 7; n <= 14; n += 7) { /* 7: shorter than the length of its header */
        assert_true((f = fopen(weights, "w")) && fprintf(f, "%.*s", n, "no safetensors") > 0 && !fclose(f));
        if (n > 7) assert_int_equal(truncate(weights, BIG), 0);
        refused_early(peft, UINT64_MAX, WEFT_FORMAT, "adapter_model.safetensors");
    }
}

/* Keys that are longer than what is read first. */
static void long_headers_are_read_on(void **state)
{
    (void)state;
    enum { LONG = 300000 };
    char *text = malloc(LONG);
    weft__gguf_writer *w;
    weft__adapt *a;
    weft_error err = {0};
    memset(text, 'x', LONG);
    for (int good = 0; good < 2; good++) {
        assert_int_equal(weft__gguf_writer_create(file, 0, &w, NULL), WEFT_OK);
        assert_int_equal(weft__gguf_put_string(w, "general.description", text, LONG, NULL), WEFT_OK);
        weft__gguf_put_string(w, "general.architecture", "llama", 5, NULL);
        weft__gguf_put_string(w, "general.type", "adapter", 7, NULL);
        weft__gguf_put_string(w, "adapter.type", good ? "lora" : "none", 4, NULL);
        for (int i = 0; i < 2; i++) weft__gguf_declare(w, Q_PAIR[i].name, WEFT_F32, 2, Q_PAIR[i].d, NULL);
        assert_int_equal(weft__gguf_begin(w, NULL), WEFT_OK);
        for (int i = 0; i < 2; i++) {
            float *v = made_values(3, made_count(&Q_PAIR[i]));
            weft__gguf_write(w, v, made_count(&Q_PAIR[i]) * sizeof *v, NULL);
            free(v);
        }
        assert_int_equal(weft__gguf_finish(w, NULL), WEFT_OK);
        weft__gguf_writer_destroy(&w);
        assert_int_equal(weft__adapt_open(file, NULL, UINT64_MAX, &a, &err), good ? WEFT_OK : WEFT_UNSUPPORTED);
        weft__adapt_close(&a);
    }
    free(text);
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

static void merged_values_stay_finite(void **state)
{
    (void)state;
    static const weft__adapt_method methods[] = {WEFT__ADAPT_CAT, WEFT__ADAPT_LINEAR, WEFT__ADAPT_TIES, WEFT__ADAPT_DARE};
    float big[4 * N];
    for (size_t i = 0; i < 4 * N; i++) big[i] = 1e30f;
    const made t[] = {{Q_A, 2, {K, 4}, big}, {Q_B, 2, {4, N}, big}};
    recipe r = {"adapter", "lora", "llama", 8, t, 2};
    weft__adapt *a = open_made(&r), *merged;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        weft__adapt_use uses[] = {{a, 3e38f}, {a, 1}};
        const weft__adapt_mix mix = {.method = methods[i], .density = 0.5, .seed = 1};
        weft_error err = {0};
        assert_int_equal(weft__adapt_merge(uses, 2, &mix, &merged, &err), WEFT_ARGUMENT);
        assert_non_null(strstr(err.message, "blk.0.attn_q.weight: the merged values"));
        assert_null(merged);
        uses[0].scale = 3;
        assert_int_equal(weft__adapt_merge(uses, 2, &mix, &merged, &err), WEFT_OK);
        weft__adapt_close(&merged);
    }
    weft__adapt_close(&a);
}

/* A scale whose alpha, scale * rank, float32 does not have. */
static void what_is_written_can_be_read(void **state)
{
    (void)state;
    const float scale = 3e38f;
    const made t[] = {Q_PAIR[0], Q_PAIR[1], {"blk.0.attn_q.weight.lora_scale", 1, {1}, &scale}};
    recipe r = {"adapter", "lora", "llama", 8, t, 3};
    weft__adapt *a = open_made(&r), *again;
    weft_error err = {0};
    if (weft__adapt_write_gguf(a, "llama", file, &err) || weft__adapt_open(file, NULL, UINT64_MAX, &again, &err))
        fail_msg("%s", err.message);
    assert_memory_equal(&a->id, &again->id, sizeof a->id);
    weft__adapt_close(&again);
    assert_int_equal(weft__adapt_write_peft(a, &made_names, peft, &err), WEFT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "blk.0.attn_q.weight: its alpha would be 1.2e+39"));
    weft__adapt_close(&a);
}

/* In a folder that holds an adapter, weights never come to lie beside another adapter's configuration: where that cannot be taken away, here
 * because it is a folder, the old weights stay. */
static int q_module(const void *arg, const char *tensor, int32_t expert, char *out, size_t size, weft__adapt_place *place)
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
        for (size_t v = 0; v < VOCAB; v++) assert_true(p->b[v * 4 + j] == made_value(made_seed(t[0].name), j * VOCAB + v));
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

/* Experts have magnitudes of their own. Those that no module of a folder names have zeros, and stay as they are; zeros of a module, or beside
 * what changes an expert, are refused. */
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

/* PEFT saves an embedding's own weights with its change: they may be there, in any precision that the base is kept in, but no others. */
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
        assert_non_null(strstr(err.message, "the token_embd.weight beside its change is not that of base (an NMSE of "));
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
        {CONFIG ",\"modules_to_save\":[\"lm_head\"]}", "target_modules instead, or merge the adapter", WEFT_UNSUPPORTED},
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
    /* The last takes all the steps that a pattern may take: many seconds where each is emulated, and the message is the same. */
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

/* ---- allocations ---- */

static int open_both(void *arg)
{
    weft__adapt *a;
    (void)arg;
    if (weft__adapt_open(file, NULL, UINT64_MAX, &a, NULL)) return 0;
    weft__adapt_close(&a);
    if (weft__adapt_open(peft, &made_names, UINT64_MAX, &a, NULL)) return 0;
    weft__adapt_close(&a);
    return 1;
}

static int merge_uneven(void *arg)
{
    weft__adapt **of = arg, *merged;
    const weft__adapt_use uses[] = {{of[0], 1}, {of[1], 0.5f}};
    const weft__adapt_mix mix = {.method = WEFT__ADAPT_TIES, .density = 0.5};
    weft_status st = weft__adapt_merge(uses, 2, &mix, &merged, NULL);
    assert_true(st == WEFT_OK || (st == WEFT_NO_MEMORY && !merged));
    weft__adapt_close(&merged);
    return st == WEFT_OK;
}

static void refused_allocations_leave_nothing(void **state)
{
    (void)state;
    recipe r = q_recipe();
    assert_true(made_gguf(file, &r));
    const made t[] = {PEFT_Q[0], PEFT_Q[1], {"base_model.model.model.embed_tokens.base_layer.weight", 2, {K, VOCAB}}};
    assert_true(made_peft(peft, CONFIG ",\"alpha_pattern\":{\"q_proj\":5}}", t, 3));
    assert_true(fail_each(open_both, NULL) > 10);
    const made narrow[] = {{Q_A, 2, {K, 3}}, {Q_B, 2, {3, N}}};
    recipe other = {"adapter", "lora", "llama", 8, narrow, 2};
    weft__adapt *of[2] = {open_made(&r), NULL};
    of[1] = open_made(&other);
    assert_true(fail_each(merge_uneven, of) > 5);
    weft__adapt_close(&of[1]);
    weft__adapt_close(&of[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_has_its_scale),
        cmocka_unit_test(an_embedding_is_turned),
        cmocka_unit_test(the_id_is_of_the_content),
        cmocka_unit_test(hostile_files_are_refused),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(another_base_is_told_apart),
        cmocka_unit_test(fingerprints_are_of_the_weights),
        cmocka_unit_test(rows_of_heads_are_paired),
        cmocka_unit_test(scales_follow_the_patterns),
        cmocka_unit_test(pickled_weights_are_refused_with_the_remedy),
        cmocka_unit_test(modules_are_selected_as_by_peft),
        cmocka_unit_test(experts_come_together),
        cmocka_unit_test(room_is_counted_before_it_is_taken),
        cmocka_unit_test(what_is_no_adapter_is_not_read_whole),
        cmocka_unit_test(long_headers_are_read_on),
        cmocka_unit_test(experts_scales_stay_finite),
        cmocka_unit_test(merged_values_stay_finite),
        cmocka_unit_test(what_is_written_can_be_read),
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
        cmocka_unit_test(refused_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
