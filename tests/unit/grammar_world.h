// SPDX-License-Identifier: Apache-2.0
/* grammar_world.h: what the tests of grammars share: small vocabularies of all bytes, tokens given, one control and one
 * end token; and short ways from a source to a grammar and from a text to what becomes of it. One thread, but for
 * grammars that are shared. */
#ifndef WEFT_TESTS_GRAMMAR_WORLD_H
#define WEFT_TESTS_GRAMMAR_WORLD_H

#include <stdio.h>
#include <stdlib.h>

#include "unit/alphabet.h"
#include "unit/fixture.h"

#include "claims.h"
#include "base/random.h"
#include "base/text.h"
#include "text/grammar/matcher.h"

/* ---- a vocabulary ---- */

enum { CONTROL = 256, END = 257, FIRST = 258, MAX_TOKENS = 512 };
/* What the control token is in a grammar: bytes that no text has. */
#define CONTROL_BYTES "\xFF<ctl>\xFF"

typedef struct vocab {
    char text[MAX_TOKENS][16]; /* bytes that tokens from FIRST on stand for */
    int n;
    weft__tok *tok;
    weft__gram_trie *trie;
} vocab;

static inline const char *token_bytes(const vocab *v, int id, size_t *n, char one[1])
{
    if (id < 256) {
        *one = (char)id;
        *n = 1;
        return one;
    }
    if (id == CONTROL) {
        *n = sizeof CONTROL_BYTES - 1;
        return CONTROL_BYTES;
    }
    *n = strlen(v->text[id]);
    return v->text[id];
}

static inline void vocab_open(vocab *v)
{
    static weft__tok_slice tokens[MAX_TOKENS];
    static int32_t types[MAX_TOKENS];
    weft__strbuf spelled[MAX_TOKENS] = {0};
    weft__tok_spec spec;
    for (int i = 0; i < v->n; i++) {
        char one[1];
        size_t n;
        const char *s = token_bytes(v, i, &n, one);
        if (i == CONTROL) weft__strbuf_puts(&spelled[i], "<ctl>");
        else if (i == END) weft__strbuf_puts(&spelled[i], "<end>");
        else
            for (size_t k = 0; k < n; k++) weft__strbuf_put_utf8(&spelled[i], alphabet_of((unsigned char)s[k]));
        tokens[i] = (weft__tok_slice){spelled[i].data, spelled[i].len};
        types[i] = i == CONTROL || i == END ? WEFT__TOK_CONTROL : WEFT__TOK_NORMAL;
    }
    weft__tok_spec_init(&spec);
    spec.model = WEFT__TOK_SLICE("gpt2");
    spec.pre = WEFT__TOK_SLICE("llama-bpe");
    spec.tokens = tokens;
    spec.types = types;
    spec.n_tokens = spec.n_types = (size_t)v->n;
    spec.merges = &(weft__tok_merge_pair){WEFT__TOK_SLICE("a"), WEFT__TOK_SLICE("b")}; /* BPE wants one */
    spec.n_merges = 1;
    spec.eos = END;
    assert_int_equal(weft__tok_create(&spec, &v->tok, NULL), WEFT_OK);
    assert_int_equal(weft__gram_trie_create(v->tok, &v->trie, NULL), WEFT_OK);
    for (int i = 0; i < v->n; i++) weft__strbuf_free(&spelled[i]);
}

static inline void vocab_close(vocab *v)
{
    weft__gram_trie_release(&v->trie);
    weft__tok_destroy(&v->tok);
}

/* Bytes only, or with random tokens made of what the random grammars are made of, cut anywhere. */
static inline void vocab_make(vocab *v, uint64_t seed, int n_random)
{
    static const char parts[] = "aabbc\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80"
                                "abca";
    weft__rng rng;
    weft__rng_seed(&rng, seed);
    v->n = FIRST;
    memset(v->text, 0, sizeof v->text);
    for (int i = 0; i < n_random; i++) {
        size_t n = 1 + weft__rng_below(&rng, 6), at = weft__rng_below(&rng, sizeof parts - 1 - n);
        memcpy(v->text[v->n++], parts + at, n);
    }
    vocab_open(v);
}

/* ---- short ways to grammars and texts ---- */

static inline weft_status gbnf_over(const weft__tok *tok, const char *source, size_t n, uint32_t depth,
                                    weft__gram_automaton **out, weft_error *err)
{
    weft__gram *g = weft__gram_create();
    if (!g) return weft_fail(err, WEFT_NO_MEMORY, "no memory");
    weft__gram_vocabulary(g, tok);
    int32_t root = weft__gram_read_gbnf(g, source, n);
    weft_status st = weft__gram_compile(g, root, depth, out, err);
    weft__gram_destroy(&g);
    return st;
}

static inline weft_status gbnf_of_depth(const char *source, size_t n, uint32_t depth, weft__gram_automaton **out,
                                        weft_error *err)
{
    return gbnf_over(NULL, source, n, depth, out, err);
}

static inline weft_status gbnf(const char *source, size_t n, weft__gram_automaton **out, weft_error *err)
{
    return gbnf_of_depth(source, n, WEFT__GRAM_DEPTH, out, err);
}

static inline weft__gram_tables *grammar(const char *source, const vocab *v)
{
    weft__gram_automaton *a;
    weft__gram_tables *g;
    weft_error err = {0};
    if (gbnf_over(v->tok, source, strlen(source), WEFT__GRAM_DEPTH, &a, &err)) fail_msg("%s\n%s", source, err.message);
    assert_int_equal(weft__gram_tables_create(a, v->trie, &g, NULL), WEFT_OK);
    return g;
}

static inline weft__gram_tables *built_in_grammar(int32_t (*add_rules)(weft__gram *), const vocab *v)
{
    weft__gram_automaton *a;
    weft__gram_tables *g;
    weft__gram *rules = weft__gram_create();
    weft_error err = {0};
    int32_t root = add_rules(rules);
    if (weft__gram_compile(rules, root, WEFT__GRAM_JSON_DEPTH - 1, &a, &err)) fail_msg("%s", err.message);
    weft__gram_destroy(&rules);
    assert_int_equal(weft__gram_tables_create(a, v->trie, &g, NULL), WEFT_OK);
    return g;
}

static inline weft__gram_tables *json_grammar(const vocab *v)
{
    return built_in_grammar(weft__gram_json_object, v);
}

/* -1: refused at some byte; else what complete says at the end. */
static inline int follow(weft__gram_tables *g, const char *s, size_t n)
{
    weft__gram_matcher *m;
    int result = 0;
    assert_int_equal(weft__gram_matcher_create(g, &m, NULL), WEFT_OK);
    for (size_t i = 0; i < n && result >= 0; i++)
        if (weft__gram_matcher_accept(m, (unsigned char)s[i], NULL)) result = -1;
    if (result >= 0) result = weft__gram_matcher_complete(m);
    weft__gram_matcher_destroy(&m);
    return result;
}

static inline int bit(const uint64_t *bits, int i)
{
    return (int)(bits[i / 64] >> (i % 64) & 1);
}

#endif
