/* engine_serve.c: claims about engines: the same answer whatever runs beside a request and wherever its prefix comes from; and that
 * every request ends exactly once, whatever happens to it. */
#include "unit/fixture.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/random.h"
#include "claims.h"
#include "model/shared.h"
#include "weft/weft.h"

enum { MAX_TOKENS = 320, MAX_ANSWER = 128, N_MANY = CLAIMS_OF_SPEED ? 200 : 60 };

/* ---- requests and what they bring ---- */

typedef struct ask {
    weft_request_params p;
    int32_t tokens[MAX_TOKENS];
    weft_logit_bias bias[2];
} ask;

typedef struct answer {
    struct hall *hall;
    uint64_t id;
    int accepted, n_began, n_finished, n;
    int32_t token[MAX_ANSWER];
    float logprob[MAX_ANSWER];
    double checksum; /* of alternatives, prompt tokens and embeddings */
    int n_prompt_tokens, n_embedding, n_cached;
    weft_finish finish;
    weft_status status;
    char message[256];
} answer;

/* Where answers are waited for. */
typedef struct hall {
    pthread_mutex_t lock;
    pthread_cond_t left;
    int n_left;
} hall;

static hall the_hall = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static void add_tops(answer *a, const weft_event *e)
{
    for (int32_t k = 0; k < e->n_top; k++) a->checksum += (double)e->top[k].logprob * (k + 1) + e->top[k].token;
}

static int on_event(void *arg, const weft_event *e)
{
    answer *a = arg;
    assert_int_equal(a->n_finished, 0); /* nothing comes after the end */
    if (e->kind == WEFT_EVENT_BEGAN) a->n_began++;
    if (e->kind == WEFT_EVENT_PROMPT_TOKEN) {
        a->n_prompt_tokens++;
        a->checksum += isnan(e->logprob) ? 1 : (double)e->logprob * a->n_prompt_tokens;
        add_tops(a, e);
    }
    if (e->kind == WEFT_EVENT_TOKEN) {
        assert_true(a->n_began && a->n < MAX_ANSWER);
        a->token[a->n] = e->token;
        a->logprob[a->n++] = e->logprob;
        assert_int_equal(e->n_generated, a->n);
        add_tops(a, e);
    }
    if (e->kind == WEFT_EVENT_EMBEDDING) {
        a->n_embedding = e->n_embedding;
        for (int32_t i = 0; i < e->n_embedding; i++) a->checksum += (double)e->embedding[i] * (i + 1);
    }
    if (e->kind != WEFT_EVENT_FINISHED) return 0;
    a->finish = e->finish;
    a->status = e->status;
    a->n_cached = e->n_cached;
    snprintf(a->message, sizeof a->message, "%s", e->message ? e->message : "");
    pthread_mutex_lock(&a->hall->lock);
    a->n_finished++;
    a->hall->n_left--;
    pthread_cond_broadcast(&a->hall->left);
    pthread_mutex_unlock(&a->hall->lock);
    return 0;
}

static weft_status submit(weft_engine *e, const ask *q, answer *a, weft_error *err)
{
    weft_request_params p = q->p;
    *a = (answer){.hall = &the_hall};
    p.tokens = q->tokens;
    p.sampler.bias = q->bias;
    if (!p.event) p.event = on_event;
    if (!p.arg) p.arg = a;
    pthread_mutex_lock(&the_hall.lock);
    the_hall.n_left++;
    pthread_mutex_unlock(&the_hall.lock);
    weft_status st = weft_engine_submit(e, &p, &a->id, NULL, err);
    a->accepted = st == WEFT_OK;
    if (st) {
        pthread_mutex_lock(&the_hall.lock);
        the_hall.n_left--;
        pthread_mutex_unlock(&the_hall.lock);
    }
    return st;
}

static void wait_all(void)
{
    pthread_mutex_lock(&the_hall.lock);
    while (the_hall.n_left > 0) pthread_cond_wait(&the_hall.left, &the_hall.lock);
    pthread_mutex_unlock(&the_hall.lock);
}

/* ---- models and engines ---- */

static weft_model *tiny(int32_t n_ctx)
{
    weft_model *model = NULL;
    weft_model_params params;
    weft_error err = {0};
    weft_model_params_default(&params);
    params.n_threads = 2;
    params.n_ctx = n_ctx;
    if (weft_model_synthetic("tiny", WEFT_Q4_0, &params, &model, &err)) fail_msg("%s", err.message);
    return model;
}

static weft_model *from_shared(const char *name)
{
    weft_model *model = NULL;
    weft_model_params params;
    weft_error err = {0};
    const char *path = shared_path("models/%s.gguf", name);
    weft_model_params_default(&params);
    params.n_threads = 2;
    if (!path) skip_claim("no %s; set WEFT_SHARED", name);
    if (weft_model_open(path, &params, &model, &err)) fail_msg("%s", err.message);
    return model;
}

static weft_engine_params small(void)
{
    weft_engine_params p;
    weft_engine_params_default(&p);
    p.n_slots = 16;
    p.n_ctx = 512;
    p.max_queue = 256;
    return p;
}

static weft_engine *open_engine(weft_model *model, const weft_engine_params *p)
{
    weft_engine *e = NULL;
    weft_error err = {0};
    if (weft_engine_new(model, p, &e, &err)) fail_msg("%s", err.message);
    return e;
}

static weft_engine_stats stats_of(const weft_engine *e)
{
    weft_engine_stats s = {.size = sizeof s};
    weft_engine_get_stats(e, &s);
    return s;
}

/* Everybody has ended: no page is held by anyone. */
static void close_engine(weft_engine **e)
{
    weft_engine_drain(*e, 60000); /* an event comes before its request is forgotten */
    weft_engine_stats s = stats_of(*e);
    assert_int_equal(s.kv_pages_used, 0);
    assert_int_equal(s.n_running + s.n_waiting, 0);
    assert_true(s.n_finished == s.n_submitted);
    weft_engine_free(e);
    assert_null(*e);
}

static void simple(ask *q, int32_t n_prompt, int32_t max_tokens)
{
    memset(q, 0, sizeof *q);
    weft_request_params_default(&q->p);
    q->p.n_tokens = n_prompt;
    q->p.max_tokens = max_tokens;
    q->p.sampler.seed_given = 1;
    q->p.sampler.seed = 7;
    q->p.sampler.n_bias = 0;
    for (int32_t i = 0; i < n_prompt; i++) q->tokens[i] = 3 + (i * 31 + 7) % 500;
}

/* ---- the same answer, always ---- */

/* Mixed prompts, half of them with beginnings in common; lengths, seeds, temperatures, penalties; a few with log-probabilities of the
 * prompt, a few embeddings. */
static void make_many(ask *all, int n, const weft_grammar *grammar)
{
    weft__rng rng;
    weft__rng_seed(&rng, 99);
    for (int i = 0; i < n; i++) {
        ask *q = &all[i];
        int shared = (int)weft__rng_below(&rng, 4) * 50, family = (int)weft__rng_below(&rng, 3);
        simple(q, 1 + shared + (int32_t)weft__rng_below(&rng, 60), (int32_t)weft__rng_below(&rng, 24) + (i % 4 == 2 ? 90 : 0));
        for (int32_t k = 0; k < q->p.n_tokens; k++) q->tokens[k] = k < shared ? 3 + (k * 17 + family * 111) % 500 : 3 + (int32_t)weft__rng_below(&rng, 500);
        q->p.sampler.seed = weft__rng_below(&rng, 1000);
        q->p.sampler.temperature = (float)weft__rng_below(&rng, 5) * 0.3f;
        q->p.sampler.repeat_penalty = i % 5 == 0 ? 1.3f : 1.0f;
        q->p.sampler.presence_penalty = i % 7 == 0 ? 0.5f : 0;
        q->bias[0] = (weft_logit_bias){5 + i % 100, 2.5f};
        q->bias[1] = (weft_logit_bias){6 + i % 100, -INFINITY};
        q->p.sampler.n_bias = i % 3 == 0 ? 2 : 0;
        q->p.ignore_end = i % 2;
        q->p.n_top = i % 4 == 0 ? i % 8 : -1;
        q->p.prompt_logprobs = i % 16 == 4;
        q->p.priority = i % 3 - 1;
        q->p.tenant = i % 2 ? "one" : "two";
        if (i % 20 == 9) q->p.embedding = 1, q->p.max_tokens = 0;
        else if (grammar && i % 6 == 1) q->p.grammar = grammar;
    }
}

static void run_alone(weft_engine *e, const ask *all, answer *out, int n)
{
    weft_error err = {0};
    for (int i = 0; i < n; i++) {
        if (submit(e, &all[i], &out[i], &err)) fail_msg("request %d: %s", i, err.message);
        wait_all();
    }
}

static void run_together(weft_engine *e, const ask *all, answer *out, int n)
{
    weft_error err = {0};
    for (int i = 0; i < n; i++)
        if (submit(e, &all[i], &out[i], &err)) fail_msg("request %d: %s", i, err.message);
    wait_all();
}

static void compare(const char *what, const ask *all, const answer *a, const answer *b, int n)
{
    for (int i = 0; i < n; i++) {
        int same = a[i].n == b[i].n && a[i].finish == b[i].finish && !memcmp(a[i].token, b[i].token, sizeof a[i].token) &&
                   !memcmp(a[i].logprob, b[i].logprob, (size_t)a[i].n * sizeof(float)) && !memcmp(&a[i].checksum, &b[i].checksum, sizeof(double)) &&
                   a[i].n_prompt_tokens == b[i].n_prompt_tokens && a[i].n_embedding == b[i].n_embedding;
        if (b[i].status) fail_msg("%s: request %d failed: %s", what, i, b[i].message);
        if (!same) fail_msg("%s: request %d (%d prompt tokens) gives another answer: %d tokens, then %d", what, i, all[i].p.n_tokens, a[i].n, b[i].n);
    }
}

static void check_answers(const ask *all, const answer *a, int n)
{
    int n_tokens = 0, n_ends = 0;
    for (int i = 0; i < n; i++) {
        if (a[i].status) fail_msg("request %d failed: %s", i, a[i].message);
        assert_int_equal(a[i].n_began, 1);
        assert_int_equal(a[i].n_finished, 1);
        assert_true(a[i].finish == WEFT_FINISH_LENGTH ? a[i].n == all[i].p.max_tokens : a[i].finish == WEFT_FINISH_END);
        assert_int_equal(a[i].n_prompt_tokens, all[i].p.prompt_logprobs ? all[i].p.n_tokens : 0);
        assert_int_equal(a[i].n_embedding > 0, all[i].p.embedding);
        n_tokens += a[i].n;
        n_ends += a[i].finish == WEFT_FINISH_END;
    }
    print_message("%d requests: %d tokens, %d of them ended by themselves\n", n, n_tokens, n_ends);
    assert_true(n_tokens > n);
}

static void remove_folder(const char *path)
{
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    if (system(command)) fail_msg("%s", command);
}

static void cached_and_stored(weft_model *model, const ask *all, const answer *first, answer *again, int n)
{
    char folder[] = "/tmp/weft-serve-XXXXXX", store[64];
    weft_engine_params p = small();
    assert_non_null(mkdtemp(folder));
    snprintf(store, sizeof store, "%s/store", folder);
    p.store_dir = store;
    weft_engine *e = open_engine(model, &p);
    run_together(e, all, again, n);
    compare("with a store", all, first, again, n);
    uint64_t before = stats_of(e).cached_tokens;
    run_together(e, all, again, n);
    compare("after prefix hits", all, first, again, n);
    assert_true(stats_of(e).cached_tokens > before + (uint64_t)n * 10);
    close_engine(&e);
    e = open_engine(model, &p);
    run_alone(e, all, again, n);
    compare("after a restart", all, first, again, n);
    int n_cached = 0; /* of prompts that have little in common with those before them in this process */
    for (int i = 0; i < 8; i++) n_cached += again[i].n_cached;
    print_message("after the restart: %d tokens of the first 8 prompts came from the store\n", n_cached);
    assert_true(n_cached >= 64);
    close_engine(&e);
    remove_folder(folder);
}

/* least: preemptions that the small pool forces at least. */
static void same_answers(weft_model *model, int n, const weft_grammar *grammar, uint64_t least)
{
    ask *all = calloc((size_t)n, sizeof *all);
    answer *first = calloc((size_t)n, sizeof *first), *again = calloc((size_t)n, sizeof *again);
    make_many(all, n, grammar);
    weft_engine_params p = small();
    p.n_slots = 1;
    for (int i = 0; i < n; i++) all[i].p.no_cache = 1;
    weft_engine *e = open_engine(model, &p);
    run_alone(e, all, first, n);
    check_answers(all, first, n);
    assert_int_equal(stats_of(e).cached_tokens, 0);
    close_engine(&e);
    for (int i = 0; i < n; i++) all[i].p.no_cache = i % 10 == 3;
    static const int chunks[] = {16, 512, 3};
    for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
        p = small();
        p.chunk = chunks[c];
        e = open_engine(model, &p);
        run_together(e, all, again, n);
        compare("16 at once", all, first, again, n);
        close_engine(&e);
    }
    p = small();
    p.n_kv_tokens = 448; /* for 16 requests of up to 280 tokens */
    e = open_engine(model, &p);
    run_together(e, all, again, n);
    compare("after preemption", all, first, again, n);
    print_message("%llu preemptions\n", (unsigned long long)stats_of(e).n_preempted);
    assert_true(stats_of(e).n_preempted >= least);
    close_engine(&e);
    cached_and_stored(model, all, first, again, n);
    free(all);
    free(first);
    free(again);
}

static void same_answer_always(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    same_answers(model, N_MANY, NULL, CLAIMS_OF_SPEED ? 4 : 1);
    weft_model_close(&model);
}

static void same_answer_of(const char *name)
{
    static const char source[] = "root ::= [a-zA-Z ,.']+ \".\"\n";
    weft_error err = {0};
    weft_grammar *grammar = NULL;
    weft_model *model = from_shared(name);
    if (weft_grammar_new(weft_model_tokenizer(model), WEFT_GRAMMAR_GBNF, source, sizeof source - 1, &grammar, &err)) fail_msg("%s", err.message);
    same_answers(model, N_MANY, grammar, 0);
    weft_grammar_free(&grammar);
    weft_model_close(&model);
}

static void same_answer_of_stories(void **state)
{
    (void)state;
    same_answer_of("stories260K");
}

static void same_answer_with_windows(void **state)
{
    (void)state;
    same_answer_of("tiny-gemma3.f16");
}

/* A session and a sampler, one token at a time, are the oracle. */
static void answers_are_those_of_a_session(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    ask q[6];
    answer a[6];
    for (int i = 0; i < 6; i++) {
        simple(&q[i], 10 + 30 * i, 20);
        q[i].p.ignore_end = 1;
        q[i].p.sampler.temperature = (float)i * 0.4f;
        q[i].p.sampler.repeat_penalty = 1.2f;
        q[i].p.sampler.seed = (uint64_t)i;
    }
    run_together(e, q, a, 6);
    close_engine(&e);
    for (int i = 0; i < 6; i++) {
        float logits[512];
        weft_session_params sp;
        weft_session *s;
        weft_sampler *sampler;
        weft_session_params_default(&sp);
        sp.n_ctx = 512;
        assert_int_equal(weft_session_new(model, &sp, &s, NULL), WEFT_OK);
        assert_int_equal(weft_sampler_new(512, &q[i].p.sampler, &sampler, NULL), WEFT_OK);
        for (int32_t k = 0; k < q[i].p.n_tokens; k++) weft_sampler_accept(sampler, q[i].tokens[k], NULL);
        assert_int_equal(weft_session_eval(s, q[i].tokens, q[i].p.n_tokens, 0, logits, NULL), WEFT_OK);
        for (int k = 0; k < 20; k++) {
            int32_t token;
            assert_int_equal(weft_sampler_pick(sampler, logits, &token, NULL), WEFT_OK);
            assert_int_equal(a[i].token[k], token);
            weft_sampler_accept(sampler, token, NULL);
            assert_int_equal(weft_session_eval(s, &token, 1, 0, logits, NULL), WEFT_OK);
        }
        weft_sampler_free(&sampler);
        weft_session_free(&s);
    }
    weft_model_close(&model);
}

/* ---- log-probabilities, embeddings ---- */

static void log_probabilities_are_the_models(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    ask q;
    answer a;
    weft_session *s;
    weft_session_params sp;
    static float logits[100][512];
    simple(&q, 100, 1); /* more rows want logits than one step gives */
    q.p.n_top = 20;
    q.p.prompt_logprobs = 1;
    run_alone(e, &q, &a, 1);
    close_engine(&e);
    weft_session_params_default(&sp);
    sp.n_ctx = 128;
    assert_int_equal(weft_session_new(model, &sp, &s, NULL), WEFT_OK);
    assert_int_equal(weft_session_eval(s, q.tokens, 100, 1, logits[0], NULL), WEFT_OK);
    double expected = 1, sum;
    for (int i = 0; i < 100; i++) {
        int used[512] = {0};
        sum = 0;
        for (int t = 0; t < 512; t++) sum += exp((double)logits[i][t]);
        int32_t next = i < 99 ? q.tokens[i + 1] : a.token[0];
        if (i < 99) expected += (logits[i][next] - log(sum)) * (i + 2);
        else assert_float_equal(a.logprob[0], logits[i][next] - log(sum), 1e-4);
        for (int k = 0; k < 20; k++) {
            int best = -1;
            for (int t = 0; t < 512; t++)
                if (!used[t] && (best < 0 || logits[i][t] > logits[i][best])) best = t;
            used[best] = 1;
            expected += (logits[i][best] - log(sum)) * (k + 1) + best;
        }
    }
    assert_int_equal(a.n_prompt_tokens, 100);
    assert_float_equal(a.checksum / expected, 1, 1e-6);
    weft_session_free(&s);
    weft_model_close(&model);
}

typedef struct vector {
    answer a;
    float v[1024];
} vector;

static int keep_vector(void *arg, const weft_event *e)
{
    vector *v = arg;
    if (e->kind == WEFT_EVENT_EMBEDDING) memcpy(v->v, e->embedding, (size_t)e->n_embedding * sizeof(float));
    return on_event(&v->a, e);
}

static void an_embedding_has_length_one_and_depends_on_its_text(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    static vector v[3];
    ask q[3];
    for (int i = 0; i < 3; i++) {
        answer refused;
        simple(&q[i], 40, 0);
        if (i == 2) q[i].tokens[0]++;
        q[i].p.embedding = 1;
        q[i].p.event = keep_vector;
        q[i].p.arg = &v[i];
        v[i].a.hall = &the_hall;
        assert_int_equal(submit(e, &q[i], &refused, NULL), WEFT_OK);
    }
    wait_all();
    double length = 0, apart = 0;
    for (int i = 0; i < v[0].a.n_embedding; i++) {
        length += (double)v[0].v[i] * (double)v[0].v[i];
        apart += fabs((double)v[0].v[i] - (double)v[2].v[i]);
    }
    assert_true(v[0].a.n_embedding > 0);
    assert_float_equal(length, 1, 1e-5);
    assert_memory_equal(v[0].v, v[1].v, sizeof v[0].v);
    assert_true(apart > 1e-3);
    close_engine(&e);
    weft_model_close(&model);
}

/* ---- ends ---- */

typedef struct stopper {
    answer a;
    weft_engine *e;
    int after, cancel;
} stopper;

static int stop_after(void *arg, const weft_event *e)
{
    stopper *s = arg;
    on_event(&s->a, e);
    if (e->kind != WEFT_EVENT_TOKEN || s->a.n < s->after) return 0;
    if (s->cancel) weft_engine_cancel(s->e, e->request);
    return !s->cancel;
}

static void a_request_ends_with_the_step_that_it_is_cancelled_in(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    for (int cancel = 0; cancel < 2; cancel++) {
        stopper s[4];
        for (int i = 0; i < 4; i++) {
            ask q;
            answer unused;
            s[i] = (stopper){.a = {.hall = &the_hall}, .e = e, .after = 3 + i, .cancel = cancel};
            simple(&q, 20, 100);
            q.p.ignore_end = 1;
            q.p.event = stop_after;
            q.p.arg = &s[i];
            assert_int_equal(submit(e, &q, &unused, NULL), WEFT_OK);
        }
        wait_all();
        for (int i = 0; i < 4; i++) {
            assert_int_equal(s[i].a.n, 3 + i); /* not one more */
            assert_int_equal(s[i].a.finish, cancel ? WEFT_FINISH_CANCELLED : WEFT_FINISH_STOP);
        }
    }
    weft_engine_cancel(e, 0);
    weft_engine_cancel(e, UINT64_MAX);
    weft_engine_cancel(e, (uint64_t)77 << 32 | 1);
    close_engine(&e);
    weft_model_close(&model);
}

/* Threads that submit and cancel as they like; every request ends once. */
typedef struct crowd {
    weft_engine *e;
    int seed, n_accepted;
} crowd;

static void *crowd_thread(void *arg)
{
    crowd *c = arg;
    weft__rng rng;
    weft__rng_seed(&rng, (uint64_t)c->seed);
    static answer answers[4][40];
    for (int i = 0; i < 40; i++) {
        ask q;
        simple(&q, 1 + (int32_t)weft__rng_below(&rng, 100), (int32_t)weft__rng_below(&rng, 40));
        q.p.embedding = i % 10 == 5;
        if (q.p.embedding) q.p.max_tokens = 0;
        if (i % 7 == 0) q.p.deadline_ms = 1 + weft__rng_below(&rng, 20);
        c->n_accepted += submit(c->e, &q, &answers[c->seed][i], NULL) == WEFT_OK;
        if (i % 3 == 0) weft_engine_cancel(c->e, answers[c->seed][weft__rng_below(&rng, (uint64_t)i + 1)].id);
        if (i % 8 == 0) usleep((useconds_t)weft__rng_below(&rng, 3000));
        (void)stats_of(c->e);
    }
    return NULL;
}

static void a_crowd_of_threads_loses_nothing(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    p.n_kv_tokens = 512;
    p.max_queue = 30;
    weft_engine *e = open_engine(model, &p);
    pthread_t threads[4];
    crowd crowds[4];
    for (int i = 0; i < 4; i++) {
        crowds[i] = (crowd){e, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_thread, &crowds[i]), 0);
    }
    uint64_t accepted = 0;
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        accepted += (uint64_t)crowds[i].n_accepted;
    }
    wait_all();
    assert_true(stats_of(e).n_submitted == accepted);
    close_engine(&e);
    weft_model_close(&model);
}

static void a_late_request_fails_and_says_so(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    ask q;
    answer a;
    simple(&q, 300, 128);
    q.p.ignore_end = 1;
    q.p.deadline_ms = 1;
    p.n_slots = 1;
    assert_int_equal(submit(e, &q, &a, NULL), WEFT_OK);
    wait_all();
    assert_int_equal(a.finish, WEFT_FINISH_FAILED);
    assert_int_equal(a.status, WEFT_TIMEOUT);
    assert_non_null(strstr(a.message, "1 ms"));
    close_engine(&e);
    weft_model_close(&model);
}

/* ---- refusals ---- */

static void what_cannot_work_is_refused_by_name(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    p.n_kv_tokens = 256;
    weft_engine *e = open_engine(model, &p);
    struct {
        const char *says;
        weft_status status;
        ask q;
    } bad[10];
    for (int i = 0; i < 10; i++) simple(&bad[i].q, 10, 10), bad[i].status = WEFT_ARGUMENT;
    bad[0].q.p.n_tokens = 0, bad[0].says = "no tokens";
    bad[1].q.tokens[4] = 512, bad[1].says = "place 4";
    bad[2].q.tokens[4] = -1, bad[2].says = "ids 0 to 511";
    bad[3].q.p.max_tokens = -2, bad[3].says = "max_tokens";
    bad[4].q.p.n_top = 21, bad[4].says = "n_top";
    bad[5].q.p.sampler.temperature = NAN, bad[5].says = "temperature";
    bad[6].q.p.max_tokens = 1000, bad[6].says = "512", bad[6].status = WEFT_LIMIT;
    bad[7].q.p.n_tokens = 250, bad[7].q.p.max_tokens = 50, bad[7].says = "KV pages", bad[7].status = WEFT_LIMIT;
    bad[8].q.p.embedding = 1, bad[8].says = "embedding";
    bad[9].q.p.size = 8, bad[9].says = "weft_request_params", bad[9].status = WEFT_ABI;
    for (int i = 0; i < 10; i++) {
        answer a;
        weft_error err = {0};
        assert_int_equal(submit(e, &bad[i].q, &a, &err), bad[i].status);
        if (!strstr(err.message, bad[i].says)) fail_msg("%d: '%s' does not say '%s'", i, err.message, bad[i].says);
    }
    ask q;
    answer a;
    simple(&q, 200, -1); /* as long as the pages last */
    q.p.ignore_end = 1;
    assert_int_equal(submit(e, &q, &a, NULL), WEFT_OK);
    wait_all();
    assert_int_equal(a.finish, WEFT_FINISH_LENGTH);
    assert_int_equal(a.n, 57); /* 256 positions; the last token needs none */
    close_engine(&e);
    static const struct {
        size_t at;
        int value;
    } params[] = {{offsetof(weft_engine_params, n_slots), -1}, {offsetof(weft_engine_params, n_slots), 100000}, {offsetof(weft_engine_params, n_ctx), -5},
                  {offsetof(weft_engine_params, chunk), 100000}, {offsetof(weft_engine_params, step_rows), 100000}, {offsetof(weft_engine_params, max_queue), -1}};
    for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
        p = small();
        memcpy((char *)&p + params[i].at, &params[i].value, sizeof(int));
        assert_int_equal(weft_engine_new(model, &p, &e, NULL), WEFT_ARGUMENT);
        assert_null(e);
    }
    weft_model_close(&model);
}

/* An engine whose thread waits in an event until the gate opens. */
typedef struct gate {
    answer a;
    atomic_int open;
} gate;

static int wait_at_gate(void *arg, const weft_event *e)
{
    gate *g = arg;
    while (e->kind == WEFT_EVENT_BEGAN && !atomic_load(&g->open)) usleep(500);
    return on_event(&g->a, e);
}

static void a_full_queue_says_when_to_come_back(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    p.n_slots = 1;
    p.max_queue = 3;
    weft_engine *e = open_engine(model, &p);
    gate g = {.a = {.hall = &the_hall}};
    ask q;
    answer a[8];
    weft_error err = {0};
    weft_status st = WEFT_OK;
    simple(&q, 10, 4);
    q.p.event = wait_at_gate;
    q.p.arg = &g;
    assert_int_equal(submit(e, &q, &a[0], NULL), WEFT_OK);
    simple(&q, 10, 4);
    for (int i = 0; i < 8 && !st; i++) st = submit(e, &q, &a[i], &err);
    assert_int_equal(st, WEFT_BUSY);
    assert_non_null(strstr(err.message, "try again in"));
    q.p.event = on_event;
    q.p.tokens = q.tokens;
    double retry = 0;
    uint64_t id;
    assert_int_equal(weft_engine_submit(e, &q.p, &id, &retry, NULL), WEFT_BUSY);
    assert_true(retry > 0);
    assert_true(stats_of(e).n_refused == 2);
    atomic_store(&g.open, 1);
    wait_all();
    assert_int_equal(submit(e, &q, &a[0], NULL), WEFT_OK);
    wait_all();
    close_engine(&e);
    weft_model_close(&model);
}

static void draining_refuses_what_is_new_and_ends_what_is_old(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    for (int patient = 0; patient < 2; patient++) {
        weft_engine_params p = small();
        p.n_slots = 2;
        weft_engine *e = open_engine(model, &p);
        ask q;
        answer a[6], late;
        weft_error err = {0};
        simple(&q, 200, 120);
        q.p.ignore_end = 1;
        for (int i = 0; i < 6; i++) assert_int_equal(submit(e, &q, &a[i], NULL), WEFT_OK);
        weft_engine_drain(e, patient ? 100000 : 0);
        for (int i = 0; i < 6; i++) {
            assert_int_equal(a[i].n_finished, 1);
            if (patient) assert_int_equal(a[i].finish, WEFT_FINISH_LENGTH);
        }
        if (!patient) assert_int_equal(a[5].finish, WEFT_FINISH_CANCELLED);
        assert_int_equal(submit(e, &q, &late, &err), WEFT_STATE);
        close_engine(&e);
    }
    weft_model_close(&model);
}

static void freeing_ends_what_runs(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    ask q;
    answer a[40];
    simple(&q, 200, 120);
    q.p.ignore_end = 1;
    for (int i = 0; i < 40; i++) assert_int_equal(submit(e, &q, &a[i], NULL), WEFT_OK);
    weft_engine_free(&e);
    wait_all();
    for (int i = 0; i < 40; i++) assert_int_equal(a[i].n_finished, 1);
    assert_int_equal(a[39].finish, WEFT_FINISH_CANCELLED);
    weft_engine_free(&e);
    weft_model_close(&model);
}

/* ---- one long prompt ---- */

typedef struct witness {
    answer a;
    atomic_int n, *reading;
    int n_meanwhile;
} witness;

static int count_tokens(void *arg, const weft_event *e)
{
    witness *w = arg;
    if (e->kind == WEFT_EVENT_FINISHED) return on_event(&w->a, e);
    if (e->kind != WEFT_EVENT_TOKEN) return 0;
    atomic_fetch_add(&w->n, 1);
    w->n_meanwhile += atomic_load(w->reading);
    return 0;
}

static int note_reading(void *arg, const weft_event *e)
{
    witness *w = arg;
    if (e->kind == WEFT_EVENT_BEGAN) atomic_store(w->reading, 1);
    if (e->kind == WEFT_EVENT_TOKEN || e->kind == WEFT_EVENT_FINISHED) atomic_store(w->reading, 0);
    return e->kind == WEFT_EVENT_FINISHED ? on_event(&w->a, e) : 0;
}

static void a_long_prompt_delays_others_by_a_chunk_at_most(void **state)
{
    (void)state;
    enum { LONG = CLAIMS_OF_SPEED ? 8000 : 2000, CHUNK = 64 };
    weft_model *model = tiny(LONG + 200);
    weft_engine_params p = small();
    p.n_ctx = LONG + 200;
    p.n_kv_tokens = LONG + 4000;
    p.chunk = CHUNK;
    weft_engine *e = open_engine(model, &p);
    static int32_t tokens[8000];
    atomic_int reading = 0;
    static witness w[4];
    uint64_t id[4];
    for (int i = 0; i < 4; i++) {
        w[i] = (witness){.a = {.hall = &the_hall}, .reading = &reading};
        ask q;
        simple(&q, 20, 400);
        q.p.tokens = q.tokens;
        q.p.ignore_end = 1;
        q.p.event = i < 3 ? count_tokens : note_reading;
        q.p.arg = &w[i];
        if (i == 3) {
            while (atomic_load(&w[2].n) < 3) usleep(200);
            for (int k = 0; k < LONG; k++) tokens[k] = 3 + k % 500;
            q.p.tokens = tokens;
            q.p.n_tokens = LONG;
            q.p.max_tokens = 1;
        }
        pthread_mutex_lock(&the_hall.lock);
        the_hall.n_left++;
        pthread_mutex_unlock(&the_hall.lock);
        assert_int_equal(weft_engine_submit(e, &q.p, &id[i], NULL, NULL), WEFT_OK);
    }
    wait_all();
    /* Each step had a token of each for at most CHUNK tokens of the prompt. */
    for (int i = 0; i < 3; i++) assert_true(w[i].n_meanwhile >= LONG / CHUNK);
    weft_engine_stats s = stats_of(e);
    for (int i = 0; i < s.batch_rows.n; i++)
        if (s.batch_rows.bounds[i] > CHUNK + 4 && i > 0 && s.batch_rows.bounds[i - 1] >= CHUNK + 4) assert_int_equal(s.batch_rows.counts[i], 0);
    close_engine(&e);
    weft_model_close(&model);
}

/* ---- slots ---- */

static void a_slot_is_saved_and_comes_back(void **state)
{
    (void)state;
    char folder[] = "/tmp/weft-serve-XXXXXX", store[64];
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_error err = {0};
    ask q;
    answer a, again;
    int32_t n = 0, all[400], restored = 0;
    uint64_t bytes = 0, read = 0;
    simple(&q, 150, 30);
    weft_engine *e = open_engine(model, &p);
    assert_int_equal(weft_engine_save(e, NULL, q.tokens, 150, "x", &n, &bytes, &err), WEFT_UNSUPPORTED);
    close_engine(&e);
    assert_non_null(mkdtemp(folder));
    snprintf(store, sizeof store, "%s/store", folder);
    p.store_dir = store;
    p.isolate_tenants = 1;
    q.p.tenant = "me";
    e = open_engine(model, &p);
    run_alone(e, &q, &a, 1);
    memcpy(all, q.tokens, 150 * sizeof *all);
    memcpy(all + 150, a.token, (size_t)a.n * sizeof *all);
    assert_int_equal(weft_engine_save(e, "me", all, 150 + a.n, "../up", &n, &bytes, &err), WEFT_ARGUMENT);
    assert_int_equal(weft_engine_save(e, "you", all, 150 + a.n, "mine", &n, &bytes, &err), WEFT_NOT_FOUND);
    if (weft_engine_save(e, "me", all, 150 + a.n, "mine", &n, &bytes, &err)) fail_msg("%s", err.message);
    assert_true(n >= 150 && bytes > 0);
    close_engine(&e);
    snprintf(store, sizeof store, "rm -f %s/store/p-*", folder); /* only the slot is left */
    assert_int_equal(system(store), 0);
    snprintf(store, sizeof store, "%s/store", folder);
    e = open_engine(model, &p);
    assert_int_equal(weft_engine_restore(e, "nobody", &restored, &read, &err), WEFT_NOT_FOUND);
    if (weft_engine_restore(e, "mine", &restored, &read, &err)) fail_msg("%s", err.message);
    assert_int_equal(restored, n);
    assert_true(read == bytes);
    run_alone(e, &q, &again, 1);
    compare("after a slot was restored", &q, &a, &again, 1);
    assert_int_equal(again.n_cached, 149);
    close_engine(&e);
    remove_folder(folder);
    weft_model_close(&model);
}

/* ---- memory ---- */

static atomic_size_t n_asked, refused_at;

static int atomic_gate(void *arg, size_t n_bytes)
{
    (void)arg, (void)n_bytes;
    return atomic_fetch_add(&n_asked, 1) != atomic_load(&refused_at);
}

/* Three requests; 1 when nothing failed. */
static int serve_three(weft_model *model)
{
    weft_engine_params p = small();
    weft_engine *e = NULL;
    weft_error err = {0};
    ask q[3];
    answer a[3];
    int ok = 1;
    p.n_slots = 2;
    p.n_kv_tokens = 512;
    p.max_queue = 4;
    p.isolate_tenants = 1;
    if (weft_engine_new(model, &p, &e, &err)) {
        assert_int_equal(err.status, WEFT_NO_MEMORY);
        return 0;
    }
    for (int i = 0; i < 3; i++) {
        simple(&q[i], 80, i == 2 ? 0 : 5);
        q[i].p.embedding = i == 2;
        weft_status st = submit(e, &q[i], &a[i], &err);
        if (st) assert_int_equal(st, WEFT_NO_MEMORY);
        ok &= !st;
    }
    wait_all();
    for (int i = 0; i < 3; i++) {
        if (!a[i].accepted) continue;
        assert_int_equal(a[i].n_finished, 1);
        if (a[i].status) assert_int_equal(a[i].status, WEFT_NO_MEMORY);
        ok &= !a[i].status;
    }
    weft_engine_free(&e);
    return ok;
}

static void every_refused_allocation_is_an_error_and_no_leak(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    assert_true(serve_three(model));
    size_t n_refused = 0, n_survived = 0;
    for (size_t i = 0;; i++) {
        size_t before = weft__alloc_live();
        atomic_store(&n_asked, 0);
        atomic_store(&refused_at, i);
        weft__alloc_set_gate(atomic_gate, NULL);
        int ok = serve_three(model);
        weft__alloc_set_gate(NULL, NULL);
        assert_int_equal(weft__alloc_live(), before);
        if (atomic_load(&n_asked) <= i) {
            assert_true(ok);
            break;
        }
        n_refused++;
        n_survived += (size_t)ok;
    }
    print_message("%zu allocations were refused in turn; the engine did without %zu of them\n", n_refused, n_survived);
    assert_true(n_refused > 60);
    weft_model_close(&model);
}

/* The steps of the second half of an answer allocate nothing. */
typedef struct counter {
    answer a;
    size_t at_40, at_100;
} counter;

static int count_allocations(void *arg, const weft_event *e)
{
    counter *c = arg;
    on_event(&c->a, e);
    if (e->kind == WEFT_EVENT_TOKEN && c->a.n == 40) c->at_40 = atomic_load(&n_asked);
    if (e->kind == WEFT_EVENT_TOKEN && c->a.n == 100) c->at_100 = atomic_load(&n_asked);
    return 0;
}

static void decoding_allocates_nothing(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    counter c = {.a = {.hall = &the_hall}};
    ask q;
    answer unused;
    simple(&q, 60, 120);
    q.p.ignore_end = 1;
    q.p.n_top = 5;
    q.p.sampler.repeat_penalty = 1.1f;
    q.p.event = count_allocations;
    q.p.arg = &c;
    atomic_store(&n_asked, 0);
    atomic_store(&refused_at, SIZE_MAX);
    weft__alloc_set_gate(atomic_gate, NULL);
    assert_int_equal(submit(e, &q, &unused, NULL), WEFT_OK);
    wait_all();
    weft__alloc_set_gate(NULL, NULL);
    assert_true(c.at_40 > 0);
    assert_int_equal(c.at_100, c.at_40);
    close_engine(&e);
    weft_model_close(&model);
}

static void a_trace_names_steps_and_requests(void **state)
{
    (void)state;
    char path[] = "/tmp/weft-trace-XXXXXX", text[4096];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    p.trace = path;
    weft_engine *e = open_engine(model, &p);
    ask q[2];
    answer a[2];
    for (int i = 0; i < 2; i++) simple(&q[i], 20, 3);
    run_alone(e, q, a, 2);
    close_engine(&e);
    FILE *f = fopen(path, "r");
    int n_steps = 0, n_ops = 0, n_requests = 0;
    assert_non_null(f);
    while (fgets(text, sizeof text, f)) {
        n_steps += strstr(text, "\"cat\": \"step\"") != NULL;
        n_ops += strstr(text, "\"cat\": \"op\"") != NULL;
        n_requests += strstr(text, "\"cat\": \"request\"") != NULL;
    }
    fclose(f);
    unlink(path);
    assert_true(n_steps >= 4 && n_ops > 4 * n_steps && n_requests >= 1);
    weft_model_close(&model);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_answer_always),
        cmocka_unit_test(answers_are_those_of_a_session),
        cmocka_unit_test(log_probabilities_are_the_models),
        cmocka_unit_test(an_embedding_has_length_one_and_depends_on_its_text),
        cmocka_unit_test(a_request_ends_with_the_step_that_it_is_cancelled_in),
        cmocka_unit_test(a_crowd_of_threads_loses_nothing),
        cmocka_unit_test(a_late_request_fails_and_says_so),
        cmocka_unit_test(what_cannot_work_is_refused_by_name),
        cmocka_unit_test(a_full_queue_says_when_to_come_back),
        cmocka_unit_test(draining_refuses_what_is_new_and_ends_what_is_old),
        cmocka_unit_test(freeing_ends_what_runs),
        cmocka_unit_test(a_long_prompt_delays_others_by_a_chunk_at_most),
        cmocka_unit_test(a_slot_is_saved_and_comes_back),
        cmocka_unit_test(every_refused_allocation_is_an_error_and_no_leak),
        cmocka_unit_test(decoding_allocates_nothing),
        cmocka_unit_test(a_trace_names_steps_and_requests),
    };
    const struct CMUnitTest material[] = {
        cmocka_unit_test(same_answer_of_stories),
        cmocka_unit_test(same_answer_with_windows),
    };
    return claims_status(claims_material(argc, argv) ? cmocka_run_group_tests(material, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL));
}
