// SPDX-License-Identifier: Apache-2.0
/* response_parse.c: what a chat's answer says besides text: reasoning and calls (response.h). A stream, and answers
 * that end with their first call or think within a budget, are parsed token by token as events are told; all others
 * once, when they have ended, on the thread of answers. */
#include <string.h>

#include "base/alloc.h"
#include "server/response.h"

static int is_format(const weft__api_params *a, const char *format)
{
    return a->reasoning_format && !strcmp(a->reasoning_format, format);
}

/* A constraint that the request brings is on all of the answer, or on what stands behind thoughts (params->form, set
 * here). What it allows is content: a JSON format has nothing else in it, and a grammar's texts are no thoughts because
 * the template has begun some. *out: all of the answer is. What stands before a lazy one is free. */
static weft_status all_is_content(const weft__server_response *g, weft_chat_parser_params *params, int *out,
                                  weft_error *err)
{
    const weft__api_constraint *c = &g->params.constraint;
    weft_chat_parser *parser;
    const int is_json =
        c->kind == WEFT_GRAMMAR_SCHEMA || c->kind == WEFT_GRAMMAR_JSON || c->kind == WEFT_GRAMMAR_JSON_VALUE;
    *out = 0;
    if (weft__server_response_forms(g) && (g->lead || params->calls))
        params->form = is_json ? WEFT_CHAT_FORM_JSON : WEFT_CHAT_FORM_ANY;
    if (params->form || params->calls) return WEFT_OK;
    *out = !g->params.grammar_lazy && c->field && is_json;
    if (*out || g->params.grammar_lazy || (!g->params.grammar && !c->field)) return WEFT_OK;
    weft_status st = weft_chat_parser_new(g->prompts.chat, params, &parser, err);
    if (st) return st;
    *out = weft_chat_parser_thinks(parser);
    weft_chat_parser_free(&parser);
    return WEFT_OK;
}

/* The tokens that end the thinking, once for all choices. */
static weft_status find_thinking_end(weft__server_response *g, weft_error *err)
{
    enum { MOST = 64 };
    if (g->params.thinking_budget < 0 || g->thinking_end) return WEFT_OK;
    g->thinking_end = weft__alloc_array(MOST, sizeof *g->thinking_end);
    if (!g->thinking_end) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the request");
    const weft__api_tools *tools = &g->params.tools;
    const int must_call = tools->offered.len && strcmp(tools->called.data, "auto") != 0;
    /* What the grammar ends at once needs no budget, and has no room for its words. */
    if ((must_call || weft__server_response_forms(g)) && weft_chat_prompt_ends_thinking(g->prompts.chat))
        return WEFT_OK;
    return weft_chat_thinking_end(g->prompts.chat, tools->offered.len ? tools->called.data : NULL, g->thinking_end,
                                  MOST, &g->n_thinking_end, err);
}

static const char *budget_field(const weft__api_params *a)
{
    const char *name = "thinking_budget_tokens";
    return weft__json_get(a->root, name) ? name : "reasoning_budget_tokens";
}

int weft__server_parse_begin(weft__server_response *g, weft__server_choice *c, weft__api_error *error)
{
    const weft__api_params *a = &g->params;
    const int offered = a->tools.offered.len > 0;
    weft_chat_parser_params p = {.size = sizeof p,
                                 .calls = offered && a->tools.parsed,
                                 .reasoning = !is_format(a, "none") || g->lead,
                                 .tools = offered ? a->tools.offered.data : NULL};
    weft_error err = {0};
    int is_content;
    if (!g->prompts.chat) return 1;
    if (a->thinking_budget >= 0 && !weft_chat_reasons(g->model->prompt_model.chat))
        return weft__api_error_set(error, 400, budget_field(a),
                                   "'%s': this model's chat template knows no thinking; leave it out", budget_field(a));
    if (!p.calls && !g->lead && !weft_chat_reasons(g->model->prompt_model.chat)) return 1;
    weft_status st = all_is_content(g, &p, &is_content, &err);
    if (!st && is_content) return 1;
    if (!st) st = find_thinking_end(g, &err);
    if (!st) st = weft_chat_parser_new(g->prompts.chat, &p, &c->parser, &err);
    if (st) {
        weft__api_error_of(error, st, err.message);
        return 0;
    }
    c->message = (weft__api_message){.streams = a->stream,
                                     .legacy = is_format(a, "deepseek-legacy") && !g->lead,
                                     .one_call = offered && !a->tools.parallel};
    c->out->parsed = &c->message;
    return 1;
}

weft_status weft__server_parse_token(weft__server_choice *c, int32_t token, const char **text, size_t *n,
                                     weft_error *err)
{
    const weft_tokenizer *tokenizer = c->gen->model->prompt_model.tokenizer;
    if (!c->parser || !weft_chat_parser_shows(c->parser, token)) {
        weft_status st = weft_detok_push(c->detok, token, text, n, err);
        c->n_silent = st || *n ? 0 : c->n_silent + 1;
        return st;
    }
    c->n_silent = 0;
    *text = weft_token_piece(tokenizer, token, n);
    return *text ? WEFT_OK : weft_fail(err, WEFT_INTERNAL, "token %d has no spelling", token);
}

int weft__server_parse_is_live(const weft__server_choice *c)
{
    return c->gen->params.stream || c->message.one_call || c->gen->params.thinking_budget >= 0;
}

int weft__server_parse_may_insert(const weft__server_choice *c)
{
    return c->parser && c->gen->n_thinking_end && !c->is_over;
}

/* Perhaps: the last tokens, which are few enough for that, gave no text. */
static int is_within_character(const weft__server_choice *c)
{
    return c->n_silent > 0 && c->n_silent < 4;
}

int weft__server_parse_is_over(weft__server_choice *c, int64_t n)
{
    if (!weft__server_parse_may_insert(c)) return 0;
    const int thinks = weft_chat_parser_thinks(c->parser);
    if (thinks && c->thinks) c->n_thought += n; /* what begins it is none of it */
    c->thinks = thinks;
    c->is_over = thinks && c->n_thought >= c->gen->params.thinking_budget && !is_within_character(c);
    if (c->is_over) weft_chat_parser_end_thinking(c->parser);
    return c->is_over;
}

weft_status weft__server_parse(weft__server_choice *c, int ended, weft_error *err)
{
    const weft__strbuf *text = &c->out->text;
    weft_status st = WEFT_OK;
    if (!c->parser || c->is_whole) return WEFT_OK;
    if (text->len > c->n_parsed)
        st = weft_chat_parser_push(c->parser, text->data + c->n_parsed, text->len - c->n_parsed, weft__api_message_add,
                                   &c->message, err);
    c->n_parsed = text->len;
    if (!st && ended) st = weft_chat_parser_finish(c->parser, weft__api_message_add, &c->message, err);
    if (weft__api_message_failed(&c->message)) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the answer");
    if (st != WEFT_CANCELLED) return st;
    c->is_whole = 1;
    return WEFT_OK;
}
