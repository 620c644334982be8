// SPDX-License-Identifier: Apache-2.0
/* tables.c: tables per state of a grammar over a vocabulary (matcher.h). They are published by compare-and-swap: two
 * threads may make the same one, and the loser's is dropped. */
#include <string.h>

#include "base/alloc.h"
#include "text/grammar/alike.h"
#include "text/grammar/matcher_parts.h"

enum {
    AHEAD_WORK = 1 << 20,  /* edges and links that all tables made ahead may take */
    TABLE_BYTES = 64 << 20 /* of all tables of a grammar; further ones are made for each use */
};

/* Tokens that a span allows: of all such spans the set is one, and so are those of a length. None where it is not worth
 * it, or can't be had. */
static weft__gram_text_tokens span_tokens(weft__gram_tables *g, weft__gram_span span)
{
    if (span.n == 0 || !(span.classes & (span.classes - 1))) return (weft__gram_text_tokens){0};
    return (weft__gram_text_tokens){weft__gram_token_sets_get(&g->sets, g->trie, span.classes),
                                    weft__gram_token_lengths_at_most(&g->trie->lengths, span.n),
                                    span.n < WEFT__GRAM_ANY_LENGTH ? span.n : UINT32_MAX};
}

static weft__gram_table *pack_table(const weft__gram_matcher *m, uint32_t depth, const weft__gram_text_tokens *text)
{
    size_t words = weft__gram_n_words(m->g), n_tokens = 0;
    for (size_t w = 0; text->set && w < words; w++) m->bits[w] &= ~weft__gram_text_word(text, w);
    for (size_t w = 0; w < words; w++)
        if (m->bits[w]) n_tokens += (size_t)__builtin_popcountll(m->bits[w]);
    int listed = n_tokens < words; /* half the bytes of the bitmap */
    size_t n_bytes = sizeof(weft__gram_table) + (listed ? n_tokens * sizeof(uint32_t) : words * sizeof(uint64_t)) +
                     m->n_escapes * sizeof(uint32_t);
    weft__gram_table *t = weft__alloc(n_bytes);
    if (!t) return NULL;
    *t = (weft__gram_table){depth, (uint32_t)m->n_escapes, listed ? (uint32_t)n_tokens : UINT32_MAX, n_bytes, *text};
    uint32_t *out = (uint32_t *)(t->data + (listed ? 0 : words));
    if (!listed) memcpy(t->data, m->bits, words * sizeof(uint64_t));
    if (m->n_escapes) memcpy(out, m->escapes, m->n_escapes * sizeof *out);
    out += m->n_escapes;
    for (size_t w = 0; listed && w < words; w++)
        for (uint64_t word = m->bits[w]; word; word &= word - 1)
            *out++ = (uint32_t)(64 * w) + (uint32_t)__builtin_ctzll(word);
    return t;
}

/* NULL with r->status set on failure. */
static weft__gram_table *make_table(weft__gram_matcher *m, int32_t state)
{
    weft__gram_tables *g = m->g;
    weft__gram_run *r = &m->run;
    size_t begin = r->n_ways;
    uint32_t deepest = r->deepest;
    int too_deep = r->too_deep, escapes = g->root_called || g->a->states[state].rule != g->a->root;
    weft__gram_text_tokens text = span_tokens(g, g->spans[state]);
    weft__gram_table *t = NULL;
    memset(m->bits, 0, weft__gram_n_words(g) * sizeof *m->bits);
    m->n_escapes = 0;
    r->deepest = 0;
    r->too_deep = 0;
    if (weft__grow(&r->ways, &r->ways_capacity, begin + 1, sizeof *r->ways)) {
        r->ways[r->n_ways++] = (weft__gram_way){state, 0};
        weft__gram_walk(m, (weft__gram_set){begin, begin + 1, 0}, 0, g->trie->n_nodes, 0, m->bits,
                        text.set ? &text : NULL, g->spans[state].ends, escapes);
        if (!r->status && !(t = pack_table(m, r->too_deep ? UINT32_MAX : r->deepest, &text)))
            r->status = WEFT_NO_MEMORY;
    } else {
        r->status = WEFT_NO_MEMORY;
    }
    r->n_ways = begin;
    r->deepest = deepest;
    r->too_deep = too_deep;
    return t;
}

weft__gram_table *weft__gram_table_of(weft__gram_matcher *m, int32_t state, int *own)
{
    weft__gram_tables *g = m->g;
    state = g->alike[state];
    weft__gram_table *t = atomic_load_explicit(&g->tables[state], memory_order_acquire), *other = NULL;
    *own = 0;
    if (t || !(t = make_table(m, state))) return t;
    if (atomic_fetch_add(&g->table_bytes, t->n_bytes) + t->n_bytes > TABLE_BYTES) {
        atomic_fetch_sub(&g->table_bytes, t->n_bytes);
        *own = 1;
    } else if (!atomic_compare_exchange_strong(&g->tables[state], &other, t)) {
        atomic_fetch_sub(&g->table_bytes, t->n_bytes);
        weft__free(t);
        t = other;
    }
    return t;
}

/* ---- grammars ---- */

/* Makes tables in the order of the states until the work is spent. */
static weft_status make_ahead(weft__gram_tables *g, weft_error *err)
{
    weft__gram_matcher *m;
    size_t left = AHEAD_WORK;
    weft_status st = weft__gram_matcher_create(g, &m, err);
    for (size_t i = 0; !st && i < g->a->n_states && left; i++) {
        int own;
        if (g->a->states[i].edge == g->a->states[i + 1].edge || g->alike[i] != (int32_t)i) continue;
        m->run.work = left;
        weft__gram_table *t = weft__gram_table_of(m, (int32_t)i, &own);
        size_t fixed = 1000 + weft__gram_n_words(g); /* also where hardly any token fits */
        left = m->run.work > fixed ? m->run.work - fixed : 0;
        if (own) weft__free(t);
        if (own || m->run.status == WEFT_LIMIT) break;
        if (!t) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
    }
    weft__gram_matcher_destroy(&m);
    return st;
}

weft_status weft__gram_tables_create(weft__gram_automaton *a, weft__gram_trie *trie, weft__gram_tables **out,
                                     weft_error *err)
{
    *out = NULL;
    weft__gram_tables *g = weft__alloc_zero(1, sizeof *g);
    if (!g) {
        weft__gram_automaton_destroy(&a);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
    }
    atomic_init(&g->refs, 1);
    atomic_init(&g->table_bytes, 0);
    g->a = a;
    g->trie = weft__gram_trie_retain(trie);
    g->root_called = weft__gram_is_called(a, a->root);
    g->spans = weft__gram_spans_make(a);
    g->alike = weft__gram_alike_make(a, trie->max_depth);
    g->tables = g->spans && g->alike ? weft__alloc_array(a->n_states, sizeof *g->tables) : NULL;
    for (size_t i = 0; g->tables && i < a->n_states; i++) atomic_init(&g->tables[i], NULL);
    weft_status st = g->tables ? make_ahead(g, err) : weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
    if (st) weft__gram_tables_release(&g);
    *out = g;
    return st;
}

weft__gram_tables *weft__gram_tables_retain(weft__gram_tables *g)
{
    atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
    return g;
}

void weft__gram_tables_release(weft__gram_tables **p)
{
    weft__gram_tables *g = p ? *p : NULL;
    if (!g) return;
    *p = NULL;
    if (atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) > 1) return;
    for (size_t i = 0; g->tables && i < g->a->n_states; i++) weft__free(atomic_load(&g->tables[i]));
    weft__gram_token_sets_free(&g->sets);
    weft__free(g->tables);
    weft__free(g->alike);
    weft__free(g->spans);
    weft__gram_trie_release(&g->trie);
    weft__gram_automaton_destroy(&g->a);
    weft__free(g);
}

int32_t weft__gram_tables_n_tokens(const weft__gram_tables *g)
{
    return g->trie->n_tokens;
}

const weft__gram_trie *weft__gram_tables_trie(const weft__gram_tables *g)
{
    return g->trie;
}

size_t weft__gram_tables_bytes(const weft__gram_tables *g)
{
    return sizeof *g + g->a->n_states * (sizeof *g->tables + sizeof *g->alike + sizeof *g->spans) +
           weft__gram_automaton_bytes(g->a) + weft__gram_token_sets_bytes(&g->sets, g->trie) +
           atomic_load(&g->table_bytes);
}
