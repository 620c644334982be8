// SPDX-License-Identifier: Apache-2.0
/* openai_chat.c: answers of chat completions, whole and as streams (answer.h).
 * Shapes: the API reference at platform.openai.com. */
#include <string.h>

#include "api/errors.h"
#include "api/openai_parts.h"

static void put_token(weft__strbuf *out, const weft__api_answer *a, int32_t token)
{
    size_t n;
    const char *bytes = weft__api_token_bytes(a, token, &n);
    weft__json_write_string(out, bytes, n);
}

static void put_chat_token(weft__strbuf *out, const weft__api_answer *a, int32_t token, float logprob)
{
    size_t n;
    const unsigned char *bytes = (const unsigned char *)weft__api_token_bytes(a, token, &n);
    weft__strbuf_puts(out, "{\"token\":");
    put_token(out, a, token);
    weft__strbuf_puts(out, ",\"logprob\":");
    weft__api_put_logprob(out, logprob);
    weft__strbuf_puts(out, ",\"bytes\":[");
    for (size_t i = 0; i < n; i++) weft__strbuf_printf(out, "%s%d", i ? "," : "", bytes[i]);
    weft__strbuf_puts(out, "]");
}

/* Log-probabilities of entries [from, to). */
static void put_chat_logprobs(weft__strbuf *out, const weft__api_choice *c, size_t from, size_t to)
{
    if (c->answer->params->n_top < 0) {
        weft__strbuf_puts(out, "\"logprobs\":null");
        return;
    }
    weft__strbuf_puts(out, "\"logprobs\":{\"content\":[");
    for (size_t i = from; i < to; i++) {
        const weft__api_entry *e = &c->entries[i];
        if (i > from) weft__strbuf_putc(out, ',');
        put_chat_token(out, c->answer, e->token, e->logprob);
        weft__strbuf_puts(out, ",\"top_logprobs\":[");
        for (int32_t k = 0; k < e->n_top; k++) {
            const weft_token_prob *p = &c->tops[e->first_top + (size_t)k];
            if (k) weft__strbuf_putc(out, ',');
            put_chat_token(out, c->answer, p->token, p->logprob);
            weft__strbuf_putc(out, '}');
        }
        weft__strbuf_puts(out, "]}");
    }
    weft__strbuf_puts(out, "],\"refusal\":null}");
}

static void begin_chunk(weft__strbuf *out, const weft__api_choice *c)
{
    weft__strbuf_puts(out, "data: ");
    weft__api_put_head(out, c->answer, "chat.completion.chunk");
    weft__strbuf_printf(out, ",\"choices\":[{\"index\":%d,\"delta\":", c->index);
}

static void chat_begin(const weft__api_choice *c, weft__strbuf *out)
{
    begin_chunk(out, c);
    weft__strbuf_puts(
        out, "{\"role\":\"assistant\",\"content\":\"\",\"refusal\":null},\"logprobs\":null,\"finish_reason\":null");
    weft__api_end_chunk(out, c->answer);
}

/* ---- what a message is made of ---- */

static void put_span(weft__strbuf *out, const weft__api_message *m, weft__api_span span)
{
    weft__json_write_string(out, m->spelled.data ? m->spelled.data + span.at : "", span.n);
}

/* {"name", "arguments"} */
static void put_function(weft__strbuf *out, const weft__api_message *m, const weft__api_call *call)
{
    weft__strbuf_puts(out, "{\"name\":");
    put_span(out, m, call->name);
    weft__strbuf_puts(out, ",\"arguments\":");
    put_span(out, m, call->arguments);
    weft__strbuf_puts(out, "}");
}

/* Calls [from, to) as members of a message, or of a stream's delta, where each has its index; a request that spells
 * tools as functions has one. */
static void put_calls(weft__strbuf *out, const weft__api_choice *c, size_t from, size_t to, int is_delta)
{
    const weft__api_message *m = c->parsed;
    if (c->answer->params->tools.old) {
        weft__strbuf_puts(out, "\"function_call\":");
        put_function(out, m, &m->calls[from]);
        return;
    }
    weft__strbuf_puts(out, "\"tool_calls\":[");
    for (size_t i = from; i < to; i++) {
        weft__strbuf_puts(out, i > from ? ",{" : "{");
        if (is_delta) weft__strbuf_printf(out, "\"index\":%zu,", i);
        weft__strbuf_puts(out, "\"id\":");
        put_span(out, m, m->calls[i].id);
        weft__strbuf_puts(out, ",\"type\":\"function\",\"function\":");
        put_function(out, m, &m->calls[i]);
        weft__strbuf_puts(out, "}");
    }
    weft__strbuf_puts(out, "]");
}

static void put_text(weft__strbuf *out, const weft__strbuf *text, size_t at, size_t n)
{
    weft__json_write_string(out, text->data ? text->data + at : "", n);
}

/* Beside calls alone there is no content: null. */
static void put_message(weft__strbuf *out, const weft__api_choice *c)
{
    const weft__api_message *m = c->parsed;
    const weft__strbuf *content = m ? &m->content : &c->text;
    weft__strbuf_puts(out, "{\"role\":\"assistant\",\"content\":");
    if (m && m->n_calls && !content->len) weft__strbuf_puts(out, "null");
    else put_text(out, content, 0, content->len);
    if (m && m->reasoning.len) {
        weft__strbuf_puts(out, ",\"reasoning_content\":");
        put_text(out, &m->reasoning, 0, m->reasoning.len);
    }
    if (m && m->n_calls) {
        weft__strbuf_putc(out, ',');
        put_calls(out, c, 0, m->n_calls, 0);
    }
    weft__strbuf_puts(out, ",\"refusal\":null}");
}

static const char *chat_finish(const weft__api_choice *c)
{
    if (!c->parsed || !c->parsed->n_calls || c->finish == WEFT_FINISH_LENGTH) return weft__api_finish_text(c);
    return c->answer->params->tools.old ? "function_call" : "tool_calls";
}

/* ---- streams ---- */

static void put_piece(weft__strbuf *out, const weft__api_choice *c, const weft__api_piece *piece)
{
    weft__strbuf_putc(out, '{');
    if (piece->kind == WEFT_CHAT_CALL) put_calls(out, c, piece->at, piece->at + piece->n, 1);
    else {
        const int reasons = piece->kind == WEFT_CHAT_REASONING;
        weft__strbuf_puts(out, reasons ? "\"reasoning_content\":" : "\"content\":");
        put_text(out, reasons ? &c->parsed->reasoning : &c->parsed->content, piece->at, piece->n);
    }
    weft__strbuf_putc(out, '}');
}

/* One event: a piece, or the text where there is none; with the log-probabilities of entries up to n_entries. */
static void put_event(weft__strbuf *out, const weft__api_choice *c, const weft__api_piece *piece, size_t n_text,
                      size_t from, size_t to)
{
    begin_chunk(out, c);
    if (piece) put_piece(out, c, piece);
    else {
        weft__strbuf_puts(out, "{\"content\":");
        put_text(out, &c->text, c->shown, n_text);
        weft__strbuf_putc(out, '}');
    }
    weft__strbuf_putc(out, ',');
    put_chat_logprobs(out, c, from, to);
    weft__strbuf_puts(out, ",\"finish_reason\":null");
    weft__api_end_chunk(out, c->answer);
}

static void chat_delta(const weft__api_choice *c, size_t n_text, size_t n_entries, weft__strbuf *out)
{
    const weft__api_message *m = c->parsed;
    const size_t n_pieces = m ? m->n_pieces : 0;
    if (!n_pieces) put_event(out, c, NULL, m ? 0 : n_text, c->n_shown, n_entries);
    for (size_t i = 0; i < n_pieces; i++) put_event(out, c, &m->pieces[i], 0, i ? n_entries : c->n_shown, n_entries);
}

static void chat_choice_end(const weft__api_choice *c, weft__strbuf *out)
{
    if (c->status) {
        weft__api_put_error_event(WEFT__API_OPENAI, c->status, c->message, out);
        return;
    }
    begin_chunk(out, c);
    weft__strbuf_printf(out, "{},\"logprobs\":null,\"finish_reason\":\"%s\"", chat_finish(c));
    weft__api_put_dropped(out, c);
    weft__api_put_memories(out, c->answer);
    weft__api_end_chunk(out, c->answer);
}

static void chat_stream_end(const weft__api_answer *a, weft__strbuf *out)
{
    weft__api_stream_end(a, out, "chat.completion.chunk");
}

static void chat_whole(const weft__api_answer *a, weft__strbuf *out)
{
    weft__api_put_head(out, a, "chat.completion");
    weft__strbuf_puts(out, ",\"choices\":[");
    int n = 0;
    for (int i = 0; i < a->n_choices; i++) {
        const weft__api_choice *c = &a->choices[i];
        if (c->is_left_out) continue;
        weft__strbuf_printf(out, "%s{\"index\":%d,\"message\":", n ? "," : "", n);
        n++;
        put_message(out, c);
        weft__strbuf_putc(out, ',');
        put_chat_logprobs(out, c, 0, weft__api_entries_shown(c));
        weft__strbuf_printf(out, ",\"finish_reason\":\"%s\"", chat_finish(c));
        weft__api_put_quality(out, c);
        weft__api_put_dropped(out, c);
        weft__api_put_memories(out, a);
        weft__strbuf_putc(out, '}');
    }
    weft__strbuf_puts(out, "],");
    weft__api_put_usage(out, a);
    weft__strbuf_puts(out, "}");
}

const weft__api_writer weft__api_write_chat = {chat_delta, chat_choice_end, chat_begin, chat_stream_end, chat_whole};
