// SPDX-License-Identifier: Apache-2.0
/* provider.c: weft.h's view of the providers. */
#include "engine/handles.h"

const char *const *weft_provider_list(void)
{
    return weft__provider_names();
}

weft_status weft_provider_describe(const char *name, weft_backend_info *out, weft_error *err)
{
    weft__provider *p;
    weft_status st = weft__provider_open(name, NULL, &p, err);
    if (st) return st;
    weft_backend_info own = {.size = sizeof own};
    st = p->api->describe(p->backend, &own, err);
    if (!st) st = weft__params_write(WEFT__PARAMS_TYPE(weft_backend_info), out, &own, err);
    weft__provider_close(&p);
    return st;
}
