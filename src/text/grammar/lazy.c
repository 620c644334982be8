// SPDX-License-Identifier: Apache-2.0
/* lazy.c: triggers within tokens, and texts until one is complete (lazy.h).
 *
 * For each state of the search the places of the trie are listed at which a trigger is first complete. Only the tokens
 * there and below are looked at: behind what was found they are walked with the grammar. */
#include "text/grammar/lazy.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "text/grammar/build.h"
#include "text/grammar/search.h"
#include "text/tokenizer/parts.h"

enum {
    MAX_OPEN = 1 << 20, /* bytes of a text that may belong to a trigger */
    MAX_KEPT = 1 << 21, /* places of all states; further ones are listed for each mask */
    FED_WORK = 8,       /* of a byte that the grammar is given */
    MASK_WORK = 1 << 22 /* edges and bytes for the tokens of a mask that may complete one: some ten milliseconds */
};

typedef struct lazy_token {
    int32_t id;
    int spelled; /* 1: the grammar has it as the text of its spelling */
} lazy_token;

/* Where triggers are complete, for a state of the search. */
typedef struct lazy_places {
    uint32_t n, n_ends;
    uint32_t nodes[]; /* of the trie: n, then n_ends of which the tokens there complete one with their end */
} lazy_places;

struct weft__gram_lazy {
    atomic_size_t refs;
    weft__gram_tables *g;
    const weft__gram_trie *trie;
    weft__gram_search *search;
    _Atomic(lazy_places *) *places; /* [search->n_states], made when first needed */
    atomic_size_t n_kept;           /* of places */
    lazy_token *tokens;             /* [n_tokens] triggers */
    size_t n_tokens;
    int skipping;
};

struct weft__gram_watch {
    weft__gram_lazy *l;
    weft__gram_trail at, ahead;
    weft__strbuf text;     /* bytes [text_from, at.n_bytes) of what was read */
    uint64_t text_from;    /* not behind the first byte of a word that may be open */
    weft__gram_matcher *m; /* behind `fed`, when it fits */
    weft__strbuf fed;      /* what was found, and given to m last */
    weft__strbuf spelled;  /* the same, with control tokens as their spelling */
    size_t work;           /* that the mask may still take */
    int fits, ended;
    unsigned char *piece; /* [max_depth] */
};

static weft_status lazy_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
}

/* ---- making ---- */

/* 1 when some text of the grammar begins so. */
static int may_begin(weft__gram_tables *g, const char *bytes, size_t n, weft_status *st, weft_error *err)
{
    weft__gram_matcher *m = NULL;
    weft_error ignored = {0};
    if ((*st = weft__gram_matcher_create(g, &m, err))) return 0;
    weft_status fits = weft__gram_matcher_feed(m, bytes, n, &ignored);
    weft__gram_matcher_destroy(&m);
    if (fits && fits != WEFT_ARGUMENT) *st = weft_fail(err, fits, "%s", ignored.message);
    return !fits;
}

/* The bytes of a token in the grammar, into out; 0 where it has none. */
static size_t token_bytes(const weft__tok *tok, int32_t id, char out[WEFT__TOK_SPECIAL_MAX_BYTES + 2])
{
    weft__tok_slice s = weft__gram_trie_is_control(tok, id) ? weft__tok_text(tok, id) : weft__tok_piece_of(tok, id);
    int control = weft__gram_trie_is_control(tok, id);
    if (s.len > WEFT__TOK_SPECIAL_MAX_BYTES || weft__tok_is_end(tok, id)) return 0;
    if (control) out[0] = out[s.len + 1] = (char)WEFT__GRAM_TRIE_CONTROL;
    if (s.len) memcpy(out + control, s.data, s.len);
    return s.len + 2 * (size_t)control;
}

/* Adds a trigger that is a token: a control token as a word of the search, unless the grammar has it by its spelling,
 * others as they are. *fits: the grammar can begin with it. */
static weft_status add_token(weft__gram_lazy *l, const weft__tok *tok, int32_t id, weft__gram *g, int32_t *words,
                             size_t *n_words, int *fits, weft_error *err)
{
    char bytes[WEFT__TOK_SPECIAL_MAX_BYTES + 2];
    size_t n = token_bytes(tok, id, bytes);
    int control = weft__gram_trie_is_control(tok, id);
    weft_status st = WEFT_OK;
    *fits = n > 0 && l->trie->node_of[id] != WEFT__GRAM_TRIE_NONE && may_begin(l->g, bytes, n, &st, err);
    if (!st && *fits && control) {
        words[(*n_words)++] = weft__gram_token(g, id);
        return WEFT_OK;
    }
    if (!st && !*fits && control) *fits = may_begin(l->g, bytes + 1, n - 2, &st, err);
    if (!st && *fits) l->tokens[l->n_tokens++] = (lazy_token){id, control};
    return st;
}

static weft_status add_trigger(weft__gram_lazy *l, const weft__tok *tok, const weft__gram_trigger *t, weft__gram *g,
                               int32_t *words, size_t *n_words, weft_error *err)
{
    char quote[WEFT__TOK_QUOTE];
    int fits = 0, as_token = 0;
    weft_status st = WEFT_OK;
    if (t->token >= 0) {
        if (t->token >= weft__tok_n(tok))
            return weft_fail(err, WEFT_ARGUMENT, "grammar: trigger token %d: the vocabulary has ids 0 to %d", t->token,
                             weft__tok_n(tok) - 1);
        st = add_token(l, tok, t->token, g, words, n_words, &fits, err);
        if (st || fits) return st;
        return weft_fail(err, WEFT_ARGUMENT, "grammar: no text of it begins with trigger token %d", t->token);
    }
    if (t->kind != WEFT__GRAM_TRIGGER_WORD) return WEFT_OK; /* add_patterns */
    if (!t->n || t->n > WEFT__GRAM_LAZY_WORD || !weft__utf8_valid(t->text, t->n))
        return weft_fail(err, WEFT_ARGUMENT, "grammar: a trigger must be 1 to %d bytes of UTF-8", WEFT__GRAM_LAZY_WORD);
    int32_t id = weft__tok_find(tok, t->text, t->n);
    if (id >= 0 && weft__gram_trie_is_control(tok, id)) st = add_token(l, tok, id, g, words, n_words, &as_token, err);
    if (!st) fits = may_begin(l->g, t->text, t->n, &st, err);
    if (st) return st;
    words[(*n_words)++] = weft__gram_text(g, t->text, t->n);
    if (fits || as_token) return WEFT_OK;
    return weft_fail(err, WEFT_ARGUMENT, "grammar: no text of it begins with the trigger '%s'",
                     weft__tok_quote(quote, t->text, t->n));
}

static int32_t add_pattern(weft__gram *g, const weft__gram_trigger *t)
{
    char quote[WEFT__TOK_QUOTE];
    weft__gram_regex_facts facts = {0};
    int flags = WEFT__GRAM_REGEX_MARKED | (t->kind == WEFT__GRAM_TRIGGER_PATTERN_FULL ? WEFT__GRAM_REGEX_WHOLE : 0);
    if (!t->n || t->n > WEFT__GRAM_LAZY_PATTERN || !weft__utf8_valid(t->text, t->n)) {
        weft__gram_fail(g, WEFT_ARGUMENT, "grammar: a pattern must be 1 to %d bytes of UTF-8", WEFT__GRAM_LAZY_PATTERN);
        return -1;
    }
    int32_t node = weft__gram_regex(g, t->text, t->n, (unsigned)flags, &facts);
    if (facts.why)
        weft__gram_fail(g, WEFT_UNSUPPORTED, "grammar: the trigger pattern '%s': near byte %zu: %s",
                        weft__tok_quote(quote, t->text, t->n), facts.at, facts.why);
    return node;
}

/* Those of the triggers that are patterns, the first one preferred; NULL without any. */
static weft_status make_trigger_patterns(const weft__gram_lazy_spec *spec, weft__gram_patterns **out, weft_error *err)
{
    size_t n = 0;
    *out = NULL;
    for (size_t i = 0; i < spec->n; i++) n += spec->triggers[i].token < 0 && spec->triggers[i].kind;
    if (!n) return WEFT_OK;
    weft__gram *g = weft__gram_create();
    int32_t *items = weft__alloc_array(n, sizeof *items);
    weft_status st = g && items ? WEFT_OK : lazy_no_memory(err);
    if (!st) {
        int32_t rule = GRAM_RULE("pattern");
        n = 0;
        for (size_t i = 0; i < spec->n; i++)
            if (spec->triggers[i].token < 0 && spec->triggers[i].kind) items[n++] = add_pattern(g, &spec->triggers[i]);
        weft__gram_define(g, rule, weft__gram_alt(g, items, n));
        st = weft__gram_patterns_create(g, rule, out, err);
    }
    weft__free(items);
    weft__gram_destroy(&g);
    return st;
}

/* The rule of a marker; -1 without one. */
static int32_t rule_of_marker(weft__gram *g, const char *name, const char *text)
{
    if (!text) return -1;
    int32_t rule = weft__gram_rule(g, name, strlen(name));
    weft__gram_define(g, rule, weft__gram_marker(g, text, strlen(text)));
    return rule;
}

static weft_status make_search(weft__gram_lazy *l, const weft__tok *tok, const weft__gram_lazy_spec *spec,
                               weft_error *err)
{
    weft__gram *g = spec->rules ? spec->rules : weft__gram_create();
    int32_t *words = weft__alloc_array(2 * spec->n, sizeof *words);
    size_t n_words = 0;
    weft__gram_patterns *patterns = NULL;
    weft_status st = g && words ? make_trigger_patterns(spec, &patterns, err) : lazy_no_memory(err);
    if (g) weft__gram_vocabulary(g, tok);
    for (size_t i = 0; i < spec->n && !st; i++) st = add_trigger(l, tok, &spec->triggers[i], g, words, &n_words, err);
    if (!st) {
        int32_t rule = spec->rules ? spec->words : n_words ? GRAM_RULE("trigger") : -1;
        if (n_words) weft__gram_define(g, rule, weft__gram_alt(g, words, n_words));
        int32_t from = rule_of_marker(g, "skip from", spec->skip_from),
                to = rule_of_marker(g, "skip to", spec->skip_to);
        st = weft__gram_search_create(g, rule, from, to, patterns, &l->search, err);
        patterns = NULL;
    }
    weft__gram_patterns_destroy(&patterns);
    weft__free(words);
    if (!spec->rules) weft__gram_destroy(&g);
    return st;
}

/* Lists those where the search finds something, or with `ends` those where a token's end is what is found. 0 when there
 * is no memory. */
static int list_places(const weft__gram_lazy *l, uint16_t *states, int ends, uint32_t **nodes, size_t *n,
                       size_t *capacity)
{
    const weft__gram_trie *t = l->trie;
    for (uint32_t i = 0; i < t->n_nodes;) {
        const weft__gram_trie_node *x = &t->nodes[i];
        const uint16_t to = l->search->next[256 * (size_t)states[x->depth - 1] + x->byte];
        const int found = to == WEFT__GRAM_SEARCH_FOUND;
        if (ends ? !found && x[0].token < x[1].token && (l->search->looks[to] & WEFT__GRAM_SEARCH_ENDS) : found) {
            if (!weft__grow(nodes, capacity, *n + 1, sizeof **nodes)) return 0;
            (*nodes)[(*n)++] = i;
        }
        states[x->depth] = to;
        i = found ? x->next : i + 1;
    }
    return 1;
}

static lazy_places *find_places(const weft__gram_lazy *l, uint16_t state)
{
    uint16_t *states = weft__alloc_array((size_t)l->trie->max_depth + 1, sizeof *states);
    uint32_t *nodes = NULL;
    size_t n = 0, n_found, capacity = 0;
    lazy_places *p = NULL;
    if (!states) return NULL;
    states[0] = state;
    int ok = list_places(l, states, 0, &nodes, &n, &capacity);
    n_found = n;
    if (ok && l->search->patterns) ok = list_places(l, states, 1, &nodes, &n, &capacity);
    if (ok && (p = weft__alloc(sizeof *p + n * sizeof *nodes))) {
        p->n = (uint32_t)n_found;
        p->n_ends = (uint32_t)(n - n_found);
        if (n) memcpy(p->nodes, nodes, n * sizeof *nodes);
    }
    weft__free(nodes);
    weft__free(states);
    return p;
}

/* Made and kept when it is new; two threads may make the same one, and the second's is dropped. *own: too much is kept
 * already, so that the caller frees it. NULL when there is no memory. */
static lazy_places *places_of(weft__gram_lazy *l, uint16_t state, int *own)
{
    lazy_places *p = atomic_load_explicit(&l->places[state], memory_order_acquire), *other = NULL;
    *own = 0;
    if (p || !(p = find_places(l, state))) return p;
    const size_t n = (size_t)p->n + p->n_ends;
    if (atomic_fetch_add(&l->n_kept, n) + n > MAX_KEPT) {
        atomic_fetch_sub(&l->n_kept, n);
        *own = 1;
    } else if (!atomic_compare_exchange_strong(&l->places[state], &other, p)) {
        atomic_fetch_sub(&l->n_kept, n);
        weft__free(p);
        p = other;
    }
    return p;
}

static weft_status check_places(const lazy_places *p, weft_error *err)
{
    if (!p) return lazy_no_memory(err);
    if ((size_t)p->n + p->n_ends <= WEFT__GRAM_LAZY_PLACES) return WEFT_OK;
    return weft_fail(err, WEFT_LIMIT,
                     "grammar: a trigger ends in more than %d places of the vocabulary; make it longer",
                     WEFT__GRAM_LAZY_PLACES);
}

static weft_status make_places(weft__gram_lazy *l, weft_error *err)
{
    const uint16_t states[] = {l->search->start, l->search->later};
    weft_status st = WEFT_OK;
    l->places = weft__alloc_array(l->search->n_states, sizeof *l->places);
    if (!l->places) return lazy_no_memory(err);
    for (size_t i = 0; i < l->search->n_states; i++) atomic_init(&l->places[i], NULL);
    for (size_t i = 0; i < sizeof states / sizeof *states && !st; i++) {
        int own;
        lazy_places *p = places_of(l, states[i], &own);
        st = check_places(p, err);
        if (own) weft__free(p);
    }
    return st;
}

weft_status weft__gram_lazy_create(weft__gram_tables *g, const weft__tok *tok, const weft__gram_lazy_spec *spec,
                                   weft__gram_lazy **out, weft_error *err)
{
    *out = NULL;
    if (!spec->rules && (!spec->n || spec->n > WEFT__GRAM_LAZY_TRIGGERS))
        return weft_fail(err, WEFT_ARGUMENT, "grammar: 1 to %d triggers begin a lazy one, not %zu",
                         WEFT__GRAM_LAZY_TRIGGERS, spec->n);
    weft__gram_lazy *l = weft__alloc_zero(1, sizeof *l);
    if (!l) return lazy_no_memory(err);
    atomic_init(&l->refs, 1);
    atomic_init(&l->n_kept, 0);
    l->g = weft__gram_tables_retain(g);
    l->trie = weft__gram_tables_trie(g);
    l->skipping = spec->skipping;
    l->tokens = weft__alloc_array(spec->n, sizeof *l->tokens);
    weft_status st = l->tokens ? make_search(l, tok, spec, err) : lazy_no_memory(err);
    if (!st) st = make_places(l, err);
    if (st) weft__gram_lazy_release(&l);
    *out = l;
    return st;
}

weft__gram_lazy *weft__gram_lazy_retain(weft__gram_lazy *l)
{
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
}

void weft__gram_lazy_release(weft__gram_lazy **p)
{
    weft__gram_lazy *l = p ? *p : NULL;
    if (!l) return;
    *p = NULL;
    if (atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) > 1) return;
    for (size_t i = 0; l->places && i < l->search->n_states; i++) weft__free(atomic_load(&l->places[i]));
    weft__free(l->places);
    weft__gram_search_destroy(&l->search);
    weft__free(l->tokens);
    weft__gram_tables_release(&l->g);
    weft__free(l);
}

/* ---- texts ---- */

weft_status weft__gram_watch_create(weft__gram_lazy *l, weft__gram_watch **out, weft_error *err)
{
    *out = NULL;
    weft__gram_watch *w = weft__alloc_zero(1, sizeof *w);
    if (!w) return lazy_no_memory(err);
    w->l = weft__gram_lazy_retain(l);
    w->piece = weft__alloc_array(l->trie->max_depth, 1);
    weft_status st = w->piece ? weft__gram_matcher_create(l->g, &w->m, err) : lazy_no_memory(err);
    weft__gram_trail_begin(l->search, &w->at, l->skipping);
    if (st) weft__gram_watch_destroy(&w);
    *out = w;
    return st;
}

weft_status weft__gram_watch_copy(const weft__gram_watch *from, weft__gram_watch **out, weft_error *err)
{
    weft_status st = weft__gram_watch_create(from->l, out, err);
    if (st) return st;
    weft__gram_watch *w = *out;
    weft__strbuf_put(&w->text, from->text.data, from->text.len);
    w->text_from = from->text_from;
    w->ended = from->ended;
    if (weft__gram_trail_copy(&from->at, &w->at) && !w->text.failed) return WEFT_OK;
    weft__gram_watch_destroy(out);
    return lazy_no_memory(err);
}

void weft__gram_watch_destroy(weft__gram_watch **p)
{
    weft__gram_watch *w = p ? *p : NULL;
    if (!w) return;
    weft__free(w->piece);
    weft__strbuf_free(&w->spelled);
    weft__strbuf_free(&w->fed);
    weft__gram_matcher_destroy(&w->m);
    weft__strbuf_free(&w->text);
    weft__gram_trail_free(&w->ahead);
    weft__gram_trail_free(&w->at);
    weft__gram_lazy_release(&w->l);
    weft__free(w);
    *p = NULL;
}

int weft__gram_watch_complete(const weft__gram_watch *w)
{
    return w->ended ? 2 : 1;
}

/* Puts the bytes from the root to a node into piece; returns how many. */
static size_t piece_of_node(weft__gram_watch *w, uint32_t node)
{
    const weft__gram_trie *t = w->l->trie;
    size_t n = t->nodes[node].depth;
    for (size_t i = n; i-- > 0; node = t->nodes[node].parent) w->piece[i] = t->nodes[node].byte;
    return n;
}

/* Takes from what a mask may still do; w->work SIZE_MAX: nobody waits for it. */
static weft_status spend_work(weft__gram_watch *w, size_t n, weft_error *err)
{
    if (w->work != SIZE_MAX && n > w->work)
        return weft_fail(err, WEFT_LIMIT, "grammar: too many tokens may complete a trigger pattern; make it shorter");
    if (w->work != SIZE_MAX) w->work -= n;
    return WEFT_OK;
}

/* Goes ahead by piece[0..n), until a trigger is complete, or is with its end. *used: the bytes up to there; *found: it
 * is, and text ends with it, from *from on. What was there before is kept in `at`. */
static weft_status go_ahead(weft__gram_watch *w, size_t n, size_t *used, int *found, uint64_t *from, weft_error *err)
{
    *found = 0;
    if (!weft__gram_trail_copy(&w->at, &w->ahead)) return lazy_no_memory(err);
    w->ahead.threads.work = 0;
    for (*used = 0; *used < n && !*found; ++*used) {
        weft__strbuf_putc(&w->text, (char)w->piece[*used]);
        *found = weft__gram_trail_step(w->l->search, &w->ahead, w->piece[*used], from);
        if (*found < 0 || w->text.failed) return lazy_no_memory(err);
    }
    if (!*found) *found = weft__gram_trail_ends(w->l->search, &w->ahead, from);
    return spend_work(w, w->ahead.threads.work, err);
}

/* Gives a text to m from the beginning. w->fits says what came of it. */
static weft_status try_text(weft__gram_watch *w, const char *s, size_t n, weft_error *err)
{
    weft_error why = {0};
    weft_status st = weft__gram_matcher_restart(w->m, err);
    if (st) return st;
    st = weft__gram_matcher_feed(w->m, s, n, &why);
    w->fits = st == WEFT_OK;
    return st && st != WEFT_ARGUMENT ? weft_fail(err, st, "%s", why.message) : WEFT_OK;
}

/* The same with control tokens as their spelling. */
static weft_status try_spelled(weft__gram_watch *w, const char *s, size_t n, weft_error *err)
{
    w->spelled.len = 0;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] != WEFT__GRAM_TRIE_CONTROL) weft__strbuf_putc(&w->spelled, s[i]);
    return w->spelled.failed ? lazy_no_memory(err) : try_text(w, w->spelled.data, w->spelled.len, err);
}

/* What was found, which text ends with, is given to m, unless it was before. What a pattern found may begin with a
 * control token, or within one, that the grammar has as its spelling. */
static weft_status feed_found(weft__gram_watch *w, uint64_t from, weft_error *err)
{
    const char *s = w->text.data + (from - w->text_from);
    size_t n = w->text.len - (size_t)(from - w->text_from);
    if (w->fed.len == n && !memcmp(w->fed.data, s, n)) return WEFT_OK;
    w->fed.len = 0;
    weft__strbuf_put(&w->fed, s, n);
    weft_status st = w->fed.failed ? lazy_no_memory(err) : spend_work(w, FED_WORK * n, err);
    if (!st) st = try_text(w, s, n, err);
    if (!st && !w->fits && w->l->search->patterns && memchr(s, WEFT__GRAM_TRIE_CONTROL, n))
        st = try_spelled(w, s, n, err);
    if (st) w->fed.len = 0;
    return st;
}

/* Forgets the bytes with which no word can begin any more. */
static weft_status trim(weft__gram_watch *w, weft_error *err)
{
    uint64_t oldest = weft__gram_trail_oldest(&w->at);
    size_t n = (size_t)(oldest - w->text_from);
    if (w->at.n_bytes - oldest > MAX_OPEN)
        return weft_fail(err, WEFT_LIMIT, "grammar: a trigger that is not complete after %d bytes", MAX_OPEN);
    if (2 * n < w->text.len) return WEFT_OK;
    memmove(w->text.data, w->text.data + n, w->text.len - n);
    w->text.len -= n;
    w->text_from = oldest;
    return WEFT_OK;
}

/* A token that no grammar has: what was open before it is not any more. */
static void pass_over(weft__gram_watch *w)
{
    weft__gram_trail_interrupt(w->l->search, &w->at);
    w->text_from = w->at.n_bytes;
    w->text.len = 0;
}

/* The trigger is a token; the grammar takes it, as was found out when it was made. */
static weft_status begin_with(weft__gram_watch *w, const lazy_token *t, weft_error *err)
{
    size_t n = piece_of_node(w, w->l->trie->node_of[t->id]);
    w->fed.len = 0;
    weft_status st = weft__gram_matcher_restart(w->m, err);
    return st ? st : weft__gram_matcher_feed(w->m, (char *)w->piece + t->spelled, n - 2 * (size_t)t->spelled, err);
}

static const lazy_token *trigger_token(const weft__gram_watch *w, int32_t token)
{
    if (!w->l->search->looks[w->at.state]) return NULL;
    for (size_t i = 0; i < w->l->n_tokens; i++)
        if (w->l->tokens[i].id == token) return &w->l->tokens[i];
    return NULL;
}

/* Goes on by a token of text. *begun: a trigger is complete in it. */
static weft_status watch_text(weft__gram_watch *w, int32_t token, size_t n, int *begun, weft_error *err)
{
    size_t used, length = w->text.len;
    uint64_t from = 0;
    w->work = SIZE_MAX;
    weft_status st = go_ahead(w, n, &used, begun, &from, err);
    if (!st && *begun > 0) {
        st = feed_found(w, from, err);
        if (!st && w->fits && used < n) st = weft__gram_matcher_feed(w->m, (char *)w->piece + used, n - used, err);
        if (!st && !w->fits)
            st = weft_fail(err, WEFT_ARGUMENT, "grammar: token %d completes a trigger, but does not fit", token);
    }
    if (st || *begun) {
        w->text.len = length;
        return st;
    }
    weft__gram_trail before = w->at;
    w->at = w->ahead;
    w->ahead = before;
    return trim(w, err);
}

weft_status weft__gram_watch_accept(weft__gram_watch *w, int32_t token, weft__gram_matcher **begun, weft_error *err)
{
    const weft__gram_trie *t = w->l->trie;
    int found = 0;
    *begun = NULL;
    if (token < 0 || token >= t->n_tokens)
        return weft_fail(err, WEFT_ARGUMENT, "grammar: token %d: the vocabulary has ids 0 to %d", token,
                         t->n_tokens - 1);
    if (w->ended) return weft_fail(err, WEFT_ARGUMENT, "grammar: token %d: the text has ended", token);
    const lazy_token *trigger = trigger_token(w, token);
    uint32_t node = t->node_of[token];
    size_t n = node == WEFT__GRAM_TRIE_NONE ? 0 : piece_of_node(w, node);
    weft_status st = WEFT_OK;
    if (trigger) {
        st = begin_with(w, trigger, err);
        found = 1;
    } else if (n == 0) {
        pass_over(w);
        for (int32_t i = 0; i < t->n_ends; i++) w->ended |= t->ends[i] == token;
    } else {
        st = watch_text(w, token, n, &found, err);
    }
    if (st || !found) return st;
    *begun = w->m;
    w->m = NULL;
    return WEFT_OK;
}

static void forbid(uint64_t *bits, int32_t token)
{
    bits[token >> 6] &= ~((uint64_t)1 << (token & 63));
}

/* Where a trigger is complete at this node: what the grammar allows of the tokens there and below; with `ends`, where
 * one is with the end of the tokens there, of those. */
static weft_status mask_place(weft__gram_watch *w, uint32_t node, int ends, uint64_t *bits, weft_error *err)
{
    const weft__gram_trie *t = w->l->trie;
    const uint32_t begin = t->nodes[node].token, end = t->nodes[ends ? node + 1 : t->nodes[node].next].token;
    size_t used, length = w->text.len;
    uint64_t from = 0;
    int found;
    for (uint32_t k = begin; k < end; k++)
        if (!trigger_token(w, t->ids[k])) forbid(bits, t->ids[k]);
    weft_status st = go_ahead(w, piece_of_node(w, node), &used, &found, &from, err);
    if (!st && found) st = feed_found(w, from, err);
    if (!st && found && w->fits && !ends) st = weft__gram_matcher_mask_below(w->m, node, bits, err);
    for (uint32_t k = begin; !st && found && w->fits && ends && k < end; k++)
        bits[t->ids[k] >> 6] |= (uint64_t)1 << (t->ids[k] & 63);
    w->text.len = length;
    return st;
}

weft_status weft__gram_watch_mask(weft__gram_watch *w, uint64_t *bits, weft_error *err)
{
    const weft__gram_trie *t = w->l->trie;
    size_t n_words = ((size_t)t->n_tokens + 63) / 64;
    if (w->ended) {
        memset(bits, 0, n_words * sizeof *bits);
        return weft_fail(err, WEFT_STATE, "grammar: the text has ended; no token may follow");
    }
    memset(bits, 0xFF, n_words * sizeof *bits);
    if (t->n_tokens % 64) bits[n_words - 1] = ((uint64_t)1 << (t->n_tokens % 64)) - 1;
    int own;
    lazy_places *p = places_of(w->l, w->at.state, &own);
    weft_status st = w->l->search->patterns || !p ? check_places(p, err) : WEFT_OK;
    w->work = w->l->search->patterns ? MASK_WORK : SIZE_MAX;
    for (uint32_t i = 0; !st && i < p->n + p->n_ends; i++) st = mask_place(w, p->nodes[i], i >= p->n, bits, err);
    if (own) weft__free(p);
    if (st) memset(bits, 0, n_words * sizeof *bits);
    return st;
}
