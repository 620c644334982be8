// SPDX-License-Identifier: Apache-2.0
/* machine.h: files of /proc and /sys laid out in a temporary directory, for tests of what reads them there. One
 * thread. */
#ifndef WEFT_TESTS_MACHINE_H
#define WEFT_TESTS_MACHINE_H

#include "unit/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* What stands before their paths. */
static char machine[] = "/tmp/weft-machine-XXXXXX";

static inline int make_machine(void **state)
{
    (void)state;
    return mkdtemp(machine) ? 0 : -1;
}

static inline int remove_machine(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", machine);
    return system(command);
}

/* Writes a file, "/proc/stat", and makes the folders that it is in. */
static inline void put_file(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", machine, name);
    for (char *p = path + strlen(machine) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        mkdir(path, 0700);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

#endif
