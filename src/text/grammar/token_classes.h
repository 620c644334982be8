// SPDX-License-Identifier: Apache-2.0
/* token_classes.h: what kinds of characters the tokens of a subtree have, so that a walk can take all of them at once.
 *
 * Characters have 64 classes, each a bit: those that grammars tell apart within text. Where a state takes any text of
 * some classes, for so many characters at least, a subtree with no others in it is allowed as a whole. Stateless. */
#ifndef WEFT_TEXT_TOKEN_CLASSES_H
#define WEFT_TEXT_TOKEN_CLASSES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WEFT__GRAM_WIDE_CLASS = 62,   /* characters beyond ASCII, well-formed, the last of a token perhaps cut off */
    WEFT__GRAM_BROKEN_CLASS = 63, /* bytes that are no characters, and what follows them; most control characters */
    WEFT__GRAM_ANY_LENGTH = 255   /* characters */
};

/* Of a node and all below it. */
typedef struct weft__gram_subtree {
    uint64_t classes;
    uint8_t n;   /* characters on the longest way down, that of the node itself included; ANY_LENGTH: so many or more */
    uint8_t own; /* the class of the node's character */
} weft__gram_subtree;

/* The first and the last byte of a class of ASCII characters; 0: there is none of that number. All between are its. */
int weft__gram_class_bytes(int number, unsigned char *first, unsigned char *last);

struct weft__gram_trie;
/* [n_nodes], for weft__free; NULL when there is no memory. */
weft__gram_subtree *weft__gram_subtrees_make(const struct weft__gram_trie *trie);

/* The tokens of a vocabulary by their characters, of whatever classes; the last may be cut off. */
typedef struct weft__gram_token_lengths {
    uint8_t row[WEFT__GRAM_ANY_LENGTH]; /* of bits, [n]: those of at most n characters */
    uint64_t *bits;                     /* [a row for each length that there is, and one without any][n_words] */
    size_t n_words;                     /* (n_tokens + 63) / 64 */
} weft__gram_token_lengths;

/* 0 when there is no memory; free in any case. */
int weft__gram_token_lengths_make(weft__gram_token_lengths *l, const struct weft__gram_trie *trie);
void weft__gram_token_lengths_free(weft__gram_token_lengths *l);
/* Tokens of at most n characters, as a bitmap; ANY_LENGTH: NULL, which is all. */
static inline const uint64_t *weft__gram_token_lengths_at_most(const weft__gram_token_lengths *l, uint32_t n)
{
    return n < WEFT__GRAM_ANY_LENGTH ? l->bits + l->row[n] * l->n_words : NULL;
}

/* The tokens that are made of some classes alone. */
typedef struct weft__gram_token_set {
    uint64_t classes;
    uint64_t bits[]; /* [n_words] */
} weft__gram_token_set;

enum { WEFT__GRAM_MAX_TOKEN_SETS = 128 };

/* Those of a grammar, made when they are first asked for; zero-initialise. Any thread. */
typedef struct weft__gram_token_sets {
    _Atomic(weft__gram_token_set *) all[WEFT__GRAM_MAX_TOKEN_SETS]; /* those that there are come first */
} weft__gram_token_sets;

/* NULL: there are too many, or there is no memory. */
const weft__gram_token_set *weft__gram_token_sets_get(weft__gram_token_sets *sets, const struct weft__gram_trie *trie,
                                                      uint64_t classes);
size_t weft__gram_token_sets_bytes(const weft__gram_token_sets *sets, const struct weft__gram_trie *trie);
void weft__gram_token_sets_free(weft__gram_token_sets *sets);

/* Does this byte begin a character? */
static inline int weft__gram_begins_char(unsigned char byte)
{
    return (byte & 0xC0) != 0x80;
}

#endif
