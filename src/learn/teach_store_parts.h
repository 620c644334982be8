// SPDX-License-Identifier: Apache-2.0
/* teach_store_parts.h: the inside of teach_store.h, for teach_store.c, which has its tenants and what people decide,
 * and teach_feed.c, which reads the store. */
#ifndef WEFT_LEARN_TEACH_STORE_PARTS_H
#define WEFT_LEARN_TEACH_STORE_PARTS_H

#include <pthread.h>

#include "learn/teach_store.h"

typedef struct weft__teach_published {
    int64_t version;
    char content[WEFT__VERSION_CONTENT];
} weft__teach_published;

/* What is known of a tenant; with the store's lock, but for what never changes and what the reader alone has. */
typedef struct weft__teach_of {
    char tenant[WEFT__LEARN_TENANT], name[WEFT__VERSION_NAME]; /* never changes, as folder */
    char *folder;
    int64_t now;                      /* the current version; 0: the base */
    weft__teach_published *published; /* [n_published], their numbers rising */
    size_t n_published, room;
    int64_t after; /* the last event that was put: the reader's, as the next two */
    int is_restored, was_read;
} weft__teach_of;

/* Names of tenants. */
typedef struct weft__teach_names {
    char (*name)[WEFT__LEARN_TENANT]; /* [n] */
    size_t n, room;
} weft__teach_names;

struct weft__teach_store {
    weft__learn_store *store;
    weft__teach_store_params own;
    weft__teach_loop_params p; /* of it */
    weft__teach_texts probe, publics;
    int has_only;
    char only[WEFT__LEARN_TENANT]; /* "" is the tenant without a key */
    weft__teach_loop *loop;
    pthread_t thread;
    int has_thread;
    pthread_mutex_t order;  /* of rows: from the moment that the store has one until requests are given what it says */
    pthread_mutex_t lock;   /* taken within order */
    pthread_cond_t changed; /* with lock */
    int ends, reads_all;
    int64_t n_others, n_rolled_back;
    uint64_t n_woken, n_read; /* times that the reader was woken, and how many of them what it has read knows of */
    weft__teach_names woken, going; /* of whom there is something new; who is being forgotten */
    int is_reading;
    char reading[WEFT__LEARN_TENANT];
    weft__teach_night night; /* done_ms and n_asked */
    weft__teach_names
        night_had; /* who was looked at for the time of night_of_ms; the reader's alone, as the next two */
    int64_t night_of_ms;
    uint64_t night_again_ns; /* whoever was not is looked at again then */
    int64_t (*now_ms)(void); /* NULL: by the system's clock, as it is but for tests; with the lock, as the next one */
    int look_ms;             /* at the clock, so often */
    weft__teach_of **tenant; /* [n_tenants] */
    size_t n_tenants, room;
};

/* ---- teach_store.c ---- */
/* That of a tenant, made where there is none: asks the store for its folder, so not with the lock, and not within one
 * of its readers. WEFT_NOT_FOUND: nothing is kept of it. */
weft_status weft__teach_store_of(weft__teach_store *t, const char *tenant, weft__teach_of **out, weft_error *err);
/* What a row makes of its tenant, from now on. */
void weft__teach_store_take_row(weft__teach_store *t, const weft__version_row *row);
weft_status weft__teach_store_place(void *teach_store, const char *tenant, const char *full_name, char *out,
                                    weft_error *err);
int weft__teach_names_has(const weft__teach_names *s, const char *name);
/* 1: it is there now; 0: no memory. */
int weft__teach_names_put(weft__teach_names *s, const char *name);
void weft__teach_names_drop(weft__teach_names *s, const char *name);

/* ---- teach_feed.c ---- */
/* What was before: of all tenants. */
weft_status weft__teach_feed_restore(weft__teach_store *t, weft_error *err);
/* The reader: a thread. */
void *weft__teach_feed_run(void *teach_store);
/* The store's listener. */
void weft__teach_feed_woken(void *teach_store, const char *tenant, weft__learn_kind kind);
/* Between these two a tenant is not forgotten. 0: it is being forgotten, or another one alone is wanted. */
int weft__teach_feed_enter(weft__teach_store *t, const char *tenant);
void weft__teach_feed_leave(weft__teach_store *t);

/* ---- teach_night.c ---- */
/* With the lock: has the time come, and when is the clock to be looked at again (0: never)? */
int weft__teach_night_is_due(const weft__teach_store *t);
uint64_t weft__teach_night_look(const weft__teach_store *t);
void weft__teach_night_run(weft__teach_store *t);

#endif
