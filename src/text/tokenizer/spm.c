// SPDX-License-Identifier: Apache-2.0
/* spm.c: SentencePiece's BPE: neighbouring symbols are merged while the vocabulary has what they spell, the best score
 * first, of equals the leftmost (Kudo and Richardson 2018). Characters that it lacks fall back to byte tokens. No state
 * of its own. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer/parts.h"

/* A token and its score, for sorting. */
typedef struct scored {
    float score;
    int32_t id;
} scored;

static int by_score(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

weft_status weft__tok_spm_build(weft__tok *tok, const weft__tok_spec *spec, weft_error *err)
{
    if (!spec->n_scores) return weft_fail(err, WEFT_FORMAT, "tokenizer: a SentencePiece vocabulary needs scores");
    scored *order = weft__alloc_array(tok->n_tokens, sizeof *order);
    tok->ranks = weft__alloc_array(tok->n_tokens, sizeof *tok->ranks);
    if (!order || !tok->ranks) {
        weft__free(order);
        return weft_fail(err, WEFT_NO_MEMORY, "tokenizer: out of memory");
    }
    for (size_t i = 0; i < tok->n_tokens; i++) order[i] = (scored){spec->scores[i], (int32_t)i};
    qsort(order, tok->n_tokens, sizeof *order, by_score);
    uint32_t rank = 0;
    for (size_t i = 0; i < tok->n_tokens; i++) {
        if (i && order[i].score != order[i - 1].score) rank = (uint32_t)i;
        tok->ranks[order[i].id] = rank;
    }
    weft__free(order);
    return WEFT_OK;
}

/* What the pair function looks at. */
typedef struct spm_word {
    const weft__tok *tok;
    const char *s;
} spm_word;

static int find_pair(const void *arg, const weft__tok_symbol *left, const weft__tok_symbol *right, uint32_t *rank,
                     int32_t *id)
{
    const spm_word *w = arg;
    size_t n = (size_t)left->len + right->len;
    if (n > w->tok->max_len) return 0;
    *id = weft__strings_find(&w->tok->texts, w->s + left->start, n);
    if (*id < 0) return 0;
    *rank = w->tok->ranks[*id];
    return 1;
}

int weft__tok_spm_encode(weft__tok_encoding *e, const char *s, size_t n)
{
    const weft__tok *tok = e->tok;
    weft__tok_merger *m = &e->merger;
    spm_word w = {tok, s};
    weft__tok_merger_clear(m);
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t len = weft__utf8_decode(s + i, n - i, &cp, NULL);
        if (!weft__tok_merger_add(m, (uint32_t)i, (uint32_t)len, weft__strings_find(&tok->texts, s + i, len))) {
            return weft__tok_encoding_no_memory(e);
        }
        i += len;
    }
    if (!weft__tok_merger_run(m, find_pair, &w)) return weft__tok_encoding_no_memory(e);
    size_t since = e->out->n;
    for (int32_t i = 0; i >= 0; i = m->symbols[i].next) {
        const weft__tok_symbol *symbol = &m->symbols[i];
        int ok = symbol->id >= 0 ? weft__tok_encoding_put(e, symbol->id)
                                 : weft__tok_encoding_put_unknown(e, s + symbol->start, symbol->len, since);
        if (!ok) return 0;
    }
    return 1;
}
