// SPDX-License-Identifier: Apache-2.0
/* store.h: what a server keeps to learn from, by tenant: answers as token ids with log-probabilities, what was said
 * of them, memories, and versions of adapters. One SQLite file in a folder (learn.db, WAL), and the witness log
 * (witness.h) beside it. Nothing is kept where no store is open.
 *
 * Threads: one writer thread has the database; whatever is put goes through its queue, in order. weft__learn_put
 * never waits: what finds the queue full is lost and counted. What a caller must know the outcome of (feedback,
 * versions, memories, forgetting) waits for the writer, which has then committed it: that survives a kill and, with
 * WEFT__LEARN_SYNC_NONE too, a power cut as far as the disk keeps what it says it has. Reading has a connection of
 * its own behind a lock. All functions from any thread unless they say otherwise.
 *
 * Failures: a full disk, or a folder that may not be written to, costs records, which are counted, never answers. One
 * process at a time writes to a folder.
 *
 * Tenants are names (a key's, or what a request calls itself); no query is without one. Invariant: every table that
 * has a column `tenant` loses the rows of a tenant that is forgotten, whichever room made it, and so does the
 * tenant's folder (weft__learn_tenant_dir). */
#ifndef WEFT_LEARN_STORE_H
#define WEFT_LEARN_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "learn/witness.h"
#include "weft/error.h"

typedef struct weft__learn_store weft__learn_store;

enum {
    WEFT__LEARN_QUEUE = 10000, /* records that wait for the writer at most */
    WEFT__LEARN_BATCH = 100,   /* records, or WEFT__LEARN_BATCH_MS, after which they are written */
    WEFT__LEARN_BATCH_MS = 1000,
    WEFT__LEARN_TENANT = 64,      /* bytes of a name with its NUL */
    WEFT__LEARN_ID = 48,          /* of a request's id, likewise */
    WEFT__LEARN_NAME = 128,       /* of an adapter's or a model's name, likewise */
    WEFT__LEARN_CONTENT = 65,     /* of a content id in hexadecimal, likewise */
    WEFT__LEARN_KEY = 256,        /* of an idempotency key, likewise */
    WEFT__LEARN_TEXT = 256 << 10, /* bytes of a correction at most */
};

/* Zero-initialise; 0: the default. */
typedef struct weft__learn_options {
    const char *dir;         /* made where it is not there, mode 0700, unless `exists` */
    int64_t max_age_s;       /* older records go; 0: none for that */
    uint64_t max_bytes;      /* of tokens and texts of a tenant: the oldest go beyond it; 0: no limit */
    int64_t events_per_hour; /* feedback that a tenant may give; 0: 600 */
    weft__learn_sync sync;
    int exists;    /* a store must be there already */
    int read_only; /* for looking: no writer, no lock, nothing is made; it may be another process's */
} weft__learn_options;

/* WEFT_NOT_FOUND (read_only or `exists`, and there is none), WEFT_ARGUMENT (a folder with other files and no store),
 * WEFT_BUSY (another process writes there, which the message names), WEFT_FORMAT (not a store, one of a later version,
 * or a witness log that is not whole: where), WEFT_IO, WEFT_NO_MEMORY; WEFT_UNSUPPORTED in a build without SQLite. */
weft_status weft__learn_open(const weft__learn_options *options, weft__learn_store **out, weft_error *err);
/* Could it be opened, to be written to? Where not, as that would say it, but for another process that has it at the
 * moment. Nothing is left: a folder is made to see whether one can be, and removed. */
weft_status weft__learn_check(const char *dir, weft_error *err);
/* Writes what waits, and ends. NULL and a pointer to NULL are fine. Nobody else uses it any more. */
void weft__learn_close(weft__learn_store **store);

/* ---- answers ---- */

/* An answer. Pointers are borrowed for the call. What is empty is "" or NULL with 0. */
typedef struct weft__learn_record {
    const char *tenant, *id;  /* id of the request, as its answer names it */
    int32_t choice;           /* of its answers; an answer is named by tenant, id and choice */
    int64_t time_ms;          /* when the request began, Unix time */
    const char *model, *base; /* base: weft_model_fingerprint */
    const char *adapter;      /* names, with '+' between, as requests give them; "": none */
    int64_t version;          /* of the one adapter; 0: it has none */
    const char *content;      /* content ids of the adapters, with '+' between; "": none, or not known */
    const char *settings;     /* sampling, as a JSON object; NULL: {} */
    uint64_t seed;
    const char *finish;    /* "stop", "length", ... */
    const int32_t *prompt; /* [n_prompt] */
    const int32_t *answer; /* [n_answer] */
    const float *logprobs; /* [n_answer], of the answer's tokens under the model; NULL: not known */
    int32_t n_prompt, n_answer;
    int32_t n_notes; /* corrections that stood in its prompt (weft__learn_notes) */
    /* What was asked, as a JSON object: {"messages": [...], "tools": [...]} of a chat, as the client gave it, or
     * {"prompt": "..."} of a text that goes on. NULL: not known, then it is not exported. */
    const char *source;
    const char *text; /* [n_text] what was answered: the content of a chat's message, or the text */
    size_t n_text;
} weft__learn_record;

/* Puts a copy into the queue; 0: it is lost (the queue is full, memory ran out, the tenant was forgotten since the
 * request began), and counted. Never waits for the disk. */
int weft__learn_put(weft__learn_store *store, const weft__learn_record *record);

/* ---- what was said of them ---- */

typedef enum weft__learn_kind {
    WEFT__LEARN_CORRECTION, /* text: what is right */
    WEFT__LEARN_EDIT,       /* text: the whole answer as it should have been */
    WEFT__LEARN_PREFERRED,  /* this answer over over_id's over_choice, which has the same prompt */
    WEFT__LEARN_THUMB,      /* value: 1 or -1 */
    WEFT__LEARN_REWARD,     /* value: finite */
    WEFT__LEARN_VERIFIER,   /* value: 1 passed, 0 failed, or a score; text: its message; name: which one */
    WEFT__LEARN_KINDS
} weft__learn_kind;

/* "correction", "edit", "preferred", "thumb", "reward", "verifier". */
const char *weft__learn_kind_name(weft__learn_kind kind);

/* The kinds of which an event may move weights by itself: a correction, an edit, a pair, a verifier. A thumb or a
 * number alone is polarity. */
static inline int weft__learn_teaches(weft__learn_kind kind)
{
    return kind != WEFT__LEARN_THUMB && kind != WEFT__LEARN_REWARD;
}

typedef struct weft__learn_feedback {
    const char *tenant, *id;
    int32_t choice;
    weft__learn_kind kind;
    double value;
    const char *text; /* [n_text], UTF-8; NULL: none */
    size_t n_text;
    const char *name; /* of a verifier; NULL or "" */
    const char *over_id;
    int32_t over_choice;
    const char *key; /* the caller's, one for each thing that is said (feedback.h); NULL: none */
    int64_t time_ms; /* when it came */
} weft__learn_feedback;

typedef struct weft__learn_told {
    int64_t event;                  /* its number, above 0; numbers grow, over all tenants, and are never given twice */
    int is_repeated;                /* it was said before, or its key was given with it: no event was added */
    int is_note;                    /* it enters the tenant's next prompts (weft__learn_notes) */
    char adapter[WEFT__LEARN_NAME]; /* of the answer */
    int64_t version;
} weft__learn_told;

/* Adds it, when the writer has committed it, unless it is a repeat: its key (a tenant's own, kept as long as the event)
 * was given with the same before, whatever came since; or, with a new key or none, it is what holds still: said before,
 * and nothing since has said otherwise (store_told.c has what does). WEFT_EXISTS: the key stands for something else;
 * WEFT_NOT_FOUND: the tenant has no such answer (whether another has is not said); WEFT_BUSY: too many events, or
 * repeats with new keys, within an hour, or the writer is too far behind; WEFT_ARGUMENT: over_id is an answer to
 * another prompt, or the same; WEFT_IO: it could not be kept; WEFT_NO_MEMORY. */
weft_status weft__learn_tell(weft__learn_store *store, const weft__learn_feedback *feedback, weft__learn_told *out,
                             weft_error *err);

/* An event with its answer; all pointers live for the call. */
typedef struct weft__learn_event {
    int64_t event, time_ms;
    weft__learn_kind kind;
    double value;
    const char *text, *name;
    size_t n_text;
    weft__learn_record answer;
    weft__learn_record over; /* of PREFERRED: the answer that is worse; id NULL: none, or it is gone */
} weft__learn_event;

/* Calls fn with events of a tenant with numbers above `after`, in their order; fn's non-zero result ends it, with
 * WEFT_OK. of_adapter NULL: of all answers; else of those of this adapter ("": of none). fn may not call the store. */
weft_status weft__learn_events(weft__learn_store *store, const char *tenant, int64_t after, const char *of_adapter,
                               int (*fn)(void *arg, const weft__learn_event *e), void *arg, weft_error *err);
/* The same for answers, by time: with_feedback 0: those of which nothing was said, 1: all. newest_first, at most `most`
 * (0: all). */
weft_status weft__learn_records(weft__learn_store *store, const char *tenant, int with_feedback, int newest_first,
                                int64_t most, int (*fn)(void *arg, const weft__learn_record *r), void *arg,
                                weft_error *err);

/* Calls fn for each event that is added, on the writer's thread after the commit, with the tenant and what it was: to
 * wake who learns from it. One listener; NULL: none. fn must not wait and may not call the store. */
void weft__learn_listen(weft__learn_store *store, void (*fn)(void *arg, const char *tenant, weft__learn_kind kind),
                        void *arg);

/* ---- the corrections that enter the tenant's next prompts ---- */

/* Appends the block for a tenant's prompts: the latest corrections and edits, oldest first, each a line of JSON
 * between two delimiting lines which no correction can spell. *n: how many; 0: nothing is appended. It only grows at
 * its end until it would be longer than `room` bytes; then its older half goes: so prompts that begin with it share
 * their beginning in the cache. */
weft_status weft__learn_notes(weft__learn_store *store, const char *tenant, size_t room, weft__strbuf *out, int32_t *n,
                              weft_error *err);

/* ---- versions of a tenant's adapter ---- */

/* Something that happened to one; rows are added, never changed. The last "published" or "rolled_back" of a name says
 * what is current. Pointers borrowed, NULL: "". */
typedef struct weft__learn_version {
    const char *tenant, *adapter;    /* the name without its version */
    int64_t version;                 /* 1.. */
    const char *what;                /* "trained", "rejected", "published", "rolled_back" */
    const char *content, *parent;    /* content ids: of this version; of that it went on from, "": the base */
    const char *path;                /* within the tenant's folder */
    int64_t first_event, last_event; /* that it learned from; 0: none */
    const char *options;             /* of the training, a JSON object with its seed */
    const char *report;              /* the gate's figures and the reason, a JSON object */
    int64_t time_ms;
    int64_t number; /* of the row: filled when it is read */
} weft__learn_version;

/* When the writer has committed it, and the witness log has it. WEFT_NOT_FOUND: nothing is kept of the tenant (it may
 * have been forgotten meanwhile); WEFT_BUSY, WEFT_IO, WEFT_NO_MEMORY. */
weft_status weft__learn_put_version(weft__learn_store *store, const weft__learn_version *version, weft_error *err);
/* In the order in which they were put. adapter NULL: all. As weft__learn_events. */
weft_status weft__learn_versions(weft__learn_store *store, const char *tenant, const char *adapter,
                                 int (*fn)(void *arg, const weft__learn_version *v), void *arg, weft_error *err);
/* DIR/tenants/<number>, made where it is not there (mode 0700): for files of the tenant, which go with it. The name
 * does not tell whose it is. makes: the tenant is one from now on; else, where nothing is kept of it, WEFT_NOT_FOUND.
 * WEFT_IO, WEFT_BUSY, WEFT_NO_MEMORY. */
weft_status weft__learn_tenant_dir(weft__learn_store *store, const char *tenant, int makes, weft__strbuf *out,
                                   weft_error *err);

/* ---- memories: what is to be known of a tenant's world ---- */

typedef struct weft__learn_memory {
    int64_t number; /* filled when it was put or is read */
    const char *tenant;
    const char *kind;       /* "semantic", "procedural", "episodic" */
    const char *key, *text; /* key: "" where it has none */
    const char *source;     /* id of the request that it comes of; "": given by hand */
    int64_t time_ms;
    int64_t valid_from_ms, valid_to_ms; /* valid_to 0: still */
    int64_t uses, wins, losses;
    /* of what is put: */
    int64_t event; /* that it is made of; of each event one is made, whatever became of it; 0: of none */
    int64_t ends;  /* another of the tenant's, which is valid until this one is, and no longer; 0: none */
} weft__learn_memory;

/* Adds one, or with a number changes that of this tenant, and ends another with it, or nothing of both. *number: its
 * own; 0: one was made of its event before, and nothing is done. WEFT_NOT_FOUND: there is none of that
 * number, or the tenant was forgotten since time_ms; WEFT_BUSY, WEFT_IO, WEFT_NO_MEMORY. */
weft_status weft__learn_put_memory(weft__learn_store *store, const weft__learn_memory *memory, int64_t *number,
                                   weft_error *err);
/* WEFT_NOT_FOUND, WEFT_BUSY, WEFT_IO. */
weft_status weft__learn_drop_memory(weft__learn_store *store, const char *tenant, int64_t number, weft_error *err);
/* By number. As weft__learn_events. */
weft_status weft__learn_memories(weft__learn_store *store, const char *tenant,
                                 int (*fn)(void *arg, const weft__learn_memory *m), void *arg, weft_error *err);

/* ---- all of it ---- */

typedef struct weft__learn_totals {
    int64_t n_answers, n_events, n_memories, n_versions;
    int64_t by_kind[WEFT__LEARN_KINDS];
    int64_t bytes;             /* of tokens, log-probabilities and texts */
    int64_t first_ms, last_ms; /* of its answers; 0: none */
} weft__learn_totals;

/* tenant NULL: of all. */
weft_status weft__learn_count(weft__learn_store *store, const char *tenant, weft__learn_totals *out, weft_error *err);
/* By name; names live for the call. */
weft_status weft__learn_tenants(weft__learn_store *store, int (*fn)(void *arg, const char *tenant), void *arg,
                                weft_error *err);

/* Takes all of a tenant: rows of every table with a column `tenant`, its salt, its folder; overwrites what the database
 * held (secure_delete, VACUUM), empties the WAL, and puts a deletion into the witness log, whose other entries of the
 * tenant say nothing without the salt. What its running requests bring later is lost, too. *out (may be NULL): what it
 * had. When it returns WEFT_OK no file of the store holds a byte of it. WEFT_NOT_FOUND: there is nothing of it;
 * WEFT_BUSY: a reader of another process keeps old pages: try again; WEFT_IO. */
weft_status weft__learn_forget(weft__learn_store *store, const char *tenant, weft__learn_totals *out, weft_error *err);

/* Why something could not be written: the disk is full, or the file too large for it; the folder or its file system
 * may not be written to; anything else. */
typedef enum weft__learn_why {
    WEFT__LEARN_OTHER,
    WEFT__LEARN_FULL,
    WEFT__LEARN_DENIED,
    WEFT__LEARN_WHYS
} weft__learn_why;

/* Since the store was opened, but n_waiting: now. */
typedef struct weft__learn_health {
    uint64_t n_kept, n_lost, n_expired;     /* answers */
    uint64_t n_told, n_repeated, n_refused; /* feedback */
    uint64_t n_waiting;
    uint64_t n_witnessed, n_unwitnessed; /* entries of the log; those that wait for it, as it failed */
    uint64_t n_failed[WEFT__LEARN_WHYS]; /* batches, or forgettings, that the disk did not take */
    char fault[256];                     /* the last failure of the writer; "": none */
} weft__learn_health;
void weft__learn_get_health(weft__learn_store *store, weft__learn_health *out);

/* Waits until what was put before is written, or lost. For tests, and the end of a server. */
void weft__learn_flush(weft__learn_store *store);

/* ---- export (export.c) ---- */

typedef enum weft__learn_form {
    WEFT__LEARN_AS_SFT,    /* corrections and edits, as messages (or prompt and completion) */
    WEFT__LEARN_AS_PAIRS,  /* preferences and edits: prompt, chosen, rejected */
    WEFT__LEARN_AS_REWARDS /* thumbs, rewards, verifiers: as SFT, with "reward" */
} weft__learn_form;

/* Appends an event as a line of JSONL that `weft adapter train` reads, with its "event", "adapter" and "version" beside
 * it, which training ignores; 0: it has no such form, or its source is not known, or memory ran out (out->failed). */
int weft__learn_write_event(const weft__learn_event *e, weft__learn_form form, weft__strbuf *out);

#endif
