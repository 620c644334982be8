/* kv_store.c: claims about the disk store: what was saved is found after a restart and is what its tokens give; what is damaged,
 * foreign or half-written is dropped and never used; full disks, full caps and missing memory are survived. */
#include "kv_world.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"
#include "kv/store.h"

enum { KILLS = 100 };

static const weft__kv_key MODEL = {{11, 12}};
static const uint64_t PLENTY = 1u << 30;
static char folder[64];

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/weft-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* ---- helpers ---- */

/* What a callback was told; one question at a time, then weft__store_flush. */
typedef struct answer {
    weft_status status;
    weft__snapshot *snapshot;
    int n;
} answer;

static void hear(void *arg, weft_status status, const char *message, weft__snapshot *snapshot)
{
    answer *a = arg;
    (void)message;
    a->status = status;
    a->snapshot = snapshot;
    a->n++;
}

static weft__kv_layout layout_of(const world *w)
{
    weft__kv_layout layout;
    assert_int_equal(weft__kv_layout_of(w->pool, MODEL, &layout, NULL), WEFT_OK);
    return layout;
}

static weft__store *open_store(const world *w, uint64_t cap)
{
    weft__store *store;
    weft_error err = {0};
    weft__kv_layout layout = layout_of(w);
    if (weft__store_open(folder, cap, &layout, &store, &err)) fail_msg("%s", err.message);
    return store;
}

/* Evaluates tokens[0, n) in steps of 8 and takes a snapshot. */
static weft__snapshot *evaluate(world *w, const int32_t *tokens, int32_t n)
{
    weft__snapshot *s;
    weft__kv_layout layout = layout_of(w);
    run r = {0};
    begin(w, &r, ROOT);
    for (int32_t at = 0; at < n; at += 8) assert_true(extend(w, &r, tokens + at, n - at < 8 ? n - at : 8));
    assert_int_equal(weft__snapshot_take(&layout, ROOT, tokens, n, r.seq, &s, NULL), WEFT_OK);
    weft__kv_seq_destroy(&r.seq);
    return s;
}

/* Saves under a name, or as a prefix, and waits for it. */
static weft_status save(weft__store *store, world *w, const int32_t *tokens, int32_t n, const char *name)
{
    answer a = {.status = WEFT_INTERNAL};
    weft__snapshot *s = evaluate(w, tokens, n);
    assert_int_equal(weft__store_put(store, &s, name, hear, &a, NULL), WEFT_OK);
    assert_null(s);
    weft__store_flush(store);
    assert_int_equal(a.n, 1);
    return a.status;
}

/* Fetches a slot, or what serves tokens[0, n) best; *got receives a snapshot that the caller frees, or NULL. */
static weft_status fetch(weft__store *store, const int32_t *tokens, int32_t n, const char *name, weft__snapshot **got)
{
    answer a = {.status = WEFT_INTERNAL};
    weft_status st =
        name ? weft__store_fetch_slot(store, name, hear, &a, NULL) : weft__store_fetch(store, ROOT, tokens, n, hear, &a, NULL);
    *got = NULL;
    if (st) return st;
    weft__store_flush(store);
    assert_int_equal(a.n, 1);
    *got = a.snapshot;
    return a.status;
}

/* Loads what a snapshot serves of tokens, holds every page against the truth, goes on from there. Returns how many. */
static int32_t use(world *w, const weft__snapshot *s, const int32_t *tokens, int32_t n)
{
    weft__kv_layout layout = layout_of(w);
    int32_t serves = weft__snapshot_match(s, &layout, ROOT, tokens, n);
    run r = {0};
    if (serves == 0) return 0;
    begin(w, &r, ROOT);
    assert_int_equal(weft__snapshot_load(s, &layout, serves, r.seq, NULL), WEFT_OK);
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
static int32_t reuse(weft__store *store, world *w, const int32_t *tokens, int32_t n)
{
    weft__snapshot *s;
    if (fetch(store, tokens, n, NULL, &s)) return 0;
    int32_t got = use(w, s, tokens, n);
    weft__snapshot_free(&s);
    return got;
}

static void series(int32_t *tokens, int32_t from, int32_t n)
{
    for (int32_t i = 0; i < n; i++) tokens[i] = from + i;
}

/* Names of our files, of any kind; returns how many and the last one's path. */
static int files(char kind, char path[512])
{
    int n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *d; (d = readdir(dir));)
        if (d->d_name[0] == kind && d->d_name[1] == '-') n++, snprintf(path, 512, "%s/%s", folder, d->d_name);
    closedir(dir);
    return n;
}

static weft__store_stats stats(weft__store *store)
{
    weft__store_stats s;
    weft__store_get_stats(store, &s);
    return s;
}

static world one_group(void)
{
    world w = {.n_groups = 1, .group = {full(16)}, .n_pages = {20}};
    open_world(&w);
    return w;
}

/* ---- what is saved is found ---- */

static void a_prefix_outlives_the_process(void **state)
{
    (void)state;
    size_t live = weft__alloc_live();
    world w = one_group();
    int32_t t[CTX];
    series(t, 100, CTX);
    weft__store *store = open_store(&w, PLENTY);
    assert_true(weft__store_wants(store, ROOT, t, 50));
    assert_false(weft__store_wants(store, ROOT, t, 15)); /* less than a page */
    assert_int_equal(save(store, &w, t, 50, NULL), WEFT_OK);
    assert_false(weft__store_wants(store, ROOT, t, 50));
    assert_false(weft__store_wants(store, ROOT, t, 60));
    assert_true(weft__store_wants(store, ROOT, t, 66));
    weft__store_close(&store);
    close_world(&w);
    w = one_group();
    store = open_store(&w, PLENTY);
    assert_int_equal(stats(store).n_prefixes, 1);
    assert_int_equal(weft__store_find(store, ROOT, t, CTX), 50);
    assert_int_equal(weft__store_find(store, (weft__kv_key){{1, 3}}, t, CTX), 0);
    for (int32_t n = 1; n <= CTX; n++) assert_int_equal(reuse(store, &w, t, n), n < 50 ? n : 50);
    t[33] = 7;
    assert_int_equal(reuse(store, &w, t, CTX), 33);
    t[0] = 7;
    assert_int_equal(reuse(store, &w, t, CTX), 0);
    assert_int_equal(stats(store).n_damaged, 0);
    weft__store_close(&store);
    close_world(&w);
    assert_int_equal(weft__alloc_live(), live);
}

/* What comes from the disk feeds the tree, and is shared from there. */
static void the_tree_is_fed_from_the_disk(void **state)
{
    (void)state;
    world w = one_group();
    int32_t t[CTX];
    weft__snapshot *s;
    run r = {0};
    series(t, 100, CTX);
    weft__store *store = open_store(&w, PLENTY);
    assert_int_equal(save(store, &w, t, 50, NULL), WEFT_OK);
    assert_int_equal(fetch(store, t, CTX, NULL, &s), WEFT_OK);
    weft__kv_layout layout = layout_of(&w);
    begin(&w, &r, ROOT);
    assert_int_equal(weft__snapshot_load(s, &layout, 50, r.seq, NULL), WEFT_OK);
    assert_int_equal(weft__prefix_insert(w.tree, ROOT, t, 50, r.seq), 50);
    weft__kv_seq_destroy(&r.seq);
    weft__snapshot_free(&s);
    begin(&w, &r, ROOT);
    assert_int_equal(weft__prefix_match(w.tree, ROOT, t, CTX, r.seq, NULL), 50);
    memcpy(r.token, t, sizeof t);
    check_run(&w, &r);
    weft__kv_seq_destroy(&r.seq);
    weft__store_close(&store);
    close_world(&w);
}

static void windows_are_saved_as_far_as_they_are_seen(void **state)
{
    (void)state;
    world w = {.n_groups = 2, .group = {full(16), windowed(8, 20)}, .n_pages = {20, 20}};
    int32_t t[CTX];
    series(t, 100, CTX);
    open_world(&w);
    weft__store *store = open_store(&w, PLENTY);
    assert_int_equal(save(store, &w, t, 80, NULL), WEFT_OK);
    assert_int_equal(reuse(store, &w, t, CTX), 80);
    assert_int_equal(reuse(store, &w, t, 76), 76); /* sees [57, ...), the file has the window's pages from 56 on */
    assert_int_equal(reuse(store, &w, t, 74), 0);
    assert_int_equal(save(store, &w, t, 40, NULL), WEFT_OK);
    assert_int_equal(reuse(store, &w, t, 74), 40);
    assert_int_equal(reuse(store, &w, t, CTX), 80); /* all are kept: none can stand for another */
    assert_int_equal(save(store, &w, t, 90, NULL), WEFT_OK);
    assert_int_equal(reuse(store, &w, t, 74), 40);
    assert_int_equal(stats(store).n_prefixes, 3);
    /* A window that is gone cannot be saved. */
    weft__kv_layout layout = layout_of(&w);
    weft__snapshot *s;
    run r = {0};
    assert_int_equal(fetch(store, t, CTX, NULL, &s), WEFT_OK);
    assert_int_equal(weft__snapshot_match(s, &layout, ROOT, t, 84), 84);
    assert_int_equal(weft__snapshot_match(s, &layout, ROOT, t, 82), 0);
    assert_int_equal(weft__snapshot_match(s, &layout, (weft__kv_key){{1, 3}}, t, 80), 0);
    begin(&w, &r, ROOT);
    assert_int_equal(weft__snapshot_load(s, &layout, 82, r.seq, NULL), WEFT_ARGUMENT);
    weft__snapshot_free(&s);
    for (int i = 0; i < 8; i++) assert_true(extend(&w, &r, t + 8 * i, 8));
    assert_int_equal(weft__snapshot_take(&layout, ROOT, t, 30, r.seq, &s, NULL), WEFT_STATE);
    assert_int_equal(weft__snapshot_take(&layout, ROOT, t, 65, r.seq, &s, NULL), WEFT_ARGUMENT);
    assert_null(s);
    weft__kv_seq_destroy(&r.seq);
    weft__store_close(&store);
    close_world(&w);
}

static void a_longer_prefix_replaces_a_shorter_one(void **state)
{
    (void)state;
    world w = one_group();
    int32_t t[CTX];
    char path[512];
    series(t, 100, CTX);
    weft__store *store = open_store(&w, PLENTY);
    for (int32_t n = 20; n <= 80; n += 20) {
        assert_int_equal(save(store, &w, t, n, NULL), WEFT_OK);
        assert_int_equal(files('p', path), 1);
    }
    assert_int_equal(save(store, &w, t, 40, NULL), WEFT_OK); /* there already, in part of a file */
    assert_int_equal(stats(store).n_written, 4);
    assert_int_equal(save(store, &w, t, 40, "kept"), WEFT_OK);
    t[60] = 1;
    assert_int_equal(save(store, &w, t, 80, NULL), WEFT_OK);
    assert_int_equal(files('p', path), 2);
    assert_int_equal(files('s', path), 1);
    assert_int_equal(reuse(store, &w, t, CTX), 80);
    weft__store_close(&store);
    close_world(&w);
}

static void slots_have_names(void **state)
{
    (void)state;
    world w = one_group();
    int32_t t[CTX];
    char longest[131];
    answer a = {0};
    weft__snapshot *s;
    series(t, 100, CTX);
    memset(longest, 'x', sizeof longest);
    longest[129] = 0;
    const char *bad[] = {"", ".", "..", "a/b", "../a", "a b", "a\n", "\xc3\xa4", "a\\b", "a:b", longest};
    weft__store *store = open_store(&w, PLENTY);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weft_error err = {0};
        s = evaluate(&w, t, 3);
        assert_int_equal(weft__store_put(store, &s, bad[i], hear, &a, &err), WEFT_ARGUMENT);
        assert_non_null(strstr(err.message, "slot's name"));
        assert_non_null(s);
        weft__snapshot_free(&s);
        assert_int_equal(weft__store_fetch_slot(store, bad[i], hear, &a, NULL), WEFT_ARGUMENT);
        assert_int_equal(weft__store_erase(store, bad[i], hear, &a, NULL), WEFT_ARGUMENT);
    }
    assert_int_equal(a.n, 0);
    longest[128] = 0;
    const char *good[] = {"a", "...", ".a", "-", "slot-1.bin", "A_9", longest};
    for (int32_t i = 0; i < 7; i++) assert_int_equal(save(store, &w, t + i, 10 + i, good[i]), WEFT_OK);
    assert_int_equal(save(store, &w, t + 50, 30, "a"), WEFT_OK); /* in place of the first */
    weft__store_close(&store);
    store = open_store(&w, PLENTY);
    assert_int_equal(stats(store).n_slots, 7);
    for (int32_t i = 0; i < 7; i++) {
        assert_int_equal(fetch(store, NULL, 0, good[i], &s), WEFT_OK);
        assert_int_equal(weft__snapshot_head_of(s)->n_tokens, i == 0 ? 30 : 10 + i);
        assert_int_equal(use(&w, s, i == 0 ? t + 50 : t + i, i == 0 ? 30 : 10 + i), i == 0 ? 30 : 10 + i);
        weft__snapshot_free(&s);
    }
    assert_int_equal(weft__store_erase(store, "a", hear, &a, NULL), WEFT_OK);
    weft__store_flush(store);
    assert_int_equal(a.status, WEFT_OK);
    assert_int_equal(weft__store_erase(store, "a", hear, &a, NULL), WEFT_OK);
    weft__store_flush(store);
    assert_int_equal(a.status, WEFT_NOT_FOUND);
    assert_int_equal(fetch(store, NULL, 0, "a", &s), WEFT_NOT_FOUND);
    weft__store_close(&store);
    close_world(&w);
}

/* ---- what is damaged is dropped ---- */

static void patch(const char *path, long at, unsigned char x)
{
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    fseek(f, at, SEEK_SET);
    int c = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(c ^ x, f);
    fclose(f);
}

/* Any single byte changed, anywhere: nothing is served, and the file goes. */
static void damage_is_dropped(void **state)
{
    (void)state;
    world w = one_group();
    int32_t t[CTX];
    char path[512] = "";
    struct stat st;
    series(t, 100, CTX);
    setenv("WEFT_LOG", "error", 1);
    for (long at = 0, size = 1; at < size; at += at < 320 ? 3 : 41) {
        weft__store *store = open_store(&w, PLENTY);
        assert_int_equal(save(store, &w, t, 40, at % 2 ? "s" : NULL), WEFT_OK);
        weft__store_close(&store);
        assert_int_equal(files('p', path) + files('s', path), 1);
        assert_int_equal(stat(path, &st), 0);
        size = st.st_size;
        patch(path, at, (unsigned char)(1u << at % 8));
        store = open_store(&w, PLENTY);
        if (reuse(store, &w, t, CTX) != 0) fail_msg("byte %ld: used", at);
        assert_int_equal(stats(store).n_damaged, 1);
        assert_int_equal(weft__store_find(store, ROOT, t, CTX), 0);
        assert_int_equal(stat(path, &st), -1);
        weft__store_close(&store);
    }
    close_world(&w);
}

static void truncated_and_longer_files_are_dropped(void **state)
{
    (void)state;
    world w = one_group();
    int32_t t[CTX];
    char path[512];
    struct stat st = {.st_size = 1};
    series(t, 100, CTX);
    for (long n = 0; n < st.st_size + 64; n += 37) {
        weft__store *store = open_store(&w, PLENTY);
        assert_int_equal(save(store, &w, t, 40, NULL), WEFT_OK);
        weft__store_close(&store);
        assert_int_equal(files('p', path), 1);
        if (st.st_size == 1) assert_int_equal(stat(path, &st), 0);
        if (n == st.st_size) continue;
        assert_int_equal(truncate(path, n), 0);
        store = open_store(&w, PLENTY);
        assert_int_equal(weft__store_find(store, ROOT, t, CTX), 0);
        assert_int_equal(stats(store).n_damaged, 1);
        assert_int_equal(files('p', path), 0);
        weft__store_close(&store);
    }
    close_world(&w);
}

/* Another version whose sums are right: only the number says that it is none of ours. */
static void renumber(const char *path, uint32_t version)
{
    struct stat st;
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    weft__snapshot *s = weft__snapshot_alloc((uint64_t)st.st_size);
    assert_int_equal(fread(s->bytes, 1, (size_t)st.st_size, f), (size_t)st.st_size);
    ((weft__snapshot_head *)s->bytes)->version = version;
    weft__snapshot_seal(s);
    rewind(f);
    assert_int_equal(fwrite(s->bytes, 1, (size_t)st.st_size, f), (size_t)st.st_size);
    fclose(f);
    weft__snapshot_free(&s);
}

static void other_models_versions_and_layouts_are_dropped(void **state)
{
    (void)state;
    world w = one_group(), w2 = {.n_groups = 1, .group = {full(16)}, .n_pages = {20}};
    int32_t t[CTX];
    char path[512];
    weft__store *store;
    w2.group[0].head_dim_k = 1; /* pages of the same size */
    w2.group[0].head_dim_v = 3;
    open_world(&w2);
    series(t, 100, CTX);
    for (int what = 0; what < 4; what++) {
        weft__kv_layout layout = what == 2 ? layout_of(&w2) : layout_of(&w);
        store = open_store(&w, PLENTY);
        assert_int_equal(save(store, &w, t, 40, NULL), WEFT_OK);
        weft__store_close(&store);
        assert_int_equal(files('p', path), 1);
        if (what == 0) layout.model.word[1]++;
        if (what == 1) renumber(path, WEFT__SNAPSHOT_VERSION + 1);
        if (what == 3) renumber(path, WEFT__SNAPSHOT_VERSION);
        assert_int_equal(weft__store_open(folder, PLENTY, &layout, &store, NULL), WEFT_OK);
        assert_int_equal(weft__store_find(store, ROOT, t, CTX), what == 3 ? 40 : 0);
        assert_int_equal(files('p', path), what == 3);
        weft__store_close(&store);
    }
    close_world(&w2);
    close_world(&w);
}

/* A file that loses its content, or itself, while the store is open. */
static void damage_behind_its_back_is_found(void **state)
{
    (void)state;
    world w = one_group();
    int32_t t[CTX];
    char path[512];
    series(t, 100, CTX);
    weft__store *store = open_store(&w, PLENTY);
    assert_int_equal(save(store, &w, t, 40, NULL), WEFT_OK);
    assert_int_equal(files('p', path), 1);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(reuse(store, &w, t, CTX), 0);
    assert_int_equal(files('p', path), 0);
    assert_int_equal(save(store, &w, t, 40, NULL), WEFT_OK);
    assert_int_equal(files('p', path), 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(reuse(store, &w, t, CTX), 0);
    assert_int_equal(weft__store_find(store, ROOT, t, CTX), 0);
    assert_int_equal(save(store, &w, t, 40, NULL), WEFT_OK);
    assert_int_equal(reuse(store, &w, t, CTX), 40);
    weft__store_close(&store);
    close_world(&w);
}

static void only_its_own_files_are_touched(void **state)
{
    (void)state;
    world w = one_group();
    char path[512], victim[512];
    const char *others[] = {"notes.txt", "p-notes.kv", "p-0123456789abcdef",   "s-a b.kv",
                            "s-.kv",     "t-12",       "x-0123456789abcdef.kv"};
    const char *ours[] = {"p-0123456789abcdef.kv", "s-a.kv", "t-0123456789abcdef"};
    struct stat st;
    for (size_t i = 0; i < 10; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i < 7 ? others[i] : ours[i - 7]);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs("something else", f);
        fclose(f);
    }
    snprintf(path, sizeof path, "%s/s-link.kv", folder);
    snprintf(victim, sizeof victim, "%s/notes.txt", folder);
    assert_int_equal(symlink(victim, path), 0);
    snprintf(path, sizeof path, "%s/s-folder.kv", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    weft__store *store = open_store(&w, PLENTY);
    assert_int_equal(stats(store).n_prefixes + stats(store).n_slots, 0);
    for (size_t i = 0; i < 10; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i < 7 ? others[i] : ours[i - 7]);
        assert_int_equal(stat(path, &st), i < 7 ? 0 : -1);
    }
    weft__store *second;
    weft_error err = {0};
    weft__kv_layout layout = layout_of(&w);
    assert_int_equal(weft__store_open(folder, PLENTY, &layout, &second, &err), WEFT_STATE);
    assert_non_null(strstr(err.message, "another process"));
    assert_int_equal(weft__store_open("/nonexistent/a", PLENTY, &layout, &second, &err), WEFT_IO);
    weft__store_close(&store);
    close_world(&w);
}

/* ---- limits ---- */

static void the_cap_removes_what_was_used_least_recently(void **state)
{
    (void)state;
    world w = one_group();
    int32_t t[8][48];
    uint64_t one = 0;
    weft__store *store = open_store(&w, PLENTY);
    for (int i = 0; i < 8; i++) series(t[i], 1000 * i, 48);
    assert_int_equal(save(store, &w, t[0], 48, NULL), WEFT_OK);
    one = stats(store).n_bytes;
    weft__store_close(&store);
    store = open_store(&w, 4 * one + one / 2);
    for (int i = 1; i < 4; i++) assert_int_equal(save(store, &w, t[i], 48, NULL), WEFT_OK);
    assert_int_equal(reuse(store, &w, t[0], 48), 48); /* used again */
    assert_int_equal(save(store, &w, t[4], 48, NULL), WEFT_OK);
    assert_int_equal(weft__store_find(store, ROOT, t[1], 48), 0);
    assert_int_equal(weft__store_find(store, ROOT, t[0], 48), 48);
    assert_int_equal(stats(store).n_removed, 1);
    /* Slots stay; when they alone fill the cap, the next one is refused. */
    for (int i = 0; i < 4; i++) assert_int_equal(save(store, &w, t[i], 48, (char[]){(char)('a' + i), 0}), WEFT_OK);
    assert_int_equal(stats(store).n_prefixes, 0);
    assert_int_equal(save(store, &w, t[4], 48, "e"), WEFT_LIMIT);
    assert_int_equal(save(store, &w, t[4], 48, NULL), WEFT_LIMIT);
    assert_int_equal(save(store, &w, t[4], 48, "a"), WEFT_OK); /* takes the place of its own kind */
    assert_int_equal(stats(store).n_slots, 4);
    assert_true(stats(store).n_bytes <= 4 * one);
    assert_int_equal(stats(store).n_write_failed, 2);
    weft__store_close(&store);
    close_world(&w);
}

/* The order of use lasts over a restart, and a smaller cap holds at once. */
static void a_smaller_cap_holds_from_the_start(void **state)
{
    (void)state;
    world w = one_group();
    int32_t t[6][48];
    char path[512];
    weft__store *store = open_store(&w, PLENTY);
    for (int i = 0; i < 6; i++) {
        series(t[i], 1000 * i, 48);
        assert_int_equal(save(store, &w, t[i], 48, NULL), WEFT_OK);
        nanosleep(&(struct timespec){0, 5000000}, NULL); /* coarse clocks of file systems */
    }
    uint64_t one = stats(store).n_bytes / 6;
    assert_false(weft__store_wants(store, ROOT, t[2], 48)); /* counts as used; its time is set at the end */
    weft__store_close(&store);
    store = open_store(&w, 2 * one);
    assert_int_equal(files('p', path), 2);
    assert_int_equal(weft__store_find(store, ROOT, t[2], 48), 48);
    assert_int_equal(weft__store_find(store, ROOT, t[5], 48), 48);
    weft__store_close(&store);
    close_world(&w);
}

/* A file size limit stands in for a full disk: writing fails half-way, nothing stays behind; with room again it goes on. */
static void a_full_disk_is_survived(void **state)
{
    (void)state;
    world w = one_group();
    int32_t t[CTX];
    char path[512];
    struct rlimit old, tight;
    series(t, 100, CTX);
    setenv("WEFT_LOG", "error", 1);
    weft__store *store = open_store(&w, PLENTY);
    assert_int_equal(save(store, &w, t, 16, "small"), WEFT_OK);
    getrlimit(RLIMIT_FSIZE, &old);
    tight = old;
    tight.rlim_cur = 700;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    weft_status st = save(store, &w, t, 80, NULL), slot = save(store, &w, t, 80, "small");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(st, WEFT_LIMIT);
    assert_int_equal(slot, WEFT_LIMIT);
    assert_int_equal(files('t', path), 0);
    assert_int_equal(files('p', path), 0);
    assert_int_equal(reuse(store, &w, t, CTX), 16); /* the old slot is whole */
    assert_int_equal(save(store, &w, t, 80, NULL), WEFT_OK);
    assert_int_equal(reuse(store, &w, t, CTX), 80);
    weft__store_close(&store);
    close_world(&w);
}

/* ---- killed while writing ---- */

/* About 100 KB, so that a kill often falls into a write. */
static world heavy(void)
{
    world w = {.n_groups = 2, .group = {full(16), windowed(16, 40)}, .n_pages = {12, 12}};
    for (int g = 0; g < 2; g++) w.group[g].n_layers = 64;
    open_world(&w);
    return w;
}

enum { SLOTS = 4, FIRST_TOKEN = 1000 };

static int pipe_out;

/* Tells the parent which slot has which version now: that is acknowledged. */
static void tell(void *arg, weft_status status, const char *message, weft__snapshot *snapshot)
{
    int32_t version = (int32_t)(intptr_t)arg;
    (void)message;
    (void)snapshot;
    if (!status && write(pipe_out, &version, sizeof version) != sizeof version) _exit(3);
}

/* Writes slots and prefixes until it is killed. Version v: tokens FIRST_TOKEN + v and on. */
static void write_for_ever(int32_t version)
{
    world w = heavy();
    weft__store *store = open_store(&w, 3u << 20);
    for (;; version++) {
        int32_t t[CTX], n = 40 + version % 56;
        char name[] = {(char)('a' + version % SLOTS), 0};
        series(t, FIRST_TOKEN + version, CTX);
        weft__snapshot *s = evaluate(&w, t, n), *p = evaluate(&w, t, n);
        while (weft__store_put(store, &p, NULL, NULL, NULL, NULL) == WEFT_BUSY) weft__store_flush(store);
        while (weft__store_put(store, &s, name, tell, (void *)(intptr_t)version, NULL) == WEFT_BUSY) weft__store_flush(store);
        if (version % 3 == 0) weft__store_flush(store);
    }
}

/* Every file in the folder is whole and holds what its tokens give. Returns how many there are. */
static int check_folder(world *w)
{
    weft__kv_layout layout = layout_of(w);
    DIR *dir = opendir(folder);
    int n = 0;
    assert_non_null(dir);
    for (struct dirent *d; (d = readdir(dir));) {
        char path[512];
        struct stat st;
        if (d->d_name[1] != '-') continue;
        assert_true(d->d_name[0] == 'p' || d->d_name[0] == 's');
        snprintf(path, sizeof path, "%s/%s", folder, d->d_name);
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        assert_int_equal(fstat(fileno(f), &st), 0);
        weft__snapshot *s = weft__snapshot_alloc((uint64_t)st.st_size);
        assert_int_equal(fread(s->bytes, 1, (size_t)st.st_size, f), (size_t)st.st_size);
        fclose(f);
        assert_int_equal(weft__snapshot_check(s, &layout, NULL), WEFT_OK);
        int32_t n_tokens = weft__snapshot_head_of(s)->n_tokens;
        assert_int_equal(use(w, s, weft__snapshot_tokens(s), n_tokens), n_tokens);
        weft__snapshot_free(&s);
        n++;
    }
    closedir(dir);
    return n;
}

static void a_kill_while_writing_leaves_nothing_wrong(void **state)
{
    (void)state;
    world w = heavy();
    weft__rng rng;
    int32_t acknowledged[SLOTS] = {-1, -1, -1, -1}, next = 0;
    int n_found = 0, n_cut = 0, n_told = 0;
    char path[512];
    weft__rng_seed(&rng, 5);
    for (int k = 0; k < KILLS; k++) {
        int fds[2];
        assert_int_equal(pipe(fds), 0);
        pid_t child = fork();
        if (child == 0) {
            close(fds[0]);
            pipe_out = fds[1];
            write_for_ever(next);
        }
        close(fds[1]);
        nanosleep(&(struct timespec){0, 1000000 + (long)weft__rng_below(&rng, 30000000)}, NULL);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        for (int32_t v; read(fds[0], &v, sizeof v) == sizeof v; n_told++) {
            acknowledged[v % SLOTS] = v;
            if (v >= next) next = v + 1;
        }
        close(fds[0]);
        n_cut += files('t', path) > 0;
        weft__store *store = open_store(&w, 3u << 20);
        assert_int_equal(stats(store).n_damaged, 0); /* a file has its name only when it is whole */
        assert_int_equal(files('t', path), 0);
        n_found += check_folder(&w);
        for (int i = 0; i < SLOTS; i++) {
            weft__snapshot *s;
            if (acknowledged[i] < 0) continue;
            assert_int_equal(fetch(store, NULL, 0, (char[]){(char)('a' + i), 0}, &s), WEFT_OK);
            int32_t version = weft__snapshot_tokens(s)[0] - FIRST_TOKEN; /* acknowledged, or written just before the kill */
            assert_true(version >= acknowledged[i] && version % SLOTS == i);
            weft__snapshot_free(&s);
        }
        weft__store_close(&store);
    }
    assert_true(n_found > KILLS);
    if (getenv("WEFT_TEST_VERBOSE"))
        print_message("%d kills, %d of them during a write; %d saves acknowledged; %d files checked\n", KILLS, n_cut, n_told,
                      n_found);
    close_world(&w);
}

/* ---- many callers, little memory ---- */

typedef struct caller {
    weft__store *store;
    int id, n_heard;
} caller;

static void hear_of_many(void *arg, weft_status status, const char *message, weft__snapshot *snapshot)
{
    caller *c = arg;
    (void)status;
    (void)message;
    c->n_heard++;
    weft__snapshot_free(&snapshot);
}

static void *ask(void *arg)
{
    caller *c = arg;
    world w = one_group();
    int n = 0;
    for (int i = 0; i < 60; i++) {
        int32_t t[CTX];
        series(t, 1000 * (i % 7), CTX);
        weft__snapshot *s = NULL;
        if (weft__store_wants(c->store, ROOT, t, 20 + i)) s = evaluate(&w, t, 20 + i);
        if (s) n += weft__store_put(c->store, &s, i % 5 ? NULL : "shared", hear_of_many, c, NULL) == WEFT_OK;
        weft__snapshot_free(&s);
        n += weft__store_fetch(c->store, ROOT, t, CTX, hear_of_many, c, NULL) == WEFT_OK;
        if (i % 10 == c->id) n += weft__store_erase(c->store, "shared", hear_of_many, c, NULL) == WEFT_OK;
        if (i % 20 == 0) weft__store_flush(c->store);
    }
    weft__store_flush(c->store);
    assert_int_equal(c->n_heard, n); /* everybody is answered, once */
    close_world(&w);
    return NULL;
}

static void many_threads_ask_at_once(void **state)
{
    (void)state;
    world w = one_group();
    pthread_t thread[3];
    caller c[3] = {0};
    weft__store *store = open_store(&w, 12000);
    for (int i = 0; i < 3; i++) {
        c[i] = (caller){.store = store, .id = i};
        assert_int_equal(pthread_create(&thread[i], NULL, ask, &c[i]), 0);
    }
    for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
    assert_int_equal(stats(store).queued_bytes, 0);
    assert_true(stats(store).n_bytes <= 12000);
    weft__store_close(&store);
    close_world(&w);
}

static int store_once(void *arg)
{
    weft__kv_layout *layout = arg;
    weft__store *store;
    int32_t t[40];
    weft__snapshot *s = weft__snapshot_alloc(sizeof(weft__snapshot_head));
    int ok = s != NULL;
    weft__snapshot_free(&s);
    series(t, 100, 40);
    if (weft__store_open(folder, PLENTY, layout, &store, NULL)) return 0;
    answer a = {.status = WEFT_OK};
    ok &= !weft__store_fetch(store, ROOT, t, 40, hear, &a, NULL);
    weft__store_flush(store);
    ok &= a.status == WEFT_OK && a.snapshot != NULL;
    if (a.snapshot) {
        assert_int_equal(weft__snapshot_match(a.snapshot, layout, ROOT, t, 40), 40);
        a.status = WEFT_OK;
        ok &= !weft__store_put(store, &a.snapshot, "again", hear, &a, NULL);
        weft__snapshot_free(&a.snapshot);
        weft__store_flush(store);
        ok &= a.status == WEFT_OK;
    }
    ok &= !weft__store_erase(store, "again", NULL, NULL, NULL);
    weft__store_close(&store);
    return ok;
}

static void survives_every_allocation_that_fails(void **state)
{
    (void)state;
    world w = one_group();
    int32_t t[40];
    series(t, 100, 40);
    setenv("WEFT_LOG", "error", 1);
    weft__store *store = open_store(&w, PLENTY);
    assert_int_equal(save(store, &w, t, 40, NULL), WEFT_OK);
    weft__store_close(&store);
    weft__kv_layout layout = layout_of(&w);
    assert_true(fail_each(store_once, &layout) >= 10);
    store = open_store(&w, PLENTY);
    assert_int_equal(reuse(store, &w, t, 40), 40);
    weft__store_close(&store);
    close_world(&w);
}

int main(void)
{
#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(a_prefix_outlives_the_process),
        IN_A_FOLDER(the_tree_is_fed_from_the_disk),
        IN_A_FOLDER(windows_are_saved_as_far_as_they_are_seen),
        IN_A_FOLDER(a_longer_prefix_replaces_a_shorter_one),
        IN_A_FOLDER(slots_have_names),
        IN_A_FOLDER(damage_is_dropped),
        IN_A_FOLDER(truncated_and_longer_files_are_dropped),
        IN_A_FOLDER(other_models_versions_and_layouts_are_dropped),
        IN_A_FOLDER(damage_behind_its_back_is_found),
        IN_A_FOLDER(only_its_own_files_are_touched),
        IN_A_FOLDER(the_cap_removes_what_was_used_least_recently),
        IN_A_FOLDER(a_smaller_cap_holds_from_the_start),
        IN_A_FOLDER(a_full_disk_is_survived),
        IN_A_FOLDER(a_kill_while_writing_leaves_nothing_wrong),
        IN_A_FOLDER(many_threads_ask_at_once),
        IN_A_FOLDER(survives_every_allocation_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
