// SPDX-License-Identifier: Apache-2.0
/* train_job.c: weft_train as programs call it: what it tells before the first step, how long its texts may be, and the
 * checkpoints that it refuses: of other versions, and of products that were rounded otherwise. */
#include <stdio.h>
#include <stdlib.h>

#include "unit/fixture.h"

#include "base/hash.h"
#include "format/gguf_write.h"
#include "folder.h"
#include "train/job.h"

static char text[128], vocabulary[128], run_folder[128], checkpoint[160], adapter_folder[128];

static int begin(void **state)
{
    (void)state;
    weft_vocab_params p;
    weft_vocab_result r;
    if (folder_make("text.txt")) return -1;
    snprintf(text, sizeof text, "%s", path);
    snprintf(vocabulary, sizeof vocabulary, "%s/v.gguf", folder);
    snprintf(run_folder, sizeof run_folder, "%s/run", folder);
    snprintf(adapter_folder, sizeof adapter_folder, "%s/a", folder);
    snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint.gguf", run_folder);
    FILE *f = fopen(text, "w");
    if (!f) return -1;
    fputs("the fox and the owl sat by the mill<|endoftext|>the owl sat there<|endoftext|>", f);
    fclose(f);
    weft_vocab_params_default(&p);
    p.n_vocab = 270;
    return (int)weft_train_tokenizer((const char *const[]){text}, 1, vocabulary, &p, &r, NULL);
}

static int end(void **state)
{
    static const char *const names[] = {"run/checkpoint.gguf", "run/model.gguf", "run/loss.jsonl",
                                        "run/loss.svg",        "v.gguf",         "a/checkpoint.gguf",
                                        "a/adapter.gguf",      "a/loss.jsonl",   "a/loss.svg"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[160];
        snprintf(name, sizeof name, "%s/%s", folder, names[i]);
        unlink(name);
    }
    rmdir(run_folder);
    rmdir(adapter_folder);
    return remove_folder(state);
}

static int planned(void *arg, const weft_train_event *e)
{
    if (e->kind == WEFT_TRAIN_PLANNED) *(weft_train_event *)arg = *e;
    return 0;
}

static weft_status train(int resume, weft_train_event *plan, weft_error *err)
{
    weft_train_params p;
    const char *const data[] = {text, NULL};
    weft_train_params_default(&p);
    p.tokenizer = vocabulary;
    p.n_layers = 1;
    p.d_model = 16;
    p.d_ff = 16;
    p.n_heads = p.n_kv_heads = 2;
    p.n_threads = 1;
    p.n_ctx = 24;
    p.batch = 64;
    p.n_steps = 1;
    p.data = data;
    p.out = run_folder;
    p.resume = resume;
    p.report = planned;
    p.arg = plan;
    return weft_train(&p, err);
}

/* Another magic in the state of the checkpoint, and the checksum that goes with it. */
static void put_magic(const char *magic)
{
    static unsigned char bytes[1 << 20];
    FILE *f = fopen(checkpoint, "r+b");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    unsigned char *s = memmem(bytes, n, "WEFTJOB", 7);
    assert_true(n < sizeof bytes && s);
    uint64_t sum = weft__hash(s, sizeof(weft__train_job_state));
    unsigned char *at = memmem(bytes, n, &sum, sizeof sum); /* as little-endian as the file */
    assert_non_null(at);
    memcpy(s, magic, 8);
    sum = weft__hash(s, sizeof(weft__train_job_state));
    memcpy(at, &sum, sizeof sum);
    rewind(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static void checkpoints_of_other_versions_are_refused(void **state)
{
    static const struct {
        const char *magic, *words;
        weft_status status;
    } cases[] = {{"WEFTJOB2", "was written by an earlier weft", WEFT_STATE},
                 {"WEFTJOB9", "was not written by this command", WEFT_FORMAT}};
    (void)state;
    weft_error err = {0};
    weft_train_event plan = {0};
    if (train(0, &plan, &err)) fail_msg("%s", err.message);
    assert_int_equal(plan.n_ctx, 24);
    assert_int_equal(plan.n_segments, 2);
    assert_int_equal(train(0, &plan, &err), WEFT_EXISTS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_magic(cases[i].magic);
        assert_int_equal(train(1, &plan, &err), cases[i].status);
        if (!strstr(err.message, cases[i].words)) fail_msg("%s", err.message);
        put_magic("WEFTJOB3");
        if (train(1, &plan, &err)) fail_msg("%s", err.message);
        assert_int_equal(plan.step, 1);
    }
}

/* A run goes on with the products that it began with. */
static void products_are_those_of_the_run(void **state)
{
    (void)state;
    weft_train_params p;
    weft_error err = {0};
    char model[160];
    const char *const data[] = {text, NULL};
    snprintf(model, sizeof model, "%s/model.gguf", run_folder);
    for (int exact = 0; exact < 2; exact++) {
        weft_train_params_default(&p);
        assert_int_equal(p.exact, 0);
        p.base = model;
        p.lora_rank = 2;
        p.lora_alpha = 2;
        p.n_threads = 1;
        p.n_ctx = 24;
        p.batch = 64;
        p.n_steps = 1;
        p.data = data;
        p.out = adapter_folder;
        p.resume = exact;
        p.exact = exact;
        if (exact) {
            assert_int_equal(weft_train(&p, &err), WEFT_STATE);
            if (!strstr(err.message, "--exact")) fail_msg("%s", err.message);
            p.exact = 0;
        }
        if (weft_train(&p, &err)) fail_msg("%s", err.message);
    }
}

/* A model of 24 tokens whose file stretches them, or does not. */
static void open_stretched(weft__train_base *b, const char *type, float factor)
{
    static const weft__train_scratch_shape shape = {.n_vocab = 8,
                                                    .n_ctx = 24,
                                                    .n_layers = 1,
                                                    .d_model = 8,
                                                    .d_ff = 8,
                                                    .n_heads = 1,
                                                    .n_kv_heads = 1,
                                                    .head_dim = 8};
    weft__gguf_writer *w;
    *b = (weft__train_base){0};
    assert_int_equal(weft__gguf_writer_memory("keys", &w, NULL), WEFT_OK);
    if (type) {
        assert_int_equal(weft__gguf_put_string(w, "llama.rope.scaling.type", type, strlen(type), NULL), WEFT_OK);
        assert_int_equal(weft__gguf_put_f32(w, "llama.rope.scaling.factor", factor, NULL), WEFT_OK);
    }
    assert_int_equal(weft__gguf_writer_bytes(w, &b->bytes, NULL), WEFT_OK);
    weft__gguf_writer_destroy(&w);
    assert_int_equal(weft__gguf_parse(b->bytes.data, b->bytes.len, "keys", &b->meta, NULL), WEFT_OK);
    assert_int_equal(weft__train_scratch_create(&shape, b->meta, &b->fresh, NULL), WEFT_OK);
    weft__train_scratch_source(b->fresh, &b->source);
}

/* A text may be as long as the file's own rope scaling lets sessions be. */
static void texts_reach_as_far_as_sessions(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        float factor;
        int32_t most;
        const char *words;
    } cases[] = {{NULL, 1, 24, "was made for 24 (llama.context_length)"},
                 {"none", 4, 24, "was made for 24 (llama.context_length)"},
                 {"linear", 2, 48, "reaches 48"},
                 {"yarn", 4, 96, "reaches 96"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__train_base b;
        weft_error err = {0};
        int32_t n_ctx = 0;
        open_stretched(&b, cases[i].type, cases[i].factor);
        assert_int_equal(weft__train_base_context(&b, 0, &n_ctx, &err), WEFT_OK);
        assert_int_equal(n_ctx, 24);
        if (weft__train_base_context(&b, cases[i].most, &n_ctx, &err)) fail_msg("%s", err.message);
        assert_int_equal(n_ctx, cases[i].most);
        assert_int_equal(weft__train_base_context(&b, cases[i].most + 1, &n_ctx, &err), WEFT_ARGUMENT);
        if (!strstr(err.message, cases[i].words)) fail_msg("%s", err.message);
        weft__train_base_close(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(checkpoints_of_other_versions_are_refused),
                                       cmocka_unit_test(products_are_those_of_the_run),
                                       cmocka_unit_test(texts_reach_as_far_as_sessions)};
    return cmocka_run_group_tests_name("train_job", tests, begin, end);
}
