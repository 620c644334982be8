// SPDX-License-Identifier: Apache-2.0
/* id.c: the content id of an adapter: a digest of all that decides what it computes, the same for a GGUF file and for
 * the folder that it was converted from. SHA-256, since prefixes of one adapter must not be taken for another's,
 * even where files were made for that. */
#include <string.h>

#include "adapt/parts.h"
#include "base/background.h"
#include "base/sha256.h"

/* In pieces, since it takes a while. */
static weft_status add_values(weft__sha256 *h, const float *x, size_t n_bytes, weft_error *err)
{
    enum { AT_ONCE = 65536 };
    weft_status st = WEFT_OK;
    for (size_t at = 0; at < n_bytes && !st; at += AT_ONCE) {
        size_t some = n_bytes - at < AT_ONCE ? n_bytes - at : AT_ONCE;
        st = weft__sha256_add(h, (const char *)x + at, some, err);
        weft__background_did(some);
    }
    return st;
}

static weft_status add_pair(weft__sha256 *h, const weft__adapt_pair *p, uint64_t *n_bytes, weft_error *err)
{
    int64_t shape[] = {p->k, p->n, p->n_experts, p->rank, p->magnitude != NULL};
    size_t n_a = (size_t)(p->n_experts * p->rank * p->k) * sizeof(float),
           n_b = (size_t)(p->n_experts * p->n * p->rank) * sizeof(float);
    size_t n_m = (size_t)weft__adapt_n_magnitudes(p) * sizeof(float);
    weft_status st;
    if ((st = weft__sha256_add(h, p->name, strlen(p->name) + 1, err)) ||
        (st = weft__sha256_add(h, shape, sizeof shape, err)) ||
        (st = weft__sha256_add(h, &p->scale, sizeof p->scale, err)) || (st = add_values(h, p->a, n_a, err)) ||
        (st = add_values(h, p->b, n_b, err)))
        return st;
    *n_bytes += n_a + n_b + n_m;
    return n_m ? add_values(h, p->magnitude, n_m, err) : WEFT_OK;
}

weft_status weft__adapt_identify(weft__adapt *a, weft_error *err)
{
    weft__sha256 h = {0};
    weft_status st = weft__sha256_begin(&h, err);
    a->n_bytes = 0;
    for (int32_t i = 0; i < a->n_pairs && !st; i++) st = add_pair(&h, &a->pairs[i], &a->n_bytes, err);
    if (st) {
        weft__sha256_free(&h);
        return st;
    }
    weft__sha256_end_words(&h, a->id.word);
    return WEFT_OK;
}
