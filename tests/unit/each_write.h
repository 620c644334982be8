// SPDX-License-Identifier: Apache-2.0
/* each_write.h: work on a folder that is killed, or finds the disk full, at each of its writes in turn. A child does
 * it, up to its n-th write; the writes of SQLite, of files and of logs, renames and removals pass through here: link
 * with weft_each_write(TEST). One in a program, whose parent has no second thread. */
#ifndef WEFT_TESTS_EACH_WRITE_H
#define WEFT_TESTS_EACH_WRITE_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef enum write_fault { NO_FAULT, KILLED, KILLED_HALFWAY, DISK_FULL } write_fault;

/* What parent and child share, so that what the child says survives it. */
static struct {
    atomic_int n_writes;
    _Alignas(16) char said[256];
} * each_write_shared;
static write_fault each_write_fault; /* the child's own, as the next one */
static int each_write_n;

ssize_t __real_pwrite64(int fd, const void *bytes, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t n, off_t at);
ssize_t __real_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __real_unlink(const char *name);
int __wrap_unlink(const char *name);
int __real_remove(const char *name);
int __wrap_remove(const char *name);
int __real_unlinkat(int fd, const char *name, int flags);
int __wrap_unlinkat(int fd, const char *name, int flags);

/* The one that is asked for, and in a full disk those behind it, do not get far. */
static inline int each_write_meets(void)
{
    if (!each_write_fault) return 0;
    const int n = ++each_write_shared->n_writes, is_full = each_write_fault == DISK_FULL;
    if (n != each_write_n && !(is_full && n > each_write_n && n < each_write_n + 4)) return 0;
    if (each_write_fault == KILLED) kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return 1;
}

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t n, off_t at)
{
    if (!each_write_meets()) return __real_pwrite64(fd, bytes, n, at);
    if (each_write_fault != KILLED_HALFWAY) return -1;
    if (__real_pwrite64(fd, bytes, n / 2, at) >= 0) kill(getpid(), SIGKILL);
    return -1;
}

/* A full disk takes half. */
ssize_t __wrap_write(int fd, const void *bytes, size_t n)
{
    if (!each_write_meets()) return __real_write(fd, bytes, n);
    const ssize_t done = __real_write(fd, bytes, n / 2);
    if (each_write_fault == KILLED_HALFWAY) kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return done > 0 ? done : -1;
}

/* Halfway through: done, and nothing of what is to follow. */
int __wrap_rename(const char *from, const char *to)
{
    if (!each_write_meets()) return __real_rename(from, to);
    if (each_write_fault == KILLED_HALFWAY && !__real_rename(from, to)) kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return -1;
}

/* A full disk gives back what it has. */
static inline int each_write_removed(int meets, int status)
{
    if (meets && each_write_fault == KILLED_HALFWAY) kill(getpid(), SIGKILL);
    return status;
}

int __wrap_unlink(const char *name)
{
    const int meets = each_write_meets();
    return each_write_removed(meets, __real_unlink(name));
}

int __wrap_remove(const char *name)
{
    const int meets = each_write_meets();
    return each_write_removed(meets, __real_remove(name));
}

int __wrap_unlinkat(int fd, const char *name, int flags)
{
    const int meets = each_write_meets();
    return each_write_removed(meets, __real_unlinkat(fd, name, flags));
}

/* ---- the folder ---- */

static char where[64];

static inline int each_write_remove(const char *name, const struct stat *s, int kind, struct FTW *at)
{
    (void)s, (void)kind, (void)at;
    return remove(name);
}

/* Empty. */
static inline void where_anew(void)
{
    nftw(where, each_write_remove, 8, FTW_DEPTH | FTW_PHYS);
    mkdir(where, 0700);
}

/* A group's setup: the folder, where nothing waits for a disk, and what is shared. */
static inline int each_write_begin(void **state)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
    (void)state;
    each_write_shared =
        mmap(NULL, sizeof *each_write_shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    snprintf(where, sizeof where, "%s/weft-writes-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    if (each_write_shared == MAP_FAILED || !mkdtemp(where)) return -1;
    return vfs->xSetSystemCall(vfs, "pwrite64", (sqlite3_syscall_ptr)__wrap_pwrite64) ||
           vfs->xSetSystemCall(vfs, "pwrite", (sqlite3_syscall_ptr)__wrap_pwrite64);
}

static inline int each_write_end(void **state)
{
    (void)state;
    nftw(where, each_write_remove, 8, FTW_DEPTH | FTW_PHYS);
    return munmap(each_write_shared, sizeof *each_write_shared);
}

/* What is in the folder: files that hold some bytes, such as are half made, adapters, and folders of the second rank.
 */
static struct looking {
    const char *bytes;
    int n_with, n_temporary, n_adapters, n_folders;
} looking;

static inline int look_at(const char *name, const struct stat *st, int kind, struct FTW *at)
{
    const size_t n_name = strlen(name);
    if (kind == FTW_D) looking.n_folders += at->level == 2;
    if (kind != FTW_F) return 0;
    char *all = malloc((size_t)st->st_size + 1);
    const int fd = open(name, O_RDONLY);
    const ssize_t size = read(fd, all, (size_t)st->st_size);
    looking.n_with += size > 0 && memmem(all, (size_t)size, looking.bytes, strlen(looking.bytes)) != NULL;
    looking.n_temporary += strstr(name, ".tmp-") != NULL;
    looking.n_adapters += n_name > 5 && !strcmp(name + n_name - 5, ".gguf");
    free(all);
    close(fd);
    return 0;
}

static inline struct looking look_for(const char *bytes)
{
    looking = (struct looking){.bytes = bytes};
    assert_int_equal(nftw(where, look_at, 8, FTW_PHYS), 0);
    return looking;
}

/* ---- the walk ---- */

typedef struct each_write {
    void (*prepare)(void); /* the folder, in the parent */
    /* In the child. What was acknowledged to it, it writes into said [256], which is of zeros. 0: it could not begin,
     * for which a full disk alone is a reason */
    int (*work)(void *said);
    /* In the parent, behind each; is_met: it was killed at its n-th write, or the disk was full; else all was done */
    void (*check)(const void *said, write_fault how, int n, int is_met);
} each_write;

static inline int each_write_meet(const each_write *e, write_fault how, int n)
{
    int status;
    memset(each_write_shared, 0, sizeof *each_write_shared);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        each_write_n = n;
        each_write_fault = how;
        _exit(e->work(each_write_shared->said) || how == DISK_FULL ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    const int is_met = n <= each_write_shared->n_writes;
    const int as_meant = is_met && how != DISK_FULL ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : !status;
    if (!as_meant) fail_msg("write %d: it ended with %x", n, (unsigned)status);
    return is_met;
}

/* At write `first`, and each step-th from there. How many there are, about: the first that none was. */
static inline int at_each_write(const each_write *e, write_fault how, int first, int step)
{
    for (int n = first, is_met = 1;; n += step) {
        e->prepare();
        is_met = each_write_meet(e, how, n);
        e->check(each_write_shared->said, how, n, is_met);
        if (!is_met) return n;
    }
}

#endif
