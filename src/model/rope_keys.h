// SPDX-License-Identifier: Apache-2.0
/* rope_keys.h: a source whose keys about rope are those that were asked for, and for all else another's: what options
 * say is read where what a file says is, and so is the same, bit for bit. Read-only once made. */
#ifndef WEFT_MODEL_ROPE_KEYS_H
#define WEFT_MODEL_ROPE_KEYS_H

#include "model/source.h"
#include "weft/weft.h"

typedef struct weft__source_rope {
    const weft__source *of;
    int32_t n; /* 0: nothing was asked for */
    struct weft__source_rope_key {
        char key[112];
        weft__source_value value;
    } keys[12];
} weft__source_rope;

/* keys and of outlive *out. Fails with WEFT_ARGUMENT (a number out of range, by its name). */
weft_status weft__source_rope_make(const weft__source *of, const char *arch, const weft_rope_params *p,
                                   weft__source_rope *keys, weft__source *out, weft_error *err);

#endif
