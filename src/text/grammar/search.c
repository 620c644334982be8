// SPDX-License-Identifier: Apache-2.0
/* search.c: the automaton of a search, by subset construction (Rabin and Scott 1959; for plain words it is that of
 * Aho and Corasick 1975), and texts on their way through it (search.h). */
#include "text/grammar/search.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { MAX_MEMBERS = 1 << 20, /* of all sets */ MAX_WORK = 1 << 26 /* members compared: some tens of milliseconds */ };
/* What a set looks for: words, and where skipping begins; where that ends. Within a control token, too, where nothing
 * begins. */
enum { LOOKING, SKIPPING, WITHIN };

/* The sets of states, each sorted, and led by what it looks for. States of skip_from stand behind those of words, and
 * those of patterns behind them. */
typedef struct search_sets {
    const weft__gram_automaton *words, *from, *to;
    const weft__gram_patterns *patterns;
    int32_t n_words, n_from; /* states */
    int32_t *pool;
    size_t n_pool, pool_capacity;
    size_t *at; /* where set i begins; the end is at[i + 1] */
    size_t n, at_capacity;
    uint16_t *next;
    size_t next_capacity;
    uint8_t *looks; /* of each set */
    size_t looks_capacity, work;
    weft_status status;
} search_sets;

static int sets_fail(search_sets *s, weft_status status)
{
    if (!s->status) s->status = status;
    return 0;
}

static int by_number(const void *x, const void *y)
{
    int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;
    return (a > b) - (a < b);
}

/* The automaton that a member of a set is a state of, and its number there. */
static const weft__gram_automaton *automaton_of(const search_sets *s, int32_t what, int32_t *state)
{
    if (what & SKIPPING) return s->to;
    if (*state < s->n_words) return s->words;
    *state -= s->n_words;
    if (*state < s->n_from) return s->from;
    *state -= s->n_from;
    return s->patterns->a;
}

/* What the set pool[begin..n_pool) looks for, for weft__gram_search. */
static uint8_t looks_of(const search_sets *s, size_t begin)
{
    const int32_t what = s->pool[begin], first = s->n_words + s->n_from;
    if (what != LOOKING) return what == WITHIN ? WEFT__GRAM_SEARCH_GOES_ON : 0;
    for (size_t k = begin + 1; k < s->n_pool; k++)
        if (s->pool[k] >= first && s->patterns->ends[s->pool[k] - first])
            return WEFT__GRAM_SEARCH_LOOKS | WEFT__GRAM_SEARCH_ENDS;
    return WEFT__GRAM_SEARCH_LOOKS;
}

static int put_member(search_sets *s, size_t begin, int32_t member)
{
    s->work += s->n_pool - begin;
    for (size_t i = begin; i < s->n_pool; i++)
        if (s->pool[i] == member) return 1;
    if (s->n_pool >= MAX_MEMBERS || s->work > MAX_WORK) return sets_fail(s, WEFT_LIMIT);
    if (!weft__grow(&s->pool, &s->pool_capacity, s->n_pool + 1, sizeof *s->pool)) return sets_fail(s, WEFT_NO_MEMORY);
    s->pool[s->n_pool++] = member;
    return 1;
}

/* The set that pool[at[n]..n_pool) is, without its order: an old one, or a new one. */
static uint16_t intern_set(search_sets *s, int32_t what)
{
    size_t begin = s->at[s->n];
    /* A word may begin in any place. */
    if (what == SKIPPING) put_member(s, begin + 1, s->to->starts[s->to->root]);
    if (what == LOOKING && s->words) put_member(s, begin + 1, s->words->starts[s->words->root]);
    if (what == LOOKING && s->from) put_member(s, begin + 1, s->n_words + s->from->starts[s->from->root]);
    if (what == LOOKING && s->patterns) put_member(s, begin + 1, s->n_words + s->n_from + WEFT__GRAM_PATTERN_LATER);
    if (s->status) return 0;
    size_t bytes = (s->n_pool - begin) * sizeof *s->pool;
    qsort(s->pool + begin + 1, s->n_pool - begin - 1, sizeof *s->pool, by_number);
    s->work += s->n;
    for (size_t i = 0; i < s->n; i++) {
        if ((s->at[i + 1] - s->at[i]) * sizeof *s->pool != bytes || memcmp(s->pool + s->at[i], s->pool + begin, bytes))
            continue;
        s->n_pool = begin;
        return (uint16_t)i;
    }
    if (s->n >= WEFT__GRAM_SEARCH_STATES) return (uint16_t)sets_fail(s, WEFT_LIMIT);
    if (!weft__grow(&s->at, &s->at_capacity, s->n + 2, sizeof *s->at) ||
        !weft__grow(&s->looks, &s->looks_capacity, s->n + 1, 1) ||
        !weft__grow(&s->next, &s->next_capacity, (s->n + 1) * 256, sizeof *s->next))
        return (uint16_t)sets_fail(s, WEFT_NO_MEMORY);
    s->looks[s->n] = looks_of(s, begin);
    s->at[++s->n] = s->n_pool;
    return (uint16_t)(s->n - 1);
}

/* The set that looks for `what` from scratch. */
static uint16_t first_set(search_sets *s, int32_t what)
{
    s->n_pool = s->at[s->n];
    return put_member(s, s->n_pool, what) ? intern_set(s, what) : 0;
}

/* The set at the beginning of the text. */
static uint16_t start_set(search_sets *s)
{
    if (!s->patterns) return first_set(s, LOOKING);
    s->n_pool = s->at[s->n];
    return put_member(s, s->n_pool, LOOKING) &&
                   put_member(s, s->at[s->n] + 1, s->n_words + s->n_from + WEFT__GRAM_PATTERN_FIRST)
               ? intern_set(s, LOOKING)
               : 0;
}

/* Marks the bytes of set i from which on another set may follow. */
static void mark_cuts(const search_sets *s, size_t i, uint8_t cut[257])
{
    memset(cut, 0, 257);
    cut[0] = cut[WEFT__GRAM_TRIE_CONTROL] = 1;
    for (size_t k = s->at[i] + 1; k < s->at[i + 1]; k++) {
        int32_t state = s->pool[k];
        const weft__gram_automaton *a = automaton_of(s, s->pool[s->at[i]], &state);
        const weft__gram_state *x = &a->states[state];
        for (uint32_t e = x[0].edge; e < x[1].edge; e++) cut[a->edges[e].lo] = cut[a->edges[e].hi + 1] = 1;
    }
}

/* Where set i goes by a byte. */
static uint16_t follow_byte(search_sets *s, size_t i, int byte)
{
    int32_t what = s->pool[s->at[i]];
    int found = 0, other = 0;
    size_t begin = s->n_pool = s->at[s->n];
    if (!put_member(s, begin, byte == WEFT__GRAM_TRIE_CONTROL ? what ^ WITHIN : what)) return 0;
    for (size_t k = s->at[i] + 1; k < s->at[i + 1] && !s->status; k++) {
        int32_t state = s->pool[k], base = state;
        const weft__gram_automaton *a = automaton_of(s, what, &state);
        const weft__gram_state *x = &a->states[state];
        base -= state;
        if (byte == WEFT__GRAM_TRIE_CONTROL && s->patterns && a == s->patterns->a) {
            found |= (what & WITHIN) && (x->flags & WEFT__GRAM_STATE_ACCEPT);
            put_member(s, begin + 1, base + state);
        }
        for (uint32_t e = x[0].edge; e < x[1].edge; e++) {
            if (a->edges[e].lo > byte || a->edges[e].hi < byte) continue;
            int ends = (a->states[a->edges[e].to].flags & WEFT__GRAM_STATE_ACCEPT) != 0;
            if (ends && a != s->from && a != s->to) found |= a == s->words || !(what & WITHIN);
            else if (ends) other = 1;
            put_member(s, begin + 1, base + a->edges[e].to);
        }
    }
    if (found) return WEFT__GRAM_SEARCH_FOUND;
    if (byte == WEFT__GRAM_TRIE_CONTROL) what ^= WITHIN;
    if (other) return first_set(s, what ^ SKIPPING);
    return s->status ? 0 : intern_set(s, what);
}

/* The automaton of a rule that calls no other. */
static weft_status search_compile(weft__gram *g, int32_t rule, weft__gram_automaton **out, weft_error *err)
{
    if (rule < 0 && !weft__gram_failed(g)) return WEFT_OK;
    weft_status st = weft__gram_compile(g, rule, 1, out, err);
    if (st) return st;
    const weft__gram_automaton *a = *out;
    if (a->n_calls) return weft_fail(err, WEFT_LIMIT, "grammar: what is to be found in a text is too large");
    if (!(a->states[a->starts[a->root]].flags & WEFT__GRAM_STATE_ACCEPT)) return WEFT_OK;
    return weft_fail(err, WEFT_ARGUMENT, "grammar: what is to be found in a text must not be empty");
}

static weft_status make_sets(search_sets *s, weft__gram_search *out, weft_error *err)
{
    if (weft__grow(&s->at, &s->at_capacity, 2, sizeof *s->at)) {
        s->at[0] = 0;
        out->start = start_set(s);
        out->later = first_set(s, LOOKING);
        if (s->to) out->skipping = first_set(s, SKIPPING);
    } else {
        sets_fail(s, WEFT_NO_MEMORY);
    }
    for (size_t i = 0; i < s->n && !s->status; i++) {
        uint8_t cut[257];
        uint16_t to = 0;
        mark_cuts(s, i, cut);
        for (int byte = 0; byte < 256 && !s->status; byte++) {
            if (cut[byte]) to = follow_byte(s, i, byte);
            if (!s->status) s->next[256 * i + (size_t)byte] = to;
        }
    }
    if (s->status == WEFT_NO_MEMORY) return weft_fail(err, s->status, "no memory for a grammar");
    if (s->status)
        return weft_fail(err, s->status,
                         "grammar: what is to be found in a text takes more than %d states; write it shorter",
                         WEFT__GRAM_SEARCH_STATES);
    return WEFT_OK;
}

weft_status weft__gram_search_create(weft__gram *g, int32_t words, int32_t skip_from, int32_t skip_to,
                                     weft__gram_patterns *patterns, weft__gram_search **out, weft_error *err)
{
    weft__gram_automaton *from = NULL, *to = NULL;
    search_sets s = {0};
    *out = NULL;
    weft__gram_search *x = weft__alloc_zero(1, sizeof *x);
    weft_status st = x ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
    if (x) x->patterns = patterns;
    else weft__gram_patterns_destroy(&patterns);
    if (!st) st = search_compile(g, words, &x->words, err);
    if (!st) st = search_compile(g, skip_from, &from, err);
    if (!st) st = search_compile(g, skip_to, &to, err);
    if (!st) {
        s.words = x->words;
        s.from = from;
        s.to = to;
        s.patterns = patterns;
        s.n_words = x->words ? (int32_t)x->words->n_states : 0;
        s.n_from = from ? (int32_t)from->n_states : 0;
        st = make_sets(&s, x, err);
        x->next = s.next;
        x->looks = s.looks;
        x->n_states = s.n;
    }
    weft__free(s.at);
    weft__free(s.pool);
    weft__gram_automaton_destroy(&to);
    weft__gram_automaton_destroy(&from);
    if (st) weft__gram_search_destroy(&x);
    *out = x;
    return st;
}

void weft__gram_search_destroy(weft__gram_search **p)
{
    weft__gram_search *s = p ? *p : NULL;
    if (!s) return;
    weft__free(s->looks);
    weft__free(s->next);
    weft__gram_patterns_destroy(&s->patterns);
    weft__gram_automaton_destroy(&s->words);
    weft__free(s);
    *p = NULL;
}

/* ---- texts ---- */

void weft__gram_trail_begin(const weft__gram_search *s, weft__gram_trail *t, int skipping)
{
    t->state = skipping ? s->skipping : s->start;
    t->n = t->threads.n = 0;
    t->opened = 0;
}

void weft__gram_trail_interrupt(const weft__gram_search *s, weft__gram_trail *t)
{
    weft__gram_trail_begin(s, t, !s->looks[t->state]);
    if (s->looks[t->state]) t->state = s->later;
}

void weft__gram_trail_free(weft__gram_trail *t)
{
    weft__gram_threads_free(&t->threads);
    weft__free(t->spare);
    weft__free(t->items);
    *t = (weft__gram_trail){0};
}

int weft__gram_trail_copy(const weft__gram_trail *from, weft__gram_trail *to)
{
    if (!weft__grow(&to->items, &to->capacity, from->n, sizeof *to->items) ||
        !weft__gram_threads_copy(&from->threads, &to->threads))
        return 0;
    if (from->n) memcpy(to->items, from->items, from->n * sizeof *to->items);
    to->n = from->n;
    to->state = from->state;
    to->n_bytes = from->n_bytes;
    to->opened = from->opened;
    return 1;
}

/* Adds a word's state, unless it is there: items come in the order of where their words begin. */
static int put_item(weft__gram_trail *t, size_t *n, int32_t state, uint64_t from)
{
    for (size_t i = 0; i < *n; i++)
        if (t->spare[i].state == state) return 1;
    if (!weft__grow(&t->spare, &t->spare_capacity, *n + 1, sizeof *t->spare)) return 0;
    t->spare[(*n)++] = (struct weft__gram_trail_item){state, from};
    return 1;
}

/* The words that go on by a byte. 1: one of them ends with it, which began at *from. */
static int step_words(const weft__gram_search *s, weft__gram_trail *t, unsigned char byte, int found, uint64_t *from)
{
    const weft__gram_automaton *a = s->words;
    const size_t n_items = t->n + ((s->looks[t->state] & WEFT__GRAM_SEARCH_LOOKS) != 0);
    size_t n = 0;
    for (size_t i = 0; i < n_items; i++) {
        struct weft__gram_trail_item x = {a->starts[a->root], t->n_bytes};
        if (i < t->n) x = t->items[i];
        const weft__gram_state *state = &a->states[x.state];
        for (uint32_t e = state[0].edge; e < state[1].edge; e++) {
            if (a->edges[e].lo > byte || a->edges[e].hi < byte) continue;
            if (found && (a->states[a->edges[e].to].flags & WEFT__GRAM_STATE_ACCEPT)) {
                *from = x.from;
                return 1;
            }
            if (!put_item(t, &n, a->edges[e].to, x.from)) return -1;
        }
    }
    struct weft__gram_trail_item *items = t->items;
    size_t capacity = t->capacity;
    t->items = t->spare;
    t->capacity = t->spare_capacity;
    t->spare = items;
    t->spare_capacity = capacity;
    t->n = n;
    return 0;
}

/* The same of patterns; `within`: the byte is one of a control token, but not its last. *begin: where it began. */
static int step_patterns(const weft__gram_search *s, weft__gram_trail *t, unsigned char byte, int found, int within,
                         uint64_t *begin, uint64_t *from)
{
    const int32_t start = !(s->looks[t->state] & WEFT__GRAM_SEARCH_LOOKS) ? -1
                          : t->state == s->start && s->start != s->later  ? WEFT__GRAM_PATTERN_FIRST
                                                                          : WEFT__GRAM_PATTERN_LATER;
    const uint64_t before = t->opened ? 1 : 0;
    if (!weft__gram_threads_step(s->patterns, &t->threads, byte, t->n_bytes, before, start)) return -1;
    t->opened = byte == WEFT__GRAM_TRIE_CONTROL && within;
    const weft__gram_thread *x = found ? weft__gram_threads_found(s->patterns, &t->threads, 0) : NULL;
    if (!x) return 0;
    *begin = x->begin;
    *from = weft__gram_thread_from(x);
    return 1;
}

int weft__gram_trail_step(const weft__gram_search *s, weft__gram_trail *t, unsigned char byte, uint64_t *from)
{
    const uint16_t to = s->next[256 * (size_t)t->state + byte];
    const int found = to == WEFT__GRAM_SEARCH_FOUND, goes_on = s->looks[t->state] && (found || s->looks[to]);
    uint64_t begin = 0, at = 0;
    int word = 0, pattern = 0;
    if (!goes_on) t->n = t->threads.n = 0, t->opened = 0;
    if (goes_on && s->words) word = step_words(s, t, byte, found, from);
    if (goes_on && s->patterns && word >= 0)
        pattern = step_patterns(s, t, byte, found, !found && s->looks[to] == WEFT__GRAM_SEARCH_GOES_ON, &begin, &at);
    if (word < 0 || pattern < 0) return -1;
    if (pattern && (!word || begin < *from)) *from = at;
    t->n_bytes++;
    t->state = found ? s->later : to;
    return word || pattern;
}

int weft__gram_trail_ends(const weft__gram_search *s, const weft__gram_trail *t, uint64_t *from)
{
    const weft__gram_thread *x = NULL;
    if (s->looks[t->state] & WEFT__GRAM_SEARCH_ENDS) x = weft__gram_threads_found(s->patterns, &t->threads, 1);
    if (x) *from = weft__gram_thread_from(x);
    return x != NULL;
}

uint64_t weft__gram_trail_oldest(const weft__gram_trail *t)
{
    uint64_t oldest = t->n ? t->items[0].from : t->n_bytes;
    for (size_t i = 0; i < t->threads.n; i++) {
        const uint64_t from = weft__gram_thread_from(&t->threads.items[i]);
        if (from < oldest) oldest = from;
    }
    return oldest;
}
