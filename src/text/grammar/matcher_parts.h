// SPDX-License-Identifier: Apache-2.0
/* matcher_parts.h: what the files of a matcher share. */
#ifndef WEFT_TEXT_GRAMMAR_MATCHER_PARTS_H
#define WEFT_TEXT_GRAMMAR_MATCHER_PARTS_H

#include "text/grammar/matcher.h"
#include "text/grammar/run.h"
#include "text/grammar/spans.h"

/* Tokens that are all of some classes of characters. Bitmaps that others own. */
typedef struct weft__gram_text_tokens {
    const weft__gram_token_set *set; /* NULL: there are none */
    const uint64_t *at_most;         /* of the set only those; NULL: all */
    uint32_t n;                      /* characters that they have at most; UINT32_MAX: any number */
} weft__gram_text_tokens;

/* What a state allows, whichever rule called its own. */
typedef struct weft__gram_table {
    uint32_t depth;     /* calls within each other that its tokens make at most */
    uint32_t n_escapes; /* nodes at which the rule may end, with more of the trie below */
    uint32_t n_tokens;  /* listed; UINT32_MAX: a bitmap instead */
    size_t n_bytes;
    weft__gram_text_tokens text; /* tokens that it allows beside those below */
    uint64_t data[];             /* the bitmap or none, then the escapes, then the list of tokens, as uint32_t */
} weft__gram_table;

struct weft__gram_tables {
    atomic_size_t refs;
    weft__gram_automaton *a;
    weft__gram_trie *trie;
    weft__gram_span *spans;              /* [a->n_states] */
    int32_t *alike;                      /* [a->n_states] the state whose table it has */
    int root_called;                     /* else nothing follows where the root's rule ends */
    _Atomic(weft__gram_table *) *tables; /* [a->n_states] */
    weft__gram_token_sets sets;
    atomic_size_t table_bytes;
};

/* A depth of the walk: what is left after the bytes up to there. */
typedef struct weft__gram_level {
    weft__gram_set set;
    size_t n_frames, n_links;
    weft__gram_span span; /* of one of the ways, n 0: none has one; what all of them read */
    uint32_t n_in_set;    /* characters so far, all of the classes of the walk's text; UINT32_MAX: not all */
} weft__gram_level;

struct weft__gram_matcher {
    weft__gram_tables *g;
    weft__gram_run run; /* ways[0..n_ways): where the text is */
    int done, ended;
    uint64_t n_bytes;
    size_t compact_at;        /* frames */
    size_t credit;            /* work that the text may still take */
    weft__gram_level *levels; /* [max_depth + 1] */
    uint64_t *bits;           /* [n_words] */
    weft__gram_way *order;
    size_t order_capacity;
    uint32_t *escapes;
    size_t n_escapes, escapes_capacity;
    unsigned char *piece; /* [max_depth] */
};

static inline size_t weft__gram_n_words(const weft__gram_tables *g)
{
    return ((size_t)g->trie->n_tokens + 63) / 64;
}

/* Word w of the bitmap of some text's tokens, which there are. */
static inline uint64_t weft__gram_text_word(const weft__gram_text_tokens *text, size_t w)
{
    return text->set->bits[w] & (text->at_most ? text->at_most[w] : UINT64_MAX);
}

static inline void weft__gram_allow(uint64_t *bits, int32_t token)
{
    bits[token >> 6] |= (uint64_t)1 << (token & 63);
}

/* Back to what there was up to a depth of the walk. */
static inline void weft__gram_cut(weft__gram_run *r, const weft__gram_level *l)
{
    r->n_ways = l->set.end;
    r->n_frames = l->n_frames;
    r->n_links = l->n_links;
}

/* ---- walk.c ---- */

/* Allows the tokens at nodes [from, to), whose parents stand at depth `base`, that fit on from `start`; those of
 * `text`, where that is not NULL, may be left out; no others of its classes fit when `exact`. Notes the nodes at
 * which the bottom rule may end when `escapes`. Leaves the run as it was, but for run.status. */
void weft__gram_walk(weft__gram_matcher *m, weft__gram_set start, uint32_t from, uint32_t to, uint32_t base,
                     uint64_t *bits, const weft__gram_text_tokens *text, int exact, int escapes);

/* ---- tables.c ---- */

/* The state's table, made and kept when it is new. *own: the caller frees it. NULL with run.status set on failure. */
weft__gram_table *weft__gram_table_of(weft__gram_matcher *m, int32_t state, int *own);

#endif
