// SPDX-License-Identifier: Apache-2.0
/* absent.c: in a library that was configured with -DWEFT_LEARN=OFF there is no store, and who opens one is told the
 * remedy. The other functions want one that was opened, so none of them is called. */
#include "learn/store.h"

weft_status weft__learn_open(const weft__learn_options *options, weft__learn_store **out, weft_error *err)
{
    (void)options;
    *out = NULL;
    return weft__learn_check(NULL, err);
}

weft_status weft__learn_check(const char *dir, weft_error *err)
{
    (void)dir;
    return weft_fail(err, WEFT_UNSUPPORTED,
                     "this build keeps nothing to learn from (-DWEFT_LEARN=OFF): build with -DWEFT_LEARN=ON, which "
                     "needs libsqlite3");
}

static weft_status none(weft_error *err)
{
    return weft_fail(err, WEFT_UNSUPPORTED, "this build keeps nothing to learn from (-DWEFT_LEARN=OFF)");
}

void weft__learn_close(weft__learn_store **store)
{
    (void)store;
}

int weft__learn_put(weft__learn_store *store, const weft__learn_record *record)
{
    (void)store, (void)record;
    return 0;
}

weft_status weft__learn_tell(weft__learn_store *store, const weft__learn_feedback *feedback, weft__learn_told *out,
                             weft_error *err)
{
    (void)store, (void)feedback, (void)out;
    return none(err);
}

weft_status weft__learn_events(weft__learn_store *store, const char *tenant, int64_t after, const char *of_adapter,
                               int (*fn)(void *arg, const weft__learn_event *e), void *arg, weft_error *err)
{
    (void)store, (void)tenant, (void)after, (void)of_adapter, (void)fn, (void)arg;
    return none(err);
}

weft_status weft__learn_records(weft__learn_store *store, const char *tenant, int with_feedback, int newest_first,
                                int64_t most, int (*fn)(void *arg, const weft__learn_record *r), void *arg,
                                weft_error *err)
{
    (void)store, (void)tenant, (void)with_feedback, (void)newest_first, (void)most, (void)fn, (void)arg;
    return none(err);
}

void weft__learn_listen(weft__learn_store *store, void (*fn)(void *arg, const char *tenant, weft__learn_kind kind),
                        void *arg)
{
    (void)store, (void)fn, (void)arg;
}

weft_status weft__learn_notes(weft__learn_store *store, const char *tenant, size_t room, weft__strbuf *out, int32_t *n,
                              weft_error *err)
{
    (void)store, (void)tenant, (void)room, (void)out, (void)n;
    return none(err);
}

weft_status weft__learn_put_version(weft__learn_store *store, const weft__learn_version *version, weft_error *err)
{
    (void)store, (void)version;
    return none(err);
}

weft_status weft__learn_versions(weft__learn_store *store, const char *tenant, const char *adapter,
                                 int (*fn)(void *arg, const weft__learn_version *v), void *arg, weft_error *err)
{
    (void)store, (void)tenant, (void)adapter, (void)fn, (void)arg;
    return none(err);
}

weft_status weft__learn_tenant_dir(weft__learn_store *store, const char *tenant, int makes, weft__strbuf *out,
                                   weft_error *err)
{
    (void)store, (void)tenant, (void)makes, (void)out;
    return none(err);
}

weft_status weft__learn_put_memory(weft__learn_store *store, const weft__learn_memory *memory, int64_t *number,
                                   weft_error *err)
{
    (void)store, (void)memory, (void)number;
    return none(err);
}

weft_status weft__learn_drop_memory(weft__learn_store *store, const char *tenant, int64_t number, weft_error *err)
{
    (void)store, (void)tenant, (void)number;
    return none(err);
}

weft_status weft__learn_memories(weft__learn_store *store, const char *tenant,
                                 int (*fn)(void *arg, const weft__learn_memory *m), void *arg, weft_error *err)
{
    (void)store, (void)tenant, (void)fn, (void)arg;
    return none(err);
}

weft_status weft__learn_count(weft__learn_store *store, const char *tenant, weft__learn_totals *out, weft_error *err)
{
    (void)store, (void)tenant, (void)out;
    return none(err);
}

weft_status weft__learn_tenants(weft__learn_store *store, int (*fn)(void *arg, const char *tenant), void *arg,
                                weft_error *err)
{
    (void)store, (void)fn, (void)arg;
    return none(err);
}

weft_status weft__learn_forget(weft__learn_store *store, const char *tenant, weft__learn_totals *out, weft_error *err)
{
    (void)store, (void)tenant, (void)out;
    return none(err);
}

void weft__learn_get_health(weft__learn_store *store, weft__learn_health *out)
{
    (void)store;
    *out = (weft__learn_health){0};
}

void weft__learn_flush(weft__learn_store *store)
{
    (void)store;
}
