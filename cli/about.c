// SPDX-License-Identifier: Apache-2.0
/* about.c: weft --version (about.h). */
#include "about.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft_commit.h> /* WEFT_COMMIT; the build writes it */
#include "options.h"
#include "terminal.h"
#include "weft/weft.h"

/* Prints NAME of each NAME.so in the folder path[0..length); returns how many. */
static int list_plugins(const char *path, size_t length, int n)
{
    char folder[4096];
    const struct dirent *e;
    if (!length || length >= sizeof folder) return n;
    memcpy(folder, path, length);
    folder[length] = 0;
    DIR *d = opendir(folder);
    if (!d) return n;
    while ((e = readdir(d))) {
        const size_t k = strlen(e->d_name);
        if (k <= 3 || strcmp(e->d_name + k - 3, ".so")) continue;
        fputs(n++ ? ", " : "", stdout);
        print_clean(stdout, e->d_name, k - 3, 0);
    }
    closedir(d);
    return n;
}

static void print_plugins(void)
{
    const char *folders = getenv("WEFT_PLUGIN_PATH");
    int n = 0;
    fputs("plugins    ", stdout);
    for (const char *f = folders ? folders : ""; *f;) {
        const size_t length = strcspn(f, ":");
        n = list_plugins(f, length, n);
        f += length + (f[length] == ':');
    }
    puts(n ? "" : folders ? "none in WEFT_PLUGIN_PATH" : "none: WEFT_PLUGIN_PATH is not set");
}

int about_version(void)
{
    weft_backend_info cpu = {.size = sizeof cpu};
    weft_error err = {0};
    printf("weft %s\ncommit     %s\n", weft_version(), WEFT_COMMIT);
    const weft_status st = weft_provider_describe("cpu", &cpu, &err);
    if (!st) printf("processor  %s\n", cpu.device);
    print_plugins();
    return st ? report("--version", &err) : EXIT_DONE;
}
