// SPDX-License-Identifier: Apache-2.0
/* spm.c: a vocabulary made of the input's first lines, and the rest as text: the text comes back byte for byte where
 * all bytes are tokens, and control tokens never come out of text that is not parsed. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { MAX_TOKENS = 600 };

static weft__tok_slice tokens[MAX_TOKENS];
static float scores[MAX_TOKENS];
static int32_t types[MAX_TOKENS];
static char byte_names[256][8];

static size_t add(size_t at, const char *s, size_t n, int type, float score)
{
    tokens[at] = (weft__tok_slice){s, n};
    types[at] = type;
    scores[at] = score;
    return at + 1;
}

/* A line is a token: its first byte gives the score and the type. Returns how many bytes the lines took. */
static size_t read_tokens(const char *s, size_t n, size_t *n_tokens)
{
    static const int kinds[] = {WEFT__TOK_NORMAL, WEFT__TOK_NORMAL, WEFT__TOK_NORMAL, WEFT__TOK_USER_DEFINED,
                                WEFT__TOK_CONTROL};
    size_t at = 0, k = 1;
    k = add(k, "</s>", 4, WEFT__TOK_CONTROL, 0);
    for (int b = 0; b < 256; b++) k = add(k, byte_names[b], 6, WEFT__TOK_BYTE, 0);
    k = add(k, "\xE2\x96\x81", 3, WEFT__TOK_NORMAL, -100); /* without which spaces would be spelled as its bytes */
    while (at < n && k < MAX_TOKENS) {
        const char *end = memchr(s + at, '\n', n - at);
        if (!end || end == s + at) break;
        unsigned char lead = (unsigned char)s[at];
        k = add(k, s + at + 1, (size_t)(end - s) - at - 1, kinds[lead % 5], -(float)(lead / 5));
        at = (size_t)(end - s) + 1;
    }
    *n_tokens = k;
    return at < n ? at + 1 : n;
}

static void check(const weft__tok *tok, const char *text, size_t n)
{
    weft__tok_ids ids = {0};
    weft__strbuf bytes = {0};
    if (weft__tok_encode(tok, text, n, 0, &ids, NULL)) abort();
    for (size_t i = 0; i < ids.n; i++) {
        weft__tok_slice piece = weft__tok_piece_of(tok, ids.data[i]);
        if (weft__tok_type_of(tok, ids.data[i]) == WEFT__TOK_CONTROL) abort();
        weft__strbuf_put(&bytes, piece.data, piece.len);
    }
    if (n && !memmem(text, n, "\xE2\x96\x81", 3) && (bytes.len != n || memcmp(bytes.data, text, n))) abort();
    weft__strbuf_free(&bytes);
    weft__tok_ids_free(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t before = weft__alloc_live(), n_tokens = add(0, "<unk>", 5, WEFT__TOK_UNKNOWN, 0);
    for (int b = 0; b < 256; b++) {
        memcpy(byte_names[b], "<0x00>", 7);
        byte_names[b][3] = digits[b >> 4];
        byte_names[b][4] = digits[b & 15];
    }
    size_t at = read_tokens((const char *)data, n, &n_tokens);
    weft__tok_spec spec;
    weft__tok_spec_init(&spec);
    spec.model = WEFT__TOK_SLICE("llama");
    spec.n_tokens = spec.n_scores = spec.n_types = n_tokens;
    spec.tokens = tokens;
    spec.scores = scores;
    spec.types = types;
    spec.add_bos = spec.add_space_prefix = 0;
    weft__tok *tok = NULL;
    if (!weft__tok_create(&spec, &tok, NULL)) check(tok, (const char *)data + at, n - at);
    weft__tok_destroy(&tok);
    if (weft__alloc_live() != before) abort();
    return 0;
}
