// SPDX-License-Identifier: Apache-2.0
/* eval.h: a task over a model: every document's prompt through the engine, many at once; what came back as lines of
 * samples, in the order of the documents; figures of the whole.
 *
 * Invariant: a line depends on the task, the model and the parameters alone, not on what ran beside it: a run that was
 * stopped goes on where its file ends and writes the same bytes. One thread calls; the engine has its own. */
#ifndef WEFT_EVAL_EVAL_H
#define WEFT_EVAL_EVAL_H

#include "eval/prompt.h"
#include "eval/report.h"
#include "eval/task.h"
#include "weft/weft.h"

/* How a continuation is scored; the numbers are the same, bit for bit. */
typedef enum weft__eval_how {
    WEFT__EVAL_AUTO,
    WEFT__EVAL_AS_PROMPT, /* context and continuation are read as one prompt */
    WEFT__EVAL_AS_ANSWER  /* the continuation is written behind the context, whose pages others of it share */
} weft__eval_how;

typedef struct weft__eval_params {
    weft_model *model;
    weft_engine *engine;      /* of that model */
    weft_engine_lease *lease; /* the adapters; NULL: none */
    weft__eval_style style;
    weft__eval_how how;
    int no_bos;              /* no BOS before texts, whatever the model's file says */
    size_t limit;            /* documents; 0: all */
    uint64_t seed;           /* of sampled answers */
    uint64_t fewshot_seed;   /* of the examples' choice; lm-evaluation-harness: 1234 */
    const char *samples;     /* file of lines; goes on with it where it is there. NULL: none */
    const char *predictions; /* for a task with predictions; NULL: none */
    const char *label;       /* what the model is called in files; copied */
    const char *adapters_id; /* tells stacks of adapters apart, for the samples' first line; "" without */
    weft_progress_fn progress;
    void *progress_arg;
} weft__eval_params;

/* Zero but for what is usual. */
void weft__eval_params_default(weft__eval_params *p);

/* Runs the task and adds each sample to the report, which is the caller's to begin and to free. Fails with what the
 * documents, the engine or the file fail with, naming the document or the file; WEFT_CANCELLED when `progress` said so;
 * WEFT_EXISTS where `samples` is of another run. What was finished by then is in the file. */
weft_status weft__eval_run(const weft__eval_task *task, const weft__eval_params *params, weft__eval_report *report,
                           weft_error *err);
/* The first line of the file of samples: which run it is. Appended, with a newline. */
void weft__eval_head(const weft__eval_task *task, const weft__eval_params *params, weft__strbuf *out);

#endif
