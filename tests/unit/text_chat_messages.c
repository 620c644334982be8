// SPDX-License-Identifier: Apache-2.0
/* text_chat_messages.c: whatever a client's dialect makes of messages, a template sees them in one shape, calls with
 * the arguments that it wants; and what is no shape of a message is refused by its place. */
#include <stdio.h>

#include "unit/fixture.h"

#include "text/chat/messages.h"

static weft__json *parsed(const char *text)
{
    weft__json *v = NULL;
    weft_error err = {0};
    if (weft__json_parse(text, strlen(text), &v, &err)) fail_msg("%s: %s", text, err.message);
    return v;
}

static void expect(const weft__json *v, const char *wanted, const char *given)
{
    weft__strbuf text = {0};
    weft__json_write(&text, v, WEFT__JSON_SPACED);
    if (strcmp(text.data, wanted)) fail_msg("%s became %s, not %s", given, text.data, wanted);
    weft__strbuf_free(&text);
}

static void becomes_for(const char *given, weft__chat_arguments_form form, int functions, const char *wanted)
{
    weft__chat_reading r = {.form = form, .functions = functions}, again = r;
    weft__json *v = parsed(given), *normal = NULL, *twice = NULL;
    weft_error err = {0};
    if (weft__chat_message_normal(&r, v, "messages[0]", &normal, &err)) fail_msg("%s: %s", given, err.message);
    expect(normal, wanted, given);
    assert_int_equal(weft__chat_message_normal(&again, normal, "messages[0]", &twice, NULL), WEFT_OK);
    expect(twice, wanted, wanted);
    weft__json_free(&twice);
    weft__json_free(&normal);
    weft__json_free(&v);
}

static void becomes(const char *given, weft__chat_arguments_form form, const char *wanted)
{
    becomes_for(given, form, 0, wanted);
}

#define ASSISTANT "{\"role\": \"assistant\""

static void what_is_null_is_not_there(void **state)
{
    (void)state;
    static const char plain[] = ASSISTANT ", \"content\": \"\"}";
    static const char *const same[] = {
        ASSISTANT "}",
        ASSISTANT ", \"content\": null}",
        ASSISTANT ", \"content\": []}",
        ASSISTANT ", \"content\": \"\", \"tool_calls\": null}",
        ASSISTANT ", \"tool_calls\": []}",
        ASSISTANT ", \"content\": null, \"refusal\": null, \"audio\": null, \"function_call\": null, \"name\": null, "
                  "\"reasoning_content\": null, \"annotations\": null, \"tool_call_id\": null}"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) becomes(same[i], WEFT__CHAT_ARGUMENTS_OBJECT, plain);
    /* Of calls, too; what null means in arguments is theirs. */
    becomes(
        ASSISTANT
        ", \"tool_calls\": [{\"index\": null, \"id\": null, \"type\": \"function\", \"custom\": null, \"function\": "
        "{\"name\": \"f\", \"description\": null, \"arguments\": {\"a\": null}}}]}",
        WEFT__CHAT_ARGUMENTS_OBJECT,
        ASSISTANT
        ", \"tool_calls\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": {\"a\": null}}}], "
        "\"content\": \"\"}");
    becomes("{\"role\": \"developer\", \"content\": [{\"type\": \"text\", \"text\": \"a\", \"cache_control\": null}]}",
            WEFT__CHAT_ARGUMENTS_OBJECT, "{\"role\": \"system\", \"content\": \"a\"}");
}

/* Templates that print messages show the order of their members. */
static void members_keep_their_places(void **state)
{
    (void)state;
    static const char *const contents[][2] = {{"\"a\"", "\"a\""},
                                              {"[{\"type\": \"text\", \"text\": \"a\"}]", "\"a\""},
                                              {"null", "\"\""}},
                             *const shapes[] = {"{\"role\": \"user\", \"content\": %s, \"name\": \"n\"}",
                                                "{\"content\": %s, \"role\": \"user\"}",
                                                "{\"name\": \"n\", \"role\": \"user\", \"content\": %s}",
                                                ASSISTANT
                                                ", \"content\": %s, \"tool_calls\": [{\"name\": \"f\"}], \"x\": 1}"};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
            char given[200], wanted[200];
            snprintf(given, sizeof given, shapes[s], contents[i][0]);
            snprintf(wanted, sizeof wanted, shapes[s], contents[i][1]);
            becomes(given, WEFT__CHAT_ARGUMENTS_OBJECT, wanted);
        }
    becomes("{\"role\": \"user\", \"name\": \"n\"}", WEFT__CHAT_ARGUMENTS_OBJECT,
            "{\"role\": \"user\", \"name\": \"n\", \"content\": \"\"}");
}

/* A message that calls f with these arguments; NULL: none. */
static const char *calling(char out[400], const char *arguments, const char *shape)
{
    char function[200];
    snprintf(function, sizeof function, "{\"name\": \"f\"%s%s}", arguments ? ", \"arguments\": " : "",
             arguments ? arguments : "");
    snprintf(out, 400, shape, function);
    return out;
}

static void arguments_have_the_form_that_is_wanted(void **state)
{
    (void)state;
    static const char *const shapes[] = {ASSISTANT ", \"tool_calls\": [{\"function\": %s}], \"content\": \"\"}",
                                         ASSISTANT ", \"function_call\": %s, \"content\": \"\"}"},
                             *const shown[] = {
                                 ASSISTANT ", \"tool_calls\": [{\"function\": %s}], \"content\": \"\"}", ASSISTANT
                                 ", \"tool_calls\": [{\"type\": \"function\", \"function\": %s}], \"content\": \"\"}"};
    static const struct {
        const char *given, *object, *text, *passed_on;
    } cases[] = {
        {"{\"b\": 1, \"a\": [null, 2.5]}", "{\"b\": 1, \"a\": [null, 2.5]}",
         "\"{\\\"b\\\": 1, \\\"a\\\": [null, 2.5]}\"", "{\"b\": 1, \"a\": [null, 2.5]}"},
        {"\"{\\\"b\\\":1,\\\"a\\\":[]}\"", "{\"b\": 1, \"a\": []}", "\"{\\\"b\\\":1,\\\"a\\\":[]}\"",
         "\"{\\\"b\\\":1,\\\"a\\\":[]}\""},
        {"\"{}\"", "{}", "\"{}\"", "\"{}\""},
        {"\"\"", "{}", "\"{}\"", "{}"},
        {"\" \\n\"", "{}", "\"{}\"", "{}"},
        {"\"null\"", "{}", "\"null\"", "\"null\""},
        {"null", "{}", "\"{}\"", "{}"},
        {NULL, "{}", "\"{}\"", "{}"},
    };
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            char given[400], wanted[400];
            becomes(calling(given, cases[i].given, shapes[s]), WEFT__CHAT_ARGUMENTS_OBJECT,
                    calling(wanted, cases[i].object, shown[s]));
            becomes(calling(given, cases[i].given, shapes[s]), WEFT__CHAT_ARGUMENTS_TEXT,
                    calling(wanted, cases[i].text, shown[s]));
            becomes_for(calling(given, cases[i].given, shapes[s]), WEFT__CHAT_ARGUMENTS_OBJECT, 1,
                        calling(wanted, cases[i].object, shapes[s]));
            becomes(calling(given, cases[i].given, shapes[s]), WEFT__CHAT_ARGUMENTS_GIVEN,
                    calling(wanted, cases[i].passed_on, shapes[s]));
        }
    /* Content that is nothing beside calls is null where that is wanted; other content stays. */
    becomes(ASSISTANT ", \"tool_calls\": [{\"function\": {\"arguments\": {}}}], \"content\": \"\"}",
            WEFT__CHAT_ARGUMENTS_TEXT_ALONE,
            ASSISTANT ", \"tool_calls\": [{\"function\": {\"arguments\": \"{}\"}}], \"content\": null}");
    becomes(ASSISTANT ", \"tool_calls\": [{\"function\": {\"arguments\": {}}}], \"content\": \"a\"}",
            WEFT__CHAT_ARGUMENTS_TEXT_ALONE,
            ASSISTANT ", \"tool_calls\": [{\"function\": {\"arguments\": \"{}\"}}], \"content\": \"a\"}");
    becomes(ASSISTANT ", \"content\": \"\"}", WEFT__CHAT_ARGUMENTS_TEXT_ALONE, ASSISTANT ", \"content\": \"\"}");
    /* Without a function around them, as Hugging Face's examples have them. */
    becomes(ASSISTANT ", \"tool_calls\": [{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}]}",
            WEFT__CHAT_ARGUMENTS_OBJECT,
            ASSISTANT ", \"tool_calls\": [{\"name\": \"f\", \"arguments\": {\"a\": 1}}], \"content\": \"\"}");
}

#define RESULT "{\"role\": \"function\", \"name\": \"f\", \"content\": \"ok\"}"

/* Templates know tools; what came before them would vanish from the prompt. */
static void functions_are_tools(void **state)
{
    (void)state;
    static const char call[] =
        ASSISTANT ", \"content\": null, \"tool_calls\": null, \"function_call\": {\"name\": \"f\", \"arguments\": "
                  "\"{\\\"a\\\": 1}\", \"id\": null}, \"x\": 1}",
                      both[] = ASSISTANT
                      ", \"content\": \"\", \"function_call\": {\"name\": \"f\", \"arguments\": {}}, \"tool_calls\": "
                      "[{\"name\": \"g\"}]}";
    becomes(
        call, WEFT__CHAT_ARGUMENTS_OBJECT,
        ASSISTANT
        ", \"content\": \"\", \"tool_calls\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": "
        "{\"a\": 1}}}], \"x\": 1}");
    becomes(both, WEFT__CHAT_ARGUMENTS_OBJECT, both);
    becomes(RESULT, WEFT__CHAT_ARGUMENTS_OBJECT, "{\"role\": \"tool\", \"name\": \"f\", \"content\": \"ok\"}");
    becomes(RESULT, WEFT__CHAT_ARGUMENTS_TEXT, "{\"role\": \"tool\", \"name\": \"f\", \"content\": \"ok\"}");
    /* Templates that know functions, and who passes messages on, get them as they are. */
    becomes(RESULT, WEFT__CHAT_ARGUMENTS_GIVEN, RESULT);
    becomes_for(RESULT, WEFT__CHAT_ARGUMENTS_OBJECT, 1, RESULT);
}

static void other_shapes_are_refused_by_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *message, *field, *words;
        weft_status status;
    } cases[] = {
        {"5", "messages[7]", "must be an object", WEFT_ARGUMENT},
        {ASSISTANT ", \"tool_calls\": {}}", "messages[7].tool_calls", "an array of calls", WEFT_ARGUMENT},
        {ASSISTANT ", \"tool_calls\": \"\"}", "messages[7].tool_calls", "an array of calls", WEFT_ARGUMENT},
        {ASSISTANT ", \"tool_calls\": [null]}", "messages[7].tool_calls[0]", "must be an object", WEFT_ARGUMENT},
        {ASSISTANT ", \"tool_calls\": [{}, {\"function\": \"f\"}]}", "messages[7].tool_calls[1].function",
         "must be an object", WEFT_ARGUMENT},
        {ASSISTANT ", \"tool_calls\": [{\"function\": {\"arguments\": \"{'a': 1}\"}}]}",
         "messages[7].tool_calls[0].function.arguments", "one as text: line 1", WEFT_ARGUMENT},
        {ASSISTANT ", \"tool_calls\": [{\"function\": {\"arguments\": \"{\\\"a\\\": \"}}]}",
         "messages[7].tool_calls[0].function.arguments", "one as text: line 1", WEFT_ARGUMENT},
        {ASSISTANT ", \"tool_calls\": [{\"function\": {\"arguments\": \"[1]\"}}]}",
         "messages[7].tool_calls[0].function.arguments", "JSON, but no object", WEFT_ARGUMENT},
        {ASSISTANT ", \"tool_calls\": [{\"function\": {\"arguments\": [1]}}]}",
         "messages[7].tool_calls[0].function.arguments", "must be a JSON object", WEFT_ARGUMENT},
        {ASSISTANT ", \"tool_calls\": [{\"function\": {\"arguments\": 5}}]}",
         "messages[7].tool_calls[0].function.arguments", "must be a JSON object", WEFT_ARGUMENT},
        {ASSISTANT ", \"tool_calls\": [{\"name\": \"f\", \"arguments\": \"x\"}]}",
         "messages[7].tool_calls[0].arguments", "must be a JSON object", WEFT_ARGUMENT},
        {ASSISTANT ", \"function_call\": {\"name\": \"f\", \"arguments\": \"x\"}}",
         "messages[7].function_call.arguments", "must be a JSON object", WEFT_ARGUMENT},
        {ASSISTANT ", \"content\": 5}", "messages[7].content", "a string or an array of parts", WEFT_ARGUMENT},
        {ASSISTANT ", \"content\": [{\"type\": \"text\", \"text\": null}]}", "messages[7].content[0]",
         "must be a string", WEFT_ARGUMENT},
        {ASSISTANT ", \"content\": [{\"type\": \"image_url\"}]}", "messages[7].content[0]", "image_url",
         WEFT_UNSUPPORTED},
    };
    for (int form = 0; form < 3; form++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            weft__chat_reading r = {.form = (weft__chat_arguments_form)form};
            weft__json *v = parsed(cases[i].message), *out = v;
            weft_error err = {0};
            assert_int_equal(weft__chat_message_normal(&r, v, "messages[7]", &out, &err), cases[i].status);
            assert_null(out);
            assert_string_equal(r.field, cases[i].field);
            if (!strstr(err.message, cases[i].words) || !strstr(err.message, cases[i].field))
                fail_msg("%s: %s", cases[i].message, err.message);
            weft__json_free(&v);
        }
}

/* A text of a few megabytes would be many times as large as a tree; so would many texts. */
static void arguments_are_bounded(void **state)
{
    (void)state;
    weft__strbuf text = {0};
    weft__chat_reading r = {0};
    weft__json *v, *out;
    weft_error err = {0};
    weft__strbuf_puts(&text, ASSISTANT ", \"tool_calls\": [");
    for (int call = 0; call < 40; call++) {
        weft__strbuf_puts(&text, call ? ", {\"function\": {\"arguments\": \"{" : "{\"function\": {\"arguments\": \"{");
        for (int i = 0; i < 10000; i++) weft__strbuf_printf(&text, "%s\\\"%d\\\":[]", i ? "," : "", i);
        weft__strbuf_puts(&text, "}\"}}");
    }
    weft__strbuf_puts(&text, "]}");
    assert_int_equal(weft__json_parse(text.data, text.len, &v, NULL), WEFT_OK);
    assert_int_equal(weft__chat_message_normal(&r, v, "messages[0]", &out, &err), WEFT_LIMIT);
    assert_non_null(strstr(err.message, "too many values"));
    weft__json_free(&v);
    weft__strbuf_free(&text);
    char deep[700] = ASSISTANT ", \"tool_calls\": [{\"name\": \"f\", \"arguments\": \"{\\\"a\\\":";
    memset(deep + strlen(deep), '[', 300);
    strcat(deep, "\"}]}");
    v = parsed(deep);
    assert_int_equal(weft__chat_message_normal(&r, v, "messages[0]", &out, &err), WEFT_LIMIT);
    weft__json_free(&v);
}

static void what_stands_beside_messages(void **state)
{
    (void)state;
    weft__json *out, *none[] = {NULL, parsed("null"), parsed("[]")};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weft__chat_tools_normal(none[i], &out, NULL), WEFT_OK);
        assert_null(out);
        assert_int_equal(weft__chat_kwargs_normal(i < 2 ? none[i] : NULL, &out, NULL), WEFT_OK);
        expect(out, "{\"enable_thinking\": true}", "kwargs");
        weft__json_free(&out);
        weft__json_free(&none[i]);
    }
    weft__json
        *tools = parsed(
            "[{\"type\": \"function\", \"x\": null, \"function\": {\"name\": \"f\", \"strict\": null, \"parameters\": "
            "{\"default\": null}}}, 5]"),
        *kwargs = parsed("{\"enable_thinking\": null, \"a\": {\"b\": null}}"),
        *off = parsed("{\"enable_thinking\": false}");
    assert_int_equal(weft__chat_tools_normal(tools, &out, NULL), WEFT_OK);
    expect(out, "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"default\": null}}}, 5]",
           "tools");
    weft__json_free(&out);
    assert_int_equal(weft__chat_kwargs_normal(kwargs, &out, NULL), WEFT_OK);
    expect(out, "{\"a\": {\"b\": null}}", "kwargs"); /* null: as the template has it */
    weft__json_free(&out);
    assert_int_equal(weft__chat_kwargs_normal(off, &out, NULL), WEFT_OK);
    expect(out, "{\"enable_thinking\": false}", "kwargs");
    weft__json_free(&out);
    weft__json_free(&off);
    assert_int_equal(weft__chat_tools_normal(kwargs, &out, NULL), WEFT_ARGUMENT);
    assert_int_equal(weft__chat_kwargs_normal(tools, &out, NULL), WEFT_ARGUMENT);
    weft__json_free(&kwargs);
    weft__json_free(&tools);
}

#define TURNS(call)                                                                                                    \
    "{% for m in messages %}{{ m.role }}{% for c in m.tool_calls or [] %}" call "{% endfor %}{% endfor %}"

static void templates_are_asked_what_they_want(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        weft__chat_arguments_form form;
    } cases[] = {
        {"{% for m in messages %}{{ m.content }}{% endfor %}", WEFT__CHAT_ARGUMENTS_OBJECT}, /* knows no calls */
        {TURNS("{{ c.function.arguments | tojson }}"), WEFT__CHAT_ARGUMENTS_OBJECT},
        {TURNS("{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}"),
         WEFT__CHAT_ARGUMENTS_OBJECT},
        {TURNS("{{ c.function.arguments if c.function.arguments is string else c.function.arguments | tojson }}"),
         WEFT__CHAT_ARGUMENTS_OBJECT},
        {TURNS("{{ c.function.arguments }}"), WEFT__CHAT_ARGUMENTS_TEXT}, /* a dict would be printed as Python does */
        {TURNS("{{ 'call ' ~ c.function.arguments }}"), WEFT__CHAT_ARGUMENTS_TEXT},
        {TURNS("{{ 'call ' + c.function.arguments }}"), WEFT__CHAT_ARGUMENTS_TEXT}, /* refuses a dict */
        {TURNS("{% if c.function.arguments is string %}{{ c.function.arguments }}{% endif %}"),
         WEFT__CHAT_ARGUMENTS_TEXT},
        {"{{ tools[0].function.name }}" TURNS("{{ 'call ' + c.function.arguments }}"),
         WEFT__CHAT_ARGUMENTS_TEXT}, /* only beside tools */
        {"{% for m in messages if m.content is none %}" TURNS("{{ 'call ' + c.function.arguments }}") "{% endfor %}",
         WEFT__CHAT_ARGUMENTS_TEXT_ALONE}, /* only without content */
        {"{{ raise_exception('no') }}", WEFT__CHAT_ARGUMENTS_OBJECT},
        {"{% for i in range(100000) %}{% for k in range(100000) %}{% endfor %}{% endfor %}",
         WEFT__CHAT_ARGUMENTS_OBJECT}, /* and is not waited for */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__chat_template *t;
        assert_int_equal(weft__chat_template_create(cases[i].source, strlen(cases[i].source), &t, NULL), WEFT_OK);
        if (weft__chat_template_arguments(t) != cases[i].form) fail_msg("%s: the other form", cases[i].source);
        weft__chat_template_destroy(&t);
    }
}

static void templates_are_asked_whether_they_know_functions(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        int knows;
    } cases[] = {
        {"{% for m in messages %}{{ m.content }}{% endfor %}", 0},
        {"{% for m in messages %}{% if m.function_call %}<function_call>{% endif %}{% endfor %}",
         0}, /* shows none of it */
        {TURNS("<function_call>{{ c.function.arguments | tojson }}"), 0},
        {"{% for m in messages %}{% if m.function_call %}{{ m.function_call.arguments | tojson }}{% endif %}{% endfor "
         "%}",
         1},
        {"{% for m in messages %}{% if m.function_call %}{{ '' + m.function_call.arguments }}{% endif %}{% endfor %}",
         1},
        {"{{ tools[0].function.name }}{% for m in messages %}{{ m.function_call }}{% endfor %}",
         1}, /* only beside tools */
        {"{{ messages | tojson }}", 1},
        {"{{ raise_exception('no') }}", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__chat_template *t;
        assert_int_equal(weft__chat_template_create(cases[i].source, strlen(cases[i].source), &t, NULL), WEFT_OK);
        if (weft__chat_template_functions(t) != cases[i].knows) fail_msg("%s: the other answer", cases[i].source);
        weft__chat_template_destroy(&t);
    }
}

static int normalize(void *arg)
{
    weft__chat_reading r = {.form = *(weft__chat_arguments_form *)arg};
    weft__json *v = NULL, *out = NULL, *tools = NULL;
    static const char text[] =
        "[" ASSISTANT
        ", \"content\": [{\"type\": \"text\", \"text\": \"a\"}], \"tool_calls\": [{\"id\": null, \"function\": "
        "{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}}], \"function_call\": {\"name\": \"g\"}}, " ASSISTANT
        ", \"function_call\": {\"name\": \"g\"}}, " RESULT "]";
    weft_status st = weft__json_parse(text, strlen(text), &v, NULL);
    if (!st) st = weft__chat_messages_normal(&r, v, &out, NULL);
    if (!st) st = weft__chat_tools_normal(v, &tools, NULL);
    assert_true(st == WEFT_OK || st == WEFT_NO_MEMORY);
    if (st) assert_null(tools);
    weft__json_free(&tools);
    weft__json_free(&out);
    weft__json_free(&v);
    return !st;
}

static void without_memory(void **state)
{
    (void)state;
    for (int form = 0; form < 3; form++)
        assert_true(fail_each(normalize, &(weft__chat_arguments_form){(weft__chat_arguments_form)form}) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_null_is_not_there),
        cmocka_unit_test(members_keep_their_places),
        cmocka_unit_test(arguments_have_the_form_that_is_wanted),
        cmocka_unit_test(functions_are_tools),
        cmocka_unit_test(other_shapes_are_refused_by_their_place),
        cmocka_unit_test(arguments_are_bounded),
        cmocka_unit_test(what_stands_beside_messages),
        cmocka_unit_test(templates_are_asked_what_they_want),
        cmocka_unit_test(templates_are_asked_whether_they_know_functions),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
