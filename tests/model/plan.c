// SPDX-License-Identifier: Apache-2.0
/* plan.c: claims about compiled plans of whole models, on the tier that WEFT_CPU names: bit for bit the logits of the
 * model they were made of, for every format and architecture; and memory that runs out, while they are written and
 * while they are used, is an error and no leak. CTest runs it once per tier. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "claims.h"

#include "base/hash.h"
#include "format/plan_parts.h"
#include "model/shared.h"
#include "model/sweep.h"
#include "model/tier.h"
#include "weft/weft.h"

static const char *const MODELS[] = {"stories260K",       "tiny-llama.f16",  "tiny-llama3.f16",   "tiny-llama.BF16",
                                     "tiny-mixtral.f16",  "tiny-qwen2.f16",  "tiny-qwen3.f16",    "tiny-qwen3moe.f16",
                                     "tiny-phi3.f16",     "tiny-gemma2.f16", "tiny-gemma3.f16",   "tiny-llama.Q4_0",
                                     "tiny-llama.Q4_1",   "tiny-llama.Q5_0", "tiny-llama.Q5_1",   "tiny-llama.Q8_0",
                                     "tiny-llama.IQ4_NL", "tiny-llama.Q2_K", "tiny-llama.Q3_K_S", "tiny-llama.Q4_K_S",
                                     "tiny-llama.Q5_K_S", "tiny-llama.Q6_K", "tiny-llama.IQ4_XS"};

static char folder[64], path[128], made[128];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/weft-plan-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/model.plan", folder);
    snprintf(made, sizeof made, "%s/model.gguf", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(made);
    unlink(path);
    return rmdir(folder); /* fails when anything else was left there */
}

static weft_status compile(const char *model, weft_error *err)
{
    weft_plan_params params;
    weft_plan_result result;
    weft_plan_params_default(&params);
    params.n_threads = 2;
    return weft_plan_write(model, path, &params, &result, err);
}

/* Opens, evaluates n tokens in chunks and stores all logits. */
static weft_status logits_of(const char *model, int threads, int chunk, const int32_t *tokens, int n, float *out,
                             weft_error *err)
{
    weft_model_params mp;
    weft_session_params sp;
    weft_model *m = NULL;
    weft_session *s = NULL;
    weft_model_params_default(&mp);
    mp.n_threads = threads;
    mp.max_rows = 64;
    weft_session_params_default(&sp);
    sp.n_ctx = GOLDEN_TOKENS;
    sp.chunk = chunk;
    weft_status st = weft_model_open(model, &mp, &m, err);
    if (!st) st = weft_session_new(m, &sp, &s, err);
    if (!st) st = weft_session_eval(s, tokens, n, 1, out, err);
    weft_session_free(&s);
    weft_model_close(&m);
    return st;
}

static void same_bits(const char *name, const char *model)
{
    enum { N = CLAIMS_REPEATED(48, 48, 16) };
    static float from_model[N * GOLDEN_VOCAB], from_plan[N * GOLDEN_VOCAB];
    int32_t tokens[N];
    weft_error err = {0};
    for (int i = 0; i < N; i++) tokens[i] = 1 + i * 37 % (GOLDEN_VOCAB - 1);
    if (compile(model, &err)) fail_msg("%s: %s", name, err.message);
    if (logits_of(model, 2, 0, tokens, N, from_model, &err)) fail_msg("%s: %s", name, err.message);
    for (int threads = 1; threads <= 2; threads++) {
        memset(from_plan, 0, sizeof from_plan);
        if (logits_of(path, threads, threads == 1 ? 7 : 0, tokens, N, from_plan, &err))
            fail_msg("%s: %s", name, err.message);
        if (memcmp(from_model, from_plan, sizeof from_plan))
            fail_msg("%s: the plan's logits differ with %d threads", name, threads);
    }
}

/* Models of random weights, one per format. */
static void every_format(void **state)
{
    (void)state;
    static const uint32_t types[] = {WEFT_Q4_0, WEFT_F16,  WEFT_Q6_K, WEFT_F32,    WEFT_BF16,
                                     WEFT_Q4_1, WEFT_Q5_0, WEFT_Q5_1, WEFT_Q8_0,   WEFT_Q2_K,
                                     WEFT_Q3_K, WEFT_Q4_K, WEFT_Q5_K, WEFT_IQ4_NL, WEFT_IQ4_XS};
    size_t n = tier_is_slow() ? 3 : sizeof types / sizeof *types;
    for (size_t i = 0; i < n; i++) {
        weft_error err = {0};
        if (weft_synthetic_write("tiny", types[i], made, NULL, NULL, &err)) fail_msg("%s", err.message);
        same_bits(weft_dtype_describe(types[i]).name, made);
    }
    printf("           %zu formats\n", n);
}

static void every_model(void **state)
{
    (void)state;
    int n = 0;
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++) {
        const char *found = shared_path("models/%s.gguf", MODELS[i]);
        if (!found) skip_material(MODELS[i]);
        char model[512];
        snprintf(model, sizeof model, "%s", found ? found : "");
        same_bits(MODELS[i], model);
        n++;
    }
    printf("           %d models\n", n);
}

/* ---- plans that are whole and do not fit ---- */

typedef struct bytes {
    unsigned char *p;
    size_t n;
} bytes;

static bytes read_plan(void)
{
    bytes b = {NULL, 0};
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    b.n = (size_t)ftell(f);
    rewind(f);
    b.p = malloc(b.n);
    assert_true(b.p && fread(b.p, 1, b.n, f) == b.n);
    fclose(f);
    return b;
}

/* Changes the byte that stands `after` bytes behind a key of the metadata, and makes the checksums right again. */
static void forge(bytes b, const char *key, size_t after)
{
    weft__plan_file_header h;
    memcpy(&h, b.p, sizeof h);
    unsigned char *at = memmem(b.p, b.n, key, strlen(key));
    assert_non_null(at);
    at[strlen(key) + after] ^= 1;
    h.meta_hash = weft__hash(b.p + sizeof h, (size_t)h.meta_bytes);
    h.hash = weft__hash(&h, offsetof(weft__plan_file_header, hash));
    memcpy(b.p, &h, sizeof h);
    FILE *f = fopen(path, "wb");
    assert_true(f && fwrite(b.p, 1, b.n, f) == b.n && !fclose(f));
}

static void refused(const char *text)
{
    weft_model_params mp;
    weft_model *m = NULL;
    weft_error err = {0};
    weft_model_params_default(&mp);
    assert_int_equal(weft_model_open(path, &mp, &m, &err), WEFT_UNSUPPORTED);
    assert_null(m);
    if (!strstr(err.message, text) || !strstr(err.message, "weft compile") || !strstr(err.message, path))
        fail_msg("'%s' lacks '%s'", err.message, text);
}

static void plans_that_do_not_fit(void **state)
{
    (void)state;
    enum { TYPE = 4, LENGTH = 8 };
    weft_error err = {0};
    if (weft_synthetic_write("tiny", WEFT_Q4_0, made, NULL, NULL, &err) || compile(made, &err))
        fail_msg("%s", err.message);
    bytes b = read_plan();
    forge(b, WEFT__PLAN_FILE_WEIGHTS, TYPE);
    refused("made by another version (weft ");
    forge(b, WEFT__PLAN_FILE_WEIGHTS, TYPE);
    forge(b, WEFT__PLAN_FILE_PROVIDER, TYPE + LENGTH);
    refused("is for provider bpu, not for cpu");
    forge(b, WEFT__PLAN_FILE_PROVIDER, TYPE + LENGTH);
    forge(b, WEFT__PLAN_FILE_LAYOUT, TYPE + LENGTH + 3);
    refused("another tier or version");
    forge(b, WEFT__PLAN_FILE_LAYOUT, TYPE + LENGTH + 3);
    forge(b, "llama.embedding_length", TYPE); /* what the metadata say is checked as in any model */
    weft_model_params mp;
    weft_model *m;
    weft_model_params_default(&mp);
    assert_int_equal(weft_model_open(path, &mp, &m, &err), WEFT_FORMAT);
    free(b.p);
}

/* ---- memory that runs out ---- */

static weft_status write_it(const void *arg, weft_error *err)
{
    (void)arg;
    return compile(made, err);
}

static weft_status use_it(const void *arg, weft_error *err)
{
    (void)arg;
    static const int32_t tokens[] = {1, 2, 3, 4, 5};
    float out[5 * GOLDEN_VOCAB];
    return logits_of(path, 2, 2, tokens, 5, out, err);
}

static void failing_allocator(void **state)
{
    (void)state;
    weft_error err = {0};
    if (weft_synthetic_write("tiny", WEFT_Q8_0, made, NULL, NULL, &err)) fail_msg("%s", err.message);
    sweep(write_it, NULL);
    sweep(use_it, NULL);
}

int main(int argc, char **argv)
{
    if (!tier_is_here()) return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_format), cmocka_unit_test(plans_that_do_not_fit),
                                       cmocka_unit_test(failing_allocator)},
                            material[] = {cmocka_unit_test(every_model)};
    if (claims_material(argc, argv)) return claims_status(cmocka_run_group_tests(material, make_folder, remove_folder));
    return claims_status(cmocka_run_group_tests(tests, make_folder, remove_folder));
}
