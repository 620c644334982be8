// SPDX-License-Identifier: Apache-2.0
/* parts.h: the inside of the HTTP server (http.h); for the files of this room.
 *
 *   http.c      start and stop; the socket it listens on
 *   accept.c    the acceptor
 *   loop.c      the threads that move bytes: connections
 *   exchange.c  one request after the other on a connection: reading it, handing it over, sending the answer
 *   reader.c    bytes to requests
 *   head.c      which heads are refused
 *   request.c   a request: what a handler may ask of it and answer
 *   budget.c    what each client holds of what all need
 *   tls.c       TLS
 *   watch.c     the watcher, which trims the heap, too, and the workers
 *
 * Threads: the acceptor takes connections; each belongs to one loop, which alone reads, writes and closes it; workers
 * run the handler; one watcher keeps the deadlines. A connection whose answer has no bytes yet is suspended: the
 * writer of the next ones wakes it. Locks: weft__http.lock (lists of connections and requests, deadlines), then
 * weft__http_request.lock (its answer), then weft__http.budget (clients) or weft__http_loop.lock (connections that are
 * awake). No callback of ours is called under any, and no loop is woken. */
#ifndef WEFT_HTTP_PARTS_H
#define WEFT_HTTP_PARTS_H

#include "http/http.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"
#include "http/peer.h"
#include "http/reader.h"
#include "http/tls.h"
#include "http/turns.h"

#define HTTP_SECOND_NS 1000000000ull
#define HTTP_BLOCK 16384 /* bytes that are read or made ready to be sent at once */
#define HTTP_SWALLOW                                                                                                   \
    (16ull << 20) /* bytes of a body beyond the limit that are read so that its sender sees the answer */
#define HTTP_SPARE_CONNECTIONS 64 /* accepted beyond the limit, to be told so */
#define HTTP_SPARE_PER_IP 16      /* the same of one address */
#define HTTP_REFUSED_S 5          /* in which such a one asks for something, if the limit on idling gives no less */
#define HTTP_TRIM_BYTES                                                                                                \
    (4 << 20) /* of requests that ended: the heap is trimmed then though others run, once a second at most */
#define HTTP_SEND_BUFFER (256 * 1024)

/* Whose budgets a request counts to; in the list while it has one. */
struct weft__http_client {
    weft__http_client *prev, *next;
    char name[WEFT__HTTP_CLIENT]; /* as config.admit told it; "": an address */
    uint8_t network[16];
    int exempt; /* 1: many behind one address */
    int n_requests, n_places;
    int n_handled;              /* by workers, now; under weft__http.lock, unlike all else */
    size_t n_bodies, n_answers; /* bytes held */
};

/* A thread that moves bytes. */
struct weft__http_loop {
    weft__http *http;
    pthread_t thread;
    int epoll_fd, wake_fd;
    pthread_mutex_t lock;
    struct weft__http_connection *awake; /* to be looked at after its sockets; under the lock */
    struct weft__http_connection *now;   /* those of them that it looks at; its own */
    int is_woken;                        /* since it took those that are awake; under the lock */
    int stop;
};

enum weft__http_phase {
    WEFT__HTTP_READING, /* a request comes in, or is awaited */
    WEFT__HTTP_WAITING, /* for its answer */
    WEFT__HTTP_SENDING, /* that */
    /* all was said; what still comes is dropped, so that the client reads the answer before its connection breaks */
    WEFT__HTTP_LINGERING
};

/* Of a connection; lives from accept to close. Its loop's but where another owner is named. */
struct weft__http_connection {
    struct weft__http_connection *prev, *next; /* under http->lock */
    weft__http *http;
    struct weft__http_loop *loop;
    int fd;
    int refuse;              /* status to answer with, because there are too many; 0: none */
    uint64_t deadline_ns;    /* when it is shut down; 0: never. Under http->lock */
    atomic_ullong active_ns; /* when bytes moved last, while the client is to move some; 0: it waits for us */
    int has_begun;           /* its loop knows it; under http->lock */
    weft__http_peer peer;
    weft__http_request *request; /* in progress, or NULL; under http->lock */
    struct weft__http_connection *next_awake;
    int is_awake; /* in one of both lists of its loop; both under loop->lock */
    weft__http_tls_session *tls;
    weft__http_reader reader;
    enum weft__http_phase phase;
    int is_in;               /* its loop's epoll set */
    int is_blocked;          /* the client has to read before more is sent */
    int has_ended;           /* the client sends no more: it ended its side, or left */
    int has_left;            /* it left: its end is closed, or gone */
    int is_probed;           /* since it ended its side, something was sent that a closed end refuses */
    int closes;              /* after the answer */
    int is_chunked, is_last; /* the answer; is_last: all of it is in `out` or was sent */
    weft__strbuf in, out;
    size_t in_at, out_at, whole_at; /* whole_at: of a whole answer, sent */
    size_t n_lingered;
};

struct weft__http_pair {
    const char *name, *value; /* within the request's text */
};

/* Room for more bytes of a body; FULL: all bodies, BODIES: this client's, UNREAD: the answers that it has not read fill
 * theirs. */
enum weft__http_room { WEFT__HTTP_ROOM, WEFT__HTTP_FULL, WEFT__HTTP_BODIES, WEFT__HTTP_UNREAD };

struct weft__http_request {
    weft__http *http;
    atomic_int refs;                          /* its connection's, the handler's, the watcher's for a moment */
    weft__http_request *prev, *next;          /* of all that have a connection */
    struct weft__http_connection *connection; /* NULL once completed */
    struct weft__http_connection *c;          /* the same, under the request's lock */
    uint64_t id, began_ns, head_ns, ended_ns; /* its first line, its last; the last byte, or its connection's end */
    char method[16], peer[64], name[40];      /* name: its id with that of the server's run */
    weft__strbuf head;                        /* path, arguments and headers, as the reader has them */
    const char *path;
    struct weft__http_pair *headers, *query;
    size_t n_headers, n_query;
    weft__strbuf body;
    uint64_t n_in;
    int is_local; /* from this machine, and no named proxy's */
    int modern;   /* HTTP/1.1 or later, which must name its Host */
    int closes;   /* its connection ends with the answer */
    int complete; /* its last byte was sent */
    int handed, too_long;
    int unwanted;                 /* its body is dropped: it was not admitted */
    enum weft__http_room no_room; /* the same: there are too many bytes, and of what */
    const char *cors;             /* origin that may read the answer */
    weft__http_client *client;    /* from its head on */
    weft__http_turn turn;         /* among those that wait for a worker */

    pthread_mutex_t lock;
    int suspended, gone, slow, answered, stream, ended, queued, full, expired; /* expired: the watcher cuts it off */
    int half_closed; /* its client sends no more, and is asked now and then whether it still reads */
    int status;
    weft__strbuf out; /* of a stream: bytes from out_at on wait */
    size_t out_at;
    uint64_t n_out, last_write_ns;
    char *whole;
    size_t n_whole, n_counted; /* counted: with the answers */
    weft__strbuf extra;        /* headers to add: name NUL value NUL ... */
    const char *content_type;
    void *note, *beside;
    void (*on_gone)(void *), (*on_drop)(void *);
    void *gone_arg;
};

struct weft__http {
    weft__http_config config;
    struct weft__http_loop *loops;
    int n_loops;
    weft__http_tls *tls; /* NULL: none */
    char address[192];
    char *unix_path;
    ino_t unix_file; /* there, as we made it */
    int loopback;
    uint32_t run; /* random */
    int listen_fd, quiet_fd /* the acceptor is to stop */, wake_fd /* the watcher is */;
    pthread_t acceptor, watcher, quick_worker;
    pthread_t *workers;
    int n_workers, accepting, watching, has_quick;
    pthread_mutex_t lock; /* everything below */
    pthread_cond_t job, quick_job, idle;
    struct weft__http_connection *connections;
    weft__http_request *requests;
    weft__http_turns jobs, quick; /* those that wait for a worker; quick: without a body */
    int n_live;                   /* requests not freed */
    uint64_t n_freed; /* bytes of requests and answers that ended since the heap was trimmed, and one for each */
    atomic_int quiet, stopping; /* written under the lock */
    weft__http_counts counts;
    int n_begun;            /* connections that loops know, but for those that are refused */
    pthread_mutex_t budget; /* the clients, and how many bytes they hold of bodies and of answers */
    weft__http_client *clients;
    size_t n_bodies, n_answers;
    weft__http_peer *proxies; /* [n_proxies] */
    size_t n_proxies;
};

/* ---- budget.c ---- */
/* Do many clients come from there, which have no share of their own? */
int weft__http_peer_is_exempt(const weft__http *h, const weft__http_peer *peer);
/* The request is of that client from now on, "": of its address; leaves when it is freed. 0: no memory. */
int weft__http_client_join(weft__http_request *r, const char *name);
void weft__http_client_leave(weft__http_request *r);
/* Counts n more bytes of its body, if there is room for them. */
enum weft__http_room weft__http_bodies_take(weft__http_request *r, size_t n);
void weft__http_bodies_give(weft__http_request *r, size_t n);
/* n more bytes of its answer wait; fewer. Under the request's lock, or when no other thread has it. */
void weft__http_answers_take(weft__http_request *r, size_t n);
void weft__http_answers_give(weft__http_request *r, size_t n);
/* Has the client of its key more requests than there are connections left for all others? */
int weft__http_has_too_many(weft__http_request *r);

/* ---- request.c ---- */
void weft__http_unref(weft__http_request *r);
/* Lets its connection go on; under the request's lock. Returns its loop, which is to be woken when no lock is held, or
 * NULL. */
struct weft__http_loop *weft__http_wake(weft__http_request *r);
/* How long n bytes may take to be read: what the limit on slow readers gives, a second per 64 KiB, and two minutes at
 * most. */
uint64_t weft__http_read_by(const weft__http_request *r, size_t n);
/* When its connection is shut down; 0: never. Without the request's lock. */
void weft__http_set_deadline(weft__http_request *r, uint64_t ns);
/* A comment becomes the next bytes of a stream all of whose bytes were taken; under the request's lock. */
void weft__http_ping(weft__http_request *r);
/* The client left, or we cut it off; slow: because it did not read what there is. Without any lock. */
void weft__http_mark_gone(weft__http_request *r, int slow);

/* The refusal becomes its answer, in the dialect of its path, after which the connection is closed; under the request's
 * lock. */
void weft__http_refuse(weft__http_request *r, int status, const char *message);
/* The last byte was sent, or its connection is gone: calls the handler's function for that, and lets go of it. By its
 * loop. */
void weft__http_complete(weft__http_request *r, int complete);

/* ---- head.c ---- */
/* Takes over what was read of the head so far. 0: no memory. */
int weft__http_take_head(weft__http_request *r, weft__http_reader *reader);
/* The status and message with which the head is refused; 0: it is not. Sets what it says of origin and length. */
int weft__http_check_head(weft__http_request *r, const char **message);
/* Does a header have this word in its list? */
int weft__http_has_word(const weft__http_request *r, const char *name, const char *word);

/* ---- answer.c ---- */
/* The head of the answer of r goes behind `out`; sets how it is framed, and whether the connection closes after it. */
void weft__http_answer_head(weft__http_request *r, struct weft__http_connection *k);

/* ---- exchange.c ---- */
/* Reads, hands over and sends as far as that goes now. 0: the connection is to be closed. */
int weft__http_exchange(struct weft__http_connection *k);

/* ---- loop.c ---- */
weft_status weft__http_loops_start(weft__http *h, weft_error *err);
/* Closes all connections. The loops can still be woken, to no effect, until they are freed. */
void weft__http_loops_stop(weft__http *h);
void weft__http_loops_free(weft__http *h);
/* Takes over an accepted socket. 0: no memory; it was closed. */
int weft__http_open(weft__http *h, int fd, const struct sockaddr *peer);
/* Its loop looks at it when it looks at those that are awake next: when it is woken, or has done what it does now. Any
 * thread, while the connection lives. */
void weft__http_rouse(struct weft__http_connection *k);
/* Wakes the loop, once, if any connection waits for it. NULL: none. Without any lock. */
void weft__http_loop_wake(struct weft__http_loop *l);
void weft__http_loops_wake(weft__http *h);

/* ---- accept.c: a thread, until there is something to read from quiet_fd ---- */
void *weft__http_acceptor(void *http);

/* ---- watch.c: threads, until weft__http_stop ---- */
void *weft__http_watcher(void *http);
void *weft__http_worker(void *http);
/* Of requests without a body, so that a request for /health waits for no body that is being parsed. */
void *weft__http_quick_worker(void *http);

#endif
