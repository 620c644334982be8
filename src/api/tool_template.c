// SPDX-License-Identifier: Apache-2.0
/* tool_template.c: see tool_template.h. Stateless. */
#include "api/tool_template.h"

#include <string.h>

#include "base/json.h"

/* Variables through which templates take tools by another name, as the cards of their models have them. */
static const struct {
    const char *name, *prelude;
} others[] = {
    {"xml_tools", "{%- if tools and xml_tools is not defined %}{%- set xml_tools = tools %}{%- endif %}"},
    {"functions", "{%- if tools and functions is not defined %}"
                  "{%- set functions = tools | map(attribute='function') | list | tojson(indent=4) %}{%- endif %}"
                  "{%- if tools and datetime is not defined %}{%- set datetime = strftime_now('%Y-%m-%d %H:%M:%S') %}"
                  "{%- endif %}"},
};

/* The words of the system message; behind them the form of a call. */
#define WORDS                                                                                                          \
    "{%- set weft_words = \"You can call functions. Here they are, with a JSON Schema of their parameters:\\n\" ~ "    \
    "(tools | map(attribute='function') | list | tojson) ~ "
/* They go to the system's message, or, where %s is 'user', to the user's first. */
#define INTO_SYSTEM                                                                                                    \
    "{%- if messages and messages[0].role == 'system' %}"                                                              \
    "{%- set messages = [{'role': 'system', 'content': messages[0].content ~ '\\n\\n' ~ weft_words}] + messages[1:] "  \
    "%}{%- else %}{%- set messages = [{'role': 'system', 'content': weft_words}] + messages %}{%- endif %}"
#define INTO_USER                                                                                                      \
    "{%- if messages and messages[0].role == 'user' %}"                                                                \
    "{%- set messages = [{'role': 'user', 'content': weft_words ~ '\\n\\n' ~ messages[0].content}] + messages[1:] "    \
    "%}{%- else %}{{ raise_exception('with tools, the conversation must begin with the user') }}{%- endif %}"

/* A template that writes no calls is shown them, and what they returned, as text. */
#define AS_TEXT                                                                                                        \
    "{%- set weft_said = namespace(messages=[]) %}{%- for m in messages %}"                                            \
    "{%- if m.role == 'tool' %}"                                                                                       \
    "{%- set weft_text = 'Result' ~ (' of ' ~ m.name if m.name else '') ~ ': ' ~ m.content %}"                         \
    "{%- if loop.previtem is defined and loop.previtem.role == 'tool' %}"                                              \
    "{%- set weft_said.messages = weft_said.messages[:-1] + [{'role': 'user', 'content': "                             \
    "weft_said.messages[-1].content ~ '\\n' ~ weft_text}] %}"                                                          \
    "{%- else %}{%- set weft_said.messages = weft_said.messages + [{'role': 'user', 'content': weft_text}] %}"         \
    "{%- endif %}"                                                                                                     \
    "{%- elif m.tool_calls %}{%- set weft_calls = namespace(text=m.content) %}"                                        \
    "{%- for c in m.tool_calls %}{%- set weft_calls.text = weft_calls.text ~ ('\\n' if weft_calls.text else '') ~ "    \
    "'{\"name\": ' ~ (c.function.name | tojson) ~ ', \"arguments\": ' ~ "                                              \
    "(c.function.arguments if c.function.arguments is string else c.function.arguments | tojson) ~ '}' %}"             \
    "{%- endfor %}{%- set weft_said.messages = weft_said.messages + [{'role': 'assistant', 'content': "                \
    "weft_calls.text}] %}"                                                                                             \
    "{%- else %}{%- set weft_said.messages = weft_said.messages + [m] %}{%- endif %}"                                  \
    "{%- endfor %}{%- set messages = weft_said.messages %}"

#define JSON_FORM "{\\\"name\\\": NAME, \\\"arguments\\\": {...}}"

/* Text as a string of the template. */
static void put_literal(weft__strbuf *out, const char *s, size_t n)
{
    weft__strbuf_putc(out, '"');
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\n') weft__strbuf_puts(out, "\\n");
        else {
            if (s[i] == '"' || s[i] == '\\') weft__strbuf_putc(out, '\\');
            weft__strbuf_putc(out, s[i]);
        }
    }
    weft__strbuf_putc(out, '"');
}

/* ---- how the template writes a call ---- */

#define ASKED "{\"role\": \"user\", \"content\": \"Hello\"}"
#define ANSWERED "{\"role\": \"assistant\", \"content\": \"weft_answer\"}"
#define CALLED                                                                                                         \
    "{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"id\": \"callcall1\", \"type\": \"function\", "   \
    "\"function\": {\"name\": \"NAME\", \"arguments\": {\"PARAMETER\": \"VALUE\"}}}]}"

/* What stands around the answer, and the call in the place of the answer; 0 where it is not shown. */
static int find_form(const weft_chat *chat, weft__strbuf *form)
{
    weft_chat_prompt *plain = NULL, *called = NULL;
    const char *answer, *a, *c;
    size_t n_a, n_c;
    int found = 0;
    if (weft_chat_render(chat, "[" ASKED ", " ANSWERED "]", NULL, NULL, 0, &plain, NULL) ||
        weft_chat_render(chat, "[" ASKED ", " CALLED "]", NULL, NULL, 0, &called, NULL))
        goto done;
    a = weft_chat_prompt_text(plain, &n_a);
    c = weft_chat_prompt_text(called, &n_c);
    if (!(answer = strstr(a, "weft_answer"))) goto done;
    const size_t before = (size_t)(answer - a), after = n_a - before - strlen("weft_answer");
    if (n_c <= before + after || memcmp(a, c, before) || memcmp(a + n_a - after, c + n_c - after, after)) goto done;
    weft__strbuf_put(form, c + before, n_c - before - after);
    found = form->data && strstr(form->data, "NAME") && strstr(form->data, "VALUE");
done:
    weft_chat_prompt_free(&called);
    weft_chat_prompt_free(&plain);
    return found;
}

/* ---- the prelude ---- */

static void put_words(weft__strbuf *out, const weft_chat *chat, const char *into)
{
    weft__strbuf form = {0};
    weft__strbuf_puts(out, "{%- if tools %}");
    const int found = find_form(chat, &form);
    if (!found) weft__strbuf_puts(out, AS_TEXT);
    weft__strbuf_puts(out, WORDS "\"\\nTo call one, answer with nothing but this, the arguments as its parameters "
                                 "want them:\\n\" ~ ");
    if (found) put_literal(out, form.data, form.len);
    else weft__strbuf_puts(out, "\"" JSON_FORM "\"");
    weft__strbuf_puts(out, " %}");
    weft__strbuf_puts(out, into);
    weft__strbuf_puts(out, "{%- endif %}");
    weft__strbuf_free(&form);
}

/* Opens the template behind this prelude. An expression between them leaves the template's first line as it is. */
static weft_status open_behind(const weft_model *model, const weft_chat *chat, weft__strbuf *prelude, weft_chat **out,
                               weft_error *err)
{
    size_t n;
    const char *source = weft_chat_source(chat, &n);
    weft__strbuf_puts(prelude, "{{ '' }}");
    weft__strbuf_put(prelude, source, n);
    weft_status st = prelude->failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for a chat template")
                                     : weft_chat_open(model, prelude->data, prelude->len, out, err);
    weft__strbuf_free(prelude);
    return st;
}

#define OFFERED                                                                                                        \
    "[{\"type\": \"function\", \"function\": {\"name\": \"weft_offered\", \"description\": \"\", "                     \
    "\"parameters\": {\"type\": \"object\", \"properties\": {}}}}]"

static int shows_tools(const weft_chat *chat)
{
    weft_chat_prompt *prompt;
    size_t n;
    if (weft_chat_render(chat, "[" ASKED "]", OFFERED, NULL, 1, &prompt, NULL)) return 0;
    const int shown = strstr(weft_chat_prompt_text(prompt, &n), "weft_offered") != NULL;
    weft_chat_prompt_free(&prompt);
    return shown;
}

weft_status weft__api_tool_chat_open(const weft_model *model, const weft_chat *chat, weft_chat **out, weft_error *err)
{
    static const char *const places[] = {INTO_SYSTEM, INTO_USER};
    weft_status st = WEFT_OK;
    weft__strbuf prelude = {0};
    *out = NULL;
    if (weft_chat_reads(chat, "tools")) return WEFT_OK;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (weft_chat_reads(chat, others[i].name)) {
            weft__strbuf_puts(&prelude, others[i].prelude);
            return open_behind(model, chat, &prelude, out, err);
        }
    for (size_t i = 0; !st && i < sizeof places / sizeof *places; i++) {
        put_words(&prelude, chat, places[i]);
        st = open_behind(model, chat, &prelude, out, err);
        if (!st && shows_tools(*out)) return WEFT_OK;
        weft_chat_close(out);
    }
    return st ? st : weft_fail(err, WEFT_UNSUPPORTED, "the model's chat template takes no message that tells of tools");
}
