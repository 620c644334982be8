// SPDX-License-Identifier: Apache-2.0
/* served.h: the models that weft serve has beside its own: named one by one, or found in folders. One thread. */
#ifndef WEFT_CLI_SERVED_H
#define WEFT_CLI_SERVED_H

#include "options.h"
#include "weft/server.h"

typedef struct served_models {
    weft_server_source *items; /* [n], with what they name owned */
    int32_t n, capacity;
} served_models;

weft_status served_models_add(served_models *all, const char *name, const char *path, int is_pinned, weft_error *err);
/* Adds those of options NAME=PATH, then those in the folders, then, where there are none and `pulled` says so, all that
 * were pulled. In a folder a GGUF file or a folder of Hugging Face is a model; its name is its path within, without
 * .gguf. Of what has one name, the first counts. WEFT_ARGUMENT, WEFT_IO, WEFT_NOT_FOUND, WEFT_NO_MEMORY. */
weft_status served_models_find(served_models *all, const struct text_list *named, const struct text_list *folders,
                               int pulled, weft_error *err);
/* Pins those of the list; WEFT_ARGUMENT where one is none of them. */
weft_status served_models_pin(served_models *all, const struct text_list *names, weft_error *err);
void served_models_free(served_models *all);

#endif
