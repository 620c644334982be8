// SPDX-License-Identifier: Apache-2.0
/* top_slots.h: the slots of each model that a server has loaded, as its /v1/models and /slots tell them. One thread. */
#ifndef WEFT_CLI_TOP_SLOTS_H
#define WEFT_CLI_TOP_SLOTS_H

#include "top_server.h"

enum { TOP_MODELS_MAX = 32 };

typedef struct top_slots {
    int n, n_models; /* n_models: those that have slots of their own, loaded or not */
    struct top_slots_of {
        char *model, *text; /* free(); model "": the only one. text: JSON */
    } of[TOP_MODELS_MAX];
} top_slots;

/* Zero-initialise *out, which is then replaced. Nothing is loaded for it; a model whose slots the server does not tell
 * is left out. Fails, with *out as it was, where the server does not answer at all, or with WEFT_NO_MEMORY. */
weft_status top_slots_get(top_server *s, top_slots *out, weft_error *err);
void top_slots_free(top_slots *slots);

#endif
