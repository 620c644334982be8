// SPDX-License-Identifier: Apache-2.0
/* http.c: the façade starts to listen, stops to accept, and ends (http.h, parts.h). Owner: the thread that serves. */
#include "http/parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/random.h"
#include "base/thread.h"

/* ::ffff:127.0.0.1 is 127.0.0.1. */
static int is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET) return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
    if (a->sa_family != AF_INET6) return 0;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)a)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
}

static weft_status listen_unix(weft__http *h, weft_error *err)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const char *path = h->config.unix_path;
    if (strlen(path) >= sizeof a.sun_path)
        return weft_fail(err, WEFT_ARGUMENT, "%s: longer than %zu bytes", path, sizeof a.sun_path - 1);
    strcpy(a.sun_path, path);
    h->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (h->listen_fd < 0) return weft_fail(err, WEFT_IO, "%s: %s", path, strerror(errno));
    struct stat there;
    if (!lstat(path, &there) && S_ISSOCK(there.st_mode)) { /* left behind by one that was killed? */
        if (!connect(h->listen_fd, (struct sockaddr *)&a, sizeof a))
            return weft_fail(err, WEFT_EXISTS, "%s: another server listens there", path);
        if (errno != ECONNREFUSED) /* EAGAIN: it is busy; EPROTOTYPE: of another kind */
            return weft_fail(err, WEFT_EXISTS,
                             "%s: another program's socket, not one left behind; remove it or take another path", path);
        close(h->listen_fd);
        unlink(path);
        h->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    }
    mode_t old = umask(0177);
    int rc = h->listen_fd < 0 || bind(h->listen_fd, (struct sockaddr *)&a, sizeof a) || listen(h->listen_fd, 128);
    umask(old);
    if (rc) return weft_fail(err, WEFT_IO, "%s: %s", path, strerror(errno));
    if (!lstat(path, &there)) h->unix_file = there.st_ino;
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
    if (rc)
        return weft_fail(err, WEFT_IO, "%s port %d: %s%s", c->host, c->port, strerror(why),
                         why == EADDRINUSE ? " by another program; take another port"
                         : why == EACCES   ? "; ports from 1024 on are for everybody"
                                           : "");
    getsockname(h->listen_fd, (struct sockaddr *)&bound, &n);
    int number = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                   : ((struct sockaddr_in *)&bound)->sin_port);
    int six = strchr(c->host, ':') != NULL;
    snprintf(h->address, sizeof h->address, "%s://%s%.100s%s:%d", c->tls_cert ? "https" : "http", six ? "[" : "",
             c->host, six ? "]" : "", number);
    return WEFT_OK;
}

/* h->address is that of the socket, as its peers would name it. */
static void name_passed(weft__http *h, const struct sockaddr *a, socklen_t n)
{
    char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
    const int six = a->sa_family == AF_INET6;
    getnameinfo(a, n, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(h->address, sizeof h->address, "%s://%s%.100s%s:%.8s", h->config.tls_cert ? "https" : "http",
             six ? "[" : "", host, six ? "]" : "", port);
}

/* A socket that another process made: its file, where it has one, is not ours to remove. */
static weft_status take_passed(weft__http *h, weft_error *err)
{
    struct sockaddr_storage bound = {0};
    socklen_t n = sizeof bound, n_int = sizeof(int);
    int fd = h->config.listen_fd, listens = 0;
    h->config.unix_path = NULL;
    h->listen_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (h->listen_fd < 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n_int) ||
        getsockname(fd, (struct sockaddr *)&bound, &n))
        return weft_fail(err, WEFT_IO, "the socket that was passed (descriptor %d): %s", fd, strerror(errno));
    const int is_unix = bound.ss_family == AF_UNIX;
    if (!listens || (!is_unix && bound.ss_family != AF_INET && bound.ss_family != AF_INET6))
        return weft_fail(err, WEFT_ARGUMENT,
                         "the socket that was passed (descriptor %d) is none of TCP or unix that listens for streams",
                         fd);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    h->loopback = is_loopback((struct sockaddr *)&bound);
    if (!is_unix) {
        name_passed(h, (struct sockaddr *)&bound, n);
        return WEFT_OK;
    }
    const char *path = ((struct sockaddr_un *)&bound)->sun_path;
    const size_t n_path = n > offsetof(struct sockaddr_un, sun_path) ? n - offsetof(struct sockaddr_un, sun_path) : 0;
    h->unix_path = weft__strndup(path, strnlen(path, n_path)); /* "": it has no file */
    h->config.unix_path = h->unix_path;
    if (!h->unix_path) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
    snprintf(h->address, sizeof h->address, "unix:%s", h->unix_path);
    return WEFT_OK;
}

/* How this thread, and those that it makes from now on, are scheduled. */
static void set_policy(int policy)
{
    const struct sched_param none = {0};
    (void)sched_setscheduler(0, policy, &none); /* a wish */
}

static weft_status start_loops(weft__http *h, weft_error *err)
{
    const weft__http_config *c = &h->config;
    if (c->tls_cert && weft__http_tls_open(c->tls_cert, c->tls_key, &h->tls, err)) return err ? err->status : WEFT_IO;
    /* They run when a core is free, or was used for its time by a thread that computes (a few ms): otherwise each token
     * that is told interrupts the step after it. Where the user chose a policy, it stays. */
    const int choose = sched_getscheduler(0) == SCHED_OTHER;
    if (choose) set_policy(SCHED_BATCH);
    weft_status st = weft__http_loops_start(h, err);
    if (choose) set_policy(SCHED_OTHER);
    if (st) return st;
    if (weft__thread_start(&h->watcher, weft__http_watcher, h)) /* it wakes the loops */
        return weft_fail(err, WEFT_LIMIT, "the system refuses threads");
    h->watching = 1;
    if (weft__thread_start(&h->acceptor, weft__http_acceptor, h))
        return weft_fail(err, WEFT_LIMIT, "the system refuses threads");
    h->accepting = 1;
    return WEFT_OK;
}

static weft_status start_threads(weft__http *h, weft_error *err)
{
    h->wake_fd = eventfd(0, EFD_CLOEXEC);
    h->quiet_fd = eventfd(0, EFD_CLOEXEC);
    if (h->wake_fd < 0 || h->quiet_fd < 0) return weft_fail(err, WEFT_IO, "eventfd: %s", strerror(errno));
    if (weft__thread_start(&h->quick_worker, weft__http_quick_worker, h))
        return weft_fail(err, WEFT_LIMIT, "the system refuses threads");
    h->has_quick = 1;
    h->workers = weft__alloc_array((size_t)h->config.n_workers, sizeof *h->workers);
    if (!h->workers) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
    for (; h->n_workers < h->config.n_workers; h->n_workers++)
        if (weft__thread_start(&h->workers[h->n_workers], weft__http_worker, h))
            return weft_fail(err, WEFT_LIMIT, "the system refuses threads");
    return WEFT_OK;
}

static void make_locks(weft__http *h)
{
    pthread_mutex_init(&h->lock, NULL);
    pthread_mutex_init(&h->budget, NULL);
    weft__clock_cond_init(&h->job);
    weft__clock_cond_init(&h->quick_job);
    weft__clock_cond_init(&h->idle);
}

static weft_status read_proxies(weft__http *h, weft_error *err)
{
    size_t n = 0;
    const char *const *list = h->config.proxies;
    while (list && list[n]) n++;
    h->proxies = n ? weft__alloc_array(n, sizeof *h->proxies) : NULL;
    if (n && !h->proxies) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
    for (; h->n_proxies < n; h->n_proxies++)
        if (!weft__http_peer_read(list[h->n_proxies], &h->proxies[h->n_proxies]))
            return weft_fail(err, WEFT_ARGUMENT, "proxy %.100s: must be an address in digits, like 10.0.0.2 or fd00::2",
                             list[h->n_proxies]);
    return WEFT_OK;
}

weft_status weft__http_start(const weft__http_config *config, weft__http **out, weft_error *err)
{
    *out = NULL;
    weft__http *h = weft__alloc_zero(1, sizeof *h);
    if (!h) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
    h->config = *config;
    h->run = (uint32_t)weft__rng_entropy();
    h->listen_fd = h->quiet_fd = h->wake_fd = -1;
    make_locks(h);
    weft__alloc_keep_little();
    *out = h; /* before the threads that call the handlers, which find the server by it */
    weft_status st = config->listen_fd ? take_passed(h, err) : WEFT_OK;
    if (!st) st = read_proxies(h, err);
    if (!st && !config->listen_fd) st = config->unix_path ? listen_unix(h, err) : listen_tcp(h, err);
    if (!st) st = start_threads(h, err);
    if (!st) st = start_loops(h, err);
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
    uint64_t one = 1;
    struct stat there;
    pthread_mutex_lock(&h->lock);
    int first = !h->quiet;
    h->quiet = 1;
    pthread_mutex_unlock(&h->lock);
    if (!first) return;
    if (h->accepting && write(h->quiet_fd, &one, sizeof one) == sizeof one) pthread_join(h->acceptor, NULL);
    if (h->listen_fd >= 0) close(h->listen_fd);
    h->listen_fd = -1;
    if (h->unix_path && !lstat(h->unix_path, &there) && there.st_ino == h->unix_file)
        unlink(h->unix_path); /* ours still */
}

int weft__http_wait_idle(weft__http *h, uint64_t timeout_ms)
{
    const uint64_t until = weft__clock_ns() + timeout_ms * 1000000;
    pthread_mutex_lock(&h->lock);
    while (h->counts.n_requests && !weft__clock_wait(&h->idle, &h->lock, until))
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
        weft__http_mark_gone(r, 0);
        weft__http_unref(r);
    }
}

void weft__http_stop(weft__http **p)
{
    weft__http *h = p ? *p : NULL;
    if (!h) return;
    *p = NULL;
    weft__http_quiesce(h);
    pthread_mutex_lock(&h->lock);
    h->stopping = 1;
    pthread_cond_broadcast(&h->job);
    pthread_cond_broadcast(&h->quick_job);
    pthread_mutex_unlock(&h->lock);
    cut_all(h);
    weft__http_loops_stop(h);
    for (int i = 0; i < h->n_workers; i++) pthread_join(h->workers[i], NULL);
    if (h->has_quick) pthread_join(h->quick_worker, NULL);
    pthread_mutex_lock(&h->lock);
    while (h->n_live) pthread_cond_wait(&h->idle, &h->lock);
    pthread_mutex_unlock(&h->lock);
    uint64_t one = 1;
    if (h->watching && write(h->wake_fd, &one, sizeof one) == sizeof one) pthread_join(h->watcher, NULL);
    weft__http_loops_free(h); /* whoever may wake one is gone: the watcher, and holders of requests */
    if (h->wake_fd >= 0) close(h->wake_fd);
    if (h->quiet_fd >= 0) close(h->quiet_fd);
    weft__http_tls_close(&h->tls);
    weft__free(h->workers);
    weft__free(h->unix_path);
    weft__free(h->proxies);
    pthread_cond_destroy(&h->job);
    pthread_cond_destroy(&h->quick_job);
    pthread_cond_destroy(&h->idle);
    pthread_mutex_destroy(&h->lock);
    pthread_mutex_destroy(&h->budget);
    weft__free(h);
}

void weft__http_count(weft__http *h, weft__http_counts *out)
{
    pthread_mutex_lock(&h->lock);
    *out = h->counts;
    pthread_mutex_unlock(&h->lock);
    pthread_mutex_lock(&h->budget);
    out->n_body_bytes = h->n_bodies;
    out->n_answer_bytes = h->n_answers;
    pthread_mutex_unlock(&h->budget);
}
