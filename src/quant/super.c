// SPDX-License-Identifier: Apache-2.0
/* super.c: super-blocks. First each sub-block is fitted alone; then, for several common scales, each sub-block takes
 * the whole numbers around its own fit that give the least true error, and the common scales are refitted to what was
 * chosen. */
#include "quant/super.h"

#include <math.h>
#include <string.h>

#include "quant/half.h"

enum { ROUNDS = 4 };

int weft__quant_scaled_from(weft__quant_scaled *s, const float *x, const float *w, int n)
{
    float biggest = 0;
    int exponent;
    for (int i = 0; i < n; i++) biggest = fmaxf(biggest, fabsf(x[i]));
    if (biggest < 0x1p-26f) return 0; /* half of the least f16 number would still be more */
    frexpf(biggest, &exponent);
    exponent = exponent - 1 < 126 ? exponent - 1 : 126; /* so that 2^-exponent is a normal number */
    s->up = ldexpf(1, exponent);
    s->down = ldexpf(1, -exponent);
    s->w = w;
    s->n = n;
    for (int i = 0; i < n; i++) s->x[i] = x[i] * s->down;
    return 1;
}

float weft__quant_scaled_back(const weft__quant_scaled *s, uint16_t h)
{
    return weft__f16_to_f32(h) * s->down;
}

uint16_t weft__quant_scaled_half(const weft__quant_scaled *s, float v, float *back)
{
    uint16_t h = weft__f16_from_f32(fminf(fmaxf(v * s->up, -65504.f), 65504.f));
    *back = weft__quant_scaled_back(s, h);
    return h;
}

/* The work on one super-block. */
struct super_work {
    const weft__quant_super *form;
    const weft__quant_scaled *s;
    int n_subs;
    weft__fit_span span[WEFT__QUANT_SUBS_MAX];
    weft__fit own[WEFT__QUANT_SUBS_MAX]; /* each sub-block's fit, free of common scales */
};

/* A choice of everything but the codes. */
struct super_choice {
    uint16_t d_half, dmin_half;
    float d, dmin; /* what the halves are worth, scaled down */
    int scale[WEFT__QUANT_SUBS_MAX], min[WEFT__QUANT_SUBS_MAX];
    weft__fit fit[WEFT__QUANT_SUBS_MAX];
    double err;
};

static int clamped(float v, int lo, int hi)
{
    return v < (float)lo ? lo : v > (float)hi ? hi : (int)lrintf(v);
}

enum { TRIED = 6 }; /* of a sub-block: three scales, two minima each */

/* The minima around the one that keeps the sub-block's centre where its own fit has it: the first; how many: *n. */
static int minima(const struct super_work *k, int j, int scale, const struct super_choice *c, int *n)
{
    const weft__quant_super *form = k->form;
    const weft__fit *own = &k->own[j];
    *n = 1;
    if (!form->min_hi || c->dmin == 0) return 0;
    const float d = c->d * (float)scale, want = ((d - own->d) * own->swl / k->span[j].sw - own->m) / c->dmin;
    const int first = clamped(floorf(want), 0, form->min_hi);
    *n = first < form->min_hi ? 2 : 1;
    return first;
}

/* Chooses scale (from..to) and minimum of a sub-block. */
static void choose_of(const struct super_work *k, int j, int from, int to, struct super_choice *c)
{
    int scale[TRIED], min[TRIED], n = 0, n_mins;
    float d[TRIED], m[TRIED];
    weft__fit f[TRIED];
    for (int v = from; v <= to; v++) {
        const int first = minima(k, j, v, c, &n_mins);
        for (int i = 0; i < n_mins; i++, n++) {
            scale[n] = v;
            min[n] = first + i;
            d[n] = c->d * (float)v;
            m[n] = -c->dmin * (float)min[n];
        }
    }
    weft__fit_each(&k->form->levels, &k->span[j], n, d, m, f);
    c->fit[j].err = INFINITY;
    for (int i = 0; i < n; i++) {
        if (!(f[i].err < c->fit[j].err)) continue;
        c->fit[j] = f[i];
        c->scale[j] = scale[i];
        c->min[j] = min[i];
    }
}

/* Given the common scales, chooses scale and minimum of each sub-block. */
static void choose(const struct super_work *k, struct super_choice *c)
{
    const weft__quant_super *form = k->form;
    c->err = 0;
    for (int j = 0; j < k->n_subs; j++) {
        int near = c->d != 0 ? clamped(k->own[j].d / c->d, form->scale_lo, form->scale_hi) : 0;
        int from = near - 1 > form->scale_lo ? near - 1 : form->scale_lo,
            to = near + 1 < form->scale_hi ? near + 1 : form->scale_hi;
        choose_of(k, j, from, to, c);
        c->err += c->fit[j].err;
    }
}

static void set_common(const struct super_work *k, struct super_choice *c, double d, double dmin)
{
    c->d_half = weft__quant_scaled_half(k->s, (float)d, &c->d);
    c->dmin_half = weft__quant_scaled_half(k->s, (float)dmin, &c->dmin);
}

/* The common scales that suit the whole numbers and levels of *c best: least squares. Returns 0 where they are not
 * determined. */
static int refit_common(const struct super_work *k, const struct super_choice *c, double *d, double *dmin)
{
    double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
    for (int j = 0; j < k->n_subs; j++) {
        const weft__fit *f = &c->fit[j];
        double a = c->scale[j], b = -c->min[j];
        aa += a * a * f->swll;
        ab += a * b * f->swl;
        bb += b * b * k->span[j].sw;
        xa += a * f->swxl;
        xb += b * k->span[j].swx;
    }
    double det = aa * bb - ab * ab;
    if (!(aa > 0)) return 0;
    if (bb > 0 && det > 1e-9 * aa * bb) {
        *d = (xa * bb - xb * ab) / det;
        *dmin = (xb * aa - xa * ab) / det;
        if (*d > 0 && *dmin >= 0) return 1;
    }
    *d = (xa - c->dmin * ab) / aa;
    *dmin = c->dmin;
    return 1;
}

/* From common scales to the best choice that alternating finds. */
static void settle(const struct super_work *k, double d, double dmin, struct super_choice *best)
{
    struct super_choice c;
    for (int round = 0; round < ROUNDS; round++) {
        set_common(k, &c, d, dmin);
        choose(k, &c);
        if (!(c.err < best->err)) break;
        *best = c;
        if (!refit_common(k, &c, &d, &dmin)) break;
    }
}

static void search(const struct super_work *k, struct super_choice *best)
{
    /* Common scales that make the largest sub-block's scale the largest whole number, and slightly larger ones. */
    static const float STRETCH[] = {1.f, 1.06f};
    const weft__quant_super *form = k->form;
    float biggest = 0, lowest = 0;
    for (int j = 0; j < k->n_subs; j++) {
        if (fabsf(k->own[j].d) > fabsf(biggest)) biggest = k->own[j].d;
        lowest = fminf(lowest, k->own[j].m);
    }
    best->err = INFINITY;
    for (size_t i = 0; i < sizeof STRETCH / sizeof *STRETCH; i++) {
        double d = STRETCH[i] * biggest, dmin = form->min_hi ? -STRETCH[i] * lowest / (float)form->min_hi : 0;
        settle(k, d / form->scale_hi, dmin, best);
        if (form->scale_lo < 0) settle(k, d / form->scale_lo, dmin, best);
    }
}

void weft__quant_super_encode(const weft__quant_super *form, const float *x, const float *w, weft__quant_super_fit *out)
{
    weft__quant_scaled s;
    struct super_work k = {.form = form, .s = &s, .n_subs = WEFT__QUANT_QK_K / form->sub};
    struct super_choice best;
    memset(out, 0, sizeof *out);
    if (!weft__quant_scaled_from(&s, x, w, WEFT__QUANT_QK_K)) return;
    for (int j = 0; j < k.n_subs; j++) {
        k.span[j] = weft__fit_span_of(s.x + j * form->sub, w + j * form->sub, form->sub);
        k.own[j] =
            form->min_hi ? weft__fit_affine(&form->levels, &k.span[j], 0) : weft__fit_scale(&form->levels, &k.span[j]);
    }
    search(&k, &best);
    out->d = best.d_half;
    out->dmin = best.dmin_half;
    for (int j = 0; j < k.n_subs; j++) {
        out->scale[j] = best.scale[j];
        out->min[j] = best.min[j];
        weft__fit_codes(&form->levels, s.x + j * form->sub, form->sub, best.fit[j].d, best.fit[j].m,
                        out->q + j * form->sub);
    }
}
