// SPDX-License-Identifier: Apache-2.0
/* http_url.c: where URLs lead, and which servers may see the token (http.h). libcurl's parser does the reading. No
 * state. */
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "hub/http.h"

/* One part of a URL; "" when absent. Returns 0 when it does not fit. */
static int get_part(CURLU *u, CURLUPart part, char *out, size_t capacity)
{
    char *text = NULL;
    size_t n = 0;
    if (curl_url_get(u, part, &text, part == CURLUPART_PORT ? CURLU_DEFAULT_PORT : 0) == CURLUE_OK && text)
        n = strlen(text);
    int fits = n < capacity;
    if (fits && n) memcpy(out, text, n);
    out[fits ? n : 0] = 0;
    curl_free(text);
    return fits;
}

typedef struct origin {
    char scheme[16], host[256], port[8];
} origin;

static int get_origin(CURLU *u, origin *o)
{
    return get_part(u, CURLUPART_SCHEME, o->scheme, sizeof o->scheme) &&
           get_part(u, CURLUPART_HOST, o->host, sizeof o->host) &&
           get_part(u, CURLUPART_PORT, o->port, sizeof o->port) && o->host[0] &&
           (!strcasecmp(o->scheme, "http") || !strcasecmp(o->scheme, "https"));
}

static int same(const origin *a, const origin *b)
{
    return !strcasecmp(a->scheme, b->scheme) && !strcasecmp(a->host, b->host) && !strcmp(a->port, b->port);
}

/* A parsed URL, or NULL; credentials in it are refused. curl_url_cleanup by the caller. */
static CURLU *parse(const char *url)
{
    CURLU *u = curl_url();
    if (u && curl_url_set(u, CURLUPART_URL, url, CURLU_DISALLOW_USER)) {
        curl_url_cleanup(u);
        u = NULL;
    }
    return u;
}

weft_status weft__hub_http_join(const char *url, const char *location, char **out, int *same_origin, weft_error *err)
{
    origin before, after;
    char *text = NULL;
    weft_status st = WEFT_OK;
    *out = NULL;
    CURLU *u = parse(url);
    if (!u || !get_origin(u, &before)) {
        st = weft_fail(err, WEFT_FORMAT, "not a web address");
    } else if (curl_url_set(u, CURLUPART_URL, location, CURLU_DISALLOW_USER) || !get_origin(u, &after)) {
        st = weft_fail(err, WEFT_FORMAT, "%s redirects to an address that is refused", before.host);
    } else if (!strcasecmp(before.scheme, "https") && strcasecmp(after.scheme, "https")) {
        st = weft_fail(err, WEFT_FORMAT, "%s redirects from https to unprotected http (%s): refused", before.host,
                       after.host);
    } else if (curl_url_get(u, CURLUPART_URL, &text, 0) || !(*out = weft__strdup(text))) {
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory for an address");
    } else {
        *same_origin = same(&before, &after);
    }
    curl_free(text);
    curl_url_cleanup(u);
    return st;
}

int weft__hub_http_is_safe(const char *url)
{
    origin o;
    CURLU *u = parse(url);
    int ok = u && get_origin(u, &o) &&
             (!strcasecmp(o.scheme, "https") || !strcasecmp(o.host, "localhost") || !strcmp(o.host, "[::1]") ||
              (!strncmp(o.host, "127.", 4) && strspn(o.host, "0123456789.") == strlen(o.host)));
    curl_url_cleanup(u);
    return ok;
}

int weft__hub_http_is_plain(const char *url, char *host, size_t capacity)
{
    origin o;
    char rest[4];
    CURLU *u = parse(url);
    int ok = u && get_origin(u, &o) && get_part(u, CURLUPART_QUERY, rest, sizeof rest) && !rest[0] &&
             get_part(u, CURLUPART_FRAGMENT, rest, sizeof rest) && !rest[0] && strlen(o.host) < capacity;
    if (capacity) snprintf(host, capacity, "%s", ok ? o.host : "");
    curl_url_cleanup(u);
    return ok;
}
