// SPDX-License-Identifier: Apache-2.0
/* http_server.c: the façade over HTTP by itself: how it takes connections, and how it stops to. */
#include "unit/fixture.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "http/parts.h"

/* The connections that one thread of the library takes, and the one after which whoever takes them is held up for a
 * moment. */
enum { LEAST = 1, SPARE = 64, LAST = LEAST + SPARE };

static atomic_int n_accepted;

/* In libc's place. */
__attribute__((visibility("default"))) int accept4(int fd, struct sockaddr *address, socklen_t *n, int flags)
{
    int got = (int)syscall(SYS_accept4, fd, address, n, flags);
    if (got >= 0 && atomic_fetch_add(&n_accepted, 1) + 1 == LAST) usleep(200000);
    return got;
}

/* One client that never lets up: what the server reads from it, from its first bytes on, is this, again and again. */
enum { ENDLESS = 1000 /* blocks */ };
static struct {
    const char *_Atomic text; /* NULL: nobody is greedy */
    atomic_int fd, n;         /* the server's end of it; blocks that it gave */
} greedy;

/* A server whose loop reads what has come only when its workers end. */
static struct {
    weft__http *_Atomic server;
    atomic_int n;
} late;

static void be_late(void)
{
    weft__http *h = late.server;
    if (!h) return;
    atomic_fetch_add(&late.n, 1);
    while (!h->stopping) usleep(1000);
    usleep(100000);
}

/* In libc's place. */
__attribute__((visibility("default"))) ssize_t recv(int fd, void *bytes, size_t n, int flags)
{
    const char *text = greedy.text;
    const size_t n_text = text ? strlen(text) : 0;
    if (n_text && fd == atomic_load(&greedy.fd)) {
        usleep(500);
        for (size_t i = 0; i < n; i++) ((char *)bytes)[i] = text[i % n_text];
        return atomic_fetch_add(&greedy.n, 1) < ENDLESS ? (ssize_t)(n - n % n_text) : 0;
    }
    ssize_t got = (ssize_t)syscall(SYS_recvfrom, fd, bytes, n, flags, NULL, NULL);
    if (n_text && got > 1 && !memcmp(bytes, "PO", 2)) atomic_store(&greedy.fd, fd);
    if (got > 0) be_late();
    return got;
}

/* The same; what such a one is sent is read. */
__attribute__((visibility("default"))) ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
    if (greedy.text && fd == atomic_load(&greedy.fd)) return (ssize_t)n;
    return (ssize_t)syscall(SYS_sendto, fd, bytes, n, flags, NULL, 0);
}

#define SECOND 1000000000ull

/* The server's clock, where the test sets it; 0: it goes. */
static atomic_ullong clock_ns;
static atomic_int n_looks; /* at it */

uint64_t __real_weft__clock_ns(void);
uint64_t __wrap_weft__clock_ns(void);
uint64_t __wrap_weft__clock_ns(void)
{
    uint64_t set = atomic_load(&clock_ns);
    atomic_fetch_add(&n_looks, 1);
    return set ? set : __real_weft__clock_ns();
}

/* The eventfd by which the only loop is woken, and how often that was done since it is set. */
static atomic_int wake_fd = -1, n_wakes;

/* In libc's place. */
__attribute__((visibility("default"))) ssize_t write(int fd, const void *bytes, size_t n)
{
    if (fd == atomic_load(&wake_fd)) atomic_fetch_add(&n_wakes, 1);
    return (ssize_t)syscall(SYS_write, fd, bytes, n);
}

static atomic_int n_trims;

/* In libc's place. */
__attribute__((visibility("default"))) int malloc_trim(size_t pad)
{
    (void)pad;
    atomic_fetch_add(&n_trims, 1);
    return 0;
}

enum { HELD = 4 };

/* Requests that are not answered at once, while there is room for them. */
static struct {
    weft__http_request *r[HELD];
    atomic_int room, n;
} held;

static void handle(void *arg, weft__http_request *r)
{
    (void)arg;
    if (atomic_load(&held.n) < held.room) {
        held.r[held.n] = r;
        atomic_fetch_add(&held.n, 1);
        return;
    }
    weft__http_reply(r, 200, "text/plain", NULL, 0);
    weft__http_release(r);
}

static weft__http *start_for(int n_connections)
{
    static const char *const origins[] = {"*", NULL};
    atomic_store(&n_accepted, 0);
    weft__http *h = NULL;
    weft_error err = {0};
    weft__http_config c = {.host = "127.0.0.1",
                           .n_threads = 1,
                           .n_workers = 1,
                           .max_body = 1000,
                           .max_head = 1000,
                           .max_bodies = 10000,
                           .max_headers = 10,
                           .max_connections = n_connections,
                           .origins = origins,
                           .max_buffer = 1000,
                           .idle_s = 60,
                           .slow_s = 60,
                           .handle = handle};
    if (weft__http_start(&c, &h, &err)) fail_msg("%s", err.message);
    return h;
}

static weft__http *start(void)
{
    return start_for(LEAST);
}

/* A connection, or -1: nobody listens. */
static int try_connect(const weft__http *h)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    a.sin_port = htons((uint16_t)atoi(strrchr(weft__http_address(h), ':') + 1));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (!connect(fd, (struct sockaddr *)&a, sizeof a)) return fd;
    assert_int_equal(errno, ECONNREFUSED);
    close(fd);
    return -1;
}

/* Asks for something; the answer must begin so. */
static void ask(int fd, const char *request, const char *begins)
{
    char answer[16] = {0};
    const size_t n = strlen(begins);
    assert_true(n < sizeof answer && write(fd, request, strlen(request)) == (ssize_t)strlen(request));
    assert_int_equal(recv(fd, answer, n, MSG_WAITALL), n);
    assert_string_equal(answer, begins);
}

/* The same on a connection that is then closed. */
static void ask_once(int fd, const char *begins)
{
    ask(fd, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", begins);
    close(fd);
}

/* How many have come in, when there should be so many soon. */
static uint64_t taken(weft__http *h, uint64_t at_least)
{
    weft__http_counts counts = {0};
    wait_until((weft__http_count(h, &counts), counts.n_connections_total >= at_least));
    return counts.n_connections_total;
}

/* The last connection that there is room for has been taken, and is not known of yet, when it stops to listen. */
static void stops_to_listen_while_its_last_connection_comes(void **state)
{
    (void)state;
    int fd[LAST];
    weft__http *h = start();
    for (int i = 0; i < LAST; i++) assert_true((fd[i] = try_connect(h)) >= 0);
    while (atomic_load(&n_accepted) < LAST) usleep(200);
    weft__http_quiesce(h);
    assert_int_equal(try_connect(h), -1);
    assert_int_equal(taken(h, LAST), LAST); /* the last one, too */
    usleep(50000);
    weft__http_quiesce(h); /* once more is fine */
    weft__http_stop(&h);
    for (int i = 0; i < LAST; i++) close(fd[i]);
}

/* More than there is room for wait, and come in as others leave. */
static void connections_wait_for_room(void **state)
{
    enum { MORE = 5 };
    (void)state;
    int fd[LAST + MORE];
    weft__http *h = start();
    weft__http_counts counts;
    uint64_t began = weft__clock_ns();
    for (int i = 0; i < LAST + MORE; i++) assert_true((fd[i] = try_connect(h)) >= 0);
    assert_true(taken(h, LAST) >= LAST);
    usleep(50000);
    uint64_t n = taken(h, LAST);
    if (weft__clock_ns() - began < 4000000000ull)
        assert_int_equal(n, LAST); /* who is one too many is cut after five seconds */
    for (int i = 0; i < LAST; i++) close(fd[i]);
    for (int i = LAST; i < LAST + MORE; i++) { /* each is answered, whether it is one too many or not */
        ask_once(fd[i], "HTTP/1.1 ");
    }
    weft__http_count(h, &counts);
    assert_int_equal(counts.n_connections_total, LAST + MORE);
    weft__http_stop(&h);
}

/* Who sends as fast as he is read, a body or requests that are answered at once, keeps nobody waiting whose connection
 * the same thread moves: who asks is answered before that ends. */
static void a_greedy_client_leaves_others_their_turn(void **state)
{
    static const char *const texts[] = {"body", "OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n"};
    static const char head[] = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ";
    (void)state;
    for (int i = 0; i < 2; i++) {
        char request[200], junk[4096];
        weft__http *h = start_for(2);
        int polite = try_connect(h);
        ask(polite, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200");
        usleep(50000); /* all of it has come */
        assert_true(recv(polite, junk, sizeof junk, MSG_DONTWAIT) > 0);
        int fd = try_connect(h), n = snprintf(request, sizeof request, "%s%d\r\n\r\n", head, i ? 0 : 16 << 20);
        atomic_store(&greedy.fd, -1);
        atomic_store(&greedy.n, 0);
        greedy.text = texts[i];
        assert_int_equal(write(fd, request, (size_t)n), n);
        wait_until(atomic_load(&greedy.n) > 1);
        ask_once(polite, "HTTP/1.1 200");
        assert_true(atomic_load(&greedy.n) < ENDLESS / 2);
        weft__http_stop(&h);
        greedy.text = NULL;
        close(fd);
    }
}

/* As many requests as can be held, of connections of their own. */
static void hold(weft__http *h, int n, int fd[HELD])
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    held.room = n;
    for (int i = 0; i < n; i++) {
        assert_true((fd[i] = try_connect(h)) >= 0);
        assert_int_equal(write(fd[i], request, sizeof request - 1), sizeof request - 1);
        wait_until(atomic_load(&held.n) == i + 1);
    }
}

static void let_go(int n, int fd[HELD])
{
    for (int i = 0; i < n; i++) {
        weft__http_end(held.r[i]);
        weft__http_release(held.r[i]);
        if (fd) close(fd[i]);
    }
    held.room = held.n = 0;
}

/* Its loop has sent what there was, and waits for more. */
static int is_suspended(weft__http_request *r)
{
    pthread_mutex_lock(&r->lock);
    int suspended = r->suspended && r->queued;
    pthread_mutex_unlock(&r->lock);
    return suspended;
}

/* Reads until these bytes come. */
static void read_until(int fd, const char *text)
{
    char got[1000] = {0};
    for (size_t n = 0; !strstr(got, text);) {
        ssize_t more = recv(fd, got + n, sizeof got - 1 - n, 0);
        assert_true(more > 0);
        n += (size_t)more;
    }
}

/* What is written to many streams at a time wakes a loop once, behind the last of it. */
static void a_loop_is_woken_once_for_all_that_is_written(void **state)
{
    (void)state;
    int fd[HELD];
    weft__http *h = start_for(HELD);
    hold(h, HELD, fd);
    for (int i = 0; i < HELD; i++) {
        weft__http_begin(held.r[i]);
        read_until(fd[i], "\r\n\r\n");
        wait_until(is_suspended(held.r[i]));
    }
    for (int round = 1; round <= 3; round++) {
        char text[20];
        int n = snprintf(text, sizeof text, "data: %d\n\n", round);
        atomic_store(&n_wakes, 0);
        atomic_store(&wake_fd, h->loops[0].wake_fd);
        for (int i = 0; i < HELD; i++) assert_int_equal(weft__http_write(held.r[i], text, (size_t)n), 1);
        assert_int_equal(atomic_load(&n_wakes), 0);
        weft__http_flush(held.r[0]);
        weft__http_flush(held.r[1]);
        for (int i = 0; i < HELD; i++) {
            read_until(fd[i], text);
            wait_until(is_suspended(held.r[i]));
        }
        assert_int_equal(atomic_load(&n_wakes), 1);
        atomic_store(&wake_fd, -1);
    }
    let_go(HELD, fd);
    weft__http_stop(&h);
}

static void *stop_it(void *http)
{
    weft__http *h = http;
    weft__http_stop(&h);
    return NULL;
}

/* One that is answered when the loops have ended, by a holder that is late, finds them still. */
static void a_request_may_be_answered_when_the_loops_are_gone(void **state)
{
    (void)state;
    int fd[HELD];
    char byte;
    pthread_t stopper;
    weft__http *h = start_for(HELD);
    hold(h, 2, fd);
    weft__http_begin(held.r[0]);
    assert_int_equal(pthread_create(&stopper, NULL, stop_it, h), 0);
    for (int i = 0; i < 2; i++) {
        while (recv(fd[i], &byte, 1, 0) > 0) continue;
        close(fd[i]);
    }
    usleep(20000); /* the loops end */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weft__http_write(held.r[i], "x", 1), 0);
        weft__http_flush(held.r[i]);
    }
    weft__http_reply(held.r[1], 200, "text/plain", NULL, 0);
    let_go(2, NULL);
    pthread_join(stopper, NULL);
    assert_int_equal(weft__alloc_live(), 0);
}

/* A request that is complete when no worker is left is let go of, and the server ends. */
static void a_request_that_comes_at_the_end_is_let_go(void **state)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    (void)state;
    weft__http *h = start();
    int fd = try_connect(h);
    late.server = h;
    assert_int_equal(write(fd, request, sizeof request - 1), sizeof request - 1);
    wait_until(atomic_load(&late.n));
    alarm(60); /* rather than wait for ever */
    weft__http_stop(&h);
    alarm(0);
    late.server = NULL;
    close(fd);
    assert_int_equal(weft__alloc_live(), 0);
}

/* Returns when the watcher has looked at the clock, and what it found due then has happened. */
static void let_it_look(void)
{
    int before = atomic_load(&n_looks);
    wait_until(atomic_load(&n_looks) >= before + 3);
}

static int n_live(weft__http *h)
{
    pthread_mutex_lock(&h->lock);
    int n = h->n_live;
    pthread_mutex_unlock(&h->lock);
    return n;
}

/* Returns when the server, too, is done with what was asked: the clock stands still, and the watcher looks once at each
 * time. */
static void ask_some(weft__http *h)
{
    for (int i = 0; i < 20; i++) {
        int fd = try_connect(h);
        assert_true(fd >= 0);
        ask_once(fd, "HTTP/1.1 200");
    }
    wait_until(!n_live(h));
}

/* The heap is trimmed when nobody is there any more and somebody was, once a second at most, and not again and
 * again. */
static void the_heap_is_trimmed_at_rest(void **state)
{
    (void)state;
#ifndef __GLIBC__
    skip();
#endif
    atomic_store(&clock_ns, 1000 * SECOND);
    weft__http *h = start();
    atomic_store(&n_trims, 0);
    atomic_fetch_add(&clock_ns, 10 * SECOND);
    let_it_look();
    assert_int_equal(atomic_load(&n_trims), 0); /* nobody was there */
    ask_some(h);
    atomic_fetch_add(&clock_ns, SECOND);
    wait_until(atomic_load(&n_trims) > 0);
    ask_some(h);
    atomic_fetch_add(&clock_ns, SECOND / 2);
    let_it_look();
    assert_int_equal(atomic_load(&n_trims), 1); /* no second has gone by */
    atomic_fetch_add(&clock_ns, SECOND);
    wait_until(atomic_load(&n_trims) > 1);
    atomic_fetch_add(&clock_ns, 10 * SECOND);
    let_it_look();
    assert_int_equal(atomic_load(&n_trims), 2); /* nobody was there since */
    weft__http_stop(&h);
    atomic_store(&clock_ns, 0);
}

/* Threads of this process that do not interrupt others. */
static int n_patient(void)
{
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *d; (d = readdir(tasks));)
        if (atoi(d->d_name) > 0 && sched_getscheduler(atoi(d->d_name)) == SCHED_BATCH) n++;
    closedir(tasks);
    return n;
}

static void the_library_does_not_interrupt(void **state)
{
    const struct sched_param none = {0};
    (void)state;
    if (sched_getscheduler(0) != SCHED_OTHER || sched_setscheduler(0, SCHED_BATCH, &none))
        skip();              /* chosen by others, or refused */
    weft__http *h = start(); /* a policy that was chosen stays */
    assert_int_equal(sched_getscheduler(0), SCHED_BATCH);
    weft__http_stop(&h);
    assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &none), 0);
    assert_int_equal(n_patient(), 0);
    h = start();
    assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
    assert_int_equal(n_patient(), 1); /* the only thread of the library; ours are like this one */
    weft__http_stop(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stops_to_listen_while_its_last_connection_comes),
        cmocka_unit_test(connections_wait_for_room),
        cmocka_unit_test(a_greedy_client_leaves_others_their_turn),
        cmocka_unit_test(a_loop_is_woken_once_for_all_that_is_written),
        cmocka_unit_test(a_request_may_be_answered_when_the_loops_are_gone),
        cmocka_unit_test(a_request_that_comes_at_the_end_is_let_go),
        cmocka_unit_test(the_heap_is_trimmed_at_rest),
        cmocka_unit_test(the_library_does_not_interrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
