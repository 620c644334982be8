// SPDX-License-Identifier: Apache-2.0
/* grammar_attacks.h: grammars that attack time and memory, each in any size, and what it takes to meet one: for a test
 * of how that grows (text_grammar_limits.c), and a benchmark that says how long it is (bench_text.c). One thread. */
#ifndef WEFT_TESTS_GRAMMAR_ATTACKS_H
#define WEFT_TESTS_GRAMMAR_ATTACKS_H

#include "unit/grammar_world.h"

typedef struct attack {
    const char *name;
    weft__strbuf source, text; /* of the grammar, and what is read with it */
    int status;                /* what comes of it; ANY: WEFT_OK or WEFT_LIMIT */
    int eighths;               /* how much of it there is, of EIGHTHS */
} attack;

enum { ANY = -1, N_ATTACKS = 20, FIRST_OF_WORDS = 16, EIGHTHS = 8 };

/* What is `all` in the whole attack. */
static inline int part_of(const attack *k, int all)
{
    return all / EIGHTHS * k->eighths;
}

/* `times` copies of a text. */
static inline void repeat(weft__strbuf *out, const char *s, int times)
{
    for (int i = 0; i < times; i++) weft__strbuf_puts(out, s);
}

/* Long lists of literals, which are no attack: numbered or drawn, and by themselves or as items. */
static inline void write_words(attack *k, int shape)
{
    enum { WORDS = 15000, LETTERS = 12 };
    const int drawn = shape % 2, items = shape >= 2, n = part_of(k, drawn ? WORDS * 2 / 3 : WORDS);
    weft__rng rng;
    weft__rng_seed(&rng, 3);
    weft__strbuf_puts(&k->source, items ? "root ::= \"[\" item (\",\" item)* \"]\"\nitem ::= " : "root ::= ");
    if (items) weft__strbuf_puts(&k->text, "[");
    for (int i = 0; i < n; i++) {
        char word[LETTERS + 1] = {0};
        for (int j = 0; j < LETTERS; j++) word[j] = (char)('a' + weft__rng_below(&rng, 26));
        if (!drawn) snprintf(word, sizeof word, "w%d", i);
        weft__strbuf_printf(&k->source, i ? " | \"%s\"" : "\"%s\"", word);
        if (i == n / 2) weft__strbuf_puts(&k->text, word);
    }
}

/* Grammars whose source is large or deep. */
static inline void write_large(attack *k, int i)
{
    weft__strbuf *s = &k->source;
    int n;
    weft__strbuf_puts(s, "root ::= ");
    switch (i) {
    case 0:
        k->name = "nested quantifiers", k->status = WEFT_LIMIT;
        n = part_of(k, 24);
        repeat(s, "(", n), weft__strbuf_puts(s, "\"a\""), repeat(s, "{0,99})", n);
        break;
    case 1:
        k->name = "nested stars";
        n = part_of(k, 40);
        repeat(s, "(", n), weft__strbuf_puts(s, "\"a\""), repeat(s, "*)+", n);
        weft__strbuf_puts(&k->text, "aaaaaaaaaa");
        break;
    case 2:
        k->name = "10 MB", k->status = WEFT_LIMIT;
        weft__strbuf_puts(s, "\""), repeat(s, "0123456789", part_of(k, 1 << 20)), weft__strbuf_puts(s, "\"");
        break;
    case 3:
        k->name = "nested groups", k->status = WEFT_LIMIT;
        repeat(s, "(", part_of(k, 100000));
        break;
    case 4: /* each rule is twice the one before it: what may be spent ends it */
        k->name = "doubling rules", n = part_of(k, 512);
        weft__strbuf_puts(s, "r0\n");
        for (int j = 0; j < n; j++) weft__strbuf_printf(s, "r%d ::= r%d r%d\n", j, j + 1, j + 1);
        weft__strbuf_printf(s, "r%d ::= \"a\" | \"b\"\n", n);
        weft__strbuf_puts(&k->text, "abababababab");
        break;
    case 5:
        k->name = "a chain of names", n = part_of(k, 16000);
        weft__strbuf_puts(s, "r0\n");
        for (int j = 0; j < n; j++) weft__strbuf_printf(s, "r%d ::= r%d\n", j, j + 1);
        weft__strbuf_printf(s, "r%d ::= \"a\"\n", n);
        weft__strbuf_puts(&k->text, "a");
        break;
    case 6:
        k->name = "many rules", k->status = WEFT_LIMIT, n = part_of(k, 20000);
        weft__strbuf_puts(s, "\"a\"\n");
        for (int j = 0; j < n; j++) weft__strbuf_printf(s, "r%d ::= \"a\"\n", j);
        break;
    }
}

/* Grammars whose automata, or ways to go on, are many. */
static inline void write_wide(attack *k, int i)
{
    weft__strbuf *s = &k->source;
    switch (i) {
    case 7: /* a deterministic automaton would need 2^40 states */
        k->name = "subsets";
        weft__strbuf_puts(s, "root ::= [ab]* \"a\" [ab]{40}");
        repeat(&k->text, "ab", part_of(k, 104));
        break;
    case 8: /* sets that grow with the text, up to a hundred thousand states: limits are for work, too */
        k->name = "growing sets", k->status = WEFT_LIMIT;
        weft__strbuf_printf(s, "root ::= ([ -~]? ){%d} \"z\"", part_of(k, 20000));
        break;
    case 9:
        k->name = "optional letters", k->status = WEFT_LIMIT;
        weft__strbuf_printf(s, "root ::= ([a-z]? [a-z]? [a-z]? [a-z]? [a-z]?){%d} \"z\"", part_of(k, 6000));
        break;
    case 10:
        k->name = "wide characters", k->status = WEFT_LIMIT;
        weft__strbuf_printf(s, "root ::= (. | .. | ...){%d} \"z\"", part_of(k, 5000));
        break;
    case 11: /* 2^n stacks */
        k->name = "stacks";
        weft__strbuf_puts(s, "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\"");
        repeat(&k->text, "a", part_of(k, 304));
        break;
    case 12: /* which the budget of a text ends */
        k->name = "derivations without number", k->status = ANY;
        weft__strbuf_puts(s, "root ::= \"a\" root root | \"a\" root root root | \"a\"");
        repeat(&k->text, "a", part_of(k, 1600));
        break;
    case 13:
        k->name = "ambiguous repetition", k->status = ANY;
        weft__strbuf_puts(s, "root ::= x{0,300}\nx ::= \"a\"{0,200} \"b\"?");
        repeat(&k->text, "a", part_of(k, 152));
        break;
    case 14:
        k->name = "alternatives", k->status = ANY;
        weft__strbuf_puts(s, "root ::= "), repeat(s, "r|", part_of(k, 250000)),
            weft__strbuf_puts(s, "r\nr ::= \"a\" r \"a\" | \"a\"");
        weft__strbuf_puts(&k->text, "aaa");
        break;
    case 15: /* which the probe would refuse: a text has a budget all the same */
        k->name = "a text's budget", k->status = WEFT_LIMIT;
        weft__strbuf_puts(s, "root ::= s\ns ::= [a-z ] s s | [a-z ] s | [a-z ]");
        repeat(&k->text, "a", part_of(k, 2000));
        break;
    }
}

/* So many eighths of the i-th, below N_ATTACKS; attack_free afterwards. From FIRST_OF_WORDS on they are lists of
 * words. */
static inline void attack_make(attack *k, int i, int eighths)
{
    *k = (attack){.name = "words", .status = WEFT_OK, .eighths = eighths};
    if (i < 7) write_large(k, i);
    else if (i < FIRST_OF_WORDS) write_wide(k, i);
    else write_words(k, i - FIRST_OF_WORDS);
}

static inline void attack_free(attack *k)
{
    weft__strbuf_free(&k->source);
    weft__strbuf_free(&k->text);
}

/* Compiles, and follows the text with a mask at each byte. */
static inline weft_status attack_run(const attack *k, const vocab *v)
{
    static uint64_t bits[MAX_TOKENS / 64 + 1];
    weft__gram_automaton *a = NULL;
    weft__gram_tables *g = NULL;
    weft__gram_matcher *m = NULL;
    weft_status st = gbnf(k->source.data, k->source.len, &a, NULL);
    if (!st) st = weft__gram_tables_create(a, v->trie, &g, NULL);
    if (!st) st = weft__gram_matcher_create(g, &m, NULL);
    for (const char *text = k->text.len ? k->text.data : ""; !st && *text; text++) {
        st = weft__gram_matcher_mask(m, bits, NULL);
        if (!st) st = weft__gram_matcher_accept(m, (unsigned char)*text, NULL);
    }
    weft__gram_matcher_destroy(&m);
    weft__gram_tables_release(&g);
    return st;
}

#endif
