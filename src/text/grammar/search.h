// SPDX-License-Identifier: Apache-2.0
/* search.h: where in a text one of some words ends first, as a deterministic automaton over the bytes of tokens
 * (token_trie.h): a state is all ways in which what was read last may begin a word. Within a control token none
 * begins. Between two other words, which mark what is to be skipped, none is looked for. Beside words there may be
 * patterns (pattern.h). Immutable: threads may share it. Where begins what was found says a trail, which belongs to one
 * thread. */
#ifndef WEFT_TEXT_SEARCH_H
#define WEFT_TEXT_SEARCH_H

#include "text/grammar/parts.h"
#include "text/grammar/pattern.h"
#include "text/grammar/token_trie.h"

enum {
    WEFT__GRAM_SEARCH_STATES = 4096, /* what takes more is refused */
    WEFT__GRAM_SEARCH_FOUND = UINT16_MAX
};
/* Bits: those that have begun can go on in a state; words can begin; a pattern is complete where the text ends. */
enum { WEFT__GRAM_SEARCH_GOES_ON = 1, WEFT__GRAM_SEARCH_LOOKS = 2, WEFT__GRAM_SEARCH_ENDS = 4 };

typedef struct weft__gram_search {
    weft__gram_automaton *words;     /* what is looked for, or NULL; no rule calls another */
    weft__gram_patterns *patterns;   /* or NULL */
    uint16_t *next;                  /* [n_states][256] a state, or FOUND */
    uint8_t *looks;                  /* [n_states] those; 0: it skips */
    uint16_t start, later, skipping; /* at the beginning of a text, within it, and of what is skipped */
    size_t n_states;
} weft__gram_search;

/* words: of a grammar, the rule that says what is looked for; skip_from, skip_to: likewise; each may be -1. patterns:
 * NULL, or taken over, on failure too. Fails as weft__gram_compile does; WEFT_ARGUMENT where the empty text is a word;
 * WEFT_LIMIT. */
weft_status weft__gram_search_create(weft__gram *g, int32_t words, int32_t skip_from, int32_t skip_to,
                                     weft__gram_patterns *patterns, weft__gram_search **out, weft_error *err);
void weft__gram_search_destroy(weft__gram_search **search);

/* A text within a search, and where begin the words and patterns that it may be within. */
typedef struct weft__gram_trail {
    uint16_t state;
    uint64_t n_bytes; /* of the text */
    struct weft__gram_trail_item {
        int32_t state; /* of words */
        uint64_t from; /* the byte where that word begins */
    } * items, *spare;
    size_t n, capacity, spare_capacity;
    weft__gram_threads threads; /* of the patterns */
    int opened;                 /* a control token began with the last byte */
} weft__gram_trail;

/* Zero-initialise; free with weft__gram_trail_free. */
void weft__gram_trail_begin(const weft__gram_search *s, weft__gram_trail *t, int skipping);
/* Something came that is no text: what has begun does not go on. */
void weft__gram_trail_interrupt(const weft__gram_search *s, weft__gram_trail *t);
void weft__gram_trail_free(weft__gram_trail *t);
/* 0 when there is no memory. */
int weft__gram_trail_copy(const weft__gram_trail *from, weft__gram_trail *to);
/* Goes on by a byte. 1: a word or pattern ends with it, of several the one that began first, then the word; *from is
 * where it begins, or the pattern's group does; 0: none; -1: no memory. */
int weft__gram_trail_step(const weft__gram_search *s, weft__gram_trail *t, unsigned char byte, uint64_t *from);
/* 1: a pattern is complete if the text ends here. */
int weft__gram_trail_ends(const weft__gram_search *s, const weft__gram_trail *t, uint64_t *from);
/* The byte from which on the text may be asked for; n_bytes: none before those to come. */
uint64_t weft__gram_trail_oldest(const weft__gram_trail *t);

#endif
