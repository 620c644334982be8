// SPDX-License-Identifier: Apache-2.0
/* log.c: the request log: a line of JSON per request, by a thread of its own. Any thread hands lines over; only that
 * thread touches the file.
 *
 * The reader of a log may stall (a pipe, a terminal that is stopped), and a disk may take its time: no request waits
 * for that, nor does the end of the service. The descriptor may be shared with others (stderr), so it stays as it is:
 * it may block, and only this thread then does. Lines wait for it in bounded memory; those beyond are lost, counted and
 * told once. A line is written whole: the rest of one for which there was no room comes before the next. A thread that
 * still stands in a write at the end is left there, and frees the log when the write returns: a cancelled one looks to
 * AddressSanitizer as if its stack were broken. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "server/server.h"

enum {
    WAITING = 1 << 20, /* bytes of lines that wait for the thread */
    LONGEST = 512,     /* bytes of a path, or of any other text, that are logged */
    END_S = 1          /* that a log which takes nothing may hold up the end */
};

typedef struct weft__server_log {
    pthread_t thread;
    pthread_mutex_t lock; /* waiting, stop, ended */
    pthread_cond_t end;
    weft__strbuf waiting, taken; /* whole lines: that wait for the thread; the thread's */
    char *path;                  /* where it is opened again; NULL: nowhere */
    int fd, wake_fd;             /* -1: none */
    size_t n_rest;               /* the thread's, as rest: of a line that was begun */
    int stop, ended;
    atomic_int reopen, told; /* told: that lines are lost */
    atomic_int is_left;      /* the log is the thread's own from then on */
    _Atomic uint64_t n_lost;
    char rest[8192]; /* more than a line has */
} server_log;

static void log_free(server_log *l)
{
    if (l->wake_fd >= 0) {
        pthread_cond_destroy(&l->end);
        pthread_mutex_destroy(&l->lock);
        close(l->wake_fd);
    }
    if (l->fd >= 0) close(l->fd);
    weft__strbuf_free(&l->waiting);
    weft__strbuf_free(&l->taken);
    weft__free(l->path);
    weft__free(l);
}

/* ---- the thread ---- */

/* Stderr may be what stalls. */
static int stderr_takes(void)
{
    struct pollfd out = {STDERR_FILENO, POLLOUT, 0};
    return poll(&out, 1, 0) == 1 && out.revents & POLLOUT;
}

/* A line is lost. Any thread. */
static void lose(server_log *l, const char *why)
{
    l->n_lost++;
    if (atomic_exchange(&l->told, 1)) return;
    if (stderr_takes())
        dprintf(STDERR_FILENO,
                "weft serve: a line of the request log is lost: %s; weft_log_lines_lost_total in /metrics counts more "
                "of them\n",
                why);
    else atomic_store(&l->told, 0);
}

/* Writes what the log takes of it and returns how much that was; less than n: *why is errno. */
static size_t log_put(int fd, const char *bytes, size_t n, int *why)
{
    size_t done = 0;
    while (done < n) {
        struct pollfd room = {fd, POLLOUT, 0};
        ssize_t got = write(fd, bytes + done, n - done);
        *why = got < 0 ? errno : ENOSPC;
        if (got < 0 && *why == EAGAIN) poll(&room, 1, -1); /* another process made it so */
        if (got > 0) done += (size_t)got;
        else if (*why != EINTR && *why != EAGAIN) break;
    }
    return done;
}

static void write_line(server_log *l, const char *line, size_t n)
{
    int why = 0;
    size_t done = log_put(l->fd, l->rest, l->n_rest, &why);
    memmove(l->rest, l->rest + done, l->n_rest - done);
    l->n_rest -= done;
    done = l->n_rest || n > sizeof l->rest ? 0 : log_put(l->fd, line, n, &why);
    if (!done) lose(l, why ? strerror(why) : "it is too long");
    else memcpy(l->rest, line + done, l->n_rest = n - done);
}

/* A pipe without a reader is not waited for. */
static void reopen(server_log *l)
{
    int fd = l->path ? open(l->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0640) : -1;
    if (fd < 0 && l->path && stderr_takes())
        weft__log(WEFT__LOG_WARN, "log file %s: %s; the old one is kept", l->path, strerror(errno));
    if (fd < 0) return;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    if (l->n_rest) lose(l, "its file was changed in the middle of it");
    l->n_rest = 0;
    close(l->fd);
    l->fd = fd;
}

static void *keep(void *arg)
{
    server_log *l = arg;
    for (int stop = 0; !stop;) {
        uint64_t n;
        if (read(l->wake_fd, &n, sizeof n) < 0) continue;
        if (atomic_exchange(&l->reopen, 0)) reopen(l);
        pthread_mutex_lock(&l->lock);
        l->taken = l->waiting;
        l->waiting = (weft__strbuf){0};
        stop = l->stop;
        pthread_mutex_unlock(&l->lock);
        for (size_t at = 0, n_line; at < l->taken.len && !atomic_load(&l->is_left); at += n_line) {
            const char *line = l->taken.data + at;
            n_line = (size_t)((const char *)memchr(line, '\n', l->taken.len - at) - line) + 1;
            write_line(l, line, n_line);
        }
        weft__strbuf_free(&l->taken);
    }
    pthread_mutex_lock(&l->lock);
    l->ended = 1;
    const int is_left = l->is_left;
    pthread_cond_signal(&l->end);
    pthread_mutex_unlock(&l->lock);
    if (is_left) log_free(l);
    return NULL;
}

/* ---- callers ---- */

static void wake(server_log *l)
{
    uint64_t one = 1;
    int why = errno;
    if (write(l->wake_fd, &one, sizeof one) < 0) errno = why; /* the counter is full: it is awake */
    errno = why;
}

weft_status weft__server_log_begin(weft_server *s, const char *path, weft_error *err)
{
    if (!path) return WEFT_OK;
    server_log *l = weft__alloc_zero(1, sizeof *l);
    if (!l) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
    weft_status st = WEFT_OK;
    const int is_stderr = !strcmp(path, "-");
    l->wake_fd = -1;
    l->fd = is_stderr ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)
                      : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (l->fd < 0) st = weft_fail(err, WEFT_IO, "log file %s: %s", path, strerror(errno));
    else if (!is_stderr && !(l->path = weft__strdup(path)))
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a server");
    else if ((l->wake_fd = eventfd(0, EFD_CLOEXEC)) < 0) st = weft_fail(err, WEFT_IO, "eventfd: %s", strerror(errno));
    if (!st) {
        pthread_mutex_init(&l->lock, NULL);
        weft__clock_cond_init(&l->end);
        if (weft__thread_start(&l->thread, keep, l)) st = weft_fail(err, WEFT_LIMIT, "the system refuses threads");
    }
    if (st) log_free(l);
    else s->log = l;
    return st;
}

void weft__server_log_end(weft_server *s)
{
    server_log *l = s->log;
    if (!l) return;
    s->log = NULL;
    const pthread_t thread = l->thread;
    const uint64_t until = weft__clock_ns() + END_S * 1000000000ull;
    pthread_mutex_lock(&l->lock);
    l->stop = 1;
    wake(l);
    while (!l->ended && !weft__clock_wait(&l->end, &l->lock, until))
        ;
    const int ended = l->ended;
    atomic_store(&l->is_left, !ended);
    pthread_mutex_unlock(&l->lock);
    if (!ended) {
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    log_free(l);
}

void weft_server_reopen_log(weft_server *s)
{
    if (!s->log) return;
    atomic_store(&s->log->reopen, 1);
    wake(s->log);
}

uint64_t weft__server_log_lost(const weft_server *s)
{
    return s->log ? atomic_load(&s->log->n_lost) : 0;
}

static void hand_over(server_log *l, const weft__strbuf *line)
{
    pthread_mutex_lock(&l->lock);
    const int first = l->waiting.len == 0, full = l->waiting.len + line->len > WAITING;
    if (!full && !line->failed) weft__strbuf_put(&l->waiting, line->data, line->len);
    const int failed = line->failed || l->waiting.failed;
    l->waiting.failed = 0;
    pthread_mutex_unlock(&l->lock);
    if (full || failed) lose(l, full ? "the log takes no more" : "no memory");
    else if (first) wake(l);
}

static void put_member(weft__strbuf *out, const char *name, const char *value)
{
    size_t n = strlen(value);
    if (n > LONGEST)
        for (n = LONGEST; n && ((unsigned char)value[n] & 0xc0) == 0x80;) n--;
    weft__strbuf_printf(out, ",\"%s\":", name);
    weft__json_write_string(out, value, n);
}

/* Of each drafter that guessed. */
static void put_drafts(const weft__server_log_entry *note, weft__strbuf *out)
{
    int n = 0;
    for (int d = 0; d < WEFT_DRAFTERS; d++)
        if (note->drafted[d])
            weft__strbuf_printf(out, "%s\"%s\":{\"tokens\":%d,\"accepted\":%d}", n++ ? "," : ",\"drafts\":{",
                                weft_drafter_name(d), note->drafted[d], note->accepted[d]);
    if (n) weft__strbuf_puts(out, "}");
}

void weft__server_log_request(weft_server *s, const weft__http_record *record, const weft__server_log_entry *note)
{
    weft__strbuf out = {0};
    struct timespec now;
    struct tm utc;
    char stamp[40];
    if (!s->log) return;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
    weft__strbuf_printf(&out, "{\"time\":\"%s.%03ldZ\",\"id\":\"%s\"", stamp, now.tv_nsec / 1000000, record->id);
    put_member(&out, "method", record->method);
    put_member(&out, "path", record->path);
    put_member(&out, "peer", record->peer);
    weft__strbuf_printf(&out,
                        ",\"status\":%d,\"complete\":%s,\"slow\":%s,\"ms\":%.3f,\"bytes_in\":%llu,\"bytes_out\":%llu",
                        record->status, record->complete ? "true" : "false", record->slow ? "true" : "false",
                        record->ms, (unsigned long long)record->n_in, (unsigned long long)record->n_out);
    if (note) {
        put_member(&out, "tenant", note->tenant);
        put_member(&out, "model", note->model);
        put_member(&out, "finish", note->finish);
        weft__strbuf_printf(
            &out, ",\"choices\":%d,\"prompt_tokens\":%d,\"cached_tokens\":%d,\"generated_tokens\":%d,\"queue_ms\":%.3f",
            note->n_choices, note->n_prompt, note->n_cached, note->n_generated, note->queue_ms);
        put_drafts(note, &out);
        weft__strbuf_puts(&out, ",");
        weft__server_stages_write(&note->stages, &out);
    }
    weft__strbuf_puts(&out, "}\n");
    hand_over(s->log, &out);
    weft__strbuf_free(&out);
}
