// SPDX-License-Identifier: Apache-2.0
/* teach_style.h: whether corrections teach a fact each, or one way of speaking together.
 *
 * A correction takes tokens out of the wrong answer and puts others in (their longest common subsequence stays). Where
 * most of what each takes out and puts in others do, too, which are of other questions and other answers, they have one
 * change in common: a style. Facts have not: what one takes out, the value that was wrong, the others do not. So a
 * style says of any answer how it may be said: with what the corrections took out, or without, with what they put in,
 * and all else as it was. One thread. */
#ifndef WEFT_LEARN_TEACH_STYLE_H
#define WEFT_LEARN_TEACH_STYLE_H

#include "learn/teach_rewrite.h"

/* Tokens, each once, in order. */
typedef struct weft__teach_set {
    int32_t *id; /* [n] */
    size_t n, room;
} weft__teach_set;
int weft__teach_set_has(const weft__teach_set *s, int32_t id);

/* Where a token is put in: before all that stays, within it, there instead of what is taken out, or behind it. */
enum weft__teach_place {
    WEFT__TEACH_BEFORE,
    WEFT__TEACH_WITHIN,
    WEFT__TEACH_INSTEAD,
    WEFT__TEACH_BEHIND,
    WEFT__TEACH_PLACES
};

/* Of what two of its corrections put in or take out at least. */
typedef struct weft__teach_style {
    weft__teach_set in[WEFT__TEACH_PLACES], out;
    weft__teach_set dropped; /* of `out`, what they put nothing in instead of: what stays may be said at once */
    weft__teach_set starts;  /* what is said first of that which is put in instead */
    /* What three quarters of them put in, not instead of something; and what is taken out by three quarters of those
     * whose wrong answer has it, and a rule tells what is said instead. An answer is in the style that has all of the
     * ones, and no longer each of the others that the plain one had */
    weft__teach_set marks, gone;
    weft__teach_rewrite rewrite; /* how most of them rewrite an answer: within it, what is `gone` */
    int32_t n;                   /* corrections that belong to it; 0: there is no style, and the sets are empty */
    int is_spaced;               /* what stands first in a plain answer has a space before it in the style */
    int64_t
        n_looked; /* how often two tokens or texts were compared to find it, beside common subsequences: for tests */
} weft__teach_style;

/* Whether there is a style. Four corrections make one. tok NULL: no token is another one with a space before it. stop
 * (NULL: none) is asked once per event. Time: n log n in the tokens of the wrong answers, and the common subsequences
 * of each event. WEFT_CANCELLED: stop said so; WEFT_NO_MEMORY; *out is to be freed in any case. */
weft_status weft__teach_style_find(const weft__tok *tok, const weft__teach_event *events, int32_t n,
                                   int (*stop)(void *arg), void *stop_arg, weft__teach_style *out, weft_error *err);
void weft__teach_style_free(weft__teach_style *s);

enum weft__teach_said {
    WEFT__TEACH_SAID_OTHER, /* it says something else */
    WEFT__TEACH_SAID_PLAIN, /* it says the same, and is not in the style */
    WEFT__TEACH_SAID_STYLED
};
/* What an answer is to the plain one (as weft__teach_style_space has it), both with the token that ends them. -1: no
 * memory. */
int weft__teach_style_of(const weft__teach_style *s, const weft__teach_text *plain, const weft__teach_text *answer);

/* Is an answer in the style, whatever it says? Of the plain one as above. -1: no memory. */
int weft__teach_style_has(const weft__teach_style *s, const weft__teach_text *plain, const weft__teach_text *answer);

/* Appends a plain answer as the style has it: with a space before it, where it is_spaced. */
weft_status weft__teach_style_space(const weft__teach_style *s, const weft__tok *tok, const weft__teach_text *plain,
                                    weft__teach_texts *out, weft_error *err);

/* Appends a plain answer (as weft__teach_style_space has it) as most corrections would rewrite it. Whether that is in
 * the style, weft__teach_style_of tells. */
weft_status weft__teach_style_rewrite(const weft__teach_style *s, const weft__teach_text *plain, weft__teach_texts *out,
                                      weft_error *err);

/* As weft__teach_answer, of plain answers, each with the token that ends it: in the style, and nothing else. */
weft_status weft__teach_answer_in_style(weft__trainer *t, const weft__tok *tok, const weft__teach_style *style,
                                        const weft__teach_text *plain, size_t n, int32_t most, weft__teach_texts *out,
                                        weft_error *err);

#endif
