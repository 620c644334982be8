// SPDX-License-Identifier: Apache-2.0
/* job_loss.c: from a loss's name in weft_train_params to what a trainer minimises and how rows count (job.h). */
#include <math.h>

#include "base/alloc.h"
#include "train/job.h"

static int32_t loss_of(const weft_train_params *p)
{
    return p->loss == WEFT_TRAIN_SFT && p->dpo_beta > 0 ? WEFT_TRAIN_DPO : p->loss;
}

int weft__train_job_pairs(const weft_train_params *p)
{
    const int32_t loss = loss_of(p);
    return loss == WEFT_TRAIN_DPO || loss == WEFT_TRAIN_UNLIKELIHOOD;
}

int weft__train_job_contrasts(const weft_train_params *p)
{
    return p->loss == WEFT_TRAIN_INFONCE;
}

int weft__train_job_rewards(const weft_train_params *p)
{
    return p->loss == WEFT_TRAIN_REWARD || p->loss == WEFT_TRAIN_FILTERED;
}

int weft__train_job_samples(const weft_train_params *p)
{
    return p->loss == WEFT_TRAIN_GRPO || p->loss == WEFT_TRAIN_DR_GRPO;
}

const char *weft__train_job_title(const weft_train_params *p)
{
    switch (loss_of(p)) {
    case WEFT_TRAIN_DPO: return "Preference loss";
    case WEFT_TRAIN_UNLIKELIHOOD: return "Likelihood and unlikelihood (nats per token)";
    case WEFT_TRAIN_DISTILL: return "KL to the teacher (nats per token)";
    case WEFT_TRAIN_INFONCE: return "Contrastive loss (nats per query)";
    case WEFT_TRAIN_GRPO:
    case WEFT_TRAIN_DR_GRPO: return "Policy loss";
    default: return "Loss (nats per token)";
    }
}

static weft_status check_policy(const weft_train_params *p, weft_error *err)
{
    if (!p->base || !p->lora_rank)
        return weft_fail(err, WEFT_ARGUMENT, "answers are sampled with an adapter: it needs a base and a rank");
    if (p->group < 2 || p->group > 1024 || p->prompts < 1 || p->prompts > 4096 || p->answer_tokens < 1 ||
        p->answer_tokens > 65536)
        return weft_fail(err, WEFT_ARGUMENT,
                         "%d prompts with %d answers of %d tokens: of prompts there are 1 to 4096, of answers 2 to "
                         "1024, and of tokens 1 to 65536",
                         p->prompts, p->group, p->answer_tokens);
    if (!p->rule == !p->verifier)
        return weft_fail(err, WEFT_ARGUMENT,
                         "who judges the answers? Give a rule (exact, contains, number, json) or a verifier's command");
    return WEFT_OK;
}

static int is_given(const char *const *files)
{
    return files && files[0];
}

/* Embeddings have no answers, and nothing follows in them. */
static weft_status check_contrast(const weft_train_params *p, weft_error *err)
{
    const struct {
        const char *what;
        int given;
    } others[] = {{"neighbours", is_given(p->neighbors)},
                  {"answers", is_given(p->answers) || is_given(p->keep)},
                  {"an anchor", p->anchor != 0},
                  {"learned prompts", p->learn_prompts}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].given)
            return weft_fail(err, WEFT_ARGUMENT, "%s: embeddings are learned, which have none", others[i].what);
    return WEFT_OK;
}

weft_status weft__train_job_check_loss(const weft_train_params *p, weft_error *err)
{
    const int32_t loss = loss_of(p);
    if (loss < WEFT_TRAIN_SFT || loss > WEFT_TRAIN_INFONCE)
        return weft_fail(err, WEFT_ARGUMENT, "there is no loss of number %d", loss);
    if (p->dpo_beta < 0 || !isfinite(p->dpo_beta))
        return weft_fail(err, WEFT_ARGUMENT, "beta is %g; preference training wants one above 0", (double)p->dpo_beta);
    if (loss == WEFT_TRAIN_DPO && (!p->base || !p->lora_rank))
        return weft_fail(err, WEFT_ARGUMENT, "preference training makes an adapter: it needs a base and a rank");
    weft_status st = WEFT_OK;
    if (weft__train_job_samples(p)) st = check_policy(p, err);
    if (weft__train_job_contrasts(p)) st = check_contrast(p, err);
    if (st) return st;
    if (loss == WEFT_TRAIN_DISTILL && (!p->base || !p->teacher || p->teacher_top < 1 || p->teacher_top > 4096))
        return weft_fail(err, WEFT_ARGUMENT,
                         "distillation needs a base, a teacher, and 1 to 4096 of the teacher's likeliest tokens");
    if (!(p->beta >= 0 && p->beta <= 1e6f) || !isfinite(p->reward_min))
        return weft_fail(err, WEFT_ARGUMENT, "beta is %g and the least reward %g: numbers, beta not below 0",
                         (double)p->beta, (double)p->reward_min);
    if (p->anchor > 0 && (!p->base || !p->lora_rank))
        return weft_fail(err, WEFT_ARGUMENT, "an anchor holds an adapter to its base: it needs a base and a rank");
    if (loss != WEFT_TRAIN_DPO && (p->smoothing != 0 || p->chosen != 0 || p->dpo_beta != 0))
        return weft_fail(err, WEFT_ARGUMENT,
                         "beta, label smoothing and a chosen-likelihood term are for preference training (DPO)");
    return WEFT_OK;
}

weft_status weft__train_job_open_loss(weft__train_job *j, weft_error *err)
{
    const weft_train_params *p = j->p;
    j->objective = (weft__train_objective){.kind = WEFT__LOSS_LIKELIHOOD, .anchor = p->anchor};
    if (loss_of(p) == WEFT_TRAIN_DPO) {
        j->objective.kind = WEFT__LOSS_PREFERENCE;
        j->objective.beta = p->dpo_beta > 0 ? p->dpo_beta : 0.1f;
        j->objective.smoothing = p->smoothing;
        j->objective.chosen = p->chosen;
    }
    if (weft__train_job_samples(p)) {
        j->objective.kind = WEFT__LOSS_POLICY;
        j->objective.beta = p->beta;
        j->objective.clip_low = p->clip_low;
        j->objective.clip_high = p->clip_high;
    }
    if (weft__train_job_contrasts(p)) {
        j->objective.kind = WEFT__LOSS_CONTRAST;
        j->objective.beta = p->beta > 0 ? p->beta : 0.05f;
        if (weft__dataset_n_groups(j->data) < 2 && weft__dataset_n_texts(j->data) < 3)
            return weft_fail(err, WEFT_ARGUMENT, "%s: one query and one text: there is nothing to tell apart",
                             p->data[0]);
    }
    if (loss_of(p) == WEFT_TRAIN_UNLIKELIHOOD) {
        j->weight = weft__alloc_array((size_t)j->batch, sizeof *j->weight);
        if (!j->weight) return weft_fail(err, WEFT_NO_MEMORY, "no memory for training");
    }
    return weft__loss_check(&j->objective, err);
}

weft_status weft__train_job_open_policy(weft__train_job *j, weft_error *err)
{
    const weft_train_params *p = j->p;
    if (p->loss == WEFT_TRAIN_DISTILL)
        return weft__train_teacher_open(p->teacher, p->base, j->n_ctx, j->batch, p->teacher_top, p->n_threads,
                                        &j->teacher, err);
    if (!weft__train_job_samples(p)) return WEFT_OK;
    const weft__train_policy_options o = {.base = p->base,
                                          .folder = p->out,
                                          .rule = p->rule,
                                          .command = p->verifier,
                                          .n_ctx = j->n_ctx,
                                          .max_rows = j->batch,
                                          .n_threads = p->n_threads,
                                          .n_prompts = p->prompts,
                                          .group = p->group,
                                          .answer_tokens = p->answer_tokens,
                                          .by_length = p->loss == WEFT_TRAIN_GRPO,
                                          .seed = p->seed,
                                          .stop = p->stop,
                                          .arg = p->arg};
    return weft__train_policy_open(j->base.tok, &o, &j->policy, err);
}

weft_status weft__train_job_weigh(weft__train_job *j, weft__train_batch *b, weft_error *err)
{
    if (j->teacher) return weft__train_teacher_tell(j->teacher, b, err);
    if (!j->weight) return WEFT_OK;
    for (int32_t i = 0; i < b->n_rows; i++)
        j->weight[i] = (b->segment[i] % 2 ? -1.0f : 1.0f) * (b->weight ? b->weight[i] : 1);
    b->weight = j->weight;
    return WEFT_OK;
}
