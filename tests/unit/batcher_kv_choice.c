// SPDX-License-Identifier: Apache-2.0
/* batcher_kv_choice.c: an engine whose requests choose the type of their keys and values: each has the answers of an
 * engine that has that type alone, whatever runs beside it, and finds its own pages; all of them share one memory, and
 * one run of the model. */
#include "unit/fixture.h"
#include "unit/serve_hall.h"
#include "unit/draft_doubles.h"

#include "batcher/batcher.h"

enum { N_PROMPT = 100, N_NEW = 100, OF_EACH = 2 }; /* tokens that outgrow by a page what a request starts with */

static const uint32_t types[] = {WEFT_F16, WEFT_KV_Q8, WEFT_KV_TYPE(WEFT_KV_Q8, WEFT_KV_Q4, 1, 1), WEFT_F32,
                                 WEFT_KV_F8};
enum { N_TYPES = sizeof types / sizeof *types, N_ASKED = N_TYPES * OF_EACH };

typedef struct scene {
    char folder[32], store[48];
    weft_model *model;
    ask q[N_ASKED];        /* two of each type, the types in turns */
    answer alone[N_ASKED]; /* of an engine with that type alone */
    answer beside[N_ASKED];
} scene;

static scene the_scene;

static weft_engine_params choosing(void)
{
    weft_engine_params p = small();
    p.kv_types = types + 1;
    p.n_kv_types = N_TYPES - 1;
    return p;
}

static int begin(void **state)
{
    scene *s = *state = &the_scene;
    strcpy(s->folder, "/tmp/weft-choice-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    snprintf(s->store, sizeof s->store, "%s/store", s->folder);
    s->model = tiny(512);
    for (int i = 0; i < N_ASKED; i++) {
        ask *q = &s->q[i];
        simple(q, N_PROMPT, N_NEW);
        for (int k = 0; k < N_PROMPT; k++)
            q->tokens[k] = 3 + (k * 31 + i / N_TYPES * 77) % 400; /* one of each has these */
        q->p.kv_dtype = types[i % N_TYPES];
        q->p.ignore_end = 1;
        q->p.n_top = 2;
        q->p.sampler.temperature = 0.8f;
        q->p.sampler.seed = (uint64_t)i;
    }
    for (int t = 0; t < N_TYPES; t++) {
        weft_engine_params p = small();
        p.kv_dtype = types[t];
        weft_engine *e = open_engine(s->model, &p);
        for (int i = t; i < N_ASKED; i += N_TYPES) run_alone(e, &s->q[i], &s->alone[i], 1);
        close_engine(&e);
    }
    return 0;
}

static int end(void **state)
{
    scene *s = *state;
    weft_model_close(&s->model);
    remove_folder(s->folder);
    return 0;
}

static void types_differ(scene *s)
{
    int differ = 0;
    for (int t = 1; t < N_TYPES; t++)
        differ += memcmp(s->alone[0].logprob, s->alone[t].logprob, sizeof s->alone[t].logprob) != 0;
    assert_int_equal(differ, N_TYPES - 1);
}

/* Together; then again, when each finds its own prompt; and one whose prompt was read in another type alone finds
 * nothing. */
static void each_answers_as_in_an_engine_of_its_own(void **state)
{
    scene *s = *state;
    const weft_engine_params p = choosing();
    weft_engine *e = open_engine(s->model, &p);
    types_differ(s);
    run_together(e, s->q, s->beside, N_ASKED);
    compare("beside others", s->q, s->alone, s->beside, N_ASKED);
    run_together(e, s->q, s->beside, N_ASKED);
    compare("with a prefix", s->q, s->alone, s->beside, N_ASKED);
    for (int i = 0; i < N_ASKED; i++) assert_int_equal(s->beside[i].n_cached, N_PROMPT - 1);
    close_engine(&e);
    e = open_engine(s->model, &p);
    run_alone(e, s->q, s->beside, N_TYPES);
    compare("one after another", s->q, s->alone, s->beside, N_TYPES);
    for (int i = 0; i < N_TYPES; i++) assert_int_equal(s->beside[i].n_cached, 0);
    close_engine(&e);
}

static void without_a_choice_it_is_that_of_the_engine(void **state)
{
    scene *s = *state;
    weft_engine_params p = choosing();
    weft_error err = {0};
    p.kv_dtype = WEFT_KV_Q8;
    weft_engine *e = open_engine(s->model, &p);
    uint32_t has[WEFT_KV_TYPES_MAX];
    assert_int_equal(weft_engine_kv_types(e, has), 4);
    assert_true(has[0] == WEFT_KV_Q8 && has[3] == WEFT_KV_F8);
    ask q = s->q[1];
    answer a;
    assert_int_equal(q.p.kv_dtype, WEFT_KV_Q8);
    q.p.kv_dtype = WEFT_KV_OF_ENGINE;
    run_alone(e, &q, &a, 1);
    compare("of the engine", &q, &s->alone[1], &a, 1);
    q.p.kv_dtype = WEFT_KV_Q4;
    assert_int_equal(submit(e, &q, &a, &err), WEFT_ARGUMENT);
    assert_string_equal(err.message, "keys and values in q4,edges=0: this engine has q8, k=q8,v=q4,edges=1, f32, f8");
    close_engine(&e);
}

static void what_no_engine_has_is_refused(void **state)
{
    scene *s = *state;
    const uint32_t none = WEFT_KV_F8 + 1;
    weft_engine_params p = small();
    weft_engine *e = NULL;
    weft_error err = {0};
    p.n_kv_types = 1;
    assert_int_equal(weft_engine_new(s->model, &p, &e, &err), WEFT_ARGUMENT);
    p.kv_types = &none;
    assert_int_equal(weft_engine_new(s->model, &p, &e, &err), WEFT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "KV type 131"));
    p.kv_types = types;
    p.n_kv_types = WEFT_KV_TYPES_MAX;
    assert_int_equal(weft_engine_new(s->model, &p, &e, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "n_kv_types"));
}

/* ---- how often the model runs ---- */

static struct {
    weft_status (*run)(weft_run *run, const weft_step *step, weft_error *err);
    uint64_t n_runs;
    int most_types; /* of the rows of one run */
} counted;

static weft_status counted_run(weft_run *run, const weft_step *step, weft_error *err)
{
    unsigned seen = 0;
    for (int32_t r = 0; r < step->rows->n_rows; r++)
        seen |= 1u << (step->rows->pool ? step->rows->pool[step->rows->seq[r]] : 0);
    const int n = __builtin_popcount(seen);
    counted.n_runs++;
    counted.most_types = n > counted.most_types ? n : counted.most_types;
    return counted.run(run, step, err);
}

/* All requests together in a new engine; how many steps it had. */
static uint64_t count_runs(scene *s, const char *how)
{
    const weft_engine_params p = choosing();
    counted.n_runs = 0;
    counted.most_types = 0;
    weft_engine *e = open_engine(s->model, &p);
    run_together(e, s->q, s->beside, N_ASKED);
    compare(how, s->q, s->alone, s->beside, N_ASKED);
    const uint64_t n_steps = stats_of(e).n_steps;
    close_engine(&e);
    return n_steps;
}

/* A step reads the weights once, of however many types its rows are; where a provider takes one type in a step it reads
 * them for each, and the answers are the same. */
static void a_step_of_several_types_is_one_run(void **state)
{
    scene *s = *state;
    weft_backend_api *api = &s->model->provider->table;
    counted.run = api->run;
    api->run = counted_run;
    uint64_t n_steps = count_runs(s, "in one run");
    assert_int_equal(counted.n_runs, n_steps);
    assert_int_equal(counted.most_types, N_TYPES);
    api->features &= ~(uint32_t)WEFT_FEATURE_POOLS;
    n_steps = count_runs(s, "in a run for each type");
    assert_true(counted.n_runs > n_steps);
    assert_int_equal(counted.most_types, 1);
    api->features |= WEFT_FEATURE_POOLS;
    api->run = counted.run;
}

/* Rows of guesses, of which one in three is wrong, beside rows of other types. */
static void guesses_stand_beside_other_types(void **state)
{
    scene *s = *state;
    guesses g = {s->q, s->alone, N_ASKED, 3};
    weft_engine_params p = choosing();
    weft_engine *e = guessing(s->model, &p, &g, NULL);
    run_together(e, s->q, s->beside, N_ASKED);
    compare("with guesses", s->q, s->alone, s->beside, N_ASKED);
    const weft_draft_stats d = drafts_of(e);
    assert_true(d.n_accepted > 0 && d.n_accepted < d.n_tokens);
    close_engine(&e);
}

/* Memory for three requests of F16, which is for two of F32 and for six of Q8; with and without a disk that what gives
 * way goes to. */
static void they_give_way_to_each_other(void **state)
{
    scene *s = *state;
    for (int swaps = 0; swaps < 2; swaps++) {
        weft_engine_params p = choosing();
        uint64_t preempted = 0, most = 0;
        p.n_kv_tokens = 512;
        p.store_dir = swaps ? s->store : NULL;
        p.swap = swaps ? WEFT_SWAP_ALWAYS : WEFT_SWAP_OFF;
        p.chunk = 16; /* they start beside each other, and grow */
        for (int round = 0; round < 8 && !preempted; round++) {
            weft_engine *e = open_engine(s->model, &p);
            run_together(e, s->q, s->beside, N_ASKED);
            compare(swaps ? "swapped" : "in turns", s->q, s->alone, s->beside, N_ASKED);
            const weft_engine_stats is = stats_of(e);
            preempted = is.n_preempted;
            most = is.memory.pages.peak;
            assert_true(most <= is.kv_limit_bytes);
            close_engine(&e);
            if (swaps) remove_folder(s->store);
        }
        assert_true(preempted > 0);
    }
}

/* What one type has left is there for another: all memory for each in turn. */
static void one_memory_is_for_all(void **state)
{
    scene *s = *state;
    weft_engine_params p = choosing();
    ask q[N_TYPES];
    answer a[N_TYPES];
    p.n_kv_tokens = 512;
    weft_engine *e = open_engine(s->model, &p);
    const uint64_t limit = stats_of(e).kv_limit_bytes;
    for (int i = 0; i < N_TYPES; i++) {
        simple(&q[i], types[i] == WEFT_F32 ? 250 : 300, 100);
        if (types[i] == WEFT_F32) q[i].p.max_tokens = 4;
        q[i].p.kv_dtype = types[i];
        q[i].p.ignore_end = 1;
    }
    for (int round = 0; round < 2; round++) {
        run_alone(e, q, a, N_TYPES);
        for (int i = 0; i < N_TYPES; i++) assert_int_equal(a[i].n, q[i].p.max_tokens);
    }
    assert_true(stats_of(e).prefix_evicted_pages > 0);
    assert_true(stats_of(e).memory.pages.peak <= limit);
    weft_error err = {0};
    simple(&q[0], 300, 100); /* 400 tokens of F32 are more than 512 of F16 */
    q[0].p.kv_dtype = WEFT_F32;
    assert_int_equal(submit(e, &q[0], &a[0], &err), WEFT_LIMIT);
    assert_non_null(strstr(err.message, "need 7 KV pages; there are 4"));
    close_engine(&e);
}

/* What each type wrote is found again by the next engine, whichever types it has; a slot as well. */
static void a_store_knows_them_apart(void **state)
{
    scene *s = *state;
    weft_engine_params p = choosing();
    weft_error err = {0};
    int32_t n, back[N_PROMPT];
    uint64_t bytes;
    p.store_dir = s->store;
    weft_engine *e = open_engine(s->model, &p);
    run_alone(e, s->q, s->beside, N_TYPES);
    ask other = s->q[1];
    other.tokens[0]++;
    run_alone(e, &other, &s->beside[N_TYPES], 1); /* in Q8 */
    if (weft_engine_save(e, NULL, other.tokens, N_PROMPT, "kept", &n, &bytes, &err)) fail_msg("%s", err.message);
    close_engine(&e);
    e = open_engine(s->model, &p);
    assert_int_equal(stats_of(e).store_damaged, 0);
    run_together(e, s->q, s->beside, N_TYPES);
    compare("from the store", s->q, s->alone, s->beside, N_TYPES);
    for (int i = 0; i < N_TYPES; i++) assert_int_equal(s->beside[i].n_cached, N_PROMPT - 1);
    close_engine(&e);
    p.kv_dtype = WEFT_KV_Q8; /* the slot is of one of its types, not of the first */
    p.kv_types = types;
    p.n_kv_types = 1;
    e = open_engine(s->model, &p);
    if (weft_engine_restore(e, "kept", back, N_PROMPT, &n, &bytes, &err)) fail_msg("%s", err.message);
    assert_int_equal(n, N_PROMPT);
    run_alone(e, &other, &s->beside[0], 1);
    assert_int_equal(s->beside[0].n_cached, N_PROMPT - 1);
    close_engine(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answers_as_in_an_engine_of_its_own),
        cmocka_unit_test(without_a_choice_it_is_that_of_the_engine),
        cmocka_unit_test(what_no_engine_has_is_refused),
        cmocka_unit_test(a_step_of_several_types_is_one_run),
        cmocka_unit_test(guesses_stand_beside_other_types),
        cmocka_unit_test(they_give_way_to_each_other),
        cmocka_unit_test(one_memory_is_for_all),
        cmocka_unit_test(a_store_knows_them_apart),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
