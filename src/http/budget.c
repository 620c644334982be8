// SPDX-License-Identifier: Apache-2.0
/* budget.c: what each client holds of what all need: bytes of bodies, bytes of answers that were not read yet,
 * requests.
 *
 * A client is a key, or without keys an address; those behind a unix socket or a trusted proxy are many behind one
 * address, and have no share of their own. No client may hold more than would be left for all others: one client alone
 * gets half of what there is, two a third each, and the next one finds room, however greedy those there are. An answer
 * is never refused once it is made, and may be larger than any share; so a client that is beyond its own share of
 * answers asks for nothing more until it has read, and what it holds beyond it takes nothing from others. Invariant: a
 * client is in the list while a request of it lives. The lock is a leaf: nothing is called under it. */
#include "http/parts.h"

#include <string.h>

static int is_same(const weft__http_client *c, const char *name, const weft__http_peer *peer)
{
    return !strcmp(c->name, name) && (*name || !memcmp(c->network, peer->network, sizeof c->network));
}

int weft__http_peer_is_exempt(const weft__http *h, const weft__http_peer *peer)
{
    int found = h->config.unix_path != NULL;
    for (size_t i = 0; i < h->n_proxies && !found; i++) found = weft__http_peer_equal(&h->proxies[i], peer);
    return found;
}

int weft__http_client_join(weft__http_request *r, const char *name)
{
    weft__http *h = r->http;
    const weft__http_peer *peer = &r->connection->peer;
    pthread_mutex_lock(&h->budget);
    weft__http_client *c = h->clients;
    while (c && !is_same(c, name, peer)) c = c->next;
    if (!c && (c = weft__alloc_zero(1, sizeof *c))) {
        memcpy(c->network, peer->network, sizeof c->network);
        strncpy(c->name, name, sizeof c->name - 1);
        c->exempt = !*name && weft__http_peer_is_exempt(h, peer);
        c->next = h->clients;
        if (c->next) c->next->prev = c;
        h->clients = c;
    }
    if (c) c->n_requests++;
    r->client = c;
    pthread_mutex_unlock(&h->budget);
    return c != NULL;
}

void weft__http_client_leave(weft__http_request *r)
{
    weft__http *h = r->http;
    weft__http_client *c = r->client;
    if (!c) return;
    r->client = NULL;
    pthread_mutex_lock(&h->budget);
    int last = --c->n_requests == 0;
    if (last) {
        if (c->next) c->next->prev = c->prev;
        *(c->prev ? &c->prev->next : &h->clients) = c->next;
    }
    pthread_mutex_unlock(&h->budget);
    if (last) weft__free(c);
}

/* With the lock: may it ask for more, by what it has not read? */
static int has_read(const weft__http *h, const weft__http_client *c)
{
    size_t n = 1; /* the next client */
    if (c->exempt) return c->n_answers <= 2 * h->config.max_answers;
    for (const weft__http_client *o = h->clients; o; o = o->next) n += o->n_answers != 0;
    return c->n_answers <= h->config.max_answers / n;
}

enum weft__http_room weft__http_bodies_take(weft__http_request *r, size_t n)
{
    weft__http *h = r->http;
    weft__http_client *c = r->client;
    const size_t max = h->config.max_bodies;
    enum weft__http_room room = WEFT__HTTP_ROOM;
    pthread_mutex_lock(&h->budget);
    if (n > max || h->n_bodies > max - n) room = WEFT__HTTP_FULL;
    else if (!c->exempt && c->n_bodies + n > max - n - h->n_bodies) room = WEFT__HTTP_BODIES;
    else if (!has_read(h, c)) room = WEFT__HTTP_UNREAD;
    else {
        h->n_bodies += n;
        c->n_bodies += n;
    }
    pthread_mutex_unlock(&h->budget);
    return room;
}

void weft__http_bodies_give(weft__http_request *r, size_t n)
{
    if (!n || !r->client) return;
    pthread_mutex_lock(&r->http->budget);
    r->http->n_bodies -= n;
    r->client->n_bodies -= n;
    pthread_mutex_unlock(&r->http->budget);
}

void weft__http_answers_take(weft__http_request *r, size_t n)
{
    if (!n || !r->client) return;
    r->n_counted += n;
    pthread_mutex_lock(&r->http->budget);
    r->http->n_answers += n;
    r->client->n_answers += n;
    pthread_mutex_unlock(&r->http->budget);
}

void weft__http_answers_give(weft__http_request *r, size_t n)
{
    if (!n || !r->client) return;
    r->n_counted -= n;
    pthread_mutex_lock(&r->http->budget);
    r->http->n_answers -= n;
    r->client->n_answers -= n;
    pthread_mutex_unlock(&r->http->budget);
}

int weft__http_has_too_many(weft__http_request *r)
{
    weft__http *h = r->http;
    pthread_mutex_lock(&h->lock);
    int n_free = h->config.max_connections - h->n_begun;
    pthread_mutex_unlock(&h->lock);
    pthread_mutex_lock(&h->budget);
    int too_many = *r->client->name && r->client->n_requests > (n_free > 0 ? n_free : 0) + 1;
    pthread_mutex_unlock(&h->budget);
    return too_many;
}

const void *weft__http_client_of(const weft__http_request *r)
{
    return r->client && !r->client->exempt ? r->client : NULL;
}

int weft__http_client_add(weft__http_request *r, int n, int most)
{
    weft__http *h = r->http;
    weft__http_client *c = r->client;
    if (!c) return 1;
    pthread_mutex_lock(&h->budget);
    int room = c->exempt || n <= 0 || c->n_places + n <= most;
    if (room) c->n_places += n;
    pthread_mutex_unlock(&h->budget);
    return room;
}
