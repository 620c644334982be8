// SPDX-License-Identifier: Apache-2.0
/* places.c: see places.h. */
#include "places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int place_in_config(char *out, size_t room, const char *name)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n = -1;
    if (xdg && xdg[0] == '/') n = snprintf(out, room, "%s/weft/%s", xdg, name);
    else if (home && home[0] == '/') n = snprintf(out, room, "%s/.config/weft/%s", home, name);
    return n >= 0 && (size_t)n < room;
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
