/* provider.c: weft.h's view of the providers. */
#include <stdio.h>

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
    st = p->api->describe(p->backend, out, err);
    weft__provider_close(&p);
    return st;
}

weft_status weft_provider_measure(const char *name, int n_threads, weft_peaks *out, weft_error *err)
{
    char options[32];
    weft__provider *p;
    snprintf(options, sizeof options, "threads=%d", n_threads);
    weft_status st = weft__provider_open(name, n_threads > 0 ? options : NULL, &p, err);
    if (st) return st;
    st = p->api->measure ? p->api->measure(p->backend, out, err)
                         : weft_fail(err, WEFT_UNSUPPORTED, "provider %s cannot measure its limits", name);
    weft__provider_close(&p);
    return st;
}
