// SPDX-License-Identifier: Apache-2.0
/* grammar_cache.c: compiled grammars by their text, so that a schema or a set of tools that comes with every request is
 * compiled once. Those used longest ago go where all together have more bytes than they may; whoever uses one keeps
 * his. Invariant: texts are compared byte by byte, so that no request gets the grammar of another text. Any thread. */
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "server/server.h"
#include "text/strings.h"

struct weft__server_cached_grammar {
    struct weft__server_cached_grammar *next; /* used longer ago */
    weft_grammar *grammar;
    uint64_t hash;
    uint32_t kind;
    size_t n;
    char text[]; /* [n] */
};
typedef struct weft__server_cached_grammar entry;

void weft__server_grammar_cache_begin(weft__server_grammar_cache *c, size_t most_bytes)
{
    *c = (weft__server_grammar_cache){.most_bytes = most_bytes, .secret = weft__rng_entropy()};
    pthread_mutex_init(&c->lock, NULL);
}

static void free_entry(entry *e)
{
    weft_grammar_free(&e->grammar);
    weft__free(e);
}

void weft__server_grammar_cache_end(weft__server_grammar_cache *c)
{
    weft__server_grammar_cache_clear(c);
    pthread_mutex_destroy(&c->lock);
}

/* The place of the pointer to it. With the lock, as the next three. */
static entry **find(weft__server_grammar_cache *c, const weft__server_grammar_key *key, uint64_t hash)
{
    entry **at = &c->first;
    for (; *at; at = &(*at)->next)
        if ((*at)->hash == hash && (*at)->kind == key->kind && (*at)->n == key->n &&
            (!key->n || !memcmp((*at)->text, key->text, key->n)))
            break;
    return at;
}

static void move_to_front(weft__server_grammar_cache *c, entry **at)
{
    entry *e = *at;
    *at = e->next;
    e->next = c->first;
    c->first = e;
}

/* Counts anew, for grammars grow while they are used; what no longer fits is taken out and returned. */
static entry *trim(weft__server_grammar_cache *c)
{
    entry **at = &c->first;
    c->n_bytes = 0;
    c->n = 0;
    for (; *at && c->n < WEFT__SERVER_GRAMMARS_MAX; at = &(*at)->next) {
        size_t bytes = sizeof **at + (*at)->n + (size_t)weft_grammar_bytes((*at)->grammar);
        if (bytes > c->most_bytes - c->n_bytes) break;
        c->n_bytes += bytes;
        c->n++;
    }
    entry *rest = *at;
    *at = NULL;
    for (entry *e = rest; e; e = e->next) c->n_dropped++;
    return rest;
}

static void free_list(entry *e)
{
    for (entry *next; e; e = next) {
        next = e->next;
        free_entry(e);
    }
}

void weft__server_grammar_cache_clear(weft__server_grammar_cache *c)
{
    pthread_mutex_lock(&c->lock);
    entry *all = c->first;
    c->first = NULL;
    c->n = c->n_bytes = 0;
    pthread_mutex_unlock(&c->lock);
    free_list(all);
}

weft_grammar *weft__server_grammar_cache_find(weft__server_grammar_cache *c, const weft__server_grammar_key *key)
{
    const uint64_t hash = weft__strings_hash(key->text, key->n, c->secret);
    weft_grammar *g = NULL;
    entry *rest = NULL;
    pthread_mutex_lock(&c->lock);
    entry **at = find(c, key, hash);
    if (*at) {
        move_to_front(c, at);
        g = weft_grammar_retain(c->first->grammar);
        c->n_found++;
        rest = trim(c);
    }
    pthread_mutex_unlock(&c->lock);
    free_list(rest);
    return g;
}

void weft__server_grammar_cache_put(weft__server_grammar_cache *c, const weft__server_grammar_key *key,
                                    const weft_grammar *grammar)
{
    entry *e = weft__alloc(sizeof *e + key->n), *rest;
    if (e) {
        *e = (entry){.grammar = weft_grammar_retain(grammar),
                     .hash = weft__strings_hash(key->text, key->n, c->secret),
                     .kind = key->kind,
                     .n = key->n};
        if (key->n) memcpy(e->text, key->text, key->n);
    }
    pthread_mutex_lock(&c->lock);
    c->n_compiled++;
    if (e) {
        e->next = c->first;
        c->first = e;
    }
    rest = trim(c);
    pthread_mutex_unlock(&c->lock);
    free_list(rest);
}

void weft__server_grammar_cache_count(weft__server_grammar_cache *c, weft__server_grammar_counts *out)
{
    pthread_mutex_lock(&c->lock);
    *out = (weft__server_grammar_counts){c->n, c->n_bytes, c->n_compiled, c->n_found, c->n_dropped};
    pthread_mutex_unlock(&c->lock);
}
