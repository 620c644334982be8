// SPDX-License-Identifier: Apache-2.0
/* kv_swap.c: pages of parked sequences: whatever leaves the pool comes back as it was, to the sequence that had it and
 * to no other, or is known to be lost; within its bounds in memory and on the disk; and the rule by which it pays. */
#include "store_world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/random.h"
#include "claims.h"
#include "kv/pool.h"
#include "kv/swap.h"

#define N_OPS CLAIMS_REPEATED(CLAIMS_SWEPT(3000, 60000), 1500, 300)

enum { SLOT = 4096, N_RUNS = 6 };

static void no_news(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

static atomic_int n_news;

static weft__kv_swap *open_swap(scene *e, uint64_t limit)
{
    weft__kv_swap *swap = NULL;
    weft_error err = {0};
    if (weft__kv_swap_create(e->w.pool, e->store, limit, no_news, &n_news, &swap, &err)) fail_msg("%s", err.message);
    return swap;
}

/* The store first: it calls back. */
static void close_swap(scene *e, weft__kv_swap **swap)
{
    weft__kv_store_close(&e->store, 0);
    weft__kv_swap_destroy(swap);
}

static weft__kv_swap_stats counts(const weft__kv_swap *swap)
{
    weft__kv_swap_stats s;
    weft__kv_swap_get_stats(swap, &s);
    return s;
}

static void park(scene *e, weft__kv_swap *swap, run *r, weft__kv_parked **parked, int in_tree)
{
    const int32_t n = weft__kv_seq_length(r->seq);
    if (in_tree) weft__kv_prefix_insert(e->w.tree, r->root, r->token, n, r->seq);
    *parked = weft__kv_swap_park(swap, r->seq);
    weft__kv_seq_trim(r->seq, 0);
}

/* Until it is back, 1; or something of it is lost, -1. */
static int come_back(scene *e, weft__kv_swap *swap, weft__kv_parked *parked, uint64_t budget)
{
    int end;
    while (!(end = weft__kv_swap_end(swap, parked)))
        if (!weft__kv_swap_some(swap, budget)) weft__kv_store_flush(e->store, 0);
    return end;
}

/* Takes all that can be had, and gives it back: what was idle has left. */
static void crowd_out(world *w)
{
    int32_t taken[2][64], n[2] = {0, 0};
    for (int g = 0; g < w->n_groups; g++)
        while (n[g] < 64 && (taken[g][n[g]] = weft__kv_page_take(w->pool, g)) >= 0) n[g]++;
    for (int g = 0; g < w->n_groups; g++)
        while (n[g] > 0) weft__kv_page_release(w->pool, g, taken[g][--n[g]]);
}

static void settle(scene *e, weft__kv_swap *swap)
{
    weft__kv_store_flush(e->store, 0);
    weft__kv_swap_some(swap, 0);
}

/* The descriptor of the file without a name. */
static int nameless_file(struct stat *st)
{
    char path[64], target[256];
    for (int fd = 3; fd < 256; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        const ssize_t n = readlink(path, target, sizeof target - 1);
        if (n <= 0) continue;
        target[n] = 0;
        if (!strncmp(target, folder, strlen(folder)) && strstr(target, "(deleted)") && !fstat(fd, st)) return fd;
    }
    return -1;
}

/* ---- what comes back ---- */

static void pages_leave_and_come_back(void **state)
{
    scene *e = *state;
    run r = {0};
    weft__kv_parked *parked;
    weft__kv_swap *swap = open_swap(e, 1 << 20);
    for (int in_tree = 0; in_tree < 2; in_tree++) {
        begin(&e->w, &r, ROOT);
        assert_true(extend(&e->w, &r, e->t, 70)); /* four pages and a part of one */
        park(e, swap, &r, &parked, in_tree);
        assert_int_equal(counts(swap).staged_bytes, in_tree ? 0 : 5 * 128);
        crowd_out(&e->w);
        settle(e, swap);
        assert_int_equal(counts(swap).pages_out, 5 * (in_tree + 1));
        assert_int_equal(counts(swap).used_bytes, 5 * SLOT);
        assert_int_equal(weft__kv_swap_has(swap, parked, 69), 69);
        assert_int_equal(weft__kv_swap_has(swap, parked, 100), 70);
        assert_true(weft__kv_swap_begin(swap, parked, r.seq, 70));
        assert_int_equal(weft__kv_seq_length(r.seq), 0);
        assert_int_equal(come_back(e, swap, parked, in_tree ? 1 : UINT64_MAX), 1);
        assert_int_equal(weft__kv_seq_length(r.seq), 70);
        check_run(&e->w, &r);
        weft__kv_swap_forget(swap, &parked);
        settle(e, swap);
        assert_int_equal(counts(swap).used_bytes, 0);
        assert_true(extend(&e->w, &r, e->t, 20));
        check_run(&e->w, &r);
        weft__kv_seq_destroy(&r.seq);
        weft__kv_prefix_forget(e->w.tree, NULL);
    }
    struct stat st;
    assert_true(nameless_file(&st) >= 0);
    assert_int_equal(st.st_size, 0);
    close_swap(e, &swap);
}

/* What is still there is not copied: nothing goes to the disk. */
static void what_stays_in_the_tree_is_shared(void **state)
{
    scene *e = *state;
    run r = {0};
    weft__kv_parked *parked;
    weft__kv_swap *swap = open_swap(e, 1 << 20);
    begin(&e->w, &r, ROOT);
    assert_true(extend(&e->w, &r, e->t, 70));
    park(e, swap, &r, &parked, 1);
    assert_int_equal(weft__kv_pool_idle_pages(e->w.pool, 0), 5);
    assert_true(weft__kv_swap_begin(swap, parked, r.seq, 70));
    assert_int_equal(weft__kv_swap_end(swap, parked), 1); /* at once */
    check_run(&e->w, &r);
    assert_int_equal(weft__kv_pool_idle_pages(e->w.pool, 0), 1); /* the part of a page was copied, to be written on */
    assert_true(extend(&e->w, &r, e->t, 20));
    check_run(&e->w, &r);
    assert_int_equal(counts(swap).pages_out + counts(swap).pages_in, 0);
    weft__kv_swap_forget(swap, &parked);
    weft__kv_seq_destroy(&r.seq);
    close_swap(e, &swap);
}

/* Some give way and come back, some leave, at any time, beside others that take their pages. */
static void random_runs(scene *e, uint64_t seed, uint64_t limit)
{
    run runs[N_RUNS] = {{0}};
    weft__kv_parked *parked[N_RUNS] = {NULL};
    int32_t n_parked[N_RUNS] = {0};
    int n_back = 0, n_lost = 0;
    weft__rng rng;
    weft__rng_seed(&rng, seed);
    weft__kv_swap *swap = open_swap(e, limit);
    for (int op = 0; op < N_OPS; op++) {
        const int k = (int)weft__rng_below(&rng, N_RUNS);
        run *r = &runs[k];
        int32_t tokens[16], n = 1 + (int32_t)weft__rng_below(&rng, 16);
        for (int32_t i = 0; i < n; i++) tokens[i] = (int32_t)weft__rng_below(&rng, 2);
        weft__kv_swap_some(swap, weft__rng_below(&rng, 300));
        if (op % 8 == 0) weft__kv_store_flush(e->store, 0); /* else the disk never keeps up */
        if (!r->seq) {
            begin(&e->w, r, ROOT);
        } else if (parked[k] && weft__kv_swap_is_begun(parked[k])) {
            const int end = weft__rng_below(&rng, 8) ? weft__kv_swap_end(swap, parked[k]) : 0;
            if (end == 0 && weft__rng_below(&rng, 4) == 0) weft__kv_swap_stop(swap, parked[k]);
            n_back += end > 0;
            n_lost += end < 0;
            if (end > 0) {
                check_run(&e->w, r);
                weft__kv_swap_forget(swap, &parked[k]);
            }
        } else if (parked[k]) {
            const int32_t has = weft__kv_swap_has(swap, parked[k], n_parked[k] - (int32_t)weft__rng_below(&rng, 2));
            if (weft__rng_below(&rng, 4) == 0) weft__kv_swap_forget(swap, &parked[k]);
            else if (has) (void)weft__kv_swap_begin(swap, parked[k], r->seq, has);
        } else if (weft__rng_below(&rng, 5) == 0 && weft__kv_seq_length(r->seq) > 0) {
            n_parked[k] = weft__kv_seq_length(r->seq);
            park(e, swap, r, &parked[k], weft__rng_below(&rng, 4) > 0);
        } else if (weft__kv_seq_length(r->seq) + n > CTX || weft__rng_below(&rng, 12) == 0) {
            weft__kv_prefix_insert(e->w.tree, r->root, r->token, weft__kv_seq_length(r->seq), r->seq);
            weft__kv_seq_destroy(&r->seq);
        } else {
            (void)extend(&e->w, r, tokens, n);
            check_run(&e->w, r);
        }
        const weft__kv_swap_stats s = counts(swap);
        assert_true(s.used_bytes <= s.limit_bytes && s.staged_bytes <= WEFT__KV_SWAP_STAGING);
    }
    print_message("%d came back, %d lost something, %llu pages out, %llu in, %llu lost\n", n_back, n_lost,
                  (unsigned long long)counts(swap).pages_out, (unsigned long long)counts(swap).pages_in,
                  (unsigned long long)counts(swap).pages_lost);
    assert_true(n_back > 0 && counts(swap).pages_in > 0);
    assert_true(limit > 40 * SLOT || counts(swap).pages_lost > 0);
    struct stat st;
    assert_true(nameless_file(&st) >= 0 && (uint64_t)st.st_size <= limit);
    for (int k = 0; k < N_RUNS; k++) {
        weft__kv_swap_forget(swap, &parked[k]);
        weft__kv_seq_destroy(&runs[k].seq);
    }
    close_swap(e, &swap);
}

static void runs_that_give_way_go_on(void **state)
{
    random_runs(*state, 1, 1 << 20);
}

static void runs_that_have_little_room_on_the_disk(void **state)
{
    random_runs(*state, 2, 4 * SLOT);
}

static int set_up_windows(void **state)
{
    const world w = {.n_groups = 2, .group = {full(16), windowed(8, 20)}, .n_pages = {20, 14}};
    return set_up_with(state, w);
}

static void runs_with_windows(void **state)
{
    random_runs(*state, 3, 1 << 20);
}

/* ---- to whom ---- */

/* Two whose pages changed places on the disk: neither gets the other's, and both know. */
static void nobody_gets_the_pages_of_another(void **state)
{
    scene *e = *state;
    run r[2] = {{0}, {0}};
    weft__kv_parked *parked[2];
    unsigned char page[2][SLOT];
    struct stat st;
    weft__kv_swap *swap = open_swap(e, 1 << 20);
    for (int i = 0; i < 2; i++) {
        const weft__kv_key root = {{50, (uint64_t)i}};
        begin(&e->w, &r[i], root);
        assert_true(extend(&e->w, &r[i], e->t, 32));
        park(e, swap, &r[i], &parked[i], 0);
    }
    settle(e, swap);
    assert_int_equal(counts(swap).pages_out, 4);
    const int fd = nameless_file(&st);
    assert_true(fd >= 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    for (int i = 0; i < 2; i++) assert_int_equal(pread(fd, page[i], 128, i * 2 * SLOT), 128);
    for (int i = 0; i < 2; i++) assert_int_equal(pwrite(fd, page[1 - i], 128, i * 2 * SLOT), 128);
    for (int i = 0; i < 2; i++) {
        assert_true(weft__kv_swap_begin(swap, parked[i], r[i].seq, 32));
        assert_int_equal(come_back(e, swap, parked[i], UINT64_MAX), -1);
        assert_int_equal(weft__kv_swap_has(swap, parked[i], 32), 0);
        assert_int_equal(weft__kv_seq_length(r[i].seq), 0);
        weft__kv_swap_forget(swap, &parked[i]);
        weft__kv_seq_destroy(&r[i].seq);
    }
    assert_int_equal(counts(swap).pages_lost, 2);
    close_swap(e, &swap);
}

/* ---- bounds ---- */

/* Prefixes go for swapped pages, saved slots do not, and all of it stays under the store's cap. */
static void the_store_holds_its_cap(void **state)
{
    enum { CAP = 80 * 1024 };
    scene *e = *state;
    weft__kv_swap *swap;
    weft__kv_parked *parked;
    weft_error err = {0};
    run r = {0};
    scene_reopen(e, CAP);
    assert_int_equal(weft__kv_store_swap_most(e->store), CAP / 4);
    assert_int_equal(weft__kv_swap_create(e->w.pool, e->store, CAP / 4 + 1, no_news, &n_news, &swap, &err),
                     WEFT_ARGUMENT);
    swap = open_swap(e, CAP / 4);
    for (int i = 0; i < 120; i++) { /* some 800 bytes each */
        int32_t t[80];
        series(t, 1000 * (i + 1), 80);
        assert_int_equal(save(e, t, 80, NULL), WEFT_OK);
    }
    const int64_t n_prefixes = stats(e->store).n_prefixes;
    assert_true(stats(e->store).n_bytes > CAP / 10 * 9);
    begin(&e->w, &r, ROOT);
    assert_true(extend(&e->w, &r, e->t, 96));
    park(e, swap, &r, &parked, 0); /* six pages, and room for five */
    settle(e, swap);
    const weft__kv_store_stats s = stats(e->store);
    assert_int_equal(s.swap_bytes, 4 * SLOT + 128);
    assert_true(s.n_bytes + s.swap_bytes <= CAP && s.n_prefixes < n_prefixes);
    assert_int_equal(counts(swap).pages_lost, 1);
    assert_int_equal(weft__kv_swap_has(swap, parked, 96), 80);
    int32_t t[80];
    series(t, 7, 80);
    assert_int_equal(save(e, t, 80, NULL), WEFT_OK); /* beside it, prefixes have the rest */
    assert_true(stats(e->store).n_bytes + stats(e->store).swap_bytes <= CAP);
    weft__kv_swap_forget(swap, &parked);
    weft__kv_seq_destroy(&r.seq);
    settle(e, swap);
    assert_int_equal(stats(e->store).swap_bytes, 0);
    close_swap(e, &swap);
}

/* The file has no name, so that a process that dies leaves nothing; one that died before is a t-HEX, and goes. */
static void a_dead_process_leaves_no_file(void **state)
{
    scene *e = *state;
    char path[512];
    struct stat st;
    weft__kv_swap *swap = open_swap(e, 1 << 20);
    assert_true(nameless_file(&st) >= 0);
    assert_int_equal(files('t', path), 0);
    close_swap(e, &swap);
    assert_int_equal(nameless_file(&st), -1);
    snprintf(path, sizeof path, "%s/t-0123456789abcdef", folder);
    const int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    e->store = open_store(&e->w, PLENTY);
    assert_int_equal(access(path, F_OK), -1);
}

/* ---- the rule ---- */

static void it_pays_where_reading_is_quicker(void **state)
{
    static const struct {
        double bytes_per_token, bytes_per_second, tokens_per_second;
        int pays;
    } cases[] = {
        {131072, 1e9, 30, 1},                                               /* 8B in f16: 7,600 tokens/s come back */
        {131072, 1e9, 8000, 0},                                             /* and are computed quicker */
        {131072, 1e6, 30, 0},                                               /* a disk that is very slow */
        {131072, 1e6, 7, 1},    {131072, 0, 30, 1},    {131072, 1e9, 0, 1}, /* not measured yet */
        {5000, 1e8, 19999, 1},  {5000, 1e8, 20000, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(
            weft__kv_swap_pays(cases[i].bytes_per_token, cases[i].bytes_per_second, cases[i].tokens_per_second),
            cases[i].pays);
}

/* What was measured decides, and one in so many is tried all the same. */
static void what_was_measured_decides(void **state)
{
    scene *e = *state;
    run r = {0};
    weft__kv_parked *parked;
    weft__kv_swap *swap = open_swap(e, 1 << 20);
    begin(&e->w, &r, ROOT);
    assert_true(extend(&e->w, &r, e->t, 64));
    assert_int_equal(weft__kv_swap_wants(swap, r.seq, 1e30), 1); /* nothing is known */
    park(e, swap, &r, &parked, 0);
    settle(e, swap);
    assert_true(weft__kv_swap_begin(swap, parked, r.seq, 64));
    assert_int_equal(come_back(e, swap, parked, UINT64_MAX), 1);
    weft__kv_swap_forget(swap, &parked);
    assert_true(counts(swap).bytes_per_second > 0);
    assert_int_equal(weft__kv_swap_wants(swap, r.seq, 1e-9), 1);
    int n = 0;
    for (int i = 0; i < 3 * WEFT__KV_SWAP_PROBE; i++) n += weft__kv_swap_wants(swap, r.seq, 1e30);
    assert_int_equal(n, 3);
    weft__kv_seq_destroy(&r.seq);
    close_swap(e, &swap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_STORE(pages_leave_and_come_back),
        IN_A_STORE(what_stays_in_the_tree_is_shared),
        IN_A_STORE(runs_that_give_way_go_on),
        IN_A_STORE(runs_that_have_little_room_on_the_disk),
        cmocka_unit_test_setup_teardown(runs_with_windows, set_up_windows, tear_down),
        IN_A_STORE(nobody_gets_the_pages_of_another),
        IN_A_STORE(the_store_holds_its_cap),
        IN_A_STORE(a_dead_process_leaves_no_file),
        cmocka_unit_test(it_pays_where_reading_is_quicker),
        IN_A_STORE(what_was_measured_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
