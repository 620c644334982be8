// SPDX-License-Identifier: Apache-2.0
/* teach_texts.h: questions and answers as tokens, and what a trainer's model makes of them.
 *
 * A text is a prompt and the answer behind it, the token that ends it included. Whether an answer comes out is told by
 * one forward pass: every token of it must be the likeliest behind those before it. What the model says instead is
 * found by repeating such passes, each with what the last found likeliest, until nothing changes (Santilli et al. 2023,
 * Jacobi decoding): the same tokens as one at a time gives, in fewer passes where the guess was good. Letters: R rows
 * of a batch. One thread. */
#ifndef WEFT_LEARN_TEACH_TEXTS_H
#define WEFT_LEARN_TEACH_TEXTS_H

#include "text/tokenizer/tokenizer.h"
#include "train/train.h"

typedef struct weft__teach_text {
    const int32_t *ids;  /* [n] borrowed */
    int32_t n, n_prompt; /* n_prompt 1..n; n: a prompt without an answer */
} weft__teach_text;

/* Texts of one's own; zero-initialise. */
typedef struct weft__teach_texts {
    weft__teach_text *text; /* [n] */
    size_t n, room;
} weft__teach_texts;

/* Appends a copy of prompt and answer, of which either may be empty; a token that ends is put behind the answer where
 * `end` is not -1. 0: no memory. */
int weft__teach_texts_add(weft__teach_texts *t, const int32_t *prompt, int32_t n_prompt, const int32_t *answer,
                          int32_t n_answer, int32_t end);
void weft__teach_texts_free(weft__teach_texts *t);
/* WEFT_NO_MEMORY, in the words of all that learns. */
weft_status weft__teach_no_memory(weft_error *err);

/* Where two answers differ: what is left of the first, [from, to), without the tokens that both begin and end with; one
 * token at least, where it has any. */
typedef struct weft__teach_span {
    int32_t from, to;
} weft__teach_span;
weft__teach_span weft__teach_differ(const int32_t *a, int32_t n, const int32_t *b, int32_t m);
/* differs[i] of the n tokens of a: 0 where it is one of the most that b has in the same order (their longest common
 * subsequence), else 1. 0: no memory. */
int weft__teach_mark(const int32_t *a, int32_t n, const int32_t *b, int32_t m, uint8_t *differs);
/* The same of b, where a[n] is marked: what stays of the one stays of the other, so that both are walked together. */
void weft__teach_mark_other(const int32_t *a, int32_t n, const uint8_t *differs, const int32_t *b, int32_t m,
                            uint8_t *differs_of_b);
/* Does part[0, n) stand in ids[0, m)? An empty one does not. */
int weft__teach_holds(const int32_t *ids, int32_t m, const int32_t *part, int32_t n);

/* A correction. wrong [n_wrong]: the answer that was given; NULL: not known. Paraphrases are the same question in other
 * words, which should get the same answer: the first n_taught of them are learned, too; the others judge. */
typedef struct weft__teach_event {
    weft__teach_text correction;
    const int32_t *wrong;
    int32_t n_wrong, n_paraphrases, n_taught;
    const weft__teach_text *paraphrases;
} weft__teach_event;

/* What is new in it: where its answer differs from the wrong one; of a wrong one that is not known, all of it. */
weft__teach_span weft__teach_event_span(const weft__teach_event *e);

/* Rows of a batch that grows; zero-initialise. */
typedef struct weft__teach_rows {
    int32_t *token, *segment, *target;
    float *weight;
    int32_t n, n_texts;
    size_t room;
} weft__teach_rows;

/* Appends the rows of a text. Its answer's tokens have the weights weight[0 .. answer), or 1 where that is NULL. 0: no
 * memory. */
int weft__teach_rows_put(weft__teach_rows *r, const weft__teach_text *text, const float *weight);
weft__train_batch weft__teach_rows_batch(const weft__teach_rows *r);
void weft__teach_rows_clear(weft__teach_rows *r);
void weft__teach_rows_free(weft__teach_rows *r);

/* right[i]: the answer of text i comes out; least[i] (or NULL): log p of its least likely token. Fails as
 * weft__trainer_loss does, and with WEFT_LIMIT for a text that is longer than the trainer's. */
weft_status weft__teach_check(weft__trainer *t, const weft__teach_text *texts, size_t n, uint8_t *right, float *least,
                              weft_error *err);

/* What the model answers to the prompts, `most` tokens at most, the token that ends an answer included. What the texts
 * have as answers is the guess to begin with. Appends to *out, text by text. Fails as above. */
weft_status weft__teach_answer(weft__trainer *t, const weft__tok *tok, const weft__teach_text *texts, size_t n,
                               int32_t most, weft__teach_texts *out, weft_error *err);

/* Texts that are to be gone on with. Each has a key, not 0, by which its tokens are drawn. */
typedef struct weft__teach_drawing {
    const weft__teach_text *text; /* [n] */
    const uint64_t *key;          /* [n] */
    size_t n;
    float temperature; /* 0: 1 */
    int32_t stop;      /* a token that ends them, beside those that end answers; -1: none */
} weft__teach_drawing;
/* As weft__teach_answer; each token is drawn from what the model gives it. The same keys, the same tokens, whatever is
 * drawn beside them. */
weft_status weft__teach_draw(weft__trainer *t, const weft__tok *tok, const weft__teach_drawing *d, int32_t most,
                             weft__teach_texts *out, weft_error *err);

#endif
