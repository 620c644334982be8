// SPDX-License-Identifier: Apache-2.0
/* train_golden.c: the forward pass that training differentiates, against the golden logits of whole models: every dense
 * architecture, every format, LoRA; and experts, which are refused. */
#include <math.h>
#include <stdio.h>

#include "fixture.h"

#include "claims.h"
#include "model/shared.h"
#include "train/train.h"

static const char *const NAMES[] = {"tiny-llama.f16",    "tiny-llama3.f16",   "tiny-qwen2.f16",    "tiny-qwen3.f16",
                                    "tiny-phi3.f16",     "tiny-gemma2.f16",   "tiny-gemma3.f16",   "tiny-llama.BF16",
                                    "tiny-llama.IQ4_NL", "tiny-llama.IQ4_XS", "tiny-llama.Q2_K",   "tiny-llama.Q3_K_S",
                                    "tiny-llama.Q4_0",   "tiny-llama.Q4_1",   "tiny-llama.Q4_K_S", "tiny-llama.Q5_0",
                                    "tiny-llama.Q5_1",   "tiny-llama.Q5_K_S", "tiny-llama.Q6_K",   "tiny-llama.Q8_0",
                                    "stories260K"};

/* log p of each next token of the prompt, as the reference has it. */
static double reference(const struct golden *g, int r)
{
    const float *x = g->logits + (size_t)r * GOLDEN_VOCAB;
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < GOLDEN_VOCAB; i++)
        most = (double)x[i] > most ? (double)x[i] : most; /* fmax: GCC 12 for AArch64 fails */
    for (int i = 0; i < GOLDEN_VOCAB; i++) sum += exp((double)x[i] - most);
    return (double)x[g->prompt[r + 1]] - most - log(sum);
}

static weft__trainer *open_trainer(const char *path, int32_t rank, float alpha, const char *targets, weft__gguf **g,
                                   weft_status want)
{
    weft__train_options o;
    weft__source src;
    weft__trainer *t;
    weft_error err = {0};
    weft__train_options_default(&o);
    o.schedule = WEFT__TRAIN_LR_CONSTANT;
    o.n_threads = 2;
    o.exact = 1;
    o.max_rows = GOLDEN_TOKENS;
    o.lora_rank = rank;
    o.lora_alpha = alpha;
    o.lora_targets = targets;
    assert_int_equal(weft__gguf_open(path, g, NULL), WEFT_OK);
    weft__source_gguf(*g, path, &src);
    weft_status st = weft__trainer_create(&src, &o, &t, &err);
    if (st != want) fail_msg("%s: %s", path, err.message);
    return t;
}

static void compare(weft__trainer *t, const char *name, struct golden *g)
{
    int32_t segment[GOLDEN_TOKENS] = {0}, target[GOLDEN_TOKENS];
    float logp[GOLDEN_TOKENS];
    int n = g->n_prompt;
    for (int r = 0; r < n; r++) target[r] = r + 1 < n ? g->prompt[r + 1] : -1;
    weft__train_batch b = {n, g->prompt, segment, target, NULL};
    assert_int_equal(weft__trainer_loss(t, &b, 1, logp, NULL, NULL), WEFT_OK);
    for (int r = 0; r + 1 < n; r++)
        if (!(fabs((double)logp[r] - reference(g, r)) <= 2e-4))
            fail_msg("%s, row %d: log p %.6f, the reference has %.6f", name, r, (double)logp[r], reference(g, r));
    free(g->logits);
}

static void models(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        const char *path = shared_path("models/%s.gguf", NAMES[i]);
        struct golden g;
        weft__gguf *file;
        if (!path || !golden_read(NAMES[i], &g)) skip_material(NAMES[i]);
        weft__trainer *t = open_trainer(path, 4, 4, NULL, &file, WEFT_OK);
        compare(t, NAMES[i], &g);
        weft__trainer_destroy(&t);
        weft__gguf_close(&file);
    }
}

/* The adapters' pairs are put where the trainer's are. */
static void adapters(void **state)
{
    static const struct {
        const char *name;
        int32_t rank;
        const char *targets;
    } all[] = {{"tiny-llama.lora-a", 8, "attn_q,attn_v"}, {"tiny-llama.lora-b", 16, NULL}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *base = shared_path("models/%s.gguf", "tiny-llama.f16"),
                   *path = shared_path("models/%s.gguf", all[i].name);
        struct golden g;
        weft__gguf *file, *adapter;
        if (!base || !path || !golden_read(all[i].name, &g)) skip_material(all[i].name);
        weft__trainer *t = open_trainer(base, all[i].rank, 16, all[i].targets, &file, WEFT_OK);
        assert_int_equal(weft__gguf_open(path, &adapter, NULL), WEFT_OK);
        assert_int_equal(weft__trainer_n_params(t), weft__gguf_tensors(adapter)->n);
        for (size_t p = 0; p < weft__trainer_n_params(t); p++) {
            weft__train_param param = weft__trainer_param(t, p);
            const weft__tensor_desc *d;
            assert_int_equal(weft__gguf_tensor(adapter, param.name, &d, NULL), WEFT_OK);
            assert_true(d->dtype == WEFT_F32 && d->d[0] == param.d[0] && d->d[1] == param.d[1]);
            weft__trainer_set_param(t, p, weft__tensor_data(d));
        }
        compare(t, all[i].name, &g);
        weft__gguf_close(&adapter);
        weft__trainer_destroy(&t);
        weft__gguf_close(&file);
    }
}

static void experts(void **state)
{
    const char *path = shared_path("models/%s.gguf", "tiny-mixtral.f16");
    weft__gguf *file;
    (void)state;
    if (!path) skip_material("tiny-mixtral.f16");
    assert_null(open_trainer(path, 4, 4, NULL, &file, WEFT_UNSUPPORTED));
    weft__gguf_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(models), cmocka_unit_test(adapters), cmocka_unit_test(experts)};
    return claims_status(cmocka_run_group_tests(tests, NULL, NULL));
}
