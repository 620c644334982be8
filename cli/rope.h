// SPDX-License-Identifier: Apache-2.0
/* rope.h: options that stretch a model's context, as llama.cpp's users know them: of every command in which a context
 * is chosen. */
#ifndef WEFT_CLI_ROPE_H
#define WEFT_CLI_ROPE_H

#include "options.h"
#include "weft/weft.h"

typedef struct rope_options {
    const char *scaling; /* "none", "linear", "yarn"; NULL: the file's */
    float freq_scale;    /* 1 / factor; 0: not given */
    int linear;          /* --yarn-ext-factor 0: nothing of YaRN is left */
    float ext_factor;
    weft_rope_params params; /* complete after rope_options_check */
} rope_options;

/* r: rope_options * */
/* clang-format off */
#define ROPE_OPTIONS(r)                                                                                               \
    {"rope-scaling", 0, OPT_TEXT, &(r)->scaling, "S",                                                                 \
     "positions beyond the trained context: none, linear, yarn (the file's)",                                         \
     0, 0, NULL, "none linear yarn"},                                                                                 \
    {"rope-scale", 0, OPT_FLOAT, &(r)->params.factor, "N", "the context becomes N times as long (the file's)",        \
     OPTION_ABOVE_0, OPTION_FINITE, NULL},                                                                            \
    {"rope-freq-base", 0, OPT_FLOAT, &(r)->params.freq_base, "X",                                                     \
     "base of the frequencies (the file's)", OPTION_ABOVE_0,                                                          \
     OPTION_FINITE, NULL},                                                                                            \
    {"rope-freq-scale", 0, OPT_FLOAT, &(r)->freq_scale, "X",                                                          \
     "the same as --rope-scale 1/X", OPTION_ABOVE_0, OPTION_FINITE,                                                   \
     NULL},                                                                                                           \
    {"yarn-orig-ctx", 0, OPT_INT, &(r)->params.orig_ctx, "N",                                                         \
     "the context that is stretched (the file's)", 0, 1 << 28, NULL},                                                 \
    {"yarn-ext-factor", 0, OPT_FLOAT, &(r)->ext_factor, "X",                                                          \
     "how much of YaRN's ramp is mixed in, 0: as linear (1)", 0,                                                      \
     OPTION_FINITE, &(r)->linear},                                                                                    \
    {"yarn-attn-factor", 0, OPT_FLOAT, &(r)->params.attn_factor, "X",                                                 \
     "scores are scaled by its square (the file's, 1)",                                                               \
     OPTION_ABOVE_0, OPTION_FINITE, NULL},                                                                            \
    {"yarn-beta-fast", 0, OPT_FLOAT, &(r)->params.beta_fast, "X",                                                     \
     "turns above which frequencies stay (the file's, 32)",                                                           \
     OPTION_ABOVE_0, OPTION_FINITE, NULL},                                                                            \
    {"yarn-beta-slow", 0, OPT_FLOAT, &(r)->params.beta_slow, "X",                                                     \
     "turns below which they are stretched (the file's, 1)",                                                          \
     OPTION_ABOVE_0, OPTION_FINITE, NULL}
/* clang-format on */

/* Completes r->params from what was given; 0 after a message (EXIT_USAGE). */
int rope_options_check(const char *command, rope_options *r);

#endif
