// SPDX-License-Identifier: Apache-2.0
/* job.h: one call of weft_train: everything it has open, between job_open.c (from parameters to a trainer that stands
 * where it should) and job.c (the steps). Belongs to the calling thread. */
#ifndef WEFT_TRAIN_JOB_H
#define WEFT_TRAIN_JOB_H

#include "train/answers.h"
#include "train/base.h"
#include "train/curve.h"
#include "train/data.h"
#include "train/loss.h"
#include "train/policy.h"
#include "train/teacher.h"
#include "train/train.h"
#include "weft/train.h"

/* Where the run stands between its first and last step, beside the weights. */
typedef struct weft__train_steering {
    int64_t best_step; /* -1: none was measured */
    double best_heldout;
    int64_t n_not_finite;
    int32_t n_worse;  /* measurements in a row that were no better */
    int32_t ended;    /* what it was to stop on came */
    int32_t unjudged; /* the last step was made, and what follows it was given up */
    int32_t reserved;
} weft__train_steering;

/* Records whose answers are asked for. */
typedef struct weft__train_asked {
    weft__dataset *d; /* NULL: none */
    uint8_t *right;   /* [texts] as it was asked last */
    uint8_t *counts;  /* [texts] */
    int64_t n;        /* that count */
} weft__train_asked;

/* What a checkpoint keeps for the job, beside the trainer's own. */
typedef struct weft__train_job_state {
    uint64_t magic; /* WEFT__TRAIN_JOB_MAGIC */
    uint64_t base;  /* weft__train_base_hash */
    uint64_t data;  /* weft__dataset_hash */
    uint64_t plan;  /* a checksum of the parameters that decide the result and that the trainer does not check */
    weft__dataset_cursor position;
    int64_t n_rows;
    double seconds;
    weft__train_steering steering; /* absent in checkpoints of earlier versions: none was asked for then */
} weft__train_job_state;

#define WEFT__TRAIN_JOB_MAGIC 0x33424f4a54464557u      /* "WEFTJOB3" */
#define WEFT__TRAIN_JOB_MAGIC_ENDS 0x32424f4a54464557u /* "WEFTJOB2": `base` saw the tensors' ends alone */

/* Zero-initialise; close in any case. */
typedef struct weft__train_job {
    const weft_train_params *p; /* &own */
    weft_train_params own;
    weft__adapt *start; /* the adapter it begins with, or NULL */
    uint64_t start_id[2];
    char *targets; /* of it */
    weft__train_asked answers, keep;
    weft__train_steering steering;
    float scale; /* that the result has */
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
    weft__train_teacher *teacher; /* of distillation, else NULL */
    weft__train_policy *policy;   /* of losses that sample answers, else NULL */
    float *weight;                /* [batch] of rows, where the loss gives them its own */
    char *checkpoint;             /* paths in the folder */
    char *result;
    int made_folder; /* by this job */
    int64_t n_steps, n_rows;
    double seconds;   /* of all steps so far */
    uint64_t peak_ns; /* when the multipliers' limit was last measured; 0: not yet */
    int64_t epoch_rows;
} weft__train_job;

weft_status weft__train_job_open(weft__train_job *j, const weft_train_params *p, weft_error *err);
/* What weft_train_show needs of it: the data as texts. */
weft_status weft__train_job_open_texts(weft__train_job *j, const weft_train_params *p, weft_error *err);
void weft__train_job_close(weft__train_job *j);
/* ---- job_data.c: what is read ---- */

/* Opens the data, the neighbours among them, what is held out and what is asked for; and what follows from them. */
weft_status weft__train_job_read(weft__train_job *j, weft_error *err);
/* The first files as weft__train_job_read has them, for a look. */
weft_status weft__train_job_read_data(weft__train_job *j, weft_error *err);

/* ---- job_steer.c: what happens between steps, and after the last ---- */

/* The adapter to begin with: what it has where the parameters do not say. */
weft_status weft__train_job_open_start(weft__train_job *j, weft_error *err);
/* The trainer takes it; and what `keep` has of answers is asked for the first time. */
weft_status weft__train_job_start(weft__train_job *j, weft_error *err);
/* 1 when something that happens every n steps is due after this one, or at the end. */
int weft__train_job_due(const weft__train_job *j, int64_t n);
/* No step follows. */
int weft__train_job_over(const weft__train_job *j);
/* Measures what is due after the last step (before the first: all), into e, and decides whether the run ends.
 * WEFT_CANCELLED: it was given up, and is to be done before the next step. */
weft_status weft__train_job_judge(weft__train_job *j, weft_train_event *e, weft_error *err);
/* What the model goes on with now; *stop: the caller wants no more. */
weft_status weft__train_job_sample(weft__train_job *j, int *stop, weft_error *err);
/* The weights and the scale that the result has. */
weft_status weft__train_job_choose(weft__train_job *j, weft_error *err);
/* job.c: the mean over held-out data, into e. */
weft_status weft__train_job_heldout(weft__train_job *j, weft_train_event *e, weft_error *err);
weft_train_event weft__train_job_event(const weft__train_job *j, int kind);
int weft__train_job_tell(const weft__train_job *j, const weft_train_event *e);
void weft__train_asked_free(weft__train_asked *a);

/* job_loss.c: WEFT_ARGUMENT: a loss that is not known, or that lacks what it needs. */
weft_status weft__train_job_check_loss(const weft_train_params *p, weft_error *err);
/* Are the data pairs of answers? */
int weft__train_job_pairs(const weft_train_params *p);
/* Are the data texts to tell apart? */
int weft__train_job_contrasts(const weft_train_params *p);
/* Do the records say rewards? */
int weft__train_job_rewards(const weft_train_params *p);
/* j->objective, and what batches need. */
weft_status weft__train_job_open_loss(weft__train_job *j, weft_error *err);
/* Does the loss sample answers? */
int weft__train_job_samples(const weft_train_params *p);
/* j->policy, where it does. */
weft_status weft__train_job_open_policy(weft__train_job *j, weft_error *err);
/* The batch with the weights, or the distributions, that the loss gives its rows. Fails as the teacher does. */
weft_status weft__train_job_weigh(weft__train_job *j, weft__train_batch *b, weft_error *err);
/* "Preference loss": what the curve shows. */
const char *weft__train_job_title(const weft_train_params *p);
/* A checksum for weft__train_job_state. */
uint64_t weft__train_job_plan(const weft__train_job *j);

#endif
