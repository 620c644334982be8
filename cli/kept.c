// SPDX-License-Identifier: Apache-2.0
/* kept.c: see kept.h. Two commands that keep something at once leave what one of them knew. */
#include "kept.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "places.h"

enum { FILE_BYTES = 1 << 20 };

weft__json *kept_read(const char *path)
{
    size_t n;
    char *text = read_small(path, FILE_BYTES, &n);
    weft__json *kept = NULL;
    if (text && weft__json_parse(text, n, &kept, NULL)) kept = NULL;
    free(text);
    if (weft__json_kind_of(kept) == WEFT__JSON_OBJECT) return kept;
    weft__json_free(&kept);
    return NULL;
}

static int replace(const char *path, const weft__strbuf *text)
{
    char beside[PATH_MAX];
    const int n = snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid());
    if (text->failed || n < 0 || (size_t)n >= sizeof beside || make_folders_above(path)) return 0;
    FILE *f = fopen(beside, "wbe");
    int ok = f && fwrite(text->data, 1, text->len, f) == text->len;
    if (f && fclose(f)) ok = 0;
    if (ok && !rename(beside, path)) return 1;
    remove(beside);
    return 0;
}

int kept_put(const char *path, const char *key, weft__json *entry)
{
    weft__json *kept = kept_read(path);
    weft__strbuf text = {0};
    if (!kept) kept = weft__json_new_object();
    int ok = weft__json_set(kept, key, entry);
    if (ok) weft__json_write(&text, kept, WEFT__JSON_INDENTED);
    ok = ok && replace(path, &text);
    weft__strbuf_free(&text);
    weft__json_free(&kept);
    return ok;
}
