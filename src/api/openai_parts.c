// SPDX-License-Identifier: Apache-2.0
/* openai_parts.c: see openai_parts.h. */
#include "api/openai_parts.h"

#include <math.h>
#include <string.h>

const char *weft__api_finish_text(const weft__api_choice *c)
{
    return c->finish == WEFT_FINISH_LENGTH ? "length" : "stop";
}

/* JSON has no infinity; OpenAI's stands in. */
void weft__api_put_logprob(weft__strbuf *out, float logprob)
{
    if (isnan(logprob)) weft__strbuf_puts(out, "null");
    else weft__strbuf_printf(out, "%.9g", logprob > -9999 ? (double)logprob : -9999.0);
}

const char *weft__api_token_bytes(const weft__api_answer *a, int32_t token, size_t *n)
{
    const char *bytes = weft_token_bytes(a->tokenizer, token, n);
    if (!bytes) *n = 0;
    return bytes ? bytes : "";
}

void weft__api_put_head(weft__strbuf *out, const weft__api_answer *a, const char *object)
{
    weft__strbuf_printf(out, "{\"id\":\"%s\",\"object\":\"%s\",\"created\":%lld,\"model\":", a->id, object,
                        (long long)a->created);
    weft__json_write_string(out, a->model, strlen(a->model));
    weft__strbuf_printf(out, ",\"system_fingerprint\":\"weft-%s\"", weft_version());
}

void weft__api_put_dropped(weft__strbuf *out, const weft__api_choice *c)
{
    if (c->n_dropped) weft__strbuf_printf(out, ",\"dropped_tokens\":%d", c->n_dropped);
}

void weft__api_put_memories(weft__strbuf *out, const weft__api_answer *a)
{
    for (int32_t i = 0; i < a->n_memories; i++)
        weft__strbuf_printf(out, "%s%lld", i ? "," : ",\"memories\":[", (long long)a->memories[i]);
    if (a->n_memories) weft__strbuf_putc(out, ']');
}

void weft__api_put_quality(weft__strbuf *out, const weft__api_choice *c)
{
    if (!c->n_candidates) return;
    weft__strbuf_printf(out,
                        ",\"quality\":{\"candidates\":%d,\"votes\":%d,\"mean_logprob\":%.6g,\"lowest_logprob\":%.6g",
                        c->n_candidates, c->n_votes, c->mean_logprob, c->lowest_logprob);
    if (c->verified)
        weft__strbuf_printf(out, ",\"verified\":%s,\"attempts\":%d,\"spent_tokens\":%lld",
                            c->verified > 0 ? "true" : "false", c->n_attempts, (long long)c->n_spent);
    weft__strbuf_putc(out, '}');
}

void weft__api_put_usage(weft__strbuf *out, const weft__api_answer *a)
{
    int64_t prompt = 0, cached = 0, generated = 0, predicted = 0, accepted = 0;
    for (int i = 0; i < a->n_choices; i++) {
        const weft__api_choice *c = &a->choices[i];
        if (i % a->params->n == 0) prompt += c->prompt->n, cached += c->n_cached;
        generated += c->n_generated;
        predicted += c->n_predicted;
        accepted += c->n_predicted_accepted;
    }
    weft__strbuf_printf(out,
                        "\"usage\":{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,\"total_tokens\":%lld,"
                        "\"prompt_tokens_details\":{\"cached_tokens\":%lld}",
                        (long long)prompt, (long long)generated, (long long)(prompt + generated), (long long)cached);
    if (a->params->prediction.len)
        weft__strbuf_printf(out,
                            ",\"completion_tokens_details\":{\"accepted_prediction_tokens\":%lld,"
                            "\"rejected_prediction_tokens\":%lld}",
                            (long long)accepted, (long long)(predicted > accepted ? predicted - accepted : 0));
    weft__strbuf_putc(out, '}');
}

static int any_failed(const weft__api_answer *a)
{
    for (int i = 0; i < a->n_choices; i++)
        if (a->choices[i].status) return 1;
    return 0;
}

void weft__api_end_chunk(weft__strbuf *out, const weft__api_answer *a)
{
    weft__strbuf_puts(out, a->params->include_usage ? "}],\"usage\":null}\n\n" : "}]}\n\n");
}

void weft__api_stream_end(const weft__api_answer *a, weft__strbuf *out, const char *object)
{
    if (any_failed(a)) return; /* the error was the last word */
    if (a->params->include_usage) {
        weft__strbuf_puts(out, "data: ");
        weft__api_put_head(out, a, object);
        weft__strbuf_puts(out, ",\"choices\":[],");
        weft__api_put_usage(out, a);
        weft__strbuf_puts(out, "}\n\n");
    }
    weft__strbuf_puts(out, "data: [DONE]\n\n");
}
