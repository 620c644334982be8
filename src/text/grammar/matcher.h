// SPDX-License-Identifier: Apache-2.0
/* matcher.h: a grammar over a vocabulary: which tokens may come next.
 *
 * For each state of the automaton a table is computed once, of the tokens that fit whatever called the rule, and of the
 * places in the trie where the rule may end within a token. A mask is the union of the tables of all ways, plus what a
 * walk from those places with the real callers allows. Tables are made ahead as far as a fixed amount of work goes, the
 * others when first needed. Invariant: a token is allowed exactly when weft__gram_matcher_accept would take it. */
#ifndef WEFT_TEXT_MATCHER_H
#define WEFT_TEXT_MATCHER_H

#include "text/grammar/grammar.h"
#include "text/grammar/token_trie.h"

/* Reference counted; any number of threads may use one at a time. */
typedef struct weft__gram_tables weft__gram_tables;

/* Takes over the automaton (on failure too) and a reference of its own to the trie. Fails with WEFT_NO_MEMORY. */
weft_status weft__gram_tables_create(weft__gram_automaton *a, weft__gram_trie *trie, weft__gram_tables **out,
                                     weft_error *err);
weft__gram_tables *weft__gram_tables_retain(weft__gram_tables *g);
void weft__gram_tables_release(weft__gram_tables **g);
int32_t weft__gram_tables_n_tokens(const weft__gram_tables *g);
const weft__gram_trie *weft__gram_tables_trie(const weft__gram_tables *g);
/* Bytes that it holds now, without the trie; more when masks have made more tables. Any thread. */
size_t weft__gram_tables_bytes(const weft__gram_tables *g);

/* A text on its way through a grammar; belongs to one thread. Holds a reference to the grammar. */
typedef struct weft__gram_matcher weft__gram_matcher;

weft_status weft__gram_matcher_create(weft__gram_tables *g, weft__gram_matcher **out, weft_error *err);
/* Another one at the same place; its cost is that of the open rules, not of the text. */
weft_status weft__gram_matcher_copy(const weft__gram_matcher *m, weft__gram_matcher **out, weft_error *err);
void weft__gram_matcher_destroy(weft__gram_matcher **m);

/* Goes on by a token. An end token is taken where the grammar may end, and ends it. Fails with WEFT_ARGUMENT for a
 * token that the grammar does not allow here, WEFT_LIMIT when there are too many ways to go on, WEFT_NO_MEMORY; the
 * text has not changed then. Work is counted: a text has a credit, to which each token adds; masks and tokens take from
 * it, and WEFT_LIMIT comes too when it is spent. So a text holds up those that wait for its masks by some tenth of a
 * millisecond a token, and some ten milliseconds once. Tables do not count, for which texts share them must not matter;
 * those of one mask have a bound of their own. */
weft_status weft__gram_matcher_accept(weft__gram_matcher *m, int32_t token, weft_error *err);
/* Goes on by bytes, as accept does by those of a token (token_trie.h). */
weft_status weft__gram_matcher_feed(weft__gram_matcher *m, const char *bytes, size_t n, weft_error *err);
/* Back to the beginning of a text. */
weft_status weft__gram_matcher_restart(weft__gram_matcher *m, weft_error *err);
/* The bytes up to a node of the trie were read: sets the bits of the tokens that end there, and of those below of which
 * the other bytes may come next. Takes its work from a credit of its own. */
weft_status weft__gram_matcher_mask_below(weft__gram_matcher *m, uint32_t node, uint64_t *bits, weft_error *err);
/* Sets bit t of bits[(n_tokens + 63) / 64] for each token t that may come next, and clears the others. Fails with
 * WEFT_STATE, naming the place, when there is none; WEFT_LIMIT or WEFT_NO_MEMORY as above. */
weft_status weft__gram_matcher_mask(weft__gram_matcher *m, uint64_t *bits, weft_error *err);
/* The bytes with which every text goes on that is one of the grammar: stores the first of them, at most n, and returns
 * how many. The matcher stays where it is. Takes its work from a credit of its own, and tells less where that is
 * spent. */
size_t weft__gram_matcher_forced(weft__gram_matcher *m, char *bytes, size_t n);
/* 0: the grammar wants more; 1: the text may end here; 2: and nothing may follow. */
int weft__gram_matcher_complete(const weft__gram_matcher *m);

#endif
