// SPDX-License-Identifier: Apache-2.0
/* engine_tools.c: tools reach a model whose template has no variable for them: by another name, or in a message of
 * the system's or the user's, with the form of a call; and everything else is rendered as that template does. */
#include "unit/fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "claims.h"
#include "model/shared.h"
#include "weft/weft.h"

#define MODEL "models/alderbrook.gguf"
#define TOOLS                                                                                                          \
    "[{\"type\": \"function\", \"function\": {\"name\": \"get_rain\", \"description\": \"Is it raining?\", "           \
    "\"parameters\": {\"type\": \"object\", \"properties\": {\"town\": {\"type\": \"string\", \"description\": "       \
    "\"Where\"}}, \"required\": [\"town\"]}}}]"
#define USER "{\"role\": \"user\", \"content\": \"Bern?\"}"
#define CALLS                                                                                                          \
    "[{\"role\": \"system\", \"content\": \"Be terse.\"}, " USER                                                       \
    ", {\"role\": \"assistant\", \"content\": \"I look.\", "                                                           \
    "\"tool_calls\": [{\"id\": \"abcdefgh1\", \"type\": \"function\", \"function\": {\"name\": \"get_rain\", "         \
    "\"arguments\": {\"town\": \"Bern\"}}}]}, {\"role\": \"tool\", \"name\": \"get_rain\", \"content\": \"no\"}, "     \
    "{\"role\": \"tool\", \"content\": \"yes\"}]"

/* Templates as models have them: plain turns; none for the system; tools by another name; calls in a form of their
 * own. */
#define TURNS                                                                                                          \
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<a>{% endif %}"
#define NO_SYSTEM "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" TURNS
#define FUNCTIONS "{% if functions is defined %}Functions: {{ functions }} on {{ datetime }}\n{% endif %}" TURNS
#define XML_TOOLS "{% if xml_tools %}Tools: {{ xml_tools | tojson }}\n{% endif %}" TURNS
#define OWN_FORM                                                                                                       \
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls %}[CALL {{ c.function.name }} {{ "   \
    "c.function.arguments | tojson }}]{% endfor %}</s>\n{% endfor %}"
#define WITH_TOOLS "{{ tools | tojson }}" TURNS
#define NEITHER                                                                                                        \
    "{% if messages | length > 1 or messages[0].content | length > 9 %}{{ raise_exception('short') }}{% endif "        \
    "%}" TURNS

typedef struct world {
    weft_model *model;
    weft_chat *own, *told;
} world;

static void open_both(world *w, const char *template)
{
    weft_error err = {0};
    weft_chat_close(&w->told);
    weft_chat_close(&w->own);
    if (weft_chat_open(w->model, template, strlen(template), &w->own, &err)) fail_msg("%s", err.message);
    if (weft_chat_open_for_tools(w->model, w->own, &w->told, &err)) fail_msg("%s", err.message);
}

/* The text, until the next call. */
static const char *render(const weft_chat *chat, const char *messages, const char *tools)
{
    static char text[4096];
    weft_chat_prompt *prompt;
    weft_error err = {0};
    size_t n;
    if (weft_chat_render(chat, messages, tools, NULL, 1, &prompt, &err)) fail_msg("%s", err.message);
    snprintf(text, sizeof text, "%s", weft_chat_prompt_text(prompt, &n));
    weft_chat_prompt_free(&prompt);
    return text;
}

static void begins(const char *text, const char *with)
{
    if (strncmp(text, with, strlen(with))) fail_msg("%s\ndoes not begin with %s", text, with);
}

static void has(const char *text, const char *what)
{
    if (!strstr(text, what)) fail_msg("no %s in %s", what, text);
}

static int setup(void **state)
{
    static world w;
    weft_model_params params;
    weft_model_params_default(&params);
    assert_int_equal(weft_model_open(MODEL, &params, &w.model, NULL), WEFT_OK);
    *state = &w;
    return 0;
}

static int teardown(void **state)
{
    world *w = *state;
    weft_chat_close(&w->told);
    weft_chat_close(&w->own);
    weft_model_close(&w->model);
    return 0;
}

static void a_template_that_knows_them_needs_none(void **state)
{
    world *w = *state;
    open_both(w, WITH_TOOLS);
    assert_null(w->told);
}

static void without_tools_nothing_changes(void **state)
{
    static const char *const all[] = {TURNS, NO_SYSTEM, FUNCTIONS, XML_TOOLS, OWN_FORM, "\n" TURNS};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        world *w = *state;
        char own[4096];
        open_both(w, all[i]);
        assert_non_null(w->told);
        strcpy(own, render(w->own, "[" USER "]", NULL));
        assert_string_equal(render(w->told, "[" USER "]", NULL), own);
        if (i == 1) continue;
        strcpy(own, render(w->own, CALLS, NULL));
        assert_string_equal(render(w->told, CALLS, NULL), own);
    }
}

static void the_system_tells_of_them(void **state)
{
    world *w = *state;
    const char *text;
    open_both(w, TURNS);
    assert_string_equal(weft_chat_format(w->told), "generic");
    text = render(w->told, "[" USER "]", TOOLS);
    begins(text, "<system>You can call functions.");
    has(text, "\"name\": \"get_rain\"");
    has(text, "\"town\": {\"type\": \"string\"");
    has(text, "{\"name\": NAME, \"arguments\": {...}}\n<user>Bern?\n<a>");
    text = render(w->told, CALLS, TOOLS);
    begins(text, "<system>Be terse.\n\nYou can call functions.");
    has(text, "<user>Bern?\n<assistant>I look.\n{\"name\": \"get_rain\", \"arguments\": {\"town\": \"Bern\"}}\n"
              "<user>Result of get_rain: no\nResult: yes\n<a>");
}

static void or_the_user_does(void **state)
{
    world *w = *state;
    open_both(w, NO_SYSTEM);
    const char *text = render(w->told, "[" USER "]", TOOLS);
    begins(text, "<user>You can call functions.");
    has(text, "{...}}\n\nBern?\n<a>");
}

static void by_another_name(void **state)
{
    world *w = *state;
    open_both(w, FUNCTIONS);
    const char *text = render(w->told, "[" USER "]", TOOLS);
    begins(text, "Functions: [\n    {\n        \"name\": \"get_rain\",");
    has(text, "] on 20");
    open_both(w, XML_TOOLS);
    begins(render(w->told, "[" USER "]", TOOLS),
           "Tools: [{\"type\": \"function\", \"function\": {\"name\": \"get_rain\"");
}

static void calls_in_the_form_of_the_template(void **state)
{
    world *w = *state;
    open_both(w, OWN_FORM);
    has(render(w->told, "[" USER "]", TOOLS), "\n[CALL NAME {\"PARAMETER\": \"VALUE\"}]</s>\n<user>Bern?</s>");
    has(render(w->told, CALLS, TOOLS), "<assistant>I look.[CALL get_rain {\"town\": \"Bern\"}]</s>\n<tool>no</s>");
}

static void one_that_takes_no_such_message_is_refused(void **state)
{
    world *w = *state;
    weft_error err = {0};
    weft_chat *own, *told;
    assert_int_equal(weft_chat_open(w->model, NEITHER, sizeof NEITHER - 1, &own, &err), WEFT_OK);
    assert_int_equal(weft_chat_open_for_tools(w->model, own, &told, &err), WEFT_UNSUPPORTED);
    assert_null(told);
    weft_chat_close(&own);
}

static int open_once(void *arg)
{
    const world *w = arg;
    weft_chat *told;
    weft_error err = {0};
    const weft_status st = weft_chat_open_for_tools(w->model, w->own, &told, &err);
    weft_chat_close(&told);
    return !st;
}

static void without_memory(void **state)
{
    world *w = *state;
    open_both(w, XML_TOOLS);
    assert_true(fail_each(open_once, w) >= 1);
}

/* ---- the templates of real models ---- */

static char *read_template(const char *name, size_t *n)
{
    const char *path = shared_path("templates/%s", name);
    FILE *f = path ? fopen(path, "rb") : NULL;
    char *text = malloc(1 << 20);
    if (!f || !text) fail_msg("%s cannot be read", name);
    *n = fread(text, 1, 1 << 20, f);
    fclose(f);
    return text;
}

/* 1: its prompt has the tool; 0: the template refuses it. */
static int shows_the_tool(const world *w, const char *name)
{
    size_t n;
    char *source = read_template(name, &n);
    weft_chat *own, *told;
    weft_chat_prompt *prompt;
    weft_error err = {0};
    if (weft_chat_open(w->model, source, n, &own, &err)) fail_msg("%s: %s", name, err.message);
    if (weft_chat_open_for_tools(w->model, own, &told, &err)) fail_msg("%s: %s", name, err.message);
    const int ok = !weft_chat_render(told ? told : own, "[" USER "]", TOOLS, NULL, 1, &prompt, &err);
    if (ok && !strstr(weft_chat_prompt_text(prompt, &n), "get_rain")) fail_msg("%s does not show the tool", name);
    weft_chat_prompt_free(&prompt);
    weft_chat_close(&told);
    weft_chat_close(&own);
    free(source);
    return ok;
}

/* All of them show a tool, by a variable or behind the prelude, but for one, which refuses tools always. */
static void templates_of_models_show_tools(void **state)
{
    world *w = *state;
    char line[256], name[80], refused[256] = "";
    int n = 0;
    if (!shared_path("templates/%s", "google-gemma-2-2b-it.jinja")) skip_claim("no templates; set WEFT_SHARED");
    FILE *f = fopen("tests/templates.txt", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (*line == '#' || sscanf(line, "%79s", name) != 1) continue;
        n++;
        if (!shows_the_tool(w, name))
            snprintf(refused + strlen(refused), sizeof refused - strlen(refused), "%s ", name);
    }
    fclose(f);
    assert_int_equal(n, 68);
    assert_string_equal(refused, "llama-cpp-deepseek-r1.jinja "); /* it writes a generator as JSON */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest material[] = {cmocka_unit_test(templates_of_models_show_tools)};
    if (argc > 1 && !strcmp(argv[1], "material"))
        return claims_status(cmocka_run_group_tests(material, setup, teardown));
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_template_that_knows_them_needs_none),
                                       cmocka_unit_test(without_tools_nothing_changes),
                                       cmocka_unit_test(the_system_tells_of_them),
                                       cmocka_unit_test(or_the_user_does),
                                       cmocka_unit_test(by_another_name),
                                       cmocka_unit_test(calls_in_the_form_of_the_template),
                                       cmocka_unit_test(one_that_takes_no_such_message_is_refused),
                                       cmocka_unit_test(without_memory)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
