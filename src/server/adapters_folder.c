// SPDX-License-Identifier: Apache-2.0
/* adapters_folder.c: the folder that the operator gives for adapters: what lies in it, and whether a path leads out of
 * it. At the start, and on workers. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/learned.h"

int weft__server_adapters_within(const weft__server_model *m, const char *real)
{
    size_t n = m->settings.adapter_dir ? strlen(m->settings.adapter_dir) : 0;
    return n && !strncmp(real, m->settings.adapter_dir, n) && real[n] == '/';
}

int weft__server_adapters_members_within(const weft__server_model *m, const char *folder)
{
    static const char *const names[] = {"adapter_config.json", "adapter_model.safetensors"};
    char joined[PATH_MAX], real[PATH_MAX];
    for (int i = 0; i < 2; i++) {
        if ((size_t)snprintf(joined, sizeof joined, "%s/%s", folder, names[i]) >= sizeof joined) return 0;
        if (realpath(joined, real) && !weft__server_adapters_within(m, real)) return 0;
    }
    return 1;
}

/* NAME.gguf, or a folder with an adapter in it; 0: it is neither. */
static int name_of_entry(const weft__server_model *m, const char *entry, char path[PATH_MAX], char *name,
                         size_t name_size)
{
    size_t n = strlen(entry), tail = n > 5 && !strcmp(entry + n - 5, ".gguf") ? 5 : 0;
    if (entry[0] == '.' ||
        (size_t)snprintf(path, PATH_MAX, "%s/%s/adapter_config.json", m->settings.adapter_dir, entry) >= PATH_MAX ||
        (!tail && access(path, F_OK)))
        return 0;
    snprintf(path, PATH_MAX, "%s/%s", m->settings.adapter_dir, entry);
    snprintf(name, name_size, "%.*s", (int)(n - tail), entry);
    return 1;
}

static weft_status add_entry(const weft__server_model *m, const char *name, const char *path, weft_error *err)
{
    char real[PATH_MAX]; /* of what is not there, its reader will say so */
    if ((realpath(path, real) && !weft__server_adapters_within(m, real)) ||
        !weft__server_adapters_members_within(m, path))
        return weft_fail(err, WEFT_ARGUMENT,
                         "it leads out of the folder for adapters; --adapter NAME=PATH takes one from anywhere");
    if (weft__server_learned_is_name(name))
        return weft_fail(err, WEFT_ARGUMENT, "'%s' is a name as versions have that were learned ('@')", name);
    if (weft__server_is_model_name(m, name))
        return weft_fail(err, WEFT_ARGUMENT, "'%s' is a name of the model itself; give the adapter another", name);
    return weft_engine_adapter_add(m->engine, name, path, 1, WEFT_ADAPTER_LAZY, err);
}

weft_status weft__server_adapters_of_folder(const weft__server_model *m, weft_error *err)
{
    char path[PATH_MAX], name[256];
    struct dirent **entries;
    weft_status st = WEFT_OK;
    int n = scandir(m->settings.adapter_dir, &entries, NULL, alphasort);
    if (n < 0) return weft_fail(err, WEFT_IO, "--adapter-dir %s: cannot be read", m->settings.adapter_dir);
    for (int i = 0; i < n; i++) {
        if (!st && name_of_entry(m, entries[i]->d_name, path, name, sizeof name)) st = add_entry(m, name, path, err);
        if (st == WEFT_ARGUMENT || st == WEFT_EXISTS) { /* a file's name need not be an adapter's */
            fprintf(stderr, "weft serve: %s is left out: %s\n", path, err->message);
            st = WEFT_OK;
        }
        free(entries[i]);
    }
    free(entries);
    return st;
}
