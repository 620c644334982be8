// SPDX-License-Identifier: Apache-2.0
/* golden.c: claims about whole models on the tier that WEFT_CPU names: logits and greedy ids against the goldens, and
 * the same bits for every chunking and number of threads. CTest runs it once per tier. With the argument "goldens" it
 * is those alone. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "claims.h"
#include "model/cuts.h"
#include "model/shared.h"
#include "model/tier.h"
#include "weft/weft.h"

struct claim {
    const char *golden; /* name of the golden, and of the model */
    double nmse_ref, nmse_fast;
    double max_abs;  /* 0: not claimed */
    int greedy_fast; /* greedy ids are claimed on the fast tiers too */
    int no_greedy;   /* the golden's ids contain a near tie */
};

static const struct claim CLAIMS[] = {
    {"stories260K", 1e-8, 1e-8, 2e-3, 1, 0},      {"tiny-llama.f16", 1e-8, 5e-6, 0, 0, 0},
    {"tiny-llama3.f16", 1e-8, 5e-6, 0, 0, 0},     {"tiny-llama.BF16", 1e-8, 1e-4, 0, 0, 0},
    {"tiny-mixtral.f16", 1e-8, 5e-6, 0, 0, 0},    {"tiny-qwen2.f16", 1e-8, 5e-6, 0, 0, 0},
    {"tiny-qwen3.f16", 1e-8, 5e-6, 0, 0, 0},      {"tiny-qwen3moe.f16", 1e-8, 5e-6, 0, 0, 0},
    {"tiny-phi3.f16", 1e-8, 5e-6, 0, 0, 0},       {"tiny-gemma2.f16", 1e-8, 5e-6, 0, 0, 0},
    {"tiny-gemma3.f16", 1e-8, 5e-6, 0, 0, 1},     {"tiny-llama.Q4_0", 1e-7, 1e-3, 0, 0, 0},
    {"tiny-llama.Q4_1", 1e-7, 1e-3, 0, 0, 0},     {"tiny-llama.Q5_0", 1e-7, 1e-3, 0, 0, 0},
    {"tiny-llama.Q5_1", 1e-7, 1e-3, 0, 0, 0},     {"tiny-llama.Q8_0", 1e-7, 1e-3, 0, 0, 0},
    {"tiny-llama.IQ4_NL", 1e-7, 1e-3, 0, 0, 0},   {"tiny-llama.Q2_K", 1e-7, 2.5e-3, 0, 0, 0},
    {"tiny-llama.Q3_K_S", 1e-7, 2.5e-3, 0, 0, 0}, {"tiny-llama.Q4_K_S", 1e-7, 2.5e-3, 0, 0, 0},
    {"tiny-llama.Q5_K_S", 1e-7, 2.5e-3, 0, 0, 0}, {"tiny-llama.Q6_K", 1e-7, 2.5e-3, 0, 0, 0},
    {"tiny-llama.IQ4_XS", 1e-7, 2.5e-3, 0, 0, 0},
};
enum {
    N_CLAIMS = sizeof CLAIMS / sizeof *CLAIMS,
    N_ARCHITECTURES =
        11 /* the first; what follows is one of them in types of which check_kernels knows every product */,
    EVERY = CLAIMS_REPEATED(1, 2, 4) /* of them is cut in many ways */,
    N_GREEDY = CLAIMS_REPEATED(64, 64, 16) /* ids at most */
};

#define EVERY_TYPE CLAIMS_REPEATED(1, 1, CLAIMS_SWEPT(3, 1))

static weft_model *open_with(const void *name, int threads, weft_rope_params rope)
{
    weft_model *model = NULL;
    weft_model_params params;
    weft_error err = {0};
    weft_model_params_default(&params);
    params.n_threads = threads;
    params.rope = rope;
    if (weft_model_open(shared_path("models/%s.gguf", name), &params, &model, &err))
        fail_msg("%s: %s", (const char *)name, err.message);
    return model;
}

static weft_model *open_model(const void *name, int threads)
{
    return open_with(name, threads, (weft_rope_params){0});
}

/* For texts that are a little longer than what the models were trained for. */
static weft_model *open_stretched(const void *name, int threads)
{
    return open_with(name, threads, (weft_rope_params){.scaling = WEFT_ROPE_SCALING_LINEAR, .factor = 2});
}

static void read_golden(const char *name, struct golden *g)
{
    if (!golden_read(name, g)) skip_material(name);
}

static void compare_logits(const struct claim *c, const struct golden *g, const float *logits)
{
    double error = 0, power = 0, max = 0, bound = tier_is_exact() ? c->nmse_ref : c->nmse_fast;
    for (int i = 0; i < g->n_prompt * GOLDEN_VOCAB; i++) {
        double d = (double)logits[i] - (double)g->logits[i];
        error += d * d;
        power += (double)g->logits[i] * (double)g->logits[i];
        if (!(fabs(d) <= max)) max = fabs(d);
    }
    printf("           %-20s NMSE %.2e (at most %.1e), largest difference %.2e\n", c->golden, error / power, bound,
           max);
    if (!(error / power <= bound)) fail_msg("%s: NMSE %g is above %g", c->golden, error / power, bound);
    if (c->max_abs > 0 && !(max <= c->max_abs)) fail_msg("%s: a logit differs by %g", c->golden, max);
}

static int32_t best(const float *logits)
{
    int32_t at = 0;
    for (int32_t i = 1; i < GOLDEN_VOCAB; i++)
        if (logits[i] > logits[at]) at = i;
    return at;
}

static void compare_greedy(const struct claim *c, const struct golden *g, weft_session *session, const float *logits)
{
    float next[GOLDEN_VOCAB];
    int32_t id = best(logits + (size_t)(g->n_prompt - 1) * GOLDEN_VOCAB);
    for (int i = 0; i < g->n_greedy && i < N_GREEDY; i++) {
        if (id != g->greedy[i]) fail_msg("%s: greedy id %d is %d, the golden has %d", c->golden, i, id, g->greedy[i]);
        eval(session, &id, 1, 1, next);
        id = best(next);
    }
}

static void matches_the_golden(const struct claim *c)
{
    struct golden g;
    read_golden(c->golden, &g);
    weft_model *model = open_model(c->golden, 2);
    weft_session *session = open_session(model, 128, 0, WEFT_F32);
    float *logits = malloc((size_t)g.n_prompt * GOLDEN_VOCAB * sizeof *logits);
    eval(session, g.prompt, g.n_prompt, 1, logits);
    compare_logits(c, &g, logits);
    if (!c->no_greedy && (tier_is_exact() || c->greedy_fast)) compare_greedy(c, &g, session, logits);
    weft_session_free(&session);
    weft_model_close(&model);
    free(logits);
    free(g.logits);
}

/* One prefill; chunks of 1, 5 and 16; 1 and 2 threads: every bit equal. What pages of each type do to architectures is
 * same_bits_over_pages'. */
static void same_bits_however_it_is_cut(const struct claim *c)
{
    static const struct cut cuts[] = {{1, 0}, {1, 1}, {1, 5}, {1, 16}, {2, 0}, {2, 1}, {2, 5}, {2, 16}};
    static const struct cut some[] = {{1, 0}, {2, 0}, {2, 5}};
    struct golden g;
    const int nth = (int)(c - CLAIMS) / EVERY;
    read_golden(c->golden, &g);
    if (CLAIMS_REPEATED(1, 0, 0))
        same_bits(c->golden, open_model, c->golden, nth, g.prompt, g.n_prompt, cuts, sizeof cuts / sizeof *cuts);
    else same_bits(c->golden, open_model, c->golden, nth, g.prompt, g.n_prompt, some, sizeof some / sizeof *some);
    free(g.logits);
}

/* Architectures that differ in what they do with the context: grouped heads, windows of 16 and 32, soft-caps, norms on
 * keys. */
static void same_bits_over_pages(void **state)
{
    (void)state;
    static const char *const names[] = {"tiny-gemma3.f16", "stories260K",       "tiny-phi3.f16",
                                        "tiny-gemma2.f16", "tiny-qwen3moe.f16", "tiny-llama.Q4_K_S"};
    for (size_t i = 0; i < (tier_is_slow() ? CLAIMS_REPEATED(2, 2, 1) : sizeof names / sizeof *names); i++) {
        if (!shared_path("models/%s.gguf", names[i])) skip_material(names[i]);
        same_bits_of_a_long_text(names[i], open_stretched, names[i], i && tier_is_slow() ? (int)i : EVERY_KIND);
    }
}

static void golden_claim(void **state)
{
    matches_the_golden(*state);
}

static void bits_claim(void **state)
{
    same_bits_however_it_is_cut(*state);
}

/* Without the BF16 unit, whose products round activations, BF16 weights are as near as F16 ones. */
static void exact_products(void **state)
{
    static const struct claim exact = {"tiny-llama.BF16", 1e-8, 5e-6, 0, 0, 0};
    (void)state;
    setenv("WEFT_EXACT", "1", 1);
    matches_the_golden(&exact);
    unsetenv("WEFT_EXACT");
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[2 * N_CLAIMS + 2];
    static char names[2 * N_CLAIMS][96];
    if (!tier_is_here()) return 77;
    int n = 0, alone = argc > 1 && !strcmp(argv[1], "goldens");
    for (int i = 0; i < N_CLAIMS; i += i < N_ARCHITECTURES ? 1 : EVERY_TYPE)
        for (int kind = 0; kind < (alone || i % EVERY ? 1 : 2); kind++, n++) {
            snprintf(names[n], sizeof names[n], "%s %s", CLAIMS[i].golden,
                     kind ? "gives the same bits however it is cut" : "matches its golden");
            tests[n] = (struct CMUnitTest){names[n], kind ? bits_claim : golden_claim, NULL, NULL, (void *)&CLAIMS[i]};
        }
    if (!alone) tests[n++] = (struct CMUnitTest)cmocka_unit_test(same_bits_over_pages);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(exact_products);
    return claims_status(cmocka_run_group_tests(tests, NULL, NULL));
}
