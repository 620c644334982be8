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
        else if (mkdir(path.data, 0700) && errno != EEXIST) {
            s->why = weft__learn_why_of(errno);
            st = weft_fail(err, WEFT_IO, "%s: %s", path.data, strerror(errno));
        }
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

/* Is it made of an event of which none was made yet, or of none? */
static weft_status is_first_of_event(weft__learn_store *s, const weft__learn_memory *m, int64_t tenant, int *is_first,
                                     weft_error *err)
{
    *is_first = 1;
    if (!m->event) return WEFT_OK;
    weft_status st = weft__learn_db_do(s->db, err, "INSERT OR IGNORE INTO made(tenant, event) VALUES(?1, ?2)", "ii",
                                       tenant, m->event);
    *is_first = sqlite3_changes(s->db) > 0;
    return st;
}

static weft_status add_memory(weft__learn_store *s, const weft__learn_memory *m, int64_t tenant, int64_t *number,
                              weft_error *err)
{
    weft_status st =
        weft__learn_db_do(s->db, err,
                          "INSERT INTO memories(tenant, kind, key, text, source, time, valid_from, valid_to, uses,"
                          " wins, losses) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                          "issssiiiiii", tenant, m->kind, m->key, m->text, m->source, m->time_ms, m->valid_from_ms,
                          m->valid_to_ms, m->uses, m->wins, m->losses);
    *number = sqlite3_last_insert_rowid(s->db);
    return st;
}

static weft_status change_memory(weft__learn_store *s, const weft__learn_memory *m, int64_t tenant, weft_error *err)
{
    weft_status st = weft__learn_db_do(s->db, err,
                                       "UPDATE memories SET kind = ?3, key = ?4, text = ?5, source = ?6, time = ?7,"
                                       " valid_from = ?8, valid_to = ?9, uses = ?10, wins = ?11, losses = ?12"
                                       " WHERE tenant = ?1 AND number = ?2",
                                       "iissssiiiiii", tenant, m->number, m->kind, m->key, m->text, m->source,
                                       m->time_ms, m->valid_from_ms, m->valid_to_ms, m->uses, m->wins, m->losses);
    if (!st && !sqlite3_changes(s->db)) st = weft_fail(err, WEFT_NOT_FOUND, "there is no memory %" PRId64, m->number);
    return st;
}

static weft_status write_memory(weft__learn_store *s, const weft__learn_memory *m, int64_t *number, weft_error *err)
{
    unsigned char salt[WEFT__LEARN_SALT] = {0};
    int64_t tenant;
    int is_first = 1;
    pthread_mutex_lock(&s->lock);
    const int is_late = weft__learn_is_forgotten(s, m->tenant, m->time_ms);
    pthread_mutex_unlock(&s->lock);
    if (!m->number && is_late) return weft_fail(err, WEFT_NOT_FOUND, "all of the tenant was forgotten meanwhile");
    weft_status st = weft__learn_tenant(s->db, m->tenant, !m->number, &tenant, salt, err);
    *number = m->number;
    if (st == WEFT_NOT_FOUND) return weft_fail(err, st, "there is no memory %" PRId64, m->number);
    if (!st) st = is_first_of_event(s, m, tenant, &is_first, err);
    if (st || !is_first) return st;
    st = m->number ? change_memory(s, m, tenant, err) : add_memory(s, m, tenant, number, err);
    if (st || !m->ends) return st;
    return weft__learn_db_do(s->db, err,
                             "UPDATE memories SET valid_to = ?3 WHERE tenant = ?1 AND number = ?2"
                             " AND (valid_to = 0 OR valid_to > ?3)",
                             "iii", tenant, m->ends, m->valid_from_ms);
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
    case WEFT__LEARN_JOB_TELL: return weft__learn_write_feedback(s, job->given, job->result, err);
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
