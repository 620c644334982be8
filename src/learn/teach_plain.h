// SPDX-License-Identifier: Apache-2.0
/* teach_plain.h: what an answer in a style is without it, so that the base can be asked whether it would say so.
 *
 * By words, as teach_words.h has them: what three quarters of the corrections say before and behind all that stays is
 * taken off; what they put in for a word nearly always, and for nothing else, is that word again ("be": "is"); and what
 * else two of them put in is left out, where the plain answer has it not. All other words stay as they were said. One
 * thread. */
#ifndef WEFT_LEARN_TEACH_PLAIN_H
#define WEFT_LEARN_TEACH_PLAIN_H

#include "learn/teach_texts.h"
#include "learn/teach_words.h"

/* What corrections change. */
typedef struct weft__teach_change {
    weft__teach_words words;
    weft__teach_list before, behind; /* what three quarters say there */
    int32_t *mate;                   /* [n] of a word that is put in: for which it is; -1: for none */
    uint8_t *in;                     /* [n] two put it in, and it has none */
    int32_t n;                       /* words that were known then: later ones are in neither */
} weft__teach_change;
/* *out is to be freed in any case. WEFT_NO_MEMORY, and as weft__teach_words_read. */
weft_status weft__teach_change_find(const weft__tok *tok, const weft__teach_event *events, int32_t n,
                                    weft__teach_change *out, weft_error *err);
void weft__teach_change_free(weft__teach_change *c);

/* Appends what was `said` as if it were plain, beside the plain answer; both have the token that ends them. */
weft_status weft__teach_plain_of(weft__teach_change *c, const weft__teach_text *plain, const weft__teach_text *said,
                                 weft__teach_texts *out, weft_error *err);

#endif
