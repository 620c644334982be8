// SPDX-License-Identifier: Apache-2.0
/* top_server.c: see top_server.h. */
#include "top_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "prompt.h"

enum { ANSWER_MAX = 4 << 20, TIMEOUT_S = 10 };

static weft_status read_unix(top_server *s, const char *path, weft_error *err)
{
    const size_t n = strlen(path);
    if (!n || n >= sizeof s->unix_path)
        return weft_fail(err, WEFT_ARGUMENT, "unix:%.50s: the path of a socket has 1 to %zu bytes", path,
                         sizeof s->unix_path - 1);
    memcpy(s->unix_path, path, n + 1);
    snprintf(s->url, sizeof s->url, "http://localhost");
    return WEFT_OK;
}

static weft_status read_address(top_server *s, const char *address, weft_error *err)
{
    if (!strncmp(address, "unix:", 5)) return read_unix(s, address + 5, err);
    const int tls = !strncmp(address, "https://", 8);
    const char *host = address + (tls                              ? 8
                                  : strncmp(address, "http://", 7) ? 0
                                                                   : 7),
               *end = host + strcspn(host, "/"), *rest, *port = tls ? "443" : "8080";
    size_t n_port = strlen(port), n_prefix = strlen(end);
    if (*host == '[') {
        rest = memchr(host, ']', (size_t)(end - host));
        if (rest) rest++;
    } else {
        rest = memchr(host, ':', (size_t)(end - host));
        if (!rest) rest = end;
    }
    if (rest && rest < end) {
        port = *rest == ':' ? rest + 1 : end;
        n_port = (size_t)(end - port);
    }
    while (n_prefix > 0 && end[n_prefix - 1] == '/') n_prefix--;
    if (n_prefix >= 8 && !memcmp(end + n_prefix - 8, "/metrics", 8)) n_prefix -= 8;
    if (!rest || rest == host || rest - host > 255 || !n_port || n_port > 5 || strspn(port, "0123456789") < n_port ||
        n_prefix > 200 || strcspn(address, "@?# ") < strlen(address))
        return weft_fail(err, WEFT_ARGUMENT, "%.80s: must be http://HOST:PORT, https://HOST:PORT or unix:PATH",
                         address);
    snprintf(s->url, sizeof s->url, "http%s://%.*s:%.*s%.*s", tls ? "s" : "", (int)(rest - host), host, (int)n_port,
             port, (int)n_prefix, end);
    return WEFT_OK;
}

/* A key that a head can hold. */
static weft_status take_key(top_server *s, const char *key, size_t n, weft_error *err)
{
    if (n >= sizeof s->key) return weft_fail(err, WEFT_ARGUMENT, "--api-key: longer than %zu bytes", sizeof s->key - 1);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)key[i] < 0x20 || key[i] == 0x7F)
            return weft_fail(err, WEFT_ARGUMENT, "--api-key: has control characters");
    memcpy(s->key, key, n);
    s->key[n] = 0;
    return WEFT_OK;
}

/* The first line that is a key itself, as 'weft serve --api-key-file' reads them: no comment, no checksum of one. */
static weft_status read_key_file(top_server *s, const char *path, weft_error *err)
{
    char *text;
    size_t n;
    weft_status st = read_text(path, &text, &n, err);
    if (st) return st;
    const char *line = text;
    for (; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t length = strcspn(line, "\r\n");
        while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t')) length--;
        if (!length || line[0] == '#' || !strncmp(line, "sha256:", 7)) continue;
        st = take_key(s, line, length, err);
        free(text);
        return st;
    }
    free(text);
    return weft_fail(err, WEFT_NOT_FOUND, "%s: has no key, but for checksums maybe; --api-key gives one", path);
}

weft_status top_server_open(top_server *s, const char *address, const char *key, const char *key_file, weft_error *err)
{
    weft_status st = read_address(s, address, err);
    if (!st && key) st = take_key(s, key, strlen(key), err);
    else if (!st && key_file) st = read_key_file(s, key_file, err);
    return st ? st : weft__hub_http_open(TIMEOUT_S, &s->http, err);
}

void top_server_close(top_server *s)
{
    weft__hub_http_close(&s->http);
}

struct top_server_answer {
    weft__strbuf text;
    top_server *server;
};

static weft_status take_body(void *arg, const weft__hub_http_reply *reply, const void *bytes, size_t n, weft_error *err)
{
    struct top_server_answer *a = arg;
    (void)reply;
    if (a->text.len + n > ANSWER_MAX)
        return weft_fail(err, WEFT_LIMIT, "the answer is longer than %d MiB", ANSWER_MAX >> 20);
    weft__strbuf_put(&a->text, bytes, n);
    return a->text.failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for the answer") : WEFT_OK;
}

static int poll_over(void *arg)
{
    const struct top_server_answer *a = arg;
    return a->server->is_over && a->server->is_over();
}

weft_status top_server_get(top_server *s, const char *path, char **out, weft_error *err)
{
    struct top_server_answer a = {.server = s};
    weft__hub_http_reply reply;
    weft__strbuf url = {0};
    *out = NULL;
    weft__strbuf_printf(&url, "%s%s", s->url, path);
    if (url.failed) {
        weft__strbuf_free(&url);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for the question");
    }
    const weft__hub_http_call call = {.url = url.data,
                                      .token = s->key[0] ? s->key : NULL,
                                      .direct = 1,
                                      .unix_path = s->unix_path[0] ? s->unix_path : NULL,
                                      .authorities = s->authorities,
                                      .total_limit = 1,
                                      .body = take_body,
                                      .poll = poll_over,
                                      .arg = &a};
    weft_status st = weft__hub_http_get(s->http, &call, &reply, err);
    weft__strbuf_free(&url);
    if (st && st != WEFT_CANCELLED) weft_fail_within(err, st, "%s%s", s->unix_path[0] ? "unix:" : s->url, s->unix_path);
    else if (!st && reply.status == 401) st = weft_fail(err, WEFT_IO, "the server wants a key: --api-key");
    else if (!st && reply.status != 200)
        st = weft_fail(err, WEFT_NOT_FOUND, "%s: the server answers %ld", path, reply.status);
    if (!st && !(*out = strdup(a.text.data ? a.text.data : "")))
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory for the answer");
    weft__strbuf_free(&a.text);
    return st;
}
