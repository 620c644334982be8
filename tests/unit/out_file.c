// SPDX-License-Identifier: Apache-2.0
/* out_file.c: what a name stands for decides how it is written: files are replaced when they are complete, links are
 * followed, devices and FIFOs are written into, permissions stay, all else is refused before anything is there; and a
 * signal leaves no temporary file. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "fixture.h"
#include "format/out_file.h"
#include "folder.h"

static int make_folder(void **state)
{
    (void)state;
    return folder_make("out");
}

static const char *in(const char *name)
{
    static char out[4][256];
    static int at;
    at = (at + 1) % 4;
    snprintf(out[at], sizeof out[at], "%s/%s", folder, name);
    return out[at];
}

static weft_status write_to(const char *to, const char *text, weft_error *err)
{
    weft__out_file o;
    weft_status st = weft__out_file_open(&o, to, err);
    if (st) return st;
    if (!(st = weft__out_file_reserve(&o, strlen(text), err))) st = weft__out_file_write(&o, text, strlen(text), err);
    if (!st) st = weft__out_file_commit(&o, err);
    weft__out_file_close(&o);
    return st;
}

static void succeeds(const char *to, const char *text)
{
    weft_error err = {0};
    if (weft__out_file_check(to, &err) || write_to(to, text, &err)) fail_msg("%s: %s", to, err.message);
}

/* By all doors alike, and nothing new lies in the folder. */
static void refused(const char *to, const char *why)
{
    weft__out_file o;
    const int before = files_in_folder();
    for (int door = 0; door < 4; door++) {
        weft_error err = {0};
        weft_status st = door == 0                          ? weft__out_file_check(to, &err)
                         : door == 1                        ? weft__out_file_room(to, 1, &err)
                         : door == 2                        ? weft__out_file_open(&o, to, &err)
                         : weft__out_file_grow(to, 0, &err) ? WEFT_OK
                                                            : (weft_status)err.status;
        if (st != WEFT_IO || !strstr(err.message, why))
            fail_msg("door %d, %s: status %d, '%s' lacks '%s'", door, to, st, err.message, why);
    }
    assert_int_equal(files_in_folder(), before);
}

static void holds(const char *name, const char *text)
{
    char got[64] = "";
    FILE *f = fopen(name, "r");
    if (!f) fail_msg("%s: %s", name, strerror(errno));
    assert_non_null(fgets(got, sizeof got, f));
    fclose(f);
    assert_string_equal(got, text);
}

static mode_t kind_of(const char *name)
{
    struct stat s;
    assert_int_equal(lstat(name, &s), 0);
    return s.st_mode & S_IFMT;
}

static void links_stay(void **state)
{
    (void)state;
    succeeds(path, "first");
    assert_int_equal(symlink("out", in("link")), 0);
    assert_int_equal(symlink(in("link"), in("chain")), 0);
    assert_int_equal(symlink("not-yet", in("dangling")), 0);
    assert_int_equal(symlink("loop", in("loop")), 0);
    assert_int_equal(symlink("none/x", in("nowhere")), 0);
    succeeds(in("chain"), "second");
    holds(path, "second");
    succeeds(in("dangling"), "third");
    holds(in("not-yet"), "third");
    assert_true(kind_of(in("link")) == S_IFLNK && kind_of(in("chain")) == S_IFLNK &&
                kind_of(in("dangling")) == S_IFLNK);
    assert_true(kind_of(path) == S_IFREG && kind_of(in("not-yet")) == S_IFREG);
    refused(in("loop"), "loop");
    refused(in("nowhere"), "No such file");
    const char *const made[] = {"link", "chain", "dangling", "loop", "nowhere", "not-yet"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) assert_int_equal(unlink(in(made[i])), 0);
    assert_int_equal(files_in_folder(), 1);
}

/* While it is written, too. */
static void who_may_read_stays(void **state)
{
    (void)state;
    static const mode_t modes[] = {0600, 0640, 0660, 0604, 0755};
    const mode_t mask = umask(022);
    struct stat s;
    weft__out_file o;
    weft_error err = {0};
    assert_int_equal(symlink("private", in("link")), 0);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        succeeds(in("private"), "first");
        assert_int_equal(stat(in("private"), &s), 0);
        assert_int_equal(s.st_mode & 07777, 0644); /* a new one's */
        assert_int_equal(chmod(in("private"), modes[i]), 0);
        assert_int_equal(weft__out_file_open(&o, in(i % 2 ? "link" : "private"), &err), WEFT_OK);
        assert_int_equal(fstat(o.fd, &s), 0);
        assert_int_equal(s.st_mode & 07777, modes[i]);
        assert_int_equal(weft__out_file_write(&o, "second", 6, &err), WEFT_OK);
        assert_int_equal(weft__out_file_commit(&o, &err), WEFT_OK);
        weft__out_file_close(&o);
        holds(in("private"), "second");
        assert_int_equal(stat(in("private"), &s), 0);
        assert_int_equal(s.st_mode & 07777, modes[i]);
        assert_int_equal(unlink(in("private")), 0);
    }
    umask(mask);
    if (!geteuid()) { /* who alone may give files away */
        succeeds(in("private"), "first");
        assert_int_equal(chown(in("private"), 12345, 23456), 0);
        succeeds(in("private"), "second");
        assert_int_equal(stat(in("private"), &s), 0);
        assert_true(s.st_uid == 12345 && s.st_gid == 23456);
        assert_int_equal(unlink(in("private")), 0);
    }
    assert_int_equal(unlink(in("link")), 0);
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/s", folder);
    assert_int_equal(bind(s, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(mkdir(in("d"), 0777), 0);
    succeeds(path, "there");
    refused("", "empty");
    refused(folder, "is a folder");
    refused(in("d"), "is a folder");
    refused(in("new/"), "a folder's name");
    refused(in("out/x"), "Not a directory");
    refused(in("none/x"), "No such file");
    refused(in("s"), "is a socket");
    holds(path, "there");
    if (geteuid() != 0) { /* root may write everything */
        assert_int_equal(chmod(path, 0444) | chmod(in("d"), 0555), 0);
        refused(path, "Permission denied");
        refused(in("d/x"), "Permission denied");
        assert_int_equal(chmod(path, 0644), 0);
    }
    if (!mknod(in("b"), S_IFBLK | 0600, makedev(7, 250))) {
        refused(in("b"), "is a disk");
        unlink(in("b"));
    } else {
        print_message("left out: no block device can be made here: %s\n", strerror(errno));
    }
    close(s);
    unlink(in("s"));
    rmdir(in("d"));
}

static void devices_are_written_into(void **state)
{
    (void)state;
    if (mknod(in("null"), S_IFCHR | 0666, makedev(1, 3)) || mknod(in("full"), S_IFCHR | 0666, makedev(1, 7))) {
        print_message("left out: no device can be made here: %s\n", strerror(errno));
        return;
    }
    weft_error err = {0};
    int fd = open(in("null"), O_WRONLY);
    const int usable = fd >= 0; /* a file system may have none */
    if (usable) {
        close(fd);
        succeeds(in("null"), "gone");
        assert_int_equal(write_to(in("full"), "too much", &err), WEFT_IO);
        assert_non_null(strstr(err.message, "disk is full"));
    } else {
        print_message("left out: devices cannot be used here: %s\n", strerror(errno));
    }
    assert_true(kind_of(in("null")) == S_IFCHR && kind_of(in("full")) == S_IFCHR);
    unlink(in("null"));
    unlink(in("full"));
}

static void *reads(void *name)
{
    static char got[1 << 20];
    FILE *f = fopen(name, "r");
    size_t n = f ? fread(got, 1, sizeof got - 1, f) : 0;
    if (f) fclose(f);
    got[n] = 0;
    return got;
}

/* More than a pipe holds; the reader comes later, too. */
static void a_fifo_is_written_into(void **state)
{
    (void)state;
    static char name[256], text[300001];
    pthread_t reader;
    void *got;
    snprintf(name, sizeof name, "%s", in("fifo"));
    memset(text, 'x', sizeof text - 1);
    assert_int_equal(mkfifo(name, 0600), 0);
    assert_int_equal(pthread_create(&reader, NULL, reads, name), 0);
    succeeds(name, text);
    assert_int_equal(pthread_join(reader, &got), 0);
    assert_string_equal((char *)got, text);
    assert_true(kind_of(name) == S_IFIFO);
    unlink(name);
}

static void on_signal(int number)
{
    weft__out_file_abandon_all();
    signal(number, SIG_DFL);
    raise(number);
}

/* In a process of its own: three files are begun, one of them is complete, and a signal comes. */
static void ends_by_signal(void)
{
    weft__out_file o[3];
    signal(SIGTERM, on_signal);
    for (int i = 0; i < 3; i++)
        if (weft__out_file_open(&o[i],
                                in(i == 0   ? "a"
                                   : i == 1 ? "b"
                                            : "out"),
                                NULL) ||
            weft__out_file_write(&o[i], "new", 3, NULL))
            _exit(1);
    if (weft__out_file_commit(&o[0], NULL) || files_in_folder() != 4) _exit(2);
    raise(SIGTERM);
    _exit(3);
}

static void a_signal_leaves_nothing(void **state)
{
    (void)state;
    int status = 0;
    succeeds(path, "old");
    pid_t child = fork();
    if (!child) ends_by_signal();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    assert_int_equal(files_in_folder(), 2); /* what was complete, and what was there */
    holds(in("a"), "new");
    holds(path, "old");
    unlink(in("a"));
}

/* Places are given back: as many files as one likes, one after the other; and more at once than there are places. */
static void many_files(void **state)
{
    (void)state;
    enum { MANY = 40 };
    static weft__out_file o[MANY];
    for (int i = 0; i < 3 * MANY; i++) succeeds(path, "x");
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "m%d", i);
        assert_int_equal(weft__out_file_open(&o[i], in(name), NULL), WEFT_OK);
    }
    assert_int_equal(files_in_folder(), 1 + MANY);
    for (int i = 0; i < MANY; i++) weft__out_file_close(&o[i]);
    assert_int_equal(files_in_folder(), 1);
}

/* The last claim: it cannot be taken back. */
static void nobody_waits_for_a_reader_behind_an_interrupt(void **state)
{
    (void)state;
    weft_error err = {0};
    weft__out_file o;
    assert_int_equal(mkfifo(in("fifo"), 0600), 0);
    weft__out_file_interrupt();
    assert_int_equal(weft__out_file_open(&o, in("fifo"), &err), WEFT_CANCELLED);
    unlink(in("fifo"));
}

static int everything(void *arg)
{
    (void)arg;
    return write_to(path, "complete", NULL) == WEFT_OK;
}

static void without_memory(void **state)
{
    (void)state;
    assert_true(fail_each(everything, NULL) >= 3);
    assert_int_equal(files_in_folder(), 1);
    holds(path, "complete");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_stay),
        cmocka_unit_test(who_may_read_stays),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(devices_are_written_into),
        cmocka_unit_test(a_fifo_is_written_into),
        cmocka_unit_test(a_signal_leaves_nothing),
        cmocka_unit_test(many_files),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(nobody_waits_for_a_reader_behind_an_interrupt),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
