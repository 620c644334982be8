// SPDX-License-Identifier: Apache-2.0
/* top_server.h: what weft top asks of a server, over HTTP, HTTPS or a unix socket. One thread. */
#ifndef WEFT_CLI_TOP_SERVER_H
#define WEFT_CLI_TOP_SERVER_H

#include "hub/http.h"

typedef struct top_server {
    weft__hub_http *http;
    char url[512];       /* "https://host:port/prefix", without a slash at its end */
    char unix_path[108]; /* "": none */
    char key[WEFT__HUB_HTTP_TOKEN];
    const char *authorities; /* PEM file; NULL: the system's */
    int (*is_over)(void);    /* asked while an answer is waited for; non-zero ends that with WEFT_CANCELLED */
} top_server;

/* address: [http[s]://]HOST[:PORT][/PREFIX], HOST maybe [IPv6], or unix:PATH; ports are 8080 and 443 where none is
 * named. key, or the first of key_file: NULL for none. Fails with WEFT_ARGUMENT, WEFT_IO, WEFT_NOT_FOUND. To be closed
 * in any case. */
weft_status top_server_open(top_server *s, const char *address, const char *key, const char *key_file, weft_error *err);
void top_server_close(top_server *s);
/* The body of GET path, NUL-terminated; free(). WEFT_NOT_FOUND: the server answers, but not with that. */
weft_status top_server_get(top_server *s, const char *path, char **out, weft_error *err);

#endif
