// SPDX-License-Identifier: Apache-2.0
/* accept.c: the acceptor, a thread that takes connections and gives them to the loops, until it is told to stop. */
#include "http/parts.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

enum { AT_ONCE = 16, PAUSE_MS = 10 };

/* May there be no more? The others wait in the system's queue. */
static int is_full(weft__http *h)
{
    pthread_mutex_lock(&h->lock);
    int full = h->counts.n_connections >= h->config.max_connections + HTTP_SPARE_CONNECTIONS;
    pthread_mutex_unlock(&h->lock);
    return full;
}

/* Takes one. 0: there is none; -1: the system has no room for one now. */
static int accept_take(weft__http *h)
{
    struct sockaddr_storage peer = {0};
    socklen_t n = sizeof peer;
    int fd = accept4(h->listen_fd, (struct sockaddr *)&peer, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED ? 0 : -1;
    return weft__http_open(h, fd, (struct sockaddr *)&peer) ? 1 : -1;
}

void *weft__http_acceptor(void *arg)
{
    weft__http *h = arg;
    struct pollfd wait[] = {{h->quiet_fd, POLLIN, 0}, {h->listen_fd, POLLIN, 0}};
    for (int failed = 0;;) {
        int pause = failed || is_full(h);
        if (poll(wait, pause ? 1 : 2, pause ? PAUSE_MS : -1) > 0 && wait[0].revents) return NULL;
        int took = 1;
        for (int i = 0; i < AT_ONCE && took > 0 && !is_full(h); i++) took = accept_take(h);
        failed = took < 0;
    }
}
