// SPDX-License-Identifier: Apache-2.0
/* store_lease.c: stacks of named adapters, read and packed for the first request, pinned by leases (store.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "adapt/store_parts.h"
#include "base/alloc.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/text.h"
#include "format/names.h"
#include "base/sha256.h"

static weft__adapt_entry *find_asked(weft__adapt_store *s, const weft__adapt_ref *ask)
{
    if (ask->name) return weft__adapt_store_entry(s, ask->name);
    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i].index == ask->index) return &s->entries[i];
    return NULL;
}

/* What is asked for, in terms of contents; known[i] is 0 where a file must be read first. */
typedef struct resolved {
    weft__adapt_stack_item items[WEFT__ADAPT_STACK];
    char *paths[WEFT__ADAPT_STACK], *entry_names[WEFT__ADAPT_STACK];
    int known[WEFT__ADAPT_STACK];
    uint64_t n_packed[WEFT__ADAPT_STACK];
    int32_t n;
} resolved;

static void forget(resolved *w)
{
    for (int32_t i = 0; i < w->n; i++) {
        weft__free(w->paths[i]);
        weft__free(w->entry_names[i]);
    }
    w->n = 0;
}

static weft_status absent(const weft__adapt_ref *ask, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    if (!ask->name) return weft_fail(err, WEFT_NOT_FOUND, "there is no adapter with number %d", ask->index);
    return weft_fail(err, WEFT_NOT_FOUND, "there is no adapter '%s'",
                     weft__name_show(shown, ask->name, strlen(ask->name)));
}

/* With the lock. */
static weft_status read_asks(weft__adapt_store *s, const weft__adapt_ref *asks, int32_t n, resolved *w, weft_error *err)
{
    w->n = 0;
    for (int32_t i = 0; i < n; i++) {
        const weft__adapt_entry *e = find_asked(s, &asks[i]);
        if (!e) return absent(&asks[i], err);
        float scale = isnan(asks[i].scale) ? e->scale : asks[i].scale;
        if (!isfinite(scale)) return weft_fail(err, WEFT_ARGUMENT, "adapter '%s': its scale must be finite", e->name);
        if (scale == 0) continue;
        if (w->n == WEFT__ADAPT_STACK)
            return weft_fail(err, WEFT_LIMIT, "more than %d adapters together", WEFT__ADAPT_STACK);
        int32_t k = w->n++;
        w->items[k] = (weft__adapt_stack_item){e->id, scale};
        w->known[k] = e->known;
        w->n_packed[k] = e->n_packed;
        w->paths[k] = weft__strdup(e->path);
        w->entry_names[k] = weft__strdup(e->name);
        if (!w->paths[k] || !w->entry_names[k])
            return weft_fail(err, WEFT_NO_MEMORY, "no memory for a list of adapters");
    }
    return WEFT_OK;
}

/* The packed stack of what is asked for; NULL: it is not there. With the lock. */
static weft__adapt_lease *find_packed(const weft__adapt_store *s, const resolved *w)
{
    for (size_t i = 0; i < s->n_packed; i++) {
        weft__adapt_lease *p = s->packed[i];
        int same = p->n == w->n;
        for (int32_t k = 0; same && k < w->n; k++)
            same = w->known[k] && weft__adapt_same_id(p->items[k].id, w->items[k].id) &&
                   p->items[k].scale == w->items[k].scale;
        if (same) return p;
    }
    return NULL;
}

/* The same, pinned. With the lock. */
static weft__adapt_lease *pin(weft__adapt_store *s, const resolved *w)
{
    weft__adapt_lease *p = find_packed(s, w);
    if (!p) return NULL;
    p->n_pins++;
    p->used = ++s->clock;
    s->n_hits++;
    return p;
}

static weft_status make_id(weft__adapt_lease *p, weft_error *err)
{
    weft__sha256 h = {0};
    weft_status st = weft__sha256_begin(&h, err);
    for (int32_t i = 0; i < p->n && !st; i++) {
        st = weft__sha256_add(&h, &p->items[i].id, sizeof p->items[i].id, err);
        if (!st) st = weft__sha256_add(&h, &p->items[i].scale, sizeof p->items[i].scale, err);
    }
    if (st) {
        weft__sha256_free(&h);
        return st;
    }
    weft__sha256_end_words(&h, p->id.word);
    return WEFT_OK;
}

/* e: the name that it was read for, or NULL. With the lock. */
static void count_load(weft__adapt_store *s, weft__adapt_entry *e, int from_disk)
{
    s->n_loads++;
    s->n_disk_loads += (uint64_t)from_disk;
    if (!e || !e->asked_ahead) return;
    e->asked_ahead = 0;
    s->n_ahead_hits += !from_disk;
}

/* Files of what is asked for, read; the name that one belongs to learns what it holds. */
static weft_status read_files(weft__adapt_store *s, resolved *w, weft__adapt *adapters[WEFT__ADAPT_STACK],
                              weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < w->n && !st; i++) {
        weft_error why = {0};
        weft__adapt_reading r = {.s = s, .path = w->paths[i], .out = &adapters[i], .err = &why};
        weft__background_run(weft__adapt_read_checked, &r);
        if ((st = r.status)) return weft__adapt_fail_by_name(&why, w->entry_names[i], w->paths[i], err);
        if (w->known[i] && !weft__adapt_same_id(adapters[i]->id, w->items[i].id))
            return weft_fail(err, WEFT_STATE,
                             "adapter '%s': its file holds something else than when it was loaded; load it again",
                             w->entry_names[i]);
        pthread_mutex_lock(&s->lock);
        weft__adapt_entry *e = weft__adapt_store_entry(s, w->entry_names[i]);
        if (e && !e->known && !strcmp(e->path, w->paths[i])) {
            e->known = 1;
            e->id = r.id;
            e->n_packed = r.n_packed;
        }
        count_load(s, e, adapters[i]->from_disk);
        pthread_mutex_unlock(&s->lock);
        w->items[i].id = adapters[i]->id;
        w->known[i] = 1;
        if (w->n_packed[i] < r.n_packed) w->n_packed[i] = r.n_packed;
    }
    return st;
}

/* With the lock. */
static weft_status no_room(weft__adapt_store *s, weft_error *err)
{
    s->is_full = 1;
    return weft_fail(err, WEFT_BUSY,
                     "the adapters in use fill their budget of %llu bytes; try again later, or give more",
                     (unsigned long long)s->room_bytes);
}

/* Before anything is read: is there room beside what is in use? A stack has about what its items have alone; what seems
 * to be larger than the budget is packed, to be sure. With the lock. */
static weft_status check_room(weft__adapt_store *s, const resolved *w, weft_error *err)
{
    uint64_t n_bytes = 0, in_use = 0;
    for (int32_t i = 0; i < w->n; i++) n_bytes += w->n_packed[i];
    for (size_t i = 0; i < s->n_packed; i++)
        if (s->packed[i]->n_pins) in_use += s->packed[i]->n_bytes;
    return n_bytes <= s->max_bytes && in_use > s->room_bytes - n_bytes ? no_room(s, err) : WEFT_OK;
}

/* Evicts what was used least recently until n_bytes more fit; 0: what is left is in use. With the lock. */
static int evict(weft__adapt_store *s, uint64_t n_bytes)
{
    while (s->n_bytes > s->room_bytes - n_bytes) {
        size_t oldest = s->n_packed;
        for (size_t i = 0; i < s->n_packed; i++)
            if (s->packed[i]->n_pins == 0 && (oldest == s->n_packed || s->packed[i]->used < s->packed[oldest]->used))
                oldest = i;
        if (oldest == s->n_packed) return 0;
        weft__adapt_store_drop(s, oldest);
        s->n_evictions++;
    }
    return 1;
}

/* With the lock. */
static weft_status make_room(weft__adapt_store *s, uint64_t n_bytes, weft_error *err)
{
    if (n_bytes > s->max_bytes)
        return weft_fail(err, WEFT_LIMIT, "the adapter needs %llu bytes; the budget of adapters is %llu",
                         (unsigned long long)n_bytes, (unsigned long long)s->max_bytes);
    return evict(s, n_bytes) ? WEFT_OK : no_room(s, err);
}

void weft__adapt_store_give(weft__adapt_store *s, uint64_t n_bytes)
{
    pthread_mutex_lock(&s->lock);
    s->room_bytes = n_bytes > s->max_bytes ? n_bytes : s->max_bytes;
    evict(s, 0);
    if (s->is_full) pthread_cond_broadcast(&s->room);
    s->is_full = 0;
    pthread_mutex_unlock(&s->lock);
}

/* What becomes of adapters that were read. */
typedef struct packing {
    const weft__adapt_store *s;
    const resolved *w;
    weft__adapt **adapters; /* [WEFT__ADAPT_STACK], closed in the end */
    weft__adapt_lease *p;
    weft_status status;
    weft_error *err;
} packing;

void weft__adapt_name_all(const char *const *names, int32_t n, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, n > 1 ? "adapters" : "adapter");
    for (int32_t i = 0; i < n && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s %s", i ? "," : "", names[i]);
}

/* In the background. */
static void pack_stack(void *arg)
{
    packing *k = arg;
    const weft__adapt_packer *packer = &k->s->packer;
    weft__adapt_use uses[WEFT__ADAPT_STACK];
    weft__adapt_woven woven;
    k->status = WEFT_OK;
    for (int32_t i = 0; i < k->p->n && !k->status; i++) {
        uses[i] = (weft__adapt_use){k->adapters[i], k->p->items[i].scale};
        k->status = weft__adapt_check_values(uses[i].adapter, uses[i].scale, k->err);
        if (k->status) weft_fail_within(k->err, k->status, "adapter %s", k->w->entry_names[i]);
    }
    if (!k->status) {
        k->status = weft__adapt_weave(uses, k->p->n, &k->s->base, &woven, k->err);
        if (!k->status) {
            k->status = packer->pack(packer->arg, &woven, &k->p->packed, &k->p->n_bytes, k->err);
            weft__adapt_woven_free(&woven);
        }
        if (k->status) {
            char names[256];
            weft__adapt_name_all((const char *const *)k->w->entry_names, k->p->n, names, sizeof names);
            weft_fail_within(k->err, k->status, "%s", names);
        }
    }
    for (int32_t i = 0; i < WEFT__ADAPT_STACK; i++) weft__adapt_close(&k->adapters[i]);
}

/* A new packed stack of adapters that were read, which are closed. */
static weft_status pack(weft__adapt_store *s, const resolved *w, weft__adapt *adapters[WEFT__ADAPT_STACK],
                        weft__adapt_lease **out, weft_error *err)
{
    weft__adapt_lease *p = weft__alloc_zero(1, sizeof *p);
    *out = NULL;
    if (!p) return weft_fail(err, WEFT_NO_MEMORY, "no memory for an adapter");
    p->n = w->n;
    p->n_pins = 1;
    memcpy(p->items, w->items, sizeof p->items);
    weft_status st = make_id(p, err);
    if (!st) {
        packing k = {s, w, adapters, p, WEFT_OK, err};
        weft__background_run(pack_stack, &k);
        st = k.status;
    }
    if (!st) {
        pthread_mutex_lock(&s->lock);
        for (size_t i = 0; i < s->n && p->n == 1; i++)
            if (s->entries[i].known && weft__adapt_same_id(s->entries[i].id, p->items[0].id))
                s->entries[i].n_packed = p->n_bytes;
        st = make_room(s, p->n_bytes, err);
        if (!st && !weft__grow(&s->packed, &s->packed_capacity, s->n_packed + 1, sizeof *s->packed))
            st = weft_fail(err, WEFT_NO_MEMORY, "no memory for an adapter");
        if (!st) {
            p->used = ++s->clock;
            s->packed[s->n_packed++] = p;
            s->n_bytes += p->n_bytes;
            if (s->n_bytes > s->peak_bytes) s->peak_bytes = s->n_bytes;
            for (int32_t k = 0; k < p->n; k++) p->orphan |= !weft__adapt_store_has(s, p->items[k].id);
        }
        pthread_mutex_unlock(&s->lock);
        if (st) s->packer.unpack(s->packer.arg, p->packed);
    }
    if (st) weft__free(p);
    else *out = p;
    return st;
}

/* Looks, and reads and packs what is not there; with `loading`. */
static weft_status lease_loading(weft__adapt_store *s, const weft__adapt_ref *asks, int32_t n, weft__adapt_lease **out,
                                 weft_error *err)
{
    weft__adapt *adapters[WEFT__ADAPT_STACK] = {0};
    resolved w = {0};
    pthread_mutex_lock(&s->lock);
    weft_status st = read_asks(s, asks, n, &w, err);
    if (!st && w.n > 0) *out = pin(s, &w);
    if (!st && !*out) st = check_room(s, &w, err);
    pthread_mutex_unlock(&s->lock);
    if (!st && w.n > 0 && !*out) {
        st = read_files(s, &w, adapters, err);
        if (!st) { /* names that were not read before may hold what is there already */
            pthread_mutex_lock(&s->lock);
            *out = pin(s, &w);
            if (!*out) st = check_room(s, &w, err);
            pthread_mutex_unlock(&s->lock);
        }
        if (!st && !*out) st = pack(s, &w, adapters, out, err);
    }
    for (int32_t i = 0; i < WEFT__ADAPT_STACK; i++) weft__adapt_close(&adapters[i]);
    forget(&w);
    return st;
}

weft_status weft__adapt_store_lease_ready(weft__adapt_store *s, const weft__adapt_ref *asks, int32_t n, int *ready,
                                          weft__adapt_lease **out, weft_error *err)
{
    resolved w = {0};
    *out = NULL;
    pthread_mutex_lock(&s->lock);
    weft_status st = read_asks(s, asks, n, &w, err);
    if (!st && w.n > 0) *out = pin(s, &w);
    pthread_mutex_unlock(&s->lock);
    *ready = !st && (*out || w.n == 0);
    forget(&w);
    return st;
}

/* That the file of a name is asked for, before it is, or could not be; 0: it is no news. */
static int mark_ahead(weft__adapt_store *s, const resolved *w, int32_t i, int asked)
{
    pthread_mutex_lock(&s->lock);
    weft__adapt_entry *e = weft__adapt_store_entry(s, w->entry_names[i]);
    const int news = e && e->asked_ahead != asked && !strcmp(e->path, w->paths[i]);
    if (news) e->asked_ahead = asked;
    pthread_mutex_unlock(&s->lock);
    return news;
}

void weft__adapt_store_ask_ahead(weft__adapt_store *s, const weft__adapt_ref *asks, int32_t n)
{
    resolved w = {0};
    pthread_mutex_lock(&s->lock);
    if (read_asks(s, asks, n, &w, NULL) || find_packed(s, &w)) forget(&w);
    pthread_mutex_unlock(&s->lock);
    uint64_t n_asked = 0;
    for (int32_t i = 0; i < w.n; i++) {
        if (!mark_ahead(s, &w, i, 1)) continue;
        if (weft__adapt_ask_ahead(w.paths[i], weft__adapt_store_max_read(s))) n_asked++;
        else mark_ahead(s, &w, i, 0);
    }
    pthread_mutex_lock(&s->lock);
    s->n_ahead += n_asked;
    pthread_mutex_unlock(&s->lock);
    forget(&w);
}

weft_status weft__adapt_store_lease(weft__adapt_store *s, const weft__adapt_ref *asks, int32_t n,
                                    weft__adapt_lease **out, weft_error *err)
{
    int ready;
    weft_status st = weft__adapt_store_lease_ready(s, asks, n, &ready, out, err);
    if (st || ready) return st;
    pthread_mutex_lock(&s->loading);
    st = lease_loading(s, asks, n, out, err);
    pthread_mutex_unlock(&s->loading);
    return st;
}

weft__adapt_lease *weft__adapt_store_share(weft__adapt_store *s, weft__adapt_lease *lease)
{
    if (!lease) return NULL;
    pthread_mutex_lock(&s->lock);
    lease->n_pins++;
    pthread_mutex_unlock(&s->lock);
    return lease;
}

void weft__adapt_store_release(weft__adapt_store *s, weft__adapt_lease **lease)
{
    weft__adapt_lease *p = *lease;
    *lease = NULL;
    if (!p) return;
    pthread_mutex_lock(&s->lock);
    int is_last = --p->n_pins == 0;
    if (is_last && s->is_full) {
        s->is_full = 0;
        pthread_cond_broadcast(&s->room);
    }
    if (is_last && p->orphan)
        for (size_t i = 0; i < s->n_packed; i++)
            if (s->packed[i] == p) {
                weft__adapt_store_drop(s, i);
                break;
            }
    if (is_last) evict(s, 0); /* the room may be less than when it was taken */
    pthread_mutex_unlock(&s->lock);
}

int weft__adapt_store_wait(weft__adapt_store *s, uint32_t timeout_ms)
{
    uint64_t until = weft__clock_ns() + (uint64_t)timeout_ms * 1000000;
    pthread_mutex_lock(&s->lock);
    while (s->is_full && !weft__clock_wait(&s->room, &s->lock, until))
        ;
    int is_full = s->is_full;
    pthread_mutex_unlock(&s->lock);
    return !is_full;
}

void weft__adapt_store_name(weft__adapt_store *s, const weft__adapt_lease *lease, char *out, size_t size)
{
    const char *names[WEFT__ADAPT_STACK];
    pthread_mutex_lock(&s->lock);
    for (int32_t k = 0; k < lease->n; k++) {
        names[k] = "?";
        for (size_t i = 0; i < s->n; i++)
            if (s->entries[i].known && weft__adapt_same_id(s->entries[i].id, lease->items[k].id))
                names[k] = s->entries[i].name;
    }
    weft__adapt_name_all(names, lease->n, out, size);
    pthread_mutex_unlock(&s->lock);
}

void *weft__adapt_lease_packed(const weft__adapt_lease *lease)
{
    return lease->packed;
}

weft__adapt_id weft__adapt_lease_id(const weft__adapt_lease *lease)
{
    return lease->id;
}
