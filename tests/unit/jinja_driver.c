// SPDX-License-Identifier: Apache-2.0
/* jinja_driver.c: renders templates for jinja_oracle.py, which compares with jinja2. Reads one JSON object per line:
 *   {"template": ..., "context": {...}, "now": seconds}      every variable of the context is set, as the user's
 *   {"template": ..., "chat": {"messages", "tools", "kwargs", "tokens", "add_generation_prompt"}, "now": seconds}
 *     with "normal": true, all of them as every caller of templates normalizes them (text/chat/messages.h)
 *   {"template": ..., "reads": [names]}                      answered by {"reads": [those that it reads]}
 * and answers each with a line: {"text": ..., "segments": [[bytes, from_user], ...]} or {"error": ..., "status":
 * number}. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/chat/messages.h"

static const char *string_of(const weft__json *v, size_t *n)
{
    const char *s = "";
    *n = 0;
    weft__json_string(v, &s, n);
    return s;
}

static weft_status render_plain(const char *source, size_t n, const weft__json *job, int64_t now,
                                weft__jinja_output *out, weft_error *err)
{
    weft__jinja *t;
    weft__jinja_call *call = NULL;
    int mutation = 0;
    weft_status status = weft__jinja_compile(source, n, &t, err);
    if (status) return status;
    status = weft__jinja_call_create(NULL, &call, err);
    weft__json_member m = {0};
    const weft__json *context = weft__json_get(job, "context");
    while (!status && weft__json_next(context, &m))
        status = weft__jinja_set_json(call, m.key, m.value, NULL, NULL, err);
    if (!status) {
        weft__json_bool(weft__json_get(job, "mutation"), &mutation);
        weft__jinja_allow_mutation(call, mutation);
        weft__jinja_set_now(call, now);
        status = weft__jinja_render(t, call, out, err);
    }
    weft__jinja_call_destroy(&call);
    weft__jinja_destroy(&t);
    return status;
}

static weft_status render_chat(const char *source, size_t n, const weft__json *chat, int mutation, int64_t now,
                               weft__jinja_output *out, weft_error *err)
{
    weft__chat_template *t;
    weft__chat_token tokens[16];
    weft__chat_request r = {.messages = weft__json_get(chat, "messages"),
                            .tools = weft__json_get(chat, "tools"),
                            .kwargs = weft__json_get(chat, "kwargs"),
                            .tokens = tokens,
                            .allow_mutation = mutation,
                            .now = now};
    size_t ignored;
    weft__json_member m = {0};
    weft__json_bool(weft__json_get(chat, "add_generation_prompt"), &r.add_generation_prompt);
    while (r.n_tokens < 16 && weft__json_next(weft__json_get(chat, "tokens"), &m)) {
        tokens[r.n_tokens++] = (weft__chat_token){m.key, string_of(m.value, &ignored)};
    }
    weft_status status = weft__chat_template_create(source, n, &t, err);
    if (status) return status;
    status = weft__chat_template_render(t, &r, out, err);
    weft__chat_template_destroy(&t);
    return status;
}

static weft_status render_normal(const char *source, size_t n, const weft__json *chat, int64_t now,
                                 weft__jinja_output *out, weft_error *err)
{
    weft__chat_template *t;
    weft__chat_reading reading = {0};
    weft__json *normal = weft__json_copy(chat), *messages = NULL, *tools = NULL, *kwargs = NULL;
    weft_status status = weft__chat_template_create(source, n, &t, err);
    if (!status) reading.form = weft__chat_template_arguments(t);
    if (!status) reading.functions = weft__chat_template_functions(t);
    if (!status) status = weft__chat_messages_normal(&reading, weft__json_get(chat, "messages"), &messages, err);
    if (!status) status = weft__chat_tools_normal(weft__json_get(chat, "tools"), &tools, err);
    if (!status) status = weft__chat_template_kwargs(t, weft__json_get(chat, "kwargs"), &kwargs, err);
    if (!status) {
        weft__json_set(normal, "kwargs", kwargs);
        weft__json_set(normal, "messages", messages);
        weft__json_set(normal, "tools", tools ? tools : weft__json_new_null());
        status = render_chat(source, n, normal, 0, now, out, err);
    } else {
        weft__json_free(&messages);
        weft__json_free(&tools);
    }
    if (t) weft__chat_template_destroy(&t);
    weft__json_free(&normal);
    return status;
}

static void answer_reads(const char *source, size_t n, const weft__json *names)
{
    weft__jinja *t;
    weft_error err = {0};
    size_t ignored;
    const char *comma = "";
    if (weft__jinja_compile(source, n, &t, &err)) {
        puts("{\"error\": \"it does not compile\"}");
        return;
    }
    printf("{\"reads\": [");
    for (size_t i = 0; i < weft__json_size(names); i++) {
        const char *name = string_of(weft__json_at(names, i), &ignored);
        if (!weft__jinja_reads(t, name)) continue;
        printf("%s\"%s\"", comma, name);
        comma = ", ";
    }
    puts("]}");
    weft__jinja_destroy(&t);
}

static void answer(const weft__json *job)
{
    weft__jinja_output out = {0};
    weft_error err = {0};
    int64_t now = 0;
    int mutation = 0, normal = 0;
    size_t n;
    const char *source = string_of(weft__json_get(job, "template"), &n);
    const weft__json *chat = weft__json_get(job, "chat");
    weft__json_int(weft__json_get(job, "now"), &now);
    weft__json_bool(weft__json_get(job, "mutation"), &mutation);
    weft__json_bool(weft__json_get(job, "normal"), &normal);
    weft_status status = !chat    ? render_plain(source, n, job, now, &out, &err)
                         : normal ? render_normal(source, n, chat, now, &out, &err)
                                  : render_chat(source, n, chat, mutation, now, &out, &err);
    weft__strbuf line = {0};
    if (status) {
        weft__strbuf_puts(&line, "{\"error\": ");
        weft__json_write_string(&line, err.message, strlen(err.message));
        weft__strbuf_printf(&line, ", \"status\": %d}", (int)status);
    } else {
        weft__strbuf_puts(&line, "{\"text\": ");
        weft__json_write_string(&line, out.text, out.len);
        weft__strbuf_puts(&line, ", \"segments\": [");
        for (size_t i = 0; i < out.n_segments; i++) {
            weft__strbuf_printf(&line, "%s[%zu, %d]", i ? ", " : "", out.segments[i].len, out.segments[i].from_user);
        }
        weft__strbuf_puts(&line, "]}");
    }
    puts(line.failed ? "{\"error\": \"out of memory\", \"status\": 1}" : line.data);
    weft__strbuf_free(&line);
    weft__jinja_output_free(&out);
}

int main(void)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    while ((n = getline(&line, &capacity, stdin)) > 0) {
        weft__json *job;
        weft_error err = {0};
        if (weft__json_parse(line, (size_t)n, &job, &err)) {
            fprintf(stderr, "jinja_driver: %s\n", err.message);
            return 1;
        }
        const weft__json *names = weft__json_get(job, "reads");
        size_t n_source;
        const char *source = string_of(weft__json_get(job, "template"), &n_source);
        if (names) answer_reads(source, n_source, names);
        else answer(job);
        weft__json_free(&job);
        fflush(stdout);
    }
    free(line);
    return 0;
}
