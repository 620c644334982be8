// SPDX-License-Identifier: Apache-2.0
/* http.h: HTTP/1.0 and HTTP/1.1 for the server, over sockets or TLS (GnuTLS); docs/http.md says what it refuses, and
 * why it is ours.
 *
 * A request is handed to the handler when its head and body are complete and within the limits, on one of the worker
 * threads. It is answered from any thread, at once or later: whole (weft__http_reply) or as a stream (begin, write,
 * flush ..., end). Writing never blocks: bytes wait in a bounded buffer of the request, and a client that does not take
 * them is cut off. Invariant: each request handed over is released exactly once with weft__http_release, and stays
 * valid until then, whatever its connection does. Thread safety: all functions on requests may be called from any
 * thread. */
#ifndef WEFT_HTTP_HTTP_H
#define WEFT_HTTP_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "weft/error.h"

typedef struct weft__http weft__http;
typedef struct weft__http_request weft__http_request;
typedef struct weft__http_client weft__http_client;

enum { WEFT__HTTP_CLIENT = 40 /* bytes of a client's name */ };

/* What was refused before a handler saw it, so that the refusal can be put in the dialect of the path. */
typedef struct weft__http_refusal {
    int status;
    const char *message;
    const char *path;
} weft__http_refusal;

/* How a request went; told once, when its last byte was sent or its connection is gone, and it was released. */
typedef struct weft__http_record {
    const char *method, *path; /* path without the query; "" when there was none */
    const char *peer;          /* "127.0.0.1", "unix" */
    int status;                /* 0: none was sent */
    int complete;              /* 0: the client left, or was cut off */
    int slow;                  /* 1: it was cut off because it did not read */
    const char *traceparent;   /* its header; NULL: none */
    const char *id;            /* of the request: "req-5f2c81d0-1", hardly given by another run of the server */
    uint64_t n_in, n_out;      /* bytes of bodies */
    double ms;                 /* since the head was complete */
} weft__http_record;

typedef struct weft__http_config {
    const char *host;               /* "127.0.0.1", "::1", "localhost", "0.0.0.0", ...; ignored with unix_path */
    int port;                       /* 0: any */
    const char *unix_path;          /* NULL: TCP */
    int listen_fd;                  /* a socket that listens already, instead of the three above; 0: none */
    const char *tls_cert, *tls_key; /* PEM texts; both or neither */
    int n_threads;                  /* that move bytes */
    int n_workers;                  /* that run handlers */
    size_t max_body, max_head;      /* bytes */
    /* Bytes of all bodies that are held; of answers that wait to be read. A client that holds more than the others
     * leave it is asked to come later (budget.c). */
    size_t max_bodies, max_answers;
    int max_headers;
    int max_connections, max_per_ip; /* per_ip 0: no limit of its own; none on a unix socket, where all are one peer */
    size_t max_buffer;               /* bytes that wait for a reader at most */
    int idle_s;                      /* without a byte either way on a connection that is not waiting for us */
    int slow_s;                      /* that bytes may wait for a reader */
    int ping_s;                      /* a stream without bytes gets a comment; 0: never */
    /* addresses that many come from, without shares of their own; NULL-terminated or NULL */
    const char *const *proxies;
    const char *const *allow_hosts; /* further names for the Host header, "*": any; NULL-terminated or NULL */
    const char *const *origins;     /* origins whose pages may call, "*": any; NULL-terminated or NULL: none */
    /* By the head alone: may its body be taken? 0: it is dropped, and the handler sees none. client: whose budgets the
     * request counts to, "" as it is: its address's. On the threads that move bytes. NULL: all are taken. */
    int (*admit)(void *arg, const weft__http_request *r, char client[WEFT__HTTP_CLIENT]);
    void (*handle)(void *arg, weft__http_request *r);
    /* Body of a refusal, allocated through alloc.h; NULL: none. Content type application/json. */
    char *(*refusal)(void *arg, const weft__http_refusal *refusal, size_t *n);
    void (*record)(void *arg, const weft__http_record *record, void *note); /* takes the note */
    void *arg;
} weft__http_config;

/* Listens and begins to serve. Strings of the configuration are copied; lists are borrowed; listen_fd is copied. Fails
 * with WEFT_IO naming the address, WEFT_ARGUMENT or WEFT_NO_MEMORY. */
weft_status weft__http_start(const weft__http_config *config, weft__http **out, weft_error *err);
/* "http://127.0.0.1:8080", "unix:/run/weft.sock". */
const char *weft__http_address(const weft__http *http);
/* No new connections from now on; those there go on, but close after their answer. */
void weft__http_quiesce(weft__http *http);
/* Waits until no request is in progress, at most timeout_ms. Returns how many still are. */
int weft__http_wait_idle(weft__http *http, uint64_t timeout_ms);
/* Cuts what is left (`gone` is called), waits until every request is released, and frees. */
void weft__http_stop(weft__http **http);

typedef struct weft__http_counts {
    uint64_t n_connections_total, n_requests_total, n_refused_full, n_cut_slow, n_gone;
    int n_connections, n_requests;       /* now */
    size_t n_body_bytes, n_answer_bytes; /* held now, of requests and of answers that are not read */
} weft__http_counts;
void weft__http_count(weft__http *http, weft__http_counts *out);

/* ---- of a request ---- */
const char *weft__http_method(const weft__http_request *r);
const char *weft__http_path(const weft__http_request *r);
/* NULL when there is no such header or argument (case of headers ignored). Live with the request. */
const char *weft__http_header(const weft__http_request *r, const char *name);
const char *weft__http_query(const weft__http_request *r, const char *name);
/* How many headers of that name there are. */
size_t weft__http_header_count(const weft__http_request *r, const char *name);
/* Name of argument i of the query, as they stand there; NULL behind the last. Live likewise. */
const char *weft__http_query_name(const weft__http_request *r, size_t i);
const char *weft__http_body(const weft__http_request *r, size_t *n);
/* Lets go of the body, by the request's handler; an answer does so too. */
void weft__http_free_body(weft__http_request *r);
uint64_t weft__http_began_ns(const weft__http_request *r);
/* Its client, to be compared with those of other requests that live; NULL: one of many behind a unix socket or a
 * proxy. */
const void *weft__http_client_of(const weft__http_request *r);
/* Counts n (may be negative) more of what the server lends to clients; 0: its client would have more than `most`, and
 * nothing is counted. What clients behind a unix socket or a proxy have is not limited. */
int weft__http_client_add(weft__http_request *r, int n, int most);
/* 1: it came from this machine, by a unix socket or from a loopback address, and from no proxy: none that is named, and
 * none that says so in Forwarded, Via, X-Real-IP or X-Forwarded-*. */
int weft__http_is_local(const weft__http_request *r);
/* What the record is given along; freed by the recorder. Set it before the last byte is given away. */
void weft__http_set_note(weft__http_request *r, void *note);
/* What the server keeps beside it, or NULL; returns what was there, NULL at first. It is NULL when it is released. */
void *weft__http_set_beside(weft__http_request *r, void *what);

/* gone(arg) is called at most once, from another thread and maybe before this returns, when the client is gone or cut
 * off before its answer is complete, not when it only sends no more and still reads (docs/http.md); drop(arg) exactly
 * once, after which gone is not called. Neither may release the request. */
void weft__http_on_gone(weft__http_request *r, void (*gone)(void *arg), void (*drop)(void *arg), void *arg);

/* Takes back what was given to weft__http_on_gone, neither function of which is called then: 1. 0: both were, or are
 * now, or there was nothing. */
int weft__http_off_gone(weft__http_request *r);

/* A header of the answer; before it begins. Values are copied. */
void weft__http_add_header(weft__http_request *r, const char *name, const char *value);
/* A whole answer, whose bytes count until they are sent; `body` (alloc.h, may be NULL with n 0) is taken over. A second
 * answer is dropped. */
void weft__http_reply(weft__http_request *r, int status, const char *content_type, char *body, size_t n);
/* A stream of server-sent events; status 200, chunked. What was written before it begins is its beginning;
 * weft__http_reply instead drops that. */
void weft__http_begin(weft__http_request *r);
/* Returns 0 when the client is gone or was cut off; the bytes are dropped then. They are sent when weft__http_flush is
 * called, which the writer does behind all that it writes at a time, or a little earlier. */
int weft__http_write(weft__http_request *r, const void *bytes, size_t n);
/* Sends what was written to this request, and to any other of its server. */
void weft__http_flush(const weft__http_request *r);
void weft__http_end(weft__http_request *r);
int weft__http_is_gone(weft__http_request *r);
void weft__http_release(weft__http_request *r);

#endif
