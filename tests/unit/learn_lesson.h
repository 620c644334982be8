// SPDX-License-Identifier: Apache-2.0
/* learn_lesson.h: a correction to be learned by a tiny model, with neighbours, for the tests of learning. */
#ifndef WEFT_TESTS_LEARN_LESSON_H
#define WEFT_TESTS_LEARN_LESSON_H

#include "adapt/adapt.h"
#include "folder.h"
#include "train_model.h"
#include "train_world.h"

#include "learn/teach.h"

enum { N_NEIGHBOURS = 12, N_PROBE = 200 };

/* A task over random tokens: one correction with a paraphrase of it, neighbours that begin as it does, and a probe. */
typedef struct lesson {
    tiny *m;
    weft__tok *tok;
    weft__teach_texts own, paraphrases, neighbours, others;
    int32_t wrong[4], probe[N_PROBE];
    weft__teach_event event;
    weft__gate_material judge;
    weft__teach_options o;
    weft__teach_task task;
    weft_error err;
} lesson;

/* A prompt of 8 tokens, of which the last four are by the seed, and an answer of n + the token that ends it. */
static inline void add_text(weft__teach_texts *t, uint64_t seed, int32_t n)
{
    int32_t prompt[8], answer[8];
    weft__rng rng;
    weft__rng_seed(&rng, seed);
    for (int i = 0; i < 8; i++) prompt[i] = i < 4 ? 10 + i : 4 + (int32_t)weft__rng_below(&rng, TINY_VOCAB - 4);
    for (int i = 0; i < n; i++) answer[i] = 4 + (int32_t)weft__rng_below(&rng, TINY_VOCAB - 4);
    assert_true(weft__teach_texts_add(t, prompt, 8, answer, n, n ? END : -1));
}

static inline void lesson_open(lesson *l)
{
    *l = (lesson){.m = tiny_new(&TINY_KINDS[0], WEFT_F32, 24, 40), .tok = make_tokenizer(NULL)};
    add_text(&l->own, 1, 3);
    add_text(&l->paraphrases, 1, 0);
    ((int32_t *)(uintptr_t)l->paraphrases.text[0].ids)[1] = 20; /* another word, nothing else */
    for (uint64_t i = 0; i < N_NEIGHBOURS; i++) add_text(&l->neighbours, 100 + i, 0);
    for (uint64_t i = 0; i < N_NEIGHBOURS; i++) add_text(&l->others, 200 + i, 0);
    for (int i = 0; i < N_PROBE; i++) l->probe[i] = 4 + (i * 7 + i / 5) % (TINY_VOCAB - 4);
    memcpy(l->wrong, l->own.text[0].ids + 8, 3 * sizeof *l->wrong);
    l->wrong[1] = l->wrong[1] == 5 ? 6 : 5;
    l->event = (weft__teach_event){.correction = l->own.text[0],
                                   .wrong = l->wrong,
                                   .n_wrong = 3,
                                   .paraphrases = l->paraphrases.text,
                                   .n_paraphrases = 1};
    l->judge.probe = l->probe;
    l->judge.n_probe = N_PROBE;
    l->judge.bounds = (weft__gate_bounds){
        .p = 0.1f, .least = -2.3f, .kl = 10, .kl_later = 10, .norm = 10}; /* what is learned on noise is not small */
    weft__teach_options_default(&l->o);
    l->o.lr = 1e-2f;
    l->o.most_steps = 200;
    l->o.stop_at = -0.9f; /* the head cannot say anything with more certainty than about this */
    l->o.hold_at = -1.6f;
    l->o.neighbour = 0.1f;
    l->o.norm_cap = 100;
    l->o.same = 1; /* on noise no token comes by itself */
    l->o.attempts = 1;
    l->o.n_threads = 1;
    l->o.targets = NULL;
    l->task = (weft__teach_task){.base = &l->m->src,
                                 .tok = l->tok,
                                 .events = &l->event,
                                 .n_events = 1,
                                 .neighbours = l->neighbours.text,
                                 .n_neighbours = N_NEIGHBOURS,
                                 .judge = &l->judge,
                                 .path = path,
                                 .name = "mine"};
}

static inline void lesson_close(lesson *l)
{
    unlink(path);
    weft__teach_texts_free(&l->own);
    weft__teach_texts_free(&l->paraphrases);
    weft__teach_texts_free(&l->neighbours);
    weft__teach_texts_free(&l->others);
    weft__tok_destroy(&l->tok);
    tiny_free(l->m);
}

#endif
