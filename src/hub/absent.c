// SPDX-License-Identifier: Apache-2.0
/* absent.c: the functions of weft/hub.h in a library that was configured without libcurl (-DWEFT_HUB=OFF): files and
 * folders are found as ever, all else is refused with the remedy. Any thread. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/params.h"
#include "hub/http.h"
#include "hub/hub.h"
#include "weft/weft.h"

#define REMEDY                                                                                                         \
    "this build pulls no models (-DWEFT_HUB=OFF): give a file or a folder, or build with -DWEFT_HUB=ON, which needs "  \
    "libcurl"

void weft_pull_params_init(weft_pull_params *params, uint32_t size)
{
    const weft_pull_params own = {.size = sizeof own};
    weft__params_init(WEFT__PARAMS_TYPE(weft_pull_params), params, size, &own);
}

void(weft_pull_params_default)(weft_pull_params *params)
{
    weft_pull_params_init(params, sizeof *params);
}

weft_status weft_pull(const char *name, const weft_pull_params *params, weft_pull_result *result, weft_error *err)
{
    (void)params;
    (void)result;
    return weft_fail(err, WEFT_UNSUPPORTED, "%.200s: " REMEDY, name);
}

weft_status weft_resolve_model(const char *name, char *path, size_t capacity, weft_error *err)
{
    weft__hub_name n;
    struct stat s;
    if (!name[0]) return weft_fail(err, WEFT_ARGUMENT, "the name of the model is empty; give a file or a folder");
    const int there = stat(name, &s) == 0, why = errno;
    if (there || (why != ENOENT && why != ENOTDIR)) {
        /* What is there but cannot be reached is for its reader to complain about. */
        if (strlen(name) >= capacity) return weft_fail(err, WEFT_LIMIT, "%.100s...: the path is too long", name);
        memcpy(path, name, strlen(name) + 1);
        return WEFT_OK;
    }
    if (weft__hub_name_parse(name, &n, NULL)) return weft_fail(err, WEFT_NOT_FOUND, "%.200s: %s", name, strerror(why));
    return weft_fail(err, WEFT_UNSUPPORTED, "%.200s: no such file or folder, and " REMEDY, name);
}

weft_status weft_pulled_each(weft_pulled_fn each, void *arg, weft_error *err)
{
    (void)each;
    (void)arg;
    return weft_fail(err, WEFT_UNSUPPORTED, REMEDY);
}

weft_status weft_pulled_remove(const char *name, uint64_t *n_bytes, weft_error *err)
{
    (void)n_bytes;
    return weft_fail(err, WEFT_UNSUPPORTED, "%.200s: " REMEDY, name);
}

/* What the server sends by it. */
weft_status weft__hub_http_open(int timeout_s, weft__hub_http **out, weft_error *err)
{
    (void)timeout_s;
    *out = NULL;
    return weft_fail(err, WEFT_UNSUPPORTED, "this build sends nothing (-DWEFT_HUB=OFF): build with libcurl");
}

void weft__hub_http_close(weft__hub_http **h)
{
    *h = NULL;
}

weft_status weft__hub_http_get(weft__hub_http *h, const weft__hub_http_call *call, weft__hub_http_reply *reply,
                               weft_error *err)
{
    (void)h;
    *reply = (weft__hub_http_reply){0};
    return weft_fail(err, WEFT_UNSUPPORTED, "%.200s: this build sends nothing (-DWEFT_HUB=OFF)", call->url);
}

int weft__hub_http_is_plain(const char *url, char *host, size_t capacity)
{
    (void)url;
    if (capacity) host[0] = 0;
    return 0;
}
