// SPDX-License-Identifier: Apache-2.0
/* stages.h: a file of stages: trainings that go on from each other, each a command of `weft` with its settings.
 *
 *   defaults: {threads: 2}          settings of every stage whose command has them
 *   stages:
 *     words: {command: train, data: a.txt, tokenizer: v.gguf}
 *     taste: {command: adapter train, data: [b.jsonl, c.jsonl], loss: dpo}
 *
 * Constant once it was read; all that it shows lies in it. Any thread. */
#ifndef WEFT_CONFIG_STAGES_H
#define WEFT_CONFIG_STAGES_H

#include "config/config.h"

typedef struct weft__config_stage {
    const char *name, *command;
    weft__config_settings settings; /* the defaults are not among them */
    int line, column;
} weft__config_stage;

typedef struct weft__config_stages {
    weft__config holder; /* of the memory */
    weft__config_settings defaults;
    const weft__config_stage *items; /* [n], in their order; one at least */
    size_t n;
} weft__config_stages;

/* What the program knows. command NULL: a default, which some command must have. 1; or 0 with what is wrong in why. */
typedef struct weft__config_stages_known {
    int (*command)(void *arg, const char *command, char *why, size_t room);
    int (*setting)(void *arg, const char *command, const weft__config_setting *s, char *why, size_t room);
    void *arg;
} weft__config_stages_known;

/* As weft__config_parse and weft__config_read. */
weft_status weft__config_stages_parse(const char *path, const char *text, size_t n,
                                      const weft__config_stages_known *known, weft__config_stages **out,
                                      weft__config_faults *faults, weft_error *err);
weft_status weft__config_stages_read(const char *path, const weft__config_stages_known *known,
                                     weft__config_stages **out, weft__config_faults *faults, weft_error *err);
void weft__config_stages_free(weft__config_stages **s);

#endif
