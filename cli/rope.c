// SPDX-License-Identifier: Apache-2.0
/* rope.c: see rope.h. */
#include "rope.h"

#include <stdio.h>
#include <string.h>

static int rope_refuse(const char *command, const char *why)
{
    fprintf(stderr, "weft %s: %s\n", command, why);
    return 0;
}

int rope_options_check(const char *command, rope_options *r)
{
    static const char *const names[] = {"none", "linear", "yarn"};
    weft_rope_params *p = &r->params;
    for (int i = 0; r->scaling && i < 3; i++)
        if (!strcmp(r->scaling, names[i])) p->scaling = WEFT_ROPE_SCALING_NONE + i;
    if (r->freq_scale > 0 && p->factor > 0)
        return rope_refuse(command, "--rope-scale and --rope-freq-scale exclude each other");
    if (r->freq_scale > 0) p->factor = 1 / r->freq_scale;
    if (p->scaling == WEFT_ROPE_SCALING_NONE && p->factor > 0)
        return rope_refuse(command, "--rope-scaling none stretches nothing; leave out its factor");
    if (r->linear && r->ext_factor == 0)
        p->scaling = p->scaling == WEFT_ROPE_SCALING_NONE ? p->scaling : WEFT_ROPE_SCALING_LINEAR;
    else p->ext_factor = r->ext_factor;
    return 1;
}
