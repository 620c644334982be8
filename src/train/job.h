// SPDX-License-Identifier: Apache-2.0
/* job.h: one call of weft_train: everything it has open, between job_open.c (from parameters to a trainer that stands
 * where it should) and job.c (the steps). Belongs to the calling thread. */
#ifndef WEFT_TRAIN_JOB_H
#define WEFT_TRAIN_JOB_H

#include "train/base.h"
#include "train/curve.h"
#include "train/data.h"
#include "train/loss.h"
#include "train/policy.h"
#include "train/train.h"
#include "weft/train.h"

/* What a checkpoint keeps for the job, beside the trainer's own. */
typedef struct weft__train_job_state {
    uint64_t magic; /* WEFT__TRAIN_JOB_MAGIC */
    uint64_t base;  /* weft__train_base_hash */
    uint64_t data;  /* weft__dataset_hash */
    uint64_t plan;  /* a checksum of the parameters that decide the result and that the trainer does not check */
    weft__dataset_cursor position;
    int64_t n_rows;
    double seconds;
} weft__train_job_state;

#define WEFT__TRAIN_JOB_MAGIC 0x33424f4a54464557u      /* "WEFTJOB3" */
#define WEFT__TRAIN_JOB_MAGIC_ENDS 0x32424f4a54464557u /* "WEFTJOB2": `base` saw the tensors' ends alone */

/* Zero-initialise; close in any case. */
typedef struct weft__train_job {
    const weft_train_params *p;
    weft__train_base base;
    uint64_t base_hash;
    weft__train_renderer renderer;
    weft__dataset *data, *heldout; /* heldout: NULL without */
    weft__trainer *trainer;
    weft__curve curve;
    int32_t n_ctx; /* tokens of a text */
    int32_t batch; /* as p has them, or as the data want them */
    double epochs;
    weft__train_objective objective;
    weft__train_policy *policy; /* of losses that sample answers, else NULL */
    float *weight;              /* [batch] of rows, where the loss gives them its own */
    char *checkpoint;           /* paths in the folder */
    char *result;
    int made_folder; /* by this job */
    int64_t n_steps, n_rows;
    double seconds;   /* of all steps so far */
    uint64_t peak_ns; /* when the multipliers' limit was last measured; 0: not yet */
    int64_t epoch_rows;
} weft__train_job;

weft_status weft__train_job_open(weft__train_job *j, const weft_train_params *p, weft_error *err);
void weft__train_job_close(weft__train_job *j);
/* job_loss.c: WEFT_ARGUMENT: a loss that is not known, or that lacks what it needs. */
weft_status weft__train_job_check_loss(const weft_train_params *p, weft_error *err);
/* Are the data pairs of answers? */
int weft__train_job_pairs(const weft_train_params *p);
/* Do the records say rewards? */
int weft__train_job_rewards(const weft_train_params *p);
/* j->objective, and what batches need. */
weft_status weft__train_job_open_loss(weft__train_job *j, weft_error *err);
/* Does the loss sample answers? */
int weft__train_job_samples(const weft_train_params *p);
/* j->policy, where it does. */
weft_status weft__train_job_open_policy(weft__train_job *j, weft_error *err);
/* The batch with the weights that the loss gives its rows. */
void weft__train_job_weigh(weft__train_job *j, weft__train_batch *b);
/* "Preference loss": what the curve shows. */
const char *weft__train_job_title(const weft_train_params *p);
/* A checksum for weft__train_job_state. */
uint64_t weft__train_job_plan(const weft__train_job *j);

#endif
