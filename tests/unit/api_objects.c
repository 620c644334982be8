// SPDX-License-Identifier: Apache-2.0
/* api_objects.c: what a server says of itself in each dialect (models, adapters, slots, settings, tokens), without a
 * server, and without memory at each moment. */
#include "unit/fixture.h"

#include <stdio.h>

#include "api/objects.h"

/* ---- doubles of what the engine has ---- */

const char *weft_version(void)
{
    return "0";
}

const char *weft_token_bytes(const weft_tokenizer *t, int32_t id, size_t *n)
{
    static const char *const all[] = {"Hi", "\xc3\x28", NULL};
    (void)t;
    *n = all[id] ? strlen(all[id]) : 7;
    return all[id];
}

/* ---- one of each ---- */

static const weft_engine_adapter poem = {
    .index = 3, .version = 2, .scale = 0.5f, .n_requests = 4, .n_bytes = 99, .name = "key-0123456789ab.poem"};
static const weft_model_info info = {.n_ctx_train = 5, .d_model = 6, .n_params = 7, .n_bytes = 8};

static void models(weft__strbuf *out)
{
    weft__api_put_models_begin(out);
    weft__api_put_model(out, "m\"", (const char *const[]){"m\"", "*", "n\"", "o", NULL}, 9, 3, 4, &info);
    weft__api_put_adapter_model(out, "poem", "m\"", 9, &poem);
    weft__api_put_preset_model(out, "tale", "m\"", 9);
    weft__api_put_models_end(out);
}

static void adapters(weft__strbuf *out)
{
    weft__strbuf_putc(out, '[');
    weft__api_put_adapter(out, &(weft__api_adapter){&poem, "poem", "a/\x01", 0.25f, 0, 0});
    weft__api_put_adapter(out, &(weft__api_adapter){&poem, "other", "b", 0, 1, 1});
    weft__strbuf_putc(out, ']');
}

static void slots(weft__strbuf *out)
{
    weft__strbuf_putc(out, '[');
    weft__api_put_slot(out, &(weft__api_slot){0, 64, 1, 1, 0, 12, 5, 4, 1, -1, "q8", 2, 4096, 1.5});
    weft__api_put_slot(out, &(weft__api_slot){1, 64, 0, 0, 1, 13, 6, 5, 1, 2});
    weft__strbuf_putc(out, ']');
}

static void saved(weft__strbuf *out)
{
    weft__api_put_slot_saved(out, 1, "f", 2, 3, 4.5);
}

static void restored(weft__strbuf *out)
{
    weft__api_put_slot_restored(out, 1, "f", 2, 3, 4.5);
}

static void erased(weft__strbuf *out)
{
    weft__api_put_slot_erased(out, 1, NULL, 2);
}

static void erased_by_name(weft__strbuf *out)
{
    weft__api_put_slot_erased(out, 1, "f", 0);
}

static void props(weft__strbuf *out)
{
    weft__api_put_props(out, &(weft__api_props){64, 2, "m", "M \"7B\"", "{{ x }}\n", "<s>", "</s>", 1, 0});
}

static void tokens(weft__strbuf *out)
{
    int32_t first[] = {0}, second[] = {1, 2};
    weft__api_prompt items[] = {{first, 1, NULL, 0}, {second, 2, NULL, 0}};
    weft__api_put_tokens(out, NULL, &(weft__api_prompts){items, 2}, 1);
}

static void ids(weft__strbuf *out)
{
    int32_t first[] = {0}, second[] = {1, 2};
    weft__api_prompt items[] = {{first, 1, NULL, 0}, {NULL, 0, NULL, 0}, {second, 2, NULL, 0}};
    weft__api_put_tokens(out, NULL, &(weft__api_prompts){items, 3}, 0);
}

static void text(weft__strbuf *out)
{
    weft__api_put_text(out, "content", "a\0\"", 3);
}

static void loaded(weft__strbuf *out)
{
    weft__api_put_adapter_loaded(out, "poem", &poem);
}

static void loaded_and_gone(weft__strbuf *out)
{
    weft__api_put_adapter_loaded(out, "poem", NULL);
}

static const struct object {
    void (*put)(weft__strbuf *out);
    const char *json;
} objects[] = {
    {models,
     "{\"object\":\"list\",\"data\":[{\"id\":\"m\\\"\",\"object\":\"model\",\"created\":9,\"owned_by\":\"weft\","
     "\"aliases\":[\"n\\\"\",\"o\"],"
     "\"meta\":{\"n_vocab\":3,\"n_ctx\":4,\"n_ctx_train\":5,\"n_embd\":6,\"n_params\":7,\"size\":8}},"
     "{\"id\":\"poem\",\"object\":\"model\",\"created\":9,\"owned_by\":\"weft\",\"parent\":\"m\\\"\","
     "\"meta\":{\"adapter_id\":3,\"version\":2,\"scale\":0.5}},"
     "{\"id\":\"tale\",\"object\":\"model\",\"created\":9,\"owned_by\":\"weft\",\"parent\":\"m\\\"\","
     "\"meta\":{\"preset\":true}}]}"},
    {adapters,
     "[{\"id\":3,\"name\":\"poem\",\"path\":\"a/\\u0001\",\"scale\":0.25,\"version\":2,\"requests\":4,"
     "\"published\":false,\"bytes\":99},"
     "{\"id\":3,\"name\":\"other\",\"path\":\"b\",\"scale\":0,\"version\":2,\"published\":true,\"bytes\":99}]"},
    {slots, "[{\"id\":0,\"id_task\":12,\"n_ctx\":64,\"speculative\":true,\"is_processing\":true,"
            "\"n_prompt_tokens\":4,\"n_tokens\":5,"
            "\"next_token\":[{\"has_next_token\":true,\"n_remain\":-1,\"n_decoded\":1}],"
            "\"swaps\":{\"n\":2,\"bytes\":4096,\"ms\":1.500},\"kv_type\":\"q8\"},"
            "{\"id\":1,\"n_ctx\":64,\"speculative\":false,\"is_processing\":false}]"},
    {saved, "{\"id_slot\":1,\"filename\":\"f\",\"n_saved\":2,\"n_written\":3,\"timings\":{\"save_ms\":4.500}}"},
    {restored, "{\"id_slot\":1,\"filename\":\"f\",\"n_restored\":2,\"n_read\":3,\"timings\":{\"restore_ms\":4.500}}"},
    {erased, "{\"id_slot\":1,\"n_erased\":2}"},
    {erased_by_name, "{\"id_slot\":1,\"filename\":\"f\",\"n_erased\":0}"},
    {props, "{\"default_generation_settings\":{\"id\":0,\"n_ctx\":64,\"params\":{\"n_predict\":-1,\"temperature\":0.8,"
            "\"top_k\":40,\"top_p\":0.95,\"min_p\":0.05,\"repeat_last_n\":64,\"repeat_penalty\":1,"
            "\"presence_penalty\":0,\"frequency_penalty\":0,\"stream\":true,\"n_probs\":0}},\"total_slots\":2,"
            "\"model_alias\":\"m\",\"model_path\":\"M \\\"7B\\\"\","
            "\"modalities\":{\"vision\":false,\"audio\":false},\"chat_template\":\"{{ x }}\\n\","
            "\"bos_token\":\"<s>\",\"eos_token\":\"</"
            "s>\",\"learns\":{\"feedback\":true,\"memories\":false},\"build_info\":\"weft-0\"}"},
    {tokens, "{\"tokens\":[{\"id\":0,\"piece\":\"Hi\"},{\"id\":1,\"piece\":[195,40]},{\"id\":2,\"piece\":\"\"}]}"},
    {ids, "{\"tokens\":[0,1,2]}"},
    {text, "{\"content\":\"a\\u0000\\\"\"}"},
    {weft__api_put_ok, "{\"status\":\"ok\"}"},
    {weft__api_put_success, "{\"success\":true}"},
    {loaded, "{\"status\":\"ok\",\"id\":3,\"name\":\"poem\",\"version\":2}"},
    {loaded_and_gone, "{\"status\":\"ok\"}"},
};
enum { N_OBJECTS = sizeof objects / sizeof *objects };

static void each_is_spelled_so(void **state)
{
    (void)state;
    for (int i = 0; i < N_OBJECTS; i++) {
        weft__strbuf out = {0};
        objects[i].put(&out);
        assert_false(out.failed);
        assert_string_equal(out.data, objects[i].json);
        weft__strbuf_free(&out);
    }
}

static int put_one(void *arg)
{
    const struct object *o = arg;
    weft__strbuf out = {0};
    o->put(&out);
    int ok = !out.failed;
    if (ok) assert_string_equal(out.data, o->json); /* nothing looks whole that is not */
    weft__strbuf_free(&out);
    return ok;
}

static void without_memory_each_has_failed(void **state)
{
    (void)state;
    for (int i = 0; i < N_OBJECTS; i++) assert_true(fail_each(put_one, (void *)&objects[i]) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_is_spelled_so),
                                       cmocka_unit_test(without_memory_each_has_failed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
