// SPDX-License-Identifier: Apache-2.0
/* batcher_costs.c: what rows cost on this machine is found out once for a model, before its first step and only where
 * something may be guessed, and decides from the first step on how far. */
#include "unit/fixture.h"
#include "unit/serve_hall.h"

#include "batcher/batcher.h"

enum { N_TOKENS = 20 /* fewer steps than pass before one token is tried all the same */ };

static uint64_t n_tried(const weft_engine *e)
{
    const weft_engine_stats s = stats_of(e);
    uint64_t n = 0;
    for (int d = 0; d < WEFT_DRAFTERS; d++) n += s.drafts[d].n_tokens;
    return n;
}

/* Tokens that are guessed in an engine of its own. */
static uint64_t tried_of(weft_model *model, const ask *q)
{
    static answer a;
    weft_engine_params p = small();
    p.spec = WEFT_SPEC_AUTO;
    weft_engine *e = open_engine(model, &p);
    run_alone(e, q, &a, 1);
    assert_int_equal(a.status, WEFT_OK);
    const uint64_t n = n_tried(e);
    close_engine(&e);
    return n;
}

static void is_sane(const weft_model *m)
{
    for (int n = 2; n <= WEFT__DRAFT_ROWS; n++)
        assert_true(m->rows.shape[n] > m->rows.shape[n - 1] && m->rows.shape[n] <= n + 1e-9);
}

static void rows_are_timed_once(void **state)
{
    static answer first;
    ask q;
    (void)state;
    weft_model *model = tiny(0);
    weft_engine_params p = small();
    weft_engine *e = open_engine(model, &p);
    simple(&q, 30, N_TOKENS);
    q.p.ignore_end = 1;
    q.p.sampler.temperature = 1.5f;
    run_alone(e, &q, &first, 1);
    close_engine(&e);
    assert_false(model->rows.is_tried);
    q.p.predicted = first.token;
    q.p.n_predicted = N_TOKENS;
    (void)tried_of(model, &q);
    assert_true(model->rows.is_tried);
    if (model->rows.known) is_sane(model);
    else print_message("others took the processor: nothing was found\n");
    model->rows.known = 1;
    for (int n = 1; n <= WEFT__DRAFT_ROWS; n++) model->rows.shape[n] = n;
    assert_int_equal(tried_of(model, &q), 0);
    for (int n = 1; n <= WEFT__DRAFT_ROWS; n++) model->rows.shape[n] = 1 + 0.01 * (n - 1);
    assert_true(tried_of(model, &q) > 0);
    weft_model_close(&model);
}

/* A provider that runs whole steps only is not timed, and what is usual is assumed; one whose steps fail is left
 * alone. */
static weft_status fails(weft_run *run, const weft_step *step, weft_error *err)
{
    (void)run;
    return weft_fail(err, WEFT_INTERNAL, "a step of %d rows", step->rows->n_rows);
}

static void what_cannot_be_timed_is_assumed(void **state)
{
    (void)state;
    weft_engine_params p = small();
    p.spec = WEFT_SPEC_AUTO;
    for (int can_not = 0; can_not < 2; can_not++) {
        weft_model *model = tiny(0);
        if (can_not) model->provider->table.features &= ~(uint32_t)WEFT_FEATURE_NODES;
        else model->provider->table.run = fails;
        weft_engine *e = open_engine(model, &p);
        assert_true(model->rows.is_tried && !model->rows.known);
        assert_true(e->draft.cost.shape[1] > 0.99 && e->draft.cost.shape[8] > e->draft.cost.shape[1]);
        close_engine(&e);
        weft_model_close(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_timed_once),
        cmocka_unit_test(what_cannot_be_timed_is_assumed),
    };
    return claims_status(cmocka_run_group_tests(tests, NULL, NULL));
}
