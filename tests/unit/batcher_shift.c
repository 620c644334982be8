// SPDX-License-Identifier: Apache-2.0
/* batcher_shift.c: claims about answers that go on where their context is full: what follows is what a fresh run over
 * the tokens that stay gives, however prompts are cut, whoever runs beside, whatever was cached; and it is told. */
#include "unit/fixture.h"
#include "unit/serve_hall.h"

#include "base/random.h"

enum {
    N_CTX = 144, /* more than two pages */
    SINKS = 4,
    N_MANY = CLAIMS_REPEATED(24, 12, 6),
    N_OURS = 120 /* tokens of an answer */
};

static weft_engine_params narrow(void)
{
    weft_engine_params p = small();
    p.n_ctx = N_CTX;
    return p;
}

static void shifting(ask *q, int32_t n_prompt, int32_t max_tokens)
{
    simple(q, n_prompt, max_tokens);
    q->p.shift = 1;
    q->p.sampler.temperature = 0;
}

/* ---- against fresh runs ---- */

/* The rule once more: the first `keep` tokens, and of the others the last half. */
static int32_t stay(int32_t *tokens, int32_t n, int32_t keep)
{
    const int32_t tail = (N_CTX - keep) / 2;
    for (int32_t i = 0; i < tail; i++) tokens[keep + i] = tokens[n - tail + i];
    return keep + tail;
}

static float log_prob(const float *logits, int32_t n, int32_t token)
{
    double sum = 0;
    for (int32_t v = 0; v < n; v++) sum += exp((double)logits[v] - (double)logits[token]);
    return (float)-log(sum);
}

/* The likeliest answer and its log-probabilities, by sessions that know nothing of shifts: a new one where the context
 * is full. */
static void by_fresh_runs(weft_model *model, const ask *q, int32_t keep, int32_t *out, float *log_probs)
{
    int32_t tokens[N_CTX], n = q->p.n_tokens, fed = 0, n_vocab;
    weft_model_info info = {.size = sizeof info};
    weft_session_params sp;
    weft_session *s = NULL;
    weft_error err = {0};
    assert_int_equal(weft_model_describe(model, &info, &err), WEFT_OK);
    n_vocab = info.n_vocab;
    float *logits = malloc((size_t)n_vocab * sizeof *logits);
    memcpy(tokens, q->tokens, (size_t)n * sizeof *tokens);
    weft_session_params_default(&sp);
    sp.n_ctx = N_CTX;
    for (int32_t i = 0; i < q->p.max_tokens; i++) {
        if (!s && weft_session_new(model, &sp, &s, &err)) fail_msg("%s", err.message);
        if (weft_session_eval(s, tokens + fed, n - fed, 0, logits, &err)) fail_msg("%s", err.message);
        fed = n;
        int32_t best = 0;
        for (int32_t v = 1; v < n_vocab; v++)
            if (logits[v] > logits[best]) best = v;
        log_probs[i] = log_prob(logits, n_vocab, best);
        out[i] = tokens[n++] = best;
        if (n < N_CTX) continue;
        n = stay(tokens, n, keep);
        fed = 0;
        weft_session_free(&s);
    }
    weft_session_free(&s);
    free(logits);
}

static void goes_on_as_a_fresh_run(void **state)
{
    (void)state;
    static const struct {
        int32_t n_prompt, n_keep;
    } cases[] = {{90, 0}, {N_CTX - 1, 0}, {130, 41}, {20, 1}, {100, N_CTX / 2}};
    weft_model *model = tiny(0);
    weft_engine_params p = narrow();
    weft_engine *e = open_engine(model, &p);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t wanted[N_OURS + 8];
        float log_probs[N_OURS + 8];
        ask q;
        answer a;
        shifting(&q, cases[i].n_prompt, cases[i].n_prompt == 20 ? 127 : N_OURS);
        q.p.n_keep = cases[i].n_keep;
        q.p.n_top = 0;
        by_fresh_runs(model, &q, cases[i].n_keep ? cases[i].n_keep : SINKS, wanted, log_probs);
        run_alone(e, &q, &a, 1);
        assert_int_equal(a.status, WEFT_OK);
        assert_int_equal(a.finish, WEFT_FINISH_LENGTH);
        assert_int_equal(a.n, q.p.max_tokens);
        assert_memory_equal(a.token, wanted, (size_t)a.n * sizeof *wanted);
        for (int k = 0; k < a.n; k++) /* a model like this says the same of much, but not as surely */
            if (fabsf(a.logprob[k] - log_probs[k]) > 1e-5f)
                fail_msg("case %zu, token %d: %g instead of %g", i, k, (double)a.logprob[k], (double)log_probs[k]);
    }
    close_engine(&e);
    weft_model_close(&model);
}

/* ---- the same, always ---- */

static void make_shifting(ask *all, int n)
{
    weft__rng rng;
    weft__rng_seed(&rng, 11);
    for (int i = 0; i < n; i++) {
        ask *q = &all[i];
        shifting(q, 18 + (int32_t)weft__rng_below(&rng, i % 2 ? 40 : N_CTX - 18), 127);
        const int32_t shared = (int32_t)weft__rng_below(&rng, 3) * 17;
        for (int32_t k = shared; k < q->p.n_tokens; k++) q->tokens[k] = 3 + (int32_t)weft__rng_below(&rng, 500);
        q->p.sampler.seed = weft__rng_below(&rng, 1000);
        q->p.sampler.temperature = (float)weft__rng_below(&rng, 4) * 0.4f;
        q->p.sampler.repeat_penalty = i % 3 == 0 ? 1.2f : 1.0f;
        q->p.n_keep = i % 4 == 0 ? 1 + (int32_t)weft__rng_below(&rng, N_CTX / 2) : 0;
        q->p.n_top = i % 5 == 0 ? 3 : -1;
        q->p.shift = i % 6 != 5; /* and some that end */
        if (!q->p.shift) q->p.max_tokens = -1;
    }
}

static void same_answer_in_every_way(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        int32_t chunk, step_rows;
        int64_t n_kv_tokens;
        int rounds;
    } ways[] = {{"chunks of 3", 3, 0, 0, 1}, {"steps of 20 rows", 16, 20, 0, 1}, {"preempted", 0, 0, 448, 4}};
    weft_model *model = tiny(0);
    ask *all = calloc(N_MANY, sizeof *all);
    answer *first = calloc(N_MANY, sizeof *first), *again = calloc(N_MANY, sizeof *again);
    weft_engine_params p = narrow();
    make_shifting(all, N_MANY);
    for (int i = 0; i < N_MANY; i++) all[i].p.no_cache = 1;
    weft_engine *e = open_engine(model, &p);
    run_alone(e, all, first, N_MANY);
    close_engine(&e);
    for (int i = 0; i < N_MANY; i++) all[i].p.no_cache = 0;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        p = narrow();
        p.chunk = ways[w].chunk;
        p.step_rows = ways[w].step_rows;
        p.n_kv_tokens = ways[w].n_kv_tokens;
        e = open_engine(model, &p);
        for (int round = 0; round < ways[w].rounds; round++) {
            run_together(e, all, again, N_MANY);
            compare(ways[w].what, all, first, again, N_MANY);
        }
        const uint64_t n_preempted = stats_of(e).n_preempted;
        print_message("%s: %llu preemptions\n", ways[w].what, (unsigned long long)n_preempted);
        assert_true(!ways[w].n_kv_tokens || n_preempted > 0);
        run_together(e, all, again, N_MANY);
        compare("after prefix hits", all, first, again, N_MANY);
        close_engine(&e);
    }
    free(all);
    free(first);
    free(again);
    weft_model_close(&model);
}

/* What an answer leaves in the prefix tree is what its last tokens are found by, and they alone. */
static void what_stays_is_found_again(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = narrow();
    weft_engine *e = open_engine(model, &p);
    ask q, next;
    answer a, known, fresh;
    int32_t tokens[N_CTX], n = 100;
    shifting(&q, n, 100);
    run_alone(e, &q, &a, 1);
    memcpy(tokens, q.tokens, (size_t)n * sizeof *tokens);
    for (int i = 0; i < a.n; i++) {
        tokens[n++] = a.token[i];
        if (n == N_CTX && i + 1 < a.n) n = stay(tokens, n, SINKS);
    }
    simple(&next, n, 8);
    next.p.sampler.temperature = 0;
    memcpy(next.tokens, tokens, (size_t)n * sizeof *tokens);
    run_alone(e, &next, &known, 1);
    assert_in_range(known.n_cached, 64, n - 1);
    next.p.no_cache = 1;
    run_alone(e, &next, &fresh, 1);
    assert_int_equal(fresh.n_cached, 0);
    compare("behind a shift", &next, &fresh, &known, 1);
    close_engine(&e);
    weft_model_close(&model);
}

/* ---- what is told, and what is refused ---- */

static struct told {
    int32_t n_shifts, n_dropped;
} last_told;

static int listen_to(void *arg, const weft_event *e)
{
    if (e->kind == WEFT_EVENT_FINISHED) last_told = (struct told){e->n_shifts, e->n_dropped};
    return on_event(arg, e);
}

static void tells_what_was_left_out(void **state)
{
    (void)state;
    static const struct {
        int32_t n_prompt, max_tokens, shift, n_shifts, n_dropped, n;
    } cases[] = {
        {100, 43, 1, 0, 0, 43},                          /* as many as there is room for */
        {100, 44, 1, 0, 0, 44},                          /* and with the last token it is full, and done */
        {100, 45, 1, 1, N_CTX - SINKS - 70, 45},         /* 140 beside the sinks, half of which go */
        {100, 120, 1, 2, 2 * (N_CTX - SINKS - 70), 120}, /* every 70 tokens */
        {100, -1, 0, 0, 0, 44},
        {100, 120, 0, 0, 0, 44},
    };
    weft_model *model = tiny(0);
    weft_engine_params p = narrow();
    weft_engine *e = open_engine(model, &p);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ask q;
        answer a;
        shifting(&q, cases[i].n_prompt, cases[i].max_tokens);
        q.p.shift = cases[i].shift;
        q.p.cut_to_fit = 1;
        q.p.event = listen_to;
        run_alone(e, &q, &a, 1);
        assert_int_equal(a.status, WEFT_OK);
        assert_int_equal(a.n, cases[i].n);
        assert_int_equal(last_told.n_shifts, cases[i].n_shifts);
        assert_int_equal(last_told.n_dropped, cases[i].n_dropped);
    }
    close_engine(&e);
    weft_model_close(&model);
}

static void refuses_what_cannot_stay(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = narrow();
    weft_engine *e = open_engine(model, &p);
    ask q;
    answer a;
    weft_error err = {0};
    shifting(&q, 50, 200);
    q.p.n_keep = N_CTX / 2 + 1;
    assert_int_equal(submit(e, &q, &a, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "first 73 tokens"));
    q.p.n_keep = -1;
    assert_int_equal(submit(e, &q, &a, &err), WEFT_ARGUMENT);
    shifting(&q, N_CTX, 10); /* a prompt is not cut */
    assert_int_equal(submit(e, &q, &a, &err), WEFT_LIMIT);
    close_engine(&e);
    weft_model_close(&model);
}

/* ---- sessions ---- */

static int32_t text_of[N_OURS + 1], n_text_of;

static int keep_token(void *arg, const weft_generated *piece)
{
    (void)arg;
    if (piece->token >= 0 && n_text_of < N_OURS) text_of[n_text_of++] = piece->token;
    return 0;
}

/* Without end tokens, which an engine leaves out where a session goes on behind them. */
static void forbid_ends(const weft_model *model, int32_t n_vocab, ask *q)
{
    const weft_tokenizer *t = weft_model_tokenizer(model);
    for (int32_t v = 0; v < n_vocab && q->p.sampler.n_bias < 2; v++)
        if (weft_token_is_end(t, v)) q->bias[q->p.sampler.n_bias++] = (weft_logit_bias){v, -INFINITY};
    q->p.sampler.bias = q->bias;
}

static void sessions_and_engines_agree(void **state)
{
    (void)state;
    weft_model *model = open_model("models/alderbrook.gguf");
    weft_model_info info = {.size = sizeof info};
    weft_engine_params p = narrow();
    weft_engine *e = open_engine(model, &p);
    weft_session_params sp;
    weft_session *s = NULL;
    weft_sampler *sampler = NULL;
    weft_generate_params g;
    weft_generate_result r = {.size = sizeof r};
    weft_error err = {0};
    ask q;
    answer a;
    weft_model_describe(model, &info, &err);
    shifting(&q, 100, N_OURS);
    forbid_ends(model, info.n_vocab, &q);
    run_alone(e, &q, &a, 1);
    assert_int_equal(a.n, N_OURS);
    close_engine(&e);
    weft_session_params_default(&sp);
    sp.n_ctx = N_CTX;
    if (weft_session_new(model, &sp, &s, &err) || weft_sampler_for(model, &q.p.sampler, &sampler, &err))
        fail_msg("%s", err.message);
    weft_generate_params_default(&g);
    g.tokens = q.tokens;
    g.n_tokens = q.p.n_tokens;
    g.max_tokens = N_OURS;
    g.shift = 1;
    g.callback = keep_token;
    if (weft_generate(s, sampler, &g, &r, &err)) fail_msg("%s", err.message);
    assert_int_equal(n_text_of, N_OURS);
    assert_memory_equal(text_of, a.token, sizeof a.token[0] * N_OURS);
    assert_int_equal(r.n_shifts, 2);
    assert_int_equal(r.n_dropped, 2 * (N_CTX - SINKS - 70));
    g.n_keep = N_CTX; /* more than can stay */
    assert_int_equal(weft_generate(s, sampler, &g, &r, &err), WEFT_ARGUMENT);
    g.n_keep = 0; /* a prompt behind what it holds, and longer than the context is: it shifts, too */
    g.max_tokens = 1;
    g.n_tokens = N_CTX - 10;
    if (weft_generate(s, sampler, &g, &r, &err)) fail_msg("%s", err.message);
    assert_int_equal(r.n_shifts, 1);
    assert_int_equal(weft_session_n_tokens(s), 74);
    weft_sampler_free(&sampler);
    weft_session_free(&s);
    weft_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on_as_a_fresh_run),    cmocka_unit_test(same_answer_in_every_way),
        cmocka_unit_test(what_stays_is_found_again), cmocka_unit_test(tells_what_was_left_out),
        cmocka_unit_test(refuses_what_cannot_stay),  cmocka_unit_test(sessions_and_engines_agree),
    };
    return claims_status(cmocka_run_group_tests(tests, NULL, NULL));
}
