// SPDX-License-Identifier: Apache-2.0
/* teach_store.h: the loop that learns (teach_loop.h), fed from what a server keeps (store.h).
 *
 * Each tenant has one lineage, learned-N, N being the number of its folder, so that the name tells nobody whose it is.
 * Corrections and edits are learned in the order of their numbers, and preferred answers over the other one; thumbs,
 * rewards and verifiers alone teach nothing. Neighbours are the tenant's newest answers of which nothing was said. What
 * was learned before the store was opened is known again by its rows, and what came since is learned. Versions' rows
 * and files are the store's, and go with their tenant. Thread safety: all
 * functions from any thread but the store's writer. */
#ifndef WEFT_LEARN_TEACH_STORE_H
#define WEFT_LEARN_TEACH_STORE_H

#include "base/json.h"
#include "learn/store.h"
#include "learn/teach_loop.h"
#include "weft/model.h"

typedef struct weft__teach_store weft__teach_store;

typedef struct weft__teach_store_params {
    weft__teach_loop_params loop;
    const char *only; /* this tenant alone; NULL: all. Borrowed for the call, as told_arg for good */
    /* weft_model_fingerprint of the model: answers of others teach nothing, and versions that were learned over others
     * are as if the gate had refused them; NULL: all do, and none is. Borrowed for good */
    const char *base;
    int looks_only; /* 1: what is there is known, and nothing new is learned */
    /* Minute of the day, local time (night.h), at which whoever has learned something since their last consolidation is
     * consolidated, once; one that passed while nobody had the store is made good. Below 0: never */
    int consolidate_at;
    int tells_new_alone; /* 1: versions of before are not published again: who wants one asks for its path */
    /* With each row that is added, when the store has it; by the thread that adds it. Or NULL */
    void (*told)(void *arg, const weft__version_row *row);
    void *told_arg;
} weft__teach_store_params;
void weft__teach_store_params_default(weft__teach_store_params *p);

/* What params->loop wants of a model that is served: its weights, as they are loaded, and its tokenizer; the model
 * outlives the store. WEFT_UNSUPPORTED (a compiled plan, experts, no tokenizer), WEFT_NO_MEMORY. */
weft_status weft__teach_store_of_model(const weft_model *model, weft__teach_store_params *params, weft_error *err);

/* What learning takes at most beside the model, of corrections and answers of WEFT__TEACH_ROWS tokens: a trainer of the
 * larger recipe, and where its parameters began and came to. WEFT_NO_MEMORY where there is not so much. */
weft_status weft__teach_store_bytes(const weft__teach_store_params *params, uint64_t *out, weft_error *err);

/* params->loop: hooks.publish, hooks.busy and hooks.arg are the caller's, the others are set here; without a probe the
 * public texts are the library's own (public_text.h). Versions that were
 * published before are published again, those first that are older; who is told (hooks.publish) must not call back.
 * The store outlives it, and has no other listener. Fails as weft__teach_loop_new and the store's readers do. */
weft_status weft__teach_store_new(weft__learn_store *store, const weft__teach_store_params *params,
                                  weft__teach_store **out, weft_error *err);
void weft__teach_store_free(weft__teach_store **t);

/* The current version of a tenant as requests may name it, "learned-3@7", into out [WEFT__VERSION_FULL_NAME]; 0: it has
 * none. */
int weft__teach_store_current(weft__teach_store *t, const char *tenant, char *out);
/* Is it a version of this tenant that was published? Of names that are no learned version: -1. */
int weft__teach_store_may(weft__teach_store *t, const char *tenant, const char *full_name);
/* As weft__versions_roll_back, of the tenant's lineage. WEFT_BUSY: so often within an hour, where the store is not only
 * looked at. */
enum { WEFT__TEACH_ROLL_BACKS = 60 };
weft_status weft__teach_store_roll_back(weft__teach_store *t, const char *tenant, int64_t to, int64_t *now,
                                        weft_error *err);
/* The name of a tenant's lineage, "learned-3", into out [WEFT__VERSION_NAME]; 0: nothing was read of it yet. */
int weft__teach_store_name(weft__teach_store *t, const char *tenant, char *out);
/* Where a version's file is, into out [4096]. WEFT_NOT_FOUND: what weft__teach_store_may does not allow. */
weft_status weft__teach_store_path(weft__teach_store *t, const char *tenant, const char *full_name, char *out,
                                   weft_error *err);
/* How many versions of a tenant's were published; out [most] has the numbers of the newest, these first. */
size_t weft__teach_store_published(weft__teach_store *t, const char *tenant, int64_t *out, size_t most);
/* Between these two no row is added and no tenant is forgotten, so that what is read of the store, rows, and what
 * requests are given (weft__teach_store_current) are of one moment: a version that a row publishes is given by then.
 * The thread that learns, and who goes back or forgets, waits meanwhile; one caller at a time, that does none of these.
 */
void weft__teach_store_hold(weft__teach_store *t);
void weft__teach_store_go_on(weft__teach_store *t);
/* Its content id, into out [WEFT__VERSION_CONTENT]; "": likewise. */
void weft__teach_store_content(weft__teach_store *t, const char *tenant, const char *full_name, char *out);
/* How many corrections of a tenant's wait to be learned, with the one in work. */
int32_t weft__teach_store_waiting(weft__teach_store *t, const char *tenant);
/* weft__learn_forget, and with it all that the loop knows of the tenant: what is being learned for it is given up
 * first. A later correction begins anew. Where the store could not forget it, its versions are restored. */
weft_status weft__teach_store_forget(weft__teach_store *t, const char *tenant, weft__learn_totals *had,
                                     weft_error *err);
weft_status weft__teach_store_consolidate(weft__teach_store *t, const char *tenant, weft_error *err);
/* The consolidations of params->consolidate_at. */
typedef struct weft__teach_night {
    int at;          /* minute of the day; below 0: never */
    int64_t next_ms; /* Unix time; 0: never */
    int64_t done_ms; /* the last one for which all were looked at, by this process; 0: none was */
    int64_t n_asked; /* callers that were due, since the start */
} weft__teach_night;
void weft__teach_store_night(weft__teach_store *t, weft__teach_night *out);
/* Waits until all that was told to the store before is learned, or refused. */
void weft__teach_store_wait(weft__teach_store *t);
void weft__teach_store_get_stats(weft__teach_store *t, weft__teach_loop_stats *out);
/* How many corrections, edits and preferences were left, as their answers are another model's (params->base), or have
 * tokens that the vocabulary has not. */
int64_t weft__teach_store_n_others(weft__teach_store *t);

/* Of a row's report (NULL: there is none): was the row made over other weights than those of this fingerprint? Who does
 * not say over which was not. Any thread. */
int weft__teach_report_is_others(const weft__json *report, const char *base);

/* For who has no loop: a row into the store (base: the model's that it is about, or NULL); and the rows of a tenant's
 * lineage (NULL: of all its lineages) out of it, into versions. Fail as the store does, and as weft__versions_read. */
weft_status weft__teach_store_put_row(weft__learn_store *store, const weft__version_row *row, const char *base,
                                      weft_error *err);
weft_status weft__teach_store_read_rows(weft__learn_store *store, const char *tenant, const char *name,
                                        weft__versions *out, weft_error *err);

#endif
