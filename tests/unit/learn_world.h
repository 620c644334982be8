// SPDX-License-Identifier: Apache-2.0
/* learn_world.h: a folder for each claim, with all that is made in it gone behind it; whole files of it. */
#ifndef WEFT_TESTS_LEARN_WORLD_H
#define WEFT_TESTS_LEARN_WORLD_H

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static inline int remove_one(const char *path, const struct stat *s, int kind, struct FTW *where)
{
    (void)s, (void)kind, (void)where;
    return remove(path);
}

static inline void clear_folder(void)
{
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline int make_folder(void **state)
{
    (void)state;
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error, not an end */
    /* where nothing waits for a disk */
    snprintf(folder, sizeof folder, "%s/weft-learn-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    (void)state;
    clear_folder();
    return 0;
}

static inline char *path_of(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static inline size_t load(const char *name, char **out)
{
    struct stat s;
    const int fd = open(path_of(name), O_RDONLY);
    assert_int_equal(fstat(fd, &s), 0);
    *out = malloc((size_t)s.st_size + 1);
    assert_int_equal(read(fd, *out, (size_t)s.st_size), s.st_size);
    (*out)[s.st_size] = 0;
    close(fd);
    return (size_t)s.st_size;
}

static inline void save(const char *name, const char *bytes, size_t n)
{
    const int fd = open(path_of(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, bytes, n), n);
    close(fd);
}

#endif
