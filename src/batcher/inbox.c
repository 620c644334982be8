// SPDX-License-Identifier: Apache-2.0
/* inbox.c: events of requests, copied and kept in order until the program takes them.
 *
 * The engine's thread puts events in, under the lock and no other. A request's last event has its place from the
 * beginning, so that the end is told even where memory has run out. The descriptor counts 1 while the list has an
 * event, and is empty otherwise. Freeing waits for the last event of each request: from then on the engine knows
 * nothing of the inbox. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/params.h"
#include "weft/engine.h"

/* An event with what it points to behind it. */
enum { MOST_TOP = 20 }; /* as many as a request may want */

typedef struct letter {
    struct letter *next;
    weft_event event;
    char message[256];
    weft_token_prob top[MOST_TOP]; /* of FINISHED */
} letter;

typedef struct mail {
    struct weft_inbox *inbox;
    struct mail *next; /* in the list of the inbox */
    letter *last;      /* for FINISHED */
    float *embedding;  /* the caller's, or NULL */
    uint64_t serial;   /* from 1: an address may come again */
    uint64_t request;  /* 0: not known yet */
    int lost;          /* an event found no memory */
} mail;

struct weft_inbox {
    weft_engine *engine;
    letter *taken; /* that the program looks at */
    int fd;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    /* Under the lock. */
    letter *first, *last;
    mail *mails;      /* of requests that have not finished */
    uint64_t n_mails; /* so far */
};

/* NULL: no memory. */
static letter *copy(const weft_event *e, float *embedding)
{
    const size_t n_top = (size_t)e->n_top * sizeof *e->top,
                 n_embedding = e->embedding ? (size_t)e->n_embedding * sizeof *e->embedding : 0;
    letter *l = weft__alloc(sizeof *l + n_top + (embedding ? 0 : n_embedding));
    if (!l) return NULL;
    *l = (letter){.event = *e};
    if (n_top) l->event.top = memcpy(l + 1, e->top, n_top);
    if (n_embedding)
        l->event.embedding =
            memcpy(embedding ? embedding : (float *)((char *)(l + 1) + n_top), e->embedding, n_embedding);
    return l;
}

/* With the lock. */
static void put(weft_inbox *inbox, letter *l)
{
    const uint64_t one = 1;
    if (!inbox->first) {
        while (write(inbox->fd, &one, sizeof one) < 0 && errno == EINTR)
            ;
        inbox->first = l;
    } else {
        inbox->last->next = l;
    }
    inbox->last = l;
}

/* With the lock. */
static void end_mail(weft_inbox *inbox, mail *m)
{
    for (mail **p = &inbox->mails; *p; p = &(*p)->next)
        if (*p == m) {
            *p = m->next;
            break;
        }
    weft__free(m);
    if (!inbox->mails) pthread_cond_signal(&inbox->ended);
}

static letter *last_letter(mail *m, const weft_event *e)
{
    letter *l = m->last;
    *l = (letter){.event = *e};
    l->event.top = l->top;
    if (e->n_top > 0) memcpy(l->top, e->top, (size_t)e->n_top * sizeof *e->top);
    if (e->message) memcpy(l->message, e->message, strnlen(e->message, sizeof l->message - 1));
    if (m->lost) {
        l->event.finish = WEFT_FINISH_FAILED;
        l->event.status = WEFT_NO_MEMORY;
        memcpy(l->message, "no memory for an event", sizeof "no memory for an event");
    }
    l->event.message = l->message;
    return l;
}

/* On the engine's thread. */
static int on_event(void *arg, const weft_event *e)
{
    mail *m = arg;
    weft_inbox *inbox = m->inbox;
    const int last = e->kind == WEFT_EVENT_FINISHED;
    letter *l = last ? last_letter(m, e) : m->lost ? NULL : copy(e, m->embedding);
    if (!l) return m->lost = 1; /* which ends it */
    pthread_mutex_lock(&inbox->lock);
    put(inbox, l);
    if (last) end_mail(inbox, m);
    pthread_mutex_unlock(&inbox->lock);
    return 0;
}

weft_status weft_inbox_new(weft_engine *engine, weft_inbox **out, weft_error *err)
{
    *out = NULL;
    weft_inbox *inbox = weft__alloc_zero(1, sizeof *inbox);
    if (!inbox) return weft_fail(err, WEFT_NO_MEMORY, "no memory for an inbox");
    inbox->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (inbox->fd < 0) {
        weft__free(inbox);
        return weft_fail(err, WEFT_IO, "no descriptor for an inbox: %s", strerror(errno));
    }
    inbox->engine = engine;
    pthread_mutex_init(&inbox->lock, NULL);
    pthread_cond_init(&inbox->ended, NULL);
    *out = inbox;
    return WEFT_OK;
}

void weft_inbox_free(weft_inbox **p)
{
    weft_inbox *inbox = p ? *p : NULL;
    if (!inbox) return;
    pthread_mutex_lock(&inbox->lock);
    for (const mail *m = inbox->mails; m; m = m->next) weft_engine_cancel(inbox->engine, m->request);
    while (inbox->mails) pthread_cond_wait(&inbox->ended, &inbox->lock);
    pthread_mutex_unlock(&inbox->lock);
    while (inbox->first) {
        letter *l = inbox->first;
        inbox->first = l->next;
        weft__free(l);
    }
    weft__free(inbox->taken);
    pthread_cond_destroy(&inbox->ended);
    pthread_mutex_destroy(&inbox->lock);
    close(inbox->fd);
    weft__free(inbox);
    *p = NULL;
}

/* Notes which request it is, unless its end was told before. */
static void note(weft_inbox *inbox, uint64_t serial, uint64_t request)
{
    pthread_mutex_lock(&inbox->lock);
    for (mail *m = inbox->mails; m; m = m->next)
        if (m->serial == serial) m->request = request;
    pthread_mutex_unlock(&inbox->lock);
}

weft_status weft_inbox_submit(weft_inbox *inbox, const weft_request_params *params, float *embedding, uint64_t *request,
                              double *retry_after_s, weft_error *err)
{
    weft_request_params own;
    *request = 0;
    weft_request_params_default(&own);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_request_params), &own, params, err);
    if (st) return st;
    mail *m = weft__alloc_zero(1, sizeof *m);
    letter *last = weft__alloc(sizeof *last);
    if (!m || !last) {
        weft__free(last);
        weft__free(m);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a request");
    }
    *m = (mail){.inbox = inbox, .last = last, .embedding = embedding};
    own.event = on_event;
    own.arg = m;
    pthread_mutex_lock(&inbox->lock);
    const uint64_t serial = m->serial = ++inbox->n_mails;
    m->next = inbox->mails;
    inbox->mails = m;
    pthread_mutex_unlock(&inbox->lock);
    st = weft_engine_submit(inbox->engine, &own, request, retry_after_s, err);
    if (!st) {
        note(inbox, serial, *request);
        return WEFT_OK;
    }
    weft__free(last);
    pthread_mutex_lock(&inbox->lock);
    end_mail(inbox, m);
    pthread_mutex_unlock(&inbox->lock);
    return st;
}

/* The first event, or NULL. */
static letter *first_letter(weft_inbox *inbox)
{
    uint64_t count;
    pthread_mutex_lock(&inbox->lock);
    letter *l = inbox->first;
    if (l && !(inbox->first = l->next))
        while (read(inbox->fd, &count, sizeof count) < 0 && errno == EINTR)
            ;
    pthread_mutex_unlock(&inbox->lock);
    return l;
}

const weft_event *weft_inbox_take(weft_inbox *inbox, int32_t timeout_ms)
{
    weft__free(inbox->taken);
    inbox->taken = first_letter(inbox);
    if (!inbox->taken && timeout_ms) {
        struct pollfd waits = {.fd = inbox->fd, .events = POLLIN};
        if (poll(&waits, 1, timeout_ms) > 0) inbox->taken = first_letter(inbox);
    }
    return inbox->taken ? &inbox->taken->event : NULL;
}

int weft_inbox_fd(const weft_inbox *inbox)
{
    return inbox->fd;
}
