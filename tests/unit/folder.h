// SPDX-License-Identifier: Apache-2.0
/* folder.h: a folder of its own for one test program, with one file in it, and the count of what else is left there. */
#ifndef WEFT_TESTS_FOLDER_H
#define WEFT_TESTS_FOLDER_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64], path[128];

/* Makes /tmp/weft-XXXXXX and names `file` in it by `path`; 0 when that worked. */
static inline int folder_make(const char *file)
{
    snprintf(folder, sizeof folder, "/tmp/weft-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return 0;
}

/* A group's teardown: fails when anything but `path` was left there. */
static inline int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static inline int files_in_folder(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n - 2;
}

#endif
