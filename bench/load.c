// SPDX-License-Identifier: Apache-2.0
/* load.c: many HTTP clients in one thread, for bench/serve and bench/soak: sends prepared requests, reads server-sent
 * events, and prints when each of them came. It parses no JSON and keeps no thread per client, so that a core which it
 * shares with the server stays the server's: a few microseconds per token; what it used is its last line.
 *
 *   load HOST PORT [-s SECONDS] [-t SECONDS] < plan > results
 *
 * The plan is a list of "CLIENT PAUSE_MS MODE ARG N_BYTES\n", N_BYTES of HTTP request as they are sent, and "\n".
 * Requests of one client follow each other, each PAUSE_MS after the start or the end of the one before. MODE:
 *   read    reads the answer; one connection for all that keep it open
 *   cancel  leaves after ARG events (0: when all was sent)
 *   slow    reads a byte per second, and leaves after ARG seconds
 *   raw     sends what may be no request; reads until the server closes, ARG milliseconds at most, or has answered and
 *           kept silent
 * -s: clients begin their lists again and again; after SECONDS they begin no request, and slow ones leave. -t: an
 * answer may take SECONDS (600).
 *
 * A result is a line of JSON, times in microseconds since the start: "events" when each event with text came, "text"
 * the values of their members "content", which concatenate as JSON escapes them. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"

enum mode { READ, CANCEL, SLOW, RAW, N_MODES };
static const char *const mode_names[] = {"read", "cancel", "slow", "raw"};

enum { SECOND_US = 1000000, SILENCE_US = 200000, READ_BYTES = 1 << 16 };

struct request {
    int client, mode, next; /* next of the same client, or -1 */
    uint64_t pause_us;
    long arg;
    char *bytes;
    size_t n;
};

/* How far an answer has been read. */
struct answer {
    weft__strbuf head, line, text, body; /* body: the beginning of one that is no stream */
    int status, in_body, chunked, stream, close, whole;
    long long left; /* bytes of the body or the chunk; -1: until the end */
    int in_chunk;   /* 0: the line with its size, 1: its bytes, 2: the line that ends it, 3: what follows the last */
    uint64_t *events;
    size_t n_events, cap_events;
    long long n_tokens;
    uint64_t begin_us, end_us;
};

struct client {
    int first, at;       /* requests; at -1: done */
    int fd, busy, fresh; /* fresh: nothing was answered on this connection yet */
    size_t sent;
    uint64_t due_us; /* to begin the next request, or the next byte of a slow one */
    struct answer a;
};

static struct request *requests;
static struct client *clients;
static int n_requests, n_clients, n_done, epoll_fd;
static uint64_t zero_us, until_us, patience_us = 600ull * SECOND_US;
static struct sockaddr_in server;

static uint64_t now_us(void)
{
    return weft__clock_ns() / 1000 - zero_us;
}

static void fail(const char *what)
{
    fprintf(stderr, "load: %s\n", what);
    exit(1);
}

/* ---- answers ---- */

static void answer_clear(struct answer *a)
{
    a->head.len = a->line.len = a->text.len = a->body.len = 0;
    a->status = a->in_body = a->chunked = a->stream = a->close = a->whole = a->in_chunk = 0;
    a->n_events = 0;
    a->n_tokens = 0;
}

static void take_event(struct answer *a, const char *line, size_t n, uint64_t now)
{
    static const char content[] = "\"content\":\"", count[] = "\"tokens_predicted\":";
    size_t before = a->text.len;
    const char *at = memmem(line, n, content, sizeof content - 1), *end = line + n, *tokens;
    if (at) {
        const char *from = at += sizeof content - 1;
        while (at < end && *at != '"') at += *at == '\\' ? 2 : 1;
        weft__strbuf_put(&a->text, from, (size_t)((at < end ? at : end) - from));
    }
    tokens = memmem(line, n, count, sizeof count - 1);
    if (tokens) a->n_tokens = strtoll(tokens + sizeof count - 1, NULL, 10);
    if (a->text.len == before) return; /* the last one, or one that only begins the stream */
    if (!weft__grow(&a->events, &a->cap_events, a->n_events + 1, sizeof *a->events)) fail("no memory");
    a->events[a->n_events++] = now;
}

static void take_body(struct answer *a, const char *s, size_t n, uint64_t now)
{
    if (!a->stream) {
        if (a->body.len < 300) weft__strbuf_put(&a->body, s, n < 300 ? n : 300);
        return;
    }
    for (const char *end = s + n, *line_end; s < end; s = line_end + 1) {
        line_end = memchr(s, '\n', (size_t)(end - s));
        weft__strbuf_put(&a->line, s, (size_t)((line_end ? line_end : end) - s));
        if (!line_end) return;
        if (a->line.len > 6 && !memcmp(a->line.data, "data: ", 6))
            take_event(a, a->line.data + 6, a->line.len - 6, now);
        a->line.len = 0;
    }
}

static void read_head(struct answer *a)
{
    char *h = a->head.data, *length = strcasestr(h, "\r\ncontent-length:");
    if (sscanf(h, "HTTP/1.%*d %d", &a->status) != 1) a->status = -1;
    a->chunked = strcasestr(h, "\r\ntransfer-encoding: chunked") != NULL;
    a->stream = strcasestr(h, "\r\ncontent-type: text/event-stream") != NULL;
    a->close = strcasestr(h, "\r\nconnection: close") != NULL || !strncmp(h, "HTTP/1.0", 8);
    a->left = length ? strtoll(length + 17, NULL, 10) : a->chunked ? 0 : -1;
    a->whole = !a->chunked && a->left == 0;
    a->in_body = 1;
}

/* A line of the framing, of which [s, s + n) is the rest or a part. Returns how much belongs to it; *done when it is
 * complete. */
static size_t take_line(struct answer *a, const char *s, size_t n, int *done)
{
    const char *end = memchr(s, '\n', n);
    size_t used = end ? (size_t)(end - s) + 1 : n;
    weft__strbuf_put(&a->head, s, used);
    *done = end != NULL;
    return used;
}

static size_t take_chunked(struct answer *a, const char *s, size_t n, uint64_t now)
{
    size_t used;
    int done;
    if (a->in_chunk == 1) {
        used = (long long)n < a->left ? n : (size_t)a->left;
        take_body(a, s, used, now);
        a->left -= (long long)used;
        if (!a->left) a->in_chunk = 2;
        return used;
    }
    if (a->in_chunk == 0 && !a->left) a->head.len = 0, a->left = -2;
    used = take_line(a, s, n, &done);
    if (!done) return used;
    if (a->in_chunk == 0) {
        a->left = strtoll(a->head.data, NULL, 16);
        a->in_chunk = a->left ? 1 : 3;
        a->head.len = 0;
    } else if (a->in_chunk == 2) {
        a->in_chunk = 0;
        a->left = 0;
    } else a->whole = 1;
    return used;
}

static void take_bytes(struct answer *a, const char *s, size_t n, uint64_t now)
{
    while (n > 0 && !a->whole) {
        size_t used = n;
        if (!a->in_body) { /* byte by byte to the empty line: once per answer */
            for (used = 0; used < n && !a->in_body;) {
                weft__strbuf_putc(&a->head, s[used++]);
                if (a->head.len >= 4 && !memcmp(a->head.data + a->head.len - 4, "\r\n\r\n", 4)) read_head(a);
            }
        } else if (a->chunked) used = take_chunked(a, s, n, now);
        else {
            take_body(a, s, n, now);
            if (a->left > 0 && (a->left -= (long long)n) <= 0) a->whole = 1;
        }
        s += used;
        n -= used;
    }
}

/* ---- clients ---- */

static void put_escaped(const weft__strbuf *t)
{
    for (size_t i = 0; i < t->len; i++) {
        unsigned char c = (unsigned char)t->data[i];
        if (c < 0x20 || c == '"' || c == '\\' || c > 0x7e) printf("\\u%04x", c);
        else putchar(c);
    }
}

static void print_result(const struct client *c, const char *error)
{
    const struct answer *a = &c->a;
    printf("{\"request\":%d,\"client\":%d,\"mode\":\"%s\",\"status\":%d,\"begin\":%llu,\"end\":%llu,\"tokens\":%lld,"
           "\"events\":[",
           c->at, (int)(c - clients), mode_names[requests[c->at].mode], a->status, (unsigned long long)a->begin_us,
           (unsigned long long)a->end_us, a->n_tokens);
    for (size_t i = 0; i < a->n_events; i++) printf(i ? ",%llu" : "%llu", (unsigned long long)a->events[i]);
    printf("],\"text\":\"%.*s\",\"body\":\"", (int)a->text.len, a->text.data ? a->text.data : "");
    put_escaped(&a->body);
    printf(error ? "\",\"error\":\"%s\"}\n" : "\",\"error\":null}\n", error);
}

static void hang_up(struct client *c)
{
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
}

static void leave(struct client *c)
{
    hang_up(c);
    c->at = -1;
    n_done++;
}

/* The request is over; the client goes on to its next one. error NULL: as planned. */
static void finish(struct client *c, const char *error)
{
    const struct request *r = &requests[c->at];
    uint64_t now = now_us();
    c->a.end_us = now;
    print_result(c, error);
    if (error || r->mode != READ || c->a.close || !c->a.whole) hang_up(c);
    c->busy = c->fresh = 0;
    c->at = r->next < 0 && until_us ? c->first : r->next;
    if (c->at < 0) leave(c);
    else c->due_us = now + requests[c->at].pause_us;
}

static int dial(const struct request *r)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, small = 2048;
    if (fd < 0) fail("no more sockets (ulimit -n)");
    if (r->mode == SLOW)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small); /* or the kernel would read for it */
    if (connect(fd, (struct sockaddr *)&server, sizeof server)) {
        close(fd);
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void listen_to(const struct client *c, uint32_t events, int how)
{
    struct epoll_event e = {.events = events, .data.u32 = (uint32_t)(c - clients)};
    if (epoll_ctl(epoll_fd, how, c->fd, &e)) fail("epoll_ctl");
}

static void write_some(struct client *c)
{
    const struct request *r = &requests[c->at];
    while (c->sent < r->n) {
        ssize_t n = send(c->fd, r->bytes + c->sent, r->n - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0) break; /* refused before all was sent: the answer says why */
        c->sent += (size_t)n;
    }
    c->sent = r->n;
    if (r->mode == CANCEL && r->arg == 0) {
        finish(c, NULL);
        return;
    }
    listen_to(c, r->mode == SLOW ? 0 : EPOLLIN, EPOLL_CTL_MOD);
    if (r->mode == SLOW) c->due_us = now_us() + SECOND_US;
}

static void begin(struct client *c)
{
    const struct request *r = &requests[c->at];
    answer_clear(&c->a);
    if (r->mode == RAW) hang_up(c); /* what is no request ends a connection that others have used without a word */
    c->a.begin_us = now_us();
    c->sent = 0;
    c->busy = 1;
    if (c->fd < 0) {
        c->fd = dial(r);
        c->fresh = 1;
        if (c->fd < 0) {
            finish(c, "no connection");
            return;
        }
        listen_to(c, EPOLLOUT, EPOLL_CTL_ADD);
    }
    write_some(c);
}

/* The connection ended. An idle one may have been closed while the request was on its way: once more. */
static void ended(struct client *c)
{
    const struct request *r = &requests[c->at];
    if (r->mode == READ && !c->fresh && !c->a.in_body && !c->a.head.len) {
        hang_up(c);
        begin(c);
        return;
    }
    int planned = r->mode == RAW || (r->mode == READ && c->a.in_body && c->a.left == -1 && !c->a.chunked);
    finish(c, planned ? NULL : c->a.status ? "cut off" : "no answer");
}

static void read_some(struct client *c, size_t most)
{
    static char bytes[READ_BYTES];
    const struct request *r = &requests[c->at];
    ssize_t n = recv(c->fd, bytes, most, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
        ended(c);
        return;
    }
    uint64_t now = now_us();
    if (r->mode == RAW) {
        weft__strbuf_put(&c->a.body, bytes, c->a.body.len < 300 ? (size_t)n : 0);
        if (c->a.body.data && !c->a.status && sscanf(c->a.body.data, "HTTP/1.%*d %d", &c->a.status) != 1)
            c->a.status = 0;
        c->due_us = now + SILENCE_US;
        return;
    }
    take_bytes(&c->a, bytes, (size_t)n, now);
    if (c->a.whole || (r->mode == CANCEL && (long)c->a.n_events >= r->arg)) finish(c, NULL);
}

/* ---- time ---- */

/* What the clock has to do with a client now; returns when it has to look again. */
static uint64_t look(struct client *c, uint64_t now)
{
    if (c->at < 0) return UINT64_MAX;
    const struct request *r = &requests[c->at];
    if (!c->busy) {
        if (until_us && now >= until_us) {
            leave(c);
            return UINT64_MAX;
        }
        if (c->due_us > now) return c->due_us;
        begin(c);
        return now;
    }
    uint64_t over = c->a.begin_us + (r->mode == SLOW  ? (uint64_t)r->arg * SECOND_US
                                     : r->mode == RAW ? (uint64_t)r->arg * 1000
                                                      : patience_us);
    if (r->mode == SLOW && until_us && over > until_us) over = until_us;
    if (r->mode == RAW && c->a.status && over > c->due_us) over = c->due_us;
    if (over <= now) {
        finish(c, r->mode == READ || r->mode == CANCEL ? "timed out" : NULL);
        return now;
    }
    if (r->mode != SLOW || c->sent < r->n) return over;
    if (c->due_us <= now) {
        c->due_us += SECOND_US;
        read_some(c, 1);
        return now;
    }
    return c->due_us < over ? c->due_us : over;
}

static void run(void)
{
    struct epoll_event events[256];
    uint64_t next = 0;
    while (n_done < n_clients) {
        uint64_t now = now_us();
        if (next <= now) {
            next = UINT64_MAX;
            for (int i = 0; i < n_clients; i++) {
                uint64_t at = look(&clients[i], now);
                if (at < next) next = at;
            }
            now = now_us();
        }
        uint64_t wait = next > now ? next - now : 0;
        int n = epoll_wait(epoll_fd, events, 256, wait > 200000 ? 200 : (int)((wait + 999) / 1000));
        for (int i = 0; i < n; i++) {
            struct client *c = &clients[events[i].data.u32];
            int before = c->at;
            if (!c->busy) { /* the server closed an idle connection */
                hang_up(c);
                continue;
            }
            if (c->sent < requests[c->at].n) write_some(c);
            else if (requests[c->at].mode != SLOW) read_some(c, READ_BYTES);
            else ended(c); /* only its end is listened for */
            if (c->at != before || !c->busy) next = 0;
        }
    }
}

/* ---- the plan ---- */

static void read_plan(void)
{
    size_t cap_requests = 0, cap_clients = 0;
    char mode[16];
    int client;
    unsigned long long pause_ms;
    struct request r = {0};
    int *last = NULL;
    size_t cap_last = 0;
    while (scanf("%d %llu %15s %ld %zu", &client, &pause_ms, mode, &r.arg, &r.n) == 5) {
        if (getchar() != '\n' || client < 0 || client > 1 << 20 || r.n > 1 << 28) fail("the plan is malformed");
        for (r.mode = 0; r.mode < N_MODES && strcmp(mode, mode_names[r.mode]);) r.mode++;
        if (r.mode == N_MODES) fail("the plan has an unknown mode");
        r.pause_us = pause_ms * 1000;
        r.next = -1;
        r.client = client;
        r.bytes = weft__alloc(r.n + 1);
        if (!r.bytes || fread(r.bytes, 1, r.n, stdin) != r.n) fail("the plan ends within a request");
        if (!weft__grow(&requests, &cap_requests, (size_t)n_requests + 1, sizeof *requests) ||
            !weft__grow(&clients, &cap_clients, (size_t)client + 1, sizeof *clients) ||
            !weft__grow(&last, &cap_last, (size_t)client + 1, sizeof *last))
            fail("no memory");
        for (; n_clients <= client; n_clients++) {
            clients[n_clients] = (struct client){.first = -1, .at = -1, .fd = -1};
            last[n_clients] = -1;
        }
        if (last[client] < 0) {
            clients[client].first = clients[client].at = n_requests;
            clients[client].due_us = r.pause_us;
        } else requests[last[client]].next = n_requests;
        last[client] = n_requests;
        requests[n_requests++] = r;
    }
    for (int i = 0; i < n_clients; i++) n_done += clients[i].at < 0;
    weft__free(last);
}

int main(int argc, char **argv)
{
    static char buffer[1 << 20];
    struct rusage use;
    for (int i = 3; i + 1 < argc; i += 2) {
        uint64_t us = (uint64_t)(strtod(argv[i + 1], NULL) * SECOND_US);
        if (!strcmp(argv[i], "-s")) until_us = us;
        else if (!strcmp(argv[i], "-t")) patience_us = us;
        else fail("unknown option");
    }
    server = (struct sockaddr_in){.sin_family = AF_INET};
    if (argc < 3 || argc % 2 == 0 || inet_pton(AF_INET, argv[1], &server.sin_addr) != 1)
        fail("usage: load HOST PORT [-s SECONDS] [-t SECONDS] < plan");
    server.sin_port = htons((uint16_t)atoi(argv[2]));
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    read_plan();
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    zero_us = weft__clock_ns() / 1000;
    run();
    getrusage(RUSAGE_SELF, &use);
    printf("{\"wall_us\":%llu,\"cpu_us\":%llu}\n", (unsigned long long)now_us(),
           (unsigned long long)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * SECOND_US +
               (unsigned long long)(use.ru_utime.tv_usec + use.ru_stime.tv_usec));
    return 0;
}
