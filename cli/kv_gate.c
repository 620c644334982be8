// SPDX-License-Identifier: Apache-2.0
/* kv_gate.c: what was measured of types of keys and values, in kv-gates.json of the cache:
 *   {"FINGERPRINT q8": {"model": "NAME", "kld_mean": 0.0005, "same_top": 0.996, "max_kld": 0.01, "min_top": 0.98,
 *                       "exceeded": false, "tokens": 16384, "n_ctx": 8192, "version": "0.1.0"}} */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/place.h"
#include "kept.h"
#include "kv_quality.h"
#include "kv_type.h"
#include "terminal.h"
#include "weft/version.h"

static const char NAME[] = "kv-gates.json";

static void gate_key(const char *fingerprint, const char *type, char key[128])
{
    snprintf(key, 128, "%s %s", fingerprint, type);
}

int kv_gate_keep(kv_quality *q)
{
    const kv_figures f = kv_figures_of(&q->all);
    char path[PATH_MAX], key[128];
    if (weft__place_in_cache(path, sizeof path, NAME) != 1) return 0;
    weft__json *e = weft__json_new_object();
    gate_key(q->fingerprint, q->type, key);
    if (weft__json_set(e, "model", weft__json_new_string(q->model, strlen(q->model))) &&
        weft__json_set(e, "kld_mean", weft__json_new_double(f.kld)) &&
        weft__json_set(e, "same_top", weft__json_new_double(f.same_top)) &&
        weft__json_set(e, "max_kld", weft__json_new_double(q->max_kld)) &&
        weft__json_set(e, "min_top", weft__json_new_double(q->min_top)) &&
        weft__json_set(e, "exceeded", weft__json_new_bool(!kv_gate_kept(q))) &&
        weft__json_set(e, "tokens", weft__json_new_int(q->all.n)) &&
        weft__json_set(e, "n_ctx", weft__json_new_int(q->n_ctx)) &&
        weft__json_set(e, "version", weft__json_new_string(WEFT_VERSION, strlen(WEFT_VERSION))))
        return kept_put(path, key, e);
    weft__json_free(&e);
    return 0;
}

void kv_gate_warn(const char *command, const weft_model *model, const char *type)
{
    char path[PATH_MAX], key[128], fingerprint[33], name[WEFT_KV_NAME_MAX];
    double kld = 0, top = 0, max_kld = 0, min_top = 0;
    int exceeded = 0;
    if (weft__place_in_cache(path, sizeof path, NAME) != 1) return;
    weft__json *kept = kept_read(path);
    if (!kept) return;
    weft_model_fingerprint(model, fingerprint);
    gate_key(fingerprint, weft_kv_type_name(kv_type_of(type), name), key);
    const weft__json *e = weft__json_get(kept, key);
    if (weft__json_bool(weft__json_get(e, "exceeded"), &exceeded) && exceeded &&
        weft__json_double(weft__json_get(e, "kld_mean"), &kld) &&
        weft__json_double(weft__json_get(e, "same_top"), &top) &&
        weft__json_double(weft__json_get(e, "max_kld"), &max_kld) &&
        weft__json_double(weft__json_get(e, "min_top"), &min_top))
        fprintf(stderr,
                "weft %s: keys and values in %s were measured on this model ('weft eval kv'), and are further from f16 "
                "than was allowed: mean divergence %.4f (at most %g), same likeliest token %.2f%% (at least %g%%)\n",
                command, type, kld, max_kld, 100 * top, 100 * min_top);
    weft__json_free(&kept);
}
