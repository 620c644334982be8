// SPDX-License-Identifier: Apache-2.0
/* job.c: weft_train (weft/train.h): the steps, what is told about them, and the files that they leave. */
#include "train/job.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/params.h"

#define PEAK_EVERY_NS 5000000000u

enum { PEAK_MS = 20 };
enum { BAD_MOST = 10 }; /* batches of a step, or steps in a row, that are not finite before training is given up */

/* What was added up for one step. */
typedef struct job_sums {
    double loss, weight, better, chosen, rejected, anchor, n_pairs, reward, n_answers, apart, n_apart, n_groups, n_same,
        n_endless, flops, seconds;
    int64_t n_rows;
    int n_added;
} job_sums;

/* ---- a step ---- */

static void add_sums(job_sums *s, const weft__train_batch *b, const weft__train_loss *l)
{
    s->loss += l->loss;
    s->weight += l->weight;
    s->better += (double)l->n_better;
    s->chosen += l->chosen;
    s->rejected += l->rejected;
    s->anchor += l->anchor;
    s->n_pairs += (double)l->n_pairs;
    s->flops += l->flops;
    s->n_rows += b->n_rows;
    s->n_added++;
}

static void add_judged(job_sums *s, const weft__train_policy_sums *l)
{
    s->reward += l->reward;
    s->n_answers += l->n_answers;
    s->apart += l->apart;
    s->n_apart += l->n_tokens;
    s->n_groups += (double)l->n_groups;
    s->n_same += (double)l->n_same;
    s->n_endless += (double)l->n_endless;
}

/* The batch holds questions: a step learns from answers to them. */
static weft_status add_answers(weft__train_job *j, const weft__train_batch *b, job_sums *s, weft_error *err)
{
    weft__train_policy_sums l = {0};
    weft_status st = weft__train_policy_add(j->policy, j->trainer, &j->objective, b, &l, err);
    if (st) return st;
    const weft__train_batch learned = {.n_rows = (int32_t)l.loss.n_rows};
    add_sums(s, &learned, &l.loss);
    add_judged(s, &l);
    return WEFT_OK;
}

static weft_status measure_answers(weft__train_job *j, const weft__train_batch *b, job_sums *s, weft_error *err)
{
    weft__train_policy_sums l = {0};
    weft_status st = weft__train_policy_measure(j->policy, j->trainer, b, &l, err);
    if (st) return st;
    s->n_rows += b->n_rows;
    add_judged(s, &l);
    return WEFT_OK;
}

static weft_status add_batch(weft__train_job *j, const weft__train_batch *b, job_sums *s, weft_error *err)
{
    weft__train_batch weighed = *b;
    weft__train_loss l;
    if (j->policy) return add_answers(j, b, s, err);
    weft_status st = weft__train_job_weigh(j, &weighed, err);
    if (!st) st = weft__trainer_learn(j->trainer, &j->objective, &weighed, &l, err);
    if (!st) add_sums(s, b, &l);
    return st;
}

/* A batch that is not finite is no secret. */
static void left_out(weft__train_job *j, const weft_error *why)
{
    j->steering.n_not_finite++;
    weft__log(WEFT__LOG_WARN, "a batch behind step %lld is left out: %s", (long long)weft__trainer_steps(j->trainer),
              why ? why->message : "it is not finite");
}

/* Adds batches until there are enough for a step. One whose loss is not finite is left out, unless there are too many;
 * with it goes what was added before it, since the trainer dropped that too. */
static weft_status add_batches(weft__train_job *j, job_sums *s, weft_error *err)
{
    int bad = 0;
    while (s->n_added < j->p->accumulate) {
        weft__train_batch b;
        weft_status st = weft__dataset_next(j->data, &b, err);
        if (!st) st = add_batch(j, &b, s, err);
        if (st == WEFT_LIMIT && ++bad < BAD_MOST) {
            left_out(j, err);
            *s = (job_sums){0};
        } else if (st) return st;
    }
    return WEFT_OK;
}

/* One step that counts: one whose gradients are finite. One that is given up (WEFT_CANCELLED) was not begun. */
static weft_status make_step(weft__train_job *j, job_sums *s, weft__train_step *step, weft_error *err)
{
    const weft__dataset_cursor begun = weft__dataset_position(j->data);
    const int64_t n_rows = j->n_rows;
    const double seconds = j->seconds;
    for (int bad = 0;;) {
        uint64_t start = weft__clock_ns();
        *s = (job_sums){0};
        weft_status st = add_batches(j, s, err);
        if (!st) st = weft__trainer_step(j->trainer, step, err);
        if (st == WEFT_CANCELLED) {
            weft_error why;
            j->n_rows = n_rows;
            j->seconds = seconds;
            return weft__dataset_seek(j->data, begun, &why) ? weft_fail(err, (weft_status)why.status, "%s", why.message)
                                                            : st;
        }
        s->seconds = (double)(weft__clock_ns() - start) / 1e9;
        j->seconds += s->seconds;
        j->n_rows += s->n_rows;
        if (st != WEFT_LIMIT || ++bad == BAD_MOST) return st;
        left_out(j, err);
    }
}

/* ---- held-out data ---- */

static weft_status measure_batch(weft__train_job *j, const weft__train_batch *b, job_sums *s, weft_error *err)
{
    weft__train_batch weighed = *b;
    weft__train_loss l;
    if (j->policy) return measure_answers(j, b, s, err);
    weft_status st = weft__train_job_weigh(j, &weighed, err);
    if (!st) st = weft__trainer_measure(j->trainer, &j->objective, &weighed, &l, err);
    if (!st) add_sums(s, b, &l);
    return st;
}

weft_status weft__train_job_heldout(weft__train_job *j, weft_train_event *e, weft_error *err)
{
    job_sums s = {0};
    int64_t most = j->p->heldout_tokens ? j->p->heldout_tokens : INT64_MAX;
    weft_status st = weft__dataset_seek(j->heldout, (weft__dataset_cursor){0, 0}, err);
    while (!st && weft__dataset_position(j->heldout).epoch == 0 && s.n_rows < most) {
        weft__train_batch b;
        st = weft__dataset_next(j->heldout, &b, err);
        if (!st) st = measure_batch(j, &b, &s, err);
    }
    if (!st && s.n_answers > 0) e->heldout_reward = s.reward / s.n_answers;
    if (st || !(s.weight > 0)) return st;
    e->heldout = s.loss / s.weight;
    if (s.n_pairs > 0) e->heldout_better = s.better / s.n_pairs;
    return WEFT_OK;
}

/* ---- files ---- */

/* A picture that cannot be drawn ends no training. */
static void draw(weft__train_job *j)
{
    weft_error why = {0};
    if (weft__curve_draw(&j->curve, &why)) weft__log(WEFT__LOG_WARN, "the loss curve is not drawn: %s", why.message);
}

static weft_status save(weft__train_job *j, weft_error *err)
{
    weft__train_job_state s = {.magic = WEFT__TRAIN_JOB_MAGIC,
                               .base = j->base_hash,
                               .data = weft__dataset_hash(j->data),
                               .plan = weft__train_job_plan(j),
                               .position = weft__dataset_position(j->data),
                               .n_rows = j->n_rows,
                               .seconds = j->seconds,
                               .steering = j->steering};
    weft_status st = weft__trainer_save(j->trainer, j->checkpoint, &s, sizeof s, err);
    if (!st) draw(j);
    return st;
}

static weft_status write_result(weft__train_job *j, weft_error *err)
{
    if (!j->p->lora_rank) return weft__trainer_write_model(j->trainer, weft__train_base_meta(&j->base), j->result, err);
    return weft__trainer_write_adapter(j->trainer, j->result, j->p->name ? j->p->name : "adapter", err);
}

/* ---- telling ---- */

weft_train_event weft__train_job_event(const weft__train_job *j, int kind)
{
    weft__trainer_info info;
    weft__dataset_totals c;
    weft__trainer_describe(j->trainer, &info);
    weft__dataset_counts(j->data, &c);
    int64_t step = weft__trainer_steps(j->trainer);
    return (weft_train_event){.size = sizeof(weft_train_event),
                              .kind = kind,
                              .step = step,
                              .n_steps = j->n_steps,
                              .n_rows = j->n_rows,
                              .loss = NAN,
                              .heldout = NAN,
                              .better = NAN,
                              .chosen = NAN,
                              .rejected = NAN,
                              .anchor = NAN,
                              .reward = NAN,
                              .heldout_reward = NAN,
                              .same = NAN,
                              .endless = NAN,
                              .apart = NAN,
                              .heldout_better = NAN,
                              .lr = NAN,
                              .grad_norm = NAN,
                              .rows_per_s = NAN,
                              .seconds = j->seconds,
                              .seconds_left = step > 0 ? j->seconds / (double)step * (double)(j->n_steps - step) : NAN,
                              .gflops = NAN,
                              .peak_gflops = NAN,
                              .n_params = info.n_params,
                              .n_frozen = info.n_frozen,
                              .n_bytes = info.n_bytes,
                              .epoch_rows = j->epoch_rows,
                              .n_segments = c.n_segments,
                              .n_cut = c.n_cut,
                              .n_dropped = c.n_dropped,
                              .n_filtered = c.n_filtered,
                              .n_ctx = j->n_ctx,
                              .batch = j->batch,
                              .epochs = j->p->n_steps ? NAN : j->epochs,
                              .n_not_finite = j->steering.n_not_finite,
                              .n_empty = c.n_empty,
                              .n_answers = j->answers.n,
                              .answers_right = -1,
                              .n_keep = j->keep.n,
                              .keep_right = -1,
                              .n_keep_lost = j->keep.d ? (int64_t)weft__dataset_n_texts(j->keep.d) - j->keep.n : 0,
                              .best_step = j->steering.best_step,
                              .scale = j->p->lora_rank ? (double)j->scale : NAN};
}

int weft__train_job_tell(const weft__train_job *j, const weft_train_event *e)
{
    return j->p->report ? j->p->report(j->p->arg, e) : 0;
}

static weft_status record(weft__train_job *j, const weft_train_event *e, weft_error *err)
{
    const weft__curve_point p = {.step = e->step,
                                 .tokens = e->n_rows,
                                 .loss = e->loss,
                                 .heldout = e->heldout,
                                 .better = e->better,
                                 .chosen = e->chosen,
                                 .rejected = e->rejected,
                                 .anchor = e->anchor,
                                 .reward = e->reward,
                                 .heldout_reward = e->heldout_reward,
                                 .apart = e->apart,
                                 .heldout_better = e->heldout_better,
                                 .lr = e->lr,
                                 .grad_norm = e->grad_norm,
                                 .seconds = e->seconds,
                                 .answers = e->answers_right < 0 ? NAN : (double)e->answers_right,
                                 .keep = e->keep_right < 0 ? NAN : (double)e->keep_right};
    return weft__curve_add(&j->curve, &p, err);
}

/* ---- the run ---- */

static weft_status save_and_tell(weft__train_job *j, weft_error *err)
{
    weft_status st = save(j, err);
    if (st) return st;
    weft_train_event e = weft__train_job_event(j, WEFT_TRAIN_SAVED);
    weft__train_job_tell(j, &e);
    return WEFT_OK;
}

/* What comes before the first step of a run: what its numbers are without it; or behind the last one that was made,
 * where that was given up. */
static weft_status measure_first(weft__train_job *j, int *stop, weft_error *err)
{
    const int at_start = weft__trainer_steps(j->trainer) == 0, asks = j->heldout || j->answers.d || j->keep.d;
    weft_train_event e = weft__train_job_event(j, WEFT_TRAIN_MEASURED);
    if (at_start ? !asks : !j->steering.unjudged) return WEFT_OK;
    weft_status st = weft__train_job_judge(j, &e, err);
    if (st == WEFT_CANCELLED) {
        *stop = 1;
        return WEFT_OK;
    }
    if (!st) st = record(j, &e, err);
    if (!st) *stop = weft__train_job_tell(j, &e);
    return st;
}

static weft_status job_begin(weft__train_job *j, int *stop, weft_error *err)
{
    weft_train_event e = weft__train_job_event(j, WEFT_TRAIN_PLANNED);
    weft_status st = WEFT_OK;
    *stop = weft__train_job_tell(j, &e);
    if (!*stop) st = measure_first(j, stop, err);
    if (!st && !*stop && weft__trainer_steps(j->trainer) == 0) st = weft__train_job_sample(j, stop, err);
    return !st && (*stop || j->steering.ended) ? save_and_tell(j, err) : st;
}

/* What the multipliers reach at this moment, before the first step, the last one, and whenever PEAK_EVERY went by:
 * others compute on the machine too, so what was measured at another time is no limit for a step. NAN: not now. */
static double measure_peak(weft__train_job *j)
{
    uint64_t now = weft__clock_ns();
    if (j->peak_ns && now - j->peak_ns < PEAK_EVERY_NS && weft__trainer_steps(j->trainer) + 1 < j->n_steps) return NAN;
    j->peak_ns = now;
    return weft__trainer_peak(j->trainer, PEAK_MS);
}

/* A step and all that goes with it; *stop: the caller wants no more. */
static weft_status job_go_on(weft__train_job *j, int *stop, weft_error *err)
{
    job_sums s;
    weft__train_step step;
    double peak = measure_peak(j);
    weft_status st = make_step(j, &s, &step, err);
    if ((*stop = st == WEFT_CANCELLED)) return save_and_tell(j, err);
    if (st) return st;
    weft_train_event e = weft__train_job_event(j, WEFT_TRAIN_STEP);
    e.loss = s.loss / s.weight;
    if (s.n_pairs > 0) e.better = s.better / s.n_pairs;
    if (s.n_pairs > 0 && j->objective.kind == WEFT__LOSS_PREFERENCE) {
        e.chosen = s.chosen / s.n_pairs;
        e.rejected = s.rejected / s.n_pairs;
    }
    if (j->objective.anchor > 0) e.anchor = s.anchor / s.weight;
    if (s.n_answers > 0) {
        e.reward = s.reward / s.n_answers;
        e.same = s.n_same / s.n_groups;
        e.endless = s.n_endless / s.n_answers;
    }
    if (s.n_apart > 0) e.apart = s.apart / s.n_apart;
    e.lr = step.lr;
    e.grad_norm = step.grad_norm;
    e.rows_per_s = (double)s.n_rows / s.seconds;
    e.gflops = s.flops / s.seconds / 1e9;
    e.peak_gflops = peak;
    st = weft__train_job_judge(j, &e, err);
    int given_up = st == WEFT_CANCELLED; /* what follows the step; the step is made */
    if ((st && !given_up) || (st = record(j, &e, err))) return st;
    *stop = weft__train_job_tell(j, &e) || given_up;
    if (!*stop) st = weft__train_job_sample(j, stop, err);
    if (st || (!*stop && !weft__train_job_due(j, j->p->save_every))) return st;
    return save_and_tell(j, err);
}

static weft_status job_end(weft__train_job *j, weft_error *err)
{
    weft_status st = weft__train_job_choose(j, err);
    if (!st) st = write_result(j, err);
    if (st) return st;
    weft_train_event e = weft__train_job_event(j, WEFT_TRAIN_ENDED);
    if (!j->p->keep_best) e.best_step = e.step;
    weft__train_job_tell(j, &e);
    return WEFT_OK;
}

weft_status weft_train(const weft_train_params *params, weft_error *err)
{
    weft_train_params p;
    weft__train_job j = {0};
    int stop = 0;
    weft_train_params_default(&p);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_train_params), &p, params, err);
    if (!st) st = weft__train_job_open(&j, &p, err);
    if (!st) st = job_begin(&j, &stop, err);
    while (!st && !stop && !weft__train_job_over(&j)) st = job_go_on(&j, &stop, err);
    if (!st && stop && !weft__train_job_over(&j))
        st = weft_fail(err, WEFT_CANCELLED, "stopped after step %lld of %lld",
                       (long long)weft__trainer_steps(j.trainer), (long long)j.n_steps);
    if (!st) st = job_end(&j, err);
    weft__train_job_close(&j);
    return st;
}
