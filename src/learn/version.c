// SPDX-License-Identifier: Apache-2.0
/* version.c: see version.h. What a lineage is now is found by walking its rows: there are few, and they are the truth.
 */
#include "learn/version.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct weft__versions {
    pthread_mutex_t lock;
    weft__version_note *note;
    void *arg;
    weft__version_row *row; /* [n] */
    size_t n, room;
};

static const char *const WHAT[] = {"rejected", "published", "rolled_back"};

const char *weft__version_what_name(weft__version_what what)
{
    return WHAT[what];
}

int weft__version_what_of(const char *name, weft__version_what *out)
{
    for (size_t i = 0; i < sizeof WHAT / sizeof *WHAT; i++) {
        if (strcmp(WHAT[i], name)) continue;
        *out = (weft__version_what)i;
        return 1;
    }
    return 0;
}

/* ---- names ---- */

void weft__version_write_name(const char *name, int64_t version, char *out)
{
    snprintf(out, WEFT__VERSION_FULL_NAME, "%s@%lld", name, (long long)version);
}

int weft__version_read_name(const char *full, char *name, int64_t *version)
{
    const char *at = strrchr(full, '@');
    const size_t n = at ? (size_t)(at - full) : 0;
    if (!at || !n || n >= WEFT__VERSION_NAME || at[1] < '1' || at[1] > '9') return 0;
    if (strspn(at + 1, "0123456789") != strlen(at + 1) || strlen(at + 1) > 18) return 0;
    memcpy(name, full, n);
    name[n] = 0;
    *version = strtoll(at + 1, NULL, 10);
    return 1;
}

static int is_name(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    return *name && *name != '.' && strspn(name, allowed) == strlen(name);
}

/* ---- life ---- */

weft_status weft__versions_create(weft__version_note *note, void *arg, weft__versions **out, weft_error *err)
{
    weft__versions *v = *out = weft__alloc_zero(1, sizeof *v);
    if (!v) return weft_fail(err, WEFT_NO_MEMORY, "no memory for versions");
    pthread_mutex_init(&v->lock, NULL);
    v->note = note;
    v->arg = arg;
    return WEFT_OK;
}

void weft__versions_destroy(weft__versions **pv)
{
    weft__versions *v = pv ? *pv : NULL;
    if (!v) return;
    pthread_mutex_destroy(&v->lock);
    weft__free(v->row);
    weft__free(v);
    *pv = NULL;
}

/* ---- what rows say; with the lock ---- */

static int is_of(const weft__version_row *r, const char *tenant, const char *name)
{
    return !strcmp(r->tenant, tenant) && !strcmp(r->name, name);
}

static const weft__version_row *published(const weft__versions *v, const char *tenant, const char *name,
                                          int64_t version)
{
    for (size_t i = 0; i < v->n; i++)
        if (v->row[i].what == WEFT__VERSION_PUBLISHED && v->row[i].version == version &&
            is_of(&v->row[i], tenant, name))
            return &v->row[i];
    return NULL;
}

static int64_t current(const weft__versions *v, const char *tenant, const char *name)
{
    for (size_t i = v->n; i-- > 0;)
        if (v->row[i].what != WEFT__VERSION_REJECTED && is_of(&v->row[i], tenant, name)) return v->row[i].version;
    return 0;
}

static int64_t next(const weft__versions *v, const char *tenant, const char *name)
{
    int64_t most = 0;
    for (size_t i = 0; i < v->n; i++)
        if (is_of(&v->row[i], tenant, name) && v->row[i].version > most) most = v->row[i].version;
    return most + 1;
}

static weft_status note_row(weft__versions *v, const weft__version_row *row, int noted, weft_error *err)
{
    if (!weft__grow(&v->row, &v->room, v->n + 1, sizeof *v->row))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for versions");
    weft_status st = noted && v->note ? v->note(v->arg, row, err) : WEFT_OK;
    if (!st) v->row[v->n++] = *row;
    return st;
}

/* ---- rows ---- */

weft_status weft__versions_read(weft__versions *v, const weft__version_row *row, weft_error *err)
{
    pthread_mutex_lock(&v->lock);
    const int64_t expected = next(v, row->tenant, row->name);
    const int follows = row->what == WEFT__VERSION_ROLLED_BACK
                            ? !row->version || published(v, row->tenant, row->name, row->version)
                            : row->version >= expected;
    weft_status st = follows && is_name(row->name)
                         ? note_row(v, row, 0, err)
                         : weft_fail(err, WEFT_FORMAT, "version %lld of '%s' does not follow from those before it",
                                     (long long)row->version, row->name);
    pthread_mutex_unlock(&v->lock);
    return st;
}

weft_status weft__versions_add(weft__versions *v, weft__version_row *row, weft_error *err)
{
    if (!is_name(row->name))
        return weft_fail(err, WEFT_ARGUMENT, "'%s' is no name for an adapter that learns", row->name);
    pthread_mutex_lock(&v->lock);
    row->version = next(v, row->tenant, row->name);
    weft_status st = note_row(v, row, 1, err);
    pthread_mutex_unlock(&v->lock);
    return st;
}

/* What the name stood for when the current version was published. */
static weft_status before(const weft__versions *v, const char *tenant, const char *name, int64_t *to, weft_error *err)
{
    const weft__version_row *r = published(v, tenant, name, current(v, tenant, name));
    if (!r) return weft_fail(err, WEFT_STATE, "'%s' has no version to go back from", name);
    *to = 0;
    while (r-- > v->row) {
        if (r->what == WEFT__VERSION_REJECTED || !is_of(r, tenant, name)) continue;
        *to = r->version;
        break;
    }
    return WEFT_OK;
}

/* Those that one may go back to, the newest first. */
static void name_published(const weft__versions *v, const char *tenant, const char *name, char *out, size_t room)
{
    enum { MOST = 6 };
    size_t n = 0, at = 0;
    for (size_t i = v->n; i-- > 0;) {
        const weft__version_row *r = &v->row[i];
        if (r->what != WEFT__VERSION_PUBLISHED || !is_of(r, tenant, name) || n++ >= MOST) continue;
        at += (size_t)snprintf(out + at, room - at, "%s%lld", at ? ", " : "there are ", (long long)r->version);
    }
    if (n > MOST) at += (size_t)snprintf(out + at, room - at, ", %zu older ones", n - MOST);
    snprintf(out + at, room - at, "%s0, the base alone", n ? " and " : "there is ");
}

weft_status weft__versions_roll_back(weft__versions *v, const char *tenant, const char *name, int64_t to, int64_t *now,
                                     weft_error *err)
{
    weft__version_row row = {.what = WEFT__VERSION_ROLLED_BACK};
    weft_status st = WEFT_OK;
    pthread_mutex_lock(&v->lock);
    if (next(v, tenant, name) == 1) st = weft_fail(err, WEFT_NOT_FOUND, "nothing was learned as '%s'", name);
    if (!st && to < 0) st = before(v, tenant, name, &to, err);
    const weft__version_row *r = !st && to ? published(v, tenant, name, to) : NULL;
    if (!st && to && !r) {
        char those[256];
        name_published(v, tenant, name, those, sizeof those);
        st = weft_fail(err, WEFT_NOT_FOUND, "'%s' has no version %lld that was published; %s", name, (long long)to,
                       those);
    }
    if (!st && to != current(v, tenant, name)) { /* else nothing happens */
        snprintf(row.tenant, sizeof row.tenant, "%s", tenant);
        snprintf(row.name, sizeof row.name, "%s", name);
        row.version = to;
        if (r) memcpy(row.content, r->content, sizeof row.content);
        if (r) row.parent = r->parent;
        st = note_row(v, &row, 1, err);
    }
    if (!st) *now = to;
    pthread_mutex_unlock(&v->lock);
    return st;
}

void weft__versions_forget(weft__versions *v, const char *tenant)
{
    size_t left = 0;
    pthread_mutex_lock(&v->lock);
    for (size_t i = 0; i < v->n; i++)
        if (strcmp(v->row[i].tenant, tenant)) v->row[left++] = v->row[i];
    v->n = left;
    pthread_mutex_unlock(&v->lock);
}

/* ---- looking ---- */

int64_t weft__versions_current(weft__versions *v, const char *tenant, const char *name, char *content)
{
    pthread_mutex_lock(&v->lock);
    const int64_t now = current(v, tenant, name);
    const weft__version_row *r = now ? published(v, tenant, name, now) : NULL;
    if (content) snprintf(content, WEFT__VERSION_CONTENT, "%s", r ? r->content : "");
    pthread_mutex_unlock(&v->lock);
    return now;
}

int weft__versions_is_published(weft__versions *v, const char *tenant, const char *name, int64_t version)
{
    pthread_mutex_lock(&v->lock);
    const int is = published(v, tenant, name, version) != NULL;
    pthread_mutex_unlock(&v->lock);
    return is;
}

int64_t weft__versions_parent(weft__versions *v, const char *tenant, const char *name, int64_t version)
{
    pthread_mutex_lock(&v->lock);
    const weft__version_row *r = published(v, tenant, name, version);
    const int64_t parent = r ? r->parent : 0;
    pthread_mutex_unlock(&v->lock);
    return parent;
}

int weft__versions_goes_on(weft__versions *v, const char *tenant, const char *name, int64_t version)
{
    pthread_mutex_lock(&v->lock);
    const weft__version_row *r = published(v, tenant, name, version);
    while (r && !r->last_event && r->parent < r->version) r = published(v, tenant, name, r->parent);
    const int goes = r && r->parent;
    pthread_mutex_unlock(&v->lock);
    return goes;
}

int64_t weft__versions_next(weft__versions *v, const char *tenant, const char *name)
{
    pthread_mutex_lock(&v->lock);
    const int64_t n = next(v, tenant, name);
    pthread_mutex_unlock(&v->lock);
    return n;
}

void weft__versions_each(weft__versions *v, const char *tenant, void (*fn)(void *arg, const weft__version_row *row),
                         void *arg)
{
    pthread_mutex_lock(&v->lock);
    for (size_t i = 0; i < v->n; i++)
        if (!tenant || !strcmp(v->row[i].tenant, tenant)) fn(arg, &v->row[i]);
    pthread_mutex_unlock(&v->lock);
}
