// SPDX-License-Identifier: Apache-2.0
/* registry.h: the providers of compute: those linked in, and those in shared objects.
 *
 * A weft__provider is an opened backend together with its table. Every table, the CPU's included, passes the same
 * checks (abi_version, size, required functions) before its first call. Opening and closing: one thread at a time. */
#ifndef WEFT_BACKEND_REGISTRY_H
#define WEFT_BACKEND_REGISTRY_H

#include "weft/backend.h"

typedef struct weft__provider {
    const weft_backend_api *api; /* &table */
    weft_backend *backend;
    void *library;          /* dlopen handle; NULL for those linked in */
    weft_backend_api table; /* a copy: functions that the provider's version does not know are NULL here */
} weft__provider;

/* name: "cpu", or a path to a plugin (contains '/' or ends in ".so"), or a bare plugin name looked up in
 * WEFT_PLUGIN_PATH. Fails with WEFT_ABI and both versions in the message where they do not match. The caller owns
 * *out. */
weft_status weft__provider_open(const char *name, const char *options, weft__provider **out, weft_error *err);
void weft__provider_close(weft__provider **p);

/* Checks a table as a plugin's is checked; `where` names it in the message. */
weft_status weft__provider_check(const weft_backend_api *api, const char *where, weft_error *err);

/* Names of the linked-in providers, NULL-terminated. */
const char *const *weft__provider_names(void);

#endif
