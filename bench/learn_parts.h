// SPDX-License-Identifier: Apache-2.0
/* learn_parts.h: what the files of bench_learn share: the model, its tokenizer, and texts of JSON as tokens. */
#ifndef WEFT_BENCH_LEARN_PARTS_H
#define WEFT_BENCH_LEARN_PARTS_H

#include "base/json.h"
#include "learn/teach.h"
#include "train/base.h"
#include "train/render.h"
#include "train/rollout.h"

enum {
    CTX = 512,
    PROBE = 2048 /* tokens by which KL is measured */,
    PUBLIC = 64 /* of a text behind them that is learned beside */,
    ANSWER = 48
};

struct bench {
    weft__train_base base;
    weft__train_renderer renderer;
    weft__train_rollout *rollout;
    weft__teach_texts probe, publics;
    int32_t n_threads;
    weft_error err;
};

/* A correction with what it borrows from. */
struct bench_event {
    weft__teach_event e;
    weft__teach_texts texts, paraphrases; /* text 0: the correction; 1: the wrong answer */
};

/* Says what failed, and ends. */
void die(const char *what, const weft_error *err);
/* A list of prompts, or of {"prompt", "answer"}. */
void put_texts(struct bench *b, weft__teach_texts *out, const weft__json *list);
void read_event(struct bench *b, const weft__json *v, struct bench_event *out);
void free_event(struct bench_event *e);
const char *text_of(const weft__json *v, const char *key);
void number(const weft__json *v, const char *key, float *out);
void whole(const weft__json *v, const char *key, int32_t *out);

/* learn_serve.c: users' corrections are learned while streams run: {"serve": {...}}. */
void serve_line(struct bench *b, const weft__json *v);

#endif
