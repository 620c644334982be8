// SPDX-License-Identifier: Apache-2.0
/* adapt_store.c: claims about the store of adapters: versions, leases, eviction, and what is refused. */
#include "unit/adapt_store_fixture.h"

#include <math.h>
#include <pthread.h>

#include "base/clock.h"
#include "claims.h"

static void leases_share_what_is_the_same(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(10000);
    const char *path = write_adapter("a", 3, 4, 8, 0);
    add(s, "a", path, 0);
    add(s, "b", path, WEFT__ADAPT_LAZY);
    weft__adapt_lease *x = lease(s, "a", NAN), *y = lease(s, "b", 1), *z = lease(s, "a", 0.5f),
                      *none = lease(s, "a", 0);
    assert_ptr_equal(x, y);
    assert_ptr_not_equal(x, z);
    assert_null(none);
    assert_int_equal(n_packs, 2);
    weft__adapt_id ids[] = {weft__adapt_lease_id(x), weft__adapt_lease_id(z)};
    assert_memory_not_equal(&ids[0], &ids[1], sizeof *ids);
    weft__adapt_store_release(s, &x);
    weft__adapt_store_release(s, &y);
    weft__adapt_store_release(s, &z);
    weft__adapt_store_destroy(&s);
    assert_int_equal(n_unpacks, 2);
}

static void what_must_be_read_is_not_ready(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(10000);
    weft__adapt_ref asks[] = {{"a", 1, 0}, {"b", 1, 0}};
    weft__adapt_lease *l, *held;
    int ready = 1;
    add(s, "a", write_adapter("a", 3, 4, 8, 0), 0);
    add(s, "b", write_adapter("b", 5, 4, 8, 0), WEFT__ADAPT_LAZY);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weft__adapt_store_lease_ready(s, asks, 1 + i, &ready, &l, NULL), WEFT_OK);
        assert_true(!ready && !l && n_packs == 0);
    }
    held = lease(s, "a", 1);
    assert_int_equal(weft__adapt_store_lease_ready(s, asks, 1, &ready, &l, NULL), WEFT_OK);
    assert_true(ready && l == held);
    weft__adapt_store_release(s, &l);
    assert_int_equal(weft__adapt_store_lease_ready(s, asks, 2, &ready, &l, NULL), WEFT_OK);
    assert_true(!ready && !l);
    asks[0].scale = asks[1].scale = 0;
    assert_int_equal(weft__adapt_store_lease_ready(s, asks, 2, &ready, &l, NULL), WEFT_OK);
    assert_true(ready && !l);
    assert_int_equal(weft__adapt_store_lease_ready(s, &(weft__adapt_ref){"c", 1, 0}, 1, &ready, &l, NULL),
                     WEFT_NOT_FOUND);
    assert_true(!ready && !l);
    weft__adapt_store_release(s, &held);
    weft__adapt_store_destroy(&s);
}

/* Packing leaves the cores to the steps; who asked goes on as before. */
static void packing_gives_way(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(10000);
    int before = own_nice();
    add(s, "a", write_adapter("a", 3, 4, 8, 0), 0);
    weft__adapt_lease *x = lease(s, "a", 1);
#ifdef __linux__
    assert_true(pack_nice > before || before == 19);
#endif
    assert_int_equal(own_nice(), before);
    weft__adapt_store_release(s, &x);
    weft__adapt_store_destroy(&s);
}

static void a_reload_is_for_those_who_come_later(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(10000);
    const char *path = write_adapter("a", 3, 4, 8, 0);
    add(s, "a", path, 0);
    weft__adapt_lease *old = lease(s, "a", 1);
    const packed *was = weft__adapt_lease_packed(old);
    assert_int_equal(was->rank, 4);
    write_adapter("a", 3, 2, 8, 0);
    weft__adapt_lease *same = lease(s, "a", 1); /* nobody has loaded it again */
    assert_ptr_equal(same, old);
    assert_int_equal(weft__adapt_store_add(s, "a", path, 1, 0, NULL), WEFT_EXISTS);
    add(s, "a", path, WEFT__ADAPT_REPLACE);
    weft__adapt_lease *fresh = lease(s, "a", 1);
    assert_int_equal(((const packed *)weft__adapt_lease_packed(fresh))->rank, 2);
    assert_int_equal(was->rank, 4);
    assert_int_equal(n_unpacks, 0);
    weft__adapt_store_release(s, &old);
    assert_int_equal(n_unpacks, 0);
    weft__adapt_store_release(s, &same);
    assert_int_equal(n_unpacks, 1); /* with its last lease */
    assert_int_equal(weft__adapt_store_remove(s, "a", NULL), WEFT_OK);
    assert_int_equal(weft__adapt_store_remove(s, "a", NULL), WEFT_NOT_FOUND);
    assert_int_equal(no_lease(s, "a", "no adapter 'a'"), WEFT_NOT_FOUND);
    assert_int_equal(((const packed *)weft__adapt_lease_packed(fresh))->rank, 2);
    weft__adapt_store_release(s, &fresh);
    assert_int_equal(n_unpacks, 2);
    weft__adapt_store_destroy(&s);
}

/* Room beyond the budget, and less of it while an adapter is in use: those that none uses go at once, that one when it
 * is given back; the budget itself is never taken. */
static void room_is_moved(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(2000);
    weft__adapt_store_stats stats;
    weft__adapt_lease *held[4], *l;
    char name[16];
    weft__adapt_store_give(s, 5000);
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof name, "a%d", i);
        add(s, name, write_adapter(name, (uint64_t)i * 10 + 3, 2, 8, 0), WEFT__ADAPT_LAZY);
        l = lease(s, name, 1);
        if (i < 3) held[i] = l;
        else weft__adapt_store_release(s, &l);
    }
    weft__adapt_store_get_stats(s, &stats);
    assert_true(stats.n_bytes == 5000 && stats.room_bytes == 5000 && stats.n_evictions == 0);
    weft__adapt_store_give(s, 0);
    weft__adapt_store_get_stats(s, &stats);
    assert_true(stats.n_bytes == 3000 && stats.room_bytes == 2000 && stats.n_evictions == 2);
    assert_int_equal(no_lease(s, "a4", "in use fill their budget"), WEFT_BUSY);
    weft__adapt_store_release(s, &held[0]);
    weft__adapt_store_get_stats(s, &stats);
    assert_int_equal(stats.n_bytes, 2000);
    weft__adapt_store_release(s, &held[1]);
    weft__adapt_store_release(s, &held[2]);
    weft__adapt_store_get_stats(s, &stats);
    assert_int_equal(stats.n_bytes, 2000); /* nobody wants their room */
    weft__adapt_store_destroy(&s);
}

static void what_is_least_used_goes(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(3000);
    weft__adapt_store_stats stats;
    char name[16];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "a%d", i);
        add(s, name, write_adapter(name, (uint64_t)i * 10 + 3, 2, 8, 0), WEFT__ADAPT_LAZY);
    }
    weft__adapt_lease *held = lease(s, "a0", 1), *l;
    for (int i = 1; i < 3; i++) {
        snprintf(name, sizeof name, "a%d", i);
        l = lease(s, name, 1);
        weft__adapt_store_release(s, &l);
    }
    l = lease(s, "a1", 1); /* a2 is now the least used that nobody holds */
    weft__adapt_store_release(s, &l);
    assert_int_equal(n_packs, 3);
    l = lease(s, "a3", 1);
    weft__adapt_store_get_stats(s, &stats);
    assert_true(stats.n_packed == 3 && stats.n_bytes == 3000 && stats.n_evictions == 1 && stats.n_leases == 2);
    weft__adapt_lease *one = lease(s, "a1", 1);
    assert_int_equal(n_packs, 4); /* was still there */
    assert_int_equal(no_lease(s, "a2", "in use fill their budget"), WEFT_BUSY);
    weft__adapt_store_release(s, &one);
    one = lease(s, "a2", 1);
    weft__adapt_store_release(s, &one);
    weft__adapt_store_release(s, &l);
    weft__adapt_store_release(s, &held);
    weft__adapt_store_destroy(&s);
    assert_true(n_packs == 5 && n_unpacks == 5); /* what was refused its place had not been packed for that */
}

/* Gives a lease back after a while. */
typedef struct holder {
    weft__adapt_store *s;
    weft__adapt_lease *l;
} holder;

static void *give_back(void *arg)
{
    holder *h = arg;
    usleep(50000);
    weft__adapt_store_release(h->s, &h->l);
    return NULL;
}

static void room_is_waited_for(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(1500);
    weft__adapt_store_stats stats;
    pthread_t thread;
    add(s, "a", write_adapter("a", 3, 4, 8, 0), 0);
    add(s, "b", write_adapter("b", 5, 4, 8, 0), WEFT__ADAPT_LAZY);
    assert_true(weft__adapt_store_wait(s, PATIENCE_MS)); /* nobody was refused */
    for (int round = 0; round < 2; round++) {
        holder h = {s, lease(s, "a", 1)};
        weft__adapt_store_get_stats(s, &stats);
        uint64_t n_loads = stats.n_loads;
        for (int i = 0; i < 3; i++) assert_int_equal(no_lease(s, "b", "in use fill their budget"), WEFT_BUSY);
        weft__adapt_store_get_stats(s, &stats);
        assert_int_equal(stats.n_loads - n_loads, round ? 0 : 1); /* its size is known after the first */
        uint64_t began = weft__clock_ns();
        assert_false(weft__adapt_store_wait(s, 20));
        assert_true(weft__clock_ns() - began >= 20000000);
        assert_int_equal(pthread_create(&thread, NULL, give_back, &h), 0);
        assert_true(weft__adapt_store_wait(s, PATIENCE_MS)); /* woken: it would say if the time had passed */
        weft__adapt_lease *l = lease(s, "b", 1);
        weft__adapt_store_release(s, &l);
        pthread_join(thread, NULL);
    }
    weft__adapt_store_destroy(&s);
}

static void a_file_that_changed_is_not_read_in_silence(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(1000);
    const char *path = write_adapter("a", 3, 4, 8, 0);
    add(s, "a", path, 0);
    write_adapter("a", 4, 4, 8, 0);
    assert_int_equal(no_lease(s, "a", "load it again"), WEFT_STATE);
    add(s, "a", path, WEFT__ADAPT_REPLACE);
    weft__adapt_lease *l = lease(s, "a", 1);
    weft__adapt_store_release(s, &l);
    weft__adapt_store_destroy(&s);
    s = new_store(999);
    add(s, "a", path, 0);
    assert_int_equal(no_lease(s, "a", "needs 1000 bytes"), WEFT_LIMIT);
    weft__adapt_store_destroy(&s);
    s = new_store(4 * (K + N) * sizeof(float) / 8 - 1); /* not even in 4 bits: it is not read */
    assert_int_equal(weft__adapt_store_add(s, "a", path, 1, 0, NULL), WEFT_LIMIT);
    weft__adapt_store_destroy(&s);
}

static void speaks_of_the_name(const weft_error *err)
{
    assert_non_null(strstr(err->message, "adapter terse: "));
    assert_null(strstr(err->message, folder));
    assert_true(strlen(err->message) > strlen("adapter terse: "));
    assert_null(strstr(err->message, "terse: terse")); /* and says it once */
}

/* A file that is read when it is asked for, or for a client: what is wrong with it is told by its name; where it lies
 * is the operator's. */
static void who_asks_for_a_name_learns_no_path(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(1000);
    weft__adapt_ref ask = {"terse", 1};
    weft__adapt_lease *l;
    weft_error err = {0};
    FILE *f = fopen(place("bad"), "w");
    assert_non_null(f);
    fputs("malformed", f);
    fclose(f);
    add(s, "terse", place("bad"), WEFT__ADAPT_LAZY);
    for (int gone = 0; gone < 2; gone++) {
        assert_true(weft__adapt_store_lease(s, &ask, 1, &l, &err) != WEFT_OK);
        speaks_of_the_name(&err);
        assert_true(weft__adapt_store_add(s, "terse", place("bad"), 1, WEFT__ADAPT_DISCREET | WEFT__ADAPT_REPLACE,
                                          &err) != WEFT_OK);
        speaks_of_the_name(&err);
        assert_true(weft__adapt_store_add(s, "terse", place("bad"), 1, WEFT__ADAPT_REPLACE, &err) != WEFT_OK);
        assert_non_null(strstr(err.message, place("bad"))); /* who gave the path is told of it */
        unlink(place("bad"));
    }
    weft__adapt_store_destroy(&s);
}

/* Nor does he learn where the base lies, which an adapter of another base is held against. */
static void who_asks_for_a_name_learns_nothing_of_the_base_s_folders(void **state)
{
    (void)state;
    static const weft__adapt_packer packer = {NULL, pack, unpack};
    static const struct {
        const char *label, *says;
    } bases[] = {{"/home/operator/models/base.gguf", "; base.gguf is of 'qwen2'"},
                 {"../models/folder//", "; folder is of 'qwen2'"},
                 {"base.gguf", "; base.gguf is of 'qwen2'"}};
    const char *path = write_adapter("other", 3, 4, 8, 0);
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        weft__adapt_base base = base_with_weights();
        weft__adapt_store *s;
        weft_error err = {0};
        base.label = bases[i].label;
        base.arch = "qwen2";
        assert_int_equal(weft__adapt_store_create(&base, &made_names, &packer, 1000, &s, NULL), WEFT_OK);
        assert_int_equal(weft__adapt_store_add(s, "terse", path, 1, WEFT__ADAPT_DISCREET, &err), WEFT_ARGUMENT);
        if (!strstr(err.message, bases[i].says)) fail_msg("\"%s\" does not say \"%s\"", err.message, bases[i].says);
        assert_null(strstr(err.message, "models"));
        add(s, "lazy", path, WEFT__ADAPT_LAZY);
        assert_int_equal(no_lease(s, "lazy", bases[i].says), WEFT_ARGUMENT);
        weft__adapt_store_destroy(&s);
    }
}

static void names_are_plain(void **state)
{
    (void)state;
    static const char *const bad[] = {"", ".", "..", "../a", "a/b", "a:b", "a b", ".a", "a\n", "\xc3\xa4"};
    weft__adapt_store *s = new_store(1000);
    const char *path = write_adapter("a", 3, 4, 8, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(weft__adapt_store_add(s, bad[i], path, 1, 0, NULL), WEFT_ARGUMENT);
    assert_int_equal(weft__adapt_store_add(s, "a", path, NAN, 0, NULL), WEFT_ARGUMENT);
    assert_int_equal(weft__adapt_store_add(s, "a", place("absent"), 1, 0, NULL), WEFT_NOT_FOUND);
    assert_int_equal(weft__adapt_store_remove(s, "a", NULL), WEFT_NOT_FOUND);
    add(s, "a-1.2_Z", path, 0);
    weft__adapt_store_destroy(&s);
}

/* A name's own scale is looked at with the values that it multiplies, when they are read: here, not in a request that
 * gives none. */
static void a_scale_too_large_is_found_when_it_is_set(void **state)
{
    (void)state;
    weft__adapt_store *s = new_store(1000);
    const char *path = write_adapter("a", 3, 4, 8, 0);
    weft__adapt_lease *l;
    weft__adapt_ref ask = {"a", NAN, 0};
    weft_error err = {0};
    for (int discreet = 0; discreet < 2; discreet++) {
        uint32_t flags = discreet ? WEFT__ADAPT_DISCREET : 0;
        assert_int_equal(weft__adapt_store_add(s, "a", path, -1e30f, flags, &err), WEFT_ARGUMENT);
        assert_non_null(strstr(err.message, discreet ? "adapter a: blk.0.attn_q.weight: at a scale of -1e+30" : path));
        assert_non_null(strstr(err.message, "give a smaller scale"));
        assert_int_equal(weft__adapt_store_lease(s, &ask, 1, &l, &err), WEFT_NOT_FOUND); /* nothing has changed */
    }
    assert_int_equal(weft__adapt_store_add(s, "a", path, 2, 0, &err), WEFT_OK);
    assert_int_equal(weft__adapt_store_add(s, "a", path, 1e30f, WEFT__ADAPT_REPLACE, &err), WEFT_ARGUMENT);
    l = lease(s, "a", NAN); /* what was there serves on */
    assert_true(((packed *)weft__adapt_lease_packed(l))->b0 == 2 * 2 * made_value(4, 0));
    weft__adapt_store_release(s, &l);
    assert_int_equal(weft__adapt_store_add(s, "lazy", path, 1e30f, WEFT__ADAPT_LAZY, &err),
                     WEFT_OK); /* nobody has read it */
    ask.name = "lazy";
    assert_int_equal(weft__adapt_store_lease(s, &ask, 1, &l, &err), WEFT_ARGUMENT);
    weft__adapt_store_destroy(&s);
}

/* ---- allocations ---- */

static int use_all(void *arg)
{
    static const weft__adapt_packer packer = {NULL, pack, unpack};
    weft__adapt_store *s;
    weft__adapt_lease *l = NULL;
    const weft__adapt_ref asks[] = {{"a", 1, 0}, {"d", 0.5f, 0}};
    (void)arg;
    if (weft__adapt_store_create(&store_base, &made_names, &packer, 5000, &s, NULL)) return 0;
    int ok = !weft__adapt_store_add(s, "a", place("a"), 1, 0, NULL) &&
             !weft__adapt_store_add(s, "d", place("d"), 1, WEFT__ADAPT_LAZY, NULL) &&
             !weft__adapt_store_lease(s, asks, 2, &l, NULL);
    weft__adapt_store_release(s, &l);
    weft__adapt_store_destroy(&s);
    return ok;
}

static void refused_allocations_leave_nothing(void **state)
{
    (void)state;
    write_adapter("a", 3, 4, 8, 0);
    write_adapter("d", 11, 2, 3, 1);
    store_base = base_with_weights();
    assert_true(fail_each(use_all, NULL) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leases_share_what_is_the_same),
        cmocka_unit_test(what_must_be_read_is_not_ready),
        cmocka_unit_test(packing_gives_way),
        cmocka_unit_test(a_reload_is_for_those_who_come_later),
        cmocka_unit_test(what_is_least_used_goes),
        cmocka_unit_test(room_is_moved),
        cmocka_unit_test(room_is_waited_for),
        cmocka_unit_test(a_file_that_changed_is_not_read_in_silence),
        cmocka_unit_test(who_asks_for_a_name_learns_no_path),
        cmocka_unit_test(who_asks_for_a_name_learns_nothing_of_the_base_s_folders),
        cmocka_unit_test(names_are_plain),
        cmocka_unit_test(a_scale_too_large_is_found_when_it_is_set),
        cmocka_unit_test(refused_allocations_leave_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
