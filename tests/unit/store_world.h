// SPDX-License-Identifier: Apache-2.0
/* store_world.h: what the tests of the disk store share: a store in a folder of its own with a world to fill it from
 * (kv_world.h), and short ways to save and to fetch. What is asked is waited for. One thread. */
#ifndef WEFT_TESTS_STORE_WORLD_H
#define WEFT_TESTS_STORE_WORLD_H

#include "kv_world.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kv/store.h"
#include "kv_load.h"

static const weft__kv_key MODEL = {{11, 12}};
static const uint64_t PLENTY = 1u << 30;
static char folder[64];

static inline weft__kv_layout layout_of(const world *w)
{
    weft__kv_layout layout;
    assert_int_equal(weft__kv_layout_of(w->pool, MODEL, &layout, NULL), WEFT_OK);
    return layout;
}

static inline weft__kv_store *open_store(const world *w, uint64_t cap)
{
    weft__kv_store *store;
    weft_error err = {0};
    weft__kv_layout layout = layout_of(w);
    if (weft__kv_store_open(folder, cap, &layout, &store, &err)) fail_msg("%s", err.message);
    return store;
}

/* ---- the fixture ---- */

/* A store in a folder of its own, a world to fill it from, and tokens: 100, 101 ... */
typedef struct scene {
    world w;
    weft__kv_store *store;
    int32_t t[CTX];
    size_t live; /* blocks of memory before it was set up */
} scene;

static inline void series(int32_t *tokens, int32_t from, int32_t n)
{
    for (int32_t i = 0; i < n; i++) tokens[i] = from + i;
}

static inline world one_group(void)
{
    return (world){.n_groups = 1, .group = {full(16)}, .n_pages = {20}};
}

static inline void scene_open(scene *e, world w)
{
    e->w = w;
    series(e->t, 100, CTX);
    open_world(&e->w);
    e->store = open_store(&e->w, PLENTY);
}

static inline void scene_close(scene *e)
{
    weft__kv_store_close(&e->store, 0);
    close_world(&e->w);
}

static inline void scene_reopen(scene *e, uint64_t cap)
{
    weft__kv_store_close(&e->store, 0);
    e->store = open_store(&e->w, cap);
}

static inline int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/weft-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static inline int set_up_with(void **state, world w)
{
    static scene e;
    e.live = weft__alloc_live();
    *state = &e;
    if (make_folder(state)) return -1;
    scene_open(&e, w);
    return 0;
}

static inline int set_up(void **state)
{
    return set_up_with(state, one_group());
}

/* Fails when a block of memory stays behind. */
static inline int tear_down(void **state)
{
    scene *e = *state;
    scene_close(e);
    return remove_folder(state) || weft__alloc_live() != e->live;
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
#define IN_A_STORE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* ---- filling and asking ---- */

/* What a callback was told; one question at a time, then weft__kv_store_flush. */
typedef struct answer {
    weft_status status;
    weft__kv_snapshot *snapshot;
    int n;
} answer;

static inline void hear(void *arg, weft_status status, const char *message, weft__kv_snapshot *snapshot)
{
    answer *a = arg;
    (void)message;
    a->status = status;
    a->snapshot = snapshot;
    a->n++;
}

/* A snapshot of what the sequence holds, in one piece. */
static inline weft__kv_snapshot *take(const weft__kv_layout *layout, const int32_t *tokens, int32_t n,
                                      const weft__kv_seq *seq)
{
    weft__kv_snapshot *s;
    uint64_t at = 0;
    assert_int_equal(weft__kv_snapshot_begin(layout, ROOT, tokens, n, seq, &s, NULL), WEFT_OK);
    assert_int_equal(weft__kv_snapshot_copy(s, layout, seq, &at, UINT64_MAX), 1);
    return s;
}

/* Evaluates tokens[0, n) in steps of 8 and takes a snapshot. */
static inline weft__kv_snapshot *evaluate(world *w, const int32_t *tokens, int32_t n)
{
    weft__kv_layout layout = layout_of(w);
    run r = {0};
    begin(w, &r, ROOT);
    for (int32_t at = 0; at < n; at += 8) assert_true(extend(w, &r, tokens + at, n - at < 8 ? n - at : 8));
    weft__kv_snapshot *s = take(&layout, tokens, n, r.seq);
    weft__kv_seq_destroy(&r.seq);
    return s;
}

/* Saves under a name, or as a prefix, and waits for it. */
static inline weft_status save(scene *e, const int32_t *tokens, int32_t n, const char *name)
{
    answer a = {.status = WEFT_INTERNAL};
    weft__kv_snapshot *s = evaluate(&e->w, tokens, n);
    assert_int_equal(weft__kv_store_put(e->store, &s, name, hear, &a, NULL), WEFT_OK);
    assert_null(s);
    weft__kv_store_flush(e->store, 0);
    assert_int_equal(a.n, 1);
    return a.status;
}

/* Fetches a slot, or what serves tokens[0, n) best; *got receives a snapshot that the caller frees, or NULL. */
static inline weft_status fetch(weft__kv_store *store, const int32_t *tokens, int32_t n, const char *name,
                                weft__kv_snapshot **got)
{
    answer a = {.status = WEFT_INTERNAL};
    weft_status st = name ? weft__kv_store_fetch_slot(store, name, hear, &a, NULL)
                          : weft__kv_store_fetch(store, ROOT, tokens, n, hear, &a, NULL);
    *got = NULL;
    if (st) return st;
    weft__kv_store_flush(store, 0);
    assert_int_equal(a.n, 1);
    *got = a.snapshot;
    return a.status;
}

/* Loads what a snapshot serves of tokens, holds every page against the truth, goes on from there. Returns how many. */
static inline int32_t use(world *w, const weft__kv_snapshot *s, const int32_t *tokens, int32_t n)
{
    weft__kv_layout layout = layout_of(w);
    int32_t serves = weft__kv_snapshot_match(s, &layout, ROOT, tokens, n);
    run r = {0};
    if (serves == 0) return 0;
    begin(w, &r, ROOT);
    assert_int_equal(kv_load(s, &layout, serves, r.seq), WEFT_OK);
    assert_int_equal(weft__kv_seq_length(r.seq), serves);
    memcpy(r.token, tokens, (size_t)serves * sizeof *tokens);
    check_run(w, &r);
    int32_t next = 1;
    assert_true(extend(w, &r, &next, 1));
    check_run(w, &r);
    weft__kv_seq_destroy(&r.seq);
    return serves;
}

/* Fetches and uses; the number of tokens that could be. */
static inline int32_t reuse(scene *e, const int32_t *tokens, int32_t n)
{
    weft__kv_snapshot *s;
    if (fetch(e->store, tokens, n, NULL, &s)) return 0;
    int32_t got = use(&e->w, s, tokens, n);
    weft__kv_snapshot_free(&s);
    return got;
}

/* Names of our files, of any kind; returns how many and the last one's path. */
static inline int files(char kind, char path[512])
{
    int n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *d; (d = readdir(dir));)
        if (d->d_name[0] == kind && d->d_name[1] == '-') n++, snprintf(path, 512, "%s/%s", folder, d->d_name);
    closedir(dir);
    return n;
}

static inline weft__kv_store_stats stats(weft__kv_store *store)
{
    weft__kv_store_stats s;
    weft__kv_store_get_stats(store, &s);
    return s;
}

#endif
