// SPDX-License-Identifier: Apache-2.0
/* service.c: see service.h. The descriptor of the manager's socket is opened once, before there are threads. */
#include "service.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/thread.h"

enum { FIRST_PASSED = 3, PATIENCE_MS = 5000 };

static struct {
    int fd; /* 0: no manager listens */
    struct sockaddr_un to;
    socklen_t n_to;
    uint64_t watch_us; /* 0: no signs of life are wanted */
    int end_fd, has_thread;
    atomic_int stopping;
    pthread_t thread;
    char address[256];
} manager;

/* A number of the environment; 0: it is not there. -1: it is none. */
static int64_t number_from(const char *name, weft_error *err)
{
    const char *text = getenv(name);
    if (!text) return 0;
    const size_t n = strlen(text);
    if (n > 0 && n <= 18 && strspn(text, "0123456789") == n) return (int64_t)strtoull(text, NULL, 10);
    weft_fail(err, WEFT_ARGUMENT, "%s=%.40s: must be a number, as a service manager sets it", name, text);
    return -1;
}

/* Is what stands there for this process? Without the variable, it is. */
static int is_ours(int64_t pid)
{
    return pid == (int64_t)getpid();
}

static weft_status read_sockets(int32_t *listen_fd, weft_error *err)
{
    const int64_t pid = number_from("LISTEN_PID", err), n = pid < 0 ? -1 : number_from("LISTEN_FDS", err);
    if (n < 0) return WEFT_ARGUMENT;
    if (!n || !is_ours(pid)) return WEFT_OK;
    if (n > 1)
        return weft_fail(err, WEFT_ARGUMENT, "LISTEN_FDS=%lld: weft serve takes one socket; one ListenStream= gives it",
                         (long long)n);
    *listen_fd = FIRST_PASSED;
    fcntl(FIRST_PASSED, F_SETFD, FD_CLOEXEC);
    return WEFT_OK;
}

static weft_status open_manager(const char *path, weft_error *err)
{
    const size_t n = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || n < 2 || n >= sizeof manager.to.sun_path)
        return weft_fail(err, WEFT_ARGUMENT, "NOTIFY_SOCKET=%.100s: must be a path, or @ and an abstract name", path);
    manager.to = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(manager.to.sun_path, path, n);
    if (path[0] == '@') manager.to.sun_path[0] = 0;
    manager.n_to = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return weft_fail(err, WEFT_IO, "a socket for NOTIFY_SOCKET: %s", strerror(errno));
    manager.fd = fd;
    return WEFT_OK;
}

weft_status service_begin(int32_t *listen_fd, weft_error *err)
{
    static const char *const names[] = {"LISTEN_PID",    "LISTEN_FDS",   "LISTEN_FDNAMES",
                                        "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"};
    const char *path = getenv("NOTIFY_SOCKET");
    *listen_fd = 0;
    weft_status st = read_sockets(listen_fd, err);
    if (!st && path && *path) st = open_manager(path, err);
    const int64_t us = st ? 0 : number_from("WATCHDOG_USEC", err), pid = us < 0 ? -1 : number_from("WATCHDOG_PID", err);
    if (!st && pid < 0) st = WEFT_ARGUMENT;
    if (!st && manager.fd && us > 0 && (!pid || is_ours(pid))) manager.watch_us = (uint64_t)us;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    return st;
}

void service_tell(const char *state)
{
    const int why = errno;
    if (manager.fd &&
        sendto(manager.fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&manager.to, manager.n_to) < 0)
        errno = why; /* a manager that takes nothing now ends nothing */
    errno = why;
}

void service_tell_status(const char *format, ...)
{
    char text[512] = "STATUS=";
    va_list args;
    if (!manager.fd) return;
    va_start(args, format);
    vsnprintf(text + 7, sizeof text - 7, format, args);
    va_end(args);
    for (char *p = text; *p; p++) /* a line end begins another variable */
        if ((unsigned char)*p < 0x20) *p = ' ';
    service_tell(text);
}

void service_stopping(void)
{
    if (!atomic_exchange(&manager.stopping, 1)) service_tell("STOPPING=1");
}

/* ---- signs of life ---- */

static int dial_unix(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (!*path || strlen(path) >= sizeof a.sun_path) return -1;
    strcpy(a.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || !connect(fd, (struct sockaddr *)&a, sizeof a)) return fd;
    close(fd);
    return -1;
}

/* "http://127.0.0.1:8080", "https://[::1]:443", of this machine: a connect answers at once. */
static int dial_tcp(const char *address)
{
    char host[200];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all = NULL;
    const char *begin = strstr(address, "://"), *port = strrchr(address, ':');
    if (!begin || !port || port - begin < 4 || port - begin > (ptrdiff_t)sizeof host) return -1;
    begin += 3;
    size_t n = (size_t)(port - begin);
    if (n >= 2 && begin[0] == '[') begin++, n -= 2;
    memcpy(host, begin, n);
    host[n] = 0;
    if (getaddrinfo(host, port + 1, &hints, &all)) return -1;
    int fd = socket(all->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, all->ai_addr, all->ai_addrlen)) {
        close(fd);
        fd = -1;
    }
    freeaddrinfo(all);
    return fd;
}

/* Any answer is one: whoever gives it accepts, reads and writes. One of TLS hangs up, since this is none. */
static int is_answering(const char *address)
{
    static const char request[] = "GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n";
    char byte;
    int fd = strncmp(address, "unix:", 5) ? dial_tcp(address) : dial_unix(address + 5);
    if (fd < 0) return 0;
    struct pollfd answer[] = {{fd, POLLIN, 0}, {manager.end_fd, POLLIN, 0}};
    int ok = send(fd, request, sizeof request - 1, MSG_NOSIGNAL) > 0 && poll(answer, 2, PATIENCE_MS) > 0 &&
             answer[0].revents && (recv(fd, &byte, 1, MSG_DONTWAIT) >= 0 || errno == ECONNRESET);
    close(fd);
    return ok;
}

static void *watch(void *arg)
{
    const int every_ms = (int)(manager.watch_us / 2000 < 600000 ? manager.watch_us / 2000 : 600000);
    struct pollfd end = {manager.end_fd, POLLIN, 0};
    (void)arg;
    for (;;) {
        if (manager.stopping || is_answering(manager.address)) service_tell("WATCHDOG=1");
        if (poll(&end, 1, every_ms > 0 ? every_ms : 1) > 0) return NULL;
    }
}

weft_status service_watch(const char *address, weft_error *err)
{
    if (!manager.watch_us || strlen(address) >= sizeof manager.address) return WEFT_OK;
    strcpy(manager.address, address);
    manager.end_fd = eventfd(0, EFD_CLOEXEC);
    if (manager.end_fd < 0) return weft_fail(err, WEFT_IO, "eventfd: %s", strerror(errno));
    manager.has_thread = !weft__thread_start(&manager.thread, watch, NULL);
    return manager.has_thread ? WEFT_OK : weft_fail(err, WEFT_LIMIT, "the system refuses threads");
}

void service_end(void)
{
    const uint64_t one = 1;
    if (manager.has_thread && write(manager.end_fd, &one, sizeof one) == sizeof one) pthread_join(manager.thread, NULL);
    manager.has_thread = 0;
    if (manager.end_fd > 0) close(manager.end_fd);
    manager.end_fd = 0;
}
