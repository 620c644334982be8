// SPDX-License-Identifier: Apache-2.0
/* kv_quality.h: what a type of keys and values costs a model: the figures of weft eval kv, how they are told, drawn and
 * kept. One thread.
 *
 * Everything is measured against pages of F16 over the same weights: the divergence of the next token's probabilities
 * on a text, by depth, beside that of F32, which no type can be expected to be below; and whether what stands far back
 * is found again (kv_recall.h), for both types, so that a model that finds nothing is not the type's fault. */
#ifndef WEFT_CLI_KV_QUALITY_H
#define WEFT_CLI_KV_QUALITY_H

#include "base/text.h"
#include "eval/divergence.h"
#include "weft/weft.h"

enum { KV_DEPTHS = 24, KV_FIRST_DEPTH = 64 }; /* tokens of the first range of depths; each other is twice as long */
/* F16, and the type that is measured; F32, for the divergence alone: what rounding does, as of activations in 8 bits */
enum { KV_BASE, KV_TYPE, KV_BOTH, KV_FLOOR = KV_BOTH, KV_ALL };

/* Of one test at one distance: tries, and how many came out right under either type. */
typedef struct kv_rate {
    int32_t depth, n, hits[KV_BOTH];
} kv_rate;

typedef struct kv_quality {
    const char *type; /* as it was given */
    char model[128];
    char fingerprint[33];
    int32_t n_ctx, n_texts;                     /* tokens of a context; contexts that the text was cut into */
    weft__eval_totals all, by_depth[KV_DEPTHS]; /* by the position whose probabilities they are */
    kv_rate passkey[KV_DEPTHS], copy[KV_DEPTHS];
    int n_passkey, n_copy;
    weft__eval_totals floor; /* of F32; none where the type is F32 */
    double max_kld, min_top; /* the gate: mean divergence at most, share of the same likeliest token at least */
} kv_quality;

void kv_quality_free(kv_quality *q);
/* Which of by_depth a position belongs to, and where that begins. */
int kv_depth_of(int32_t position);
int32_t kv_depth_begin(int depth);

typedef struct kv_figures {
    double kld, p999, most, same_top; /* most: the largest divergence */
} kv_figures;

/* Of sums with a token at least; sorts them. */
kv_figures kv_figures_of(weft__eval_totals *s);
/* Is the type as good as the gate asks? */
int kv_gate_kept(kv_quality *q);

/* kv_report.c: for people, and as one JSON object, both on stdout. */
void kv_print(kv_quality *q);
weft_status kv_print_json(kv_quality *q, weft_error *err);
/* kv_svg.c: a picture of both parts over the depth. */
weft_status kv_draw(kv_quality *q, const char *path, weft_error *err);

/* kv_gate.c: keeps what was measured, by model and type, in kv-gates.json of the cache; 0: it could not be kept. */
int kv_gate_keep(kv_quality *q);
/* A line on stderr, where this model was measured with this type and its gate was exceeded. */
void kv_gate_warn(const char *command, const weft_model *model, const char *type);

#endif
