// SPDX-License-Identifier: Apache-2.0
/* adapters.c: claims about adapters in whole models on the tier that WEFT_CPU names: the goldens; that a request's
 * answer is the same bits alone and beside others with other adapters; and that a prefix computed under one adapter is
 * never used under another, another scale or version. Models and adapters but for the goldens' are random and made
 * here. */
#include "unit/fixture.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/random.h"
#include "claims.h"
#include "model/random_adapters.h"
#include "model/shared.h"
#include "model/tier.h"
#include "weft/weft.h"

/* A prompt is some pages of 64 tokens and a piece of one; the pages before token N_SHARED are those of another prompt,
 * too. */
enum { N_PROMPT = CLAIMS_REPEATED(150, 150, 76), N_SHARED = CLAIMS_REPEATED(100, 100, 66), N_ANSWER = 4, N_LONG = 24 };

static int n_answer = N_ANSWER; /* tokens that are asked for */

static char folder[64];
static weft_model *model;

static const char *place(const char *format, int i)
{
    static char paths[8][128];
    static int next;
    char name[32], *p = paths[next++ % 8];
    snprintf(name, sizeof name, format, i);
    snprintf(p, sizeof paths[0], "%s/%s", folder, name);
    return p;
}

static int open_world(void **state)
{
    weft_model_params params;
    const char *path = *state ? shared_path("models/%s.gguf", *state) : NULL;
    snprintf(folder, sizeof folder, "/tmp/weft-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    weft_model_params_default(&params);
    params.n_threads = 2;
    params.n_ctx = 256;
    if (*state && !path) return 0;
    if (path ? weft_model_open(path, &params, &model, NULL)
             : weft_model_synthetic(CLAIMS_MODEL, WEFT_Q4_0, &params, &model, NULL))
        return -1;
    if (weft_model_describe(model, &info, NULL)) return -1;
    for (int i = 0; i < N_CONTENTS; i++) write_adapter(place("c%d.gguf", i), i);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    weft_model_close(&model);
    for (int i = 0; i < N_CONTENTS; i++) unlink(place("c%d.gguf", i));
    for (int i = 0; i < N_CONTENTS; i++) unlink(place("n%d.gguf", i));
    return rmdir(folder);
}

/* ---- requests ---- */

/* Up to two adapters. */
typedef struct stack {
    int n;
    int which[2]; /* content, or name */
    float scale[2];
} stack;

typedef struct answer {
    int32_t token[N_LONG];
    float logprob[N_LONG];
    int n, n_cached, finished;
    weft_status status;
    char message[200];
} answer;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t told = PTHREAD_COND_INITIALIZER;

enum { PAUSE_US = CLAIMS_REPEATED(0, 0, 3000) }; /* after a token: of few requests enough are to run side by side */

static int held; /* engines tell of no token; with the lock */

static void hold(int on)
{
    pthread_mutex_lock(&lock);
    held = on;
    pthread_cond_broadcast(&told);
    pthread_mutex_unlock(&lock);
}

static void wait_while_held(void)
{
    pthread_mutex_lock(&lock);
    while (held) pthread_cond_wait(&told, &lock);
    pthread_mutex_unlock(&lock);
}

static int on_event(void *arg, const weft_event *e)
{
    answer *a = arg;
    if (e->kind == WEFT_EVENT_TOKEN) wait_while_held();
    if (PAUSE_US && e->kind == WEFT_EVENT_TOKEN) usleep(PAUSE_US);
    if (e->kind == WEFT_EVENT_TOKEN && a->n < N_LONG) {
        a->token[a->n] = e->token;
        a->logprob[a->n++] = e->logprob;
    }
    if (e->kind != WEFT_EVENT_FINISHED) return 0;
    pthread_mutex_lock(&lock);
    a->n_cached = e->n_cached;
    a->status = e->status;
    snprintf(a->message, sizeof a->message, "%s", e->message ? e->message : "");
    a->finished = 1;
    pthread_cond_broadcast(&told);
    pthread_mutex_unlock(&lock);
    return 0;
}

/* Prompt 0 and 1 share their first N_SHARED tokens; 2 is another. */
static int32_t prompt_token(int prompt, int i)
{
    return 3 + (i * 7 + (prompt == 2 || i >= N_SHARED ? prompt * 31 : 0) + i / 9) % 200;
}

/* Fills in the prompt and what all requests have. */
static weft_status submit_params(weft_engine *e, int prompt, weft_request_params *p, answer *a, weft_error *err)
{
    int32_t tokens[N_PROMPT];
    uint64_t id;
    *a = (answer){0};
    for (int i = 0; i < N_PROMPT; i++) tokens[i] = prompt_token(prompt, i);
    p->tokens = tokens;
    p->n_tokens = N_PROMPT;
    p->max_tokens = n_answer;
    p->ignore_end = 1;
    p->n_top = 0;
    p->sampler.temperature = 0;
    p->event = on_event;
    p->arg = a;
    return weft_engine_submit(e, p, &id, NULL, err);
}

static weft_status submit(weft_engine *e, int prompt, const stack *s, int no_cache, const char *const *names, answer *a,
                          weft_error *err)
{
    weft_request_adapter adapters[2];
    weft_request_params p;
    weft_request_params_default(&p);
    for (int i = 0; i < s->n; i++) adapters[i] = (weft_request_adapter){names[s->which[i]], s->scale[i], 0};
    p.no_cache = no_cache;
    p.adapters = adapters;
    p.n_adapters = s->n;
    return submit_params(e, prompt, &p, a, err);
}

static weft_status submit_leased(weft_engine *e, int prompt, weft_engine_lease *lease, answer *a, weft_error *err)
{
    weft_request_params p;
    weft_request_params_default(&p);
    p.lease = lease;
    return submit_params(e, prompt, &p, a, err);
}

static void wait_for(answer *a)
{
    pthread_mutex_lock(&lock);
    while (!a->finished) pthread_cond_wait(&told, &lock);
    pthread_mutex_unlock(&lock);
    if (a->status || a->n != n_answer) fail_msg("the request failed: %s", a->message);
}

static void ask(weft_engine *e, int prompt, const stack *s, int no_cache, const char *const *names, answer *a)
{
    weft_error err = {0};
    if (submit(e, prompt, s, no_cache, names, a, &err)) fail_msg("%s", err.message);
    wait_for(a);
}

static int same(const answer *a, const answer *b)
{
    return !memcmp(a->token, b->token, sizeof a->token) && !memcmp(a->logprob, b->logprob, sizeof a->logprob);
}

static weft_engine *new_engine(uint64_t adapter_bytes)
{
    weft_engine_params p;
    weft_engine *e;
    weft_error err = {0};
    weft_engine_params_default(&p);
    p.n_slots = 16;
    p.n_ctx = 256;
    p.step_rows = 256;
    p.adapter_bytes = adapter_bytes;
    if (weft_engine_new(model, &p, &e, &err)) fail_msg("%s", err.message);
    return e;
}

static const char *const CONTENTS[N_CONTENTS] = {"c0", "c1", "c2", "c3", "c4", "c5"};

static void add_contents(weft_engine *e)
{
    weft_error err = {0};
    for (int i = 0; i < N_CONTENTS; i++)
        if (weft_engine_adapter_add(e, CONTENTS[i], place("c%d.gguf", i), 1, WEFT_ADAPTER_LAZY, &err))
            fail_msg("%s", err.message);
}

/* ---- the same answer ---- */

static void neighbours_change_no_bit(void **state)
{
    (void)state;
    const stack stacks[] = {{0, {0}, {0}},
                            {1, {0}, {1}},
                            {1, {1}, {1}},
                            {1, {2}, {-0.5f}},
                            {2, {3, 4}, {1, 0.25f}},
                            {1, {5}, {1}},
                            {2, {0, 5}, {0.5f, 0.5f}}};
    enum { N = CLAIMS_REPEATED(16, 16, 8), N_STACKS = sizeof stacks / sizeof *stacks };
    answer alone[N], together[N];
    weft_engine *e = new_engine(0);
    n_answer = CLAIMS_REPEATED(N_LONG, N_ANSWER, N_ANSWER);
    add_contents(e);
    for (int i = 0; i < N; i++) ask(e, i % 3, &stacks[i % N_STACKS], 1, CONTENTS, &alone[i]);
    for (int i = 0; i < 3; i++) assert_false(same(&alone[i], &alone[i + 3])); /* of one prompt: it shows */
    for (int round = 0; round < CLAIMS_REPEATED(3, 2, 1); round++) {
        weft_error err = {0};
        weft_engine_stats before = {.size = sizeof before}, after = before;
        weft_engine_get_stats(e, &before);
        weft_status st = WEFT_OK;
        hold(1); /* until all of them are there, however long this thread has no core */
        for (int i = 0; i < N && !st; i++)
            st = submit(e, i % 3, &stacks[i % N_STACKS], round > 0, CONTENTS, &together[i], &err);
        hold(0);
        if (st) fail_msg("%s", err.message);
        for (int i = 0; i < N; i++) {
            wait_for(&together[i]);
            if (!same(&alone[i], &together[i]))
                fail_msg("request %d has another answer beside the others than alone", i);
        }
        weft_engine_get_stats(e, &after);
        uint64_t rows = after.n_rows_decode - before.n_rows_decode, steps = after.n_steps - before.n_steps;
        if (rows < CLAIMS_REPEATED(6, 2, 2) * steps) /* prompts are read first: in the end all 16 are there */
            fail_msg("%llu rows in %llu steps: they had few neighbours", (unsigned long long)rows,
                     (unsigned long long)steps);
    }
    n_answer = N_ANSWER;
    weft_engine_free(&e);
}

/* ---- prefixes ---- */

enum { N_FLIGHTS = 6 /* at most */ };

/* What a name stands for now, the answers by content and scale, and the requests that run. */
typedef struct world {
    weft_engine *engine, *plain; /* plain: nothing is cached there */
    int content[4];              /* of name i; -1: not loaded */
    struct {
        stack s;
        int prompt;
        answer a;
    } known[512];
    int n_known, n_hits, n_asked, n_flights;
    struct flight {
        answer a;
        stack of; /* contents, as they were when it was asked for */
        int prompt, busy;
    } flights[N_FLIGHTS];
} world;

static const char *const NAMES[4] = {"n0", "n1", "n2", "n3"};

static void load(world *w, int name, int content)
{
    weft_error err = {0};
    write_adapter(place("n%d.gguf", name), content);
    if (weft_engine_adapter_add(w->engine, NAMES[name], place("n%d.gguf", name), 1, WEFT_ADAPTER_REPLACE, &err))
        fail_msg("%s", err.message);
    w->content[name] = content;
}

/* The answer of those contents, from an engine that caches nothing of it. */
static const answer *expected(world *w, int prompt, const stack *s)
{
    for (int i = 0; i < w->n_known; i++)
        if (w->known[i].prompt == prompt && !memcmp(&w->known[i].s, s, sizeof *s)) return &w->known[i].a;
    assert_true(w->n_known < 512);
    ask(w->plain, prompt, s, 1, CONTENTS, &w->known[w->n_known].a);
    w->known[w->n_known].s = *s;
    w->known[w->n_known].prompt = prompt;
    return &w->known[w->n_known++].a;
}

static void land(world *w, struct flight *f)
{
    if (!f->busy) return;
    wait_for(&f->a);
    f->busy = 0;
    w->n_hits += f->a.n_cached > 0;
    if (!same(&f->a, expected(w, f->prompt, &f->of)))
        fail_msg("prompt %d with %d adapters, %d tokens cached: not the answer of these contents and scales", f->prompt,
                 f->of.n, f->a.n_cached);
}

/* In a random place: the request that had it ends first, the others run on. */
static void request(world *w, weft__rng *rng)
{
    static const float scales[] = {1, 1, 0.5f, -1};
    struct flight *f = &w->flights[weft__rng_below(rng, (uint64_t)w->n_flights)];
    int missing = -1;
    stack s = {.n = (int)weft__rng_below(rng, 3)};
    weft_error err = {0};
    land(w, f);
    f->prompt = (int)weft__rng_below(rng, 3);
    for (int i = 0; i < s.n; i++) {
        s.which[i] = (int)weft__rng_below(rng, 4);
        s.scale[i] = scales[weft__rng_below(rng, 4)];
        if (w->content[s.which[i]] < 0) missing = s.which[i];
    }
    f->of = s;
    for (int i = 0; i < s.n; i++) f->of.which[i] = w->content[s.which[i]];
    weft_status st = submit(w->engine, f->prompt, &s, 0, NAMES, &f->a, &err);
    if (missing >= 0) {
        assert_int_equal(st, WEFT_NOT_FOUND);
        assert_non_null(strstr(err.message, "there is no adapter 'n"));
        return;
    }
    if (st) fail_msg("%s", err.message);
    f->busy = 1;
    w->n_asked++;
}

/* One sequence of requests, loads and unloads, of which the last two happen while requests run. */
static void act_at_random(world *w, uint64_t seed, int n)
{
    weft__rng rng;
    weft__rng_seed(&rng, seed);
    for (int i = 0; i < n; i++) {
        int name = (int)weft__rng_below(&rng, 4);
        uint64_t act = weft__rng_below(&rng, 8);
        if (act == 0) {
            assert_int_equal(weft_engine_adapter_remove(w->engine, NAMES[name], NULL),
                             w->content[name] < 0 ? WEFT_NOT_FOUND : WEFT_OK);
            w->content[name] = -1;
        } else if (act < 3) load(w, name, (int)weft__rng_below(&rng, 3));
        else request(w, &rng);
    }
    for (int i = 0; i < N_FLIGHTS; i++) land(w, &w->flights[i]);
}

/* Sequences on two engines of one model; `adapter_bytes` hold the adapters of so many requests at once. */
static void check_prefixes(int n, int n_flights, uint64_t adapter_bytes)
{
    static world w;
    w = (world){.engine = new_engine(adapter_bytes),
                .plain = new_engine(0),
                .content = {-1, -1, -1, -1},
                .n_flights = n_flights};
    add_contents(w.plain);
    for (int i = 0; i < n; i++) act_at_random(&w, (uint64_t)i, 16);
    weft_engine_stats stats = {.size = sizeof stats};
    weft_engine_get_stats(w.engine, &stats);
    printf("           %d sequences, %d requests, %d found a prefix, %llu rows in %llu steps, %llu adapters read, %llu "
           "evicted\n",
           n, w.n_asked, w.n_hits, (unsigned long long)stats.n_rows_decode, (unsigned long long)stats.n_steps,
           (unsigned long long)stats.adapter_loads, (unsigned long long)stats.adapter_evictions);
    assert_true(n < 100 || w.n_hits > w.n_asked / 10);
    assert_true(n_flights == 1 ||
                stats.n_steps < (uint64_t)w.n_asked * 4); /* some ran side by side: alone, each takes four */
    weft_engine_free(&w.engine);
    weft_engine_free(&w.plain);
}

static void prefixes_are_of_one_content(void **state)
{
    (void)state;
    check_prefixes(CLAIMS_REPEATED(100, 10, 2), 1, 500000);
    check_prefixes(CLAIMS_REPEATED(150, 10, 6), 6, 4000000);
}

/* Requests that run while their adapter is replaced and removed end with what they began with. */
static void a_request_keeps_its_version(void **state)
{
    (void)state;
    world *w = calloc(1, sizeof *w);
    answer running[8], after;
    const stack s = {1, {0}, {1}};
    weft_error err = {0};
    assert_non_null(w);
    w->engine = new_engine(0);
    w->plain = new_engine(0);
    add_contents(w->plain);
    for (int round = 0; round < CLAIMS_REPEATED(6, 3, 1); round++) {
        int first = round % N_CONTENTS, second = (round + 1) % N_CONTENTS;
        const stack of_first = {1, {first}, {1}}, of_second = {1, {second}, {1}};
        load(w, 0, first);
        for (int i = 0; i < 8; i++)
            if (submit(w->engine, i % 3, &s, i % 2, NAMES, &running[i], &err)) fail_msg("%s", err.message);
        load(w, 0, second);
        ask(w->engine, 0, &s, 0, NAMES, &after);
        assert_int_equal(weft_engine_adapter_remove(w->engine, "n0", NULL), WEFT_OK);
        for (int i = 0; i < 8; i++) {
            wait_for(&running[i]);
            if (!same(&running[i], expected(w, i % 3, &of_first)))
                fail_msg("request %d did not keep the version that it began with", i);
        }
        assert_true(same(&after, expected(w, 0, &of_second)));
    }
    weft_engine_adapter listed;
    assert_int_equal(weft_engine_adapters(w->engine, 0, &listed, 1), 0);
    weft_engine_stats stats = {.size = sizeof stats};
    wait_until((weft_engine_get_stats(w->engine, &stats),
                !stats.n_adapters_ready)); /* the last record may still be given back */
    assert_true(stats.n_adapters_ready == 0 && stats.adapter_bytes == 0);
    weft_engine_free(&w->engine);
    weft_engine_free(&w->plain);
    free(w);
}

/* A lease is what its names stood for when it was taken: name and content may go, its requests and their prefixes
 * stay. */
static void a_lease_keeps_what_was_chosen(void **state)
{
    (void)state;
    world *w = calloc(1, sizeof *w);
    const stack of_first = {1, {0}, {1}}, of_second = {1, {1}, {1}}, s = {1, {0}, {1}};
    weft_engine_adapter listed = {.size = sizeof listed};
    weft_engine_lease *lease = NULL, *none = NULL;
    answer first, again, other;
    weft_error err = {0};
    assert_non_null(w);
    w->engine = new_engine(0);
    w->plain = new_engine(0);
    add_contents(w->plain);
    load(w, 0, 0);
    assert_int_equal(weft_engine_adapter_find(w->engine, "n0", &listed, &err), WEFT_OK);
    const weft_request_adapter by_number = {NULL, 1, listed.index}, nothing = {"n0", 0, 0};
    if (weft_engine_lease_new(w->engine, &by_number, 1, &lease, &err)) fail_msg("%s", err.message);
    assert_int_equal(weft_engine_adapter_remove(w->engine, "n0", NULL), WEFT_OK);
    load(w, 0, 1);
    ask(w->engine, 0, &s, 0, NAMES, &other);
    if (submit_leased(w->engine, 0, lease, &first, &err)) fail_msg("%s", err.message);
    wait_for(&first);
    assert_int_equal(first.n_cached, 0); /* the name's new content left its prefix, not this one's */
    if (submit_leased(w->engine, 1, lease, &again, &err)) fail_msg("%s", err.message);
    weft_engine_lease_free(w->engine, &lease);
    wait_for(&again);
    assert_true(again.n_cached > 0);
    assert_true(same(&first, expected(w, 0, &of_first)) && same(&again, expected(w, 1, &of_first)) &&
                same(&other, expected(w, 0, &of_second)));
    assert_int_equal(weft_engine_lease_new(w->engine, &by_number, 1, &lease, &err), WEFT_NOT_FOUND);
    assert_null(lease);
    assert_int_equal(weft_engine_lease_new(w->engine, &nothing, 1, &none, &err), WEFT_OK);
    assert_null(none);
    weft_engine_free(&w->engine);
    weft_engine_free(&w->plain);
    free(w);
}

static void requests_are_refused_by_name(void **state)
{
    (void)state;
    weft_engine *e = new_engine(0);
    weft_error err = {0};
    answer a;
    stack s = {1, {0}, {1}};
    assert_int_equal(submit(e, 0, &s, 0, CONTENTS, &a, &err), WEFT_NOT_FOUND);
    assert_int_equal(weft_engine_adapter_add(e, "../x", place("c%d.gguf", 0), 1, 0, &err), WEFT_ARGUMENT);
    assert_int_equal(weft_engine_adapter_add(e, "c0", place("c%d.gguf", 99), 1, 0, &err), WEFT_NOT_FOUND);
    assert_int_equal(weft_engine_adapter_add(e, "c0", place("c%d.gguf", 99), 1, WEFT_ADAPTER_LAZY, &err), WEFT_OK);
    assert_int_equal(submit(e, 0, &s, 0, CONTENTS, &a, &err), WEFT_NOT_FOUND);
    assert_int_equal(weft_engine_adapter_add(e, "c0", place("c%d.gguf", 0), 1, WEFT_ADAPTER_REPLACE, &err), WEFT_OK);
    s.scale[0] = INFINITY;
    assert_int_equal(submit(e, 0, &s, 0, CONTENTS, &a, &err), WEFT_ARGUMENT);
    s.scale[0] = NAN; /* the name's own */
    ask(e, 0, &s, 0, CONTENTS, &a);
    weft_engine_free(&e);
}

/* ---- the goldens ---- */

static void compare_golden(const char *name)
{
    struct golden g;
    weft_model *m = NULL;
    weft_session *session = NULL;
    weft_adapter_file *adapter = NULL;
    weft_model_params params;
    weft_session_params sp;
    weft_error err = {0};
    const char *base = shared_path("models/%s.gguf", "tiny-llama.f16"), *path = shared_path("models/%s.gguf", name);
    double error = 0, power = 0, bound = tier_is_exact() ? 1e-8 : 1e-3;
    if (!base || !path || !golden_read(name, &g)) skip_material(name);
    float *logits = malloc((size_t)g.n_prompt * GOLDEN_VOCAB * sizeof *logits);
    weft_model_params_default(&params);
    weft_session_params_default(&sp);
    sp.kv_dtype = WEFT_F32;
    sp.n_ctx = g.n_prompt;
    if (weft_model_open(base, &params, &m, &err) || weft_adapter_file_open(path, weft_model_file(m), &adapter, &err) ||
        weft_session_new(m, &sp, &session, &err))
        fail_msg("%s", err.message);
    const weft_adapter_use use = {adapter, 1};
    if (weft_session_set_adapters(session, &use, 1, &err)) fail_msg("%s", err.message);
    weft_adapter_file_close(&adapter);
    if (weft_session_eval(session, g.prompt, g.n_prompt, 1, logits, &err)) fail_msg("%s", err.message);
    assert_int_equal(weft_session_set_adapters(session, NULL, 0, &err), WEFT_STATE);
    for (int i = 0; i < g.n_prompt * GOLDEN_VOCAB; i++) {
        error += ((double)logits[i] - (double)g.logits[i]) * ((double)logits[i] - (double)g.logits[i]);
        power += (double)g.logits[i] * (double)g.logits[i];
    }
    printf("           %-20s NMSE %.2e (at most %.1e)\n", name, error / power, bound);
    if (!(error / power <= bound)) fail_msg("%s: NMSE %g is above %g", name, error / power, bound);
    free(logits);
    free(g.logits);
    weft_session_free(&session);
    weft_model_close(&m);
}

static void rank_8_on_q_and_v(void **state)
{
    (void)state;
    compare_golden("tiny-llama.lora-a");
}

static void rank_16_on_all_seven(void **state)
{
    (void)state;
    compare_golden("tiny-llama.lora-b");
}

static void neighbours_of_experts_change_no_bit(void **state)
{
    if (!model) skip_material((const char *)*state);
    neighbours_change_no_bit(NULL);
}

static int open_experts(void **state)
{
    static char name[] = "tiny-mixtral.f16";
    n_experts = 4;
    *state = name;
    return open_world(state);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_change_no_bit),     cmocka_unit_test(prefixes_are_of_one_content),
        cmocka_unit_test(a_request_keeps_its_version),  cmocka_unit_test(a_lease_keeps_what_was_chosen),
        cmocka_unit_test(requests_are_refused_by_name),
    };
    const struct CMUnitTest goldens[] = {cmocka_unit_test(rank_8_on_q_and_v), cmocka_unit_test(rank_16_on_all_seven)};
    const struct CMUnitTest material[] = {
        cmocka_unit_test(rank_8_on_q_and_v),
        cmocka_unit_test(rank_16_on_all_seven),
        cmocka_unit_test_setup_teardown(neighbours_of_experts_change_no_bit, open_experts, close_world),
    };
    if (!tier_is_here()) return 77;
    if (argc > 1 && !strcmp(argv[1], "goldens")) return claims_status(cmocka_run_group_tests(goldens, NULL, NULL));
    int failed = claims_material(argc, argv) ? cmocka_run_group_tests(material, NULL, NULL)
                                             : cmocka_run_group_tests(tests, open_world, close_world);
    return claims_status(failed);
}
