// SPDX-License-Identifier: Apache-2.0
/* memory.h: what a tenant's prompts are told of earlier requests: written from what was said of answers, found by
 * words, and by embeddings where there are some, put into a delimited block. Over a store (learn/store.h), which keeps
 * it.
 *
 * Of four kinds of memory one is the engine's: the working one is the cache of keys and values. The others:
 *   EPISODIC    a past request and its answer that was found good
 *   SEMANTIC    a fact, valid from and to a time; a newer one of the same key ends the older
 *   PROCEDURAL  what passed or failed a check, and what that said
 *
 * Invariants: nothing of one tenant is found for another, who has an index of its own. A block is data: lines of JSON
 * between two lines that none of them can spell, in the order in which memories were made, so that prompts with the
 * same ones begin alike; its version is a hash of them. Nothing is written where nobody asks for it. Any thread. */
#ifndef WEFT_MEMORY_MEMORY_H
#define WEFT_MEMORY_MEMORY_H

#include "base/text.h"
#include "learn/store.h"

enum {
    WEFT__MEMORY_KEY = 1024,     /* bytes of a key, with its NUL */
    WEFT__MEMORY_TEXT = 4096,    /* of a text */
    WEFT__MEMORY_OF_ONE = 10000, /* memories of a tenant */
    WEFT__MEMORY_FOUND = 8,      /* in a block */
    WEFT__MEMORY_TENANTS = 64,   /* whose indexes are kept ready */
    WEFT__MEMORY_LACKING = 33    /* texts to be embedded at once: a question, and memories */
};

typedef enum weft__memory_kind {
    WEFT__MEMORY_EPISODIC,
    WEFT__MEMORY_SEMANTIC,
    WEFT__MEMORY_PROCEDURAL,
    WEFT__MEMORY_KINDS
} weft__memory_kind;

/* "episodic", "semantic", "procedural"; 1, or 0: there is none of that name. */
int weft__memory_kind_of(const char *name, weft__memory_kind *out);
const char *weft__memory_kind_name(weft__memory_kind kind);

typedef struct weft__memory weft__memory;

/* The store outlives it. WEFT_NO_MEMORY. */
weft_status weft__memory_new(weft__learn_store *store, weft__memory **out, weft_error *err);
void weft__memory_free(weft__memory **m);

/* Adds one, or with a number changes that; ends a semantic one of the same key that is valid still, or is ended by a
 * newer one (memory->ends, ->valid_to_ms), at once. Kept when it returns. WEFT_ARGUMENT: a text is empty, too long or
 * no UTF-8, or it ends before it begins; WEFT_LIMIT: there are WEFT__MEMORY_OF_ONE; and what weft__learn_put_memory
 * says. */
weft_status weft__memory_put(weft__memory *m, weft__learn_memory *memory, int64_t *number, weft_error *err);
/* Counts what a caller wants to put: 1, or 0 where it has put `most` within an hour, which begins with the first. Of
 * 1024 hours at a time; two tenants that fall upon one begin it anew in turns. */
int weft__memory_may_put(weft__memory *m, const char *tenant, int64_t most, int64_t now_ms);
/* WEFT_NOT_FOUND, WEFT_BUSY, WEFT_IO. */
weft_status weft__memory_drop(weft__memory *m, const char *tenant, int64_t number, weft_error *err);
/* The tenant's index is made anew when it is asked for next; after the store has forgotten it. */
void weft__memory_forget(weft__memory *m, const char *tenant);

/* What an event of the store teaches, by weft__learn_tell's number: a correction or an edit a semantic memory with the
 * question as its key; a thumb up or a reward above 0 an episodic one; a verifier's word a procedural one. Others, and
 * answers whose question is not known: nothing. Of each event once: who was interrupted asks again. *number: of the
 * memory; 0: none. As weft__memory_put. */
weft_status weft__memory_learn(weft__memory *m, const char *tenant, int64_t event, int64_t *number, weft_error *err);

/* What stands in a block. */
typedef struct weft__memory_told {
    int64_t number[WEFT__MEMORY_FOUND]; /* [n], in their order */
    int n;
} weft__memory_told;

/* Appends the block for a question, of at most `room` bytes: those of the tenant's memories that are valid at now_ms
 * and share words with it, or where all have vectors and the question, too, are near it; the best WEFT__MEMORY_FOUND,
 * without those that score below three quarters of the best. told->n 0: nothing is appended. */
weft_status weft__memory_block(weft__memory *m, const char *tenant, const char *question, size_t n_question,
                               int64_t now_ms, size_t room, weft__strbuf *out, weft__memory_told *told,
                               weft_error *err);

/* ---- embeddings: whoever has a model gives them ---- */

typedef struct weft__memory_text {
    int64_t number; /* of a memory; 0: the question */
    char *text;     /* [n] */
    size_t n;
} weft__memory_text;

/* What has no vector yet; weft__memory_lack_free. n 0: nothing, or vectors would be too many. */
typedef struct weft__memory_lack {
    weft__memory_text texts[WEFT__MEMORY_LACKING]; /* [n], the question first, memories by number */
    size_t n;
    uint64_t asked_of;
} weft__memory_lack;

/* Copies of what is to be embedded before a block for this question is asked for, as many as fit. Vectors stay in
 * memory while the index does: they are never written, and go with their memory. As weft__memory_block fails. */
weft_status weft__memory_lacking(weft__memory *m, const char *tenant, const char *question, size_t n,
                                 weft__memory_lack *out, weft_error *err);
void weft__memory_lack_free(weft__memory_lack *lack);
/* Their vectors [lack->n][dims], all by one model; one of zeros: it has none. What has changed meanwhile takes none. */
void weft__memory_attach(weft__memory *m, const char *tenant, const weft__memory_lack *lack, const float *vectors,
                         int dims);

#endif
