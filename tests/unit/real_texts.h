// SPDX-License-Identifier: Apache-2.0
/* real_texts.h: real vocabularies and what is read with them: English in a vocabulary of 128 k, and hostile texts; for
 * a test of how time grows (text_speed.c) and a benchmark of how long it is (bench_text.c). One thread. */
#ifndef WEFT_TESTS_REAL_TEXTS_H
#define WEFT_TESTS_REAL_TEXTS_H

#include "unit/fixture.h"

#include "base/random.h"
#include "format/gguf.h"
#include "growth.h"
#include "model/shared.h"
#include "model/vocab.h"
#include "text/tokenizer/tokenizer.h"

enum { N_TOKENS = 128000 };

/* A file of the tree, or the name of a real vocabulary. */
static inline weft__gguf *open_vocabulary(const char *name)
{
    const char *path = strchr(name, '/') ? name : shared_path("tokenizers/ggml-vocab-%s.gguf", name);
    weft__gguf *g;
    weft_error err = {0};
    if (!path) skip_claim("needs the reference material: real vocabularies (tokenizers/)");
    if (weft__gguf_open(path, &g, &err)) fail_msg("%s", err.message);
    return g;
}

/* A text that is read with a tokenizer; n_ids: how many tokens it was the last time. */
typedef struct reading {
    const weft__tok *tok;
    const char *text;
    size_t n_ids;
} reading;

/* Reads the first n bytes, a growth_work. */
static inline double read_text(void *arg, size_t n)
{
    reading *r = arg;
    weft__tok_ids ids = {0};
    weft_error err = {0};
    double before = own_seconds();
    if (weft__tok_encode(r->tok, r->text, n, WEFT__TOK_ENCODE_PARSE, &ids, &err)) fail_msg("%s", err.message);
    double took = own_seconds() - before;
    r->n_ids = ids.n;
    weft__tok_ids_free(&ids);
    return took;
}

/* ---- a vocabulary of 128 k ---- */

typedef struct large {
    weft__gguf *g;
    weft__tok_spec spec;
    weft__tok_slice *tokens;
    int32_t *types;
    weft__tok_merge_pair *merges;
    char *made; /* texts of tokens that no file has */
} large;

static inline weft__tok_slice item(const weft__gguf_list *list, uint64_t i)
{
    weft__gguf_str s = weft__gguf_list_string(list, i);
    return (weft__tok_slice){s.data, s.len};
}

static inline const weft__gguf_list *list_of(const weft__gguf *g, const char *key)
{
    const weft__gguf_list *list = NULL;
    assert_int_equal(weft__gguf_array(g, key, &list, NULL), WEFT_OK);
    return list;
}

/* A word of ASCII letters that may begin with GPT-2's spelling of a space. */
static inline int is_word(weft__tok_slice s)
{
    size_t from = s.len > 2 && (unsigned char)s.data[0] == 0xC4 && (unsigned char)s.data[1] == 0xA0 ? 2 : 0;
    if (from == 0 || s.len - from < 1 || s.len > 24) return 0;
    for (size_t i = from; i < s.len; i++)
        if ((s.data[i] < 'a' || s.data[i] > 'z') && (s.data[i] < 'A' || s.data[i] > 'Z')) return 0;
    return 1;
}

/* A vocabulary's tokens and merges, and then pairs of its words up to N_TOKENS, with the pre-tokenizer of Llama 3. What
 * is added to a small vocabulary is words of two tokens, as it has few. */
static inline void large_open(large *v, const char *name)
{
    memset(v, 0, sizeof *v);
    v->g = open_vocabulary(name);
    const weft__gguf_list *tokens = list_of(v->g, "tokenizer.ggml.tokens"),
                          *merges = list_of(v->g, "tokenizer.ggml.merges");
    const weft__gguf_list *types = list_of(v->g, "tokenizer.ggml.token_type");
    size_t n = tokens->n, n_merges = merges->n;
    weft__rng rng;
    weft__rng_seed(&rng, 1);
    assert_true(n < N_TOKENS);
    v->tokens = weft__alloc_array(N_TOKENS, sizeof *v->tokens);
    v->types = weft__alloc_array(N_TOKENS, sizeof *v->types);
    v->merges = weft__alloc_array(n_merges + N_TOKENS, sizeof *v->merges);
    v->made = weft__alloc((size_t)N_TOKENS * 64);
    assert_true(v->tokens && v->types && v->merges && v->made);
    for (size_t i = 0; i < n; i++) {
        int64_t type = 0;
        weft__gguf_list_i64(types, i, &type);
        v->tokens[i] = item(tokens, i);
        v->types[i] = (int32_t)type;
    }
    for (size_t i = 0; i < n_merges; i++) {
        weft__tok_slice s = item(merges, i);
        const char *space = memchr(s.data, ' ', s.len);
        size_t left = (size_t)(space - s.data);
        v->merges[i] = (weft__tok_merge_pair){{s.data, left}, {space + 1, s.len - left - 1}};
    }
    char *at = v->made;
    size_t n_small = n < 16384 ? n : 0;
    while (n < N_TOKENS) {
        size_t from = (n_small ? n_small : n) - 256;
        weft__tok_slice a = v->tokens[256 + weft__rng_below(&rng, from)],
                        b = v->tokens[256 + weft__rng_below(&rng, from)];
        if (a.len + b.len > 60 || !a.len || !b.len) continue;
        memcpy(at, a.data, a.len);
        memcpy(at + a.len, b.data, b.len);
        if (n_small && !is_word((weft__tok_slice){at, a.len + b.len})) continue;
        v->tokens[n] = (weft__tok_slice){at, a.len + b.len};
        v->types[n++] = WEFT__TOK_NORMAL;
        v->merges[n_merges++] = (weft__tok_merge_pair){a, b};
        at += a.len + b.len;
    }
    weft__tok_spec_init(&v->spec);
    v->spec.model = WEFT__TOK_SLICE("gpt2");
    v->spec.pre = WEFT__TOK_SLICE("llama-bpe");
    v->spec.tokens = v->tokens;
    v->spec.types = v->types;
    v->spec.merges = v->merges;
    v->spec.n_tokens = v->spec.n_types = n;
    v->spec.n_merges = n_merges;
    v->spec.add_bos = v->spec.add_eos = 0;
}

static inline void large_close(large *v)
{
    weft__free(v->made);
    weft__free(v->merges);
    weft__free(v->types);
    weft__free(v->tokens);
    weft__gguf_close(&v->g);
}

/* n_text bytes of words as often as they are in English: the k-th most frequent (as merges rank them) with probability
 * 1/k. One word in twelve is a compound that no token spells; sentences have commas, points, numbers and paragraphs. */
static inline void write_english(const large *v, char *out, size_t n_text)
{
    size_t *word = weft__alloc_array(N_TOKENS, sizeof *word), n_words = 0, n = 0;
    weft__rng rng;
    weft__rng_seed(&rng, 2);
    assert_non_null(word);
    for (size_t i = 256; i < N_TOKENS; i++)
        if (is_word(v->tokens[i])) word[n_words++] = i;
    assert_true(n_words > 10000);
    double log_words = __builtin_log((double)n_words);
    while (n < n_text - 64) {
        int parts = weft__rng_below(&rng, 12) ? 1 : 2;
        out[n++] = ' ';
        for (int k = 0; k < parts; k++) {
            size_t rank = (size_t)__builtin_exp(weft__rng_double(&rng) * log_words) - 1;
            weft__tok_slice s = v->tokens[word[rank < n_words ? rank : n_words - 1]];
            memcpy(out + n, s.data + 2, s.len - 2);
            n += s.len - 2;
        }
        size_t end = weft__rng_below(&rng, 100);
        if (end < 8) out[n++] = end < 4 ? ',' : '.';
        if (end == 9) n += (size_t)sprintf(out + n, " %d", (int)weft__rng_below(&rng, 3000));
        if (end == 10) memcpy(out + n, ".\n\n", 3), n += 3;
        if (end == 11) memcpy(out + n, "'s", 2), n += 2;
    }
    while (n < n_text) out[n++] = ' ';
    weft__free(word);
}

/* ---- hostile texts ---- */

enum { N_HOSTILE_UNITS = 18, N_HOSTILE_TEXTS = N_HOSTILE_UNITS + 2 };

/* Names as open_vocabulary takes them, then NULL; of the reference material, and of the tree. */
static const char *const hostile_vocabularies[] = {"llama-spm",    "phi-3",          "gpt-2",    "falcon", "starcoder",
                                                   "deepseek-llm", "deepseek-coder", "bert-bge", NULL};
static const char *const own_vocabularies[] = {"tests/material/stories.gguf", "models/alderbrook.gguf", NULL};

/* Fills text[0..n) with the i-th, below N_HOSTILE_TEXTS: one thing after another, or what is drawn. Returns its
 * name. */
static inline const char *write_hostile(int i, char *text, size_t n)
{
    static const char *const units[N_HOSTILE_UNITS] = {
        " ", "a", "=",   "-", "\n", "ab",           "the",  " the",      "aaaaaaab",
        "0", "_", "<s>", "<", "中", "\xE2\x96\x81", "\xC3", "e\xCC\x81", "\t "};
    weft__rng rng;
    weft__rng_seed(&rng, 3);
    for (size_t k = 0; k < n; k++) {
        if (i < N_HOSTILE_UNITS) text[k] = units[i][k % strlen(units[i])];
        if (i == N_HOSTILE_UNITS) { /* broken UTF-8, of bytes that are usual in it: some vocabularies lack the others */
            int byte = (int)weft__rng_below(&rng, 256);
            text[k] = (char)(byte < ' ' || byte == 127 || byte == 0xC0 || byte == 0xC1 || byte > 0xEF ? 'x' : byte);
        }
        if (i == N_HOSTILE_UNITS + 1) text[k] = "ab"[weft__rng_below(&rng, 2)];
    }
    return i < N_HOSTILE_UNITS ? units[i] : i == N_HOSTILE_UNITS ? "random bytes" : "random letters";
}

#endif
