// SPDX-License-Identifier: Apache-2.0
/* teach_offline.c: see teach_offline.h. */
#include "learn/teach_offline.h"

#include <string.h>
#include <sys/stat.h>

#include "learn/distil.h"
#include "learn/instant.h"
#include "learn/teach_store.h"
#include "train/base.h"

typedef struct offline {
    const weft__teach_offline *o;
    weft__train_base base;
    weft__learn_store *store;
    weft__teach_store *t;
    int n_failed;
    weft_error why; /* of the first tenant that failed */
} offline;

/* There is nobody to serve. */
static weft_status publish(void *arg, const char *tenant, const char *full_name, const char *path, weft_error *err)
{
    (void)arg, (void)tenant, (void)full_name, (void)path, (void)err;
    return WEFT_OK;
}

static void told(void *arg, const weft__version_row *row)
{
    const offline *f = arg;
    if (f->o->told && (!f->o->tenant || !strcmp(f->o->tenant, row->tenant))) f->o->told(f->o->arg, row);
}

/* Only where there is one: it is not made here. */
static weft_status open_folder(const char *dir, weft__learn_store **out, weft_error *err)
{
    const weft__learn_options options = {.dir = dir, .exists = 1};
    struct stat s;
    if (stat(dir, &s) || !S_ISDIR(s.st_mode))
        return weft_fail(err, WEFT_NOT_FOUND, "%s: there is no such folder; give what 'weft serve --learn' was given",
                         dir);
    return weft__learn_open(&options, out, err);
}

/* Before anything is learned: does it know the same tokens? */
static weft_status try_teacher(const weft__teach_offline *o, weft_error *err)
{
    weft__distil *d = NULL;
    const weft_status st = weft__distil_open(o->teacher, o->model, 1, 1, o->n_threads, &d, err);
    weft__distil_close(&d);
    return st;
}

static weft_status open_all(offline *f, weft_error *err)
{
    static const weft__train_base_overrides none = {NULL, NULL};
    const weft__teach_offline *o = f->o;
    weft__teach_store_params p;
    weft_status st = open_folder(o->dir, &f->store, err);
    if (!st) st = weft__train_base_open(&f->base, o->model, 1, &none, err);
    if (!st && o->teacher) st = try_teacher(o, err);
    if (st) return st;
    weft__teach_store_params_default(&p);
    p.loop.teacher = o->teacher;
    p.loop.pupil = o->model;
    p.loop.base = &f->base.source;
    p.loop.tok = f->base.tok;
    p.loop.options.n_threads = o->n_threads;
    if (o->instant) {
        p.loop.options.instant = WEFT__TEACH_INSTANT_RANK;
        p.loop.options.hold_at = WEFT__TEACH_INSTANT_HOLD;
    }
    p.loop.share = 1;
    p.loop.hooks.arg = f;
    p.loop.hooks.publish = publish;
    p.only = o->tenant;
    p.base = o->base;
    p.told = told;
    p.told_arg = f;
    return weft__teach_store_new(f->store, &p, &f->t, err);
}

static int consolidate_one(void *arg, const char *tenant)
{
    offline *f = arg;
    weft_error err = {0};
    if (f->o->tenant && strcmp(f->o->tenant, tenant)) return 0;
    const weft_status st = weft__teach_store_consolidate(f->t, tenant, &err);
    if (st && st != WEFT_NOT_FOUND && !f->n_failed++) f->why = err;
    return 0;
}

weft_status weft__teach_offline_run(const weft__teach_offline *o, weft_error *err)
{
    offline f = {.o = o};
    weft__teach_loop_stats stats = {0};
    weft_status st = open_all(&f, err);
    if (!st) weft__teach_store_wait(f.t);
    if (!st && o->what == WEFT__TEACH_OFFLINE_CONSOLIDATE) {
        st = weft__learn_tenants(f.store, consolidate_one, &f, err);
        weft__teach_store_wait(f.t);
    }
    if (!st && f.t) weft__teach_store_get_stats(f.t, &stats);
    if (o->n_others) *o->n_others = f.t ? weft__teach_store_n_others(f.t) : 0;
    if (!st && stats.n_failed) st = weft_fail(err, WEFT_IO, "%s", stats.fault);
    if (!st && f.n_failed) st = weft_fail(err, (weft_status)f.why.status, "%s", f.why.message);
    weft__teach_store_free(&f.t);
    weft__learn_close(&f.store);
    weft__train_base_close(&f.base);
    return st;
}

weft_status weft__teach_offline_can(const weft_model *model, weft_error *err)
{
    weft__teach_store_params p;
    weft__teach_store_params_default(&p);
    return weft__teach_store_of_model(model, &p, err);
}

/* ---- going back ---- */

static weft_status note_row(void *arg, const weft__version_row *row, weft_error *err)
{
    return weft__teach_store_put_row(arg, row, NULL, err);
}

/* The lineage is the one that the last row is of. */
static void take_name(void *arg, const weft__version_row *row)
{
    memcpy(arg, row->name, sizeof row->name);
}

weft_status weft__teach_offline_roll_back(const char *dir, const char *tenant, int64_t to, int64_t *now,
                                          weft_error *err)
{
    weft__learn_store *store = NULL;
    weft__versions *versions = NULL;
    char name[WEFT__VERSION_NAME] = "";
    weft_status st = open_folder(dir, &store, err);
    if (!st) st = weft__versions_create(note_row, store, &versions, err);
    if (!st) st = weft__teach_store_read_rows(store, tenant, NULL, versions, err);
    if (!st) weft__versions_each(versions, tenant, take_name, name);
    if (!st && !*name) st = weft_fail(err, WEFT_NOT_FOUND, "nothing was learned of '%.63s' yet", tenant);
    if (!st) st = weft__versions_roll_back(versions, tenant, name, to, now, err);
    weft__versions_destroy(&versions);
    weft__learn_close(&store);
    return st;
}
