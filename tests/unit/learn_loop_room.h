// SPDX-License-Identifier: Apache-2.0
/* learn_loop_room.h: a loop that learns beside serving (learn/teach_loop.h), with a server that keeps its rows and says
 * whether it is busy: for the tests of it. */
#ifndef WEFT_TESTS_LEARN_LOOP_ROOM_H
#define WEFT_TESTS_LEARN_LOOP_ROOM_H

#include <sched.h>
#include <stdatomic.h>

#include "learn_lesson.h"

#include "learn/teach_loop.h"

typedef struct serving {
    char folder[64];
    weft__version_row row[32];
    int n, n_published, fails;
    weft__versions *goes_back_in;       /* while the next one is published */
    atomic_int busy, n_asked, patience; /* n_asked: whether it is; patience: how often it may, before it no longer is */
    atomic_int n_idle;                  /* asked by a thread that whoever wakes takes the core from */
    void (*is_idle)(void);              /* NULL, or called by such a thread */
} serving;

static inline weft_status place(void *arg, const char *tenant, const char *full_name, char *out, weft_error *err)
{
    const serving *s = arg;
    (void)err;
    snprintf(out, 4096, "%s/%s-%s.gguf", s->folder, tenant, full_name);
    return WEFT_OK;
}

static inline weft_status publish(void *arg, const char *tenant, const char *full_name, const char *file,
                                  weft_error *err)
{
    serving *s = arg;
    (void)full_name;
    if (s->fails) return weft_fail(err, WEFT_BUSY, "no room for it");
    assert_int_equal(access(file, F_OK), 0);
    s->n_published++;
    int64_t at;
    if (s->goes_back_in)
        assert_int_equal(weft__versions_roll_back(s->goes_back_in, tenant, "mine", 1, &at, NULL), WEFT_OK);
    s->goes_back_in = NULL;
    return WEFT_OK;
}

static inline weft_status note(void *arg, const weft__version_row *row, weft_error *err)
{
    serving *s = arg;
    (void)err;
    s->row[s->n++] = *row;
    return WEFT_OK;
}

static inline int busy(void *arg)
{
    serving *s = arg;
#ifdef SCHED_IDLE
    if (sched_getscheduler(0) == SCHED_IDLE) {
        atomic_fetch_add(&s->n_idle, 1);
        if (s->is_idle) s->is_idle();
    }
#endif
    const int n = atomic_fetch_add(&s->n_asked, 1), patience = atomic_load(&s->patience);
    return atomic_load(&s->busy) && !(patience && n > patience);
}

typedef struct room {
    serving s;
    weft__teach_loop *loop;
} room;

static inline void room_open(room *r, const lesson *l, float share)
{
    weft__teach_loop_params p;
    *r = (room){0};
    snprintf(r->s.folder, sizeof r->s.folder, "/tmp/weft-XXXXXX");
    assert_non_null(mkdtemp(r->s.folder));
    weft__teach_loop_params_default(&p);
    p.base = &l->m->src;
    p.tok = l->tok;
    p.options = l->o;
    p.options.per_step = 4;
    p.options.neighbour = 0;
    p.options.anchor = 0.2f;
    p.bounds = l->judge.bounds;
    p.probe = l->probe;
    p.n_probe = N_PROBE;
    p.share = share;
    p.hooks = (weft__teach_hooks){&r->s, place, publish, note, busy};
    assert_int_equal(weft__teach_loop_new(&p, &r->loop, NULL), WEFT_OK);
}

static inline void room_close(room *r)
{
    char command[128];
    weft__teach_loop_free(&r->loop);
    snprintf(command, sizeof command, "rm -r %s", r->s.folder);
    assert_int_equal(system(command), 0);
}

static inline void put(room *r, const char *tenant, uint64_t seed, int64_t number)
{
    weft__teach_texts t = {0};
    add_text(&t, seed, 3);
    const weft__teach_event e = {.correction = t.text[0]};
    assert_int_equal(weft__teach_loop_put(r->loop, tenant, "mine", number, &e, NULL), WEFT_OK);
    weft__teach_texts_free(&t);
}

static inline int64_t now(room *r, const char *tenant, char *content)
{
    return weft__versions_current(weft__teach_loop_versions(r->loop), tenant, "mine", content);
}

#endif
