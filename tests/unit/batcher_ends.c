// SPDX-License-Identifier: Apache-2.0
/* batcher_ends.c: every request ends exactly once, whatever happens to it; what cannot work is refused by name. */
#include "unit/fixture.h"
#include "unit/serve_hall.h"

#include "base/random.h"

/* ---- ends ---- */

enum how { SAYS_SO, CANCELS, FINISHES, N_HOW };

typedef struct stopper {
    answer a;
    weft_engine *e;
    int after;
    enum how how;
} stopper;

static int stop_after(void *arg, const weft_event *e)
{
    stopper *s = arg;
    on_event(&s->a, e);
    if (e->kind != WEFT_EVENT_TOKEN || s->a.n < s->after) return 0;
    if (s->how == CANCELS) weft_engine_cancel(s->e, e->request);
    if (s->how == FINISHES) weft_engine_finish(s->e, e->request);
    return s->how == SAYS_SO;
}

static void a_request_ends_with_the_step_that_it_is_cancelled_in(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    for (enum how how = 0; how < N_HOW; how++) {
        stopper s[4];
        for (int i = 0; i < 4; i++) {
            ask q;
            answer unused;
            s[i] = (stopper){.a = {.hall = &the_hall}, .e = e, .after = 3 + i, .how = how};
            simple(&q, 20, 100);
            q.p.ignore_end = 1;
            q.p.event = stop_after;
            q.p.arg = &s[i];
            assert_int_equal(submit(e, &q, &unused, NULL), WEFT_OK);
        }
        wait_all();
        for (int i = 0; i < 4; i++) {
            assert_int_equal(s[i].a.n, 3 + i); /* not one more */
            assert_int_equal(s[i].a.finish, how == CANCELS ? WEFT_FINISH_CANCELLED : WEFT_FINISH_STOP);
        }
    }
    weft_engine_cancel(e, 0);
    weft_engine_cancel(e, UINT64_MAX);
    weft_engine_cancel(e, (uint64_t)77 << 32 | 1);
    close_engine(&e);
    weft_model_close(&model);
}

enum { TOLD_TOGETHER = 4, TOLD_TOKENS = 30 };

/* Of the engine's thread. */
static struct {
    weft_engine *e;
    answer a[TOLD_TOGETHER];
    int n_asked, n_events, n_since, n_told, n_empty, n_most;
} telling;

static int count_event(void *arg, const weft_event *e);

static void ask_next(void)
{
    ask q;
    answer *a = &telling.a[telling.n_asked++], unused;
    simple(&q, 20, TOLD_TOKENS);
    *a = (answer){.hall = &the_hall};
    q.p.ignore_end = 1;
    q.p.event = count_event;
    q.p.arg = a;
    assert_int_equal(submit(telling.e, &q, &unused, NULL), WEFT_OK);
}

/* The first one that begins asks for the others, so that they run together. */
static int count_event(void *arg, const weft_event *e)
{
    telling.n_events++;
    telling.n_since++;
    while (e->kind == WEFT_EVENT_BEGAN && telling.n_asked < TOLD_TOGETHER) ask_next();
    return on_event(arg, e);
}

static void count_told(void *arg)
{
    assert_ptr_equal(arg, &telling);
    telling.n_told++;
    telling.n_empty += !telling.n_since;
    if (telling.n_since > telling.n_most) telling.n_most = telling.n_since;
    telling.n_since = 0;
}

/* What a step brought is told to be all once, for all requests, and nothing is left when these have ended. */
static void events_of_a_step_are_told_to_be_all(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    for (int on = 1; on >= 0; on--) {
        memset(&telling, 0, sizeof telling);
        telling.e = open_engine(model, &p);
        weft_engine_on_told(telling.e, count_told, &telling);
        if (!on) weft_engine_on_told(telling.e, NULL, NULL);
        ask_next();
        wait_all();
        close_engine(&telling.e);
        assert_int_equal(telling.n_events, TOLD_TOGETHER * (1 + TOLD_TOKENS + 1)); /* BEGAN, tokens, FINISHED */
        assert_int_equal(telling.n_empty, 0);
        assert_int_equal(telling.n_since, on ? 0 : telling.n_events);
        assert_true(telling.n_told < telling.n_events / 2);
        if (on) assert_true(telling.n_most >= TOLD_TOGETHER);
    }
    weft_model_close(&model);
}

/* Whoever cancels too late, when the record is another request's, harms nobody. */
static void a_late_cancel_is_not_for_who_came_since(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    ask q;
    answer before = {0}, since = {0};
    simple(&q, 20, 8);
    q.p.ignore_end = 1;
    q.p.event = slowly;
    /* A record is free some time after its request's end. */
    for (int i = 0; i < 100 && (!i || (uint32_t)since.id != (uint32_t)before.id); i++) {
        wait_all();
        usleep(1000);
        before = since;
        assert_int_equal(submit(e, &q, &since, NULL), WEFT_OK);
    }
    assert_true((uint32_t)since.id == (uint32_t)before.id && since.id != before.id);
    weft_engine_cancel(e, before.id);
    wait_all();
    assert_int_equal(since.finish, WEFT_FINISH_LENGTH);
    assert_int_equal(since.n, 8);
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
    q.p.event = slowly;
    assert_int_equal(submit(e, &q, &a, NULL), WEFT_OK);
    wait_all();
    assert_int_equal(a.finish, WEFT_FINISH_FAILED);
    assert_int_equal(a.status, WEFT_TIMEOUT);
    assert_non_null(strstr(a.message, "1 ms"));
    close_engine(&e);
    weft_model_close(&model);
}

/* Who has gone is told before who came in its place, also where both happen between two steps. */
static atomic_int told;
typedef struct in_order {
    answer a;
    int began, finished; /* the how manieth event */
} in_order;

static int note_order(void *arg, const weft_event *event)
{
    in_order *o = arg;
    if (event->kind == WEFT_EVENT_BEGAN) o->began = atomic_fetch_add(&told, 1);
    if (event->kind == WEFT_EVENT_TOKEN) usleep(2000);
    if (event->kind != WEFT_EVENT_FINISHED) return 0;
    o->finished = atomic_fetch_add(&told, 1);
    return on_event(&o->a, event);
}

static void who_goes_is_told_before_who_comes(void **state)
{
    enum { N = 4 };
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    p.n_slots = 1;
    weft_engine *e = open_engine(model, &p);
    static in_order all[N];
    ask q;
    uint64_t id;
    atomic_store(&told, 1);
    the_hall.n_left += N;
    for (int i = 0; i < N; i++) {
        all[i] = (in_order){.a = {.hall = &the_hall}};
        simple(&q, 20, 60);
        q.p.tokens = q.tokens;
        q.p.ignore_end = 1;
        q.p.deadline_ms = i < N - 1 ? 30 * (uint32_t)(i + 1) : 0; /* while it runs: the next takes its place */
        q.p.event = note_order;
        q.p.arg = &all[i];
        assert_int_equal(weft_engine_submit(e, &q.p, &id, NULL, NULL), WEFT_OK);
    }
    wait_all();
    for (int i = 1; i < N; i++)
        if (all[i].began) assert_true(all[i].began > all[i - 1].finished);
    assert_true(all[N - 1].began);
    close_engine(&e);
    weft_model_close(&model);
}

/* ---- refusals ---- */

static void what_cannot_work_is_refused_by_name(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    p.n_kv_tokens = 128;
    weft_engine *e = open_engine(model, &p);
    struct {
        const char *says;
        weft_status status;
        ask q;
    } bad[11];
    for (int i = 0; i < 11; i++) simple(&bad[i].q, 10, 10), bad[i].status = WEFT_ARGUMENT;
    bad[0].q.p.n_tokens = 0, bad[0].says = "no tokens";
    bad[1].q.tokens[4] = 512, bad[1].says = "place 4";
    bad[2].q.tokens[4] = -1, bad[2].says = "ids 0 to 511";
    bad[3].q.p.max_tokens = -2, bad[3].says = "max_tokens";
    bad[4].q.p.n_top = 21, bad[4].says = "n_top";
    bad[5].q.p.sampler.temperature = NAN, bad[5].says = "temperature";
    bad[6].q.p.max_tokens = 1000, bad[6].says = "512", bad[6].status = WEFT_LIMIT;
    bad[7].q.p.n_tokens = 250, bad[7].q.p.max_tokens = 50, bad[7].says = "KV pages", bad[7].status = WEFT_LIMIT;
    bad[8].q.p.embedding = 1, bad[8].says = "embedding";
    bad[9].q.p.size = 4, bad[9].says = "weft_request_params", bad[9].status = WEFT_ABI;
    bad[10].q.p.embedding = WEFT_POOLING_LAST + 1, bad[10].q.p.max_tokens = 0, bad[10].says = "weft_pooling";
    for (int i = 0; i < 11; i++) {
        answer a;
        weft_error err = {0};
        assert_int_equal(submit(e, &bad[i].q, &a, &err), bad[i].status);
        if (!strstr(err.message, bad[i].says)) fail_msg("%d: '%s' does not say '%s'", i, err.message, bad[i].says);
    }
    close_engine(&e);
    weft_model_close(&model);
}

static void tokens_end_where_the_pages_do(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    p.n_kv_tokens = 128;
    weft_engine *e = open_engine(model, &p);
    ask q;
    answer a;
    simple(&q, 72, -1); /* as long as the pages last */
    q.p.ignore_end = 1;
    assert_int_equal(submit(e, &q, &a, NULL), WEFT_OK);
    wait_all();
    assert_int_equal(a.finish, WEFT_FINISH_LENGTH);
    assert_int_equal(a.n, 57);    /* 128 positions; the last token needs none */
    for (int i = 0; i < 2; i++) { /* the same for one who asks for more than pages, or even the context, hold */
        simple(&q, 72, i ? 100000 : 100);
        q.p.ignore_end = q.p.cut_to_fit = 1;
        assert_int_equal(submit(e, &q, &a, NULL), WEFT_OK);
        wait_all();
        assert_true(a.finish == WEFT_FINISH_LENGTH && a.n == 57);
    }
    simple(&q, 300, 100); /* there are no pages for the prompt itself */
    q.p.cut_to_fit = 1;
    assert_int_equal(submit(e, &q, &a, NULL), WEFT_LIMIT);
    close_engine(&e);
    weft_model_close(&model);
}

static void engines_that_cannot_work_are_refused_by_name(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p;
    weft_engine *e = NULL;
    static const struct {
        size_t at;
        int value;
    } params[] = {{offsetof(weft_engine_params, n_slots), -1},       {offsetof(weft_engine_params, n_slots), 100000},
                  {offsetof(weft_engine_params, n_ctx), -5},         {offsetof(weft_engine_params, chunk), 100000},
                  {offsetof(weft_engine_params, step_rows), 100000}, {offsetof(weft_engine_params, max_queue), -1}};
    for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
        p = small();
        memcpy((char *)&p + params[i].at, &params[i].value, sizeof(int));
        assert_int_equal(weft_engine_new(model, &p, &e, NULL), WEFT_ARGUMENT);
        assert_null(e);
    }
    p = small();
    p.n_kv_tokens =
        (int64_t)1 << 31; /* of 1024 bytes each; mapped only, they would end the program when they are used */
    weft_error err = {0};
    assert_int_equal(weft_engine_new(model, &p, &e, &err), WEFT_NO_MEMORY);
    assert_null(e);
    static const char *const words[] = {"--kv-tokens", "2147483648", "2199023.3 MB", "are free", "use fewer"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strstr(err.message, words[i])) fail_msg("'%s' does not say '%s'", err.message, words[i]);
    weft_model_close(&model);
}

/* An engine whose thread waits in an event until the gate opens. */
typedef struct gate {
    answer a;
    atomic_int waiting, open;
} gate;

static int wait_at_gate(void *arg, const weft_event *e)
{
    gate *g = arg;
    if (e->kind == WEFT_EVENT_BEGAN) atomic_store(&g->waiting, 1);
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
    while (!atomic_load(&g.waiting)) usleep(500); /* it has left the queue: nobody else will */
    simple(&q, 10, 4);
    for (int i = 0; i < 8 && !st; i++) st = submit(e, &q, &a[i], &err);
    assert_int_equal(st, WEFT_BUSY);
    assert_non_null(strstr(err.message, "try again in"));
    q.p.event = on_event;
    q.p.tokens = q.tokens;
    double retry = 0;
    uint64_t id;
    assert_int_equal(weft_engine_submit(e, &q.p, &id, &retry, NULL), WEFT_BUSY);
    assert_true(retry > 0 && retry <= 60);
    double first = retry;
    for (int i = 0; i < 1000; i++) assert_int_equal(weft_engine_submit(e, &q.p, &id, &retry, NULL), WEFT_BUSY);
    assert_true(retry > first && retry <= 60); /* those before it come first */
    assert_true(stats_of(e).n_refused == 1002);
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
        simple(&q, patient ? CLAIMS_REPEATED(200, 200, 50) : 200, patient ? CLAIMS_REPEATED(120, 120, 20) : 120);
        q.p.ignore_end = 1;
        if (!patient) q.p.event = slowly;
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
    q.p.event = slowly;
    for (int i = 0; i < 40; i++) assert_int_equal(submit(e, &q, &a[i], NULL), WEFT_OK);
    weft_engine_free(&e);
    wait_all();
    for (int i = 0; i < 40; i++) assert_int_equal(a[i].n_finished, 1);
    assert_int_equal(a[39].finish, WEFT_FINISH_CANCELLED);
    weft_engine_free(&e);
    weft_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_ends_with_the_step_that_it_is_cancelled_in),
        cmocka_unit_test(events_of_a_step_are_told_to_be_all),
        cmocka_unit_test(a_late_cancel_is_not_for_who_came_since),
        cmocka_unit_test(a_crowd_of_threads_loses_nothing),
        cmocka_unit_test(a_late_request_fails_and_says_so),
        cmocka_unit_test(who_goes_is_told_before_who_comes),
        cmocka_unit_test(what_cannot_work_is_refused_by_name),
        cmocka_unit_test(tokens_end_where_the_pages_do),
        cmocka_unit_test(engines_that_cannot_work_are_refused_by_name),
        cmocka_unit_test(a_full_queue_says_when_to_come_back),
        cmocka_unit_test(draining_refuses_what_is_new_and_ends_what_is_old),
        cmocka_unit_test(freeing_ends_what_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
