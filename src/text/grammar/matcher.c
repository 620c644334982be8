// SPDX-License-Identifier: Apache-2.0
/* matcher.c: masks from tables, and texts on their way (matcher.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "text/grammar/matcher_parts.h"

enum {
    CREDIT = 1 << 21,           /* edges and links that masks and tokens of a text may take at first, and may save up */
    CREDIT_PER_TOKEN = 1 << 15, /* what each token adds; grammars for data take some hundreds */
    TABLE_WORK = 1 << 22,       /* the same for tables that a mask makes first: each is made once */
    MIN_COMPACT = 1024          /* frames */
};

static weft_status matcher_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for a text in a grammar");
}

/* Where the text is, for messages. */
#define PLACE (WEFT__GRAM_LABEL + 64)
static const char *place(const weft__gram_matcher *m, char out[PLACE])
{
    char label[WEFT__GRAM_LABEL];
    int32_t state = m->run.n_ways ? m->run.ways[0].state : m->g->a->starts[m->g->a->root];
    int32_t rule = m->g->a->states[state].rule;
    snprintf(out, PLACE, "at byte %llu of the text, in %s", (unsigned long long)m->n_bytes,
             weft__gram_label(weft__gram_automaton_name(m->g->a, rule), label));
    return out;
}

/* Reports and clears what made the run stop. */
static weft_status stopped(weft__gram_matcher *m, weft_error *err)
{
    char where[PLACE];
    weft_status st = m->run.status;
    m->run.status = WEFT_OK;
    if (st == WEFT_NO_MEMORY) return matcher_no_memory(err);
    return weft_fail(err, st, "grammar: too many ways to go on %s; make it less ambiguous", place(m, where));
}

/* Everything but the ways. */
static weft_status create_empty(weft__gram_tables *g, weft__gram_matcher **out, weft_error *err)
{
    *out = NULL;
    weft__gram_matcher *m = weft__alloc_zero(1, sizeof *m);
    if (!m) return matcher_no_memory(err);
    m->g = weft__gram_tables_retain(g);
    m->compact_at = MIN_COMPACT;
    m->levels = weft__alloc_array((size_t)g->trie->max_depth + 1, sizeof *m->levels);
    m->bits = weft__alloc_array(weft__gram_n_words(g), sizeof *m->bits);
    m->piece = weft__alloc_array(g->trie->max_depth, 1);
    if (!weft__gram_run_init(&m->run, g->a) || !m->levels || !m->bits || !m->piece) {
        weft__gram_matcher_destroy(&m);
        return matcher_no_memory(err);
    }
    *out = m;
    return WEFT_OK;
}

weft_status weft__gram_matcher_restart(weft__gram_matcher *m, weft_error *err)
{
    weft__gram_cut(&m->run, &(weft__gram_level){{0, 0, 0}, 1, 0}); /* the bottom frame stays */
    m->ended = 0;
    m->n_bytes = 0;
    m->run.too_deep = 0;
    m->run.work = m->credit = CREDIT;
    m->done = weft__gram_run_start(&m->run).done;
    return m->run.status ? stopped(m, err) : WEFT_OK;
}

weft_status weft__gram_matcher_create(weft__gram_tables *g, weft__gram_matcher **out, weft_error *err)
{
    weft_status st = create_empty(g, out, err);
    if (!st) st = weft__gram_matcher_restart(*out, err);
    if (st) weft__gram_matcher_destroy(out);
    return st;
}

weft_status weft__gram_matcher_copy(const weft__gram_matcher *m, weft__gram_matcher **out, weft_error *err)
{
    weft_status st = create_empty(m->g, out, err);
    if (st) return st;
    weft__gram_run *r = &(*out)->run;
    const weft__gram_run *from = &m->run;
    if (!weft__grow(&r->ways, &r->ways_capacity, from->n_ways, sizeof *r->ways) ||
        !weft__grow(&r->frames, &r->frames_capacity, from->n_frames, sizeof *r->frames) ||
        !weft__grow(&r->links, &r->links_capacity, from->n_links, sizeof *r->links)) {
        weft__gram_matcher_destroy(out);
        return matcher_no_memory(err);
    }
    if (from->n_ways) memcpy(r->ways, from->ways, from->n_ways * sizeof *r->ways);
    memcpy(r->frames, from->frames, from->n_frames * sizeof *r->frames);
    if (from->n_links) memcpy(r->links, from->links, from->n_links * sizeof *r->links);
    r->n_ways = from->n_ways;
    r->n_frames = from->n_frames;
    r->n_links = from->n_links;
    r->too_deep = from->too_deep;
    (*out)->done = m->done;
    (*out)->ended = m->ended;
    (*out)->n_bytes = m->n_bytes;
    (*out)->compact_at = m->compact_at;
    (*out)->credit = m->credit;
    return WEFT_OK;
}

void weft__gram_matcher_destroy(weft__gram_matcher **p)
{
    weft__gram_matcher *m = p ? *p : NULL;
    if (!m) return;
    weft__free(m->piece);
    weft__free(m->escapes);
    weft__free(m->order);
    weft__free(m->bits);
    weft__free(m->levels);
    weft__gram_run_free(&m->run);
    weft__gram_tables_release(&m->g);
    weft__free(m);
    *p = NULL;
}

int weft__gram_matcher_complete(const weft__gram_matcher *m)
{
    if (m->ended || (m->done && m->run.n_ways == 0)) return 2;
    return m->done;
}

static int is_end(const weft__gram_trie *t, int32_t token)
{
    for (int32_t i = 0; i < t->n_ends; i++)
        if (t->ends[i] == token) return 1;
    return 0;
}

/* Steps through the bytes; the last set, empty where they do not fit, lies behind all others. */
static weft__gram_set step_all(weft__gram_run *r, const unsigned char *bytes, size_t n)
{
    weft__gram_set set = {0, r->n_ways, 0};
    r->too_deep = 0;
    for (size_t i = 0; i < n && !r->status && (i == 0 || set.begin < set.end); i++) {
        weft__gram_set next = weft__gram_run_step(r, set, bytes[i]);
        if (i + 1 < n) next.done = 0;
        set = next;
    }
    return set;
}

static void go_to(weft__gram_matcher *m, weft__gram_set set, size_t n)
{
    weft__gram_run *r = &m->run;
    memmove(r->ways, r->ways + set.begin, (set.end - set.begin) * sizeof *r->ways);
    r->n_ways = set.end - set.begin;
    m->done = set.done;
    m->n_bytes += n;
    if (r->n_frames > m->compact_at && weft__gram_run_compact(r))
        m->compact_at = 2 * r->n_frames > MIN_COMPACT ? 2 * r->n_frames : MIN_COMPACT;
}

/* Goes on by bytes, which are those of `token`; -1: of none. */
static weft_status go_on(weft__gram_matcher *m, const unsigned char *bytes, size_t n, int32_t token, weft_error *err)
{
    weft__gram_run *r = &m->run;
    char where[PLACE];
    weft__gram_level before = {{0, r->n_ways, 0}, r->n_frames, r->n_links};
    r->work = m->credit;
    weft__gram_set set = step_all(r, bytes, n);
    m->credit = r->work;
    if (r->status || (set.begin == set.end && !set.done)) {
        weft__gram_cut(r, &before);
        if (r->status) return stopped(m, err);
        if (token < 0) return weft_fail(err, WEFT_ARGUMENT, "grammar: the text does not fit %s", place(m, where));
        return weft_fail(err, WEFT_ARGUMENT, "grammar: token %d does not fit %s", token, place(m, where));
    }
    go_to(m, set, n);
    m->credit = m->credit + CREDIT_PER_TOKEN < CREDIT ? m->credit + CREDIT_PER_TOKEN : CREDIT;
    return WEFT_OK;
}

weft_status weft__gram_matcher_feed(weft__gram_matcher *m, const char *bytes, size_t n, weft_error *err)
{
    if (n && m->ended) return weft_fail(err, WEFT_ARGUMENT, "grammar: the text has ended");
    return n ? go_on(m, (const unsigned char *)bytes, n, -1, err) : WEFT_OK;
}

/* The one byte that all ways of the set go on with; -1: there is a choice, and to end is one. */
static int only_byte(const weft__gram_run *r, weft__gram_set set)
{
    const weft__gram_automaton *a = r->a;
    int byte = -1;
    if (set.done) return -1;
    for (size_t i = set.begin; i < set.end; i++) {
        const weft__gram_state *s = &a->states[r->ways[i].state];
        for (uint32_t e = s[0].edge; e < s[1].edge; e++) {
            if (a->edges[e].lo != a->edges[e].hi || (byte >= 0 && a->edges[e].lo != byte)) return -1;
            byte = a->edges[e].lo;
        }
    }
    return byte;
}

size_t weft__gram_matcher_forced(weft__gram_matcher *m, char *bytes, size_t n)
{
    weft__gram_run *r = &m->run;
    const weft__gram_level before = {{0, r->n_ways, 0}, r->n_frames, r->n_links};
    const int was_too_deep = r->too_deep;
    weft__gram_set set = {0, r->n_ways, m->done};
    size_t n_forced = 0;
    r->work = CREDIT_PER_TOKEN;
    for (int byte; !m->ended && n_forced < n && (byte = only_byte(r, set)) >= 0; n_forced++) {
        set = weft__gram_run_step(r, set, (unsigned char)byte);
        if (r->status) break;
        bytes[n_forced] = (char)byte;
    }
    weft__gram_cut(r, &before);
    r->status = WEFT_OK;
    r->too_deep = was_too_deep;
    return n_forced;
}

weft_status weft__gram_matcher_accept(weft__gram_matcher *m, int32_t token, weft_error *err)
{
    const weft__gram_trie *t = m->g->trie;
    char where[PLACE];
    if (token < 0 || token >= t->n_tokens)
        return weft_fail(err, WEFT_ARGUMENT, "grammar: token %d: the vocabulary has ids 0 to %d", token,
                         t->n_tokens - 1);
    if (m->ended) return weft_fail(err, WEFT_ARGUMENT, "grammar: token %d: the text has ended", token);
    if (m->done && is_end(t, token)) {
        m->ended = 1;
        return WEFT_OK;
    }
    uint32_t node = t->node_of[token];
    if (node == WEFT__GRAM_TRIE_NONE)
        return weft_fail(err, WEFT_ARGUMENT, "grammar: token %d is not allowed %s", token, place(m, where));
    size_t n = t->nodes[node].depth;
    for (size_t i = n; i-- > 0; node = t->nodes[node].parent) m->piece[i] = t->nodes[node].byte;
    return go_on(m, m->piece, n, token, err);
}

/* And in the order they had, which `frame` stands for. */
static int by_state(const void *x, const void *y)
{
    const weft__gram_way *a = x, *b = y;
    if (a->state != b->state) return a->state < b->state ? -1 : 1;
    return (a->frame > b->frame) - (a->frame < b->frame);
}

/* Allows what n ways, all in one state, allow; too much where r->too_deep comes of it. */
static void mask_state(weft__gram_matcher *m, const weft__gram_way *ways, size_t n, size_t *for_tables, uint64_t *bits)
{
    const weft__gram_trie *t = m->g->trie;
    weft__gram_run *r = &m->run;
    uint32_t depth = 0;
    int own;
    for (size_t i = 0; i < n; i++)
        if (r->frames[ways[i].frame].depth > depth) depth = r->frames[ways[i].frame].depth;
    m->credit = r->work;
    r->work = *for_tables;
    weft__gram_table *table = weft__gram_table_of(m, ways[0].state, &own);
    *for_tables = r->work;
    r->work = m->credit;
    if (!table) return;
    if (table->depth > m->g->a->depth - depth) {
        r->too_deep = 1;
    } else {
        size_t words = weft__gram_n_words(m->g);
        int listed = table->n_tokens != UINT32_MAX;
        const uint32_t *list = (const uint32_t *)(table->data + (listed ? 0 : words));
        for (size_t w = 0; table->text.set && w < words; w++) bits[w] |= weft__gram_text_word(&table->text, w);
        for (size_t w = 0; !listed && w < words; w++) bits[w] |= table->data[w];
        for (uint32_t i = 0; listed && i < table->n_tokens; i++)
            weft__gram_allow(bits, (int32_t)list[table->n_escapes + i]);
        weft__gram_level before = {{0, r->n_ways, 0}, r->n_frames, r->n_links};
        weft__gram_set callers = {0};
        if (table->n_escapes) callers = weft__gram_run_return(r, ways, n);
        for (uint32_t i = 0; i < table->n_escapes && callers.begin < callers.end && !r->status; i++)
            weft__gram_walk(m, callers, list[i] + 1, t->nodes[list[i]].next, t->nodes[list[i]].depth, bits, NULL, 0, 0);
        weft__gram_cut(r, &before);
    }
    if (own) weft__free(table);
}

static int any(const uint64_t *bits, size_t words)
{
    for (size_t w = 0; w < words; w++)
        if (bits[w]) return 1;
    return 0;
}

weft_status weft__gram_matcher_mask(weft__gram_matcher *m, uint64_t *bits, weft_error *err)
{
    const weft__gram_trie *t = m->g->trie;
    weft__gram_run *r = &m->run;
    size_t n = r->n_ways, for_tables = TABLE_WORK;
    int was_too_deep = r->too_deep;
    char where[PLACE];
    memset(bits, 0, weft__gram_n_words(m->g) * sizeof *bits);
    if (m->ended) return weft_fail(err, WEFT_STATE, "grammar: the text has ended; no token may follow");
    if (!weft__grow(&m->order, &m->order_capacity, n, sizeof *m->order)) return matcher_no_memory(err);
    for (size_t i = 0; i < n; i++) m->order[i] = (weft__gram_way){r->ways[i].state, (uint32_t)i};
    if (n > 1) qsort(m->order, n, sizeof *m->order, by_state);
    for (size_t i = 0; i < n; i++) m->order[i].frame = r->ways[m->order[i].frame].frame;
    r->work = m->credit;
    r->too_deep = 0;
    for (size_t i = 0, end; i < n && !r->status && !r->too_deep; i = end) {
        for (end = i + 1; end < n && m->order[end].state == m->order[i].state;) end++;
        mask_state(m, m->order + i, end - i, &for_tables, bits);
    }
    if (r->too_deep && !r->status) {
        /* What the limit leaves out depends on which of all ways calls a rule first: they are walked together, as
         * accept does. Where no state alone meets the limit, all together do not: they are taken in the same order, so
         * that a frame made first by a way of some state has been made as deep with that state alone. */
        memset(bits, 0, weft__gram_n_words(m->g) * sizeof *bits);
        weft__gram_walk(m, (weft__gram_set){0, n, 0}, 0, t->n_nodes, 0, bits, NULL, 0, 0);
    }
    r->too_deep |= was_too_deep;
    m->credit = r->work;
    if (r->status) {
        memset(bits, 0, weft__gram_n_words(m->g) * sizeof *bits);
        return stopped(m, err);
    }
    for (int32_t i = 0; m->done && i < t->n_ends; i++) weft__gram_allow(bits, t->ends[i]);
    if (any(bits, weft__gram_n_words(m->g))) return WEFT_OK;
    return weft_fail(err, WEFT_STATE, "grammar: no token of the vocabulary can go on %s%s", place(m, where),
                     r->too_deep ? ", where rules are nested too deep" : "");
}

weft_status weft__gram_matcher_mask_below(weft__gram_matcher *m, uint32_t node, uint64_t *bits, weft_error *err)
{
    const weft__gram_trie_node *x = &m->g->trie->nodes[node];
    for (uint32_t k = x[0].token; k < x[1].token; k++) weft__gram_allow(bits, m->g->trie->ids[k]);
    m->run.work = CREDIT;
    weft__gram_walk(m, (weft__gram_set){0, m->run.n_ways, 0}, node + 1, x->next, x->depth, bits, NULL, 0, 0);
    return m->run.status ? stopped(m, err) : WEFT_OK;
}
