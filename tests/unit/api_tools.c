// SPDX-License-Identifier: Apache-2.0
/* api_tools.c: tools, functions and the choice of them come to what is offered and what must be called, a refusal names
 * its field, and without memory there is one at each moment. */
#include "unit/fixture.h"

#include <stdio.h>

#include "api/fields.h"

#define MESSAGES "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]"
#define F(name) "{\"name\":\"" name "\",\"parameters\":{\"type\":\"object\"}}"
#define TOOL(name) "{\"type\":\"function\",\"function\":" F(name) "}"
#define NAMED(name) "{\"type\":\"function\",\"function\":{\"name\":\"" name "\"}}"
#define TWO "\"tools\":[" TOOL("a") "," TOOL("b") "]"
#define ALLOWED(mode, tools)                                                                                           \
    "\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"" mode "\",\"tools\":[" tools "]}}"

/* What is offered and called; or, where offered is NULL, the field that is refused. */
static const struct {
    const char *more, *offered, *called;
} CASES[] = {
    {"", "", ""},
    {",\"tools\":[]", "", ""},
    {",\"tools\":null,\"tool_choice\":null", "", ""},
    {",\"tool_choice\":\"auto\"", "", ""},
    {"," TWO, "[" TOOL("a") "," TOOL("b") "]", "auto"},
    {"," TWO ",\"tool_choice\":\"auto\",\"parallel_tool_calls\":false", "[" TOOL("a") "," TOOL("b") "]", "auto"},
    {"," TWO ",\"tool_choice\":\"none\"", "", ""},
    {"," TWO ",\"tool_choice\":\"required\"", "[" TOOL("a") "," TOOL("b") "]", "required"},
    {"," TWO ",\"tool_choice\":" NAMED("b"), "[" TOOL("a") "," TOOL("b") "]", "b"},
    {"," TWO "," ALLOWED("required", NAMED("b")), "[" TOOL("b") "]", "required"},
    {",\"functions\":[" F("a") "],\"function_call\":{\"name\":\"a\"}", "[" TOOL("a") "]", "a"},
    {"," TWO "," ALLOWED("auto", NAMED("b")), "[" TOOL("b") "]", "auto"},
    {",\"functions\":[" F("a") "]", "[" TOOL("a") "]", "auto"},
    {",\"functions\":[" F("a") "],\"function_call\":\"none\"", "", ""},
    {",\"tools\":{}", NULL, "tools"},
    {",\"tools\":[3]", NULL, "tools[0]"},
    {",\"tools\":[{\"type\":\"custom\"}]", NULL, "tools[0].type"},
    {",\"tools\":[" TOOL("a") ",{\"type\":\"function\"}]", NULL, "tools[1].function"},
    {",\"tools\":[{\"type\":\"function\",\"function\":{}}]", NULL, "tools[0].function.name"},
    {",\"tools\":[" TOOL("a b") "]", NULL, "tools[0].function.name"},
    {",\"tools\":[" TOOL("") "]", NULL, "tools[0].function.name"},
    {",\"tools\":[" TOOL("a\\u0000b") "]", NULL, "tools[0].function.name"},
    {",\"functions\":[{\"name\":\"a\",\"parameters\":true}]", NULL, "functions[0].parameters"},
    {",\"functions\":[{\"name\":\"a\",\"description\":3}]", NULL, "functions[0].description"},
    {",\"functions\":[{\"name\":\"a\",\"strict\":\"yes\"}]", NULL, "functions[0].strict"},
    {",\"functions\":[" F("a") "," F("b") "," F("a") "]", NULL, "functions[2].name"},
    {",\"tools\":[" TOOL("a") "," TOOL("b") "," TOOL("b") "]", NULL, "tools[2].function.name"},
    {",\"functions\":[{\"name\":\"a\",\"parameters\":{\"type\":\"string\"}}]", NULL, "functions[0].parameters"},
    {",\"functions\":[{\"name\":\"a\",\"parameters\":{\"type\":[\"null\",\"array\"]}}]", NULL,
     "functions[0].parameters"},
    {",\"functions\":[{\"name\":\"a\",\"parameters\":{\"type\":[\"null\",\"object\"]}}]",
     "[{\"type\":\"function\",\"function\":{\"name\":\"a\",\"parameters\":{\"type\":[\"null\",\"object\"]}}}]", "auto"},
    {",\"max_tokens\":5,\"max_completion_tokens\":6", NULL, "max_tokens"},
    {",\"max_tokens\":5,\"max_completion_tokens\":5", "", ""},
    {",\"thinking_budget_tokens\":5,\"reasoning_budget_tokens\":6", NULL, "reasoning_budget_tokens"},
    {",\"functions\":[" F("a") "]," TWO, NULL, "functions"},
    {",\"functions\":[" F("a") "],\"tool_choice\":\"auto\"", NULL, "tool_choice"},
    {"," TWO ",\"function_call\":\"auto\"", NULL, "function_call"},
    {",\"function_call\":{\"name\":\"a\"}", NULL, "function_call"},
    {",\"function_call\":\"required\"", NULL, "function_call"},
    {",\"tool_choice\":\"required\"", NULL, "tool_choice"},
    {"," TWO ",\"tool_choice\":\"any\"", NULL, "tool_choice"},
    {"," TWO ",\"tool_choice\":3", NULL, "tool_choice"},
    {",\"tools\":[" TOOL("auto") "],\"tool_choice\":" NAMED("auto"), NULL, "tool_choice"},
    {"," TWO ",\"tool_choice\":{\"type\":\"custom\"}", NULL, "tool_choice.type"},
    {"," TWO ",\"tool_choice\":" NAMED("c"), NULL, "tool_choice"},
    {",\"tool_choice\":" NAMED("a"), NULL, "tool_choice"},
    {"," TWO "," ALLOWED("auto", NAMED("c")), NULL, "tool_choice"},
    {"," TWO "," ALLOWED("auto", ""), NULL, "tool_choice.allowed_tools"},
    {"," TWO "," ALLOWED("all", NAMED("a")), NULL, "tool_choice.allowed_tools.mode"},
    {"," TWO "," ALLOWED("auto", "{}"), NULL, "tool_choice.allowed_tools.tools[0]"},
    {"," TWO ",\"grammar\":\"root ::= [a]\"", NULL, "grammar"},
    {"," TWO ",\"response_format\":{\"type\":\"json_object\"}", "[" TOOL("a") "," TOOL("b") "]", "auto"},
    {"," TWO ",\"json_schema\":{}", "[" TOOL("a") "," TOOL("b") "]", "auto"},
    {"," TWO ",\"tool_choice\":\"required\",\"json_schema\":{\"type\":\"object\"}", "[" TOOL("a") "," TOOL("b") "]",
     "required"},
    {"," TWO ",\"structured_outputs\":{\"regex\":\"a\"}", "[" TOOL("a") "," TOOL("b") "]", "auto"},
    {"," TWO ",\"json_schema\":{},\"grammar_lazy\":true,\"grammar_triggers\":[{\"type\":1,\"value\":\"a\"}]", NULL,
     "grammar_lazy"},
    {"," TWO ",\"tool_choice\":\"none\",\"response_format\":{\"type\":\"json_object\"}", "", ""},
    {",\"reasoning_format\":\"some\"", NULL, "reasoning_format"},
};
enum { N_CASES = sizeof CASES / sizeof *CASES };

static int parse(size_t i, weft__api_params *params, weft__api_error *error)
{
    char body[4096];
    const int n = snprintf(body, sizeof body, "%s%s}", MESSAGES, CASES[i].more);
    return weft__api_params_parse(&weft__api_table_chat, 300, body, (size_t)n, params, error);
}

static void what_is_said_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CASES; i++) {
        weft__api_params params;
        weft__api_error error;
        const int ok = parse(i, &params, &error);
        const weft__api_tools *t = &params.tools;
        if (ok != (CASES[i].offered != NULL)) fail_msg("%s: %s", CASES[i].more, ok ? "taken" : error.message);
        if (ok) {
            assert_string_equal(t->offered.data ? t->offered.data : "", CASES[i].offered);
            assert_string_equal(t->called.data ? t->called.data : "", CASES[i].called);
        } else {
            assert_int_equal(error.status, 400);
            if (strcmp(error.field, CASES[i].called)) fail_msg("%s: %s", CASES[i].more, error.field);
            if (!strstr(error.message, error.field)) fail_msg("%s: %s", CASES[i].more, error.message);
        }
        weft__api_params_free(&params);
    }
}

static int parse_each(void *arg)
{
    weft__api_params params;
    weft__api_error error;
    const size_t i = *(size_t *)arg;
    const int ok = parse(i, &params, &error);
    if (!ok) assert_int_equal(error.status, 503);
    weft__api_params_free(&params);
    return ok;
}

static void without_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_CASES; i++)
        if (CASES[i].offered) assert_true(fail_each(parse_each, &i) >= 1);
}

/* What a request says of tools is there when its JSON is gone. */
static void outlives_the_body(void **state)
{
    weft__api_params params;
    weft__api_error error;
    (void)state;
    assert_true(parse(4, &params, &error));
    weft__api_params_settle(&params);
    assert_null(params.tools.given);
    assert_string_equal(params.tools.offered.data, CASES[4].offered);
    weft__api_params_free(&params);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_said_together), cmocka_unit_test(without_memory),
                                       cmocka_unit_test(outlives_the_body)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
