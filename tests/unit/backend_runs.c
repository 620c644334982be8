// SPDX-License-Identifier: Apache-2.0
/* backend_runs.c: steps of one program at once, each with a run of its own, bring the bits that they bring one after
 * the other: on a pool of one thread, where each caller computes for itself while the other does, and on one of
 * several, where they take turns. Adapters, experts, rows that go to the next product prepared, few rows over a long
 * context and rows that are left out are among them. */
#include "waist_model.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/pool.h"

enum { RANK = 4, N_CTX = 160, ROWS = 64, CALLERS = 2 };

/* ---- meeting between two steps of a program ---- */

/* Linked in place of the real one, which a pool of one thread has no use for: while `meeting` is set, each caller waits
 * here until the other has come as far. A lock around steps would let neither come to the second place. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t come;
    int meeting, n, failed;
    unsigned round, n_met;
} at = {.lock = PTHREAD_MUTEX_INITIALIZER, .come = PTHREAD_COND_INITIALIZER};

enum { PATIENCE_S = 120 };

void __real_weft__pool_barrier(weft__pool *pool, int thread);
void __wrap_weft__pool_barrier(weft__pool *pool, int thread);
void __wrap_weft__pool_barrier(weft__pool *pool, int thread)
{
    __real_weft__pool_barrier(pool, thread);
    pthread_mutex_lock(&at.lock);
    if (at.meeting && !at.failed) {
        const unsigned round = at.round;
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += PATIENCE_S;
        if (++at.n == CALLERS) {
            at.n = 0;
            at.n_met++;
            at.round++;
            pthread_cond_broadcast(&at.come);
        }
        while (at.round == round && !at.failed)
            if (pthread_cond_timedwait(&at.come, &at.lock, &until) == ETIMEDOUT) at.failed = 1;
    }
    pthread_mutex_unlock(&at.lock);
}

/* Values for A and B of every matrix that is multiplied by, each the beginning of one list. */
static void add_adapter(store *t, const float *values)
{
    weft_lora *lora = weft__alloc_zero((size_t)t->g->n_weights, sizeof *lora);
    for (int32_t i = 1; i < t->g->n_weights; i++) /* the first is the embedding */
        if (t->g->weights[i].shape.n_dims > 1)
            lora[i] = (weft_lora){.a = values, .b = values, .rank = RANK, .dtype = WEFT_F32, .scale = 0.5f};
    store_adapter(t, lora, WEFT_Q8_0);
    weft__free(lora);
}

/* ---- callers ---- */

/* One of several that step one plan: its pages, its state, its sequences' adapters, what comes out. */
typedef struct caller {
    store t;
    int odd, same; /* the second of two; it takes the steps of the first */
    float *out;    /* [STAGE_SEQS][N_CTX][V] */
} caller;

static const span prompt[] = {{0, 0, 40}, {1, 0, 3}}, decode[] = {{0, 40, 1}, {1, 3, 1}},
                  mixed[] = {{0, 41, 1}, {2, 0, 50}}, late[] = {{2, 50, 64}}, last[] = {{2, 114, 1}};

/* Steps of all kinds; the second caller's come in another order, with other adapters and other rows that are wanted. */
static void *step_all(void *arg)
{
    caller *c = arg;
    const int other = c->odd && !c->same;
    c->t.wants_some = other;
    for (int i = 0; i < STAGE_SEQS; i++) c->t.adapter_of[i] = c->same ? i - 1 : other ? 1 - i % 2 : i % 3 - 1;
    if (other) store_step(&c->t, &(span){2, 0, 50}, 1, V, N_CTX, c->out);
    store_step(&c->t, prompt, 2, V, N_CTX, c->out);
    store_step(&c->t, decode, 2, V, N_CTX, c->out);
    if (!other) store_step(&c->t, mixed, 2, V, N_CTX, c->out);
    store_step(&c->t, late, 1, V, N_CTX, c->out);
    store_step(&c->t, last, 1, V, N_CTX, c->out);
    return NULL;
}

/* A caller of the plan that another store has made, with its adapters. */
static void caller_open(caller *c, store *plan, int odd, int same)
{
    *c = (caller){.odd = odd, .same = same};
    c->t.g = plan->g;
    c->t.plan = plan->plan;
    c->t.max_rows = ROWS;
    store_pages(&c->t, plan->g, WEFT_F16, N_CTX);
    store_columns(&c->t);
    memcpy(c->t.adapters, plan->adapters, sizeof plan->adapters);
    c->t.n_adapters = plan->n_adapters;
    assert_ok(weft__plan_state_new(plan->plan, &c->t.state, err));
    c->out = weft__alloc_zero((size_t)STAGE_SEQS * N_CTX * V, sizeof *c->out);
}

static void caller_close(caller *c)
{
    c->t.plan = NULL; /* the other's, as the adapters are */
    c->t.n_adapters = 0;
    store_close(&c->t);
    weft__free(c->out);
}

/* Both callers at once. */
static void step_both(caller *c)
{
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, step_all, &c[i]), 0);
    for (int i = 0; i < CALLERS; i++) pthread_join(threads[i], NULL);
}

/* What two callers get at once is what they get one after the other; meet: they wait for each other at each step of the
 * program. */
static void same_bits(const char *options, int meet, int n_times)
{
    stage s;
    store t;
    caller alone[CALLERS], both[CALLERS];
    float *values = weft__alloc_array((size_t)EXPERTS * F * RANK + 1, sizeof *values);
    const size_t n = (size_t)STAGE_SEQS * N_CTX * V * sizeof(float);
    waist_model(&s, 1);
    for (int i = 0; i <= EXPERTS * F * RANK; i++) values[i] = (float)weft__rng_normal(&s.rng) * 0.05f;
    store_open(&t, s.g, "cpu", options, 1, WEFT_F16, N_CTX, ROWS);
    add_adapter(&t, values);
    add_adapter(&t, values + 1);
    for (int i = 0; i < CALLERS; i++) {
        caller_open(&alone[i], &t, i, meet);
        step_all(&alone[i]);
    }
    for (int k = 0; k < n_times; k++) {
        for (int i = 0; i < CALLERS; i++) caller_open(&both[i], &t, i, meet);
        at.meeting = meet;
        step_both(both);
        at.meeting = 0;
        assert_false(at.failed);
        for (int i = 0; i < CALLERS; i++) {
            assert_memory_equal(both[i].out, alone[i].out, n);
            caller_close(&both[i]);
        }
    }
    for (int i = 0; i < CALLERS; i++) caller_close(&alone[i]);
    store_close(&t);
    stage_close(&s);
    weft__free(values);
}

/* A pool of one thread has nothing that its callers would wait for: they go through the program side by side. */
static void callers_of_one_thread_compute_at_once(void **state)
{
    (void)state;
    same_bits("threads=1", 1, 1);
    print_message("  met %u times\n", at.n_met);
    assert_true(at.n_met > 50);
}

static void at_once_is_as_one_after_the_other(void **state)
{
    (void)state;
    same_bits("threads=1", 0, CLAIMS_REPEATED(8, 3, 1));
    same_bits("threads=3", 0, CLAIMS_REPEATED(8, 3, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(callers_of_one_thread_compute_at_once),
        cmocka_unit_test(at_once_is_as_one_after_the_other),
    };
    return cmocka_run_group_tests_name("backend_runs", tests, NULL, NULL);
}
