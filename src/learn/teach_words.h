// SPDX-License-Identifier: Apache-2.0
/* teach_words.h: tokens as words, so that the same word is one thing wherever it stands: a token begins with a space
 * behind others, and a name may be several. Words are numbers; letters of either case are the same (ASCII). One
 * thread. */
#ifndef WEFT_LEARN_TEACH_WORDS_H
#define WEFT_LEARN_TEACH_WORDS_H

#include "base/text.h"
#include "text/tokenizer/tokenizer.h"

/* All words that were read; zero-initialise, with the tokenizer. */
typedef struct weft__teach_words {
    const weft__tok *tok;
    weft__strbuf bytes; /* of all words, one after the other */
    size_t *from;       /* [n + 1] where word i begins there */
    int32_t n;
    size_t from_room;
    int32_t *slot; /* [n_slots] a power of two; word + 1, or 0 */
    size_t n_slots;
} weft__teach_words;
void weft__teach_words_free(weft__teach_words *w);

/* Zero-initialise. */
typedef struct weft__teach_list {
    int32_t *id; /* [n] */
    int32_t *at; /* [n][2] where its bytes begin and end in `text` */
    int32_t n;
    size_t room, at_room;
    weft__strbuf text; /* as it was written */
} weft__teach_list;
void weft__teach_list_free(weft__teach_list *l);

/* The words of tokens become *out, which is empty. Letters, digits and what is not ASCII make words together, with an
 * apostrophe behind them where no letter follows it ("th'"), else it begins one ("'s"); every other character is one.
 * White space and control tokens are none. Fails as weft__tok_decode does, and with WEFT_NO_MEMORY. */
weft_status weft__teach_words_read(weft__teach_words *w, const int32_t *ids, int32_t n, weft__teach_list *out,
                                   weft_error *err);

#endif
