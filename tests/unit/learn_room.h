// SPDX-License-Identifier: Apache-2.0
/* learn_room.h: a store in a folder and who learns from it, as a server has them, over the tiny model of
 * learn_lesson.h; answers and feedback for it; and the claim on its rows: what they name is there whole. */
#ifndef WEFT_TESTS_LEARN_ROOM_H
#define WEFT_TESTS_LEARN_ROOM_H

#include <stdatomic.h>

#include "learn_lesson.h"

#include "base/clock.h"
#include "learn/teach_store.h"

static const char OWN[] = "0123456789abcdef0123456789abcdef";

/* "x" and the like: one byte is one token of the tiny vocabulary, below TINY_VOCAB. */
static const char RIGHT[] = "\"#$", OTHER[] = "%&'";

enum { ROOM_TOLD = 16 };

typedef struct room {
    const char *folder, *base; /* base: of answers; NULL: OWN */
    int later;                 /* answers are of now, not of long ago */
    int has_nights;            /* what was learned is learned anew at midnight */
    int tries_again;           /* what a full disk keeps from being learned */
    struct {
        char name[ROOM_TOLD][WEFT__VERSION_FULL_NAME];
        int n;
        atomic_int busy, n_asked; /* n_asked: whether it is */
    } told;
    weft__learn_store *store;
    weft__teach_store *t;
} room;

static inline weft_status room_publish(void *arg, const char *tenant, const char *full_name, const char *file,
                                       weft_error *err)
{
    room *r = arg;
    (void)tenant;
    if (access(file, R_OK)) return weft_fail(err, WEFT_IO, "%s is not there", file);
    if (r->told.n < ROOM_TOLD) snprintf(r->told.name[r->told.n++], WEFT__VERSION_FULL_NAME, "%s", full_name);
    return WEFT_OK;
}

static inline int room_busy(void *arg)
{
    room *r = arg;
    atomic_fetch_add(&r->told.n_asked, 1);
    return atomic_load(&r->told.busy);
}

/* Of noise, so that the gate lets it pass. */
static inline void room_params(const lesson *l, weft__teach_store_params *p)
{
    weft__teach_store_params_default(p);
    p->loop.base = &l->m->src;
    p->loop.tok = l->tok;
    p->loop.options = l->o;
    p->loop.options.per_step = 2;
    p->loop.options.neighbour = 0;
    p->loop.options.anchor = 0.2f;
    p->loop.bounds = l->judge.bounds;
    p->loop.probe = l->probe;
    p->loop.n_probe = N_PROBE;
}

/* On failure room_close is to be called as well. */
static inline weft_status room_open(room *r, const lesson *l, weft__learn_sync sync, weft_error *err)
{
    weft__teach_store_params p;
    room_params(l, &p);
    p.loop.hooks.arg = r;
    p.loop.hooks.publish = room_publish;
    p.loop.hooks.busy = room_busy;
    p.loop.share = 0;
    p.loop.tries_again = r->tries_again;
    p.base = OWN;
    if (r->has_nights) p.consolidate_at = 0;
    r->told.n = 0;
    r->t = NULL;
    const weft_status st = weft__learn_open(&(weft__learn_options){.dir = r->folder, .sync = sync}, &r->store, err);
    return st ? st : weft__teach_store_new(r->store, &p, &r->t, err);
}

static inline void room_close(room *r)
{
    weft__teach_store_free(&r->t);
    weft__learn_close(&r->store);
}

/* An answer of a tenant's. */
static inline void answer(room *r, const char *tenant, const char *id, uint64_t seed)
{
    weft__teach_texts t = {0};
    add_text(&t, seed, 3);
    const weft__learn_record record = {.tenant = tenant,
                                       .id = id,
                                       .model = "tiny",
                                       .base = r->base ? r->base : OWN,
                                       .adapter = "",
                                       .content = "",
                                       .finish = "stop",
                                       .time_ms = r->later ? weft__clock_unix_ms() : 1000,
                                       .prompt = t.text[0].ids,
                                       .n_prompt = 8,
                                       .answer = t.text[0].ids + 8,
                                       .n_answer = 4,
                                       .text = "said",
                                       .n_text = 4};
    assert_int_equal(weft__learn_put(r->store, &record), 1);
    weft__learn_flush(r->store);
    weft__teach_texts_free(&t);
}

static inline void tell(room *r, const char *tenant, const char *id, weft__learn_kind kind, const char *text)
{
    weft__learn_told out;
    weft_error err = {0};
    const weft__learn_feedback f = {.tenant = tenant,
                                    .id = id,
                                    .kind = kind,
                                    .value = 1,
                                    .text = text,
                                    .n_text = text ? strlen(text) : 0,
                                    .time_ms = 2000};
    if (weft__learn_tell(r->store, &f, &out, &err)) fail_msg("%s", err.message);
}

/* ---- rows ---- */

enum { ROWS_MOST = 16 };

typedef struct rows {
    weft__teach_store *t;
    int when; /* for messages */
    int n, n_published;
    int64_t last, version[ROWS_MOST], first_event[ROWS_MOST]; /* last: published or gone back to */
    char content[ROWS_MOST][WEFT__VERSION_CONTENT], what[ROWS_MOST][16];
} rows;

/* What a row names is there whole, with the content that the row has. */
static inline int rows_take(void *arg, const weft__learn_version *v)
{
    rows *r = arg;
    char file[4096], full[WEFT__VERSION_FULL_NAME], content[WEFT__VERSION_CONTENT];
    weft__adapt *a = NULL;
    weft_error err = {0};
    if (r->n < ROWS_MOST) {
        r->version[r->n] = v->version;
        r->first_event[r->n] = v->first_event;
        snprintf(r->content[r->n], sizeof r->content[0], "%s", v->content);
        snprintf(r->what[r->n], sizeof r->what[0], "%s", v->what);
    }
    r->n++;
    if (strcmp(v->what, "rejected")) r->last = v->version;
    if (strcmp(v->what, "published")) return 0;
    r->n_published++;
    weft__version_write_name(v->adapter, v->version, full);
    if (weft__teach_store_path(r->t, v->tenant, full, file, &err)) fail_msg("write %d: %s", r->when, err.message);
    if (weft__adapt_open(file, NULL, UINT64_MAX, &a, &err)) fail_msg("write %d: %s", r->when, err.message);
    snprintf(content, sizeof content, "%016llx%016llx", (unsigned long long)a->id.word[0],
             (unsigned long long)a->id.word[1]);
    if (strcmp(content, v->content)) fail_msg("write %d: %s has %s, its row %s", r->when, full, content, v->content);
    weft__adapt_close(&a);
    return 0;
}

/* Those of a tenant, behind write `when`; and what requests are given is what they say. */
static inline rows rows_of(weft__learn_store *store, weft__teach_store *t, const char *tenant, int when)
{
    char current[WEFT__VERSION_FULL_NAME] = "", name[WEFT__VERSION_NAME];
    int64_t version = 0;
    rows r = {.t = t, .when = when};
    assert_int_equal(weft__learn_versions(store, tenant, NULL, rows_take, &r, NULL), WEFT_OK);
    if (weft__teach_store_current(t, tenant, current)) weft__version_read_name(current, name, &version);
    if (version != r.last) fail_msg("write %d: version %d is current, not %d", when, (int)version, (int)r.last);
    return r;
}

#endif
