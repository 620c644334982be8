// SPDX-License-Identifier: Apache-2.0
/* place.c: see place.h. State: the disk only. */
#include "base/place.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int weft__place_in_cache(char *out, size_t room, const char *name)
{
    const char *own = getenv("WEFT_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const char *slash = name ? "/" : "";
    int n;
    if (!name) name = "";
    if (own && own[0]) n = snprintf(out, room, "%s%s%s", own, slash, name);
    else if (xdg && xdg[0] == '/') n = snprintf(out, room, "%s/weft%s%s", xdg, slash, name);
    else if (home && home[0] == '/') n = snprintf(out, room, "%s/.cache/weft%s%s", home, slash, name);
    else return 0;
    return n >= 0 && (size_t)n < room ? 1 : -1;
}

int weft__place_folders(const char *path)
{
    char folder[PATH_MAX];
    const int n = snprintf(folder, sizeof folder, "%s", path);
    if (n < 0 || (size_t)n >= sizeof folder) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (char *slash = n ? strchr(folder + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(folder, 0700) && errno != EEXIST) return -1;
        *slash = '/';
    }
    return 0;
}

int weft__place_put(const char *path, const void *bytes, size_t n)
{
    char beside[PATH_MAX];
    const int length = snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof beside || weft__place_folders(path)) return 0;
    FILE *f = fopen(beside, "wbe");
    int ok = f && fwrite(bytes, 1, n, f) == n;
    if (f && fclose(f)) ok = 0;
    if (ok && !rename(beside, path)) return 1;
    if (f) remove(beside);
    return 0;
}
