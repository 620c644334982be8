// SPDX-License-Identifier: Apache-2.0
/* teach_offline.h: learning without a server: what one kept (store.h) is learned over a model of the caller's: all that
 * waits, or all that was accepted anew from the base; and going back to a version. Nobody else has the folder
 * meanwhile. One thread. */
#ifndef WEFT_LEARN_TEACH_OFFLINE_H
#define WEFT_LEARN_TEACH_OFFLINE_H

#include "learn/version.h"
#include "weft/model.h"

enum weft__teach_offline_what {
    WEFT__TEACH_OFFLINE_WAITING,    /* corrections that came since the last version are learned */
    WEFT__TEACH_OFFLINE_CONSOLIDATE /* and then the best of what knows as much as the current one (contest.h) */
};

typedef struct weft__teach_offline {
    const char *model, *dir; /* a path or a known name; the server's --learn */
    const char *base;        /* the model's weft_model_fingerprint; NULL: answers of any model are learned */
    int64_t *n_others;       /* weft__teach_store_n_others, also where it fails; or NULL */
    const char *tenant;      /* NULL: all */
    int what;                /* weft__teach_offline_what */
    const char *teacher;     /* of CONSOLIDATE: a larger model of the same vocabulary, as model; NULL: none */
    int32_t n_threads;       /* 0: one per core */
    int instant;             /* 1: corrections that wait are learned in one step (instant.h), an experiment */
    /* Called with each row that is new, on a thread of the library's; row->reason has the gate's. */
    void (*told)(void *arg, const weft__version_row *row);
    void *arg;
} weft__teach_offline;

/* WEFT_NOT_FOUND (nothing is kept there), WEFT_BUSY (a server has the folder), WEFT_ARGUMENT (the teacher has other
 * tokens), WEFT_UNSUPPORTED (a model that cannot be
 * trained; a build without SQLite), and as opening the model does; what could not be learned is told by the first
 * failure. */
weft_status weft__teach_offline_run(const weft__teach_offline *o, weft_error *err);

/* Could what a server keeps be learned over this model? WEFT_UNSUPPORTED: why not. */
weft_status weft__teach_offline_can(const weft_model *model, weft_error *err);

/* A tenant's name stands for version `to` again (-1: the version before; 0: the base alone). *now: which that is.
 * WEFT_NOT_FOUND (nothing was learned of it, or no such version), WEFT_STATE (there is none before it), WEFT_BUSY as
 * above. */
weft_status weft__teach_offline_roll_back(const char *dir, const char *tenant, int64_t to, int64_t *now,
                                          weft_error *err);

#endif
