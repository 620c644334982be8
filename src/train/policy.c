// SPDX-License-Identifier: Apache-2.0
/* policy.c: see policy.h. */
#include "train/policy.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "train/loss.h"

/* A record's question, and the end of its reference answer. */
typedef struct policy_question {
    int32_t first, n_prompt; /* rows of the batch, and tokens */
    int32_t end;             /* the token that ends answers, or -1 */
    int32_t first_answer, n_answers;
    weft__strbuf prompt, reference;
} policy_question;

struct weft__train_policy {
    weft__train_policy_options o;
    const weft__tok *tok;
    weft__train_rollout *rollout;
    weft__train_verifier *verifier;
    weft__strbuf path;
    policy_question *questions;
    int32_t n_questions;
    weft__train_answer *answers; /* [n_prompts * group] */
    double *reward, *advantage;
    int32_t *ids; /* [n_prompts * group, answer_tokens] */
    float *logp;
    /* [max_rows] the batch that is made */
    int32_t *token, *segment, *target;
    float *weight, *row_advantage, *old_logp;
    weft__train_batch batch;
    int32_t n_segments;
};

static weft_status policy_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for answers");
}

static weft_status make_answers_room(weft__train_policy *p, weft_error *err)
{
    const size_t n = (size_t)p->o.n_prompts, all = n * (size_t)p->o.group, rows = (size_t)p->o.max_rows,
                 tokens = all * (size_t)p->o.answer_tokens;
    p->questions = weft__alloc_zero(n, sizeof *p->questions);
    p->answers = weft__alloc_zero(all, sizeof *p->answers);
    p->reward = weft__alloc_array(all, sizeof *p->reward);
    p->advantage = weft__alloc_array(all, sizeof *p->advantage);
    p->ids = weft__alloc_array(tokens, sizeof *p->ids);
    p->logp = weft__alloc_array(tokens, sizeof *p->logp);
    p->token = weft__alloc_array(rows, sizeof *p->token);
    p->segment = weft__alloc_array(rows, sizeof *p->segment);
    p->target = weft__alloc_array(rows, sizeof *p->target);
    p->weight = weft__alloc_array(rows, sizeof *p->weight);
    p->row_advantage = weft__alloc_array(rows, sizeof *p->row_advantage);
    p->old_logp = weft__alloc_array(rows, sizeof *p->old_logp);
    weft__strbuf_printf(&p->path, "%s/answers.gguf", p->o.folder);
    const void *const there[] = {p->questions,     p->answers,  p->reward,   p->advantage, p->ids,
                                 p->logp,          p->token,    p->segment,  p->target,    p->weight,
                                 p->row_advantage, p->old_logp, p->path.data};
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        if (!there[i]) return policy_no_memory(err);
    return p->path.failed ? policy_no_memory(err) : WEFT_OK;
}

weft_status weft__train_policy_open(const weft__tok *tok, const weft__train_policy_options *o, weft__train_policy **out,
                                    weft_error *err)
{
    weft__train_policy *p = weft__alloc_zero(1, sizeof *p);
    *out = p;
    if (!p) return policy_no_memory(err);
    p->o = *o;
    p->tok = tok;
    weft_status st = make_answers_room(p, err);
    if (!st) st = weft__train_verifier_open(o->rule, o->command, &p->verifier, err);
    if (!st) st = weft__train_rollout_open(o->base, o->n_ctx, o->n_threads, o->stop, o->arg, &p->rollout, err);
    if (st) weft__train_policy_close(out);
    return st;
}

static void drop_questions(weft__train_policy *p)
{
    for (int32_t i = 0; i < p->n_questions; i++) {
        weft__strbuf_free(&p->questions[i].prompt);
        weft__strbuf_free(&p->questions[i].reference);
    }
    p->n_questions = 0;
}

void weft__train_policy_close(weft__train_policy **pp)
{
    weft__train_policy *p = pp ? *pp : NULL;
    if (!p) return;
    drop_questions(p);
    weft__train_rollout_close(&p->rollout);
    weft__train_verifier_close(&p->verifier);
    if (p->path.data) unlink(p->path.data);
    weft__strbuf_free(&p->path);
    void *const all[] = {p->questions, p->answers, p->reward, p->advantage,     p->ids,    p->logp,
                         p->token,     p->segment, p->target, p->row_advantage, p->weight, p->old_logp};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) weft__free(all[i]);
    weft__free(p);
    *pp = NULL;
}

/* ---- questions ---- */

static weft_status decoded(const weft__train_policy *p, const int32_t *ids, size_t n, unsigned flags, weft__strbuf *out,
                           weft_error *err)
{
    out->len = 0;
    weft_status st = weft__tok_decode(p->tok, ids, n, flags, out, err);
    weft__strbuf_puts(out, ""); /* it has data */
    return st ? st : out->failed ? policy_no_memory(err) : WEFT_OK;
}

/* Rows [first, last) of the batch: what stands before the answer that is learned last, and that answer. */
static weft_status take_question(weft__train_policy *p, const weft__train_batch *b, int32_t first, int32_t last,
                                 weft_error *err)
{
    int32_t end = last, begin;
    while (end > first && b->target[end - 1] < 0) end--;
    for (begin = end; begin > first && b->target[begin - 1] >= 0;) begin--;
    const int32_t n_prompt = begin - first + 1;
    if (begin == end || n_prompt >= p->o.n_ctx) return WEFT_OK; /* no room for an answer */
    policy_question *q = &p->questions[p->n_questions++];
    *q = (policy_question){.first = first, .n_prompt = n_prompt, .end = b->target[end - 1]};
    if (!weft__tok_is_end(p->tok, q->end)) q->end = -1;
    weft_status st = decoded(p, b->token + first, (size_t)n_prompt, WEFT__TOK_DECODE_SPECIAL, &q->prompt, err);
    return st ? st : decoded(p, b->target + begin, (size_t)(end - begin), 0, &q->reference, err);
}

static weft_status take_questions(weft__train_policy *p, const weft__train_batch *b, weft_error *err)
{
    weft_status st = WEFT_OK;
    drop_questions(p);
    for (int32_t first = 0, last; !st && first < b->n_rows && p->n_questions < p->o.n_prompts; first = last) {
        for (last = first; last < b->n_rows && b->segment[last] == b->segment[first];) last++;
        st = take_question(p, b, first, last, err);
    }
    return st;
}

/* ---- answers ---- */

/* The engine answers with the adapter as it is now. The file stays until the next: engines read when they must. */
static weft_status show_adapter(weft__train_policy *p, weft__trainer *t, weft_error *err)
{
    weft_status st = weft__trainer_write_adapter(t, p->path.data, "answers", err);
    return st ? st : weft__train_rollout_adapter(p->rollout, p->path.data, err);
}

static weft_status sample(weft__train_policy *p, const weft__train_batch *b, int32_t per, int64_t step, weft_error *err)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_questions; i++) {
        policy_question *q = &p->questions[i];
        const int32_t room = p->o.n_ctx - q->n_prompt;
        q->first_answer = n;
        q->n_answers = per;
        for (int32_t k = 0; k < per; k++, n++) {
            const uint64_t drawn[] = {p->o.seed, (uint64_t)step, (uint64_t)n};
            p->answers[n] = (weft__train_answer){.prompt = b->token + q->first,
                                                 .n_prompt = q->n_prompt,
                                                 .most = room < p->o.answer_tokens ? room : p->o.answer_tokens,
                                                 .greedy = per == 1,
                                                 .seed = weft__hash(drawn, sizeof drawn),
                                                 .ids = p->ids + (int64_t)n * p->o.answer_tokens,
                                                 .logp = p->logp + (int64_t)n * p->o.answer_tokens};
        }
    }
    return weft__train_rollout_run(p->rollout, p->answers, n, err);
}

static weft_status judge(weft__train_policy *p, weft__train_policy_sums *sums, weft_error *err)
{
    weft__strbuf text = {0};
    weft_status st = WEFT_OK;
    for (int32_t i = 0; !st && i < p->n_questions; i++) {
        const policy_question *q = &p->questions[i];
        for (int32_t n = q->first_answer; !st && n < q->first_answer + q->n_answers; n++) {
            const weft__train_answer *a = &p->answers[n];
            if ((st = decoded(p, a->ids, (size_t)a->n, 0, &text, err))) break;
            st = weft__train_verify(p->verifier, q->prompt.data, q->prompt.len, text.data, text.len, q->reference.data,
                                    q->reference.len, &p->reward[n], err);
            sums->reward += st ? 0 : p->reward[n];
            sums->n_answers++;
            sums->n_endless += !a->ended;
        }
    }
    weft__strbuf_free(&text);
    return st;
}

/* ---- batches ---- */

static weft_status flush(weft__train_policy *p, weft__trainer *t, const weft__train_objective *o,
                         weft__train_policy_sums *sums, weft_error *err)
{
    weft__train_loss l;
    p->batch.token = p->token;
    p->batch.segment = p->segment;
    p->batch.target = p->target;
    p->batch.weight = p->weight;
    p->batch.advantage = p->row_advantage;
    p->batch.old_logp = p->old_logp;
    weft_status st = p->batch.n_rows ? weft__trainer_learn(t, o, &p->batch, &l, err) : WEFT_OK;
    if (!st && p->batch.n_rows) {
        sums->loss.loss += l.loss;
        sums->loss.weight += l.weight;
        sums->loss.anchor += l.anchor;
        sums->loss.n_rows += l.n_rows;
        sums->loss.n_targets += l.n_targets;
        sums->loss.flops += l.flops;
        sums->apart += l.apart;
        sums->n_tokens += (double)l.n_apart;
    }
    p->batch = (weft__train_batch){0};
    p->n_segments = 0;
    return st;
}

static void put_row(weft__train_policy *p, int32_t token, int32_t target, float weight, double advantage, float old)
{
    const int32_t r = p->batch.n_rows++;
    p->token[r] = token;
    p->segment[r] = p->n_segments;
    p->target[r] = target;
    p->weight[r] = weight;
    p->row_advantage[r] = (float)advantage;
    p->old_logp[r] = old;
}

/* Question and answer as a segment; the token that ends it is learned, too. Nothing of an answer without tokens. */
static void put_answer(weft__train_policy *p, const policy_question *q, const weft__train_answer *a, double advantage)
{
    const int32_t n = a->n + (a->ended && q->end >= 0);
    const float weight = p->o.by_length ? 1 / (float)n : 1;
    for (int32_t i = 0; i + 1 < q->n_prompt; i++) put_row(p, a->prompt[i], -1, 0, 0, NAN);
    for (int32_t i = 0; i < n; i++)
        put_row(p, i ? a->ids[i - 1] : a->prompt[q->n_prompt - 1], i < a->n ? a->ids[i] : q->end, weight, advantage,
                i < a->n ? a->logp[i] : NAN);
    p->n_segments++;
}

/* What the step's sum is divided by, of one answer: learned or not, all count. */
static double share_of_answer(const weft__train_policy *p)
{
    return p->o.by_length ? 1 : (double)p->o.answer_tokens;
}

static weft_status learn(weft__train_policy *p, weft__trainer *t, const weft__train_objective *o,
                         weft__train_policy_sums *sums, weft_error *err)
{
    const int all = o->beta > 0 || o->anchor > 0; /* what has no advantage is held to the base */
    double unlearned = 0;
    const policy_question *last_q = NULL;
    const weft__train_answer *last_a = NULL;
    weft_status st = WEFT_OK;
    for (int32_t i = 0; !st && i < p->n_questions; i++) {
        const policy_question *q = &p->questions[i];
        for (int32_t n = q->first_answer; !st && n < q->first_answer + q->n_answers; n++) {
            const weft__train_answer *a = &p->answers[n];
            const int32_t tokens = a->n + (a->ended && q->end >= 0), rows = q->n_prompt - 1 + tokens;
            if (tokens) last_q = q, last_a = a;
            if (!tokens || (!all && p->advantage[n] == 0)) {
                unlearned += share_of_answer(p);
                continue;
            }
            if (p->batch.n_rows + rows > p->o.max_rows) st = flush(p, t, o, sums, err);
            if (st) break;
            put_answer(p, q, a, p->advantage[n]);
            p->batch.count += share_of_answer(p);
        }
    }
    /* A step in which nothing is better than anything else is one of no gradient, so that the run goes on. */
    if (!st && !p->batch.n_rows && last_a) put_answer(p, last_q, last_a, 0);
    p->batch.count += unlearned;
    return st ? st : flush(p, t, o, sums, err);
}

/* ---- steps ---- */

static weft_status answer_all(weft__train_policy *p, weft__trainer *t, const weft__train_batch *b, int32_t per,
                              weft__train_policy_sums *sums, weft_error *err)
{
    weft_status st = take_questions(p, b, err);
    if (!st && !p->n_questions)
        st =
            weft_fail(err, WEFT_ARGUMENT, "of every record the prompt fills the context: there is no room for answers");
    if (!st) st = show_adapter(p, t, err);
    if (!st) st = sample(p, b, per, weft__trainer_steps(t), err);
    return st ? st : judge(p, sums, err);
}

weft_status weft__train_policy_add(weft__train_policy *p, weft__trainer *t, const weft__train_objective *o,
                                   const weft__train_batch *batch, weft__train_policy_sums *sums, weft_error *err)
{
    weft_status st = answer_all(p, t, batch, p->o.group, sums, err);
    for (int32_t i = 0; !st && i < p->n_questions; i++) {
        const policy_question *q = &p->questions[i];
        sums->n_groups++;
        sums->n_same += !weft__loss_advantages(p->reward + q->first_answer, q->n_answers, p->o.by_length,
                                               p->advantage + q->first_answer);
    }
    return st ? st : learn(p, t, o, sums, err);
}

weft_status weft__train_policy_measure(weft__train_policy *p, weft__trainer *t, const weft__train_batch *batch,
                                       weft__train_policy_sums *sums, weft_error *err)
{
    return answer_all(p, t, batch, 1, sums, err);
}
