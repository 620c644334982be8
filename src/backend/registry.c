// SPDX-License-Identifier: Apache-2.0
/* registry.c: finding providers, and refusing those that do not fit.
 *
 * A plugin's code runs only after its table passed weft__provider_check; the entry function, which returns that table,
 * is the one exception. State: none; a plugin stays loaded until its last provider is closed. */
#include "backend/registry.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/linked.h"
#include "base/alloc.h"
#include "base/log.h"

static const struct {
    const char *name;
    weft_backend_entry_fn entry;
} linked_in[] = {{"cpu", weft__cpu_entry}};

static const char *const names[] = {"cpu", NULL};

const char *const *weft__provider_names(void)
{
    return names;
}

/* ---- what the core offers ---- */

static void host_log(int level, const char *message)
{
    weft__log(level < 0 || level > WEFT__LOG_DEBUG ? WEFT__LOG_ERROR : (weft__log_level)level, "%s", message);
}

static void *host_alloc(size_t n_bytes)
{
    return weft__alloc_aligned(64, n_bytes);
}

static const weft_host_api host = {sizeof host, WEFT_ABI_VERSION, host_log, host_alloc, weft__free};

/* ---- checking a table ---- */

/* The functions that a table must have, up to which its size must reach. */
#define REQUIRED_SIZE offsetof(weft_backend_api, buffer_new)

static weft_status check_functions(const weft_backend_api *api, const char *where, weft_error *err)
{
    const char *absent = !api->name           ? "name"
                         : !api->open         ? "open"
                         : !api->close        ? "close"
                         : !api->describe     ? "describe"
                         : !api->supports     ? "supports"
                         : !api->compile      ? "compile"
                         : !api->program_free ? "program_free"
                         : !api->run_new      ? "run_new"
                         : !api->run_free     ? "run_free"
                         : !api->run          ? "run"
                                              : NULL;
    if (!absent) return WEFT_OK;
    return weft_fail(err, WEFT_ABI, "%s: its table lacks %s; a provider must offer it (plugin ABI %u.%u, core %u.%u)",
                     where, absent, api->abi_version >> 16, api->abi_version & 0xffff, WEFT_ABI_VERSION >> 16,
                     WEFT_ABI_VERSION & 0xffff);
}

weft_status weft__provider_check(const weft_backend_api *api, const char *where, weft_error *err)
{
    unsigned major = WEFT_ABI_VERSION >> 16, minor = WEFT_ABI_VERSION & 0xffff;
    if (!api)
        return weft_fail(
            err, WEFT_ABI,
            "%s: it refuses this core, whose plugin ABI is %u.%u; rebuild it against this version's headers", where,
            major, minor);
    if (api->abi_version >> 16 != major)
        return weft_fail(
            err, WEFT_ABI,
            "%s: it was built for plugin ABI %u.%u, this core has %u.%u; rebuild it against this version's headers",
            where, api->abi_version >> 16, api->abi_version & 0xffff, major, minor);
    if (api->size < REQUIRED_SIZE)
        return weft_fail(
            err, WEFT_ABI, "%s: its table has %u bytes, this core needs %zu (plugin ABI %u.%u, core %u.%u); rebuild it",
            where, api->size, REQUIRED_SIZE, api->abi_version >> 16, api->abi_version & 0xffff, major, minor);
    return check_functions(api, where, err);
}

/* ---- opening ---- */

/* Fills out with the path of plugin `name`. A bare name is looked up as NAME.so in the folders of WEFT_PLUGIN_PATH. */
static weft_status find_plugin(const char *name, char out[PATH_MAX], weft_error *err)
{
    size_t n = strlen(name);
    const char *dirs = getenv("WEFT_PLUGIN_PATH");
    int has_slash = strchr(name, '/') != NULL, is_file = n > 3 && !strcmp(name + n - 3, ".so");
    if (has_slash || is_file) {
        if (n + 3 > PATH_MAX)
            return weft_fail(err, WEFT_ARGUMENT, "the plugin's path is longer than %d bytes", PATH_MAX);
        snprintf(out, PATH_MAX, "%s%s", has_slash ? "" : "./", name);
        return WEFT_OK;
    }
    for (const char *d = dirs ? dirs : ""; *d;) {
        size_t len = strcspn(d, ":");
        if (len > 0 && len + n + 5 <= PATH_MAX) {
            snprintf(out, PATH_MAX, "%.*s/%s.so", (int)len, d, name);
            FILE *f = fopen(out, "rbe");
            if (f) {
                fclose(f);
                return WEFT_OK;
            }
        }
        d += len + (d[len] == ':');
    }
    return weft_fail(err, WEFT_NOT_FOUND,
                     "provider '%s': linked in is cpu, and there is no %s.so in WEFT_PLUGIN_PATH (%s)", name, name,
                     dirs ? dirs : "not set");
}

/* Loads the shared object and asks it for its table, unchecked. */
static weft_status registry_load(const char *path, void **library, const weft_backend_api **api, weft_error *err)
{
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*library) return weft_fail(err, WEFT_NOT_FOUND, "plugin %s cannot be loaded: %s", path, dlerror());
    void *symbol = dlsym(*library, WEFT_BACKEND_ENTRY);
    if (!symbol) {
        dlclose(*library);
        *library = NULL;
        return weft_fail(err, WEFT_ABI, "%s is no Weft plugin: it does not export %s (this core has plugin ABI %u.%u)",
                         path, WEFT_BACKEND_ENTRY, WEFT_ABI_VERSION >> 16, WEFT_ABI_VERSION & 0xffff);
    }
    weft_backend_entry_fn entry;
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from an object pointer to a function pointer */
    *api = entry(WEFT_ABI_VERSION);
    return WEFT_OK;
}

/* Checks `api` and copies what it has of the table; functions that an older minor version does not know become NULL. */
static weft_status adopt(weft__provider *p, const weft_backend_api *api, const char *where, weft_error *err)
{
    weft_status st = weft__provider_check(api, where, err);
    if (st) return st;
    memcpy(&p->table, api, api->size < sizeof p->table ? api->size : sizeof p->table);
    p->api = &p->table;
    return WEFT_OK;
}

static weft_status find_table(const char *name, weft__provider *p, weft_error *err)
{
    for (size_t i = 0; i < sizeof linked_in / sizeof linked_in[0]; i++) {
        if (!strcmp(name, linked_in[i].name)) return adopt(p, linked_in[i].entry(WEFT_ABI_VERSION), name, err);
    }
    char path[PATH_MAX];
    const weft_backend_api *api = NULL;
    weft_status st = find_plugin(name, path, err);
    if (st || (st = registry_load(path, &p->library, &api, err))) return st;
    return adopt(p, api, path, err);
}

weft_status weft__provider_open(const char *name, const char *options, weft__provider **out, weft_error *err)
{
    *out = NULL;
    weft__provider *p = weft__alloc_zero(1, sizeof *p);
    if (!p) return weft_fail(err, WEFT_NO_MEMORY, "no memory for provider %s", name);
    weft_status st = find_table(name, p, err);
    if (!st && (st = p->api->open(&host, options, &p->backend, err))) weft_fail_within(err, st, "provider %s", name);
    if (st) {
        p->backend = NULL;
        weft__provider_close(&p);
        return st;
    }
    *out = p;
    return WEFT_OK;
}

void weft__provider_close(weft__provider **pp)
{
    weft__provider *p = pp ? *pp : NULL;
    if (!p) return;
    *pp = NULL;
    if (p->backend) p->api->close(&p->backend);
    if (p->library) dlclose(p->library);
    weft__free(p);
}
