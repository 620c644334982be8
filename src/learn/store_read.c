// SPDX-License-Identifier: Apache-2.0
/* store_read.c: what is read of the store, on a connection of its own, and what is asked of the writer (store.h). */
#include <string.h>

#include "learn/parts.h"

/* ---- asked of the writer ---- */

weft_status weft__learn_tell(weft__learn_store *s, const weft__learn_feedback *f, weft__learn_told *out,
                             weft_error *err)
{
    weft__learn_job job = {.kind = WEFT__LEARN_JOB_TELL, .given = f, .result = out};
    *out = (weft__learn_told){0};
    return weft__learn_await(s, &job, err);
}

weft_status weft__learn_put_version(weft__learn_store *s, const weft__learn_version *v, weft_error *err)
{
    weft__learn_job job = {.kind = WEFT__LEARN_JOB_VERSION, .given = v};
    return weft__learn_await(s, &job, err);
}

weft_status weft__learn_put_memory(weft__learn_store *s, const weft__learn_memory *m, int64_t *number, weft_error *err)
{
    weft__learn_job job = {.kind = WEFT__LEARN_JOB_MEMORY, .given = m};
    weft_status st = weft__learn_await(s, &job, err);
    if (!st) *number = job.number;
    return st;
}

weft_status weft__learn_drop_memory(weft__learn_store *s, const char *tenant, int64_t number, weft_error *err)
{
    weft__learn_job job = {.kind = WEFT__LEARN_JOB_DROP, .tenant = tenant, .number = number};
    return weft__learn_await(s, &job, err);
}

weft_status weft__learn_tenant_dir(weft__learn_store *s, const char *tenant, int makes, weft__strbuf *out,
                                   weft_error *err)
{
    weft__learn_job job = {.kind = WEFT__LEARN_JOB_TENANT, .tenant = tenant, .makes = makes};
    weft_status st = weft__learn_await(s, &job, err);
    if (st) return st;
    weft__strbuf_printf(out, "%s/tenants/%lld", s->dir, (long long)job.number);
    return out->failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for a path") : WEFT_OK;
}

/* ---- answers and events ---- */

#define COLUMNS(t)                                                                                                     \
    t ".id, " t ".choice, " t ".time, " t ".model, " t ".base, " t ".adapter, " t ".version, " t ".content, " t        \
      ".settings, " t ".seed, " t ".finish, " t ".notes, " t ".prompt, " t ".answer, " t ".logprobs, " t ".source, " t \
      ".text"
enum { N_COLUMNS = 17 };

static const char *text_or_null(sqlite3_stmt *q, int column)
{
    return sqlite3_column_type(q, column) == SQLITE_NULL ? NULL : weft__learn_db_text(q, column);
}

/* The answer whose columns begin at `c`; borrowed from the statement until its next step. */
static weft__learn_record record_at(sqlite3_stmt *q, int c, const char *tenant)
{
    weft__learn_record r = {.tenant = tenant};
    if (sqlite3_column_type(q, c) == SQLITE_NULL) return r;
    r.id = weft__learn_db_text(q, c);
    r.choice = sqlite3_column_int(q, c + 1);
    r.time_ms = sqlite3_column_int64(q, c + 2);
    r.model = weft__learn_db_text(q, c + 3);
    r.base = weft__learn_db_text(q, c + 4);
    r.adapter = weft__learn_db_text(q, c + 5);
    r.version = sqlite3_column_int64(q, c + 6);
    r.content = weft__learn_db_text(q, c + 7);
    r.settings = text_or_null(q, c + 8);
    r.seed = (uint64_t)sqlite3_column_int64(q, c + 9);
    r.finish = weft__learn_db_text(q, c + 10);
    r.n_notes = sqlite3_column_int(q, c + 11);
    r.prompt = sqlite3_column_blob(q, c + 12);
    r.n_prompt = (int32_t)(sqlite3_column_bytes(q, c + 12) / (int)sizeof *r.prompt);
    r.answer = sqlite3_column_blob(q, c + 13);
    r.n_answer = (int32_t)(sqlite3_column_bytes(q, c + 13) / (int)sizeof *r.answer);
    r.logprobs = sqlite3_column_blob(q, c + 14);
    r.source = text_or_null(q, c + 15);
    r.text = weft__learn_db_text(q, c + 16);
    r.n_text = (size_t)sqlite3_column_bytes(q, c + 16);
    return r;
}

/* The tenant's number by the reader, whose lock is taken then; WEFT_NOT_FOUND is no failure: *number 0. */
static weft_status begin_reading(weft__learn_store *s, const char *tenant, int64_t *number, weft_error *err)
{
    weft_error own = {0};
    pthread_mutex_lock(&s->read_lock);
    weft_status st = weft__learn_tenant(s->reader, tenant, 0, number, NULL, &own);
    if (st == WEFT_NOT_FOUND) return WEFT_OK;
    return st ? weft_fail(err, st, "%s", own.message) : WEFT_OK;
}

weft_status weft__learn_events(weft__learn_store *s, const char *tenant, int64_t after, const char *of_adapter,
                               int (*fn)(void *arg, const weft__learn_event *e), void *arg, weft_error *err)
{
    sqlite3_stmt *q = NULL;
    int64_t number;
    weft_status st = begin_reading(s, tenant, &number, err);
    if (!st && number)
        st = weft__learn_db_ask(s->reader, &q, err,
                                "SELECT e.event, e.time, e.kind, e.value, e.text, e.name, " COLUMNS("a") ", " COLUMNS(
                                    "b") " FROM events e JOIN answers a ON a.number = e.answer"
                                         " LEFT JOIN answers b ON b.number = e.over AND b.tenant = e.tenant"
                                         " WHERE e.tenant = ?1 AND a.tenant = ?1 AND e.event > ?2"
                                         " AND (?3 IS NULL OR a.adapter = ?3) ORDER BY e.event",
                                "iis", number, after, of_adapter);
    while (q && weft__learn_db_next(q, &st, err)) {
        weft__learn_event e = {.event = sqlite3_column_int64(q, 0),
                               .time_ms = sqlite3_column_int64(q, 1),
                               .kind = (weft__learn_kind)sqlite3_column_int(q, 2),
                               .value = sqlite3_column_double(q, 3),
                               .text = text_or_null(q, 4),
                               .name = weft__learn_db_text(q, 5),
                               .answer = record_at(q, 6, tenant),
                               .over = record_at(q, 6 + N_COLUMNS, tenant)};
        e.n_text = (size_t)sqlite3_column_bytes(q, 4);
        if (e.kind < WEFT__LEARN_KINDS && fn(arg, &e)) break;
    }
    weft__learn_db_end(&q);
    pthread_mutex_unlock(&s->read_lock);
    return st;
}

weft_status weft__learn_records(weft__learn_store *s, const char *tenant, int with_feedback, int newest_first,
                                int64_t most, int (*fn)(void *arg, const weft__learn_record *r), void *arg,
                                weft_error *err)
{
    sqlite3_stmt *q = NULL;
    int64_t number;
    weft_status st = begin_reading(s, tenant, &number, err);
    const char *sql = newest_first ? "SELECT " COLUMNS("a") " FROM answers a WHERE a.tenant = ?1 AND (?2 OR a.told = 0)"
                                                            " ORDER BY a.time DESC, a.number DESC LIMIT ?3"
                                   : "SELECT " COLUMNS("a") " FROM answers a WHERE a.tenant = ?1 AND (?2 OR a.told = 0)"
                                                            " ORDER BY a.time, a.number LIMIT ?3";
    if (!st && number)
        st = weft__learn_db_ask(s->reader, &q, err, sql, "iii", number, (int64_t)with_feedback,
                                most ? most : (int64_t)-1);
    while (q && weft__learn_db_next(q, &st, err)) {
        weft__learn_record r = record_at(q, 0, tenant);
        if (fn(arg, &r)) break;
    }
    weft__learn_db_end(&q);
    pthread_mutex_unlock(&s->read_lock);
    return st;
}

/* ---- versions and memories ---- */

weft_status weft__learn_versions(weft__learn_store *s, const char *tenant, const char *adapter,
                                 int (*fn)(void *arg, const weft__learn_version *v), void *arg, weft_error *err)
{
    sqlite3_stmt *q = NULL;
    int64_t number;
    weft_status st = begin_reading(s, tenant, &number, err);
    if (!st && number) /* `what`: stores of before have "rolled back" */
        st =
            weft__learn_db_ask(s->reader, &q, err,
                               "SELECT number, adapter, version, replace(what, ' ', '_'), content, parent, path,"
                               " first_event, last_event,"
                               " options, report, time FROM versions WHERE tenant = ?1 AND (?2 IS NULL OR adapter = ?2)"
                               " ORDER BY number",
                               "is", number, adapter);
    while (q && weft__learn_db_next(q, &st, err)) {
        weft__learn_version v = {.tenant = tenant,
                                 .number = sqlite3_column_int64(q, 0),
                                 .adapter = weft__learn_db_text(q, 1),
                                 .version = sqlite3_column_int64(q, 2),
                                 .what = weft__learn_db_text(q, 3),
                                 .content = weft__learn_db_text(q, 4),
                                 .parent = weft__learn_db_text(q, 5),
                                 .path = weft__learn_db_text(q, 6),
                                 .first_event = sqlite3_column_int64(q, 7),
                                 .last_event = sqlite3_column_int64(q, 8),
                                 .options = weft__learn_db_text(q, 9),
                                 .report = weft__learn_db_text(q, 10),
                                 .time_ms = sqlite3_column_int64(q, 11)};
        if (fn(arg, &v)) break;
    }
    weft__learn_db_end(&q);
    pthread_mutex_unlock(&s->read_lock);
    return st;
}

weft_status weft__learn_memories(weft__learn_store *s, const char *tenant,
                                 int (*fn)(void *arg, const weft__learn_memory *m), void *arg, weft_error *err)
{
    sqlite3_stmt *q = NULL;
    int64_t number;
    weft_status st = begin_reading(s, tenant, &number, err);
    if (!st && number)
        st = weft__learn_db_ask(s->reader, &q, err,
                                "SELECT number, kind, key, text, source, time, valid_from, valid_to, uses, wins, losses"
                                " FROM memories WHERE tenant = ?1 ORDER BY number",
                                "i", number);
    while (q && weft__learn_db_next(q, &st, err)) {
        weft__learn_memory m = {.tenant = tenant,
                                .number = sqlite3_column_int64(q, 0),
                                .kind = weft__learn_db_text(q, 1),
                                .key = weft__learn_db_text(q, 2),
                                .text = weft__learn_db_text(q, 3),
                                .source = weft__learn_db_text(q, 4),
                                .time_ms = sqlite3_column_int64(q, 5),
                                .valid_from_ms = sqlite3_column_int64(q, 6),
                                .valid_to_ms = sqlite3_column_int64(q, 7),
                                .uses = sqlite3_column_int64(q, 8),
                                .wins = sqlite3_column_int64(q, 9),
                                .losses = sqlite3_column_int64(q, 10)};
        if (fn(arg, &m)) break;
    }
    weft__learn_db_end(&q);
    pthread_mutex_unlock(&s->read_lock);
    return st;
}

/* ---- numbers ---- */

weft_status weft__learn_count_of(sqlite3 *db, int64_t tenant, weft__learn_totals *out, weft_error *err)
{
    sqlite3_stmt *q;
    *out = (weft__learn_totals){0};
    weft_status st = weft__learn_db_ask(db, &q, err,
                                        "SELECT count(*), coalesce(min(time), 0), coalesce(max(time), 0) FROM answers"
                                        " WHERE ?1 = 0 OR tenant = ?1",
                                        "i", tenant);
    if (!st && weft__learn_db_next(q, &st, err)) {
        out->n_answers = sqlite3_column_int64(q, 0);
        out->first_ms = sqlite3_column_int64(q, 1);
        out->last_ms = sqlite3_column_int64(q, 2);
    }
    weft__learn_db_end(&q);
    if (!st)
        st = weft__learn_db_ask(
            db, &q, err, "SELECT kind, count(*) FROM events WHERE ?1 = 0 OR tenant = ?1 GROUP BY kind", "i", tenant);
    while (!st && weft__learn_db_next(q, &st, err)) {
        const int kind = sqlite3_column_int(q, 0);
        if (kind < 0 || kind >= WEFT__LEARN_KINDS) continue;
        out->by_kind[kind] = sqlite3_column_int64(q, 1);
        out->n_events += out->by_kind[kind];
    }
    weft__learn_db_end(&q);
    if (!st)
        st = weft__learn_db_number(db, 0, &out->n_memories, err,
                                   "SELECT count(*) FROM memories WHERE ?1 = 0 OR tenant = ?1", "i", tenant);
    if (!st)
        st = weft__learn_db_number(db, 0, &out->n_versions, err,
                                   "SELECT count(*) FROM versions WHERE ?1 = 0 OR tenant = ?1", "i", tenant);
    if (!st)
        st = weft__learn_db_number(db, 0, &out->bytes, err,
                                   "SELECT coalesce(sum(bytes), 0) FROM tenants WHERE ?1 = 0 OR tenant = ?1", "i",
                                   tenant);
    return st;
}

weft_status weft__learn_count(weft__learn_store *s, const char *tenant, weft__learn_totals *out, weft_error *err)
{
    int64_t number = 0;
    weft_status st = WEFT_OK;
    *out = (weft__learn_totals){0};
    if (tenant) st = begin_reading(s, tenant, &number, err);
    else pthread_mutex_lock(&s->read_lock);
    if (!st && (number || !tenant)) st = weft__learn_count_of(s->reader, number, out, err);
    pthread_mutex_unlock(&s->read_lock);
    return st;
}

weft_status weft__learn_tenants(weft__learn_store *s, int (*fn)(void *arg, const char *tenant), void *arg,
                                weft_error *err)
{
    sqlite3_stmt *q;
    pthread_mutex_lock(&s->read_lock);
    weft_status st = weft__learn_db_ask(s->reader, &q, err, "SELECT name FROM tenants ORDER BY name", "");
    while (!st && weft__learn_db_next(q, &st, err))
        if (fn(arg, weft__learn_db_text(q, 0))) break;
    weft__learn_db_end(&q);
    pthread_mutex_unlock(&s->read_lock);
    return st;
}

/* ---- the corrections for prompts (notes.c has their form) ---- */

weft_status weft__learn_notes(weft__learn_store *s, const char *tenant, size_t room, weft__strbuf *out, int32_t *n,
                              weft_error *err)
{
    sqlite3_stmt *q = NULL;
    int64_t number, end = 0;
    weft_status st = begin_reading(s, tenant, &number, err);
    const int64_t half = (int64_t)(room / 2);
    weft__strbuf lines = {0};
    *n = 0;
    if (!st && number)
        st = weft__learn_db_number(s->reader, 0, &end, err,
                                   "SELECT coalesce(max(note_end), 0) FROM events WHERE tenant = ?1"
                                   " AND note_end IS NOT NULL",
                                   "i", number);
    /* Where it begins moves on by half of the room at a time. */
    const int64_t from = half && end > 2 * half ? ((end + half - 1) / half - 2) * half : 0;
    if (!st && end && half)
        st = weft__learn_db_ask(s->reader, &q, err,
                                "SELECT note FROM events WHERE tenant = ?1 AND note_end IS NOT NULL"
                                " AND note_end - length(CAST(note AS BLOB)) >= ?2 ORDER BY note_end",
                                "ii", number, from);
    while (q && weft__learn_db_next(q, &st, err)) {
        weft__strbuf_put(&lines, weft__learn_db_text(q, 0), (size_t)sqlite3_column_bytes(q, 0));
        ++*n;
    }
    weft__learn_db_end(&q);
    pthread_mutex_unlock(&s->read_lock);
    if (!st && *n) weft__learn_note_block(&lines, out);
    if (!st && (lines.failed || out->failed)) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for the corrections");
    weft__strbuf_free(&lines);
    return st;
}
