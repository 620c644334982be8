// SPDX-License-Identifier: Apache-2.0
/* hub_listing.c: any bytes as the server's listing: whatever is chosen of what comes through has a path that stays in
 * its folder, and the parts of a set are all there. The first line is what was asked for. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "hub/hub.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_choice(const weft__listing *l, const char *what)
{
    weft__hub_choice c;
    weft_error err = {0};
    weft_status st = weft__listing_choose(l, "owner/name", what, &c, &err);
    if (st && (c.n || !err.message[0])) abort();
    if (!st && !c.n) abort();
    for (size_t i = 0; i < c.n; i++) {
        const char *path = c.files[i]->path;
        if (weft__listing_find(l, path) != c.files[i] || strstr(path, "..") == path || path[0] == '/' ||
            strchr(path, '\\') || strstr(path, "/../"))
            abort();
    }
    weft__hub_choice_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t before = weft__alloc_live();
    const char *text = (const char *)data, *end = n ? memchr(text, '\n', n) : NULL;
    size_t n_what = end ? (size_t)(end - text) : 0, skip = end ? n_what + 1 : 0;
    weft__hub_name name;
    weft__listing l = {0};
    weft_error err;
    char *what = weft__strndup(text, n_what), *full = weft__alloc(n_what + 16);
    if (!what || !full) abort();
    strcat(strcpy(full, "owner/name:"), what);
    if (!weft__hub_name_parse(full, &name, &err) && weft__hub_path_fault(name.what, strlen(name.what))) abort();
    weft__hub_name_parse(what, &name, &err);
    if (!weft__listing_parse(&l, text + skip, n - skip, &err) && !weft__listing_sort(&l, &err)) {
        check_choice(&l, "");
        if (n_what && n_what <= WEFT__HUB_PATH_MAX) check_choice(&l, what);
    }
    weft__listing_free(&l);
    weft__free(what);
    weft__free(full);
    if (weft__alloc_live() != before) abort();
    return 0;
}
