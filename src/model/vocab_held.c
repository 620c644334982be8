// SPDX-License-Identifier: Apache-2.0
/* vocab_held.c: the keys of a vocabulary are written into memory, read, and held against it, before they go into a file
 * (vocab.h). */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "model/vocab.h"
#include "model/vocab_weft.h"

/* Scores of rows without a token: none is worse. */
#define FILLER_SCORE (-1000000)

/* A vocabulary of as many tokens as the embedding has rows. */
typedef struct padded {
    weft__tok_spec spec;
    weft__tok_slice *tokens;
    float *scores;
    int32_t *types;
    uint8_t *strips;
} padded;

static weft_status vocab_held_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for the vocabulary");
}

static void free_padded(padded *p)
{
    weft__free(p->strips);
    weft__free(p->types);
    weft__free(p->scores);
    weft__free(p->tokens);
}

static weft_status make_padded(padded *p, const weft__tok_spec *spec, size_t n, weft_error *err)
{
    p->spec = *spec;
    if (spec->n_tokens > n)
        return weft_fail(err, WEFT_FORMAT, "the tokenizer has %zu tokens, the embedding %zu rows", spec->n_tokens, n);
    p->tokens = weft__alloc_zero(n, sizeof *p->tokens);
    p->scores = weft__alloc_array(n, sizeof *p->scores);
    p->types = weft__alloc_array(n, sizeof *p->types);
    p->strips = weft__alloc_zero(n, 1);
    if (!p->tokens || !p->scores || !p->types || !p->strips) return vocab_held_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        const int there = i < spec->n_tokens && spec->tokens[i].data;
        p->types[i] = !there ? WEFT__TOK_UNUSED : spec->n_types ? spec->types[i] : WEFT__TOK_NORMAL;
        p->scores[i] = i < spec->n_scores ? spec->scores[i] : FILLER_SCORE;
        if (there) p->tokens[i] = spec->tokens[i];
        if (i < spec->n_strips) p->strips[i] = spec->strips[i];
    }
    p->spec.tokens = p->tokens;
    p->spec.types = p->types;
    if (spec->n_scores) p->spec.scores = p->scores;
    if (spec->n_strips) p->spec.strips = p->strips;
    p->spec.n_tokens = p->spec.n_types = n;
    p->spec.n_scores = spec->n_scores ? n : 0;
    p->spec.n_strips = spec->n_strips ? n : 0;
    return WEFT_OK;
}

/* Keys in memory, and the tokenizer that they give. */
typedef struct vocab_held_keys {
    weft__gguf_writer *w;
    weft__strbuf bytes;
    weft__gguf *g;
    weft__tok *tok;
} vocab_held_keys;

static void free_keys(vocab_held_keys *k)
{
    weft__tok_destroy(&k->tok);
    weft__gguf_close(&k->g);
    weft__strbuf_free(&k->bytes);
    weft__gguf_writer_destroy(&k->w);
}

static weft_status vocab_held_begin(vocab_held_keys *k, const weft__tok_spec *spec, const char *pre, weft_error *err)
{
    weft_status status = weft__gguf_writer_memory("the tokenizer", &k->w, err);
    return status ? status : weft__vocab_put_usual(spec, pre, k->w, err);
}

static weft_status read_back(vocab_held_keys *k, weft_error *err)
{
    weft_status status = weft__gguf_writer_bytes(k->w, &k->bytes, err);
    if (!status) status = weft__gguf_parse(k->bytes.data, k->bytes.len, "the tokenizer", &k->g, err);
    return status ? status : weft__vocab_tokenizer(k->g, &k->tok, err);
}

/* What the usual keys alone give: the differences from `tok`. All, where no tokenizer comes of them. */
static weft_status read_usual(vocab_held_keys *k, const weft__tok *tok, unsigned *differences, weft_error *err)
{
    weft_error why = {0};
    weft_status status = read_back(k, &why);
    *differences = ~0u;
    if (status == WEFT_NO_MEMORY) return vocab_held_no_memory(err);
    if (!status) *differences = weft__tok_compare(tok, k->tok);
    return WEFT_OK;
}

/* The file is not for this program alone. */
static weft_status warn_of_others(const weft__tok *tok, const vocab_held_keys *usual, weft_error *err)
{
    char what[160];
    const int same = usual->tok ? weft__vocab_same(tok, usual->tok, what, sizeof what) : 0;
    if (same < 0) return vocab_held_no_memory(err);
    if (!same && usual->tok)
        weft__log(WEFT__LOG_WARN,
                  "tokenizer: GGUF's usual keys cannot say all of it (%s): programs that do not know tokenizer.weft.* "
                  "will read the file "
                  "otherwise",
                  what);
    else if (!same)
        weft__log(
            WEFT__LOG_WARN,
            "tokenizer: GGUF's usual keys cannot say it: programs that do not know tokenizer.weft.* cannot read it");
    return WEFT_OK;
}

static weft_status hold(const weft__tok *tok, const vocab_held_keys *k, weft_error *err)
{
    char what[160];
    const unsigned differences = weft__tok_compare(tok, k->tok);
    if (differences)
        return weft_fail(err, WEFT_UNSUPPORTED,
                         "the tokenizer: %s cannot be said in a GGUF file; run the folder itself instead",
                         weft__tok_difference_name(differences));
    const int same = weft__vocab_same(tok, k->tok, what, sizeof what);
    if (same < 0) return vocab_held_no_memory(err);
    if (same) return WEFT_OK;
    return weft_fail(err, WEFT_UNSUPPORTED,
                     "the tokenizer: a GGUF file would read %s otherwise; run the folder itself instead", what);
}

static weft_status put_held(const padded *p, const char *pre, const weft__tok *tok, weft__gguf_writer *w,
                            weft_error *err)
{
    vocab_held_keys usual = {0}, all = {0};
    unsigned differences = 0;
    weft_status status = vocab_held_begin(&usual, &p->spec, pre, err);
    if (!status) status = read_usual(&usual, tok, &differences, err);
    if (!status) status = vocab_held_begin(&all, &p->spec, pre, err);
    if (!status) status = weft__vocab_put_weft(&p->spec, differences, usual.tok, all.w, err);
    if (!status) status = read_back(&all, err);
    if (!status) status = hold(tok, &all, err);
    if (!status && differences) status = warn_of_others(tok, &usual, err);
    if (!status) status = weft__gguf_put_all(w, all.g, err);
    free_keys(&all);
    free_keys(&usual);
    return status;
}

weft_status weft__vocab_put(const weft__tok_spec *spec, size_t n, const char *pre, weft__gguf_writer *w,
                            weft_error *err)
{
    padded p = {0};
    weft__tok *tok = NULL;
    weft_status status = make_padded(&p, spec, n, err);
    if (!status) status = weft__tok_create(&p.spec, &tok, err);
    if (!status) status = put_held(&p, pre, tok, w, err);
    weft__tok_destroy(&tok);
    free_padded(&p);
    return status;
}
