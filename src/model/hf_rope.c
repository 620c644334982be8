// SPDX-License-Identifier: Apache-2.0
/* hf_rope.c: rope_theta, rope_scaling and rope_parameters of config.json as GGUF keys, and the factors of Llama 3 and
 * LongRoPE as tensors (hf_parts.h). Formulas: transformers' modeling_rope_utils. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/hf_parts.h"

#define PI 3.14159265358979323846

enum { MAX_CTX = 1 << 28 };

typedef struct rope {
    weft__hf *hf;
    weft__gguf_writer *w;
    weft_error *err;
    const weft__json *params; /* rope_scaling or rope_parameters, or NULL */
    double base;
    char full[96];
} rope;

static const char *key_of(rope *r, const char *suffix)
{
    snprintf(r->full, sizeof r->full, "%s.rope.%s", r->hf->arch, suffix);
    return r->full;
}

static weft_status put_number(rope *r, const char *suffix, double value)
{
    return weft__gguf_put_f32(r->w, key_of(r, suffix), (float)value, r->err);
}

static weft_status put_int(rope *r, const char *suffix, int32_t value)
{
    return weft__gguf_put_u32(r->w, key_of(r, suffix), (uint32_t)value, r->err);
}

static weft_status put_type(rope *r, const char *type)
{
    return weft__gguf_put_string(r->w, key_of(r, "scaling.type"), type, strlen(type), r->err);
}

static weft_status positive(rope *r, const char *key, int required, double *out)
{
    weft_status st = weft__hf_number(r->params, key, required, out, r->err);
    if (!st && !(*out > 0))
        st = weft_fail(r->err, WEFT_FORMAT, "config.json: rope scaling: %s is %g; it must be positive", key, *out);
    return st;
}

/* ---- kinds of scaling ---- */

static weft_status linear(rope *r)
{
    double factor = 1;
    weft_status st = positive(r, "factor", 1, &factor);
    if (!st) st = put_type(r, "linear");
    return st ? st : put_number(r, "scaling.factor", factor);
}

/* Llama 3: long wavelengths are stretched by `factor`, short ones left alone, with a ramp between. */
static weft_status llama3(rope *r)
{
    double factor = 1, low = 1, high = 4, context = 8192;
    size_t n = (size_t)r->hf->size.n_rot / 2;
    weft_status st;
    if (!(r->hf->family & WEFT__HF_LLAMAS))
        return weft_fail(r->err, WEFT_UNSUPPORTED, "config.json: rope scaling 'llama3' is supported for Llama only");
    if ((st = positive(r, "factor", 1, &factor)) || (st = positive(r, "low_freq_factor", 1, &low)) ||
        (st = positive(r, "high_freq_factor", 1, &high)) ||
        (st = positive(r, "original_max_position_embeddings", 1, &context)))
        return st;
    if (!(high > low))
        return weft_fail(r->err, WEFT_FORMAT,
                         "config.json: rope scaling: high_freq_factor %g is not above low_freq_factor %g", high, low);
    float *factors = weft__alloc_array(n, sizeof *factors);
    if (!factors) return weft_fail(r->err, WEFT_NO_MEMORY, "no memory for rope factors");
    for (size_t i = 0; i < n; i++) {
        double wavelength = 2 * PI * pow(r->base, 2.0 * (double)i / (double)(2 * n));
        double smooth = (context / wavelength - low) / (high - low);
        double f = wavelength < context / high  ? 1
                   : wavelength > context / low ? factor
                                                : 1 / ((1 - smooth) / factor + smooth);
        factors[i] = (float)f;
    }
    st = weft__hf_add_values(r->hf, "rope_freqs.weight", factors, n, r->err);
    weft__free(factors);
    return st;
}

/* The attention factor follows from the scaling factor unless it is given; GGUF has it as a multiple of that. */
static weft_status yarn(rope *r)
{
    static const char *const unsupported[] = {"mscale", "mscale_all_dim"};
    double factor = 0, attention = 0, fast = 32, slow = 1;
    int32_t context = r->hf->size.n_ctx;
    int truncate = 1;
    weft_status st;
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++)
        if (weft__json_get(r->params, unsupported[i]) && !weft__json_is_null(weft__json_get(r->params, unsupported[i])))
            return weft_fail(r->err, WEFT_UNSUPPORTED, "config.json: rope scaling: %s is not supported",
                             unsupported[i]);
    if ((st = weft__hf_flag(r->params, "truncate", &truncate, r->err))) return st;
    if (!truncate)
        return weft_fail(r->err, WEFT_UNSUPPORTED, "config.json: rope scaling: truncate false is not supported");
    if ((st = positive(r, "factor", 1, &factor)) ||
        (st = weft__hf_number(r->params, "attention_factor", 0, &attention, r->err)) ||
        (st = weft__hf_number(r->params, "beta_fast", 0, &fast, r->err)) ||
        (st = weft__hf_number(r->params, "beta_slow", 0, &slow, r->err)) ||
        (st = weft__hf_int(r->params, "original_max_position_embeddings", 0, 1, MAX_CTX, &context, r->err)))
        return st;
    if ((st = put_type(r, "yarn")) || (st = put_number(r, "scaling.factor", factor)) ||
        (st = put_int(r, "scaling.original_context_length", context)))
        return st;
    if (attention > 0 && (st = put_number(r, "scaling.attn_factor", attention / (1 + 0.1 * log(factor))))) return st;
    if (fast != 32 && (st = put_number(r, "scaling.yarn_beta_fast", fast))) return st;
    return slow != 1 ? put_number(r, "scaling.yarn_beta_slow", slow) : WEFT_OK;
}

static weft_status put_factors(rope *r, const char *key, const char *tensor)
{
    const weft__json *list = weft__json_get(r->params, key);
    size_t n = (size_t)r->hf->size.n_rot / 2;
    double value;
    if (weft__json_kind_of(list) != WEFT__JSON_ARRAY || weft__json_size(list) != n)
        return weft_fail(r->err, WEFT_FORMAT, "config.json: rope scaling: %s is no list of %zu numbers", key, n);
    float *factors = weft__alloc_array(n, sizeof *factors);
    if (!factors) return weft_fail(r->err, WEFT_NO_MEMORY, "no memory for rope factors");
    weft_status st = WEFT_OK;
    for (size_t i = 0; !st && i < n; i++) {
        if (!weft__json_double(weft__json_at(list, i), &value) || !(value > 0) || !isfinite((float)value))
            st = weft_fail(r->err, WEFT_FORMAT, "config.json: rope scaling: entry %zu of %s is no positive number", i,
                           key);
        else factors[i] = (float)value;
    }
    if (!st) st = weft__hf_add_values(r->hf, tensor, factors, n, r->err);
    weft__free(factors);
    return st;
}

/* LongRoPE (Phi 3): two sets of factors, and scores a little larger for the stretched context. */
static weft_status longrope(rope *r)
{
    int32_t context = 0;
    double attention = 0;
    weft_status st;
    if (r->hf->family != WEFT__HF_PHI3)
        return weft_fail(r->err, WEFT_UNSUPPORTED, "config.json: rope scaling 'longrope' is supported for Phi 3 only");
    if ((st = weft__hf_int(r->hf->text, "original_max_position_embeddings", 0, 1, MAX_CTX, &context, r->err)) ||
        (st =
             weft__hf_int(r->params, "original_max_position_embeddings", context == 0, 1, MAX_CTX, &context, r->err)) ||
        (st = weft__hf_number(r->params, "attention_factor", 0, &attention, r->err)))
        return st;
    double factor = (double)r->hf->size.n_ctx / context;
    if (!(attention > 0)) attention = factor <= 1 ? 1 : sqrt(1 + log(factor) / log(context));
    if ((st = put_type(r, "longrope")) || (st = put_number(r, "scaling.attn_factor", attention)) ||
        (st = put_int(r, "scaling.original_context_length", context)) ||
        (st = put_factors(r, "long_factor", "rope_factors_long.weight")))
        return st;
    return put_factors(r, "short_factor", "rope_factors_short.weight");
}

static weft_status scaling(rope *r)
{
    static const struct {
        const char *name;
        weft_status (*put)(rope *r);
    } kinds[] = {{"linear", linear}, {"llama3", llama3}, {"yarn", yarn}, {"longrope", longrope}, {"su", longrope}};
    const char *type, *old;
    weft_status st;
    if ((st = weft__hf_string(r->params, "rope_type", &type, r->err)) ||
        (st = weft__hf_string(r->params, "type", &old, r->err)))
        return st;
    if (!type) type = old;
    if (!type && weft__json_get(r->params, "factor"))
        return weft_fail(r->err, WEFT_FORMAT, "config.json: rope scaling has no rope_type");
    if (!type || !strcmp(type, "default")) return WEFT_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(type, kinds[i].name)) return kinds[i].put(r);
    return weft_fail(r->err, WEFT_UNSUPPORTED,
                     "config.json: rope scaling '%.60s' is not supported; supported are linear, llama3, yarn, longrope",
                     type);
}

/* ---- where the fields are ---- */

static weft_status object_or_null(rope *r, const char *key, const weft__json **out)
{
    const weft__json *v = weft__json_get(r->hf->text, key);
    *out = v && !weft__json_is_null(v) ? v : NULL;
    if (!*out || weft__json_kind_of(*out) == WEFT__JSON_OBJECT) return WEFT_OK;
    return weft_fail(r->err, WEFT_FORMAT, "config.json: %s is no object", key);
}

/* rope_parameters is how newer configurations have it, with rope_theta inside, and for Gemma 3 one object per kind of
 * layer. */
static weft_status find_params(rope *r)
{
    const weft__json *newer;
    double local = 10000;
    weft_status st = object_or_null(r, "rope_scaling", &r->params);
    if (!st) st = object_or_null(r, "rope_parameters", &newer);
    if (!st) st = weft__hf_number(r->hf->text, "rope_theta", 0, &r->base, r->err);
    if (st || !newer) return st;
    if (weft__json_get(newer, "full_attention")) {
        st = weft__hf_number(weft__json_get(newer, "sliding_attention"), "rope_theta", 0, &local, r->err);
        if (!st && local != 10000)
            st = weft_fail(r->err, WEFT_UNSUPPORTED,
                           "config.json: rope_parameters: a local base of %g is not supported", local);
        newer = weft__json_get(newer, "full_attention");
    }
    r->params = newer;
    return st ? st : weft__hf_number(newer, "rope_theta", 0, &r->base, r->err);
}

weft_status weft__hf_put_rope(weft__hf *hf, weft__gguf_writer *w, weft_error *err)
{
    rope r = {
        .hf = hf, .w = w, .err = err, .base = hf->family & (WEFT__HF_GEMMA3S | WEFT__HF_MIXTRAL) ? 1000000 : 10000};
    weft_status st = find_params(&r);
    if (st) return st;
    if (!(r.base > 1)) return weft_fail(err, WEFT_FORMAT, "config.json: rope_theta is %g; it must be above 1", r.base);
    if ((st = put_number(&r, "freq_base", r.base)) || !r.params) return st;
    return scaling(&r);
}
