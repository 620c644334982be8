// SPDX-License-Identifier: Apache-2.0
/* teach_loop.h: learning beside serving: corrections that come in become versions of their tenant's adapter, one after
 * the other, and what the gate lets pass is published.
 *
 * One thread learns, of low precedence (base/background.h): a tenant's corrections in the order in which they came, and
 * of tenants the one next for whom it learned longest ago; while requests run it takes a share of its time, or none.
 * What it learns from is a tenant's own alone: its corrections, those that its current version learned before
 * (replayed), and answers of its own that nobody objected to (neighbours). Invariant: the versions of a tenant are a
 * function of the base, the options and what was put in for it, in that order, and of what was rolled back while
 * nothing waited: the same again gives the same contents, whatever others did meanwhile.
 * Requests go on with the version that they began with: publishing adds a name, and moves what the lineage's name
 * stands for (version.h). Thread safety: all functions from any thread; hooks are called by the loop's thread, but
 * `busy`, by any. */
#ifndef WEFT_LEARN_TEACH_LOOP_H
#define WEFT_LEARN_TEACH_LOOP_H

#include "learn/teach.h"
#include "learn/version.h"

typedef struct weft__teach_loop weft__teach_loop;

typedef struct weft__teach_hooks {
    void *arg;
    /* Where a version's file goes: its path into out [4096]. */
    weft_status (*place)(void *arg, const char *tenant, const char *full_name, char *out, weft_error *err);
    /* The file is there: requests may name it from now on. */
    weft_status (*publish)(void *arg, const char *tenant, const char *full_name, const char *path, weft_error *err);
    weft__version_note *note; /* NULL: rows are kept in memory alone */
    int (*busy)(void *arg);   /* do requests run? NULL: never */
} weft__teach_hooks;

typedef struct weft__teach_loop_params {
    const weft__source *base; /* borrowed, as tok, probe and publics are */
    const weft__tok *tok;
    weft__teach_options options; /* stop and stop_arg are the loop's own */
    weft__gate_bounds bounds;
    const int32_t *probe;
    int32_t n_probe, n_publics;
    const weft__teach_text *publics; /* weft__teach_task */
    float share;                     /* of its time while requests run, 0..1; 0: it waits until none does */
    int32_t neighbours;              /* answers that are kept as such, of a tenant, at most (32) */
    /* What a disk that takes nothing (it is full, or may not be written to) keeps from being learned is tried again,
     * sooner first and then at most every hour, before what came after it; 0: nothing more is learned for its tenant.
     * So it is there for the next process. */
    int tries_again;
    /* Of consolidation: a larger model that teaches (contest.h), and the one that learns, as paths; NULL: none.
     * Borrowed for good */
    const char *teacher, *pupil;
    weft__teach_hooks hooks;
} weft__teach_loop_params;
void weft__teach_loop_params_default(weft__teach_loop_params *p);

/* WEFT_ARGUMENT (share), WEFT_NO_MEMORY, WEFT_IO (no thread). */
weft_status weft__teach_loop_new(const weft__teach_loop_params *params, weft__teach_loop **out, weft_error *err);
/* Gives up what is being learned. */
void weft__teach_loop_free(weft__teach_loop **loop);

/* A correction of the tenant's, `event` its number: copied, and learned when its turn comes. WEFT_ARGUMENT (an answer
 * that says nothing), WEFT_BUSY: as many wait as may, of the tenant or of all (weft__teach_loop_has_room; one of each
 * may always); WEFT_NO_MEMORY. */
enum { WEFT__TEACH_WAITING = 1024, WEFT__TEACH_WAITING_OF_ONE = 64 };
int weft__teach_loop_has_room(weft__teach_loop *loop, const char *tenant, const char *name);
weft_status weft__teach_loop_put(weft__teach_loop *loop, const char *tenant, const char *name, int64_t event,
                                 const weft__teach_event *e, weft_error *err);
/* An answer of the tenant's that is to stay as it is, in its turn too: the newest count. */
weft_status weft__teach_loop_keep(weft__teach_loop *loop, const char *tenant, const char *name,
                                  const weft__teach_text *answer, weft_error *err);
/* A correction that a published version learned before the loop was made: it is replayed, and not learned; version 0:
 * that the gate refused, which a consolidation tries again. Before the first that is put for the tenant. Fails
 * likewise. */
weft_status weft__teach_loop_know(weft__teach_loop *loop, const char *tenant, const char *name, int64_t version,
                                  int64_t event, const weft__teach_event *e, weft_error *err);
/* In its turn: all corrections that the current version knows are learned anew from the base, also with those that the
 * gate refused by themselves, and it is compressed; the best of them by the gate stays (contest.h), and the row says
 * why, and which came in. */
weft_status weft__teach_loop_consolidate(weft__teach_loop *loop, const char *tenant, const char *name, weft_error *err);

/* Takes all that is known of a tenant, its versions included: what waits is dropped, and what is being learned for it
 * given up; returns when that has ended. */
void weft__teach_loop_forget(weft__teach_loop *loop, const char *tenant);

/* Its versions, for looking, and for rows of before (weft__versions_read) and rolling back. A correction that comes
 * after goes on from there. */
weft__versions *weft__teach_loop_versions(weft__teach_loop *loop);
/* Waits until nothing waits and nothing is learned. */
void weft__teach_loop_wait(weft__teach_loop *loop);

typedef struct weft__teach_loop_stats {
    int64_t n_waiting;                     /* to be learned, with the one in work */
    int64_t n_queued;                      /* these, and answers that are to be kept */
    int64_t by_reason[WEFT__GATE_REASONS]; /* of the gate, PASSED among them */
    int64_t n_failed;                      /* that could not be learned or written */
    int64_t n_rolled_back;                 /* by weft__teach_store_roll_back */
    double seconds;                        /* of learning, rests included */
    char fault[256];                       /* the last failure; "": none */
} weft__teach_loop_stats;
void weft__teach_loop_get_stats(weft__teach_loop *loop, weft__teach_loop_stats *out);
/* The same of a tenant. */
int32_t weft__teach_loop_waiting(weft__teach_loop *loop, const char *tenant);

#endif
