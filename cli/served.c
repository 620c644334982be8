// SPDX-License-Identifier: Apache-2.0
/* served.c: which models weft serve has beside its own (served.h). */
#include "served.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "format/gguf_split.h"
#include "known.h"
#include "weft/hub.h"

enum { DEPTH = 4 /* folders within the one that is named: a pulled model lies in OWNER/NAME */ };

void served_models_free(served_models *all)
{
    for (int32_t i = 0; i < all->n; i++) {
        weft__free((char *)(uintptr_t)all->items[i].name);
        weft__free((char *)(uintptr_t)all->items[i].path);
    }
    weft__free(all->items);
    *all = (served_models){0};
}

static weft_status add(served_models *all, const char *name, size_t n_name, const char *path, weft_error *err)
{
    size_t capacity = (size_t)all->capacity;
    char *own_name = weft__strndup(name, n_name), *own_path = weft__strdup(known_model_of(path));
    if (!own_name || !own_path || !weft__grow(&all->items, &capacity, (size_t)all->n + 1, sizeof *all->items)) {
        weft__free(own_name);
        weft__free(own_path);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for the list of models");
    }
    all->capacity = (int32_t)capacity;
    for (int32_t i = 0; i < all->n; i++)
        if (!strcmp(all->items[i].name, own_name)) {
            weft__free(own_name);
            weft__free(own_path);
            return WEFT_EXISTS;
        }
    all->items[all->n++] = (weft_server_source){.name = own_name, .path = own_path};
    return WEFT_OK;
}

weft_status served_models_add(served_models *all, const char *name, const char *path, int is_pinned, weft_error *err)
{
    weft_status st = add(all, name, strlen(name), path, err);
    if (!st) all->items[all->n - 1].is_pinned = is_pinned;
    return st == WEFT_EXISTS ? weft_fail(err, WEFT_ARGUMENT, "two models are called '%s'", name) : st;
}

static weft_status add_named(served_models *all, const char *text, weft_error *err)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1] || equals - text > 127)
        return weft_fail(err, WEFT_ARGUMENT, "--model %.60s: must be NAME=PATH", text);
    weft_status st = add(all, text, (size_t)(equals - text), equals + 1, err);
    return st == WEFT_EXISTS
               ? weft_fail(err, WEFT_ARGUMENT, "--model %.*s: the name is given twice", (int)(equals - text), text)
               : st;
}

/* ---- folders ---- */

static int ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n > m && !strcasecmp(name + n - m, end);
}

/* Adapters and vision projectors are GGUF files, too: the key that says so stands at the beginning. */
static int is_other_gguf(const char *path)
{
    static const char key[] = "general.type";
    char head[4096];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(head, 1, sizeof head, f) : 0;
    if (f) fclose(f);
    const char *at = n ? memmem(head, n, key, sizeof key - 1) : NULL;
    const size_t skip = sizeof key - 1 + 4 + 8; /* the type of its value, and the value's length */
    if (!at || (size_t)(head + n - at) < skip + 7) return 0;
    return !memcmp(at + skip, "adapter", 7) || !memcmp(at + skip, "mmproj", 6);
}

/* Of a split model the first part stands for all: 1, and *cut bytes of its name are left out. 0: another part. */
static int is_first_part(const char *path, size_t *cut)
{
    char first[PATH_MAX];
    *cut = 0;
    if (!weft__gguf_part_path(path, 0, first, sizeof first)) return 1;
    *cut = strlen("-00001-of-00001");
    return !strcmp(first, path);
}

static int is_model_folder(const char *path)
{
    static const char *const weights[] = {"model.safetensors", "model.safetensors.index.json"};
    char file[PATH_MAX];
    if ((size_t)snprintf(file, sizeof file, "%s/config.json", path) >= sizeof file || access(file, R_OK)) return 0;
    for (int i = 0; i < 2; i++) {
        if ((size_t)snprintf(file, sizeof file, "%s/%s", path, weights[i]) < sizeof file && !access(file, R_OK))
            return 1;
    }
    return 0;
}

static weft_status scan(served_models *all, const char *folder, size_t n_root, int depth, weft_error *err);

/* What it is, and all that lies in it. n_root: bytes of path that are no part of names. */
static weft_status scan_entry(served_models *all, const char *path, size_t n_root, int depth, weft_error *err)
{
    struct stat s;
    size_t cut;
    const char *name = path + n_root;
    weft_status st = WEFT_OK;
    if (stat(path, &s)) return WEFT_OK;
    if (S_ISDIR(s.st_mode)) {
        if (is_model_folder(path)) st = add(all, name, strlen(name), path, err);
        else if (depth < DEPTH) st = scan(all, path, n_root, depth + 1, err);
    } else if (S_ISREG(s.st_mode) && ends_with(path, ".gguf") && is_first_part(path, &cut) && !is_other_gguf(path)) {
        st = add(all, name, strlen(name) - 5 - cut, path, err);
    }
    return st == WEFT_EXISTS ? WEFT_OK : st;
}

static weft_status scan(served_models *all, const char *folder, size_t n_root, int depth, weft_error *err)
{
    struct dirent **entries;
    char path[PATH_MAX];
    weft_status st = WEFT_OK;
    int n = scandir(folder, &entries, NULL, alphasort);
    if (n < 0) return depth ? WEFT_OK : weft_fail(err, WEFT_IO, "--models %s: %s", folder, strerror(errno));
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        if (!st && name[0] != '.' && (size_t)snprintf(path, sizeof path, "%s/%s", folder, name) < sizeof path)
            st = scan_entry(all, path, n_root, depth, err);
        free(entries[i]);
    }
    free(entries);
    return st;
}

/* ---- all ---- */

struct pulled {
    served_models *all;
    weft_error *err;
    weft_status status;
};

static void add_pulled(void *arg, const weft_pulled *m)
{
    struct pulled *p = arg;
    if (p->status || !m->complete) return;
    weft_status st = add(p->all, m->name, strlen(m->name), m->path, p->err);
    p->status = st == WEFT_EXISTS ? WEFT_OK : st;
}

weft_status served_models_find(served_models *all, const struct text_list *named, const struct text_list *folders,
                               int pulled, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int i = 0; i < named->n && !st; i++) st = add_named(all, named->items[i], err);
    for (int i = 0; i < folders->n && !st; i++) {
        char folder[PATH_MAX];
        size_t n = (size_t)snprintf(folder, sizeof folder, "%s", folders->items[i]);
        while (n > 1 && n < sizeof folder && folder[n - 1] == '/') folder[--n] = 0;
        st = scan(all, folder, n + 1, 0, err);
    }
    if (st || all->n || named->n || folders->n || !pulled) return st;
    struct pulled p = {all, err, WEFT_OK};
    st = weft_pulled_each(add_pulled, &p, err);
    if (st == WEFT_UNSUPPORTED || st == WEFT_NOT_FOUND) st = WEFT_OK; /* there are none */
    if (!st) st = p.status;
    return st;
}

weft_status served_models_pin(served_models *all, const struct text_list *names, weft_error *err)
{
    for (int i = 0; i < names->n; i++) {
        int32_t k = 0;
        while (k < all->n && strcmp(all->items[k].name, names->items[i]) != 0) k++;
        if (k == all->n)
            return weft_fail(err, WEFT_ARGUMENT, "--pin %.60s: no model of that name is served", names->items[i]);
        all->items[k].is_pinned = 1;
    }
    return WEFT_OK;
}
