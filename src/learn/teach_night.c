// SPDX-License-Identifier: Apache-2.0
/* teach_night.c: once a day, whoever has learned something since their last consolidation has all of it learned anew
 * (teach_store.h). Who that is follows from the rows of the store, so that a process that is started again does what
 * the one before it had not done, and nothing twice. The reader's thread. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "learn/night.h"
#include "learn/teach_store_parts.h"

static int64_t now_of(const weft__teach_store *t)
{
    return t->now_ms ? t->now_ms() : weft__clock_unix_ms();
}

int weft__teach_night_is_due(const weft__teach_store *t)
{
    return t->own.consolidate_at >= 0 && weft__clock_ns() >= t->night_again_ns &&
           weft__night_last(t->own.consolidate_at, now_of(t)) > t->night.done_ms;
}

uint64_t weft__teach_night_look(const weft__teach_store *t)
{
    return t->own.consolidate_at < 0 ? 0 : weft__clock_ns() + (uint64_t)t->look_ms * 1000000;
}

typedef struct night_rows {
    const char *base;
    int64_t until_ms;
    int has_new; /* since the last consolidation, and until then */
} night_rows;

/* What was refused counts: beside others it may come in. */
static int take_night_row(void *arg, const weft__learn_version *v)
{
    night_rows *r = arg;
    weft__version_what what;
    weft__json *report = NULL;
    if (!weft__version_what_of(v->what, &what) || what == WEFT__VERSION_ROLLED_BACK) return 0;
    if (*v->report && weft__json_parse(v->report, strlen(v->report), &report, NULL)) report = NULL;
    if (weft__teach_report_is_others(report, r->base)) what = WEFT__VERSION_ROLLED_BACK; /* no business of ours */
    else if (weft__json_get(report, "by")) r->has_new = 0;
    else r->has_new |= v->time_ms <= r->until_ms;
    weft__json_free(&report);
    return 0;
}

/* 1: it is asked for. */
static int consolidate_one(weft__teach_store *t, const char *tenant, int64_t until_ms, weft_error *err)
{
    weft__teach_of *one;
    night_rows rows = {.base = t->own.base, .until_ms = until_ms};
    weft_status st = weft__teach_store_of(t, tenant, &one, err);
    if (st) return 0;
    st = weft__learn_versions(t->store, tenant, one->name, take_night_row, &rows, err);
    if (!st && rows.has_new) st = weft__teach_loop_consolidate(t->loop, tenant, one->name, err);
    return !st && rows.has_new;
}

static int take_tenant(void *arg, const char *tenant)
{
    return !weft__teach_names_put(arg, tenant);
}

void weft__teach_night_run(weft__teach_store *t)
{
    const int64_t now = now_of(t), until = weft__night_last(t->own.consolidate_at, now);
    weft__teach_names names = {0};
    weft_error err = {0};
    int64_t n = 0;
    int waits = weft__learn_tenants(t->store, take_tenant, &names, &err) != WEFT_OK;
    if (t->night_of_ms != until) t->night_had.n = 0;
    t->night_of_ms = until;
    for (size_t i = 0; i < names.n; i++) {
        weft_error why = {0};
        if (weft__teach_names_has(&t->night_had, names.name[i])) continue;
        if (!weft__teach_feed_enter(t, names.name[i])) continue;
        n += consolidate_one(t, names.name[i], until, &why);
        weft__teach_feed_leave(t);
        if (why.status == WEFT_NOT_FOUND) continue; /* it was forgotten */
        waits |= why.status == WEFT_BUSY;
        if (why.status) err = why;
        if (why.status != WEFT_BUSY && !weft__teach_names_put(&t->night_had, names.name[i])) waits = 1;
    }
    weft__free(names.name);
    if (err.status) weft__log(WEFT__LOG_WARN, "not all is learned anew: %s", err.message);
    pthread_mutex_lock(&t->lock);
    t->night.n_asked += n;
    if (!waits) t->night.done_ms = until;
    else t->night_again_ns = weft__teach_night_look(t); /* for those of whom too much waits now */
    pthread_mutex_unlock(&t->lock);
}

void weft__teach_store_night(weft__teach_store *t, weft__teach_night *out)
{
    pthread_mutex_lock(&t->lock);
    *out = t->night;
    out->at = t->own.consolidate_at;
    out->next_ms = out->at < 0 ? 0 : weft__night_next(out->at, now_of(t));
    pthread_mutex_unlock(&t->lock);
}
