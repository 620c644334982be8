// SPDX-License-Identifier: Apache-2.0
/* train.c: an adapter learned from conversations.  Usage: train MODEL RECORDS.jsonl FOLDER [STEPS]
 *
 * Each line of the records is {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content":
 * "..."}]}. The folder then has adapter.gguf, which every program of Weft takes, and the curve of the loss as a
 * picture. */
#include <stdio.h>
#include <stdlib.h>

#include <weft/train.h>

static int report(void *arg, const weft_train_event *event)
{
    (void)arg;
    if (event->kind == WEFT_TRAIN_STEP)
        printf("step %lld of %lld: loss %.3f\n", (long long)event->step, (long long)event->n_steps, event->loss);
    return 0; /* another value saves a checkpoint and stops */
}

int main(int argc, char **argv)
{
    if (argc < 4) return fprintf(stderr, "usage: train MODEL RECORDS.jsonl FOLDER [STEPS]\n"), 2;
    const char *const data[] = {argv[2], NULL};
    weft_error err = {0};
    weft_train_params p;
    weft_train_params_default(&p);
    p.base = argv[1];
    p.data = data;
    p.out = argv[3];
    p.lora_rank = 8;
    p.lora_alpha = 16;
    p.n_steps = argc > 4 ? atoi(argv[4]) : 50;
    p.report = report;
    if (weft_train(&p, &err)) return fprintf(stderr, "train: %s\n", err.message), 1;
    printf("%s/adapter.gguf\n", argv[3]);
    return 0;
}
