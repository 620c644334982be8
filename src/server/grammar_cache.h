// SPDX-License-Identifier: Apache-2.0
/* grammar_cache.h: compiled grammars of a model, found again by their text. Any thread. */
#ifndef WEFT_SERVER_GRAMMAR_CACHE_H
#define WEFT_SERVER_GRAMMAR_CACHE_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/text.h"

enum { WEFT__SERVER_GRAMMARS_MAX = 1024, WEFT__SERVER_GRAMMAR_BYTES = 256 << 20 };

/* What a grammar is compiled of: text[0..n) of a kind, as response_submit.c numbers them. */
typedef struct weft__server_grammar_key {
    uint32_t kind;
    const char *text;
    size_t n;
} weft__server_grammar_key;

typedef struct weft__server_grammar_counts {
    size_t n, n_bytes;                       /* held now; bytes as of the latest use */
    uint64_t n_compiled, n_found, n_dropped; /* since the start */
} weft__server_grammar_counts;

typedef struct weft__server_grammar_cache {
    pthread_mutex_t lock;                      /* all below */
    struct weft__server_cached_grammar *first; /* the latest used */
    size_t n, n_bytes, most_bytes;
    uint64_t n_compiled, n_found, n_dropped, secret; /* of the hash */
} weft__server_grammar_cache;

void weft__server_grammar_cache_begin(weft__server_grammar_cache *c, size_t most_bytes);
void weft__server_grammar_cache_end(weft__server_grammar_cache *c);
/* Lets go of all that are kept: those of a tokenizer that ends. */
void weft__server_grammar_cache_clear(weft__server_grammar_cache *c);
/* The grammar of this key, of which the caller becomes an owner; NULL: it is not there. */
weft_grammar *weft__server_grammar_cache_find(weft__server_grammar_cache *c, const weft__server_grammar_key *key);
/* Keeps one that was compiled, as one more owner, where there is memory and it fits. Copies the text. */
void weft__server_grammar_cache_put(weft__server_grammar_cache *c, const weft__server_grammar_key *key,
                                    const weft_grammar *grammar);
void weft__server_grammar_cache_count(weft__server_grammar_cache *c, weft__server_grammar_counts *out);

#endif
