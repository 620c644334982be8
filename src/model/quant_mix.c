// SPDX-License-Identifier: Apache-2.0
/* quant_mix.c: the rules of the mixes. They are facts about the files that people exchange: which tensors of a "Q4_K_M"
 * are Q6_K, and so on. */
#include "model/quant_mix.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum variant { PLAIN, SMALL, MEDIUM, LARGE };

struct weft__mix {
    const char *name;
    uint32_t base, file_type;
    enum variant variant;
};

static const weft__mix MIXES[] = {
    {"F32", WEFT_F32, 0, PLAIN},        {"F16", WEFT_F16, 1, PLAIN},       {"BF16", WEFT_BF16, 32, PLAIN},
    {"Q8_0", WEFT_Q8_0, 7, PLAIN},      {"Q4_0", WEFT_Q4_0, 2, PLAIN},     {"Q4_1", WEFT_Q4_1, 3, PLAIN},
    {"Q5_0", WEFT_Q5_0, 8, PLAIN},      {"Q5_1", WEFT_Q5_1, 9, PLAIN},     {"Q2_K", WEFT_Q2_K, 10, PLAIN},
    {"Q3_K_S", WEFT_Q3_K, 11, SMALL},   {"Q3_K_M", WEFT_Q3_K, 12, MEDIUM}, {"Q3_K_L", WEFT_Q3_K, 13, LARGE},
    {"Q4_K_S", WEFT_Q4_K, 14, SMALL},   {"Q4_K_M", WEFT_Q4_K, 15, MEDIUM}, {"Q5_K_S", WEFT_Q5_K, 16, SMALL},
    {"Q5_K_M", WEFT_Q5_K, 17, MEDIUM},  {"Q6_K", WEFT_Q6_K, 18, PLAIN},    {"IQ4_NL", WEFT_IQ4_NL, 25, PLAIN},
    {"IQ4_XS", WEFT_IQ4_XS, 30, PLAIN},
};
/* Other spellings that people type. */
static const struct {
    const char *name, *means;
} ALIASES[] = {{"Q3_K", "Q3_K_M"}, {"Q4_K", "Q4_K_M"}, {"Q5_K", "Q5_K_M"}};

const weft__mix *weft__mix_find(const char *name)
{
    for (size_t i = 0; i < sizeof ALIASES / sizeof *ALIASES; i++)
        if (!strcasecmp(name, ALIASES[i].name)) name = ALIASES[i].means;
    for (size_t i = 0; i < sizeof MIXES / sizeof *MIXES; i++)
        if (!strcasecmp(name, MIXES[i].name)) return &MIXES[i];
    return NULL;
}

const char *weft__mix_names(void)
{
    return "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K_S, Q3_K_M, Q3_K_L, Q4_K_S, Q4_K_M, Q5_K_S, "
           "Q5_K_M, Q6_K, IQ4_NL, IQ4_XS";
}

uint32_t weft__mix_file_type(const weft__mix *mix)
{
    return mix->file_type;
}

static int ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

/* First and last eighth of the layers, and every third in between. */
static int deserves_more(int32_t i, int32_t n)
{
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

static uint32_t attn_v_type(const weft__mix *mix, const weft__mix_model *m, int32_t layer)
{
    int shared = m->n_kv_heads > 0 && m->n_heads / m->n_kv_heads >= 4;
    uint32_t t = mix->base;
    if (mix->base == WEFT_Q2_K) t = shared ? WEFT_Q4_K : WEFT_Q3_K;
    else if (mix->base == WEFT_Q3_K && mix->variant == MEDIUM) t = layer < 2 ? WEFT_Q5_K : WEFT_Q4_K;
    else if (mix->base == WEFT_Q3_K && mix->variant == LARGE) t = WEFT_Q5_K;
    else if ((mix->base == WEFT_IQ4_NL || mix->base == WEFT_IQ4_XS) && shared) t = WEFT_Q5_K;
    else if (mix->variant == MEDIUM && deserves_more(layer, m->n_layers)) t = WEFT_Q6_K;
    else if (mix->base == WEFT_Q4_K && mix->variant == SMALL && layer < 4) t = WEFT_Q5_K;
    if (m->n_layers == 80 && (t == WEFT_Q3_K || t == WEFT_Q4_K))
        t = WEFT_Q5_K; /* eight heads share it in the 70B models */
    return m->n_experts == 8 ? WEFT_Q8_0 : t;
}

static uint32_t ffn_down_type(const weft__mix *mix, const weft__mix_model *m, int32_t layer)
{
    int early = layer < m->n_layers / 8;
    if (mix->base == WEFT_Q2_K) return WEFT_Q3_K;
    if (mix->base == WEFT_Q3_K && mix->variant == MEDIUM) return layer < m->n_layers / 16 ? WEFT_Q5_K : WEFT_Q4_K;
    if (mix->base == WEFT_Q3_K && mix->variant == LARGE) return WEFT_Q5_K;
    if (mix->variant == MEDIUM && deserves_more(layer, m->n_layers)) return WEFT_Q6_K;
    if (mix->base == WEFT_Q4_K && mix->variant == SMALL && early) return WEFT_Q5_K;
    if ((mix->base == WEFT_IQ4_NL || mix->base == WEFT_IQ4_XS) && early && !m->has_imatrix) return WEFT_Q5_K;
    if (mix->base == WEFT_Q4_0 && early && m->has_imatrix) return WEFT_Q4_1;
    if (mix->base == WEFT_Q5_0 && early && m->has_imatrix) return WEFT_Q5_1;
    return mix->base;
}

static uint32_t attn_output_type(const weft__mix *mix, const weft__mix_model *m)
{
    if (m->n_experts == 8) {
        int small = mix->base == WEFT_Q2_K || mix->base == WEFT_Q3_K || mix->base == WEFT_Q4_K ||
                    mix->base == WEFT_IQ4_NL || mix->base == WEFT_IQ4_XS;
        return small && mix->variant != LARGE ? WEFT_Q5_K : mix->base;
    }
    if (mix->base == WEFT_Q2_K) return WEFT_Q3_K;
    if (mix->base == WEFT_Q3_K && mix->variant == MEDIUM) return WEFT_Q4_K;
    if (mix->base == WEFT_Q3_K && mix->variant == LARGE) return WEFT_Q5_K;
    return mix->base;
}

static uint32_t attn_qkv_type(const weft__mix *mix)
{
    if (mix->base == WEFT_Q3_K && mix->variant >= MEDIUM) return WEFT_Q4_K;
    if (mix->base == WEFT_Q4_K && mix->variant == MEDIUM) return WEFT_Q5_K;
    if (mix->base == WEFT_Q5_K && mix->variant == MEDIUM) return WEFT_Q6_K;
    return mix->base;
}

/* What the mix wants, whether or not the rows fit. */
static uint32_t wanted_type(const weft__mix *mix, const weft__mix_model *m, const char *name)
{
    int layer = 0;
    int is_float = mix->base == WEFT_F32 || mix->base == WEFT_F16 || mix->base == WEFT_BF16;
    if (m->pure || is_float || mix->base == WEFT_Q8_0) return mix->base;
    if (!strcmp(name, "output.weight") || (m->tied && !strcmp(name, "token_embd.weight"))) return WEFT_Q6_K;
    if (sscanf(name, "blk.%d.", &layer) != 1) return mix->base;
    if (ends_with(name, ".attn_v.weight")) return attn_v_type(mix, m, layer);
    if (ends_with(name, ".attn_k.weight")) return m->n_experts == 8 ? WEFT_Q8_0 : mix->base;
    if (ends_with(name, ".ffn_down.weight") || ends_with(name, ".ffn_down_exps.weight"))
        return ffn_down_type(mix, m, layer);
    if (ends_with(name, ".attn_output.weight")) return attn_output_type(mix, m);
    if (ends_with(name, ".attn_qkv.weight")) return attn_qkv_type(mix);
    return mix->base;
}

uint32_t weft__mix_fitting(uint32_t type, int64_t k)
{
    if (k % weft_dtype_describe(type).block_elems == 0) return type;
    switch (type) {
    case WEFT_Q4_K: type = WEFT_Q5_0; break;
    case WEFT_Q5_K: type = WEFT_Q5_1; break;
    case WEFT_Q6_K: type = WEFT_Q8_0; break;
    default: type = WEFT_IQ4_NL; break;
    }
    return k % 32 == 0 ? type : WEFT_F16;
}

uint32_t weft__mix_type(const weft__mix *mix, const weft__mix_model *m, const char *name, int n_dims, int64_t k,
                        uint32_t now, uint32_t *wanted)
{
    *wanted = now;
    if (n_dims < 2 || !ends_with(name, "weight") || ends_with(name, "_norm.weight") ||
        ends_with(name, ".ffn_gate_inp.weight") || !strcmp(name, "rope_freqs.weight"))
        return now;
    *wanted = wanted_type(mix, m, name);
    return weft__mix_fitting(*wanted, k);
}
