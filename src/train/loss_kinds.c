// SPDX-License-Identifier: Apache-2.0
/* loss_kinds.c: see loss.h. Stateless. */
#include "train/loss.h"

#include <math.h>

/* -log s(x) = log(1 + e^-x), without overflow. */
static double minus_log_sigmoid(double x)
{
    return x > 0 ? log1p(exp(-x)) : log1p(exp(x)) - x;
}

static double sigmoid(double x)
{
    return x > 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x));
}

weft__loss_told weft__loss_likelihood(const weft__train_objective *o, const weft__loss_seen *s)
{
    (void)o;
    if (s->weight >= 0) return (weft__loss_told){-s->weight * s->logp, s->weight};
    return (weft__loss_told){s->weight * s->log_rest, s->weight * exp(s->logp - s->log_rest)};
}

weft__loss_told weft__loss_policy(const weft__train_objective *o, const weft__loss_seen *s)
{
    const double a = s->advantage, ratio = isnan(s->old_logp) ? 1 : exp(s->logp - s->old_logp);
    const double low = 1 - (double)o->clip_low, high = 1 + (double)o->clip_high;
    const double clipped = ratio < low ? low : ratio > high ? high : ratio;
    weft__loss_told told = {-ratio * a, ratio * a};
    if (clipped * a < ratio * a) told = (weft__loss_told){-clipped * a, 0};
    if (o->beta > 0) {
        const double of_base = s->base_logp - s->logp;
        told.value += (double)o->beta * (exp(of_base) - of_base - 1);
        told.slope += (double)o->beta * (exp(of_base) - 1);
    }
    return (weft__loss_told){s->weight * told.value, s->weight * told.slope};
}

int weft__loss_advantages(const double *reward, int32_t n, int scaled, double *advantage)
{
    double mean = 0, squares = 0;
    int differ = 0;
    for (int32_t i = 0; i < n; i++) {
        mean += reward[i] / n;
        differ |= reward[i] != reward[0];
    }
    for (int32_t i = 0; i < n; i++) {
        advantage[i] = differ ? reward[i] - mean : 0;
        squares += advantage[i] * advantage[i];
    }
    for (int32_t i = 0; differ && scaled && i < n; i++) advantage[i] /= sqrt(squares / (n - 1)) + 1e-4;
    return differ;
}

weft__loss_pair_told weft__loss_preference(const weft__train_objective *o, const weft__loss_pair *s)
{
    const double beta = (double)o->beta, flip = (double)o->smoothing, chosen = (double)o->chosen;
    const double m = (s->chosen - s->base_chosen) - (s->rejected - s->base_rejected), x = beta * m;
    const double slope = beta * ((1 - flip) * sigmoid(-x) - flip * sigmoid(x));
    weft__loss_pair_told told = {.value = (1 - flip) * minus_log_sigmoid(x) + flip * minus_log_sigmoid(-x),
                                 .margin = m,
                                 .slope_chosen = slope,
                                 .slope_rejected = -slope};
    if (chosen > 0 && s->n_chosen > 0) {
        told.value -= chosen * s->chosen / s->n_chosen;
        told.slope_chosen += chosen / s->n_chosen;
    }
    return told;
}

/* ---- whole texts ---- */

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

static void add_times(double *to, double factor, const double *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) to[i] += factor * from[i];
}

static int is_query(const weft__loss_contrast_texts *x, int32_t i)
{
    return i == 0 || x->group[i] != x->group[i - 1];
}

/* Scores of the candidates for query q, -INFINITY of what is none; returns the largest but that of text p. */
static double score_candidates(const weft__train_objective *o, const weft__loss_contrast_texts *x, int32_t q)
{
    const int32_t p = q + 1;
    double next = -INFINITY;
    for (int32_t d = 0; d < x->n; d++) {
        const int none = is_query(x, d) || (d != p && x->same[d] == x->same[p]);
        x->score[d] = none ? -INFINITY : dot(x->e + q * x->width, x->e + d * x->width, x->width) / (double)o->beta;
        if (d != p && x->score[d] > next) next = x->score[d];
    }
    return next;
}

/* A record's loss; x->score becomes the candidates' probabilities. */
static void contrast_one(const weft__train_objective *o, const weft__loss_contrast_texts *x, int32_t q,
                         weft__loss_contrast_told *told)
{
    const double next = score_candidates(o, x, q), right = x->score[q + 1], most = next > right ? next : right;
    double sum = 0;
    for (int32_t d = 0; d < x->n; d++) sum += x->score[d] = exp(x->score[d] - most);
    for (int32_t d = 0; d < x->n; d++) x->score[d] /= sum;
    told->value += most + log(sum) - right;
    told->n++;
    if (next == -INFINITY) return; /* nothing to be told apart from */
    told->margin += (double)o->beta * (right - next);
    told->n_better += right > next;
}

void weft__loss_contrast(const weft__train_objective *o, const weft__loss_contrast_texts *x, double *gradient,
                         weft__loss_contrast_told *told)
{
    *told = (weft__loss_contrast_told){0};
    for (int64_t i = 0; gradient && i < x->n * x->width; i++) gradient[i] = 0;
    for (int32_t q = 0; q + 1 < x->n; q++) {
        if (!is_query(x, q)) continue;
        contrast_one(o, x, q, told);
        for (int32_t d = 0; gradient && d < x->n; d++) {
            const double slope = (x->score[d] - (d == q + 1)) / (double)o->beta;
            if (slope == 0) continue;
            add_times(gradient + q * x->width, slope, x->e + d * x->width, x->width);
            add_times(gradient + d * x->width, slope, x->e + q * x->width, x->width);
        }
    }
}

static const weft__loss_kind KINDS[] = {
    [WEFT__LOSS_LIKELIHOOD] = {"likelihood", weft__loss_likelihood, NULL, 0},
    [WEFT__LOSS_POLICY] = {"policy", weft__loss_policy, NULL, 0},
    [WEFT__LOSS_PREFERENCE] = {"preference", NULL, weft__loss_preference,
                               WEFT__LOSS_NEEDS_BASE | WEFT__LOSS_NEEDS_PAIRS},
    [WEFT__LOSS_CONTRAST] = {"contrast", NULL, NULL, WEFT__LOSS_NEEDS_TEXTS},
};

const weft__loss_kind *weft__loss_kind_of(int32_t kind)
{
    return kind >= 0 && kind < (int32_t)(sizeof KINDS / sizeof *KINDS) ? &KINDS[kind] : NULL;
}

unsigned weft__loss_needs(const weft__train_objective *o)
{
    unsigned needs = KINDS[o->kind].needs;
    if (o->anchor > 0 || (o->kind == WEFT__LOSS_POLICY && o->beta > 0)) needs |= WEFT__LOSS_NEEDS_BASE;
    return needs;
}

weft_status weft__loss_check(const weft__train_objective *o, weft_error *err)
{
    if (!weft__loss_kind_of(o->kind)) return weft_fail(err, WEFT_ARGUMENT, "there is no loss of number %d", o->kind);
    const int pairs = o->kind == WEFT__LOSS_PREFERENCE, contrasts = o->kind == WEFT__LOSS_CONTRAST;
    if (contrasts && o->anchor > 0)
        return weft_fail(err, WEFT_ARGUMENT, "an anchor is for losses that look at what follows; embeddings have none");
    const struct {
        const char *name;
        double value, from, to;
    } all[] = {
        {contrasts ? "the temperature" : "beta", (double)o->beta,
         contrasts ? 1e-3
         : pairs   ? 1e-9
                   : 0,
         1000},
        {"label smoothing", (double)o->smoothing, 0, 0.5},
        {"the weight of the chosen answer's likelihood", (double)o->chosen, 0, 1000},
        {"the anchor", (double)o->anchor, 0, 1000},
        {"the lower clip", (double)o->clip_low, 0, 1},
        {"the upper clip", (double)o->clip_high, 0, 1000},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!(all[i].value >= all[i].from && all[i].value <= all[i].to))
            return weft_fail(err, WEFT_ARGUMENT, "%s is %g; it must be between %g and %g", all[i].name, all[i].value,
                             all[i].from, all[i].to);
    return WEFT_OK;
}
