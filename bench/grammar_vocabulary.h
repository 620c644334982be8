// SPDX-License-Identifier: Apache-2.0
/* grammar_vocabulary.h: the vocabulary over which bench/grammar.c measures: the tokens of a file, and pairs of its
 * words until there are as many as asked for. Texts are cut into the longest tokens, so that one cut serves every
 * engine that is measured. One thread. */
#ifndef WEFT_BENCH_GRAMMAR_VOCABULARY_H
#define WEFT_BENCH_GRAMMAR_VOCABULARY_H

#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "format/gguf.h"
#include "text/grammar/token_trie.h"

typedef struct vocabulary {
    weft__gguf *g;
    weft__tok *tok;
    weft__gram_trie *trie;
    size_t n, n_real; /* tokens; of them those of the file */
    int32_t end;
} vocabulary;

/* Letters, behind GPT-2's or SentencePiece's mark for a space. */
static inline int vocabulary_is_word(weft__tok_slice s)
{
    size_t from = s.len > 2 && !memcmp(s.data, "\xC4\xA0", 2)       ? 2
                  : s.len > 3 && !memcmp(s.data, "\xE2\x96\x81", 3) ? 3
                                                                    : 0;
    for (size_t i = from; i < s.len; i++)
        if ((s.data[i] | 32) < 'a' || (s.data[i] | 32) > 'z') return 0;
    return from && s.len > from && s.len < 24;
}

/* Appends pairs of words to tokens[n] up to n_wanted, their texts in `made`, which has 64 bytes for each. */
static inline void vocabulary_pad(weft__tok_slice *tokens, int32_t *types, size_t n, size_t n_wanted, char *made)
{
    weft__rng rng;
    size_t *words = weft__alloc_array(n, sizeof *words), n_words = 0;
    weft__rng_seed(&rng, 1);
    for (size_t i = 0; words && i < n; i++)
        if (vocabulary_is_word(tokens[i])) words[n_words++] = i;
    for (; n_words && n < n_wanted; n++) {
        weft__tok_slice a = tokens[words[weft__rng_below(&rng, n_words)]],
                        b = tokens[words[weft__rng_below(&rng, n_words)]];
        size_t mark = (unsigned char)b.data[0] == 0xC4 ? 2 : 3;
        memcpy(made, a.data, a.len);
        memcpy(made + a.len, b.data + mark, b.len - mark);
        tokens[n] = (weft__tok_slice){made, a.len + b.len - mark};
        types[n] = WEFT__TOK_NORMAL;
        made += a.len + b.len - mark;
    }
    weft__free(words);
}

static inline weft__tok_slice vocabulary_string(const weft__gguf_list *list, uint64_t i)
{
    weft__gguf_str s = weft__gguf_list_string(list, i);
    return (weft__tok_slice){s.data, s.len};
}

/* Fails where the file has no vocabulary, or one of another kind than pieces of text. */
static inline weft_status vocabulary_open(vocabulary *v, const char *path, size_t n_wanted, weft_error *err)
{
    const weft__gguf_list *tokens = NULL, *types = NULL, *merges = NULL;
    const char *model = NULL;
    weft__tok_spec spec;
    int64_t end = -1;
    memset(v, 0, sizeof *v);
    weft_status st = weft__gguf_open(path, &v->g, err);
    if (!st) st = weft__gguf_array(v->g, "tokenizer.ggml.tokens", &tokens, err);
    if (!st) st = weft__gguf_array(v->g, "tokenizer.ggml.token_type", &types, err);
    if (st) return st;
    int bpe = !weft__gguf_array(v->g, "tokenizer.ggml.merges", &merges, NULL) && merges->n > 0;
    model = bpe ? "gpt2" : "llama";
    if (weft__gguf_i64(v->g, "tokenizer.ggml.eos_token_id", &end, NULL)) end = 0;
    v->n_real = tokens->n;
    v->n = tokens->n > n_wanted ? tokens->n : n_wanted;
    v->end = (int32_t)end;
    weft__tok_slice *texts = weft__alloc_array(v->n, sizeof *texts);
    int32_t *kinds = weft__alloc_array(v->n, sizeof *kinds);
    char *made = weft__alloc(v->n * 64);
    weft__tok_merge_pair pair;
    if (!texts || !kinds || !made) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a vocabulary");
    for (size_t i = 0; !st && i < tokens->n; i++) {
        int64_t kind = WEFT__TOK_NORMAL;
        weft__gguf_list_i64(types, i, &kind);
        texts[i] = vocabulary_string(tokens, i);
        kinds[i] = (int32_t)kind;
    }
    if (!st) vocabulary_pad(texts, kinds, v->n_real, v->n, made);
    weft__tok_spec_init(&spec);
    spec.model = (weft__tok_slice){model, strlen(model)};
    spec.pre = WEFT__TOK_SLICE("llama-bpe");
    spec.tokens = texts;
    spec.types = kinds;
    spec.n_tokens = spec.n_types = v->n;
    spec.eos = v->end;
    if (bpe) { /* one is enough where nothing is encoded */
        weft__tok_slice first = vocabulary_string(merges, 0);
        const char *space = memchr(first.data, ' ', first.len);
        size_t left = (size_t)(space - first.data);
        pair = (weft__tok_merge_pair){{first.data, left}, {space + 1, first.len - left - 1}};
        spec.merges = &pair;
        spec.n_merges = 1;
    }
    if (!st) st = weft__tok_create(&spec, &v->tok, err);
    if (!st) st = weft__gram_trie_create(v->tok, &v->trie, err);
    weft__free(made);
    weft__free(kinds);
    weft__free(texts);
    return st;
}

static inline void vocabulary_close(vocabulary *v)
{
    weft__gram_trie_release(&v->trie);
    weft__tok_destroy(&v->tok);
    weft__gguf_close(&v->g);
}

/* The longest token that a text begins with; -1: none. *n: its bytes. */
static inline int32_t vocabulary_longest(const vocabulary *v, const char *s, size_t length, size_t *n)
{
    const weft__gram_trie *t = v->trie;
    int32_t found = -1;
    uint32_t i = 0, end = t->n_nodes;
    for (size_t k = 0; k < length && i < end;) {
        while (i < end && t->nodes[i].byte != (uint8_t)s[k]) i = t->nodes[i].next;
        if (i >= end) break;
        k++;
        if (t->nodes[i].token < t->nodes[i + 1].token) {
            found = t->ids[t->nodes[i].token];
            *n = k;
        }
        end = t->nodes[i].next;
        i++;
    }
    return found;
}

#endif
