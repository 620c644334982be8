// SPDX-License-Identifier: Apache-2.0
/* training.h: what 'weft train' and 'weft adapter train' share: options, the line that shows how it goes,
 * interruption. */
#ifndef WEFT_CLI_TRAINING_H
#define WEFT_CLI_TRAINING_H

#include "losses.h"
#include "options.h"
#include "weft/train.h"

enum { TRAINING_OPTIONS = 96 }; /* room for a command's options and the common ones */

typedef struct training {
    weft_train_params p;
    struct text_list data, heldout, neighbors, answers, keep, prompts;
    const char *optimizer, *schedule, *chat_template;
    int32_t steps, warmup, save_every, heldout_every; /* as the table reads them; into p by training_run */
    const char *lr_help, *epochs_help, *batch_help;   /* with the command's defaults */
    const char *stop, *scales, *config;
    float scale[LIST_MAX];
    int32_t check_every, sample_every, patience, show;
    int keep_best, raw, adapts; /* adapts: the result is an adapter */
    losses_given losses;
    int rs, untied, shape; /* shape: an option of a fresh model's was given */
    int learn_prompts, recompute, exact, resume, json;
    int64_t n_answers, answers_right, n_keep, keep_right; /* as they were asked last; right -1: never */
    int64_t result_step;
    double result_scale; /* NAN: no adapter */
    uint64_t shown_ns;
    int on_line; /* the line of a terminal is not ended */
} training;

/* A command that trains: how it begins, its options, and what follows once they are read: EXIT_DONE, or EXIT_USAGE
 * after a message. */
typedef struct training_kind {
    const char *command;
    void (*init)(training *t);
    void (*table)(training *t, option_spec *table);
    int (*finish)(training *t);
} training_kind;
extern const training_kind training_of_models, training_of_adapters;

/* training_stages.c: the stages of t->config, into folders of t->p.out; beside it `spec` was given no other options
 * than such as a file of stages has not. Returns the exit status. */
int training_stages(const training *t, const command_spec *spec, int n_positional);
/* What is wrong with the training as a whole, before anything is read: EXIT_USAGE after a message, or EXIT_DONE. */
int training_check(training *t, const char *command);

void training_init(training *t);
/* Fills `table` from `at` on with the common options and the end mark. */
void training_options(training *t, option_spec *table, int at);
/* training_steer.c: options of what happens between steps; their number. */
int training_steer_options(training *t, option_spec *table, int at);
/* EXIT_DONE, or EXIT_USAGE after a message; what was given is in t->p then. */
int training_steer_check(training *t, const char *command);
/* What they have to tell of an event: lines of their own. */
void training_steer_tell(training *t, const weft_train_event *e);
/* At the end: what came of them, and the same as members of a JSON object. */
void training_steer_end(const training *t);
void training_steer_json(const training *t);
/* The first texts of the data as they are learned, on stdout; nothing is trained. */
int training_show(training *t, const char *command);
/* Lists and texts as the library takes them: files read, p's pointers set. The template is *source, to be freed. */
weft_status training_params(training *t, char **source, weft_error *err);

/* Trains and tells about it; returns the exit status. `command` is for messages. */
int training_run(training *t, const char *command);

#endif
