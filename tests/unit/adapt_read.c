// SPDX-License-Identifier: Apache-2.0
/* adapt_read.c: claims about reading adapters: what GGUF files mean, everything that must be refused by name, and what
 * is finite. */
#include "unit/adapt_open.h"

#include <math.h>

#include "quant/encode.h"

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
    assert_int_equal(weft__adapt_open(folder, NULL, UINT64_MAX, &a, &err),
                     WEFT_ARGUMENT); /* a folder's names need a base */
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

/* A base is the same in every format; an adapter says which it was, keeps it when it is written, and is refused by
 * another. */
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
    assert_true(weft__adapt_fingerprint(x, WEFT_F32, D) != print &&
                weft__adapt_fingerprint(x, WEFT_F32, D - 1) != print);
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

static void merged_values_stay_finite(void **state)
{
    (void)state;
    static const weft__adapt_method methods[] = {WEFT__ADAPT_CAT, WEFT__ADAPT_LINEAR, WEFT__ADAPT_TIES,
                                                 WEFT__ADAPT_DARE};
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
        cmocka_unit_test(what_is_no_adapter_is_not_read_whole),
        cmocka_unit_test(long_headers_are_read_on),
        cmocka_unit_test(merged_values_stay_finite),
        cmocka_unit_test(what_is_written_can_be_read),
        cmocka_unit_test(refused_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
