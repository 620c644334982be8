// SPDX-License-Identifier: Apache-2.0
/* tools.c: see tools.h. */
#include "text/chat/tools.h"

#include <string.h>

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

/* Renders a conversation; 0 where that fails. */
static int render_asked(const weft__chat_asked *asked, const weft__chat_template *t, const char *messages,
                        const char *tools, weft__jinja_output *out)
{
    weft__chat_reading reading = {.form = asked->arguments, .functions = asked->functions};
    weft__json *given = NULL, *normal = NULL, *offered = NULL, *kwargs = NULL;
    weft_status st = weft__json_parse(messages, strlen(messages), &given, NULL);
    if (!st) st = weft__chat_messages_normal(&reading, given, &normal, NULL);
    if (!st && tools) st = weft__json_parse(tools, strlen(tools), &offered, NULL);
    if (!st) st = weft__chat_kwargs_normal(NULL, &kwargs, NULL);
    const weft__chat_request request = {.messages = normal,
                                        .tools = offered,
                                        .kwargs = kwargs,
                                        .add_generation_prompt = tools != NULL,
                                        .tokens = asked->tokens,
                                        .n_tokens = asked->n_tokens};
    if (!st) st = weft__chat_template_render(t, &request, out, NULL);
    weft__json_free(&kwargs);
    weft__json_free(&offered);
    weft__json_free(&normal);
    weft__json_free(&given);
    return !st;
}

/* What stands around the answer, and the call in the place of the answer; 0 where it is not shown. */
static int find_form(const weft__chat_asked *asked, weft__strbuf *form)
{
    weft__jinja_output plain = {0}, called = {0};
    const char *answer;
    int found = 0;
    if (!render_asked(asked, asked->t, "[" ASKED ", " ANSWERED "]", NULL, &plain) ||
        !render_asked(asked, asked->t, "[" ASKED ", " CALLED "]", NULL, &called) || !plain.len || !called.len)
        goto done;
    if (!(answer = strstr(plain.text, "weft_answer"))) goto done;
    const size_t before = (size_t)(answer - plain.text), after = plain.len - before - strlen("weft_answer");
    if (called.len <= before + after || memcmp(plain.text, called.text, before) ||
        memcmp(plain.text + plain.len - after, called.text + called.len - after, after))
        goto done;
    weft__strbuf_put(form, called.text + before, called.len - before - after);
    found = form->data && strstr(form->data, "NAME") && strstr(form->data, "VALUE");
done:
    weft__jinja_output_free(&called);
    weft__jinja_output_free(&plain);
    return found;
}

/* ---- the prelude ---- */

static void put_words(weft__strbuf *out, const weft__chat_asked *asked, const char *into)
{
    weft__strbuf form = {0};
    weft__strbuf_puts(out, "{%- if tools %}");
    const int found = find_form(asked, &form);
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

/* The template stands behind its prelude. An expression between them leaves its first line as it is. */
static void put_template(weft__strbuf *out, const weft__chat_asked *asked)
{
    weft__strbuf_puts(out, "{{ '' }}");
    weft__strbuf_put(out, asked->source, asked->n);
}

#define OFFERED                                                                                                        \
    "[{\"type\": \"function\", \"function\": {\"name\": \"weft_offered\", \"description\": \"\", "                     \
    "\"parameters\": {\"type\": \"object\", \"properties\": {}}}}]"

/* Whether this template, made of that one, shows tools. */
static weft_status shows_tools(const weft__chat_asked *asked, const weft__strbuf *source, int *shown, weft_error *err)
{
    weft__chat_template *t;
    weft__jinja_output o = {0};
    *shown = 0;
    weft_status st = weft__chat_template_create(source->data, source->len, &t, err);
    if (st) return st;
    if (render_asked(asked, t, "[" ASKED "]", OFFERED, &o)) *shown = o.len && strstr(o.text, "weft_offered");
    weft__jinja_output_free(&o);
    weft__chat_template_destroy(&t);
    return WEFT_OK;
}

weft_status weft__chat_tools_source(const weft__chat_asked *asked, weft__strbuf *out, weft_error *err)
{
    static const char *const places[] = {INTO_SYSTEM, INTO_USER};
    const size_t begin = out->len;
    weft_status st = WEFT_OK;
    int shown = 0;
    if (weft__chat_template_reads(asked->t, "tools")) return WEFT_OK;
    for (size_t i = 0; !shown && i < sizeof others / sizeof *others; i++)
        if (weft__chat_template_reads(asked->t, others[i].name)) {
            weft__strbuf_puts(out, others[i].prelude);
            put_template(out, asked);
            shown = 1;
        }
    for (size_t i = 0; !shown && !st && i < sizeof places / sizeof *places; i++) {
        out->len = begin;
        put_words(out, asked, places[i]);
        put_template(out, asked);
        if (!out->failed)
            st = shows_tools(asked, &(weft__strbuf){.data = out->data + begin, .len = out->len - begin}, &shown, err);
    }
    if (!st && out->failed) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a chat template");
    if (!st && !shown)
        st = weft_fail(err, WEFT_UNSUPPORTED, "the model's chat template takes no message that tells of tools");
    if (st) out->len = begin;
    return st;
}

/* ---- what is absent of tools ---- */

static int lacks(const weft__json *function, const char *member)
{
    const weft__json *v = weft__json_get(function, member);
    return !v || weft__json_is_null(v);
}

static weft__json *no_parameters(void)
{
    weft__json *schema = weft__json_new_object();
    weft__json_set(schema, "type", weft__json_new_string("object", 6));
    weft__json_set(schema, "properties", weft__json_new_object());
    return schema;
}

/* NULL without memory. */
static weft__json *fill_tool(const weft__json *tool)
{
    weft__json *out = weft__json_copy(tool), *f = weft__json_copy(weft__json_get(tool, "function"));
    int ok = out && f;
    if (ok && lacks(f, "description")) ok = weft__json_set(f, "description", weft__json_new_string("", 0));
    if (ok && lacks(f, "parameters")) ok = weft__json_set(f, "parameters", no_parameters());
    if (ok) ok = weft__json_set(out, "function", f);
    else weft__json_free(&f);
    if (!ok) weft__json_free(&out);
    return out;
}

weft__json *weft__chat_tools_filled(const weft__json *tools)
{
    weft__json *filled = weft__json_new_array();
    for (size_t i = 0; filled && i < weft__json_size(tools); i++) {
        const weft__json *tool = weft__json_at(tools, i);
        weft__json *one = weft__json_get(tool, "function") ? fill_tool(tool) : weft__json_copy(tool);
        if (!weft__json_append(filled, one)) weft__json_free(&filled);
    }
    return filled;
}
