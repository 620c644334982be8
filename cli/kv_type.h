// SPDX-License-Identifier: Apache-2.0
/* kv_type.h: the option --kv-type, as all commands have it. */
#ifndef WEFT_CLI_KV_TYPE_H
#define WEFT_CLI_KV_TYPE_H

#include <stdint.h>

#include "weft/buffer.h"

/* The last words of an option_spec, and what completion offers. */
#define KV_TYPE_WORDS "f16 f32 q8"
#define KV_TYPE_OPTION(to, usual)                                                                                      \
    {                                                                                                                  \
        "kv-type", 0, OPT_TEXT, to, "TYPE", "keys and values as f16, f32 or q8 (" usual ")", 0, 0, NULL, KV_TYPE_WORDS \
    }

/* Of what the option's words let through. */
static inline uint32_t kv_type_of(const char *text)
{
    uint32_t type = WEFT_F16;
    (void)weft_kv_type_parse(text, &type, NULL);
    return type;
}

#endif
