// SPDX-License-Identifier: Apache-2.0
/* token_trie.h: the bytes of all tokens that may appear in constrained text, as a trie in depth-first order.
 *
 * A control token stands there as its spelling between two bytes 0xFF, which no text has: only a grammar that names it
 * leads there (weft__gram_token). Left out are unknown and unused tokens, those that end generation, those without
 * bytes, and what has a byte 0xFF of its own. Immutable and reference counted: one per tokenizer serves all grammars
 * and threads. */
#ifndef WEFT_TEXT_TOKEN_TRIE_H
#define WEFT_TEXT_TOKEN_TRIE_H

#include <stdatomic.h>
#include <stdint.h>

#include "text/grammar/token_classes.h"
#include "text/tokenizer/tokenizer.h"

typedef struct weft__gram_trie_node {
    uint32_t next;   /* the first node behind this one's subtree, which begins with the node itself */
    uint32_t token;  /* its tokens are ids[token..nodes[i + 1].token), those of its subtree end at nodes[next].token */
    uint32_t parent; /* itself: none */
    uint16_t depth;  /* bytes from the root, this one's included; at least 1 */
    uint8_t byte;
} weft__gram_trie_node;

#define WEFT__GRAM_TRIE_NONE UINT32_MAX
/* In front of a control token's spelling, and behind it. */
#define WEFT__GRAM_TRIE_CONTROL 0xFF

typedef struct weft__gram_trie {
    atomic_size_t refs;
    weft__gram_trie_node *nodes;  /* [n_nodes + 1]; the last closes */
    weft__gram_subtree *subtrees; /* [n_nodes] */
    weft__gram_token_lengths lengths;
    uint32_t n_nodes;
    uint32_t max_depth;
    int32_t n_tokens;  /* of the vocabulary */
    int32_t *ids;      /* tokens in the order of their bytes */
    uint32_t *node_of; /* [n_tokens] or WEFT__GRAM_TRIE_NONE */
    int32_t *ends;     /* [n_ends] tokens that end generation */
    int32_t n_ends;
} weft__gram_trie;

/* WEFT_UNSUPPORTED for a vocabulary whose tokens do not spell text by themselves (WordPiece). */
weft_status weft__gram_trie_create(const weft__tok *tok, weft__gram_trie **out, weft_error *err);
/* 1: a control token that a grammar may name, which those that end generation are not. */
int weft__gram_trie_is_control(const weft__tok *tok, int32_t id);
weft__gram_trie *weft__gram_trie_retain(weft__gram_trie *trie);
void weft__gram_trie_release(weft__gram_trie **trie);

#endif
