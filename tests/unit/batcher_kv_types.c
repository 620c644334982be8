// SPDX-License-Identifier: Apache-2.0
/* batcher_kv_types.c: pages of one type of keys and values are found by engines of that type alone, in a store and in
 * slots, with the bytes that were written; and what they take. */
#include "unit/fixture.h"
#include "unit/serve_hall.h"

#include <sys/stat.h>

#include "batcher/batcher.h"
#include "kv/pool.h"

enum { N_PROMPT = 200 };

typedef struct scene {
    char folder[32];
    weft_model *model;
    ask q;
} scene;

static int begin(void **state)
{
    static scene the_scene;
    scene *s = *state = &the_scene;
    *s = (scene){.folder = "/tmp/weft-serve-XXXXXX", .model = tiny(512)};
    assert_non_null(mkdtemp(s->folder));
    simple(&s->q, N_PROMPT, 12);
    s->q.p.ignore_end = 1;
    return 0;
}

static int end(void **state)
{
    scene *s = *state;
    weft_model_close(&s->model);
    remove_folder(s->folder);
    return 0;
}

static weft_engine *engine_of(const scene *s, uint32_t type)
{
    weft_engine_params p = small();
    p.store_dir = s->folder;
    p.kv_dtype = type;
    p.n_slots = 4;
    return open_engine(s->model, &p);
}

/* Asks, with what the cache has; returns how much that was. */
static int asked(weft_engine *e, const ask *q, answer *a)
{
    run_alone(e, q, a, 1);
    if (a->status) fail_msg("%s", a->message);
    return a->n_cached;
}

static void a_store_of_another_type_is_not_found(void **state)
{
    static const uint32_t types[] = {WEFT_KV_Q8, WEFT_F16}; /* twice each */
    scene *s = *state;
    answer first, again;
    for (int i = 0; i < 4; i++) {
        weft_engine *e = engine_of(s, types[i / 2]);
        assert_int_equal(asked(e, &s->q, i % 2 ? &again : &first), i % 2 ? N_PROMPT - 1 : 0);
        if (i % 2) compare("from the store", &s->q, &first, &again, 1);
        while (i % 2 == 0 && stats_of(e).store_written < 1) usleep(1000);
        close_engine(&e);
    }
}

static void a_slot_of_another_type_is_refused_by_name(void **state)
{
    scene *s = *state;
    weft_error err = {0};
    answer first, again;
    int32_t n, back[N_PROMPT];
    uint64_t bytes;
    weft_engine *e = engine_of(s, WEFT_KV_Q8);
    asked(e, &s->q, &first);
    if (weft_engine_save(e, NULL, s->q.tokens, N_PROMPT, "kept", &n, &bytes, &err)) fail_msg("%s", err.message);
    close_engine(&e);
    e = engine_of(s, WEFT_F16);
    assert_int_equal(weft_engine_restore(e, "kept", back, N_PROMPT, &n, &bytes, &err), WEFT_NOT_FOUND);
    assert_non_null(strstr(err.message, "or with other pages"));
    close_engine(&e);
    e = engine_of(s, WEFT_KV_Q8);
    if (weft_engine_restore(e, "kept", back, N_PROMPT, &n, &bytes, &err)) fail_msg("%s", err.message);
    assert_int_equal(n, N_PROMPT);
    assert_memory_equal(back, s->q.tokens, sizeof back);
    assert_int_equal(asked(e, &s->q, &again), N_PROMPT - 1);
    compare("from a slot", &s->q, &first, &again, 1);
    close_engine(&e);
}

/* A page that several sequences hold is copied before one of them writes on: the copy has the bytes, and the answers
 * are those of requests that came alone. */
static void a_fork_goes_on_from_the_same_bytes(void **state)
{
    scene *s = *state;
    ask all[4];
    answer alone[4], together[4];
    weft_engine_params p = small();
    p.kv_dtype = WEFT_KV_Q8;
    for (int i = 0; i < 4; i++) {
        simple(&all[i], N_PROMPT, 20);
        all[i].p.ignore_end = 1;
        all[i].p.sampler.temperature = 1;
        all[i].p.sampler.seed = (uint64_t)i;
        all[i].p.no_cache = 1;
    }
    weft_engine *e = open_engine(s->model, &p);
    run_alone(e, all, alone, 4);
    for (int i = 0; i < 4; i++) all[i].p.no_cache = 0;
    run_alone(e, all, together, 1);
    run_together(e, all, together, 4); /* 199 tokens of each: the last page is begun */
    for (int i = 0; i < 4; i++) assert_int_equal(together[i].n_cached, N_PROMPT - 1);
    compare("forked", all, alone, together, 4);
    close_engine(&e);
}

/* As shares of f16: heads of 64 and 128 in pages of 64 tokens. */
static void coded_pages_are_smaller(void **state)
{
    (void)state;
    for (int32_t dim = 64; dim <= 128; dim *= 2) {
        const weft_kv_group g = {.kind = WEFT_KV_FULL,
                                 .n_layers = 32,
                                 .n_kv_heads = 8,
                                 .head_dim_k = dim,
                                 .head_dim_v = dim,
                                 .page_tokens = 64};
        uint64_t f16, q8;
        assert_true(weft__kv_page_bytes(&g, WEFT_F16, &f16) && weft__kv_page_bytes(&g, WEFT_KV_Q8, &q8));
        assert_int_equal(f16, 2u * 32 * 8 * 2 * 64 * (unsigned)dim);
        assert_true((double)q8 <= 0.55 * (double)f16 && (double)q8 > 0.5 * (double)f16);
    }
}

static void an_engine_counts_what_they_take(void **state)
{
    scene *s = *state;
    weft_engine_params p = small();
    weft_engine_bytes f16 = {.size = sizeof f16}, q8 = {.size = sizeof q8};
    p.n_kv_tokens = 4096;
    assert_int_equal(weft_engine_count_bytes(s->model, &p, &f16, NULL), WEFT_OK);
    p.kv_dtype = WEFT_KV_Q8;
    assert_int_equal(weft_engine_count_bytes(s->model, &p, &q8, NULL), WEFT_OK);
    assert_int_equal(q8.kv_pages, f16.kv_pages);
    assert_true(q8.pages < f16.pages * 7 / 10); /* its heads are small, and a scale is four bytes */
}

static void what_no_kernel_takes_is_refused_by_name(void **state)
{
    (void)state;
    const weft_kv_group g = {
        .kind = WEFT_KV_FULL, .n_layers = 1, .n_kv_heads = 1, .head_dim_k = 2048, .head_dim_v = 64, .page_tokens = 64};
    const int32_t n_pages = 1;
    weft__kv_pool *pool;
    weft_error err = {0};
    assert_int_equal(weft__kv_pool_create(&g, 1, &n_pages, WEFT_KV_Q8, &pool, &err), WEFT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "heads of 2048"));
    assert_int_equal(weft__kv_pool_create(&g, 1, &n_pages, WEFT_KV_Q8 + 1, &pool, &err), WEFT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "KV type 129"));
}

static void types_have_names(void **state)
{
    (void)state;
    static const char *const names[] = {"f16", "f32", "q8"};
    static const uint32_t types[] = {WEFT_F16, WEFT_F32, WEFT_KV_Q8};
    char name[WEFT_KV_NAME_MAX];
    uint32_t type;
    weft_error err = {0};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weft_kv_type_parse(names[i], &type, &err), WEFT_OK);
        assert_int_equal(type, types[i]);
        assert_string_equal(weft_kv_type_name(type, name), names[i]);
    }
    assert_int_equal(weft_kv_type_parse("Q8", &type, NULL), WEFT_OK);
    assert_int_equal(weft_kv_type_parse("q8_0", &type, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "'q8_0'; f16, f32 and q8 are possible"));
    assert_string_equal(weft_kv_type_name(77, name), "77");
}

#define scene_test(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        scene_test(a_store_of_another_type_is_not_found),
        scene_test(a_slot_of_another_type_is_refused_by_name),
        scene_test(a_fork_goes_on_from_the_same_bytes),
        cmocka_unit_test(coded_pages_are_smaller),
        scene_test(an_engine_counts_what_they_take),
        cmocka_unit_test(what_no_kernel_takes_is_refused_by_name),
        cmocka_unit_test(types_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
