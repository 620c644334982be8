// SPDX-License-Identifier: Apache-2.0
/* loss.c: batches: what they must be, their forward pass, what the losses of loss.h make of it, and the way back. */
#include <math.h>
#include <string.h>

#include "train/loss_parts.h"

/* ---- batches ---- */

static weft_status check_top(const weft__trainer *t, const weft__train_top *top, int32_t r, weft_error *err)
{
    double sum = 0;
    for (int32_t i = 0; i < top->n; i++) {
        if (top->token[i] < 0 || top->token[i] >= t->hp.n_vocab || !(top->p[i] >= 0))
            return weft_fail(err, WEFT_ARGUMENT, "row %d: probability %g of token %d", r, (double)top->p[i],
                             top->token[i]);
        sum += (double)top->p[i];
    }
    if (top->n > 0 && !(fabs(sum - 1) < 1e-3 && top->weight >= 0 && top->weight <= 1e6f))
        return weft_fail(err, WEFT_ARGUMENT, "row %d: probabilities that add up to %g, of weight %g", r, sum,
                         (double)top->weight);
    return WEFT_OK;
}

/* What a row counts for; unlikelihood is likelihood's alone. */
static weft_status check_weights(const weft__train_objective *o, const weft__train_batch *b, int32_t r, weft_error *err)
{
    const float least = o->kind == WEFT__LOSS_LIKELIHOOD ? -1e6f : 0;
    if (b->weight && !(b->weight[r] >= least && b->weight[r] <= 1e6f))
        return weft_fail(err, WEFT_ARGUMENT, "row %d: weight %g", r, (double)b->weight[r]);
    if (o->kind == WEFT__LOSS_POLICY && !(fabs((double)b->advantage[r]) <= 1e6))
        return weft_fail(err, WEFT_ARGUMENT, "row %d: advantage %g", r, (double)b->advantage[r]);
    return WEFT_OK;
}

static weft_status check_batch(weft__trainer *t, const weft__train_objective *o, const weft__train_batch *b,
                               weft_error *err)
{
    weft_status st;
    if (b->n_rows < 1 || b->n_rows > t->max_rows)
        return weft_fail(err, WEFT_ARGUMENT, "a batch of %d rows; this trainer takes 1 to %d", b->n_rows, t->max_rows);
    for (int32_t r = 0; r < b->n_rows; r++) {
        int32_t before = r ? b->segment[r - 1] : -1;
        if (b->token[r] < 0 || b->token[r] >= t->hp.n_vocab)
            return weft_fail(err, WEFT_ARGUMENT, "row %d: token %d is not among the %d of the vocabulary", r,
                             b->token[r], t->hp.n_vocab);
        if (b->target[r] < -1 || b->target[r] >= t->hp.n_vocab)
            return weft_fail(err, WEFT_ARGUMENT, "row %d: target %d is not among the %d of the vocabulary", r,
                             b->target[r], t->hp.n_vocab);
        if (b->segment[r] != before + 1 && (r == 0 || b->segment[r] != before))
            return weft_fail(err, WEFT_ARGUMENT, "row %d: segment %d behind %d; segments rise from 0 in steps of 1", r,
                             b->segment[r], before);
        if ((st = check_weights(o, b, r, err)) || (b->top && (st = check_top(t, &b->top[r], r, err)))) return st;
    }
    return WEFT_OK;
}

/* Positions, segments and rows with targets. */
static weft_status accept(weft__trainer *t, const weft__train_objective *o, const weft__train_batch *b, weft_error *err)
{
    weft_status st = check_batch(t, o, b, err);
    if (st) return st;
    t->objective = o;
    t->batch = b;
    t->n_segs = t->n_wanted = 0;
    const int whole = (weft__loss_needs(o) & WEFT__LOSS_NEEDS_TEXTS) != 0; /* each row has a part in its text */
    for (int32_t r = 0; r < b->n_rows; r++) {
        if (r == 0 || b->segment[r] != b->segment[r - 1]) t->begin[t->n_segs++] = r;
        t->pos[r] = r - t->begin[t->n_segs - 1];
        if (t->pos[r] >= t->n_ctx)
            return weft_fail(err, WEFT_ARGUMENT, "segment %d has more than %d rows, the longest text of this trainer",
                             b->segment[r], t->n_ctx);
        if (b->target[r] < 0 && !whole) continue;
        t->weight[t->n_wanted] = b->weight ? b->weight[r] : 1;
        t->wanted[t->n_wanted++] = r;
    }
    t->begin[t->n_segs] = b->n_rows;
    t->flops = 0;
    t->counting = 1;
    t->stopped = 0;
    return WEFT_OK;
}

int weft__train_stopped(weft__trainer *t)
{
    if (!t->stopped) t->stopped = t->o.stop && t->o.stop(t->o.stop_arg);
    return t->stopped;
}

static void body(weft__trainer *t)
{
    weft__train_forward(t, 0, t->n_body);
}

/* Segments from the last; those whose values were overwritten are run again first. */
static void body_back(weft__trainer *t)
{
    for (int32_t g = t->n_segments - 1; g >= 0; g--) {
        const struct weft__train_segment *s = &t->segments[g];
        if (t->o.recompute && g < t->n_segments - 1) {
            t->counting = 0;
            weft__train_forward(t, s->first, s->last);
            t->counting = 1;
        }
        weft__train_backward(t, s->first, s->last);
    }
}

/* ---- what is frozen says first ---- */

/* Memory that only losses with a look at the base need: made by the first of them. */
static weft_status base_room(weft__trainer *t, weft_error *err)
{
    const size_t width = (size_t)weft__train_width(t, t->hidden), vocab = (size_t)weft__train_width(t, t->logits);
    const size_t rows = (size_t)t->max_rows;
    if (!t->base_logp) t->base_logp = weft__train_own(t, rows, sizeof *t->base_logp);
    int ok = t->base_logp != NULL;
    if (ok && t->objective->anchor > 0 && !t->base_hidden) {
        float *logits = weft__train_own(t, (size_t)t->chunk * vocab, sizeof *logits);
        float *exps = weft__train_own(t, (size_t)t->n_threads * vocab, sizeof *exps);
        float *hidden = logits && exps ? weft__train_own(t, rows * width, sizeof *hidden) : NULL;
        t->base_logits = logits;
        t->base_exps = exps;
        t->base_hidden = hidden;
        ok = hidden != NULL;
    }
    return ok ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for what the base says", t->src.label);
}

/* log b of every target; with an anchor, what its head begins with. */
static void ask_base(weft__trainer *t)
{
    weft__train_as_it_began(t, 1);
    body(t);
    weft__train_head(t, WEFT__LOSS_PASS_LOGP);
    weft__train_as_it_began(t, 0);
    if (t->n_wanted) memcpy(t->base_logp, t->logp, (size_t)t->n_wanted * sizeof *t->logp);
    if (t->objective->anchor > 0)
        memcpy(t->base_hidden, t->value[t->hidden],
               (size_t)(t->batch->n_rows * weft__train_width(t, t->hidden)) * sizeof(float));
}

/* ---- sums ---- */

static void drop(weft__trainer *t)
{
    memset(t->grad, 0, (size_t)t->n_floats * sizeof *t->grad);
    weft__train_begin_step(t);
}

static weft_status cancelled(weft__trainer *t, weft_error *err)
{
    drop(t);
    return weft_fail(err, WEFT_CANCELLED, "cancelled; what was added since step %lld is dropped", (long long)t->step);
}

static weft_status not_finite(weft__trainer *t, weft_error *err)
{
    drop(t);
    return weft_fail(err, WEFT_LIMIT,
                     "%s: the loss is not finite; what was added since step %lld is dropped: lower the learning rate",
                     t->src.label, (long long)t->step);
}

/* Sums over the rows with targets, in order. */
static weft__train_loss summed(const weft__trainer *t)
{
    weft__train_loss l = {.n_rows = t->batch->n_rows, .n_targets = t->n_wanted, .flops = t->flops};
    for (int32_t i = 0; i < t->n_wanted; i++) {
        l.loss += t->told[i] + t->anchored[i];
        l.anchor += t->anchored[i];
        /* a row that is only held to the base is one of them, too */
        l.weight += t->weight[i] == 0 && t->objective->anchor > 0 ? 1 : fabs((double)t->weight[i]);
        const float old = t->batch->old_logp ? t->batch->old_logp[t->wanted[i]] : NAN;
        if (isnan(old)) continue;
        l.apart += fabs((double)t->logp[i] - (double)old);
        l.n_apart++;
    }
    if (t->batch->count > 0) l.weight = t->batch->count;
    return l;
}

/* The sums of pair i's answers: t->pair_sums (made large enough by trainer.c). */
static void sum_pairs(weft__trainer *t)
{
    memset(t->pair_sums, 0, (size_t)(t->n_segs / 2) * sizeof *t->pair_sums);
    for (int32_t i = 0; i < t->n_wanted; i++) {
        const int32_t s = t->batch->segment[t->wanted[i]];
        weft__loss_pair *p = &t->pair_sums[s / 2];
        const double w = (double)t->weight[i];
        *(s % 2 ? &p->rejected : &p->chosen) += w * (double)t->logp[i];
        *(s % 2 ? &p->base_rejected : &p->base_chosen) += w * (double)t->base_logp[i];
        if (s % 2 == 0) p->n_chosen += w;
    }
}

/* From the sums to each row's slope, for the way back, and to the pairs' losses. */
static void tell_pairs(weft__trainer *t, weft__train_loss *l)
{
    const weft__train_objective *o = t->objective;
    const weft__loss_kind *kind = weft__loss_kind_of(o->kind);
    sum_pairs(t);
    *l = (weft__train_loss){.n_rows = t->batch->n_rows, .n_targets = t->n_wanted, .n_pairs = t->n_segs / 2};
    for (int32_t i = 0, w = 0; i < (int32_t)l->n_pairs; i++) {
        const weft__loss_pair *p = &t->pair_sums[i];
        const weft__loss_pair_told told = kind->pair(o, p);
        l->loss += told.value;
        l->margin += told.margin;
        l->n_better += told.margin > 0;
        l->chosen += p->chosen;
        l->rejected += p->rejected;
        for (; w < t->n_wanted && t->batch->segment[t->wanted[w]] / 2 == i; w++)
            t->slope[w] =
                t->weight[w] * (float)(t->batch->segment[t->wanted[w]] % 2 ? told.slope_rejected : told.slope_chosen);
    }
    l->weight = t->batch->count > 0 ? t->batch->count : (double)l->n_pairs;
}

/* ---- the way there, and back ---- */

static weft_status check_objective(const weft__trainer *t, const weft__train_objective *o,
                                   const weft__train_batch *batch, weft_error *err)
{
    weft_status st = weft__loss_check(o, err);
    if (st) return st;
    if (t->o.lora_rank == 0 && (weft__loss_needs(o) & WEFT__LOSS_NEEDS_BASE))
        return weft_fail(err, WEFT_STATE,
                         "this loss looks at the frozen base, so it is learned by LoRA only; with preferences and "
                         "anchors, train an adapter");
    if (o->kind == WEFT__LOSS_POLICY && !batch->advantage)
        return weft_fail(err, WEFT_ARGUMENT, "a policy's batch has no advantages");
    return WEFT_OK;
}

static int is_pairs(const weft__train_objective *o)
{
    return (weft__loss_needs(o) & WEFT__LOSS_NEEDS_PAIRS) != 0;
}

/* The same of whole texts. */
static weft_status pass_texts(weft__trainer *t, int back, weft__train_loss *l, weft_error *err)
{
    body(t);
    weft_status st = t->stopped ? WEFT_OK : weft__train_embed(t, back, l, err);
    if (st) return st;
    if (back && isfinite(l->loss)) body_back(t);
    l->flops = t->flops;
    return WEFT_OK;
}

/* The loss of the batch, and with `back` its gradient. t->stopped: neither. */
static weft_status pass(weft__trainer *t, const weft__train_objective *o, const weft__train_batch *batch, int back,
                        weft__train_loss *l, weft_error *err)
{
    weft_status st;
    if ((st = check_objective(t, o, batch, err)) || (st = accept(t, o, batch, err))) return st;
    if (is_pairs(o) && t->n_segs % 2)
        return weft_fail(err, WEFT_ARGUMENT, "%d segments are no pairs of chosen and rejected answers", t->n_segs);
    *l = (weft__train_loss){.n_rows = batch->n_rows};
    if (weft__loss_needs(o) & WEFT__LOSS_NEEDS_TEXTS) return pass_texts(t, back, l, err);
    if (!t->n_wanted && !is_pairs(o)) return WEFT_OK;
    if ((weft__loss_needs(o) & WEFT__LOSS_NEEDS_BASE)) {
        if ((st = base_room(t, err))) return st;
        ask_base(t);
    }
    body(t);
    if (is_pairs(o)) {
        weft__train_head(t, WEFT__LOSS_PASS_LOGP);
        tell_pairs(t, l);
        if (!isfinite(l->loss)) return WEFT_OK;
        if (back || o->anchor > 0) weft__train_head(t, back ? WEFT__LOSS_PASS_BACK_AGAIN : WEFT__LOSS_PASS_VALUE);
        if (o->anchor > 0) {
            l->anchor = summed(t).anchor;
            l->loss += l->anchor;
        }
    } else {
        weft__train_head(t, back ? WEFT__LOSS_PASS_BACK : WEFT__LOSS_PASS_VALUE);
        *l = summed(t);
    }
    if (back && isfinite(l->loss)) body_back(t);
    l->flops = t->flops;
    return WEFT_OK;
}

static weft_status one_kind(weft__trainer *t, int kind, weft_error *err)
{
    if (t->kind != 0 && t->kind != kind)
        return weft_fail(err, WEFT_STATE,
                         "rows, pairs and texts cannot be added to the same step; call weft__trainer_step between "
                         "them");
    return WEFT_OK;
}

weft_status weft__trainer_learn(weft__trainer *t, const weft__train_objective *o, const weft__train_batch *batch,
                                weft__train_loss *out, weft_error *err)
{
    weft__train_loss l;
    weft_status st = weft__loss_check(o, err);
    const int kind = st ? 0 : is_pairs(o) ? 2 : weft__loss_needs(o) & WEFT__LOSS_NEEDS_TEXTS ? 3 : 1;
    if (st || (st = one_kind(t, kind, err)) || (st = pass(t, o, batch, 1, &l, err))) return st;
    if (t->stopped) return cancelled(t, err);
    if (!isfinite(l.loss)) return not_finite(t, err);
    t->kind = kind;
    t->total_weight += l.weight;
    t->n_added++;
    if (out) *out = l;
    return WEFT_OK;
}

static const weft__train_objective LIKELIHOOD = {.kind = WEFT__LOSS_LIKELIHOOD};

weft_status weft__trainer_add(weft__trainer *t, const weft__train_batch *batch, weft__train_loss *out, weft_error *err)
{
    return weft__trainer_learn(t, &LIKELIHOOD, batch, out, err);
}

weft_status weft__trainer_measure(weft__trainer *t, const weft__train_objective *o, const weft__train_batch *batch,
                                  weft__train_loss *out, weft_error *err)
{
    weft__train_loss l;
    weft_status st = pass(t, o, batch, 0, &l, err);
    if (st) return st;
    if (t->stopped) return weft_fail(err, WEFT_CANCELLED, "cancelled");
    if (out) *out = l;
    return WEFT_OK;
}

weft_status weft__trainer_loss(weft__trainer *t, const weft__train_batch *batch, int with_adapter, float *logp,
                               weft__train_loss *out, weft_error *err)
{
    weft_status st = accept(t, &LIKELIHOOD, batch, err);
    if (st) return st;
    t->adapter_on = with_adapter;
    body(t);
    weft__train_head(t, WEFT__LOSS_PASS_VALUE);
    t->adapter_on = 1;
    if (t->stopped) return weft_fail(err, WEFT_CANCELLED, "cancelled");
    if (out) *out = summed(t);
    if (logp) weft__trainer_logp(t, logp);
    return WEFT_OK;
}
