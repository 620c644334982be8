// SPDX-License-Identifier: Apache-2.0
/* bpe.c: BPE by merge ranks (Sennrich et al. 2016), over bytes in GPT-2's alphabet or over characters. No state of its
 * own.
 *
 * Merges are kept as pairs of symbol numbers. A symbol is a token, or (number n_tokens and up) a string that only
 * merges know; such a string, and a byte that has no token, falls back like any other unknown. */
#include <string.h>

#include "base/alloc.h"
#include "base/background.h"
#include "text/tokenizer/parts.h"

/* GPT-2's alphabet: printable Latin-1 bytes spell themselves, the other 68 follow from U+0100 in order. */
uint32_t weft__tok_byte_alphabet(unsigned char b)
{
    if ((b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD)) return b;
    if (b <= 0x20) return 0x100u + b;
    if (b <= 0xA0) return 0x121u + (b - 0x7Fu);
    return 0x143;
}

int weft__tok_byte_of_alphabet(uint32_t cp)
{
    if (cp < 0x100) return weft__tok_byte_alphabet((unsigned char)cp) == cp ? (int)cp : -1;
    if (cp <= 0x120) return (int)(cp - 0x100);
    if (cp <= 0x142) return (int)(cp - 0x121 + 0x7F);
    return cp == 0x143 ? 0xAD : -1;
}

/* The symbol spelled s[0..n), made up when it is none yet; -1 when memory runs out. */
static int32_t intern(weft__tok *tok, const char *s, size_t n)
{
    int32_t id = weft__strings_find(&tok->texts, s, n);
    if (id >= 0) return id;
    if (!weft__strings_add(&tok->texts, s, n, 1)) return -1;
    return (int32_t)(tok->texts.n - 1);
}

static uint64_t slot_of(uint64_t key, size_t n_slots)
{
    key *= 0x9E3779B97F4A7C15u;
    return (key ^ key >> 32) & (n_slots - 1);
}

/* Of equal pairs the first, which has the better rank, counts. */
static void put_pair(weft__tok *tok, uint64_t key, uint32_t rank, int32_t id)
{
    size_t i = slot_of(key, tok->n_pairs);
    for (; tok->pairs[i].key != UINT64_MAX; i = (i + 1) & (tok->n_pairs - 1)) {
        if (tok->pairs[i].key == key) return;
    }
    tok->pairs[i] = (weft__tok_bpe_pair){key, rank, id};
}

enum { OF_MERGE = 256 /* bytes of memory that are worked on for one, about */ };

static weft_status add_merge(weft__tok *tok, const weft__tok_merge_pair *merge, size_t rank, weft__strbuf *joined,
                             weft_error *err)
{
    if (!merge->left.len || !merge->right.len || merge->left.len + merge->right.len > WEFT__TOK_MAX_BYTES) {
        return weft_fail(err, WEFT_FORMAT, "tokenizer: merge %zu is not two symbols", rank);
    }
    joined->len = 0;
    weft__strbuf_put(joined, merge->left.data, merge->left.len);
    weft__strbuf_put(joined, merge->right.data, merge->right.len);
    if (joined->failed) return weft_fail(err, WEFT_NO_MEMORY, "tokenizer: out of memory");
    int32_t left = intern(tok, merge->left.data, merge->left.len);
    int32_t right = intern(tok, merge->right.data, merge->right.len);
    int32_t id = intern(tok, joined->data, joined->len);
    if (left < 0 || right < 0 || id < 0) return weft_fail(err, WEFT_NO_MEMORY, "tokenizer: out of memory");
    put_pair(tok, (uint64_t)(uint32_t)left << 32 | (uint32_t)right, (uint32_t)rank, id);
    return WEFT_OK;
}

weft_status weft__tok_bpe_build(weft__tok *tok, const weft__tok_spec *spec, weft_error *err)
{
    weft__strbuf joined = {0};
    weft_status status = WEFT_OK;
    if (spec->n_merges > INT32_MAX / 4)
        return weft_fail(err, WEFT_LIMIT, "tokenizer: %zu merges are too many", spec->n_merges);
    if (!spec->n_merges && !spec->explicit_steps)
        return weft_fail(err, WEFT_FORMAT, "tokenizer: a BPE vocabulary needs merges");
    tok->n_pairs = 16;
    while (tok->n_pairs < 2 * spec->n_merges) tok->n_pairs *= 2;
    tok->pairs = weft__alloc_array(tok->n_pairs, sizeof *tok->pairs);
    if (!tok->pairs) return weft_fail(err, WEFT_NO_MEMORY, "tokenizer: out of memory");
    for (size_t i = 0; i < tok->n_pairs; i++) tok->pairs[i].key = UINT64_MAX;
    for (size_t i = 0; !status && i < spec->n_merges; i++) {
        status = add_merge(tok, &spec->merges[i], i, &joined, err);
        weft__background_did(OF_MERGE);
    }
    weft__strbuf_free(&joined);
    for (int b = 0; !status && b < 256; b++) {
        char spelled[4];
        size_t n = weft__utf8_encode(weft__tok_byte_alphabet((unsigned char)b), spelled);
        tok->byte_symbol[b] = weft__strings_find(&tok->texts, spelled, n);
        if (tok->byte_level) tok->byte_id[b] = tok->byte_symbol[b] < (int32_t)tok->n_tokens ? tok->byte_symbol[b] : -1;
    }
    return status;
}

static int find_pair(const void *arg, const weft__tok_symbol *left, const weft__tok_symbol *right, uint32_t *rank,
                     int32_t *id)
{
    const weft__tok *tok = arg;
    if (left->id < 0 || right->id < 0) return 0;
    uint64_t key = (uint64_t)(uint32_t)left->id << 32 | (uint32_t)right->id;
    for (size_t i = slot_of(key, tok->n_pairs);; i = (i + 1) & (tok->n_pairs - 1)) {
        if (tok->pairs[i].key == key) {
            *rank = tok->pairs[i].rank;
            *id = tok->pairs[i].id;
            return 1;
        }
        if (tok->pairs[i].key == UINT64_MAX) return 0;
    }
}

/* The token that is the whole piece, or -1. */
static int32_t whole(weft__tok_encoding *e, const char *s, size_t n)
{
    const weft__tok *tok = e->tok;
    int32_t id;
    if (n > tok->max_len) return -1;
    if (!tok->byte_level || tok->spelled) {
        id = weft__strings_find(&tok->texts, s, n);
    } else {
        e->scratch.len = 0;
        for (size_t i = 0; i < n; i++) weft__strbuf_put_utf8(&e->scratch, weft__tok_byte_alphabet((unsigned char)s[i]));
        if (e->scratch.failed) return -1;
        id = weft__strings_find(&tok->texts, e->scratch.data, e->scratch.len);
    }
    return (size_t)id < tok->n_tokens ? id : -1;
}

static int add_symbols(weft__tok_encoding *e, const char *s, size_t n)
{
    const weft__tok *tok = e->tok;
    weft__tok_merger_clear(&e->merger);
    for (size_t i = 0; i < n;) {
        size_t len = 1;
        int32_t id;
        if (tok->byte_level && !tok->spelled) {
            id = tok->byte_symbol[(unsigned char)s[i]];
        } else {
            uint32_t cp;
            len = weft__utf8_decode(s + i, n - i, &cp, NULL);
            id = weft__strings_find(&tok->texts, s + i, len);
        }
        if (!weft__tok_merger_add(&e->merger, (uint32_t)i, (uint32_t)len, id)) return weft__tok_encoding_no_memory(e);
        i += len;
    }
    return 1;
}

/* The byte that the character at s[0..n) is or spells, -1 where the model is not over bytes; *len is its length. */
static int byte_at(const weft__tok *tok, const char *s, size_t n, size_t *len)
{
    uint32_t cp;
    *len = 1;
    if (tok->byte_level && !tok->spelled) return (unsigned char)*s;
    *len = weft__utf8_decode(s, n, &cp, NULL);
    return tok->spelled ? weft__tok_byte_of_alphabet(cp) : -1;
}

/* Symbols that are no tokens: over bytes, the token of each byte; over characters, the fallback for each. */
static int put_symbol(weft__tok_encoding *e, const char *s, const weft__tok_symbol *symbol, size_t since)
{
    const weft__tok *tok = e->tok;
    if (symbol->id >= 0 && (size_t)symbol->id < tok->n_tokens) return weft__tok_encoding_put(e, symbol->id);
    for (size_t i = 0, len; i < symbol->len; i += len) {
        const char *at = s + symbol->start + i;
        int byte = byte_at(tok, at, symbol->len - i, &len);
        int ok = byte >= 0 && tok->byte_id[byte] >= 0 ? weft__tok_encoding_put(e, tok->byte_id[byte])
                                                      : weft__tok_encoding_put_unknown(e, at, len, since);
        if (!ok) return 0;
    }
    return 1;
}

int weft__tok_bpe_encode(weft__tok_encoding *e, const char *s, size_t n)
{
    weft__tok_merger *m = &e->merger;
    if (e->tok->ignore_merges) {
        int32_t id = whole(e, s, n);
        if (e->scratch.failed) return weft__tok_encoding_no_memory(e);
        if (id >= 0) return weft__tok_encoding_put(e, id);
    }
    if (!add_symbols(e, s, n)) return 0;
    if (!weft__tok_merger_run(m, find_pair, e->tok)) return weft__tok_encoding_no_memory(e);
    size_t since = e->out->n;
    for (int32_t i = 0; i >= 0; i = m->symbols[i].next) {
        if (!put_symbol(e, s, &m->symbols[i], since)) return 0;
    }
    return 1;
}
