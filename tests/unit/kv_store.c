// SPDX-License-Identifier: Apache-2.0
/* kv_store.c: claims about the disk store: what was saved is found after a restart and is what its tokens give; what is
 * damaged or foreign is dropped and never used. */
#include "store_world.h"

#include <sys/stat.h>

/* ---- what is saved is found ---- */

static void a_prefix_outlives_the_process(void **state)
{
    scene *e = *state;
    assert_true(weft__kv_store_wants(e->store, ROOT, e->t, 50));
    assert_false(weft__kv_store_wants(e->store, ROOT, e->t, 15)); /* less than a page */
    assert_int_equal(save(e, e->t, 50, NULL), WEFT_OK);
    assert_false(weft__kv_store_wants(e->store, ROOT, e->t, 50));
    assert_false(weft__kv_store_wants(e->store, ROOT, e->t, 60));
    assert_true(weft__kv_store_wants(e->store, ROOT, e->t, 66));
    scene_close(e);
    scene_open(e, one_group());
    assert_int_equal(stats(e->store).n_prefixes, 1);
    assert_int_equal(weft__kv_store_find(e->store, ROOT, e->t, CTX), 50);
    assert_int_equal(weft__kv_store_find(e->store, (weft__kv_key){{1, 3}}, e->t, CTX), 0);
    for (int32_t n = 1; n <= CTX; n++) assert_int_equal(reuse(e, e->t, n), n < 50 ? n : 50);
    e->t[33] = 7;
    assert_int_equal(reuse(e, e->t, CTX), 33);
    e->t[0] = 7;
    assert_int_equal(reuse(e, e->t, CTX), 0);
    assert_int_equal(stats(e->store).n_damaged, 0);
}

/* What a file shares with others but nobody would fetch does not keep them out of the store. */
static void a_short_beginning_in_common_is_none(void **state)
{
    scene *e = *state;
    assert_int_equal(save(e, e->t, 50, NULL), WEFT_OK);
    int32_t kept = e->t[15];
    e->t[15] = 7; /* a page has 16 tokens */
    assert_int_equal(weft__kv_store_find(e->store, ROOT, e->t, CTX), 0);
    assert_true(weft__kv_store_wants(e->store, ROOT, e->t, 16));
    assert_true(weft__kv_store_wants(e->store, ROOT, e->t, 30));
    e->t[15] = kept;
    e->t[16] = 7;
    assert_int_equal(weft__kv_store_find(e->store, ROOT, e->t, CTX), 16);
    assert_false(weft__kv_store_wants(e->store, ROOT, e->t, 31));
    assert_true(weft__kv_store_wants(e->store, ROOT, e->t, 32));
}

/* What comes from the disk feeds the tree, and is shared from there. */
static void the_tree_is_fed_from_the_disk(void **state)
{
    scene *e = *state;
    weft__kv_snapshot *s;
    run r = {0};
    assert_int_equal(save(e, e->t, 50, NULL), WEFT_OK);
    assert_int_equal(fetch(e->store, e->t, CTX, NULL, &s), WEFT_OK);
    weft__kv_layout layout = layout_of(&e->w);
    begin(&e->w, &r, ROOT);
    assert_int_equal(kv_load(s, &layout, 50, r.seq), WEFT_OK);
    assert_int_equal(weft__kv_prefix_insert(e->w.tree, ROOT, e->t, 50, r.seq), 50);
    weft__kv_seq_destroy(&r.seq);
    weft__kv_snapshot_free(&s);
    begin(&e->w, &r, ROOT);
    assert_int_equal(weft__kv_prefix_match(e->w.tree, ROOT, e->t, CTX, r.seq, NULL), 50);
    memcpy(r.token, e->t, sizeof e->t);
    check_run(&e->w, &r);
    weft__kv_seq_destroy(&r.seq);
}

static int set_up_windows(void **state)
{
    return set_up_with(state, (world){.n_groups = 2, .group = {full(16), windowed(8, 20)}, .n_pages = {20, 20}});
}

static void windows_are_saved_as_far_as_they_are_seen(void **state)
{
    scene *e = *state;
    assert_int_equal(save(e, e->t, 80, NULL), WEFT_OK);
    assert_int_equal(reuse(e, e->t, CTX), 80);
    assert_int_equal(reuse(e, e->t, 76), 76); /* sees [57, ...), the file has the window's pages from 56 on */
    assert_int_equal(reuse(e, e->t, 74), 0);
    assert_int_equal(save(e, e->t, 40, NULL), WEFT_OK);
    assert_int_equal(reuse(e, e->t, 74), 40);
    assert_int_equal(reuse(e, e->t, CTX), 80); /* all are kept: none can stand for another */
    assert_int_equal(save(e, e->t, 90, NULL), WEFT_OK);
    assert_int_equal(reuse(e, e->t, 74), 40);
    assert_int_equal(stats(e->store).n_prefixes, 3);
    /* A window that is gone cannot be saved. */
    weft__kv_layout layout = layout_of(&e->w);
    weft__kv_snapshot *s;
    run r = {0};
    assert_int_equal(fetch(e->store, e->t, CTX, NULL, &s), WEFT_OK);
    assert_int_equal(weft__kv_snapshot_match(s, &layout, ROOT, e->t, 84), 84);
    assert_int_equal(weft__kv_snapshot_match(s, &layout, ROOT, e->t, 82), 0);
    assert_int_equal(weft__kv_snapshot_match(s, &layout, (weft__kv_key){{1, 3}}, e->t, 80), 0);
    begin(&e->w, &r, ROOT);
    assert_int_equal(kv_load(s, &layout, 82, r.seq), WEFT_ARGUMENT);
    weft__kv_snapshot_free(&s);
    for (int i = 0; i < 8; i++) assert_true(extend(&e->w, &r, e->t + 8 * i, 8));
    assert_int_equal(weft__kv_snapshot_begin(&layout, ROOT, e->t, 30, r.seq, &s, NULL), WEFT_STATE);
    assert_int_equal(weft__kv_snapshot_begin(&layout, ROOT, e->t, 65, r.seq, &s, NULL), WEFT_ARGUMENT);
    assert_null(s);
    weft__kv_seq_destroy(&r.seq);
}

static void a_copy_in_pieces_is_the_copy(void **state)
{
    scene *e = *state;
    weft__kv_layout layout = layout_of(&e->w);
    weft__kv_snapshot *whole, *s;
    run r = {0};
    begin(&e->w, &r, ROOT);
    for (int i = 0; i < 8; i++) assert_true(extend(&e->w, &r, e->t + 8 * i, 8));
    whole = take(&layout, e->t, 61, r.seq);
    uint64_t body = whole->n_bytes - weft__kv_snapshot_body_at(61), page = layout.page_bytes[0],
             budgets[] = {1, page - 1, page, page + 7, body};
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
        uint64_t at = 0, n_pieces = 1, before = 0;
        assert_int_equal(weft__kv_snapshot_begin(&layout, ROOT, e->t, 61, r.seq, &s, NULL), WEFT_OK);
        for (; !weft__kv_snapshot_copy(s, &layout, r.seq, &at, budgets[i]); n_pieces++, before = at)
            assert_true(at - before <= budgets[i]);
        assert_true(at == body);
        assert_true(n_pieces >= body / budgets[i]);
        assert_true(s->n_bytes == whole->n_bytes);
        assert_memory_equal(s->bytes, whole->bytes, (size_t)whole->n_bytes);
        weft__kv_snapshot_free(&s);
    }
    weft__kv_snapshot_free(&whole);
    weft__kv_seq_destroy(&r.seq);
}

static void a_longer_prefix_replaces_a_shorter_one(void **state)
{
    scene *e = *state;
    char path[512];
    for (int32_t n = 20; n <= 80; n += 20) {
        assert_int_equal(save(e, e->t, n, NULL), WEFT_OK);
        assert_int_equal(files('p', path), 1);
    }
    assert_int_equal(save(e, e->t, 40, NULL), WEFT_OK); /* there already, in part of a file */
    assert_int_equal(stats(e->store).n_written, 4);
    assert_int_equal(save(e, e->t, 40, "kept"), WEFT_OK);
    e->t[60] = 1;
    assert_int_equal(save(e, e->t, 80, NULL), WEFT_OK);
    assert_int_equal(files('p', path), 2);
    assert_int_equal(files('s', path), 1);
    assert_int_equal(reuse(e, e->t, CTX), 80);
}

static void slots_have_names(void **state)
{
    scene *e = *state;
    char longest[131];
    answer a = {0};
    weft__kv_snapshot *s;
    memset(longest, 'x', sizeof longest);
    longest[129] = 0;
    const char *bad[] = {"", ".", "..", "a/b", "../a", "a b", "a\n", "\xc3\xa4", "a\\b", "a:b", longest};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        weft_error err = {0};
        s = evaluate(&e->w, e->t, 3);
        assert_int_equal(weft__kv_store_put(e->store, &s, bad[i], hear, &a, &err), WEFT_ARGUMENT);
        assert_non_null(strstr(err.message, "slot's name"));
        assert_non_null(s);
        weft__kv_snapshot_free(&s);
        assert_int_equal(weft__kv_store_fetch_slot(e->store, bad[i], hear, &a, NULL), WEFT_ARGUMENT);
        assert_int_equal(weft__kv_store_erase(e->store, bad[i], hear, &a, NULL), WEFT_ARGUMENT);
    }
    assert_int_equal(a.n, 0);
    longest[128] = 0;
    const char *good[] = {"a", "...", ".a", "-", "slot-1.bin", "A_9", longest};
    for (int32_t i = 0; i < 7; i++) assert_int_equal(save(e, e->t + i, 10 + i, good[i]), WEFT_OK);
    assert_int_equal(save(e, e->t + 50, 30, "a"), WEFT_OK); /* in place of the first */
    scene_reopen(e, PLENTY);
    assert_int_equal(stats(e->store).n_slots, 7);
    for (int32_t i = 0; i < 7; i++) {
        assert_int_equal(fetch(e->store, NULL, 0, good[i], &s), WEFT_OK);
        assert_int_equal(weft__kv_snapshot_head_of(s)->n_tokens, i == 0 ? 30 : 10 + i);
        assert_int_equal(use(&e->w, s, i == 0 ? e->t + 50 : e->t + i, i == 0 ? 30 : 10 + i), i == 0 ? 30 : 10 + i);
        weft__kv_snapshot_free(&s);
    }
    assert_int_equal(weft__kv_store_erase(e->store, "a", hear, &a, NULL), WEFT_OK);
    weft__kv_store_flush(e->store, 0);
    assert_int_equal(a.status, WEFT_OK);
    assert_int_equal(weft__kv_store_erase(e->store, "a", hear, &a, NULL), WEFT_OK);
    weft__kv_store_flush(e->store, 0);
    assert_int_equal(a.status, WEFT_NOT_FOUND);
    assert_int_equal(fetch(e->store, NULL, 0, "a", &s), WEFT_NOT_FOUND);
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
    scene *e = *state;
    char path[512] = "";
    struct stat st;
    setenv("WEFT_LOG", "error", 1);
    for (long at = 0, size = 1; at < size; at += at < 320 ? 3 : 41) {
        assert_int_equal(save(e, e->t, 40, at % 2 ? "s" : NULL), WEFT_OK);
        weft__kv_store_close(&e->store, 0);
        assert_int_equal(files('p', path) + files('s', path), 1);
        assert_int_equal(stat(path, &st), 0);
        size = st.st_size;
        patch(path, at, (unsigned char)(1u << at % 8));
        scene_reopen(e, PLENTY);
        if (reuse(e, e->t, CTX) != 0) fail_msg("byte %ld: used", at);
        assert_int_equal(stats(e->store).n_damaged, 1);
        assert_int_equal(weft__kv_store_find(e->store, ROOT, e->t, CTX), 0);
        assert_int_equal(stat(path, &st), -1);
    }
}

static void truncated_and_longer_files_are_dropped(void **state)
{
    scene *e = *state;
    char path[512];
    struct stat st = {.st_size = 1};
    for (long n = 0; n < st.st_size + 64; n += 37) {
        scene_reopen(e, PLENTY);
        assert_int_equal(save(e, e->t, 40, NULL), WEFT_OK);
        weft__kv_store_close(&e->store, 0);
        assert_int_equal(files('p', path), 1);
        if (st.st_size == 1) assert_int_equal(stat(path, &st), 0);
        if (n == st.st_size) continue;
        assert_int_equal(truncate(path, n), 0);
        scene_reopen(e, PLENTY);
        assert_int_equal(weft__kv_store_find(e->store, ROOT, e->t, CTX), 0);
        assert_int_equal(stats(e->store).n_damaged, 1);
        assert_int_equal(files('p', path), 0);
    }
}

/* Another version whose sums are right: only the number says that it is none of ours. */
static void renumber(const char *path, uint32_t version)
{
    struct stat st;
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &st), 0);
    weft__kv_snapshot *s = weft__kv_snapshot_alloc((uint64_t)st.st_size);
    assert_int_equal(fread(s->bytes, 1, (size_t)st.st_size, f), (size_t)st.st_size);
    ((weft__kv_snapshot_head *)s->bytes)->version = version;
    weft__kv_snapshot_seal(s);
    rewind(f);
    assert_int_equal(fwrite(s->bytes, 1, (size_t)st.st_size, f), (size_t)st.st_size);
    fclose(f);
    weft__kv_snapshot_free(&s);
}

static void other_models_versions_and_layouts_are_dropped(void **state)
{
    scene *e = *state;
    world w2 = {.n_groups = 1, .group = {full(16)}, .n_pages = {20}};
    char path[512];
    w2.group[0].head_dim_k = 1; /* pages of the same size */
    w2.group[0].head_dim_v = 3;
    open_world(&w2);
    for (int what = 0; what < 4; what++) {
        weft__kv_layout layout = what == 2 ? layout_of(&w2) : layout_of(&e->w);
        scene_reopen(e, PLENTY);
        assert_int_equal(save(e, e->t, 40, NULL), WEFT_OK);
        weft__kv_store_close(&e->store, 0);
        assert_int_equal(files('p', path), 1);
        if (what == 0) layout.model.word[1]++;
        if (what == 1) renumber(path, WEFT__KV_SNAPSHOT_VERSION + 1);
        if (what == 3) renumber(path, WEFT__KV_SNAPSHOT_VERSION);
        assert_int_equal(weft__kv_store_open(folder, PLENTY, &layout, &e->store, NULL), WEFT_OK);
        assert_int_equal(weft__kv_store_find(e->store, ROOT, e->t, CTX), what == 3 ? 40 : 0);
        assert_int_equal(files('p', path), what == 3);
    }
    close_world(&w2);
}

/* What somebody saved by name is not another model's to take away, unless he says so by name; and never its own. */
static void slots_of_other_models_are_kept_for_them(void **state)
{
    scene *e = *state;
    weft__kv_layout other = layout_of(&e->w);
    weft__kv_snapshot *s;
    char path[512];
    other.model.word[1]++;
    for (int what = 0; what < 4; what++) {
        assert_int_equal(save(e, e->t, 40, "mine"), WEFT_OK);
        weft__kv_store_close(&e->store, 0);
        assert_int_equal(files('s', path), 1);
        if (what == 3) patch(path, (long)sizeof(weft__kv_snapshot_head) + 8, 1); /* a token: damage is damage */
        assert_int_equal(weft__kv_store_open(folder, PLENTY, &other, &e->store, NULL), WEFT_OK);
        assert_int_equal(stats(e->store).n_damaged, what == 3);
        assert_int_equal(stats(e->store).n_slots, what != 3);
        assert_int_equal(files('s', path), what != 3);
        assert_int_equal(weft__kv_store_find(e->store, ROOT, e->t, CTX), 0);
        assert_int_equal(fetch(e->store, NULL, 0, "mine", &s), WEFT_NOT_FOUND);
        answer a = {0};
        if (what == 1) assert_int_equal(weft__kv_store_erase(e->store, "mine", hear, &a, NULL), WEFT_OK);
        if (what == 2) {
            s = evaluate(&e->w, e->t, 20);
            ((weft__kv_snapshot_head *)s->bytes)->model = other.model;
            assert_int_equal(weft__kv_store_put(e->store, &s, "mine", hear, &a, NULL), WEFT_OK);
        }
        weft__kv_store_flush(e->store, 0);
        assert_int_equal(a.status, WEFT_OK);
        if (what == 2) assert_int_equal(stats(e->store).n_slots, 1); /* in its place */
        scene_reopen(e, PLENTY);
        assert_int_equal(fetch(e->store, NULL, 0, "mine", &s), what == 0 ? WEFT_OK : WEFT_NOT_FOUND);
        if (what == 0) assert_int_equal(use(&e->w, s, e->t, 40), 40);
        if (what == 0) weft__kv_snapshot_free(&s);
    }
}

/* A file that loses its content, or itself, while the store is open. */
static void damage_behind_its_back_is_found(void **state)
{
    scene *e = *state;
    char path[512];
    assert_int_equal(save(e, e->t, 40, NULL), WEFT_OK);
    assert_int_equal(files('p', path), 1);
    assert_int_equal(truncate(path, 100), 0);
    assert_int_equal(reuse(e, e->t, CTX), 0);
    assert_int_equal(files('p', path), 0);
    assert_int_equal(save(e, e->t, 40, NULL), WEFT_OK);
    assert_int_equal(files('p', path), 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(reuse(e, e->t, CTX), 0);
    assert_int_equal(weft__kv_store_find(e->store, ROOT, e->t, CTX), 0);
    assert_int_equal(save(e, e->t, 40, NULL), WEFT_OK);
    assert_int_equal(reuse(e, e->t, CTX), 40);
}

static void only_its_own_files_are_touched(void **state)
{
    scene *e = *state;
    char path[512], victim[512];
    const char *others[] = {"notes.txt", "p-notes.kv", "p-0123456789abcdef",   "s-a b.kv",
                            "s-.kv",     "t-12",       "x-0123456789abcdef.kv"};
    const char *ours[] = {"p-0123456789abcdef.kv", "s-a.kv", "t-0123456789abcdef"};
    struct stat st;
    weft__kv_store_close(&e->store, 0);
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
    scene_reopen(e, PLENTY);
    assert_int_equal(stats(e->store).n_prefixes + stats(e->store).n_slots, 0);
    for (size_t i = 0; i < 10; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, i < 7 ? others[i] : ours[i - 7]);
        assert_int_equal(stat(path, &st), i < 7 ? 0 : -1);
    }
    weft__kv_store *second;
    weft_error err = {0};
    weft__kv_layout layout = layout_of(&e->w);
    assert_int_equal(weft__kv_store_open(folder, PLENTY, &layout, &second, &err), WEFT_STATE);
    assert_non_null(strstr(err.message, "another process"));
    assert_int_equal(weft__kv_store_open("/nonexistent/a", PLENTY, &layout, &second, &err), WEFT_IO);
}

/* Moves a file aside, within the folder and under a name that is none of the store's, and leaves a link to it. */
static void make_link(const char *path, const char *aside)
{
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(symlink(aside, path), 0);
}

/* Whoever may write into the folder could lead the store elsewhere: into files of his own, or onto files of others. Not
 * even links to what the store wrote itself are followed, when it looks through its folder or later; what they lead to
 * stays. */
static void links_are_never_followed(void **state)
{
    scene *e = *state;
    char slot[512], prefix[512], kept[2][512], lock[512];
    struct stat st;
    weft__kv_snapshot *s;
    for (int is_open = 0; is_open < 2; is_open++) { /* a store that is opened then, and one that is open */
        assert_int_equal(save(e, e->t, 40, "a"), WEFT_OK);
        assert_int_equal(save(e, e->t + 7, 40, NULL), WEFT_OK);
        snprintf(slot, sizeof slot, "%s/s-a.kv", folder);
        assert_int_equal(files('p', prefix), 1);
        for (int i = 0; i < 2; i++) snprintf(kept[i], sizeof kept[i], "%s/kept-%d", folder, 2 * is_open + i);
        if (!is_open) weft__kv_store_close(&e->store, 0);
        make_link(slot, kept[0]);
        make_link(prefix, kept[1]);
        if (!is_open) e->store = open_store(&e->w, PLENTY);
        assert_int_equal(fetch(e->store, NULL, 0, "a", &s), is_open ? WEFT_FORMAT : WEFT_NOT_FOUND);
        assert_null(s);
        assert_int_equal(reuse(e, e->t + 7, 40), 0);
        assert_int_equal(stats(e->store).n_damaged, 2);
        assert_int_equal(stats(e->store).n_slots + stats(e->store).n_prefixes, 0);
        assert_true(lstat(slot, &st) && lstat(prefix, &st)); /* the links are gone */
        for (int i = 0; i < 2; i++) assert_true(!lstat(kept[i], &st) && S_ISREG(st.st_mode));
        scene_reopen(e, PLENTY);
    }
    /* A link is replaced, not written through. */
    assert_int_equal(symlink(kept[0], slot), 0);
    uint64_t size = (uint64_t)(lstat(kept[0], &st) ? 0 : st.st_size);
    assert_int_equal(save(e, e->t, 80, "a"), WEFT_OK);
    assert_true(!lstat(slot, &st) && S_ISREG(st.st_mode) && (uint64_t)st.st_size > size);
    assert_true(!lstat(kept[0], &st) && (uint64_t)st.st_size == size);
    /* Nor is the lock made elsewhere. */
    weft__kv_store_close(&e->store, 0);
    weft__kv_store *second;
    weft_error err = {0};
    weft__kv_layout layout = layout_of(&e->w);
    snprintf(lock, sizeof lock, "%s/lock", folder);
    snprintf(kept[0], sizeof kept[0], "%s/elsewhere", folder);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(symlink(kept[0], lock), 0);
    assert_int_equal(weft__kv_store_open(folder, PLENTY, &layout, &second, &err), WEFT_IO);
    assert_non_null(strstr(err.message, "its lock cannot be made"));
    assert_int_equal(lstat(kept[0], &st), -1);
    assert_int_equal(unlink(lock), 0);
    e->store = open_store(&e->w, PLENTY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_STORE(a_prefix_outlives_the_process),
        IN_A_STORE(a_short_beginning_in_common_is_none),
        IN_A_STORE(the_tree_is_fed_from_the_disk),
        cmocka_unit_test_setup_teardown(windows_are_saved_as_far_as_they_are_seen, set_up_windows, tear_down),
        cmocka_unit_test_setup_teardown(a_copy_in_pieces_is_the_copy, set_up_windows, tear_down),
        IN_A_STORE(a_longer_prefix_replaces_a_shorter_one),
        IN_A_STORE(slots_have_names),
        IN_A_STORE(damage_is_dropped),
        IN_A_STORE(truncated_and_longer_files_are_dropped),
        IN_A_STORE(other_models_versions_and_layouts_are_dropped),
        IN_A_STORE(slots_of_other_models_are_kept_for_them),
        IN_A_STORE(damage_behind_its_back_is_found),
        IN_A_STORE(only_its_own_files_are_touched),
        IN_A_STORE(links_are_never_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
