/* http.c: see http.h.
 *
 * Threads: libmicrohttpd's own move bytes and call on_uri, on_call, on_read and on_complete; workers run the handler; one watcher
 * keeps the deadlines and sees clients leave, which libmicrohttpd does not while a connection is suspended. A connection is
 * suspended whenever we owe it bytes that we do not have yet.
 * Locks: weft__http.lock (lists of connections and requests, deadlines), then weft__http_request.lock (its answer); libmicrohttpd's
 * own come last. No callback of ours is called under either.
 *
 * Framing. A head that could mean different things to us and to a proxy in front of us is refused and its connection closed: two
 * lengths, a length beside an encoding, any encoding but "chunked", a body where the method has none, names that are no tokens.
 * The library takes a lone LF or CR for the end of a line, as RFC 9112 2.2 allows for LF; a header that a proxy did not see because
 * of that is then one of these cases. Lengths that are no numbers the library refuses itself, with a page of its own. */
#include "server/http.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"

#define SECOND_NS 1000000000ull
#define BLOCK 16384           /* bytes of a stream that the library asks for at once */
#define SWALLOW (16ull << 20) /* bytes of a body beyond the limit that are read so that its sender sees the answer */
#define SPARE_CONNECTIONS 64  /* accepted beyond the limit, to be told so */
#define SEND_BUFFER (256 * 1024)

/* Of a connection; lives from accept to close. */
struct connection {
    struct connection *prev, *next;
    int fd;
    int refuse; /* status to answer with, because there are too many; 0: none */
    uint64_t deadline_ns; /* when it is shut down; 0: never */
    char peer[64];
    weft__http_request *request; /* in progress, or NULL */
};

struct pair {
    const char *name, *value; /* within the request's text */
};

struct weft__http_request {
    weft__http *http;
    atomic_int refs; /* the library's, the handler's, the watcher's for a moment */
    weft__http_request *prev, *next; /* of all that are known to the library */
    weft__http_request *next_job;
    struct connection *connection;     /* NULL once completed */
    struct MHD_Connection *c;          /* the same */
    uint64_t id, began_ns;
    char method[16], peer[64];
    weft__text head; /* copies of path, headers and arguments */
    const char *path;
    struct pair *headers, *query;
    size_t n_headers, n_query;
    weft__text body;
    uint64_t n_in;
    int bad_target;  /* %00 in it */
    int head_done, handed, too_long;
    const char *cors; /* origin that may read the answer */

    pthread_mutex_t lock;
    int suspended, gone, slow, answered, stream, ended, queued, full, late; /* late: the watcher cuts it off */
    int status;
    weft__text out; /* of a stream: bytes from out_at on wait */
    size_t out_at;
    uint64_t n_out, last_write_ns;
    char *whole;
    size_t n_whole;
    weft__text extra; /* headers to add: name NUL value NUL ... */
    const char *content_type;
    void *note;
    void (*on_gone)(void *), (*on_drop)(void *);
    void *gone_arg;
};

struct weft__http {
    weft__http_config config;
    struct MHD_Daemon *daemon;
    char address[192];
    char *unix_path;
    int loopback;
    int listen_fd;
    int epoll_fd, wake_fd;
    pthread_t watcher;
    pthread_t *workers;
    int n_workers, watching;
    pthread_mutex_t lock; /* everything below */
    pthread_cond_t job, idle;
    struct connection *connections;
    weft__http_request *requests, *jobs, **jobs_end;
    int n_live; /* requests not freed */
    atomic_int quiet, stopping; /* written under the lock */
    weft__http_counts counts;
};

/* ---- requests ---- */

static void request_free(weft__http_request *r)
{
    weft__http *h = r->http;
    weft__text_free(&r->head);
    weft__text_free(&r->body);
    weft__text_free(&r->out);
    weft__text_free(&r->extra);
    weft__free(r->whole);
    weft__free(r->headers);
    weft__free(r->query);
    weft__free(r->note);
    pthread_mutex_destroy(&r->lock);
    weft__free(r);
    pthread_mutex_lock(&h->lock);
    h->n_live--;
    pthread_cond_broadcast(&h->idle);
    pthread_mutex_unlock(&h->lock);
}

static void unref(weft__http_request *r)
{
    if (atomic_fetch_sub(&r->refs, 1) == 1) request_free(r);
}

/* Under the request's lock. */
static void wake(weft__http_request *r)
{
    if (!r->suspended) return;
    r->suspended = 0;
    MHD_resume_connection(r->c);
}

static void set_deadline(weft__http_request *r, uint64_t ns)
{
    weft__http *h = r->http;
    pthread_mutex_lock(&h->lock);
    if (r->connection) r->connection->deadline_ns = ns;
    pthread_mutex_unlock(&h->lock);
}

/* The client left, or we cut it off; slow: because it did not read what there is. */
static void mark_gone(weft__http_request *r, int slow)
{
    void (*gone)(void *) = NULL, (*drop)(void *) = NULL;
    void *arg = NULL;
    pthread_mutex_lock(&r->lock);
    if (!r->gone) {
        r->gone = 1;
        r->slow = (slow || r->full || r->late) && r->answered; /* what we shut down ourselves may be seen as a client that left */
        weft__text_free(&r->out);
        r->out_at = 0;
        gone = r->on_gone;
        drop = r->on_drop;
        arg = r->gone_arg;
        r->on_gone = r->on_drop = NULL;
        wake(r);
    }
    pthread_mutex_unlock(&r->lock);
    if (gone) gone(arg);
    if (drop) drop(arg);
}

uint64_t weft__http_id(const weft__http_request *r)
{
    return r->id;
}

const char *weft__http_method(const weft__http_request *r)
{
    return r->method;
}

const char *weft__http_path(const weft__http_request *r)
{
    return r->path;
}

const char *weft__http_peer(const weft__http_request *r)
{
    return r->peer;
}

uint64_t weft__http_began_ns(const weft__http_request *r)
{
    return r->began_ns;
}

const char *weft__http_body(const weft__http_request *r, size_t *n)
{
    *n = r->body.len;
    return r->body.data ? r->body.data : "";
}

const char *weft__http_header(const weft__http_request *r, const char *name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (!strcasecmp(r->headers[i].name, name)) return r->headers[i].value;
    return NULL;
}

const char *weft__http_query(const weft__http_request *r, const char *name)
{
    for (size_t i = 0; i < r->n_query; i++)
        if (!strcmp(r->query[i].name, name)) return r->query[i].value;
    return NULL;
}

void weft__http_set_note(weft__http_request *r, void *note)
{
    pthread_mutex_lock(&r->lock);
    void *old = r->note;
    r->note = note;
    pthread_mutex_unlock(&r->lock);
    weft__free(old);
}

void weft__http_on_gone(weft__http_request *r, void (*gone)(void *), void (*drop)(void *), void *arg)
{
    pthread_mutex_lock(&r->lock);
    int left = r->gone, done = r->c == NULL;
    if (!left && !done) {
        r->on_gone = gone;
        r->on_drop = drop;
        r->gone_arg = arg;
    }
    pthread_mutex_unlock(&r->lock);
    if (left) gone(arg);
    if (left || done) drop(arg);
}

void weft__http_add_header(weft__http_request *r, const char *name, const char *value)
{
    pthread_mutex_lock(&r->lock);
    weft__text_put(&r->extra, name, strlen(name) + 1);
    weft__text_put(&r->extra, value, strlen(value) + 1);
    pthread_mutex_unlock(&r->lock);
}

void weft__http_reply(weft__http_request *r, int status, const char *content_type, char *body, size_t n)
{
    pthread_mutex_lock(&r->lock);
    int ours = !r->answered && !r->gone;
    if (ours) {
        weft__text_free(&r->out);
        r->answered = r->ended = 1;
        r->status = status;
        r->content_type = content_type;
        r->whole = body;
        r->n_whole = n;
    }
    pthread_mutex_unlock(&r->lock);
    if (!ours) {
        weft__free(body);
        return;
    }
    set_deadline(r, weft__clock_ns() + (uint64_t)r->http->config.slow_s * SECOND_NS + n * (SECOND_NS / 1024)); /* 1 KiB/s at least */
    pthread_mutex_lock(&r->lock);
    wake(r);
    pthread_mutex_unlock(&r->lock);
}

void weft__http_begin(weft__http_request *r)
{
    pthread_mutex_lock(&r->lock);
    if (!r->answered && !r->gone) {
        r->answered = r->stream = 1;
        r->status = 200;
        r->content_type = "text/event-stream; charset=utf-8";
        r->last_write_ns = weft__clock_ns();
        wake(r);
    }
    pthread_mutex_unlock(&r->lock);
}

int weft__http_write(weft__http_request *r, const void *bytes, size_t n)
{
    const weft__http_config *config = &r->http->config;
    int was_empty = 0, full = 0, gone;
    pthread_mutex_lock(&r->lock);
    if ((r->stream || !r->answered) && !r->gone && !r->ended && !r->full && n) {
        was_empty = r->out_at == r->out.len;
        if (was_empty) r->out.len = r->out_at = 0;
        if (r->out_at > config->max_buffer / 2) {
            memmove(r->out.data, r->out.data + r->out_at, r->out.len - r->out_at);
            r->out.len -= r->out_at;
            r->out_at = 0;
        }
        full = r->out.len - r->out_at + n > config->max_buffer;
        if (!full) weft__text_put(&r->out, bytes, n);
        full |= r->out.failed;
        r->full = full; /* nothing after the hole */
        r->last_write_ns = weft__clock_ns();
        if (!full) wake(r);
    }
    gone = r->gone || r->full;
    pthread_mutex_unlock(&r->lock);
    if (full) { /* the watcher cuts it: gone must not be called from within a write */
        set_deadline(r, 1);
        return 0;
    }
    if (was_empty) set_deadline(r, weft__clock_ns() + (uint64_t)config->slow_s * SECOND_NS);
    return !gone;
}

void weft__http_end(weft__http_request *r)
{
    pthread_mutex_lock(&r->lock);
    int now = (r->stream || !r->answered) && !r->ended && !r->full;
    size_t left = r->out.len - r->out_at;
    if (now) r->ended = 1;
    pthread_mutex_unlock(&r->lock);
    if (!now) return;
    set_deadline(r, weft__clock_ns() + (uint64_t)r->http->config.slow_s * SECOND_NS + left * (SECOND_NS / 1024));
    pthread_mutex_lock(&r->lock);
    wake(r);
    pthread_mutex_unlock(&r->lock);
}

int weft__http_is_gone(weft__http_request *r)
{
    pthread_mutex_lock(&r->lock);
    int gone = r->gone;
    pthread_mutex_unlock(&r->lock);
    return gone;
}

void weft__http_release(weft__http_request *r)
{
    unref(r);
}

/* ---- the head ---- */

static int is_token(const char *s)
{
    if (!*s) return 0;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("!#$%&'*+-.^_`|~", *s)) return 0;
    return 1;
}

static int is_text(const char *s)
{
    for (; *s; s++)
        if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7f) return 0;
    return 1;
}

struct collect {
    weft__text text; /* name NUL value NUL ... */
    size_t n;
};

static enum MHD_Result collect_pair(void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
    struct collect *c = arg;
    (void)kind;
    weft__text_put(&c->text, key, strlen(key) + 1);
    weft__text_put(&c->text, value ? value : "", strlen(value ? value : "") + 1);
    c->n++;
    return MHD_YES;
}

static const char *place_pairs(struct pair *pairs, size_t n, const char *s)
{
    for (size_t i = 0; i < n; i++) {
        pairs[i].name = s;
        s += strlen(s) + 1;
        pairs[i].value = s;
        s += strlen(s) + 1;
    }
    return s;
}

/* Copies method, path, headers and arguments, since the request may outlive its connection. 0: no memory. */
static int copy_head(weft__http_request *r, struct MHD_Connection *c, const char *path, const char *method)
{
    struct collect headers = {0}, query = {0};
    snprintf(r->method, sizeof r->method, "%s", method);
    MHD_get_connection_values(c, MHD_HEADER_KIND, collect_pair, &headers);
    MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, collect_pair, &query);
    weft__text_put(&r->head, path, strlen(path) + 1);
    weft__text_put(&r->head, headers.text.data, headers.text.len);
    weft__text_put(&r->head, query.text.data, query.text.len);
    r->headers = weft__alloc_array(headers.n, sizeof *r->headers);
    r->query = weft__alloc_array(query.n, sizeof *r->query);
    int ok = !r->head.failed && !headers.text.failed && !query.text.failed && r->headers && r->query;
    if (ok) {
        r->n_headers = headers.n;
        r->n_query = query.n;
        r->path = r->head.data;
        place_pairs(r->query, r->n_query, place_pairs(r->headers, r->n_headers, r->path + strlen(r->path) + 1));
    }
    weft__text_free(&headers.text);
    weft__text_free(&query.text);
    return ok;
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
    } else
        end = host + strcspn(host, ":");
    if (*end == ':' && strspn(end + 1, "0123456789") != strlen(end + 1)) return 0;
    if (*end && *end != ':') return 0;
    for (const char *p = host; p < end; p++)
        if (!isalnum((unsigned char)*p) && !strchr(".-_[]:%", *p)) return 0;
    return (size_t)(end - host);
}

/* Which page of the web a browser is on can be hidden by pointing the page's own name at 127.0.0.1 (DNS rebinding); the Host
 * header tells. */
static int host_allowed(const weft__http *h, const char *host)
{
    static const char *const own[] = {"localhost", "127.0.0.1", "[::1]", NULL};
    size_t n = host_name(host);
    if (!n) return 0;
    if (!h->loopback) return !h->config.allow_hosts || !h->config.allow_hosts[0] || in_list(h->config.allow_hosts, host, n);
    if (in_list(own, host, n) || in_list(h->config.allow_hosts, host, n)) return 1;
    return (n > 10 && !strncasecmp(host + n - 10, ".localhost", 10)) || (!strncmp(host, "127.", 4) && strspn(host, "0123456789.") == n);
}

static int same_origin(const char *origin, const char *host)
{
    const char *name = strstr(origin, "://");
    return name && host && !strcasecmp(name + 3, host);
}

static size_t count_headers(const weft__http_request *r, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_headers; i++) n += !strcasecmp(r->headers[i].name, name);
    return n;
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
    if (count_headers(r, "Content-Length") > 1) return wrong(message, 400, "more than one Content-Length");
    if (count_headers(r, "Transfer-Encoding") > 1) return wrong(message, 400, "more than one Transfer-Encoding");
    if (length && encoding) return wrong(message, 400, "both Content-Length and Transfer-Encoding");
    if (encoding && strcasecmp(encoding, "chunked")) return wrong(message, 501, "Transfer-Encoding other than chunked");
    if (length && (!*length || strspn(length, "0123456789") != strlen(length) || strlen(length) > 18))
        return wrong(message, 400, "Content-Length is not a number");
    if (weft__http_header(r, "Content-Encoding") && strcasecmp(weft__http_header(r, "Content-Encoding"), "identity"))
        return wrong(message, 415, "Content-Encoding is not supported");
    int no_body = strcmp(r->method, "POST") && strcmp(r->method, "PUT") && strcmp(r->method, "DELETE");
    if (no_body && (encoding || (length && strspn(length, "0") != strlen(length)))) return wrong(message, 400, "this method has no body");
    return 0;
}

static int check_head(weft__http_request *r, const char **message)
{
    const weft__http *h = r->http;
    const weft__http_config *config = &h->config;
    const char *host = weft__http_header(r, "Host"), *origin = weft__http_header(r, "Origin");
    if (r->connection->refuse == 429) return wrong(message, 429, "too many connections from this address");
    if (r->connection->refuse) return wrong(message, 503, "too many connections");
    if (r->n_headers > (size_t)config->max_headers) return wrong(message, 431, "too many headers");
    if (r->head.len > config->max_head) return wrong(message, 431, "the headers are too long");
    for (size_t i = 0; i < r->n_headers; i++) {
        if (!is_token(r->headers[i].name)) return wrong(message, 400, "a header's name is not a token");
        if (!is_text(r->headers[i].value)) return wrong(message, 400, "a header's value has control characters");
    }
    if (r->bad_target || !is_text(r->path) || r->path[0] != '/') return wrong(message, 400, "the target is not a path");
    int status = check_framing(r, message);
    if (status) return status;
    if (count_headers(r, "Host") > 1) return wrong(message, 400, "more than one Host");
    if (host && !host_name(host)) return wrong(message, 400, "Host is malformed");
    if (!config->unix_path && !(host && host_allowed(h, host)))
        return wrong(message, 403, "Host names another machine (--allow-host NAME lets it in)");
    if (origin && in_list(config->origins, origin, strlen(origin))) r->cors = origin;
    else if (origin && !same_origin(origin, host)) return wrong(message, 403, "pages of this origin may not call (--cors-origin ORIGIN lets them)");
    const char *length = weft__http_header(r, "Content-Length");
    if (!length || strtoull(length, NULL, 10) <= config->max_body) return 0;
    /* Who cannot be stopped (Expect) before sending it all sees the answer only when all was read. */
    r->too_long = 1;
    if (strtoull(length, NULL, 10) <= config->max_body + SWALLOW && !weft__http_header(r, "Expect")) return 0;
    return wrong(message, 413, "the body is too long");
}

/* ---- what libmicrohttpd calls ---- */

static void set_refusal(weft__http_request *r, int status, const char *message)
{
    weft__http *h = r->http;
    weft__http_refusal refusal = {status, message, r->path ? r->path : ""};
    r->n_whole = 0;
    r->whole = h->config.refusal ? h->config.refusal(h->config.arg, &refusal, &r->n_whole) : NULL;
    r->answered = r->ended = 1;
    r->status = status;
    r->content_type = "application/json; charset=utf-8";
    weft__text_put(&r->extra, "Connection\0close", 17);
}

static void add_cors(weft__http_request *r, struct MHD_Response *response)
{
    if (!r->cors) return;
    MHD_add_response_header(response, "Access-Control-Allow-Origin", r->cors);
    MHD_add_response_header(response, "Vary", "Origin");
    if (strcmp(r->method, "OPTIONS")) return;
    MHD_add_response_header(response, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    MHD_add_response_header(response, "Access-Control-Allow-Headers", "Authorization, Content-Type, X-Api-Key");
    MHD_add_response_header(response, "Access-Control-Max-Age", "600");
}

static void add_headers(weft__http_request *r, struct MHD_Response *response)
{
    char id[32];
    if (r->content_type && (r->n_whole || r->stream)) MHD_add_response_header(response, "Content-Type", r->content_type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", r->stream ? "no-cache" : "no-store");
    snprintf(id, sizeof id, "req-%llu", (unsigned long long)r->id);
    MHD_add_response_header(response, "X-Request-Id", id);
    add_cors(r, response);
    for (size_t i = 0; !r->extra.failed && i < r->extra.len;) {
        const char *name = r->extra.data + i, *value = name + strlen(name) + 1;
        MHD_add_response_header(response, name, value);
        i += strlen(name) + strlen(value) + 2;
    }
    if (r->http->quiet) MHD_add_response_header(response, "Connection", "close");
}

/* The next bytes of a stream. One that is broken off ends on a connection that is shut down: the library then fails to send the end and
 * lets go of the connection at once, which after MHD_CONTENT_READER_END_WITH_ERROR it does only when something happens on it (0.9.75). */
static ssize_t on_read(void *arg, uint64_t position, char *to, size_t max)
{
    weft__http_request *r = arg;
    ssize_t got = 0;
    (void)position;
    pthread_mutex_lock(&r->lock);
    size_t left = r->gone ? 0 : r->out.len - r->out_at;
    if (r->gone || r->full || r->http->stopping) {
        shutdown(r->connection->fd, SHUT_RDWR);
        got = MHD_CONTENT_READER_END_OF_STREAM;
    } else if (left) {
        got = (ssize_t)(left < max ? left : max);
        memcpy(to, r->out.data + r->out_at, (size_t)got);
        r->out_at += (size_t)got;
        r->n_out += (uint64_t)got;
    } else if (r->ended)
        got = MHD_CONTENT_READER_END_OF_STREAM;
    else {
        r->suspended = 1;
        MHD_suspend_connection(r->c);
    }
    int ended = r->ended;
    size_t rest = r->out.len - r->out_at;
    pthread_mutex_unlock(&r->lock);
    if (got > 0 && !ended) set_deadline(r, rest ? weft__clock_ns() + (uint64_t)r->http->config.slow_s * SECOND_NS : 0);
    return got;
}

static void free_whole(void *p)
{
    weft__free(p);
}

/* Not under the request's lock, which on_read takes while the library holds the response's: an answer that was given does not change. */
static enum MHD_Result queue_answer(weft__http_request *r)
{
    struct MHD_Response *response;
    if (r->stream) response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, on_read, r, NULL);
    else {
        response = MHD_create_response_from_buffer_with_free_callback(r->n_whole, r->whole, free_whole);
        if (response) r->whole = NULL;
        r->n_out = r->n_whole;
    }
    if (!response) return MHD_NO;
    add_headers(r, response);
    enum MHD_Result result = MHD_queue_response(r->c, (unsigned)r->status, response);
    MHD_destroy_response(response);
    return result;
}

static void *on_uri(void *arg, const char *uri, struct MHD_Connection *c)
{
    weft__http *h = arg;
    weft__http_request *r = weft__alloc_zero(1, sizeof *r);
    if (!r) return NULL;
    r->http = h;
    atomic_init(&r->refs, 1);
    pthread_mutex_init(&r->lock, NULL);
    r->c = c;
    r->connection = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    r->began_ns = weft__clock_ns();
    r->bad_target = strstr(uri, "%00") != NULL;
    if (r->connection) memcpy(r->peer, r->connection->peer, sizeof r->peer);
    pthread_mutex_lock(&h->lock);
    r->id = ++h->counts.n_requests_total;
    h->n_live++;
    h->counts.n_requests++;
    r->next = h->requests;
    if (r->next) r->next->prev = r;
    h->requests = r;
    if (r->connection) r->connection->request = r;
    pthread_mutex_unlock(&h->lock);
    return r;
}

/* Time for a body: what the limit on idling gives, and a second per 16 KiB. */
static uint64_t body_deadline(const weft__http *h)
{
    return weft__clock_ns() + ((uint64_t)h->config.idle_s + h->config.max_body / 16384) * SECOND_NS;
}

/* The head is complete. */
static enum MHD_Result take_head(weft__http_request *r, struct MHD_Connection *c, const char *path, const char *method)
{
    const char *message = NULL;
    r->head_done = 1;
    if (!r->connection || !copy_head(r, c, path, method)) return MHD_NO;
    int status = check_head(r, &message);
    if (!status && !strcmp(method, "OPTIONS") && r->cors) status = 204;
    if (!status) {
        set_deadline(r, body_deadline(r->http));
        return MHD_YES;
    }
    set_deadline(r, weft__clock_ns() + (uint64_t)r->http->config.slow_s * SECOND_NS);
    pthread_mutex_lock(&r->lock);
    if (message) set_refusal(r, status, message);
    else {
        r->answered = r->ended = 1;
        r->status = status;
    }
    r->queued = 1;
    pthread_mutex_unlock(&r->lock);
    return queue_answer(r);
}

static enum MHD_Result take_body(weft__http_request *r, const char *bytes, size_t *n)
{
    r->n_in += *n;
    if (r->too_long || r->n_in > r->http->config.max_body) {
        r->too_long = 1;
        weft__text_free(&r->body);
        if (r->n_in > r->http->config.max_body + SWALLOW) return MHD_NO;
    } else
        weft__text_put(&r->body, bytes, *n);
    *n = 0;
    return MHD_YES;
}

static void watch(weft__http_request *r)
{
    struct epoll_event e = {.events = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLONESHOT, .data.u64 = r->id};
    epoll_ctl(r->http->epoll_fd, EPOLL_CTL_ADD, r->connection->fd, &e);
}

/* Gives the complete request to a worker and lets the connection wait. */
static void hand_over(weft__http_request *r)
{
    weft__http *h = r->http;
    r->handed = 1;
    r->suspended = 1;
    MHD_suspend_connection(r->c);
    pthread_mutex_unlock(&r->lock);
    atomic_fetch_add(&r->refs, 1);
    pthread_mutex_lock(&h->lock);
    if (r->connection) r->connection->deadline_ns = 0;
    *h->jobs_end = r;
    h->jobs_end = &r->next_job;
    pthread_cond_signal(&h->job);
    watch(r);
    pthread_mutex_unlock(&h->lock);
    pthread_mutex_lock(&r->lock);
}

static enum MHD_Result on_call(void *arg, struct MHD_Connection *c, const char *url, const char *method, const char *version,
                               const char *upload, size_t *n_upload, void **context)
{
    weft__http *h = arg;
    weft__http_request *r = *context;
    (void)version;
    if (!r || h->stopping) return MHD_NO;
    if (!r->head_done) return take_head(r, c, url, method);
    if (*n_upload) return take_body(r, upload, n_upload);
    enum MHD_Result result = MHD_YES;
    int answer = 0;
    pthread_mutex_lock(&r->lock);
    if (r->gone) result = MHD_NO;
    else if (!r->handed && !r->answered && (r->too_long || r->body.failed)) {
        set_refusal(r, r->too_long ? 413 : 503, r->too_long ? "the body is too long" : "no memory for the body");
        answer = 1;
    } else if (!r->handed && !r->answered)
        hand_over(r);
    else if (r->answered && !r->queued)
        answer = 1;
    else if (!r->answered) {
        r->suspended = 1;
        MHD_suspend_connection(c);
    }
    r->queued |= answer;
    pthread_mutex_unlock(&r->lock);
    return answer ? queue_answer(r) : result;
}

static void tell_record(weft__http_request *r, int complete, int slow)
{
    weft__http *h = r->http;
    if (!h->config.record) return;
    weft__http_record record = {.method = r->method, .path = r->path ? r->path : "", .peer = r->peer, .status = r->queued ? r->status : 0,
                                .complete = complete, .slow = slow, .id = r->id, .n_in = r->n_in, .n_out = r->n_out,
                                .ms = (double)(weft__clock_ns() - r->began_ns) / 1e6};
    pthread_mutex_lock(&r->lock);
    void *note = r->note;
    r->note = NULL;
    pthread_mutex_unlock(&r->lock);
    h->config.record(h->config.arg, &record, note);
}

static void on_complete(void *arg, struct MHD_Connection *c, void **context, enum MHD_RequestTerminationCode why)
{
    weft__http *h = arg;
    weft__http_request *r = *context;
    void (*drop)(void *);
    (void)c;
    *context = NULL;
    if (!r) return;
    pthread_mutex_lock(&r->lock);
    int complete = why == MHD_REQUEST_TERMINATED_COMPLETED_OK && r->queued;
    int unread = r->full || (why == MHD_REQUEST_TERMINATED_TIMEOUT_REACHED && r->queued);
    pthread_mutex_unlock(&r->lock);
    if (!complete) mark_gone(r, unread);
    pthread_mutex_lock(&r->lock);
    int slow = r->slow;
    pthread_mutex_unlock(&r->lock);
    pthread_mutex_lock(&h->lock);
    if (r->connection) {
        if (r->handed) epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, r->connection->fd, NULL);
        r->connection->deadline_ns = weft__clock_ns() + (uint64_t)h->config.idle_s * SECOND_NS;
        r->connection->request = NULL;
        r->connection = NULL;
    }
    if (r->next) r->next->prev = r->prev;
    if (r->prev) r->prev->next = r->next;
    else h->requests = r->next;
    h->counts.n_requests--;
    h->counts.n_gone += !complete && r->handed;
    h->counts.n_cut_slow += (uint64_t)slow;
    pthread_cond_broadcast(&h->idle);
    pthread_mutex_unlock(&h->lock);
    tell_record(r, complete, slow);
    pthread_mutex_lock(&r->lock);
    r->c = NULL;
    drop = r->on_drop;
    r->on_gone = r->on_drop = NULL;
    pthread_mutex_unlock(&r->lock);
    if (drop) drop(r->gone_arg);
    unref(r);
}

static void name_peer(struct connection *k, const struct sockaddr *a)
{
    if (a && a->sa_family == AF_INET) inet_ntop(AF_INET, &((const struct sockaddr_in *)a)->sin_addr, k->peer, sizeof k->peer);
    else if (a && a->sa_family == AF_INET6) inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)a)->sin6_addr, k->peer, sizeof k->peer);
    else snprintf(k->peer, sizeof k->peer, "unix");
}

static void opened(weft__http *h, struct MHD_Connection *c, void **context)
{
    struct connection *k = weft__alloc_zero(1, sizeof *k);
    int same = 0, size = SEND_BUFFER;
    *context = k;
    if (!k) return; /* its requests are refused */
    k->fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    name_peer(k, MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr);
    setsockopt(k->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    k->deadline_ns = weft__clock_ns() + (uint64_t)h->config.idle_s * SECOND_NS;
    pthread_mutex_lock(&h->lock);
    for (const struct connection *o = h->connections; o; o = o->next) same += !strcmp(o->peer, k->peer);
    if (h->counts.n_connections >= h->config.max_connections) k->refuse = 503;
    else if (h->config.max_per_ip && same >= h->config.max_per_ip) k->refuse = 429;
    h->counts.n_refused_full += k->refuse != 0;
    h->counts.n_connections++;
    h->counts.n_connections_total++;
    k->next = h->connections;
    if (k->next) k->next->prev = k;
    h->connections = k;
    pthread_mutex_unlock(&h->lock);
}

static void on_connection(void *arg, struct MHD_Connection *c, void **context, enum MHD_ConnectionNotificationCode code)
{
    weft__http *h = arg;
    struct connection *k = *context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        opened(h, c, context);
        return;
    }
    if (!k) return;
    pthread_mutex_lock(&h->lock);
    if (k->next) k->next->prev = k->prev;
    if (k->prev) k->prev->next = k->next;
    else h->connections = k->next;
    h->counts.n_connections--;
    pthread_mutex_unlock(&h->lock);
    weft__free(k);
    *context = NULL;
}

/* ---- the watcher ---- */

/* A request with a reference for the caller, or NULL. */
static weft__http_request *find(weft__http *h, uint64_t id)
{
    pthread_mutex_lock(&h->lock);
    weft__http_request *r = h->requests;
    while (r && r->id != id) r = r->next;
    if (r) atomic_fetch_add(&r->refs, 1);
    pthread_mutex_unlock(&h->lock);
    return r;
}

/* Shuts down one connection whose time is over; its request, with a reference, in *r. 0: there is none. */
static int cut_one(weft__http *h, uint64_t now, weft__http_request **r)
{
    *r = NULL;
    pthread_mutex_lock(&h->lock);
    struct connection *k = h->connections;
    while (k && !(k->deadline_ns && k->deadline_ns <= now)) k = k->next;
    if (k) {
        k->deadline_ns = 0;
        *r = k->request;
        if (*r) {
            atomic_fetch_add(&(*r)->refs, 1);
            pthread_mutex_lock(&(*r)->lock);
            (*r)->late = 1;
            pthread_mutex_unlock(&(*r)->lock);
        }
        shutdown(k->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&h->lock);
    return k != NULL;
}

/* Did the client leave before its request was complete? The library hears of that from an edge of the socket, and misses it when the
 * end came in together with the last bytes. */
static int left_early(const struct connection *k)
{
    weft__http_request *r = k->request;
    char byte;
    if (!r) return 0;
    pthread_mutex_lock(&r->lock);
    int waiting = !r->handed && !r->answered;
    pthread_mutex_unlock(&r->lock);
    return waiting && recv(k->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Gives the library another edge. */
static void shut_left(weft__http *h)
{
    pthread_mutex_lock(&h->lock);
    for (struct connection *k = h->connections; k; k = k->next)
        if (left_early(k)) shutdown(k->fd, SHUT_RDWR);
    pthread_mutex_unlock(&h->lock);
}

static void ping(weft__http *h, uint64_t now)
{
    uint64_t after = (uint64_t)h->config.ping_s * SECOND_NS;
    if (!after) return;
    pthread_mutex_lock(&h->lock);
    for (weft__http_request *r = h->requests; r; r = r->next) {
        pthread_mutex_lock(&r->lock);
        if (r->stream && !r->ended && !r->gone && r->out_at == r->out.len && r->last_write_ns + after <= now) {
            r->out.len = r->out_at = 0;
            weft__text_puts(&r->out, ": ping\n\n");
            r->last_write_ns = now;
            wake(r);
        }
        pthread_mutex_unlock(&r->lock);
    }
    pthread_mutex_unlock(&h->lock);
}

static void *watcher(void *arg)
{
    weft__http *h = arg;
    struct epoll_event events[64];
    uint64_t swept = 0;
    for (;;) {
        int n = epoll_wait(h->epoll_fd, events, 64, 250);
        for (int i = 0; i < n; i++) {
            if (!events[i].data.u64) return NULL; /* wake_fd: weft__http_stop */
            weft__http_request *r = find(h, events[i].data.u64);
            if (!r) continue;
            mark_gone(r, 0);
            unref(r);
        }
        uint64_t now = weft__clock_ns();
        if (now < swept + SECOND_NS / 4) continue;
        swept = now;
        weft__http_request *r;
        while (cut_one(h, now, &r))
            if (r) {
                mark_gone(r, 0);
                unref(r);
            }
        shut_left(h);
        ping(h, now);
    }
}

static void *worker(void *arg)
{
    weft__http *h = arg;
    for (;;) {
        pthread_mutex_lock(&h->lock);
        while (!h->jobs && !h->stopping) pthread_cond_wait(&h->job, &h->lock);
        weft__http_request *r = h->jobs;
        if (r) {
            h->jobs = r->next_job;
            if (!h->jobs) h->jobs_end = &h->jobs;
        }
        pthread_mutex_unlock(&h->lock);
        if (!r) return NULL;
        if (weft__http_is_gone(r)) unref(r);
        else h->config.handle(h->config.arg, r);
    }
}

/* ---- start and stop ---- */

static int is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET) return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static weft_status listen_unix(weft__http *h, weft_error *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const char *path = h->config.unix_path;
    if (strlen(path) >= sizeof a.sun_path) return weft_fail(err, WEFT_ARGUMENT, "%s: longer than %zu bytes", path, sizeof a.sun_path - 1);
    strcpy(a.sun_path, path);
    h->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (h->listen_fd < 0) return weft_fail(err, WEFT_IO, "%s: %s", path, strerror(errno));
    struct stat there;
    if (!lstat(path, &there) && S_ISSOCK(there.st_mode)) { /* left behind by one that was killed? */
        if (!connect(h->listen_fd, (struct sockaddr *)&a, sizeof a)) return weft_fail(err, WEFT_EXISTS, "%s: another server listens there", path);
        close(h->listen_fd);
        unlink(path);
        h->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    }
    mode_t old = umask(0177);
    int rc = h->listen_fd < 0 || bind(h->listen_fd, (struct sockaddr *)&a, sizeof a) || listen(h->listen_fd, 128);
    umask(old);
    if (rc) return weft_fail(err, WEFT_IO, "%s: %s", path, strerror(errno));
    h->unix_path = weft__strdup(path);
    h->config.unix_path = h->unix_path;
    snprintf(h->address, sizeof h->address, "unix:%s", path);
    return h->unix_path ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
}

static weft_status listen_tcp(weft__http *h, weft_error *err)
{
    const weft__http_config *c = &h->config;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *all = NULL;
    struct sockaddr_storage bound;
    socklen_t n = sizeof bound;
    char port[16];
    int on = 1;
    snprintf(port, sizeof port, "%d", c->port);
    if (!strcmp(c->host, "localhost")) hints.ai_family = AF_INET;
    int rc = getaddrinfo(c->host, port, &hints, &all);
    if (rc) return weft_fail(err, WEFT_ARGUMENT, "%s: %s", c->host, gai_strerror(rc));
    h->loopback = is_loopback(all->ai_addr);
    h->listen_fd = socket(all->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (h->listen_fd >= 0) setsockopt(h->listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    rc = h->listen_fd < 0 || bind(h->listen_fd, all->ai_addr, all->ai_addrlen) || listen(h->listen_fd, 128);
    int why = errno;
    freeaddrinfo(all);
    if (rc) return weft_fail(err, WEFT_IO, "%s port %d: %s", c->host, c->port, strerror(why));
    getsockname(h->listen_fd, (struct sockaddr *)&bound, &n);
    int number = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port : ((struct sockaddr_in *)&bound)->sin_port);
    int six = strchr(c->host, ':') != NULL;
    snprintf(h->address, sizeof h->address, "%s://%s%.100s%s:%d", c->tls_cert ? "https" : "http", six ? "[" : "", c->host, six ? "]" : "", number);
    return WEFT_OK;
}

static weft_status start_daemon(weft__http *h, weft_error *err)
{
    const weft__http_config *c = &h->config;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)c->tls_cert}, {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)c->tls_key},
                                   {MHD_OPTION_END, 0, NULL}};
    if (c->tls_cert && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return weft_fail(err, WEFT_UNSUPPORTED, "TLS: this libmicrohttpd was built without it");
    if (c->tls_cert) flags |= MHD_USE_TLS;
    else tls[0].option = MHD_OPTION_END;
    h->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_call, h, MHD_OPTION_LISTEN_SOCKET, h->listen_fd, MHD_OPTION_THREAD_POOL_SIZE, (unsigned)c->n_threads,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)(c->max_connections + SPARE_CONNECTIONS), MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)c->idle_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(2 * c->max_head + 3 * BLOCK), MHD_OPTION_CONNECTION_MEMORY_INCREMENT, (size_t)4096,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, on_uri, h, MHD_OPTION_NOTIFY_COMPLETED, on_complete, h,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (!h->daemon)
        return weft_fail(err, WEFT_IO, "%s: the HTTP library did not start%s", h->address, c->tls_cert ? " (are certificate and key PEM, and do they belong together?)" : "");
    return WEFT_OK;
}

static weft_status start_threads(weft__http *h, weft_error *err)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u64 = 0};
    h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    h->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (h->epoll_fd < 0 || h->wake_fd < 0 || epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, h->wake_fd, &e))
        return weft_fail(err, WEFT_IO, "epoll: %s", strerror(errno));
    h->workers = weft__alloc_array((size_t)h->config.n_workers, sizeof *h->workers);
    if (!h->workers) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
    if (pthread_create(&h->watcher, NULL, watcher, h)) return weft_fail(err, WEFT_LIMIT, "the system refuses threads");
    h->watching = 1;
    for (; h->n_workers < h->config.n_workers; h->n_workers++)
        if (pthread_create(&h->workers[h->n_workers], NULL, worker, h)) return weft_fail(err, WEFT_LIMIT, "the system refuses threads");
    return WEFT_OK;
}

weft_status weft__http_start(const weft__http_config *config, weft__http **out, weft_error *err)
{
    *out = NULL;
    weft__http *h = weft__alloc_zero(1, sizeof *h);
    if (!h) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
    h->config = *config;
    h->listen_fd = h->epoll_fd = h->wake_fd = -1;
    h->jobs_end = &h->jobs;
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->job, NULL);
    pthread_cond_init(&h->idle, NULL);
    *out = h; /* before the threads that call the handlers, who find the server by it */
    weft_status st = config->unix_path ? listen_unix(h, err) : listen_tcp(h, err);
    if (!st) st = start_threads(h, err);
    if (!st) st = start_daemon(h, err);
    h->config.host = h->config.tls_cert = h->config.tls_key = NULL; /* the caller's */
    if (st) weft__http_stop(out);
    return st;
}

const char *weft__http_address(const weft__http *h)
{
    return h->address;
}

void weft__http_quiesce(weft__http *h)
{
    pthread_mutex_lock(&h->lock);
    int first = !h->quiet;
    h->quiet = 1;
    pthread_mutex_unlock(&h->lock);
    if (first && h->daemon) MHD_quiesce_daemon(h->daemon);
    if (first && h->listen_fd >= 0) {
        shutdown(h->listen_fd, SHUT_RDWR); /* those in the backlog are told now */
        close(h->listen_fd);
        h->listen_fd = -1;
    }
    if (first && h->unix_path) unlink(h->unix_path);
}

int weft__http_wait_idle(weft__http *h, uint64_t timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(timeout_ms / 1000);
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_mutex_lock(&h->lock);
    while (h->counts.n_requests && !pthread_cond_timedwait(&h->idle, &h->lock, &until))
        ;
    int n = h->counts.n_requests;
    pthread_mutex_unlock(&h->lock);
    return n;
}

/* Lets every suspended connection go on, to its end. */
static void cut_all(weft__http *h)
{
    for (;;) {
        pthread_mutex_lock(&h->lock);
        weft__http_request *r = h->requests;
        while (r && weft__http_is_gone(r)) r = r->next;
        if (r) atomic_fetch_add(&r->refs, 1);
        pthread_mutex_unlock(&h->lock);
        if (!r) return;
        mark_gone(r, 0);
        unref(r);
    }
}

void weft__http_stop(weft__http **p)
{
    weft__http *h = p ? *p : NULL;
    if (!h) return;
    *p = NULL;
    if (h->daemon) weft__http_quiesce(h);
    pthread_mutex_lock(&h->lock);
    h->stopping = 1;
    pthread_cond_broadcast(&h->job);
    pthread_mutex_unlock(&h->lock);
    cut_all(h);
    if (h->daemon) MHD_stop_daemon(h->daemon);
    for (int i = 0; i < h->n_workers; i++) pthread_join(h->workers[i], NULL);
    pthread_mutex_lock(&h->lock);
    while (h->n_live) pthread_cond_wait(&h->idle, &h->lock);
    pthread_mutex_unlock(&h->lock);
    uint64_t one = 1;
    if (h->watching && write(h->wake_fd, &one, sizeof one) == sizeof one) pthread_join(h->watcher, NULL);
    if (h->wake_fd >= 0) close(h->wake_fd);
    if (h->epoll_fd >= 0) close(h->epoll_fd);
    if (h->listen_fd >= 0) close(h->listen_fd);
    weft__free(h->workers);
    weft__free(h->unix_path);
    pthread_cond_destroy(&h->job);
    pthread_cond_destroy(&h->idle);
    pthread_mutex_destroy(&h->lock);
    weft__free(h);
}

void weft__http_count(weft__http *h, weft__http_counts *out)
{
    pthread_mutex_lock(&h->lock);
    *out = h->counts;
    pthread_mutex_unlock(&h->lock);
}
