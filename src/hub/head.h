// SPDX-License-Identifier: Apache-2.0
/* head.h: where the head of a model file ends: metadata and the descriptions of tensors, which is all that sizes need.
 *
 * Nothing of it is understood here but lengths, each of which is checked against what there is; the file's own reader
 * judges the rest. Pure functions. */
#ifndef WEFT_HUB_HEAD_H
#define WEFT_HUB_HEAD_H

#include <stddef.h>
#include <stdint.h>

#define WEFT__HUB_HEAD_MAX ((uint64_t)256 << 20) /* bytes of a head that is fetched */

typedef enum weft__hub_head_found {
    WEFT__HUB_HEAD_WHOLE,
    WEFT__HUB_HEAD_MORE,
    WEFT__HUB_HEAD_NONE
} weft__hub_head_found;

/* Of a GGUF file that begins with p[0..n). WHOLE: *end is where its head ends, at most n. MORE: it is longer than n.
 * NONE: it is no GGUF file of version 2 or 3. */
weft__hub_head_found weft__hub_head_gguf(const uint8_t *p, size_t n, size_t *end);
/* The same of a safetensors file. */
weft__hub_head_found weft__hub_head_safetensors(const uint8_t *p, size_t n, size_t *end);

#endif
