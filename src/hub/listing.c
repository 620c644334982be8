// SPDX-License-Identifier: Apache-2.0
/* listing.c: the server's JSON about a repository's files, turned into checked records. No state. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "hub/hub.h"

void weft__listing_free(weft__listing *l)
{
    for (size_t i = 0; i < l->n; i++) weft__free(l->files[i].path);
    weft__free(l->files);
    *l = (weft__listing){0};
}

weft__hub_file *weft__listing_add(weft__listing *l, const char *path, size_t n)
{
    if (!weft__grow(&l->files, &l->capacity, l->n + 1, sizeof *l->files)) return NULL;
    char *copy = weft__strndup(path, n);
    if (!copy) return NULL;
    l->files[l->n] = (weft__hub_file){.path = copy};
    return &l->files[l->n++];
}

static int is_hidden(const char *path, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (path[i] == '.' && (i == 0 || path[i - 1] == '/')) return 1;
    return 0;
}

/* Copies a hexadecimal id of `min` to 64 digits in lower case; returns 0 when it is none. */
static int read_hex(const weft__json *v, size_t min, char out[65])
{
    const char *s;
    size_t n;
    if (!weft__json_string(v, &s, &n)) return 0;
    if (n > 7 && !memcmp(s, "sha256:", 7)) s += 7, n -= 7;
    if (n < min || n > 64) return 0;
    for (size_t i = 0; i < n; i++) {
        char c = s[i] >= 'A' && s[i] <= 'F' ? (char)(s[i] - 'A' + 'a') : s[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return 0;
        out[i] = c;
    }
    out[n] = 0;
    return 1;
}

static weft_status read_size(const weft__json *v, const char *shown, weft__hub_file *f, weft_error *err)
{
    int64_t n;
    if (!v || weft__json_is_null(v)) return WEFT_OK;
    if (!weft__json_int(v, &n) || n < 0)
        return weft_fail(err, WEFT_FORMAT, "the listing gives no valid size for \"%s\"", shown);
    if (f->has_size && f->n_bytes != (uint64_t)n)
        return weft_fail(err, WEFT_FORMAT, "the listing gives two sizes for \"%s\": %llu and %lld bytes", shown,
                         (unsigned long long)f->n_bytes, (long long)n);
    f->has_size = 1;
    f->n_bytes = (uint64_t)n;
    return WEFT_OK;
}

/* Size and ids of one entry: "oid" or "blobId" are git's, "lfs" has the SHA-256 of large files as "oid" or "sha256". */
static weft_status read_details(const weft__json *entry, const char *shown, weft__hub_file *f, weft_error *err)
{
    const weft__json *lfs = weft__json_get(entry, "lfs");
    weft_status st = read_size(weft__json_get(entry, "size"), shown, f, err);
    if (st) return st;
    if (!read_hex(weft__json_get(entry, "oid"), 4, f->id)) read_hex(weft__json_get(entry, "blobId"), 4, f->id);
    if (!lfs || weft__json_is_null(lfs)) return WEFT_OK;
    if ((st = read_size(weft__json_get(lfs, "size"), shown, f, err))) return st;
    const weft__json *oid = weft__json_get(lfs, "oid");
    if (!read_hex(oid ? oid : weft__json_get(lfs, "sha256"), 64, f->sha256))
        return weft_fail(err, WEFT_FORMAT, "the listing gives no valid SHA-256 for \"%s\"", shown);
    memcpy(f->id, f->sha256, sizeof f->id);
    return WEFT_OK;
}

static weft_status read_entry(weft__listing *l, const weft__json *entry, weft_error *err)
{
    const char *path, *type, *why;
    char shown[WEFT__HUB_SHOW];
    size_t n, n_type;
    const weft__json *name = weft__json_get(entry, "path");
    if (!name) name = weft__json_get(entry, "rfilename");
    if (!weft__json_string(name, &path, &n))
        return weft_fail(err, WEFT_FORMAT, "the listing has an entry without a path");
    weft__hub_show(shown, path, n);
    if ((why = weft__hub_path_fault(path, n)))
        return weft_fail(err, WEFT_FORMAT, "the listing names a file whose path %s: \"%s\"; refused", why, shown);
    if (weft__json_string(weft__json_get(entry, "type"), &type, &n_type) && strcmp(type, "file"))
        return WEFT_OK; /* a folder */
    if (is_hidden(path, n)) return WEFT_OK;
    if (l->n >= WEFT__HUB_FILES_MAX)
        return weft_fail(err, WEFT_LIMIT, "the listing has more than %d files", WEFT__HUB_FILES_MAX);
    weft__hub_file *f = weft__listing_add(l, path, n);
    if (!f) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the listing");
    return read_details(entry, shown, f, err);
}

weft_status weft__listing_parse(weft__listing *l, const char *json, size_t n, weft_error *err)
{
    weft__json *root = NULL;
    weft_status st = weft__json_parse(json, n, &root, err);
    if (st) return weft_fail_within(err, st, "the listing is not JSON");
    const weft__json *entries = weft__json_kind_of(root) == WEFT__JSON_OBJECT ? weft__json_get(root, "siblings") : root;
    if (weft__json_kind_of(entries) != WEFT__JSON_ARRAY)
        st = weft_fail(err, WEFT_FORMAT, "the listing holds no list of files");
    for (size_t i = 0; !st && i < weft__json_size(entries); i++) st = read_entry(l, weft__json_at(entries, i), err);
    weft__json_free(&root);
    return st;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const weft__hub_file *)a)->path, ((const weft__hub_file *)b)->path);
}

weft_status weft__listing_sort(weft__listing *l, weft_error *err)
{
    char shown[WEFT__HUB_SHOW];
    if (l->n) qsort(l->files, l->n, sizeof *l->files, by_path);
    for (size_t i = 1; i < l->n; i++)
        if (!strcmp(l->files[i - 1].path, l->files[i].path))
            return weft_fail(err, WEFT_FORMAT, "the listing names \"%s\" twice",
                             weft__hub_show(shown, l->files[i].path, strlen(l->files[i].path)));
    return WEFT_OK;
}

const weft__hub_file *weft__listing_find(const weft__listing *l, const char *path)
{
    weft__hub_file key = {.path = (char *)path};
    return l->n ? bsearch(&key, l->files, l->n, sizeof *l->files, by_path) : NULL;
}
