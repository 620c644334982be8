/* golden.c: claims about whole models on the tier that WEFT_CPU names: logits and greedy ids against the goldens, and the same
 * bits for every chunking and number of threads. CTest runs it once per tier. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/cpu.h"
#include "model/shared.h"
#include "weft/weft.h"

struct claim {
    const char *golden; /* name of the golden, and of the model */
    double nmse_ref, nmse_fast;
    double max_abs; /* 0: not claimed */
    int greedy_fast; /* greedy ids are claimed on the fast tiers too */
    int no_greedy;   /* the golden's ids contain a near tie */
};

static const struct claim CLAIMS[] = {
    {"stories260K", 1e-8, 1e-8, 2e-3, 1, 0},
    {"tiny-llama.f16", 1e-8, 5e-6, 0, 0, 0},
    {"tiny-llama3.f16", 1e-8, 5e-6, 0, 0, 0},
    {"tiny-llama.BF16", 1e-8, 1e-4, 0, 0, 0},
    {"tiny-mixtral.f16", 1e-8, 5e-6, 0, 0, 0},
    {"tiny-qwen2.f16", 1e-8, 5e-6, 0, 0, 0},
    {"tiny-qwen3.f16", 1e-8, 5e-6, 0, 0, 0},
    {"tiny-qwen3moe.f16", 1e-8, 5e-6, 0, 0, 0},
    {"tiny-phi3.f16", 1e-8, 5e-6, 0, 0, 0},
    {"tiny-gemma2.f16", 1e-8, 5e-6, 0, 0, 0},
    {"tiny-gemma3.f16", 1e-8, 5e-6, 0, 0, 1},
    {"tiny-llama.Q4_0", 1e-7, 1e-3, 0, 0, 0},
    {"tiny-llama.Q4_1", 1e-7, 1e-3, 0, 0, 0},
    {"tiny-llama.Q5_0", 1e-7, 1e-3, 0, 0, 0},
    {"tiny-llama.Q5_1", 1e-7, 1e-3, 0, 0, 0},
    {"tiny-llama.Q8_0", 1e-7, 1e-3, 0, 0, 0},
    {"tiny-llama.IQ4_NL", 1e-7, 1e-3, 0, 0, 0},
    {"tiny-llama.Q2_K", 1e-7, 2.5e-3, 0, 0, 0},
    {"tiny-llama.Q3_K_S", 1e-7, 2.5e-3, 0, 0, 0},
    {"tiny-llama.Q4_K_S", 1e-7, 2.5e-3, 0, 0, 0},
    {"tiny-llama.Q5_K_S", 1e-7, 2.5e-3, 0, 0, 0},
    {"tiny-llama.Q6_K", 1e-7, 2.5e-3, 0, 0, 0},
    {"tiny-llama.IQ4_XS", 1e-7, 2.5e-3, 0, 0, 0},
};
enum { N_CLAIMS = sizeof CLAIMS / sizeof *CLAIMS };

static int on_ref(void)
{
    return weft__cpu_tiers() == 1u << WEFT__TIER_REF;
}

static weft_model *open_model(const char *name, int threads)
{
    weft_model *model = NULL;
    weft_model_params params;
    weft_error err = {0};
    weft_model_params_default(&params);
    params.n_threads = threads;
    if (weft_model_open(shared_path("models/%s.gguf", name), &params, &model, &err)) fail_msg("%s: %s", name, err.message);
    return model;
}

static weft_session *open_session(weft_model *model, int n_ctx, int chunk, uint32_t kv)
{
    weft_session *session = NULL;
    weft_session_params params;
    weft_error err = {0};
    weft_session_params_default(&params);
    params.kv_dtype = kv;
    params.n_ctx = n_ctx;
    params.chunk = chunk;
    if (weft_session_new(model, &params, &session, &err)) fail_msg("%s", err.message);
    return session;
}

static void eval(weft_session *session, const int32_t *tokens, int n, float *logits)
{
    weft_error err = {0};
    if (weft_session_eval(session, tokens, n, 1, logits, &err)) fail_msg("%s", err.message);
}

static void compare_logits(const struct claim *c, const struct golden *g, const float *logits)
{
    double error = 0, power = 0, max = 0, bound = on_ref() ? c->nmse_ref : c->nmse_fast;
    for (int i = 0; i < g->n_prompt * GOLDEN_VOCAB; i++) {
        double d = (double)logits[i] - (double)g->logits[i];
        error += d * d;
        power += (double)g->logits[i] * (double)g->logits[i];
        if (!(fabs(d) <= max)) max = fabs(d);
    }
    printf("           %-20s NMSE %.2e (at most %.1e), largest difference %.2e\n", c->golden, error / power, bound, max);
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
    for (int i = 0; i < g->n_greedy; i++) {
        if (id != g->greedy[i]) fail_msg("%s: greedy id %d is %d, the golden has %d", c->golden, i, id, g->greedy[i]);
        eval(session, &id, 1, next);
        id = best(next);
    }
}

static void matches_the_golden(const struct claim *c)
{
    struct golden g;
    if (!golden_read(c->golden, &g)) {
        printf("           %s: no golden; set WEFT_SHARED\n", c->golden);
        skip();
    }
    weft_model *model = open_model(c->golden, 2);
    weft_session *session = open_session(model, 128, 0, WEFT_F32);
    float *logits = malloc((size_t)g.n_prompt * GOLDEN_VOCAB * sizeof *logits);
    eval(session, g.prompt, g.n_prompt, logits);
    compare_logits(c, &g, logits);
    if (!c->no_greedy && (on_ref() || c->greedy_fast)) compare_greedy(c, &g, session, logits);
    weft_session_free(&session);
    weft_model_close(&model);
    free(logits);
    free(g.logits);
}

/* One prefill; chunks of 1, 5 and 16; 1 and 2 threads; both kinds of pages: every bit equal. */
static void same_bits_however_it_is_cut(const struct claim *c)
{
    static const int chunks[] = {0, 1, 5, 16};
    struct golden g;
    if (!golden_read(c->golden, &g)) skip();
    size_t n = (size_t)g.n_prompt * GOLDEN_VOCAB;
    float *first = malloc(n * sizeof *first), *logits = malloc(n * sizeof *logits);
    for (int kv = 0; kv < 2; kv++)
        for (int threads = 1; threads <= 2; threads++) {
            weft_model *model = open_model(c->golden, threads);
            for (int i = 0; i < 4; i++) {
                int base = threads == 1 && i == 0;
                weft_session *session = open_session(model, 128, chunks[i], kv ? WEFT_F16 : WEFT_F32);
                eval(session, g.prompt, g.n_prompt, base ? first : logits);
                if (!base && memcmp(first, logits, n * sizeof *first))
                    fail_msg("%s: chunks of %d with %d threads and %s pages change bits", c->golden, chunks[i], threads, kv ? "f16" : "f32");
                weft_session_free(&session);
            }
            weft_model_close(&model);
        }
    free(first);
    free(logits);
    free(g.logits);
}

static void golden_claim(void **state)
{
    matches_the_golden(*state);
}

static void bits_claim(void **state)
{
    same_bits_however_it_is_cut(*state);
}

/* Sessions stepped together give each row's bits of a session stepped alone. */
static void a_batch_changes_nothing(void **state)
{
    (void)state;
    enum { N = 5, STEPS = 12, VOCAB = 512 };
    weft_model_params mp;
    weft_session_params sp;
    weft_model *model = NULL;
    weft_session *together[N], *alone = NULL;
    static float batch[STEPS][N][VOCAB], single[VOCAB];
    int32_t tokens[N];
    weft_model_params_default(&mp);
    weft_session_params_default(&sp);
    sp.n_ctx = 64;
    assert_int_equal(weft_model_synthetic("tiny", WEFT_Q4_0, &mp, &model, NULL), WEFT_OK);
    assert_int_equal(weft_session_new_group(model, &sp, N, together, NULL), WEFT_OK);
    for (int i = 0; i < N; i++) /* different lengths */
        for (int k = 0; k < 3 * i; k++) {
            int32_t t = 100 * i + k;
            assert_int_equal(weft_session_eval(together[i], &t, 1, 0, NULL, NULL), WEFT_OK);
        }
    for (int s = 0; s < STEPS; s++) {
        for (int i = 0; i < N; i++) tokens[i] = (37 * s + 11 * i) % VOCAB;
        assert_int_equal(weft_session_eval_group(together, tokens, N, batch[s][0], NULL), WEFT_OK);
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(weft_session_new(model, &sp, &alone, NULL), WEFT_OK);
        for (int k = 0; k < 3 * i; k++) {
            int32_t t = 100 * i + k;
            assert_int_equal(weft_session_eval(alone, &t, 1, 0, NULL, NULL), WEFT_OK);
        }
        for (int s = 0; s < STEPS; s++) {
            int32_t t = (37 * s + 11 * i) % VOCAB;
            assert_int_equal(weft_session_eval(alone, &t, 1, 0, single, NULL), WEFT_OK);
            assert_memory_equal(single, batch[s][i], sizeof single);
        }
        weft_session_free(&alone);
    }
    for (int i = 0; i < N; i++) weft_session_free(&together[i]);
    weft_model_close(&model);
}

int main(void)
{
    static struct CMUnitTest tests[2 * N_CLAIMS + 1];
    static char names[2 * N_CLAIMS][96];
    const char *mask = getenv("WEFT_CPU");
    uint32_t tiers;
    weft_error err = {0};
    if (mask && weft__cpu_tiers_for(mask, &tiers, &err)) {
        printf("SKIP: %s\n", err.message);
        return 77;
    }
    for (int t = 0; mask && t < WEFT__TIER_COUNT; t++)
        if (!strcmp(mask, weft__tier_name((weft__tier)t)) && !(weft__cpu_tiers() >> t & 1)) {
            printf("SKIP: this processor has no %s\n", mask);
            return 77;
        }
    int n = 0;
    for (int i = 0; i < N_CLAIMS; i++)
        for (int kind = 0; kind < 2; kind++, n++) {
            snprintf(names[n], sizeof names[n], "%s %s", CLAIMS[i].golden, kind ? "gives the same bits however it is cut" : "matches its golden");
            tests[n] = (struct CMUnitTest){names[n], kind ? bits_claim : golden_claim, NULL, NULL, (void *)&CLAIMS[i]};
        }
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(a_batch_changes_nothing);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
