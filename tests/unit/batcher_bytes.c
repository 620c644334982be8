// SPDX-License-Identifier: Apache-2.0
/* batcher_bytes.c: an outline tells the bytes that the loaded model and an engine on it then have, reads no weight,
 * and runs nothing. */
#include "unit/fixture.h"
#include "unit/serve_hall.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static weft_model *opened(const char *shape, const char *path, uint32_t dtype, int outline)
{
    weft_model *model;
    weft_error err = {0};
    weft_model_params p;
    weft_model_params_default(&p);
    p.n_threads = 2;
    p.max_rows = 64;
    p.outline = outline;
    if (shape ? weft_model_synthetic(shape, dtype, &p, &model, &err) : weft_model_open(path, &p, &model, &err))
        fail_msg("%s", err.message);
    return model;
}

static weft_model_bytes bytes_of(const weft_model *model)
{
    weft_model_bytes b = {.size = sizeof b};
    assert_int_equal(weft_model_count_bytes(model, &b, NULL), WEFT_OK);
    return b;
}

/* Closes both. */
static void assert_alike(weft_model *outline, weft_model *loaded)
{
    const weft_model_bytes a = bytes_of(outline), b = bytes_of(loaded);
    weft_step_cost c = {.size = sizeof c}, d = {.size = sizeof d};
    assert_memory_equal(&a, &b, sizeof a);
    assert_true(a.packed > 0 && a.own > 0 && a.steps > 0);
    assert_int_equal(weft_model_step_cost(outline, 2, 100, 1, 2, WEFT_F16, &c, NULL), WEFT_OK);
    assert_int_equal(weft_model_step_cost(loaded, 2, 100, 1, 2, WEFT_F16, &d, NULL), WEFT_OK);
    assert_memory_equal(&c, &d, sizeof c);
    weft_model_close(&outline);
    weft_model_close(&loaded);
}

static void an_outline_tells_the_bytes_of_the_model(void **state)
{
    static const uint32_t types[] = {WEFT_Q4_0, WEFT_Q8_0, WEFT_Q6_K, WEFT_BF16, WEFT_F32};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        assert_alike(opened("tiny", NULL, types[i], 1), opened("tiny", NULL, types[i], 0));
}

/* A file of which all but the head is a hole has the same outline: what is read is the head. */
static void of_a_file_only_the_head_is_read(void **state)
{
    (void)state;
    char whole[] = "/tmp/weft-whole-XXXXXX", head[] = "/tmp/weft-head-XXXXXX";
    static char buffer[1 << 16];
    const int a = mkstemp(whole), b = mkstemp(head);
    struct stat s;
    assert_true(a >= 0 && b >= 0);
    close(a);
    assert_int_equal(weft_synthetic_write("tiny", WEFT_Q4_0, whole, NULL, NULL, NULL), WEFT_OK);
    assert_int_equal(stat(whole, &s), 0);
    FILE *f = fopen(whole, "rb");
    const size_t n = fread(buffer, 1, sizeof buffer, f); /* more than the head, and by far not the file */
    fclose(f);
    assert_true((off_t)(8 * n) < s.st_size);
    assert_int_equal(write(b, buffer, n), (ssize_t)n);
    assert_int_equal(ftruncate(b, s.st_size), 0);
    close(b);
    assert_alike(opened(NULL, head, 0, 1), opened(NULL, whole, 0, 0));
    unlink(whole);
    unlink(head);
}

static void an_engine_takes_what_was_counted(void **state)
{
    (void)state;
    weft_model *model = opened("tiny", NULL, WEFT_Q4_0, 0), *outline = opened("tiny", NULL, WEFT_Q4_0, 1);
    for (int i = 0; i < 3; i++) {
        weft_engine_params p = small();
        weft_engine_bytes told = {.size = sizeof told}, again = told;
        weft_engine_stats stats = {.size = sizeof stats};
        p.n_slots = 1 + 3 * i;
        p.n_ctx = 100 * (i + 1);
        p.n_kv_tokens = i < 2 ? (int64_t)p.n_slots * p.n_ctx : 0;
        p.kv_dtype = i == 1 ? WEFT_F32 : WEFT_F16;
        assert_int_equal(weft_engine_count_bytes(outline, &p, &told, NULL), WEFT_OK);
        assert_int_equal(weft_engine_count_bytes(model, &p, &again, NULL), WEFT_OK);
        assert_memory_equal(&told, &again, sizeof told);
        weft_engine *e = open_engine(model, &p);
        weft_engine_get_stats(e, &stats);
        assert_int_equal(stats.kv_pages, told.kv_pages);
        assert_int_equal(stats.n_slots, told.n_slots);
        assert_int_equal(stats.n_ctx, told.n_ctx);
        assert_int_equal(stats.memory.scratch.bytes, told.scratch);
        assert_int_equal(stats.memory.weights.bytes, told.weights);
        close_engine(&e);
        /* a page has keys and values of 2 layers, 2 heads of 64, for as many tokens as the pages have in all */
        const uint64_t token = 2u * 2 * 2 * 64 * (p.kv_dtype == WEFT_F32 ? 4 : 2);
        assert_true(told.pages >= token * (uint64_t)told.n_kv_tokens);
        assert_int_equal(told.pages % (uint64_t)told.kv_pages, 0);
        assert_int_equal(told.pages / (uint64_t)told.kv_pages % token, 0);
    }
    weft_engine_params p = small();
    weft_engine_bytes told = {.size = sizeof told};
    weft_error err;
    p.n_ctx = 1 << 20;
    assert_int_equal(weft_engine_count_bytes(outline, &p, &told, &err), WEFT_LIMIT);
    weft_model_close(&model);
    weft_model_close(&outline);
}

static uint64_t held_by(const weft_model *model)
{
    weft_engine_params p = small();
    weft_engine_bytes told = {.size = sizeof told};
    assert_int_equal(weft_engine_count_bytes(model, &p, &told, NULL), WEFT_OK);
    return told.weights;
}

/* Of a file packed weights, and what steps read of its own; weights that were made stay beside what is packed of
 * them. */
static void weights_are_what_is_in_memory(void **state)
{
    (void)state;
    char path[] = "/tmp/weft-held-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(weft_synthetic_write("tiny", WEFT_Q4_0, path, NULL, NULL, NULL), WEFT_OK);
    for (int outline = 0; outline < 2; outline++) {
        weft_model *made = opened("tiny", NULL, WEFT_Q4_0, outline), *file = opened(NULL, path, 0, outline);
        const weft_model_bytes b = bytes_of(file), c = bytes_of(made);
        weft_model_info info = {.size = sizeof info};
        assert_int_equal(weft_model_describe(file, &info, NULL), WEFT_OK);
        assert_int_equal(held_by(file), b.packed + b.own);
        assert_int_equal(held_by(made), c.packed + info.n_bytes);
        weft_model_close(&made);
        weft_model_close(&file);
    }
    unlink(path);
}

/* 32 GB of weights are no matter to it. */
static void an_outline_takes_no_memory_and_runs_nothing(void **state)
{
    (void)state;
    weft_model *outline = opened("llama-3.1-8b", NULL, WEFT_F32, 1);
    weft_session *session;
    weft_engine *engine;
    weft_error err;
    assert_true(bytes_of(outline).packed + bytes_of(outline).own > 32000000000u);
    assert_int_equal(weft_session_new(outline, NULL, &session, &err), WEFT_STATE);
    assert_non_null(strstr(err.message, "outline"));
    weft_engine_params p = small();
    assert_int_equal(weft_engine_new(outline, &p, &engine, &err), WEFT_STATE);
    weft_model_close(&outline);
}

static int never_told(void *arg, const weft_event *event)
{
    (void)arg;
    fail_msg("an event of kind %d", (int)event->kind);
    return 0;
}

/* It fails as a real one would, opens nothing, and runs nothing. */
static void a_rehearsal_shows_whether_an_engine_could_be_made(void **state)
{
    (void)state;
    weft_model *outline = opened("llama-3.1-8b", NULL, WEFT_F32, 1), *loaded = opened("tiny", NULL, WEFT_Q4_0, 0);
    weft_engine *engine;
    weft_error err;
    weft_engine_params p = small(), wrong;
    p.rehearsal = 1;
    p.store_dir = "/nonexistent/store";
    p.trace = "/nonexistent/trace";
    wrong = p;
    wrong.n_ctx = WEFT_CTX_MAX;
    assert_int_equal(weft_engine_new(outline, &wrong, &engine, &err), WEFT_LIMIT);
    wrong = p;
    wrong.store_bytes = 1000;
    wrong.swap_bytes = 251;
    assert_int_equal(weft_engine_new(outline, &wrong, &engine, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "250 at most"));
    assert_int_equal(weft_engine_new(loaded, &p, &engine, &err), WEFT_ARGUMENT);
    assert_non_null(strstr(err.message, "rehearsal"));
    assert_int_equal(weft_engine_new(outline, &p, &engine, &err), WEFT_OK);
    weft_request_params r;
    uint64_t id;
    weft_request_params_default(&r);
    r.tokens = (const int32_t[]){1};
    r.n_tokens = 1;
    r.event = never_told;
    assert_int_equal(weft_engine_submit(engine, &r, &id, NULL, &err), WEFT_STATE);
    assert_int_equal(weft_engine_adapter_add(engine, "a", "/nonexistent", 1, 0, &err), WEFT_NOT_FOUND);
    weft_engine_free(&engine);
    weft_model_close(&outline);
    weft_model_close(&loaded);
}

static int open_outline(void *arg)
{
    weft_model_params p;
    weft_model_params_default(&p);
    p.n_threads = 1;
    p.max_rows = 8;
    p.outline = 1;
    weft_model *model;
    weft_model_bytes b = {.size = sizeof b};
    (void)arg;
    if (weft_model_synthetic("tiny-128", WEFT_Q4_0, &p, &model, NULL)) return 0;
    const int ok = !weft_model_count_bytes(model, &b, NULL);
    weft_model_close(&model);
    return ok;
}

static void without_memory_it_fails(void **state)
{
    (void)state;
    fail_some(open_outline, NULL, 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_outline_tells_the_bytes_of_the_model),
        cmocka_unit_test(of_a_file_only_the_head_is_read),
        cmocka_unit_test(an_engine_takes_what_was_counted),
        cmocka_unit_test(weights_are_what_is_in_memory),
        cmocka_unit_test(an_outline_takes_no_memory_and_runs_nothing),
        cmocka_unit_test(a_rehearsal_shows_whether_an_engine_could_be_made),
        cmocka_unit_test(without_memory_it_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
