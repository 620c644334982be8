// SPDX-License-Identifier: Apache-2.0
/* version.h: the versions of adapters that learn: which there are, what each came of, which one a name stands for.
 *
 * A lineage is a tenant's adapter; its versions are numbered from 1 and are called NAME@1, NAME@2, ... The name alone
 * stands for the current one: the last that was published, or that was gone back to. Versions are never changed, and
 * numbers never given twice: one that the gate refused has its number, too. All of it follows from rows, in their
 * order, which are written before they hold (store.h keeps them): so a server that starts reads them, and has what the
 * one before it had. Thread safety: all functions from any thread. */
#ifndef WEFT_LEARN_VERSION_H
#define WEFT_LEARN_VERSION_H

#include <stdint.h>

#include "weft/error.h"

enum {
    WEFT__VERSION_NAME = 100,      /* bytes of a lineage's name, the NUL included */
    WEFT__VERSION_TENANT = 64,     /* of a tenant's, likewise */
    WEFT__VERSION_CONTENT = 33,    /* of a content id */
    WEFT__VERSION_FULL_NAME = 128, /* of NAME@7 */
    WEFT__VERSION_BY = 16,         /* of how it was made */
    WEFT__VERSION_WHY = 256,       /* of what was weighed against what */
    WEFT__VERSION_CAME_IN = 32     /* events that were refused by themselves, at most */
};

typedef enum weft__version_what {
    WEFT__VERSION_REJECTED,   /* the gate refused it */
    WEFT__VERSION_PUBLISHED,  /* it is what the name stands for from now on */
    WEFT__VERSION_ROLLED_BACK /* the name stands for an earlier one again; 0: for the base alone */
} weft__version_what;
/* "rejected", "published", "rolled_back" */
const char *weft__version_what_name(weft__version_what what);
/* 1 and *out, or 0: no such word. */
int weft__version_what_of(const char *name, weft__version_what *out);

/* Something that happened to a version. */
typedef struct weft__version_row {
    char tenant[WEFT__VERSION_TENANT], name[WEFT__VERSION_NAME];
    weft__version_what what;
    int64_t version, parent;             /* parent: that it went on from; 0: the base */
    char content[WEFT__VERSION_CONTENT]; /* of what was published */
    char reason[24];                     /* of the gate, of one that was rejected */
    int64_t first_event, last_event;     /* that it learned from; 0: none */
    /* of a consolidation: "retrained", "distilled", "retried" or "compressed", and how the candidates fared, the best
     * first; else "". Plain words: no quotes, no backslashes */
    char by[WEFT__VERSION_BY], why[WEFT__VERSION_WHY];
    /* of what it learned: events that the gate had refused by themselves */
    int64_t came_in[WEFT__VERSION_CAME_IN];
    int32_t n_came_in;
    double kl; /* of the gate, to the base, nats a token; 0 or not finite: not measured */
} weft__version_row;

typedef struct weft__versions weft__versions;

/* Called with each row before it holds, under the lock: what fails here does not happen. It must not call back. */
typedef weft_status weft__version_note(void *arg, const weft__version_row *row, weft_error *err);

weft_status weft__versions_create(weft__version_note *note, void *arg, weft__versions **out, weft_error *err);
void weft__versions_destroy(weft__versions **v);

/* A row of before, without being noted again. WEFT_FORMAT: it does not follow from those before it. */
weft_status weft__versions_read(weft__versions *v, const weft__version_row *row, weft_error *err);
/* row->version is set here for one that is rejected or published: the lineage's next number. Fails as `note` does, with
 * WEFT_ARGUMENT for a name that no adapter may have, and WEFT_NO_MEMORY. */
weft_status weft__versions_add(weft__versions *v, weft__version_row *row, weft_error *err);
/* Goes back to version `to` (0: the base alone; -1: what the name stood for when the current one was published). *now:
 * what it stands for then; where it does so already, nothing is noted. WEFT_NOT_FOUND: no such lineage of the tenant's,
 * or no such version that was published, of which the message names the last; WEFT_STATE: there is none before it. */
weft_status weft__versions_roll_back(weft__versions *v, const char *tenant, const char *name, int64_t to, int64_t *now,
                                     weft_error *err);

/* Takes all rows of a tenant: numbers begin anew. Nothing is noted. */
void weft__versions_forget(weft__versions *v, const char *tenant);

/* The current version of a lineage; 0: the base alone, or no such lineage. content (may be NULL)
 * [WEFT__VERSION_CONTENT]. */
int64_t weft__versions_current(weft__versions *v, const char *tenant, const char *name, char *content);
/* Was that version published? */
int weft__versions_is_published(weft__versions *v, const char *tenant, const char *name, int64_t version);
/* That a published version went on from; 0: the base, or no such version. */
int64_t weft__versions_parent(weft__versions *v, const char *tenant, const char *name, int64_t version);
/* Was it learned from another version, or one that it was compressed from? Compressing learns nothing: no events. */
int weft__versions_goes_on(weft__versions *v, const char *tenant, const char *name, int64_t version);
/* The number that the next one will have. */
int64_t weft__versions_next(weft__versions *v, const char *tenant, const char *name);
/* Calls fn with the rows of a tenant (NULL: of all) in their order; fn must not call back. */
void weft__versions_each(weft__versions *v, const char *tenant, void (*fn)(void *arg, const weft__version_row *row),
                         void *arg);

/* "NAME@7" into out [WEFT__VERSION_FULL_NAME]. */
void weft__version_write_name(const char *name, int64_t version, char *out);
/* Splits NAME@7 into name [WEFT__VERSION_NAME] and version; 0: it names no version. */
int weft__version_read_name(const char *full, char *name, int64_t *version);

#endif
