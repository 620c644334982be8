// SPDX-License-Identifier: Apache-2.0
/* tokenizer_world.h: what the tests of tokenizers share: small vocabularies of every kind, and short ways to ids. One
 * thread. */
#ifndef WEFT_TESTS_TOKENIZER_WORLD_H
#define WEFT_TESTS_TOKENIZER_WORLD_H

#include <stdio.h>
#include <stdlib.h>

#include "unit/alphabet.h"
#include "unit/fixture.h"

#include "base/random.h"
#include "text/strings.h"
#include "text/tokenizer/tokenizer.h"

#define SPACE "\xE2\x96\x81"

/* ---- small vocabularies ---- */

typedef struct vocab {
    weft__tok_spec spec;
    weft__tok_slice tokens[2048];
    float scores[2048];
    int32_t types[2048];
    uint8_t strips[2048];
    weft__tok_merge_pair merges[2048];
    char names[2048][24];
} vocab;

static inline void add(vocab *v, const char *text, int type, float score)
{
    size_t i = v->spec.n_tokens++;
    v->spec.n_types = v->spec.n_scores = v->spec.n_strips = v->spec.n_tokens;
    snprintf(v->names[i], sizeof v->names[i], "%.23s", text);
    v->tokens[i] = (weft__tok_slice){v->names[i], strlen(v->names[i])};
    v->scores[i] = score;
    v->types[i] = type;
    v->strips[i] = 0;
}

static inline void begin(vocab *v, const char *model)
{
    memset(v, 0, sizeof *v);
    weft__tok_spec_init(&v->spec);
    v->spec.model = (weft__tok_slice){model, strlen(model)};
    v->spec.tokens = v->tokens;
    v->spec.scores = v->scores;
    v->spec.types = v->types;
    v->spec.strips = v->strips;
    v->spec.merges = v->merges;
}

static inline void add_bytes(vocab *v)
{
    for (int b = 0; b < 256; b++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", (unsigned)b);
        add(v, text, WEFT__TOK_BYTE, 0);
    }
}

/* <unk> 0, <s> 1, </s> 2, bytes from 3, then letters and words made of them by random doubling. */
static inline void spm_vocab(vocab *v, uint64_t seed, int n_words)
{
    static const char *const letters[] = {SPACE, "a", "b", "c", "d", "é", "中", "\n", "!"};
    weft__rng rng;
    weft__rng_seed(&rng, seed);
    begin(v, "llama");
    add(v, "<unk>", WEFT__TOK_UNKNOWN, 0);
    add(v, "<s>", WEFT__TOK_CONTROL, 0);
    add(v, "</s>", WEFT__TOK_CONTROL, 0);
    add_bytes(v);
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++) add(v, letters[i], WEFT__TOK_NORMAL, -1000);
    for (int i = 0; i < n_words; i++) {
        char text[24];
        size_t pool = v->spec.n_tokens - 259;
        const char *left = v->names[259 + weft__rng_below(&rng, pool)],
                   *right = v->names[259 + weft__rng_below(&rng, pool)];
        if (strlen(left) + strlen(right) >= sizeof text) continue;
        snprintf(text, sizeof text, "%.12s%.11s", left, right);
        if (strlen(text) != strlen(left) + strlen(right)) continue;
        add(v, text, WEFT__TOK_NORMAL, -(float)weft__rng_below(&rng, 40)); /* with ties */
    }
}

static inline void spell_byte(int byte, char out[5])
{
    out[weft__utf8_encode(alphabet_of(byte), out)] = 0;
}

/* All bytes, then merges of random pairs. */
static inline void bpe_vocab(vocab *v, uint64_t seed, int n_merges)
{
    weft__rng rng;
    weft__rng_seed(&rng, seed);
    begin(v, "gpt2");
    v->spec.pre = WEFT__TOK_SLICE("llama-bpe");
    for (int b = 0; b < 256; b++) {
        char text[5];
        spell_byte(b, text);
        add(v, text, WEFT__TOK_NORMAL, 0);
    }
    for (int i = 0; i < n_merges; i++) {
        /* Few first symbols, so that merges build upon each other. */
        static const char common[] = "abcde  aae";
        size_t pick[2];
        for (int k = 0; k < 2; k++) {
            int fresh = v->spec.n_tokens == 256 || weft__rng_below(&rng, 2);
            pick[k] =
                fresh ? (size_t)common[weft__rng_below(&rng, 10)] : 256 + weft__rng_below(&rng, v->spec.n_tokens - 256);
        }
        char text[48];
        snprintf(text, sizeof text, "%s%s", v->names[pick[0]], v->names[pick[1]]);
        if (strlen(text) > 22) continue;
        v->merges[v->spec.n_merges++] = (weft__tok_merge_pair){v->tokens[pick[0]], v->tokens[pick[1]]};
        add(v, text, WEFT__TOK_NORMAL, 0);
    }
    add(v, "<|bos|>", WEFT__TOK_CONTROL, 0);
    v->spec.bos = (int32_t)v->spec.n_tokens - 1;
    v->spec.add_bos = 0;
    v->spec.ignore_merges = 0;
}

static inline void unigram_vocab(vocab *v)
{
    begin(v, "t5");
    add(v, "<pad>", WEFT__TOK_CONTROL, 0);
    add(v, "</s>", WEFT__TOK_CONTROL, 0);
    add(v, "<unk>", WEFT__TOK_UNKNOWN, 0);
    add(v, SPACE, WEFT__TOK_NORMAL, -2);        /* 3 */
    add(v, "a", WEFT__TOK_NORMAL, -3);          /* 4 */
    add(v, "b", WEFT__TOK_NORMAL, -3);          /* 5 */
    add(v, "ab", WEFT__TOK_NORMAL, -5);         /* 6: dearer than the best way, cheaper than a b */
    add(v, SPACE "a", WEFT__TOK_NORMAL, -2.5f); /* 7 */
    add(v, "abb", WEFT__TOK_NORMAL, -5.5f);     /* 8 */
    v->spec.remove_extra_whitespaces = 1;
}

static inline void word_piece_vocab(vocab *v)
{
    begin(v, "bert");
    add(v, "[UNK]", WEFT__TOK_CONTROL, 0);
    add(v, "[CLS]", WEFT__TOK_CONTROL, 0);
    add(v, "[SEP]", WEFT__TOK_CONTROL, 0);
    add(v, SPACE "a", WEFT__TOK_NORMAL, 0);  /* 3 */
    add(v, SPACE "ab", WEFT__TOK_NORMAL, 0); /* 4 */
    add(v, "b", WEFT__TOK_NORMAL, 0);        /* 5 */
    add(v, SPACE "!", WEFT__TOK_NORMAL, 0);  /* 6 */
    add(v, SPACE "中", WEFT__TOK_NORMAL, 0); /* 7 */
    v->spec.unk = 0;
    v->spec.cls = 1;
    v->spec.sep = 2;
}

static inline weft__tok *build(const vocab *v)
{
    weft__tok *tok = NULL;
    weft_error err = {0};
    if (weft__tok_create(&v->spec, &tok, &err)) fail_msg("%s", err.message);
    return tok;
}

static inline weft__tok_ids encode(const weft__tok *tok, const char *text, size_t n, unsigned flags)
{
    weft__tok_ids ids = {0};
    weft_error err = {0};
    if (weft__tok_encode(tok, text, n, flags, &ids, &err)) fail_msg("%s", err.message);
    return ids;
}

/* Encodes a literal and compares with the ids up to -1. */
static inline void expect(const weft__tok *tok, const char *text, unsigned flags, const int32_t *want)
{
    weft__tok_ids ids = encode(tok, text, strlen(text), flags);
    for (size_t i = 0; want[i] >= 0 || i < ids.n; i++) {
        int32_t got = i < ids.n ? ids.data[i] : -1;
        if (got != want[i]) fail_msg("'%s': id %zu is %d, expected %d", text, i, got, want[i]);
    }
    weft__tok_ids_free(&ids);
}
#define EXPECT(tok, text, flags, ...) expect(tok, text, flags, (const int32_t[]){__VA_ARGS__ __VA_OPT__(, ) - 1})

static inline int find_name(const vocab *v, size_t first, const char *text)
{
    for (size_t i = first; i < v->spec.n_tokens; i++) {
        if (!strcmp(v->names[i], text)) return (int)i;
    }
    return -1;
}

#endif
