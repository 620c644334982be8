// SPDX-License-Identifier: Apache-2.0
/* request.c: one request: what handlers read of it, and how they answer. Any thread; its lock guards the answer. */
#include "http/parts.h"

#include <string.h>
#include <strings.h>

void weft__http_free_body(weft__http_request *r)
{
    weft__http_bodies_give(r, r->body.len);
    weft__strbuf_free(&r->body);
}

/* Of a client that left, the note comes only when its handler has seen that. */
static void tell_record(weft__http_request *r)
{
    weft__http *h = r->http;
    if (!h->config.record) return;
    weft__http_record record = {.method = r->method,
                                .path = r->path ? r->path : "",
                                .peer = r->peer,
                                .status = r->queued ? r->status : 0,
                                .complete = r->complete,
                                .slow = r->slow,
                                .traceparent = weft__http_header(r, "traceparent"),
                                .id = r->name,
                                .n_in = r->n_in,
                                .n_out = r->n_out,
                                .ms = (double)(r->ended_ns - r->began_ns) / 1e6};
    void *note = r->note;
    r->note = NULL;
    h->config.record(h->config.arg, &record, note);
}

static void request_free(weft__http_request *r)
{
    weft__http *h = r->http;
    uint64_t n_freed = r->n_in + r->n_out + 1;
    tell_record(r);
    weft__strbuf_free(&r->head);
    weft__http_free_body(r);
    weft__http_answers_give(r, r->n_counted);
    weft__http_client_leave(r);
    weft__strbuf_free(&r->out);
    weft__strbuf_free(&r->extra);
    weft__free(r->whole);
    weft__free(r->headers);
    weft__free(r->query);
    weft__free(r->note);
    pthread_mutex_destroy(&r->lock);
    weft__free(r);
    pthread_mutex_lock(&h->lock);
    h->n_freed += n_freed;
    h->n_live--;
    pthread_cond_broadcast(&h->idle);
    pthread_mutex_unlock(&h->lock);
}

void weft__http_unref(weft__http_request *r)
{
    if (atomic_fetch_sub(&r->refs, 1) == 1) request_free(r);
}

struct weft__http_loop *weft__http_wake(weft__http_request *r)
{
    if (r->suspended && r->c) weft__http_rouse(r->c);
    r->suspended = 0;
    return r->c ? r->c->loop : NULL;
}

/* ... where its lock is not held. */
static void wake_now(weft__http_request *r)
{
    pthread_mutex_lock(&r->lock);
    struct weft__http_loop *l = weft__http_wake(r);
    pthread_mutex_unlock(&r->lock);
    weft__http_loop_wake(l);
}

void weft__http_set_deadline(weft__http_request *r, uint64_t ns)
{
    weft__http *h = r->http;
    pthread_mutex_lock(&h->lock);
    if (r->connection) r->connection->deadline_ns = ns;
    pthread_mutex_unlock(&h->lock);
}

uint64_t weft__http_read_by(const weft__http_request *r, size_t n)
{
    uint64_t more = n / 65536 < 120 ? n / 65536 : 120;
    return weft__clock_ns() + ((uint64_t)r->http->config.slow_s + more) * HTTP_SECOND_NS;
}

void weft__http_ping(weft__http_request *r)
{
    r->out.len = r->out_at = 0;
    weft__strbuf_puts(&r->out, ": ping\n\n");
    weft__http_answers_take(r, r->out.len);
    r->last_write_ns = weft__clock_ns();
}

void weft__http_mark_gone(weft__http_request *r, int slow)
{
    void (*gone)(void *) = NULL, (*drop)(void *) = NULL;
    void *arg = NULL;
    struct weft__http_loop *l = NULL;
    pthread_mutex_lock(&r->lock);
    if (!r->gone) {
        r->gone = 1;
        r->slow = (slow || r->full || r->expired) &&
                  r->answered; /* what we shut down ourselves may be seen as a client that left */
        if (!r->n_whole) weft__http_answers_give(r, r->n_counted); /* a whole answer is still being sent */
        weft__strbuf_free(&r->out);
        r->out_at = 0;
        gone = r->on_gone;
        drop = r->on_drop;
        arg = r->gone_arg;
        r->on_gone = r->on_drop = NULL;
        l = weft__http_wake(r);
    }
    pthread_mutex_unlock(&r->lock);
    weft__http_loop_wake(l);
    if (gone) gone(arg);
    if (drop) drop(arg);
}

void weft__http_refuse(weft__http_request *r, int status, const char *message)
{
    weft__http *h = r->http;
    weft__http_refusal refusal = {status, message, r->path ? r->path : ""};
    r->n_whole = 0;
    r->whole = h->config.refusal ? h->config.refusal(h->config.arg, &refusal, &r->n_whole) : NULL;
    r->answered = r->ended = 1;
    r->status = status;
    r->content_type = "application/json; charset=utf-8";
    r->closes = 1;
    if (status == 429 || status == 503) weft__strbuf_put(&r->extra, "Retry-After\0001", 14);
}

/* Takes it off the lists. */
static void forget(weft__http_request *r, int complete, int slow)
{
    weft__http *h = r->http;
    pthread_mutex_lock(&h->lock);
    if (r->connection) {
        r->connection->deadline_ns = weft__clock_ns() + (uint64_t)h->config.idle_s * HTTP_SECOND_NS;
        r->connection->request = NULL;
        r->connection = NULL;
    }
    if (r->next) r->next->prev = r->prev;
    if (r->prev) r->prev->next = r->next;
    else h->requests = r->next;
    h->counts.n_requests--;
    h->counts.n_gone += !complete && r->handed;
    h->counts.n_cut_slow += (uint64_t)slow;
    pthread_cond_broadcast(&h->idle);
    pthread_mutex_unlock(&h->lock);
}

void weft__http_complete(weft__http_request *r, int complete)
{
    if (!complete) weft__http_mark_gone(r, 0);
    pthread_mutex_lock(&r->lock);
    int slow = r->slow;
    pthread_mutex_unlock(&r->lock);
    forget(r, complete, slow);
    pthread_mutex_lock(&r->lock);
    char *whole = r->whole;
    void (*drop)(void *) = r->on_drop;
    r->whole = NULL;
    r->c = NULL;
    r->complete = complete;
    r->ended_ns = weft__clock_ns();
    r->on_gone = r->on_drop = NULL;
    pthread_mutex_unlock(&r->lock);
    weft__free(whole);
    if (drop) drop(r->gone_arg);
    weft__http_unref(r);
}

const char *weft__http_method(const weft__http_request *r)
{
    return r->method;
}

const char *weft__http_path(const weft__http_request *r)
{
    return r->path;
}

uint64_t weft__http_began_ns(const weft__http_request *r)
{
    return r->began_ns;
}

/* Does it say that it was passed on? A caller here might say so, too, and only loses by it. */
static int was_forwarded(const weft__http_request *r)
{
    for (size_t i = 0; i < r->n_headers; i++) {
        const char *name = r->headers[i].name;
        if (!strcasecmp(name, "Forwarded") || !strcasecmp(name, "Via") || !strcasecmp(name, "X-Real-IP") ||
            !strncasecmp(name, "X-Forwarded-", 12))
            return 1;
    }
    return 0;
}

int weft__http_is_local(const weft__http_request *r)
{
    return r->is_local && !was_forwarded(r);
}

const char *weft__http_body(const weft__http_request *r, size_t *n)
{
    *n = r->body.len;
    return r->body.data ? r->body.data : "";
}

size_t weft__http_header_count(const weft__http_request *r, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_headers; i++) n += !strcasecmp(r->headers[i].name, name);
    return n;
}

const char *weft__http_header(const weft__http_request *r, const char *name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (!strcasecmp(r->headers[i].name, name)) return r->headers[i].value;
    return NULL;
}

const char *weft__http_query(const weft__http_request *r, const char *name)
{
    for (size_t i = 0; i < r->n_query; i++)
        if (!strcmp(r->query[i].name, name)) return r->query[i].value;
    return NULL;
}

const char *weft__http_query_name(const weft__http_request *r, size_t i)
{
    return i < r->n_query ? r->query[i].name : NULL;
}

void weft__http_set_note(weft__http_request *r, void *note)
{
    pthread_mutex_lock(&r->lock);
    void *old = r->note;
    r->note = note;
    pthread_mutex_unlock(&r->lock);
    weft__free(old);
}

void *weft__http_set_beside(weft__http_request *r, void *what)
{
    pthread_mutex_lock(&r->lock);
    void *old = r->beside;
    r->beside = what;
    pthread_mutex_unlock(&r->lock);
    return old;
}

void weft__http_on_gone(weft__http_request *r, void (*gone)(void *), void (*drop)(void *), void *arg)
{
    pthread_mutex_lock(&r->lock);
    int left = r->gone, done = r->c == NULL;
    struct weft__http_loop *l = NULL;
    if (!left && !done) {
        r->on_gone = gone;
        r->on_drop = drop;
        r->gone_arg = arg;
        if (r->half_closed) l = weft__http_wake(r); /* whether its client left matters from now on */
    }
    pthread_mutex_unlock(&r->lock);
    weft__http_loop_wake(l);
    if (left) gone(arg);
    if (left || done) drop(arg);
}

int weft__http_off_gone(weft__http_request *r)
{
    pthread_mutex_lock(&r->lock);
    int had = r->on_drop != NULL;
    r->on_gone = r->on_drop = NULL;
    pthread_mutex_unlock(&r->lock);
    return had;
}

void weft__http_add_header(weft__http_request *r, const char *name, const char *value)
{
    pthread_mutex_lock(&r->lock);
    weft__strbuf_put(&r->extra, name, strlen(name) + 1);
    weft__strbuf_put(&r->extra, value, strlen(value) + 1);
    pthread_mutex_unlock(&r->lock);
}

void weft__http_reply(weft__http_request *r, int status, const char *content_type, char *body, size_t n)
{
    pthread_mutex_lock(&r->lock);
    int ours = !r->answered && !r->gone;
    if (ours) {
        weft__strbuf_free(&r->out);
        r->answered = r->ended = 1;
        r->status = status;
        r->content_type = content_type;
        r->whole = body;
        r->n_whole = n;
        weft__http_answers_give(r, r->n_counted); /* what was written before is dropped */
        weft__http_answers_take(r, n);
    }
    pthread_mutex_unlock(&r->lock);
    if (!ours) {
        weft__free(body);
        return;
    }
    weft__http_free_body(r);
    weft__http_set_deadline(r, weft__http_read_by(r, n));
    wake_now(r);
}

void weft__http_begin(weft__http_request *r)
{
    struct weft__http_loop *l = NULL;
    pthread_mutex_lock(&r->lock);
    if (!r->answered && !r->gone) {
        r->answered = r->stream = 1;
        r->status = 200;
        r->content_type = "text/event-stream; charset=utf-8";
        r->last_write_ns = weft__clock_ns();
        l = weft__http_wake(r);
    }
    pthread_mutex_unlock(&r->lock);
    weft__http_loop_wake(l);
}

/* May more be written? Under r->lock. */
static int takes_more(const weft__http_request *r)
{
    return (r->stream || !r->answered) && !r->gone && !r->ended && !r->full;
}

/* ... and has all that was written been taken? */
static int is_drained(weft__http_request *r)
{
    pthread_mutex_lock(&r->lock);
    int drained = takes_more(r) && r->out_at == r->out.len;
    pthread_mutex_unlock(&r->lock);
    return drained;
}

int weft__http_write(weft__http_request *r, const void *bytes, size_t n)
{
    const weft__http_config *config = &r->http->config;
    int full = 0, gone;
    /* Before there is something to take: taking all of it ends the deadline. */
    if (n && is_drained(r)) weft__http_set_deadline(r, weft__http_read_by(r, 0));
    pthread_mutex_lock(&r->lock);
    if (takes_more(r) && n) {
        if (r->out_at == r->out.len) r->out.len = r->out_at = 0;
        if (r->out_at > config->max_buffer / 2) {
            memmove(r->out.data, r->out.data + r->out_at, r->out.len - r->out_at);
            r->out.len -= r->out_at;
            r->out_at = 0;
        }
        full = r->out.len - r->out_at + n > config->max_buffer;
        size_t before = r->out.len;
        if (!full) weft__strbuf_put(&r->out, bytes, n);
        weft__http_answers_take(r, r->out.len - before);
        full |= r->out.failed;
        r->full = full; /* nothing after the hole */
        r->last_write_ns = weft__clock_ns();
        if (!full) (void)weft__http_wake(r); /* weft__http_flush wakes its loop */
    }
    gone = r->gone || r->full;
    pthread_mutex_unlock(&r->lock);
    if (full) { /* the watcher cuts it: gone must not be called from within a write */
        weft__http_set_deadline(r, 1);
        return 0;
    }
    return !gone;
}

void weft__http_flush(const weft__http_request *r)
{
    weft__http_loops_wake(r->http);
}

void weft__http_end(weft__http_request *r)
{
    pthread_mutex_lock(&r->lock);
    int now = (r->stream || !r->answered) && !r->ended && !r->full;
    size_t left = r->out.len - r->out_at;
    if (now) r->ended = 1;
    pthread_mutex_unlock(&r->lock);
    if (!now) return;
    weft__http_set_deadline(r, weft__http_read_by(r, left));
    wake_now(r);
}

int weft__http_is_gone(weft__http_request *r)
{
    pthread_mutex_lock(&r->lock);
    int gone = r->gone;
    pthread_mutex_unlock(&r->lock);
    return gone;
}

void weft__http_release(weft__http_request *r)
{
    weft__http_unref(r);
}
