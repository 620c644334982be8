// SPDX-License-Identifier: Apache-2.0
/* store.c: named adapters (store.h); store_lease.c has what of them is packed, store_read.c their files.
 *
 * `lock` guards everything and is held for moments; `loading` is held, before it, by the one thread that has files read
 * and stacks packed. That is done in the background, so that steps which run meanwhile keep their cores; nothing there
 * takes `lock`, which the engine's thread takes, too. A packed stack is named by the contents and weights of its
 * adapters, so that two names with one content share it. */
#include "adapt/store_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/text.h"

weft_status weft__adapt_store_create(const weft__adapt_base *base, const weft__adapt_names *names,
                                     const weft__adapt_packer *packer, uint64_t n_bytes, weft__adapt_store **out,
                                     weft_error *err)
{
    weft__adapt_store *s = weft__alloc_zero(1, sizeof *s);
    size_t n_name;
    const char *name = weft__path_last(base->label, &n_name);
    *out = NULL;
    if (!s || !(s->base_name = weft__strndup(name, n_name))) {
        weft__free(s);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for adapters");
    }
    *out = s;
    s->base = *base;
    s->base.label = s->base_name;
    s->names = names;
    s->packer = *packer;
    s->max_bytes = s->room_bytes = n_bytes;
    pthread_mutex_init(&s->loading, NULL);
    pthread_mutex_init(&s->lock, NULL);
    weft__clock_cond_init(&s->room);
    return WEFT_OK;
}

void weft__adapt_store_drop(weft__adapt_store *s, size_t i)
{
    weft__adapt_lease *p = s->packed[i];
    s->packed[i] = s->packed[--s->n_packed];
    s->n_bytes -= p->n_bytes;
    s->packer.unpack(s->packer.arg, p->packed);
    weft__free(p);
}

static void free_entry(weft__adapt_entry *e)
{
    weft__free(e->name);
    weft__free(e->path);
}

void weft__adapt_store_destroy(weft__adapt_store **store)
{
    weft__adapt_store *s = store ? *store : NULL;
    if (!s) return;
    while (s->n_packed > 0) weft__adapt_store_drop(s, s->n_packed - 1);
    for (size_t i = 0; i < s->n; i++) free_entry(&s->entries[i]);
    weft__free(s->packed);
    weft__free(s->entries);
    weft__free(s->base_name);
    pthread_cond_destroy(&s->room);
    pthread_mutex_destroy(&s->lock);
    pthread_mutex_destroy(&s->loading);
    weft__free(s);
    *store = NULL;
}

/* ---- names ---- */

weft_status weft__adapt_name_check(const char *name, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    char plain[WEFT__ADAPT_NAME + 2];
    snprintf(plain, sizeof plain, "%s", name);
    for (char *c = plain; *c; c++)
        if (*c == '@') *c = '_';
    if (name[0] != '.' && name[0] != '@' && weft__path_is_plain_name(plain, WEFT__ADAPT_NAME)) return WEFT_OK;
    return weft_fail(err, WEFT_ARGUMENT,
                     "'%s' is no name for an adapter: 1 to %d of the characters A-Z a-z 0-9 . _ - @, not beginning "
                     "with a point or @",
                     weft__name_show(shown, name, strlen(name)), WEFT__ADAPT_NAME);
}

weft__adapt_entry *weft__adapt_store_entry(weft__adapt_store *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->entries[i].name, name)) return &s->entries[i];
    return NULL;
}

int weft__adapt_store_has(const weft__adapt_store *s, weft__adapt_id id)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i].known && weft__adapt_same_id(s->entries[i].id, id)) return 1;
    return 0;
}

/* Names have changed: what no name stands for is freed, or will be with its last lease. With the lock. */
static void sweep(weft__adapt_store *s)
{
    for (size_t i = s->n_packed; i-- > 0;) {
        weft__adapt_lease *p = s->packed[i];
        p->orphan = 0;
        for (int32_t k = 0; k < p->n; k++) p->orphan |= !weft__adapt_store_has(s, p->items[k].id);
        if (p->orphan && p->n_pins == 0) weft__adapt_store_drop(s, i);
    }
}

/* Puts the name where it belongs; takes `fresh`. With the lock. */
static weft_status put_entry(weft__adapt_store *s, weft__adapt_entry *fresh, uint32_t flags, weft_error *err)
{
    weft__adapt_entry *old = weft__adapt_store_entry(s, fresh->name);
    if (old && !(flags & WEFT__ADAPT_REPLACE))
        return weft_fail(err, WEFT_EXISTS, "there is an adapter '%s' already; remove it first, or replace it",
                         fresh->name);
    if (old) {
        fresh->index = old->index;
        fresh->version = old->version + !(old->known && fresh->known && weft__adapt_same_id(old->id, fresh->id));
        free_entry(old);
        *old = *fresh;
    } else {
        if (s->n == WEFT__ADAPT_ENTRIES)
            return weft_fail(err, WEFT_STATE, "there are %d adapters, and no more are taken; remove one first",
                             WEFT__ADAPT_ENTRIES);
        if (!weft__grow(&s->entries, &s->capacity, s->n + 1, sizeof *s->entries))
            return weft_fail(err, WEFT_NO_MEMORY, "no memory for an adapter's name");
        fresh->index = s->next_index++;
        s->entries[s->n++] = *fresh;
    }
    *fresh = (weft__adapt_entry){0};
    sweep(s);
    return WEFT_OK;
}

weft_status weft__adapt_store_add(weft__adapt_store *s, const char *name, const char *path, float scale, uint32_t flags,
                                  weft_error *err)
{
    weft_status st = weft__adapt_name_check(name, err);
    if (st) return st;
    if (!isfinite(scale)) return weft_fail(err, WEFT_ARGUMENT, "adapter '%s': its scale must be finite", name);
    weft__adapt_entry fresh = {.name = weft__strdup(name), .path = weft__strdup(path), .version = 1, .scale = scale};
    if (!fresh.name || !fresh.path) {
        free_entry(&fresh);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for an adapter's name");
    }
    pthread_mutex_lock(&s->loading);
    if (!(flags & WEFT__ADAPT_LAZY)) {
        weft_error why = {0};
        int discreet = (flags & WEFT__ADAPT_DISCREET) != 0;
        weft__adapt_reading r = {.s = s, .path = path, .scale = scale, .err = discreet ? &why : err};
        weft__background_run(weft__adapt_read_checked, &r);
        st = r.status;
        if (st && discreet) weft__adapt_fail_by_name(&why, name, path, err);
        fresh.known = !st;
        fresh.id = r.id;
        fresh.n_packed = r.n_packed;
    }
    if (!st) {
        pthread_mutex_lock(&s->lock);
        st = put_entry(s, &fresh, flags, err);
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(&s->loading);
    free_entry(&fresh);
    return st;
}

weft_status weft__adapt_store_remove(weft__adapt_store *s, const char *name, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    weft_status st = WEFT_OK;
    pthread_mutex_lock(&s->lock);
    weft__adapt_entry *e = weft__adapt_store_entry(s, name);
    if (e) {
        free_entry(e);
        memmove(e, e + 1, (size_t)(s->entries + s->n - (e + 1)) * sizeof *e);
        s->n--;
        sweep(s);
    } else {
        st = weft_fail(err, WEFT_NOT_FOUND, "there is no adapter '%s'", weft__name_show(shown, name, strlen(name)));
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

/* ---- what there is ---- */

/* With the lock. */
static void tell(const weft__adapt_store *s, const weft__adapt_entry *e,
                 void (*each)(void *arg, const weft__adapt_entry_info *info), void *arg)
{
    weft__adapt_entry_info info = {.index = e->index,
                                   .version = e->version,
                                   .scale = e->scale,
                                   .known = e->known,
                                   .id = e->id,
                                   .name = e->name,
                                   .path = e->path};
    for (size_t k = 0; k < s->n_packed && e->known; k++)
        for (int32_t j = 0; j < s->packed[k]->n; j++) {
            if (!weft__adapt_same_id(s->packed[k]->items[j].id, e->id)) continue;
            info.n_leases += s->packed[k]->n_pins;
            info.n_bytes += s->packed[k]->n_bytes;
            break;
        }
    each(arg, &info);
}

void weft__adapt_store_each(weft__adapt_store *s, void (*each)(void *arg, const weft__adapt_entry_info *info),
                            void *arg)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n; i++) tell(s, &s->entries[i], each, arg);
    pthread_mutex_unlock(&s->lock);
}

int weft__adapt_store_find(weft__adapt_store *s, const char *name,
                           void (*each)(void *arg, const weft__adapt_entry_info *info), void *arg)
{
    pthread_mutex_lock(&s->lock);
    const weft__adapt_entry *e = weft__adapt_store_entry(s, name);
    if (e) tell(s, e, each, arg);
    pthread_mutex_unlock(&s->lock);
    return e != NULL;
}

void weft__adapt_store_get_stats(weft__adapt_store *s, weft__adapt_store_stats *out)
{
    pthread_mutex_lock(&s->lock);
    *out = (weft__adapt_store_stats){.n_entries = (int32_t)s->n,
                                     .n_packed = (int32_t)s->n_packed,
                                     .n_bytes = s->n_bytes,
                                     .peak_bytes = s->peak_bytes,
                                     .room_bytes = s->room_bytes,
                                     .n_hits = s->n_hits,
                                     .n_loads = s->n_loads,
                                     .n_disk_loads = s->n_disk_loads,
                                     .n_ahead = s->n_ahead,
                                     .n_ahead_hits = s->n_ahead_hits,
                                     .n_evictions = s->n_evictions};
    for (size_t i = 0; i < s->n_packed; i++) out->n_leases += s->packed[i]->n_pins;
    pthread_mutex_unlock(&s->lock);
}
