// SPDX-License-Identifier: Apache-2.0
/* batcher_inbox.c: an inbox has the events that an event function gets, in order, until they are taken; its descriptor
 * says whether one waits; freed, it ends what runs. */
#include "unit/fixture.h"
#include "unit/serve_hall.h"

#include <poll.h>
#include <signal.h>

enum { N_REQUESTS = 6, FOR_GOOD = -1 };

static weft_inbox *open_inbox(weft_engine *e)
{
    weft_inbox *inbox = NULL;
    weft_error err = {0};
    if (weft_inbox_new(e, &inbox, &err)) fail_msg("%s", err.message);
    return inbox;
}

static void send_to(weft_inbox *inbox, ask *q, float *embedding, uint64_t *id)
{
    weft_error err = {0};
    q->p.tokens = q->tokens;
    if (weft_inbox_submit(inbox, &q->p, embedding, id, NULL, &err)) fail_msg("%s", err.message);
    assert_true(*id);
}

static int readable(const weft_inbox *inbox)
{
    struct pollfd p = {.fd = weft_inbox_fd(inbox), .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* Everything until n requests have finished, as event functions would have got it. */
static void take_all(weft_inbox *inbox, const uint64_t *ids, answer *out, int n)
{
    for (int i = 0; i < n; i++) out[i] = (answer){.hall = &the_hall};
    the_hall.n_left = n;
    while (the_hall.n_left) {
        const weft_event *e = weft_inbox_take(inbox, FOR_GOOD);
        assert_non_null(e);
        int i = 0;
        while (i < n && ids[i] != e->request) i++;
        assert_true(i < n);
        on_event(&out[i], e);
    }
    assert_null(weft_inbox_take(inbox, 0));
    assert_false(readable(inbox));
}

static void various(ask *q)
{
    for (int i = 0; i < N_REQUESTS; i++) {
        simple(&q[i], 20 + 9 * i, 12);
        q[i].p.n_top = i % 3 ? 4 : -1;
        q[i].p.prompt_logprobs = i == 2;
        q[i].p.sampler.seed = (uint64_t)i;
    }
    q[3].p.embedding = 1;
    q[3].p.max_tokens = 0;
}

static void what_is_taken_is_what_an_event_function_gets(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    weft_inbox *inbox = open_inbox(e);
    ask q[N_REQUESTS];
    answer told[N_REQUESTS], taken[N_REQUESTS];
    uint64_t ids[N_REQUESTS];
    various(q);
    run_alone(e, q, told, N_REQUESTS);
    for (int i = 0; i < N_REQUESTS; i++) send_to(inbox, &q[i], NULL, &ids[i]);
    take_all(inbox, ids, taken, N_REQUESTS);
    compare("inbox", q, told, taken, N_REQUESTS);
    for (int i = 0; i < N_REQUESTS; i++) assert_int_equal(taken[i].n_began, 1);
    weft_inbox_free(&inbox);
    assert_null(inbox);
    weft_inbox_free(&inbox);
    close_engine(&e);
    weft_model_close(&model);
}

static void an_embedding_is_written_where_the_caller_wants_it(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_model_info info = {.size = sizeof info};
    weft_model_describe(model, &info, NULL);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    weft_inbox *inbox = open_inbox(e);
    float *rows = calloc((size_t)info.d_model * 2, sizeof *rows);
    ask q;
    uint64_t id;
    double norm[2] = {0};
    simple(&q, 9, 0);
    q.p.embedding = 1;
    for (int i = 0; i < 2; i++) {
        q.p.n_tokens = 9 - i;
        send_to(inbox, &q, rows + (ptrdiff_t)i * info.d_model, &id);
        for (const weft_event *event; (event = weft_inbox_take(inbox, FOR_GOOD))->kind != WEFT_EVENT_FINISHED;)
            if (event->kind == WEFT_EVENT_EMBEDDING) {
                assert_ptr_equal(event->embedding, rows + (ptrdiff_t)i * info.d_model);
                assert_int_equal(event->n_embedding, info.d_model);
            }
    }
    for (int k = 0; k < 2 * info.d_model; k++) norm[k / info.d_model] += (double)rows[k] * rows[k];
    assert_true(fabs(norm[0] - 1) < 1e-4 && fabs(norm[1] - 1) < 1e-4);
    assert_memory_not_equal(rows, rows + info.d_model, sizeof(float) * (size_t)info.d_model);
    free(rows);
    weft_inbox_free(&inbox);
    close_engine(&e);
    weft_model_close(&model);
}

static void the_descriptor_says_whether_an_event_waits(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    weft_inbox *inbox = open_inbox(e);
    ask q;
    uint64_t id;
    int n = 0;
    assert_false(readable(inbox));
    assert_null(weft_inbox_take(inbox, 1));
    simple(&q, 20, 3);
    q.p.ignore_end = 1;
    send_to(inbox, &q, NULL, &id);
    weft_engine_drain(e, 60000); /* all events are there */
    for (; readable(inbox); n++) assert_non_null(weft_inbox_take(inbox, 0));
    assert_int_equal(n, 1 + 3 + 1); /* began, tokens, finished */
    assert_null(weft_inbox_take(inbox, 0));
    assert_int_equal(weft_inbox_submit(inbox, &q.p, NULL, &id, NULL, NULL), WEFT_STATE); /* draining */
    assert_int_equal(id, 0);
    weft_inbox_free(&inbox);
    close_engine(&e);
    weft_model_close(&model);
}

static void on_signal(int number)
{
    (void)number;
}

static void a_signal_ends_the_wait(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    weft_inbox *inbox = open_inbox(e);
    struct sigaction old, action = {.sa_handler = on_signal};
    sigaction(SIGALRM, &action, &old);
    alarm(1);
    assert_null(weft_inbox_take(inbox, FOR_GOOD));
    sigaction(SIGALRM, &old, NULL);
    weft_inbox_free(&inbox);
    close_engine(&e);
    weft_model_close(&model);
}

static void freeing_ends_what_runs_and_what_waits(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    p.n_slots = 2;
    weft_engine *e = open_engine(model, &p);
    ask q;
    uint64_t id;
    for (int round = 0; round < 8; round++) {
        weft_inbox *inbox = open_inbox(e);
        simple(&q, 20, 400);
        q.p.ignore_end = 1;
        for (int i = 0; i < 5; i++) send_to(inbox, &q, NULL, &id);
        for (int i = 0; i < round * 5; i++) assert_non_null(weft_inbox_take(inbox, FOR_GOOD));
        weft_inbox_free(&inbox);
    }
    close_engine(&e); /* which sees that all have ended */
    weft_model_close(&model);
}

/* ---- memory ---- */

static atomic_size_t n_asked, refused_at;

static int atomic_gate(void *arg, size_t n_bytes)
{
    (void)arg, (void)n_bytes;
    return atomic_fetch_add(&n_asked, 1) != atomic_load(&refused_at);
}

/* Of an engine that is ready: 1 when nothing failed. */
static int ask_and_take(weft_engine *e)
{
    weft_inbox *inbox = NULL;
    ask q;
    uint64_t id;
    int ok = 0;
    if (weft_inbox_new(e, &inbox, NULL)) return 0;
    simple(&q, 20, 4);
    q.p.tokens = q.tokens;
    q.p.ignore_end = 1;
    q.p.n_top = 2;
    if (!weft_inbox_submit(inbox, &q.p, NULL, &id, NULL, NULL)) {
        const weft_event *event;
        while ((event = weft_inbox_take(inbox, FOR_GOOD))->kind != WEFT_EVENT_FINISHED)
            ;
        ok = event->finish == WEFT_FINISH_LENGTH;
        if (!ok) assert_int_equal(event->status, WEFT_NO_MEMORY);
        if (!ok) assert_true(strlen(event->message) > 0);
    }
    weft_inbox_free(&inbox);
    return ok;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    size_t n_refused = 0;
    p.n_slots = 1;
    p.n_kv_tokens = 512;
    for (size_t i = 0;; i += refuse_stride(i)) {
        size_t before = weft__alloc_live();
        weft_engine *e = open_engine(model, &p);
        atomic_store(&n_asked, 0);
        atomic_store(&refused_at, i);
        weft__alloc_set_gate(atomic_gate, NULL);
        int ok = ask_and_take(e);
        weft__alloc_set_gate(NULL, NULL);
        weft_engine_free(&e);
        assert_int_equal(weft__alloc_live(), before);
        n_refused += !ok;
        if (atomic_load(&n_asked) <= i) break;
    }
    assert_true(n_refused > 8);
    weft_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_taken_is_what_an_event_function_gets),
        cmocka_unit_test(an_embedding_is_written_where_the_caller_wants_it),
        cmocka_unit_test(the_descriptor_says_whether_an_event_waits),
        cmocka_unit_test(a_signal_ends_the_wait),
        cmocka_unit_test(freeing_ends_what_runs_and_what_waits),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
