// SPDX-License-Identifier: Apache-2.0
/* naive_grammar.h: random grammars as syntax trees, their GBNF, and a recognizer of the trees that tries everything: an
 * oracle for masks that shares nothing with the library but the decoding of UTF-8. One thread. */
#ifndef WEFT_TESTS_NAIVE_GRAMMAR_H
#define WEFT_TESTS_NAIVE_GRAMMAR_H

#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/text.h"

enum { LITERAL, CLASS, SEQ, ALT, REPEAT, REF, MAX_NODES = 200, MAX_RULES = 5 };

typedef struct node {
    int kind, n, item[4]; /* REF: item[0] is the rule */
    int min, max;         /* max -1: none */
    char text[16];
    uint32_t lo[3], hi[3];
    int negated;
} node;

typedef struct tree {
    node nodes[MAX_NODES];
    int n, n_rules, rule[MAX_RULES];
    int data; /* what data is made of, instead of few letters in every order */
} tree;

/* ---- random grammars ---- */

static const uint32_t letters[] = {'a', 'b', 'c', 0xE9, 0x4E2D, 0x1F600};

static inline void random_letters(node *x, weft__rng *rng)
{
    if (x->kind == LITERAL && weft__rng_below(rng, 8) == 0) {
        strcpy(x->text, CONTROL_BYTES);
        x->n = (int)weft__rng_below(rng, 2); /* by its number */
        return;
    }
    if (x->kind == LITERAL) {
        for (uint64_t i = weft__rng_below(rng, 3); i > 0; i--) {
            size_t n = strlen(x->text);
            x->text[n + weft__utf8_encode(letters[weft__rng_below(rng, 6)], x->text + n)] = 0;
        }
        return;
    }
    x->n = 1 + (int)weft__rng_below(rng, 3);
    x->negated = weft__rng_below(rng, 4) == 0;
    for (int i = 0; i < x->n; i++) {
        x->lo[i] = letters[weft__rng_below(rng, 6)];
        x->hi[i] = x->lo[i] + (uint32_t)(weft__rng_below(rng, 2) ? 0 : weft__rng_below(rng, x->lo[i] < 128 ? 3 : 5000));
        if (x->lo[i] < 0xD800 && x->hi[i] >= 0xD800) x->hi[i] = 0xD7FF;
    }
}

/* Strings, numbers and what stands between them. */
static inline void random_data(node *x, weft__rng *rng)
{
    static const char *const texts[] = {"\"",   "\": \"", ", ", "{\"a",     "}",    "[",   "]",   " ",
                                        "true", "-",      ".",  "\xC3\xA9", "\n  ", "\\n", "the "};
    static const node classes[] = {
        {.n = 3, .lo = {0, '"', '\\'}, .hi = {31, '"', '\\'}, .negated = 1},
        {.n = 3, .lo = {0, '"', '\\'}, .hi = {31, '"', '\\'}, .negated = 1},
        {.n = 1, .lo = {'0'}, .hi = {'9'}},
        {.n = 2, .lo = {'a', 'A'}, .hi = {'z', 'Z'}},
        {.n = 3, .lo = {'a', '0', '_'}, .hi = {'z', '9', '_'}},
        {.n = 2, .lo = {'a', '0'}, .hi = {'f', '9'}},
        {.n = 1, .lo = {' '}, .hi = {'~'}},
        {.n = 1, .lo = {'\n'}, .hi = {'\n'}, .negated = 1},
        {.n = 2, .lo = {' ', 0x80}, .hi = {'z', 0x10FFFF}},
        {.n = 2, .lo = {'a', 0x400}, .hi = {'z', 0x9FFF}},
    };
    if (x->kind == LITERAL) {
        snprintf(x->text, sizeof x->text, "%s", texts[weft__rng_below(rng, sizeof texts / sizeof *texts)]);
    } else {
        *x = classes[weft__rng_below(rng, sizeof classes / sizeof *classes)];
        x->kind = CLASS;
    }
}

static inline int random_node(tree *t, weft__rng *rng, int depth)
{
    int at = t->n++;
    node *x = &t->nodes[at];
    int kind = (int)weft__rng_below(rng, depth > 0 && t->n < MAX_NODES - 20 ? 8 : 2);
    *x = (node){.kind = kind < 2 ? kind : kind == 2 || kind == 6 ? SEQ : kind == 3 ? ALT : kind == 4 ? REPEAT : REF};
    if (x->kind <= CLASS) {
        if (t->data) random_data(x, rng);
        else random_letters(x, rng);
    } else if (x->kind == REPEAT) {
        static const int bounds[][2] = {{0, -1}, {1, -1}, {0, 1}, {2, 2},  {1, 3},  {2, -1},
                                        {0, 0},  {0, 5},  {4, 9}, {1, 30}, {0, -1}, {0, -1}};
        uint64_t which = weft__rng_below(rng, t->data ? 12 : 7);
        x->min = bounds[which][0];
        x->max = bounds[which][1];
        x->n = 1;
        int item = random_node(t, rng, depth - 1);
        t->nodes[at].item[0] = item;
    } else if (x->kind == REF) {
        x->item[0] = (int)weft__rng_below(rng, (uint64_t)t->n_rules);
    } else {
        int n = x->n = 1 + (int)weft__rng_below(rng, 3);
        for (int i = 0; i < n; i++) {
            int item = random_node(t, rng, depth - 1);
            t->nodes[at].item[i] = item;
        }
    }
    return at;
}

static inline void random_tree(tree *t, weft__rng *rng, int data)
{
    memset(t, 0, sizeof *t);
    t->data = data;
    t->n_rules = 1 + (int)weft__rng_below(rng, MAX_RULES);
    for (int r = 0; r < t->n_rules; r++) t->rule[r] = random_node(t, rng, 3);
}

static inline void write_char(weft__strbuf *out, uint32_t cp)
{
    if (cp >= 'a' && cp <= 'z') weft__strbuf_put_utf8(out, cp);
    else weft__strbuf_printf(out, cp > 0xFFFF ? "\\U%08X" : "\\u%04x", cp);
}

static inline void write_node(const tree *t, int at, weft__strbuf *out)
{
    const node *x = &t->nodes[at];
    if (x->kind == LITERAL && x->text[0] == '\xFF') {
        weft__strbuf_puts(out, x->n ? "<[256]>" : "<ctl>");
    } else if (x->kind == LITERAL) {
        weft__strbuf_putc(out, '"');
        for (const char *c = x->text; *c; c++) {
            if (*c == '"' || *c == '\\') weft__strbuf_putc(out, '\\');
            if (*c == '\n') weft__strbuf_puts(out, "\\n");
            else weft__strbuf_putc(out, *c);
        }
        weft__strbuf_putc(out, '"');
    } else if (x->kind == CLASS) {
        weft__strbuf_puts(out, x->negated ? "[^" : "[");
        for (int i = 0; i < x->n; i++) {
            write_char(out, x->lo[i]);
            if (x->hi[i] == x->lo[i]) continue;
            weft__strbuf_putc(out, '-');
            write_char(out, x->hi[i]);
        }
        weft__strbuf_putc(out, ']');
    } else if (x->kind == REF) {
        if (x->item[0]) weft__strbuf_printf(out, "r%d", x->item[0]);
        else weft__strbuf_puts(out, "root");
    } else {
        weft__strbuf_puts(out, "( ");
        for (int i = 0; i < x->n; i++) {
            if (i) weft__strbuf_puts(out, x->kind == ALT ? " | " : " ");
            write_node(t, x->item[i], out);
        }
        weft__strbuf_puts(out, " )");
        if (x->kind == REPEAT && x->max < 0 && x->min < 2) weft__strbuf_putc(out, x->min ? '+' : '*');
        else if (x->kind == REPEAT && x->max == x->min) weft__strbuf_printf(out, "{%d}", x->min);
        else if (x->kind == REPEAT && x->max < 0) weft__strbuf_printf(out, "{%d,}", x->min);
        else if (x->kind == REPEAT) weft__strbuf_printf(out, "{%d,%d}", x->min, x->max);
    }
}

static inline void write_tree(const tree *t, weft__strbuf *out)
{
    for (int r = 0; r < t->n_rules; r++) {
        if (r) weft__strbuf_printf(out, "r%d ::= ", r);
        else weft__strbuf_puts(out, "root ::= ");
        write_node(t, t->rule[r], out);
        weft__strbuf_puts(out, " # rule\n");
    }
}

/* Whether a node has a property, given which rules have it. */
static inline int empty_possible(const tree *t, int at, const int *rules)
{
    const node *x = &t->nodes[at];
    int all = 1, one = 0;
    if (x->kind == LITERAL) return x->text[0] == 0;
    if (x->kind == CLASS) return 0;
    if (x->kind == REF) return rules[x->item[0]];
    for (int i = 0; i < x->n; i++) {
        int has = empty_possible(t, x->item[i], rules);
        all &= has;
        one |= has;
    }
    return x->kind == ALT ? one : x->kind == SEQ ? all : x->min == 0 || all;
}

static inline int productive(const tree *t, int at, const int *rules)
{
    const node *x = &t->nodes[at];
    int all = 1, one = 0;
    if (x->kind == LITERAL || x->kind == CLASS) return 1;
    if (x->kind == REF) return rules[x->item[0]];
    for (int i = 0; i < x->n; i++) {
        int has = productive(t, x->item[i], rules);
        all &= has;
        one |= has;
    }
    return x->kind == ALT ? one : x->kind == SEQ ? all : x->min == 0 || all;
}

/* Adds the rules that may come first. */
static inline void firsts(const tree *t, int at, const int *nullable, int *out)
{
    const node *x = &t->nodes[at];
    if (x->kind == REF) out[x->item[0]] = 1;
    if (x->kind == REPEAT && x->max == 0) return;
    for (int i = 0; i < x->n && x->kind >= SEQ && x->kind <= REPEAT; i++) {
        firsts(t, x->item[i], nullable, out);
        if (x->kind == SEQ && !empty_possible(t, x->item[i], nullable)) break;
    }
}

/* 1 when no rule is left-recursive and all can be fulfilled. */
static inline int is_sound(const tree *t)
{
    int nullable[MAX_RULES] = {0}, fine[MAX_RULES] = {0}, first[MAX_RULES][MAX_RULES] = {0};
    for (int round = 0; round < MAX_RULES; round++) {
        for (int r = 0; r < t->n_rules; r++) {
            nullable[r] = empty_possible(t, t->rule[r], nullable);
            fine[r] = productive(t, t->rule[r], fine);
        }
    }
    for (int r = 0; r < t->n_rules; r++) {
        if (!fine[r]) return 0;
        firsts(t, t->rule[r], nullable, first[r]);
    }
    for (int k = 0; k < t->n_rules; k++)
        for (int i = 0; i < t->n_rules; i++)
            for (int j = 0; j < t->n_rules; j++) first[i][j] |= first[i][k] && first[k][j];
    for (int r = 0; r < t->n_rules; r++)
        if (first[r][r]) return 0;
    return 1;
}

typedef struct naive {
    const tree *t;
    const char *s;
    int n;
    int open; /* some way wanted more than there was */
    long steps;
} naive;

static inline int in_class(const node *x, uint32_t cp)
{
    int in = 0;
    for (int i = 0; i < x->n; i++) in |= cp >= x->lo[i] && cp <= x->hi[i];
    return in != x->negated && !(cp >= 0xD800 && cp < 0xE000) && cp <= 0x10FFFF;
}

/* 1 when some character of the class begins with these bytes, which are none. */
static inline int could_begin(const node *x, const char *s, int n)
{
    int length = weft__utf8_length((unsigned char)s[0]);
    char want[4];
    uint32_t highest = x->negated ? 0x10FFFF : 0;
    for (int i = 0; i < x->n; i++) highest = x->hi[i] > highest ? x->hi[i] : highest;
    if (length <= n || highest < 128) return 0;
    uint32_t base = 0;
    for (int i = 0; i < length; i++)
        base = base << (i ? 6 : 0) | (i >= n ? 0 : (unsigned char)s[i] & (i ? 0x3F : 0xFF >> (length + 1)));
    for (uint32_t rest = 0; rest < (uint32_t)1 << (6 * (length - n)); rest++)
        if (in_class(x, base + rest) && weft__utf8_encode(base + rest, want) == (size_t)length &&
            !memcmp(want, s, (size_t)n))
            return 1;
    return 0;
}

/* The positions at which the node may end when it begins at one of `from` (bits). */
static inline uint64_t ends(naive *q, int at, uint64_t from)
{
    const node *x = &q->t->nodes[at];
    uint64_t out = 0;
    if (!from || ++q->steps > 200000) return 0;
    if (x->kind == REF) return ends(q, q->t->rule[x->item[0]], from);
    if (x->kind == ALT) {
        for (int i = 0; i < x->n; i++) out |= ends(q, x->item[i], from);
        return out;
    }
    if (x->kind == SEQ) {
        for (int i = 0; i < x->n; i++) from = ends(q, x->item[i], from);
        return from;
    }
    if (x->kind == REPEAT) {
        uint64_t now = from, seen = x->min == 0 ? from : 0;
        for (int i = 1; now && (x->max < 0 || i <= x->max); i++) {
            now = ends(q, x->item[0], now);
            if (x->max < 0 && i > x->min) now &= ~seen; /* what was gone on from before */
            if (i >= x->min) seen |= now;
        }
        return seen;
    }
    for (; from; from &= from - 1) {
        int p = __builtin_ctzll(from), left = q->n - p;
        if (x->kind == LITERAL) {
            int n = (int)strlen(x->text), same = n < left ? n : left;
            if (memcmp(q->s + p, x->text, (size_t)same)) continue;
            if (n <= left) out |= (uint64_t)1 << (p + n);
            else q->open = 1;
        } else if (left == 0) {
            q->open = 1;
        } else {
            uint32_t cp;
            int bad = 0;
            size_t n = weft__utf8_decode(q->s + p, (size_t)left, &cp, &bad);
            if (!bad && in_class(x, cp)) out |= (uint64_t)1 << (p + (int)n);
            if (bad && could_begin(x, q->s + p, left)) q->open = 1;
        }
    }
    return out;
}

/* 1 when s[0..n) begins a text of the grammar, 2 when it is one, 3 both; -1: it takes too long to say. */
static inline int naively(const tree *t, const char *s, int n)
{
    naive q = {t, s, n, 0, 0};
    uint64_t e = ends(&q, t->rule[0], 1);
    int whole = (int)(e >> n & 1);
    return q.steps > 200000 ? -1 : (q.open || whole) + 2 * whole;
}

#endif
