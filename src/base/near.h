// SPDX-License-Identifier: Apache-2.0
/* near.h: the name that a word nearly spells. Pure. */
#ifndef WEFT_BASE_NEAR_H
#define WEFT_BASE_NEAR_H

#include <stddef.h>

/* Name number i of a list, NULL behind its end. */
typedef const char *(*weft__near_name)(const void *arg, size_t i);

/* The name that is nearest to `word`: one insertion, omission, other letter or two neighbours in each other's place per
 * three of its letters, and for short words one. Of several, one that begins as it does, then one that is as long.
 * NULL: none is as near, or two are as near as each other. */
const char *weft__near_match(const char *word, weft__near_name name, const void *arg);

#endif
