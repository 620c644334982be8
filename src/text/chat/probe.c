// SPDX-License-Identifier: Apache-2.0
/* probe.c: which form of a call's arguments a template wants, and under which name, found by asking it (messages.h says
 * how). Stateless. */
#include <string.h>

#include "text/chat/messages.h"

#define PROBE_KEY "weft_probe"
#define PROBE_VALUE "weft_value"

/* What a rendering made of the arguments. */
typedef enum outcome {
    REFUSED,
    HIDDEN /* their value is not in it */,
    AS_PYTHON /* printed as a dict is */,
    SHOWN
} outcome;

static int has(const weft__jinja_output *o, const char *text)
{
    return o->text && memmem(o->text, o->len, text, strlen(text));
}

static outcome ask(const weft__chat_template *t, const weft__json *messages, const weft__json *tools)
{
    /* A template that needs more for two turns is asked in vain; it must not keep the caller waiting. */
    static const weft__jinja_limits few = {
        .max_steps = 1000000, .max_depth = 1000, .max_output = 1 << 20, .max_memory = 32 << 20};
    static const weft__chat_token tokens[] = {
        {"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}};
    const weft__chat_request request = {.messages = messages,
                                        .tools = tools,
                                        .tokens = tokens,
                                        .n_tokens = sizeof tokens / sizeof *tokens,
                                        .limits = &few};
    weft__jinja_output o;
    if (weft__chat_template_render(t, &request, &o, NULL)) return REFUSED;
    outcome out = !has(&o, PROBE_VALUE) ? HIDDEN : has(&o, "{'" PROBE_KEY "': '" PROBE_VALUE "'}") ? AS_PYTHON : SHOWN;
    weft__jinja_output_free(&o);
    return out;
}

#define FUNCTION_CALL(arguments)                                                                                       \
    "[{\"role\": \"user\", \"content\": \"hello\"}, {\"role\": \"assistant\", \"content\": \"\", \"function_call\": "  \
    "{\"name\": "                                                                                                      \
    "\"weft_call\", \"arguments\": " arguments                                                                         \
    "}}, {\"role\": \"function\", \"name\": \"weft_call\", \"content\": \"done\"}]"
#define CALL(content, arguments)                                                                                       \
    "[{\"role\": \"user\", \"content\": \"hello\"}, {\"role\": \"assistant\", \"content\": " content                   \
    ", \"tool_calls\": "                                                                                               \
    "[{\"id\": "                                                                                                       \
    "\"weftprobe\", \"type\": \"function\", \"function\": {\"name\": \"weft_call\", \"arguments\": " arguments         \
    "}}]}, "                                                                                                           \
    "{\"role\": \"tool\", \"tool_call_id\": \"weftprobe\", \"name\": \"weft_call\", \"content\": \"done\"}]"

#define OBJECT "{\"" PROBE_KEY "\": \"" PROBE_VALUE "\"}"
#define TEXT "\"{\\\"" PROBE_KEY "\\\": \\\"" PROBE_VALUE "\\\"}\""

static const char *const
    objects = CALL("\"\"", OBJECT),
    *const texts = CALL("\"\"", TEXT), *const texts_alone = CALL("null", TEXT),
    *const function_calls[] = {FUNCTION_CALL(OBJECT), FUNCTION_CALL(TEXT)},
    *const offered = "[{\"type\": \"function\", \"function\": {\"name\": \"weft_call\", \"description\": \"A call\", "
                     "\"parameters\": {\"type\": \"object\", \"properties\": {\"x\": {\"type\": \"string\", "
                     "\"description\": \"A word\"}}, \"required\": [\"x\"]}}}]";

/* Without memory for this there is none for the conversation either. */
static outcome ask_text(const weft__chat_template *t, const char *messages, const char *tools)
{
    weft__json *m = NULL, *offer = NULL;
    outcome out = REFUSED;
    if (!weft__json_parse(messages, strlen(messages), &m, NULL) &&
        (!tools || !weft__json_parse(tools, strlen(tools), &offer, NULL)))
        out = ask(t, m, offer);
    weft__json_free(&offer);
    weft__json_free(&m);
    return out;
}

/* 1: it wants text, 0: it does not, -1: it says nothing. *hides: it takes the call, and shows it in neither form. */
static int wants_text(const weft__chat_template *t, const char *tools, int *hides)
{
    outcome with_object = ask_text(t, objects, tools), with_text = REFUSED;
    *hides = 0;
    if (with_object == SHOWN) return 0;
    with_text = ask_text(t, texts, tools);
    *hides = with_object <= HIDDEN && with_text <= HIDDEN && with_object + with_text > REFUSED;
    if (with_object == REFUSED) return with_text == REFUSED ? -1 : 1;
    return with_text == SHOWN;
}

weft__chat_arguments_form weft__chat_template_arguments(const weft__chat_template *t)
{
    int hides, wants = wants_text(t, NULL, &hides);
    if (wants < 0) wants = wants_text(t, offered, &hides);
    if (hides && (ask_text(t, texts_alone, NULL) == SHOWN || ask_text(t, texts_alone, offered) == SHOWN))
        return WEFT__CHAT_ARGUMENTS_TEXT_ALONE;
    return wants > 0 ? WEFT__CHAT_ARGUMENTS_TEXT : WEFT__CHAT_ARGUMENTS_OBJECT;
}

int weft__chat_template_functions(const weft__chat_template *t)
{
    outcome found = REFUSED;
    for (int i = 0; i < 4 && found == REFUSED; i++) found = ask_text(t, function_calls[i % 2], i < 2 ? NULL : offered);
    return found == SHOWN || found == AS_PYTHON;
}
