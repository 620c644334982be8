// SPDX-License-Identifier: Apache-2.0
/* openai.c: answers of OpenAI's completions and embeddings; whole and as streams (answer.h). Shapes: the API reference
 * at platform.openai.com. */
#include <math.h>
#include <string.h>

#include "api/errors.h"
#include "api/openai_parts.h"

/* ---- completions ---- */

/* One walk over the echoed prompt's entries and the answer's. */
struct span {
    const weft__api_entry *entries;
    size_t from, to;
};

static size_t code_points(const char *s, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += ((unsigned char)s[i] & 0xc0) != 0x80;
    return count;
}

/* A token as a name: what is no UTF-8 alone is spelled "bytes:\\xe2\\x80", as OpenAI does, so that different ones stay
 * apart. */
static void put_name(weft__strbuf *out, const weft__api_answer *a, int32_t token)
{
    size_t n;
    const char *bytes = weft__api_token_bytes(a, token, &n);
    if (weft__utf8_valid(bytes, n)) {
        weft__json_write_string(out, bytes, n);
        return;
    }
    weft__strbuf_puts(out, "\"bytes:");
    for (size_t i = 0; i < n; i++) weft__strbuf_printf(out, "\\\\x%02x", (unsigned char)bytes[i]);
    weft__strbuf_putc(out, '"');
}

/* 1: one of the k likeliest spells the same bytes; some vocabularies have a letter twice, and a name stands once. */
static int named_before(const weft__api_choice *c, const weft__api_entry *e, int32_t k, int32_t token)
{
    const weft_token_prob *tops = c->tops + e->first_top;
    size_t n, n_other;
    const char *bytes = weft__api_token_bytes(c->answer, token, &n);
    for (int32_t i = 0; i < k; i++) {
        const char *other = weft__api_token_bytes(c->answer, tops[i].token, &n_other);
        if (n == n_other && !memcmp(bytes, other, n)) return 1;
    }
    return 0;
}

static void put_named(weft__strbuf *out, const weft__api_choice *c, const char *comma, int32_t token, float logprob)
{
    weft__strbuf_puts(out, comma);
    put_name(out, c->answer, token);
    weft__strbuf_putc(out, ':');
    weft__api_put_logprob(out, logprob);
}

/* The likeliest, and the token itself where it is none of them. */
static void put_top_object(weft__strbuf *out, const weft__api_choice *c, const weft__api_entry *e)
{
    if (isnan(e->logprob) || c->answer->params->n_top == 0) {
        weft__strbuf_puts(out, "null");
        return;
    }
    weft__strbuf_putc(out, '{');
    for (int32_t k = 0; k < e->n_top; k++) {
        const weft_token_prob *p = &c->tops[e->first_top + (size_t)k];
        if (!named_before(c, e, k, p->token)) put_named(out, c, k ? "," : "", p->token, p->logprob);
    }
    if (!named_before(c, e, e->n_top, e->token)) put_named(out, c, e->n_top ? "," : "", e->token, e->logprob);
    weft__strbuf_putc(out, '}');
}

static void put_spans(weft__strbuf *out, const weft__api_choice *c, const struct span spans[2], const char *name)
{
    int first = 1;
    weft__strbuf_printf(out, "\"%s\":[", name);
    for (int s = 0; s < 2; s++)
        for (size_t i = spans[s].from; i < spans[s].to; i++) {
            const weft__api_entry *e = &spans[s].entries[i];
            if (!first) weft__strbuf_putc(out, ',');
            first = 0;
            if (!strcmp(name, "tokens")) put_name(out, c->answer, e->token);
            else if (!strcmp(name, "token_logprobs")) weft__api_put_logprob(out, e->logprob);
            else put_top_object(out, c, e);
        }
    weft__strbuf_puts(out, "],");
}

/* Bytes of the prompt's text that a token of it spells at `at`; none for BOS and the like, and the space of
 * SentencePiece's first piece, whatever special tokens stand before it, is not in the text. */
static size_t spelled(const weft__api_choice *c, int32_t token, size_t at)
{
    const weft__api_prompt *p = c->prompt;
    size_t n;
    const char *bytes = weft__api_token_bytes(c->answer, token, &n);
    if (n && *bytes == ' ' && at < p->n_text && p->text[at] != ' ') bytes++, n--;
    return n <= p->n_text - at && !memcmp(p->text + at, bytes, n) ? n : 0;
}

/* Offsets count characters of prompt and answer. A token that ends within a character begins where that begins. */
static void put_offsets(weft__strbuf *out, const weft__api_choice *c, const struct span spans[2])
{
    const char *text = c->prompt->text ? c->prompt->text : "", *comma = "";
    size_t base = code_points(text, c->prompt->n_text), points = 0, at = 0, done = 0;
    weft__strbuf_puts(out, "\"text_offset\":[");
    for (size_t i = spans[0].from; i < spans[0].to; i++, comma = ",") {
        size_t n = spelled(c, spans[0].entries[i].token, at);
        int within = at < c->prompt->n_text && ((unsigned char)text[at] & 0xc0) == 0x80;
        weft__strbuf_printf(out, "%s%zu", comma, points - (size_t)within);
        points += code_points(text + at, n);
        at += n;
    }
    at = base;
    for (size_t i = spans[1].from; i < spans[1].to; i++, comma = ",") {
        size_t begin = spans[1].entries[i].begin < c->text.len ? spans[1].entries[i].begin : c->text.len;
        at += code_points(c->text.data + done, begin - done);
        done = begin;
        weft__strbuf_printf(out, "%s%zu", comma, at);
    }
    weft__strbuf_puts(out, "]");
}

static void put_completion_logprobs(weft__strbuf *out, const weft__api_choice *c, int with_prompt, size_t from,
                                    size_t to)
{
    struct span spans[2] = {{c->prompt_entries, 0, with_prompt ? c->n_prompt_entries : 0}, {c->entries, from, to}};
    if (c->answer->params->n_top < 0) {
        weft__strbuf_puts(out, "\"logprobs\":null");
        return;
    }
    weft__strbuf_puts(out, "\"logprobs\":{");
    put_spans(out, c, spans, "tokens");
    put_spans(out, c, spans, "token_logprobs");
    put_spans(out, c, spans, "top_logprobs");
    put_offsets(out, c, spans);
    weft__strbuf_puts(out, "}");
}

static void put_completion_chunk(weft__strbuf *out, const weft__api_choice *c, const char *text, size_t n,
                                 int with_prompt, size_t to, const char *finish)
{
    weft__strbuf_puts(out, "data: ");
    weft__api_put_head(out, c->answer, "text_completion");
    weft__strbuf_printf(out, ",\"choices\":[{\"index\":%d,\"text\":", c->index);
    weft__json_write_string(out, text, n);
    weft__strbuf_putc(out, ',');
    put_completion_logprobs(out, c, with_prompt, c->n_shown, to);
    weft__strbuf_puts(out, ",\"finish_reason\":");
    weft__strbuf_printf(out, finish ? "\"%s\"" : "%s", finish ? finish : "null");
    if (finish) weft__api_put_dropped(out, c);
    weft__api_end_chunk(out, c->answer);
}

static void completions_delta(const weft__api_choice *c, size_t n_text, size_t n_entries, weft__strbuf *out)
{
    put_completion_chunk(out, c, c->text.data + c->shown, n_text, 0, n_entries, NULL);
}

/* The echoed prompt goes out when its last log-probability is known: with the first text, or at the end. */
static void put_echo(const weft__api_choice *c, weft__strbuf *out)
{
    put_completion_chunk(out, c, c->prompt->text, c->prompt->n_text, 1, c->n_shown, NULL);
}

static void completions_first_delta(const weft__api_choice *c, size_t n_text, size_t n_entries, weft__strbuf *out)
{
    if (c->answer->params->echo && !c->shown && !c->n_shown) put_echo(c, out);
    completions_delta(c, n_text, n_entries, out);
}

static void completions_choice_end(const weft__api_choice *c, weft__strbuf *out)
{
    if (c->status) {
        weft__api_put_error_event(WEFT__API_OPENAI, c->status, c->message, out);
        return;
    }
    if (c->answer->params->echo && !c->shown && !c->n_shown) put_echo(c, out);
    put_completion_chunk(out, c, "", 0, 0, c->n_shown, weft__api_finish_text(c));
}

static void completions_stream_end(const weft__api_answer *a, weft__strbuf *out)
{
    weft__api_stream_end(a, out, "text_completion");
}

static void completions_whole(const weft__api_answer *a, weft__strbuf *out)
{
    weft__strbuf both = {0};
    weft__api_put_head(out, a, "text_completion");
    weft__strbuf_puts(out, ",\"choices\":[");
    int n = 0;
    for (int i = 0; i < a->n_choices; i++) {
        const weft__api_choice *c = &a->choices[i];
        if (c->is_left_out) continue;
        both.len = 0;
        if (a->params->echo) weft__strbuf_put(&both, c->prompt->text, c->prompt->n_text);
        weft__strbuf_put(&both, c->text.data ? c->text.data : "", c->text.len);
        weft__strbuf_printf(out, "%s{\"index\":%d,\"text\":", n ? "," : "", n);
        n++;
        weft__json_write_string(out, both.data ? both.data : "", both.len);
        weft__strbuf_putc(out, ',');
        put_completion_logprobs(out, c, a->params->echo, 0, weft__api_entries_shown(c));
        weft__strbuf_printf(out, ",\"finish_reason\":\"%s\"", weft__api_finish_text(c));
        weft__api_put_quality(out, c);
        weft__api_put_dropped(out, c);
        weft__strbuf_putc(out, '}');
    }
    weft__strbuf_puts(out, "],");
    weft__api_put_usage(out, a);
    weft__strbuf_puts(out, "}");
    if (both.failed) out->failed = 1;
    weft__strbuf_free(&both);
}

const weft__api_writer weft__api_write_completions = {completions_first_delta, completions_choice_end, NULL,
                                                      completions_stream_end, completions_whole};

/* ---- embeddings ---- */

/* Little-endian float32 in base64 (RFC 4648). */
static void put_base64(weft__strbuf *out, const float *v, int32_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t bytes = (size_t)n * 4;
    unsigned char b[3];
    weft__strbuf_putc(out, '"');
    for (size_t i = 0; i < bytes; i += 3) {
        size_t have = bytes - i < 3 ? bytes - i : 3;
        for (size_t k = 0; k < 3; k++) {
            uint32_t bits = 0;
            if (k < have) memcpy(&bits, &v[(i + k) / 4], sizeof bits);
            b[k] = (unsigned char)(bits >> 8 * ((i + k) % 4));
        }
        weft__strbuf_putc(out, digits[b[0] >> 2]);
        weft__strbuf_putc(out, digits[(b[0] & 3) << 4 | b[1] >> 4]);
        weft__strbuf_putc(out, have > 1 ? digits[(b[1] & 15) << 2 | b[2] >> 6] : '=');
        weft__strbuf_putc(out, have > 2 ? digits[b[2] & 63] : '=');
    }
    weft__strbuf_putc(out, '"');
}

static void embeddings_whole(const weft__api_answer *a, weft__strbuf *out)
{
    int64_t n = 0;
    weft__strbuf_puts(out, "{\"object\":\"list\",\"data\":[");
    for (int i = 0; i < a->n_choices; i++) {
        const weft__api_choice *c = &a->choices[i];
        weft__strbuf_printf(out, "%s{\"object\":\"embedding\",\"index\":%d,\"embedding\":", i ? "," : "", i);
        if (a->params->base64) put_base64(out, c->embedding, c->n_embedding);
        else weft__api_put_floats(out, c->embedding, c->n_embedding);
        weft__strbuf_putc(out, '}');
        n += c->prompt->n;
    }
    weft__strbuf_puts(out, "],\"model\":");
    weft__json_write_string(out, a->model, strlen(a->model));
    weft__strbuf_printf(out, ",\"usage\":{\"prompt_tokens\":%lld,\"total_tokens\":%lld}}", (long long)n, (long long)n);
}

const weft__api_writer weft__api_write_openai_embeddings = {NULL, NULL, NULL, NULL, embeddings_whole};
