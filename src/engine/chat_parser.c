// SPDX-License-Identifier: Apache-2.0
/* chat_parser.c: weft_chat_parser: the answer to a prompt of weft_chat, by the style of its template. A parser belongs
 * to one thread. */
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/params.h"
#include "engine/chat.h"
#include "engine/handles.h"
#include "text/answer/answer.h"

struct weft_chat_parser {
    const weft__tok *tokenizer;
    weft__answer *answer;
    weft_chat_on_part *on_part;
    void *arg;
};

const char *weft_chat_format(const weft_chat *chat)
{
    return chat->style.format->name;
}

int weft_chat_reasons(const weft_chat *chat)
{
    return chat->style.reasoning != NULL;
}

weft_status weft_chat_thinking_end(const weft_chat_prompt *prompt, const char *choice, int32_t *ids, size_t capacity,
                                   size_t *n, weft_error *err)
{
    const weft_chat *chat = prompt->chat;
    const weft__answer_reasoning *r = chat->style.reasoning;
    const weft__answer_format *format = chat->style.format;
    weft__strbuf text = {0};
    weft__tok_ids all = {0};
    *n = 0;
    if (!r || (format->ends_reasoning && choice && strcmp(choice, "auto"))) return WEFT_OK;
    if (!format->answer) weft__strbuf_puts(&text, "\n");
    weft__strbuf_puts(&text, r->end);
    /* What begins a text is no beginning of a call. */
    const char *behind = choice ? format->resume : format->answer;
    if (format->answer) weft__strbuf_puts(&text, behind ? behind : "");
    else weft__strbuf_puts(&text, "\n\n");
    weft_status st = text.failed
                         ? weft_fail(err, WEFT_NO_MEMORY, "no memory for the end of a model's thinking")
                         : weft__tok_encode(chat->tokenizer, text.data, text.len, WEFT__TOK_ENCODE_PARSE, &all, err);
    if (!st) {
        *n = all.n;
        if (*n > capacity) st = weft_fail(err, WEFT_LIMIT, "%zu tokens do not fit in %zu places", *n, capacity);
        else if (all.n) memcpy(ids, all.data, all.n * sizeof *ids);
    }
    weft__tok_ids_free(&all);
    weft__strbuf_free(&text);
    return st;
}

void(weft_chat_parser_params_default)(weft_chat_parser_params *p)
{
    *p = (weft_chat_parser_params){.size = sizeof *p, .calls = 1, .reasoning = 1};
}

void weft_chat_parser_params_init(weft_chat_parser_params *params, uint32_t size)
{
    weft_chat_parser_params own;
    (weft_chat_parser_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_chat_parser_params), params, size, &own);
}

weft_status weft__engine_chat_tools(const char *text, weft__json **out, weft_error *err)
{
    *out = NULL;
    if (!text) return WEFT_OK;
    weft_status st = weft__json_parse_bounds(text, strlen(text), out, err);
    if (st) return weft_fail_within(err, st, "tools");
    if (weft__json_kind_of(*out) == WEFT__JSON_ARRAY || weft__json_is_null(*out)) return WEFT_OK;
    weft__json_free(out);
    return weft_fail(err, WEFT_ARGUMENT, "tools: must be an array");
}

/* Bytes at the prompt's end that came from the message which the answer continues. */
static size_t begun_bytes(const weft_chat_prompt *prompt)
{
    const weft__jinja_output *o = &prompt->output;
    if (!prompt->continues || !o->n_segments || !o->segments[o->n_segments - 1].from_user) return 0;
    return o->segments[o->n_segments - 1].len;
}

weft__answer_params weft__engine_chat_answer(const weft_chat_prompt *prompt)
{
    return (weft__answer_params){.style = prompt->chat->style,
                                 .prompt = prompt->output.text ? prompt->output.text : "",
                                 .n_prompt = prompt->output.len,
                                 .n_begun = begun_bytes(prompt)};
}

weft_status weft_chat_parser_new(const weft_chat_prompt *prompt, const weft_chat_parser_params *params,
                                 weft_chat_parser **out, weft_error *err)
{
    weft_chat_parser_params own;
    weft__json *tools = NULL;
    *out = NULL;
    weft_chat_parser_params_default(&own);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_chat_parser_params), &own, params, err);
    if (!st) st = weft__engine_chat_tools(own.tools, &tools, err);
    if (st) return st;
    weft_chat_parser *p = weft__alloc_zero(1, sizeof *p);
    if (!p) {
        weft__json_free(&tools);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a parser of answers");
    }
    weft__answer_params how = weft__engine_chat_answer(prompt);
    how.calls = own.calls;
    how.reasoning = own.reasoning;
    how.form = own.form;
    p->tokenizer = prompt->chat->tokenizer;
    st = weft__answer_create(&how, tools, &p->answer, err);
    if (st) weft_chat_parser_free(&p);
    *out = p;
    return st;
}

void weft_chat_parser_free(weft_chat_parser **parser)
{
    weft_chat_parser *p = parser ? *parser : NULL;
    if (!p) return;
    weft__answer_destroy(&p->answer);
    weft__free(p);
    *parser = NULL;
}

int weft_chat_parser_shows(const weft_chat_parser *parser, int32_t token)
{
    weft__tok_slice text = weft__tok_text(parser->tokenizer, token);
    return text.data && weft__tok_type_of(parser->tokenizer, token) == WEFT__TOK_CONTROL &&
           weft__answer_has(parser->answer, text.data, text.len);
}

int weft_chat_parser_thinks(const weft_chat_parser *parser)
{
    return weft__answer_reasons(parser->answer);
}

void weft_chat_parser_end_thinking(weft_chat_parser *parser)
{
    weft__answer_end_reasoning(parser->answer);
}

static int on_part(void *arg, const weft_chat_part *part, size_t from, size_t to)
{
    const weft_chat_parser *p = arg;
    (void)from, (void)to;
    return p->on_part(p->arg, part);
}

weft_status weft_chat_parser_push(weft_chat_parser *p, const char *text, size_t length, weft_chat_on_part *to,
                                  void *arg, weft_error *err)
{
    p->on_part = to;
    p->arg = arg;
    return weft__answer_push(p->answer, text, length, on_part, p, err);
}

weft_status weft_chat_parser_finish(weft_chat_parser *p, weft_chat_on_part *to, void *arg, weft_error *err)
{
    p->on_part = to;
    p->arg = arg;
    return weft__answer_finish(p->answer, on_part, p, err);
}
