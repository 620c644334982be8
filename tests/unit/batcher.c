// SPDX-License-Identifier: Apache-2.0
/* batcher.c: what requests bring is what a session of the model brings: tokens, log-probabilities, embeddings; a long
 * prompt does not hold others up; a trace tells of it all. */
#include "unit/fixture.h"
#include "unit/serve_hall.h"

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

/* ---- what is written in the model's place ---- */

typedef struct interrupter {
    answer a;
    int32_t after; /* tokens; 0: at once */
    int times;     /* that it asks for it */
} interrupter;

static int insert_after(void *arg, const weft_event *e)
{
    interrupter *i = arg;
    const int is_now = e->kind == (i->after ? WEFT_EVENT_TOKEN : WEFT_EVENT_BEGAN) && e->n_generated >= i->after;
    on_event(&i->a, e);
    return is_now && i->times-- > 0 ? WEFT_EVENT_INSERT : 0;
}

/* The tokens stand where they were asked for, and the model goes on from them as from those of a prompt; once. */
static void what_is_inserted_is_part_of_the_answer(void **state)
{
    static const int32_t words[] = {11, 12, 13};
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    for (int32_t after = 0; after <= 6; after += 3) {
        ask q;
        answer rest;
        interrupter i = {.a = {.hall = &the_hall}, .after = after, .times = 1};
        simple(&q, 40, 20);
        q.p.sampler.temperature = 0;
        q.p.ignore_end = 1;
        q.p.insert = words;
        q.p.n_insert = 3;
        q.p.event = insert_after;
        q.p.arg = &i;
        run_alone(e, &q, &rest, 1);
        assert_int_equal(i.a.n, 20);
        assert_memory_equal(i.a.token + after, words, sizeof words);
        memcpy(q.tokens + 40, i.a.token, (size_t)(after + 3) * sizeof *q.tokens);
        q.p.n_tokens = 40 + after + 3;
        q.p.max_tokens = 20 - after - 3;
        q.p.event = NULL;
        q.p.arg = NULL;
        run_alone(e, &q, &rest, 1);
        assert_memory_equal(i.a.token + after + 3, rest.token, (size_t)rest.n * sizeof *rest.token);
        assert_int_equal(rest.n, q.p.max_tokens);
        i = (interrupter){.a = {.hall = &the_hall}, .after = after, .times = 2}; /* the second time ends it */
        q.p.n_tokens = 40;
        q.p.max_tokens = 20;
        q.p.event = insert_after;
        q.p.arg = &i;
        run_alone(e, &q, &rest, 1);
        if (after) assert_int_equal(i.a.n, after + 1);
        if (after) assert_int_equal(i.a.finish, WEFT_FINISH_STOP);
    }
    close_engine(&e);
    weft_model_close(&model);
}

static void what_is_inserted_is_checked(void **state)
{
    static const int32_t beyond[] = {512};
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    ask q;
    answer a;
    simple(&q, 10, 5);
    q.p.insert = beyond;
    q.p.n_insert = 1;
    assert_int_equal(submit(e, &q, &a, NULL), WEFT_ARGUMENT);
    q.p.n_insert = -1;
    assert_int_equal(submit(e, &q, &a, NULL), WEFT_ARGUMENT);
    q.p.n_insert = 1;
    q.p.insert = NULL;
    assert_int_equal(submit(e, &q, &a, NULL), WEFT_ARGUMENT);
    close_engine(&e);
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

/* The weights of this model's norms are 1, so all hidden states are as long: their mean has the direction of the sum of
 * what the last token of each beginning of the prompt gives. */
static void a_mean_is_made_of_what_each_token_gives(void **state)
{
    (void)state;
    enum { N = 40 };
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    p.chunk = 16; /* the last token comes in a chunk of its own, too */
    weft_engine *e = open_engine(model, &p);
    static vector last[N], mean[2];
    ask q;
    double sum[1024] = {0}, length = 0, apart = 0;
    for (int i = 0; i < N + 2; i++) {
        vector *v = i < N ? &last[i] : &mean[i - N];
        simple(&q, i < N ? i + 1 : N, 0);
        q.p.embedding = i < N ? WEFT_POOLING_LAST : i == N ? WEFT_POOLING_MEAN : WEFT_POOLING_MODEL;
        q.p.event = keep_vector;
        q.p.arg = v;
        v->a.hall = &the_hall;
        assert_int_equal(submit(e, &q, &v->a, NULL), WEFT_OK);
        wait_all();
        assert_true(v->a.n_embedding > 0);
    }
    const int d = mean[0].a.n_embedding;
    for (int k = 0; k < d; k++) {
        for (int i = 0; i < N; i++) sum[k] += (double)last[i].v[k];
        length += sum[k] * sum[k];
    }
    for (int k = 0; k < d; k++) {
        assert_float_equal(mean[0].v[k], sum[k] / sqrt(length), 1e-5);
        apart += fabs((double)mean[0].v[k] - (double)last[N - 1].v[k]);
    }
    assert_true(apart > 1e-2);
    assert_memory_equal(mean[0].v, mean[1].v, (size_t)d * sizeof(float)); /* a file that says nothing means it */
    close_engine(&e);
    weft_model_close(&model);
}

/* ---- one long prompt ---- */

typedef struct witness {
    answer a;
    atomic_int n, *reading, *submitted;
    int n_meanwhile;
} witness;

static int count_tokens(void *arg, const weft_event *e)
{
    witness *w = arg;
    if (e->kind == WEFT_EVENT_FINISHED) return on_event(&w->a, e);
    if (e->kind != WEFT_EVENT_TOKEN) return 0;
    int n = atomic_fetch_add(&w->n, 1),
        wanted = n >= 3 ? 4 : 3; /* the three begin together; nobody ends before the long one is there */
    while (atomic_load(w->submitted) < wanted) usleep(200);
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
    enum { LONG = CLAIMS_OF_SPEED ? 8000 : CLAIMS_REPEATED(2000, 2000, 448), CHUNK = 64 };
    weft_model *model = tiny(LONG + 200);
    weft_engine_params p = small();
    p.n_ctx = LONG + 200;
    p.n_kv_tokens = LONG + 4000;
    p.chunk = CHUNK;
    weft_engine *e = open_engine(model, &p);
    static int32_t tokens[8000];
    atomic_int reading = 0, submitted = 0;
    static witness w[4];
    uint64_t id[4];
    for (int i = 0; i < 4; i++) {
        w[i] = (witness){.a = {.hall = &the_hall}, .reading = &reading, .submitted = &submitted};
        ask q;
        simple(&q, 20, 400);
        q.p.tokens = q.tokens;
        q.p.ignore_end = 1;
        q.p.event = i < 3 ? count_tokens : note_reading;
        q.p.arg = &w[i];
        if (i == 3) {
            while (atomic_load(&w[0].n) < 3) usleep(200);
            for (int k = 0; k < LONG; k++) tokens[k] = 3 + k % 500;
            q.p.tokens = tokens;
            q.p.n_tokens = LONG;
            q.p.max_tokens = 1;
        }
        pthread_mutex_lock(&the_hall.lock);
        the_hall.n_left++;
        pthread_mutex_unlock(&the_hall.lock);
        assert_int_equal(weft_engine_submit(e, &q.p, &id[i], NULL, NULL), WEFT_OK);
        atomic_fetch_add(&submitted, 1);
    }
    wait_all();
    /* Each step had a token of each for at most CHUNK tokens of the prompt. */
    for (int i = 0; i < 3; i++) assert_true(w[i].n_meanwhile >= LONG / CHUNK);
    weft_engine_stats s = stats_of(e);
    for (int i = 0; i < s.batch_rows.n; i++)
        if (s.batch_rows.bounds[i] > CHUNK + 4 && i > 0 && s.batch_rows.bounds[i - 1] >= CHUNK + 4)
            assert_int_equal(s.batch_rows.counts[i], 0);
    close_engine(&e);
    weft_model_close(&model);
}

/* ---- counters that move with every step ---- */

typedef struct watched {
    answer a;
    atomic_int n_told, n_seen; /* READ and TOKEN events; those after which the counters were looked at */
    int32_t read[8];
    int n_read;
} watched;

/* Each step waits in its events until somebody has looked. */
static int wait_for_a_look(void *arg, const weft_event *e)
{
    watched *w = arg;
    if (e->kind == WEFT_EVENT_READ && w->n_read < 8) w->read[w->n_read++] = e->n_read;
    if (e->kind != WEFT_EVENT_READ && e->kind != WEFT_EVENT_TOKEN) return on_event(&w->a, e);
    int n = atomic_fetch_add(&w->n_told, 1);
    while (atomic_load(&w->n_seen) <= n) usleep(100);
    return 0;
}

static weft_engine_stats look(const weft_engine *e, watched *w, int n)
{
    while (atomic_load(&w->n_told) < n) usleep(100);
    weft_engine_stats s = stats_of(e);
    atomic_store(&w->n_seen, n);
    return s;
}

static void counters_move_with_every_step(void **state)
{
    (void)state;
    enum { STEP = 32, PROMPT = 100, N_READS = 4, N_TOKENS = 6 };
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    p.step_rows = STEP;
    weft_engine *e = open_engine(model, &p);
    static watched w;
    ask q;
    uint64_t id;
    w = (watched){.a = {.hall = &the_hall, .n_began = 1}};
    const weft_engine_stats before = stats_of(e);
    assert_true(before.memory.weights.bytes > 0 && before.memory.weights.bytes == before.memory.weights.peak);
    assert_true(before.memory.scratch.bytes > 0);
    assert_int_equal(before.memory.pages.bytes, 0);
    simple(&q, PROMPT, N_TOKENS);
    q.p.tokens = q.tokens;
    q.p.ignore_end = q.p.read_events = 1;
    q.p.event = wait_for_a_look;
    q.p.arg = &w;
    pthread_mutex_lock(&the_hall.lock);
    the_hall.n_left++;
    pthread_mutex_unlock(&the_hall.lock);
    assert_int_equal(weft_engine_submit(e, &q.p, &id, NULL, NULL), WEFT_OK);
    weft_memory last = before.memory;
    for (int n = 1; n <= N_READS + N_TOKENS; n++) { /* a step's events come before it counts */
        weft_engine_stats s = look(e, &w, n);
        int steps = n <= N_READS ? n - 1 : n - 2; /* the last of the prompt gives the first token, too */
        assert_int_equal(s.prompt_tokens, steps > 0 ? PROMPT : 0);
        assert_int_equal(s.n_generated, n > N_READS + 1 ? n - N_READS - 1 : 0);
        assert_int_equal(s.n_finished, 0);
        assert_true(s.memory.pages.bytes >= last.pages.bytes && s.memory.pages.peak >= s.memory.pages.bytes);
        if (steps > 0) assert_true(s.memory.pages.bytes > 0 && s.memory.scratch.bytes > before.memory.scratch.bytes);
        last = s.memory;
    }
    wait_all();
    static const int32_t reads[N_READS] = {STEP, 2 * STEP, 3 * STEP, PROMPT};
    assert_int_equal(w.n_read, N_READS);
    assert_memory_equal(w.read, reads, sizeof reads);
    weft_engine_drain(e, 60000);
    const weft_engine_stats after = stats_of(e);
    assert_int_equal(after.n_generated, N_TOKENS);
    assert_true(after.memory.pages.bytes <= last.pages.bytes && after.memory.pages.peak >= last.pages.peak);
    assert_int_equal(after.memory.scratch.bytes, before.memory.scratch.bytes);
    assert_true(after.memory.scratch.peak > after.memory.scratch.bytes);
    close_engine(&e);
    weft_model_close(&model);
}

/* Sessions, engines and models alike: beyond what it was trained for, or stretched to, there is an error with the
 * numbers. */
static void contexts_end_where_the_model_does(void **state)
{
    (void)state;
    for (int stretched = 0; stretched < 2; stretched++) {
        weft_model *model = tiny(stretched ? 4096 : 0);
        weft_model_info info = {.size = sizeof info};
        assert_int_equal(weft_model_describe(model, &info, NULL), WEFT_OK);
        assert_int_equal(info.n_ctx_train, 2048);
        assert_int_equal(info.n_ctx_max,
                         stretched ? 3 * 2048 : 2048); /* serve_hall.h stretches a little more than is asked for */
        weft_session_params sp;
        weft_session *s = NULL;
        weft_session_params_default(&sp);
        sp.n_ctx = info.n_ctx_max;
        assert_int_equal(weft_session_new(model, &sp, &s, NULL), WEFT_OK);
        weft_session_free(&s);
        weft_engine_params p = small();
        weft_engine *e = NULL;
        weft_error err = {0}, other = {0};
        char numbers[64];
        sp.n_ctx = p.n_ctx = info.n_ctx_max + 1;
        snprintf(numbers, sizeof numbers, "a context of %d tokens", sp.n_ctx);
        assert_int_equal(weft_session_new(model, &sp, &s, &err), WEFT_LIMIT);
        assert_null(s);
        assert_non_null(strstr(err.message, numbers));
        snprintf(numbers, sizeof numbers, " %d", info.n_ctx_max);
        assert_non_null(strstr(err.message, numbers));
        assert_int_equal(weft_engine_new(model, &p, &e, &other), WEFT_LIMIT);
        assert_string_equal(other.message, err.message);
        weft_model_close(&model);
    }
    weft_model *model = NULL;
    weft_error err = {0};
    weft_model_params mp;
    weft_model_params_default(&mp);
    mp.n_threads = 1;
    mp.n_ctx = 2049;
    assert_int_equal(weft_model_synthetic(CLAIMS_MODEL, WEFT_Q4_0, &mp, &model, &err), WEFT_LIMIT);
    assert_non_null(strstr(err.message, "2049"));
    const struct {
        weft_rope_params rope;
        const char *name;
    } wrong[] = {{{.scaling = 4}, "scaling 4"},
                 {{.scaling = -1}, "scaling -1"},
                 {{.factor = -1}, "factor"},
                 {{.factor = NAN}, "factor"},
                 {{.freq_base = INFINITY}, "freq_base"},
                 {{.orig_ctx = -1}, "orig_ctx"},
                 {{.beta_fast = -1}, "beta_fast"},
                 {{.beta_slow = NAN}, "beta_slow"},
                 {{.attn_factor = -2}, "attn_factor"},
                 {{.ext_factor = INFINITY}, "ext_factor"}};
    mp.n_ctx = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mp.rope = wrong[i].rope;
        assert_int_equal(weft_model_synthetic(CLAIMS_MODEL, WEFT_Q4_0, &mp, &model, &err), WEFT_ARGUMENT);
        assert_non_null(strstr(err.message, wrong[i].name));
    }
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_those_of_a_session),
        cmocka_unit_test(what_is_inserted_is_part_of_the_answer),
        cmocka_unit_test(what_is_inserted_is_checked),
        cmocka_unit_test(log_probabilities_are_the_models),
        cmocka_unit_test(an_embedding_has_length_one_and_depends_on_its_text),
        cmocka_unit_test(a_mean_is_made_of_what_each_token_gives),
        cmocka_unit_test(a_long_prompt_delays_others_by_a_chunk_at_most),
        cmocka_unit_test(counters_move_with_every_step),
        cmocka_unit_test(contexts_end_where_the_model_does),
        cmocka_unit_test(a_trace_names_steps_and_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
