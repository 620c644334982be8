/* generate.c: the loop sample, detokenize, look for stop strings, evaluate. One thread; SIGINT only raises a flag. */
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

/* The text so far, and how much of it the sink has seen. */
struct output {
    const generate_request *request;
    generate_result *result;
    size_t capacity, sent;
    int ended; /* a stop string was found, or the sink wants no more */
};

static weft_status append(struct output *o, const char *text, size_t n, weft_error *err)
{
    generate_result *r = o->result;
    if (r->n_text + n + 1 > o->capacity) {
        size_t capacity = 2 * (r->n_text + n + 1);
        char *grown = realloc(r->text, capacity);
        if (!grown) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the text");
        r->text = grown;
        o->capacity = capacity;
    }
    if (n) memcpy(r->text + r->n_text, text, n);
    r->n_text += n;
    r->text[r->n_text] = 0;
    return WEFT_OK;
}

/* Looks for the earliest stop string in what the sink has not seen, and cuts the text there. Returns how many bytes at the end
 * could be the beginning of one. */
static size_t check_stops(struct output *o)
{
    generate_result *r = o->result;
    const struct text_list *stop = o->request->stop;
    size_t held = 0, cut = r->n_text, fresh = r->n_text - o->sent;
    const char *text = r->text + o->sent;
    for (int i = 0; stop && i < stop->n; i++) {
        const char *s = stop->items[i];
        size_t n = strlen(s);
        const char *found = n ? memmem(text, fresh, s, n) : NULL;
        if (found && (size_t)(found - r->text) < cut) cut = (size_t)(found - r->text);
        for (size_t k = n < fresh ? n : fresh; n && k > held; k--)
            if (!memcmp(text + fresh - k, s, k)) held = k;
    }
    if (cut == r->n_text) return held;
    r->n_text = cut;
    r->text[cut] = 0;
    o->ended = 1;
    return 0;
}

static void send(struct output *o, size_t held)
{
    generate_result *r = o->result;
    size_t n = r->n_text - o->sent - held;
    if (n == 0) return;
    if (o->request->sink && o->request->sink(o->request->sink_arg, r->text + o->sent, n)) o->ended = 1;
    o->sent += n;
}

static weft_status take(struct output *o, const char *text, size_t n, int last, weft_error *err)
{
    weft_status st = append(o, text, n, err);
    if (st) return st;
    size_t held = check_stops(o);
    send(o, last ? 0 : held);
    return WEFT_OK;
}

static weft_status add_token(generate_result *r, int32_t token, int32_t *capacity, weft_error *err)
{
    if (r->n_tokens == *capacity) {
        int32_t grown = *capacity ? 2 * *capacity : 256;
        int32_t *tokens = realloc(r->tokens, (size_t)grown * sizeof *tokens);
        if (!tokens) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %d tokens", grown);
        r->tokens = tokens;
        *capacity = grown;
    }
    r->tokens[r->n_tokens++] = token;
    return WEFT_OK;
}

/* The next token, which becomes part of the text. */
static weft_status next_token(const generate_request *q, float *logits, int32_t n_vocab, int32_t *token, weft_error *err)
{
    weft_status st = q->matcher ? weft_matcher_apply(q->matcher, logits, n_vocab, err) : WEFT_OK;
    if (!st && weft_sampler_pick(q->sampler, logits, token, err)) return weft_session_blame(q->session, logits, err);
    if (!st) st = weft_sampler_accept(q->sampler, *token, err);
    return st || !q->matcher ? st : weft_matcher_accept(q->matcher, *token, err);
}

/* Sample and evaluate until something ends it; sets the finish reason. */
static weft_status decode(const generate_request *q, struct output *o, float *logits, int32_t n_vocab, weft_detok *detok,
                          weft_error *err)
{
    generate_result *r = o->result;
    const weft_tokenizer *tokenizer = weft_model_tokenizer(q->model);
    int32_t capacity = 0, token;
    const char *text;
    size_t n;
    weft_status st;
    r->finish_reason = "length";
    while (q->n_max < 0 || r->n_tokens < q->n_max) {
        if ((st = next_token(q, logits, n_vocab, &token, err)) || (st = add_token(r, token, &capacity, err))) return st;
        if ((q->matcher || !q->ignore_end) && weft_token_is_end(tokenizer, token)) {
            r->finish_reason = "stop";
            return WEFT_OK;
        }
        if ((st = weft_detok_push(detok, token, &text, &n, err)) || (st = take(o, text, n, 0, err))) return st;
        if (o->ended || (q->matcher && weft_matcher_complete(q->matcher) == 2)) {
            r->finish_reason = "stop";
            return WEFT_OK;
        }
        if (r->n_tokens == q->n_max || weft_session_n_tokens(q->session) >= weft_session_n_ctx(q->session)) return WEFT_OK;
        if ((st = weft_session_eval(q->session, &token, 1, 0, logits, err))) return st;
    }
    return WEFT_OK;
}

static weft_status prefill(const generate_request *q, float *logits, weft_error *err)
{
    weft_status st = weft_session_eval(q->session, q->prompt, q->n_prompt, 0, logits, err);
    for (int32_t i = 0; i < q->n_prompt && !st; i++) st = weft_sampler_accept(q->sampler, q->prompt[i], err);
    return st;
}

weft_status generate(const generate_request *q, generate_result *r, weft_error *err)
{
    weft_model_info info = {.size = sizeof info};
    struct output o = {.request = q, .result = r};
    weft_detok *detok = NULL;
    float *logits = NULL;
    const char *text;
    size_t n;
    *r = (generate_result){.finish_reason = "error"};
    weft_status st = weft_model_describe(q->model, &info, err);
    if (!st) st = append(&o, "", 0, err);
    if (!st && !(logits = malloc((size_t)info.n_vocab * sizeof *logits)))
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory for logits");
    if (!st)
        st = weft_detok_new(weft_model_tokenizer(q->model), q->matcher || q->continues ? WEFT_DETOK_CONTINUE : 0, &detok, err);
    if (!st) {
        uint64_t start = now_ns();
        st = prefill(q, logits, err);
        uint64_t middle = now_ns();
        r->prefill_ms = (double)(middle - start) / 1e6;
        if (!st) st = decode(q, &o, logits, info.n_vocab, detok, err);
        r->decode_ms = (double)(now_ns() - middle) / 1e6;
    }
    if (st == WEFT_CANCELLED) {
        st = WEFT_OK;
        r->finish_reason = "cancelled";
    }
    if (!st && !o.ended && !(st = weft_detok_finish(detok, &text, &n, err))) st = take(&o, text, n, 1, err);
    /* A stop string cuts what the grammar took for its own. */
    r->broken_off = !st && q->matcher && (o.ended || !weft_matcher_complete(q->matcher));
    weft_detok_free(&detok);
    free(logits);
    return st;
}

void generate_result_free(generate_result *r)
{
    free(r->tokens);
    free(r->text);
    *r = (generate_result){0};
}
