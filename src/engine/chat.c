// SPDX-License-Identifier: Apache-2.0
/* chat.c: weft_chat: the model's chat template and tokenizer, put together so that what a user wrote never becomes a
 * special token. A chat is immutable; a prompt belongs to one thread. */
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/json.h"
#include "engine/chat.h"
#include "engine/handles.h"
#include "text/chat/stand_in.h"
#include "text/chat/tools.h"

weft_status weft_chat_open(const weft_model *model, const char *source, size_t length, weft_chat **out, weft_error *err)
{
    *out = NULL;
    if (!model->tokenizer)
        return weft_fail(err, WEFT_UNSUPPORTED, "%s: a model without a tokenizer cannot chat", model->source.label);
    weft__tok_slice own = weft__tok_chat_template(model->tokenizer->t);
    if (!source && own.data) source = own.data, length = own.len;
    if (!source) {
        source = weft__chat_stand_in(&length);
        weft__chat_tell_stand_in(model->source.label);
    }
    weft_chat *c = weft__alloc_zero(1, sizeof *c);
    if (!c) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a chat template");
    c->tokenizer = model->tokenizer->t;
    c->vocabulary = model->tokenizer;
    c->n_tokens = weft__chat_tokens(c->tokenizer, c->tokens);
    c->source = weft__strndup(source, length);
    c->n_source = length;
    weft_status st = c->source ? weft__chat_template_create(source, length, &c->tmpl, err)
                               : weft_fail(err, WEFT_NO_MEMORY, "no memory for its text");
    if (st) {
        weft_chat_close(&c);
        return weft_fail_within(err, st, "chat template");
    }
    c->arguments = weft__chat_template_arguments(c->tmpl);
    c->functions = weft__chat_template_functions(c->tmpl);
    c->style = weft__answer_style_of(source, length, weft__chat_template_reads(c->tmpl, "tools"));
    *out = c;
    return WEFT_OK;
}

weft_status weft_chat_open_for_tools(const weft_model *model, const weft_chat *chat, weft_chat **out, weft_error *err)
{
    const weft__chat_asked asked = {.t = chat->tmpl,
                                    .source = chat->source,
                                    .n = chat->n_source,
                                    .arguments = chat->arguments,
                                    .functions = chat->functions,
                                    .tokens = chat->tokens,
                                    .n_tokens = chat->n_tokens};
    weft__strbuf source = {0};
    *out = NULL;
    weft_status st = weft__chat_tools_source(&asked, &source, err);
    if (!st && source.len) st = weft_chat_open(model, source.data, source.len, out, err);
    weft__strbuf_free(&source);
    return st;
}

void weft_chat_close(weft_chat **p)
{
    weft_chat *c = p ? *p : NULL;
    if (!c) return;
    weft__chat_template_destroy(&c->tmpl);
    weft__free(c->source);
    weft__free(c);
    *p = NULL;
}

const char *weft_chat_source(const weft_chat *chat, size_t *length)
{
    *length = chat->n_source;
    return chat->source;
}

int weft_chat_reads(const weft_chat *chat, const char *variable)
{
    return weft__chat_template_reads(chat->tmpl, variable);
}

static weft_status parse(const char *text, const char *what, weft__json **out, weft_error *err)
{
    *out = NULL;
    if (!text) return WEFT_OK;
    weft_status st = weft__json_parse_bounds(text, strlen(text), out, err);
    return st ? weft_fail_within(err, st, "%s", what) : WEFT_OK;
}

weft_status weft_chat_render(const weft_chat *c, const char *messages, const char *tools, const char *kwargs,
                             int add_generation_prompt, weft_chat_prompt **out, weft_error *err)
{
    weft__json *m = NULL, *t = NULL, *k = NULL, *messages_given = NULL, *tools_given = NULL, *kwargs_given = NULL;
    weft__chat_reading reading = {.form = c->arguments, .functions = c->functions};
    weft_chat_prompt *prompt = weft__alloc_zero(1, sizeof *prompt);
    weft_status st;
    *out = NULL;
    if (!prompt) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt");
    prompt->chat = c;
    prompt->continues = add_generation_prompt == WEFT_CHAT_CONTINUE;
    if ((st = parse(messages, "messages", &messages_given, err)) || (st = parse(tools, "tools", &tools_given, err)) ||
        (st = parse(kwargs, "kwargs", &kwargs_given, err)) ||
        (st = weft__chat_messages_normal(&reading, messages_given, &m, err)) ||
        (st = weft__chat_tools_normal(tools_given, &t, err)) ||
        (st = weft__chat_template_kwargs(c->tmpl, kwargs_given, &k, err)))
        goto done;
    int thinks = 1;
    prompt->thinks_not = weft__json_bool(weft__json_get(k, "enable_thinking"), &thinks) && !thinks;
    weft__chat_request request = {.messages = m,
                                  .tools = t,
                                  .kwargs = k,
                                  .add_generation_prompt = add_generation_prompt != 0,
                                  .continue_last = add_generation_prompt == WEFT_CHAT_CONTINUE,
                                  .tokens = c->tokens,
                                  .n_tokens = c->n_tokens,
                                  .now = (int64_t)time(NULL)};
    st = weft__chat_template_render(c->tmpl, &request, &prompt->output, err);
done:
    weft__json_free(&k);
    weft__json_free(&t);
    weft__json_free(&m);
    weft__json_free(&kwargs_given);
    weft__json_free(&tools_given);
    weft__json_free(&messages_given);
    if (st) weft_chat_prompt_free(&prompt);
    *out = prompt;
    return st;
}

void weft_chat_prompt_free(weft_chat_prompt **p)
{
    weft_chat_prompt *prompt = p ? *p : NULL;
    if (!prompt) return;
    weft__jinja_output_free(&prompt->output);
    weft__free(prompt);
    *p = NULL;
}

const char *weft_chat_prompt_text(const weft_chat_prompt *prompt, size_t *length)
{
    *length = prompt->output.len;
    return prompt->output.text ? prompt->output.text : "";
}

weft_status weft_chat_prompt_tokenize(const weft_chat_prompt *prompt, size_t skip, int32_t *ids, size_t capacity,
                                      size_t *n, weft_error *err)
{
    weft__tok_ids all = {0};
    *n = 0;
    weft_status st = weft__chat_encode(prompt->chat->tokenizer, &prompt->output, skip, &all, err);
    if (!st) {
        *n = all.n;
        if (*n > capacity) st = weft_fail(err, WEFT_LIMIT, "%zu tokens do not fit in %zu places", *n, capacity);
        else if (all.n) memcpy(ids, all.data, all.n * sizeof *ids);
    }
    weft__tok_ids_free(&all);
    return st;
}
