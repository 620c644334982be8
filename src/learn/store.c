// SPDX-License-Identifier: Apache-2.0
/* store.c: the store's life, its queue, and the thread that writes (store.h). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/thread.h"
#include "learn/parts.h"

enum { EVENTS_PER_HOUR = 600, RETRY_S = 60 /* what a forgetting left to do */ };

/* ---- the writer ---- */

/* A batch ends before and behind what needs a transaction of its own. */
static weft__learn_job *take_batch(weft__learn_store *s)
{
    weft__learn_job *batch = s->first, *last = NULL;
    const size_t most = s->sync == WEFT__LEARN_SYNC_EACH ? 1 : WEFT__LEARN_BATCH;
    for (size_t n = 0; s->first && n < most; n++) {
        if (s->first->kind == WEFT__LEARN_JOB_FORGET && last) break;
        last = s->first;
        s->first = last->next;
        s->n_waiting--;
        s->n_urgent -= last->waits;
        if (last->kind == WEFT__LEARN_JOB_FORGET) break;
    }
    if (last) last->next = NULL;
    if (!s->first) s->last = &s->first;
    return batch;
}

/* After these nothing more can be written in this transaction. */
static int ends_batch(weft_status st)
{
    return st == WEFT_IO || st == WEFT_FORMAT || st == WEFT_NO_MEMORY || st == WEFT_BUSY;
}

/* Before anything else is asked of the database. */
static void tell_why(weft__learn_store *s, weft_status st)
{
    if (st == WEFT_IO && !s->why) s->why = weft__learn_db_why(s->db, sqlite3_errcode(s->db));
}

static weft_status write_one(weft__learn_store *s, weft__learn_job *job)
{
    const uint64_t place = s->next_place;
    weft_error err = {0};
    weft_status st = weft__learn_db_run(s->db, "SAVEPOINT job", &err);
    if (!st) st = weft__learn_write(s, job, &err);
    const int is_refusal = st == WEFT_BUSY && job->kind == WEFT__LEARN_JOB_TELL; /* too many: not the database */
    job->status = st;
    job->error = err;
    tell_why(s, st);
    if (st) {
        s->next_place = place;
        sqlite3_exec(s->db, "ROLLBACK TO job", NULL, NULL, NULL);
    }
    sqlite3_exec(s->db, "RELEASE job", NULL, NULL, NULL);
    return ends_batch(st) && !is_refusal ? st : WEFT_OK;
}

/* All of a batch, or nothing of it. */
static void write_batch(weft__learn_store *s, weft__learn_job *batch)
{
    const uint64_t place = s->next_place;
    weft_error err = {0};
    weft_status st = weft__learn_db_run(s->db, "BEGIN IMMEDIATE", &err);
    if (!st)
        st = weft__learn_db_do(s->db, &err, "DELETE FROM unwitnessed WHERE place < ?1", "i",
                               (int64_t)weft__learn_witness_size(s->witness));
    for (weft__learn_job *j = batch; j && !st; j = j->next) {
        st = write_one(s, j);
        if (st) err = j->error;
    }
    if (!st) st = weft__learn_expire(s, 0, &err);
    if (!st) st = weft__learn_db_run(s->db, "COMMIT", &err);
    if (!st) return;
    tell_why(s, st);
    s->next_place = place;
    if (!sqlite3_get_autocommit(s->db)) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    for (weft__learn_job *j = batch; j; j = j->next) {
        j->status = st;
        j->error = err;
    }
}

/* Told once until it works again. */
static void note_fault(weft__learn_store *s, const weft_error *err)
{
    pthread_mutex_lock(&s->lock);
    const int is_new = err->status && !s->health.fault[0];
    snprintf(s->health.fault, sizeof s->health.fault, "%.255s", err->status ? err->message : "");
    pthread_mutex_unlock(&s->lock);
    if (is_new) weft__log(WEFT__LOG_WARN, "what is learned from is not kept: %s", err->message);
}

/* With the lock. */
static void count(weft__learn_store *s, const weft__learn_job *j)
{
    weft__learn_health *h = &s->health;
    if (j->kind == WEFT__LEARN_JOB_RECORD) *(j->status ? &h->n_lost : &h->n_kept) += 1;
    if (j->kind != WEFT__LEARN_JOB_TELL) return;
    const weft__learn_told *told = j->result;
    *(j->status ? &h->n_refused : told->is_repeated ? &h->n_repeated : &h->n_told) += 1;
}

static void batch_end(weft__learn_store *s, weft__learn_job *batch)
{
    pthread_mutex_lock(&s->lock);
    void (*listener)(void *, const char *, weft__learn_kind) = s->listener;
    void *arg = s->listener_arg;
    pthread_mutex_unlock(&s->lock);
    for (weft__learn_job *j = batch; j && listener; j = j->next) {
        const weft__learn_feedback *f = j->given;
        if (j->kind == WEFT__LEARN_JOB_TELL && !j->status && !((weft__learn_told *)j->result)->is_repeated)
            listener(arg, f->tenant, f->kind);
    }
    pthread_mutex_lock(&s->lock);
    while (batch) {
        weft__learn_job *j = batch;
        batch = j->next;
        count(s, j);
        j->done = 1;
        if (!j->waits) weft__free(j);
    }
    pthread_cond_broadcast(&s->done);
    pthread_mutex_unlock(&s->lock);
}

static void count_failed(weft__learn_store *s)
{
    pthread_mutex_lock(&s->lock);
    s->health.n_failed[s->why]++;
    pthread_mutex_unlock(&s->lock);
}

static void work(weft__learn_store *s, weft__learn_job *batch)
{
    weft_error err = {0};
    if (s->is_unfinished && batch->kind != WEFT__LEARN_JOB_FORGET &&
        weft__clock_ns() - s->tried_ns >= RETRY_S * 1000000000ull)
        weft__learn_forget_rest(s, NULL);
    s->why = WEFT__LEARN_OTHER;
    if (batch->kind == WEFT__LEARN_JOB_FORGET) batch->status = weft__learn_forget_all(s, batch, &batch->error);
    else write_batch(s, batch);
    if (batch->kind == WEFT__LEARN_JOB_FORGET) tell_why(s, batch->status);
    for (weft__learn_job *j = batch; j && !err.status; j = j->next)
        if (ends_batch(j->status) && !(j->kind == WEFT__LEARN_JOB_TELL && j->status == WEFT_BUSY)) err = j->error;
    if (err.status == WEFT_IO) count_failed(s);
    weft_error log = {0};
    if (weft__learn_witness_move(s, &log) && !err.status) err = log;
    note_fault(s, &err);
    batch_end(s, batch);
}

static int is_due(const weft__learn_store *s, uint64_t *until)
{
    const size_t most = s->sync == WEFT__LEARN_SYNC_EACH ? 1 : WEFT__LEARN_BATCH;
    *until = s->first ? s->first->since_ns + WEFT__LEARN_BATCH_MS * 1000000ull : 0;
    return s->stop || s->n_urgent || s->n_waiting >= most || (s->first && weft__clock_ns() >= *until);
}

static void *writer(void *arg)
{
    weft__learn_store *s = arg;
    pthread_mutex_lock(&s->lock);
    while (!s->stop || s->first) {
        uint64_t until;
        while (!is_due(s, &until)) weft__clock_wait(&s->wake, &s->lock, until);
        weft__learn_job *batch = take_batch(s);
        if (!batch) continue;
        pthread_mutex_unlock(&s->lock);
        work(s, batch);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- the queue ---- */

/* With the lock. 0: it is full. */
static int enqueue(weft__learn_store *s, weft__learn_job *job)
{
    if (s->n_waiting >= WEFT__LEARN_QUEUE || s->stop) return 0;
    job->since_ns = weft__clock_ns();
    *s->last = job;
    s->last = &job->next;
    s->n_waiting++;
    s->n_urgent += job->waits;
    pthread_cond_signal(&s->wake);
    return 1;
}

weft_status weft__learn_await(weft__learn_store *s, weft__learn_job *job, weft_error *err)
{
    job->waits = 1;
    if (s->looks) return weft_fail(err, WEFT_STATE, "the store is open for reading");
    pthread_mutex_lock(&s->lock);
    if (!enqueue(s, job)) {
        pthread_mutex_unlock(&s->lock);
        return weft_fail(err, WEFT_BUSY, "%d records wait to be kept; try again later", WEFT__LEARN_QUEUE);
    }
    while (!job->done) pthread_cond_wait(&s->done, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return job->status ? weft_fail(err, job->status, "%s", job->error.message) : WEFT_OK;
}

void weft__learn_flush(weft__learn_store *s)
{
    weft__learn_job job = {.kind = WEFT__LEARN_JOB_NOTHING};
    weft__learn_await(s, &job, NULL);
}

/* Copies of what a record points to stand behind it in the one block. */
struct copier {
    char *at;
};

static const void *copy(struct copier *c, const void *bytes, size_t n)
{
    char *to = c->at;
    if (!bytes) return NULL;
    if (n) memcpy(to, bytes, n);
    c->at += (n + 7) & ~(size_t)7;
    return to;
}

static const char *copy_text(struct copier *c, const char *text)
{
    return copy(c, text, text ? strlen(text) + 1 : 0);
}

static size_t room_of(const weft__learn_record *r)
{
    const char *const texts[] = {r->tenant,  r->id,       r->model,  r->base,  r->adapter,
                                 r->content, r->settings, r->finish, r->source};
    size_t n = (size_t)r->n_prompt * 4 + (size_t)r->n_answer * 8 + r->n_text + 4 * 8;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) n += texts[i] ? strlen(texts[i]) + 9 : 0;
    return n;
}

int weft__learn_is_forgotten(const weft__learn_store *s, const char *tenant, int64_t time_ms)
{
    const uint64_t name = weft__hash(tenant, strlen(tenant));
    const size_t n = s->n_forgotten < WEFT__LEARN_FORGOTTEN ? s->n_forgotten : WEFT__LEARN_FORGOTTEN;
    for (size_t i = 0; i < n; i++)
        if (s->forgotten[i].name == name && time_ms <= s->forgotten[i].time_ms) return 1;
    return 0;
}

int weft__learn_put(weft__learn_store *s, const weft__learn_record *r)
{
    const size_t head = (sizeof(weft__learn_job) + sizeof *r + 15) & ~(size_t)15;
    weft__learn_job *job = weft__alloc(head + room_of(r));
    if (job) {
        struct copier c = {(char *)job + head};
        weft__learn_record *own = (weft__learn_record *)(job + 1);
        *job = (weft__learn_job){.kind = WEFT__LEARN_JOB_RECORD, .given = own};
        *own = *r;
        own->prompt = copy(&c, r->prompt, (size_t)r->n_prompt * sizeof *r->prompt);
        own->answer = copy(&c, r->answer, (size_t)r->n_answer * sizeof *r->answer);
        own->logprobs = copy(&c, r->logprobs, (size_t)r->n_answer * sizeof *r->logprobs);
        own->text = copy(&c, r->text, r->n_text);
        own->tenant = copy_text(&c, r->tenant);
        own->id = copy_text(&c, r->id);
        own->model = copy_text(&c, r->model);
        own->base = copy_text(&c, r->base);
        own->adapter = copy_text(&c, r->adapter);
        own->content = copy_text(&c, r->content);
        own->settings = copy_text(&c, r->settings);
        own->finish = copy_text(&c, r->finish);
        own->source = copy_text(&c, r->source);
    }
    pthread_mutex_lock(&s->lock);
    const int ok = job && !weft__learn_is_forgotten(s, r->tenant, r->time_ms) && enqueue(s, job);
    if (!ok) s->health.n_lost++;
    pthread_mutex_unlock(&s->lock);
    if (!ok) weft__free(job);
    return ok;
}

void weft__learn_listen(weft__learn_store *s, void (*fn)(void *arg, const char *tenant, weft__learn_kind kind),
                        void *arg)
{
    pthread_mutex_lock(&s->lock);
    s->listener = fn;
    s->listener_arg = arg;
    pthread_mutex_unlock(&s->lock);
}

void weft__learn_get_health(weft__learn_store *s, weft__learn_health *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->health;
    out->n_waiting = s->n_waiting;
    pthread_mutex_unlock(&s->lock);
}

/* ---- life ---- */

/* What a store may have in its folder before its database; and what a file system has there by itself. */
static int is_store_file(const char *name)
{
    static const char *const names[] = {"lock", "log", "tenants", "learn.db-wal", "learn.db-shm", "lost+found"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return 1;
    return name[0] == '.';
}

/* Nobody's other files get a store among them. */
static weft_status check_folder(const char *dir, int exists, int *has_store, weft_error *err)
{
    weft__strbuf path = {0};
    weft_status st = WEFT_OK;
    weft__strbuf_printf(&path, "%s/learn.db", dir);
    if (path.failed) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a path");
    *has_store = !st && !access(path.data, F_OK);
    weft__strbuf_free(&path);
    if (st || *has_store) return st;
    if (exists) return weft_fail(err, WEFT_NOT_FOUND, "there is no store in %s", dir);
    DIR *d = opendir(dir);
    if (!d && errno == ENOTDIR) return weft_fail(err, WEFT_IO, "%s: %s", dir, strerror(errno));
    for (const struct dirent *e; d && !st && (e = readdir(d));)
        if (!is_store_file(e->d_name))
            st = weft_fail(err, WEFT_ARGUMENT, "%s has other files (%.60s) and no store; give a new or an empty folder",
                           dir, e->d_name);
    if (d) closedir(d);
    return st;
}

/* Makes a folder in `dir`, or where that is not there beside it, and takes it away again. */
static weft_status try_making(const char *dir, int is_there, weft_error *err)
{
    weft__strbuf path = {0};
    weft_status st = WEFT_OK;
    size_t n = strlen(dir);
    while (!is_there && n > 1 && dir[n - 1] == '/') n--;
    while (!is_there && n && dir[n - 1] != '/') n--;
    weft__strbuf_printf(&path, "%.*s%s.weft-check-XXXXXX", (int)n, dir, is_there ? "/" : "");
    if (path.failed) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a path");
    else if (!mkdtemp(path.data)) st = weft_fail(err, WEFT_IO, "%s: %s", dir, strerror(errno));
    else rmdir(path.data);
    weft__strbuf_free(&path);
    return st;
}

weft_status weft__learn_check(const char *dir, weft_error *err)
{
    struct stat is;
    int has_store;
    weft__learn_store *s = NULL;
    weft_status st = check_folder(dir, 0, &has_store, err);
    if (st) return st;
    const int is_there = !stat(dir, &is);
    if (!is_there && (errno != ENOENT || !lstat(dir, &is))) /* a link to nothing is no place for one either */
        return weft_fail(err, WEFT_IO, "%s: %s", dir, strerror(errno));
    st = try_making(dir, is_there, err);
    if (st || !has_store) return st;
    st = weft__learn_open(&(weft__learn_options){.dir = dir, .read_only = 1}, &s, err);
    weft__learn_close(&s);
    return st ? st : weft__learn_witness_check(dir, err);
}

/* The folder is this process's alone. */
static weft_status lock_folder(weft__learn_store *s, weft_error *err)
{
    weft__strbuf path = {0};
    char pid[16] = "";
    weft_status st = WEFT_OK;
    if (mkdir(s->dir, 0700) && errno != EEXIST) return weft_fail(err, WEFT_IO, "%s: %s", s->dir, strerror(errno));
    weft__strbuf_printf(&path, "%s/lock", s->dir);
    if (path.failed) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a path");
    s->lock_fd = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (s->lock_fd < 0) st = weft_fail(err, WEFT_IO, "%s: %s", path.data, strerror(errno));
    else if (flock(s->lock_fd, LOCK_EX | LOCK_NB)) {
        const ssize_t n = pread(s->lock_fd, pid, sizeof pid - 1, 0);
        st = weft_fail(err, WEFT_BUSY, "%s is in use by another process%s%.15s; it must end first", s->dir,
                       n > 0 ? ", " : "", pid);
    } else {
        const int n = snprintf(pid, sizeof pid, "%d", (int)getpid());
        if (ftruncate(s->lock_fd, 0) || pwrite(s->lock_fd, pid, (size_t)n, 0) < 0)
            st = weft_fail(err, WEFT_IO, "%s: %s", path.data, strerror(errno));
    }
    weft__strbuf_free(&path);
    return st;
}

static weft_status begin_writing(weft__learn_store *s, weft_error *err)
{
    int64_t n;
    weft_status st = weft__learn_db_open(s->dir, 0, s->sync, &s->db, err);
    if (!st) st = weft__learn_witness_open(s->dir, s->sync, &s->witness, err);
    if (!st)
        st = weft__learn_db_number(s->db, 0, &n, err, "SELECT count(*) FROM unwitnessed WHERE place >= ?1", "i",
                                   (int64_t)weft__learn_witness_size(s->witness));
    if (st) return st;
    s->next_place = weft__learn_witness_size(s->witness) + (uint64_t)n;
    s->is_unfinished = 1;
    st = weft__learn_forget_rest(s, err);
    if (st == WEFT_BUSY) st = WEFT_OK; /* later */
    if (!st) st = weft__learn_witness_move(s, err);
    if (st) return st;
    const int rc = weft__thread_start(&s->thread, writer, s);
    s->has_thread = !rc;
    return rc ? weft_fail(err, WEFT_LIMIT, "no thread to keep what is learned from: %s", strerror(rc)) : WEFT_OK;
}

weft_status weft__learn_open(const weft__learn_options *o, weft__learn_store **out, weft_error *err)
{
    weft__learn_store *s = weft__alloc_zero(1, sizeof *s);
    int has_store;
    *out = NULL;
    if (!s) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a store");
    s->max_age_s = o->max_age_s;
    s->max_bytes = o->max_bytes;
    s->events_per_hour = o->events_per_hour ? o->events_per_hour : EVENTS_PER_HOUR;
    s->sync = o->sync;
    s->looks = o->read_only;
    s->lock_fd = -1;
    s->last = &s->first;
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->read_lock, NULL);
    weft__clock_cond_init(&s->wake);
    pthread_cond_init(&s->done, NULL);
    s->dir = weft__strdup(o->dir);
    weft_status st = s->dir ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for a store");
    if (!st && !s->looks) st = check_folder(s->dir, o->exists, &has_store, err);
    if (!st && !s->looks) st = lock_folder(s, err);
    if (!st && !s->looks) st = begin_writing(s, err);
    if (!st) st = weft__learn_db_open(s->dir, 1, s->sync, &s->reader, err);
    if (st) weft__learn_close(&s);
    *out = s;
    return st;
}

void weft__learn_close(weft__learn_store **p)
{
    weft__learn_store *s = p ? *p : NULL;
    if (!s) return;
    *p = NULL;
    pthread_mutex_lock(&s->lock);
    s->stop = 1;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (s->has_thread) pthread_join(s->thread, NULL);
    sqlite3_close(s->reader);
    sqlite3_close(s->db);
    weft__learn_witness_close(&s->witness);
    if (s->lock_fd >= 0) close(s->lock_fd); /* the file stays: who opened it before would lock another one */
    pthread_cond_destroy(&s->done);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->read_lock);
    pthread_mutex_destroy(&s->lock);
    weft__free(s->dir);
    weft__free(s);
}
