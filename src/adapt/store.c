/* store.c: named adapters and what of them is packed (store.h).
 *
 * `lock` guards everything and is held for moments; `loading` is held, before it, by the one thread that has files read and stacks packed.
 * That is done in the background, so that steps which run meanwhile keep their cores; nothing there takes `lock`, which the engine's
 * thread takes, too. A packed stack is named by the contents and weights of its strands, so that two names with one content share it. */
#include "adapt/store.h"

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/background.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "format/names.h"
#include "hub/sha256.h"

enum { SHRINK = 8 }; /* float32 to 4 bits: what has more bytes than so many budgets fits none */

typedef struct entry {
    char *name, *path;
    int32_t index, version;
    float scale;
    int known;
    weft__adapt_id id; /* of the version, where it is known */
    uint64_t n_packed; /* that it takes alone, or at least takes; 0: nobody knows */
} entry;

typedef struct strand {
    weft__adapt_id id;
    float scale;
} strand;

struct weft__adapt_lease {
    strand strands[WEFT__ADAPT_STACK];
    int32_t n, n_pins;
    int orphan; /* no name stands for one of its contents any more */
    uint64_t used, n_bytes;
    weft__adapt_id id;
    void *packed;
};

struct weft__adapt_store {
    weft__adapt_base base; /* borrowed but for its label */
    char *base_name;       /* that label: the base's file without its folders, which are not told to who asks for an adapter */
    const weft__adapt_names *names;
    weft__adapt_packer packer;
    pthread_mutex_t loading, lock;
    pthread_cond_t room; /* with lock */
    int is_full;         /* somebody was refused for want of room, and nothing was given back since */
    entry *entries;      /* [n], by index */
    size_t n, capacity;
    int32_t next_index;
    weft__adapt_lease **packed; /* [n_packed] */
    size_t n_packed, packed_capacity;
    uint64_t n_bytes, most_bytes, max_bytes, clock, n_loads, n_evictions;
};

weft_status weft__adapt_store_create(const weft__adapt_base *base, const weft__adapt_names *names,
                                     const weft__adapt_packer *packer, uint64_t n_bytes, weft__adapt_store **out, weft_error *err)
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
    s->max_bytes = n_bytes;
    pthread_mutex_init(&s->loading, NULL);
    pthread_mutex_init(&s->lock, NULL);
    weft__clock_cond_init(&s->room);
    return WEFT_OK;
}

static void free_packed(weft__adapt_store *s, size_t i)
{
    weft__adapt_lease *p = s->packed[i];
    s->packed[i] = s->packed[--s->n_packed];
    s->n_bytes -= p->n_bytes;
    s->packer.unpack(s->packer.arg, p->packed);
    weft__free(p);
}

static void free_entry(entry *e)
{
    weft__free(e->name);
    weft__free(e->path);
}

void weft__adapt_store_destroy(weft__adapt_store **store)
{
    weft__adapt_store *s = store ? *store : NULL;
    if (!s) return;
    while (s->n_packed > 0) free_packed(s, s->n_packed - 1);
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
    char shown[WEFT__SHOW];
    if (name[0] != '.' && weft__is_plain_name(name, WEFT__ADAPT_NAME)) return WEFT_OK;
    return weft_fail(err, WEFT_ARGUMENT,
                     "'%s' is no name for an adapter: 1 to %d of the characters A-Z a-z 0-9 . _ -, not beginning with a point",
                     weft__show_name(shown, name, strlen(name)), WEFT__ADAPT_NAME);
}

static entry *find(weft__adapt_store *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->entries[i].name, name)) return &s->entries[i];
    return NULL;
}

static entry *find_asked(weft__adapt_store *s, const weft__adapt_ask *ask)
{
    if (ask->name) return find(s, ask->name);
    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i].index == ask->index) return &s->entries[i];
    return NULL;
}

static int same_id(weft__adapt_id a, weft__adapt_id b)
{
    return a.word[0] == b.word[0] && a.word[1] == b.word[1];
}

static int has_name(const weft__adapt_store *s, weft__adapt_id id)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->entries[i].known && same_id(s->entries[i].id, id)) return 1;
    return 0;
}

/* Names have changed: what nobody can ask for is freed, or will be with its last lease. With the lock. */
static void sweep(weft__adapt_store *s)
{
    for (size_t i = s->n_packed; i-- > 0;) {
        weft__adapt_lease *p = s->packed[i];
        p->orphan = 0;
        for (int32_t k = 0; k < p->n; k++) p->orphan |= !has_name(s, p->strands[k].id);
        if (p->orphan && p->n_pins == 0) free_packed(s, i);
    }
}

/* Puts the name where it belongs; takes `fresh`. With the lock. */
static weft_status put_entry(weft__adapt_store *s, entry *fresh, uint32_t flags, weft_error *err)
{
    entry *old = find(s, fresh->name);
    if (old && !(flags & WEFT__ADAPT_REPLACE))
        return weft_fail(err, WEFT_EXISTS, "there is an adapter '%s' already; remove it first, or replace it", fresh->name);
    if (old) {
        fresh->index = old->index;
        fresh->version = old->version + !(old->known && fresh->known && same_id(old->id, fresh->id));
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
    *fresh = (entry){0};
    sweep(s);
    return WEFT_OK;
}

/* A file, read and checked against the base. */
typedef struct reading {
    const weft__adapt_store *s;
    const char *path;
    weft__adapt **out; /* NULL: only its id is asked for, and whether it can be used at: */
    float scale;
    weft__adapt_id id;
    uint64_t n_packed; /* at least */
    weft_status status;
    weft_error *err;
} reading;

/* In the background. */
static void read_checked(void *arg)
{
    reading *r = arg;
    weft__adapt *a;
    uint64_t most = r->s->max_bytes > UINT64_MAX / SHRINK ? UINT64_MAX : r->s->max_bytes * SHRINK;
    r->status = weft__adapt_open(r->path, r->s->names, most, &a, r->err);
    if (!r->status) r->status = weft__adapt_check(a, &r->s->base, r->err);
    if (!r->status) {
        r->id = a->id;
        r->n_packed = a->n_bytes / SHRINK;
    }
    if (!r->status && !r->out && (r->status = weft__adapt_check_values(a, r->scale, r->err))) {
        char shown[WEFT__SHOW * 2];
        weft_fail_within(r->err, r->status, "adapter %s", weft__show_path(shown, r->path));
    }
    if (!r->status && r->out) *r->out = a;
    else weft__adapt_close(&a);
}

/* Is a path at `at` in the message that begins at `text` a whole one, or the folder of one? */
static int is_whole(const char *text, const char *at, size_t n_path)
{
    const unsigned char before = at == text ? ' ' : (unsigned char)at[-1], after = (unsigned char)at[n_path];
    return !isalnum(before) && !strchr("/._-", before) && !isalnum(after) && (!after || !strchr("._-", after));
}

/* Who asks for a name need not know where its file lies: he is told of it by that name, the log by its path. */
static weft_status fail_by_name(const weft_error *why, const char *name, const char *path, weft_error *err)
{
    char text[sizeof why->message];
    size_t n = 0, n_path = strlen(path), n_name = strlen(name);
    weft__log(WEFT__LOG_WARN, "adapter '%s': %s", name, why->message);
    if (n_path > WEFT__SHOW)
        return weft_fail(err, why->status, "adapter %s: its file cannot be used; the log says why",
                         name); /* long paths are shown in parts */
    for (const char *from = why->message; *from && n + 1 < sizeof text;) {
        int here = n_path > 0 && !strncmp(from, path, n_path) && is_whole(why->message, from, n_path);
        if (here && n + n_name + 1 < sizeof text) memcpy(text + n, name, n_name), n += n_name;
        else if (!here) text[n++] = *from;
        from += here ? n_path : 1;
    }
    text[n] = 0;
    return weft_fail(err, why->status, "%s", text);
}

weft_status weft__adapt_store_add(weft__adapt_store *s, const char *name, const char *path, float scale, uint32_t flags,
                                  weft_error *err)
{
    weft_status st = weft__adapt_name_check(name, err);
    if (st) return st;
    if (!isfinite(scale)) return weft_fail(err, WEFT_ARGUMENT, "adapter '%s': its scale must be finite", name);
    entry fresh = {.name = weft__strdup(name), .path = weft__strdup(path), .version = 1, .scale = scale};
    if (!fresh.name || !fresh.path) {
        free_entry(&fresh);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for an adapter's name");
    }
    pthread_mutex_lock(&s->loading);
    if (!(flags & WEFT__ADAPT_LAZY)) {
        weft_error why = {0};
        int discreet = (flags & WEFT__ADAPT_DISCREET) != 0;
        reading r = {.s = s, .path = path, .scale = scale, .err = discreet ? &why : err};
        weft__background_run(read_checked, &r);
        st = r.status;
        if (st && discreet) fail_by_name(&why, name, path, err);
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
    char shown[WEFT__SHOW];
    weft_status st = WEFT_OK;
    pthread_mutex_lock(&s->lock);
    entry *e = find(s, name);
    if (e) {
        free_entry(e);
        memmove(e, e + 1, (size_t)(s->entries + s->n - (e + 1)) * sizeof *e);
        s->n--;
        sweep(s);
    } else {
        st = weft_fail(err, WEFT_NOT_FOUND, "there is no adapter '%s'", weft__show_name(shown, name, strlen(name)));
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

/* ---- leases ---- */

/* What is asked for, in terms of contents; unknown[i] is set where a file must be read first. */
typedef struct wish {
    strand strands[WEFT__ADAPT_STACK];
    char *paths[WEFT__ADAPT_STACK], *entry_names[WEFT__ADAPT_STACK];
    int known[WEFT__ADAPT_STACK];
    uint64_t n_packed[WEFT__ADAPT_STACK];
    int32_t n;
} wish;

static void forget(wish *w)
{
    for (int32_t i = 0; i < w->n; i++) {
        weft__free(w->paths[i]);
        weft__free(w->entry_names[i]);
    }
    w->n = 0;
}

static weft_status absent(const weft__adapt_ask *ask, weft_error *err)
{
    char shown[WEFT__SHOW];
    if (!ask->name) return weft_fail(err, WEFT_NOT_FOUND, "there is no adapter with number %d", ask->index);
    return weft_fail(err, WEFT_NOT_FOUND, "there is no adapter '%s'", weft__show_name(shown, ask->name, strlen(ask->name)));
}

/* With the lock. */
static weft_status read_asks(weft__adapt_store *s, const weft__adapt_ask *asks, int32_t n, wish *w, weft_error *err)
{
    w->n = 0;
    for (int32_t i = 0; i < n; i++) {
        const entry *e = find_asked(s, &asks[i]);
        if (!e) return absent(&asks[i], err);
        float scale = isnan(asks[i].scale) ? e->scale : asks[i].scale;
        if (!isfinite(scale)) return weft_fail(err, WEFT_ARGUMENT, "adapter '%s': its scale must be finite", e->name);
        if (scale == 0) continue;
        if (w->n == WEFT__ADAPT_STACK) return weft_fail(err, WEFT_LIMIT, "more than %d adapters together", WEFT__ADAPT_STACK);
        int32_t k = w->n++;
        w->strands[k] = (strand){e->id, scale};
        w->known[k] = e->known;
        w->n_packed[k] = e->n_packed;
        w->paths[k] = weft__strdup(e->path);
        w->entry_names[k] = weft__strdup(e->name);
        if (!w->paths[k] || !w->entry_names[k]) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a list of adapters");
    }
    return WEFT_OK;
}

/* The packed stack of that wish, pinned; NULL: it is not there. With the lock. */
static weft__adapt_lease *pin(weft__adapt_store *s, const wish *w)
{
    for (size_t i = 0; i < s->n_packed; i++) {
        weft__adapt_lease *p = s->packed[i];
        int same = p->n == w->n;
        for (int32_t k = 0; same && k < w->n; k++)
            same = w->known[k] && same_id(p->strands[k].id, w->strands[k].id) && p->strands[k].scale == w->strands[k].scale;
        if (!same) continue;
        p->n_pins++;
        p->used = ++s->clock;
        return p;
    }
    return NULL;
}

static weft_status make_id(weft__adapt_lease *p, weft_error *err)
{
    weft__sha256 h = {0};
    weft_status st = weft__sha256_begin(&h, err);
    for (int32_t i = 0; i < p->n && !st; i++) {
        st = weft__sha256_add(&h, &p->strands[i].id, sizeof p->strands[i].id, err);
        if (!st) st = weft__sha256_add(&h, &p->strands[i].scale, sizeof p->strands[i].scale, err);
    }
    if (st) {
        weft__sha256_free(&h);
        return st;
    }
    weft__sha256_end_words(&h, p->id.word);
    return WEFT_OK;
}

/* Files of the wish, read; the name that one belongs to learns what it holds. */
static weft_status read_files(weft__adapt_store *s, wish *w, weft__adapt *adapters[WEFT__ADAPT_STACK], weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < w->n && !st; i++) {
        weft_error why = {0};
        reading r = {.s = s, .path = w->paths[i], .out = &adapters[i], .err = &why};
        weft__background_run(read_checked, &r);
        if ((st = r.status)) return fail_by_name(&why, w->entry_names[i], w->paths[i], err);
        if (w->known[i] && !same_id(adapters[i]->id, w->strands[i].id))
            return weft_fail(err, WEFT_STATE,
                             "adapter '%s': its file holds something else than when it was loaded; load it again",
                             w->entry_names[i]);
        pthread_mutex_lock(&s->lock);
        entry *e = find(s, w->entry_names[i]);
        if (e && !e->known && !strcmp(e->path, w->paths[i])) {
            e->known = 1;
            e->id = r.id;
            e->n_packed = r.n_packed;
        }
        s->n_loads++;
        pthread_mutex_unlock(&s->lock);
        w->strands[i].id = adapters[i]->id;
        w->known[i] = 1;
        if (w->n_packed[i] < r.n_packed) w->n_packed[i] = r.n_packed;
    }
    return st;
}

/* With the lock. */
static weft_status no_room(weft__adapt_store *s, weft_error *err)
{
    s->is_full = 1;
    return weft_fail(err, WEFT_BUSY, "the adapters in use fill their budget of %llu bytes; try again later, or give more",
                     (unsigned long long)s->max_bytes);
}

/* Before anything is read: is there room beside what is in use? A stack has about what its strands have alone; what seems to be larger
 * than the budget is packed, to be sure. With the lock. */
static weft_status check_room(weft__adapt_store *s, const wish *w, weft_error *err)
{
    uint64_t n_bytes = 0, in_use = 0;
    for (int32_t i = 0; i < w->n; i++) n_bytes += w->n_packed[i];
    for (size_t i = 0; i < s->n_packed; i++)
        if (s->packed[i]->n_pins) in_use += s->packed[i]->n_bytes;
    return n_bytes <= s->max_bytes && in_use > s->max_bytes - n_bytes ? no_room(s, err) : WEFT_OK;
}

/* Lets go of what is least used until n_bytes more fit. With the lock. */
static weft_status make_room(weft__adapt_store *s, uint64_t n_bytes, weft_error *err)
{
    if (n_bytes > s->max_bytes)
        return weft_fail(err, WEFT_LIMIT, "the adapter needs %llu bytes; the budget of adapters is %llu",
                         (unsigned long long)n_bytes, (unsigned long long)s->max_bytes);
    while (s->n_bytes > s->max_bytes - n_bytes) {
        size_t least = s->n_packed;
        for (size_t i = 0; i < s->n_packed; i++)
            if (s->packed[i]->n_pins == 0 && (least == s->n_packed || s->packed[i]->used < s->packed[least]->used)) least = i;
        if (least == s->n_packed) return no_room(s, err);
        free_packed(s, least);
        s->n_evictions++;
    }
    return WEFT_OK;
}

/* What becomes of adapters that were read. */
typedef struct packing {
    const weft__adapt_store *s;
    const wish *w;
    weft__adapt **adapters; /* [WEFT__ADAPT_STACK], closed in the end */
    weft__adapt_lease *p;
    weft_status status;
    weft_error *err;
} packing;

void weft__adapt_name_all(const char *const *names, int32_t n, char *out, size_t size)
{
    size_t at = (size_t)snprintf(out, size, n > 1 ? "adapters" : "adapter");
    for (int32_t i = 0; i < n && at < size; i++) at += (size_t)snprintf(out + at, size - at, "%s %s", i ? "," : "", names[i]);
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
        uses[i] = (weft__adapt_use){k->adapters[i], k->p->strands[i].scale};
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
static weft_status pack(weft__adapt_store *s, const wish *w, weft__adapt *adapters[WEFT__ADAPT_STACK], weft__adapt_lease **out,
                        weft_error *err)
{
    weft__adapt_lease *p = weft__alloc_zero(1, sizeof *p);
    *out = NULL;
    if (!p) return weft_fail(err, WEFT_NO_MEMORY, "no memory for an adapter");
    p->n = w->n;
    p->n_pins = 1;
    memcpy(p->strands, w->strands, sizeof p->strands);
    weft_status st = make_id(p, err);
    if (!st) {
        packing k = {s, w, adapters, p, WEFT_OK, err};
        weft__background_run(pack_stack, &k);
        st = k.status;
    }
    if (!st) {
        pthread_mutex_lock(&s->lock);
        for (size_t i = 0; i < s->n && p->n == 1; i++)
            if (s->entries[i].known && same_id(s->entries[i].id, p->strands[0].id)) s->entries[i].n_packed = p->n_bytes;
        st = make_room(s, p->n_bytes, err);
        if (!st && !weft__grow(&s->packed, &s->packed_capacity, s->n_packed + 1, sizeof *s->packed))
            st = weft_fail(err, WEFT_NO_MEMORY, "no memory for an adapter");
        if (!st) {
            p->used = ++s->clock;
            s->packed[s->n_packed++] = p;
            s->n_bytes += p->n_bytes;
            if (s->n_bytes > s->most_bytes) s->most_bytes = s->n_bytes;
            for (int32_t k = 0; k < p->n; k++) p->orphan |= !has_name(s, p->strands[k].id);
        }
        pthread_mutex_unlock(&s->lock);
        if (st) s->packer.unpack(s->packer.arg, p->packed);
    }
    if (st) weft__free(p);
    else *out = p;
    return st;
}

/* Looks, and reads and packs what is not there; with `loading`. */
static weft_status lease_loading(weft__adapt_store *s, const weft__adapt_ask *asks, int32_t n, weft__adapt_lease **out,
                                 weft_error *err)
{
    weft__adapt *adapters[WEFT__ADAPT_STACK] = {0};
    wish w = {0};
    pthread_mutex_lock(&s->lock);
    weft_status st = read_asks(s, asks, n, &w, err);
    if (!st && w.n > 0) *out = pin(s, &w);
    if (!st && !*out) st = check_room(s, &w, err);
    pthread_mutex_unlock(&s->lock);
    if (!st && w.n > 0 && !*out) {
        st = read_files(s, &w, adapters, err);
        if (!st) { /* names that nobody had read may hold what is there already */
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

weft_status weft__adapt_store_lease_ready(weft__adapt_store *s, const weft__adapt_ask *asks, int32_t n, int *ready,
                                          weft__adapt_lease **out, weft_error *err)
{
    wish w = {0};
    *out = NULL;
    pthread_mutex_lock(&s->lock);
    weft_status st = read_asks(s, asks, n, &w, err);
    if (!st && w.n > 0) *out = pin(s, &w);
    pthread_mutex_unlock(&s->lock);
    *ready = !st && (*out || w.n == 0);
    forget(&w);
    return st;
}

weft_status weft__adapt_store_lease(weft__adapt_store *s, const weft__adapt_ask *asks, int32_t n, weft__adapt_lease **out,
                                    weft_error *err)
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
                free_packed(s, i);
                break;
            }
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
            if (s->entries[i].known && same_id(s->entries[i].id, lease->strands[k].id)) names[k] = s->entries[i].name;
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

/* ---- what there is ---- */

/* With the lock. */
static void tell(const weft__adapt_store *s, const entry *e, void (*each)(void *arg, const weft__adapt_entry_info *info),
                 void *arg)
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
            if (!same_id(s->packed[k]->strands[j].id, e->id)) continue;
            info.n_leases += s->packed[k]->n_pins;
            info.n_bytes += s->packed[k]->n_bytes;
            break;
        }
    each(arg, &info);
}

void weft__adapt_store_each(weft__adapt_store *s, void (*each)(void *arg, const weft__adapt_entry_info *info), void *arg)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n; i++) tell(s, &s->entries[i], each, arg);
    pthread_mutex_unlock(&s->lock);
}

int weft__adapt_store_find(weft__adapt_store *s, const char *name, void (*each)(void *arg, const weft__adapt_entry_info *info),
                           void *arg)
{
    pthread_mutex_lock(&s->lock);
    const entry *e = find(s, name);
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
                                     .most_bytes = s->most_bytes,
                                     .max_bytes = s->max_bytes,
                                     .n_loads = s->n_loads,
                                     .n_evictions = s->n_evictions};
    for (size_t i = 0; i < s->n_packed; i++) out->n_leases += s->packed[i]->n_pins;
    pthread_mutex_unlock(&s->lock);
}
