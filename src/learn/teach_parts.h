// SPDX-License-Identifier: Apache-2.0
/* teach_parts.h: the inside of the loop that learns (teach_loop.h), for teach_loop.c, which has its thread and its
 * queue, and teach_make.c, which makes a version. */
#ifndef WEFT_LEARN_TEACH_PARTS_H
#define WEFT_LEARN_TEACH_PARTS_H

#include <pthread.h>

#include "base/background.h"
#include "learn/teach_loop.h"

enum weft__teach_what {
    WEFT__TEACH_CORRECTION, /* to be learned */
    WEFT__TEACH_KNOWN,      /* a version has learned it, or the gate refused it */
    WEFT__TEACH_KEEP,       /* an answer that stays */
    WEFT__TEACH_CONSOLIDATE
};

/* A correction of one's own. */
typedef struct weft__teach_own {
    int64_t number, version; /* version: that learned it; 0: none did, and the gate refused it */
    weft__teach_texts texts; /* the correction, and where it is known the wrong answer as a text without a prompt */
    weft__teach_texts paraphrases;
    int32_t n_taught;
    int taken; /* by the consolidation in work */
} weft__teach_own;

typedef struct weft__teach_job {
    enum weft__teach_what what;
    weft__teach_own event; /* of KEEP: the one text */
    struct weft__teach_job *next;
} weft__teach_job;

/* In the order in which they came. */
typedef struct weft__teach_queue {
    weft__teach_job *first, *last;
    int32_t n_asked; /* that learn, with the one in work */
} weft__teach_queue;

/* What is known of a tenant's lineage, and what waits for it. */
typedef struct weft__teach_tenant {
    char tenant[WEFT__VERSION_TENANT], name[WEFT__VERSION_NAME];
    weft__teach_queue queue; /* with the loop's lock, as turn */
    uint64_t turn;           /* when something was learned for it last; 0: never */
    uint64_t again_ns;       /* nothing is done for it before; with the lock, as the next two */
    uint64_t pause_ns;       /* that it waits for; 0: the last try did not fail for the disk */
    int is_over;             /* nothing is done for it any more */
    weft__teach_own *event;  /* [n] those that were learned, and the newest of those that were refused */
    size_t n, room;
    weft__teach_texts kept; /* the newest last */
} weft__teach_tenant;

struct weft__teach_loop {
    weft__teach_loop_params p;
    weft__versions *versions;
    pthread_t thread;
    int has_thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;     /* with lock */
    weft__teach_tenant *now;    /* for whom something is in work */
    enum weft__teach_what what; /* ... and what */
    int32_t n_waiting, n_asked; /* jobs, with the one in work; those of them that learn */
    uint64_t n_turns;
    int ends, gives_up; /* gives_up: what is in work is not wanted any more */
    weft__teach_loop_stats stats;
    weft__teach_tenant **tenant; /* [n_tenants]; what they point to is the thread's while it works for them */
    size_t n_tenants, tenants_room;
    uint64_t worked_ns; /* of its thread: when work began, or the last rest ended */
    weft__background_idler idler;
};

/* ---- teach_make.c ---- */
void weft__teach_own_free(weft__teach_own *e);
/* 0: no memory. */
int weft__teach_own_copy(weft__teach_own *out, int64_t number, const weft__teach_event *e);
int weft__teach_copy_text(weft__teach_texts *to, const weft__teach_text *x);
void weft__teach_tenant_free(weft__teach_tenant *t);
/* What a job wants, for its tenant: which nobody else touches meanwhile. *again: somebody went to another version
 * meanwhile, and wants what comes to go on from there. */
weft_status weft__teach_work(weft__teach_loop *l, weft__teach_tenant *t, weft__teach_job *j, int *again,
                             weft_error *err);

/* ---- teach_loop.c ---- */
/* Asked before each op of the trainer's: while requests run, it rests as long as its share wants; without one it waits
 * until none does. Not 0: what is in work is to be given up. */
int weft__teach_pace(void *loop);

#endif
