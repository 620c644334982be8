// SPDX-License-Identifier: Apache-2.0
/* teach_store.c: see teach_store.h. `lock` has what is known of tenants, and is never held while the store is asked:
 * requests want to know their version. Hooks of the loop come by the loop's thread. */
#include "learn/teach_store.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "learn/public_text.h"
#include "learn/teach_store_parts.h"

enum { NAME = WEFT__VERSION_NAME, LOOK_MS = 20000 /* at the clock of the day, which somebody may set */ };

/* ---- names ---- */

int weft__teach_names_has(const weft__teach_names *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->name[i], name)) return 1;
    return 0;
}

int weft__teach_names_put(weft__teach_names *s, const char *name)
{
    if (weft__teach_names_has(s, name)) return 1;
    if (!weft__grow(&s->name, &s->room, s->n + 1, sizeof *s->name)) return 0;
    snprintf(s->name[s->n++], sizeof *s->name, "%s", name);
    return 1;
}

void weft__teach_names_drop(weft__teach_names *s, const char *name)
{
    for (size_t i = 0; i < s->n; i++)
        if (!strcmp(s->name[i], name)) {
            memmove(s->name + i, s->name + i + 1, (--s->n - i) * sizeof *s->name);
            return;
        }
}

/* ---- tenants ---- */

/* With the lock. */
static weft__teach_of *known(weft__teach_store *t, const char *tenant)
{
    for (size_t i = 0; i < t->n_tenants; i++)
        if (!strcmp(t->tenant[i]->tenant, tenant)) return t->tenant[i];
    return NULL;
}

static void of_free(weft__teach_of *one)
{
    if (!one) return;
    weft__free(one->published);
    weft__free(one->folder);
    weft__free(one);
}

weft_status weft__teach_store_of(weft__teach_store *t, const char *tenant, weft__teach_of **out, weft_error *err)
{
    weft__strbuf folder = {0};
    weft_status st = WEFT_OK;
    pthread_mutex_lock(&t->lock);
    *out = known(t, tenant);
    pthread_mutex_unlock(&t->lock);
    if (*out || (st = weft__learn_tenant_dir(t->store, tenant, 0, &folder, err))) {
        weft__strbuf_free(&folder);
        return st;
    }
    const char *number = strrchr(folder.data, '/');
    weft__teach_of *one = weft__alloc_zero(1, sizeof *one);
    if (one) {
        snprintf(one->tenant, sizeof one->tenant, "%s", tenant);
        snprintf(one->name, sizeof one->name, "learned-%.20s", number ? number + 1 : folder.data);
        one->folder = folder.data;
    } else weft__strbuf_free(&folder);
    pthread_mutex_lock(&t->lock);
    if (!one || !weft__grow(&t->tenant, &t->room, t->n_tenants + 1, sizeof *t->tenant)) st = weft__teach_no_memory(err);
    else *out = t->tenant[t->n_tenants++] = one;
    pthread_mutex_unlock(&t->lock);
    if (st) of_free(one);
    return st;
}

/* The lineage's name of a tenant into name [NAME]; "": it has none. */
static void name_of(weft__teach_store *t, const char *tenant, char *name)
{
    pthread_mutex_lock(&t->lock);
    const weft__teach_of *one = known(t, tenant);
    snprintf(name, NAME, "%s", one ? one->name : "");
    pthread_mutex_unlock(&t->lock);
}

void weft__teach_store_take_row(weft__teach_store *t, const weft__version_row *row)
{
    pthread_mutex_lock(&t->lock);
    weft__teach_of *one = known(t, row->tenant);
    if (one && row->what != WEFT__VERSION_REJECTED) one->now = row->version;
    /* without memory for it, requests may not name it before the next start */
    if (one && row->what == WEFT__VERSION_PUBLISHED &&
        weft__grow(&one->published, &one->room, one->n_published + 1, sizeof *one->published)) {
        one->published[one->n_published] = (weft__teach_published){.version = row->version};
        memcpy(one->published[one->n_published++].content, row->content, sizeof row->content);
    }
    pthread_mutex_unlock(&t->lock);
}

/* ---- hooks of the loop ---- */

static void write_path(const weft__teach_of *one, const char *full_name, char *out)
{
    snprintf(out, 4096, "%.3900s/%s.gguf", one->folder, full_name);
}

weft_status weft__teach_store_place(void *teach_store, const char *tenant, const char *full_name, char *out,
                                    weft_error *err)
{
    weft__teach_store *t = teach_store;
    weft__teach_of *one;
    weft_status st = weft__teach_store_of(t, tenant, &one, err);
    if (!st) write_path(one, full_name, out);
    return st;
}

static weft_status publish(void *arg, const char *tenant, const char *full_name, const char *path, weft_error *err)
{
    const weft__teach_store *t = arg;
    return t->p.hooks.publish(t->p.hooks.arg, tenant, full_name, path, err);
}

static int busy(void *arg)
{
    const weft__teach_store *t = arg;
    return t->p.hooks.busy && t->p.hooks.busy(t->p.hooks.arg);
}

static weft_status note(void *arg, const weft__version_row *row, weft_error *err)
{
    weft__teach_store *t = arg;
    pthread_mutex_lock(&t->order);
    weft_status st = weft__teach_store_put_row(t->store, row, t->own.base, err);
    if (!st) weft__teach_store_take_row(t, row);
    pthread_mutex_unlock(&t->order);
    if (st) return st;
    pthread_mutex_lock(&t->lock);
    t->n_rolled_back += row->what == WEFT__VERSION_ROLLED_BACK;
    pthread_mutex_unlock(&t->lock);
    if (t->own.told) t->own.told(t->own.told_arg, row);
    return WEFT_OK;
}

/* ---- life ---- */

void weft__teach_store_params_default(weft__teach_store_params *p)
{
    *p = (weft__teach_store_params){.consolidate_at = -1};
    weft__teach_loop_params_default(&p->loop);
}

/* The loop, with its own public texts where none are given. */
static weft_status make_loop(weft__teach_store *t, weft_error *err)
{
    weft_status st = t->p.probe ? WEFT_OK : weft__teach_public_text(t->p.tok, &t->probe, &t->publics, err);
    if (st) return st;
    if (!t->p.probe) {
        t->p.probe = t->probe.text[0].ids;
        t->p.n_probe = t->probe.text[0].n;
        t->p.publics = t->publics.text;
        t->p.n_publics = (int32_t)t->publics.n;
    }
    weft__teach_loop_params p = t->p;
    p.hooks =
        (weft__teach_hooks){.arg = t, .place = weft__teach_store_place, .publish = publish, .note = note, .busy = busy};
    return weft__teach_loop_new(&p, &t->loop, err);
}

weft_status weft__teach_store_new(weft__learn_store *store, const weft__teach_store_params *params,
                                  weft__teach_store **out, weft_error *err)
{
    weft__teach_store *t = *out = weft__alloc_zero(1, sizeof *t);
    if (!t) return weft__teach_no_memory(err);
    t->store = store;
    t->own = *params;
    t->p = params->loop;
    t->look_ms = LOOK_MS;
    t->has_only = params->only != NULL;
    if (params->only) snprintf(t->only, sizeof t->only, "%s", params->only);
    t->n_woken = t->reads_all = !params->looks_only; /* what is there already is read */
    pthread_mutex_init(&t->order, NULL);
    pthread_mutex_init(&t->lock, NULL);
    weft__clock_cond_init(&t->changed);
    weft_status st = make_loop(t, err);
    if (!st) st = weft__teach_feed_restore(t, err);
    if (!st && !params->looks_only) {
        weft__learn_listen(store, weft__teach_feed_woken, t);
        t->has_thread = !weft__thread_start(&t->thread, weft__teach_feed_run, t);
        if (!t->has_thread) st = weft_fail(err, WEFT_IO, "no thread to learn with");
    }
    if (st) weft__teach_store_free(out);
    return st;
}

void weft__teach_store_free(weft__teach_store **pt)
{
    weft__teach_store *t = pt ? *pt : NULL;
    if (!t) return;
    if (!t->own.looks_only) weft__learn_listen(t->store, NULL, NULL);
    pthread_mutex_lock(&t->lock);
    t->ends = 1;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    if (t->has_thread) pthread_join(t->thread, NULL);
    weft__teach_loop_free(&t->loop);
    for (size_t i = 0; i < t->n_tenants; i++) of_free(t->tenant[i]);
    weft__free(t->tenant);
    weft__free(t->woken.name);
    weft__free(t->night_had.name);
    weft__free(t->going.name);
    weft__teach_texts_free(&t->probe);
    weft__teach_texts_free(&t->publics);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->order);
    weft__free(t);
    *pt = NULL;
}

/* ---- looking, and what people decide ---- */

int weft__teach_store_current(weft__teach_store *t, const char *tenant, char *out)
{
    pthread_mutex_lock(&t->lock);
    const weft__teach_of *one = known(t, tenant);
    const int has = one && one->now > 0;
    if (has) weft__version_write_name(one->name, one->now, out);
    pthread_mutex_unlock(&t->lock);
    return has;
}

int weft__teach_store_name(weft__teach_store *t, const char *tenant, char *out)
{
    name_of(t, tenant, out);
    return *out != 0;
}

/* With the lock. NULL: the tenant has no such version. */
static const weft__teach_published *published(weft__teach_store *t, const char *tenant, const char *full_name)
{
    char name[NAME];
    int64_t version;
    const weft__teach_of *one = weft__version_read_name(full_name, name, &version) ? known(t, tenant) : NULL;
    for (size_t i = 0; one && !strcmp(name, one->name) && i < one->n_published; i++)
        if (one->published[i].version == version) return &one->published[i];
    return NULL;
}

int weft__teach_store_may(weft__teach_store *t, const char *tenant, const char *full_name)
{
    char name[NAME];
    int64_t version;
    if (!weft__version_read_name(full_name, name, &version)) return -1;
    pthread_mutex_lock(&t->lock);
    const int may = published(t, tenant, full_name) != NULL;
    pthread_mutex_unlock(&t->lock);
    return may;
}

size_t weft__teach_store_published(weft__teach_store *t, const char *tenant, int64_t *out, size_t most)
{
    pthread_mutex_lock(&t->lock);
    const weft__teach_of *one = known(t, tenant);
    const size_t n = one ? one->n_published : 0;
    for (size_t i = 0; i < n && i < most; i++) out[i] = one->published[n - 1 - i].version;
    pthread_mutex_unlock(&t->lock);
    return n;
}

void weft__teach_store_hold(weft__teach_store *t)
{
    pthread_mutex_lock(&t->order);
}

void weft__teach_store_go_on(weft__teach_store *t)
{
    pthread_mutex_unlock(&t->order);
}

void weft__teach_store_content(weft__teach_store *t, const char *tenant, const char *full_name, char *out)
{
    pthread_mutex_lock(&t->lock);
    const weft__teach_published *p = published(t, tenant, full_name);
    snprintf(out, WEFT__VERSION_CONTENT, "%s", p ? p->content : "");
    pthread_mutex_unlock(&t->lock);
}

weft_status weft__teach_store_path(weft__teach_store *t, const char *tenant, const char *full_name, char *out,
                                   weft_error *err)
{
    pthread_mutex_lock(&t->lock); /* its tenant may be forgotten at any moment */
    const int is_there = published(t, tenant, full_name) != NULL;
    if (is_there) write_path(known(t, tenant), full_name, out);
    pthread_mutex_unlock(&t->lock);
    return is_there ? WEFT_OK : weft_fail(err, WEFT_NOT_FOUND, "there is no version '%s'", full_name);
}

int32_t weft__teach_store_waiting(weft__teach_store *t, const char *tenant)
{
    return weft__teach_loop_waiting(t->loop, tenant);
}

/* What is known of it, from which the reader keeps off. 0: no memory. */
static int begin_forgetting(weft__teach_store *t, const char *tenant)
{
    pthread_mutex_lock(&t->lock);
    while (weft__teach_names_has(&t->going, tenant)) pthread_cond_wait(&t->changed, &t->lock); /* by another */
    const int ok = weft__teach_names_put(&t->going, tenant);
    while (ok && t->is_reading && !strcmp(t->reading, tenant)) pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
    return ok;
}

weft_status weft__teach_store_forget(weft__teach_store *t, const char *tenant, weft__learn_totals *had, weft_error *err)
{
    if (!begin_forgetting(t, tenant)) return weft__teach_no_memory(err);
    weft__teach_loop_forget(t->loop, tenant);
    pthread_mutex_lock(&t->order);
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->n_tenants; i++) {
        if (strcmp(t->tenant[i]->tenant, tenant)) continue;
        of_free(t->tenant[i]);
        t->tenant[i] = t->tenant[--t->n_tenants];
        break;
    }
    pthread_mutex_unlock(&t->lock);
    weft_status st = weft__learn_forget(t->store, tenant, had, err);
    pthread_mutex_unlock(&t->order);
    pthread_mutex_lock(&t->lock);
    weft__teach_names_drop(&t->going, tenant);
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    /* what came meanwhile; and where the store could not forget, all of it again */
    if (t->has_thread) weft__teach_feed_woken(t, tenant, WEFT__LEARN_THUMB);
    return st;
}

typedef struct rows_since {
    int64_t ms;
    int32_t n;
} rows_since;

static int count_back(void *arg, const weft__learn_version *v)
{
    rows_since *s = arg;
    weft__version_what what;
    s->n += v->time_ms > s->ms && weft__version_what_of(v->what, &what) && what == WEFT__VERSION_ROLLED_BACK;
    return 0;
}

/* Each is a row and an entry of the witness log, for ever. */
static weft_status check_rate(weft__teach_store *t, const char *tenant, const char *name, weft_error *err)
{
    rows_since since = {.ms = weft__clock_unix_ms() - 3600 * 1000};
    weft_status st = weft__learn_versions(t->store, tenant, name, count_back, &since, err);
    if (st || since.n < WEFT__TEACH_ROLL_BACKS) return st;
    return weft_fail(err, WEFT_BUSY,
                     "you have gone back %d times within an hour, the most that one may; to compare versions, ask for "
                     "each by its number",
                     since.n);
}

weft_status weft__teach_store_roll_back(weft__teach_store *t, const char *tenant, int64_t to, int64_t *now,
                                        weft_error *err)
{
    char name[NAME];
    name_of(t, tenant, name);
    if (!*name) return weft_fail(err, WEFT_NOT_FOUND, "nothing was learned of you yet");
    weft_status st = t->own.looks_only ? WEFT_OK : check_rate(t, tenant, name, err);
    if (st) return st;
    return weft__versions_roll_back(weft__teach_loop_versions(t->loop), tenant, name, to, now, err);
}

weft_status weft__teach_store_consolidate(weft__teach_store *t, const char *tenant, weft_error *err)
{
    char name[NAME];
    name_of(t, tenant, name);
    return *name ? weft__teach_loop_consolidate(t->loop, tenant, name, err)
                 : weft_fail(err, WEFT_NOT_FOUND, "nothing was learned of you yet");
}

void weft__teach_store_wait(weft__teach_store *t)
{
    weft__learn_flush(t->store);
    pthread_mutex_lock(&t->lock);
    const uint64_t n = t->has_thread ? ++t->n_woken : t->n_read;
    t->reads_all = t->has_thread; /* the writer may be yet to say what it has written */
    pthread_cond_broadcast(&t->changed);
    while (t->n_read < n) pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
    weft__teach_loop_wait(t->loop);
}

void weft__teach_store_get_stats(weft__teach_store *t, weft__teach_loop_stats *out)
{
    weft__teach_loop_get_stats(t->loop, out);
    pthread_mutex_lock(&t->lock);
    out->n_rolled_back = t->n_rolled_back;
    pthread_mutex_unlock(&t->lock);
}

int64_t weft__teach_store_n_others(weft__teach_store *t)
{
    pthread_mutex_lock(&t->lock);
    const int64_t n = t->n_others;
    pthread_mutex_unlock(&t->lock);
    return n;
}
