// SPDX-License-Identifier: Apache-2.0
/* read_gguf.c: adapters as llama.cpp keeps them: NAME.lora_a and NAME.lora_b for tensor NAME, adapter.lora.alpha for
 * all.
 *
 * Two suffixes are this engine's own, so that no other reader applies half of what the file means: NAME.lora_magnitude
 * (DoRA), and NAME.lora_scale where the scale is not alpha / rank. Owner: the thread that reads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapt/parts.h"
#include "format/gguf.h"

typedef struct read_gguf_reading {
    weft__adapt *a;
    const weft__gguf *g;
    weft__adapt_parsed_list all;
    weft_error *err;
} read_gguf_reading;

static weft_status check_kind(read_gguf_reading *r, const char *key, const char *want)
{
    weft__gguf_str s;
    char shown[WEFT__NAME_SHOW];
    weft_status st = weft__gguf_string(r->g, key, &s, r->err);
    if (st == WEFT_NOT_FOUND) return weft_fail(r->err, WEFT_FORMAT, "key %s is missing: it is no adapter", key);
    if (st) return st;
    if (s.len == strlen(want) && !memcmp(s.data, want, s.len)) return WEFT_OK;
    return weft_fail(r->err, WEFT_UNSUPPORTED, "key %s is \"%s\", not \"%s\"", key,
                     weft__name_show(shown, s.data, s.len), want);
}

static weft_status read_fingerprint(read_gguf_reading *r)
{
    weft__gguf_str s;
    char digits[17] = "";
    weft_status st = weft__gguf_string(r->g, WEFT__ADAPT_FINGERPRINT_KEY, &s, r->err);
    if (st) return st == WEFT_NOT_FOUND ? WEFT_OK : st;
    if (s.len == 16) memcpy(digits, s.data, 16);
    if (strspn(digits, "0123456789abcdef") != 16)
        return weft_fail(r->err, WEFT_FORMAT, "key " WEFT__ADAPT_FINGERPRINT_KEY " is not 16 hexadecimal digits");
    r->a->base_fingerprint = strtoull(digits, NULL, 16);
    return WEFT_OK;
}

static weft_status read_keys(read_gguf_reading *r, float *alpha)
{
    weft__gguf_str arch;
    weft_status st;
    *alpha = 0;
    if ((st = check_kind(r, "general.type", "adapter")) || (st = check_kind(r, "adapter.type", "lora"))) return st;
    st = weft__gguf_f32(r->g, "adapter.lora.alpha", alpha, r->err);
    if (st && st != WEFT_NOT_FOUND) return st;
    if (!isfinite(*alpha)) return weft_fail(r->err, WEFT_FORMAT, "key adapter.lora.alpha is not finite");
    if (weft__gguf_find(r->g, "adapter.alora.invocation_tokens") >= 0)
        return weft_fail(r->err, WEFT_UNSUPPORTED,
                         "it is an activated LoRA (adapter.alora.invocation_tokens), which is not supported");
    if ((st = weft__gguf_string(r->g, "general.architecture", &arch, r->err))) return st;
    if (arch.len >= sizeof r->a->arch || memchr(arch.data, 0, arch.len))
        return weft_fail(r->err, WEFT_FORMAT, "key general.architecture is too long, or holds a NUL");
    memcpy(r->a->arch, arch.data, arch.len);
    return read_fingerprint(r);
}

static weft_status read_scale(read_gguf_reading *r, weft__adapt_parsed *f, const weft__tensor_desc *t)
{
    if (t->dtype != WEFT_F32 || t->n_elems != 1)
        return weft_fail(r->err, WEFT_FORMAT, "%s is not one F32 number", t->name);
    memcpy(&f->scale, weft__tensor_data(t), sizeof f->scale);
    return isfinite(f->scale) ? WEFT_OK : weft_fail(r->err, WEFT_FORMAT, "%s is not finite", t->name);
}

static weft_status add_tensor(read_gguf_reading *r, const weft__tensor_desc *t)
{
    static const char *const suffixes[] = {".lora_a", ".lora_b", ".lora_magnitude", ".lora_scale"};
    char shown[WEFT__NAME_SHOW];
    size_t n = strlen(t->name), tail = 0;
    int which = -1;
    for (int i = 0; i < 4; i++) {
        tail = strlen(suffixes[i]);
        if (n > tail && !strcmp(t->name + n - tail, suffixes[i])) {
            which = i;
            break;
        }
    }
    if (which < 0)
        return weft_fail(r->err, WEFT_UNSUPPORTED, "tensor %s is no part of a LoRA (NAME.lora_a, NAME.lora_b)",
                         weft__name_show(shown, t->name, n));
    weft_status st;
    weft__adapt_parsed *f = weft__adapt_parsed_at(r->a, &r->all, t->name, n - tail, &st, r->err);
    if (!f) return st;
    if (!f->place.name[0]) f->scale = NAN; /* alpha's, unless it has one of its own */
    snprintf(f->place.name, sizeof f->place.name, "%.*s", (int)(n - tail), t->name);
    f->embedding = weft__adapt_is_table(f->place.name);
    if (which == 3) return read_scale(r, f, t);
    *(which == 0 ? &f->a : which == 1 ? &f->b : &f->magnitude) = t;
    return WEFT_OK;
}

/* alpha 0 or none means a scale of 1, as in llama.cpp. */
static void set_scales(read_gguf_reading *r, float alpha)
{
    for (size_t i = 0; i < r->all.n; i++) {
        weft__adapt_parsed *f = &r->all.items[i];
        double rank = f->b ? (double)f->b->d[0] : 1;
        if (isnan(f->scale)) f->scale = alpha != 0 ? (float)((double)alpha / rank) : 1;
    }
}

weft_status weft__adapt_check_gguf(weft__adapt *a, const void *bytes, size_t n, weft_error *err)
{
    weft__gguf *g;
    float alpha;
    weft_status st = weft__gguf_parse_meta(bytes, n, a->label, &g, err);
    if (st) return st;
    st = read_keys(&(read_gguf_reading){.a = a, .g = g, .err = err}, &alpha);
    weft__gguf_close(&g);
    return st;
}

weft_status weft__adapt_read_gguf(weft__adapt *a, const void *bytes, size_t n, weft_error *err)
{
    weft__gguf *g;
    float alpha;
    weft_status st = weft__gguf_parse(bytes, n, a->label, &g, err);
    if (st) return st;
    read_gguf_reading r = {.a = a, .g = g, .err = err};
    const weft__tensor_set *set = weft__gguf_tensors(g);
    st = read_keys(&r, &alpha);
    for (size_t i = 0; i < set->n && !st; i++) st = add_tensor(&r, &set->items[i]);
    if (!st) {
        set_scales(&r, alpha);
        st = weft__adapt_assemble(a, &r.all, err);
    }
    weft__adapt_parsed_list_free(&r.all);
    weft__gguf_close(&g);
    return st;
}
