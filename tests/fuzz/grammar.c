// SPDX-License-Identifier: Apache-2.0
/* grammar.c: any bytes as a grammar and a text: a mask says before each byte what accept then does. The input is GBNF
 * up to a byte 0xFF and the text behind it (without one: JSON, and the text). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text/grammar/matcher.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All bytes, some words, an end token. */
static weft__gram_trie *vocabulary(void)
{
    static const char *const words[] = {"</s>", "{\"",          "\":",      "true", "null}", "aa",
                                        "ab\"", "\xC3\xA9\xE4", "\xB8\xAD", "]]}",  "   ",   "12.5"};
    enum { N = 256 + sizeof words / sizeof *words };
    char bytes[256][8];
    weft__tok_slice tokens[N];
    int32_t types[N];
    float scores[N] = {0};
    weft__tok_spec spec;
    weft__tok *tok;
    weft__gram_trie *trie;
    for (size_t i = 0; i < N; i++) {
        static const char digits[] = "0123456789ABCDEF";
        types[i] = i < 256 ? WEFT__TOK_BYTE : i == 256 ? WEFT__TOK_CONTROL : WEFT__TOK_NORMAL;
        if (i < 256) {
            memcpy(bytes[i], "<0x00>", 7);
            bytes[i][3] = digits[i / 16];
            bytes[i][4] = digits[i % 16];
        }
        tokens[i] =
            i < 256 ? (weft__tok_slice){bytes[i], 6} : (weft__tok_slice){words[i - 256], strlen(words[i - 256])};
    }
    weft__tok_spec_init(&spec);
    spec.model = WEFT__TOK_SLICE("llama");
    spec.tokens = tokens;
    spec.types = types;
    spec.scores = scores;
    spec.n_tokens = spec.n_types = spec.n_scores = N;
    spec.eos = 256;
    if (weft__tok_create(&spec, &tok, NULL) || weft__gram_trie_create(tok, &trie, NULL)) abort();
    weft__tok_destroy(&tok);
    return trie;
}

/* NULL: refused. Without a source: JSON. */
static weft__gram_tables *compile(const char *source, size_t n, weft__gram_trie *trie)
{
    weft__gram_automaton *a;
    weft__gram_tables *g;
    weft__gram *rules = weft__gram_create();
    if (!rules) abort();
    int32_t root = source ? weft__gram_read_gbnf(rules, source, n) : weft__gram_json_object(rules);
    weft_status st = weft__gram_compile(rules, root, 64, &a, NULL);
    weft__gram_destroy(&rules);
    if (st) return NULL;
    if (weft__gram_tables_create(a, trie, &g, NULL)) abort();
    return g;
}

static void follow(weft__gram_tables *g, const uint8_t *text, size_t n)
{
    uint64_t bits[8];
    weft__gram_matcher *m, *copy;
    if (weft__gram_matcher_create(g, &m, NULL)) return;
    for (size_t i = 0; i < n && i < 64; i++) {
        weft_status mask = weft__gram_matcher_mask(m, bits, NULL);
        if (weft__gram_matcher_copy(m, &copy, NULL)) abort();
        int end = weft__gram_matcher_accept(copy, 256, NULL) == WEFT_OK;
        weft__gram_matcher_destroy(&copy);
        weft_status st = weft__gram_matcher_accept(m, text[i], NULL);
        if (!mask && st != WEFT_LIMIT && (st == WEFT_OK) != (int)(bits[text[i] / 64] >> (text[i] % 64) & 1)) abort();
        if (!mask && end != (int)(bits[4] & 1)) abort();
        if (st) break;
    }
    weft__gram_matcher_destroy(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static weft__gram_trie *trie;
    static weft__gram_tables *json;
    if (!trie) trie = vocabulary();
    if (!json) json = compile(NULL, 0, trie);
    const uint8_t *cut = size ? memchr(data, 0xFF, size) : NULL;
    weft__gram_tables *g =
        cut ? compile((const char *)data, (size_t)(cut - data), trie) : weft__gram_tables_retain(json);
    if (g) follow(g, cut ? cut + 1 : data, cut ? size - (size_t)(cut + 1 - data) : size);
    weft__gram_tables_release(&g);
    return 0;
}
