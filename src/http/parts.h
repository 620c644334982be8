/* parts.h: the inside of the HTTP façade (http.h), for http*.c; nobody else sees libmicrohttpd.
 *
 *   http.c          start and stop; the socket it listens on
 *   request.c  a request: what a handler may ask of it and answer
 *   head.c     which heads are refused
 *   accept.c   the acceptor
 *   budget.c   what each client holds of what all need
 *   calls.c    what libmicrohttpd calls
 *   refusals.c what libmicrohttpd refuses itself
 *   watch.c    the watcher, which trims the heap, too, and the workers
 *
 * Threads: the acceptor takes connections; libmicrohttpd's own move bytes and call on_uri, on_call, on_read and on_complete; workers run
 * the handler; one watcher keeps the deadlines and sees clients leave, which libmicrohttpd does not while a connection is suspended. A connection is
 * suspended whenever we owe it bytes that we do not have yet.
 * Locks: weft__http.lock (lists of connections and requests, deadlines), then weft__http_request.lock (its answer), then weft__http.budget
 * (clients); libmicrohttpd's own come last. No callback of ours is called under either. */
#ifndef WEFT_HTTP_PARTS_H
#define WEFT_HTTP_PARTS_H

#include "http/http.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"
#include "http/peer.h"
#include "http/turns.h"

#define SECOND_NS 1000000000ull
#define BLOCK 16384           /* bytes of a stream that the library asks for at once */
#define SWALLOW (16ull << 20) /* bytes of a body beyond the limit that are read so that its sender sees the answer */
#define SPARE_CONNECTIONS 64  /* accepted beyond the limit, to be told so */
#define SPARE_PER_IP 16       /* the same of one address */
#define REFUSED_S 5           /* in which such a one asks for something, if the limit on idling gives no less */
#define TRIM_BYTES (4 << 20)  /* of requests that ended: the heap is trimmed then though others run, once a second at most */
#define SEND_BUFFER (256 * 1024)

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

/* Of a connection; lives from accept to close. */
struct weft__http_connection {
    struct weft__http_connection *prev, *next;
    weft__http *http;
    int fd;
    int refuse;           /* status to answer with, because there are too many; 0: none */
    uint64_t waits_ns;    /* since when a first line is awaited on it; 0: none is */
    uint64_t deadline_ns; /* when it is shut down; 0: never */
    weft__http_peer peer;
    weft__http_request *request; /* in progress, or NULL */
};

struct weft__http_pair {
    const char *name, *value; /* within the request's text */
};

/* Room for more bytes of a body; FULL: all bodies, BODIES: this client's, UNREAD: the answers that it has not read fill theirs. */
enum weft__http_room { WEFT__HTTP_ROOM, WEFT__HTTP_FULL, WEFT__HTTP_BODIES, WEFT__HTTP_UNREAD };

struct weft__http_request {
    weft__http *http;
    atomic_int refs;                          /* the library's, the handler's, the watcher's for a moment */
    weft__http_request *prev, *next;          /* of all that are known to the library */
    struct weft__http_connection *connection; /* NULL once completed */
    struct MHD_Connection *c;                 /* the same */
    uint64_t id, began_ns, head_ns, ended_ns; /* its first line, its last; the last byte, or its connection's end */
    char method[16], peer[64], name[40];      /* name: its id with that of the server's run */
    weft__text head; /* copies of path, headers and arguments; at first of the path alone, as it was sent */
    const char *path;
    struct weft__http_pair *headers, *query;
    size_t n_headers, n_query;
    weft__text body;
    uint64_t n_in;
    int bad_target; /* %00 in it */
    int is_local;   /* from this machine, and no named proxy's */
    int modern;     /* HTTP/1.1 or later, which must name its Host */
    int refused;    /* by the library */
    int closes;     /* its connection ends with the answer */
    int complete;   /* its last byte was sent */
    int head_done, handed, too_long;
    int unwanted;                 /* its body is dropped: it was not admitted */
    enum weft__http_room no_room; /* the same: there are too many bytes, and of what */
    const char *cors;             /* origin that may read the answer */
    weft__http_client *client;    /* from its head on */
    weft__turn turn;              /* among those that wait for a worker */

    pthread_mutex_t lock;
    int suspended, gone, slow, answered, stream, ended, queued, full, late; /* late: the watcher cuts it off */
    int status;
    weft__text out; /* of a stream: bytes from out_at on wait */
    size_t out_at;
    uint64_t n_out, last_write_ns;
    char *whole;
    size_t n_whole, n_counted; /* counted: with the answers */
    weft__text extra;          /* headers to add: name NUL value NUL ... */
    const char *content_type;
    void *note;
    void (*on_gone)(void *), (*on_drop)(void *);
    void *gone_arg;
};

struct weft__http {
    weft__http_config config;
    struct MHD_Daemon *daemon;
    char address[192];
    char *unix_path;
    ino_t unix_file;     /* there, as we made it */
    int loopback, plain; /* plain: no TLS */
    uint32_t run;        /* random */
    int listen_fd, quiet_fd /* the acceptor is to stop */, epoll_fd, wake_fd;
    pthread_t acceptor, watcher, quick_worker;
    pthread_t *workers;
    int n_workers, accepting, watching, has_quick;
    pthread_mutex_t lock; /* everything below */
    pthread_cond_t job, quick_job, idle;
    struct weft__http_connection *connections;
    weft__http_request *requests;
    weft__turns jobs, quick;    /* those that wait for a worker; quick: without a body */
    int n_live;                 /* requests not freed */
    uint64_t n_freed;           /* bytes of requests and answers that ended since the heap was trimmed, and one for each */
    atomic_int quiet, stopping; /* written under the lock */
    weft__http_counts counts;
    pthread_mutex_t budget; /* the clients, and how many bytes they hold of bodies and of answers */
    weft__http_client *clients;
    size_t n_bodies, n_answers;
    weft__http_peer *proxies; /* [n_proxies] */
    size_t n_proxies;
    uint64_t n_taken; /* the acceptor's: connections given to the library, counts.n_connections_total of which are known */
};

/* ---- budget.c ---- */
/* Do many come from there, who have no share of their own? */
int weft__http_peer_is_exempt(const weft__http *h, const weft__http_peer *peer);
/* The request is of that client from now on, "": of its address; leaves when it is freed. 0: no memory. */
int weft__http_client_join(weft__http_request *r, const char *name);
void weft__http_client_leave(weft__http_request *r);
/* Counts n more bytes of its body, if there is room for them. */
enum weft__http_room weft__http_bodies_take(weft__http_request *r, size_t n);
void weft__http_bodies_give(weft__http_request *r, size_t n);
/* n more bytes of its answer wait; fewer. Under the request's lock, or when nobody else has it. */
void weft__http_answers_take(weft__http_request *r, size_t n);
void weft__http_answers_give(weft__http_request *r, size_t n);
/* Has whoever shows its key more requests than there are connections left for all others? */
int weft__http_has_too_many(weft__http_request *r);

/* ---- request.c ---- */
void weft__http_unref(weft__http_request *r);
/* Lets its connection go on; under the request's lock. */
void weft__http_wake(weft__http_request *r);
/* How long n bytes may take to be read: what the limit on slow readers gives, a second per 64 KiB, and two minutes at most. */
uint64_t weft__http_read_by(const weft__http_request *r, size_t n);
/* When its connection is shut down; 0: never. Without the request's lock. */
void weft__http_set_deadline(weft__http_request *r, uint64_t ns);
/* The client left, or we cut it off; slow: because it did not read what there is. Without any lock. */
void weft__http_mark_gone(weft__http_request *r, int slow);

/* ---- head.c ---- */
/* Copies method, path, headers and arguments, since the request may outlive its connection. 0: no memory. */
int weft__http_copy_head(weft__http_request *r, struct MHD_Connection *c, const char *path, const char *method);
/* The status and message with which the head is refused; 0: it is not. Sets what it says of origin and length. */
int weft__http_check_head(weft__http_request *r, const char **message);

/* ---- refusals.c ---- */
/* Answers with a refusal in the dialect of its path, after which the connection is closed; under the request's lock. */
void weft__http_refuse(weft__http_request *r, int status, const char *message);
/* MHD_queue_response for what is ours: that name is the library's refusals' (refusals.c). */
enum MHD_Result weft__http_queue(struct MHD_Connection *c, int status, struct MHD_Response *response);
/* Answers on a connection that the library closes without a word, because it could not read the first line. */
void weft__http_refuse_line(weft__http *h, struct weft__http_connection *k, struct MHD_Connection *c);

/* ---- calls.c ---- */
/* The response that the answered request asks for, once; NULL: no memory. */
struct MHD_Response *weft__http_response(weft__http_request *r);

/* ---- calls.c: for MHD_start_daemon ---- */
void *weft__http_on_uri(void *http, const char *uri, struct MHD_Connection *c);
enum MHD_Result weft__http_on_call(void *http, struct MHD_Connection *c, const char *url, const char *method, const char *version,
                                   const char *upload, size_t *n_upload, void **request);
void weft__http_on_complete(void *http, struct MHD_Connection *c, void **request, enum MHD_RequestTerminationCode why);
void weft__http_on_connection(void *http, struct MHD_Connection *c, void **connection, enum MHD_ConnectionNotificationCode code);

/* ---- accept.c: a thread, until there is something to read from quiet_fd ---- */
void *weft__http_acceptor(void *http);

/* ---- watch.c: threads, until weft__http_stop ---- */
void *weft__http_watcher(void *http);
void *weft__http_worker(void *http);
/* Of requests without a body, so that who asks for /health waits for no body that is being parsed. */
void *weft__http_quick_worker(void *http);

#endif
