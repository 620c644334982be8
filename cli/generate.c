// SPDX-License-Identifier: Apache-2.0
/* generate.c: weft_generate for the commands: what comes is kept and shown. One thread; SIGINT only raises a flag. */
#include "generate.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "terminal.h"

static weft_session *volatile interrupt_session;
static volatile sig_atomic_t interrupted;
static struct sigaction before; /* what SIGINT did, and does again */
static int taken;

static void on_interrupt(int signal_number)
{
    if (interrupted && signal_ends(&before)) {
        sigaction(signal_number, &before, NULL);
        raise(signal_number);
        return;
    }
    interrupted = 1;
    if (interrupt_session) weft_session_cancel(interrupt_session);
}

void generate_cancel_on_interrupt(weft_session *session)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    interrupted = 0;
    interrupt_session = session;
    if (session && !taken && !sigaction(SIGINT, NULL, &before) && before.sa_handler != SIG_IGN)
        taken = !sigaction(SIGINT, &action, NULL);
    else if (!session && taken) taken = !!sigaction(SIGINT, &before, NULL);
}

/* What weft_generate hands on, kept and sent to the sink. */
struct output {
    const generate_request *request;
    generate_result *result;
    int32_t tokens_capacity;
    size_t text_capacity;
    int failed; /* without memory */
};

static int add_token(struct output *o, int32_t token)
{
    generate_result *r = o->result;
    if (r->n_tokens == o->tokens_capacity) {
        int32_t grown = o->tokens_capacity ? 2 * o->tokens_capacity : 256;
        int32_t *tokens = realloc(r->tokens, (size_t)grown * sizeof *tokens);
        if (!tokens) return 0;
        r->tokens = tokens;
        o->tokens_capacity = grown;
    }
    r->tokens[r->n_tokens++] = token;
    return 1;
}

static int add_text(struct output *o, const char *text, size_t n)
{
    generate_result *r = o->result;
    if (r->n_text + n + 1 > o->text_capacity) {
        size_t capacity = 2 * (r->n_text + n + 1);
        char *grown = realloc(r->text, capacity);
        if (!grown) return 0;
        r->text = grown;
        o->text_capacity = capacity;
    }
    if (n) memcpy(r->text + r->n_text, text, n);
    r->n_text += n;
    r->text[r->n_text] = 0;
    return 1;
}

static int on_piece(void *arg, const weft_generated *piece)
{
    struct output *o = arg;
    const generate_request *q = o->request;
    const char *text = piece->text;
    size_t n = piece->length;
    if (q->shows && piece->token >= 0 && q->shows(q->sink_arg, piece->token))
        text = weft_token_piece(weft_model_tokenizer(q->model), piece->token, &n);
    o->failed = (piece->token >= 0 && !add_token(o, piece->token)) || !add_text(o, text, n);
    return o->failed || (n && q->sink && q->sink(q->sink_arg, text, n));
}

static const char *reason_of(weft_finish finish)
{
    switch (finish) {
    case WEFT_FINISH_END:
    case WEFT_FINISH_STOP: return "stop";
    case WEFT_FINISH_LENGTH: return "length";
    case WEFT_FINISH_CANCELLED: return "cancelled";
    case WEFT_FINISH_FAILED: break;
    }
    return "error";
}

int overflow_shifts(const overflow_options *o)
{
    return o->how && !strcmp(o->how, "shift");
}

weft_status generate(const generate_request *q, generate_result *r, weft_error *err)
{
    const char *stops[LIST_MAX + 1];
    int n_stops = 0;
    struct output o = {.request = q, .result = r};
    weft_generate_params p;
    weft_generate_result g = {.size = sizeof g, .finish = WEFT_FINISH_FAILED};
    *r = (generate_result){.finish_reason = "error"};
    if (!add_text(&o, "", 0)) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the text");
    for (int i = 0; q->stop && i < q->stop->n; i++)
        if (q->stop->items[i][0]) stops[n_stops++] = q->stop->items[i];
    stops[n_stops] = NULL;
    weft_generate_params_default(&p);
    p.tokens = q->prompt;
    p.n_tokens = q->n_prompt;
    p.max_tokens = q->n_max;
    p.ignore_end = q->ignore_end;
    p.matcher = q->matcher;
    p.stops = stops;
    p.detok_flags = q->matcher || q->continues ? WEFT_DETOK_CONTINUE : 0;
    p.spec = q->spec;
    p.shift = q->shift;
    p.n_keep = q->n_keep;
    p.callback = on_piece;
    p.arg = &o;
    weft_status st = weft_generate(q->session, q->sampler, &p, &g, err);
    if (!st && o.failed) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for the text");
    r->finish_reason = st ? "error" : reason_of(g.finish);
    r->prefill_ms = g.prompt_ms;
    r->decode_ms = g.generate_ms;
    r->n_drafted = g.n_drafted;
    r->n_accepted = g.n_accepted;
    r->n_dropped = g.n_dropped;
    /* A stop string cuts what the grammar took for its own. */
    r->broken_off = !st && q->matcher && (g.finish == WEFT_FINISH_STOP || !weft_matcher_complete(q->matcher));
    return st;
}

void generate_result_free(generate_result *r)
{
    free(r->tokens);
    free(r->text);
    *r = (generate_result){0};
}
