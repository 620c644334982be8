// SPDX-License-Identifier: Apache-2.0
/* traces.c: the line of requests whose spans are to be sent, and the thread that sends them (traces.h). A collector
 * that is slow or gone costs memory that is there from the start, and no request time: what comes while the line is
 * full is dropped. */
#include "server/traces.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "hub/http.h"

enum { LINE = 1024, AT_ONCE = 128, EVERY_S = 1, TIMEOUT_S = 10, END_S = 2, RETRY_MAX_S = 30 };

struct weft__server_traces {
    pthread_t thread;
    pthread_mutex_t lock; /* all below, but for what is the thread's */
    pthread_cond_t wake;
    weft__server_span *line; /* [LINE], a ring of n from first on */
    int first, n, stop, has_thread;
    uint64_t n_sent, n_dropped, end_ns; /* end_ns: when the thread gives up; 0: it need not */
    /* the thread's */
    weft__server_span *taken; /* [AT_ONCE] */
    weft__hub_http *http;
    weft__strbuf body;
    char url[512];
    int told; /* that spans are lost */
};

/* ---- the thread ---- */

static uint64_t unix_minus_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - weft__clock_ns();
}

static int is_over(void *arg)
{
    weft__server_traces *t = arg;
    pthread_mutex_lock(&t->lock);
    const int over = t->end_ns && weft__clock_ns() >= t->end_ns;
    pthread_mutex_unlock(&t->lock);
    return over;
}

static weft_status drop_body(void *arg, const weft__hub_http_reply *reply, const void *bytes, size_t n, weft_error *err)
{
    (void)arg, (void)reply, (void)bytes, (void)n, (void)err;
    return WEFT_OK;
}

/* 1: the collector has them; 0: it will not take them; -1: not now. */
static int post(weft__server_traces *t, weft_error *err)
{
    weft__hub_http_reply reply;
    const weft__hub_http_call call = {.url = t->url,
                                      .direct = 1,
                                      .total_limit = 1,
                                      .post = t->body.data,
                                      .n_post = t->body.len,
                                      .body = drop_body,
                                      .poll = is_over,
                                      .arg = t};
    weft_status st = weft__hub_http_get(t->http, &call, &reply, err);
    if (st) return reply.transient ? -1 : 0;
    if (reply.status >= 200 && reply.status < 300) return 1;
    weft_fail(err, WEFT_IO, "%s answers %ld", t->url, reply.status);
    return reply.status == 429 || reply.status == 502 || reply.status == 503 || reply.status == 504 ? -1 : 0;
}

/* Until it is to end. */
static void pause_s(weft__server_traces *t, int seconds)
{
    const uint64_t until = weft__clock_ns() + (uint64_t)seconds * 1000000000u;
    pthread_mutex_lock(&t->lock);
    while (!t->stop && !weft__clock_wait(&t->wake, &t->lock, until)) continue;
    pthread_mutex_unlock(&t->lock);
}

static int is_stopping(weft__server_traces *t)
{
    pthread_mutex_lock(&t->lock);
    const int stop = t->stop;
    pthread_mutex_unlock(&t->lock);
    return stop;
}

/* The first n of `taken`; again and again while the collector is not there. */
static void deliver(weft__server_traces *t, int n)
{
    weft_error err = {0};
    int sent = 0, wait_s = 1;
    weft__server_traces_write(t->taken, n, unix_minus_clock(), &t->body);
    if (t->body.failed) weft_fail(&err, WEFT_NO_MEMORY, "no memory for spans");
    while (!t->body.failed && (sent = post(t, &err)) < 0 && !is_stopping(t)) {
        pause_s(t, wait_s);
        wait_s = wait_s < RETRY_MAX_S / 2 ? 2 * wait_s : RETRY_MAX_S;
    }
    if (sent <= 0 && !t->told++)
        weft__log(WEFT__LOG_WARN,
                  "--otlp: spans are lost: %s; weft_traces_dropped_total in /metrics counts more of them", err.message);
    weft__strbuf_free(&t->body);
    pthread_mutex_lock(&t->lock);
    *(sent > 0 ? &t->n_sent : &t->n_dropped) += (uint64_t)n;
    pthread_mutex_unlock(&t->lock);
}

/* Some of the line; with the lock. */
static int take(weft__server_traces *t)
{
    int n = 0;
    for (; n < AT_ONCE && t->n > 0; n++, t->n--) {
        t->taken[n] = t->line[t->first];
        t->first = (t->first + 1) % LINE;
    }
    return n;
}

static void *send_all(void *arg)
{
    weft__server_traces *t = arg;
    for (int over = 0; !over;) {
        const uint64_t until = weft__clock_ns() + EVERY_S * 1000000000ull;
        pthread_mutex_lock(&t->lock);
        while (!t->stop && t->n < AT_ONCE && !weft__clock_wait(&t->wake, &t->lock, until)) continue;
        const int n = take(t);
        over = t->stop && !t->n;
        pthread_mutex_unlock(&t->lock);
        if (n) deliver(t, n);
        over |= is_over(t);
    }
    return NULL;
}

/* ---- callers ---- */

static weft_status read_url(const char *url, char *out, size_t room, weft_error *err)
{
    char host[256];
    const char *path = strstr(url, "://") ? strchr(strstr(url, "://") + 3, '/') : NULL;
    const size_t n = strlen(url);
    if (!weft__hub_http_is_plain(url, host, sizeof host) || n + 16 > room)
        return weft_fail(err, WEFT_ARGUMENT, "--otlp %.200s: must be http://HOST[:PORT][/PATH] or https://", url);
    snprintf(out, room, "%.*s%s", (int)(path && !path[1] ? n - 1 : n), url, path && path[1] ? "" : "/v1/traces");
    return WEFT_OK;
}

weft_status weft__server_traces_new(const char *url, weft__server_traces **out, weft_error *err)
{
    weft__server_traces *t = *out = weft__alloc_zero(1, sizeof *t);
    if (!t) return weft_fail(err, WEFT_NO_MEMORY, "no memory for traces");
    pthread_mutex_init(&t->lock, NULL);
    weft__clock_cond_init(&t->wake);
    weft_status st = weft__hub_http_open(TIMEOUT_S, &t->http, err); /* without libcurl: no */
    if (!st) st = read_url(url, t->url, sizeof t->url, err);
    t->line = st ? NULL : weft__alloc_array(LINE, sizeof *t->line);
    t->taken = st ? NULL : weft__alloc_array(AT_ONCE, sizeof *t->taken);
    if (!st && (!t->line || !t->taken)) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for traces");
    if (!st) t->has_thread = !weft__thread_start(&t->thread, send_all, t);
    if (!st && !t->has_thread) st = weft_fail(err, WEFT_LIMIT, "the system refuses threads");
    if (st) weft__server_traces_free(out);
    return st;
}

void weft__server_traces_free(weft__server_traces **p)
{
    weft__server_traces *t = p ? *p : NULL;
    if (!t) return;
    *p = NULL;
    pthread_mutex_lock(&t->lock);
    t->stop = 1;
    t->end_ns = weft__clock_ns() + END_S * 1000000000ull;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
    if (t->has_thread) pthread_join(t->thread, NULL);
    weft__hub_http_close(&t->http);
    weft__free(t->line);
    weft__free(t->taken);
    weft__strbuf_free(&t->body);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    weft__free(t);
}

void weft__server_traces_add(weft__server_traces *t, const weft__server_span *span)
{
    pthread_mutex_lock(&t->lock);
    if (t->n == LINE) t->n_dropped++;
    else t->line[(t->first + t->n++) % LINE] = *span;
    if (t->n == AT_ONCE) pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
}

void weft__server_traces_count(weft__server_traces *t, uint64_t *n_sent, uint64_t *n_dropped)
{
    *n_sent = *n_dropped = 0;
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    *n_sent = t->n_sent;
    *n_dropped = t->n_dropped;
    pthread_mutex_unlock(&t->lock);
}
