// SPDX-License-Identifier: Apache-2.0
/* structs.c: programs that were built with smaller public structs run: each size up to this build's is read and filled,
 * on the heap, where a sanitizer sees what is beyond; none is refused, nor what is larger and zero there. */
#include "unit/fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "weft/eval.h"
#include "weft/train.h"
#include "weft/weft.h"

static weft_model *model;

/* ---- parameters: filled in, and taken ---- */

#define PARAMS(X)                                                                                                      \
    X(model)                                                                                                           \
    X(session)                                                                                                         \
    X(sampler)                                                                                                         \
    X(merge)                                                                                                           \
    X(engine)                                                                                                          \
    X(request)                                                                                                         \
    X(convert)                                                                                                         \
    X(plan) X(quantize) X(imatrix) X(pull) X(vocab) X(train) X(generate) X(chat_parser) X(perplexity) X(task) X(eval)

#define FILL(name)                                                                                                     \
    static void fill_##name(void *params, uint32_t size)                                                               \
    {                                                                                                                  \
        weft_##name##_params_init(params, size);                                                                       \
    }
PARAMS(FILL)

/* What it says of parameters at `p` that are otherwise fine. */
static weft_status use_model(const void *p, weft_error *err)
{
    weft_model *m = NULL;
    weft_status st = weft_model_open("absent.gguf", p, &m, err);
    return st == WEFT_NOT_FOUND || st == WEFT_IO ? WEFT_OK : st ? st : WEFT_INTERNAL;
}

static weft_status use_session(const void *p, weft_error *err)
{
    weft_session *s = NULL;
    weft_status st = weft_session_new(model, p, &s, err);
    weft_session_free(&s);
    return st;
}

static weft_status use_sampler(const void *p, weft_error *err)
{
    weft_sampler *s = NULL;
    weft_status st = weft_sampler_for(model, p, &s, err);
    weft_sampler_free(&s);
    return st ? st : (st = weft_sampler_new(8, p, &s, err), weft_sampler_free(&s), st);
}

/* Of those whose job cannot begin here: anything but WEFT_ABI is what they say next. */
static weft_status next_refusal(weft_status st)
{
    return st == WEFT_ABI ? st : st ? WEFT_OK : WEFT_INTERNAL;
}

static weft_status use_merge(const void *p, weft_error *err)
{
    weft_adapter_file *f = NULL;
    return next_refusal(weft_adapter_file_merge(NULL, 0, p, &f, err));
}

static weft_status use_engine(const void *p, weft_error *err)
{
    weft_engine *e = NULL;
    weft_status st = weft_engine_new(model, p, &e, err);
    weft_engine_free(&e);
    return st;
}

static weft_engine *engine;

static weft_status use_request(const void *p, weft_error *err)
{
    uint64_t number;
    return next_refusal(weft_engine_submit(engine, p, &number, NULL, err)); /* no event function */
}

static weft_status use_convert(const void *p, weft_error *err)
{
    return next_refusal(weft_convert("absent", "absent.gguf", p, err));
}

static weft_status use_plan(const void *p, weft_error *err)
{
    weft_plan_result r;
    return next_refusal(weft_plan_write("absent", "absent.plan", p, &r, err));
}

static weft_status use_quantize(const void *p, weft_error *err)
{
    weft_quantize_result r;
    weft_status st = next_refusal(weft_quantize("absent", "absent.gguf", "Q8_0", p, &r, err));
    return st ? st : next_refusal(weft_adapter_apply("absent", "absent.gguf", NULL, 0, "Q8_0", p, &r, err));
}

static weft_status use_imatrix(const void *p, weft_error *err)
{
    int32_t n, token = 1;
    return next_refusal(weft_imatrix_collect(model, &token, 1, p, "absent.gguf", &n, err));
}

static weft_status use_pull(const void *p, weft_error *err)
{
    weft_pull_result *r = malloc(sizeof *r);
    weft_status st = next_refusal(weft_pull("no name", p, r, err));
    free(r);
    return st;
}

static weft_status use_vocab(const void *p, weft_error *err)
{
    weft_vocab_result r;
    return next_refusal(weft_train_tokenizer(NULL, 0, "absent.gguf", p, &r, err));
}

static weft_status use_train(const void *p, weft_error *err)
{
    return next_refusal(weft_train(p, err)); /* no data */
}

static weft_status use_generate(const void *p, weft_error *err)
{
    weft_session *s = NULL;
    weft_sampler *sampler = NULL;
    weft_status st = weft_session_new(model, NULL, &s, err);
    if (!st) st = weft_sampler_for(model, NULL, &sampler, err);
    if (!st) st = next_refusal(weft_generate(s, sampler, p, NULL, err)); /* no tokens */
    weft_sampler_free(&sampler);
    weft_session_free(&s);
    return st;
}

static weft_status use_chat_parser(const void *p, weft_error *err)
{
    weft_chat *chat = NULL;
    weft_chat_prompt *prompt = NULL;
    weft_chat_parser *parser = NULL;
    weft_status st = weft_chat_open(model, NULL, 0, &chat, err);
    if (!st) st = weft_chat_render(chat, "[{\"role\": \"user\", \"content\": \"x\"}]", NULL, NULL, 1, &prompt, err);
    if (!st) st = weft_chat_parser_new(prompt, p, &parser, err);
    weft_chat_parser_free(&parser);
    weft_chat_prompt_free(&prompt);
    weft_chat_close(&chat);
    return st;
}

static weft_status use_perplexity(const void *p, weft_error *err)
{
    weft_perplexity_result r = {.size = sizeof r};
    return next_refusal(weft_perplexity(model, NULL, 0, p, &r, err)); /* no text */
}

static weft_task *task;
static weft_scores *scores;

static weft_status use_task(const void *p, weft_error *err)
{
    weft_task *t = NULL;
    return next_refusal(weft_task_open("absent.jsonl", p, &t, err));
}

static int no_more(void *arg, const weft_eval_shown *prompt)
{
    (void)arg;
    return prompt != NULL;
}

static weft_status use_eval(const void *p, weft_error *err)
{
    return weft_eval_show(engine, task, p, 1, no_more, NULL, err);
}

static const struct {
    const char *name;
    uint32_t size, align;
    void (*fill)(void *params, uint32_t size);
    weft_status (*use)(const void *params, weft_error *err);
} params[] = {
#define ROW(name) {#name, sizeof(weft_##name##_params), _Alignof(weft_##name##_params), fill_##name, use_##name},
    PARAMS(ROW)};

static void parameters_of_every_size_are_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
        const uint32_t full = params[i].size, step = params[i].align;
        char *ours = malloc(full);
        params[i].fill(ours, full);
        for (uint32_t size = 8; size <= full + 2 * step; size += step) {
            char *p = malloc(size);
            weft_error err = {0};
            params[i].fill(p, size);
            assert_memory_equal(p + 4, ours + 4, (size < full ? size : full) - 4);
            if (params[i].use(p, &err)) fail_msg("%s of %u bytes of %u: %s", params[i].name, size, full, err.message);
            if (size > full) {
                p[full] = 1;
                assert_int_equal(params[i].use(p, &err), WEFT_ABI);
                assert_non_null(strstr(err.message, params[i].name));
            }
            free(p);
        }
        weft_error err = {0};
        if (params[i].use(NULL, &err)) fail_msg("%s: NULL: %s", params[i].name, err.message);
        const uint32_t none[2] = {4, 0};
        assert_int_equal(params[i].use(none, &err), WEFT_ABI);
        free(ours);
    }
}

/* ---- what the library fills ---- */

static weft_adapter_file *adapter;

static weft_status get_info(void *out, weft_error *err)
{
    return weft_model_describe(model, out, err);
}

static weft_status get_cost(void *out, weft_error *err)
{
    return weft_model_step_cost(model, 1, 0, 1, 1, WEFT_F16, out, err);
}

static weft_status get_step(void *out, weft_error *err)
{
    return weft_model_profile_step(model, 0, out, err);
}

static weft_status get_op(void *out, weft_error *err)
{
    return weft_model_profile_op(model, 0, out, err);
}

static weft_status get_count(void *out, weft_error *err)
{
    return weft_model_profile_count(model, 0, 0, out, err);
}

static weft_status get_adapter(void *out, weft_error *err)
{
    return weft_adapter_file_describe(adapter, out, err);
}

static weft_status get_matrix(void *out, weft_error *err)
{
    return weft_adapter_file_matrix(adapter, 0, out, err);
}

static weft_status get_named(void *out, weft_error *err)
{
    return weft_engine_adapter_find(engine, "poem", out, err);
}

static weft_status get_stats(void *out, weft_error *err)
{
    uint32_t size;
    memcpy(&size, out, sizeof size);
    if (size % 8) return weft_fail(err, WEFT_ABI, "it says nothing");
    weft_engine_get_stats(engine, out);
    return WEFT_OK;
}

static weft_status get_perplexity(void *out, weft_error *err)
{
    const int32_t tokens[] = {1, 7, 9};
    const weft_perplexity_text text = {.tokens = tokens, .n = 3};
    weft_perplexity_params p;
    weft_perplexity_params_default(&p);
    p.form = WEFT_PERPLEXITY_TEXTS;
    p.base = model;
    return weft_perplexity(model, &text, 1, &p, out, err);
}

static weft_status get_task(void *out, weft_error *err)
{
    return weft_task_describe(task, out, err);
}

static weft_status get_scores(void *out, weft_error *err)
{
    return weft_scores_describe(scores, out, err);
}

static weft_status get_score(void *out, weft_error *err)
{
    return weft_scores_get(scores, 0, out, err);
}

static weft_status get_provider(void *out, weft_error *err)
{
    return weft_provider_describe("cpu", out, err);
}

static const struct {
    const char *name;
    uint32_t size, align;
    weft_status (*get)(void *out, weft_error *err);
} filled[] = {
#define FILLED(type, get)                                                                                              \
    {                                                                                                                  \
#type, sizeof(type), _Alignof(type), get                                                                       \
    }
    FILLED(weft_model_info, get_info),       FILLED(weft_step_cost, get_cost),
    FILLED(weft_profile_step, get_step),     FILLED(weft_profile_op, get_op),
    FILLED(weft_adapter_info, get_adapter),  FILLED(weft_adapter_matrix, get_matrix),
    FILLED(weft_engine_adapter, get_named),  FILLED(weft_engine_stats, get_stats),
    FILLED(weft_backend_info, get_provider), FILLED(weft_profile_count, get_count),
    FILLED(weft_task_info, get_task),        FILLED(weft_scores_info, get_scores),
    FILLED(weft_score, get_score),           FILLED(weft_perplexity_result, get_perplexity),
};

static void structs_of_every_size_are_filled(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof filled / sizeof *filled; i++) {
        const uint32_t full = filled[i].size, step = filled[i].align;
        char *ours = calloc(1, full), zero[16] = {0};
        weft_error err = {0};
        memcpy(ours, &full, sizeof full);
        if (filled[i].get(ours, &err)) fail_msg("%s: %s", filled[i].name, err.message);
        const uint32_t stride = full > 512 ? 128 : step; /* fewer of those that are names above all */
        for (uint32_t size = 8; size <= full + 2 * step;
             size = size < full && size + stride > full ? full : size + (size < full ? stride : step)) {
            char *out = malloc(size);
            memset(out, 7, size);
            memcpy(out, &size, sizeof size);
            if (filled[i].get(out, &err)) fail_msg("%s of %u bytes of %u: %s", filled[i].name, size, full, err.message);
            assert_memory_equal(out, &size, sizeof size);
            assert_memory_equal(out + 4, ours + 4, (size < full ? size : full) - 4);
            if (size > full) assert_memory_equal(out + full, zero, size - full);
            free(out);
        }
        uint32_t none[2] = {5, 77};
        assert_int_equal(filled[i].get(none, &err), WEFT_ABI);
        assert_int_equal(none[1], 77);
        free(ours);
    }
}

/* Of a task with one question. */
static weft_status open_scores(weft_error *err)
{
    char path[] = "/tmp/weft-XXXXXX";
    static const char line[] = "{\"prompt\": \"a\", \"choices\": [\" b\", \" c\"], \"answer\": 0}\n";
    weft_task_params p;
    weft_task_params_default(&p);
    p.form = "jsonl";
    const int fd = mkstemp(path);
    if (fd < 0 || write(fd, line, sizeof line - 1) != sizeof line - 1) return weft_fail(err, WEFT_IO, "no file");
    close(fd);
    weft_status st = weft_task_open(path, &p, &task, err);
    unlink(path);
    return st ? st : weft_eval_task(engine, task, NULL, &scores, err);
}

static int begin(void **state)
{
    weft_error err = {0};
    weft_session *s = NULL;
    int32_t token = 1;
    (void)state;
    if (weft_model_open("models/alderbrook.gguf", NULL, &model, &err) || weft_engine_new(model, NULL, &engine, &err) ||
        weft_adapter_file_open("models/poem.gguf", weft_model_file(model), &adapter, &err) ||
        weft_engine_adapter_add(engine, "poem", "models/poem.gguf", 1, 0, &err) ||
        weft_session_new(model, NULL, &s, &err) || weft_model_profile_start_counting(model, &err) ||
        weft_session_eval(s, &token, 1, 0, NULL, &err) || open_scores(&err))
        fail_msg("%s", err.message);
    weft_model_profile_stop(model);
    weft_session_free(&s);
    return 0;
}

static int end(void **state)
{
    (void)state;
    weft_adapter_file_close(&adapter);
    weft_scores_free(&scores);
    weft_task_close(&task);
    weft_engine_free(&engine);
    weft_model_close(&model);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_of_every_size_are_taken),
        cmocka_unit_test(structs_of_every_size_are_filled),
    };
    return cmocka_run_group_tests_name("structs", tests, begin, end);
}
