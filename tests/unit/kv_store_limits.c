// SPDX-License-Identifier: Apache-2.0
/* kv_store_limits.c: claims about the disk store where something is short: full caps, full disks, processes that are
 * killed while they write, many callers, refused allocations. Nothing half-written is ever used, and all goes on. */
#include "store_world.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/random.h"

/* Of 100 kills 30 to 60 met a write, on disks and in memory, under sanitizers and emulation. */
enum { KILLS = 100, LEAST_CUT = KILLS / 10 };

/* ---- limits ---- */

static void the_cap_removes_what_was_used_least_recently(void **state)
{
    scene *e = *state;
    int32_t t[8][48];
    uint64_t one = 0;
    for (int i = 0; i < 8; i++) series(t[i], 1000 * i, 48);
    assert_int_equal(save(e, t[0], 48, NULL), WEFT_OK);
    one = stats(e->store).n_bytes;
    scene_reopen(e, 4 * one + one / 2);
    for (int i = 1; i < 4; i++) assert_int_equal(save(e, t[i], 48, NULL), WEFT_OK);
    assert_int_equal(reuse(e, t[0], 48), 48); /* used again */
    assert_int_equal(save(e, t[4], 48, NULL), WEFT_OK);
    assert_int_equal(weft__kv_store_find(e->store, ROOT, t[1], 48), 0);
    assert_int_equal(weft__kv_store_find(e->store, ROOT, t[0], 48), 48);
    assert_int_equal(stats(e->store).n_removed, 1);
    /* Slots stay; when they take three quarters of the cap, the next one is refused, and prefixes have the rest. */
    for (int i = 0; i < 3; i++) assert_int_equal(save(e, t[i], 48, (char[]){(char)('a' + i), 0}), WEFT_OK);
    assert_int_equal(stats(e->store).n_prefixes, 1);
    assert_int_equal(save(e, t[4], 48, "e"), WEFT_LIMIT);
    assert_int_equal(save(e, t[5], 48, NULL), WEFT_OK);
    assert_int_equal(stats(e->store).n_prefixes, 1);
    assert_int_equal(save(e, t[4], 48, "a"), WEFT_OK); /* takes the place of its own kind */
    assert_int_equal(stats(e->store).n_slots, 3);
    assert_true(stats(e->store).n_bytes <= 4 * one);
    assert_int_equal(stats(e->store).n_write_failed, 1);
}

/* What an owner saves by name leaves room for what others do. */
static void an_owner_leaves_room_for_others(void **state)
{
    scene *e = *state;
    int32_t t[48];
    char a[] = "key-0123456789ab.0", b[] = "key-ba9876543210.0";
    series(t, 1000, 48);
    assert_int_equal(save(e, t, 48, "x"), WEFT_OK);
    uint64_t one = stats(e->store).n_bytes;
    assert_int_equal(weft__kv_store_erase(e->store, "x", NULL, NULL, NULL), WEFT_OK);
    scene_reopen(e, 8 * one + one / 2); /* six slots in all */
    for (int i = 0; i < 3; i++, a[sizeof a - 2]++) assert_int_equal(save(e, t, 48, a), WEFT_OK);
    assert_int_equal(save(e, t, 48, a), WEFT_LIMIT); /* a half */
    a[sizeof a - 2]--;
    assert_int_equal(save(e, t, 48, a), WEFT_OK); /* in its own place */
    assert_int_equal(save(e, t, 48, b), WEFT_OK);
    b[sizeof b - 2]++;
    assert_int_equal(save(e, t, 48, b), WEFT_LIMIT); /* two of four, beside the three */
    assert_int_equal(save(e, t, 48, "x"), WEFT_OK);  /* nobody's have what there is */
    assert_int_equal(save(e, t, 48, "key-x"), WEFT_OK);
    assert_int_equal(stats(e->store).n_slots, 6);
}

/* The order of use lasts over a restart, and a smaller cap holds at once. */
static void a_smaller_cap_holds_from_the_start(void **state)
{
    scene *e = *state;
    int32_t t[6][48];
    char path[512];
    for (int i = 0; i < 6; i++) {
        series(t[i], 1000 * i, 48);
        assert_int_equal(save(e, t[i], 48, NULL), WEFT_OK);
        nanosleep(&(struct timespec){0, 5000000}, NULL); /* coarse clocks of file systems */
    }
    uint64_t one = stats(e->store).n_bytes / 6;
    assert_false(weft__kv_store_wants(e->store, ROOT, t[2], 48)); /* counts as used; its time is set at the end */
    scene_reopen(e, 2 * one);
    assert_int_equal(files('p', path), 2);
    assert_int_equal(weft__kv_store_find(e->store, ROOT, t[2], 48), 48);
    assert_int_equal(weft__kv_store_find(e->store, ROOT, t[5], 48), 48);
}

/* The disk of whoever sets `hung` does not answer when a file's time is set. In libc's place. */
static atomic_int hung;

int utimensat(int dir, const char *path, const struct timespec times[2], int flags)
{
    while (atomic_load(&hung)) nanosleep(&(struct timespec){0, 1000000}, NULL);
    return (int)syscall(SYS_utimensat, dir, path, times, flags);
}

/* Nothing is queued; the end has only times to set, and waits for that no longer than for all else. */
static void the_end_does_not_wait_for_a_disk_that_hangs(void **state)
{
    scene *e = *state;
    weft__kv_store_close(&e->store, 0);
    size_t without = weft__alloc_live();
    scene_reopen(e, PLENTY);
    assert_int_equal(save(e, e->t, 48, NULL), WEFT_OK);
    assert_false(weft__kv_store_wants(e->store, ROOT, e->t, 48));
    size_t live = weft__alloc_live();
    atomic_store(&hung, 1);
    weft__kv_store_close(&e->store, 100); /* which returns though the disk never does */
    size_t left = weft__alloc_live();
    atomic_store(&hung, 0);
    wait_until(weft__alloc_live() == without);
    assert_int_equal(weft__alloc_live(), without);
    assert_int_equal(left, live); /* its thread frees it, when the disk lets it go */
}

/* With a limit on the size of files writing fails half-way, nothing stays behind, and nothing else goes; without it it
 * goes on. */
static void a_full_disk_is_survived(void **state)
{
    scene *e = *state;
    char path[512];
    struct rlimit old, tight;
    setenv("WEFT_LOG", "error", 1);
    assert_int_equal(save(e, e->t, 16, "small"), WEFT_OK);
    assert_int_equal(save(e, e->t + 16, 16, NULL), WEFT_OK);
    getrlimit(RLIMIT_FSIZE, &old);
    tight = old;
    tight.rlim_cur = 700;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    weft_status st = save(e, e->t, 80, NULL), slot = save(e, e->t, 80, "small");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(st, WEFT_IO);
    assert_int_equal(slot, WEFT_IO);
    assert_int_equal(files('t', path), 0);
    assert_int_equal(files('p', path), 1);     /* nothing was removed for what no room would have helped */
    assert_int_equal(reuse(e, e->t, CTX), 16); /* the old slot is whole */
    assert_int_equal(save(e, e->t, 80, NULL), WEFT_OK);
    assert_int_equal(reuse(e, e->t, CTX), 80);
}

/* ---- a disk that is full ---- */

/* What the disk of the folder holds, when all of it is the store's; 0: it has no end. */
static atomic_llong disk_bytes;

static long long used_bytes(void)
{
    long long sum = 0;
    struct stat st;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *d; (d = readdir(dir));)
        if (!fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode)) sum += st.st_size;
    closedir(dir);
    return sum;
}

/* The file that was flushed last, and not written since; how often a file got its name, and how often without having
 * been flushed; how often the folder was, behind the last name. Which flush fails: 'f' of files, 'd' of folders. */
static atomic_ullong flushed;
static atomic_int n_named, n_named_early, n_folder_flushed, failing_flush;

/* In libc's place. */
int fsync(int fd)
{
    struct stat st;
    if (fstat(fd, &st)) return -1;
    if (atomic_load(&failing_flush) == (S_ISDIR(st.st_mode) ? 'd' : 'f')) {
        errno = EIO;
        return -1;
    }
    if (S_ISDIR(st.st_mode)) atomic_fetch_add(&n_folder_flushed, 1);
    else atomic_store(&flushed, st.st_ino);
    return (int)syscall(SYS_fsync, fd);
}

/* In libc's place. */
int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    struct stat st;
    atomic_fetch_add(&n_named, 1);
    if (fstatat(from_dir, from, &st, AT_SYMLINK_NOFOLLOW) || st.st_ino != atomic_load(&flushed))
        atomic_fetch_add(&n_named_early, 1);
    atomic_store(&n_folder_flushed, 0);
    return (int)syscall(SYS_renameat, from_dir, from, to_dir, to);
}

/* Writes what fits on that disk, and says ENOSPC when nothing does. In libc's place. */
ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    long long size = atomic_load(&disk_bytes);
    struct stat st;
    if (size > 0 && n > 0 && !fstat(fd, &st) && S_ISREG(st.st_mode)) {
        long long room = size - used_bytes();
        if (room <= 0) {
            errno = ENOSPC;
            return -1;
        }
        if ((unsigned long long)room < n) n = (size_t)room;
    }
    if (!fstat(fd, &st) && st.st_ino == atomic_load(&flushed)) atomic_store(&flushed, 0);
    return (ssize_t)syscall(SYS_pwrite64, fd, p, n, at);
}

/* A machine that loses its power keeps what was flushed: a file has all its bytes there before it has its name, and the
 * name before the write is said to be done. What cannot be flushed gets no name; where that is the folder, the caller
 * learns that it may not last. */
static void a_name_comes_after_the_bytes_and_before_the_answer(void **state)
{
    scene *e = *state;
    char path[512];
    setenv("WEFT_LOG", "error", 1);
    for (int i = 0; i < 2; i++) {
        int before = atomic_load(&n_named);
        assert_int_equal(save(e, e->t, 40, i ? "a" : NULL), WEFT_OK);
        assert_int_equal(atomic_load(&n_named), before + 1);
        assert_int_equal(atomic_load(&n_named_early), 0);
        assert_int_equal(atomic_load(&n_folder_flushed), 1);
    }
    int named = atomic_load(&n_named);
    int32_t others[40];
    series(others, 500, 40);
    atomic_store(&failing_flush, 'f');
    weft_status file = save(e, others, 40, "b");
    atomic_store(&failing_flush, 'd');
    weft_status last = save(e, others, 40, "c");
    atomic_store(&failing_flush, 0);
    assert_int_equal(file, WEFT_IO);
    assert_int_equal(last, WEFT_IO);
    assert_int_equal(atomic_load(&n_named), named + 1); /* c's */
    assert_int_equal(files('t', path), 0);
    scene_reopen(e, PLENTY);
    weft__kv_snapshot *s;
    assert_int_equal(fetch(e->store, NULL, 0, "b", &s), WEFT_NOT_FOUND);
    assert_int_equal(fetch(e->store, NULL, 0, "c", &s), WEFT_OK);
    weft__kv_snapshot_free(&s);
}

static weft_status save_on_a_disk_of(scene *e, uint64_t bytes, const int32_t *tokens, int32_t n, const char *name)
{
    atomic_store(&disk_bytes, (long long)bytes);
    weft_status st = save(e, tokens, n, name);
    atomic_store(&disk_bytes, 0);
    return st;
}

static int32_t restore(scene *e, const char *name, const int32_t *tokens, int32_t n)
{
    weft__kv_snapshot *s;
    assert_int_equal(fetch(e->store, NULL, 0, name, &s), WEFT_OK);
    int32_t got = use(&e->w, s, tokens, n);
    weft__kv_snapshot_free(&s);
    return got;
}

/* A slot "kept" of t[0] and prefixes of t[1], t[2], t[3], of which t[2] was used least recently. Returns the bytes of
 * each. */
static uint64_t save_four(scene *e, int32_t t[8][80])
{
    for (int i = 0; i < 8; i++) series(t[i], 1000 * (i + 1), 80);
    assert_int_equal(save(e, t[0], 48, "kept"), WEFT_OK);
    for (int i = 1; i < 4; i++) assert_int_equal(save(e, t[i], 48, NULL), WEFT_OK);
    assert_int_equal(reuse(e, t[1], 48), 48);
    uint64_t n_bytes = stats(e->store).n_bytes;
    assert_int_equal(n_bytes, used_bytes());
    return n_bytes / 4;
}

/* The prefixes of t are whole where `there` has a 1, and not there where it has a 0; a slot serves those that have an
 * s. */
static void check_prefixes(scene *e, int32_t t[8][80], const char *there)
{
    char path[512];
    int n = 0;
    for (int i = 0; there[i]; i++) {
        int32_t serves = there[i] == '0' ? 0 : 48;
        assert_int_equal(weft__kv_store_find(e->store, ROOT, t[i], 48), serves);
        assert_int_equal(reuse(e, t[i], 48), serves);
        n += there[i] == '1';
    }
    assert_int_equal(files('p', path), n);
    assert_int_equal(files('t', path), 0);
    assert_int_equal(restore(e, "kept", t[0], 48), 48);
    assert_int_equal(stats(e->store).n_damaged, 0);
}

/* The cap is far away, but the disk has room for half of what is written: the oldest prefixes give way, slots never. */
static void a_full_disk_makes_room_for_what_is_new(void **state)
{
    scene *e = *state;
    int32_t t[8][80];
    char path[512];
    uint64_t one = save_four(e, t), disk = 4 * one + one / 2;
    assert_int_equal(save_on_a_disk_of(e, disk, t[4], 48, NULL), WEFT_OK);
    assert_int_equal(stats(e->store).n_removed, 1);
    check_prefixes(e, t, "s1011000"); /* the last that are used, in this order: t[1], t[3], t[4] */
    assert_int_equal(save_on_a_disk_of(e, disk, t[5], 80, NULL), WEFT_OK); /* larger than one, smaller than two */
    assert_int_equal(stats(e->store).n_removed, 3);
    check_prefixes(e, t, "s0001100");
    assert_int_equal(reuse(e, t[5], 80), 80);
    assert_int_equal(save_on_a_disk_of(e, disk, t[6], 80, "new"), WEFT_OK); /* a slot too */
    assert_int_equal(stats(e->store).n_removed, 5);
    assert_int_equal(stats(e->store).n_slots, 2);
    assert_int_equal(stats(e->store).n_write_failed, 0);
    assert_int_equal(save(e, t[7], 48, NULL), WEFT_OK);
    assert_true(used_bytes() <= (long long)disk);
    /* Prefixes smaller than what is to be written stay. */
    assert_int_equal(save_on_a_disk_of(e, disk, t[1], 80, NULL), WEFT_LIMIT);
    assert_int_equal(save_on_a_disk_of(e, disk, t[1], 80, "new"), WEFT_LIMIT);
    assert_int_equal(stats(e->store).n_removed, 5);
    assert_int_equal(stats(e->store).n_write_failed, 2);
    for (int again = 0; again < 2; again++) {
        check_prefixes(e, t, "s00000s1");
        assert_int_equal(files('s', path), 2);
        assert_int_equal(restore(e, "new", t[6], 80), 80);
        scene_reopen(e, PLENTY);
    }
}

/* What is removed does not help: so much is given up once, for each write, and no more. */
static void a_disk_that_others_fill_costs_each_write_no_more_than_its_size(void **state)
{
    scene *e = *state;
    int32_t t[8][80];
    uint64_t one = save_four(e, t);
    assert_int_equal(save_on_a_disk_of(e, 2 * one, t[4], 48, NULL), WEFT_LIMIT);
    assert_int_equal(stats(e->store).n_removed, 1);
    check_prefixes(e, t, "s1010000");
    assert_int_equal(save_on_a_disk_of(e, 2 * one, t[4], 48, "kept"), WEFT_LIMIT);
    assert_int_equal(stats(e->store).n_write_failed, 2);
    assert_int_equal(stats(e->store).n_removed, 2);
    check_prefixes(e, t, "s0010000"); /* the slot holds what it held */
    assert_int_equal(save(e, t[4], 48, NULL), WEFT_OK);
    scene_reopen(e, PLENTY);
    check_prefixes(e, t, "s0011000");
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
static void tell(void *arg, weft_status status, const char *message, weft__kv_snapshot *snapshot)
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
    weft__kv_store *store = open_store(&w, 3u << 20);
    for (;; version++) {
        int32_t t[CTX], n = 40 + version % 56;
        char name[] = {(char)('a' + version % SLOTS), 0};
        series(t, FIRST_TOKEN + version, CTX);
        weft__kv_snapshot *s = evaluate(&w, t, n), *p = evaluate(&w, t, n);
        while (weft__kv_store_put(store, &p, NULL, NULL, NULL, NULL) == WEFT_BUSY) weft__kv_store_flush(store, 0);
        while (weft__kv_store_put(store, &s, name, tell, (void *)(intptr_t)version, NULL) == WEFT_BUSY)
            weft__kv_store_flush(store, 0);
        if (version % 3 == 0) weft__kv_store_flush(store, 0);
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
        weft__kv_snapshot *s = weft__kv_snapshot_alloc((uint64_t)st.st_size);
        assert_int_equal(fread(s->bytes, 1, (size_t)st.st_size, f), (size_t)st.st_size);
        fclose(f);
        assert_int_equal(weft__kv_snapshot_check(s, &layout, NULL), WEFT_OK);
        int32_t n_tokens = weft__kv_snapshot_head_of(s)->n_tokens;
        assert_int_equal(use(w, s, weft__kv_snapshot_tokens(s), n_tokens), n_tokens);
        weft__kv_snapshot_free(&s);
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
        if (k % 2)
            poll(&(struct pollfd){.fd = fds[0], .events = POLLIN}, 1, PATIENCE_MS); /* it has written something */
        nanosleep(&(struct timespec){0, 1000000 + (long)weft__rng_below(&rng, 30000000)}, NULL);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, NULL, 0), child);
        for (int32_t v; read(fds[0], &v, sizeof v) == sizeof v; n_told++) {
            acknowledged[v % SLOTS] = v;
            if (v >= next) next = v + 1;
        }
        close(fds[0]);
        n_cut += files('t', path) > 0;
        weft__kv_store *store = open_store(&w, 3u << 20);
        assert_int_equal(stats(store).n_damaged, 0); /* a file has its name only when it is whole */
        assert_int_equal(files('t', path), 0);
        n_found += check_folder(&w);
        for (int i = 0; i < SLOTS; i++) {
            weft__kv_snapshot *s;
            if (acknowledged[i] < 0) continue;
            assert_int_equal(fetch(store, NULL, 0, (char[]){(char)('a' + i), 0}, &s), WEFT_OK);
            int32_t version =
                weft__kv_snapshot_tokens(s)[0] - FIRST_TOKEN; /* acknowledged, or written just before the kill */
            assert_true(version >= acknowledged[i] && version % SLOTS == i);
            weft__kv_snapshot_free(&s);
        }
        weft__kv_store_close(&store, 0);
    }
    if (getenv("WEFT_TEST_VERBOSE"))
        print_message("%d kills, %d of them during a write; %d saves acknowledged; %d files checked\n", KILLS, n_cut,
                      n_told, n_found);
    assert_true(n_found > KILLS);
    assert_true(n_told > 0);
    assert_in_range(n_cut, LEAST_CUT, KILLS);
    close_world(&w);
}

/* ---- many callers, little memory ---- */

typedef struct caller {
    weft__kv_store *store;
    int id, n_heard;
} caller;

static void hear_of_many(void *arg, weft_status status, const char *message, weft__kv_snapshot *snapshot)
{
    caller *c = arg;
    (void)status;
    (void)message;
    c->n_heard++;
    weft__kv_snapshot_free(&snapshot);
}

static void *ask(void *arg)
{
    caller *c = arg;
    world w = one_group();
    int n = 0;
    open_world(&w);
    for (int i = 0; i < 60; i++) {
        int32_t t[CTX];
        series(t, 1000 * (i % 7), CTX);
        weft__kv_snapshot *s = NULL;
        if (weft__kv_store_wants(c->store, ROOT, t, 20 + i)) s = evaluate(&w, t, 20 + i);
        if (s) n += weft__kv_store_put(c->store, &s, i % 5 ? NULL : "shared", hear_of_many, c, NULL) == WEFT_OK;
        weft__kv_snapshot_free(&s);
        n += weft__kv_store_fetch(c->store, ROOT, t, CTX, hear_of_many, c, NULL) == WEFT_OK;
        if (i % 10 == c->id) n += weft__kv_store_erase(c->store, "shared", hear_of_many, c, NULL) == WEFT_OK;
        if (i % 20 == 0) weft__kv_store_flush(c->store, 0);
    }
    weft__kv_store_flush(c->store, 0);
    assert_int_equal(c->n_heard, n); /* everybody is answered, once */
    close_world(&w);
    return NULL;
}

static void many_threads_ask_at_once(void **state)
{
    scene *e = *state;
    pthread_t thread[3];
    caller c[3] = {0};
    scene_reopen(e, 12000);
    for (int i = 0; i < 3; i++) {
        c[i] = (caller){.store = e->store, .id = i};
        assert_int_equal(pthread_create(&thread[i], NULL, ask, &c[i]), 0);
    }
    for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
    assert_int_equal(stats(e->store).queued_bytes, 0);
    assert_int_equal(stats(e->store).n_queued, 0);
    assert_true(stats(e->store).n_bytes <= 12000);
}

static int store_once(void *arg)
{
    weft__kv_layout *layout = arg;
    weft__kv_store *store;
    int32_t t[40];
    weft__kv_snapshot *s = weft__kv_snapshot_alloc(sizeof(weft__kv_snapshot_head));
    int ok = s != NULL;
    weft__kv_snapshot_free(&s);
    series(t, 100, 40);
    if (weft__kv_store_open(folder, PLENTY, layout, &store, NULL)) return 0;
    answer a = {.status = WEFT_OK};
    ok &= !weft__kv_store_fetch(store, ROOT, t, 40, hear, &a, NULL);
    weft__kv_store_flush(store, 0);
    ok &= a.status == WEFT_OK && a.snapshot != NULL;
    if (a.snapshot) {
        answer kept = {.status = WEFT_OK};
        assert_int_equal(weft__kv_snapshot_match(a.snapshot, layout, ROOT, t, 40), 40);
        ok &= !weft__kv_store_put(store, &a.snapshot, "again", hear, &kept, NULL);
        weft__kv_snapshot_free(&a.snapshot);
        weft__kv_store_flush(store, 0);
        ok &= kept.status == WEFT_OK;
    }
    ok &= !weft__kv_store_erase(store, "again", NULL, NULL, NULL);
    weft__kv_store_close(&store, 0);
    return ok;
}

static void survives_every_allocation_that_fails(void **state)
{
    scene *e = *state;
    setenv("WEFT_LOG", "error", 1);
    assert_int_equal(save(e, e->t, 40, NULL), WEFT_OK);
    weft__kv_store_close(&e->store, 0);
    weft__kv_layout layout = layout_of(&e->w);
    assert_true(fail_each(store_once, &layout) >= 10);
    scene_reopen(e, PLENTY);
    assert_int_equal(reuse(e, e->t, 40), 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_STORE(the_cap_removes_what_was_used_least_recently),
        IN_A_STORE(an_owner_leaves_room_for_others),
        IN_A_STORE(a_smaller_cap_holds_from_the_start),
        IN_A_STORE(the_end_does_not_wait_for_a_disk_that_hangs),
        IN_A_STORE(a_full_disk_is_survived),
        IN_A_STORE(a_name_comes_after_the_bytes_and_before_the_answer),
        IN_A_STORE(a_full_disk_makes_room_for_what_is_new),
        IN_A_STORE(a_disk_that_others_fill_costs_each_write_no_more_than_its_size),
        IN_A_FOLDER(a_kill_while_writing_leaves_nothing_wrong),
        IN_A_STORE(many_threads_ask_at_once),
        IN_A_STORE(survives_every_allocation_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
