// SPDX-License-Identifier: Apache-2.0
/* spec.h: --spec: who guesses tokens ahead (weft_spec), for the commands that generate. */
#ifndef WEFT_CLI_SPEC_H
#define WEFT_CLI_SPEC_H

#include <string.h>

#include "options.h"
#include "weft/weft.h"

#define SPEC_OPTION(s)                                                                                                 \
    {                                                                                                                  \
        "spec", 0, OPT_TEXT, (s), "WHAT",                                                                              \
            "guesses tokens ahead, where that pays; answers stay the same: off, auto, suffix, draft (auto)", 0, 0,     \
            NULL, "off auto suffix draft"                                                                              \
    }

/* -1: none of these. */
static inline int32_t spec_of(const char *name)
{
    static const char *const names[] = {"off", "auto", "suffix", "draft"};
    for (int32_t i = 0; i < 4; i++)
        if (!strcmp(name, names[i])) return i;
    return -1;
}

#endif
