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

/* The tokens that are made of some classes alone, of at most n characters. */
typedef struct weft__gram_token_set {
    uint64_t classes;
    uint32_t n;
    uint64_t bits[]; /* [(n_tokens + 63) / 64] */
} weft__gram_token_set;

enum { WEFT__GRAM_MAX_TOKEN_SETS = 128 };

/* Those of a grammar, made when they are first asked for; zero-initialise. Any thread. */
typedef struct weft__gram_token_sets {
    _Atomic(weft__gram_token_set *) all[WEFT__GRAM_MAX_TOKEN_SETS]; /* those that there are come first */
} weft__gram_token_sets;

/* NULL: there are too many, or there is no memory. */
const weft__gram_token_set *weft__gram_token_sets_get(weft__gram_token_sets *sets, const struct weft__gram_trie *trie,
                                                      uint64_t classes, uint32_t n);
size_t weft__gram_token_sets_bytes(const weft__gram_token_sets *sets, const struct weft__gram_trie *trie);
void weft__gram_token_sets_free(weft__gram_token_sets *sets);

/* Does this byte begin a character? */
static inline int weft__gram_begins_char(unsigned char byte)
{
    return (byte & 0xC0) != 0x80;
}

#endif
