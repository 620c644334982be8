// SPDX-License-Identifier: Apache-2.0
/* places.c: see places.h. */
#include "places.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int place_in_cache(char *out, size_t room, const char *name)
{
    const char *own = getenv("WEFT_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (own && own[0]) n = snprintf(out, room, "%s/%s", own, name);
    else if (xdg && xdg[0] == '/') n = snprintf(out, room, "%s/weft/%s", xdg, name);
    else if (home && home[0] == '/') n = snprintf(out, room, "%s/.cache/weft/%s", home, name);
    return n >= 0 && (size_t)n < room;
}

int make_folders_above(const char *path)
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

char *read_small(const char *path, size_t most, size_t *n)
{
    FILE *f = fopen(path, "rbe");
    char *text = f ? malloc(most + 1) : NULL;
    *n = text ? fread(text, 1, most + 1, f) : 0;
    const int whole = text && *n <= most && !ferror(f);
    if (f) fclose(f);
    if (whole) {
        text[*n] = 0;
        return text;
    }
    free(text);
    return NULL;
}
