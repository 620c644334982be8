// SPDX-License-Identifier: Apache-2.0
/* teach_questions.h: questions that the model makes up: what it knows beside what it was asked, for who is to keep it.
 *
 * All prompts begin alike and end alike, as the chat's template has it. Behind the beginning the model says what would
 * be asked (Xu et al. 2024, Magpie); here each question begins as one that was asked does, up to anywhere in it, so
 * that the same is asked of others. What the model answers stands for what it learned once (pseudo-rehearsal, Robins
 * 1995). One thread. */
#ifndef WEFT_LEARN_TEACH_QUESTIONS_H
#define WEFT_LEARN_TEACH_QUESTIONS_H

#include "learn/teach_texts.h"

typedef struct weft__teach_asked {
    const weft__teach_text *text; /* [n] */
    size_t n;
} weft__teach_asked;

typedef struct weft__teach_questioning {
    int32_t draws, most; /* how many are drawn, and how many new ones of these are taken */
    float temperature;
    uint64_t seed;
} weft__teach_questioning;

/* Is this one of the n texts' prompts? */
int weft__teach_has_prompt(const weft__teach_text *texts, size_t n, const int32_t *ids, int32_t n_ids);

/* Appends prompts without an answer, each once: none that stands in asked[0 .. n_asked), and none longer than the
 * longest of asked[0], of which they are made. Of prompts that do not begin alike, or are fewer than two,
 * there are none. Fails as weft__teach_draw does. */
weft_status weft__teach_questions(weft__trainer *t, const weft__tok *tok, const weft__teach_asked *asked,
                                  size_t n_asked, const weft__teach_questioning *how, weft__teach_texts *out,
                                  weft_error *err);

#endif
