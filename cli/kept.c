// SPDX-License-Identifier: Apache-2.0
/* kept.c: see kept.h. Two commands that keep something at once leave what one of them knew. */
#include "kept.h"

#include <stdlib.h>

#include "base/place.h"
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

int kept_put(const char *path, const char *key, weft__json *entry)
{
    weft__json *kept = kept_read(path);
    weft__strbuf text = {0};
    if (!kept) kept = weft__json_new_object();
    int ok = weft__json_set(kept, key, entry);
    if (ok) weft__json_write(&text, kept, WEFT__JSON_INDENTED);
    ok = ok && !text.failed && weft__place_put(path, text.data, text.len);
    weft__strbuf_free(&text);
    weft__json_free(&kept);
    return ok;
}
