// SPDX-License-Identifier: Apache-2.0
/* teach_trainer.h: the trainer by which adapters are learned and judged: teach.c opens it for steps, instant.c for one,
 * contest.c to ask the gate. One thread. */
#ifndef WEFT_LEARN_TEACH_TRAINER_H
#define WEFT_LEARN_TEACH_TRAINER_H

#include "learn/teach.h"

enum { WEFT__TEACH_ANSWER = 64 /* tokens of an answer */, WEFT__TEACH_ROWS = 2048 /* of a trainer at most */ };

typedef struct weft__teach_lora {
    const weft__adapt *like; /* NULL, or its matrices, rank and scale, beside what follows */
    int32_t rank;            /* at least */
    float alpha;             /* without `like` */
    const char *targets;     /* without `like`, as weft__train_options has them */
    int32_t more;            /* added to the rank of `like`, or to `rank` */
    const char *beside;      /* NULL, or one matrix more */
    float lr, l2_sp;         /* of steps */
    int32_t decay;           /* 0, or over so many steps lr goes down to a twentieth, by half a cosine */
    int32_t max_rows;
} weft__teach_lora;

/* It has made no step, and has the values of no adapter yet (weft__trainer_start_adapter). Fails as
 * weft__trainer_create does. */
weft_status weft__teach_trainer_open(const weft__source *base, const weft__teach_options *o,
                                     const weft__teach_lora *lora, weft__trainer **out, weft_error *err);

/* Rows of the longest text of a task with an answer. */
int32_t weft__teach_longest(const weft__teach_task *k);

/* Seconds since *ns, which is then now. */
double weft__teach_since(uint64_t *ns);

#endif
