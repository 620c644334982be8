// SPDX-License-Identifier: Apache-2.0
/* parts.h: what the files of this room share. */
#ifndef WEFT_MEMORY_PARTS_H
#define WEFT_MEMORY_PARTS_H

#include "memory/memory.h"
#include "search/search.h"

enum { MEMORY_ASKED = 16 };

/* As the index has it. */
typedef struct memory_item {
    int64_t number, from_ms, to_ms;
    weft__memory_kind kind;
    char *key, *text;
    float *vector; /* [dims] of the tenant; NULL: it has none yet */
} memory_item;

/* A tenant's index; with the lock of what it is part of. */
typedef struct memory_tenant {
    char name[WEFT__LEARN_TENANT];
    memory_item *items; /* [n], by number */
    size_t n, capacity;
    int is_old;                /* the store has others: it is read again when it is asked for next */
    weft__search_words *words; /* of key and text, by number */
    /* vectors.c */
    int dims;                      /* 0: there are no vectors */
    float *mean;                   /* [dims] of the items' */
    weft__search_vectors *vectors; /* of all items, less their mean; NULL: not all have one, or it is to be made */
    struct memory_asked {
        uint64_t of;       /* the question's hash */
        float *vector;     /* [dims]; NULL: there is none */
    } asked[MEMORY_ASKED]; /* the last ones: of conversations that go on beside each other */
    size_t next_asked;
    uint64_t used;
    struct memory_tenant *next;
} memory_tenant;

/* What it finds of its items that pass the filter, by words; by vectors, too, where it has those of all items and of
 * the question. WEFT_NO_MEMORY. */
weft_status weft__memory_find(memory_tenant *t, const char *question, size_t n, weft__search_top *top, weft_error *err);
/* What of it lacks a vector, as weft__memory_lacking. */
weft_status weft__memory_lacking_of(const memory_tenant *t, const char *question, size_t n, weft__memory_lack *out,
                                    weft_error *err);
/* Takes those that are there. */
void weft__memory_attach_to(memory_tenant *t, const weft__memory_lack *lack, const float *vectors, int dims);
/* Vectors of what is the same in both come from the older one. */
void weft__memory_vectors_move(memory_tenant *from, memory_tenant *to);
/* The index of vectors is to be made anew, as items have come or gone. */
void weft__memory_vectors_stale(memory_tenant *t);
void weft__memory_vectors_free(memory_tenant *t);

/* weft__memory_learn, with the store of m (events.c). */
weft_status weft__memory_learn_from(weft__learn_store *store, weft__memory *m, const char *tenant, int64_t event,
                                    int64_t *number, weft_error *err);

#endif
