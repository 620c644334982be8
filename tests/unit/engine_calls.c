// SPDX-License-Identifier: Apache-2.0
/* engine_calls.c: weft_chat_grammar holds the answer to a prompt to the tools that it was rendered with: required,
 * named and automatic calls, thinking before them, and what is refused; weft_chat_form to a form behind what is
 * thought, weft_chat_form_or_calls to either. */
#include "unit/grammar_world.h"

#include "engine/handles.h"
#include "text/answer/format.h"
#include "weft/text.h"

static vocab words;
static weft_tokenizer tokenizer;
static weft_model model;

static const char tools_text[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"get\",\"strict\":true,\"parameters\":{\"type\":\"object\","
    "\"properties\":"
    "{\"n\":{\"type\":\"integer\"}},\"required\":[\"n\"],\"additionalProperties\":false}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"put\"}}]";
static const char loose_tools[] = "[{\"type\":\"function\",\"function\":{\"name\":\"put\"}}]";

/* A prompt that ends with `end`; calls stand in <tool_call>, and thoughts in <think>. */
static weft_chat_prompt *prompt_with(const char *end, const char *kwargs, weft_chat **chat)
{
    static const char head[] =
        "{{ tools | tojson if tools }}{# <tool_call> <think> </think> #}{{ messages[0].content }}";
    weft_chat_prompt *prompt;
    weft__strbuf text = {0};
    weft_error err = {0};
    weft__strbuf_puts(&text, head);
    weft__strbuf_puts(&text, end);
    if (weft_chat_open(&model, text.data, text.len, chat, &err)) fail_msg("%s", err.message);
    assert_string_equal(weft_chat_format(*chat), "hermes");
    if (weft_chat_render(*chat, "[{\"role\":\"user\",\"content\":\"Hi\"}]", tools_text, kwargs, 1, &prompt, &err))
        fail_msg("%s", err.message);
    weft__strbuf_free(&text);
    return prompt;
}

static weft_chat_prompt *prompt_that_ends(const char *end, weft_chat **chat)
{
    return prompt_with(end, NULL, chat);
}

/* How many bytes of the text the answer may have; what complete says then is stored. */
static size_t goes(const char *end, const char *choice, int parallel, const char *text, int *complete)
{
    weft_chat *chat;
    weft_chat_prompt *prompt = prompt_that_ends(end, &chat);
    weft_grammar *g;
    weft_matcher *m;
    weft_error err = {0};
    size_t n = 0;
    if (weft_chat_grammar(prompt, tools_text, choice, parallel, &g, &err)) fail_msg("%s", err.message);
    weft_chat_prompt_free(&prompt);
    weft_chat_close(&chat);
    assert_int_equal(weft_matcher_new(g, &m, NULL), WEFT_OK);
    weft_grammar_free(&g);
    while (text[n] && !weft_matcher_accept(m, (unsigned char)text[n], NULL)) n++;
    *complete = weft_matcher_complete(m);
    weft_matcher_free(&m);
    return n;
}

#define GET "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"n\": 5}}\n</tool_call>"
#define PUT "<tool_call>\n{\"name\": \"put\", \"arguments\": {}}\n</tool_call>"
#define PUT_ANY "<tool_call>\n{\"name\": \"put\", \"arguments\": {\"a\": [1]}}\n</tool_call>"
#define CALL(name) "<tool_call>\n{\"name\": \"" name "\", \"arguments\": {\"a\": [1]}}\n</tool_call>"
#define GET_WRONG "<tool_call>\n{\"name\": \"get\", \"arguments\": {\"n\": \"5\"}}\n</tool_call>"

static void answers_are_held_to_the_tools(void **state)
{
    (void)state;
    static const struct {
        const char *end, *choice;
        int parallel;
        const char *text;
        int n; /* bytes that it goes; -1: all */
        int complete;
    } cases[] = {
        {"", "required", 0, GET, -1, 2},
        {"", "required", 0, PUT, -1, 2},
        {"", "required", 0, GET_WRONG, 47, 0},
        {"", "required", 1, GET "\n" PUT GET, -1, 1},
        {"", "required", 0, "<think>so</think>\n\n" GET, -1, 2},
        {"", "required", 0, "Well, " GET, 0, 0},
        {"<think>\n", "required", 0, "so </thin </think>" GET, -1, 2},
        {"<think>\n\n</think>\n\n", "required", 0, "<think>", 2, 0},
        {"", "get", 0, GET, -1, 2},
        {"", "get", 0, PUT, 22, 0},
        {"", "auto", 0, "Well, <tool> " GET, -1, 2},
        {"", "auto", 0, "Well, " GET_WRONG, 53, 0},
        {"", "auto", 0, "Well, " PUT_ANY, -1, 2},
        {"", "auto", 0, "<think>" GET_WRONG "</think>Well", -1, 1},
        {"<think>\n", "auto", 0, GET_WRONG "</think>Well, " GET, -1, 2},
        {"", "auto", 0, "Well.", -1, 1},
        {"", "auto", 0, "Well, " CALL("set_timer"), 28, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int complete;
        size_t n = goes(cases[i].end, cases[i].choice, cases[i].parallel, cases[i].text, &complete);
        size_t wanted = cases[i].n < 0 ? strlen(cases[i].text) : (size_t)cases[i].n;
        if (n != wanted || complete != cases[i].complete)
            fail_msg("%zu: '%s' goes to byte %zu, not %zu; %d", i, cases[i].text, n, wanted, complete);
    }
}

static void what_is_no_constraint_or_no_tool(void **state)
{
    (void)state;
    weft_chat *chat;
    weft_chat_prompt *prompt = prompt_that_ends("", &chat);
    weft_grammar *g = (weft_grammar *)&words;
    weft_error err = {0};
    assert_int_equal(weft_chat_grammar(prompt, "[]", "auto", 0, &g, NULL), WEFT_OK);
    assert_null(g);
    assert_int_equal(weft_chat_grammar(prompt, NULL, NULL, 0, &g, NULL), WEFT_OK);
    assert_null(g);
    assert_int_equal(weft_chat_grammar(prompt, loose_tools, "get", 0, &g, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "'get'"));
    assert_int_equal(weft_chat_grammar(prompt, NULL, "required", 0, &g, &err), WEFT_ARGUMENT);
    assert_int_equal(weft_chat_grammar(prompt, "[", "required", 0, &g, &err), WEFT_FORMAT);
    assert_int_equal(weft_chat_grammar(prompt, "{}", "required", 0, &g, &err), WEFT_ARGUMENT);
    weft_chat_prompt_free(&prompt);
    weft_chat_close(&chat);
}

/* Where no function is strict, its arguments are free, and its name is not; JSON without a mark may be a text. */
static void names_are_held_where_nothing_is_strict(void **state)
{
    (void)state;
    static const char generic[] = "{{ tools | tojson if tools }}{{ messages[0].content }}";
    static const struct {
        const char *text;
        int n;
    } cases[] = {{"Well, " PUT_ANY, -1},
                 {"Well, " CALL("set_timer"), 28},
                 {"{\"name\": \"set_timer\"}", -1},
                 {"Well, <tool_call>\n{\"name\": \"put\", \"arguments\": [", 47}};
    weft_chat *chat;
    weft_chat_prompt *prompt = prompt_that_ends("", &chat);
    weft_grammar *g = NULL;
    weft_matcher *m;
    weft_error err = {0};
    assert_int_equal(weft_chat_grammar(prompt, loose_tools, "auto", 0, &g, NULL), WEFT_OK);
    assert_non_null(g);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text;
        size_t n = 0, wanted = cases[i].n < 0 ? strlen(text) : (size_t)cases[i].n;
        assert_int_equal(weft_matcher_new(g, &m, NULL), WEFT_OK);
        while (text[n] && !weft_matcher_accept(m, (unsigned char)text[n], NULL)) n++;
        if (n != wanted) fail_msg("'%s' goes to byte %zu, not %zu", text, n, wanted);
        weft_matcher_free(&m);
    }
    weft_grammar_free(&g);
    weft_chat_prompt_free(&prompt);
    weft_chat_close(&chat);
    if (weft_chat_open(&model, generic, sizeof generic - 1, &chat, &err)) fail_msg("%s", err.message);
    assert_string_equal(weft_chat_format(chat), "generic");
    assert_int_equal(
        weft_chat_render(chat, "[{\"role\":\"user\",\"content\":\"Hi\"}]", loose_tools, NULL, 1, &prompt, &err),
        WEFT_OK);
    assert_int_equal(weft_chat_grammar(prompt, loose_tools, "auto", 0, &g, NULL), WEFT_OK);
    assert_null(g);
    assert_int_equal(weft_chat_grammar(prompt, tools_text, "auto", 0, &g, NULL), WEFT_OK);
    assert_non_null(g);
    weft_grammar_free(&g);
    weft_chat_prompt_free(&prompt);
    weft_chat_close(&chat);
}

/* A template in a format, whose prompts have begun to think, or not. */
static weft_chat_prompt *prompt_in(const weft__answer_format *f, int begun, weft_chat **chat)
{
    weft_chat_prompt *prompt;
    weft__strbuf text = {0};
    weft_error err = {0};
    weft__strbuf_puts(&text, strcmp(f->name, "none") ? "{{ tools | tojson if tools }}{{ '" : "{{ '");
    for (const char *const *sign = f->signs; sign && *sign; sign++) weft__strbuf_puts(&text, *sign);
    if (!f->reasoning) weft__strbuf_puts(&text, "<think></think>");
    weft__strbuf_puts(&text, "' if none }}{{ messages[0].content }}");
    if (begun) weft__strbuf_puts(&text, f->reasoning ? f->reasoning->begin : "<think>");
    if (weft_chat_open(&model, text.data, text.len, chat, &err)) fail_msg("%s: %s", f->name, err.message);
    assert_string_equal(weft_chat_format(*chat), f->name);
    if (weft_chat_render(*chat, "[{\"role\":\"user\",\"content\":\"Hi\"}]", strcmp(f->name, "none") ? tools_text : NULL,
                         NULL, 1, &prompt, &err))
        fail_msg("%s: %s", f->name, err.message);
    weft__strbuf_free(&text);
    return prompt;
}

static void take(weft_matcher *m, const char *text, size_t n, const weft__answer_format *f, const char *choice)
{
    for (size_t i = 0; i < n; i++)
        if (weft_matcher_accept(m, (unsigned char)text[i], NULL))
            fail_msg("%s, %s: byte %zu of '%s' does not fit", f->name, choice ? choice : "no tools", i, text);
}

/* What ends thoughts beyond a budget fits where the answer must be a call, may be one, or is a form: in every format,
 * wherever the thoughts began, at once and after some. */
static void the_end_of_thoughts_fits(void **state)
{
    (void)state;
    static const char *const choices[] = {"required", "get", "auto", NULL};
    /* of sixteen a format; of every third, which are others for each, where it is looked into */
    for (size_t i = 0; i < weft__answer_n_formats * 2 * 4 * 2; i += CLAIMS_REPEATED(1, CLAIMS_SWEPT(3, 1), 1)) {
        const weft__answer_format *f = &weft__answer_formats[i / 16];
        const int begun = i / 8 % 2, some = i % 2;
        const char *choice = choices[i / 2 % 4], *begin = f->reasoning ? f->reasoning->begin : "<think>";
        weft_chat *chat;
        weft_chat_prompt *prompt = prompt_in(f, begun, &chat);
        weft_grammar *g = NULL;
        weft_matcher *m;
        weft_error err = {0};
        int32_t ids[128];
        size_t n;
        assert_int_equal(weft_chat_thinking_end(prompt, choice, ids, 128, &n, &err), WEFT_OK);
        weft_status st = choice ? weft_chat_grammar(prompt, tools_text, choice, 1, &g, &err)
                                : weft_chat_form(prompt, WEFT_GRAMMAR_REGEX, "yes", 3, &g, &err);
        if (st) fail_msg("%s: %s", f->name, err.message);
        assert_int_equal(weft_matcher_new(g, &m, NULL), WEFT_OK);
        if (n && !(f->ends_reasoning && !choice)) {
            if (!begun) take(m, begin, strlen(begin), f, choice);
            take(m, "so ", some ? 3 : 0, f, choice);
            for (size_t k = 0; k < n; k++)
                if (weft_matcher_accept(m, ids[k], &err)) fail_msg("%s, %s: %s", f->name, choice, err.message);
            uint64_t bits[64] = {0};
            assert_int_equal(weft_matcher_mask(m, bits, ((size_t)weft_tokenizer_n_vocab(&tokenizer) + 63) / 64, &err),
                             WEFT_OK);
        }
        weft_matcher_free(&m);
        weft_grammar_free(&g);
        weft_chat_prompt_free(&prompt);
        weft_chat_close(&chat);
    }
}

/* As goes() of a form, with enable_thinking as it is said. */
static size_t form_goes(const char *end, const char *kwargs, uint32_t kind, const char *source, const char *text,
                        int *complete)
{
    weft_chat *chat;
    weft_chat_prompt *prompt = prompt_with(end, kwargs, &chat);
    weft_grammar *g;
    weft_matcher *m;
    weft_error err = {0};
    size_t n = 0;
    if (weft_chat_form(prompt, kind, source, source ? strlen(source) : 0, &g, &err)) fail_msg("%s", err.message);
    weft_chat_prompt_free(&prompt);
    weft_chat_close(&chat);
    assert_int_equal(weft_matcher_new(g, &m, NULL), WEFT_OK);
    weft_grammar_free(&g);
    while (text[n] && !weft_matcher_accept(m, (unsigned char)text[n], NULL)) n++;
    *complete = weft_matcher_complete(m);
    weft_matcher_free(&m);
    return n;
}

static void thoughts_stand_before_a_form(void **state)
{
    (void)state;
    static const char off[] = "{\"enable_thinking\": false}";
    static const char schema[] = "{\"type\": \"object\", \"properties\": {\"n\": {\"type\": \"integer\"}}, "
                                 "\"required\": [\"n\"], \"additionalProperties\": false}";
    static const struct {
        const char *end, *kwargs;
        uint32_t kind;
        const char *source, *text;
        int n, complete;
    } cases[] = {
        {"", NULL, WEFT_GRAMMAR_SCHEMA, schema, "{\"n\": 5}", -1, 2},
        {"", NULL, WEFT_GRAMMAR_SCHEMA, schema, "<think>\nso {\"n\": \"x\"} </thin\n</think>\n\n{\"n\": 5}", -1, 2},
        {"", NULL, WEFT_GRAMMAR_SCHEMA, schema, "<think>so</think>{\"n\": \"x\"}", 23, 0},
        {"", NULL, WEFT_GRAMMAR_SCHEMA, schema, "<think>so</think><think>", 17, 0},
        {"", NULL, WEFT_GRAMMAR_SCHEMA, schema, "Well", 0, 0},
        {"", off, WEFT_GRAMMAR_SCHEMA, schema, "<think>", 0, 0},
        {"", off, WEFT_GRAMMAR_SCHEMA, schema, "{\"n\": 5}", -1, 2},
        {"<think>\n", NULL, WEFT_GRAMMAR_SCHEMA, schema, "so</think>\n\n{\"n\": 5}", -1, 2},
        {"<think>\n", off, WEFT_GRAMMAR_SCHEMA, schema, "{\"n\": 5}</think>{\"n\": 6}", 0, 0},
        {"<think>\n", off, WEFT_GRAMMAR_SCHEMA, schema, "so</think>{\"n\": 6}", 0, 0},
        {"<think>\n", off, WEFT_GRAMMAR_SCHEMA, schema, "\n</think>\n\n{\"n\": 6}", -1, 2},
        {"<think>\n", off, WEFT_GRAMMAR_SCHEMA, schema, "</think>{\"n\": 6}", -1, 2},
        {"<think>\n\n</think>\n\n", NULL, WEFT_GRAMMAR_SCHEMA, schema, "{\"n\": 5}", -1, 2},
        {"<think>\n\n</think>\n\n", NULL, WEFT_GRAMMAR_SCHEMA, schema, "<think>", 0, 0},
        {"<think>", NULL, WEFT_GRAMMAR_JSON, NULL, "so</think>{\"n\": [5]}", -1, 2},
        {"<think>", NULL, WEFT_GRAMMAR_REGEX, "a+b", "aab</think>aab", -1, 2},
        {"<think>", NULL, WEFT_GRAMMAR_CHOICES, "[\"yes\", \"no\"]", "so</think>no", -1, 2},
        {"", NULL, WEFT_GRAMMAR_LARK, "start: \"a\" \"b\"", "<think>x</think>\nab", -1, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int complete;
        size_t n = form_goes(cases[i].end, cases[i].kwargs, cases[i].kind, cases[i].source, cases[i].text, &complete);
        size_t wanted = cases[i].n < 0 ? strlen(cases[i].text) : (size_t)cases[i].n;
        if (n != wanted || complete != cases[i].complete)
            fail_msg("%zu: '%s' goes to byte %zu, not %zu; %d", i, cases[i].text, n, wanted, complete);
    }
}

/* The marks of a format whose texts begin with one. */
static void marks_lead_to_a_form(void **state)
{
    (void)state;
    static const char source[] = "{# <|channel|> <|message|> <|call|> #}{{ messages[0].content }}<|start|>assistant";
    static const char *const texts[] = {
        "[1]", "<|channel|>final<|message|>[1]",
        "<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>final<|message|>[1]"};
    weft_chat *chat;
    weft_chat_prompt *prompt;
    weft_error err = {0};
    if (weft_chat_open(&model, source, sizeof source - 1, &chat, &err)) fail_msg("%s", err.message);
    assert_string_equal(weft_chat_format(chat), "harmony");
    for (int off = 0; off < 2; off++)
        for (size_t i = 0; i < 3; i++) {
            weft_grammar *g;
            weft_matcher *m;
            size_t n = 0;
            assert_int_equal(weft_chat_render(chat, "[{\"role\":\"user\",\"content\":\"Hi\"}]", NULL,
                                              off ? "{\"enable_thinking\": false}" : NULL, 1, &prompt, &err),
                             WEFT_OK);
            assert_true(weft_chat_form_lead(prompt) > 0);
            assert_int_equal(weft_chat_form(prompt, WEFT_GRAMMAR_REGEX, "\\[1\\]", 5, &g, &err), WEFT_OK);
            weft_chat_prompt_free(&prompt);
            assert_int_equal(weft_matcher_new(g, &m, NULL), WEFT_OK);
            weft_grammar_free(&g);
            while (texts[i][n] && !weft_matcher_accept(m, (unsigned char)texts[i][n], NULL)) n++;
            assert_int_equal(texts[i][n] == 0, !(off && i == 2));
            weft_matcher_free(&m);
        }
    weft_chat_close(&chat);
}

/* One of the form, or calls; behind thoughts, which both have in front. Of '<', as calls begin with, the form's strings
 * have some. */
static void an_answer_is_of_the_form_or_calls(void **state)
{
    (void)state;
    static const char off[] = "{\"enable_thinking\": false}";
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"string\"}},\"required\":[\"n\"],"
        "\"additionalProperties\":false}";
    static const struct {
        const char *end, *kwargs;
        int parallel;
        const char *text;
        int n, complete;
    } cases[] = {
        {"", NULL, 1, "{\"n\": \"a <tool_call> b\"}", -1, 2},
        {"", NULL, 1, GET "\n" PUT_ANY, -1, 1},
        {"", NULL, 0, GET, -1, 2},
        {"", NULL, 1, GET "{", (int)sizeof GET - 1, 1},
        {"", NULL, 1, "{\"n\": \"a\"}<", 10, 2},
        {"", NULL, 1, GET_WRONG, 47, 0},
        {"", NULL, 1, CALL("set_timer"), 22, 0},
        {"", NULL, 1, "Well, ", 0, 0},
        {"", NULL, 1, "{\"name\": ", 3, 0},
        {"", NULL, 1, "<think>so</think>\n\n{\"n\": \"\"}", -1, 2},
        {"", NULL, 1, "<think>so</think>\n\n" GET, -1, 1},
        {"", off, 1, "<think>", 2, 0},
        {"<think>\n", NULL, 1, "so</think>" GET, -1, 1},
        {"<think>\n", NULL, 1, "so</think>{\"n\": \"\"}", -1, 2},
        {"<think>\n", off, 1, "so", 0, 0},
        {"<think>\n", off, 1, "</think>\n\n" GET, -1, 1},
        {"<think>\n", off, 1, "</think>\n\n{\"n\": \"\"}", -1, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft_chat *chat;
        weft_chat_prompt *prompt = prompt_with(cases[i].end, cases[i].kwargs, &chat);
        weft_grammar *g;
        weft_matcher *m;
        weft_error err = {0};
        size_t n = 0, wanted = cases[i].n < 0 ? strlen(cases[i].text) : (size_t)cases[i].n;
        if (weft_chat_form_or_calls(prompt, WEFT_GRAMMAR_SCHEMA, schema, sizeof schema - 1, tools_text,
                                    cases[i].parallel, &g, &err))
            fail_msg("%zu: %s", i, err.message);
        weft_chat_prompt_free(&prompt);
        weft_chat_close(&chat);
        assert_int_equal(weft_matcher_new(g, &m, NULL), WEFT_OK);
        weft_grammar_free(&g);
        while (cases[i].text[n] && !weft_matcher_accept(m, (unsigned char)cases[i].text[n], NULL)) n++;
        if (n != wanted || weft_matcher_complete(m) != cases[i].complete)
            fail_msg("%zu: '%s' goes to byte %zu, not %zu; %d", i, cases[i].text, n, wanted, weft_matcher_complete(m));
        weft_matcher_free(&m);
    }
}

/* In every format a call, and a form of each kind; what either refuses is told by its place. */
static void forms_stand_beside_calls_in_every_format(void **state)
{
    (void)state;
    static const struct {
        uint32_t kind;
        const char *source;
    } forms[] = {{WEFT_GRAMMAR_SCHEMA, "{\"type\": \"object\"}"},
                 {WEFT_GRAMMAR_JSON, NULL},
                 {WEFT_GRAMMAR_REGEX, "yes|no"},
                 {WEFT_GRAMMAR_CHOICES, "[\"yes\", \"no\"]"},
                 {WEFT_GRAMMAR_LARK, "start: \"yes\" | \"no\""},
                 {WEFT_GRAMMAR_GBNF, "root ::= call | \"no\"\ncall ::= \"yes\""}};
    enum { N_FORMS = sizeof forms / sizeof *forms };
    weft_error err = {0};
    for (size_t i = 0; i < weft__answer_n_formats * N_FORMS; i++) {
        const weft__answer_format *f = &weft__answer_formats[i / N_FORMS];
        const char *source = forms[i % N_FORMS].source;
        weft_chat *chat;
        weft_grammar *g = NULL;
        weft_matcher *m;
        weft_chat_prompt *prompt = prompt_in(f, 0, &chat);
        if (!f->n_forms) assert_string_equal(f->name, "none");
        if (f->n_forms && weft_chat_form_or_calls(prompt, forms[i % N_FORMS].kind, source, source ? strlen(source) : 0,
                                                  tools_text, 1, &g, &err))
            fail_msg("%s: %s", f->name, err.message);
        if (g) {
            assert_int_equal(weft_matcher_new(g, &m, NULL), WEFT_OK);
            take(m, i % N_FORMS < 2 ? "{\"a\": \"<>\"}" : "yes", i % N_FORMS < 2 ? 11 : 3, f, "form");
            assert_true(weft_matcher_complete(m));
            weft_matcher_free(&m);
        }
        weft_grammar_free(&g);
        weft_chat_prompt_free(&prompt);
        weft_chat_close(&chat);
    }
    weft_chat *chat;
    weft_chat_prompt *prompt = prompt_that_ends("", &chat);
    weft_grammar *g = NULL;
    assert_int_equal(weft_chat_form_or_calls(prompt, WEFT_GRAMMAR_SCHEMA, "{\"contains\": {\"const\": 1}}", 26,
                                             tools_text, 1, &g, &err),
                     WEFT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "schema: #/contains"));
    assert_null(strstr(err.message, "tools"));
    assert_int_equal(weft_chat_form_or_calls(prompt, WEFT_GRAMMAR_JSON, NULL, 0, "[{\"function\": {}}]", 1, &g, &err),
                     WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "tools[0]"));
    weft_chat_prompt_free(&prompt);
    weft_chat_close(&chat);
}

/* Functions that are too much together, of which none is at fault alone. */
static void the_largest_of_too_many_functions_is_named(void **state)
{
    (void)state;
    weft_chat *chat;
    weft_chat_prompt *prompt = prompt_that_ends("", &chat);
    weft__strbuf tools = {0};
    weft_grammar *g = NULL;
    weft_error err = {0};
    enum { N = 60, LARGEST = 41 };
    for (int i = 0; i < N; i++)
        weft__strbuf_printf(
            &tools,
            "%c{\"function\":{\"name\":\"f%d\",\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{"
            "\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"minItems\":%d,\"title\":\"%*s\"}}}}}",
            i ? ',' : '[', i, 900 + i, i == LARGEST ? 20 : 1, "t");
    weft__strbuf_puts(&tools, "]");
    for (int form = 0; form < 2; form++) {
        weft_status st = form ? weft_chat_form_or_calls(prompt, WEFT_GRAMMAR_JSON, NULL, 0, tools.data, 1, &g, &err)
                              : weft_chat_grammar(prompt, tools.data, "required", 1, &g, &err);
        if (form) { /* arguments of functions that are not strict are free */
            assert_int_equal(st, WEFT_OK);
            weft_grammar_free(&g);
            continue;
        }
        assert_int_equal(st, WEFT_LIMIT);
        if (!strstr(err.message, "tools: these 60 take too much together, most of it tools[41] ('f41', "))
            fail_msg("%s", err.message);
    }
    weft__strbuf_free(&tools);
    weft_chat_prompt_free(&prompt);
    weft_chat_close(&chat);
}

static int make_all(void *arg)
{
    weft_grammar *g = NULL;
    weft_status st = weft_chat_grammar(arg, tools_text, "auto", 1, &g, NULL);
    weft_grammar_free(&g);
    if (!st) st = weft_chat_form(arg, WEFT_GRAMMAR_CHOICES, "[\"yes\", \"no\"]", 13, &g, NULL);
    weft_grammar_free(&g);
    if (!st) st = weft_chat_form_or_calls(arg, WEFT_GRAMMAR_CHOICES, "[\"yes\", \"no\"]", 13, tools_text, 1, &g, NULL);
    weft_grammar_free(&g);
    if (st) assert_int_equal(st, WEFT_NO_MEMORY);
    return !st;
}

static void refused_allocations_are_reported(void **state)
{
    (void)state;
    weft_chat *chat;
    weft_chat_prompt *prompt = prompt_that_ends("", &chat);
    assert_true(make_all(prompt)); /* the tokenizer keeps its trie */
    assert_true(fail_some(make_all, prompt, CLAIMS_REPEATED(11, CLAIMS_SWEPT(29, 11), 11)) > 50);
    weft_chat_prompt_free(&prompt);
    weft_chat_close(&chat);
}

static int set_up(void **state)
{
    (void)state;
    vocab_make(&words, 1, 0);
    tokenizer.t = words.tok;
    model.tokenizer = &tokenizer;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    weft__gram_trie *trie = tokenizer.trie;
    weft__gram_trie_release(&trie);
    vocab_close(&words);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_held_to_the_tools),
        cmocka_unit_test(what_is_no_constraint_or_no_tool),
        cmocka_unit_test(thoughts_stand_before_a_form),
        cmocka_unit_test(marks_lead_to_a_form),
        cmocka_unit_test(refused_allocations_are_reported),
        cmocka_unit_test(names_are_held_where_nothing_is_strict),
        cmocka_unit_test(the_end_of_thoughts_fits),
        cmocka_unit_test(an_answer_is_of_the_form_or_calls),
        cmocka_unit_test(forms_stand_beside_calls_in_every_format),
        cmocka_unit_test(the_largest_of_too_many_functions_is_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
