// SPDX-License-Identifier: Apache-2.0
/* store_write.c: what comes into the store, and what goes for want of room or for its age (parts.h). The writer's
 * thread, in a transaction. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/random.h"
#include "learn/parts.h"

weft_status weft__learn_tenant(sqlite3 *db, const char *name, int makes, int64_t *number,
                               unsigned char salt[WEFT__LEARN_SALT], weft_error *err)
{
    sqlite3_stmt *q;
    weft_status st = weft__learn_db_ask(db, &q, err, "SELECT tenant, salt FROM tenants WHERE name = ?1", "s", name);
    *number = 0;
    if (!st && weft__learn_db_next(q, &st, err)) {
        *number = sqlite3_column_int64(q, 0);
        if (sqlite3_column_bytes(q, 1) == WEFT__LEARN_SALT && salt)
            memcpy(salt, sqlite3_column_blob(q, 1), WEFT__LEARN_SALT);
    }
    weft__learn_db_end(&q);
    if (st || *number) return st;
    if (!makes) return weft_fail(err, WEFT_NOT_FOUND, "nothing is kept of '%s'", name);
    for (int i = 0; i < WEFT__LEARN_SALT / 8; i++) {
        const uint64_t bits = weft__rng_entropy();
        memcpy(salt + 8 * i, &bits, sizeof bits);
    }
    st = weft__learn_db_do(db, err, "INSERT INTO tenants(name, salt) VALUES(?1, ?2)", "sb", name, (const char *)salt,
                           (size_t)WEFT__LEARN_SALT);
    *number = sqlite3_last_insert_rowid(db);
    return st;
}

static int64_t bytes_of(const weft__learn_record *r)
{
    return (int64_t)r->n_prompt * 4 + (int64_t)r->n_answer * (r->logprobs ? 8 : 4) + (int64_t)r->n_text +
           (int64_t)(r->source ? strlen(r->source) : 0);
}

static weft_status write_record(weft__learn_store *s, const weft__learn_record *r, weft_error *err)
{
    unsigned char salt[WEFT__LEARN_SALT] = {0};
    int64_t tenant;
    weft_status st = weft__learn_tenant(s->db, r->tenant, 1, &tenant, salt, err);
    if (!st)
        st = weft__learn_db_do(
            s->db, err,
            "INSERT INTO answers(tenant, id, choice, time, model, base, adapter, version, content, settings, seed,"
            " finish, notes, prompt, answer, logprobs, source, text, bytes)"
            " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
            "isiisssissisibbbsti", tenant, r->id, (int64_t)r->choice, r->time_ms, r->model, r->base, r->adapter,
            r->version, r->content, r->settings, (int64_t)r->seed, r->finish, (int64_t)r->n_notes,
            (const char *)r->prompt, (size_t)r->n_prompt * sizeof *r->prompt, (const char *)r->answer,
            (size_t)r->n_answer * sizeof *r->answer, (const char *)r->logprobs,
            r->logprobs ? (size_t)r->n_answer * sizeof *r->logprobs : (size_t)0, r->source, r->text, r->n_text,
            bytes_of(r));
    if (!st) st = weft__learn_say_record(&(weft__learn_sayer){s, salt, r->tenant}, r, err);
    return st ? st : weft__learn_expire(s, tenant, err);
}

/* ---- what was said ---- */

/* What an event is about. */
struct told_of {
    int64_t tenant, answer, over; /* numbers; over 0: none */
    unsigned char salt[WEFT__LEARN_SALT];
    weft__strbuf note;
};

static weft_status find_answer(weft__learn_store *s, const weft__learn_feedback *f, struct told_of *of,
                               weft__learn_told *told, weft_error *err)
{
    sqlite3_stmt *q = NULL;
    weft_status st = weft__learn_tenant(s->db, f->tenant, 0, &of->tenant, of->salt, err);
    if (!st)
        st = weft__learn_db_ask(s->db, &q, err,
                                "SELECT number, adapter, version, source FROM answers"
                                " WHERE tenant = ?1 AND id = ?2 AND choice = ?3",
                                "isi", of->tenant, f->id, (int64_t)f->choice);
    if (!st && weft__learn_db_next(q, &st, err)) {
        of->answer = sqlite3_column_int64(q, 0);
        snprintf(told->adapter, sizeof told->adapter, "%s", weft__learn_db_text(q, 1));
        told->version = sqlite3_column_int64(q, 2);
        if (f->kind == WEFT__LEARN_CORRECTION || f->kind == WEFT__LEARN_EDIT)
            st = weft__learn_note(weft__learn_db_text(q, 3), f->text, f->n_text, &of->note, err);
    }
    weft__learn_db_end(&q);
    if (st == WEFT_NOT_FOUND || (!st && !of->answer))
        return weft_fail(err, WEFT_NOT_FOUND, "there is no answer %d of a request '%s' of yours", f->choice, f->id);
    return st;
}

static weft_status find_over(weft__learn_store *s, const weft__learn_feedback *f, struct told_of *of, weft_error *err)
{
    if (f->kind != WEFT__LEARN_PREFERRED) return WEFT_OK;
    weft_status st = weft__learn_db_number(s->db, 0, &of->over, err,
                                           "SELECT number FROM answers WHERE tenant = ?1 AND id = ?2 AND choice = ?3",
                                           "isi", of->tenant, f->over_id, (int64_t)f->over_choice);
    int64_t is_other = 0;
    if (!st && !of->over)
        return weft_fail(err, WEFT_NOT_FOUND, "there is no answer %d of a request '%s' of yours", f->over_choice,
                         f->over_id);
    if (!st)
        st = weft__learn_db_number(s->db, 0, &is_other, err,
                                   "SELECT count(*) FROM answers a, answers b WHERE a.number = ?1 AND b.number = ?2"
                                   " AND a.number <> b.number AND a.prompt = b.prompt",
                                   "ii", of->answer, of->over);
    if (!st && !is_other)
        return weft_fail(err, WEFT_ARGUMENT, "a preference is between two answers to the same prompt");
    return st;
}

/* Is it what was last said of this kind about this answer? */
static weft_status is_repeated(weft__learn_store *s, const weft__learn_feedback *f, const struct told_of *of,
                               int64_t *event, weft_error *err)
{
    sqlite3_stmt *q;
    weft_status st = weft__learn_db_ask(s->db, &q, err,
                                        "SELECT event, value, coalesce(text, ''), coalesce(name, ''), over FROM events"
                                        " WHERE tenant = ?1 AND answer = ?2 AND kind = ?3 ORDER BY event DESC LIMIT 1",
                                        "iii", of->tenant, of->answer, (int64_t)f->kind);
    *event = 0;
    if (!st && weft__learn_db_next(q, &st, err)) {
        const char *text = weft__learn_db_text(q, 2);
        const size_t n = (size_t)sqlite3_column_bytes(q, 2);
        if (sqlite3_column_double(q, 1) == f->value && n == f->n_text && (!n || !memcmp(text, f->text, n)) &&
            !strcmp(weft__learn_db_text(q, 3), f->name ? f->name : "") && sqlite3_column_int64(q, 4) == of->over)
            *event = sqlite3_column_int64(q, 0);
    }
    weft__learn_db_end(&q);
    return st;
}

static weft_status check_rate(weft__learn_store *s, const weft__learn_feedback *f, int64_t tenant, weft_error *err)
{
    int64_t n;
    weft_status st =
        weft__learn_db_number(s->db, 0, &n, err, "SELECT count(*) FROM events WHERE tenant = ?1 AND time > ?2", "ii",
                              tenant, f->time_ms - 3600 * 1000);
    if (st || n < s->events_per_hour) return st;
    return weft_fail(err, WEFT_BUSY, "%" PRId64 " events of feedback came within an hour, the most that one may give",
                     n);
}

static weft_status add_event(weft__learn_store *s, const weft__learn_feedback *f, const struct told_of *of,
                             weft_error *err)
{
    int64_t end = 0;
    weft_status st = WEFT_OK;
    if (of->note.len) { /* what was said before of this answer no longer holds */
        st = weft__learn_db_do(s->db, err,
                               "UPDATE events SET note = NULL, note_end = NULL"
                               " WHERE tenant = ?1 AND answer = ?2 AND note IS NOT NULL",
                               "ii", of->tenant, of->answer);
        if (!st)
            st = weft__learn_db_number(s->db, 0, &end, err,
                                       "SELECT coalesce(max(note_end), 0) FROM events WHERE tenant = ?1"
                                       " AND note_end IS NOT NULL",
                                       "i", of->tenant);
        end += (int64_t)of->note.len;
    }
    if (st) return st;
    return weft__learn_db_do(
        s->db, err,
        "INSERT INTO events(tenant, answer, kind, time, value, text, name, over, note, note_end, bytes)"
        " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, nullif(?8, 0), ?9, nullif(?10, 0), ?11)",
        "iiiidtsitii", of->tenant, of->answer, (int64_t)f->kind, f->time_ms, f->value, f->text, f->n_text, f->name,
        of->over, of->note.len ? of->note.data : NULL, of->note.len, end, (int64_t)(f->n_text + of->note.len));
}

static weft_status write_feedback(weft__learn_store *s, const weft__learn_feedback *f, weft__learn_told *told,
                                  weft_error *err)
{
    struct told_of of = {.answer = 0};
    *told = (weft__learn_told){0};
    weft_status st = find_answer(s, f, &of, told, err);
    if (!st) st = find_over(s, f, &of, err);
    if (!st) st = is_repeated(s, f, &of, &told->event, err);
    told->is_repeated = told->event != 0;
    told->is_note = of.note.len != 0;
    if (!st && !told->is_repeated) {
        st = check_rate(s, f, of.tenant, err);
        if (!st) st = add_event(s, f, &of, err);
        told->event = sqlite3_last_insert_rowid(s->db);
        if (!st) st = weft__learn_say_feedback(&(weft__learn_sayer){s, of.salt, f->tenant}, f, told->event, err);
        if (!st) st = weft__learn_expire(s, of.tenant, err);
    }
    weft__strbuf_free(&of.note);
    return st;
}

/* ---- the rest ---- */

/* By the writer, so that a forgetting finds it. */
static weft_status make_folder(weft__learn_store *s, int64_t tenant, weft_error *err)
{
    weft__strbuf path = {0};
    weft_status st = WEFT_OK;
    weft__strbuf_printf(&path, "%s/tenants", s->dir);
    for (int i = 0; i < 2 && !st; i++) {
        if (i) weft__strbuf_printf(&path, "/%" PRId64, tenant);
        if (path.failed) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a path");
        else if (mkdir(path.data, 0700) && errno != EEXIST)
            st = weft_fail(err, WEFT_IO, "%s: %s", path.data, strerror(errno));
    }
    weft__strbuf_free(&path);
    return st;
}

static weft_status write_tenant(weft__learn_store *s, weft__learn_job *job, weft_error *err)
{
    unsigned char salt[WEFT__LEARN_SALT];
    const weft_status st = weft__learn_tenant(s->db, job->tenant, job->makes, &job->number, salt, err);
    return st ? st : make_folder(s, job->number, err);
}

static weft_status write_version(weft__learn_store *s, const weft__learn_version *v, weft_error *err)
{
    unsigned char salt[WEFT__LEARN_SALT] = {0};
    int64_t tenant;
    weft_status st = weft__learn_tenant(s->db, v->tenant, 0, &tenant, salt, err);
    if (!st)
        st = weft__learn_db_do(s->db, err,
                               "INSERT INTO versions(tenant, adapter, version, what, content, parent, path,"
                               " first_event, last_event, options, report, time)"
                               " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
                               "isissssiissi", tenant, v->adapter, v->version, v->what, v->content, v->parent, v->path,
                               v->first_event, v->last_event, v->options, v->report, v->time_ms);
    return st ? st : weft__learn_say_version(&(weft__learn_sayer){s, salt, v->tenant}, v, err);
}

static weft_status write_memory(weft__learn_store *s, const weft__learn_memory *m, int64_t *number, weft_error *err)
{
    unsigned char salt[WEFT__LEARN_SALT] = {0};
    int64_t tenant;
    pthread_mutex_lock(&s->lock);
    const int is_late = weft__learn_is_forgotten(s, m->tenant, m->time_ms);
    pthread_mutex_unlock(&s->lock);
    if (!m->number && is_late) return weft_fail(err, WEFT_NOT_FOUND, "all of the tenant was forgotten meanwhile");
    weft_status st = weft__learn_tenant(s->db, m->tenant, !m->number, &tenant, salt, err);
    *number = m->number;
    if (st == WEFT_NOT_FOUND) return weft_fail(err, st, "there is no memory %" PRId64, m->number);
    if (!st && !m->number) {
        st = weft__learn_db_do(s->db, err,
                               "INSERT INTO memories(tenant, kind, key, text, source, time, valid_from, valid_to, uses,"
                               " wins, losses) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                               "issssiiiiii", tenant, m->kind, m->key, m->text, m->source, m->time_ms, m->valid_from_ms,
                               m->valid_to_ms, m->uses, m->wins, m->losses);
        *number = sqlite3_last_insert_rowid(s->db);
        return st;
    }
    if (!st)
        st = weft__learn_db_do(s->db, err,
                               "UPDATE memories SET kind = ?3, key = ?4, text = ?5, source = ?6, time = ?7,"
                               " valid_from = ?8, valid_to = ?9, uses = ?10, wins = ?11, losses = ?12"
                               " WHERE tenant = ?1 AND number = ?2",
                               "iissssiiiiii", tenant, m->number, m->kind, m->key, m->text, m->source, m->time_ms,
                               m->valid_from_ms, m->valid_to_ms, m->uses, m->wins, m->losses);
    if (!st && !sqlite3_changes(s->db)) st = weft_fail(err, WEFT_NOT_FOUND, "there is no memory %" PRId64, m->number);
    return st;
}

static weft_status drop_memory(weft__learn_store *s, const weft__learn_job *job, weft_error *err)
{
    int64_t tenant;
    weft_status st = weft__learn_tenant(s->db, job->tenant, 0, &tenant, NULL, err);
    if (!st)
        st = weft__learn_db_do(s->db, err, "DELETE FROM memories WHERE tenant = ?1 AND number = ?2", "ii", tenant,
                               job->number);
    if (st == WEFT_NOT_FOUND || (!st && !sqlite3_changes(s->db)))
        return weft_fail(err, WEFT_NOT_FOUND, "there is no memory %" PRId64, job->number);
    return st;
}

weft_status weft__learn_write(weft__learn_store *s, weft__learn_job *job, weft_error *err)
{
    switch (job->kind) {
    case WEFT__LEARN_JOB_RECORD: return write_record(s, job->given, err);
    case WEFT__LEARN_JOB_TELL: return write_feedback(s, job->given, job->result, err);
    case WEFT__LEARN_JOB_VERSION: return write_version(s, job->given, err);
    case WEFT__LEARN_JOB_MEMORY: return write_memory(s, job->given, &job->number, err);
    case WEFT__LEARN_JOB_DROP: return drop_memory(s, job, err);
    case WEFT__LEARN_JOB_TENANT: return write_tenant(s, job, err);
    case WEFT__LEARN_JOB_FORGET:
    case WEFT__LEARN_JOB_NOTHING: break;
    }
    return WEFT_OK;
}

/* ---- what goes ---- */

static void count_expired(weft__learn_store *s)
{
    pthread_mutex_lock(&s->lock);
    s->health.n_expired += (uint64_t)sqlite3_changes(s->db);
    pthread_mutex_unlock(&s->lock);
}

/* The oldest of a tenant, those of which nothing was said first, until the rest fits. */
static weft_status drop_oldest(weft__learn_store *s, int64_t tenant, weft_error *err)
{
    for (;;) {
        int64_t bytes;
        weft_status st =
            weft__learn_db_number(s->db, 0, &bytes, err, "SELECT bytes FROM tenants WHERE tenant = ?1", "i", tenant);
        if (st || !s->max_bytes || (uint64_t)bytes <= s->max_bytes) return st;
        st = weft__learn_db_do(s->db, err,
                               "DELETE FROM answers WHERE number = (SELECT number FROM answers WHERE tenant = ?1"
                               " ORDER BY told, time LIMIT 1)",
                               "i", tenant);
        if (st || !sqlite3_changes(s->db)) return st;
        count_expired(s);
    }
}

weft_status weft__learn_expire(weft__learn_store *s, int64_t tenant, weft_error *err)
{
    enum { EVERY_S = 60 };
    const uint64_t now = weft__clock_ns();
    if (tenant) return drop_oldest(s, tenant, err);
    if (!s->max_age_s || (s->expired_ns && now - s->expired_ns < EVERY_S * 1000000000ull)) return WEFT_OK;
    s->expired_ns = now;
    weft_status st = weft__learn_db_do(s->db, err, "DELETE FROM answers WHERE time < ?1", "i",
                                       weft__clock_unix_ms() - s->max_age_s * 1000);
    if (!st) count_expired(s);
    return st;
}
