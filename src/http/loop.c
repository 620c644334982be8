// SPDX-License-Identifier: Apache-2.0
/* loop.c: the threads that move bytes. Each waits for its sockets and for those that roused a connection of its own,
 * and lets it go on. */
#include "http/parts.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"

/* How many connections that have begun are of its address, and how many of them are refused; the lock is held. */
static int n_same(const weft__http *h, const weft__http_peer *peer, int *n_refused)
{
    int n = 0;
    *n_refused = 0;
    for (const struct weft__http_connection *o = h->connections; o; o = o->next) {
        int same = o->has_begun && weft__http_peer_same(&o->peer, peer);
        n += same;
        *n_refused += same && o->refuse;
    }
    return n;
}

/* Its loop has it: is there room for it, and for its address? By its loop, behind whom this one closed before. */
static void start(struct weft__http_connection *k)
{
    weft__http *h = k->http;
    const int most = weft__http_peer_is_exempt(h, &k->peer) ? 0 : h->config.max_per_ip;
    uint64_t patience = (uint64_t)h->config.idle_s;
    pthread_mutex_lock(&h->lock);
    int refused, same = n_same(h, &k->peer, &refused);
    if (h->n_begun >= h->config.max_connections) k->refuse = 503;
    else if (most && same - refused >= most) k->refuse = 429;
    if (k->refuse && patience > HTTP_REFUSED_S) patience = HTTP_REFUSED_S;
    k->deadline_ns = weft__clock_ns() + patience * HTTP_SECOND_NS;
    if (most && same >= most + HTTP_SPARE_PER_IP) shutdown(k->fd, SHUT_RDWR); /* it would take the place of others */
    h->counts.n_refused_full += k->refuse != 0;
    h->n_begun += !k->refuse; /* one that is refused takes no place */
    k->has_begun = 1;
    pthread_mutex_unlock(&h->lock);
}

static void enlist(struct weft__http_connection *k)
{
    weft__http *h = k->http;
    pthread_mutex_lock(&h->lock);
    h->counts.n_connections++;
    k->loop = &h->loops[h->counts.n_connections_total++ % (uint64_t)h->n_loops];
    k->next = h->connections;
    if (k->next) k->next->prev = k;
    h->connections = k;
    pthread_mutex_unlock(&h->lock);
}

int weft__http_open(weft__http *h, int fd, const struct sockaddr *peer)
{
    struct weft__http_connection *k = weft__alloc_zero(1, sizeof *k);
    const int size = HTTP_SEND_BUFFER, on = 1;
    if (k && h->tls) k->tls = weft__http_tls_accept(h->tls, fd);
    if (!k || (h->tls && !k->tls)) {
        weft__free(k);
        close(fd);
        return 0;
    }
    k->http = h;
    k->fd = fd;
    k->reader.max_head = h->config.max_head;
    k->reader.max_headers = (size_t)h->config.max_headers;
    weft__http_peer_of(peer, &k->peer);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* of a unix socket refused */
    enlist(k);
    struct weft__http_loop *l = k->loop;
    weft__http_rouse(k); /* its loop takes it in, and may close it at once */
    weft__http_loop_wake(l);
    return 1;
}

void weft__http_rouse(struct weft__http_connection *k)
{
    struct weft__http_loop *l = k->loop;
    pthread_mutex_lock(&l->lock);
    if (!k->is_awake) {
        k->is_awake = 1;
        k->next_awake = l->awake;
        l->awake = k;
    }
    pthread_mutex_unlock(&l->lock);
}

void weft__http_loop_wake(struct weft__http_loop *l)
{
    const uint64_t one = 1;
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    int first = l->awake && !l->is_woken;
    if (first) l->is_woken = 1;
    pthread_mutex_unlock(&l->lock);
    if (first && write(l->wake_fd, &one, sizeof one) != sizeof one) abort(); /* it has room for 2^64 */
}

void weft__http_loops_wake(weft__http *h)
{
    for (int i = 0; i < h->n_loops; i++) weft__http_loop_wake(&h->loops[i]);
}

/* The next of those that were roused before *more was 1, or NULL. One that is roused meanwhile, by itself above all,
 * comes after the sockets: none keeps the others of its loop waiting. */
static struct weft__http_connection *take_awake(struct weft__http_loop *l, int *more)
{
    pthread_mutex_lock(&l->lock);
    if (*more) {
        l->now = l->awake;
        l->awake = NULL;
        l->is_woken = 0;
        *more = 0;
    }
    struct weft__http_connection *k = l->now;
    if (k) {
        l->now = k->next_awake;
        k->is_awake = 0;
    }
    pthread_mutex_unlock(&l->lock);
    return k;
}

/* Takes it out of a list, if it is there. */
static void unlist(struct weft__http_connection **at, const struct weft__http_connection *k)
{
    while (*at && *at != k) at = &(*at)->next_awake;
    if (*at) *at = k->next_awake;
}

static void close_one(struct weft__http_connection *k)
{
    weft__http *h = k->http;
    struct weft__http_loop *l = k->loop;
    pthread_mutex_lock(&h->lock);
    weft__http_request *r = k->request;
    pthread_mutex_unlock(&h->lock);
    if (r && !weft__http_take_head(r, &k->reader)) r->path = NULL;
    if (r) weft__http_complete(r, 0);
    pthread_mutex_lock(&h->lock);
    if (k->next) k->next->prev = k->prev;
    if (k->prev) k->prev->next = k->next;
    else h->connections = k->next;
    h->counts.n_connections--;
    h->n_begun -= k->has_begun && !k->refuse;
    pthread_mutex_unlock(&h->lock);
    pthread_mutex_lock(&l->lock);
    if (k->is_awake) unlist(&l->awake, k);
    if (k->is_awake) unlist(&l->now, k);
    pthread_mutex_unlock(&l->lock);
    weft__http_tls_free(k->tls);
    close(k->fd);
    weft__http_reader_reset(&k->reader);
    weft__strbuf_free(&k->in);
    weft__strbuf_free(&k->out);
    weft__free(k);
}

static void loop_go_on(struct weft__http_connection *k)
{
    if (!weft__http_exchange(k)) close_one(k);
}

/* A roused connection: one that was just accepted begins. */
static void wake(struct weft__http_loop *l, struct weft__http_connection *k)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = k};
    if (!k->has_begun) {
        start(k);
        if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, k->fd, &e)) {
            close_one(k);
            return;
        }
    }
    loop_go_on(k);
}

static void *loop_run(void *arg)
{
    struct weft__http_loop *l = arg;
    struct epoll_event events[64];
    uint64_t count;
    for (int busy = 0;;) {
        int n = epoll_wait(l->epoll_fd, events, 64, busy ? 0 : -1);
        for (int i = 0; i < n; i++) {
            struct weft__http_connection *k = events[i].data.ptr;
            if (k && events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) k->has_ended = 1;
            if (k && events[i].events & (EPOLLHUP | EPOLLERR)) k->has_left = 1;
            if (k) loop_go_on(k);
            else if (read(l->wake_fd, &count, sizeof count) != sizeof count) return NULL;
        }
        int more = 1;
        for (struct weft__http_connection *k; (k = take_awake(l, &more));) wake(l, k);
        pthread_mutex_lock(&l->lock);
        int stop = l->stop;
        busy = l->awake != NULL; /* roused by itself above all */
        pthread_mutex_unlock(&l->lock);
        if (stop) return NULL;
    }
}

weft_status weft__http_loops_start(weft__http *h, weft_error *err)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    h->loops = weft__alloc_zero((size_t)h->config.n_threads, sizeof *h->loops);
    if (!h->loops) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
    for (; h->n_loops < h->config.n_threads; h->n_loops++) {
        struct weft__http_loop *l = &h->loops[h->n_loops];
        l->http = h;
        l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        l->wake_fd = eventfd(0, EFD_CLOEXEC);
        int failed = l->epoll_fd < 0 || l->wake_fd < 0 || epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->wake_fd, &e);
        int why = errno;
        pthread_mutex_init(&l->lock, NULL);
        if (!failed && !weft__thread_start(&l->thread, loop_run, l)) continue;
        pthread_mutex_destroy(&l->lock);
        if (l->epoll_fd >= 0) close(l->epoll_fd);
        if (l->wake_fd >= 0) close(l->wake_fd);
        return failed ? weft_fail(err, WEFT_IO, "epoll: %s", strerror(why))
                      : weft_fail(err, WEFT_LIMIT, "the system refuses threads");
    }
    return WEFT_OK;
}

void weft__http_loops_stop(weft__http *h)
{
    const uint64_t one = 1;
    for (int i = 0; i < h->n_loops; i++) {
        struct weft__http_loop *l = &h->loops[i];
        pthread_mutex_lock(&l->lock);
        l->stop = 1;
        pthread_mutex_unlock(&l->lock);
        if (write(l->wake_fd, &one, sizeof one) == sizeof one) pthread_join(l->thread, NULL);
    }
    while (h->connections) close_one(h->connections); /* the loops are gone, and the acceptor */
}

void weft__http_loops_free(weft__http *h)
{
    for (int i = 0; i < h->n_loops; i++) {
        close(h->loops[i].epoll_fd);
        close(h->loops[i].wake_fd);
        pthread_mutex_destroy(&h->loops[i].lock);
    }
    weft__free(h->loops);
    h->n_loops = 0;
}
