// SPDX-License-Identifier: Apache-2.0
/* llama.c: answers as llama.cpp's server gives them: /completion and /embedding. Field names: its
 * tools/server/README.md (answer.h). */
#include <math.h>
#include <string.h>

#include "api/answer.h"
#include "api/errors.h"
#include "text/stop.h"

static void put_bytes_text(weft__strbuf *out, const weft__api_answer *a, int32_t token)
{
    size_t n;
    const char *bytes = weft_token_bytes(a->tokenizer, token, &n);
    weft__strbuf_puts(out, "\"token\":");
    weft__json_write_string(out, bytes ? bytes : "", bytes ? n : 0);
    weft__strbuf_puts(out, ",\"bytes\":[");
    for (size_t i = 0; bytes && i < n; i++) weft__strbuf_printf(out, "%s%d", i ? "," : "", (unsigned char)bytes[i]);
    weft__strbuf_putc(out, ']');
}

static void put_prob(weft__strbuf *out, const weft__api_answer *a, int32_t token, float logprob)
{
    weft__strbuf_printf(out, "{\"id\":%d,", token);
    put_bytes_text(out, a, token);
    weft__strbuf_printf(out, ",\"logprob\":%.7g", isnan(logprob) ? 0.0 : logprob > -9999 ? (double)logprob : -9999.0);
}

static void put_probs(weft__strbuf *out, const weft__api_choice *c, size_t from, size_t to)
{
    if (c->answer->params->n_top < 0) return;
    weft__strbuf_puts(out, ",\"completion_probabilities\":[");
    for (size_t i = from; i < to; i++) {
        const weft__api_entry *e = &c->entries[i];
        if (i > from) weft__strbuf_putc(out, ',');
        put_prob(out, c->answer, e->token, e->logprob);
        weft__strbuf_puts(out, ",\"top_logprobs\":[");
        for (int32_t k = 0; k < e->n_top; k++) {
            if (k) weft__strbuf_putc(out, ',');
            put_prob(out, c->answer, c->tops[e->first_top + (size_t)k].token,
                     c->tops[e->first_top + (size_t)k].logprob);
            weft__strbuf_putc(out, '}');
        }
        weft__strbuf_puts(out, "]}");
    }
    weft__strbuf_putc(out, ']');
}

static void put_tokens(weft__strbuf *out, const weft__api_choice *c, size_t from, size_t to)
{
    weft__strbuf_puts(out, ",\"tokens\":[");
    for (size_t i = from; c->answer->params->return_tokens && i < to; i++)
        weft__strbuf_printf(out, "%s%d", i > from ? "," : "", c->entries[i].token);
    weft__strbuf_putc(out, ']');
}

static void put_rate(weft__strbuf *out, const char *what, int32_t n, double ms)
{
    weft__strbuf_printf(out, "\"%s_n\":%d,\"%s_ms\":%.3f,\"%s_per_token_ms\":%.3f,\"%s_per_second\":%.3f", what, n,
                        what, ms, what, n ? ms / n : 0.0, what, ms > 0 ? 1000.0 * n / ms : 0.0);
}

static void put_timings(weft__strbuf *out, const weft__api_choice *c)
{
    weft__strbuf_printf(out, ",\"timings\":{\"cache_n\":%d,", c->n_cached);
    put_rate(out, "prompt", c->prompt->n - c->n_cached, c->prompt_ms);
    weft__strbuf_putc(out, ',');
    put_rate(out, "predicted", c->n_generated, c->generate_ms);
    if (c->n_drafted) weft__strbuf_printf(out, ",\"draft_n\":%d,\"draft_n_accepted\":%d", c->n_drafted, c->n_accepted);
    weft__strbuf_putc(out, '}');
}

static void put_trigger(weft__strbuf *out, const weft_trigger *t, int more)
{
    if (more) weft__strbuf_putc(out, ',');
    if (t->kind == WEFT_TRIGGER_TOKEN) {
        weft__strbuf_printf(out, "{\"type\":0,\"value\":\"\",\"token\":%d}", t->token);
        return;
    }
    weft__strbuf_printf(out, "{\"type\":%d,\"value\":", t->kind == WEFT_TRIGGER_WORD ? 1 : (int)t->kind);
    weft__json_write_string(out, t->text, t->length);
    weft__strbuf_putc(out, '}');
}

static void put_settings(weft__strbuf *out, const weft__api_choice *c)
{
    const weft__api_params *p = c->answer->params;
    weft__strbuf_printf(out,
                        ",\"generation_settings\":{\"n_predict\":%lld,\"max_tokens\":%lld,\"seed\":%llu,"
                        "\"temperature\":%.9g,\"top_k\":%lld,\"top_p\":%.9g,"
                        "\"min_p\":%.9g,\"repeat_last_n\":%lld,\"repeat_penalty\":%.9g,\"presence_penalty\":%.9g,"
                        "\"frequency_penalty\":%.9g,"
                        "\"speculative.n_max\":%lld,\"speculative.n_min\":%lld,\"speculative.p_min\":%.9g,"
                        "\"ignore_eos\":%s,\"stream\":%s,\"n_probs\":%lld,\"n_keep\":%lld,\"kv_type\":\"%s\","
                        "\"grammar\":",
                        (long long)p->max_tokens, (long long)p->max_tokens, (unsigned long long)c->seed, p->temperature,
                        (long long)p->top_k, p->top_p, p->min_p, (long long)p->penalty_last_n, p->repeat_penalty,
                        p->presence_penalty, p->frequency_penalty, (long long)p->draft_max, (long long)p->draft_min,
                        p->draft_p_min, p->ignore_end ? "true" : "false", p->stream ? "true" : "false",
                        (long long)(p->n_top > 0 ? p->n_top : 0), (long long)p->n_keep, p->kv_text);
    weft__json_write_string(out, p->grammar ? p->grammar : "", p->grammar ? strlen(p->grammar) : 0);
    weft__strbuf_printf(out, ",\"grammar_lazy\":%s,\"grammar_triggers\":[", p->grammar_lazy ? "true" : "false");
    for (int i = 0; i < p->n_triggers; i++) put_trigger(out, &p->triggers[i], i > 0);
    weft__strbuf_puts(out, "],\"stop\":[");
    for (int i = 0; i < p->n_stops; i++) {
        if (i) weft__strbuf_putc(out, ',');
        weft__json_write_string(out, p->stops[i], p->stop_lengths[i]);
    }
    weft__strbuf_puts(out, "]}");
}

/* Everything that the last object has; content and tokens from the given places on. */
static void put_final(weft__strbuf *out, const weft__api_choice *c, size_t text_from, size_t entry_from)
{
    const weft__api_answer *a = c->answer;
    size_t n_stop, n_text = c->text.len - text_from, shown = weft__api_entries_shown(c),
                   last = shown > entry_from ? shown : entry_from;
    const char *stop = weft__stop_found(c->stop, &n_stop);
    const char *why = c->stop->found >= 0 ? "word" : c->finish == WEFT_FINISH_LENGTH ? "limit" : "eos";
    weft__strbuf_printf(out, "{\"index\":%d,\"content\":", c->index);
    weft__json_write_string(out, c->text.data ? c->text.data + text_from : "", n_text);
    put_tokens(out, c, entry_from, last);
    weft__strbuf_printf(out, ",\"id_slot\":%d,\"stop\":true,\"model\":", c->slot);
    weft__json_write_string(out, a->model, strlen(a->model));
    weft__strbuf_printf(out, ",\"tokens_predicted\":%d,\"tokens_evaluated\":%d", c->n_generated, c->prompt->n);
    put_settings(out, c);
    weft__strbuf_puts(out, ",\"prompt\":");
    weft__json_write_string(out, c->prompt->text ? c->prompt->text : "", c->prompt->n_text);
    weft__strbuf_printf(out, ",\"has_new_line\":%s,\"truncated\":%s,\"dropped_tokens\":%d,",
                        c->text.len && memchr(c->text.data, '\n', c->text.len) ? "true" : "false",
                        c->n_dropped ? "true" : "false", c->n_dropped);
    weft__strbuf_printf(out, "\"stop_type\":\"%s\",\"stopping_word\":", why);
    weft__json_write_string(out, stop, n_stop);
    weft__strbuf_printf(out, ",\"tokens_cached\":%d", c->prompt->n + c->n_generated);
    put_timings(out, c);
    put_probs(out, c, entry_from, last);
    weft__strbuf_putc(out, '}');
}

static void delta(const weft__api_choice *c, size_t n_text, size_t n_entries, weft__strbuf *out)
{
    weft__strbuf_printf(out, "data: {\"index\":%d,\"content\":", c->index);
    weft__json_write_string(out, c->text.data + c->shown, n_text);
    put_tokens(out, c, c->n_shown, n_entries);
    weft__strbuf_printf(out, ",\"stop\":false,\"id_slot\":%d,\"tokens_predicted\":%d,\"tokens_evaluated\":%d", c->slot,
                        c->n_generated, c->prompt->n);
    if (c->answer->params->timings) put_timings(out, c);
    put_probs(out, c, c->n_shown, n_entries);
    weft__strbuf_puts(out, "}\n\n");
}

static void choice_end(const weft__api_choice *c, weft__strbuf *out)
{
    if (c->status) {
        weft__api_put_error_event(WEFT__API_LLAMA, c->status, c->message, out);
        return;
    }
    weft__strbuf_puts(out, "data: ");
    put_final(out, c, c->text.len, c->n_entries);
    weft__strbuf_puts(out, "\n\n");
}

static void stream_end(const weft__api_answer *a, weft__strbuf *out)
{
    (void)a, (void)out; /* the last object has "stop": true */
}

static void whole(const weft__api_answer *a, weft__strbuf *out)
{
    int array = a->several || a->params->n > 1;
    if (array) weft__strbuf_putc(out, '[');
    for (int i = 0; i < a->n_choices; i++) {
        if (i) weft__strbuf_putc(out, ',');
        put_final(out, &a->choices[i], 0, 0);
    }
    if (array) weft__strbuf_putc(out, ']');
}

const weft__api_writer weft__api_write_completion = {delta, choice_end, NULL, stream_end, whole};

static void embedding_whole(const weft__api_answer *a, weft__strbuf *out)
{
    weft__strbuf_putc(out, '[');
    for (int i = 0; i < a->n_choices; i++) {
        const weft__api_choice *c = &a->choices[i];
        weft__strbuf_printf(out, "%s{\"index\":%d,\"embedding\":[", i ? "," : "", i);
        weft__api_put_floats(out, c->embedding, c->n_embedding);
        weft__strbuf_puts(out, "]}");
    }
    weft__strbuf_putc(out, ']');
}

const weft__api_writer weft__api_write_embedding = {NULL, NULL, NULL, NULL, embedding_whole};
