// SPDX-License-Identifier: Apache-2.0
/* head.c: heads that are read (reader.c) are refused where they are for another host, from another origin, or announce
 * a body that could mean different things to us and to a proxy in front of us: two lengths, a length beside an
 * encoding, an encoding in HTTP/1.0, any but "chunked", a body where the method has none, a target that names another
 * host than Host. Runs on the loops. */
#include "http/parts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int is_text(const char *s)
{
    for (; *s; s++)
        if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7f) return 0;
    return 1;
}

static const char *place_pairs(struct weft__http_pair *pairs, size_t n, const char *s)
{
    for (size_t i = 0; i < n; i++) {
        pairs[i].name = s;
        s += strlen(s) + 1;
        pairs[i].value = s;
        s += strlen(s) + 1;
    }
    return s;
}

int weft__http_take_head(weft__http_request *r, weft__http_reader *reader)
{
    if (r->path || reader->text.failed || !reader->text.data) return !reader->text.failed;
    r->head = reader->text;
    reader->text = (weft__strbuf){0};
    r->path = r->head.data;
    r->modern = reader->is_modern;
    snprintf(r->method, sizeof r->method, "%s", reader->method);
    r->headers = weft__alloc_array(reader->n_headers, sizeof *r->headers);
    r->query = weft__alloc_array(reader->n_query, sizeof *r->query);
    if (!r->headers || !r->query) return 0;
    r->n_headers = reader->n_headers;
    r->n_query = reader->n_query;
    place_pairs(r->headers, r->n_headers, place_pairs(r->query, r->n_query, r->path + strlen(r->path) + 1));
    return 1;
}

int weft__http_has_word(const weft__http_request *r, const char *name, const char *word)
{
    const size_t n = strlen(word);
    for (size_t i = 0; i < r->n_headers; i++) {
        const char *s = r->headers[i].value;
        while (!strcasecmp(r->headers[i].name, name) && *s) {
            s += strspn(s, ", \t");
            size_t length = strcspn(s, ", \t");
            if (length == n && !strncasecmp(s, word, n)) return 1;
            s += length;
        }
    }
    return 0;
}

static int in_list(const char *const *list, const char *s, size_t n)
{
    for (; list && *list; list++)
        if (!strcmp(*list, "*") || (strlen(*list) == n && !strncasecmp(*list, s, n))) return 1;
    return 0;
}

/* Length of the name in "name:port" or "[::1]:port"; 0 when it is malformed. */
static size_t host_name(const char *host)
{
    const char *end;
    if (*host == '[') {
        end = strchr(host, ']');
        if (!end) return 0;
        end++;
    } else end = host + strcspn(host, ":");
    if (*end == ':' && strspn(end + 1, "0123456789") != strlen(end + 1)) return 0;
    if (*end && *end != ':') return 0;
    for (const char *p = host; p < end; p++)
        if (!isalnum((unsigned char)*p) && !strchr(".-_[]:%", *p)) return 0;
    return (size_t)(end - host);
}

/* Which page of the web a browser is on can be hidden by pointing the page's own name at 127.0.0.1 (DNS rebinding); the
 * Host header tells. */
static int host_allowed(const weft__http *h, const char *host)
{
    static const char *const own[] = {"localhost", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", NULL};
    size_t n = host_name(host);
    if (!n) return 0;
    if (!h->loopback)
        return !h->config.allow_hosts || !h->config.allow_hosts[0] || in_list(h->config.allow_hosts, host, n);
    if (in_list(own, host, n) || in_list(h->config.allow_hosts, host, n)) return 1;
    return (n > 10 && !strncasecmp(host + n - 10, ".localhost", 10)) ||
           (!strncmp(host, "127.", 4) && strspn(host, "0123456789.") == n);
}

static int same_origin(const char *origin, const char *host)
{
    const char *name = strstr(origin, "://");
    return name && host && !strcasecmp(name + 3, host);
}

static int wrong(const char **message, int status, const char *text)
{
    *message = text;
    return status;
}

/* Status and message of what is wrong with how the body is announced; 0: nothing. */
static int check_framing(const weft__http_request *r, const char **message)
{
    const char *length = weft__http_header(r, "Content-Length"), *encoding = weft__http_header(r, "Transfer-Encoding");
    if (weft__http_header_count(r, "Content-Length") > 1) return wrong(message, 400, "more than one Content-Length");
    if (weft__http_header_count(r, "Transfer-Encoding") > 1)
        return wrong(message, 400, "more than one Transfer-Encoding");
    if (length && encoding) return wrong(message, 400, "both Content-Length and Transfer-Encoding");
    if (encoding && !r->modern) return wrong(message, 400, "Transfer-Encoding in HTTP/1.0");
    if (encoding && strcasecmp(encoding, "chunked")) return wrong(message, 501, "Transfer-Encoding other than chunked");
    if (length && (!*length || strspn(length, "0123456789") != strlen(length)))
        return wrong(message, 400, "Content-Length is not a number");
    if (length && strlen(length) > 18) return wrong(message, 413, "the body is too long");
    if (weft__http_header(r, "Content-Encoding") && strcasecmp(weft__http_header(r, "Content-Encoding"), "identity"))
        return wrong(message, 415, "Content-Encoding is not supported");
    int no_body = strcmp(r->method, "POST") && strcmp(r->method, "PUT") && strcmp(r->method, "DELETE");
    if (no_body && (encoding || (length && strspn(length, "0") != strlen(length))))
        return wrong(message, 400, "this method has no body");
    return 0;
}

/* A target may be a whole address (RFC 9112 3.2.2), of the host that Host names, in the same words (and port); its path
 * is what counts. 0: of another. */
static int take_path(weft__http_request *r, const char *host)
{
    if (strncasecmp(r->path, "http://", 7) && strncasecmp(r->path, "https://", 8)) return 1;
    const char *name = strstr(r->path, "//") + 2;
    size_t n = strcspn(name, "/");
    if (!host || strlen(host) != n || strncasecmp(name, host, n)) return 0;
    r->path = name[n] ? name + n : "/";
    return 1;
}

int weft__http_check_head(weft__http_request *r, const char **message)
{
    const weft__http *h = r->http;
    const weft__http_config *config = &h->config;
    const char *host = weft__http_header(r, "Host"), *origin = weft__http_header(r, "Origin");
    if (r->connection->refuse == 429) return wrong(message, 429, "too many connections from this address");
    if (r->connection->refuse) return wrong(message, 503, "too many connections");
    if (weft__http_header_count(r, "Host") > 1) return wrong(message, 400, "more than one Host");
    if (!take_path(r, host)) return wrong(message, 400, "the target names another host than Host");
    if (!is_text(r->path) || r->path[0] != '/') return wrong(message, 400, "the target is not a path");
    int status = check_framing(r, message);
    if (status) return status;
    if (!host && r->modern) return wrong(message, 400, "Host is missing");
    if (host && !host_name(host)) return wrong(message, 400, "Host is malformed");
    if (!config->unix_path && !(host && host_allowed(h, host)))
        return wrong(message, 403, "Host names another machine (--allow-host NAME lets it in)");
    if (origin && in_list(config->origins, origin, strlen(origin))) r->cors = origin;
    else if (origin && !same_origin(origin, host))
        return wrong(message, 403, "pages of this origin may not call (--cors-origin ORIGIN lets them)");
    const char *length = weft__http_header(r, "Content-Length");
    if (!length || strtoull(length, NULL, 10) <= config->max_body) return 0;
    /* A client that cannot be stopped (Expect) before it sent all sees the answer only when all was read. */
    r->too_long = 1;
    if (strtoull(length, NULL, 10) <= config->max_body + HTTP_SWALLOW && !weft__http_header(r, "Expect")) return 0;
    return wrong(message, 413, "the body is too long");
}
