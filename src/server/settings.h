// SPDX-License-Identifier: Apache-2.0
/* settings.h: what each model of a server is opened with: the server's settings, or its own. Constant once they are
 * read, at the start. */
#ifndef WEFT_SERVER_SETTINGS_H
#define WEFT_SERVER_SETTINGS_H

#include "weft/server.h"

/* What a model is opened with. Strings of params are the caller's of weft_server_new, or copied here. */
typedef struct weft__server_settings {
    weft_model_params model;
    weft_engine_params engine; /* its store is the server's */
    char *chat_template;       /* NULL: the model's own */
    char *draft;               /* path of the model that guesses, or the name of a pulled one; NULL: none */
    char *adapter_dir;         /* links followed; NULL: none are loaded while it runs */
    struct weft__server_own_adapter {
        char *name, *path;
        float scale;
    } * adapters; /* [n_adapters] that come with it */
    size_t n_adapters;
} weft__server_settings;

struct weft__server_model;

/* With which m is opened: those of p, and where a source (may be NULL) has its own, those. Once; they are freed with m.
 * WEFT_ARGUMENT, WEFT_IO (the folder), WEFT_NO_MEMORY. */
weft_status weft__server_settings_read(struct weft__server_model *m, const weft_server_params *p,
                                       const weft_server_source *source, weft_error *err);
void weft__server_settings_free(weft__server_settings *s);

#endif
