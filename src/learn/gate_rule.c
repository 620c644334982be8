// SPDX-License-Identifier: Apache-2.0
/* gate_rule.c: what the gate makes of what it has measured (gate.h). */
#include <math.h>

#include "learn/gate.h"

const char *weft__gate_reason_name(weft__gate_reason r)
{
    static const char *const NAMES[WEFT__GATE_REASONS] = {"passed",     "not_learned", "paraphrases", "held_out",
                                                          "neighbours", "facts",       "kl",          "norm",
                                                          "not_finite", "not_better"};
    return r >= 0 && r < WEFT__GATE_REASONS ? NAMES[r] : "?";
}

void weft__gate_bounds_default(weft__gate_bounds *b)
{
    *b = (weft__gate_bounds){.paraphrases = 2.0f / 3,
                             .p = 0.1f,
                             .least = -2.3f,
                             .neighbours = 0.98f,
                             .facts = 0.98f,
                             .kl = 0.02f,
                             .kl_later = 0.1f,
                             .styled = 0.9f,
                             .style_kept = 0.98f,
                             .kl_style = 1,
                             .norm = 0.25f};
}

/* Of none asked, all hold. */
static int enough(int32_t n, int32_t of, float share)
{
    return (double)n >= (double)share * of - 1e-3; /* a share of 0.98 is a float */
}

static double log_power(double x, int32_t n)
{
    return n ? n * log(x) : 0;
}

double weft__gate_binomial(int32_t lost, int32_t n, double share)
{
    const double miss = fmin(fmax(1 - share, 0), 1);
    double p = 0;
    for (int32_t k = lost > 0 ? lost : 0; k <= n; k++)
        p += exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0) + log_power(miss, k) +
                 log_power(1 - miss, n - k));
    return fmin(p, 1);
}

double weft__gate_mcnemar(int32_t lost, int32_t gained)
{
    return weft__gate_binomial(lost, lost + gained, 0.5);
}

weft__gate_reason weft__gate_judge(const weft__gate_report *r, const weft__gate_bounds *b, int goes_on)
{
    if (!isfinite(r->kl) || !isfinite(r->norm)) return WEFT__GATE_NOT_FINITE;
    if (r->corrections < r->n_corrections) return WEFT__GATE_NOT_LEARNED;
    if (!enough(r->paraphrases, r->n_paraphrases, r->is_style ? b->styled : b->paraphrases))
        return WEFT__GATE_PARAPHRASES;
    if (r->lost > r->gained && r->p <= (double)b->p) return WEFT__GATE_HELD_OUT;
    if (r->is_style && r->n_neighbours < WEFT__GATE_STYLE_LEAST) return WEFT__GATE_NEIGHBOURS;
    const int kept = r->is_style ? weft__gate_binomial(r->n_neighbours - r->neighbours, r->n_neighbours,
                                                       (double)b->style_kept) > (double)b->p
                                 : enough(r->neighbours, r->n_neighbours, b->neighbours);
    if (r->bled || !kept) return WEFT__GATE_NEIGHBOURS;
    if (!enough(r->facts, r->n_facts, b->facts)) return WEFT__GATE_FACTS;
    if (r->kl > (double)(r->is_style ? b->kl_style : goes_on ? b->kl_later : b->kl)) return WEFT__GATE_KL;
    if (r->norm > (double)b->norm) return WEFT__GATE_NORM;
    return WEFT__GATE_PASSED;
}
