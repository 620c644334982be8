// SPDX-License-Identifier: Apache-2.0
/* aside.h: embeddings of texts that are wanted for a request besides its own prompt: by its router, of memories.
 * Workers, which wait for the engine meanwhile, between weft__server_disk_enter and _leave. */
#ifndef WEFT_SERVER_ASIDE_H
#define WEFT_SERVER_ASIDE_H

#include "server/server.h"

enum { WEFT__SERVER_ASIDE_TEXTS = 33 };

typedef struct weft__server_aside_text {
    const char *text; /* [n], of which the first tokens are taken */
    size_t n;
} weft__server_aside_text;

/* For whom, in which model's engine (without adapters); n_body: bytes of the request's body. */
typedef struct weft__server_aside {
    weft__server_model *m; /* held */
    const weft__server_caller *who;
    const char *tenant;
    size_t n_body;
} weft__server_aside;

/* Vectors [n][*dims], at most WEFT__SERVER_ASIDE_TEXTS: one of zeros is not there, as the engine had no room for it or
 * did not get it done in time. They count to the caller's limits and use as prompts do. NULL: there are none, as the
 * limits have no room for them, too. To be freed. */
float *weft__server_aside_embed(const weft__server_aside *a, const weft__server_aside_text *texts, size_t n, int *dims);

#endif
