// SPDX-License-Identifier: Apache-2.0
/* rope.h: frequencies of rotary position embedding: the same numbers for all that run a graph. Reentrant. */
#ifndef WEFT_GRAPH_ATTR_ROPE_H
#define WEFT_GRAPH_ATTR_ROPE_H

#include "weft/graph.h"

/* freq [n_rot / 2]: radians per position of every pair (weft_attr_rope). factors [n_rot / 2] or NULL: all 1. */
void weft__graph_rope_frequencies(const weft_attr_rope *a, const float *factors, double *freq);

#endif
