// SPDX-License-Identifier: Apache-2.0
/* training.h: what 'weft train' and 'weft adapter train' share: options, the line that shows how it goes,
 * interruption. */
#ifndef WEFT_CLI_TRAINING_H
#define WEFT_CLI_TRAINING_H

#include "options.h"
#include "weft/train.h"

enum { TRAINING_OPTIONS = 64 }; /* room for a command's options and the common ones */

typedef struct training {
    weft_train_params p;
    struct text_list data, heldout;
    const char *optimizer, *schedule, *chat_template;
    int32_t steps, warmup, save_every, heldout_every; /* as the table reads them; into p by training_run */
    const char *lr_help, *epochs_help, *batch_help;   /* with the command's defaults */
    int learn_prompts, recompute, resume, json;
    uint64_t shown_ns;
    int on_line; /* the line of a terminal is not ended */
} training;

void training_init(training *t);
/* Fills `table` from `at` on with the common options and the end mark. */
void training_options(training *t, option_spec *table, int at);
/* Trains and tells about it; returns the exit status. `command` is for messages. */
int training_run(training *t, const char *command);

#endif
