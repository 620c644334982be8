// SPDX-License-Identifier: Apache-2.0
/* grammar.c: grammars as they are built, and the way from rules to the automaton. */
#include "text/grammar/grammar.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "text/grammar/parts.h"
#include "text/grammar/token_trie.h"
#include "text/tokenizer/parts.h"

weft__gram *weft__gram_create(void)
{
    return weft__alloc_zero(1, sizeof(weft__gram));
}

void weft__gram_destroy(weft__gram **p)
{
    weft__gram *g = p ? *p : NULL;
    if (!g) return;
    weft__free(g->machine_edges);
    weft__free(g->machine_states);
    weft__free(g->bytes);
    weft__free(g->ranges);
    weft__free(g->items);
    weft__free(g->nodes);
    weft__free(g->rules);
    weft__strings_free(&g->origins);
    weft__strings_free(&g->names);
    weft__free(g);
    *p = NULL;
}

void weft__gram_vocabulary(weft__gram *g, const weft__tok *tok)
{
    g->tok = tok;
}

void weft__gram_line(weft__gram *g, int line)
{
    g->line = line;
}

weft_status weft__gram_failed(const weft__gram *g)
{
    return (weft_status)g->err.status;
}

void weft__gram_fail(weft__gram *g, weft_status status, const char *format, ...)
{
    char text[WEFT_ERROR_TEXT];
    va_list args;
    if (g->err.status) return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    weft_fail(&g->err, status, "%s", text);
}

/* In front of the message the line, where there is one. */
static void fail_on_line(weft__gram *g, weft_status status, const char *format, ...) WEFT_PRINTF(3, 4);
static void fail_on_line(weft__gram *g, weft_status status, const char *format, ...)
{
    char text[WEFT_ERROR_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (g->line) weft__gram_fail(g, status, "grammar: line %d: %s", g->line, text);
    else weft__gram_fail(g, status, "grammar: %s", text);
}

void weft__gram_within(weft__gram *g, const char *prefix, const char *place)
{
    if (!g->err.status || g->err.status == WEFT_NO_MEMORY || !strncmp(g->err.message, prefix, strlen(prefix))) return;
    if (!strncmp(g->err.message, "grammar: ", 9))
        memmove(g->err.message, g->err.message + 9, strlen(g->err.message) - 8);
    weft_fail_within(&g->err, (weft_status)g->err.status, "%s%s", prefix, place);
}

static int32_t grammar_no_memory(weft__gram *g)
{
    weft__gram_fail(g, WEFT_NO_MEMORY, "no memory for a grammar");
    return -1;
}

/* ---- building ---- */

void weft__gram_apart(weft__gram *g)
{
    g->apart++;
}

int32_t weft__gram_rule(weft__gram *g, const char *name, size_t n)
{
    char own[WEFT__GRAM_MAX_NAME];
    if (g->err.status) return -1;
    if (g->apart && n + 2 <= sizeof own) {
        memcpy(own, name, n);
        own[n++] = (char)WEFT__GRAM_SAME_PLACE;
        own[n++] = g->apart;
        name = own;
    }
    int32_t found = weft__strings_find(&g->names, name, n);
    if (found >= 0) return found;
    if (n > WEFT__GRAM_MAX_NAME) {
        fail_on_line(g, WEFT_LIMIT, "a rule's name of %zu bytes; at most %d", n, WEFT__GRAM_MAX_NAME);
        return -1;
    }
    if (g->n_rules >= WEFT__GRAM_MAX_RULES) {
        fail_on_line(g, WEFT_LIMIT, "more than %d rules", WEFT__GRAM_MAX_RULES);
        return -1;
    }
    if (!weft__grow(&g->rules, &g->rules_capacity, g->n_rules + 1, sizeof *g->rules) ||
        !weft__strings_add(&g->names, name, n, 1))
        return grammar_no_memory(g);
    g->rules[g->n_rules] = (weft__gram_rule_def){.body = -1, .mention = g->line, .refs = WEFT__GRAM_NONE};
    return (int32_t)g->n_rules++;
}

/* 1 when x may become part of something else. */
static int is_free(weft__gram *g, int32_t x)
{
    if (g->err.status) return 0;
    if (x >= 0 && (size_t)x < g->n_nodes && g->nodes[x].parent == -1) return 1;
    weft__gram_fail(g, WEFT_INTERNAL, "grammar: expression %d is unknown or part of another already", x);
    return 0;
}

void weft__gram_define(weft__gram *g, int32_t rule, int32_t body)
{
    char label[WEFT__GRAM_LABEL];
    if (!is_free(g, body)) return;
    weft__gram_rule_def *r = &g->rules[rule];
    if (r->body >= 0) {
        fail_on_line(g, WEFT_ARGUMENT, "%s is defined again", weft__gram_label(weft__gram_name_of(g, rule), label));
        return;
    }
    r->body = body;
    r->line = g->line;
    r->origin = g->origin;
    g->nodes[body].parent = -2 - rule;
}

int weft__gram_defined(const weft__gram *g, int32_t rule)
{
    return !g->err.status && g->rules[rule].body >= 0;
}

void weft__gram_check_first(weft__gram *g, int32_t rule)
{
    char subject[WEFT__GRAM_LABEL];
    if (!g->err.status && !weft__gram_defined(g, rule))
        weft__gram_fail(g, WEFT_ARGUMENT, "%s is not defined; a grammar begins with it",
                        weft__gram_subject(weft__gram_name_of(g, rule), subject));
}

size_t weft__gram_n_rules(const weft__gram *g)
{
    return g->n_rules;
}

void weft__gram_call(weft__gram *g, int32_t rule)
{
    if (!g->err.status) g->rules[rule].call = 1;
}

void weft__gram_inline(weft__gram *g, int32_t rule)
{
    if (!g->err.status) g->rules[rule].copied = 1;
}

static int32_t add_node(weft__gram *g, weft__gram_kind kind, uint32_t a, uint32_t b, uint16_t nesting)
{
    if (g->err.status) return -1;
    if (g->n_nodes >= WEFT__GRAM_MAX_NODES || g->n_bytes > WEFT__GRAM_MAX_NODES || g->n_ranges > WEFT__GRAM_MAX_NODES) {
        fail_on_line(g, WEFT_LIMIT, "more than %d expressions", WEFT__GRAM_MAX_NODES);
        return -1;
    }
    if (nesting > WEFT__GRAM_MAX_NESTING) {
        fail_on_line(g, WEFT_LIMIT, "expressions nested more than %d deep; give inner ones a name",
                     WEFT__GRAM_MAX_NESTING);
        return -1;
    }
    if (!weft__grow(&g->nodes, &g->nodes_capacity, g->n_nodes + 1, sizeof *g->nodes)) return grammar_no_memory(g);
    g->nodes[g->n_nodes] = (weft__gram_node){a, b, -1, -1, g->line, nesting, (uint8_t)kind, 0};
    return (int32_t)g->n_nodes++;
}

/* Whatever the bytes are. */
static int32_t add_bytes(weft__gram *g, const char *s, size_t n)
{
    if (n > WEFT__GRAM_MAX_NODES) {
        fail_on_line(g, WEFT_LIMIT, "a literal of %zu bytes", n);
        return -1;
    }
    if (!weft__grow(&g->bytes, &g->bytes_capacity, g->n_bytes + n, 1)) return grammar_no_memory(g);
    if (n) memcpy(g->bytes + g->n_bytes, s, n);
    g->n_bytes += n;
    return add_node(g, WEFT__GRAM_TEXT, (uint32_t)(g->n_bytes - n), (uint32_t)n, 1);
}

int32_t weft__gram_text(weft__gram *g, const char *s, size_t n)
{
    if (g->err.status) return -1;
    if (weft__utf8_valid(s, n)) return add_bytes(g, s, n);
    fail_on_line(g, WEFT_ARGUMENT, "a literal that is no UTF-8");
    return -1;
}

int32_t weft__gram_token(weft__gram *g, int32_t id)
{
    char text[WEFT__TOK_SPECIAL_MAX_BYTES + 2];
    if (g->err.status) return -1;
    if (!g->tok || id < 0 || id >= weft__tok_n(g->tok)) {
        fail_on_line(g, WEFT_ARGUMENT, "token %d: the vocabulary has ids 0 to %d", id,
                     g->tok ? weft__tok_n(g->tok) - 1 : -1);
        return -1;
    }
    if (weft__gram_trie_is_control(g->tok, id)) {
        weft__tok_slice s = weft__tok_text(g->tok, id);
        text[0] = text[s.len + 1] = (char)WEFT__GRAM_TRIE_CONTROL;
        memcpy(text + 1, s.data, s.len);
        return add_bytes(g, text, s.len + 2);
    }
    weft__tok_slice piece = weft__tok_piece_of(g->tok, id);
    if (weft__tok_is_end(g->tok, id))
        fail_on_line(g, WEFT_ARGUMENT,
                     "token %d ends the answer, and is allowed where the grammar may end; leave "
                     "it out",
                     id);
    else if (piece.len == 0 || !weft__utf8_valid(piece.data, piece.len))
        fail_on_line(g, WEFT_UNSUPPORTED, "token %d has no text of whole characters", id);
    return weft__gram_text(g, piece.data, piece.len);
}

int32_t weft__gram_find(const weft__gram *g, const char *s, size_t n)
{
    return g->tok && !g->err.status ? weft__tok_find(g->tok, s, n) : -1;
}

static int by_lo(const void *a, const void *b)
{
    const weft__gram_range *x = a, *y = b;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

/* Appends lo..hi without the surrogates; there is room. */
static void put_range(weft__gram *g, uint32_t lo, uint32_t hi)
{
    if (lo < 0xD800 && hi >= 0xD800) {
        g->ranges[g->n_ranges++] = (weft__gram_range){lo, 0xD7FF};
        lo = 0xE000;
    } else if (lo >= 0xD800 && lo < 0xE000) {
        lo = 0xE000;
    }
    if (lo <= hi) g->ranges[g->n_ranges++] = (weft__gram_range){lo, hi};
}

int32_t weft__gram_class(weft__gram *g, const weft__gram_range *ranges, size_t n, int negated)
{
    if (g->err.status) return -1;
    size_t at = g->n_ranges;
    weft__gram_range *own = weft__alloc_array(n, sizeof *own);
    if (!own || !weft__grow(&g->ranges, &g->ranges_capacity, at + 2 * n + 2, sizeof *own)) {
        weft__free(own);
        return grammar_no_memory(g);
    }
    if (n) memcpy(own, ranges, n * sizeof *own);
    qsort(own, n, sizeof *own, by_lo);
    uint32_t next = 0; /* the first code point that no range reached yet */
    for (size_t i = 0; i < n; i++) {
        uint32_t lo = own[i].lo < next ? next : own[i].lo, hi = own[i].hi > 0x10FFFF ? 0x10FFFF : own[i].hi;
        if (lo > hi) continue;
        if (negated && lo > next) put_range(g, next, lo - 1);
        if (!negated) put_range(g, lo, hi);
        next = hi + 1;
    }
    if (negated && next <= 0x10FFFF) put_range(g, next, 0x10FFFF);
    weft__free(own);
    if (g->n_ranges == at) {
        fail_on_line(g, WEFT_ARGUMENT, "a character class that matches no character");
        return -1;
    }
    return add_node(g, WEFT__GRAM_CLASS, (uint32_t)at, (uint32_t)(g->n_ranges - at), 1);
}

static int32_t add_list(weft__gram *g, weft__gram_kind kind, const int32_t *items, size_t n)
{
    uint16_t nesting = 0;
    if (g->err.status) return -1;
    if (n > WEFT__GRAM_MAX_NODES) {
        fail_on_line(g, WEFT_LIMIT, "more than %d expressions", WEFT__GRAM_MAX_NODES);
        return -1;
    }
    if (!weft__grow(&g->items, &g->items_capacity, g->n_items + n, sizeof *items)) return grammar_no_memory(g);
    for (size_t i = 0; i < n; i++) {
        if (!is_free(g, items[i])) return -1;
        g->nodes[items[i]].parent = (int32_t)g->n_nodes;
        if (g->nodes[items[i]].nesting > nesting) nesting = g->nodes[items[i]].nesting;
        g->items[g->n_items + i] = items[i];
    }
    g->n_items += n;
    return add_node(g, kind, (uint32_t)(g->n_items - n), (uint32_t)n, (uint16_t)(nesting + 1));
}

int32_t weft__gram_seq(weft__gram *g, const int32_t *items, size_t n)
{
    return n == 1 ? items[0] : add_list(g, WEFT__GRAM_SEQ, items, n);
}

int32_t weft__gram_alt(weft__gram *g, const int32_t *items, size_t n)
{
    if (n == 0) weft__gram_fail(g, WEFT_INTERNAL, "grammar: a choice of nothing");
    return n == 1 ? items[0] : add_list(g, WEFT__GRAM_ALT, items, n);
}

int32_t weft__gram_repeat(weft__gram *g, int32_t item, uint32_t min, uint32_t max)
{
    if (!is_free(g, item)) return -1;
    if (min > max) {
        fail_on_line(g, WEFT_ARGUMENT, "{%u,%u} asks for more than it allows", min, max);
        return -1;
    }
    int32_t node = add_node(g, WEFT__GRAM_REPEAT, min, max, (uint16_t)(g->nodes[item].nesting + 1));
    if (node < 0) return -1;
    g->nodes[item].parent = node;
    g->nodes[node].item = item;
    return node;
}

int32_t weft__gram_mark(weft__gram *g, int32_t item, uint32_t mark)
{
    int32_t node = weft__gram_repeat(g, item, 1, 1);
    if (node < 0) return -1;
    g->nodes[node].kind = WEFT__GRAM_MARK;
    g->nodes[node].a = mark;
    return node;
}

int32_t weft__gram_ref(weft__gram *g, int32_t rule)
{
    if (g->err.status) return -1;
    int32_t node = add_node(g, WEFT__GRAM_REF, (uint32_t)rule, g->rules[rule].refs, 1);
    if (node >= 0) g->rules[rule].refs = (uint32_t)node;
    return node;
}

void weft__gram_machine_state(weft__gram *g, int accept, const weft__gram_edge *edges, size_t n)
{
    if (g->err.status) return;
    if (g->n_machine_states > WEFT__GRAM_MAX_STATES || g->n_machine_edges + n > WEFT__GRAM_MAX_EDGES) {
        weft__gram_fail(g, WEFT_LIMIT, "grammar: texts that are held to several rules at once need too many states");
        return;
    }
    if (!weft__grow(&g->machine_states, &g->machine_states_capacity, g->n_machine_states + 1,
                    sizeof *g->machine_states) ||
        !weft__grow(&g->machine_edges, &g->machine_edges_capacity, g->n_machine_edges + n, sizeof *edges)) {
        grammar_no_memory(g);
        return;
    }
    g->machine_states[g->n_machine_states++] = (weft__gram_machine_node){(uint32_t)g->n_machine_edges, accept};
    if (n) memcpy(g->machine_edges + g->n_machine_edges, edges, n * sizeof *edges);
    g->n_machine_edges += n;
}

int32_t weft__gram_machine(weft__gram *g, size_t n)
{
    return add_node(g, WEFT__GRAM_MACHINE, (uint32_t)(g->n_machine_states - n), (uint32_t)n, 1);
}

int weft__gram_is_ref(const weft__gram *g, int32_t x, int32_t rule)
{
    return !g->err.status && g->nodes[x].kind == WEFT__GRAM_REF && (int32_t)g->nodes[x].a == rule;
}

/* ---- markers ---- */

int32_t weft__gram_control_at(const weft__gram *g, const char *s, size_t n, size_t *length)
{
    size_t most = n < WEFT__TOK_SPECIAL_MAX_BYTES ? n : WEFT__TOK_SPECIAL_MAX_BYTES;
    for (*length = most; *length > 1; --*length) {
        int32_t id = weft__gram_find(g, s, *length);
        if (id >= 0 && (weft__tok_is_end(g->tok, id) || weft__gram_trie_is_control(g->tok, id))) return id;
    }
    return -1;
}

int32_t weft__gram_marker(weft__gram *g, const char *s, size_t n)
{
    int32_t *items = weft__alloc_array(n + 1, sizeof *items), node;
    size_t n_items = 0, from = 0, length = 0;
    if (!items) return grammar_no_memory(g);
    for (size_t at = 0; at < n && !g->err.status;) {
        int32_t id = weft__gram_control_at(g, s + at, n - at, &length);
        if (id < 0) {
            at++;
            continue;
        }
        if (at > from) items[n_items++] = weft__gram_text(g, s + from, at - from);
        items[n_items++] = weft__gram_token(g, id);
        from = at += length;
    }
    if (from < n || !n) items[n_items++] = weft__gram_text(g, s + from, n - from);
    node = weft__gram_seq(g, items, n_items);
    weft__free(items);
    return node;
}

int32_t weft__gram_without(weft__gram *g, const char *s, size_t n)
{
    weft__gram_range letters[64];
    size_t n_letters = 0;
    int bad = !n;
    for (size_t at = 0; at < n && !bad && n_letters < 64;) {
        at += weft__utf8_decode(s + at, n - at, &letters[n_letters].lo, &bad);
        letters[n_letters].hi = letters[n_letters].lo;
        n_letters++;
        bad |= at < n && !memcmp(s, s + at, n - at); /* its beginning is its end */
    }
    if (g->err.status) return -1;
    if (bad || n_letters == 64) {
        weft__gram_fail(g, WEFT_INTERNAL, "grammar: a text without '%.*s'", (int)n, s);
        return -1;
    }
    int32_t others = weft__gram_class(g, letters, n_letters, 1), text = add_bytes(g, s, n);
    if (text < 0) return -1;
    weft__gram_node *x = &g->nodes[text];
    x->kind = WEFT__GRAM_WITHOUT;
    x->item = others;
    x->nesting = 2;
    g->nodes[others].parent = text;
    return text;
}

/* The ranges of a class without c, as new ones. */
static void exclude_from(weft__gram *g, int32_t node, uint32_t c)
{
    weft__gram_range kept[64];
    weft__gram_node *x = &g->nodes[node];
    size_t n = 0;
    for (uint32_t i = 0; i < x->b && n + 2 < 64; i++) {
        weft__gram_range r = g->ranges[x->a + i];
        if (r.lo > c || r.hi < c) kept[n++] = r;
        if (r.lo < c && r.hi >= c) kept[n++] = (weft__gram_range){r.lo, c - 1};
        if (r.lo <= c && r.hi > c) kept[n++] = (weft__gram_range){c + 1, r.hi};
    }
    if (!n) return; /* nothing but c is wanted */
    if (n + 2 >= 64) {
        weft__gram_fail(g, WEFT_UNSUPPORTED, "grammar: a class of characters that cannot do without U+%04X", c);
        return;
    }
    if (!weft__grow(&g->ranges, &g->ranges_capacity, g->n_ranges + n, sizeof *g->ranges)) {
        grammar_no_memory(g);
        return;
    }
    memcpy(g->ranges + g->n_ranges, kept, n * sizeof *kept);
    x->a = (uint32_t)g->n_ranges;
    x->b = (uint32_t)n;
    g->n_ranges += n;
}

void weft__gram_exclude(weft__gram *g, int32_t rule, uint32_t c)
{
    if (g->err.status) return;
    for (size_t i = 0; i < g->n_nodes && !g->err.status; i++) {
        int32_t above = (int32_t)i;
        if (g->nodes[i].kind != WEFT__GRAM_CLASS) continue;
        while (above >= 0) above = g->nodes[above].parent;
        if (above == -2 - rule) exclude_from(g, (int32_t)i, c);
    }
}

/* ---- compiling ---- */

void weft__gram_automaton_destroy(weft__gram_automaton **p)
{
    weft__gram_automaton *a = p ? *p : NULL;
    if (!a) return;
    weft__strings_free(&a->origins);
    weft__strings_free(&a->names);
    weft__free(a->of_origin);
    weft__free(a->lines);
    weft__free(a->starts);
    weft__free(a->calls);
    weft__free(a->edges);
    weft__free(a->states);
    weft__free(a);
    *p = NULL;
}

size_t weft__gram_automaton_bytes(const weft__gram_automaton *a)
{
    return sizeof *a + a->states_capacity * sizeof *a->states + a->edges_capacity * sizeof *a->edges +
           a->calls_capacity * sizeof *a->calls +
           a->n_rules * (sizeof *a->starts + sizeof *a->lines + sizeof *a->of_origin) + a->names.bytes_capacity +
           a->names.at_capacity * sizeof *a->names.at;
}

static int copy_rules(weft__gram_automaton *a, const weft__gram *g)
{
    a->n_rules = g->n_rules;
    a->lines = weft__alloc_array(g->n_rules, sizeof *a->lines);
    a->of_origin = weft__alloc_array(g->n_rules, sizeof *a->of_origin);
    a->starts = weft__alloc_array(g->n_rules, sizeof *a->starts);
    if (!a->lines || !a->of_origin || !a->starts) return 0;
    for (size_t i = 0; i < g->origins.n; i++)
        if (!weft__strings_add(&a->origins, weft__strings_data(&g->origins, i), weft__strings_len(&g->origins, i), 0))
            return 0;
    for (size_t i = 0; i < g->n_rules; i++) {
        a->lines[i] = g->rules[i].line;
        a->of_origin[i] = g->rules[i].origin;
        a->starts[i] = -1;
        if (!weft__strings_add(&a->names, weft__strings_data(&g->names, i), weft__strings_len(&g->names, i), 0))
            return 0;
    }
    return 1;
}

/* Compiles root and every rule that is called, each when its first call is met. */
static weft_status compile_rules(weft__gram_automaton *a, const weft__gram *g, const weft__gram_plan *plan,
                                 size_t budget[2], weft_error *err)
{
    weft__gram_nfa nfa = {0};
    size_t at = 0;
    weft_status st = WEFT_OK;
    for (int32_t rule = a->root; rule >= 0;) {
        char where[WEFT__GRAM_LABEL];
        a->starts[rule] = (int32_t)a->n_states;
        st = weft__gram_nfa_build(g, plan, rule, &nfa, err);
        if (!st) st = weft__gram_automaton_add(a, &nfa, rule, budget, err);
        if (st) {
            weft_fail_within(err, st, "%s", weft__gram_place(weft__gram_name_of(g, rule), where));
            break;
        }
        while (at < a->n_calls && a->starts[a->calls[at].rule] >= 0) at++;
        rule = at < a->n_calls ? a->calls[at].rule : -1;
    }
    weft__gram_nfa_free(&nfa);
    return st;
}

/* The closing state, and what the others can do. */
static int close_states(weft__gram_automaton *a)
{
    if (!weft__grow(&a->states, &a->states_capacity, a->n_states + 1, sizeof *a->states)) return 0;
    a->states[a->n_states] = (weft__gram_state){(uint32_t)a->n_edges, (uint32_t)a->n_calls, -1, 0};
    for (size_t i = 0; i < a->n_states; i++) {
        weft__gram_state *s = &a->states[i];
        if (s->flags && s[0].edge == s[1].edge && s[0].call == s[1].call) s->flags |= WEFT__GRAM_STATE_LAST;
        if (!s->flags && s[0].call == s[1].call) s->flags |= WEFT__GRAM_STATE_PLAIN;
    }
    return 1;
}

weft_status weft__gram_compile(weft__gram *g, int32_t root, uint32_t depth, weft__gram_automaton **out, weft_error *err)
{
    size_t budget[2] = {(size_t)1 << 20, (size_t)1 << 21}; /* tens of milliseconds */
    return weft__gram_compile_within(g, root, depth, budget, out, err);
}

weft_status weft__gram_compile_within(weft__gram *g, int32_t root, uint32_t depth, size_t budget[2],
                                      weft__gram_automaton **out, weft_error *err)
{
    weft__gram_plan plan = {0};
    *out = NULL;
    if (g->err.status) return weft_fail(err, (weft_status)g->err.status, "%s", g->err.message);
    weft__gram_automaton *a = weft__alloc_zero(1, sizeof *a);
    if (!a) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
    a->root = root;
    a->depth = depth;
    weft_status st =
        copy_rules(a, g) ? weft__gram_check(g, err) : weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
    if (!st) st = weft__gram_plan_make(g, root, &plan, err);
    if (!st) st = compile_rules(a, g, &plan, budget, err);
    if (!st && !close_states(a)) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
    weft__gram_plan_free(&plan);
    if (st) weft__gram_automaton_destroy(&a);
    *out = a;
    return st;
}
