// SPDX-License-Identifier: Apache-2.0
/* http.h: GET and POST over HTTP; the only door to libcurl.
 *
 * Invariant: a token travels only to the origin (scheme, host, port) of the URL that the caller gave, over TLS or to
 * this very machine (or wherever a direct call goes); one redirect elsewhere and it is dropped for good. Redirects are
 * followed here, at most WEFT__HUB_HTTP_REDIRECTS, never from https to http, never with credentials in the URL. Proxies
 * come from the environment (https_proxy, no_proxy). One thread per weft__hub_http. */
#ifndef WEFT_HUB_HTTP_H
#define WEFT_HUB_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "weft/error.h"

#define WEFT__HUB_HTTP_REDIRECTS 8
#define WEFT__HUB_HTTP_ETAG 256
#define WEFT__HUB_HTTP_TOKEN 4096 /* bytes of a token at most */

typedef struct weft__hub_http weft__hub_http;

/* What the last response said; empty strings and -1 where it said nothing. */
typedef struct weft__hub_http_reply {
    long status;
    int64_t length;                               /* Content-Length: bytes of this body */
    int64_t range_first, range_last, range_total; /* Content-Range, inclusive; total -1 for "*" */
    char etag[WEFT__HUB_HTTP_ETAG];               /* as written: "..." or W/"..." */
    char linked_etag[WEFT__HUB_HTTP_ETAG];        /* X-Linked-Etag of the first origin, without quotes */
    int64_t linked_size;                          /* X-Linked-Size of the first origin */
    char message[256];                            /* X-Error-Message, printable ASCII */
    char next[2048];                              /* Link: <...>; rel="next", made absolute */
    int transient;                                /* on failure: trying again may help */
} weft__hub_http_reply;

typedef struct weft__hub_http_call {
    const char *url;
    const char *token;    /* NULL: none */
    uint64_t from;        /* > 0: asks for the bytes from here on */
    const char *if_range; /* with from: only if the content still has this ETag; NULL or "": unconditional */
    /* 1: of a server that the user named, not of a hub: the token goes there over plain HTTP, too; redirects are not
     * followed; this machine is asked without a proxy; messages name no settings of downloads. */
    int direct;
    const char *unix_path;   /* connect to this socket instead of the URL's host; NULL: no */
    const char *authorities; /* PEM file of whom certificates are trusted; NULL: $SSL_CERT_FILE, else the system's */
    const char *post;        /* JSON of n_post bytes: the call is a POST of it; NULL: a GET */
    size_t n_post;
    int total_limit; /* 1: the whole call is limited to ten times the timeout (for answers that should be small) */
    /* Bytes of a 2xx body as they come; *reply is complete but for `transient`. Whatever it returns but WEFT_OK ends
     * the call. */
    weft_status (*body)(void *arg, const weft__hub_http_reply *reply, const void *bytes, size_t n, weft_error *err);
    int (*poll)(void *arg); /* at least once a second; non-zero cancels. May be NULL */
    void *arg;
} weft__hub_http_call;

/* timeout_s: seconds to connect, and seconds in which next to nothing may arrive. */
weft_status weft__hub_http_open(int timeout_s, weft__hub_http **out, weft_error *err);
void weft__hub_http_close(weft__hub_http **h);
/* WEFT_OK once a final response was read to its end, whatever its status. Fails with WEFT_IO (network, TLS; the message
 * names the host), WEFT_FORMAT (a redirect or header that is refused), WEFT_CANCELLED, WEFT_NO_MEMORY, or with what
 * `body` returned. */
weft_status weft__hub_http_get(weft__hub_http *h, const weft__hub_http_call *call, weft__hub_http_reply *reply,
                               weft_error *err);

/* Where a redirect from `url` with header value `location` leads: the absolute URL, freed with weft__free. *same_origin
 * tells whether scheme, host and port stay. Fails with WEFT_FORMAT for what is refused. */
weft_status weft__hub_http_join(const char *url, const char *location, char **out, int *same_origin, weft_error *err);
/* Whether a token may be sent to this URL at all: https, or http to this machine. */
int weft__hub_http_is_safe(const char *url);
/* The host of a URL, for messages and checks. Returns 0 when it is no http or https URL, or has credentials, a query or
 * a fragment. */
int weft__hub_http_is_plain(const char *url, char *host, size_t capacity);

#endif
