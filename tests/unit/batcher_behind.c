// SPDX-License-Identifier: Apache-2.0
/* batcher_behind.c: a model and its engine that are made in the background say piece by piece how far they are, none of
 * the pieces large; and the engine's thread does not give way to others. */
#include "unit/fixture.h"
#include "unit/own_nice.h"
#include "unit/serve_hall.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/background.h"

enum { PIECE_MOST = 1 << 20 };

static _Atomic uint64_t told, largest;

void __real_weft__background_did(uint64_t n_bytes);
void __wrap_weft__background_did(uint64_t n_bytes);
void __wrap_weft__background_did(uint64_t n_bytes)
{
    if (weft__background_is()) {
        told += n_bytes;
        if (n_bytes > largest) largest = n_bytes;
    }
    __real_weft__background_did(n_bytes);
}

typedef struct loaded {
    char path[64], store[64];
    weft_model *model;
    weft_engine *engine;
    int nice;
} loaded;

static void make_all(void *arg)
{
    loaded *l = arg;
    weft_error err = {0};
    weft_model_params p;
    weft_model_params_default(&p);
    p.n_threads = 2;
    p.max_rows = 64;
    p.share_threads = p.in_background = 1;
    l->nice = own_nice();
    if (weft_model_open(l->path, &p, &l->model, &err)) fail_msg("%s", err.message);
    weft_engine_params e = small();
    if (*l->store) e.store_dir = l->store;
    if (weft_engine_new(l->model, &e, &l->engine, &err)) fail_msg("%s", err.message);
}

static atomic_int nice_of_engine;

static int on_event_nice(void *arg, const weft_event *e)
{
    if (e->kind == WEFT_EVENT_TOKEN) nice_of_engine = own_nice();
    return on_event(arg, e);
}

static void engine_has_nice(weft_engine *e, int nice)
{
    ask q;
    answer a;
    simple(&q, 3, 4);
    q.p.event = on_event_nice;
    nice_of_engine = nice + 1;
    assert_int_equal(submit(e, &q, &a, NULL), WEFT_OK);
    wait_all();
    assert_int_equal(a.n, 4);
    assert_int_equal(nice_of_engine, nice);
}

static uint64_t load(loaded *l)
{
    const int before = own_nice();
    told = largest = 0;
    weft__background_run(make_all, l);
    assert_true(largest <= PIECE_MOST);
#ifdef __linux__
    assert_int_equal(l->nice, before + WEFT__BACKGROUND_NICE < 19 ? before + WEFT__BACKGROUND_NICE : 19);
#endif
    engine_has_nice(l->engine, before);
    return told;
}

static void end(loaded *l)
{
    close_engine(&l->engine);
    weft_model_close(&l->model);
}

static void loading_goes_in_pieces(void **state)
{
    (void)state;
    loaded l = {.path = "/tmp/weft-behind-XXXXXX"};
    const int fd = mkstemp(l.path);
    weft_model_bytes bytes = {.size = sizeof bytes};
    weft_model_info info = {.size = sizeof info};
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(weft_synthetic_write("tiny", WEFT_Q8_0, l.path, NULL, NULL, NULL), WEFT_OK);
    const uint64_t without_store = load(&l);
    assert_int_equal(weft_model_count_bytes(l.model, &bytes, NULL), WEFT_OK);
    assert_int_equal(weft_model_describe(l.model, &info, NULL), WEFT_OK);
    assert_true(without_store >= bytes.packed); /* which are told as they are packed */
    end(&l);
    snprintf(l.store, sizeof l.store, "/tmp/weft-behind-XXXXXX");
    assert_non_null(mkdtemp(l.store));
    assert_true(load(&l) >= without_store + info.n_bytes); /* and all are read for the store's key */
    end(&l);
    remove_folder(l.store);
    unlink(l.path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(loading_goes_in_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
