// SPDX-License-Identifier: Apache-2.0
/* exchange.c: a connection's requests, one after the other: read, handed to a worker, answered. What a client sends
 * before its answer is complete waits. By the loop of the connection. */
#include "http/parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum result { CLOSE, AGAIN /* there may be more to do */, BLOCKED /* until something happens */ };
/* Of one connection, before the others of its loop have their turn. */
enum { BLOCKS_AT_ONCE = 64, PHASES_AT_ONCE = 64 };

static ssize_t receive(struct weft__http_connection *k, char *to, size_t n)
{
    ssize_t got;
    do got = k->tls ? weft__http_tls_recv(k->tls, to, n) : recv(k->fd, to, n, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got > 0) atomic_store(&k->active_ns, weft__clock_ns());
    return got;
}

/* *at of bytes[0..n) was sent before, and more is now. 0: it is broken; AGAIN: all was sent. */
static enum result transmit(struct weft__http_connection *k, const char *bytes, size_t n, size_t *at)
{
    for (int blocks = 0; *at < n; blocks++) {
        size_t now = n - *at < 4 * HTTP_BLOCK ? n - *at : 4 * HTTP_BLOCK;
        if (blocks == BLOCKS_AT_ONCE) return weft__http_rouse(k), BLOCKED;
        ssize_t sent = k->tls ? weft__http_tls_send(k->tls, bytes + *at, now)
                              : send(k->fd, bytes + *at, now, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return errno == EAGAIN ? BLOCKED : CLOSE;
        *at += (size_t)sent;
        atomic_store(&k->active_ns, weft__clock_ns());
    }
    return AGAIN;
}

static enum result flush(struct weft__http_connection *k)
{
    if (k->out.failed) return CLOSE;
    enum result result = transmit(k, k->out.data, k->out.len, &k->out_at);
    if (result == AGAIN) k->out.len = k->out_at = 0;
    return result;
}

/* The request line is there, or never will be: a request begins. NULL: no memory. */
static weft__http_request *exchange_begin(struct weft__http_connection *k)
{
    weft__http *h = k->http;
    weft__http_request *r = weft__alloc_zero(1, sizeof *r);
    if (!r) return NULL;
    r->http = h;
    atomic_init(&r->refs, 1);
    pthread_mutex_init(&r->lock, NULL);
    r->c = r->connection = k;
    r->began_ns = r->head_ns = weft__clock_ns();
    memcpy(r->peer, k->peer.name, sizeof r->peer);
    r->is_local =
        h->config.unix_path || (weft__http_peer_is_loopback(&k->peer) && !weft__http_peer_is_exempt(h, &k->peer));
    pthread_mutex_lock(&h->lock);
    r->id = ++h->counts.n_requests_total;
    snprintf(r->name, sizeof r->name, "req-%08x-%llu", h->run, (unsigned long long)r->id);
    h->n_live++;
    h->counts.n_requests++;
    r->next = h->requests;
    if (r->next) r->next->prev = r;
    h->requests = r;
    k->request = r;
    pthread_mutex_unlock(&h->lock);
    return r;
}

/* Time for a body, from its head on: ten seconds, or what the limit on idling gives where that is less, and a second
 * per 16 KiB that were announced or, of a chunked one, have come. */
static uint64_t body_deadline(const weft__http_request *r)
{
    const weft__http_config *c = &r->http->config;
    const char *length = weft__http_header(r, "Content-Length");
    uint64_t n = length ? strtoull(length, NULL, 10) : r->n_in, first = c->idle_s < 10 ? (uint64_t)c->idle_s : 10;
    if (n > c->max_body) n = c->max_body;
    return r->head_ns + (first + (r->unwanted ? 0 : n / 16384)) * HTTP_SECOND_NS;
}

/* Its answer was given. */
static enum result start_answer(struct weft__http_connection *k, weft__http_request *r)
{
    k->phase = WEFT__HTTP_SENDING;
    k->is_last = k->is_blocked = 0;
    k->whole_at = 0;
    atomic_store(&k->active_ns, weft__clock_ns());
    pthread_mutex_lock(&r->lock);
    r->queued = 1;
    r->suspended = 0;
    weft__http_answer_head(r, k);
    if (!strcmp(r->method, "HEAD")) k->whole_at = r->n_whole;
    else if (!r->stream) r->n_out = r->n_whole;
    if (!r->stream && r->n_whole <= HTTP_BLOCK && k->whole_at < r->n_whole) { /* one packet */
        weft__strbuf_put(&k->out, r->whole, r->n_whole);
        k->whole_at = r->n_whole;
    }
    pthread_mutex_unlock(&r->lock);
    return AGAIN;
}

static enum result exchange_refuse(struct weft__http_connection *k, weft__http_request *r, int status,
                                   const char *message)
{
    if (!r && !(r = exchange_begin(k))) return CLOSE;
    if (!weft__http_take_head(r, &k->reader)) return CLOSE;
    weft__http_set_deadline(r, weft__http_read_by(r, 0));
    pthread_mutex_lock(&r->lock);
    weft__http_refuse(r, status, message);
    pthread_mutex_unlock(&r->lock);
    return start_answer(k, r);
}

/* The head is complete: AGAIN: its body may come, or it was answered. */
static enum result take_head(struct weft__http_connection *k, weft__http_request *r)
{
    const char *message = NULL;
    char client[WEFT__HTTP_CLIENT] = "";
    r->head_ns = weft__clock_ns();
    if (!weft__http_take_head(r, &k->reader)) return CLOSE;
    int status = weft__http_check_head(r, &message);
    if (status) return exchange_refuse(k, r, status, message);
    if (!strcmp(r->method, "OPTIONS") && r->cors) {
        r->answered = r->ended = 1;
        r->status = 204;
        return start_answer(k, r);
    }
    r->unwanted = r->http->config.admit && !r->http->config.admit(r->http->config.arg, r, client);
    if (!weft__http_client_join(r, client)) return CLOSE;
    if (weft__http_has_too_many(r)) return exchange_refuse(k, r, 429, "too many requests at once of this key");
    weft__http_set_deadline(r, body_deadline(r));
    const char *length = weft__http_header(r, "Content-Length"), *encoding = weft__http_header(r, "Transfer-Encoding");
    weft__http_reader_body(&k->reader, encoding != NULL, length ? strtoull(length, NULL, 10) : 0);
    if (r->modern && (encoding || length) && k->in_at == k->in.len && weft__http_has_word(r, "Expect", "100-continue"))
        weft__strbuf_puts(&k->out, "HTTP/1.1 100 Continue\r\n\r\n");
    return AGAIN;
}

/* Keeps these bytes, unless there is no room for them. */
static void keep(weft__http_request *r, const char *bytes, size_t n)
{
    r->no_room = weft__http_bodies_take(r, n);
    if (r->no_room) return;
    size_t before = r->body.len;
    weft__strbuf_put(&r->body, bytes, n);
    weft__http_bodies_give(r, before + n - r->body.len); /* memory ran out */
}

static enum result take_body(weft__http_request *r, const char *bytes, size_t n)
{
    r->n_in += n;
    if (r->n_in > r->http->config.max_body) r->too_long = 1;
    if (r->n_in > r->http->config.max_body + HTTP_SWALLOW) return CLOSE;
    if (!r->too_long && !r->no_room && !r->unwanted) keep(r, bytes, n);
    if (r->too_long || r->no_room) weft__http_free_body(r);
    if (!weft__http_header(r, "Content-Length")) weft__http_set_deadline(r, body_deadline(r));
    return AGAIN;
}

/* Gives the complete request to a worker; the connection waits. CLOSE: the workers end, and take nothing more. */
static enum result hand_over(struct weft__http_connection *k, weft__http_request *r)
{
    weft__http *h = r->http;
    k->phase = WEFT__HTTP_WAITING;
    atomic_store(&k->active_ns, 0);
    pthread_mutex_lock(&r->lock);
    r->handed = 1;
    pthread_mutex_unlock(&r->lock);
    pthread_mutex_lock(&h->lock);
    int stopping = h->stopping;
    if (!stopping) {
        atomic_fetch_add(&r->refs, 1);
        k->deadline_ns = 0;
        weft__http_turns_put(r->body.len ? &h->jobs : &h->quick, &r->turn, r->client);
        pthread_cond_signal(r->body.len ? &h->job : &h->quick_job);
    }
    pthread_mutex_unlock(&h->lock);
    return stopping ? CLOSE : AGAIN;
}

static enum result take_end(struct weft__http_connection *k, weft__http_request *r)
{
    static const char *const full[] = {
        [WEFT__HTTP_FULL] = "too many bodies at once",
        [WEFT__HTTP_BODIES] = "too many bodies at once of this client; wait for answers to some",
        [WEFT__HTTP_UNREAD] = "too much of the answers to this client is not read yet; read it first"};
    if (r->too_long) return exchange_refuse(k, r, 413, "the body is too long");
    if (r->no_room) return exchange_refuse(k, r, r->no_room == WEFT__HTTP_FULL ? 503 : 429, full[r->no_room]);
    if (r->body.failed) return exchange_refuse(k, r, 503, "no memory for the body");
    return hand_over(k, r);
}

/* More bytes; those before in_at are used up. */
static enum result fetch(struct weft__http_connection *k)
{
    char bytes[HTTP_BLOCK];
    enum result result = flush(k); /* 100 Continue */
    if (result != AGAIN) return result;
    ssize_t got = receive(k, bytes, sizeof bytes);
    if (got < 0) return errno == EAGAIN ? BLOCKED : CLOSE;
    if (!got) return CLOSE;
    if (k->in_at) memmove(k->in.data, k->in.data + k->in_at, k->in.len - k->in_at);
    k->in.len -= k->in_at;
    k->in_at = 0;
    weft__strbuf_put(&k->in, bytes, (size_t)got);
    return k->in.failed ? CLOSE : AGAIN;
}

static enum result read_on(struct weft__http_connection *k)
{
    enum result result = AGAIN;
    for (int blocks = 0; result == AGAIN && k->phase == WEFT__HTTP_READING;) {
        weft__http_request *r = k->request;
        const char *piece;
        size_t n_used, n_piece;
        const char *bytes = k->in.data ? k->in.data + k->in_at : "";
        enum weft__http_read got =
            weft__http_reader_next(&k->reader, bytes, k->in.len - k->in_at, &n_used, &piece, &n_piece);
        k->in_at += n_used;
        switch (got) {
        case WEFT__HTTP_READ_LINE: result = exchange_begin(k) ? AGAIN : CLOSE; break;
        case WEFT__HTTP_READ_HEAD: result = take_head(k, r); break;
        case WEFT__HTTP_READ_BODY: result = take_body(r, piece, n_piece); break;
        case WEFT__HTTP_READ_END: result = take_end(k, r); break;
        case WEFT__HTTP_READ_REFUSED: result = exchange_refuse(k, r, k->reader.status, k->reader.message); break;
        default:
            if (blocks++ == BLOCKS_AT_ONCE) return weft__http_rouse(k), BLOCKED;
            result = fetch(k);
        }
    }
    return result;
}

/* Is the client to be asked whether it still reads? Only where something can be cancelled; under the request's lock. */
static int must_probe(const struct weft__http_connection *k, const weft__http_request *r)
{
    const uint64_t after = (uint64_t)k->http->config.ping_s * HTTP_SECOND_NS;
    if (!k->has_ended || !r->on_gone || r->answered || r->gone) return 0;
    return !k->is_probed || (after && r->last_write_ns + after <= weft__clock_ns());
}

/* A client that closed its connection and one that ended its side look alike, until bytes come there: a closed end
 * answers them with a reset. An interim answer is such bytes, and clients of HTTP/1.1 pass over it (RFC 9110, 15.2.1).
 * 0: it cannot be asked, and counts as one that left. */
static int await_probe(struct weft__http_connection *k, weft__http_request *r)
{
    if (!r->modern) return 0;
    k->is_probed = 1;
    weft__strbuf_puts(&k->out, "HTTP/1.1 100 Continue\r\n\r\n");
    return flush(k) != CLOSE;
}

/* For the answer. */
static enum result await(struct weft__http_connection *k)
{
    weft__http_request *r = k->request;
    enum result sent = flush(k); /* an interim answer */
    if (sent != AGAIN && !k->has_left) return sent;
    atomic_store(&k->active_ns, 0); /* it waits for us */
    if (k->has_left) weft__http_mark_gone(r, 0);
    pthread_mutex_lock(&r->lock);
    int answered = r->answered, gone = r->gone, probe = must_probe(k, r);
    if (!answered && !gone) r->suspended = !probe;
    if (probe || k->has_ended > r->half_closed) r->last_write_ns = weft__clock_ns();
    r->half_closed = k->has_ended;
    pthread_mutex_unlock(&r->lock);
    if (probe) return await_probe(k, r) ? AGAIN : CLOSE;
    return gone ? CLOSE : answered ? start_answer(k, r) : BLOCKED;
}

/* The next bytes of a stream, as a chunk. BLOCKED: there are none yet. */
static enum result exchange_fill(struct weft__http_connection *k, weft__http_request *r)
{
    enum result result = AGAIN;
    if (k->has_left) weft__http_mark_gone(r, 0);
    pthread_mutex_lock(&r->lock);
    if (k->has_ended && !k->is_probed && r->out_at == r->out.len && !r->ended) weft__http_ping(r);
    k->is_probed = k->has_ended;
    size_t left = r->gone ? 0 : r->out.len - r->out_at, n = left < HTTP_BLOCK ? left : HTTP_BLOCK;
    if (r->gone || r->full || r->http->stopping) result = CLOSE;
    else if (left) {
        if (k->is_chunked) weft__strbuf_printf(&k->out, "%zx\r\n", n);
        weft__strbuf_put(&k->out, r->out.data + r->out_at, n);
        if (k->is_chunked) weft__strbuf_puts(&k->out, "\r\n");
        r->out_at += n;
        weft__http_answers_give(r, n);
        r->n_out += n;
    } else if (r->ended) {
        if (k->is_chunked) weft__strbuf_puts(&k->out, "0\r\n\r\n");
        k->is_last = 1;
    } else {
        r->suspended = 1;
        result = BLOCKED;
    }
    pthread_mutex_unlock(&r->lock);
    return result;
}

/* A client that has to read has its deadline. */
static void set_blocked(struct weft__http_connection *k, weft__http_request *r, int blocked)
{
    pthread_mutex_lock(&k->http->lock);
    pthread_mutex_lock(&r->lock); /* both: the end of the stream meanwhile gives it a deadline that stays */
    if (r->stream && !r->ended && (blocked != k->is_blocked || !blocked))
        k->deadline_ns = blocked ? weft__http_read_by(r, 0) : 0;
    pthread_mutex_unlock(&r->lock);
    pthread_mutex_unlock(&k->http->lock);
    k->is_blocked = blocked;
}

static enum result linger(struct weft__http_connection *k)
{
    char bytes[HTTP_BLOCK];
    ssize_t got;
    while ((got = recv(k->fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        if ((k->n_lingered += (size_t)got) > HTTP_SWALLOW) return CLOSE;
    return got < 0 && errno == EAGAIN ? BLOCKED : CLOSE;
}

/* All was sent: the next request is read, or what still comes is dropped. One of too many gives its place back at
 * once. */
static enum result end_answer(struct weft__http_connection *k, weft__http_request *r)
{
    const uint64_t idle = (uint64_t)k->http->config.idle_s;
    char byte;
    int all_read = !r->closes && k->in_at == k->in.len; /* of what it sent */
    weft__http_complete(r, 1);
    weft__http_reader_reset(&k->reader);
    weft__strbuf_free(&k->out);
    k->out_at = 0;
    k->phase = k->closes ? WEFT__HTTP_LINGERING : WEFT__HTTP_READING;
    atomic_store(&k->active_ns, 0);
    if (!k->closes) return AGAIN;
    if (k->tls) weft__http_tls_end(k->tls);
    if (all_read && recv(k->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0) return CLOSE;
    shutdown(k->fd, SHUT_WR);
    if (k->refuse && linger(k) == BLOCKED) return CLOSE;
    pthread_mutex_lock(&k->http->lock);
    k->deadline_ns = weft__clock_ns() + (idle < HTTP_REFUSED_S ? idle : HTTP_REFUSED_S) * HTTP_SECOND_NS;
    pthread_mutex_unlock(&k->http->lock);
    return AGAIN;
}

static enum result send_on(struct weft__http_connection *k)
{
    weft__http_request *r = k->request;
    enum result result;
    while ((result = flush(k)) == AGAIN) {
        if (k->is_last) return end_answer(k, r);
        if (!r->stream) {
            result = transmit(k, r->whole, r->n_whole, &k->whole_at);
            if (result != AGAIN) return result;
            k->is_last = 1;
            continue;
        }
        set_blocked(k, r, 0);
        if ((result = exchange_fill(k, r)) == AGAIN) continue;
        if (result == BLOCKED) atomic_store(&k->active_ns, 0); /* it waits for us */
        return result;
    }
    if (result == BLOCKED) set_blocked(k, r, 1);
    return result;
}

int weft__http_exchange(struct weft__http_connection *k)
{
    enum result result = AGAIN;
    for (int phases = 0; result == AGAIN; phases++) {
        if (phases == PHASES_AT_ONCE) return weft__http_rouse(k), 1;
        switch (k->phase) {
        case WEFT__HTTP_READING: result = read_on(k); break;
        case WEFT__HTTP_WAITING: result = await(k); break;
        case WEFT__HTTP_SENDING: result = send_on(k); break;
        case WEFT__HTTP_LINGERING: result = linger(k); break;
        }
    }
    return result != CLOSE;
}
