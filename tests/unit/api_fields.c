// SPDX-License-Identifier: Apache-2.0
/* api_fields.c: every kind of request, without memory at each moment. */
#include "unit/fixture.h"

#include "api/fields.h"

static const struct {
    const weft__api_table *form;
    const char *body;
} REQUESTS[] = {
    {&weft__api_table_chat, "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}],"
                            "\"name\":\"b\"}],\"logit_bias\":{\"3\":1},\"stop\":[\"a\"]}"},
    {&weft__api_table_completions, "{\"prompt\":[[1,2],[3]],\"echo\":true}"},
    {&weft__api_table_completion, "{\"prompt\":\"x\",\"logit_bias\":[[1,2],[\"a\",false]],\"unknown\":{}}"},
    {&weft__api_table_completion,
     "{\"prompt\":\"x\",\"logit_bias\":{\"a\":1,\"3\":false},\"json_schema\":{},\"samplers\":null}"},
    {&weft__api_table_completions, "{\"prompt\":\"x\",\"structured_outputs\":{\"choice\":[\"a\"],\"regex\":null}}"},
    {&weft__api_table_chat, "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"guided_grammar\":\"start: /a/\"}"},
    {&weft__api_table_embeddings, "{\"input\":\"x\",\"encoding_format\":\"base64\"}"},
    {&weft__api_table_slot, "{\"filename\":\"x\"}"},
};

static int body(void *arg)
{
    size_t i = *(size_t *)arg;
    weft__api_params params;
    weft__api_error error;
    int ok = weft__api_params_parse(REQUESTS[i].form, 300, REQUESTS[i].body, strlen(REQUESTS[i].body), &params, &error);
    if (!ok) assert_int_equal(error.status, 503);
    weft__api_params_free(&params);
    return ok;
}

static void without_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof REQUESTS / sizeof *REQUESTS; i++) assert_true(fail_each(body, &i) >= 2);
}

static void what_only_a_reader_takes_has_no_place(void **state)
{
    static const char body[] = "{\"prompt\":\"x\",\"stop\":[\"a\"],\"logit_bias\":{\"3\":1}}";
    weft__api_params params;
    weft__api_error error;
    (void)state;
    assert_true(weft__api_params_parse(&weft__api_table_completions, 300, body, sizeof body - 1, &params, &error));
    assert_null(params.content);
    assert_int_equal(params.n_stops, 1);
    assert_int_equal(params.n_bias, 1);
    weft__api_params_free(&params);
}

/* Texts that are keys are borrowed as well: they outlive what is let go once prompts are read. */
static void texts_of_an_object_stay(void **state)
{
    static const char body[] = "{\"prompt\":\"x\",\"logit_bias\":{\"some text\":1,\"3\":false}}";
    weft__api_params params;
    weft__api_error error;
    (void)state;
    assert_true(weft__api_params_parse(&weft__api_table_completion, 300, body, sizeof body - 1, &params, &error));
    weft__api_params_settle(&params);
    assert_int_equal(params.n_bias, 1);
    assert_int_equal(params.n_bias_texts, 1);
    assert_string_equal(params.bias_texts[0].text, "some text");
    assert_int_equal(params.bias_texts[0].n, 9);
    weft__api_params_free(&params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_memory),
                                       cmocka_unit_test(what_only_a_reader_takes_has_no_place),
                                       cmocka_unit_test(texts_of_an_object_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
