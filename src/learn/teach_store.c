// SPDX-License-Identifier: Apache-2.0
/* teach_store.c: see teach_store.h. `lock` has what is known of tenants. The store's writer only wakes the thread that
 * reads; hooks of the loop come by the loop's thread. */
#include "learn/teach_store.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"

enum { NAME = WEFT__VERSION_NAME };

typedef struct store_tenant {
    char tenant[WEFT__LEARN_TENANT], name[NAME];
    char *folder;
    int64_t after; /* the last event that was put */
} store_tenant;

struct weft__teach_store {
    weft__learn_store *store;
    weft__teach_store_params own;
    weft__teach_loop_params p; /* of it */
    int has_only;
    char only[WEFT__LEARN_TENANT]; /* "" is the tenant without a key */
    weft__teach_loop *loop;
    pthread_t thread;
    int has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* with lock */
    int ends;
    int64_t n_others;
    uint64_t n_woken, n_read; /* calls of the listener, and how many of them what was read since knows of */
    store_tenant **tenant;    /* [n_tenants] */
    size_t n_tenants, room;
};

static weft_status store_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory to learn");
}

/* ---- tenants ---- */

static store_tenant *known(weft__teach_store *t, const char *tenant)
{
    for (size_t i = 0; i < t->n_tenants; i++)
        if (!strcmp(t->tenant[i]->tenant, tenant)) return t->tenant[i];
    return NULL;
}

/* That of a tenant, made where there is none: asks the store for its folder, so not with the lock, and not within one
 * of its readers. */
static weft_status tenant_of(weft__teach_store *t, const char *tenant, store_tenant **out, weft_error *err)
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
    store_tenant *one = weft__alloc_zero(1, sizeof *one);
    if (one) {
        snprintf(one->tenant, sizeof one->tenant, "%s", tenant);
        snprintf(one->name, sizeof one->name, "learned-%.20s", number ? number + 1 : folder.data);
        one->folder = folder.data;
    }
    pthread_mutex_lock(&t->lock);
    if (!one || !weft__grow(&t->tenant, &t->room, t->n_tenants + 1, sizeof *t->tenant)) st = store_no_memory(err);
    else *out = t->tenant[t->n_tenants++] = one;
    pthread_mutex_unlock(&t->lock);
    if (!st) return WEFT_OK;
    weft__free(one);
    weft__strbuf_free(&folder);
    return st;
}

/* The lineage's name of a tenant into name [NAME]; "": it has none. */
static void name_of(weft__teach_store *t, const char *tenant, char *name)
{
    pthread_mutex_lock(&t->lock);
    const store_tenant *one = known(t, tenant);
    snprintf(name, NAME, "%s", one ? one->name : "");
    pthread_mutex_unlock(&t->lock);
}

/* ---- hooks of the loop ---- */

static weft_status place_version(void *arg, const char *tenant, const char *full_name, char *out, weft_error *err)
{
    weft__teach_store *t = arg;
    store_tenant *one;
    weft_status st = tenant_of(t, tenant, &one, err);
    if (!st) snprintf(out, 4096, "%.3900s/%s.gguf", one->folder, full_name);
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

weft_status weft__teach_store_put_row(weft__learn_store *store, const weft__version_row *row, weft_error *err)
{
    char parent[24], report[128], kl[40] = "";
    snprintf(parent, sizeof parent, "%lld", (long long)row->parent);
    if (row->kl != 0 && isfinite(row->kl)) snprintf(kl, sizeof kl, ",\"kl\":%.9g", row->kl);
    snprintf(report, sizeof report, "{\"reason\":\"%s\"%s}", row->reason, kl);
    const weft__learn_version v = {.tenant = row->tenant,
                                   .adapter = row->name,
                                   .version = row->version,
                                   .what = weft__version_what_name(row->what),
                                   .content = row->content,
                                   .parent = parent,
                                   .first_event = row->first_event,
                                   .last_event = row->last_event,
                                   .report = report,
                                   .time_ms = weft__clock_unix_ms()};
    return weft__learn_put_version(store, &v, err);
}

static weft_status note(void *arg, const weft__version_row *row, weft_error *err)
{
    const weft__teach_store *t = arg;
    weft_status st = weft__teach_store_put_row(t->store, row, err);
    if (!st && t->own.told) t->own.told(t->own.told_arg, row);
    return st;
}

/* ---- events ---- */

/* What a reader of the store hands on. */
typedef struct store_reading {
    weft__teach_store *t;
    store_tenant *tenant;
    int64_t last, version; /* version: that learned them; 0: they are to be learned */
    int64_t first_event, last_event;
    weft__teach_texts answers;
    weft_status status;
    weft_error err;
} store_reading;

static int32_t end_token(const weft__tok *tok)
{
    const int32_t turn = weft__tok_id_of_role(tok, WEFT__TOK_ROLE_EOT);
    return turn >= 0 ? turn : weft__tok_id_of_role(tok, WEFT__TOK_ROLE_EOS);
}

/* An answer's tokens without one that ends it. */
static int32_t without_end(const weft__tok *tok, const weft__learn_record *r)
{
    return r->n_answer && weft__tok_is_end(tok, r->answer[r->n_answer - 1]) ? r->n_answer - 1 : r->n_answer;
}

/* Has the vocabulary all of them? */
static int are_tokens(const weft__tok *tok, const int32_t *ids, int32_t n)
{
    const int32_t most = weft__tok_n(tok);
    for (int32_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= most) return 0;
    return 1;
}

/* Is it the model's that learns? */
static int is_own(const weft__teach_store *t, const weft__learn_record *r)
{
    return (!t->own.base || (r->base && !strcmp(r->base, t->own.base))) &&
           are_tokens(t->p.tok, r->prompt, r->n_prompt) && are_tokens(t->p.tok, r->answer, r->n_answer);
}

/* An event that would teach, had this model answered. */
static int is_others(const weft__teach_store *t, const weft__learn_event *e)
{
    if (e->kind == WEFT__LEARN_PREFERRED) return e->over.id && (!is_own(t, &e->answer) || !is_own(t, &e->over));
    return (e->kind == WEFT__LEARN_CORRECTION || e->kind == WEFT__LEARN_EDIT) && !is_own(t, &e->answer);
}

/* What is right, as a text with the prompt; what was wrong is the answer, or the one that another is preferred to. 0:
 * the event says none. */
static int right_text(weft__teach_store *t, const weft__learn_event *e, weft__teach_texts *out, weft_error *err)
{
    const weft__tok *tok = t->p.tok;
    const weft__learn_record *a = &e->answer;
    weft__tok_ids ids = {0};
    int ok = 0;
    if (e->kind == WEFT__LEARN_PREFERRED)
        return e->over.id &&
               weft__teach_texts_add(out, a->prompt, a->n_prompt, a->answer, without_end(tok, a), end_token(tok));
    if ((e->kind != WEFT__LEARN_CORRECTION && e->kind != WEFT__LEARN_EDIT) || !e->n_text) return 0;
    if (!weft__tok_encode(tok, e->text, e->n_text, 0, &ids, err)) /* special tokens stay text */
        ok = weft__teach_texts_add(out, a->prompt, a->n_prompt, ids.data, (int32_t)ids.n, end_token(tok));
    weft__tok_ids_free(&ids);
    return ok;
}

static int take_event(void *arg, const weft__learn_event *e)
{
    store_reading *r = arg;
    weft__teach_store *t = r->t;
    weft__teach_texts right = {0};
    if (r->version && (e->event < r->first_event || e->event > r->last_event)) return e->event > r->last_event;
    if (is_others(t, e)) {
        pthread_mutex_lock(&t->lock);
        t->n_others += !r->version;
        pthread_mutex_unlock(&t->lock);
    } else if (right_text(t, e, &right, &r->err)) {
        const weft__learn_record *wrong = e->kind == WEFT__LEARN_PREFERRED ? &e->over : &e->answer;
        const weft__teach_event event = {
            .correction = right.text[0], .wrong = wrong->answer, .n_wrong = without_end(t->p.tok, wrong)};
        const char *tenant = r->tenant->tenant, *name = r->tenant->name;
        r->status = r->version ? weft__teach_loop_know(t->loop, tenant, name, r->version, e->event, &event, &r->err)
                               : weft__teach_loop_put(t->loop, tenant, name, e->event, &event, &r->err);
    }
    weft__teach_texts_free(&right);
    if (!r->status) r->last = e->event;
    return r->status != WEFT_OK;
}

static int take_answer(void *arg, const weft__learn_record *a)
{
    store_reading *r = arg;
    const int32_t n = is_own(r->t, a) ? without_end(r->t->p.tok, a) : 0;
    if (n && !weft__teach_texts_add(&r->answers, a->prompt, a->n_prompt, a->answer, n, end_token(r->t->p.tok)))
        r->status = store_no_memory(&r->err);
    return r->status != WEFT_OK;
}

/* They came newest first. */
static void keep_answers(store_reading *r)
{
    for (size_t i = r->answers.n; i-- > 0 && !r->status;)
        r->status = weft__teach_loop_keep(r->t->loop, r->tenant->tenant, r->tenant->name, &r->answers.text[i], &r->err);
    weft__teach_texts_free(&r->answers);
}

/* ---- reading ---- */

/* The tenant's answers that stay, then what is new of its events. */
static weft_status read_tenant(weft__teach_store *t, const char *tenant, weft_error *err)
{
    store_reading r = {.t = t};
    int64_t after;
    weft_status st = tenant_of(t, tenant, &r.tenant, err);
    if (st) return st;
    pthread_mutex_lock(&t->lock);
    after = r.last = r.tenant->after;
    pthread_mutex_unlock(&t->lock);
    st = weft__learn_records(t->store, tenant, 0, 1, t->p.neighbours, take_answer, &r, err);
    keep_answers(&r);
    if (!st && !r.status) st = weft__learn_events(t->store, tenant, after, NULL, take_event, &r, err);
    pthread_mutex_lock(&t->lock);
    r.tenant->after = r.last;
    pthread_mutex_unlock(&t->lock);
    if (!st && r.status) st = weft_fail(err, r.status, "%s", r.err.message);
    return st;
}

/* Names, for readers that may not call the store. */
typedef struct store_names {
    char (*name)[WEFT__LEARN_TENANT];
    size_t n, room;
} store_names;

static int take_name(void *arg, const char *tenant)
{
    store_names *s = arg;
    if (!weft__grow(&s->name, &s->room, s->n + 1, sizeof *s->name)) return 1;
    snprintf(s->name[s->n++], sizeof *s->name, "%s", tenant);
    return 0;
}

static weft_status each_tenant(weft__teach_store *t, weft_status (*fn)(weft__teach_store *, const char *, weft_error *),
                               weft_error *err)
{
    store_names names = {0};
    weft_status st = weft__learn_tenants(t->store, take_name, &names, err);
    for (size_t i = 0; !st && i < names.n; i++)
        if (!t->has_only || !strcmp(t->only, names.name[i])) st = fn(t, names.name[i], err);
    weft__free(names.name);
    return st;
}

/* ---- what was before ---- */

typedef struct store_rows {
    weft__version_row *row;
    size_t n, room;
} store_rows;

static int take_row(void *arg, const weft__learn_version *v)
{
    store_rows *s = arg;
    weft__version_what what;
    if (!weft__version_what_of(v->what, &what)) return 0; /* others' business */
    if (!weft__grow(&s->row, &s->room, s->n + 1, sizeof *s->row)) return 1;
    weft__version_row *r = &s->row[s->n++];
    *r = (weft__version_row){.what = what,
                             .version = v->version,
                             .parent = strtoll(v->parent, NULL, 10),
                             .first_event = v->first_event,
                             .last_event = v->last_event};
    snprintf(r->tenant, sizeof r->tenant, "%s", v->tenant);
    snprintf(r->name, sizeof r->name, "%.*s", (int)sizeof r->name - 1, v->adapter);
    snprintf(r->content, sizeof r->content, "%.*s", (int)sizeof r->content - 1, v->content);
    return 0;
}

static weft_status rows_of(weft__learn_store *store, const char *tenant, const char *name, store_rows *out,
                           weft__versions *versions, weft_error *err)
{
    weft_status st = weft__learn_versions(store, tenant, name, take_row, out, err);
    for (size_t i = 0; !st && i < out->n; i++) st = weft__versions_read(versions, &out->row[i], err);
    return st;
}

weft_status weft__teach_store_read_rows(weft__learn_store *store, const char *tenant, const char *name,
                                        weft__versions *out, weft_error *err)
{
    store_rows rows = {0};
    weft_status st = rows_of(store, tenant, name, &rows, out, err);
    weft__free(rows.row);
    return st;
}

/* A version that was published: requests may name it, and what it learned is known. */
static weft_status restore(weft__teach_store *t, store_tenant *one, const weft__version_row *row, weft_error *err)
{
    char full[WEFT__VERSION_FULL_NAME], path[4096];
    store_reading r = {
        .t = t, .tenant = one, .version = row->version, .first_event = row->first_event, .last_event = row->last_event};
    weft__version_write_name(row->name, row->version, full);
    weft_status st = place_version(t, row->tenant, full, path, err);
    if (!st) st = publish(t, row->tenant, full, path, err);
    if (!st) st = weft__learn_events(t->store, row->tenant, row->first_event - 1, NULL, take_event, &r, err);
    return !st && r.status ? weft_fail(err, r.status, "%s", r.err.message) : st;
}

static weft_status restore_tenant(weft__teach_store *t, const char *tenant, weft_error *err)
{
    store_rows rows = {0};
    store_tenant *one = NULL;
    weft_status st = tenant_of(t, tenant, &one, err);
    if (!st) st = rows_of(t->store, tenant, one->name, &rows, weft__teach_loop_versions(t->loop), err);
    for (size_t i = 0; !st && i < rows.n; i++) {
        const weft__version_row *row = &rows.row[i];
        if (row->what == WEFT__VERSION_PUBLISHED) st = restore(t, one, row, err);
        if (row->last_event > one->after) one->after = row->last_event;
    }
    weft__free(rows.row);
    return st;
}

/* ---- the thread ---- */

static void woken(void *arg, const char *tenant, weft__learn_kind kind)
{
    weft__teach_store *t = arg;
    (void)tenant;
    (void)kind;
    pthread_mutex_lock(&t->lock);
    t->n_woken++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static void *store_run(void *arg)
{
    weft__teach_store *t = arg;
    pthread_mutex_lock(&t->lock);
    while (!t->ends) {
        const uint64_t n = t->n_woken;
        if (t->n_read == n) {
            pthread_cond_wait(&t->changed, &t->lock);
            continue;
        }
        pthread_mutex_unlock(&t->lock);
        weft_error err = {0};
        if (each_tenant(t, read_tenant, &err)) weft__log(WEFT__LOG_WARN, "learning reads no further: %s", err.message);
        pthread_mutex_lock(&t->lock);
        t->n_read = n;
        pthread_cond_broadcast(&t->changed);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

void weft__teach_store_params_default(weft__teach_store_params *p)
{
    *p = (weft__teach_store_params){.looks_only = 0};
    weft__teach_loop_params_default(&p->loop);
}

weft_status weft__teach_store_new(weft__learn_store *store, const weft__teach_store_params *params,
                                  weft__teach_store **out, weft_error *err)
{
    weft__teach_store *t = *out = weft__alloc_zero(1, sizeof *t);
    if (!t) return store_no_memory(err);
    weft__teach_loop_params p = params->loop;
    t->store = store;
    t->own = *params;
    t->p = params->loop;
    t->has_only = params->only != NULL;
    if (params->only) snprintf(t->only, sizeof t->only, "%s", params->only);
    t->n_woken = !params->looks_only; /* what is there already is read */
    pthread_mutex_init(&t->lock, NULL);
    weft__clock_cond_init(&t->changed);
    p.hooks = (weft__teach_hooks){.arg = t, .place = place_version, .publish = publish, .note = note, .busy = busy};
    weft_status st = weft__teach_loop_new(&p, &t->loop, err);
    if (!st) st = each_tenant(t, restore_tenant, err);
    if (!st && !params->looks_only) {
        weft__learn_listen(store, woken, t);
        if (weft__thread_start(&t->thread, store_run, t)) st = weft_fail(err, WEFT_IO, "no thread to learn with");
        else t->has_thread = 1;
    }
    if (st) weft__teach_store_free(out);
    return st;
}

void weft__teach_store_free(weft__teach_store **pt)
{
    weft__teach_store *t = pt ? *pt : NULL;
    if (!t) return;
    if (t->has_thread) weft__learn_listen(t->store, NULL, NULL);
    pthread_mutex_lock(&t->lock);
    t->ends = 1;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    if (t->has_thread) pthread_join(t->thread, NULL);
    weft__teach_loop_free(&t->loop);
    for (size_t i = 0; i < t->n_tenants; i++) {
        weft__free(t->tenant[i]->folder);
        weft__free(t->tenant[i]);
    }
    weft__free(t->tenant);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    weft__free(t);
    *pt = NULL;
}

/* ---- looking, and what people decide ---- */

int weft__teach_store_current(weft__teach_store *t, const char *tenant, char *out)
{
    char name[NAME];
    name_of(t, tenant, name);
    const int64_t now = *name ? weft__versions_current(weft__teach_loop_versions(t->loop), tenant, name, NULL) : 0;
    if (now) weft__version_write_name(name, now, out);
    return now > 0;
}

int weft__teach_store_may(weft__teach_store *t, const char *tenant, const char *full_name)
{
    char name[NAME], own[NAME];
    int64_t version;
    if (!weft__version_read_name(full_name, name, &version)) return -1;
    name_of(t, tenant, own);
    return !strcmp(name, own) && weft__versions_is_published(weft__teach_loop_versions(t->loop), tenant, name, version);
}

weft_status weft__teach_store_roll_back(weft__teach_store *t, const char *tenant, int64_t to, int64_t *now,
                                        weft_error *err)
{
    char name[NAME];
    name_of(t, tenant, name);
    return *name ? weft__versions_roll_back(weft__teach_loop_versions(t->loop), tenant, name, to, now, err)
                 : weft_fail(err, WEFT_NOT_FOUND, "nothing was learned of you yet");
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
    const uint64_t n = t->has_thread ? ++t->n_woken : t->n_read; /* the writer may be yet to say what it has written */
    pthread_cond_broadcast(&t->changed);
    while (t->n_read < n) pthread_cond_wait(&t->changed, &t->lock);
    pthread_mutex_unlock(&t->lock);
    weft__teach_loop_wait(t->loop);
}

void weft__teach_store_get_stats(weft__teach_store *t, weft__teach_loop_stats *out)
{
    weft__teach_loop_get_stats(t->loop, out);
}

int64_t weft__teach_store_n_others(weft__teach_store *t)
{
    pthread_mutex_lock(&t->lock);
    const int64_t n = t->n_others;
    pthread_mutex_unlock(&t->lock);
    return n;
}
