// SPDX-License-Identifier: Apache-2.0
/* store_swap.c: the store's swap file (store_swap.h). Owner: the store's thread; what callers do stands under its
 * lock. */
#include "kv/store_swap.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "kv/store_parts.h"

weft__kv_swap_io *weft__kv_swap_io_new(uint64_t n_bytes)
{
    weft__kv_swap_io *io = weft__alloc(sizeof *io);
    if (!io) return NULL;
    *io = (weft__kv_swap_io){.n_bytes = n_bytes, .bytes = weft__alloc_aligned(64, (size_t)n_bytes)};
    if (!io->bytes) weft__kv_swap_io_free(&io);
    return io;
}

void weft__kv_swap_io_free(weft__kv_swap_io **io)
{
    if (!*io) return;
    weft__free((*io)->bytes);
    weft__free(*io);
    *io = NULL;
}

/* ---- the store's thread ---- */

static uint64_t sum_of(const weft__kv_swap_io *io)
{
    weft__hash_state h;
    weft__hash_begin(&h);
    weft__hash_add(&h, &io->seed, sizeof io->seed);
    weft__hash_add(&h, io->bytes, (size_t)io->n_bytes);
    return weft__hash_end(&h);
}

/* The file grows up to byte `end`: prefixes go for it. */
static weft_status grow(weft__kv_store *s, uint64_t end, weft_error *err)
{
    if (end > s->swap.limit) return weft_fail(err, WEFT_LIMIT, "it has %llu bytes at most", (long long)s->swap.limit);
    if (end <= s->swap.n_bytes) return WEFT_OK;
    while (s->index.n_bytes > s->stats.cap_bytes - end)
        if (!weft__kv_store_drop_oldest(s))
            return weft_fail(err, WEFT_LIMIT, "saved slots leave it no room in the store");
    pthread_mutex_lock(&s->lock);
    s->swap.n_bytes = end;
    pthread_mutex_unlock(&s->lock);
    return WEFT_OK;
}

static weft_status swap_out(weft__kv_store *s, weft__kv_swap_io *io, weft_error *err)
{
    weft_status st = grow(s, io->at + io->n_bytes, err);
    if (st) return st;
    io->sum = sum_of(io);
    st = weft__kv_store_write_at(s->swap.fd, io->at, io->bytes, io->n_bytes, err);
    if (st == WEFT_LIMIT && weft__kv_store_free_disk(s, io->n_bytes))
        st = weft__kv_store_write_at(s->swap.fd, io->at, io->bytes, io->n_bytes, err);
    return st;
}

static weft_status swap_in(weft__kv_store *s, weft__kv_swap_io *io, weft_error *err)
{
    weft_status st = weft__kv_store_read_at(s->swap.fd, io->at, io->bytes, io->n_bytes, err);
    if (!st && sum_of(io) != io->sum) st = weft_fail(err, WEFT_FORMAT, "other bytes than were written: damaged");
    return st;
}

static void swap_empty(weft__kv_store *s)
{
    if (ftruncate(s->swap.fd, 0)) return; /* it stays as large as it was: still within its limit */
    pthread_mutex_lock(&s->lock);
    s->swap.n_bytes = 0;
    pthread_mutex_unlock(&s->lock);
}

void weft__kv_store_swap(weft__kv_store *s, weft__kv_store_job *j)
{
    weft_error err = {0};
    weft__kv_swap_io *io = j->io;
    pthread_mutex_lock(&s->lock);
    const int stopping = s->stop;
    pthread_mutex_unlock(&s->lock);
    if (!io) {
        swap_empty(s);
        return;
    }
    const uint64_t begin = weft__clock_ns();
    if (stopping) io->status = weft_fail(&err, WEFT_STATE, "the engine ends");
    else io->status = j->kind == KV_JOB_SWAP_OUT ? swap_out(s, io, &err) : swap_in(s, io, &err);
    io->ns = weft__clock_ns() - begin;
    if (io->status && !stopping && !s->swap.failing)
        weft__log(WEFT__LOG_WARN, "%s: its swap file: %s; what was to be swapped is computed again", s->folder.path,
                  err.message);
    s->swap.failing = io->status != WEFT_OK;
}

void weft__kv_store_swap_close(weft__kv_store *s)
{
    if (s->swap.fd >= 0) close(s->swap.fd);
    s->swap.fd = -1;
}

/* ---- callers ---- */

uint64_t weft__kv_store_swap_most(weft__kv_store *s)
{
    return s->stats.cap_bytes / 4; /* never changed */
}

weft_status weft__kv_store_swap_open(weft__kv_store *s, uint64_t limit, weft__kv_swap_done done, void *arg,
                                     weft_error *err)
{
    char name[32];
    if (limit > weft__kv_store_swap_most(s))
        return weft_fail(err, WEFT_ARGUMENT,
                         "%llu bytes for swapped pages; a quarter of the store's %llu can be had, so %llu at most",
                         (unsigned long long)limit, (unsigned long long)s->stats.cap_bytes,
                         (unsigned long long)weft__kv_store_swap_most(s));
    const int fd = weft__kv_store_new_file(&s->folder, name);
    if (fd < 0) return weft_fail(err, WEFT_IO, "%s: a swap file cannot be made: %s", s->folder.path, strerror(errno));
    weft__kv_store_unlink(&s->folder, name);
    pthread_mutex_lock(&s->lock);
    s->swap.fd = fd;
    s->swap.limit = limit;
    s->swap.done = done;
    s->swap.arg = arg;
    pthread_mutex_unlock(&s->lock);
    return WEFT_OK;
}

static int swap_ask(weft__kv_store *s, weft__kv_store_kind kind, weft__kv_swap_io *io)
{
    weft__kv_store_job *j = weft__kv_store_job_new(kind, NULL, 0, NULL, NULL);
    if (!j) return 0;
    j->io = io;
    pthread_mutex_lock(&s->lock);
    weft__kv_store_push(s, j);
    pthread_mutex_unlock(&s->lock);
    return 1;
}

int weft__kv_store_swap_out(weft__kv_store *s, weft__kv_swap_io *io)
{
    return swap_ask(s, KV_JOB_SWAP_OUT, io);
}

int weft__kv_store_swap_in(weft__kv_store *s, weft__kv_swap_io *io)
{
    return swap_ask(s, KV_JOB_SWAP_IN, io);
}

void weft__kv_store_swap_empty(weft__kv_store *s)
{
    (void)swap_ask(s, KV_JOB_SWAP_EMPTY, NULL); /* without memory it stays as it is */
}
