// SPDX-License-Identifier: Apache-2.0
/* quant_mix.h: which type each tensor of a model gets when it is quantized: the mixes that go by llama.cpp's names, so
 * that files of the two engines have the same sizes. */
#ifndef WEFT_MODEL_QUANT_MIX_H
#define WEFT_MODEL_QUANT_MIX_H

#include "weft/buffer.h"

typedef struct weft__mix weft__mix;

/* The mix of that name ("Q4_K_M"; case does not matter), or NULL. */
const weft__mix *weft__mix_find(const char *name);
/* All names, separated by ", ". */
const char *weft__mix_names(void);
/* general.file_type of such a file. */
uint32_t weft__mix_file_type(const weft__mix *mix);

/* What the rules look at. */
typedef struct weft__mix_model {
    int32_t n_layers, n_heads, n_kv_heads, n_experts;
    int tied; /* there is no output.weight */
    int has_imatrix;
    int pure;
} weft__mix_model;

/* `type`, if rows of k elements are a multiple of its block; else the nearest type with blocks of 32, or, where k is no
 * multiple of 32, F16. */
uint32_t weft__mix_fitting(uint32_t type, int64_t k);
/* The type for the tensor `name` of n_dims dimensions with rows of k elements; `now` is its type, which it keeps when
 * it is not to be quantized. *wanted is what the rules say: another than the result where k is no multiple of its
 * block. */
uint32_t weft__mix_type(const weft__mix *mix, const weft__mix_model *model, const char *name, int n_dims, int64_t k,
                        uint32_t now, uint32_t *wanted);

#endif
