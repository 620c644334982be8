// SPDX-License-Identifier: Apache-2.0
/* watch.c: the watcher, which keeps deadlines and trims the heap, and the workers, which run handlers. */
#include "http/parts.h"

#include <poll.h>
#include <sys/socket.h>

/* With the lock. */
static int is_expired(const struct weft__http_connection *k, uint64_t now)
{
    const uint64_t active = atomic_load(&k->active_ns);
    return (k->deadline_ns && k->deadline_ns <= now) ||
           (active && active + (uint64_t)k->http->config.idle_s * HTTP_SECOND_NS <= now);
}

/* Shuts down one connection whose time is over; its request, with a reference, in *r. 0: there is none. */
static int cut_one(weft__http *h, uint64_t now, weft__http_request **r)
{
    *r = NULL;
    pthread_mutex_lock(&h->lock);
    struct weft__http_connection *k = h->connections;
    while (k && !is_expired(k, now)) k = k->next;
    if (k) {
        k->deadline_ns = 0;
        atomic_store(&k->active_ns, 0);
        *r = k->request;
        if (*r) {
            atomic_fetch_add(&(*r)->refs, 1);
            pthread_mutex_lock(&(*r)->lock);
            (*r)->expired = 1;
            pthread_mutex_unlock(&(*r)->lock);
        }
        shutdown(k->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(&h->lock);
    return k != NULL;
}

static void ping(weft__http *h, uint64_t now)
{
    uint64_t after = (uint64_t)h->config.ping_s * HTTP_SECOND_NS;
    if (!after) return;
    pthread_mutex_lock(&h->lock);
    for (weft__http_request *r = h->requests; r; r = r->next) {
        pthread_mutex_lock(&r->lock);
        if (r->stream && !r->ended && !r->gone && r->out_at == r->out.len && r->last_write_ns + after <= now) {
            weft__http_ping(r);
            if (r->connection) r->connection->deadline_ns = weft__http_read_by(r, 0);
            (void)weft__http_wake(r);
        }
        if (r->half_closed && r->on_gone && !r->answered && r->last_write_ns + after <= now)
            (void)weft__http_wake(r); /* its loop asks again whether the client is there */
        pthread_mutex_unlock(&r->lock);
    }
    pthread_mutex_unlock(&h->lock);
    weft__http_loops_wake(h);
}

/* What a burst of large requests took is not kept for weeks. Returns when the heap was trimmed last. */
static uint64_t trim(weft__http *h, uint64_t now, uint64_t trimmed)
{
    pthread_mutex_lock(&h->lock);
    int due = now >= trimmed + HTTP_SECOND_NS && (h->n_freed >= HTTP_TRIM_BYTES || (h->n_freed && !h->n_live));
    if (due) h->n_freed = 0;
    pthread_mutex_unlock(&h->lock);
    if (!due) return trimmed;
    weft__alloc_trim();
    return now;
}

void *weft__http_watcher(void *arg)
{
    weft__http *h = arg;
    uint64_t trimmed = 0;
    for (struct pollfd stop = {h->wake_fd, POLLIN, 0}; poll(&stop, 1, 250) <= 0;) {
        uint64_t now = weft__clock_ns();
        weft__http_request *r;
        while (cut_one(h, now, &r))
            if (r) {
                weft__http_mark_gone(r, 0);
                weft__http_unref(r);
            }
        ping(h, now);
        trimmed = trim(h, now, trimmed);
    }
    return NULL;
}

/* With the lock: one client leaves a worker to all others, where there are several. */
static int may_handle(const void *http, const void *client)
{
    const weft__http *h = http;
    const weft__http_client *c = client;
    return c->exempt || h->config.n_workers < 2 || c->n_handled < h->config.n_workers - 1 || h->stopping;
}

static void handle(weft__http *h, weft__http_request *r)
{
    if (weft__http_is_gone(r)) weft__http_unref(r);
    else h->config.handle(h->config.arg, r);
}

static weft__http_request *request_of(weft__http_turn *turn)
{
    return turn ? WEFT__HTTP_TURN_OF(weft__http_request, turn, turn) : NULL;
}

/* The next request that a worker may handle, counted; NULL: the server stops. One that is passed over needs no signal
 * later: the worker that ends one of that client's looks here again. */
static weft__http_request *await_job(weft__http *h)
{
    weft__http_request *r;
    pthread_mutex_lock(&h->lock);
    while (!(r = request_of(weft__http_turns_take_if(&h->jobs, may_handle, h))) && !h->stopping)
        pthread_cond_wait(&h->job, &h->lock);
    if (r) r->client->n_handled++;
    pthread_mutex_unlock(&h->lock);
    return r;
}

void *weft__http_worker(void *arg)
{
    weft__http *h = arg;
    weft__http_request *r;
    while ((r = await_job(h))) {
        atomic_fetch_add(&r->refs,
                         1); /* so that its client lives until it is counted off, whenever the handler lets go */
        handle(h, r);
        pthread_mutex_lock(&h->lock);
        r->client->n_handled--;
        pthread_mutex_unlock(&h->lock);
        weft__http_unref(r);
    }
    return NULL;
}

void *weft__http_quick_worker(void *arg)
{
    weft__http *h = arg;
    for (;;) {
        pthread_mutex_lock(&h->lock);
        while (!h->quick.n && !h->stopping) pthread_cond_wait(&h->quick_job, &h->lock);
        weft__http_request *r = request_of(weft__http_turns_take(&h->quick));
        pthread_mutex_unlock(&h->lock);
        if (!r) return NULL;
        handle(h, r);
    }
}
