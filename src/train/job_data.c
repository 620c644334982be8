// SPDX-License-Identifier: Apache-2.0
/* job_data.c: see job.h: the files of a training as datasets, and what follows from them: rows of a batch, epochs,
 * steps. */
#include <math.h>

#include "base/alloc.h"
#include "train/job.h"

/* What files are read as. */
enum { LEARNED, HELD_OUT, ASKED };
enum { UNKNOWN_BATCH = 65536 }; /* tokens of a batch that holds any record of texts to tell apart */

static const char *why_nothing(const weft__dataset_options *o, const weft__dataset_totals *c)
{
    if (o->pairs && c->n_dropped)
        return c->n_cut ? ": of every pair the prompt is longer than the texts may be, or the two answers are the same "
                          "as far as they fit"
                        : ": of every pair the two answers are the same";
    if (c->n_filtered) return ": no record has a reward of the least that is asked for";
    return c->n_cut ? ": every prompt is longer than the texts may be" : "";
}

/* Tokens of a batch that holds any text, or pair, or record of them, as far as they are known. */
static int64_t smallest_batch(const weft__train_job *j)
{
    weft__dataset_totals c = {0};
    const int64_t least = (int64_t)j->n_ctx * (weft__train_job_pairs(j->p) ? 2 : 1);
    if (j->data) weft__dataset_counts(j->data, &c);
    return c.n_largest > least ? c.n_largest : least;
}

static double reward_beta(const weft_train_params *p)
{
    return p->beta > 0 ? (double)p->beta : 1;
}

static weft_status read_files(weft__train_job *j, const char *const *files, int as, weft__dataset **out,
                              weft_error *err)
{
    const weft_train_params *p = j->p;
    const weft__dataset_options o = {.n_ctx = j->n_ctx,
                                     .max_rows = j->batch,
                                     .in_order = as != LEARNED,
                                     .learn_all = p->learn_prompts && as != ASKED,
                                     .pairs = weft__train_job_pairs(p) && as != ASKED,
                                     .contrasts = weft__train_job_contrasts(p),
                                     .keep_weightless = p->anchor > 0 && as == LEARNED,
                                     .most = weft__train_job_samples(p) && as != ASKED ? p->prompts : 0,
                                     .rewards = weft__train_job_rewards(p) && as != ASKED,
                                     .least = p->loss == WEFT_TRAIN_FILTERED ? (double)p->reward_min : -INFINITY,
                                     .seed = p->seed};
    weft_status st = weft__dataset_create(&j->renderer, &o, out, err);
    weft__dataset_totals c;
    for (size_t i = 0; !st && files[i]; i++) st = weft__dataset_add(*out, files[i], err);
    if (st) return st;
    weft__dataset_counts(*out, &c);
    if (p->loss == WEFT_TRAIN_REWARD && as == HELD_OUT) weft__dataset_weigh(*out, reward_beta(p));
    if (!c.n_segments)
        return weft_fail(err, WEFT_ARGUMENT, "%s: there is nothing to learn in it%s", files[0], why_nothing(&o, &c));
    return WEFT_OK;
}

/* What is asked for must fit, and have an answer. */
static weft_status read_asked(weft__train_job *j, const char *const *files, weft__train_asked *a, weft_error *err)
{
    weft__dataset_totals c;
    if (!files || !files[0]) return WEFT_OK;
    weft_status st = read_files(j, files, ASKED, &a->d, err);
    if (st) return st;
    weft__dataset_counts(a->d, &c);
    if (c.n_cut || c.n_dropped)
        return weft_fail(err, WEFT_ARGUMENT,
                         "%s: %lld records are longer than %d tokens (-c), and %lld have no answer; none can be asked "
                         "for",
                         files[0], (long long)c.n_cut, j->n_ctx, (long long)c.n_dropped);
    const size_t n = weft__dataset_n_texts(a->d);
    a->right = weft__alloc_zero(n, 1);
    a->counts = weft__alloc_zero(n, 1);
    if (!a->right || !a->counts) return weft_fail(err, WEFT_NO_MEMORY, "no memory for answers");
    for (size_t i = 0; i < n; i++) a->counts[i] = 1;
    a->n = (int64_t)n;
    return WEFT_OK;
}

void weft__train_asked_free(weft__train_asked *a)
{
    weft__dataset_destroy(&a->d);
    weft__free(a->counts);
    weft__free(a->right);
}

/* What was not given follows the data. A step of RECORDS records, as far as the largest usual batch holds them, is
 * small enough for a few hundred records to make many steps, and large enough for their gradients to agree; and what is
 * seen so often that FEW_STEPS come together leaves a trace, however few records there are. */
static weft_status follow_data(weft__train_job *j, weft_error *err)
{
    enum { RECORDS = 16, LARGEST = 2048, FEW_STEPS = 200, EPOCHS = 2, EPOCHS_MOST = 12 };
    const weft_train_params *p = j->p;
    weft__dataset_totals c;
    weft_status st = WEFT_OK;
    weft__dataset_counts(j->data, &c);
    j->epochs = p->epochs > 0 ? (double)p->epochs : EPOCHS;
    if (!p->batch) {
        const int64_t n_records = weft__train_job_contrasts(p) ? c.n_documents : c.n_epoch_segments;
        int64_t wanted = weft__train_job_samples(p) ? LARGEST : c.n_epoch_tokens * RECORDS / n_records,
                least = smallest_batch(j);
        j->batch = (int32_t)(wanted > LARGEST ? LARGEST : wanted);
        if (j->batch < least) j->batch = (int32_t)least;
        st = weft__dataset_set_rows(j->data, j->batch, err);
        weft__dataset *const others[] = {j->heldout, j->answers.d, j->keep.d};
        for (size_t i = 0; !st && i < sizeof others / sizeof *others; i++)
            if (others[i]) st = weft__dataset_set_rows(others[i], j->batch, err);
    }
    if (st || p->epochs > 0 || p->n_steps) return st;
    const double of_epoch = ceil((double)c.n_epoch_tokens / ((double)j->batch * p->accumulate));
    j->epochs = fmin(EPOCHS_MOST, fmax(EPOCHS, ceil(FEW_STEPS / of_epoch)));
    return WEFT_OK;
}

/* Batches from the start to the end of `epochs`, of which the last may be a part. */
static weft_status count_steps(weft__train_job *j, weft_error *err)
{
    weft__train_batch b;
    weft__dataset_totals c;
    double whole = floor(j->epochs), part = j->epochs - whole, n = 0, of_last = 0;
    weft_status st = WEFT_OK;
    weft__dataset_counts(j->data, &c);
    j->epoch_rows = c.n_epoch_tokens;
    if (j->p->n_steps) {
        j->n_steps = j->p->n_steps;
        return WEFT_OK;
    }
    while (!st && (double)weft__dataset_position(j->data).epoch < whole + (part > 0)) {
        if ((double)weft__dataset_position(j->data).epoch < whole) n++;
        else of_last++;
        st = weft__dataset_next(j->data, &b, err);
    }
    if (!st) st = weft__dataset_seek(j->data, (weft__dataset_cursor){0, 0}, err);
    j->n_steps = (int64_t)ceil((n + part * of_last) / j->p->accumulate);
    return st;
}

static weft_status read_neighbors(weft__train_job *j, weft_error *err)
{
    const weft_train_params *p = j->p;
    if (!p->neighbors || !p->neighbors[0]) return WEFT_OK;
    weft_status st = weft__dataset_begin_neighbors(j->data, (double)p->neighbor_ratio, err);
    const size_t n = weft__dataset_n_texts(j->data);
    for (size_t i = 0; !st && p->neighbors[i]; i++) st = weft__dataset_add(j->data, p->neighbors[i], err);
    if (!st && weft__dataset_n_texts(j->data) == n)
        st = weft_fail(err, WEFT_ARGUMENT, "%s: there is nothing to learn in it", p->neighbors[0]);
    return st;
}

weft_status weft__train_job_read_data(weft__train_job *j, weft_error *err)
{
    const weft_train_params *p = j->p;
    j->batch = p->batch                       ? p->batch
               : weft__train_job_contrasts(p) ? UNKNOWN_BATCH
                                              : (int32_t)smallest_batch(j); /* until the data are known */
    weft_status st = read_files(j, p->data, LEARNED, &j->data, err);
    if (!st) st = read_neighbors(j, err);
    if (!st && p->loss == WEFT_TRAIN_REWARD) weft__dataset_weigh(j->data, reward_beta(p));
    return st;
}

weft_status weft__train_job_read(weft__train_job *j, weft_error *err)
{
    const weft_train_params *p = j->p;
    weft_status st = weft__train_job_read_data(j, err);
    if (!st && p->heldout && p->heldout[0]) st = read_files(j, p->heldout, HELD_OUT, &j->heldout, err);
    if (!st) st = read_asked(j, p->answers, &j->answers, err);
    if (!st) st = read_asked(j, p->keep, &j->keep, err);
    if (!st) st = follow_data(j, err);
    return st ? st : count_steps(j, err);
}
