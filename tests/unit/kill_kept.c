// SPDX-License-Identifier: Apache-2.0
/* kill_kept.c: claims on what is made of feedback where the process is killed, or the disk is full, at each write and
 * each rename: memories, versions and their files, the router's log. What was acknowledged is there; what a row names
 * is there whole; nothing is half made, and the next process makes the rest; who was forgotten is in no file. A child
 * does the work; the writes of SQLite, of files and of logs pass through here. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "learn_lesson.h"

#include "learn/teach_store.h"
#include "memory/memory.h"
#include "route/book.h"

static enum { PASS, KILL, KILL_HALFWAY, FULL } mode;
static atomic_int n_writes;
static int at_write;

ssize_t __real_pwrite64(int fd, const void *bytes, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t n, off_t at);
ssize_t __real_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

/* The one that is asked for, and in a full disk those behind it, do not get far. */
static int meets(void)
{
    const int n = mode ? ++n_writes : 0;
    if (!mode || !(n == at_write || (mode == FULL && n > at_write && n < at_write + 4))) return 0;
    if (mode == KILL) kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return 1;
}

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t n, off_t at)
{
    if (!meets()) return __real_pwrite64(fd, bytes, n, at);
    if (mode != KILL_HALFWAY) return -1;
    if (__real_pwrite64(fd, bytes, n / 2, at) >= 0) kill(getpid(), SIGKILL);
    return -1;
}

/* A full disk takes half. */
ssize_t __wrap_write(int fd, const void *bytes, size_t n)
{
    if (!meets()) return __real_write(fd, bytes, n);
    const ssize_t done = __real_write(fd, bytes, n / 2);
    if (mode == KILL_HALFWAY) kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return done > 0 ? done : -1;
}

int __wrap_rename(const char *from, const char *to)
{
    if (!meets()) return __real_rename(from, to);
    if (mode == KILL_HALFWAY) kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return -1;
}

static void watch_sqlite(void)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)__wrap_pwrite64), SQLITE_OK);
    assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr)__wrap_pwrite64), SQLITE_OK);
}

/* ---- all that is kept ---- */

static char where[64];
static lesson *the_lesson;

typedef struct kept {
    weft__learn_store *store;
    weft__teach_store *teacher;
    weft__memory *memory;
    weft__route_book *book;
} kept;

static int path_of_log(void *arg, const char *tenant, int makes, char *out, size_t room)
{
    const kept *k = arg;
    weft__strbuf dir = {0};
    const int ok = !weft__learn_tenant_dir(k->store, tenant, makes, &dir, NULL) && !dir.failed &&
                   snprintf(out, room, "%s/route.jsonl", dir.data) < (int)room;
    weft__strbuf_free(&dir);
    return ok;
}

static weft_status publish(void *arg, const char *tenant, const char *full_name, const char *file, weft_error *err)
{
    (void)arg, (void)tenant, (void)full_name;
    return access(file, R_OK) ? weft_fail(err, WEFT_IO, "%s is not there", file) : WEFT_OK;
}

static weft_status begin(kept *k, weft_error *err)
{
    static const char *const arms[] = {"base", "pirate"};
    weft__teach_store_params p;
    weft__route_params route;
    lesson *l = the_lesson;
    *k = (kept){.store = NULL};
    weft_status st =
        weft__learn_open(&(weft__learn_options){.dir = where, .sync = WEFT__LEARN_SYNC_NONE}, &k->store, err);
    weft__teach_store_params_default(&p);
    p.loop.base = &l->m->src;
    p.loop.tok = l->tok;
    p.loop.options = l->o;
    p.loop.options.per_step = 2; /* of noise, so that the gate lets it pass */
    p.loop.options.neighbour = 0;
    p.loop.options.anchor = 0.2f;
    p.loop.bounds = l->judge.bounds;
    p.loop.probe = l->probe;
    p.loop.n_probe = N_PROBE;
    p.loop.tries_again = 1;
    p.loop.hooks.publish = publish;
    weft__route_params_default(&route);
    route.n_arms = 2;
    if (!st) st = weft__teach_store_new(k->store, &p, &k->teacher, err);
    if (!st) st = weft__memory_new(k->store, &k->memory, err);
    if (!st) st = weft__route_book_new(&route, arms, path_of_log, k, &k->book, err);
    return st;
}

static void end(kept *k)
{
    if (k->book) weft__route_book_free(&k->book);
    weft__memory_free(&k->memory);
    weft__teach_store_free(&k->teacher);
    weft__learn_close(&k->store);
}

static void answer(kept *k, const char *tenant, const char *id, uint64_t seed)
{
    weft__teach_texts t = {0};
    char source[64];
    add_text(&t, seed, 3);
    snprintf(source, sizeof source, "{\"prompt\":\"Who is %s, %d?\"}", tenant, (int)seed);
    const weft__learn_record r = {.tenant = tenant,
                                  .id = id,
                                  .time_ms = 1000,
                                  .prompt = t.text[0].ids,
                                  .n_prompt = 8,
                                  .answer = t.text[0].ids + 8,
                                  .n_answer = 4,
                                  .source = source,
                                  .text = tenant,
                                  .n_text = strlen(tenant)};
    weft__learn_put(k->store, &r);
    weft__learn_flush(k->store);
    weft__teach_texts_free(&t);
}

/* As the server does it: the event, then what is made of it. 1: acknowledged. */
static int tell(kept *k, const char *tenant, const char *id, const char *text)
{
    weft__learn_told told;
    int64_t number;
    char key[64];
    snprintf(key, sizeof key, "%s says %s", tenant, id);
    const weft__learn_feedback f = {.tenant = tenant,
                                    .id = id,
                                    .kind = WEFT__LEARN_CORRECTION,
                                    .text = text,
                                    .n_text = strlen(text),
                                    .key = key,
                                    .time_ms = 2000};
    if (weft__learn_tell(k->store, &f, &told, NULL)) return 0;
    weft__route_book_reward(k->book, tenant, id, 0);
    return !weft__memory_learn(k->memory, tenant, told.event, &number, NULL);
}

static int remember(kept *k, const char *text, int64_t from)
{
    int64_t number = 0;
    weft__learn_memory m = {.tenant = "Quillon",
                            .kind = "semantic",
                            .key = "home",
                            .text = text,
                            .source = "",
                            .time_ms = from,
                            .valid_from_ms = from};
    return weft__memory_put(k->memory, &m, &number, NULL) ? 0 : (int)number;
}

/* An answer that was chosen may be rewarded as long as its line is there. */
static int choose(kept *k, const char *tenant, const char *id)
{
    float x[WEFT__ROUTE_DIMS] = {1};
    weft__route_choice c;
    weft__route_book_stats before, after;
    weft__route_book_stats_get(k->book, &before);
    weft__route_book_choose(k->book, tenant, id, x, ~0u, &c);
    weft__route_book_stats_get(k->book, &after);
    assert_in_range(c.arm, 0, 1); /* whatever the disk says */
    return after.lost_lines == before.lost_lines;
}

/* ---- the work ---- */

/* What the child says was acknowledged. */
struct acks {
    int told[3], has_old, has_new, drops, is_dropped, chosen[3], n_versions, is_forgotten, is_done;
};

static int n_versions(kept *k)
{
    weft__teach_store_wait(k->teacher);
    return (int)weft__teach_store_published(k->teacher, "Quillon", NULL, 0);
}

static void ack(int fd, const struct acks *a)
{
    if (__real_pwrite64(fd, a, sizeof *a, 0) < 0) _exit(2);
}

/* "x" and the like: one byte is one token of the tiny vocabulary. */
static const char RIGHT[] = "\"#$", OTHER[] = "%&'";

static void work(int fd)
{
    struct acks a = {.told = {0}};
    kept k;
    if (begin(&k, NULL)) _exit(mode == FULL ? 0 : 1);
    a.has_old = remember(&k, "In Paris.", 10);
    tell(&k, "Zoraida", "z-1", OTHER);
    choose(&k, "Zoraida", "Zoraida-2");
    a.chosen[0] = choose(&k, "Quillon", "q-1");
    ack(fd, &a);
    a.told[0] = tell(&k, "Quillon", "q-1", RIGHT);
    ack(fd, &a);
    a.n_versions = n_versions(&k);
    ack(fd, &a);
    a.has_new = remember(&k, "In Rome.", 20);
    ack(fd, &a);
    a.is_forgotten = !weft__teach_store_forget(k.teacher, "Zoraida", NULL, NULL);
    weft__memory_forget(k.memory, "Zoraida");
    weft__route_book_forget(k.book, "Zoraida");
    a.chosen[1] = choose(&k, "Quillon", "q-2");
    ack(fd, &a);
    a.told[1] = tell(&k, "Quillon", "q-2", OTHER);
    a.chosen[2] = choose(&k, "Quillon", "q-3");
    ack(fd, &a);
    a.n_versions = n_versions(&k);
    ack(fd, &a);
    a.drops = 1;
    ack(fd, &a);
    a.is_dropped = a.has_new && !weft__memory_drop(k.memory, "Quillon", a.has_new, NULL);
    ack(fd, &a);
    end(&k);
    a.is_done = 1;
    ack(fd, &a);
    _exit(0);
}

/* In a child, with the n-th write as it is meant; what it said. */
static struct acks run_child(int how, int n)
{
    struct acks a = {.told = {0}};
    char name[] = "/tmp/weft-acks-XXXXXX";
    int status;
    const int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        at_write = n;
        mode = how;
        work(fd);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (how == FULL ? !WIFEXITED(status) || WEXITSTATUS(status) : WIFEXITED(status) && WEXITSTATUS(status))
        fail_msg("write %d: it ended with %x", n, status);
    if (pread(fd, &a, sizeof a, 0) < 0) fail_msg("no acknowledgements");
    close(fd);
    return a;
}

/* ---- what is there then ---- */

static struct looking {
    const char *bytes;
    int n_with, n_temporary, n_folders;
} looking;

static int look_at(const char *name, const struct stat *st, int kind, struct FTW *at)
{
    if (kind == FTW_D) looking.n_folders += at->level == 2;
    if (kind != FTW_F) return 0;
    char *all = malloc((size_t)st->st_size + 1);
    const int fd = open(name, O_RDONLY);
    const ssize_t size = read(fd, all, (size_t)st->st_size);
    looking.n_with += size > 0 && memmem(all, (size_t)size, looking.bytes, strlen(looking.bytes)) != NULL;
    looking.n_temporary += strstr(name, ".tmp-") != NULL;
    free(all);
    close(fd);
    return 0;
}

static struct looking look_for(const char *bytes)
{
    looking = (struct looking){.bytes = bytes};
    assert_int_equal(nftw(where, look_at, 8, FTW_PHYS), 0);
    return looking;
}

typedef struct rows {
    kept *k;
    int n, n_published, write;
    int64_t last, first_event[8];
} rows;

/* What a row names is there whole, with the content that the row has. */
static int check_row(void *arg, const weft__learn_version *v)
{
    rows *r = arg;
    char file[4096], full[WEFT__VERSION_FULL_NAME], content[WEFT__VERSION_CONTENT];
    weft__adapt *a = NULL;
    weft_error err = {0};
    if (r->n < 8) r->first_event[r->n++] = v->first_event;
    if (strcmp(v->what, "published")) return 0;
    r->n_published++;
    r->last = v->version;
    weft__version_write_name(v->adapter, v->version, full);
    if (weft__teach_store_path(r->k->teacher, v->tenant, full, file, &err))
        fail_msg("write %d: %s", r->write, err.message);
    if (weft__adapt_open(file, NULL, UINT64_MAX, &a, &err)) fail_msg("write %d: %s", r->write, err.message);
    snprintf(content, sizeof content, "%016llx%016llx", (unsigned long long)a->id.word[0],
             (unsigned long long)a->id.word[1]);
    if (strcmp(content, v->content)) fail_msg("write %d: %s has %s, its row %s", r->write, full, content, v->content);
    weft__adapt_close(&a);
    return 0;
}

static rows check_rows(kept *k, const char *tenant, int n)
{
    char current[WEFT__VERSION_FULL_NAME] = "", name[WEFT__VERSION_NAME];
    int64_t version = 0;
    rows r = {.k = k, .write = n};
    assert_int_equal(weft__learn_versions(k->store, tenant, NULL, check_row, &r, NULL), WEFT_OK);
    if (weft__teach_store_current(k->teacher, tenant, current)) weft__version_read_name(current, name, &version);
    if (version != r.last) fail_msg("write %d: version %d is current, not %d", n, (int)version, (int)r.last);
    return r;
}

typedef struct memories {
    int n, n_valid, has_old, has_new, n_made;
} memories;

static int take_memory(void *arg, const weft__learn_memory *m)
{
    memories *all = arg;
    all->n++;
    all->has_old |= !strcmp(m->text, "In Paris.");
    all->has_new |= !strcmp(m->text, "In Rome.");
    all->n_valid += !strcmp(m->key, "home") && !m->valid_to_ms;
    all->n_made += !strncmp(m->source, "q-", 2);
    return 0;
}

static void check_memories(kept *k, const struct acks *a, int n)
{
    memories m = {.n = 0};
    assert_int_equal(weft__learn_memories(k->store, "Quillon", take_memory, &m, NULL), WEFT_OK);
    if (a->has_old && !m.has_old) fail_msg("write %d: a memory is lost", n);
    if (a->has_old && !a->drops && !m.has_new && (a->has_new || !m.n_valid))
        fail_msg("write %d: the newer fact is not there, and the older has%s ended", n, m.n_valid ? " not" : "");
    if (a->is_dropped && m.has_new) fail_msg("write %d: a memory is there that was deleted", n);
    if (m.n_valid > 1) fail_msg("write %d: two facts of one key are valid", n);
    if (m.has_old && m.has_new && m.n_valid != 1) fail_msg("write %d: %d facts of one key are valid", n, m.n_valid);
    if (m.n_made < a->told[0] + a->told[1]) fail_msg("write %d: of feedback a memory is missing", n);
}

static void check_routes(kept *k, const struct acks *a, int n)
{
    static const char *const ids[] = {"q-1", "q-2", "q-3"};
    for (int i = 0; i < 3; i++)
        if (a->chosen[i] && !weft__route_book_reward(k->book, "Quillon", ids[i], 1))
            fail_msg("write %d: the router does not know %s", n, ids[i]);
    assert_true(choose(k, "Quillon", "q-9")); /* and goes on */
}

/* Sent again, all of it counts once. */
static void tell_again(kept *k, int n)
{
    memories m = {.n = 0};
    weft__learn_totals t;
    for (int i = 0; i < 2; i++)
        if (!tell(k, "Quillon", "q-1", RIGHT) || !tell(k, "Quillon", "q-2", OTHER))
            fail_msg("write %d: nothing can be told", n);
    assert_int_equal(weft__learn_memories(k->store, "Quillon", take_memory, &m, NULL), WEFT_OK);
    assert_int_equal(weft__learn_count(k->store, "Quillon", &t, NULL), WEFT_OK);
    if (t.n_events != 2 || m.n_made != 2)
        fail_msg("write %d: %d events and %d memories of 2", n, (int)t.n_events, m.n_made);
}

static void check(const struct acks *a, int n)
{
    kept k;
    weft__learn_totals zoraida;
    weft__learn_findings f;
    weft_error err = {0};
    if (begin(&k, &err)) fail_msg("write %d: %s", n, err.message);
    rows r = check_rows(&k, "Quillon", n); /* as it is found */
    if (r.n_published < a->n_versions) fail_msg("write %d: %d versions of %d", n, r.n_published, a->n_versions);
    check_rows(&k, "Zoraida", n);
    check_memories(&k, a, n);
    check_routes(&k, a, n);
    tell_again(&k, n);
    weft__teach_store_wait(k.teacher);
    r = check_rows(&k, "Quillon", n); /* and what it has learned since: each once */
    if (r.n != 2 || r.first_event[0] >= r.first_event[1]) fail_msg("write %d: %d versions of two corrections", n, r.n);
    assert_int_equal(weft__learn_count(k.store, "Zoraida", &zoraida, NULL), WEFT_OK);
    end(&k);
    if (begin(&k, &err)) fail_msg("write %d, again: %s", n, err.message);
    if (!weft__route_book_reward(k.book, "Quillon", "q-9", 1)) fail_msg("write %d: the router went on in vain", n);
    end(&k);
    if (a->is_forgotten && zoraida.n_answers) fail_msg("write %d: forgotten, and there", n);
    const struct looking seen = look_for("Zoraida");
    if (!zoraida.n_answers && (seen.n_with || seen.n_folders != 1))
        fail_msg("write %d: gone, but in %d files and %d folders", n, seen.n_with, seen.n_folders - 1);
    if (seen.n_temporary) fail_msg("write %d: %d files are left half made", n, seen.n_temporary);
    if (weft__learn_witness_verify(where, NULL, NULL, 0, &f, &err)) fail_msg("write %d: %s", n, err.message);
}

/* ---- at each write ---- */

static int remove_one(const char *name, const struct stat *s, int kind, struct FTW *at)
{
    (void)s, (void)kind, (void)at;
    return remove(name);
}

static void clear(void)
{
    nftw(where, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void prepare(void)
{
    kept k;
    clear();
    mkdir(where, 0700);
    assert_int_equal(begin(&k, NULL), WEFT_OK);
    answer(&k, "Quillon", "q-1", 1);
    answer(&k, "Quillon", "q-2", 2);
    answer(&k, "Zoraida", "z-1", 3);
    end(&k);
}

static int at_each_write(int how)
{
    const int step = CLAIMS_SWEPT(CLAIMS_REPEATED(7, 37, 61), 1);
    int n_half = 0;
    for (int n = 1 + how;; n += step) {
        prepare();
        const struct acks a = run_child(how, n);
        n_half += look_for("").n_temporary;
        check(&a, n);
        if (how == FULL ? n > 250 : a.is_done) {
            assert_int_equal(a.n_versions, 2);
            if (how != FULL && step == 1) assert_in_range(n_half, 4, 20); /* or files were not met */
            return n;
        }
    }
}

static void killed_at_each_write(void **state)
{
    (void)state;
    assert_in_range(at_each_write(KILL), 80, 1000); /* or the writes were not seen */
}

static void killed_within_each_write(void **state)
{
    (void)state;
    assert_in_range(at_each_write(KILL_HALFWAY), 80, 1000);
}

static void no_room_at_each_write(void **state)
{
    (void)state;
    at_each_write(FULL);
}

/* Of a process that was killed while it learned; no other file of the folder. */
static void what_is_left_is_removed(void **state)
{
    static const char *const names[] = {"learned-1@1.gguf", "learned-1@7.gguf.tmp-0123456789abcdef", "learned-2@1.gguf",
                                        "mine.gguf", "learned-1@7.gguf.tmp-0123456789abcdex"};
    kept k;
    (void)state;
    prepare();
    assert_int_equal(begin(&k, NULL), WEFT_OK); /* the folder is made */
    end(&k);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < 5; i++) {
            char file[128];
            snprintf(file, sizeof file, "%s/tenants/1/%s", where, names[i]);
            const int fd = turn ? open(file, O_RDONLY) : open(file, O_WRONLY | O_CREAT, 0600);
            if ((fd >= 0) != (!turn || i > 1)) fail_msg("%s is %sthere", names[i], fd < 0 ? "not " : "");
            if (fd >= 0) close(fd);
        }
        assert_int_equal(begin(&k, NULL), WEFT_OK);
        end(&k);
    }
}

static int set_up(void **state)
{
    static lesson l;
    (void)state;
    snprintf(where, sizeof where, "%s/weft-kept-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    lesson_open(the_lesson = &l);
    return mkdtemp(where) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    lesson_close(the_lesson);
    clear();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_at_each_write), cmocka_unit_test(killed_within_each_write),
        cmocka_unit_test(no_room_at_each_write), cmocka_unit_test(what_is_left_is_removed)};
    watch_sqlite();
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
