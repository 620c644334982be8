// SPDX-License-Identifier: Apache-2.0
/* parts.h: what the files of the store share: the database, and the queue of who has it. SQLite is used by these files
 * alone: db.c, store*.c. */
#ifndef WEFT_LEARN_PARTS_H
#define WEFT_LEARN_PARTS_H

#include <pthread.h>
#include <sqlite3.h>

#include "learn/store.h"

enum { WEFT__LEARN_SALT = 32, WEFT__LEARN_FORGOTTEN = 1024, WEFT__LEARN_PATIENCE_MS = 5000 /* with other processes */ };

/* ---- db.c: SQLite as this room uses it. A connection has one user at a time ---- */

/* Opens dir/learn.db. looks: nothing is made or changed. WEFT_NOT_FOUND, WEFT_FORMAT (not ours, or of a later version),
 * WEFT_IO, WEFT_NO_MEMORY. */
weft_status weft__learn_db_open(const char *dir, int looks, weft__learn_sync sync, sqlite3 **out, weft_error *err);
/* Of errno; of SQLite's result and the system's behind it. */
weft__learn_why weft__learn_why_of(int number);
weft__learn_why weft__learn_db_why(sqlite3 *db, int rc);
/* What SQLite's result says: WEFT_NO_MEMORY, WEFT_BUSY, WEFT_EXISTS, WEFT_FORMAT (a damaged file), else WEFT_IO. */
weft_status weft__learn_db_fault(sqlite3 *db, int rc, weft_error *err);
/* Statements without results. */
weft_status weft__learn_db_run(sqlite3 *db, const char *sql, weft_error *err);

/* A statement whose ?1, ?2... are bound as `types` says: i int64_t, d double, s string (NULL: NULL), t string and
 * size_t (NULL: NULL), b blob and size_t. Texts and blobs must live until it is ended. *out NULL on failure. */
weft_status weft__learn_db_ask(sqlite3 *db, sqlite3_stmt **out, weft_error *err, const char *sql, const char *types,
                               ...);
/* 1: there is a row; 0: there is none, or *st is set. */
int weft__learn_db_next(sqlite3_stmt *q, weft_status *st, weft_error *err);
void weft__learn_db_end(sqlite3_stmt **q);
/* _ask, its only step, and _end. */
weft_status weft__learn_db_do(sqlite3 *db, weft_error *err, const char *sql, const char *types, ...);
/* The first column of the first row as a number; `none` where there is no row. */
weft_status weft__learn_db_number(sqlite3 *db, int64_t none, int64_t *out, weft_error *err, const char *sql,
                                  const char *types, ...);
/* A text column, never NULL. */
const char *weft__learn_db_text(sqlite3_stmt *q, int column);

/* ---- the queue (store.c) ---- */

enum weft__learn_job_kind {
    WEFT__LEARN_JOB_RECORD,
    WEFT__LEARN_JOB_TELL,
    WEFT__LEARN_JOB_VERSION,
    WEFT__LEARN_JOB_MEMORY,
    WEFT__LEARN_JOB_DROP,
    WEFT__LEARN_JOB_TENANT,
    WEFT__LEARN_JOB_FORGET, /* a batch of its own */
    WEFT__LEARN_JOB_NOTHING
};

/* Something for the writer. One that waits stands on its caller's stack, and what it points to is the caller's. */
typedef struct weft__learn_job {
    struct weft__learn_job *next;
    enum weft__learn_job_kind kind;
    int waits; /* somebody does: it is the caller's; else it is freed when it was done */
    int done;  /* under the store's lock */
    uint64_t since_ns;
    weft_status status;
    weft_error error;
    const void *given;  /* a record, a feedback, ... as the kind has it */
    const char *tenant; /* of VERSION to FORGET */
    void *result;       /* told, totals; NULL: none */
    int64_t number;     /* a memory's, or a tenant's: given or found */
    int makes;          /* of TENANT */
} weft__learn_job;

struct weft__learn_store {
    char *dir;
    int64_t max_age_s, events_per_hour;
    uint64_t max_bytes;
    weft__learn_sync sync;
    int looks, lock_fd;
    pthread_mutex_t read_lock; /* reader */
    sqlite3 *reader;

    /* the writer's thread, and who opens and closes */
    sqlite3 *db;
    weft__learn_witness *witness;
    uint64_t next_place; /* of the next entry in the witness log */
    uint64_t expired_ns; /* when old records were last looked for */
    int is_unfinished;   /* a forgetting */
    weft__learn_why why; /* of what is in work, where it failed */
    uint64_t tried_ns;   /* when the rest of it was last tried */
    pthread_t thread;
    int has_thread;

    pthread_mutex_t lock; /* all below */
    pthread_cond_t wake, done;
    weft__learn_job *first, **last;
    size_t n_waiting;
    int n_urgent, stop;
    weft__learn_health health;
    void (*listener)(void *arg, const char *tenant, weft__learn_kind kind);
    void *listener_arg;
    struct weft__learn_forgotten {
        uint64_t name; /* its hash */
        int64_t time_ms;
    } forgotten[WEFT__LEARN_FORGOTTEN];
    size_t n_forgotten;
};

/* Waits until the writer has done it, and returns how that ended. */
weft_status weft__learn_await(weft__learn_store *s, weft__learn_job *job, weft_error *err);
/* Was the tenant forgotten since? Then what began at that time brings nothing. With the store's lock. */
int weft__learn_is_forgotten(const weft__learn_store *s, const char *tenant, int64_t time_ms);

/* ---- what the writer does; in a transaction but for the last ---- */

/* store_write.c. Sets *job's results. */
weft_status weft__learn_write(weft__learn_store *s, weft__learn_job *job, weft_error *err);
/* store_told.c: feedback, likewise. */
weft_status weft__learn_write_feedback(weft__learn_store *s, const weft__learn_feedback *f, weft__learn_told *told,
                                       weft_error *err);
/* Old records go, of all tenants now and then; of this one (0: none) those beyond its bytes. */
weft_status weft__learn_expire(weft__learn_store *s, int64_t tenant, weft_error *err);

/* A tenant's number and salt. makes: it is one from now on; else WEFT_NOT_FOUND. */
weft_status weft__learn_tenant(sqlite3 *db, const char *name, int makes, int64_t *number,
                               unsigned char salt[WEFT__LEARN_SALT], weft_error *err);
/* Entries of the witness log, as JSON (store_entries.c): they are put beside what they tell of. */
typedef struct weft__learn_sayer {
    weft__learn_store *store;
    const unsigned char *salt; /* [WEFT__LEARN_SALT], of the tenant */
    const char *tenant;        /* its name */
} weft__learn_sayer;
weft_status weft__learn_say_record(const weft__learn_sayer *y, const weft__learn_record *r, weft_error *err);
weft_status weft__learn_say_feedback(const weft__learn_sayer *y, const weft__learn_feedback *f, int64_t event,
                                     weft_error *err);
weft_status weft__learn_say_version(const weft__learn_sayer *y, const weft__learn_version *v, weft_error *err);
weft_status weft__learn_say_deletion(const weft__learn_sayer *y, const weft__learn_totals *t, weft_error *err);
/* After a commit: moves what waits beside the records into the log. */
weft_status weft__learn_witness_move(weft__learn_store *s, weft_error *err);

/* store_forget.c: outside of a transaction. */
weft_status weft__learn_forget_all(weft__learn_store *s, weft__learn_job *job, weft_error *err);
/* What a forgetting left to do, because it was killed or a reader was in the way. */
weft_status weft__learn_forget_rest(weft__learn_store *s, weft_error *err);

/* store_read.c: with any connection. tenant 0: all. */
weft_status weft__learn_count_of(sqlite3 *db, int64_t tenant, weft__learn_totals *out, weft_error *err);

/* notes.c: the line of JSON that enters prompts; *out stays empty where there is none: the question is not known, or it
 * would be too long. */
weft_status weft__learn_note(const char *source, const char *right, size_t n_right, weft__strbuf *out, weft_error *err);
/* Appends the block with these lines. */
void weft__learn_note_block(const weft__strbuf *lines, weft__strbuf *out);

#endif
