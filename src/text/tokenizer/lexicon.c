// SPDX-License-Identifier: Apache-2.0
/* lexicon.c: the two models that look words up in the vocabulary: WordPiece (longest match first, Schuster and Nakajima
 * 2012) and Unigram (most probable segmentation, Kudo 2018). No state of its own. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer/parts.h"

/* What an unknown character costs Unigram beyond the worst token (SentencePiece's constant). */
#define UNK_PENALTY 10.0

weft_status weft__tok_lexicon_build(weft__tok *tok, const weft__tok_spec *spec, weft_error *err)
{
    size_t n = 0;
    int unigram = tok->model == WEFT__TOK_MODEL_UNIGRAM;
    if (unigram && !spec->n_scores) return weft_fail(err, WEFT_FORMAT, "tokenizer: a Unigram vocabulary needs scores");
    if (tok->role[WEFT__TOK_ROLE_UNK] < 0 && !(unigram && tok->byte_fallback)) {
        return weft_fail(err, WEFT_FORMAT, "tokenizer: the vocabulary needs an unknown token");
    }
    int32_t *ids = weft__alloc_array(tok->n_tokens, sizeof *ids);
    if (!ids) return weft_fail(err, WEFT_NO_MEMORY, "tokenizer: out of memory");
    for (size_t i = 0; i < tok->n_tokens; i++) {
        int type = tok->types[i];
        if (tok->strips && tok->strips[i] & WEFT__TOK_ADDED_OUTSIDE) continue;
        if (type == WEFT__TOK_NORMAL || type == WEFT__TOK_USER_DEFINED || type == WEFT__TOK_UNUSED)
            ids[n++] = (int32_t)i;
    }
    weft__tok_prefix_build(&tok->lexicon, &tok->texts, ids, n);
    if (!unigram) return WEFT_OK;
    tok->scores = weft__alloc_array(tok->n_tokens, sizeof *tok->scores);
    if (!tok->scores) return weft_fail(err, WEFT_NO_MEMORY, "tokenizer: out of memory");
    float worst = FLT_MAX;
    for (size_t i = 0; i < tok->n_tokens; i++) {
        /* An infinite one would leave texts without a way to spell them. */
        if (!isfinite(spec->scores[i]))
            return weft_fail(err, WEFT_FORMAT, "tokenizer: the score of token %zu is not finite", i);
        tok->scores[i] = tok->types[i] == WEFT__TOK_USER_DEFINED ? 0.0f : spec->scores[i];
        if (tok->types[i] == WEFT__TOK_NORMAL && spec->scores[i] < worst) worst = spec->scores[i];
    }
    tok->unk_score = (worst == FLT_MAX ? 0.0 : (double)worst) - UNK_PENALTY;
    return WEFT_OK;
}

static size_t count_chars(const char *s, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += ((unsigned char)s[i] & 0xC0) != 0x80;
    return count;
}

/* A word is spelled with U+2581 before it; when some part of it is in no token, all of it is unknown. */
int weft__tok_wpm_encode(weft__tok_encoding *e, const char *s, size_t n)
{
    const weft__tok *tok = e->tok;
    size_t before = e->out->n, len = 0;
    if (tok->max_word_chars > 0 && count_chars(s, n) > (size_t)tok->max_word_chars) {
        return weft__tok_encoding_put(e, tok->role[WEFT__TOK_ROLE_UNK]);
    }
    e->scratch.len = 0;
    weft__strbuf_puts(&e->scratch, WEFT__TOK_LOWER_BLOCK);
    weft__strbuf_put(&e->scratch, s, n);
    if (e->scratch.failed) return weft__tok_encoding_no_memory(e);
    for (size_t i = 0; i < e->scratch.len; i += len) {
        int32_t id = weft__tok_prefix_longest(&tok->lexicon, e->scratch.data + i, e->scratch.len - i, &len);
        int no_start = i == 0 && len == 3; /* U+2581 alone continues a word and begins none */
        if (id < 0 || no_start) {
            e->out->n = before;
            return weft__tok_encoding_put(e, tok->role[WEFT__TOK_ROLE_UNK]);
        }
        if (!weft__tok_encoding_put(e, id)) return 0;
    }
    return 1;
}

/* best[i]: the score of the best way to spell s[0..i); path[i]: its last token, or -1 - length for an unknown
 * character. */
static int search(weft__tok_encoding *e, const char *s, size_t n)
{
    const weft__tok *tok = e->tok;
    if (!weft__grow(&e->best, &e->best_capacity, n + 1, sizeof *e->best)) return weft__tok_encoding_no_memory(e);
    if (!weft__grow(&e->path, &e->path_capacity, n + 1, sizeof *e->path)) return weft__tok_encoding_no_memory(e);
    for (size_t i = 0; i <= n; i++) e->best[i] = -DBL_MAX;
    e->best[0] = 0;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t char_len = weft__utf8_decode(s + i, n - i, &cp, NULL);
        weft__tok_prefix_walk walk = weft__tok_prefix_start(&tok->lexicon);
        int known = 0;
        int32_t id;
        for (size_t k = i; k < n && weft__tok_prefix_step(&tok->lexicon, &walk, (unsigned char)s[k], &id); k++) {
            if (id < 0) continue;
            if (k + 1 - i == char_len) known = 1;
            double score = e->best[i] + tok->scores[id];
            if (score > e->best[k + 1]) {
                e->best[k + 1] = score;
                e->path[k + 1] = id;
            }
        }
        if (!known && e->best[i] + tok->unk_score > e->best[i + char_len]) {
            e->best[i + char_len] = e->best[i] + tok->unk_score;
            e->path[i + char_len] = -1 - (int32_t)char_len;
        }
        i += char_len;
    }
    return 1;
}

int weft__tok_unigram_encode(weft__tok_encoding *e, const char *s, size_t n)
{
    const weft__tok *tok = e->tok;
    size_t since = e->out->n;
    if (!search(e, s, n)) return 0;
    /* The path is known from its end: turn it into one from the start, in place, by marking where each token begins. */
    int32_t carry = e->path[n];
    for (size_t end = n; end > 0;) {
        size_t len = carry < 0 ? (size_t)(-1 - carry) : weft__strings_len(&tok->texts, (size_t)carry);
        size_t begin = end - len;
        int32_t before = begin ? e->path[begin] : 0;
        e->path[begin] = carry;
        carry = before;
        end = begin;
    }
    for (size_t i = 0; i < n;) {
        int32_t id = e->path[i];
        size_t len = id < 0 ? (size_t)(-1 - id) : weft__strings_len(&tok->texts, (size_t)id);
        int ok = id >= 0 ? weft__tok_encoding_put(e, id) : weft__tok_encoding_put_unknown(e, s + i, len, since);
        if (!ok) return 0;
        i += len;
    }
    return 1;
}
