// SPDX-License-Identifier: Apache-2.0
/* kv_type.h: the option --kv-type, as all commands have it. */
#ifndef WEFT_CLI_KV_TYPE_H
#define WEFT_CLI_KV_TYPE_H

#include <stdint.h>
#include <stdio.h>

#include "weft/buffer.h"

/* The last words of an option_spec but for its check, and what completion offers. */
#define KV_TYPE_WORDS "f16 f32 bf16 f8 q8 q4"
#define KV_TYPE_OPTION(to, usual)                                                                                      \
    {                                                                                                                  \
        "kv-type", 0, OPT_TEXT, to, "TYPE",                                                                            \
            "keys and values as f16, f32, bf16, f8, q8 or q4, or as k=q8,v=q4; q4 leaves 2 layers at both ends in "    \
            "f16, or N with ,edges=N (" usual ")",                                                                     \
            0, 0, NULL, KV_TYPE_WORDS, kv_type_check                                                                   \
    }

static inline int kv_type_check(const char *text, char *why, size_t room)
{
    uint32_t type;
    weft_error err = {0};
    if (!weft_kv_type_parse(text, &type, &err)) return 1;
    snprintf(why, room, "%s", err.message);
    return 0;
}

/* Of what the option's check let through. */
static inline uint32_t kv_type_of(const char *text)
{
    uint32_t type = WEFT_F16;
    (void)weft_kv_type_parse(text, &type, NULL);
    return type;
}

/* --kv-types: names with commas between them. A pair as k=q8,v=q4, and edges=N, belong to the name that they stand in.
 * How many, into out[most]; -1: something is wrong, which `why` says. */
int kv_types_of(const char *text, uint32_t *out, int most, char *why, size_t room);
int kv_types_check(const char *text, char *why, size_t room);

#endif
