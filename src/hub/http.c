// SPDX-License-Identifier: Apache-2.0
/* http.c: one GET with its redirects (http.h).
 *
 * libcurl is asked for one response at a time; redirects are decided here, because only here is it known what the token
 * may see. libcurl keeps its own allocator: its set-up is one per process and may be shared with the program that
 * embeds us. */
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "hub/http.h"

/* Of one response, together with the body of a redirect or an error, which is not read. */
#define HEADER_BYTES_MAX ((size_t)256 << 10)
#define STALL_BYTES_PER_S 100L

struct weft__hub_http {
    CURL *curl;
    int timeout_s;
};

/* One call and the response that is being read. */
typedef struct transfer {
    const weft__hub_http_call *call;
    weft__hub_http_reply *reply;
    CURL *curl;
    char location[4096];
    size_t n_header;
    int first_origin; /* still at the origin of call->url */
    int cancelled;
    weft_status status; /* of the body callback */
    weft_error *err;
} transfer;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode set_up;

static void set_up_curl(void)
{
    set_up = curl_global_init(CURL_GLOBAL_DEFAULT);
}

weft_status weft__hub_http_open(int timeout_s, weft__hub_http **out, weft_error *err)
{
    *out = NULL;
    pthread_once(&once, set_up_curl);
    if (set_up) return weft_fail(err, WEFT_INTERNAL, "libcurl: %s", curl_easy_strerror(set_up));
    weft__hub_http *h = weft__alloc_zero(1, sizeof *h);
    if (!h || !(h->curl = curl_easy_init())) {
        weft__free(h);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a connection");
    }
    h->timeout_s = timeout_s;
    *out = h;
    return WEFT_OK;
}

void weft__hub_http_close(weft__hub_http **h)
{
    if (!h || !*h) return;
    curl_easy_cleanup((*h)->curl);
    weft__free(*h);
    *h = NULL;
}

/* ---- headers ---- */

/* The value when line is "NAME: value"; trimmed, *n bytes. */
static const char *value_of(const char *line, size_t n_line, const char *name, size_t *n)
{
    size_t k = strlen(name);
    if (n_line <= k || strncasecmp(line, name, k) || line[k] != ':') return NULL;
    const char *s = line + k + 1, *end = line + n_line;
    while (s < end && (*s == ' ' || *s == '\t')) s++;
    while (end > s && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r' || end[-1] == '\n')) end--;
    *n = (size_t)(end - s);
    return s;
}

/* Digits s[0..n) as a number, or -1. */
static int64_t number(const char *s, size_t n)
{
    int64_t v = 0;
    if (n == 0 || n > 18) return -1;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9') return -1;
        v = 10 * v + (s[i] - '0');
    }
    return v;
}

/* Copies when it fits and holds only printable ASCII; else leaves "". */
static void copy_text(char *out, size_t capacity, const char *s, size_t n)
{
    out[0] = 0;
    if (n >= capacity) return;
    for (size_t i = 0; i < n; i++)
        if (s[i] < 0x20 || s[i] > 0x7e) return;
    memcpy(out, s, n);
    out[n] = 0;
}

/* "bytes 5-9/10"; anything else leaves -1. */
static void read_range(weft__hub_http_reply *r, const char *s, size_t n)
{
    const char *end = s + n, *dash, *slash;
    if (n < 6 || strncasecmp(s, "bytes ", 6)) return;
    s += 6;
    if (!(dash = memchr(s, '-', (size_t)(end - s))) || !(slash = memchr(dash, '/', (size_t)(end - dash)))) return;
    r->range_first = number(s, (size_t)(dash - s));
    r->range_last = number(dash + 1, (size_t)(slash - dash - 1));
    r->range_total = number(slash + 1, (size_t)(end - slash - 1));
}

/* <URL>; rel="next", the form in which listings are continued. */
static void read_link(weft__hub_http_reply *r, const char *s, size_t n)
{
    char text[sizeof r->next];
    copy_text(text, sizeof text, s, n);
    char *end = strchr(text, '>');
    if (text[0] != '<' || !end || !strstr(end, "rel=\"next\"")) return;
    *end = 0;
    strcpy(r->next, text + 1);
}

/* X-Linked-Etag is the file's SHA-256 in quotes. Only the origin that was asked is believed. */
static void read_linked(weft__hub_http_reply *r, const char *s, size_t n)
{
    if (n >= 2 && s[0] == '"' && s[n - 1] == '"') s++, n -= 2;
    copy_text(r->linked_etag, sizeof r->linked_etag, s, n);
}

static void new_response(transfer *t)
{
    weft__hub_http_reply *r = t->reply;
    r->status = 0;
    r->length = r->range_first = r->range_last = r->range_total = -1;
    r->etag[0] = r->next[0] = r->message[0] = t->location[0] = 0;
}

static size_t on_header(char *line, size_t size, size_t count, void *arg)
{
    transfer *t = arg;
    weft__hub_http_reply *r = t->reply;
    const char *s;
    size_t n_line = size * count, n;
    if ((t->n_header += n_line) > HEADER_BYTES_MAX) return 0;
    if (n_line > 5 && !strncasecmp(line, "HTTP/", 5)) new_response(t);
    else if ((s = value_of(line, n_line, "Content-Length", &n))) r->length = number(s, n);
    else if ((s = value_of(line, n_line, "Content-Range", &n))) read_range(r, s, n);
    else if ((s = value_of(line, n_line, "ETag", &n))) copy_text(r->etag, sizeof r->etag, s, n);
    else if ((s = value_of(line, n_line, "Location", &n))) copy_text(t->location, sizeof t->location, s, n);
    else if ((s = value_of(line, n_line, "Link", &n))) read_link(r, s, n);
    else if ((s = value_of(line, n_line, "X-Error-Message", &n))) copy_text(r->message, sizeof r->message, s, n);
    else if (t->first_origin && (s = value_of(line, n_line, "X-Linked-Etag", &n))) read_linked(r, s, n);
    else if (t->first_origin && (s = value_of(line, n_line, "X-Linked-Size", &n))) r->linked_size = number(s, n);
    return n_line;
}

/* ---- body ---- */

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
    transfer *t = arg;
    size_t n = size * count;
    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &t->reply->status);
    if (t->reply->status < 200 || t->reply->status > 299) {
        /* Pages about redirects and errors are for people; read past them, within reason. */
        return (t->n_header += n) > HEADER_BYTES_MAX ? 0 : n;
    }
    t->status = t->call->body(t->call->arg, t->reply, bytes, n, t->err);
    return t->status ? 0 : n;
}

static int on_tick(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    transfer *t = arg;
    (void)a, (void)b, (void)c, (void)d;
    t->cancelled = t->call->poll && t->call->poll(t->call->arg);
    return t->cancelled;
}

/* ---- one request ---- */

static weft_status transport_failed(transfer *t, const char *url, CURLcode code, const char *detail, int timeout_s,
                                    weft_error *err)
{
    char host[256];
    weft__hub_http_reply *r = t->reply;
    CURLU *u = curl_url();
    char *text = NULL;
    if (u && !curl_url_set(u, CURLUPART_URL, url, 0)) curl_url_get(u, CURLUPART_HOST, &text, 0);
    snprintf(host, sizeof host, "%s", text ? text : "the server");
    curl_free(text);
    curl_url_cleanup(u);
    const int direct = t->call->direct;
    if (t->cancelled) return weft_fail(err, WEFT_CANCELLED, "cancelled");
    if (t->status) return t->status;
    if (!detail[0]) detail = curl_easy_strerror(code);
    switch (code) {
    case CURLE_OUT_OF_MEMORY: return weft_fail(err, WEFT_NO_MEMORY, "no memory for the transfer");
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        r->transient = 1;
        return weft_fail(err, WEFT_IO, "cannot find %s: is there a network?%s", host,
                         direct ? "" : " (HF_ENDPOINT names another server)");
    case CURLE_COULDNT_CONNECT:
        r->transient = 1;
        return weft_fail(err, WEFT_IO, "cannot connect to %s: %s", host, detail);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
        return weft_fail(err, WEFT_IO,
                         "the certificate of %s is not trusted: %s (%sSSL_CERT_FILE names the authorities)", host,
                         detail, direct ? "--tls-ca or " : "");
    case CURLE_OPERATION_TIMEDOUT:
        r->transient = 1;
        return weft_fail(err, WEFT_IO, "%s sent nothing, or next to nothing, for %d s%s", host, timeout_s,
                         direct ? "" : " (WEFT_PULL_TIMEOUT sets the limit)");
    case CURLE_WRITE_ERROR: return weft_fail(err, WEFT_FORMAT, "%s sends headers or messages that are too long", host);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT: return weft_fail(err, WEFT_FORMAT, "%s: the address is refused: %s", host, detail);
    default: r->transient = 1; return weft_fail(err, WEFT_IO, "the transfer from %s broke off: %s", host, detail);
    }
}

/* "Authorization", "If-Range"; NULL when none, *failed without memory. */
static struct curl_slist *make_headers(const weft__hub_http_call *call, int with_token, int *failed)
{
    char line[WEFT__HUB_HTTP_TOKEN + 64];
    struct curl_slist *list = NULL, *grown;
    *failed = 0;
    if (with_token) {
        snprintf(line, sizeof line, "Authorization: Bearer %s", call->token);
        *failed = !(list = curl_slist_append(NULL, line));
    }
    if (!*failed && call->post) {
        if (!(grown = curl_slist_append(list, "Content-Type: application/json"))) *failed = 1;
        else list = grown;
    }
    if (!*failed && call->from && call->if_range && call->if_range[0]) {
        snprintf(line, sizeof line, "If-Range: %s", call->if_range);
        if (!(grown = curl_slist_append(list, line))) *failed = 1;
        else list = grown;
    }
    return list;
}

static void set_options(weft__hub_http *h, transfer *t, const char *url, struct curl_slist *headers, char *detail)
{
    char from[32]; /* libcurl copies strings */
    const char *authorities = t->call->authorities ? t->call->authorities : getenv("SSL_CERT_FILE");
    curl_easy_reset(h->curl); /* connections stay open */
    curl_easy_setopt(h->curl, CURLOPT_URL, url);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(h->curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else /* Debian 11's */
    curl_easy_setopt(h->curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    curl_easy_setopt(h->curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(h->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h->curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* a proxy's own are not the server's */
    curl_easy_setopt(h->curl, CURLOPT_USERAGENT, "weft");
    curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, detail);
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h->curl, CURLOPT_BUFFERSIZE, 256L << 10);
    curl_easy_setopt(h->curl, CURLOPT_CONNECTTIMEOUT, (long)h->timeout_s);
    curl_easy_setopt(h->curl, CURLOPT_LOW_SPEED_LIMIT, STALL_BYTES_PER_S);
    curl_easy_setopt(h->curl, CURLOPT_LOW_SPEED_TIME, (long)h->timeout_s);
    if (t->call->total_limit) curl_easy_setopt(h->curl, CURLOPT_TIMEOUT, 10L * h->timeout_s);
    if (authorities && authorities[0]) curl_easy_setopt(h->curl, CURLOPT_CAINFO, authorities);
    if (t->call->direct) curl_easy_setopt(h->curl, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
    if (t->call->unix_path) curl_easy_setopt(h->curl, CURLOPT_UNIX_SOCKET_PATH, t->call->unix_path);
    if (t->call->post) {
        curl_easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->call->n_post);
        curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, t->call->post);
    }
    if (t->call->from) {
        snprintf(from, sizeof from, "%llu-", (unsigned long long)t->call->from);
        curl_easy_setopt(h->curl, CURLOPT_RANGE, from);
    }
    curl_easy_setopt(h->curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(h->curl, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(h->curl, CURLOPT_XFERINFOFUNCTION, on_tick);
    curl_easy_setopt(h->curl, CURLOPT_XFERINFODATA, t);
    curl_easy_setopt(h->curl, CURLOPT_NOPROGRESS, 0L);
}

static weft_status one_response(weft__hub_http *h, transfer *t, const char *url, int with_token, weft_error *err)
{
    char detail[CURL_ERROR_SIZE] = "";
    int failed;
    struct curl_slist *headers = make_headers(t->call, with_token, &failed);
    new_response(t);
    t->n_header = 0;
    weft_status st = failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for the request") : WEFT_OK;
    if (!st) {
        set_options(h, t, url, headers, detail);
        CURLcode code = curl_easy_perform(h->curl);
        curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &t->reply->status);
        if (code) st = transport_failed(t, url, code, detail, h->timeout_s, err);
        curl_easy_reset(h->curl); /* nothing of this frame stays in it */
    }
    curl_slist_free_all(headers);
    return st;
}

static int is_redirect(long status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* The continuation of a listing, as an absolute URL of the same origin; another one is dropped, and with it the rest
 * refused. */
static weft_status finish_next(const char *url, weft__hub_http_reply *r, weft_error *err)
{
    char *next;
    int same_origin;
    if (!r->next[0]) return WEFT_OK;
    weft_status st = weft__hub_http_join(url, r->next, &next, &same_origin, err);
    if (!st && (!same_origin || strlen(next) >= sizeof r->next))
        st = weft_fail(err, WEFT_FORMAT, "a listing continues on another server: refused");
    if (!st) strcpy(r->next, next);
    weft__free(next);
    return st;
}

weft_status weft__hub_http_get(weft__hub_http *h, const weft__hub_http_call *call, weft__hub_http_reply *reply,
                               weft_error *err)
{
    transfer t = {.call = call, .reply = reply, .curl = h->curl, .first_origin = 1, .err = err};
    int with_token = call->token && (call->direct || weft__hub_http_is_safe(call->url)), same_origin;
    *reply = (weft__hub_http_reply){.linked_size = -1};
    char *url = weft__strdup(call->url), *next;
    weft_status st = url ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for an address");
    for (int hops = 0; !st; hops++) {
        if ((st = one_response(h, &t, url, with_token, err)) || call->direct || !is_redirect(reply->status)) break;
        if (hops == WEFT__HUB_HTTP_REDIRECTS)
            st = weft_fail(err, WEFT_FORMAT, "more than %d redirects", WEFT__HUB_HTTP_REDIRECTS);
        else if (!t.location[0]) st = weft_fail(err, WEFT_FORMAT, "a redirect without a usable address");
        else st = weft__hub_http_join(url, t.location, &next, &same_origin, err);
        if (st) break;
        weft__free(url);
        url = next;
        if (!same_origin) with_token = t.first_origin = 0;
    }
    if (!st) st = finish_next(url, reply, err);
    weft__free(url);
    return st;
}
