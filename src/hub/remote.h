// SPDX-License-Identifier: Apache-2.0
/* remote.h: the server: its address, the token, listings, and what its refusals mean.
 *
 * Environment: HF_ENDPOINT (https://huggingface.co), HF_TOKEN, WEFT_PULL_TIMEOUT (seconds, 30), WEFT_PULL_RETRIES (5).
 * One thread per object. */
#ifndef WEFT_HUB_REMOTE_H
#define WEFT_HUB_REMOTE_H

#include "base/text.h"
#include "hub/http.h"
#include "hub/hub.h"

typedef struct weft__remote {
    weft__hub_http *http;
    char endpoint[1024]; /* no slash at its end */
    char host[256];
    const char *token; /* the environment's, checked; NULL: none */
    int retries;
    int (*poll)(void *arg); /* the caller's; non-zero cancels */
    void *arg;
} weft__remote;

/* Reads the environment. poll may be NULL. Fails with WEFT_ARGUMENT naming the variable that is wrong. */
weft_status weft__remote_open(weft__remote *r, int (*poll)(void *arg), void *arg, weft_error *err);
void weft__remote_close(weft__remote *r);
/* All files of the repository, sorted; weft__listing_free by the caller. */
weft_status weft__remote_list(weft__remote *r, const weft__hub_name *name, weft__listing *out, weft_error *err);
/* The address of one file, freed with weft__free; NULL without memory. */
char *weft__remote_file_url(const weft__remote *r, const weft__hub_name *name, const char *path);
/* One request that sends: the answer's body into *answer (16 MB at most), which the caller frees with
 * weft__strbuf_free. The token goes along where it may. Fails where there is no answer. */
weft_status weft__remote_send(weft__remote *r, weft__hub_http_call *call, weft__strbuf *answer,
                              weft__hub_http_reply *reply, weft_error *err);
/* Turns a status that is no success into an error that says what to do. Sets reply->transient where trying again may
 * help. */
weft_status weft__remote_refused(const weft__remote *r, const weft__hub_name *name, weft__hub_http_reply *reply,
                                 weft_error *err);
/* Waits before try number `tries` (from 1), longer each time, at most 8 s. Fails with WEFT_CANCELLED. */
weft_status weft__remote_pause(const weft__remote *r, int tries, weft_error *err);

#endif
