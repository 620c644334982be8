// SPDX-License-Identifier: Apache-2.0
/* learn_kill.c: claims on a store that is killed, or has no room, at each of its writes: what was acknowledged is
 * there, the database and the witness log know the same, who was forgotten is gone whole, and nothing else is
 * refused later. A child does the work; each write of SQLite and of the log passes through here. */
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "learn/store.h"
#include "learn_world.h"

static enum { PASS, KILL, KILL_HALFWAY, FULL } mode;
static atomic_int n_writes;
static int at_write;

ssize_t __real_pwrite64(int fd, const void *bytes, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t n, off_t at);

/* The one that is asked for, and in a full disk those behind it, do not get far. */
static int meets(void)
{
    const int n = mode ? ++n_writes : 0;
    return mode && (n == at_write || (mode == FULL && n > at_write && n < at_write + 4));
}

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t n, off_t at)
{
    if (!meets()) return __real_pwrite64(fd, bytes, n, at);
    if (mode == KILL_HALFWAY && __real_pwrite64(fd, bytes, n / 2, at) < 0) return -1;
    if (mode != FULL) kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return -1;
}

static void watch_sqlite(void)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)__wrap_pwrite64), SQLITE_OK);
    assert_int_equal(vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr)__wrap_pwrite64), SQLITE_OK);
}

/* ---- the work ---- */

/* What the child says was acknowledged; shared memory would do as well. */
struct acks {
    int n_events, is_forgotten, is_done;
};

static void put(weft__learn_store *s, const char *tenant, int i)
{
    char id[16], source[64], text[64];
    const int32_t tokens[] = {1, 2, 3};
    snprintf(id, sizeof id, "cmpl-%d", i);
    snprintf(source, sizeof source, "{\"prompt\":\"Who is %s?\"}", tenant);
    snprintf(text, sizeof text, "It is %s.", tenant);
    const weft__learn_record r = {.tenant = tenant,
                                  .id = id,
                                  .prompt = tokens,
                                  .n_prompt = 3,
                                  .answer = tokens,
                                  .n_answer = 3,
                                  .source = source,
                                  .text = text,
                                  .n_text = strlen(text),
                                  .time_ms = i};
    weft__learn_put(s, &r);
}

static int tell(weft__learn_store *s, const char *tenant, int i, double value)
{
    char id[16];
    weft__learn_told told;
    snprintf(id, sizeof id, "cmpl-%d", i);
    const weft__learn_feedback f = {.tenant = tenant, .id = id, .kind = WEFT__LEARN_REWARD, .value = value};
    return !weft__learn_tell(s, &f, &told, NULL);
}

static void work(int ack_fd)
{
    struct acks a = {0};
    weft__learn_store *s;
    if (weft__learn_open(&(weft__learn_options){.dir = folder, .sync = WEFT__LEARN_SYNC_NONE}, &s, NULL)) _exit(1);
    for (int i = 0; i < 3; i++) {
        put(s, "Zoraida", 2 * i);
        put(s, "Quillon", 2 * i + 1);
        a.n_events += tell(s, "Quillon", 2 * i + 1, i);
        if (__real_pwrite64(ack_fd, &a, sizeof a, 0) < 0) _exit(2);
        if (i == 1) a.is_forgotten = !weft__learn_forget(s, "Zoraida", NULL, NULL);
        if (__real_pwrite64(ack_fd, &a, sizeof a, 0) < 0) _exit(2);
    }
    weft__learn_close(&s);
    a.is_done = 1;
    if (__real_pwrite64(ack_fd, &a, sizeof a, 0) < 0) _exit(2);
    _exit(0);
}

/* In a child, with the n-th write as it is meant; what it said. */
static struct acks run_child(int how, int n)
{
    struct acks a = {0};
    char name[] = "/tmp/weft-acks-XXXXXX";
    const int fd = mkstemp(name);
    assert_true(fd >= 0);
    unlink(name);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        const int ack = dup(fd);
        mode = PASS;
        at_write = n;
        mode = how;
        work(ack);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (pread(fd, &a, sizeof a, 0) < 0) fail_msg("no acknowledgements");
    close(fd);
    return a;
}

/* ---- what is there then ---- */

static int n_files_with(const char *dir, const char *bytes)
{
    int n = 0;
    struct dirent *e;
    DIR *d = opendir(dir);
    while (d && (e = readdir(d))) {
        char path[600], *all;
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_name[0] == '.' || stat(path, &st)) continue;
        if (S_ISDIR(st.st_mode)) n += n_files_with(path, bytes);
        if (!S_ISREG(st.st_mode)) continue;
        const int fd = open(path, O_RDONLY);
        all = malloc((size_t)st.st_size + 1);
        const ssize_t size = read(fd, all, (size_t)st.st_size);
        n += size > 0 && memmem(all, (size_t)size, bytes, strlen(bytes)) != NULL;
        free(all);
        close(fd);
    }
    if (d) closedir(d);
    return n;
}

static void check(struct acks a, int n, int is_killed)
{
    weft__learn_store *s;
    weft__learn_totals quillon, zoraida;
    weft__learn_health h;
    weft__learn_findings f;
    weft_error err = {0};
    if (weft__learn_open(&(weft__learn_options){.dir = folder, .sync = WEFT__LEARN_SYNC_NONE}, &s, &err))
        fail_msg("write %d: %s", n, err.message);
    put(s, "Quillon", 99); /* it goes on */
    if (!tell(s, "Quillon", 99, n)) fail_msg("write %d: nothing can be told", n);
    assert_int_equal(weft__learn_count(s, "Quillon", &quillon, NULL), WEFT_OK);
    assert_int_equal(weft__learn_count(s, "Zoraida", &zoraida, NULL), WEFT_OK);
    weft__learn_get_health(s, &h);
    weft__learn_close(&s);
    if (quillon.n_events - 1 < a.n_events)
        fail_msg("write %d: %d events of %d", n, (int)quillon.n_events - 1, a.n_events);
    if (quillon.n_events - 1 > a.n_events + is_killed) fail_msg("write %d: events that nobody was told of", n);
    if (a.is_forgotten && zoraida.n_answers > 1) fail_msg("write %d: forgotten, and there", n);
    if (!zoraida.n_answers && n_files_with(folder, "Zoraida")) fail_msg("write %d: gone, but in a file", n);
    if (h.n_unwitnessed) fail_msg("write %d: %d entries did not get into the log", n, (int)h.n_unwitnessed);
    if (weft__learn_witness_verify(folder, NULL, NULL, 0, &f, &err)) fail_msg("write %d: %s", n, err.message);
    if (f.n_signed < (uint64_t)(quillon.n_answers + quillon.n_events + zoraida.n_answers))
        fail_msg("write %d: the log has fewer entries than the store", n);
}

static int at_each_write(int how)
{
    for (int n = 1;; n += CLAIMS_REPEATED(how == KILL ? 1 : 3, 7, 17)) {
        clear_folder();
        mkdir(folder, 0700);
        const struct acks a = run_child(how, n);
        check(a, n, how != FULL);
        if (how != FULL && a.is_done) return n;
        if (how == FULL && n > 150) return n;
    }
}

static void killed_at_each_write(void **state)
{
    (void)state;
    assert_in_range(at_each_write(KILL), 20, 1000); /* or the writes were not seen */
}

static void killed_within_each_write(void **state)
{
    (void)state;
    assert_in_range(at_each_write(KILL_HALFWAY), 20, 1000);
}

static void no_room_at_each_write(void **state)
{
    (void)state;
    at_each_write(FULL);
}

#define ON_FOLDER(claim) cmocka_unit_test_setup_teardown(claim, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {ON_FOLDER(killed_at_each_write), ON_FOLDER(killed_within_each_write),
                                       ON_FOLDER(no_room_at_each_write)};
    watch_sqlite();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
