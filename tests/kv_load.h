// SPDX-License-Identifier: Apache-2.0
/* kv_load.h: the first n tokens of a snapshot, all at once. */
#ifndef WEFT_TESTS_KV_LOAD_H
#define WEFT_TESTS_KV_LOAD_H

#include "kv/snapshot.h"

static inline weft_status kv_load(const weft__kv_snapshot *s, const weft__kv_layout *layout, int32_t n,
                                  weft__kv_seq *seq)
{
    uint64_t at = 0;
    int complete;
    weft_status st = weft__kv_snapshot_load_begin(s, layout, n, seq, NULL);
    return st ? st : weft__kv_snapshot_load_some(s, layout, n, seq, &at, UINT64_MAX, &complete, NULL);
}

#endif
