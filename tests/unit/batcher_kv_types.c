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

/* Each is another one's neighbour in some way: a format, the values' alone, a layer that stays in F16. */
static const uint32_t types[] = {WEFT_KV_Q8,
                                 WEFT_F16,
                                 WEFT_KV_TYPE(WEFT_KV_Q8, WEFT_KV_Q4, 0, 0),
                                 WEFT_KV_TYPE(WEFT_KV_Q8, WEFT_KV_Q4, 1, 0),
                                 WEFT_KV_Q4,
                                 WEFT_BF16,
                                 WEFT_KV_F8};
enum { N_TYPES = sizeof types / sizeof *types };

static void a_store_of_another_type_is_not_found(void **state)
{
    scene *s = *state;
    answer first, again;
    for (int i = 0; i < 2 * N_TYPES; i++) { /* twice each */
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
    for (int t = 0; t < N_TYPES; t++) {
        p.kv_dtype = types[t];
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
}

/* As shares of f16, of a layer and of a model of 32: heads of 64 and more in pages of 64 tokens. */
static void coded_pages_are_smaller(void **state)
{
    static const struct {
        const char *name;
        double layer, model; /* at most */
    } claims[] = {{"q8", 0.55, 0.55}, {"q4", 0.30, 0.38}, {"k=q8,v=q4", 0.42, 0.49}, {"f8", 0.5, 0.5}, {"bf16", 1, 1}};
    static const int32_t heads[] = {64, 80, 96, 112, 128, 256, 512};
    (void)state;
    for (size_t h = 0; h < sizeof heads / sizeof *heads; h++) {
        const weft_kv_group g = {.kind = WEFT_KV_FULL,
                                 .n_layers = 32,
                                 .n_kv_heads = 8,
                                 .head_dim_k = heads[h],
                                 .head_dim_v = heads[h],
                                 .page_tokens = 64};
        uint64_t f16, all;
        assert_true(weft__kv_page_bytes(&g, WEFT_F16, &f16));
        assert_int_equal(f16, 2u * 32 * 8 * 2 * 64 * (unsigned)heads[h]);
        for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
            uint32_t type;
            assert_int_equal(weft_kv_type_parse(claims[i].name, &type, NULL), WEFT_OK);
            assert_true(weft__kv_page_bytes(&g, type, &all));
            assert_true((double)all <= claims[i].model * (double)f16 &&
                        (double)all > 0.9 * claims[i].model * (double)f16);
            assert_true((double)weft_kv_layer_bytes(type, &g, 5) * 32 <= claims[i].layer * (double)f16);
        }
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
    assert_int_equal(weft__kv_pool_create(&g, 1, &n_pages, WEFT_KV_F8 + 1, &pool, &err), WEFT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "KV type 131"));
}

static void types_have_names(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name; /* NULL: the same */
        uint32_t type;
    } names[] = {{"f16", NULL, WEFT_F16},
                 {"f32", NULL, WEFT_F32},
                 {"bf16", NULL, WEFT_BF16},
                 {"f8", NULL, WEFT_KV_F8},
                 {"q8", NULL, WEFT_KV_Q8},
                 {"Q8", "q8", WEFT_KV_Q8},
                 {"q4", NULL, WEFT_KV_Q4 | 2u << 16 | 2u << 24},
                 {"q4,edges=2", "q4", WEFT_KV_Q4 | 2u << 16 | 2u << 24},
                 {"q4,edges=0", NULL, WEFT_KV_Q4},
                 {"q4,edges=3/0", NULL, WEFT_KV_Q4 | 3u << 16},
                 {"q8,edges=255", NULL, WEFT_KV_Q8 | 255u << 16 | 255u << 24},
                 {"v=q4,k=q8", "k=q8,v=q4", WEFT_KV_Q8 | (WEFT_KV_Q4 + 1) << 8 | 2u << 16 | 2u << 24},
                 {"k=q8,v=q8", "q8", WEFT_KV_Q8},
                 {"f16,edges=4", "f16", WEFT_F16}};
    static const char *const wrong[] = {"",
                                        "q8_0",
                                        "q9",
                                        "k=q8",
                                        "v=q4",
                                        "k=q8,v=",
                                        "q8,q4",
                                        "q8,v=q4",
                                        "k=q8,k=q8",
                                        "q8,",
                                        "q4,edges=",
                                        "q4,edges=256",
                                        "q4,edges=1/",
                                        "q4,edges=-1",
                                        "edges=2,q4",
                                        "q4,edges=1,edges=2",
                                        ",q8",
                                        "q4 "};
    char name[WEFT_KV_NAME_MAX];
    uint32_t type;
    weft_error err = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (weft_kv_type_parse(names[i].text, &type, &err)) fail_msg("%s", err.message);
        assert_int_equal(type, names[i].type);
        assert_string_equal(weft_kv_type_name(type, name), names[i].name ? names[i].name : names[i].text);
        assert_true(weft_kv_is_type(type));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (weft_kv_type_parse(wrong[i], &type, &err) != WEFT_ARGUMENT) fail_msg("'%s' is taken", wrong[i]);
    assert_int_equal(weft_kv_type_parse("q8_0", &type, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "'q8_0'; f16, f32, bf16, f8, q8 and q4 are possible"));
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
