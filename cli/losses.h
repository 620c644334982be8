// SPDX-License-Identifier: Apache-2.0
/* losses.h: the options of 'weft adapter train' that say what is minimised. */
#ifndef WEFT_CLI_LOSSES_H
#define WEFT_CLI_LOSSES_H

#include "options.h"
#include "weft/train.h"

/* Options that losses have, and whether they were given. */
typedef struct losses_given {
    const char *name;
    int dpo;
    int temperature_given, beta_given, smoothing_given, chosen_given, reward_min_given;
    int top_given, group_given, prompts_given, answer_given;
    float beta, temperature;
} losses_given;

/* Writes the options into `table`; returns how many there are. */
int losses_options(weft_train_params *p, losses_given *g, option_spec *table);
/* p->loss by the name that was given, and the numbers that belong to it. Returns the exit status: of a usage, after a
 * message, where there is no such loss, or an option is another's. */
int losses_choose(weft_train_params *p, const losses_given *g);

#endif
