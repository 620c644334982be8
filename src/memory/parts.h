// SPDX-License-Identifier: Apache-2.0
/* parts.h: what the files of this room share. */
#ifndef WEFT_MEMORY_PARTS_H
#define WEFT_MEMORY_PARTS_H

#include "memory/memory.h"

/* weft__memory_learn, with the store of m (events.c). */
weft_status weft__memory_learn_from(weft__learn_store *store, weft__memory *m, const char *tenant, int64_t event,
                                    int64_t *number, weft_error *err);

#endif
