/* accept.c: the acceptor, a thread that takes connections for the library, until it is told to stop.
 *
 * The library could do that itself, but cannot be told to stop where several threads serve (0.9.75): one of them that has just taken
 * the last connection that it has room for takes the socket out of its epoll set, and aborts the program when that is not there any more.
 * Nor must it be at its own limit of connections when it is given one: it then waits for a lock for ever. So it has none to speak of; how
 * many there are is decided here. */
#include "http/parts.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { AT_ONCE = 16, PAUSE_MS = 10, LOST_MS = 1000 };

/* May there be no more, those included that the library has not begun yet? The others wait in the system's queue. */
static int is_full(weft__http *h)
{
    pthread_mutex_lock(&h->lock);
    int64_t coming = (int64_t)(h->n_taken - h->counts.n_connections_total);
    int full = h->counts.n_connections + (coming > 0 ? coming : 0) >= h->config.max_connections + SPARE_CONNECTIONS;
    pthread_mutex_unlock(&h->lock);
    return full;
}

/* What is still coming now will never come: the library had no memory for it, and closed it without a word. */
static void forget_lost(weft__http *h)
{
    pthread_mutex_lock(&h->lock);
    h->n_taken = h->counts.n_connections_total;
    pthread_mutex_unlock(&h->lock);
}

/* Takes one. 0: there is none; -1: the system has no room for one now. */
static int take(weft__http *h)
{
    struct sockaddr_storage peer = {0};
    socklen_t n = sizeof peer;
    int fd = accept4(h->listen_fd, (struct sockaddr *)&peer, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED ? 0 : -1;
    if (MHD_add_connection(h->daemon, fd, (struct sockaddr *)&peer, n) != MHD_YES) return -1; /* it has closed it */
    h->n_taken++;
    return 1;
}

void *weft__http_acceptor(void *arg)
{
    weft__http *h = arg;
    struct pollfd wait[] = {{h->quiet_fd, POLLIN, 0}, {h->listen_fd, POLLIN, 0}};
    for (int failed = 0, n_pauses = 0;;) {
        int pause = failed || is_full(h);
        n_pauses = pause ? n_pauses + 1 : 0;
        if (poll(wait, pause ? 1 : 2, pause ? PAUSE_MS : -1) > 0 && wait[0].revents) return NULL;
        if (n_pauses >= LOST_MS / PAUSE_MS) {
            forget_lost(h);
            n_pauses = 0;
        }
        int took = 1;
        for (int i = 0; i < AT_ONCE && took > 0 && !is_full(h); i++) took = take(h);
        failed = took < 0;
    }
}
