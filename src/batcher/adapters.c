// SPDX-License-Identifier: Apache-2.0
/* adapters.c: an engine's adapters: the store of src/adapt over the model's plan, and what requests lease from it. Any
 * thread; the store has locks of its own, which no thread holds while it takes the engine's. */
#include <stdio.h>
#include <string.h>

#include "base/params.h"
#include "batcher/batcher.h"

enum { ADAPTER_BYTES = 1 << 30 };

static weft_status pack(void *arg, const weft__adapt_woven *woven, void **out, uint64_t *n_bytes, weft_error *err)
{
    const weft_engine *e = arg;
    weft_adapter_spec spec = {
        .size = sizeof spec, .n_weights = woven->n, .lora = woven->lora, .dtype = e->params.adapter_dtype};
    weft_adapter *adapter = NULL;
    weft_status st = weft__plan_adapter_new(e->model->plan, &spec, &adapter, err);
    if (st) return st;
    *out = adapter;
    *n_bytes = weft__plan_adapter_bytes(adapter);
    return WEFT_OK;
}

static void unpack(void *arg, void *packed)
{
    weft_adapter *adapter = packed;
    (void)arg;
    weft__plan_adapter_free(&adapter);
}

weft_status weft__batcher_open_adapters(weft_engine *e, weft_error *err)
{
    weft__adapt_packer packer = {e, pack, unpack};
    weft_status st = weft__engine_base_names_read(&e->model->source, &e->names, err);
    if (st) return st;
    if (!e->params.adapter_bytes) e->params.adapter_bytes = ADAPTER_BYTES;
    return weft__adapt_store_create(&e->model->base, &e->names.names, &packer, e->params.adapter_bytes, &e->adapters,
                                    err);
}

/* ready: NULL, or what is not ready is not read. */
static weft_status adapters_take(weft_engine *e, const weft_request_adapter *adapters, int32_t n, int *ready,
                                 weft__adapt_lease **out, weft_error *err)
{
    weft__adapt_ref asks[WEFT__ADAPT_STACK];
    *out = NULL;
    if (ready) *ready = n == 0;
    if (n == 0) return WEFT_OK;
    if (n < 0 || n > WEFT__ADAPT_STACK)
        return weft_fail(err, WEFT_ARGUMENT, "%d adapters for one request; at most %d", n, WEFT__ADAPT_STACK);
    for (int32_t i = 0; i < n; i++) asks[i] = (weft__adapt_ref){adapters[i].name, adapters[i].scale, adapters[i].index};
    return ready ? weft__adapt_store_lease_ready(e->adapters, asks, n, ready, out, err)
                 : weft__adapt_store_lease(e->adapters, asks, n, out, err);
}

weft_status weft__batcher_lease(weft_engine *e, const weft_request_params *p, batcher_request *r, weft_error *err)
{
    if (!p->lease) return adapters_take(e, p->adapters, p->n_adapters, NULL, &r->lease, err);
    if (p->n_adapters)
        return weft_fail(err, WEFT_ARGUMENT, "a request has adapters by name or a lease of them, not both");
    r->lease = weft__adapt_store_share(e->adapters, (weft__adapt_lease *)p->lease);
    return WEFT_OK;
}

/* ---- weft.h ---- */

_Static_assert((int)WEFT_ADAPTER_LAZY == (int)WEFT__ADAPT_LAZY &&
                   (int)WEFT_ADAPTER_REPLACE == (int)WEFT__ADAPT_REPLACE &&
                   (int)WEFT_ADAPTER_DISCREET == (int)WEFT__ADAPT_DISCREET,
               "weft.h has the store's flags");
_Static_assert(sizeof((weft_engine_adapter *)0)->name == WEFT__ADAPT_NAME + 1, "weft.h has room for a name");

weft_status weft_engine_lease_new(weft_engine *e, const weft_request_adapter *adapters, int32_t n,
                                  weft_engine_lease **out, weft_error *err)
{
    weft__adapt_lease *lease;
    weft_status st = adapters_take(e, adapters, n, NULL, &lease, err);
    *out = (weft_engine_lease *)lease;
    return st;
}

weft_status weft_engine_lease_ready(weft_engine *e, const weft_request_adapter *adapters, int32_t n, int32_t *ready,
                                    weft_engine_lease **out, weft_error *err)
{
    weft__adapt_lease *lease;
    weft_status st = adapters_take(e, adapters, n, ready, &lease, err);
    *out = (weft_engine_lease *)lease;
    return st;
}

void weft_engine_lease_free(weft_engine *e, weft_engine_lease **lease)
{
    weft__adapt_lease *l = (weft__adapt_lease *)*lease;
    *lease = NULL;
    weft__adapt_store_release(e->adapters, &l);
}

void weft_engine_adapters_ahead(weft_engine *e, const weft_request_adapter *adapters, int32_t n)
{
    weft__adapt_ref asks[WEFT__ADAPT_STACK];
    if (n < 1 || n > WEFT__ADAPT_STACK) return;
    for (int32_t i = 0; i < n; i++) asks[i] = (weft__adapt_ref){adapters[i].name, adapters[i].scale, adapters[i].index};
    weft__adapt_store_ask_ahead(e->adapters, asks, n);
}

int weft_engine_lease_wait(weft_engine *e, uint32_t timeout_ms)
{
    return weft__adapt_store_wait(e->adapters, timeout_ms);
}

weft_status weft_engine_adapter_check_name(const char *name, weft_error *err)
{
    return weft__adapt_name_check(name, err);
}

weft_status weft_engine_adapter_add(weft_engine *e, const char *name, const char *path, float scale, uint32_t flags,
                                    weft_error *err)
{
    return weft__adapt_store_add(e->adapters, name, path, scale, flags, err);
}

weft_status weft_engine_adapter_remove(weft_engine *e, const char *name, weft_error *err)
{
    return weft__adapt_store_remove(e->adapters, name, err);
}

typedef struct adapters_listing {
    weft_engine_adapter *out;
    int32_t first, capacity, n;
} adapters_listing;

static void describe(const weft__adapt_entry_info *info, weft_engine_adapter *a)
{
    *a = (weft_engine_adapter){.size = sizeof *a,
                               .index = info->index,
                               .version = info->version,
                               .scale = info->scale,
                               .n_requests = info->n_leases,
                               .known = info->known,
                               .n_bytes = info->n_bytes};
    size_t n = strlen(info->path), room = sizeof a->path - 1;
    snprintf(a->id, sizeof a->id, "%016llx%016llx", (unsigned long long)info->id.word[0],
             (unsigned long long)info->id.word[1]);
    snprintf(a->name, sizeof a->name, "%s", info->name);
    snprintf(a->path, sizeof a->path, "%s", info->path + (n > room ? n - room : 0));
}

static void list_one(void *arg, const weft__adapt_entry_info *info)
{
    adapters_listing *l = arg;
    if (info->index >= l->first && l->n++ < l->capacity) describe(info, &l->out[l->n - 1]);
}

static void list_found(void *arg, const weft__adapt_entry_info *info)
{
    describe(info, arg);
}

int32_t weft_engine_adapters(const weft_engine *e, int32_t first, weft_engine_adapter *out, int32_t capacity)
{
    adapters_listing l = {out, first, capacity, 0};
    weft__adapt_store_each(e->adapters, list_one, &l);
    return l.n;
}

weft_status weft_engine_adapter_find(const weft_engine *e, const char *name, weft_engine_adapter *out, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    weft_engine_adapter own;
    if (weft__adapt_store_find(e->adapters, name, list_found, &own))
        return weft__params_write(WEFT__PARAMS_TYPE(weft_engine_adapter), out, &own, err);
    return weft_fail(err, WEFT_NOT_FOUND, "there is no adapter '%s'", weft__name_show(shown, name, strlen(name)));
}
