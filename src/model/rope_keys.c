// SPDX-License-Identifier: Apache-2.0
/* rope_keys.c: see rope_keys.h. */
#include "model/rope_keys.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_CTX = 1 << 28 };

static int told_meta(const weft__source *src, const char *key, weft__source_value *out)
{
    const weft__source_rope *k = src->impl;
    for (int32_t i = 0; i < k->n; i++)
        if (!strcmp(k->keys[i].key, key)) {
            *out = k->keys[i].value;
            return 1;
        }
    return k->of->meta(k->of, key, out);
}

static double told_meta_at(const weft__source *src, const char *key, uint64_t i)
{
    const weft__source_rope *k = src->impl;
    return k->of->meta_at(k->of, key, i);
}

static const weft__tensor_desc *told_tensor(const weft__source *src, const char *name)
{
    const weft__source_rope *k = src->impl;
    return k->of->tensor(k->of, name);
}

static void rope_keys_put(weft__source_rope *k, const char *arch, const char *name, weft__source_value value)
{
    struct weft__source_rope_key *e = &k->keys[k->n++];
    snprintf(e->key, sizeof e->key, "%s.rope.%s", arch, name);
    e->value = value;
}

static void put_float(weft__source_rope *k, const char *arch, const char *name, float value)
{
    if (value > 0) rope_keys_put(k, arch, name, (weft__source_value){.kind = WEFT__SOURCE_FLOAT, .f = (double)value});
}

static weft_status rope_keys_check(const weft_rope_params *p, weft_error *err)
{
    const struct {
        const char *name;
        float value;
    } numbers[] = {{"factor", p->factor},           {"freq_base", p->freq_base}, {"ext_factor", p->ext_factor},
                   {"attn_factor", p->attn_factor}, {"beta_fast", p->beta_fast}, {"beta_slow", p->beta_slow}};
    if (p->scaling < WEFT_ROPE_SCALING_FILE || p->scaling > WEFT_ROPE_SCALING_YARN)
        return weft_fail(err, WEFT_ARGUMENT, "rope scaling %d: there is none of that number", p->scaling);
    if (p->orig_ctx < 0 || p->orig_ctx > MAX_CTX)
        return weft_fail(err, WEFT_ARGUMENT, "rope scaling: orig_ctx is %d; it must be 0 to %d", p->orig_ctx, MAX_CTX);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!(numbers[i].value >= 0) || !isfinite(numbers[i].value))
            return weft_fail(err, WEFT_ARGUMENT, "rope scaling: %s is %g; it must be above 0, or 0: the file's",
                             numbers[i].name, (double)numbers[i].value);
    return WEFT_OK;
}

weft_status weft__source_rope_make(const weft__source *of, const char *arch, const weft_rope_params *p,
                                   weft__source_rope *k, weft__source *out, weft_error *err)
{
    static const char *const types[] = {NULL, "none", "linear", "yarn"};
    weft_status st = rope_keys_check(p, err);
    if (st) return st;
    k->of = of;
    k->n = 0;
    *out = (weft__source){of->label, told_meta, told_meta_at, told_tensor, k, of->tensors};
    if (p->scaling)
        rope_keys_put(k, arch, "scaling.type",
                      (weft__source_value){
                          .kind = WEFT__SOURCE_STRING, .s = types[p->scaling], .count = strlen(types[p->scaling])});
    /* The key of the oldest files says the same as the factor does. */
    if (p->factor > 0) rope_keys_put(k, arch, "scale_linear", (weft__source_value){.kind = WEFT__SOURCE_FLOAT});
    if (p->orig_ctx)
        rope_keys_put(k, arch, "scaling.original_context_length",
                      (weft__source_value){.kind = WEFT__SOURCE_INT, .i = p->orig_ctx});
    put_float(k, arch, "scaling.factor", p->factor);
    put_float(k, arch, "freq_base", p->freq_base);
    put_float(k, arch, "scaling.attn_factor", p->attn_factor);
    put_float(k, arch, "scaling.yarn_ext_factor", p->ext_factor);
    put_float(k, arch, "scaling.yarn_beta_fast", p->beta_fast);
    put_float(k, arch, "scaling.yarn_beta_slow", p->beta_slow);
    return WEFT_OK;
}
