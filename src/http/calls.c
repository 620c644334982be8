/* calls.c: what libmicrohttpd calls, on its own threads: a connection opens, a head and a body come in, bytes of an answer are wanted, a
 * request ends. */
#include "http/parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* What the page wants to send, when those are names; clients add headers of their own (X-Stainless-...), and none is kept from them. */
static const char *asked_headers(const weft__http_request *r)
{
    const char *asked = weft__http_header(r, "Access-Control-Request-Headers");
    size_t n = asked ? strlen(asked) : 0;
    if (n && n <= 1024 && strspn(asked, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_, ") == n) return asked;
    return "Authorization, Content-Type, X-Api-Key";
}

static void add_cors(weft__http_request *r, struct MHD_Response *response)
{
    if (!r->cors) return;
    MHD_add_response_header(response, "Access-Control-Allow-Origin", r->cors);
    MHD_add_response_header(response, "Vary", "Origin");
    MHD_add_response_header(response, "Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
    if (strcmp(r->method, "OPTIONS")) return;
    MHD_add_response_header(response, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    MHD_add_response_header(response, "Access-Control-Allow-Headers", asked_headers(r));
    MHD_add_response_header(response, "Access-Control-Max-Age", "600");
}

static void add_headers(weft__http_request *r, struct MHD_Response *response)
{
    if (r->content_type && (r->n_whole || r->stream)) MHD_add_response_header(response, "Content-Type", r->content_type);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", r->stream ? "no-cache" : "no-store");
    MHD_add_response_header(response, "X-Request-Id", r->name);
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
        weft__http_answers_give(r, (size_t)got);
        r->n_out += (uint64_t)got;
    } else if (r->ended) got = MHD_CONTENT_READER_END_OF_STREAM;
    else {
        r->suspended = 1;
        MHD_suspend_connection(r->c);
    }
    int ended = r->ended;
    size_t rest = r->out.len - r->out_at;
    pthread_mutex_unlock(&r->lock);
    if (got > 0 && !ended) weft__http_set_deadline(r, rest ? weft__http_read_by(r, 0) : 0);
    return got;
}

static void free_whole(void *p)
{
    weft__free(p);
}

struct MHD_Response *weft__http_response(weft__http_request *r)
{
    struct MHD_Response *response;
    if (r->stream) response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, on_read, r, NULL);
    else {
        response = MHD_create_response_from_buffer_with_free_callback(r->n_whole, r->whole, free_whole);
        if (response) r->whole = NULL;
        r->n_out = r->n_whole;
    }
    if (response) add_headers(r, response);
    return response;
}

/* Not under the request's lock, which on_read takes while the library holds the response's: an answer that was given does not change. */
static enum MHD_Result queue_answer(weft__http_request *r)
{
    struct MHD_Response *response = weft__http_response(r);
    if (!response) return MHD_NO;
    enum MHD_Result result = weft__http_queue(r->c, r->status, response);
    MHD_destroy_response(response);
    return result;
}

void *weft__http_on_uri(void *arg, const char *uri, struct MHD_Connection *c)
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
    r->bad_target = strstr(uri, "%00") || strchr(uri, ' ');
    weft__text_put(&r->head, uri, strcspn(uri, "?"));
    weft__text_putc(&r->head, 0);
    r->path = r->head.failed ? NULL : r->head.data;
    if (r->connection) {
        const weft__http_peer *peer = &r->connection->peer;
        memcpy(r->peer, peer->name, sizeof r->peer);
        r->is_local = h->config.unix_path || (weft__http_peer_is_loopback(peer) && !weft__http_peer_is_exempt(h, peer));
        r->connection->waits_ns = 0;
    }
    pthread_mutex_lock(&h->lock);
    r->id = ++h->counts.n_requests_total;
    snprintf(r->name, sizeof r->name, "req-%08x-%llu", h->run, (unsigned long long)r->id);
    h->n_live++;
    h->counts.n_requests++;
    r->next = h->requests;
    if (r->next) r->next->prev = r;
    h->requests = r;
    if (r->connection) r->connection->request = r;
    pthread_mutex_unlock(&h->lock);
    return r;
}

/* Time for a body, from its head on: ten seconds, or what the limit on idling gives where that is less, and a second per 16 KiB that were announced or,
 * of a chunked one, have come. */
static uint64_t body_deadline(const weft__http_request *r)
{
    const weft__http_config *c = &r->http->config;
    const char *length = weft__http_header(r, "Content-Length");
    uint64_t n = length ? strtoull(length, NULL, 10) : r->n_in, first = c->idle_s < 10 ? (uint64_t)c->idle_s : 10;
    if (n > c->max_body) n = c->max_body;
    return r->head_ns + (first + (r->unwanted ? 0 : n / 16384)) * SECOND_NS;
}

/* The head is complete. */
static enum MHD_Result take_head(weft__http_request *r, struct MHD_Connection *c, const char *path, const char *method,
                                 const char *version)
{
    const char *message = NULL;
    r->head_done = 1;
    r->modern = strcmp(version, MHD_HTTP_VERSION_1_0) != 0;
    r->head_ns = weft__clock_ns();
    if (!r->connection || !weft__http_copy_head(r, c, path, method)) return MHD_NO;
    int status = weft__http_check_head(r, &message);
    if (!status && !strcmp(method, "OPTIONS") && r->cors) status = 204;
    if (!status) {
        char client[WEFT__HTTP_CLIENT] = "";
        r->unwanted = r->http->config.admit && !r->http->config.admit(r->http->config.arg, r, client);
        if (!weft__http_client_join(r, client)) return MHD_NO;
        if (weft__http_has_too_many(r)) {
            status = 429;
            message = "too many requests at once of this key";
        }
    }
    if (!status) {
        weft__http_set_deadline(r, body_deadline(r));
        return MHD_YES;
    }
    weft__http_set_deadline(r, weft__http_read_by(r, 0));
    pthread_mutex_lock(&r->lock);
    if (message) weft__http_refuse(r, status, message);
    else {
        r->answered = r->ended = 1;
        r->status = status;
    }
    r->queued = 1;
    pthread_mutex_unlock(&r->lock);
    return queue_answer(r);
}

/* Keeps these bytes, unless there is no room for them. */
static void keep(weft__http_request *r, const char *bytes, size_t n)
{
    r->no_room = weft__http_bodies_take(r, n);
    if (r->no_room) return;
    size_t before = r->body.len;
    weft__text_put(&r->body, bytes, n);
    weft__http_bodies_give(r, before + n - r->body.len); /* memory ran out */
}

static enum MHD_Result take_body(weft__http_request *r, const char *bytes, size_t *n)
{
    r->n_in += *n;
    if (r->n_in > r->http->config.max_body) r->too_long = 1;
    if (r->n_in > r->http->config.max_body + SWALLOW) return MHD_NO;
    if (!r->too_long && !r->no_room && !r->unwanted) keep(r, bytes, *n);
    if (r->too_long || r->no_room) weft__http_free_body(r);
    *n = 0;
    if (!weft__http_header(r, "Content-Length")) weft__http_set_deadline(r, body_deadline(r));
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
    weft__turns_put(r->body.len ? &h->jobs : &h->quick, &r->turn, r->client);
    pthread_cond_signal(r->body.len ? &h->job : &h->quick_job);
    watch(r);
    pthread_mutex_unlock(&h->lock);
    pthread_mutex_lock(&r->lock);
}

/* Under the request's lock. */
static void refuse_body(weft__http_request *r)
{
    static const char *const full[] = {[WEFT__HTTP_FULL] = "too many bodies at once",
                                       [WEFT__HTTP_BODIES] = "too many bodies at once of this client; wait for answers to some",
                                       [WEFT__HTTP_UNREAD] =
                                           "too much of the answers to this client is not read yet; read it first"};
    if (r->too_long) weft__http_refuse(r, 413, "the body is too long");
    else if (r->no_room) weft__http_refuse(r, r->no_room == WEFT__HTTP_FULL ? 503 : 429, full[r->no_room]);
    else weft__http_refuse(r, 503, "no memory for the body");
}

enum MHD_Result weft__http_on_call(void *arg, struct MHD_Connection *c, const char *url, const char *method, const char *version,
                                   const char *upload, size_t *n_upload, void **context)
{
    weft__http *h = arg;
    weft__http_request *r = *context;
    if (!r || h->stopping) return MHD_NO;
    if (!r->head_done) return take_head(r, c, url, method, version);
    if (*n_upload) return take_body(r, upload, n_upload);
    enum MHD_Result result = MHD_YES;
    int answer = 0;
    pthread_mutex_lock(&r->lock);
    if (r->gone) result = MHD_NO;
    else if (!r->handed && !r->answered && (r->too_long || r->no_room || r->body.failed)) {
        refuse_body(r);
        answer = 1;
    } else if (!r->handed && !r->answered) hand_over(r);
    else if (r->answered && !r->queued) answer = 1;
    else if (!r->answered) {
        r->suspended = 1;
        MHD_suspend_connection(c);
    }
    r->queued |= answer;
    pthread_mutex_unlock(&r->lock);
    return answer ? queue_answer(r) : result;
}

/* Does the library wait for another request on the connection, now that this one is complete? 0 where it is not certain. */
static int is_kept(const weft__http_request *r)
{
    const char *said = weft__http_header(r, "Connection");
    return r->modern && !r->closes && !r->http->quiet && (!said || !strcasecmp(said, "keep-alive"));
}

void weft__http_on_complete(void *arg, struct MHD_Connection *c, void **context, enum MHD_RequestTerminationCode why)
{
    weft__http *h = arg;
    weft__http_request *r = *context;
    void (*drop)(void *);
    (void)c;
    *context = NULL;
    if (!r) return;
    pthread_mutex_lock(&r->lock);
    int complete =
        r->queued && (why == MHD_REQUEST_TERMINATED_COMPLETED_OK || (r->refused && why == MHD_REQUEST_TERMINATED_WITH_ERROR));
    int unread = r->full || (why == MHD_REQUEST_TERMINATED_TIMEOUT_REACHED && r->queued);
    pthread_mutex_unlock(&r->lock);
    if (!complete) weft__http_mark_gone(r, unread);
    pthread_mutex_lock(&r->lock);
    int slow = r->slow;
    pthread_mutex_unlock(&r->lock);
    pthread_mutex_lock(&h->lock);
    if (r->connection) {
        if (r->handed) epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, r->connection->fd, NULL);
        uint64_t now = weft__clock_ns();
        r->connection->deadline_ns = now + (uint64_t)h->config.idle_s * SECOND_NS;
        if (complete && is_kept(r)) r->connection->waits_ns = now;
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
    pthread_mutex_lock(&r->lock);
    r->c = NULL;
    r->complete = complete;
    r->ended_ns = weft__clock_ns();
    drop = r->on_drop;
    r->on_gone = r->on_drop = NULL;
    pthread_mutex_unlock(&r->lock);
    if (drop) drop(r->gone_arg);
    weft__http_unref(r);
}

static void opened(weft__http *h, struct MHD_Connection *c, void **context)
{
    struct weft__http_connection *k = weft__alloc_zero(1, sizeof *k);
    int same = 0, most = h->config.max_per_ip, size = SEND_BUFFER;
    *context = k;
    if (!k) return; /* its requests are refused */
    k->http = h;
    k->fd = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    weft__http_peer_of(MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr, &k->peer);
    if (weft__http_peer_is_exempt(h, &k->peer)) most = 0;
    setsockopt(k->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    k->waits_ns = weft__clock_ns();
    uint64_t patience = (uint64_t)h->config.idle_s;
    pthread_mutex_lock(&h->lock);
    for (const struct weft__http_connection *o = h->connections; o; o = o->next) same += weft__http_peer_same(&o->peer, &k->peer);
    if (h->counts.n_connections >= h->config.max_connections) k->refuse = 503;
    else if (most && same >= most) k->refuse = 429;
    if (k->refuse && patience > REFUSED_S) patience = REFUSED_S;
    k->deadline_ns = k->waits_ns + patience * SECOND_NS;
    if (most && same >= most + SPARE_PER_IP) shutdown(k->fd, SHUT_RDWR); /* it would take the place of others */
    h->counts.n_refused_full += k->refuse != 0;
    h->counts.n_connections++;
    h->counts.n_connections_total++;
    k->next = h->connections;
    if (k->next) k->next->prev = k;
    h->connections = k;
    pthread_mutex_unlock(&h->lock);
}

void weft__http_on_connection(void *arg, struct MHD_Connection *c, void **context, enum MHD_ConnectionNotificationCode code)
{
    weft__http *h = arg;
    struct weft__http_connection *k = *context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        opened(h, c, context);
        return;
    }
    if (!k) return;
    weft__http_refuse_line(h, k, c);
    pthread_mutex_lock(&h->lock);
    if (k->next) k->next->prev = k->prev;
    if (k->prev) k->prev->next = k->next;
    else h->connections = k->next;
    h->counts.n_connections--;
    pthread_mutex_unlock(&h->lock);
    weft__free(k);
    *context = NULL;
}
