// SPDX-License-Identifier: Apache-2.0
/* manifest.c: see manifest.h. No state. */
#include "hub/manifest.h"

#include <string.h>

#include "hub/cache.h"

weft_status weft__manifest_read(int dir, weft__json **out, weft_error *err)
{
    return weft__hub_record_read(dir, WEFT__MANIFEST, out, err);
}

int weft__manifest_has(const weft__json *m, const weft__hub_file *f, uint64_t n_bytes)
{
    const weft__json *entry = weft__json_get(weft__json_get(m, "files"), f->path);
    const char *id = "";
    int64_t size;
    size_t n;
    weft__json_string(weft__json_get(entry, "id"), &id, &n);
    return weft__json_int(weft__json_get(entry, "size"), &size) && (uint64_t)size == n_bytes &&
           (!f->has_size || f->n_bytes == n_bytes) && !strcmp(id, f->id);
}

/* A copy of m's "files", or a new object: a member of a tree cannot be changed in place. */
static weft__json *copy_files(const weft__json *m)
{
    const weft__json *files = weft__json_get(m, "files");
    return weft__json_kind_of(files) == WEFT__JSON_OBJECT ? weft__json_copy(files) : weft__json_new_object();
}

weft_status weft__manifest_put(int dir, weft__json *m, const weft__hub_file *f, uint64_t n_bytes, const char *sha256,
                               weft_error *err)
{
    weft__json *files = copy_files(m), *entry = weft__json_new_object();
    int ok = weft__json_set(entry, "size", weft__json_new_int((int64_t)n_bytes));
    ok &= weft__json_set(entry, "id", weft__json_new_string(f->id, strlen(f->id)));
    ok &= weft__json_set(entry, "sha256", weft__json_new_string(sha256, strlen(sha256)));
    ok &= weft__json_set(files, f->path, entry);
    ok &= weft__json_set(m, "files", files);
    return ok ? weft__hub_record_write(dir, WEFT__MANIFEST, m, err)
              : weft_fail(err, WEFT_NO_MEMORY, "no memory for the record of pulled files");
}

weft_status weft__manifest_set_folder(int dir, weft__json *m, const weft__hub_choice *files, weft_error *err)
{
    weft__json *paths = weft__json_new_array();
    int ok = 1;
    for (size_t i = 0; i < files->n; i++) {
        const char *path = files->files[i]->path;
        ok &= weft__json_append(paths, weft__json_new_string(path, strlen(path)));
    }
    ok &= weft__json_set(m, "folder", paths);
    return ok ? weft__hub_record_write(dir, WEFT__MANIFEST, m, err)
              : weft_fail(err, WEFT_NO_MEMORY, "no memory for the record of pulled files");
}

const weft__json *weft__manifest_folder(const weft__json *m)
{
    const weft__json *folder = weft__json_get(m, "folder");
    return weft__json_kind_of(folder) == WEFT__JSON_ARRAY ? folder : NULL;
}
