// SPDX-License-Identifier: Apache-2.0
/* api_fields.c: every kind of request, without memory at each moment; which model it means, without a tree of it. */
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

/* The request, with what a preset adds; NULL: there was no memory for that. */
static weft__json *joined(const weft__api_table *form, const char *fields, const char *system, const char *request)
{
    weft__json *preset = NULL, *root = NULL;
    weft__api_error error = {0};
    if (weft__json_parse(fields, strlen(fields), &preset, NULL)) return NULL;
    int ok = !weft__json_parse(request, strlen(request), &root, NULL);
    ok = ok && weft__api_preset_fields(form, preset, root, &error) &&
         (!system || weft__api_preset_system(system, root, &error));
    if (!ok) weft__json_free(&root);
    weft__json_free(&preset);
    return root;
}

static void joins(const weft__api_table *form, const char *fields, const char *request, const char *want)
{
    weft__strbuf out = {0};
    weft__json *root = joined(form, fields, NULL, request);
    weft__json_write(&out, root, WEFT__JSON_COMPACT);
    assert_string_equal(out.data, want);
    weft__strbuf_free(&out);
    weft__json_free(&root);
}

/* Under any name that the form has for it, and by the name that the form has. */
static void what_a_request_says_wins(void **state)
{
    static const char thoughts[] = "{\"thinking_budget_tokens\":5}", most[] = "{\"max_tokens\":5}",
                      all[] = "{\"top_k\":1,\"stop\":[\"a\"],\"repetition_penalty\":2,\"verbosity\":\"low\"}";
    (void)state;
    joins(&weft__api_table_chat, thoughts, "{\"reasoning_budget_tokens\":7}", "{\"reasoning_budget_tokens\":7}");
    joins(&weft__api_table_chat, thoughts, "{}", thoughts);
    joins(&weft__api_table_chat, most, "{\"max_completion_tokens\":null}",
          "{\"max_completion_tokens\":null,\"max_tokens\":5}");
    joins(&weft__api_table_completion, most, "{\"n_predict\":7}", "{\"n_predict\":7}");
    joins(&weft__api_table_completion, all, "{\"stop\":[]}", "{\"stop\":[],\"top_k\":1,\"repeat_penalty\":2}");
    joins(&weft__api_table_completion, all, "{\"repeat_penalty\":1,\"top_k\":null}",
          "{\"repeat_penalty\":1,\"top_k\":1,\"stop\":[\"a\"]}");
    joins(&weft__api_table_embeddings, all, "{\"input\":1}", "{\"input\":1}");
}

static int join_all(void *arg)
{
    weft__json *root = joined(&weft__api_table_chat, "{\"top_k\":1,\"stop\":[\"a\"]}", "Be.",
                              "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}");
    const int ok = root != NULL;
    (void)arg;
    if (ok) {
        const weft__json *messages = weft__json_get(root, "messages");
        assert_int_equal(weft__json_size(messages), 2);
        assert_true(weft__json_is(weft__json_get(weft__json_at(messages, 0), "role"), "system"));
        assert_true(weft__json_is(weft__json_get(weft__json_at(messages, 1), "content"), "x"));
    }
    weft__json_free(&root);
    return ok;
}

static void presets_without_memory(void **state)
{
    (void)state;
    assert_true(fail_each(join_all, NULL) > 10);
}

/* As its tree has it, whatever stands around it; of what is no JSON, as far as it goes. */
static void the_model_is_found_without_a_tree(void **state)
{
    static const struct {
        const char *body, *model, *user;
        int64_t timeout_ms;
    } cases[] = {
        {"{\"model\":\"a\"}", "a", "", 0},
        {" {\n \"user\" : \"u\" , \"timeout_ms\" : 1e3 , \"model\" : \"a b\" } ", "a b", "u", 1000},
        {"{\"x\":[{\"model\":\"no\"},\"}\",\"\\\"\"],\"model\":\"a\"}", "a", "", 0},
        {"{\"x\":{\"model\":\"no\",\"y\":[[]]},\"z\":\"\\\\\",\"model\":\"a\"}", "a", "", 0},
        {"{\"m\\u006fdel\":\"\\u00e4\\n\\ud83d\\ude00\"}", "\xc3\xa4\n\xf0\x9f\x98\x80", "", 0},
        {"{\"model\":\"a\\u0000b\",\"user\":\"u\"}", "", "u", 0},
        {"{\"model\":7,\"user\":[\"u\"],\"timeout_ms\":\"5\"}", "", "", 0},
        {"{\"model\":null,\"timeout_ms\":-1}", "", "", 0},
        {"{\"timeout_ms\":99999999999}", "", "", 0},
        {"{\"models\":\"no\",\"odel\":\"no\",\"Model\":\"no\"}", "", "", 0},
        {"[\"model\",\"a\"]", "", "", 0},
        {"\"model\"", "", "", 0},
        {"", "", "", 0},
        {"{", "", "", 0},
        {"{\"model\"", "", "", 0},
        {"{\"model\":", "", "", 0},
        {"{\"model\":\"a", "", "", 0},
        {"{\"model\":\"a\\", "", "", 0},
        {"{\"model\":\"a\"", "a", "", 0},
        {"{\"model\":\"a\",", "a", "", 0},
        {"{\"model\":\"a\",}", "a", "", 0},
        {"{\"x\":]]]],\"model\":\"a\"}", "", "", 0},
        {"{\"x\":1 2 3,\"model\":\"a\"}", "a", "", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__api_meant got;
        const size_t n = strlen(cases[i].body);
        char *body = malloc(n ? n : 1); /* nothing behind its end */
        memcpy(body, cases[i].body, n);
        weft__api_meant_read(body, n, &got);
        free(body);
        assert_string_equal(got.model, cases[i].model);
        assert_string_equal(got.user, cases[i].user);
        assert_int_equal(got.timeout_ms, cases[i].timeout_ms);
    }
}

static int count_taken(void *arg, size_t n)
{
    *(size_t *)arg += n;
    return 1;
}

/* A request is made into a tree once: what looks for its model takes as much memory for a thousand messages as for
 * one. */
static void looking_for_the_model_makes_no_tree(void **state)
{
    size_t taken[2] = {0, 0};
    (void)state;
    for (int big = 0; big < 2; big++) {
        weft__strbuf body = {0};
        weft__api_meant got;
        weft__strbuf_puts(&body, "{\"messages\":[");
        for (int i = 0; i < (big ? 1000 : 1); i++)
            weft__strbuf_printf(&body, "%s{\"role\":\"user\",\"content\":\"%d\"}", i ? "," : "", i);
        weft__strbuf_puts(&body, "],\"model\":\"a\",\"timeout_ms\":5}");
        weft__alloc_set_gate(count_taken, &taken[big]);
        weft__api_meant_read(body.data, body.len, &got);
        weft__alloc_set_gate(NULL, NULL);
        assert_string_equal(got.model, "a");
        assert_int_equal(got.timeout_ms, 5);
        weft__strbuf_free(&body);
    }
    assert_int_equal(taken[0], taken[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_memory),
                                       cmocka_unit_test(what_only_a_reader_takes_has_no_place),
                                       cmocka_unit_test(texts_of_an_object_stay),
                                       cmocka_unit_test(what_a_request_says_wins),
                                       cmocka_unit_test(presets_without_memory),
                                       cmocka_unit_test(the_model_is_found_without_a_tree),
                                       cmocka_unit_test(looking_for_the_model_makes_no_tree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
